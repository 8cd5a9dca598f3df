//! A row for each rule of following: what is heard, and what follows.

use countersign::{Code, Registry, chains::UnixTime, evidence::Hold};
use countersign_testkit::lines::accepted_case;

use super::super::journal::{Delivery, Entry, Event, SecretRoute};
use super::super::kept::StoreError;
use super::super::parties::OwnerError;
use super::super::progress::ServiceStatement;
use super::*;
use crate::stored::CreatedOrder;

const SECRET: &str = "8cb8a02d5592b0b1556978e1d778b7eff2c23519b8aa65970fa6ac3daa33fb40";

/// An order that nobody has paid.
fn kept() -> OrderState {
    let tree = accepted_case("evm-record-evm-v2").tree();
    let text = |at: &str| tree.at(at).unwrap().text();
    let request = countersign::CreateOrder::from_json(text("/request").as_bytes()).unwrap();
    OrderState::new(CreatedOrder::new(request, text("/response")).unwrap(), None)
}

fn with(events: impl IntoIterator<Item = Event>) -> OrderState {
    let mut kept = kept();
    kept.journal.extend(events.into_iter().map(|event| Entry { at: UnixTime::from_secs(1), event }));
    kept
}

/// An order whose payment was sent.
fn paid() -> OrderState {
    with([Event::sending(Delivery::Funding)])
}

/// An order whose payment and secret were sent.
fn released() -> OrderState {
    with([Event::sending(Delivery::Funding), Event::SecretLeaving { path: SecretRoute::Relayer }])
}

/// The record of the order under a known secret.
fn record(secret: &str) -> OrderRecord {
    let tree = accepted_case("evm-record-evm-v2").tree();
    let mut record = OrderRecord::from_json(tree.at("/order").unwrap().text().as_bytes()).unwrap();
    let hash = Secret::parse(SECRET).unwrap().hash();
    (record.source_swap.secret_hash, record.destination_swap.secret_hash) = (hash, hash);
    record.source_swap.secret = Some(secret.to_owned()).filter(|secret| !secret.is_empty());
    record
}

fn status_of(state: State, is_complete: bool) -> crate::status::Status {
    let mut status = crate::status::Status::from_record(&record(""), &Registry::default(), UnixTime::EPOCH);
    (status.state, status.complete) = (state, is_complete);
    status
}

/// A step that did nothing, on an order that is not known to be paid.
fn rest(status: Status) -> Progress {
    Progress::new(status)
}

impl Progress {
    fn stating(self, state: State, is_complete: bool) -> Self {
        self.stating_with(state, is_complete, "")
    }

    fn stating_with(self, state: State, is_complete: bool, secret: &str) -> Self {
        Self { stated: Some(Box::new(ServiceStatement { record: record(secret), status: status_of(state, is_complete) })), ..self }
    }

    fn failing(self) -> Self {
        Self { trouble: Some(Trouble::Failed("no answer".to_owned())), ..self }
    }
}

fn unclear() -> Status {
    Status::Waiting { on: WaitingFor::Evidence(Hold::Unclear("too few endpoints agree".to_owned())) }
}

/// Who trusts the service, and is connected to the source and to the destination.
fn following(trusts: bool, source_connected: bool, destination_connected: bool) -> Following {
    Following { trusts, source_connected, destination_connected, is_paid: false, is_alarmed: false, told: BTreeSet::new() }
}

fn alone() -> Following {
    following(false, false, false)
}

#[track_caller]
fn check(mut following: Following, kept: &OrderState, result: Result<Progress, DriveError>, alerts: &[Alert], stop: Option<Stop>) {
    assert_eq!(following.hear(kept, &result), FollowStep { alerts: alerts.to_vec(), stop });
}

