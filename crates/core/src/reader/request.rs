//! Requests to a chain's ordinary RPC, as values.

use std::fmt;
use std::sync::Arc;

/// One request to an endpoint, which a transport sends as it is.
///
/// Equal requests have equal answers at the same moment, so a transport may send one of them for several readers.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Request {
    /// A JSON-RPC call. It has no id: answers are matched by their place.
    JsonRpc {
        /// The method.
        method: &'static str,
        /// The parameters, as JSON text.
        params: Arc<str>,
    },
    /// An HTTP GET below the endpoint's URL.
    Get {
        /// The path, which begins with `/`.
        path: Arc<str>,
        /// The format of the response's body.
        format: Format,
    },
    /// An HTTP POST below the endpoint's URL.
    Post {
        /// The path, which begins with `/`.
        path: Arc<str>,
        /// The body.
        body: Arc<[u8]>,
        /// The format of both bodies.
        format: Format,
    },
}

/// The format of an HTTP body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JSON.
    Json,
    /// Plain text.
    Text,
    /// Bytes of a binary format.
    Bytes,
    /// Frames of gRPC-web with protobuf messages.
    GrpcWeb,
}

impl Format {
    /// Returns the media type of the header `content-type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Text => "text/plain",
            Self::Bytes => "application/octet-stream",
            Self::GrpcWeb => "application/grpc-web+proto",
        }
    }
}

impl Request {
    /// Creates a JSON-RPC call. `params` must write JSON text, as `serde_json::json!` does.
    #[must_use]
    pub fn json_rpc(method: &'static str, params: impl fmt::Display) -> Self {
        Self::JsonRpc { method, params: params.to_string().into() }
    }

    /// Creates an HTTP GET.
    #[must_use]
    pub fn get(path: impl Into<Arc<str>>, format: Format) -> Self {
        Self::Get { path: path.into(), format }
    }

    /// Creates an HTTP POST.
    #[must_use]
    pub fn post(path: impl Into<Arc<str>>, body: impl Into<Arc<[u8]>>, format: Format) -> Self {
        Self::Post { path: path.into(), body: body.into(), format }
    }
}

impl fmt::Debug for Request {
    /// Writes the method or path, without parameters and body: a signed redemption among them contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JsonRpc { method, .. } => write!(f, "{method}(..)"),
            Self::Get { path, .. } => write!(f, "GET {path}"),
            Self::Post { path, .. } => write!(f, "POST {path}"),
        }
    }
}
