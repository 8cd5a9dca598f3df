//! Evidence: what a chain says about a swap, compared with the terms that were verified.
//!
//! The service states when the other side has paid. Nothing that costs money may follow from a statement, so the secret leaves
//! only for [`Funded`], a value that nothing but this comparison makes. Fetching a chain's answer is left to whoever has a
//! connection to it.

mod judge;
mod state;
mod terms;
#[cfg(test)]
mod tests;

pub use judge::{Difference, Funded, Hold};
pub use state::{HtlcState, LockedHtlc, SeenAt};
pub(crate) use terms::collect;
pub use terms::{HtlcTerms, VerifiedRecord, VerifiedTerms};
