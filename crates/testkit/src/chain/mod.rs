//! Chains in memory, which answer readers: an honest chain is a function from a request to an answer.

#[cfg(feature = "bitcoin")]
pub mod bitcoin;
