//! An EVM chain at a moment.

use countersign_core::reader::{Answer, Request};
use countersign_evm::alloy_primitives::{B256, U256};
use countersign_evm::read;
use serde_json::{Value, json};

use super::{Evm, INITIATED, id, log, redeemed_data};
use crate::chain::view::{End, View, chain_id, rewritten};

/// Answers the requests of one round.
pub(crate) fn moment(view: &View<'_>, requests: &[Request]) -> Vec<Answer> {
    let chain = view.evm();
    requests.iter().map(|request| view.answer_evm_of(&chain, request)).collect()
}

impl View<'_> {
    /// Answers from the chain of [`evm`](Self::evm), with the times of its blocks.
    #[must_use]
    pub fn answer_evm_of(&self, chain: &Evm, request: &Request) -> Answer {
        let number = |value: &Value| u64::from_str_radix(value.as_str()?.trim_start_matches("0x"), 16).ok();
        rewritten(chain.answer_before(request, self.ended_at()), |value| {
            let height = number(&value["number"]).filter(|_| value["timestamp"].is_string());
            let Some(height) = height else { return false };
            value["timestamp"] = json!(format!("{:#x}", self.stamp(INITIATED, height)));
            true
        })
    }

    /// Returns the chain as it is at that time, with the HTLC.
    #[must_use]
    pub fn evm(&self) -> Evm {
        let height = |time: u64| self.including(INITIATED, time);
        let mut chain = Evm::funded(self.terms);
        chain.chain_id = chain_id(&self.terms.network) + u64::from(self.is_other_chain);
        (chain.latest, chain.time, chain.block_millis) = (self.newest(INITIATED), self.now, 1);
        (chain.safe, chain.finalized) = (Some(self.before(INITIATED, self.marks.safe)), Some(self.before(INITIATED, self.marks.finalized)));
        let Some(funded) = self.htlc.funded else {
            chain.order = None;
            return chain;
        };
        chain.initiated = height(funded);
        let words = chain.order.as_mut().unwrap();
        words[2] = U256::from(height(funded));
        if self.htlc.is_short {
            words[4] -= U256::from(1);
        }
        if let Some((end, at)) = self.htlc.ended {
            words[5] = U256::from(height(at));
            let swap = id(self.terms);
            let mut log = match end {
                End::Redeemed(_) => {
                    let topics = [read::REDEEMED, swap, self.terms.secret_hash.0.into()];
                    log(chain.htlc, &topics, &redeemed_data(self.secret), height(at))
                }
                End::Refunded => log(chain.htlc, &[read::REFUNDED, swap], &[], height(at)),
            };
            if let End::Redeemed(Some(transaction)) = end {
                log["transactionHash"] = json!(B256::from(transaction));
            }
            chain.logs = vec![log];
        }
        chain
    }

    /// Returns the height of the block in which the HTLC ended.
    #[must_use]
    pub fn ended_at(&self) -> Option<u64> {
        self.htlc.ended.map(|(_, at)| self.including(INITIATED, at))
    }
}

impl Evm {
    /// Answers with the order as it was at the block that a request names, if the order ended at a height. The chain itself shows an end at
    /// all its blocks.
    #[must_use]
    pub fn answer_before(&self, request: &Request, ended: Option<u64>) -> Answer {
        if let (Request::JsonRpc { method: "eth_call", params }, Some(ended)) = (request, ended) {
            let params: Value = serde_json::from_str(params).unwrap();
            let marks = [self.safe, self.finalized].into_iter().flatten();
            let is_before = |number: u64| number < ended && params[1]["blockHash"] == json!(self.hash(number));
            if marks.into_iter().any(is_before) {
                let mut old = self.clone();
                old.order.as_mut().unwrap()[5] = U256::ZERO;
                return old.answer(request);
            }
        }
        self.answer(request)
    }
}
