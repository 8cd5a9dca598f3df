//! The outputs that a redemption or a refund spends.

use std::sync::Arc;

use countersign::bitcoin::FeeRate;
use countersign::bitcoin::bitcoin::amount::CheckedSum as _;
use countersign::bitcoin::bitcoin::{Amount, OutPoint, Transaction};
use countersign::bitcoin::chain::HtlcSpend;
use countersign::bitcoin::reader::fees::{higher, per_thousand};
use countersign::bitcoin::reader::{Deposit, FoundPayment, PaymentOutput, PaymentSearch, PaymentSpend, Plan, Preflight, decode};
use countersign::bitcoin::recover::{Exceptions, Funding, Recovery};
use countersign::{Code, Policy, Refusal, Role};
use countersign_core::reader::{Observation, Submission, Verdict};
use countersign_transport::Transport;

use super::BitcoinChain;
use crate::error::NodeError;

/// The outputs that a recovery spends, and the transaction in the mempool that it has to replace.
#[derive(Debug)]
pub(super) struct Spendable {
    pub(super) fundings: Vec<Funding>,
    pub(super) replaces: Option<Replaced>,
    /// What the rules of a recovery do not apply to: a redemption of what is left shows a secret that is public already.
    pub(super) exceptions: Exceptions,
}

impl Spendable {
    fn new(fundings: Vec<Funding>, replaces: Option<Replaced>) -> Self {
        Self { fundings, replaces, exceptions: Exceptions::default() }
    }
}

/// A transaction that spends an output of a recovery.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replaced {
    fee: Amount,
    vsize: u64,
    /// Whether it is the own transaction.
    is_own: bool,
    /// Whether enough endpoints show it. If they do not, it may still be in some mempools.
    is_shown: bool,
}

impl Replaced {
    fn new(transaction: &Transaction, fee: Amount, is_own: bool, is_shown: bool) -> Self {
        Self { fee, vsize: transaction.weight().to_vbytes_ceil(), is_own, is_shown }
    }

    /// Returns the lowest fee rate with which nodes accept a transaction of `vsize` virtual bytes instead: it must pay more in total, and
    /// more for each virtual byte. `max` is the highest one, as the fee of 1,000 vB; a foreign transaction that enough endpoints show has
    /// no other limit than the policy's. Returns `None` if the rate is above that and the replaced transaction is not shown.
    ///
    /// # Errors
    ///
    /// [`Code::FeeRateTooHigh`] if the own transaction is shown and offers so much already that `max` leaves no room for more.
    pub(super) fn min_rate(self, vsize: u64, max: Amount, policy: &Policy) -> Result<Option<FeeRate>, Refusal> {
        let rates = FeeRate::replacing(self.fee, vsize).zip(FeeRate::replacing(self.fee, self.vsize));
        let refuse = || Refusal::new(Code::FeeRateTooHigh, "/fee_rate").with_actual(self.fee.to_sat());
        let rate = rates.map(|(total, each)| higher(total, each)).ok_or_else(refuse)?;
        if per_thousand(rate) <= max {
            return Ok(Some(rate));
        }
        if !self.is_shown {
            return Ok(None);
        }
        // A rate above the policy is refused when the transaction is built, which shows what it costs.
        if self.is_own && rate.check(policy.bitcoin.fee_rate, "").is_ok() {
            return Err(refuse().with_reason("the transaction that was sent offers more than four times what is paid now"));
        }
        Ok(Some(rate))
    }
}

/// The payment of an HTLC, as enough endpoints show it.
enum Payment {
    /// There is none, and why.
    None(String),
    /// It is in a block, and no block spends it. A spend in the mempool is one that enough endpoints show: a single one could make up a
    /// transaction that pays any fee.
    Open { funding: Funding, spend: Option<PaymentSpend> },
    /// A block has a transaction that spends it.
    Ended { by: String, is_redeemed: bool },
}

