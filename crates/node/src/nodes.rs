//! Every chain that is configured, as the driver asks for them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use countersign::chains::Network;
use countersign::{Asset, Family, HtlcState, HtlcTerms, Registry, SeenAt, U256};
use countersign_client::Transport;
use countersign_client::driver::{ChainError, Chains, KeptTransaction};
use futures_util::future::join_all;

use crate::config::{Endpoints, NodeConfig};
use crate::contracts::Description;
use crate::endpoint::Caller;
use crate::error::NodeError;

/// Connections to the chains of a configuration.
#[derive(Debug)]
pub struct Nodes<T> {
    transport: T,
    chains: BTreeMap<String, ChainNodes>,
    unknown: Vec<String>,
}

/// The endpoints of one pinned chain.
#[derive(Debug)]
struct ChainNodes {
    network: Network,
    endpoints: Endpoints,
}

/// The newest block of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// Its height.
    pub height: u64,
    /// Its hash, in hex.
    pub hash: String,
    /// When it was made, in Unix seconds.
    pub time: u64,
}

impl Head {
    pub(crate) fn new(height: u64, hash: impl Into<String>, time: u64) -> Self {
        Self { height, hash: hash.into(), time }
    }
}

/// How soon a transaction should be mined, and what it may cost for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "the three that wallets offer")]
pub enum Speed {
    /// Cheap: within an hour or so.
    Slow,
    /// Within some blocks.
    #[default]
    Normal,
    /// The next block, if possible.
    Fast,
}

/// Evaluates an expression with the connected chain, whose type is that of its family.
macro_rules! of_family {
    ($nodes:expr, $chain:expr, |$connected:ident| $body:expr) => {{
        let name: &str = $chain;
        match $nodes.connection(name)?.network.family() {
            #[cfg(feature = "bitcoin")]
            Family::Bitcoin => {
                let $connected = $nodes.bitcoin(name)?;
                $body
            }
            #[cfg(feature = "evm")]
            Family::Evm => {
                let $connected = $nodes.evm(name)?;
                $body
            }
            #[cfg(feature = "solana")]
            Family::Solana => {
                let $connected = $nodes.solana(name)?;
                $body
            }
            #[cfg(feature = "starknet")]
            Family::Starknet => {
                let $connected = $nodes.starknet(name)?;
                $body
            }
            #[cfg(feature = "sui")]
            Family::Sui => {
                let $connected = $nodes.sui(name)?;
                $body
            }
            #[cfg(feature = "tron")]
            Family::Tron => {
                let $connected = $nodes.tron(name)?;
                $body
            }
            _ => Err(NodeError::NotConnected(name.to_owned())),
        }
    }};
}

/// The connection to one chain. It checks first that an endpoint serves that chain.
pub(crate) struct Connection<'n, T> {
    pub(crate) transport: &'n T,
    pub(crate) name: &'n str,
    pub(crate) network: &'n Network,
    pub(crate) endpoints: &'n Endpoints,
}

impl<T> Clone for Connection<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Connection<'_, T> {}

impl<T> std::fmt::Debug for Connection<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({}, {:?})", self.name, self.endpoints.all)
    }
}

impl<T: Transport> Nodes<T> {
    /// Connects the pinned chains that the configuration has endpoints for. Nothing is sent yet.
    #[must_use]
    pub fn new(transport: T, config: NodeConfig, registry: &Registry) -> Self {
        let pinned: BTreeMap<_, _> = registry.chains().map(|chain| (chain.record.chain.as_str(), &chain.network)).collect();
        let (mut chains, mut unknown) = (BTreeMap::new(), Vec::new());
        for (name, endpoints) in config.chains {
            match pinned.get(name.as_str()) {
                Some(network) => {
                    chains.insert(name, ChainNodes { network: (*network).clone(), endpoints });
                }
                None => unknown.push(name),
            }
        }
        Self { transport, chains, unknown }
    }

