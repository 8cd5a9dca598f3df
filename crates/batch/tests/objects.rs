//! The functions that the language bindings call: the same artefacts as the batch, typed failures, and evidence from bytes.
#![cfg(all(feature = "evm", feature = "tron", feature = "starknet", feature = "bitcoin"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;

use countersign::bitcoin::bitcoin::absolute::LockTime;
use countersign::bitcoin::bitcoin::consensus::encode::serialize_hex;
use countersign::bitcoin::bitcoin::{Address, Amount, OutPoint, Transaction, TxIn, TxOut, transaction};
use countersign::{FAMILIES, Policy, Registry};
use countersign_batch::objects::{self, Documents, Failure, Record};
use countersign_testkit::lines::difference;
use countersign_testkit::project;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A case with its members as they are spelled, because parsing would change some numbers.
struct Case(BTreeMap<String, Box<RawValue>>);

impl Case {
    fn text(&self, member: &str) -> &[u8] {
        self.0.get(member).map_or(b"null", |value| value.get().as_bytes())
    }

    fn value(&self, member: &str) -> Value {
        serde_json::from_slice(self.text(member)).unwrap()
    }

    fn documents(&self) -> Documents<'_> {
        let record = self.text("order");
        Documents::new(self.text("request"), self.text("response")).with_record((record != b"null").then_some(record))
    }
}

fn fixtures(family: &str) -> Vec<Case> {
    let text = fs::read_to_string(project().join(format!("fixtures/accept/{family}.jsonl"))).unwrap();
    text.lines().map(|line| Case(serde_json::from_str(line).unwrap())).collect()
}

fn registry() -> Registry {
    objects::registry(&fs::read(project().join("fixtures/registry.json")).unwrap()).unwrap()
}

fn open(id: &str) -> (Value, Record) {
    let family = id.split('-').next().unwrap();
    let case = fixtures(family).into_iter().find(|case| case.value("id") == id).unwrap_or_else(|| panic!("no fixture {id}"));
    let record = objects::verify_record(&case.documents(), &registry(), &Policy::default()).unwrap();
    let order = case.value("order");
    (order.get("result").unwrap_or(&order)["destination_swap"].clone(), record)
}

#[test]
fn orders_are_signed_step_by_step_as_by_the_batch() {
    let (registry, policy) = (registry(), objects::policy(b"{}").unwrap());
    let mut signed = 0;
    for family in FAMILIES {
        for case in fixtures(family.name()) {
            let (id, wallet) = (case.value("id"), case.value("wallet"));
            let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
            assert_eq!(objects::terms(&order.terms()).order_id, order.order_id(), "{id}");
            assert!(!objects::summary(&order.summary()).is_empty() && !objects::coverage(order.coverage()).is_empty(), "{id}");
            let mut unsigned = objects::prepare(&order, case.text("wallet")).unwrap();
            for request in objects::requests(&unsigned) {
                assert!(!request.native.kind.is_empty() && !request.native.value.is_empty(), "{id}: {}", request.name);
            }
            if let Some(key) = wallet["secret_key"].as_str() {
                objects::sign(&mut unsigned, key).unwrap();
                signed += 1;
            }
            let artefacts: Value = serde_json::from_str(&objects::artefacts(&unsigned)).unwrap();
            assert_eq!(difference(&case.value("expect")["artefacts"], &artefacts, ""), None, "{id}");
            match objects::finish(unsigned) {
                Ok(order) => assert!(objects::transactions(&order).iter().all(|transaction| !transaction.payload.is_empty()), "{id}"),
                Err(refused) => {
                    let (order, failure) = *refused;
                    assert_eq!(failure.code, "signature_missing", "{id}");
                    assert!(!order.missing().is_empty(), "{id}");
                }
            }
        }
    }
    assert!(signed > 100, "{signed} orders were signed");
}

#[test]
fn external_signatures_are_proven() {
    let (registry, policy) = (registry(), Policy::default());
    let case = fixtures("evm").into_iter().find(|case| case.value("wallet")["secret_key"].is_string()).unwrap();
    let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
    let prepare = || objects::prepare(&order, case.text("wallet")).unwrap();
    let mut unsigned = prepare();
    let request = objects::requests(&unsigned).swap_remove(0);
    let transaction: Value = serde_json::from_str(&request.native.value).unwrap();
    let nonce = case.value("wallet")["nonce"].as_u64().unwrap();
    assert_eq!((request.native.kind.as_str(), &transaction["nonce"]), ("evm_transaction", &json!(format!("{nonce:#x}"))));

    let code = |result: Result<(), Failure>| result.unwrap_err().code;
    assert_eq!(code(objects::attach(&mut unsigned, &request.name, "0x00")), "signature_malformed");
    assert_eq!(code(objects::attach(&mut unsigned, "no such request", &format!("0x{}1b", "11".repeat(64)))), "nothing_to_sign");
    assert_eq!(code(objects::attach(&mut unsigned, &request.name, &format!("0x{}1b", "11".repeat(64)))), "signature_mismatch");
    assert_eq!(code(objects::attach(&mut unsigned, &request.name, "{\"contract\": 1}")), "wrong_type");
    assert_eq!(code(objects::attach(&mut unsigned, &request.name, "{\"contract\"")), "json_syntax");
    assert_eq!(objects::artefacts(&unsigned), objects::artefacts(&prepare()), "a refused signature changes nothing");
}

