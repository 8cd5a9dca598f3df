//! The configuration `nodes.json`: the endpoints of each chain, and how many of them must agree.

use std::collections::BTreeMap;

use countersign::json::{self, Cursor};
use countersign::{Code, Refusal};

use crate::endpoint::Endpoint;
use crate::error::NodeError;

/// The endpoints of one chain.
#[derive(Debug)]
#[non_exhaustive]
pub struct Endpoints {
    /// The endpoints, in order of preference. Never empty.
    pub all: Vec<Endpoint>,
    /// The number of providers that must give the same answer: more than half of them. The endpoints of one provider count once.
    pub quorum: u32,
}

impl Endpoints {
    /// Creates a list of endpoints with the smallest possible quorum: more than half of their [providers](Endpoint::provider) must agree.
    /// An endpoint that is given twice counts once.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Endpoint`] if the list is empty.
    pub fn new(all: Vec<Endpoint>) -> Result<Self, NodeError> {
        let all = distinct(all);
        if all.is_empty() {
            return Err(NodeError::Endpoint("a chain needs at least one endpoint"));
        }
        let quorum = more_than_half(count(providers(&all).len()));
        Ok(Self { all, quorum })
    }

    /// Sets the number of providers that must agree. If that was meant for endpoints some of which have one provider, as many providers
    /// as possible must agree, up to this number.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Endpoint`] if the quorum is more than the number of endpoints, or not more than half of them. With half of
    /// them, two different answers could both reach the quorum.
    pub fn with_quorum(self, quorum: u32) -> Result<Self, NodeError> {
        let (endpoints, providers) = (count(self.all.len()), count(providers(&self.all).len()));
        let is_valid = |all| quorum <= all && quorum >= more_than_half(all);
        if !is_valid(endpoints) && !is_valid(providers) {
            return Err(NodeError::Endpoint("the quorum must be more than half of the endpoints, and at most all of them"));
        }
        Ok(Self { quorum: quorum.clamp(more_than_half(providers), providers), ..self })
    }

    /// Returns why the endpoints may show a false answer unnoticed, or count for less than they seem to, in a sentence for the user; `None`
    /// if each of several endpoints has a provider of its own.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let providers = providers(&self.all);
        let shared: Vec<_> = providers.iter().filter(|(_, endpoints)| *endpoints > 1).collect();
        if let ([(provider, _)], [_, _, ..]) = (providers.as_slice(), self.all.as_slice()) {
            let said = format!("all {} endpoints are of one provider ({provider}), and count once", self.all.len());
            return Some(format!("{said}, so a false answer would go unnoticed; {INDEPENDENT}"));
        }
        if let [_] = self.all.as_slice() {
            return Some("a single endpoint, so a false answer would go unnoticed".to_owned());
        }
        let each: Vec<_> = shared.iter().map(|(provider, endpoints)| format!("{endpoints} endpoints of {provider}")).collect();
        (!each.is_empty()).then(|| format!("{} count once; {INDEPENDENT}", each.join(" and ")))
    }
}

/// How the user says otherwise.
const INDEPENDENT: &str = "if they are independent, give each a provider in nodes.json";

/// Returns the different providers, with the number of their endpoints.
fn providers(all: &[Endpoint]) -> Vec<(&str, usize)> {
    let mut providers: Vec<(&str, usize)> = Vec::new();
    for endpoint in all {
        match providers.iter_mut().find(|(name, _)| *name == endpoint.provider()) {
            Some((_, endpoints)) => *endpoints = endpoints.saturating_add(1),
            None => providers.push((endpoint.provider(), 1)),
        }
    }
    providers
}

const fn more_than_half(all: u32) -> u32 {
    (all / 2).saturating_add(1)
}

