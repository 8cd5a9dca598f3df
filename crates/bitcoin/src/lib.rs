#![doc = include_str!("../README.md")]

pub mod address;
pub mod htlc;
pub mod message;
pub mod recover;
mod sign;
mod summary;
pub mod transaction;
mod verify;
mod wire;

pub use bitcoin;
pub use sign::{Artefacts, Key, Signature, Signed};
pub use summary::describe_payment;
pub use transaction::{FeeRate, Payment, Unsigned, Utxo, Wallet};
pub use verify::Deposit;

use countersign_core::json::Node;
use countersign_core::{ChainFamily, Code, Family, Order, Refusal, SigningRequest, ByteCoverage, Summary, Terms, Warnings};

/// The Bitcoin family, Litecoin in it: see the crate's documentation.
#[derive(Debug, Clone, Copy)]
pub enum Bitcoin {}

impl ChainFamily for Bitcoin {
    const FAMILY: Family = Family::Bitcoin;
    const PAYLOAD_KEYS: &'static [&'static str] = &wire::KEYS;

    type Deposit = Deposit;
    type Wallet = Wallet;
    type Unsigned = Unsigned;
    type Key = Key;
    type Signature = Signature;
    type Artefacts = Artefacts;

    fn check(order: &Order<'_>, warnings: &mut Warnings) -> Result<(Deposit, Option<Terms>), Refusal> {
        verify::check(order, warnings)
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

    fn read_signature(signature: Node<'_, '_>) -> Result<Signature, Refusal> {
        Signature::read(&signature)
    }

    fn attach(unsigned: Unsigned, signatures: Vec<(String, Signature)>, _: &mut Warnings) -> Result<Artefacts, Refusal> {
        sign::attach(unsigned, &signatures)
    }
}
