//! Tests the formats in which signers return their work: signatures with an explicit hash type, PSBTs of either
//! version, files, and final transactions. bitcoinjs-lib made the signatures with SIGHASH_ALL (`outside.json`,
//! written by `fixtures/generate/signers.mjs`). The `psbt-v2` crate writes the PSBTs of version 2.

use std::collections::BTreeMap;

use bitcoin::base64::Engine as _;
use bitcoin::base64::engine::general_purpose::STANDARD;
use bitcoin::bip32::KeySource;
use bitcoin::consensus::encode;
use bitcoin::key::Secp256k1;
use bitcoin::psbt::Psbt;
use bitcoin::{Network, PrivateKey, PublicKey, TapLeafHash, TapSighashType, Transaction, absolute};
use countersign_bitcoin::recover::{Fee, Payout};
use countersign_bitcoin::{Bitcoin, ExternalSignature, FeeRate, Payment, UnsignedOrder, received};
use countersign_core::{Code, Refusal, RequestId};
use countersign_testkit::{TestResult, artefacts, fixture, verified};
use serde_json::Value as Json;

use crate::recover::{INITIATOR, SECRET, TO, funding, swap};
use crate::sign::{CASES, deposit, prepared, signed_psbt};

/// The cases that bitcoinjs-lib has signed with SIGHASH_ALL: a deposit, a refund and a redemption, at this fee rate.
fn unsigned(name: &str, rate: u64) -> UnsignedOrder {
    let payout = Payout::new([funding(1, 0, 50_000)], TO, Fee::Deducted(FeeRate::from_whole(rate)));
    match name {
        "deposit" => prepared(&fixture::<Bitcoin>("bitcoin-p2tr")),
        "refund" => swap().refund(&payout).expect("a refund"),
        _ => swap().redeem(&SECRET, &payout).expect("a redemption"),
    }
}

fn outside() -> Vec<Json> {
    let outside: Json = serde_json::from_str(include_str!("outside.json")).expect("JSON");
    let cases = outside["cases"].as_array().expect("an array").clone();
    assert_eq!(cases.len(), 3);
    cases
}

fn text<'j>(case: &'j Json, member: &str) -> &'j str {
    case[member].as_str().expect(member)
}

fn transaction(unsigned: UnsignedOrder) -> String {
    hex::encode(&unsigned.finish().expect("everything is signed").transactions()[0].bytes)
}

/// The 65th byte remains in the witness and in the stored signature.
#[test]
fn schnorr_signatures_with_sighash_all_are_proven_and_kept() {
    for case in outside() {
        let name = text(&case, "name");
        let expected = text(&case, "transaction");
        let fresh = || {
            let unsigned = unsigned(name, 2);
            let psbt = unsigned.payloads().payment.as_ref().expect("coins").psbt.to_string();
            assert_eq!(psbt, text(&case, "psbt"), "{name}: sign it again with fixtures/generate/signers.mjs");
            unsigned
        };
        let signed: Transaction = encode::deserialize_hex(expected).expect("a transaction");
        let signature = signed.input[0].witness.nth(0).expect("a signature");
        assert_eq!((signature.len(), signature[64]), (65, 1));
        for form in ["signed", "finalized", "transaction"] {
            let mut unsigned = fresh();
            unsigned.attach_text(RequestId::Input(0), text(&case, form)).expect(form);
            assert!(unsigned.warnings().into_iter().all(|warning| warning.code() != Code::FeeTooLow), "{name}");
            assert_eq!(transaction(unsigned), expected, "{name} {form}");
        }
        for text in [hex::encode(signature), hex::encode_upper(signature), hex::encode_prefixed(signature)] {
            let mut unsigned = fresh();
            unsigned.attach_text(RequestId::Input(0), &text).expect("a signature");
            // The stored and the displayed signature are the same.
            let [(id, kept)] = unsigned.signatures().try_into().expect("one signature");
            assert_eq!((id, kept.to_string()), (RequestId::Input(0), hex::encode(signature)));
            assert_eq!(transaction(unsigned), expected, "{name}");
        }
        // Without its hash type, or with that of the requested digest, it is a signature over something else.
        let refusal = fresh().attach_text(RequestId::Input(0), &hex::encode(&signature[..64])).expect_err("another digest");
        assert_eq!(refusal.code(), Code::SignatureMismatch);
        for index in 0..64 {
            let mut bad = signature.to_vec();
            bad[index] ^= 1;
            let refusal = fresh().attach_text(RequestId::Input(0), &hex::encode(bad)).expect_err("a flipped bit");
            assert_eq!(refusal.code(), Code::SignatureMismatch, "{name} {index}");
        }
    }
}

