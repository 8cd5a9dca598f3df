//! `countersign swap`: the whole way of an order, each step kept before the next begins.

use std::io::{BufRead, IsTerminal, Write};

use countersign::core::{U256, text};
use countersign::json::{self, Node};
use countersign::{AnySigned, AnyUnsigned, AnyVerified, Family, Summary, Warnings};
use countersign_client::{Client, Error, Flow, Hold, Http, OrderId, QuoteAmount, QuoteRequest, Secret, State, StreamExt, Swap};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::input::{self, Failure, KeyArgs, TrustArgs, WalletArgs, usage};
use crate::order::{AskArgs, PaceArgs, SecretArgs, created};
use crate::quote::{asset, units};
use crate::{OK, REFUSED, service, show, sign, state};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign swap --registry registry.json --from ethereum:usdc --from-owner 0x... --amount 5000000 \\
      --to bitcoin:btc --to-owner bc1... --wallet wallet.json --key-file key.txt
  countersign swap ... --dry-run                      # creates and verifies the order, signs nothing
  countersign swap --registry registry.json --resume 4784d9c7...   # goes on where an earlier run ended

Without a gasless way the signed transactions are printed: broadcast them, then say --resume. Ends with 0 when the swap
is complete or its transactions are printed, 1 when it was refused, refunded or expired.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    service: service::ServiceArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    state: state::StateArgs,
    #[command(flatten)]
    ask: AskArgs,
    #[command(flatten)]
    secret: SecretArgs,
    #[command(flatten)]
    wallet: WalletArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// Takes the offer of this solver; without it the one that pays most.
    #[arg(long, value_name = "ID")]
    solver: Option<String>,
    /// Refuses offers that pay less; needed with --yes, where nobody reads the offer.
    #[arg(long, value_name = "UNITS")]
    at_least: Option<String>,
    /// Goes on with an order that an earlier run created.
    #[arg(long, value_name = "ORDER", conflicts_with_all = ["from", "amount", "to"])]
    resume: Option<String>,
    /// Creates and verifies the order, shows what would be signed, and ends.
    #[arg(long)]
    dry_run: bool,
    /// Signs without asking.
    #[arg(long)]
    yes: bool,
    /// Submits the gasless message although an approval must be on chain first, because it is.
    #[arg(long)]
    approved: bool,
    #[command(flatten)]
    pace: PaceArgs,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let state = args.state.open()?;
    let client = args.service.client()?;
    let flow = Flow::new(&client, &registry, &policy);
    service::run(async {
        let swap = match &args.resume {
            Some(id) => state.load(&OrderId::parse(id)?)?,
            None => begin(args, &client, &flow, &state).await?,
        };
        show::progress(&format!("order {}", swap.id()));
        // An order that is paid already is followed, not paid again. The record says so, not a file of this program.
        let record = flow.follow(&swap).await?;
        if !record.source_swap.is_funded() {
            let verified = flow.verify(&swap).await?;
            match pay(args, &flow, &swap, verified, json).await? {
                Paid::Ended => return Ok(OK),
                Paid::Submitted => {}
            }
        }
        let secret = state.secret(&record.source_swap.secret_hash)?;
        watch(args, &flow, &swap, secret.as_ref(), json).await
    })
}

