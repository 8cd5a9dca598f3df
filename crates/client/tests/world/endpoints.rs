//! The three endpoints of each chain, with the faults of the storm and at most one that is not honest.

use std::time::Duration;

use countersign_client::countersign::evm::alloy_primitives::B256;
use countersign_client::countersign::reader::{Answer, FailureKind, Request, RpcError};
use countersign_client::countersign::{Leg, Role};
use countersign_client::driver::{ChainEndpoints, Chains};
use countersign_testkit::chain::evm::{Evm, INITIATED};
use countersign_testkit::chain::sui::{Executed, Ledger};
use serde_json::json;

use super::kinds::Kind;
use super::plan::{Bad, Lie, Miners, Solver};
use super::{BLOCK, State, World, Worlds, place_of};
use countersign_testkit::chain::view::{End, Htlc, View};

const ENDPOINTS: [&str; 3] = ["a.example", "b.example", "c.example"];

/// The events between an honest endpoint and the process.
const FAULTS: [&str; 14] = [
    "503",
    "429",
    "refused",
    "reset",
    "timed out",
    "no answer",
    "slow",
    "too large",
    "rate limit",
    "internal error",
    "not json",
    "null",
    "an answer is missing",
    "behind",
];

fn is_send(request: &Request) -> bool {
    match request {
        Request::JsonRpc { method, .. } => {
            matches!(*method, "eth_sendRawTransaction" | "starknet_addInvokeTransaction" | "sendTransaction")
        }
        Request::Post { path, .. } => path.ends_with("/broadcasthex") || path.ends_with("/ExecuteTransaction") || &**path == "/tx",
        _ => false,
    }
}

fn is_call(request: &Request) -> bool {
    matches!(request, Request::JsonRpc { method: "eth_call", .. })
}

fn contains(request: &Request, needle: &[u8]) -> bool {
    let text = match request {
        Request::JsonRpc { params, .. } => params.as_bytes(),
        Request::Post { body, .. } => body,
        _ => return false,
    };
    memchr::memmem::find(text, needle).is_some()
}

impl World {
    /// Returns whether an order has a leg on a chain.
    pub fn has(&self, chain: &str) -> bool {
        [Leg::Source, Leg::Destination].into_iter().any(|leg| self.terms(leg).chain == chain)
    }

    /// Returns whether one of the requests is about the order.
    fn is_named(&self, chain: &str, requests: &[Request]) -> bool {
        let id = self.terms(self.leg_of(chain)).swap_id.trim_start_matches("0x");
        let state = self.state.lock().unwrap();
        let is_sent =
            |request: &Request| state.signed.iter().any(|one| contains(request, &one.needle) || contains(request, one.kept.id.as_bytes()));
        requests.iter().any(|request| contains(request, id.as_bytes()) || is_sent(request))
    }

    fn leg_of(&self, chain: &str) -> Leg {
        if chain == self.terms(Leg::Source).chain { Leg::Source } else { Leg::Destination }
    }

    /// Returns what a dishonest endpoint does, or `None` if it is honest.
    fn bad(&self, leg: Leg, endpoint: &str) -> Option<Bad> {
        let place = ENDPOINTS.iter().position(|one| *one == endpoint).unwrap();
        let plan = &self.plan.bad[place_of(leg)];
        if let [(_, bad @ Bad::Components { .. })] = plan.as_slice() {
            return self.lies(leg, place).then_some(*bad);
        }
        plan.iter().find(|(bad, _)| *bad == place && self.has_faults()).map(|(_, bad)| *bad)
    }

