//! Recovery from an order record alone.

use std::fmt::Debug;

use countersign_core::json::{self, At, Cursor};
use countersign_core::wire::{OrderRecord, Read};
use countersign_core::{Code, Leg, Refusal};
use countersign_json::JsonFamily;
use serde_json::Value as Json;

use crate::{TestResult, fixture};

type Change = fn(&mut Json);

/// Reads an order record from its JSON.
pub fn read_record(order: &Json) -> Result<OrderRecord, Refusal> {
    let text = order.to_string();
    OrderRecord::read(Cursor::new(&json::parse(text.as_bytes())?, At::RECORD))
}

/// Returns the record of a fixture with a change.
pub fn record<F: JsonFamily>(case: &str, change: impl FnOnce(&mut Json)) -> Result<OrderRecord, Refusal> {
    let mut order = fixture::<F>(case).json()["order"].take();
    change(&mut order);
    read_record(&order)
}

/// Requires that a fixture's record gives no refund after any of these changes, and none for a leg of another family.
pub fn refuses_other_records<F: JsonFamily, T>(
    case: &str,
    own: &[(Change, Code, &str)],
    refund: impl Fn(&OrderRecord, Leg) -> Result<T, Refusal>,
) -> TestResult {
    let refused = |record: &OrderRecord, leg| refund(record, leg).map(|_| ());
    let no_asset = |order: &mut Json| order["source_swap"]["asset"] = format!("{}:nothing", F::FAMILY.name()).into();
    let common: [(Change, Code, &str); 5] = [
        (|order| order["source_swap"]["swap_id"] = "12".into(), Code::RecordSwapId, "/order/source_swap/swap_id"),
        (|order| order["version"] = "v9".into(), Code::RecordVersion, "/order/version"),
        (no_asset, Code::UnknownAsset, "/order/source_swap/asset"),
        (|order| order["source_swap"]["chain"] = "elsewhere".into(), Code::RecordMismatch, "/order/source_swap/chain"),
        (|order| order["source_swap"]["initiator"] = "0x".into(), Code::RecordMismatch, "/order/source_swap/initiator"),
    ];
    for (change, code, at) in common.iter().chain(own) {
        let refusal = refused(&record::<F>(case, change)?, Leg::Source).expect_err(at);
        assert_eq!((refusal.code(), refusal.location()), (*code, *at));
    }
    let refusal = refused(&record::<F>(case, |_| {})?, Leg::Destination).expect_err("another family's leg");
    assert_eq!((refusal.code(), refusal.location()), (Code::UnsupportedFamily, "/order/destination_swap/asset"));
    Ok(())
}

/// Requires that `Debug` does not show the secret of a redemption: neither four bytes of it, in hex or as a list, nor one of `others`, which
/// are other forms of its parts.
pub fn shows_no_secret(redemption: &impl Debug, secret: &[u8], others: &[String]) {
    let shown: String = format!("{redemption:?} {redemption:#?}").to_lowercase().chars().filter(|c| !c.is_whitespace()).collect();
    for part in secret.windows(4) {
        let hex: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
        let list = format!("{part:?}").replace(['[', ']', ' '], "");
        assert!(!shown.contains(&hex) && !shown.contains(&list), "{shown}");
    }
    assert!(others.iter().all(|other| !shown.contains(&other.to_lowercase().replace(' ', ""))), "{shown}");
}
