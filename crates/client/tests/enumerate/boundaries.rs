//! `decide` on each of its limits: one before, exactly at, one after.

use super::subject::*;
use countersign_client::countersign::chains::UnixTime;
use countersign_client::countersign::{
    Family,
    evidence::{Hold, HtlcState},
};
use countersign_client::driver::{
    Action, Capabilities, Delivery, Entry, Event, LegObservation, OrderObservation, OrderState, Outcome, OwnerTask, Purpose, Release,
    SecretRoute, Status, TrustTheService, WaitingFor, decide,
};

/// An order with its observation and capabilities, all of which a test changes.
struct World {
    subject: Subject,
    kept: OrderState,
    observed: OrderObservation,
    capabilities: Capabilities,
}

impl World {
    /// An order with this journal, with everything connected.
    fn with(events: Vec<Event>) -> Self {
        let subject = Subject::new();
        let (mut kept, observed) = (subject.kept(true, false), subject.observed(subject.verified()));
        kept.journal = journal(events);
        Self { kept, observed, capabilities: capabilities(0b111), subject }
    }

    /// A paid order whose source's timelock is over, and that the solver did not pay.
    fn refundable() -> Self {
        let mut world = Self::with(payment());
        world.has_run_out(true);
        world
    }

    fn has_run_out(&mut self, is_over: bool) {
        let elapsed = self.subject.timelock() + u64::from(is_over);
        self.observed.source = seen(self.subject.locked(elapsed, elapsed), true);
    }

    fn decide(&self) -> (Status, Option<Action>) {
        let decision = decide(&self.kept, &self.observed, self.capabilities);
        (decision.status, decision.action)
    }

    fn action(&self) -> Option<Action> {
        self.decide().1
    }
}

const REFUNDS: (Status, Option<Action>) = (Status::Refunding, Some(Action::Refund));
const OWNER_REFUNDS: (Status, Option<Action>) = (Status::NeedsOwner { what: OwnerTask::Refund }, None);

#[test]
fn a_refund_waits_for_the_unit_after_the_timelock() {
    let mut world = World::refundable();
    assert_eq!(world.decide(), REFUNDS);
    world.has_run_out(false);
    assert!(matches!(world.decide(), (Status::Waiting { .. }, None)));
    // If the swap cannot complete, the status announces the refund.
    world.observed.destination = seen(refunded(), true);
    assert!(matches!(world.decide(), (Status::AwaitingRefund { .. }, None)));
    world.has_run_out(true);
    assert_eq!(world.decide(), REFUNDS);
    // Without reading the chain, it is over once nothing is left by the service's word.
    let timelock = world.subject.timelock();
    for (elapsed, refunds) in [(timelock - 1, false), (timelock, true), (timelock + 1, true)] {
        world.observed.source = LegObservation::Stated(world.subject.locked(elapsed, elapsed));
        assert_eq!(world.action() == Some(Action::Refund), refunds, "{elapsed}");
    }
}

/// A signed refund needs a connection to the source; without one it is the owner's to send. An unsigned one goes through the relayer.
#[test]
fn who_sends_a_refund() {
    for (is_signed, is_connected, expected) in
        [(true, true, REFUNDS), (true, false, OWNER_REFUNDS), (false, true, REFUNDS), (false, false, REFUNDS)]
    {
        let mut world = World::refundable();
        if is_signed {
            world.kept.journal.extend(journal([signed(Purpose::Refund)]));
        }
        world.capabilities.source_connected = is_connected;
        assert_eq!(world.decide(), expected, "signed {is_signed}, connected {is_connected}");
    }
}

