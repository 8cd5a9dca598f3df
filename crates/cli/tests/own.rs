//! The user's own input: files, keys, addresses, amounts, ids. Each error names where it is, and what to write in its place.

use std::fs;

use crate::home::{Home, NOWHERE, said};
use crate::support::{Fixture, Service};
use serde_json::{Value, json};

struct User {
    home: Home,
    fixture: Fixture,
    registry: String,
}

impl User {
    fn new(name: &str) -> Self {
        let (home, fixture) = (Home::new(&format!("own-{name}")), Fixture::load("evm-record-evm-v2"));
        let registry = home.file("registry.json", &fixture.registry);
        Self { home, fixture, registry }
    }

    /// Runs the program while nothing listens. Returns its output with exit code 2.
    fn told(&self, arguments: &[&str]) -> String {
        let output = self.home.run(NOWHERE, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        said(&output)
    }

    fn swap<'a>(&'a self, amount: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let owner = |leg: &str| self.fixture.request[leg]["owner"].as_str().unwrap();
        let swap = ["swap", "--dry-run", "--registry", &self.registry, "--from", "base:eth", "--to", "arbitrum:eth", "--amount", amount];
        let owners = ["--from-owner", owner("source"), "--to-owner", owner("destination")];
        [&swap[..], &owners, more].concat()
    }
}

#[test]
fn an_error_in_a_file_is_said_once_with_its_line_and_column() {
    let user = User::new("files");
    let config = user.home.path.join(".config/countersign/config.json");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    for (text, words) in [
        ("{\n  \"owners\": {\n    \"Base\": \"0x1\"}}", "line 3, column 5: asset_id_malformed at /owners/Base: write base; got Base"),
        ("{\n // mine\n \"state\": \"x\"}", "line 2, column 2: json_syntax: JSON has no comments"),
        ("{'state': 'x'}", "line 1, column 2: json_syntax: JSON has no single quotes"),
        ("{\"state\": \"x\",\n}", "line 1, column 14: json_syntax: there is a comma before the closing bracket"),
        ("\u{feff}{}", "line 1, column 1: json_syntax: the file begins with a byte order mark"),
        ("{\"state\":\n 7}", "line 1, column 2: wrong_type at /state"),
    ] {
        fs::write(&config, text).unwrap();
        let told = user.told(&user.swap("1 eth", &[]));
        let place = format!("config.json, {words}");
        assert_eq!(told.matches(&place).count(), 1, "{place}: {told}");
        assert_eq!(told.matches("config.json").count(), 1, "{told}");
    }
    fs::remove_file(&config).unwrap();
    let file = |name: &str, text: &str| user.home.file(name, text);
    let text = user.fixture.registry.replacen("\"chain\"", "\"chian\"", 1);
    let registry = file("wrong.json", &text);
    let policy = file("policy.json", "{\n  \"evm_timelock\": \"x\"}");
    let nodes = file("nodes.json", "{\"base\": [\n  \"not a url\"]}");
    let wallet = file("wallet.json", "{\n\"nonce\": 7,\n\"gas\": 1}");
    let request = file("request.json", "{\"source\":\n {\"asset\": 7}}");
    for (arguments, words) in [
        (&["registry", "show", &registry][..], "wrong.json, line 3, column 3: ".to_owned()),
        (&["node", "check", "--registry", &user.registry, "--policy", &policy], "policy.json, line 2, column 3: ".to_owned()),
        (&["node", "check", "--registry", &user.registry, "--nodes", &nodes], "nodes.json, line 2, column 3: ".to_owned()),
        (&["order", "create", "--registry", &user.registry, "--request", &request], "request.json, line 1, column 2: ".to_owned()),
        (&user.swap("1 eth", &["--wallet", &wallet]), "wallet.json, line ".to_owned()),
    ] {
        let told = user.told(arguments);
        assert_eq!(told.matches(&words).count(), 1, "{words}: {told}");
    }
}

