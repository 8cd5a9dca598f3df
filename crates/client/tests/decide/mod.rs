//! The driver's decisions: a test for each rule that keeps a swap from being lost. Nothing here does I/O.
mod pay;
mod printed;
mod refund;
mod signer;
mod status;
use crate::support;

use countersign_client::countersign::chains::UnixTime;
use countersign_client::countersign::reader::{HtlcQuorum, HtlcReader, Known};
use countersign_client::countersign::{
    self, BroadcastTransaction, Code, Funded, Policy, Proposal, Refusal, Registry, Role, VerifiedRecord,
    chains::{Finality, FinalityRule},
    evidence::{Hold, HtlcState, LockedHtlc},
};
use countersign_client::driver::{
    Action, Capabilities, Delivery, Entry, Event, LegObservation, OrderObservation, OrderState, Outcome, OwnerTask, Purpose,
    RecordObservation, Release, SecretRoute, Status, TrustTheService, WaitingFor, decide,
};
use countersign_client::{CreatedOrder, Secret};
use countersign_testkit::chain::evm::Evm;
use serde_json::json;
use std::time::Duration;
use support::{Fixture, Step};

const SECRET: &str = "8cb8a02d5592b0b1556978e1d778b7eff2c23519b8aa65970fa6ac3daa33fb40";
const DEADLINE: u64 = 10_000;

/// An order at some moment: paid, nothing seen yet, and everything connected.
struct World {
    kept: OrderState,
    observed: OrderObservation,
    capabilities: Capabilities,
    record: VerifiedRecord,
}

impl World {
    /// Unsigned, with a current record.
    fn new() -> Self {
        let secret = Secret::parse(SECRET).unwrap();
        let fixture = Fixture::with_secret(&secret);
        let registry = Registry::from_json(fixture.registry.as_bytes()).unwrap();
        let swap = CreatedOrder::new(fixture.create(), fixture.response.to_string()).unwrap();
        let (request, body) = (fixture.create(), fixture.at(Step::Created).to_string());
        let proposal = Proposal::new(&request, swap.response()).with_record(body.as_bytes());
        let record = countersign::verify_record(proposal, &registry, &Policy::default()).unwrap();
        let mut observed = OrderObservation::unknown(UnixTime::from_secs(1_000), RecordObservation::Verified(Box::new(record.clone())));
        observed.deadline = Some(UnixTime::from_secs(DEADLINE));
        observed.confirmation_time = Duration::from_secs(60);
        observed.source = seen(HtlcState::Absent, false);
        observed.destination = seen(HtlcState::Absent, false);
        observed.release = Err(Hold::NotFunded);
        let mut capabilities = Capabilities::default();
        (capabilities.owner_redeems, capabilities.source_connected, capabilities.destination_connected) = (true, true, true);
        Self { kept: OrderState::new(swap, Some(secret)), observed, capabilities, record }
    }

    /// Paid and seen on the source chain.
    fn paid() -> Self {
        let mut world = Self::new();
        world.wrote([signed(Purpose::Funding), Event::sending(Delivery::Funding), Event::Sent { what: Delivery::Funding }]);
        world.observed.source = seen(world.locked(5), true);
        world
    }

    /// Paid by both sides.
    fn funded() -> Self {
        let mut world = Self::paid();
        world.observed.destination = seen(world.locked(3), true);
        world.observed.release = Ok(Release::Evidence(world.evidence()));
        world
    }

    fn wrote<const N: usize>(&mut self, events: [Event; N]) {
        self.kept.journal.extend(events.into_iter().map(|event| Entry { at: UnixTime::from_secs(900), event }));
    }

    fn locked(&self, elapsed: u64) -> HtlcState {
        self.locked_by_several(elapsed, elapsed)
    }

    /// Endpoints have seen different heights.
    fn locked_by_several(&self, least: u64, most: u64) -> HtlcState {
        let terms = &self.record.terms.destination;
        let locked = LockedHtlc::new(terms.initiator.clone(), terms.redeemer.clone(), terms.amount, terms.timelock, most);
        HtlcState::Locked(locked.with_token(terms.token.clone()).with_elapsed(least, most))
    }

