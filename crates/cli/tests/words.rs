//! What the program writes: JSON alone for machines, commands that can be run as they are, errors that name the right person.

use std::fs;
use std::process::{Command, Output};

use crate::home::{Home, NOWHERE, command_after, is_forged, out, paste, said};
use crate::support::{Fixture, Reply, Server, Service, Step};
use crate::whole::Whole;
use countersign_client::Secret;
use serde_json::{Value, json};

/// Overrides the direction of the text after it.
const OVERRIDE: char = '\u{202e}';

/// Requires one document on stdout and JSON lines on stderr, and returns the document and the lines.
fn machine(output: &Output) -> (Value, Vec<Value>) {
    crate::home::machine(output).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn json_is_one_document_and_json_lines() {
    let whole = Whole::new("machine");
    let server = whole.service.start();
    let mut begin = whole.begin.clone();
    // The secret is derived, so that the rescue phrase is generated. The order of the service has another hash and is refused.
    let at = begin.iter().position(|argument| argument == "--secret-file").unwrap();
    begin.drain(at..at + 2);
    begin.push("--json".to_owned());
    let (refused, lines) = machine(&whole.run(&server.base, &begin));
    assert_eq!(refused["ok"], false);
    assert!(lines.iter().any(|line| line["message"].as_str().is_some_and(|text| text.contains("countersign phrase"))), "{lines:?}");

    let whole = Whole::new("machine-whole");
    let server = whole.service.start();
    let (complete, lines) = machine(&whole.run(&server.base, &[&whole.begin[..], &["--json".to_owned()]].concat()));
    assert_eq!(complete["ok"], true);
    let summary = lines.iter().find(|line| line["event"] == "summary").unwrap();
    assert!(!summary["summary"].as_array().unwrap().is_empty() && summary["warnings"].is_array());

    // Payloads for an external signer are an event, because the result of the command follows.
    let whole = Whole::new("machine-external");
    let server = whole.service.start();
    let mut begin = whole.begin.clone();
    let at = begin.iter().position(|argument| argument == "--key-file").unwrap();
    begin.drain(at..at + 2);
    begin.push("--json".to_owned());
    let output = whole.run(&server.base, &begin);
    let (unsigned, lines) = machine(&output);
    assert_eq!((output.status.code(), &unsigned["ok"]), (Some(4), &json!(false)));
    assert!(lines.iter().any(|line| line["event"] == "prepared" && line["artefacts"].is_object()), "{lines:?}");
}

#[test]
fn every_command_with_json_writes_json_alone() {
    let home = Home::new("machines");
    let fixture = Fixture::load("evm-record-evm-v2");
    let registry = home.file("registry.json", &fixture.registry);
    let request = home.file("request.json", &fixture.request.to_string());
    let pinned: Value = serde_json::from_str(&fixture.registry).unwrap();
    let (service, order) = (Service::new(fixture.clone()), fixture.order.clone());
    let server = Server::start(move |seen| match (seen.method.as_str(), seen.path()) {
        ("GET", "/v2/orders") => {
            let page = if seen.target.contains("page=2") { 2 } else { 1 };
            Reply::ok(&json!({"data": [order], "page": page, "total_pages": 2, "total_items": 2, "per_page": 1}))
        }
        ("GET", "/v2/chains") => Reply::ok(&pinned["chains"]),
        ("GET", "/v2/assets") => Reply::ok(&pinned["assets"]),
        ("GET", "/v2/liquidity") => Reply::ok(&pinned["solvers"]),
        _ => service.answer(seen),
    });
    let id = fixture.order_id();
    let pins = home.path.join("pins.json").to_str().unwrap().to_owned();
    let other = home.file("other.json", &fixture.registry.replacen("30", "31", 1));
    let cases: [(&[&str], i32); 18] = [
        (&["demo"], 0),
        (&["order", "create", "--registry", &registry, "--request", &request, "--service-secret"], 0),
        (&["order", "show", id, "--registry", &registry], 0),
        (&["order", "list", "--pages", "2"], 0),
        (&["orders", "--registry", &registry], 0),
        (&["swap", "--resume", id, "--registry", &registry, "--dry-run"], 0),
        (&["redeem", id, "--registry", &registry], 1),
        (&["registry", "pin", "--from-service", "--out", &pins], 0),
        (&["registry", "pin", "--from-service", "--out", &pins], 0),
        (&["registry", "pin", "--from", &other, "--out", &pins], 2),
        (&["registry", "show", &registry], 0),
        (&["completions", "bash"], 0),
        (&["nonsense"], 2),
        (&["swap", "--bogus"], 2),
        (&["swap"], 2),
        (&["explain"], 2),
        (&["phrase"], 2),
        (&["quote", "base:eth", "arbitrum:eth", "5"], 0),
    ];
    for (arguments, code) in cases {
        let output = home.run(&server.base, &[arguments, &["--json"]].concat());
        let (document, _) = machine(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(code == 0 || document["ok"] == false, "{arguments:?}: {document}");
        if arguments[0] == "order" && arguments[1] == "list" {
            assert_eq!(document["orders"].as_array().unwrap().len(), 2);
        }
    }
    // An order that was not created here: each change is an event, and the end is the document.
    let elsewhere = Home::new("machines-elsewhere");
    let secret = Secret::generate().unwrap();
    let fixture = Fixture::with_secret(&secret);
    let registry = elsewhere.file("registry.json", &fixture.registry);
    let mut complete = fixture.at(Step::Redeemed);
    complete["destination_swap"]["secret"] = json!(*secret.to_hex());
    let is_late = std::sync::atomic::AtomicBool::new(false);
    let server = Server::start(move |_| {
        let is_late = is_late.swap(true, std::sync::atomic::Ordering::SeqCst);
        Reply::ok(&if is_late { complete.clone() } else { fixture.at(Step::SourceFunded) })
    });
    let (document, lines) =
        machine(&elsewhere.run(&server.base, &["order", "watch", id, "--registry", &registry, "--poll", "20", "--json"]));
    assert_eq!((&document["ok"], &document["complete"], &document["order_id"]), (&json!(true), &json!(true), &json!(id)));
    assert!(lines.iter().any(|line| line["event"] == "status"), "{lines:?}");
}

#[test]
fn the_rescue_phrase_is_shown_by_its_own_command() {
    let whole = Whole::new("phrase");
    let server = whole.service.start();
    let mut begin = whole.begin.clone();
    let at = begin.iter().position(|argument| argument == "--secret-file").unwrap();
    begin.drain(at..at + 2);
    for json in [&[][..], &["--json".to_owned()]] {
        let first = whole.run(&server.base, &[&begin[..], json].concat());
        let store = countersign_store::Store::open(whole.home.path.join(".local/share/countersign")).unwrap();
        let words = store.phrase().unwrap().unwrap().words();
        assert!(!said(&first).contains(words.as_str()), "stderr is not a terminal");
        let shown = whole.home.run(&server.base, &["phrase"]);
        assert!(shown.status.success() && out(&shown).contains(words.as_str()));
        let shown: Value = serde_json::from_str(&out(&whole.home.run(&server.base, &["phrase", "--json"]))).unwrap();
        assert_eq!(shown, json!({"ok": true, "phrase": words.as_str()}));
        fs::remove_dir_all(whole.home.path.join(".local")).unwrap();
    }
}

#[test]
fn characters_that_forge_a_display_are_escaped_everywhere() {
    let home = Home::new("forged");
    let forged = format!("a{OVERRIDE}b\u{7}c\u{85}");
    let text = json!(forged);
    let chain = json!({"chain": text, "id": text, "name": text, "native_asset_id": text, "explorer_url": text, "icon": text,
        "confirmation_target": 1, "source_timelock": "1", "destination_timelock": "1", "supported_htlc_schemas": [], "supported_token_schemas": []});
    let results = json!({"/v2/chains": [chain], "/v2/volume": text, "/v2/schemas": [{"name": text, "schema": []}], "/v2/health": text});
    let server = Server::start(move |seen| match &results[seen.path()] {
        Value::Null => Reply::json(400, format!(r#"{{"status":"Error","error":"no {OVERRIDE} no"}}"#)),
        result => Reply::ok(result),
    });
    for command in [&["chains"][..], &["volume"], &["schemas"], &["health"], &["assets"], &["quote", "base:eth", "arbitrum:eth", "5"]] {
        for json in [&["--json"][..], &[]] {
            let output = home.run(&server.base, &[command, json].concat());
            assert!(!is_forged(&said(&output)), "{command:?}: {:?}", said(&output));
            if !json.is_empty() && output.status.success() {
                let shown: Value = serde_json::from_str(&out(&output)).unwrap();
                assert!(shown.to_string().contains(OVERRIDE), "the value is the same: {shown}");
            }
        }
    }
    // Names in the user's own registry, which the service chose when it was pinned.
    let fixture = Fixture::load("evm-record-evm-v2");
    let mut registry: Value = serde_json::from_str(&fixture.registry).unwrap();
    registry["solvers"][0]["id"] = json!(forged);
    registry["solvers"][0]["solver_id"] = json!(forged);
    let registry = home.file("registry.json", &registry.to_string());
    for json in [&["--json"][..], &[]] {
        let output = home.run(NOWHERE, &[&["registry", "show", &registry], json].concat());
        assert!(!is_forged(&said(&output)), "{:?}", said(&output));
    }
}

#[cfg(unix)]
#[test]
fn the_command_that_continues_can_be_pasted() {
    let whole = Whole::new("it's pasted");
    let lost = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (service, is_lost) = (whole.service.clone(), std::sync::Arc::clone(&lost));
    let server = Server::start(move |seen| {
        // The service is down once the order exists, before anything is signed.
        if is_lost.load(std::sync::atomic::Ordering::SeqCst) && seen.method == "GET" && seen.path().starts_with("/v2/orders/") {
            return Reply::json(503, "<html>busy</html>");
        }
        service.answer(seen)
    });
    let state = whole.home.path.join("my state $(x)");
    let begin = [&whole.begin[..], &["--state".to_owned(), state.to_str().unwrap().to_owned()]].concat();
    let output = whole.run(&server.base, &begin);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let line = command_after(&said(&output), "continue with:");
    lost.store(false, std::sync::atomic::Ordering::SeqCst);
    // Everything but consent is in the line: it stops where it would ask.
    let asked = paste(&whole.home, "", &line);
    assert!(asked.status.code() == Some(2) && said(&asked).contains("--yes"), "{line}: {}", said(&asked));
    let pasted = paste(&whole.home, "", &format!("{line} --yes"));
    assert!(pasted.status.success() && out(&pasted).contains("complete"), "{line}: {}", said(&pasted));
}

#[cfg(unix)]
#[test]
fn the_command_that_redeems_without_the_service_can_be_pasted() {
    let whole = Whole::new("pasted-redeem");
    let server = whole.service.start();
    // The only endpoint of the destination fails, so that the evidence is missing while the chain is named.
    let node = Server::start(|_| Reply::json(503, "busy"));
    let (state, endpoint) = (whole.home.path.join("my state"), format!("arbitrum={}", node.base));
    let mut begin = whole.begin.clone();
    begin.retain(|argument| argument != "--trust-the-service");
    begin.extend(["--state".to_owned(), state.to_str().unwrap().to_owned()]);
    let output = whole.run(&server.base, &begin);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let line = &command_after(&said(&output), "run:");
    for part in ["redeem --self", "--state", "--registry", "--key-file"] {
        assert!(line.contains(part), "{line}");
    }
    // Without a connection it states what it needs, and nothing else is missing. With one, it reads the chain and
    // does not ask the service.
    let alone = paste(&whole.home, NOWHERE, line);
    assert!(alone.status.code() == Some(2) && said(&alone).contains("connect the chain with --node"), "{line}: {}", said(&alone));
    let connected = paste(&whole.home, NOWHERE, &format!("{line} --node {endpoint}"));
    assert!(connected.status.code() == Some(3) && said(&connected).contains("503"), "{line}: {}", said(&connected));
    assert!(!node.seen().is_empty());
    // The chain is given from the beginning: the line has it.
    let refund = whole.home.run(
        &server.base,
        &[
            "redeem",
            whole.service.fixture.order_id(),
            "--registry",
            &begin[begin.len() - 1].replace("my state", "registry.json"),
            "--state",
            state.to_str().unwrap(),
            "--node",
            "base=https://base.example/key",
        ],
    );
    // Parts that may be a key of the endpoint are left out of the output.
    assert!(said(&refund).contains("--node base=https://base.example/KEY"), "{}", said(&refund));
    assert!(!said(&refund).contains("base.example/key"), "{}", said(&refund));
}

#[cfg(unix)]
#[test]
fn ctrl_c_says_how_to_go_on() {
    let whole = Whole::new("interrupted");
    let service = Service { moves: false, ..whole.service.clone() };
    let server = service.start();
    for json in [&[][..], &["--json"]] {
        let id = whole.service.fixture.order_id();
        let first: Vec<_> = whole.begin.iter().map(String::as_str).collect();
        let again: Vec<_> = whole.resume.iter().map(String::as_str).collect();
        let arguments = [if json.is_empty() { &first[..] } else { &again }, json].concat();
        let (code, told) = whole.home.watched(&server.base, &arguments, "destination is not funded", |child| {
            let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
            assert!(kill.success());
        });
        assert_eq!(code, Some(130), "{told}");
        assert!(told.contains("every step is stored") && told.contains(&format!("countersign swap --resume {id}")), "{told}");
        if !json.is_empty() {
            let document: Value = serde_json::from_str(told.split("\n{\"event\"").next().unwrap()).unwrap();
            assert_eq!((&document["ok"], &document["error"]["code"]), (&json!(false), &json!("interrupted")));
        }
    }
}

/// The order is paid, and then the record changes: nothing has to be signed any more.
#[test]
fn after_the_payment_words_say_how_to_take_it_back() {
    let whole = Whole::new("paid-and-refused");
    let id = whole.service.fixture.order_id().to_owned();
    let (service, one) = (Service { moves: false, ..whole.service.clone() }, format!("/v2/orders/{id}"));
    let server = Server::start(move |seen| {
        let step = *service.step.lock().unwrap();
        if seen.method != "GET" || seen.path() != one || matches!(step, Step::Created) {
            return service.answer(seen);
        }
        let mut record = service.fixture.at(step);
        record["destination_swap"]["amount"] = json!("1");
        Reply::ok(&record)
    });
    for json in [&[][..], &["--json"]] {
        let first: Vec<_> = whole.begin.iter().map(String::as_str).collect();
        let again: Vec<_> = whole.resume.iter().map(String::as_str).collect();
        let arguments = [if json.is_empty() { &first[..] } else { &again }, json].concat();
        let (_, told) = whole.home.run_until(&server.base, &arguments, "take the payment back with");
        assert!(told.contains("from about 20") && told.contains(&format!("countersign refund {id}")), "{told}");
        for before in ["do not sign", "do not pay", "correct the input", "new quote"] {
            assert!(!told.contains(before), "{before}: {told}");
        }
        assert_eq!(told.contains("the payment is out and nothing is lost"), json.is_empty(), "{told}");
    }
    // The commands that end the order speak of the payment, too.
    let registry = whole.home.path.join("registry.json").to_str().unwrap().to_owned();
    let output = whole.home.run(&server.base, &["redeem", &id, "--registry", &registry, "--trust-the-service"]);
    assert!(output.status.code() == Some(1) && !said(&output).contains("do not sign"), "{}", said(&output));
    assert!(said(&output).contains("nothing is lost"), "{}", said(&output));
}

/// The arguments of a swap from Base to Arbitrum.
fn swap<'a>(registry: &'a str, amount: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["swap", "--registry", registry, "--from", "base:eth", "--to", "arbitrum:eth", "--amount", amount], more].concat()
}

#[test]
fn errors_in_the_users_own_files_blame_nobody_else() {
    let whole = Whole::new("own-files");
    let server = whole.service.start();
    let registry = whole.home.path.join("registry.json").to_str().unwrap().to_owned();
    let file = |name: &str, text: &str| whole.home.file(name, text);
    let unused = whole.home.path.join("unused.json").to_str().unwrap().to_owned();
    let broken = ["{", "{\"a\": 1, \"a\": 2}", "[]", "{\"nonce\": \"x\"}", "\u{7f}", "{\"chains\": 7}"];
    for (index, text) in broken.into_iter().enumerate() {
        let path = file(&format!("broken-{index}.json"), text);
        let id = whole.service.fixture.order_id();
        let commands: [&[&str]; 13] = [
            &["order", "show", id, "--registry", &path],
            &["order", "show", id, "--registry", &registry, "--policy", &path],
            &["node", "check", "--registry", &registry, "--nodes", &path],
            &["order", "create", "--registry", &registry, "--request", &path],
            &swap(&registry, "1", &["--wallet", &path, "--dry-run"]),
            &swap(&registry, "1", &["--key-file", &path, "--nodes", &path]),
            &["registry", "show", &path],
            &["registry", "diff", &registry, &path],
            &["registry", "pin", "--from", &path, "--out", &unused],
            &["registry", "pin", "--chains", &path, "--assets", &path, "--liquidity", &path, "--out", &unused],
            &["recover", "--registry", &registry, "--order", &path],
            &["refund", "--self", id, "--registry", &registry, "--order", &path],
            &["redeem", "--self", id, "--registry", &registry, "--order", &path, "--secret-file", &path],
        ];
        // An empty list is a list.
        for command in commands.into_iter().filter(|command| text != "[]" || !command.contains(&"--chains")) {
            let output = whole.home.run(&server.base, command);
            let told = said(&output).to_lowercase();
            assert_eq!(output.status.code(), Some(2), "{command:?}: {told}");
            assert!(told.contains(&format!("broken-{index}.json")), "{command:?}: {told}");
            assert!(
                !told.contains("signed") && !told.contains("do not sign") && !told.contains("report the service"),
                "{command:?}: {told}"
            );
        }
        file(".config/countersign/config.json", text);
        let output = whole.home.run(&server.base, &["orders"]);
        let told = said(&output);
        assert!(!told.contains("signed") && !told.contains("report the service") && output.status.code() == Some(2), "{told}");
        fs::remove_file(whole.home.path.join(".config/countersign/config.json")).unwrap();
    }
    assert!(server.seen().is_empty(), "{:?}", server.lines());
}

#[test]
fn errors_of_the_service_or_a_node_do_not_tell_the_user_to_correct_anything() {
    let home = Home::new("their-errors");
    let fixture = Fixture::load("evm-record-evm-v2");
    let registry = home.file("registry.json", &fixture.registry);
    let words = home.file("words.txt", &format!("{}about", "abandon ".repeat(11)));
    let restored = home.path.join("restored").to_str().unwrap().to_owned();
    for body in [
        "<html>",
        "{}",
        r#"{"status":"Ok","result":{"a":1,"a":2}}"#,
        r#"{"status":"Ok","result":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        let server = Server::start(move |_| Reply::json(200, body));
        let node = format!("base={}", server.base);
        let commands: [&[&str]; 14] = [
            &["earnings"],
            &["claim", "--registry", &registry],
            &["order", "list"],
            &["order", "watch", fixture.order_id(), "--registry", &registry],
            &["policy", "check", "base:eth", "arbitrum:eth"],
            &[
                "restore",
                "--phrase",
                "--phrase-file",
                &words,
                "--from-owner",
                "0x00000000000000000000000000000000000000aa",
                "--state",
                &restored,
            ],
            &["chains"],
            &["assets"],
            &["liquidity"],
            &["quote", "base:eth", "arbitrum:eth", "5"],
            &["order", "show", fixture.order_id(), "--registry", &registry],
            &["registry", "pin", "--from-service"],
            &["node", "check", "--registry", &registry, "--node", &node],
            &["balance", "base:eth", "0x00000000000000000000000000000000000000aa", "--registry", &registry, "--node", &node],
        ];
        for command in commands {
            for json in [&[][..], &["--json"]] {
                let output = home.run(&server.base, &[command, json].concat());
                let told = said(&output);
                assert!(output.status.code() == Some(3) && !told.contains("correct the input"), "{command:?} {body}: {told}");
            }
        }
    }
}

#[test]
fn the_help_of_swap_is_in_groups() {
    let home = Home::new("help");
    let help = out(&home.run(NOWHERE, &["swap", "--help"]));
    let places: Vec<_> = ["The swap:", "How to run:", "Keys and secrets:", "Chains:", "Trust:", "Service and state:"]
        .iter()
        .map(|heading| help.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{heading}: {help}")))
        .collect();
    assert!(places.is_sorted(), "{help}");
    let group = |name: &str| {
        let at = places.iter().position(|place| help[*place..].starts_with(&format!("\n{name}"))).unwrap();
        &help[places[at]..places.get(at + 1).copied().unwrap_or(help.len())]
    };
    for (heading, flag) in [
        ("The swap", "--from-owner"),
        ("The swap", "--at-least"),
        ("How to run", "--dry-run"),
        ("Keys and secrets", "--key-file"),
        ("Chains", "--node "),
        ("Trust", "--trust-the-service"),
        ("Service and state", "--state"),
    ] {
        assert!(group(heading).contains(flag), "{heading} {flag}: {help}");
    }
}

#[test]
fn amounts_are_in_whole_units_with_base_units_behind_them() {
    let home = Home::new("amounts");
    let fixture = Fixture::load("evm-record-evm-v2");
    let registry = home.file("registry.json", &fixture.registry);
    let server = Service::new(fixture.clone()).start();
    let request = home.file("request.json", &fixture.request.to_string());
    let create = ["order", "create", "--registry", &registry, "--request", &request, "--service-secret"];
    assert!(home.run(&server.base, &create).status.success());
    let (pay, receive) = ("1 base:eth (1000000000000000000 base units)", "0.998 arbitrum:eth (998000000000000000 base units)");
    let owner = fixture.request["source"]["owner"].as_str().unwrap();
    let dry = swap(&registry, "1 eth", &["--dry-run", "--from-owner", owner, "--to-owner", owner]);
    for command in [
        &["quote", "base:eth", "arbitrum:eth", "1 eth", "--registry", &registry][..],
        &["order", "show", fixture.order_id(), "--registry", &registry],
        &dry,
    ] {
        let output = home.run(&server.base, command);
        assert!(out(&output).contains(pay) && out(&output).contains(receive), "{command:?}: {}", said(&output));
    }
    // The labels for people are the members for programs.
    let show = ["order", "show", fixture.order_id(), "--registry", &registry];
    let text = out(&home.run(&server.base, &show));
    let shown: Value = serde_json::from_str(&out(&home.run(&server.base, &[&show[..], &["--json"]].concat()))).unwrap();
    for (label, _) in text.lines().filter_map(|line| line.trim_start().split_once("  ")) {
        let member = label.replace(' ', "_");
        assert!(!shown[&member].is_null() || !shown["source"][&member].is_null(), "{label}: {shown}");
    }
    let low = home.run(&server.base, &[&dry[..], &["--at-least", "1 eth"]].concat());
    let told = said(&low);
    assert!(told.contains(receive) && told.contains("1 arbitrum:eth (1000000000000000000 base units)"), "{told}");
}
