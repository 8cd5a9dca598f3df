//! Collects what is known about an order now: the service's verified record, and what the chains show. Nothing here acts, and a read
//! that fails counts as "unknown", never as "no".

use std::time::Duration;

use countersign::reader::HtlcQuorum;
use countersign::{
    Leg, OrderRecord, Policy, Registry, VerifiedRecord,
    chains::{FinalityRule, UnixTime},
    evidence::{Hold, HtlcState, HtlcTerms, LockedHtlc, VerifiedTerms, check_head_time},
};
use futures_util::StreamExt;
use futures_util::future::{Either, join, join_all, select};
use futures_util::stream::FuturesUnordered;

use super::chain::{ChainAccess, ChainError, judge, rule_of};
use super::kept::Subject;
use super::observation::{LegObservation, OrderObservation, PaymentFate, RecordObservation, Release};
use super::overdue::overdue_after;
use super::parties::TrustTheService;
use super::release;
use crate::client::Client;
use crate::error::Error;
use crate::response::Answer;
use crate::status::{self, refund_possible_from};
use countersign_transport::{Chains, Transport, TransportError, TransportErrorKind};

/// How long what is still missing may delay a paid order: the service once both chains are read, and everything else once the
/// destination shows that the redemption is due.
const MAX_SERVICE_DELAY: Duration = Duration::from_secs(1);
/// How long after its signature a payment that its chain does not show is asked for by its id.
const IS_LOOKED_FOR: Duration = Duration::from_secs(90);
/// How long the service alone may delay a redemption that is due.
const WHEN_DUE: Duration = Duration::from_millis(250);

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

/// What was heard of an order, as far as it arrived in time.
struct Heard {
    source: Look,
    destination: Look,
    /// When the destination was read, by the caller's clock.
    destination_at: UnixTime,
    /// The service's answer; `None` if it was not asked.
    record: Option<Result<Answer<OrderRecord>, Error>>,
}

/// What is asked at the same time.
#[derive(Debug, Clone, Copy)]
enum Ask {
    Source,
    Destination,
    Record,
}

enum Arrived {
    Source(Look),
    Destination(Look),
    Record(Box<Result<Answer<OrderRecord>, Error>>),
}

