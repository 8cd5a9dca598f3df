//! Reading an order without I/O, from honest and lying endpoints: a lie is a fault or unclear, never a funded or redeemed order.
mod contracts;
mod fate;
mod lies;
mod orders;
mod others;
mod preflight;
mod proofs;
mod questions;
mod rules;

use countersign_core::reader::{Answer, Fault, Known, Machine, Next, Observation, Reader, Request};
use countersign_core::{Finding, HtlcState, HtlcTerms, U256};
use countersign_evm::alloy_primitives::hex;
use countersign_evm::read;
use countersign_evm::reader::Htlc;
use countersign_testkit::chain::evm::{Evm as EvmChain, INITIATED, answer_with, id, log, terms};
use serde_json::{Value, json};

fn leg() -> HtlcTerms {
    terms().destination
}

fn leg_with(change: impl FnOnce(&mut HtlcTerms)) -> HtlcTerms {
    let mut terms = leg();
    change(&mut terms);
    terms
}

/// The terms of an order whose id does not commit to the secret hash.
fn unbound() -> HtlcTerms {
    leg_with(|terms| terms.swap_id_recomputed = false)
}

fn chain() -> EvmChain {
    EvmChain::funded(&leg())
}

/// A chain with the event of the funding.
fn with_event() -> EvmChain {
    let (mut chain, terms) = (chain(), leg());
    let topics = [read::INITIATED, id(&terms), terms.secret_hash.0.into(), terms.amount.into()];
    chain.logs = vec![log(chain.htlc, &topics, &[], INITIATED)];
    chain
}

/// Drives a reader to its end. `answer` gets the round and the place of each request.
fn drive<M: Machine>(
    subject: &M::Subject,
    known: &Known,
    answer: impl Fn(usize, usize, &Request) -> Answer,
) -> (Result<Observation<M>, Fault>, Vec<usize>) {
    let mut reader = Reader::<M>::new(subject, known).unwrap();
    let mut asked = Vec::new();
    while let Next::Ask(requests) = reader.next() {
        let round = asked.len();
        asked.push(requests.len());
        let answers: Vec<_> = requests.iter().enumerate().map(|(place, request)| answer(round, place, request)).collect();
        reader.answer(&answers).unwrap();
    }
    assert!(asked.len() <= M::MAX_ROUNDS);
    (reader.finish(), asked)
}

fn read(chain: &EvmChain, terms: &HtlcTerms) -> Result<Finding, Fault> {
    drive::<Htlc>(terms, &Known::default(), |_, _, request| chain.answer(request)).0.map(Observation::into_output)
}

/// Reads with other results for some requests.
fn read_lie(chain: &EvmChain, terms: &HtlcTerms, lie: impl Fn(&str, &Value) -> Option<Value>) -> Result<Finding, Fault> {
    let answer = |_: usize, _: usize, request: &Request| {
        let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
        let params = serde_json::from_str(params).unwrap();
        answer_with(&lie(method, &params).unwrap_or_else(|| chain.result(method, &params)))
    };
    drive::<Htlc>(terms, &Known::default(), answer).0.map(Observation::into_output)
}

fn is_call_of(method: &str, params: &Value, data: &[u8]) -> bool {
    method == "eth_call" && params[0]["data"].as_str().unwrap().starts_with(&hex::encode_prefixed(&data[..4]))
}

fn is_orders(method: &str, params: &Value) -> bool {
    is_call_of(method, params, &read::orders_call([0; 32]))
}

fn words(words: &[U256]) -> Value {
    json!(hex::encode_prefixed(words.iter().flat_map(U256::to_be_bytes::<32>).collect::<Vec<_>>()))
}

#[track_caller]
fn assert_unclear(outcome: Result<Finding, Fault>) {
    let state = outcome.unwrap().state;
    assert!(matches!(state, HtlcState::Unclear(_)), "{state:?}");
}

#[track_caller]
fn assert_fault(outcome: Result<Finding, Fault>, code: &str) {
    assert_eq!(outcome.unwrap_err().code().name(), code);
}
