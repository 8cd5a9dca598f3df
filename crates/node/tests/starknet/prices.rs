//! One endpoint of three lies about the price or the amount of a resource: in any place and for any transaction, the bounds are those that
//! the honest ones lead to.

use countersign::starknet::{ApprovalStep, ResourceBounds, Starknet};
use countersign::{BroadcastTransaction, Policy, U256, Unsigned};
use countersign_node::{NodeError, Nodes, Speed};
use countersign_testkit::key;
use serde_json::{Value, json};

use crate::starknet::fake::{Chain, Front, LATEST, case, hex, nodes};
use crate::starknet::replace::{SENDER, redemption};
use crate::starknet::wallet::{chain, order, recovery};

const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];
const RESOURCES: [&str; 3] = ["l1_gas", "l2_gas", "l1_data_gas"];

type Lie = Box<dyn Fn(&str, &Value) -> Option<Value> + Send + Sync>;

fn lies() -> Vec<(String, Lie)> {
    let mut all: Vec<(String, Lie)> = Vec::new();
    for number in ["0x0", "0x1", "0x2540be400", "0xffffffffffffffff", "0xffffffffffffffffffffffffffffffff"] {
        for resource in RESOURCES {
            let mut block = chain().block(LATEST);
            block[format!("{resource}_price")]["price_in_fri"] = json!(number);
            all.push((
                format!("price of {resource}: {number}"),
                Box::new(move |method, _| (method == "starknet_getBlockWithTxHashes").then(|| block.clone())),
            ));
            all.push((
                format!("amount of {resource}: {number}"),
                Box::new(move |method, params| {
                    (method == "starknet_estimateFee").then(|| {
                        let mut estimate = chain().reply("", method, params);
                        estimate[0][format!("{resource}_consumed")] = json!(number);
                        estimate
                    })
                }),
            ));
        }
    }
    for method in ["starknet_getBlockWithTxHashes", "starknet_estimateFee", "starknet_getNonce"] {
        for answer in [
            Value::Null,
            json!("0x7"),
            json!({"error": {"code": -32_005, "message": "busy"}}),
            json!({"error": {"code": 41, "message": "no"}}),
        ] {
            all.push((format!("{method}: {answer}"), Box::new(move |asked, _| (asked == method).then(|| answer.clone()))));
        }
    }
    all
}

fn connected(liar: Option<usize>, lie: Lie) -> Nodes<Front> {
    let told = move |host: &str, method: &str, params: &Value| {
        (liar.map(|place| HOSTS[place]) == Some(host)).then(|| lie(method, params)).flatten()
    };
    nodes(chain().lying(told), 3)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Payment,
    Redemption,
    Urgent,
    Refund,
    Replacement,
}

async fn bounds(nodes: &Nodes<Front>, stage: Stage, sent: &BroadcastTransaction) -> Result<ResourceBounds, NodeError> {
    let (sender, policy) = (hex(SENDER), Policy::default());
    let unsigned = match stage {
        Stage::Payment => {
            let order = order();
            let calls: Vec<_> = order.deposit().calls(ApprovalStep::AsVerified).into_iter().map(|(_, call)| call).collect();
            let starknet = nodes.starknet("starknet").unwrap();
            return Ok(starknet.execution(order.deposit().sender, &calls, Speed::Normal, &policy).await?.resource_bounds);
        }
        Stage::Redemption => nodes.prepare_recovery(&redemption(), "starknet", &sender, Speed::Normal, &policy).await?,
        Stage::Urgent => nodes.prepare_urgent(&redemption(), "starknet", &sender, Speed::Fast, &policy).await?,
        Stage::Refund => nodes.prepare_recovery(&recovery(None), "starknet", &sender, Speed::Normal, &policy).await?,
        Stage::Replacement => {
            let sent = nodes.submission("starknet", &sent.id, &sent.payload)?;
            nodes.prepare_replacement(&redemption(), "starknet", &sender, &sent, Speed::Fast, &policy).await?
        }
    };
    let Unsigned::Starknet(unsigned) = unsigned else { panic!("not of Starknet") };
    Ok(unsigned.payloads().invoke.as_ref().unwrap().invoke.transaction.resource_bounds)
}