#[test]
fn a_chain_that_is_misspelt_has_its_place_and_the_right_name() {
    let user = User::new("chains");
    for (name, words) in [
        ("Base", "write base"),
        ("bsae", "write base"),
        ("Arbitrum", "write arbitrum"),
        ("arbitrumm", "write arbitrum"),
        ("atlantis", "use the chain names of asset ids"),
    ] {
        let nodes = user.home.file("nodes.json", &format!("{{\n \"{name}\": [\"https://127.0.0.1:9\"]}}"));
        let place = format!("nodes.json, line 2, column 2: not a chain of the registry: {words}; got {name}");
        for arguments in
            [&["node", "check", "--registry", &user.registry, "--nodes", &nodes][..], &user.swap("1 eth", &["--nodes", &nodes])]
        {
            assert_eq!(user.told(arguments).matches(&place).count(), 1, "{place}: {}", user.told(arguments));
        }
        let node = format!("{name}=https://127.0.0.1:9");
        let told = user.told(&["node", "check", "--registry", &user.registry, "--node", &node]);
        assert!(told.contains(&format!("--node: not a chain of the registry: {words}")), "{told}");
    }
}

#[test]
fn a_key_that_is_none_has_its_file_and_the_expected_form() {
    let user = User::new("keys");
    let key = user.fixture.wallet["secret_key"].as_str().unwrap().trim_start_matches("0x").to_owned();
    let mut wallet = user.fixture.wallet.clone();
    wallet.as_object_mut().unwrap().remove("secret_key");
    let own = user.home.file("wallet.json", &wallet.to_string());
    let case = json!({"request": user.fixture.request, "response": user.fixture.response, "order": user.fixture.order, "wallet": wallet});
    let case = user.home.file("case.json", &case.to_string());
    let sign = ["sign", "--registry", &user.registry, "--case", &case];
    let phrase = format!("{}about", "abandon ".repeat(11));
    for (text, words) in [
        (format!("\u{feff}{key}"), "byte order mark"),
        (format!("0X{key}"), "0X"),
        (format!("\"{key}\""), "quotes"),
        (format!("KEY={key}"), "name with ="),
        (phrase, "words of a wallet"),
        (String::new(), "empty"),
    ] {
        let file = user.home.file("my-key.txt", &text);
        let signed = user.home.run(NOWHERE, &[&sign[..], &["--key-file", &file, "--json"]].concat());
        assert_eq!(signed.status.code(), Some(1), "{}", said(&signed));
        for told in [said(&signed), user.told(&user.swap("1 eth", &["--key-file", &file, "--wallet", &own]))] {
            assert!(told.contains("my-key.txt: ") && told.contains(words), "{words}: {told}");
            assert!(told.contains("key_malformed") && told.contains("64 hex digits"), "{words}: {told}");
            assert!(!told.contains(&key) && !told.contains("abandon"), "{told}");
        }
        let given = user.home.run_with(NOWHERE, &[&sign[..], &["--key-env", "MINE"]].concat(), &[("MINE", &text)], "");
        assert!(said(&given).contains("variable MINE: ") && said(&given).contains(words), "{}", said(&given));
    }
    // These may be keys elsewhere, so the chain decides.
    for (text, words) in [(format!("{key}zz"), "64 hex digits"), (format!("{key}\n{key}"), "without other words or lines")] {
        let file = user.home.file("my-key.txt", &text);
        let output = user.home.run(NOWHERE, &[&sign[..], &["--key-file", &file]].concat());
        let told = said(&output);
        assert!(output.status.code() == Some(1) && told.contains("my-key.txt: ") && told.contains(words), "{told}");
        assert!(!told.contains(&key), "{told}");
        user.home.file(".config/countersign/config.json", &json!({ "key_file": file }).to_string());
        let told = user.told(&user.swap("1 eth", &["--wallet", &own]));
        assert!(told.contains("my-key.txt: ") && told.contains(words) && !told.contains(&key), "{told}");
        fs::remove_file(user.home.path.join(".config/countersign/config.json")).unwrap();
    }
}

