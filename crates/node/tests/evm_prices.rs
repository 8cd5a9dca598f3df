//! One endpoint of three lies about one price: in any place of the list and for any transaction, what is paid is what honest endpoints lead
//! to.
use crate::support;

use std::sync::LazyLock;

use countersign::evm::alloy_consensus::Transaction as _;
use countersign::evm::alloy_primitives::{Address, U256};
use countersign::evm::recover::{self, Leg};
use countersign::evm::{Evm, Fees, TxContext};
use countersign::recover::Recovery;
use countersign::{BroadcastTransaction, Code, Policy, SecretHash, Unsigned, evidence::HtlcTerms};
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes, Speed};
use countersign_testkit::recover::record;
use countersign_testkit::{key, registry, verified};
use serde_json::{Value, json};
use support::{Chain, LATEST, SECRET, case, nodes, terms};

const GWEI: u128 = 1_000_000_000;
const SENDER: Address = Address::repeat_byte(0xa1);
const ORDER: &str = "evm-record-evm-v1";
/// A coin.
const RICH: &str = "0xde0b6b3a7640000";
const COIN: u64 = 1_000_000_000_000_000_000;

/// What an honest endpoint shows: the base fee, the tip of recent blocks, the tip and the price that it asks for. The last one of the three
/// is a little dearer.
#[derive(Debug, Clone, Copy)]
struct World {
    base: u128,
    tip: u128,
    asked_tip: Option<u128>,
    gas_price: u128,
}

/// An ordinary chain, one whose base fee is 0 and whose blocks carry no tips, and an idle one.
const WORLDS: [World; 3] = [
    World { base: 10 * GWEI, tip: GWEI, asked_tip: Some(GWEI), gas_price: 11 * GWEI },
    World { base: 0, tip: 0, asked_tip: None, gas_price: GWEI / 10 },
    World { base: GWEI / 100, tip: 0, asked_tip: Some(GWEI / 1_000), gas_price: GWEI / 50 },
];

/// The newest block, but for its base fee.
static BLOCK: LazyLock<Value> = LazyLock::new(|| Chain::funded(&TERMS).block(LATEST));
static TERMS: LazyLock<HtlcTerms> = LazyLock::new(|| terms().destination);
static RECOVERIES: LazyLock<[Recovery; 2]> = LazyLock::new(recoveries);

impl World {
    /// The least tip with which nodes relay a transaction.
    fn least_tip(self) -> u128 {
        self.asked_tip.unwrap_or(self.gas_price - self.base).max(if self.base == 0 { self.gas_price } else { 0 })
    }

    fn answer(self, method: &str) -> Option<Value> {
        let hex = |number: u128| json!(format!("{number:#x}"));
        Some(match method {
            "eth_getBlockByNumber" => {
                let mut block = BLOCK.clone();
                block["baseFeePerGas"] = hex(self.base);
                block
            }
            "eth_feeHistory" => {
                let tips = [self.tip; 3].map(hex);
                json!({"baseFeePerGas": [hex(self.base), hex(self.base)], "reward": [tips]})
            }
            "eth_gasPrice" => hex(self.gas_price),
            "eth_maxPriorityFeePerGas" => self.asked_tip.map_or_else(|| failure(-32_601), hex),
            _ => return None,
        })
    }
}

fn failure(code: i64) -> Value {
    json!({"error": {"code": code, "message": "no"}})
}

/// The parts of an endpoint's prices that can be lied about.
const COMPONENTS: [(&str, &str); 6] = [
    ("the base fee of the header", "eth_getBlockByNumber"),
    ("the base fee of the next block", "eth_feeHistory"),
    ("the tips", "eth_feeHistory"),
    ("the base fee, and no tips", "eth_feeHistory"),
    ("the price", "eth_gasPrice"),
    ("the tip that is asked for", "eth_maxPriorityFeePerGas"),
];

/// Returns a liar's answer to a method, or `None` where it is honest.
type Lie = Box<dyn Fn(&str) -> Option<Value> + Send + Sync>;

