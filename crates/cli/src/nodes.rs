//! `countersign node check`, `countersign balance`, and the connections to chains that other commands use.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign::{Family, Leg, Registry, chains::BlockHeight, evidence::check_head_time, text, wire::RequestedLeg};
use countersign_client::driver::OrderState;
use countersign_client::{Http, Timeouts};
use countersign_node::{Endpoint, Endpoints, Head, NodeConfig, NodeError, Nodes, SettlementKey, Speed};
use serde::Serialize;

use crate::config::Config;
use crate::exit::{NETWORK, OK};
use crate::failure::{Failure, told, usage};
use crate::input::{RegistryArgs, TrustArgs};
use crate::key::{GivenKey, key_from};
use crate::quote::asset;
use crate::session::Session;
use crate::state::State;
use crate::{own, preflight, proxy, service, show};

pub(crate) const CHECK_EXAMPLES: &str = "Examples:
  countersign node check --registry registry.json --nodes nodes.json
  countersign node check --registry registry.json --node base=https://base.example/key --node litecoin=https://litecoin.example/api

nodes.json has a member for each chain, with the chain name of asset ids. Its value is an array of URLs, or an object with `endpoints` and
`quorum`, the number of endpoints that must give the same answer (more than half of them). Endpoints of one host count once. To say
otherwise, write {\"url\": ..., \"provider\": NAME} in place of a URL.
  {\"base\": [\"https://one.example/key\", \"https://two.example\", \"https://three.example\"],
   \"litecoin\": {\"endpoints\": [\"https://litecoin.example/api\", \"rpc+http://user:password@127.0.0.1:9332\"], \"quorum\": 2}}
EVM, Solana and Starknet endpoints use JSON-RPC (Starknet in version 0.9 or 0.10), Sui endpoints gRPC-web, and Tron endpoints the HTTP
interface of Tron nodes. Bitcoin-like chains are read through an Esplora server, or with the prefix `rpc+` through the RPC of a node.";

pub(crate) const BALANCE_EXAMPLES: &str = "Examples:
  countersign balance base:usdc 0x... --registry registry.json --nodes nodes.json
  countersign balance litecoin:ltc ltc1q... --registry registry.json --node litecoin=https://litecoin.example/api";

/// The connections to chains.
#[derive(clap::Args)]
pub(crate) struct NodeArgs {
    /// The file with the endpoints of each chain. By default that of the configuration file.
    #[arg(long, value_name = "FILE", env = "COUNTERSIGN_NODES")]
    nodes: Option<PathBuf>,
    /// An endpoint of a chain, in place of those of the file. Can be given several times. Other users of this machine can see arguments, so
    /// put a URL with an API key in the file.
    #[arg(long, value_name = "CHAIN=URL")]
    node: Vec<String>,
}

impl NodeArgs {
    /// Returns whether any endpoint is configured.
    pub(crate) fn is_named(&self) -> Result<bool, Failure> {
        Ok(self.nodes.is_some() || !self.node.is_empty() || Config::read()?.nodes.is_some())
    }

    /// Returns the file with the endpoints; `None` without one.
    pub(crate) fn path(&self) -> Result<Option<PathBuf>, Failure> {
        Ok(match &self.nodes {
            Some(path) => Some(path.clone()),
            None => Config::read()?.nodes,
        })
    }

    /// Connects the chains that have endpoints. This sends nothing yet.
    pub(crate) fn connect(&self, registry: &Registry, session: &Session) -> Result<Nodes<Http>, Failure> {
        let config = match self.path()? {
            Some(path) => own::parse(&path, NodeConfig::from_json)?,
            None => NodeConfig::new(),
        };
        self.with(config, registry, session)
    }

    fn with(&self, mut config: NodeConfig, registry: &Registry, session: &Session) -> Result<Nodes<Http>, Failure> {
        let mut named: std::collections::BTreeMap<&str, Vec<Endpoint>> = std::collections::BTreeMap::new();
        for text in &self.node {
            let (chain, url) = text.split_once('=').ok_or_else(|| usage("an endpoint must have the form CHAIN=URL"))?;
            named.entry(chain).or_default().push(Endpoint::parse(url)?);
        }
        for (chain, endpoints) in named {
            config = config.with(chain, Endpoints::new(endpoints)?);
        }
        connect(config, registry, session)
    }
}

/// Connects the chains of a configuration. This sends nothing yet. A chain that is not of the registry must not stand in the way of an order
/// that is paid, so it is only said here; [`check_names`] refuses it.
pub(crate) fn connect(config: NodeConfig, registry: &Registry, session: &Session) -> Result<Nodes<Http>, Failure> {
    let timeouts = Timeouts { connect: Duration::from_secs(10), call: Duration::from_secs(20) };
    let nodes = Nodes::new(proxy::http(timeouts, session.proxy.as_deref())?, config, registry);
    for name in nodes.unknown() {
        session.progress(&format!("{}: not a chain of the registry, so its endpoints are not used", text::escape_untrusted(name)));
    }
    Ok(nodes)
}

/// Requires that every chain with endpoints is one of the registry: a misspelt one would be missing once the order is paid. `path` is the
/// file with the endpoints, if there is one.
pub(crate) fn check_names(nodes: &Nodes<Http>, registry: &Registry, path: Option<&Path>) -> Result<(), Failure> {
    let said = |name: &String| {
        let place = path.map_or_else(|| "--node".to_owned(), |path| own::place(path, &format!("/{name}")));
        let meant = registry.chains().map(|chain| chain.record.chain.as_str()).find(|chain| is_meant(chain, name));
        let write = meant.map_or_else(|| "use the chain names of asset ids".to_owned(), |chain| format!("write {chain}"));
        format!("{place}: not a chain of the registry: {write}; got {}", text::escape_untrusted(name))
    };
    match nodes.unknown() {
        [] => Ok(()),
        names => Err(usage(names.iter().map(said).collect::<Vec<_>>().join("; "))),
    }
}

/// Returns whether a misspelt name can mean a chain: it has the same letters and digits, or one character more, less or in another place.
fn is_meant(chain: &str, name: &str) -> bool {
    let plain =
        |text: &str| -> Vec<char> { text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect() };
    let (chain, name) = (plain(chain), plain(name));
    let same_start = chain.iter().zip(&name).take_while(|(one, other)| one == other).count();
    let rest = |text: &[char]| text.len().saturating_sub(same_start);
    let same_end = chain.iter().rev().zip(name.iter().rev()).take_while(|(one, other)| one == other).count();
    let differing = |text: &[char]| rest(text).saturating_sub(same_end.min(rest(&chain).min(rest(&name))));
    let swapped = || {
        let middle = |text: &[char]| {
            let mut middle = text.get(same_start..same_start.saturating_add(2)).unwrap_or_default().to_vec();
            middle.sort_unstable();
            middle
        };
        differing(&chain) == 2 && differing(&name) == 2 && middle(&chain) == middle(&name)
    };
    !name.is_empty() && (differing(&chain) <= 1 && differing(&name) <= 1 || swapped())
}

/// Returns connections to no chain at all.
pub(crate) fn none(registry: &Registry, session: &Session) -> Result<Arc<Nodes<Http>>, Failure> {
    let args = NodeArgs { nodes: None, node: Vec::new() };
    args.with(NodeConfig::new(), registry, session).map(Arc::new)
}

/// How soon the owner's transactions should be mined.
#[derive(Clone, Copy, Default, clap::ValueEnum)]
pub(crate) enum SpeedArg {
    Slow,
    #[default]
    Normal,
    Fast,
}

impl From<SpeedArg> for Speed {
    fn from(speed: SpeedArg) -> Self {
        match speed {
            SpeedArg::Slow => Self::Slow,
            SpeedArg::Normal => Self::Normal,
            SpeedArg::Fast => Self::Fast,
        }
    }
}

/// How the owner's own transactions redeem or refund an order.
#[derive(clap::Args)]
pub(crate) struct EndingArgs {
    /// Reads the key that sends the redemption on the destination chain from a file. By default it is that of the configuration file, or
    /// the key that pays if both chains belong to the same family. On Bitcoin-like chains it is always derived from the rescue phrase.
    #[arg(long, value_name = "FILE")]
    redeem_key_file: Option<PathBuf>,
    /// How soon the transactions should be mined, which determines their fees.
    #[arg(long, value_enum, default_value = "normal")]
    speed: SpeedArg,
}

impl EndingArgs {
    pub(crate) fn speed(&self) -> Speed {
        self.speed.into()
    }

    /// Reads the key that sends the redemption on a chain; `None` without one of its own.
    pub(crate) fn redeem_key(&self, chain: Option<&str>, session: &Session) -> Result<Option<GivenKey>, Failure> {
        match &self.redeem_key_file {
            Some(path) => key_from(path, session).map(Some),
            None => Config::read()?.redeem_key_file(chain).map(|path| key_from(path, session)).transpose(),
        }
    }

    /// Returns the key and account that refund the source, and those that redeem the destination, where there is a key.
    pub(crate) fn read(
        &self,
        kept: &OrderState,
        state: &State,
        registry: &Registry,
        own: Option<&GivenKey>,
        session: &Session,
    ) -> Result<(Option<SettlementKey>, Option<SettlementKey>), Failure> {
        let request = kept.swap.request();
        let families = [&request.source, &request.destination].map(|leg| registry.family(leg.asset.chain()).ok());
        let redeems = match self.redeem_key(Some(request.destination.asset.chain()), session)? {
            Some(key) => Some(key),
            None => own.filter(|_| families[0] == families[1]).cloned(),
        };
        let settles = |leg: Leg, requested: &RequestedLeg, key: Option<&GivenKey>| -> Result<Option<SettlementKey>, Failure> {
            let Ok(family) = registry.family(requested.asset.chain()) else { return Ok(None) };
            let key = match family {
                Family::Bitcoin => state.derived_key(leg, kept.key_index(), requested.delegate.as_deref())?,
                _ => key.cloned(),
            };
            let key = key.map(|key| key.parse(family)).transpose()?;
            Ok(key.and_then(|key| SettlementKey::new(key, requested.owner.clone())))
        };
        Ok((settles(Leg::Source, &request.source, own)?, settles(Leg::Destination, &request.destination, redeems.as_ref())?))
    }
}

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Checks the chain and the newest block of each endpoint.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
}

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    nodes: NodeArgs,
}

