//! Tests the last answer that is accepted, the first that is refused, and answers that only look right.

use countersign_core::chains::Network;
use countersign_core::reader::{Agree, Fault, Known, Sending};
use countersign_sui::reader::{On, Package, PackageDescription, Sender, UpgradeAuthority};
use countersign_sui::sui_sdk_types::Address;
use countersign_testkit::chain::sui::proto::{Message, answer, frame};
use countersign_testkit::chain::sui::{Executed, Ledger, NOW, Object, digest_of, package_id};

use super::htlc::{locked, malformed_at};
use super::lies::{METHODS, honest, http, lied, message, with_header};
use super::send::{network, submission};
use super::*;

const MALFORMED: &str = "node_malformed";

#[test]
fn a_message_has_at_most_1_mib() {
    let ledger = Ledger::funded();
    for about in METHODS {
        let own = message(&honest(&ledger, about));
        // An unknown field: three bytes for its number, three for its length.
        let filled = |length: usize| {
            let filler = Message::default().bytes(9_000, &vec![0; length - own.len() - 6]);
            let whole = Message([own.as_slice(), &filler.0].concat());
            assert_eq!(whole.0.len(), length);
            lied(&ledger, about, &http(answer(&whole)))
        };
        assert!(matches!(filled(1 << 20), Ok(HtlcState::Locked(_))), "{about}");
        assert_eq!(filled((1 << 20) + 1).unwrap_err().code().name(), MALFORMED, "{about}");
    }
}

/// The HTTP header comes before the body, so it cannot say that the body is whole.
#[test]
fn a_status_in_the_header_repeats_that_of_the_trailers_and_does_not_replace_it() {
    let ledger = Ledger::funded();
    for about in METHODS {
        let body = honest(&ledger, about);
        assert!(matches!(lied(&ledger, about, &with_header(body.clone(), "0")), Ok(HtlcState::Locked(_))), "{about}");
        let cut = with_header(frame(0, &message(&body)), "0");
        assert_eq!(lied(&ledger, about, &cut).unwrap_err().code().name(), MALFORMED, "{about}");
        for status in ["", "+0", "-0", "0.0", "99999999999999999999"] {
            let told = lied(&ledger, about, &with_header(body.clone(), status));
            assert_eq!(told.unwrap_err().code().name(), MALFORMED, "{about}: {status}");
        }
    }
}

/// A user who contacts the node's operator needs the reason.
#[test]
fn a_malformed_body_is_described() {
    let ledger = Ledger::funded();
    let own = message(&honest(&ledger, "GetCheckpoint"));
    let (whole, trailers) = (frame(0, &own), frame(0x80, b"grpc-status:0\r\n"));
    for (body, reason) in [
        ([&whole[..], &whole, &trailers].concat(), "more than one message"),
        ([&frame(1, &own)[..], &trailers].concat(), "not in gRPC-web frames"),
        ([&whole[..], &trailers, &whole].concat(), "continues after its trailers"),
        (whole.clone(), "ends before its trailers"),
        (trailers.clone(), "has no message"),
        (whole[..7].to_vec(), "ends too early"),
        ([&whole[..], &frame(0x80, b"grpc-status:0\r\ngrpc-status:0\r\n")].concat(), "more than one status"),
        ([&whole[..], &frame(0x80, b"grpc-message:x\r\n")].concat(), "have no status"),
    ] {
        let told = lied(&ledger, "GetCheckpoint", &http(body)).unwrap_err().to_string();
        assert!(told.contains(reason), "{told}");
    }
}

#[test]
fn the_time_of_a_checkpoint_has_less_than_a_second_of_nanoseconds() {
    let elapsed = |nanos: u64| changed(|ledger| ledger.time = (NOW - 3, nanos)).map(|found| locked(found.state).elapsed);
    let whole = elapsed(0).unwrap();
    for (nanos, millis) in [(999_999, 0), (1_000_000, 1), (999_999_999, 999)] {
        assert_eq!(elapsed(nanos), Ok(whole + millis), "{nanos}");
    }
    for nanos in [1_000_000_000, u64::MAX] {
        assert_eq!(malformed_at(&elapsed(nanos).unwrap_err()), "/checkpoint/summary/timestamp", "{nanos}");
    }
}

