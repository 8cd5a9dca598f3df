//! Receipts and hash cards of the program: what is written, what is proven, and that no key is in it.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::home::{Home, NOWHERE, machine, out, said};
use serde_json::{Value, json};

/// The seed and the public key of the first test vector of RFC 8032, section 7.1.
const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// A fixture as files.
struct World {
    home: Home,
    line: Value,
    registry: String,
    case: String,
}

impl World {
    fn new(name: &str) -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        let lines = fs::read_to_string(fixtures.join("accept/evm.jsonl")).unwrap();
        let line = lines.lines().find(|line| line.starts_with("{\"id\":\"evm-record-evm-v3\"")).unwrap();
        let home = Home::new(name);
        let registry = home.file("registry.json", &fs::read_to_string(fixtures.join("registry.json")).unwrap());
        let case = home.file("case.json", &format!("{}}}", line.split_once(",\"note\":").unwrap().0));
        home.file("key.txt", &format!("{SEED}\n"));
        Self { line: serde_json::from_str(line).unwrap(), home, registry, case }
    }

    fn path(&self, name: &str) -> String {
        self.home.path.join(name).to_str().unwrap().to_owned()
    }

    fn explain(&self, arguments: &[&str]) -> Output {
        self.home.run(NOWHERE, &[&["explain", "--registry", &self.registry], arguments].concat())
    }

    fn check(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.home.run(NOWHERE, &[&["check-receipt", "--registry", &self.registry, "--json"], arguments].concat());
        (output.status.code().unwrap(), machine(&output).unwrap().0)
    }
}

#[test]
fn a_receipt_is_proven_and_has_no_key() {
    let world = World::new("receipt");
    let (receipt, key_file) = (world.path("receipt.json"), world.path("key.txt"));
    let written = world.explain(&["--case", &world.case, "--receipt", &receipt, "--receipt-key-file", &key_file]);
    assert!(written.status.success() && said(&written).contains("the receipt was written to"), "{}", said(&written));
    let text = fs::read_to_string(&receipt).unwrap();
    let key = world.line["wallet"]["secret_key"].as_str().unwrap();
    assert!(!text.contains(key) && !text.contains("secret_key") && !text.contains("\"wallet\"") && !text.contains(SEED), "{text}");
    // The texts of the case file, byte for byte.
    let value: Value = serde_json::from_str(&text).unwrap();
    let case = fs::read_to_string(&world.case).unwrap();
    for member in ["request", "response", "record"] {
        let text = value[member]["text"].as_str().unwrap();
        assert!(case.contains(&format!("\":{text}")), "{member}");
    }
    assert_eq!(value["hashes"]["typed_data_digest"], world.line["expect"]["artefacts"]["typed_data"]["digest"].as_str().unwrap()[2..]);

    let (code, proven) = world.check(&[&receipt, "--signer", PUBLIC]);
    assert_eq!((code, &proven["ok"], &proven["receipt"], &proven["signer"]), (0, &json!(true), &json!("proven"), &json!(PUBLIC)));
    let (code, other) = world.check(&[&receipt, "--signer", &"07".repeat(32)]);
    assert_eq!((code, &other["differences"][0]["at"]), (1, &json!("/public_key")));
    // A receipt is evidence: it is never overwritten.
    assert_eq!(world.explain(&["--case", &world.case, "--receipt", &receipt]).status.code(), Some(2));
    assert_eq!(fs::read_to_string(&receipt).unwrap(), text);

    // The same documents as separate files give the same receipt.
    let (apart, names) = (world.path("apart.json"), ["request", "response", "record"]);
    let files = names.map(|name| world.home.file(name, value[name]["text"].as_str().unwrap()));
    let written = world.explain(&["--request", &files[0], "--response", &files[1], "--order", &files[2], "--receipt", &apart]);
    assert!(written.status.success());
    let apart: Value = serde_json::from_slice(&fs::read(apart).unwrap()).unwrap();
    assert_eq!((&apart["digest"], apart.get("signature")), (&value["digest"], None));
}

