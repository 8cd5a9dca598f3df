//! Transactions: each has one `TriggerSmartContract` call, and refers to a recent block that the wallet chooses.
//!
//! Specification: `docs/spec/tron.md#signing`.

use std::ops::Range;

use alloy_primitives::{Address as AbiAddress, B256, Signature, U256, hex};
use countersign_core::report::amount;
use countersign_core::{
    ApprovalStep, Code, ContextVersion, FundingPath, NetworkFee, Refusal, Scheme, SentBy, Summary, Topic, UnixMillis, line_text,
};
use countersign_evm_core::funding::ApprovalPlan;
use countersign_evm_core::payloads;
use countersign_evm_core::signature::ExternalSignature;
use countersign_evm_core::signers::Signers;
use countersign_evm_core::typed_data::Message;
use prost::Message as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::address::Address;
use crate::deposit::{Call, Deposit, check_fee_limit};
use crate::message;
use crate::summary::TRX;

mod json;
pub(crate) mod permission;
pub mod protocol;
mod signed;

pub use permission::{Permission, PermissionKey};
use protocol::{Contract, Raw, TRIGGER_SMART_CONTRACT, TriggerSmartContract};
pub use signed::SignedTronTransaction;
pub(crate) use signed::matches;

/// How long nodes let a transaction wait at most, in milliseconds: 24 hours.
const MAX_LIFETIME: u64 = 24 * 60 * 60 * 1_000;
/// The years 2017 to 2099, in Unix milliseconds. The chain is younger, and a time in another unit is far outside.
const MILLISECONDS: Range<u64> = 1_483_228_800_000..4_102_444_800_000;

/// Requires that a time is in Unix milliseconds.
fn check_unit(time: u64, at: &'static str) -> Result<(), Refusal> {
    if MILLISECONDS.contains(&time) {
        return Ok(());
    }
    let in_seconds = time.saturating_mul(1_000);
    let (code, reason, right) = if time >= MILLISECONDS.end {
        (Code::ExpirationTooLate, "the time is after the year 2099: it is not in milliseconds", None)
    } else if MILLISECONDS.contains(&in_seconds) {
        (Code::ExpirationPassed, "the time is in seconds, and nodes read it in milliseconds, as one in January 1970", Some(in_seconds))
    } else {
        (Code::ExpirationPassed, "the time is before the chain's first block", None)
    };
    let refusal = Refusal::new(code, at).with_reason(reason).with_actual(time.to_string());
    Err(refusal.with_expected(right.map_or_else(|| "Unix milliseconds".to_owned(), |right| right.to_string())))
}

/// The wallet's part of an order's transactions: reference block, lifetime, fee limit, and the choice of approvals.
///
/// ```
/// use countersign::chains::UnixMillis;
/// use countersign::tron::{ApprovalStep, TxContext};
/// use std::time::Duration;
///
/// let now = UnixMillis::from_millis(1_772_601_001_001);
/// let expiration = now.saturating_add(Duration::from_secs(60));
/// let calls = TxContext::new([0x7f, 0x87], [0; 8], expiration, now)
///     .with_approval(ApprovalStep::Exact);
/// assert_eq!(calls.expiration.as_millis(), 1_772_601_061_001);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TxContext {
    /// The version of the stored form.
    #[serde(default)]
    version: ContextVersion,
    /// Bytes 6 and 7 of the reference block's number.
    pub ref_block_bytes: [u8; 2],
    /// Bytes 8 to 15 of the reference block's id.
    pub ref_block_hash: [u8; 8],
    /// When nodes stop accepting the transactions.
    pub expiration: UnixMillis,
    /// When the transactions are created.
    pub timestamp: UnixMillis,
    /// Id of the chain that the wallet is set to. It must be the asset's; `None` skips this check.
    pub chain_id: Option<u64>,
    /// The approvals to send before the call that locks the funds.
    #[serde(default)]
    pub approvals: ApprovalPlan,
    /// Fee limit of the call that locks the funds, in sun, within the policy. `None` keeps the one that the service proposed.
    pub fee_limit: Option<u64>,
    /// The permission under which the calls are signed. `None` is the owner permission with the owner's own key.
    pub permission: Option<Permission>,
}

