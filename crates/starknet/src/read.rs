//! Decodes what a chain returns about one HTLC. No I/O.
//!
//! An order is seven felts. `get_order` returns them; contracts without that function store them at seven consecutive addresses:
//!
//! | felt | 2025_11, client_3_1_3 | 2025_02, in storage |
//! |---|---|---|
//! | 0 | block in which it ended; 0 while it is open | whether it has ended, 0 or 1 |
//! | 1 | initiator | initiator |
//! | 2 | redeemer | redeemer |
//! | 3 | block in which it was initiated | the same |
//! | 4 | timelock, blocks | the same |
//! | 5, 6 | amount, low and high 128 bits | the same |
//!
//! Seven zeros mean that there is no order. Anything else is [`Unclear`], because a contract of another generation must not be read
//! with the wrong table. How the contract of July 2025 stores its orders is not known, so its orders are not read at all.
//!
//! An order contains neither its secret hash nor how it ended. The events do. The second key of an event is the order id.
//!
//! Storage addresses: <https://docs.starknet.io/architecture/smart-contracts/contract-storage/>
//!
//! Specification: `docs/spec/starknet.md#reading-an-order`.

mod class;

use std::fmt;

use countersign_core::generation::StarknetSecret;
use countersign_core::json::Cursor;
use countersign_core::{Code, Refusal, SecretHash, StarknetGeneration, U256};
use starknet_types_core::felt::Felt;

use crate::{curve, felt};

pub use class::generation_of_abi;
pub use countersign_core::generation::StarknetAccess as Access;

/// Selector of `get_order(order_id)`.
pub const GET_ORDER: Felt = Felt::from_hex_unchecked("0x3b0f8219bcd51d885e6cef695035d39abb7013c04c900cb308595625dcfa0f1");
/// Selector of `token()`; also the address of the token in storage.
pub const TOKEN: Felt = Felt::from_hex_unchecked("0x39b0454cadcb5884dd3faa6ba975da4d2459aa3f11d31291a25a8358f84946d");
/// Selector of `balance_of(account)` of a token.
pub const BALANCE_OF: Felt = Felt::from_hex_unchecked("0x35a73cd311a05d46deda634c5ee045db92f811b4e74bca4437fcb5302b7af33");
/// Selector of `allowance(owner, spender)` of a token.
pub const ALLOWANCE: Felt = Felt::from_hex_unchecked("0x1e888a1026b19c8c0b57c72d63ed1737106aa10034105b980ba117bd0c29fe1");
/// Selector of `decimals()` of a token.
pub const DECIMALS: Felt = Felt::from_hex_unchecked("0x4c4fb1ab068f6039d5780c68dd0fa2f8742cceb3426d19667778ca7f3518a9");
/// Selector of `is_paused()` of a token.
pub const IS_PAUSED: Felt = Felt::from_hex_unchecked("0x238d7ea31550fece8f0a8a601e3ae1a7c59cb3b6cc976ceb721e31ebd9c36f9");
/// Selector of `paused()` of a token.
pub const PAUSED: Felt = Felt::from_hex_unchecked("0x235723ac350a69d2a92d3703f17439cbaadf2f093a21ba5bf5f1a53eb2a14d9");
/// Selector of `is_blacklisted(account)` of a token.
pub const IS_BLACKLISTED: Felt = Felt::from_hex_unchecked("0x15bcd465ebfadac587da47637c09f7b4d4e9faf3c59c5841d95fd590cc1ad74");
/// Selector of `is_frozen(account)` of a token.
pub const IS_FROZEN: Felt = Felt::from_hex_unchecked("0xab2d655d13858cd8534256cbba15d06c93fafcc4cf4f17c7b18fc83dc94228");

/// First key of the event that is emitted when an order is funded.
pub const INITIATED: Felt = Felt::from_hex_unchecked("0xebf924f11f1ca1dec8c58c339f9ee9d29f63da2478b85366a1a80ca432b972");
/// First key of the event that is emitted instead of `Initiated` if the call had destination data.
pub const INITIATED_WITH_DESTINATION_DATA: Felt =
    Felt::from_hex_unchecked("0x3823b708f0cb6ae8ce68326afc10fd9f66ce0a96d8e8960964115e14515222d");
