#![doc = include_str!("../README.md")]

pub mod address;
pub mod felt;
pub mod htlc;
pub mod message;
pub mod recover;
mod sign;
mod summary;
pub mod transaction;
mod verify;
mod wire;

pub use sign::{Artefacts, Broadcast, Key, Signature, SignedInvoke, SignedMessage, Submission};
pub use starknet_crypto;
pub use starknet_crypto::Felt;
pub use transaction::{DataAvailabilityMode, Bound, Cairo, Call, Invoke, ResourceBounds, Unsigned, Wallet};
pub use verify::{Approval, Deposit};

use countersign_core::json::Node;
use countersign_core::{ChainFamily, Code, Family, Order, Refusal, SigningRequest, ByteCoverage, Summary, Terms, Warnings};

/// The Starknet family: see the crate's documentation.
#[derive(Debug, Clone, Copy)]
pub enum Starknet {}

impl ChainFamily for Starknet {
    const FAMILY: Family = Family::Starknet;
    const PAYLOAD_KEYS: &'static [&'static str] = &wire::KEYS;

    type Deposit = Deposit;
    type Wallet = Wallet;
    type Unsigned = Unsigned;
    type Key = Key;
    type Signature = Signature;
    type Artefacts = Artefacts;

    fn check(order: &Order<'_>, warnings: &mut Warnings) -> Result<(Deposit, Option<Terms>), Refusal> {
        verify::check(order, warnings).map(|(deposit, terms)| (deposit, Some(terms)))
    }

    fn describe(deposit: &Deposit, summary: &mut Summary) {
        summary::describe(deposit, summary);
    }

    fn coverage(deposit: &Deposit) -> Vec<ByteCoverage> {
        summary::coverage(deposit)
    }

    fn read_wallet(wallet: Node<'_, '_>) -> Result<Wallet, Refusal> {
        Wallet::read(wallet)
    }

    fn prepare(deposit: &Deposit, wallet: &Wallet) -> Result<Unsigned, Refusal> {
        transaction::prepare(deposit, wallet)
    }

    fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
        summary::describe_unsigned(unsigned, summary);
    }

    fn requests(unsigned: &Unsigned) -> Vec<SigningRequest> {
        sign::requests(unsigned)
    }

    fn read_key(text: &str) -> Result<Key, Code> {
        Key::parse(text)
    }

    fn sign(unsigned: Unsigned, key: &Key, warnings: &mut Warnings) -> Result<Artefacts, Refusal> {
        sign::sign(unsigned, key, warnings)
    }

    fn read_signature(signature: Node<'_, '_>) -> Result<Signature, Refusal> {
        Signature::read(signature)
    }

    fn attach(unsigned: Unsigned, signatures: Vec<(String, Signature)>, warnings: &mut Warnings) -> Result<Artefacts, Refusal> {
        sign::attach(unsigned, signatures, warnings)
    }

    fn submission(artefacts: &Artefacts) -> Option<String> {
        artefacts.submission().map(|submission| submission.signature)
    }
}
