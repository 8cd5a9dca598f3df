//! Strict JSON: every value is read once, borrowed where it can be, and remembers where it is.
//!
//! Ordinary parsers accept what must not be accepted here: duplicate keys (the last wins, or the first), numbers that pass
//! through a float, nesting without a bound. The tokens come from `jiter`; this module adds the rules of
//! `docs/spec/batch.md#json` and the locations.
//!
//! ```
//! use countersign::U256;
//! use countersign::json::{self, Cursor};
//!
//! # fn main() -> Result<(), countersign::Refusal> {
//! let value = json::parse(br#"{"amount": "5000"}"#)?;
//! let root = Cursor::root(&value, "");
//! let members = root.object()?;
//! assert_eq!(members.need("amount")?.decimal()?, U256::from(5_000));
//! assert_eq!(members.need("owner").unwrap_err().location(), "/owner");
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use jiter::{Jiter, JiterError, Peek};

use crate::report::text::escape_untrusted;
use crate::report::{Code, Origin, Refusal};

mod cursor;
pub mod number;
mod salvage;

pub use cursor::{At, Cursor, Members};
pub use salvage::salvage_id;

/// Maximum length of a text, in bytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Maximum depth of nested arrays and objects.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of values in one text. A transaction of 128 KiB, written as one integer per byte, fits several times.
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
    Array(Box<[Self]>),
    /// A non-empty array of integers 0 to 255, each written canonically. It stores one byte per item instead of a value.
    Bytes(Box<[u8]>),
    /// An object without duplicate keys.
    Object(Box<[Member<'v>]>),
}

/// A key, unescaped, and its value.
pub type Member<'v> = (Cow<'v, str>, Value<'v>);

impl fmt::Debug for Value<'_> {
    /// Writes only the kind and the size, because a value can hold a secret key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(_) => f.write_str("bool"),
            Self::Number(text) => write!(f, "number of {} characters", text.len()),
            Self::String(text) => write!(f, "string of {} bytes", text.len()),
            Self::Array(items) => write!(f, "array of {}", items.len()),
            Self::Bytes(items) => write!(f, "array of {}", items.len()),
            Self::Object(members) => write!(f, "object of {}", members.len()),
        }
    }
}

/// Parses one JSON text.
///
/// # Errors
///
/// [`Code::JsonTooLarge`] above [`MAX_BYTES`] or [`MAX_VALUES`], [`Code::JsonNotUtf8`], [`Code::JsonTooDeep`],
/// [`Code::JsonDuplicateKey`] (keys are compared after unescaping) or [`Code::JsonSyntax`]. The location of a duplicate key is its
/// pointer, which is the same in a document and in a line that contains the document. Every other location is a byte range of the
/// text, `#start-end`; it is empty for a text of too many bytes.
pub fn parse(bytes: &[u8]) -> Result<Value<'_>, Refusal> {
    parse_with(bytes, &[])
}

/// Parses a case: an object whose members `request`, `response` and `order` are documents of their own (`docs/spec/batch.md#case`). A
/// duplicate key in one of them is a fault of that document.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_case(bytes: &[u8]) -> Result<Value<'_>, Refusal> {
    parse_with(bytes, &[("request", Origin::Request), ("response", Origin::Service), ("order", Origin::Service)])
}

fn parse_with<'v>(bytes: &'v [u8], documents: &[(&str, Origin)]) -> Result<Value<'v>, Refusal> {
    if bytes.len() > MAX_BYTES {
        return Err(Refusal::new(Code::JsonTooLarge, "").with_expected(format!("at most {MAX_BYTES} bytes")).with_actual(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let start = error.valid_up_to();
        Refusal::new(Code::JsonNotUtf8, range(start, start.saturating_add(error.error_len().unwrap_or(1))))
    })?;
    let mut reader = Reader {
        text,
        documents,
        jiter: Jiter::new(bytes),
        skipped: 0,
        values: 0,
        items: Vec::new(),
        members: Vec::with_capacity(16),
        bytes: Vec::new(),
    };
    let peek = reader.step(Jiter::peek)?;
    let value = reader.value(peek, MAX_DEPTH)?;
    reader.step(Jiter::finish)?;
    Ok(value)
}

