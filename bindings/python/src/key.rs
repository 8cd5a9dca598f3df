//! Local keys.

use countersign_json::objects;
use pyo3::prelude::*;

use crate::input::{Secret, Text};
use crate::refusal::raise;

/// A local key, parsed once, for `UnsignedOrder.sign` and `local_key`.
///
/// It is wiped when nothing refers to it any more, and cannot be pickled. Its `repr` shows its family and its account. Usable from all
/// threads.
///
/// Args:
///     family: The family that the key signs for, such as `evm`. Litecoin is of the family `bitcoin`.
///     key: The key in its family's usual text form, or as bytes: 32 bytes are the raw key (on Solana the seed, or 64 bytes the keypair),
///         and any other number of bytes is the text in UTF-8. Python cannot wipe a `str` or `bytes`: pass a `bytearray` and clear it
///         afterwards.
///
/// Raises:
///     Refusal: With the code `key_malformed`, never with any part of the key.
///     ValueError: If the family is another word.
#[pyclass(frozen, weakref, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct Key(pub(crate) objects::Key);

#[pymethods]
impl Key {
    #[new]
    fn new(py: Python<'_>, family: Text, key: Secret) -> PyResult<Self> {
        let family = family.as_str()?;
        py.detach(|| objects::Key::parse_named(key.as_bytes(), family)).map(Self).map_err(raise)
    }

    /// The family that the key signs for.
    #[getter]
    fn family(&self) -> &'static str {
        self.0.family().name()
    }

    /// The account that the key controls; None on Starknet and Bitcoin-like chains, where it does not follow from the key.
    #[getter]
    fn account(&self) -> Option<String> {
        self.0.account()
    }

    fn __repr__(&self) -> String {
        format!("<countersign_swap.{:?}>", self.0)
    }
}

/// A key that was parsed before, or one to parse now.
#[derive(Debug)]
pub(crate) enum KeyOrSecret {
    Key(Py<Key>),
    Secret(Secret),
}

impl<'py> FromPyObject<'_, 'py> for KeyOrSecret {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<Key>() {
            Ok(key) => Ok(Self::Key(key.to_owned().unbind())),
            Err(_) => object.extract().map(Self::Secret),
        }
    }
}
