//! Tests instant refunds: what is signed, and which signatures of others are accepted.

use bitcoin::hashes::Hash;
use bitcoin::{Sequence, Transaction, Witness};
use countersign_bitcoin::recover::{Funding, InstantRefund, Payout};
use countersign_core::{Blame, Code, Refusal};
use countersign_testkit::TestResult;
use serde_json::json;

use super::{INITIATOR, REDEEMER, TO, deducted, funding, key, order, read, refused, swap};

#[test]
fn no_other_hash_is_signed_above_all_not_the_refund_leafs() -> TestResult {
    let swap = swap();
    let refund = InstantRefund::new(&swap, &[funding(1, 0, 50_000)], TO)?;
    let good = hex::encode(refund.sighashes[0]);
    refund.check_hashes(&[&good])?;
    let mismatch = (Code::SighashMismatch, "/0".to_owned());
    // A hash of the refund leaf: that of a refund of the same output to the same address.
    let unsigned = swap.refund(&Payout::new([funding(1, 0, 50_000)], TO, deducted("0")))?;
    let of_refund = hex::encode(&unsigned.requests()[0].digest);
    let refusal = refund.check_hashes(&[&of_refund]).expect_err("the refund leaf's");
    assert_eq!((refusal.code(), refusal.location()), (Code::SighashMismatch, "/0"));
    assert!(refusal.message().contains("refund leaf"), "{refusal}");
    // The service sent it, whatever an application calls the argument.
    let refusal = refusal.with_prefix("/hashes");
    assert_eq!((refusal.blame(), refusal.remedy()), (Blame::Service, "do not sign; report the service"));
    let count = refund.check_hashes(&[]).expect_err("no hash");
    assert_eq!((count.blame(), count.remedy()), (Blame::Service, "do not sign; report the service"));
    // Another output, another amount.
    let other = "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c";
    let elsewhere = InstantRefund::new(&swap, &[funding(1, 0, 50_000)], other)?;
    let refusal = refund.check_hashes(&[&hex::encode(elsewhere.sighashes[0])]).expect_err("another address");
    assert_eq!((refusal.code(), refusal.location()), (Code::SighashMismatch, "/0"));
    assert!(!refusal.message().contains("refund leaf"), "{refusal}");
    let less = InstantRefund::new(&swap, &[funding(1, 0, 49_999)], TO)?;
    assert_eq!(refused(refund.check_hashes(&[&hex::encode(less.sighashes[0])])), mismatch);
    assert_eq!(refused(refund.check_hashes(&["zz"])), mismatch);
    assert_eq!(refused(refund.check_hashes(&[])), (Code::SighashMismatch, String::new()));
    assert_eq!(refused(refund.check_hashes(&[&good, &good])), (Code::SighashMismatch, String::new()));
    Ok(())
}

/// A service may name some of the outputs, in any order, and anybody can pay dust to the deposit.
#[test]
fn each_hash_finds_its_output_and_a_wrong_one_is_refused_at_its_place() -> TestResult {
    let swap = swap();
    let outputs = [funding(1, 0, 330), funding(1, 1, 50_000), funding(1, 1, 60_000), funding(2, 0, 600)];
    let hash = |output| InstantRefund::new(&swap, &[output], TO).map(|refund| refund.sighashes[0]);
    let of = |hashes: &[[u8; 32]]| InstantRefund::of_hashes(&swap, &outputs, TO, hashes);
    let refund = of(&[hash(outputs[3])?, hash(outputs[1])?])?;
    assert_eq!(refund.sighashes, InstantRefund::new(&swap, &[outputs[3], outputs[1]], TO)?.sighashes);

    let of_refund = swap.refund(&Payout::new([outputs[1]], TO, deducted("0")))?.requests()[0].digest.to_vec();
    let of_refund = <[u8; 32]>::try_from(of_refund.as_slice())?;
    let good = hash(outputs[1])?;
    for (hashes, at, is_refund_leaf) in [
        (&[][..], "/hashes", false),
        (&[good; 5], "/hashes", false),
        // One output is refunded once, also if it is said to hold two amounts.
        (&[good, good], "/hashes/1", false),
        (&[good, hash(outputs[2])?], "/hashes/1", false),
        (&[hash(outputs[3])?, [7; 32]], "/hashes/1", false),
        (&[of_refund], "/hashes/0", true),
        (&[hash(outputs[0])?, of_refund], "/hashes/1", true),
    ] {
        let refusal = of(hashes).expect_err("a hash that is not signed");
        assert_eq!((refusal.code(), refusal.location()), (Code::SighashMismatch, at));
        assert_eq!((refusal.blame(), refusal.message().contains("refund leaf")), (Blame::Service, is_refund_leaf), "{refusal}");
    }
    let unknown = InstantRefund::of_hashes(&swap, &[], TO, &[good]);
    assert_eq!(refused(unknown), (Code::FundingMismatch, "/funding".to_owned()));
    Ok(())
}

