//! The `countersign` program: explains, prepares and signs what a swap service asks a wallet to sign.

mod accepted;
mod affiliate;
mod amount;
mod attach;
mod backup;
mod batch;
mod config;
mod contracts;
mod demo;
mod drive;
mod explain;
mod files;
mod finish;
mod input;
mod lists;
mod nodes;
mod order;
mod orders;
mod prepare;
mod prompt;
mod quote;
mod recover;
mod registry;
mod restore;
mod service;
mod show;
mod sign;
mod state;
mod status;
mod swap;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::input::Failure;

/// Every line was ok, the order was accepted, or the swap is complete.
const OK: u8 = 0;
/// An order was refused, or a registry differs.
const REFUSED: u8 = 1;
/// A usage error, or a file that cannot be read or written.
const USAGE: u8 = 2;
/// The network or the service failed: the same command may succeed later.
const NETWORK: u8 = 3;
/// The user has to do something first: broadcast, wait, decide.
const NEEDS_USER: u8 = 4;
/// The funds are gone.
const LOST: u8 = 5;

/// Verifies, explains and signs what a cross-chain swap service asks a wallet to sign.
///
/// The service's response is decoded, rebuilt from the order's own terms, and refused where the two differ. Only then are there
/// bytes to sign.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    /// Prints JSON instead of text for people.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  countersign demo
  countersign explain --registry registry.json --request request.json --response response.json
  countersign sign --registry registry.json --case case.json --key-file key.txt
  countersign batch --registry registry.json --threads 2 < cases.jsonl > results.jsonl
  countersign orders

Defaults come from a configuration file, ~/.config/countersign/config.json (on Windows %APPDATA%\\countersign\\config.json): base_url,
app_id or app_id_file, registry, policy, state, nodes, key_file, redeem_key_file, and owners by chain. Arguments and environment variables come first.

Exit codes: 0 done, 1 refused, 2 usage error or a file that cannot be read, 3 network or service (try again), 4 you have to do something
first, 5 the funds are lost.";

