//! The states of an order for the language bindings, which hold objects and exchange JSON text.
//!
//! Documents go in as bytes of JSON, never as parsed objects, because parsing loses duplicate keys and the spelling of numbers.
//! Everything that comes out is a small serializable struct. [`countersign`] makes all decisions; nothing is decided here.
//!
//! ```
//! use countersign_json::objects::{self, Documents};
//! # let case: serde_json::Value = serde_json::from_str(include_str!("../../../../fixtures/accept/evm.jsonl").lines().next().unwrap())?;
//! # let [request, response, wallet] = ["request", "response", "wallet"].map(|member| case[member].to_string());
//! # let key = case["wallet"]["secret_key"].as_str().unwrap();
//! let registry = objects::registry(include_bytes!("../../../../fixtures/registry.json"))?;
//! let policy = objects::policy(b"{}")?;
//! let order = objects::verify(&Documents::new(request.as_bytes(), response.as_bytes()), &registry, &policy)?;
//! for line in objects::summary(&order.summary()) {
//!     println!("{}: {}", line.topic, line.text);
//! }
//! let mut unsigned = objects::prepare(&order, wallet.as_bytes())?;
//! objects::sign(&mut unsigned, key)?;
//! let signed = objects::finish(unsigned).map_err(|refused| refused.1)?;
//! assert!(!signed.broadcasts().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod external;
mod fields;
mod key;
mod native;
mod reader;
mod record;
mod shapes;
pub mod words;

use countersign::recover::{self, Leg, Recovery};
use countersign::{CreateOrder, OrderRecord, Policy, Proposal, Refusal, Registry, Signed, Unsigned, Verified, number};
use countersign_core::json::{self, Cursor};

use crate::dispatch::{self, Artefacts};
use crate::line::Outcome;

pub use external::{find_payment, match_with_warnings, matches};
pub use fields::{
    Convert, Coverage, Decimal, Htlc, HtlcTerms, Line, Matched, NativePayload, Notice, PinChange, Proof, Request, Terms, Transaction, Value,
};
pub use key::{Key, key_text, secret_text, sign_with};
pub use native::wallet_calls;
pub use reader::{Answer, Ask, Quorum, Reader, answers, error_answer, split_batch};
pub use record::{Record, htlc_terms, verify_record};
pub use shapes::{Failure, coverage, summary, terms, warnings};

/// The documents of one order, as bytes of JSON.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Documents<'d> {
    /// The wallet's create-order request.
    pub request: &'d [u8],
    /// The service's response, in its envelope.
    pub response: &'d [u8],
    /// The order record, bare or in its envelope.
    pub record: Option<&'d [u8]>,
}

impl<'d> Documents<'d> {
    /// Creates the documents of an order without a record.
    #[must_use]
    pub const fn new(request: &'d [u8], response: &'d [u8]) -> Self {
        Self { request, response, record: None }
    }

    /// Adds the order record.
    #[must_use]
    pub const fn with_record(mut self, record: Option<&'d [u8]>) -> Self {
        self.record = record;
        self
    }

