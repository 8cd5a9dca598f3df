//! The payment of an order among the logs of a transaction that is not the order's own: that of a bundler, a relay or a contract account.
//!
//! What such a transaction has in common with the order is the effect: the contract's event `Initiated`. It has only the swap id, the
//! secret hash and the amount. Redeemer and timelock are proven by the swap id, where a formula of the contract commits to them: a formula of
//! the pinned generation, or of any if none is pinned. If the order has a record, it is the one that gives the record's id. Destination data is
//! proven by the event `InitiatedWithDestinationData`, which contracts emit beside the first one if their function takes the data.
//!
//! [`PaymentSearch`] decides, for Starknet too. An id that recomputes proves the terms also where nobody has confirmed the formula, as on Tron.
//!
//! Specification: `docs/spec/evm.md#signing`, `docs/spec/tron.md#proof-by-effect`, `docs/spec/swap_ids.md#evm`.

use alloy_primitives::{Address, B256};
use countersign_core::chains::swap_id::{self, SwapIdInput, Version};
use countersign_core::{
    Code, EventPlace, EvmGeneration, Generation, OrderContext, PaymentSearch, PaymentTerms, Refusal, SecretHash, SwapIds,
};

use crate::call::Initiate;
use crate::read;

/// Which swap ids the contract can give to the order, as far as the terms of the deposit do not say it.
#[derive(Debug, PartialEq, Eq)]
pub struct SwapIdRule {
    /// The formulas of the contract; `None` if its generation is not pinned.
    formulas: Option<&'static [Version]>,
    /// The timelock in blocks.
    timelock: u64,
    /// The swap id of the order record.
    recorded: Option<String>,
}

impl SwapIdRule {
    /// Creates the rule for an order. The timelock is in blocks.
    #[must_use]
    pub fn new(order: &OrderContext<'_>, timelock: u64) -> Self {
        let recorded = order.record.as_ref().map(|record| record.source_swap.swap_id.clone());
        let pinned = order.source.generation.and_then(Generation::evm);
        Self { formulas: pinned.map(|generation| generation.contract(order.is_native()).swap_ids), timelock, recorded }
    }
}

/// The payment that is looked for.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every member")]
pub struct Payment<'a> {
    /// The chain id that the contract's swap ids commit to.
    pub chain_id: u64,
    /// The contract.
    pub contract: Address,
    /// The account that calls the contract, unless the terms name another initiator.
    pub sender: Address,
    /// The arguments of the call that locks the funds.
    pub terms: &'a Initiate,
    /// Which swap ids the contract can give.
    pub rule: &'a SwapIdRule,
    /// Whether the order has a gasless message. Contracts take no destination data with it, and so show none.
    pub is_gasless: bool,
}

/// A log of a transaction.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every member")]
pub struct SentLog<'a> {
    /// The contract that wrote it.
    pub address: Address,
    /// At most four words.
    pub topics: &'a [B256],
    /// The data.
    pub data: &'a [u8],
}

/// The logs that have been compared with an order.
#[derive(Debug)]
pub struct Search {
    contract: Address,
    events: PaymentSearch<B256>,
}

impl Payment<'_> {
    /// Begins to look for the payment.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] without a location if the swap ids of the contract do not commit to redeemer and timelock, or if the order's
    /// record has another id.
    pub fn search(self) -> Result<Search, Refusal> {
        let events = PaymentSearch::new(PaymentTerms {
            secret_hash: SecretHash(self.terms.secret_hash.0),
            amount: self.terms.amount,
            swap_ids: self.swap_ids(),
            destination_data: self.terms.destination_data.as_ref().map(|data| data.to_vec()),
            is_gasless: self.is_gasless,
        })?;
        Ok(Search { contract: self.contract, events })
    }

    /// Returns the swap ids that the contract can give to the order's terms. The formulas from version 2 on commit to redeemer and timelock.
    fn swap_ids(&self) -> SwapIds<B256> {
        let SwapIdRule { formulas, timelock, recorded } = self.rule;
        let of_any = || EvmGeneration::ALL.iter().map(|generation| generation.token.swap_ids).collect();
        let known: Vec<_> = formulas.map_or_else(of_any, |own| vec![own]);
        let initiator = self.terms.initiator.unwrap_or(self.sender);
        let swap = SwapIdInput {
            secret_hash: &self.terms.secret_hash.0,
            initiator: initiator.as_slice(),
            redeemer: self.terms.redeemer.as_slice(),
            timelock: *timelock,
            amount: self.terms.amount,
        };
        let (proving, others): (Vec<_>, Vec<_>) = known.into_iter().flatten().partition(|version| **version >= Version::V2);
        let ids = |versions: Vec<&Version>| {
            versions.into_iter().map(|version| swap_id::evm(*version, self.chain_id, &swap, self.contract.as_slice()).into()).collect()
        };
        SwapIds { proving: ids(proving), others: ids(others), recorded: recorded.clone(), bytes: |id| id.0 }
    }
}

impl Search {
    /// Compares one log of a transaction that succeeded. Logs of other contracts and of other orders are skipped. `receipt` is the position of
    /// the receipt that has the log: some wallets list the receipt of one transaction once for each call. `at` returns the location of the log.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] at the part of the log that differs: it is malformed, or it pays the same secret hash under other terms, with
    /// other destination data or twice.
    pub fn read(&mut self, transaction: B256, receipt: usize, log: SentLog<'_>, at: impl Fn() -> String) -> Result<(), Refusal> {
        let is_payment = log.topics.first().is_some_and(|name| [read::INITIATED, read::DESTINATION_DATA].contains(name));
        if log.address != self.contract || !is_payment {
            return Ok(());
        }
        let at = at();
        let malformed = |why: read::Unclear| Refusal::new(Code::TransactionMismatch, at.as_str()).with_reason(why.to_string());
        let place = EventPlace { receipt, event: &at, order_id: "/topics/1" };
        if let Some((event, data)) = read::destination_data(log.topics, log.data).map_err(malformed)? {
            return self.events.add_data(transaction, &event, &data, place);
        }
        match read::event(log.topics, log.data).map_err(malformed)? {
            Some(event) => self.events.add(transaction, &event, place),
            None => Ok(()),
        }
    }

    /// Returns the transaction that paid; `None` if no log shows the payment.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] at the log that shows the payment, if no log shows the order's destination data.
    pub fn transaction(self) -> Result<Option<B256>, Refusal> {
        self.events.transaction()
    }
}
