//! Funding paths: the account's own transaction, the gasless message, or both.

use countersign_core::{ApprovalStep, Code, ContextVersion, FundingPath, Gasless, Refusal, SentBy, serde_text};
use serde::{Deserialize, Serialize};
use starknet_types_core::felt::Felt;

use crate::transaction::{Call, DataAvailabilityMode, ExecutionEncoding, Invoke, InvokeTransaction, ResourceBounds};

/// The wallet's part of the account's transaction: nonce, fees, and the choice of the approval.
///
/// ```
/// use countersign::starknet::{
///     ApprovalStep, Felt, ResourceBound, ResourceBounds, TxContext,
/// };
///
/// let bounds = ResourceBounds::new(
///     ResourceBound::new(0, 1_000_000_000),
///     ResourceBound::new(2_000_000, 3_000_000_000),
///     ResourceBound::new(512, 1_000_000_000),
/// );
/// let execution =
///     TxContext::new(Felt::from(7), bounds).with_approval(ApprovalStep::Exact);
/// assert_eq!(execution.tip, 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TxContext {
    /// The version of the stored form.
    #[serde(default)]
    pub(crate) version: ContextVersion,
    /// Nonce of the sender's next transaction.
    #[serde(with = "serde_text")]
    pub nonce: Felt,
    /// The most that the sender pays for each resource.
    pub resource_bounds: ResourceBounds,
    /// Tip for each unit of L2 gas, in FRI.
    #[serde(default)]
    pub tip: u64,
    /// The chain that the wallet is set to, as a short string. It must be the asset's; `None` skips this check.
    #[serde(default, with = "serde_text::option")]
    pub chain_id: Option<Felt>,
    /// The account's public key, which cannot be derived from its address. `None` if the wallet does not know it: signatures are then
    /// not proven.
    #[serde(default, with = "serde_text::option")]
    pub public_key: Option<Felt>,
    /// What to do with the token approval before the call that locks the funds.
    #[serde(default)]
    pub approval: ApprovalStep,
    /// How the calls are encoded for the account.
    #[serde(default)]
    pub encoding: ExecutionEncoding,
    /// Data for the paymaster; empty if the sender pays.
    #[serde(default, with = "serde_text::list")]
    pub paymaster_data: Vec<Felt>,
    /// Data that deploys the account; empty if it is deployed already.
    #[serde(default, with = "serde_text::list")]
    pub account_deployment_data: Vec<Felt>,
    /// Where the nonce is stored. The network supports only `L1` today.
    #[serde(default)]
    pub nonce_data_availability_mode: DataAvailabilityMode,
    /// Where the fee is charged. The network supports only `L1` today.
    #[serde(default)]
    pub fee_data_availability_mode: DataAvailabilityMode,
}

impl TxContext {
    /// Creates a context that sends the approval as verified to a Cairo 1 account, without a tip, paymaster or deployment.
    #[must_use]
    pub const fn new(nonce: Felt, resource_bounds: ResourceBounds) -> Self {
        Self {
            version: ContextVersion,
            nonce,
            resource_bounds,
            tip: 0,
            chain_id: None,
            public_key: None,
            approval: ApprovalStep::AsVerified,
            encoding: ExecutionEncoding::New,
            paymaster_data: Vec::new(),
            account_deployment_data: Vec::new(),
            nonce_data_availability_mode: DataAvailabilityMode::L1,
            fee_data_availability_mode: DataAvailabilityMode::L1,
        }
    }

    /// Sets the account's public key, so that signatures of two felts can be proven.
    #[must_use]
    pub const fn with_public_key(mut self, public_key: Felt) -> Self {
        self.public_key = Some(public_key);
        self
    }

    /// Sets the tip for each unit of L2 gas, in FRI.
    #[must_use]
    pub const fn with_tip(mut self, tip: u64) -> Self {
        self.tip = tip;
        self
    }

    /// Sets what to do with the token approval.
    #[must_use]
    pub const fn with_approval(mut self, step: ApprovalStep) -> Self {
        self.approval = step;
        self
    }

