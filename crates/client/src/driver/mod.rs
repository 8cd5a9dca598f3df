//! Runs swaps until they are complete or refunded, even across crashes.
//!
//! A step has three phases:
//!
//! | phase | input | what it does |
//! |---|---|---|
//! | observe | the service and the chains | reads and verifies what is known now, without acting on it |
//! | decide | the stored order and the observation | chooses the next action, as a pure function ([`decide()`]) |
//! | act | the decision | writes the intent to the store, acts, and writes the outcome |
//!
//! [`Driver::advance`] does one step of one swap; [`Driver::run`] drives every stored swap. The caller supplies an [`OrderStore`], the
//! owner's signatures ([`Owner`]) and connections to chains ([`Chains`]).
//!
//! The driver shows what the service states about chains, but does not base decisions on it. The secret is released only for evidence
//! ([`Funded`](countersign::Funded)), unless the caller chooses [`TrustTheService`]. A payment is signed once, and the same one is sent
//! again until its chain shows it. Once the secret may be out, nothing delays the redemption, and the driver follows the swap until the
//! redemption is final. `docs/spec/attacks.md#the-secret` lists the attacks behind these rules.

mod act;
mod boxed_store;
mod chain;
mod decide;
#[cfg(feature = "store")]
mod disk;
mod following;
mod journal;
mod kept;
mod memory;
mod observation;
mod observe;
mod overdue;
mod parties;
mod progress;
mod refunded;
mod release;
mod run;
pub(crate) mod trace;

use std::sync::Mutex;
use std::time::Duration;

use countersign::json::At;
use countersign::{Code, Policy, Registry, chains::UnixTime, evidence::HtlcState};

pub use act::check_floor;
pub use boxed_store::{BoxGuard, BoxStore};
pub use chain::ChainError;
pub use countersign_transport::{BoxChains, ChainEndpoints, Chains, Link, NoChains};
use decide::is_there;
pub use decide::{Action, Capabilities, Decision, OwnerTask, Status, WaitingFor, decide, decide_refund, is_paid};
pub use following::{Alert, FollowStep, Following, StatedEnd, Stop};
#[doc(hidden)]
pub use journal::fold;
pub use journal::{Delivery, Entry, Event, Outcome, Purpose, SecretRoute};
#[doc(hidden)]
pub use kept::Subject;
pub use kept::{OrderState, OrderStore, SignedUnder, StoreError};
pub use memory::{MemoryGuard, MemoryStore};
pub use observation::{LegObservation, OrderObservation, PaymentFate, RecordObservation, Release};
use observe::Observer;
pub use parties::{BoxOwner, FundingReply, NoOwner, Owner, OwnerCode, OwnerError, Settlement, SignedFunding, TrustTheService};
pub use progress::{Change, DriveError, NewOrder, Progress, ServiceStatement, Trouble, WayOut};
pub use refunded::RefundEnd;

use crate::error::Error;
use crate::flow::Flow;
use crate::request::OrderId;
use crate::track::{MIN_POLL, Pace};
use chain::ChainAccess;
use countersign_transport::{Memory, Transport};

/// How long to wait for another process that works on the same order.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs swaps until they are complete or refunded.
#[derive(Debug)]
pub struct Driver<T, C, S, O> {
    flow: Flow<T>,
    chains: C,
    memory: Memory,
    store: S,
    owner: O,
    pace: Pace,
    relayer_allowed: bool,
    trust: Option<TrustTheService>,
    secret_is_elsewhere: bool,
}

impl<T: Transport, C: Chains, S: OrderStore, O: Owner> Driver<T, C, S, O> {
    /// Creates a driver that redeems only with the owner's own transaction, and accepts only evidence from chains.
    pub fn new(flow: Flow<T>, chains: C, store: S, owner: O) -> Self {
        Self {
            flow,
            chains,
            memory: Memory::default(),
            store,
            owner,
            pace: Pace::default(),
            relayer_allowed: false,
            trust: None,
            secret_is_elsewhere: false,
        }
    }

