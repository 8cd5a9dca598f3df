//! What wallets pass in for Starknet.

use crate::family::inputs::declare;

declare! { CONTEXTS:
    /// The wallet context of Starknet.
    StarknetWallet {
        /// Nonce of the account.
        nonce: Number,
        /// The most that the transaction may use and pay.
        resource_bounds: ResourceBounds,
        /// The chain that the wallet is set to, which must be that of the asset: a short string such as `SN_MAIN`, or its number.
        chain_id: Option<NumberOrText>,
        /// FRI per unit of L2 gas; 0 if it is missing.
        tip: Option<Number>,
        /// The account's public key. Without it a local key cannot be checked.
        public_key: Option<Felt>,
        /// The account's Cairo version, 0 or 1; 1 if it is missing. It determines how the account takes several calls.
        cairo_version: Option<Number>,
        /// Felts for the paymaster.
        paymaster_data: Option<Vec<Number>>,
        /// Felts that deploy the account.
        account_deployment_data: Option<Vec<Number>>,
        /// Where the nonce is kept; `L1` if it is missing.
        nonce_data_availability_mode: Option<DataAvailabilityMode>,
        /// Where the fee is paid; `L1` if it is missing.
        fee_data_availability_mode: Option<DataAvailabilityMode>,
        /// The key of the account, 1 to 64 hex digits. Without it nothing is signed.
        secret_key: Option<String>,
    }

    /// The resource bounds of a Starknet transaction.
    ResourceBounds {
        /// The bound of L1 gas.
        l1_gas: ResourceBound,
        /// The bound of L2 gas.
        l2_gas: ResourceBound,
        /// The bound of L1 data gas.
        l1_data_gas: ResourceBound,
    }

    /// The bound of one resource.
    ResourceBound {
        /// Units, at most 64 bits.
        max_amount: Number,
        /// FRI per unit, at most 128 bits.
        max_price_per_unit: Number,
    }

    /// The wallet context of a recovery on Starknet.
    StarknetRecovery: StarknetWallet {
        /// The account that sends and pays for the transaction; the payee if it is missing.
        sender: Option<Felt>,
        /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
        accept_low_fee: Option<bool>,
    }
}

declare! { SIGNATURES:
    /// A signature of a Starknet account with one key.
    StarknetSignature {
        /// The first felt.
        r: Number,
        /// The second felt.
        s: Number,
        /// Ignored: the account's key proves a signature of two felts.
        recovery: Option<Number>,
    }
}
