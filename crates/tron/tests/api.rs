//! The public API: thread safety, and the re-exported native types.

use countersign_tron::{
    Address, ExternalSignature, FundingPath, Key, Payload, SignedOrder, SignedTronTransaction, TronTransaction, TxContext, UnsignedOrder,
    VerifiedOrder,
};

const fn crosses_threads<T: Send + Sync>() {}

#[test]
fn states_and_keys_cross_threads() {
    crosses_threads::<VerifiedOrder>();
    crosses_threads::<UnsignedOrder>();
    crosses_threads::<SignedOrder>();
    crosses_threads::<(Address, Key, ExternalSignature, Payload, FundingPath<TxContext>)>();
    crosses_threads::<(TronTransaction, SignedTronTransaction)>();
}

#[test]
fn protobuf_comes_with_the_crate() {
    use countersign_tron::prost::Message;
    use countersign_tron::transaction::protocol::Raw;
    assert!(Raw::default().encode_to_vec().is_empty());
}
