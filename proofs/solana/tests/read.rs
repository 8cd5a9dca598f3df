//! Tests what countersign reads of a swap that the virtual machine has executed, in every form of the programs.
//!
//! The machine's accounts and transactions are put on the chain of `countersign-testkit`, which answers like a node. The
//! sandbox has litesvm behind a node's own interface, where `sandbox/tests/solana/records.rs` pays and ends some of these orders.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, unreachable_pub, reason = "a test fails by panicking")]

#[path = "../../../crates/solana/tests/forms/mod.rs"]
mod forms;
mod support;

use countersign::chains::{FinalityRule, UnixTime};
use countersign::evidence::{HtlcState, HtlcTerms, VerifiedTerms};
use countersign::reader::{Drive, Fault, HtlcQuorum, HtlcReader, Known, Machine, Reader, Sent, Submission};
use countersign::solana::address::{TOKEN_PROGRAM, associated_token_account, to_account};
use countersign::solana::reader::{Broadcast, PreflightCheck, PreflightQuery, Settlement, SettlementQuery};
use countersign::solana::recover::{self, Recovery};
use countersign::solana::solana_hash::Hash;
use countersign::solana::solana_instruction::Instruction;
use countersign::solana::solana_message::v1::TransactionConfig;
use countersign::solana::solana_message::{Message, VersionedMessage};
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::solana::{Address, DurableNonce, TxContext, read};
use countersign::trust::Generation;
use countersign::{Code, Funded, Leg, Refusal, SecretHash, U256};
use countersign_proofs_solana::rent;
use countersign_testkit::chain::solana::{self as scripted, Chain, FORMS, Mined, NOW, swap_of, token_account};
use serde_json::json;
use solana_account::Account;
use solana_keypair::Keypair;
use solana_nonce::state::State;
use solana_nonce::versions::Versions;
use solana_signer::Signer;
use solana_system_interface::instruction::create_nonce_account;
use support::{FUNDS, SECRET, Scene, hash, scene};

/// The slot in which swaps are initiated.
const START: u64 = 1_000;

/// Returns an order on its own machine. Its terms are those of source and destination.
fn order(form: &str) -> (Scene, VerifiedTerms) {
    let (mut scene, mut terms) = (scene(form), scripted::terms(form));
    scene.svm.warp_to_slot(START);
    terms.source.secret_hash = SecretHash(hash());
    terms.destination = terms.source.clone();
    assert_eq!(swap_of(&terms.source).0.swap_account(&swap_of(&terms.source).1), Some(scene.swap_account), "{form}");
    (scene, terms)
}

fn shown(account: Account) -> scripted::Account {
    scripted::Account { lamports: account.lamports, owner: account.owner, data: account.data }
}

/// Returns a chain without swaps, whose newest slot is final.
fn empty(terms: &HtlcTerms, slot: u64) -> Chain {
    Chain { newest: slot, ..Chain::empty(terms).at(slot, NOW) }
}

/// Returns the chain with what the machine holds, and with what was sent to it.
fn chain(scene: &Scene, terms: &HtlcTerms) -> Chain {
    let mut chain = empty(terms, scene.slot());
    let tokens = scene.token.iter().flat_map(|(mint, program)| {
        [scene.owner, scene.redeemer]
            .map(|holder| associated_token_account(holder, *mint, *program).unwrap())
            .into_iter()
            .chain([scene.vault()])
    });
    for key in [scene.owner, scene.redeemer, scene.swap_account].into_iter().chain(tokens) {
        let account = scene.svm.get_account(&key).filter(|account| account.lamports > 0);
        chain.accounts.extend(account.map(|account| (key, shown(account))));
    }
    let mined = |(slot, transaction): &(u64, VersionedTransaction)| Mined {
        slot: *slot,
        transaction: transaction.clone(),
        called: Vec::new(),
        failed: false,
    };
    chain.mined = scene.sent.iter().map(mined).collect();
    chain
}

/// Asks the chain until the reader has finished.
fn drive<D: Drive>(mut reader: D, chain: &Chain) -> Result<D::Observation, Fault> {
    while !reader.requests().is_empty() {
        let answers: Vec<_> = reader.requests().iter().map(|request| chain.answer(request)).collect();
        reader.answer(&answers).unwrap();
    }
    reader.finish()
}

