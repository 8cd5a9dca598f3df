//! The sandbox's command line.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use countersign_sandbox::accounts;
use countersign_sandbox::chains::Nodes;
use countersign_sandbox::sandbox::{Config, Sandbox};
use countersign_sandbox::world::Settings;
use countersign_sandbox::{lies, recording, tour, trial};

/// The swap service and its chains on this machine, to try whole swaps against. All keys are public, all coins worthless.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Tells a lie from the beginning. Can be given several times; the page switches them too.
    #[arg(long, value_name = "NAME")]
    lie: Vec<String>,
    /// Prints the lies and ends.
    #[arg(long)]
    list_lies: bool,
    /// Where orders and the files for the program are kept.
    #[arg(long, value_name = "DIR", default_value = "target/sandbox")]
    dir: PathBuf,
    /// The port of the service; the chains have those that follow. 0 takes free ones.
    #[arg(long, default_value_t = 7700)]
    port: u16,
    /// Only these chains, separated by commas. By default all main networks, of which countersign itself refuses `bitcoin`, whose headers
    /// have no work; `local` has the test networks of local clients.
    #[arg(long, value_delimiter = ',', value_name = "CHAINS")]
    chains: Vec<String>,
    #[command(flatten)]
    nodes: NodeArgs,
    #[command(flatten)]
    settings: Settings,
    /// Makes blocks only on demand.
    #[arg(long)]
    manual: bool,
    /// What is random follows from it.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Listens on all addresses. Anybody in your network can then turn the sandbox, and take its service for a real one.
    #[arg(long)]
    listen_on_all_addresses: bool,
    /// Prints JSON in place of text.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct NodeArgs {
    /// Runs this anvil for each EVM chain in the place of the own engine.
    #[arg(long, value_name = "PROGRAM")]
    anvil: Option<PathBuf>,
    /// Runs this litecoind in the place of the own engine, for the chain `litecoin_regtest`, which `--chains` has to name; a tour and lies swap on it.
    #[arg(long, value_name = "PROGRAM")]
    litecoind: Option<PathBuf>,
}

impl From<NodeArgs> for Nodes {
    fn from(args: NodeArgs) -> Self {
        Self { anvil: args.anvil, litecoind: args.litecoind }
    }
}

#[derive(Subcommand)]
enum Command {
    /// Runs a swap of each family in both directions, and then a dozen lies, by the program.
    Tour {
        #[command(flatten)]
        nodes: NodeArgs,
        /// Writes a recording too.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Runs the program against every lie, and writes the table of the outcomes.
    Lies {
        /// The file to write.
        #[arg(long, value_name = "FILE", required_unless_present = "names", conflicts_with_all = ["names", "anvil", "litecoind"])]
        out: Option<PathBuf>,
        /// Only these lies, with every line that was said.
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        nodes: NodeArgs,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut out = std::io::stdout().lock();
    if args.list_lies {
        for lie in lies::all() {
            let _ = writeln!(out, "{:<34} {:<9} {}", lie.name, lie.liar.to_string(), lie.about);
        }
        return ExitCode::SUCCESS;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.to_string()),
    };
    match args.command {
        None => runtime.block_on(run(args, &mut out)),
        Some(command) => match runtime.block_on(tried(command, &mut out)) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => failed("a swap has not ended as it must"),
            Err(reason) => failed(&reason),
        },
    }
}

fn failed(reason: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {reason}");
    ExitCode::from(2)
}

async fn run(args: Args, out: &mut impl Write) -> ExitCode {
    let config = Config {
        address: if args.listen_on_all_addresses { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::LOCALHOST) },
        port: args.port,
        directory: Some(args.dir.clone()),
        chains: args.chains.clone(),
        nodes: args.nodes.into(),
        settings: args.settings,
        is_manual: args.manual,
        seed: args.seed,
        time: None,
        lies: args.lie.clone(),
    };
    let sandbox = match Sandbox::start(config).await {
        Ok(sandbox) => sandbox,
        Err(error) => return failed(&error.to_string()),
    };
    let home = args.dir.canonicalize().unwrap_or(args.dir);
    if greet(&sandbox, &home, args.json, out).is_err() {
        return failed("stdout is closed");
    }
    if interrupted().await.is_err() {
        sandbox.wait().await;
    }
    ExitCode::SUCCESS
}

