//! What wallets pass in for EVM.

use crate::family::inputs::declare;

declare! { CONTEXTS:
    /// The wallet context of an EVM chain. Transactions are of type EIP-1559 with `max_fee_per_gas` and
    /// `max_priority_fee_per_gas`, and legacy ones with `gas_price`.
    EvmWallet {
        /// Nonce of the first transaction. Each further one takes the next.
        nonce: Integer,
        /// Wei per unit of gas; required without `gas_price`.
        max_fee_per_gas: Option<Decimal>,
        /// Wei per unit of gas, at most `max_fee_per_gas`; required with it.
        max_priority_fee_per_gas: Option<Decimal>,
        /// Wei per unit of gas, for a legacy transaction; ignored beside `max_fee_per_gas`.
        gas_price: Option<Decimal>,
        /// The chain that the wallet is set to, which must be that of the asset.
        chain_id: Option<Number>,
        /// Whether the allowance is set to zero first, in a transaction of its own.
        reset_approval: Option<bool>,
        /// The key of the sender, 64 hex digits. Without it nothing is signed.
        secret_key: Option<String>,
    }

    /// The wallet context of a recovery on an EVM chain.
    EvmRecovery: EvmWallet {
        /// The account that sends and pays for the transaction; the payee if it is missing.
        sender: Option<Hex>,
        /// The gas limit, at most that of the policy.
        gas_limit: Option<Number>,
        /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
        accept_low_fee: Option<bool>,
    }
}

declare! { SIGNATURES:
    /// The signature of a contract wallet over EVM typed data (ERC-1271).
    ContractSignature {
        /// The signature, at most 64 KiB; `0x` if the wallet keeps on chain what it signed.
        contract: Hex,
        /// Whether the account is deployed, so that the wrapper of ERC-6492 is taken off; `false` if it is missing. An order that was prepared
        /// with a connection knows it.
        deployed: Option<bool>,
    }
}