    fn evidence(&self) -> Funded {
        let rule = FinalityRule::new(Finality::Depth(2), 2, 6);
        let terms = &self.record.terms;
        let mut chain = Evm::funded(&terms.destination);
        (chain.chain_id, chain.latest, chain.time, chain.l1_number) = (42_161, chain.initiated + 3, 1_000, Some(1));
        let mut reader = HtlcReader::new(&terms.destination, &Known::default()).unwrap();
        while !reader.requests().is_empty() {
            let answers: Vec<_> = reader.requests().iter().map(|request| chain.answer(request)).collect();
            reader.answer(&answers).unwrap();
        }
        let mut quorum = HtlcQuorum::new(["node.example"], 1).unwrap();
        quorum.hear("node.example", reader.finish());
        Funded::judge(terms, &quorum, &rule, UnixTime::from_secs(1_000)).unwrap()
    }

    fn decide(&self) -> (Status, Option<Action>) {
        let decision = decide(&self.kept, &self.observed, self.capabilities);
        (decision.status, decision.action)
    }

    fn action(&self) -> Option<Action> {
        self.decide().1
    }

    fn status(&self) -> Status {
        self.decide().0
    }
}

fn seen(state: HtlcState, is_final: bool) -> LegObservation {
    LegObservation::Seen { state, is_final, head_time: UnixTime::from_secs(1_000) }
}

fn redeemed(secret: bool) -> HtlcState {
    let secret = secret.then(|| *Secret::parse(SECRET).unwrap().expose());
    HtlcState::Redeemed { secret, transaction: Some("0xdead".to_owned()) }
}

fn refunded() -> HtlcState {
    HtlcState::Refunded { transaction: None }
}

fn signed(purpose: Purpose) -> Event {
    let transaction =
        BroadcastTransaction { chain: "base".into(), role: Role::Initiate, id: "0x01".into(), payload: "02".into(), spends: Vec::new() };
    Event::Signed { purpose, transactions: vec![transaction], gasless: None }
}

const OWN: Option<Action> = Some(Action::Redeem { path: SecretRoute::Own, is_urgent: false });
const OWN_URGENT: Option<Action> = Some(Action::Redeem { path: SecretRoute::Own, is_urgent: true });

#[test]
fn an_order_goes_from_signature_to_redemption() {
    let mut world = World::new();
    assert_eq!(world.decide(), (Status::Unsigned, Some(Action::Sign)));
    world.wrote([signed(Purpose::Funding)]);
    assert_eq!(world.decide(), (Status::Paying, Some(Action::Pay(Delivery::Funding))));
    let world = World::paid();
    assert!(matches!(world.decide(), (Status::Waiting { on: WaitingFor::Evidence(Hold::NotFunded) }, None)));
    let mut world = World::funded();
    assert_eq!(world.decide(), (Status::Redeeming, OWN));
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption), Event::sending(Delivery::Redemption)]);
    world.observed.destination = seen(redeemed(true), false);
    assert_eq!(world.decide(), (Status::Redeeming, None), "in a block, and not final");
    world.observed.destination = seen(redeemed(true), true);
    assert_eq!(world.action(), Some(Action::End(Outcome::Complete)));
    world.wrote([Event::Ended { outcome: Outcome::Complete }]);
    assert_eq!(world.decide(), (Status::Ended { outcome: Outcome::Complete }, None));
}

#[test]
fn the_services_word_releases_nothing() {
    let mut world = World::paid();
    world.observed.destination = LegObservation::Stated(world.locked(3));
    world.observed.release = Err(Hold::Unclear("no connection".to_owned()));
    for relayer in [false, true] {
        world.capabilities.relayer_allowed = relayer;
        assert_eq!(world.action(), None);
    }
    // The caller's explicit choice does.
    world.observed.release = Ok(Release::Trust(TrustTheService));
    assert_eq!(world.action(), OWN);
}

