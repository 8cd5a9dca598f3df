//! Tests the preconditions on an EVM chain for paying an order, and for sending its secret. A quorum decides each,
//! and only an answer counts as a yes.
use crate::support;

use countersign::evm::address::from_account;
use countersign::evm::alloy_primitives::Address;
use countersign::{
    Code, OrderRecord, Policy, Registry, U256,
    chains::{Finality, FinalityRule},
    evidence::{Precondition, Stage},
    wire::RequestedLeg,
};
use countersign_node::{Endpoint, Endpoints, Ends, NodeConfig, Nodes, Preconditions, Speed};
use countersign_testkit::{registry, registry_json};
use serde_json::{Value, json};
use support::{Chain, nodes, terms};

const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];

/// The record of an order whose destination is USDC on Ethereum, or ETH with `is_native`.
fn record(is_native: bool) -> OrderRecord {
    let case = support::case("evm-record-evm-v2");
    let value = countersign::json::parse(case.input.as_bytes()).unwrap();
    let proposal = countersign_json::line::Case::from_value(&value).unwrap().proposal().unwrap();
    let mut record = countersign::verify_record(proposal, registry(), &Policy::default()).unwrap().record;
    record.destination_swap.asset = if is_native { "ethereum:eth" } else { "ethereum:usdc" }.parse().unwrap();
    record.destination_swap.chain = "ethereum".to_owned();
    record.destination_swap.redeemer = RECEIVER.to_string();
    record
}

const RECEIVER: Address = Address::repeat_byte(0x5a);

/// What a node without faults answers to the questions of these tests.
fn honest(method: &str, params: &Value) -> Option<Value> {
    let word = |number: u64| json!(format!("{number:#066x}"));
    match method {
        "eth_getCode" => Some(json!("0x")),
        "eth_getBalance" => Some(json!("0xde0b6b3a7640000")),
        "eth_call" => Some(match params[0]["data"].as_str().map(|data| &data[..10]) {
            Some("0x313ce567") => word(6),
            Some("0x5c975abb") => json!({"error": {"code": 3, "message": "execution reverted"}}),
            _ => json!("0x"),
        }),
        _ => None,
    }
}

/// A chain of which these hosts answer otherwise.
fn chain(hosts: &'static [&'static str], lie: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static) -> Chain {
    Chain::funded(&terms().destination).lying(move |host, method, params| {
        let lied = if hosts.contains(&host) { lie(method, params) } else { None };
        lied.or_else(|| honest(method, params))
    })
}

async fn ask(chain: Chain, is_native: bool, stage: Stage, redeemer: Option<&str>) -> Preconditions {
    let (record, policy) = (record(is_native), Policy::default());
    let ends = Ends::of_record(&record, registry()).redeemed_by(redeemer);
    nodes(chain, 3).preconditions(&ends, stage, Speed::Normal, &policy).await
}

fn unmet(found: &Preconditions) -> Vec<(Precondition, &'static str)> {
    found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect()
}

fn reverted() -> Value {
    json!({"error": {"code": 3, "message": "execution reverted: Pausable: paused"}})
}

fn busy() -> Value {
    json!({"error": {"code": -32_005, "message": "daily request count exceeded, request rate limited"}})
}

fn selector(params: &Value) -> String {
    params[0]["data"].as_str().unwrap_or_default().chars().take(10).collect()
}

#[tokio::test(start_paused = true)]
async fn everything_holds_on_an_honest_chain() {
    for is_native in [false, true] {
        for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
            let found = ask(chain(&[], |_, _| None), is_native, stage, Some(&RECEIVER.to_string())).await;
            assert_eq!(unmet(&found), [], "{is_native} {stage:?}: {:?}", found.unmet);
        }
    }
}

/// Nothing says what a token is worth, so the owner hears before paying that finality does not grow with it, and what is at stake.
#[tokio::test(start_paused = true)]
async fn finality_that_does_not_grow_is_said_with_what_is_at_stake() {
    for (is_native, stage, is_said) in
        [(false, Stage::BeforePaying, true), (true, Stage::BeforePaying, false), (false, Stage::BeforeSecret, false)]
    {
        let found = ask(chain(&[], |_, _| None), is_native, stage, None).await;
        let said: Vec<_> = found.warnings.iter().filter(|(code, _)| *code == Code::FinalityIgnoresValue).collect();
        assert_eq!(said.len(), usize::from(is_said), "{is_native} {stage:?}");
        if let Some((_, said)) = said.first() {
            let payout = record(is_native).destination_swap.amount;
            assert!(said.contains(&format!("({payout} base units) counts as made once it is safe")), "{said}");
        }
    }
}

