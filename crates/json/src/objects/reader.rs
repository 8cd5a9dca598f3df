//! Readers and quorums across a language border: requests out, answers in, as text and bytes.

use countersign::reader::{self, Failure as NoAnswer, FailureKind, Format, HtlcQuorum, HtlcReader, Known, Request, RpcError};
use countersign_core::json::{Cursor, Value};
use serde::Serialize;

use super::{Failure, with_json};

/// The maximum length in bytes of an answer.
const MAX_ANSWER: usize = countersign_core::json::MAX_BYTES;

/// One request, which the caller's connection sends as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Ask {
    /// `json_rpc`, `get` or `post`.
    pub kind: &'static str,
    /// Of `json_rpc`: the method.
    pub method: Option<&'static str>,
    /// Of `json_rpc`: the parameters, as JSON text.
    pub params: Option<String>,
    /// Of `get` and `post`: the path below the endpoint's URL, which begins with `/`.
    pub path: Option<String>,
    /// Of `post`: the media type for the header `content-type`.
    pub content_type: Option<&'static str>,
    /// Of `post`: the body. In JSON, its hex digits with `0x`.
    #[serde(serialize_with = "hex_of")]
    pub body: Option<Vec<u8>>,
}

fn hex_of<S: serde::Serializer>(body: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    match body {
        Some(body) => serializer.serialize_some(&hex::encode_prefixed(body)),
        None => serializer.serialize_none(),
    }
}

impl From<&Request> for Ask {
    fn from(request: &Request) -> Self {
        let empty = Self { kind: "", method: None, params: None, path: None, content_type: None, body: None };
        match request {
            Request::JsonRpc { method, params } => {
                Self { kind: "json_rpc", method: Some(method), params: Some(params.as_ref().to_owned()), ..empty }
            }
            Request::Get { path, .. } => Self { kind: "get", path: Some(path.as_ref().to_owned()), ..empty },
            Request::Post { path, body, format } => Self {
                kind: "post",
                path: Some(path.as_ref().to_owned()),
                content_type: Some(Format::content_type(*format)),
                body: Some(body.to_vec()),
                ..empty
            },
            _ => empty,
        }
    }
}

/// The answer to one request. What it says is untrusted; a binding only has to hand it over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the bindings construct it")]
pub enum Answer {
    /// The JSON text of the `result` of a JSON-RPC reply.
    Result(Vec<u8>),
    /// The `error` of a JSON-RPC reply.
    Error {
        /// The code; 0 if there is none.
        code: i64,
        /// The message.
        message: String,
        /// The member `data`, where it is hex: revert data.
        data: Option<Vec<u8>>,
    },
    /// The complete response to a GET or POST, with any status.
    Http {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Vec<u8>,
        /// The header `grpc-status`, if there is one.
        grpc_status: Option<String>,
    },
    /// No complete response arrived: `connect`, `timeout`, `interrupted`, `too_large`, `unsupported` or `other`, and the message.
    Failed {
        /// Which of these; any other word is `other`.
        kind: String,
        /// The message of the connection.
        detail: String,
    },
}

impl From<Answer> for reader::Answer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Result(text) => Self::Result(text.into()),
            Answer::Error { code, message, data } => Self::Error(RpcError::new(code, &message, data)),
            Answer::Http { status, body, grpc_status } => Self::Http { status, body: body.into(), grpc_status },
            Answer::Failed { kind, detail } => Self::Failed(NoAnswer::new(failure_kind(&kind), &detail)),
        }
    }
}

fn failure_kind(word: &str) -> FailureKind {
    match word {
        "connect" => FailureKind::Connect,
        "timeout" => FailureKind::Timeout,
        "interrupted" => FailureKind::Interrupted,
        "too_large" => FailureKind::TooLarge,
        "unsupported" => FailureKind::Unsupported,
        _ => FailureKind::Other,
    }
}

/// Parses answers as JSON: an array of `{"result": "<JSON text>"}`, `{"error": {"code", "message", "data"}}`,
/// `{"status", "body": "0x..", "grpc_status"}` and `{"failed", "detail"}` (`docs/spec/batch.md#evidence`).
///
/// # Errors
///
/// [`Failure`] at the member of `/answers` that is malformed or unknown.
pub fn answers(text: &[u8]) -> Result<Vec<Answer>, Failure> {
    with_json(text, "/answers", |root| root.array()?.map(|cursor| read_answer(&cursor)).collect())
}

