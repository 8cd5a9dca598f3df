//! Recovery from an order record alone.

use std::sync::Arc;

use countersign_json::objects;
use zeroize::Zeroizing;

use crate::{Leg, Policy, Registry, Result, UnsignedOrder};

/// A refund or a redemption, from the order record alone: it works when the service is gone.
///
/// A record by itself is only coherent: its parties may be anybody's. Verify it with [`Record`](crate::Record) first, or show
/// the owner who is paid.
#[derive(Debug, uniffi::Object)]
pub struct Recovery(countersign::recover::Recovery);

#[uniffi::export]
impl Recovery {
    /// Returns the recovery that refunds a leg after its timelock. Whether that has passed, only the chain tells.
    #[uniffi::constructor]
    pub fn refund(record: Vec<u8>, leg: Leg, registry: &Registry) -> Result<Self> {
        Ok(Self(objects::refund(&record, leg.name(), &registry.0)?))
    }

    /// Returns the recovery that redeems a leg with the secret, 64 hex digits with or without `0x`. Broadcasting it makes the
    /// secret public: do it at once, or check the chain again before.
    #[uniffi::constructor]
    pub fn redeem(record: Vec<u8>, leg: Leg, secret: String, registry: &Registry) -> Result<Self> {
        let secret = Zeroizing::new(secret);
        Ok(Self(objects::redeem(&record, leg.name(), &secret, &registry.0)?))
    }

    /// Returns the family of the leg's chain.
    pub fn family(&self) -> String {
        self.0.family().name().to_owned()
    }

    /// Returns the order's id, as the record has it.
    pub fn order_id(&self) -> String {
        self.0.terms().order_id
    }

    /// Returns `refund` or `redeem`.
    pub fn role(&self) -> String {
        self.0.terms().role.to_string()
    }

    /// Returns who is paid; on Bitcoin-like chains the x-only key that takes the coins.
    pub fn payee(&self) -> String {
        self.0.terms().payee.to_string()
    }

    /// Returns the amount of the leg in base units, decimal, before any fee.
    pub fn amount(&self) -> String {
        self.0.terms().amount.to_string()
    }

    /// Prepares the recovery with a wallet context, as JSON: `docs/spec/batch.md`, Recovery.
    #[uniffi::method(default(policy = None))]
    pub fn prepare(&self, wallet: Vec<u8>, policy: Option<Arc<Policy>>) -> Result<UnsignedOrder> {
        Ok(objects::prepare_recovery(&self.0, &wallet, &policy.unwrap_or_default().0)?.into())
    }
}
