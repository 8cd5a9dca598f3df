//! Decodes what an EVM or Tron chain returns about one HTLC (`docs/spec/evm.md#reading-an-order`). No I/O.
//!
//! `orders(bytes32)` returns six words. Two layouts are known; the first word tells them apart, because no account has the address
//! 0 or 1:
//!
//! | word | version 3 | older |
//! |---|---|---|
//! | 0 | initiator | whether the order has ended, 0 or 1 |
//! | 1 | redeemer | initiator |
//! | 2 | block in which it was initiated | redeemer |
//! | 3 | timelock, blocks | block in which it was initiated |
//! | 4 | amount, base units | timelock, blocks |
//! | 5 | block in which it ended; 0 while it is open | amount, base units |
//!
//! Six zero words mean that the order does not exist. Everything else is [`Unclear`], because a contract of another generation must not be
//! read by the wrong table. Neither layout tells how an order ended; the events do.
//!
//! ABI: <https://docs.soliditylang.org/en/v0.8.28/abi-spec.html>, storage:
//! <https://docs.soliditylang.org/en/v0.8.28/internals/layout_in_storage.html>

use std::fmt;

use alloy_primitives::{Address, B256, Bytes, U256, address, keccak256};
use alloy_sol_types::{SolCall, SolEvent, SolValue, sol};
use countersign_core::json::Cursor;
use countersign_core::{Code, EvmGeneration, Refusal, SecretHash};

pub use countersign_core::generation::EvmLayout as Layout;

sol! {
    #[allow(missing_docs, reason = "the ABI itself is the documentation")]
    interface Views {
        function orders(bytes32 orderId);
        function token();
        function version();
        function eip712Domain() returns (bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions);
        function balanceOf(address owner);
        function allowance(address owner, address spender);
        function transfer(address to, uint256 amount);
        function decimals();
        function isValidSignature(bytes32 hash, bytes signature);
        function paused();
        function getL1FeeUpperBound(uint256 unsignedTxSize);
        function gasEstimateL1Component(address to, bool contractCreation, bytes data) returns (uint64 gas, uint256 baseFee, uint256 l1BaseFee);

        event Initiated(bytes32 indexed orderId, bytes32 indexed secretHash, uint256 indexed amount);
        event InitiatedWithDestinationData(bytes32 indexed orderId, bytes32 indexed secretHash, uint256 indexed amount, bytes destinationData);
        event Redeemed(bytes32 indexed orderId, bytes32 indexed secretHash, bytes secret);
        event Refunded(bytes32 indexed orderId);
        event Transfer(address indexed from, address indexed to, uint256 value);
    }
}

/// The address in whose name the protocol logs each transfer of the native asset (EIP-7708).
pub const SYSTEM: Address = address!("fffffffffffffffffffffffffffffffffffffffe");

/// The address that denotes the native asset (ERC-7528): in the return data of `token()` of a native HTLC, and in the logs of a
/// simulation.
pub const NATIVE: Address = Address::repeat_byte(0xee);

/// First topic of the event that an order was funded, in both layouts.
pub const INITIATED: B256 = Views::Initiated::SIGNATURE_HASH;
/// First topic of the event with the destination data of an order. Version 3 emits it after [`INITIATED`], also for empty data, if the call has
/// the argument.
pub const DESTINATION_DATA: B256 = Views::InitiatedWithDestinationData::SIGNATURE_HASH;
/// First topic of the event that an order was redeemed.
pub const REDEEMED: B256 = Views::Redeemed::SIGNATURE_HASH;
/// First topic of the event that an order was refunded.
pub const REFUNDED: B256 = Views::Refunded::SIGNATURE_HASH;
/// First topic of a token's `Transfer` event.
pub const TRANSFER: B256 = Views::Transfer::SIGNATURE_HASH;

/// Number of words of an order.
pub const WORDS: usize = 6;
/// Maximum number of topics of a log.
const MAX_TOPICS: usize = 4;
/// Maximum length in bytes of a log's data. That of a redemption has 96.
const MAX_LOG_DATA: usize = 1024;

/// Why an answer of the chain cannot be decoded.
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
    /// The contract's layout: see the table of the [module](self).
    pub layout: Layout,
    /// The account that gets a refund.
    pub initiator: Address,
    /// The account that redeems.
    pub redeemer: Address,
    /// The block in which it was initiated.
    pub initiated_at: u64,
    /// The timelock in blocks.
    pub timelock: u64,
    /// The amount in base units.
    pub amount: U256,
    /// Whether it is open or has ended.
    pub progress: Progress,
}

