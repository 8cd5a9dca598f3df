//! Tests that a record of what was printed or handed out is only a note, never a permission.

use super::*;

/// A journal as `redeem --self` writes it.
fn printed() -> [Event; 2] {
    [Event::SecretLeaving { path: SecretRoute::Own }, Event::Printed { what: Delivery::Redemption }]
}

#[test]
fn a_printed_redemption_is_no_permission() {
    let mut world = World::paid();
    world.wrote(printed());
    assert!(world.kept.secret_has_left() && !world.kept.secret_was_sent());
    let held = [
        (seen(HtlcState::Absent, true), Hold::NotFunded),
        (seen(world.locked(3), false), Hold::NotFinal { reached: "1 block deep".to_owned(), needed: "safe".to_owned() }),
        (seen(world.locked(3), true), Hold::NotCovered),
        (LegObservation::Unknown("no answer".to_owned()), Hold::Unclear("no answer".to_owned())),
    ];
    for (destination, hold) in held {
        (world.observed.destination, world.observed.release) = (destination, Err(hold.clone()));
        assert_eq!(world.decide(), (Status::Waiting { on: WaitingFor::Evidence(hold) }, None));
    }
    // Short of time, the owner who has broadcast it is warned, and nothing is sent from here.
    let hold = Hold::NoTime { left: 1, needed: 6, unit: "blocks" };
    (world.observed.destination, world.observed.release) = (seen(world.locked(990), true), Err(hold));
    assert_eq!(world.decide(), (Status::RedeemNow, None));
    // Evidence gives permission.
    let mut world = World::funded();
    world.wrote(printed());
    assert_eq!(world.action(), OWN);
}

/// The owner was handed a signed redemption, because the destination was not connected. Later it is, and shows nothing.
#[test]
fn what_was_handed_out_is_not_sent_for_an_absent_destination() {
    let mut world = World::paid();
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption)]);
    world.wrote([Event::Printed { what: Delivery::Redemption }]);
    world.capabilities.destination_connected = false;
    world.observed.destination = LegObservation::Stated(world.locked(3));
    assert_eq!(world.decide(), (Status::NeedsOwner { what: OwnerTask::BroadcastRedemption }, None));
    world.capabilities.destination_connected = true;
    world.observed.destination = seen(HtlcState::Absent, true);
    assert_eq!(world.action(), None);
}

/// A redemption wins nothing where a quorum shows no payment, whatever was sent before.
#[test]
fn nothing_is_sent_while_the_destination_is_absent() {
    for sent in [SecretRoute::Own, SecretRoute::Relayer, SecretRoute::Signer] {
        let mut world = World::paid();
        world.wrote([Event::SecretLeaving { path: sent }, signed(Purpose::Redemption), Event::sending(Delivery::Redemption)]);
        world.capabilities.relayer_allowed = true;
        assert_eq!(world.action(), None, "{sent:?}");
        world.observed.source = seen(redeemed(true), false);
        assert_eq!(world.decide(), (Status::Lost, None), "the payment may still come");
        world.observed.destination = seen(world.locked(1), false);
        assert!(matches!(world.action(), Some(Action::Redeem { is_urgent: true, .. })));
    }
}
