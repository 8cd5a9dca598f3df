//! Unsigned transactions: one `TriggerSmartContract`, tied to a recent block that the wallet names.

use alloy_primitives::{B256, U256, hex};
use countersign_abi::call::Approve;
use countersign_abi::steps::{self, Steps};
use countersign_core::json::Node;
use countersign_core::{Code, Refusal, number};
use prost::Message as _;
use serde::ser::{Serialize, SerializeMap, Serializer};
use sha2::{Digest, Sha256};

use crate::address::Address;
use crate::message::UnsignedMessage;
use crate::verify::{Call, Deposit};

pub mod protocol;

use protocol::{Raw, TriggerSmartContract};

/// What only the wallet knows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wallet {
    /// Bytes 6 and 7 of the reference block's number.
    pub ref_block_bytes: [u8; 2],
    /// Bytes 8 to 15 of the reference block's id.
    pub ref_block_hash: [u8; 8],
    /// When nodes stop taking the transactions, Unix milliseconds.
    pub expiration: i64,
    /// When they are made, Unix milliseconds.
    pub timestamp: i64,
    /// The wallet's own chain, where it says so: it must be the asset's.
    pub chain_id: Option<u64>,
    /// Whether a transaction that sets the allowance to zero goes first, as some tokens need where one is left over.
    pub reset_approval: bool,
}

impl Wallet {
    /// A wallet context with a reference block and a lifetime in Unix milliseconds.
    #[must_use]
    pub const fn new(ref_block_bytes: [u8; 2], ref_block_hash: [u8; 8], expiration: i64, timestamp: i64) -> Self {
        Self { ref_block_bytes, ref_block_hash, expiration, timestamp, chain_id: None, reset_approval: false }
    }

    /// The wallet is set to the asset's chain, and its transactions live for some time. How long nodes take them for they
    /// measure from the head block, which only the wallet sees.
    pub(crate) fn check(&self, asset_chain: u64) -> Result<(), Refusal> {
        if let Some(chain_id) = self.chain_id
            && chain_id != asset_chain
        {
            return Err(Refusal::new(Code::WalletChainMismatch, "/wallet/chain_id").with_expected(asset_chain).with_actual(chain_id));
        }
        if self.expiration <= self.timestamp {
            return Err(Refusal::new(Code::ExpirationPassed, "/wallet/expiration")
                .with_expected(format!("above {}", self.timestamp))
                .with_actual(self.expiration));
        }
        Ok(())
    }

    pub(crate) fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        fn bytes<const N: usize>(node: Node<'_, '_>) -> Result<[u8; N], Refusal> {
            number::bare_hex_array(node.text()?).map_err(|code| node.refuse(code))
        }
        let millis = |node: Node<'_, '_>| i64::try_from(node.integer()?).map_err(|_| node.refuse(Code::NumberTooLarge));
        let members = node.object()?;
        let chain_id = members.get("chain_id").map(|node| u64::try_from(node.any_number()?).map_err(|_| node.refuse(Code::NumberTooLarge)));
        Ok(Self {
            ref_block_bytes: bytes(members.need("ref_block_bytes")?)?,
            ref_block_hash: bytes(members.need("ref_block_hash")?)?,
            expiration: millis(members.need("expiration")?)?,
            timestamp: millis(members.need("timestamp")?)?,
            chain_id: chain_id.transpose()?,
            reset_approval: members.get("reset_approval").map(|node| node.bool()).transpose()?.unwrap_or_default(),
        })
    }
}

/// A transaction with the bytes and id that are signed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Payload {
    /// The transaction as a protobuf message.
    pub transaction: Raw,
    /// The call in it.
    pub trigger: TriggerSmartContract,
    /// The message's bytes.
    pub raw_data: Vec<u8>,
    /// SHA-256 of the bytes: what is signed, and the transaction's id.
    pub tx_id: B256,
}

/// Everything to sign for one order.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unsigned {
    /// Who signs the transactions and the message: the owner.
    pub sender: Address,
    /// What is signed, step by step.
    pub steps: Steps<Payload, UnsignedMessage>,
}

