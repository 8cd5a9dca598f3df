//! Invoke transactions, version 3: the account's `__execute__` with all calls of an order.
//!
//! The hash, and what a node takes (`BROADCASTED_INVOKE_TXN_V3`), are those of the Starknet JSON-RPC specification 0.8:
//! <https://github.com/starkware-libs/starknet-specs/tree/v0.8.1>

use countersign_core::json::{Members, Node};
use countersign_core::{Code, Refusal, U256};
use serde::ser::{Serialize, SerializeMap, Serializer};
use starknet_crypto::{Felt, poseidon_hash_many};

use crate::felt::{self, AllShown, Shown};
use crate::message::UnsignedMessage;
use crate::verify::Deposit;

/// `invoke`
const INVOKE: Felt = Felt::from_hex_unchecked("0x696e766f6b65");
/// Poseidon of nothing: no paymaster, no deployment data.
const HASH_OF_NOTHING: Felt = Felt::from_hex_unchecked("0x2272be0f580fd156823304800919530eaa97430e972d7213ee13f4fbf7a5dbc");
/// Most felts that paymaster or deployment data may have: what a node takes as a whole transaction has no more.
const MAX_DATA: usize = 4096;

/// What only the wallet knows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wallet {
    /// Nonce of the sender's next transaction.
    pub nonce: Felt,
    /// The wallet's own chain, where it says so: it must be the asset's.
    pub chain_id: Option<Felt>,
    /// Most that the sender pays.
    pub resource_bounds: ResourceBounds,
    /// What the sender adds for each unit of L2 gas, in FRI.
    pub tip: u64,
    /// Where the nonce is stored; only `L1` works today.
    pub nonce_data_availability: DataAvailabilityMode,
    /// Where the fee is taken; only `L1` works today.
    pub fee_data_availability: DataAvailabilityMode,
    /// Empty unless somebody else pays.
    pub paymaster_data: Vec<Felt>,
    /// Empty unless the transaction deploys the account.
    pub account_deployment_data: Vec<Felt>,
    /// How the account takes several calls.
    pub cairo: Cairo,
    /// The account's public key, where the wallet knows it: the address does not show it.
    pub public_key: Option<Felt>,
}

/// Most that is paid for each resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResourceBounds {
    /// L1 gas.
    pub l1_gas: Bound,
    /// L2 gas.
    pub l2_gas: Bound,
    /// L1 data gas.
    pub l1_data_gas: Bound,
}

/// Most that is paid for one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Bound {
    /// Units.
    pub max_amount: u64,
    /// FRI for a unit.
    pub max_price_per_unit: u128,
}

/// Where data is made available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DataAvailabilityMode {
    /// On L1.
    #[default]
    L1,
    /// On L2, reserved.
    L2,
}

/// How an account contract takes several calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Cairo {
    /// An array of calls, each with its calldata: every account of today.
    #[default]
    One,
    /// An array of calls that point into one calldata: accounts from before 2023.
    Zero,
}

impl Bound {
    /// A bound.
    #[must_use]
    pub const fn new(max_amount: u64, max_price_per_unit: u128) -> Self {
        Self { max_amount, max_price_per_unit }
    }

    fn read(members: &Members<'_, '_>, key: &str) -> Result<Self, Refusal> {
        let node = members.need(key)?;
        let members = node.object()?;
        let price = members.need("max_price_per_unit")?;
        Ok(Self {
            max_amount: read_u64(members.need("max_amount")?)?,
            max_price_per_unit: u128::try_from(price.any_number()?).map_err(|_| price.refuse(Code::NumberTooLarge))?,
        })
    }

    /// Name of the resource in 64 bits, amount in 64, price in 128.
    fn packed(self, name: [u8; 8]) -> Felt {
        let mut bytes = [0; 32];
        let parts = name.into_iter().chain(self.max_amount.to_be_bytes()).chain(self.max_price_per_unit.to_be_bytes());
        for (to, from) in bytes.iter_mut().zip(parts) {
            *to = from;
        }
        // The names begin with a zero byte, so this is below the prime.
        Felt::from_bytes_be(&bytes)
    }

    fn most(self) -> U256 {
        U256::from(self.max_amount).saturating_mul(U256::from(self.max_price_per_unit))
    }
}

impl ResourceBounds {
    /// Bounds.
    #[must_use]
    pub const fn new(l1_gas: Bound, l2_gas: Bound, l1_data_gas: Bound) -> Self {
        Self { l1_gas, l2_gas, l1_data_gas }
    }

