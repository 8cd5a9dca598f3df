//! What people see of an order: its page and its sentence, receipts, and descriptors for devices.

use std::collections::BTreeMap;

use countersign_json::objects::Failure;
use countersign_view::border::{self, PageError};
use countersign_view::clear_signing::Descriptors;
use countersign_view::receipt::Documents;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::input::{Secret, Text};
use crate::order::UnsignedOrder;
use crate::refusal::raise;
use crate::trust::{Policy, Registry, policy_of};

/// What an order does, in one sentence.
#[pyclass(frozen, eq, get_all, module = "countersign_swap")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// The id of the message, such as `lock`.
    message: String,
    /// The values by name: `pay`, `source`, `receive`, `destination`, `payout`, `refund`.
    values: BTreeMap<String, String>,
    /// The sentence in the chosen language.
    text: String,
}

#[pymethods]
impl Sentence {
    fn __repr__(&self) -> String {
        format!("Sentence({:?})", self.text)
    }
}

/// An order as people see it.
#[pyclass(frozen, get_all, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct OrderPage {
    /// Whether the order was verified. A refused order has a page too, which shows the received values next to the expected ones.
    ok: bool,
    /// A whole HTML document without script, which loads nothing.
    html: String,
    /// What the order does, in one sentence; None for a refused order.
    sentence: Option<Sentence>,
}

#[pymethods]
impl OrderPage {
    fn __repr__(&self) -> String {
        format!("<countersign_swap.OrderPage of {}>", if self.ok { "a verified order" } else { "a refused order" })
    }
}

/// Verifies an order, and writes a page that shows it down to its bytes. What is wrong in a document is on the page.
///
/// Args:
///     request: As for `Order.verify`.
///     response: As for `Order.verify`.
///     registry: What the wallet has pinned.
///     policy: The wallet's limits, by default those of `Policy()`.
///     record: The order record, where the wallet has it.
///     language: The language of the sentence, `en` or `de`; with `messages`, any language tag.
///     messages: The messages of another language, in the syntax of Fluent. Each must show all of its values.
///     prepared: The same order, prepared from the same documents: the page then shows what the wallet contributed, the digests and the
///         signatures so far.
///
/// Raises:
///     Refusal: If a document is not JSON.
///     ValueError: If there is no such language, a message does not show one of its values, or `prepared` is another order.
#[pyfunction]
#[pyo3(signature = (request, response, registry, policy = None, record = None, *, language = None, messages = None, prepared = None))]
#[expect(clippy::too_many_arguments, reason = "they are named in Python")]
pub(crate) fn order_page(
    py: Python<'_>,
    request: Text,
    response: Text,
    registry: &Registry,
    policy: Option<&Policy>,
    record: Option<Text>,
    language: Option<Text>,
    messages: Option<Text>,
    prepared: Option<&UnsignedOrder>,
) -> PyResult<OrderPage> {
    let language = language.as_ref().map_or(Ok("en"), Text::as_str)?;
    let messages = messages.as_ref().map(Text::as_str).transpose()?;
    let policy = policy_of(policy);
    let write = |order: Option<&countersign::Unsigned>| {
        let page =
            border::order_page(&documents(&request, &response, record.as_ref()), &registry.inner, &policy, language, messages, order);
        page.map_err(|error| match error {
            PageError::Document(refusal) => Failure::from(refusal),
            other => Failure::usage(other.at(), other.to_string()),
        })
    };
    let page = match prepared {
        Some(prepared) => prepared.read(py, |order| write(Some(order)))?,
        None => py.detach(|| write(None)),
    };
    let page = page.map_err(raise)?;
    let sentence = page.sentence.zip(page.text).map(|(sentence, text)| Sentence {
        message: sentence.message().id().to_owned(),
        values: sentence.values().iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect(),
        text,
    });
    Ok(OrderPage { ok: page.ok, html: page.html, sentence })
}

fn documents<'d>(request: &'d Text, response: &'d Text, record: Option<&'d Text>) -> Documents<'d> {
    Documents { request: request.as_bytes(), response: response.as_bytes(), record: record.map(Text::as_bytes) }
}

