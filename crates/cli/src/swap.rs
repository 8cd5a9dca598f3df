//! `countersign swap`: the order lifecycle. Each step is stored before the next begins.

use std::sync::Arc;

use countersign::json::{self, Node};
use countersign::wire::Quote;
use countersign::{AssetId, Registry, U256, text};
use countersign_client::driver::Sendable;
use countersign_client::{Flow, Http, OrderId, QuoteAmount, QuoteRequest};
use serde::Serialize;

use crate::accepted::Accepted;
use crate::amount::units;
use crate::contracts;
use crate::drive::{self, Program, Terminal, TrustFlags};
use crate::input::{Failure, KeyArgs, TrustArgs, WalletArgs, chain, configured_key, usage};
use crate::nodes::{EndingArgs, NodeArgs};
use crate::order::{AskArgs, PaceArgs, SecretArgs, need};
use crate::quote::asset;
use crate::{OK, service, show, state};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign swap --registry registry.json --from ethereum:usdc --from-owner 0x... --amount 5000000 \\
      --to bitcoin:btc --to-owner bc1... --wallet wallet.json --key-file key.txt
  countersign swap --from ethereum:usdc --amount '1.5 usdc' --to bitcoin:btc --wallet wallet.json   # the configuration file has the rest
  countersign swap --from base:usdc --amount '1.5 usdc' --to litecoin:ltc --key-file key.txt \\
      --node base=https://base.example --node litecoin=https://litecoin.example/api
  countersign swap ... --dry-run                      # only quotes and checks
  countersign swap --registry registry.json --resume 4784d9c7...   # continues where an earlier run ended

With endpoints of both chains (--node, --nodes) and a key, the program pays, checks the solver's payment, redeems and refunds by itself. It
then needs no wallet context, and a paid order does not need the service any more. Without endpoints, the signed transactions are printed
for you to broadcast unless the order is gasless, and the service's word about the destination does not release the secret: once you have
seen the solver's payment on chain, redeem with `countersign redeem --self`, or pass --trust-the-service to rely on the service's word.

Secrets, and your keys on Bitcoin-like chains, are derived from a rescue phrase that is generated on first use and shown once.

