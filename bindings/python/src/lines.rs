//! Lines of the batch contract: one at a time, or many on all cores.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{thread, vec};

use countersign::Policy as Limits;
use countersign_json::objects;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyIterator, PyMemoryView, PyString};

use crate::input::{Text, Whole};
use crate::trust::{Policy, Registry, policy_of};

/// Lines and bytes that are read from Python at once. The first slices are smaller, so that the first results are there soon.
const FIRST_LINES: usize = 64;
const SLICE_LINES: usize = 1024;
const SLICE_BYTES: usize = 16 * 1024 * 1024;
/// Lines that a thread takes at a time: few, so that all threads end together.
const CHUNK: usize = 16;
/// How often a long run looks whether the user has pressed Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);
/// More threads than any machine has use for would only take memory.
const MAX_THREADS: usize = 256;

/// Verifies one case in JSON and returns one line of JSON, exactly as `countersign batch` prints it.
///
/// Never raises for what the line contains: a line that is refused, or that is not JSON at all, gives a line with `error`.
///
/// Args:
///     line: A case with the members `id`, `request`, `response`, and optionally `order` and `wallet`.
///     registry: What the wallet has pinned.
///     policy: The wallet's limits, by default those of `Policy()`.
#[pyfunction]
#[pyo3(signature = (line, registry, policy = None))]
pub(crate) fn verify_line(py: Python<'_>, line: Text, registry: &Registry, policy: Option<&Policy>) -> String {
    let policy = policy_of(policy);
    py.detach(|| objects::verify_line(line.as_bytes(), &registry.inner, &policy))
}

/// Verifies many cases on several threads. Returns an iterator over one line of JSON for each, in the order of the input.
///
/// The lines are read as the results are taken, so neither are ever all in memory. The interpreter lock is released while lines are
/// verified: other Python threads go on. Ctrl-C ends the iteration.
///
/// Args:
///     lines: Cases as `verify_line` takes them: a list, a generator, an open file, or a column of pandas, numpy or pyarrow.
///     registry: What the wallet has pinned.
///     policy: The wallet's limits, by default those of `Policy()`.
///     threads: How many threads verify, by default as many as this process may run at once; more than 256 count as 256.
///
/// Raises:
///     TypeError: If the lines are one document. While iterating, if a line is neither text nor bytes.
///     ValueError: If the number of threads is less than 1 or too large.
#[pyfunction]
#[pyo3(signature = (lines, registry, policy = None, threads = None))]
pub(crate) fn verify_many(
    lines: &Bound<'_, PyAny>,
    registry: Py<Registry>,
    policy: Option<Py<Policy>>,
    threads: Option<Whole<usize>>,
) -> PyResult<Results> {
    let threads = match threads {
        Some(Whole(0)) => return Err(PyValueError::new_err("threads must be at least 1")),
        Some(Whole(threads)) => threads.min(MAX_THREADS),
        None => thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    // One document is iterable too, and its characters would be taken for lines.
    if lines.is_instance_of::<PyString>()
        || lines.is_instance_of::<PyBytes>()
        || lines.is_instance_of::<PyByteArray>()
        || lines.is_instance_of::<PyMemoryView>()
    {
        return Err(PyTypeError::new_err("lines must be an iterable of str or bytes, not one document"));
    }
    let source = Some(lines.try_iter()?.unbind());
    Ok(Results { source, registry, policy, threads, size: FIRST_LINES, ready: Vec::new().into_iter(), failure: None })
}

/// The iterator of `verify_many`.
#[pyclass(module = "countersign_swap", name = "_Results")]
#[derive(Debug)]
pub(crate) struct Results {
    /// None after the last line.
    source: Option<Py<PyIterator>>,
    registry: Py<Registry>,
    policy: Option<Py<Policy>>,
    threads: usize,
    /// Lines of the next slice.
    size: usize,
    ready: vec::IntoIter<String>,
    /// What the source raised behind the lines of this slice.
    failure: Option<PyErr>,
}

#[pymethods]
impl Results {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<String>> {
        if self.ready.len() == 0 {
            py.check_signals()?;
            let slice = self.take(py);
            let policy = policy_of(self.policy.as_ref().map(Py::get));
            let (registry, threads) = (self.registry.get(), self.threads);
            // An iteration that has raised is over.
            let outputs = py.detach(|| run(&slice, registry, &policy, threads)).inspect_err(|_| self.source = None)?;
            self.ready = outputs.into_iter();
        }
        match self.ready.next() {
            None => self.failure.take().map_or(Ok(None), Err),
            output => Ok(output),
        }
    }
}

impl Results {
    /// Reads the next lines. After the last ones the source is gone.
    fn take(&mut self, py: Python<'_>) -> Vec<Text> {
        let mut slice = Vec::new();
        let mut bytes = 0_usize;
        let Some(source) = self.source.take() else { return slice };
        let mut lines = source.bind(py).clone();
        while slice.len() < self.size && bytes < SLICE_BYTES {
            match lines.next().map(|line| line?.extract::<Text>()) {
                Some(Ok(line)) => {
                    bytes = bytes.saturating_add(line.as_bytes().len());
                    slice.push(line);
                }
                Some(Err(error)) => {
                    self.failure = Some(error);
                    return slice;
                }
                None => return slice,
            }
        }
        self.size = self.size.saturating_mul(2).min(SLICE_LINES);
        self.source = Some(source);
        slice
    }
}

fn run(lines: &[Text], registry: &Registry, policy: &Limits, threads: usize) -> PyResult<Vec<String>> {
    let next = AtomicUsize::new(0);
    let stopped = AtomicBool::new(false);
    let (sender, results) = channel();
    let work = |sender: Sender<(usize, Vec<String>)>| {
        while !stopped.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = lines.chunks(CHUNK).nth(index) else { return };
            let outputs = chunk.iter().map(|line| objects::verify_line(line.as_bytes(), &registry.inner, policy)).collect();
            // The receiver is gone only after an interruption.
            let _ = sender.send((index, outputs));
        }
    };
    let mut chunks = vec![Vec::new(); lines.len().div_ceil(CHUNK)];
    thread::scope(|scope| -> PyResult<()> {
        for _ in 0..threads.min(chunks.len()) {
            let sender = sender.clone();
            thread::Builder::new().spawn_scoped(scope, || work(sender))?;
        }
        drop(sender);
        let mut checked = Instant::now();
        loop {
            match results.recv_timeout(SIGNALS) {
                Ok((index, outputs)) => {
                    if let Some(chunk) = chunks.get_mut(index) {
                        *chunk = outputs;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if checked.elapsed() >= SIGNALS {
                checked = Instant::now();
                Python::attach(|py| py.check_signals()).inspect_err(|_| stopped.store(true, Ordering::Relaxed))?;
            }
        }
    })?;
    Ok(chunks.into_iter().flatten().collect())
}
