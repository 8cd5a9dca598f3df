//! Lines of the batch contract: one at a time, or many on all cores.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use countersign::Policy as Limits;
use countersign_batch::objects;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use crate::input::Text;
use crate::trust::{Policy, Registry, policy_of};

/// Lines that a thread takes at a time: small, so that all threads end together.
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
/// The interpreter lock is released: other Python threads go on. Ctrl-C ends the call within a tenth of a second.
///
/// Args:
///     lines: Cases as `verify_line` takes them.
///     registry: What the wallet has pinned.
///     policy: The wallet's limits, by default those of `Policy()`.
///     threads: How many threads verify, by default as many as this process may run at once.
#[pyfunction]
#[pyo3(signature = (lines, registry, policy = None, threads = None))]
pub(crate) fn verify_many(
    py: Python<'_>,
    lines: &Bound<'_, PyAny>,
    registry: &Registry,
    policy: Option<&Policy>,
    threads: Option<usize>,
) -> PyResult<Vec<String>> {
    let threads = match threads {
        Some(0) => return Err(PyValueError::new_err("threads must be at least 1")),
        Some(threads) => threads.min(MAX_THREADS),
        None => thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    // One document is iterable too, and its characters would be taken for lines.
    if lines.is_instance_of::<PyString>() || lines.is_instance_of::<PyBytes>() || lines.is_instance_of::<PyByteArray>() {
        return Err(PyTypeError::new_err("lines must be an iterable of str or bytes, not one document"));
    }
    let lines = lines.try_iter()?.map(|line| line?.extract()).collect::<PyResult<Vec<Text>>>()?;
    let policy = policy_of(policy);
    py.detach(|| run(&lines, registry, &policy, threads))
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
