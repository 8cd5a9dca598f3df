//! Tests that a sent transaction that was not executed is signed again, because a single endpoint may have withheld
//! it.

use countersign::recover::Recovery;
use countersign::sui::sui_sdk_types::GasPayment;
use countersign::sui::{Sui, UnsignedOrder};
use countersign::{BroadcastTransaction, Code, Family, Policy, Role, Unsigned};
use countersign_node::{NodeError, Nodes, Speed};
use countersign_testkit::key;

use crate::sui::fake::{Executed, Ledger, Network, SUI, case, digest_of};
use crate::sui::wallet::{order, recovery, refused, rich};

fn node(change: impl FnOnce(&mut Ledger)) -> Nodes<Network> {
    let simulated = Ok(Executed { success: false, reason: Some("no"), abort: Some(("AtomicSwap", 8)), ..Executed::new(digest_of(7)) });
    let mut ledger = Ledger { simulated, ..rich() };
    change(&mut ledger);
    Network::new(&[ledger]).connect()
}

fn native(unsigned: Unsigned) -> UnsignedOrder {
    let Unsigned::Sui(unsigned) = unsigned else { panic!("{unsigned:?}") };
    unsigned
}

fn account() -> String {
    order().deposit().sender.to_string()
}

async fn sent(nodes: &Nodes<Network>) -> (BroadcastTransaction, GasPayment) {
    let redemption = Recovery::Sui(recovery(Role::Redeem).0);
    let prepared = nodes.prepare_recovery(&redemption, "sui_testnet", &account(), Speed::Normal, &Policy::default()).await.unwrap();
    let mut unsigned = native(prepared);
    let gas = unsigned.payloads().gas_payment.clone();
    unsigned.sign(&key::<Sui>(&case(Family::Sui, "sui-native"))).unwrap();
    let [kept] = countersign::Signed::from(unsigned.finish().unwrap()).broadcasts().try_into().unwrap();
    (kept, gas)
}

async fn replace(nodes: &Nodes<Network>, kept: &BroadcastTransaction, policy: &Policy) -> Result<GasPayment, NodeError> {
    let redemption = Recovery::Sui(recovery(Role::Redeem).0);
    let submission = nodes.submission("sui_testnet", &kept.id, &kept.payload).unwrap();
    let replaced = nodes.prepare_replacement(&redemption, "sui_testnet", &account(), &submission, Speed::Normal, policy).await;
    replaced.map(|unsigned| native(unsigned).payloads().gas_payment.clone())
}

fn ids(gas: &GasPayment) -> Vec<u8> {
    gas.objects.iter().map(|coin| coin.object_id().as_bytes()[0]).collect()
}

#[tokio::test(start_paused = true)]
async fn a_redemption_that_was_swallowed_is_signed_again_with_other_coins_and_a_higher_price() {
    let nodes = node(|_| ());
    let (kept, before) = sent(&nodes).await;
    assert_eq!((before.price, ids(&before)), (602, vec![0x21, 0x22]));
    let after = replace(&nodes, &kept, &Policy::default()).await.unwrap();
    assert_eq!((after.price, ids(&after)), (663, vec![0x23]));
    assert!(after.budget > before.budget);
    // The price of the chain may have risen by more.
    let dear = node(|ledger| ledger.gas_price = 5_000);
    assert_eq!(replace(&dear, &kept, &Policy::default()).await.unwrap().price, 5_500);
}

#[tokio::test(start_paused = true)]
async fn a_sender_without_other_coins_signs_with_the_same_ones() {
    let only = || {
        node(|ledger| {
            ledger.coins.truncate(1);
            ledger.balances = [(SUI.to_owned(), 2_500_000_004)].into();
        })
    };
    let (kept, before) = sent(&only()).await;
    let after = replace(&only(), &kept, &Policy::default()).await.unwrap();
    assert_eq!((after.price, &after.objects), (663, &before.objects));
}

#[tokio::test(start_paused = true)]
async fn a_budget_above_the_policy_is_refused_with_what_it_costs_and_pays() {
    let nodes = node(|_| ());
    let (kept, before) = sent(&nodes).await;
    let limit = |mist: u64| Policy::from_json(format!(r#"{{"sui_gas_budget": {mist}}}"#).as_bytes()).unwrap();
    let redemption = Recovery::Sui(recovery(Role::Redeem).0);
    let first = nodes.prepare_recovery(&redemption, "sui_testnet", &account(), Speed::Normal, &limit(before.budget - 1)).await;
    let error = first.unwrap_err();
    assert_eq!(refused(&error), (Code::GasLimitTooHigh, "/gas_budget"));
    for part in ["the redemption may cost up to 0.028", "MIST", "pays", "sui_gas_budget", "raise the limit of the policy"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    // What was sent cannot be outbid within the policy. Other coins need not outbid it.
    let after = replace(&nodes, &kept, &limit(before.budget)).await.unwrap();
    assert_eq!((after.price, after.budget), (before.price, before.budget));
    let wrong = BroadcastTransaction { id: digest_of(1), ..kept };
    assert_eq!(refused(&replace(&nodes, &wrong, &Policy::default()).await.unwrap_err()), (Code::TransactionMismatch, "/id"));
}

#[tokio::test(start_paused = true)]
async fn once_the_secret_is_out_the_limit_of_the_policy_is_paid_and_said() {
    let redemption = Recovery::Sui(recovery(Role::Redeem).0);
    let dear = node(|ledger| ledger.gas_price = 5_000);
    let limit = |mist: u64| Policy::from_json(format!(r#"{{"sui_gas_budget": {mist}}}"#).as_bytes()).unwrap();
    // At the price for this speed, 5,500, the budget would be 52,500,000.
    let urgent = dear.prepare_urgent(&redemption, "sui_testnet", &account(), Speed::Normal, &limit(51_000_000)).await.unwrap();
    let said = urgent.warnings().list().iter().find(|warning| warning.code() == Code::GasLimitTooHigh).unwrap().to_string();
    assert!(said.contains("sui_gas_budget, so it pays that limit"), "{said}");
    let gas = native(urgent).payloads().gas_payment.clone();
    assert_eq!((gas.price, gas.budget), (5_200, 51_000_000));
    // A transaction below the reference price is never executed.
    let error = dear.prepare_urgent(&redemption, "sui_testnet", &account(), Speed::Normal, &limit(49_999_999)).await.unwrap_err();
    assert_eq!(refused(&error), (Code::GasLimitTooHigh, "/gas_budget"));
}