fn ask<M: Machine>(subject: &M::Subject, chain: &Chain) -> M::Output {
    drive(Reader::<M>::new(subject, &Known::default()).unwrap(), chain).unwrap().into_output()
}

fn seen(terms: &HtlcTerms, chain: &Chain) -> HtlcQuorum {
    let mut quorum = HtlcQuorum::new(["machine"], 1).unwrap();
    quorum.hear("machine", drive(HtlcReader::new(terms, &Known::default()).unwrap(), chain));
    quorum
}

fn state(scene: &Scene, terms: &VerifiedTerms) -> HtlcState {
    seen(&terms.destination, &chain(scene, &terms.destination)).state().unwrap().0
}

fn judge(terms: &VerifiedTerms, quorum: &HtlcQuorum) -> Result<Funded, &'static str> {
    let rule: FinalityRule = support::PINNED.chains().find(|chain| chain.name() == terms.destination.chain).unwrap().profile.finality;
    Funded::judge(terms, quorum, &rule, UnixTime::from_secs(NOW)).map_err(|hold| hold.code().name())
}

/// Adds what only the chain shows: who gets the rent, and whether the receiver has a token account.
fn settled(scene: &Scene, terms: &VerifiedTerms, recovery: Recovery) -> Result<Recovery, Refusal> {
    let query = SettlementQuery::new(&terms.source.network, &recovery);
    let facts = ask::<Settlement>(&query, &chain(scene, &terms.source)).0?;
    let recovery = facts.sponsor.map_or_else(|| recovery.clone(), |sponsor| recovery.clone().with_sponsor(sponsor));
    Ok(if facts.new_token_account.is_some() { recovery.with_token_account() } else { recovery })
}

/// Returns what a party has of the locked asset.
fn has(scene: &Scene, party: Address) -> u64 {
    let Some((mint, program)) = scene.token else { return scene.lamports(party) };
    let account = associated_token_account(party, mint, program).unwrap();
    if scene.lamports(account) == 0 { 0 } else { scene.tokens_in(account) }
}

fn put(scene: &mut Scene, address: Address, lamports: u64) {
    scene.svm.set_account(address, Account { lamports, rent_epoch: u64::MAX, ..Account::default() }).unwrap();
}

/// Anyone may redeem, with a legacy message or with one of version 1. A reader that does not support it would miss the secret.
#[test]
fn every_form_is_read_as_locked_and_as_redeemed() {
    for (form, is_v1) in FORMS.iter().flat_map(|form| [(form, false), (form, true)]) {
        let (mut scene, terms) = order(form);
        assert_eq!(state(&scene, &terms), HtlcState::Absent, "{form}");
        scene.initiate();
        scene.svm.warp_to_slot(START + 90);
        let quorum = seen(&terms.destination, &chain(&scene, &terms.destination));
        let (locked, seen) = quorum.state().unwrap();
        let HtlcState::Locked(locked) = &locked else { panic!("{form}: {locked:?}") };
        assert_eq!((locked.elapsed, seen.depth, seen.is_finalized), (90, 91, true), "{form}");
        judge(&terms, &quorum).unwrap();

        if let Some((mint, program)) = scene.token {
            let account = associated_token_account(scene.redeemer, mint, program).unwrap();
            put(&mut scene, account, 0);
        }
        let redemption = recover::redeem(&scene.record(), Leg::Source, &SECRET, scene.registry).unwrap();
        let limits = TransactionConfig::empty().with_compute_unit_limit(100_000).with_loaded_accounts_data_size_limit(1_000_000);
        let redemption = settled(&scene, &terms, if is_v1 { redemption.with_config(limits) } else { redemption }).unwrap();
        let before = has(&scene, scene.redeemer);
        assert!(scene.send(&redemption), "{form}");
        assert_eq!(has(&scene, scene.redeemer), before + scene.amount, "{form}");
        let (_, sent) = scene.sent.last().unwrap();
        assert_eq!(matches!(sent.message, VersionedMessage::V1(_)), is_v1, "{form}");
        let expected = HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(sent.signatures[0].to_string()) };
        assert_eq!(state(&scene, &terms), expected, "{form}");
        assert_eq!(settled(&scene, &terms, redemption.clone()).unwrap_err().code(), Code::SimulationReverted, "{form}");
        assert!(!scene.send(&redemption), "{form}: once");
    }
}