    /// Returns the configured chains that are not pinned. They are not connected: a name may be misspelt.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Returns the names of the connected chains.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.chains.keys().map(String::as_str)
    }

    /// Returns the HTTP stack.
    #[must_use]
    pub const fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the endpoints of a chain, and how many of them must agree. With a single endpoint a false answer goes unnoticed.
    #[must_use]
    pub fn endpoints(&self, chain: &str) -> Option<&Endpoints> {
        self.chains.get(chain).map(|nodes| &nodes.endpoints)
    }

    pub(crate) fn connection(&self, chain: &str) -> Result<Connection<'_, T>, NodeError> {
        let (name, nodes) = self.chains.get_key_value(chain).ok_or_else(|| NodeError::NotConnected(chain.to_owned()))?;
        Ok(Connection { transport: &self.transport, name, network: &nodes.network, endpoints: &nodes.endpoints })
    }

    /// Returns a connected Bitcoin-like chain.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotConnected`] if the chain has no endpoint, or is of another family.
    #[cfg(feature = "bitcoin")]
    pub fn bitcoin(&self, chain: &str) -> Result<crate::bitcoin::BitcoinChain<'_, T>, NodeError> {
        crate::bitcoin::BitcoinChain::new(self.connection(chain)?)
    }

    /// Returns a connected EVM chain.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotConnected`] if the chain has no endpoint, or is of another family.
    #[cfg(feature = "evm")]
    pub fn evm(&self, chain: &str) -> Result<crate::evm::EvmChain<'_, T>, NodeError> {
        crate::evm::EvmChain::new(self.connection(chain)?)
    }

    /// Returns a connected Solana cluster.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotConnected`] if the chain has no endpoint, is of another family, or is a cluster that this crate does not know.
    #[cfg(feature = "solana")]
    pub fn solana(&self, chain: &str) -> Result<crate::solana::SolanaChain<'_, T>, NodeError> {
        crate::solana::SolanaChain::new(self.connection(chain)?)
    }

    /// Returns a connected Starknet network.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotConnected`] if the chain has no endpoint, or is of another family.
    #[cfg(feature = "starknet")]
    pub fn starknet(&self, chain: &str) -> Result<crate::starknet::StarknetChain<'_, T>, NodeError> {
        crate::starknet::StarknetChain::new(self.connection(chain)?)
    }

    /// Returns a connected Sui network.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotConnected`] if the chain has no endpoint, is of another family, or is a network whose genesis is not known.
    #[cfg(feature = "sui")]
    pub fn sui(&self, chain: &str) -> Result<crate::sui::SuiChain<'_, T>, NodeError> {
        crate::sui::SuiChain::new(self.connection(chain)?)
    }

    /// Returns a connected Tron network.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotConnected`] if the chain has no endpoint, or is of another family.
    #[cfg(feature = "tron")]
    pub fn tron(&self, chain: &str) -> Result<crate::tron::TronChain<'_, T>, NodeError> {
        crate::tron::TronChain::new(self.connection(chain)?)
    }

    /// Returns the newest block of one endpoint of a chain, counted from 0. The endpoint must serve that chain.
    ///
    /// # Errors
    ///
    /// [`NodeError`].
    pub async fn head(&self, chain: &str, index: usize) -> Result<Head, NodeError> {
        let connection = self.connection(chain)?;
        let caller = connection.callers().nth(index).ok_or_else(|| NodeError::NotConnected(chain.to_owned()))?;
        of_family!(self, chain, |connected| connected.head(caller).await)
    }

    /// Returns what an address holds of a pinned asset, in base units.
    ///
    /// # Errors
    ///
    /// [`NodeError`].
    pub async fn balance(&self, asset: &Asset, owner: &str) -> Result<U256, NodeError> {
        let (chain, token) = (asset.chain.record.chain.as_str(), asset.token.as_ref());
        of_family!(self, chain, |connected| connected.balance_of(owner, token).await)
    }

    /// Asks a chain what the pinned contract of an asset is: to keep it beside the registry, and to compare it later. The endpoints
    /// must agree. On Bitcoin-like chains there is no contract, and nothing to describe.
    ///
    /// # Errors
    ///
    /// [`NodeError`].
    pub async fn describe(&self, asset: &Asset) -> Result<Description, NodeError> {
        of_family!(self, &asset.chain.record.chain, |connected| connected.describe(asset).await)
    }

    async fn read(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        of_family!(self, &terms.chain, |connected| connected.htlc(terms).await)
    }

    async fn send(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        of_family!(self, &transaction.chain, |connected| connected.broadcast(transaction).await)
    }
}