    pub fn look(&self, state: &State, leg: Leg, requests: &[Request], bad: Option<Bad>, behind: u64) -> Vec<Answer> {
        let now = self.time();
        let is_other_chain = bad == Some(Bad::ServesAnotherChain);
        let head = self.head_time(leg);
        let mut seen = match bad {
            Some(Bad::Lags(seconds) | Bad::LagsAndRejects(seconds)) => head - seconds,
            Some(Bad::HeadIsOff(seconds)) => head.saturating_add_signed(seconds),
            _ => head - behind,
        };
        let old = now - 86_400;
        let mut htlc = if leg == Leg::Source { state.source } else { state.destination }.at(seen);
        match bad {
            Some(Bad::Lies(Lie::Absent)) => htlc = Htlc::default(),
            Some(Bad::Lies(Lie::Funded)) => htlc = Htlc { funded: Some(now - 1_200), ..Htlc::default() },
            Some(Bad::Lies(Lie::Redeemed)) => {
                htlc = Htlc { funded: Some(old), ended: Some((End::Redeemed(None), now - 900)), is_short: false }
            }
            Some(Bad::Lies(Lie::Refunded)) => htlc = Htlc { funded: Some(old), ended: Some((End::Refunded, now - 900)), is_short: false },
            Some(Bad::Lies(Lie::TimelockIsOver)) => seen = now + 2 * 86_400,
            _ => {}
        }
        if let Some(blocks) = &state.blocks[place_of(leg)] {
            let mut shown = blocks.at(seen);
            match bad {
                Some(Bad::Lies(_)) => shown = blocks.at(self.epoch),
                Some(Bad::HeadIsOff(seconds)) => shown = blocks.at(now).with_head_off(seconds),
                _ => {}
            }
            return requests.iter().map(|request| shown.answer(request, is_other_chain)).collect();
        }
        // A liar has the secret only once it is out.
        let secret = if matches!(bad, Some(Bad::Lies(_))) && state.secret_known.is_none() { &[0x55; 32] } else { &self.swap.secret };
        let tempo = self.tempo(leg);
        let (terms, marks) = (self.terms(leg), self.kind(leg).marks());
        let view = View { terms, secret, tempo, marks, now: seen, htlc: htlc.shown(tempo, seen), is_other_chain };
        if terms.profile().has_l1_number {
            // The height of the chain below is far below the chain's own.
            let chain = Evm { l1_number: Some(INITIATED / 1_000 + seen.saturating_sub(self.epoch) / 12), ..view.evm() };
            return requests.iter().map(|request| view.answer_evm_of(&chain, request)).collect();
        }
        view.answer(requests)
    }

    /// Returns why an endpoint does not accept a redemption, if it does not.
    fn refuse(&self, state: &mut State, place: usize) -> Option<Answer> {
        let signed = &state.signed[place];
        let error = |words: &str| Some(Answer::Error(RpcError::new(-32_000, words, None)));
        match self.plan.miners {
            _ if signed.kept.role != Role::Redeem => None,
            Miners::RejectRedemptions => error("insufficient funds for gas * price + value"),
            Miners::Expire => {
                state.attempts += 1;
                match state.attempts {
                    ..=4 => Some(Answer::Failed(FailureKind::Status(503).into())),
                    _ => error("blockhash not found").filter(|_| self.time() > signed.at + 60),
                }
            }
            _ => None,
        }
    }

    /// Takes a transaction, in the form in which the chain's nodes confirm it.
    fn sent(&self, leg: Leg, request: &Request, is_honest: bool) -> Answer {
        let mut state = self.now();
        state.changed = self.time();
        let Some(place) = state.signed.iter().position(|one| contains(request, &one.needle)) else {
            state.violations.push(format!("a transaction that the owner has not signed: {request:?}"));
            return Answer::Failed(FailureKind::Other.into());
        };
        let (id, role) = (state.signed[place].kept.id.clone(), state.signed[place].kept.role);
        if let Some(refusal) = self.refuse(&mut state, place).filter(|_| is_honest) {
            return refusal;
        }
        let is_taken = if is_honest { self.take(&mut state, place) } else { true };
        if !is_honest && role == Role::Redeem {
            self.learn_secret(&mut state, "shown to a liar");
        }
        drop(state);
        let kind = self.kind(leg);
        let result = |value: serde_json::Value| Answer::result(value.to_string().into_bytes());
        match kind {
            Kind::Evm | Kind::Bnb | Kind::Solana | Kind::Spl => result(json!(id)),
            Kind::Starknet => result(json!({"transaction_hash": id})),
            Kind::Tron => Answer::http(200, json!({"result": true, "txid": id}).to_string().into_bytes()),
            Kind::Sui => {
                let mut ledger = Ledger::funded();
                ledger.sent = Ok(Executed::new(id));
                ledger.answer(request)
            }
            Kind::Bitcoin | Kind::Litecoin if is_taken => Answer::http(200, id.into_bytes()),
            Kind::Bitcoin | Kind::Litecoin => {
                Answer::http(400, *b"sendrawtransaction RPC error: {\"code\":-26,\"message\":\"non-BIP68-final\"}")
            }
        }
    }