/// The service writes the record, and can pay dust to the deposit: its own statement says nothing about what is left there.
#[test]
fn a_refund_is_whole_if_it_leaves_neither_an_output_nor_a_part_of_the_amount() -> TestResult {
    let (dust, payment) = (funding(1, 0, 330), funding(2, 0, 50_000));
    let both = [dust, payment];
    for (filled, known, refunded, is_whole) in [
        ("330", &both[..], &[dust][..], false),
        // Endpoints that do not show the payment yet.
        ("330", &[dust], &[dust], false),
        ("330", &both, &both, true),
        ("50000", &both, &[payment], false),
        ("50000", &[payment], &[payment], true),
        ("0", &[payment], &[payment], true),
        ("50330", &[payment], &[payment], false),
    ] {
        let mut order = order();
        order["source_swap"]["filled_amount"] = json!(filled);
        let htlc = read(&order)?;
        let hash = |output: &Funding| Ok(InstantRefund::new(&htlc, &[*output], TO)?.sighashes[0]);
        let hashes = refunded.iter().map(hash).collect::<Result<Vec<_>, Refusal>>()?;
        let refund = InstantRefund::of_hashes(&htlc, known, TO, &hashes)?;
        assert_eq!(refund.is_whole(known), is_whole, "{filled} {known:?} {refunded:?}");
    }
    Ok(())
}

#[test]
fn the_body_of_the_patch_has_65_bytes_for_each_output() -> TestResult {
    let swap = swap();
    let refund = InstantRefund::new(&swap, &[funding(1, 0, 50_000), funding(2, 0, 600)], TO)?;
    let body = refund.sign(&key(INITIATOR))?;
    assert_eq!(body.signatures.len(), 2);
    assert!(body.signatures.iter().all(|text| text.len() == 130 && text.ends_with("83")));
    assert_eq!(serde_json::to_value(&body)?, json!({ "signatures": body.signatures }));
    assert_eq!(refused(refund.sign(&key(REDEEMER))).0, Code::KeyMismatch);
    let texts: Vec<_> = body.signatures.iter().map(String::as_str).collect();
    assert_eq!(refund.attach(&texts)?, body);
    let swapped: Vec<_> = texts.iter().rev().copied().collect();
    assert_eq!(refused(refund.attach(&swapped)), (Code::SignatureMismatch, "/0".to_owned()));
    assert_eq!(refused(refund.attach(&texts[..1])).0, Code::SignatureCount);
    assert_eq!(refused(refund.attach(&["00", texts[1]])).0, Code::SignatureMalformed);
    let requests = refund.requests();
    assert_eq!(requests.len(), 2);
    for (request, sighash) in requests.iter().zip(&refund.sighashes) {
        assert_eq!(bitcoin::TapSighash::hash(&request.message).to_byte_array(), *sighash);
        assert_eq!(request.digest, sighash);
        // The PSBT contains the hash type and the leaf.
        let input = &request.payload.psbt.inputs[request.payload.input];
        assert_eq!(input.sighash_type, Some(bitcoin::TapSighashType::SinglePlusAnyoneCanPay.into()));
        assert_eq!(input.tap_scripts.len(), 1);
        let spent = input.witness_utxo.as_ref().ok_or("a signer needs the output that is spent")?;
        assert_eq!(spent.script_pubkey, swap.tree.script_pubkey());
    }
    Ok(())
}