/// The families that this build reads.
const FAMILIES: &[Family] = &[
    #[cfg(feature = "bitcoin")]
    Family::Bitcoin,
    #[cfg(feature = "evm")]
    Family::Evm,
    #[cfg(feature = "solana")]
    Family::Solana,
    #[cfg(feature = "starknet")]
    Family::Starknet,
    #[cfg(feature = "sui")]
    Family::Sui,
    #[cfg(feature = "tron")]
    Family::Tron,
];

impl<T: Transport> Chains for Nodes<T> {
    async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), ChainError> {
        Ok(self.read(terms).await?)
    }

    async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), ChainError> {
        Ok(self.send(transaction).await?)
    }

    fn has(&self, chain: &str) -> bool {
        self.chains.get(chain).is_some_and(|nodes| FAMILIES.contains(&nodes.network.family()))
    }
}

impl<'n, T: Transport> Connection<'n, T> {
    /// How many endpoints must give the same answer.
    pub(crate) const fn needed(&self) -> u32 {
        self.endpoints.quorum
    }

    pub(crate) fn callers(&self) -> impl Iterator<Item = Caller<'n, T>> + use<'n, T> {
        let transport = self.transport;
        self.endpoints.all.iter().map(move |endpoint| Caller { endpoint, transport })
    }

    /// Asks every endpoint at the same time.
    pub(crate) async fn each<R, F: Future<Output = Result<R, NodeError>>>(
        &self,
        ask: impl Fn(Caller<'n, T>) -> F,
    ) -> Vec<Result<R, NodeError>> {
        join_all(self.callers().map(ask)).await
    }

    /// Asks one endpoint after another until one answers: for what is checked against the chain, the policy or another answer.
    pub(crate) async fn first<R, F: Future<Output = Result<R, NodeError>>>(
        &self,
        ask: impl Fn(Caller<'n, T>) -> F,
    ) -> Result<R, NodeError> {
        let (mut refused, mut failed) = (None, None);
        for caller in self.callers() {
            match ask(caller).await {
                Ok(answer) => return Ok(answer),
                // The chain's own refusal: an endpoint that checks less would not see it.
                Err(error @ NodeError::Rejected { .. }) => return Err(error),
                // What is refused for the answer of one endpoint may be right by another's.
                Err(error @ NodeError::Refused(_)) => refused = refused.or(Some(error)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(refused.or(failed).unwrap_or_else(|| NodeError::NotConnected(self.name.to_owned())))
    }
}

impl<T: Transport> Caller<'_, T> {
    /// Requires, the first time, that the endpoint serves the chain whose identity is expected.
    pub(crate) async fn identify<F: Future<Output = Result<String, NodeError>>>(
        &self,
        expected: &str,
        ask: impl FnOnce() -> F,
    ) -> Result<(), NodeError> {
        if self.endpoint.is_identified.load(Ordering::Relaxed) {
            return Ok(());
        }
        let actual = ask().await?;
        if actual != expected {
            let (endpoint, expected) = (self.endpoint.host().to_owned(), expected.to_owned());
            return Err(NodeError::WrongChain { endpoint, expected, actual });
        }
        self.endpoint.is_identified.store(true, Ordering::Relaxed);
        Ok(())
    }
}
