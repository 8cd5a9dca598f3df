//! The members of a Solana result, and the two text forms of a transaction.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::digits;
use countersign_core::json::Cursor;
use countersign_core::{Code, Refusal};

use crate::encoding::{self, MAX_BYTES_V1};

/// The transaction that the owner sends.
pub(crate) const TRANSACTION: &str = "versioned_tx";
/// The transaction that the owner signs and the service sends.
pub(crate) const GASLESS: &str = "versioned_tx_gasless";

/// The text form of a transaction in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// Base64 with the standard alphabet and padding.
    Base64,
    /// Hex without a prefix, the form of older responses.
    Hex,
}

/// Reads the bytes of a transaction. The two forms cannot be confused: a transaction with one or two signers begins with the
/// byte 1 or 2, which is `AQ` or `Ag` in base64, and one with a message of version 1 with `81`, which is `gQ`. Neither `Q` nor
/// `g` is a hex digit.
pub(crate) fn transaction(cursor: &Cursor<'_, '_>) -> Result<(Vec<u8>, Encoding), Refusal> {
    let text = cursor.text()?;
    let too_large = |max: usize| cursor.at().refuse(Code::TransactionTooLarge).with_expected(format!("at most {max} bytes"));
    // Hex is the longer form.
    if text.len() > MAX_BYTES_V1.saturating_mul(2) {
        return Err(too_large(MAX_BYTES_V1));
    }
    let form = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit()) { Encoding::Hex } else { Encoding::Base64 };
    let bytes = match form {
        Encoding::Hex => digits::bytes(text).ok(),
        // The engine refuses white space, missing padding and non-zero trailing bits. Its `decode` would allocate zeroed memory,
        // which costs more than the decoding.
        Encoding::Base64 => {
            let mut bytes = Vec::with_capacity(base64::decoded_len_estimate(text.len()));
            STANDARD.decode_vec(text, &mut bytes).ok().map(|()| bytes)
        }
    };
    let bytes = bytes.ok_or_else(|| cursor.refuse(Code::TransactionEncoding))?;
    let max = encoding::max_bytes(bytes.first());
    if bytes.len() > max {
        return Err(too_large(max).with_actual(bytes.len()));
    }
    Ok((bytes, form))
}

#[cfg(test)]
mod tests {
    use countersign_core::json::Value;

    use super::*;

    #[test]
    fn only_canonical_base64_is_read() {
        let read = |text: &str| transaction(&Cursor::root(&Value::String(text.into()), "")).map(|(bytes, _)| bytes);
        assert_eq!(read("AQI=").unwrap(), [1, 2]);
        for text in ["AQ", "AQ=", "AR==", "AQ==\n", " AQ==", "A Q==", "AQ==AQ==", "_Q=="] {
            let refusal = transaction(&Cursor::root(&Value::String(text.into()), "")).unwrap_err();
            assert_eq!(refusal.code(), Code::TransactionEncoding, "{text}");
        }
    }
}
