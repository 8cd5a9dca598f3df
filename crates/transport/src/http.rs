//! The transport over reqwest, rustls and tokio.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use countersign_core::UnixTime;
use reqwest::header::{CONTENT_ENCODING, HeaderValue};
use zeroize::Zeroizing;

use crate::error::{TransportError, TransportErrorKind};
use crate::transport::{MAX_BODY, Method, Request, Response, Transport};

/// HTTP/1.1 over TLS, by reqwest and rustls with the system's root certificates.
///
/// It does not follow redirects, decompress bodies or repeat requests. It ignores the proxies that environment variables name,
/// because they would see the unencrypted requests to this machine.
#[derive(Debug, Clone)]
pub struct Http {
    client: reqwest::Client,
    max_body: usize,
}

/// Time limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a set of options")]
pub struct Timeouts {
    /// The limit for establishing the connection.
    pub connect: Duration,
    /// The limit for the whole call, including the body.
    pub call: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), call: Duration::from_secs(30) }
    }
}

impl Http {
    /// Creates a transport with its own connection pool.
    ///
    /// # Errors
    ///
    /// [`TransportErrorKind::Setup`] if TLS cannot be set up.
    pub fn new(timeouts: Timeouts) -> Result<Self, TransportError> {
        Self::build(timeouts, None)
    }

    /// Creates a transport that tunnels its https connections through the proxy at a URL, except those to the hosts that `direct` lists in
    /// the form of the environment variable `NO_PROXY`.
    ///
    /// # Errors
    ///
    /// [`TransportErrorKind::Setup`] if TLS cannot be set up, or if `proxy` is not the URL of an http or https proxy.
    pub fn with_proxy(timeouts: Timeouts, proxy: &str, direct: &str) -> Result<Self, TransportError> {
        let refuse = |why| TransportError::new(TransportErrorKind::Setup, why);
        let url = reqwest::Url::parse(proxy).map_err(|_| refuse("the proxy's address is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse("only http and https proxies are supported"));
        }
        let proxy = reqwest::Proxy::https(url).map_err(|_| refuse("the proxy's address is not a URL"))?;
        Self::build(timeouts, Some(proxy.no_proxy(reqwest::NoProxy::from_string(direct))))
    }

    fn build(timeouts: Timeouts, proxy: Option<reqwest::Proxy>) -> Result<Self, TransportError> {
        let builder = reqwest::Client::builder().no_proxy();
        let builder = match proxy {
            Some(proxy) => builder.proxy(proxy),
            None => builder,
        };
        let client = builder
            .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(timeouts.connect)
            .timeout(timeouts.call)
            .build()
            .map_err(|error| TransportError::new(TransportErrorKind::Setup, &describe(error)))?;
        Ok(Self { client, max_body: MAX_BODY })
    }

    /// Limits the size of a body, in bytes. The limit is at most [`MAX_BODY`].
    #[must_use]
    pub fn with_max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes.min(MAX_BODY);
        self
    }

    fn write(&self, request: &Request) -> Result<reqwest::RequestBuilder, TransportError> {
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Patch => reqwest::Method::PATCH,
        };
        let mut builder = self.client.request(method, request.url.clone());
        for (name, value) in &request.headers {
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| TransportError::new(TransportErrorKind::Setup, "a header value contains invalid characters"))?;
            value.set_sensitive(true);
            builder = builder.header(*name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.body(Bytes::from_owner(Zeroizing::new(body.to_vec())));
        }
        Ok(builder)
    }
}

impl Transport for Http {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let mut answer = self.write(request)?.send().await.map_err(failure)?;
        if answer.headers().get_all(CONTENT_ENCODING).iter().any(|encoding| encoding != "identity") {
            return Err(TransportError::new(TransportErrorKind::Encoded, "the request did not ask for compression"));
        }
        let mut response = Response::new(answer.status().as_u16(), Vec::new());
        for name in ["retry-after", "grpc-status"] {
            if let Some(value) = answer.headers().get(name).and_then(|value| value.to_str().ok()) {
                response = response.with_header(name, value);
            }
        }
        while let Some(chunk) = answer.chunk().await.map_err(failure)? {
            if chunk.len() > self.max_body.saturating_sub(response.body.len()) {
                return Err(TransportError::new(TransportErrorKind::TooLarge, &format!("more than {} bytes", self.max_body)));
            }
            response.body.extend_from_slice(&chunk);
        }
        Ok(response)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        SystemTime::now().into()
    }
}

fn failure(error: reqwest::Error) -> TransportError {
    let kind = if error.is_connect() {
        // This includes a timeout while connecting: nothing was sent then either.
        TransportErrorKind::Connect
    } else if error.is_timeout() {
        TransportErrorKind::Timeout
    } else {
        TransportErrorKind::Interrupted
    };
    TransportError::new(kind, &describe(error))
}

/// Returns the messages of an error and its causes, without the URL: its query holds the user's addresses.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
