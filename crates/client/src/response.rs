//! Responses of the interface as results, independent of any HTTP stack.

use countersign::json::{self, Node};
use countersign::wire::{self, Read};
use countersign::{Code, Refusal, text};

use crate::error::Error;
use crate::retry;
use crate::transport::Response;

/// A result and the body that it was read from: orders are verified from the bytes of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer<T> {
    /// The result that the body holds.
    pub value: T,
    /// The body as received, in its envelope.
    pub body: Vec<u8>,
}

/// Reads a response that should hold a `T`.
///
/// # Errors
///
/// [`Error::Status`], [`Error::Service`] or [`Error::Shape`].
pub fn read<T: Read>(response: Response) -> Result<Answer<T>, Error> {
    read_with(response, T::read)
}

/// Reads a response with a custom reader.
///
/// # Errors
///
/// As [`read`].
pub fn read_with<T>(response: Response, reader: impl FnOnce(Node<'_, '_>) -> Result<T, Refusal>) -> Result<Answer<T>, Error> {
    let body = ok(response)?;
    let value = open(&body, |envelope| wire::with_result(envelope, reader))?;
    Ok(Answer { value, body })
}

/// As [`read_with`], for responses that documentation also shows as `{"success":true,"result":..}`.
pub(crate) fn read_lenient<T>(response: Response, reader: impl FnOnce(Node<'_, '_>) -> Result<T, Refusal>) -> Result<Answer<T>, Error> {
    let body = ok(response)?;
    let value = open(&body, |envelope| {
        let members = envelope.object()?;
        match members.get("success") {
            Some(success) if members.get("status").is_none() && success.bool()? => reader(members.need("result")?),
            _ => wire::with_result(envelope, reader),
        }
    })?;
    Ok(Answer { value, body })
}

/// Reads an envelope whose result does not matter, or is a text: what `PATCH` and `/v2/health` return.
pub(crate) fn read_text(response: Response) -> Result<Answer<Option<String>>, Error> {
    let body = ok(response)?;
    let value = open(&body, |envelope| {
        let members = envelope.object()?;
        if members.get("result").is_none() && members.need("status")?.text()? == "Ok" && members.get("error").is_none() {
            return Ok(None);
        }
        wire::with_result(envelope, |result| Ok(result.text().ok().map(str::to_owned)))
    })?;
    Ok(Answer { value, body })
}

/// Returns the body of a 2xx response.
fn ok(response: Response) -> Result<Vec<u8>, Error> {
    let Response { status, retry_after, body, .. } = response;
    if (200..300).contains(&status) {
        return Ok(body);
    }
    let retry_after = retry_after.as_deref().and_then(retry::seconds);
    Err(match service_error(&body) {
        Some(error) => Error::Service { status, error, retry_after },
        None => {
            Error::Status { status, body: text::escape_untrusted(&String::from_utf8_lossy(body.get(..1024).unwrap_or(&body))), retry_after }
        }
    })
}

/// Returns the text of an error envelope.
fn service_error(body: &[u8]) -> Option<String> {
    let value = json::parse(body).ok()?;
    let error = Node::root(&value, "").object().ok()?.get("error")?.text().ok()?;
    Some(text::escape_untrusted(error))
}

fn open<T>(body: &[u8], reader: impl FnOnce(Node<'_, '_>) -> Result<T, Refusal>) -> Result<T, Error> {
    let value = json::parse(body).map_err(Error::Shape)?;
    reader(Node::root(&value, "")).map_err(|refusal| match refusal.code() {
        Code::ServiceError => {
            Error::Service { status: 200, error: refusal.actual().map(ToString::to_string).unwrap_or_default(), retry_after: None }
        }
        _ => Error::Shape(refusal),
    })
}
