//! An endpoint that lies in a component: of an answer that is otherwise true, one value is 0, 1, the maximum, nothing, or that of another
//! chain. Or instead of the answer comes a rate limit, an error or nothing.

use countersign_client::countersign::Leg;
use countersign_client::countersign::reader::{Answer, FailureKind, Request, RpcError};
use countersign_testkit::chain::sui::proto;
use serde_json::{Value, json};

use super::kinds::base64_of::{decode, encode};
use super::plan::{Bad, Dice};
use super::{State, World, place_of};

/// How long a reading may take. A place in the list does not begin to lie while a reading may contain a lie of the one before it.
const READING: u64 = 31;
/// The most values that are remembered of a chain.
const POOL: usize = 300;

/// The liar on one side, and what it has seen.
#[derive(Debug, Clone)]
pub struct Liar {
    dice: Dice,
    seed: u64,
    stage: u64,
    place: usize,
    /// When another place is drawn.
    moves_at: Option<u64>,
    honest_until: u64,
    /// Values of the leg's chain.
    pool: Vec<Value>,
}

/// The replacement of a value.
#[derive(Debug, Clone, Copy)]
enum Change {
    Zero,
    One,
    Max,
    Foreign,
    Nothing,
}

const CHANGES: [(Change, &str); 5] = [
    (Change::Zero, "lie: zero"),
    (Change::One, "lie: one"),
    (Change::Max, "lie: maximum"),
    (Change::Foreign, "lie: of another chain"),
    (Change::Nothing, "lie: no value"),
];

impl Liar {
    pub fn new(seed: u64, leg: u64) -> Self {
        let mut dice = Dice(seed ^ (0x11a7 + leg));
        let (seed, place) = (dice.next(), dice.below(3) as usize);
        Self { dice, seed, stage: 0, place, moves_at: None, honest_until: 0, pool: Vec::new() }
    }

    /// Returns the place of the endpoint that lies now, if one does. At every stage another one may begin, some time after the stage did.
    fn place(&mut self, stage: u64, now: u64) -> Option<usize> {
        if stage != self.stage {
            self.stage = stage;
            self.moves_at = Some(now + self.dice.below(600));
        }
        if self.moves_at.is_some_and(|at| at <= now) {
            let place = self.dice.below(3) as usize;
            if place != self.place {
                self.honest_until = now + READING;
            }
            (self.place, self.moves_at) = (place, None);
        }
        (self.honest_until <= now).then_some(self.place)
    }

    fn remember(&mut self, value: &Value) {
        if self.pool.len() < POOL {
            self.pool.push(value.clone());
        } else {
            let place = self.dice.below(POOL as u64) as usize;
            self.pool[place] = value.clone();
        }
    }
}

impl World {
    /// Returns the stage of the swap, which decides where and how a liar lies.
    const fn stage(state: &State) -> u64 {
        match state {
            _ if state.outcome.is_some() => 6,
            _ if state.secret_known.is_some() => 5,
            _ if state.was_final => 4,
            _ if state.destination.funded.is_some() => 3,
            _ if state.source.funded.is_some() => 2,
            _ => state.has_left as u64,
        }
    }

    /// Returns whether an endpoint lies in components now.
    pub fn lies(&self, leg: Leg, place: usize) -> bool {
        let (now, mut state) = (self.time(), self.now());
        let stage = Self::stage(&state);
        state.liars[place_of(leg)].place(stage, now) == Some(place)
    }

    /// Changes an endpoint's answer according to the kind of lie.
    pub fn distort(&self, leg: Leg, bad: Bad, requests: &[Request], answers: Vec<Answer>) -> Vec<Answer> {
        let Bad::Components { is_steady } = bad else { return answers };
        let mut state = self.now();
        let (at, stage) = (place_of(leg), Self::stage(&state));
        let round = if is_steady { 0 } else { state.liars[at].dice.next() };
        let seed = state.liars[at].seed ^ stage.wrapping_mul(0x9e37_79b9) ^ round;
        let mut changed = Vec::with_capacity(answers.len());
        for ((index, request), answer) in (0..).zip(requests).zip(answers) {
            let mut dice = Dice(seed ^ name(request).wrapping_add(index));
            dice.next();
            changed.push(if dice.is(40) { change(&mut state, leg, &mut dice, answer) } else { answer });
        }
        changed
    }
}