#[test]
fn an_order_that_ended_or_waits_for_its_owner_is_not_followed() {
    let refusal = Refusal::new(Code::RecordMismatch, "/order/order_id");
    let refused = || Status::Refused { refusal: refusal.clone() };
    let needs = |what| Status::NeedsOwner { what };
    for outcome in [Outcome::Complete, Outcome::Refunded, Outcome::Expired, Outcome::Lost] {
        check(alone(), &paid(), Ok(rest(Status::Ended { outcome })), &[], Some(Stop::Ended(outcome)));
    }
    check(alone(), &paid(), Ok(rest(needs(OwnerTask::Refund))), &[], Some(Stop::Owner(OwnerTask::Refund)));
    check(alone(), &kept(), Ok(rest(needs(OwnerTask::Secret))), &[], Some(Stop::Owner(OwnerTask::Secret)));
    // Not paid: nothing is at stake.
    check(alone(), &kept(), Ok(rest(Status::Unsigned)), &[], Some(Stop::NotSigned));
    check(alone(), &kept(), Ok(rest(Status::Expired)), &[], Some(Stop::Ended(Outcome::Expired)));
    check(alone(), &kept(), Ok(rest(refused())), &[], Some(Stop::Refused(refusal.clone())));
    // Paid, in the store or on chain: everything may still change.
    for status in [Status::Unsigned, Status::Expired, refused(), Status::Paying, Status::Redeeming, Status::Refunding, Status::Lost] {
        check(alone(), &paid(), Ok(rest(status.clone())), &[], None);
        check(alone(), &kept(), Ok(Progress { is_paid: true, ..rest(status.clone()) }), &[], None);
        check(alone(), &kept(), Ok(Progress { is_stated_paid: true, ..rest(status) }), &[], None);
    }
    // What was observed before an act says nothing about what is left to do.
    check(alone(), &paid(), Ok(Progress { acted: true, ..rest(needs(OwnerTask::Redeem)) }), &[], None);
}

#[test]
fn only_a_paid_order_is_followed_through_failures() {
    let unavailable = Some(Stop::Unavailable("no answer".to_owned()));
    for status in [Status::Unsigned, Status::Paying] {
        check(alone(), &kept(), Ok(rest(status.clone()).failing()), &[], unavailable.clone());
        // The failure may be that of sending the payment.
        check(alone(), &paid(), Ok(rest(status).failing()), &[Alert::MaybePaid], None);
    }
    // A chain that is not connected is not a failure.
    let missing = Progress { trouble: Some(Trouble::NotConnected("base".to_owned())), ..rest(Status::Paying) };
    check(alone(), &kept(), Ok(missing), &[], None);
    let busy = || DriveError::Store(StoreError::Busy);
    let unsigned = || DriveError::Owner(OwnerError::Unavailable("fees are unknown".to_owned()));
    let refused = || DriveError::Refused(Refusal::new(Code::RecordMismatch, ""));
    for error in [busy(), unsigned(), refused()] {
        check(alone(), &paid(), Err(error.clone()), &[Alert::Retrying], None);
        check(alone(), &kept(), Err(error.clone()), &[], Some(Stop::Failed(error)));
    }
    // Once paid, always paid: also if the store shows it no longer.
    let mut following = alone();
    following.hear(&kept(), &Ok(Progress { is_paid: true, ..rest(Status::Paying) }));
    assert_eq!(following.hear(&kept(), &Err(busy())).stop, None);
}

#[test]
fn the_alarm_is_told_once() {
    let mut following = alone();
    let mut hear = |status| following.hear(&released(), &Ok(rest(status))).alerts;
    assert_eq!(hear(Status::RedeemNow), [Alert::RedeemNow]);
    assert_eq!(hear(Status::Redeeming), []);
    assert_eq!(hear(Status::RedeemNow), []);
}

#[test]
fn evidence_is_needed_where_only_the_service_shows_the_payment() {
    let funded = || Ok(rest(unclear()).stating(State::AwaitingRedeem, false));
    check(alone(), &paid(), funded(), &[], Some(Stop::EvidenceNeeded));
    check(following(false, true, false), &paid(), funded(), &[], Some(Stop::EvidenceNeeded));
    check(following(true, false, false), &paid(), funded(), &[], None);
    check(following(false, false, true), &paid(), funded(), &[], None);
    check(alone(), &paid(), Ok(rest(unclear()).stating(State::Initiated, false)), &[], None);
    let other = Status::Waiting { on: WaitingFor::Evidence(Hold::NotFunded) };
    check(alone(), &paid(), Ok(rest(other).stating(State::AwaitingRedeem, false)), &[], None);
}

