//! Collects what is known about an order now: the service's verified record, and what the chains show. Nothing here acts, and a read
//! that fails counts as "unknown", never as "no".

use countersign::reader::HtlcQuorum;
use countersign::{
    Family, FinalityRule, Funded, Hold, HtlcState, HtlcTerms, Leg, LockedHtlc, Policy, Refusal, Registry, VerifiedRecord, VerifiedTerms,
};
use futures_util::future::join;

use super::chain::{ChainAccess, ChainError, judge, rule_of};
use super::kept::KeptOrder;
use super::parties::TrustTheService;
use crate::client::Client;
use crate::release;
use crate::status::{self, refund_possible_from};
use countersign_transport::{Chains, Transport};

/// What is known about an order at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Observed {
    /// The time of the observation by the caller's clock, in Unix seconds.
    pub now: u64,
    /// The service's record.
    pub record: RecordView,
    /// The source leg, where the owner pays.
    pub source: LegView,
    /// The destination leg, where the owner is paid.
    pub destination: LegView,
    /// The family of the source chain; `None` if no record could be verified.
    pub source_family: Option<Family>,
    /// The proof that the secret may be released, or why it may not.
    pub release: Result<Release, Hold>,
    /// A published secret that matches the order's hash; `None` if none was seen.
    pub public_secret: Option<[u8; 32]>,
    /// When the owner's payment must be confirmed, in Unix seconds; `None` if that is unknown.
    pub deadline: Option<u64>,
    /// How long the source chain needs to confirm a payment, in nominal seconds.
    pub confirmation_time: u64,
}

/// What is known about the service's record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RecordView {
    /// It could not be fetched. The text says why, for display.
    Unknown(String),
    /// It was refused: it contradicts the request or the response, or its terms have changed.
    Refused(Refusal),
    /// Every term was verified and is unchanged.
    Verified(Box<VerifiedRecord>),
}

/// What is known about one leg.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LegView {
    /// Nothing is known. The text says why, for display.
    Unknown(String),
    /// The service states it; the chain was not read.
    Stated(HtlcState),
    /// It was read from the chain.
    Seen {
        /// The state.
        state: HtlcState,
        /// Whether the state is in a final block, by the policy's finality rule.
        is_final: bool,
    },
}

/// The reason why the secret may be released.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Release {
    /// The destination chain itself shows the payment.
    Evidence(Funded),
    /// The caller has chosen to trust the service: see [`TrustTheService`].
    Trust(TrustTheService),
}

impl LegView {
    /// Returns the state, whether stated or read from the chain; `None` if it is unknown.
    #[must_use]
    pub const fn state(&self) -> Option<&HtlcState> {
        match self {
            Self::Unknown(_) => None,
            Self::Stated(state) | Self::Seen { state, .. } => Some(state),
        }
    }

    /// Returns whether the state was read from the chain, in a final block.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Seen { is_final: true, .. })
    }

    /// Returns whether the state was read from the chain.
    #[must_use]
    pub const fn is_seen(&self) -> bool {
        matches!(self, Self::Seen { .. })
    }
}

/// What an order is observed with.
pub(super) struct Observer<'o, T, C> {
    pub(super) client: &'o Client<T>,
    pub(super) chains: ChainAccess<'o, C, T>,
    pub(super) registry: &'o Registry,
    pub(super) policy: &'o Policy,
    pub(super) trust: Option<TrustTheService>,
}

/// The result of reading the chain of one leg; `None` without a connection to it.
type Look = Option<Result<HtlcQuorum, String>>;

