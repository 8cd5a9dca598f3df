//! The connections to all configured chains, as the client's driver uses them.

use std::collections::BTreeMap;

use countersign::chains::Network;
use countersign::reader::{HtlcQuorum, HtlcReader, NotSent, SendObservation, SendReader, check_sent};
use countersign::{
    Family, Registry,
    evidence::{Hold, HtlcTerms},
};
pub use countersign_core::reader::Head;
use countersign_core::reader::{
    Agree, Answer, Doubt, FailureKind, Fault, Known, Machine, Next, Observation, Quorum, Reader, Request as ReadRequest, Submission,
};
use countersign_core::sort;
use countersign_transport::{ChainEndpoints, Chains, Link, MaybeSend, MaybeSync, Memory, Transport, gather};

use crate::config::{Endpoints, NodeConfig};
use crate::endpoint::{Caller, Endpoint};
use crate::error::NodeError;
use crate::prepare::Stakes;

/// Connections to the configured chains.
///
/// Implements [`Chains`], so that a driver reads and writes every chain through it. Create it once and keep it: it limits the requests
/// to each endpoint and remembers what an endpoint has reported before.
#[derive(Debug)]
pub struct Nodes<T> {
    transport: T,
    chains: BTreeMap<String, ChainNodes>,
    unknown: Vec<String>,
    memory: Memory,
}

/// The endpoints of one pinned chain.
#[derive(Debug)]
struct ChainNodes {
    network: Network,
    endpoints: Endpoints,
    /// The permission under which the owner's account signs on Tron; `None` for the account's own key.
    #[cfg(feature = "tron")]
    permission: Option<countersign::tron::Permission>,
}

/// How soon a transaction should be mined. A higher speed costs more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "the three that wallets offer")]
pub enum Speed {
    /// The cheapest, typically within an hour.
    Slow,
    /// Within a few blocks.
    #[default]
    Normal,
    /// In the next block, if possible.
    Fast,
}

