//! When an order is signed and paid, and when it is not.

use super::*;
use countersign_client::countersign::{Family, chains::UnixTime};
use countersign_client::driver::PaymentFate;

#[test]
fn without_its_secret_an_order_is_not_paid() {
    for is_signed in [false, true] {
        let mut world = World::new();
        if is_signed {
            world.wrote([signed(Purpose::Funding)]);
        }
        world.kept.secret = None;
        assert_eq!(world.decide(), (Status::NeedsOwner { what: OwnerTask::Secret }, None));
        world.capabilities.secret_is_elsewhere = true;
        assert!(world.action().is_some());
    }
}

#[test]
fn an_order_without_a_deadline_is_not_paid() {
    let mut world = World::new();
    world.wrote([signed(Purpose::Funding)]);
    world.observed.deadline = None;
    assert_ne!(world.action(), Some(Action::Pay(Delivery::Funding)));
}

#[test]
fn an_approval_is_no_payment() {
    let mut world = World::new();
    let Event::Signed { purpose, transactions, .. } = signed(Purpose::Funding) else { unreachable!() };
    world.wrote([Event::Signed { purpose, transactions, gasless: Some("0x".to_owned()) }, Event::OnChain { what: Delivery::Funding }]);
    assert_eq!(world.decide(), (Status::Paying, Some(Action::Pay(Delivery::Gasless))));
    world.observed.now = UnixTime::from_secs(DEADLINE - 1);
    assert_eq!(world.action(), Some(Action::End(Outcome::Expired)), "nothing was paid, and it is too late");
}

#[test]
fn an_order_past_its_deadline_is_not_paid() {
    for (left, action) in [(0, None), (60, None), (61, Some(Action::Sign))] {
        let mut world = World::new();
        world.observed.now = UnixTime::from_secs(DEADLINE - left);
        assert_eq!(world.action(), action, "{left} s left");
        assert_eq!(world.status() == Status::Expired, action.is_none(), "{left} s left");
    }
    // A payment that was signed in time is not sent too late either.
    let mut world = World::new();
    world.wrote([signed(Purpose::Funding)]);
    world.observed.now = UnixTime::from_secs(DEADLINE - 30);
    assert_eq!(world.action(), Some(Action::End(Outcome::Expired)));
    // What the owner was handed to broadcast may be on its way, whatever is connected later.
    world.wrote([Event::sending(Delivery::Funding)]);
    assert_eq!(world.decide(), (Status::Paying, None));
    // That the service has received nothing does not prove that nothing was paid.
    let mut world = World::new();
    world.observed.source = LegObservation::Stated(HtlcState::Absent);
    world.observed.now = UnixTime::from_secs(DEADLINE);
    assert_eq!(world.decide(), (Status::Expired, None));
    world.observed.now = UnixTime::from_secs(DEADLINE + 24 * 3_600 + 1);
    assert_eq!(world.action(), Some(Action::End(Outcome::Expired)));
}

/// Actions after the end count, whatever is stated later.
#[test]
fn an_order_that_was_opened_again_does_not_end_by_a_statement() {
    let mut world = World::funded();
    world.wrote([signed(Purpose::Funding), Event::Ended { outcome: Outcome::Expired }]);
    world.observed.source = LegObservation::Stated(HtlcState::Absent);
    assert_eq!(world.decide(), (Status::Ended { outcome: Outcome::Expired }, None));
    world.observed.source = LegObservation::Stated(world.locked(3));
    assert_eq!(world.action(), OWN);
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption), Event::sending(Delivery::Redemption)]);
    world.observed.source = LegObservation::Stated(HtlcState::Absent);
    assert!(matches!(world.action(), Some(Action::Redeem { .. })), "{:?}", world.decide());
}

