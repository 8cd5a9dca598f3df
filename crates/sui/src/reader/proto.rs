//! Protobuf messages, written and read field by field.
//!
//! A message is never built in memory: a [`Message`] is a slice of the answer, which is searched for a field. So a long list of short
//! entries cannot take more memory than the answer itself.
//!
//! Specification: <https://protobuf.dev/programming-guides/encoding/>

use countersign_core::reader::Fault;
use countersign_core::{Code, Refusal};

/// A field of a message: its number, and its location in refusals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field(pub(super) u64, pub(super) &'static str);

impl Field {
    /// Returns the fault of an answer without this field.
    pub(super) fn missing(self) -> Fault {
        Fault::Malformed(Refusal::new(Code::MissingField, self.1))
    }

    /// Returns the fault of an answer in which this field has another value than the protocol allows.
    pub(super) fn wrong(self, expected: impl Into<String>) -> Fault {
        Fault::Malformed(Refusal::new(Code::WrongType, self.1).with_expected(expected.into()))
    }
}

/// The value of a field, by its wire type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'b> {
    /// A number, a flag or an enumeration.
    Number(u64),
    /// A text, bytes or a message.
    Bytes(&'b [u8]),
    /// A value of fixed length, which no message here has.
    Fixed,
}

/// A type that a field's value can have.
pub(super) trait Read<'b>: Sized {
    /// What is expected.
    const NAME: &'static str;

    fn read(value: Value<'b>) -> Option<Self>;
}

/// A protobuf message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'b>(pub(super) &'b [u8]);

impl<'b> Message<'b> {
    /// Returns the value of a field; `None` if the message does not have it.
    ///
    /// A field that occurs twice is malformed, although protobuf allows it, because no encoder writes one.
    pub(super) fn get<T: Read<'b>>(self, field: Field) -> Result<Option<T>, Fault> {
        let mut found = None;
        self.each(field, |value| if found.replace(value).is_none() { Ok(()) } else { Err(field.wrong("one value")) })?;
        found.map(|value| T::read(value).ok_or_else(|| field.wrong(T::NAME))).transpose()
    }

    /// Returns the value of a field that the message must have.
    pub(super) fn need<T: Read<'b>>(self, field: Field) -> Result<T, Fault> {
        self.get(field)?.ok_or_else(|| field.missing())
    }

    /// Returns the messages of a repeated field, of which there may be at most `max`.
    pub(super) fn all(self, field: Field, max: usize) -> Result<Vec<Self>, Fault> {
        let mut all = Vec::new();
        self.each(field, |value| {
            if all.len() >= max {
                return Err(field.wrong(format!("at most {max} values")));
            }
            all.push(Message::read(value).ok_or_else(|| field.wrong(Message::NAME))?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Calls `take` with each value of a field. The whole message must be well-formed.
    fn each(self, field: Field, mut take: impl FnMut(Value<'b>) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut rest = self.0;
        while !rest.is_empty() {
            let (number, value) = next(&mut rest).ok_or_else(|| field.wrong("a protobuf message around the field"))?;
            if number == field.0 {
                take(value)?;
            }
        }
        Ok(())
    }
}

/// Removes the next field from a message. Groups are refused, because proto3 has none.
fn next<'b>(rest: &mut &'b [u8]) -> Option<(u64, Value<'b>)> {
    let tag = varint(rest)?;
    let value = match tag & 7 {
        0 => Value::Number(varint(rest)?),
        1 => {
            take(rest, 8)?;
            Value::Fixed
        }
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Value::Bytes(take(rest, length)?)
        }
        5 => {
            take(rest, 4)?;
            Value::Fixed
        }
        _ => return None,
    };
    Some((tag >> 3, value)).filter(|(number, _)| *number > 0)
}

fn take<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0_u32..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        // The tenth byte has room for one bit.
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

impl Read<'_> for u64 {
    const NAME: &'static str = "a number";

    /// Reads a number. A negative one has the highest bit set.
    fn read(value: Value<'_>) -> Option<Self> {
        if let Value::Number(number) = value { Some(number) } else { None }
    }
}

impl Read<'_> for bool {
    const NAME: &'static str = "a flag";

    fn read(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Number(0) => Some(false),
            Value::Number(1) => Some(true),
            _ => None,
        }
    }
}