#[test]
fn a_stated_redemption_of_the_source_does_not_make_the_secret_public() {
    let mut world = World::paid();
    world.capabilities.relayer_allowed = true;
    world.observed.source = LegObservation::Stated(redeemed(false));
    assert_eq!(world.action(), None);
}

#[test]
fn with_a_key_of_the_owner_the_service_never_gets_the_secret() {
    let mut world = World::funded();
    let mut request = world.kept.swap.request().clone();
    request.destination.delegate = Some("aa".repeat(32));
    world.kept = OrderState::new(CreatedOrder::new(request, world.kept.swap.response()).unwrap(), Some(Secret::parse(SECRET).unwrap()));
    world.wrote([Event::sending(Delivery::Funding)]);
    world.capabilities.owner_redeems = false;
    world.capabilities.relayer_allowed = true;
    for public in [None, Some(*Secret::parse(SECRET).unwrap().expose())] {
        world.observed.public_secret = public;
        assert_eq!(world.decide(), (Status::NeedsOwner { what: OwnerTask::Redeem }, None));
    }
    world.capabilities.owner_redeems = true;
    assert_eq!(world.action(), OWN_URGENT);
}

#[test]
fn the_relayer_is_asked_only_where_the_owner_allows_it() {
    let mut world = World::funded();
    world.capabilities.owner_redeems = false;
    assert_eq!(world.decide(), (Status::NeedsOwner { what: OwnerTask::Redeem }, None));
    world.capabilities.relayer_allowed = true;
    assert_eq!(world.decide(), (Status::NeedsOwner { what: OwnerTask::Redeem }, None), "alone, it needs trust");
    world.capabilities.relayer_alone = true;
    assert_eq!(world.action(), Some(Action::Redeem { path: SecretRoute::Relayer, is_urgent: false }));
    world.capabilities.owner_redeems = true;
    assert_eq!(world.action(), OWN, "the owner first");
}

#[test]
fn a_secret_of_another_order_is_never_used() {
    let mut world = World::funded();
    world.kept.secret = Some(Secret::generate().unwrap());
    assert!(matches!(world.decide(), (Status::Waiting { on: WaitingFor::SecretElsewhere }, None)));
}

#[test]
fn once_the_secret_has_left_nothing_delays_the_redemption() {
    let mut world = World::paid();
    world.wrote([Event::SecretLeaving { path: SecretRoute::Relayer }]);
    world.observed.destination = seen(world.locked(3), false);
    let refusal = Refusal::new(Code::RecordChanged, "/order");
    let holds = [
        (Hold::NoTime { left: 1, needed: 6, unit: "blocks" }, Status::RedeemNow),
        (Hold::NotFunded, Status::Redeeming),
        (Hold::Unclear(String::new()), Status::Redeeming),
    ];
    for (hold, status) in holds {
        world.observed.release = Err(hold);
        for record in [RecordObservation::Refused(refusal.clone()), RecordObservation::Unknown("503".to_owned())] {
            world.observed.record = record;
            assert_eq!(world.decide(), (status.clone(), OWN_URGENT));
        }
    }
    // The relayer has it already: it is asked again where the owner cannot redeem.
    world.capabilities.owner_redeems = false;
    assert_eq!(world.action(), Some(Action::Redeem { path: SecretRoute::Relayer, is_urgent: true }));
}

/// The relayer has the secret and nothing happens: the owner is warned while there is time to redeem without it.
#[test]
fn a_secret_that_has_left_raises_the_alarm_when_half_the_time_is_over() {
    let mut world = World::funded();
    world.capabilities = Capabilities::default();
    world.wrote([Event::SecretLeaving { path: SecretRoute::Relayer }, Event::sending(Delivery::Secret)]);
    let timelock = world.record.terms.destination.timelock;
    for (elapsed, status) in [(timelock / 2 - 1, Status::Redeeming), (timelock / 2, Status::RedeemNow), (timelock, Status::RedeemNow)] {
        for view in [seen(world.locked(elapsed), true), LegObservation::Stated(world.locked(elapsed))] {
            world.observed.destination = view;
            assert_eq!(world.status(), status, "{elapsed} of {timelock}");
        }
    }
}

