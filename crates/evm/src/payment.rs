//! The payment of an order among calls that an external wallet bundled.
//!
//! A wallet may bundle the calls of `wallet_sendCalls` into a transaction of its own form, or have a bundler send them (ERC-4337), so
//! that no transaction has the order's calldata. What remains is the effect, which is read as on Tron: see
//! [`effect`](countersign_evm_core::effect).
//!
//! Specification: `docs/spec/evm.md#signing`, `docs/spec/swap_ids.md#evm`.

use alloy_primitives::B256;
use countersign_core::{Code, Refusal};
use countersign_evm_core::effect::{Payment, SentLog};

use crate::deposit::Deposit;
use crate::received::{CONFIRMED, CallsStatus};

impl Deposit {
    /// Finds the payment of the order among calls that an external wallet bundled, and returns the hash of its transaction.
    ///
    /// `status` is what `wallet_getCallsStatus` returned: see [`received::calls_status`](crate::received::calls_status); or the receipt of a
    /// transaction, also of another account: see [`received::receipt`](crate::received::receipt). The calls must be
    /// confirmed, and the contract must have emitted `Initiated` with the order's secret hash and amount, and with the swap id that
    /// follows from all terms of the order. If the order's call has destination data, the contract must have emitted the same data. Logs of other
    /// contracts and of other orders are skipped.
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
    /// payment, or pay the same secret hash under other terms, with other destination data or twice. Also, without a location, if the swap ids of
    /// the contract do not commit to redeemer and timelock, or if the order's record has another id.
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
        let payment = Payment {
            chain_id: self.chain_id,
            contract: self.initiate.to,
            sender: self.sender,
            terms: &self.terms,
            rule: &self.swap_id_rule,
            is_gasless: self.typed_data.is_some(),
        };
        let mut search = payment.search()?;
        for (receipt_index, receipt) in status.receipts.iter().enumerate() {
            let at = format!("/receipts/{receipt_index}");
            if !receipt.is_success {
                return Err(differs(format!("{at}/status")).with_reason("the transaction reverted, though the calls are confirmed"));
            }
            for (index, log) in receipt.logs.iter().enumerate() {
                let sent = SentLog { address: log.address, topics: log.topics(), data: &log.data.data };
                search.read(receipt.transaction_hash, receipt_index, sent, || format!("{at}/logs/{index}"))?;
            }
        }
        let missing = || {
            differs("/receipts".to_owned()).with_reason(if status.receipts.is_empty() {
                "the wallet gives no receipts, so it does not show that the order was paid: read the source leg from the chain"
            } else {
                "no event of the contract shows that the order was paid"
            })
        };
        search.transaction()?.ok_or_else(missing)
    }
}
