//! What was left out when the service's lists were pinned, and why.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::Registry;
use crate::report::{Code, Refusal};

/// The registry made from the service's lists, and the entries that could not be pinned.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ServicePins {
    /// Every entry that can be pinned.
    pub registry: Registry,
    /// Every entry that cannot, in the order of the lists.
    pub notices: Vec<Notice>,
}

/// An entry of the service's lists that is not pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// The entry: `chain ethereum`, `asset ethereum:usdc`, `solver <id> on ethereum, <address>`. If it cannot be read, its location.
    pub entry: String,
    /// Why it is not pinned. The location points into the lists: `/chains/3`, `/assets/0`, `/liquidity/1`.
    pub refusal: Refusal,
}

impl Notice {
    /// Returns the stable code of the reason.
    #[must_use]
    pub fn code(&self) -> Code {
        self.refusal.code()
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not pinned: {}", self.entry, self.refusal.reason())?;
        if self.refusal.location() == self.entry { Ok(()) } else { write!(f, " ({})", self.refusal.location()) }
    }
}

impl Serialize for Notice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Notice", 4)?;
        map.serialize_field("entry", &self.entry)?;
        map.serialize_field("code", self.code().name())?;
        map.serialize_field("reason", self.refusal.reason())?;
        map.serialize_field("at", self.refusal.location())?;
        map.end()
    }
}