#[test]
fn a_redemption_is_sent_again_more_and_more_slowly() {
    let mut world = World::funded();
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption)]);
    for (tries, wait) in [(1, 5), (2, 10), (3, 20), (12, 20), (80, 20)] {
        world.kept.journal.retain(|entry| !matches!(entry.event, Event::Sending { what: Delivery::Redemption, .. }));
        for _ in 0..tries {
            world.wrote([Event::sending(Delivery::Redemption)]);
        }
        world.observed.now = UnixTime::from_secs(900 + wait - 1);
        assert_eq!(world.action(), None, "{tries}");
        world.observed.now = UnixTime::from_secs(900 + wait);
        assert_eq!(world.action(), OWN_URGENT, "{tries}");
        world.observed.now = UnixTime::from_secs(10);
        assert_eq!(world.action(), OWN_URGENT, "a clock that was set back");
    }
}

#[test]
fn a_source_that_is_redeemed_first_means_redeem_now() {
    let mut world = World::paid();
    world.observed.source = seen(redeemed(true), false);
    world.observed.destination = seen(world.locked(3), true);
    world.observed.release = Err(Hold::NoTime { left: 1, needed: 6, unit: "blocks" });
    assert_eq!(world.decide(), (Status::RedeemNow, OWN_URGENT));
    // This also applies where the service chose the secret: the chain shows it.
    world.kept.secret = None;
    world.observed.public_secret = Some(*Secret::parse(SECRET).unwrap().expose());
    assert_eq!(world.decide(), (Status::RedeemNow, OWN_URGENT));
}

#[test]
fn a_theft_is_called_lost() {
    let mut world = World::paid();
    world.observed.source = seen(redeemed(true), true);
    world.observed.destination = seen(refunded(), true);
    assert_eq!(world.action(), Some(Action::End(Outcome::Lost)));
    world.observed.destination = seen(HtlcState::Absent, true);
    assert_eq!(world.decide(), (Status::Lost, None), "an absent payment may still come");
    // A mere statement of the service is not a theft while the secret is still here.
    world.observed.source = LegObservation::Stated(redeemed(false));
    world.observed.destination = LegObservation::Stated(refunded());
    assert!(matches!(world.decide(), (Status::AwaitingRefund { .. }, None)));
    // Afterwards it raises the alarm, and ends nothing.
    world.wrote([Event::SecretLeaving { path: SecretRoute::Relayer }]);
    assert_eq!(world.status(), Status::Lost);
    assert_ne!(world.action(), Some(Action::End(Outcome::Lost)));
}

#[test]
fn complete_needs_proof() {
    let secret = *Secret::parse(SECRET).unwrap().expose();
    let mut world = World::paid();
    world.observed.destination = LegObservation::Stated(redeemed(false));
    assert_ne!(world.action(), Some(Action::End(Outcome::Complete)), "0xdead proves nothing");
    // The right secret proves nothing if the service was given it.
    world.observed.public_secret = Some(secret);
    world.wrote([Event::SecretLeaving { path: SecretRoute::Relayer }]);
    assert_ne!(world.action(), Some(Action::End(Outcome::Complete)));
    let mut world = World::paid();
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption), Event::sending(Delivery::Redemption)]);
    world.observed.destination = LegObservation::Stated(redeemed(false));
    assert_ne!(world.action(), Some(Action::End(Outcome::Complete)));
    world.observed.public_secret = Some(secret);
    assert_ne!(world.action(), Some(Action::End(Outcome::Complete)), "it may be public and not redeemed");
    let mut world = World::paid();
    world.observed.destination = seen(redeemed(true), true);
    assert_eq!(world.action(), Some(Action::End(Outcome::Complete)), "the chain is proof");
}