    /// Sets the chain that the wallet is set to, which must then be the asset's. It is a short string: see
    /// [`felt::from_short_string`](crate::felt::from_short_string).
    #[must_use]
    pub const fn with_chain_id(mut self, chain_id: Felt) -> Self {
        self.chain_id = Some(chain_id);
        self
    }

    /// Sets how the calls are encoded for the account.
    #[must_use]
    pub const fn with_encoding(mut self, encoding: ExecutionEncoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Sets the data for the paymaster, who pays instead of the sender.
    #[must_use]
    pub fn with_paymaster_data(mut self, data: Vec<Felt>) -> Self {
        self.paymaster_data = data;
        self
    }

    /// Sets the data that deploys the account: class hash, salt and constructor calldata.
    #[must_use]
    pub fn with_account_deployment_data(mut self, data: Vec<Felt>) -> Self {
        self.account_deployment_data = data;
        self
    }

    /// Sets where the nonce is stored and where the fee is charged.
    #[must_use]
    pub const fn with_data_availability(mut self, nonce: DataAvailabilityMode, fee: DataAvailabilityMode) -> Self {
        self.nonce_data_availability_mode = nonce;
        self.fee_data_availability_mode = fee;
        self
    }

    /// Adds the account that sends and pays for a recovery.
    #[must_use]
    pub const fn sent_by(self, sender: Felt) -> SentBy<Felt, Self> {
        SentBy::new(sender, self)
    }

    /// Returns the transaction in which `sender` makes these calls, in this order.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain.
    pub(crate) fn invoke(&self, sender: Felt, chain_id: Felt, calls: Vec<Call>) -> Result<Invoke, Refusal> {
        if let Some(actual) = self.chain_id
            && actual != chain_id
        {
            let refusal = Refusal::new(Code::WalletChainMismatch, "/chain_id");
            return Err(refusal.with_expected(format!("{chain_id:#x}")).with_actual(format!("{actual:#x}")));
        }
        let transaction = InvokeTransaction {
            tip: self.tip,
            paymaster_data: self.paymaster_data.clone(),
            account_deployment_data: self.account_deployment_data.clone(),
            nonce_data_availability_mode: self.nonce_data_availability_mode,
            fee_data_availability_mode: self.fee_data_availability_mode,
            ..InvokeTransaction::new(sender, self.encoding.encode(&calls), self.nonce, self.resource_bounds)
        };
        Ok(Invoke::new(chain_id, calls, self.encoding, transaction))
    }
}

/// A funding path, and the account's public key, which proves signatures of two felts. The key cannot be derived from the address.
///
/// A path by itself is enough: signatures are then proven if its [`TxContext`] has the key.
///
/// ```
/// use countersign::starknet::{Felt, Gasless, KeyedPath};
///
/// # fn example(order: countersign::starknet::VerifiedOrder, public_key: Felt) -> Result<(), countersign::Refusal> {
/// let proven = order.prepare(KeyedPath::gasless(public_key))?;
/// let unproven = order.prepare(Gasless)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KeyedPath {
    /// The version of the stored form.
    #[serde(default)]
    version: ContextVersion,
    /// The funding path.
    pub path: FundingPath<TxContext>,
    /// The account's public key; `None` if the wallet does not know it.
    #[serde(default, with = "serde_text::option")]
    pub public_key: Option<Felt>,
}

impl KeyedPath {
    /// Creates the gasless path of the account with this public key.
    #[must_use]
    pub const fn gasless(public_key: Felt) -> Self {
        Self { version: ContextVersion, path: FundingPath::Gasless, public_key: Some(public_key) }
    }
}

impl From<FundingPath<TxContext>> for KeyedPath {
    fn from(path: FundingPath<TxContext>) -> Self {
        Self { version: ContextVersion, public_key: path.self_funded().and_then(|execution| execution.public_key), path }
    }
}

impl From<Gasless> for KeyedPath {
    fn from(gasless: Gasless) -> Self {
        FundingPath::from(gasless).into()
    }
}

impl From<TxContext> for KeyedPath {
    fn from(execution: TxContext) -> Self {
        FundingPath::SelfFunded(execution).into()
    }
}
