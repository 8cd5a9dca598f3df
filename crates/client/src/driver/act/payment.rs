//! The payment: the owner is asked to sign it, for the first time or again, and what was signed is sent.

use std::pin::pin;
use std::time::Duration;

use countersign::json::At;
use countersign::{
    BroadcastTransaction, Code, GaslessSubmission, Policy, Refusal, Registry, U256, Verified, Warning, Warnings, verify_record,
};
use countersign_transport::{Chains, Transport};
use futures_util::future::{Either, select};

use super::super::DriveError;
use super::super::chain::rule_of;
use super::super::journal::{Delivery, Event, Purpose};
use super::super::kept::{OrderStore, SignedUnder};
use super::super::parties::{FundingReply, Owner};
use super::{Step, StepOutcome};
use crate::error::Error;
use crate::request::Action as Call;

/// How long the owner may take to answer about another payment, while the first one may be out.
const ANSWER_TIME: Duration = Duration::from_secs(300);

impl<T: Transport, C: Chains, S: OrderStore, O: Owner> Step<'_, T, C, S, O> {
    /// Verifies the order once more, against the newest record, and asks the owner to sign.
    pub(super) async fn sign(&self) -> Result<StepOutcome, DriveError> {
        let (order, body) = match self.driver.flow.verify_with_body(&self.kept.swap).await {
            Ok(verified) => verified,
            Err(Error::Refused(refusal) | Error::Input(refusal)) => return Err(refusal.into()),
            Err(other) => return Ok(StepOutcome::Retry(other.to_string())),
        };
        check_destination(order.warnings(), self.driver.flow.policy())?;
        check_floor(&order, self.kept.at_least)?;
        let own;
        let guard = match self.guard {
            Some(guard) => guard,
            None => {
                own = self.driver.lock(self.kept.swap.id()).await?;
                &own
            }
        };
        if let Some(outcome) = self.keep_terms(guard, &body).await? {
            return Ok(outcome);
        }
        let Some(reply) = self.answer(self.driver.owner.fund(&order)).await else {
            return Ok(StepOutcome::Retry("the owner has not agreed to another payment yet, and is asked again".to_owned()));
        };
        let reply = match reply? {
            FundingReply::Outside => self.hand_out(&order).await?,
            reply => reply,
        };
        match reply {
            FundingReply::NotNow | FundingReply::Outside => Ok(StepOutcome::NeedsOwner),
            FundingReply::Elsewhere => {
                self.write(Event::sending(Delivery::Funding)).await?;
                Ok(StepOutcome::Acted)
            }
            FundingReply::Signed(funding) => {
                self.write(Event::Signed { purpose: Purpose::Funding, transactions: funding.transactions, gasless: funding.gasless })
                    .await?;
                Ok(StepOutcome::Acted)
            }
        }
    }

    /// Stores what the order is judged by until it ends: today's pins and policy, under which the owner is about to be asked, in place of
    /// those of an earlier question, and the record, once. Returns an outcome if the owner cannot be asked yet.
    ///
    /// A payment that was signed keeps the pins of its time. Another payment would be judged by them, too, so it is not signed under other
    /// finality rules: the owner would agree to the new ones, and the old ones would release the secret.
    async fn keep_terms(&self, guard: &S::Guard, body: &[u8]) -> Result<Option<StepOutcome>, DriveError> {
        let (registry, policy) = (self.driver.flow.registry(), self.driver.flow.policy());
        let today = verify_record(self.kept.swap.proposal(body), registry, policy)?.terms;
        if self.kept.record.is_some() {
            // With an id that names another contract since then, the owner would pay another order than the one that was shown first.
            self.kept.verify_record(body, registry, policy)?.terms.check_unchanged(&today)?;
        }
        let judges = |(registry, policy): (&Registry, &Policy)| {
            [&today.source, &today.destination]
                .map(|leg| (rule_of(leg, registry, policy), registry.asset(leg.asset.as_str()).map(|asset| asset.chain.pace)))
        };
        let is_same = judges(self.driver.pins(self.kept)) == judges((registry, policy));
        if self.kept.may_be_paid() || self.kept.signed(Purpose::Funding).is_some() {
            let why = "another payment is not signed, because the finality rules are not those under which the first one was signed";
            return Ok((!is_same).then(|| StepOutcome::Retry(why.to_owned())));
        }
        self.driver.store.keep_pins(guard, &SignedUnder { registry: registry.clone(), policy: policy.clone() }).await?;
        if self.kept.record.is_none() {
            self.driver.store.keep_record(guard, body).await?;
        }
        // What was observed was judged by the old rules.
        Ok((!is_same).then_some(StepOutcome::Acted))
    }

    /// Waits for the owner's answer about a payment. While another one may be out, what the chains show of that one cannot wait for hours:
    /// `None` if the answer takes too long.
    async fn answer<R>(&self, asked: impl Future<Output = R>) -> Option<R> {
        if !self.kept.may_be_paid() {
            return Some(asked.await);
        }
        match select(pin!(asked), pin!(self.driver.flow.client().transport().sleep(ANSWER_TIME))).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    }

    /// Gives the payment to a signer that can send it by itself. If this process ends before the signer replies, or no longer waits for it,
    /// the order counts as paid.
    async fn hand_out(&self, order: &Verified) -> Result<FundingReply, DriveError> {
        self.write(Event::PaymentLeaving).await?;
        let reply = self.answer(self.driver.owner.hand_out(order)).await.unwrap_or(Ok(FundingReply::Elsewhere));
        if !matches!(reply, Ok(FundingReply::Signed(_) | FundingReply::Elsewhere)) {
            self.write(Event::PaymentStayed).await?;
        }
        Ok(reply?)
    }

    /// Sends a part of the signed payment.
    pub(super) async fn pay(&self, what: Delivery) -> Result<StepOutcome, DriveError> {
        let Some((transactions, gasless)) = self.kept.signed(Purpose::Funding) else { return Ok(StepOutcome::NeedsOwner) };
        if what == Delivery::Funding {
            return self.broadcast(Delivery::Funding, transactions).await;
        }
        let Some(signature) = gasless else { return Ok(StepOutcome::NeedsOwner) };
        let submission = GaslessSubmission::new(signature.to_owned());
        self.call(Delivery::Gasless, &Call::Initiate(&submission)).await
    }

    /// Asks the owner to sign the payment again for a higher fee, and sends it. If nothing can replace the original, sends that again.
    pub(super) async fn raise(&self) -> Result<StepOutcome, DriveError> {
        let Some(([sent], None)) = self.kept.signed(Purpose::Funding) else { return self.pay(Delivery::Funding).await };
        let payment = |transactions: &[BroadcastTransaction]| Event::Signed {
            purpose: Purpose::Funding,
            transactions: transactions.to_vec(),
            gasless: None,
        };
        let raised = match self.kept_order() {
            Ok(order) => self.answer(self.driver.owner.raise(&order, sent)).await.unwrap_or(Ok(None)),
            Err(refusal) => Err(refusal.into()),
        };
        // With other coins the order could be paid twice.
        let spends_the_same = |one: &BroadcastTransaction| {
            !one.spends.is_empty() && one.spends.len() == sent.spends.len() && one.spends.iter().all(|coin| sent.spends.contains(coin))
        };
        match raised {
            Ok(Some(raised)) if matches!(raised.as_slice(), [one] if one.id != sent.id && spends_the_same(one)) => {
                self.write(payment(&raised)).await?;
                let done = self.broadcast(Delivery::Funding, &raised).await?;
                if !matches!(done, StepOutcome::Rejected(_)) {
                    return Ok(done);
                }
                // The original stays the payment.
                self.write(payment(std::slice::from_ref(sent))).await?;
                self.broadcast(Delivery::Funding, std::slice::from_ref(sent)).await
            }
            // The policy allows no higher fee, the change does not cover one, or the owner did not sign.
            _ => self.broadcast(Delivery::Funding, std::slice::from_ref(sent)).await,
        }
    }

    /// Returns the order as it was signed, verified again with the pins and policy of that time, before its deadline.
    fn kept_order(&self) -> Result<Verified, Refusal> {
        let (registry, policy) = self.driver.pins(self.kept);
        let record = self.kept.record.as_deref().ok_or_else(|| At::RECORD.refuse(Code::NoOrderRecord))?;
        let order = countersign::verify(self.kept.swap.proposal(record), registry, policy)?;
        order.check_deadline(self.driver.now().max(self.observed.now))?;
        Ok(order)
    }
}

