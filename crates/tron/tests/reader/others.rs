//! Tests readings other than of HTLCs.

use countersign_core::reader::{Answer, Equal, Fault, Known, Next, Observation, Reader, Request, Sent, Submission};
use countersign_core::{BlockHeight, Code, Network, UnixMillis, UnixTime};
use countersign_testkit::chain::tron::{LATEST, NOW, SOLID, Tron, bare, id_of};
use countersign_tron::Address;
use countersign_tron::alloy_primitives::B256;
use countersign_tron::reader::{self, Broadcast, NewestBlock, OnChain, Status, View};
use serde_json::{Value, json};

use super::{NATIVE, drive, tron};

/// A redemption contains the secret, which no other chain may see.
#[test]
fn a_transaction_is_sent_only_after_the_identity() {
    let refused = |submission: &Submission| Reader::<Broadcast>::new(submission, &Known::default()).unwrap_err();
    let network = Network::Tron(728_126_428);
    for payload in ["", "zz", "00"] {
        refused(&Submission::new(&network, &bare([1; 32]), payload));
    }
    let signed = signed();
    refused(&Submission::new(&network, &bare([1; 32]), &signed.payload));
    refused(&Submission::new(&Network::Evm(1), &signed.id, &signed.payload));

    let mut reader = Reader::<Broadcast>::new(&signed, &Known::default()).unwrap();
    assert!(!format!("{reader:?}").contains(signed.payload.as_str()));
    let Next::Ask([identity, newest]) = reader.next() else { panic!("nothing but the chain") };
    assert_eq!(identity, &reader::identity(728_126_428).request);
    assert!(matches!(newest, Request::Post { path, .. } if &**path == "/wallet/getnowblock"));
    let other = Tron { genesis: 1, ..tron() };
    let answers = [identity, newest].map(|request| other.answer(request));
    reader.answer(&answers).unwrap();
    assert!(matches!(reader.next(), Next::Failed(Fault::WrongChain { .. })));

    let send = |answers: [Value; 2]| {
        let reader = Reader::<Broadcast>::new(&signed, &Known::default()).unwrap();
        let answer = |round: usize, place: usize, request: &Request| match (round, place) {
            (0, _) | (_, 0) => tron().answer(request),
            _ => Answer::http(200, answers[round - 1].to_string().into_bytes()),
        };
        drive(reader, answer).map(Observation::into_output)
    };
    let knows = json!({"txID": signed.id});
    assert_eq!(send([json!({"result": true, "txid": signed.id}), json!({})]), Ok(Sent::Accepted));
    assert_eq!(send([json!({"code": "TAPOS_ERROR"}), knows.clone()]), Ok(Sent::Accepted));
    assert!(matches!(send([json!({"code": "TAPOS_ERROR"}), json!({})]), Ok(Sent::Rejected(_))));
    assert!(matches!(send([json!({"code": "TAPOS_ERROR"}), json!({"txID": bare([7; 32])})]), Ok(Sent::Rejected(_))));
    assert!(matches!(send([json!({"code": "SERVER_BUSY"}), json!({})]), Err(Fault::Rpc(_))));
    assert!(matches!(send([json!({"result": true, "txid": bare([7; 32])}), knows]), Err(Fault::Malformed(_))));
}