fn read_answer(cursor: &Cursor<'_, '_>) -> Result<Answer, countersign::Refusal> {
    let members = cursor.object()?;
    if let Some(result) = members.get("result") {
        members.only(&["result"])?;
        return Ok(Answer::Result(result.text()?.as_bytes().to_vec()));
    }
    if let Some(error) = members.get("error") {
        members.only(&["error"])?;
        let error = error.object()?;
        error.only(&["code", "message", "data"])?;
        let code = error.get("code").and_then(|code| if let Value::Number(text) = code.value() { text.parse().ok() } else { None });
        let message = error.get("message").map_or(Ok(""), |message| message.text())?.to_owned();
        // Only hex is revert data; anything else is a node's own words.
        let data = error.get("data").and_then(|data| data.hex_bytes(MAX_ANSWER).ok());
        return Ok(Answer::Error { code: code.unwrap_or_default(), message, data });
    }
    if let Some(status) = members.get("status") {
        members.only(&["status", "body", "grpc_status"])?;
        let status = u16::try_from(status.integer()?).unwrap_or(u16::MAX);
        let grpc_status = members.get("grpc_status").map(|status| status.text().map(str::to_owned)).transpose()?;
        return Ok(Answer::Http { status, body: members.need("body")?.hex_bytes(MAX_ANSWER)?, grpc_status });
    }
    members.only(&["failed", "detail"])?;
    let detail = members.get("detail").map_or(Ok(""), |detail| detail.text())?.to_owned();
    Ok(Answer::Failed { kind: members.need("failed")?.text()?.to_owned(), detail })
}

/// Returns the answer for the `error` member of a JSON-RPC reply, given as JSON text of any shape. It is read as [`split_batch`] reads it.
#[must_use]
pub fn error_answer(error: &[u8]) -> Answer {
    let reply = [br#"{"id":0,"error":"#, error, b"}"].concat();
    match split_batch(200, &reply, 1).pop() {
        Some(answer @ Answer::Error { .. }) => answer,
        _ => Answer::Error { code: 0, message: "an error that is not JSON".to_owned(), data: None },
    }
}

/// Splits the body of a response to a JSON-RPC batch whose ids were 0, 1, .., in the order of the requests, into its answers.
#[must_use]
pub fn split_batch(status: u16, body: &[u8], calls: usize) -> Vec<Answer> {
    let shape = |answer| match answer {
        reader::Answer::Result(text) => Answer::Result(text.to_vec()),
        reader::Answer::Error(RpcError { code, message, data, .. }) => Answer::Error { code, message, data },
        other => Answer::Failed { kind: "other".to_owned(), detail: format!("{other:?}") },
    };
    reader::json_rpc::answers(status, body, calls).into_iter().map(shape).collect()
}

/// Reads one HTLC from one endpoint: see [`HtlcReader`].
#[derive(Debug)]
pub struct Reader {
    endpoint: String,
    reader: HtlcReader,
    known: Known,
}

impl Reader {
    pub(super) fn new(endpoint: &str, reader: HtlcReader, known: Known) -> Self {
        Self { endpoint: endpoint.to_owned(), reader, known }
    }

    /// Returns the requests to send now, all at once; none once the reading has ended. Calling it again changes nothing.
    #[must_use]
    pub fn requests(&self) -> Vec<Ask> {
        self.reader.requests().iter().map(Ask::from).collect()
    }

    /// Takes the answers to these requests, one for each, in their order. What an endpoint did wrong is not a failure here:
    /// [`Reader::fault`] returns it.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the code `usage` at `/answers` for another number of answers. The reader is then unchanged.
    pub fn answer(&mut self, answers: Vec<Answer>) -> Result<(), Failure> {
        let answers: Vec<_> = answers.into_iter().map(reader::Answer::from).collect();
        Ok(self.reader.answer(&answers)?)
    }

    /// Returns why the endpoint's answers cannot be used; `None` while the reading goes on, or if it is complete.
    #[must_use]
    pub fn fault(&self) -> Option<Failure> {
        self.reader.outcome()?.err().as_ref().map(Failure::from)
    }

    /// Returns the height of the newest block that the endpoint shows; `None` before the end.
    #[must_use]
    pub fn height(&self) -> Option<u64> {
        Some(self.reader.outcome()?.ok()?.finding().seen.height.get())
    }

    /// Returns the endpoint's memory as JSON text, to pass to its next [`Record::reader`](super::Record::reader).
    #[must_use]
    pub fn known(&self) -> String {
        let mut known = self.known.clone();
        if let Some(Ok(observation)) = self.reader.outcome() {
            known.learn(observation.known());
        }
        known.to_json()
    }
}

/// What several endpoints show of one HTLC: see [`HtlcQuorum`].
#[derive(Debug, Clone)]
pub struct Quorum(pub(super) HtlcQuorum);

impl Quorum {
    /// Creates a quorum of endpoints, of which `needed` must agree.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the code `wrong_type` at `/quorum` unless `needed` is more than half of the different endpoints, and at most all
    /// of them.
    pub fn new<'e>(endpoints: impl IntoIterator<Item = &'e str>, needed: usize) -> Result<Self, Failure> {
        Ok(Self(HtlcQuorum::new(endpoints, needed)?))
    }

    /// Takes what the endpoint of a reader shows. A reader that has not ended says nothing. The first word of each endpoint counts.
    pub fn hear(&mut self, reader: &Reader) {
        if let Some(outcome) = reader.reader.outcome() {
            self.0.hear(&reader.endpoint, outcome);
        }
    }

    /// Returns whether enough endpoints agree, or every endpoint has spoken.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.0.is_settled()
    }
}
