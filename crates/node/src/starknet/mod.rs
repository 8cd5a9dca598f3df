//! Starknet, read over JSON-RPC of version 0.9 or 0.10.
//!
//! What is asked and what the answers mean is decided by [`countersign::starknet::reader`]. Here it is sent to the endpoints, which must
//! agree.
//!
//! Specification: `docs/spec/starknet.md#reading-an-order`, `docs/spec/chains.md`.

mod preconditions;
mod prepare;
mod send;
mod sent;
mod wallet;

use countersign::starknet::reader::{Contract, ContractQuery, HeadQuery, NewestBlock, chain_id};
pub use countersign::starknet::reader::{ContractDescription, Preflight, TransactionStatus};
use countersign::starknet::{Felt, address::from_account, felt};
use countersign::{
    Refusal,
    trust::{Asset, Generation},
};
use countersign_core::reader::{Doubt, Verdict};
use countersign_transport::Transport;

use crate::contracts::Description;
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::families::shared_methods;
use crate::nodes::{Connection, Head, Nodes};

/// A connected Starknet chain.
#[derive(Debug)]
pub struct StarknetChain<'n, T> {
    pub(crate) connection: Connection<'n, T>,
    pub(crate) chain_id: Felt,
}

impl<T> Clone for StarknetChain<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StarknetChain<'_, T> {}

impl<T: Transport> Nodes<T> {
    /// Returns a connected Starknet network.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint or belongs to another family.
    pub fn starknet(&self, chain: &str) -> Result<StarknetChain<'_, T>, NodeError> {
        StarknetChain::new(self.connection(chain)?)
    }
}

shared_methods! { StarknetChain }

impl<'n, T: Transport> StarknetChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        let chain_id = chain_id(connection.network).ok_or_else(|| NodeError::NotConnected(connection.name.to_owned()))?;
        Ok(Self { connection, chain_id })
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.connection.read_one::<NewestBlock>(caller, &HeadQuery { chain_id: self.chain_id }).await
    }

    pub(crate) async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        let Some(contract) = asset.htlc.as_ref().and_then(from_account) else { return Ok(Description::default()) };
        let described = self.describe_contract(contract).await?;
        let hex = |felt: Felt| format!("{felt:#x}");
        Ok(Description::default()
            .with("class_hash", described.class_hash.map(hex))
            .with("token", described.token.map(hex))
            .with_generation(described.generation.filter(|generation| generation.is_told_by_class).map(Generation::Starknet)))
    }

    /// Reads the description of a contract. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn describe_contract(&self, contract: Felt) -> Result<ContractDescription, NodeError> {
        self.connection.agreed::<Contract>(&ContractQuery { chain_id: self.chain_id, address: contract }).await
    }

    /// Returns what a quorum says to a question whose "no" is a refusal.
    fn verdict<'q, V, O>(&self, verdict: Verdict<'q, V, O, Refusal>) -> Result<&'q O, NodeError> {
        match verdict {
            Verdict::Stands(_, one) => Ok(one),
            Verdict::Open(Doubt::Held(refusal)) | Verdict::Falls(Doubt::Held(refusal)) => Err(refusal.into()),
            Verdict::Open(doubt) | Verdict::Falls(doubt) => Err(self.connection.doubt(doubt)),
        }
    }
}

/// Parses an address that comes from the caller, not from the service.
fn parse(text: &str, at: &'static str) -> Result<Felt, Refusal> {
    felt::parse(text).map_err(|error| Refusal::new(error, at))
}
