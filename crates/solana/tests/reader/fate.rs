//! Tests how the status of a sent transaction is read.

use countersign_core::reader::{Fate, Submission};
use countersign_solana::address::SYSTEM_PROGRAM;
use countersign_solana::read;
use countersign_solana::reader::FateOf;
use countersign_solana::solana_instruction::{AccountMeta, Instruction};
use countersign_testkit::fate;

use super::others::{devnet, empty, signed};
use super::*;

/// The height of the finalized block of the chain in memory.
const HEIGHT: u64 = 300_000_000;

/// What an endpoint was known to have shown in its first reading, at a finalized block of this height.
fn since(height: u64) -> Known {
    Known::default().with_progress(format!("fate {}", signed().id), height.to_be_bytes())
}

fn context(value: Value) -> Value {
    json!({"context": {"slot": 1}, "value": value})
}

/// A chain that no longer accepts the blockhash of the transaction.
fn expired() -> Chain {
    lying(empty(), "isBlockhashValid", context(json!(false)))
}

/// As [`expired`], with another answer to one method.
fn expired_with(about: &'static str, answer: Value) -> Chain {
    empty().lying(move |_, method, _| match method {
        _ if method == about => Some(answer.clone()),
        "isBlockhashValid" => Some(context(json!(false))),
        _ => None,
    })
}

fn landed(failed: bool, mark: &str) -> Value {
    let err = if failed { json!({"InstructionError": [0, {"Custom": 1}]}) } else { Value::Null };
    context(json!([{"slot": 7, "err": err, "confirmationStatus": mark}]))
}

fn read_on(submission: &Submission, known: &Known, chain: &Chain) -> Result<Fate, Fault> {
    fate::read::<FateOf>(submission, known, |_, _, request| chain.answer(request)).0.map(Observation::into_output)
}

fn fate_of(known: &Known, chain: &Chain) -> Fate {
    read_on(&signed(), known, chain).unwrap()
}

#[test]
fn a_blockhash_that_has_expired_is_death_after_600_blocks() {
    let dead = fate_of(&since(HEIGHT - 600), &expired());
    assert!(matches!(&dead, Fate::Dead(why) if why.contains("expired")), "{dead:?}");
    let valid = lying(empty(), "isBlockhashValid", context(json!(true)));
    assert_eq!(fate_of(&since(HEIGHT - 600), &valid), Fate::Open);
}

/// At an endpoint whose finalized block is older than the blockhash, the blockhash is not valid either.
#[test]
fn a_blockhash_that_an_endpoint_does_not_know_yet_is_not_death() {
    let (outcome, rounds) = fate::read::<FateOf>(&signed(), &Known::default(), |_, _, request| expired().answer(request));
    let first = outcome.unwrap();
    assert_eq!((first.output(), rounds.len()), (&Fate::Open, 1));
    assert_eq!(first.known(), &since(HEIGHT), "the wait begins");
    let at = |height: u64| expired_with("getBlockHeight", json!(height));
    let mut known = Known::default();
    known.learn(&first.known().progress_only());
    assert_eq!(fate_of(&known, &at(HEIGHT + 599)), Fate::Open);
    assert!(matches!(fate_of(&known, &at(HEIGHT + 600)), Fate::Dead(_)));
    let other = Known::default().with_progress("fate of another", (HEIGHT - 600).to_be_bytes());
    assert_eq!(fate_of(&other, &expired()), Fate::Open);
    let odd = Known::default().with_progress(format!("fate {}", signed().id), *b"odd");
    assert_eq!(fate_of(&odd, &expired()), Fate::Open);
}

#[test]
fn a_transaction_in_the_history_is_included_or_has_failed_for_good() {
    let shown = |failed, mark| fate_of(&since(HEIGHT - 600), &expired_with("getSignatureStatuses", landed(failed, mark)));
    assert_eq!((shown(false, "processed"), shown(false, "finalized")), (Fate::Included, Fate::Included));
    assert_eq!(shown(true, "confirmed"), Fate::Open, "its block may be replaced");
    assert!(matches!(shown(true, "finalized"), Fate::Dead(why) if why.contains("slot 7")));
    // It was included after the first round.
    let answer = |round: usize, _: usize, request: &Request| match round {
        0 => expired().answer(request),
        _ => expired_with("getSignatureStatuses", landed(false, "confirmed")).answer(request),
    };
    assert_eq!(fate::read::<FateOf>(&signed(), &since(HEIGHT - 600), answer).0.unwrap().into_output(), Fate::Included);
}

/// A nonce account replaces a blockhash that expires. `isBlockhashValid` supports no nonces.
#[test]
fn a_transaction_with_a_durable_nonce_never_expires() {
    let advance = |data: &[u8], program, accounts: &[AccountMeta]| {
        let transaction = mined(7, &Instruction { program_id: program, accounts: accounts.to_vec(), data: data.to_vec() }).transaction;
        let (id, payload) = (transaction.signatures[0].to_string(), hex::encode(read::transaction_bytes(&transaction)));
        let known = Known::default().with_progress(format!("fate {id}"), (HEIGHT - 600).to_be_bytes());
        read_on(&Submission::new(&devnet(), &id, &payload), &known, &expired()).unwrap()
    };
    let written = [AccountMeta::new(Address::from([4; 32]), false)];
    assert_eq!(advance(&[4, 0, 0, 0], SYSTEM_PROGRAM, &written), Fate::Open);
    assert_eq!(advance(&[4, 0, 0, 0, 1], SYSTEM_PROGRAM, &written), Fate::Open, "the network reads the first four bytes");
    assert!(matches!(advance(&[2, 0, 0, 0], SYSTEM_PROGRAM, &written), Fate::Dead(_)));
    assert!(matches!(advance(&[4, 0, 0, 0], Address::from([6; 32]), &written), Fate::Dead(_)));
    // The network takes these for transactions with a blockhash.
    let read_only = [AccountMeta::new_readonly(Address::from([4; 32]), false)];
    assert!(matches!(advance(&[4, 0, 0, 0], SYSTEM_PROGRAM, &read_only), Fate::Dead(_)));
    assert!(matches!(advance(&[4, 0, 0, 0], SYSTEM_PROGRAM, &[]), Fate::Dead(_)));
}

#[test]
fn one_liar_of_three_does_not_decide_a_fate() {
    let decide = |known: &Known, chain: &Chain| fate::one_lie_decides_nothing::<FateOf>(&signed(), known, |request| chain.answer(request));
    assert!(matches!(decide(&since(HEIGHT - 600), &expired()), Fate::Dead(_)));
    assert_eq!(decide(&since(HEIGHT - 599), &expired()), Fate::Open);
    let valid = lying(empty(), "isBlockhashValid", context(json!(true)));
    assert_eq!(decide(&since(HEIGHT - 600), &valid), Fate::Open);
    let confirmed = expired_with("getSignatureStatuses", landed(true, "confirmed"));
    assert_eq!(decide(&since(HEIGHT - 600), &confirmed), Fate::Open);
    let mut other = expired();
    other.genesis = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";
    assert!(matches!(read_on(&signed(), &since(HEIGHT - 600), &other), Err(Fault::WrongChain { .. })));
}