/// On a Bitcoin-like source whose request names the owner's key, the relayer cannot refund. Each of the three conditions is needed.
#[test]
fn where_the_relayer_cannot_refund_the_owner_must() {
    let cases = [
        (Some(Family::Bitcoin), true, false, OWNER_REFUNDS),
        (Some(Family::Bitcoin), true, true, REFUNDS),
        (Some(Family::Bitcoin), false, false, REFUNDS),
        (Some(Family::Evm), true, false, REFUNDS),
        (None, true, false, REFUNDS),
    ];
    for (family, names_key, is_connected, expected) in cases {
        let mut world = World::refundable();
        let mut request = world.kept.swap.request().clone();
        request.source.delegate = names_key.then(|| "aa".repeat(32));
        let swap = countersign_client::CreatedOrder::new(request, world.kept.swap.response()).unwrap();
        let written = std::mem::take(&mut world.kept.journal);
        world.kept = OrderState::new(swap, world.kept.secret.take());
        world.kept.journal = written;
        world.observed.source_family = family;
        world.capabilities.source_connected = is_connected;
        assert_eq!(world.decide(), expected, "{family:?} key {names_key} connected {is_connected}");
    }
}

/// A refund is due when neither the owner's transaction nor the request to the relayer was sent too recently.
#[test]
fn a_refund_waits_after_either_attempt() {
    for what in [Delivery::Refund, Delivery::RefundRequest] {
        let mut world = World::refundable();
        world.kept.journal.extend(journal([sending(what)]));
        for (now, expected) in [(WRITTEN + 4, (Status::Refunding, None)), (WRITTEN + 5, REFUNDS)] {
            world.observed.now = UnixTime::from_secs(now);
            assert_eq!(world.decide(), expected, "{what:?} at {now}");
        }
    }
}

/// The first wait is five seconds and each one is twice as long, up to five minutes, or up to 20 seconds for the owner's redemption.
#[test]
fn what_is_sent_again_waits_longer_and_longer() {
    let waits = |longest: u64| [0, 5, 10, 20, 40, 80, 160, 300, 300].map(|wait: u64| wait.min(longest));
    let redemption = [payment(), vec![Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption)]].concat();
    let relayer = [payment(), vec![Event::SecretLeaving { path: SecretRoute::Relayer }]].concat();
    let cases = [
        (Delivery::Funding, vec![signed(Purpose::Funding)], 300),
        (Delivery::Gasless, vec![signed_gasless(), Event::Sent { what: Delivery::Funding }], 300),
        (Delivery::Redemption, redemption, 20),
        (Delivery::Secret, relayer, 300),
        (Delivery::Refund, payment(), 300),
        (Delivery::RefundRequest, payment(), 300),
    ];
    for (what, before, longest) in cases {
        for (attempts, wait) in waits(longest).into_iter().enumerate().chain([(40, longest), (64, longest), (65, longest), (66, longest)]) {
            let mut world = World::with(before.clone());
            match what {
                Delivery::Redemption => {
                    (world.observed.destination, world.capabilities.source_connected) = (seen(world.subject.locked(3, 3), true), false)
                }
                Delivery::Secret => {
                    (world.observed.destination, world.capabilities.owner_redeems) = (seen(world.subject.locked(3, 3), true), false);
                }
                Delivery::Refund | Delivery::RefundRequest => world.has_run_out(true),
                _ => {}
            }
            if what == Delivery::Redemption {
                world.observed.release = Ok(world.subject.evidence());
            }
            world.kept.journal.extend(journal(std::iter::repeat_n(sending(what), attempts)));
            let mut acts_at = |now: u64| {
                world.observed.now = UnixTime::from_secs(now);
                world.action().is_some()
            };
            assert!(acts_at(WRITTEN + wait), "{what:?} after {attempts} attempts: {wait} s are enough");
            assert!(acts_at(WRITTEN + wait + 1), "{what:?} after {attempts} attempts");
            if attempts > 0 {
                assert!(!acts_at(WRITTEN + wait - 1), "{what:?} after {attempts} attempts: less than {wait} s is not");
                assert!(!acts_at(WRITTEN), "{what:?}: at the moment of the last attempt");
                assert!(acts_at(WRITTEN - 1), "{what:?}: a clock that was set back");
            }
        }
    }
}

