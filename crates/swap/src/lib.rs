#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod disk;
mod event;
mod host;
mod need;
mod options;
mod owner;
mod store;
mod swaps;

pub use countersign_client::driver::Purpose;
pub use countersign_json::objects::Failure;
pub use countersign_store::Zeroizing;
pub use countersign_transport::TransportErrorKind;
pub use event::{Event, StoredOrder};
pub use need::{Ask, Consent, HttpRequest, NOTHING_SENT, Need, Reply, Signing, Write};
pub use swaps::{Output, Setup, Swaps};