/// The lies about one component: numbers, an error, and nothing.
fn lies(world: World) -> Vec<(String, Lie)> {
    let mut all: Vec<(String, Lie)> = Vec::new();
    for (component, method) in COMPONENTS {
        // Nothing, almost nothing, hardly more than the others, the price of another chain, and the greatest number.
        for number in [0, 1, world.base + world.base / 20 + 1, 900 * GWEI, u128::MAX] {
            let number = json!(format!("{number:#x}"));
            all.push((
                format!("{component}: {number}"),
                Box::new(move |asked| {
                    let mut honest = world.answer(asked).filter(|_| asked == method)?;
                    match component {
                        "the base fee of the header" => honest["baseFeePerGas"] = number.clone(),
                        "the base fee of the next block" => honest["baseFeePerGas"] = json!([number, number]),
                        "the tips" => honest["reward"] = json!([[number, number, number]]),
                        "the base fee, and no tips" => {
                            honest = json!({"baseFeePerGas": [number, number], "reward": [["0x0", "0x0", "0x0"]]})
                        }
                        _ => honest = number.clone(),
                    }
                    Some(honest)
                }),
            ));
        }
        for lie in [Value::Null, failure(-32_005), failure(-32_601)] {
            all.push((format!("{component}: {lie}"), Box::new(move |asked| (asked == method).then(|| lie.clone()))));
        }
    }
    let mut legacy = world.answer("eth_getBlockByNumber").unwrap();
    legacy["baseFeePerGas"] = Value::Null;
    all.push(("no base fee at all".to_owned(), Box::new(move |asked| (asked == "eth_getBlockByNumber").then(|| legacy.clone()))));
    all
}

/// Three endpoints, one of which may lie.
fn connected(
    world: World,
    liar: Option<usize>,
    lie: impl Fn(&str) -> Option<Value> + Send + Sync + 'static,
    coins: &'static str,
) -> Nodes<Chain> {
    told(world, move |place, method| if Some(place) == liar { lie(method) } else { None }, coins)
}

/// Three endpoints. `lie` gets the place of one.
fn told(world: World, lie: impl Fn(usize, &str) -> Option<Value> + Send + Sync + 'static, coins: &'static str) -> Nodes<Chain> {
    let hosts = ["a.example", "b.example", "c.example"];
    let chain = Chain::funded(&TERMS).lying(move |host, method, _| {
        let place = hosts.iter().position(|other| *other == host).unwrap();
        lie(place, method).or_else(|| match method {
            "eth_getBalance" => Some(json!(coins)),
            "eth_getTransactionCount" => Some(json!("0x2a")),
            "eth_simulateV1" => {
                let call = json!({"status": "0x1", "gasUsed": "0x5208", "logs": [], "returnData": "0x"});
                Some(json!([{"calls": [call]}]))
            }
            _ => world.answer(method),
        })
    });
    nodes(chain, 3)
}

/// The transactions that are prepared.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Payment,
    Redemption,
    Urgent,
    Refund,
    Replacement(TooHigh),
}

/// What the transaction offered that is replaced, beside what the chain asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TooHigh {
    Nothing,
    Cap,
    Both,
}

const STAGES: [Stage; 7] = [
    Stage::Payment,
    Stage::Redemption,
    Stage::Urgent,
    Stage::Refund,
    Stage::Replacement(TooHigh::Nothing),
    Stage::Replacement(TooHigh::Cap),
    Stage::Replacement(TooHigh::Both),
];

/// A redemption and a refund of the same leg.
fn recoveries() -> [Recovery; 2] {
    recoveries_on("ethereum", "ethereum:usdc")
}

fn recoveries_on(chain: &str, asset: &str) -> [Recovery; 2] {
    let mut record = record::<Evm>(ORDER, |order| {
        let swap = &mut order["source_swap"];
        swap["secret_hash"] = SecretHash::of(&SECRET).to_string().into();
        (swap["chain"], swap["asset"]) = (chain.into(), asset.into());
    })
    .unwrap();
    record.source_swap.swap_id = recover::refund(&record, Leg::Source, registry()).unwrap_err().expected().unwrap().to_string();
    let redemption = recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap();
    [Recovery::Evm(redemption), Recovery::Evm(recover::refund(&record, Leg::Source, registry()).unwrap())]
}