#[test]
fn failures_say_what_is_wrong_where_and_who_has_to_act() {
    let (registry, policy) = (registry(), Policy::default());
    let case = fixtures("evm").swap_remove(0);
    let fail = |request: &[u8], response: &[u8]| objects::verify(&Documents::new(request, response), &registry, &policy).unwrap_err();
    let failure = fail(b"{", case.text("response"));
    assert_eq!((&*failure.at, failure.blame), ("/request#1-2", "caller"), "{failure}");
    let failure = fail(case.text("request"), b"\xff");
    assert_eq!((failure.code, failure.blame), ("json_not_utf8", "service"), "{failure}");
    let order = objects::verify(&case.documents(), &registry, &policy).unwrap();
    let failure = objects::prepare(&order, b"{\"nonce\": \"x\"}").unwrap_err();
    assert!(failure.at.starts_with("/wallet"), "{failure}");
    let failure = objects::refund(b"{}", "elsewhere", &registry).unwrap_err();
    assert_eq!((failure.code, failure.expected.as_deref()), ("usage", Some("source or destination")));
    let failure = objects::redeem(b"{}", "source", "0xsecret", &registry).unwrap_err();
    assert!(!failure.to_string().contains("secret\""), "{failure}");
}

/// Judges evidence that is `depth` blocks deep and final.
fn judge(record: &Record, evidence: &Value) -> Result<u64, String> {
    let seen = json!({"height": 1000, "hash": "aa", "head_time": 5000, "depth": 100, "is_safe": true, "is_finalized": true});
    let proof = objects::judge(record, evidence.to_string().as_bytes(), seen.to_string().as_bytes(), 5000);
    proof.map(|proof| proof.left).map_err(|failure| failure.code.to_owned())
}

fn word(hex: &str) -> String {
    format!("{:0>64}", hex.trim_start_matches("0x").to_lowercase())
}

fn number(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    word(&format!("{:x}", text.parse::<u128>().unwrap()))
}

/// Returns the words of `orders(bytes32)` in version 3: initiator, redeemer, block, timelock, amount, block of the end.
fn orders(htlc: &Value, parties: [&str; 2], block: u64, end: u64) -> String {
    let [initiator, redeemer] = parties.map(word);
    format!(
        "0x{initiator}{redeemer}{}{}{}{}",
        number(&json!(block)),
        number(&htlc["timelock"]),
        number(&htlc["amount"]),
        number(&json!(end))
    )
}

#[test]
fn an_evm_order_is_judged_from_its_words() {
    let (htlc, record) = open("evm-record-evm-v1");
    let parties = ["initiator", "redeemer"].map(|party| htlc[party].as_str().unwrap());
    let token = format!("0x{}", word(record.verified.terms.destination.token.as_deref().unwrap()));
    let words = |block, end| orders(&htlc, parties, block, end);
    let honest = json!({"orders": words(900, 0), "token": token, "holds": htlc["amount"], "head": 1000});
    let with = |member: &str, value: Value| {
        let mut evidence = honest.clone();
        evidence[member] = value;
        judge(&record, &evidence)
    };
    assert_eq!(judge(&record, &honest), Ok(3500));
    for (member, value, code) in [
        ("orders", json!(format!("0x{}", "00".repeat(192))), "destination_not_funded"),
        ("orders", json!(words(900, 950)), "destination_unclear"),
        ("orders", json!(orders(&htlc, [parties[0], parties[0]], 900, 0)), "destination_differs"),
        ("orders", json!(words(1001, 0)), "destination_unclear"),
        ("orders", json!("0x00"), "destination_unclear"),
        ("orders", json!(1), "wrong_type"),
        ("token", json!(format!("0x{}", word("01"))), "destination_unclear"),
        ("holds", json!("1"), "destination_not_covered"),
        ("head", json!(4300), "destination_no_time"),
        ("heads", json!(1), "unexpected_field"),
    ] {
        assert_eq!(with(member, value.clone()), Err(code.to_owned()), "{member} {value}");
    }
    let shape = objects::read_htlc(&record, "destination", honest.to_string().as_bytes()).unwrap();
    assert_eq!((shape.state.as_str(), shape.elapsed), ("locked", Some(100)));
}

