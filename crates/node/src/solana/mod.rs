//! Solana, read over JSON-RPC.
//!
//! What is asked, and what the answers mean, is in [`countersign::solana::reader`]. This module sends it to the configured endpoints, and
//! decides how many of them must agree.
//!
//! Specification: `docs/spec/solana.md#reading-an-order`, `docs/spec/chains.md`.

mod context;
mod preconditions;
mod prepare;
mod send;
mod sent;

use countersign::solana::Address;
use countersign::solana::address::{self, from_account};
use countersign::solana::reader::{self, BalanceQuery, HeadQuery, ProgramQuery};
pub use countersign::solana::reader::{Preflight, ProgramDescription, TransactionStatus};
use countersign::{
    Refusal, U256,
    trust::{Asset, Contract, Generation},
};
use countersign_core::reader::{Agree, Judged, Machine};
use countersign_transport::Transport;

use crate::contracts::Description;
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::families::shared_methods;
use crate::nodes::{Connection, Head, Nodes};

/// A connected Solana cluster.
#[derive(Debug)]
pub struct SolanaChain<'n, T> {
    pub(crate) connection: Connection<'n, T>,
}

impl<T> Clone for SolanaChain<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SolanaChain<'_, T> {}

impl<T: Transport> Nodes<T> {
    /// Returns a connected Solana cluster.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint, belongs to another family, or is a cluster that this crate does
    /// not support.
    pub fn solana(&self, chain: &str) -> Result<SolanaChain<'_, T>, NodeError> {
        SolanaChain::new(self.connection(chain)?)
    }
}

shared_methods! { SolanaChain }

impl<'n, T: Transport> SolanaChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        reader::identity(connection.network).map_err(|_| NodeError::NotConnected(connection.name.to_owned()))?;
        Ok(Self { connection })
    }

    /// Returns the newest finalized slot of an endpoint, with the newest blockhash and the time of its clock.
    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.connection.read_one::<reader::NewestBlock>(caller, &HeadQuery::new(self.connection.network)).await
    }

    /// Reads the balance of an account in base units of a token, or in lamports of SOL if `mint` is `None`.
    ///
    /// The balance of a token is the sum of the associated token accounts of both token programs. The endpoints must agree on the balance
    /// at their newest finalized slots.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Address, mint: Option<Address>) -> Result<U256, NodeError> {
        let query = BalanceQuery::new(self.connection.network, owner, mint);
        Ok(self.connection.agreed::<reader::Balance>(&query).await?.0)
    }

    pub(crate) async fn balance_of(&self, owner: &str, token: Option<&Contract>) -> Result<U256, NodeError> {
        let mint = token.map(|token| parse(&token.text, "/token")).transpose()?;
        self.balance(parse(owner, "/owner")?, mint).await
    }

    pub(crate) async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        let Some(program) = asset.htlc.as_ref().and_then(from_account) else { return Ok(Description::default()) };
        let program = self.describe_program(program, None).await?;
        Ok(Description::default()
            .with("code_hash", program.code_hash.map(hex::encode))
            .with("deploy_slot", program.deploy_slot)
            .with("upgrade_authority", program.upgrade_authority)
            .with_generation(program.generation.map(Generation::Solana)))
    }

    /// Reads the description of a program. The endpoints must agree.
    ///
    /// The program itself does not show its generation. Pass the account of an open swap as `swap_account` to recognize the generation.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn describe_program(&self, program: Address, swap_account: Option<Address>) -> Result<ProgramDescription, NodeError> {
        let query = ProgramQuery::new(self.connection.network, program, swap_account);
        self.connection.agreed::<reader::Program>(&query).await
    }

    /// Reads something that an intended transaction depends on. The endpoints must agree, also to refuse it.
    async fn judged<R: Agree, M: Machine<Output = Judged<R>>>(&self, subject: &M::Subject) -> Result<R, NodeError> {
        Ok(self.connection.agreed::<M>(subject).await?.0?)
    }
}

/// Parses an address that comes from the caller, not from the service.
fn parse(text: &str, at: &'static str) -> Result<Address, Refusal> {
    address::parse(text).map_err(|error| Refusal::new(error, at))
}
