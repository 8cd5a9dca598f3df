//! Decodes what the chain returns about one HTLC. No I/O.
//!
//! The orders registry keeps each order as a dynamic field: an object of its own, whose id follows from the registry's id and
//! from the order's. Its contents are 274 bytes:
//!
//! | bytes | field |
//! |---|---|
//! | 0..32 | id of the field object |
//! | 32..65 | the key: `20` and the order's id |
//! | 65..97 | id of the order object |
//! | 97 | whether the order has ended, 0 or 1 |
//! | 98..130 | initiator |
//! | 130..162 | redeemer |
//! | 162..170 | amount, little-endian, base units |
//! | 170..202 | when it was initiated, little-endian, Unix milliseconds |
//! | 202..234 | id of the coin that the order holds |
//! | 234..242 | what that coin holds, little-endian, base units; 0 once the order has ended |
//! | 242..274 | timelock, little-endian, milliseconds |
//!
//! The object stays when the order ends, so it does not say how: the events do. The secret hash is not stored. The id is a hash of
//! it, of every other term and of the registry: an order whose id follows from the expected terms has the expected secret hash.
//!
//! Everything else is [`Unclear`]: another type, another length, a value that the contract never stores.
//!
//! Source: `sui/sources/main.move` of the contract's public audit, commit 229a6d6a; `sui-framework`, `dynamic_field.move`.
//!
//! Specification: `docs/spec/sui.md#reading-an-order`.

use std::fmt;

use countersign_core::chains::swap_id::{SwapIdInput, sui_with_chain_word};
use countersign_core::{HtlcTerms, SecretHash, U256};
use sui_sdk_types::{Address, StructTag, TypeTag};

use crate::htlc::{MODULE, byte_vector};

/// The contract's type of an order.
pub const ORDER: &str = "Order";
/// Bytes of a stored order.
const LENGTH: usize = 274;
/// The values of the chain word in an order's id: the published source has 0, and its publishers may deploy it with 1.
const CHAIN_WORDS: [u8; 2] = [0, 1];

/// Why an answer cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unclear(&'static str);

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Unclear {}

/// An order as the contract stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredOrder {
    /// The object that holds it: see [`field_id`].
    pub field: Address,
    /// Its id.
    pub order_id: [u8; 32],
    /// The package that defined the contract: the pinned one, or the one of which that is an upgrade.
    pub package: Address,
    /// The coin, without its `Coin<..>`.
    pub coin_type: TypeTag,
    /// Whether it was redeemed or refunded.
    pub has_ended: bool,
    /// Who gets a refund.
    pub initiator: Address,
    /// Who redeems.
    pub redeemer: Address,
    /// Base units.
    pub amount: u64,
    /// What it still holds, base units.
    pub balance: u64,
    /// Unix milliseconds.
    pub initiated_at: u64,
    /// Milliseconds.
    pub timelock: u64,
}

/// Returns the ids that the contract may have given an order with these terms: one for each chain word that a deployed package
/// may have. There is none if the amount has more than 64 bits.
pub fn order_ids(terms: &HtlcTerms, registry: Address) -> impl Iterator<Item = [u8; 32]> + use<> {
    let swap = SwapIdInput {
        secret_hash: &terms.secret_hash.0,
        initiator: terms.initiator.bytes(),
        redeemer: terms.redeemer.bytes(),
        timelock: terms.timelock,
        amount: terms.amount,
    };
    CHAIN_WORDS.map(|word| sui_with_chain_word(word, &swap, registry.as_bytes())).into_iter().flatten()
}

/// Returns the id of the object in which a registry keeps an order.
///
/// ```
/// use countersign_sui::read::field_id;
/// use countersign_sui::sui_sdk_types::Address;
///
/// let field = field_id(Address::from_static("0x7"), &[1; 32]);
/// assert_ne!(field, field_id(Address::from_static("0x8"), &[1; 32]), "each registry has orders of its own");
/// ```
#[must_use]
pub fn field_id(registry: Address, order_id: &[u8; 32]) -> Address {
    registry.derive_dynamic_child_id(&bytes_type(), &byte_vector(order_id))
}

fn bytes_type() -> TypeTag {
    TypeTag::Vector(Box::new(TypeTag::U8))
}

/// Decodes the object in which an order is kept, from its type and its BCS contents.
///
/// The caller compares `field` with the id that was asked for, and `package`, `coin_type` and `order_id` with what is pinned.
///
/// # Errors
///
/// [`Unclear`] if the type is not that of an order, or the contents are not what the contract stores.
pub fn order(object_type: &str, contents: &[u8]) -> Result<StoredOrder, Unclear> {
    let (package, coin_type) = order_type(object_type).ok_or(Unclear("the object is not an order of the contract"))?;
    if contents.len() != LENGTH {
        return Err(Unclear("the contract stores orders in an unknown layout"));
    }
    let mut bytes = Bytes(contents);
    let field = Address::new(bytes.take()?);
    let [32] = bytes.take()? else { return Err(Unclear("the key of the order does not have 32 bytes")) };
    let order_id = bytes.take()?;
    let _ = bytes.take::<32>()?;
    let has_ended = match bytes.take()? {
        [0] => false,
        [1] => true,
        _ => return Err(Unclear("the order is in an unknown state")),
    };
    let (initiator, redeemer) = (Address::new(bytes.take()?), Address::new(bytes.take()?));
    let amount = u64::from_le_bytes(bytes.take()?);
    let initiated_at = bytes.milliseconds()?;
    let _ = bytes.take::<32>()?;
    let balance = u64::from_le_bytes(bytes.take()?);
    let timelock = bytes.milliseconds()?;
    if initiator == Address::ZERO || redeemer == Address::ZERO || amount == 0 || initiated_at == 0 || timelock == 0 {
        return Err(Unclear("the order has a field that is zero"));
    }
    if has_ended && balance != 0 {
        return Err(Unclear("the order has ended, and still holds coins"));
    }
    Ok(StoredOrder { field, order_id, package, coin_type, has_ended, initiator, redeemer, amount, balance, initiated_at, timelock })
}

