//! What was decided about the documents.

use countersign::json::Cursor;
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
