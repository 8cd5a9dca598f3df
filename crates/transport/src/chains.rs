//! Connections to chains, which send what readers ask.

use std::fmt;
use std::sync::Arc;

use countersign_core::reader::{Answer, Failure, FailureKind, Request};

use crate::transport::{BoxFuture, MaybeSend, MaybeSync};

/// Connections to chains: `countersign-node`, or the wallet's own.
///
/// An implementation sends requests as they are and returns the answers as they came. It interprets nothing, so every implementation has
/// the same strength. Money depends on the answers: they must come from endpoints that the user chose, never from the service.
///
/// ```
/// use countersign_core::reader::{Answer, Failure, FailureKind, Request};
/// use countersign_transport::{ChainEndpoints, Chains};
///
/// /// A wallet's own providers, by name.
/// struct Mine;
/// # impl Mine { async fn request(&self, _: &str, _: &str, _: &str) -> Result<String, String> { Ok("null".to_owned()) } }
///
/// impl Chains for Mine {
///     fn endpoints(&self, chain: &str) -> Option<ChainEndpoints> {
///         (chain == "base").then(|| ChainEndpoints::new(["one provider", "another"], 2))
///     }
///
///     async fn ask(&self, _: &str, endpoint: &str, requests: &[Request]) -> Vec<Answer> {
///         let mut answers = Vec::new();
///         for request in requests {
///             answers.push(match request {
///                 Request::JsonRpc { method, params } => {
///                     match self.request(endpoint, method, params).await {
///                         Ok(text) => Answer::result(text.into_bytes()),
///                         Err(error) => {
///                             Answer::Failed(Failure::new(FailureKind::Other, &error))
///                         }
///                     }
///                 }
///                 _ => Answer::Failed(FailureKind::Unsupported.into()),
///             });
///         }
///         answers
///     }
/// }
/// ```
pub trait Chains: MaybeSend + MaybeSync {
    /// Returns the endpoints of a chain, and how many of them must agree; `None` if the chain is not connected.
    fn endpoints(&self, chain: &str) -> Option<ChainEndpoints>;

    /// Returns whether there is a connection to a chain.
    fn has(&self, chain: &str) -> bool {
        self.endpoints(chain).is_some()
    }

    /// Forgets what is remembered of an endpoint's identity, because it showed another chain. The next request asks it again.
    fn forget(&self, chain: &str, endpoint: &str) {
        let _ = (chain, endpoint);
    }

    /// Sends requests to one endpoint, all at once if possible, and returns one answer for each, in their order.
    ///
    /// The first request asks for the chain's identity. An implementation whose endpoint cannot change its chain may answer it from
    /// memory.
    fn ask(&self, chain: &str, endpoint: &str, requests: &[Request]) -> impl Future<Output = Vec<Answer>> + MaybeSend;
}

/// The endpoints of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainEndpoints {
    /// The endpoints, in order of preference. An endpoint that is named twice counts once.
    pub links: Vec<Link>,
    /// The number of providers that must agree: more than half of them.
    pub needed: usize,
}

/// One endpoint of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// The name, which is shown to the user: a host, never a URL with a key.
    pub name: String,
    /// Whether the endpoint of a Bitcoin-like chain is a node's own RPC. By default it is an Esplora server.
    pub is_rpc: bool,
    /// Who runs the endpoint: by default its name. Endpoints of one provider count once, as one word of the first that answers.
    pub provider: String,
}

impl ChainEndpoints {
    /// Creates a list of endpoints.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>, needed: usize) -> Self {
        Self { links: names.into_iter().map(Link::new).collect(), needed }
    }

    /// Creates a list of endpoints, some of which may be a node's own RPC.
    #[must_use]
    pub const fn from_links(links: Vec<Link>, needed: usize) -> Self {
        Self { links, needed }
    }
}