/// Another copy of the store may have paid, and what the solver has locked is the owner's then.
#[test]
fn an_order_does_not_end_while_something_is_left_for_its_owner() {
    for is_signed in [false, true] {
        let mut world = World::new();
        if is_signed {
            world.wrote([signed(Purpose::Funding)]);
        }
        world.observed.now = UnixTime::from_secs(DEADLINE + 24 * 3_600 + 1);
        assert_eq!(world.action(), Some(Action::End(Outcome::Expired)));
        for destination in [seen(world.locked(3), true), seen(redeemed(false), false)] {
            world.observed.destination = destination;
            assert_eq!(world.action(), None);
        }
    }
}

#[test]
fn nothing_is_signed_or_paid_on_an_old_or_refused_record() {
    for is_signed in [false, true] {
        let mut world = World::new();
        if is_signed {
            world.wrote([signed(Purpose::Funding)]);
        }
        world.observed.record = RecordObservation::Unknown("502".to_owned());
        assert_eq!(world.action(), None);
        world.observed.record = RecordObservation::Refused(Refusal::new(Code::RecordChanged, "/order/destination_swap/timelock"));
        assert!(matches!(world.decide(), (Status::Refused { .. }, None)));
    }
}

#[test]
fn what_was_signed_is_sent_again_and_nothing_else_is_signed() {
    let mut world = World::new();
    world.wrote([signed(Purpose::Funding), Event::sending(Delivery::Funding)]);
    assert_eq!(world.action(), Some(Action::Pay(Delivery::Funding)), "the outcome is unknown: the same transaction goes again");
    // This holds whatever the service claims to have received.
    world.observed.source = LegObservation::Stated(HtlcState::Absent);
    assert_eq!(world.action(), Some(Action::Pay(Delivery::Funding)));
    world.observed.now = UnixTime::from_secs(DEADLINE + 1);
    assert_eq!(world.action(), None, "too late: it would lock the funds for nothing");
}

/// Endpoints may accept a payment and drop it.
#[test]
fn a_payment_that_its_chain_does_not_show_is_sent_again() {
    let sent = [signed(Purpose::Funding), Event::sending(Delivery::Funding), Event::Sent { what: Delivery::Funding }];
    let mut world = World::new();
    world.wrote(sent.clone());
    assert_eq!(world.action(), Some(Action::Pay(Delivery::Funding)));
    world.observed.now = UnixTime::from_secs(902);
    assert_eq!(world.action(), None, "it was sent two seconds ago");
    // A chain that cannot be read shows nothing, and the service is not asked.
    world.observed.now = UnixTime::from_secs(1_000);
    for unseen in [LegObservation::Unknown("no answer".to_owned()), LegObservation::Stated(HtlcState::Absent)] {
        world.observed.source = unseen;
        assert_eq!(world.action(), None);
    }
    // Transactions that only approve are followed by the gasless message, which the service must not get twice.
    let mut world = World::new();
    let Event::Signed { purpose, transactions, .. } = signed(Purpose::Funding) else { unreachable!() };
    world.wrote([Event::Signed { purpose, transactions, gasless: Some("0x".to_owned()) }]);
    world.wrote(sent.map(|event| if matches!(event, Event::Signed { .. }) { Event::OnChain { what: Delivery::Funding } } else { event }));
    world.wrote([Event::sending(Delivery::Gasless), Event::Sent { what: Delivery::Gasless }]);
    assert_eq!(world.decide(), (Status::Paying, None));
}

#[test]
fn a_payment_from_elsewhere_is_looked_for_and_given_up_at_last() {
    let mut world = World::new();
    world.wrote([Event::sending(Delivery::Funding)]);
    assert_eq!(world.decide(), (Status::Paying, None));
    world.observed.now = UnixTime::from_secs(DEADLINE + 24 * 3_600 + 1);
    assert_eq!(world.action(), Some(Action::End(Outcome::Expired)));
    // Without reading the chain, never.
    world.observed.source = LegObservation::Stated(HtlcState::Absent);
    assert_eq!(world.decide(), (Status::Paying, None));
}

