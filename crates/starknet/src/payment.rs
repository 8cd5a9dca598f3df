//! The payment of an order in a transaction that is not the order's own.
//!
//! Another account can execute the owner's calls (SNIP-9), as paymasters do. The calls take effect only if the owner's account accepts the
//! signature, the nonce and the time, and a forwarder may continue if they fail. So the calldata of such a transaction proves nothing. What
//! remains is the effect: the contract's event `Initiated`, whose order id commits to all terms in the generation `2025_11` alone.
//!
//! Specification: `docs/spec/starknet.md#proof-by-effect`.

use countersign_core::chains::swap_id::{self, StarknetFormula, SwapIdInput};
use countersign_core::{Code, EventPlace, PaymentSearch, Refusal};
use starknet_types_core::felt::Felt;

use crate::deposit::Deposit;
use crate::felt;
use crate::read;
use crate::received::TransactionReceipt;

/// The place of the order id in an event.
const ORDER_ID: &str = "/keys/1";

impl Deposit {
    /// Finds the payment of the order in what a transaction did, which may be that of another account, and returns the hash of the transaction.
    ///
    /// `receipt` is what `starknet_getTransactionReceipt` returned: see [`received::receipt`](crate::received::receipt). The transaction must be
    /// in a block and have succeeded, and the contract must have emitted `Initiated` with the order's secret hash and amount, and with the id
    /// that follows from all terms of the order. The registry must pin the generation `2025_11`: the ids of the others do not commit to all
    /// terms, or their events are not known. Events of other contracts and of other orders are skipped.
    ///
    /// **Whoever returned the answer states all this.** It is bound to nothing. From a node it counts if enough nodes agree
    /// ([`reader::Effect`](crate::reader::Effect)). Whether the payment is final, and still locked, is decided by the
    /// [reader](crate::reader::Htlc) of the source HTLC. What else the transaction did is not checked.
    ///
    /// ```
    /// # use countersign::Refusal;
    /// # fn check(order: &countersign::starknet::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
    /// use countersign::starknet::received;
    ///
    /// // starknet_getTransactionReceipt {"transaction_hash": hash}
    /// let receipt = received::receipt(from_node)?;
    /// let transaction_hash = order.deposit().find_payment(&receipt)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`], located in the receipt, if the transaction is in no block, reverted, does not contain the payment, or pays
    /// the same secret hash under other terms or twice. Also, without a location, if the ids of the contract do not commit to all terms, or
    /// if the order's record has another one.
    pub fn find_payment(&self, receipt: &TransactionReceipt) -> Result<Felt, Refusal> {
        let differs = |location: &str| Refusal::new(Code::TransactionMismatch, location);
        if !receipt.is_in_block {
            return Err(differs("/finality_status").with_reason("the transaction is in no block yet"));
        }
        if !receipt.is_success {
            return Err(differs("/execution_status").with_expected("SUCCEEDED").with_reason("the transaction reverted"));
        }
        let mut search = PaymentSearch::new(self.terms.secret_hash, self.terms.amount, self.swap_ids(), |id: Felt| id.to_bytes_be())?;
        for (index, event) in receipt.events.iter().enumerate() {
            let is_payment = event.keys.first().is_some_and(|name| [read::INITIATED, read::INITIATED_WITH_DESTINATION_DATA].contains(name));
            if event.from_address != self.initiate.to || !is_payment {
                continue;
            }
            let at = format!("/events/{index}");
            let event =
                read::event(self.terms.generation, &event.keys, &event.data).map_err(|why| differs(&at).with_reason(why.to_string()))?;
            if let Some(event) = event {
                search.add(receipt.transaction_hash, &event, EventPlace { receipt: 0, event: &at, order_id: ORDER_ID })?;
            }
        }
        search.transaction().ok_or_else(|| differs("/events").with_reason("no event of the contract shows that the order was paid"))
    }

    /// Returns the ids that the contract can give to the order's terms, if they commit to all of them.
    fn swap_ids(&self) -> Vec<Felt> {
        let formula = self.terms.generation.swap_id.filter(|formula| *formula == StarknetFormula::TermsAndContract);
        let (chain, timelock) = (felt::to_short_string(&self.chain_id), u64::try_from(self.terms.timelock).ok());
        let (Some(formula), Some(chain), Some(timelock)) = (formula, chain, timelock) else { return Vec::new() };
        let [initiator, redeemer, htlc] =
            [self.terms.initiator.unwrap_or(self.sender), self.terms.redeemer, self.initiate.to].map(|felt| felt.to_bytes_be());
        let swap = SwapIdInput {
            secret_hash: &self.terms.secret_hash.0,
            initiator: &initiator,
            redeemer: &redeemer,
            timelock,
            amount: self.terms.amount,
        };
        let recorded = self.recorded_id.as_ref().map(|id| felt::parse(&format!("0x{}", id.trim_start_matches("0x"))).ok());
        let ids = swap_id::starknet(formula, &chain, &swap, &htlc).into_iter().filter_map(|id| felt::from_bytes(id).ok());
        ids.filter(|id| recorded.is_none_or(|recorded| recorded == Some(*id))).collect()
    }
}
