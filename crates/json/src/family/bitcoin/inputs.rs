//! What wallets pass in for Bitcoin and Litecoin.

use crate::family::inputs::declare;

declare! { CONTEXTS:
    /// The wallet context of Bitcoin and Litecoin. Without `utxos`, only the deposit address is wanted.
    BitcoinWallet {
        /// Outputs of the wallet, each once. With them, `change_address` and `fee_rate` are required.
        utxos: Option<Vec<Utxo>>,
        /// The address that receives the change.
        change_address: Option<String>,
        /// The fee rate in sat/vB, with decimal places if necessary; at most that of the policy.
        fee_rate: Option<FeeRate>,
        /// Which outputs are spent; `all` if it is missing.
        selection: Option<CoinSelection>,
        /// The order of inputs and outputs; `given` if it is missing.
        order: Option<TxOrdering>,
        /// 32 random bytes; required with the order `shuffled`, and refused otherwise.
        seed: Option<BareHex>,
        /// Whether the transaction can be replaced; `true` if it is missing.
        rbf: Option<bool>,
        /// Derivations of the wallet's keys, for hardware signers: `[fingerprint/path]public key`.
        origins: Option<Vec<String>>,
        /// One or more keys, separated by white space: WIF or 64 hex digits. Without it nothing is signed.
        secret_key: Option<String>,
    }

    /// An output of a Bitcoin-like wallet.
    Utxo {
        /// The id of the transaction, as it is displayed.
        txid: BareHex,
        /// The index of the output.
        vout: Integer,
        /// Base units.
        value: IntegerOrDecimal,
        /// P2WPKH, P2TR, P2SH-P2WPKH or P2PKH.
        script_pubkey: BareHex,
        /// The redeem script; required for P2SH.
        redeem_script: Option<BareHex>,
        /// The whole transaction; required for P2PKH.
        previous_tx: Option<BareHex>,
    }

    /// The wallet context of a recovery on Bitcoin and Litecoin. The fee is deducted, unless `utxos` pay it.
    BitcoinRecovery {
        /// The outputs of the HTLC, each as `<txid>:<index>:<base units>`. One that covers the amount is spent alone.
        funding: Vec<String>,
        /// The address that receives the coins.
        to: String,
        /// The fee rate in sat/vB, with decimal places if necessary; at most that of the policy.
        fee_rate: FeeRate,
        /// Outputs of the wallet that pay the fee.
        utxos: Option<Vec<Utxo>>,
        /// The address that receives the change; required with `utxos`, and refused otherwise.
        change_address: Option<String>,
        /// Derivations of the wallet's keys, for hardware signers: `[fingerprint/path]public key`.
        origins: Option<Vec<String>>,
        /// Whether a redemption may take less than the amount, or several outputs, although the secret becomes public; `false` if it is
        /// missing.
        accept_less: Option<bool>,
        /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
        accept_low_fee: Option<bool>,
        /// Whether the fee may be higher than what is paid out; `false` if it is missing.
        accept_high_fee: Option<bool>,
        /// One or more keys, separated by white space: WIF or 64 hex digits. Without it nothing is signed.
        secret_key: Option<String>,
    }
}

declare! { SIGNATURES:
    /// A signature of one input on Bitcoin-like chains, with the key that made it.
    BitcoinSignature {
        /// The signature.
        signature: BareHex,
        /// The public key.
        public_key: BareHex,
    }
}