impl TxContext {
    /// Creates a context from the reference block, the expiration and the timestamp. It sends the approval as verified, keeps the
    /// proposed fee limit, and names no chain.
    #[must_use]
    pub const fn new(ref_block_bytes: [u8; 2], ref_block_hash: [u8; 8], expiration: UnixMillis, timestamp: UnixMillis) -> Self {
        let approvals = ApprovalPlan::new(ApprovalStep::AsVerified);
        let version = ContextVersion;
        Self {
            version,
            ref_block_bytes,
            ref_block_hash,
            expiration,
            timestamp,
            chain_id: None,
            approvals,
            fee_limit: None,
            permission: None,
        }
    }

    /// Sets what to do with the token approval.
    #[must_use]
    pub const fn with_approval(mut self, step: ApprovalStep) -> Self {
        self.approvals.step = step;
        self
    }

    /// Sets the allowance to zero before the approval. Some tokens refuse to replace an allowance that is not zero.
    #[must_use]
    pub const fn with_allowance_reset(mut self) -> Self {
        self.approvals.reset_first = true;
        self
    }

    /// Sets the id of the chain that the wallet is set to, which must then be the asset's.
    #[must_use]
    pub const fn with_chain_id(mut self, chain_id: u64) -> Self {
        self.chain_id = Some(chain_id);
        self
    }

    /// Sets the fee limit of the call that locks the funds, in sun.
    #[must_use]
    pub const fn with_fee_limit(mut self, fee_limit: u64) -> Self {
        self.fee_limit = Some(fee_limit);
        self
    }

    /// Sets the permission of the sender's account under which the calls are signed. The gasless message has none: the owner's own key signs
    /// it.
    #[must_use]
    pub fn with_permission(mut self, permission: Permission) -> Self {
        self.permission = Some(permission);
        self
    }

    /// Adds the account that sends and pays for a recovery.
    #[must_use]
    pub const fn sent_by(self, sender: Address) -> SentBy<Address, Self> {
        SentBy::new(sender, self)
    }

    /// Returns the keys that sign in place of the sender's, if the wallet names any.
    pub(crate) fn signers(&self) -> Option<Signers> {
        self.permission.as_ref().and_then(Permission::signers)
    }

    /// Requires that the wallet is set to the asset's chain, that a permission can sign calls, that both times are in milliseconds, and that
    /// the expiration is after the timestamp and at most 24 hours later. Nodes compare the expiration with their head block, which is not
    /// known here.
    pub(crate) fn check(&self, asset_chain: u64) -> Result<(), Refusal> {
        if let Some(chain_id) = self.chain_id
            && chain_id != asset_chain
        {
            return Err(Refusal::new(Code::WalletChainMismatch, "/chain_id").with_expected(asset_chain).with_actual(chain_id));
        }
        let (expiration, timestamp) = (self.expiration.as_millis(), self.timestamp.as_millis());
        let late = |code, at: &'static str, expected: String, time: u64| {
            Refusal::new(code, at).with_expected(expected).with_actual(time.to_string())
        };
        if let Some(permission) = &self.permission {
            permission.check()?;
        }
        check_unit(expiration, "/expiration")?;
        if expiration <= timestamp {
            return Err(late(Code::ExpirationPassed, "/expiration", format!("above {timestamp}"), expiration));
        }
        check_unit(timestamp, "/timestamp")?;
        let latest = timestamp.saturating_add(MAX_LIFETIME);
        if expiration > latest {
            return Err(late(Code::ExpirationTooLate, "/expiration", format!("at most {latest}"), expiration));
        }
        Ok(())
    }
}

impl From<TxContext> for FundingPath<TxContext> {
    fn from(calls: TxContext) -> Self {
        Self::SelfFunded(calls)
    }
}

/// What a signer receives.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Payload {
    /// A transaction, with its bytes for hardware signers and its JSON for `tronWeb.trx.sign`.
    Transaction(TronTransaction),
    /// The gasless message. [`crate::message::to_json`] returns the form for `tronWeb.trx.signTypedData`.
    TypedData(Message),
}

