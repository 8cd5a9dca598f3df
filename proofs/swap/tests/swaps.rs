//! Whole swaps between an EVM chain and Litecoin, through the program and nothing but the user's own endpoints.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    reason = "a test ends by panicking"
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;
use support::anvil::{self, Anvil};
use support::service::{Conduct, ETH, LITECOIN, USDC};
use support::solver::Solver;
use support::{FEES, Run, Stage, amount, http, litecoin, poll};

/// The secret of the swaps that must not show it, so that it can be looked for.
const SECRET: [u8; 32] = *b"a secret that should never leave";

/// How often the program must have looked at the record before it is believed to be holding still.
const LOOKS: usize = 15;

/// How many times the record was fetched.
fn looks(stage: &Stage) -> usize {
    stage.service.seen().iter().filter(|seen| seen.method == "GET" && seen.path().starts_with("/v2/orders/")).count()
}

/// Requires that the user was paid by a redemption of their own, that the service learnt nothing, and that the solver has its side.
fn complete(stage: &Stage, from: &str, to: &str) {
    let order = stage.wait_for("the solver's redemption", |order| order.source_is_redeemed);
    stage.service_learnt_nothing(order.secret.as_ref());
    if to == LITECOIN {
        let paid = u128::from(stage.litecoin.held(&stage.payee));
        assert!(paid <= amount(to) && paid + u128::from(FEES) >= amount(to), "{paid}");
    } else {
        let id = order.record["destination_swap"]["swap_id"].as_str().unwrap();
        assert!(stage.anvil.on_record(&order.htlc, id).closed_at > 0);
    }
    if to == USDC {
        assert_eq!(stage.anvil.tokens(anvil::USER), anvil::TOKENS + amount(USDC));
    }
    if from == USDC {
        assert_eq!(stage.anvil.tokens(anvil::SOLVER), anvil::TOKENS + amount(USDC));
        assert_eq!(stage.anvil.tokens(anvil::USER), anvil::TOKENS - amount(USDC));
    }
}

fn honest(name: &str, from: &'static str, to: &'static str) {
    let Some(stage) = Stage::open(name, from, to, Conduct::Honest) else { return };
    let said = stage.swap(&[]).ends_with(0);
    assert!(said.contains("complete"), "{said}");
    complete(&stage, from, to);
}

#[test]
fn a_token_is_swapped_for_litecoin() {
    honest("token-litecoin", USDC, LITECOIN);
}

#[test]
fn litecoin_is_swapped_for_a_token() {
    honest("litecoin-token", LITECOIN, USDC);
}

/// The service is stopped as soon as the source is paid. The swap completes without it.
fn completes_alone(name: &str, from: &'static str, to: &'static str) {
    let Some(stage) = Stage::open(name, from, to, Conduct::Honest) else { return };
    let run = stage.swap(&[]);
    stage.wait_for("the payment of the source", |order| order.source_is_paid);
    stage.service.stop();
    run.ends_with(0);
    complete(&stage, from, to);
}

#[test]
fn a_paid_swap_to_litecoin_completes_without_the_service() {
    completes_alone("alone-to-litecoin", ETH, LITECOIN);
}

#[test]
fn a_paid_swap_from_litecoin_completes_without_the_service() {
    completes_alone("alone-from-litecoin", LITECOIN, ETH);
}

/// The program is stopped as well, and started again without the service.
fn resumes_alone(name: &str, from: &'static str, to: &'static str, resume: impl Fn(&Stage, &str) -> Run) {
    let Some(stage) = Stage::open(name, from, to, Conduct::Honest) else { return };
    let run = stage.swap(&[]);
    let order = stage.wait_for("the payment of the source", |order| order.source_is_paid);
    run.kill();
    stage.service.stop();
    stage.wait_for("the payment of the destination", |order| order.destination_is_paid);
    resume(&stage, order.id()).ends_with(0);
    complete(&stage, from, to);
}

#[test]
fn a_swap_to_litecoin_is_resumed_without_the_service() {
    resumes_alone("resume-to-litecoin", USDC, LITECOIN, Stage::resume);
}

#[test]
fn a_swap_from_litecoin_is_resumed_without_the_service() {
    resumes_alone("resume-from-litecoin", LITECOIN, ETH, Stage::resume);
}

/// Runs `redeem` until the payment is final: before, it keeps the secret. A resumed swap then finds the order complete.
fn redeem(stage: &Stage, id: &str) -> Run {
    poll("a payment that is final", || {
        let run = stage.start(&["redeem", id, "--poll", "300"]);
        let (code, said) = run.ends();
        assert!(code == Some(0) || said.contains("the secret was not released"), "{said}");
        (code == Some(0)).then(|| stage.resume(id))
    })
}

#[test]
fn litecoin_is_redeemed_without_the_service() {
    resumes_alone("redeem-litecoin", USDC, LITECOIN, redeem);
}

#[test]
fn a_token_is_redeemed_without_the_service() {
    resumes_alone("redeem-token", LITECOIN, USDC, redeem);
}