#[test]
fn a_refused_order_keeps_its_exit_code_and_has_a_receipt() {
    let world = World::new("refused-receipt");
    let case = fs::read_to_string(&world.case).unwrap();
    let (refused, receipt) = (world.home.file("refused", &case.replace("\"Ok\"", "\"ok\"")), world.path("receipt.json"));
    let output = world.explain(&["--case", &refused, "--receipt", &receipt, "--json"]);
    assert_eq!((output.status.code(), &machine(&output).unwrap().0["error"]["code"]), (Some(1), &json!("status_not_ok")));
    let (code, proven) = world.check(&[&receipt]);
    assert_eq!((code, &proven["verdict"]["code"], &proven["signer"]), (0, &json!("status_not_ok"), &Value::Null));
    let text = world.home.run(NOWHERE, &["check-receipt", "--registry", &world.registry, &receipt]);
    assert!(out(&text).contains("status_not_ok") && out(&text).contains("/response/status"), "{}", out(&text));

    // What is refused beside the documents would be accepted from them alone, so there is no receipt.
    for (name, text) in [("misspelt", case.replace("\"order\":", "\"Order\":")), ("broken", case.replace("\"wallet\":", "\"wallet\""))] {
        let (file, receipt) = (world.home.file(name, &text), world.path("none.json"));
        let output = world.explain(&["--case", &file, "--receipt", &receipt]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(!Path::new(&receipt).exists(), "{name}: {}", said(&output));
    }
    for name in ["misspelt", "broken"] {
        let output = world.explain(&["--case", &world.path(name), "--receipt", &world.path("none.json")]);
        assert!(said(&output).contains("no receipt was written"), "{name}: {}", said(&output));
    }
    // A response that is not JSON is kept as it is.
    let (request, response) = (world.home.file("request", &world.line["request"].to_string()), world.home.path.join("response"));
    fs::write(&response, b"\xff{").unwrap();
    let receipt = world.path("not-json.json");
    let output = world.explain(&["--request", &request, "--response", response.to_str().unwrap(), "--receipt", &receipt]);
    let (code, proven) = world.check(&[&receipt]);
    assert_eq!((output.status.code(), code, &proven["verdict"]["code"]), (Some(1), 0, &json!("json_not_utf8")));
}

#[test]
fn a_key_that_is_none_writes_no_receipt() {
    let world = World::new("receipt-key");
    let (receipt, bad) = (world.path("receipt.json"), world.home.file("bad", &SEED[2..]));
    let output = world.explain(&["--case", &world.case, "--receipt", &receipt, "--receipt-key-file", &bad]);
    assert!(output.status.code() == Some(2) && !Path::new(&receipt).exists() && !said(&output).contains(&SEED[2..]), "{}", said(&output));
}

#[test]
fn prepare_shows_what_devices_show() {
    let world = World::new("hash-cards");
    let arguments = ["prepare", "--registry", &world.registry, "--case", &world.case];
    let text = out(&world.home.run(NOWHERE, &[&arguments[..], &["--hashes"]].concat()));
    let typed = &world.line["expect"]["artefacts"]["typed_data"];
    let domain = format!("     Domain hash  0x{}", typed["domain_separator"].as_str().unwrap()[2..].to_uppercase());
    assert!(text.contains("typed_data on Ledger, Ethereum app") && text.contains(&domain), "{text}");
    let (document, _) = machine(&world.home.run(NOWHERE, &[&arguments[..], &["--hashes", "--json"]].concat())).unwrap();
    let card = document["hashes"].as_array().unwrap().iter().find(|card| card["request"] == "typed_data").unwrap();
    assert!(
        card["values"].as_array().unwrap().iter().any(|value| value["label"] == "Digest" && value["value"] == typed["digest"]),
        "{card}"
    );
    let (document, _) = machine(&world.home.run(NOWHERE, &[&arguments[..], &["--json"]].concat())).unwrap();
    assert_eq!(document.get("hashes"), None);
}

/// The writer of a receipt chooses its policy, and a receipt has free text.
#[test]
fn a_receipt_says_under_which_policy_it_is_proven() {
    let world = World::new("receipt-policy");
    let policy = world.home.file("policy.json", r#"{"evm_timelock": 1000000000000000}"#);
    let (default, own) = (world.path("default.json"), world.path("own.json"));
    assert!(world.explain(&["--case", &world.case, "--receipt", &default]).status.success());
    assert!(world.explain(&["--case", &world.case, "--receipt", &own, "--policy", &policy]).status.success());
    let text = |arguments: &[&str]| {
        let output = world.home.run(NOWHERE, &[&["check-receipt", "--registry", &world.registry], arguments].concat());
        (output.status.code().unwrap(), out(&output))
    };
    let (code, shown) = text(&[&default]);
    assert!(code == 0 && shown.contains("policy  default\n"), "{shown}");
    let (code, shown) = text(&[&own]);
    assert!(code == 0 && shown.contains("policy  evm_timelock 1000000000000000 (default 86400)\n"), "{shown}");
    assert_eq!(world.check(&[&default]).1["policy"], json!("default"));
    let limit = json!([{"name": "evm_timelock", "value": 1_000_000_000_000_000_u64, "default": 86_400}]);
    assert_eq!(world.check(&[&own]).1["policy"], limit);

    // The checker's own policy: that of the file, else the default one.
    for (receipt, arguments, proven) in [
        (&default, vec!["--require-policy"], true),
        (&own, vec!["--require-policy"], false),
        (&own, vec!["--policy", &policy], true),
        (&default, vec!["--policy", &policy, "--require-policy"], false),
    ] {
        let (code, found) = world.check(&[&[receipt.as_str()], &arguments[..]].concat());
        assert_eq!((code == 0, &found["ok"]), (proven, &json!(proven)), "{arguments:?}: {found}");
        if !proven {
            assert_eq!(found["differences"][0]["at"], "/policy/evm_timelock");
            assert!(found["advice"].as_str().unwrap().contains("another policy than yours"), "{found}");
        }
    }
}

#[test]
fn free_text_of_a_receipt_draws_no_line() {
    let world = World::new("receipt-forged");
    let receipt = world.path("receipt.json");
    assert!(world.explain(&["--case", &world.case, "--receipt", &receipt]).status.success());
    let mut value: Value = serde_json::from_str(&fs::read_to_string(&receipt).unwrap()).unwrap();
    value["program"] = json!(format!("countersign{}signer  d75a98", " ".repeat(60)));
    let forged = world.home.file("forged.json", &value.to_string());
    let output = world.home.run(NOWHERE, &["check-receipt", "--registry", &world.registry, &forged]);
    let shown = out(&output);
    assert!(shown.contains("program  \"countersign \\u{0020}"), "{shown}");
    assert!(!shown.contains("  signer  d75a98") && !shown.contains("signer  d75a98"), "{shown}");
}
