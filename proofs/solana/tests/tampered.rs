//! Tests a hostile service. Each response is refused. If it is signed by hand anyway, the virtual machine accepts it,
//! and the owner loses what the refusal would have saved.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

mod support;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::solana::Address;
use countersign::solana::address::associated_token_account;
use countersign::solana::solana_instruction::{AccountMeta, Instruction};
use countersign::solana::solana_message::{Message, VersionedMessage};
use countersign::solana::solana_signature::Signature;
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::{Code, Policy};
use serde_json::json;
use sha2::{Digest, Sha256};
use solana_clock::Clock;
use solana_keypair::Keypair;
use solana_signer::Signer;
use support::{FEE, FUNDS, Form, NATIVE, SECRET, Scene, instructions, scene, thief, transaction};

/// An order of lamports and one of tokens.
const ORDERS: [&str; 2] = ["solana-native-legacy", "solana-token-legacy"];
/// The same with the programs whose instruction names the recipient of the refund.
const AUDITED: [&str; 2] = ["solana-audited-native-legacy", "solana-audited-token-legacy"];
const SOLVERS_OWN: [u8; 32] = *b"countersign proofs: solver's own";
const SYSTEM_PROGRAM: Address = Address::from_str_const("11111111111111111111111111111111");

/// Signs a message without checks.
fn blindly(mut transaction: VersionedTransaction, key: &Keypair) -> VersionedTransaction {
    transaction.signatures = vec![key.sign_message(&transaction.message.serialize())];
    transaction
}

fn unsigned(scene: &Scene, payer: Address, instructions: &[Instruction]) -> VersionedTransaction {
    let message = Message::new_with_blockhash(instructions, Some(&payer), &scene.svm.latest_blockhash());
    VersionedTransaction { signatures: vec![Signature::default()], message: VersionedMessage::Legacy(message) }
}

fn proposed(scene: &Scene) -> VersionedTransaction {
    transaction(scene.line["response"]["result"]["versioned_tx"].as_str().unwrap())
}

/// Signs what the response asks for with the owner's key, without checks.
fn signed_blindly(scene: &Scene) -> VersionedTransaction {
    blindly(proposed(scene), &Keypair::from_base58_string(scene.line["wallet"]["secret_key"].as_str().unwrap()))
}

/// Changes the instructions of the response. The swap account is derived from the terms, as in an honest response.
fn tamper(scene: &mut Scene, change: impl FnOnce(&mut Vec<Instruction>)) {
    let mut instructions = instructions(&proposed(scene));
    change(&mut instructions);
    let swap = scene.swap_account_of(&instructions[0].data);
    for account in instructions[0].accounts.iter_mut().filter(|account| account.pubkey == scene.swap_account) {
        account.pubkey = swap;
    }
    scene.swap_account = swap;
    let bytes = wincode::serialize(&unsigned(scene, scene.owner, &instructions)).unwrap();
    scene.line["response"]["result"]["versioned_tx"] = json!(STANDARD.encode(bytes));
    scene.line["response"]["result"]["versioned_tx_gasless"] = json!(null);
}

/// Checks that the response is refused, then executes it anyway.
fn refused_then_done(scene: &mut Scene, code: Code, at: &str) {
    let refusal = scene.signed().expect_err("a tampered answer");
    assert_eq!((refusal.code(), refusal.location()), (code, format!("/response/result/versioned_tx#{at}").as_str()), "{refusal}");
    scene.svm.send_transaction(signed_blindly(scene)).unwrap();
}

