//! The two doors of the machine: Rust's own types, and JSON. Both open the same machine, and refuse the same.
#![cfg(test)]

use std::path::Path;
use std::time::Duration;

use countersign_swap::countersign::tron::{self, Permission};
use countersign_swap::countersign::wire::{AffiliateFee, BasisPoints};
use countersign_swap::countersign::{AssetId, Policy, Registry, U256};
use countersign_swap::{
    AppId, Ask, Endpoint, Endpoints, Event, Failure, JsonSetup, NodeConfig, Options, Pace, QuoteWish, Reply, Setup, Speed, Swaps,
    TransportErrorKind, TrustTheService, UnixMillis, Url, Wish,
};
use serde_json::{Value, json};

const NOW: UnixMillis = UnixMillis::from_millis(1_764_000_000_000);
const OWNER: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const RECEIVER: &str = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
const NODES: &str = r#"{"base": ["https://base.example"], "bitcoin": ["https://bitcoin.example"]}"#;

fn registry() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/registry.json")).unwrap()
}

fn options() -> Options {
    Options::new(Url::parse("https://service.example").unwrap())
}

/// A machine through the typed door.
fn typed(options: Options) -> Result<Swaps, Failure> {
    let mut setup = Setup::new(options, Registry::from_json(&registry()).unwrap(), NOW);
    let endpoint = |url| Endpoints::new(vec![Endpoint::parse(url).unwrap()]).unwrap();
    setup.nodes = NodeConfig::new().with("base", endpoint("https://base.example")).with("bitcoin", endpoint("https://bitcoin.example"));
    setup.place = "a test".to_owned();
    Swaps::open(setup)
}

/// A machine through the JSON door.
fn parsed(options: &Value) -> Result<Swaps, Failure> {
    let (options, registry) = (options.to_string(), registry());
    let mut setup = JsonSetup::new(options.as_bytes(), &registry, NOW);
    (setup.nodes, setup.place) = (NODES.as_bytes(), "a test");
    Swaps::open(setup.parse()?)
}

fn asset(id: &str) -> AssetId {
    AssetId::parse(id).unwrap()
}

/// Everything that a machine asks for and reports until its call ends, if the service has one quote and no chain can be reached.
fn conversation(mut swaps: Swaps) -> Vec<String> {
    let quote = json!({"status": "Ok", "result": [{
        "source": {"asset": "base:usdc", "amount": "1500000", "display": "1.5", "value": "1.5"},
        "destination": {"asset": "bitcoin:btc", "amount": "1400", "display": "0.000014", "value": "1.4"},
        "solver_id": "a solver", "estimated_time": 60, "slippage": 50, "fee": 30, "fixed_fee": "0"
    }]});
    let (mut said, mut now) = (Vec::new(), NOW);
    for _ in 0..200 {
        let output = swaps.poll(now);
        for need in output.needs {
            said.push(need.detail().to_string());
            said.extend(need.bodies().into_iter().flatten().map(|body| String::from_utf8_lossy(body).into_owned()));
            let reply = match &need.ask {
                Ask::Http(request) if request.url.contains("/quote") => {
                    Reply::Response { status: 200, headers: Vec::new(), body: quote.to_string().into_bytes() }
                }
                Ask::Http(_) => Reply::NoResponse { kind: TransportErrorKind::Connect, detail: String::new() },
                other => panic!("{other:?}"),
            };
            assert_eq!(swaps.reply(need.id, reply), Ok(true));
        }
        let ended = output.events.iter().any(|event| matches!(event, Event::Failed { .. } | Event::Quoted { .. }));
        said.extend(output.events.iter().map(|event| serde_json::to_string(event).unwrap()));
        if ended {
            return said;
        }
        now = output.wake_at.unwrap_or(now).max(now);
    }
    panic!("it does not end: {said:#?}")
}