/// Completes when the process is told to stop. Without this handler it would end at once, and the nodes that it
/// started would keep running.
async fn interrupted() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminated.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Runs the swaps of a command. Returns whether all of them ended as required.
async fn tried(command: Command, out: &mut impl Write) -> Result<bool, String> {
    let program = trial::program()?;
    let directory = std::env::temp_dir().join(format!("countersign-sandbox-{}", std::process::id()));
    let is_right = match command {
        Command::Tour { svg, nodes } => {
            let (nodes, mut is_right, mut recorded) = (nodes.into(), true, Vec::new());
            for trials in [tour::routes(), tour::told()] {
                tour::run(&program, &directory, &nodes, trials, |trial, outcome| {
                    is_right &= tour::is_right(trial, outcome);
                    tour::show(trial, outcome, &mut recorded)?;
                    tour::show(trial, outcome, out)
                })
                .await?;
            }
            if let Some(file) = svg {
                let text = recording::svg(&String::from_utf8_lossy(&recorded));
                std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
            }
            is_right
        }
        Command::Lies { out: Some(file), .. } => {
            let (table, is_right) = tour::table(&program, &directory, out).await?;
            std::fs::write(&file, table).map_err(|error| format!("{}: {error}", file.display()))?;
            is_right
        }
        Command::Lies { out: None, names, nodes } => {
            let mut is_right = true;
            tour::run(&program, &directory, &nodes.into(), tour::named(&names)?, |trial, outcome| {
                is_right &= tour::is_right(trial, outcome);
                tour::show(trial, outcome, out)?;
                outcome.program.iter().try_for_each(|line| writeln!(out, "  | {line}"))
            })
            .await?;
            is_right
        }
    };
    let _ = std::fs::remove_dir_all(&directory);
    Ok(is_right)
}

/// Returns the remark on a chain in the greeting, which is empty for most chains.
fn note(chain: &str) -> &'static str {
    match chain {
        "bitcoin" => "  for other clients: countersign refuses these headers, which lack the work of the main network",
        chain if chain.starts_with("solana") => "  subscriptions on the next port",
        _ => "",
    }
}

/// Prints the addresses of all parts, and what to type next.
fn greet(sandbox: &Sandbox, home: &std::path::Path, is_json: bool, out: &mut impl Write) -> std::io::Result<()> {
    let key = accounts::key(accounts::USER);
    let config = home.join("config.json");
    let address = |name: &str| sandbox.world.chain(name).map(|chain| chain.engine().address_of(&key)).unwrap_or_default();
    if is_json {
        let chains: Vec<_> =
            sandbox.chains().iter().map(|(name, url)| serde_json::json!({ "chain": name, "url": url, "account": address(name) })).collect();
        let value = serde_json::json!({ "service": sandbox.service(), "chains": chains, "key": hex::encode(key), "config": config });
        writeln!(out, "{value}")?;
        return out.flush();
    }
    writeln!(out, "The sandbox: everything here is worthless, and its keys are public.\n")?;
    writeln!(out, "{:<20} {:<24} page, and the service under /v2", "service", sandbox.service())?;
    for (name, url) in sandbox.chains() {
        writeln!(out, "{name:<20} {url:<24} {}{}", address(name), note(name))?;
    }
    writeln!(out, "\nThe accounts on the right are funded; the key of all of them is {}\n", hex::encode(key))?;
    writeln!(out, "Now, in a second terminal:\n")?;
    writeln!(out, "  export COUNTERSIGN_CONFIG={}", config.display())?;
    writeln!(out, "  countersign swap --from base:usdc --amount '1.5 usdc' --to litecoin:ltc\n")?;
    writeln!(
        out,
        "In a checkout, `cargo run -- swap` is the same as `countersign swap`. Ctrl-C ends the sandbox; its orders stay in {}.",
        home.display()
    )?;
    out.flush()
}
