#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod chains;
mod error;
mod gather;
#[cfg(feature = "http")]
mod http;
mod memory;
mod transport;

pub use chains::{BoxChains, ChainEndpoints, Chains, Link, NoChains};
pub use error::{TransportError, TransportErrorKind};
pub use gather::{GatherError, gather, gather_all, gather_middle};
#[cfg(feature = "http")]
pub use http::{Http, Timeouts};
pub use memory::Memory;
#[doc(hidden)]
pub use transport::BoxFuture;
pub use transport::{BoxTransport, MAX_BODY, MaybeSend, MaybeSync, Method, Request, Response, Transport, is_safe, on_heap};
pub use url;
