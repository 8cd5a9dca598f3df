//! The `countersign` program: verifies, explains and signs what a cross-chain swap service asks a wallet to sign.

mod accepted;
mod affiliate;
mod amount;
mod ask;
mod attach;
mod backup;
mod batch;
mod bump;
mod clear_signing;
mod command;
mod config;
mod consent;
mod contracts;
mod demo;
mod drive;
mod exit;
mod explain;
mod failure;
mod files;
mod finish;
mod follow;
mod help;
mod id;
mod init;
mod input;
mod interrupt;
mod key;
mod lines;
mod listed;
mod lists;
mod matches;
mod nodes;
mod order;
mod orders;
mod own;
mod page;
mod phrase;
mod preflight;
mod prepare;
mod prompt;
mod proxy;
mod psbt;
mod quote;
mod receipt;
mod recover;
mod registry;
mod restore;
mod sent;
mod service;
mod session;
mod show;
mod sign;
mod state;
mod stated;
mod status;
mod swap;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::exit::{OK, USAGE};
use crate::failure::{Failure, usage};
use crate::session::Session;

/// Verifies, explains and signs what a cross-chain swap service asks a wallet to sign.
///
/// The program rebuilds the service's payloads from the order's own terms, and refuses the response if they differ. Nothing can be signed
/// before that.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    /// Prints JSON in place of text.
    #[arg(long, global = true)]
    json: bool,
    /// Tunnels all https connections through a proxy, to the service and to chains. By default HTTPS_PROXY or ALL_PROXY names it, in
    /// capital or small letters. Hosts in NO_PROXY are reached directly.
    #[arg(long, value_name = "URL", global = true, hide = true)]
    proxy: Option<String>,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  countersign demo
  countersign explain --registry registry.json --request request.json --response response.json
  countersign sign --registry registry.json --case case.json --key-file key.txt
  countersign batch --registry registry.json --threads 2 < cases.jsonl > results.jsonl
  countersign orders

Defaults come from the configuration file ~/.config/countersign/config.json (%APPDATA%\\countersign\\config.json on Windows), with the
members base_url, app_id or app_id_file, registry, policy, state, nodes, key_file, redeem_key_file, key_files (by chain), and owners (addresses by chain).
Arguments and environment variables take precedence.

Exit codes: 0 done, 1 refused, 2 usage error or a file that cannot be read or written, 3 network or service failure (try again), 4 you have
to do something first, 5 the funds are lost, 130 you stopped the program.";

#[derive(Subcommand)]
enum Command {
    /// Writes the configuration file, after checking each value: service, registry, nodes and key file. Asks for what is not given.
    #[command(after_help = init::EXAMPLES)]
    Init(Box<init::Args>),
    /// Shows what signing a response would lock, where and until when, or why the response is refused; or a stored order, and how it ended.
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::Args),
    /// Verifies the documents of a receipt again, and compares the verdict with the one that was written down.
    #[command(after_help = receipt::EXAMPLES)]
    CheckReceipt(receipt::Args),
    /// Prints payloads and digests for an external signer.
    #[command(after_help = prepare::EXAMPLES)]
    Prepare(prepare::Args),
    /// Verifies an order and signs it with a local key from a file, an environment variable or stdin.
    #[command(after_help = sign::EXAMPLES)]
    Sign(sign::Args),
    /// Verifies and attaches the signatures of an external signer.
    #[command(after_help = attach::EXAMPLES)]
    Attach(attach::Args),
    /// Proves that a transaction which a wallet sent is one of the order's, or shows where it differs.
    #[command(after_help = matches::EXAMPLES)]
    Match(matches::Args),
    /// Redeems or refunds from an order record alone, without the service.
    #[command(after_help = recover::examples())]
    Recover(Box<recover::Args>),
    /// Verifies, prepares and signs one case per line, in order and in bounded memory, for programs in other languages.
    #[command(after_help = batch::EXAMPLES)]
    Batch(batch::Args),
    /// Shows, pins and compares registries, which list the contracts and parties that the wallet trusts.
    #[command(subcommand)]
    Registry(registry::Command),
    /// Writes ERC-7730 descriptors of the pinned EVM contracts, with which wallets show calls and messages in words.
    #[command(after_help = clear_signing::EXAMPLES)]
    ClearSigning(clear_signing::Args),
    /// Fetches quotes for an amount.
    #[command(after_help = quote::EXAMPLES)]
    Quote(quote::Args),
    /// Creates, shows, lists and follows orders.
    #[command(subcommand)]
    Order(order::Command),
    /// Lists the orders in the state directory, with their stage and the next command. Does not use the network.
    #[command(after_help = orders::EXAMPLES)]
    Orders(orders::Args),
    /// Writes the whole state directory to one encrypted file.
    #[command(after_help = backup::EXAMPLES)]
    Backup(backup::Args),
    /// Restores the state directory from a backup or from the rescue phrase.
    #[command(after_help = restore::EXAMPLES)]
    Restore(Box<restore::Args>),
    /// Shows the rescue phrase of the state directory.
    #[command(after_help = phrase::EXAMPLES)]
    Phrase(phrase::Args),
    /// Runs a whole swap: quote, create, verify, sign, submit, follow, redeem.
    #[command(after_help = swap::EXAMPLES)]
    Swap(Box<swap::Args>),
    /// Raises the fee of a Bitcoin or Litecoin payment that is not in a block.
    #[command(after_help = bump::EXAMPLES)]
    Bump(Box<bump::Args>),
    /// Refunds an order, with your own transaction or through the service's relayer.
    #[command(after_help = finish::REFUND_EXAMPLES)]
    Refund(Box<finish::RefundArgs>),
    /// Redeems an order once the solver has paid, with your own transaction or through the service's relayer.
    #[command(after_help = finish::REDEEM_EXAMPLES)]
    Redeem(Box<finish::RedeemArgs>),
    /// Computes, signs and submits an early refund of an order that you paid on a Bitcoin-like chain.
    #[command(after_help = finish::INSTANT_EXAMPLES)]
    InstantRefund(finish::InstantRefundArgs),
    /// Checks the endpoints of chains.
    #[command(subcommand)]
    Node(nodes::Command),
    /// Shows the balance of an address in an asset, read from the asset's chain.
    #[command(after_help = nodes::BALANCE_EXAMPLES)]
    Balance(nodes::BalanceArgs),
    /// Lists the earnings of an affiliate.
    Earnings(affiliate::EarningsArgs),
    /// Prepares or signs the calls that pay out an affiliate's earnings.
    Claim(affiliate::ClaimArgs),
    /// Lists the service's chains.
    Chains(lists::Args),
    /// Lists the service's assets.
    Assets(lists::Args),
    /// Lists the liquidity of the solvers.
    Liquidity(lists::Args),
    /// Shows the fees.
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
    /// Verifies and signs an example order of each family, and refuses a tampered copy of each.
    Demo(demo::Args),
    /// Prints a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

