//! What must hold for every decision of `decide`, as an independent reader of the same case sees it.

use countersign_client::countersign::{Family, chains::UnixTime, evidence::HtlcState};
use countersign_client::driver::{
    Action, Capabilities, Decision, Delivery, Event, LegObservation, OrderObservation, OrderState, Outcome, OwnerTask, PaymentFate,
    Purpose, RecordObservation, Release, SecretRoute, Status, WaitingFor, decide_refund,
};

use crate::subject::{CONFIRMATION, DEADLINE, GIVEN_UP};

pub fn state_is(view: &LegObservation, is: fn(&HtlcState) -> bool) -> bool {
    view.state().is_some_and(is)
}

pub const fn is_locked(state: &HtlcState) -> bool {
    matches!(state, HtlcState::Locked(_))
}

pub const fn is_redeemed(state: &HtlcState) -> bool {
    matches!(state, HtlcState::Redeemed { .. })
}

pub const fn is_refunded(state: &HtlcState) -> bool {
    matches!(state, HtlcState::Refunded { .. })
}

/// The knowledge of an independent reader of the same case.
pub struct Facts {
    pub has_ended: bool,
    /// The owner's money may be on chain.
    pub is_paid: bool,
    /// The secret may have been sent from here.
    pub has_left: bool,
    /// The secret may be known outside.
    pub is_out: bool,
    /// Someone here knows the secret.
    pub is_known: bool,
    /// Every endpoint of the source's chain has seen its timelock end.
    pub has_run_out: bool,
    /// The source's chain cannot be read, and its timelock is over by time.
    pub is_overdue: bool,
    /// The same, or the service states it where the chain is not read.
    pub may_have_run_out: bool,
    /// The destination's chain shows the payment.
    pub is_there: bool,
}

impl Facts {
    pub fn new(kept: &OrderState, observed: &OrderObservation) -> Self {
        let OrderObservation { source, destination, public_secret, .. } = observed;
        let wrote = |is: &dyn Fn(&Event) -> bool| kept.journal.iter().any(|entry| is(&entry.event));
        let sent = |wanted: Delivery| {
            wrote(&|event| matches!(event, Event::Sending { what, .. } | Event::Sent { what } | Event::OnChain { what } if *what == wanted))
        };
        let is_gasless = wrote(&|event| matches!(event, Event::Signed { gasless: Some(_), .. }));
        // A payment opens an order again that ended without one, and what was done then is done.
        let is_unpaid = matches!(kept.journal.last().map(|entry| &entry.event), Some(Event::Ended { .. }));
        let is_shown = [is_locked, is_redeemed, is_refunded].into_iter().any(|is| state_is(source, is));
        let is_used = source.is_seen() && state_is(source, is_redeemed);
        let has_left = wrote(&|event| matches!(event, Event::SecretLeaving { path: SecretRoute::Relayer })) || sent(Delivery::Redemption);
        let has_run_out = matches!(source.state(), Some(HtlcState::Locked(locked)) if locked.least_elapsed > locked.timelock);
        let is_unread = source.state().is_none_or(|state| matches!(state, HtlcState::Unclear(_)));
        Self {
            has_ended: wrote(&|event| matches!(event, Event::Ended { outcome } if *outcome != Outcome::Expired))
                || (is_unpaid && !is_shown),
            is_paid: sent(Delivery::Gasless)
                || !is_gasless && sent(Delivery::Funding)
                || [is_locked, is_redeemed, is_refunded].into_iter().any(|is| state_is(source, is)),
            has_left,
            is_out: has_left || public_secret.is_some() || is_used,
            is_known: kept.own_secret().is_some() || public_secret.is_some(),
            has_run_out: has_run_out && source.is_seen(),
            may_have_run_out: has_run_out || stated_out(source),
            is_overdue: is_unread && observed.refund_from.is_some_and(|from| from <= observed.now),
            is_there: destination.is_seen() && state_is(destination, is_locked),
        }
    }
}

