//! Sending a transaction, which may contain the secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::Code;
use countersign_core::chains::Network;
use countersign_core::reader::{Agree, Answer, Ask, Equal, FailureKind, Fault, Known, Machine, Reader, Request, Sent, Submission};
use countersign_sui::balance::{ValidDuring, reservation};
use countersign_sui::reader::{Balance, Broadcast, HeldCoins, NewestCheckpoint, On, OwnedCoins, Package, SentTransaction, decode};
use countersign_sui::sui_sdk_types::{Address, Digest, ObjectReference, TransactionExpiration};
use countersign_sui::{Coin, Sui, TxContext};
use countersign_testkit::chain::sui::proto::{Message, answer, members};
use countersign_testkit::chain::sui::{EPOCH, Executed, HEAD, Ledger, MAINNET, Object, SUI, TESTNET, digest_of};
use countersign_testkit::{fixture, key, verified};
use serde_json::json;

use crate::reader::{drive, method};

pub(crate) fn network() -> Network {
    Network::Sui("testnet".to_owned())
}

/// A signed order of the fixtures.
pub(crate) fn submission() -> Submission {
    let coin = ObjectReference::new(Address::new([0x21; 32]), 7, Digest::new([2; 32]));
    signed(TxContext::new(1_000, 5_000_000, vec![coin]))
}

fn signed(gas: TxContext) -> Submission {
    let case = fixture::<Sui>("sui-native");
    let mut unsigned = verified::<Sui>(&case).prepare(gas).unwrap();
    unsigned.sign(&key::<Sui>(&case)).unwrap();
    let signed = unsigned.finish().unwrap();
    let id = signed.payloads().payloads().digest().to_base58();
    Submission::new(&network(), &id, &serde_json::to_string(&signed.payloads().execution()).unwrap())
}

fn send(ledger: &Ledger, submission: &Submission) -> (Result<Sent, Fault>, Vec<Vec<String>>) {
    let (sent, asked) = drive::<Broadcast>(submission, &Known::default(), |_, request| ledger.answer(request));
    (sent.map(|observation| observation.into_output()), asked)
}

#[test]
fn nothing_is_sent_before_the_chain_is_known() {
    let submission = submission();
    let accepts = Ledger { sent: Ok(Executed::new(submission.id.clone())), ..Ledger::funded() };
    let (sent, asked) = send(&accepts, &submission);
    assert_eq!(sent, Ok(Sent::Accepted));
    assert_eq!(asked, [vec!["GetServiceInfo"], vec!["GetServiceInfo", "ExecuteTransaction"]]);
    let other = Ledger { chain_id: MAINNET.to_owned(), ..accepts.clone() };
    let (sent, asked) = send(&other, &submission);
    assert!(matches!(sent, Err(Fault::WrongChain { .. })));
    assert_eq!(asked, [vec!["GetServiceInfo"]]);
    // Neither the subject nor the requests show what is sent.
    let reader = Reader::<Broadcast>::new(&submission, &Known::default()).unwrap();
    let shown = format!("{reader:?}");
    let bytes = serde_json::from_str::<serde_json::Value>(&submission.payload).unwrap()["tx_bytes"].as_str().unwrap().to_owned();
    assert!(!shown.contains(&bytes) && shown.contains("Broadcast("), "{shown}");
}

