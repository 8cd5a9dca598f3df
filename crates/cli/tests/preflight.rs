//! Tests that the user's input for a new order is checked before the service is contacted, and that every problem is
//! reported at once.

use crate::home::{out, said};
use crate::support::{Reply, Seen, Server};
use crate::whole::Whole;
use serde_json::{Value, json};

/// A node of Base whose newest block has this age in seconds.
fn node(age: i64) -> Server {
    node_of("0x2105", age)
}

/// The same of a chain with this id.
fn node_of(chain_id: &'static str, age: i64) -> Server {
    node_with(chain_id, age, "0xde0b6b3a7640000")
}

/// The same, where every account has this balance.
fn node_with(chain_id: &'static str, age: i64, balance: &'static str) -> Server {
    Server::start(move |seen: &Seen| {
        let result = |call: &Value| {
            let result = match call["method"].as_str().unwrap() {
                "eth_chainId" => json!(chain_id),
                "eth_call" if call["params"][0]["data"] == "0x313ce567" => crate::nodes::decimals(call),
                "eth_call" => json!("0x"),
                "eth_getCode" => json!("0x"),
                "eth_getBalance" => json!(balance),
                "eth_getTransactionCount" => json!("0x1"),
                "eth_gasPrice" => json!("0x3b9aca00"),
                "eth_maxPriorityFeePerGas" => json!("0x1"),
                "eth_feeHistory" => json!({"baseFeePerGas": ["0x1", "0x1"], "reward": [["0x1", "0x1", "0x1"]]}),
                _ => json!({"number": "0x10", "hash": format!("0x{}", "11".repeat(32)),
                    "timestamp": format!("{:#x}", chrono::Utc::now().timestamp() - age), "l1BlockNumber": "0x1"}),
            };
            json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
        };
        let reply = match serde_json::from_str(&seen.text()).unwrap() {
            Value::Array(calls) => Value::Array(calls.iter().map(result).collect()),
            call => result(&call),
        };
        Reply::json(200, reply.to_string())
    })
}

/// A swap with some of its arguments replaced; `None` removes an argument and its value.
fn with(whole: &Whole, changes: &[(&str, Option<&str>)], more: &[&str]) -> Vec<String> {
    let mut arguments = whole.begin.clone();
    for (flag, value) in changes {
        match (arguments.iter().position(|argument| argument == flag), value) {
            (Some(at), Some(value)) => arguments[at + 1] = (*value).to_owned(),
            (Some(at), None) => drop(arguments.drain(at..at + 2)),
            (None, Some(value)) => arguments.extend([(*flag).to_owned(), (*value).to_owned()]),
            (None, None) => panic!("{flag}"),
        }
    }
    arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
    arguments
}