#[test]
fn a_url_that_cannot_be_used_says_where_it_is_from() {
    let user = User::new("url");
    let run = |base: &str, arguments: &[&str]| {
        let output = user.home.run(base, &[&["health"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        said(&output)
    };
    assert!(run("nonsense", &[]).contains("COUNTERSIGN_BASE_URL: "));
    assert!(run(NOWHERE, &["--base-url", "http://far.example"]).contains("--base-url: "));
    for url in ["https://service.example/v2", "https://service.example/v2/"] {
        let told = run(NOWHERE, &["--base-url", url]);
        assert!(told.contains("--base-url: ") && told.contains("without /v2"), "{told}");
    }
    user.home.file(".config/countersign/config.json", &json!({ "base_url": "nonsense" }).to_string());
    // An empty variable counts as unset.
    let told = run("", &[]);
    assert!(told.contains("base_url in ") && told.contains("config.json: "), "{told}");
    assert!(run("http://user:pa55@127.0.0.1", &[]).contains("COUNTERSIGN_BASE_URL: "));
    assert!(!run("http://user:pa55@127.0.0.1", &[]).contains("pa55"));
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let user = User::new("variables");
    let server = Service::new(user.fixture.clone()).start();
    let names = ["COUNTERSIGN_REGISTRY", "COUNTERSIGN_STATE", "COUNTERSIGN_NODES", "COUNTERSIGN_POLICY", "COUNTERSIGN_CONFIG"];
    let proxies = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"];
    let empty: Vec<_> = names.iter().chain(&proxies).map(|name| (*name, "")).collect();
    let dry = user.swap("1 eth", &[]);
    for arguments in [&["orders"][..], &dry] {
        let output = user.home.run_with(&server.base, arguments, &empty, "");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    }
    user.home.file(".config/countersign/config.json", &json!({ "registry": user.registry }).to_string());
    let show = user.home.run_with(&server.base, &["node", "check"], &empty, "");
    assert!(said(&show).contains("no endpoint"), "the registry of the configuration file: {}", said(&show));
}

#[test]
fn an_amount_of_another_form_says_what_to_write() {
    let user = User::new("amounts");
    for (amount, words) in [
        ("1,5 eth", "use a point, not a comma"),
        ("1e15", "write all digits"),
        ("1_000", "without separators"),
        ("0x10", "decimal digits"),
        ("1.5", "add the symbol"),
    ] {
        let told = user.told(&user.swap(amount, &[]));
        assert!(told.contains(amount) && told.contains(words), "{told}");
    }
}

#[test]
fn an_order_id_that_is_none_is_the_users_error() {
    let user = User::new("ids");
    user.home.file(".config/countersign/config.json", &json!({ "registry": user.registry }).to_string());
    let long = "f".repeat(65);
    for id in ["123", "zz", "dead", "../../etc", &long, ""] {
        for command in [
            &["redeem", id][..],
            &["redeem", "--self", id],
            &["refund", id],
            &["refund", "--self", id],
            &["instant-refund", id],
            &["bump", id],
            &["swap", "--resume", id],
            &["swap", "--resume", id, "--dry-run"],
            &["order", "show", id],
            &["order", "watch", id],
            &["match", "--stored", id, "--id", "0x00"],
        ] {
            let told = user.told(command);
            assert!(!told.contains("service;") && !told.contains("do not sign") && !told.contains("report"), "{command:?}: {told}");
            let words = if id == "dead" { "no stored order begins with this" } else { "64 hex digits" };
            assert!(told.contains(words), "{command:?}: {told}");
        }
        let json: Value = serde_json::from_slice(&user.home.run(NOWHERE, &["redeem", id, "--json"]).stdout).unwrap();
        assert_eq!((&json["ok"], &json["error"]["code"]), (&json!(false), &json!("usage")));
    }
}

#[test]
fn an_asset_without_its_chain_is_answered_with_an_example() {
    let user = User::new("symbol");
    for arguments in [&["quote", "usdc", "bitcoin:btc", "1"][..], &["swap", "--from", "usdc", "--to", "bitcoin:btc", "--amount", "1 usdc"]]
    {
        let told = user.told(arguments);
        assert!(told.contains("usdc: an asset is named with its chain, such as base:usdc; `countersign assets` lists them"), "{told}");
    }
}
