//! Reading a chain through the caller's own connections.

use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_json::objects::{self, Failure};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::input::{Text, Whole};
use crate::refusal::{self, raise};

/// A request to an endpoint of a chain. The caller's connection sends it as it is.
#[pyclass(frozen, eq, module = "countersign_swap")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainRequest(objects::Ask);

#[pymethods]
impl ChainRequest {
    /// `json_rpc`, `get` or `post`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind
    }

    /// JSON-RPC: the method.
    #[getter]
    fn method(&self) -> Option<&'static str> {
        self.0.method
    }

    /// JSON-RPC: the parameters, parsed.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.params.as_ref().map(|params| py.import("json")?.call_method1("loads", (params,))).transpose()
    }

    /// JSON-RPC: the parameters as JSON text.
    #[getter]
    fn params_text(&self) -> Option<&str> {
        self.0.params.as_deref()
    }

    /// GET and POST: the path below the endpoint's URL, which begins with `/`.
    #[getter]
    fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// POST: the media type for the header `content-type`.
    #[getter]
    fn content_type(&self) -> Option<&'static str> {
        self.0.content_type
    }

    /// POST: the body.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.body.as_ref().map(|body| PyBytes::new(py, body))
    }

    /// The parameters and the body can contain a secret, so they are left out.
    fn __repr__(&self) -> String {
        format!("ChainRequest(kind={:?}, name={:?})", self.0.kind, self.0.method.or(self.0.path.as_deref()).unwrap_or_default())
    }
}

/// The answer to one `ChainRequest`. Its content is untrusted, and nothing in it needs to be checked before it is handed over.
#[pyclass(frozen, eq, from_py_object, module = "countersign_swap")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainAnswer(objects::Answer);

#[pymethods]
impl ChainAnswer {
    /// Creates the answer for the `result` of a JSON-RPC reply.
    ///
    /// Args:
    ///     text: The result as JSON text: `json.dumps(reply["result"])`.
    #[staticmethod]
    fn result(text: Text) -> Self {
        Self(objects::Answer::Result(text.as_bytes().to_vec()))
    }

    /// Creates the answer for the `error` of a JSON-RPC reply.
    ///
    /// Args:
    ///     text: The error as JSON text, of any shape: `json.dumps(reply["error"])`.
    #[staticmethod]
    fn error(text: Text) -> Self {
        Self(objects::error_answer(text.as_bytes()))
    }

    /// Creates the answer for the response to a GET or POST.
    ///
    /// Args:
    ///     status: The HTTP status; any of them.
    ///     body: The body as it came.
    ///     grpc_status: The header `grpc-status`, if there is one.
    #[staticmethod]
    #[pyo3(signature = (status, body, grpc_status = None))]
    fn http(status: Whole<u16>, body: Text, grpc_status: Option<String>) -> Self {
        Self(objects::Answer::Http { status: status.0, body: body.as_bytes().to_vec(), grpc_status })
    }

    /// Creates the answer for a request without a complete response. This never says anything about the chain.
    ///
    /// Args:
    ///     kind: `connect`, `timeout`, `interrupted`, `too_large`, `unsupported` or `other`.
    ///     detail: The message of the connection.
    #[staticmethod]
    #[pyo3(signature = (kind, detail = None))]
    fn failed(kind: String, detail: Option<String>) -> Self {
        Self(objects::Answer::Failed { kind, detail: detail.unwrap_or_default() })
    }

    fn __repr__(&self) -> &'static str {
        match self.0 {
            objects::Answer::Result(_) => "ChainAnswer.result(..)",
            objects::Answer::Error { .. } => "ChainAnswer.error(..)",
            objects::Answer::Http { .. } => "ChainAnswer.http(..)",
            objects::Answer::Failed { .. } => "ChainAnswer.failed(..)",
        }
    }
}

/// Splits the response to a JSON-RPC batch into the answers to its calls.
///
/// Args:
///     body: The body of the response, as it came. The ids of the calls must have been 0, 1, and so on.
///     calls: The number of calls.
///     status: The HTTP status.
#[pyfunction]
#[pyo3(signature = (body, calls, status = Whole(200)))]
pub(crate) fn split_batch(body: Text, calls: Whole<u16>, status: Whole<u16>) -> Vec<ChainAnswer> {
    objects::split_batch(status.0, body.as_bytes(), calls.0.into()).into_iter().map(ChainAnswer).collect()
}

/// Reads one HTLC from one endpoint: says what to ask, and takes the answers. It has no connection of its own.
///
/// Only `Record.reader` makes one.
#[pyclass(frozen, weakref, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct Reader {
    endpoint: String,
    inner: Mutex<objects::Reader>,
}

impl Reader {
    pub(crate) fn new(endpoint: &str, reader: objects::Reader) -> Self {
        Self { endpoint: endpoint.to_owned(), inner: Mutex::new(reader) }
    }

    fn lock(&self) -> MutexGuard<'_, objects::Reader> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Reader {
    /// The endpoint's name in the quorum.
    #[getter]
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the requests to send now, all at once; None once the reading has ended. Calling it again changes nothing.
    fn next(&self) -> Option<Vec<ChainRequest>> {
        let requests: Vec<_> = self.lock().requests().into_iter().map(ChainRequest).collect();
        (!requests.is_empty()).then_some(requests)
    }

    /// Takes the answers to these requests, one for each, in their order. What the endpoint did wrong is `fault`, not an exception.
    ///
    /// Raises:
    ///     ValueError: For another number of answers. The reader is then unchanged.
    fn answer(&self, py: Python<'_>, answers: Vec<Bound<'_, ChainAnswer>>) -> PyResult<()> {
        let answers = answers.iter().map(|answer| answer.get().0.clone()).collect();
        py.detach(|| self.lock().answer(answers)).map_err(raise)
    }

    /// Why the endpoint's answers cannot be used, as a `Refusal`. None while the reading goes on, and if it is complete.
    #[getter]
    fn fault<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.lock().fault().map(|fault: Failure| refusal::new(fault).into_value(py).into_bound(py).into_any())
    }

    /// The height of the newest block that the endpoint shows; None before the end.
    #[getter]
    fn height(&self) -> Option<u64> {
        self.lock().height()
    }

    /// What is known about the endpoint now, as JSON, for the argument `known` of its next reader. Keep it if the quorum agrees with the
    /// endpoint.
    #[getter]
    fn known(&self) -> String {
        self.lock().known()
    }
}

/// What several endpoints show of one HTLC.
///
/// Args:
///     endpoints: The names of the endpoints. A name that is there twice counts once.
///     needed: How many of them must agree: more than half, and at most all.
///
/// Raises:
///     Refusal: At `/quorum`, if `needed` is another number.
#[pyclass(frozen, weakref, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct Quorum(Mutex<objects::Quorum>);

impl Quorum {
    pub(crate) fn lock(&self) -> MutexGuard<'_, objects::Quorum> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Quorum {
    #[new]
    fn new(endpoints: Vec<String>, needed: Whole<usize>) -> PyResult<Self> {
        let quorum = objects::Quorum::new(endpoints.iter().map(String::as_str), needed.0).map_err(raise)?;
        Ok(Self(Mutex::new(quorum)))
    }

    /// Takes what the endpoint of a reader shows. A reader that has not ended says nothing. The first word of each endpoint counts.
    fn hear(&self, reader: &Reader) {
        self.lock().hear(&reader.lock());
    }

    /// Whether enough endpoints agree, or every endpoint has spoken.
    #[getter]
    fn is_settled(&self) -> bool {
        self.lock().is_settled()
    }
}
