//! The Solana result, field for field (protocol.md section 7), and the two spellings of a transaction.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::sync::LazyLock;

use base64::Engine;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use base64::engine::general_purpose::STANDARD as BASE64;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use base64::engine::{Simd, general_purpose::PAD};
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

/// Many characters at once where the processor can, which is asked once.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static BASE64: LazyLock<Simd> = LazyLock::new(|| Simd::standard(PAD));

/// Reads a transaction's bytes. The two spellings cannot be confused: a transaction of one or two signers begins with the
/// byte 1 or 2, in base64 `AQ` or `Ag`, and neither `Q` nor `g` is a hex digit.
pub(crate) fn transaction(node: &Node<'_, '_>) -> Result<(Vec<u8>, Encoding), Refusal> {
    let text = node.text()?;
    // Hex is the longer spelling.
    if text.len() > PACKET.saturating_mul(2) {
        return Err(node.at().refuse(Code::TransactionTooLarge).with_expected(format!("at most {PACKET} bytes")));
    }
    let encoding = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit()) { Encoding::Hex } else { Encoding::Base64 };
    let bytes = match encoding {
        Encoding::Hex => digits::bytes(text).ok(),
        // The engine refuses white space, missing padding and spare bits. Its `decode` would ask the allocator for zeros, which
        // is slow beside the decoding.
        Encoding::Base64 => {
            let mut bytes = Vec::with_capacity(base64::decoded_len_estimate(text.len()));
            BASE64.decode_vec(text, &mut bytes).ok().map(|()| bytes)
        }
    };
    let bytes = bytes.ok_or_else(|| node.refuse(Code::TransactionEncoding))?;
    if bytes.len() > PACKET {
        return Err(node.at().refuse(Code::TransactionTooLarge).with_expected(format!("at most {PACKET} bytes")).with_actual(bytes.len()));
    }
    Ok((bytes, encoding))
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use countersign_core::json::Value;

    use super::*;

    /// What decodes many characters at once and what decodes one by one are one rule.
    #[test]
    fn base64_is_read_as_the_plain_engine_reads_it() {
        let (mut accepted, mut refused) = (0, 0);
        for len in 90..140 {
            let bytes: Vec<u8> = (0..len).map(|byte| byte ^ 0xa5).collect();
            let text = STANDARD.encode(&bytes);
            for place in 0..=text.len() {
                for other in ["", "A", "B", "+", "/", "-", "_", " ", "\n", "=", "\0", "\u{80}"] {
                    for upto in place..=text.len().min(place + 1) {
                        let mut text = text.clone();
                        text.replace_range(place..upto, other);
                        let plain = STANDARD.decode(&text).map_err(|_| Code::TransactionEncoding);
                        let read = transaction(&Node::root(&Value::String(text.as_str().into()), ""));
                        let read = read.map(|(bytes, _)| bytes).map_err(|refusal| refusal.code());
                        assert_eq!(read, plain, "{text}");
                        *if read.is_ok() { &mut accepted } else { &mut refused } += 1;
                    }
                }
            }
        }
        assert!(accepted > 10_000 && refused > 10_000, "{accepted} {refused}");
        for text in ["AQ", "AQ=", "AR==", "AQ==\n", " AQ==", "A Q==", "AQ==AQ==", "_Q=="] {
            let refusal = transaction(&Node::root(&Value::String(text.into()), "")).unwrap_err();
            assert_eq!(refusal.code(), Code::TransactionEncoding, "{text}");
        }
    }
}
