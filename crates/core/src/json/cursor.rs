//! A value together with its location in the document, and strict readers for it.

use std::array;
use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use ruint::aliases::U256;

use super::{Member, Value};
use crate::json::number;
use crate::report::{Code, Origin, Refusal};

/// The items of [`Value::Bytes`] as values.
static INTEGERS: LazyLock<[Value<'static>; 256]> = LazyLock::new(|| array::from_fn(|byte| Value::Number(byte.to_string().leak())));

/// A location in a document. It links back to the root, so that a pointer is only written when it is needed.
#[derive(Clone, Copy)]
pub struct At<'p> {
    parent: Option<&'p Self>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root(&'p str, Origin),
    Key(&'p str),
    Index(usize),
}

impl<'p> At<'p> {
    /// The request of an order.
    pub const REQUEST: At<'static> = At::of("/request", Origin::Request);
    /// The service's response to it.
    pub const RESPONSE: At<'static> = At::of("/response", Origin::Service);
    /// The record of the order.
    pub const RECORD: At<'static> = At::of("/order", Origin::Service);

    /// Creates the root of a document that the caller passed, and that is located at `prefix` in a larger one: `""`, `"/wallet"`.
    #[must_use]
    pub const fn root(prefix: &'p str) -> Self {
        Self::of(prefix, Origin::Caller)
    }

    /// Creates the root of a document of any origin that is located at `prefix` in a larger one.
    #[must_use]
    pub const fn of(prefix: &'p str, origin: Origin) -> Self {
        Self { parent: None, step: Step::Root(prefix, origin) }
    }

    /// Returns who wrote the document.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        let mut at = self;
        while let Some(parent) = at.parent {
            at = parent;
        }
        match at.step {
            Step::Root(_, origin) => origin,
            _ => Origin::Caller,
        }
    }

    /// Returns the location of a member of the object at this location.
    #[must_use]
    pub const fn key<'s>(&'s self, key: &'s str) -> At<'s>
    where
        'p: 's,
    {
        At { parent: Some(self), step: Step::Key(key) }
    }

    pub(super) const fn index<'s>(&'s self, index: usize) -> At<'s>
    where
        'p: 's,
    {
        At { parent: Some(self), step: Step::Index(index) }
    }

    /// Creates a refusal at this location.
    #[must_use]
    pub fn refuse(&self, code: impl Into<Code>) -> Refusal {
        self.refuse_below(code, "")
    }

    /// Creates a refusal below this location: `rest` is a pointer, `"/source/asset"`.
    #[must_use]
    pub fn refuse_below(&self, code: impl Into<Code>, rest: &str) -> Refusal {
        Refusal::new(code, format!("{self}{rest}")).with_origin(self.origin())
    }

    /// Creates a refusal at the bytes `start..end` of the payload at this location.
    #[must_use]
    pub fn refuse_bytes(&self, code: impl Into<Code>, start: usize, end: usize) -> Refusal {
        self.refuse_below(code, &format!("#{start}-{end}"))
    }
}

impl fmt::Display for At<'_> {
    /// Writes an RFC 6901 pointer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            fmt::Display::fmt(parent, f)?;
        }
        match self.step {
            Step::Root(prefix, _) => f.write_str(prefix),
            Step::Key(key) => write!(f, "/{}", key.replace('~', "~0").replace('/', "~1")),
            Step::Index(index) => write!(f, "/{index}"),
        }
    }
}

impl fmt::Debug for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "At({self})")
    }
}

/// A value and its location.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'p, 'v> {
    value: &'v Value<'v>,
    at: At<'p>,
}

impl<'p, 'v> Cursor<'p, 'v> {
    /// Creates the root value of a document that the caller passed, and that is located at `prefix` in a larger one.
    #[must_use]
    pub const fn root(value: &'v Value<'v>, prefix: &'p str) -> Self {
        Self::new(value, At::root(prefix))
    }

    /// Creates the root value of a document at a location, which knows who wrote it.
    #[must_use]
    pub const fn new(value: &'v Value<'v>, at: At<'p>) -> Self {
        Self { value, at }
    }

    /// Returns the value without its location.
    #[must_use]
    pub const fn value(&self) -> &'v Value<'v> {
        self.value
    }