fn range(start: usize, end: usize) -> String {
    format!("#{start}-{end}")
}

/// Puts a step in front of the location of a duplicate key. Every other location counts bytes of the whole text.
fn inside(refusal: Refusal, step: &At<'_>) -> Refusal {
    if refusal.code() == Code::JsonDuplicateKey { refusal.with_prefix(&step.to_string()) } else { refusal }
}

struct Reader<'v, 'd> {
    text: &'v str,
    /// The members of the outermost object that are documents of their own.
    documents: &'d [(&'d str, Origin)],
    jiter: Jiter<'v>,
    /// Bytes of the text before those that `jiter` was given.
    skipped: usize,
    values: usize,
    /// Items of the arrays, and members of the objects, that are not yet closed.
    items: Vec<Value<'v>>,
    members: Vec<Member<'v>>,
    /// The bytes of an array of bytes, while it is read.
    bytes: Vec<u8>,
}

impl<'v> Reader<'v, '_> {
    fn index(&self) -> usize {
        self.jiter.current_index().saturating_add(self.skipped)
    }

    fn refuse(&self, code: Code) -> Refusal {
        let index = self.index();
        Refusal::new(code, range(index, index.saturating_add(1)))
    }

    /// Takes one token.
    fn step<T>(&mut self, token: impl FnOnce(&mut Jiter<'v>) -> Result<T, JiterError>) -> Result<T, Refusal> {
        token(&mut self.jiter).map_err(|error| {
            let index = error.index.saturating_add(self.skipped);
            Refusal::new(Code::JsonSyntax, range(index, index.saturating_add(1))).with_actual(error.error_type.to_string())
        })
    }

    fn count(&mut self, values: usize) -> Result<(), Refusal> {
        self.values = self.values.saturating_add(values);
        if self.values <= MAX_VALUES {
            return Ok(());
        }
        Err(self.refuse(Code::JsonTooLarge).with_expected(format!("at most {MAX_VALUES} values")))
    }

    fn value(&mut self, peek: Peek, depth: usize) -> Result<Value<'v>, Refusal> {
        self.count(1)?;
        match peek {
            Peek::Null => self.step(Jiter::known_null).map(|()| Value::Null),
            // Skipped, because what reads these values can parse numbers as floats, which is a large part of a WebAssembly module.
            Peek::True | Peek::False => self.step(|jiter| jiter.known_skip(peek)).map(|()| Value::Bool(peek == Peek::True)),
            Peek::String => {
                let len = self.step(|jiter| jiter.known_str().map(str::len))?;
                let quote = self.index().saturating_sub(1);
                string_before(self.text, quote, len).map(Value::String).ok_or_else(|| self.refuse(Code::JsonSyntax))
            }
            Peek::Array | Peek::Object => {
                let Some(depth) = depth.checked_sub(1) else {
                    return Err(self.refuse(Code::JsonTooDeep).with_expected(format!("at most {MAX_DEPTH} levels")));
                };
                if peek == Peek::Object { self.object(depth) } else { self.array(depth) }
            }
            _ if peek.is_num() => {
                let from = self.index();
                self.step(|jiter| jiter.known_skip(peek))?;
                Ok(Value::Number(self.text.get(from..self.index()).unwrap_or_default()))
            }
            _ => Err(self.refuse(Code::JsonSyntax)),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value<'v>, Refusal> {
        let rest = self.text.as_bytes().get(self.index()..).unwrap_or_default();
        if let Some(len) = byte_array(rest, &mut self.bytes) {
            // An item takes one byte of memory here, any other value about thirty.
            self.count(self.bytes.len() / 32)?;
            self.skipped = self.index().saturating_add(len);
            self.jiter = Jiter::new(rest.get(len..).unwrap_or_default());
            return Ok(Value::Bytes(self.bytes.as_slice().into()));
        }
        let start = self.items.len();
        let mut next = self.step(Jiter::known_array)?;
        while let Some(peek) = next {
            let index = self.items.len().saturating_sub(start);
            let value = self.value(peek, depth).map_err(|refusal| inside(refusal, &At::root("").index(index)))?;
            self.items.push(value);
            next = self.step(Jiter::array_step)?;
        }
        Ok(Value::Array(self.items.split_off(start).into_boxed_slice()))
    }

    fn object(&mut self, depth: usize) -> Result<Value<'v>, Refusal> {
        let start = self.members.len();
        let mut seen: Option<BTreeSet<Cow<'v, str>>> = None;
        let mut next = self.step(|jiter| jiter.known_object().map(|key| key.map(str::len)))?;
        while let Some(len) = next {
            let key = self.key(len)?;
            let members = self.members.get(start..).unwrap_or_default();
            // A short object is compared key by key; a long one would make that quadratic.
            let is_duplicate = if members.len() < 32 {
                members.iter().any(|(known, _)| *known == key)
            } else {
                let seen = seen.get_or_insert_default();
                if seen.is_empty() {
                    seen.extend(members.iter().map(|(known, _)| known.clone()));
                }
                !seen.insert(key.clone())
            };
            // Any text can be a key.
            let documents = if depth.saturating_add(1) == MAX_DEPTH { self.documents } else { &[] };
            let named = |refusal| {
                let refusal = inside(refusal, &At::root("").key(&escape_untrusted(&key)));
                match documents.iter().find(|(name, _)| *name == key) {
                    Some((_, origin)) if refusal.code() == Code::JsonDuplicateKey => refusal.with_origin(*origin),
                    _ => refusal,
                }
            };
            if is_duplicate {
                return Err(named(Refusal::new(Code::JsonDuplicateKey, "").with_actual(key.as_ref())));
            }
            let peek = self.step(Jiter::peek)?;
            let value = self.value(peek, depth).map_err(named)?;
            self.members.push((key, value));
            next = self.step(|jiter| jiter.next_key().map(|key| key.map(str::len)))?;
        }
        Ok(Value::Object(self.members.split_off(start).into_boxed_slice()))
    }

    /// Returns the key that was just read, together with the colon after it.
    fn key(&self, len: usize) -> Result<Cow<'v, str>, Refusal> {
        let read = self.text.as_bytes().get(..self.index()).unwrap_or_default();
        let key = read.strip_suffix(b":").map_or(read, <[u8]>::trim_ascii_end);
        string_before(self.text, key.len().saturating_sub(1), len).ok_or_else(|| self.refuse(Code::JsonSyntax))
    }
}

