//! Wallet contexts as Python hands them over: dicts, or text as docs/spec/batch.md of the project describes it.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::input::{Secret, surrogate, wrong_type};

/// Deeper contexts have no meaning, and one can contain itself.
const MAX_DEPTH: usize = 8;

/// The JSON of a wallet context.
#[derive(Debug)]
pub(crate) enum Wallet {
    Dict(String),
    Text(Secret),
}

impl Wallet {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Dict(json) => json.as_bytes(),
            Self::Text(json) => json.as_bytes(),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Wallet {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if !object.is_instance_of::<PyDict>() {
            return object.extract().map(Self::Text);
        }
        let mut json = String::new();
        write(&object, "wallet", 0, &mut json)?;
        Ok(Self::Dict(json))
    }
}

fn write(value: &Bound<'_, PyAny>, name: &str, depth: usize, json: &mut String) -> PyResult<()> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!("{name} is nested too deeply")));
    }
    let inside = depth.saturating_add(1);
    if value.is_none() {
        json.push_str("null");
    } else if let Ok(flag) = value.cast::<PyBool>() {
        json.push_str(if flag.is_true() { "true" } else { "false" });
    } else if value.is_instance_of::<PyInt>() {
        // A subclass, such as an enum, may have another text.
        let digits = value.py().get_type::<PyInt>().getattr("__repr__")?.call1((value,))?;
        let quote = if countersign_json::is_decimal_text(name) { "\"" } else { "" };
        json.push_str(&format!("{quote}{digits}{quote}"));
    } else if let Ok(text) = value.cast::<PyString>() {
        write_text(text, json)?;
    } else if let Ok(members) = value.cast::<PyDict>() {
        json.push('{');
        // A copy: what is read below can run code that changes the dict.
        for member in members.items() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = member.extract()?;
            let key = key.cast_into::<PyString>().map_err(|_| PyTypeError::new_err(format!("the keys of {name} must be str")))?;
            // No step reads it, so no copy of it is made.
            if key == "secret_key" {
                continue;
            }
            if !json.ends_with('{') {
                json.push(',');
            }
            write_text(&key, json)?;
            json.push(':');
            write(&value, &key.to_string_lossy(), inside, json)?;
        }
        json.push('}');
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        json.push('[');
        for item in value.try_iter()? {
            if !json.ends_with('[') {
                json.push(',');
            }
            write(&item?, name, inside, json)?;
        }
        json.push(']');
    } else {
        return Err(wrong_type(&format!("{name} to be str, int, bool, list, dict or None"), value));
    }
    Ok(())
}

fn write_text(text: &Bound<'_, PyString>, json: &mut String) -> PyResult<()> {
    let letters = text.to_cow().map_err(|error| surrogate(error, text.py()))?;
    let text = serde_json::to_string(&*letters).map_err(|error| PyValueError::new_err(error.to_string()))?;
    json.push_str(&text);
    Ok(())
}
