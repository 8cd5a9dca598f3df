//! Strict JSON: every value is read once, borrowed where it can be, and remembers where it stands.
//!
//! Ordinary readers accept what must not be accepted here: duplicate keys (the last wins, or the first), numbers that
//! pass through a float, nesting without a bound. The tokens come from `jiter`; this module adds the rules and the
//! pointers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use jiter::{Jiter, JiterError, Peek};

use crate::code::Code;
use crate::refusal::Refusal;

mod node;
mod salvage;

pub use node::{At, Members, Node};
pub use salvage::salvage_id;

/// Largest text that is read, in bytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;
/// Most values that one text may hold: a transaction of 128 KiB written as one integer a byte fits several times.
pub const MAX_VALUES: usize = 500_000;

/// A JSON value that borrows from its text. Numbers keep their spelling, objects their order.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Value<'v> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as it was written.
    Number(&'v str),
    /// A string, unescaped.
    String(Cow<'v, str>),
    /// An array.
    Array(Vec<Self>),
    /// An object: no key twice.
    Object(Vec<(Cow<'v, str>, Self)>),
}

impl fmt::Debug for Value<'_> {
    /// Names the kind and size only: a value can hold a secret key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(_) => f.write_str("bool"),
            Self::Number(text) => write!(f, "number of {} characters", text.len()),
            Self::String(text) => write!(f, "string of {} bytes", text.len()),
            Self::Array(items) => write!(f, "array of {}", items.len()),
            Self::Object(members) => write!(f, "object of {}", members.len()),
        }
    }
}

/// Reads one JSON text.
///
/// # Errors
///
/// [`Code::JsonNotUtf8`], [`Code::JsonTooLarge`], [`Code::JsonTooDeep`], [`Code::JsonDuplicateKey`] (keys are compared
/// after unescaping) or [`Code::JsonSyntax`] with the position as `#start-end`.
pub fn parse(bytes: &[u8]) -> Result<Value<'_>, Refusal> {
    if bytes.len() > MAX_BYTES {
        return Err(Refusal::new(Code::JsonTooLarge, "").expected(format!("at most {MAX_BYTES} bytes")).got(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let start = error.valid_up_to();
        Refusal::new(Code::JsonNotUtf8, range(start, start.saturating_add(error.error_len().unwrap_or(1))))
    })?;
    let mut reader = Reader { text, jiter: Jiter::new(bytes), values: 0 };
    let peek = reader.jiter.peek().map_err(syntax)?;
    let value = reader.value(peek, MAX_DEPTH)?;
    reader.jiter.finish().map_err(syntax)?;
    Ok(value)
}

fn range(start: usize, end: usize) -> String {
    format!("#{start}-{end}")
}

fn syntax(error: JiterError) -> Refusal {
    Refusal::new(Code::JsonSyntax, range(error.index, error.index.saturating_add(1))).got(error.error_type)
}

struct Reader<'v> {
    text: &'v str,
    jiter: Jiter<'v>,
    values: usize,
}

impl<'v> Reader<'v> {
    fn here(&self) -> String {
        let index = self.jiter.current_index();
        range(index, index.saturating_add(1))
    }

    fn value(&mut self, peek: Peek, depth: usize) -> Result<Value<'v>, Refusal> {
        self.values = self.values.saturating_add(1);
        if self.values > MAX_VALUES {
            return Err(Refusal::new(Code::JsonTooLarge, self.here()).expected(format!("at most {MAX_VALUES} values")));
        }
        match peek {
            Peek::Null => self.jiter.known_null().map(|()| Value::Null).map_err(syntax),
            Peek::True | Peek::False => self.jiter.known_bool(peek).map(Value::Bool).map_err(syntax),
            Peek::String => {
                let from = self.jiter.current_index();
                let decoded = self.jiter.known_str().map_err(syntax)?;
                Ok(Value::String(borrow(self.text, from, decoded)))
            }
            Peek::Array | Peek::Object => {
                let Some(depth) = depth.checked_sub(1) else {
                    return Err(Refusal::new(Code::JsonTooDeep, self.here()).expected(format!("at most {MAX_DEPTH} levels")));
                };
                if peek == Peek::Array { self.array(depth) } else { self.object(depth) }
            }
            _ if peek.is_num() => {
                let from = self.jiter.current_index();
                self.jiter.known_number_bytes(peek).map_err(syntax)?;
                Ok(Value::Number(self.text.get(from..self.jiter.current_index()).unwrap_or_default()))
            }
            _ => Err(Refusal::new(Code::JsonSyntax, self.here())),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value<'v>, Refusal> {
        let mut items = Vec::new();
        let mut next = self.jiter.known_array().map_err(syntax)?;
        while let Some(peek) = next {
            items.push(self.value(peek, depth)?);
            next = self.jiter.array_step().map_err(syntax)?;
        }
        Ok(Value::Array(items))
    }

