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
//! [`Driver::advance`] does one step of one swap; [`Driver::run`] drives every stored swap. The caller supplies a [`Store`], the
//! owner's signatures ([`Owner`]) and connections to chains ([`Chains`]).
//!
//! The driver shows what the service states about chains, but does not base decisions on it. The secret is released only for evidence
//! ([`Funded`](countersign::Funded)), unless the caller chooses [`TrustTheService`]. A payment is signed once and then sent again as
//! often as needed. Once the secret may be out, nothing delays the redemption, and the driver follows the swap until the redemption
//! is final. `docs/spec/attacks.md#the-secret` lists the attacks behind these rules.

mod act;
mod chain;
mod decide;
#[cfg(feature = "store")]
mod disk;
mod journal;
mod kept;
mod memory;
mod observe;
mod parties;

use std::collections::VecDeque;
use std::time::Duration;

use countersign::{Code, CreateOrder, HtlcState, OrderRecord, Policy, Refusal, Registry, U256};
use futures_util::stream::{self, FuturesUnordered};
use futures_util::{Stream, StreamExt};
use serde::Serialize;

pub use act::check_floor;
pub use chain::ChainError;
pub use countersign_transport::{ChainEndpoints, Chains, Link, NoChains};
pub use decide::{Action, Decision, Means, OwnerTask, Status, decide, decide_refund, is_paid};
pub use journal::{Entry, Event, KeptTransaction, Outcome, Path, Purpose, Sendable};
pub use kept::{KeptOrder, Pins, Store, StoreError};
pub use memory::{MemoryGuard, MemoryStore};
use observe::Observer;
pub use observe::{LegView, Observed, RecordView, Release};
pub use parties::{FundingReply, NoOwner, Owner, OwnerError, Settlement, SignedFunding, TrustTheService};

use crate::error::Error;
use crate::flow::Flow;
use crate::request::OrderId;
use crate::retry::{jittered, random};
use crate::secret::Secret;
use crate::track::{FLOOR, Pace};
use chain::ChainAccess;
use countersign_transport::{Memory, Transport};

/// How long to wait for another process that works on the same order.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// The number of reports of an order that are remembered, to notice one that comes back.
const REMEMBERED_REPORTS: usize = 16;

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

/// An error of a step. The error's [`source`](std::error::Error::source) says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The order was refused. Nothing was signed or sent.
    #[error("the order was refused")]
    Refused(
        #[from]
        #[source]
        Refusal,
    ),
    /// The owner's signer failed or refused.
    #[error("nothing was signed")]
    Owner(
        #[from]
        #[source]
        OwnerError,
    ),
    /// The store failed. The driver does nothing whose intent it could not write.
    #[error("the stored order cannot be read or written")]
    Store(#[source] StoreError),
    /// The order could not be created.
    #[error("the order was not created")]
    Create(#[source] Error),
}

impl From<StoreError> for DriveError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::SecretUsed(_) => {
                Self::Refused(Refusal::new(Code::RecordSecretKnown, "/request/secret_hash").with_reason(error.to_string()))
            }
            other => Self::Store(other),
        }
    }
}

impl DriveError {
    /// Returns whether the same step may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Store(_) => true,
            Self::Create(error) => error.is_transient(),
            Self::Refused(_) | Self::Owner(_) => false,
        }
    }
}

/// The result of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// The status of the order.
    #[serde(flatten)]
    pub status: Status,
    /// Whether the step did something, so that the next one is worth taking at once.
    #[serde(skip)]
    pub acted: bool,
    /// What did not work this time, for display; `None` if everything worked. The driver tries again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Whether the owner's funds are on chain, or may be.
    pub is_paid: bool,
    /// What the service states, for display only; `None` if its record is not available or was refused.
    #[serde(skip)]
    pub stated: Option<Box<Stated>>,
}

/// What the service states about an order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stated {
    /// The record, whose terms were verified.
    pub record: OrderRecord,
    /// The status that follows from it.
    pub status: crate::status::Status,
}