#[test]
fn other_hash_types_are_refused_by_name() {
    let case = &outside()[0];
    let signed: Transaction = encode::deserialize_hex(text(case, "transaction")).expect("a transaction");
    let signature = signed.input[0].witness.nth(0).expect("a signature");
    for (byte, name) in
        [(0x02, "SIGHASH_NONE"), (0x03, "SIGHASH_SINGLE"), (0x81, "SIGHASH_ALL|SIGHASH_ANYONECANPAY"), (0x00, "a 65th byte 00")]
    {
        let refused = |given: &str| {
            let refusal = unsigned("deposit", 2).attach_text(RequestId::Input(0), given).expect_err(name);
            assert_eq!(refusal.code(), Code::SignatureMismatch, "{name}");
            assert_eq!(refusal.expected().expect("types").to_string(), "SIGHASH_DEFAULT or SIGHASH_ALL");
            assert!(refusal.actual().expect("a type").to_string().starts_with(name), "{refusal}");
        };
        let mut other = signature.to_vec();
        other[64] = byte;
        refused(&hex::encode(&other));
        let mut transaction = signed.clone();
        transaction.input[0].witness = bitcoin::Witness::from_slice(&[&other]);
        refused(&encode::serialize_hex(&transaction));
    }
    // A byte that names no type.
    let mut other = signature.to_vec();
    other[64] = 0x42;
    let refusal = unsigned("deposit", 2).attach_text(RequestId::Input(0), &hex::encode(other)).expect_err("no type");
    assert_eq!(refusal.code(), Code::SignatureMalformed);
}

/// At the lowest rate that every node relays, the bytes of the hash types can lower the rate below it.
#[test]
fn hash_types_that_make_the_fee_too_low_are_a_warning() -> TestResult {
    let secp = Secp256k1::new();
    let key = PrivateKey::from_slice(&hex::decode(INITIATOR).expect("hex"), Network::Testnet)?;
    let public_key = PublicKey::from_private_key(&secp, &key);
    let mut warned = 0;
    for outputs in 1..=4 {
        let fundings: Vec<_> = (0..outputs).map(|vout| funding(1, vout, 10_000)).collect();
        let mut unsigned = swap().refund(&Payout::new(fundings, TO, Fee::Deducted(FeeRate::from_whole(1))))?;
        let payment = unsigned.payloads().payment.clone().ok_or("a payment")?;
        // The library signs with the declared hash type, and finds the key by its origin.
        let mut psbt = payment.psbt.as_ref().clone();
        for input in &mut psbt.inputs {
            input.sighash_type = Some(TapSighashType::All.into());
            let (script, version) = input.tap_scripts.values().next().ok_or("a leaf")?;
            let leaf = TapLeafHash::from_script(script, *version);
            input.tap_key_origins.insert(public_key.inner.x_only_public_key().0, (vec![leaf], KeySource::default()));
        }
        psbt.sign(&BTreeMap::from([(public_key, key)]), &secp).map_err(|(_, errors)| format!("{errors:?}"))?;
        unsigned.attach(RequestId::Input(0), psbt)?;
        let signed = unsigned.payloads().payment.as_ref().and_then(Payment::signed_transaction).ok_or("a transaction")?;
        assert!(signed.input.iter().all(|input| input.witness.nth(0).is_some_and(|signature| signature.len() == 65)));
        let is_low = unsigned.warnings().into_iter().any(|warning| warning.code() == Code::FeeTooLow);
        assert_eq!(is_low, u64::try_from(signed.vsize())? > payment.fee.to_sat(), "{outputs}");
        warned += usize::from(is_low);
    }
    assert!((1..4).contains(&warned), "{warned} of 4");
    Ok(())
}