/// The connection to one chain: its endpoints, and the HTTP stack that reaches them.
pub(crate) struct Connection<'n, T> {
    pub(crate) nodes: &'n Nodes<T>,
    pub(crate) transport: &'n T,
    pub(crate) name: &'n str,
    pub(crate) network: &'n Network,
    pub(crate) endpoints: &'n Endpoints,
    #[cfg(feature = "tron")]
    pub(crate) permission: Option<&'n countersign::tron::Permission>,
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
    /// Creates connections to the chains that are pinned in `registry` and have endpoints in `config`. Sends nothing yet.
    ///
    /// Nothing else of the registry is kept: an order that was signed under other pins is judged by those.
    #[must_use]
    pub fn new(transport: T, config: NodeConfig, registry: &Registry) -> Self {
        let pinned = sort::map(registry.chains().map(|chain| (chain.name(), &chain.network)));
        let (mut chains, mut unknown) = (BTreeMap::new(), Vec::new());
        for (name, endpoints) in config.chains {
            match pinned.get(name.as_str()) {
                Some(network) => {
                    let network = (*network).clone();
                    chains.insert(
                        name,
                        ChainNodes {
                            network,
                            endpoints,
                            #[cfg(feature = "tron")]
                            permission: None,
                        },
                    );
                }
                None => unknown.push(name),
            }
        }
        Self { transport, chains, unknown, memory: Memory::default() }
    }

    /// Sets the permission under which the owner's account signs on a Tron chain: payments, redemptions and refunds that are prepared from the
    /// chain name it, and its keys are compared with the chain's before the account pays, and before it redeems. Without one, the account's
    /// own key signs. A chain that is not connected is left as it is.
    #[cfg(feature = "tron")]
    #[must_use]
    pub fn with_permission(mut self, chain: &str, permission: countersign::tron::Permission) -> Self {
        if let Some(nodes) = self.chains.get_mut(chain) {
            nodes.permission = Some(permission);
        }
        self
    }

    /// Returns the names in the configuration that are not chains of the registry. They are not connected. A name may be misspelt, so
    /// show them to the user.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Returns the names of the connected chains.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.chains.keys().map(String::as_str)
    }

    /// Returns the HTTP transport.
    #[must_use]
    pub const fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the endpoints of a chain and the number of them that must agree; `None` if the chain is not connected.
    ///
    /// With a single endpoint, a false answer goes unnoticed.
    #[must_use]
    pub fn endpoints(&self, chain: &str) -> Option<&Endpoints> {
        self.chains.get(chain).map(|nodes| &nodes.endpoints)
    }

    pub(crate) fn connection(&self, chain: &str) -> Result<Connection<'_, T>, NodeError> {
        let (name, nodes) = self.chains.get_key_value(chain).ok_or_else(|| NodeError::NotConnected(chain.to_owned()))?;
        Ok(Connection {
            nodes: self,
            transport: &self.transport,
            name,
            network: &nodes.network,
            endpoints: &nodes.endpoints,
            #[cfg(feature = "tron")]
            permission: nodes.permission.as_ref(),
        })
    }

    /// Reads the state of an HTLC from the endpoints of its chain, each at its newest block. [`Funded::judge`](countersign::Funded::judge)
    /// compares it with the verified terms, and [`HtlcQuorum::state`] shows it.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain is not connected, [`NodeError::Refused`] if the terms do not name an HTLC, and
    /// another [`NodeError`] if no endpoint answers or too few of them agree. The state is then unknown.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<HtlcQuorum, NodeError> {
        let connection = self.connection(&terms.chain)?;
        let start = |known: &Known| HtlcReader::new(terms, known);
        let quorum = gather(self, &self.transport, &self.memory, &terms.chain, start, |_| Ok::<_, Hold>(())).await?;
        match quorum.agreed::<Hold>() {
            Ok(_) => Ok(quorum.into()),
            Err(doubt) => Err(connection.doubt(doubt)),
        }
    }

    /// Sends a signed transaction to the endpoints of a chain. `payload` has the form that nodes accept
    /// ([`BroadcastTransaction`](countersign::BroadcastTransaction)). A transaction that an endpoint knows already counts as accepted.
    ///
    /// Succeeds once as many endpoints accept it as must agree, because a single one may keep it to itself.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain is not connected, and [`NodeError::Refused`] if the payload is not a transaction of
    /// the chain with this id. Returns [`NodeError::Rejected`] if too few endpoints accept it and one rejects it. After any other
    /// [`NodeError`], an endpoint may have relayed it.
    pub async fn broadcast(&self, chain: &str, id: &str, payload: &str) -> Result<(), NodeError> {
        let connection = self.connection(chain)?;
        let start = |known: &Known| SendReader::new(connection.network, id, payload, known);
        let quorum = gather(self, &self.transport, &self.memory, chain, start, SendObservation::accepts).await?;
        check_sent(&quorum).map_err(|error| match error {
            NotSent::Rejected { endpoint, message, .. } => NodeError::Rejected { endpoint, message },
            NotSent::Unknown(doubt) => connection.doubt(doubt),
        })
    }

    /// Creates the form in which [`Nodes::prepare_replacement`] takes a transaction that was sent.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::NotConnected`] if the chain is not connected.
    pub fn submission(&self, chain: &str, id: &str, payload: &str) -> Result<Submission, NodeError> {
        Ok(Submission::new(self.connection(chain)?.network, id, payload))
    }
}