    /// Parses the request, and calls `verify` with the proposal made from the documents.
    fn open<T>(&self, verify: impl FnOnce(Proposal<'_>) -> Result<T, Refusal>) -> Result<T, Failure> {
        let request = CreateOrder::from_json(self.request).map_err(|refusal| refusal.with_prefix("/request"))?;
        let mut proposal = Proposal::new(&request, self.response);
        if let Some(record) = self.record {
            proposal = proposal.with_record(record);
        }
        Ok(verify(proposal)?)
    }
}

/// Parses a registry file.
///
/// # Errors
///
/// [`Failure`] at the first member that is malformed or contradictory.
pub fn registry(text: &[u8]) -> Result<Registry, Failure> {
    Ok(Registry::from_json(text)?)
}

/// Returns everything in a newer registry that differs from what is pinned, sorted by entry and member: see [`Registry::diff`].
#[must_use]
pub fn registry_diff(pinned: &Registry, newer: &Registry) -> Vec<PinChange> {
    let change = |change: countersign::trust::Change| PinChange {
        entry: change.entry,
        field: change.field.to_owned(),
        old: change.old,
        new: change.new,
    };
    pinned.diff(newer).into_iter().map(change).collect()
}

/// Parses a policy file. `{}` gives the default policy.
///
/// # Errors
///
/// [`Failure`] at the first member that is malformed or unknown.
pub fn policy(text: &[u8]) -> Result<Policy, Failure> {
    Ok(Policy::from_json(text)?)
}

/// Verifies an order: see [`countersign::verify`].
///
/// # Errors
///
/// [`Failure`] at the first member or byte that is malformed, unknown or contradictory.
pub fn verify(documents: &Documents<'_>, registry: &Registry, policy: &Policy) -> Result<Verified, Failure> {
    policy.check_names(registry)?;
    documents.open(|proposal| countersign::verify(proposal, registry, policy))
}

/// Prepares a verified order with the wallet context of its family (`docs/spec/batch.md#wallet-contexts`). The order can be prepared
/// again when nonce or fees change.
///
/// # Errors
///
/// [`Failure`] at the member of `/wallet` that is missing, malformed or invalid.
pub fn prepare(order: &Verified, wallet: &[u8]) -> Result<Unsigned, Failure> {
    with_json(wallet, "/wallet", |wallet| dispatch::prepare(order, wallet))
}

/// Prepares the gasless path of a verified order, for which a wallet needs neither nonce nor fees.
///
/// # Errors
///
/// [`Failure`] with the code `nothing_to_sign` if the order does not offer the gasless path, or if the family has none.
pub fn prepare_gasless(order: &Verified) -> Result<Unsigned, Failure> {
    Ok(native::prepare_gasless(order)?)
}

/// Returns the signing requests, in the order in which payloads are sent.
#[must_use]
pub fn requests(order: &Unsigned) -> Vec<Request> {
    native::requests(order)
}

/// Signs everything that a local key can sign. The key has the text form of `docs/spec/batch.md#keys`.
///
/// # Errors
///
/// [`Failure`] with the code `key_malformed`, `key_mismatch`, `nothing_to_sign` or `warning_refused`. It never contains any part of the
/// key.
pub fn sign(order: &mut Unsigned, key: &str) -> Result<(), Failure> {
    Ok(dispatch::sign(order, key)?)
}

/// Checks that an external signer's signature is over exactly the requested payload, and attaches it. A refused signature changes
/// nothing.
///
/// The signature is text in its family's usual form, or the JSON text of an object or array: `{"r": .., "s": .., "v": ..}` on EVM and Tron,
/// `{"contract": "0x.."}` on EVM, `{"r": .., "s": ..}` or felts on Starknet, `{"signature": .., "public_key": ..}` on EVM, Tron and Bitcoin. A
/// signed PSBT or transaction on Bitcoin has the name `psbt`.
///
/// # Errors
///
/// [`Failure`] at the signature, or with the code `nothing_to_sign` if no request has this name.
pub fn attach(order: &mut Unsigned, name: &str, signature: &str) -> Result<(), Failure> {
    let name = serde_json::Value::from(name);
    let signatures = if signature.trim_start().starts_with(['{', '[']) {
        // More than one value would be signatures of other requests too.
        with_json(signature.as_bytes(), "/signatures", |_| Ok(()))?;
        format!("{{{name}:{signature}}}")
    } else {
        format!("{{{name}:{}}}", serde_json::Value::from(signature))
    };
    with_json(signatures.as_bytes(), "/signatures", |signatures| dispatch::attach(order, signatures))
}

/// Takes the signatures out of a transaction that an external signer has signed, checks each as [`attach`] does, and attaches them. Returns
/// the names of their requests. [`Unsigned::attach_transaction`] says what the bytes are in each family.
///
/// # Errors
///
/// [`Failure`] at `/transaction`, with the code `transaction_mismatch` or `psbt_mismatch` if it is not a payload of this order, or with the
/// code of the refused signature. A refused transaction changes nothing.
pub fn attach_transaction(order: &mut Unsigned, transaction: &[u8]) -> Result<Vec<String>, Failure> {
    let attached = order.attach_transaction(transaction).map_err(|refusal| refusal.with_prefix("/transaction"))?;
    Ok(attached.iter().map(ToString::to_string).collect())
}

/// Returns the artefacts with the signatures so far, as JSON text (`docs/spec/batch.md#artefacts`).
#[must_use]
pub fn artefacts(order: &Unsigned) -> String {
    to_json(&Artefacts(order))
}

/// Combines the payloads with their signatures.
///
/// # Errors
///
/// The unchanged order, and a [`Failure`] with the code `signature_missing` that names the missing ones.
pub fn finish(order: Unsigned) -> Result<Signed, Box<(Unsigned, Failure)>> {
    order.finish().map_err(|incomplete| {
        let failure = Failure::signature_missing(incomplete.to_string());
        Box::new((incomplete.into_unsigned(), failure))
    })
}

/// Returns the transactions in the order in which they are broadcast.
#[must_use]
pub fn transactions(order: &Signed) -> Vec<Transaction> {
    order.broadcasts().into_iter().map(Transaction::from).collect()
}

/// Returns the signature that is sent to the service on the gasless path; `None` if the wallet chose another path.
#[must_use]
pub fn gasless(order: &Signed) -> Option<String> {
    order.gasless().map(|submission| submission.signature)
}

/// Creates the recovery that refunds a leg after its timelock, from the record alone. `leg` is `source` or `destination`.
///
/// # Errors
///
/// [`Failure`] as for [`countersign::recover::refund`], or with the code `usage` if the leg is neither `source` nor
/// `destination`.
pub fn refund(record: &[u8], leg: &str, registry: &Registry) -> Result<Recovery, Failure> {
    let leg = read_leg(leg)?;
    let record = read_record(record)?;
    Ok(recover::refund(&record, leg, registry)?)
}

/// Creates the recovery that redeems a leg with the secret, which is 64 hex digits, with or without `0x`. Broadcasting the recovery
/// makes the secret public.
///
/// # Errors
///
/// [`Failure`] as for [`countersign::recover::redeem`] and [`refund`]. It never contains any part of the secret.
pub fn redeem(record: &[u8], leg: &str, secret: &str, registry: &Registry) -> Result<Recovery, Failure> {
    let leg = read_leg(leg)?;
    let record = read_record(record)?;
    crate::wipe::with_wiped_stack(|| {
        let secret = number::bare_hex_array::<32>(secret.strip_prefix("0x").unwrap_or(secret));
        let secret = zeroize::Zeroizing::new(secret.map_err(|error| Refusal::new(error, "/secret"))?);
        Ok(recover::redeem(&record, leg, &secret, registry)?)
    })
}

/// Prepares a recovery with a wallet context (`docs/spec/batch.md#recovery-contexts`).
///
/// # Errors
///
/// [`Failure`] at the member of `/wallet` that is missing, unknown, malformed or invalid.
pub fn prepare_recovery(recovery: &Recovery, wallet: &[u8], policy: &Policy) -> Result<Unsigned, Failure> {
    with_json(wallet, "/wallet", |wallet| crate::prepare_recovery(recovery, wallet, policy))
}

/// Returns the output line of `countersign batch` for an input line, without the line feed.
#[must_use]
pub fn verify_line(line: &[u8], registry: &Registry, policy: &Policy) -> String {
    to_json(&Outcome::from_line(line, registry, policy))
}

fn read_record(text: &[u8]) -> Result<OrderRecord, Refusal> {
    OrderRecord::from_json(text).map_err(|refusal| refusal.with_prefix("/order"))
}

fn read_leg(name: &str) -> Result<Leg, Failure> {
    match name {
        "source" => Ok(Leg::Source),
        "destination" => Ok(Leg::Destination),
        _ => Err(Failure::usage("/leg", "source or destination")),
    }
}

/// Parses a document and calls `read` with its root.
fn with_json<T>(text: &[u8], at: &str, read: impl FnOnce(Cursor<'_, '_>) -> Result<T, Refusal>) -> Result<T, Failure> {
    let value = json::parse(text).map_err(|refusal| refusal.with_prefix(at))?;
    Ok(read(Cursor::root(&value, at))?)
}

/// Serializes a value with string keys and no fallible members.
pub(crate) fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