/// A sequencer that stops for hours: the evidence is too old to let the secret go, and is used once blocks come again. A redemption that is
/// out is not held back by it.
#[test]
fn a_chain_that_stops_for_hours_holds_the_secret_and_delays_no_redemption() {
    let mut world = World::funded();
    let evidence = world.observed.release.clone();
    world.observed.release = Err(Hold::Stale { seconds: 4 * 3_600 });
    assert!(matches!(world.decide(), (Status::Waiting { on: WaitingFor::Evidence(Hold::Stale { .. }) }, None)));
    world.observed.release = evidence;
    assert_eq!(world.action(), Some(Action::Redeem { path: SecretRoute::Own, is_urgent: false }));
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption), Event::sending(Delivery::Redemption)]);
    world.observed.release = Err(Hold::Stale { seconds: 4 * 3_600 });
    assert_eq!(world.action(), OWN_URGENT);
}

/// The block of the redemption is replaced, beyond the finality rule or not: the payment is locked again, and is redeemed again.
#[test]
fn a_redemption_that_is_reorganized_away_is_sent_again() {
    let mut world = World::funded();
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption), Event::sending(Delivery::Redemption)]);
    world.wrote([Event::Sent { what: Delivery::Redemption }]);
    world.observed.destination = seen(redeemed(true), false);
    assert_eq!(world.decide(), (Status::Redeeming, None));
    world.observed.destination = seen(world.locked(3), true);
    assert_eq!(world.action(), OWN_URGENT);
    // The payment itself is gone and comes back: nothing is refunded while the source's timelock runs, and nothing is sent that can
    // win nothing.
    world.observed.destination = seen(HtlcState::Absent, false);
    assert_eq!(world.decide(), (Status::AwaitingRefund { reason: Hold::NotFunded }, None));
    world.observed.destination = seen(world.locked(3), false);
    assert_eq!(world.action(), OWN_URGENT);
}

/// A lie about either side must not stop an owner whose secret is out.
#[test]
fn nothing_that_is_only_stated_or_not_final_stops_an_urgent_redemption() {
    let out = [Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption), Event::sending(Delivery::Redemption)];
    for source in [LegObservation::Stated(refunded()), seen(refunded(), false), LegObservation::Stated(redeemed(false))] {
        let mut world = World::paid();
        world.wrote(out.clone());
        world.observed.now = UnixTime::from_secs(10_000_000);
        world.observed.source = source;
        world.observed.destination = seen(world.locked(3), true);
        assert_eq!(world.action(), OWN_URGENT);
        world.observed.destination = LegObservation::Stated(refunded());
        assert_eq!(world.action(), OWN_URGENT);
    }
    // Where the destination can no longer be redeemed, the source is refunded.
    let mut world = World::paid();
    world.wrote(out);
    world.observed.source = seen(world.locked(1_000_000), true);
    world.observed.destination = seen(HtlcState::Absent, true);
    assert_eq!(world.action(), Some(Action::Refund));
}

#[test]
fn what_was_only_written_down_is_not_out() {
    let mut world = World::paid();
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption)]);
    assert_eq!(world.action(), None, "nothing was sent: the destination is not funded");
    // Once sent, it may be public. The relayer still gets the secret only for evidence.
    world.wrote([Event::sending(Delivery::Redemption)]);
    world.observed.destination = seen(world.locked(3), false);
    world.kept.journal.retain(|entry| !matches!(entry.event, Event::Signed { purpose: Purpose::Redemption, .. }));
    world.capabilities.owner_redeems = false;
    world.capabilities.relayer_allowed = true;
    assert_eq!(world.decide(), (Status::NeedsOwner { what: OwnerTask::Redeem }, None));
}

