//! Runs swaps to their end, after any crash.
//!
//! ```text
//! observe   service and chains        what is known now: read, verified, never acted on
//! decide    kept order, observed      what to do: a pure function
//! act       decision                  writes the intent, acts, writes the outcome
//! ```
//!
//! [`Driver::advance`] does one step of one swap; [`Driver::run`] drives every swap that is kept. The caller supplies a [`Store`],
//! the owner's signatures ([`Owner`]) and connections to chains ([`Chains`]).
//!
//! The driver shows what the service says about chains, and never decides by it. The secret leaves only for evidence
//! ([`Funded`](countersign::Funded)), unless the caller chooses [`TrustTheService`]. A payment is signed once and then sent
//! again as often as needed. Once the secret may have left, nothing delays the redemption, and the driver follows the swap until
//! the redemption is final.

mod act;
mod decide;
#[cfg(feature = "store")]
mod disk;
mod kept;
mod memory;
mod observe;
mod parties;

use std::collections::BTreeSet;
use std::time::Duration;

use countersign::{Code, CreateOrder, OrderRecord, Policy, Refusal, Registry, U256};
use futures_util::stream::{self, FuturesUnordered};
use futures_util::{Stream, StreamExt};
use serde::Serialize;

pub use act::check_floor;
pub use decide::{Action, Decision, Means, OwnerTask, Status, decide, is_paid};
pub use kept::{Entry, Event, KeptOrder, KeptTransaction, Outcome, Path, Pins, Purpose, Sendable, Store, StoreError};
pub use memory::{MemoryGuard, MemoryStore};
use observe::Observer;
pub use observe::{LegView, Observed, RecordView, Release};
pub use parties::{ChainError, Chains, FundingReply, NoChains, NoOwner, Owner, OwnerError, Settlement, SignedFunding, TrustTheService};

use crate::error::Error;
use crate::flow::Flow;
use crate::request::OrderId;
use crate::retry::{jittered, random};
use crate::secret::Secret;
use crate::track::{FLOOR, Pace};
use crate::transport::Transport;

/// Runs swaps to their end.
#[derive(Debug)]
pub struct Driver<T, C, S, O> {
    flow: Flow<T>,
    chains: C,
    store: S,
    owner: O,
    pace: Pace,
    relayer_allowed: bool,
    trust: Option<TrustTheService>,
    secret_is_elsewhere: bool,
}

/// Why a step was not done.
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
    /// The owner's side did not sign.
    #[error("nothing was signed")]
    Owner(
        #[from]
        #[source]
        OwnerError,
    ),
    /// What is kept cannot be read or written. Nothing was done that was not written down before.
    #[error("the kept order cannot be read or written")]
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

/// What one step came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// Where the order stands.
    #[serde(flatten)]
    pub status: Status,
    /// Whether something was done, so that it is worth looking again at once.
    #[serde(skip)]
    pub acted: bool,
    /// What did not work this time, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Whether the owner's funds are on chain, or may be.
    pub is_paid: bool,
    /// What the service states: to be shown, and nothing else.
    #[serde(skip)]
    pub stated: Option<Box<Stated>>,
}

/// What the service states about an order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stated {
    /// The record; its terms were verified.
    pub record: OrderRecord,
    /// The status that follows from it.
    pub status: crate::status::Status,
}

/// An order to create, with what is kept beside its request.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "its caller makes it")]
pub struct NewOrder {
    /// What the service is asked for.
    pub request: CreateOrder,
    /// The secret whose hash the request names, where the owner has chosen it. It must be one that can be found again whatever
    /// happens: derived, or kept elsewhere.
    pub secret: Option<Secret>,
    /// The index of the rescue phrase from which the secret and the owner's keys are derived, if they are.
    pub index: Option<u32>,
    /// The least that the order may pay, in base units of the destination asset.
    pub at_least: Option<U256>,
}

impl NewOrder {
    /// Takes a request and its secret.
    #[must_use]
    pub const fn new(request: CreateOrder, secret: Option<Secret>) -> Self {
        Self { request, secret, index: None, at_least: None }
    }
}

/// A change of one of the swaps that are driven.
#[derive(Debug)]
#[non_exhaustive]
pub struct Change {
    /// The order.
    pub id: OrderId,
    /// Where it stands now, or why it could not be driven this time.
    pub result: Result<Progress, DriveError>,
}

impl<T: Transport, C: Chains, S: Store, O: Owner> Driver<T, C, S, O> {
    /// Creates a driver that redeems by the owner's own transaction only, and takes evidence from chains only.
    pub fn new(flow: Flow<T>, chains: C, store: S, owner: O) -> Self {
        Self { flow, chains, store, owner, pace: Pace::default(), relayer_allowed: false, trust: None, secret_is_elsewhere: false }
    }

    /// Sets how often orders are looked at.
    #[must_use]
    pub const fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Lets the service's relayer redeem where the owner cannot: it is given the secret once the destination is funded.
    #[must_use]
    pub const fn with_relayer(mut self, allowed: bool) -> Self {
        self.relayer_allowed = allowed;
        self
    }

    /// Takes the service's word about chains without a connection of the caller's own. See [`TrustTheService`] for what that
    /// risks.
    #[must_use]
    pub const fn with_trust(mut self, trust: Option<TrustTheService>) -> Self {
        self.trust = trust;
        self
    }

    /// Pays orders that name the hash of a secret that is not kept here: somebody else holds it, and redeems.
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