impl StoredOrder {
    /// Returns the generation whose contracts store orders like this: the oldest, if there are several.
    #[must_use]
    pub fn generation(&self) -> Option<&'static EvmGeneration> {
        EvmGeneration::ALL.iter().copied().find(|generation| generation.layout == self.layout)
    }

    /// Requires that the contract stores orders like the pinned generation. Without a pinned one, every layout passes.
    ///
    /// # Errors
    ///
    /// A sentence that names both generations.
    pub fn check_generation(&self, pinned: Option<&EvmGeneration>) -> Result<(), String> {
        let Some(pinned) = pinned.filter(|pinned| pinned.layout != self.layout) else { return Ok(()) };
        let own = self.generation().map_or("unknown", |own| own.name);
        Err(format!("the contract stores orders as generation `{own}` does, and `{}` is pinned", pinned.name))
    }
}

/// Whether an order is open or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Neither redeemed nor refunded.
    Open,
    /// Redeemed or refunded.
    Ended {
        /// The block in which it ended; `None` for the older layout, which does not store it.
        at: Option<u64>,
    },
}

/// Decodes the return data of `orders(bytes32)`. Returns `None` if the contract has no such order.
///
/// # Errors
///
/// [`Unclear`] if the bytes have neither known layout, or a value that no order can have.
pub fn order(answer: &[u8]) -> Result<Option<StoredOrder>, Unclear> {
    let (words, rest) = answer.as_chunks::<32>();
    let words: &[[u8; 32]; WORDS] = match (words.try_into(), rest) {
        (Ok(words), []) => words,
        _ => return Err(Unclear("the contract stores orders in an unknown layout")),
    };
    if words.iter().flatten().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let [first, second, third, fourth, fifth, sixth] = words.map(U256::from_be_bytes);
    let (layout, initiator, redeemer, initiated_at, timelock, amount) = if first <= U256::ONE {
        (Layout::Older, second, third, fourth, fifth, sixth)
    } else {
        (Layout::V3, first, second, third, fourth, fifth)
    };
    let block = |word: U256| u64::try_from(word).map_err(|_| Unclear("a block number of the order has more than 64 bits"));
    let (initiated_at, timelock) = (block(initiated_at)?, block(timelock)?);
    if initiated_at == 0 || timelock == 0 || amount.is_zero() {
        return Err(Unclear("the order has a field that is zero"));
    }
    let progress = match layout {
        Layout::Older if first.is_zero() => Progress::Open,
        Layout::Older => Progress::Ended { at: None },
        Layout::V3 => match block(sixth)? {
            0 => Progress::Open,
            at if at >= initiated_at => Progress::Ended { at: Some(at) },
            _ => return Err(Unclear("the order ended before it was initiated")),
        },
    };
    Ok(Some(StoredOrder { layout, initiator: account(initiator)?, redeemer: account(redeemer)?, initiated_at, timelock, amount, progress }))
}

fn account(word: U256) -> Result<Address, Unclear> {
    let bytes = word.to_be_bytes::<32>();
    match bytes.split_first_chunk::<12>() {
        Some(([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], address)) if !word.is_zero() => {
            Address::try_from(address).map_err(|_| Unclear("not an address"))
        }
        _ => Err(Unclear("a party of the order is not an address")),
    }
}

/// An event of the HTLC.
pub type HtlcEvent = countersign_core::HtlcEvent<B256>;

/// Decodes a log of the HTLC. Returns `None` for an event that is not about the progress of an order.
///
/// In version 3 the amount of `Initiated` is the fourth topic. In older versions it is the data, under the same first topic.
///
/// # Errors
///
/// [`Unclear`] if a known event has other topics or data, or a secret that does not match the secret hash in the event.
pub fn event(topics: &[B256], data: &[u8]) -> Result<Option<HtlcEvent>, Unclear> {
    let malformed = Unclear("an event of the HTLC is malformed");
    let Some((signature, rest)) = topics.split_first() else { return Ok(None) };
    let event = match (*signature, rest, data) {
        (INITIATED, [order_id, secret_hash, amount], []) => {
            HtlcEvent::Initiated { order_id: *order_id, secret_hash: SecretHash(secret_hash.0), amount: (*amount).into() }
        }
        (INITIATED, [order_id, secret_hash], data) => {
            HtlcEvent::Initiated { order_id: *order_id, secret_hash: SecretHash(secret_hash.0), amount: number(data)? }
        }
        (REDEEMED, [order_id, secret_hash], data) => {
            let (secret,) = Views::Redeemed::abi_decode_data_validate(data).map_err(|_| malformed)?;
            if data != (secret.clone(),).abi_encode_params() {
                return Err(malformed);
            }
            let secret: [u8; 32] = secret.as_ref().try_into().map_err(|_| Unclear("the secret does not have 32 bytes"))?;
            if SecretHash::of(&secret) != SecretHash(secret_hash.0) {
                return Err(Unclear("the secret does not hash to the secret hash"));
            }
            HtlcEvent::Redeemed { order_id: *order_id, secret }
        }
        (REFUNDED, [order_id], []) => HtlcEvent::Refunded { order_id: *order_id },
        (INITIATED | REDEEMED | REFUNDED, ..) => return Err(malformed),
        _ => return Ok(None),
    };
    Ok(Some(event))
}