/// Returns the package and the coin of `Field<vector<u8>, package::AtomicSwap::Order<coin>>`; `None` for any other type.
fn order_type(text: &str) -> Option<(Address, TypeTag)> {
    let field: StructTag = text.parse().ok()?;
    let [key, TypeTag::Struct(order)] = field.type_params() else { return None };
    if *key != bytes_type() || !is(&field, Address::TWO, "dynamic_field", "Field") || !is(order, *order.address(), MODULE, ORDER) {
        return None;
    }
    let [coin] = order.type_params() else { return None };
    Some((*order.address(), coin.clone()))
}

fn is(tag: &StructTag, address: Address, module: &str, name: &str) -> bool {
    *tag.address() == address && tag.module().as_str() == module && tag.name().as_str() == name
}

/// What is left to decode.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Unclear> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Unclear("the bytes end too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Takes a `u256` that has to fit 64 bits.
    fn milliseconds(&mut self) -> Result<u64, Unclear> {
        let word = U256::from_le_bytes(self.take::<32>()?);
        u64::try_from(word).map_err(|_| Unclear("a time of the order has more than 64 bits"))
    }

    /// Takes a `vector<u8>` of 32 bytes.
    fn word(&mut self) -> Result<[u8; 32], Unclear> {
        match self.take()? {
            [32] => self.take(),
            _ => Err(Unclear("an event of the HTLC has a value that does not have 32 bytes")),
        }
    }

    /// Requires that nothing is left.
    const fn end(&self) -> Result<(), Unclear> {
        if self.0.is_empty() { Ok(()) } else { Err(Unclear("an event of the HTLC has extra bytes")) }
    }
}

/// An event of the HTLC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HtlcEvent {
    /// An order was funded.
    Initiated {
        /// Its id.
        order_id: [u8; 32],
        /// SHA-256 of its secret.
        secret_hash: SecretHash,
        /// Base units.
        amount: u64,
    },
    /// An order was redeemed.
    Redeemed {
        /// Its id.
        order_id: [u8; 32],
        /// The secret; its hash was compared with the one of the event.
        secret: [u8; 32],
    },
    /// An order was refunded.
    Refunded {
        /// Its id.
        order_id: [u8; 32],
    },
}

impl HtlcEvent {
    /// Returns the order that the event is about.
    #[must_use]
    pub const fn order_id(&self) -> [u8; 32] {
        match self {
            Self::Initiated { order_id, .. } | Self::Redeemed { order_id, .. } | Self::Refunded { order_id } => *order_id,
        }
    }
}

/// Decodes an event from its type and its BCS contents: `None` for an event of another package, or one that says nothing about
/// how far an order is. `package` is the one that defined the contract, as [`StoredOrder::package`] has it.
///
/// # Errors
///
/// [`Unclear`] if a known event has other contents, or a secret that does not hash to what the event says.
pub fn event(event_type: &str, package: Address, contents: &[u8]) -> Result<Option<HtlcEvent>, Unclear> {
    let Ok(tag) = event_type.parse::<StructTag>() else { return Err(Unclear("the type of an event is malformed")) };
    if *tag.address() != package || tag.module().as_str() != MODULE {
        return Ok(None);
    }
    let mut bytes = Bytes(contents);
    let event = match tag.name().as_str() {
        "Initiated" => {
            let (order_id, secret_hash) = (bytes.word()?, SecretHash(bytes.word()?));
            let amount = u64::from_le_bytes(bytes.take()?);
            // The destination data: it says nothing about the order.
            bcs::from_bytes::<&[u8]>(bytes.0).map_err(|_| Unclear("an event of the HTLC is malformed"))?;
            return Ok(Some(HtlcEvent::Initiated { order_id, secret_hash, amount }));
        }
        "Redeemed" => {
            let (order_id, secret_hash, secret) = (bytes.word()?, SecretHash(bytes.word()?), bytes.word()?);
            if SecretHash::of(&secret) != secret_hash {
                return Err(Unclear("the secret does not hash to the secret hash"));
            }
            HtlcEvent::Redeemed { order_id, secret }
        }
        "Refunded" => HtlcEvent::Refunded { order_id: bytes.word()? },
        _ => return Ok(None),
    };
    bytes.end()?;
    Ok(Some(event))
}