macro_rules! list {
    ([] $($feature:literal $family:ident $module:ident,)*) => {
        &[$(#[cfg(feature = $feature)] Family::$family,)*]
    };
}

/// The chain families that this build supports.
const FAMILIES: &[Family] = countersign::for_each_family! { list! [] };

impl<T: Transport> Chains for Nodes<T> {
    fn endpoints(&self, chain: &str) -> Option<ChainEndpoints> {
        let ChainNodes { network, endpoints: Endpoints { all, quorum }, .. } = self.chains.get(chain)?;
        if !FAMILIES.contains(&network.family()) {
            return None;
        }
        let links = all.iter().map(|endpoint| link(endpoint, all)).collect();
        Some(ChainEndpoints::from_links(links, usize::try_from(*quorum).unwrap_or(usize::MAX)))
    }

    fn forget(&self, chain: &str, endpoint: &str) {
        let found = self.chains.get(chain).and_then(|nodes| nodes.endpoints.all.iter().find(|one| one.name() == endpoint));
        if let Some(endpoint) = found {
            endpoint.forget_identity();
        }
    }

    async fn ask(&self, chain: &str, endpoint: &str, requests: &[ReadRequest]) -> Vec<Answer> {
        let found = self.chains.get(chain).and_then(|nodes| nodes.endpoints.all.iter().find(|one| one.name() == endpoint));
        match found {
            Some(endpoint) => Caller { endpoint, transport: &self.transport }.ask(requests).await,
            None => vec![Answer::Failed(FailureKind::Unsupported.into()); requests.len()],
        }
    }
}

/// Returns an endpoint as readers see it. The only endpoint of a provider is shown by its own name.
fn link(endpoint: &Endpoint, all: &[Endpoint]) -> Link {
    let link = Link::new(endpoint.name()).with_rpc(endpoint.is_rpc);
    let is_only = all.iter().filter(|other| other.provider() == endpoint.provider()).count() == 1;
    if is_only { link } else { link.with_provider(endpoint.provider()) }
}

#[allow(dead_code, reason = "no family uses all of these")]
impl<'n, T: Transport> Connection<'n, T> {
    /// Returns the number of endpoints that must give the same answer.
    pub(crate) const fn needed(&self) -> u32 {
        self.endpoints.quorum
    }

    pub(crate) fn callers(&self) -> impl Iterator<Item = Caller<'n, T>> + use<'n, T> {
        let transport = self.transport;
        self.endpoints.all.iter().map(move |endpoint| Caller { endpoint, transport })
    }

    /// Reads a subject from the endpoints until enough of them agree and `question` stands: see [`gather`].
    pub(crate) async fn gather<M: Machine<Output: Agree>, V: Ord, E>(
        &self,
        subject: &M::Subject,
        question: impl Fn(&Observation<M>) -> Result<V, E> + MaybeSend + MaybeSync,
    ) -> Result<Quorum<Observation<M>>, NodeError> {
        let start = |known: &Known| Reader::<M>::new(subject, known);
        Ok(gather(self.nodes, self.transport, &self.nodes.memory, self.name, start, question).await?)
    }

    /// Reads a subject from all endpoints that answer in time: see [`gather_all`](countersign_transport::gather_all).
    pub(crate) async fn gather_all<M: Machine<Output: Agree>>(&self, subject: &M::Subject) -> Result<Quorum<Observation<M>>, NodeError> {
        let start = |known: &Known| Reader::<M>::new(subject, known);
        Ok(countersign_transport::gather_all(self.nodes, self.transport, &self.nodes.memory, self.name, start).await?)
    }

    /// Reads a subject on which the endpoints must agree, and returns what one of those that agree shows.
    pub(crate) async fn agreed<M: Machine<Output: Agree>>(&self, subject: &M::Subject) -> Result<M::Output, NodeError> {
        let quorum = self.gather::<M, _, _>(subject, |_| Ok::<_, NodeError>(())).await?;
        let group = quorum.agreed().map_err(|doubt| self.doubt::<NodeError>(doubt))?;
        group.first().map(|one| one.output().clone()).ok_or_else(|| NodeError::NotConnected(self.name.to_owned()))
    }

    /// Reads a subject on which the endpoints must agree, and returns what each of those shows that agree and answer in time, for the middle
    /// of it. Once a secret is out, an even number waits for the others: see [`gather_middle`](countersign_transport::gather_middle).
    pub(crate) async fn all_agreed<M: Machine<Output: Agree>>(
        &self,
        subject: &M::Subject,
        stakes: Stakes,
    ) -> Result<Vec<M::Output>, NodeError> {
        let quorum = match stakes {
            Stakes::Time | Stakes::Secret => self.gather_all::<M>(subject).await?,
            Stakes::Funds => {
                let start = |known: &Known| Reader::<M>::new(subject, known);
                countersign_transport::gather_middle(self.nodes, self.transport, &self.nodes.memory, self.name, start).await?
            }
        };
        let group = quorum.agreed().map_err(|doubt| self.doubt::<NodeError>(doubt))?;
        Ok(group.into_iter().map(|one| one.output().clone()).collect())
    }

    /// Reads a subject from one endpoint.
    pub(crate) async fn read_one<M: Machine>(&self, caller: Caller<'n, T>, subject: &M::Subject) -> Result<M::Output, NodeError> {
        let name = caller.endpoint.name();
        let known = self.nodes.memory.known(self.name, name).with_rpc(caller.endpoint.is_rpc);
        let mut reader = Reader::<M>::new(subject, &known)?;
        while let Next::Ask(requests) = reader.next() {
            let answers = caller.ask(requests).await;
            if reader.answer(&answers).is_err() {
                reader.fail(FailureKind::Other.into());
            }
        }
        let outcome = reader.finish();
        if !matches!(&outcome, Ok(_) | Err(Fault::Unanswered(_))) {
            caller.endpoint.forget_identity();
        }
        Ok(outcome.map_err(|fault| NodeError::from_fault(name, fault))?.into_output())
    }

    pub(crate) fn doubt<E: std::fmt::Display>(&self, doubt: Doubt<E>) -> NodeError {
        NodeError::from_doubt(self.endpoints.all.first().map_or("", Endpoint::name), doubt)
    }
}