/// Attempts to send something else do not count, and the last attempt does, not the first.
#[test]
fn a_wait_is_counted_from_the_last_attempt_of_the_same_kind() {
    let mut world = World::refundable();
    world.kept.journal.extend(journal([sending(Delivery::Secret), sending(Delivery::Gasless), sending(Delivery::Refund)]));
    world.kept.journal.push(Entry { at: UnixTime::from_secs(WRITTEN + 100), event: sending(Delivery::Refund) });
    for (now, refunds) in [(WRITTEN + 109, false), (WRITTEN + 110, true)] {
        world.observed.now = UnixTime::from_secs(now);
        assert_eq!(world.action().is_some(), refunds, "{now}");
    }
}

/// A redemption ends an order only if the chain itself shows it in a final block. What the service states ends nothing, whatever else is
/// known.
#[test]
fn only_a_final_redemption_that_was_seen_completes() {
    let complete = Some(Action::End(Outcome::Complete));
    let written = [payment(), vec![Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption)]].concat();
    for events in [payment(), written, release(SecretRoute::Own), release(SecretRoute::Relayer)] {
        for public in [None, Some(secret_bytes())] {
            let mut world = World::with(events.clone());
            world.observed.public_secret = public;
            world.observed.destination = seen(redeemed(), true);
            assert_eq!(world.action(), complete, "the chain is proof: {events:?}");
            for view in [LegObservation::Stated(redeemed()), LegObservation::Unknown(String::new()), seen(redeemed(), false)] {
                world.observed.destination = view.clone();
                assert_ne!(world.action(), complete, "{view:?} {events:?}");
            }
        }
    }
}

/// A source that cannot be read is refunded once its timelock is over by time: to the second, only if it is connected, and only while there
/// is nothing better to do.
#[test]
fn a_source_that_cannot_be_read_is_refunded_by_time() {
    for view in [LegObservation::Unknown(String::new()), seen(HtlcState::Unclear(String::new()), false)] {
        for (late, refunds) in [(-1, false), (0, true), (1, true)] {
            let mut world = World::with(payment());
            world.observed.source = view.clone();
            world.observed.refund_from = world.observed.now.as_secs().checked_add_signed(-late).map(UnixTime::from_secs);
            assert_eq!(world.action() == Some(Action::Refund), refunds, "{late} s late, {view:?}");
            world.observed.refund_from = None;
            assert_ne!(world.action(), Some(Action::Refund), "the time is not known");
            world.observed.refund_from = Some(world.observed.now);
            world.capabilities.source_connected = false;
            assert_ne!(world.action(), Some(Action::Refund), "not connected");
        }
        let mut world = World::with(payment());
        (world.observed.source, world.observed.refund_from) = (view.clone(), Some(UnixTime::EPOCH));
        (world.observed.destination, world.observed.release) = (seen(world.subject.locked(3, 3), true), Ok(world.subject.evidence()));
        assert!(matches!(world.action(), Some(Action::Redeem { .. })), "a redemption comes first");
    }
    // A source that can be read is refunded by its own count alone.
    let mut world = World::with(payment());
    world.has_run_out(false);
    world.observed.refund_from = Some(UnixTime::from_secs(0));
    assert_ne!(world.action(), Some(Action::Refund));
}

/// A payment from another wallet is expected for a day after the deadline, to the second.
#[test]
fn a_payment_is_given_up_a_day_after_the_deadline() {
    let expired = Some(Action::End(Outcome::Expired));
    // Nothing was signed here, and the chain is not read.
    for (late, ends) in [(GIVEN_UP - 1, false), (GIVEN_UP, false), (GIVEN_UP + 1, true)] {
        let mut world = World::with(Vec::new());
        world.observed.source = LegObservation::Stated(HtlcState::Absent);
        world.observed.now = UnixTime::from_secs(DEADLINE + late);
        assert_eq!(world.action() == expired, ends, "unsigned, {late} s late");
        world.observed.deadline = None;
        assert_ne!(world.action(), expired, "without a deadline nothing is late");
        // Handed to another wallet: only the chain itself proves that nothing came.
        let mut world = World::with(vec![sending(Delivery::Funding)]);
        world.observed.now = UnixTime::from_secs(DEADLINE + late);
        assert_eq!(world.action() == expired, ends, "elsewhere, {late} s late");
        world.observed.source = LegObservation::Unknown(String::new());
        assert_ne!(world.action(), expired, "unread");
        // Anything that was signed here is never forgotten.
        let mut world = World::with(payment());
        world.observed.now = UnixTime::from_secs(DEADLINE + late);
        assert_ne!(world.action(), expired, "signed, {late} s late");
    }
    assert_eq!(GIVEN_UP, 86_400);
}

