//! Evidence from bytes: the state of an HTLC as its chain returned it, and what its events and transactions add.
#![cfg(all(feature = "evm", feature = "tron", feature = "starknet", feature = "solana", feature = "sui", feature = "bitcoin"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod documents;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::bitcoin::bitcoin::absolute::LockTime;
use countersign::bitcoin::bitcoin::consensus::encode::serialize_hex;
use countersign::bitcoin::bitcoin::{Address, Amount, OutPoint, Transaction, TxIn, TxOut, transaction};
use countersign::evm::alloy_primitives::{B256, hex, keccak256};
use countersign::starknet::{Felt, read as starknet_read};
use countersign::sui::read as sui_read;
use countersign::{Policy, SecretHash};
use countersign_batch::objects::{self, Htlc, Record};
use serde_json::{Value, json};

use documents::{fixtures, registry};

const SECRET: [u8; 32] = [0x7e; 32];

/// Opens the record of a fixture, with the secret of these tests.
fn open_with_secret(id: &str) -> (Value, Record) {
    let (htlc, mut record) = open(id);
    record.verified.terms.destination.secret_hash = SecretHash::of(&SECRET);
    (htlc, record)
}

/// Opens the record of a fixture.
fn open(id: &str) -> (Value, Record) {
    let family = id.split('-').next().unwrap();
    let case = fixtures(family).into_iter().find(|case| case.value("id") == id).unwrap_or_else(|| panic!("no fixture {id}"));
    let record = objects::verify_record(&case.documents(), &registry(), &Policy::default()).unwrap();
    let terms = objects::htlc_terms(&record, "destination").unwrap();
    assert_eq!(terms.secret_hash, record.verified.terms.destination.secret_hash.to_string());
    let order = case.value("order");
    (order.get("result").unwrap_or(&order)["destination_swap"].clone(), record)
}

fn state(record: &Record, evidence: &Value) -> Htlc {
    objects::read_htlc(record, "destination", evidence.to_string().as_bytes()).unwrap()
}

/// Returns the code and the location of evidence that is malformed or about something else.
fn refused(record: &Record, evidence: &Value) -> (&'static str, String) {
    let failure = objects::read_htlc(record, "destination", evidence.to_string().as_bytes()).unwrap_err();
    (failure.code, failure.at.to_string())
}

