//! Permissions of an account: which keys sign for it.
//!
//! Specification: `docs/spec/tron.md#permissions`.

use countersign_core::{Code, Refusal, serde_text};
use countersign_evm_core::signers::Signers;
use serde::{Deserialize, Serialize};

use super::protocol::TRIGGER_SMART_CONTRACT;
use crate::address::Address;

/// The most keys of a permission, and the most signatures of a transaction, that nodes take.
pub(super) const MAX_KEYS: usize = 5;

/// A permission of the owner's account, under which the calls are signed, as `/wallet/getaccount` shows it.
///
/// ```
/// use countersign::chains::UnixMillis;
/// use countersign::tron::{Permission, TxContext};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), countersign::report::ParseError> {
/// let [a, b] = [
///     "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t".parse()?,
///     "TSfPmyuqPyAJaXPBMe4RSvV3Lj2kyT1xzc".parse()?,
/// ];
/// // Two keys of weight 1 each, and both have to sign.
/// let permission = Permission::new(2).with_keys(2, [(a, 1), (b, 1)]);
/// let now = UnixMillis::from_millis(1_772_601_001_001);
/// let expiration = now.saturating_add(Duration::from_secs(60));
/// let calls = TxContext::new([0x7f, 0x87], [0; 8], expiration, now)
///     .with_permission(permission);
/// assert_eq!(calls.permission.map(|permission| permission.id), Some(2));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Permission {
    /// Which one: 0 for the owner permission, 2 to 9 for an active one.
    pub id: u8,
    /// The weight that the signatures must reach.
    pub threshold: u64,
    /// The keys, without duplicates. If there are none, the owner's own key signs.
    pub keys: Vec<PermissionKey>,
}

/// A key of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::exhaustive_structs, reason = "the protocol defines both fields")]
pub struct PermissionKey {
    /// The account of the key.
    #[serde(with = "serde_text")]
    pub address: Address,
    /// How much its signature counts.
    pub weight: u64,
}

impl Permission {
    /// Creates a permission that the owner's own key has, as every account's active permission when the account is made.
    #[must_use]
    pub const fn new(id: u8) -> Self {
        Self { id, threshold: 1, keys: Vec::new() }
    }

    /// Names the keys with their weights, and the weight that their signatures must reach.
    #[must_use]
    pub fn with_keys(mut self, threshold: u64, keys: impl IntoIterator<Item = (Address, u64)>) -> Self {
        self.threshold = threshold;
        self.keys = keys.into_iter().map(|(address, weight)| PermissionKey { address, weight }).collect();
        self
    }

    /// Returns whether the `operations` of an active permission contain the call of a contract: the bit with the number of the operation, from
    /// the lowest bit of the first byte on.
    #[must_use]
    pub const fn allows_calls(operations: &[u8; 32]) -> bool {
        const _: () = assert!(TRIGGER_SMART_CONTRACT == 31);
        operations[3] & 0x80 != 0
    }

    /// Requires the id of a permission that can make calls: 0, or 2 to 9.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`] at the location `at`.
    pub fn check_id(id: u8, at: &str) -> Result<(), Refusal> {
        check_id(id.into(), Code::WrongType, at)
    }

    /// Requires what nodes require of every permission: an id of one that can make calls, and keys that can reach the threshold.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        Self::check_id(self.id, "/permission_id")?;
        let Self { threshold, keys, .. } = self;
        let refuse = |at: &str| Refusal::new(Code::WrongType, at);
        if keys.len() > MAX_KEYS {
            return Err(refuse("/permission/keys").with_expected(format!("at most {MAX_KEYS} keys")).with_actual(keys.len()));
        }
        for (index, PermissionKey { address, weight }) in keys.iter().enumerate() {
            if *weight == 0 {
                let at = format!("/permission/keys/{index}/weight");
                return Err(refuse(&at).with_expected("at least 1").with_actual(*weight));
            }
            if keys.iter().take(index).any(|before| before.address == *address) {
                let refusal = refuse(&format!("/permission/keys/{index}/address")).with_actual(*address);
                return Err(refusal.with_reason("the key is named twice"));
            }
        }
        let most = if keys.is_empty() { 1 } else { keys.iter().fold(0_u64, |sum, key| sum.saturating_add(key.weight)) };
        if !(1..=most).contains(threshold) {
            let refusal = refuse("/permission/threshold").with_expected(format!("1 to {most}, the weight of all keys"));
            return Err(refusal.with_actual(*threshold));
        }
        Ok(())
    }

    /// Returns the keys that sign in place of the owner's; `None` if its own signs.
    pub(crate) fn signers(&self) -> Option<Signers> {
        let keys = self.keys.iter().map(|key| (key.address.bytes(), key.weight));
        (!self.keys.is_empty()).then(|| Signers::new(self.threshold, keys.collect()))
    }
}

/// Describes who signs.
pub(super) fn describe(id: i32, signers: Option<&Signers>) -> String {
    let Some(Signers { threshold, keys, .. }) = signers else { return format!("signed under {} by the sender's own key", name(id)) };
    let named: Vec<_> = keys.iter().map(|(key, weight)| format!("{} (weight {weight})", Address::from(*key))).collect();
    // The fee is a parameter of the chain.
    let fee = if keys.len() > 1 { "; more than one signature costs a fee of its own, 1 TRX so far" } else { "" };
    format!("signed under {} with a weight of {threshold} by {}{fee}", name(id), named.join(", "))
}

/// Returns how a permission is called.
pub(crate) fn name(id: i32) -> String {
    if id == 0 { "the owner permission".to_owned() } else { format!("permission {id}") }
}

/// Requires the id of a permission that can make calls, or refuses with `code`. 1 is that of witnesses, which signs blocks.
pub(super) fn check_id(id: i32, code: Code, at: &str) -> Result<(), Refusal> {
    if matches!(id, 0 | 2..=9) {
        return Ok(());
    }
    let refusal = Refusal::new(code, at).with_expected("0, the owner permission, or 2 to 9, an active one").with_actual(id.to_string());
    Err(refusal.with_reason("no permission with this id can make calls"))
}
