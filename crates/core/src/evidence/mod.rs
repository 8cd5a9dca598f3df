//! Evidence: the state of a swap on its chain, compared with the terms that were verified.
//!
//! The service states when the other side has paid. Money must not depend on that statement, so the secret is released only with
//! a [`Funded`], which only this comparison creates. The caller fetches the state from the chain. The rules are those of
//! `docs/spec/attacks.md#the-secret`.

mod event;
mod judge;
mod state;
mod terms;
#[cfg(test)]
mod tests;

pub use event::HtlcEvent;
pub use judge::{Difference, Funded, Hold};
pub use state::{Finding, HtlcState, LockedHtlc, SeenAt};
pub(crate) use terms::collect;
pub use terms::{HtlcTerms, VerifiedRecord, VerifiedTerms};
