//! Readers across the language border: recorded conversations of `fixtures/readers`, misuse, and what a quorum makes of several endpoints.
#![cfg(all(feature = "evm", feature = "tron", feature = "starknet", feature = "solana", feature = "sui", feature = "bitcoin"))]
use crate::documents;

use std::fs;

use countersign::Policy;
use countersign_json::objects::{self, Answer, Quorum, Reader, Record};
use countersign_testkit::project;
use serde_json::{Value, json};

use documents::{fixtures, registry};

/// Opens the record of a fixture.
fn open(id: &str) -> Record {
    let family = id.split('-').next().unwrap();
    let case = fixtures(family).into_iter().find(|case| case.value("id") == id).unwrap_or_else(|| panic!("no fixture {id}"));
    objects::verify_record(&case.documents(), &registry(), &Policy::default()).unwrap()
}

fn conversations(family: &str) -> Vec<Value> {
    let text = fs::read_to_string(project().join(format!("fixtures/readers/{family}.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn conversation(family: &str, case: &str) -> Value {
    conversations(family).into_iter().find(|line| line["case"] == case).unwrap()
}

fn reader(record: &Record, line: &Value, endpoint: &str) -> Reader {
    record.reader(line["leg"].as_str().unwrap(), endpoint, b"", line["protocol"].as_str()).unwrap()
}

fn answers(round: &Value) -> Vec<Answer> {
    objects::answers(round["answers"].to_string().as_bytes()).unwrap()
}

/// Plays the part of the endpoint in a conversation.
fn play(record: &Record, line: &Value, endpoint: &str) -> Reader {
    let mut reader = reader(record, line, endpoint);
    for round in line["rounds"].as_array().unwrap() {
        let requests = serde_json::to_string(&reader.requests()).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&requests).unwrap(), round["requests"], "{}", line["case"]);
        reader.answer(answers(round)).unwrap();
    }
    assert!(reader.requests().is_empty(), "{}", line["case"]);
    reader
}

fn verdict(record: &Record, quorum: &Quorum, line: &Value) -> Value {
    match record.judge(quorum, line["now"].as_u64().unwrap()) {
        Ok(proof) => json!({"left": proof.left, "unit": proof.unit}),
        Err(failure) => {
            assert_eq!(failure.blame, "chain");
            json!({ "code": failure.code })
        }
    }
}

#[test]
fn every_conversation_has_its_requests_and_its_outcome() {
    let mut funded = 0;
    for family in ["evm", "tron", "starknet", "solana", "sui", "bitcoin"] {
        for line in conversations(family) {
            let (record, expected) = (open(line["fixture"].as_str().unwrap()), &line["outcome"]);
            let reader = play(&record, &line, "one");
            assert_eq!(
                (json!(reader.fault().map(|fault| fault.code)), json!(reader.height())),
                (expected["fault"].clone(), expected["height"].clone())
            );
            let mut quorum = Quorum::new(["one"], 1).unwrap();
            assert!(!quorum.is_settled());
            quorum.hear(&reader);
            assert!(quorum.is_settled());
            assert_eq!(json!(record.state("destination", &quorum).ok()), expected["state"], "{family}: {}", line["case"]);
            assert_eq!(verdict(&record, &quorum, &line), expected["verdict"], "{family}: {}", line["case"]);
            funded += usize::from(expected["verdict"]["left"].is_u64());
            // No case other than an honest one releases the secret.
            assert!(expected["verdict"]["left"].is_null() || line["case"] == "funded", "{family}: {}", line["case"]);
        }
    }
    assert!(funded >= 5, "{funded}");
}

#[test]
fn a_reader_takes_one_answer_for_each_request_and_can_be_asked_again() {
    let line = conversation("evm", "funded");
    let record = open(line["fixture"].as_str().unwrap());
    let mut reader = reader(&record, &line, "one");
    let (before, mut few) = (reader.requests(), answers(&line["rounds"][0]));
    few.pop();
    let refused = reader.answer(few).unwrap_err();
    assert_eq!((refused.code, &*refused.at, refused.blame), ("usage", "/answers", "caller"));
    assert_eq!(reader.requests(), before);
    assert!(reader.fault().is_none() && reader.height().is_none());
    // Silence is not a word: the quorum still waits for it.
    let mut quorum = Quorum::new(["one"], 1).unwrap();
    quorum.hear(&reader);
    assert!(!quorum.is_settled());
    for (leg, known) in [("nowhere", &b""[..]), ("destination", b"{}"), ("destination", b"[")] {
        assert!(record.reader(leg, "one", known, None).is_err(), "{leg}");
    }
    let refused = record.reader("destination", "one", b"", Some("grpc")).unwrap_err();
    assert_eq!((refused.code, &*refused.at), ("usage", "/protocol"));
}

#[test]
fn what_is_known_about_an_endpoint_shows_that_it_went_back() {
    let line = conversation("evm", "funded");
    let record = open(line["fixture"].as_str().unwrap());
    let known: Value = serde_json::from_str(&play(&record, &line, "one").known()).unwrap();
    assert_eq!(known["height"], line["outcome"]["height"]);
    let mut later = known;
    later["height"] = json!(later["height"].as_u64().unwrap() + 1_000);
    let mut reader = record.reader("destination", "one", later.to_string().as_bytes(), None).unwrap();
    reader.answer(answers(&line["rounds"][0])).unwrap();
    assert_eq!(reader.fault().unwrap().code, "node_went_back");
}

#[test]
fn nothing_is_combined_from_two_endpoints() {
    let (funded, absent) = (conversation("evm", "funded"), conversation("evm", "not funded"));
    let broken = conversation("evm", "an endpoint that breaks off");
    let record = open(funded["fixture"].as_str().unwrap());
    let names = ["one", "two", "three"];
    let hear = |shown: [&Value; 3]| {
        let mut quorum = Quorum::new(names, 2).unwrap();
        for (line, name) in shown.into_iter().zip(names) {
            quorum.hear(&play(&record, line, name));
        }
        quorum
    };
    for (shown, code) in [
        ([&funded, &funded, &absent], None),
        ([&absent, &funded, &funded], None),
        ([&funded, &broken, &funded], None),
        ([&funded, &absent, &broken], Some("endpoints_disagree")),
        ([&absent, &absent, &funded], Some("destination_not_funded")),
    ] {
        let quorum = hear(shown);
        let actual = record.judge(&quorum, funded["now"].as_u64().unwrap()).map_err(|failure| failure.code);
        assert_eq!(actual.err(), code);
        assert!(quorum.is_settled());
    }
    // The first word of each endpoint counts, and one endpoint is not two.
    let mut quorum = Quorum::new(names, 2).unwrap();
    for line in [&funded, &funded, &absent] {
        quorum.hear(&play(&record, line, "one"));
    }
    quorum.hear(&play(&record, &funded, "a stranger"));
    assert!(!quorum.is_settled());
    assert_eq!(Quorum::new(["one", "two"], 1).unwrap_err().at.as_ref(), "/quorum");
}

#[test]
fn answers_are_parsed_from_json() {
    let parsed = objects::answers(
        br#"[{"result": "[1]"}, {"error": {"code": 3, "message": "reverted", "data": "0x01"}}, {"error": {"data": {"a": 1}}},
            {"status": 404, "body": "0x6162"}, {"status": 200, "body": "0x", "grpc_status": "5"}, {"failed": "timeout"}]"#,
    );
    let error = |code, message: &str, data| Answer::Error { code, message: message.to_owned(), data };
    let expected = vec![
        Answer::Result(b"[1]".to_vec()),
        error(3, "reverted", Some(vec![1])),
        error(0, "", None),
        Answer::Http { status: 404, body: b"ab".to_vec(), grpc_status: None },
        Answer::Http { status: 200, body: Vec::new(), grpc_status: Some("5".to_owned()) },
        Answer::Failed { kind: "timeout".to_owned(), detail: String::new() },
    ];
    assert_eq!(parsed.unwrap(), expected);
    for (text, code, at) in [
        (&br#"{"result": "1"}"#[..], "wrong_type", "/answers"),
        (br#"[{"result": 1}]"#, "wrong_type", "/answers/0/result"),
        (br#"[{"result": "1", "error": {}}]"#, "unexpected_field", "/answers/0/error"),
        (br#"[{"status": 200}]"#, "missing_field", "/answers/0/body"),
        (br#"[{}]"#, "missing_field", "/answers/0/failed"),
    ] {
        let failure = objects::answers(text).unwrap_err();
        assert_eq!((failure.code, &*failure.at), (code, at));
    }
}

#[test]
fn the_error_of_a_reply_is_read_in_any_shape() {
    let read = |text: &str| match objects::error_answer(text.as_bytes()) {
        Answer::Error { code, message, data } => (code, message, data),
        other => panic!("{other:?}"),
    };
    assert_eq!(read(r#"{"code": 3, "message": "reverted", "data": "0x01"}"#), (3, "reverted".to_owned(), Some(vec![1])));
    assert_eq!(read(r#"{"code": 40, "message": "no", "data": {"revert_error": "why"}}"#), (40, "no: why".to_owned(), None));
    assert_eq!(read(r#""busy""#).1, "busy");
    for text in ["", "{", "null", " null ", r#"1,"result":1"#, r#"null,"result":1"#, "1}{"] {
        assert_eq!(read(text).0, 0, "{text}");
    }
}

#[test]
fn a_batch_is_split_into_its_answers() {
    let split = objects::split_batch(200, br#"[{"id": 1, "result": 2}, {"id": 0, "result": [1]}]"#, 2);
    assert_eq!(split, [Answer::Result(b"[1]".to_vec()), Answer::Result(b"2".to_vec())]);
    assert!(objects::split_batch(500, b"", 2).iter().all(|answer| matches!(answer, Answer::Failed { .. })));
}
