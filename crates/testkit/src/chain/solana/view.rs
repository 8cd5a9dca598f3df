//! A Solana cluster at a moment.

use countersign_core::reader::{Answer, Request};
use serde_json::json;

use super::{Chain, INITIATED, SPONSOR, initiate, mined, swap_of};
use crate::chain::view::{End, View, rewritten};

/// Answers the requests of one round.
pub(crate) fn moment(view: &View<'_>, requests: &[Request]) -> Vec<Answer> {
    let chain = view.solana();
    // What is signed in this world has blockhashes of its own, and none of them runs out.
    let valid = || Answer::result(format!(r#"{{"context":{{"slot":{}}},"value":true}}"#, chain.finalized).into_bytes());
    let is_of_hash = |request: &&Request| matches!(request, Request::JsonRpc { method: "isBlockhashValid", .. });
    let dated = |answer| {
        rewritten(answer, |value| {
            if !value[0]["blockTime"].is_u64() {
                return false;
            }
            for one in value.as_array_mut().unwrap() {
                one["blockTime"] = json!(view.stamp(INITIATED, one["slot"].as_u64().unwrap()));
            }
            true
        })
    };
    requests.iter().map(|request| if is_of_hash(&request) { valid() } else { dated(chain.answer(request)) }).collect()
}

impl View<'_> {
    fn solana(&self) -> Chain {
        let slot = |time: u64| self.including(INITIATED, time);
        let (htlc, mut swap) = swap_of(self.terms);
        if self.htlc.is_short {
            swap.amount -= 1;
        }
        let mut chain = match self.htlc.funded {
            None => Chain::empty(self.terms),
            Some(at) => {
                let mut chain = Chain::with_swap(self.terms, &swap, slot(at) + swap.timelock);
                chain.mined = vec![mined(slot(at), &initiate(&htlc, &swap))];
                chain
            }
        };
        if let Some((end, at)) = self.htlc.ended {
            let sponsor = SPONSOR.into();
            let instruction = match end {
                End::Redeemed(_) => htlc.redeem(&swap, sponsor, self.secret),
                End::Refunded => htlc.refund(&swap, sponsor),
            };
            chain.accounts.remove(&htlc.swap_account(&swap).unwrap());
            chain.mined.push(mined(slot(at), &instruction.unwrap()));
        }
        if self.is_other_chain {
            chain.genesis = "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY";
        }
        let newest = self.newest(INITIATED);
        chain.at(newest, self.stamp(INITIATED, newest))
    }
}