/// A redemption that has expired would reveal the secret for nothing. A transaction that is already on chain counts
/// as accepted.
#[test]
fn a_transaction_that_expires_is_not_sent() {
    let signed = signed();
    let sent = |newest: Value, known: Value| {
        let reader = Reader::<Broadcast>::new(&signed, &Known::default()).unwrap();
        let is_shown = std::cell::Cell::new(false);
        let answer = |_: usize, _: usize, request: &Request| {
            let Request::Post { path, .. } = request else { panic!("{request:?}") };
            is_shown.set(is_shown.get() || &**path == "/wallet/broadcasthex");
            let answer = match &**path {
                "/wallet/getnowblock" => newest.clone(),
                "/wallet/broadcasthex" => json!({"result": true, "txid": signed.id}),
                "/wallet/gettransactionbyid" => known.clone(),
                _ => return tron().answer(request),
            };
            Answer::http(200, answer.to_string().into_bytes())
        };
        (drive(reader, answer).map(Observation::into_output), is_shown.get())
    };
    let at = |millis: u64| {
        let mut block = tron().block(LATEST);
        block["block_header"]["raw_data"]["timestamp"] = json!(millis);
        block
    };
    // java-tron refuses a transaction whose expiration is not after its newest block; five blocks of 3 s are left to get into one.
    for (newest, is_late) in [
        (EXPIRATION - 3_600_000, false),
        (EXPIRATION - 15_001, false),
        (EXPIRATION - 15_000, true),
        (EXPIRATION, true),
        (EXPIRATION + 1, true),
        (u64::MAX, true),
    ] {
        let (outcome, is_shown) = sent(at(newest), json!({}));
        assert_eq!(is_shown, !is_late, "{newest}");
        match outcome {
            Ok(Sent::Accepted) => assert!(!is_late, "{newest}"),
            Ok(Sent::Rejected(why)) => {
                let says = ["expiration_passed", &EXPIRATION.to_string(), &newest.to_string(), "take the expiration from a recent block"];
                assert!(is_late && says.iter().all(|part| why.contains(part)), "{why}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(sent(at(newest), json!({"txID": signed.id})), (Ok(Sent::Accepted), !is_late));
    }
    // An endpoint that does not say has no reason to refuse it; one that says nothing that can be read does not get it.
    assert_eq!(sent(json!({"Error": "class java.lang.NullPointerException"}), json!({})), (Ok(Sent::Accepted), true));
    let other = json!({"blockID": bare(id_of(LATEST + 1)), "block_header": {"raw_data": {"number": LATEST, "timestamp": NOW * 1_000}}});
    for lie in [Value::Null, json!({}), json!([]), other] {
        let (outcome, is_shown) = sent(lie, json!({}));
        assert!(matches!(outcome, Err(Fault::Malformed(_))) && !is_shown, "{outcome:?}");
    }
}

/// When the signed refund expires, in Unix milliseconds.
const EXPIRATION: u64 = 1_800_003_600_000;

/// A signed refund.
pub(crate) fn signed() -> Submission {
    use countersign_tron::recover::{self, Leg};

    let record = countersign_testkit::recover::record::<countersign_tron::Tron>(NATIVE, |_| {}).unwrap();
    let key: countersign_tron::Key = format!("{:064x}", 7).parse().unwrap();
    let (expiration, now) = (UnixMillis::from_millis(EXPIRATION), UnixMillis::from_millis(1_800_000_000_000));
    let calls = countersign_tron::TxContext::new([1, 2], [3; 8], expiration, now);
    let refund = recover::refund(&record, Leg::Source, countersign_testkit::registry()).unwrap();
    let mut unsigned = refund.prepare(calls.sent_by(Address::from(key.address()))).unwrap();
    unsigned.sign(&key).unwrap();
    let signed = unsigned.finish().unwrap();
    let transaction = &signed.transactions()[0];
    Submission::new(&Network::Tron(728_126_428), &transaction.id, &bare(&transaction.bytes))
}

#[test]
fn receipts_of_both_views_must_not_contradict_each_other() {
    let id = B256::repeat_byte(0x42);
    let receipt = |block: u64, result: &str| json!({"id": bare(id), "blockNumber": block, "receipt": {"result": result}});
    let read = |solid: Value, newest: Value| {
        let reader = Reader::<Status>::new(&OnChain { chain_id: 728_126_428, subject: id }, &Known::default()).unwrap();
        let answer = |_: usize, place: usize, request: &Request| match place {
            0 => tron().answer(request),
            1 => Answer::http(200, solid.to_string().into_bytes()),
            _ => Answer::http(200, newest.to_string().into_bytes()),
        };
        drive(reader, answer)
            .map(|observation| observation.output().0.map(|receipt| (receipt.block.get(), receipt.success, receipt.is_final)))
    };
    assert_eq!(read(json!({}), json!({})), Ok(None));
    assert_eq!(read(json!({}), receipt(9, "SUCCESS")), Ok(Some((9, true, false))));
    assert_eq!(read(receipt(9, "SUCCESS"), receipt(9, "SUCCESS")), Ok(Some((9, true, true))));
    assert_eq!(read(receipt(9, "REVERT"), json!({})), Ok(Some((9, false, true))));
    for newest in [receipt(8, "SUCCESS"), receipt(9, "REVERT")] {
        assert!(matches!(read(receipt(9, "SUCCESS"), newest), Err(Fault::Malformed(_))));
    }
}

#[test]
fn the_greatest_height_is_the_first_candidate_for_a_reference() {
    assert_eq!(reader::candidates([100, 7, 100].map(BlockHeight::from)), [100, 80, 7, 0].map(BlockHeight::from));
    assert_eq!(reader::candidates([]), []);
    let tip = |view, known: &Known| {
        let reader = Reader::<NewestBlock>::new(&OnChain { chain_id: 728_126_428, subject: view }, known).unwrap();
        let tip = drive(reader, |_, _, request| tron().answer(request))?;
        let mut known = known.clone();
        known.learn(tip.known());
        Ok((tip.output().height.get(), tip.output().time, known.height().get()))
    };
    let known = Known::default().with_height((LATEST + 1).into());
    assert_eq!(tip(View::Newest, &known), Ok((LATEST, UnixTime::from_secs(NOW - 3), LATEST + 1)));
    assert_eq!(tip(View::Irreversible, &known), Ok((SOLID, UnixTime::from_secs(NOW - 60), LATEST + 1)));
    assert!(matches!(tip(View::Newest, &Known::default().with_height((LATEST + 21).into())), Err(Fault::WentBack { .. })));
}

/// A transaction that TronWeb signed, of `fixtures/chain/tron.json`. Its id is the SHA-256 of its bytes, and does not cover the signatures.
#[test]
fn a_transaction_is_believed_by_its_own_id_only() {
    let file: Value =
        serde_json::from_slice(&std::fs::read(countersign_testkit::project().join("fixtures/chain/tron.json")).unwrap()).unwrap();
    let transactions = &file["orders"][0]["transactions"];
    let honest = &transactions["initiate"];
    let id: B256 = honest["txID"].as_str().unwrap().parse().unwrap();
    let asked = |id: B256, shown: &Value| {
        let subject = reader::OnChain { chain_id: super::wallet::CHAIN_ID, subject: reader::SentTransaction(id) };
        let reader = Reader::<reader::Sent>::new(&subject, &Known::default()).unwrap();
        let answer = |_: usize, _: usize, request: &Request| {
            let Request::Post { path, .. } = request else { panic!("{request:?}") };
            match &**path {
                "/wallet/gettransactionbyid" => Answer::http(200, shown.to_string().into_bytes()),
                _ => tron().answer(request),
            }
        };
        let found = drive(reader, answer)?.into_output().0;
        Ok::<_, Fault>(found.map(|Equal(found)| found.map(|found| found.tx_id())).map_err(|refusal| refusal.code()))
    };
    let with = |member: &str, value: Value| {
        let mut shown = honest.clone();
        shown[member] = value;
        shown
    };
    assert_eq!(asked(id, honest), Ok(Ok(Some(id))));
    assert_eq!(asked(id, &json!({})), Ok(Ok(None)));
    let other = B256::repeat_byte(7);
    // SHA-256 of no bytes, which are no contract call.
    let empty: B256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".parse().unwrap();
    let (same, none) = (honest["signature"][0].clone(), json!([]));
    for (id, shown) in [
        (other, with("txID", json!(bare(other.0)))),
        (other, honest.clone()),
        (id, with("raw_data_hex", json!(""))),
        (id, with("signature", none)),
        (id, with("signature", json!([same, same]))),
    ] {
        assert!(matches!(asked(id, &shown), Err(Fault::Malformed(_))), "{shown}");
    }
    assert_eq!(asked(id, &with("txID", json!(bare(other.0)))), Ok(Ok(Some(id))));
    assert_eq!(asked(empty, &with("raw_data_hex", json!(""))), Ok(Err(Code::TransactionMismatch)));
}
