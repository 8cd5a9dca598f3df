//! gRPC-web over HTTP/1.1: frames, trailers, and the base64 encoding that browser clients use by default.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use tonic::Status;

use crate::http::{Reply, Request};

/// The maximum length of a request's message. The longest transaction takes half of it. Empty messages inside take
/// far more memory once decoded.
const MAX_MESSAGE: usize = 256 << 10;

/// Decodes a request's message, calls the method, and encodes its answer.
pub(super) fn method<Q: Message + Default, A: Message>(
    bytes: &[u8],
    method: impl FnOnce(&Q) -> Result<A, Status>,
) -> Result<Vec<u8>, Status> {
    let request = Q::decode(bytes).map_err(|error| Status::internal(error.to_string()))?;
    Ok(method(&request)?.encode_to_vec())
}

/// Answers a call of `/package.Service/Method`.
pub(super) fn answer(request: &Request, call: impl FnOnce(&str, &[u8]) -> Result<Vec<u8>, Status>) -> Reply {
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
        Ok(message) => (Status::ok(""), framed(0, &message)),
        Err(status) => (status, Vec::new()),
    };
    frames.extend(framed(0x80, trailers(&status).as_bytes()));
    let body = if is_text { STANDARD.encode(frames).into_bytes() } else { frames };
    Reply::new(200, if is_text { "application/grpc-web-text+proto" } else { "application/grpc-web+proto" }, body)
}

fn trailers(status: &Status) -> String {
    let mut headers = HeaderMap::new();
    // Characters that headers cannot have are percent-encoded, so this does not fail.
    status.add_header(&mut headers).unwrap_or_default();
    headers.iter().map(|(name, value)| format!("{name}:{}\r\n", value.to_str().unwrap_or_default())).collect()
}

/// Returns a reply with its message changed. Errors stay as they are.
pub(super) fn with_changed<M: Message + Default>(reply: Reply, change: impl FnOnce(&mut M)) -> Reply {
    let is_text = reply.headers.iter().any(|(_, value)| value.starts_with("application/grpc-web-text"));
    let body = if is_text { STANDARD.decode(&reply.body).ok() } else { Some(reply.body.clone()) };
    let parts = body.as_deref().and_then(|body| {
        let (&[0, a, b, c, d], rest) = body.split_first_chunk::<5>()? else { return None };
        rest.split_at_checked(usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?)
    });
    let Some((mut message, trailers)) = parts.and_then(|(message, trailers)| Some((M::decode(message).ok()?, trailers))) else {
        return reply;
    };
    change(&mut message);
    let body = [&framed(0, &message.encode_to_vec()), trailers].concat();
    Reply { body: if is_text { STANDARD.encode(body).into_bytes() } else { body }, ..reply }
}

/// Returns the only frame of a request body.
fn frame(body: &[u8]) -> Result<&[u8], Status> {
    let (head, rest) = body.split_first_chunk::<5>().ok_or_else(|| Status::internal("Missing request message."))?;
    let [kind, length @ ..] = *head;
    if kind != 0 {
        return Err(Status::unimplemented("compressed messages are not supported"));
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE {
        return Err(Status::out_of_range(format!("decoded message length too large: the limit is {MAX_MESSAGE} bytes")));
    }
    rest.get(..length).filter(|message| message.len() == rest.len()).ok_or_else(|| Status::internal("Unexpected EOF decoding stream."))
}

fn framed(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[kind][..], &length, content].concat()
}
