//! Signatures of contract wallets: the wrapper for an account that may not be deployed yet (ERC-6492).
//!
//! The wrapper is `abi.encode(factory, factoryCalldata, signature)` and 32 bytes that say so. A verifier that knows ERC-6492 deploys the
//! account and then asks it. The swap contract does not: it asks the account about the signature as it is.
//!
//! Specification: <https://eips.ethereum.org/EIPS/eip-6492>

use alloy_primitives::{Bytes, U256};
use countersign_core::{Code, Refusal};

/// The last 32 bytes of a signature in the wrapper: `6492`, 16 times.
const MARK: [u8; 32] =
    *b"\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92\x64\x92";

/// Returns whether a signature is in the wrapper of ERC-6492.
pub(super) fn is_undeployed(signature: &[u8]) -> bool {
    signature.ends_with(&MARK)
}

/// Returns a contract wallet's signature as the swap contract can pass it on: outside the wrapper of ERC-6492. `has_code` is what the chain
/// shows of the account.
///
/// Wallets wrap the signatures of deployed accounts, too, so the wrapper does not tell whether the account has code.
///
/// # Errors
///
/// [`Code::AccountNotDeployed`] for a wrapped signature if the account has no code, or if that is not known;
/// [`Code::SignatureMalformed`] if the wrapper is malformed.
pub fn for_account(signature: &Bytes, has_code: Option<bool>) -> Result<Bytes, Refusal> {
    match has_code {
        _ if !is_undeployed(signature) => Ok(signature.clone()),
        Some(true) => without_wrapper(signature),
        Some(false) => Err(Refusal::new(Code::AccountNotDeployed, "").with_reason(NO_CODE)),
        None => Err(Refusal::new(Code::AccountNotDeployed, "")),
    }
}

/// Why the signature of a contract wallet does not count.
pub const NO_CODE: &str = "the account has no code on this chain, so the signature of a contract wallet does not count";

/// Takes the wrapper of ERC-6492 off the signature of an account that is deployed. A signature without it is returned as it is.
///
/// The factory and its calldata are dropped: a deployed account needs neither, and the swap contract never sees them.
///
/// # Errors
///
/// [`Code::SignatureMalformed`] if the wrapper does not hold a factory, its calldata and a signature.
pub(super) fn without_wrapper(signature: &Bytes) -> Result<Bytes, Refusal> {
    let Some(wrapped) = signature.strip_suffix(&MARK) else { return Ok(signature.clone()) };
    let inner = bytes_at(wrapped, 1).and_then(|_| bytes_at(wrapped, 2));
    let refuse = || Refusal::new(Code::SignatureMalformed, "").with_expected("a factory, its calldata and a signature (ERC-6492)");
    inner.map(Bytes::copy_from_slice).ok_or_else(refuse)
}

/// Returns the bytes of the argument with this index, which the head has as an offset.
fn bytes_at(encoded: &[u8], index: usize) -> Option<&[u8]> {
    let number = |start: usize| {
        let word = encoded.get(start..start.checked_add(32)?)?;
        usize::try_from(U256::from_be_slice(word)).ok()
    };
    let at = number(index.checked_mul(32)?)?;
    let start = at.checked_add(32)?;
    encoded.get(start..start.checked_add(number(at)?)?)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, address};
    use alloy_sol_types::SolValue as _;

    use super::*;

    const FACTORY: Address = address!("1111111111111111111111111111111111111111");

    /// Encodes as the ABI library does, which knows nothing of this module.
    fn wrapped(signature: &[u8]) -> Bytes {
        let mut bytes = (FACTORY, Bytes::from(vec![0xca; 68]), Bytes::copy_from_slice(signature)).abi_encode_params();
        bytes.extend(MARK);
        bytes.into()
    }

    #[test]
    fn the_wrapper_is_taken_off() {
        for len in [0, 1, 32, 65, 320] {
            let signature = Bytes::from(vec![0xab; len]);
            assert!(is_undeployed(&wrapped(&signature)) && !is_undeployed(&signature));
            assert_eq!(without_wrapper(&wrapped(&signature)).unwrap(), signature);
            assert_eq!(without_wrapper(&signature).unwrap(), signature);
        }
    }

    /// What the chain shows decides, and nothing is guessed where it shows nothing.
    #[test]
    fn the_code_of_the_account_decides_about_the_wrapper() {
        let inner = Bytes::from(vec![0xab; 65]);
        let code = |has_code| for_account(&wrapped(&inner), has_code).map_err(|refusal| (refusal.code(), refusal.reason().to_owned()));
        assert_eq!(code(Some(true)), Ok(inner.clone()));
        assert_eq!(code(Some(false)), Err((Code::AccountNotDeployed, NO_CODE.to_owned())));
        assert_eq!(code(None), Err((Code::AccountNotDeployed, Code::AccountNotDeployed.meaning().to_owned())));
        for has_code in [Some(true), Some(false), None] {
            assert_eq!(for_account(&inner, has_code).unwrap(), inner, "without a wrapper there is nothing to decide");
        }
    }

    #[test]
    fn a_wrapper_that_is_cut_or_points_outside_is_refused() {
        let whole = wrapped(&[0xab; 65]);
        for at in 0..whole.len() - 32 {
            let mut cut = whole[..at].to_vec();
            cut.extend(MARK);
            // The padding behind the signature is all that may be missing.
            assert_eq!(without_wrapper(&cut.into()).is_ok(), at >= whole.len() - 32 - 31, "{at}");
        }
        for at in [32, 64, 96, 192, 224] {
            let mut far = whole.to_vec();
            far[at..at + 32].fill(0xff);
            let read = without_wrapper(&far.into());
            assert_eq!(read.map_err(|refusal| refusal.code()).is_err(), at != 192, "{at}");
        }
    }
}