/// A redemption in another epoch would reveal the secret for nothing. A transaction that is already on chain counts
/// as accepted.
#[test]
fn a_transaction_is_sent_in_its_epochs_only() {
    let genesis = Digest::from_base58(TESTNET).unwrap();
    let coin = || ObjectReference::new(Address::new([0x21; 32]), 7, Digest::new([2; 32]));
    let coins = || TxContext::new(1_000, 5_000_000, vec![coin()]);
    let during = |first: u64| TxContext::from_balance(1_000, 5_000_000, ValidDuring::from_epoch(first, genesis, 42));
    let (first, rest) = (vec!["GetServiceInfo", "GetEpoch"], vec!["GetServiceInfo", "ExecuteTransaction"]);
    // As a wallet may have signed it: with a reservation for this epoch, whenever the transaction itself is valid.
    let reserving = |epoch: u64, expiration: TransactionExpiration| {
        let mut other = decode(&signed(coins())).unwrap();
        let transaction = &mut other.transaction;
        transaction.gas_payment.objects.push(reservation(transaction.sender, 5_000_000, epoch, genesis).unwrap());
        transaction.expiration = expiration;
        let bytes = STANDARD.encode(bcs::to_bytes(transaction).unwrap());
        let execution = json!({ "tx_bytes": bytes, "signatures": [other.signatures[0].to_base64()] });
        Submission::new(&network(), &other.transaction.digest().to_base58(), &execution.to_string())
    };
    for (submission, is_valid) in [
        (signed(coins().with_expiration_epoch(EPOCH)), true),
        (signed(coins().with_expiration_epoch(EPOCH - 1)), false),
        (signed(during(EPOCH)), true),
        (signed(during(EPOCH - 1)), true),
        (signed(during(EPOCH - 2)), false),
        (signed(during(EPOCH + 1)), false),
        (reserving(EPOCH, TransactionExpiration::None), true),
        (reserving(EPOCH - 1, TransactionExpiration::Epoch(EPOCH)), true),
        (reserving(EPOCH - 2, TransactionExpiration::Epoch(EPOCH)), false),
        (reserving(EPOCH + 1, TransactionExpiration::None), false),
        (reserving(EPOCH, TransactionExpiration::Epoch(EPOCH - 1)), false),
    ] {
        let accepts = Ledger { sent: Ok(Executed::new(submission.id.clone())), ..Ledger::funded() };
        let (sent, asked) = send(&accepts, &submission);
        if is_valid {
            assert_eq!((sent, asked), (Ok(Sent::Accepted), vec![first.clone(), rest.clone()].into_iter().map(names).collect()));
            continue;
        }
        assert!(matches!(sent, Ok(Sent::Rejected(why)) if why.contains(&format!("not valid in epoch {EPOCH}"))));
        assert_eq!(asked, [first.clone(), vec!["GetServiceInfo", "GetTransaction"]].map(names));
        let mut done = accepts.clone();
        done.transactions.push(Executed::new(submission.id.clone()));
        assert_eq!(send(&done, &submission).0, Ok(Sent::Accepted));
    }
    // An endpoint that does not answer is not sent it.
    let submission = signed(during(EPOCH));
    let accepts = Ledger { sent: Ok(Executed::new(submission.id.clone())), ..Ledger::funded() };
    let (lost, asked) = drive::<Broadcast>(&submission, &Known::default(), |_, request| {
        if method(request) == "GetEpoch" { Answer::Failed(FailureKind::Interrupted.into()) } else { accepts.answer(request) }
    });
    assert!(lost.is_err() && asked.len() == 1);
}

