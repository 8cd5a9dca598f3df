//! The whole sandbox in the process: for the program, and for the tests of Rust wallets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::accounts;
use crate::chains::{self, Nodes};
use crate::clock::Clock;
use crate::home::Home;
use crate::ledger::{Ledger, LedgerError};
use crate::server::{Front, serve, serve_subscriptions};
use crate::solver::Solver;
use crate::world::{Settings, World};

/// How often chains and solver look whether something is due.
const TICK: Duration = Duration::from_millis(40);

/// What a sandbox is to be.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on: the loopback, unless somebody has said why not.
    pub address: IpAddr,
    /// The port of the service; each chain has one of those that follow. 0 takes free ones.
    pub port: u16,
    /// Where orders and the program's files are kept; `None` keeps orders in memory and writes nothing.
    pub directory: Option<PathBuf>,
    /// Names of chains; empty for all main networks.
    pub chains: Vec<String>,
    /// Programs in the place of the sandbox's own engines.
    pub nodes: Nodes,
    /// How service and solver behave from the beginning.
    pub settings: Settings,
    /// Blocks come only when somebody asks for them, and the solver acts only in [`Sandbox::step`].
    pub is_manual: bool,
    /// What is random follows from it.
    pub seed: u64,
    /// The time at which the clock stands, in milliseconds since 1970, until somebody turns it; `None` for the machine's.
    pub time: Option<u64>,
    /// Lies that are told from the beginning.
    pub lies: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            directory: None,
            chains: Vec::new(),
            nodes: Nodes::default(),
            settings: Settings::default(),
            is_manual: false,
            seed: 0,
            time: None,
            lies: Vec::new(),
        }
    }
}

/// Why a sandbox does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A socket or a file.
    #[error("{what}: {error}")]
    Io {
        /// What could not be used.
        what: String,
        /// The reason.
        error: io::Error,
    },
    /// The orders.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A name in the configuration.
    #[error("{0}")]
    Unknown(String),
    /// A chain has refused what a user starts with.
    #[error("{0}")]
    Unfunded(String),
}

/// A running sandbox. It stops when it is dropped.
#[derive(Debug)]
pub struct Sandbox {
    /// Everything without its sockets.
    pub world: Arc<World>,
    service: String,
    chains: Vec<(String, String)>,
    solver: Arc<tokio::sync::Mutex<Solver>>,
    tasks: JoinSet<()>,
}