/// Refuses an order whose destination could not be redeemed in time, or may outlast the source, unless the policy accepts that warning.
fn check_destination(warnings: &Warnings, policy: &Policy) -> Result<(), Refusal> {
    let is_danger = |code| matches!(code, Code::DestinationTimelockShort | Code::TimelocksDependOnPace);
    let is_refused = |warning: &&Warning| is_danger(warning.code()) && !policy.accepted_warnings.contains(&warning.code());
    match warnings.list().iter().find(is_refused) {
        Some(warning) => Err(At::RECORD.refuse_below(Code::WarningRefused, "/destination_swap/timelock").with_reason(warning.to_string())),
        None => Ok(()),
    }
}

/// Checks that an order pays at least `at_least`, in base units of the destination asset. A quote is not binding, so the record's
/// amount decides.
///
/// # Errors
///
/// [`Code::PaysTooLittle`] at `/order/destination_swap/amount`.
pub fn check_floor(order: &Verified, at_least: Option<U256>) -> Result<(), Refusal> {
    let terms = order.terms();
    let pays = terms.record.map_or(terms.receive.base_units, |record| record.destination_swap.amount);
    match at_least {
        Some(least) if pays < least => {
            Err(At::RECORD.refuse_below(Code::PaysTooLittle, "/destination_swap/amount").with_expected(least).with_actual(pays))
        }
        _ => Ok(()),
    }
}