impl<T: Transport, C: Chains> Observer<'_, T, C> {
    /// Reads the service, the source chain and the destination chain concurrently, because a service that is slow or down must not delay
    /// a redemption.
    pub(super) async fn observe(&self, kept: &KeptOrder) -> Observed {
        let verify = |body: &[u8]| countersign::verify_record(kept.swap.proposal(body), self.registry, self.policy);
        let first = match kept.record.as_deref().map(verify).transpose() {
            Ok(first) => first,
            // The stored record was changed, or the pins of that time are missing, so nothing can be compared with it.
            Err(refusal) => return Observed::unknown(self.now(), RecordView::Refused(refusal)),
        };
        let order = self.client.order(kept.swap.id());
        let (answer, looks) = match &first {
            Some(first) => {
                let (answer, looks) = join(order, self.look_at_both(&first.terms)).await;
                (answer, Some(looks))
            }
            None => (order.await, None),
        };
        let record = match answer {
            Err(error) => RecordView::Unknown(error.to_string()),
            Ok(answer) => match verify(&answer.body) {
                Ok(record) => match first.as_ref().map_or(Ok(()), |first| first.terms.check_unchanged(&record.terms)) {
                    Ok(()) => RecordView::Verified(Box::new(record)),
                    Err(refusal) => RecordView::Refused(refusal),
                },
                Err(refusal) => RecordView::Refused(refusal),
            },
        };
        // Without a usable record of the service, the stored one is used: its terms are those that were signed.
        let known = match &record {
            RecordView::Verified(record) => Some(record.as_ref()),
            _ => first.as_ref(),
        };
        let Some(known) = known else { return Observed::unknown(self.now(), record) };
        let (source, destination) = match looks {
            Some(looks) => looks,
            None => self.look_at_both(&known.terms).await,
        };
        let now = self.now();
        let is_current = matches!(record, RecordView::Verified(_));
        let release = self.release(known, &destination, is_current, now);
        let public_secret = public_secret(known, [&source, &destination]);
        let (source, destination) =
            (self.view(known, Leg::Source, &source, is_current, now), self.view(known, Leg::Destination, &destination, is_current, now));
        // A later record can only make the deadline earlier.
        let records = [Some(known), first.as_ref()].into_iter().flatten();
        Observed {
            now,
            deadline: records.filter_map(|known| status::deadline(&known.record, self.registry)).min(),
            confirmation_time: status::confirmation_time(&known.record, self.registry),
            source_family: Some(known.terms.source.family),
            public_secret,
            source,
            destination,
            release,
            record,
        }
    }

    fn now(&self) -> u64 {
        self.client.transport().now()
    }

    async fn look_at_both(&self, terms: &VerifiedTerms) -> (Look, Look) {
        let (source, destination) = (self.rule_of(&terms.source), self.rule_of(&terms.destination));
        let (source, destination) =
            join(self.chains.source(&terms.source, source.as_ref()), self.chains.destination(terms, destination.as_ref())).await;
        (look(source), look(destination))
    }

    fn rule_of(&self, terms: &HtlcTerms) -> Option<FinalityRule> {
        rule_of(terms, self.registry, self.policy)
    }

    /// Decides whether the secret may be released.
    fn release(&self, known: &VerifiedRecord, look: &Look, is_current: bool, now: u64) -> Result<Release, Hold> {
        match look {
            Some(Ok(quorum)) => {
                let rule = self.rule_of(&known.terms.destination);
                judge(&known.terms, quorum, rule.as_ref(), now).map(Release::Evidence)
            }
            // A connection that fails must not make the service's word count.
            Some(Err(why)) => Err(Hold::Unclear(why.clone())),
            None if is_current && let Some(trust) = self.trust => {
                release::check(&known.record, self.registry, self.policy, now).map(|()| Release::Trust(trust))
            }
            None => Err(Hold::Unclear("the destination chain is not connected, and what the service states is not evidence".to_owned())),
        }
    }

    /// Returns what is known about one leg: what its chain shows, or without a connection what the service states.
    fn view(&self, known: &VerifiedRecord, leg: Leg, look: &Look, is_current: bool, now: u64) -> LegView {
        match look {
            Some(Ok(quorum)) => match quorum.state() {
                Ok((state, _)) => {
                    let is_final = self.rule_of(known.terms.leg(leg)).is_some_and(|rule| quorum.is_final(&rule));
                    LegView::Seen { state, is_final }
                }
                Err(doubt) => LegView::Unknown(doubt.to_string()),
            },
            Some(Err(why)) => LegView::Unknown(why.clone()),
            None if is_current => LegView::Stated(stated(known, leg, self.registry, now)),
            None => LegView::Unknown("the service did not answer, and the chain is not connected".to_owned()),
        }
    }
}

impl Observed {
    /// Creates an observation in which nothing is known except the time and the record.
    #[must_use]
    pub fn unknown(now: u64, record: RecordView) -> Self {
        let why = match &record {
            RecordView::Unknown(why) => why.clone(),
            RecordView::Refused(refusal) => refusal.to_string(),
            RecordView::Verified(_) => String::new(),
        };
        Self {
            now,
            record,
            source: LegView::Unknown(why.clone()),
            destination: LegView::Unknown(why.clone()),
            release: Err(Hold::Unclear(why)),
            source_family: None,
            public_secret: None,
            deadline: None,
            confirmation_time: 0,
        }
    }
}

/// Returns what was read; `None` without a connection to the chain.
fn look(outcome: Result<HtlcQuorum, ChainError>) -> Look {
    match outcome {
        Ok(quorum) => Some(Ok(quorum)),
        Err(ChainError::NotConnected(_)) => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

/// Converts what the service states about one leg into the form that a chain's answer has.
fn stated(known: &VerifiedRecord, leg: Leg, registry: &Registry, now: u64) -> HtlcState {
    let (swap, terms) = (leg.of(&known.record), known.terms.leg(leg));
    let transaction = |id: &String| Some(id.clone()).filter(|id| !id.is_empty());
    if swap.is_redeemed() {
        return HtlcState::Redeemed { secret: stated_secret(known, leg), transaction: transaction(&swap.redeem_tx_hash) };
    }
    if swap.is_refunded() {
        return HtlcState::Refunded { transaction: transaction(&swap.refund_tx_hash) };
    }
    if !swap.is_funded() {
        return HtlcState::Absent;
    }
    let ends = refund_possible_from(&known.record, leg, registry).unwrap_or(u64::MAX);
    let unit = registry.asset(terms.asset.as_str()).map_or(1, |asset| asset.chain.unit_millis.max(1));
    let left = ends.saturating_sub(now).saturating_mul(1_000).checked_div(unit).unwrap_or_default();
    let elapsed = terms.timelock.saturating_sub(left.min(terms.timelock));
    HtlcState::Locked(
        LockedHtlc::new(terms.initiator.clone(), terms.redeemer.clone(), swap.filled_amount, terms.timelock, elapsed)
            .with_token(terms.token.clone()),
    )
}

/// Returns the secret that the record contains; `None` without one. It was compared with the hash when the record was verified.
fn stated_secret(known: &VerifiedRecord, leg: Leg) -> Option<[u8; 32]> {
    countersign::number::bare_hex_array(leg.of(&known.record).secret.trim_start_matches("0x")).ok()
}

/// Returns the secret if an endpoint or the record contains it. A value with the order's hash is the secret, whatever its origin.
fn public_secret(known: &VerifiedRecord, looks: [&Look; 2]) -> Option<[u8; 32]> {
    let hash = known.terms.destination.secret_hash;
    let shown = looks.into_iter().filter_map(|look| look.as_ref()?.as_ref().ok()?.public_secret());
    let stated = [Leg::Source, Leg::Destination].into_iter().filter_map(|leg| stated_secret(known, leg));
    shown.chain(stated).find(|secret| countersign::SecretHash::of(secret) == hash)
}