/// The solver has paid dust, whose refund is already valid, to the address of the destination. It refunds the dust at a high fee once the
/// redemption waits: the redemption does not spend the dust, so it stays. The service states another payment all the time.
#[test]
fn a_refund_of_dust_does_not_evict_the_redemption() {
    let Some(stage) = Stage::open("eviction", USDC, LITECOIN, Conduct::PaysDustFirst) else { return };
    let run = stage.swap(&[]);
    let order = stage.wait_for("the payment of the destination", |order| order.destination_is_paid);
    stage.miner_is_idle.store(true, Ordering::SeqCst);
    let (_, paid_at) = order.record["destination_swap"]["initiate_tx_hash"].as_str().unwrap().split_once(':').unwrap();
    // Six blocks are final by the program's default rule.
    while stage.litecoin.height() < paid_at.parse::<u64>().unwrap() + 5 {
        stage.litecoin.mine(1);
    }
    let redemption = poll("the redemption", || stage.litecoin.mempool().pop());
    let solver = Solver { anvil: &stage.anvil, litecoin: &stage.litecoin, book: &stage.book };
    let first = solver.refund_dust(&order, 100);
    let second = solver.refund_dust(&order, 200);
    let waiting = stage.litecoin.mempool();
    assert!(!waiting.contains(&first), "the node replaces transactions");
    assert!(waiting.contains(&second) && waiting.contains(&redemption), "{waiting:?}");
    stage.miner_is_idle.store(false, Ordering::SeqCst);
    run.ends_with(0);
    complete(&stage, USDC, LITECOIN);
}

/// The solver never pays, service and program are stopped: `refund` gives the money back, not before the timelock.
fn refunds_alone(name: &str, from: &'static str, to: &'static str) {
    let Some(stage) = Stage::open(name, from, to, Conduct::NeverPays) else { return };
    let before = stage.holds();
    let run = stage.swap(&[]);
    let order = stage.wait_for("the payment of the source", |order| order.source_is_paid);
    stage.service.stop();
    run.kill();
    assert!(stage.holds() + amount(from) <= before);
    let refund = || stage.start(&["refund", order.id()]);
    let said = refund().ends_with(1);
    assert!(said.contains("the timelock of your payment has not expired"), "{said}");
    stage.outlast_source();
    refund().ends_with(0);
    poll("the refund", || (stage.holds() + stage.fees() >= before).then_some(()));
}

#[test]
fn a_token_comes_back_without_the_service() {
    refunds_alone("refund-token", USDC, LITECOIN);
}

#[test]
fn litecoin_comes_back_without_the_service() {
    refunds_alone("refund-litecoin", LITECOIN, USDC);
}

/// The service states the agreed payment. The program looks again and again, shows no secret, and takes the money back in the end.
fn loses_nothing(stage: &Stage) {
    let before = stage.holds();
    let secret = stage.write("given.secret", &hex::encode(SECRET));
    let mut run = stage.swap(&["--secret-file", &secret]);
    let pays = stage.book.conduct.pays();
    stage.wait_for("the payments", |order| order.source_is_paid && (order.destination_is_paid || !pays));
    let start = looks(stage);
    poll("the program looks at the record", || (looks(stage) >= start + LOOKS).then_some(()));
    run.goes_on();
    stage.outlast_source();
    let said = run.ends_with(1);
    poll("the refund", || (stage.holds() + stage.fees() >= before).then_some(()));
    assert_eq!(stage.book.order().unwrap().secret, None, "{said}");
    stage.service_learnt_nothing(Some(&SECRET));
}

fn lie(name: &str, from: &'static str, to: &'static str, conduct: Conduct) {
    let Some(stage) = Stage::open(name, from, to, conduct) else { return };
    loses_nothing(&stage);
}

#[test]
fn a_payment_on_litecoin_that_is_only_stated_is_not_believed() {
    lie("stated-litecoin", USDC, LITECOIN, Conduct::StatesPayment);
}

#[test]
fn a_payment_of_a_token_that_is_only_stated_is_not_believed() {
    lie("stated-token", LITECOIN, USDC, Conduct::StatesPayment);
}

#[test]
fn too_little_litecoin_is_not_taken() {
    lie("less-litecoin", USDC, LITECOIN, Conduct::PaysLess);
}

#[test]
fn too_little_of_a_token_is_not_taken() {
    lie("less-token", LITECOIN, USDC, Conduct::PaysLess);
}

#[test]
fn litecoin_under_another_hash_is_not_taken() {
    lie("hash-litecoin", USDC, LITECOIN, Conduct::PaysUnderOtherHash);
}

#[test]
fn a_token_under_another_hash_is_not_taken() {
    lie("hash-token", LITECOIN, USDC, Conduct::PaysUnderOtherHash);
}

#[test]
fn litecoin_for_one_block_is_not_taken() {
    lie("short-litecoin", USDC, LITECOIN, Conduct::PaysForOneBlock);
}

