#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod border;
#[cfg(feature = "evm")]
pub mod clear_signing;
pub mod hashes;
mod page;
pub mod receipt;
mod sentence;

pub use page::{Documents, NotThisOrder, Page};
pub use sentence::{Catalogue, CatalogueError, LANGUAGES, Message, Sentence};
