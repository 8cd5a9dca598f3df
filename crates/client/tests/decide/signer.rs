//! Tests a secret that only the owner's signer may know.

use super::*;

/// The signer may have done nothing: nobody gets the secret while the payment is not proven, or too little of its time is left. Whoever
/// waited until then must not be made to reveal it.
#[test]
fn a_secret_that_only_the_signer_has_is_as_safe_as_before() {
    let at_signer = |world: &mut World| world.wrote([Event::SecretLeaving { path: SecretRoute::Signer }]);
    let mut world = World::funded();
    at_signer(&mut world);
    assert!(world.kept.secret_has_left() && !world.kept.secret_was_sent());
    assert_eq!(world.action(), OWN, "asked again, and proven again");
    for left in [0, 1] {
        world.observed.release = Err(Hold::NoTime { left, needed: 6, unit: "blocks" });
        assert!(matches!(world.decide(), (Status::AwaitingRefund { .. }, None)), "the solver could take its payment back");
    }
    // The relayer gets the secret for evidence alone.
    world.capabilities.owner_redeems = false;
    world.capabilities.relayer_allowed = true;
    world.observed.destination = seen(world.locked(3), true);
    for hold in [Hold::NotFunded, Hold::NoTime { left: 1, needed: 6, unit: "blocks" }, Hold::Unclear(String::new())] {
        world.observed.release = Err(hold);
        assert_eq!(world.action(), None);
    }
    // Once it is public, nothing is waited for.
    let mut world = World::funded();
    at_signer(&mut world);
    world.observed.source = seen(redeemed(true), false);
    world.observed.release = Err(Hold::NotFunded);
    assert_eq!(world.action(), OWN_URGENT);
}

/// A signer that never signs does not keep the driver from the refund, which is tried again.
#[test]
fn a_signer_that_never_signs_does_not_delay_the_refund() {
    let mut world = World::funded();
    world.wrote([Event::SecretLeaving { path: SecretRoute::Signer }]);
    world.observed.release = Err(Hold::NoTime { left: 0, needed: 6, unit: "blocks" });
    world.observed.source = seen(world.locked(1_000_000), true);
    for round in 0_u64..3 {
        assert_eq!(world.action(), Some(Action::Refund), "{round}");
        world.wrote([Event::sending(Delivery::Refund)]);
        world.observed.now = UnixTime::from_secs(901);
        assert_eq!(world.action(), None, "a moment ago");
        world.observed.now = UnixTime::from_secs(100_000 * (round + 1));
    }
}
