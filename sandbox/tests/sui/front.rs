//! The front: its digests are those of the SDK's types, and any bytes get an answer.

use countersign::sui::sui_sdk_types::bcs::{FromBcs as _, ToBcs as _};
use countersign::sui::sui_sdk_types::{Object, ObjectOut, Transaction, TransactionEffects, TransactionKind};
use countersign_sandbox::accounts::{self, RELAYER, SOLVER};
use countersign_sandbox::chains::sui::{Network, Sui};
use countersign_sandbox::chains::{Engine, Terms};
use countersign_sandbox::http::Request;

use crate::world::{SECRET, World};

/// Writes a field with bytes, whose tag takes one byte.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = vec![number << 3 | 2];
    if length < 128 {
        bytes.push(u8::try_from(length).unwrap());
    } else {
        bytes.extend([u8::try_from(length & 0x7f).unwrap() | 0x80, u8::try_from(length >> 7).unwrap()]);
    }
    [bytes, content.to_vec()].concat()
}

/// Reads the fields of a message that have bytes.
fn fields(mut message: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(rest: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = rest[0];
            *rest = &rest[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let value = varint(&mut message);
        if tag & 7 == 2 {
            let (content, rest) = message.split_at(usize::try_from(value).unwrap());
            found.push((tag >> 3, content.to_vec()));
            message = rest;
        }
    }
    found
}

fn inside(message: &[u8], path: &[u64]) -> Vec<u8> {
    path.iter().fold(message.to_vec(), |message, number| fields(&message).into_iter().find(|(found, _)| found == number).unwrap().1)
}

/// Calls a method. Returns the message and the trailers.
fn call(chain: &mut Sui, method: &str, message: &[u8]) -> (Vec<u8>, String) {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    raw(chain, method, [&[0][..], &length, message].concat())
}

fn raw(chain: &mut Sui, method: &str, body: Vec<u8>) -> (Vec<u8>, String) {
    let headers = vec![("content-type".to_owned(), "application/grpc-web+proto".to_owned())];
    let path = format!("/sui.rpc.v2.{method}");
    let reply = chain.answer(&Request { method: "POST".to_owned(), path, query: String::new(), headers, body });
    assert_eq!(reply.status, 200);
    let (mut rest, mut message, mut trailers) = (reply.body.as_slice(), vec![], String::new());
    while let Some((kind, after)) = rest.split_first() {
        let (length, after) = after.split_at(4);
        let (content, after) = after.split_at(usize::try_from(u32::from_be_bytes(length.try_into().unwrap())).unwrap());
        if *kind == 0x80 {
            trailers = String::from_utf8(content.to_vec()).unwrap()
        } else {
            message = content.to_vec()
        }
        rest = after;
    }
    (message, trailers)
}

fn masked(message: Vec<u8>, number: u8, paths: &[&str]) -> Vec<u8> {
    let mask = paths.iter().flat_map(|path| field(1, path.as_bytes())).collect::<Vec<_>>();
    [message, field(number, &mask)].concat()
}

#[test]
fn digests_are_those_of_the_sdk() {
    let world = World::new(Network::mainnet());
    let terms = world.terms(true);
    world.on(|chain| {
        let digest = chain.lock(&terms).unwrap();
        chain.mine(1);
        let asked = masked(field(1, digest.as_bytes()), 2, &["digest", "transaction", "effects", "events"]);
        let (found, trailers) = call(chain, "LedgerService/GetTransaction", &asked);
        assert_eq!(trailers, "grpc-status:0\r\n");
        let executed = inside(&found, &[1]);
        let transaction = Transaction::from_bcs(&inside(&executed, &[2, 1, 2])).unwrap();
        assert_eq!(transaction.digest().to_base58(), digest);
        let effects = TransactionEffects::from_bcs(&inside(&executed, &[4, 1, 2])).unwrap();
        assert_eq!(effects.digest().to_base58().as_bytes(), inside(&executed, &[4, 2]));
        assert_eq!(effects.transaction_digest().to_base58(), digest);
        let TransactionEffects::V2(effects) = effects else { panic!("version 2") };
        let mut seen = 0;
        for change in &effects.changed_objects {
            let asked = masked(field(1, change.object_id.to_string().as_bytes()), 3, &["bcs", "digest"]);
            let (found, _) = call(chain, "LedgerService/GetObject", &asked);
            let ObjectOut::ObjectWrite { digest, .. } = change.output_state else { continue };
            let object = Object::from_bcs(&inside(&found, &[1, 1, 2])).unwrap();
            assert_eq!((object.digest(), object.version(), object.object_id()), (digest, effects.lamport_version, change.object_id));
            assert_eq!(digest.to_base58().as_bytes(), inside(&found, &[1, 4]));
            seen += 1;
        }
        assert_eq!(seen, 3, "the coin that paid, the registry, and the order");
        let bytes: Vec<u8> = serde_json::from_value(chain.payloads(&terms).unwrap()["ptb_bytes"].clone()).unwrap();
        let kind = TransactionKind::from_bcs(&bytes).unwrap();
        assert_eq!((bytes.len(), kind == transaction.kind, kind.to_bcs().unwrap() == bytes), (369, true, true), "as captured");
    });
}

#[test]
fn any_bytes_get_an_answer() {
    let world = World::new(Network::mainnet());
    world.on(|chain| {
        let status = |answer: (Vec<u8>, String)| answer.1.split("\r\n").next().unwrap().to_owned();
        assert_eq!(status(call(chain, "LedgerService/Nothing", &[])), "grpc-status:12");
        assert_eq!(status(call(chain, "LedgerService/GetTransaction", &field(1, &[b'1'; 32]))), "grpc-status:5");
        assert_eq!(status(call(chain, "LedgerService/GetTransaction", &field(1, b"0"))), "grpc-status:3");
        assert_eq!(status(call(chain, "LedgerService/GetEpoch", &masked(vec![], 2, &["no.such"]))), "grpc-status:3");
        assert_eq!(status(call(chain, "TransactionExecutionService/ExecuteTransaction", &[])), "grpc-status:3");
        assert_eq!(status(call(chain, "LedgerService/GetObject", &[0xff; 40])), "grpc-status:13");
        for body in [vec![], vec![0; 4], vec![0, 0, 0, 0, 9], vec![1, 0, 0, 0, 0], vec![0xff; 100]] {
            assert_ne!(status(raw(chain, "LedgerService/GetObject", body)), "grpc-status:0");
        }
        let mut word = 1_u32;
        for method in ["LedgerService/GetObject", "StateService/ListOwnedObjects", "TransactionExecutionService/SimulateTransaction"] {
            for length in 0..200_usize {
                let noise: Vec<u8> = (0..length)
                    .map(|_| {
                        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        word.to_be_bytes()[0] & 0x3f
                    })
                    .collect();
                call(chain, method, &noise);
            }
        }
        let plain = Request { method: "GET".to_owned(), path: "/".to_owned(), query: String::new(), headers: vec![], body: vec![] };
        assert_eq!(chain.answer(&plain).status, 415);
    });
}

#[test]
fn a_transaction_is_executed_once_and_only_as_it_was_signed() {
    let world = World::new(Network::mainnet());
    let terms = world.terms(true);
    world.on(|chain| {
        let digest = chain.lock(&terms).unwrap();
        chain.mine(1);
        let asked = masked(field(1, digest.as_bytes()), 2, &["transaction", "signatures"]);
        let executed = inside(&call(chain, "LedgerService/GetTransaction", &asked).0, &[1]);
        let (transaction, signature) = (inside(&executed, &[2, 1, 2]), inside(&executed, &[3, 1, 2]));
        let mut send = |transaction: &[u8], signature: &[u8]| {
            let message = [field(1, &field(1, &field(2, transaction))), field(2, &field(1, &field(2, signature)))].concat();
            call(chain, "TransactionExecutionService/ExecuteTransaction", &masked(message, 3, &["digest"]))
        };
        let (again, trailers) = send(&transaction, &signature);
        assert_eq!((inside(&again, &[1, 1]), trailers.as_str()), (digest.into_bytes(), "grpc-status:0\r\n"));
        let refusal = |(_, trailers): (Vec<u8>, String)| trailers;
        for place in [1, 40, 70] {
            let mut other = signature.clone();
            other[place] ^= 1;
            assert!(refusal(send(&transaction, &other)).starts_with("grpc-status:3\r\ngrpc-message:Invalid%20user%20signature"));
        }
        let mut cheaper = Transaction::from_bcs(&transaction).unwrap();
        cheaper.gas_payment.budget -= 1;
        assert!(refusal(send(&cheaper.to_bcs().unwrap(), &signature)).contains("Invalid%20user%20signature"));
        assert_eq!((chain.pending(), chain.events().len()), (0, 1));
    });
}

#[test]
fn deep_types_do_no_harm() {
    let world = World::new(Network::mainnet());
    world.on(|chain| {
        let user = chain.address_of(&accounts::key(SOLVER));
        let deep = "vector<".repeat(1_000);
        let asked = [field(1, user.as_bytes()), field(2, deep.as_bytes())].concat();
        assert!(call(chain, "StateService/GetBalance", &asked).1.starts_with("grpc-status:3"));
        // A call whose type argument is a vector of vectors, as deep as BCS allows.
        let kind = [&[0, 0, 1, 0][..], &[0; 32], &[1, b'a', 1, b'b', 1], &[6; 490], &[1, 0]].concat();
        let data = [&[0][..], &kind, &[0; 32], &[0], &[0; 48], &[0]].concat();
        let asked = field(1, &field(1, &field(2, &data)));
        assert!(call(chain, "TransactionExecutionService/SimulateTransaction", &asked).1.starts_with("grpc-status:3"));
    });
}

#[test]
fn what_cannot_be_is_refused() {
    let world = World::new(Network::mainnet());
    let terms = world.terms(true);
    world.on(|chain| {
        assert!(chain.initiate(&terms, "").is_err());
        assert!(chain.leg(&Terms { delegate: Some("00".to_owned()), ..terms.clone() }).is_err());
        assert!(chain.leg(&Terms { asset: "sui:usdc".to_owned(), ..terms.clone() }).is_err());
        assert!(chain.leg(&Terms { owner: "0x1".to_owned(), ..terms.clone() }).is_err());
        assert!(chain.leg(&Terms { amount: u128::MAX, ..terms.clone() }).is_err());
        assert!(chain.fund("0x", "sui:sui", 1).is_err() && chain.balance("0x", "sui:sui").is_err());
        let abort =
            |outcome: Result<String, String>| outcome.unwrap_err().split("code: ").nth(1).unwrap().split(',').next().unwrap().to_owned();
        let solver = chain.address_of(&accounts::key(SOLVER));
        assert_eq!(abort(chain.lock(&Terms { timelock: 0, ..terms.clone() })), "9");
        assert_eq!(abort(chain.lock(&Terms { timelock: 604_800_001, ..terms.clone() })), "9");
        assert_eq!(abort(chain.lock(&Terms { amount: 0, ..terms.clone() })), "10");
        assert_eq!(abort(chain.lock(&Terms { owner: solver, ..terms.clone() })), "11");
        assert_eq!(abort(chain.lock(&Terms { owner: format!("0x{}", "0".repeat(64)), ..terms.clone() })), "3");
        assert_eq!(abort(chain.redeem(&terms, &SECRET)), "5");
        chain.lock(&terms).unwrap();
        assert_eq!(abort(chain.redeem(&terms, &[1; 32])), "8");
        chain.redeem(&terms, &SECRET).unwrap();
        assert_eq!((abort(chain.redeem(&terms, &SECRET)), abort(chain.refund(&terms))), ("14".to_owned(), "14".to_owned()));
        let relayer = chain.address_of(&accounts::key(RELAYER));
        assert!(chain.lock(&Terms { amount: 1 << 60, ..terms.clone() }).unwrap_err().contains("InsufficientCoinBalance"), "{relayer}");
    });
}