    /// Sets how often orders are polled.
    #[must_use]
    pub const fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Allows the service's relayer to redeem as a fallback: if the owner can redeem on the destination chain, but does not sign or cannot
    /// pay the fee. It then gets the secret once the destination is funded.
    ///
    /// A relayer that redeems **alone** can keep the secret, take the source and let the destination run out. For an owner who cannot
    /// redeem, it is therefore asked only with [`Driver::with_trust`] as well.
    #[must_use]
    pub const fn allow_relayer(mut self) -> Self {
        self.relayer_allowed = true;
        self
    }

    /// Trusts the service's statements about the destination chain if the caller has no connection to it. See [`TrustTheService`] for the
    /// risk.
    #[must_use]
    pub const fn with_trust(mut self, trust: Option<TrustTheService>) -> Self {
        self.trust = trust;
        self
    }

    /// Allows paying orders whose secret is not in the store: somebody else holds it and redeems.
    #[must_use]
    pub const fn allow_secret_elsewhere(mut self) -> Self {
        self.secret_is_elsewhere = true;
        self
    }

    /// Returns the flow.
    #[must_use]
    pub const fn flow(&self) -> &Flow<T> {
        &self.flow
    }

    /// Returns the connections to chains.
    #[must_use]
    pub const fn chains(&self) -> &C {
        &self.chains
    }

    /// Returns whether the owner can redeem on a chain: see [`Owner::can_redeem`].
    pub fn can_redeem(&self, chain: &str) -> bool {
        self.owner.can_redeem(chain)
    }