/// Returns a number for what is asked, without its parameters.
fn name(request: &Request) -> u64 {
    let text = match request {
        Request::JsonRpc { method, .. } => method,
        Request::Get { path, .. } | Request::Post { path, .. } => path.trim_start_matches('/').split('/').next().unwrap_or_default(),
        _ => "",
    };
    text.bytes().fold(0xcbf2_9ce4, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn change(state: &mut State, leg: Leg, dice: &mut Dice, answer: Answer) -> Answer {
    let mut count = |kind: &'static str| *state.counts.entry(kind).or_default() += 1;
    match dice.below(12) {
        0 => {
            count("lie: rate limit");
            return match answer {
                Answer::Http { .. } => Answer::http(429, *b"too many requests"),
                _ => Answer::Error(RpcError::new(-32_005, "rate limit exceeded", None)),
            };
        }
        1 => {
            count("lie: error");
            return match answer {
                Answer::Http { .. } => Answer::http(500, *b"internal error"),
                _ if dice.is(50) => Answer::Error(RpcError::new(3, "execution reverted", None)),
                _ => Answer::Failed(FailureKind::Status(500).into()),
            };
        }
        2 => {
            count("lie: nothing");
            return match answer {
                Answer::Http { .. } if dice.is(50) => Answer::http(404, *b"not found"),
                Answer::Http { .. } => Answer::http(200, *b""),
                _ => Answer::result(*b"null"),
            };
        }
        _ => {}
    }
    let (how, kind) = dice.pick(&CHANGES);
    count(kind);
    let foreign = state.liars[1 - place_of(leg)].pool.clone();
    let own = &mut state.liars[place_of(leg)];
    match answer {
        Answer::Result(text) => match serde_json::from_slice(&text) {
            Ok(value) => Answer::result(changed(own, &foreign, dice, how, value).to_string().into_bytes()),
            Err(_) => Answer::Result(text),
        },
        Answer::Http { status: 200, body, grpc_status } => {
            let body = match serde_json::from_slice::<Value>(&body) {
                Ok(value) => changed(own, &foreign, dice, how, value).to_string().into_bytes(),
                Err(_) => match framed(&body) {
                    Some((message, rest)) => [proto::frame(0, &message_with(message, dice, how, 0)), rest.to_vec()].concat(),
                    None => text_with(&body, dice, how),
                },
            };
            Answer::Http { status: 200, body: body.into(), grpc_status }
        }
        other => other,
    }
}

/// Changes one value of a JSON text.
fn changed(own: &mut Liar, foreign: &[Value], dice: &mut Dice, how: Change, mut value: Value) -> Value {
    let mut paths = Vec::new();
    leaves(&value, &mut String::new(), &mut paths);
    let path = if paths.is_empty() { String::new() } else { paths.swap_remove(dice.below(paths.len() as u64) as usize) };
    let old = value.pointer(&path).cloned().unwrap_or_default();
    own.remember(&old);
    let alike = |other: &&Value| match (&old, other) {
        (Value::String(old), Value::String(other)) => old.len() == other.len() && old != other,
        _ => std::mem::discriminant(&old) == std::mem::discriminant(other) && old != **other,
    };
    let foreign: Vec<_> = foreign.iter().filter(alike).chain(own.pool.iter().filter(alike)).collect();
    let new = match (how, foreign.is_empty()) {
        (Change::Foreign, false) => dice.pick(&foreign).clone(),
        _ => scalar(&old, dice, how),
    };
    // Now and then the value is not there at all.
    if matches!(how, Change::Nothing)
        && let Some((parent, key)) = path.rsplit_once('/')
        && let Some(Value::Object(members)) = value.pointer_mut(parent)
    {
        members.remove(key);
    } else if let Some(place) = value.pointer_mut(&path) {
        *place = new;
    }
    value
}

fn leaves(value: &Value, path: &mut String, all: &mut Vec<String>) {
    let length = path.len();
    let mut visit = |key: &str, value: &Value| {
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        leaves(value, path, all);
        path.truncate(length);
    };
    match value {
        Value::Object(members) if !members.is_empty() => members.iter().for_each(|(key, value)| visit(key, value)),
        Value::Array(list) if !list.is_empty() => list.iter().enumerate().for_each(|(key, value)| visit(&key.to_string(), value)),
        _ => all.push(path.clone()),
    }
}

/// Returns the changed value, in its own format.
fn scalar(old: &Value, dice: &mut Dice, how: Change) -> Value {
    match (old, how) {
        (_, Change::Nothing) => json!(null),
        (Value::Bool(old), _) => json!(!old),
        (Value::Number(_) | Value::Null, Change::Zero) => json!(0),
        (Value::Number(_) | Value::Null, Change::One) => json!(1),
        (Value::Number(_), Change::Max) if dice.is(50) => json!(u32::MAX),
        (Value::Number(old), Change::Foreign) => json!(old.as_u64().unwrap_or_default() ^ 1),
        (Value::Number(_) | Value::Null, _) => json!(u64::MAX),
        (Value::String(text), how) => json!(string(text, dice, how)),
        _ => json!([]),
    }
}

fn string(text: &str, dice: &mut Dice, how: Change) -> String {
    let (prefix, digits) = text.strip_prefix("0x").map_or(("", text), |digits| ("0x", digits));
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let filled = |length: usize| match how {
        Change::Zero => "0".repeat(length),
        Change::One => format!("{:0>length$}", "1"),
        _ => "f".repeat(length),
    };
    match digits.len() {
        // A number of any length.
        1..=16 if prefix == "0x" && is_hex => match how {
            Change::Zero => "0x0".to_owned(),
            Change::One => "0x1".to_owned(),
            _ => "0xffffffffffffffff".to_owned(),
        },
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => match how {
            Change::Zero => "0".to_owned(),
            Change::One => "1".to_owned(),
            _ => u64::MAX.to_string(),
        },
        // One word of several, as of an order.
        length if is_hex && length > 64 && length % 64 == 0 => {
            let at = 64 * dice.below(length as u64 / 64) as usize;
            format!("{prefix}{}{}{}", &digits[..at], filled(64), &digits[at + 64..])
        }
        length if is_hex => format!("{prefix}{}", filled(length)),
        length if length % 4 == 0 && length > 40 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)) => {
            encode(&text_with(&decode(text), dice, how))
        }
        _ => match how {
            Change::Zero => String::new(),
            Change::One => "1".to_owned(),
            _ => format!("{text}{text}"),
        },
    }
}

