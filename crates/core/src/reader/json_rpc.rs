//! JSON-RPC 2.0 bodies: the only place where calls have ids.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Answer, Failure, FailureKind, Request, RpcError};
use crate::json::{self, Cursor, Value};
use crate::report::{Code, Refusal};

/// The maximum length in bytes of revert data that is kept.
const MAX_REVERT: usize = 4 * 1024;

/// Writes the body of an HTTP request with these calls. A single call is not a batch, because some nodes accept no batch of one.
///
/// Returns `None` if there is no request, or if one of them is not a JSON-RPC call.
#[must_use]
pub fn encode(calls: &[Request]) -> Option<String> {
    let mut body = String::new();
    for (id, call) in calls.iter().enumerate() {
        let Request::JsonRpc { method, params } = call else { return None };
        body.push(if id == 0 { '[' } else { ',' });
        body.push_str(r#"{"jsonrpc":"2.0","id":"#);
        body.push_str(&id.to_string());
        body.push_str(r#","method":""#);
        body.push_str(method);
        body.push_str(r#"","params":"#);
        body.push_str(params);
        body.push('}');
    }
    match calls.len() {
        0 => None,
        1 => Some(body.split_off(1)),
        _ => {
            body.push(']');
            Some(body)
        }
    }
}

/// A reply to one call, with the text of its parts.
#[derive(Deserialize)]
struct Parts<'b> {
    #[serde(borrow)]
    id: Option<&'b RawValue>,
    #[serde(borrow)]
    result: Option<&'b RawValue>,
    #[serde(borrow)]
    error: Option<&'b RawValue>,
}

/// Reads an array of at most this many replies, so that a longer one takes no memory.
struct AtMost(usize);

impl<'b> DeserializeSeed<'b> for AtMost {
    type Value = Vec<Parts<'b>>;

    fn deserialize<D: Deserializer<'b>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'b> Visitor<'b> for AtMost {
    type Value = Vec<Parts<'b>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} replies", self.0)
    }

    fn visit_seq<A: SeqAccess<'b>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut replies = Vec::new();
        while let Some(reply) = list.next_element()? {
            if replies.len() >= self.0 {
                return Err(A::Error::invalid_length(replies.len().saturating_add(1), &self));
            }
            replies.push(reply);
        }
        Ok(replies)
    }
}

/// Splits the body of an HTTP response into the answers to `calls` calls, in the order of the calls.
///
/// A node that does not accept a batch returns a single error without an id, which is the answer to every call.
///
/// # Errors
///
/// [`Code::JsonTooLarge`] or [`Code::JsonSyntax`] if the body is not JSON of this shape, [`Code::UnexpectedField`] for an id that was
/// not sent or appears twice, and [`Code::MissingField`] if a call has no reply.
pub fn decode(body: &[u8], calls: usize) -> Result<Vec<Answer>, Refusal> {
    if body.len() > json::MAX_BYTES {
        return Err(Refusal::new(Code::JsonTooLarge, "").with_actual(body.len()));
    }
    let syntax = |error: serde_json::Error| {
        Refusal::new(Code::JsonSyntax, "").with_reason(crate::report::text::escape_untrusted(&error.to_string()))
    };
    let is_batch = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let replies = if is_batch {
        let mut parser = serde_json::Deserializer::from_slice(body);
        let replies = AtMost(calls).deserialize(&mut parser).map_err(syntax)?;
        parser.end().map_err(syntax)?;
        replies
    } else {
        vec![serde_json::from_slice(body).map_err(syntax)?]
    };
    let mut answers: Vec<Option<Answer>> = vec![None; calls];
    for reply in replies {
        let error = present(reply.error).map(|error| read_error(error.get())).transpose()?;
        let Some(id) = present(reply.id) else {
            return match error {
                Some(error) => Ok(vec![Answer::Error(error); calls]),
                None => Err(Refusal::new(Code::MissingField, "/id")),
            };
        };
        let unexpected = || Refusal::new(Code::UnexpectedField, "/id").with_actual(id.get());
        let place = id.get().parse::<usize>().ok().and_then(|id| answers.get_mut(id)).ok_or_else(unexpected)?;
        if place.is_some() {
            return Err(unexpected());
        }
        *place = Some(match error {
            Some(error) => Answer::Error(error),
            None => Answer::Result(Arc::from(reply.result.map_or("null", RawValue::get).as_bytes())),
        });
    }
    answers.into_iter().collect::<Option<_>>().ok_or_else(|| Refusal::new(Code::MissingField, "/id").with_expected("a reply to each call"))
}