impl Payload {
    /// Returns the payload as TronWeb and TronLink accept it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Transaction(transaction) => transaction.to_json(),
            Self::TypedData(message) => message::to_json(message),
        }
    }
}

/// An unsigned transaction with one contract call, with its bytes and id.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TronTransaction {
    /// The transaction as a protobuf message.
    pub raw: Raw,
    /// The contract call of the transaction.
    pub trigger: TriggerSmartContract,
    /// The encoded bytes of `raw`.
    pub raw_data: Vec<u8>,
    /// SHA-256 of `raw_data`: the digest that is signed, and the transaction's id.
    pub tx_id: B256,
}

/// The payloads that the sender has to sign: the calls, and the gasless message.
pub type Unsigned = payloads::Unsigned<TronTransaction>;
/// The payloads with all their signatures.
pub type SignedPayloads = payloads::SignedPayloads<TronTransaction>;

pub(crate) fn prepare(deposit: &Deposit, path: &FundingPath<TxContext>) -> Result<Unsigned, Refusal> {
    let mut transactions = Vec::new();
    if let Some(calls) = path.self_funded() {
        calls.check(deposit.chain_id)?;
        let mut to_send = deposit.calls(calls.approvals);
        if let (Some(fee_limit), Some((_, initiate))) = (calls.fee_limit, to_send.last_mut()) {
            let refuse = |code| Refusal::new(code, "/fee_limit").with_actual(fee_limit);
            initiate.fee_limit = check_fee_limit(deposit.max_fee_limit, U256::from(fee_limit), &refuse)?;
        }
        transactions.extend(to_send.iter().map(|(role, call)| (*role, TronTransaction::new(deposit.sender, calls, call))));
    }
    let unsigned = Unsigned::new(deposit.sender.bytes(), transactions, path.gasless(deposit.typed_data.as_ref())?);
    Ok(unsigned.with_signers(path.self_funded().and_then(TxContext::signers)))
}

/// Returns the id of the transaction with these bytes.
fn id_of(raw_data: &[u8]) -> B256 {
    B256::new(Sha256::digest(raw_data).into())
}

impl TronTransaction {
    /// Builds the transaction of a call. `wallet` was checked, so that its times fit.
    pub(crate) fn new(sender: Address, wallet: &TxContext, call: &Call) -> Self {
        let time = |time: UnixMillis| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self::at(sender, wallet, (time(wallet.expiration), time(wallet.timestamp)), call)
    }

    /// Builds the transaction of a call with this expiration and timestamp in place of the wallet's. The protocol's times are signed.
    fn at(sender: Address, wallet: &TxContext, (expiration, timestamp): (i64, i64), call: &Call) -> Self {
        let trigger = TriggerSmartContract {
            owner_address: sender.prefixed().to_vec(),
            contract_address: call.to.prefixed().to_vec(),
            call_value: call.value,
            data: call.data.to_vec(),
            ..TriggerSmartContract::default()
        };
        let permission_id = wallet.permission.as_ref().map_or(0, |permission| permission.id.into());
        let raw = Raw {
            ref_block_bytes: wallet.ref_block_bytes.to_vec(),
            ref_block_hash: wallet.ref_block_hash.to_vec(),
            expiration,
            contract: vec![Contract { permission_id, ..trigger.to_contract() }],
            timestamp,
            fee_limit: call.fee_limit,
            ..Raw::default()
        };
        let raw_data = raw.encode_to_vec();
        Self::from_parts(raw, trigger, raw_data)
    }

    fn from_parts(raw: Raw, trigger: TriggerSmartContract, raw_data: Vec<u8>) -> Self {
        let tx_id = id_of(&raw_data);
        Self { raw, trigger, raw_data, tx_id }
    }

