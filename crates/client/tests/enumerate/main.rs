//! Puts `decide` through a covering product of what can be stored, seen and done, and asserts what must hold for every decision. The
//! tests in `boundaries` put it on each limit: one before, exactly at, and one after.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    missing_debug_implementations,
    unnameable_types,
    unreachable_pub,
    reason = "a test ends by panicking, and its modules are its own"
)]

mod boundaries;
mod subject;
#[path = "../support/mod.rs"]
mod support;

use countersign_client::countersign::UnixTime;
use countersign_client::countersign::{Hold, HtlcState};
use countersign_client::driver::{
    Action, Capabilities, Decision, Delivery, Entry, Event, LegObservation, OrderObservation, OrderState, Outcome, OwnerTask, Purpose,
    RecordObservation, Release, SecretRoute, Status, TrustTheService, WaitingFor, decide, decide_refund,
};
use std::time::Duration;
use subject::{
    DEADLINE, GIVEN_UP, Subject, capabilities, changed, journal, payment, redeemed, refunded, release, secret_bytes, seen, sending, signed,
    signed_gasless, unreachable,
};

/// SplitMix64, for what is covered by sampling.
struct Dice(u64);

impl Dice {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn pick<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[(self.next() % list.len() as u64) as usize]
    }
}

/// Every stage that a journal can have.
fn stages() -> Vec<Vec<Event>> {
    let signed_funding = signed(Purpose::Funding);
    let leaving = |path| Event::SecretLeaving { path };
    let with = |events: Vec<Event>, more: Vec<Event>| [events, more].concat();
    let on_chain = Event::OnChain { what: Delivery::Funding };
    let mut stages = vec![
        vec![],
        vec![signed_funding.clone()],
        vec![signed_funding.clone(), sending(Delivery::Funding)],
        vec![
            signed_funding.clone(),
            sending(Delivery::Funding),
            Event::NotSent { what: Delivery::Funding, error: "503".to_owned(), is_rejected: false },
        ],
        payment(),
        vec![signed_funding, on_chain.clone()],
        // Paid with another wallet.
        vec![sending(Delivery::Funding)],
        vec![signed_gasless()],
        vec![signed_gasless(), sending(Delivery::Funding), Event::Sent { what: Delivery::Funding }],
        vec![signed_gasless(), on_chain, sending(Delivery::Gasless)],
        vec![signed_gasless(), sending(Delivery::Gasless), Event::Sent { what: Delivery::Gasless }],
        // The secret was written down, and has not left.
        with(payment(), vec![leaving(SecretRoute::Own)]),
        with(payment(), vec![leaving(SecretRoute::Own), signed(Purpose::Redemption)]),
        release(SecretRoute::Own),
        with(release(SecretRoute::Own), vec![Event::Sent { what: Delivery::Redemption }]),
        release(SecretRoute::Relayer),
        with(release(SecretRoute::Relayer), vec![leaving(SecretRoute::Own), signed(Purpose::Redemption), sending(Delivery::Redemption)]),
        with(payment(), vec![signed(Purpose::Refund)]),
        with(payment(), vec![signed(Purpose::Refund), sending(Delivery::Refund)]),
        with(payment(), vec![sending(Delivery::RefundRequest)]),
        with(release(SecretRoute::Own), vec![signed(Purpose::Refund), sending(Delivery::Refund)]),
    ];
    for outcome in [Outcome::Complete, Outcome::Refunded, Outcome::Expired, Outcome::Lost] {
        stages.push(with(payment(), vec![Event::Ended { outcome }]));
    }
    stages
}

/// Every view of a leg: unknown, or a state that the service states, or that the chain shows in a block that is final or not.
fn views(subject: &Subject) -> Vec<LegObservation> {
    let timelock = subject.timelock();
    let mut states = vec![HtlcState::Absent, redeemed(), refunded(), HtlcState::Unclear("version".to_owned())];
    for (least, most) in [(3, 3), (3, timelock / 2), (3, timelock + 1), (timelock, timelock), (timelock + 1, timelock + 1)] {
        states.push(subject.locked(least, most));
    }
    let mut views = vec![LegObservation::Unknown("503".to_owned())];
    for state in states {
        views.push(LegObservation::Stated(state.clone()));
        views.extend([false, true].map(|is_final| seen(state.clone(), is_final)));
    }
    views
}

fn releases(subject: &Subject) -> Vec<Result<Release, Hold>> {
    vec![
        Ok(subject.evidence()),
        Ok(Release::Trust(TrustTheService)),
        Err(Hold::NotFunded),
        Err(Hold::NotFinal { reached: String::new(), needed: String::new() }),
        Err(Hold::NoTime { left: 1, needed: 6, unit: "blocks" }),
        Err(Hold::Redeemed),
        Err(Hold::Refunded),
        Err(Hold::Unclear(String::new())),
    ]
}

fn state_is(view: &LegObservation, is: fn(&HtlcState) -> bool) -> bool {
    view.state().is_some_and(is)
}

const fn is_locked(state: &HtlcState) -> bool {
    matches!(state, HtlcState::Locked(_))
}