/// Overwrites a number in some bytes.
fn text_with(bytes: &[u8], dice: &mut Dice, how: Change) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() < 8 || matches!(how, Change::Nothing) {
        return Vec::new();
    }
    let at = 8 * dice.below(bytes.len() as u64 / 8) as usize;
    let number = match how {
        Change::Zero => 0,
        Change::One => 1,
        Change::Max => u64::MAX,
        _ => dice.next(),
    };
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Splits the body of a gRPC-web answer into its message and the rest.
fn framed(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = body.split_first_chunk::<5>()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    (head[0] == 0 && !rest.is_empty()).then(|| rest.split_at_checked(length)).flatten()
}

/// Changes one field of a message, or of a message in it.
fn message_with(message: &[u8], dice: &mut Dice, how: Change, depth: u32) -> Vec<u8> {
    let Some(fields) = fields(message) else { return text_with(message, dice, how) };
    if fields.is_empty() {
        return Vec::new();
    }
    let chosen = dice.below(fields.len() as u64) as usize;
    let mut out = proto::Message::default();
    for (place, (field, value)) in fields.into_iter().enumerate() {
        let is_chosen = place == chosen;
        out = match value {
            _ if is_chosen && matches!(how, Change::Nothing) => out,
            Field::Number(number) if is_chosen => out.number(
                field,
                match how {
                    Change::Zero => 0,
                    Change::One => 1,
                    Change::Max => u64::MAX,
                    _ => number ^ 1,
                },
            ),
            Field::Bytes(bytes) if is_chosen => {
                let is_message = depth < 8 && self::fields(bytes).is_some_and(|inner| !inner.is_empty());
                let new = match std::str::from_utf8(bytes) {
                    Ok(text) if !is_message => string(text, dice, how).into_bytes(),
                    _ if is_message => message_with(bytes, dice, how, depth + 1),
                    _ => text_with(bytes, dice, how),
                };
                out.bytes(field, &new)
            }
            Field::Number(number) => out.number(field, number),
            Field::Bytes(bytes) => out.bytes(field, bytes),
        };
    }
    out.0
}

enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// Returns the fields of a message; `None` if the bytes are not one.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Field::Bytes(value)
            }
            _ => return None,
        };
        if tag >> 3 == 0 {
            return None;
        }
        all.push((tag >> 3, value));
    }
    Some(all)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
