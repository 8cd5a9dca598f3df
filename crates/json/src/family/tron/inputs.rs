//! What wallets pass in for Tron.

use crate::family::inputs::declare;

declare! { CONTEXTS:
    /// The wallet context of Tron.
    TronWallet {
        /// Bytes 6 and 7 of the reference block's number.
        ref_block_bytes: BareHex,
        /// Bytes 8 to 15 of the reference block's id.
        ref_block_hash: BareHex,
        /// When the transaction expires, in Unix milliseconds.
        expiration: Integer,
        /// The time of the transaction, in Unix milliseconds.
        timestamp: Integer,
        /// The chain that the wallet is set to, which must be that of the asset.
        chain_id: Option<Number>,
        /// Whether the allowance is set to zero first, in a transaction of its own.
        reset_approval: Option<bool>,
        /// The permission of the sender's account under which calls are signed: 0, which is the default, or 2 to 9.
        permission_id: Option<Integer>,
        /// The keys of that permission. Without them the sender's own key signs.
        permission: Option<TronPermission>,
        /// The key of the owner, or of the permission, 64 hex digits. Without it nothing is signed.
        secret_key: Option<String>,
    }

    /// A permission of a Tron account, as `/wallet/getaccount` returns it. Its further members are not read.
    TronPermission {
        /// Which one: `permission_id`, if both are given; otherwise 0 if it is missing.
        id: Option<Integer>,
        /// The weight that the signatures must reach.
        threshold: Integer,
        /// One to five keys, none twice.
        keys: Vec<TronKey>,
        /// The 32 bytes of what an active permission allows, which must include calls of contracts.
        operations: Option<BareHex>,
    }

    /// A key of a permission.
    TronKey {
        /// The account of the key, in base58check, or in hex with its prefix `41`.
        address: String,
        /// How much its signature counts, from 1 on.
        weight: Integer,
    }

    /// The wallet context of a recovery on Tron.
    TronRecovery: TronWallet {
        /// The account that sends and pays for the transaction; the payee if it is missing.
        sender: Option<String>,
        /// The fee limit in sun, at most that of the policy.
        fee_limit: Option<Number>,
        /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
        accept_low_fee: Option<bool>,
    }
}