    fn answers(&self, leg: Leg, requests: &[Request], bad: Option<Bad>, behind: u64) -> Vec<Answer> {
        let is_honest = !bad.is_some_and(Bad::keeps_transactions);
        let others: Vec<Request> = requests.iter().filter(|request| !is_send(request)).cloned().collect();
        let mut looked = {
            let state = self.now();
            self.look(&state, leg, &others, bad, behind).into_iter()
        };
        if self.plan.solver == Solver::TakesBack && leg == Leg::Destination && requests.iter().any(is_call) {
            // The blocks that come show the refund.
            let mut state = self.now();
            if state.was_final {
                state.destination.ended.get_or_insert((End::Refunded, self.time()));
            }
        }
        let answers = requests
            .iter()
            .map(|request| {
                if is_send(request) {
                    return match bad {
                        Some(Bad::LagsAndRejects(_)) if self.is_funding(&self.now(), request) => {
                            Answer::Error(RpcError::new(-32_000, "execution reverted", None))
                        }
                        _ => self.sent(leg, request, is_honest),
                    };
                }
                let answer = looked.next().unwrap();
                match request {
                    Request::JsonRpc { method: "eth_getTransactionByHash", .. } => self.find(request),
                    // A pruned node only has its newest block.
                    Request::JsonRpc { method, .. }
                        if bad == Some(Bad::IsPruned)
                            && matches!(*method, "eth_call" | "eth_getLogs" | "getTransaction" | "starknet_call") =>
                    {
                        Answer::Error(RpcError::new(-32_000, "missing trie node", None))
                    }
                    _ => answer,
                }
            })
            .collect();
        match bad {
            Some(bad) => self.distort(leg, bad, requests, answers),
            None => answers,
        }
    }

    fn find(&self, request: &Request) -> Answer {
        let state = self.now();
        let found = state.signed.iter().find(|one| contains(request, one.kept.id.as_bytes()));
        let is_mined = found.is_some_and(|one| match state.destination.ended {
            Some((End::Redeemed(Some(id)), _)) => one.kept.id.parse() == Ok(B256::from(id)),
            _ => false,
        });
        let shown = found.filter(|_| is_mined).map_or(json!(null), |one| json!({"hash": one.kept.id}));
        Answer::result(shown.to_string().into_bytes())
    }
}

impl World {
    /// Returns whether a request contains the payment.
    fn is_funding(&self, state: &State, request: &Request) -> bool {
        state.signed.iter().find(|one| contains(request, &one.needle)).is_some_and(|one| one.kept.role == Role::Initiate)
    }

    /// Notes that the payment leaves, if one of the requests sends it.
    fn note_leaving(&self, leg: Leg, requests: &[Request]) {
        let mut state = self.now();
        if leg == Leg::Source && requests.iter().filter(|request| is_send(request)).any(|request| self.is_funding(&state, request)) {
            self.leave(&mut state);
        }
    }