    /// Returns what an order is judged by: what held when it was signed, else what holds today.
    fn pins<'p>(&'p self, kept: &'p KeptOrder) -> (&'p Registry, &'p Policy) {
        kept.pins.as_ref().map_or_else(|| (self.flow.registry(), self.flow.policy()), |pins| (&pins.registry, &pins.policy))
    }

    fn now(&self) -> u64 {
        self.flow.client().transport().now()
    }

    fn entry(&self, event: Event) -> Entry {
        Entry { at: self.now(), event }
    }

    /// Creates an order and keeps it.
    ///
    /// # Errors
    ///
    /// [`Code::SecretHashMismatch`] if the request does not name the secret's hash, [`Code::RecordSecretKnown`] if the hash is
    /// that of another order that is kept; or whatever the service or the store fails with. An order that was created and not
    /// kept is never paid.
    pub async fn create(&self, order: NewOrder) -> Result<OrderId, DriveError> {
        let NewOrder { request, secret, index, at_least } = order;
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
        self.store.create(&KeptOrder { index, at_least, ..KeptOrder::new(swap, secret) })?;
        Ok(id)
    }

    /// Looks at one order, decides, and does one step.
    ///
    /// # Errors
    ///
    /// [`DriveError`]; the order can be advanced again after any of them.
    pub async fn advance(&self, id: &OrderId) -> Result<Progress, DriveError> {
        self.step(id, |_| true).await
    }

    /// Looks at one order like [`Driver::advance`], and refunds it if its timelock has passed. It does nothing else: what was signed
    /// is not sent, and no secret leaves.
    ///
    /// # Errors
    ///
    /// [`DriveError`].
    pub async fn refund(&self, id: &OrderId) -> Result<Progress, DriveError> {
        self.step(id, |action| matches!(action, Action::Refund | Action::End(_))).await
    }

    /// Looks at one order, decides, and does one step if the caller wants it.
    async fn step(&self, id: &OrderId, is_wanted: impl Fn(&Action) -> bool) -> Result<Progress, DriveError> {
        let guard = self.store.lock(id)?;
        let kept = self.store.load(id)?;
        let means = Means::new(&kept, &self.owner, &self.chains, self.relayer_allowed, self.secret_is_elsewhere);
        if let Some(outcome) = kept.outcome() {
            let status = Status::Ended { outcome };
            return Ok(Progress { status, acted: false, trouble: None, is_paid: outcome != Outcome::Expired, stated: None });
        }
        let (registry, policy) = self.pins(&kept);
        let observer = Observer { client: self.flow.client(), chains: &self.chains, registry, policy, trust: self.trust };
        let observed = observer.observe(&kept).await;
        let Decision { status, action } = decide(&kept, &observed, means);
        let stated = match &observed.record {
            RecordView::Verified(record) => {
                let status = crate::status::Status::from_record(&record.record, registry, observed.now);
                Some(Box::new(Stated { record: record.record.clone(), status }))
            }
            _ => None,
        };
        let is_paid = decide::is_paid(&kept, &observed);
        let mut progress = Progress { status, acted: false, trouble: trouble(&observed), is_paid, stated };
        let Some(action) = action.filter(is_wanted) else { return Ok(progress) };
        let step = act::Step { driver: self, guard: &guard, kept: &kept, observed: &observed };
        match step.act(&action).await? {
            act::Done::Yes => progress.acted = true,
            act::Done::Later(why) | act::Done::Rejected(why) => progress.trouble = Some(why),
            act::Done::HandedOut => {}
            act::Done::Waits => progress.status = waits(&action, progress.status),
        }
        Ok(progress)
    }

    /// Writes down that the owner has broadcast something that the driver could not: it is then waited for, not sent.
    ///
    /// # Errors
    ///
    /// [`DriveError::Store`].
    pub fn mark_on_chain(&self, id: &OrderId, what: Sendable) -> Result<(), DriveError> {
        let guard = self.store.lock(id)?;
        Ok(self.store.append(&guard, &self.entry(Event::OnChain { what }))?)
    }

    /// Drives every order that is kept until it ends, all at the same time, and returns each change. Errors do not end it: what
    /// failed is tried again. An order that was refused, or that the owner has to act on, is looked at again at the slowest
    /// pace.
    ///
    /// # Errors
    ///
    /// [`DriveError::Store`] if the orders cannot be listed.
    pub fn run(&self) -> Result<impl Stream<Item = Change> + use<'_, T, C, S, O>, DriveError> {
        let orders = self.store.orders()?;
        Ok(self.drive(orders))
    }

    /// Drives some orders, like [`Driver::run`].
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

    /// Advances one order until something changes; no task comes back when it has ended.
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
            // The same news twice is none; old news after other news is.
            let is_news = task.last.as_ref() != Some(&news);
            task.last = Some(news.clone());
            task.seen.insert(news);
            if is_news || is_ended {
                let change = Change { id: task.id.clone(), result };
                return (change, (!is_ended).then_some(task));
            }
        }
    }
}

/// One order that is driven.
struct Task {
    id: OrderId,
    wait: Duration,
    last: Option<String>,
    seen: BTreeSet<String>,
}

impl Task {
    const fn new(id: OrderId) -> Self {
        Self { id, wait: Duration::ZERO, last: None, seen: BTreeSet::new() }
    }
}

/// Returns what could not be read, for people.
fn trouble(observed: &Observed) -> Option<String> {
    match &observed.record {
        RecordView::Unknown(why) => Some(why.clone()),
        _ => None,
    }
}

/// Returns what an order waits for whose next step the owner has to do.
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