/// Decodes the event with the destination data of an order: [`HtlcEvent::Initiated`] with the terms that it repeats, and the data. Returns `None`
/// for any other event.
///
/// # Errors
///
/// [`Unclear`] if it has other topics, or anything but the encoding of the data.
pub fn destination_data(topics: &[B256], data: &[u8]) -> Result<Option<(HtlcEvent, Bytes)>, Unclear> {
    let malformed = Unclear("an event of the HTLC is malformed");
    let Some((&DESTINATION_DATA, rest)) = topics.split_first() else { return Ok(None) };
    let [order_id, secret_hash, amount] = *rest else { return Err(malformed) };
    let (bytes,) = Views::InitiatedWithDestinationData::abi_decode_data_validate(data).map_err(|_| malformed)?;
    if data != (bytes.clone(),).abi_encode_params() {
        return Err(malformed);
    }
    Ok(Some((HtlcEvent::Initiated { order_id, secret_hash: SecretHash(secret_hash.0), amount: amount.into() }, bytes)))
}

/// Decodes a log of the HTLC in the JSON form of `eth_getLogs`. Reads `address`, `topics`, `data` and, if present, `removed`. Returns
/// `None` for an event that is not about the progress of an order.
///
/// # Errors
///
/// [`Refusal`] at the member that is missing or malformed, that belongs to another contract, or that says that the log's block was
/// replaced.
pub fn log(log: &Cursor<'_, '_>, htlc: Address) -> Result<Option<HtlcEvent>, Refusal> {
    let members = log.object()?;
    let address = members.need("address")?;
    if address.hex_array()? != htlc.0.0 {
        return Err(address.refuse(Code::WrongType).with_reason("the log is of another contract"));
    }
    if let Some(removed) = members.get("removed")
        && removed.bool()?
    {
        return Err(removed.refuse(Code::WrongType).with_reason("the log's block was replaced"));
    }
    let topics = members.need("topics")?;
    let list = topics.array()?;
    if list.len() > MAX_TOPICS {
        return Err(topics.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_TOPICS} topics")).with_actual(list.len()));
    }
    let words = list.map(|topic| topic.hex_array().map(B256::from)).collect::<Result<Vec<_>, _>>()?;
    let data = members.need("data")?.hex_bytes(MAX_LOG_DATA)?;
    event(&words, &data).map_err(|unclear| topics.at().refuse(Code::WrongType).with_reason(unclear.to_string()))
}

/// One transfer of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transfer {
    /// The account that pays.
    pub from: Address,
    /// The account that receives.
    pub to: Address,
    /// The amount in base units.
    pub amount: U256,
}

/// Decodes a `Transfer` log of an ERC-20 token. Returns `None` for any other log, such as that of an ERC-721 token with four topics.
#[must_use]
pub fn transfer(topics: &[B256], data: &[u8]) -> Option<Transfer> {
    let [TRANSFER, from, to] = topics else { return None };
    let party = |topic: &B256| account_or_zero((*topic).into()).ok();
    Some(Transfer { from: party(from)?, to: party(to)?, amount: number(data).ok()? })
}

fn account_or_zero(word: U256) -> Result<Address, Unclear> {
    if word.is_zero() { Ok(Address::ZERO) } else { account(word) }
}

/// Decodes return data that is one number.
///
/// # Errors
///
/// [`Unclear`] unless it has exactly 32 bytes.
pub fn number(answer: &[u8]) -> Result<U256, Unclear> {
    <[u8; 32]>::try_from(answer).map(U256::from_be_bytes).map_err(|_| Unclear("the return data is not one number"))
}

/// Decodes return data that is one address, which may be zero.
///
/// # Errors
///
/// [`Unclear`] unless it has exactly 32 bytes, the first 12 of them zero.
pub fn address(answer: &[u8]) -> Result<Address, Unclear> {
    account_or_zero(number(answer)?)
}

/// Decodes return data that is one string.
///
/// # Errors
///
/// [`Unclear`] unless it is the encoding of a string.
pub fn text(answer: &[u8]) -> Result<String, Unclear> {
    String::abi_decode_validate(answer).map_err(|_| Unclear("the return data is not a string"))
}