#[test]
fn a_token_for_one_block_is_not_taken() {
    lie("short-token", LITECOIN, USDC, Conduct::PaysForOneBlock);
}

#[test]
fn a_record_that_changes_is_refused_and_the_money_comes_back() {
    lie("changes", USDC, LITECOIN, Conduct::ChangesRecord);
}

/// Nothing is paid for an order whose destination is not what is pinned.
fn pays_nothing(name: &str, from: &'static str, to: &'static str) {
    let Some(stage) = Stage::open(name, from, to, Conduct::NamesOtherHtlc) else { return };
    let before = stage.holds();
    let said = stage.swap(&[]).ends_with(1);
    assert!(said.contains("record_swap_id"), "{said}");
    assert_eq!(stage.holds(), before);
    stage.service_learnt_nothing(None);
}

#[test]
fn another_htlc_on_litecoin_is_refused_before_anything_is_paid() {
    pays_nothing("htlc-litecoin", USDC, LITECOIN);
}

#[test]
fn another_htlc_on_the_evm_chain_is_refused_before_anything_is_paid() {
    pays_nothing("htlc-evm", LITECOIN, USDC);
}

/// One endpoint of three is of a chain of its own, with the same id and the same contracts, on which the solver does pay.
#[test]
fn a_payment_that_one_endpoint_of_three_shows_is_not_believed() {
    let Some(mut stage) = Stage::open("quorum-shows", LITECOIN, USDC, Conduct::StatesPayment) else { return };
    let other = Anvil::start().unwrap();
    assert_eq!((&other.htlc, &other.token), (&stage.anvil.htlc, &stage.anvil.token));
    let second = http::liar(stage.anvil.port, None, |_, _, _| {});
    stage.evm_endpoints = vec![other.url(), stage.anvil.url(), second.base()];
    let shown = Arc::clone(&stage.book);
    let litecoin = Arc::clone(&stage.litecoin);
    let payer = std::thread::spawn(move || {
        let order = poll("the payment of the source", || shown.order().filter(|order| order.source_is_paid));
        Solver { anvil: &other, litecoin: &litecoin, book: &shown }.pay_evm(&order, &other);
        let id = order.record["destination_swap"]["swap_id"].as_str().unwrap().to_owned();
        (other, order.htlc, id)
    });
    loses_nothing(&stage);
    let (other, htlc, id) = payer.join().unwrap();
    assert!(other.on_record(&htlc, &id).initiated_at > 0);
    assert_eq!((other.on_record(&htlc, &id).closed_at, other.secret(&htlc, &id)), (0, None));
}

/// One endpoint of three answers every call of a contract with zeros: the two others agree, and the swap completes.
#[test]
fn one_endpoint_of_three_that_hides_the_payment_does_not_stop_a_swap() {
    let Some(mut stage) = Stage::open("quorum-hides", LITECOIN, USDC, Conduct::Honest) else { return };
    let second = http::liar(stage.anvil.port, None, |_, _, _| {});
    let liar = http::liar(stage.anvil.port, None, |method, _, result| match method {
        "eth_call" => {
            let zeros = "0".repeat(result.as_str().map_or(64, |text| text.len().saturating_sub(2)));
            *result = Value::String(format!("0x{zeros}"));
        }
        "eth_getLogs" => *result = Value::Array(Vec::new()),
        _ => {}
    });
    stage.evm_endpoints = vec![stage.anvil.url(), liar.base(), second.base()];
    stage.swap(&[]).ends_with(0);
    complete(&stage, LITECOIN, USDC);
}

/// One Litecoin endpoint of three states the agreed amount where the solver has paid less.
#[test]
fn an_amount_that_one_endpoint_of_three_states_is_not_believed() {
    let Some(mut stage) = Stage::open("quorum-amount", USDC, LITECOIN, Conduct::PaysLess) else { return };
    let authorization = Some(litecoin::AUTHORIZATION);
    let agreed = amount(LITECOIN) as u64;
    let liar = http::liar(stage.litecoin.port, authorization, move |_, _, result| raise(result, agreed));
    let second = http::liar(stage.litecoin.port, authorization, |_, _, _| {});
    stage.litecoin_endpoints = vec![litecoin::url(liar.port()), stage.litecoin.url(), litecoin::url(second.port())];
    loses_nothing(&stage);
}

/// Replaces the amount that is one unit too low, wherever it is: as a number of coins, and in the bytes of a transaction.
fn raise(value: &mut Value, agreed: u64) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| raise(item, agreed)),
        Value::Object(members) => members.values_mut().for_each(|member| raise(member, agreed)),
        Value::Number(_) if value.is_f64() && litecoin::sats(value) == agreed - 1 => *value = Value::from(agreed as f64 / 1e8),
        Value::String(text) => *text = text.replace(&hex::encode((agreed - 1).to_le_bytes()), &hex::encode(agreed.to_le_bytes())),
        _ => {}
    }
}
