//! Orders on disk.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test ends by panicking")]

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

#[test]
fn what_was_added_is_there_after_the_process_is_gone() {
    let path = std::env::temp_dir().join(format!("countersign-ledger-{}.redb", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let ledger = Ledger::open(&path).unwrap();
    for number in 1..=50 {
        ledger.add(&order(number), &format!("request {number}")).unwrap();
    }
    let mut paid = order(7);
    paid.source.initiated = Some(Seen { transaction: "0xAbC".to_owned(), height: 9, at: 1_700_000_001_000 });
    ledger.update(std::slice::from_ref(&paid)).unwrap();
    // What a kill leaves behind: the file as it is, without a word of farewell.
    let copy = path.with_extension("copy");
    std::fs::copy(&path, &copy).unwrap();
    std::mem::forget(ledger);
    let ledger = Ledger::open(&copy).unwrap();
    assert_eq!(ledger.count().unwrap(), 50);
    assert_eq!(ledger.by_id(&paid.id).unwrap().unwrap(), paid);
    assert_eq!(ledger.by_swap("litecoin", "LITECOIN:LTC-7").unwrap().unwrap().number, 7);
    assert_eq!(ledger.by_request("request 9").unwrap().unwrap().number, 9);
    assert_eq!(ledger.with_word("0xABC", Role::Any).unwrap(), [7]);
    assert_eq!(ledger.with_word("0xowner8", Role::From).unwrap(), [8]);
    assert_eq!(ledger.with_word("0xa", Role::Any).unwrap().len(), 50);
    assert!(ledger.by_id("none").unwrap().is_none() && ledger.by_number(51).unwrap().is_none());
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&copy).unwrap();
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
