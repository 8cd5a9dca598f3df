//! Evidence: what a chain says about a swap, compared with the terms that were verified.
//!
//! The service states when the other side has paid. Money must not depend on that statement, so the secret leaves only with a
//! [`Funded`], which only this comparison makes. The caller fetches the chain's answer.

mod judge;
mod state;
mod terms;
#[cfg(test)]
mod tests;

pub use judge::{Difference, Funded, Hold};
pub use state::{HtlcState, LockedHtlc, SeenAt};
pub(crate) use terms::collect;
pub use terms::{HtlcTerms, VerifiedRecord, VerifiedTerms};
