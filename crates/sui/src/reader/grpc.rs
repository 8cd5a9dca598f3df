//! gRPC-web over HTTP/1.1, for unary calls.
//!
//! A body is a sequence of frames. A frame has one byte for its kind, four bytes for its length (big-endian), and its content. An answer
//! is one message (kind 0x00), followed by the trailers (kind 0x80). The trailers are text in the form of HTTP headers, and contain
//! `grpc-status`. An answer without a message may have `grpc-status` as a header of the HTTP response instead. The variants in base64
//! (`application/grpc-web-text`) are refused, because nobody asked for them.
//!
//! Specification: <https://github.com/grpc/grpc/blob/v1.76.0/doc/PROTOCOL-WEB.md>

use countersign_core::reader::{Answer, Fault, Format, Reply, Request, RpcError};
use countersign_core::{Code, Refusal};

use super::proto::{Message, Writer};

/// The status of a call that succeeded.
const OK: i64 = 0;
/// The maximum length of a message in bytes.
const MAX_MESSAGE: usize = 1024 * 1024;
/// The status of a request that is invalid in any state of the chain.
pub(super) const INVALID_ARGUMENT: i64 = 3;
/// The status of a request for something that the node does not know.
pub(super) const NOT_FOUND: i64 = 5;
/// The status of a request that is invalid in the current state of the chain.
pub(super) const FAILED_PRECONDITION: i64 = 9;

/// The kind of a frame with a message.
const MESSAGE: u8 = 0;
/// The kind of the frame with the trailers.
const TRAILERS: u8 = 0x80;

/// The contents of an answer's frames.
struct Frames<'b> {
    message: Option<&'b [u8]>,
    /// The status and the node's message.
    status: Option<(i64, String)>,
}

/// Creates a call of a method.
pub(super) fn request(method: &'static str, message: &Writer) -> Request {
    let bytes = message.as_ref();
    // Requests are far below this limit. Every node would refuse a larger one.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    Request::post(method, [&[MESSAGE][..], &length.to_be_bytes(), bytes].concat(), Format::GrpcWeb)
}

/// Returns the message of a reply.
///
/// The error of the method is [`Fault::Rpc`], with the gRPC status as its code.
pub(super) fn read<'a>(reply: &Reply<'a>) -> Result<Message<'a>, Fault> {
    let Reply::Grpc { status: 200, body, grpc_status } = reply else { return Err(reply.fault()) };
    message(body, *grpc_status)
}

/// As [`read`]; `None` if the node does not know what was asked for.
pub(super) fn find<'a>(reply: &Reply<'a>) -> Result<Option<Message<'a>>, Fault> {
    match read(reply) {
        Err(Fault::Rpc(RpcError { code: NOT_FOUND, .. })) => Ok(None),
        other => other.map(Some),
    }
}

fn message<'b>(body: &'b [u8], header: Option<&str>) -> Result<Message<'b>, Fault> {
    let malformed = |reason: &'static str| Fault::Malformed(Refusal::new(Code::WrongType, "").with_reason(reason));
    let frames = Frames::read(body).map_err(malformed)?;
    let header = header.map(status).transpose().map_err(malformed)?;
    let (code, words) = match (frames.status, header) {
        (Some((code, _)), Some(header)) if code != header => {
            return Err(malformed("the header and the trailers have different statuses"));
        }
        (Some(trailers), _) => trailers,
        (None, Some(header)) if frames.message.is_none() => (header, String::new()),
        _ => return Err(malformed("the answer ends before its trailers")),
    };
    if code != OK {
        let words = if words.is_empty() { "an error without a message" } else { &words };
        return Err(Fault::Rpc(RpcError::new(code, words, None)));
    }
    let message = frames.message.ok_or_else(|| malformed("the answer has no message"))?;
    if message.len() > MAX_MESSAGE {
        return Err(malformed("the message exceeds 1 MiB"));
    }
    Ok(Message(message))
}

/// Returns whether an answer is a message, and not an error of the method, which also has the HTTP status 200. Only a message may be
/// remembered as the identity of an endpoint's chain.
#[must_use]
pub fn is_message(answer: &Answer) -> bool {
    matches!(answer, Answer::Http { status: 200, body, grpc_status } if message(body, grpc_status.as_deref()).is_ok())
}

fn status(text: &str) -> Result<i64, &'static str> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or("the status is not a number")
}

impl<'b> Frames<'b> {
    fn read(body: &'b [u8]) -> Result<Self, &'static str> {
        let mut frames = Self { message: None, status: None };
        let mut rest = body;
        while let Some((&kind, after)) = rest.split_first() {
            if frames.status.is_some() {
                return Err("the answer continues after its trailers");
            }
            let (length, after) = after.split_first_chunk().ok_or("a frame ends too early")?;
            let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
            let (content, after) = after.split_at_checked(length).ok_or("a frame ends too early")?;
            match kind {
                MESSAGE if frames.message.is_none() => frames.message = Some(content),
                MESSAGE => return Err("the answer has more than one message"),
                TRAILERS => frames.status = Some(trailers(content)?),
                _ => return Err("the answer is not in gRPC-web frames"),
            }
            rest = after;
        }
        Ok(frames)
    }
}

/// Reads the status and the node's message.
fn trailers(content: &[u8]) -> Result<(i64, String), &'static str> {
    let text = std::str::from_utf8(content).map_err(|_| "the trailers are not text")?;
    let (mut code, mut words) = (None, String::new());
    for line in text.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or("the trailers are not in the form of headers")?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("grpc-status") {
            if code.replace(status(value)?).is_some() {
                return Err("the trailers have more than one status");
            }
        } else if name.eq_ignore_ascii_case("grpc-message") {
            words = percent_decoded(value);
        }
    }
    Ok((code.ok_or("the trailers have no status")?, words))
}

/// Decodes the percent-encoding of `grpc-message`. Invalid codes are left unchanged.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| first == b'%').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_decoded_where_they_are_codes() {
        assert_eq!(percent_decoded("no%20such object%3a 7%"), "no such object: 7%");
        assert_eq!(percent_decoded("%zz%F0%9F%98%80%4"), "%zz\u{1f600}%4");
        assert_eq!(percent_decoded("%ff"), "\u{fffd}");
    }
}
