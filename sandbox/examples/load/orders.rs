//! Unpaid orders by the thousand: memory, and requests per second.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::wire::Connection;

/// The sandbox's program, which stops when this is dropped.
pub struct Program {
    child: Child,
    /// What it has printed about itself.
    pub about: Value,
}

impl Program {
    /// Starts it, and waits until it says where it listens.
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

    /// The service's URL.
    pub fn service(&self) -> &str {
        self.about["service"].as_str().unwrap_or_default()
    }

    /// Kills it as the machine would: without a chance to write anything.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Resident memory in KiB, as Linux states it.
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

/// A request for an order of the user with a number.
pub fn request(number: u64) -> Value {
    let bytes = |what: &str| hex::encode(Sha256::digest(format!("{what} {number}")));
    json!({
        "source": {"asset": "base:usdc", "owner": format!("0x{}", &bytes("from")[..40]), "amount": "4000000"},
        "destination": {"asset": "arbitrum:eth", "owner": format!("0x{}", &bytes("to")[..40]), "amount": "900000000000000"},
        "nonce": format!("{number}"), "secret_hash": bytes("hash"),
    })
}

/// Runs `call` with the numbers from `first` to `last` on so many connections, and returns how many a second are answered.
fn rate(
    url: &str,
    connections: u64,
    numbers: std::ops::Range<u64>,
    call: impl Fn(&mut Connection, u64) -> Result<(), String> + Sync,
) -> Result<f64, String> {
    let (next, failed) = (AtomicU64::new(numbers.start), Mutex::new(None));
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let work = || {
                    let mut connection = Connection::open(url).map_err(|error| error.to_string())?;
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= numbers.end {
                            return Ok(());
                        }
                        call(&mut connection, number)?;
                    }
                };
                if let Err(error) = work() {
                    failed.lock().map(|mut failed| *failed = Some(error)).unwrap_or_default();
                }
            });
        }
    });
    match failed.into_inner().ok().flatten() {
        Some(error) => Err(error),
        None => Ok((numbers.end - numbers.start) as f64 / start.elapsed().as_secs_f64()),
    }
}

/// Prints a row for each number of orders.
pub fn run(program: &Path, steps: &[u64]) -> Result<(), String> {
    let directory: PathBuf = std::env::temp_dir().join(format!("countersign-load-{}", std::process::id()));
    let started = || Program::start(program, &directory, "base,arbitrum", &[]).map_err(|error| error.to_string());
    let mut sandbox = started()?;
    let url = sandbox.service().to_owned();
    println!("| orders | resident MiB | file MiB | create/s, 1 at a time | 16 | read/s, 1 at a time | 16 | page of 10, ms | /volume, ms |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let create = |connection: &mut Connection, number: u64| connection.service("POST", "/v2/orders", &request(number)).map(|_| ());
    let (mut made, mut ids) = (0, Vec::new());
    for step in steps {
        // The last thousand are those that are measured.
        let measured = (step - made).min(1_000) / 2;
        let [filled, one_by_one] = [step - 2 * measured, step - measured];
        rate(&url, 16, made..filled, create)?;
        let single = rate(&url, 1, filled..one_by_one, create)?;
        let many = rate(&url, 16, one_by_one..*step, create)?;
        made = *step;
        let mut connection = Connection::open(&url).map_err(|error| error.to_string())?;
        // Orders from everywhere, not only the newest.
        ids.clear();
        for page in 0..20 {
            let path = format!("/v2/orders?per_page=10&page={}", 1 + page * step / 200);
            let list = connection.service("GET", &path, &Value::Null)?;
            ids.extend(list["data"].as_array().into_iter().flatten().filter_map(|order| order["order_id"].as_str().map(str::to_owned)));
        }
        let read = |connection: &mut Connection, number: u64| {
            let id = &ids[usize::try_from(number * 7_919).unwrap_or(0) % ids.len()];
            connection.service("GET", &format!("/v2/orders/{id}"), &Value::Null).map(|_| ())
        };
        let reads = [rate(&url, 1, 0..1_000, read)?, rate(&url, 16, 0..2_000, read)?];
        let mut took = |path: &str| {
            let start = Instant::now();
            connection.service("GET", path, &Value::Null).map(|_| start.elapsed().as_secs_f64() * 1_000.0)
        };
        let [page, volume] = [took("/v2/orders?status=pending")?, took("/v2/volume")?];
        let file = std::fs::metadata(directory.join("orders.redb")).map_or(0, |file| file.len()) >> 20;
        let memory = sandbox.memory().unwrap_or(0) >> 10;
        println!("| {step} | {memory} | {file} | {single:.0} | {many:.0} | {:.0} | {:.0} | {page:.1} | {volume:.1} |", reads[0], reads[1]);
    }
    sandbox.kill();
    let start = Instant::now();
    drop(started()?);
    println!("\nAfter a kill it starts again in {:.2} s.", start.elapsed().as_secs_f64());
    std::fs::remove_dir_all(&directory).map_err(|error| error.to_string())
}