    /// Returns the store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns the registry and policy that apply to an order: those of the time of signing, otherwise the current ones.
    fn pins<'p>(&'p self, kept: &'p OrderState) -> (&'p Registry, &'p Policy) {
        kept.pins_or(self.flow.registry(), self.flow.policy())
    }

    fn chain_access(&self) -> ChainAccess<'_, C, T> {
        ChainAccess { chains: &self.chains, timer: self.flow.client().transport(), memory: &self.memory }
    }

    fn now(&self) -> UnixTime {
        self.flow.client().transport().now()
    }

    /// Writes a line of an order's journal.
    async fn append(&self, guard: &S::Guard, event: Event) -> Result<(), StoreError> {
        let entry = Entry { at: self.now(), event };
        self.store.append(guard, &entry).await?;
        trace::written(&entry.event);
        Ok(())
    }

    /// Creates an order and stores it.
    ///
    /// # Errors
    ///
    /// [`DriveError::Refused`] with [`Code::SecretHashMismatch`] if the request does not contain the secret's hash, or with
    /// [`Code::RecordSecretKnown`] if another stored order has the same hash; [`DriveError::Create`] if the service fails, or
    /// [`DriveError::Store`]. An order that was created but could not be stored is never paid.
    pub async fn create(&self, order: NewOrder) -> Result<OrderId, DriveError> {
        trace::created(self.create_stored(order).await)
    }

    async fn create_stored(&self, order: NewOrder) -> Result<OrderId, DriveError> {
        let NewOrder { request, secret, index, branch, at_least } = order;
        if let Some(secret) = &secret
            && request.secret_hash != Some(secret.hash())
        {
            let refusal = At::REQUEST.refuse_below(Code::SecretHashMismatch, "/secret_hash").with_expected(secret.hash());
            return Err(DriveError::Refused(refusal));
        }
        if let Some(hash) = &request.secret_hash
            && let Some(other) = self.store.order_of(hash).await?
        {
            return Err(StoreError::SecretUsed(other).into());
        }
        let swap = self.flow.create(request).await.map_err(|error| match error {
            Error::Refused(refusal) | Error::Input(refusal) => DriveError::Refused(refusal),
            other => DriveError::Create(other),
        })?;
        let id = swap.id().clone();
        self.store.create(&OrderState { index, branch, at_least, ..OrderState::new(swap, secret) }).await?;
        Ok(id)
    }

    /// Observes one order, decides, and does one step.
    ///
    /// # Errors
    ///
    /// Any [`DriveError`] except [`DriveError::Create`]. The order can be advanced again after any of them.
    pub async fn advance(&self, id: &OrderId) -> Result<Progress, DriveError> {
        trace::step(id, || self.step(id, decide)).await
    }

    /// Observes one order like [`Driver::advance`], and refunds it if its timelock has expired, whatever else could be done: see
    /// [`decide_refund`]. It neither sends a signed payment nor releases the secret. [`RefundEnd`] is its outcome.
    ///
    /// # Errors
    ///
    /// Any [`DriveError`] except [`DriveError::Create`].
    pub async fn refund(&self, id: &OrderId) -> Result<Progress, DriveError> {
        trace::step(id, || self.step(id, decide_refund)).await
    }

    /// Observes one order, decides, and does one step.
    ///
    /// The order is locked only for acts that must exclude each other, and for each line of the journal. A redemption or a refund in
    /// another process must not wait for this one's network, and two of them do each other no harm.
    async fn step(
        &self,
        id: &OrderId,
        decide: fn(&OrderState, &OrderObservation, Capabilities) -> Decision,
    ) -> Result<Progress, DriveError> {
        let kept = self.store.load(id).await?;
        let Some(outcome) = kept.outcome() else {
            let observed = self.observe(&kept).await;
            return self.proceed(kept, &observed, decide).await;
        };
        // The order ended because no payment had been seen. One may have arrived since.
        let mut trouble = None;
        if outcome == Outcome::Expired {
            let observed = self.observe(&kept).await;
            if is_there(&observed) {
                return self.proceed(kept, &observed, decide).await;
            }
            if let LegObservation::Unknown(why) = observed.source {
                trouble = Some(Trouble::Failed(why));
            }
        }
        let is_paid = outcome != Outcome::Expired && kept.may_be_paid();
        let is_refunded = outcome == Outcome::Refunded;
        Ok(Progress { is_paid, is_refunded, trouble, ..Progress::new(Status::Ended { outcome }) })
    }

    /// Observes a stored order: the first half of a step.
    ///
    /// **Not covered by semantic versioning.** Apart from what others answer, the observation depends on the order's documents and on
    /// [`Subject`] alone. `proofs/model` relies on that.
    #[doc(hidden)]
    pub async fn observe(&self, kept: &OrderState) -> OrderObservation {
        let (registry, policy) = self.pins(kept);
        let observer = Observer { client: self.flow.client(), chains: self.chain_access(), registry, policy, trust: self.trust };
        observer.observe(&Subject::of(kept)).await
    }

    /// Decides on an observation that was just made of a stored order, and acts: the second half of a step.
    ///
    /// **Not covered by semantic versioning.** [`Driver::advance`] is the whole step.
    #[doc(hidden)]
    pub async fn proceed(
        &self,
        kept: OrderState,
        observed: &OrderObservation,
        decide: fn(&OrderState, &OrderObservation, Capabilities) -> Decision,
    ) -> Result<Progress, DriveError> {
        let id = &kept.swap.id().clone();
        let kept = self.note_payment(kept, observed).await?;
        let (registry, _) = self.pins(&kept);
        let capabilities = Capabilities {
            relayer_allowed: self.relayer_allowed,
            relayer_alone: self.trust.is_some(),
            secret_is_elsewhere: self.secret_is_elsewhere,
            ..Capabilities::new(&kept, &self.owner, &self.chains)
        };
        let Decision { status, action } = decide(&kept, observed, capabilities);
        let stated = match &observed.record {
            RecordObservation::Verified(record) => {
                let status = crate::status::Status::from_record(&record.record, registry, observed.now);
                Some(Box::new(ServiceStatement { record: record.record.clone(), status }))
            }
            _ => None,
        };
        let counts_as_paid = is_paid(&kept, observed);
        // What the source chain shows has just been written down.
        let is_paid = kept.may_be_paid();
        let is_stated_paid = counts_as_paid && !is_paid;
        let is_refunded = observed.source.is_seen() && matches!(observed.source.state(), Some(HtlcState::Refunded { .. }));
        let trouble = trouble(&kept, observed, counts_as_paid);
        let mut progress = Progress { status, acted: false, trouble, is_paid, is_stated_paid, is_refunded, stated };
        let Some(action) = action else {
            self.name_missing_chain(&kept, observed, capabilities, &mut progress);
            return Ok(progress);
        };
        let excludes = !matches!(action, Action::Redeem { .. } | Action::Refund);
        // A store that cannot be written must not stop what is out already from being sent again.
        let is_repeated = match &action {
            Action::Redeem { path: SecretRoute::Relayer, .. } => kept.may_be_sent(Delivery::Secret),
            Action::Redeem { .. } => kept.may_be_sent(Delivery::Redemption),
            Action::Refund => kept.may_be_sent(Delivery::Refund) || kept.may_be_sent(Delivery::RefundRequest),
            _ => false,
        };
        let guard = match self.lock(id).await {
            Err(StoreError::Failed(_)) if is_repeated => None,
            guard => Some(guard?),
        };
        let mut locked = self.store.load(id).await?;
        if locked.journal != kept.journal {
            // Another process has acted in the meantime, so this decision is out of date.
            progress.acted = true;
            return Ok(progress);
        }
        if let Some(guard) = &guard
            && let Some(shorter) = journal::folded(&locked.journal)
        {
            match self.store.replace_journal(guard, &shorter).await {
                Err(StoreError::Failed(_)) if is_repeated => {}
                replaced => {
                    replaced?;
                    locked.journal = shorter;
                }
            }
        }
        let guard = guard.filter(|_| excludes);
        let step = act::Step { driver: self, guard: guard.as_ref(), kept: &locked, observed, unwritten: Mutex::default() };
        let done = step.act(&action).await;
        let unwritten = step.unwritten.into_inner().unwrap_or_default();
        drop(guard);
        // Whether something may have been sent is known only now, also if the act failed.
        progress.is_paid |= self.store.load(id).await.is_ok_and(|kept| kept.may_be_paid());
        match done? {
            act::StepOutcome::Acted => {
                progress.acted = true;
                progress.trouble = unwritten.map(Trouble::NotWritten).or(progress.trouble);
            }
            act::StepOutcome::Retry(why) | act::StepOutcome::Rejected(why) => progress.trouble = Some(Trouble::Failed(why)),
            act::StepOutcome::HandedOut => {}
            act::StepOutcome::NeedsOwner => progress.status = waits(&action, progress.status),
        }
        if !progress.acted {
            self.name_missing_chain(&kept, observed, capabilities, &mut progress);
        }
        Ok(progress)
    }

    /// Reports that the next action needs a chain without a connection. An owner's task that needs one is due whatever else failed. What
    /// waits for evidence may wait for the service as well, and that is reported first.
    fn name_missing_chain(&self, kept: &OrderState, observed: &OrderObservation, capabilities: Capabilities, progress: &mut Progress) {
        let request = kept.swap.request();
        let lacks_evidence = observed.release.is_err() && self.trust.is_none() && kept.own_secret().is_some();
        let (leg, is_connected) = match &progress.status {
            Status::NeedsOwner { what: OwnerTask::BroadcastFunding | OwnerTask::Refund } => {
                (&request.source, capabilities.source_connected)
            }
            Status::NeedsOwner { what: OwnerTask::Redeem | OwnerTask::BroadcastRedemption } => {
                (&request.destination, capabilities.destination_connected)
            }
            Status::Waiting { .. } if lacks_evidence && progress.trouble.is_none() => {
                (&request.destination, capabilities.destination_connected)
            }
            _ => return,
        };
        if !is_connected {
            progress.trouble = Some(Trouble::NotConnected(leg.asset.chain().to_owned()));
        }
    }

    /// Writes down that the payment is on chain, if nobody has yet: one from another wallet must not be forgotten when the chain cannot be
    /// read later.
    async fn note_payment(&self, kept: OrderState, observed: &OrderObservation) -> Result<OrderState, DriveError> {
        let is_noted = kept.may_be_paid() && kept.outcome().is_none();
        if is_noted || !observed.source.is_seen() || !is_there(observed) {
            return Ok(kept);
        }
        let what = if kept.is_gasless() { Delivery::Gasless } else { Delivery::Funding };
        let id = kept.swap.id().clone();
        let written = match self.lock(&id).await {
            Ok(guard) => self.append(&guard, Event::OnChain { what }).await,
            Err(error) => Err(error),
        };
        match written {
            // What the chain shows decides without the line, too.
            Err(StoreError::Failed(_)) => Ok(kept),
            written => {
                written?;
                Ok(self.store.load(&id).await?)
            }
        }
    }

    /// Locks an order. Waits for another process for a while, because locks are short except while the owner signs a payment.
    async fn lock(&self, id: &OrderId) -> Result<S::Guard, StoreError> {
        let transport = self.flow.client().transport();
        let mut waited = Duration::ZERO;
        loop {
            match self.store.lock(id).await {
                Err(StoreError::Busy) if waited < LOCK_TIMEOUT => transport.sleep(MIN_POLL).await,
                outcome => return outcome,
            }
            waited = waited.saturating_add(MIN_POLL);
        }
    }

    /// Records that the owner has broadcast something that the driver could not broadcast. The driver then waits for it and does not
    /// send it.
    ///
    /// # Errors
    ///
    /// [`DriveError::Store`] if the store fails.
    pub async fn mark_on_chain(&self, id: &OrderId, what: Delivery) -> Result<(), DriveError> {
        let guard = self.store.lock(id).await?;
        Ok(self.append(&guard, Event::OnChain { what }).await?)
    }
}

