//! Why a signer of a chain's own ecosystem did not sign.

use std::error::Error;
use std::fmt;

use crate::report::Refusal;

/// Why a foreign signer did not sign. `E` is the signer's own error.
#[derive(Debug)]
#[non_exhaustive]
pub enum SignerError<E> {
    /// The signer failed.
    Signer(E),
    /// The signer controls another account, or its signature is not over the requested payload.
    Refused(Refusal),
}

impl<E> fmt::Display for SignerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signer(_) => "the signer failed",
            Self::Refused(_) => "the signature was refused",
        })
    }
}

impl<E: Error + 'static> Error for SignerError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Signer(error) => Some(error),
            Self::Refused(refusal) => Some(refusal),
        }
    }
}

impl<E> From<Refusal> for SignerError<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
