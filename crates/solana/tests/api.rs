//! The public surface: states cross threads, and native types come with the crate.

use countersign_core::{Proposed, Signed, Unsigned, Verified};
use countersign_solana::{Address, Key, ExternalSignature, Payload, Solana, Wallet};

const fn crosses_threads<T: Send + Sync>() {}

#[test]
fn states_and_keys_cross_threads() {
    crosses_threads::<Proposed<'_, Solana>>();
    crosses_threads::<Verified<Solana>>();
    crosses_threads::<Unsigned<Solana>>();
    crosses_threads::<Signed<Solana>>();
    crosses_threads::<(Address, Key, ExternalSignature, Payload, Wallet)>();
}

#[test]
fn native_types_come_with_the_crate() {
    use countersign_solana::solana_transaction::versioned::VersionedTransaction;
    assert!(VersionedTransaction::default().signatures.is_empty());
}
