//! `countersign registry show|pin|diff`

use std::io::Write;
use std::path::PathBuf;

use countersign::{
    Registry, text,
    trust::{Asset, Change, ServicePins},
};
use countersign_client::driver::Chains as _;
use countersign_node::Contracts;
use serde::Serialize;

use crate::contracts;
use crate::exit::{OK, REFUSED};
use crate::failure::{Failure, usage};
use crate::files::{self, Access};
use crate::input;
use crate::nodes::NodeArgs;
use crate::own;
use crate::session::Session;
use crate::state::StateArgs;
use crate::{service, show};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Shows the content of a registry and its digest.
    Show {
        /// The registry file.
        registry: PathBuf,
    },
    /// Pins a registry. Changes to older pins are shown, and need --accept.
    #[command(after_help = PIN_EXAMPLES)]
    Pin(Box<PinArgs>),
    /// Shows the differences between two registries. The exit code is 1 if there are any.
    Diff {
        /// The pinned registry.
        old: PathBuf,
        /// The registry to compare it with.
        new: PathBuf,
    },
}

const PIN_EXAMPLES: &str = "Examples:
  countersign registry pin --chains chains.json --assets assets.json --liquidity liquidity.json --out registry.json
  countersign registry pin --from-service --out registry.json
  countersign registry pin --from newer.json --out registry.json --accept
  countersign registry pin --from-service --out registry.json --nodes nodes.json

With --nodes or --node, every pinned contract on a connected chain is described in the state directory, in the file contracts.json, so that
a later change is noticed. The generation of a contract is pinned if the chain shows it.";

#[derive(clap::Args)]
pub(crate) struct PinArgs {
    /// A file with the body of GET /v2/chains.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["from", "from_service"], requires_all = ["assets", "liquidity"])]
    chains: Option<PathBuf>,
    /// A file with the body of GET /v2/assets.
    #[arg(long, value_name = "FILE")]
    assets: Option<PathBuf>,
    /// A file with the body of GET /v2/liquidity.
    #[arg(long, value_name = "FILE")]
    liquidity: Option<PathBuf>,
    /// Pins the content of this registry file.
    #[arg(long, value_name = "FILE", conflicts_with = "chains")]
    from: Option<PathBuf>,
    /// Pins what the service lists now.
    #[arg(long, conflicts_with_all = ["chains", "from"])]
    from_service: bool,
    #[command(flatten)]
    service: service::ServiceArgs,
    /// The registry file to write. By default the pins are written to stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replaces older pins even if something changes.
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    nodes: NodeArgs,
    #[command(flatten)]
    state: StateArgs,
}

pub(crate) fn run(command: &Command, session: &Session) -> Result<u8, Failure> {
    match command {
        Command::Show { registry } => show(&input::registry(registry)?, session),
        Command::Pin(args) => pin(args, session),
        Command::Diff { old, new } => {
            let changes = input::registry(old)?.diff(&input::registry(new)?);
            if session.json {
                show::json(&changes)?
            } else {
                print(&changes)?
            }
            Ok(if changes.is_empty() { OK } else { REFUSED })
        }
    }
}

/// The pins that were written, and what they change.
#[derive(Serialize)]
struct Pinned<'a> {
    ok: bool,
    digest: String,
    changes: &'a [Change],
}

#[derive(Serialize)]
struct Changed<'a> {
    event: &'static str,
    #[serde(flatten)]
    change: &'a Change,
}

#[derive(Serialize)]
struct Shown<'a> {
    digest: String,
    #[serde(flatten)]
    registry: &'a Registry,
}

fn show(registry: &Registry, session: &Session) -> Result<u8, Failure> {
    let digest = hex::encode(registry.digest());
    if session.json {
        show::json(&Shown { digest, registry })?;
        return Ok(OK);
    }
    show::heading("chains")?;
    for chain in registry.chains() {
        show::field(&chain.record.chain, &chain.record.id)?;
    }
    show::heading("assets")?;
    for asset in registry.assets() {
        let htlc = asset.record.htlc.as_ref().map_or("none", |htlc| &htlc.address);
        let token = asset.token.as_ref().map_or("native", |token| &token.text);
        show::field(asset.record.id.as_str(), &format!("{} decimals, HTLC {htlc}, token {token}", asset.record.decimals))?;
    }
    show::heading("solvers")?;
    for solver in registry.solvers() {
        show::field(&solver.chain, &format!("{} of {}", solver.address, solver.solver_id))?;
    }
    if !registry.sponsors().is_empty() {
        show::heading("sponsors")?;
    }
    for sponsor in registry.sponsors() {
        show::field(&sponsor.chain, &sponsor.address)?;
    }
    show::heading("digest of these pins")?;
    show::field("sha256", &digest)?;
    Ok(OK)
}

