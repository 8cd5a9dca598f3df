//! Reads and writes the JSON of the family that an order has.

use std::convert::identity;

use countersign::{Code, Context, Family, Key, Refusal, Unsigned, UnsignedOrder, Verified, for_each_family};
use countersign_core::json::{self, Cursor};
use serde::ser::{Error, Serialize, Serializer};

use crate::family::{ArtefactMembers, JsonFamily, attach_json, key_mismatch, prepare_json, sign_key, sign_text};

/// Evaluates an expression for the family of an order. If this build has no JSON of the family, `$error` turns a refusal into the
/// error.
macro_rules! each_family {
    ([$state:expr, $from:ident => |$order:ident| $body:expr, $error:expr] $($feature:literal $family:ident $module:ident,)*) => {
        match $state {
            $(#[cfg(feature = $feature)] $from::$family($order) => $body,)*
            other => Err($error($crate::dispatch::unsupported(other.family()))),
        }
    };
}
pub(crate) use each_family;

pub(crate) fn unsupported(family: Family) -> Refusal {
    Refusal::new(Code::UnsupportedFamily, "").with_actual(family)
}

/// Reads a wallet context of a family. If this build has no JSON of it, the family is not supported.
macro_rules! read_wallet {
    ([$family:expr, $wallet:expr] $($feature:literal $variant:ident $module:ident,)*) => {
        match $family {
            $(
                #[cfg(feature = $feature)]
                Family::$variant => countersign::$module::$variant::read_wallet($wallet).map(Context::$variant),
            )*
            other => Err(unsupported(other)),
        }
    };
}

/// Reads the wallet context of a case (`docs/spec/batch.md#wallet-contexts`) without its order. Where the family has a gasless path, the
/// context prepares both paths.
///
/// # Errors
///
/// A [`Refusal`] at the member of the context that is missing or malformed; [`Code::UnsupportedFamily`] if this build has no JSON of the
/// family.
pub fn read_context(family: Family, wallet: Cursor<'_, '_>) -> Result<Context, Refusal> {
    for_each_family! { read_wallet! [family, wallet] }
}

/// Evaluates an expression with the type `$json` of a family. `$otherwise` is for a family of which this build has no JSON.
macro_rules! of_family {
    ([$family:expr, $json:ident => $body:expr, $otherwise:expr] $($feature:literal $variant:ident $module:ident,)*) => {
        match $family {
            $(
                #[cfg(feature = $feature)]
                countersign::Family::$variant => {
                    type $json = countersign::$module::$variant;
                    $body
                }
            )*
            _ => $otherwise,
        }
    };
}
pub(crate) use of_family;

/// Returns the form of a family's keys, for people; `None` if this build has no JSON of the family.
#[must_use]
pub const fn key_form(family: Family) -> Option<&'static str> {
    for_each_family! { of_family! [family, Json => Some(Json::KEY_FORM), None] }
}

/// Returns which members of a family's artefacts hold what every family has; `None` if this build has no JSON of the family.
#[must_use]
pub const fn artefact_members(family: Family) -> Option<ArtefactMembers> {
    for_each_family! { of_family! [family, Json => Some(Json::ARTEFACT_MEMBERS), None] }
}

/// Returns for each family that this build has the name of its chains, and a wallet context of a recovery on one of them
/// (`docs/spec/batch.md#recovery-contexts`), for people.
#[must_use]
pub const fn recovery_examples() -> &'static [(&'static str, &'static str)] {
    macro_rules! examples {
        ([] $($feature:literal $family:ident $module:ident,)*) => {
            &[$(#[cfg(feature = $feature)] countersign::$module::$family::RECOVERY_EXAMPLE,)*]
        };
    }
    for_each_family! { examples! [] }
}

/// Reads the wallet context of a case (`docs/spec/batch.md#wallet-contexts`) and prepares the order with it.
///
/// # Errors
///
/// A [`Refusal`] at the member of `/wallet` that is missing, malformed or invalid.
pub fn prepare(order: &Verified, wallet: Cursor<'_, '_>) -> Result<Unsigned, Refusal> {
    for_each_family! { each_family! [order, Verified => |order| prepare_json(order, wallet).map(Unsigned::from), identity] }
}

/// Signs with the local key of a case (`docs/spec/batch.md#keys`).
///
/// # Errors
///
/// [`Code::KeyMalformed`] or [`Code::KeyMismatch`] at `/wallet/secret_key`; [`Code::NothingToSign`] if the wallet context leaves the
/// key nothing to sign; [`Code::WarningRefused`] for a warning that the policy refuses. No refusal contains any part of the key.
pub fn sign(order: &mut Unsigned, key: &str) -> Result<(), Refusal> {
    for_each_family! { each_family! [order, Unsigned => |order| sign_text(order, key), identity] }
}

/// Signs with a key that was parsed before: see [`sign`].
///
/// # Errors
///
/// As for [`sign`]; [`Code::KeyMismatch`] also if the key is of another family.
pub fn sign_with(order: &mut Unsigned, key: &Key) -> Result<(), Refusal> {
    macro_rules! both {
        ([] $($feature:literal $family:ident $module:ident,)*) => {
            match (order, key) {
                $(#[cfg(feature = $feature)] (Unsigned::$family(order), Key::$family(key)) => sign_key(order, key),)*
                _ => Err(key_mismatch("the key is of another chain family")),
            }
        };
    }
    for_each_family! { both! [] }
}

/// Checks and attaches signatures of external signers: an object from request name to signature
/// (`docs/spec/batch.md#external-signatures`).
///
/// # Errors
///
/// A [`Refusal`] at the signature; [`Code::NothingToSign`] for an unknown name; [`Code::SignatureCount`] if the object is empty.
pub fn attach(order: &mut Unsigned, signatures: Cursor<'_, '_>) -> Result<(), Refusal> {
    for_each_family! { each_family! [order, Unsigned => |order| attach_json(order, signatures), identity] }
}

/// Attaches what an external signer has written to a file: an object as [`attach`] takes it, or on Bitcoin-like chains a signed PSBT or the
/// signed transaction (`docs/spec/batch.md#external-signatures`).
///
/// # Errors
///
/// A [`Refusal`] as of [`attach`], with locations below `/signatures`; [`Code::TransactionMismatch`] or [`Code::PsbtMismatch`] for a file
/// that is not a payment of this order.
pub fn attach_file(order: &mut Unsigned, file: &[u8]) -> Result<(), Refusal> {
    let attached = match file.trim_ascii_start() {
        [] | [b'{', ..] => None,
        _ => (order.family() == Family::Bitcoin).then(|| order.attach_transaction(file)),
    };
    match attached {
        Some(attached) => attached.map(drop).map_err(|refusal| refusal.with_prefix("/signatures")),
        None => {
            let signatures = json::parse(file).map_err(|refusal| refusal.with_prefix("/signatures"))?;
            attach(order, Cursor::root(&signatures, "/signatures"))
        }
    }
}

/// The artefacts of an order with the signatures so far, serialized as in `docs/spec/batch.md#artefacts`.
#[derive(Debug, Clone, Copy)]
pub struct Artefacts<'a>(pub &'a Unsigned);

impl Serialize for Artefacts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        for_each_family! { each_family! [self.0, Unsigned => |order| serialize(order, serializer), S::Error::custom] }
    }
}

fn serialize<F: JsonFamily, S: Serializer>(order: &UnsignedOrder<F>, serializer: S) -> Result<S::Ok, S::Error> {
    F::serialize_artefacts(order.payloads(), serializer)
}
