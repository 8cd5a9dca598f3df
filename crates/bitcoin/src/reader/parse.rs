//! Parsers for the parts of an answer that both protocols share: ids, heights, raw bytes and amounts, each with a limit.

use bitcoin::{Amount, BlockHash, Txid};
use countersign_core::json::{Cursor, Value};
use countersign_core::{BlockHeight, Code, Refusal};

use crate::chain::MAX_TRANSACTION;

/// The maximum height that is accepted. At one block per second, a chain would need 136 years to reach it.
const MAX_HEIGHT: u64 = 0xffff_ffff;

pub(super) fn txid(cursor: &Cursor<'_, '_>) -> Result<Txid, Refusal> {
    cursor.text()?.parse().map_err(|_| cursor.at().refuse(Code::TransactionIdMalformed))
}

/// Requires that an answer is about the transaction that was asked for.
pub(super) fn check_txid(cursor: &Cursor<'_, '_>, expected: Txid) -> Result<(), Refusal> {
    if txid(cursor)? == expected { Ok(()) } else { Err(cursor.refuse(Code::UtxoMismatch).with_expected(expected.to_string())) }
}

pub(super) fn block_hash(cursor: &Cursor<'_, '_>) -> Result<BlockHash, Refusal> {
    cursor.text()?.parse().map_err(|_| cursor.at().refuse(Code::HexLength).with_expected("a block hash"))
}

pub(super) fn height(cursor: &Cursor<'_, '_>) -> Result<BlockHeight, Refusal> {
    let height = cursor.integer()?;
    if height > MAX_HEIGHT {
        return Err(cursor.refuse(Code::NumberTooLarge));
    }
    Ok(height.into())
}

/// Reads a 32-bit number.
pub(super) fn word(cursor: &Cursor<'_, '_>) -> Result<u32, Refusal> {
    u32::try_from(cursor.integer()?).map_err(|_| cursor.refuse(Code::NumberTooLarge))
}

/// Reads bytes in hex without `0x`.
pub(super) fn bytes(cursor: &Cursor<'_, '_>) -> Result<Vec<u8>, Refusal> {
    let text = cursor.text()?;
    if text.len() > MAX_TRANSACTION.saturating_mul(2) {
        return Err(cursor.at().refuse(Code::HexLength));
    }
    hex::decode(text).map_err(|_| cursor.at().refuse(Code::HexDigit))
}

/// Reads bytes in hex that a server returns as plain text.
pub(super) fn hex_text(text: &[u8]) -> Result<Vec<u8>, Refusal> {
    let text = Some(text.trim_ascii()).filter(|text| text.len() <= MAX_TRANSACTION.saturating_mul(2));
    text.and_then(|text| hex::decode(text).ok()).ok_or_else(|| Refusal::new(Code::HexDigit, "").with_expected("hex of a limited length"))
}

/// Reads the hash of a block that a server returns as plain text.
pub(super) fn hash_text(text: &[u8]) -> Result<BlockHash, Refusal> {
    let hash = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
    hash.ok_or_else(|| Refusal::new(Code::HexLength, "").with_expected("a block hash"))
}

/// Returns the text of a number.
pub(super) fn number<'v>(cursor: &Cursor<'_, 'v>) -> Result<&'v str, Refusal> {
    match cursor.value() {
        Value::Number(text) => Ok(text),
        _ => Err(cursor.at().refuse(Code::WrongType).with_expected("a number")),
    }
}

/// Reads an amount in whole coins, a decimal with at most eight digits after the point.
///
/// Nodes write plain decimals. A host that parses and writes the answer again writes small ones with an exponent.
pub(super) fn coins(cursor: &Cursor<'_, '_>) -> Result<Amount, Refusal> {
    let text = number(cursor)?;
    let refuse = || cursor.refuse(Code::DecimalDigit);
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().map_err(|_| refuse())?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_decimal = [whole, fraction].iter().all(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    // The number of zeros to append to the digits.
    let zeros = i32::try_from(fraction.len()).ok().and_then(|digits| exponent.checked_add(8)?.checked_sub(digits));
    let zeros = zeros.and_then(|zeros| usize::try_from(zeros).ok()).filter(|zeros| *zeros <= 20);
    match zeros {
        Some(zeros) if is_decimal && !whole.is_empty() => {
            let units = format!("{whole}{fraction}{}", "0".repeat(zeros)).parse();
            units.map(Amount::from_sat).map_err(|_| cursor.refuse(Code::NumberTooLarge))
        }
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn coins_are_exact() {
        let read = |text| coins(&Cursor::root(&Value::Number(text), ""));
        for (text, units) in
            [("0.00500000", 500_000), ("0.1", 10_000_000), ("3", 300_000_000), ("0.00000001", 1), ("3.3e-6", 330), ("1E+1", 1_000_000_000)]
        {
            assert_eq!(read(text).unwrap().to_sat(), units, "{text}");
        }
        for text in ["-1", "1e-9", "1e99", "1e", "1.5e-8", "0.000000001", "99999999999999999999", ".5"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