#[test]
fn every_form_is_refunded_after_its_timelock_and_not_before() {
    for form in FORMS {
        let (mut scene, terms) = order(form);
        scene.initiate();
        let before = has(&scene, scene.owner);
        let refund = recover::refund(&scene.record(), Leg::Source, scene.registry).unwrap();
        let expiry = START + scene.record().source_swap.timelock;
        scene.svm.warp_to_slot(expiry);
        assert_eq!(settled(&scene, &terms, refund.clone()).unwrap_err().code(), Code::SimulationReverted, "{form}");
        assert!(!scene.send(&refund), "{form}: not yet");
        scene.svm.warp_to_slot(expiry + 1);
        let refund = settled(&scene, &terms, refund).unwrap();
        assert!(scene.send(&refund), "{form}");
        // The rent of a native swap is also returned to the owner.
        let rent = if scene.token.is_none() { rent(swap_of(&terms.source).0.swap_account_length()) } else { 0 };
        assert_eq!(has(&scene, scene.owner), before + scene.amount + rent, "{form}");
        let id = scene.sent.last().unwrap().1.signatures[0].to_string();
        assert_eq!(state(&scene, &terms), HtlcState::Refunded { transaction: Some(id) }, "{form}");
    }
}

/// Compares the deposit with what the machine does when it simulates it.
fn preflight(scene: &Scene, terms: &VerifiedTerms) -> Result<(), Code> {
    let unsigned = scene.unsigned().unwrap();
    let query = PreflightQuery::new(&terms.source.network, &unsigned).unwrap();
    let transaction = unsigned.payloads().transaction.as_ref().unwrap().transaction().clone();
    let mut chain = chain(scene, &terms.source);
    // A simulated transaction is not signed yet.
    chain.simulated = match scene.svm.clone().with_sigverify(false).simulate_transaction(transaction) {
        Ok(info) => Ok(info.post_accounts.into_iter().map(|(key, account)| (key, shown(account.into()))).collect()),
        Err(failed) => Err(json!(failed.err.to_string())),
    };
    ask::<PreflightCheck>(&query, &chain).0.map(drop).map_err(|refusal| refusal.code())
}

#[test]
fn what_the_owner_cannot_pay_or_has_paid_is_not_signed() {
    for form in FORMS {
        let (mut scene, terms) = order(form);
        let owner = scene.owner;
        assert_eq!(preflight(&scene, &terms), Ok(()), "{form}");
        put(&mut scene, owner, 900_000);
        assert_eq!(preflight(&scene, &terms), Err(Code::InsufficientFunds), "{form}");
        put(&mut scene, owner, FUNDS);
        scene.initiate();
        put(&mut scene, owner, FUNDS);
        assert_eq!(preflight(&scene, &terms), Err(Code::SimulationReverted), "{form}");
    }
}