#[test]
fn what_the_driver_cannot_broadcast_is_handed_to_the_owner() {
    let mut world = World::new();
    world.wrote([signed(Purpose::Funding)]);
    world.capabilities.source_connected = false;
    let handed = Status::NeedsOwner { what: OwnerTask::BroadcastFunding };
    assert_eq!(world.decide(), (handed.clone(), Some(Action::HandOut(Delivery::Funding))), "written down before it is handed out");
    world.wrote([Event::sending(Delivery::Funding)]);
    assert_eq!(world.decide(), (handed, None));
    let mut world = World::funded();
    world.wrote([Event::SecretLeaving { path: SecretRoute::Own }, signed(Purpose::Redemption)]);
    world.capabilities.destination_connected = false;
    assert_eq!(world.decide(), (Status::NeedsOwner { what: OwnerTask::BroadcastRedemption }, None));
    assert_eq!(json!(world.status()), json!({"status": "needs_owner", "what": "broadcast_redemption"}));
}

/// A destination that is already used or old is not paid for.
#[test]
fn an_order_whose_destination_is_used_up_is_not_paid() {
    let cases: [(HtlcState, Hold, Code); 3] = [
        (redeemed(true), Hold::Redeemed, Code::RecordSecretKnown),
        (refunded(), Hold::Refunded, Code::RecordRefunded),
        (World::new().locked(1_000_000), Hold::NoTime { left: 0, needed: 6, unit: "blocks" }, Code::DestinationTimelockShort),
    ];
    for (state, hold, code) in cases {
        for is_signed in [false, true] {
            let mut world = World::new();
            if is_signed {
                world.wrote([signed(Purpose::Funding)]);
            }
            world.observed.destination = seen(state.clone(), false);
            world.observed.release = Err(hold.clone());
            let (status, action) = world.decide();
            assert!(matches!(&status, Status::Refused { refusal } if refusal.code() == code), "{status:?}");
            assert_eq!(action, None);
        }
    }
    // One that the solver has just paid is.
    let mut world = World::new();
    world.observed.destination = seen(world.locked(3), false);
    world.observed.release = Err(Hold::NotFinal { reached: "1 block deep".to_owned(), needed: "safe".to_owned() });
    assert_eq!(world.action(), Some(Action::Sign));
}

/// A public secret with nothing to redeem is not a reason to alert anyone.
#[test]
fn an_unpaid_order_whose_secret_is_public_is_refused_and_nobody_is_called() {
    let mut world = World::new();
    world.observed.public_secret = Some([1; 32]);
    let (status, action) = world.decide();
    assert!(matches!(&status, Status::Refused { refusal } if refusal.code() == Code::RecordSecretKnown), "{status:?}");
    assert_eq!(action, None);
    // Whatever the solver has locked nevertheless belongs to the owner.
    world.observed.destination = seen(world.locked(3), true);
    assert_eq!(world.action(), Some(Action::Redeem { path: SecretRoute::Own, is_urgent: true }));
}

#[test]
fn nothing_is_signed_or_sent_while_a_connected_chain_cannot_be_used() {
    for is_signed in [false, true] {
        let mut world = World::new();
        if is_signed {
            world.wrote([signed(Purpose::Funding)]);
        }
        assert_ne!(world.action(), None);
        world.observed.heads = Err("its newest block is 2400 s old".to_owned());
        assert_eq!(world.action(), None);
    }
}

/// Endpoints that fail must not make the driver forget what another copy of the store, or another wallet, may have paid.
#[test]
fn an_order_does_not_end_unpaid_while_its_source_cannot_be_read() {
    for events in [vec![], vec![signed(Purpose::Funding)]] {
        let mut world = World::new();
        for event in events {
            world.wrote([event]);
        }
        world.observed.source = LegObservation::Unknown("no answer".to_owned());
        world.observed.now = UnixTime::from_secs(DEADLINE + 48 * 3_600);
        assert_eq!(world.action(), None);
    }
}

