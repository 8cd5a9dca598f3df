//! `countersign node check` and `countersign balance` against endpoints that answer, lie or fail.

use crate::home::{Home, NOWHERE, out, said};
use crate::support::{Fixture, Reply, Seen, Server};
use serde_json::{Value, json};

/// A hash that no block has. `node check` prints what the node returns.
const HASH: &str = "0x1111111111111111111111111111111111111111111111111111111111111111";

/// Returns what a token of the fixtures shows as its decimals.
pub fn decimals(call: &Value) -> Value {
    let registry: Value = serde_json::from_str(&Fixture::load("evm-record-evm-v2").registry).unwrap();
    let to = call["params"][0]["to"].as_str().unwrap();
    let is_token = |asset: &&Value| asset["token"]["address"].as_str().is_some_and(|token| token.eq_ignore_ascii_case(to));
    let assets = registry["assets"].as_array().unwrap();
    json!(format!("{:#066x}", assets.iter().find(is_token).unwrap()["decimals"].as_u64().unwrap()))
}

/// A node of an EVM chain.
fn answer(seen: &Seen, chain_id: &str, balance: &str, age: i64) -> Reply {
    answer_but(seen, chain_id, balance, age, |_| None)
}

/// A node of an EVM chain, except for the results that `lie` gives.
fn answer_but(seen: &Seen, chain_id: &str, balance: &str, age: i64, lie: fn(&Value) -> Option<Value>) -> Reply {
    let result = |call: &Value| {
        let result = match call["method"].as_str().unwrap() {
            _ if lie(call).is_some() => lie(call).unwrap(),
            "eth_chainId" => json!(chain_id),
            "eth_getBlockByNumber" => {
                json!({"number": "0x10", "hash": HASH, "timestamp": format!("{:#x}", chrono::Utc::now().timestamp() - age)})
            }
            "eth_getBalance" => json!(balance),
            "eth_call" => decimals(call),
            other => panic!("{other}"),
        };
        json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
    };
    let reply = match serde_json::from_str(&seen.text()).unwrap() {
        Value::Array(calls) => Value::Array(calls.iter().map(result).collect()),
        call => result(&call),
    };
    Reply::json(200, reply.to_string())
}

fn node(chain_id: &'static str, balance: &'static str) -> Server {
    Server::start(move |seen| answer(seen, chain_id, balance, 7))
}

/// A node of Base whose newest block has this age in seconds.
fn aged(age: i64) -> Server {
    Server::start(move |seen| answer(seen, "0x2105", "0x0", age))
}

struct Checked {
    home: Home,
    registry: String,
}

impl Checked {
    fn new(name: &str) -> Self {
        let home = Home::new(&format!("nodes-{name}"));
        let registry = home.file("registry.json", &Fixture::load("evm-record-evm-v2").registry);
        Self { home, registry }
    }

    /// Runs a command with a `nodes.json`.
    fn run(&self, command: &[&str], nodes: &Value) -> (Option<i32>, Value, String) {
        let nodes = self.home.file("nodes.json", &nodes.to_string());
        let output = self.home.run(NOWHERE, &[command, &["--registry", &self.registry, "--nodes", &nodes, "--json"]].concat());
        (output.status.code(), serde_json::from_str(&out(&output)).unwrap_or_default(), said(&output))
    }
}

#[test]
fn each_endpoint_shows_its_chain_and_its_newest_block() {
    let checked = Checked::new("check");
    let (base, other) = (node("0x2105", "0x0"), node("0x1", "0x0"));
    let failing = Server::start(|_| Reply::json(503, "<html>busy</html>"));
    let key = |server: &Server, key: &str| format!("{}/{key}", server.base);
    let nodes = json!({"base": [key(&base, "private-key-1"), key(&other, "private-key-2"), key(&failing, "private-key-3")]});
    let (code, shown, said) = checked.run(&["node", "check"], &nodes);
    assert_eq!((code, &shown["ok"]), (Some(3), &json!(false)), "{said}");
    let endpoints = shown["endpoints"].as_array().unwrap();
    assert_eq!((&endpoints[0]["ok"], &endpoints[0]["height"], &endpoints[0]["hash"]), (&json!(true), &json!(16), &json!(HASH)));
    assert!((6..60).contains(&endpoints[0]["head_age"].as_u64().unwrap()));
    assert!(endpoints[1]["error"].as_str().unwrap().contains("another chain: 1 instead of 8453"), "{said}");
    assert!(endpoints[2]["error"].as_str().unwrap().contains("503"), "{said}");
    assert!(shown["warnings"][0].as_str().unwrap().contains("1 endpoints answer, and 2 must agree"), "{said}");
    // Paths of endpoints are keys of accounts.
    assert!(!said.contains("private-key"), "{said}");
}

