//! The sandbox's program, and requests for orders.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The running program. It stops when this is dropped.
pub struct Program {
    child: Child,
    /// What it printed about itself.
    pub about: Value,
}

impl Program {
    /// Starts the program, and waits until it prints its addresses.
    pub fn start(program: &Path, directory: &Path, chains: &str, flags: &[&str]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(["--port", "0", "--json", "--chains", chains, "--dir"])
            .arg(directory)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut line)?;
        }
        let about = serde_json::from_str(&line).map_err(io::Error::other);
        if about.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        Ok(Self { child, about: about? })
    }

    /// Returns the service's URL.
    pub fn service(&self) -> &str {
        self.about["service"].as_str().unwrap_or_default()
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process without giving it a chance to write anything.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Returns the resident memory in KiB. Only Linux reports it.
    pub fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns an order request for the user with a number.
pub fn request(number: u64) -> Value {
    let bytes = |what: &str| hex::encode(Sha256::digest(format!("{what} {number}")));
    json!({
        "source": {"asset": "base:usdc", "owner": format!("0x{}", &bytes("from")[..40]), "amount": "4000000"},
        "destination": {"asset": "arbitrum:eth", "owner": format!("0x{}", &bytes("to")[..40]), "amount": "900000000000000"},
        "nonce": format!("{number}"), "secret_hash": bytes("hash"),
    })
}