/// A signed refund with these fees, and its sender.
fn sent(refund: &Recovery, cap: u128, tip: u128) -> (BroadcastTransaction, String) {
    let case = case("evm-chain-id-integer");
    let order = verified::<Evm>(&case);
    let account = order.deposit().sender;
    let Recovery::Evm(refund) = refund else { panic!("not of EVM") };
    let mut unsigned = refund.prepare(TxContext::eip1559(42, cap, tip).sent_by(account)).unwrap();
    unsigned.sign(&key::<Evm>(&case)).unwrap();
    let [kept] = countersign::Signed::from(unsigned.finish().unwrap()).broadcasts().try_into().unwrap();
    (kept, account.to_string())
}

/// Returns the fee cap and the tip.
async fn offered(nodes: &Nodes<Chain>, world: World, stage: Stage) -> Result<(u128, u128), NodeError> {
    let ([redemption, refund], policy, sender) = (&*RECOVERIES, Policy::default(), SENDER.to_string());
    let unsigned = match stage {
        Stage::Payment => {
            return Ok(match nodes.evm("ethereum").unwrap().calls(SENDER, Speed::Normal, &policy).await?.fees {
                Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas } => (max_fee_per_gas, max_priority_fee_per_gas),
                other => panic!("{other:?}"),
            });
        }
        Stage::Redemption => nodes.prepare_recovery(redemption, "ethereum", &sender, Speed::Normal, &policy).await?,
        Stage::Urgent => nodes.prepare_urgent(redemption, "ethereum", &sender, Speed::Fast, &policy).await?,
        Stage::Refund => nodes.prepare_recovery(refund, "ethereum", &sender, Speed::Normal, &policy).await?,
        Stage::Replacement(too_high) => {
            let tip = world.least_tip();
            let (cap, tip) = match too_high {
                TooHigh::Nothing => (2 * world.base + tip, tip),
                TooHigh::Cap => (960 * GWEI, 1),
                TooHigh::Both => (960 * GWEI, 900 * GWEI),
            };
            let (kept, account) = sent(refund, cap, tip);
            let submission = nodes.submission("ethereum", &kept.id, &kept.payload).unwrap();
            nodes.prepare_replacement(redemption, "ethereum", &account, &submission, Speed::Fast, &policy).await?
        }
    };
    let Unsigned::Evm(unsigned) = unsigned else { panic!("not of EVM") };
    let transaction = &unsigned.payloads().calls[0].transaction.transaction;
    Ok((transaction.max_fee_per_gas(), transaction.max_priority_fee_per_gas().unwrap()))
}

#[tokio::test(start_paused = true)]
async fn each_price_is_a_quorums_own_at_every_stage() {
    for world in WORLDS {
        for stage in STAGES {
            let (cap, tip) = offered(&connected(world, None, |_| None, RICH), world, stage).await.unwrap();
            assert!(tip >= world.least_tip(), "{world:?} {stage:?}: {tip}");
            // What is paid: at most twice what the chain asks for, and four times if it is overdue.
            let (paid, asked) = (cap.min(world.base + tip), world.base + world.tip.max(world.least_tip()));
            let most = if matches!(stage, Stage::Replacement(_)) { 4 } else { 2 };
            assert!(paid <= most * asked, "{world:?} {stage:?}: {paid} of {asked}");
            for (lie, tell) in lies(world) {
                let tell = std::sync::Arc::new(tell);
                for place in 0..3 {
                    let tell = std::sync::Arc::clone(&tell);
                    let nodes = connected(world, Some(place), move |method| tell(method), RICH);
                    let lied = offered(&nodes, world, stage).await;
                    assert_eq!(lied.ok(), Some((cap, tip)), "{world:?} {stage:?}, {lie}, endpoint {place}");
                }
            }
        }
    }
}

/// One endpoint limits requests, and another one shows prices of nothing: what makes the secret public is not offered at the liar's price,
/// which honest nodes refuse. A payment and a refund can wait to be raised.
#[tokio::test(start_paused = true)]
async fn a_liar_does_not_price_a_redemption_beside_an_endpoint_that_is_silent() {
    const FAILED: [&[&str]; 3] = [&["eth_gasPrice", "eth_maxPriorityFeePerGas"], &["eth_gasPrice"], &["eth_maxPriorityFeePerGas"]];
    for world in WORLDS {
        let (cap, tip) = offered(&connected(world, None, |_| None, RICH), world, Stage::Redemption).await.unwrap();
        for (liar, silent) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            for failed in FAILED {
                let lie = move |place, method: &str| match place {
                    _ if place == liar => free(method),
                    _ if place == silent && failed.contains(&method) => Some(failure(-32_005)),
                    _ => None,
                };
                let found = offered(&told(world, lie, RICH), world, Stage::Redemption).await;
                assert_eq!(found.ok(), Some((cap, tip)), "{world:?} {liar} {silent} {failed:?}");
            }
        }
    }
}

