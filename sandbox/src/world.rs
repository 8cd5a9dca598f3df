//! The state that all parts share: chains, ledger, clock and lies.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::chains::{Engine, Listing};
use crate::clock::Clock;
use crate::http::{Reply, Request};
use crate::ledger::Ledger;
use crate::lies::Lies;
use crate::service::create::Creating;

/// The number of log lines that are kept.
const LINES: usize = 500;
/// The maximum number of blocks that a chain makes at once on demand.
pub(crate) const MAX_BLOCKS: u64 = 1_000_000;
/// Milliseconds between a chain's blocks above its quick limit.
const HELD_INTERVAL: u64 = 10_000;

/// How the service and its solver behave towards all clients. Each can be turned while the sandbox runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::Args)]
#[expect(clippy::exhaustive_structs, reason = "callers name what they want")]
pub struct Settings {
    /// How many milliseconds after a payment or a redemption the solver acts, so that a client that polls sees the states between.
    #[arg(long, default_value_t = 1_000, value_name = "MILLIS")]
    pub pace: u64,
    /// Answers new orders with `typed_data` null, as to clients that pay by a transaction alone.
    #[arg(long)]
    pub no_typed_data: bool,
    /// Gives the swap contracts of EVM chains and Tron every allowance, so that answers to new orders have no approval.
    #[arg(long)]
    pub no_approval: bool,
    /// Offers new orders of Solana with messages of version 1.
    #[arg(long)]
    pub v1_messages: bool,
}

/// One chain with its block production.
pub struct Chain {
    engine: Mutex<Box<dyn Engine>>,
    /// What the service lists about it.
    pub listing: Listing,
    /// How many blocks are still to be made early, so that pending transactions become final.
    due: AtomicU64,
    /// When the newest block was made, in milliseconds since 1970.
    last: AtomicU64,
    /// The height up to which blocks are made on demand. Beyond it, a recent payment would soon be refundable.
    quick_limit: AtomicU64,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("listing", &self.listing).finish_non_exhaustive()
    }
}

impl Chain {
    /// Locks and returns the engine.
    pub fn engine(&self) -> MutexGuard<'_, Box<dyn Engine>> {
        // An engine should never panic while it is locked. If it does, its state is still usable.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the height up to which blocks are made on demand.
    pub(crate) fn set_quick_limit(&self, height: u64) {
        self.quick_limit.store(height, Ordering::Relaxed);
    }

    /// Answers a call of a wallet. A chain that is only a model says so in every answer.
    #[must_use]
    pub fn answer(&self, request: &Request) -> Reply {
        let mut reply = self.engine().answer(request);
        if self.listing.is_model() {
            reply.headers.push(("x-sandbox".to_owned(), "model".to_owned()));
        }
        reply
    }

    /// Returns a member of the listing of an asset on this chain.
    #[must_use]
    pub fn asset(&self, id: &str) -> Option<&Value> {
        self.listing.assets.iter().find(|asset| asset.get("id").and_then(Value::as_str) == Some(id))
    }
}

/// The whole sandbox, without its sockets.
#[derive(Debug)]
pub struct World {
    /// The clock that all chains share.
    pub clock: Arc<Clock>,
    /// The chains by name.
    pub chains: BTreeMap<String, Chain>,
    /// The orders.
    pub ledger: Ledger,
    /// The lies that are switched on.
    pub lies: Lies,
    /// Whether blocks are only made on demand.
    pub is_manual: AtomicBool,
    settings: Mutex<Settings>,
    seed: u64,
    lines: Mutex<VecDeque<String>>,
    /// The transactions that the relayer has sent, by order and action. Clients repeat their requests until a block
    /// has the transaction.
    pub(crate) relayed: Mutex<BTreeMap<u64, BTreeMap<&'static str, String>>>,
    /// Orders that are being created.
    pub(crate) creating: Creating,
}

