//! A Tron chain at a moment.

use countersign_core::U256;
use countersign_core::reader::{Answer, Request};
use countersign_tron::read;
use serde_json::json;

use super::{INITIATED, Tron, id, info, log, redeemed};
use crate::chain::view::{End, View, chain_id, rewritten};

/// Answers the requests of one round.
pub(crate) fn moment(view: &View<'_>, requests: &[Request]) -> Vec<Answer> {
    let chain = view.tron();
    let answer = |request| {
        rewritten(chain.answer(request), |value| {
            let Some(raw) = value.pointer_mut("/block_header/raw_data") else { return false };
            let Some(height) = raw["number"].as_u64() else { return false };
            raw["timestamp"] = json!(view.stamp(INITIATED, height) * 1_000);
            true
        })
    };
    requests.iter().map(answer).collect()
}

impl View<'_> {
    fn tron(&self) -> Tron {
        let height = |time: u64| self.including(INITIATED, time);
        let mut chain = Tron::funded(self.terms);
        chain.genesis = u32::try_from(chain_id(&self.terms.network)).unwrap() + u32::from(self.is_other_chain);
        (chain.latest, chain.solid) = (self.newest(INITIATED), self.before(INITIATED, self.marks.finalized));
        chain.time = self.now;
        let initiated = chain.infos.remove(&INITIATED).unwrap().remove(0)["log"][0].clone();
        let Some(funded) = self.htlc.funded else {
            chain.order = None;
            return chain;
        };
        let at = height(funded);
        let words = chain.order.as_mut().unwrap();
        words[2] = U256::from(at);
        if self.htlc.is_short {
            words[4] -= U256::from(1);
        }
        chain.infos.insert(at, vec![info(at, &[initiated])]);
        match self.htlc.ended {
            None => chain,
            Some((end, at)) => {
                let log = match end {
                    End::Redeemed(_) => redeemed(chain.htlc, self.terms, *self.secret),
                    End::Refunded => log(chain.htlc, &[read::REFUNDED, id(self.terms)], &[]),
                };
                let before = chain.latest - height(at);
                chain.ended(before, &log)
            }
        }
    }
}