    /// Most FRI that all resources cost together, with a tip for each unit of L2 gas.
    #[must_use]
    pub fn most(&self, tip: u64) -> U256 {
        let tips = U256::from(self.l2_gas.max_amount).saturating_mul(U256::from(tip));
        [self.l1_gas, self.l2_gas, self.l1_data_gas].into_iter().fold(tips, |sum, bound| sum.saturating_add(bound.most()))
    }
}

impl DataAvailabilityMode {
    fn read(members: &Members<'_, '_>, key: &str) -> Result<Self, Refusal> {
        match members.get(key) {
            None => Ok(Self::L1),
            Some(node) => match node.text()? {
                "L1" => Ok(Self::L1),
                "L2" => Ok(Self::L2),
                _ => Err(node.refuse(Code::WrongType).with_expected("L1 or L2")),
            },
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
        }
    }

    const fn bits(self) -> u64 {
        match self {
            Self::L1 => 0,
            Self::L2 => 1,
        }
    }
}

impl Cairo {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        match u8::try_from(node.any_number()?) {
            Ok(0) => Ok(Self::Zero),
            Ok(1) => Ok(Self::One),
            _ => Err(node.refuse(Code::WrongType).with_expected("0 or 1")),
        }
    }
}

fn read_u64(node: Node<'_, '_>) -> Result<u64, Refusal> {
    u64::try_from(node.any_number()?).map_err(|_| node.refuse(Code::NumberTooLarge))
}

fn read_felts(members: &Members<'_, '_>, key: &str) -> Result<Vec<Felt>, Refusal> {
    let Some(node) = members.get(key) else { return Ok(Vec::new()) };
    let felts = node.array()?;
    if felts.len() > MAX_DATA {
        return Err(node.at().refuse(Code::NumberTooLarge).with_reason("more felts than a transaction can have"));
    }
    felts.map(|felt| felt::read_any(felt)).collect()
}

impl Wallet {
    /// A wallet context with the usual settings: no tip, no paymaster, no deployment, calls encoded for Cairo 1.
    #[must_use]
    pub const fn new(nonce: Felt, resource_bounds: ResourceBounds) -> Self {
        Self {
            nonce,
            chain_id: None,
            resource_bounds,
            tip: 0,
            nonce_data_availability: DataAvailabilityMode::L1,
            fee_data_availability: DataAvailabilityMode::L1,
            paymaster_data: Vec::new(),
            account_deployment_data: Vec::new(),
            cairo: Cairo::One,
            public_key: None,
        }
    }

    pub(crate) fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let bounds = members.need("resource_bounds")?;
        let resources = bounds.object()?;
        let resource_bounds = ResourceBounds {
            l1_gas: Bound::read(&resources, "l1_gas")?,
            l2_gas: Bound::read(&resources, "l2_gas")?,
            l1_data_gas: Bound::read(&resources, "l1_data_gas")?,
        };
        Ok(Self {
            nonce: felt::read_any(members.need("nonce")?)?,
            chain_id: members.get("chain_id").map(|node| felt::read_short_string(node)).transpose()?,
            resource_bounds,
            tip: members.get("tip").map(|node| read_u64(node)).transpose()?.unwrap_or_default(),
            nonce_data_availability: DataAvailabilityMode::read(&members, "nonce_data_availability_mode")?,
            fee_data_availability: DataAvailabilityMode::read(&members, "fee_data_availability_mode")?,
            paymaster_data: read_felts(&members, "paymaster_data")?,
            account_deployment_data: read_felts(&members, "account_deployment_data")?,
            cairo: members.get("cairo_version").map(|node| Cairo::read(node)).transpose()?.unwrap_or_default(),
            public_key: members.get("public_key").map(|node| felt::read(node)).transpose()?,
        })
    }
}

/// A call to a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The contract.
    pub to: Felt,
    /// Its function.
    pub selector: Felt,
    /// The arguments.
    pub calldata: Vec<Felt>,
}

impl Call {
    pub(crate) const fn new(to: Felt, selector: Felt, calldata: Vec<Felt>) -> Self {
        Self { to, selector, calldata }
    }
}

/// An invoke transaction with the hash that is signed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Invoke {
    /// Who sends and pays.
    pub sender: Felt,
    /// Chain id as a short string.
    pub chain_id: Felt,
    /// The calls as `__execute__` takes them.
    pub calldata: Vec<Felt>,
    /// What the wallet added.
    pub wallet: Wallet,
    /// Hash of fees and tip.
    pub fee_hash: Felt,
    /// Hash of the calldata.
    pub calldata_hash: Felt,
    /// What is signed, and the transaction's id.
    pub tx_hash: Felt,
}

