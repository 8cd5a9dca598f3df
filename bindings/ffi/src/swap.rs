//! The record of an order under way, and what its chains say.

use std::sync::Arc;

use countersign_batch::objects::{self, Documents};

use crate::shapes::{self, Htlc, HtlcTerms, Proof, Warning};
use crate::{Policy, Registry, Result};

/// One side of a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum Leg {
    /// Where the owner pays.
    Source,
    /// Where the owner is paid.
    Destination,
}

impl Leg {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Destination => "destination",
        }
    }
}

/// A verified record of an order under way. Nothing that could be signed.
#[derive(Debug, uniffi::Object)]
pub struct Record(objects::Record);

#[uniffi::export]
impl Record {
    /// Verifies the record of an order that may be funded, redeemed or refunded by now.
    #[uniffi::constructor(default(policy = None))]
    pub fn verify(request: Vec<u8>, response: Vec<u8>, record: Vec<u8>, registry: &Registry, policy: Option<Arc<Policy>>) -> Result<Self> {
        let documents = Documents::new(&request, &response).with_record(Some(&record));
        Ok(Self(objects::verify_record(&documents, &registry.0, &policy.unwrap_or_default().0)?))
    }

    /// Returns the order's id.
    pub fn order_id(&self) -> String {
        self.0.verified.terms.order_id.clone()
    }

    /// Returns what the HTLC of a leg must hold, and where it is.
    pub fn terms(&self, leg: Leg) -> Result<HtlcTerms> {
        Ok(objects::htlc_terms(&self.0, leg.name())?.into())
    }

    /// Returns what the owner should know.
    pub fn warnings(&self) -> Vec<Warning> {
        shapes::list(objects::warnings(&self.0.verified.warnings))
    }

    /// Decodes what a chain returned about the HTLC of a leg. The evidence is JSON with the members of the chain's family, which
    /// `docs/spec/batch.md#evidence` lists.
    pub fn read_htlc(&self, leg: Leg, evidence: Vec<u8>) -> Result<Htlc> {
        Ok(objects::read_htlc(&self.0, leg.name(), &evidence)?.into())
    }

    /// Compares what the destination chain returned with the verified terms. Only with the proof may the secret leave.
    ///
    /// `seen` is JSON: `height`, `hash`, `head_time` in Unix seconds, `depth`, and optionally `is_safe`, `is_finalized`,
    /// `agreed`, `needed`. `now` is in Unix seconds.
    pub fn judge(&self, evidence: Vec<u8>, seen: Vec<u8>, now: u64) -> Result<Proof> {
        Ok(objects::judge(&self.0, &evidence, &seen, now)?.into())
    }
}