/// First key of the event that is emitted when an order is redeemed.
pub const REDEEMED: Felt = Felt::from_hex_unchecked("0x23e7cec2fb91669c83bda0a76c5b9291e64043ae4d6c7dece25843a6a1124ae");
/// First key of the event that is emitted when an order is refunded.
pub const REFUNDED: Felt = Felt::from_hex_unchecked("0x1e3aa8099bfbb7b9fee513355876c379349ac1dca81cd9eb4e0653e784ff985");
/// First key of the `Transfer` event of a token.
pub const TRANSFER: Felt = Felt::from_hex_unchecked("0x99cd8bde557814842a3121e8ddfd433a539b8c9f14bf31ebf108d12e6196e9");

/// Hash of `orders`, the name of the mapping from ids to orders. It is computed like a selector.
const ORDERS: Felt = Felt::from_hex_unchecked("0x3201d5f1d179c629595aec4d2977c47de6ffbf824ceb68fa9c42061953a9e95");

/// The number of felts of an order.
pub const FELTS: usize = 7;
/// The most felts of destination data in an event: more than the service accepts.
const MAX_DESTINATION_DATA: usize = 64;
/// The maximum number of keys of an event.
const MAX_KEYS: usize = 4;
/// The maximum number of felts in an event's data.
const MAX_EVENT_DATA: usize = 128;

/// Why an answer of the chain cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unclear(&'static str);

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Unclear {}

/// Returns the source from which the orders of a contract are read.
///
/// # Errors
///
/// [`Unclear`] if it is not known for this generation.
pub const fn access(generation: &StarknetGeneration) -> Result<Access, Unclear> {
    match generation.access {
        Some(access) => Ok(access),
        None => Err(Unclear(
            "it is not known how contracts of this generation store orders: pin the generation that the interface of the class shows",
        )),
    }
}

/// Returns the storage addresses of an order in a contract without `get_order`, in the order of the module's table.
#[must_use]
#[expect(clippy::arithmetic_side_effects, reason = "felts are added modulo the prime")]
pub fn slots(order_id: Felt) -> [Felt; FELTS] {
    let base = storage_base(curve::pedersen(&ORDERS, &order_id));
    std::array::from_fn(|offset| base + Felt::from(offset))
}

/// Reduces a hash modulo 2^251 - 256, so that 256 felts fit from that address on.
fn storage_base(hash: Felt) -> Felt {
    let (hash, size) = (U256::from_be_bytes(hash.to_bytes_be()), U256::ONE.wrapping_shl(251).wrapping_sub(U256::from(256)));
    // The prime is below twice the modulus, so one subtraction is enough.
    let base = if hash < size { hash } else { hash.wrapping_sub(size) };
    Felt::from_bytes_be(&base.to_be_bytes())
}

/// An order as the contract stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredOrder {
    /// The account that receives a refund.
    pub initiator: Felt,
    /// The account that receives the funds of a redemption.
    pub redeemer: Felt,
    /// The block in which the order was initiated.
    pub initiated_at: u64,
    /// Timelock in blocks, counted from `initiated_at`.
    pub timelock: u64,
    /// Amount in base units.
    pub amount: U256,
    /// Whether the order has ended.
    pub progress: Progress,
}

/// The progress of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Neither redeemed nor refunded.
    Open,
    /// Redeemed or refunded.
    Ended {
        /// The block in which the order ended; `None` if the contract does not store it.
        at: Option<u64>,
    },
}

/// Decodes an order; `None` if the contract has no order with the id.
///
/// # Errors
///
/// [`Unclear`] if the felts are not an order of this generation.
pub fn order(generation: &StarknetGeneration, felts: &[Felt]) -> Result<Option<StoredOrder>, Unclear> {
    let access = access(generation)?;
    let felts: &[Felt; FELTS] = felts.try_into().map_err(|_| Unclear("the contract stores orders in an unknown layout"))?;
    if felts.iter().all(|felt| *felt == Felt::ZERO) {
        return Ok(None);
    }
    let [ended, initiator, redeemer, initiated_at, timelock, low, high] = *felts;
    let (ended, initiated_at, timelock) = (block(ended)?, block(initiated_at)?, block(timelock)?);
    let amount = number(&[low, high])?;
    if [initiator, redeemer].contains(&Felt::ZERO) || initiated_at == 0 || timelock == 0 || amount.is_zero() {
        return Err(Unclear("the order has a field that is zero"));
    }
    let progress = match (access, ended) {
        (_, 0) => Progress::Open,
        (Access::Storage, 1) => Progress::Ended { at: None },
        (Access::Storage, _) => return Err(Unclear("the contract stores orders in an unknown layout")),
        (Access::Getter, at) if at >= initiated_at => Progress::Ended { at: Some(at) },
        (Access::Getter, _) => return Err(Unclear("the order ended before it was initiated")),
    };
    Ok(Some(StoredOrder { initiator, redeemer, initiated_at, timelock, amount, progress }))
}