Exit codes: 0 the swap is complete, 1 it was refused, refunded or expired, 2 usage error or a file that cannot be read or written,
3 network or service failure (try again), 4 you have to do something first (the message says what), 5 the funds are lost.";

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
    /// Uses the quote of this solver. By default the quote that pays the most is used.
    #[arg(long, value_name = "ID")]
    solver: Option<String>,
    /// Refuses an order that pays less than this amount, even if the quote pays more: base units, or whole units with the symbol. Required
    /// with --yes, because nobody reads the order then.
    #[arg(long, value_name = "AMOUNT")]
    at_least: Option<String>,
    /// Continues an order that an earlier run created.
    #[arg(long, value_name = "ORDER", conflicts_with_all = ["from", "amount", "to"])]
    resume: Option<String>,
    /// Fetches quotes, checks everything that can be checked, and shows the request that would be sent. Creates no order. With --resume it
    /// shows what would be signed.
    #[arg(long)]
    dry_run: bool,
    /// Signs without asking. The summary and warnings are still printed. Nothing is signed if the policy does not accept a warning.
    #[arg(long)]
    yes: bool,
    /// Confirms that the token approval is on chain already, so that the gasless message can be submitted.
    #[arg(long)]
    approved: bool,
    /// Confirms that you have broadcast the printed transactions, or paid the deposit.
    #[arg(long, requires = "resume")]
    paid: bool,
    #[command(flatten)]
    relying: TrustFlags,
    #[command(flatten)]
    nodes: NodeArgs,
    #[command(flatten)]
    ending: EndingArgs,
    #[command(flatten)]
    pace: PaceArgs,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    if args.yes && args.at_least.is_none() && args.resume.is_none() && !args.dry_run {
        return Err(usage("--yes needs --at-least, because nobody reads the order"));
    }
    let flow = Flow::new(args.service.client()?, registry, policy);
    if args.dry_run {
        return service::run(async {
            match &args.resume {
                Some(id) => preview(args, &flow, &OrderId::parse(id)?, json).await,
                None => ask(args, &flow, json).await,
            }
        });
    }
    let state = args.state.open()?;
    // Read before an order is created, so that a file that cannot be read has no consequences.
    let (wallet, key) = (args.wallet.read()?, args.key.read()?);
    // Without a wallet context or a connection only a deposit address can be prepared, which another wallet pays.
    let nodes = Arc::new(args.nodes.connect(flow.registry())?);
    let configured_key = if wallet.is_some() || nodes.names().next().is_some() { configured_key()? } else { None };
    service::run(async {
        let id = match &args.resume {
            Some(id) => OrderId::parse(id)?,
            None => begin(args, &flow, &state).await?,
        };
        let kept = state.load(&id)?;
        let at_least = args.at_least(&kept.swap.request().destination.asset, flow.registry())?;
        show::progress(&format!("order {id}"));
        if let Some(path) = args.trust.registry_path()?
            && !kept.may_be_paid()
        {
            let request = kept.swap.request();
            contracts::check(&nodes, &path, flow.registry(), [&request.source, &request.destination], !args.yes).await?;
        }
        // Without the secret nobody could redeem, so nothing is paid.
        if kept.swap.request().secret_hash.is_some() && kept.own_secret().is_none() && !args.secret.is_for_others() {
            return Err(usage(drive::SECRET_MISSING));
        }
        let own = key.as_ref().or(configured_key.as_ref());
        let (refund, redeem) = args.ending.read(&kept, &state, flow.registry(), own)?;
        let owner = Terminal {
            nodes: Arc::clone(&nodes),
            speed: args.ending.speed(),
            refund,
            redeem,
            owner: kept.swap.request().source.owner.clone().unwrap_or_default(),
            wallet,
            key,
            configured_key,
            yes: args.yes,
            approved: args.approved,
            at_least,
            policy: flow.policy().clone(),
            json,
        };
        let trust = args.relying.trust();
        let is_elsewhere = args.secret.is_for_others();
        let driver: Program<_> =
            drive::driver(flow, &nodes, &state.store, owner, args.pace.pace(), trust).with_secret_elsewhere(is_elsewhere);
        // The approval of a self-funded order is broadcast together with its payment.
        let is_approved = args.approved && kept.is_gasless() && !kept.was_sent(Sendable::Funding);
        if args.paid || is_approved {
            driver.mark_on_chain(&id, Sendable::Funding)?;
        }
        drive::follow(&driver, &id, trust.is_some(), json).await
    })
}

impl Args {
    /// Returns the minimum to receive, in base units of `asset`; `None` without one.
    fn at_least(&self, asset: &AssetId, registry: &Registry) -> Result<Option<U256>, Failure> {
        self.at_least.as_deref().map(|text| units(text, asset, Some(registry))).transpose()
    }
}

