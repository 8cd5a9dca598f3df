//! What wallets pass in for Solana.

use crate::family::inputs::declare;

declare! { CONTEXTS:
    /// The wallet context of Solana.
    SolanaWallet {
        /// Base58 of 32 bytes. It replaces the blockhash of the response's own transaction, never that of the gasless one.
        recent_blockhash: Option<String>,
        /// A nonce account of the signer, in base58, with `nonce`: in place of a blockhash, so that the transaction does not expire.
        nonce_account: Option<String>,
        /// Base58 of the 32 bytes that the nonce account stores.
        nonce: Option<String>,
        /// The last block height at which the blockhash is valid.
        last_valid_block_height: Option<Integer>,
        /// The block height now. A blockhash that has expired is refused.
        block_height: Option<Integer>,
        /// The key of the owner, in base58. Without it nothing is signed.
        secret_key: Option<String>,
    }

    /// The wallet context of a recovery on Solana.
    SolanaRecovery: SolanaWallet {
        /// The account that pays for the transaction; the payee if it is missing.
        sender: Option<String>,
        /// The account that paid the rent of the swap of an SPL token, and gets it back.
        rent_sponsor: Option<String>,
        /// The limits of a message of version 1; without them the message is a legacy one, which every wallet can sign.
        config: Option<SolanaConfig>,
        /// Whether a redemption may have a fee so low that nodes may not mine it, although they see its secret; `false` if it is missing.
        accept_low_fee: Option<bool>,
    }

    /// The limits that a Solana message of version 1 contains.
    SolanaConfig {
        /// The most compute units that the transaction may use.
        compute_unit_limit: Integer,
        /// The most bytes of accounts that it may load, at most 64 MiB.
        loaded_accounts_data_size_limit: Integer,
        /// The whole priority fee in lamports; none if it is missing.
        priority_fee: Option<Integer>,
        /// The bytes of the heap, a multiple of 1024 between 32768 and 262144; 32768 if it is missing.
        heap_size: Option<Integer>,
    }
}
