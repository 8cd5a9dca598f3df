//! What wallets pass in for Sui.

use crate::family::inputs::declare;

declare! { CONTEXTS:
    /// The wallet context of Sui.
    SuiWallet {
        /// MIST per unit of gas.
        gas_price: Decimal,
        /// The most that the transaction may cost, in MIST.
        gas_budget: Decimal,
        /// The coins that pay for gas, at most 256, each once. If there is none, the address balance pays, and `valid_during` is required.
        gas_payment: Vec<GasCoin>,
        /// The owner of the gas coins; the sender if it is missing.
        sponsor: Option<Hex>,
        /// The last epoch in which the transaction may run.
        expiration_epoch: Option<Number>,
        /// When a payment from the address balance is valid.
        valid_during: Option<ValidDuring>,
        /// The key of the sender: `suiprivkey1..`, or the 64 hex digits of an Ed25519 seed. Without it nothing is signed.
        secret_key: Option<String>,
    }

    /// When a payment from the address balance of an account on Sui is valid.
    ValidDuring {
        /// The first epoch: the current one.
        min_epoch: Number,
        /// The last epoch: the first one, or the next.
        max_epoch: Number,
        /// The network: the digest of its genesis checkpoint, base58 of 32 bytes.
        chain: String,
        /// A number of at most 32 bits, which distinguishes transactions that are equal otherwise.
        nonce: Number,
    }

    /// A coin that pays for gas, or a reservation of the address balance in the form of a coin.
    GasCoin {
        /// The id of the object.
        object_id: Hex,
        /// Its version.
        version: Number,
        /// Its digest: base58 of 32 bytes.
        digest: String,
    }

    /// The wallet context of a recovery on Sui.
    SuiRecovery: SuiWallet {
        /// The account that sends the transaction; the payee if it is missing.
        sender: Option<Hex>,
        /// The names of the package's functions; `current` if it is missing.
        function_names: Option<FunctionNames>,
        /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
        accept_low_fee: Option<bool>,
    }
}