impl<'b> Read<'b> for &'b [u8] {
    const NAME: &'static str = "bytes";

    fn read(value: Value<'b>) -> Option<Self> {
        if let Value::Bytes(bytes) = value { Some(bytes) } else { None }
    }
}

impl<'b> Read<'b> for &'b str {
    const NAME: &'static str = "a text";

    fn read(value: Value<'b>) -> Option<Self> {
        std::str::from_utf8(Read::read(value)?).ok()
    }
}

impl<'b> Read<'b> for Message<'b> {
    const NAME: &'static str = "a message";

    fn read(value: Value<'b>) -> Option<Self> {
        Read::read(value).map(Message)
    }
}

/// A message that is being written. The fields must be added in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    /// Adds a number.
    pub(super) fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field.saturating_mul(8));
        self.varint(value);
        self
    }

    /// Adds bytes, a text or a message.
    pub(super) fn bytes(mut self, field: u64, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.varint(field.saturating_mul(8) | 2);
        self.varint(u64::try_from(value.len()).unwrap_or(u64::MAX));
        self.0.extend_from_slice(value);
        self
    }

    /// Adds a `google.protobuf.FieldMask`: the fields that the response must have.
    pub(super) fn mask(self, field: u64, paths: &[&str]) -> Self {
        self.bytes(field, paths.iter().fold(Self::default(), |mask, path| mask.bytes(1, path)))
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

impl AsRef<[u8]> for Writer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    const FIELD: Field = Field(1, "/field");

    #[test]
    fn what_is_written_is_read() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::MAX >> 1, u64::MAX] {
            let written = Writer::default().number(1, number).bytes(2, "text").bytes(300, Writer::default().number(1, 7));
            let message = Message(written.as_ref());
            assert_eq!(message.need::<u64>(FIELD).unwrap(), number);
            assert_eq!(message.need::<&str>(Field(2, "")).unwrap(), "text");
            assert_eq!(message.need::<Message<'_>>(Field(300, "")).unwrap().get::<u64>(FIELD).unwrap(), Some(7));
            assert_eq!(message.get::<u64>(Field(3, "")).unwrap(), None);
            assert!(
                message.need::<u64>(Field(2, "")).is_err()
                    && message.need::<&str>(FIELD).is_err()
                    && message.need::<u64>(Field(3, "")).is_err()
            );
        }
        assert_eq!(Writer::default().mask(2, &["a", "bc"]).0, [0x12, 7, 0x0a, 1, b'a', 0x0a, 2, b'b', b'c']);
    }

    #[test]
    fn other_bytes_are_not_a_message() {
        let too_large = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        let endless = [0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0];
        for bytes in [
            &[0x08][..],
            &[0x08, 0x80],
            &[0x0a, 2, 0],
            &[0, 0],
            &[0x0b],
            &[0x0c],
            &[0x0e],
            &[0x0f],
            &[0x09, 1],
            &[0x0d, 1],
            &too_large,
            &endless,
        ] {
            assert!(Message(bytes).get::<u64>(FIELD).is_err(), "{bytes:x?}");
            assert!(Message(bytes).get::<u64>(Field(9, "")).is_err(), "{bytes:x?}");
        }
        for bytes in [&[0x08, 1, 0x08, 1][..], &[0x09, 0, 0, 0, 0, 0, 0, 0, 0], &[0x0d, 0, 0, 0, 0]] {
            assert!(Message(bytes).get::<u64>(FIELD).is_err(), "{bytes:x?}");
            assert_eq!(Message(bytes).get::<u64>(Field(9, "")), Ok(None), "{bytes:x?}");
        }
        assert!(Message(&[0x08, 2]).get::<bool>(FIELD).is_err() && Message(&[0x0a, 1, 0xff]).get::<&str>(FIELD).is_err());
        assert!(Message(&[0x0a, 0, 0x0a, 0]).all(FIELD, 1).is_err() && Message(&[0x08, 0]).all(FIELD, 1).is_err());
        assert_eq!(Message(&[0x0a, 0, 0x0a, 0]).all(FIELD, 2).unwrap().len(), 2);
    }
}
