//! Requests and replies as plain values, so that a server can be tested without a socket.

use serde_json::Value;

/// An incoming request.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: String,
    /// The path without the query. It begins with `/`.
    pub path: String,
    /// The query, without `?`; empty if there is none.
    pub query: String,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The body, at most 4 MiB.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns a request without headers.
    #[must_use]
    pub fn new(method: &str, path: &str, query: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), headers: Vec::new(), body: body.into() }
    }

    /// Returns the value of a query parameter, with `%` escapes resolved.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| unescaped(value))
    }

    /// Returns the value of a header, given its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Adds a member to an object.
pub(crate) fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| *first == b'%').and_then(|digits| hex::decode(digits).ok());
        match (escaped, first) {
            (Some(decoded), _) => {
                bytes.extend(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            (None, b'+') => {
                bytes.push(b' ');
                rest = after;
            }
            (None, other) => {
                bytes.push(*other);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Header names in lower case, with their values. `content-type` is among them.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// Returns a reply with a body of the given content type.
    #[must_use]
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![("content-type".to_owned(), content_type.to_owned())], body: body.into() }
    }

    /// Returns a reply with a JSON body.
    #[must_use]
    pub fn json(status: u16, value: &Value) -> Self {
        Self::new(status, "application/json", value.to_string())
    }

    /// Returns a reply with a plain text body.
    #[must_use]
    pub fn text(status: u16, text: impl Into<String>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", text.into())
    }
}
