//! The families of connected chains. The families import `nodes`, and only this file imports the families.

use countersign::reader::HtlcQuorum;
use countersign::{
    Family, Transaction, U256,
    evidence::{HtlcTerms, Precondition},
    trust::Asset,
};
use countersign_transport::Transport;

use crate::contracts::Description;
use crate::error::NodeError;
use crate::nodes::{Head, Nodes};
use crate::preconditions::End;

/// Evaluates an expression with the connected chain, whose type depends on its family.
macro_rules! of_family {
    ($nodes:expr, $chain:expr, |$connected:ident| $body:expr) => {
        countersign::for_each_family! { with_chain! [$nodes, $chain, $connected, $body] }
    };
}

macro_rules! with_chain {
    ([$nodes:expr, $chain:expr, $connected:ident, $body:expr] $($feature:literal $family:ident $module:ident,)*) => {{
        let name: &str = $chain;
        match $nodes.connection(name)?.network.family() {
            $(
                #[cfg(feature = $feature)]
                Family::$family => {
                    let $connected = $nodes.$module(name)?;
                    $body
                }
            )*
            _ => Err(NodeError::NotConnected(name.to_owned())),
        }
    }};
}

impl<T: Transport> Nodes<T> {
    /// Returns a connected Bitcoin-like chain.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint or belongs to another family.
    #[cfg(feature = "bitcoin")]
    pub fn bitcoin(&self, chain: &str) -> Result<crate::bitcoin::BitcoinChain<'_, T>, NodeError> {
        crate::bitcoin::BitcoinChain::new(self.connection(chain)?)
    }

    /// Returns a connected EVM chain.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint or belongs to another family.
    #[cfg(feature = "evm")]
    pub fn evm(&self, chain: &str) -> Result<crate::evm::EvmChain<'_, T>, NodeError> {
        crate::evm::EvmChain::new(self.connection(chain)?)
    }

    /// Returns a connected Solana cluster.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint, belongs to another family, or is a cluster that this crate does
    /// not support.
    #[cfg(feature = "solana")]
    pub fn solana(&self, chain: &str) -> Result<crate::solana::SolanaChain<'_, T>, NodeError> {
        crate::solana::SolanaChain::new(self.connection(chain)?)
    }

    /// Returns a connected Starknet network.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint or belongs to another family.
    #[cfg(feature = "starknet")]
    pub fn starknet(&self, chain: &str) -> Result<crate::starknet::StarknetChain<'_, T>, NodeError> {
        crate::starknet::StarknetChain::new(self.connection(chain)?)
    }

    /// Returns a connected Sui network.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint, belongs to another family, or is neither the main network nor
    /// the test network.
    #[cfg(feature = "sui")]
    pub fn sui(&self, chain: &str) -> Result<crate::sui::SuiChain<'_, T>, NodeError> {
        crate::sui::SuiChain::new(self.connection(chain)?)
    }

    /// Returns a connected Tron network.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain has no endpoint or belongs to another family.
    #[cfg(feature = "tron")]
    pub fn tron(&self, chain: &str) -> Result<crate::tron::TronChain<'_, T>, NodeError> {
        crate::tron::TronChain::new(self.connection(chain)?)
    }

    /// Reads the newest block of one endpoint of a chain. `index` counts the endpoints from 0, in the order of
    /// [`Endpoints::all`](crate::Endpoints::all).
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if there is no such chain or endpoint, [`NodeError::WrongChain`] if the endpoint serves another
    /// chain, and another [`NodeError`] if the read fails.
    pub async fn head(&self, chain: &str, index: usize) -> Result<Head, NodeError> {
        let connection = self.connection(chain)?;
        let caller = connection.callers().nth(index).ok_or_else(|| NodeError::NotConnected(chain.to_owned()))?;
        of_family!(self, chain, |connected| connected.head(caller).await)
    }

    /// Asks one precondition of a leg on a connected chain. Returns what an authority of its token may do.
    pub(crate) async fn ask_precondition(&self, item: Precondition, end: &End<'_>) -> Result<Vec<&'static str>, NodeError> {
        of_family!(self, end.asset.chain_name(), |connected| connected.precondition(item, end).await)
    }

    /// Reads the balance of an address in a pinned asset, in base units. `owner` is an address in the chain's usual text form.
    ///
    /// The endpoints must agree. On Bitcoin-like chains as much counts as enough endpoints show at least, and only confirmed coins.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain is not connected, [`NodeError::Refused`] if `owner` is not an address of the chain,
    /// and another [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn balance(&self, asset: &Asset, owner: &str) -> Result<U256, NodeError> {
        let (chain, token) = (asset.chain_name(), asset.token.as_ref());
        of_family!(self, chain, |connected| connected.balance_of(owner, token).await)
    }

    /// Reads facts about the pinned contract of an asset from its chain. Store them in [`Contracts`](crate::Contracts) next to the
    /// registry, and compare them later to notice a change. The endpoints must agree.
    ///
    /// On Bitcoin-like chains there is no contract, and the description is empty.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain is not connected, and another [`NodeError`] if no endpoint answers or too few of
    /// them agree.
    pub async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        of_family!(self, asset.chain_name(), |connected| connected.describe(asset).await)
    }

    /// Reads a transaction that was sent, with its signatures, by its id as explorers show it; `None` if the chain does not know it. The
    /// endpoints must agree. Compare it with the order by [`Verified::matches`](countersign::Verified::matches).
    ///
    /// An endpoint can withhold a transaction, but not change what is signed, because the id follows from it. The id does not cover the
    /// witnesses on Bitcoin-like chains, the signatures on Tron, Starknet and Sui, and those after the first on Solana; that a transaction is
    /// of a kind that is not read can be claimed on EVM and Starknet. In these only the number of endpoints that must agree protects. On
    /// Solana only finalized transactions are found, and through the RPC of a Bitcoin-like node only those in its mempool, unless it has a
    /// transaction index.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::TransactionIdMalformed`](countersign::Code::TransactionIdMalformed) if `id` is not an
    /// id of the chain, or with [`Code::TransactionMismatch`](countersign::Code::TransactionMismatch) if the transaction is of a kind that
    /// no order needs. Returns [`NodeError::NotConnected`] if the chain is not connected, and another [`NodeError`] if no endpoint answers
    /// or too few of them agree.
    pub async fn sent(&self, chain: &str, id: &str) -> Result<Option<Transaction>, NodeError> {
        of_family!(self, chain, |connected| connected.sent(id).await)
    }
}

