//! Preparing redemptions and refunds on EVM chains: nothing is signed that the sender cannot pay for or that would fail, and no node sees a
//! secret before the redemption is sent.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test ends by panicking"
)]

mod support;

use countersign::evm::alloy_consensus::Transaction as _;
use countersign::evm::alloy_primitives::{Address, U256};
use countersign::evm::recover::{self, Leg};
use countersign::evm::{Calls, Evm};
use countersign::recover::Recovery;
use countersign::{Code, Policy, SecretHash, Unsigned};
use countersign_node::{NodeError, Speed};
use countersign_testkit::recover::record;
use countersign_testkit::registry;
use serde_json::json;
use support::{Chain, SECRET, nodes, terms};

const GWEI: u128 = 1_000_000_000;
const SENDER: Address = Address::repeat_byte(0xa1);
const ORDER: &str = "evm-record-evm-v1";

fn chain() -> Chain {
    Chain::funded(&terms().destination)
}

fn refused(error: &NodeError) -> (Code, &str) {
    match error {
        NodeError::Refused(refusal) => (refusal.code(), refusal.location()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_redemption_is_never_shown_before_it_is_sent() {
    let hash = SecretHash::of(&SECRET).to_string();
    let mut record = record::<Evm>(ORDER, |order| order["source_swap"]["secret_hash"] = hash.into()).unwrap();
    let refusal = recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap_err();
    record.source_swap.swap_id = refusal.expected().unwrap().to_string();
    let redemption = recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap();
    let order = redemption.prepare(SENDER, &Calls::eip1559(1, 30 * GWEI, GWEI)).unwrap();
    let rich = || chain().lying(|_, method, _| (method == "eth_getBalance").then(|| json!("0xde0b6b3a7640000")));
    let nodes = nodes(rich(), 1);
    let preflight = nodes.evm("ethereum").unwrap().preflight(&order).await.unwrap();
    assert_eq!(preflight.gas_used, None);
    let seen = nodes.transport().seen.lock().unwrap();
    assert!(seen.iter().all(|(_, method, _)| method == "eth_chainId" || method == "eth_getBalance"), "{seen:?}");
}

#[tokio::test]
async fn a_sender_that_cannot_pay_the_fee_signs_no_redemption_and_no_refund() {
    let mut record = record::<Evm>(ORDER, |order| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&SECRET).to_string().into();
    })
    .unwrap();
    record.source_swap.swap_id = recover::refund(&record, Leg::Source, registry()).unwrap_err().expected().unwrap().to_string();
    let refund = Recovery::Evm(recover::refund(&record, Leg::Source, registry()).unwrap());
    let redemption = Recovery::Evm(recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap());
    let prepare = async |recovery: &Recovery, balance: U256, status: u8| {
        let chain = chain().lying(move |_, method, _| match method {
            "eth_getBalance" => Some(json!(format!("{balance:#x}"))),
            "eth_simulateV1" => {
                let call = json!({"status": format!("{status:#x}"), "gasUsed": "0x5208", "logs": [], "returnData": "0x"});
                Some(json!([{"calls": [call]}]))
            }
            _ => None,
        });
        let nodes = nodes(chain, 1);
        nodes.prepare_recovery(recovery, "ethereum", &SENDER.to_string(), Speed::Normal, &Policy::default()).await
    };
    for recovery in [&redemption, &refund] {
        let Unsigned::Evm(unsigned) = prepare(recovery, U256::MAX, 1).await.unwrap() else { panic!("not of EVM") };
        let transaction = &unsigned.payloads().calls[0].transaction.transaction;
        let fee = U256::from(transaction.gas_limit()) * U256::from(transaction.max_fee_per_gas());
        assert!(prepare(recovery, fee, 1).await.is_ok());
        assert_eq!(refused(&prepare(recovery, fee - U256::from(1), 1).await.unwrap_err()), (Code::InsufficientFunds, "/balance"));
    }
    // A refund that would fail is not signed. A redemption is not shown to any node.
    assert_eq!(refused(&prepare(&refund, U256::MAX, 0).await.unwrap_err()), (Code::SimulationReverted, "/refund"));
    assert!(prepare(&redemption, U256::MAX, 0).await.is_ok());
}