/// An order to create, with what is stored along with its request.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "its caller constructs it")]
pub struct NewOrder {
    /// The request to the service.
    pub request: CreateOrder,
    /// The secret whose hash the request contains; `None` if the service or somebody else holds the secret. It must be recoverable
    /// independently of this store: derived from a phrase, or stored elsewhere too.
    pub secret: Option<Secret>,
    /// The index with which the secret and the owner's keys are derived from the rescue phrase; `None` if they are not.
    pub index: Option<u32>,
    /// The branch of the rescue phrase that the index belongs to; 0 for the first one.
    pub branch: u16,
    /// The minimum that the order must pay, in base units of the destination asset; `None` for no minimum.
    pub at_least: Option<U256>,
}

impl NewOrder {
    /// Creates a new order from a request and its secret, without an index and without a minimum.
    #[must_use]
    pub const fn new(request: CreateOrder, secret: Option<Secret>) -> Self {
        Self { request, secret, index: None, branch: 0, at_least: None }
    }
}

/// A change of one of the driven swaps.
#[derive(Debug)]
#[non_exhaustive]
pub struct Change {
    /// The order.
    pub id: OrderId,
    /// Its progress, or why the step failed this time.
    pub result: Result<Progress, DriveError>,
}

impl<T: Transport, C: Chains, S: Store, O: Owner> Driver<T, C, S, O> {
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

    /// Allows the service's relayer to redeem where the owner cannot. It then gets the secret once the destination is funded.
    #[must_use]
    pub const fn with_relayer(mut self, allowed: bool) -> Self {
        self.relayer_allowed = allowed;
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
    pub const fn with_secret_elsewhere(mut self, is_elsewhere: bool) -> Self {
        self.secret_is_elsewhere = is_elsewhere;
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

    /// Returns the store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns the registry and policy that apply to an order: those of the time of signing, otherwise the current ones.
    fn pins<'p>(&'p self, kept: &'p KeptOrder) -> (&'p Registry, &'p Policy) {
        kept.pins.as_ref().map_or_else(|| (self.flow.registry(), self.flow.policy()), |pins| (&pins.registry, &pins.policy))
    }

    fn chain_access(&self) -> ChainAccess<'_, C, T> {
        ChainAccess { chains: &self.chains, timer: self.flow.client().transport(), memory: &self.memory }
    }

    fn now(&self) -> u64 {
        self.flow.client().transport().now()
    }

    fn entry(&self, event: Event) -> Entry {
        Entry { at: self.now(), event }
    }

    /// Creates an order and stores it.
    ///
    /// # Errors
    ///
    /// [`DriveError::Refused`] with [`Code::SecretHashMismatch`] if the request does not contain the secret's hash, or with
    /// [`Code::RecordSecretKnown`] if another stored order has the same hash; [`DriveError::Create`] if the service fails, or
    /// [`DriveError::Store`]. An order that was created but could not be stored is never paid.
    pub async fn create(&self, order: NewOrder) -> Result<OrderId, DriveError> {
        let NewOrder { request, secret, index, branch, at_least } = order;
        if let Some(secret) = &secret
            && request.secret_hash != Some(secret.hash())
        {
            let refusal = Refusal::new(Code::SecretHashMismatch, "/request/secret_hash").with_expected(secret.hash());
            return Err(DriveError::Refused(refusal));
        }
        if let Some(hash) = &request.secret_hash
            && let Some(other) = self.store.order_of(hash)?
        {
            return Err(StoreError::SecretUsed(other).into());
        }
        let swap = self.flow.create(request).await.map_err(|error| match error {
            Error::Refused(refusal) | Error::Input(refusal) => DriveError::Refused(refusal),
            other => DriveError::Create(other),
        })?;
        let id = swap.id().clone();
        self.store.create(&KeptOrder { index, branch, at_least, ..KeptOrder::new(swap, secret) })?;
        Ok(id)
    }

    /// Observes one order, decides, and does one step.
    ///
    /// # Errors
    ///
    /// Any [`DriveError`] except [`DriveError::Create`]. The order can be advanced again after any of them.
    pub async fn advance(&self, id: &OrderId) -> Result<Progress, DriveError> {
        self.step(id, decide).await
    }

    /// Observes one order like [`Driver::advance`], and refunds it if its timelock has expired, whatever else could be done: see
    /// [`decide_refund`]. It neither sends a signed payment nor releases the secret.
    ///
    /// # Errors
    ///
    /// Any [`DriveError`] except [`DriveError::Create`].
    pub async fn refund(&self, id: &OrderId) -> Result<Progress, DriveError> {
        self.step(id, decide_refund).await
    }

