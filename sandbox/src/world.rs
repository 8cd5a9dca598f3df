//! Everything that the rooms share: chains, ledger, clock, and who lies.

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

/// How many lines of what happened are kept.
const LINES: usize = 500;
/// Blocks that a chain makes at once on demand.
pub(crate) const MAX_BLOCKS: u64 = 1_000_000;
/// Milliseconds between the blocks of a chain above its quick limit.
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

/// One chain with its pace.
pub struct Chain {
    engine: Mutex<Box<dyn Engine>>,
    /// What the service lists.
    pub listing: Listing,
    /// Blocks that are still to come quickly, so that what waits becomes final.
    due: AtomicU64,
    /// When the last block came, in milliseconds since 1970.
    last: AtomicU64,
    /// The height up to which blocks come on demand. Above it, a recent payment would soon be refundable.
    quick_limit: AtomicU64,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("listing", &self.listing).finish_non_exhaustive()
    }
}

impl Chain {
    /// Returns the engine, for as long as the guard lives.
    pub fn engine(&self) -> MutexGuard<'_, Box<dyn Engine>> {
        // An engine never panics while it is held; if it does, its state is as good as before the call.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the height up to which blocks come on demand.
    pub(crate) fn set_quick_limit(&self, height: u64) {
        self.quick_limit.store(height, Ordering::Relaxed);
    }

    /// Answers a call of a wallet. A model says in every answer that it is one.
    #[must_use]
    pub fn answer(&self, request: &Request) -> Reply {
        let mut reply = self.engine().answer(request);
        if self.listing.is_model() {
            reply.headers.push(("x-sandbox".to_owned(), "model".to_owned()));
        }
        reply
    }

    /// Returns a member of an asset of this chain.
    #[must_use]
    pub fn asset(&self, id: &str) -> Option<&Value> {
        self.listing.assets.iter().find(|asset| asset.get("id").and_then(Value::as_str) == Some(id))
    }
}

/// The whole sandbox, without its sockets.
#[derive(Debug)]
pub struct World {
    /// The clock of all chains.
    pub clock: Arc<Clock>,
    /// The chains by name.
    pub chains: BTreeMap<String, Chain>,
    /// The orders.
    pub ledger: Ledger,
    /// Who lies.
    pub lies: Lies,
    /// Whether blocks come only when somebody asks for them.
    pub is_manual: AtomicBool,
    settings: Mutex<Settings>,
    seed: u64,
    lines: Mutex<VecDeque<String>>,
    /// What the relayer has sent, by order and action: clients ask again before a block has it.
    pub(crate) relayed: Mutex<BTreeMap<u64, BTreeMap<&'static str, String>>>,
    /// Orders that are being made.
    pub(crate) creating: Creating,
}

impl World {
    /// Puts chains under one clock.
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

    /// Returns how service and solver behave now.
    #[must_use]
    pub fn settings(&self) -> Settings {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how service and solver behave.
    pub fn set(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Turns the clock of all chains forward. Each makes the blocks that would have come meanwhile, and one at the new time.
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

    /// 32 bytes that follow from the seed, a purpose and a number.
    #[must_use]
    pub fn derived(&self, purpose: &str, number: u64) -> [u8; 32] {
        Sha256::digest(format!("countersign sandbox {} {purpose} {number}", self.seed)).into()
    }

    /// Returns the chain of an asset.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn chain_of(&self, asset: &str) -> Result<&Chain, String> {
        let name = asset.split_once(':').map_or(asset, |(name, _)| name);
        self.chains.get(name).ok_or_else(|| format!("unknown chain: {name}"))
    }

    /// Returns a chain by its name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn chain(&self, name: &str) -> Result<&Chain, String> {
        self.chains.get(name).ok_or_else(|| format!("unknown chain: {name}"))
    }

    /// Lets time pass for the chains: what waits goes into a block, and blocks follow until it is final.
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
            // What waits is in the first block alone; those that make it final come a few at a time.
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

    /// Puts what waits on a chain into a block now, unless blocks come only on demand.
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

    /// Notes what happened, for whoever looks.
    pub fn note(&self, line: impl Into<String>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(line.into());
    }

    /// Returns what happened lately, the oldest first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