    /// Returns the location.
    #[must_use]
    pub const fn at(&self) -> &At<'p> {
        &self.at
    }

    /// Creates a refusal at this location. It shows the value if that is a string, a number or a boolean.
    #[must_use]
    pub fn refuse(&self, code: impl Into<Code>) -> Refusal {
        let refusal = self.at.refuse(code);
        match self.value {
            Value::String(text) => refusal.with_actual(text.as_ref()),
            Value::Number(text) => refusal.with_actual(*text),
            Value::Bool(value) => refusal.with_actual(value.to_string()),
            _ => refusal,
        }
    }

    fn wrong_type(&self, expected: &'static str) -> Refusal {
        let got = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) | Value::Bytes(_) => "an array",
            Value::Object(_) => "an object",
        };
        self.at.refuse(Code::WrongType).with_expected(expected).with_actual(got)
    }

    /// Returns whether this is `null`.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// Reads an object.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`].
    pub fn object<'s>(&'s self) -> Result<Members<'s, 'v>, Refusal> {
        match self.value {
            Value::Object(members) => Ok(Members { members, at: &self.at }),
            _ => Err(self.wrong_type("an object")),
        }
    }

    /// Reads an array.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`].
    pub fn array<'s>(&'s self) -> Result<impl ExactSizeIterator<Item = Cursor<'s, 'v>>, Refusal> {
        let len = match self.value {
            Value::Array(items) => items.len(),
            Value::Bytes(items) => items.len(),
            _ => return Err(self.wrong_type("an array")),
        };
        Ok((0..len).map(|index| {
            let value = match self.value {
                Value::Array(items) => items.get(index),
                Value::Bytes(items) => items.get(index).and_then(|byte| INTEGERS.get(usize::from(*byte))),
                _ => None,
            };
            Cursor { value: value.unwrap_or(&Value::Null), at: self.at.index(index) }
        }))
    }

    /// Reads an array of integers 0 to 255.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`]; at an item also [`Code::IntegerNotExact`] or [`Code::NumberTooLarge`].
    pub fn byte_array(&self) -> Result<Cow<'v, [u8]>, Refusal> {
        if let Value::Bytes(bytes) = self.value {
            return Ok(Cow::Borrowed(bytes));
        }
        let byte =
            |item: Cursor<'_, '_>| u8::try_from(item.integer()?).map_err(|_| item.refuse(Code::NumberTooLarge).with_expected("0 to 255"));
        self.array()?.map(byte).collect()
    }

    /// Reads a string.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`].
    pub fn text(&self) -> Result<&'v str, Refusal> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong_type("a string")),
        }
    }

    /// Reads a string that holds a secret. It must be written without escapes, because the unescaped copy could not be wiped.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`], or [`Code::KeyMalformed`] if the string has escapes. Neither shows the text.
    pub fn secret(&self) -> Result<&'v str, Refusal> {
        match self.value {
            Value::String(Cow::Borrowed(text)) => Ok(text),
            Value::String(Cow::Owned(_)) => {
                Err(self.at.refuse(Code::KeyMalformed).with_reason("a key must be written without JSON escapes"))
            }
            _ => Err(self.wrong_type("a string")),
        }
    }

    /// Reads a boolean.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`].
    pub fn bool(&self) -> Result<bool, Refusal> {
        match self.value {
            Value::Bool(value) => Ok(*value),
            _ => Err(self.wrong_type("a boolean")),
        }
    }

    /// Reads a JSON integer of at most 64 bits that is written as plain digits.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`], [`Code::IntegerNotExact`] or [`Code::NumberTooLarge`].
    pub fn integer(&self) -> Result<u64, Refusal> {
        match self.value {
            Value::Number(text) => {
                let wide = number::integer(text).map_err(|error| self.refuse(error))?;
                u64::try_from(wide).map_err(|_| self.refuse(Code::NumberTooLarge))
            }
            _ => Err(self.wrong_type("an integer")),
        }
    }

    /// Reads a canonical decimal string of at most 256 bits: see [`number::decimal`].
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`], one of the `decimal_` codes, or [`Code::NumberTooLarge`].
    pub fn decimal(&self) -> Result<U256, Refusal> {
        number::decimal(self.text()?).map_err(|error| self.refuse(error))
    }

    /// Reads a `0x` hex number of at most 256 bits, leading zeros allowed.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`], [`Code::HexPrefix`], [`Code::HexEmpty`], [`Code::HexDigit`] or [`Code::NumberTooLarge`].
    pub fn hex_number(&self) -> Result<U256, Refusal> {
        number::hex(self.text()?).map_err(|error| self.refuse(error))
    }

    /// Reads a number in any of the forms that typed data uses: JSON integer, decimal string, `0x` hex string.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`], or the codes of the form that the value has: see [`number`].
    pub fn any_number(&self) -> Result<U256, Refusal> {
        let read = match self.value {
            Value::Number(text) => number::integer(text),
            Value::String(text) if text.starts_with("0x") => number::hex(text),
            Value::String(text) => number::decimal(text),
            _ => return Err(self.wrong_type("an integer, a decimal string or a 0x hex string")),
        };
        read.map_err(|error| self.refuse(error))
    }

    /// Reads at most `max` bytes of `0x` hex.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`], [`Code::HexPrefix`], [`Code::HexLength`], [`Code::HexOddLength`] or [`Code::HexDigit`].
    pub fn hex_bytes(&self, max: usize) -> Result<Vec<u8>, Refusal> {
        number::hex_bytes(self.text()?, max).map_err(|error| self.refuse(error))
    }

    /// Reads exactly `N` bytes of `0x` hex.
    ///
    /// # Errors
    ///
    /// [`Code::WrongType`], [`Code::HexPrefix`], [`Code::HexLength`], [`Code::HexOddLength`] or [`Code::HexDigit`].
    pub fn hex_array<const N: usize>(&self) -> Result<[u8; N], Refusal> {
        number::hex_array(self.text()?).map_err(|error| self.refuse(error))
    }
}

