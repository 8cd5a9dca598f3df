//! The stage of one swap: two chains, the service, the solver, and the program in a home of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::print_stderr,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "a test ends by panicking"
)]

pub mod anvil;
pub mod http;
pub mod litecoin;
pub mod service;
pub mod solver;

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use anvil::Anvil;
use http::Server;
use litecoin::Litecoin;
use serde_json::json;
pub use service::litecoin_chain;
use service::{Book, Conduct, LITECOIN, Order, USDC};
use solver::Solver;

/// How long anything may take that is waited for: much longer than it does, and shorter than the patience of a person.
const DEADLINE: Duration = Duration::from_secs(240);
/// Opens the user's coins on Litecoin.
const LITECOIN_KEY: &str = "3333333333333333333333333333333333333333333333333333333333333333";
/// What the user has on Litecoin at the start.
pub const COINS: u64 = 100_000_000;
/// More than the fees of a few transactions.
pub const FEES: u64 = 100_000;

pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Waits until something is there.
pub fn poll<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain: {what}");
        sleep(Duration::from_millis(100));
    }
}

/// Base units that are swapped of an asset.
pub fn amount(asset: &str) -> u128 {
    match asset {
        USDC => 5_000_000,
        LITECOIN => 500_000,
        _ => 1_000_000_000_000_000,
    }
}

/// The program, as `run` or the workspace has built it.
fn program() -> Result<PathBuf, String> {
    let built = || project().join("target/debug").join(format!("countersign{}", env::consts::EXE_SUFFIX));
    let path = env::var_os("COUNTERSIGN_PROGRAM").map_or_else(built, PathBuf::from);
    if path.is_file() { Ok(path) } else { Err("no program: run cargo build -p countersign-cli in the project".to_owned()) }
}

/// Everything that a swap needs. It ends with the test.
pub struct Stage {
    pub anvil: Arc<Anvil>,
    pub litecoin: Arc<Litecoin>,
    pub book: Arc<Book>,
    pub service: Server,
    pub home: PathBuf,
    program: PathBuf,
    from: &'static str,
    to: &'static str,
    /// Where the program is told to have the destination's asset paid.
    pub payee: String,
    /// The endpoints that the program is given. Of several, more than half must agree.
    pub evm_endpoints: Vec<String>,
    pub litecoin_endpoints: Vec<String>,
    /// Whether nobody mines on Litecoin but the test.
    pub miner_is_idle: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
}

impl Stage {
    /// Starts everything for a swap between two assets; `None`, with the reason on stderr, where an engine is missing. `run` has
    /// looked for the engines before, so there it is a failure.
    pub fn open(name: &str, from: &'static str, to: &'static str, conduct: Conduct) -> Option<Self> {
        let is_required = env::var_os("COUNTERSIGN_PROGRAM").is_some();
        match Self::new(name, from, to, conduct) {
            Ok(stage) => Some(stage),
            Err(reason) if is_required => panic!("{reason}"),
            Err(reason) => {
                eprintln!("skipped: {reason}");
                None
            }
        }
    }