/// An order contains its own id and that of its object. The node returned another order under the requested id.
#[test]
fn an_object_with_another_order_is_unclear() {
    for bytes in [&[0][..], &[31], &[33], &[64], &[0, 33]] {
        let other = changed(|ledger| bytes.iter().for_each(|at| ledger.objects[0].contents[*at] ^= 1));
        assert_eq!(unclear(other), "the object holds another order", "{bytes:?}");
    }
}

#[test]
fn an_event_with_another_amount_contradicts_the_order() {
    for at in 66..74 {
        let other = changed(|ledger| ledger.transactions[0].events[1].1[at] ^= 1);
        assert_eq!(unclear(other), "the events contradict the order", "{at}");
    }
}

// ---- packages

const CAPABILITY: Address = Address::new([0xca; 32]);
const OWNER: Address = Address::new([0xaa; 32]);

/// Describes the pinned package, whose publishing changed these objects.
fn described(changed: Vec<(Address, String)>, owner: Message) -> Result<PackageDescription, Fault> {
    let mut ledger = Ledger::funded();
    ledger.transactions.push(Executed { changed, ..Executed::new(digest_of(4)) });
    let contents = [CAPABILITY.as_bytes(), package_id().as_bytes(), &[1, 0, 0, 0, 0, 0, 0, 0], &[128]].concat();
    let kind = "0x2::package::UpgradeCap".to_owned();
    ledger.objects.push(Object { id: Some(CAPABILITY), kind, owner: Some(owner), contents, ..Object::default() });
    let on = On::new(network(), package_id());
    let (description, _) = drive::<Package>(&on, &Known::default(), |_, request| ledger.answer(request));
    description.map(|description| description.key().expect("a package"))
}

fn owned(kind: u64) -> Message {
    Message::default().number(1, kind).text(2, &OWNER.to_string())
}

fn capability() -> (Address, String) {
    (CAPABILITY, "0x2::package::UpgradeCap".to_owned())
}

fn authority(changed: Vec<(Address, String)>, owner: Message) -> Option<(Address, Option<Address>, u8)> {
    let authority = described(changed, owner).unwrap().upgrade_authority;
    authority.map(|UpgradeAuthority { capability, owner, policy, .. }| (capability, owner, policy))
}

/// Everybody can define a type with this name, or in a module with this name.
#[test]
fn only_the_frameworks_capability_upgrades_a_package() {
    let other = Address::new([0xcb; 32]);
    let others = ["0x7::package::UpgradeCap", "0x2::coin::UpgradeCap", "0x2::package::Publisher", "0x7::coin::UpgradeCap", "package"];
    let others: Vec<_> = others.map(|kind| (other, kind.to_owned())).into();
    assert_eq!(authority(others.clone(), owned(1)), None);
    assert_eq!(authority([others, vec![capability()]].concat(), owned(1)), Some((CAPABILITY, Some(OWNER), 128)));
}

/// Who controls an object that owns the capability is not known.
#[test]
fn only_an_account_is_named_as_the_owner_of_the_capability() {
    assert_eq!(authority(vec![capability()], owned(1)), Some((CAPABILITY, Some(OWNER), 128)));
    for owner in [owned(2), owned(3), owned(4), Message::default(), Message::default().text(2, &OWNER.to_string())] {
        assert_eq!(authority(vec![capability()], owner), Some((CAPABILITY, None, 128)));
    }
}

#[test]
fn a_transaction_changes_at_most_2048_objects() {
    let changed = |count: usize| [vec![(Address::ZERO, "0x7::a::B".to_owned()); count], vec![capability()]].concat();
    assert_eq!(authority(changed(2_047), owned(1)), Some((CAPABILITY, Some(OWNER), 128)));
    assert_eq!(malformed_at(&described(changed(2_048), owned(1)).unwrap_err()), "/transaction/effects/changed_objects");
}

/// A sent transaction may contain the secret, so only its id is shown.
#[test]
fn a_transaction_that_is_sent_is_shown_by_its_id() {
    let submission = submission();
    assert_eq!(submission.network, Network::Sui("testnet".to_owned()));
    let sender = Sender::decode(&submission, &Known::default()).unwrap();
    assert_eq!(format!("{sender:?}"), format!("Sender({})", submission.id));
}
