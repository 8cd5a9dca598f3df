//! Transactions of EIP-1559, and legacy transactions of EIP-155 for chains without it.
//!
//! Specification: `docs/spec/evm.md#signing`.

#[cfg(test)]
mod published;

use alloy_consensus::{SignableTransaction, Transaction as _, TxEip1559, TxEnvelope, TxLegacy, TypedTransaction};
use alloy_dyn_abi::eip712::TypedData;
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip2930::AccessList;
use alloy_primitives::{Address, B256, Signature, TxKind, U256, keccak256};
use countersign_core::reader::check_low_fee;
use countersign_core::{
    ApprovalStep, Code, ContextVersion, FundingPath, NetworkFee, Refusal, Role, Scheme, SentBy, Summary, Topic, TypedValue, Warnings,
    line_text, number,
};
use countersign_evm_core::funding::ApprovalPlan;
use countersign_evm_core::matching::{OrderCalls, SentCall};
use countersign_evm_core::payloads;
use countersign_evm_core::signature::ExternalSignature;
use countersign_evm_core::typed_data::Message;
use serde::{Deserialize, Serialize};

use crate::deposit::{Call, Deposit};
use crate::gas;
use crate::message::to_typed_data;
use crate::reader::has_l1_fee;
use crate::received;

/// The highest nonce that a transaction may have (EIP-2681).
const MAX_NONCE: u64 = u64::MAX - 1;
/// Decimal places of one gwei, in wei.
const GWEI: u8 = 9;
/// Decimal places of the chain's own coin, in wei.
pub(crate) const COIN: u8 = 18;

/// Why a transaction of type 4 is refused.
pub(crate) const DELEGATES: &str = "the transaction also delegates the account to a contract (EIP-7702), which no order needs: have the wallet \
    send the call without it; if it was sent already, pass the receipt of the transaction (`find_payment`)";
/// Why the transaction of another account is refused.
const BY_ANOTHER: &str = "another account sent the transaction: if a relay, a bundler or an owner of a Safe sent it for yours, pass its receipt \
    (`find_payment`), which shows what it did";

/// The wallet's part of an order's transactions: nonce, fees, and the choice of approvals.
///
/// ```
/// use countersign::evm::{ApprovalStep, TxContext};
///
/// let calls = TxContext::eip1559(7, 30_000_000_000, 1_000_000_000)
///     .with_approval(ApprovalStep::Exact);
/// assert_eq!(calls.nonce, 7);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TxContext {
    /// The version of the stored form.
    #[serde(default)]
    version: ContextVersion,
    /// Nonce of the first transaction. Each further transaction has the next one.
    pub nonce: u64,
    /// The number of the sender's earlier transactions that are not mined yet. The order's transactions wait for them. 0 if unknown.
    #[serde(default)]
    pub unmined: u64,
    /// What the sender pays for gas.
    pub fees: Fees,
    /// EIP-155 id of the chain that the wallet is set to. It must be the asset's; `None` skips this check.
    pub chain_id: Option<u64>,
    /// The approvals to send before the call that locks the funds.
    #[serde(default)]
    pub approvals: ApprovalPlan,
    /// Gas limit of the call that locks the funds, within the policy. `None` keeps the one that the service proposed.
    pub gas_limit: Option<u64>,
}

/// What the sender pays for gas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Fees {
    /// Fees of an EIP-1559 transaction.
    Eip1559 {
        /// The most wei that the sender pays per gas, priority fee included.
        max_fee_per_gas: u128,
        /// The most wei per gas that go to the block's proposer.
        max_priority_fee_per_gas: u128,
    },
    /// Fees of a legacy transaction.
    Legacy {
        /// Wei that the sender pays per gas.
        gas_price: u128,
    },
}