/// Every way in which a program or a device writes bytes as text.
fn spellings(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let base64 = STANDARD.encode(bytes);
    let wrapped =
        |end: &str| base64.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap().to_owned() + end).collect::<String>();
    vec![
        ("bytes", bytes.to_vec()),
        ("base64", base64.clone().into_bytes()),
        ("base64, final newline", format!("{base64}\n").into_bytes()),
        ("base64, wrapped", wrapped("\n").into_bytes()),
        ("base64, wrapped on Windows", format!("\u{feff}{}", wrapped("\r\n")).into_bytes()),
        ("hex", hex::encode(bytes).into_bytes()),
        ("hex, upper case", hex::encode_upper(bytes).into_bytes()),
        ("hex, prefix and newline", format!("{}\r\n", hex::encode_prefixed(bytes)).into_bytes()),
    ]
}

/// Writes a PSBT of version 0 as one of version 2.
fn version_2(psbt: &Psbt) -> psbt_v2::v2::Psbt {
    use psbt_v2::v2;

    let inputs = psbt.unsigned_tx.input.iter().zip(&psbt.inputs).map(|(input, known)| {
        let mut made = v2::InputBuilder::new(&input.previous_output).build();
        made.sequence = Some(input.sequence);
        made.witness_utxo = known.witness_utxo.clone();
        made.non_witness_utxo = known.non_witness_utxo.clone();
        made.redeem_script = known.redeem_script.clone();
        made.partial_sigs = known.partial_sigs.clone();
        made.tap_key_sig = known.tap_key_sig;
        made.tap_script_sigs = known.tap_script_sigs.clone();
        made.final_script_sig = known.final_script_sig.clone();
        made.final_script_witness = known.final_script_witness.clone();
        made
    });
    let outputs = psbt.unsigned_tx.output.iter().map(|output| v2::OutputBuilder::new(output.clone()).build());
    let mut made = v2::Creator::new().psbt();
    made.inputs = inputs.collect();
    made.outputs = outputs.collect();
    made.global.input_count = made.inputs.len();
    made.global.output_count = made.outputs.len();
    made
}

fn finalized(mut psbt: Psbt, transaction: &Transaction) -> Psbt {
    for (known, input) in psbt.inputs.iter_mut().zip(&transaction.input) {
        known.partial_sigs.clear();
        known.tap_key_sig = None;
        known.final_script_sig = (!input.script_sig.is_empty()).then(|| input.script_sig.clone());
        known.final_script_witness = (!input.witness.is_empty()).then(|| input.witness.clone());
    }
    psbt
}

#[test]
fn what_signers_write_to_files_is_read_in_every_form() {
    for id in CASES {
        let case = fixture::<Bitcoin>(id);
        let (expected, psbt) = (deposit(&case), signed_psbt(&case));
        let signed = encode::deserialize_hex(expected["signed"].as_str().expect("hex")).expect("a transaction");
        let finalized = finalized(psbt.clone(), &signed);
        let forms = [
            ("a PSBT", psbt.serialize()),
            ("a finalized PSBT", finalized.serialize()),
            ("a PSBT of version 2", version_2(&psbt).serialize()),
            ("a finalized PSBT of version 2", version_2(&finalized).serialize()),
            ("the transaction", encode::serialize(&signed)),
        ];
        let read = received::psbt_from_bytes(&version_2(&psbt).serialize()).expect("a PSBT");
        assert_eq!(read, psbt, "{id}");
        verified::<Bitcoin>(&case).deposit().matches_psbt(&read).expect("the payment");
        for (what, bytes) in &forms {
            for (how, file) in spellings(bytes) {
                let mut unsigned = prepared(&case);
                assert_eq!(unsigned.attach_transaction(&file).expect(how), [RequestId::Input(0)], "{id}: {what} as {how}");
                assert_eq!(artefacts::<Bitcoin>(&unsigned)["deposit"], expected, "{id}: {what} as {how}");
                // As text it can be attached under a name too.
                if let Ok(text) = std::str::from_utf8(&file) {
                    let mut unsigned = prepared(&case);
                    unsigned.attach_text(RequestId::Input(0), text).expect(how);
                    assert_eq!(unsigned.missing(), [], "{id}: {what} as {how}");
                }
            }
        }
    }
}