#[test]
fn a_tron_order_is_judged_from_its_words() {
    let (htlc, record) = open("evm-record-tron");
    let hex = |text: &str| text.parse::<countersign::tron::Address>().unwrap().bytes().to_string();
    let parties = ["initiator", "redeemer"].map(|party| hex(htlc[party].as_str().unwrap()));
    let parties = [parties[0].as_str(), parties[1].as_str()];
    let token = format!("0x{}", word(&hex(record.verified.terms.destination.token.as_deref().unwrap())));
    let honest = json!({"orders": orders(&htlc, parties, 900, 0), "token": token, "holds": htlc["amount"], "head": 1000});
    let state = |evidence: &Value| objects::read_htlc(&record, "destination", evidence.to_string().as_bytes()).unwrap();
    let locked = state(&honest);
    assert_eq!((locked.state.as_str(), locked.elapsed, locked.covered), ("locked", Some(100), Some(true)));
    // The formula of Tron's swap ids is not certain, so the id does not prove the secret hash, and only an event would.
    assert_eq!(judge(&record, &honest), Err("destination_unclear".to_owned()));
    let mut other = honest.clone();
    other["token"] = json!(format!("0x{}", word("01")));
    assert_eq!(state(&other).state, "unclear");
    // The older layout begins with whether the order has ended.
    let mut older = honest.clone();
    let words = orders(&htlc, parties, 900, 0);
    older["orders"] = json!(format!("0x{}{}", word("0"), &words[2..words.len() - 64]));
    assert!(state(&older).reason.unwrap().contains("older generation"));
}

#[test]
fn a_starknet_order_is_judged_from_its_felts() {
    let (htlc, record) = open("starknet-to-2025-11");
    let token = record.verified.terms.destination.token.clone().unwrap();
    let felts = |end: u64| json!([format!("{end:#x}"), htlc["initiator"], htlc["redeemer"], "0x384", "0xf0", "0x13042a", "0x0"]);
    let evidence = |end| json!({"order": felts(end), "token": token, "holds": htlc["amount"], "head": 1000});
    assert_eq!((htlc["timelock"].as_u64(), htlc["amount"].as_str()), (Some(240), Some("1246250")));
    // The default rule requires more than 450 blocks to redeem, and this timelock is shorter.
    assert_eq!(judge(&record, &evidence(0)), Err("destination_no_time".to_owned()));
    assert_eq!(objects::read_htlc(&record, "destination", evidence(0).to_string().as_bytes()).unwrap().elapsed, Some(100));
    assert_eq!(judge(&record, &evidence(950)), Err("destination_unclear".to_owned()));
}

#[test]
fn a_bitcoin_payment_is_judged_from_its_transaction() {
    let (htlc, record) = open("evm-record-bitcoin-v1");
    let address: Address<_> = htlc["swap_id"].as_str().unwrap().parse().unwrap();
    let script_pubkey = address.assume_checked().script_pubkey();
    let pay = |value: u64| Transaction {
        version: transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn { previous_output: OutPoint::null(), ..TxIn::default() }],
        output: vec![TxOut { value: Amount::from_sat(value), script_pubkey: script_pubkey.clone() }],
    };
    let evidence = |paid: &Transaction, depth: u64| json!({"txid": paid.compute_txid().to_string(), "output": 0, "transaction": serialize_hex(paid), "depth": depth});
    assert_eq!(judge(&record, &evidence(&pay(2_590_000), 3)), Ok(9));
    assert_eq!(judge(&record, &evidence(&pay(2_589_999), 3)), Err("destination_differs".to_owned()));
    assert_eq!(judge(&record, &evidence(&pay(2_590_000), 6)), Err("destination_no_time".to_owned()));
    assert_eq!(judge(&record, &json!({"txid": null})), Err("destination_not_funded".to_owned()));
    let mut other = evidence(&pay(2_590_000), 3);
    other["txid"] = json!("11".repeat(32));
    assert_eq!(judge(&record, &other), Err("utxo_mismatch".to_owned()));
    // The transaction that spends the output reveals none of the scripts.
    let paid = pay(2_590_000);
    let mut spend = pay(1);
    spend.input[0].previous_output = OutPoint::new(paid.compute_txid(), 0);
    let mut spent = evidence(&paid, 3);
    spent["spend"] = json!(serialize_hex(&spend));
    assert_eq!(judge(&record, &spent), Err("funding_mismatch".to_owned()));
}
