//! What a quorum says of a transaction that was sent: whether it is rejected, and whether it can never be included.
#![cfg(feature = "evm")]
use countersign::chains::Network;
use countersign::evm::{Evm, TxContext, alloy_primitives::hex};
use countersign::reader::{
    Answer, Drive, Fate, FateObservation, FateReader, Known, NotSent, Quorum, Request, SendObservation, SendReader, Verdict, check_sent,
};
use countersign::{Code, Refusal};
use countersign_testkit::chain::evm::{Evm as Chain, answer_with, terms};
use serde_json::{Value, json};

/// The id of a signed transaction whose nonce is 2, and its bytes in hex.
fn signed() -> (String, String) {
    let case = countersign_testkit::fixture::<Evm>("evm-chain-id-integer");
    let mut order = countersign_testkit::verified::<Evm>(&case).prepare(TxContext::eip1559(1, 30_000_000_000, 1)).unwrap();
    order.sign(&countersign_testkit::key::<Evm>(&case)).unwrap();
    let transaction = order.finish().unwrap().transactions().pop().unwrap();
    (transaction.id.clone(), hex::encode(&transaction.bytes))
}

/// Drives a reader against a chain, on which some methods have another result.
fn drive<R: Drive>(mut reader: R, lie: impl Fn(&str) -> Option<Value>) -> R::Observation {
    let chain = Chain::funded(&terms().destination);
    while !reader.requests().is_empty() {
        let answer = |request: &Request| {
            let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
            answer_with(&lie(method).unwrap_or_else(|| chain.result(method, &serde_json::from_str(params).unwrap())))
        };
        let answers: Vec<Answer> = reader.requests().iter().map(answer).collect();
        reader.answer(&answers).unwrap();
    }
    reader.finish().unwrap()
}

/// Reads the fate from an endpoint that shows this nonce of the sender in its final block.
fn fate_at(nonce: &str) -> FateObservation {
    let (id, payload) = signed();
    let reader = FateReader::new(&Network::Evm(1), &id, &payload, &Known::default()).unwrap();
    drive(reader, |method| (method == "eth_getTransactionCount").then(|| json!(nonce)))
}

#[test]
fn a_payment_is_dead_by_the_words_of_a_quorum() {
    let (dead, open) = (fate_at("0x3"), fate_at("0x2"));
    assert!(matches!(dead.fate(), Fate::Dead(_)));
    assert_eq!((dead.is_dead(), open.fate()), (Ok(()), &Fate::Open));
    assert!(open.is_dead().unwrap_err().contains("may still be included"));
    let ask = |all: [&FateObservation; 3]| {
        let mut quorum = Quorum::new(["one", "two", "three"], 2).unwrap();
        for (name, one) in ["one", "two", "three"].into_iter().zip(all) {
            quorum.hear(name, Ok(one.clone()));
        }
        matches!(quorum.ask(FateObservation::is_dead), Verdict::Stands(..))
    };
    assert!(ask([&dead, &open, &dead]) && ask([&dead, &dead, &dead]));
    assert!(!ask([&dead, &open, &open]), "one endpoint alone");
    let (id, payload) = signed();
    let refused = |network: &Network, id: &str, payload: &str| -> Refusal {
        FateReader::new(network, id, payload, &Known::default()).map(|_| ()).unwrap_err()
    };
    assert_eq!(refused(&Network::Evm(1), &id, "00").code(), Code::TransactionMismatch);
    assert_eq!(refused(&Network::Evm(10), &id, &payload).code(), Code::TransactionMismatch);
}

#[test]
fn a_rejection_says_by_how_many_endpoints() {
    let (id, payload) = signed();
    let send = |result: Value| -> SendObservation {
        let reader = SendReader::new(&Network::Evm(1), &id, &payload, &Known::default()).unwrap();
        drive(reader, |method| match method {
            "eth_sendRawTransaction" => Some(result.clone()),
            "eth_getTransactionByHash" => Some(Value::Null),
            _ => None,
        })
    };
    let accepted = send(json!(id));
    let rejected = send(json!({"error": {"code": -32_000, "message": "nonce too low"}}));
    let check = |all: &[&SendObservation]| {
        let names = ["one", "two", "three"];
        let mut quorum = Quorum::new(names, 2).unwrap();
        for (name, one) in names.into_iter().zip(all) {
            quorum.hear(name, Ok((*one).clone()));
        }
        check_sent(&quorum)
    };
    let counted = |by: usize, accepted: usize, endpoint: &str| {
        let (endpoint, message) = (endpoint.to_owned(), "nonce too low".to_owned());
        Err(NotSent::Rejected { endpoint, message, by, accepted, needed: 2 })
    };
    assert_eq!(check(&[&accepted, &rejected, &accepted]), Ok(()));
    for (all, expected, is_by_quorum) in [
        (&[&rejected, &rejected, &rejected][..], counted(3, 0, "one"), true),
        (&[&rejected, &rejected], counted(2, 0, "one"), true),
        (&[&rejected], counted(1, 0, "one"), false),
        (&[&accepted, &rejected, &rejected], counted(2, 1, "two"), false),
    ] {
        let outcome = check(all);
        assert_eq!((&outcome, outcome.as_ref().unwrap_err().is_by_quorum()), (&expected, is_by_quorum));
    }
    let silent = check(&[]).unwrap_err();
    assert!(matches!(silent, NotSent::Unknown(_)) && !silent.is_by_quorum());
}
