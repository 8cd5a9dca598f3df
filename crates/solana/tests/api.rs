//! The public API: thread safety, and the re-exported native types.

use countersign_solana::{
    Address, ExternalSignature, FundingPath, Gasless, Key, PriorityFee, SignedOrder, SignedPayloads, TransactionPayload, TxContext,
    Unsigned, UnsignedOrder, VerifiedOrder,
};

const fn crosses_threads<T: Send + Sync>() {}

#[test]
fn states_and_keys_cross_threads() {
    crosses_threads::<(VerifiedOrder, UnsignedOrder, SignedOrder)>();
    crosses_threads::<(Unsigned, SignedPayloads, TransactionPayload)>();
    crosses_threads::<(Address, Key, ExternalSignature, FundingPath<TxContext>, TxContext, Gasless, PriorityFee)>();
}

#[test]
fn native_types_come_with_the_crate() {
    use countersign_solana::solana_transaction::versioned::VersionedTransaction;
    assert!(VersionedTransaction::default().signatures.is_empty());
}
