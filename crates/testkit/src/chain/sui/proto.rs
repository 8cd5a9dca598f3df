//! Protobuf and gRPC-web, encoded independently of the message types under test.
//!
//! <https://protobuf.dev/programming-guides/encoding/>

/// A message that is being written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message(pub Vec<u8>);

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
}

impl Message {
    pub fn number(mut self, field: u64, value: u64) -> Self {
        varint(&mut self.0, field << 3);
        varint(&mut self.0, value);
        self
    }

    pub fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        varint(&mut self.0, field << 3 | 2);
        varint(&mut self.0, u64::try_from(value.len()).unwrap());
        self.0.extend_from_slice(value);
        self
    }

    pub fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    pub fn all<'m>(self, field: u64, values: impl IntoIterator<Item = &'m Self>) -> Self {
        values.into_iter().fold(self, |message, value| message.message(field, value))
    }

    pub fn optional(self, field: u64, value: Option<&Self>) -> Self {
        self.all(field, value)
    }

    pub fn maybe(self, field: u64, value: Option<u64>) -> Self {
        match value {
            Some(value) => self.number(field, value),
            None => self,
        }
    }
}

/// The length-delimited fields of a message: strings, bytes and messages.
pub fn members(message: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fields(message).0
}

/// The first number with a tag.
pub fn number(message: &[u8], field: u64) -> Option<u64> {
    fields(message).1.into_iter().find(|(tag, _)| *tag == field).map(|(_, value)| value)
}

/// Fields of a message with their tags.
type Tagged<T> = Vec<(u64, T)>;

/// The length-delimited fields of a message, and the numbers.
fn fields(mut message: &[u8]) -> (Tagged<Vec<u8>>, Tagged<u64>) {
    let (mut members, mut numbers) = (Vec::new(), Vec::new());
    while !message.is_empty() {
        let tag = read_varint(&mut message);
        match tag & 7 {
            0 => numbers.push((tag >> 3, read_varint(&mut message))),
            2 => {
                let length = usize::try_from(read_varint(&mut message)).unwrap();
                members.push((tag >> 3, message[..length].to_vec()));
                message = &message[length..];
            }
            other => panic!("wire type {other}"),
        }
    }
    (members, numbers)
}

/// The first string with a tag.
pub fn text(message: &[u8], field: u64) -> String {
    let member = members(message).into_iter().find(|(tag, _)| *tag == field);
    member.map(|(_, value)| String::from_utf8(value).unwrap()).unwrap_or_default()
}

fn read_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

pub fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind][..], &u32::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
}

/// The body of an answer.
pub fn answer(message: &Message) -> Vec<u8> {
    [frame(0, &message.0), frame(0x80, b"grpc-status: 0\r\n")].concat()
}

/// The body of an error.
pub fn error(code: u32, words: &str) -> Vec<u8> {
    frame(0x80, format!("grpc-status:{code}\r\ngrpc-message:{words}\r\n").as_bytes())
}