/// Returns the string whose closing quote is at `end` and which is `len` bytes long without escapes.
#[inline]
fn string_before(text: &str, end: usize, len: usize) -> Option<Cow<'_, str>> {
    let start = end.checked_sub(len)?;
    if is_opening_quote(text.as_bytes(), start.checked_sub(1)?) {
        // Every escape is longer than its character, so a string that is as long in the text has none.
        return text.get(start..end).map(Cow::Borrowed);
    }
    escaped_string_before(text, end)
}

#[cold]
fn escaped_string_before(text: &str, end: usize) -> Option<Cow<'_, str>> {
    let quote = (0..end).rev().find(|at| is_opening_quote(text.as_bytes(), *at))?;
    let string = text.get(quote..=end)?;
    let mut jiter = Jiter::new(string.as_bytes());
    if jiter.peek().ok()? != Peek::String {
        return None;
    }
    jiter.known_str().ok().map(|decoded| Cow::Owned(decoded.to_owned()))
}

/// Returns whether a byte inside a string, or right before it, is the opening quote of the string: a quote inside has a backslash
/// before it, the opening one never has.
fn is_opening_quote(text: &[u8], at: usize) -> bool {
    text.get(at) == Some(&b'"') && at.checked_sub(1).and_then(|before| text.get(before)) != Some(&b'\\')
}