/// A payment must be confirmed before the deadline, with at least a second to spare.
#[test]
fn a_payment_in_time_is_a_second_early() {
    for (left, is_sent) in [(CONFIRMATION - 1, false), (CONFIRMATION, false), (CONFIRMATION + 1, true)] {
        let mut world = World::with(vec![signed(Purpose::Funding), sending(Delivery::Funding)]);
        world.observed.now = UnixTime::from_secs(DEADLINE - left);
        assert_eq!(world.action() == Some(Action::Pay(Delivery::Funding)), is_sent, "{left} s left");
        let mut world = World::with(Vec::new());
        world.observed.now = UnixTime::from_secs(DEADLINE - left);
        assert_eq!(world.action() == Some(Action::Sign), is_sent, "{left} s left");
    }
}

/// Waiting may help with some reasons and not with others. Of an order that waits for a redemption that somebody else has made, the owner
/// is told to wait, too.
#[test]
fn each_reason_is_waited_for_or_not() {
    let waits = [
        Hold::NotFunded,
        Hold::NotFinal { reached: String::new(), needed: String::new() },
        Hold::NotCovered,
        Hold::Stale { seconds: 121 },
        Hold::Disagree { agreed: 1, needed: 2 },
        Hold::Unclear(String::new()),
        Hold::Redeemed,
    ];
    let gives_up = [Hold::differs("amount", "1", "2"), Hold::NoTime { left: 6, needed: 6, unit: "blocks" }, Hold::Refunded];
    for (hold, is_transient) in waits.into_iter().map(|hold| (hold, true)).chain(gives_up.map(|hold| (hold, false))) {
        assert_eq!(hold.is_transient() || hold == Hold::Redeemed, is_transient, "{hold:?}");
        let mut world = World::with(payment());
        world.observed.source = seen(world.subject.locked(3, 3), true);
        world.observed.release = Err(hold.clone());
        let (status, action) = world.decide();
        let expected = if is_transient {
            Status::Waiting { on: WaitingFor::Evidence(hold.clone()) }
        } else {
            Status::AwaitingRefund { reason: hold.clone() }
        };
        assert_eq!((status, action), (expected, None), "{hold:?}");
    }
}

/// Half of the destination's timelock is the limit of the alarm, with an odd timelock as well.
#[test]
fn the_alarm_rises_when_half_the_time_is_over() {
    let mut world = World::with(release(SecretRoute::Relayer));
    world.observed.release = Err(Hold::NotFunded);
    let timelock = world.subject.timelock();
    for (left, is_short) in [(timelock / 2 + 1, false), (timelock / 2, true), (timelock / 2 - 1, true), (0, true)] {
        world.observed.destination = seen(world.subject.locked(timelock - left, timelock - left), true);
        assert_eq!(world.decide().0 == Status::RedeemNow, is_short, "{left} left");
    }
    // A margin that is not kept raises it as well, whatever the destination shows.
    world.observed.destination = LegObservation::Unknown(String::new());
    assert_eq!(world.decide().0, Status::Redeeming);
    world.observed.release = Err(Hold::NoTime { left: 6, needed: 6, unit: "blocks" });
    assert_eq!(world.decide().0, Status::RedeemNow);
}

