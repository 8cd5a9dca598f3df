//! Reading a chain through the caller's own connections.

use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_json::objects;

use crate::Result;

/// A request to an endpoint of a chain. The caller's connection sends it as it is.
// Kotlin and Swift would print every member. They print what `Debug` does.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
#[uniffi::export(Debug)]
pub struct ChainRequest {
    /// `json_rpc`, `get` or `post`.
    pub kind: String,
    /// `json_rpc`: the method.
    pub method: Option<String>,
    /// `json_rpc`: the parameters, as JSON text.
    pub params: Option<String>,
    /// `get` and `post`: the path below the endpoint's URL, which begins with `/`.
    pub path: Option<String>,
    /// `post`: the media type for the header `content-type`.
    pub content_type: Option<String>,
    /// `post`: the body.
    pub body: Option<Vec<u8>>,
}

impl From<objects::Ask> for ChainRequest {
    fn from(ask: objects::Ask) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (method, content_type) = (owned(ask.method), owned(ask.content_type));
        Self { kind: ask.kind.to_owned(), method, params: ask.params, path: ask.path, content_type, body: ask.body }
    }
}

impl std::fmt::Debug for ChainRequest {
    /// Leaves out parameters and body, which can contain a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, method, path, .. } = self;
        f.debug_struct("ChainRequest").field("kind", kind).field("method", method).field("path", path).finish_non_exhaustive()
    }
}

/// The answer to one [`ChainRequest`]. Its content is untrusted, and nothing in it needs to be checked before it is handed over.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Enum)]
pub enum ChainAnswer {
    /// The `result` of a JSON-RPC reply.
    Result {
        /// As JSON text.
        text: String,
    },
    /// The `error` of a JSON-RPC reply.
    Error {
        /// As JSON text, of any shape.
        text: String,
    },
    /// The response to a GET or POST.
    Http {
        /// The HTTP status; any of them.
        status: u16,
        /// The body as it came.
        body: Vec<u8>,
        /// The header `grpc-status`, if there is one.
        grpc_status: Option<String>,
    },
    /// No complete response arrived. This never says anything about the chain.
    Failed {
        /// `connect`, `timeout`, `interrupted`, `too_large`, `unsupported` or `other`.
        kind: String,
        /// The message of the connection.
        detail: String,
    },
}

impl From<ChainAnswer> for objects::Answer {
    fn from(answer: ChainAnswer) -> Self {
        match answer {
            ChainAnswer::Result { text } => Self::Result(text.into_bytes()),
            ChainAnswer::Error { text } => objects::error_answer(text.as_bytes()),
            ChainAnswer::Http { status, body, grpc_status } => Self::Http { status, body, grpc_status },
            ChainAnswer::Failed { kind, detail } => Self::Failed { kind, detail },
        }
    }
}

impl From<objects::Answer> for ChainAnswer {
    fn from(answer: objects::Answer) -> Self {
        match answer {
            objects::Answer::Result(text) => match String::from_utf8(text) {
                Ok(text) => Self::Result { text },
                Err(_) => Self::Failed { kind: "other".to_owned(), detail: "the response is not UTF-8".to_owned() },
            },
            objects::Answer::Error { code, message, data } => {
                let data = data.map(|data| format!("0x{}", data.iter().map(|byte| format!("{byte:02x}")).collect::<String>()));
                Self::Error { text: serde_json::json!({"code": code, "message": message, "data": data}).to_string() }
            }
            objects::Answer::Http { status, body, grpc_status } => Self::Http { status, body, grpc_status },
            objects::Answer::Failed { kind, detail } => Self::Failed { kind, detail },
        }
    }
}

/// Why the answers of an endpoint cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct Fault {
    /// The stable code.
    pub code: String,
    /// What is wrong, for people. Untrusted text in it is capped and escaped.
    pub reason: String,
}

/// Splits the response to a JSON-RPC batch, whose ids were 0, 1, and so on, into the answers to its calls.
#[uniffi::export]
pub fn split_batch(status: u16, body: Vec<u8>, calls: u16) -> Vec<ChainAnswer> {
    objects::split_batch(status, &body, calls.into()).into_iter().map(ChainAnswer::from).collect()
}

/// Reads one HTLC from one endpoint: says what to ask, and takes the answers. It has no connection of its own.
#[derive(Debug, uniffi::Object)]
pub struct Reader {
    endpoint: String,
    inner: Mutex<objects::Reader>,
}

impl Reader {
    pub(crate) fn new(endpoint: String, reader: objects::Reader) -> Self {
        Self { endpoint, inner: Mutex::new(reader) }
    }

    fn lock(&self) -> MutexGuard<'_, objects::Reader> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[uniffi::export]
impl Reader {
    /// Returns the endpoint's name in the quorum.
    pub fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    /// Returns the requests to send now, all at once; none once the reading has ended. Calling it again changes nothing.
    pub fn next(&self) -> Option<Vec<ChainRequest>> {
        let requests: Vec<_> = self.lock().requests().into_iter().map(ChainRequest::from).collect();
        (!requests.is_empty()).then_some(requests)
    }

    /// Takes the answers to these requests, one for each, in their order. What the endpoint did wrong is [`Reader::fault`]. Another
    /// number of answers is an error with the code `usage`, and changes nothing.
    pub fn answer(&self, answers: Vec<ChainAnswer>) -> Result<()> {
        Ok(self.lock().answer(answers.into_iter().map(objects::Answer::from).collect())?)
    }

    /// Returns why the endpoint's answers cannot be used; none while the reading goes on, and if it is complete.
    pub fn fault(&self) -> Option<Fault> {
        self.lock().fault().map(|fault| Fault { code: fault.code.to_owned(), reason: fault.message })
    }

    /// Returns the height of the newest block that the endpoint shows; none before the end.
    pub fn height(&self) -> Option<u64> {
        self.lock().height()
    }

    /// Returns the endpoint's memory as JSON, to pass to its next reader. Keep it only if the quorum agrees with the endpoint.
    pub fn known(&self) -> String {
        self.lock().known()
    }
}

/// What several endpoints show of one HTLC.
#[derive(Debug, uniffi::Object)]
pub struct Quorum(Mutex<objects::Quorum>);

impl Quorum {
    pub(crate) fn lock(&self) -> MutexGuard<'_, objects::Quorum> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[uniffi::export]
impl Quorum {
    /// Creates a quorum. `needed` endpoints must agree: more than half of the different names, and at most all.
    #[uniffi::constructor]
    pub fn new(endpoints: Vec<String>, needed: u32) -> Result<Self> {
        let needed = usize::try_from(needed).unwrap_or(usize::MAX);
        Ok(Self(Mutex::new(objects::Quorum::new(endpoints.iter().map(String::as_str), needed)?)))
    }

    /// Takes what the endpoint of a reader shows. A reader that has not ended says nothing. The first word of each endpoint counts.
    pub fn hear(&self, reader: &Reader) {
        self.lock().hear(&reader.lock());
    }

    /// Returns whether enough endpoints agree, or every endpoint has spoken.
    pub fn is_settled(&self) -> bool {
        self.lock().is_settled()
    }
}