impl World {
    /// Returns a world of these chains, which share one clock.
    #[must_use]
    pub fn new(chains: BTreeMap<String, Box<dyn Engine>>, ledger: Ledger, clock: Arc<Clock>, seed: u64) -> Self {
        let chains = chains.into_iter().map(|(name, engine)| {
            let listing = engine.listing();
            let (due, last, quick_limit) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(u64::MAX));
            (name, Chain { engine: Mutex::new(engine), listing, due, last, quick_limit })
        });
        Self {
            clock,
            chains: chains.collect(),
            ledger,
            lies: Lies::new(seed),
            is_manual: AtomicBool::new(false),
            settings: Mutex::default(),
            seed,
            lines: Mutex::default(),
            relayed: Mutex::default(),
            creating: Creating::default(),
        }
    }

    /// Returns the current behaviour of service and solver.
    #[must_use]
    pub fn settings(&self) -> Settings {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the behaviour of service and solver.
    pub fn set(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Moves the clock of all chains forward. Each chain makes the blocks of that time, and one more at the new time.
    pub fn advance(&self, millis: u64) {
        self.clock.advance(millis);
        for chain in self.chains.values() {
            let mut engine = chain.engine();
            let blocks = millis.checked_div(engine.interval()).unwrap_or_default();
            engine.mine(blocks.saturating_add(1).min(MAX_BLOCKS));
        }
    }

    /// Returns the solver's name in quotes and records.
    #[must_use]
    pub fn solver(&self) -> String {
        let hash = Sha256::digest(b"countersign sandbox: solver id");
        format!("0x{}", hex::encode(hash.get(..20).unwrap_or_default()))
    }

    /// Returns 32 bytes derived from the seed, a purpose and a number.
    #[must_use]
    pub fn derived(&self, purpose: &str, number: u64) -> [u8; 32] {
        Sha256::digest(format!("countersign sandbox {} {purpose} {number}", self.seed)).into()
    }

    /// Returns the chain of an asset.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox has no such chain.
    pub fn chain_of(&self, asset: &str) -> Result<&Chain, String> {
        let name = asset.split_once(':').map_or(asset, |(name, _)| name);
        self.chains.get(name).ok_or_else(|| format!("unknown chain: {name}"))
    }

    /// Returns the chain with a name.
    ///
    /// # Errors
    ///
    /// Fails if the sandbox has no such chain.
    pub fn chain(&self, name: &str) -> Result<&Chain, String> {
        self.chains.get(name).ok_or_else(|| format!("unknown chain: {name}"))
    }

    /// Makes the blocks that are due. Pending transactions go into the next block, and further blocks follow until
    /// they are final.
    pub fn tick(&self) {
        if self.is_manual.load(Ordering::Relaxed) {
            return;
        }
        for chain in self.chains.values() {
            let now = self.clock.millis();
            let mut engine = chain.engine();
            if engine.pending() > 0 {
                chain.due.store(engine.depth().saturating_add(1), Ordering::Relaxed);
            }
            let due = chain.due.load(Ordering::Relaxed);
            // Pending transactions get a block of their own. The blocks that make them final come a few at a time.
            let wanted = if engine.pending() > 0 { 1 } else { due.div_ceil(3) };
            let quick = wanted.min(chain.quick_limit.load(Ordering::Relaxed).saturating_sub(engine.height()));
            let interval = if wanted > 0 { engine.interval().min(HELD_INTERVAL) } else { engine.interval() };
            let is_time = now.saturating_sub(chain.last.load(Ordering::Relaxed)) >= interval;
            let blocks = quick.max(u64::from(is_time));
            if blocks > 0 {
                engine.mine(blocks);
                chain.due.store(due.saturating_sub(blocks), Ordering::Relaxed);
                chain.last.store(now, Ordering::Relaxed);
            }
        }
    }

    /// Puts pending transactions of a chain into a block now, unless blocks are only made on demand.
    pub fn settle(&self, chain: &Chain) {
        if !self.is_manual.load(Ordering::Relaxed) {
            let mut engine = chain.engine();
            if engine.pending() > 0 && engine.height() < chain.quick_limit.load(Ordering::Relaxed) {
                engine.mine(1);
                chain.due.store(engine.depth(), Ordering::Relaxed);
                chain.last.store(self.clock.millis(), Ordering::Relaxed);
            }
        }
    }

    /// Adds a line to the log.
    pub fn note(&self, line: impl Into<String>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(line.into());
    }

    /// Returns the log, oldest line first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
