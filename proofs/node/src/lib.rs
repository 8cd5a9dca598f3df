#![doc = include_str!("../README.md")]

use std::fs;
use std::io::Error;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running anvil. Dropping it stops the process.
#[derive(Debug)]
pub struct Anvil {
    child: Child,
    port: u16,
}

impl Anvil {
    /// Finds the engine.
    ///
    /// # Errors
    ///
    /// Fails with instructions for installing it.
    pub fn installed() -> Result<PathBuf, String> {
        let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("engine/node_modules/@foundry-rs");
        let found =
            fs::read_dir(packages).into_iter().flatten().flatten().find_map(|package| {
                ["bin/anvil", "bin/anvil.exe"].iter().map(|name| package.path().join(name)).find(|path| path.is_file())
            });
        found.ok_or_else(|| "no anvil: run `npm ci --prefix proofs/node/engine`".to_owned())
    }

    /// Starts a chain on a free port of this machine.
    ///
    /// # Errors
    ///
    /// Fails with the system's error.
    pub fn start(engine: &Path, chain_id: u64) -> Result<Self, Error> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(engine)
            .args(["--port", &port.to_string(), "--chain-id", &chain_id.to_string(), "--silent"])
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

impl Drop for Anvil {
    fn drop(&mut self) {
        // If the process cannot be stopped, nothing can be done here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