/// Prices of nothing.
fn free(method: &str) -> Option<Value> {
    match method {
        "eth_getBlockByNumber" => {
            let mut block = BLOCK.clone();
            block["baseFeePerGas"] = json!("0x0");
            Some(block)
        }
        "eth_feeHistory" => Some(json!({"baseFeePerGas": ["0x0", "0x0"], "reward": [["0x0", "0x0", "0x0"]]})),
        "eth_gasPrice" | "eth_maxPriorityFeePerGas" => Some(json!("0x0")),
        _ => None,
    }
}

/// The price of a liar asks for coins that the sender does not have, at no stage.
#[tokio::test(start_paused = true)]
async fn a_liar_asks_for_no_coins_that_the_sender_does_not_have() {
    let world = WORLDS[0];
    // 300,000 gas at 42 gwei is 0.0126 coins. The sender has 0.05.
    let coins = "0xb1a2bc2ec50000";
    let lie = |method: &str| match method {
        "eth_feeHistory" => Some(json!({"baseFeePerGas": ["0x1"], "reward": [["0xe8990a4600", "0xe8990a4600", "0xe8990a4600"]]})),
        _ => None,
    };
    for stage in STAGES {
        for place in 0..3 {
            let found = offered(&connected(world, Some(place), lie, coins), world, stage).await;
            assert!(found.is_ok(), "{stage:?} {place}: {found:?}");
        }
    }
    // What a sender cannot afford falls back to what is paid now.
    let poor = connected(world, None, |_| None, "0x2386f26fc10000");
    let (cap, tip) = offered(&poor, world, Stage::Replacement(TooHigh::Cap)).await.unwrap();
    assert_eq!((cap, tip), (21 * GWEI, GWEI));
    let nothing = connected(world, None, |_| None, "0x1");
    let Err(NodeError::Refused(refusal)) = offered(&nothing, world, Stage::Replacement(TooHigh::Cap)).await else { panic!() };
    assert_eq!(refusal.code(), Code::InsufficientFunds);
}

/// After a bid that was far too high, an offer still makes sense: nodes without that bid accept the current price.
#[tokio::test(start_paused = true)]
async fn a_bid_that_was_too_high_can_be_replaced() {
    let world = WORLDS[0];
    let honest = || connected(world, None, |_| None, RICH);
    // 960 gwei and ten percent are above the ceiling of 1,000 gwei.
    assert_eq!(offered(&honest(), world, Stage::Replacement(TooHigh::Cap)).await.unwrap(), (4 * 21 * GWEI, GWEI));
    assert_eq!(offered(&honest(), world, Stage::Replacement(TooHigh::Both)).await.unwrap(), (4 * 21 * GWEI, 4 * GWEI));
}

/// The word for each number that an Arbitrum node returns when it states the gas for data.
fn stated(gas: u64) -> Value {
    json!(format!("0x{gas:064x}{:064x}{:064x}", 7, 9))
}

/// A rate limit.
fn limited() -> Value {
    failure(-32_005)
}

/// Three endpoints of Arbitrum, which answer the question for the gas of a redemption's data so. The secret is not in that question.
fn arbitrum(answers: &[Value; 3], coins: U256) -> Nodes<Chain> {
    let (answers, hosts) = (answers.clone(), ["a.example", "b.example", "c.example"]);
    let chain = Chain::funded(&TERMS).lying(move |host, method, params| match method {
        "eth_chainId" => Some(json!("0xa4b1")),
        "eth_getBalance" => Some(json!(coins)),
        "eth_getTransactionCount" => Some(json!("0x2a")),
        "eth_simulateV1" => Some(json!([{"calls": [{"status": "0x1", "gasUsed": "0x5208", "logs": [], "returnData": "0x"}]}])),
        "eth_call" if params[0]["to"].as_str()?.eq_ignore_ascii_case("0x00000000000000000000000000000000000000c8") => {
            let data = params[0]["data"].as_str()?;
            assert!(data.starts_with("0x77d488a2") && !data.contains(&hex::encode(SECRET)), "{data}");
            Some(answers[hosts.iter().position(|other| *other == host)?].clone())
        }
        _ => WORLDS[2].answer(method),
    });
    let all = hosts.iter().map(|host| Endpoint::parse(&format!("https://{host}")).unwrap()).collect();
    Nodes::new(chain, NodeConfig::new().with("arbitrum", Endpoints::new(all).unwrap()), registry())
}

