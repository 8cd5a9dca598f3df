//! Lies of the service in its answer to a new order. Which bytes an answer has depends on the family of the source, so
//! each family has its own.

use serde_json::Value;

use super::{Act, Liar, Lie, Route};
use crate::http;

pub(crate) const PAYMENT: &str = "the whole payment";

/// Returns a lie that changes the answer.
pub(crate) const fn lie(name: &'static str, about: &'static str, at_stake: &'static str, route: Route, change: fn(&mut Value)) -> Lie {
    Lie { name, liar: Liar::Answer, about, at_stake, route, act: Act::Answer(change), conduct: None }
}

/// Replaces the value at a place by what `to` makes of it, if the answer has one there.
pub(crate) fn alter(answer: &mut Value, place: &str, to: impl FnOnce(&Value) -> Option<Value>) {
    if let Some(value) = answer.pointer_mut(place)
        && let Some(changed) = to(value)
    {
        *value = changed;
    }
}

/// Replaces the text at a place by what `to` makes of it, if the answer has one there.
pub(crate) fn edit(answer: &mut Value, place: &str, to: impl FnOnce(&str) -> Option<String>) {
    alter(answer, place, |value| to(value.as_str()?).map(Value::String));
}

/// Replaces the value at a place, if the answer has one there.
pub(crate) fn put(answer: &mut Value, place: &str, value: impl Into<Value>) {
    alter(answer, place, |old| (!old.is_null()).then(|| value.into()));
}

/// Adds a member that an honest answer does not have to an object, if the object exists.
pub(crate) fn add(answer: &mut Value, place: &str, name: &str, value: impl Into<Value>) {
    if let Some(object) = answer.pointer_mut(place) {
        http::put(object, name, value.into());
    }
}
