//! What endpoints show of a chain, and what the service states about an order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use countersign_client::countersign::reader::{Answer, Request as Asked};
use countersign_testkit::chain::evm::{Evm, INITIATED};
use countersign_testkit::chain::view::{self, End, Marks, View};

use crate::script::Leg;
use crate::setup::{Setup, body, lock};
use crate::state::{FINAL, Htlc, MOMENTS, State};
use crate::support::state_htlc;

/// What an endpoint's view of one side depends on: the lie, the time of the newest block, when the chain stopped, the
/// HTLC, and whether the secret is known.
pub type ShownKey = (Leg, u8, u64, u8, Htlc, bool);

/// What a record depends on: the lie, the moment, the HTLCs, and whether the secret is known.
pub type RecordKey = (u8, u8, [Htlc; 2], bool);

/// A chain as an endpoint shows it, with the answers given so far.
#[derive(Debug)]
pub struct Shown {
    chain: Evm,
    /// The height of the block in which the HTLC ended.
    ended: Option<u64>,
    answers: Mutex<HashMap<(&'static str, String), Answer>>,
}

impl Shown {
    pub fn answer(&self, request: &Asked) -> Answer {
        let Asked::JsonRpc { method, params } = request else { panic!("{request:?}") };
        let key = (*method, params.to_string());
        if let Some(known) = lock(&self.answers).get(&key) {
            return known.clone();
        }
        let answer = self.chain.answer_before(request, self.ended);
        lock(&self.answers).insert(key, answer.clone());
        answer
    }

    /// Returns whether a request is about the newest block.
    pub fn is_of_newest(&self, params: &str) -> bool {
        params.contains(&self.chain.hash(self.chain.latest).to_string())
    }
}

impl Setup {
    /// Returns a chain as an endpoint shows it. Its answers are cached.
    pub fn shown(&self, state: &State, leg: Leg, lie: u8) -> Arc<Shown> {
        let place = leg.index();
        // The contents of a lie depend on the secret, if on anything.
        let key = (leg, lie, state.head(leg), state.stood[place], state.htlcs[place], state.secret && lie == 5);
        let mut known = lock(&self.shown);
        Arc::clone(known.entry(key).or_insert_with(|| Arc::new(self.chain(state, leg, lie))))
    }

    fn chain(&self, state: &State, leg: Leg, lie: u8) -> Shown {
        let honest = state.head(leg);
        let head = match lie {
            4 => honest + 30 * 86_400,
            8 => honest.saturating_sub(7_200),
            9 => honest + 400 * 86_400,
            _ => honest,
        };
        // A chain that stopped has counted less than the time that has passed.
        let tempo = &self.tempos[leg.index()];
        let counted = |time: u64| self.epoch + state.counted(leg, time);
        // Whatever happens at a moment is in the newest block of that moment.
        let block = |time: u64| tempo.stamp(tempo.newest(time));
        let at = |moment: u8| block(counted(MOMENTS[usize::from(moment)]));
        let ago = |seconds: u64| block(counted(honest) - seconds);
        let (funded, is_short, ended) = match (lie, state.htlc(leg)) {
            (2 | 9, _) | (0 | 7 | 8, Htlc::Absent) => (None, false, None),
            (3, _) => (Some(ago(2 * FINAL)), false, None),
            (4, Htlc::Locked { at: moment, .. }) => (Some(at(moment)), false, None),
            (4, _) => (Some(ago(0)), false, None),
            (5, _) => (Some(ago(3 * FINAL)), false, Some((End::Redeemed(None), ago(2 * FINAL)))),
            (6, _) => (Some(ago(3 * FINAL)), false, Some((End::Refunded, ago(2 * FINAL)))),
            (_, Htlc::Locked { at: moment, less }) => (Some(at(moment)), less, None),
            (_, Htlc::Redeemed { at: moment, locked }) => (Some(at(locked)), false, Some((End::Redeemed(None), at(moment)))),
            (_, Htlc::Refunded { at: moment, locked }) => (Some(at(locked)), false, Some((End::Refunded, at(moment)))),
            (_, Htlc::Absent) => (None, false, None),
        };
        let secret = if lie == 5 && !state.secret { &[7; 32] } else { self.secret.expose() };
        let now = counted(head);
        // A stale endpoint does not show later events.
        let htlc = view::Htlc { funded, ended, is_short }.shown(tempo, now);
        let marks = Marks { safe: FINAL, finalized: 2 * FINAL };
        let terms = [&self.terms.source, &self.terms.destination][leg.index()];
        let view = View { terms, secret, tempo, marks, now, htlc, is_other_chain: lie == 7 };
        let mut chain = view.evm();
        chain.time = self.epoch + if matches!(lie, 4 | 9) { honest } else { head };
        chain.block_millis = self.config.millis()[leg.index()];
        chain.l1_number = (leg == Leg::Destination).then(|| INITIATED / 1_000 + head / 12);
        Shown { chain, ended: view.ended_at(), answers: Mutex::default() }
    }

    /// Returns the record that the service shows.
    pub fn record(&self, state: &State, taken: u8) -> Arc<str> {
        let key = (taken, state.now, state.htlcs, state.secret);
        let mut known = lock(&self.records);
        Arc::clone(known.entry(key).or_insert_with(|| self.stated(state, taken).into()))
    }

    fn stated(&self, state: &State, taken: u8) -> String {
        if taken == 6 {
            return body(&self.another);
        }
        let mut record = self.fixture.order.clone();
        for (leg, name) in [(Leg::Source, "source_swap"), (Leg::Destination, "destination_swap")] {
            let mut htlc = state.htlc(leg);
            htlc = match (taken, leg, htlc) {
                (3, Leg::Destination, _) => Htlc::Locked { at: state.now, less: false },
                (4, Leg::Source, _) => Htlc::Refunded { at: state.now, locked: 0 },
                (5, _, _) => Htlc::Redeemed { at: state.now, locked: 0 },
                (_, _, htlc) => htlc,
            };
            let at = |moment: u8| self.epoch + MOMENTS[usize::from(moment)];
            let (funded, ended) = match htlc {
                Htlc::Absent => (None, None),
                Htlc::Locked { at: locked, .. } => (Some(at(locked)), None),
                Htlc::Redeemed { at: moment, locked } => (Some(at(locked)), Some((End::Redeemed(None), at(moment)))),
                Htlc::Refunded { at: moment, locked } => (Some(at(locked)), Some((End::Refunded, at(moment)))),
            };
            let secret = state.secret.then(|| self.secret.expose());
            state_htlc(&mut record, name, view::Htlc { funded, ended, is_short: false }, secret);
        }
        if taken == 2 {
            for member in ["redeemer", "swap_id"] {
                record["destination_swap"][member] = self.elsewhere["destination_swap"][member].clone();
            }
        }
        body(&record)
    }
}
