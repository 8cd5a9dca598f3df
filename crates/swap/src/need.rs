//! What the machine needs from its host, and the replies.

use countersign::json::{self, Cursor};
use countersign_client::driver::Purpose;
use countersign_json::objects::{Failure, Line, Notice, Terms};
use countersign_transport::{Request, TransportErrorKind};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::host::Expected;

/// Something that only the host can do. [`Swaps::reply`](crate::Swaps::reply) takes the reply to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Need {
    /// The number under which it is replied to.
    pub id: u64,
    /// The number of the call that needs it, as the call returned it: two calls can work on the same order.
    pub call: u64,
    /// What is needed.
    pub ask: Ask,
}

/// What a [`Need`] asks for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ask {
    /// Send an HTTP request once, and read the complete response. No redirects to another origin, no repetition, no decoding of compressed
    /// bodies; at most [`MAX_BODY`](countersign_client::MAX_BODY) bytes.
    Http(HttpRequest),
    /// Write documents durably, all or none: [`Reply::Stored`] means that they survive a power failure. A host that cannot write several at
    /// once writes them one after the other in this order.
    Store(Vec<Write>),
    /// Show what would be signed, and ask the owner.
    Consent(Box<Consent>),
    /// Sign an order, which [`Swaps::take_unsigned`](crate::Swaps::take_unsigned) hands out.
    Sign(Signing),
}

/// An HTTP request. Headers and body can contain secrets, so both are wiped on drop and never printed.
#[non_exhaustive]
pub struct HttpRequest {
    /// `GET`, `POST` or `PATCH`.
    pub method: &'static str,
    /// The complete URL. It can contain a key.
    pub url: Zeroizing<String>,
    /// Header names in lower case, with their values.
    pub headers: Vec<(&'static str, Zeroizing<String>)>,
    /// The body; `None` for a request without one.
    pub body: Option<Zeroizing<Vec<u8>>>,
}

impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpRequest({})", self.method)
    }
}

/// One document to write.
#[non_exhaustive]
pub struct Write {
    /// The name: lower-case letters, digits, `.`, `_`, `-`, and `/` between directories, as in `orders/4784d9c7.../journal`.
    pub name: String,
    /// The whole content, which can be a secret; `None` to delete the document.
    pub bytes: Option<Zeroizing<Vec<u8>>>,
}

impl std::fmt::Debug for Write {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Write({}, {:?} bytes)", self.name, self.bytes.as_ref().map(|bytes| bytes.len()))
    }
}

/// What the owner is asked to agree to.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Consent {
    /// The order's id.
    pub order_id: String,
    /// The terms, as values.
    pub terms: Terms,
    /// What the owner reads: every value that the response chose. Show all of it.
    pub summary: Vec<Line>,
    /// What the owner should know.
    pub warnings: Vec<Notice>,
}

/// What is to be signed.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Signing {
    /// The order's id.
    pub order_id: String,
    /// What the transactions do.
    pub purpose: Purpose,
    /// The chain's name in asset ids.
    pub chain: String,
    /// The account that signs, as it was given for the chain.
    pub account: String,
    /// The id of the payment that this one replaces for a higher fee, with the same coins. Only on Bitcoin-like chains; without a signature
    /// the payment that was sent remains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

