//! Signers of starknet-rs, and of starknet-rust, its maintained fork.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use countersign_core::{Code, Policy, RequestId};
use countersign_starknet::{Felt, FundingPath, Gasless, SignerError, Starknet, UnsignedOrder};
use countersign_testkit::{Case, TestResult, fixture, verified, verified_under, wallet};

/// A case whose wallet gives the account's public key.
const CASE: &str = "starknet-public-key";

/// Completes a future that is ready at once.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

/// A runtime may move the future between its threads.
const fn sends<T: Send>(future: T) -> T {
    future
}

fn codes(order: &UnsignedOrder) -> Vec<Code> {
    order.warnings().list().iter().map(|warning| warning.code()).collect()
}

/// The tests of one crate's signers.
macro_rules! tests_of {
    ($sdk:ident) => {
        mod $sdk {
            use countersign_starknet::$sdk::{LocalWallet, SigningKey};

            use super::*;

            fn signer(case: &Case) -> LocalWallet {
                let secret = Felt::from_hex(&case.secret_key().expect("a key")).expect("a felt");
                LocalWallet::from(SigningKey::from_secret_scalar(secret))
            }

            #[test]
            fn a_local_wallet_signs_both_payloads() -> TestResult {
                let case = fixture::<Starknet>(CASE);
                let mut unsigned = verified::<Starknet>(&case).prepare(wallet::<Starknet>(&case))?;
                block_on(sends(unsigned.sign_with_async(&signer(&case))))?;
                assert_eq!(codes(&unsigned), [Code::NoOrderRecord]);
                let signed = unsigned.finish()?;
                let [sent] = signed.transactions().try_into().map_err(|_| "one transaction")?;
                assert_eq!(sent.native.signature.len(), 2);
                assert!(signed.gasless().is_some());
                Ok(())
            }

            #[test]
            fn an_unknown_public_key_is_a_warning_and_the_signature_still_proven() -> TestResult {
                let case = fixture::<Starknet>(CASE);
                let mut unsigned = verified::<Starknet>(&case).prepare(Gasless)?;
                block_on(unsigned.sign_with_async(&signer(&case)))?;
                assert_eq!(codes(&unsigned), [Code::NoOrderRecord, Code::KeyNotChecked]);
                assert!(unsigned.missing().is_empty());
                Ok(())
            }

            #[test]
            fn a_warning_that_the_policy_refuses_undoes_the_signature() -> TestResult {
                let case = fixture::<Starknet>(CASE);
                let mut policy = Policy::default();
                policy.refused_warnings.insert(Code::KeyNotChecked);
                let mut unsigned = verified_under::<Starknet>(&case, case.registry, &policy)?.prepare(Gasless)?;
                match block_on(unsigned.sign_with_async(&signer(&case))) {
                    Err(SignerError::Refused(refusal)) => assert_eq!(refusal.code(), Code::WarningRefused),
                    other => panic!("{other:?}"),
                }
                assert_eq!(codes(&unsigned), [Code::NoOrderRecord]);
                assert_eq!(unsigned.missing(), [RequestId::TypedData]);
                Ok(())
            }

            #[test]
            fn another_wallet_is_refused_before_it_is_asked() -> TestResult {
                let case = fixture::<Starknet>(CASE);
                let mut unsigned = verified::<Starknet>(&case).prepare(wallet::<Starknet>(&case))?;
                let other = LocalWallet::from(SigningKey::from_secret_scalar(Felt::from(5)));
                match block_on(unsigned.sign_with_async(&other)) {
                    Err(SignerError::Refused(refusal)) => assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, "")),
                    other => panic!("{other:?}"),
                }
                assert_eq!(unsigned.missing(), [RequestId::Invoke, RequestId::TypedData]);
                Ok(())
            }

            #[test]
            fn what_is_signed_already_stays() -> TestResult {
                let case = fixture::<Starknet>(CASE);
                let FundingPath::Both(mut execution) = wallet::<Starknet>(&case).path else { panic!("the contract prepares both") };
                execution.public_key = None;
                let mut unsigned = verified::<Starknet>(&case).prepare(FundingPath::Both(execution))?;
                // An account with guardians, whose signature only the account can verify.
                unsigned.attach_text(RequestId::Invoke, "1,2,3")?;
                block_on(unsigned.sign_with_async(&signer(&case)))?;
                let signed = unsigned.finish()?;
                assert_eq!(signed.transactions()[0].native.signature, [1_u8, 2, 3].map(Felt::from));
                Ok(())
            }
        }
    };
}

#[cfg(feature = "starknet-signer")]
tests_of!(starknet_signers);
#[cfg(feature = "starknet-rust-signer")]
tests_of!(starknet_rust_signers);