/// The result of checking one endpoint.
#[derive(Serialize)]
struct Checked {
    chain: String,
    endpoint: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<BlockHeight>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// Seconds since the newest block was produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    head_age: Option<u64>,
    /// Seconds that the newest block is ahead of this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    head_ahead: Option<u64>,
    milliseconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    endpoints: &'a [Checked],
    warnings: &'a [String],
}

pub(crate) fn run(command: &Command, session: &Session) -> Result<u8, Failure> {
    let Command::Check(args) = command;
    let (registry, policy) = args.trust.read_to_pay()?;
    let nodes = args.nodes.connect(&registry, session)?;
    check_names(&nodes, &registry, args.nodes.path()?.as_deref())?;
    let (mut checked, mut warnings) = (Vec::new(), Vec::new());
    let mut holds = true;
    service::run(session, async {
        for name in nodes.names() {
            let Some(endpoints) = nodes.endpoints(name) else { continue };
            warnings.extend(endpoints.doubt().map(|doubt| format!("{name}: {doubt}")));
            for (index, endpoint) in endpoints.all.iter().enumerate() {
                let start = Instant::now();
                let answer = nodes.head(name, index).await;
                let problem = answer.as_ref().ok().zip(registry.profile(name).ok());
                if let Some(problem) = problem.and_then(|(head, chain)| check_head_time(chain, head.time, show::now()).err()) {
                    warnings.push(format!("{name}: {}: {problem}", endpoint.host()));
                }
                checked.push(Checked::new(name, endpoint.host(), answer, start.elapsed()));
            }
            let answering = endpoints.all.iter().zip(checked.iter().filter(|one| one.chain == name)).filter(|(_, one)| one.ok);
            let providers: BTreeSet<_> = answering.map(|(endpoint, _)| endpoint.provider()).collect();
            let (heights, needed) = (providers.len(), endpoints.quorum);
            if u32::try_from(heights).unwrap_or(u32::MAX) < needed {
                warnings.push(format!("{name}: {heights} endpoints answer, and {needed} must agree"));
                continue;
            }
            let found = nodes.chain_preconditions(name, &registry, &policy).await;
            holds &= !found.unmet.iter().any(|unmet| matches!(unmet.error, NodeError::Refused(_)));
            warnings.extend(preflight::said(&found));
        }
        Ok(())
    })?;
    if checked.is_empty() {
        return Err(usage("no endpoint: pass --node or --nodes, or set nodes in the configuration file"));
    }
    let ok = holds && checked.iter().all(|one| one.ok);
    if session.json {
        show::json(&Report { ok, endpoints: &checked, warnings: &warnings })?;
    } else {
        for one in &checked {
            let text = match (&one.error, one.height, one.head_age) {
                (None, Some(height), Some(age)) => {
                    format!("{}: block {height}, {age} s old; answered in {} ms", one.endpoint, one.milliseconds)
                }
                (error, ..) => error.clone().unwrap_or_default(),
            };
            show::field(&one.chain, &text)?;
        }
        for warning in &warnings {
            show::field("warning", warning)?;
        }
    }
    Ok(if ok { OK } else { NETWORK })
}