    /// Observes one order, decides, and does one step.
    ///
    /// The order is locked only for acts that must exclude each other, and for each line of the journal. A redemption or a refund in
    /// another process must not wait for this one's network, and two of them do each other no harm.
    async fn step(&self, id: &OrderId, decide: fn(&KeptOrder, &Observed, Means) -> Decision) -> Result<Progress, DriveError> {
        let kept = self.store.load(id)?;
        if let Some(outcome) = kept.outcome() {
            let status = Status::Ended { outcome };
            return Ok(Progress { status, acted: false, trouble: None, is_paid: outcome != Outcome::Expired, stated: None });
        }
        let observed = {
            let (registry, policy) = self.pins(&kept);
            let observer = Observer { client: self.flow.client(), chains: self.chain_access(), registry, policy, trust: self.trust };
            observer.observe(&kept).await
        };
        let kept = self.note_payment(kept, &observed).await?;
        let (registry, _) = self.pins(&kept);
        let means = Means {
            relayer_allowed: self.relayer_allowed,
            secret_is_elsewhere: self.secret_is_elsewhere,
            ..Means::new(&kept, &self.owner, &self.chains)
        };
        let Decision { status, action } = decide(&kept, &observed, means);
        let stated = match &observed.record {
            RecordView::Verified(record) => {
                let status = crate::status::Status::from_record(&record.record, registry, observed.now);
                Some(Box::new(Stated { record: record.record.clone(), status }))
            }
            _ => None,
        };
        let is_paid = is_paid(&kept, &observed);
        let mut progress = Progress { status, acted: false, trouble: trouble(&observed, is_paid), is_paid, stated };
        let Some(action) = action else { return Ok(progress) };
        let guard = self.lock(id).await?;
        let mut locked = self.store.load(id)?;
        if locked.journal != kept.journal {
            // Another process has acted in the meantime, so this decision is out of date.
            progress.acted = true;
            return Ok(progress);
        }
        if let Some(shorter) = journal::folded(&locked.journal) {
            self.store.replace_journal(&guard, &shorter)?;
            locked.journal = shorter;
        }
        let excludes = !matches!(action, Action::Redeem { .. } | Action::Refund);
        let guard = excludes.then_some(guard);
        let step = act::Step { driver: self, guard: guard.as_ref(), kept: &locked, observed: &observed };
        let done = step.act(&action).await;
        drop(guard);
        // Whether something may have been sent is known only now, also if the act failed.
        progress.is_paid |= self.store.load(id).is_ok_and(|kept| kept.may_be_paid());
        match done? {
            act::Done::Yes => progress.acted = true,
            act::Done::Later(why) | act::Done::Rejected(why) => progress.trouble = Some(why),
            act::Done::HandedOut => {}
            act::Done::Waits => progress.status = waits(&action, progress.status),
        }
        Ok(progress)
    }

    /// Writes down that the payment is on chain, if nobody has yet: one from another wallet must not be forgotten when the chain cannot be
    /// read later.
    async fn note_payment(&self, kept: KeptOrder, observed: &Observed) -> Result<KeptOrder, DriveError> {
        let is_there = observed.source.is_seen()
            && matches!(observed.source.state(), Some(HtlcState::Locked(_) | HtlcState::Redeemed { .. } | HtlcState::Refunded { .. }));
        if kept.may_be_paid() || !is_there {
            return Ok(kept);
        }
        let what = if kept.is_gasless() { Sendable::Gasless } else { Sendable::Funding };
        let id = kept.swap.id().clone();
        self.store.append(&self.lock(&id).await?, &self.entry(Event::OnChain { what }))?;
        Ok(self.store.load(&id)?)
    }

    /// Locks an order. Waits for another process for a while, because locks are short except while the owner signs a payment.
    async fn lock(&self, id: &OrderId) -> Result<S::Guard, StoreError> {
        let transport = self.flow.client().transport();
        let mut waited = Duration::ZERO;
        loop {
            match self.store.lock(id) {
                Err(StoreError::Busy) if waited < LOCK_PATIENCE => transport.sleep(FLOOR).await,
                outcome => return outcome,
            }
            waited = waited.saturating_add(FLOOR);
        }
    }

