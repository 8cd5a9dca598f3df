//! Tests that a sent transaction that is in no block is signed again, because a single endpoint may have withheld it.

use countersign::recover::{self, Leg, Recovery};
use countersign::starknet::{Felt, InvokeTransaction, Starknet};
use countersign::{BroadcastTransaction, Code, Policy, SecretHash, U256, Unsigned};
use countersign_node::{NodeError, Speed};
use countersign_testkit::recover::read_record;
use countersign_testkit::{key, registry};
use serde_json::json;

use crate::starknet::fake::{Chain, case, hex, nodes};
use crate::starknet::wallet::chain;

pub const SENDER: Felt = Felt::from_hex_unchecked("0xacc");

pub fn redemption() -> Recovery {
    let secret = [0x5a; 32];
    let mut order = case("starknet-to-client-3-1-3").json()["order"].take();
    order["destination_swap"]["secret_hash"] = json!(SecretHash::of(&secret).to_string());
    recover::redeem(&read_record(&order).unwrap(), Leg::Destination, &secret, registry()).unwrap()
}

fn invoke(unsigned: &Unsigned) -> InvokeTransaction {
    let Unsigned::Starknet(order) = unsigned else { panic!("{unsigned:?}") };
    order.payloads().invoke.as_ref().unwrap().invoke.transaction.clone()
}

async fn sent() -> (BroadcastTransaction, InvokeTransaction) {
    let nodes = nodes(chain(), 1);
    let policy = Policy::default();
    let unsigned = nodes.prepare_recovery(&redemption(), "starknet", &hex(SENDER), Speed::Normal, &policy).await.unwrap();
    let transaction = invoke(&unsigned);
    let Unsigned::Starknet(mut unsigned) = unsigned else { panic!("not of Starknet") };
    unsigned.sign(&key::<Starknet>(&case("starknet-public-key"))).unwrap();
    (countersign::Signed::from(unsigned.finish().unwrap()).broadcasts().pop().unwrap(), transaction)
}

async fn replace(chain: Chain, account: Felt, policy: &Policy) -> Result<InvokeTransaction, NodeError> {
    let (kept, _) = sent().await;
    let nodes = nodes(chain, 2);
    let submission = nodes.submission("starknet", &kept.id, &kept.payload).unwrap();
    let replaced = nodes.prepare_replacement(&redemption(), "starknet", &hex(account), &submission, Speed::Normal, policy).await;
    replaced.map(|unsigned| invoke(&unsigned))
}

fn nonce(nonce: &'static str) -> Chain {
    chain().lying(move |_, method, _| (method == "starknet_getNonce").then(|| json!(nonce)))
}

