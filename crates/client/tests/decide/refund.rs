//! Tests refunds: automatic if nothing else is left, and immediate on the owner's request.

use countersign_client::countersign::chains::UnixTime;
use countersign_client::driver::{Progress, RefundEnd, decide_refund};

use super::*;

const REFUND: Option<Action> = Some(Action::Refund);

fn refund(world: &World) -> (Status, Option<Action>) {
    let decision = decide_refund(&world.kept, &world.observed, world.capabilities);
    (decision.status, decision.action)
}

/// The owner's command is not held back by a redemption that is due, or by an attempt a moment ago.
#[test]
fn the_refund_command_refunds_once_the_timelock_is_over() {
    let mut world = World::funded();
    assert_eq!(refund(&world).1, None, "the timelock is not over, and the command releases no secret");
    world.observed.source = seen(world.locked(1_000_000), true);
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption), Event::sending(Delivery::Redemption)]);
    assert_eq!(refund(&world), (Status::Refunding, REFUND));
    world.kept.journal.push(Entry { at: world.observed.now, event: Event::sending(Delivery::Refund) });
    assert_eq!(refund(&world), (Status::Refunding, REFUND));
}

#[test]
fn what_the_chain_shows_as_ended_is_not_refunded() {
    for state in [redeemed(true), refunded()] {
        let mut world = World::paid();
        world.observed.refund_from = Some(UnixTime::from_secs(0));
        world.observed.source = seen(state, false);
        assert_eq!(refund(&world).1, None);
    }
    // The service's word that it has ended does not stop a refund that the chain would accept.
    let mut world = World::paid();
    world.observed.source = seen(world.locked(1_000_000), true);
    world.observed.destination = LegObservation::Stated(refunded());
    assert_eq!(refund(&world).1, REFUND);
}

/// A source that cannot be read is refunded by time: only the owner can gain from that.
#[test]
fn a_source_that_cannot_be_read_is_refunded_when_its_time_is_over() {
    let unreadable = [LegObservation::Unknown(String::new()), seen(HtlcState::Unclear("pruned".to_owned()), false)];
    for source in unreadable {
        let mut world = World::paid();
        world.observed.source = source;
        world.observed.now = UnixTime::from_secs(5_000);
        for (from, is_over) in [(Some(5_001), false), (Some(5_000), true), (None, false)] {
            world.observed.refund_from = from.map(UnixTime::from_secs);
            assert_eq!(world.action() == REFUND, is_over, "{from:?}");
            assert_eq!(refund(&world).1 == REFUND, is_over, "{from:?}");
        }
        // It is tried again, but not at every step; the owner's command is.
        world.observed.refund_from = Some(UnixTime::from_secs(0));
        world.kept.journal.push(Entry { at: UnixTime::from_secs(5_000), event: Event::sending(Delivery::Refund) });
        assert_eq!((world.action(), refund(&world).1), (None, REFUND));
        // A redemption that is due comes first.
        world.observed.destination = seen(world.locked(3), true);
        world.observed.release = Ok(Release::Evidence(world.evidence()));
        assert_eq!(world.action(), Some(Action::Redeem { path: SecretRoute::Own, is_urgent: false }));
        // Without a connection there is nothing to try it with.
        world.capabilities.source_connected = false;
        assert_ne!(refund(&world).1, REFUND);
    }
}

/// An order recorded as ended stays so, and a new end is recorded.
#[test]
fn an_order_that_ended_is_not_refunded() {
    let mut world = World::paid();
    world.observed.source = seen(world.locked(1_000_000), true);
    assert_eq!(refund(&world).1, REFUND);
    let complete = Action::End(Outcome::Complete);
    world.observed.destination = seen(redeemed(true), true);
    assert_eq!(refund(&world).1, Some(complete));
    world.wrote([Event::Ended { outcome: Outcome::Complete }]);
    assert_eq!(refund(&world), (Status::Ended { outcome: Outcome::Complete }, None));
}

#[test]
fn an_unpaid_order_is_not_refunded() {
    assert_eq!(refund(&World::new()).1, None);
}

/// While the destination can still be redeemed and the source's timelock is over, both are tried, however rarely the driver looks.
#[test]
fn a_refund_and_a_redemption_take_turns() {
    let mut world = World::funded();
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption), Event::sending(Delivery::Redemption)]);
    world.observed.source = seen(world.locked(1_000_000), true);
    let mut actions = Vec::new();
    for step in 1..=6 {
        world.observed.now = UnixTime::from_secs(1_000 + step * 600);
        let action = world.action().unwrap();
        let what = if action == Action::Refund { Delivery::Refund } else { Delivery::Redemption };
        world.kept.journal.push(Entry { at: world.observed.now, event: Event::sending(what) });
        actions.push(action);
    }
    let redeem = Action::Redeem { path: SecretRoute::Own, is_urgent: true };
    assert_eq!(actions, [Action::Refund, redeem.clone(), Action::Refund, redeem.clone(), Action::Refund, redeem]);
}

/// A refund that was sent earlier may have come too late.
#[test]
fn a_refund_is_under_way_by_what_this_step_sent_or_the_chain_shows() {
    let (unsent, mut sent) = (World::paid(), World::paid());
    sent.wrote([Event::sending(Delivery::Refund), Event::Sent { what: Delivery::Refund }]);
    let end = |world: &World, acted, status: Status, source_connected| {
        let mut progress = Progress::new(status);
        progress.acted = acted;
        RefundEnd::new(&progress, &world.kept, source_connected)
    };
    assert_eq!(end(&sent, true, Status::Lost, true), RefundEnd::Refunding);
    assert_eq!(end(&sent, false, Status::Lost, true), RefundEnd::Lost);
    assert_eq!(end(&sent, false, Status::Lost, false), RefundEnd::StatedLost);
    // Also if this step wrote the end down.
    for (outcome, acted) in [(Outcome::Complete, false), (Outcome::Complete, true), (Outcome::Lost, true), (Outcome::Refunded, true)] {
        assert_eq!(end(&sent, acted, Status::Ended { outcome }, true), RefundEnd::Ended(outcome));
    }
    let refusal = Refusal::new(Code::RecordChanged, "/order");
    assert_eq!(end(&sent, false, Status::Refused { refusal: refusal.clone() }, true), RefundEnd::Refused(refusal));
    assert_eq!(end(&sent, false, Status::NeedsOwner { what: OwnerTask::Refund }, true), RefundEnd::NeedsOwner);
    assert_eq!(end(&sent, false, Status::Refunding, true), RefundEnd::Refunding);
    assert_eq!(end(&unsent, false, Status::Refunding, true), RefundEnd::NotAccepted);
    assert!(matches!(end(&sent, false, Status::Paying, true), RefundEnd::NotYet(_)));
}