/// Checks the route and returns the best quote. Every quote must be for the requested pair and amount.
async fn quote(args: &Args, flow: &Flow<Http>, at_least: Option<U256>) -> Result<Quote, Failure> {
    let (from, to) = (asset(need(&args.ask.from, "--from")?)?, args.ask.destination()?);
    let amount = units(need(&args.ask.amount, "--amount")?, &from, Some(flow.registry()))?;
    let client = flow.client();
    match client.policy().await {
        Ok(routes) => {
            let verdict = routes.value.check(&from, &to);
            if !verdict.allowed {
                return Err(Failure::Held { code: "route_not_allowed", message: format!("{from} -> {to}: {}", verdict.because) });
            }
        }
        // The service checks its rules again when the order is created. Checking them here only avoids a useless order.
        Err(error) => show::progress(&format!("routes unknown: {}", chain(&error))),
    }
    let mut request = QuoteRequest::new(from.clone(), to.clone(), QuoteAmount::From(amount));
    request.slippage = args.ask.slippage;
    let quotes = client.quote(&request).await.map_err(|error| Failure::from(error).with_advice("nothing was created; try again"))?.value;
    let is_asked = |quote: &Quote| quote.source.asset == from && quote.destination.asset == to && quote.source.amount == amount;
    if let Some(other) = quotes.iter().find(|quote| !is_asked(quote)) {
        let message = format!(
            "a quote is for {} {} to {}, not for {amount} {from} to {to}",
            other.source.amount, other.source.asset, other.destination.asset
        );
        return Err(Failure::Held { code: "quote_mismatch", message });
    }
    let offered = quotes.into_iter().filter(|quote| args.solver.as_ref().is_none_or(|solver| quote.solver_id.eq_ignore_ascii_case(solver)));
    let best = offered.max_by_key(|quote| quote.destination.amount);
    let best = best.ok_or_else(|| Failure::Held { code: "no_quote", message: "no solver offers this swap".to_owned() })?;
    let least = at_least.unwrap_or_default();
    if best.destination.amount < least {
        let message = format!("the best quote pays {} base units, less than {least}", best.destination.amount);
        return Err(Failure::Held { code: "quote_too_low", message });
    }
    show::progress(&format!("quote of {}: {} base units", text::escape_untrusted(&best.solver_id), best.destination.amount));
    Ok(best)
}

/// The request that would be sent.
#[derive(Serialize)]
struct Asked<'a> {
    ok: bool,
    request: &'a countersign::CreateOrder,
    solver_id: &'a str,
}

/// Fetches quotes and shows the request that would be sent.
async fn ask(args: &Args, flow: &Flow<Http>, json: bool) -> Result<u8, Failure> {
    let at_least = args.at_least(&args.ask.destination()?, flow.registry())?;
    let best = quote(args, flow, at_least).await?;
    let order = args.ask.request(best.destination.amount, flow.registry())?;
    for leg in [&order.source, &order.destination] {
        if flow.registry().asset(leg.asset.as_str()).is_none() {
            return Err(usage(format_args!("{} is not pinned", leg.asset)));
        }
    }
    if json {
        show::json(&Asked { ok: true, request: &order, solver_id: &best.solver_id })?;
    } else {
        show::field("pay", &format!("{} {}", order.source.amount, order.source.asset))?;
        show::field("receive", &format!("{} {}", order.destination.amount, order.destination.asset))?;
        show::field("solver", &text::escape_untrusted(&best.solver_id))?;
    }
    show::progress("dry run: no order was created and nothing was signed");
    Ok(OK)
}

/// Shows what would be signed for a stored order.
async fn preview(args: &Args, flow: &Flow<Http>, id: &OrderId, json: bool) -> Result<u8, Failure> {
    let kept = args.state.open()?.load(id)?;
    let verified = flow.verify(&kept.swap).await.map_err(|error| Failure::from(error).with_advice("nothing was signed; try again"))?.order;
    match drive::wallet_context(&verified, args.wallet.read()?) {
        Some(text) => {
            let wallet = json::parse(&text).map_err(|refusal| refusal.under("/wallet"))?;
            let order = countersign_batch::prepare(&verified, Node::root(&wallet, "/wallet"))?;
            Accepted::prepared(&order).print(json)?;
        }
        None => Accepted::verified(&verified).print(json)?,
    }
    show::progress("dry run: nothing was signed");
    Ok(OK)
}

/// Chooses a quote, creates the order and stores it.
async fn begin(args: &Args, flow: &Flow<Http>, state: &state::State) -> Result<OrderId, Failure> {
    let at_least = args.at_least(&args.ask.destination()?, flow.registry())?;
    let best = quote(args, flow, at_least).await?;
    let mut order = args.ask.request(best.destination.amount, flow.registry())?;
    order.solver_id = Some(best.solver_id.clone()).filter(|_| args.solver.is_some());
    let owned = args.secret.take(state, flow.registry(), &mut order)?;
    owned.create(flow, state, order, at_least).await
}