/// Returns the answers of a response with a status: those of [`decode`], or a failure for each call.
///
/// Bitcoin's RPC returns a failed call with a status other than 200 and the error as JSON.
#[must_use]
pub fn answers(status: u16, body: &[u8], calls: usize) -> Vec<Answer> {
    let failed = |failure: Failure| vec![Answer::Failed(failure); calls];
    match (status, decode(body, calls)) {
        (200, Ok(answers)) => answers,
        (_, Ok(answers)) if answers.iter().all(|answer| matches!(answer, Answer::Error(_))) => answers,
        (200, Err(refusal)) => failed(Failure::new(FailureKind::NotJsonRpc, &refusal.to_string())),
        _ => failed(FailureKind::Status(status).into()),
    }
}

fn present(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| value.get() != "null")
}

fn read_error(text: &str) -> Result<RpcError, Refusal> {
    let value = json::parse(text.as_bytes()).map_err(|refusal| refusal.with_prefix("/error"))?;
    let code = member(&value, "code").and_then(|code| if let Value::Number(text) = code { text.parse().ok() } else { None });
    let message = match (member(&value, "message"), &value) {
        (Some(Value::String(text)), _) | (None, Value::String(text)) => text.as_ref(),
        _ => "an error without a message",
    };
    let data = member(&value, "data");
    let message = match data.and_then(reason) {
        // Some reasons are the message in more detail.
        Some(reason) if reason.starts_with(message) => reason.to_owned(),
        Some(reason) => format!("{message}: {reason}"),
        None => message.to_owned(),
    };
    let data = data.and_then(|data| Cursor::root(data, "").hex_bytes(MAX_REVERT).ok());
    Ok(RpcError::new(code.unwrap_or_default(), &message, data))
}

/// Returns a member of an object; `None` if it is missing or null.
fn member<'v>(value: &'v Value<'v>, name: &str) -> Option<&'v Value<'v>> {
    let Value::Object(members) = value else { return None };
    members.iter().find(|(key, value)| key == name && *value != Value::Null).map(|(_, value)| value)
}

/// Returns why a call failed: a text, or the innermost level of an error of nested calls,
/// `{"execution_error": {.., "error": {.., "error": ".."}}}`. Hex is revert data, which does not say it in words.
fn reason<'v>(data: &'v Value<'v>) -> Option<&'v str> {
    if let Value::String(text) = data {
        return (!text.is_empty() && !text.starts_with("0x")).then(|| end_of_trace(text));
    }
    let mut inner = ["execution_error", "revert_error"].into_iter().find_map(|name| member(data, name))?;
    while let Some(error) = member(inner, "error") {
        inner = error;
    }
    match inner {
        Value::String(text) => Some(end_of_trace(text)),
        _ => None,
    }
}