/// An HTLC that evidence cannot judge is not paid, on either side.
#[test]
fn an_order_that_cannot_be_judged_is_not_paid() {
    let unclear = || seen(HtlcState::Unclear("the contract's token is not the pinned one".to_owned()), false);
    for is_signed in [false, true] {
        for is_source in [false, true] {
            let mut world = World::new();
            if is_signed {
                world.wrote([signed(Purpose::Funding)]);
            }
            *(if is_source { &mut world.observed.source } else { &mut world.observed.destination }) = unclear();
            let (status, action) = world.decide();
            assert!(matches!(&status, Status::Refused { refusal } if refusal.code() == Code::CannotBeJudged), "{status:?}");
            assert_eq!(action, None);
            // An address is not a contract. Dust at it is not a reason against paying.
            (world.observed.source_family, world.observed.destination_family) = (Some(Family::Bitcoin), Some(Family::Bitcoin));
            assert!(world.action().is_some());
        }
    }
}

fn rejected(is_rejected: bool) -> Event {
    Event::NotSent { what: Delivery::Funding, error: "min relay fee not met".to_owned(), is_rejected }
}

/// As many endpoints as must agree rejected it, and none accepted it.
#[test]
fn a_rejected_payment_is_signed_again_once() {
    let mut world = World::new();
    world.observed.source_family = Some(Family::Evm);
    world.wrote([signed(Purpose::Funding), Event::sending(Delivery::Funding), rejected(true)]);
    assert_eq!(world.decide(), (Status::Unsigned, Some(Action::Sign)));
    // A Bitcoin-like address can be paid twice.
    world.observed.source_family = Some(Family::Bitcoin);
    assert_eq!(world.action(), Some(Action::Pay(Delivery::Funding)));
    world.observed.source_family = Some(Family::Evm);
    // A transaction that someone may have accepted is sent again.
    for taken in [rejected(false), Event::Sent { what: Delivery::Funding }, Event::PaymentLeaving] {
        let mut world = World::new();
        world.observed.source_family = Some(Family::Evm);
        world.wrote([signed(Purpose::Funding), Event::sending(Delivery::Funding), rejected(true), taken, rejected(true)]);
        assert_eq!(world.action(), Some(Action::Pay(Delivery::Funding)));
    }
    // The new one goes out at once. If that is rejected as well, the order waits for its end, which is certain a day after the deadline.
    world.kept.journal.push(Entry { at: UnixTime::from_secs(990), event: signed(Purpose::Funding) });
    assert_eq!(world.action(), Some(Action::Pay(Delivery::Funding)));
    world.wrote([Event::sending(Delivery::Funding), rejected(true)]);
    assert_eq!(world.action(), Some(Action::Pay(Delivery::Funding)));
    world.observed.now = UnixTime::from_secs(DEADLINE + 24 * 3_600);
    assert_eq!(world.decide(), (Status::Paying, None));
    world.observed.now = UnixTime::from_secs(DEADLINE + 24 * 3_600 + 1);
    assert_eq!(world.action(), Some(Action::End(Outcome::Expired)));
    world.observed.source = LegObservation::Unknown("no answer".to_owned());
    assert_eq!(world.action(), None);
}

/// The chain itself proves that it can never be included.
#[test]
fn a_dead_payment_is_signed_again_in_time_and_ends_afterwards() {
    let mut world = World::new();
    world.wrote([signed(Purpose::Funding), Event::sending(Delivery::Funding), Event::Sent { what: Delivery::Funding }]);
    world.observed.payment = PaymentFate::Dead("its blockhash is over".to_owned());
    for family in [Family::Bitcoin, Family::Solana] {
        world.observed.source_family = Some(family);
        assert_eq!(world.decide(), (Status::Unsigned, Some(Action::Sign)));
    }
    // Under the conditions of a first payment.
    world.observed.record = RecordObservation::Unknown("503".to_owned());
    assert_eq!(world.action(), None);
    world.observed.now = UnixTime::from_secs(DEADLINE);
    assert_eq!(world.action(), Some(Action::End(Outcome::Expired)), "nothing was paid, and nothing can be");
    // Only where the source chain shows nothing.
    for source in [seen(world.locked(1), false), LegObservation::Unknown("no answer".to_owned()), LegObservation::Stated(HtlcState::Absent)]
    {
        world.observed.source = source;
        assert_ne!(world.action(), Some(Action::End(Outcome::Expired)));
    }
}

