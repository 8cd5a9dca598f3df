//! `countersign swap`: the order lifecycle. Each step is stored before the next begins.

use std::io::{BufRead, IsTerminal, Write};

use countersign::json::{self, Node};
use countersign::{Family, RequestId, U256, Unsigned, Verified, text};
use countersign_client::{Error, Flow, Hold, Http, OrderId, QuoteAmount, QuoteRequest, Secret, State, StoredSwap, StreamExt};
use zeroize::Zeroizing;

use crate::accepted::Accepted;
use crate::input::{self, Failure, KeyArgs, TrustArgs, WalletArgs, chain, usage};
use crate::order::{AskArgs, PaceArgs, SecretArgs, need};
use crate::quote::{asset, units};
use crate::{OK, REFUSED, service, show, state};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign swap --registry registry.json --from ethereum:usdc --from-owner 0x... --amount 5000000 \\
      --to bitcoin:btc --to-owner bc1... --wallet wallet.json --key-file key.txt
  countersign swap ... --dry-run                      # creates and verifies the order, signs nothing
  countersign swap --registry registry.json --resume 4784d9c7...   # continues where an earlier run ended

Without a gasless path the signed transactions are printed: broadcast them, then re-run with --resume. The exit code is 0 when
the swap is complete or its transactions are printed, 1 when it was refused, refunded or expired.";

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
    /// Takes the quote of this solver. By default the one that pays most.
    #[arg(long, value_name = "ID")]
    solver: Option<String>,
    /// Refuses quotes that pay less. Required with --yes, where nobody reads the quote.
    #[arg(long, value_name = "UNITS")]
    at_least: Option<String>,
    /// Continues an order that an earlier run created.
    #[arg(long, value_name = "ORDER", conflicts_with_all = ["from", "amount", "to"])]
    resume: Option<String>,
    /// Creates and verifies the order, shows what would be signed, and stops.
    #[arg(long)]
    dry_run: bool,
    /// Signs without asking.
    #[arg(long)]
    yes: bool,
    /// States that the token approval is already on chain, so that the gasless message can be submitted.
    #[arg(long)]
    approved: bool,
    #[command(flatten)]
    pace: PaceArgs,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let state = args.state.open()?;
    let flow = Flow::new(args.service.client()?, registry, policy);
    service::run(async {
        let swap = match &args.resume {
            Some(id) => state.load(&OrderId::parse(id)?)?,
            None => begin(args, &flow, &state).await?,
        };
        show::progress(&format!("order {}", swap.id()));
        // An order that is already paid is followed, not paid again. The record decides this, not a local file.
        let record = flow.follow(&swap).await?;
        // Nothing is paid while the secret that would redeem cannot be read.
        let secret = state.secret(&record.source_swap.secret_hash)?;
        if !record.source_swap.is_funded() {
            let verified = flow.verify(&swap).await?;
            match pay(args, &flow, &swap, &verified.order, json).await? {
                Paid::Ended => return Ok(OK),
                Paid::Submitted => {}
            }
        }
        watch(args, &flow, &swap, secret.as_ref(), json).await
    })
}

/// Checks the route, takes a quote, keeps the secret and creates the order.
async fn begin(args: &Args, flow: &Flow<Http>, state: &state::State) -> Result<StoredSwap, Failure> {
    if args.yes && args.at_least.is_none() && !args.dry_run {
        return Err(usage("with --yes nobody reads the quote: pass --at-least"));
    }
    let (from, to) = (asset(need(&args.ask.from, "--from")?)?, asset(need(&args.ask.to, "--to")?)?);
    let client = flow.client();
    match client.policy().await {
        Ok(routes) => {
            let verdict = routes.value.check(&from, &to);
            if !verdict.allowed {
                return Err(Failure::Held { code: "route_not_allowed", message: format!("{from} -> {to}: {}", verdict.because) });
            }
        }
        // The service checks again when the order is created: its rules only save a useless order.
        Err(error) => show::progress(&format!("routes unknown: {}", chain(&error))),
    }
    let mut request = QuoteRequest::new(from, to, QuoteAmount::From(units(need(&args.ask.amount, "--amount")?)?));
    request.slippage = args.ask.slippage;
    let quotes = client.quote(&request).await?.value;
    let offered = quotes.iter().filter(|quote| args.solver.as_ref().is_none_or(|solver| quote.solver_id.eq_ignore_ascii_case(solver)));
    let best = offered.max_by_key(|quote| quote.destination.amount);
    let best = best.ok_or_else(|| Failure::Held { code: "no_quote", message: "no solver offers this swap".to_owned() })?;
    let least = args.at_least.as_deref().map(units).transpose()?.unwrap_or(U256::ZERO);
    if best.destination.amount < least {
        let message = format!("the best quote pays {} base units, not {least}", best.destination.amount);
        return Err(Failure::Held { code: "quote_too_low", message });
    }
    show::progress(&format!("quote of {}: {} base units", text::escape_untrusted(&best.solver_id), best.destination.amount));
    let mut order = args.ask.request(best.destination.amount)?;
    order.solver_id = Some(best.solver_id.clone()).filter(|_| args.solver.is_some());
    order.secret_hash = args.secret.take(state)?.map(|secret| secret.hash());
    let swap = flow.create(order).await?;
    state.save(&swap)?;
    Ok(swap)
}

enum Paid {
    /// There is nothing more to do in this run.
    Ended,
    /// The service has the owner's signature.
    Submitted,
}

