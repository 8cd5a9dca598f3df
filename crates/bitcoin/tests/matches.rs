//! Matching transactions and PSBTs of external wallets, which may choose coins, change, fee and order, but not the deposit.

use std::str::FromStr;

use bitcoin::absolute::LockTime;
use bitcoin::consensus::encode;
use bitcoin::hashes::Hash;
use bitcoin::opcodes::Opcode;
use bitcoin::opcodes::all::{OP_CHECKSIG, OP_CHECKSIGADD, OP_EQUAL, OP_EQUALVERIFY, OP_HASH256, OP_NUMEQUAL, OP_SHA256};
use bitcoin::psbt::Psbt;
use bitcoin::script::Builder;
use bitcoin::taproot::{ControlBlock, LeafVersion};
use bitcoin::{
    Amount, EcdsaSighashType, OutPoint, PublicKey, ScriptBuf, Sequence, TapSighashType, Transaction, TxIn, TxOut, Txid, Witness,
    XOnlyPublicKey,
};
use countersign_bitcoin::received::psbt_fee;
use countersign_bitcoin::{Bitcoin, VerifiedOrder};
use countersign_core::{Code, Refusal, Role};
use countersign_testkit::{Case, TestResult, fixture, received, verified, wallet};

const CASES: [&str; 3] = ["bitcoin-p2wpkh", "bitcoin-every-kind", "bitcoin-every-kind-litecoin"];

/// Returns what bitcoinjs-lib signed for a case.
fn signed(case: &Case) -> Transaction {
    let hex = case.expect()["artefacts"]["deposit"]["signed"].as_str().expect("hex").to_owned();
    encode::deserialize_hex(&hex).expect("a transaction")
}

fn refused(order: &VerifiedOrder, transaction: &Transaction) -> (Code, String) {
    let refusal: Refusal = order.matches(transaction).expect_err("another transaction");
    (refusal.code(), refusal.location().to_owned())
}

fn mismatch(location: &str) -> (Code, String) {
    (Code::TransactionMismatch, location.to_owned())
}

#[test]
fn what_pays_the_deposit_matches() {
    for id in CASES {
        let case = fixture::<Bitcoin>(id);
        let (order, mut transaction) = (verified::<Bitcoin>(&case), signed(&case));
        assert_eq!(order.matches(&transaction).expect(id), Role::Initiate);
        // Another wallet chooses its own coins, change, fee and order of outputs.
        transaction.input.truncate(1);
        transaction.input[0].previous_output = OutPoint::new(Txid::all_zeros(), 7);
        transaction.output[1].value = Amount::from_sat(12_345);
        transaction.output.reverse();
        assert_eq!(order.matches(&transaction).expect(id), Role::Initiate);
    }
}

#[test]
fn each_input_is_signed_by_hash_types_that_cover_everything() {
    for id in CASES {
        let case = fixture::<Bitcoin>(id);
        let (order, good) = (verified::<Bitcoin>(&case), signed(&case));
        for index in 0..good.input.len() {
            let mut other = good.clone();
            other.input[index] = TxIn { previous_output: other.input[index].previous_output, ..TxIn::default() };
            assert_eq!(refused(&order, &other), mismatch(&format!("/input/{index}")), "{id}: not signed");
        }
    }
    // The last byte of an ECDSA signature is its hash type: NONE, SINGLE, and ALL of a single input.
    let case = fixture::<Bitcoin>(CASES[0]);
    let (order, good) = (verified::<Bitcoin>(&case), signed(&case));
    for hash_type in [0x02, 0x03, 0x81] {
        let mut other = good.clone();
        let mut items = other.input[0].witness.to_vec();
        *items[0].last_mut().expect("a signature") = hash_type;
        other.input[0].witness = Witness::from_slice(&items);
        assert_eq!(refused(&order, &other), mismatch("/input/0"), "{hash_type:#x}");
        assert_eq!(order.matches_bytes(&encode::serialize(&other)).map_err(|refusal| refusal.code()), Err(Code::TransactionMismatch));
    }
}