/// The EIP-712 domain that a contract reports (ERC-5267).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Domain {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// EIP-155 chain id.
    pub chain_id: U256,
    /// The contract that verifies signatures.
    pub verifying_contract: Address,
}

/// Decodes the return data of `eip712Domain()`.
///
/// # Errors
///
/// [`Unclear`] unless it is the encoding of a domain.
pub fn domain(answer: &[u8]) -> Result<Domain, Unclear> {
    let domain =
        Views::eip712DomainCall::abi_decode_returns_validate(answer).map_err(|_| Unclear("the return data is not an EIP-712 domain"))?;
    let (chain_id, verifying_contract) = (domain.chainId, domain.verifyingContract);
    Ok(Domain { name: domain.name, version: domain.version, chain_id, verifying_contract })
}

/// Returns the calldata of `orders(bytes32)`.
#[must_use]
pub fn orders_call(order_id: [u8; 32]) -> Vec<u8> {
    Views::ordersCall { orderId: order_id.into() }.abi_encode()
}

/// Returns the calldata of `token()`.
#[must_use]
pub fn token_call() -> Vec<u8> {
    Views::tokenCall {}.abi_encode()
}

/// Returns the calldata of `version()`.
#[must_use]
pub fn version_call() -> Vec<u8> {
    Views::versionCall {}.abi_encode()
}

/// Returns the calldata of `eip712Domain()` (ERC-5267).
#[must_use]
pub fn domain_call() -> Vec<u8> {
    Views::eip712DomainCall {}.abi_encode()
}

/// Returns the calldata of `balanceOf(address)`.
#[must_use]
pub fn balance_call(owner: Address) -> Vec<u8> {
    Views::balanceOfCall { owner }.abi_encode()
}

/// Returns the calldata of `allowance(address,address)`.
#[must_use]
pub fn allowance_call(owner: Address, spender: Address) -> Vec<u8> {
    Views::allowanceCall { owner, spender }.abi_encode()
}

/// Returns the calldata of `transfer(address,uint256)`.
#[must_use]
pub fn transfer_call(to: Address, amount: U256) -> Vec<u8> {
    Views::transferCall { to, amount }.abi_encode()
}

/// Returns the calldata of `transfer(address,uint256)` with an amount of 0.
#[must_use]
pub fn empty_transfer_call(to: Address) -> Vec<u8> {
    transfer_call(to, U256::ZERO)
}

/// Returns the calldata of `isValidSignature(bytes32,bytes)` (ERC-1271).
#[must_use]
pub fn is_valid_signature_call(digest: B256, signature: &[u8]) -> Vec<u8> {
    Views::isValidSignatureCall { hash: digest, signature: Bytes::copy_from_slice(signature) }.abi_encode()
}

/// Returns the calldata of `decimals()`.
#[must_use]
pub fn decimals_call() -> Vec<u8> {
    Views::decimalsCall {}.abi_encode()
}

/// Returns the calldata of `paused()`, which tokens have that can be paused.
#[must_use]
pub fn paused_call() -> Vec<u8> {
    Views::pausedCall {}.abi_encode()
}

/// Returns the calldata of `getL1FeeUpperBound(uint256)`, with which `GasPriceOracle` of the OP stack states the fee that a transaction of
/// this size pays for the chain below, at most.
#[must_use]
pub fn l1_fee_call(unsigned_size: u64) -> Vec<u8> {
    Views::getL1FeeUpperBoundCall { unsignedTxSize: U256::from(unsigned_size) }.abi_encode()
}

/// Returns the calldata of `gasEstimateL1Component(address,bool,bytes)`, with which nodes of Arbitrum chains state the gas that a call uses for
/// its data on the chain below.
#[must_use]
pub fn l1_gas_call(to: Address, data: Bytes) -> Vec<u8> {
    Views::gasEstimateL1ComponentCall { to, contractCreation: false, data }.abi_encode()
}

/// Reads the gas out of what [`l1_gas_call`] returns; `None` if it is something else.
#[must_use]
pub fn l1_gas(returned: &[u8]) -> Option<u64> {
    Views::gasEstimateL1ComponentCall::abi_decode_returns_validate(returned).ok().map(|stated| stated.gas)
}

/// Returns the storage slots of an order, in the order of the words of [`Layout::V3`]. `mapping` is the slot of the mapping of orders.
#[must_use]
pub fn slots(order_id: [u8; 32], mapping: u64) -> [B256; WORDS] {
    let base: U256 = keccak256([order_id, U256::from(mapping).to_be_bytes()].concat()).into();
    [0_u64, 1, 2, 3, 4, 5].map(|field| base.wrapping_add(U256::from(field)).into())
}
