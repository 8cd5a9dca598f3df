//! Carries out a decision. An intent that moves money or a secret is written to the journal before it is carried out, and its outcome
//! after.

use std::sync::Mutex;

use countersign::chains::Pace;
use countersign::json::At;
use countersign::{
    BroadcastTransaction, Code, Family, GaslessSubmission, Leg, Policy, Refusal, U256, Verified, VerifiedRecord, Warning, Warnings,
    chains::UnixTime, evidence::HtlcState, report::OrderStage,
};

use super::chain::{ChainError, judge, rule_of};
use super::decide::Action;
use super::journal::{Delivery, Event, Outcome, Purpose, SecretRoute};
use super::kept::{OrderState, OrderStore, SignedUnder};
use super::observation::{OrderObservation, RecordObservation, Release};
use super::overdue::{overdue_after, shortest_time};
use super::parties::{FundingReply, Owner, OwnerError, Settlement};
use super::release;
use super::{DriveError, Driver};
use crate::error::Error;
use crate::request::Action as Call;
use crate::secret::Secret;
use countersign_transport::{Chains, Transport};

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StepOutcome {
    /// It was done, so it is worth observing the order again soon.
    Acted,
    /// It was not done, and will be tried again.
    Retry(String),
    /// The owner has been given something to broadcast.
    HandedOut,
    /// The chain rejects the transaction.
    Rejected(String),
    /// The owner has to do something first.
    NeedsOwner,
}

/// The context of one step of one order.
pub(super) struct Step<'s, T, C, S: OrderStore, O> {
    pub(super) driver: &'s Driver<T, C, S, O>,
    /// The lock on the order; `None` if the act need not exclude others, and each line of the journal is written under a lock of its own.
    pub(super) guard: Option<&'s S::Guard>,
    pub(super) kept: &'s OrderState,
    pub(super) observed: &'s OrderObservation,
    /// Why a line could not be written that nothing had to wait for.
    pub(super) unwritten: Mutex<Option<String>>,
}