/// Returns the gas limit and the fee cap.
fn limit(unsigned: Result<Unsigned, NodeError>) -> Result<(u64, U256), &'static str> {
    match unsigned {
        Ok(Unsigned::Evm(unsigned)) => {
            let transaction = &unsigned.payloads().calls[0].transaction.transaction;
            Ok((transaction.gas_limit(), U256::from(transaction.max_fee_per_gas())))
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.code().name()),
    }
}

/// What the endpoints state of the gas for data, and the gas limit of a transaction that makes a secret public and of one that does not.
fn data_gas() -> [([Value; 3], Option<u64>, u64); 8] {
    [
        ([stated(120_000), stated(120_000), stated(120_000)], Some(540_000), 540_000),
        // One endpoint lies, and one lies while another one is silent.
        ([stated(120_000), stated(0), stated(130_000)], Some(540_000), 540_000),
        ([stated(u64::MAX), stated(120_000), stated(130_000)], Some(560_000), 560_000),
        ([stated(120_000), stated(0), limited()], Some(540_000), 540_000),
        // A chain that has no such gas.
        ([json!("0x"), json!("0x"), json!("0x")], Some(300_000), 300_000),
        // Too few endpoints state it.
        ([limited(), limited(), stated(120_000)], None, 2_300_000),
        // Above the limit of the policy.
        ([stated(20_000_000), stated(20_000_000), stated(0)], None, 30_000_000),
        ([stated(u64::MAX), stated(120_000), limited()], None, 30_000_000),
    ]
}

/// On Arbitrum a redemption pays for its data as gas: what the endpoints state of it is a part of the limit, twice.
#[tokio::test(start_paused = true)]
async fn a_redemption_on_arbitrum_has_the_gas_for_its_data() {
    let [redemption, _] = recoveries_on("arbitrum", "arbitrum:wbtc");
    let (sender, policy) = (SENDER.to_string(), Policy::default());
    for (answers, expected, otherwise) in data_gas() {
        let nodes = arbitrum(&answers, U256::from(COIN));
        let found = limit(nodes.prepare_recovery(&redemption, "arbitrum", &sender, Speed::Normal, &policy).await);
        assert_eq!(found.ok().map(|(gas, _)| gas), expected, "{answers:?}");
        // Once the secret is out, what is not known does not stand before it.
        let urgent = limit(nodes.prepare_urgent(&redemption, "arbitrum", &sender, Speed::Fast, &policy).await);
        assert_eq!(urgent.unwrap().0, otherwise, "{answers:?}");
    }
}

/// A refund reveals nothing, so what is not known of the gas for its data does not stand before it, and a replacement has that gas, too.
#[tokio::test(start_paused = true)]
async fn a_refund_on_arbitrum_has_the_gas_for_its_data() {
    let [_, refund] = recoveries_on("arbitrum", "arbitrum:wbtc");
    let ((kept, account), policy) = (sent(&refund, GWEI, 1), Policy::default());
    for (answers, _, expected) in data_gas() {
        let nodes = arbitrum(&answers, U256::from(COIN));
        let refunded = limit(nodes.prepare_recovery(&refund, "arbitrum", &account, Speed::Normal, &policy).await);
        assert_eq!(refunded.unwrap().0, expected, "{answers:?}");
        let submission = nodes.submission("arbitrum", &kept.id, &kept.payload).unwrap();
        let replaced = nodes.prepare_replacement(&refund, "arbitrum", &account, &submission, Speed::Fast, &policy).await;
        assert_eq!(limit(replaced).unwrap().0, expected, "{answers:?}");
    }
}