impl Link {
    /// Creates an endpoint.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { provider: name.clone(), name, is_rpc: false }
    }

    /// Sets who runs the endpoint.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = provider.into();
        self
    }

    /// Sets whether the endpoint of a Bitcoin-like chain is a node's own RPC.
    #[must_use]
    pub const fn with_rpc(mut self, is_rpc: bool) -> Self {
        self.is_rpc = is_rpc;
        self
    }
}

/// [`Chains`] without any connection.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has no content")]
pub struct NoChains;

impl Chains for NoChains {
    fn endpoints(&self, _: &str) -> Option<ChainEndpoints> {
        None
    }

    async fn ask(&self, _: &str, _: &str, requests: &[Request]) -> Vec<Answer> {
        vec![Answer::Failed(Failure::from(FailureKind::Unsupported)); requests.len()]
    }
}

/// Implements [`Chains`] for pointers to an implementation.
macro_rules! forward {
    ($([$($lifetime:lifetime)?] $pointer:ty;)*) => {
        $(impl<$($lifetime,)? C: Chains> Chains for $pointer where $pointer: MaybeSend + MaybeSync {
            fn endpoints(&self, chain: &str) -> Option<ChainEndpoints> {
                C::endpoints(self, chain)
            }

            fn has(&self, chain: &str) -> bool {
                C::has(self, chain)
            }

            fn forget(&self, chain: &str, endpoint: &str) {
                C::forget(self, chain, endpoint);
            }

            fn ask(&self, chain: &str, endpoint: &str, requests: &[Request]) -> impl Future<Output = Vec<Answer>> + MaybeSend {
                C::ask(self, chain, endpoint, requests)
            }
        })*
    };
}

forward! { ['c] &'c C; [] Box<C>; [] Arc<C>; }

/// The object-safe form of connections.
pub(crate) trait Erased: MaybeSend + MaybeSync {
    fn endpoints(&self, chain: &str) -> Option<ChainEndpoints>;
    fn has(&self, chain: &str) -> bool;
    fn forget(&self, chain: &str, endpoint: &str);
    fn ask<'f>(&'f self, chain: &'f str, endpoint: &'f str, requests: &'f [Request]) -> BoxFuture<'f, Vec<Answer>>;
}

impl<C: Chains> Erased for C {
    fn endpoints(&self, chain: &str) -> Option<ChainEndpoints> {
        C::endpoints(self, chain)
    }

    fn has(&self, chain: &str) -> bool {
        C::has(self, chain)
    }

    fn forget(&self, chain: &str, endpoint: &str) {
        C::forget(self, chain, endpoint);
    }

    fn ask<'f>(&'f self, chain: &'f str, endpoint: &'f str, requests: &'f [Request]) -> BoxFuture<'f, Vec<Answer>> {
        Box::pin(C::ask(self, chain, endpoint, requests))
    }
}

/// Connections whose type is erased, for a driver whose type does not name them. Cloning is cheap.
///
/// ```
/// use countersign_transport::{BoxChains, Chains, NoChains};
///
/// /// A wallet, whatever it is connected through.
/// struct Wallet {
///     chains: BoxChains,
/// }
///
/// let wallet = Wallet { chains: BoxChains::new(NoChains) };
/// assert!(!wallet.chains.has("base"));
/// ```
#[derive(Clone)]
pub struct BoxChains(Arc<dyn Erased>);

impl BoxChains {
    /// Erases the type of connections.
    #[must_use]
    pub fn new(chains: impl Chains + 'static) -> Self {
        Self(Arc::new(chains))
    }
}

impl fmt::Debug for BoxChains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxChains(..)")
    }
}

impl Chains for BoxChains {
    fn endpoints(&self, chain: &str) -> Option<ChainEndpoints> {
        self.0.endpoints(chain)
    }

    fn has(&self, chain: &str) -> bool {
        self.0.has(chain)
    }

    fn forget(&self, chain: &str, endpoint: &str) {
        self.0.forget(chain, endpoint);
    }

    async fn ask(&self, chain: &str, endpoint: &str, requests: &[Request]) -> Vec<Answer> {
        self.0.ask(chain, endpoint, requests).await
    }
}
