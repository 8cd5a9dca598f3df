//! What the client needs: something that sends a request, a timer and a clock.
//!
//! Requests and responses are plain values, so that a browser's or a wallet's own HTTP stack can be plugged in. The shape is
//! that of alloy's and reqwest's transports: futures are `Send` except on WebAssembly, where a browser's futures never
//! are.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use url::{Host, Url};
use zeroize::Zeroizing;

use crate::error::TransportError;

/// The largest body, in bytes, that a transport reads: no response of the interface comes near.
pub const MAX_BODY: usize = countersign::json::MAX_BYTES;

/// [`Send`], except on WebAssembly, where it is every type.
#[cfg(not(target_family = "wasm"))]
pub trait MaybeSend: Send {}
#[cfg(not(target_family = "wasm"))]
impl<T: Send + ?Sized> MaybeSend for T {}

/// [`Send`], except on WebAssembly, where it is every type.
#[cfg(target_family = "wasm")]
pub trait MaybeSend {}
#[cfg(target_family = "wasm")]
impl<T: ?Sized> MaybeSend for T {}

/// [`Sync`], except on WebAssembly, where it is every type.
#[cfg(not(target_family = "wasm"))]
pub trait MaybeSync: Sync {}
#[cfg(not(target_family = "wasm"))]
impl<T: Sync + ?Sized> MaybeSync for T {}

/// [`Sync`], except on WebAssembly, where it is every type.
#[cfg(target_family = "wasm")]
pub trait MaybeSync {}
#[cfg(target_family = "wasm")]
impl<T: ?Sized> MaybeSync for T {}

/// An HTTP stack, a timer and a clock.
///
/// An implementation may write `async fn`: the compiler checks that the futures are `Send`.
pub trait Transport: MaybeSend + MaybeSync {
    /// Sends a request once, and reads at most [`MAX_BODY`] bytes of the response's body.
    ///
    /// An implementation follows no redirect to another origin (the headers hold the application id), never repeats a request
    /// by itself, decodes no compressed body, and enforces a timeout of its own.
    ///
    /// # Errors
    ///
    /// A [`TransportError`] if no complete response arrives.
    fn send(&self, request: &Request) -> impl Future<Output = Result<Response, TransportError>> + MaybeSend;

    /// Completes after `duration` has elapsed.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + MaybeSend;

    /// Returns the current time in Unix seconds.
    ///
    /// Used for display and polling. It also decides whether a secret may still be released, so it must not run behind.
    fn now(&self) -> u64;
}

/// Lets whatever points to a transport be one.
macro_rules! forward {
    ($([$($lifetime:lifetime)?] $pointer:ty;)*) => {
        $(impl<$($lifetime,)? T: Transport> Transport for $pointer where $pointer: MaybeSend + MaybeSync {
            fn send(&self, request: &Request) -> impl Future<Output = Result<Response, TransportError>> + MaybeSend {
                T::send(self, request)
            }

            fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + MaybeSend {
                T::sleep(self, duration)
            }

            fn now(&self) -> u64 {
                T::now(self)
            }
        })*
    };
}

forward! { ['t] &'t T; [] Box<T>; [] Arc<T>; }

/// A future behind a pointer, `Send` as [`MaybeSend`] is.
#[cfg(not(target_family = "wasm"))]
type BoxFuture<'f, O> = std::pin::Pin<Box<dyn Future<Output = O> + Send + 'f>>;
/// A future behind a pointer, `Send` as [`MaybeSend`] is.
#[cfg(target_family = "wasm")]
type BoxFuture<'f, O> = std::pin::Pin<Box<dyn Future<Output = O> + 'f>>;

/// The object-safe form of a transport.
trait Erased: MaybeSend + MaybeSync {
    fn send<'f>(&'f self, request: &'f Request) -> BoxFuture<'f, Result<Response, TransportError>>;
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;
    fn now(&self) -> u64;
}

impl<T: Transport> Erased for T {
    fn send<'f>(&'f self, request: &'f Request) -> BoxFuture<'f, Result<Response, TransportError>> {
        Box::pin(T::send(self, request))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(T::sleep(self, duration))
    }

    fn now(&self) -> u64 {
        T::now(self)
    }
}

/// A transport of any type: for a [`Client`](crate::Client) whose type does not name its HTTP stack. Cloning is cheap.
///
/// ```no_run
/// use countersign_client::{Api, BoxTransport, Client, Http, Timeouts};
///
/// struct Wallet {
///     client: Client<BoxTransport>,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let api = Api::new("https://service.example", None)?;
/// let wallet = Wallet { client: Client::new(api, BoxTransport::new(Http::new(Timeouts::default())?)) };
/// # Ok(())
/// # }
/// ```
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

    fn now(&self) -> u64 {
        self.0.now()
    }
}

/// HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the interface has no others")]
pub enum Method {
    /// Reads; may be repeated.
    Get,
    /// Creates an order.
    Post,
    /// Acts on an order.
    Patch,
}

impl Method {
    /// Returns the method as HTTP writes it.
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

/// A complete request. Headers can hold the application id and the body a secret: both are wiped, neither is printed.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The complete URL.
    pub url: Url,
    /// Header names in lower case, and values.
    pub headers: Vec<(&'static str, Zeroizing<String>)>,
    /// JSON.
    pub body: Option<Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for Request {
    /// Writes the method and the host only: a path or a query can hold addresses or the key of an account, the headers hold the
    /// application id, the body perhaps a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} {})", self.method, self.url.host_str().unwrap_or_default())
    }
}

impl Request {
    /// Creates a request without headers and body.
    #[must_use]
    pub const fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: Vec::new(), body: None }
    }

    /// Adds a header; its name in lower case.
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

/// Returns whether a request may be sent to an address: https, or http to this machine, without user, password or fragment.
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
    /// The header `grpc-status`, if there is one: gRPC-web has it where a response has no body.
    pub grpc_status: Option<String>,
    /// The body, not compressed.
    pub body: Vec<u8>,
}

impl Response {
    /// Creates a response without the headers that a transport passes on.
    #[must_use]
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, retry_after: None, grpc_status: None, body: body.into() }
    }

    /// Sets one of the headers that a transport passes on, and leaves out any other; its name in lower case.
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