#[derive(Subcommand)]
enum Command {
    /// Shows what a response would lock, where and until when, or why it is refused.
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::Args),
    /// Prints payloads and digests for an external signer.
    #[command(after_help = prepare::EXAMPLES)]
    Prepare(prepare::Args),
    /// Signs with a local key from a file, an environment variable or stdin.
    #[command(after_help = sign::EXAMPLES)]
    Sign(sign::Args),
    /// Proves and attaches signatures made by an external signer.
    #[command(after_help = attach::EXAMPLES)]
    Attach(attach::Args),
    /// Redeems or refunds from an order record alone, without the service.
    #[command(after_help = recover::EXAMPLES)]
    Recover(Box<recover::Args>),
    /// Verifies, prepares and signs one case per line, in order and in bounded memory: the contract for other languages.
    #[command(after_help = batch::EXAMPLES)]
    Batch(batch::Args),
    /// Shows, pins and compares what the wallet trusts.
    #[command(subcommand)]
    Registry(registry::Command),
    /// Fetches quotes for an amount.
    #[command(after_help = quote::EXAMPLES)]
    Quote(quote::Args),
    /// Creates, shows, lists and follows orders.
    #[command(subcommand)]
    Order(order::Command),
    /// Lists the orders that are kept here: how far each is, and what to do next. No network.
    #[command(after_help = orders::EXAMPLES)]
    Orders(orders::Args),
    /// Writes everything that is kept into one encrypted file.
    #[command(after_help = backup::EXAMPLES)]
    Backup(backup::Args),
    /// Restores a backup, or finds the orders of a rescue phrase again.
    #[command(after_help = restore::EXAMPLES)]
    Restore(Box<restore::Args>),
    /// Runs a whole swap: quote, create, verify, sign, submit, follow, redeem.
    #[command(after_help = swap::EXAMPLES)]
    Swap(Box<swap::Args>),
    /// Asks the service to refund an order, or refunds it without the service.
    #[command(after_help = finish::REFUND_EXAMPLES)]
    Refund(Box<finish::RefundArgs>),
    /// Gives the secret to the service, if the destination is verified and funded, and leaves enough time; or redeems without
    /// the service.
    #[command(after_help = finish::REDEEM_EXAMPLES)]
    Redeem(Box<finish::RedeemArgs>),
    /// Computes, signs and submits an early refund of a Bitcoin-like order.
    InstantRefund(finish::InstantRefundArgs),
    /// Asks the endpoints of chains.
    #[command(subcommand)]
    Node(nodes::Command),
    /// Shows what an address holds of an asset, as its chain says.
    #[command(after_help = nodes::BALANCE_EXAMPLES)]
    Balance(nodes::BalanceArgs),
    /// Lists what an affiliate has earned.
    Earnings(service::ServiceArgs),
    /// Prepares or signs the calls that pay out what an affiliate has earned.
    Claim(affiliate::ClaimArgs),
    /// Lists the service's chains.
    Chains(lists::Args),
    /// Lists the service's assets.
    Assets(lists::Args),
    /// Lists what solvers hold.
    Liquidity(lists::Args),
    /// Shows fees.
    Fee(lists::Args),
    /// Shows the traded volume.
    Volume(lists::Args),
    /// Lists contract schemas, or shows one.
    Schemas(lists::SchemaArgs),
    /// Checks which routes the service accepts.
    #[command(subcommand)]
    Policy(lists::PolicyCommand),
    /// Checks the service's health.
    Health(service::ServiceArgs),
    /// Verifies and signs an order of each family with worthless keys, and refuses a tampered copy of each.
    Demo(demo::Args),
    /// Prints completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    show::set_json(cli.json);
    let answer = match cli.command {
        Command::Explain(args) => explain::run(&args, cli.json),
        Command::Prepare(args) => prepare::run(&args, cli.json),
        Command::Sign(args) => sign::run(&args, cli.json),
        Command::Attach(args) => attach::run(&args, cli.json),
        Command::Recover(args) => recover::run(&args, cli.json),
        Command::Batch(args) => batch::command(&args),
        Command::Registry(command) => registry::run(&command, cli.json),
        Command::Quote(args) => quote::run(&args, cli.json),
        Command::Order(command) => order::run(&command, cli.json),
        Command::Orders(args) => orders::run(&args, cli.json),
        Command::Backup(args) => backup::run(&args, cli.json),
        Command::Restore(args) => restore::run(&args, cli.json),
        Command::Swap(args) => swap::run(&args, cli.json),
        Command::Refund(args) => finish::refund(&args, cli.json),
        Command::Redeem(args) => finish::redeem(&args, cli.json),
        Command::InstantRefund(args) => finish::instant_refund(&args, cli.json),
        Command::Node(command) => nodes::run(&command, cli.json),
        Command::Balance(args) => nodes::balance(&args, cli.json),
        Command::Earnings(args) => affiliate::earnings(&args, cli.json),
        Command::Claim(args) => affiliate::claim(&args, cli.json),
        Command::Chains(args) => lists::chains(&args, cli.json),
        Command::Assets(args) => lists::assets(&args, cli.json),
        Command::Liquidity(args) => lists::liquidity(&args, cli.json),
        Command::Fee(args) => lists::fee(&args, cli.json),
        Command::Volume(args) => lists::volume(&args, cli.json),
        Command::Schemas(args) => lists::schemas(&args, cli.json),
        Command::Policy(command) => lists::policy(&command, cli.json),
        Command::Health(args) => lists::health(&args, cli.json),
        Command::Demo(args) => demo::run(&args, cli.json),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "countersign", &mut io::stdout());
            Ok(OK)
        }
    };
    ExitCode::from(answer.unwrap_or_else(|failure| report(&failure, cli.json)))
}

/// Prints refusals to stdout, because they are data, and every other message to stderr; with `--json` all of them to stdout, in
/// one shape.
fn report(failure: &Failure, json: bool) -> u8 {
    let held = |code: &str, message: &str| if json { show::json(&show::Held::new(code, message)) } else { show::field(code, message) };
    let error = |code: &str, message: &str| {
        if json {
            return held(code, message);
        }
        let _ = writeln!(anstream::stderr(), "countersign: {message}");
        Ok(())
    };
    let (written, code) = match failure {
        Failure::Refused(refusal) if json => (show::json(&show::Refused::new(refusal)), REFUSED),
        Failure::RefusedCase(id, refusal) if json => (show::json(&show::Refused::case(id.as_deref(), refusal)), REFUSED),
        Failure::Refused(refusal) | Failure::RefusedCase(_, refusal) => (show::refusal(refusal), REFUSED),
        Failure::Held { code, message } => (held(code, message), REFUSED),
        Failure::NeedsUser { code, message } => (held(code, message), NEEDS_USER),
        Failure::Lost(message) => (held("lost", message), LOST),
        Failure::Network { code, message } => (error(code, message), NETWORK),
        Failure::Usage(message) => (error("usage", message), USAGE),
        Failure::Closed => return USAGE,
    };
    if written.is_ok() { code } else { USAGE }
}
