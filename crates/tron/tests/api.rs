//! The public surface: states cross threads, and native types come with the crate.

use countersign_core::{Proposed, Signed, Unsigned, Verified};
use countersign_tron::{Address, Key, ExternalSignature, Payload, Tron, Wallet};

const fn crosses_threads<T: Send + Sync>() {}

#[test]
fn states_and_keys_cross_threads() {
    crosses_threads::<Proposed<'_, Tron>>();
    crosses_threads::<Verified<Tron>>();
    crosses_threads::<Unsigned<Tron>>();
    crosses_threads::<Signed<Tron>>();
    crosses_threads::<(Address, Key, ExternalSignature, Payload, Wallet)>();
}

#[test]
fn protobuf_comes_with_the_crate() {
    use countersign_tron::prost::Message;
    use countersign_tron::transaction::protocol::Raw;
    assert!(Raw::default().encode_to_vec().is_empty());
}