/// A payment on Bitcoin that was sent at 900 and is overdue from 2,700 on, three blocks later.
fn overdue(source: LegObservation) -> World {
    let mut world = World::new();
    world.wrote([signed(Purpose::Funding), Event::sending(Delivery::Funding), Event::Sent { what: Delivery::Funding }]);
    (world.observed.source_family, world.observed.source) = (Some(Family::Bitcoin), source);
    world.observed.payment_overdue_from = Some(UnixTime::from_secs(2_700));
    world.observed.now = UnixTime::from_secs(2_700);
    world
}

/// Whether the nodes know it or have dropped it, in no block it is signed again, with the same coins.
#[test]
fn an_overdue_payment_on_bitcoin_is_raised_before_the_deadline() {
    let unclear = HtlcState::Unclear("no unspent output of the address".to_owned());
    let unconfirmed = [seen(World::new().locked(0), false), seen(HtlcState::Absent, false), seen(unclear, false)];
    for source in unconfirmed.clone() {
        let mut world = overdue(source);
        assert_eq!(world.decide(), (Status::Paying, Some(Action::Raise)));
        world.observed.now = UnixTime::from_secs(2_699);
        assert_ne!(world.action(), Some(Action::Raise), "not overdue");
        // A payment that confirms after the deadline would only lock the funds.
        world.observed.now = UnixTime::from_secs(DEADLINE - 61);
        assert_eq!(world.action(), Some(Action::Raise));
        world.observed.now = UnixTime::from_secs(DEADLINE - 60);
        assert_eq!(world.decide().1, None);
    }
    type Change = fn(&mut World);
    let changes: [(&str, Change); 10] = [
        ("in a block", |world| world.observed.source = seen(world.locked(1), false)),
        ("final", |world| world.observed.source = seen(world.locked(0), true)),
        ("stated", |world| world.observed.source = LegObservation::Stated(world.locked(0))),
        ("not known", |world| world.observed.source = LegObservation::Unknown("no answer".to_owned())),
        ("another family", |world| world.observed.source_family = Some(Family::Evm)),
        ("no connection", |world| world.capabilities.source_connected = false),
        ("not sent yet", |world| world.wrote([payment("0x03", &["other:0"])])),
        ("perhaps paid by a signer", |world| world.wrote([Event::PaymentLeaving])),
        ("paid by the solver", |world| world.observed.destination = seen(world.locked(1), true)),
        ("no deadline", |world| world.observed.deadline = None),
    ];
    for (why, change) in changes {
        for source in unconfirmed.clone() {
            let mut world = overdue(source);
            change(&mut world);
            assert_ne!(world.action(), Some(Action::Raise), "{why}");
        }
    }
}

/// Each attempt waits longer than the one before, and the payments that the journal keeps are all that are made.
#[test]
fn a_payment_is_raised_with_pauses_and_not_without_end() {
    let mut world = overdue(seen(World::new().locked(0), false));
    world.kept.journal.push(Entry { at: UnixTime::from_secs(2_698), event: Event::sending(Delivery::Funding) });
    assert_ne!(world.action(), Some(Action::Raise), "sent a moment ago");
    let mut world = overdue(seen(World::new().locked(0), false));
    for payments in 1..=16 {
        assert_eq!(world.action() == Some(Action::Raise), payments < 16, "{payments}");
        world.wrote([payment(&format!("{payments:#x}a"), &["coin:0"]), Event::Sent { what: Delivery::Funding }]);
    }
}