    fn new(name: &str, from: &'static str, to: &'static str, conduct: Conduct) -> Result<Self, String> {
        let program = program()?;
        let (anvil, litecoin) = (Arc::new(Anvil::start()?), Arc::new(Litecoin::start()?));
        let home = env::temp_dir().join(format!("countersign-swap-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).unwrap();
        litecoin.pay(&litecoin::address_of(LITECOIN_KEY), COINS);
        litecoin.mine(1);
        let payee = if to == LITECOIN { litecoin.new_address() } else { anvil::USER.to_owned() };
        let book = Arc::new(Book::new(&anvil, conduct));
        let service = book.serve();
        let is_over = Arc::new(AtomicBool::new(false));
        let mut stage = Self {
            evm_endpoints: vec![anvil.url()],
            litecoin_endpoints: vec![litecoin.url()],
            anvil,
            litecoin,
            book,
            service,
            home,
            program,
            from,
            to,
            payee,
            miner_is_idle: Arc::default(),
            is_over,
            workers: Vec::new(),
        };
        stage.write("registry.json", &stage.book.registry.to_string());
        // The honest orders have no warning.
        stage.write("policy.json", "{}");
        stage.write("evm.key", anvil::USER_KEY);
        stage.write("litecoin.key", LITECOIN_KEY);
        stage.employ_miner();
        stage.employ_solver();
        Ok(stage)
    }

    /// Mines whatever waits on Litecoin, and then as many blocks as the program's default rule wants.
    fn employ_miner(&mut self) {
        let (litecoin, is_over, is_idle) = (Arc::clone(&self.litecoin), Arc::clone(&self.is_over), Arc::clone(&self.miner_is_idle));
        let mut due = 0;
        self.workers.push(thread::spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                if !litecoin.mempool().is_empty() {
                    due = 6;
                }
                if due > 0 && !is_idle.load(Ordering::SeqCst) {
                    litecoin.mine(1);
                    due -= 1;
                }
                sleep(Duration::from_millis(150));
            }
        }));
    }

    fn employ_solver(&mut self) {
        let (anvil, litecoin, book) = (Arc::clone(&self.anvil), Arc::clone(&self.litecoin), Arc::clone(&self.book));
        let is_over = Arc::clone(&self.is_over);
        self.workers.push(thread::spawn(move || {
            let solver = Solver { anvil: &anvil, litecoin: &litecoin, book: &book };
            while !is_over.load(Ordering::SeqCst) {
                solver.step();
                sleep(Duration::from_millis(150));
            }
        }));
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.home.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> String {
        self.home.join(name).to_str().unwrap().to_owned()
    }

    /// Starts the program with the registry, the keys and the endpoints.
    pub fn start(&self, arguments: &[&str]) -> Run {
        let (own, other) = if self.from == LITECOIN { ("litecoin.key", "evm.key") } else { ("evm.key", "litecoin.key") };
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--registry", &self.path("registry.json"), "--key-file", &self.path(own)]);
        if self.to != LITECOIN {
            command.args(["--redeem-key-file", &self.path(other)]);
        }
        match (self.evm_endpoints.as_slice(), self.litecoin_endpoints.as_slice()) {
            ([evm], [litecoin]) => command.args([format!("--node=localnet={evm}"), format!("--node=litecoin_regtest={litecoin}")]),
            (evm, litecoin) => {
                let nodes = json!({ "localnet": evm, "litecoin_regtest": litecoin });
                command.args(["--nodes", &self.write("nodes.json", &nodes.to_string())])
            }
        };
        let log = self.home.join("log");
        let output = File::create(&log).unwrap();
        let child = command
            .env_clear()
            .envs([("HOME", self.home.as_os_str()), ("COUNTERSIGN_APP_ID", "test".as_ref())])
            .env("COUNTERSIGN_BASE_URL", self.service.base())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Run { child, log }
    }

    /// Starts the swap of the stage.
    pub fn swap(&self, more: &[&str]) -> Run {
        let owner = if self.from == LITECOIN { litecoin::address_of(LITECOIN_KEY) } else { anvil::USER.to_owned() };
        let (paid, least) = (amount(self.from).to_string(), amount(self.to).to_string());
        let policy = self.path("policy.json");
        let mut arguments = vec!["swap", "--from", self.from, "--from-owner", &owner, "--amount", &paid, "--to", self.to];
        arguments.extend(["--to-owner", &self.payee, "--at-least", &least, "--yes", "--policy", &policy, "--poll", "300"]);
        arguments.extend(more);
        self.start(&arguments)
    }

    /// Goes on with the swap in a new run.
    pub fn resume(&self, id: &str) -> Run {
        self.start(&["swap", "--resume", id, "--yes", "--policy", &self.path("policy.json"), "--poll", "300"])
    }

    /// The order once it has come as far as is asked.
    pub fn wait_for(&self, what: &str, is_there: impl Fn(&Order) -> bool) -> Order {
        poll(what, || self.book.order().filter(&is_there))
    }

    /// Makes as many blocks on the source chain as its timelock has, and some.
    pub fn outlast_source(&self) {
        let order = self.book.order().unwrap();
        let blocks = order.record["source_swap"]["timelock"].as_u64().unwrap() + 2;
        if self.from == LITECOIN { self.litecoin.mine(blocks) } else { self.anvil.mine(blocks) }
    }

    /// What the user holds of the source's asset, in base units.
    pub fn holds(&self) -> u128 {
        match self.from {
            LITECOIN => self.litecoin.held(&litecoin::address_of(LITECOIN_KEY)).into(),
            USDC => self.anvil.tokens(anvil::USER),
            _ => self.anvil.coins(anvil::USER),
        }
    }

    /// How much of the source's asset fees may have taken.
    pub fn fees(&self) -> u128 {
        match self.from {
            LITECOIN => FEES.into(),
            USDC => 0,
            _ => 10_000_000_000_000_000,
        }
    }

    /// Requires that no secret went to the service, and that its relayer was not asked for anything.
    pub fn service_learnt_nothing(&self, secret: Option<&[u8; 32]>) {
        let secret = secret.map(hex::encode);
        for seen in self.service.seen() {
            assert_ne!(seen.method, "PATCH", "{}", seen.target);
            if let Some(secret) = &secret {
                assert!(!seen.text().to_lowercase().contains(secret) && !seen.target.to_lowercase().contains(secret), "{}", seen.target);
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            // A worker that panicked has failed the test already: what it waited for never came.
            let _ = worker.join();
        }
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.home);
        }
    }
}

/// The program under way. Stopped on drop.
pub struct Run {
    child: Child,
    log: PathBuf,
}

impl Run {
    /// Everything that it has printed.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// Waits for the end, and requires an exit code.
    pub fn ends_with(self, code: i32) -> String {
        let (actual, said) = self.ends();
        assert_eq!(actual, Some(code), "{said}");
        said
    }

    /// Waits for the end. Returns the exit code, and what was printed.
    pub fn ends(mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), self.said());
            }
            assert!(start.elapsed() < DEADLINE, "the program does not end:\n{}", self.said());
            sleep(Duration::from_millis(50));
        }
    }

    /// Requires that it is still under way.
    pub fn goes_on(&mut self) {
        assert!(self.child.try_wait().unwrap().is_none(), "the program has ended:\n{}", self.said());
    }

    /// Ends it as a lost machine would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
