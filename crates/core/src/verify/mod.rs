//! Verification of what all families share: the request, the terms, the record.

mod context;
mod deadline;
mod leg;
mod payloads;
mod record;
mod rules;
mod swap_id;

pub use context::{OrderContext, Proposal, SwapTerms, address_refusal};
pub(crate) use deadline::check as check_deadline;
pub use leg::{Leg, RecordedLeg};
pub use payloads::{CallPayloads, check_declared_type};
pub(crate) use record::{LegParties, RecordCheck, RecordParties, check as check_record, stated_parties};
pub use rules::RefuseAt;