/// A warning that comes from the chains or their endpoints is refused like any other, before the payment and never after it.
#[tokio::test(start_paused = true)]
async fn a_refused_warning_that_comes_from_a_chain_stops_the_payment() {
    let record = record(false);
    let ends = Ends::of_record(&record, registry());
    for (code, count, stage, expected) in [
        (Code::FinalityIgnoresValue, 3, Stage::BeforePaying, &[(Precondition::FinalityMark, "warning_refused")][..]),
        (Code::FinalityIgnoresValue, 3, Stage::BeforeSecret, &[]),
        (Code::SingleProvider, 3, Stage::BeforePaying, &[]),
        (Code::SingleProvider, 1, Stage::BeforePaying, &[(Precondition::KnownChains, "warning_refused")]),
    ] {
        let policy = Policy::default().refusing(code);
        let found = nodes(chain(&[], |_, _| None), count).preconditions(&ends, stage, Speed::Normal, &policy).await;
        assert_eq!(unmet(&found), expected, "{code} {count}");
    }
}

/// A token that is paused after the payment reverts every transfer, also that of nothing. The HTLC's own payment shows it.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_paused_holds_the_secret_back() {
    let paused = |method: &str, params: &Value| (method == "eth_call" && selector(params) == "0xa9059cbb").then(reverted);
    let found = ask(chain(&HOSTS, paused), false, Stage::BeforeSecret, None).await;
    assert_eq!(unmet(&found), [(Precondition::Receiver, "receiver_not_payable")]);
    // One liar of three, in any place, neither opens nor closes it.
    for host in [&["a.example"], &["b.example"], &["c.example"]] {
        assert_eq!(unmet(&ask(chain(host, paused), false, Stage::BeforeSecret, None).await), []);
    }
    for hosts in [&["a.example", "b.example"], &["a.example", "c.example"], &["b.example", "c.example"]] {
        let found = ask(chain(hosts, paused), false, Stage::BeforeSecret, None).await;
        assert_eq!(unmet(&found), [(Precondition::Receiver, "receiver_not_payable")]);
    }
    // Before the payment, the token says so itself.
    let says =
        |method: &str, params: &Value| (method == "eth_call" && selector(params) == "0x5c975abb").then(|| json!(format!("{:#066x}", 1)));
    let found = ask(chain(&HOSTS, says), false, Stage::BeforePaying, None).await;
    assert_eq!(unmet(&found), [(Precondition::Receiver, "receiver_not_payable")]);
}

/// A token that has frozen the HTLC of the destination never pays out. It refuses every transfer by or to the HTLC, also that of the HTLC to
/// itself, and none of others.
#[tokio::test(start_paused = true)]
async fn a_destination_whose_htlc_is_frozen_is_not_paid_for() {
    let htlc = format!("{:x}", from_account(registry().asset("ethereum:usdc").unwrap().htlc.as_ref().unwrap()).unwrap());
    let frozen = move |method: &str, params: &Value| {
        let call = params[0].to_string().to_lowercase();
        (method == "eth_call" && selector(params) == "0xa9059cbb" && call.contains(htlc.trim_start_matches("0x"))).then(reverted)
    };
    for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
        for (hosts, expected) in [
            (&HOSTS[..], &[(Precondition::Receiver, "receiver_not_payable")][..]),
            (&HOSTS[..2], &[(Precondition::Receiver, "receiver_not_payable")]),
            (&HOSTS[..1], &[]),
        ] {
            let hosts: &'static [&'static str] = Box::leak(hosts.to_vec().into_boxed_slice());
            assert_eq!(unmet(&ask(chain(hosts, frozen.clone()), false, stage, None).await), expected, "{stage:?} {hosts:?}");
        }
    }
}

