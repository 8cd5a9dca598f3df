//! The documents of fixtures, as `countersign_json::objects` takes them.

use std::collections::BTreeMap;
use std::fs;

use countersign::Registry;
use countersign_json::objects::{self, Documents};
use countersign_testkit::project;
use serde_json::Value;
use serde_json::value::RawValue;

/// A case with its members as they are spelled, because parsing would change some numbers.
pub(crate) struct Case(BTreeMap<String, Box<RawValue>>);

impl Case {
    pub(crate) fn text(&self, member: &str) -> &[u8] {
        self.0.get(member).map_or(b"null", |value| value.get().as_bytes())
    }

    pub(crate) fn value(&self, member: &str) -> Value {
        serde_json::from_slice(self.text(member)).unwrap()
    }

    pub(crate) fn documents(&self) -> Documents<'_> {
        let record = self.text("order");
        Documents::new(self.text("request"), self.text("response")).with_record((record != b"null").then_some(record))
    }
}

pub(crate) fn fixtures(family: &str) -> Vec<Case> {
    let text = fs::read_to_string(project().join(format!("fixtures/accept/{family}.jsonl"))).unwrap();
    text.lines().map(|line| Case(serde_json::from_str(line).unwrap())).collect()
}

pub(crate) fn registry() -> Registry {
    objects::registry(&fs::read(project().join("fixtures/registry.json")).unwrap()).unwrap()
}