/// Route, quote, secret, order: everything up to something that can be verified.
async fn begin(args: &Args, client: &Client<Http>, flow: &Flow<'_, Http>, state: &state::State) -> Result<Swap, Failure> {
    if args.yes && args.at_least.is_none() && !args.dry_run {
        return Err(usage("with --yes nobody reads the offer: say --at-least"));
    }
    let need = |value: &Option<String>, name: &str| value.clone().ok_or_else(|| usage(format_args!("{name} is missing")));
    let (from, to) = (asset(&need(&args.ask.from, "--from")?)?, asset(&need(&args.ask.to, "--to")?)?);
    match client.policy().await {
        Ok(routes) => {
            let verdict = routes.value.judge(&from, &to);
            if !verdict.allowed {
                return Err(Failure::Held { code: "route_not_allowed", message: format!("{from} -> {to}: {}", verdict.because) });
            }
        }
        // The service judges again when the order is created; its rules only save a useless order.
        Err(error) => show::progress(&format!("routes unknown: {error}")),
    }
    let mut request = QuoteRequest::new(from, to, QuoteAmount::From(units(&need(&args.ask.amount, "--amount")?)?));
    request.slippage = args.ask.slippage;
    let quotes = client.quote(&request).await?.value;
    let offered = quotes.iter().filter(|quote| args.solver.as_ref().is_none_or(|solver| quote.solver_id.eq_ignore_ascii_case(solver)));
    let best = offered.max_by_key(|quote| quote.destination.amount);
    let best = best.ok_or_else(|| Failure::Held { code: "no_quote", message: "nobody offers this swap".to_owned() })?;
    let least = args.at_least.as_deref().map(units).transpose()?.unwrap_or(U256::ZERO);
    if best.destination.amount < least {
        let message = format!("the best offer pays {} base units, not {least}", best.destination.amount);
        return Err(Failure::Held { code: "quote_too_low", message });
    }
    show::progress(&format!("offer of {}: {} base units", text::escape_untrusted(&best.solver_id), best.destination.amount));
    let mut order = args.ask.request(best.destination.amount)?;
    order.solver_id = Some(best.solver_id.clone()).filter(|_| args.solver.is_some());
    order.secret_hash = args.secret.take(state)?.map(|secret| secret.hash());
    let swap = flow.create(&order).await?;
    state.save(&swap)?;
    Ok(swap)
}

enum Paid {
    /// Nothing more is to be done in this run.
    Ended,
    /// The service has the owner's signature.
    Submitted,
}

/// Shows, asks, signs, and submits or prints.
async fn pay(args: &Args, flow: &Flow<'_, Http>, swap: &Swap, verified: AnyVerified, json: bool) -> Result<Paid, Failure> {
    let wallet = match &args.wallet.wallet {
        Some(path) => input::read(path)?,
        // A Bitcoin-like deposit is an address first of all: it can be paid from anywhere.
        None if verified.family() == Family::Bitcoin => Zeroizing::new(b"{}".to_vec()),
        None => {
            created(&verified, json)?;
            show::progress(if args.dry_run { "dry run: nothing was signed" } else { "name --wallet and a key to sign" });
            return Ok(Paid::Ended);
        }
    };
    let unsigned = prepare(verified, &wallet)?;
    let key = key(args, &wallet)?;
    let Some(key) = key.filter(|_| !args.dry_run) else {
        unsigned_out(&unsigned, json)?;
        show::progress(if args.dry_run { "dry run: nothing was signed" } else { "no key: sign or pay outside, then say --resume" });
        return Ok(Paid::Ended);
    };
    if !args.yes {
        show::summary_on_stderr(&unsigned.summary(), unsigned.warnings())?;
        confirm()?;
    }
    let signed = unsigned.sign(&key)?;
    let approval_first = has_approval(&signed)? && !args.approved;
    if signed.submission().is_none() || approval_first {
        sign::print(None, &signed, json)?;
        show::progress(&format!(
            "broadcast {}, then: countersign swap --resume {}{}",
            if approval_first && signed.submission().is_some() { "the approval" } else { "these" },
            swap.id(),
            if approval_first && signed.submission().is_some() { " --approved" } else { "" }
        ));
        return Ok(Paid::Ended);
    }
    let answer = flow.submit(swap, &signed).await?;
    show::progress(&format!("submitted: {}", answer.value.as_deref().map(text::escape_untrusted).unwrap_or_default()));
    Ok(Paid::Submitted)
}

fn prepare(verified: AnyVerified, wallet: &[u8]) -> Result<AnyUnsigned, Failure> {
    let value = json::parse(wallet).map_err(|refusal| refusal.under("/wallet"))?;
    Ok(verified.prepare_json(Node::root(&value, "/wallet"))?)
}

/// The key from where it was named, else from the wallet's context.
fn key(args: &Args, wallet: &[u8]) -> Result<Option<Zeroizing<String>>, Failure> {
    if let Some(key) = args.key.read()? {
        return Ok(Some(key));
    }
    let value = json::parse(wallet).map_err(|refusal| refusal.under("/wallet"))?;
    let node = Node::root(&value, "/wallet");
    Ok(node.object()?.get("secret_key").map(|key| key.secret().map(|key| Zeroizing::new(key.to_owned()))).transpose()?)
}

