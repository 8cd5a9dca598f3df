//! Tokens that take a fee, or freeze an account: a payment that could not be redeemed or refunded is not signed.

use countersign::Code;
use countersign::tron::alloy_primitives::Address as AbiAddress;
use countersign::tron::{Address, read};
use countersign_node::NodeError;
use serde_json::json;

use crate::fake::{Lying, log, reverted};
use crate::wallet::{WITHOUT_APPROVAL, order, preflight, tron};

async fn refused(fake: impl Into<crate::fake::Fake>) -> (Code, String) {
    match preflight(WITHOUT_APPROVAL, fake).await.unwrap_err() {
        NodeError::Refused(refusal) => (refusal.code(), refusal.to_string()),
        other => panic!("{other:?}"),
    }
}

/// An answer to transfers of the token by these accounts: they revert.
fn frozen(accounts: &'static [&'static str]) -> crate::fake::Fake {
    let (sender, htlc) = (order(WITHOUT_APPROVAL).deposit().sender, order(WITHOUT_APPROVAL).deposit().initiate.to);
    tron(WITHOUT_APPROVAL).lying(move |_, path, question| {
        let is_transfer = path.ends_with("constantcontract") && question["data"].as_str().unwrap().starts_with("a9059cbb");
        let by = |account: Address| question["owner_address"] == format!("41{}", hex(account.bytes()));
        let is_frozen = accounts.contains(&"htlc") && by(htlc) || accounts.contains(&"sender") && by(sender);
        (is_transfer && is_frozen).then(|| reverted(&[]))
    })
}

fn hex(address: AbiAddress) -> String {
    address.to_string().trim_start_matches("0x").to_lowercase()
}

#[tokio::test]
async fn a_token_that_has_frozen_the_htlc_is_not_paid() {
    let (code, text) = refused(frozen(&["htlc"])).await;
    assert_eq!(code, Code::SimulationReverted);
    assert!(text.contains("/token") && text.contains("does not let the HTLC pay out"), "{text}");
    // A token that refuses every transfer of nothing shows nothing.
    preflight(WITHOUT_APPROVAL, frozen(&["htlc", "sender"])).await.unwrap();
    preflight(WITHOUT_APPROVAL, frozen(&[])).await.unwrap();
}

#[tokio::test]
async fn a_token_that_takes_a_fee_is_not_paid() {
    let order = order(WITHOUT_APPROVAL);
    let deposit = order.deposit();
    let (sender, htlc, amount) = (deposit.sender, deposit.initiate.to, deposit.terms.amount);
    let (token, collector) = (Address::from([0x77; 20]), Address::from([0x66; 20]));
    let transfer = |from: Address, to: Address, amount: countersign::U256| {
        log(token, &[read::TRANSFER, from.bytes().into_word(), to.bytes().into_word()], &amount.to_be_bytes::<32>())
    };
    let fee = countersign::U256::from(3);
    for logs in [
        vec![transfer(sender, htlc, amount - fee), transfer(sender, collector, fee)],
        vec![transfer(sender, htlc, amount), transfer(htlc, collector, fee)],
        vec![transfer(sender, htlc, amount), transfer(sender, collector, fee)],
    ] {
        let simulated = json!({"result": {"result": true}, "energy_used": 1, "constant_result": [""], "logs": logs});
        let (code, text) = refused(crate::fake::Tron { simulated, ..tron(WITHOUT_APPROVAL) }).await;
        assert_eq!(code, Code::SimulationDiffers, "{text}");
    }
}

#[tokio::test]
async fn a_token_that_has_frozen_the_receiver_is_not_paid_for() {
    let receiver = Address::from([0x5a; 20]);
    for is_frozen in [true, false] {
        let fake = tron(WITHOUT_APPROVAL).lying(move |_, path, question| {
            let by_receiver = question["owner_address"] == format!("41{}", hex(receiver.bytes()));
            path.ends_with("constantcontract").then(|| {
                if is_frozen && by_receiver { reverted(&[]) } else { json!({"result": {"result": true}, "constant_result": [""]}) }
            })
        });
        let checked = crate::fake::nodes(fake, 1).check_receiver("tron:usdt", &receiver.to_string()).await;
        match checked {
            Err(NodeError::Refused(refusal)) if is_frozen => assert_eq!(refusal.location(), "/destination"),
            other => assert!(!is_frozen && other.is_ok(), "{other:?}"),
        }
    }
}
