//! Lines of the batch contract: one at a time, or many on all cores.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use countersign::Policy as Limits;
use countersign_json::objects;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyIterator, PyList, PyString};

use crate::input::Text;
use crate::trust::{Policy, Registry, policy_of};

/// Lines and bytes that are read from Python at once. Of a generator no more than that is in memory.
const SLICE_LINES: usize = 4096;
const SLICE_BYTES: usize = 64 * 1024 * 1024;
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

/// Verifies many cases on several threads and returns one line of JSON for each, in the order of the input.
///
/// The interpreter lock is released while lines are verified: other Python threads go on. Ctrl-C ends the call.
///
/// Args:
///     lines: Cases as `verify_line` takes them, in a list or from a generator.
///     registry: What the wallet has pinned.
///     policy: The wallet's limits, by default those of `Policy()`.
///     threads: How many threads verify, by default as many as this process may run at once.
#[pyfunction]
#[pyo3(signature = (lines, registry, policy = None, threads = None))]
pub(crate) fn verify_many<'py>(
    py: Python<'py>,
    lines: &Bound<'py, PyAny>,
    registry: &Registry,
    policy: Option<&Policy>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyList>> {
    let threads = match threads {
        Some(0) => return Err(PyValueError::new_err("threads must be at least 1")),
        Some(threads) => threads.min(MAX_THREADS),
        None => thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    // One document is iterable too, and its characters would be taken for lines.
    if lines.is_instance_of::<PyString>() || lines.is_instance_of::<PyBytes>() || lines.is_instance_of::<PyByteArray>() {
        return Err(PyTypeError::new_err("lines must be an iterable of str or bytes, not one document"));
    }
    let policy = policy_of(policy);
    let outputs = PyList::empty(py);
    let mut source = lines.try_iter()?;
    loop {
        let slice = take(&mut source)?;
        if slice.is_empty() {
            return Ok(outputs);
        }
        for output in py.detach(|| run(&slice, registry, &policy, threads))? {
            outputs.append(output)?;
        }
    }
}

fn take(source: &mut Bound<'_, PyIterator>) -> PyResult<Vec<Text>> {
    let mut slice = Vec::new();
    let mut bytes = 0_usize;
    while slice.len() < SLICE_LINES && bytes < SLICE_BYTES {
        let Some(line) = source.next() else { break };
        let line: Text = line?.extract()?;
        bytes = bytes.saturating_add(line.as_bytes().len());
        slice.push(line);
    }
    Ok(slice)
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
