//! What an owner of a Safe compares: the hashes that Safe and the owner's device show.
//!
//! The owner's device signs neither the call nor the swap's message, but a `SafeTx` or a `SafeMessage` around it, in the Safe's own
//! EIP-712 domain. Specification and sources: `docs/spec/hashes.md`.

use std::str::FromStr;

use countersign::evm::Payload as EvmPayload;
use countersign::evm::alloy_consensus::Transaction as _;
use countersign::evm::alloy_primitives::{Address, B256, U256, keccak256};
use countersign::{Payload, Unsigned};
use thiserror::Error;

use super::typed_data::lower;
use super::{Device, HashCard};

const DOMAIN: &str = "EIP712Domain(uint256 chainId,address verifyingContract)";
const DOMAIN_BEFORE_1_3: &str = "EIP712Domain(address verifyingContract)";
const TRANSACTION: &str = "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,\
                           uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)";
const MESSAGE: &str = "SafeMessage(bytes message)";

/// The version of a Safe, as far as its hashes depend on it: from 1.3 on, they are bound to the chain.
///
/// ```
/// use countersign_view::hashes::SafeVersion;
///
/// let version: SafeVersion = "1.4.1".parse().unwrap();
/// assert_eq!(version, SafeVersion::From1_3);
/// assert!("0.1.0".parse::<SafeVersion>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SafeVersion {
    /// 1.0, 1.1 and 1.2: no chain id in the domain.
    Before1_3,
    /// 1.3 and later.
    #[default]
    From1_3,
}

/// A text is not the version of a Safe whose hashes are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected the version of a Safe from 1.0 to 1.x, such as 1.4.1")]
#[non_exhaustive]
pub struct UnknownSafeVersion;

impl FromStr for SafeVersion {
    type Err = UnknownSafeVersion;

    /// Reads what `VERSION()` of the contract returns: `1.4.1`, or `1.3.0+L2` as services write it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut numbers = text.split(['.', '+', '-']).map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(1)), Some(Ok(0..=2))) => Ok(Self::Before1_3),
            (Some(Ok(1)), Some(Ok(_))) => Ok(Self::From1_3),
            _ => Err(UnknownSafeVersion),
        }
    }
}

/// The `safeTxGas` of a Safe's transactions. It is signed, so the hashes depend on it.
///
/// ```
/// use countersign_view::hashes::SafeTxGas;
///
/// assert_eq!("call".parse(), Ok(SafeTxGas::OfCall));
/// assert_eq!("300000".parse(), Ok(SafeTxGas::Of(300_000)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SafeTxGas {
    /// Zero, as Safe's app proposes it from 1.3 on.
    #[default]
    Zero,
    /// The gas limit of the call, as Safe's provider takes it from the `gas` of `eth_sendTransaction`.
    OfCall,
    /// This number.
    Of(u64),
}

/// A text is not a `safeTxGas`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected a number of gas units, as Safe shows it, or `call` for the gas limit of each call")]
#[non_exhaustive]
pub struct UnknownSafeTxGas;

impl FromStr for SafeTxGas {
    type Err = UnknownSafeTxGas;

    /// Reads a number in decimal digits, or `call`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "call" => Ok(Self::OfCall),
            _ if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().map(Self::Of).map_err(|_| UnknownSafeTxGas),
            _ => Err(UnknownSafeTxGas),
        }
    }
}

/// A Safe that sends an order, as the order's owner or delegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(clippy::exhaustive_structs, reason = "the hashes depend on nothing else")]
pub struct Safe {
    /// The version of its contract.
    pub version: SafeVersion,
    /// The nonce that Safe gives to the order's first call. The following calls have the following nonces.
    pub nonce: u64,
    /// The `safeTxGas` of its transactions.
    pub safe_tx_gas: SafeTxGas,
}

impl Safe {
    /// Adds to each card of an EVM order what Safe shows of it. Other families have no Safe, so their cards stay as they are.
    ///
    /// Each call is a transaction of its own, without a refund of gas, as Safe's app proposes it from 1.3 on. What Safe
    /// joins into one `multiSend` has another hash, and Safe shows only its parts.
    ///
    /// The card of a message stays as it is for a Safe before 1.3, because such a Safe cannot answer the HTLC: it lacks the function of
    /// ERC-1271 that takes a hash of 32 bytes.
    pub fn add_to(&self, cards: &mut [HashCard], order: &Unsigned) {
        let requests = order.requests();
        let mut nonce = self.nonce;
        for request in &requests {
            let (Payload::Evm(payload), Ok(account)) = (&request.payload, request.signer.parse::<Address>()) else { continue };
            let (chain, message, label) = match payload {
                EvmPayload::Transaction(transaction) => {
                    // A contract is created by no order.
                    let Some(to) = transaction.to() else { continue };
                    let gas = match self.safe_tx_gas {
                        SafeTxGas::Zero => 0,
                        SafeTxGas::OfCall => transaction.gas_limit(),
                        SafeTxGas::Of(gas) => gas,
                    };
                    let message = transaction_hash(to, transaction.value(), transaction.input(), gas, nonce);
                    // No Safe has as many transactions.
                    let Some(next) = nonce.checked_add(1) else { return };
                    nonce = next;
                    (transaction.chain_id(), message, "safeTxHash")
                }
                EvmPayload::TypedData(data) if self.version == SafeVersion::From1_3 => {
                    let chain = data.domain.chain_id.and_then(|id| u64::try_from(id).ok());
                    (chain, message_hash(&request.digest), "SafeMessage hash")
                }
                _ => continue,
            };
            let (Some(chain), Some(card)) = (chain, cards.iter_mut().find(|card| card.request == request.id)) else { continue };
            let domain = self.domain_hash(chain, account);
            let digest = keccak256([b"\x19\x01".as_slice(), domain.as_slice(), message.as_slice()].concat());
            for (label, hash) in [("Domain hash", domain), ("Message hash", message), (label, digest)] {
                card.add(Device::Safe, label, lower(hash.as_slice()));
            }
        }
    }

    fn domain_hash(&self, chain: u64, account: Address) -> B256 {
        match self.version {
            SafeVersion::Before1_3 => hash_struct(DOMAIN_BEFORE_1_3, &[account.into_word()]),
            SafeVersion::From1_3 => hash_struct(DOMAIN, &[U256::from(chain).into(), account.into_word()]),
        }
    }
}

/// The struct hash of a call (operation 0) whose gas is not refunded.
fn transaction_hash(to: Address, value: U256, data: &[u8], gas: u64, nonce: u64) -> B256 {
    let none = B256::ZERO;
    let call = [to.into_word(), value.into(), keccak256(data), none];
    let refund = [none; 4];
    hash_struct(TRANSACTION, &[call.as_slice(), &[U256::from(gas).into()], &refund, &[U256::from(nonce).into()]].concat())
}

/// The struct hash of a message that is a digest, as a contract asks a Safe about it by ERC-1271.
fn message_hash(digest: &[u8]) -> B256 {
    hash_struct(MESSAGE, &[keccak256(digest)])
}

fn hash_struct(kind: &str, words: &[B256]) -> B256 {
    let mut preimage = keccak256(kind).to_vec();
    for word in words {
        preimage.extend_from_slice(word.as_slice());
    }
    keccak256(preimage)
}
