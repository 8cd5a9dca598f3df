//! `TransactionData` version 1: the verified kind with the sender, the wallet's gas and an expiration.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::address::parse_solana;
use countersign_core::json::{At, Node};
use countersign_core::{Code, Refusal};
use serde::ser::{Serialize, SerializeMap, Serializer};
use sui_sdk_types::hash::Hasher;
use sui_sdk_types::{Address, Digest, GasPayment, Input, ObjectReference, Transaction, TransactionExpiration, TransactionKind};

use crate::address;
use crate::verify::Deposit;

/// Most coins that may pay for one transaction (Sui's `max_gas_payment_objects`).
pub const MAX_GAS_COINS: usize = 256;

/// Intent of a transaction: scope 0, version 0, app 0.
const INTENT: [u8; 3] = [0; 3];
/// What a transaction's digest is taken over, before its bytes.
const DIGEST_SALT: &[u8] = b"TransactionData::";

/// What only the wallet knows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wallet {
    /// MIST per unit of gas, at least the network's reference price.
    pub gas_price: u64,
    /// Most MIST that the transaction may cost.
    pub gas_budget: u64,
    /// The coins that pay: 1 to [`MAX_GAS_COINS`], distinct. The first one is left, the others are merged into it.
    pub gas_payment: Vec<ObjectReference>,
    /// Who owns these coins, where it is not the sender: the transaction then needs this account's signature too.
    pub sponsor: Option<Address>,
    /// The last epoch in which the transaction may be executed.
    pub expiration_epoch: Option<u64>,
}

impl Wallet {
    /// A wallet context whose own coins pay, without expiration.
    #[must_use]
    pub const fn new(gas_price: u64, gas_budget: u64, gas_payment: Vec<ObjectReference>) -> Self {
        Self { gas_price, gas_budget, gas_payment, sponsor: None, expiration_epoch: None }
    }

    pub(crate) fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let narrow = |node: Node<'_, '_>, wide: countersign_core::U256| u64::try_from(wide).map_err(|_| node.refuse(Code::NumberTooLarge));
        let mist = |node: Node<'_, '_>| narrow(node, node.decimal()?);
        let payment = members.need("gas_payment")?;
        let coins = payment.array()?;
        if !(1..=MAX_GAS_COINS).contains(&coins.len()) {
            return Err(coin_count(payment.at(), coins.len()));
        }
        Ok(Self {
            gas_price: mist(members.need("gas_price")?)?,
            gas_budget: mist(members.need("gas_budget")?)?,
            gas_payment: coins.map(|coin| read_reference(&coin)).collect::<Result<_, _>>()?,
            sponsor: members.get("sponsor").map(address::read).transpose()?,
            expiration_epoch: members.get("expiration_epoch").map(|node| narrow(node, node.any_number()?)).transpose()?,
        })
    }

    /// As many coins as a transaction may carry, each once, and none that the transaction uses otherwise.
    fn check(&self, kind: &TransactionKind) -> Result<(), Refusal> {
        let wallet = At::root("/wallet");
        let at = wallet.key("gas_payment");
        if !(1..=MAX_GAS_COINS).contains(&self.gas_payment.len()) {
            return Err(coin_count(&at, self.gas_payment.len()));
        }
        let inputs: &[Input] = match kind {
            TransactionKind::ProgrammableTransaction(transaction) => &transaction.inputs,
            _ => &[],
        };
        let mut seen = BTreeSet::new();
        for (index, coin) in self.gas_payment.iter().enumerate() {
            let refuse = |code| Refusal::new(code, format!("{at}/{index}/object_id")).with_actual(coin.object_id());
            if !seen.insert(coin.object_id()) {
                return Err(refuse(Code::GasCoinTwice));
            }
            if inputs.iter().any(|input| object_of(input) == Some(*coin.object_id())) {
                return Err(refuse(Code::GasCoinIsInput));
            }
        }
        Ok(())
    }
}

fn coin_count(at: &At<'_>, got: usize) -> Refusal {
    at.refuse(Code::GasCoinCount).with_expected(format!("1 to {MAX_GAS_COINS} coins")).with_actual(got)
}

fn object_of(input: &Input) -> Option<Address> {
    match input {
        Input::ImmutableOrOwned(object) | Input::Receiving(object) => Some(*object.object_id()),
        Input::Shared(object) => Some(object.object_id()),
        _ => None,
    }
}

fn read_reference(node: &Node<'_, '_>) -> Result<ObjectReference, Refusal> {
    let members = node.object()?;
    let version = members.need("version")?;
    let digest = members.need("digest")?;
    Ok(ObjectReference::new(
        address::read(members.need("object_id")?)?,
        u64::try_from(version.any_number()?).map_err(|_| version.refuse(Code::NumberTooLarge))?,
        read_digest(&digest)?,
    ))
}

/// Base58 of exactly 32 bytes, as a Solana address is. The SDK's own reading takes shorter texts too.
fn read_digest(node: &Node<'_, '_>) -> Result<Digest, Refusal> {
    let bytes = parse_solana(node.text()?);
    bytes.map(Digest::new).map_err(|_| node.refuse(Code::ObjectDigestMalformed).with_expected("base58 of 32 bytes"))
}

/// A SUI coin of the wallet and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coin {
    /// Id, version and digest.
    pub reference: ObjectReference,
    /// MIST.
    pub balance: u64,
}

impl Coin {
    /// A coin.
    #[must_use]
    pub const fn new(reference: ObjectReference, balance: u64) -> Self {
        Self { reference, balance }
    }
}

