//! The values that the objects return: immutable, with named attributes.

use countersign::{U256, number};
use countersign_json::for_each_shape;
use countersign_json::objects::words::{Code, Family, HtlcState, PayloadKind, Role, Scheme, Severity, TimelockUnit, ValueKind};
use countersign_json::objects::{self, Convert};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyTuple, PyType};

/// `bytes` in Python.
type Hex = Vec<u8>;

/// `int` in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Decimal(pub(crate) U256);

impl Convert<Decimal> for objects::Decimal {
    fn convert(self) -> Decimal {
        Decimal(self.0)
    }
}

impl<'py> IntoPyObject<'py> for Decimal {
    type Target = PyInt;
    type Output = Bound<'py, PyInt>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(py.get_type::<PyInt>().call1((self.0.to_string(),))?.cast_into()?)
    }
}

impl<'py> IntoPyObject<'py> for &Decimal {
    type Target = PyInt;
    type Output = Bound<'py, PyInt>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        (*self).into_pyobject(py)
    }
}

impl<'py> FromPyObject<'_, 'py> for Decimal {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let invalid = || PyValueError::new_err("not a number of at most 256 bits");
        object.cast::<PyInt>()?.to_string().parse().map(Self).map_err(|_| invalid())
    }
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, eq, hash, get_all, from_py_object, module = "countersign_swap")]
            #[derive(Debug, Clone, PartialEq, Eq, Hash)]
            pub(crate) struct $name {
                $($(#[$field_doc])* $field: $type,)*
            }

            #[pymethods]
            impl $name {
                #[classattr]
                fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
                    PyTuple::new(py, [$(stringify!($field)),*])
                }

                /// Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`.
                fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
                    let members = PyDict::new(slf.py());
                    $(members.set_item(stringify!($field), plain(slf.getattr(stringify!($field))?)?)?;)*
                    Ok(members)
                }

                fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                    let members = [$(format!("{}={}", stringify!($field), slf.getattr(stringify!($field))?.repr()?)),*];
                    Ok(format!("{}({})", stringify!($name), members.join(", ")))
                }

                fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
                    let members = PyTuple::new(slf.py(), [$(slf.getattr(stringify!($field))?),*])?;
                    Ok((slf.getattr("_restore")?, members))
                }

                /// Makes a value again from what pickle has stored of it.
                #[classmethod]
                #[pyo3(signature = (*members))]
                fn _restore(_: &Bound<'_, PyType>, members: &Bound<'_, PyTuple>) -> PyResult<Self> {
                    let mut members = members.iter();
                    let mut next = || members.next().ok_or_else(|| PyValueError::new_err("stored by another version"));
                    Ok(Self { $($field: next()?.extract()?,)* })
                }
            }

            impl Convert<$name> for objects::$name {
                fn convert(self) -> $name {
                    $name { $($field: self.$field.convert(),)* }
                }
            }
        )*
    };
}
for_each_shape! { declare }

/// Returns an attribute as `json.dumps` takes it.
fn plain(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(format!("0x{}", bytes.call_method0("hex")?).into_pyobject(value.py())?.into_any());
    }
    if let Ok(items) = value.cast::<PyList>() {
        let items: Vec<_> = items.iter().map(plain).collect::<PyResult<_>>()?;
        return Ok(PyList::new(value.py(), items)?.into_any());
    }
    match value.getattr_opt("to_dict")? {
        Some(to_dict) => to_dict.call0(),
        None => Ok(value),
    }
}

/// Returns an amount in whole units, such as `1.5`, exactly. Any other value is returned as its text.
#[pyfunction]
pub(crate) fn in_whole_units(value: &Bound<'_, Value>) -> String {
    let value = value.get();
    match (value.kind.as_str(), value.number, value.decimals) {
        ("amount", Some(Decimal(number)), Some(decimals)) => number::in_whole_units(number, decimals),
        _ => value.text.clone(),
    }
}

/// Returns the families that this build has code for. An order of any other is refused as `unsupported_family`.
#[pyfunction]
pub(crate) fn families() -> Vec<&'static str> {
    countersign::FAMILIES.iter().map(|family| family.name()).collect()
}
