#![doc = include_str!("../README.md")]

pub mod address;
mod encoding;
mod extra;
pub mod htlc;
pub mod message;
pub mod recover;
mod sign;
mod summary;
pub mod transaction;
mod verify;
mod wire;

pub use address::Address;
pub use extra::Extra;
pub use sign::{Artefacts, Key, ExternalSignature, SignedGasless, SignedTransaction, Submission};
pub use solana_hash;
pub use solana_instruction;
pub use solana_message;
pub use solana_signature;
#[cfg(feature = "solana-signer")]
pub use solana_signer;
pub use solana_transaction;
pub use transaction::{Payload, Unsigned, Wallet};
pub use verify::{Deposit, Proposal};
pub use wire::Encoding;

use countersign_core::json::Node;
use countersign_core::{ChainFamily, Code, Family, Order, Refusal, SigningRequest, ByteCoverage, Summary, Terms, Warnings};

/// The Solana family: see the crate's documentation.
#[derive(Debug, Clone, Copy)]
pub enum Solana {}

impl ChainFamily for Solana {
    const FAMILY: Family = Family::Solana;
    const PAYLOAD_KEYS: &'static [&'static str] = &wire::KEYS;

    type Deposit = Deposit;
    type Wallet = Wallet;
    type Unsigned = Unsigned;
    type Key = Key;
    type Signature = ExternalSignature;
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

    fn sign(unsigned: Unsigned, key: &Key, _: &mut Warnings) -> Result<Artefacts, Refusal> {
        sign::sign(unsigned, key)
    }

    fn read_signature(signature: Node<'_, '_>) -> Result<ExternalSignature, Refusal> {
        ExternalSignature::read(signature)
    }

    fn attach(unsigned: Unsigned, signatures: Vec<(String, ExternalSignature)>, _: &mut Warnings) -> Result<Artefacts, Refusal> {
        sign::attach(unsigned, signatures)
    }

    fn submission(artefacts: &Artefacts) -> Option<String> {
        artefacts.submission().map(|submission| submission.signature)
    }
}