/// Sends an instruction that ends the swap, as a stranger.
fn settle(scene: &mut Scene, name: &str, to: Address, argument: &[u8]) -> bool {
    let (swap, owner) = (scene.swap_account, scene.owner);
    let accounts = match (scene.form, scene.token) {
        (Form::Native, _) if name == "refund" => vec![swap, owner],
        (Form::Native, _) => vec![swap, owner, to],
        (_, None) => vec![swap, to, owner],
        (_, Some((mint, program))) => {
            let identity = Address::find_program_address(&[], &scene.program).0;
            vec![identity, swap, scene.vault(), associated_token_account(to, mint, program).unwrap(), owner, program]
        }
    };
    let data = [&Sha256::digest(format!("global:{name}"))[..8], argument].concat();
    let accounts = accounts.into_iter().map(|account| AccountMeta::new(account, false)).collect();
    let instruction = Instruction { program_id: scene.program, accounts, data };
    let stranger = Keypair::new_from_array([9; 32]);
    scene.svm.airdrop(&stranger.pubkey(), FUNDS).unwrap();
    scene.svm.expire_blockhash();
    scene.svm.send_transaction(blindly(unsigned(scene, stranger.pubkey(), &[instruction]), &stranger)).is_ok()
}

/// Advances the slot.
fn wait(scene: &mut Scene, slots: u64) {
    let now = scene.svm.get_sysvar::<Clock>().slot;
    scene.svm.warp_to_slot(now + slots);
}

/// Returns what the owner, the solver and the thief have gained, without the fee and without the owner's cost for the
/// token vault.
fn gains(scene: &Scene) -> [i128; 3] {
    let gained = |now: u64, before: u64| i128::from(now) - i128::from(before);
    let (owner, solver, thief) = (scene.owner, scene.redeemer, thief().pubkey());
    match scene.token {
        Some(_) => [(owner, 2 * scene.amount), (solver, 0), (thief, 0)].map(|(who, before)| gained(scene.tokens(who), before)),
        None => [(owner, FUNDS - FEE), (solver, FUNDS), (thief, FUNDS)].map(|(who, before)| gained(scene.lamports(who), before)),
    }
}

/// The control test: for an honest response, signing by hand gives the same bytes as the library. The rebuilt
/// response is accepted, only the solver can redeem, and only the owner gets the refund.
#[test]
fn the_blind_hand_signs_an_honest_answer_of_solana_as_the_library_does() {
    for id in ORDERS.into_iter().chain(AUDITED) {
        let untouched = scene(id);
        let [signed] = untouched.signed().unwrap().0.transactions().try_into().unwrap();
        assert_eq!(wincode::serialize(&signed_blindly(&untouched)).unwrap(), signed.bytes, "{id}");

        for ends_with_refund in [false, true] {
            let mut scene = scene(id);
            tamper(&mut scene, |_| ());
            assert!(scene.signed().is_ok(), "{id}");
            scene.svm.send_transaction(signed_blindly(&scene)).unwrap();
            let (amount, owner, solver, thief) = (i128::from(scene.amount), scene.owner, scene.redeemer, thief().pubkey());
            assert!(!settle(&mut scene, "redeem", thief, &SECRET), "{id}");
            assert!(!settle(&mut scene, "redeem", solver, &SOLVERS_OWN), "{id}");
            if ends_with_refund {
                wait(&mut scene, Policy::default().solana.timelock + 1);
                // The client's program for lamports has no account for the recipient. The refund goes to the
                // initiator.
                assert!(scene.form == Form::Native || !settle(&mut scene, "refund", thief, &[]), "{id}");
                assert!(settle(&mut scene, "refund", owner, &[]), "{id}");
                assert_eq!(gains(&scene), [0, 0, 0], "{id}");
            } else {
                assert!(settle(&mut scene, "redeem", solver, &SECRET), "{id}");
                assert_eq!(gains(&scene), [-amount, amount, 0], "{id}");
            }
        }
    }
}

#[test]
fn another_redeemer_on_solana() {
    for (id, at) in ORDERS.into_iter().zip(["260-292", "418-450"]) {
        let mut scene = scene(id);
        let (place, thief) = (scene.form.places().redeemer, thief().pubkey());
        tamper(&mut scene, |instructions| instructions[0].data[place].copy_from_slice(thief.as_ref()));
        refused_then_done(&mut scene, Code::UnknownRedeemer, at);
        // The owner reveals the secret by redeeming the destination.
        assert!(settle(&mut scene, "redeem", thief, &SECRET), "{id}");
        let amount = i128::from(scene.amount);
        assert_eq!(gains(&scene), [-amount, 0, amount], "{id}");
    }
}

