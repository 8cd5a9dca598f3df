//! The wallet context, receipts, and the rehearsal of a redemption.

use countersign_core::reader::{Agree, Ask, Fault, Known, Machine, Question, Urgency};
use countersign_core::{Code, Role};
use countersign_sui::TxContext;
use countersign_sui::reader::{
    Balance, Check, CurrentEpoch, InitialSharedVersion, NewestCheckpoint, On, OwnedCoins, Package, Receipt, ReferenceGasPrice, Rehearsal,
    TransactionReceipt, WhereHeld, is_message,
};
use countersign_sui::recover::{self, Leg};
use countersign_sui::sui_sdk_types::{Address, Digest, ObjectReference};
use countersign_testkit::chain::sui::proto::{Message, answer, error};
use countersign_testkit::chain::sui::{
    EPOCH, Executed, HEAD, Ledger, NOW, Object, SUI, address, digest_of, made, package_id, shared_registry, word,
};
use countersign_testkit::recover::read_record;
use countersign_testkit::registry;

use super::htlc::malformed_at;
use super::lies::{http, with_header};
use super::send::network;
use super::{Answer, drive};

/// Asks a node one thing.
fn ask<S>(ledger: &Ledger, subject: S) -> Result<<On<S> as Question>::Output, Fault>
where
    On<S>: Question,
{
    let (answer, asked) = drive::<Ask<On<S>>>(&On::new(network(), subject), &Known::default(), |_, request| ledger.answer(request));
    assert_eq!(asked.len(), 1);
    answer.map(|observation| observation.into_output())
}

#[test]
fn the_context_is_what_the_node_says() {
    let mut ledger = Ledger::funded();
    ledger.balances = [(SUI.to_owned(), 42)].into();
    assert_eq!(ask(&ledger, ReferenceGasPrice).unwrap().0, 547);
    let of = |coin: &str| Balance { owner: Address::ZERO, coin_type: coin.parse().unwrap() };
    assert_eq!((ask(&ledger, of(SUI)).unwrap().0, ask(&ledger, of("0x7::usdc::USDC")).unwrap().0), (42, 0));
    let head = ask(&ledger, NewestCheckpoint).unwrap();
    assert_eq!((head.height.get(), head.hash, head.time.as_secs()), (HEAD, hex::encode([9; 32]), NOW - 3));
}

#[test]
fn a_balance_is_read_by_its_parts() {
    let mut ledger = Ledger::funded();
    ledger.balances = [(SUI.to_owned(), 42)].into();
    let of = || WhereHeld { owner: Address::ZERO, coin_type: SUI.parse().unwrap() };
    let parts = |ledger: &Ledger| {
        let held = ask(ledger, of()).unwrap().0;
        (held.coins, held.address_balance, held.total())
    };
    assert_eq!(parts(&ledger), (42, 0, 42), "a node that shows no parts");
    ledger.in_balance = [(SUI.to_owned(), 8)].into();
    assert_eq!(parts(&ledger), (42, 8, 50));
    ledger.balances.clear();
    assert_eq!(parts(&ledger), (0, 8, 8), "no coins at all");
    assert_eq!(ask(&ledger, CurrentEpoch).unwrap().0, EPOCH);
}

#[test]
fn only_a_shared_object_has_an_initial_shared_version() {
    let id = address(&made()["order"]["registry"]);
    let version = |owner: Option<Message>| {
        let mut ledger = Ledger::funded();
        *ledger.objects.last_mut().unwrap() = Object { owner, ..shared_registry(7) };
        ask(&ledger, InitialSharedVersion(id)).unwrap().0
    };
    assert_eq!(version(shared_registry(7).owner), Some(7));
    assert_eq!(version(None), None);
    for kind in [0, 1, 2, 4] {
        assert_eq!(version(Some(Message::default().number(1, kind).number(3, 7))), None, "{kind}");
    }
    assert_eq!(ask(&Ledger::funded(), InitialSharedVersion(Address::ZERO)).unwrap().0, None, "no such object");
}

#[test]
fn a_receipt_is_of_a_transaction_in_a_checkpoint() {
    let receipt = |executed: Option<Executed>| {
        let mut ledger = Ledger::funded();
        ledger.transactions.extend(executed);
        ask(&ledger, TransactionReceipt(Digest::new([7; 32]))).unwrap().0
    };
    let executed = Executed { checkpoint: Some(HEAD), ..Executed::new(digest_of(7)) };
    assert_eq!(receipt(None), None);
    assert_eq!(receipt(Some(Executed { checkpoint: None, ..executed.clone() })), None);
    for success in [true, false] {
        let Receipt { checkpoint, success: actual, .. } = receipt(Some(Executed { success, ..executed.clone() })).unwrap();
        assert_eq!((checkpoint.get(), actual), (HEAD, success));
    }
}