fn with(evidence: &Value, member: &str, value: Value) -> Value {
    let mut evidence = evidence.clone();
    evidence[member] = value;
    evidence
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
    let (htlc, record) = open_with_secret("evm-record-evm-v1");
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

/// Returns a log in the form of `eth_getLogs`.
fn log(record: &Record, event: &str, words: &[B256], data: &str) -> Value {
    let terms = objects::htlc_terms(record, "destination").unwrap();
    let htlc = match terms.family.as_str() {
        "tron" => terms.htlc.unwrap().parse::<countersign::tron::Address>().unwrap().bytes().to_string(),
        _ => terms.htlc.unwrap(),
    };
    let id: B256 = terms.swap_id.parse().unwrap();
    let topics: Vec<_> = [keccak256(event), id].iter().chain(words).map(ToString::to_string).collect();
    json!({"address": htlc, "topics": topics, "data": data, "transactionHash": B256::repeat_byte(0x31), "logIndex": "0x7", "removed": false})
}

/// Logs of an order that was redeemed with a secret.
fn redeemed(record: &Record, secret: [u8; 32]) -> Value {
    let data = format!("0x{}{}{}", word("20"), word("20"), hex::encode(secret));
    log(record, "Redeemed(bytes32,bytes32,bytes)", &[B256::new(SecretHash::of(&secret).0)], &data)
}

#[test]
fn the_log_of_an_evm_order_shows_how_it_ended() {
    let (htlc, record) = open_with_secret("evm-record-evm-v1");
    let parties = ["initiator", "redeemer"].map(|party| htlc[party].as_str().unwrap());
    let token = format!("0x{}", word(record.verified.terms.destination.token.as_deref().unwrap()));
    let stored = |end| json!({"orders": orders(&htlc, parties, 900, end), "token": token, "holds": htlc["amount"], "head": 1000});
    let transaction = Some(B256::repeat_byte(0x31).to_string());

    let ended = state(&record, &with(&stored(950), "event", redeemed(&record, SECRET)));
    assert_eq!((ended.state.as_str(), ended.secret, &ended.transaction), ("redeemed", Some(hex::encode(SECRET)), &transaction));
    let refunded = log(&record, "Refunded(bytes32)", &[], "0x");
    let ended = state(&record, &with(&stored(950), "event", refunded.clone()));
    assert_eq!((ended.state.as_str(), ended.secret, &ended.transaction), ("refunded", None, &transaction));
    assert_eq!(judge(&record, &with(&stored(950), "event", refunded.clone())), Err("destination_refunded".to_owned()));

    let other = state(&record, &with(&stored(950), "event", redeemed(&record, [1; 32])));
    assert_eq!(other.reason.as_deref(), Some("the order was redeemed with another secret"));
    assert_eq!(
        state(&record, &with(&stored(0), "event", refunded.clone())).reason.as_deref(),
        Some("the event contradicts the stored order")
    );
    for (member, value, at) in [
        ("address", json!("0x0000000000000000000000000000000000000001"), "/evidence/event/address"),
        ("removed", json!(true), "/evidence/event/removed"),
        ("topics", json!([refunded["topics"][0], B256::ZERO]), "/evidence/event"),
        ("topics", json!([refunded["topics"][0]]), "/evidence/event/topics"),
        ("topics", json!([B256::ZERO]), "/evidence/event"),
    ] {
        let event = with(&refunded, member, value);
        assert_eq!(refused(&record, &with(&stored(950), "event", event)), ("wrong_type", at.to_owned()));
    }
}

#[test]
fn a_tron_order_is_judged_from_its_words() {
    let (htlc, record) = open_with_secret("evm-record-tron");
    let hex = |text: &str| text.parse::<countersign::tron::Address>().unwrap().bytes().to_string();
    let parties = ["initiator", "redeemer"].map(|party| hex(htlc[party].as_str().unwrap()));
    let parties = [parties[0].as_str(), parties[1].as_str()];
    let token = format!("0x{}", word(&hex(record.verified.terms.destination.token.as_deref().unwrap())));
    let honest = json!({"orders": orders(&htlc, parties, 900, 0), "token": token, "holds": htlc["amount"], "head": 1000});
    let state = |evidence: &Value| objects::read_htlc(&record, "destination", evidence.to_string().as_bytes()).unwrap();
    let locked = state(&honest);
    assert_eq!((locked.state.as_str(), locked.elapsed, locked.covered), ("locked", Some(100), Some(true)));
    // The formula of Tron's swap ids is not certain, so the id does not prove the secret hash. The funding event does.
    assert_eq!(judge(&record, &honest), Err("destination_unclear".to_owned()));
    let initiated = |hash: SecretHash, amount: &Value| {
        let words = [B256::new(hash.0), number(amount).parse().unwrap()];
        with(&honest, "event", log(&record, "Initiated(bytes32,bytes32,uint256)", &words, "0x"))
    };
    let funded = initiated(SecretHash::of(&SECRET), &htlc["amount"]);
    assert_eq!(state(&funded).secret_hash, Some(SecretHash::of(&SECRET).to_string()));
    assert!(judge(&record, &funded).is_ok(), "{:?}", judge(&record, &funded));
    assert_eq!(judge(&record, &initiated(SecretHash::of(&[1; 32]), &htlc["amount"])), Err("destination_differs".to_owned()));
    assert_eq!(judge(&record, &initiated(SecretHash::of(&SECRET), &json!(1))), Err("destination_unclear".to_owned()));
    let ended =
        json!({"orders": orders(&htlc, parties, 900, 950), "token": token, "holds": "0", "head": 1000, "event": redeemed(&record, SECRET)});
    assert_eq!((state(&ended).state.as_str(), state(&ended).transaction), ("redeemed", Some("31".repeat(32))));
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
    let (htlc, record) = open_with_secret("starknet-to-2025-11");
    let token = record.verified.terms.destination.token.clone().unwrap();
    let felts = |end: u64| json!([format!("{end:#x}"), htlc["initiator"], htlc["redeemer"], "0x384", "0xf0", "0x13042a", "0x0"]);
    let evidence = |end| json!({"order": felts(end), "token": token, "holds": htlc["amount"], "head": 1000});
    assert_eq!((htlc["timelock"].as_u64(), htlc["amount"].as_str()), (Some(240), Some("1246250")));
    // The default rule requires more than 450 blocks to redeem, and this timelock is shorter.
    assert_eq!(judge(&record, &evidence(0)), Err("destination_no_time".to_owned()));
    assert_eq!(objects::read_htlc(&record, "destination", evidence(0).to_string().as_bytes()).unwrap().elapsed, Some(100));
    assert_eq!(judge(&record, &evidence(950)), Err("destination_unclear".to_owned()));

    let terms = objects::htlc_terms(&record, "destination").unwrap();
    let words = |bytes: [u8; 32]| bytes.chunks(4).map(Felt::from_bytes_be_slice).collect::<Vec<_>>();
    let data = [words(SecretHash::of(&SECRET).0), vec![Felt::from(8)], words(SECRET)].concat();
    let hexes = |felts: &[Felt]| felts.iter().map(|felt| format!("{felt:#x}")).collect::<Vec<_>>();
    let id = Felt::from_hex(&format!("0x{}", terms.swap_id.trim_start_matches("0x"))).unwrap();
    let event = json!({
        "from_address": terms.htlc, "keys": hexes(&[starknet_read::REDEEMED, id]), "data": hexes(&data),
        "block_number": 950, "transaction_hash": "0x31",
    });
    let ended = with(&evidence(950), "event", event.clone());
    let shape = state(&record, &ended);
    assert_eq!((shape.state.as_str(), shape.secret, shape.transaction.as_deref()), ("redeemed", Some(hex::encode(SECRET)), Some("0x31")));
    let other = with(&event, "keys", json!(hexes(&[starknet_read::REDEEMED, Felt::ONE])));
    assert_eq!(refused(&record, &with(&ended, "event", other)), ("wrong_type", "/evidence/event".to_owned()));
    let other = with(&event, "from_address", json!("0x1"));
    assert_eq!(refused(&record, &with(&ended, "event", other)), ("wrong_type", "/evidence/event/from_address".to_owned()));
}

/// Returns type and contents of an order in the layout of `docs/spec/sui.md#reading-an-order`, with the package that its type names.
fn sui_order(record: &Record, has_ended: bool) -> (String, Vec<u8>, [u8; 32]) {
    let terms = &record.verified.terms.destination;
    let registry = countersign::sui::address::from_account(terms.htlc_registry.as_ref().unwrap()).unwrap();
    let id = sui_read::order_ids(terms, registry).next().unwrap();
    let wide = |number: u64| [number.to_le_bytes().to_vec(), vec![0; 24]].concat();
    let amount = u64::try_from(terms.amount).unwrap();
    let contents = [
        sui_read::field_id(registry, &id).as_bytes().to_vec(),
        [vec![32], id.to_vec(), vec![5; 32], vec![u8::from(has_ended)]].concat(),
        [terms.initiator.bytes(), terms.redeemer.bytes()].concat(),
        [amount.to_le_bytes().to_vec(), wide(1_000_000), vec![6; 32]].concat(),
        [if has_ended { 0 } else { amount }.to_le_bytes().to_vec(), wide(terms.timelock)].concat(),
    ];
    let package = objects::htlc_terms(record, "destination").unwrap().htlc.unwrap();
    let order = format!("0x2::dynamic_field::Field<vector<u8>, {package}::AtomicSwap::Order<0x2::sui::SUI>>");
    (order, contents.concat(), id)
}

#[test]
fn a_sui_order_is_judged_from_its_contents() {
    let (_, record) = open_with_secret("evm-record-sui-testnet");
    let evidence = |has_ended| {
        let (object_type, contents, _) = sui_order(&record, has_ended);
        json!({"type": object_type, "contents": STANDARD.encode(contents), "time": 1_060_000})
    };
    let locked = state(&record, &evidence(false));
    assert_eq!((locked.state.as_str(), locked.elapsed, locked.covered), ("locked", Some(60_000), Some(true)));
    assert_eq!(locked.secret_hash, Some(SecretHash::of(&SECRET).to_string()));
    assert!(judge(&record, &evidence(false)).is_ok(), "{:?}", judge(&record, &evidence(false)));
    assert_eq!(state(&record, &json!({"time": 1})).state, "absent");
    assert!(state(&record, &evidence(true)).reason.unwrap().contains("no event"));

    let (_, _, id) = sui_order(&record, true);
    let package = objects::htlc_terms(&record, "destination").unwrap().htlc.unwrap();
    let event = |name: &str, parts: &[&[u8]]| {
        let contents: Vec<u8> = parts.iter().flat_map(|part| [&[32][..], part].concat()).collect();
        let event =
            json!({"type": format!("{package}::AtomicSwap::{name}"), "contents": STANDARD.encode(contents), "transaction": "digest"});
        with(&evidence(true), "event", event)
    };
    let shape = state(&record, &event("Redeemed", &[&id, &SecretHash::of(&SECRET).0, &SECRET]));
    assert_eq!((shape.state.as_str(), shape.secret, shape.transaction.as_deref()), ("redeemed", Some(hex::encode(SECRET)), Some("digest")));
    assert_eq!(state(&record, &event("Refunded", &[&id])).state, "refunded");
    assert_eq!(refused(&record, &event("Refunded", &[&[1; 32]])), ("wrong_type", "/evidence/event".to_owned()));
    // The dynamic field's id is a hash of the registry and the order's id.
    let account = objects::htlc_terms(&record, "destination").unwrap().account.unwrap();
    let swap_id: [u8; 32] = hex::decode(&record.verified.terms.destination.swap_id).unwrap().try_into().unwrap();
    let registry = record.verified.terms.destination.htlc_registry.as_ref().unwrap();
    assert_eq!(account, sui_read::field_id(countersign::sui::address::from_account(registry).unwrap(), &swap_id).to_string());
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