/// The outputs that the inputs of a transaction spend, from the case's wallet.
fn spent(case: &Case, transaction: &Transaction) -> Vec<TxOut> {
    let utxos = wallet::<Bitcoin>(case).utxos.expect("coins");
    let output = |input: &TxIn| utxos.iter().find(|utxo| utxo.outpoint() == input.previous_output).expect("a coin").output().clone();
    transaction.input.iter().map(output).collect()
}

#[test]
fn each_signature_is_proven_with_the_output_that_it_spends() {
    let proven = |order: &VerifiedOrder, transaction: &Transaction, spent: &[TxOut]| {
        order.deposit().matches_with(transaction, spent).map_err(|refusal| (refusal.code(), refusal.location().to_owned()))
    };
    for id in CASES.into_iter().chain(["bitcoin-p2tr", "bitcoin-p2sh", "bitcoin-p2pkh"]) {
        let case = fixture::<Bitcoin>(id);
        let (order, good) = (verified::<Bitcoin>(&case), signed(&case));
        let spent = spent(&case, &good);
        assert_eq!(proven(&order, &good, &spent), Ok(Role::Initiate), "{id}");
        assert_eq!(proven(&order, &good, &spent[1..]), Err(mismatch("/spent")), "{id}");
        let mut twice = good.clone();
        twice.input.push(good.input[0].clone());
        let (last, more) = (good.input.len(), [&spent[..], &spent[..1]].concat());
        assert_eq!(proven(&order, &twice, &more), Err(mismatch(&format!("/input/{last}"))), "{id}: spent twice");
        let mut less = spent.clone();
        less.iter_mut().for_each(|output| output.value = Amount::ZERO);
        assert_eq!(proven(&order, &good, &less), Err(mismatch("/output")), "{id}: pays more than it spends");
        for index in 0..good.input.len() {
            // What the signature covers, without the deposit: only the proof sees it.
            let mut other = good.clone();
            other.input[index].sequence.0 ^= 2;
            let refused = proven(&order, &other, &spent).expect_err("another sequence");
            assert_eq!(refused.0, Code::SignatureMismatch, "{id}");
            let mut other = good.clone();
            other.input[index].witness.push([1]);
            assert!(proven(&order, &other, &spent).is_err(), "{id}: more than the input needs");
            // A legacy signature does not commit to the amount.
            let mut more = spent.clone();
            more[index].value = Amount::from_sat(more[index].value.to_sat() + 1);
            let is_legacy = more[index].script_pubkey.is_p2pkh();
            if !is_legacy {
                assert_eq!(proven(&order, &good, &more).expect_err("another amount").0, Code::SignatureMismatch, "{id}");
            }
            let mut unknown = spent.clone();
            unknown[index].script_pubkey = ScriptBuf::new_op_return([7; 4]);
            let at = format!("/spent/{index}/script_pubkey");
            assert_eq!(proven(&order, &good, &unknown), Err((Code::UtxoUnsupported, at)), "{id}");
        }
    }
}

#[test]
fn another_amount_or_address_does_not() {
    for id in CASES {
        let case = fixture::<Bitcoin>(id);
        let (order, good) = (verified::<Bitcoin>(&case), signed(&case));
        for value in [0, 49_999, 50_001] {
            let mut other = good.clone();
            other.output[0].value = Amount::from_sat(value);
            assert_eq!(refused(&order, &other), mismatch("/output/0/value"));
        }
        let script = good.output[0].script_pubkey.to_bytes();
        for index in 0..script.len() {
            let mut script = script.clone();
            script[index] ^= 1;
            let mut other = good.clone();
            other.output[0].script_pubkey = ScriptBuf::from_bytes(script);
            assert_eq!(refused(&order, &other), mismatch("/output"), "{id}: byte {index}");
        }
    }
}

/// Each payment to the address is a separate deposit. Two halves, or the amount twice, do not match the order.
#[test]
fn the_deposit_is_paid_once() {
    let case = fixture::<Bitcoin>(CASES[0]);
    let (order, good) = (verified::<Bitcoin>(&case), signed(&case));
    let mut twice = good.clone();
    twice.output.push(good.output[0].clone());
    assert_eq!(refused(&order, &twice), mismatch("/output/2"));
    let mut halves = twice;
    halves.output[0].value = Amount::from_sat(25_000);
    halves.output[2].value = Amount::from_sat(25_000);
    assert_eq!(refused(&order, &halves), mismatch("/output/2"));
    let mut nothing = good;
    nothing.output = vec![TxOut { value: Amount::from_sat(50_000), script_pubkey: ScriptBuf::new() }];
    assert_eq!(refused(&order, &nothing), mismatch("/output"));
}

