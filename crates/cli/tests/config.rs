//! Tests the configuration file, which has defaults for values given neither by an argument nor by the environment.
//! Also tests amounts in whole units.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use crate::home::{Home, NOWHERE, out, said};
use crate::support::{Fixture, Server, Service};
use countersign_store::Store;
use serde_json::{Value, json};

struct User {
    home: Home,
    fixture: Fixture,
    case: String,
}

impl User {
    fn new(name: &str) -> Self {
        let home = Home::new(&format!("config-{name}"));
        let fixture = Fixture::load("evm-record-evm-v2");
        let mut wallet = fixture.wallet.clone();
        let key = wallet.as_object_mut().unwrap().remove("secret_key").unwrap();
        home.file(".config/countersign/registry.json", &fixture.registry);
        home.file(".config/countersign/key.txt", key.as_str().unwrap());
        let case = json!({"id": "1", "request": fixture.request, "response": fixture.response, "order": fixture.order, "wallet": wallet});
        Self { case: home.file("case.json", &case.to_string()), home, fixture }
    }

    fn config(&self, config: &Value) {
        self.home.file(".config/countersign/config.json", &config.to_string());
    }

    fn path(&self) -> PathBuf {
        self.home.path.join(".config/countersign/config.json")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.home.run(NOWHERE, arguments)
    }

    fn refused(&self, arguments: &[&str], reason: &str) {
        let output = self.run(arguments);
        assert!(output.status.code() == Some(2) && said(&output).contains(reason), "{reason}: {}", said(&output));
    }
}

#[test]
fn registry_and_key_come_from_the_file_and_what_is_named_comes_first() {
    let user = User::new("defaults");
    let sign = ["sign", "--case", &*user.case, "--json"];
    user.refused(&sign, "--registry");
    user.config(&json!({"registry": "registry.json"}));
    user.refused(&sign, "no key");
    user.config(&json!({"registry": "registry.json", "key_file": "key.txt"}));
    let signed = user.run(&sign);
    assert_eq!(signed.status.code(), Some(0), "{}", said(&signed));
    let shown: Value = serde_json::from_str(&out(&signed)).unwrap();
    assert_eq!(shown["artefacts"]["initiate"]["signed"], user.fixture.expect["initiate"]["signed"]);
    // What an external signer has to sign is still printed, not signed.
    let prepared = user.run(&["prepare", "--case", &user.case, "--json"]);
    assert!(prepared.status.success() && !out(&prepared).contains("\"signed\""), "{}", said(&prepared));
    // An argument or a variable comes first.
    let broken = user.home.file("broken.json", "{");
    user.refused(&[&sign[..], &["--registry", &broken]].concat(), "broken.json");
    let output = user.home.run_with(NOWHERE, &sign, &[("COUNTERSIGN_REGISTRY", &broken)], "");
    assert!(output.status.code() == Some(2) && said(&output).contains("broken.json"), "{}", said(&output));
    let other = user.home.file("other.txt", &"12".repeat(32));
    assert_eq!(user.run(&[&sign[..], &["--key-file", &other]].concat()).status.code(), Some(1));
}

