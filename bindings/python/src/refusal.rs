//! The exception of everything that is refused.

use countersign_json::objects::Failure;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    countersign_swap,
    Refusal,
    PyException,
    "A document, key, signature or state that is not accepted.

The text of the exception has all of these attributes but `blame`.

Attributes:
    code: The stable snake_case code, as docs/codes.md of the project lists them; also `used_up` and `signature_missing`.
    message: The rule that was broken, and what to do about it.
    at: Where: an RFC 6901 pointer into the input, with a byte range behind `#` where a payload is meant.
    expected: What would have been right, or None.
    actual: What came instead, or None.
    blame: Who has to act: `service`, `caller`, `unsupported`, `bug`, or `chain` where only waiting can help."
);

/// Creates the exception of a failure.
///
/// The attributes are in the instance's dictionary, so that the exception can be pickled.
pub(crate) fn raise(failure: Failure) -> PyErr {
    if failure.is_usage() {
        let expected = failure.expected.unwrap_or(failure.message);
        return PyValueError::new_err(format!("{}: expected {expected}", failure.at.trim_start_matches('/')));
    }
    new(failure)
}

/// Creates a `Refusal` for any failure.
pub(crate) fn new(failure: Failure) -> PyErr {
    Python::attach(|py| {
        let error = Refusal::new_err(failure.to_string());
        let value = error.value(py);
        let set = || {
            value.setattr("code", failure.code)?;
            value.setattr("message", failure.message)?;
            value.setattr("at", failure.at.as_ref())?;
            value.setattr("expected", failure.expected)?;
            value.setattr("actual", failure.actual)?;
            value.setattr("blame", failure.blame)
        };
        set().err().unwrap_or(error)
    })
}