/// How long the service may take to submit a payment before that is reported.
const SUBMISSION_TIME: Duration = Duration::from_secs(120);

/// Returns why the service's record could not be read, why nothing can be paid now, or that the payment does not arrive, for display.
fn trouble(kept: &OrderState, observed: &OrderObservation, is_paid: bool) -> Option<Trouble> {
    match (&observed.record, &observed.heads) {
        (RecordObservation::Unknown(why), _) => Some(Trouble::Failed(why.clone())),
        (RecordObservation::Refused(refusal), _) if is_paid => Some(Trouble::RecordRefused(refusal.clone())),
        (_, Err(why)) if !is_paid => Some(Trouble::Failed(why.clone())),
        _ => {
            let is_absent = matches!(observed.source, LegObservation::Seen { state: HtlcState::Absent, .. });
            let (_, sent_at) = kept.attempts(Delivery::Gasless);
            let is_overdue = observed.now > sent_at.saturating_add(SUBMISSION_TIME);
            (is_absent && is_overdue && kept.was_sent(Delivery::Gasless)).then_some(Trouble::NotSubmitted)
        }
    }
}

/// Returns the status of an order whose next action only the owner can do.
fn waits(action: &Action, status: Status) -> Status {
    let what = match action {
        Action::Sign => return Status::Unsigned,
        Action::Pay(_) | Action::Raise => OwnerTask::BroadcastFunding,
        Action::Redeem { .. } => OwnerTask::Redeem,
        Action::Refund => OwnerTask::Refund,
        Action::End(_) | Action::HandOut(_) => return status,
    };
    Status::NeedsOwner { what }
}
