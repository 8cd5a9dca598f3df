//! Invoke transactions of version 3, which call the account's `__execute__` with all calls of an order.
//!
//! The hash and the JSON for nodes (`BROADCASTED_INVOKE_TXN_V3`) follow the Starknet JSON-RPC specification 0.8:
//! <https://github.com/starkware-libs/starknet-specs/tree/v0.8.1>
//!
//! Specification: `docs/spec/starknet.md#signing`.

use countersign_core::{U256, serde_text};
use serde::de::{Deserializer, Error};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use starknet_types_core::felt::Felt;

use crate::curve::poseidon;
use crate::felt::{HexFelt, HexFelts};

/// `invoke`, as a short string.
const INVOKE: Felt = Felt::from_hex_unchecked("0x696e766f6b65");
/// Poseidon hash of an empty array.
const HASH_OF_NOTHING: Felt = Felt::from_hex_unchecked("0x2272be0f580fd156823304800919530eaa97430e972d7213ee13f4fbf7a5dbc");

/// The most that the sender pays for each resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ResourceBounds {
    /// Bound of L1 gas.
    pub l1_gas: ResourceBound,
    /// Bound of L2 gas.
    pub l2_gas: ResourceBound,
    /// Bound of L1 data gas.
    pub l1_data_gas: ResourceBound,
}

/// The most that the sender pays for one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResourceBound {
    /// The most units of the resource.
    pub max_amount: u64,
    /// The highest price per unit, in FRI.
    pub max_price_per_unit: u128,
}

/// Where data is made available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DataAvailabilityMode {
    /// On L1.
    #[default]
    L1,
    /// On L2, reserved.
    L2,
}

/// How the calls of a transaction are encoded for the account contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecutionEncoding {
    /// An array of calls, each with its own calldata. All current accounts use it (Cairo 1).
    #[default]
    New,
    /// An array of calls that point into shared calldata. Accounts from before 2023 use it (Cairo 0).
    Legacy,
}

impl ResourceBound {
    /// Creates a bound from the number of units and the price per unit in FRI.
    #[must_use]
    pub const fn new(max_amount: u64, max_price_per_unit: u128) -> Self {
        Self { max_amount, max_price_per_unit }
    }

    /// Packs the name of the resource into 64 bits, the amount into 64 and the price into 128.
    fn packed(self, name: [u8; 8]) -> Felt {
        let mut bytes = [0; 32];
        let parts = name.into_iter().chain(self.max_amount.to_be_bytes()).chain(self.max_price_per_unit.to_be_bytes());
        for (to, from) in bytes.iter_mut().zip(parts) {
            *to = from;
        }
        // The name begins with a zero byte, so the number is below the prime.
        Felt::from_bytes_be(&bytes)
    }

    fn max_fee(self) -> U256 {
        U256::from(self.max_amount).saturating_mul(U256::from(self.max_price_per_unit))
    }
}

impl ResourceBounds {
    /// Creates the bounds.
    #[must_use]
    pub const fn new(l1_gas: ResourceBound, l2_gas: ResourceBound, l1_data_gas: ResourceBound) -> Self {
        Self { l1_gas, l2_gas, l1_data_gas }
    }

    /// Returns the highest total fee in FRI, including the tip in FRI for each unit of L2 gas.
    #[must_use]
    pub fn max_fee(&self, tip: u64) -> U256 {
        let tips = U256::from(self.l2_gas.max_amount).saturating_mul(U256::from(tip));
        [self.l1_gas, self.l2_gas, self.l1_data_gas].into_iter().fold(tips, |sum, bound| sum.saturating_add(bound.max_fee()))
    }
}

impl DataAvailabilityMode {
    /// Returns the name that nodes use: `L1` or `L2`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
        }
    }

    /// Returns the mode with this name; `None` for any other text.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::L1, Self::L2].into_iter().find(|mode| mode.name() == name)
    }

    const fn bits(self) -> u64 {
        match self {
            Self::L1 => 0,
            Self::L2 => 1,
        }
    }
}