    /// Decodes the bytes of a transaction whose only operation is one contract call.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] at `/raw_data` if the bytes are not canonical, or at `/raw_data/contract` for any other
    /// operation or number of operations.
    pub fn decode(raw_data: &[u8]) -> Result<Self, Refusal> {
        let malformed = || Refusal::new(Code::TransactionMismatch, "/raw_data").with_reason("not the canonical bytes of a transaction");
        let raw = Raw::decode(raw_data).map_err(|_| malformed())?;
        if raw.encode_to_vec() != raw_data {
            return Err(malformed());
        }
        let other = || {
            let refusal = Refusal::new(Code::TransactionMismatch, "/raw_data/contract");
            refusal.with_reason("the transaction is not exactly one contract call")
        };
        let [contract] = raw.contract.as_slice() else { return Err(other()) };
        let parameter = contract.parameter.as_ref().filter(|_| contract.kind == TRIGGER_SMART_CONTRACT).ok_or_else(other)?;
        let trigger = TriggerSmartContract::decode(parameter.value.as_slice()).map_err(|_| other())?;
        if trigger.encode_to_vec() != parameter.value {
            return Err(other());
        }
        Ok(Self::from_parts(raw, trigger, raw_data.to_vec()))
    }

    /// Returns the transaction as `tronWeb.trx.sign` accepts it: the JSON of node APIs, without a signature.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json::transaction(self, &[])
    }

    /// Returns the transaction with its signature. Does not verify the signature.
    #[must_use]
    pub const fn with_signature(self, signature: Signature) -> SignedTronTransaction {
        SignedTronTransaction { transaction: self, signature, further: Vec::new() }
    }

    /// Returns the permission of the owner's account that signs; 0 is the owner permission.
    pub(crate) fn permission_id(&self) -> i32 {
        self.raw.contract.first().map_or(0, |contract| contract.permission_id)
    }
}