/// Two endpoints that limit requests, or fail in any other way, say nothing. With the answer of the third alone nothing is paid, and no
/// secret leaves.
#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_no_yes() {
    for error in [
        busy(),
        json!({"error": {"code": 429, "message": "Too Many Requests"}}),
        json!({"error": {"code": -32_603, "message": "internal"}}),
    ] {
        for hosts in [&["a.example", "b.example"][..], &["b.example", "c.example"], &["a.example", "c.example"], &HOSTS] {
            let hosts: &'static [&'static str] = Box::leak(hosts.to_vec().into_boxed_slice());
            for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
                for is_native in [false, true] {
                    let error = error.clone();
                    let limited = move |method: &str, _: &Value| matches!(method, "eth_call" | "eth_getCode").then(|| error.clone());
                    let found = ask(chain(hosts, limited), is_native, stage, None).await;
                    assert!(unmet(&found).contains(&(Precondition::Receiver, "node_disagree")), "{hosts:?} {stage:?}: {:?}", found.unmet);
                }
            }
        }
    }
}

/// A proxy, such as every Safe, reads a slot and calls another contract before it does anything, which costs more than 2,300 gas.
#[tokio::test(start_paused = true)]
async fn a_contract_that_needs_more_than_2300_gas_is_no_receiver_of_coins() {
    let proxy = |failure: Value| {
        move |method: &str, params: &Value| match method {
            "eth_getCode" => Some(json!("0x6080604052")),
            "eth_call" if params[0].get("data").is_none() => {
                assert_eq!(params[0]["gas"], "0x5b04", "21,000 and 2,300");
                assert_ne!(params[0]["value"], "0x0");
                Some(failure.clone())
            }
            _ => None,
        }
    };
    let out_of_gas = [
        json!({"error": {"code": -32_000, "message": "out of gas"}}),
        json!({"error": {"code": -32_000, "message": "EVM error OutOfGas"}}),
        json!({"error": {"code": -32_603, "message": "EVM error ReentrancySentryOOG"}}),
        json!({"error": {"code": 3, "message": "execution reverted", "data": "0x"}}),
    ];
    for failure in out_of_gas {
        for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
            let found = ask(chain(&HOSTS, proxy(failure.clone())), true, stage, None).await;
            assert_eq!(unmet(&found), [(Precondition::Receiver, "receiver_not_payable")], "{failure}");
            let said = found.unmet[0].to_string();
            assert!(said.contains("2300 gas") && said.contains("Safe") && said.contains("key account"), "{said}");
            // One liar of three that says "no code" does not open it, and one that says "out of gas" does not close it.
            let found = ask(chain(&["a.example", "c.example"], proxy(failure.clone())), true, stage, None).await;
            assert_eq!(unmet(&found), [(Precondition::Receiver, "receiver_not_payable")]);
            assert_eq!(unmet(&ask(chain(&["b.example"], proxy(failure.clone())), true, stage, None).await), []);
        }
    }
    // Code that takes the coins, such as the delegate of a key account (EIP-7702), can be paid.
    let found = ask(chain(&HOSTS, proxy(json!("0x"))), true, Stage::BeforeSecret, None).await;
    assert_eq!(unmet(&found), []);
    // The same account can be paid in a token.
    let found =
        ask(chain(&HOSTS, proxy(json!({"error": {"code": -32_000, "message": "out of gas"}}))), false, Stage::BeforeSecret, None).await;
    assert_eq!(unmet(&found), []);
}

#[tokio::test(start_paused = true)]
async fn the_mark_that_evidence_needs_is_served_before_paying() {
    let none = |method: &str, params: &Value| (method == "eth_getBlockByNumber" && params[0] == "safe").then_some(Value::Null);
    for hosts in [&HOSTS[..], &["a.example", "b.example"]] {
        let hosts: &'static [&'static str] = Box::leak(hosts.to_vec().into_boxed_slice());
        let found = ask(chain(hosts, none), false, Stage::BeforePaying, None).await;
        assert_eq!(unmet(&found), [(Precondition::FinalityMark, "finality_mark_missing")]);
    }
    assert_eq!(unmet(&ask(chain(&["c.example"], none), false, Stage::BeforePaying, None).await), []);
    let unknown = |method: &str, params: &Value| {
        (method == "eth_getBlockByNumber" && params[0] == "safe")
            .then(|| json!({"error": {"code": -32_602, "message": "unknown block tag"}}))
    };
    let found = ask(chain(&HOSTS, unknown), false, Stage::BeforePaying, None).await;
    assert_eq!(found.unmet[0].precondition, Precondition::FinalityMark);
    // It is not asked again: no evidence could exist without it.
    assert_eq!(unmet(&ask(chain(&HOSTS, none), false, Stage::BeforeSecret, None).await), []);
    // A rule that counts blocks needs no mark.
    let policy = Policy::default().with_finality("ethereum", FinalityRule::new(Finality::Depth(20), 64, 50));
    let record = record(false);
    let found = nodes(chain(&HOSTS, none), 3)
        .preconditions(&Ends::of_record(&record, registry()), Stage::BeforePaying, Speed::Normal, &policy)
        .await;
    assert_eq!(unmet(&found), []);
}

