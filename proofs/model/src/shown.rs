//! What endpoints show of a chain, and what the service states of an order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use countersign_client::countersign::evm::alloy_primitives::U256;
use countersign_client::countersign::evm::read;
use countersign_client::countersign::reader::{Answer, Request as Asked};
use countersign_client::countersign::{HtlcTerms, UnixTime};
use countersign_testkit::chain::evm::{Evm, id as swap_id, log, redeemed_data};
use serde_json::{Value, json};

use crate::script::Leg;
use crate::setup::{SECRET, Setup, body, lock};
use crate::state::{FINAL, Htlc, MOMENTS, State};

/// The heights of both chains when the world begins.
const START: u64 = 21_000_000;

/// What is shown of a leg: by which lie, the time of the newest block, when the chain stood still, the HTLC, and whether the secret is known.
pub type View = (Leg, u8, u64, u8, Htlc, bool);

/// A chain as an endpoint shows it, with the answers that it has given.
#[derive(Debug)]
pub struct Shown {
    chain: Evm,
    answers: Mutex<HashMap<(&'static str, String), Answer>>,
}

impl Shown {
    pub fn answer(&self, request: &Asked) -> Answer {
        let Asked::JsonRpc { method, params } = request else { panic!("{request:?}") };
        let key = (*method, params.to_string());
        if let Some(known) = lock(&self.answers).get(&key) {
            return known.clone();
        }
        let chain = &self.chain;
        let end = chain.order.map_or(0, |words| words[5].to::<u64>());
        let is_at = |block: Option<u64>| block.is_some_and(|block| block < end && key.1.contains(&chain.hash(block).to_string()));
        // The chain remembers how an order was before it ended.
        let answer = if *method == "eth_call" && end > 0 && (is_at(chain.safe) || is_at(chain.finalized)) {
            let mut before = chain.clone();
            before.order.as_mut().unwrap()[5] = U256::ZERO;
            before.answer(request)
        } else {
            chain.answer(request)
        };
        lock(&self.answers).insert(key, answer.clone());
        answer
    }
}

impl Setup {
    fn terms_of(&self, leg: Leg) -> &HtlcTerms {
        match leg {
            Leg::Source => &self.terms.source,
            Leg::Destination => &self.terms.destination,
        }
    }

    /// Returns a chain as an endpoint shows it, and remembers what it answers.
    pub fn shown(&self, state: &State, leg: Leg, lie: u8) -> Arc<Shown> {
        let place = leg.index();
        // What a lie says depends on the secret, if anything does.
        let key = (leg, lie, state.head(leg), state.stood[place], state.htlcs[place], state.secret && lie == 5);
        let mut known = lock(&self.shown);
        Arc::clone(known.entry(key).or_insert_with(|| Arc::new(Shown { chain: self.chain(state, leg, lie), answers: Mutex::default() })))
    }