/// Asserts what must hold for every decision.
pub fn check(kept: &OrderState, observed: &OrderObservation, capabilities: Capabilities, decision: &Decision, say: &dyn Fn() -> String) {
    let facts = Facts::new(kept, observed);
    if facts.has_ended {
        assert!(
            decision.action.is_none() && matches!(decision.status, Status::Ended { .. }),
            "an order that ended does nothing: {}",
            say()
        );
        return;
    }
    match &decision.action {
        Some(Action::Redeem { path, is_urgent }) => check_release(kept, observed, capabilities, &facts, (*path, *is_urgent), say),
        Some(Action::Sign) => {
            let is_signed = kept.journal.iter().any(|entry| matches!(entry.event, Event::Signed { purpose: Purpose::Funding, .. }));
            let is_over = is_dead(kept, observed) || is_rejected(kept, observed);
            assert!(is_over || !is_signed && !facts.is_paid, "signed or paid twice: {}", say());
            check_payment(kept, observed, capabilities, say);
            assert!(matches!(observed.record, RecordObservation::Verified(_)), "signs on an old record: {}", say());
            assert!(observed.heads.is_ok() && !facts.is_out, "signs what cannot be finished: {}", say());
        }
        Some(Action::Raise) => {
            check_payment(kept, observed, capabilities, say);
            let is_open = match observed.source.state() {
                Some(HtlcState::Locked(locked)) => locked.elapsed == 0,
                state => matches!(state, Some(HtlcState::Absent | HtlcState::Unclear(_))),
            };
            let is_overdue = observed.payment_overdue_from.is_some_and(|from| from <= observed.now);
            let is_bitcoin = observed.source_family == Some(Family::Bitcoin);
            assert!(is_open && is_overdue && is_bitcoin && observed.source.is_seen() && kept.may_be_paid(), "raises: {}", say());
        }
        Some(Action::Pay(_)) => {
            assert!(kept.signed(Purpose::Funding).is_some(), "nothing is signed: {}", say());
            check_payment(kept, observed, capabilities, say);
        }
        Some(Action::Refund) => {
            let is_early = matches!(observed.source.state(), Some(HtlcState::Locked(locked))
                if observed.source.is_seen() && locked.least_elapsed <= locked.timelock);
            assert!(!is_early, "refunds what the chain would refuse: {}", say());
            assert!(facts.is_paid, "refunds what was not paid: {}", say());
        }
        Some(Action::End(outcome)) => check_end(kept, observed, &facts, *outcome, say),
        _ => {}
    }
}

/// No secret leaves without evidence, the caller's explicit trust, or because it is out already.
fn check_release(
    kept: &OrderState,
    observed: &OrderObservation,
    capabilities: Capabilities,
    facts: &Facts,
    (path, is_urgent): (SecretRoute, bool),
    say: &dyn Fn() -> String,
) {
    assert!(observed.release.is_ok() || facts.is_out, "a release without evidence: {}", say());
    assert!(is_urgent == facts.is_out || !is_urgent && observed.release.is_ok(), "urgent while the secret is in: {}", say());
    assert!(facts.is_known || kept.signed(Purpose::Redemption).is_some(), "there is no secret: {}", say());
    assert!(!is_absent(&observed.destination), "a redemption that can win nothing: {}", say());
    if path == SecretRoute::Relayer {
        assert!(kept.swap.request().destination.delegate.is_none(), "the relayer cannot redeem, and learns the secret: {}", say());
        let knows = observed.public_secret.is_some()
            || observed.source.is_seen() && state_is(&observed.source, is_redeemed)
            || kept.secret_left() == Some(SecretRoute::Relayer);
        let may = capabilities.relayer_allowed && capabilities.relayer_alone && observed.release.is_ok();
        assert!(knows || may, "the relayer is not allowed: {}", say());
    }
    // A secret that was sent is used, wherever it was sent from, because the destination's contents may only be
    // hidden.
    assert!(facts.is_paid || facts.is_there || facts.has_left, "nothing was paid and nothing can be had: {}", say());
}