/// Shows the order, asks, signs, and submits or prints.
async fn pay(args: &Args, flow: &Flow<Http>, swap: &StoredSwap, verified: &Verified, json: bool) -> Result<Paid, Failure> {
    let wallet = match &args.wallet.wallet {
        Some(path) => input::read(path)?,
        // A Bitcoin-like deposit is an address that any wallet can pay.
        None if verified.family() == Family::Bitcoin => Zeroizing::new(b"{}".to_vec()),
        None => {
            Accepted::verified(verified).print(json)?;
            show::progress(if args.dry_run { "dry run: nothing was signed" } else { "to sign, pass --wallet and a key" });
            return Ok(Paid::Ended);
        }
    };
    let wallet = json::parse(&wallet).map_err(|refusal| refusal.under("/wallet"))?;
    let wallet = Node::root(&wallet, "/wallet");
    let mut order = countersign_batch::prepare(verified, wallet)?;
    let key = key(args, wallet)?;
    let Some(key) = key.filter(|_| !args.dry_run) else {
        Accepted::prepared(&order).print(json)?;
        show::progress(if args.dry_run {
            "dry run: nothing was signed"
        } else {
            "no key: sign or pay elsewhere, then re-run with --resume"
        });
        return Ok(Paid::Ended);
    };
    if !args.yes {
        show::summary_on_stderr(&order.summary(), order.warnings())?;
        confirm()?;
    }
    countersign_batch::sign(&mut order, &key)?;
    let has_gasless = order.missing().is_empty() && asks_for(&order, &[RequestId::TypedData, RequestId::Gasless]);
    // The gasless message fails until the token approval is on chain.
    let approval_first = asks_for(&order, &[RequestId::Approval]) && !args.approved;
    if !has_gasless || approval_first {
        Accepted::prepared(&order).print(json)?;
        let (what, more) = if has_gasless { ("the approval", " --approved") } else { ("these", "") };
        show::progress(&format!("broadcast {what}, then: countersign swap --resume {}{more}", swap.id()));
        return Ok(Paid::Ended);
    }
    let signed = order.finish().map_err(usage)?;
    let answer = flow.submit(swap, &signed).await?;
    show::progress(&format!("submitted: {}", answer.value.as_deref().map(text::escape_untrusted).unwrap_or_default()));
    Ok(Paid::Submitted)
}

/// Returns whether the order has one of these payloads.
fn asks_for(order: &Unsigned, ids: &[RequestId]) -> bool {
    order.requests().iter().any(|request| ids.contains(&request.id))
}

/// Reads the key from the source that was named, or else from the wallet context.
fn key(args: &Args, wallet: Node<'_, '_>) -> Result<Option<Zeroizing<String>>, Failure> {
    if let Some(key) = args.key.read()? {
        return Ok(Some(key));
    }
    Ok(wallet.object()?.get("secret_key").map(|key| key.secret().map(|key| Zeroizing::new(key.to_owned()))).transpose()?)
}

fn confirm() -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(usage("stdin is not a terminal: read the summary, then pass --yes to skip the prompt"));
    }
    write!(std::io::stderr(), "sign this? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if answer.trim().eq_ignore_ascii_case("y") {
        return Ok(());
    }
    Err(Failure::Held { code: "not_confirmed", message: "nothing was signed".to_owned() })
}

/// Follows the order, and redeems with the secret as soon as that is safe.
async fn watch(args: &Args, flow: &Flow<Http>, swap: &StoredSwap, secret: Option<&Secret>, json: bool) -> Result<u8, Failure> {
    let pace = args.pace.pace();
    let mut redeem = secret.map_or(Redeem::Never, |_| Redeem::WhenSafe);
    let mut changes = std::pin::pin!(flow.watch(swap, pace));
    loop {
        // A redemption that may not have reached the service is tried again even if nothing changes.
        let item = match redeem {
            Redeem::Again => tokio::time::timeout(pace.slowest, changes.next()).await,
            _ => Ok(changes.next().await),
        };
        let ready = match item {
            Err(_) => true,
            Ok(None) => return Ok(REFUSED),
            Ok(Some(Err(error))) if error.is_transient() => {
                show::progress(&format!("{}; retrying", chain(&error)));
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

/// When the secret is released.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Redeem {
    /// It was released, or there is none.
    Never,
    /// When something changes and it is safe.
    WhenSafe,
    /// Once more after a while. The record says first whether the order was redeemed.
    Again,
}

async fn try_redeem(flow: &Flow<Http>, swap: &StoredSwap, secret: &Secret) -> Result<Redeem, Failure> {
    match flow.redeem(swap, secret).await {
        Ok(answer) => {
            show::progress(&format!("redeeming: {}", answer.value.as_deref().map(text::escape_untrusted).unwrap_or_default()));
            Ok(Redeem::Never)
        }
        Err(Error::Held(Hold::Redeemed)) => Ok(Redeem::Never),
        Err(Error::Held(hold)) if hold.may_end() => {
            show::progress(&format!("the secret is not released yet: {hold}"));
            Ok(Redeem::WhenSafe)
        }
        // The service may already have the secret. If it does, somebody must redeem.
        Err(error) if error.is_transient() || error.may_have_acted() => {
            show::progress(&format!("redeeming: {}; retrying", chain(&error)));
            Ok(Redeem::Again)
        }
        Err(error) => Err(error.into()),
    }
}
