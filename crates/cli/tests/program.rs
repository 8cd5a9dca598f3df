//! The program as other languages see it: exit codes, streams, keys, and a batch that nothing can stop.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

pub fn registry() -> String {
    fixtures().join("registry.json").to_str().unwrap().to_owned()
}

/// The input part of a fixture line.
pub fn case(id: &str) -> String {
    let family = id.split('-').next().unwrap();
    let lines = fs::read_to_string(fixtures().join(format!("accept/{family}.jsonl"))).unwrap();
    let line = lines.lines().find(|line| line.starts_with(&format!("{{\"id\":\"{id}\""))).expect(id);
    format!("{}}}", line.split_once(",\"note\":").unwrap().0)
}

pub fn expected(id: &str) -> Value {
    let family = id.split('-').next().unwrap();
    let lines = fs::read_to_string(fixtures().join(format!("accept/{family}.jsonl"))).unwrap();
    let line = lines.lines().find(|line| line.starts_with(&format!("{{\"id\":\"{id}\""))).expect(id);
    serde_json::from_str::<Value>(line).unwrap()["expect"]["artefacts"].clone()
}

pub fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A program that stops reading early must not stop the test.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)))
}

fn lines(output: &Output) -> Vec<Value> {
    String::from_utf8(output.stdout.clone()).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_batch_answers_every_line_and_goes_on() {
    let good = case("evm-token-approval-exact");
    let mut input = Vec::new();
    let mut bad: Vec<Vec<u8>> = vec![
        b"not json".to_vec(),
        b"{\"id\":\"utf8\",\"x\":\"\xff\"}".to_vec(),
        format!("{{\"id\":\"big\",\"x\":\"{}\"}}", "5".repeat(5_000_000)).into_bytes(),
        format!("{{\"id\":\"deep\",\"x\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000)).into_bytes(),
        b"{\"id\":\"twice\",\"request\":1,\"request\":2}".to_vec(),
        b"{\"request\":{}}".to_vec(),
        b"{\"id\":\"a\",\"id\":\"b\"}".to_vec(),
        format!("{{\"id\":\"huge\",\"x\":\"{}\"}}", "5".repeat(17 * 1024 * 1024)).into_bytes(),
    ];
    bad.push(good.replace("\"status\":\"Ok\"", "\"status\":\"Error\"").into_bytes());
    for line in &bad {
        input.extend_from_slice(good.as_bytes());
        input.extend_from_slice(b"\n\n  \r\n");
        input.extend_from_slice(line);
        input.push(b'\n');
    }
    let output = run(&["batch", "--registry", &registry(), "--threads", "3"], &input);
    assert_eq!(output.status.code(), Some(1));
    let answers = lines(&output);
    let ids: Vec<_> = answers.iter().skip(1).step_by(2).map(|answer| answer["id"].as_str()).collect();
    assert_eq!(
        ids,
        [None, Some("utf8"), Some("big"), Some("deep"), Some("twice"), None, None, Some("huge"), Some("evm-token-approval-exact")]
    );
    let codes: Vec<_> = answers.iter().skip(1).step_by(2).map(|answer| answer["error"]["code"].as_str().unwrap()).collect();
    assert_eq!(
        codes,
        [
            "json_syntax",
            "json_not_utf8",
            "missing_field",
            "json_too_deep",
            "json_duplicate_key",
            "missing_field",
            "json_duplicate_key",
            "json_too_large",
            "service_error"
        ]
    );
    for answer in answers.iter().step_by(2) {
        assert_eq!(answer["artefacts"]["initiate"]["signed"], expected("evm-token-approval-exact")["initiate"]["signed"]);
    }
}

#[test]
fn a_batch_is_the_same_with_any_number_of_threads_and_ends_with_0_if_all_is_ok() {
    let ids = ["evm-token-approval-exact", "evm-native-typed-data", "tron-token-approval-exact", "evm-record-bitcoin-v3"];
    let input: String = (0..60).map(|round| format!("{}\n", case(ids[round % ids.len()]))).collect();
    let one = run(&["batch", "--registry", &registry()], input.as_bytes());
    let four = run(&["batch", "--registry", &registry(), "--threads", "4"], input.trim_end().as_bytes());
    assert_eq!((one.status.code(), four.status.code()), (Some(0), Some(0)));
    assert!(one.stdout == four.stdout && one.stderr.is_empty());
}

#[test]
fn a_batch_answers_a_line_before_the_next_one_comes() {
    for threads in ["1", "2"] {
        let mut batch = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["batch", "--registry", &registry(), "--threads", threads])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut input = batch.stdin.take().expect("stdin");
        let (mut answers, answered) = (BufReader::new(batch.stdout.take().expect("stdout")).lines(), std::sync::mpsc::channel());
        let (sender, receiver) = answered;
        std::thread::spawn(move || answers.try_for_each(|line| sender.send(line.expect("UTF-8"))));
        for id in ["evm-token-approval-exact", "evm-token-approval-unlimited", "evm-token-approval-exact"] {
            // Blank lines do not count.
            input.write_all(format!("{}\n \n\n", case(id)).as_bytes()).expect("a pipe");
            // Far longer than any case takes. A failure here would wait for ever.
            let line = receiver.recv_timeout(std::time::Duration::from_secs(60)).expect("an answer to the line before the next one");
            assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON")["id"], id);
        }
        drop(input);
        assert!(batch.wait().expect("ends").success());
    }
}

#[test]
fn usage_errors_end_with_2_and_print_nothing_to_stdout() {
    for arguments in [
        &["batch"][..],
        &["batch", "--registry", "nowhere.json"],
        &["batch", "--registry", &registry(), "--threads", "0"],
        &["explain", "--registry", &registry()],
        &["sign", "--registry", &registry(), "--case", "-", "--key", "0x01"],
        &["nonsense"],
    ] {
        let output = run(arguments, b"");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn explains_in_words_and_in_json_without_colour_in_a_pipe() {
    let case = case("evm-record-bitcoin-v3");
    let text = run(&["explain", "--registry", &registry(), "--case", "-", "--bytes"], case.as_bytes());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("0.031 WBTC (3100000 base units)") && text.contains("initiate_transaction/data#4-36  redeemer"), "{text}");
    assert!(!text.contains('\u{1b}'));
    let output = run(&["explain", "--registry", &registry(), "--case", "-", "--json"], case.as_bytes());
    assert_eq!((output.status.code(), &json(&output)["ok"]), (Some(0), &Value::Bool(true)));
    assert_eq!(json(&output)["id"], "evm-record-bitcoin-v3");
    let refused = run(&["explain", "--registry", &registry(), "--case", "-", "--json"], case.replace("\"Ok\"", "\"ok\"").as_bytes());
    assert_eq!((refused.status.code(), json(&refused)["error"]["code"].as_str()), (Some(1), Some("status_not_ok")));
    assert_eq!(json(&refused)["id"], "evm-record-bitcoin-v3");
    let unread = run(&["explain", "--registry", &registry(), "--case", "-", "--json"], br#"{"id":"a","id2":01}"#);
    assert_eq!((unread.status.code(), json(&unread)["id"].as_str()), (Some(1), Some("a")));
}

#[test]
fn documents_may_come_apart_and_keys_from_a_file_the_environment_or_stdin() {
    let folder = std::env::temp_dir().join(format!("countersign-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let id = "evm-record-evm-v3";
    let mut case: Value = serde_json::from_str(&case(id)).unwrap();
    let key = case["wallet"].as_object_mut().unwrap().remove("secret_key").unwrap().as_str().unwrap().to_owned();
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let [request, response, order, wallet] = ["request", "response", "order", "wallet"].map(|name| file(name, case[name].to_string()));
    let key_file = file("key", format!("{key}\n"));
    let registry = registry();
    let documents =
        ["--registry", &registry, "--request", &request, "--response", &response, "--order", &order, "--wallet", &wallet, "--json"];
    let sign = |more: &[&str], input: &[u8]| run(&[&["sign"][..], &documents, more].concat(), input);
    for output in [sign(&["--key-file", &key_file], b""), sign(&["--key-stdin"], format!("{key}\n").as_bytes())] {
        assert_eq!(json(&output)["artefacts"]["initiate"]["signed"], expected(id)["initiate"]["signed"]);
        let all = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8(all).unwrap().contains(key.trim_start_matches("0x")));
    }
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args([&["sign"][..], &documents, &["--key-env", "COUNTERSIGN_TEST_KEY"]].concat())
        .env("COUNTERSIGN_TEST_KEY", &key)
        .output()
        .unwrap();
    assert_eq!(json(&output)["artefacts"]["initiate"]["tx_hash"], expected(id)["initiate"]["tx_hash"]);
    assert_eq!(sign(&[], b"").status.code(), Some(2));

    // With an external signer, the output of prepare is signed elsewhere, and attach returns the same transaction.
    let prepared = json(&run(&[&["prepare"][..], &documents].concat(), b""));
    let digest = prepared["requests"].as_array().unwrap().iter().find(|request| request["name"] == "typed_data").unwrap();
    assert_eq!(digest["digest"], expected(id)["typed_data"]["digest"]);
    let signature = format!("typed_data={}", expected(id)["typed_data"]["signature"].as_str().unwrap());
    let attached = json(&run(&[&["attach"][..], &documents, &["--signature", &signature]].concat(), b""));
    assert_eq!(attached["artefacts"]["typed_data"]["signature"], expected(id)["typed_data"]["signature"]);
    let wrong = run(&[&["attach"][..], &documents, &["--signature", &signature.replace("typed_data", "initiate")]].concat(), b"");
    assert_eq!((wrong.status.code(), json(&wrong)["error"]["at"].as_str()), (Some(1), Some("/signatures/initiate")));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn older_pins_are_kept_until_the_difference_is_accepted() {
    let folder = std::env::temp_dir().join(format!("countersign-pins-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (pins, newer) = (folder.join("pins.json"), folder.join("newer.json"));
    let (pins, newer) = (pins.to_str().unwrap(), newer.to_str().unwrap());
    assert_eq!(run(&["registry", "pin", "--from", &registry(), "--out", pins], b"").status.code(), Some(0));
    let before = fs::read(pins).unwrap();
    let text = fs::read_to_string(registry()).unwrap();
    let htlc = serde_json::from_str::<Value>(&text).unwrap()["assets"][0]["htlc"]["address"].as_str().unwrap().to_owned();
    fs::write(newer, text.replace(&htlc, "0x00000000000000000000000000000000000000aa")).unwrap();
    let kept = run(&["registry", "pin", "--from", newer, "--out", pins], b"");
    assert_eq!(kept.status.code(), Some(2));
    assert!(String::from_utf8(kept.stdout).unwrap().contains("htlc address"));
    assert_eq!(fs::read(pins).unwrap(), before);
    assert_eq!(run(&["registry", "diff", pins, newer, "--json"], b"").status.code(), Some(1));
    assert_eq!(run(&["registry", "pin", "--from", newer, "--out", pins, "--accept"], b"").status.code(), Some(0));
    assert_eq!(run(&["registry", "diff", pins, newer], b"").status.code(), Some(0));
    assert_eq!(json(&run(&["registry", "show", pins, "--json"], b""))["digest"].as_str().unwrap().len(), 64);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_cannot_be_pinned_is_named_and_first_use_is_said_to_be_trust() {
    let folder = std::env::temp_dir().join(format!("countersign-notices-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let fixtures: Value = serde_json::from_str(&fs::read_to_string(registry()).unwrap()).unwrap();
    let mut lists = fixtures.clone();
    lists["chains"].as_array_mut().unwrap().push(serde_json::json!({"chain": "xrpl", "id": "xrpl:mainnet"}));
    let mut pin = vec!["registry".to_owned(), "pin".to_owned()];
    for (option, list) in [("--chains", "chains"), ("--assets", "assets"), ("--liquidity", "solvers")] {
        let file = folder.join(list);
        fs::write(&file, lists[list].to_string()).unwrap();
        pin.extend([option.to_owned(), file.to_str().unwrap().to_owned()]);
    }
    let pins = folder.join("pins.json").to_str().unwrap().to_owned();
    pin.extend(["--out".to_owned(), pins.clone()]);
    let pin: Vec<_> = pin.iter().map(String::as_str).collect();
    let said = |output: &Output| String::from_utf8(output.stderr.clone()).unwrap();
    let first = run(&pin, b"");
    assert_eq!(first.status.code(), Some(0));
    let digest = json(&run(&["registry", "show", &pins, "--json"], b""))["digest"].as_str().unwrap().to_owned();
    let counts = ["chains", "assets", "solvers"].map(|list| fixtures[list].as_array().unwrap().len());
    let counts = format!("{} chains, {} assets and {} solvers", counts[0], counts[1], counts[2]);
    for text in ["chain xrpl is not pinned: no such chain family", &counts, &digest, "nothing was pinned before"] {
        assert!(said(&first).contains(text), "{text}: {}", said(&first));
    }
    let again = run(&pin, b"");
    assert!(again.status.success() && !said(&again).contains("nothing was pinned before") && said(&again).contains(&digest));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_demo_signs_for_each_built_family_and_refuses_the_tampered_answer() {
    let shown = json(&run(&["demo", "--json"], b""));
    let mut families: Vec<_> = shown.as_array().unwrap().iter().map(|one| one["family"].as_str().unwrap()).collect();
    // Solana shows both ways of funding; Bitcoin and Litecoin are one family.
    families.sort_unstable();
    families.dedup();
    let mut built: Vec<_> = countersign::FAMILIES.iter().map(|family| family.name()).collect();
    built.sort_unstable();
    assert_eq!(families, built);
    for one in shown.as_array().unwrap() {
        assert_eq!(one["tampered"]["ok"], false);
        assert!(!one["signed"].is_null());
    }
}

#[test]
fn the_demo_fits_on_a_screen_and_shows_one_family_in_full() {
    let text = |arguments: &[&str]| {
        let output = run(arguments, b"");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (shown, notes) = text(&["demo"]);
    assert!(shown.lines().count() + notes.lines().count() <= 24, "{shown}{notes}");
    for family in countersign::FAMILIES {
        assert!(shown.lines().any(|line| line.contains(family.name()) && line.contains("verified and signed")), "{shown}");
    }
    assert!(shown.matches("refused: ").count() >= countersign::FAMILIES.len(), "{shown}");
    let (full, _) = text(&["demo", "--full", "evm"]);
    assert!(full.contains("evm: the signed artefacts") && !full.contains("tron"), "{full}");
    assert_eq!(run(&["demo", "--full", "dogecoin"], b"").status.code(), Some(2));
}

/// The demo has copies of its own, so that the package holds all that it needs.
#[test]
fn the_demo_shows_fixtures() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    assert!(read("demo/registry.json") == read("../../fixtures/registry.json"), "copy fixtures/registry.json to demo/registry.json");
    for family in countersign::FAMILIES {
        let (shown, fixtures) = (read(&format!("demo/{family}.jsonl")), read(&format!("../../fixtures/accept/{family}.jsonl")));
        for line in shown.lines() {
            let (change, case) = line.strip_suffix('}').unwrap().split_once(",\"case\":").unwrap();
            assert!(fixtures.lines().any(|fixture| fixture == case), "{change} is in no fixture");
            let change: Value = serde_json::from_str(&format!("{change}}}")).unwrap();
            let (input, _) = case.split_once(",\"note\":").unwrap();
            assert_eq!(input.matches(change["tampered"][0].as_str().unwrap()).count(), 1, "{change}");
        }
    }
}

#[test]
fn a_deposit_can_be_scanned() {
    let folder = std::env::temp_dir().join(format!("countersign-qr-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (file, svg) = (folder.join("case.json"), folder.join("uri.svg"));
    fs::write(&file, case("bitcoin-address")).unwrap();
    let registry = registry();
    let explain = ["explain", "--registry", &registry, "--case", file.to_str().unwrap(), "--qr", "--qr-svg", svg.to_str().unwrap()];
    let output = run(&explain, b"");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8(output.stdout).unwrap().contains('▄'));
    assert!(fs::read_to_string(&svg).unwrap().contains("<svg"));
    fs::write(&file, case("evm-token-approval-exact")).unwrap();
    assert_eq!(run(&explain, b"").status.code(), Some(2));
    fs::remove_dir_all(&folder).unwrap();
}

/// Both of Solana's funding paths: the transaction that the owner sends, and the one that the service sends.
#[test]
fn solana_is_explained_signed_and_attached_both_ways() {
    let registry = registry();
    for id in ["solana-native-legacy", "solana-token-sponsor-signed"] {
        let line = case(id);
        let with = |command: &str, more: &[&str]| {
            json(&run(&[&[command, "--registry", &registry, "--case", "-", "--json"][..], more].concat(), line.as_bytes()))
        };
        let gasless = !expected(id)["gasless"].is_null();
        let lines = with("explain", &[])["summary"].to_string();
        assert_eq!(lines.contains("co-signed with the sponsor"), gasless, "{lines}");
        let signed = with("sign", &[])["artefacts"].clone();
        for (path, member) in [("transaction", "signed"), ("transaction", "signature"), ("gasless", "submission")] {
            assert_eq!(signed[path][member], expected(id)[path][member], "{id}: {path}");
        }
        let signature = format!("transaction={}", expected(id)["transaction"]["signature"].as_str().unwrap());
        let attached = with("attach", &["--signature", &signature])["artefacts"].clone();
        assert_eq!(attached["transaction"]["signed"], expected(id)["transaction"]["signed"]);
        assert!(attached["gasless"]["submission"].is_null(), "no signature was given for it");
    }
}