pub(crate) fn prepare(deposit: &Deposit, wallet: &Wallet) -> Result<Unsigned, Refusal> {
    wallet.check(deposit.chain_id)?;
    let payload = |call: &Call| Payload::new(deposit.sender, wallet, call);
    let approval_reset = deposit.approval.as_ref().filter(|_| wallet.reset_approval).map(|approval| {
        let reset = Approve { spender: approval.signed.spender, amount: U256::ZERO };
        payload(&Call { data: reset.encode().into(), ..approval.call.clone() })
    });
    let steps = Steps {
        approval_reset,
        approval: deposit.approval.as_ref().map(|approval| payload(&approval.call)),
        initiate: payload(&deposit.initiate),
        typed_data: deposit.typed_data.clone().map(|message| UnsignedMessage::new(message, deposit.sender)),
    };
    Ok(Unsigned { sender: deposit.sender, steps })
}

impl Payload {
    pub(crate) fn new(sender: Address, wallet: &Wallet, call: &Call) -> Self {
        let trigger = TriggerSmartContract {
            owner_address: sender.prefixed().to_vec(),
            contract_address: call.to.prefixed().to_vec(),
            call_value: call.value,
            data: call.data.to_vec(),
            ..TriggerSmartContract::default()
        };
        let transaction = Raw {
            ref_block_bytes: wallet.ref_block_bytes.to_vec(),
            ref_block_hash: wallet.ref_block_hash.to_vec(),
            expiration: wallet.expiration,
            contract: vec![trigger.to_contract()],
            timestamp: wallet.timestamp,
            fee_limit: call.fee_limit,
            ..Raw::default()
        };
        let raw_data = transaction.encode_to_vec();
        let tx_id = B256::new(Sha256::digest(&raw_data).into());
        Self { transaction, trigger, raw_data, tx_id }
    }
}

impl steps::Payload for Payload {
    fn preimage(&self) -> Vec<u8> {
        self.raw_data.clone()
    }

    fn digest(&self) -> B256 {
        self.tx_id
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("raw_data", &hex::encode(&self.raw_data))?;
        map.serialize_entry("tx_id", &hex::encode(self.tx_id))?;
        map.end()
    }
}

impl Serialize for Unsigned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.steps.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload() -> Payload {
        let call = Call { to: [2; 20].into(), value: 25, fee_limit: 1_000, data: vec![0x4e, 0xde].into() };
        Payload::new([1; 20].into(), &Wallet::new([0, 0], [0; 8], 2, 1), &call)
    }

    #[test]
    fn bytes_read_back_as_the_transaction() {
        let payload = payload();
        let read = Raw::decode(payload.raw_data.as_slice()).unwrap();
        assert_eq!(read, payload.transaction);
        let [contract] = read.contract.as_slice() else { panic!("one contract") };
        let any = contract.parameter.as_ref().unwrap();
        assert_eq!(TriggerSmartContract::decode(any.value.as_slice()).unwrap(), payload.trigger);
        assert_eq!((contract.kind, any.type_url.as_str()), (31, "type.googleapis.com/protocol.TriggerSmartContract"));
    }

    #[test]
    fn a_transaction_lives_for_some_time() {
        let wallet = |expiration, timestamp| Wallet::new([0; 2], [0; 8], expiration, timestamp).check(1).map_err(|refusal| refusal.code());
        assert_eq!(wallet(2, 1), Ok(()));
        for (expiration, timestamp) in [(1, 1), (0, 1), (i64::MIN, i64::MAX)] {
            assert_eq!(wallet(expiration, timestamp), Err(Code::ExpirationPassed), "{expiration} {timestamp}");
        }
    }

    #[test]
    fn a_wallet_of_another_chain_is_refused() {
        let mut wallet = Wallet::new([0; 2], [0; 8], 2, 1);
        wallet.chain_id = Some(2);
        assert_eq!(wallet.check(1).unwrap_err().code(), Code::WalletChainMismatch);
        assert!(wallet.check(2).is_ok());
    }
}
