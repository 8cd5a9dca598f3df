//! What was decided about the documents, and the hashes that follow from them.

use std::collections::BTreeMap;

#[cfg(feature = "evm")]
use countersign::evm::message::Hashes;
use countersign::json::Cursor;
#[cfg(all(feature = "tron", not(feature = "evm")))]
use countersign::tron::message::Hashes;
use countersign::{Refusal, Verified};
use serde::Serialize;

use super::{need_text, text};

/// What was decided about the documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Verdict {
    /// The order was accepted.
    #[non_exhaustive]
    Accepted {
        /// `true`
        ok: bool,
        /// The family that signs.
        family: String,
        /// The order's id.
        order_id: String,
        /// The lines of the summary, in their order.
        summary: Vec<String>,
        /// The codes of the warnings, in their order.
        warnings: Vec<String>,
    },
    /// The order was refused.
    #[non_exhaustive]
    Refused {
        /// `false`
        ok: bool,
        /// The code of the refusal.
        code: String,
        /// Its location.
        at: String,
        /// What would have been accepted.
        #[serde(skip_serializing_if = "Option::is_none")]
        expected: Option<String>,
        /// The actual value.
        #[serde(skip_serializing_if = "Option::is_none")]
        got: Option<String>,
    },
}

impl Verdict {
    pub(super) fn new(result: &Result<Verified, Refusal>) -> Self {
        match result {
            Ok(order) => Self::Accepted {
                ok: true,
                family: order.family().name().to_owned(),
                order_id: order.order_id().to_owned(),
                summary: order.summary().lines().iter().map(ToString::to_string).collect(),
                warnings: order.warnings().list().iter().map(|warning| warning.code().name().to_owned()).collect(),
            },
            Err(refusal) => Self::Refused {
                ok: false,
                code: refusal.code().name().to_owned(),
                at: refusal.location().to_owned(),
                expected: refusal.expected().map(ToString::to_string),
                got: refusal.actual().map(ToString::to_string),
            },
        }
    }

    pub(super) fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let list = |key| members.need(key)?.array()?.map(|item| item.text().map(str::to_owned)).collect::<Result<Vec<_>, _>>();
        if members.need("ok")?.bool()? {
            members.only(&["ok", "family", "order_id", "summary", "warnings"])?;
            let (family, order_id) = (need_text(&members, "family")?, need_text(&members, "order_id")?);
            return Ok(Self::Accepted { ok: true, family, order_id, summary: list("summary")?, warnings: list("warnings")? });
        }
        members.only(&["ok", "code", "at", "expected", "got"])?;
        let (code, at) = (need_text(&members, "code")?, need_text(&members, "at")?);
        Ok(Self::Refused { ok: false, code, at, expected: text(&members, "expected")?, got: text(&members, "got")? })
    }

    /// Returns the code of the refusal; `None` if the order was accepted.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Accepted { .. } => None,
            Self::Refused { code, .. } => Some(code),
        }
    }
}

/// Returns the hashes of the payloads that the order has without a wallet.
pub(super) fn hashes(order: &Verified) -> BTreeMap<String, String> {
    let mut hashes = BTreeMap::new();
    let mut add = |name: &str, hash: String| drop(hashes.insert(name.to_owned(), hash));
    match order {
        #[cfg(feature = "evm")]
        Verified::Evm(order) => order.deposit().typed_data.iter().for_each(|message| typed_data(&mut add, &message.hashes())),
        #[cfg(feature = "tron")]
        Verified::Tron(order) => order.deposit().typed_data.iter().for_each(|message| typed_data(&mut add, &message.hashes())),
        #[cfg(feature = "starknet")]
        Verified::Starknet(order) => {
            let deposit = order.deposit();
            if let Some(message) = &deposit.typed_data {
                add("typed_data_message_hash", hex::encode(message.hashes(deposit.sender).message_hash.to_bytes_be()));
            }
        }
        #[cfg(feature = "solana")]
        Verified::Solana(order) => {
            let deposit = order.deposit();
            add("transaction_message_sha256", super::sha256(&deposit.transaction.decoded.message));
            if let Some(gasless) = &deposit.gasless {
                add("gasless_message_sha256", super::sha256(&gasless.decoded.message));
            }
        }
        #[cfg(feature = "sui")]
        Verified::Sui(order) => add("transaction_kind_sha256", super::sha256(order.deposit().kind_bytes())),
        #[cfg(feature = "bitcoin")]
        Verified::Bitcoin(order) => add("deposit_script_pubkey", hex::encode(order.deposit().script_pubkey.as_bytes())),
        _ => {}
    }
    hashes
}

/// Adds the hashes of EIP-712 or TIP-712 typed data.
#[cfg(any(feature = "evm", feature = "tron"))]
fn typed_data(add: &mut impl FnMut(&str, String), hashes: &Hashes) {
    add("typed_data_domain_separator", hex::encode(hashes.domain_separator));
    add("typed_data_struct_hash", hex::encode(hashes.struct_hash));
    add("typed_data_digest", hex::encode(hashes.digest));
}
