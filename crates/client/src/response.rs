//! Parses the responses of the interface, independently of any HTTP stack (`docs/spec/service.md#envelopes`).

use countersign::json::{self, At, Cursor};
use countersign::wire::{self, Read};
use countersign::{Code, Refusal, report::Origin, text};

use crate::error::Error;
use crate::retry;
use countersign_transport::Response;

/// A body, which the service wrote.
const BODY: At<'_> = At::of("", Origin::Service);

/// A parsed result together with the body that contained it. Orders are verified from the bytes of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer<T> {
    /// The parsed result.
    pub value: T,
    /// The body as received, including its envelope.
    pub body: Vec<u8>,
}

/// Parses a response whose result is a `T`.
///
/// # Errors
///
/// [`Error::Status`] for a status other than 2xx, [`Error::Service`] for an error envelope, or [`Error::Shape`] for a body that is not
/// the documented JSON.
pub fn read<T: Read>(response: Response) -> Result<Answer<T>, Error> {
    read_with(response, T::read)
}

/// Parses a response with a custom reader for its result.
///
/// # Errors
///
/// As [`read`].
pub fn read_with<T>(response: Response, reader: impl FnOnce(Cursor<'_, '_>) -> Result<T, Refusal>) -> Result<Answer<T>, Error> {
    let body = ok(response)?;
    let value = open(&body, |envelope| wire::with_result(envelope, reader))?;
    Ok(Answer { value, body })
}

/// Like [`read_with`], for responses that the documentation also shows as `{"success":true,"result":..}`.
pub(crate) fn read_lenient<T>(response: Response, reader: impl FnOnce(Cursor<'_, '_>) -> Result<T, Refusal>) -> Result<Answer<T>, Error> {
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

/// Parses an envelope whose result is optional text, as `PATCH` and `/v2/health` return it. A result of another type counts as none.
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
    let error = Cursor::new(&value, BODY).object().ok()?.get("error")?.text().ok()?;
    Some(text::escape_untrusted(error))
}

fn open<T>(body: &[u8], reader: impl FnOnce(Cursor<'_, '_>) -> Result<T, Refusal>) -> Result<T, Error> {
    let value = json::parse(body).map_err(|refusal| Error::Shape(refusal.within(&BODY)))?;
    reader(Cursor::new(&value, BODY)).map_err(|refusal| match refusal.code() {
        Code::ServiceError => {
            Error::Service { status: 200, error: refusal.actual().map(ToString::to_string).unwrap_or_default(), retry_after: None }
        }
        _ => Error::Shape(refusal),
    })
}