/// A payment that spends coins.
fn payment(id: &str, coins: &[&str]) -> Event {
    let Event::Signed { purpose, mut transactions, gasless } = signed(Purpose::Funding) else { unreachable!() };
    (transactions[0].id, transactions[0].spends) = (id.to_owned(), coins.iter().map(|coin| (*coin).to_owned()).collect());
    Event::Signed { purpose, transactions, gasless }
}

/// The process ended between the signature and the broadcast, or the nodes rejected it: the one before is out, and may still be mined.
#[test]
fn a_raise_that_was_not_sent_keeps_the_payment_before_it_alive() {
    for coins in [["coin:0"], ["other:0"]] {
        let mut world = World::new();
        world.wrote([payment("0x01", &["coin:0"]), Event::sending(Delivery::Funding), Event::Sent { what: Delivery::Funding }]);
        world.wrote([payment("0x02", &coins)]);
        let shares = coins == ["coin:0"];
        assert_eq!(world.kept.newest_payment_may_be_sent(), shares);
        assert_eq!(world.kept.payments().map(|payments| payments.len()), Some(2));
        (world.observed.source_family, world.observed.source) = (Some(Family::Bitcoin), seen(HtlcState::Absent, false));
        world.observed.payment_overdue_from = Some(world.observed.now);
        assert_eq!(world.action() == Some(Action::Raise), shares);
    }
}

/// What a signer that sends by itself has done is not known, so no proof about the payments that are known ends the order or pays again.
#[test]
fn a_payment_that_a_signer_may_have_sent_is_never_dead() {
    let mut world = World::new();
    world.wrote([signed(Purpose::Funding), Event::sending(Delivery::Funding), Event::PaymentLeaving, Event::sending(Delivery::Funding)]);
    assert_eq!(world.kept.payments(), None);
    world.wrote([Event::PaymentStayed]);
    assert_eq!(world.kept.payments().map(|payments| payments.len()), Some(1));
}

/// Such a payment is neither proven nor disproven, so the order would never end by a proof. The one before it was rejected.
#[test]
fn another_payment_that_a_signer_got_ends_a_day_after_the_deadline() {
    for replied in [Event::sending(Delivery::Funding), Event::PaymentStayed] {
        let mut world = World::new();
        world.observed.source_family = Some(Family::Evm);
        world.wrote([signed(Purpose::Funding), Event::sending(Delivery::Funding), rejected(true), Event::PaymentLeaving, replied]);
        world.observed.now = UnixTime::from_secs(DEADLINE + 24 * 3_600);
        assert_eq!(world.decide(), (Status::Paying, None));
        world.observed.now = UnixTime::from_secs(DEADLINE + 24 * 3_600 + 1);
        assert_eq!(world.action(), Some(Action::End(Outcome::Expired)));
        // Unless somebody has paid, or may have.
        for (source, destination) in
            [(world.locked(1), HtlcState::Absent), (HtlcState::Absent, world.locked(1)), (world.locked(1), world.locked(1))]
        {
            (world.observed.source, world.observed.destination) = (seen(source, true), seen(destination, true));
            assert_ne!(world.action(), Some(Action::End(Outcome::Expired)));
        }
        // One that is signed here afterwards may still be mined.
        world.observed.source = seen(HtlcState::Absent, false);
        world.observed.destination = seen(HtlcState::Absent, false);
        world.wrote([signed(Purpose::Funding), Event::sending(Delivery::Funding)]);
        assert_eq!(world.decide(), (Status::Paying, None));
    }
}

/// A clock that was ahead when the payment was signed, and is right again.
#[test]
fn a_clock_that_was_set_back_does_not_stop_a_raise() {
    let mut world = overdue(seen(HtlcState::Absent, false));
    world.observed.payment_overdue_from = Some(UnixTime::from_secs(DEADLINE));
    world.observed.now = UnixTime::from_secs(899);
    assert_eq!(world.action(), Some(Action::Raise));
}
