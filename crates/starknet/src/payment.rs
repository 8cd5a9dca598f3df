//! The payment of an order in a transaction that is not the order's own.
//!
//! Another account can execute the owner's calls (SNIP-9), as paymasters do. The calls take effect only if the owner's account accepts the
//! signature, the nonce and the time, and a forwarder may continue if they fail. So the calldata of such a transaction proves nothing. What
//! remains is the effect: the contract's event `Initiated`, whose order id commits to the terms in the generation `2025_11` alone. If the call has
//! destination data, the contract emits `InitiatedWithDestinationData` in its place, which has the data.
//!
//! Specification: `docs/spec/starknet.md#proof-by-effect`.

use countersign_core::chains::swap_id::{self, StarknetFormula, SwapIdInput};
use countersign_core::{Code, EventPlace, PaymentSearch, PaymentTerms, Refusal, SwapIds};
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
    /// that follows from all terms of the order. If the order's call has destination data, it must be the event with the same data; data that is
    /// empty also counts without, if the order has a gasless message, which takes none. The registry must pin the generation `2025_11`: the ids of the others do not commit to all
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
    /// the same secret hash under other terms, with other destination data or twice. Also, without a location, if the ids of the contract do not
    /// commit to redeemer and timelock, if its events are not known, or if the order's record has another id.
    pub fn find_payment(&self, receipt: &TransactionReceipt) -> Result<Felt, Refusal> {
        let differs = |location: &str| Refusal::new(Code::TransactionMismatch, location);
        if !receipt.is_in_block {
            return Err(differs("/finality_status").with_reason("the transaction is in no block yet"));
        }
        if !receipt.is_success {
            return Err(differs("/execution_status").with_expected("SUCCEEDED").with_reason("the transaction reverted"));
        }
        if self.terms.generation.access.is_none() {
            let reason = "the events of the contract are not known: pin the generation that the interface of its class shows";
            return Err(differs("").with_reason(reason));
        }
        let mut search = PaymentSearch::new(PaymentTerms {
            secret_hash: self.terms.secret_hash,
            amount: self.terms.amount,
            swap_ids: self.swap_ids(),
            destination_data: self.destination_data.as_deref().map(bytes),
            is_gasless: self.typed_data.is_some(),
        })?;
        for (index, event) in receipt.events.iter().enumerate() {
            let is_payment = event.keys.first().is_some_and(|name| [read::INITIATED, read::INITIATED_WITH_DESTINATION_DATA].contains(name));
            if event.from_address != self.initiate.to || !is_payment {
                continue;
            }
            let at = format!("/events/{index}");
            let malformed = |why: read::Unclear| differs(&at).with_reason(why.to_string());
            let place = EventPlace { receipt: 0, event: &at, order_id: ORDER_ID };
            let data = read::destination_data(self.terms.generation, &event.keys, &event.data);
            let Some(event) = read::event(self.terms.generation, &event.keys, &event.data).map_err(malformed)? else { continue };
            search.add(receipt.transaction_hash, &event, place)?;
            if let Some(data) = data {
                search.add_data(receipt.transaction_hash, &event, &bytes(data), place)?;
            }
        }
        search.transaction()?.ok_or_else(|| differs("/events").with_reason("no event of the contract shows that the order was paid"))
    }

    /// Returns the ids that the contract can give to the order's terms.
    fn swap_ids(&self) -> SwapIds<Felt> {
        let (chain, timelock) = (felt::to_short_string(&self.chain_id), u64::try_from(self.terms.timelock).ok());
        let [initiator, redeemer, htlc] =
            [self.terms.initiator.unwrap_or(self.sender), self.terms.redeemer, self.initiate.to].map(|felt| felt.to_bytes_be());
        let ids = self.terms.generation.swap_id.zip(chain).zip(timelock).map(|((formula, chain), timelock)| {
            let (secret_hash, amount) = (&self.terms.secret_hash.0, self.terms.amount);
            let swap = SwapIdInput { secret_hash, initiator: &initiator, redeemer: &redeemer, timelock, amount };
            swap_id::starknet(formula, &chain, &swap, &htlc).into_iter().filter_map(|id| felt::from_bytes(id).ok()).collect()
        });
        let ids: Vec<Felt> = ids.unwrap_or_default();
        let is_proving = matches!(self.terms.generation.swap_id, Some(StarknetFormula::Terms | StarknetFormula::TermsAndContract));
        let (proving, others) = if is_proving { (ids, Vec::new()) } else { (Vec::new(), ids) };
        SwapIds { proving, others, recorded: self.recorded_id.clone(), bytes: |id| id.to_bytes_be() }
    }
}

/// Joins felts of destination data.
fn bytes(data: &[Felt]) -> Vec<u8> {
    data.iter().flat_map(Felt::to_bytes_be).collect()
}
