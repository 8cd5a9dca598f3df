//! The Sui result, field for field: `{"order_id", "ptb_bytes": [integers]}` (interface.md section 2.5).

use std::borrow::Cow;

use countersign_core::json::Members;
use countersign_core::{Code, Refusal};

/// The member that carries this family's payload.
pub(crate) const KEY: &str = "ptb_bytes";

/// Longest transaction kind that is read: no transaction may be longer than this (Sui's `max_tx_size_bytes`).
pub(crate) const MAX_KIND: usize = 128 * 1024;

/// Reads the bytes of the transaction kind.
pub(crate) fn kind_bytes<'v>(result: &Members<'_, 'v>) -> Result<Cow<'v, [u8]>, Refusal> {
    let node = result.need(KEY)?;
    let bytes = node.byte_array()?;
    if bytes.len() > MAX_KIND {
        return Err(node.at().refuse(Code::KindMalformed).with_expected(format!("at most {MAX_KIND} bytes")).with_actual(bytes.len()));
    }
    Ok(bytes)
}
