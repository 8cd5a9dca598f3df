//! Every example wallet runs to completion and prints what it demonstrates.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Runs an example and returns what it printed.
fn run(program: &str) -> String {
    let output = Command::new(program).output().expect("the example starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(output.status.success(), "{program}: {err}");
    out
}

macro_rules! runs {
    ($($name:ident: $($says:literal),+;)*) => {
        $(#[test]
        fn $name() {
            let printed = run(env!(concat!("CARGO_BIN_EXE_", stringify!($name))));
            for says in [$($says),+] {
                assert!(printed.contains(says), "no {says:?} in\n{printed}");
            }
        })*
    };
}

runs! {
    evm_alloy: "broadcast approval 0x", "broadcast initiate 0x", "send to the service: 0x";
    evm_browser: "wallet_sendCalls {\"version\":\"2.0.0\"", "the wallet sent the approval", "the wallet sent the initiate", "EIP712Domain";
    solana_keypair: "send to the service: ", "broadcast initiate ";
    starknet_account: "the account sent the initiate with 2 calls", "send to the service: ";
    sui_sponsored: "of the sponsor: gas and 0 MIST", "still missing: [Sponsor]", "with 2 signatures";
    bitcoin_psbt: "it pays the deposit: initiate";
    multichain: "(evm)", "(solana)", "(bitcoin)", "amount_mismatch at /response/result/initiate_transaction/data#68-100", "blame: service";
}

/// The signing path that docs/measure.md measures signs the honest orders of the corpus with the right bytes.
#[test]
fn measure_alloy_signs_the_corpus() {
    let corpus = include_str!("../../fixtures/corpus/evm.jsonl");
    let cases = corpus.lines().map(|line| serde_json::from_str::<Value>(line).expect("a case is JSON"));
    let valid: Vec<_> = cases.filter(|case| case["result"] == "valid").collect();
    let mut program =
        Command::new(env!("CARGO_BIN_EXE_measure_alloy")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let (mut input, output) = (program.stdin.take().expect("piped"), BufReader::new(program.stdout.take().expect("piped")));
    let mut results = output.lines();
    let mut signed = 0;
    for case in &valid {
        writeln!(input, "{}", case["input"].as_str().expect("the input is text")).expect("it reads");
        let result: Value = serde_json::from_str(&results.next().expect("a result").expect("text")).expect("JSON");
        if result["ok"] == false {
            assert_eq!(result["error"]["code"], "not_supported", "{}", case["id"]);
            continue;
        }
        for (name, artefact) in result["artefacts"].as_object().expect("an object") {
            assert_eq!(artefact["signed"], case["expect"]["artefacts"][name]["signed"], "{} {name}", case["id"]);
            signed += 1;
        }
    }
    assert!(signed > 100, "{signed} transactions");
    drop(input);
    assert!(program.wait().expect("it ends").success());
}
