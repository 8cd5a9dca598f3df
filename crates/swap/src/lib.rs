#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod disk;
mod event;
mod host;
mod need;
mod options;
mod owner;
mod setup;
mod store;
mod swaps;
mod wish;

pub use countersign;
pub use countersign::chains::UnixMillis;
pub use countersign_client;
pub use countersign_client::driver::{Purpose, TrustTheService};
pub use countersign_client::url::Url;
pub use countersign_client::{AppId, Pace, QuoteWish};
pub use countersign_json::objects::Failure;
pub use countersign_node;
pub use countersign_node::{Endpoint, Endpoints, NodeConfig, Speed};
pub use countersign_store::Zeroizing;
pub use countersign_transport::TransportErrorKind;
pub use event::{Event, StoredOrder};
pub use need::{Ask, Consent, HttpRequest, NOTHING_SENT, Need, Reply, Signing, Write};
pub use options::Options;
pub use setup::{JsonSetup, Setup};
pub use swaps::{Output, Swaps};
pub use wish::Wish;
