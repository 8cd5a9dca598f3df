//! The whole sandbox in one process, for its program and for tests of Rust wallets.

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

/// How often chains and solver check whether something is due.
const TICK: Duration = Duration::from_millis(40);

/// The configuration of a sandbox.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on. Use the loopback address unless the network is trusted.
    pub address: IpAddr,
    /// The port of the service. The chains use the ports after it. 0 chooses free ports.
    pub port: u16,
    /// Where orders and the program's files are stored. `None` keeps orders in memory and writes nothing.
    pub directory: Option<PathBuf>,
    /// The names of chains. Empty selects all main networks.
    pub chains: Vec<String>,
    /// Programs that replace the sandbox's own engines.
    pub nodes: Nodes,
    /// The initial behaviour of service and solver.
    pub settings: Settings,
    /// Whether blocks are only made on demand. The solver then acts only in [`Sandbox::step`].
    pub is_manual: bool,
    /// The seed of all random choices.
    pub seed: u64,
    /// The time at which the clock is fixed, in milliseconds since 1970, until it is advanced. `None` uses the
    /// machine's clock.
    pub time: Option<u64>,
    /// The lies that are switched on from the start.
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

/// Why a sandbox failed to start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A socket or a file cannot be used.
    #[error("{what}: {error}")]
    Io {
        /// The socket or file.
        what: String,
        /// The reason.
        error: io::Error,
    },
    /// The orders cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The configuration has an invalid name.
    #[error("{0}")]
    Unknown(String),
    /// A chain refused the funds that a user starts with.
    #[error("{0}")]
    Unfunded(String),
}

/// A running sandbox. It stops when it is dropped.
#[derive(Debug)]
pub struct Sandbox {
    /// The sandbox without its sockets.
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
    /// Fails if a port is taken, a file cannot be used, or a name is unknown.
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

    /// Returns the URL of the service and of the page, without `/v2`.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Returns each chain's name with the URL of its nodes. Below it, `/a`, `/b` and `/c` are three endpoints. A lie
    /// affects one of them.
    #[must_use]
    pub fn chains(&self) -> &[(String, String)] {
        &self.chains
    }

    /// Writes the files with which one more user can swap, and gives that user funds on all chains. The user's key
    /// follows from `role`.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written or a faucet is empty.
    pub fn add_user(&self, role: &str, directory: &std::path::Path) -> io::Result<()> {
        for chain in self.world.chains.values() {
            endow(chain, role).map_err(io::Error::other)?;
        }
        Home::open(directory)?.write(&self.world, role, &self.service, &self.chains)
    }

    /// Lets chains and solver do what is due, once.
    pub async fn step(&self) {
        step(&self.world, &self.solver).await;
    }

    /// Waits for a task to fail, which should never happen.
    pub async fn wait(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Binds a port, and the next one if subscriptions are served.
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
            // The system has enough free ports for a pair to be found.
            Err(_) if port == 0 && tries < 50 => tries = tries.saturating_add(1),
            Err(error) => return Err(taken(next)(error)),
        }
    }
}

async fn step(world: &Arc<World>, solver: &Arc<tokio::sync::Mutex<Solver>>) {
    let mut solver = Arc::clone(solver).lock_owned().await;
    let world = Arc::clone(world);
    // Signing and hashing would block the sockets.
    let stepped = tokio::task::spawn_blocking(move || {
        world.tick();
        solver.step(&world).map_err(|error| world.note(format!("solver: {error}")))
    });
    let _ = stepped.await;
}

/// Adapts the orders of an earlier start to the chains, which have started anew.
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

/// Gives a user an amount of every asset.
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
        // A thousand units of a cheap asset, ten of an expensive one.
        let price = asset.get("price").and_then(|price| price.as_f64()).unwrap_or(1.0);
        let units = if price > 1_000.0 { 10 } else { 10_000 }.min(engine.max_endowment());
        engine.fund(&user, id, unit.saturating_mul(units)).map_err(|reason| format!("{id} for {role}: {reason}"))?;
    }
    engine.mine(1);
    Ok(())
}