impl<T: Transport, C: Chains> Observer<'_, T, C> {
    /// Reads the service, the source chain and the destination chain concurrently, because a service that is slow or down must not delay
    /// a redemption.
    pub(super) async fn observe(&self, subject: &Subject<'_>) -> OrderObservation {
        let verify = |body: &[u8]| countersign::verify_record(subject.swap.proposal(body), self.registry, self.policy);
        let first = match subject.record.map(verify).transpose() {
            Ok(first) => first,
            // The stored record was changed, or the pins of that time are missing, so nothing can be compared with it.
            Err(refusal) => return OrderObservation::unknown(self.now(), RecordObservation::Refused(refusal)),
        };
        let (heard, answer) = match &first {
            Some(first) => {
                let mut heard = self.hear(subject, &first.terms).await;
                let answer = heard.record.take();
                (Some(heard), answer)
            }
            None => (None, Some(self.client.order(subject.swap.id()).await)),
        };
        let record = match answer {
            None => RecordObservation::NotAsked,
            Some(Err(error)) => RecordObservation::Unknown(error.to_string()),
            Some(Ok(answer)) => match verify(&answer.body) {
                Ok(record) => match first.as_ref().map_or(Ok(()), |first| first.terms.check_unchanged(&record.terms)) {
                    Ok(()) => RecordObservation::Verified(Box::new(record)),
                    Err(refusal) => RecordObservation::Refused(refusal),
                },
                Err(refusal) => RecordObservation::Refused(refusal),
            },
        };
        // Without a usable record of the service, the stored one is used: its terms are those that were signed.
        let known = match &record {
            RecordObservation::Verified(record) => Some(record.as_ref()),
            _ => first.as_ref(),
        };
        let Some(known) = known else { return OrderObservation::unknown(self.now(), record) };
        let Heard { source, destination, destination_at, .. } = match heard {
            Some(heard) => heard,
            None => self.look_at_both(&known.terms, subject.is_paid).await,
        };
        let is_current = matches!(record, RecordObservation::Verified(_));
        let heads = [(&known.terms.source, &source), (&known.terms.destination, &destination)];
        let release = self.release(known, &destination, is_current, later(destination_at, [(&known.terms.destination, &destination)]));
        let (clock, now) = (self.now(), later(self.now(), heads));
        let (source_view, destination_view) =
            (self.view(known, Leg::Source, &source, is_current, now), self.view(known, Leg::Destination, &destination, is_current, now));
        let payment = self.payment(subject, &known.terms.source, &source_view, now).await;
        // A payment is dead by a block that may be newer than the one that shows no payment, and another one may be in that block: one that
        // the owner's wallet has raised. So the source is read once more.
        let source_view = if matches!(payment, PaymentFate::Dead(_)) {
            let again = self.look_at(Leg::Source, &known.terms, subject.is_paid).await;
            self.view(known, Leg::Source, &again, is_current, now)
        } else {
            source_view
        };
        // A later record can only make the deadline earlier.
        let deadlines = [Some(known), first.as_ref()].into_iter().flatten();
        let deadline = deadlines.filter_map(|known| status::deadline(&known.record, self.registry)).min();
        let observed = OrderObservation {
            payment,
            payment_overdue_from: subject.signed_at.map(|at| {
                let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
                at.saturating_add(overdue_after(known.terms.source.pace, pace_of(&source), left))
            }),
            source_pace: pace_of(&source),
            destination_pace: pace_of(&destination),
            deadline,
            confirmation_time: status::confirmation_time(&known.record, self.registry),
            refund_from: {
                let record = &first.as_ref().unwrap_or(known).record;
                status::refund_overdue_from(record, subject.sent_at, self.registry, self.policy)
            },
            heads: heads.into_iter().try_for_each(|(terms, look)| check_head(terms, look, clock)),
            source_family: Some(known.terms.source.family),
            destination_family: Some(known.terms.destination.family),
            public_secret: public_secret(known, [&source, &destination]),
            source: source_view,
            destination: destination_view,
            release,
            ..OrderObservation::unknown(now, RecordObservation::NotAsked)
        };
        OrderObservation { record, ..observed }
    }

    /// Reads what becomes of the payment, if the newest one was sent some time ago and the chain shows none. It is dead only if every
    /// payment that was signed is: of those that spend the same coins, any may be mined.
    async fn payment(&self, subject: &Subject<'_>, terms: &HtlcTerms, source: &LegObservation, now: UnixTime) -> PaymentFate {
        let is_missing = matches!(source, LegObservation::Seen { state: HtlcState::Absent, .. });
        let is_old = subject.signed_at.is_some_and(|at| now < at || now >= at.saturating_add(IS_LOOKED_FOR));
        let payments = subject.payments.iter().filter(|_| is_missing && is_old);
        // All at once: a proof of death takes many blocks, which are counted from the first question.
        let fates = join_all(payments.map(|payment| self.chains.fate(payment, &terms.network))).await;
        let is_dead = !fates.is_empty() && fates.iter().all(|fate| matches!(fate, PaymentFate::Dead(_)));
        fates.into_iter().next().filter(|_| is_dead).unwrap_or_default()
    }

    fn now(&self) -> UnixTime {
        self.client.transport().now()
    }

    /// Hears the chains and the service about an order whose terms are stored. The service has the time that the chains need, and a moment
    /// more. It is not asked at all once the secret is out and both chains are connected.
    async fn hear(&self, subject: &Subject<'_>, terms: &VerifiedTerms) -> Heard {
        let is_out = subject.is_out;
        let is_paid = subject.is_paid || subject.has_left;
        let is_connected = |terms: &HtlcTerms| self.chains.chains.has(&terms.chain);
        let is_asked = !(is_out && is_connected(&terms.source) && is_connected(&terms.destination));
        let destination_rule = self.rule_of(&terms.destination);
        let ask = async |what: Ask| match what {
            Ask::Source => Arrived::Source(self.look_at(Leg::Source, terms, is_paid).await),
            Ask::Destination => Arrived::Destination(self.look_at(Leg::Destination, terms, is_paid).await),
            // Before the payment, the newest record is waited for, and a failed request is repeated.
            Ask::Record if is_paid => Arrived::Record(Box::new(self.client.order_once(subject.swap.id()).await)),
            Ask::Record => Arrived::Record(Box::new(self.client.order(subject.swap.id()).await)),
        };
        let asked = [Ask::Source, Ask::Destination].into_iter().chain(is_asked.then_some(Ask::Record));
        let mut arriving: FuturesUnordered<_> = asked.map(ask).collect();
        let unread = || Some(Err("it did not answer in time".to_owned()));
        let mut heard = Heard { source: unread(), destination: unread(), destination_at: self.now(), record: None };
        let (mut has_source, mut has_destination, mut limit) = (false, false, None);
        loop {
            let arrived = match &mut limit {
                None => arriving.next().await,
                Some(limit) => match select(arriving.next(), limit).await {
                    Either::Left((arrived, _)) => arrived,
                    Either::Right(_) => break,
                },
            };
            match arrived {
                None => break,
                Some(Arrived::Source(look)) => (heard.source, has_source) = (look, true),
                Some(Arrived::Record(answer)) => heard.record = Some(*answer),
                Some(Arrived::Destination(look)) => {
                    (heard.destination, has_destination) = (look, true);
                    heard.destination_at = self.now();
                }
            }
            let is_due = || {
                let judged = |quorum| judge(terms, quorum, destination_rule.as_ref(), heard.destination_at).is_ok();
                // Only a payment that can still be redeemed is more urgent than the source.
                let is_locked = |quorum: &HtlcQuorum| matches!(quorum.state(), Ok((HtlcState::Locked(_), _)));
                matches!(&heard.destination, Some(Ok(quorum)) if judged(quorum) || is_out && is_locked(quorum))
            };
            if limit.is_none() && is_paid && has_destination {
                let is_due = is_due();
                if has_source || is_due {
                    let wait = if has_source && is_due { WHEN_DUE } else { MAX_SERVICE_DELAY };
                    limit = Some(Box::pin(self.client.transport().sleep(wait)));
                }
            }
        }
        if is_asked && heard.record.is_none() {
            heard.record =
                Some(Err(Error::Transport(TransportError::new(TransportErrorKind::Timeout, "it did not answer beside the chains"))));
        }
        heard
    }

    async fn look_at_both(&self, terms: &VerifiedTerms, is_paid: bool) -> Heard {
        let (source, destination) = join(self.look_at(Leg::Source, terms, is_paid), self.look_at(Leg::Destination, terms, is_paid)).await;
        Heard { source, destination, destination_at: self.now(), record: None }
    }

    /// Reads the chain of a leg. A payment needs newest blocks that fit the clock. Afterwards, what is decided on matters.
    async fn look_at(&self, leg: Leg, terms: &VerifiedTerms, is_paid: bool) -> Look {
        let rule = self.rule_of(terms.leg(leg));
        look(match leg {
            _ if !is_paid => self.chains.unpaid(terms.leg(leg)).await,
            Leg::Source => self.chains.source(&terms.source, rule.as_ref()).await,
            _ => self.chains.destination(terms, rule.as_ref()).await,
        })
    }

    fn rule_of(&self, terms: &HtlcTerms) -> Option<FinalityRule> {
        rule_of(terms, self.registry, self.policy)
    }

    /// Decides whether the secret may be released.
    fn release(&self, known: &VerifiedRecord, look: &Look, is_current: bool, now: UnixTime) -> Result<Release, Hold> {
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
    fn view(&self, known: &VerifiedRecord, leg: Leg, look: &Look, is_current: bool, now: UnixTime) -> LegObservation {
        match look {
            Some(Ok(quorum)) => match quorum.state() {
                Ok((state, seen)) => {
                    let is_final = self.rule_of(known.terms.leg(leg)).is_some_and(|rule| quorum.is_final(&rule));
                    LegObservation::Seen { state, is_final, head_time: seen.head_time }
                }
                Err(doubt) => LegObservation::Unknown(doubt.to_string()),
            },
            Some(Err(why)) => LegObservation::Unknown(why.clone()),
            None if is_current => LegObservation::Stated(stated(known, leg, self.registry, now)),
            None => LegObservation::Unknown("the service did not answer, and the chain is not connected".to_owned()),
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

/// Returns the pace that a chain's blocks show; `None` if nothing was measured.
fn pace_of(look: &Look) -> Option<u64> {
    look.as_ref()?.as_ref().ok()?.state().ok()?.1.pace
}

/// Returns the later of a clock and the newest blocks that enough endpoints show. A clock that is behind must not hide that time has
/// passed.
fn later<const N: usize>(clock: UnixTime, heads: [(&HtlcTerms, &Look); N]) -> UnixTime {
    let least = |(terms, look): (&HtlcTerms, &Look)| {
        let time = look.as_ref()?.as_ref().ok()?.state().ok()?.1.head_time;
        Some(time.saturating_sub(terms.profile().header_lead))
    };
    heads.into_iter().filter_map(least).fold(clock, UnixTime::max)
}

/// Requires that a connected chain was read, and that its newest block fits the caller's clock.
fn check_head(terms: &HtlcTerms, look: &Look, clock: UnixTime) -> Result<(), String> {
    let chain = &terms.chain;
    let seen = match look {
        None => return Ok(()),
        Some(Err(why)) => return Err(format!("{chain} cannot be read: {why}")),
        Some(Ok(quorum)) => quorum.state().map_err(|doubt| format!("{chain} cannot be read: {doubt}"))?.1,
    };
    check_head_time(terms.profile(), seen.head_time, clock).map_err(|doubt| format!("{chain}: {doubt}"))
}

/// Converts what the service states about one leg into the form that a chain's answer has.
fn stated(known: &VerifiedRecord, leg: Leg, registry: &Registry, now: UnixTime) -> HtlcState {
    let (swap, terms) = (leg.of(&known.record), known.terms.leg(leg));
    if swap.is_redeemed() {
        return HtlcState::Redeemed { secret: stated_secret(known, leg), transaction: swap.redeem_tx_hash.clone() };
    }
    if swap.is_refunded() {
        return HtlcState::Refunded { transaction: swap.refund_tx_hash.clone() };
    }
    if !swap.is_funded() {
        return HtlcState::Absent;
    }
    let ends = refund_possible_from(&known.record, leg, registry).unwrap_or(UnixTime::MAX);
    let unit = registry.asset(terms.asset.as_str()).map_or(1, |asset| asset.chain.pace.nominal.max(1));
    let left = ends.saturating_duration_since(now).as_secs().saturating_mul(1_000).checked_div(unit).unwrap_or_default();
    let elapsed = terms.timelock.saturating_sub(left.min(terms.timelock));
    HtlcState::Locked(
        LockedHtlc::new(terms.initiator.clone(), terms.redeemer.clone(), swap.filled_amount, terms.timelock, elapsed)
            .with_token(terms.token.clone()),
    )
}

/// Returns the secret that the record contains; `None` without one. It was compared with the hash when the record was verified.
fn stated_secret(known: &VerifiedRecord, leg: Leg) -> Option<[u8; 32]> {
    countersign::number::bare_hex_array(leg.of(&known.record).secret.as_ref()?.trim_start_matches("0x")).ok()
}

/// Returns the secret if an endpoint or the record contains it. A value with the order's hash is the secret, whatever its origin.
fn public_secret(known: &VerifiedRecord, looks: [&Look; 2]) -> Option<[u8; 32]> {
    let hash = known.terms.destination.secret_hash;
    let shown = looks.into_iter().filter_map(|look| look.as_ref()?.as_ref().ok()?.public_secret());
    let stated = [Leg::Source, Leg::Destination].into_iter().filter_map(|leg| stated_secret(known, leg));
    shown.chain(stated).find(|secret| countersign::SecretHash::of(secret) == hash)
}
