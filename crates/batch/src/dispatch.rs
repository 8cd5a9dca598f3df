//! The family of a state decides whose JSON is read and written.

use countersign::{Code, Refusal, Unsigned, Verified};
use countersign_core::json::Node;
use serde::{Serialize, Serializer};

use crate::family::{JsonArtefacts, attach_json, prepare_json, sign_text};

/// Evaluates an expression for whichever family a state has.
macro_rules! each_family {
    ($state:expr, $from:ident => |$order:ident| $body:expr) => {
        match $state {
            #[cfg(feature = "evm")]
            $from::Evm($order) => $body,
            #[cfg(feature = "tron")]
            $from::Tron($order) => $body,
            #[cfg(feature = "starknet")]
            $from::Starknet($order) => $body,
            #[cfg(feature = "solana")]
            $from::Solana($order) => $body,
            #[cfg(feature = "sui")]
            $from::Sui($order) => $body,
            #[cfg(feature = "bitcoin")]
            $from::Bitcoin($order) => $body,
            other => each_family!(@unsupported other),
        }
    };
    (@unsupported $other:ident) => {
        Err(Refusal::new(Code::UnsupportedFamily, "").with_actual($other.family()))
    };
}

/// Reads the wallet context of a case and prepares the order with it.
///
/// # Errors
///
/// A [`Refusal`] at the member of `/wallet` that is missing, malformed or invalid.
pub fn prepare(order: &Verified, wallet: Node<'_, '_>) -> Result<Unsigned, Refusal> {
    each_family!(order, Verified => |order| prepare_json(order, wallet).map(Unsigned::from))
}

/// Signs with the local key of a case.
///
/// # Errors
///
/// [`Code::KeyMalformed`] or [`Code::KeyMismatch`] at `/wallet/secret_key`, never with any part of the key.
pub fn sign(order: &mut Unsigned, key: &str) -> Result<(), Refusal> {
    each_family!(order, Unsigned => |order| sign_text(order, key))
}

/// Proves and attaches signatures of external signers: an object from request name to signature.
///
/// # Errors
///
/// A [`Refusal`] at `/signatures/<request>`; [`Code::SignatureCount`] if there is none.
pub fn attach(order: &mut Unsigned, signatures: Node<'_, '_>) -> Result<(), Refusal> {
    each_family!(order, Unsigned => |order| attach_json(order, signatures))
}

/// The artefacts of an order, with the signatures that are there: serializes as the contract has them.
#[derive(Debug, Clone, Copy)]
pub struct Artefacts<'a>(pub &'a Unsigned);

impl Serialize for Artefacts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let artefacts = self.0;
        match artefacts {
            #[cfg(feature = "evm")]
            Unsigned::Evm(order) => JsonArtefacts::<countersign::evm::Evm>(order.payloads()).serialize(serializer),
            #[cfg(feature = "tron")]
            Unsigned::Tron(order) => JsonArtefacts::<countersign::tron::Tron>(order.payloads()).serialize(serializer),
            #[cfg(feature = "starknet")]
            Unsigned::Starknet(order) => JsonArtefacts::<countersign::starknet::Starknet>(order.payloads()).serialize(serializer),
            #[cfg(feature = "solana")]
            Unsigned::Solana(order) => JsonArtefacts::<countersign::solana::Solana>(order.payloads()).serialize(serializer),
            #[cfg(feature = "sui")]
            Unsigned::Sui(order) => JsonArtefacts::<countersign::sui::Sui>(order.payloads()).serialize(serializer),
            #[cfg(feature = "bitcoin")]
            Unsigned::Bitcoin(order) => JsonArtefacts::<countersign::bitcoin::Bitcoin>(order.payloads()).serialize(serializer),
            other => Err(serde::ser::Error::custom(format_args!("this build writes no artefacts of family {}", other.family()))),
        }
    }
}