impl Checked {
    fn new(chain: &str, endpoint: &str, answer: Result<Head, NodeError>, took: Duration) -> Self {
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let (chain, endpoint) = (chain.to_owned(), endpoint.to_owned());
        match answer {
            Ok(head) => {
                let now = show::now();
                let ahead = Some(head.time.saturating_duration_since(now).as_secs()).filter(|ahead| *ahead > 0);
                Self {
                    chain,
                    endpoint,
                    ok: true,
                    height: Some(head.height),
                    hash: Some(head.hash),
                    head_age: Some(now.saturating_duration_since(head.time).as_secs()),
                    head_ahead: ahead,
                    milliseconds,
                    error: None,
                }
            }
            Err(error) => {
                let error = Some(told(&error));
                Self { chain, endpoint, ok: false, height: None, hash: None, head_age: None, head_ahead: None, milliseconds, error }
            }
        }
    }
}

#[derive(clap::Args)]
pub(crate) struct BalanceArgs {
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    nodes: NodeArgs,
    /// The asset, `<chain>:<symbol>`.
    asset: String,
    /// The address whose balance to show.
    owner: String,
}

#[derive(Serialize)]
struct Balance<'a> {
    ok: bool,
    asset: &'a str,
    owner: &'a str,
    base_units: String,
    amount: String,
}

/// Prints the balance of an address in a pinned asset.
pub(crate) fn balance(args: &BalanceArgs, session: &Session) -> Result<u8, Failure> {
    let registry = args.registry.read()?.ok_or_else(|| usage("no registry: pass the pinned one with --registry"))?;
    let id = asset(&args.asset)?;
    let pinned = registry.asset(id.as_str()).ok_or_else(|| usage(format_args!("{id} is not pinned")))?;
    let nodes = args.nodes.connect(&registry, session)?;
    let base_units = service::run(session, async { Ok(nodes.balance(pinned, &args.owner).await?) })?;
    let amount = pinned.amount(base_units).to_string();
    if session.json {
        show::json(&Balance { ok: true, asset: id.as_str(), owner: &args.owner, base_units: base_units.to_string(), amount })?;
    } else {
        show::field("balance", &amount)?;
    }
    Ok(OK)
}
