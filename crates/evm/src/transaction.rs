//! Unsigned transactions: EIP-1559, and EIP-155 legacy transactions for chains without it.

use alloy_consensus::{SignableTransaction, TxEip1559, TxLegacy, TypedTransaction};
use alloy_eips::eip2930::AccessList;
use alloy_primitives::{Address, B256, TxKind, U256, keccak256};
use countersign_abi::call::Approve;
use countersign_abi::steps::{self, Steps};
use countersign_core::json::Node;
use countersign_core::{Code, Hex, Refusal};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::message::UnsignedMessage;
use crate::verify::{Call, Deposit};

/// The highest nonce that a transaction may carry (EIP-2681).
const LAST_NONCE: u64 = u64::MAX - 1;

/// What only the wallet knows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wallet {
    /// Nonce of the sender's next transaction.
    pub nonce: u64,
    /// What the sender pays for gas.
    pub fees: Fees,
    /// The wallet's own chain, where it says so: it must be the asset's.
    pub chain_id: Option<u64>,
    /// Whether a transaction that sets the allowance to zero goes first, as some tokens need where one is left over.
    pub reset_approval: bool,
}

/// What the sender pays for gas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fees {
    /// EIP-1559, wei per gas.
    Eip1559 {
        /// Most that is paid in all.
        max_fee_per_gas: u128,
        /// Most that the block's proposer gets of it.
        max_priority_fee_per_gas: u128,
    },
    /// A legacy transaction, wei per gas.
    Legacy {
        /// What is paid.
        gas_price: u128,
    },
}

impl Wallet {
    /// A wallet context for an EIP-1559 chain.
    #[must_use]
    pub const fn new(nonce: u64, max_fee_per_gas: u128, max_priority_fee_per_gas: u128) -> Self {
        Self { nonce, fees: Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas }, chain_id: None, reset_approval: false }
    }

    /// A wallet context for a chain without EIP-1559.
    #[must_use]
    pub const fn legacy(nonce: u64, gas_price: u128) -> Self {
        Self { nonce, fees: Fees::Legacy { gas_price }, chain_id: None, reset_approval: false }
    }

    /// The wallet is set to the asset's chain, its fees are coherent, and its nonce is below the limit of EIP-2681.
    pub(crate) fn check(&self, asset_chain: u64) -> Result<(), Refusal> {
        if let Some(chain_id) = self.chain_id
            && chain_id != asset_chain
        {
            return Err(Refusal::new(Code::WalletChainMismatch, "/wallet/chain_id").with_expected(asset_chain).with_actual(chain_id));
        }
        if let Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas } = self.fees
            && max_priority_fee_per_gas > max_fee_per_gas
        {
            return Err(Refusal::new(Code::PriorityFeeAboveCap, "/wallet/max_priority_fee_per_gas")
                .with_expected(format!("at most {max_fee_per_gas}"))
                .with_actual(max_priority_fee_per_gas));
        }
        if self.nonce > LAST_NONCE {
            return Err(nonce_limit(self.nonce));
        }
        Ok(())
    }

    pub(crate) fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let wei = |node: Node<'_, '_>| u128::try_from(node.decimal()?).map_err(|_| node.refuse(Code::NumberTooLarge));
        let fees = match members.get("gas_price") {
            Some(price) if members.get("max_fee_per_gas").is_none() => Fees::Legacy { gas_price: wei(price)? },
            _ => Fees::Eip1559 {
                max_fee_per_gas: wei(members.need("max_fee_per_gas")?)?,
                max_priority_fee_per_gas: wei(members.need("max_priority_fee_per_gas")?)?,
            },
        };
        let chain_id = members.get("chain_id").map(|node| u64::try_from(node.any_number()?).map_err(|_| node.refuse(Code::NumberTooLarge)));
        Ok(Self {
            nonce: members.need("nonce")?.integer()?,
            fees,
            chain_id: chain_id.transpose()?,
            reset_approval: members.get("reset_approval").map(|node| node.bool()).transpose()?.unwrap_or_default(),
        })
    }
}

/// A transaction with the bytes and hash that are signed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Payload {
    /// The transaction as alloy's own type.
    pub transaction: TypedTransaction,
    /// The bytes that the hash is taken of.
    pub signing_payload: Vec<u8>,
    /// What is signed.
    pub signing_hash: B256,
}

/// Everything that the sender may sign for one order.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unsigned {
    /// Who sends and pays.
    pub sender: Address,
    /// What is signed, step by step.
    pub steps: Steps<Payload, UnsignedMessage>,
}

fn nonce_limit(nonce: u64) -> Refusal {
    Refusal::new(Code::NonceLimit, "/wallet/nonce").with_expected(format!("at most {LAST_NONCE} for the last transaction")).with_actual(nonce)
}

pub(crate) fn prepare(deposit: &Deposit, wallet: &Wallet) -> Result<Unsigned, Refusal> {
    wallet.check(deposit.chain_id)?;
    let mut nonce = Some(wallet.nonce);
    let mut payload = |call: &Call| {
        let this = nonce.filter(|nonce| *nonce <= LAST_NONCE).ok_or_else(|| nonce_limit(wallet.nonce))?;
        nonce = this.checked_add(1);
        Ok(Payload::new(deposit.chain_id, this, wallet.fees, call))
    };
    let approval_reset = match &deposit.approval {
        Some(approval) if wallet.reset_approval => {
            let reset = Approve { spender: approval.signed.spender, amount: U256::ZERO };
            Some(payload(&Call { data: reset.encode().into(), ..approval.call.clone() })?)
        }
        _ => None,
    };
    let steps = Steps {
        approval_reset,
        approval: deposit.approval.as_ref().map(|approval| payload(&approval.call)).transpose()?,
        initiate: payload(&deposit.initiate)?,
        typed_data: deposit.typed_data.clone().map(|message| UnsignedMessage::new(message, deposit.sender)),
    };
    Ok(Unsigned { sender: deposit.sender, steps })
}

impl Payload {
    pub(crate) fn new(chain_id: u64, nonce: u64, fees: Fees, call: &Call) -> Self {
        let (gas_limit, to, value, input) = (call.gas_limit, TxKind::Call(call.to), call.value, call.data.clone());
        let (transaction, signing_payload) = match fees {
            Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas } => {
                let access_list = AccessList::default();
                let tx = TxEip1559 { chain_id, nonce, gas_limit, max_fee_per_gas, max_priority_fee_per_gas, to, value, access_list, input };
                let payload = tx.encoded_for_signing();
                (TypedTransaction::Eip1559(tx), payload)
            }
            Fees::Legacy { gas_price } => {
                let tx = TxLegacy { chain_id: Some(chain_id), nonce, gas_price, gas_limit, to, value, input };
                let payload = tx.encoded_for_signing();
                (TypedTransaction::Legacy(tx), payload)
            }
        };
        let signing_hash = keccak256(&signing_payload);
        Self { transaction, signing_payload, signing_hash }
    }
}

impl steps::Payload for Payload {
    fn preimage(&self) -> Vec<u8> {
        self.signing_payload.clone()
    }

    fn digest(&self) -> B256 {
        self.signing_hash
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("signing_payload", &Hex(self.signing_payload.clone()))?;
        map.serialize_entry("signing_hash", &Hex(self.signing_hash.to_vec()))?;
        map.end()
    }
}

impl Serialize for Unsigned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.steps.serialize(serializer)
    }
}