impl payloads::Transaction for TronTransaction {
    const SCHEME: Scheme = Scheme::Secp256k1Sha256;
    const METHODS: [&'static str; 2] = ["trx.sign", "trx.signTypedData"];
    type Payload = Payload;
    type Native = SignedTronTransaction;

    fn signing_bytes(&self) -> &[u8] {
        &self.raw_data
    }

    fn read_signed(bytes: &[u8], prepared: &Unsigned) -> Result<(B256, Vec<ExternalSignature>), Refusal> {
        signed::parts(bytes, prepared).map(|(transaction, signatures)| (transaction.tx_id, signatures))
    }

    fn calldata(&self) -> &[u8] {
        &self.trigger.data
    }

    fn digest(&self) -> B256 {
        self.tx_id
    }

    fn payload(&self) -> Payload {
        Payload::Transaction(self.clone())
    }

    fn message_payload(message: &Message) -> Payload {
        Payload::TypedData(message.clone())
    }

    fn signed(&self, signature: &Signature, further: &[Signature]) -> (String, Vec<u8>, SignedTronTransaction) {
        let signed = SignedTronTransaction { further: further.to_vec(), ..self.clone().with_signature(*signature) };
        (hex::encode(self.tx_id), signed.broadcast_bytes(), signed)
    }

    fn format_address(address: AbiAddress) -> String {
        Address::from(address).to_string()
    }

    fn describe_fees(prepared: &Unsigned, sender: &str, summary: &mut Summary) {
        let Some(last) = prepared.calls.last() else { return };
        let raw = &last.transaction.raw;
        let lifetime = u128::try_from(raw.expiration.saturating_sub(raw.timestamp)).unwrap_or_default();
        let text = line_text!(
            "sent and paid for by {sender}, reference block {} {}, created at {} ms, expires at {} ms, {} later",
            hex::encode(&raw.ref_block_bytes),
            hex::encode(&raw.ref_block_hash),
            raw.timestamp,
            raw.expiration,
            amount::format_duration(lifetime)
        );
        summary.add_values(Topic::Wallet, text, [Address::from(prepared.sender).into()]);
        let permission_id = last.transaction.permission_id();
        if permission_id != 0 || prepared.signers().is_some() {
            summary.add(Topic::Wallet, permission::describe(permission_id, prepared.signers()));
        }
    }

    fn network_fee(prepared: &Unsigned) -> Option<NetworkFee> {
        let limits = prepared.calls.iter().map(|call| U256::try_from(call.transaction.raw.fee_limit).unwrap_or_default());
        let fee = NetworkFee::new(limits.reduce(U256::saturating_add)?, TRX).in_coin("TRX");
        // The fee limit is one of energy.
        Some(fee.and(Some("what the chain burns for its bytes")))
    }

    fn describe_digest(&self) -> String {
        hex::encode(self.tx_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction() -> TronTransaction {
        let call = Call { to: [2; 20].into(), value: 25, fee_limit: 1_000, data: vec![0x4e, 0xde].into() };
        TronTransaction::new([1; 20].into(), &TxContext::new([0, 0], [0; 8], UnixMillis::from_millis(2), UnixMillis::from_millis(1)), &call)
    }

    #[test]
    fn bytes_read_back_as_the_transaction() {
        let transaction = transaction();
        assert_eq!(TronTransaction::decode(&transaction.raw_data).unwrap(), transaction);
        let [contract] = transaction.raw.contract.as_slice() else { panic!("one contract") };
        let any = contract.parameter.as_ref().unwrap();
        assert_eq!((contract.kind, any.type_url.as_str()), (31, "type.googleapis.com/protocol.TriggerSmartContract"));
    }

    #[test]
    fn decodes_only_one_canonical_contract_call() {
        let refused = |change: fn(&mut Raw)| {
            let mut raw = transaction().raw;
            change(&mut raw);
            TronTransaction::decode(&raw.encode_to_vec()).unwrap_err().location().to_owned()
        };
        assert_eq!(refused(|raw| raw.contract.clear()), "/raw_data/contract");
        assert_eq!(refused(|raw| raw.contract.push(raw.contract[0].clone())), "/raw_data/contract");
        assert_eq!(refused(|raw| raw.contract[0].kind = 1), "/raw_data/contract");
        assert_eq!(refused(|raw| raw.contract[0].parameter = None), "/raw_data/contract");
        assert_eq!(refused(|raw| raw.contract[0].parameter.as_mut().unwrap().value.push(0)), "/raw_data/contract");
        // An unknown field, and a field with its default value, which proto3 leaves out: the decoder would drop both.
        for surplus in [&[0x4a, 0x00][..], &[0x18, 0x00]] {
            let bytes = [&transaction().raw_data, surplus].concat();
            assert_eq!(TronTransaction::decode(&bytes).unwrap_err().location(), "/raw_data");
        }
    }

    #[test]
    fn a_transaction_lives_for_some_time() {
        let context = |expiration, timestamp| {
            let (expiration, timestamp) = (UnixMillis::from_millis(expiration), UnixMillis::from_millis(timestamp));
            TxContext::new([0; 2], [0; 8], expiration, timestamp)
        };
        let calls = |expiration, timestamp| context(expiration, timestamp).check(1).map_err(|refusal| refusal.code());
        const NOW: u64 = 1_772_601_001_001;
        assert_eq!([calls(NOW + 1, NOW), calls(NOW + MAX_LIFETIME, NOW)], [Ok(()), Ok(())]);
        for (expiration, timestamp) in [(NOW, NOW), (NOW - 1, NOW), (0, u64::MAX), (NOW / 1_000, NOW / 1_000 - 60), (0, NOW)] {
            assert_eq!(calls(expiration, timestamp), Err(Code::ExpirationPassed), "{expiration} {timestamp}");
        }
        // Microseconds, 24 hours and one millisecond, 25 days, ten years.
        let late = [NOW * 1_000, NOW + MAX_LIFETIME + 1, NOW + 25 * MAX_LIFETIME, NOW + 3_652 * MAX_LIFETIME];
        assert_eq!(late.map(|expiration| calls(expiration, NOW)), [Err(Code::ExpirationTooLate); 4]);
        assert_eq!(calls(u64::MAX, 0), Err(Code::ExpirationTooLate));
        let refusal = context(NOW, NOW / 1_000).check(1).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::ExpirationPassed, "/timestamp"));
        assert_eq!(refusal.expected().map(ToString::to_string), Some((NOW / 1_000 * 1_000).to_string()));
    }

    #[test]
    fn a_wallet_of_another_chain_is_refused() {
        let calls = TxContext::new([0; 2], [0; 8], UnixMillis::from_millis(1_772_601_061_001), UnixMillis::from_millis(1_772_601_001_001))
            .with_chain_id(2);
        let refusal = calls.check(1).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::WalletChainMismatch, "/chain_id"));
        assert!(calls.check(2).is_ok());
    }
}