/// A sender who cannot pay for all of the gas at a higher price has as much of it as its coins pay for at the lower one.
#[tokio::test(start_paused = true)]
async fn a_replacement_on_arbitrum_has_gas_rather_than_a_higher_price() {
    let [_, refund] = recoveries_on("arbitrum", "arbitrum:wbtc");
    let ((kept, account), policy) = (sent(&refund, GWEI, 1), Policy::default());
    for (answers, _, most) in data_gas().into_iter().filter(|(.., most)| *most > 300_000) {
        let replaced = async |coins: U256| {
            let nodes = arbitrum(&answers, coins);
            let submission = nodes.submission("arbitrum", &kept.id, &kept.payload).unwrap();
            limit(nodes.prepare_replacement(&refund, "arbitrum", &account, &submission, Speed::Fast, &policy).await)
        };
        let (_, higher) = replaced(U256::from(COIN)).await.unwrap();
        let afresh = arbitrum(&answers, U256::from(COIN)).prepare_recovery(&refund, "arbitrum", &account, Speed::Fast, &policy).await;
        let (_, cap) = limit(afresh).unwrap();
        assert!(higher > cap, "{higher}, {cap}");
        for gas in [300_000, most - 1] {
            assert_eq!(replaced(cap * U256::from(gas)).await, Ok((gas, cap)), "{answers:?}");
        }
    }
}

/// The owner was asked before paying for the coins of the gas that was stated then. If more is stated once the secret is out, the redemption
/// has the highest limit that its sender can pay.
#[tokio::test(start_paused = true)]
async fn an_urgent_redemption_on_arbitrum_takes_the_gas_that_its_sender_can_pay() {
    let [redemption, refund] = recoveries_on("arbitrum", "arbitrum:wbtc");
    let (sender, policy) = (SENDER.to_string(), Policy::default());
    for (answers, _, most) in data_gas().into_iter().filter(|(.., most)| *most > 300_000) {
        let prepared = async |coins: U256, recovery: &Recovery, is_urgent: bool| {
            let nodes = arbitrum(&answers, coins);
            limit(match is_urgent {
                true => nodes.prepare_urgent(recovery, "arbitrum", &sender, Speed::Normal, &policy).await,
                false => nodes.prepare_recovery(recovery, "arbitrum", &sender, Speed::Normal, &policy).await,
            })
        };
        for (recovery, is_urgent) in [(&redemption, true), (&refund, false)] {
            let (_, cap) = prepared(U256::from(COIN), recovery, is_urgent).await.unwrap();
            for gas in [300_000, 300_001, most - 1, most] {
                assert_eq!(prepared(cap * U256::from(gas), recovery, is_urgent).await, Ok((gas, cap)), "{answers:?}");
            }
            let short = prepared(cap * U256::from(300_000) - U256::from(1), recovery, is_urgent).await;
            assert_eq!(short, Err("insufficient_funds"), "{answers:?}");
            // What makes the secret public has all of its gas, or waits.
            assert!(prepared(cap * U256::from(most) - U256::from(1), &redemption, false).await.is_err(), "{answers:?}");
        }
    }
}

/// One endpoint is silent, and another one lies about the gas for data.
#[tokio::test(start_paused = true)]
async fn a_high_gas_for_data_stops_no_redemption_whose_secret_is_out() {
    let [redemption, refund] = recoveries_on("arbitrum", "arbitrum:wbtc");
    let (sender, policy) = (SENDER.to_string(), Policy::default());
    for lie in [1_000_000, 14_000_000, u64::MAX] {
        for answers in [[stated(120_000), stated(lie), limited()], [limited(), stated(lie), stated(120_000)]] {
            // Enough for three times the gas that is needed, at a price above that of a fast transaction.
            let nodes = arbitrum(&answers, U256::from(3 * 540_000) * U256::from(GWEI / 40));
            let urgent = limit(nodes.prepare_urgent(&redemption, "arbitrum", &sender, Speed::Fast, &policy).await);
            assert!(urgent.is_ok_and(|(gas, _)| gas >= 540_000), "{answers:?}: {urgent:?}");
            let refunded = limit(nodes.prepare_recovery(&refund, "arbitrum", &sender, Speed::Normal, &policy).await);
            assert!(refunded.is_ok_and(|(gas, _)| gas >= 540_000), "{answers:?}: {refunded:?}");
        }
    }
}
