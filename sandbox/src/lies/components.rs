//! Lies of one of three endpoints about a single component of a transaction, or about block times. The other two
//! endpoints are honest.

use serde_json::{Value, json};

use super::{Act, EndpointLie, Liar, Lie, Route};
use crate::http::{Reply, Request};

/// A part of an endpoint's answer, and how it is changed.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// A JSON-RPC method, or the end of a path.
    method: &'static str,
    /// The path to it from the result, for example `/reward/*/*`. `*` matches each item, and `key=value` each item
    /// whose member `key` is `value`.
    pub(crate) place: &'static str,
    pub(crate) change: Change,
}

/// How a number or a text is changed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    /// Multiplied by this.
    Times(u32),
    /// Divided by this.
    Part(u32),
    /// Increased by this.
    Plus(u32),
    /// Decreased by this.
    Less(u32),
    /// Replaced by this.
    Is(u32),
    /// The negation of a truth value, or another hash of the same length.
    Other,
    /// Replaced by what a function returns for the call, if it returns something.
    By(fn(&Value, &mut Ask<'_>) -> Option<Value>),
}

/// Asks the node.
pub(crate) type Ask<'a> = dyn FnMut(&Value) -> Option<Value> + 'a;

/// How fast the blocks of a chain seem to come, judging by their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// All blocks have the same time.
    AtOnce,
    /// Ten times the true speed.
    Faster,
    /// A tenth of the true speed.
    Slower,
}

impl Pace {
    /// Returns the false form of a time in seconds or milliseconds since 1970.
    pub(super) fn told(self, time: u64, now_millis: u64) -> u64 {
        // Seconds have ten digits, milliseconds thirteen.
        let now = if time < 100_000_000_000 { now_millis / 1_000 } else { now_millis };
        let ago = now.saturating_sub(time);
        now.saturating_sub(match self {
            Self::AtOnce => 0,
            Self::Faster => ago / 10,
            Self::Slower => ago.saturating_mul(10),
        })
    }
}

impl Change {
    pub(crate) fn of(self, number: u128) -> u128 {
        match self {
            Self::Times(times) => number.saturating_mul(times.into()),
            Self::Part(parts) => number.checked_div(parts.into()).unwrap_or_default(),
            Self::Plus(more) => number.saturating_add(more.into()),
            Self::Less(less) => number.saturating_sub(less.into()),
            Self::Is(other) => other.into(),
            Self::Other | Self::By(_) => number,
        }
    }

    fn of_float(self, number: f64) -> f64 {
        match self {
            Self::Times(times) => number * f64::from(times),
            Self::Part(parts) => number / f64::from(parts),
            Self::Is(other) => f64::from(other),
            _ => number,
        }
    }

    /// Changes a truth value, a hash, or a number in any format.
    fn apply(self, value: &mut Value) {
        *value = match &*value {
            Value::Bool(truth) => json!(*truth ^ matches!(self, Self::Other)),
            Value::String(text) if matches!(self, Self::Other) => json!(other_hash(text)),
            Value::String(text) => match (text.strip_prefix("0x").map(|digits| u128::from_str_radix(digits, 16)), text.parse()) {
                (Some(Ok(number)), _) => json!(format!("{:#x}", self.of(number))),
                (None, Ok(number)) => json!(self.of(number).to_string()),
                _ => return,
            },
            Value::Number(number) => match (number.as_u64(), number.as_f64()) {
                (Some(number), _) => json!(u64::try_from(self.of(number.into())).unwrap_or(u64::MAX)),
                (None, Some(number)) => json!(self.of_float(number)),
                _ => return,
            },
            _ => return,
        };
    }
}

/// Returns a text with different digits in its middle.
fn other_hash(text: &str) -> String {
    let middle = text.len() / 2..(text.len() / 2).saturating_add(4);
    text.char_indices().map(|(index, digit)| if middle.contains(&index) { if digit == '5' { '7' } else { '5' } } else { digit }).collect()
}

/// Changes the values at a place.
fn visit(value: &mut Value, place: &str, change: &mut dyn FnMut(&mut Value)) {
    let Some(rest) = place.strip_prefix('/') else { return change(value) };
    let (step, rest) = rest.find('/').map_or((rest, ""), |end| rest.split_at(end));
    match (value, step.split_once('=')) {
        (Value::Array(items), Some((key, wanted))) => {
            let is_wanted = |item: &&mut Value| item.get(key).and_then(Value::as_str) == Some(wanted);
            items.iter_mut().filter(is_wanted).for_each(|item| visit(item, rest, change));
        }
        (Value::Array(items), None) if step != "*" => {
            if let Some(item) = step.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                visit(item, rest, change);
            }
        }
        (Value::Array(items), None) => items.iter_mut().for_each(|item| visit(item, rest, change)),
        (Value::Object(members), None) if step == "*" => members.values_mut().for_each(|member| visit(member, rest, change)),
        (Value::Object(members), None) => {
            if let Some(member) = members.get_mut(step) {
                visit(member, rest, change);
            }
        }
        _ => {}
    }
}

