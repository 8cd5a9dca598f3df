//! The page of an order: `countersign/page`.

use countersign::json::{self, At};
use countersign_json::objects::Failure;
use countersign_view::{Catalogue, Documents, Page, Sentence};
use serde::Serialize;
use wasm_bindgen::prelude::wasm_bindgen;

use super::{Policy, Registry, Text, UnsignedOrder, thrown};

/// What JavaScript gets.
#[derive(Serialize)]
struct Rendered<'p> {
    html: String,
    sentence: Option<Sentence>,
    text: Option<String>,
    refusal: Option<&'p countersign::Refusal>,
}

fn parse<'t>(text: &'t [u8], document: &At<'_>) -> Result<json::Value<'t>, String> {
    json::parse(text).map_err(|refusal| thrown(Failure::from(refusal.within(document))))
}

/// Verifies an order and writes its page. With `prepared`, the same order with what the wallet contributed and its signatures.
#[wasm_bindgen(js_name = orderPage)]
pub fn order_page(
    request: &[u8],
    response: &[u8],
    record: Option<Box<[u8]>>,
    registry: &Registry,
    policy: &Policy,
    language: &str,
) -> Text {
    render(request, response, record.as_deref(), (&registry.0, &policy.0), language, None)
}

/// Writes the page of an order that is prepared.
#[wasm_bindgen(js_name = preparedPage)]
pub fn prepared_page(
    request: &[u8],
    response: &[u8],
    record: Option<Box<[u8]>>,
    registry: &Registry,
    policy: &Policy,
    language: &str,
    prepared: &UnsignedOrder,
) -> Text {
    render(request, response, record.as_deref(), (&registry.0, &policy.0), language, Some(prepared.get()?))
}

fn render(
    request: &[u8],
    response: &[u8],
    record: Option<&[u8]>,
    (registry, policy): (&countersign::Registry, &countersign::Policy),
    language: &str,
    prepared: Option<&countersign::Unsigned>,
) -> Text {
    let record = record.map(|record| parse(record, &At::RECORD)).transpose()?;
    let (request, response) = (parse(request, &At::REQUEST)?, parse(response, &At::RESPONSE)?);
    let catalogue = Catalogue::of(language).unwrap_or_else(Catalogue::english);
    let documents = Documents { request: &request, response: &response, record: record.as_ref() };
    let mut page = Page::new(documents, registry, policy).in_language(&catalogue);
    if let Some(order) = prepared {
        let other = |_| thrown(Failure::usage("/prepared", "the order of these documents, prepared with this registry and policy"));
        page = page.with_prepared(order).map_err(other)?;
    }
    let sentence = page.verdict().ok().map(|order| Sentence::new(&order.terms(), order.warnings()));
    let text = sentence.as_ref().map(|sentence| sentence.in_language(&catalogue));
    Ok(super::json(&Rendered { html: page.to_html(), sentence, text, refusal: page.verdict().err() }))
}
