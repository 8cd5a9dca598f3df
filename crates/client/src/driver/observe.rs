//! What is known about an order now: the service's record, verified, and what the chains say. Nothing here acts, and a read that
//! fails is "unknown", never "no".

use countersign::{
    Account, Family, Funded, Hold, HtlcState, Leg, LockedHtlc, Policy, Refusal, Registry, SeenAt, VerifiedRecord, VerifiedTerms,
};

use super::kept::KeptOrder;
use super::parties::{Chains, TrustTheService};
use crate::client::Client;
use crate::release;
use crate::status::{self, refund_possible_from};
use crate::transport::Transport;

/// What is known about an order at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Observed {
    /// The caller's clock, in Unix seconds.
    pub now: u64,
    /// The service's record.
    pub record: RecordView,
    /// The side where the owner pays.
    pub source: LegView,
    /// The side where the owner is paid.
    pub destination: LegView,
    /// The family of the source chain.
    pub source_family: Option<Family>,
    /// The proof that the secret may leave, or why it may not.
    pub release: Result<Release, Hold>,
    /// A secret of the order's hash that somebody has published.
    pub public_secret: Option<[u8; 32]>,
    /// When the owner's payment must be confirmed, in Unix seconds.
    pub deadline: Option<u64>,
    /// How long the source chain needs to confirm a payment, in nominal seconds.
    pub confirmation_time: u64,
}

/// The service's record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RecordView {
    /// It could not be fetched.
    Unknown(String),
    /// It was refused: it contradicts the request, or has other terms than before.
    Refused(Refusal),
    /// Every term was verified, and is what it was.
    Verified(Box<VerifiedRecord>),
}

/// What is known about one side.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LegView {
    /// Nothing tells.
    Unknown(String),
    /// The service says so; no chain was asked.
    Stated(HtlcState),
    /// The chain says so.
    Seen {
        /// The state.
        state: HtlcState,
        /// Whether the block that made it so is final.
        is_final: bool,
    },
}

/// Why the secret may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Release {
    /// The destination chain itself shows the payment.
    Evidence(Funded),
    /// The caller has chosen to take the service's word.
    Trust,
}

impl LegView {
    /// Returns the state, whoever says so.
    #[must_use]
    pub const fn state(&self) -> Option<&HtlcState> {
        match self {
            Self::Unknown(_) => None,
            Self::Stated(state) | Self::Seen { state, .. } => Some(state),
        }
    }

    /// Returns whether the chain says so, in a final block.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Seen { is_final: true, .. })
    }

    /// Returns whether the chain itself was asked.
    #[must_use]
    pub const fn is_seen(&self) -> bool {
        matches!(self, Self::Seen { .. })
    }
}

/// Reads service and chains.
pub(super) async fn observe<T: Transport, C: Chains>(
    kept: &KeptOrder,
    client: &Client<T>,
    chains: &C,
    registry: &Registry,
    policy: &Policy,
    trust: Option<TrustTheService>,
) -> Observed {
    let verify = |body: &[u8]| countersign::verify_record(kept.swap.proposal(body), registry, policy);
    let now = client.transport().now();
    let first = match kept.record.as_deref().map(verify).transpose() {
        Ok(first) => first,
        // The registry or the policy is no longer the one that the order was signed with: nothing may be compared with it.
        Err(refusal) => return Observed::unknown(now, RecordView::Refused(refusal)),
    };
    let record = match client.order(kept.swap.id()).await {
        Err(error) => RecordView::Unknown(error.to_string()),
        Ok(answer) => match verify(&answer.body) {
            Ok(record) => match first.as_ref().map_or(Ok(()), |first| first.terms.check_unchanged(&record.terms)) {
                Ok(()) => RecordView::Verified(Box::new(record)),
                Err(refusal) => RecordView::Refused(refusal),
            },
            Err(refusal) => RecordView::Refused(refusal),
        },
    };
    let now = client.transport().now();
    // The kept record stands in for the service's: its terms are those that were signed.
    let known = match &record {
        RecordView::Verified(record) => Some(record.as_ref()),
        _ => first.as_ref(),
    };
    let Some(known) = known else { return Observed::unknown(now, record) };
    let is_current = matches!(record, RecordView::Verified(_));
    let ((source, _), (destination, seen)) = futures_util::future::join(
        leg(known, Leg::Source, is_current, chains, registry, policy, now),
        leg(known, Leg::Destination, is_current, chains, registry, policy, now),
    )
    .await;
    // A record that is fetched later may only bring the deadline forward.
    let deadlines = [Some(known), first.as_ref()].into_iter().flatten().filter_map(|known| status::deadline(&known.record, registry));
    let release = match (&destination, &seen) {
        (LegView::Seen { state, .. }, Some(seen)) => judge(&known.terms, state, seen, registry, policy, now).map(Release::Evidence),
        // A connection that does not answer is no reason to believe the service.
        _ if trust.is_some() && is_current && !chains.has(&known.terms.destination.chain) => {
            release::check(&known.record, registry, policy, now).map(|()| Release::Trust)
        }
        (LegView::Unknown(why), _) => Err(Hold::Unclear(why.clone())),
        _ => Err(Hold::Unclear("no connection to the destination chain: the service's word is no evidence".to_owned())),
    };
    Observed {
        now,
        deadline: deadlines.min(),
        confirmation_time: status::confirmation_time(&known.record, registry),
        source_family: Some(known.terms.source.family),
        public_secret: public_secret(known, [&source, &destination]),
        source,
        destination,
        release,
        record,
    }
}

