//! Puts `decide` through a covering product of what can be stored, seen and done, and asserts what must hold for every decision. The
//! tests in `boundaries` put it on each limit: one before, exactly at, and one after.
#![cfg(test)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    missing_debug_implementations,
    unnameable_types,
    unreachable_pub,
    reason = "a test ends by panicking, and its modules are its own"
)]

mod boundaries;
mod interleave;
mod rules;
mod subject;
#[path = "../support/mod.rs"]
mod support;

use countersign_client::countersign::chains::UnixTime;
use countersign_client::countersign::{
    Family,
    evidence::{Hold, HtlcState},
};
use countersign_client::driver::{
    Action, Capabilities, Delivery, Entry, Event, LegObservation, OrderObservation, OrderState, Outcome, OwnerTask, PaymentFate, Purpose,
    RecordObservation, Release, SecretRoute, Status, TrustTheService, decide,
};
use rules::{Facts, check, check_asked_refund, check_money};
use std::time::Duration;
use subject::{
    DEADLINE, GIVEN_UP, Subject, capabilities, changed, journal, payment, redeemed, refunded, rejected, release, secret_bytes, seen,
    sending, signed, signed_again, signed_gasless, unreachable,
};

/// SplitMix64, for cases that are covered by sampling.
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
        vec![signed_funding.clone(), sending(Delivery::Funding), rejected()],
        vec![signed_funding.clone(), sending(Delivery::Funding), rejected(), signed_again()],
        with(payment(), vec![signed_again(), sending(Delivery::Funding), rejected()]),
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
        with(payment(), vec![leaving(SecretRoute::Own), Event::Printed { what: Delivery::Redemption }]),
        with(payment(), vec![leaving(SecretRoute::Own), signed(Purpose::Redemption), Event::Printed { what: Delivery::Redemption }]),
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

/// Appends what carrying out an action writes, with an outcome that is not known.
fn carry_out(kept: &mut OrderState, action: &Action, capabilities: Capabilities, now: u64) {
    let is_signed = |kept: &OrderState, purpose| kept.signed(purpose).is_some();
    let events = match action {
        Action::Sign => vec![signed(Purpose::Funding)],
        Action::Pay(what) => vec![sending(*what)],
        Action::Raise => vec![signed(Purpose::Funding), sending(Delivery::Funding)],
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
                        observed.payment =
                            dice.pick(&[PaymentFate::Open, PaymentFate::Open, PaymentFate::Dead("nonce".to_owned())]).clone();
                        observed.payment_overdue_from = *dice.pick(&[None, Some(UnixTime::EPOCH), Some(UnixTime::from_secs(DEADLINE))]);
                        observed.source_family = *dice.pick(&[None, Some(Family::Bitcoin), Some(Family::Evm)]);
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
                        check_money(observed, capabilities, &Facts::new(kept, observed), &decision, &say);
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

/// An owner who must act is told exactly what to do, and only if the driver cannot do it.
#[test]
fn whoever_must_act_is_told_what_to_do() {
    let subject = Subject::new();
    let timelock = subject.timelock();
    let mut kept = subject.kept(true, false);
    let mut observed = subject.observed(subject.verified());
    for bits in 0..64 {
        let capabilities = capabilities(bits);
        kept.journal = journal(payment());
        (observed.source, observed.destination) = (seen(subject.locked(3, 3), true), seen(subject.locked(3, 3), true));
        observed.release = Ok(subject.evidence());
        let told = |kept: &OrderState, observed: &OrderObservation| match decide(kept, observed, capabilities).status {
            Status::NeedsOwner { what } => Some(what),
            _ => None,
        };
        let nobody = !(capabilities.owner_redeems || capabilities.relayer_allowed && capabilities.relayer_alone);
        assert_eq!(told(&kept, &observed), nobody.then_some(OwnerTask::Redeem), "{capabilities:?}");
        let handed_out = [payment(), vec![Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption)]].concat();
        for journal_of in [release(SecretRoute::Own), [handed_out, vec![Event::Printed { what: Delivery::Redemption }]].concat()] {
            kept.journal = journal(journal_of);
            assert_eq!(
                told(&kept, &observed),
                (!capabilities.destination_connected).then_some(OwnerTask::BroadcastRedemption),
                "{capabilities:?}"
            );
        }
        kept.journal = journal([payment(), vec![signed(Purpose::Refund)]].concat());
        observed.source = seen(subject.locked(timelock + 1, timelock + 1), true);
        observed.destination = seen(HtlcState::Absent, true);
        assert_eq!(told(&kept, &observed), (!capabilities.source_connected).then_some(OwnerTask::Refund), "{capabilities:?}");
    }
}

/// Random inputs, which a fuzzer replaces by better ones: `fuzz/run 60 driver`.
#[test]
fn no_interleaving_of_faults_loses_what_could_be_kept() {
    let mut dice = Dice(33);
    let mut endings = std::collections::BTreeMap::<_, u64>::new();
    for _ in 0..1_500 {
        let input: Vec<u8> = (0..dice.next() % 300).map(|_| dice.next() as u8).collect();
        *endings.entry(interleave::play(&input)).or_default() += 1;
    }
    for ending in ["complete", "refunded", "expired"].map(interleave::End::Ended) {
        assert!(endings.get(&ending).is_some_and(|count| *count > 20), "{endings:?}");
    }
}
