//! The JSON of countersign (`docs/spec/batch.md`), in two parts over the same forms of wallet contexts and artefacts:
//!
//! - [`line`](mod@line) has the batch contract: one case in, one result out. A case is one object with the members `id`, `request`,
//!   `response`, `order` and `wallet`. A result has the artefacts, the summary and the warnings, or an error with a pointer into the
//!   case. The program uses it.
//! - [`objects`] has the states of an order as objects that exchange JSON and bytes. The bindings for other languages use it.
//!
//! Wallets written in Rust use the typed API of [`countersign`] instead.
//!
//! ```
//! use countersign::{Policy, Registry};
//! use countersign_json::line::Outcome;
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
#![cfg_attr(docsrs, feature(doc_cfg))]

mod dispatch;
mod family;
pub mod line;
pub mod objects;
mod recover;
mod sent;
mod wipe;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use dispatch::{Artefacts, artefact_members, attach, attach_file, key_form, prepare, read_context, recovery_examples, sign, sign_with};
pub use family::inputs::{Input, inputs, is_decimal_text};
#[cfg(feature = "tron")]
pub use family::tron::{permission as tron_permission, permission_in as tron_permission_in};
pub use family::{ArtefactMembers, JsonArtefacts, JsonFamily, attach_json, prepare_json, sign_text};
pub use recover::prepare_recovery;
pub use sent::{check_outcome, find_payment, is_effect, match_with_warnings, stage_of_sent, wrappers};
