//! The values that the objects return: immutable, with named attributes.

use countersign_json::objects::{self, Convert};
use countersign_json::{for_each_shape, for_each_word_set};
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// `bytes` in Python.
type Hex = Vec<u8>;

/// `int` in Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal(String);

impl Convert<Decimal> for objects::Decimal {
    fn convert(self) -> Decimal {
        Decimal(self.to_string())
    }
}

impl<'py> IntoPyObject<'py> for &Decimal {
    type Target = PyInt;
    type Output = Bound<'py, PyInt>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(py.get_type::<PyInt>().call1((&self.0,))?.cast_into()?)
    }
}

macro_rules! declare_words {
    ($($(#[$doc:meta])* $name:ident = $words:expr;)*) => {
        $(#[allow(dead_code, reason = "not every set is in a class")] type $name = String;)*
    };
}
for_each_word_set! { declare_words }

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, eq, get_all, module = "countersign_swap")]
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub(crate) struct $name {
                $($(#[$field_doc])* $field: $type,)*
            }

            #[pymethods]
            impl $name {
                fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                    let members = [$(format!("{}={}", stringify!($field), slf.getattr(stringify!($field))?.repr()?)),*];
                    Ok(format!("{}({})", stringify!($name), members.join(", ")))
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
