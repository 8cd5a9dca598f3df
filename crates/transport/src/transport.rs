//! What reaches the service and the chains: an HTTP stack, a timer and a clock.
//!
//! Requests and responses are plain values, so that a browser's or a wallet's own HTTP stack can be plugged in. Futures are `Send`,
//! except on WebAssembly, where a browser's futures never are. The rules that a request follows are in
//! `docs/spec/service.md#transport`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use countersign_core::UnixTime;
use url::{Host, Url};
use zeroize::Zeroizing;

use crate::error::TransportError;

/// The largest body that a transport reads, in bytes. Responses of the interface are far smaller.
pub const MAX_BODY: usize = countersign_core::json::MAX_BYTES;

/// [`Send`], except on WebAssembly, where every type implements it.
#[cfg(not(target_family = "wasm"))]
pub trait MaybeSend: Send {}
#[cfg(not(target_family = "wasm"))]
impl<T: Send + ?Sized> MaybeSend for T {}

/// [`Send`], except on WebAssembly, where every type implements it.
#[cfg(target_family = "wasm")]
pub trait MaybeSend {}
#[cfg(target_family = "wasm")]
impl<T: ?Sized> MaybeSend for T {}

/// [`Sync`], except on WebAssembly, where every type implements it.
#[cfg(not(target_family = "wasm"))]
pub trait MaybeSync: Sync {}
#[cfg(not(target_family = "wasm"))]
impl<T: Sync + ?Sized> MaybeSync for T {}

/// [`Sync`], except on WebAssembly, where every type implements it.
#[cfg(target_family = "wasm")]
pub trait MaybeSync {}
#[cfg(target_family = "wasm")]
impl<T: ?Sized> MaybeSync for T {}

/// An HTTP stack, a timer and a clock.
///
/// An implementation may write `async fn`: the compiler checks that the futures are `Send`.
pub trait Transport: MaybeSend + MaybeSync {
    /// Sends a request once, and reads the response with a body of at most [`MAX_BODY`] bytes.
    ///
    /// An implementation must not follow redirects to another origin, because the headers contain the application id. It must not
    /// repeat a request or decode a compressed body, and it must enforce its own timeout.
    ///
    /// # Errors
    ///
    /// A [`TransportError`] if no complete response arrives.
    fn send(&self, request: &Request) -> impl Future<Output = Result<Response, TransportError>> + MaybeSend;

    /// Completes after `duration` has elapsed.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + MaybeSend;

    /// Returns the current time.
    ///
    /// Used for display and polling. It also decides whether an order may still be paid and whether a secret may still be released, so
    /// the clock must not run behind.
    fn now(&self) -> UnixTime;
}

/// Implements [`Transport`] for pointers to a transport.
macro_rules! forward {
    ($([$($lifetime:lifetime)?] $pointer:ty;)*) => {
        $(impl<$($lifetime,)? T: Transport> Transport for $pointer where $pointer: MaybeSend + MaybeSync {
            fn send(&self, request: &Request) -> impl Future<Output = Result<Response, TransportError>> + MaybeSend {
                T::send(self, request)
            }

            fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + MaybeSend {
                T::sleep(self, duration)
            }

            fn now(&self) -> UnixTime {
                T::now(self)
            }
        })*
    };
}

forward! { ['t] &'t T; [] Box<T>; [] Arc<T>; }

/// A boxed future, `Send` except on WebAssembly.
#[doc(hidden)]
#[cfg(not(target_family = "wasm"))]
pub type BoxFuture<'f, O> = std::pin::Pin<Box<dyn Future<Output = O> + Send + 'f>>;
/// A boxed future, `Send` except on WebAssembly.
#[doc(hidden)]
#[cfg(target_family = "wasm")]
pub type BoxFuture<'f, O> = std::pin::Pin<Box<dyn Future<Output = O> + 'f>>;

/// Makes a large future on the heap. A span around it would otherwise copy it into each stack frame that polls it, and the threads of other
/// languages have small stacks.
#[doc(hidden)]
#[inline(never)]
pub fn on_heap<F: Future>(make: impl FnOnce() -> F) -> std::pin::Pin<Box<F>> {
    Box::pin(make())
}

/// The object-safe form of a transport.
pub(crate) trait Erased: MaybeSend + MaybeSync {
    fn send<'f>(&'f self, request: &'f Request) -> BoxFuture<'f, Result<Response, TransportError>>;
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;
    fn now(&self) -> UnixTime;
}

impl<T: Transport> Erased for T {
    fn send<'f>(&'f self, request: &'f Request) -> BoxFuture<'f, Result<Response, TransportError>> {
        Box::pin(T::send(self, request))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(T::sleep(self, duration))
    }

    fn now(&self) -> UnixTime {
        T::now(self)
    }
}

/// A transport whose type is erased, for a client whose type does not name its HTTP stack. Cloning is cheap.
#[derive(Clone)]
pub struct BoxTransport(Arc<dyn Erased>);

impl BoxTransport {
    /// Erases the type of a transport.
    #[must_use]
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self(Arc::new(transport))
    }
}

impl fmt::Debug for BoxTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxTransport(..)")
    }
}

impl Transport for BoxTransport {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        self.0.send(request).await
    }

    async fn sleep(&self, duration: Duration) {
        self.0.sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        self.0.now()
    }
}

/// The HTTP method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the interface has no others")]
pub enum Method {
    /// Reads, and may be repeated.
    Get,
    /// Creates an order.
    Post,
    /// Performs an action on an order.
    Patch,
}

impl Method {
    /// Returns the method's name in upper case, as HTTP writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A complete request. The headers can contain the application id and the body can contain a secret, so both are wiped on drop and
/// never printed.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The complete URL.
    pub url: Url,
    /// Header names in lower case, with their values.
    pub headers: Vec<(&'static str, Zeroizing<String>)>,
    /// The body, JSON unless the request is for a node; `None` for a request without one.
    pub body: Option<Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for Request {
    /// Writes only the method and the host. Path and query can contain addresses or an API key, the headers contain the application
    /// id, and the body can contain a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} {})", self.method, self.url.host_str().unwrap_or_default())
    }
}

impl Request {
    /// Creates a request without headers and without a body.
    #[must_use]
    pub const fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: Vec::new(), body: None }
    }

    /// Adds a header. Its name must be in lower case.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, Zeroizing::new(value.to_owned())));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(mut self, body: Vec<u8>) -> Self {
        self.body = Some(Zeroizing::new(body));
        self
    }
}

/// Returns whether requests may be sent to a URL: it must be `https`, or `http` to this machine, and must not contain a user, password
/// or fragment.
#[must_use]
pub fn is_safe(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return false,
    };
    let is_bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    is_bare && (url.scheme() == "https" || url.scheme() == "http" && is_local)
}

/// A response of the HTTP stack.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The header `retry-after`, if there is one.
    pub retry_after: Option<String>,
    /// The header `grpc-status`, if there is one. gRPC-web puts the status there if the response has no body.
    pub grpc_status: Option<String>,
    /// The uncompressed body.
    pub body: Vec<u8>,
}

impl Response {
    /// Creates a response without headers.
    #[must_use]
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, retry_after: None, grpc_status: None, body: body.into() }
    }

    /// Sets `retry-after` or `grpc-status`, and ignores any other header. `name` must be in lower case.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        match name {
            "retry-after" => self.retry_after = Some(value.to_owned()),
            "grpc-status" => self.grpc_status = Some(value.to_owned()),
            _ => {}
        }
        self
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({}, {} bytes)", self.status, self.body.len())
    }
}