impl<T: Transport, C: Chains, S: OrderStore, O: Owner> Step<'_, T, C, S, O> {
    /// Carries out one action.
    pub(super) async fn act(&self, action: &Action) -> Result<StepOutcome, DriveError> {
        match self.carry_out(action).await {
            Err(DriveError::Owner(OwnerError::Unavailable(why))) => Ok(StepOutcome::Retry(why)),
            done => done,
        }
    }

    async fn carry_out(&self, action: &Action) -> Result<StepOutcome, DriveError> {
        match action {
            Action::Sign => self.sign().await,
            Action::Pay(what) => self.pay(*what).await,
            Action::Raise => self.raise().await,
            Action::HandOut(what) => {
                self.write(Event::sending(*what)).await?;
                Ok(StepOutcome::HandedOut)
            }
            Action::Redeem { path: SecretRoute::Own | SecretRoute::Signer, is_urgent } => self.redeem(*is_urgent).await,
            Action::Redeem { path: SecretRoute::Relayer, is_urgent } => self.give_secret(*is_urgent).await,
            Action::Refund => self.refund().await,
            Action::End(outcome) => self.end(*outcome).await,
        }
    }

    /// Writes a line about something that is out already and harmless to repeat: a redemption or a refund whose intent is stored. A store
    /// that cannot be written must not stop it, so a failure is only remembered, to be reported.
    async fn note(&self, what: Delivery, event: Event) -> Result<(), DriveError> {
        let is_repeated = matches!(what, Delivery::Redemption | Delivery::Secret | Delivery::Refund | Delivery::RefundRequest);
        match self.write(event).await {
            Err(error) if is_repeated && self.kept.may_be_sent(what) => {
                if let Ok(mut unwritten) = self.unwritten.lock() {
                    *unwritten = Some(error.to_string());
                }
                Ok(())
            }
            outcome => outcome,
        }
    }

    async fn write(&self, event: Event) -> Result<(), DriveError> {
        match self.guard {
            Some(guard) => self.driver.append(guard, event).await?,
            None => self.driver.append(&self.driver.lock(self.kept.swap.id()).await?, event).await?,
        }
        Ok(())
    }

    /// Verifies a record with the pins and policy of the time of signing.
    fn verify(&self, body: &[u8]) -> Result<VerifiedRecord, Refusal> {
        let (registry, policy) = self.driver.pins(self.kept);
        countersign::verify_record(self.kept.swap.proposal(body), registry, policy)
    }

    async fn end(&self, outcome: Outcome) -> Result<StepOutcome, DriveError> {
        self.write(Event::Ended { outcome }).await?;
        Ok(StepOutcome::Acted)
    }

    /// Verifies the order once more, against the newest record, and asks the owner to sign.
    async fn sign(&self) -> Result<StepOutcome, DriveError> {
        let (order, body) = match self.driver.flow.verify_with_body(&self.kept.swap).await {
            Ok(verified) => verified,
            Err(error) => return later(&error, self.kept.may_be_paid()),
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
        match &self.kept.record {
            None => {
                let pins = SignedUnder { registry: self.driver.flow.registry().clone(), policy: self.driver.flow.policy().clone() };
                self.driver.store.keep_pins(guard, &pins).await?;
                self.driver.store.keep_record(guard, &body).await?;
            }
            Some(_) => {
                let flow = &self.driver.flow;
                let signed = self.kept.verify_record(&body, flow.registry(), flow.policy())?.terms;
                // The order's own pins decide from now on, and today's say what is paid. An id that names another contract since then would
                // have the payment checked against one, and the payout against the other.
                let today = countersign::verify_record(self.kept.swap.proposal(&body), flow.registry(), flow.policy())?;
                signed.check_unchanged(&today.terms)?;
            }
        }
        let reply = match self.driver.owner.fund(&order).await? {
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

    /// Gives the payment to a signer that can send it by itself. If this process ends before the signer replies, the order counts as paid.
    async fn hand_out(&self, order: &Verified) -> Result<FundingReply, DriveError> {
        self.write(Event::PaymentLeaving).await?;
        let reply = self.driver.owner.hand_out(order).await;
        if !matches!(reply, Ok(FundingReply::Signed(_) | FundingReply::Elsewhere)) {
            self.write(Event::PaymentStayed).await?;
        }
        Ok(reply?)
    }

    /// Sends a part of the signed payment.
    async fn pay(&self, what: Delivery) -> Result<StepOutcome, DriveError> {
        let Some((transactions, gasless)) = self.kept.signed(Purpose::Funding) else { return Ok(StepOutcome::NeedsOwner) };
        if what == Delivery::Funding {
            return self.broadcast(Delivery::Funding, transactions).await;
        }
        let Some(signature) = gasless else { return Ok(StepOutcome::NeedsOwner) };
        let submission = GaslessSubmission::new(signature.to_owned());
        self.call(Delivery::Gasless, &Call::Initiate(&submission)).await
    }

    /// Asks the owner to sign the payment again for a higher fee, and sends it. If nothing can replace the original, sends that again.
    async fn raise(&self) -> Result<StepOutcome, DriveError> {
        let Some(([sent], None)) = self.kept.signed(Purpose::Funding) else { return self.pay(Delivery::Funding).await };
        let payment = |transactions: &[BroadcastTransaction]| Event::Signed {
            purpose: Purpose::Funding,
            transactions: transactions.to_vec(),
            gasless: None,
        };
        let raised = match self.kept_order() {
            Ok(order) => self.driver.owner.raise(&order, sent).await,
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

    /// Redeems with the owner's own transaction. The evidence is read again right before the secret is released.
    async fn redeem(&self, is_urgent: bool) -> Result<StepOutcome, DriveError> {
        if !is_urgent && let Err(why) = self.confirm_release().await {
            return Ok(StepOutcome::Retry(why));
        }
        if let Some((transactions, _)) = self.kept.signed(Purpose::Redemption) {
            return self.broadcast_or_replace(Delivery::Redemption, Purpose::Redemption, transactions).await;
        }
        let transactions = match self.settle(Purpose::Redemption, &[]).await {
            Ok(Some(transactions)) => transactions,
            // The secret is public, so the relayer learns nothing from it, and it may redeem sooner than an absent owner.
            _ if self.is_public() && self.kept.swap.request().destination.delegate.is_none() => return self.give_secret(true).await,
            // The owner does not sign, or has no coins for the fee: the relayer redeems, if it may, and learns the secret only after the
            // evidence is read again.
            Ok(None) if self.may_ask_relayer() => return self.give_secret(is_urgent).await,
            Err(DriveError::Owner(OwnerError::Refused(refusal))) if refusal.code() == Code::InsufficientFunds && self.may_ask_relayer() => {
                return self.give_secret(is_urgent).await;
            }
            Ok(None) => return Ok(StepOutcome::NeedsOwner),
            Err(error) => return Err(error),
        };
        // Signing may have taken hours.
        if !is_urgent && let Err(why) = self.confirm_release().await {
            return Ok(StepOutcome::Retry(why));
        }
        self.write(Event::SecretLeaving { path: SecretRoute::Own }).await?;
        self.write(Event::Signed { purpose: Purpose::Redemption, transactions: transactions.clone(), gasless: None }).await?;
        if !self.driver.chains.has(self.kept.swap.request().destination.asset.chain()) {
            self.write(Event::Printed { what: Delivery::Redemption }).await?;
            return Ok(StepOutcome::HandedOut);
        }
        self.broadcast(Delivery::Redemption, &transactions).await
    }

    fn may_ask_relayer(&self) -> bool {
        self.driver.relayer_allowed && self.kept.swap.request().destination.delegate.is_none()
    }

    fn is_public(&self) -> bool {
        self.observed.public_secret.is_some()
    }

    /// Sends the secret to the service's relayer.
    async fn give_secret(&self, is_urgent: bool) -> Result<StepOutcome, DriveError> {
        let secret = match (self.kept.own_secret(), &self.observed.public_secret) {
            (Some(secret), _) => Secret::from_bytes(*secret.expose()),
            (None, Some(public)) => Secret::from_bytes(*public),
            (None, None) => return Ok(StepOutcome::NeedsOwner),
        };
        if !is_urgent && let Err(why) = self.confirm_release().await {
            return Ok(StepOutcome::Retry(why));
        }
        if !self.kept.relayer_has_secret() {
            self.write(Event::SecretLeaving { path: SecretRoute::Relayer }).await?;
        }
        self.call(Delivery::Secret, &Call::Redeem { secret: &secret }).await
    }

    /// Refunds the source: with the owner's own transaction, otherwise through the service's relayer, which can only pay the owner.
    async fn refund(&self) -> Result<StepOutcome, DriveError> {
        if !self.driver.chains.has(self.kept.swap.request().source.asset.chain()) {
            return self.call(Delivery::RefundRequest, &Call::Refund).await;
        }
        if let Some((transactions, _)) = self.kept.signed(Purpose::Refund) {
            return self.broadcast_or_replace(Delivery::Refund, Purpose::Refund, transactions).await;
        }
        let transactions = match self.settle(Purpose::Refund, &[]).await {
            Ok(Some(transactions)) => transactions,
            Ok(None) => return self.call(Delivery::RefundRequest, &Call::Refund).await,
            // The owner may have no coin for the fee, or no endpoint that answers. The relayer can only pay the owner, so it is asked too.
            Err(error @ DriveError::Owner(_)) if !self.only_owner_refunds() => {
                return match self.call(Delivery::RefundRequest, &Call::Refund).await? {
                    StepOutcome::Acted => Ok(StepOutcome::Acted),
                    _ => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        self.write(Event::Signed { purpose: Purpose::Refund, transactions: transactions.clone(), gasless: None }).await?;
        self.broadcast(Delivery::Refund, &transactions).await
    }

    /// Returns whether the source can be refunded only with the owner's own key.
    fn only_owner_refunds(&self) -> bool {
        self.observed.source_family == Some(Family::Bitcoin) && self.kept.swap.request().source.delegate.is_some()
    }

    /// Asks the owner to sign a redemption or a refund, for the first time or to replace transactions that are not mined.
    async fn settle(&self, purpose: Purpose, replaces: &[BroadcastTransaction]) -> Result<Option<Vec<BroadcastTransaction>>, DriveError> {
        let Some(VerifiedRecord { record, .. }) = self.verified() else { return Ok(None) };
        let leg = if purpose == Purpose::Refund { Leg::Source } else { Leg::Destination };
        let public = self.observed.public_secret.map(Secret::from_bytes);
        let secret = self.kept.own_secret().or(public.as_ref()).filter(|_| purpose == Purpose::Redemption);
        let is_urgent = purpose == Purpose::Redemption && (self.kept.secret_was_sent() || self.is_public());
        let task = Settlement { purpose, leg, record: &record, registry: self.driver.pins(self.kept).0, secret, replaces, is_urgent };
        if secret.is_some() && !self.kept.secret_has_left() && !self.driver.owner.signs_here(&leg.of(&record).chain) {
            self.write(Event::SecretLeaving { path: SecretRoute::Signer }).await?;
        }
        let signed = self.driver.owner.settle(&task).await?;
        Ok(signed.filter(|transactions| !transactions.is_empty()))
    }

    /// Returns the record that the order was signed with. Only an order that was paid elsewhere has none, and then the current one is used:
    /// what a later record says must not stand between the owner and the money.
    fn verified(&self) -> Option<VerifiedRecord> {
        let kept = self.kept.record.as_deref().and_then(|body| self.verify(body).ok());
        kept.or_else(|| match &self.observed.record {
            RecordObservation::Verified(record) => Some(record.as_ref().clone()),
            _ => None,
        })
    }

    /// Reads the destination chain once more, because the solver may have refunded its payment since the first reading, and asks whether
    /// the redemption would pay.
    async fn confirm_release(&self) -> Result<(), String> {
        let (registry, policy) = self.driver.pins(self.kept);
        let Some(VerifiedRecord { terms, record, .. }) = self.verified() else { return Err("no verified terms".to_owned()) };
        match (&self.observed.release, &self.observed.record) {
            (Err(hold), _) => return Err(hold.to_string()),
            (Ok(Release::Evidence(_)), _) => {
                let rule = rule_of(&terms.destination, registry, policy);
                let quorum = self.driver.chain_access().destination(&terms, rule.as_ref()).await.map_err(|error| error.to_string())?;
                judge(&terms, &quorum, rule.as_ref(), self.driver.now()).map_err(|hold| hold.to_string())?;
            }
            // What the service states is judged again, too, because time has passed since.
            (Ok(Release::Trust(_)), RecordObservation::Verified(known)) => {
                release::check(&known.record, registry, policy, self.driver.now()).map_err(|hold| hold.to_string())?;
            }
            (Ok(Release::Trust(_)), _) => return Err("the service's record is not known".to_owned()),
        }
        self.driver.owner.check_release(&record, registry).await.map_err(|error| {
            let why = match &error {
                // The payment is out.
                OwnerError::Refused(refusal) => refusal.at_stage(OrderStage::AfterPaying).to_string(),
                other => other.to_string(),
            };
            format!("the secret stays, because the redemption would not pay: {why}")
        })
    }

    /// Broadcasts a redemption or a refund. If the chain rejects it, it is signed again with current fees. That is safe, because both
    /// end the same HTLC and only one can take effect. A funding is never signed again.
    async fn broadcast_or_replace(
        &self,
        what: Delivery,
        purpose: Purpose,
        transactions: &[BroadcastTransaction],
    ) -> Result<StepOutcome, DriveError> {
        // If the owner does not sign a replacement, the transaction that was sent remains the best one available.
        if self.driver.is_overdue_at(self.kept, purpose, self.driver.now().max(self.observed.now), Some(self.observed))
            && let Ok(Some(replacement)) = self.settle(purpose, transactions).await
        {
            self.note(what, Event::Signed { purpose, transactions: replacement.clone(), gasless: None }).await?;
            let done = self.broadcast(what, &replacement).await?;
            if !matches!(done, StepOutcome::Rejected(_)) {
                return Ok(done);
            }
            // The replacement was rejected, so the first transaction is the one to send again.
            self.note(what, Event::Signed { purpose, transactions: transactions.to_vec(), gasless: None }).await?;
        }
        let done = self.broadcast(what, transactions).await?;
        if let StepOutcome::Rejected(why) = done {
            let Some(transactions) = self.settle(purpose, &[]).await? else { return Ok(StepOutcome::Retry(why)) };
            self.note(what, Event::Signed { purpose, transactions: transactions.clone(), gasless: None }).await?;
            // Sent at once, because a transaction that is valid for a minute would have expired by the next attempt.
            return self.broadcast(what, &transactions).await;
        }
        Ok(done)
    }

    /// Broadcasts transactions in order, each after the previous one was accepted.
    async fn broadcast(&self, what: Delivery, transactions: &[BroadcastTransaction]) -> Result<StepOutcome, DriveError> {
        self.note(what, Event::sending(what)).await?;
        for transaction in transactions {
            if let Err(error) = self.driver.chain_access().send(transaction, self.driver.pins(self.kept).0).await {
                let is_rejected = matches!(error, ChainError::Rejected { by_quorum: true, .. });
                self.note(what, Event::NotSent { what, error: error.to_string(), is_rejected }).await?;
                return Ok(match error {
                    ChainError::NotConnected(_) => StepOutcome::NeedsOwner,
                    ChainError::Rejected { .. } => StepOutcome::Rejected(error.to_string()),
                    ChainError::Unavailable(_) => StepOutcome::Retry(error.to_string()),
                });
            }
        }
        self.note(what, Event::Sent { what }).await?;
        Ok(StepOutcome::Acted)
    }

    /// Sends one action to the service, once, and writes the outcome to the journal.
    async fn call(&self, what: Delivery, call: &Call<'_>) -> Result<StepOutcome, DriveError> {
        self.note(what, Event::sending(what)).await?;
        match self.driver.flow.client().act(self.kept.swap.id(), call).await {
            Ok(_) => {
                self.note(what, Event::Sent { what }).await?;
                Ok(StepOutcome::Acted)
            }
            Err(error) => {
                self.note(what, Event::NotSent { what, error: error.to_string(), is_rejected: false }).await?;
                Ok(StepOutcome::Retry(error.to_string()))
            }
        }
    }
}

impl<T: Transport, C: Chains, S: OrderStore, O: Owner> Driver<T, C, S, O> {
    /// Returns whether the transactions for a purpose were signed so long ago that they should have been mined by now. If they are not,
    /// they probably pay too low a fee, or have left the mempools.
    #[must_use]
    pub fn is_overdue(&self, kept: &OrderState, purpose: Purpose) -> bool {
        self.is_overdue_at(kept, purpose, self.now(), None)
    }

    fn is_overdue_at(&self, kept: &OrderState, purpose: Purpose, now: UnixTime, observed: Option<&OrderObservation>) -> bool {
        let request = kept.swap.request();
        let (leg, measured) = match purpose {
            Purpose::Redemption => (&request.destination, observed.and_then(|observed| observed.destination_pace)),
            _ => (&request.source, observed.and_then(|observed| observed.source_pace)),
        };
        let pace = self.pins(kept).0.asset(leg.asset.as_str()).map_or(Pace::new(0, 0, 0), |asset| asset.chain.pace);
        // Only a redemption runs out of time.
        let left = match observed.map(|observed| observed.destination.state()) {
            Some(Some(HtlcState::Locked(locked))) if purpose == Purpose::Redemption => Some(shortest_time(pace, measured, locked.left())),
            _ => None,
        };
        let wait = overdue_after(pace, measured, left);
        // A clock that was set back must not stop a fee from being raised.
        kept.signed_at(purpose).is_some_and(|since| now < since || now >= since.saturating_add(wait))
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

/// Turns a refusal into an error, and every other error into an outcome that is tried again.
fn later(error: &Error, may_be_paid: bool) -> Result<StepOutcome, DriveError> {
    match error {
        Error::Refused(refusal) => Err(DriveError::Refused(refusal.clone())),
        // The owner has to correct the policy. An order that may be paid is not given up for that.
        Error::Input(refusal) if !may_be_paid => Err(DriveError::Refused(refusal.clone())),
        other => Ok(StepOutcome::Retry(other.to_string())),
    }
}