#[test]
fn a_psbt_of_another_wallet_is_matched_before_it_is_signed() {
    let case = fixture::<Bitcoin>(CASES[0]);
    let order = verified::<Bitcoin>(&case);
    let text = case.expect()["artefacts"]["deposit"]["psbt"].as_str().expect("a PSBT").to_owned();
    let good = Psbt::from_str(&text).expect("a PSBT");
    let deposit = order.deposit();
    assert_eq!(deposit.matches_psbt(&good).expect("the deposit"), Role::Initiate);
    for hash_type in [EcdsaSighashType::All.into(), TapSighashType::Default.into()] {
        let mut psbt = good.clone();
        psbt.inputs[0].sighash_type = Some(hash_type);
        assert!(deposit.matches_psbt(&psbt).is_ok(), "{hash_type}");
    }
    // Hash types that do not cover all outputs or inputs.
    for hash_type in [EcdsaSighashType::None, EcdsaSighashType::Single, EcdsaSighashType::AllPlusAnyoneCanPay] {
        let mut psbt = good.clone();
        psbt.inputs[0].sighash_type = Some(hash_type.into());
        let refusal = deposit.matches_psbt(&psbt).expect_err("an open hash type");
        assert_eq!((refusal.code(), refusal.location()), (Code::TransactionMismatch, "/inputs/0/sighash_type"));
    }
    // The same in a signature that is already attached.
    let transaction = signed(&case);
    let witness = &transaction.input[0].witness;
    let public_key = PublicKey::from_slice(witness.nth(1).expect("a key")).expect("a key");
    let signature = bitcoin::ecdsa::Signature::from_slice(witness.nth(0).expect("a signature")).expect("a signature");
    let mut psbt = good.clone();
    psbt.inputs[0].partial_sigs.insert(public_key, signature);
    assert!(deposit.matches_psbt(&psbt).is_ok());
    psbt.inputs[0].partial_sigs.insert(public_key, bitcoin::ecdsa::Signature { sighash_type: EcdsaSighashType::None, ..signature });
    assert_eq!(deposit.matches_psbt(&psbt).expect_err("an open signature").location(), "/inputs/0/sighash_type");
    let mut less = good;
    less.unsigned_tx.output[0].value = Amount::from_sat(1);
    assert_eq!(deposit.matches_psbt(&less).expect_err("less").location(), "/output/0/value");
}