/// Drops endpoints that are given twice, and gives each of the others a name of its own.
fn distinct(all: Vec<Endpoint>) -> Vec<Endpoint> {
    let mut distinct: Vec<Endpoint> = Vec::new();
    for mut endpoint in all {
        if distinct.iter().any(|other| other.is_same(&endpoint)) {
            continue;
        }
        let host = endpoint.host().to_owned();
        let before = distinct.iter().filter(|other| other.host() == host).count();
        if before > 0 {
            endpoint.set_name(format!("{host} ({})", before.saturating_add(1)));
        }
        distinct.push(endpoint);
    }
    distinct
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The endpoints of each chain, keyed by the chain's name as in asset ids (`base` in `base:usdc`).
#[derive(Debug, Default)]
pub struct NodeConfig {
    pub(crate) chains: BTreeMap<String, Endpoints>,
}

impl NodeConfig {
    /// Creates a configuration without endpoints.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the endpoints of a chain, and replaces those that it had.
    #[must_use]
    pub fn with(mut self, chain: impl Into<String>, endpoints: Endpoints) -> Self {
        self.chains.insert(chain.into(), endpoints);
        self
    }

    /// Parses `nodes.json`: an object with one member for each chain. Its value is an array of endpoints, or an object with `endpoints` and
    /// `quorum`. An endpoint is a URL, or an object with `url` and `provider`. See [`Endpoint::parse`] for the URLs, and
    /// [`Endpoint::with_provider`] for the provider.
    ///
    /// ```
    /// let config = countersign_node::NodeConfig::from_json(
    ///     br#"{"base": ["https://base.example/key"],
    ///          "litecoin": {"endpoints": ["https://one.example/api",
    ///                                     "rpc+http://user:word@127.0.0.1:9332"],
    ///                       "quorum": 2}}"#,
    /// )?;
    /// assert_eq!(config.names().collect::<Vec<_>>(), ["base", "litecoin"]);
    /// assert!(!format!("{config:?}").contains("word"));
    /// # Ok::<(), countersign::Refusal>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`Refusal`] that points at the invalid member: with [`Code::WrongType`] for an invalid endpoint or quorum, and with the
    /// codes of the JSON parser. It never contains an endpoint's URL.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(bytes)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        let mut config = Self::default();
        for chain in members.keys() {
            let node = members.need(chain)?;
            config.chains.insert(chain.to_owned(), read(&node)?);
        }
        Ok(config)
    }

    /// Returns the names of the configured chains.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.chains.keys().map(String::as_str)
    }
}

fn read(node: &Cursor<'_, '_>) -> Result<Endpoints, Refusal> {
    let Ok(members) = node.object() else { return read_all(node) };
    members.only(&["endpoints", "quorum"])?;
    let endpoints = read_all(&members.need("endpoints")?)?;
    match members.get("quorum") {
        Some(quorum) => {
            endpoints.with_quorum(u32::try_from(quorum.integer()?).unwrap_or(u32::MAX)).map_err(|error| refuse(&quorum, &error))
        }
        None => Ok(endpoints),
    }
}

fn read_all(node: &Cursor<'_, '_>) -> Result<Endpoints, Refusal> {
    let parse = |url: &Cursor<'_, '_>| Endpoint::parse(url.secret()?).map_err(|error| refuse(url, &error));
    let read = |endpoint: Cursor<'_, '_>| {
        let Ok(members) = endpoint.object() else { return parse(&endpoint) };
        members.only(&["url", "provider"])?;
        let parsed = parse(&members.need("url")?)?;
        let Some(provider) = members.get("provider") else { return Ok(parsed) };
        let name = provider.text()?;
        if name.is_empty() {
            return Err(provider.refuse(Code::TextNotPlain));
        }
        Ok(parsed.with_provider(name))
    };
    let all = node.array()?.map(read).collect::<Result<Vec<_>, _>>()?;
    Endpoints::new(all).map_err(|error| refuse(node, &error))
}

/// Creates a refusal without the value, which may contain an API key.
fn refuse(node: &Cursor<'_, '_>, error: &NodeError) -> Refusal {
    node.at().refuse(Code::WrongType).with_reason(error.to_string())
}