const fn is_redeemed(state: &HtlcState) -> bool {
    matches!(state, HtlcState::Redeemed { .. })
}

const fn is_refunded(state: &HtlcState) -> bool {
    matches!(state, HtlcState::Refunded { .. })
}

/// What an independent reader of the same case knows about it.
struct Facts {
    has_ended: bool,
    /// The owner's money may be on chain.
    is_paid: bool,
    /// The secret may be known outside.
    is_out: bool,
    /// Somebody here knows the secret.
    is_known: bool,
    /// Every endpoint of the source's chain has seen its timelock end.
    has_run_out: bool,
    /// The source's chain cannot be read, and its timelock is over by time.
    is_overdue: bool,
    /// The same, or the service states it where the chain is not read.
    may_have_run_out: bool,
    /// The destination's chain shows the payment.
    is_there: bool,
}

impl Facts {
    fn new(kept: &OrderState, observed: &OrderObservation) -> Self {
        let OrderObservation { source, destination, public_secret, .. } = observed;
        let wrote = |is: &dyn Fn(&Event) -> bool| kept.journal.iter().any(|entry| is(&entry.event));
        let sent = |wanted: Delivery| {
            wrote(&|event| matches!(event, Event::Sending { what, .. } | Event::Sent { what } | Event::OnChain { what } if *what == wanted))
        };
        let is_gasless = wrote(&|event| matches!(event, Event::Signed { gasless: Some(_), .. }));
        let is_used = source.is_seen() && state_is(source, is_redeemed);
        let has_left = wrote(&|event| matches!(event, Event::SecretLeaving { path: SecretRoute::Relayer })) || sent(Delivery::Redemption);
        let has_run_out = matches!(source.state(), Some(HtlcState::Locked(locked)) if locked.least_elapsed > locked.timelock);
        let is_unread = source.state().is_none_or(|state| matches!(state, HtlcState::Unclear(_)));
        Self {
            has_ended: wrote(&|event| matches!(event, Event::Ended { .. })),
            is_paid: sent(Delivery::Gasless)
                || !is_gasless && sent(Delivery::Funding)
                || [is_locked, is_redeemed, is_refunded].into_iter().any(|is| state_is(source, is)),
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
fn check(kept: &OrderState, observed: &OrderObservation, capabilities: Capabilities, decision: &Decision, say: &dyn Fn() -> String) {
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
            assert!(!is_signed && !facts.is_paid, "signed or paid twice: {}", say());
            check_payment(kept, observed, capabilities, say);
            assert!(matches!(observed.record, RecordObservation::Verified(_)), "signs on an old record: {}", say());
            assert!(observed.heads.is_ok() && !facts.is_out, "signs what cannot be finished: {}", say());
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
    check_money(observed, capabilities, &facts, decision, say);
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
    if path == SecretRoute::Relayer {
        assert!(kept.swap.request().destination.delegate.is_none(), "the relayer cannot redeem, and learns the secret: {}", say());
        let knows = observed.public_secret.is_some()
            || observed.source.is_seen() && state_is(&observed.source, is_redeemed)
            || kept.secret_left() == Some(SecretRoute::Relayer);
        assert!(knows || capabilities.relayer_allowed && observed.release.is_ok(), "the relayer is not allowed: {}", say());
    }
    assert!(facts.is_paid || facts.is_there, "nothing was paid and nothing can be had: {}", say());
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

/// What the service states never ends an order.
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
            assert!(!facts.is_paid || is_given_up, "forgets a payment: {}", say());
        }
        other => panic!("{other:?}: {}", say()),
    }
}

/// Money that can be had is taken, or the owner is told what to do. All waits are over in these cases.
fn check_money(observed: &OrderObservation, capabilities: Capabilities, facts: &Facts, decision: &Decision, say: &dyn Fn() -> String) {
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
    let may_release = observed.release.is_ok() && !matches!(observed.record, RecordObservation::Refused(_));
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

fn stated_out(view: &LegObservation) -> bool {
    !view.is_seen() && matches!(view.state(), Some(HtlcState::Locked(locked)) if locked.left() == 0)
}

/// Appends what carrying out an action writes, with an outcome that is not known.
fn carry_out(kept: &mut OrderState, action: &Action, capabilities: Capabilities, now: u64) {
    let is_signed = |kept: &OrderState, purpose| kept.signed(purpose).is_some();
    let events = match action {
        Action::Sign => vec![signed(Purpose::Funding)],
        Action::Pay(what) => vec![sending(*what)],
        Action::HandOut(what) => vec![sending(*what)],
        Action::Redeem { path: SecretRoute::Relayer, .. } => {
            vec![Event::SecretLeaving { path: SecretRoute::Relayer }, sending(Delivery::Secret)]
        }
        Action::Redeem { .. } if is_signed(kept, Purpose::Redemption) => vec![sending(Delivery::Redemption)],
        Action::Redeem { .. } => {
            vec![Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption), sending(Delivery::Redemption)]
        }
        Action::Refund if !capabilities.source_connected => vec![sending(Delivery::RefundRequest)],
        Action::Refund if is_signed(kept, Purpose::Refund) => vec![sending(Delivery::Refund)],
        Action::Refund => vec![signed(Purpose::Refund), sending(Delivery::Refund)],
        Action::End(outcome) => vec![Event::Ended { outcome: *outcome }],
        other => panic!("{other:?}"),
    };
    kept.journal.extend(events.into_iter().map(|event| Entry { at: UnixTime::from_secs(now), event }));
}

/// Decides again and again while nothing outside changes and no time passes: the order must come to rest.
fn check_rest(kept: &mut OrderState, observed: &OrderObservation, capabilities: Capabilities, say: &dyn Fn() -> String) {
    for _ in 0..6 {
        let Some(action) = decide(kept, observed, capabilities).action else { return };
        carry_out(kept, &action, capabilities, observed.now.as_secs());
    }
    panic!("acts without end: {}", say());
}

/// The owner who asks for a refund gets one as soon as the chain allows it, and nothing else is ever done.
fn check_asked_refund(kept: &OrderState, observed: &OrderObservation, capabilities: Capabilities, say: &dyn Fn() -> String) {
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

#[test]
fn every_decision_keeps_the_rules() {
    let subject = Subject::new();
    let (stages, views, releases) = (stages(), views(&subject), releases(&subject));
    // Every wait of the journal is over at each of these times.
    let times = [5_000, DEADLINE - 61, DEADLINE - 60, DEADLINE + 1, DEADLINE + GIVEN_UP, DEADLINE + GIVEN_UP + 1];
    // A record is large, so each observation keeps its own.
    let records = [subject.verified(), changed(), unreachable(), RecordObservation::NotAsked];
    let mut observations = records.map(|record| subject.observed(record));
    let mut orders: Vec<OrderState> = (0..4).map(|bits| subject.kept(bits != 0, bits == 3)).collect();
    let mut dice = Dice(28);
    let mut decisions = 0_u64;
    for events in &stages {
        let written = journal(events.iter().cloned());
        for source in &views {
            for destination in &views {
                for release in &releases {
                    for public_secret in [None, Some(secret_bytes())] {
                        let place = (dice.next() % 6).saturating_sub(2) as usize;
                        let observed = &mut observations[place];
                        observed.now = UnixTime::from_secs(*dice.pick(&times));
                        observed.refund_from =
                            *dice.pick(&[None, Some(observed.now.saturating_add(Duration::from_secs(1))), Some(observed.now)]);
                        observed.heads = dice.pick(&[Ok(()), Err("stale".to_owned())]).clone();
                        (observed.source, observed.destination) = (source.clone(), destination.clone());
                        (observed.release, observed.public_secret) = (release.clone(), public_secret);
                        let capabilities = capabilities(dice.next());
                        let number = (dice.next() % 4) as usize;
                        let kept = &mut orders[number];
                        kept.journal.clone_from(&written);
                        let decision = decide(kept, observed, capabilities);
                        let say = || format!("{events:?}\nmeans {capabilities:?}, order {number}\n{observed:?}\n{decision:?}");
                        check(kept, observed, capabilities, &decision, &say);
                        if decision.action.is_some() {
                            check_rest(kept, observed, capabilities, &say);
                        }
                        kept.journal.clone_from(&written);
                        check_asked_refund(kept, observed, capabilities, &say);
                        decisions += 1;
                    }
                }
            }
        }
    }
    assert!(decisions > 100_000, "{decisions}");
}

/// The owner who must act is told exactly what, and only where the driver cannot do it.
#[test]
fn whoever_must_act_is_told_what_to_do() {
    let subject = Subject::new();
    let timelock = subject.timelock();
    let mut kept = subject.kept(true, false);
    let mut observed = subject.observed(subject.verified());
    for bits in 0..32 {
        let capabilities = capabilities(bits);
        kept.journal = journal(payment());
        (observed.source, observed.destination) = (seen(subject.locked(3, 3), true), seen(subject.locked(3, 3), true));
        observed.release = Ok(subject.evidence());
        let told = |kept: &OrderState, observed: &OrderObservation| match decide(kept, observed, capabilities).status {
            Status::NeedsOwner { what } => Some(what),
            _ => None,
        };
        let nobody = !capabilities.owner_redeems && !capabilities.relayer_allowed;
        assert_eq!(told(&kept, &observed), nobody.then_some(OwnerTask::Redeem), "{capabilities:?}");
        kept.journal = journal(release(SecretRoute::Own));
        assert_eq!(
            told(&kept, &observed),
            (!capabilities.destination_connected).then_some(OwnerTask::BroadcastRedemption),
            "{capabilities:?}"
        );
        kept.journal = journal([payment(), vec![signed(Purpose::Refund)]].concat());
        observed.source = seen(subject.locked(timelock + 1, timelock + 1), true);
        observed.destination = seen(HtlcState::Absent, true);
        assert_eq!(told(&kept, &observed), (!capabilities.source_connected).then_some(OwnerTask::Refund), "{capabilities:?}");
    }
}