fn names(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// The value of a member in a message in a message.
pub(crate) fn nested(message: &[u8], path: &[u64]) -> Vec<u8> {
    path.iter().fold(message.to_vec(), |message, field| members(&message).into_iter().find(|(tag, _)| tag == field).unwrap().1)
}

#[test]
fn what_is_sent_is_what_was_signed() {
    let submission = submission();
    let signed = decode(&submission).unwrap();
    let accepts = Ledger { sent: Ok(Executed::new(submission.id.clone())), ..Ledger::funded() };
    let mut sent = Vec::new();
    let (outcome, _) = drive::<Broadcast>(&submission, &Known::default(), |_, request| {
        if let (Request::Post { body, .. }, "ExecuteTransaction") = (request, method(request).as_str()) {
            sent.push(body[5..].to_vec());
        }
        accepts.answer(request)
    });
    assert!(outcome.is_ok());
    let [message] = sent.try_into().unwrap();
    assert_eq!(nested(&message, &[1, 1, 2]), bcs::to_bytes(&signed.transaction).unwrap());
    assert_eq!(members(&message).iter().filter(|(field, _)| *field == 2).count(), 1);
    assert_eq!(nested(&message, &[2, 1, 2]), signed.signatures[0].to_bytes());
}

#[test]
fn a_refused_transaction_is_looked_up() {
    let submission = submission();
    let with = |sent, known: Option<Executed>| {
        let mut ledger = Ledger { sent, ..Ledger::funded() };
        ledger.transactions.extend(known);
        send(&ledger, &submission).0
    };
    let (ok, id) = (Executed::new(submission.id.clone()), submission.id.clone());
    let failed = Executed { success: false, reason: Some("MoveAbort 7\u{1b}"), ..ok.clone() };
    let rejected = |sent: Result<Sent, Fault>| match sent {
        Ok(Sent::Rejected(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(with(Err((3, "coins are gone")), Some(ok.clone())), Ok(Sent::Accepted));
    assert_eq!(with(Err((14, "busy")), Some(ok.clone())), Ok(Sent::Accepted));
    assert_eq!(rejected(with(Err((9, "coins are gone")), None)), "coins are gone");
    assert!(rejected(with(Ok(failed.clone()), None)).starts_with("it was executed and failed: MoveAbort 7"));
    assert!(!rejected(with(Err((3, "coins are gone")), Some(failed))).contains('\u{1b}'));
    assert!(matches!(with(Err((14, "busy")), None), Err(Fault::Rpc(_))));
    assert_eq!(with(Ok(Executed::new(digest_of(7))), None).unwrap_err().code().name(), "node_malformed", "another transaction");
    assert_eq!(with(Ok(Executed::new(digest_of(7))), Some(Executed::new(id))), Ok(Sent::Accepted));
    // Whatever fails on the way, it may have arrived.
    for lost in ["ExecuteTransaction", "GetTransaction"] {
        let refuses = Ledger { sent: Err((3, "gone")), ..Ledger::funded() };
        let answer = |_, request: &Request| {
            if method(request) == lost { Answer::Failed(FailureKind::Interrupted.into()) } else { refuses.answer(request) }
        };
        let (sent, asked) = drive::<Broadcast>(&submission, &Known::default(), answer);
        assert!(matches!(sent, Err(Fault::Unanswered(_))));
        assert_eq!(asked.len(), Broadcast::MAX_ROUNDS);
    }
}

#[test]
fn only_the_stored_transaction_is_sent_and_only_to_a_known_network() {
    let good = submission();
    let refused = |submission: &Submission| Reader::<Broadcast>::new(submission, &Known::default()).unwrap_err();
    let other = refused(&Submission::new(&network(), &digest_of(7), &good.payload));
    assert_eq!((other.code(), other.location()), (Code::TransactionMismatch, "/id"));
    assert_eq!(refused(&Submission::new(&network(), &good.id, "{}")).location(), "/payload/tx_bytes");
    let devnet = refused(&Submission::new(&Network::Sui("devnet".to_owned()), &good.id, &good.payload));
    assert_eq!((devnet.code(), devnet.location()), (Code::UnknownChain, "/network"));
    assert!(devnet.to_string().contains("devnet"), "{devnet}");
}

// ---- the wallet context

#[test]
fn coins_are_listed_in_at_most_four_rounds_and_each_list_is_judged_alone() {
    let owner = On::new(network(), Address::new([0xaa; 32]));
    let coin = |what: u8| {
        let (id, digest, kind) = (Some(Address::new([what; 32])), Some(digest_of(what)), format!("0x2::coin::Coin<{SUI}>"));
        Object { id, version: Some(u64::from(what)), digest, kind, balance: Some(5), ..Object::default() }
    };
    let listed = |pages: Vec<Vec<Object>>| {
        let ledger = Ledger { coins: pages, ..Ledger::funded() };
        let (coins, asked) = drive::<OwnedCoins>(&owner, &Known::default(), |_, request| ledger.answer(request));
        (coins.map(|coins| coins.into_output().0.len()), asked.len())
    };
    assert_eq!(listed(vec![]), (Ok(0), 1));
    assert_eq!(listed(vec![vec![coin(1), coin(2)], vec![coin(3)]]), (Ok(3), 2));
    assert_eq!(listed(vec![vec![coin(1)]; 9]), (Ok(4), 4));
    assert!(listed(vec![vec![coin(1); 501]]).0.is_err());

    let held = |coins: Vec<Coin>| {
        let mut ledger = Ledger::funded();
        ledger.objects.push(coin(1));
        let answer = |_, request: &Request| ledger.answer(request);
        drive::<Ask<_>>(&On::new(network(), HeldCoins(coins)), &Known::default(), answer).0.unwrap().into_output().0
    };
    let reference = |id: u8, version, digest: u8| ObjectReference::new(Address::new([id; 32]), version, Digest::new([digest; 32]));
    assert!(held(vec![Coin::new(reference(1, 1, 1), 5)]));
    for other in [(reference(1, 2, 1), 5), (reference(1, 1, 2), 5), (reference(1, 1, 1), 6), (reference(2, 1, 1), 5)] {
        assert!(!held(vec![Coin::new(reference(1, 1, 1), 5), Coin::new(other.0, other.1)]));
    }
}

#[test]
fn a_question_takes_one_round() {
    let ledger = Ledger::funded();
    let answer = |_, request: &Request| ledger.answer(request);
    let (head, asked) = drive::<Ask<_>>(&On::new(network(), NewestCheckpoint), &Known::default(), answer);
    let head = head.unwrap();
    assert_eq!((head.output().height.get(), head.known().height().get(), asked.len()), (HEAD, HEAD, 1));
    let known = Known::default().with_height((HEAD + 129).into());
    assert!(drive::<Ask<_>>(&On::new(network(), NewestCheckpoint), &known, answer).0.is_err());
    let account = Balance { owner: Address::ZERO, coin_type: SUI.parse().unwrap() };
    assert_eq!(drive::<Ask<_>>(&On::new(network(), account), &Known::default(), answer).0.unwrap().key(), 0);
    let (package, asked) = drive::<Package>(&On::new(network(), Address::ZERO), &Known::default(), answer);
    assert_eq!((package.unwrap().key(), asked.len()), (None, 1));
}

/// The digest is that of the bytes, whether they can be read or not, and does not cover the signatures. A transaction that failed locked
/// nothing.
#[test]
fn a_transaction_is_believed_by_its_own_digest_only() {
    let submission = submission();
    let sent: serde_json::Value = serde_json::from_str(&submission.payload).unwrap();
    let base64 = |text: &serde_json::Value| STANDARD.decode(text.as_str().unwrap()).unwrap();
    let (bytes, signature) = (base64(&sent["tx_bytes"]), base64(&sent["signatures"][0]));
    let id = Digest::from_base58(&submission.id).unwrap();
    let ended = |status: Message| Message::default().message(4, &status);
    let (succeeded, error) = (ended(Message::default().number(1, 1)), Message::default().text(1, "MoveAbort"));
    let failed = ended(Message::default().number(1, 0).message(2, &error));
    let asked_with = |id: Digest, bytes: &[u8], signatures: &[&[u8]], effects: Option<&Message>| {
        let bcs = |bytes: &[u8]| Message::default().message(1, &Message::default().bytes(2, bytes));
        let signatures: Vec<_> = signatures.iter().map(|signature| bcs(signature)).collect();
        let executed = Message::default().text(1, &id.to_base58()).message(2, &bcs(bytes)).all(3, &signatures).optional(4, effects);
        let found = drive::<Ask<_>>(&On::new(network(), SentTransaction(id)), &Known::default(), |_, request| {
            if method(request) == "GetTransaction" {
                Answer::http(200, answer(&Message::default().message(1, &executed)))
            } else {
                Ledger::funded().answer(request)
            }
        });
        let found = found.0?.into_output().0;
        Ok::<_, Fault>(found.map(|Equal(found)| found.map(|found| found.transaction.digest())).map_err(|refusal| refusal.code()))
    };
    let asked = |id, bytes: &[u8], signatures: &[&[u8]]| asked_with(id, bytes, signatures, Some(&succeeded));
    assert_eq!(asked(id, &bytes, &[&signature]), Ok(Ok(Some(id))));
    assert_eq!(asked_with(id, &bytes, &[&signature], Some(&failed)), Ok(Err(Code::TransactionMismatch)));
    // A node that does not say how it ended says nothing.
    for effects in [None, Some(&Message::default()), Some(&ended(Message::default()))] {
        assert!(matches!(asked_with(id, &bytes, &[&signature], effects), Err(Fault::Malformed(_))), "{effects:?}");
    }
    // Blake2b-256 of the salt alone, which is no transaction of an order.
    let empty = countersign_sui::sui_sdk_types::hash::Hasher::digest("TransactionData::");
    assert_eq!(asked(empty, b"", &[&signature]), Ok(Err(Code::TransactionMismatch)));
    let other = Digest::new([7; 32]);
    for (id, bytes, signatures) in [
        (id, &b""[..], &[&signature[..]][..]),
        (other, &bytes, &[&signature]),
        (other, b"", &[&signature]),
        (id, &bytes, &[&signature, &signature, &signature]),
    ] {
        assert!(matches!(asked(id, bytes, signatures), Err(Fault::Malformed(_))), "{id}");
        assert!(matches!(asked_with(id, bytes, signatures, Some(&failed)), Err(Fault::Malformed(_))), "{id}");
    }
}