/// Gives the chains of each family the methods that all families share.
macro_rules! shared_methods {
    ($($feature:literal $chain:path;)*) => {
        $(#[cfg(feature = $feature)]
        impl<T: Transport> $chain {
            /// Reads the state of an HTLC: see [`Nodes::htlc`].
            ///
            /// # Errors
            ///
            /// Returns the same errors as [`Nodes::htlc`].
            pub async fn htlc(&self, terms: &HtlcTerms) -> Result<HtlcQuorum, NodeError> {
                self.connection.nodes.htlc(terms).await
            }

            /// Sends a signed transaction: see [`Nodes::broadcast`].
            ///
            /// # Errors
            ///
            /// Returns the same errors as [`Nodes::broadcast`].
            pub async fn broadcast(&self, id: &str, payload: &str) -> Result<(), NodeError> {
                self.connection.nodes.broadcast(self.connection.name, id, payload).await
            }
        })*
    };
}

shared_methods! {
    "bitcoin" crate::bitcoin::BitcoinChain<'_, T>;
    "evm" crate::evm::EvmChain<'_, T>;
    "solana" crate::solana::SolanaChain<'_, T>;
    "starknet" crate::starknet::StarknetChain<'_, T>;
    "sui" crate::sui::SuiChain<'_, T>;
    "tron" crate::tron::TronChain<'_, T>;
}