#[test]
fn a_file_of_another_payment_is_refused() {
    let case = fixture::<Bitcoin>("bitcoin-p2wpkh");
    let refused = |file: &[u8]| {
        let mut unsigned = prepared(&case);
        let refusal = unsigned.attach_transaction(file).expect_err("another payment");
        assert_eq!(unsigned.missing(), [RequestId::Input(0)]);
        refusal
    };
    let psbt = signed_psbt(&case);
    let signed: Transaction = encode::deserialize_hex(deposit(&case)["signed"].as_str().expect("hex")).expect("a transaction");
    let mut other = psbt.clone();
    other.unsigned_tx.output[0].value += bitcoin::Amount::ONE_SAT;
    assert_eq!(refused(&version_2(&other).serialize()).code(), Code::PsbtMismatch);
    let mut other = signed.clone();
    other.lock_time = absolute::LockTime::from_consensus(1);
    assert_eq!(refused(&encode::serialize(&other)).code(), Code::PsbtMismatch);
    assert_eq!(refused(&encode::serialize(&psbt.unsigned_tx)).code(), Code::SignatureMissing);
    // A changed signature, and one after which more follows.
    let mut other = signed.clone();
    let items: Vec<_> = other.input[0].witness.iter().map(<[u8]>::to_vec).collect();
    other.input[0].witness = bitcoin::Witness::from_slice(&[&[&items[0][..10], &[items[0][10] ^ 1], &items[0][11..]].concat(), &items[1]]);
    assert_eq!(refused(&encode::serialize(&other)).code(), Code::SignatureMismatch);
    for junk in [b"".as_slice(), b"psbt", b"psbt\xff", b"\0", b"{}", b"0x", b"cHNidP8", &[encode::serialize(&signed), vec![0]].concat()] {
        let refusal = refused(junk);
        assert_eq!(refusal.code(), Code::TransactionMismatch, "{}", hex::encode(junk));
        assert_eq!(refusal.expected().expect("forms").to_string(), "a PSBT or the signed transaction");
    }
    // The signature of one input has no place in a whole transaction.
    let reason = refused("00".repeat(64).as_bytes()).reason().to_owned();
    assert!(reason.contains("under the name of the input"), "{reason}");
}

/// The lock time of version 2 is that of its inputs.
#[test]
fn the_lock_time_of_version_2_is_determined_as_the_crate_does() {
    let psbt = signed_psbt(&fixture::<Bitcoin>("bitcoin-every-kind"));
    let height = |height| Some(absolute::Height::from_consensus(height).expect("a height"));
    let time = |time| Some(absolute::Time::from_consensus(time).expect("a time"));
    let read = |made: &psbt_v2::v2::Psbt| -> Result<Psbt, Refusal> {
        match ExternalSignature::from_bytes(&made.serialize())? {
            ExternalSignature::Psbt(psbt) => Ok(*psbt),
            other => panic!("{other}"),
        }
    };
    let mut made = version_2(&psbt);
    let agrees = |made: &psbt_v2::v2::Psbt| {
        let lock_time = made.determine_lock_time().expect("a lock time");
        assert_eq!(read(made).expect("a PSBT").unsigned_tx.lock_time, lock_time);
        lock_time.to_consensus_u32()
    };
    assert_eq!(agrees(&made), 0);
    made.global.fallback_lock_time = Some(absolute::LockTime::from_consensus(7));
    assert_eq!(agrees(&made), 7);
    (made.inputs[1].min_height, made.inputs[1].min_time) = (height(800_000), time(1_700_000_000));
    (made.inputs[2].min_height, made.inputs[2].min_time) = (height(900_000), time(1_600_000_000));
    assert_eq!(agrees(&made), 900_000);
    made.inputs[2].min_height = None;
    assert_eq!(agrees(&made), 1_700_000_000);
    made.inputs[1].min_time = None;
    assert!(made.determine_lock_time().is_err());
    assert!(read(&made).expect_err("no lock time").reason().contains("no lock time fits all inputs"));
}