/// The members of an object, and its location.
#[derive(Debug, Clone, Copy)]
pub struct Members<'p, 'v> {
    members: &'v [Member<'v>],
    at: &'p At<'p>,
}

impl<'p, 'v> Members<'p, 'v> {
    /// Returns the location of the object.
    #[must_use]
    pub const fn at(&self) -> &'p At<'p> {
        self.at
    }

    /// Returns a member; `None` if it is missing or null, which mean the same.
    #[must_use]
    pub fn get(&self, key: &'p str) -> Option<Cursor<'p, 'v>> {
        self.members
            .iter()
            .find(|(name, value)| name == key && *value != Value::Null)
            .map(|(_, value)| Cursor { value, at: self.at.key(key) })
    }

    /// Returns a required member.
    ///
    /// # Errors
    ///
    /// [`Code::MissingField`] if it is missing or null.
    pub fn need(&self, key: &'p str) -> Result<Cursor<'p, 'v>, Refusal> {
        self.get(key).ok_or_else(|| self.at.key(key).refuse(Code::MissingField))
    }

    /// Refuses any other key, because nothing unknown may be signed.
    ///
    /// # Errors
    ///
    /// [`Code::UnexpectedField`] at the first other key.
    pub fn only(&self, keys: &[&str]) -> Result<(), Refusal> {
        match self.members.iter().find(|(name, _)| !keys.contains(&name.as_ref())) {
            Some((name, _)) => {
                Err(self.at.key(&crate::report::text::escape_untrusted(name)).refuse(Code::UnexpectedField).with_expected(keys.join(", ")))
            }
            None => Ok(()),
        }
    }

    /// Refuses a key that differs from a known one only in letter case or in the separators `_` and `-`: it would be ignored
    /// silently. Other unknown keys pass.
    ///
    /// # Errors
    ///
    /// [`Code::MisspeltField`] at the first such key, with the known one as expected.
    pub fn check_spelling(&self, known: &[&'static str]) -> Result<(), Refusal> {
        fn letters(name: &str) -> impl Iterator<Item = char> {
            name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase())
        }
        for (name, _) in self.members.iter().filter(|(name, _)| !known.contains(&name.as_ref())) {
            if let Some(meant) = known.iter().find(|known| letters(known).eq(letters(name))) {
                let name = crate::report::text::escape_untrusted(name);
                let at = self.at.key(&name);
                return Err(at.refuse(Code::MisspeltField).with_expected(*meant));
            }
        }
        Ok(())
    }

    /// Returns every member in the order of the text, those that are null included.
    pub fn iter(&self) -> impl Iterator<Item = Cursor<'_, 'v>> {
        self.members.iter().map(|(name, value)| Cursor { value, at: self.at.key(name) })
    }

    /// Returns the keys in the order of the text.
    pub fn keys(&self) -> impl Iterator<Item = &'v str> {
        self.members.iter().map(|(name, _)| name.as_ref())
    }
}