#[test]
fn the_policy_comes_from_the_file() {
    let user = User::new("policy");
    user.home.file(".config/countersign/policy.json", r#"{"refused_warnings": ["no_such_warning"]}"#);
    user.config(&json!({"registry": "registry.json", "policy": "policy.json"}));
    user.refused(&["explain", "--case", &user.case], "policy.json");
}

#[test]
fn the_state_directory_comes_from_the_file() {
    let user = User::new("state");
    user.config(&json!({"state": "~/swaps"}));
    let swaps = user.home.path.join("swaps");
    let people = user.run(&["orders"]);
    assert!(people.status.success() && out(&people).contains(swaps.to_str().unwrap()), "{}", said(&people));
    Store::open(&swaps).unwrap();
    assert!(!out(&user.run(&["orders"])).contains("does not exist"));
    let other = user.home.path.join("other");
    assert!(out(&user.run(&["orders", "--state", other.to_str().unwrap()])).contains("other does not exist"));
}

#[test]
fn a_file_that_cannot_be_used_is_an_error_and_a_missing_one_is_not() {
    let user = User::new("unusable");
    assert!(user.run(&["orders"]).status.success());
    for (config, reason) in [
        (json!({"registery": "registry.json"}), "/registery"),
        (json!({"Owners": {}}), "/Owners"),
        (json!({"owners": {"Ethereum": "0xab"}}), "/owners/Ethereum"),
        (json!({"base_url": 7}), "/base_url"),
        (json!([]), "config.json"),
    ] {
        user.config(&config);
        user.refused(&["orders"], reason);
    }
    fs::write(user.path(), "{\"base_url\": \"a\",").unwrap();
    user.refused(&["orders"], "config.json");
    fs::write(user.path(), r#"{"state": "a", "state": "b"}"#).unwrap();
    user.refused(&["orders"], "config.json");
    fs::remove_file(user.path()).unwrap();
    fs::create_dir(user.path()).unwrap();
    user.refused(&["orders"], "config.json");
    #[cfg(unix)]
    {
        fs::remove_dir(user.path()).unwrap();
        std::os::unix::fs::symlink("nowhere", user.path()).unwrap();
        user.refused(&["orders"], "config.json");
    }
}

/// The user gives whole units and no owners. The request that would be sent has base units and both owners.
#[test]
fn owners_come_from_the_file_and_amounts_in_whole_units() {
    let user = User::new("owners");
    let server: Server = Service::new(user.fixture.clone()).start();
    let owner = |leg: &str| user.fixture.request[leg]["owner"].clone();
    user.config(&json!({"registry": "registry.json", "owners": {"base": owner("source"), "arbitrum": owner("destination")}}));
    let dry = |arguments: &[&str]| {
        let all = [&["swap", "--dry-run", "--json", "--from", "base:eth", "--to", "arbitrum:eth"], arguments].concat();
        user.home.run(&server.base, &all)
    };
    for amount in ["1 eth", "1.000000000000000000 ETH", "1000000000000000000"] {
        let output = dry(&["--amount", amount, "--at-least", "0.998 eth"]);
        assert_eq!(output.status.code(), Some(0), "{amount}: {}", said(&output));
        let request = serde_json::from_str::<Value>(&out(&output)).unwrap()["request"].clone();
        for leg in ["source", "destination"] {
            assert_eq!((&request[leg]["owner"], &request[leg]["amount"]), (&owner(leg), &user.fixture.request[leg]["amount"]), "{request}");
        }
    }
    let other = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    let request: Value = serde_json::from_str(&out(&dry(&["--amount", "1 eth", "--to-owner", other]))).unwrap();
    assert_eq!(request["request"]["destination"]["owner"], other);
    // The floor is in the destination's units.
    let low = dry(&["--amount", "1 eth", "--at-least", "0.998000000000000001 eth"]);
    assert!(low.status.code() == Some(1) && out(&low).contains("quote_too_low"), "{}", said(&low));
    let before = server.seen().len();
    for (amount, least) in [("1.5", "1"), ("1 usdc", "1"), ("1.0000000000000000001 eth", "1"), ("1 eth", "1 btc"), ("1 eth", "0.5")] {
        assert_eq!(dry(&["--amount", amount, "--at-least", least]).status.code(), Some(2), "{amount} {least}");
    }
    let asked: Vec<_> = server.lines().split_off(before).into_iter().filter(|line| line.contains("quote")).collect();
    assert!(asked.is_empty(), "{asked:?}");

    let quote = |arguments: &[&str]| user.home.run(&server.base, &[&["quote", "base:eth", "arbitrum:eth"], arguments].concat());
    assert!(quote(&["1.5 eth"]).status.success());
    assert!(server.lines().pop().unwrap().contains("from_amount=1500000000000000000"));
    assert!(quote(&["--receive", "0.5 eth"]).status.success());
    assert!(server.lines().pop().unwrap().contains("to_amount=500000000000000000"));
    assert_eq!(quote(&["1.5"]).status.code(), Some(2));
    // Base units need no registry, whole units do.
    user.config(&json!({}));
    assert!(quote(&["5000"]).status.success() && quote(&["1 eth"]).status.code() == Some(2));
}