type Change = fn(&mut Object);

#[test]
fn a_coin_that_is_none_is_malformed() {
    let coin = || {
        let (id, digest, kind) = (Some(Address::new([1; 32])), Some(digest_of(1)), format!("0x2::coin::Coin<{SUI}>"));
        Object { id, version: Some(1), digest, kind, balance: Some(5), ..Object::default() }
    };
    let listed = |change: Change| {
        let mut coin = coin();
        change(&mut coin);
        let ledger = Ledger { coins: vec![vec![coin]], ..Ledger::funded() };
        let (coins, _) = drive::<OwnedCoins>(&On::new(network(), Address::ZERO), &Known::default(), |_, request| ledger.answer(request));
        coins.map(|coins| coins.into_output().0.len())
    };
    assert_eq!(listed(|_| ()), Ok(1));
    let changes: [(Change, &str); 7] = [
        (|coin| coin.kind = "0x2::coin::Coin<0x7::sui::SUI>".to_owned(), "/object/object_type"),
        (|coin| coin.kind = "0x2::sui::SUI".to_owned(), "/object/object_type"),
        (|coin| coin.kind.clear(), "/object/object_type"),
        (|coin| coin.id = None, "/object/object_id"),
        (|coin| coin.version = None, "/object/version"),
        (|coin| coin.digest = Some("0".to_owned()), "/object/digest"),
        (|coin| coin.balance = None, "/object/balance"),
    ];
    for (change, at) in changes {
        assert_eq!(malformed_at(&listed(change).unwrap_err()), at);
    }
}

#[test]
fn a_package_has_the_versions_and_the_origin_that_the_node_lists() {
    let described = |versions: Vec<u64>| {
        let ledger = Ledger { versions, ..Ledger::funded() };
        let (package, asked) = drive::<Package>(&On::new(network(), package_id()), &Known::default(), |_, request| ledger.answer(request));
        assert!(asked.len() <= Package::MAX_ROUNDS);
        package.map(|package| package.key().unwrap())
    };
    for (versions, newest) in [(vec![], 1), (vec![1], 1), (vec![1, 3, 2], 3), (vec![1; 1_000], 1)] {
        let description = described(versions).unwrap();
        assert_eq!((description.digest, description.version, description.original), (Digest::new([3; 32]), 1, package_id()));
        // The node no longer has the transaction that published the package.
        assert_eq!((description.newest_version, description.upgrade_authority), (newest, None));
    }
    assert_eq!(malformed_at(&described(vec![1; 1_001]).unwrap_err()), "/versions");
}

/// Only a message is remembered as the identity of a chain.
#[test]
fn an_error_is_not_a_message() {
    let body = answer(&Message::default().text(1, "x"));
    assert!(is_message(&http(body.clone())) && is_message(&with_header(body.clone(), "0")));
    for other in [http(error(14, "busy")), http(Vec::new()), with_header(body.clone(), "14"), Answer::http(503, body.clone())] {
        assert!(!is_message(&other), "{other:?}");
    }
    assert!(!is_message(&Answer::result(body)));
}

// ---- redemptions and refunds

/// A redemption with a wrong secret, or the refund, of the order of which the secret is known.
fn recovery(role: Role) -> countersign_sui::UnsignedOrder {
    let gas = ObjectReference::new(Address::new([0x21; 32]), 7, Digest::new([2; 32]));
    recovery_with(role, TxContext::new(1_000, 5_000_000, vec![gas]))
}

pub(crate) fn recovery_with(role: Role, gas: TxContext) -> countersign_sui::UnsignedOrder {
    let outside: serde_json::Value = serde_json::from_str(include_str!("../outside.json")).unwrap();
    let ways = &outside["ways_out"];
    let record = read_record(&ways["order"]).unwrap();
    let recovery = match role {
        Role::Redeem => recover::redeem(&record, Leg::Source, &word(&ways["secret"]), registry()).unwrap().rehearsal(),
        _ => recover::refund(&record, Leg::Source, registry()).unwrap(),
    };
    recovery.prepare(gas.sent_by(Address::new([0xa1; 32]))).unwrap()
}