/// Whoever signs a PSBT pays its fee, which only the outputs that it spends show.
#[test]
fn the_fee_of_a_psbt_is_judged_before_it_is_signed() {
    for id in ["bitcoin-p2wpkh", "bitcoin-p2tr", "bitcoin-p2sh"] {
        let case = fixture::<Bitcoin>(id);
        let (order, transaction) = (verified::<Bitcoin>(&case), signed(&case));
        let deposit = order.deposit();
        let text = case.expect()["artefacts"]["deposit"]["psbt"].as_str().expect("a PSBT").to_owned();
        let mut good = Psbt::from_str(&text).expect("a PSBT");
        let spent = spent(&case, &transaction);
        let sum = |outputs: &[TxOut]| outputs.iter().map(|output| output.value).sum::<Amount>();
        assert_eq!(psbt_fee(&good), Ok(Some(sum(&spent) - sum(&transaction.output))), "{id}");
        good.inputs.iter_mut().zip(&spent).for_each(|(known, output)| {
            (known.witness_utxo, known.non_witness_utxo) = (Some(output.clone()), None);
        });
        // Without change, all of it is the fee. The default policy allows 1000 sat/vB.
        let with_fee = |fee: u64| {
            let mut psbt = good.clone();
            let others = sum(&transaction.output) - sum(&spent[1..]);
            psbt.inputs[0].witness_utxo.as_mut().expect("an output").value = others + Amount::from_sat(fee);
            psbt
        };
        let judged = |psbt: &Psbt| deposit.matches_psbt(psbt).map_err(|refusal| (refusal.code(), refusal.location().to_owned()));
        let vsize = u64::try_from(transaction.vsize()).expect("a size");
        assert_eq!(psbt_fee(&with_fee(7)), Ok(Some(Amount::from_sat(7))), "{id}");
        assert_eq!(judged(&with_fee(1_000 * vsize)), Ok(Role::Initiate), "{id}");
        // A signature may be a byte longer than this one.
        for fee in [1_000 * (vsize + u64::try_from(spent.len()).expect("few") + 1), 100_000_000] {
            assert_eq!(judged(&with_fee(fee)), Err((Code::FeeRateTooHigh, "/fee".to_owned())), "{id} {fee}");
        }
        assert_eq!(judged(&with_fee(0)), Err((Code::FeeRateZero, "/fee".to_owned())), "{id}");
        let mut less = good.clone();
        less.inputs[0].witness_utxo.as_mut().expect("an output").value = Amount::ZERO;
        let covered = sum(&spent[1..]) >= sum(&transaction.output);
        assert!(covered || judged(&less) == Err(mismatch("/output")), "{id}: pays more than it spends");
        // Any fee is possible where an output is missing.
        let mut unknown = with_fee(100_000_000);
        unknown.inputs[0].witness_utxo = None;
        assert_eq!((psbt_fee(&unknown), judged(&unknown)), (Ok(None), Ok(Role::Initiate)), "{id}");
        let mut twice = good.clone();
        twice.unsigned_tx.input.push(twice.unsigned_tx.input[0].clone());
        twice.inputs.push(twice.inputs[0].clone());
        assert_eq!(judged(&twice), Err(mismatch(&format!("/input/{}", spent.len()))), "{id}: spent twice");
        let mut raw = transaction.clone();
        raw.input.push(raw.input[0].clone());
        assert_eq!(refused(&order, &raw), mismatch(&format!("/input/{}", spent.len())), "{id}: spent twice");
        // A script of another kind may have a large witness, which no fee of a whole coin pays for either.
        let mut other = with_fee(100_000_000);
        other.inputs[0].witness_utxo.as_mut().expect("an output").script_pubkey = ScriptBuf::new_p2wsh(&ScriptBuf::new().wscript_hash());
        other.inputs[0].redeem_script = None;
        assert_eq!(judged(&other), Err((Code::FeeRateTooHigh, "/fee".to_owned())), "{id}");
    }
}

/// Returns the order of a case, and its PSBT with the first input alone.
fn one_input(id: &str) -> (VerifiedOrder, Psbt) {
    let case = fixture::<Bitcoin>(id);
    let text = case.expect()["artefacts"]["deposit"]["psbt"].as_str().expect("a PSBT").to_owned();
    let mut psbt = Psbt::from_str(&text).expect("a PSBT");
    psbt.inputs.truncate(1);
    psbt.unsigned_tx.input.truncate(1);
    (verified::<Bitcoin>(&case), psbt)
}

/// Judges a PSBT with one input, which spends the outputs and this fee.
fn judged_with_fee(order: &VerifiedOrder, psbt: &Psbt, fee: usize) -> Result<Role, Code> {
    let mut psbt = psbt.clone();
    let fee = Amount::from_sat(u64::try_from(fee).expect("a fee"));
    let value = psbt.unsigned_tx.output.iter().map(|output| output.value).sum::<Amount>() + fee;
    let (known, outpoint) = (&mut psbt.inputs[0], &mut psbt.unsigned_tx.input[0].previous_output);
    if let Some(output) = &mut known.witness_utxo {
        output.value = value;
    }
    if let Some(previous) = &mut known.non_witness_utxo {
        previous.output[usize::try_from(outpoint.vout).expect("an index")].value = value;
        outpoint.txid = previous.compute_txid();
    }
    order.deposit().matches_psbt(&psbt).map_err(|refusal| refusal.code())
}