impl ExecutionEncoding {
    /// Returns the calldata of `__execute__` for these calls.
    ///
    /// | encoding | felts |
    /// |---|---|
    /// | `New` | `[count, (to, selector, length, calldata..)..]` |
    /// | `Legacy` | `[count, (to, selector, offset, length).., length of all calldata, calldata..]` |
    #[must_use]
    pub fn encode(self, calls: &[Call]) -> Vec<Felt> {
        let mut felts = vec![Felt::from(calls.len())];
        match self {
            Self::New => {
                for call in calls {
                    felts.extend([call.to, call.selector, Felt::from(call.calldata.len())]);
                    felts.extend(&call.calldata);
                }
            }
            Self::Legacy => {
                let mut offset = 0_usize;
                for call in calls {
                    felts.extend([call.to, call.selector, Felt::from(offset), Felt::from(call.calldata.len())]);
                    offset = offset.saturating_add(call.calldata.len());
                }
                felts.push(Felt::from(offset));
                felts.extend(calls.iter().flat_map(|call| &call.calldata));
            }
        }
        felts
    }
}

/// A call to a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The contract that is called.
    pub to: Felt,
    /// Selector of the function.
    pub selector: Felt,
    /// Arguments of the function.
    pub calldata: Vec<Felt>,
}

impl Call {
    pub(crate) const fn new(to: Felt, selector: Felt, calldata: Vec<Felt>) -> Self {
        Self { to, selector, calldata }
    }
}

/// An invoke transaction of version 3. It serializes as `BROADCASTED_INVOKE_TXN_V3` of the JSON-RPC specification, the parameter of
/// `starknet_addInvokeTransaction`.
///
/// It does not contain its chain. Only its hash depends on the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvokeTransaction {
    /// The account that sends and pays.
    pub sender_address: Felt,
    /// The calls, encoded for `__execute__`: see [`ExecutionEncoding::encode`].
    pub calldata: Vec<Felt>,
    /// All felts of the account's signature array; empty until it is signed.
    pub signature: Vec<Felt>,
    /// The account's nonce.
    pub nonce: Felt,
    /// The most that the sender pays for each resource.
    pub resource_bounds: ResourceBounds,
    /// Tip for each unit of L2 gas, in FRI.
    pub tip: u64,
    /// Data for the paymaster; empty if the sender pays.
    pub paymaster_data: Vec<Felt>,
    /// Data that deploys the account; empty if it is deployed already.
    pub account_deployment_data: Vec<Felt>,
    /// Where the nonce is stored.
    pub nonce_data_availability_mode: DataAvailabilityMode,
    /// Where the fee is charged.
    pub fee_data_availability_mode: DataAvailabilityMode,
}

/// The hashes of a transaction on one chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionHashes {
    /// Hash of the tip and the resource bounds.
    pub fee_hash: Felt,
    /// Hash of the calldata.
    pub calldata_hash: Felt,
    /// The transaction hash: it is signed, and it is the transaction's id.
    pub tx_hash: Felt,
}

impl InvokeTransaction {
    /// Creates an unsigned transaction without a tip, paymaster or deployment.
    #[must_use]
    pub const fn new(sender_address: Felt, calldata: Vec<Felt>, nonce: Felt, resource_bounds: ResourceBounds) -> Self {
        Self {
            sender_address,
            calldata,
            signature: Vec::new(),
            nonce,
            resource_bounds,
            tip: 0,
            paymaster_data: Vec::new(),
            account_deployment_data: Vec::new(),
            nonce_data_availability_mode: DataAvailabilityMode::L1,
            fee_data_availability_mode: DataAvailabilityMode::L1,
        }
    }

    /// Returns the transaction with the account's signature array.
    #[must_use]
    pub fn with_signature(mut self, signature: Vec<Felt>) -> Self {
        self.signature = signature;
        self
    }

    /// Returns the hashes of the transaction on the chain with this id, a short string. They do not cover the signature.
    #[must_use]
    pub fn hashes(&self, chain_id: Felt) -> TransactionHashes {
        let bounds = &self.resource_bounds;
        let fees = [
            Felt::from(self.tip),
            bounds.l1_gas.packed(*b"\0\0L1_GAS"),
            bounds.l2_gas.packed(*b"\0\0L2_GAS"),
            bounds.l1_data_gas.packed(*b"\0L1_DATA"),
        ];
        let (fee_hash, calldata_hash) = (poseidon(&fees), poseidon(&self.calldata));
        let mut hashes = TransactionHashes { fee_hash, calldata_hash, tx_hash: Felt::ZERO };
        hashes.tx_hash = poseidon(&self.preimage(chain_id, &hashes));
        hashes
    }