impl Invoke {
    /// The transaction of `sender` on a chain with these calls.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain.
    pub fn new(sender: Felt, chain_id: Felt, calls: &[&Call], wallet: &Wallet) -> Result<Self, Refusal> {
        if let Some(found) = wallet.chain_id
            && found != chain_id
        {
            let shown = |felt: Felt| format!("{felt:#x}");
            return Err(Refusal::new(Code::WalletChainMismatch, "/wallet/chain_id").with_expected(shown(chain_id)).with_actual(shown(found)));
        }
        let calldata = match wallet.cairo {
            Cairo::One => execute_calldata(calls),
            Cairo::Zero => legacy_execute_calldata(calls),
        };
        let calldata_hash = poseidon_hash_many(&calldata);
        let bounds = &wallet.resource_bounds;
        let fees = [
            Felt::from(wallet.tip),
            bounds.l1_gas.packed(*b"\0\0L1_GAS"),
            bounds.l2_gas.packed(*b"\0\0L2_GAS"),
            bounds.l1_data_gas.packed(*b"\0L1_DATA"),
        ];
        let fee_hash = poseidon_hash_many(&fees);
        let mut invoke = Self { sender, chain_id, calldata, wallet: wallet.clone(), fee_hash, calldata_hash, tx_hash: Felt::ZERO };
        invoke.tx_hash = poseidon_hash_many(&invoke.preimage());
        Ok(invoke)
    }

    /// The felts that the transaction hash is the Poseidon hash of.
    #[must_use]
    pub fn preimage(&self) -> [Felt; 10] {
        let wallet = &self.wallet;
        let data = |felts: &[Felt]| if felts.is_empty() { HASH_OF_NOTHING } else { poseidon_hash_many(felts) };
        let modes = (wallet.nonce_data_availability.bits() << 32) | wallet.fee_data_availability.bits();
        [
            INVOKE,
            Felt::THREE,
            self.sender,
            self.fee_hash,
            data(&wallet.paymaster_data),
            self.chain_id,
            wallet.nonce,
            Felt::from(modes),
            data(&wallet.account_deployment_data),
            self.calldata_hash,
        ]
    }
}

/// Felts one after another, 32 bytes each: what signers get to see of a hash.
pub(crate) fn bytes(felts: &[Felt]) -> Vec<u8> {
    felts.iter().flat_map(Felt::to_bytes_be).collect()
}

/// `[count, (to, selector, length, calldata..)..]`
fn execute_calldata(calls: &[&Call]) -> Vec<Felt> {
    let mut felts = vec![Felt::from(calls.len())];
    for call in calls {
        felts.extend([call.to, call.selector, Felt::from(call.calldata.len())]);
        felts.extend(&call.calldata);
    }
    felts
}

/// `[count, (to, selector, offset, length).., length of all calldata, calldata..]`
fn legacy_execute_calldata(calls: &[&Call]) -> Vec<Felt> {
    let mut felts = vec![Felt::from(calls.len())];
    let mut offset = 0_usize;
    for call in calls {
        felts.extend([call.to, call.selector, Felt::from(offset), Felt::from(call.calldata.len())]);
        offset = offset.saturating_add(call.calldata.len());
    }
    felts.push(Felt::from(offset));
    felts.extend(calls.iter().flat_map(|call| &call.calldata));
    felts
}

/// Everything that the sender or the owner may sign for one order.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unsigned {
    /// Approval, where there is one, and initiate in one transaction.
    pub invoke: Invoke,
    /// The gasless message.
    pub typed_data: Option<UnsignedMessage>,
}

pub(crate) fn prepare(deposit: &Deposit, wallet: &Wallet) -> Result<Unsigned, Refusal> {
    let calls: Vec<&Call> = deposit.approval.iter().map(|approval| &approval.call).chain([&deposit.initiate]).collect();
    Ok(Unsigned {
        invoke: Invoke::new(deposit.sender, deposit.chain_id, &calls, wallet)?,
        typed_data: deposit.typed_data.clone().map(|message| UnsignedMessage::new(message, deposit.sender)),
    })
}

impl Invoke {
    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("calldata", &AllShown(&self.calldata))?;
        map.serialize_entry("tx_hash", &Shown(&self.tx_hash))
    }
}

impl Serialize for Invoke {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        self.write(&mut map)?;
        map.end()
    }
}

impl Serialize for UnsignedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("message_hash", &Shown(&self.message_hash))?;
        map.end()
    }
}

impl Serialize for Unsigned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("invoke", &self.invoke)?;
        map.serialize_entry("typed_data", &self.typed_data)?;
        map.end()
    }
}
