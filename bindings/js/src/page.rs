//! The page of an order: `countersign/page`.

use countersign_json::objects::{self, Failure};
use countersign_view::border::{self, PageError};
use countersign_view::receipt::Documents;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use super::{Policy, Registry, Text, UnsignedOrder, thrown};

fn documents<'d>(request: &'d [u8], response: &'d [u8], record: Option<&'d [u8]>) -> Documents<'d> {
    Documents { request, response, record }
}

/// Verifies an order and writes its page.
#[wasm_bindgen(js_name = orderPage)]
pub fn order_page(
    request: &[u8],
    response: &[u8],
    record: Option<Box<[u8]>>,
    registry: &Registry,
    policy: &Policy,
    language: &str,
    messages: Option<String>,
) -> Text {
    render(&documents(request, response, record.as_deref()), (&registry.0, &policy.0), language, messages.as_deref(), None)
}

/// Writes the page of an order that is prepared: the same with what the wallet contributed and its signatures.
#[wasm_bindgen(js_name = preparedPage)]
#[expect(clippy::too_many_arguments, reason = "an object would have to be taken apart field by field")]
pub fn prepared_page(
    request: &[u8],
    response: &[u8],
    record: Option<Box<[u8]>>,
    registry: &Registry,
    policy: &Policy,
    language: &str,
    messages: Option<String>,
    prepared: &UnsignedOrder,
) -> Text {
    let documents = documents(request, response, record.as_deref());
    render(&documents, (&registry.0, &policy.0), language, messages.as_deref(), Some(prepared.get()?))
}

fn render(
    documents: &Documents<'_>,
    (registry, policy): (&countersign::Registry, &countersign::Policy),
    language: &str,
    messages: Option<&str>,
    prepared: Option<&countersign::Unsigned>,
) -> Text {
    let page = border::order_page(documents, registry, policy, language, messages, prepared);
    page.map(|page| super::json(&page)).map_err(|error| match error {
        PageError::Document(refusal) => thrown(refusal.into()),
        other => thrown(Failure::usage(other.at(), other.to_string())),
    })
}

/// Verifies an order, and writes a receipt of the verdict, signed with a seed in hex or as 32 bytes if there is one.
#[wasm_bindgen(js_name = writeReceipt)]
pub fn write_receipt(
    request: &[u8],
    response: &[u8],
    record: Option<Box<[u8]>>,
    registry: &Registry,
    policy: &Policy,
    key: Option<Vec<u8>>,
) -> Result<Vec<u8>, String> {
    // 32 bytes are the seed itself, as those of a swap's secret.
    let key = key.map(|key| objects::secret_text(&Zeroizing::new(key))).transpose().map_err(thrown)?;
    let documents = documents(request, response, record.as_deref());
    let written = border::write_receipt(&documents, &registry.0, &policy.0, key.as_deref().map(String::as_str));
    written.map_err(|refusal| thrown(refusal.into()))
}

/// Checks a receipt under its own policy.
#[wasm_bindgen(js_name = checkReceipt)]
pub fn check_receipt(receipt: &[u8], registry: &Registry, signer: Option<String>) -> Text {
    checked(receipt, registry, None, signer.as_deref())
}

/// Checks a receipt that must have been made under this policy.
#[wasm_bindgen(js_name = checkReceiptWithPolicy)]
pub fn check_receipt_with_policy(receipt: &[u8], registry: &Registry, policy: &Policy, signer: Option<String>) -> Text {
    checked(receipt, registry, Some(&policy.0), signer.as_deref())
}

fn checked(receipt: &[u8], registry: &Registry, policy: Option<&countersign::Policy>, signer: Option<&str>) -> Text {
    let checked = border::check_receipt(receipt, &registry.0, policy, signer);
    checked.map(|checked| super::json(&checked)).map_err(|refusal| thrown(refusal.into()))
}

/// Returns the differences between the pinned registry and a newer one.
#[wasm_bindgen(js_name = registryDiff)]
pub fn registry_diff(pinned: &Registry, newer: &Registry) -> String {
    super::json(&objects::registry_diff(&pinned.0, &newer.0))
}

/// Writes the clear-signing descriptors of the pinned EVM contracts.
#[cfg(feature = "evm")]
#[wasm_bindgen]
pub fn descriptors(registry: &Registry) -> String {
    super::json(&countersign_view::clear_signing::Descriptors::from_registry(&registry.0))
}
