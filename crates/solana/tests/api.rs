//! The public API: thread safety, and the re-exported native types.

use countersign_core::{Code, CreateOrder, Policy, Proposal, RequestedLeg, U256};
use countersign_solana::{
    Address, ExternalSignature, FundingPath, Gasless, Key, PriorityFee, SignedOrder, SignedPayloads, Solana, TransactionPayload, TxContext,
    Unsigned, UnsignedOrder, VerifiedOrder,
};
use countersign_testkit::{fixture, registry};

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

/// An order of another family is refused before its payload is read: the account of an EVM chain is not one of Solana.
#[test]
fn an_order_of_another_family_is_refused() {
    let response = fixture::<Solana>("solana-native-legacy").json()["response"].to_string();
    let leg = |asset: &str, amount: u64| {
        RequestedLeg::new(asset.parse().expect("an id"), "0xAE04EfaBe6775956E5BEC687f2B36B2A028cE7eB", U256::from(amount))
    };
    let request = CreateOrder::new(leg("ethereum:usdc", 5_000_000), leg("base:usdc", 1));
    let refusal =
        countersign_solana::verify(Proposal::new(&request, response.as_bytes()), registry(), &Policy::default()).expect_err("of EVM");
    assert_eq!((refusal.code(), refusal.location()), (Code::UnsupportedFamily, "/request/source/asset"));
}