fn pin(args: &PinArgs, session: &Session) -> Result<u8, Failure> {
    let listed = |ServicePins { registry, notices, .. }| (registry, notices);
    let (mut registry, notices) = match (&args.from, &args.chains, &args.assets, &args.liquidity) {
        (Some(path), ..) => (input::registry(path)?, Vec::new()),
        _ if args.from_service => {
            let client = args.service.client(session)?;
            service::run(session, async { Ok(client.registry().await?) }).map(listed)?
        }
        (None, Some(chains), Some(assets), Some(liquidity)) => {
            let texts = [files::read(chains)?, files::read(assets)?, files::read(liquidity)?];
            let [chain_list, asset_list, liquidity_list] = &texts;
            let pins = Registry::from_service(chain_list, asset_list, liquidity_list);
            pins.map(listed).map_err(|refusal| {
                let places = [(assets, asset_list, "/assets"), (chains, chain_list, "/chains")];
                let found = places.into_iter().find(|(.., prefix)| refusal.location().starts_with(prefix));
                let (path, text, prefix) = found.unwrap_or((liquidity, liquidity_list, "/liquidity"));
                usage(own::below(path, text, prefix, &refusal))
            })?
        }
        _ => return Err(usage("pass --chains, --assets and --liquidity, or --from, or --from-service")),
    };
    for notice in &notices {
        session.progress(&format!("notice: {notice}"));
    }
    let older = args.out.as_deref().filter(|out| out.try_exists().unwrap_or(true)).map(input::registry).transpose()?;
    if let (Some(older), None) = (&older, &args.from) {
        registry = registry.with_sponsors_of(older).with_generations_of(older).with_paces_of(older);
    }
    let mut contracts = Contracts::default();
    if args.nodes.is_named()? {
        (registry, contracts) = describe(registry, &args.nodes, session)?;
    }
    let bytes = registry.to_file();
    let Some(out) = &args.out else {
        std::io::stdout().lock().write_all(&bytes)?;
        return Ok(OK);
    };
    let (is_first, mut changes) = (older.is_none(), Vec::new());
    if let Some(older) = older {
        changes = older.diff(&registry);
        let is_refused = older.to_file() != bytes && !args.accept;
        if !session.json {
            print(&changes)?;
        } else if is_refused {
            changes.iter().for_each(|change| session.event(&Changed { event: "change", change }, ""));
        }
        if is_refused {
            return Err(usage("the older pins are unchanged: re-run with --accept to pin the new values"));
        }
    }
    let state = if contracts == Contracts::default() { None } else { contracts::open(&args.state, session) };
    let news = match &state {
        Some(state) => contracts::changes(&state.store, &registry, &contracts)?,
        None => Vec::new(),
    };
    for change in &news {
        session.progress(&format!("CHANGED: the contract of {change}"));
    }
    if !news.is_empty() && !args.accept {
        return Err(usage("pinned contracts have changed: inspect them, then re-run with --accept to pin them as they are now"));
    }
    files::replace(out, &bytes, Access::Shared)?;
    if let Some(state) = &state {
        contracts::keep(&state.store, &contracts, session);
    }
    show_pinned(&registry, is_first, session);
    if session.json {
        show::json(&Pinned { ok: true, digest: hex::encode(registry.digest()), changes: &changes })?;
    }
    Ok(OK)
}

/// Reads descriptions of the pinned contracts from the connected chains, and pins the generations that can be recognised.
fn describe(mut registry: Registry, nodes: &NodeArgs, session: &Session) -> Result<(Registry, Contracts), Failure> {
    let (connected, mut contracts) = (nodes.connect(&registry, session)?, Contracts::default());
    let assets: Vec<Asset> = registry.assets().into_iter().filter(|asset| asset.htlc.is_some()).cloned().collect();
    service::run(session, async {
        for asset in assets.iter().filter(|asset| connected.has(&asset.chain.record.chain)) {
            let id = asset.record.id.as_str();
            match connected.describe(asset).await {
                Ok(description) => {
                    match (asset.generation, description.generation()) {
                        (Some(pinned), Some(found)) if pinned != found => {
                            return Err(usage(format_args!(
                                "{id}: generation {pinned} is pinned, but the contract on chain is generation {found}"
                            )));
                        }
                        (None, Some(found)) => {
                            session.progress(&format!("{id}: generation {found}"));
                            registry = std::mem::take(&mut registry).with_generation(id, Some(found));
                        }
                        _ => {}
                    }
                    contracts.insert(asset, description);
                }
                Err(error) => session.progress(&format!("{id}: its contract cannot be described: {error}")),
            }
        }
        Ok(())
    })?;
    Ok((registry, contracts))
}

/// Reports what was pinned, with the digest for comparison with other wallets' pins.
fn show_pinned(registry: &Registry, is_first: bool, session: &Session) {
    let (chains, assets, solvers) = (registry.chains().count(), registry.assets().len(), registry.solvers().len());
    session.progress(&format!("pinned {chains} chains, {assets} assets and {solvers} solvers"));
    session.progress(&format!("digest of these pins: sha256 {}", hex::encode(registry.digest())));
    if is_first {
        session.progress(
            "nothing was pinned before, so these values are trusted on first use: compare the digest, or the contracts \
             themselves, with a source other than the service",
        );
    }
}

fn print(changes: &[Change]) -> Result<(), Failure> {
    for change in changes {
        let value = |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), text::escape_untrusted);
        show::field(
            &text::escape_untrusted(&change.entry),
            &format!("{}: {} -> {}", change.field, value(&change.old), value(&change.new)),
        )?;
    }
    Ok(())
}