/// The hash type may be missing, and one signature in 256 ends with the same byte.
#[test]
fn a_signature_of_64_bytes_is_accepted_even_if_it_ends_like_a_hash_type() -> TestResult {
    let swap = swap();
    let mut seen = std::collections::BTreeSet::new();
    for value in 50_000.. {
        let refund = InstantRefund::new(&swap, &[funding(1, 0, value)], TO)?;
        let body = refund.sign(&key(INITIATOR))?;
        let bare = body.signatures[0].get(..128).ok_or("a signature")?;
        if seen.insert(bare.ends_with("83")) {
            assert_eq!(refund.attach(&[bare])?, body);
            assert_eq!(refused(refund.attach(&[&format!("{bare}01")])).0, Code::SignatureMalformed);
        }
        if seen.len() == 2 {
            break;
        }
    }
    Ok(())
}

/// A refund that both parties have signed is relied on by the owner, so each part of it is verified before.
#[test]
fn a_presigned_refund_is_verified_to_its_last_witness_item() -> TestResult {
    let swap = swap();
    let refund = InstantRefund::new(&swap, &[funding(1, 0, 50_000)], TO)?;
    let complete = refund.complete(&refund.sign(&key(INITIATOR))?, &refund.countersign(&key(REDEEMER))?)?;
    let verify = |transaction: &Transaction, filled: &str, owner: &str| {
        let mut order = order();
        order["source_swap"]["initiate_tx_hash"] = json!("01".repeat(32));
        order["source_swap"]["filled_amount"] = json!(filled);
        order["source_swap"]["instant_refund_tx"] = json!(bitcoin::consensus::encode::serialize_hex(transaction));
        InstantRefund::verify_presigned(&read(&order)?, owner).map(|_| ())
    };
    let mismatch = (Code::InstantRefundMismatch, "/order/source_swap/instant_refund_tx".to_owned());
    for filled in ["50000", "0"] {
        verify(&complete, filled, TO)?;
    }
    assert_eq!(refused(verify(&complete, "49999", TO)), mismatch);
    let other = "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c";
    assert_eq!(refused(verify(&complete, "50000", other)), mismatch);
    let mut later = complete.clone();
    later.input[0].sequence = Sequence::from_height(1);
    assert_eq!(refused(verify(&later, "50000", TO)), mismatch);

    let items = complete.input[0].witness.to_vec();
    let with = |slot: usize, item: &[u8]| {
        let (mut changed, mut items) = (complete.clone(), items.clone());
        items[slot] = item.to_vec();
        changed.input[0].witness = Witness::from_slice(&items);
        verify(&changed, "50000", TO)
    };
    let [redeemer, initiator, script, control] = &items[..] else { return Err("four items".into()) };
    // The redeemer may sign later. Until then its slot is empty, or holds a copy.
    for placeholder in [&[][..], initiator] {
        with(0, placeholder)?;
    }
    let changed = |item: &[u8]| item.iter().enumerate().map(|(index, byte)| byte ^ u8::from(index == 9)).collect::<Vec<_>>();
    for (slot, item) in [
        (0, changed(redeemer)),
        (0, redeemer[..64].to_vec()),
        (1, changed(initiator)),
        (1, initiator[..64].to_vec()),
        (1, redeemer.clone()),
        (1, Vec::new()),
        (2, changed(script)),
        (3, changed(control)),
    ] {
        assert_eq!(refused(with(slot, &item)), mismatch, "{slot}");
    }
    Ok(())
}