    fn chain(&self, state: &State, leg: Leg, lie: u8) -> Evm {
        let terms = self.terms_of(leg);
        let honest = state.head(leg);
        let head = match lie {
            4 => honest + 30 * 86_400,
            8 => honest.saturating_sub(7_200),
            9 => honest + 400 * 86_400,
            _ => honest,
        };
        // Times before the beginning are those of older blocks.
        let epoch = self.epoch;
        let millis = self.config.millis()[leg.index()];
        let height = |time: u64| START + state.counted(leg, time) * 1_000 / millis;
        let blocks = |seconds: u64| seconds * 1_000 / millis;
        let mut chain = Evm::funded(terms);
        chain.chain_id = match (leg, lie) {
            (_, 7) => 1,
            (Leg::Source, _) => 8_453,
            (Leg::Destination, _) => 42_161,
        };
        chain.block_millis = millis;
        (chain.latest, chain.time) = (height(head), epoch + if matches!(lie, 4 | 9) { honest } else { head });
        chain.l1_number = (leg == Leg::Destination).then(|| START / 1_000 + head / 12);
        let mark = |back: u64| height(head) - blocks(back);
        (chain.safe, chain.finalized) = (Some(mark(FINAL)), Some(mark(2 * FINAL)));
        let at = |moment: u8| height(MOMENTS[usize::from(moment)]);
        let (locked, less, end) = match (lie, state.htlc(leg)) {
            (2 | 9, _) | (0 | 7 | 8, Htlc::Absent) => (None, false, None),
            (3, _) => (Some(height(honest) - blocks(2 * FINAL)), false, None),
            (4, Htlc::Locked { at: moment, .. }) => (Some(at(moment)), false, None),
            (4, _) => (Some(height(honest)), false, None),
            (5, _) => (Some(height(honest) - blocks(3 * FINAL)), false, Some((true, height(honest) - blocks(2 * FINAL)))),
            (6, _) => (Some(height(honest) - blocks(3 * FINAL)), false, Some((false, height(honest) - blocks(2 * FINAL)))),
            (_, Htlc::Locked { at: moment, less }) => (Some(at(moment)), less, None),
            (_, Htlc::Redeemed { at: moment, locked }) => (Some(at(locked)), false, Some((true, at(moment)))),
            (_, Htlc::Refunded { at: moment, locked }) => (Some(at(locked)), false, Some((false, at(moment)))),
            (_, Htlc::Absent) => (None, false, None),
        };
        // An endpoint that is behind shows no later events.
        let locked = locked.filter(|height| *height <= chain.latest);
        let Some(locked) = locked else {
            chain.order = None;
            return chain;
        };
        chain.initiated = locked;
        let words = chain.order.as_mut().unwrap();
        words[2] = U256::from(locked);
        if less {
            words[4] -= U256::from(1);
        }
        if let Some((is_redeemed, block)) = end.filter(|(_, block)| *block <= chain.latest) {
            words[5] = U256::from(block);
            let secret = if lie == 5 && !state.secret { [7; 32] } else { *self.secret.expose() };
            chain.logs = vec![if is_redeemed {
                log(chain.htlc, &[read::REDEEMED, swap_id(terms), terms.secret_hash.0.into()], &redeemed_data(&secret), block)
            } else {
                log(chain.htlc, &[read::REFUNDED, swap_id(terms)], &[], block)
            }];
        }
        chain
    }

    /// Returns the record that the service shows.
    pub fn record(&self, state: &State, taken: u8) -> Arc<str> {
        let key = (taken, state.now, state.htlcs, state.secret);
        let mut known = lock(&self.records);
        Arc::clone(known.entry(key).or_insert_with(|| self.stated(state, taken).into()))
    }

    fn stated(&self, state: &State, taken: u8) -> String {
        let mut record = self.fixture.order.clone();
        let time = |moment: u8| countersign_client::status::format_time(UnixTime::from_secs(self.epoch + MOMENTS[usize::from(moment)]));
        let hash = |byte: &str| format!("0x{}", byte.repeat(32));
        for (leg, name) in [(Leg::Source, "source_swap"), (Leg::Destination, "destination_swap")] {
            let mut htlc = state.htlc(leg);
            htlc = match (taken, leg, htlc) {
                (3, Leg::Destination, _) => Htlc::Locked { at: state.now, less: false },
                (4, Leg::Source, _) => Htlc::Refunded { at: state.now, locked: 0 },
                (5, _, _) => Htlc::Redeemed { at: state.now, locked: 0 },
                (_, _, htlc) => htlc,
            };
            let mut set = |member: &str, value: Value| record[name][member] = value;
            let locked = match htlc {
                Htlc::Absent => continue,
                Htlc::Locked { at, .. } => at,
                Htlc::Redeemed { locked, .. } | Htlc::Refunded { locked, .. } => locked,
            };
            set("initiate_tx_hash", json!(hash("aa")));
            set("initiate_block_number", json!("1234"));
            set("initiate_timestamp", json!(time(locked)));
            set("filled_amount", self.fixture.order[name]["amount"].clone());
            set("current_confirmations", json!(1));
            match htlc {
                Htlc::Redeemed { .. } => {
                    set("redeem_tx_hash", json!(hash("bb")));
                    set("redeem_block_number", json!("1250"));
                    if state.secret {
                        set("secret", json!(SECRET));
                    }
                }
                Htlc::Refunded { .. } => {
                    set("refund_tx_hash", json!(hash("cc")));
                    set("refund_block_number", json!("1260"));
                }
                _ => {}
            }
        }
        if taken == 2 {
            for member in ["redeemer", "swap_id"] {
                record["destination_swap"][member] = self.elsewhere["destination_swap"][member].clone();
            }
        }
        body(&record)
    }
}
