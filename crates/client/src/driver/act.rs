//! Carries out a decision. An intent that moves money or a secret is written to the journal before it is carried out, and its outcome
//! after.

mod payment;

use std::sync::Mutex;

use countersign::chains::Pace;
use countersign::{
    BroadcastTransaction, Code, Family, Leg, Refusal, VerifiedRecord, chains::UnixTime, evidence::HtlcState, report::OrderStage,
};

use super::chain::{ChainError, judge, rule_of};
use super::decide::Action;
use super::journal::{Delivery, Event, Outcome, Purpose, SecretRoute};
use super::kept::{OrderState, OrderStore};
use super::observation::{OrderObservation, RecordObservation, Release};
use super::overdue::{overdue_after, shortest_time};
use super::parties::{Owner, OwnerError, Settlement};
use super::release;
use super::{DriveError, Driver};
use crate::request::Action as Call;
use crate::secret::Secret;
use countersign_transport::{Chains, Transport};

pub use payment::check_floor;

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
            // A payment that may be out is followed, whatever is refused of another one.
            Err(DriveError::Refused(refusal)) if self.kept.may_be_paid() => {
                Ok(StepOutcome::Retry(refusal.at_stage(OrderStage::AfterPaying).to_string()))
            }
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

    /// Redeems with the owner's own transaction. The evidence is read again right before the secret is released.
    async fn redeem(&self, is_urgent: bool) -> Result<StepOutcome, DriveError> {
        if !is_urgent && let Err(why) = self.confirm_release().await {
            return Ok(StepOutcome::Retry(why));
        }
        match self.kept.signed(Purpose::Redemption) {
            Some((transactions, _)) if is_urgent => {
                return self.broadcast_or_replace(Delivery::Redemption, Purpose::Redemption, transactions).await;
            }
            // It was signed and not sent, so the secret is still here, and the evidence was read a moment ago.
            Some((transactions, _)) if !self.is_overdue(Purpose::Redemption) => {
                return self.broadcast(Delivery::Redemption, transactions).await;
            }
            // One that is too old, and may have expired, is signed anew like the first one. To send it would show the secret for nothing.
            _ => {}
        }
        let transactions = match self.settle(Purpose::Redemption, &[], is_urgent).await {
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
        let transactions = match self.settle(Purpose::Refund, &[], false).await {
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

    /// Asks the owner to sign a redemption or a refund, for the first time or to replace transactions that are not mined. Only a redemption
    /// whose secret is out (`is_urgent`) replaces another one.
    async fn settle(
        &self,
        purpose: Purpose,
        replaces: &[BroadcastTransaction],
        is_urgent: bool,
    ) -> Result<Option<Vec<BroadcastTransaction>>, DriveError> {
        let Some(VerifiedRecord { record, .. }) = self.verified() else { return Ok(None) };
        let leg = if purpose == Purpose::Refund { Leg::Source } else { Leg::Destination };
        let public = self.observed.public_secret.map(Secret::from_bytes);
        let secret = self.kept.own_secret().or(public.as_ref()).filter(|_| purpose == Purpose::Redemption);
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

    fn is_overdue(&self, purpose: Purpose) -> bool {
        self.driver.is_overdue_at(self.kept, purpose, self.driver.now().max(self.observed.now), Some(self.observed))
    }

    /// Broadcasts a refund, or a redemption whose secret is out. If the chain rejects it, it is signed again with current fees. That is safe,
    /// because both end the same HTLC and only one can take effect. A funding is never signed again.
    async fn broadcast_or_replace(
        &self,
        what: Delivery,
        purpose: Purpose,
        transactions: &[BroadcastTransaction],
    ) -> Result<StepOutcome, DriveError> {
        let is_urgent = purpose == Purpose::Redemption;
        // If the owner does not sign a replacement, the transaction that was sent remains the best one available.
        if self.is_overdue(purpose)
            && let Ok(Some(replacement)) = self.settle(purpose, transactions, is_urgent).await
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
            let Some(transactions) = self.settle(purpose, &[], is_urgent).await? else { return Ok(StepOutcome::Retry(why)) };
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