    /// Answers as one endpoint.
    pub async fn ask_endpoint(&self, chain: &str, endpoint: &str, requests: &[Request]) -> Vec<Answer> {
        self.note_leaving(self.leg_of(chain), requests);
        self.operation().await;
        let (leg, count) = (self.leg_of(chain), requests.len());
        let is_late = |(place, bad): &(usize, Bad)| *bad == Bad::ConfirmsLate && ENDPOINTS[*place] == endpoint;
        if self.plan.bad[place_of(leg)].iter().any(is_late) {
            let answers = self.answers(leg, requests, None, 0);
            if requests.iter().any(is_send) {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            return answers;
        }
        self.wait(self.plan.latency.0, self.plan.latency.1).await;
        let bad = self.bad(leg, endpoint);
        if bad == Some(Bad::Hangs) || bad == Some(Bad::HangsOncePaid) && self.is_paid() {
            std::future::pending::<()>().await;
        }
        if bad == Some(Bad::IsTooBusy) {
            return vec![Answer::Failed(FailureKind::Status(429).into()); count];
        }
        if bad == Some(Bad::ShowsHtml) {
            let page = |request: &Request| match request {
                Request::JsonRpc { .. } => Answer::result(*b"<html>"),
                _ => Answer::http(200, *b"<html>"),
            };
            return requests.iter().map(page).collect();
        }
        let fault = if bad.is_none() { self.fault(&FAULTS) } else { None };
        let failed = |kind: FailureKind| vec![Answer::Failed(kind.into()); count];
        let error = |code: i64, words: &str| vec![Answer::Error(RpcError::new(code, words, None)); count];
        // A request that fails may have been acted on before.
        let acts = fault.is_some() && requests.iter().any(is_send) && self.roll(0, 1) == 0;
        if acts {
            self.answers(leg, requests, bad, 0);
        }
        match fault {
            Some("503") => failed(FailureKind::Status(503)),
            Some("429") => failed(FailureKind::Status(429)),
            Some("refused") => failed(FailureKind::Connect),
            Some("reset") => failed(FailureKind::Interrupted),
            Some("timed out") => {
                tokio::time::sleep(Duration::from_secs(15)).await;
                failed(FailureKind::Timeout)
            }
            Some("no answer") => std::future::pending().await,
            Some("too large") => failed(FailureKind::TooLarge),
            Some("rate limit") => error(-32_005, "limit exceeded"),
            Some("internal error") => error(-32_603, "internal error"),
            Some("not json") => vec![Answer::result(*b"<html>"); count],
            Some("null") => vec![Answer::result(*b"null"); count],
            Some("an answer is missing") => {
                let mut answers = self.answers(leg, requests, bad, 0);
                answers.pop();
                answers
            }
            Some("slow") => {
                self.wait(1_000, 9_000).await;
                self.answers(leg, requests, bad, 0)
            }
            Some("behind") => {
                let behind = self.roll(1, 600);
                self.answers(leg, requests, bad, behind)
            }
            _ => {
                let answers = self.answers(leg, requests, bad, 0);
                let is_nonce = |request: &Request| matches!(request, Request::JsonRpc { method: "eth_getTransactionCount", .. });
                if self.plan.raises_in_the_wallet && leg == Leg::Source && requests.iter().any(is_nonce) {
                    // The chain has gone on since it was read.
                    tokio::time::sleep(Duration::from_secs(BLOCK)).await;
                    self.fund_at(self.time() - 2 * BLOCK);
                }
                self.operation().await;
                answers
            }
        }
    }
}

impl Chains for Worlds {
    fn endpoints(&self, chain: &str) -> Option<ChainEndpoints> {
        let world = self.find(|world| world.has(chain)).filter(|_| self.connected)?;
        let count = world.plan.endpoints;
        Some(ChainEndpoints::new(ENDPOINTS.into_iter().take(count), count / 2 + 1))
    }

    async fn ask(&self, chain: &str, endpoint: &str, requests: &[Request]) -> Vec<Answer> {
        // Requests that name no order are about blocks, which are the same for all orders of a chain.
        let named = self.find(|world| world.has(chain) && (!self.shares_chains || world.is_named(chain, requests)));
        named.unwrap_or_else(|| self.on(chain)).ask_endpoint(chain, endpoint, requests).await
    }
}