    fn object(&mut self, depth: usize) -> Result<Value<'v>, Refusal> {
        // Most objects of an answer have up to five members: room for eight spares a second allocation.
        let mut members: Vec<(Cow<'v, str>, Value<'v>)> = Vec::with_capacity(8);
        let mut seen: Option<HashSet<Cow<'v, str>>> = None;
        let mut from = self.jiter.current_index();
        let mut next = self.jiter.known_object().map_err(syntax)?.map(|key| borrow(self.text, from, key));
        while let Some(key) = next {
            // A short object is compared key by key; a long one would make that quadratic.
            let twice = if members.len() < 32 {
                members.iter().any(|(known, _)| *known == key)
            } else {
                !seen.get_or_insert_with(|| members.iter().map(|(known, _)| known.clone()).collect()).insert(key.clone())
            };
            if twice {
                return Err(Refusal::new(Code::JsonDuplicateKey, self.here()).got(key));
            }
            let peek = self.jiter.peek().map_err(syntax)?;
            let value = self.value(peek, depth)?;
            members.push((key, value));
            from = self.jiter.current_index();
            next = self.jiter.next_key().map_err(syntax)?.map(|key| borrow(self.text, from, key));
        }
        Ok(Value::Object(members))
    }
}

/// Borrows a decoded string from the text where it stands there without escapes. Between `from` and the opening quote
/// stand only a brace, a comma and white space.
fn borrow<'v>(text: &'v str, from: usize, decoded: &str) -> Cow<'v, str> {
    let plain = text.as_bytes().get(from..).and_then(|rest| {
        let start = rest.iter().position(|byte| *byte == b'"')?.checked_add(from)?.checked_add(1)?;
        text.get(start..start.checked_add(decoded.len())?)
    });
    match plain {
        Some(plain) if plain == decoded => Cow::Borrowed(plain),
        _ => Cow::Owned(decoded.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Code {
        parse(text.as_bytes()).expect_err(text).code()
    }

    #[test]
    fn keeps_numbers_as_written_and_borrows_strings() {
        let text = r#" {"a" : 115792089237316195423570985008687907853269984665640564039457584007913129639935, "b":[-0, 1.50, 1e3],"\u0063":"d\n"} "#;
        let Value::Object(members) = parse(text.as_bytes()).unwrap() else { panic!() };
        assert!(matches!(&members[0], (Cow::Borrowed("a"), Value::Number(n)) if n.len() == 78));
        assert!(matches!(&members[1].1, Value::Array(items) if items[0] == Value::Number("-0") && items[1] == Value::Number("1.50")));
        assert_eq!(members[2], (Cow::Borrowed("c"), Value::String(Cow::Borrowed("d\n"))));
    }

    #[test]
    fn refuses_duplicate_keys_after_unescaping() {
        assert_eq!(code(r#"{"a":1,"a":1}"#), Code::JsonDuplicateKey);
        assert_eq!(code(r#"{"result":1,"resu\u006ct":2}"#), Code::JsonDuplicateKey);
        assert_eq!(code(r#"{"x":[{"y":{"__proto__":1,"__proto__":2}}]}"#), Code::JsonDuplicateKey);
        let mut long: Vec<_> = (0..100).map(|i| format!("\"k{i}\":0")).collect();
        assert!(parse(format!("{{{}}}", long.join(",")).as_bytes()).is_ok());
        long.push("\"k3\":0".into());
        assert_eq!(code(&format!("{{{}}}", long.join(","))), Code::JsonDuplicateKey);
    }

    #[test]
    fn bounds_depth_and_count() {
        assert!(parse(format!("{}{}", "[".repeat(64), "]".repeat(64)).as_bytes()).is_ok());
        assert_eq!(code(&format!("{}{}", "[".repeat(65), "]".repeat(65))), Code::JsonTooDeep);
        assert_eq!(code(&"[".repeat(20_000)), Code::JsonTooDeep);
        assert_eq!(code(&format!("[{}0]", "0,".repeat(MAX_VALUES))), Code::JsonTooLarge);
    }

    #[test]
    fn refuses_what_is_not_json() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "nul",
            "NaN",
            "-Infinity",
            "01",
            "1.",
            "+1",
            ".5",
            "'a'",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"a\nb\"",
            "{} {}",
            "{}x",
            "\u{feff}{}",
            "{a:1}",
            "[1 2]",
            "\"\u{0}\"",
        ] {
            assert_eq!(code(text), Code::JsonSyntax, "{text:?}");
        }
        assert_eq!(parse(b"\"\xff\"").unwrap_err().code(), Code::JsonNotUtf8);
        assert_eq!(parse(b"\"\xff\"").unwrap_err().at(), "#1-2");
    }

    #[test]
    fn debug_shows_no_content() {
        let value = parse(br#"{"secret_key":"0123"}"#).unwrap();
        assert_eq!(format!("{value:?}"), "object of 1");
    }
}