/// The system program creates and advances a nonce account. A transaction is not sent if its nonce is not, or no
/// longer, stored.
#[test]
fn a_nonce_account_of_the_system_program_is_read_and_advanced() {
    let (mut scene, terms) = order(FORMS[0]);
    scene.initiate();
    let (owner, account) = (Keypair::new_from_array([9; 32]), Keypair::new_from_array([0x71; 32]));
    scene.svm.airdrop(&owner.pubkey(), FUNDS).unwrap();
    let run = |scene: &mut Scene, instruction: &Instruction, signers: &[&Keypair]| {
        let message = Message::new_with_blockhash(std::slice::from_ref(instruction), Some(&owner.pubkey()), &scene.svm.latest_blockhash());
        let signatures = signers.iter().map(|signer| signer.sign_message(&message.serialize())).collect();
        scene.svm.send_transaction(VersionedTransaction { signatures, message: VersionedMessage::Legacy(message) }).unwrap();
    };
    let stored = |scene: &Scene| match bincode::deserialize(&scene.svm.get_account(&account.pubkey()).unwrap().data).unwrap() {
        Versions::Current(state) => match *state {
            State::Initialized(data) => data.blockhash(),
            State::Uninitialized => panic!("not initialized"),
        },
        Versions::Legacy(_) => panic!("an account of before 2022"),
    };
    // Executes what a node is given.
    let send = |scene: &mut Scene, nonce: Hash| {
        let redemption = recover::redeem(&scene.record(), Leg::Source, &SECRET, scene.registry).unwrap();
        let context = TxContext::new().with_nonce(DurableNonce::new(account.pubkey(), nonce));
        let mut unsigned = redemption.prepare(context.sent_by(owner.pubkey())).unwrap();
        unsigned.sign_with(&owner).unwrap();
        let [transaction] = unsigned.finish().unwrap().transactions().try_into().unwrap();
        let mut chain = chain(scene, &terms.source);
        chain.accounts.insert(account.pubkey(), shown(scene.svm.get_account(&account.pubkey()).unwrap()));
        let payload = hex::encode(read::transaction_bytes(&transaction.native));
        match ask::<Broadcast>(&Submission::new(&terms.source.network, &transaction.id, &payload), &chain) {
            Sent::Accepted => assert!(scene.svm.send_transaction(transaction.native).is_ok()),
            Sent::Rejected(why) => return Err(why),
        }
        Ok(())
    };
    let is_refused = |sent: Result<(), String>| sent.is_err_and(|why| why.contains("stores another nonce"));

    let made = create_nonce_account(&owner.pubkey(), &account.pubkey(), &owner.pubkey(), rent(80));
    run(&mut scene, &made[0], &[&owner, &account]);
    assert!(is_refused(send(&mut scene, Hash::default())));
    run(&mut scene, &made[1], &[&owner]);
    let first = stored(&scene);
    // The current blockhash is not the nonce, and the account cannot be advanced before there is another blockhash.
    scene.svm.expire_blockhash();
    let newest = scene.svm.latest_blockhash();
    assert!(is_refused(send(&mut scene, newest)));
    let before = scene.lamports(scene.redeemer);
    send(&mut scene, first).unwrap();
    assert_eq!(scene.lamports(scene.redeemer), before + scene.amount);
    assert_ne!(stored(&scene), first);
    assert!(is_refused(send(&mut scene, first)));
}

/// Tests the accounts in the interfaces' examples, byte by byte. The client's SPL program stores no mint, so an
/// account proves nothing without the transaction that initiated the swap.
#[test]
fn accounts_of_every_layout_are_read_and_judged() {
    for (form, record) in forms::FORMS.iter().zip([FORMS[0], FORMS[2], FORMS[1], FORMS[3]]) {
        let (mut terms, swap) = (scripted::terms(record), forms::swap());
        let destination = &mut terms.destination;
        destination.htlc = Some(to_account(forms::key(form.program)));
        destination.generation = Some(Generation::Solana(form.generation));
        destination.token = form.own.map(|_| forms::MINT.to_owned());
        (destination.initiator, destination.redeemer) = (to_account(swap.initiator), to_account(swap.redeemer));
        (destination.amount, destination.timelock) = (U256::from(swap.amount), swap.timelock);
        destination.secret_hash = SecretHash(swap.secret_hash);
        terms.source = terms.destination.clone();

        let mut chain = empty(&terms.destination, forms::EXPIRY - swap.timelock + 99);
        let lamports = rent(200) + if form.own.is_none() { swap.amount } else { 0 };
        let account = scripted::Account { lamports, owner: forms::key(form.program), data: forms::bytes(form.account) };
        chain.accounts.insert(forms::key(form.swap_account), account);
        if let Some([identity, vault]) = form.own {
            let vault_account = token_account(forms::key(forms::MINT), forms::key(identity), swap.amount);
            assert_eq!(vault_account.owner, TOKEN_PROGRAM);
            chain.accounts.insert(forms::key(vault), vault_account);
        }
        let judged = judge(&terms, &seen(&terms.destination, &chain));
        if form.is_audited() || form.own.is_none() {
            assert_eq!(judged.unwrap().left().units, swap.timelock - 99, "{}", form.program);
            // With one unit less in the account, it is not what was verified.
            let data = &mut chain.account_mut(forms::key(form.swap_account)).data;
            let place = data.windows(8).position(|bytes| bytes == swap.amount.to_le_bytes()).unwrap();
            data[place] -= 1;
            assert_eq!(judge(&terms, &seen(&terms.destination, &chain)).unwrap_err(), "destination_differs", "{}", form.program);
        } else {
            assert_eq!(judged.unwrap_err(), "destination_unclear", "{}", form.program);
        }
    }
}
