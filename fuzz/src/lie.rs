//! Makes answers that differ from the honest one.

use countersign::reader::{Answer, FailureKind, Request, RpcError};
use serde_json::{Value, json};

use crate::bytes::Bytes;

/// Returns an arbitrary answer.
pub fn arbitrary(request: &Request, bytes: &mut Bytes<'_>) -> Answer {
    let form = bytes.byte();
    match (form % 8, request) {
        (0, _) => {
            let code = *bytes.pick(&[0, 3, 20, 21, 24, 28, 29, 33, 40, -1, -5, -8, -28, -32_000, -32_009, -32_015, -32_601, i64::MIN]);
            let data = (form & 8 != 0).then(|| bytes.some().to_vec());
            Answer::Error(RpcError::new(code, &String::from_utf8_lossy(bytes.some()), data))
        }
        (1, _) => Answer::Failed(FailureKind::Status(u16::from(bytes.byte())).into()),
        (2, _) | (_, Request::JsonRpc { .. }) => Answer::result(bytes.some()),
        _ => {
            let grpc_status = (form & 8 != 0).then(|| String::from_utf8_lossy(bytes.some()).into_owned());
            let status = *bytes.pick(&[200, 200, 200, 404, 501, 500, 204, 302]);
            Answer::Http { status, body: bytes.some().into(), grpc_status }
        }
    }
}

/// Returns the honest answer with one change.
pub fn changed(truth: &Answer, bytes: &mut Bytes<'_>) -> Answer {
    match truth {
        Answer::Result(text) => Answer::result(changed_text(text, bytes)),
        Answer::Http { status, body, grpc_status } => match bytes.byte() % 16 {
            0 => Answer::Http { status: *bytes.pick(&[404, 500, 501, 201, 204, 0]), body: body.clone(), grpc_status: grpc_status.clone() },
            1 => {
                let status = *bytes.pick(&["0", "5", "3", "12", "", "00", "-1"]);
                Answer::Http { status: *status_of(truth), body: body.clone(), grpc_status: Some(status.to_owned()) }
            }
            _ => Answer::Http { status: *status, body: changed_text(body, bytes).into(), grpc_status: grpc_status.clone() },
        },
        Answer::Error(error) => match bytes.byte() % 3 {
            0 => Answer::Error(RpcError::new(i64::from(bytes.byte()) - 64, &error.message, error.data.clone())),
            1 => Answer::result(*bytes.pick(&[&b"null"[..], b"\"0x\"", b"[]", b"{}", b"0", b"\"\""])),
            _ => Answer::Error(RpcError::new(error.code, &error.message, Some(bytes.some().to_vec()))),
        },
        _ => arbitrary(&Request::json_rpc("any", "[]"), bytes),
    }
}

const fn status_of(answer: &Answer) -> &u16 {
    if let Answer::Http { status, .. } = answer { status } else { &200 }
}

/// Changes JSON, a gRPC-web message, or any other bytes.
fn changed_text(text: &[u8], bytes: &mut Bytes<'_>) -> Vec<u8> {
    let raw = bytes.byte() % 8 == 0;
    if !raw && let Ok(mut value) = serde_json::from_slice::<Value>(text) {
        change_json(&mut value, bytes);
        return value.to_string().into_bytes();
    }
    // A frame has a flag, a four-byte length and the message. The length is adapted to the change, because nothing
    // would read the message otherwise.
    if !raw
        && let [0, a, b, c, d, rest @ ..] = text
        && let Some((message, trailer)) = rest.split_at_checked(u32::from_be_bytes([*a, *b, *c, *d]) as usize)
    {
        let message = changed_bytes(message, bytes);
        return [&[0][..], &(message.len() as u32).to_be_bytes(), &message, trailer].concat();
    }
    changed_bytes(text, bytes)
}

fn changed_bytes(before: &[u8], bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut after = before.to_vec();
    let at = bytes.below(after.len());
    match bytes.byte() % 8 {
        0 => after.truncate(at),
        1 => drop(after.splice(at..at, bytes.some().iter().copied())),
        2 => drop(after.drain(at..(at + usize::from(bytes.byte())).min(before.len()))),
        3 => after.extend_from_slice(&before[at..]),
        4 => {
            let (new, end) = (bytes.some(), before.len());
            drop(after.splice(at..(at + new.len()).min(end), new.iter().copied()));
        }
        _ => {
            if let Some(byte) = after.get_mut(at) {
                *byte ^= bytes.byte().max(1);
            }
        }
    }
    after
}

/// Changes one value of a document.
fn change_json(root: &mut Value, bytes: &mut Bytes<'_>) {
    let mut places = Vec::new();
    list(root, String::new(), &mut places);
    let place = places.swap_remove(bytes.below(places.len()));
    let (parent, key) = place.rsplit_once('/').unwrap_or_default();
    let other = places.get(bytes.below(places.len())).and_then(|other| root.pointer(other)).cloned();
    let form = bytes.byte() % 10;
    if form < 2 {
        match root.pointer_mut(parent) {
            Some(Value::Object(members)) if form == 0 => drop(members.remove(&key.replace("~1", "/").replace("~0", "~"))),
            Some(Value::Array(items)) if !place.is_empty() => {
                let index = key.parse().unwrap_or_default();
                let item = items.remove(index);
                if form == 1 {
                    items.extend([item.clone(), item]);
                }
            }
            _ => *root = Value::Null,
        }
        return;
    }
    let Some(value) = root.pointer_mut(&place) else { return };
    *value = match (form, &*value) {
        (2, _) => other.unwrap_or_default(),
        (3, old) => json!([old]),
        (4, _) => {
            let whole = [
                json!(0),
                json!(1),
                json!(-1),
                json!(u64::MAX),
                json!(1e300),
                json!(""),
                json!("0x"),
                json!("0x0"),
                json!(true),
                json!([]),
                json!({}),
                Value::Null,
            ];
            bytes.pick(&whole).clone()
        }
        (5, _) => json!(bytes.number()),
        (6, _) => json!(format!("{:#x}", bytes.number())),
        (7, _) => json!(String::from_utf8_lossy(bytes.some())),
        (_, Value::Number(number)) => {
            let step = i64::from(bytes.byte()) - 128;
            number.as_i64().and_then(|number| number.checked_add(step)).map_or(Value::Null, Value::from)
        }
        // Replaces one character of the text, mostly a digit by a digit.
        (_, Value::String(text)) => {
            let mut text: Vec<char> = text.chars().collect();
            let at = bytes.below(text.len());
            let new = char::from(*bytes.pick(b"0123456789abcdef0123456789abcdefABCDEFGHJKLMNPQRSTUVWXYZghijkmnopqrstuvwxyz+/= \"\\xX-._"));
            match text.get_mut(at) {
                Some(character) if form == 8 => *character = new,
                _ => text.insert(at, new),
            }
            Value::String(text.into_iter().collect())
        }
        (_, old) => json!({"value": old}),
    };
}

/// Lists the JSON pointers of all values.
fn list(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                list(member, format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                list(item, format!("{place}/{index}"), places);
            }
        }
        _ => {}
    }
    places.push(place);
}