/// Whether a token approval goes before the deposit: the gasless message is worth nothing until it is on chain.
fn has_approval(signed: &AnySigned) -> Result<bool, Failure> {
    let artefacts = serde_json::to_value(signed).map_err(usage)?;
    Ok(artefacts.get("approval").is_some_and(|approval| !approval.is_null()))
}

#[derive(Serialize)]
struct Unsigned<'a> {
    ok: bool,
    family: &'a str,
    order_id: &'a str,
    artefacts: &'a AnyUnsigned,
    summary: &'a Summary,
    warnings: &'a Warnings,
}

fn unsigned_out(order: &AnyUnsigned, json: bool) -> Result<(), Failure> {
    let summary = order.summary();
    if json {
        let (family, order_id, warnings) = (order.family().name(), order.order_id(), order.warnings());
        return Ok(show::json(&Unsigned { ok: true, family, order_id, artefacts: order, summary: &summary, warnings })?);
    }
    show::summary(&summary, None)?;
    show::warnings(order.warnings())?;
    Ok(show::artefacts(&serde_json::to_value(order).map_err(usage)?, "")?)
}

fn confirm() -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(usage("nobody is there to be asked: read the summary, then say --yes"));
    }
    write!(std::io::stderr(), "sign this? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if answer.trim().eq_ignore_ascii_case("y") {
        return Ok(());
    }
    Err(Failure::Held { code: "not_confirmed", message: "nothing was signed".to_owned() })
}

/// Follows the order; redeems with the secret as soon as that is safe.
async fn watch(args: &Args, flow: &Flow<'_, Http>, swap: &Swap, secret: Option<&Secret>, json: bool) -> Result<u8, Failure> {
    let pace = args.pace.pace();
    let mut redeem = secret.map_or(Redeem::Never, |_| Redeem::WhenSafe);
    let mut news = std::pin::pin!(flow.watch(swap, pace));
    loop {
        // A redemption that may not have reached the service is tried again although nothing changes.
        let item = match redeem {
            Redeem::Again => tokio::time::timeout(pace.slowest, news.next()).await,
            _ => Ok(news.next().await),
        };
        let ready = match item {
            Err(_) => true,
            Ok(None) => return Ok(REFUSED),
            Ok(Some(Err(error))) if error.is_transient() => {
                show::progress(&format!("{error}; trying on"));
                continue;
            }
            Ok(Some(Err(error))) => return Err(error.into()),
            Ok(Some(Ok(progress))) => {
                let status = progress.status;
                show::progress(&format!("{}: {}", show::time(show::now()), status.state.name()));
                if status.complete {
                    if json {
                        show::json(&status)?;
                    } else {
                        show::field("complete", &text::escape_untrusted(&progress.record.destination_swap.redeem_tx_hash))?;
                    }
                    return Ok(OK);
                }
                if status.is_final() || status.state == State::Expired {
                    let (code, message) = ("swap_not_complete", format!("the order ended: {}", status.state.name()));
                    return Err(Failure::Held { code, message });
                }
                status.state == State::AwaitingRedeem
            }
        };
        if let Some(secret) = secret.filter(|_| ready && redeem != Redeem::Never) {
            redeem = try_redeem(flow, swap, secret).await?;
        }
    }
}

/// When the secret is given away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Redeem {
    /// It is, or there is none.
    Never,
    /// When something changes and it is safe.
    WhenSafe,
    /// Once more after a while: the record is asked first whether it was redeemed.
    Again,
}

async fn try_redeem(flow: &Flow<'_, Http>, swap: &Swap, secret: &Secret) -> Result<Redeem, Failure> {
    match flow.redeem(swap, secret).await {
        Ok(answer) => {
            show::progress(&format!("redeeming: {}", answer.value.as_deref().map(text::escape_untrusted).unwrap_or_default()));
            Ok(Redeem::Never)
        }
        Err(Error::Held(Hold::Redeemed)) => Ok(Redeem::Never),
        Err(Error::Held(hold)) if hold.may_end() => {
            show::progress(&format!("the secret waits: {hold}"));
            Ok(Redeem::WhenSafe)
        }
        // Whether the service has the secret now is not known, and it would be worse if nobody redeemed.
        Err(error) if error.is_transient() || error.may_have_acted() => {
            show::progress(&format!("redeeming: {error}; asking again"));
            Ok(Redeem::Again)
        }
        Err(error) => Err(error.into()),
    }
}