/// A redemption that was sent when everything cost this many times as much.
async fn sent(times: u64) -> BroadcastTransaction {
    let dear = chain().lying(move |_, method, _| {
        (method == "starknet_getBlockWithTxHashes").then(|| {
            let mut block = chain().block(LATEST);
            for (resource, price) in RESOURCES.into_iter().zip([1_000, 3_000, 7]) {
                block[format!("{resource}_price")]["price_in_fri"] = json!(format!("{:#x}", price * times));
            }
            block
        })
    });
    let nodes = nodes(dear, 1);
    let unsigned = nodes.prepare_recovery(&redemption(), "starknet", &hex(SENDER), Speed::Normal, &Policy::default()).await.unwrap();
    let Unsigned::Starknet(mut unsigned) = unsigned else { panic!("not of Starknet") };
    unsigned.sign(&key::<Starknet>(&case("starknet-public-key"))).unwrap();
    countersign::Signed::from(unsigned.finish().unwrap()).broadcasts().pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_bound_is_a_quorums_own_at_every_stage() {
    let kept = sent(1).await;
    for stage in [Stage::Payment, Stage::Redemption, Stage::Urgent, Stage::Refund, Stage::Replacement] {
        let honest = bounds(&connected(None, Box::new(|_, _| None)), stage, &kept).await.unwrap();
        for place in 0..3 {
            for (what, lie) in lies() {
                let lied = bounds(&connected(Some(place), lie), stage, &kept).await;
                assert_eq!(lied.ok(), Some(honest), "{stage:?}, {what}, endpoint {place}");
            }
        }
    }
}

/// Two endpoints, one of which states these prices and amounts.
fn two(liar: usize, number: &'static str, balance: U256) -> Nodes<Front> {
    let told = move |host: &str, method: &str, params: &Value| {
        let mut answer = (HOSTS[liar] == host).then(|| chain().reply(host, method, params))?;
        match method {
            "starknet_getBlockWithTxHashes" => {
                RESOURCES.iter().for_each(|resource| answer[format!("{resource}_price")]["price_in_fri"] = json!(number));
            }
            "starknet_estimateFee" => RESOURCES.iter().for_each(|resource| answer[0][format!("{resource}_consumed")] = json!(number)),
            _ => return None,
        }
        Some(answer)
    };
    nodes(Chain { balance, ..chain().lying(told) }, 2)
}

/// Where one of three endpoints is silent, another one lowers no bound of what makes a secret public.
#[tokio::test(start_paused = true)]
async fn of_two_endpoints_none_lowers_the_bounds_of_a_redemption() {
    let kept = sent(1).await;
    let honest = bounds(&connected(None, Box::new(|_, _| None)), Stage::Redemption, &kept).await.unwrap();
    for liar in 0..2 {
        assert_eq!(bounds(&two(liar, "0x1", chain().balance), Stage::Redemption, &kept).await.unwrap(), honest, "endpoint {liar}");
    }
}

/// Nor does it raise the bounds above what the sender has, once the secret is out.
#[tokio::test(start_paused = true)]
async fn of_two_endpoints_none_stops_a_redemption_whose_secret_is_out() {
    let kept = sent(1).await;
    for stage in [Stage::Urgent, Stage::Replacement] {
        let honest = bounds(&connected(None, Box::new(|_, _| None)), stage, &kept).await.unwrap();
        for liar in 0..2 {
            let poor = two(liar, "0x2540be400", honest.max_fee(10_000) + U256::ONE);
            assert_eq!(bounds(&poor, stage, &kept).await.unwrap(), honest, "{stage:?}, endpoint {liar}");
        }
    }
}

/// Of three endpoints, one is honest and quick, one lies, and one is honest and slow.
#[tokio::test(start_paused = true)]
async fn a_slow_endpoint_decides_between_two_once_the_secret_is_out() {
    let kept = sent(1).await;
    for stage in [Stage::Urgent, Stage::Replacement] {
        let honest = bounds(&connected(None, Box::new(|_, _| None)), stage, &kept).await.unwrap();
        for [liar, slow] in [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]] {
            let mut block = chain().block(LATEST);
            RESOURCES.iter().for_each(|resource| block[format!("{resource}_price")]["price_in_fri"] = json!("0x0"));
            let free = chain()
                .lying(move |host, method, _| (HOSTS[liar] == host && method == "starknet_getBlockWithTxHashes").then(|| block.clone()));
            let mut front = Front::from(free);
            front.slow = Some(HOSTS[slow]);
            assert_eq!(bounds(&nodes(front, 3), stage, &kept).await.unwrap(), honest, "{stage:?}, {liar}, {slow}");
        }
    }
}

/// What was sent at absurd bounds is signed again at what is paid now, and what cannot be afforded falls back to that.
#[tokio::test(start_paused = true)]
async fn raised_bounds_end_at_four_times_the_median() {
    let honest = || connected(None, Box::new(|_, _| None));
    let l2_price = |bounds: ResourceBounds| bounds.l2_gas.max_price_per_unit;
    // Fast prices are twice those of the newest block, and the first offer 1.5 times.
    for (times, price) in [(1, 6_000), (2, 9_900), (5, 24_000), (1_000, 24_000)] {
        assert_eq!(l2_price(bounds(&honest(), Stage::Replacement, &sent(times).await).await.unwrap()), price, "{times}");
    }
    let now = bounds(&honest(), Stage::Urgent, &sent(1).await).await.unwrap();
    let poor = nodes(Chain { balance: now.max_fee(0) + U256::ONE, ..chain() }, 3);
    assert_eq!(bounds(&poor, Stage::Replacement, &sent(5).await).await.unwrap(), now);
}