/// Runs a swap, and the same as a dry run. Both report the same problems, and neither contacts the service.
fn problems(whole: &Whole, arguments: &[String]) -> Vec<String> {
    let server = whole.service.start();
    let mut found = Vec::new();
    for dry in [&["--json".to_owned()][..], &["--json".to_owned(), "--dry-run".to_owned()]] {
        let output = whole.run(&server.base, &[arguments, dry].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        let shown: Value = serde_json::from_str(&out(&output)).unwrap();
        assert_eq!((&shown["ok"], &shown["error"]["code"]), (&json!(false), &json!("usage")), "{shown}");
        let list = shown["error"]["problems"].as_array().unwrap_or_else(|| panic!("{shown}"));
        found.push(list.iter().map(|problem| problem.as_str().unwrap().to_owned()).collect::<Vec<_>>());
    }
    assert!(server.seen().is_empty(), "{:?}", server.lines());
    assert_eq!(found[0], found[1]);
    let words = whole.run(&server.base, arguments);
    for problem in &found[0] {
        assert!(said(&words).contains(problem.as_str()), "{problem}: {}", said(&words));
    }
    // An order that could not have been made uses up no index, and makes no state.
    assert!(!whole.home.path.join(".local/share/countersign/orders").exists());
    found.remove(0)
}

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let whole = Whole::new("all-at-once");
    let broken = whole.home.file("broken.json", r#"{"nonce": "seven"}"#);
    let key = whole.home.file("other.txt", &"12".repeat(32));
    let node = Server::start(|_| Reply::json(503, "busy"));
    let endpoint = format!("base={}", node.base);
    let mut arguments = with(
        &whole,
        &[
            ("--to-owner", Some("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD")),
            ("--key-file", Some(&key)),
            ("--wallet", Some(&broken)),
            ("--secret-file", Some("/nowhere/secret")),
            ("--at-least", Some("1 btc")),
        ],
        &["--node", &endpoint, "--redeem-key-file", "/nowhere/key"],
    );
    arguments.retain(|argument| argument != "--yes");
    let found = problems(&whole, &arguments);
    let wanted =
        ["--to-owner", "the key controls", "broken.json", "/nowhere/secret", "symbol", "/nowhere/key", "503", "stdin is not a terminal"];
    for text in wanted {
        assert!(found.iter().any(|problem| problem.contains(text)), "{text}: {found:?}");
    }
    assert!(found.len() >= wanted.len(), "{found:?}");
}

#[test]
fn each_address_belongs_to_its_chain_and_to_somebody() {
    let zero = format!("0x{}", "0".repeat(40));
    let cases = [
        ("--from-owner", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "checksum"),
        ("--to-owner", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "checksum"),
        ("--to-owner", &*zero, "zero address"),
        ("--to-owner", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "not a valid address"),
        ("--to-owner", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "not a valid address"),
        ("--from-delegate", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "checksum"),
        ("--affiliate", "base:eth=0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD=5", "checksum"),
        ("--from", "base:nothing", "not pinned"),
        ("--to", "nowhere:eth", "not pinned"),
        ("--to", "base:eth", "both legs"),
        ("--amount", "1 usdc", "symbol"),
    ];
    for (index, (flag, value, reason)) in cases.into_iter().enumerate() {
        let whole = Whole::new(&format!("address-{index}"));
        let found = problems(&whole, &with(&whole, &[(flag, Some(value))], &[]));
        assert!(found.iter().any(|problem| problem.contains(reason)), "{flag} {value}: {found:?}");
    }
    let whole = Whole::new("address-missing");
    let found = problems(&whole, &with(&whole, &[("--from-owner", None), ("--to-owner", None), ("--amount", None)], &[]));
    for flag in ["--amount is missing", "--from-owner is missing", "--to-owner is missing"] {
        assert!(found.iter().any(|problem| problem.contains(flag)), "{flag}: {found:?}");
    }
    let found = problems(&whole, &with(&whole, &[("--from", None), ("--to-owner", None)], &[]));
    for flag in ["--from is missing", "--to-owner is missing"] {
        assert!(found.iter().any(|problem| problem.contains(flag)), "{flag}: {found:?}");
    }
    // An order that is created on its own is checked as well.
    let server = whole.service.start();
    let registry = whole.home.path.join("registry.json");
    let mut request = whole.service.fixture.request.clone();
    request["destination"]["owner"] = json!(zero);
    let request = whole.home.file("request.json", &request.to_string());
    let output = whole
        .home
        .run(&server.base, &["order", "create", "--registry", registry.to_str().unwrap(), "--request", &request, "--service-secret"]);
    assert!(output.status.code() == Some(2) && said(&output).contains("zero address"), "{}", said(&output));
    assert!(server.seen().is_empty());
}

#[test]
fn a_key_controls_the_account_that_pays() {
    let whole = Whole::new("keys");
    let other = whole.home.file("other.txt", &"12".repeat(32));
    let found = problems(&whole, &with(&whole, &[("--key-file", Some(&other))], &[]));
    assert!(found.len() == 1 && found[0].contains("the key controls 0x"), "{found:?}");
    let text = whole.home.file("text.txt", "not a key");
    let found = problems(&whole, &with(&whole, &[("--key-file", Some(&text))], &[]));
    assert!(found.len() == 1 && found[0].contains("key_malformed"), "{found:?}");
    let found = problems(&whole, &with(&whole, &[("--redeem-key-file", Some(&text))], &[]));
    assert!(found.len() == 1 && found[0].contains("key_malformed"), "{found:?}");
    // The key in the wallet context.
    let mut wallet = whole.service.fixture.wallet.clone();
    wallet["secret_key"] = json!("12".repeat(32));
    let wallet = whole.home.file("wallet-other.json", &wallet.to_string());
    let found = problems(&whole, &with(&whole, &[("--key-file", None), ("--wallet", Some(&wallet))], &[]));
    assert!(found.len() == 1 && found[0].contains("the key controls 0x"), "{found:?}");
}

/// On Bitcoin-like chains one key has several addresses. The first two are those of the key 1; BIP-350's taproot address contains the
/// public key itself, which a wallet's key does not open.
#[test]
fn a_key_controls_the_address_whose_coins_pay() {
    let whole = Whole::new("bitcoin-key");
    let node = Server::start(|_| Reply::json(503, "busy"));
    let endpoint = format!("bitcoin={}", node.base);
    let one = whole.home.file("one.txt", &format!("{}1", "0".repeat(63)));
    // BIP-173 and BIP-350 have both addresses of this key; the third belongs to nobody known.
    for (owner, is_right) in [
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", true),
        ("1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH", true),
        ("bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0", false),
        ("bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3", false),
    ] {
        let changes = [
            ("--from", Some("bitcoin:btc")),
            ("--amount", Some("50000")),
            ("--from-owner", Some(owner)),
            ("--wallet", None),
            ("--key-file", Some(&*one)),
        ];
        let mut arguments = with(&whole, &changes, &["--node", &endpoint]);
        // Another problem, so that there is always a list.
        arguments.retain(|argument| argument != "--yes");
        let found = problems(&whole, &arguments);
        assert_eq!(!found.iter().any(|problem| problem.contains("does not control")), is_right, "{owner}: {found:?}");
    }
}

#[test]
fn somebody_can_confirm_or_nobody_has_to() {
    let whole = Whole::new("consent");
    let mut arguments = whole.begin.clone();
    arguments.retain(|argument| argument != "--yes");
    let found = problems(&whole, &arguments);
    assert!(found.len() == 1 && found[0].contains("--yes"), "{found:?}");
}

/// Enough endpoints must answer, serve the chain, and follow it. It may be better in a minute, so the exit code is 3.
#[test]
fn the_nodes_are_reachable_and_follow_their_chain() {
    let whole = Whole::new("nodes");
    let (good, other) = (node(3), node(4));
    let (down, old, future) = (Server::start(|_| Reply::json(503, "busy")), node(3_600), node(-600));
    for (bad, reason) in [(&down, "503"), (&old, "old"), (&future, "ahead of the clock")] {
        let server = whole.service.start();
        let nodes = whole.home.file("nodes.json", &json!({"base": [good.base, bad.base]}).to_string());
        for dry in [&[][..], &["--dry-run"]] {
            let arguments = with(&whole, &[("--nodes", Some(&nodes))], &[dry, &["--json"]].concat());
            let output = whole.run(&server.base, &arguments);
            assert_eq!(output.status.code(), Some(3), "{}", said(&output));
            let shown: Value = serde_json::from_str(&out(&output)).unwrap();
            let message = shown["error"]["message"].as_str().unwrap();
            assert!(
                shown["error"]["code"] == "node_unavailable" && message.contains(reason) && message.contains("no order exists"),
                "{shown}"
            );
        }
        assert!(server.seen().is_empty(), "{:?}", server.lines());
        // Two of three are enough.
        let three = whole.home.file("nodes.json", &json!({"base": [good.base, bad.base, other.base]}).to_string());
        let output = whole.run(&server.base, &with(&whole, &[("--nodes", Some(&three))], &["--dry-run"]));
        assert!(output.status.success(), "{}", said(&output));
    }
}

#[test]
fn an_index_is_taken_only_for_an_order_that_can_be_made() {
    let whole = Whole::new("index");
    let store = || countersign_store::Store::open(whole.home.path.join(".local/share/countersign")).unwrap();
    let server = whole.service.start();
    // No solver offers the swap.
    let (service, id) = (whole.service.clone(), whole.service.fixture.order_id().to_owned());
    let empty = Server::start(move |seen| if seen.path() == "/v2/quote" { Reply::ok(&json!([])) } else { service.answer(seen) });
    let derived = with(&whole, &[("--secret-file", None)], &[]);
    assert_eq!(whole.run(&empty.base, &derived).status.code(), Some(1));
    let zero = with(&whole, &[("--secret-file", None), ("--to-owner", Some("0x0000000000000000000000000000000000000000"))], &[]);
    assert_eq!(whole.run(&server.base, &zero).status.code(), Some(2));
    assert_eq!(store().next_index().unwrap().index, 0);
    // Nothing is derived for an order with a secret of its own on chains with accounts.
    let output = whole.run(&server.base, &whole.begin);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(store().next_index().unwrap().index, 0);
    assert!(whole.home.kept(&id, "order.json").exists());
}

/// The list of what must hold before an order is paid, as far as a chain is connected. What the redemption costs is compared with the quote.
#[test]
fn a_dry_run_shows_what_must_hold_before_an_order_is_paid() {
    let whole = Whole::new("preconditions");
    let (base, arbitrum) = (node(3), node_of("0xa4b1", 3));
    let server = whole.service.start();
    let nodes = whole.home.file("nodes.json", &json!({"base": [base.base], "arbitrum": [arbitrum.base]}).to_string());
    let mut arguments = with(&whole, &[("--nodes", Some(&nodes))], &["--dry-run"]);
    // Somebody who trusts the service needs no coins to redeem.
    arguments.retain(|argument| argument != "--trust-the-service");
    let output = whole.run(&server.base, &[&arguments[..], &["--json".to_owned()]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let shown: Value = serde_json::from_str(&out(&output)).unwrap();
    let list = shown["preconditions"].as_array().unwrap_or_else(|| panic!("{shown}"));
    let named = |chain: &str| {
        let of_chain = list.iter().filter(|met| met["chain"] == chain);
        of_chain.map(|met| met["precondition"].as_str().unwrap()).collect::<std::collections::BTreeSet<_>>()
    };
    let all = [
        "decimals",
        "finality_mark",
        "known_chains",
        "lower_height",
        "mint",
        "node_version",
        "payout",
        "pinned_asset",
        "receiver",
        "redeemer",
    ];
    assert_eq!(named("arbitrum"), all.into(), "{shown}");
    assert_eq!(
        named("base"),
        ["decimals", "known_chains", "lower_height", "mint", "node_version", "pinned_asset", "receiver"].into(),
        "what a refund needs"
    );
    let words = whole.run(&server.base, &arguments);
    assert!(out(&words).contains("arbitrum: redeemer: the account that redeems can pay the fee"), "{}", out(&words));
    assert_eq!(out(&words).matches("holds").count(), list.len());
    // What a chain refuses is nothing that the user could correct in the input.
    let poor = node_with("0xa4b1", 3, "0x0");
    let nodes = whole.home.file("poor.json", &json!({"base": [base.base], "arbitrum": [poor.base]}).to_string());
    *arguments.iter_mut().find(|argument| argument.ends_with("nodes.json")).unwrap() = nodes;
    let output = whole.run(&server.base, &[&arguments[..], &["--json".to_owned()]].concat());
    let shown: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!((output.status.code(), &shown["error"]["code"]), (Some(1), &json!("insufficient_funds")), "{shown}");
    // Without a connection nothing is asked, and nothing is listed.
    let output = whole.run(&server.base, &with(&whole, &[], &["--dry-run", "--json"]));
    let shown: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(shown["preconditions"], json!([]));
}
