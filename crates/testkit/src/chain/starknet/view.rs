//! A Starknet chain at a moment.

use countersign_core::U256;
use countersign_core::chains::Network;
use countersign_core::reader::{Answer, Request};
use countersign_starknet::{Felt, felt, read};
use serde_json::{Value, json};

use super::{Chain, INITIATED, hash_of, redeemed_data};
use crate::chain::view::{End, View, rewritten};

/// Answers the requests of one round.
pub(crate) fn moment(view: &View<'_>, requests: &[Request]) -> Vec<Answer> {
    let mut chain = view.starknet();
    let answer = |request| {
        rewritten(view.answer_at(&mut chain, request), |value| {
            let Some(height) = value["block_number"].as_u64().filter(|_| value["timestamp"].is_u64()) else { return false };
            value["timestamp"] = json!(view.stamp(INITIATED, height));
            true
        })
    };
    requests.iter().map(answer).collect()
}

impl View<'_> {
    fn starknet(&self) -> Chain {
        let height = |time: u64| self.including(INITIATED, time);
        let mut chain = Chain::funded(self.terms);
        chain.chain_id = match &self.terms.network {
            Network::Starknet(id) if id == "SN_MAIN" => {
                if self.is_other_chain {
                    "SN_SEPOLIA"
                } else {
                    "SN_MAIN"
                }
            }
            _ => {
                if self.is_other_chain {
                    "SN_MAIN"
                } else {
                    "SN_SEPOLIA"
                }
            }
        };
        (chain.latest, chain.time) = (self.newest(INITIATED), self.now);
        chain.on_l1 = Some(self.before(INITIATED, self.marks.finalized));
        let Some(funded) = self.htlc.funded else {
            chain.order = None;
            return chain;
        };
        let amount = self.terms.amount - U256::from(u64::from(self.htlc.is_short));
        let words = chain.order.as_mut().unwrap();
        (words[3], words[5]) = (Felt::from(height(funded)), felt::halves(amount)[0]);
        if !self.terms.swap_id_recomputed {
            let mut event = chain.initiated(self.terms.secret_hash, amount);
            event["block_number"] = json!(height(funded));
            event["block_hash"] = json!(hash_of(height(funded)));
            chain.events = vec![event];
        }
        if let Some((end, at)) = self.htlc.ended {
            let block = height(at);
            let event = match end {
                End::Redeemed(_) => {
                    let data = redeemed_data(chain.generation, self.secret);
                    chain.event(&[read::REDEEMED, chain.id], &data, block)
                }
                End::Refunded => chain.event(&[read::REFUNDED, chain.id], &[], block),
            };
            return chain.ended(block, vec![event]);
        }
        chain
    }

    /// Answers with the order as it was at the block that a request names. The testkit's chain has one order at all its blocks.
    fn answer_at(&self, chain: &mut Chain, request: &Request) -> Answer {
        let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
        let mut params: Value = serde_json::from_str(params).unwrap();
        let hash = params["block_id"]["block_hash"].as_str().and_then(number_of);
        if let Some(number) = hash {
            params["block_id"] = json!({"block_number": number});
        }
        let number = match &params["block_id"] {
            Value::String(tag) if tag == "l1_accepted" => chain.on_l1.unwrap(),
            id => id["block_number"].as_u64().unwrap_or(chain.latest),
        };
        let is_before = |at: u64| number < self.including(INITIATED, at);
        let kept = chain.order;
        if self.htlc.funded.is_some_and(is_before) {
            chain.order = None;
        } else if let (Some((_, ended)), Some(words)) = (self.htlc.ended, &mut chain.order)
            && is_before(ended)
        {
            words[0] = Felt::ZERO;
        }
        let answer = chain.answer(&Request::json_rpc(method, params));
        chain.order = kept;
        answer
    }
}

/// Returns the height of the Starknet block with a hash.
fn number_of(hash: &str) -> Option<u64> {
    let product = |text: &str| u128::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let number = u64::try_from(product(hash)? / product(&hash_of(1))?).ok()?;
    (hash_of(number) == hash).then_some(number)
}
