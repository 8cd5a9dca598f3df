//! The payment of an order among calls that an external wallet bundled.
//!
//! A wallet may bundle the calls of `wallet_sendCalls` into a transaction of its own form, or have a bundler send them (ERC-4337), so
//! that no transaction has the order's calldata. What remains is the effect: the contract's event `Initiated`. It has only the swap id,
//! the secret hash and the amount. Redeemer and timelock are proven by the swap id, where a formula of the contract commits to them: a
//! formula of the pinned generation, or of any if none is pinned. If the order has a record, it is the one that gives the record's id.
//!
//! Specification: `docs/spec/evm.md#signing`, `docs/spec/swap_ids.md#evm`.

use alloy_primitives::{B256, hex};
use countersign_core::chains::swap_id::{self, SwapIdInput, Version};
use countersign_core::{Code, EvmGeneration, OrderContext, Refusal, TypedValue};

use crate::deposit::Deposit;
use crate::generation;
use crate::read::{self, HtlcEvent};
use crate::received::{CONFIRMED, CallsStatus};

/// Which swap ids the contract can give to the order, as far as the terms of the deposit do not say it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SwapIdRule {
    /// The formulas of the contract; `None` if its generation is not pinned.
    formulas: Option<&'static [Version]>,
    /// The timelock in blocks.
    timelock: u64,
    /// The swap id of the order record.
    recorded: Option<String>,
}

impl SwapIdRule {
    pub(crate) fn new(order: &OrderContext<'_>, timelock: u64) -> Self {
        let recorded = order.record.as_ref().map(|record| record.source_swap.swap_id.clone());
        let formulas = generation::pinned(order).map(|generation| generation.contract(order.is_native()).swap_ids);
        Self { formulas, timelock, recorded }
    }
}

impl Deposit {
    /// Finds the payment of the order among calls that an external wallet bundled, and returns the hash of its transaction.
    ///
    /// `status` is what `wallet_getCallsStatus` returned: see [`received::calls_status`](crate::received::calls_status); or the receipt of a
    /// transaction, also of another account: see [`received::receipt`](crate::received::receipt). The calls must be
    /// confirmed, and the contract must have emitted `Initiated` with the order's secret hash and amount, and with the swap id that
    /// follows from all terms of the order. Logs of other contracts and of other orders are skipped.
    ///
    /// **The wallet's provider states all this.** It shows what the wallet did, for a wallet that is trusted to say so. Whether the
    /// payment is on chain, and final, is decided by the [reader](crate::reader::HtlcReader) of the source HTLC. What else the bundle
    /// did, such as a larger approval, is not checked.
    ///
    /// ```
    /// # use countersign::Refusal;
    /// # fn check(order: &countersign::evm::VerifiedOrder, from_wallet: &[u8]) -> Result<(), Refusal> {
    /// use countersign::evm::received;
    ///
    /// // provider.request({ method: "wallet_getCallsStatus", params: [id] })
    /// let status = received::calls_status(from_wallet)?;
    /// let transaction_hash = order.deposit().find_payment(&status)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`], located in the status, if the calls are not confirmed, are on another chain, do not contain the
    /// payment, or pay the same secret hash under other terms or twice. Also, without a location, if the swap ids of the contract do not
    /// commit to redeemer and timelock.
    pub fn find_payment(&self, status: &CallsStatus) -> Result<B256, Refusal> {
        let differs = |location: String| Refusal::new(Code::TransactionMismatch, location);
        // The swap id commits to the chain, too.
        if let Some(chain_id) = status.chain_id.filter(|chain_id| *chain_id != self.chain_id) {
            return Err(differs("/chainId".to_owned()).with_expected(self.chain_id).with_actual(chain_id));
        }
        if status.status != CONFIRMED {
            let refusal = differs("/status".to_owned()).with_expected(CONFIRMED).with_actual(status.status);
            return Err(refusal.with_reason(match status.status {
                100..200 => "the calls are not confirmed yet",
                400..500 => "the wallet did not send the calls",
                500..600 => "the calls reverted",
                600..700 => "some of the calls reverted",
                _ => "the status of the calls is unknown",
            }));
        }
        let ids = self.swap_ids();
        if ids.is_empty() {
            let reason = "the contract's swap ids do not commit to redeemer and timelock, so its event does not prove the payment";
            return Err(differs(String::new()).with_reason(reason));
        }
        let mut payment = None;
        for (index, receipt) in status.receipts.iter().enumerate() {
            let at = format!("/receipts/{index}");
            if !receipt.is_success {
                return Err(differs(format!("{at}/status")).with_reason("the transaction reverted, though the calls are confirmed"));
            }
            for (index, log) in receipt.logs.iter().enumerate() {
                if log.address != self.initiate.to || log.topics().first() != Some(&read::INITIATED) {
                    continue;
                }
                let differs = |part: &str| differs(format!("{at}/logs/{index}{part}"));
                let event = read::event(log.topics(), &log.data.data).map_err(|why| differs("").with_reason(why.to_string()))?;
                let Some(HtlcEvent::Initiated { order_id, secret_hash, amount }) = event else { continue };
                if secret_hash.0 != self.terms.secret_hash.0 {
                    continue;
                }
                if !ids.contains(&order_id.0) {
                    let expected: Vec<_> = ids.iter().map(hex::encode).collect();
                    let reason = "the contract was paid with this secret hash under other terms";
                    let refusal = differs("/topics/1").with_reason(reason).with_actual(TypedValue::Hash(order_id.0));
                    return Err(refusal.with_expected(expected.join(" or ")));
                }
                if amount != self.terms.amount {
                    return Err(differs("").with_reason("another amount").with_expected(self.terms.amount).with_actual(amount));
                }
                // Some wallets list the receipt of one transaction once for each call.
                let found = (order_id, receipt.transaction_hash);
                if payment.is_some_and(|earlier| earlier != found) {
                    return Err(differs("").with_reason("the order was paid twice"));
                }
                payment = Some(found);
            }
        }
        let missing = || {
            differs("/receipts".to_owned()).with_reason(if status.receipts.is_empty() {
                "the wallet gives no receipts, so it does not show that the order was paid: read the source leg from the chain"
            } else {
                "no event of the contract shows that the order was paid"
            })
        };
        payment.map(|(_, transaction_hash)| transaction_hash).ok_or_else(missing)
    }

    /// Returns the swap ids that the contract can give to the order's terms, by the formulas that commit to all of them.
    fn swap_ids(&self) -> Vec<[u8; 32]> {
        let SwapIdRule { formulas, timelock, recorded } = &self.swap_id_rule;
        let of_any = || EvmGeneration::ALL.iter().map(|generation| generation.token.swap_ids).collect();
        let known: Vec<_> = formulas.map_or_else(of_any, |own| vec![own]);
        let versions = known.into_iter().flatten().filter(|version| **version >= Version::V2);
        let initiator = self.terms.initiator.unwrap_or(self.sender);
        let swap = SwapIdInput {
            secret_hash: &self.terms.secret_hash.0,
            initiator: initiator.as_slice(),
            redeemer: self.terms.redeemer.as_slice(),
            timelock: *timelock,
            amount: self.terms.amount,
        };
        let ids = versions.map(|version| swap_id::evm(*version, self.chain_id, &swap, self.initiate.to.as_slice()));
        ids.filter(|id| recorded.as_ref().is_none_or(|recorded| hex::encode(id).eq_ignore_ascii_case(recorded))).collect()
    }
}