impl TxContext {
    /// Creates the context for EIP-1559 transactions. Fees are in wei per gas.
    #[must_use]
    pub const fn eip1559(nonce: u64, max_fee_per_gas: u128, max_priority_fee_per_gas: u128) -> Self {
        Self::new(nonce, Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas })
    }

    /// Creates the context for legacy transactions, on chains without EIP-1559. The price is in wei per gas.
    #[must_use]
    pub const fn legacy(nonce: u64, gas_price: u128) -> Self {
        Self::new(nonce, Fees::Legacy { gas_price })
    }

    /// Creates a context that sends the approval as verified, keeps the proposed gas limit, and names no chain.
    #[must_use]
    pub const fn new(nonce: u64, fees: Fees) -> Self {
        let approvals = ApprovalPlan::new(ApprovalStep::AsVerified);
        Self { version: ContextVersion, nonce, unmined: 0, fees, chain_id: None, approvals, gas_limit: None }
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

    /// Sets the EIP-155 id of the chain that the wallet is set to, which must then be the asset's.
    #[must_use]
    pub const fn with_chain_id(mut self, chain_id: u64) -> Self {
        self.chain_id = Some(chain_id);
        self
    }

    /// Sets the gas limit of the call that locks the funds.
    #[must_use]
    pub const fn with_gas_limit(mut self, gas_limit: u64) -> Self {
        self.gas_limit = Some(gas_limit);
        self
    }

    /// Sets the number of the sender's earlier transactions that are not mined yet. The prepared order then has the warning
    /// [`Code::NonceGap`].
    #[must_use]
    pub const fn with_unmined(mut self, unmined: u64) -> Self {
        self.unmined = unmined;
        self
    }

    /// Adds the account that sends and pays for a recovery or a claim.
    #[must_use]
    pub const fn sent_by(self, sender: Address) -> SentBy<Address, Self> {
        SentBy::new(sender, self)
    }

    /// Adds the warning about earlier transactions that are not mined yet.
    pub(crate) fn warn(&self, warnings: &mut Warnings) {
        if self.unmined > 0 {
            let first = self.nonce.saturating_sub(self.unmined);
            warnings.warn_about(Code::NonceGap, format!("{} of them, from nonce {first} on", self.unmined));
        }
    }

    /// Judges a fee of zero: nodes refuse or never mine the transaction on most chains. A tip of zero is a warning, because some chains
    /// have no tips.
    pub(crate) fn check_low_fee(&self, role: Role, is_accepted: bool, warnings: &mut Warnings) -> Result<(), Refusal> {
        match self.fees {
            Fees::Eip1559 { max_fee_per_gas: 0, .. } => {
                check_low_fee(role, is_accepted, "/max_fee_per_gas", "a fee cap of 0 wei per gas", warnings)
            }
            Fees::Legacy { gas_price: 0 } => check_low_fee(role, is_accepted, "/gas_price", "a price of 0 wei per gas", warnings),
            Fees::Eip1559 { max_priority_fee_per_gas: 0, .. } => {
                warnings.warn_about(Code::FeeTooLow, "a priority fee of 0, which nodes of many chains refuse");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Requires that the wallet is set to the asset's chain, that the priority fee is not above the fee cap, and that the nonce is
    /// below the limit of EIP-2681.
    pub(crate) fn check(&self, asset_chain: u64) -> Result<(), Refusal> {
        if let Some(chain_id) = self.chain_id
            && chain_id != asset_chain
        {
            return Err(Refusal::new(Code::WalletChainMismatch, "/chain_id").with_expected(asset_chain).with_actual(chain_id));
        }
        if let Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas } = self.fees
            && max_priority_fee_per_gas > max_fee_per_gas
        {
            return Err(Refusal::new(Code::PriorityFeeAboveCap, "/max_priority_fee_per_gas")
                .with_expected(TypedValue::AtMost(U256::from(max_fee_per_gas)))
                .with_actual(max_priority_fee_per_gas));
        }
        if self.nonce > MAX_NONCE {
            return Err(nonce_limit(self.nonce));
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
    /// A transaction.
    Transaction(TypedTransaction),
    /// The gasless message, for `sign_dynamic_typed_data` of an alloy signer.
    TypedData(TypedData),
}

/// An unsigned transaction with its signing hash.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EvmTransaction {
    /// The transaction as alloy's own type.
    pub transaction: TypedTransaction,
    /// The encoded transaction that is hashed for signing.
    pub signing_bytes: Vec<u8>,
    /// Keccak-256 of `signing_bytes`, the digest that is signed.
    pub signing_hash: B256,
}

/// The payloads that the sender has to sign: the calls, and the gasless message.
pub type Unsigned = payloads::Unsigned<EvmTransaction>;
/// The payloads with all their signatures.
pub type SignedPayloads = payloads::SignedPayloads<EvmTransaction>;

fn nonce_limit(nonce: u64) -> Refusal {
    Refusal::new(Code::NonceLimit, "/nonce").with_expected(format!("at most {MAX_NONCE} for the last transaction")).with_actual(nonce)
}

pub(crate) fn prepare(deposit: &Deposit, path: &FundingPath<TxContext>) -> Result<Unsigned, Refusal> {
    let mut transactions = Vec::new();
    if let Some(calls) = path.self_funded() {
        calls.check(deposit.chain_id)?;
        let mut to_send = deposit.calls(calls.approvals);
        if let (Some(gas_limit), Some((_, initiate))) = (calls.gas_limit, to_send.last_mut()) {
            let refuse = |code| Refusal::new(code, "/gas_limit").with_actual(gas_limit);
            initiate.gas_limit = gas::check_limit(deposit.max_gas_limit, U256::from(gas_limit), &refuse)?;
            gas::check_bytes(gas_limit, &initiate.data, &refuse)?;
        }
        let mut nonce = Some(calls.nonce);
        for (role, call) in to_send {
            let this = nonce.filter(|nonce| *nonce <= MAX_NONCE).ok_or_else(|| nonce_limit(calls.nonce))?;
            nonce = this.checked_add(1);
            transactions.push((role, EvmTransaction::new(deposit.chain_id, this, calls.fees, &call)));
        }
    }
    Ok(Unsigned::new(deposit.sender, transactions, path.gasless(deposit.typed_data.as_ref())?))
}

impl EvmTransaction {
    pub(crate) fn new(chain_id: u64, nonce: u64, fees: Fees, call: &Call) -> Self {
        let (gas_limit, to, value, input) = (call.gas_limit, TxKind::Call(call.to), call.value, call.data.clone());
        let (transaction, signing_bytes) = match fees {
            Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas } => {
                let access_list = AccessList::default();
                let tx = TxEip1559 { chain_id, nonce, gas_limit, max_fee_per_gas, max_priority_fee_per_gas, to, value, access_list, input };
                let bytes = tx.encoded_for_signing();
                (TypedTransaction::Eip1559(tx), bytes)
            }
            Fees::Legacy { gas_price } => {
                let tx = TxLegacy { chain_id: Some(chain_id), nonce, gas_price, gas_limit, to, value, input };
                let bytes = tx.encoded_for_signing();
                (TypedTransaction::Legacy(tx), bytes)
            }
        };
        let signing_hash = keccak256(&signing_bytes);
        Self { transaction, signing_bytes, signing_hash }
    }

    /// Returns the transaction with its signature. Does not verify the signature.
    #[must_use]
    pub fn with_signature(&self, signature: &Signature) -> TxEnvelope {
        self.transaction.clone().into_envelope(*signature)
    }

    /// Returns the most that the transaction's gas can cost, in wei.
    fn highest_fee(&self) -> U256 {
        U256::from(self.transaction.gas_limit()).saturating_mul(U256::from(self.transaction.max_fee_per_gas()))
    }

    fn fees(&self) -> String {
        let gwei = |wei: u128| number::in_whole_units(U256::from(wei), GWEI);
        match &self.transaction {
            TypedTransaction::Eip1559(tx) => {
                let (max, priority) = (gwei(tx.max_fee_per_gas), gwei(tx.max_priority_fee_per_gas));
                format!("at most {max} gwei per gas, {priority} of it to the proposer")
            }
            TypedTransaction::Legacy(tx) => format!("{} gwei per gas, legacy transaction", gwei(tx.gas_price)),
            _ => String::new(),
        }
    }
}

impl payloads::Transaction for EvmTransaction {
    const SCHEME: Scheme = Scheme::Secp256k1Keccak;
    const METHODS: [&'static str; 2] = ["eth_signTransaction", "eth_signTypedData_v4"];
    const HEX_PREFIX: &'static str = "0x";
    type Payload = Payload;
    type Native = TxEnvelope;

    fn signing_bytes(&self) -> &[u8] {
        &self.signing_bytes
    }

    fn read_signed(bytes: &[u8], _: &Unsigned) -> Result<(B256, Vec<ExternalSignature>), Refusal> {
        let envelope = received::from_bytes(bytes)?;
        Ok((envelope.signature_hash(), vec![(*envelope.signature()).into()]))
    }

    fn chain_id(&self) -> Option<u64> {
        self.transaction.chain_id()
    }

    fn calldata(&self) -> &[u8] {
        self.transaction.input()
    }

    fn digest(&self) -> B256 {
        self.signing_hash
    }

    fn payload(&self) -> Payload {
        Payload::Transaction(self.transaction.clone())
    }

    fn message_payload(message: &Message) -> Payload {
        Payload::TypedData(to_typed_data(message))
    }

    fn signed(&self, signature: &Signature, _: &[Signature]) -> (String, Vec<u8>, TxEnvelope) {
        let envelope = self.with_signature(signature);
        (envelope.tx_hash().to_string(), envelope.encoded_2718(), envelope)
    }

    fn format_address(address: Address) -> String {
        address.to_string()
    }

    fn describe_fees(prepared: &Unsigned, sender: &str, summary: &mut Summary) {
        let calls = &prepared.calls;
        let Some(last) = calls.last() else { return };
        let text = line_text!("sent and paid for by {sender}, {}", last.transaction.fees());
        summary.add_values(Topic::Wallet, text, [crate::address::to_account(prepared.sender).into()]);
        let Some(fee) = Self::network_fee(prepared) else { return };
        let what = if calls.len() == 1 { "the transaction" } else { "all transactions" };
        summary.add_values(Topic::Wallet, line_text!("the gas of {what} costs {fee}"), [fee.at_most.into()]);
    }

    fn network_fee(prepared: &Unsigned) -> Option<NetworkFee> {
        let last = prepared.calls.last()?;
        let costs = prepared.calls.iter().map(|call| call.transaction.highest_fee());
        let is_more = last.transaction.transaction.chain_id().is_some_and(has_l1_fee);
        let fee = NetworkFee::new(costs.fold(U256::ZERO, U256::saturating_add), COIN);
        Some(fee.and(is_more.then_some("the L1 data fee")))
    }

    fn describe_digest(&self) -> String {
        format!("nonce {}, {}", self.transaction.nonce(), self.signing_hash)
    }
}

/// Returns which call of a deposit a signed transaction makes.
pub(crate) fn matches(deposit: &Deposit, transaction: &TxEnvelope, warnings: &mut Warnings) -> Result<Role, Refusal> {
    use alloy_consensus::transaction::SignerRecoverable as _;

    let differs = |location: &'static str| Refusal::new(Code::TransactionMismatch, location);
    // An authorization would let another contract's code act for the account, and blobs cost a fee. No order needs either.
    if transaction.authorization_list().is_some_and(|list| !list.is_empty()) {
        return Err(differs("/authorization_list").with_reason(DELEGATES));
    }
    if transaction.blob_versioned_hashes().is_some_and(|hashes| !hashes.is_empty()) {
        return Err(differs("/blob_versioned_hashes").with_reason("the transaction also pays for blobs"));
    }
    if transaction.chain_id() != Some(deposit.chain_id) {
        let actual = transaction.chain_id().map_or_else(|| "none".to_owned(), |chain_id| chain_id.to_string());
        return Err(differs("/chain_id").with_expected(deposit.chain_id).with_actual(actual));
    }
    let sender = transaction.recover_signer().map_err(|_| differs("/signature").with_reason("no account can have made this signature"))?;
    if sender != deposit.sender {
        let (expected, actual) = (crate::address::to_account(deposit.sender), crate::address::to_account(sender));
        let refusal = differs("/from").with_expected(expected).with_actual(actual);
        return Err(refusal.with_reason(BY_ANOTHER));
    }
    let Deposit { initiate, approval, terms, .. } = deposit;
    let calls = OrderCalls {
        initiate: SentCall { to: Some(initiate.to), value: initiate.value, data: &initiate.data },
        approval: approval.as_ref().map(|approval| (approval.call.to, approval)),
        amount: terms.amount,
        places: ["/to", "/value", "/input"],
        format: |address| address.to_string(),
    };
    calls.role(SentCall { to: transaction.to(), value: transaction.value(), data: transaction.input() }, warnings)
}