/// Chooses the coins that pay: the fewest that cover `split + budget`, largest first, then dust, smallest first, as far as
/// there is room, which the transaction merges into the first coin.
///
/// `split` is what the transaction takes from the gas coin: the amount of a SUI deposit, zero for any other. Dust is a coin
/// that could not pay the budget alone. The answer depends on the coins, not on their order; one listed twice counts once.
///
/// # Errors
///
/// [`Code::InsufficientFunds`] at `/wallet/gas_payment` if the [`MAX_GAS_COINS`] largest coins do not cover it.
pub fn choose_gas(coins: &[Coin], split: u64, budget: u64) -> Result<Vec<ObjectReference>, Refusal> {
    let need = u128::from(split).saturating_add(u128::from(budget));
    let mut sorted: Vec<&Coin> = coins.iter().collect();
    sorted.sort_unstable_by_key(|coin| (std::cmp::Reverse(coin.balance), coin.reference.object_id(), coin.reference.version()));
    let mut seen = BTreeSet::new();
    sorted.retain(|coin| seen.insert(coin.reference.object_id()));

    let mut held = 0_u128;
    let mut chosen = Vec::new();
    let mut rest = sorted.into_iter();
    while held < need || chosen.is_empty() {
        match rest.next() {
            Some(coin) if chosen.len() < MAX_GAS_COINS => {
                held = held.saturating_add(u128::from(coin.balance));
                chosen.push(coin.reference.clone());
            }
            _ => {
                return Err(Refusal::new(Code::InsufficientFunds, "/wallet/gas_payment")
                    .with_expected(format!("at least {need} MIST in at most {MAX_GAS_COINS} coins"))
                    .with_actual(held));
            }
        }
    }
    let room = MAX_GAS_COINS.saturating_sub(chosen.len());
    chosen.extend(rest.rev().take_while(|coin| coin.balance < budget).take(room).map(|coin| coin.reference.clone()));
    Ok(chosen)
}

/// A transaction with its bytes and digests, ready for any signer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsigned {
    /// Inputs and commands.
    pub kind: Arc<TransactionKind>,
    /// Who sends.
    pub sender: Address,
    /// Who pays, with which coins.
    pub gas_payment: GasPayment,
    /// Until when the transaction may be executed.
    pub expiration: TransactionExpiration,
    /// BCS bytes of all this.
    pub bytes: Vec<u8>,
    /// What is signed: Blake2b-256 of the intent and the bytes.
    pub signing_digest: [u8; 32],
}

pub(crate) fn prepare(deposit: &Deposit, wallet: &Wallet) -> Result<Unsigned, Refusal> {
    Unsigned::new(Arc::clone(&deposit.kind), &deposit.kind_bytes, deposit.sender, wallet)
}

impl Unsigned {
    /// `kind_bytes` are the kind's own, which stand in the transaction as they are.
    pub(crate) fn new(kind: Arc<TransactionKind>, kind_bytes: &[u8], sender: Address, wallet: &Wallet) -> Result<Self, Refusal> {
        wallet.check(&kind)?;
        let gas_payment = GasPayment {
            objects: wallet.gas_payment.clone(),
            owner: wallet.sponsor.unwrap_or(sender),
            price: wallet.gas_price,
            budget: wallet.gas_budget,
        };
        let expiration = wallet.expiration_epoch.map_or(TransactionExpiration::None, TransactionExpiration::Epoch);
        // Version 1, kind, sender, gas, expiration; BCS writes members one after the other.
        let mut bytes = Vec::with_capacity(kind_bytes.len().saturating_add(256));
        bytes.push(0);
        bytes.extend_from_slice(kind_bytes);
        bcs::serialize_into(&mut bytes, &(sender, &gas_payment, &expiration)).map_err(|_| Refusal::new(Code::Internal, "/wallet"))?;
        let signing_digest = blake2b(&INTENT, &bytes).into_inner();
        Ok(Self { kind, sender, gas_payment, expiration, bytes, signing_digest })
    }

    /// The transaction as Mysten's own type.
    #[must_use]
    pub fn transaction(&self) -> Transaction {
        let Self { kind, sender, gas_payment, expiration, .. } = self;
        Transaction { kind: kind.as_ref().clone(), sender: *sender, gas_payment: gas_payment.clone(), expiration: expiration.clone() }
    }

    /// How the network names the transaction.
    #[must_use]
    pub fn digest(&self) -> Digest {
        blake2b(DIGEST_SALT, &self.bytes)
    }

    /// The account that pays for the sender, where it is another one.
    #[must_use]
    pub fn sponsor(&self) -> Option<Address> {
        Some(self.gas_payment.owner).filter(|owner| *owner != self.sender)
    }

    /// The bytes that the signing digest is taken of: intent and transaction.
    #[must_use]
    pub fn intent_message(&self) -> Vec<u8> {
        [&INTENT[..], &self.bytes].concat()
    }

    /// The bytes in base64, as nodes take them.
    #[must_use]
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }

    pub(crate) fn serialize_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("transaction_data", &self.base64())?;
        map.serialize_entry("signing_digest", &hex::encode(self.signing_digest))?;
        map.serialize_entry("tx_digest", &self.digest().to_base58())
    }
}

fn blake2b(prefix: &[u8], bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(prefix);
    hasher.update(bytes);
    hasher.finalize()
}

impl Serialize for Unsigned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Members<'u>(&'u Unsigned);
        impl Serialize for Members<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                self.0.serialize_members(&mut map)?;
                map.end()
            }
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("transaction", &Members(self))?;
        map.end()
    }
}
