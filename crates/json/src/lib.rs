//! The JSON contract of countersign: one case in, one result out (`docs/spec/batch.md`).
//!
//! A case is one object with the members `id`, `request`, `response`, `order` and `wallet`. A result has the artefacts, the
//! summary and the warnings, or an error with a pointer into the case. The program and the language bindings share this crate;
//! the bindings use [`objects`]. Wallets written in Rust use the typed API of [`countersign`] instead.
//!
//! ```
//! use countersign::{Policy, Registry};
//! use countersign_json::Outcome;
//!
//! let outcome = Outcome::from_line(br#"{"id": "1", "request": {}}"#, &Registry::default(), &Policy::default());
//! assert!(!outcome.is_ok());
//! assert!(serde_json::to_string(&outcome)?.starts_with(r#"{"id":"1","ok":false,"error":{"code":"missing_field""#));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! | crate | which JSON it reads and writes |
//! |---|---|
//! | `countersign` | the service's documents, the registry and policy files |
//! | `countersign-json` | wallet contexts, keys and signatures in JSON, artefacts, `/wallet` and `/signatures` pointers |

#[cfg(any(feature = "evm", feature = "tron"))]
mod calls;
mod case;
mod dispatch;
mod family;
pub mod objects;
mod outcome;
mod recover;

#[cfg(feature = "bitcoin")]
mod bitcoin;
#[cfg(feature = "evm")]
mod evm;
#[cfg(feature = "solana")]
mod solana;
#[cfg(feature = "starknet")]
mod starknet;
#[cfg(feature = "sui")]
mod sui;
#[cfg(feature = "tron")]
mod tron;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use case::Case;
pub use dispatch::{Artefacts, attach, prepare, sign};
pub use family::{JsonArtefacts, JsonFamily, attach_json, prepare_json, sign_text};
pub use outcome::{Outcome, Request};
pub use recover::prepare_recovery;