#[tokio::test(start_paused = true)]
async fn a_redemption_that_was_swallowed_is_signed_again_with_the_same_nonce_and_higher_bounds() {
    let (_, before) = sent().await;
    let after = replace(chain(), SENDER, &Policy::default()).await.unwrap();
    assert_eq!((after.nonce, &after.calldata), (before.nonce, &before.calldata));
    // Full blocks are ordered by the tip, and the first redemption offers none.
    assert_eq!((before.tip, u128::from(after.tip)), (0, before.resource_bounds.l2_gas.max_price_per_unit / 10));
    let (old, new) = (before.resource_bounds, after.resource_bounds);
    for (old, new) in [(old.l1_gas, new.l1_gas), (old.l2_gas, new.l2_gas), (old.l1_data_gas, new.l1_data_gas)] {
        assert_eq!(new.max_amount, old.max_amount);
        assert!(new.max_price_per_unit * 10 >= old.max_price_per_unit * 11, "{old:?} {new:?}");
    }
    // The chain's own prices may have risen by more.
    let dear = chain().lying(|_, method, params| {
        (method == "starknet_getBlockWithTxHashes" && params["block_id"] == "latest").then(|| {
            let mut block = chain().reply("a.example", method, params);
            block["l2_gas_price"]["price_in_fri"] = json!("0x5f5e100");
            block
        })
    });
    let after = replace(dear, SENDER, &Policy::default()).await.unwrap();
    assert_eq!(after.resource_bounds.l2_gas.max_price_per_unit, 150_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_nonce_that_was_taken_is_not_used_again() {
    // Another transaction was mined, or this one waits for one that was not: the account's own nonce counts.
    for other in ["0x2b", "0x7"] {
        let (_, before) = sent().await;
        let after = replace(nonce(other), SENDER, &Policy::default()).await.unwrap();
        assert_eq!((after.nonce, after.resource_bounds), (Felt::from_hex_unchecked(other), before.resource_bounds));
    }
    // Another account has nonces of its own.
    let (_, before) = sent().await;
    let after = replace(chain(), Felt::from(0xacd), &Policy::default()).await.unwrap();
    assert_eq!((after.sender_address, after.resource_bounds), (Felt::from(0xacd), before.resource_bounds));
}

#[tokio::test(start_paused = true)]
async fn a_fee_above_the_policy_is_refused_with_what_it_costs() {
    let (_, before) = sent().await;
    let fee = before.resource_bounds.max_fee(0);
    let policy = |gwei: U256| {
        let limit = u64::try_from(gwei).unwrap();
        Policy::from_json(json!({ "starknet_fee": limit }).to_string().as_bytes()).unwrap()
    };
    let giga = U256::from(1_000_000_000);
    let nodes_ = nodes(chain(), 2);
    let low = policy(fee / giga / U256::from(2));
    let first = nodes_.prepare_recovery(&redemption(), "starknet", &hex(SENDER), Speed::Normal, &low).await;
    let NodeError::Refused(refusal) = first.unwrap_err() else { panic!() };
    assert_eq!((refusal.code(), refusal.location()), (Code::GasLimitTooHigh, "/resource_bounds"));
    for part in ["the redemption may cost up to", "FRI", "pays another token", "starknet_fee"] {
        assert!(refusal.message().contains(part), "{refusal}");
    }
    // What was sent cannot be outbid within the policy. Nodes that do not have it are offered what the policy allows.
    for limit in [fee / giga + U256::ONE, fee / giga / U256::from(2)] {
        let offered = replace(chain(), SENDER, &policy(limit)).await.unwrap();
        let max = offered.resource_bounds.max_fee(0);
        assert!(max <= limit * giga && max * U256::from(3) > fee, "{max}");
    }
    assert!(replace(chain(), SENDER, &policy(fee / giga * U256::from(2))).await.is_ok());
    let nodes = nodes(chain(), 1);
    let submission = nodes.submission("starknet", "0x1", "{}").unwrap();
    let wrong = nodes.prepare_replacement(&redemption(), "starknet", &hex(SENDER), &submission, Speed::Normal, &Policy::default()).await;
    assert!(matches!(wrong, Err(NodeError::Refused(_))));
}

/// The secret is out, so a slow redemption is better than none.
#[tokio::test(start_paused = true)]
async fn once_the_secret_is_out_the_limit_of_the_policy_is_paid_and_said() {
    let (kept, before) = sent().await;
    let giga = U256::from(1_000_000_000);
    let fee = before.resource_bounds.max_fee(0);
    let half = u64::try_from(fee / giga / U256::from(2)).unwrap();
    let policy = Policy::from_json(json!({ "starknet_fee": half }).to_string().as_bytes()).unwrap();
    let urgent = nodes(chain(), 2).prepare_urgent(&redemption(), "starknet", &hex(SENDER), Speed::Normal, &policy).await.unwrap();
    let said = urgent.warnings().list().iter().find(|warning| warning.code() == Code::GasLimitTooHigh).unwrap().to_string();
    assert!(said.contains("starknet_fee, so it pays that limit"), "{said}");
    let lowered = invoke(&urgent).resource_bounds;
    let (max, limit) = (lowered.max_fee(0), giga * U256::from(half));
    assert!(max <= limit && max > limit * U256::from(99) / U256::from(100), "{max} {limit}");
    assert_eq!(lowered.l2_gas.max_amount, before.resource_bounds.l2_gas.max_amount);
    // One of three shows a price that leaves nothing for the other resources.
    let liar = chain().lying(|host, method, params| {
        (host == "a.example" && method == "starknet_getBlockWithTxHashes" && params["block_id"] == "latest").then(|| {
            let mut block = chain().reply("a.example", method, params);
            block["l1_gas_price"]["price_in_fri"] = json!("0xffffffffffffffffffff");
            block
        })
    });
    let lied = nodes(liar, 3).prepare_urgent(&redemption(), "starknet", &hex(SENDER), Speed::Normal, &policy).await.unwrap();
    assert_eq!(invoke(&lied).resource_bounds, lowered);
    // The nonce was taken, so that nothing has to be outbid.
    let after = replace(nonce("0x2b"), SENDER, &policy).await.unwrap();
    assert_eq!(after.resource_bounds, lowered);
    // The chain asks for more than the policy allows, and ten percent more than before is within it.
    let dear = chain().lying(|_, method, params| {
        (method == "starknet_getBlockWithTxHashes" && params["block_id"] == "latest").then(|| {
            let mut block = chain().reply("a.example", method, params);
            block["l2_gas_price"]["price_in_fri"] = json!("0x174876e800");
            block
        })
    });
    let limit = u64::try_from(fee / giga).unwrap() * 12 / 10;
    let policy = Policy::from_json(json!({ "starknet_fee": limit }).to_string().as_bytes()).unwrap();
    let nodes = nodes(dear, 2);
    let submission = nodes.submission("starknet", &kept.id, &kept.payload).unwrap();
    let after = nodes.prepare_replacement(&redemption(), "starknet", &hex(SENDER), &submission, Speed::Fast, &policy).await.unwrap();
    let bounds = invoke(&after).resource_bounds;
    assert!(bounds.max_fee(0) <= giga * U256::from(limit));
    assert!(bounds.l2_gas.max_price_per_unit * 10 >= before.resource_bounds.l2_gas.max_price_per_unit * 11, "{bounds:?}");
}