/// The host's reply to a [`Need`].
#[non_exhaustive]
pub enum Reply {
    /// To [`Ask::Http`]: a complete response with any status.
    Response {
        /// The HTTP status.
        status: u16,
        /// The headers; only `retry-after` and `grpc-status` are used.
        headers: Vec<(String, String)>,
        /// The body as it came.
        body: Vec<u8>,
    },
    /// To [`Ask::Http`]: no complete response.
    NoResponse {
        /// What failed. After [`TransportErrorKind::Connect`] alone nothing was sent.
        kind: TransportErrorKind,
        /// The message of the HTTP stack, without address and headers.
        detail: String,
    },
    /// To [`Ask::Store`]: all documents are durable, or none was changed and why.
    Stored(Result<(), String>),
    /// To [`Ask::Consent`]: whether the owner agrees.
    Consent(bool),
    /// To [`Ask::Sign`]: the order with its signatures.
    Signed(Box<countersign::Unsigned>),
    /// To [`Ask::Sign`]: the wallet has sent the transaction by itself, or is about to. From now on it may be on chain, and the secret of a
    /// redemption is out.
    Sent,
    /// To [`Ask::Sign`]: nothing is signed now, nothing was sent, and why.
    NotSigned(String),
    /// To [`Ask::Sign`]: the signer failed. Whether it has sent something is known only from [`NOTHING_SENT`].
    SignerFailed {
        /// What the signer said.
        message: String,
        /// The code of the error, as EIP-1193 and JSON-RPC have it; `None` without one.
        code: Option<i64>,
    },
}

/// The codes of EIP-1193 and JSON-RPC after which a wallet has sent nothing: declined, not allowed, unknown method, no chain, another chain,
/// chain not added, bad request. After every other error, and after one without a code, it may have sent what it was asked to.
pub const NOTHING_SENT: [i64; 9] = [4001, 4100, 4200, 4900, 4901, 4902, -32600, -32601, -32602];

/// Returns whether a signer that failed with this code has certainly sent nothing.
pub(crate) fn has_sent_nothing(code: Option<i64>) -> bool {
    code.is_some_and(|code| NOTHING_SENT.contains(&code))
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Response { .. } => "Response(..)",
            Self::NoResponse { .. } => "NoResponse(..)",
            Self::Stored(_) => "Stored(..)",
            Self::Consent(_) => "Consent(..)",
            Self::Signed(_) => "Signed(..)",
            Self::Sent => "Sent",
            Self::NotSigned(_) => "NotSigned(..)",
            Self::SignerFailed { .. } => "SignerFailed(..)",
        })
    }
}

impl Reply {
    /// Checks that a need takes this reply.
    pub(crate) fn check(&self, expected: Expected) -> Result<(), Failure> {
        let fits = matches!(
            (self, expected),
            (Self::Response { .. } | Self::NoResponse { .. }, Expected::Http)
                | (Self::Stored(_), Expected::Stored)
                | (Self::Consent(_), Expected::Consent)
                | (Self::Signed(_) | Self::Sent | Self::NotSigned(_) | Self::SignerFailed { .. }, Expected::Signature)
        );
        if fits { Ok(()) } else { Err(Failure::usage("/reply", format!("a reply to {}", expected.name()))) }
    }
}

impl Expected {
    const fn name(self) -> &'static str {
        match self {
            Self::Http => "an HTTP request",
            Self::Stored => "a request to store",
            Self::Consent => "a question for consent",
            Self::Signature => "a request for signatures",
        }
    }
}

impl Ask {
    pub(crate) fn http(request: &Request) -> Self {
        Self::Http(HttpRequest {
            method: request.method.name(),
            url: Zeroizing::new(request.url.as_str().to_owned()),
            headers: request.headers.clone(),
            body: request.body.clone(),
        })
    }

    pub(crate) const fn expects(&self) -> Expected {
        match self {
            Self::Http(_) => Expected::Http,
            Self::Store(_) => Expected::Stored,
            Self::Consent(_) => Expected::Consent,
            Self::Sign(_) => Expected::Signature,
        }
    }
}