type Abort = Option<(&'static str, u64)>;

/// A node on which a simulation ends in this way.
fn ending(abort: Abort, reason: Option<&'static str>) -> Ledger {
    let simulated = Executed { success: reason.is_none(), reason, abort, checkpoint: None, ..Executed::new(digest_of(7)) };
    Ledger { simulated: Ok(simulated), balances: [(SUI.to_owned(), 5_000_000)].into(), ..Ledger::funded() }
}

/// The contract looks for the order first. An abort with any other code comes before the secret, or from a contract that differs.
#[test]
fn a_rehearsal_passes_if_only_the_secret_is_wrong() {
    let rehearse_with = |ledger: &Ledger, urgency| {
        let rehearsed = ask(ledger, Rehearsal::new(&recovery(Role::Redeem), urgency));
        rehearsed.map(|judged| judged.0.map(|_| ()))
    };
    let rehearse = |ledger: &Ledger| rehearse_with(ledger, Urgency::CanWait);
    let refused = |abort, reason| {
        let refusal = rehearse(&ending(abort, reason)).unwrap().unwrap_err();
        (refusal.code(), refusal.location().to_owned())
    };
    assert_eq!(rehearse(&ending(Some(("AtomicSwap", 8)), Some("aborted"))), Ok(Ok(())));
    let fails = (Code::SimulationReverted, "/redeem".to_owned());
    for code in (0..=17).filter(|code| *code != 8).chain([u64::MAX]) {
        assert_eq!(refused(Some(("AtomicSwap", code)), Some("aborted")), fails, "{code}");
        // Once the secret is out, only an order that has ended stops its redemption.
        let urgent = rehearse_with(&ending(Some(("AtomicSwap", code)), Some("aborted")), Urgency::SecretIsOut).unwrap();
        assert_eq!(urgent.is_err(), [5, 14].contains(&code), "{code}");
    }
    for abort in [Some(("balance", 8)), Some(("", 8)), None] {
        assert_eq!(refused(abort, Some("aborted")), fails, "{abort:?}");
    }
    assert_eq!(refused(None, None), (Code::SimulationDiffers, "/redeem".to_owned()), "it accepts every secret");
    for code in [3, 9] {
        let ledger = Ledger { simulated: Err((code, "coins%20are gone")), ..Ledger::funded() };
        assert_eq!(rehearse(&ledger).unwrap().unwrap_err().code(), Code::SimulationReverted, "{code}");
    }
    assert!(matches!(rehearse(&Ledger { simulated: Err((14, "busy")), ..Ledger::funded() }), Err(Fault::Rpc(_))));
}

#[test]
fn the_contracts_errors_are_explained() {
    let refund = |ledger: &Ledger| ask(ledger, Check::new(&recovery(Role::Refund))).unwrap().0;
    let words = |abort: Abort| refund(&ending(abort, Some("MoveAbort\u{1b}"))).unwrap_err().to_string();
    for (code, name) in
        [(1, "EIncorrectFunds"), (2, "EOrderNotExpired"), (5, "EOrderNotInitiated"), (14, "EOrderFulfilled"), (16, "ESenderNotRedeemer")]
    {
        let words = words(Some(("AtomicSwap", code)));
        assert!(words.contains(&format!("({name}): MoveAbort")) && !words.contains('\u{1b}'), "{words}");
    }
    for abort in [Some(("AtomicSwap", 6)), Some(("AtomicSwap", 0)), Some(("balance", 2)), None] {
        assert!(words(abort).contains("/refund: MoveAbort"), "{}", words(abort));
    }
    let silent = Executed { success: false, ..Executed::new(digest_of(7)) };
    let silent = Ledger { simulated: Ok(silent), ..ending(None, None) };
    assert!(refund(&silent).unwrap_err().to_string().contains("no reason given"));
}

/// A refund pays out, and takes nothing but the gas of the account that pays for it.
#[test]
fn a_refund_may_only_pay_out() {
    let sender = Address::new([0xa1; 32]).to_string();
    let other = Address::new([7; 32]).to_string();
    let judged = |changes: &[(&str, &str, i64)]| {
        let mut ledger = ending(None, None);
        let change = |(owner, coin, amount): &(&str, &str, i64)| ((*owner).to_owned(), (*coin).to_owned(), amount.to_string());
        ledger.simulated.as_mut().unwrap().changes = changes.iter().map(change).collect();
        ask(&ledger, Check::new(&recovery(Role::Refund))).unwrap().0.map(|preflight| preflight.gas_used)
    };
    // Computation, storage and the rebate.
    let gas = -(1_000_000 + 5_000_000 - 2_000_000);
    assert_eq!(judged(&[(&sender, SUI, gas)]), Ok(Some(6_000_000)));
    assert_eq!(judged(&[(&sender, SUI, gas), (&other, SUI, 9)]), Ok(Some(6_000_000)));
    for changes in [
        [(sender.as_str(), SUI, gas - 1), (&other, SUI, 9)],
        [(&sender, SUI, gas), (&other, SUI, -1)],
        [(&sender, SUI, gas), (&sender, "0x7::a::B", -1)],
    ] {
        assert_eq!(judged(&changes).unwrap_err().code(), Code::SimulationDiffers, "{changes:?}");
    }
}
