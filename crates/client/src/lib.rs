#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod affiliate;
pub mod amount;
mod client;
pub mod driver;
mod error;
mod flow;
pub mod guide;
#[cfg(feature = "bitcoin")]
mod instant;
mod listed;
mod quote;
mod request;
#[cfg(feature = "store")]
pub mod rescue;
pub mod response;
#[cfg(feature = "store")]
pub mod restore;
mod retry;
pub mod route;
mod secret;
pub mod status;
mod stored;
mod track;

pub use client::Client;
pub use countersign;
pub use countersign::evidence::Hold;
pub use countersign_transport::{
    BoxTransport, MAX_BODY, MaybeSend, MaybeSync, Method, Request, Response, Transport, TransportError, TransportErrorKind, is_safe, url,
};
#[cfg(feature = "http")]
pub use countersign_transport::{Http, Timeouts};
pub use driver::{Driver, Release};
pub use error::{Error, ErrorCode, RandomError};
pub use flow::{Flow, VerifiedSwap};
pub use futures_util::{Stream, StreamExt};
#[cfg(feature = "bitcoin")]
pub use instant::instant_refund;
pub use listed::{ListedOrders, MAX_LISTED};
pub use quote::{QuoteError, QuoteWish};
pub use request::{
    Action, Api, ExtraParameters, List, OrderFilter, OrderId, OrderStatus, ParseOrderStatusError, QuoteAmount, QuoteRequest,
};
pub use response::Answer;
pub use retry::Retry;
pub use secret::{AppId, Secret};
pub use status::{State, Status};
pub use stored::CreatedOrder;
pub use track::{Pace, Progress, track};