#[test]
fn one_endpoint_alone_is_a_warning() {
    let checked = Checked::new("alone");
    let base = node("0x2105", "0x0");
    let (code, shown, said) = checked.run(&["node", "check"], &json!({"base": [base.base]}));
    assert_eq!((code, &shown["ok"]), (Some(0), &json!(true)), "{said}");
    assert!(shown["warnings"][0].as_str().unwrap().contains("would go unnoticed"), "{said}");
}

/// An old block hides what happened since, and one from the future means that a clock is wrong.
#[test]
fn old_and_future_blocks_are_warnings() {
    let checked = Checked::new("heads");
    let (good, old, slightly, future) = (aged(7), aged(600), aged(-30), aged(-300));
    let nodes = json!({"base": [good.base, old.base, slightly.base, future.base]});
    let (code, shown, said) = checked.run(&["node", "check"], &nodes);
    assert_eq!((code, &shown["ok"]), (Some(0), &json!(true)), "{said}");
    let warnings: Vec<_> = shown["warnings"].as_array().unwrap().iter().map(|warning| warning.as_str().unwrap()).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let host = |server: &Server| server.base.trim_start_matches("http://").to_owned();
    assert!(warnings[0].contains(&host(&old)) && warnings[0].contains("s old, and at most 120 s"), "{warnings:?}");
    assert!(warnings[1].contains(&host(&future)) && warnings[1].contains("ahead of the clock"), "{warnings:?}");
    assert!((295..=300).contains(&shown["endpoints"][3]["head_ahead"].as_u64().unwrap()), "{said}");
}

#[test]
fn a_balance_is_what_the_chain_says() {
    let checked = Checked::new("balance");
    let base = node("0x2105", "0xde0b6b3a7640000");
    let command = ["balance", "base:eth", "0x00000000000000000000000000000000000000aa"];
    let (code, shown, said) = checked.run(&command, &json!({"base": [base.base]}));
    assert_eq!((code, &shown["base_units"]), (Some(0), &json!("1000000000000000000")), "{said}");
    // A node of another chain knows nothing of this one.
    let other = node("0x1", "0xde0b6b3a7640000");
    let (code, shown, said) = checked.run(&command, &json!({"base": [other.base]}));
    assert_eq!((code, &shown["error"]["code"]), (Some(3), &json!("node_wrong_chain")), "{said}");
    let (code, _, said) = checked.run(&command, &json!({}));
    assert!(code == Some(2) && said.contains("not connected to base"), "{said}");
}