fn main() -> ExitCode {
    let mut command = help::shaped(without_empty(Cli::command()));
    let parsed = command.try_get_matches_from_mut(std::env::args_os()).and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return misused(&error),
    };
    let session = &Session::new(cli.json, cli.proxy, command, &matches);
    let answer = match cli.command {
        Command::Init(args) => init::run(&args, session),
        Command::Phrase(args) => phrase::run(&args, session),
        Command::Explain(args) => explain::run(&args, session),
        Command::CheckReceipt(args) => receipt::run(&args, session),
        Command::Prepare(args) => prepare::run(&args, session),
        Command::Sign(args) => sign::run(&args, session),
        Command::Attach(args) => attach::run(&args, session),
        Command::Match(args) => matches::run(&args, session),
        // These end an order that is paid.
        Command::Recover(args) => recover::run(&args, session).map_err(Failure::after_paying),
        Command::Batch(args) => batch::command(&args),
        Command::Registry(command) => registry::run(&command, session),
        Command::ClearSigning(args) => clear_signing::run(&args, session),
        Command::Quote(args) => quote::run(&args, session),
        Command::Order(command) => order::run(&command, session),
        Command::Orders(args) => orders::run(&args, session),
        Command::Backup(args) => backup::run(&args, session),
        Command::Restore(args) => restore::run(&args, session),
        Command::Swap(args) => swap::run(&args, session),
        Command::Bump(args) => bump::run(&args, session),
        Command::Refund(args) => finish::refund(&args, session).map_err(Failure::after_paying),
        Command::Redeem(args) => finish::redeem(&args, session).map_err(Failure::after_paying),
        Command::InstantRefund(args) => finish::instant_refund(&args, session).map_err(Failure::after_paying),
        Command::Node(command) => nodes::run(&command, session),
        Command::Balance(args) => nodes::balance(&args, session),
        Command::Earnings(args) => affiliate::earnings(&args, session),
        Command::Claim(args) => affiliate::claim(&args, session),
        Command::Chains(args) => lists::chains(&args, session),
        Command::Assets(args) => lists::assets(&args, session),
        Command::Liquidity(args) => lists::liquidity(&args, session),
        Command::Fee(args) => lists::fee(&args, session),
        Command::Volume(args) => lists::volume(&args, session),
        Command::Schemas(args) => lists::schemas(&args, session),
        Command::Policy(command) => lists::policy(&command, session),
        Command::Health(args) => lists::health(&args, session),
        Command::Demo(args) => demo::run(&args, session),
        Command::Completions { shell } => completions(shell, session),
    };
    ExitCode::from(answer.unwrap_or_else(|failure| failure.report(session.json)))
}

/// Ignores environment variables that are empty, as if they were not set.
fn without_empty(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    command
        .mut_args(|argument| if argument.get_env().is_some_and(is_empty) { argument.env(None::<&'static str>) } else { argument })
        .mut_subcommands(without_empty)
}

/// Reports arguments that cannot be parsed. Help and version are not errors.
fn misused(error: &clap::Error) -> ExitCode {
    let is_error = error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_error && std::env::args_os().skip(1).take_while(|argument| argument != "--").any(|argument| argument == OsStr::new("--json")) {
        let text = error.render().to_string();
        return ExitCode::from(usage(text.trim_start_matches("error: ").trim_end()).report(true));
    }
    // Best effort: a closed pipe is not an error here.
    let text = error.render().to_string();
    let _ = if text.lines().all(|line| show::safe_layout(line) == line) {
        error.print()
    } else {
        text.lines().try_for_each(|line| writeln!(anstream::stderr(), "{}", show::safe_layout(line)))
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
}

#[derive(serde::Serialize)]
struct Completions {
    ok: bool,
    shell: String,
    script: String,
}

fn completions(shell: Shell, session: &Session) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "countersign", &mut script);
    if session.json {
        show::json(&Completions { ok: true, shell: shell.to_string(), script: String::from_utf8_lossy(&script).into_owned() })?;
    } else {
        io::stdout().write_all(&script)?;
    }
    Ok(OK)
}
