//! `fixtures/readers`: conversations of readers with chains in memory, which every binding replays.
//!
//! Without a variable, this requires that the files are what is recorded now. `COUNTERSIGN_RECORD=1` writes them.
#![cfg(all(feature = "evm", feature = "tron", feature = "starknet", feature = "solana", feature = "sui", feature = "bitcoin"))]
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::rc::Rc;

use countersign::reader::{Answer, FailureKind, HtlcReader, Known, Request, RpcError};
use countersign::{Policy, evidence::HtlcTerms};
use countersign_json::objects::{self, Ask, Documents, Record};
use countersign_testkit::chain::{bitcoin, evm, solana, starknet, sui, tron};
use countersign_testkit::project;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The caller's clock.
const NOW: u64 = 1_800_000_000;

/// A chain, as one endpoint shows it.
type Chain = Box<dyn Fn(&Request) -> Answer>;

/// The conversations about one destination: a name, and the chain.
type Conversations = Vec<(&'static str, Chain)>;

fn open(id: &str) -> Record {
    let family = id.split('-').next().unwrap();
    let text = fs::read_to_string(project().join(format!("fixtures/accept/{family}.jsonl"))).unwrap();
    let case = text.lines().find(|line| line.contains(&format!(r#""id":"{id}""#))).expect(id);
    // As it is spelled: parsing would change some numbers.
    let case: BTreeMap<String, Box<RawValue>> = serde_json::from_str(case).unwrap();
    let [request, response, order] = ["request", "response", "order"].map(|member| case[member].get().as_bytes());
    let registry = objects::registry(&fs::read(project().join("fixtures/registry.json")).unwrap()).unwrap();
    objects::verify_record(&Documents::new(request, response).with_record(Some(order)), &registry, &Policy::default()).unwrap()
}

fn write(answer: &Answer) -> Value {
    match answer {
        Answer::Result(text) => json!({ "result": String::from_utf8(text.to_vec()).unwrap() }),
        Answer::Error(RpcError { code, message, data, .. }) => {
            let mut error = json!({"code": code, "message": message});
            if let Some(data) = data {
                error["data"] = json!(hex::encode_prefixed(data));
            }
            json!({ "error": error })
        }
        Answer::Http { status, body, grpc_status } => {
            let mut response = json!({"status": status, "body": hex::encode_prefixed(body)});
            if let Some(status) = grpc_status {
                response["grpc_status"] = json!(status);
            }
            response
        }
        Answer::Failed(failure) => json!({"failed": failure.kind.name(), "detail": failure.detail}),
        other => panic!("{other:?}"),
    }
}

/// Lets a reader talk to a chain, and returns the line.
fn converse(case: &str, fixture: &str, is_rpc: bool, record: &Record, chain: &Chain) -> String {
    let terms = &record.verified.terms.destination;
    let mut reader = HtlcReader::new(terms, &Known::default().with_rpc(is_rpc)).unwrap();
    let mut replayed = record.reader("destination", "one", b"", is_rpc.then_some("rpc")).unwrap();
    let mut rounds = Vec::new();
    while !reader.requests().is_empty() {
        let answers: Vec<_> = reader.requests().iter().map(chain).collect();
        let requests: Vec<_> = reader.requests().iter().map(Ask::from).collect();
        let written: Vec<_> = answers.iter().map(write).collect();
        replayed.answer(objects::answers(json!(written).to_string().as_bytes()).unwrap()).unwrap();
        rounds.push(json!({"requests": requests, "answers": written}));
        reader.answer(&answers).unwrap();
    }
    let mut quorum = objects::Quorum::new(["one"], 1).unwrap();
    quorum.hear(&replayed);
    let state = record.state("destination", &quorum).ok();
    let verdict = match record.judge(&quorum, NOW) {
        Ok(proof) => json!({"left": proof.left, "unit": proof.unit}),
        Err(failure) => json!({"code": failure.code}),
    };
    let fault = replayed.fault().map(|fault| fault.code);
    // The state of the same answers, as they were before they were written as JSON.
    assert_eq!(reader.outcome().unwrap().map(|one| one.finding().seen.height.get()).ok(), replayed.height(), "{case}");
    let outcome = json!({"fault": fault, "height": replayed.height(), "state": state, "verdict": verdict});
    json!({
        "case": case, "fixture": fixture, "leg": "destination", "protocol": if is_rpc { "rpc" } else { "esplora" }, "now": NOW,
        "rounds": rounds, "outcome": outcome,
    })
    .to_string()
}

/// Adds the conversations that need no chain of their own.
fn with_failures(mut conversations: Conversations, funded: impl Fn(&Request) -> Answer + Clone + 'static) -> Conversations {
    let (first, honest) = (Cell::new(true), funded.clone());
    conversations.push(("a chain that cannot be identified", {
        Box::new(move |request| match (first.replace(false), honest(request)) {
            (true, Answer::Result(_)) => Answer::result(*b"{}"),
            (true, Answer::Http { .. }) => Answer::http(404, *b"not here"),
            (_, answer) => answer,
        })
    }));
    let calls = Cell::new(0_u32);
    conversations.push(("an endpoint that breaks off", {
        Box::new(move |request| {
            calls.set(calls.get().saturating_add(1));
            if calls.get() > 2 { Answer::Failed(FailureKind::Timeout.into()) } else { funded(request) }
        })
    }));
    conversations
}

fn evm_chains(terms: &HtlcTerms) -> Conversations {
    let on = |chain: evm::Evm| -> Chain { Box::new(move |request| chain.answer(request)) };
    let funded = || evm::Evm { chain_id: 1, ..evm::Evm::funded(terms) };
    let honest = funded();
    let conversations: Conversations = vec![
        ("funded", on(funded())),
        ("not funded", on(evm::Evm { order: None, ..funded() })),
        ("refunded", on(funded().refunded(terms))),
        ("funded in the newest blocks", on(evm::Evm { safe: Some(evm::INITIATED - 1), finalized: None, ..funded() })),
        ("funded with less than the amount", on(evm::Evm { holds: terms.amount / countersign::U256::from(2), ..funded() })),
        ("another chain", on(evm::Evm { chain_id: 8453, ..funded() })),
    ];
    with_failures(conversations, move |request| honest.answer(request))
}

fn tron_chains(terms: &HtlcTerms) -> Conversations {
    let on = |chain: tron::Tron| -> Chain { Box::new(move |request| chain.answer(request)) };
    let honest = tron::Tron::funded(terms);
    let conversations: Conversations = vec![
        ("funded", on(honest.clone())),
        ("not funded", on(tron::Tron { order: None, ..honest.clone() })),
        ("refunded", on(honest.clone().refunded(terms))),
        ("another chain", on(tron::Tron { genesis: 1, ..honest.clone() })),
    ];
    with_failures(conversations, move |request| honest.answer(request))
}

fn starknet_chains(terms: &HtlcTerms) -> Conversations {
    let on = |chain: starknet::Chain| -> Chain { Box::new(move |request| chain.answer(request)) };
    let funded = || {
        let mut chain = starknet::Chain::funded(terms);
        // The funding event is requested only if the id does not prove the hash.
        chain.events = if terms.swap_id_recomputed { Vec::new() } else { vec![chain.initiated(terms.secret_hash, terms.amount)] };
        chain
    };
    let honest = Rc::new(funded());
    let conversations: Conversations = vec![
        ("funded", on(funded())),
        ("not funded", on(starknet::Chain { order: None, ..funded() })),
        ("refunded", on(funded().refunded())),
        ("another chain", on(starknet::Chain { chain_id: "SN_SEPOLIA", ..funded() })),
    ];
    with_failures(conversations, move |request| honest.answer(request))
}

fn solana_chains(terms: &HtlcTerms) -> Conversations {
    let on = |chain: solana::Chain| -> Chain { Box::new(move |request| chain.answer(request)) };
    let honest = Rc::new(solana::Chain::funded(terms));
    let conversations: Conversations = vec![
        ("funded", on(solana::Chain::funded(terms))),
        ("not funded", on(solana::Chain::empty(terms))),
        ("another chain", on(solana::Chain { genesis: "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY", ..solana::Chain::funded(terms) })),
    ];
    with_failures(conversations, move |request| honest.answer(request))
}

/// The order of the terms, in the layout of `docs/spec/sui.md#reading-an-order`.
fn sui_chains(terms: &HtlcTerms) -> Conversations {
    use countersign::sui::{address::from_account, read};
    let registry = from_account(terms.htlc_registry.as_ref().unwrap()).unwrap();
    let package = from_account(terms.htlc.as_ref().unwrap()).unwrap();
    let id: [u8; 32] = hex::decode(&terms.swap_id).unwrap().try_into().unwrap();
    let wide = |number: u64| [number.to_le_bytes().to_vec(), vec![0; 24]].concat();
    let amount = u64::try_from(terms.amount).unwrap();
    let initiated = (NOW - 60) * 1_000;
    let contents = [
        read::field_id(registry, &id).as_bytes().to_vec(),
        [vec![32], id.to_vec(), vec![5; 32], vec![0]].concat(),
        [terms.initiator.bytes(), terms.redeemer.bytes()].concat(),
        [amount.to_le_bytes().to_vec(), wide(initiated), vec![6; 32]].concat(),
        [amount.to_le_bytes().to_vec(), wide(terms.timelock)].concat(),
    ];
    let order = sui::Object {
        id: Some(read::field_id(registry, &id)),
        kind: format!("0x2::dynamic_field::Field<vector<u8>, {package}::AtomicSwap::Order<0x2::sui::SUI>>"),
        contents: contents.concat(),
        ..sui::order(false)
    };
    let module = sui::proto::Message::default().text(1, "AtomicSwap").bytes(2, &[3; 9]);
    let name = package.to_string();
    let origin = sui::proto::Message::default().text(1, "AtomicSwap").text(2, "Order").text(3, &name);
    let message = sui::proto::Message::default().text(1, &name).text(2, &name).number(3, 1).message(4, &module).message(5, &origin);
    let package = sui::Object { id: Some(package), package: Some(message), ..sui::package(package) };
    let ledger = sui::Ledger { objects: vec![order, package.clone()], ..sui::Ledger::funded() };
    let on = |ledger: sui::Ledger| -> Chain { Box::new(move |request| ledger.answer(request)) };
    let conversations: Conversations = vec![
        ("funded", on(ledger.clone())),
        ("not funded", on(sui::Ledger { objects: vec![package], ..ledger.clone() })),
        ("another chain", on(sui::Ledger { chain_id: sui::MAINNET.to_owned(), ..ledger.clone() })),
    ];
    with_failures(conversations, move |request| ledger.answer(request))
}

/// Litecoin's blocks show no work that could be checked, so its main network can be imitated.
fn litecoin_chains(terms: &HtlcTerms) -> Conversations {
    const GENESIS: &[u8] = b"12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2";
    let script = countersign::bitcoin::Chain::from_network(&terms.network).unwrap().script(&terms.swap_id, "").unwrap();
    let ledger = |value: u64, depth: usize| {
        let mut ledger = bitcoin::Ledger { has_transaction_index: true, ..bitcoin::Ledger::new() };
        if value > 0 {
            // Its parent shows that the coins do not come from the extension block.
            let parent = bitcoin::pay(
                bitcoin::outpoint(1),
                &[vec![1; 64]],
                &[(value, countersign::bitcoin::bitcoin::ScriptBuf::new_op_return([9]))],
            );
            let from = countersign::bitcoin::bitcoin::OutPoint { txid: parent.compute_txid(), vout: 0 };
            ledger.mempool.push(parent);
            ledger.mempool.push(bitcoin::pay(from, &[vec![1; 64]], &[(value, script.clone())]));
        }
        ledger.mine(depth);
        ledger
    };
    let amount = u64::try_from(terms.amount).unwrap();
    let show = |ledger: &bitcoin::Ledger, request: &Request| match request {
        Request::Get { path, .. } if &**path == "/block-height/0" => Answer::http(200, GENESIS),
        Request::JsonRpc { method: "getblockhash", params } if &**params == "[0]" => Answer::result([b"\"", GENESIS, b"\""].concat()),
        request => ledger.answer(request),
    };
    let on = |ledger: bitcoin::Ledger| -> Chain { Box::new(move |request| show(&ledger, request)) };
    let on_regtest = |ledger: bitcoin::Ledger| -> Chain { Box::new(move |request| ledger.answer(request)) };
    let honest = ledger(amount, 6);
    let conversations: Conversations = vec![
        ("funded", on(ledger(amount, 6))),
        ("funded in the newest block", on(ledger(amount, 1))),
        ("not funded", on(ledger(0, 1))),
        ("funded with less than the amount", on(ledger(amount - 1, 6))),
        ("another chain", on_regtest(honest.clone())),
    ];
    with_failures(conversations, move |request| show(&honest, request))
}

#[test]
fn recorded_conversations_are_those_of_today() {
    type OfFamily = (&'static str, &'static str, &'static [bool], fn(&HtlcTerms) -> Conversations);
    let families: [OfFamily; 6] = [
        ("evm", "evm-v3-destination", &[false], evm_chains),
        ("tron", "evm-record-tron", &[false], tron_chains),
        ("starknet", "starknet-to-2025-11", &[false], starknet_chains),
        ("solana", "evm-record-solana", &[false], solana_chains),
        ("sui", "evm-record-sui-testnet", &[false], sui_chains),
        ("bitcoin", "evm-record-litecoin", &[false, true], litecoin_chains),
    ];
    for (family, fixture, protocols, chains) in families {
        let record = open(fixture);
        let mut lines = String::new();
        for &is_rpc in protocols {
            for (name, chain) in chains(&record.verified.terms.destination) {
                lines.push_str(&converse(name, fixture, is_rpc, &record, &chain));
                lines.push('\n');
            }
        }
        let path = project().join(format!("fixtures/readers/{family}.jsonl"));
        if std::env::var_os("COUNTERSIGN_RECORD").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, lines).unwrap();
        } else {
            assert!(
                fs::read_to_string(&path).unwrap() == lines,
                "{family}: run this test with COUNTERSIGN_RECORD=1, and look at the change"
            );
        }
    }
}
