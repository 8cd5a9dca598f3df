//! Whole swaps: the machine of `countersign-swap`. The loop around it is in `swap.py`.

use std::sync::{Mutex, MutexGuard};

use countersign_json::objects::Failure;
use countersign_swap::{JsonSetup, Need as Wanted, Reply, Swaps, UnixMillis, Zeroizing};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::input::{Secret, Text};
use crate::order::UnsignedOrder;
use crate::refusal::raise;

/// Runs whole swaps without I/O: `poll` says what is needed, and `reply` takes it.
#[pyclass(frozen, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct Machine(Mutex<Swaps>);

impl Machine {
    fn lock(&self) -> PyResult<MutexGuard<'_, Swaps>> {
        self.0.lock().map_err(|_| raise(Failure::used_up()))
    }

    fn call<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&mut Swaps) -> Result<T, Failure> + Send) -> PyResult<T> {
        py.detach(|| Ok::<_, PyErr>(call(&mut *self.lock()?)))?.map_err(raise)
    }
}

/// Needs, the numbers of those that are not needed any more, events as JSON, and when to poll again.
type Polled = (Vec<Need>, Vec<u64>, String, Option<u64>);

#[pymethods]
impl Machine {
    /// Opens the machine with what was stored before.
    #[new]
    #[pyo3(signature = (options, registry, policy, nodes, documents, place, now))]
    fn new(
        options: Text,
        registry: Text,
        policy: Text,
        nodes: Secret,
        documents: Vec<(String, Secret)>,
        place: &str,
        now: u64,
    ) -> PyResult<Self> {
        let mut setup = JsonSetup::new(options.as_bytes(), registry.as_bytes(), UnixMillis::from_millis(now));
        (setup.policy, setup.nodes, setup.place) = (policy.as_bytes(), nodes.as_bytes(), place);
        setup.documents = documents.iter().map(|(name, bytes)| (name.clone(), Zeroizing::new(bytes.as_bytes().to_vec()))).collect();
        setup.parse().and_then(Swaps::open).map(|swaps| Self(Mutex::new(swaps))).map_err(raise)
    }

    /// Asks for the best quote.
    fn quote(&self, py: Python<'_>, wish: Text) -> PyResult<u64> {
        self.call(py, |swaps| swaps.quote_json(wish.as_bytes()))
    }

    /// Creates an order, and follows it to its end.
    fn create(&self, py: Python<'_>, wish: Text) -> PyResult<u64> {
        self.call(py, |swaps| swaps.create_json(wish.as_bytes()))
    }

    /// Continues a stored order.
    fn follow(&self, py: Python<'_>, order: &str) -> PyResult<u64> {
        self.call(py, |swaps| swaps.follow(order))
    }

    /// Refunds a stored order whose timelock has expired.
    fn refund(&self, py: Python<'_>, order: &str) -> PyResult<u64> {
        self.call(py, |swaps| swaps.refund(order))
    }

    /// Asks for the refund of a stored order on a Bitcoin-like chain before its timelock ends.
    fn instant_refund(&self, py: Python<'_>, order: &str) -> PyResult<u64> {
        self.call(py, |swaps| swaps.instant_refund(order))
    }

    /// Lists the stored orders.
    fn list(&self, py: Python<'_>) -> PyResult<u64> {
        self.call(py, |swaps| Ok(swaps.list()))
    }

    /// Returns the words of the rescue phrase; None before the first order.
    fn phrase(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.call(py, |swaps| Ok(swaps.phrase()?.map(|words| words.as_str().to_owned())))
    }

    /// Goes on as far as possible.
    ///
    /// Returns:
    ///     The needs, the numbers of those that are not needed any more, the events as a JSON array, and when to poll again at the latest, in
    ///     Unix milliseconds.
    fn poll(&self, py: Python<'_>, now: u64) -> PyResult<Polled> {
        let output = self.call(py, |swaps| Ok(swaps.poll(UnixMillis::from_millis(now))))?;
        let events = output.events_json();
        Ok((output.needs.into_iter().map(Need).collect(), output.withdrawn, events, output.wake_at.map(UnixMillis::as_millis)))
    }

    /// Takes a reply as JSON, with a body beside it. Returns whether it was still wanted.
    #[pyo3(signature = (id, reply, body = None))]
    fn reply(&self, py: Python<'_>, id: u64, reply: Text, body: Option<Vec<u8>>) -> PyResult<bool> {
        let reply = Reply::from_json(reply.as_bytes(), body.unwrap_or_default()).map_err(raise)?;
        self.call(py, |swaps| swaps.reply(id, reply))
    }

    /// Returns the order that a need wants signed; None if it is not wanted any more.
    fn take_unsigned(&self, py: Python<'_>, id: u64) -> PyResult<Option<UnsignedOrder>> {
        Ok(self.call(py, |swaps| Ok(swaps.take_unsigned(id)))?.map(UnsignedOrder::new))
    }

    /// Takes a signed order back, which uses it up. Returns whether it was still wanted.
    fn reply_signed(&self, py: Python<'_>, id: u64, order: &UnsignedOrder) -> PyResult<bool> {
        let unsigned = order.take()?;
        self.call(py, |swaps| swaps.reply(id, Reply::Signed(Box::new(unsigned))))
    }
}

/// Something that only the host can do.
#[pyclass(frozen, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct Need(Wanted);

#[pymethods]
impl Need {
    /// The number under which it is replied to.
    #[getter]
    const fn id(&self) -> u64 {
        self.0.id
    }

    /// The number of the call that needs it.
    #[getter]
    const fn call(&self) -> u64 {
        self.0.call
    }

    /// What is needed, as JSON without the bytes.
    #[getter]
    fn detail(&self) -> String {
        self.0.detail().as_str().to_owned()
    }

    /// The bytes: the body of a request, or one entry for each document, None to delete it.
    #[getter]
    fn bodies<'py>(&self, py: Python<'py>) -> Vec<Option<Bound<'py, PyBytes>>> {
        self.0.bodies().into_iter().map(|body| body.map(|bytes| PyBytes::new(py, bytes))).collect()
    }
}
