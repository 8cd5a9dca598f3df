//! Tests that orders survive on disk.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, missing_docs, reason = "a test ends by panicking")]

use countersign_sandbox::chains::{Leg, Terms};
use countersign_sandbox::ledger::{Ledger, Role};
use countersign_sandbox::order::{Order, Seen, Side, Status};
use serde_json::json;

fn side(asset: &str, number: u64, is_source: bool) -> Side {
    let terms = Terms {
        asset: asset.to_owned(),
        amount: 1_000,
        owner: format!("0xOwner{number}"),
        delegate: None,
        is_source,
        timelock: 100,
        secret_hash: [7; 32],
    };
    let leg = Leg { swap_id: format!("{asset}-{number}"), initiator: "0xA".to_owned(), redeemer: "0xB".to_owned(), delegate: None };
    Side::new(&terms, leg, 1.0)
}

fn order(number: u64) -> Order {
    Order {
        id: format!("{number:064x}"),
        number,
        created_at: 1_700_000_000_123,
        nonce: number.to_string(),
        affiliate_fees: json!([]),
        integrator: "test".to_owned(),
        source: side("base:usdc", number, true),
        destination: side("litecoin:ltc", number, false),
        kept_secret: None,
        answer: json!({ "order_id": format!("{number:064x}") }),
    }
}

/// Returns the path of a file that does not exist yet.
fn file(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("countersign-ledger-{name}-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn remove(path: &std::path::Path) {
    std::fs::remove_file(path).unwrap();
    std::fs::remove_file(path.with_extension("lock")).unwrap();
}

#[test]
fn what_was_added_is_there_after_the_process_is_gone() {
    let path = file("kept");
    let ledger = Ledger::open(&path).unwrap();
    for number in 1..=50 {
        ledger.add(&order(number), &format!("request {number}")).unwrap();
    }
    let mut paid = order(7);
    paid.source.initiated = Some(Seen { transaction: "0xAbC".to_owned(), height: 9, at: 1_700_000_001_000 });
    ledger.update(std::slice::from_ref(&paid)).unwrap();
    // A kill leaves the file as it is, without closing it.
    let copy = file("copy");
    std::fs::copy(&path, &copy).unwrap();
    std::mem::forget(ledger);
    let ledger = Ledger::open(&copy).unwrap();
    assert_eq!(ledger.count(), 50);
    assert_eq!(ledger.by_id(&paid.id).unwrap(), paid);
    assert_eq!(ledger.by_swap("litecoin", "LITECOIN:LTC-7").unwrap().number, 7);
    assert_eq!(ledger.by_request("request 9").unwrap().number, 9);
    let with = |word, role| ledger.find(&[(word, role)], |_| true, 0, 100).orders.iter().map(|order| order.number).collect::<Vec<_>>();
    assert_eq!(with("0xABC", Role::Any), [7]);
    assert_eq!(with("0xowner8", Role::From), [8]);
    assert_eq!(with("0xa", Role::Any), (1..=50).rev().collect::<Vec<_>>());
    assert!(with("0xa", Role::To).is_empty());
    let page = ledger.find(&[("0xa", Role::From)], |order| order.number != 50, 10, 3);
    assert_eq!((page.total, page.orders.iter().map(|order| order.number).collect::<Vec<_>>()), (49, vec![39, 38, 37]));
    assert!(ledger.by_id("none").is_none() && ledger.by_number(51).is_none());
    remove(&path);
    remove(&copy);
}

#[test]
fn a_line_that_a_kill_has_cut_off_is_dropped_and_any_other_is_an_error() {
    let path = file("cut");
    let ledger = Ledger::open(&path).unwrap();
    for number in 1..=2 {
        ledger.add(&order(number), &format!("request {number}")).unwrap();
    }
    drop(ledger);
    let whole = std::fs::read(&path).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    // The kill may happen at any byte of the second line.
    for end in first..whole.len() {
        std::fs::write(&path, &whole[..end]).unwrap();
        let ledger = Ledger::open(&path).unwrap();
        assert_eq!((ledger.count(), ledger.by_request("request 2")), (1, None), "{end}");
        ledger.add(&order(2), "request 2").unwrap();
        drop(ledger);
        assert_eq!(std::fs::read(&path).unwrap(), whole, "{end}");
    }
    std::fs::write(&path, [&whole[..first - 5], b"\n", &whole[first..]].concat()).unwrap();
    let error = Ledger::open(&path).unwrap_err().to_string();
    let named = format!("{}, line 1: ", path.display());
    assert!(error.starts_with(&named) && error.contains("move the file away"), "{error}");
    remove(&path);
}

#[test]
fn orders_of_an_earlier_version_are_refused() {
    let path = file("old");
    let old = path.with_extension("redb");
    std::fs::write(&old, "redb").unwrap();
    let error = Ledger::open(&path).unwrap_err().to_string();
    assert!(error.starts_with(old.to_str().unwrap()) && error.contains("move it away"), "{error}");
    assert!(!path.exists());
    std::fs::remove_file(&old).unwrap();
}

#[test]
fn a_record_is_what_the_chains_have_shown() {
    let mut order = order(1);
    let new = order.record([5, 6], "solver");
    assert_eq!(new["created_at"], "2023-11-14T22:13:20.123000Z");
    assert_eq!(new["deadline"], 1_700_003_600);
    for leg in ["source_swap", "destination_swap"] {
        assert_eq!(new[leg]["initiate_tx_hash"], "");
        assert_eq!(new[leg]["initiate_block_number"], "0");
        assert_eq!(new[leg]["filled_amount"], "0");
        assert_eq!(new[leg]["secret"], "");
        assert!(new[leg]["initiate_timestamp"].is_null());
    }
    assert_eq!(order.status(1_700_000_000_200), Status::NotInitiated);
    assert_eq!(order.status(1_700_003_600_200), Status::Expired);
    order.source.initiated = Some(Seen { transaction: "0xabc".to_owned(), height: 5, at: 1_700_000_001_000 });
    order.source.filled = 1_000;
    assert_eq!(order.status(1_700_003_600_200), Status::InProgress);
    let paid = order.record([5, 6], "solver");
    assert_eq!(paid["source_swap"]["initiate_block_number"], "5");
    assert_eq!(paid["source_swap"]["current_confirmations"], 1);
    assert_eq!(paid["source_swap"]["initiate_timestamp"], "2023-11-14T22:13:21.000000Z");
    order.destination.redeemed = Some(Seen { transaction: "t".to_owned(), height: 6, at: 1_700_000_002_000 });
    assert_eq!(order.status(1_700_000_003_000), Status::Completed);
}