impl<T: Transport> BitcoinChain<'_, T> {
    /// Returns the outputs that a recovery spends.
    ///
    /// It spends exactly the output that the evidence is about, because of the rule of [`Recovery::divide`]. Only a refund returns what was paid in parts, and what is left after the
    /// payment has been spent. A redemption takes what is left only once the secret is in a block.
    pub(super) async fn spendable(&self, recovery: &Recovery, rate: FeeRate) -> Result<Spendable, NodeError> {
        match self.payment_of(recovery).await? {
            Payment::Open { funding, spend } => self.open(funding, spend).await,
            Payment::None(why) if recovery.role() == Role::Redeem => {
                let reason = format!("{why}: only a refund returns what has been paid");
                Err(Refusal::new(Code::FundingMismatch, "/fundings").with_reason(reason).into())
            }
            Payment::None(why) => {
                let (parts, others) = self.rest(recovery, rate).await?;
                let fundings = if parts.is_empty() { others } else { parts };
                if fundings.is_empty() {
                    return Err(Refusal::new(Code::FundingMismatch, "/fundings").with_reason(why).into());
                }
                Ok(Spendable::new(fundings, None))
            }
            Payment::Ended { by, is_redeemed } => {
                let is_safe = is_redeemed || recovery.role() != Role::Redeem;
                let rest = if is_safe { self.rest(recovery, rate).await?.0 } else { Vec::new() };
                if rest.is_empty() {
                    let message = format!("the payment was spent by {by}, and no other output is worth its fee");
                    return Err(NodeError::Rejected { endpoint: self.connection.name.to_owned(), message });
                }
                Ok(Spendable { exceptions: Exceptions { less: is_redeemed, ..Exceptions::default() }, ..Spendable::new(rest, None) })
            }
        }
    }

    /// Returns the outputs that the replacement of a transaction spends: the payment, if it spent that, otherwise the same outputs again.
    /// If it can no longer be mined, its replacement is prepared as if it had not been sent.
    pub(super) async fn spendable_again(&self, recovery: &Recovery, sent: &Submission, rate: FeeRate) -> Result<Spendable, NodeError> {
        let (transaction, id) = decode(sent)?;
        let spends = |outpoint: OutPoint| transaction.input.iter().any(|input| input.previous_output == outpoint);
        if let Payment::Open { funding, spend } = self.payment_of(recovery).await?
            && spends(funding.outpoint)
        {
            let own = own_fee(&transaction, funding).map(|fee| Replaced::new(&transaction, fee, true, spend.is_some()));
            let is_other = spend.as_ref().and_then(|spend| spend.by.as_ref()).is_some_and(|(by, _)| by.compute_txid() != id);
            return match own {
                Some(own) if !is_other => Ok(Spendable::new(vec![funding], Some(own))),
                _ => self.open(funding, spend).await,
            };
        }
        match self.check(Plan::new(&transaction, None)).await {
            Ok(Preflight { inputs, fee, .. }) if recovery.role() != Role::Redeem || is_payment(recovery, &inputs) => {
                Ok(Spendable::new(inputs, Some(Replaced::new(&transaction, fee, true, true))))
            }
            Ok(_) | Err(NodeError::Rejected { .. }) => self.spendable(recovery, rate).await,
            Err(error) => Err(error),
        }
    }

    async fn open(&self, funding: Funding, spend: Option<PaymentSpend>) -> Result<Spendable, NodeError> {
        let replaces = match spend.and_then(|spend| spend.by) {
            Some((by, _)) => self.fee_of(&by, funding).await.map(|fee| Replaced::new(&by, fee, false, true)),
            None => None,
        };
        Ok(Spendable::new(vec![funding], replaces))
    }

    /// Returns the fee of a transaction that spends the payment; `None` if the endpoints do not show it.
    async fn fee_of(&self, transaction: &Arc<Transaction>, funding: Funding) -> Option<Amount> {
        match own_fee(transaction, funding) {
            Some(fee) => Some(fee),
            None => self.check(Plan::new(transaction, None)).await.ok().map(|preflight| preflight.fee),
        }
    }

    /// Finds the payment of an HTLC for a recovery. A refund shows nothing, so it does not depend on the proof that the payment is in a
    /// block: a node that has thrown away the block still lists the output.
    async fn payment_of(&self, recovery: &Recovery) -> Result<Payment, NodeError> {
        match self.payment(recovery).await {
            Err(error) if recovery.role() != Role::Redeem => Ok(Payment::None(error.to_string())),
            payment => payment,
        }
    }

    /// Finds the payment of an HTLC. The endpoints must agree on the output, not on the list of all outputs.
    async fn payment(&self, recovery: &Recovery) -> Result<Payment, NodeError> {
        type Found = Observation<PaymentSearch>;
        let subject = self.on_chain(Deposit::new(recovery.htlc.tree, recovery.htlc.amount));
        let output = |one: &Found| match one.output() {
            FoundPayment::Output(output) => Ok(output.clone()),
            FoundPayment::None(why) => Err(why.clone()),
        };
        let is_unspent = |one: &Found| output(one).is_ok_and(|output| output.spend.is_none()).then_some(()).ok_or(());
        let quorum = self.connection.gather::<PaymentSearch, _, _>(&subject, is_unspent).await?;
        let group = quorum.agreed().map_err(|doubt| self.connection.doubt::<NodeError>(doubt))?;
        let Some(first) = group.first() else { return Err(NodeError::NotConnected(self.connection.name.to_owned())) };
        let PaymentOutput { funding, .. } = match output(first) {
            Ok(output) => output,
            Err(why) => return Ok(Payment::None(why)),
        };
        if matches!(quorum.ask(is_unspent), Verdict::Stands(..)) {
            return Ok(Payment::Open { funding, spend: None });
        }
        let spends: Vec<_> = group.iter().filter_map(|one| output(one).ok()?.spend).collect();
        let is_agreed = |spend: &PaymentSpend| {
            let is_same = |one: &Found| output(one).is_ok_and(|output| output.spend.as_ref() == Some(spend)).then_some(()).ok_or(());
            matches!(quorum.ask(is_same), Verdict::Stands(..))
        };
        let spend = spends.into_iter().find(is_agreed);
        if let Some(PaymentSpend { is_mined: true, by: Some((by, how)), .. }) = &spend {
            return Ok(Payment::Ended { by: by.compute_txid().to_string(), is_redeemed: matches!(how, HtlcSpend::Redeem(_)) });
        }
        Ok(Payment::Open { funding, spend: spend.filter(|spend| !spend.is_mined) })
    }

    /// Returns the other outputs of an HTLC, whatever they hold, as [`Recovery::divide`] does. Of those that cover the amount, the one that
    /// was mined first comes first.
    async fn rest(&self, recovery: &Recovery, rate: FeeRate) -> Result<(Vec<Funding>, Vec<Funding>), NodeError> {
        let outputs = self.outputs(&recovery.htlc.tree).await?;
        let first = outputs.covering(recovery.htlc.amount);
        let others = outputs.0.into_iter().map(|output| output.funding).filter(|funding| Some(*funding) != first);
        Ok(recovery.divide(first.into_iter().chain(others), rate))
    }
}

/// Returns whether inputs are one output that covers the amount.
fn is_payment(recovery: &Recovery, inputs: &[Funding]) -> bool {
    matches!(inputs, [only] if only.value >= recovery.htlc.amount)
}

/// Returns the fee of a transaction that spends the payment alone.
fn own_fee(transaction: &Transaction, funding: Funding) -> Option<Amount> {
    let paid = transaction.output.iter().map(|output| output.value).checked_sum()?;
    matches!(transaction.input.as_slice(), [only] if only.previous_output == funding.outpoint).then(|| funding.value.checked_sub(paid))?
}