/// Returns the last line of a stack trace that says why the call failed. Each line before it names a call, and together they are longer
/// than what is shown of a node's text.
#[must_use]
pub fn end_of_trace(text: &str) -> &str {
    let (trace, _) = text.split_once("Cairo traceback").unwrap_or((text, ""));
    // Some nodes add the panic data once more, as a list of felts.
    let mut lines = trace.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('['));
    lines.next_back().unwrap_or(text).trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls() -> Vec<Request> {
        vec![Request::json_rpc("a", "[]"), Request::json_rpc("b", r#"["0x1"]"#)]
    }

    fn result(text: &str) -> Answer {
        Answer::result(text.as_bytes())
    }

    #[test]
    fn calls_are_numbered_by_their_place() {
        let expected = r#"[{"jsonrpc":"2.0","id":0,"method":"a","params":[]},{"jsonrpc":"2.0","id":1,"method":"b","params":["0x1"]}]"#;
        assert_eq!(encode(&calls()).as_deref(), Some(expected));
        assert_eq!(encode(&calls()[..1]).as_deref(), Some(r#"{"jsonrpc":"2.0","id":0,"method":"a","params":[]}"#));
        assert_eq!(encode(&[]), None);
        assert_eq!(encode(&[Request::get("/x", super::super::Format::Json)]), None);
    }

    #[test]
    fn answers_are_put_in_the_order_of_the_calls() {
        let body = br#"[{"id":1,"jsonrpc":"2.0","result":{"x": [1, 2]}},{"id":0,"result":null}]"#;
        assert_eq!(decode(body, 2).unwrap(), [result("null"), result(r#"{"x": [1, 2]}"#)]);
        assert_eq!(decode(br#"{"id":0,"result":"0x1","error":null}"#, 1).unwrap(), [result("\"0x1\"")]);
    }

    #[test]
    fn a_single_error_without_an_id_answers_every_call() {
        let answers = decode(br#"{"id":null,"error":{"code":-32600,"message":"no batches"}}"#, 2).unwrap();
        assert_eq!(answers, vec![Answer::Error(RpcError::new(-32600, "no batches", None)); 2]);
    }

    #[test]
    fn replies_that_do_not_fit_the_calls_are_refused() {
        for (body, code) in [
            (&br#"[{"id":0,"result":1},{"id":0,"result":2}]"#[..], Code::UnexpectedField),
            (br#"[{"id":0,"result":1},{"id":2,"result":2}]"#, Code::UnexpectedField),
            (br#"[{"id":0,"result":1},{"id":"1","result":2}]"#, Code::UnexpectedField),
            (br#"[{"id":0,"result":1}]"#, Code::MissingField),
            (br#"[{"id":0,"result":1},{"result":2}]"#, Code::MissingField),
            (br#"[{"id":0,"result":1,"result":2}]"#, Code::JsonSyntax),
            (br#"[{"id":0,"result":1}"#, Code::JsonSyntax),
            (br#"[{"id":0,"result":1},{"id":1,"result":1},{"id":1,"result":1}]"#, Code::JsonSyntax),
            (br#"[{"id":0,"result":1},{"id":1,"result":1}] []"#, Code::JsonSyntax),
            (b"<html>", Code::JsonSyntax),
            (b"", Code::JsonSyntax),
        ] {
            assert_eq!(decode(body, 2).unwrap_err().code(), code, "{}", String::from_utf8_lossy(body));
        }
        let padded = |bytes: usize| [br#"{"id":0,"result":1}"#.as_slice(), &vec![b' '; bytes - 19]].concat();
        assert_eq!(decode(&padded(json::MAX_BYTES), 1).unwrap(), [result("1")]);
        assert_eq!(decode(&padded(json::MAX_BYTES + 1), 1).unwrap_err().code(), Code::JsonTooLarge);
        let too_many = decode(br#"[{"id":0,"result":1},{"id":1,"result":1}]"#, 1).unwrap_err();
        assert!(too_many.to_string().contains("at most 1 replies"), "{too_many}");
        let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
        assert!(decode(&deep, 1).is_err());
    }

    #[test]
    fn errors_say_why_a_call_failed() {
        let error = |text: &str| match decode(format!(r#"{{"id":0,"error":{text}}}"#).as_bytes(), 1).unwrap().remove(0) {
            Answer::Error(error) => error,
            other => panic!("{other:?}"),
        };
        let reverted = error(r#"{"code":3,"message":"execution reverted","data":"0x08c379a0"}"#);
        assert_eq!((reverted.code, reverted.data), (3, Some(vec![8, 0xc3, 0x79, 0xa0])));
        let nested = error(r#"{"code":40,"message":"Contract error","data":{"revert_error":{"error":{"error":"Calls:\nToo early"}}}}"#);
        assert_eq!(nested.message, "Contract error: Too early");
        assert_eq!(error(r#""busy""#).message, "busy");
        // A reason is not repeated, nor shown if it says nothing in words.
        for (data, message) in [
            (r#""reverted: no balance""#, "reverted: no balance"),
            (r#""no balance""#, "reverted: no balance"),
            (r#""""#, "reverted"),
            (r#""0x""#, "reverted"),
        ] {
            assert_eq!(error(&format!(r#"{{"code":3,"message":"reverted","data":{data}}}"#)).message, message);
        }
        assert_eq!(end_of_trace("Calls:\nToo early.\n\n[0x1, 0x2]\n"), "Too early");
    }

    #[test]
    fn a_status_other_than_200_carries_errors_only() {
        let body = br#"{"id":0,"result":null,"error":{"code":-5,"message":"No such transaction"}}"#;
        assert!(matches!(answers(500, body, 1).as_slice(), [Answer::Error(error)] if error.code == -5));
        let status = |status| Answer::Failed(FailureKind::Status(status).into());
        assert_eq!(answers(500, br#"{"id":0,"result":1}"#, 1), [status(500)]);
        assert_eq!(answers(429, b"slow down", 2), [status(429), status(429)]);
        assert_eq!(answers(200, br#"{"id":0,"result":1}"#, 1), [result("1")]);
        // A batch with one result and one error.
        let mixed = br#"[{"id":0,"result":1},{"id":1,"error":"no"}]"#;
        assert_eq!(answers(500, mixed, 2), [status(500), status(500)]);
        assert!(matches!(answers(200, b"<html>", 1).as_slice(), [Answer::Failed(Failure { kind: FailureKind::NotJsonRpc, .. })]));
    }
}
