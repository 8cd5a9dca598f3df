//! What the wallet trusts: its pins and its limits.

use std::borrow::Cow;

use countersign_json::objects::{self, Convert};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::input::Text;
use crate::refusal::raise;
use crate::values::PinChange;

/// What the wallet has pinned: chains, assets and solvers.
///
/// Read it once and share it: it is immutable, usable from all threads, and can be pickled.
///
/// Args:
///     json: The registry document.
///
/// Raises:
///     Refusal: At the first member that is malformed or contradictory.
#[pyclass(frozen, weakref, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) inner: countersign::Registry,
    json: Vec<u8>,
}

#[pymethods]
impl Registry {
    #[new]
    fn new(json: Text) -> PyResult<Self> {
        let inner = objects::registry(json.as_bytes()).map_err(raise)?;
        Ok(Self { inner, json: json.as_bytes().to_vec() })
    }

    /// Compares a newer registry with this one, which is pinned. Show the changes to the owner before you pin the newer one.
    ///
    /// Returns:
    ///     Everything that differs, sorted by entry and member; nothing if both pin the same.
    fn diff(&self, newer: &Self) -> Vec<PinChange> {
        objects::registry_diff(&self.inner, &newer.inner).convert()
    }

    fn __getnewargs__(&self) -> (Cow<'_, [u8]>,) {
        (Cow::Borrowed(&self.json),)
    }

    fn __repr__(&self) -> String {
        let (chains, assets, solvers) = (self.inner.chains().count(), self.inner.assets().len(), self.inner.solvers().len());
        format!("<countersign_swap.Registry of {chains} chains, {assets} assets and {solvers} solvers>")
    }
}

/// The wallet's own limits: timelocks, fees, and the warnings that are refused.
///
/// Immutable, usable from all threads, and can be pickled.
///
/// Args:
///     json: The policy document. What it leaves out keeps its default.
///
/// Raises:
///     Refusal: At the first member that is malformed or unknown.
#[pyclass(frozen, weakref, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct Policy {
    inner: countersign::Policy,
    json: Vec<u8>,
}

#[pymethods]
impl Policy {
    #[new]
    #[pyo3(signature = (json = None))]
    fn new(json: Option<Text>) -> PyResult<Self> {
        let json = json.map_or_else(|| b"{}".to_vec(), |json| json.as_bytes().to_vec());
        Ok(Self { inner: objects::policy(&json).map_err(raise)?, json })
    }

    fn __getnewargs__(&self) -> (Cow<'_, [u8]>,) {
        (Cow::Borrowed(&self.json),)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Policy({})", PyBytes::new(py, &self.json).repr()?))
    }
}

/// Returns the policy of a caller, by default the project's.
pub(crate) fn policy_of(policy: Option<&Policy>) -> Cow<'_, countersign::Policy> {
    policy.map_or_else(|| Cow::Owned(countersign::Policy::default()), |policy| Cow::Borrowed(&policy.inner))
}
