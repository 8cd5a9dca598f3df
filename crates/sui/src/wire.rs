//! The Sui result, field for field: `{"order_id", "ptb_bytes": [integers]}` (interface.md section 2.5).

use countersign_core::json::{Members, Node, Value};
use countersign_core::{Code, Refusal};

/// The member that carries this family's payload.
pub(crate) const KEY: &str = "ptb_bytes";

/// Longest transaction kind that is read: no transaction may be longer than this (Sui's `max_tx_size_bytes`).
pub(crate) const MAX_KIND: usize = 128 * 1024;

/// Reads the bytes of the transaction kind; the length is checked before anything is allocated.
pub(crate) fn kind_bytes(result: &Members<'_, '_>) -> Result<Vec<u8>, Refusal> {
    let node = result.need(KEY)?;
    let items = node.array()?;
    if items.len() > MAX_KIND {
        return Err(node.at().refuse(Code::KindMalformed).expected(format!("at most {MAX_KIND} bytes")).got(items.len()));
    }
    let mut bytes = Vec::with_capacity(items.len());
    for item in items {
        bytes.push(byte(&item)?);
    }
    Ok(bytes)
}

fn byte(node: &Node<'_, '_>) -> Result<u8, Refusal> {
    // Some hundred of these stand in every answer: the general reading of numbers would cost more than all the rest.
    if let Value::Number(text) = node.value()
        && (text.len() == 1 || !text.starts_with('0'))
        && let Ok(byte) = text.parse()
    {
        return Ok(byte);
    }
    u8::try_from(node.integer()?).map_err(|_| node.refuse(Code::NumberTooLarge).expected("0 to 255"))
}
