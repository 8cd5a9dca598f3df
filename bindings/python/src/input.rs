//! Documents and keys as Python hands them over.

use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyByteArray, PyBytes, PyString};
use zeroize::Zeroizing;

/// A document or a name: `str` or `bytes`.
///
/// Its bytes are those of the Python object, and may be read while the interpreter lock is released.
#[derive(Debug)]
pub(crate) enum Text {
    Str(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl Text {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Str(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    pub(crate) fn as_str(&self) -> PyResult<&str> {
        utf8(self.as_bytes())
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() {
            object.extract().map(Self::Str).map_err(|error| surrogate(error, object.py()))
        } else if object.is_instance_of::<PyBytes>() {
            Ok(Self::Bytes(object.extract()?))
        } else {
            Err(wrong_type("str or bytes", object))
        }
    }
}

/// A key, a secret, or a document that may hold one: `str`, `bytes` or `bytearray`. This copy is wiped.
#[derive(Debug)]
pub(crate) struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn as_str(&self) -> PyResult<&str> {
        utf8(&self.0)
    }
}

impl<'py> FromPyObject<'_, 'py> for Secret {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let bytes = if let Ok(bytes) = object.cast::<PyByteArray>() {
            bytes.to_vec()
        } else if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            object.extract::<Text>()?.as_bytes().to_vec()
        } else {
            return Err(wrong_type("str, bytes or bytearray", object));
        };
        Ok(Self(Zeroizing::new(bytes)))
    }
}

/// The error does not quote the bytes, which can be a key.
fn utf8(bytes: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(bytes).map_err(|error| PyValueError::new_err(format!("invalid UTF-8 at byte {}", error.valid_up_to())))
}

/// Python's own error would hold the text, which can be a key.
fn surrogate(error: PyErr, py: Python<'_>) -> PyErr {
    match error.is_instance_of::<PyUnicodeEncodeError>(py) {
        true => PyValueError::new_err("the text has a lone surrogate, which UTF-8 cannot express"),
        false => error,
    }
}

fn wrong_type(expected: &str, object: Borrowed<'_, '_, PyAny>) -> PyErr {
    let name = object.get_type().qualname().map_or_else(|_| "another type".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {expected}, not {name}"))
}