fn block(felt: Felt) -> Result<u64, Unclear> {
    u64::try_from(felt).map_err(|_| Unclear("a block number of the order has more than 64 bits"))
}

/// Decodes a returned 256-bit number, which is two felts: the low and the high 128 bits.
///
/// # Errors
///
/// [`Unclear`] unless there are two felts of at most 128 bits.
pub fn number(felts: &[Felt]) -> Result<U256, Unclear> {
    let half = |felt: &Felt| u128::try_from(*felt).map_err(|_| Unclear("half of a number has more than 128 bits"));
    match felts {
        [low, high] => Ok(felt::join(half(low)?, half(high)?)),
        _ => Err(Unclear("the answer is not one number")),
    }
}

/// Decodes a returned address.
///
/// # Errors
///
/// [`Unclear`] unless there is one felt.
pub fn address(felts: &[Felt]) -> Result<Felt, Unclear> {
    match felts {
        [address] => Ok(*address),
        _ => Err(Unclear("the answer is not an address")),
    }
}

/// An event of the HTLC.
pub type HtlcEvent = countersign_core::HtlcEvent<Felt>;

/// Decodes an event of the HTLC; `None` for an event that is not about the progress of an order.
///
/// # Errors
///
/// [`Unclear`] if the keys or the data of a known event are not those that contracts of this generation emit, or if the secret does
/// not hash to the event's secret hash.
pub fn event(generation: &StarknetGeneration, keys: &[Felt], data: &[Felt]) -> Result<Option<HtlcEvent>, Unclear> {
    const MALFORMED: Unclear = Unclear("an event of the HTLC is malformed");
    let Some((name, rest)) = keys.split_first() else { return Ok(None) };
    if ![INITIATED, INITIATED_WITH_DESTINATION_DATA, REDEEMED, REFUNDED].contains(name) {
        return Ok(None);
    }
    access(generation)?;
    let [order_id] = *rest else { return Err(MALFORMED) };
    if *name == REFUNDED {
        return if data.is_empty() { Ok(Some(HtlcEvent::Refunded { order_id })) } else { Err(MALFORMED) };
    }
    let (hash, data) = data.split_at_checked(generation.hash_words).ok_or(MALFORMED)?;
    let secret_hash = SecretHash(bytes(hash).ok_or(MALFORMED)?);
    if *name == REDEEMED {
        let words = match (generation.secret.ok_or(MALFORMED)?, data) {
            (StarknetSecret::Words, words) => words,
            (StarknetSecret::Array, [length, words @ ..]) if *length == Felt::from(8) => words,
            _ => return Err(Unclear("the secret does not have 32 bytes")),
        };
        let secret = bytes(words).filter(|_| words.len() == 8).ok_or(Unclear("the secret does not have 32 bytes"))?;
        if SecretHash::of(&secret) != secret_hash {
            return Err(Unclear("the secret does not hash to the secret hash"));
        }
        return Ok(Some(HtlcEvent::Redeemed { order_id, secret }));
    }
    let (amount, rest) = data.split_at_checked(2).ok_or(MALFORMED)?;
    let is_whole = match rest {
        _ if *name == INITIATED => rest.is_empty(),
        [length, data @ ..] => data.len() <= MAX_DESTINATION_DATA && *length == Felt::from(data.len()),
        [] => false,
    };
    // Contracts of the first generation have no destination data.
    if !is_whole || (*name != INITIATED && access(generation)? == Access::Storage) {
        return Err(MALFORMED);
    }
    Ok(Some(HtlcEvent::Initiated { order_id, secret_hash, amount: number(amount).map_err(|_| MALFORMED)? }))
}