fn is_absent(view: &LegObservation) -> bool {
    view.is_seen() && view.state() == Some(&HtlcState::Absent)
}

/// The chain proves that the payment can never be included.
fn is_dead(kept: &OrderState, observed: &OrderObservation) -> bool {
    let sent = kept
        .journal
        .iter()
        .rposition(|entry| matches!(entry.event, Event::Sending { what: Delivery::Funding, .. } | Event::Sent { what: Delivery::Funding }));
    let signed = kept.journal.iter().rposition(|entry| matches!(entry.event, Event::Signed { purpose: Purpose::Funding, .. }));
    is_absent(&observed.source) && sent > signed && matches!(observed.payment, PaymentFate::Dead(_))
}

/// Every attempt to send the newest payment was rejected by enough endpoints.
fn is_rejected(kept: &OrderState, observed: &OrderObservation) -> bool {
    let mut answers = None;
    for entry in &kept.journal {
        answers = match (&entry.event, answers) {
            (Event::Signed { purpose: Purpose::Funding, gasless: None, .. }, _) => Some((0, 0)),
            (Event::NotSent { what: Delivery::Funding, is_rejected: true, .. }, Some((no, other))) => Some((no + 1, other)),
            (
                Event::NotSent { what: Delivery::Funding, .. } | Event::Sent { what: Delivery::Funding } | Event::OnChain { .. },
                Some((no, other)),
            ) => Some((no, other + 1)),
            (_, answers) => answers,
        };
    }
    is_absent(&observed.source) && matches!(answers, Some((1.., 0)))
}

/// Nothing is paid too late, or without the secret with which to redeem.
fn check_payment(kept: &OrderState, observed: &OrderObservation, capabilities: Capabilities, say: &dyn Fn() -> String) {
    let left = UnixTime::from_secs(DEADLINE).saturating_duration_since(observed.now);
    assert!(left > observed.confirmation_time, "pays too late: {}", say());
    assert!(!matches!(observed.record, RecordObservation::Refused(_)), "pays on a refused record: {}", say());
    let is_first = !kept.may_be_paid();
    assert!(!is_first || kept.own_secret().is_some() || capabilities.secret_is_elsewhere, "pays without a secret: {}", say());
    assert!(!is_first || observed.heads.is_ok(), "pays while a chain cannot be used: {}", say());
}

/// The service's statements alone never end an order.
fn check_end(kept: &OrderState, observed: &OrderObservation, facts: &Facts, outcome: Outcome, say: &dyn Fn() -> String) {
    let OrderObservation { source, destination, .. } = observed;
    match outcome {
        Outcome::Complete => {
            assert!(state_is(destination, is_redeemed) && destination.is_final(), "complete without proof: {}", say());
        }
        Outcome::Refunded => {
            assert!(state_is(source, is_refunded) && source.is_final(), "refunded without proof: {}", say());
            assert!(!facts.is_out || !facts.is_there, "the destination can still be redeemed: {}", say());
        }
        Outcome::Lost => {
            let is_gone = state_is(source, is_redeemed) && state_is(destination, is_refunded);
            assert!(is_gone && source.is_final() && destination.is_final(), "lost without proof: {}", say());
        }
        Outcome::Expired => {
            let is_absent = source.is_seen() && source.state() == Some(&HtlcState::Absent);
            let is_given_up =
                is_absent && observed.now > UnixTime::from_secs(DEADLINE + GIVEN_UP) && kept.signed(Purpose::Funding).is_none();
            let is_late = observed.now >= UnixTime::from_secs(DEADLINE - CONFIRMATION);
            let is_rejected = is_rejected(kept, observed) && observed.now > UnixTime::from_secs(DEADLINE + GIVEN_UP);
            let is_over = is_rejected || is_dead(kept, observed) && is_late;
            assert!(!facts.is_paid || is_given_up || is_over, "forgets a payment: {}", say());
        }
        other => panic!("{other:?}: {}", say()),
    }
}