impl Observed {
    /// Nothing is known but the time.
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

/// Compares what the destination chain says with the verified terms.
pub(super) fn judge(
    terms: &VerifiedTerms,
    state: &HtlcState,
    seen: &SeenAt,
    registry: &Registry,
    policy: &Policy,
    now: u64,
) -> Result<Funded, Hold> {
    let asset = registry.asset(terms.destination.asset.as_str());
    let rule = asset.map(|asset| policy.finality_of(&asset.chain)).ok_or_else(|| Hold::Unclear("the asset is not pinned".to_owned()))?;
    Funded::judge(terms, state, seen, &rule, now)
}

/// Asks the chain about one side; without a connection, takes down what the service states.
async fn leg<C: Chains>(
    known: &VerifiedRecord,
    leg: Leg,
    is_current: bool,
    chains: &C,
    registry: &Registry,
    policy: &Policy,
    now: u64,
) -> (LegView, Option<SeenAt>) {
    let terms = known.terms.leg(leg);
    if chains.has(&terms.chain) {
        return match chains.htlc(terms).await {
            Ok((state, seen)) => {
                let rule = registry.asset(terms.asset.as_str()).map(|asset| policy.finality_of(&asset.chain));
                if seen.agreed == 0 || seen.agreed < seen.needed {
                    return (LegView::Unknown(format!("{} of {} endpoints gave the same answer", seen.agreed, seen.needed)), None);
                }
                let is_final = rule.is_some_and(|rule| rule.is_reached(&seen));
                (LegView::Seen { state, is_final }, Some(seen))
            }
            Err(error) => (LegView::Unknown(error.to_string()), None),
        };
    }
    if !is_current {
        return (LegView::Unknown("the service did not answer, and there is no connection to the chain".to_owned()), None);
    }
    (LegView::Stated(stated(known, leg, registry, now)), None)
}

/// Returns what the service states about one side, in the form in which a chain would say it.
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
    let account = |account: &Account| account.clone();
    let elapsed = terms.timelock.saturating_sub(left.min(terms.timelock));
    HtlcState::Locked(
        LockedHtlc::new(account(&terms.initiator), account(&terms.redeemer), swap.filled_amount, terms.timelock, elapsed)
            .with_token(terms.token.clone()),
    )
}

/// Returns the secret that the record shows. It was compared with the hash when the record was verified.
fn stated_secret(known: &VerifiedRecord, leg: Leg) -> Option<[u8; 32]> {
    countersign::number::bare_hex_array(leg.of(&known.record).secret.trim_start_matches("0x")).ok()
}

/// Returns the secret, if anything shows it: a value that hashes to the order's hash is public, whoever says so.
fn public_secret(known: &VerifiedRecord, views: [&LegView; 2]) -> Option<[u8; 32]> {
    let hash = known.terms.destination.secret_hash;
    let shown = views.into_iter().filter_map(|view| match view.state() {
        Some(HtlcState::Redeemed { secret, .. }) => *secret,
        _ => None,
    });
    let stated = [Leg::Source, Leg::Destination].into_iter().filter_map(|leg| stated_secret(known, leg));
    shown.chain(stated).find(|secret| countersign::SecretHash::of(secret) == hash)
}
