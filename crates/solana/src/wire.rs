//! The Solana result, field for field (protocol.md section 7), and the two spellings of a transaction.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::digits;
use countersign_core::json::{Members, Node};
use countersign_core::{Code, Refusal};

/// The members that carry this family's payloads.
pub(crate) const KEYS: [&str; 2] = [TRANSACTION, GASLESS];

/// The transaction that the owner sends.
pub(crate) const TRANSACTION: &str = "versioned_tx";
/// The transaction that the owner signs and the service sends.
pub(crate) const GASLESS: &str = "versioned_tx_gasless";

/// The payloads of a result.
pub(crate) struct Response<'p, 'v> {
    pub(crate) transaction: Node<'p, 'v>,
    pub(crate) gasless: Option<Node<'p, 'v>>,
}

impl<'p, 'v> Response<'p, 'v> {
    pub(crate) fn read(result: &Members<'p, 'v>) -> Result<Self, Refusal> {
        Ok(Self { transaction: result.need(TRANSACTION)?, gasless: result.get(GASLESS) })
    }
}

/// How a transaction was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// Standard alphabet, padded.
    Base64,
    /// As older answers write it: no prefix.
    Hex,
}

/// Most bytes of a transaction: the IPv6 minimum MTU less the headers.
pub(crate) const PACKET: usize = 1232;

/// Reads a transaction's bytes. The two spellings cannot be confused: a transaction of one or two signers begins with the
/// byte 1 or 2, in base64 `AQ` or `Ag`, and neither `Q` nor `g` is a hex digit.
pub(crate) fn transaction(node: &Node<'_, '_>) -> Result<(Vec<u8>, Encoding), Refusal> {
    let text = node.text()?;
    // Hex is the longer spelling.
    if text.len() > PACKET.saturating_mul(2) {
        return Err(node.at().refuse(Code::TransactionTooLarge).expected(format!("at most {PACKET} bytes")));
    }
    let encoding = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit()) { Encoding::Hex } else { Encoding::Base64 };
    let bytes = match encoding {
        Encoding::Hex => digits::bytes(text).ok(),
        // The engine refuses white space, missing padding and spare bits.
        Encoding::Base64 => STANDARD.decode(text).ok(),
    };
    let bytes = bytes.ok_or_else(|| node.refuse(Code::TransactionEncoding))?;
    if bytes.len() > PACKET {
        return Err(node.at().refuse(Code::TransactionTooLarge).expected(format!("at most {PACKET} bytes")).got(bytes.len()));
    }
    Ok((bytes, encoding))
}