/// Returns the answers in a JSON-RPC body: several for a batch.
pub(crate) fn answers(body: &mut Value) -> Vec<&mut Value> {
    match body {
        Value::Array(answers) => answers.iter_mut().collect(),
        one => vec![one],
    }
}

/// Changes results in a JSON-RPC body. `change` gets each call and its result.
pub(crate) fn each_result(request: &Request, reply: Reply, change: &mut dyn FnMut(&Value, &mut Value)) -> Reply {
    let (Ok(asked), Ok(mut answered)) = (serde_json::from_slice::<Value>(&request.body), serde_json::from_slice::<Value>(&reply.body))
    else {
        return reply;
    };
    let one = std::slice::from_ref(&asked);
    let calls = asked.as_array().map_or(one, Vec::as_slice);
    for answer in answers(&mut answered) {
        let call = calls.iter().find(|call| call.get("id") == answer.get("id"));
        if let (Some(call), Some(result)) = (call, answer.get_mut("result")) {
            change(call, result);
        }
    }
    Reply { body: answered.to_string().into_bytes(), ..reply }
}

impl Component {
    /// Returns whether a request is a call of the component's path, on a node without JSON-RPC.
    pub(crate) fn is_asked(&self, request: &Request) -> bool {
        self.method.starts_with('/') && request.path.ends_with(self.method)
    }

    /// Changes the component in a reply whose content is JSON.
    pub(super) fn tell(self, request: &Request, mut reply: Reply, answer: &dyn Fn(&Request) -> Reply) -> Reply {
        if self.is_asked(request) {
            if let Ok(mut value) = serde_json::from_slice::<Value>(&reply.body) {
                visit(&mut value, self.place, &mut |found| self.change.apply(found));
                reply.body = value.to_string().into_bytes();
            }
            return reply;
        }
        let mut ask = |call: &Value| {
            let reply = answer(&Request { body: call.to_string().into_bytes(), ..request.clone() });
            serde_json::from_slice(&reply.body).ok()
        };
        each_result(request, reply, &mut |call, result| {
            if call.get("method").and_then(Value::as_str) == Some(self.method) {
                let other = if let Change::By(function) = self.change { function(call, &mut ask) } else { None };
                visit(result, self.place, &mut |found| match &other {
                    Some(other) => *found = other.clone(),
                    None => self.change.apply(found),
                });
            }
        })
    }
}

/// The members that hold times in the answers of the families' nodes.
const TIMES: [&str; 5] = ["timestamp", "mediantime", "block_time", "blockTime", "block_timestamp"];

/// Returns a reply with changed times, if its content is JSON.
pub(crate) fn with_times(reply: Reply, told: &dyn Fn(u64) -> u64) -> Reply {
    let Ok(mut value) = serde_json::from_slice::<Value>(&reply.body) else { return reply };
    if !value.is_object() && !value.is_array() {
        return reply;
    }
    each_time(&mut value, told);
    Reply { body: value.to_string().into_bytes(), ..reply }
}

fn each_time(value: &mut Value, told: &dyn Fn(u64) -> u64) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_time(item, told)),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let hex = member.as_str().and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
                match (TIMES.contains(&name.as_str()), member.as_u64(), hex) {
                    (true, Some(time), _) => *member = json!(told(time)),
                    (true, None, Some(time)) => *member = json!(format!("{:#x}", told(time))),
                    _ => each_time(member, told),
                }
            }
        }
        _ => {}
    }
}

pub(crate) const TOO_MUCH: &str = "the fees, or the swap, if they are more than the user has";
pub(crate) const TOO_LITTLE: &str = "the whole payment: the secret goes out in a transaction that nobody mines";
pub(crate) const NOTHING: &str = "the swap, if nothing can be sent";
const TIMELOCKS: &str = "the whole payment: the timelocks are over sooner or later than it seems";

/// Returns a component.
pub(crate) const fn of(method: &'static str, place: &'static str, change: Change) -> Component {
    Component { method, place, change }
}

/// Returns a lie about components.
pub(crate) const fn lie(
    name: &'static str,
    about: &'static str,
    at_stake: &'static str,
    route: Route,
    components: &'static [Component],
) -> Lie {
    Lie { name, liar: Liar::Endpoint, about, at_stake, route, act: Act::Endpoint(EndpointLie::Component(components)), conduct: None }
}

/// Returns a lie about block times.
pub(crate) const fn paced(name: &'static str, about: &'static str, route: Route, pace: Pace) -> Lie {
    Lie { name, liar: Liar::Endpoint, about, at_stake: TIMELOCKS, route, act: Act::Endpoint(EndpointLie::Pace(pace)), conduct: None }
}
