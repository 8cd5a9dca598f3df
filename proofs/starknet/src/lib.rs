#![doc = include_str!("../README.md")]

use std::env;
use std::io::Error;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The version of the engine that `build-devnet` builds.
const VERSION: &str = "0.10.1";
/// The name of the program.
const PROGRAM: &str = "starknet-devnet";

/// The compiled contracts of `contracts/src/lib.cairo`, as the JSON of their classes.
pub mod contracts {
    /// The contract with the interface of November 2025.
    pub const NOVEMBER_2025: &str = include_str!("../contracts/out/November2025.json");
    /// The contract with the interface of February 2025.
    pub const FEBRUARY_2025: &str = include_str!("../contracts/out/February2025.json");
    /// The contract with the interface that client 3.1.3 names.
    pub const CLIENT_3_1_3: &str = include_str!("../contracts/out/Client313.json");
}

/// A running starknet-devnet. Dropping it stops the process.
#[derive(Debug)]
pub struct Devnet {
    child: Child,
    port: u16,
}

impl Devnet {
    /// Finds the engine: in `STARKNET_DEVNET`, in `PATH`, or in the cache of `build-devnet`.
    ///
    /// # Errors
    ///
    /// Fails with instructions for installing it.
    pub fn installed() -> Result<PathBuf, String> {
        if let Some(path) = env::var_os("STARKNET_DEVNET").map(PathBuf::from) {
            return if path.is_file() { Ok(path) } else { Err("STARKNET_DEVNET is not the path of a file".to_owned()) };
        }
        let cache = || env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| env::home_dir().map(|home| home.join(".cache")));
        let cache = env::var_os("COUNTERSIGN_CACHE").map(PathBuf::from).or_else(|| cache().map(|cache| cache.join("countersign")));
        let built = cache.map(|cache| cache.join(format!("{PROGRAM}-{VERSION}/bin")));
        let folders: Vec<_> = env::var_os("PATH").iter().flat_map(env::split_paths).chain(built).collect();
        let found = folders.into_iter().map(|folder| folder.join(PROGRAM)).find(|program| program.is_file());
        found.ok_or_else(|| format!("no {PROGRAM}: run `proofs/starknet/build-devnet`"))
    }

    /// Starts a chain on a free port of this machine. It keeps the state of every block. `blocks_on` states when it
    /// makes a block: `transaction` or `demand`.
    ///
    /// # Errors
    ///
    /// Fails with the system's error.
    pub fn start(engine: &Path, seed: u32, blocks_on: &str) -> Result<Self, Error> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(engine)
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--seed", &seed.to_string(), "--accounts", "4"])
            .args(["--chain-id", "TESTNET", "--state-archive-capacity", "full", "--block-generation-on", blocks_on])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, port })
    }

    /// Returns the URL of its JSON-RPC interface.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Devnet {
    fn drop(&mut self) {
        // If the process cannot be stopped, nothing can be done here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
