//! Evidence: the state of a swap on its chain, compared with the terms that were verified.
//!
//! The service states when the other side has paid. Money must not depend on that statement, so the secret is released only with
//! the facade's `Funded`, which stands on a [`Judgement`] of what enough endpoints show. A [reader](crate::reader) of the chain's family
//! makes each [`Finding`]. The rules are those of `docs/spec/attacks.md#the-secret`.

mod agreed;
mod event;
mod head;
mod judge;
mod payment;
mod precondition;
mod state;
mod terms;
#[cfg(test)]
mod tests;

pub use agreed::combine;
pub use event::HtlcEvent;
pub use head::{HeadDoubt, check_head_time};
pub use judge::{Difference, Hold, HoldCode, Judgement};
pub use payment::{EventPlace, PaymentSearch, PaymentTerms, SwapIds};
pub use precondition::{Precondition, Stage};
pub use state::{Finding, HtlcState, LockedHtlc, ObservedAt};
pub(crate) use terms::collect;
pub use terms::{HtlcTerms, VerifiedRecord, VerifiedTerms};
