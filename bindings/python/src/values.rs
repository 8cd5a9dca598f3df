//! The values that the objects return: immutable, with named attributes.

use countersign_json::for_each_shape;
use countersign_json::objects::{self, Convert};
use pyo3::prelude::*;

/// `bytes` in Python.
type Hex = Vec<u8>;

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
