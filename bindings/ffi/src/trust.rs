//! What the wallet has pinned and what it allows, and the JSON contract with both.

use std::sync::Arc;

use countersign_json::objects::{self, Convert};

use crate::Result;
use crate::shapes::PinChange;

/// What the wallet has pinned: chains, assets with their contracts, solvers.
#[derive(Debug, uniffi::Object)]
pub struct Registry(pub(crate) countersign::Registry);

#[uniffi::export]
impl Registry {
    /// Parses a registry file, as `countersign registry pin` writes it.
    #[uniffi::constructor]
    pub fn new(json: Vec<u8>) -> Result<Self> {
        Ok(Self(objects::registry(&json)?))
    }

    /// Compares a newer registry with this one, which is pinned: everything that differs, sorted by entry and member. Show the changes to the
    /// owner before the newer one is pinned.
    pub fn diff(&self, newer: &Self) -> Vec<PinChange> {
        objects::registry_diff(&self.0, &newer.0).convert()
    }
}

/// The wallet's limits. Where a policy is optional, none means the default policy.
#[derive(Debug, Default, uniffi::Object)]
pub struct Policy(pub(crate) countersign::Policy);

#[uniffi::export]
impl Policy {
    /// Parses a policy file. `{}` is the default policy.
    #[uniffi::constructor]
    pub fn new(json: Vec<u8>) -> Result<Self> {
        Ok(Self(objects::policy(&json)?))
    }
}

/// Answers one line of `countersign batch` with one line, without the line feed. It never fails: a refusal is a result.
///
/// A key in the line passes through buffers that are not wiped. Use [`UnsignedOrder::attach`](crate::UnsignedOrder::attach)
/// with a signer outside, or [`UnsignedOrder::sign`](crate::UnsignedOrder::sign).
#[uniffi::export(default(policy = None))]
pub fn verify_line(line: Vec<u8>, registry: &Registry, policy: Option<Arc<Policy>>) -> String {
    objects::verify_line(&line, &registry.0, &policy.unwrap_or_default().0)
}
