//! Documents, keys and numbers as Python hands them over.

use countersign::Family;
use countersign_json::objects::{self, Failure};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyByteArray, PyBytes, PyFloat, PyMemoryView, PySlice, PyString, PyType};
use zeroize::Zeroizing;

/// A document or a name: `str`, `bytes`, `bytearray` or `memoryview`, or a value of pyarrow that converts to one of them.
///
/// A document that is not copied is read in the Python object, also while the interpreter lock is released. A copy is wiped.
#[derive(Debug)]
pub(crate) enum Text {
    Str(PyBackedStr),
    Bytes(PyBackedBytes),
    Copy(Zeroizing<Vec<u8>>),
}

impl Text {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Str(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
            Self::Copy(bytes) => bytes,
        }
    }

    pub(crate) fn as_str(&self) -> PyResult<&str> {
        utf8(self.as_bytes())
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Some(text) = read(&object)? {
            return Ok(text);
        }
        // A scalar of pyarrow.
        let value = match object.getattr_opt(intern!(object.py(), "as_py"))? {
            Some(as_py) if !object.is_instance_of::<PyType>() => as_py.call0()?,
            _ => object.to_owned(),
        };
        read(&value)?.ok_or_else(|| wrong_type("str, bytes, bytearray or memoryview", &value))
    }
}

fn read(object: &Bound<'_, PyAny>) -> PyResult<Option<Text>> {
    let py = object.py();
    if let Ok(text) = object.cast::<PyString>() {
        // Python's conversion to UTF-8 is faster, but leaves a copy in memory.
        return match of_str(text, "__contains__", Some("secret_key"))?.is_truthy()? {
            true => copy_text(text).map(|mut text| Some(Text::Copy(Zeroizing::new(std::mem::take(&mut *text).into_bytes())))),
            false => text.extract().map(|text| Some(Text::Str(text))).map_err(|error| surrogate(error, py)),
        };
    }
    if object.is_instance_of::<PyBytes>() {
        return Ok(Some(Text::Bytes(object.extract()?)));
    }
    Ok(copy_bytes(object)?.map(Text::Copy))
}

/// Bytes that are never text: `bytes`, `bytearray` or `memoryview`.
#[derive(Debug)]
pub(crate) struct Bytes(Text);

impl Bytes {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<'py> FromPyObject<'_, 'py> for Bytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.is_instance_of::<PyString>() {
            true => Err(wrong_type("bytes, bytearray or memoryview", &object)),
            false => object.extract().map(Self),
        }
    }
}

/// A key or a secret, or a document that may contain one. This copy is wiped.
#[derive(Debug)]
pub(crate) enum Secret {
    Text(Zeroizing<String>),
    Bytes(Zeroizing<Vec<u8>>),
}

impl Secret {
    /// Returns the bytes, or those of the text.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// Returns the text of a key of this family.
    pub(crate) fn to_key(&self, family: Family) -> Result<Zeroizing<String>, Failure> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Bytes(bytes) => objects::key_text(bytes, family),
        }
    }

    /// Returns the text of a swap's secret.
    pub(crate) fn to_secret(&self) -> Result<Zeroizing<String>, Failure> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Bytes(bytes) => objects::secret_text(bytes),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Secret {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return copy_text(&text).map(Self::Text);
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(Zeroizing::new(bytes.as_bytes().to_vec())));
        }
        copy_bytes(&object)?.map(Self::Bytes).ok_or_else(|| wrong_type("str, bytes, bytearray or memoryview", &object))
    }
}

/// Copies text letter by letter. Python's own conversion would leave the whole of it in memory that is not wiped.
fn copy_text(text: &Bound<'_, PyString>) -> PyResult<Zeroizing<String>> {
    // With room for all of it, no copy is left behind by growing.
    let length: usize = of_str(text, "__len__", None)?.extract()?;
    let mut copy = Zeroizing::new(String::with_capacity(length.saturating_mul(4)));
    for letter in of_str(text, "__iter__", None)?.try_iter()? {
        copy.push(letter?.extract().map_err(|error| surrogate(error, text.py()))?);
    }
    Ok(copy)
}

/// Calls a method of `str` itself: a subclass may say anything about its length and its letters.
fn of_str<'py>(text: &Bound<'py, PyString>, name: &str, argument: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let method = text.py().get_type::<PyString>().getattr(name)?;
    match argument {
        Some(argument) => method.call1((text, argument)),
        None => method.call1((text,)),
    }
}

/// Copies the content of a `bytearray` or a `memoryview`.
fn copy_bytes(object: &Bound<'_, PyAny>) -> PyResult<Option<Zeroizing<Vec<u8>>>> {
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Some(Zeroizing::new(bytes.to_vec())));
    }
    if !object.is_instance_of::<PyMemoryView>() {
        return Ok(None);
    }
    let bytes = PyByteArray::from(object)?;
    let copy = Zeroizing::new(bytes.to_vec());
    bytes.set_item(PySlice::full(object.py()), PyBytes::new_with(object.py(), copy.len(), |_| Ok(()))?)?;
    Ok(Some(copy))
}

/// A whole number in the range of its type. Any other number is a `ValueError`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole<T>(pub(crate) T);

impl<'py, T> FromPyObject<'_, 'py> for Whole<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Self).map_err(|error| match error.is_instance_of::<PyOverflowError>(object.py()) {
            true => PyValueError::new_err(format!("{} is negative or too large", *object)),
            false => error,
        })
    }
}

/// A time in Unix seconds: an `int`, or a `float` as `time.time()` returns it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if !object.is_instance_of::<PyFloat>() {
            return object.extract().map(|Whole(seconds)| Self(seconds));
        }
        let whole = object.call_method0(intern!(object.py(), "__floor__"));
        let whole = whole.map_err(|_| PyValueError::new_err(format!("{} is not a time", *object)))?;
        whole.extract().map(|Whole(seconds)| Self(seconds))
    }
}

/// The error does not quote the bytes, which can be a key.
fn utf8(bytes: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(bytes).map_err(|error| PyValueError::new_err(format!("invalid UTF-8 at byte {}", error.valid_up_to())))
}

/// Python's own error would hold the text, which can be a key.
pub(crate) fn surrogate(error: PyErr, py: Python<'_>) -> PyErr {
    match error.is_instance_of::<PyUnicodeEncodeError>(py) {
        true => PyValueError::new_err("the text has a lone surrogate, which UTF-8 cannot express"),
        false => error,
    }
}

pub(crate) fn wrong_type(expected: &str, object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().qualname().map_or_else(|_| "another type".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {expected}, not {name}"))
}
