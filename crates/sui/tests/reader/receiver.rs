//! Whether an account can be paid in a coin.

use countersign_core::reader::{Fault, Known};
use countersign_core::{Code, Refusal};
use countersign_sui::reader::{On, Receiver, ReceiverCheck};
use countersign_sui::sui_sdk_types::Address;
use countersign_testkit::chain::sui::proto::{Message, answer, members};
use countersign_testkit::chain::sui::{DENY_LIST_VERSION, Executed, Ledger, digest_of};

use super::lies::http;
use super::send::network;
use super::*;

const COIN: &str = "0x00000000000000000000000000000000000000000000000000000000000000c5::usd::USD";

fn receiver() -> On<Receiver> {
    On::new(network(), Receiver::new(Address::new([0xa5; 32]), &COIN.parse().unwrap(), DENY_LIST_VERSION, 1_094).unwrap())
}

fn ask(ledger: &Ledger) -> Result<Result<(), Refusal>, Fault> {
    let (found, asked) = drive::<ReceiverCheck>(&receiver(), &Known::default(), |_, request| ledger.answer(request));
    assert_eq!(asked, [["GetServiceInfo", "SimulateTransaction"]]);
    found.map(|observation| observation.into_output().0)
}

/// A node on which the transfer fails with a kind of `ExecutionError`.
fn failing(kind: Option<u64>, abort: Option<(&'static str, u64)>) -> Ledger {
    let transfer = Executed { success: false, reason: Some("why\u{1b}"), kind, abort, ..Executed::new(digest_of(8)) };
    Ledger { transfer: Ok(transfer), ..Ledger::funded() }
}

/// The bytes are those of @mysten/sui 1.45.2: `coin::zero`, the transfer of its result to the sender, and the two questions of the deny list,
/// with a budget of 5,000 units and 0.025 SUI and without gas coins.
#[test]
fn the_transfer_is_that_of_the_reference_sdk() {
    let word = |last: &str| format!("{}{last}", "00".repeat(32 - last.len() / 2));
    let (account, framework) = ("a5".repeat(32), word("02"));
    let coin = format!("0107{}037573640355534400", word("c5"));
    let contains = hex::encode(b"\x20deny_list_v2_contains_next_epoch");
    let is_paused = hex::encode(b"\x2fdeny_list_v2_is_global_pause_enabled_next_epoch");
    let expected: [&str; 6] = [
        // The account, and the shared object.
        &format!("0000020020{account}0101{}330400000000000000", word("0403")),
        // The commands: a coin of nothing, and its transfer.
        &format!("0400{framework}04636f696e047a65726f{coin}00"),
        "0101020000010000",
        &format!("00{framework}04636f696e{contains}{coin}02010100010000"),
        &format!("00{framework}04636f696e{is_paused}{coin}01010100"),
        // Sender, gas coins, gas owner, price, budget, expiration.
        &format!("{account}00{account}460400000000000070efd0010000000000"),
    ];
    let mut bodies = Vec::new();
    let (found, _) = drive::<ReceiverCheck>(&receiver(), &Known::default(), |_, request| {
        if let (true, Request::Post { body, .. }) = (method(request) == "SimulateTransaction", request) {
            bodies.push(body.to_vec());
        }
        Ledger::funded().answer(request)
    });
    assert!(found.is_ok());
    let [body] = bodies.as_slice() else { panic!("one simulation") };
    let member = |message: &[u8], field: u64| members(message).into_iter().find(|(tag, _)| *tag == field).unwrap().1;
    // `transaction.bcs.value`, and the paths of the mask.
    assert_eq!(hex::encode(member(&member(&member(&body[5..], 1), 1), 2)), expected.concat());
    let paths: Vec<_> = members(&member(&body[5..], 2)).into_iter().map(|(_, path)| String::from_utf8(path).unwrap()).collect();
    assert_eq!(paths, ["transaction.effects.status", "command_outputs"]);
}

#[test]
fn a_coin_that_denies_the_receiver_or_is_paused_is_told_from_other_failures() {
    assert_eq!(ask(&Ledger::funded()), Ok(Ok(())));
    let refused = |kind, abort| {
        let refusal = ask(&failing(kind, abort)).unwrap().unwrap_err();
        assert!(refusal.to_string().contains("why") && !refusal.to_string().contains('\u{1b}'), "{refusal}");
        assert_eq!(refusal.location(), "/destination");
        refusal.code()
    };
    for kind in [35, 36] {
        assert_eq!(refused(Some(kind), None), Code::ReceiverNotPayable, "{kind}");
    }
    for (next_epoch, expected) in [([true, false], "deny list"), ([false, true], "paused"), ([true, true], "deny list")] {
        let refusal = ask(&Ledger { next_epoch, ..Ledger::funded() }).unwrap().unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::ReceiverNotPayable, "/destination"));
        assert!(refusal.to_string().contains(expected) && refusal.to_string().contains("next epoch"), "{refusal}");
    }
    for (kind, abort) in [(None, None), (Some(0), None), (Some(1), None), (Some(13), Some(("coin", 8))), (Some(34), None), (Some(37), None)]
    {
        assert_eq!(refused(kind, abort), Code::SimulationReverted, "{kind:?}");
    }
}