/// Bytes of a PSBT of version 2 with one change each.
#[test]
fn a_psbt_of_version_2_must_be_complete() {
    let case = fixture::<Bitcoin>("bitcoin-p2tr");
    let good = version_2(&signed_psbt(&case)).serialize();
    let refused = |bytes: &[u8], why: &str| {
        let refusal = ExternalSignature::from_bytes(bytes).expect_err(why);
        assert_eq!(refusal.code(), Code::SignatureMalformed, "{why}");
        assert!(refusal.reason().contains(why), "{refusal}");
    };
    // Pairs of the global map: two of four bytes, and two counts.
    let pair = |kind: u8| good.windows(2).position(|pair| pair == [1, kind]).expect("a pair");
    let without = |kind: u8, len: usize| {
        let at = pair(kind);
        [&good[..at], &good[at + 3 + len..]].concat()
    };
    refused(&without(0x02, 4), "the version of the transaction is missing");
    refused(&without(0x04, 1), "the number of inputs is missing");
    refused(&without(0x05, 1), "the number of outputs is missing");
    let changed = |kind: u8, byte: u8| {
        let mut bytes = good.clone();
        bytes[pair(kind) + 3] = byte;
        bytes
    };
    refused(&changed(0xfb, 1), "it has version 1: ask the signer for version 0");
    refused(&changed(0xfb, 3), "it has version 3: ask the signer for version 0");
    refused(&changed(0x04, 2), "version 2: ask the signer for version 0");
    refused(&changed(0x05, 1), "more bytes follow");
    refused(&changed(0x05, 3), "version 2: ask the signer for version 0");
    // A second unsigned transaction, and a key that is there twice.
    let unsigned = encode::serialize(&signed_psbt(&case).unsigned_tx);
    let added = |pairs: &[u8]| [&good[..5], pairs, &good[5..]].concat();
    refused(&added(&[&[1, 0, unsigned.len().try_into().unwrap()], unsigned.as_slice()].concat()), "it has an unsigned transaction too");
    refused(&added(&[1, 0x02, 4, 2, 0, 0, 0]), "a key is there twice");
    // Cut anywhere, it is refused.
    for end in 5..good.len() {
        let refusal = ExternalSignature::from_bytes(&good[..end]).expect_err("a cut PSBT");
        assert_eq!(refusal.code(), Code::SignatureMalformed, "{end}");
    }
}

/// A key management service returns DER with either s, or r and s alone.
#[test]
fn ecdsa_signatures_are_read_in_every_form() -> TestResult {
    let case = fixture::<Bitcoin>("bitcoin-p2wpkh");
    let psbt = signed_psbt(&case);
    let (public_key, signature) = psbt.inputs[0].partial_sigs.iter().next().ok_or("a signature")?;
    let compact = signature.signature.serialize_compact();
    let mut high = compact;
    let s = bitcoin::secp256k1::SecretKey::from_slice(&compact[32..])?.negate();
    high[32..].copy_from_slice(&s.secret_bytes());
    let high = bitcoin::secp256k1::ecdsa::Signature::from_compact(&high)?;
    let key = hex::encode(public_key.to_bytes());
    let der = signature.signature.serialize_der();
    let forms = [
        format!("{}:{key}", hex::encode(signature.to_vec())),
        format!("{}:{key}", hex::encode(der)),
        format!("{}:{}\n", hex::encode_upper(der), key.to_uppercase()),
        format!("0x{}:0x{key}", hex::encode(der)),
        format!("{}:{key}", hex::encode(compact)),
        format!("{}:{key}", hex::encode(high.serialize_der())),
        format!("{}:{key}", hex::encode(high.serialize_compact())),
    ];
    for form in forms {
        let mut unsigned = prepared(&case);
        unsigned.attach_text(RequestId::Input(0), &form).expect(&form);
        // The transaction has the low s.
        assert_eq!(artefacts::<Bitcoin>(&unsigned)["deposit"], deposit(&case), "{form}");
    }
    let none = format!("{}02:{key}", hex::encode(der));
    let refusal = prepared(&case).attach_text(RequestId::Input(0), &none).expect_err("SIGHASH_NONE");
    assert_eq!((refusal.code(), refusal.actual().ok_or("a type")?.to_string().as_str()), (Code::SignatureMismatch, "SIGHASH_NONE"));
    Ok(())
}
