//! What the machine is opened with: as Rust's own types, and as JSON for other languages.

use std::fmt;
use std::sync::Arc;

use countersign::chains::UnixMillis;
use countersign::{Policy, Refusal, Registry};
use countersign_json::objects::Failure;
use countersign_node::NodeConfig;
use countersign_store::Zeroizing;

use crate::options::Options;

/// What a host opens the machine with.
#[non_exhaustive]
pub struct Setup {
    /// How swaps are run.
    pub options: Options,
    /// The pinned registry.
    pub registry: Arc<Registry>,
    /// The policy.
    pub policy: Policy,
    /// The endpoints of each chain.
    pub nodes: NodeConfig,
    /// Every document that the host has kept, by name; empty for a new store.
    pub documents: Vec<(String, Zeroizing<Vec<u8>>)>,
    /// What identifies the place where the documents are kept, and changes if an older document `index` is put back there: such as a
    /// directory with its inode, and a random mark that is valid as long as `index` is the very file that the host has written. A store that
    /// is found in another place is a copy, and starts a branch of the rescue phrase of its own, so that two orders never share a secret.
    ///
    /// Empty where the host cannot tell, as with a database in a browser's profile: each opening then starts a branch.
    pub place: String,
    /// The host's clock.
    pub now: UnixMillis,
}

impl Setup {
    /// Creates a setup without endpoints and documents, with the default policy.
    #[must_use]
    pub fn new(options: Options, registry: impl Into<Arc<Registry>>, now: UnixMillis) -> Self {
        Self {
            options,
            registry: registry.into(),
            policy: Policy::default(),
            nodes: NodeConfig::new(),
            documents: Vec::new(),
            place: String::new(),
            now,
        }
    }
}

/// Leaves out the contents of documents, which can be secrets.
impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut setup = f.debug_struct("Setup");
        setup.field("options", &self.options).field("policy", &self.policy).field("nodes", &self.nodes);
        setup.field("documents", &self.documents.len()).field("place", &self.place).field("now", &self.now).finish_non_exhaustive()
    }
}

/// What a host in another language opens the machine with: a [`Setup`] whose parts are JSON. The bindings use it; a host in Rust needs it
/// only for what it has as files.
#[non_exhaustive]
pub struct JsonSetup<'s> {
    /// The options ([`Options::from_json`]).
    pub options: &'s [u8],
    /// The pinned registry ([`Registry::from_json`]).
    pub registry: &'s [u8],
    /// The policy ([`Policy::from_json`]); empty for the default.
    pub policy: &'s [u8],
    /// The endpoints of each chain ([`NodeConfig::from_json`]); empty for none.
    pub nodes: &'s [u8],
    /// Every document that the host has kept: see [`Setup::documents`].
    pub documents: Vec<(String, Zeroizing<Vec<u8>>)>,
    /// See [`Setup::place`].
    pub place: &'s str,
    /// The host's clock.
    pub now: UnixMillis,
}

impl<'s> JsonSetup<'s> {
    /// Creates a setup without endpoints and documents, with the default policy.
    #[must_use]
    pub const fn new(options: &'s [u8], registry: &'s [u8], now: UnixMillis) -> Self {
        Self { options, registry, policy: &[], nodes: &[], documents: Vec::new(), place: "", now }
    }

    /// Parses the parts.
    ///
    /// # Errors
    ///
    /// [`Failure`] at the first member of `/options`, `/registry`, `/policy` or `/nodes` that is invalid or has no meaning.
    pub fn parse(self) -> Result<Setup, Failure> {
        let options = Options::from_json(self.options).map_err(under("/options"))?;
        let registry = Registry::from_json(self.registry).map_err(under("/registry"))?;
        let mut setup = Setup::new(options, registry, self.now);
        if !self.policy.is_empty() {
            setup.policy = Policy::from_json(self.policy).map_err(under("/policy"))?;
        }
        if !self.nodes.is_empty() {
            setup.nodes = NodeConfig::from_json(self.nodes).map_err(under("/nodes"))?;
        }
        (setup.documents, setup.place) = (self.documents, self.place.to_owned());
        Ok(setup)
    }
}

fn under(document: &'static str) -> impl Fn(Refusal) -> Refusal {
    move |refusal| refusal.with_prefix(document)
}

/// Leaves out the options, which can contain the application's id, the endpoints, which can contain keys, and the documents.
impl fmt::Debug for JsonSetup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonSetup").field("place", &self.place).field("now", &self.now).finish_non_exhaustive()
    }
}