#[test]
fn an_order_through_the_typed_door_equals_that_through_the_json_door() {
    let mut own = options().with_account("evm", OWNER).with_signers(["base"]);
    own.app_id = Some(AppId::new("an-application").unwrap());
    (own.relayer, own.sign_only, own.own_transactions, own.trust_the_service) = (true, true, true, Some(TrustTheService));
    let second = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
    let keys = Permission::new(2).with_keys(2, [(tron::Address::parse(second).unwrap(), 2)]);
    own = own.with_permission("tron", keys);
    own.pace = Pace { quickest: Duration::from_millis(100), slowest: Duration::from_millis(100) };
    own.speed = Speed::Fast;
    let json = json!({
        "service": "https://service.example", "app_id": "an-application", "accounts": {"evm": OWNER}, "signers": ["base"],
        "permissions": {"tron": {"id": 2, "threshold": 2, "keys": [{"address": second, "weight": 2}]}}, "own_transactions": true,
        "relayer": true, "trust_the_service": true, "poll_ms": 100, "speed": "fast", "sign_only": true,
    });
    let as_json = Options::from_json(json.to_string().as_bytes()).unwrap();
    assert_eq!(format!("{own:?}"), format!("{as_json:?}"));

    let mut quote = QuoteWish::new(asset("base:usdc"), asset("bitcoin:btc"), U256::from(1_500_000));
    (quote.slippage, quote.at_least) = (Some(BasisPoints::new(50)), Some(U256::from(1_000)));
    let wish = json!({"from": "base:usdc", "to": "bitcoin:btc", "amount": "1.5 usdc", "slippage": 50, "at_least": "1000"});
    let (mut one, mut other) = (typed(own.clone()).unwrap(), parsed(&json).unwrap());
    assert_eq!(one.quote(quote.clone()), other.quote_json(wish.to_string().as_bytes()));
    let said = conversation(one);
    assert_eq!(said, conversation(other));
    assert!(said.iter().any(|line| line.contains(r#""event":"quoted""#)), "{said:#?}");

    let mut order = Wish::new(quote, RECEIVER);
    order.affiliate_fees = vec![AffiliateFee::new(asset("base:usdc"), OWNER, BasisPoints::new(30)).unwrap()];
    let mut wish = wish;
    wish["receive_at"] = json!(RECEIVER);
    wish["affiliate_fees"] = json!([{"asset": "base:usdc", "address": OWNER, "fee": 30}]);
    let (mut one, mut other) = (typed(own).unwrap(), parsed(&json).unwrap());
    assert_eq!(one.create(order), other.create_json(wish.to_string().as_bytes()));
    let said = conversation(one);
    assert_eq!(said, conversation(other));
    // The quote, then what must hold on the chains; nothing after that, because neither can be read.
    assert!(said.iter().any(|line| line.contains("https://base.example")) && said.len() > 3, "{said:#?}");
}

#[test]
fn both_doors_refuse_the_same_setup_with_the_same_code_at_the_same_location() {
    for (accounts, code, at) in [
        (("base", "0x00"), "address_malformed", "/options/accounts/base"),
        (("evm", RECEIVER), "address_malformed", "/options/accounts/evm"),
    ] {
        let (name, address) = accounts;
        let one = typed(options().with_account(name, address)).unwrap_err();
        let other = parsed(&json!({"service": "https://service.example", "accounts": {name: address}})).unwrap_err();
        assert_eq!(one, other);
        assert_eq!((one.code, &*one.at), (code, at));
    }
    let permission = typed(options().with_permission("base", Permission::new(2))).unwrap_err();
    assert_eq!(permission, parsed(&json!({"service": "https://service.example", "permissions": {"base": 2}})).unwrap_err());
    assert_eq!((permission.code, &*permission.at), ("usage", "/options/permissions/base"));
}

/// A chain may have been taken off the list since an order was paid. A misspelt one would be missing once a new order is paid.
#[test]
fn a_name_of_no_chain_stops_no_opening_and_every_new_swap() {
    let endpoints = |url| Endpoints::new(vec![Endpoint::parse(url).unwrap()]).unwrap();
    let mut misspelt = Setup::new(options(), Registry::from_json(&registry()).unwrap(), NOW);
    misspelt.nodes =
        NodeConfig::new().with("base", endpoints("https://base.example")).with("nowhere", endpoints("https://nowhere.example"));
    let registry = registry();
    let mut as_json = JsonSetup::new(br#"{"service": "https://service.example"}"#, &registry, NOW);
    as_json.nodes = br#"{"base": ["https://base.example"], "nowhere": ["https://nowhere.example"]}"#;
    let with = |member: &str, name: &str, value: Value| parsed(&json!({"service": "https://service.example", member: {name: value}}));
    let wish = json!({"from": "base:usdc", "to": "bitcoin:btc", "amount": "1500000", "receive_at": RECEIVER, "from_owner": OWNER});
    let taken = format!("/options/accounts/{OWNER}");
    for (one, other, at) in [
        (typed(options().with_account("basis", OWNER)), with("accounts", "basis", json!(OWNER)), "/options/accounts/basis"),
        // The two texts, taken for each other.
        (typed(options().with_account(OWNER, "base")), with("accounts", OWNER, json!("base")), taken.as_str()),
        (
            typed(options().with_permission("tronShasta", Permission::new(2))),
            with("permissions", "tronShasta", json!(2)),
            "/options/permissions/tronShasta",
        ),
        (Swaps::open(misspelt), as_json.parse().and_then(Swaps::open), "/nodes/nowhere"),
    ] {
        for swaps in [one, other] {
            let mut swaps = swaps.unwrap_or_else(|failure| panic!("{at}: {failure}"));
            swaps.list();
            assert!(matches!(swaps.phrase(), Ok(None)), "{at}");
            let refused = swaps.create_json(wish.to_string().as_bytes()).unwrap_err();
            assert_eq!((refused.code, &*refused.at), ("usage", at));
        }
    }
}

#[test]
fn both_doors_refuse_the_same_wish_with_the_same_code_at_the_same_location() {
    let open = || (typed(options()).unwrap(), parsed(&json!({"service": "https://service.example"})).unwrap());
    for (from, to, receiver, owner, code, at) in [
        ("base:none", "bitcoin:btc", RECEIVER, Some(OWNER), "unknown_asset", "/from"),
        ("base:usdc", "nowhere:usdc", RECEIVER, Some(OWNER), "unknown_asset", "/to"),
        ("base:usdc", "base:usdc", OWNER, Some(OWNER), "usage", "/to"),
        ("base:usdc", "bitcoin:btc", OWNER, Some(OWNER), "address_malformed", "/receive_at"),
        ("base:usdc", "bitcoin:btc", RECEIVER, Some(RECEIVER), "address_malformed", "/from_owner"),
        ("base:usdc", "bitcoin:btc", RECEIVER, None, "usage", "/from_owner"),
        ("base:usdc", "ethereum:usdc", OWNER, Some(OWNER), "usage", "/nodes/ethereum"),
    ] {
        let quote = QuoteWish::new(asset(from), asset(to), U256::from(1_500_000));
        let mut wish = Wish::new(quote.clone(), receiver);
        wish.from_owner = owner.map(str::to_owned);
        let mut json = json!({"from": from, "to": to, "amount": "1500000", "receive_at": receiver});
        if let Some(owner) = owner {
            json["from_owner"] = json!(owner);
        }
        let (mut one, mut other) = open();
        let refused = one.create(wish).unwrap_err();
        assert_eq!(refused, other.create_json(json.to_string().as_bytes()).unwrap_err(), "{json}");
        assert_eq!((refused.code, &*refused.at), (code, at), "{json}");
        assert!(one.poll(NOW).needs.is_empty() && other.poll(NOW).needs.is_empty());
        if at == "/from" || at == "/to" {
            assert_eq!(one.quote(quote), Err(refused));
        }
    }
}

#[test]
fn what_only_json_can_get_wrong_is_refused_at_its_member() {
    let registry = registry();
    let setup = |options: &str, policy: &str, nodes: &str| {
        let mut setup = JsonSetup::new(options.as_bytes(), &registry, NOW);
        (setup.policy, setup.nodes) = (policy.as_bytes(), nodes.as_bytes());
        setup.parse().map(drop).map_err(|failure| (failure.code, failure.at.to_string())).unwrap_err()
    };
    let good = r#"{"service":"https://service.example"}"#;
    for (options, at) in [
        (r#"{"service":"https://service.example","relay":true}"#, "/options/relay"),
        (r#"{"service":"nowhere"}"#, "/options/service"),
        (r#"{"service":"https://service.example","speed":"quick"}"#, "/options/speed"),
        (r#"{"service":"https://service.example","app_id":""}"#, "/options/app_id"),
        (r#"{"service":"https://service.example","permissions":{"tron":1}}"#, "/options/permissions/tron"),
        (
            r#"{"service":"https://service.example","permissions":{"tron":{"id":2,"threshold":1,"keys":[]}}}"#,
            "/options/permissions/tron/keys",
        ),
    ] {
        assert_eq!(setup(options, "", "").1, at, "{options}");
    }
    assert_eq!(setup(good, r#"{"refuse":1}"#, "").1, "/policy/refuse");
    assert_eq!(setup(good, "", r#"{"base":{"endpoint":[]}}"#).1, "/nodes/base/endpoint");
    let misspelt = parsed(&json!({"service": "https://service.example"})).unwrap().create_json(br#"{"form":"base:usdc"}"#);
    assert_eq!(&*misspelt.unwrap_err().at, "/form");
}

#[test]
fn a_setup_that_is_printed_shows_no_secret() {
    let mut setup = Setup::new(options(), Registry::from_json(&registry()).unwrap(), NOW);
    setup.options.service = Url::parse("https://service.example/hidden-key").unwrap();
    setup.options.app_id = Some(AppId::new("hidden-application").unwrap());
    setup.nodes = NodeConfig::from_json(br#"{"base": ["https://base.example/hidden-key"]}"#).unwrap();
    setup.documents = vec![("phrase".to_owned(), countersign_swap::Zeroizing::new(b"hidden words".to_vec()))];
    let shown = format!("{setup:?}");
    assert!(!shown.contains("hidden") && !shown.contains("104, 105, 100"), "{shown}");
    let json = JsonSetup::new(b"hidden", b"", NOW);
    assert!(!format!("{json:?}").contains("104, 105, 100"), "{json:?}");
    assert_eq!(setup.policy, Policy::default());
}

#[test]
fn a_need_says_which_call_needs_it() {
    let mut swaps = typed(options()).unwrap();
    let wish = |amount: u64| QuoteWish::new(asset("base:usdc"), asset("bitcoin:btc"), U256::from(amount));
    let calls = [1_500_000, 2_500_000].map(|amount| (swaps.quote(wish(amount)).unwrap(), amount));
    let needs = swaps.poll(NOW).needs;
    assert_eq!(needs.len(), calls.len());
    for (need, (call, amount)) in needs.iter().zip(calls) {
        let Ask::Http(request) = &need.ask else { panic!("{:?}", need.ask) };
        assert!(request.url.contains(&amount.to_string()), "{}", *request.url);
        assert_eq!(need.call, call);
    }
    // What is needed after a reply is needed for the same call.
    let refused = Reply::Response { status: 503, headers: Vec::new(), body: Vec::new() };
    assert_eq!(swaps.reply(needs[1].id, refused), Ok(true));
    let wake_at = swaps.poll(NOW).wake_at.unwrap();
    let later = swaps.poll(wake_at).needs;
    assert_eq!(later.iter().map(|need| need.call).collect::<Vec<_>>(), [calls[1].0]);
}