/// Only the witness of a leaf says what the leaf takes, and an unsigned PSBT does not have it. The default policy allows 1000 sat/vB.
#[test]
fn a_script_path_is_not_thought_cheaper_than_it_is() {
    let (order, mut psbt) = one_input("bitcoin-p2tr");
    let key =
        XOnlyPublicKey::from_slice(&psbt.inputs[0].witness_utxo.as_ref().expect("an output").script_pubkey.as_bytes()[2..]).expect("a key");
    let control = |node: u8| ControlBlock::decode(&[&[0xc0], &key.serialize()[..], &[node; 64]].concat()).expect("a control block");
    let (cheap, control) = (control(8), control(7));
    let leaf = |ops: &[Opcode]| {
        ops.iter().fold(Builder::new(), |script, op| {
            if *op == OP_NUMEQUAL { script.push_int(2) } else { script.push_x_only_key(&key) }.push_opcode(*op)
        })
    };
    let two_of_three = leaf(&[OP_CHECKSIG, OP_CHECKSIGADD, OP_CHECKSIGADD, OP_NUMEQUAL]).into_script();
    // Preimages are the longest elements that nodes relay, of 80 bytes.
    let preimages = Builder::new().push_opcode(OP_HASH256).push_slice([7; 32]).push_opcode(OP_EQUALVERIFY);
    let preimages = preimages.push_opcode(OP_SHA256).push_slice([7; 32]).push_opcode(OP_EQUAL).into_script();
    for (script, stack) in [(two_of_three, vec![vec![1; 65], vec![1; 65], vec![]]), (preimages, vec![vec![1; 80]; 2])] {
        let mut signed = psbt.unsigned_tx.clone();
        signed.input[0].witness = [stack, vec![script.to_bytes(), control.serialize()]].concat().into();
        let vsize = signed.vsize();
        psbt.inputs[0].tap_scripts.clear();
        assert_eq!(judged_with_fee(&order, &psbt, 1_000 * vsize), Err(Code::FeeRateTooHigh), "the key path is cheaper");
        psbt.inputs[0].tap_scripts.insert(control.clone(), (script, LeafVersion::TapScript));
        psbt.inputs[0].tap_scripts.insert(cheap.clone(), (ScriptBuf::from_bytes(vec![0x51]), LeafVersion::TapScript));
        assert_eq!(judged_with_fee(&order, &psbt, 1_000 * vsize), Ok(Role::Initiate));
        assert_eq!(judged_with_fee(&order, &psbt, 2_000 * vsize), Err(Code::FeeRateTooHigh));
    }
    // Nobody makes the ceiling higher by more than a script of another kind does.
    psbt.inputs[0].tap_scripts.insert(control, (ScriptBuf::from_bytes(vec![0xac; 100_000]), LeafVersion::TapScript));
    assert_eq!(judged_with_fee(&order, &psbt, 1_000 * (psbt.unsigned_tx.vsize() + 3_002)), Err(Code::FeeRateTooHigh));
}

/// Old keys are uncompressed, and nothing in an unsigned PSBT says so.
#[test]
fn a_key_hash_may_be_that_of_an_uncompressed_key() {
    let (order, psbt) = one_input("bitcoin-p2pkh");
    let mut signed = psbt.unsigned_tx.clone();
    // A signature of 72 bytes and a key of 65, each with its length.
    signed.input[0].script_sig = ScriptBuf::from_bytes(vec![0; 1 + 72 + 1 + 65]);
    assert_eq!(judged_with_fee(&order, &psbt, 1_000 * signed.vsize()), Ok(Role::Initiate));
    assert_eq!(judged_with_fee(&order, &psbt, 1_000 * (signed.vsize() + 2)), Err(Code::FeeRateTooHigh));
}

/// The length of a long script is itself three bytes long.
#[test]
fn a_finalized_input_has_the_weight_of_its_scripts() {
    let (order, mut psbt) = one_input("bitcoin-p2pkh");
    for length in [252, 253, 1_650] {
        let mut signed = psbt.unsigned_tx.clone();
        signed.input[0].script_sig = ScriptBuf::from_bytes(vec![0x51; length]);
        psbt.inputs[0].final_script_sig = Some(signed.input[0].script_sig.clone());
        assert_eq!(judged_with_fee(&order, &psbt, 1_000 * signed.vsize()), Ok(Role::Initiate), "{length}");
        assert_eq!(judged_with_fee(&order, &psbt, 1_000 * (signed.vsize() + 2)), Err(Code::FeeRateTooHigh), "{length}");
    }
}