/// Returns the destination data of an event that [`event`] decodes; `None` for an event without.
#[must_use]
pub fn destination_data<'a>(generation: &StarknetGeneration, keys: &[Felt], data: &'a [Felt]) -> Option<&'a [Felt]> {
    if keys.first() != Some(&INITIATED_WITH_DESTINATION_DATA) {
        return None;
    }
    // The secret hash, both halves of the amount, and the length are in front.
    data.get(generation.hash_words.saturating_add(3)..)
}

/// Decodes an event in the JSON form of `starknet_getEvents`. Reads `from_address`, `keys` and `data`. Returns `None` for an event that
/// is not about the progress of an order.
///
/// # Errors
///
/// [`Refusal`] at the member that is missing or malformed, or that belongs to another contract.
pub fn emitted_event(cursor: &Cursor<'_, '_>, generation: &StarknetGeneration, htlc: Felt) -> Result<Option<HtlcEvent>, Refusal> {
    let members = cursor.object()?;
    if felt::read(members.need("from_address")?)? != htlc {
        return Err(members.at().key("from_address").refuse(Code::WrongType).with_reason("the event is of another contract"));
    }
    let felts = |key, max: usize| {
        let cursor = members.need(key)?;
        let all = cursor.array()?;
        if all.len() > max {
            return Err(cursor.at().refuse(Code::WrongType).with_expected(format!("at most {max} felts")).with_actual(all.len()));
        }
        all.map(felt::read).collect::<Result<Vec<_>, _>>()
    };
    let (keys, data) = (felts("keys", MAX_KEYS)?, felts("data", MAX_EVENT_DATA)?);
    event(generation, &keys, &data).map_err(|unclear| members.at().key("keys").refuse(Code::WrongType).with_reason(unclear.to_string()))
}

/// Joins words of equal width into 32 bytes; `None` if a word is wider.
fn bytes(words: &[Felt]) -> Option<[u8; 32]> {
    let width = 32_usize.checked_div(words.len())?;
    let mut joined = Vec::with_capacity(32);
    for word in words {
        let bytes = word.to_bytes_be();
        let (zeros, value) = bytes.split_at_checked(bytes.len().checked_sub(width)?)?;
        if zeros.iter().any(|byte| *byte != 0) {
            return None;
        }
        joined.extend_from_slice(value);
    }
    joined.try_into().ok()
}

/// A transfer of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transfer {
    /// The account that pays.
    pub from: Felt,
    /// The account that receives the tokens.
    pub to: Felt,
    /// Amount in base units.
    pub amount: U256,
}

/// Decodes a `Transfer` event of a token; `None` for any other event. Older tokens emit the parties in the data, newer ones in the
/// keys.
#[must_use]
pub fn transfer(keys: &[Felt], data: &[Felt]) -> Option<Transfer> {
    let (name, parties) = keys.split_first()?;
    let (from, to, amount) = match (parties, data) {
        _ if *name != TRANSFER => return None,
        ([from, to], amount) | ([], [from, to, amount @ ..]) => (*from, *to, amount),
        _ => return None,
    };
    Some(Transfer { from, to, amount: number(amount).ok()? })
}

#[cfg(test)]
mod tests {
    use starknet_core::utils::{get_selector_from_name, starknet_keccak};

    use super::*;

    #[test]
    fn selectors_keys_and_slots_are_the_hashes_of_the_names() {
        for (name, felt) in [
            ("get_order", GET_ORDER),
            ("token", TOKEN),
            ("balance_of", BALANCE_OF),
            ("allowance", ALLOWANCE),
            ("Initiated", INITIATED),
            ("InitiatedWithDestinationData", INITIATED_WITH_DESTINATION_DATA),
            ("Redeemed", REDEEMED),
            ("Refunded", REFUNDED),
            ("Transfer", TRANSFER),
        ] {
            assert_eq!(get_selector_from_name(name).unwrap(), felt, "{name}");
        }
        assert_eq!(starknet_keccak(b"orders"), ORDERS);
    }

    #[test]
    fn a_storage_base_leaves_room_behind_it() {
        let size = U256::ONE.wrapping_shl(251).wrapping_sub(U256::from(256));
        let felt = |number: U256| felt::from_number(number).unwrap();
        let below = felt(size.wrapping_sub(U256::ONE));
        assert_eq!([below, felt(size), Felt::MAX].map(storage_base), [below, Felt::ZERO, Felt::MAX - felt(size)]);
    }
}