impl Sandbox {
    /// Starts the service and its chains.
    ///
    /// # Errors
    ///
    /// A port is taken, a file cannot be used, or a name is unknown.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let io = |what: &str| {
            let what = what.to_owned();
            move |error| StartError::Io { what, error }
        };
        let clock = Arc::new(config.time.map_or_else(Clock::default, Clock::fixed));
        let engines = chains::engines(&config.chains, &clock, &config.nodes).map_err(StartError::Unknown)?;
        let home = match &config.directory {
            Some(directory) => Some(Home::open(directory).map_err(io(&directory.display().to_string()))?),
            None => None,
        };
        let ledger = match &home {
            Some(home) => Ledger::open(&home.path("orders.jsonl"))?,
            None => Ledger::default(),
        };
        let world = Arc::new(World::new(engines, ledger, clock, config.seed));
        world.is_manual.store(config.is_manual, std::sync::atomic::Ordering::Relaxed);
        world.set(config.settings);
        for lie in &config.lies {
            if !world.lies.set(lie, true) {
                return Err(StartError::Unknown(format!("no lie is called {lie}")));
            }
        }
        for chain in world.chains.values() {
            endow(chain, accounts::USER).map_err(StartError::Unfunded)?;
        }
        lose_chains(&world)?;
        let mut tasks = JoinSet::new();
        let mut fronts = vec![Front::Service];
        fronts.extend(world.chains.keys().map(|name| Front::Chain(name.clone())));
        let mut urls = Vec::new();
        let mut port = config.port;
        for front in fronts {
            let has_subscriptions = matches!(&front, Front::Chain(name) if name.starts_with("solana"));
            let (listener, beside) = bind(config.address, port, has_subscriptions).await?;
            urls.push(format!("http://{}", listener.local_addr().map_err(io("the socket"))?));
            let used = if beside.is_some() { 2 } else { 1 };
            port = if port == 0 { 0 } else { port.saturating_add(used) };
            if let (Some(beside), Front::Chain(name)) = (beside, front.clone()) {
                let world = Arc::clone(&world);
                tasks.spawn(async move {
                    let _ = serve_subscriptions(beside, name, world).await;
                });
            }
            let world = Arc::clone(&world);
            tasks.spawn(async move {
                let _ = serve(listener, front, world).await;
            });
        }
        let service = urls.first().cloned().unwrap_or_default();
        let chains: Vec<_> = world.chains.keys().cloned().zip(urls.into_iter().skip(1)).collect();
        if let Some(home) = &home {
            home.write(&world, accounts::USER, &service, &chains).map_err(io("the program's files"))?;
        }
        let solver = Arc::new(tokio::sync::Mutex::new(Solver::default()));
        let mut sandbox = Self { world, service, chains, solver, tasks };
        if !config.is_manual {
            let (world, solver) = (Arc::clone(&sandbox.world), Arc::clone(&sandbox.solver));
            sandbox.tasks.spawn(async move {
                loop {
                    step(&world, &solver).await;
                    tokio::time::sleep(TICK).await;
                }
            });
        }
        Ok(sandbox)
    }

    /// Returns the service's URL, without `/v2`. The page is there too.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Returns each chain's name and the URL of its nodes. `/a`, `/b` and `/c` below it are three endpoints, of which one lies when one is to.
    #[must_use]
    pub fn chains(&self) -> &[(String, String)] {
        &self.chains
    }

    /// Writes what the program needs to swap as one more user, whose key follows from `role`, and gives that user funds on all chains.
    ///
    /// # Errors
    ///
    /// The disk fails, or a faucet is empty.
    pub fn add_user(&self, role: &str, directory: &std::path::Path) -> io::Result<()> {
        for chain in self.world.chains.values() {
            endow(chain, role).map_err(io::Error::other)?;
        }
        Home::open(directory)?.write(&self.world, role, &self.service, &self.chains)
    }

    /// Lets chains and solver do once what is due.
    pub async fn step(&self) {
        step(&self.world, &self.solver).await;
    }

    /// Waits until a task fails, which none does.
    pub async fn wait(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Binds a port, and the one that follows where subscriptions are served.
async fn bind(address: IpAddr, port: u16, has_subscriptions: bool) -> Result<(TcpListener, Option<TcpListener>), StartError> {
    let taken = |address: SocketAddr| move |error| StartError::Io { what: format!("{address}, choose other ports with --port"), error };
    let mut tries = 0_u32;
    loop {
        let at = SocketAddr::new(address, port);
        let listener = TcpListener::bind(at).await.map_err(taken(at))?;
        if !has_subscriptions {
            return Ok((listener, None));
        }
        let next = SocketAddr::new(address, listener.local_addr().map_err(taken(at))?.port().saturating_add(1));
        match TcpListener::bind(next).await {
            Ok(beside) => return Ok((listener, Some(beside))),
            // Among free ports there are enough pairs.
            Err(_) if port == 0 && tries < 50 => tries = tries.saturating_add(1),
            Err(error) => return Err(taken(next)(error)),
        }
    }
}

async fn step(world: &Arc<World>, solver: &Arc<tokio::sync::Mutex<Solver>>) {
    let mut solver = Arc::clone(solver).lock_owned().await;
    let world = Arc::clone(world);
    // Signing and hashing would hold up the sockets.
    let stepped = tokio::task::spawn_blocking(move || {
        world.tick();
        solver.step(&world).map_err(|error| world.note(format!("solver: {error}")))
    });
    let _ = stepped.await;
}

/// Tells the orders of an earlier start that the chains have begun anew.
fn lose_chains(world: &World) -> Result<(), LedgerError> {
    let mut orders = Vec::new();
    for number in world.ledger.under_way() {
        if let Some(mut order) = world.ledger.by_number(number) {
            let before = order.clone();
            order.lose_chains();
            if order != before {
                world.note(format!("{}: was under way when the chains began anew, and is unpaid again", crate::service::short(&order.id)));
                orders.push(order);
            }
        }
    }
    world.ledger.update(&orders)
}

/// Gives a user something of every asset.
fn endow(chain: &crate::world::Chain, role: &str) -> Result<(), String> {
    let mut engine = chain.engine();
    let user = engine.address_of(&accounts::key(role));
    for asset in &chain.listing.assets {
        let (Some(id), Some(decimals)) =
            (asset.get("id").and_then(|id| id.as_str()), asset.get("decimals").and_then(|decimals| decimals.as_u64()))
        else {
            continue;
        };
        let unit = 10_u128.saturating_pow(decimals.try_into().unwrap_or(0));
        // A thousand units of what is cheap, ten of what is dear.
        let price = asset.get("price").and_then(|price| price.as_f64()).unwrap_or(1.0);
        let units = if price > 1_000.0 { 10 } else { 10_000 }.min(engine.max_endowment());
        engine.fund(&user, id, unit.saturating_mul(units)).map_err(|reason| format!("{id} for {role}: {reason}"))?;
    }
    engine.mine(1);
    Ok(())
}
