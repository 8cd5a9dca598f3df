//! Why a signer of a chain's own ecosystem did not sign.

use std::error::Error;
use std::fmt;

use crate::report::Refusal;

/// Why a foreign signer did not sign. `E` is the signer's own error.
///
/// The message contains the cause, so [`source`](Error::source) is the cause's own source.
///
/// ```
/// use countersign::{Code, Refusal, SignerError};
///
/// let locked = SignerError::Signer("the device is locked");
/// assert_eq!(locked.to_string(), "the signer failed: the device is locked");
/// let wrong = SignerError::<String>::from(Refusal::new(Code::SignatureMismatch, ""));
/// assert!(wrong.to_string().contains("signature_mismatch"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum SignerError<E> {
    /// The signer failed.
    Signer(E),
    /// The signer controls another account, or its signature is not over the requested payload.
    Refused(Refusal),
}

impl<E: fmt::Display> fmt::Display for SignerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signer(error) => write!(f, "the signer failed: {error}"),
            Self::Refused(refusal) => write!(f, "the signature was refused: {refusal}"),
        }
    }
}

impl<E: Error + 'static> Error for SignerError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Signer(error) => error.source(),
            Self::Refused(refusal) => refusal.source(),
        }
    }
}

impl<E> From<Refusal> for SignerError<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