/// Verifies an order, and writes a receipt of the verdict, whatever it is.
///
/// Whoever has the same registry can check it later, also by `countersign check-receipt`. docs/spec/receipt.md of the project describes it.
///
/// Args:
///     request: As for `Order.verify`.
///     response: As for `Order.verify`.
///     registry: What the wallet has pinned.
///     policy: The wallet's limits, by default those of `Policy()`.
///     record: The order record, where the wallet has it.
///     key: An Ed25519 key that signs the receipt: its seed, as 32 bytes or 64 hex digits.
///
/// Returns:
///     The file: one line of JSON.
///
/// Raises:
///     Refusal: If the request has a member `secret_key`, or the key is malformed.
#[pyfunction]
#[pyo3(signature = (request, response, registry, policy = None, record = None, *, key = None))]
pub(crate) fn write_receipt<'py>(
    py: Python<'py>,
    request: Text,
    response: Text,
    registry: &Registry,
    policy: Option<&Policy>,
    record: Option<Text>,
    key: Option<Secret>,
) -> PyResult<Bound<'py, PyBytes>> {
    let policy = policy_of(policy);
    let key = key.as_ref().map(Secret::to_secret).transpose().map_err(raise)?;
    let written = py.detach(|| {
        let key = key.as_deref().map(String::as_str);
        border::write_receipt(&documents(&request, &response, record.as_ref()), &registry.inner, &policy, key)
    });
    Ok(PyBytes::new(py, &written.map_err(|refusal| raise(refusal.into()))?))
}

/// A difference between a receipt and what was computed again.
#[pyclass(frozen, eq, get_all, module = "countersign_swap")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// JSON pointer into the receipt.
    at: String,
    /// What the receipt has.
    receipt: String,
    /// What was computed or required instead.
    computed: String,
}

#[pymethods]
impl Difference {
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

/// What the check of a receipt found. Text of the receipt is quoted, which does not make it safe as HTML.
#[pyclass(frozen, get_all, module = "countersign_swap")]
#[derive(Debug)]
pub(crate) struct CheckedReceipt {
    /// Whether everything is as the receipt says.
    is_proven: bool,
    /// The program that wrote it, by its own words: quoted, unless it is this version.
    program: String,
    /// SHA-256 of what the receipt says, which is what is signed.
    digest: String,
    /// The public key of the valid signature, in hex; None without one.
    signer: Option<String>,
    /// The verdict as JSON, as the receipt has it; None unless it is proven.
    verdict: Option<String>,
    /// The limits of the receipt's policy that are not the default ones, such as `evm_timelock 100 (default 86400)`.
    own_limits: Vec<String>,
    /// What differs.
    differences: Vec<Difference>,
}

#[pymethods]
impl CheckedReceipt {
    fn __repr__(&self) -> String {
        format!("<countersign_swap.CheckedReceipt: {}>", if self.is_proven { "proven" } else { "not proven" })
    }
}

/// Verifies the documents of a receipt again, and compares everything that it says.
///
/// Args:
///     receipt: The file.
///     registry: What was pinned at the time.
///     policy: The policy under which it must have been made. Without it, it is checked under its own policy: show `own_limits`.
///     signer: The public key that must have signed it, 64 hex digits.
///
/// Raises:
///     Refusal: If it is not a receipt. What differs in a receipt is returned.
#[pyfunction]
#[pyo3(signature = (receipt, registry, policy = None, *, signer = None))]
pub(crate) fn check_receipt(
    py: Python<'_>,
    receipt: Text,
    registry: &Registry,
    policy: Option<&Policy>,
    signer: Option<Text>,
) -> PyResult<CheckedReceipt> {
    let signer = signer.as_ref().map(Text::as_str).transpose()?;
    let policy = policy.map(|policy| policy_of(Some(policy)));
    let checked = py.detach(|| border::check_receipt(receipt.as_bytes(), &registry.inner, policy.as_deref(), signer));
    let checked = checked.map_err(|refusal| raise(refusal.into()))?;
    let difference = |one: countersign_view::receipt::Difference| Difference { at: one.at, receipt: one.receipt, computed: one.computed };
    Ok(CheckedReceipt {
        is_proven: checked.is_proven,
        program: checked.program,
        digest: checked.digest,
        signer: checked.signer,
        verdict: checked.verdict.and_then(|verdict| serde_json::to_string(&verdict).ok()),
        own_limits: checked.own_limits.iter().map(ToString::to_string).collect(),
        differences: checked.differences.into_iter().map(difference).collect(),
    })
}

/// Writes the clear-signing descriptors (ERC-7730) of the EVM contracts that a registry pins.
///
/// A device that has them shows an order in words.
///
/// Returns:
///     The files, by name.
#[pyfunction]
pub(crate) fn descriptors(registry: &Registry) -> BTreeMap<String, String> {
    Descriptors::from_registry(&registry.inner).files.into_iter().map(|file| (file.name, file.json)).collect()
}
