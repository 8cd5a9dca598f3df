//! A secret that only the owner's signer may know.

use super::*;

/// The signer may have broadcast the redemption, or done nothing: no margin delays the owner, and nobody else gets the secret.
#[test]
fn a_secret_that_only_the_signer_has_is_redeemed_late_but_not_without_proof() {
    let at_signer = |world: &mut World| world.wrote([Event::SecretLeaving { path: SecretRoute::Signer }]);
    let mut world = World::funded();
    at_signer(&mut world);
    assert!(world.kept.secret_has_left() && !world.kept.secret_was_sent());
    assert_eq!(world.decide(), (Status::Redeeming, OWN), "asked again, and proven again");
    world.observed.release = Err(Hold::NoTime { left: 1, needed: 6, unit: "blocks" });
    assert_eq!(world.decide(), (Status::RedeemNow, OWN_URGENT));
    world.observed.release = Err(Hold::NotFunded);
    world.observed.destination = seen(HtlcState::Absent, false);
    assert!(matches!(world.decide(), (Status::Waiting { on: WaitingFor::Evidence(Hold::NotFunded) }, None)), "the payment is gone");
    // The relayer gets the secret for evidence alone.
    world.capabilities.owner_redeems = false;
    world.capabilities.relayer_allowed = true;
    world.observed.destination = seen(world.locked(3), true);
    for hold in [Hold::NotFunded, Hold::NoTime { left: 1, needed: 6, unit: "blocks" }, Hold::Unclear(String::new())] {
        world.observed.release = Err(hold);
        assert_eq!(world.action(), None);
    }
    // A source that is refunded does not end the order while the destination can be redeemed by whoever has the secret.
    let mut world = World::funded();
    at_signer(&mut world);
    world.observed.source = seen(refunded(), true);
    assert_eq!(world.action(), OWN);
    // Once it is public, nothing is waited for.
    world.observed.source = seen(redeemed(true), false);
    world.observed.release = Err(Hold::NotFunded);
    assert_eq!(world.action(), OWN_URGENT);
}
