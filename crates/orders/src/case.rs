//! The cases of the corpus as orders (`fixtures/corpus/case.schema.json`).

use std::borrow::Cow;
use std::sync::Arc;

use countersign::json::{self, Cursor};
use countersign::{CreateOrder, Family, Registry};
use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::artefact::Artefact;
use crate::{Order, Tampered};

/// A line of the corpus.
#[derive(Deserialize)]
pub(crate) struct Case<'a> {
    id: Cow<'a, str>,
    result: Cow<'a, str>,
    note: Cow<'a, str>,
    source: Option<Json>,
    base: Option<String>,
    changed: Option<String>,
    attack: Option<String>,
    loss: Option<String>,
    registry: Option<Cow<'a, str>>,
    policy: Option<Json>,
    expect: Expect,
    input: Cow<'a, str>,
}

/// What a case expects: artefacts, or the code and location of a refusal.
#[derive(Deserialize)]
struct Expect {
    artefacts: Option<serde_json::Map<String, Json>>,
    code: Option<String>,
    at: Option<String>,
}

/// The documents of a case, each with its own spelling.
#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    request: &'a RawValue,
    #[serde(borrow)]
    response: &'a RawValue,
    #[serde(borrow)]
    order: Option<&'a RawValue>,
    #[serde(borrow)]
    wallet: &'a RawValue,
}

/// The registries of the orders, parsed once.
pub(crate) struct Registries {
    common: Arc<Registry>,
    audited: Arc<Registry>,
}

impl Registries {
    pub(crate) fn parse() -> Option<Self> {
        let parse = |text: &str| text.parse().ok().map(Arc::new);
        let (common, audited) = (include_str!("../corpus/registry.json"), include_str!("../corpus/solana.audited_2025_11.json"));
        Some(Self { common: parse(common)?, audited: parse(audited)? })
    }

    /// Returns the registry of a case; `None` for one that only a tampered case has.
    fn of(&self, case: &Case<'_>) -> Option<Arc<Registry>> {
        match case.registry.as_deref() {
            None => Some(self.common.clone()),
            Some("registries/solana.audited_2025_11.json") => Some(self.audited.clone()),
            Some(_) => None,
        }
    }
}

/// Reads the cases of a file.
pub(crate) fn cases(lines: &str) -> impl Iterator<Item = Case<'_>> {
    lines.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// Returns the honest order of a case; `None` if the case is another one, or cannot be read.
pub(crate) fn order(family: Family, case: &Case<'_>, registries: &Registries) -> Option<Order> {
    let artefacts = case.expect.artefacts.as_ref()?;
    let artefacts = artefacts.iter().filter_map(|(name, value)| Artefact::read(family, name, value)).collect();
    let source = match case.source.as_ref()? {
        Json::String(source) => source,
        sources => sources.get("artefacts")?.as_str()?,
    };
    Some(Order { artefacts, source: source.to_owned(), must_sign: case.result == "valid", ..documents(family, case, registries)? })
}

/// Returns the tampered order of a case; `None` if the case is another one, or cannot be read.
pub(crate) fn tampered(family: Family, case: &Case<'_>, registries: &Registries) -> Option<Tampered> {
    let changed = case.changed.clone().filter(|changed| ["response", "record"].contains(&changed.as_str()))?;
    if case.result != "invalid" || case.policy.is_some() {
        return None;
    }
    // Syntax errors of the corpus are located in the line, which nobody has here.
    let location = case.expect.at.as_ref().map(|at| match at.strip_prefix('#') {
        Some(_) => format!("/{}", if changed == "record" { "order" } else { "response" }),
        None => at.clone(),
    });
    Some(Tampered {
        order: documents(family, case, registries)?,
        base: case.base.clone()?,
        changed,
        attack: case.attack.clone()?,
        loss: case.loss.clone()?,
        code: case.expect.code.clone()?,
        location: location?,
    })
}

/// Returns what the wallet and the service have written.
fn documents(family: Family, case: &Case<'_>, registries: &Registries) -> Option<Order> {
    let input: Input<'_> = serde_json::from_str(&case.input).ok()?;
    let wallet = json::parse(input.wallet.get().as_bytes()).ok()?;
    let wallet = Cursor::root(&wallet, "/wallet");
    let members = wallet.object().ok()?;
    Some(Order {
        id: case.id.clone().into_owned(),
        family,
        note: case.note.clone().into_owned(),
        source: String::new(),
        must_sign: false,
        request: CreateOrder::from_json(input.request.get().as_bytes()).ok()?,
        request_json: input.request.get().to_owned(),
        response: input.response.get().to_owned(),
        record: input.order.map(|record| record.get().to_owned()),
        registry: registries.of(case)?,
        context: countersign_json::read_context(family, wallet).ok()?,
        key: members.get("secret_key").map(|key| key.secret().map(str::to_owned)).transpose().ok()?,
        artefacts: Vec::new(),
    })
}
