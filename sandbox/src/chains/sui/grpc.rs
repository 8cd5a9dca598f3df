//! gRPC-web over HTTP/1.1: frames, trailers, and the form in base64 that browsers' clients use by default.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::proto::{Message, Schema};
use crate::http::{Reply, Request};

/// An error of a call, with its gRPC code.
#[derive(Debug, Clone)]
pub(super) struct Status {
    pub(super) code: u64,
    pub(super) message: String,
}

impl Status {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { code: 3, message: message.into() }
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self { code: 5, message: message.into() }
    }

    pub(super) fn unimplemented() -> Self {
        Self { code: 12, message: String::new() }
    }

    fn internal(message: &str) -> Self {
        Self { code: 13, message: message.to_owned() }
    }
}

/// A request's message.
pub(super) fn decode(schema: &'static Schema, bytes: &[u8]) -> Result<Message, Status> {
    Message::decode(schema, bytes).ok_or_else(|| Status::internal("failed to decode Protobuf message: invalid wire format"))
}

/// Answers a call of `/package.Service/Method`.
pub(super) fn answer(request: &Request, call: impl FnOnce(&str, &[u8]) -> Result<Message, Status>) -> Reply {
    let content_type = request.header("content-type").unwrap_or_default();
    let (is_web, is_text) = (content_type.starts_with("application/grpc-web"), content_type.starts_with("application/grpc-web-text"));
    if !is_web {
        return Reply::text(415, "");
    }
    if request.method != "POST" {
        return Reply::text(405, "");
    }
    let body = if is_text { STANDARD.decode(&request.body).ok() } else { Some(request.body.clone()) };
    let message = body.as_deref().ok_or_else(|| Status::internal("Invalid base64")).and_then(frame);
    let (status, mut frames) = match message.and_then(|message| call(&request.path, message)) {
        Ok(message) => (Status { code: 0, message: String::new() }, framed(0, &message.encode())),
        Err(status) => (status, Vec::new()),
    };
    let message = if status.message.is_empty() { String::new() } else { format!("grpc-message:{}\r\n", escaped(&status.message)) };
    frames.extend(framed(0x80, format!("grpc-status:{}\r\n{message}", status.code).as_bytes()));
    let body = if is_text { STANDARD.encode(frames).into_bytes() } else { frames };
    Reply::new(200, if is_text { "application/grpc-web-text+proto" } else { "application/grpc-web+proto" }, body)
}

/// An answer with its message changed; an error stays as it is.
pub(super) fn with_changed(reply: Reply, schema: &'static Schema, change: impl FnOnce(&mut Message)) -> Reply {
    let is_text = reply.headers.iter().any(|(_, value)| value.starts_with("application/grpc-web-text"));
    let body = if is_text { STANDARD.decode(&reply.body).ok() } else { Some(reply.body.clone()) };
    let parts = body.as_deref().and_then(|body| {
        let (&[0, a, b, c, d], rest) = body.split_first_chunk::<5>()? else { return None };
        rest.split_at_checked(usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?)
    });
    let Some((mut message, trailers)) = parts.and_then(|(message, trailers)| Some((Message::decode(schema, message)?, trailers))) else {
        return reply;
    };
    change(&mut message);
    let body = [&framed(0, &message.encode()), trailers].concat();
    Reply { body: if is_text { STANDARD.encode(body).into_bytes() } else { body }, ..reply }
}

/// The only frame of a request.
fn frame(body: &[u8]) -> Result<&[u8], Status> {
    let (head, rest) = body.split_first_chunk::<5>().ok_or_else(|| Status::internal("Missing request message."))?;
    let [kind, length @ ..] = *head;
    if kind != 0 {
        return Err(Status { code: 12, message: "compressed messages are not supported".to_owned() });
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    rest.get(..length).filter(|message| message.len() == rest.len()).ok_or_else(|| Status::internal("Unexpected EOF decoding stream."))
}

fn framed(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[kind][..], &length, content].concat()
}

/// Percent-encodes what a header cannot have.
fn escaped(text: &str) -> String {
    let one = |byte: u8| {
        if (b' '..=b'~').contains(&byte) && byte != b'%' { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(one).collect()
}