/// Each way in which the secret can be out makes the redemption urgent, and none of the others does.
#[test]
fn what_makes_a_redemption_urgent() {
    let urgent = |world: &World| matches!(world.action(), Some(Action::Redeem { is_urgent: true, .. }));
    let written = [payment(), vec![Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption)]].concat();
    let base = |events: Vec<Event>| {
        let mut world = World::with(events);
        world.observed.source = seen(world.subject.locked(3, 3), true);
        world.observed.destination = seen(world.subject.locked(3, 3), true);
        world
    };
    assert!(!urgent(&base(payment())), "paid");
    assert!(!urgent(&base(written.clone())), "signed, not sent");
    assert!(urgent(&base([written.clone(), vec![sending(Delivery::Redemption)]].concat())), "sent");
    assert!(urgent(&base([written, vec![Event::OnChain { what: Delivery::Redemption }]].concat())), "broadcast by the owner");
    assert!(urgent(&base([payment(), vec![Event::SecretLeaving { path: SecretRoute::Relayer }]].concat())), "given to the relayer");
    let mut world = base(payment());
    world.observed.public_secret = Some(secret_bytes());
    assert!(urgent(&world), "public");
    let mut world = base(payment());
    world.observed.source = seen(redeemed(), false);
    assert!(urgent(&world), "the solver has used it");
    world.observed.source = LegObservation::Stated(redeemed());
    assert!(!urgent(&world), "the service says that the solver has used it");
    // An evidence or the caller's trust is enough for a release that is not urgent.
    for release in [Release::Trust(TrustTheService), World::with(Vec::new()).subject.evidence()] {
        let mut world = base(payment());
        world.observed.release = Ok(release);
        assert_eq!(world.action(), Some(Action::Redeem { path: SecretRoute::Own, is_urgent: false }));
    }
}

/// A theft ends an order only if both of its halves are final on their chains.
#[test]
fn lost_needs_both_chains() {
    for (is_source_final, is_destination_final) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut world = World::with(release(SecretRoute::Relayer));
        world.observed.source = seen(redeemed(), is_source_final);
        world.observed.destination = seen(refunded(), is_destination_final);
        let ends = world.action() == Some(Action::End(Outcome::Lost));
        assert_eq!(ends, is_source_final && is_destination_final, "{is_source_final} {is_destination_final}");
        assert!(ends || world.decide().0 == Status::Lost);
    }
}

/// A payment that was signed and is still here can be given up; one that may have been sent cannot. Of a gasless payment the message
/// counts, not the approval.
#[test]
fn a_payment_that_is_still_here_is_given_up() {
    let cases = [
        (vec![signed(Purpose::Funding)], true),
        (vec![signed(Purpose::Funding), sending(Delivery::Funding)], false),
        (vec![signed_gasless(), sending(Delivery::Funding)], true),
        (vec![signed_gasless(), sending(Delivery::Gasless)], false),
    ];
    for (events, ends) in cases {
        let mut world = World::with(events.clone());
        world.observed.now = UnixTime::from_secs(DEADLINE);
        assert_eq!(world.action() == Some(Action::End(Outcome::Expired)), ends, "{events:?}");
    }
}

/// A payment, or a secret that has left, is each enough to redeem a destination that cannot be read.
#[test]
fn what_is_at_stake_is_redeemed() {
    let left = vec![Event::SecretLeaving { path: SecretRoute::Relayer }];
    for (events, is_public, redeems) in [(left, false, true), (payment(), true, true), (payment(), false, false), (Vec::new(), true, false)]
    {
        let mut world = World::with(events.clone());
        world.observed.public_secret = is_public.then(secret_bytes);
        world.observed.destination = LegObservation::Unknown(String::new());
        world.observed.source = LegObservation::Unknown(String::new());
        assert_eq!(matches!(world.action(), Some(Action::Redeem { .. })), redeems, "{events:?} {is_public}");
    }
}

/// Once the source's timelock is over while the destination can still be redeemed, the refund and the redemption take turns.
#[test]
fn a_refund_and_a_redemption_take_turns() {
    for (refund_at, refunds) in [(WRITTEN - 1, true), (WRITTEN, true), (WRITTEN + 1, false)] {
        let mut world = World::with(release(SecretRoute::Own));
        world.has_run_out(true);
        world.observed.destination = seen(world.subject.locked(3, 3), true);
        world.kept.journal.push(Entry { at: UnixTime::from_secs(refund_at), event: sending(Delivery::Refund) });
        assert_eq!(world.action() == Some(Action::Refund), refunds, "{refund_at}");
        assert!(refunds || matches!(world.action(), Some(Action::Redeem { .. })), "{refund_at}");
    }
}
