//! EVM chains, read over JSON-RPC. What is asked, and what the answers mean, is in [`countersign::evm::reader`].
//!
//! Specification: `docs/spec/evm.md#reading-an-order`, `docs/spec/chains.md`.

mod preconditions;
mod prepare;
mod sent;
mod wallet;

use countersign::chains::Network;
use countersign::evm::address::from_account;
use countersign::evm::alloy_primitives::{Address, B256};
use countersign::evm::reader::{
    CodeCheck, CodeOf, Contract, GaslessSignature, Newest, NewestBlock, OnChain, Plan, PreflightCheck, SignatureCheck, Status,
};
use countersign::evm::{SignedOrder, UnsignedOrder};
use countersign::{
    Code, Refusal,
    trust::{Asset, Generation},
};
use countersign_transport::Transport;

pub use countersign::evm::reader::{ContractDescription, Domain, Preflight, Receipt};

use crate::contracts::Description;
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::families::shared_methods;
use crate::nodes::{Connection, Head, Nodes};

/// A connected EVM chain.
#[derive(Debug)]
pub struct EvmChain<'n, T> {
    pub(crate) connection: Connection<'n, T>,
    chain_id: u64,
}

impl<T> Clone for EvmChain<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for EvmChain<'_, T> {}

impl<T: Transport> Nodes<T> {
    /// Returns a connected EVM chain.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint or belongs to another family.
    pub fn evm(&self, chain: &str) -> Result<EvmChain<'_, T>, NodeError> {
        EvmChain::new(self.connection(chain)?)
    }
}

shared_methods! { EvmChain }

impl<'n, T: Transport> EvmChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        match connection.network {
            Network::Evm(chain_id) => Ok(Self { connection, chain_id: *chain_id }),
            _ => Err(NodeError::NotConnected(connection.name.to_owned())),
        }
    }

    pub(crate) const fn on_chain<S>(&self, subject: S) -> OnChain<S> {
        OnChain { chain_id: self.chain_id, subject }
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.connection.read_one::<NewestBlock>(caller, &self.on_chain(Newest)).await
    }

    /// Checks that the sender has enough of the coin, the token and the allowance, and simulates the calls: see [`PreflightCheck`]. Call
    /// it before signing. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with a code of [`PreflightCheck`], or with
    /// [`Code::WalletChainMismatch`] if a call is for another chain. Returns another
    /// [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        let plan = Plan::new(order, self.chain_id)?;
        Ok(self.connection.agreed::<PreflightCheck>(&plan).await?.0?)
    }

    /// Reads whether an account has code, of a contract wallet or of a delegate (EIP-7702): see [`CodeCheck`]. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn has_code(&self, account: Address) -> Result<bool, NodeError> {
        Ok(self.connection.agreed::<CodeCheck>(&self.on_chain(CodeOf(account))).await?.0)
    }

    /// Checks that the contract will take the signature of a gasless message: see [`SignatureCheck`]. Call it before the signature is
    /// submitted. An order without such a message passes. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::ContractSignatureRefused`] or [`Code::AccountNotDeployed`], or with
    /// [`Code::WalletChainMismatch`] if the message is for another chain. Returns another [`NodeError`] if no endpoint answers or too few
    /// of them agree.
    pub async fn check_gasless(&self, order: &SignedOrder) -> Result<(), NodeError> {
        let Some(signature) = GaslessSignature::of(order) else { return Ok(()) };
        if signature.chain_id != self.chain_id {
            let refusal = Refusal::new(Code::WalletChainMismatch, "");
            return Err(refusal.with_expected(self.chain_id).with_actual(signature.chain_id).into());
        }
        Ok(self.connection.agreed::<SignatureCheck>(&self.on_chain(signature)).await?.0?)
    }

    /// Reads the receipt of a transaction; `None` while it is not in a block. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn receipt(&self, id: B256) -> Result<Option<Receipt>, NodeError> {
        Ok(self.connection.agreed::<Status>(&self.on_chain(id)).await?.0)
    }

    pub(crate) async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        let Some(contract) = asset.htlc.as_ref().and_then(from_account) else { return Ok(Description::default()) };
        let described = self.describe_contract(contract).await?;
        let (domain, generation) = (described.domain.as_ref(), described.generation(None).map(Generation::Evm));
        Ok(Description::default()
            .with("code_hash", described.code_hash)
            .with("version", described.version)
            .with("token", described.token)
            .with("domain_name", domain.map(|domain| &domain.name))
            .with("domain_version", domain.map(|domain| &domain.version))
            .with_generation(generation))
    }

    /// Reads the description of a contract. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn describe_contract(&self, contract: Address) -> Result<ContractDescription, NodeError> {
        Ok(self.connection.agreed::<Contract>(&self.on_chain(contract)).await?.0)
    }
}