/// Money that can be claimed is claimed, or the owner is told what to do. All waits have ended in these cases.
pub fn check_money(observed: &OrderObservation, capabilities: Capabilities, facts: &Facts, decision: &Decision, say: &dyn Fn() -> String) {
    if facts.has_ended {
        return;
    }
    let acts = |is: fn(&Action) -> bool| decision.action.as_ref().is_some_and(is);
    let redeems = acts(|action| matches!(action, Action::Redeem { .. }));
    let refunds = acts(|action| matches!(action, Action::Refund));
    let is_told = matches!(decision.status, Status::NeedsOwner { .. });
    let is_refunded_by_solver = state_is(&observed.destination, is_refunded);
    // The secret is out, and the payment is there.
    if facts.is_there && facts.is_out && facts.is_known {
        assert!(redeems || is_told || refunds && (facts.may_have_run_out || facts.is_overdue), "a payment that is not redeemed: {}", say());
    }
    // The evidence is complete, and nothing is out yet.
    let is_proven = matches!(observed.release, Ok(Release::Evidence(_)));
    let decides = capabilities.source_connected && capabilities.destination_connected && observed.source.is_seen() && is_proven;
    let may_release = observed.release.is_ok() && (decides || !matches!(observed.record, RecordObservation::Refused(_)));
    let source_waits = !facts.has_run_out && !state_is(&observed.source, is_refunded) && !stated_out(&observed.source);
    if facts.is_there && facts.is_paid && may_release && source_waits && !facts.is_out && !is_refunded_by_solver && !is_told {
        let is_ours = !matches!(decision.status, Status::Waiting { on: WaitingFor::SecretElsewhere | WaitingFor::SecretOfService });
        assert!(redeems || refunds && facts.is_overdue || !is_ours, "evidence, and no redemption: {}", say());
    }
    // The timelock is over, and nothing can be redeemed.
    let may_redeem = facts.is_there || state_is(&observed.destination, is_redeemed) || facts.is_out && !observed.destination.is_seen();
    if facts.has_run_out && !may_redeem {
        assert!(refunds || is_told, "a refund that is not taken: {}", say());
    }
    let has_ended = decision.action.as_ref().is_some_and(|action| matches!(action, Action::End(_)));
    if facts.has_run_out && may_redeem && !state_is(&observed.destination, is_redeemed) {
        assert!(refunds || redeems || is_told, "neither a refund nor a redemption: {}", say());
    }
    // The source cannot be read, and the timelock is over by time.
    if facts.is_overdue && facts.is_paid && capabilities.source_connected && !may_redeem && !has_ended {
        let acts = decision.action.is_some() || is_told;
        assert!(acts, "waits for a chain that cannot be read: {}", say());
    }
}

pub fn stated_out(view: &LegObservation) -> bool {
    !view.is_seen() && matches!(view.state(), Some(HtlcState::Locked(locked)) if locked.left() == 0)
}

/// The owner who asks for a refund gets one as soon as the chain allows it, and nothing else is ever done.
pub fn check_asked_refund(kept: &OrderState, observed: &OrderObservation, capabilities: Capabilities, say: &dyn Fn() -> String) {
    let facts = Facts::new(kept, observed);
    let decision = decide_refund(kept, observed, capabilities);
    let say = || format!("{}\nasked for a refund: {decision:?}", say());
    match &decision.action {
        None | Some(Action::Refund) => {}
        Some(Action::End(outcome)) => check_end(kept, observed, &facts, *outcome, &say),
        Some(_) => panic!("does something else: {}", say()),
    }
    let acts = decision.action.is_some() || matches!(decision.status, Status::NeedsOwner { what: OwnerTask::Refund });
    assert!(facts.has_ended || !facts.has_run_out || acts, "no refund: {}", say());
}