/// A legacy signature commits to no amount, so that only the whole previous transaction shows it.
#[test]
fn the_amount_of_a_spent_output_is_proven() {
    let case = fixture::<Bitcoin>("bitcoin-p2pkh");
    let order = verified::<Bitcoin>(&case);
    let text = case.expect()["artefacts"]["deposit"]["psbt"].as_str().expect("a PSBT").to_owned();
    let good = Psbt::from_str(&text).expect("a PSBT");
    let deposit = order.deposit();
    let previous = good.inputs[0].non_witness_utxo.clone().expect("the previous transaction");
    let vout = usize::try_from(good.unsigned_tx.input[0].previous_output.vout).expect("an index");
    assert_eq!(deposit.matches_psbt(&good), Ok(Role::Initiate));
    assert!(psbt_fee(&good).is_ok_and(|fee| fee.is_some()));
    let mut alone = good.clone();
    (alone.inputs[0].witness_utxo, alone.inputs[0].non_witness_utxo) = (Some(previous.output[vout].clone()), None);
    assert_eq!((psbt_fee(&alone), deposit.matches_psbt(&alone)), (Ok(None), Ok(Role::Initiate)));
    let refused = |change: &dyn Fn(&mut bitcoin::psbt::Input)| {
        let mut psbt = good.clone();
        change(&mut psbt.inputs[0]);
        let refusal = deposit.matches_psbt(&psbt).expect_err("another output");
        (refusal.code(), refusal.location().to_owned())
    };
    let mismatch = (Code::UtxoMismatch, "/inputs/0/non_witness_utxo".to_owned());
    assert_eq!(refused(&|input| input.non_witness_utxo.as_mut().expect("it").output[vout].value += Amount::ONE_SAT), mismatch);
    let other = TxOut { value: Amount::ONE_SAT, ..previous.output[vout].clone() };
    assert_eq!(refused(&|input| input.witness_utxo = Some(other.clone())), mismatch);
}

/// Many wallets set the current height, which stops nothing. Only the chain knows whether it has passed.
#[test]
fn a_lock_time_in_force_is_said() {
    let case = fixture::<Bitcoin>(CASES[0]);
    let (order, good) = (verified::<Bitcoin>(&case), signed(&case));
    let text = case.expect()["artefacts"]["deposit"]["psbt"].as_str().expect("a PSBT").to_owned();
    let psbt = Psbt::from_str(&text).expect("a PSBT");
    let said = |lock_time, sequence| {
        let (mut transaction, mut psbt) = (good.clone(), psbt.clone());
        for transaction in [&mut transaction, &mut psbt.unsigned_tx] {
            transaction.lock_time = LockTime::from_consensus(lock_time);
            transaction.input.iter_mut().for_each(|input| input.sequence = sequence);
        }
        let of_raw = order.match_with_warnings(&transaction).expect("the payment").1;
        assert_eq!(of_raw, order.deposit().match_psbt_with_warnings(&psbt).expect("the payment").1);
        assert_eq!((order.matches(&transaction), order.deposit().matches_psbt(&psbt)), (Ok(Role::Initiate), Ok(Role::Initiate)));
        of_raw.list().iter().map(|warning| (warning.code(), warning.detail().unwrap_or_default().to_owned())).collect::<Vec<_>>()
    };
    let sequence = Sequence::ENABLE_LOCKTIME_NO_RBF;
    assert_eq!(said(900_000, sequence), [(Code::WalletLockTime, "only blocks above 900000".to_owned())]);
    assert_eq!(said(1_900_000_000, sequence), [(Code::WalletLockTime, "only blocks after Unix second 1900000000".to_owned())]);
    assert_eq!((said(900_000, Sequence::MAX), said(0, sequence)), (vec![], vec![]));
}

