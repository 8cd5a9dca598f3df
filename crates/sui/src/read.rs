//! Decodes what a chain returns about one HTLC. No I/O.
//!
//! The orders registry stores each order as a dynamic field. This is a separate object, whose id is derived from the ids of the
//! registry and of the order. Its contents are 274 bytes:
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
//! | 170..202 | time of initiation, little-endian, Unix milliseconds |
//! | 202..234 | id of the coin that the order holds |
//! | 234..242 | balance of that coin, little-endian, base units; 0 once the order has ended |
//! | 242..274 | timelock, little-endian, milliseconds |
//!
//! The object remains when the order ends, and does not tell how it ended. The events do. The secret hash is not stored, but the order
//! id is a hash of it, of every other term and of the registry. So an order whose id follows from the expected terms has the expected
//! secret hash.
//!
//! Anything else is [`Unclear`]: another type, another length, or a value that the contract never stores.
//!
//! Source: `sui/sources/main.move` of the contract's public audit, commit 229a6d6a; `sui-framework`, `dynamic_field.move`.
//!
//! Specification: `docs/spec/sui.md#reading-an-order`.

use std::fmt;

use countersign_core::chains::swap_id::{SwapIdInput, sui_with_chain_word};
use countersign_core::{HtlcTerms, SecretHash, U256};
use sui_sdk_types::{Address, StructTag, TypeTag};

use crate::htlc::{MODULE, byte_vector};

/// The name of the contract's type of orders.
pub const ORDER: &str = "Order";
/// The number of bytes of a stored order.
const LENGTH: usize = 274;
/// The possible values of the chain word in an order's id. It is 0 in the published source, and may be 1 in deployed packages.
const CHAIN_WORDS: [u8; 2] = [0, 1];

/// Why an answer of the chain cannot be read.
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
    /// Id of the object that stores the order: see [`field_id`].
    pub field: Address,
    /// The order's id.
    pub order_id: [u8; 32],
    /// The package that first defined the contract: the pinned one, or the one that it is an upgrade of.
    pub package: Address,
    /// The coin type, without the enclosing `Coin<..>`.
    pub coin_type: TypeTag,
    /// Whether the order was redeemed or refunded.
    pub has_ended: bool,
    /// The account that receives a refund.
    pub initiator: Address,
    /// The account that receives the funds of a redemption.
    pub redeemer: Address,
    /// Amount in base units.
    pub amount: u64,
    /// Balance that the order still holds, in base units.
    pub balance: u64,
    /// When the order was initiated, in Unix milliseconds.
    pub initiated_at: u64,
    /// Timelock in milliseconds.
    pub timelock: u64,
}

/// Returns the possible ids of an order with these terms: one for each chain word that a deployed package may have. Returns none if the
/// amount has more than 64 bits.
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

/// Returns the id of the object in which an orders registry stores an order.
///
/// ```
/// use countersign::sui::read::field_id;
/// use countersign::sui::sui_sdk_types::Address;
///
/// let field = field_id(Address::from_static("0x7"), &[1; 32]);
/// assert_ne!(
///     field,
///     field_id(Address::from_static("0x8"), &[1; 32]),
///     "each registry has its own orders"
/// );
/// ```
#[must_use]
pub fn field_id(registry: Address, order_id: &[u8; 32]) -> Address {
    registry.derive_dynamic_child_id(&bytes_type(), &byte_vector(order_id))
}

fn bytes_type() -> TypeTag {
    TypeTag::Vector(Box::new(TypeTag::U8))
}

/// Decodes the object that stores an order, from its type and its BCS contents.
///
/// The caller must compare `field` with the requested id, and `package`, `coin_type` and `order_id` with the expected ones.
///
/// # Errors
///
/// [`Unclear`] if the type is not that of an order, or if the contract never stores such contents.
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
        return Err(Unclear("the order has ended but still holds coins"));
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

/// The bytes that are left to decode.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Unclear> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Unclear("the bytes end too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Takes a `u256`, which must fit into 64 bits.
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
pub type HtlcEvent = countersign_core::HtlcEvent<[u8; 32]>;

/// Decodes an event from its type and its BCS contents; `None` for an event of another package, or one that is not about the progress
/// of an order. `package` is the package that first defined the contract: see [`StoredOrder::package`].
///
/// # Errors
///
/// [`Unclear`] if the contents of a known event are malformed, or if the secret does not hash to the event's secret hash.
pub fn event(event_type: &str, package: Address, contents: &[u8]) -> Result<Option<HtlcEvent>, Unclear> {
    let Ok(tag) = event_type.parse::<StructTag>() else { return Err(Unclear("the type of an event is malformed")) };
    if *tag.address() != package || tag.module().as_str() != MODULE {
        return Ok(None);
    }
    let mut bytes = Bytes(contents);
    let event = match tag.name().as_str() {
        "Initiated" => {
            let (order_id, secret_hash) = (bytes.word()?, SecretHash(bytes.word()?));
            let amount = U256::from(u64::from_le_bytes(bytes.take()?));
            // The destination data follows. It is not about the order, but must be well-formed.
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