    /// Records that the owner has broadcast something that the driver could not broadcast. The driver then waits for it and does not
    /// send it.
    ///
    /// # Errors
    ///
    /// [`DriveError::Store`] if the store fails.
    pub fn mark_on_chain(&self, id: &OrderId, what: Sendable) -> Result<(), DriveError> {
        let guard = self.store.lock(id)?;
        Ok(self.store.append(&guard, &self.entry(Event::OnChain { what }))?)
    }

    /// Drives all stored orders concurrently until they end. The stream's items are their changes. Errors do not end the stream: the
    /// failed step is tried again. Orders without progress are polled at decreasing rates, down to the slowest pace.
    ///
    /// # Errors
    ///
    /// [`DriveError::Store`] if the orders cannot be listed.
    pub fn run(&self) -> Result<impl Stream<Item = Change> + use<'_, T, C, S, O>, DriveError> {
        let orders = self.store.orders()?;
        Ok(self.drive(orders))
    }

    /// Drives the given orders, like [`Driver::run`].
    pub fn drive(&self, orders: Vec<OrderId>) -> impl Stream<Item = Change> + use<'_, T, C, S, O> {
        let tasks: FuturesUnordered<_> = orders.into_iter().map(|id| self.next_change(Task::new(id))).collect();
        stream::unfold(tasks, move |mut tasks| async move {
            let (change, task) = tasks.next().await?;
            if let Some(task) = task {
                tasks.push(self.next_change(task));
            }
            Some((change, tasks))
        })
    }

    /// Advances one order until something changes. Returns `None` in place of the task once the order has ended.
    async fn next_change(&self, mut task: Task) -> (Change, Option<Task>) {
        loop {
            if !task.wait.is_zero() {
                self.flow.client().transport().sleep(jittered(task.wait, random())).await;
            }
            let result = self.advance(&task.id).await;
            let is_ended = matches!(&result, Ok(Progress { status: Status::Ended { .. }, acted: false, .. }));
            let news = match &result {
                Ok(progress) => {
                    let stated = progress.stated.as_ref().map(|stated| stated.status.state);
                    format!("{:?}{:?}{stated:?}", progress.status, progress.trouble)
                }
                Err(error) => format!("{error:?}"),
            };
            task.wait = match &result {
                Ok(progress) if progress.acted => FLOOR,
                Ok(progress) if progress.trouble.is_none() && !task.seen.contains(&news) => self.pace.quickest.max(FLOOR),
                Ok(_) => self.pace.slower(task.wait).max(FLOOR),
                Err(_) => self.pace.slowest.max(FLOOR),
            };
            // Only a repetition of the last report is left out. An older one that comes back is a change.
            let is_news = task.last.as_ref() != Some(&news);
            task.last = Some(news.clone());
            if !task.seen.contains(&news) {
                task.seen.truncate(REMEMBERED_REPORTS.saturating_sub(1));
                task.seen.push_front(news);
            }
            if is_news || is_ended {
                let change = Change { id: task.id.clone(), result };
                return (change, (!is_ended).then_some(task));
            }
        }
    }
}

/// The state of one driven order between two steps.
struct Task {
    id: OrderId,
    wait: Duration,
    last: Option<String>,
    seen: VecDeque<String>,
}

impl Task {
    const fn new(id: OrderId) -> Self {
        Self { id, wait: Duration::ZERO, last: None, seen: VecDeque::new() }
    }
}

/// Returns why the service's record could not be read, or why nothing can be paid now, for display.
fn trouble(observed: &Observed, is_paid: bool) -> Option<String> {
    match (&observed.record, &observed.heads) {
        (RecordView::Unknown(why), _) => Some(why.clone()),
        (_, Err(why)) if !is_paid => Some(why.clone()),
        _ => None,
    }
}

/// Returns the status of an order whose next action only the owner can do.
fn waits(action: &Action, status: Status) -> Status {
    let what = match action {
        Action::Sign => return Status::Unsigned,
        Action::Pay => OwnerTask::BroadcastFunding,
        Action::Redeem { .. } => OwnerTask::Redeem,
        Action::Refund => OwnerTask::Refund,
        Action::End(_) | Action::HandOut(_) => return status,
    };
    Status::NeedsOwner { what }
}