#[tokio::test(start_paused = true)]
async fn the_height_that_a_contract_on_arbitrum_may_count_is_shown_before_paying() {
    for (l1_number, expected) in [(None, vec!["lower_height_missing"]), (Some(20_000_000), vec![])] {
        let chain = chain(&[], |_, _| None).with(|evm| (evm.chain_id, evm.l1_number) = (42_161, l1_number));
        let all = HOSTS.iter().map(|host| Endpoint::parse(&format!("https://{host}")).unwrap()).collect();
        let nodes = Nodes::new(chain, NodeConfig::new().with("arbitrum", Endpoints::new(all).unwrap()), registry());
        let found = nodes.chain_preconditions("arbitrum", registry(), &Policy::default()).await;
        let height = found.unmet.iter().filter(|unmet| unmet.precondition == Precondition::LowerHeight);
        assert_eq!(height.map(|unmet| unmet.error.code().name()).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_decimals_of_a_token_are_those_of_the_registry() {
    let other =
        |method: &str, params: &Value| (method == "eth_call" && selector(params) == "0x313ce567").then(|| json!(format!("{:#066x}", 18)));
    let found = ask(chain(&HOSTS, other), false, Stage::BeforePaying, None).await;
    assert_eq!(unmet(&found), [(Precondition::Decimals, "decimals_differ")]);
    assert_eq!(unmet(&ask(chain(&["a.example"], other), false, Stage::BeforePaying, None).await), []);
    let found = nodes(chain(&HOSTS, other), 3).chain_preconditions("ethereum", registry(), &Policy::default()).await;
    assert!(unmet(&found).contains(&(Precondition::Decimals, "decimals_differ")), "{:?}", found.unmet);
}

#[tokio::test(start_paused = true)]
async fn the_account_that_redeems_has_coins_or_the_relayer_may() {
    let poor = |method: &str, _: &Value| (method == "eth_getBalance").then(|| json!("0x1"));
    let account = Address::repeat_byte(0x77).to_string();
    let found = ask(chain(&HOSTS, poor), false, Stage::BeforePaying, Some(&account)).await;
    assert_eq!(unmet(&found), [(Precondition::Redeemer, "insufficient_funds")]);
    assert_eq!(unmet(&ask(chain(&["b.example"], poor), false, Stage::BeforePaying, Some(&account)).await), []);
    let (record, policy) = (record(false), Policy::default());
    let ends = Ends::of_record(&record, registry()).redeemed_by(Some(&account)).with_relayer(true);
    assert_eq!(unmet(&nodes(chain(&HOSTS, poor), 3).preconditions(&ends, Stage::BeforePaying, Speed::Normal, &policy).await), []);
}

#[tokio::test(start_paused = true)]
async fn a_payout_in_coins_is_worth_more_than_its_redemption() {
    let (mut record, policy) = (record(true), Policy::default());
    let account = RECEIVER.to_string();
    record.destination_swap.amount = countersign::U256::from(1_000);
    let found = {
        let ends = Ends::of_record(&record, registry()).redeemed_by(Some(&account));
        nodes(chain(&[], |_, _| None), 3).preconditions(&ends, Stage::BeforePaying, Speed::Normal, &policy).await
    };
    assert_eq!(unmet(&found), [(Precondition::Payout, "fee_above_payout")]);
    // The own account redeems first, so the relayer makes the payout worth nothing more.
    let ends = Ends::of_record(&record, registry()).redeemed_by(Some(&account)).with_relayer(true);
    let found = nodes(chain(&[], |_, _| None), 3).preconditions(&ends, Stage::BeforePaying, Speed::Normal, &policy).await;
    assert_eq!(unmet(&found), [(Precondition::Payout, "fee_above_payout")]);
}

/// What is built without its chain has no preflight.
#[tokio::test(start_paused = true)]
async fn what_is_handed_out_is_asked_about_like_a_first_payment() {
    let poor = |method: &str, _: &Value| (method == "eth_getBalance").then(|| json!("0x1"));
    let (mut record, policy, account) = (record(true), Policy::default(), RECEIVER.to_string());
    record.destination_swap.amount = countersign::U256::from(1_000);
    let ends = Ends::of_record(&record, registry()).redeemed_by(Some(&account));
    for (stage, expected) in [
        (Stage::BeforeSecret, vec![]),
        (Stage::BeforeHandingOut, vec![(Precondition::Payout, "fee_above_payout"), (Precondition::Redeemer, "insufficient_funds")]),
    ] {
        let found = nodes(chain(&HOSTS, poor), 3).preconditions(&ends, stage, Speed::Normal, &policy).await;
        assert_eq!(unmet(&found), expected);
    }
}

/// What the policy would refuse at the end is refused before the payment: a redemption has a gas limit of 300,000.
#[tokio::test(start_paused = true)]
async fn a_policy_that_allows_no_redemption_is_known_before_paying() {
    let (record, account) = (record(false), RECEIVER.to_string());
    let ends = Ends::of_record(&record, registry()).redeemed_by(Some(&account));
    for (limit, expected) in [(299_999, vec![(Precondition::Redeemer, "gas_limit_too_high")]), (300_000, vec![])] {
        let policy = Policy::from_json(format!(r#"{{"evm_gas_limit": {limit}}}"#).as_bytes()).unwrap();
        let found = nodes(chain(&[], |_, _| None), 3).preconditions(&ends, Stage::BeforePaying, Speed::Normal, &policy).await;
        assert_eq!(unmet(&found), expected);
    }
}

/// The recipient of a refund in coins must also be able to receive them.
#[tokio::test(start_paused = true)]
async fn the_owner_of_the_source_can_be_refunded() {
    let proxy = |method: &str, params: &Value| match method {
        "eth_getCode" => Some(json!("0x6080604052")),
        "eth_call" if params[0].get("data").is_none() => Some(json!({"error": {"code": -32_000, "message": "out of gas"}})),
        _ => None,
    };
    let mut record = record(false);
    record.source_swap.asset = "ethereum:eth".parse().unwrap();
    record.source_swap.initiator = RECEIVER.to_string();
    record.destination_swap.asset = "base:usdc".parse().unwrap();
    let policy = Policy::default();
    for (stage, expected) in [(Stage::BeforePaying, 1), (Stage::BeforeSecret, 0)] {
        let found =
            nodes(chain(&HOSTS, proxy), 3).preconditions(&Ends::of_record(&record, registry()), stage, Speed::Normal, &policy).await;
        assert_eq!(found.unmet.len(), expected, "{stage:?}: {:?}", found.unmet);
    }
}

#[tokio::test(start_paused = true)]
async fn a_misspelt_chain_is_known_before_paying() {
    let all = || Endpoints::new(vec![Endpoint::parse("https://a.example").unwrap()]).unwrap();
    let config = NodeConfig::new().with("ethereum", all()).with("Base", all());
    let nodes = Nodes::new(chain(&[], |_, _| None), config, registry());
    let (record, policy) = (record(false), Policy::default());
    let ends = Ends::of_record(&record, registry());
    let found = nodes.preconditions(&ends, Stage::BeforePaying, Speed::Normal, &policy).await;
    assert_eq!(unmet(&found), [(Precondition::KnownChains, "unknown_chain")]);
    assert_eq!(found.unmet[0].chain, "Base");
    assert!(nodes.preconditions(&ends, Stage::BeforeSecret, Speed::Normal, &policy).await.unmet.is_empty());
}

/// Another list of the service than the one that the order was signed under: without the asset, or with this change of it.
fn relisted(id: &str, change: Option<&dyn Fn(&mut Value)>) -> Registry {
    let mut list = registry_json();
    let assets = list["assets"].as_array_mut().unwrap();
    match change {
        Some(change) => change(assets.iter_mut().find(|asset| asset["id"] == id).unwrap()),
        None => assets.retain(|asset| asset["id"] != id),
    }
    Registry::from_json(list.to_string().as_bytes()).unwrap()
}

fn connect(chain: Chain, registry: &Registry) -> Nodes<Chain> {
    let all = HOSTS.iter().map(|host| Endpoint::parse(&format!("https://{host}")).unwrap()).collect();
    Nodes::new(chain, NodeConfig::new().with("ethereum", Endpoints::new(all).unwrap()), registry)
}

/// The service takes the asset off its list while the order is under way, or lists another token or contract under its id. What the order
/// was signed under is asked about, at every stage.
#[tokio::test(start_paused = true)]
async fn the_assets_of_the_order_are_asked_about_whatever_the_connections_know() {
    let (record, policy) = (record(false), Policy::default());
    let token = registry().asset("ethereum:usdc").unwrap().token.as_ref().unwrap().text.to_lowercase();
    let other = |member: &'static str| move |asset: &mut Value| asset[member]["address"] = json!(Address::repeat_byte(0xdd));
    let (of_token, of_htlc) = (other("token"), other("htlc"));
    let frozen = move |method: &str, params: &Value| {
        let is_pinned = params[0]["to"].as_str().is_some_and(|to| to.to_lowercase() == token);
        let is_receiver = params[0].to_string().to_lowercase().contains(&format!("{RECEIVER:x}"));
        (method == "eth_call" && is_pinned && is_receiver).then(reverted)
    };
    for newest in [relisted("ethereum:usdc", None), relisted("ethereum:usdc", Some(&of_token)), relisted("ethereum:usdc", Some(&of_htlc))] {
        for stage in [Stage::BeforePaying, Stage::BeforeSecret, Stage::BeforeHandingOut] {
            let ends = Ends::of_record(&record, registry());
            let found = connect(chain(&HOSTS, frozen.clone()), &newest).preconditions(&ends, stage, Speed::Normal, &policy).await;
            assert_eq!(unmet(&found), [(Precondition::Receiver, "receiver_not_payable")], "{stage:?}");
            let found = connect(chain(&[], |_, _| None), &newest).preconditions(&ends, stage, Speed::Normal, &policy).await;
            assert_eq!(unmet(&found), [], "{stage:?}");
        }
    }
}

/// What is not known cannot be asked about, and that is no yes. A chain that is not connected is asked nothing.
#[tokio::test(start_paused = true)]
async fn an_asset_that_is_not_pinned_is_an_unmet_precondition() {
    let (record, policy, newest) = (record(false), Policy::default(), relisted("ethereum:usdc", None));
    let expected = [(Precondition::PinnedAsset, "unknown_asset")];
    let ask = async |registry: &Registry, stage| {
        let ends = Ends::of_record(&record, registry);
        connect(chain(&[], |_, _| None), registry).preconditions(&ends, stage, Speed::Normal, &policy).await
    };
    for stage in [Stage::BeforePaying, Stage::BeforeSecret, Stage::BeforeHandingOut] {
        assert_eq!(unmet(&ask(&newest, stage).await), expected, "{stage:?}");
        let known = ask(registry(), stage).await;
        assert!(unmet(&known).is_empty() && known.met.contains(&(Precondition::PinnedAsset, "ethereum".to_owned())), "{stage:?}");
        let nothing = Nodes::new(chain(&[], |_, _| None), NodeConfig::new(), &newest);
        let ends = Ends::of_record(&record, &newest);
        assert_eq!(unmet(&nothing.preconditions(&ends, stage, Speed::Normal, &policy).await), [], "{stage:?}");
    }
    // Both legs before an order exists; once it is paid, nothing about the source could stop anything.
    let owner = RECEIVER.to_string();
    let leg = |asset: &str| RequestedLeg::new(asset.parse().unwrap(), &owner, U256::ONE);
    let (source, destination) = (leg("ethereum:usdc"), leg("base:usdc"));
    for (stage, expected) in [(Stage::BeforePaying, &expected[..]), (Stage::BeforeSecret, &[])] {
        let ends = Ends::of_request(&source, &destination, &newest);
        let found = connect(chain(&[], |_, _| None), &newest).preconditions(&ends, stage, Speed::Normal, &policy).await;
        assert_eq!(unmet(&found), expected, "{stage:?}");
    }
}

/// Endpoints of one host have one word.
#[tokio::test(start_paused = true)]
async fn two_keys_of_one_provider_are_one() {
    let urls = ["https://a.example/key1", "https://a.example/key2", "https://b.example"];
    let connect = |chain: Chain| {
        let all = urls.iter().map(|url| Endpoint::parse(url).unwrap()).collect();
        Nodes::new(chain, NodeConfig::new().with("ethereum", Endpoints::new(all).unwrap()), registry())
    };
    let paused = |method: &str, params: &Value| (method == "eth_call" && selector(params) == "0xa9059cbb").then(reverted);
    let (record, policy) = (record(false), Policy::default());
    let ends = Ends::of_record(&record, registry());
    // The one provider has two of the three endpoints, and one word of two.
    let nodes = connect(chain(&["b.example"], paused));
    assert_eq!(nodes.endpoints("ethereum").unwrap().quorum, 2);
    let found = nodes.preconditions(&ends, Stage::BeforeSecret, Speed::Normal, &policy).await;
    assert_eq!(unmet(&found), [(Precondition::Receiver, "node_disagree")]);
    assert_eq!(unmet(&connect(chain(&[], |_, _| None)).preconditions(&ends, Stage::BeforeSecret, Speed::Normal, &policy).await), []);
}

/// Providers repeat the path in their errors, and many put the key there.
#[tokio::test(start_paused = true)]
async fn a_key_in_a_url_reaches_no_message() {
    let repeats = |_: &str, _: &Value| {
        Some(json!({"error": {"code": -32_000, "message": "invalid project id /v3/S3CRETKEY for user pa55w0rd?key=t0k3n-123"}}))
    };
    let urls = ["https://user:pa55w0rd@a.example/v3/S3CRETKEY?key=t0k3n-123"];
    let all = urls.iter().map(|url| Endpoint::parse(url).unwrap()).collect();
    let nodes = Nodes::new(chain(&HOSTS, repeats), NodeConfig::new().with("ethereum", Endpoints::new(all).unwrap()), registry());
    let said = nodes.head("ethereum", 0).await.unwrap_err().to_string();
    assert!(said.contains("invalid project id /v3/"), "{said}");
    for key in ["S3CRETKEY", "pa55w0rd", "t0k3n-123"] {
        assert!(!said.contains(key), "{said}");
    }
}

#[test]
fn endpoints_of_one_host_count_once_unless_the_user_says_otherwise() {
    let parse = |text: &str| {
        let text = format!(r#"{{"base": {text}}}"#);
        NodeConfig::from_json(text.as_bytes()).map(|config| Nodes::new(chain(&[], |_, _| None), config, registry()))
    };
    for (text, quorum, doubt) in [
        (r#"["https://a.example", "https://b.example", "https://c.example"]"#, 2, None),
        (r#"["https://a.example/1", "https://a.example/2", "https://a.example/3"]"#, 1, Some("all 3 endpoints are of one provider")),
        (r#"{"endpoints": ["https://a.example/1", "https://a.example/2", "https://a.example/3"], "quorum": 2}"#, 1, Some("one provider")),
        (r#"["https://a.example/1", "https://a.example/2", "https://b.example"]"#, 2, Some("2 endpoints of a.example count once")),
        (r#"["https://a.example:8443/1", "https://a.example/2"]"#, 1, Some("one provider")),
        (r#"["http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"]"#, 2, None),
        (r#"["https://a.example"]"#, 1, Some("a single endpoint")),
        (
            r#"[{"url": "https://a.example/1", "provider": "one"}, {"url": "https://a.example/2", "provider": "two"}, "https://c.example"]"#,
            2,
            None,
        ),
        (r#"[{"url": "https://a.example", "provider": "one"}, {"url": "https://b.example", "provider": "one"}]"#, 1, Some("(one)")),
    ] {
        let nodes = parse(text).unwrap();
        let endpoints = nodes.endpoints("base").unwrap();
        assert_eq!(endpoints.quorum, quorum, "{text}");
        match (endpoints.doubt(), doubt) {
            (None, None) => {}
            (Some(said), Some(part)) => assert!(said.contains(part), "{said}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in [
        r#"[{"url": "https://a.example", "provider": ""}]"#,
        r#"[{"provider": "one"}]"#,
        r#"[{"url": "https://a.example", "name": "one"}]"#,
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}