/// A signature does not cover more because its input is finalized.
#[test]
fn hash_types_are_read_in_finalized_inputs_too() {
    let mut seen = 0;
    for id in CASES {
        let case = fixture::<Bitcoin>(id);
        let (order, transaction) = (verified::<Bitcoin>(&case), signed(&case));
        let text = case.expect()["artefacts"]["deposit"]["psbt"].as_str().expect("a PSBT").to_owned();
        let mut good = Psbt::from_str(&text).expect("a PSBT");
        for (known, input) in good.inputs.iter_mut().zip(&transaction.input) {
            known.final_script_sig = Some(input.script_sig.clone()).filter(|script| !script.is_empty());
            known.final_script_witness = Some(input.witness.clone()).filter(|witness| !witness.is_empty());
        }
        let deposit = order.deposit();
        let place = |psbt: &Psbt| deposit.matches_psbt(psbt).map_err(|refusal| refusal.location().to_owned());
        assert_eq!(place(&good), Ok(Role::Initiate), "{id}");
        for (index, input) in transaction.input.iter().enumerate() {
            for hash_type in [0x02, 0x03, 0x42, 0x81, 0x82, 0x83] {
                let refused = Err(format!("/inputs/{index}/final_script"));
                let mut psbt = good.clone();
                let mut items = input.witness.to_vec();
                match items.first_mut() {
                    Some(signature) if signature.len() == 64 => signature.push(hash_type),
                    Some(signature) => *signature.last_mut().expect("a hash type") = hash_type,
                    None => {
                        let mut script = input.script_sig.to_bytes();
                        let end = usize::from(script[0]);
                        script[end] = hash_type;
                        psbt.inputs[index].final_script_sig = Some(ScriptBuf::from_bytes(script));
                        assert_eq!(place(&psbt), refused, "{id}: {hash_type:#x}");
                        seen |= 1;
                        continue;
                    }
                }
                psbt.inputs[index].final_script_witness = Some(items.clone().into());
                assert_eq!(place(&psbt), refused, "{id}: {hash_type:#x}");
                seen |= if items.len() == 1 { 2 } else { 4 };
                // A taproot witness with an annex, and by a script.
                if items.len() == 1 {
                    for more in [vec![vec![0x50, 1]], vec![vec![0x51], [vec![0xc1], vec![7; 64]].concat()]] {
                        psbt.inputs[index].final_script_witness = Some([items.clone(), more].concat().into());
                        assert_eq!(place(&psbt), refused, "{id}: {hash_type:#x}");
                    }
                    *items[0].last_mut().expect("a hash type") = 0x01;
                    psbt.inputs[index].final_script_witness = Some(items.clone().into());
                    assert_eq!(place(&psbt), Ok(Role::Initiate), "SIGHASH_ALL");
                }
            }
        }
    }
    assert_eq!(seen, 7, "scripts, taproot and segwit version 0");
}

#[test]
fn transactions_are_matched_as_bytes() -> TestResult {
    received::bytes_are_matched::<Bitcoin>(10, encode::serialize, |signed| {
        let mut unsigned = signed.clone();
        unsigned.input.iter_mut().for_each(|input| (input.script_sig, input.witness) = Default::default());
        encode::serialize(&unsigned)
    })
}

#[test]
fn a_psbt_is_not_a_transaction() {
    let case = fixture::<Bitcoin>(CASES[0]);
    let text = case.expect()["artefacts"]["deposit"]["psbt"].as_str().expect("a PSBT").to_owned();
    let psbt = Psbt::from_str(&text).expect("a PSBT").serialize();
    let refusal = verified::<Bitcoin>(&case).matches_bytes(&psbt).expect_err("a PSBT");
    assert_eq!((refusal.code(), refusal.to_string().contains("a PSBT")), (Code::TransactionMismatch, true), "{refusal}");
}

/// A signer that returns the signed transaction is as good as one that returns a signature.
#[test]
fn signatures_are_taken_from_signed_transactions() -> TestResult {
    received::signatures_are_taken_from_transactions::<Bitcoin>(10, |signed| {
        signed.payloads().psbt().into_iter().map(bitcoin::psbt::Psbt::serialize).collect()
    })
}
