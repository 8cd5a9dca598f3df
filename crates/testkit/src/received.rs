//! Signed transactions that an external wallet returns as bytes.

use countersign_core::{Code, Family, Severity, SignedOrder};
use countersign_json::JsonFamily;

use crate::restart::signed_order;
use crate::{TestResult, fixtures, key, verified, wallet};

/// Requires that every transaction of every fixture that can be signed has its role in its own order when it is given as bytes, and that
/// neither less nor more than these bytes is taken, and not what `unsigned_bytes` returns: the bytes of the transaction without its signatures. At
/// least `least` transactions must be signed.
pub fn bytes_are_matched<F: JsonFamily>(
    least: usize,
    bytes: impl Fn(&F::Transaction) -> Vec<u8>,
    unsigned_bytes: impl Fn(&F::Transaction) -> Vec<u8>,
) -> TestResult {
    let mut matched = 0;
    for case in fixtures::<F>()?.iter().filter(|case| case.secret_key().is_some()) {
        let order = verified::<F>(case);
        let mut unsigned = order.prepare(wallet::<F>(case))?;
        if unsigned.requests().is_empty() {
            continue;
        }
        unsigned.sign(&key::<F>(case))?;
        // A sponsor's signature may be missing.
        let Ok(signed) = unsigned.finish() else { continue };
        for transaction in signed.transactions() {
            let bytes = bytes(&transaction.native);
            for (bytes, whose) in [(&bytes, "encoded"), (&transaction.bytes, "its own bytes")] {
                let (role, warnings) = order.match_bytes_with_warnings(bytes)?;
                assert_eq!(role, transaction.role, "{}: {whose}", case.id);
                // The role alone is given only where nothing has to be read.
                let alone = order.matches_bytes(bytes).map_err(|refusal| refusal.code());
                let has_to_be_read = warnings.severity().is_some_and(|severity| severity > Severity::Info);
                assert_eq!(alone, if has_to_be_read { Err(Code::TransactionMismatch) } else { Ok(role) }, "{}: {whose}", case.id);
            }
            let refusal = order.match_bytes_with_warnings(&unsigned_bytes(&transaction.native)).expect_err("not signed");
            assert_eq!(refusal.code(), Code::TransactionMismatch, "{}: {refusal}", case.id);
            // All lengths of the first transactions, then a few.
            let step = if matched < 4 { 1 } else { 1 + bytes.len() / 8 };
            let shorter = (0..bytes.len()).step_by(step).map(|len| bytes[..len].to_vec());
            let longer = [&[0][..], &[1], &bytes].map(|more| [&bytes, more].concat());
            for other in shorter.chain(longer) {
                let refusal = order.matches_bytes(&other).expect_err("not exactly one transaction");
                // What is no JSON has its own codes.
                let is_expected = F::FAMILY == Family::Starknet || refusal.code() == Code::TransactionMismatch;
                assert!(is_expected, "{}: {} of {} bytes: {refusal}", case.id, other.len(), bytes.len());
            }
            matched += 1;
        }
    }
    assert!(matched >= least, "{matched} transactions");
    Ok(())
}

/// Requires that the signatures of every fixture's signed transactions are proven and attached to a fresh order when the transactions are
/// given as bytes, and that those of another order are refused and change nothing. At least `least` transactions must be signed.
pub fn signatures_are_taken_from_transactions<F: JsonFamily>(least: usize, bytes: impl Fn(&SignedOrder<F>) -> Vec<Vec<u8>>) -> TestResult {
    let (mut taken, mut others) = (0, Vec::new());
    for case in fixtures::<F>()? {
        let Some(before) = signed_order::<F>(&case) else { continue };
        let signatures = before.signatures();
        let transactions = bytes(&before.finish()?);
        let mut fresh = verified::<F>(&case).prepare(wallet::<F>(&case))?;
        for other in others.iter().filter(|other| !transactions.contains(other)) {
            let code = fresh.attach_transaction(other).expect_err(&case.id).code();
            assert!([Code::TransactionMismatch, Code::PsbtMismatch, Code::NothingToSign].contains(&code), "{}: {code}", case.id);
        }
        assert!(fresh.signatures().is_empty(), "{}", case.id);
        for transaction in &transactions {
            let ids = fresh.attach_transaction(transaction).map_err(|refusal| format!("{}: {refusal}", case.id))?;
            assert!(!ids.is_empty() && ids.iter().all(|id| !fresh.missing().contains(id)), "{}: {ids:?}", case.id);
            taken += 1;
        }
        assert!(fresh.signatures().iter().all(|signature| signatures.contains(signature)), "{}", case.id);
        assert!(fresh.signatures().len() >= transactions.len().min(signatures.len()), "{}", case.id);
        others = transactions;
    }
    assert!(taken >= least, "{taken} transactions");
    Ok(())
}