#[test]
fn a_stated_end_counts_only_where_no_chain_is_connected_and_the_secret_agrees() {
    use StatedEnd::{Complete, Lost, Refunded};

    let doubt = |end| (vec![Alert::StatedOnly(end)], None);
    let ends = |end| (Vec::new(), Some(Stop::Stated(end)));
    let nothing = || (Vec::new(), None);
    let complete = || rest(Status::Redeeming).stating(State::Redeemed, true);
    let refunded = || rest(Status::Refunding).stating(State::Refunded, false);
    let lost = || rest(Status::Lost).stating(State::AwaitingRefund, false);
    let revealed = |progress: Progress, state, is_complete| progress.stating_with(state, is_complete, SECRET);
    for (row, (trusts, source, destination), kept, progress, (alerts, stop)) in [
        (1, (true, false, false), released(), complete(), ends(Complete)),
        (2, (true, true, false), released(), complete(), ends(Complete)),
        // The secret is still here, so nobody can have redeemed; or the record shows it.
        (3, (true, false, false), paid(), complete(), doubt(Complete)),
        (4, (true, false, false), paid(), revealed(complete(), State::Redeemed, true), ends(Complete)),
        (5, (true, false, false), paid(), complete().stating_with(State::Redeemed, true, &"a1".repeat(32)), doubt(Complete)),
        // Without trust the service's word does not end an order.
        (6, (false, false, false), released(), complete(), doubt(Complete)),
        // The word of the connected destination decides, and it is not said twice.
        (7, (true, false, true), released(), complete(), nothing()),
        (8, (true, false, false), paid(), refunded(), ends(Refunded)),
        // The destination has to be redeemed while the secret is out.
        (9, (true, false, false), released(), refunded(), doubt(Refunded)),
        (10, (true, false, false), paid(), revealed(refunded(), State::Refunded, false), doubt(Refunded)),
        // A connected destination may still be locked.
        (11, (true, false, true), paid(), refunded(), doubt(Refunded)),
        (12, (true, true, false), paid(), refunded(), nothing()),
        (13, (false, false, false), paid(), refunded(), doubt(Refunded)),
        // The driver has compared both legs: a loss counts without trust, if one of them is not connected.
        (14, (false, true, false), released(), lost(), ends(Lost)),
        (15, (false, true, true), released(), lost(), nothing()),
        (16, (false, true, false), paid(), lost(), doubt(Lost)),
        (17, (true, false, false), released(), rest(Status::Redeeming).stating(State::Lost, false), doubt(Lost)),
        // A payment that was sent from here does not expire, and an order that was not paid has nothing at stake.
        (18, (true, false, false), paid(), rest(Status::Paying).stating(State::Expired, false), nothing()),
        (19, (true, false, false), self::kept(), rest(Status::Paying).stating(State::Redeemed, true), nothing()),
    ] {
        let heard = following(trusts, source, destination).hear(&kept, &Ok(progress));
        assert_eq!(heard, FollowStep { alerts, stop }, "row {row}");
    }
    // Each doubt is told once, and what is certain still ends the order.
    let mut following = following(false, false, false);
    assert_eq!(following.hear(&paid(), &Ok(complete())).alerts, [Alert::StatedOnly(Complete)]);
    assert_eq!(following.hear(&paid(), &Ok(complete())), FollowStep::default());
    assert_eq!(following.hear(&paid(), &Ok(refunded())).alerts, [Alert::StatedOnly(Refunded)]);
    let needs = Status::NeedsOwner { what: OwnerTask::Redeem };
    let step = alone().hear(&released(), &Ok(rest(needs).stating(State::Redeemed, true)));
    assert_eq!(step, FollowStep { alerts: vec![Alert::StatedOnly(Complete)], stop: Some(Stop::Owner(OwnerTask::Redeem)) });
}

#[test]
fn a_status_states_an_end() {
    for (state, is_complete, end) in [
        (State::Lost, false, Some(StatedEnd::Lost)),
        (State::Redeemed, true, Some(StatedEnd::Complete)),
        // The service's own rule: the redemption is named, in a block or not.
        (State::RedeemDetected, true, Some(StatedEnd::Complete)),
        (State::Refunded, false, Some(StatedEnd::Refunded)),
        (State::Expired, false, Some(StatedEnd::Expired)),
        (State::AwaitingRedeem, false, None),
        (State::RefundDetected, false, None),
    ] {
        assert_eq!(StatedEnd::from_status(&status_of(state, is_complete)), end, "{state:?}");
    }
}