#[test]
fn another_secret_hash_on_solana() {
    for (id, at) in ORDERS.into_iter().zip(["292-324", "450-482"]) {
        let mut scene = scene(id);
        let (place, solver) = (scene.form.places().hash, scene.redeemer);
        tamper(&mut scene, |instructions| instructions[0].data[place].copy_from_slice(&Sha256::digest(SOLVERS_OWN)));
        refused_then_done(&mut scene, Code::SecretHashMismatch, at);
        // The solver does this at once, without paying the destination.
        assert!(settle(&mut scene, "redeem", solver, &SOLVERS_OWN), "{id}");
        let amount = i128::from(scene.amount);
        assert_eq!(gains(&scene), [-amount, amount, 0], "{id}");
    }
}

#[test]
fn a_timelock_without_end_on_solana() {
    for (id, at) in ORDERS.into_iter().zip(["252-260", "410-418"]) {
        let mut scene = scene(id);
        let (place, owner) = (scene.form.places().timelock, scene.owner);
        tamper(&mut scene, |instructions| instructions[0].data[place].copy_from_slice(&(u64::MAX >> 1).to_le_bytes()));
        refused_then_done(&mut scene, Code::TimelockTooLong, at);
        wait(&mut scene, 100 * Policy::default().solana.timelock);
        assert!(!settle(&mut scene, "refund", owner, &[]), "{id}");
        let rent = if scene.token.is_some() { 0 } else { NATIVE };
        assert_eq!(gains(&scene), [-i128::from(scene.amount + rent), 0, 0], "{id}");
    }
}

#[test]
fn another_refundee_on_solana() {
    for (id, at) in AUDITED.into_iter().zip(["277-309", "442-474"]) {
        let mut scene = scene(id);
        let (place, thief) = (scene.form.places().refundee.unwrap(), thief().pubkey());
        tamper(&mut scene, |instructions| instructions[0].data[place].copy_from_slice(thief.as_ref()));
        refused_then_done(&mut scene, Code::InitiatorMismatch, at);
        wait(&mut scene, Policy::default().solana.timelock + 1);
        assert!(settle(&mut scene, "refund", thief, &[]), "{id}");
        let amount = i128::from(scene.amount);
        assert_eq!(gains(&scene), [-amount, 0, amount], "{id}");
    }
}

/// The order itself is honest and its solver can redeem it, but the remaining funds go to the thief.
#[test]
fn a_transfer_beside_the_order_on_solana() {
    for (id, at) in ORDERS.into_iter().zip(["356-373", "523-538"]) {
        let mut scene = scene(id);
        let (owner, solver, thief, amount) = (scene.owner, scene.redeemer, thief().pubkey(), scene.amount);
        let transfer = match scene.token {
            None => {
                let data = [&[2, 0, 0, 0][..], &amount.to_le_bytes()].concat();
                let accounts = vec![AccountMeta::new(owner, true), AccountMeta::new(thief, false)];
                Instruction { program_id: SYSTEM_PROGRAM, accounts, data }
            }
            Some((mint, program_id)) => {
                let [from, to] = [owner, thief].map(|holder| associated_token_account(holder, mint, program_id).unwrap());
                let data = [&[3][..], &amount.to_le_bytes()].concat();
                let accounts = vec![AccountMeta::new(from, false), AccountMeta::new(to, false), AccountMeta::new_readonly(owner, true)];
                Instruction { program_id, accounts, data }
            }
        };
        tamper(&mut scene, |instructions| instructions.push(transfer));
        refused_then_done(&mut scene, Code::UnexpectedInstruction, at);
        assert!(settle(&mut scene, "redeem", solver, &SECRET), "{id}");
        let amount = i128::from(amount);
        assert_eq!(gains(&scene), [-2 * amount, amount, amount], "{id}");
    }
}
