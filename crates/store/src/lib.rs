#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod backup;
#[doc(hidden)]
pub mod disk;
mod error;
mod folder;
mod index;
mod order;
pub mod rescue;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use disk::Kind;
pub use error::Error;
pub use folder::{Journal, MAX_FILE, MAX_JOURNAL};
pub use index::{BRANCHES, INDICES, KeyIndex};
pub use order::{LockedOrder, OrderDir};
pub use store::{LockedStore, Store, VERSION};
pub use zeroize::Zeroizing;