/// Fills `bytes` from the array that the text begins with, if it holds only integers 0 to 255, and returns its length in the
/// text. Anything else, including malformed numbers, is left to the general reader.
fn byte_array(text: &[u8], bytes: &mut Vec<u8>) -> Option<usize> {
    bytes.clear();
    bytes.reserve(512);
    let mut rest = without_space(text.get(1..)?);
    loop {
        // Digits after a zero, or after three, are neither a comma nor the end.
        let (number, after) = match rest {
            [b'0', after @ ..] => (0, after),
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', after @ ..] => (decimal(&[*a, *b, *c]), after),
            [a @ b'1'..=b'9', b @ b'0'..=b'9', after @ ..] => (decimal(&[*a, *b]), after),
            [a @ b'1'..=b'9', after @ ..] => (decimal(&[*a]), after),
            _ => return None,
        };
        bytes.push(u8::try_from(number).ok()?);
        match without_space(after) {
            [b',', after @ ..] => rest = without_space(after),
            [b']', after @ ..] => return text.len().checked_sub(after.len()),
            _ => return None,
        }
    }
}

fn decimal(digits: &[u8]) -> u16 {
    digits.iter().fold(0, |number: u16, digit| number.wrapping_mul(10).wrapping_add(u16::from(digit.wrapping_sub(b'0'))))
}

