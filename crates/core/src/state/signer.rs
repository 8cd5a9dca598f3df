//! Why a signer of a chain's own ecosystem did not sign.

use std::error::Error;
use std::fmt;

use crate::report::Refusal;

/// Why a foreign signer did not sign. `E` is the signer's own error.
///
/// It is an [`Error`] for every cause that can be shown, a text too. The message contains the cause, so it has no source of its own.
///
/// ```
/// use countersign::{Code, Refusal, SignerError};
///
/// let locked = SignerError::Signer("the device is locked");
/// assert_eq!(locked.to_string(), "the signer failed: the device is locked");
/// let wrong = SignerError::<String>::from(Refusal::new(Code::SignatureMismatch, ""));
/// assert!(wrong.to_string().contains("signature_mismatch"));
///
/// /// A device that says in words why it does not sign.
/// fn sign() -> Result<[u8; 64], String> {
///     Err("the device is locked".to_owned())
/// }
/// fn run() -> Result<(), Box<dyn std::error::Error>> {
///     sign().map_err(SignerError::Signer)?;
///     Ok(())
/// }
/// assert_eq!(run().unwrap_err().to_string(), "the signer failed: the device is locked");
/// ```
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

impl<E: fmt::Display> fmt::Debug for SignerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignerError({self})")
    }
}

impl<E: fmt::Display> Error for SignerError<E> {}

impl<E> From<Refusal> for SignerError<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
