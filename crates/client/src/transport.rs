//! What the client needs from outside: something that sends a request, a timer and a clock.
//!
//! Requests and answers are plain values, so that a browser's or a wallet's own HTTP stack can be plugged in. Futures are
//! as `Send` as the transport's own are.

use std::fmt;
use std::time::Duration;

use url::Url;
use zeroize::Zeroizing;

use crate::error::TransportError;

/// Most bytes of a body that a transport reads: no answer of the interface comes near.
pub const MAX_BODY: usize = countersign::json::MAX_BYTES;

/// An HTTP stack, a timer and a clock.
pub trait Transport {
    /// Sends a request once, and reads at most [`MAX_BODY`] bytes of the answer.
    ///
    /// An implementation follows no redirect to another origin (the headers hold the application id), sends nothing that
    /// was not asked for twice, decodes no compressed body, and ends within a time of its own.
    fn send(&self, request: &Request) -> impl Future<Output = Result<Response, TransportError>>;

    /// Waits.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()>;

    /// Unix seconds. Only what is said to people and when to ask next hangs on it, never a verdict on an order.
    fn now(&self) -> u64;
}

impl<T: Transport> Transport for &T {
    fn send(&self, request: &Request) -> impl Future<Output = Result<Response, TransportError>> {
        T::send(self, request)
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> {
        T::sleep(self, duration)
    }

    fn now(&self) -> u64 {
        T::now(self)
    }
}

/// HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the interface has no others")]
pub enum Method {
    /// Reads; may be repeated.
    Get,
    /// Creates an order.
    Post,
    /// Acts on an order.
    Patch,
}

impl Method {
    /// The method as HTTP writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
        }
    }
}

/// A request, complete. Headers can hold the application id and the body a secret: both are wiped, neither is printed.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The whole address.
    pub url: Url,
    /// Names in lower case, and values.
    pub headers: Vec<(&'static str, Zeroizing<String>)>,
    /// JSON.
    pub body: Option<Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for Request {
    /// Method and path only: the query holds addresses, the headers the application id, the body perhaps a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} {})", self.method.name(), self.url.path())
    }
}

/// An answer.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "every transport makes one")]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The header `retry-after`, where there is one.
    pub retry_after: Option<String>,
    /// The body, not encoded.
    pub body: Vec<u8>,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({}, {} bytes)", self.status, self.body.len())
    }
}