    fn preimage(&self, chain_id: Felt, hashes: &TransactionHashes) -> [Felt; 10] {
        let data = |felts: &[Felt]| if felts.is_empty() { HASH_OF_NOTHING } else { poseidon(felts) };
        let modes = (self.nonce_data_availability_mode.bits() << 32) | self.fee_data_availability_mode.bits();
        [
            INVOKE,
            Felt::THREE,
            self.sender_address,
            hashes.fee_hash,
            data(&self.paymaster_data),
            chain_id,
            self.nonce,
            Felt::from(modes),
            data(&self.account_deployment_data),
            hashes.calldata_hash,
        ]
    }
}

/// An unsigned invoke transaction with its calls and hashes.
///
/// Signers that build the transaction themselves (`account.execute_v3` of starknet-rs, `account.execute` of starknet.js) need
/// `calls`, and the nonce, bounds and tip of `transaction`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Invoke {
    /// Chain id as a short string.
    pub chain_id: Felt,
    /// The calls, in the order in which they are executed.
    pub calls: Vec<Call>,
    /// How the calls are encoded.
    pub encoding: ExecutionEncoding,
    /// The transaction, without a signature.
    pub transaction: InvokeTransaction,
    /// The hashes of the transaction.
    pub hashes: TransactionHashes,
}

impl Invoke {
    pub(crate) fn new(chain_id: Felt, calls: Vec<Call>, encoding: ExecutionEncoding, transaction: InvokeTransaction) -> Self {
        let hashes = transaction.hashes(chain_id);
        Self { chain_id, calls, encoding, transaction, hashes }
    }

    /// Returns the felts whose Poseidon hash is the transaction hash.
    #[must_use]
    pub fn preimage(&self) -> [Felt; 10] {
        self.transaction.preimage(self.chain_id, &self.hashes)
    }
}

impl Serialize for InvokeTransaction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("BroadcastedInvokeTxnV3", 12)?;
        object.serialize_field("type", "INVOKE")?;
        object.serialize_field("version", "0x3")?;
        object.serialize_field("sender_address", &HexFelt(&self.sender_address))?;
        object.serialize_field("calldata", &HexFelts(&self.calldata))?;
        object.serialize_field("signature", &HexFelts(&self.signature))?;
        object.serialize_field("nonce", &HexFelt(&self.nonce))?;
        object.serialize_field("resource_bounds", &self.resource_bounds)?;
        object.serialize_field("tip", &HexFelt(&Felt::from(self.tip)))?;
        object.serialize_field("paymaster_data", &HexFelts(&self.paymaster_data))?;
        object.serialize_field("account_deployment_data", &HexFelts(&self.account_deployment_data))?;
        object.serialize_field("nonce_data_availability_mode", self.nonce_data_availability_mode.name())?;
        object.serialize_field("fee_data_availability_mode", self.fee_data_availability_mode.name())?;
        object.end()
    }
}

impl Serialize for ResourceBound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ResourceBound", 2)?;
        object.serialize_field("max_amount", &HexFelt(&Felt::from(self.max_amount)))?;
        object.serialize_field("max_price_per_unit", &HexFelt(&Felt::from(self.max_price_per_unit)))?;
        object.end()
    }
}

impl<'de> Deserialize<'de> for ResourceBound {
    /// Reads the form that it serializes to.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Hex {
            #[serde(with = "serde_text")]
            max_amount: Felt,
            #[serde(with = "serde_text")]
            max_price_per_unit: Felt,
        }
        let Hex { max_amount, max_price_per_unit } = Hex::deserialize(deserializer)?;
        let wide = |_| D::Error::custom("the bound is too large");
        Ok(Self::new(max_amount.try_into().map_err(wide)?, max_price_per_unit.try_into().map_err(wide)?))
    }
}
