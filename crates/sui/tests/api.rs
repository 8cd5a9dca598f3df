//! The public API: thread safety, and the re-exported native types.

use countersign_core::{Code, CreateOrder, Policy, Proposal, RequestedLeg, U256};
use countersign_sui::{Coin, ExternalSignature, Key, SignedOrder, SignedPayloads, Sui, TxContext, Unsigned, UnsignedOrder, VerifiedOrder};
use countersign_testkit::{fixture, registry};

const fn crosses_threads<T: Send + Sync>() {}

#[test]
fn states_and_keys_cross_threads() {
    crosses_threads::<VerifiedOrder>();
    crosses_threads::<UnsignedOrder>();
    crosses_threads::<SignedOrder>();
    crosses_threads::<(Key, TxContext, Coin, Unsigned, SignedPayloads, ExternalSignature)>();
}

#[test]
fn native_types_come_with_the_crate() {
    let address = countersign_sui::sui_sdk_types::Address::new([1; 32]);
    assert_eq!(countersign_sui::address::from_account(&countersign_sui::address::to_account(address)), Some(address));
}

/// An order of another family is refused before its payload is read: the account of an EVM chain is not one of Sui.
#[test]
fn an_order_of_another_family_is_refused() {
    let response = fixture::<Sui>("sui-native").json()["response"].to_string();
    let leg = |asset: &str, amount: u64| {
        RequestedLeg::new(asset.parse().expect("an id"), "0xAE04EfaBe6775956E5BEC687f2B36B2A028cE7eB", U256::from(amount))
    };
    let request = CreateOrder::new(leg("ethereum:usdc", 5_000_000), leg("base:usdc", 1));
    let refusal =
        countersign_sui::verify(Proposal::new(&request, response.as_bytes()), registry(), &Policy::default()).expect_err("of EVM");
    assert_eq!((refusal.code(), refusal.location()), (Code::UnsupportedFamily, "/request/source/asset"));
}
