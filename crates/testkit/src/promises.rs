//! What the library promises of every family, whatever its payloads are. What it promises of transactions as bytes is in
//! [`received`](crate::received), and of what is stored in [`restart`](crate::restart).

use std::fmt::Debug;
use std::time::Duration;

use countersign_core::chains::UnixTime;
use countersign_core::{Code, Refusal, UnsignedOrder};
use countersign_json::JsonFamily;

use crate::recover::read_record;
use crate::restart::signed_order;
use crate::{Case, TestResult, fixtures, key, verified, wallet};

/// Texts and bytes that are neither a signature nor a transaction of any family.
const NEITHER: [&[u8]; 12] =
    [b"", b" ", b"0x", b"0", b"null", b"{}", b"[]", b"[[[[", b"\0\0\0\0", b"\xff\xfe", b"{\"signature\":\"0x\"}", &[0xff; 4_000]];

/// Requires that neither a key nor what it has signed shows a part of the key when it is printed for debugging.
pub fn keys_are_never_printed<F: JsonFamily<Key: Debug>>() -> TestResult {
    let mut signed = 0;
    for case in fixtures::<F>()? {
        let Some(text) = case.secret_key() else { continue };
        let key = key::<F>(&case);
        assert_eq!(format!("{key:?} {key:#?}"), "Key(..) Key(..)", "{}", case.id);
        let Some(order) = signed_order::<F>(&case) else { continue };
        let shown = format!("{order:?} {:?}", order.requests());
        let shown = format!("{shown} {:?}", order.finish()?);
        // Eight characters are long enough that no hash has them by chance.
        for part in text.trim_start_matches("0x").as_bytes().windows(8) {
            assert!(!shown.as_bytes().windows(8).any(|other| other.eq_ignore_ascii_case(part)), "{}: a part of the key", case.id);
        }
        signed += 1;
    }
    assert!(signed > 0, "no fixture has a key");
    Ok(())
}

/// Requires that an order whose record states a time holds until then and no longer, and that one without a record has no deadline.
pub fn deadlines_are_kept<F: JsonFamily>() -> TestResult {
    let (mut with, mut without) = (0, 0);
    for case in fixtures::<F>()? {
        let order = verified::<F>(&case);
        let Some((created, deadline)) = times(&case)? else {
            assert_eq!(order.check_deadline(UnixTime::from_secs(u64::MAX / 1_000)), Ok(()), "{}", case.id);
            without += 1;
            continue;
        };
        assert_eq!(order.check_deadline(created), Ok(()), "{}", case.id);
        let late = |now: UnixTime| order.check_deadline(now).map_err(|refusal| refusal.code());
        assert_eq!(late(deadline), Err(Code::OrderExpired), "{}", case.id);
        assert_eq!(late(deadline.saturating_add(Duration::from_secs(1))), Err(Code::OrderExpired), "{}", case.id);
        // What is paid in the last second is not confirmed in time.
        assert_eq!(late(deadline.saturating_sub(Duration::from_secs(1))), Err(Code::DeadlineTooClose), "{}", case.id);
        with += 1;
    }
    assert!(with > 0 && without > 0, "{}: {with} orders with a deadline, {without} without", F::FAMILY);
    Ok(())
}

/// Returns when the order of a case was created, or six hours before its deadline, and its deadline; `None` without a record.
fn times(case: &Case) -> Result<Option<(UnixTime, UnixTime)>, Refusal> {
    let line = case.json();
    if line["order"].is_null() {
        return Ok(None);
    }
    let record = read_record(&line["order"])?;
    let time = |time: &Option<_>| time.as_ref().and_then(countersign_core::wire::RecordTime::time);
    let asset = case.registry.asset(line["request"]["source"]["asset"].as_str().expect("an asset")).expect("a pinned asset");
    let window = asset.chain.profile.payment_window;
    Ok(match (time(&record.created_at), time(&record.deadline)) {
        (Some(created), deadline) => Some((created, deadline.unwrap_or(created.saturating_add(window)))),
        (None, Some(deadline)) => Some((deadline.saturating_sub(Duration::from_secs(6 * 3_600)), deadline)),
        (None, None) => None,
    })
}

/// Requires that a text or transaction which is cut, changed or something else never panics, and attaches nothing but the owner's own
/// signatures or what a warning says is not proven. At least `least` changed transactions and texts must be refused.
pub fn nothing_else_is_attached<F: JsonFamily>(least: usize) -> TestResult {
    let mut refused = 0;
    let cases = fixtures::<F>()?;
    for (case, signed) in cases.iter().filter_map(|case| Some((case, signed_order::<F>(case)?))).take(3) {
        let order = verified::<F>(case);
        let own = signed.signatures();
        let fresh = || order.prepare(wallet::<F>(case)).expect(&case.id);
        let mut target = fresh();
        let mut attach = |attach: &dyn Fn(&mut UnsignedOrder<F>) -> bool, what: &[u8]| {
            let is_attached = attach(&mut target);
            let there = target.signatures();
            let shown = String::from_utf8_lossy(what);
            // Only the chain can prove a signature of an account whose key is not known, and a warning says so.
            let is_unproven = target.warnings().into_iter().any(|warning| warning.code() == Code::ContractSignatureUnverified);
            assert!(is_unproven || there.iter().all(|one| own.contains(one)), "{}: {there:?} by {shown}", case.id);
            assert_eq!(is_attached, !there.is_empty(), "{}: {shown}", case.id);
            if is_attached { target = fresh() } else { refused += 1 }
        };
        for (id, text) in &own {
            for other in others(text.as_bytes()) {
                let other_text = String::from_utf8_lossy(&other);
                attach(&|order| order.attach_text(*id, &other_text).is_ok(), &other);
            }
        }
        for transaction in signed.finish()?.transactions() {
            for other in others(&transaction.bytes) {
                attach(&|order| order.attach_transaction(&other).is_ok(), &other);
                let _ = (order.match_bytes_with_warnings(&other), F::read_transaction(&order, &other));
            }
        }
        for other in NEITHER {
            assert!(order.matches_bytes(other).is_err() && F::read_transaction(&order, other).is_err(), "{}: {other:?}", case.id);
            assert!(F::find_payment(&order, other).is_err(), "{}: {other:?}", case.id);
        }
    }
    assert!(refused >= least, "{}: {refused} are refused", F::FAMILY);
    Ok(())
}

/// Returns hostile versions of `bytes`: cut off, with one bit flipped, and other data.
fn others(bytes: &[u8]) -> Vec<Vec<u8>> {
    // A few hundred places of a long transaction are enough.
    let places = (0..bytes.len()).step_by(1 + bytes.len() / 200);
    let cut = places.clone().map(|end| bytes[..end].to_vec());
    let changed = places.map(|at| bytes.iter().enumerate().map(|(place, byte)| if place == at { byte ^ 1 } else { *byte }).collect());
    cut.chain(changed).chain(NEITHER.map(<[u8]>::to_vec)).collect()
}