fn without_space(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
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
    fn strings_are_unescaped_wherever_the_escapes_are() {
        for raw in
            [r#"\"\""#, r#"\\"#, r#"a\\\"b"#, r#"\u00e9\n"#, r#"\ud83d\ude00x"#, r#"plain"#, "é\u{1F600}", "", r#"tail\\"#, r#"x\/y"#]
        {
            let text = format!("{{ \"k\": \"{raw}\", \"{raw}\" \t: [\"{raw}\"] }}");
            let parsed = parse(text.as_bytes()).unwrap();
            let reference: serde_json::Value = serde_json::from_str(&text).unwrap();
            let Value::Object(members) = &parsed else { panic!("{text}") };
            let wanted = reference["k"].as_str().unwrap();
            assert_eq!(members[0].1, Value::String(wanted.into()), "{text}");
            assert_eq!(members[1].0, wanted, "{text}");
            assert!(raw.contains('\\') || matches!(members[1].0, Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn a_duplicate_key_is_a_fault_of_the_document_that_it_is_in() {
        let origin = |text: &str| parse_case(text.as_bytes()).unwrap_err().origin();
        assert_eq!(origin(r#"{"response":{"a":[{"b":1,"b":1}]}}"#), Origin::Service);
        assert_eq!(origin(r#"{"response":1,"response":1}"#), Origin::Service);
        assert_eq!(origin(r#"{"request":{"a":1,"a":1}}"#), Origin::Request);
        assert_eq!(origin(r#"{"wallet":{"response":{"a":1,"a":1}}}"#), Origin::Caller);
        assert_eq!(origin(r#"[{"response":{"a":1,"a":1}}]"#), Origin::Caller);
        // Any other fault makes the whole text unreadable, whoever wrote it.
        assert_eq!(origin(r#"{"response":{"a":}}"#), Origin::Caller);
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
    fn a_duplicate_key_is_located_by_its_pointer() {
        let at = |text: &str| parse(text.as_bytes()).unwrap_err().location().to_owned();
        assert_eq!(at(r#"{"a":1,"a":1}"#), "/a");
        assert_eq!(at(r#"{"x":[0,{"y":{"a/b~":1,"a/b\u007e":1}}]}"#), "/x/1/y/a~1b~0");
        assert_eq!(at(r#"{"\u202e":{"a":1,"a":1}}"#), r"/\u{202e}/a");
        assert_eq!(at(&format!(r#"{{"{}":{{"a":1,"a":1}}}}"#, "k".repeat(1_000))), format!("/{}…/a", "k".repeat(160)));
        assert_eq!(at(r#"{"x":[1,{"y":}]}"#), "#13-14");
    }

    #[test]
    fn bounds_depth_and_count() {
        assert!(parse(format!("{}{}", "[".repeat(64), "]".repeat(64)).as_bytes()).is_ok());
        assert_eq!(code(&format!("{}{}", "[".repeat(65), "]".repeat(65))), Code::JsonTooDeep);
        assert_eq!(code(&"[".repeat(20_000)), Code::JsonTooDeep);
        assert_eq!(code(&format!("[{}0]", "-1,".repeat(MAX_VALUES))), Code::JsonTooLarge);
        assert!(parse(format!("[{}0]", "0,".repeat(MAX_VALUES)).as_bytes()).is_ok(), "bytes do not count as whole values");
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
        assert_eq!(parse(b"\"\xff\"").unwrap_err().location(), "#1-2");
    }

    /// Returns whether a text of the form `[n,7 , n]` is read as an array of bytes.
    fn parse_owned(text: &str) -> bool {
        match parse(text.as_bytes()).unwrap() {
            Value::Bytes(bytes) => {
                assert_eq!((bytes[1], format!("[{},7 , {}]", bytes[0], bytes[2])), (7, text.to_owned()));
                true
            }
            other => matches!(&other, Value::Array(items) if items[0] != items[2]),
        }
    }

    #[test]
    fn arrays_of_bytes_are_the_arrays_that_they_were() {
        for (text, bytes) in [("[0]", &[0][..]), ("[ 0 , 7\n,255\t]", &[0, 7, 255]), ("[10,99,100,200]", &[10, 99, 100, 200])] {
            let value = parse(text.as_bytes()).unwrap();
            assert_eq!(value, Value::Bytes(bytes.into()), "{text}");
            let cursor = Cursor::root(&value, "");
            assert_eq!(cursor.byte_array().unwrap(), bytes);
            let items: Vec<_> = cursor.array().unwrap().map(|item| item.integer().unwrap()).collect();
            assert_eq!(items, bytes.iter().map(|byte| u64::from(*byte)).collect::<Vec<_>>());
        }
        for number in 0..=1_300_u64 {
            let value = parse_owned(&format!("[{number},7 , {number}]"));
            assert_eq!(value, u8::try_from(number).is_ok(), "{number}");
        }
        for text in ["[]", "[256]", "[1,1000]", "[1,-1]", "[1,2.0]", "[1e1]", "[1,\"2\"]", "[1,[2]]", "[1,null]"] {
            assert!(matches!(parse(text.as_bytes()).unwrap(), Value::Array(_)), "{text}");
        }
        for text in ["[01]", "[1,00]", "[1,]", "[,1]", "[1", "[1 2]", "[1,2}", "[+1]"] {
            assert_eq!(code(text), Code::JsonSyntax, "{text}");
        }
        // What follows such an array is read as usual, with the right location.
        let text = r#"{"a":[1,2,3],"b":[4],"c":{"d":[5,"x"]}}"#;
        let value = parse(text.as_bytes()).unwrap();
        let Value::Object(members) = &value else { panic!() };
        assert_eq!(members.iter().map(|(key, _)| key.as_ref()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(parse(br#"{"a":[1,2,3],"b" 1}"#).unwrap_err().location(), "#17-18");
        assert_eq!(parse(br#"{"a":[1,2,3],"a":1}"#).unwrap_err().code(), Code::JsonDuplicateKey);
        let refusal = Cursor::root(&parse(b"[7,256]").unwrap(), "/x").byte_array().unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::NumberTooLarge, "/x/1"));
    }

    #[test]
    fn debug_shows_no_content() {
        let value = parse(br#"{"secret_key":"0123"}"#).unwrap();
        assert_eq!(format!("{value:?}"), "object of 1");
    }
}