/// A node of Tron that shows its genesis block and the balance of every account.
#[test]
fn a_balance_on_tron_is_what_the_chain_says() {
    let checked = Checked::new("tron");
    let node = |genesis: &'static str| {
        Server::start(move |seen| {
            let body = match seen.path() {
                "/wallet/getblockbynum" => format!(r#"{{"blockID":"{}{genesis}","block_header":{{"raw_data":{{}}}}}}"#, "0".repeat(56)),
                _ => r#"{"balance":2500001}"#.to_owned(),
            };
            Reply::json(200, body)
        })
    };
    let command = ["balance", "tron:trx", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"];
    let (tron, other) = (node("2b6653dc"), node("cd8690dc"));
    let (code, shown, said) = checked.run(&command, &json!({"tron": [tron.base]}));
    assert_eq!((code, &shown["base_units"]), (Some(0), &json!("2500001")), "{said}");
    let (code, shown, said) = checked.run(&command, &json!({"tron": [other.base]}));
    assert_eq!((code, &shown["error"]["code"]), (Some(3), &json!("node_wrong_chain")), "{said}");
}

#[test]
fn endpoints_that_are_not_safe_or_misspelt_are_refused_without_being_shown() {
    let checked = Checked::new("refused");
    for nodes in [
        json!({"base": ["http://base.example/private-key"]}),
        json!({"base": ["ftp://base.example/private-key"]}),
        json!({"base": ["private-key"]}),
        json!({"base": []}),
        json!({"base": {"endpoints": ["https://base.example/private-key"], "quorum": 2}}),
        json!({"base": {"endpoints": ["https://base.example/private-key", "https://two.example/private-key"], "quorum": 1}}),
        json!({"base": {"endpoint": ["https://base.example/private-key"]}}),
        json!(["https://base.example/private-key"]),
    ] {
        let (code, _, said) = checked.run(&["node", "check"], &nodes);
        assert!(code == Some(2) && !said.contains("private-key"), "{nodes}: {said}");
    }
    // A chain that is not pinned is refused, also beside others: it would be missing once the order is paid.
    let base = node("0x2105", "0x0");
    for name in ["bsae", "Base"] {
        let nodes = json!({"base": [base.base], name: ["https://base.example/private-key"]});
        let (code, _, said) = checked.run(&["node", "check"], &nodes);
        assert!(code == Some(2) && said.contains(name) && !said.contains("private-key"), "{said}");
    }
}

/// The reads that evidence will need are tried, and a denial by a quorum is not "ok".
#[test]
fn what_the_endpoints_do_not_serve_is_named() {
    let checked = Checked::new("serves");
    let node = |lie: fn(&Value) -> Option<Value>| Server::start(move |seen| answer_but(seen, "0x2105", "0x0", 7, lie));
    let without_mark = node(|call| (call["params"][0] == "safe").then_some(Value::Null));
    let with_other_decimals = node(|call| (call["method"] == "eth_call").then(|| json!(format!("{:#066x}", 77))));
    for (server, words) in [(&without_mark, "finality_mark"), (&with_other_decimals, "decimals")] {
        let (code, shown, said) = checked.run(&["node", "check"], &json!({"base": [server.base]}));
        assert_eq!((code, &shown["ok"]), (Some(3), &json!(false)), "{said}");
        assert!(shown["warnings"].to_string().contains(words), "{shown}");
    }
}

/// Three keys of one host count as one endpoint, and the program says so.
#[test]
fn endpoints_of_one_host_are_said_to_count_once() {
    let checked = Checked::new("provider");
    let base = node("0x2105", "0x0");
    let urls: Vec<_> = ["one", "two", "three"].map(|key| format!("{}/{key}", base.base)).into();
    let (code, shown, said) = checked.run(&["node", "check"], &json!({"base": {"endpoints": urls, "quorum": 2}}));
    assert_eq!(code, Some(0), "{said}");
    assert!(shown["warnings"][0].as_str().unwrap().contains("all 3 endpoints are of one provider"), "{shown}");
    let named: Vec<_> = urls.iter().zip(["a", "b", "c"]).map(|(url, name)| json!({"url": url, "provider": name})).collect();
    let (code, shown, said) = checked.run(&["node", "check"], &json!({"base": named}));
    assert_eq!((code, shown["warnings"].as_array().unwrap().len()), (Some(0), 0), "{said}");
}

/// One proxy for all https connections: an endpoint's, too. Empty variables count as not set.
#[test]
fn the_proxy_reaches_chains_and_empty_variables_are_none() {
    let checked = Checked::new("proxy");
    let nodes = checked.home.file("nodes.json", &json!({"base": ["https://base.invalid/private-key"]}).to_string());
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&asked);
    let proxy = Server::start(move |_| {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Reply::json(502, "")
    });
    let run = |variables: &[(&str, &str)], more: &[&str]| {
        let arguments = [&["node", "check", "--registry", &checked.registry, "--nodes", &nodes, "--json"], more].concat();
        let output = checked.home.run_with(NOWHERE, &arguments, variables, "");
        (output.status.code(), said(&output), asked.swap(0, std::sync::atomic::Ordering::SeqCst))
    };
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        let (_, said, count) = run(&[(name, &proxy.base)], &[]);
        assert!(count > 0, "{name}: {said}");
        let (_, said, count) = run(&[(name, &proxy.base), ("NO_PROXY", ".invalid")], &[]);
        assert_eq!(count, 0, "{name}: {said}");
        let (code, said, _) = run(&[(name, "")], &[]);
        assert_eq!(code, Some(3), "{name}: {said}");
        let (code, said, _) = run(&[(name, "socks5://user:pa55w0rd@127.0.0.1:1")], &[]);
        assert!(code == Some(2) && said.contains(name) && !said.contains("pa55w0rd"), "{said}");
    }
    assert!(run(&[], &["--proxy", &proxy.base]).2 > 0);
    for name in ["COUNTERSIGN_REGISTRY", "COUNTERSIGN_NODES", "COUNTERSIGN_BASE_URL"] {
        let (code, said, _) = run(&[(name, "")], &[]);
        assert_eq!(code, Some(3), "{name}: {said}");
    }
}
