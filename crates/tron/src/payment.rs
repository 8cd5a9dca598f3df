//! The payment of an order in a transaction that is not the order's own.
//!
//! An account with code, such as one that several owners control, calls the contract in a transaction of somebody else, which has no calldata
//! of the order in its place. What remains is the effect, which is read as on EVM chains: see [`effect`](countersign_evm_core::effect).
//!
//! Specification: `docs/spec/tron.md#proof-by-effect`.

use alloy_primitives::B256;
use countersign_core::{Code, Refusal};
use countersign_evm_core::effect::{Payment, SentLog};

use crate::deposit::Deposit;
use crate::received::TransactionInfo;

impl Deposit {
    /// Finds the payment of the order in what a transaction did, which may be that of another account, and returns the id of the transaction.
    ///
    /// `info` is what `/wallet/gettransactioninfobyid` returned: see [`received::transaction_info`](crate::received::transaction_info). The
    /// transaction must have succeeded, and the contract must have emitted `Initiated` with the order's secret hash and amount, and with the
    /// swap id that follows from all terms of the order. It must have emitted the order's destination data, too; data that is empty also counts
    /// without, if the order has a gasless message, which takes none. Logs of other contracts and of other orders are skipped.
    ///
    /// **Whoever returned the answer states all this.** It is bound to nothing. From a node it counts if enough nodes agree
    /// ([`reader::Effect`](crate::reader::Effect)). Whether the payment is final, and still locked, is decided by the
    /// [reader](crate::reader::HtlcReader) of the source HTLC. What else the transaction did is not checked.
    ///
    /// ```
    /// # use countersign::Refusal;
    /// # fn check(order: &countersign::tron::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
    /// use countersign::tron::received;
    ///
    /// // POST /wallet/gettransactioninfobyid {"value": id}
    /// let info = received::transaction_info(from_node)?;
    /// let transaction_id = order.deposit().find_payment(&info)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`], located in the answer, if the transaction failed, does not contain the payment, or pays the same secret
    /// hash under other terms, with other destination data or twice. Also, without a location, if the swap ids of the contract do not commit to
    /// redeemer and timelock, or if the order's record has another id.
    pub fn find_payment(&self, info: &TransactionInfo) -> Result<B256, Refusal> {
        let differs = |location: &str| Refusal::new(Code::TransactionMismatch, location);
        if !info.is_success {
            return Err(differs("/receipt/result").with_expected("SUCCESS").with_reason("the transaction failed"));
        }
        let payment = Payment {
            chain_id: self.chain_id,
            contract: self.initiate.to.bytes(),
            sender: self.sender.bytes(),
            terms: &self.terms,
            rule: &self.swap_id_rule,
            is_gasless: self.typed_data.is_some(),
        };
        let mut search = payment.search()?;
        for (index, log) in info.logs.iter().enumerate() {
            let sent = SentLog { address: log.address.bytes(), topics: &log.topics, data: &log.data };
            search.read(info.transaction_id, 0, sent, || format!("/log/{index}"))?;
        }
        search.transaction()?.ok_or_else(|| differs("/log").with_reason("no event of the contract shows that the order was paid"))
    }
}
