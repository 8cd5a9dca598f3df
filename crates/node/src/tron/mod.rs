//! Tron, read over the HTTP interface of its nodes: `/wallet/..` serves the newest block, and `/walletsolidity/..` the newest irreversible
//! (solidified) block. An endpoint must serve both. What is asked, and what the answers mean, is in [`countersign::tron::reader`].
//!
//! Specification: `docs/spec/tron.md#reading-an-order`, `docs/spec/chains.md`.

mod preconditions;
mod prepare;
mod sent;
mod wallet;

use countersign::chains::Network;
use countersign::tron::alloy_primitives::B256;
use countersign::tron::reader::{self, Authority, AuthorityCheck, Included, OnChain, Plan, View};
use countersign::tron::{Address, SignedOrder, UnsignedOrder};
use countersign::{Refusal, trust::Asset};
use countersign_core::reader::{Observation, Verdict};
use countersign_transport::Transport;

pub use countersign::tron::reader::{ContractDescription, Preflight, Receipt};

use crate::contracts::Description;
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::families::shared_methods;
use crate::nodes::{Connection, Head, Nodes};

/// A connected Tron chain.
#[derive(Debug)]
pub struct TronChain<'n, T> {
    pub(crate) connection: Connection<'n, T>,
    chain_id: u64,
}

impl<T> Clone for TronChain<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TronChain<'_, T> {}

impl<T: Transport> Nodes<T> {
    /// Returns a connected Tron network.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint or belongs to another family.
    pub fn tron(&self, chain: &str) -> Result<TronChain<'_, T>, NodeError> {
        TronChain::new(self.connection(chain)?)
    }
}

shared_methods! { TronChain }

impl<'n, T: Transport> TronChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        match connection.network {
            Network::Tron(chain_id) => Ok(Self { connection, chain_id: *chain_id }),
            _ => Err(NodeError::NotConnected(connection.name.to_owned())),
        }
    }

    /// Names something to read on this chain.
    pub(crate) const fn on_chain<S>(&self, subject: S) -> OnChain<S> {
        OnChain { chain_id: self.chain_id, subject }
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.connection.read_one::<reader::NewestBlock>(caller, &self.on_chain(View::Newest)).await
    }

    /// Checks that the sender has enough TRX, tokens and allowance, and runs the first call. Call it before signing. What is checked is
    /// described at [`reader::PreflightCheck`]. The endpoints must agree that it passes, or on the code of the refusal.
    ///
    /// A preflight protects from mistakes, not from dishonest nodes.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if enough endpoints show that the order cannot be funded. Returns another [`NodeError`] if no
    /// endpoint answers or too few of them agree.
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        let plan = Plan::new(self.chain_id, order)?;
        Ok(self.connection.agreed::<reader::PreflightCheck>(&plan).await?.0?)
    }

    /// Checks that the keys which have signed an order under a permission of its sender's account reach the threshold of the permission on
    /// chain, and that it allows contracts to be called. Call it before sending. An order that the sender's own key has signed passes.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::PermissionMismatch`](countersign::Code::PermissionMismatch), or another [`NodeError`] if
    /// no endpoint answers or too few of them agree.
    pub async fn check_signers(&self, order: &SignedOrder) -> Result<(), NodeError> {
        let mut asked = Vec::new();
        for authority in order.transactions().iter().filter_map(|transaction| Authority::of_signed(&transaction.native)) {
            if !asked.contains(&authority) {
                self.connection.agreed::<AuthorityCheck>(&self.on_chain(authority.clone())).await?.0?;
                asked.push(authority);
            }
        }
        Ok(())
    }

    /// Reads the receipt of a transaction; `None` while it is not in a block. The endpoints must agree. It is final if enough of them say
    /// so.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn receipt(&self, id: B256) -> Result<Option<Receipt>, NodeError> {
        let is_final = |one: &Observation<reader::Status>| {
            let Included(receipt) = one.output();
            Ok::<_, Refusal>(receipt.is_some_and(|receipt| receipt.is_final))
        };
        let quorum = self.connection.gather::<reader::Status, _, _>(&self.on_chain(id), is_final).await?;
        match quorum.ask(is_final) {
            Verdict::Stands(_, worst) => Ok(worst.output().0),
            Verdict::Open(doubt) | Verdict::Falls(doubt) => Err(self.connection.doubt(doubt)),
        }
    }

    /// Reads the description of a contract. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn describe_contract(&self, contract: Address) -> Result<ContractDescription, NodeError> {
        Ok(self.connection.agreed::<reader::Contract>(&self.on_chain(contract)).await?.0)
    }

    pub(crate) async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        let Some(contract) = asset.htlc.as_ref().and_then(Address::from_account) else { return Ok(Description::default()) };
        let described = self.describe_contract(contract).await?;
        Ok(Description::default().with("code_hash", described.code_hash).with("version", described.version).with("token", described.token))
    }
}

/// Parses an address that comes from the caller, not from the service.
fn parse(text: &str, at: &'static str) -> Result<Address, Refusal> {
    Address::parse(text).map_err(|error| Refusal::new(error, at).with_actual(text))
}