/// What a need asks for as JSON, without what is bytes.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Detail<'a> {
    Http { method: &'a str, url: &'a str, headers: Vec<(&'a str, &'a str)> },
    Store { names: Vec<&'a str> },
    Consent(&'a Consent),
    Sign(&'a Signing),
}

/// The form in which needs cross the border to another language: JSON, with the bytes beside it.
impl Need {
    /// Returns what is needed, as JSON without the bytes:
    ///
    /// | `kind` | other members |
    /// |---|---|
    /// | `http` | `method`, `url`, `headers` as an array of pairs |
    /// | `store` | `names`, one for each of [`bodies`](Self::bodies) |
    /// | `consent` | `order_id`, `terms`, `summary`, `warnings` |
    /// | `sign` | `order_id`, `purpose` (`funding`, `redemption` or `refund`), `chain`, `account`; `replaces` where a payment is raised |
    #[must_use]
    pub fn detail(&self) -> Zeroizing<String> {
        let detail = match &self.ask {
            Ask::Http(HttpRequest { method, url, headers, .. }) => {
                Detail::Http { method, url, headers: headers.iter().map(|(name, value)| (*name, value.as_str())).collect() }
            }
            Ask::Store(writes) => Detail::Store { names: writes.iter().map(|write| write.name.as_str()).collect() },
            Ask::Consent(consent) => Detail::Consent(consent),
            Ask::Sign(signing) => Detail::Sign(signing),
        };
        // Structs with string keys and no fallible members always serialize.
        Zeroizing::new(serde_json::to_string(&detail).unwrap_or_default())
    }

    /// Returns the bytes: the body of an HTTP request, or one entry for each document, `None` to delete it.
    #[must_use]
    pub fn bodies(&self) -> Vec<Option<&[u8]>> {
        match &self.ask {
            Ask::Http(request) => vec![request.body.as_deref().map(Vec::as_slice)],
            Ask::Store(writes) => writes.iter().map(|write| write.bytes.as_deref().map(Vec::as_slice)).collect(),
            _ => Vec::new(),
        }
    }
}

impl Reply {
    /// Parses a reply. Signatures have no such form: [`Reply::Signed`] takes the order.
    ///
    /// | to | JSON |
    /// |---|---|
    /// | `http` | `{"status": 200, "headers": [["retry-after", "2"]]}` with the body in `body` |
    /// | `http` | `{"failed": "timeout", "detail": "..."}`: `connect` (nothing was sent), `timeout`, `interrupted`, `too_large` or `encoded` |
    /// | `store` | `{"stored": true}`, or `{"stored": false, "detail": "..."}` |
    /// | `consent` | `{"consent": true}` |
    /// | `sign` | `{"sent": true}`, or `{"not_signed": "..."}`, after which nothing was sent |
    /// | `sign` | `{"signer_failed": "...", "code": "4001"}`: the signer threw. The machine knows after which codes nothing was sent; `code` can be missing |
    ///
    /// # Errors
    ///
    /// [`Failure`] below `/reply`.
    pub fn from_json(text: &[u8], body: Vec<u8>) -> Result<Self, Failure> {
        Ok(read(text, body).map_err(|refusal| refusal.with_prefix("/reply"))?)
    }
}

fn read(text: &[u8], body: Vec<u8>) -> Result<Reply, countersign::Refusal> {
    let value = json::parse(text)?;
    let root = Cursor::root(&value, "");
    let members = root.object()?;
    let detail = || members.get("detail").map_or(Ok(String::new()), |detail| detail.text().map(str::to_owned));
    if let Some(kind) = members.get("failed") {
        members.only(&["failed", "detail"])?;
        let kind = match kind.text()? {
            "connect" => TransportErrorKind::Connect,
            "timeout" => TransportErrorKind::Timeout,
            "too_large" => TransportErrorKind::TooLarge,
            "encoded" => TransportErrorKind::Encoded,
            // Anything else may have been sent.
            _ => TransportErrorKind::Interrupted,
        };
        return Ok(Reply::NoResponse { kind, detail: detail()? });
    }
    if let Some(stored) = members.get("stored") {
        members.only(&["stored", "detail"])?;
        return Ok(Reply::Stored(if stored.bool()? { Ok(()) } else { Err(detail()?) }));
    }
    if let Some(consent) = members.get("consent") {
        members.only(&["consent"])?;
        return Ok(Reply::Consent(consent.bool()?));
    }
    if let Some(why) = members.get("not_signed") {
        members.only(&["not_signed"])?;
        return Ok(Reply::NotSigned(why.text()?.to_owned()));
    }
    if let Some(message) = members.get("signer_failed") {
        members.only(&["signer_failed", "code"])?;
        // A code of another type says as little as none.
        let code = members.get("code").and_then(|code| code.text().ok()?.parse().ok());
        return Ok(Reply::SignerFailed { message: message.text()?.to_owned(), code });
    }
    if let Some(sent) = members.get("sent") {
        members.only(&["sent"])?;
        return Ok(if sent.bool()? { Reply::Sent } else { Reply::NotSigned("the wallet has sent nothing".to_owned()) });
    }
    members.only(&["status", "headers"])?;
    let status = members.need("status")?;
    let status = u16::try_from(status.integer()?).map_err(|_| status.refuse(countersign::Code::NumberTooLarge))?;
    let mut headers = Vec::new();
    if let Some(given) = members.get("headers") {
        for pair in given.array()? {
            let mut parts = pair.array()?;
            if let (Some(name), Some(value)) = (parts.next(), parts.next()) {
                headers.push((name.text()?.to_owned(), value.text()?.to_owned()));
            }
        }
    }
    Ok(Reply::Response { status, headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_strictly_and_fit_only_what_was_asked() {
        for (text, expected) in [
            (r#"{"status":200,"headers":[["retry-after","2"]]}"#, Expected::Http),
            (r#"{"failed":"connect","detail":"refused"}"#, Expected::Http),
            (r#"{"stored":true}"#, Expected::Stored),
            (r#"{"stored":false,"detail":"full"}"#, Expected::Stored),
            (r#"{"consent":false}"#, Expected::Consent),
            (r#"{"sent":true}"#, Expected::Signature),
            (r#"{"not_signed":"no"}"#, Expected::Signature),
            (r#"{"signer_failed":"no","code":"4001"}"#, Expected::Signature),
            (r#"{"signer_failed":"no","code":null}"#, Expected::Signature),
        ] {
            let reply = Reply::from_json(text.as_bytes(), Vec::new());
            for other in [Expected::Http, Expected::Stored, Expected::Consent, Expected::Signature] {
                assert_eq!(reply.as_ref().is_ok_and(|reply| reply.check(other).is_ok()), other == expected, "{text}: {other:?}");
            }
        }
        for (text, at) in [
            (r#"{"status":70000}"#, "/reply/status"),
            (r#"{"status":"200"}"#, "/reply/status"),
            (r#"{"consent":1}"#, "/reply/consent"),
            (r#"{"stored":true,"extra":1}"#, "/reply/extra"),
            ("{}", "/reply/status"),
            ("[]", "/reply"),
        ] {
            assert!(Reply::from_json(text.as_bytes(), Vec::new()).is_err_and(|failure| *failure.at == *at), "{text}");
        }
    }

    #[test]
    fn only_listed_codes_say_that_a_signer_has_sent_nothing() {
        // EIP-1193, EIP-1474 and JSON-RPC 2.0.
        for (code, is_certain) in [
            (r#","code":"4001""#, true),
            (r#","code":"-32602""#, true),
            (r#","code":"-32603""#, false),
            (r#","code":"-32000""#, false),
            (r#","code":"4001 ""#, false),
            (r#","code":4001"#, false),
            (r#","code":{}"#, false),
            (r#","code":null"#, false),
            ("", false),
        ] {
            let reply = Reply::from_json(format!(r#"{{"signer_failed":"no"{code}}}"#).as_bytes(), Vec::new());
            assert!(matches!(reply, Ok(Reply::SignerFailed { code, .. }) if has_sent_nothing(code) == is_certain), "{code}");
        }
    }

    #[test]
    fn only_a_refused_connection_counts_as_nothing_sent() {
        for (kind, expected) in [
            ("connect", TransportErrorKind::Connect),
            ("timeout", TransportErrorKind::Timeout),
            ("anything else", TransportErrorKind::Interrupted),
        ] {
            let reply = Reply::from_json(format!(r#"{{"failed":"{kind}"}}"#).as_bytes(), Vec::new());
            assert!(matches!(reply, Ok(Reply::NoResponse { kind, .. }) if kind == expected), "{kind}");
        }
    }
}