#[test]
fn a_record_that_changes_keeps_the_secret_in() {
    let mut world = World::funded();
    world.observed.record = RecordObservation::Refused(Refusal::new(Code::RecordChanged, "/order/destination_swap/amount"));
    assert_eq!(world.action(), OWN, "with both chains connected, a newer record is only a statement");
    for connected in [(true, false), (false, true)] {
        (world.capabilities.source_connected, world.capabilities.destination_connected) = connected;
        assert!(matches!(world.decide(), (Status::Refused { .. }, None)));
    }
    // A reorganization may hide the payment. What the destination proves still belongs to the owner.
    (world.capabilities.source_connected, world.capabilities.destination_connected) = (true, true);
    world.observed.source = seen(HtlcState::Absent, false);
    assert_eq!(world.action(), OWN);
    // Without that proof the record counts while the source chain does not show the payment.
    world.observed.release = Err(Hold::NotFunded);
    assert!(matches!(world.decide(), (Status::Refused { .. }, None)));
    // The refund is possible nevertheless.
    world.observed.source = seen(world.locked(1_000_000), true);
    assert_eq!(world.decide(), (Status::Refunding, Some(Action::Refund)));
}

#[test]
fn a_service_that_is_down_does_not_keep_the_owner_from_redeeming() {
    let mut world = World::funded();
    world.observed.record = RecordObservation::Unknown("no connection".to_owned());
    assert_eq!(world.action(), OWN);
}

#[test]
fn funds_come_back_once_the_chain_has_counted_the_timelock() {
    let mut world = World::paid();
    let timelock = match world.locked(0) {
        HtlcState::Locked(locked) => locked.timelock,
        _ => unreachable!(),
    };
    world.observed.release = Err(Hold::NoTime { left: 1, needed: 6, unit: "blocks" });
    for (elapsed, action) in [(timelock - 1, None), (timelock, None), (timelock + 1, Some(Action::Refund))] {
        world.observed.source = seen(world.locked(elapsed), true);
        assert_eq!(world.action(), action, "{elapsed}");
    }
    // Only facts that all endpoints have seen count.
    let refund = Some(Action::Refund);
    for (least, most, action) in [(5, timelock + 1, None), (timelock, u64::MAX, None), (timelock + 1, u64::MAX, refund)] {
        world.observed.source = seen(world.locked_by_several(least, most), true);
        assert_eq!(world.action(), action, "{least} {most}");
    }
    world.observed.source = seen(refunded(), false);
    assert_eq!(world.decide(), (Status::Refunding, None));
    world.observed.source = seen(refunded(), true);
    assert_eq!(world.action(), Some(Action::End(Outcome::Refunded)));
    // A refund that only the service states ends nothing.
    world.observed.source = LegObservation::Stated(refunded());
    assert_eq!(world.decide(), (Status::Refunding, None));
}

/// An endpoint that invents a height must not turn a release into a refund that the chain would refuse. Of the destination's timelock
/// the most that has passed counts.
#[test]
fn one_endpoint_with_an_invented_height_refunds_nothing_early() {
    let mut world = World::funded();
    let timelock = world.record.terms.destination.timelock;
    world.observed.source = seen(world.locked_by_several(5, u64::MAX), true);
    assert_eq!(world.action(), OWN);
    world.wrote([Event::SecretLeaving { path: SecretRoute::Relayer }, Event::sending(Delivery::Secret)]);
    world.capabilities = Capabilities::default();
    for (least, most, status) in [(3, timelock / 2 - 1, Status::Redeeming), (3, timelock / 2, Status::RedeemNow)] {
        world.observed.destination = seen(world.locked_by_several(least, most), true);
        assert_eq!(world.status(), status, "{least} {most}");
    }
}

#[test]
fn a_solver_that_takes_its_payment_back_is_no_reason_to_release() {
    let mut world = World::funded();
    world.observed.destination = seen(refunded(), true);
    world.observed.release = Err(Hold::Refunded);
    assert!(matches!(world.decide(), (Status::AwaitingRefund { .. }, None)));
    assert_eq!(world.status(), Status::AwaitingRefund { reason: Hold::Refunded });
}