#[test]
fn a_node_that_does_not_simulate_says_nothing() {
    for code in [3, 9, 12, 14] {
        let silent = Ledger { transfer: Err((code, "no")), ..Ledger::funded() };
        assert!(matches!(ask(&silent), Err(Fault::Rpc(_))), "{code}");
    }
    let nothing = Message::default();
    let without_status = Message::default().message(1, &Message::default().message(4, &nothing));
    let without_outcome = Message::default().message(1, &Message::default().message(4, &Message::default().message(4, &nothing)));
    for shown in [nothing.clone(), Message::default().message(1, &nothing), without_status, without_outcome] {
        let (found, _) = drive::<ReceiverCheck>(&receiver(), &Known::default(), |_, request| {
            if method(request) == "SimulateTransaction" { http(answer(&shown)) } else { Ledger::funded().answer(request) }
        });
        assert!(matches!(found, Err(Fault::Malformed(_))), "{shown:?}");
    }
}

/// Without the answers of the deny list, or with others than one for each command, nothing is known about the next epoch.
#[test]
fn the_deny_list_answers_with_a_bool_each() {
    let flag = |bytes: &[u8]| Message::default().message(1, &Message::default().message(2, &Message::default().bytes(2, bytes)));
    let (no, yes, nothing) = (flag(&[0]), flag(&[1]), Message::default());
    let read = |outputs: &[&Message]| {
        let shown = Message::default().message(1, &Executed::new(digest_of(8)).message()).all(2, outputs.iter().copied());
        let (found, _) = drive::<ReceiverCheck>(&receiver(), &Known::default(), |_, request| {
            if method(request) == "SimulateTransaction" { http(answer(&shown)) } else { Ledger::funded().answer(request) }
        });
        found.map(|observation| observation.into_output().0.map_err(|refusal| refusal.code()))
    };
    assert_eq!(read(&[&nothing, &nothing, &no, &no]), Ok(Ok(())));
    assert_eq!(read(&[&nothing, &nothing, &no, &yes]), Ok(Err(Code::ReceiverNotPayable)));
    let twice = Message([no.0.clone(), no.0.clone()].concat());
    let none: &[&Message] = &[];
    for outputs in [
        none,
        &[&nothing, &nothing, &no],
        &[&nothing, &nothing, &no, &nothing],
        &[&nothing, &nothing, &nothing, &no],
        &[&nothing, &nothing, &no, &no, &no],
        &[&nothing, &nothing, &flag(&[2]), &no],
        &[&nothing, &nothing, &flag(&[]), &no],
        &[&nothing, &nothing, &no, &flag(&[0, 0])],
        &[&nothing, &nothing, &no, &twice],
    ] {
        assert!(matches!(read(outputs), Err(Fault::Malformed(_))), "{outputs:?}");
    }
}
