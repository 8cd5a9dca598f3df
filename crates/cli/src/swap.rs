//! `countersign swap`: the order lifecycle. Each step is stored before the next begins.

use std::sync::Arc;

use countersign::json::{self, Cursor};
use countersign::wire::{BasisPoints, Quote};
use countersign::{AssetId, CreateOrder, Registry, U256, text};
use countersign_client::driver::{Chains as _, Delivery, OrderState, Outcome, Purpose};
use countersign_client::{Flow, Http, OrderId, QuoteError, QuoteWish};
use countersign_node::{Ends, Nodes, SettlementKey};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::accepted::Accepted;
use crate::amount::{self, units};
use crate::ask::{RequestArgs, SecretArgs, need};
use crate::consent::QuotedFee;
use crate::contracts;
use crate::drive::{self, CliDriver, TerminalOwner, TrustFlags};
use crate::exit::OK;
use crate::failure::{Failure, chain, usage};
use crate::input::{TrustArgs, WalletArgs};
use crate::key::{GivenKey, KeyArgs, configured_key};
use crate::nodes::{EndingArgs, NodeArgs, check_names};
use crate::order::PaceArgs;
use crate::preflight::{self, Problems};
use crate::quote::asset;
use crate::session::Session;
use crate::{files, follow, listed, service, show, state};

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

Secrets, and your keys on Bitcoin-like chains, are derived from a rescue phrase that is generated on first use;
`countersign phrase` shows it.

Exit codes: 0 the swap is complete, 1 it was refused, refunded or expired, 2 usage error or a file that cannot be read or written,
3 network or service failure (try again), 4 you have to do something first (the message says what), 5 the funds are lost, 130 you stopped
the program (the message says how to continue).";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten, next_help_heading = "The swap")]
    ask: RequestArgs,
    #[command(flatten, next_help_heading = "The swap")]
    choice: ChoiceArgs,
    #[command(flatten, next_help_heading = "How to run")]
    mode: ModeArgs,
    #[command(flatten, next_help_heading = "Keys and secrets")]
    wallet: WalletArgs,
    #[command(flatten, next_help_heading = "Keys and secrets")]
    key: KeyArgs,
    #[command(flatten, next_help_heading = "Keys and secrets")]
    secret: SecretArgs,
    #[command(flatten, next_help_heading = "Chains")]
    nodes: NodeArgs,
    #[command(flatten, next_help_heading = "Chains")]
    ending: EndingArgs,
    #[command(flatten, next_help_heading = "Trust")]
    trust: TrustArgs,
    #[command(flatten, next_help_heading = "Trust")]
    relying: TrustFlags,
    #[command(flatten, next_help_heading = "Service and state")]
    service: service::ServiceArgs,
    #[command(flatten, next_help_heading = "Service and state")]
    state: state::StateArgs,
    #[command(flatten, next_help_heading = "Service and state")]
    pace: PaceArgs,
}

/// Which offer is taken.
#[derive(clap::Args)]
struct ChoiceArgs {
    /// Uses the quote of this solver. By default the quote that pays the most is used.
    #[arg(long, value_name = "ID")]
    solver: Option<String>,
    /// Refuses an order that pays less than this amount, even if the quote pays more: base units, or whole units with the symbol. Required
    /// with --yes, because nobody reads the order then.
    #[arg(long, value_name = "AMOUNT")]
    at_least: Option<String>,
}

/// How the command runs.
#[derive(clap::Args)]
struct ModeArgs {
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
    /// Shows the whole order before the question: every id, hash, contract and limit.
    #[arg(long)]
    full: bool,
    /// Confirms that the token approval is on chain already, so that the gasless message can be submitted.
    #[arg(long)]
    approved: bool,
    /// Pays with the account's own transactions, which cost gas, although the order offers a gasless message: for an account whose code
    /// refuses the message. Needs a key, and endpoints of the source chain.
    #[arg(long, conflicts_with_all = ["wallet", "approved"])]
    own_transactions: bool,
    /// Confirms that you have broadcast the printed transactions, or paid the deposit.
    #[arg(long, requires = "resume")]
    paid: bool,
}

/// What was given, after the checks.
struct Ready {
    flow: Flow<Http>,
    nodes: Arc<Nodes<Http>>,
    wallet: Option<Zeroizing<Vec<u8>>>,
    key: Option<GivenKey>,
    configured_key: Option<GivenKey>,
    at_least: Option<U256>,
    /// The account that will send the redemption.
    redeemer: Option<String>,
}

/// Checks what was given, before the service hears of the swap, and reports every problem at once.
fn check(args: &Args, session: &Session) -> Result<Ready, Failure> {
    let (ModeArgs { resume, dry_run, yes, .. }, mut problems) = (&args.mode, Problems::default());
    if *yes && args.choice.at_least.is_none() && resume.is_none() && !dry_run {
        problems.add("--yes needs --at-least, because nobody reads the order");
    }
    let trust = problems.take(args.trust.read());
    let client = problems.take(args.service.client(session));
    let registry = trust.as_ref().map(|(registry, _)| registry);
    let wallet = problems.take(args.wallet.read()).flatten();
    let key = problems.take(args.key.read(session)).flatten();
    let state = problems.take(args.state.open_existing()).flatten();
    let mut is_signed = false;
    let (mut resumed, mut pins) = (None, None);
    let request = match resume {
        // An order that exists was checked when it was created. Its keys may be others now.
        Some(id) => match (problems.take(args.state.id(id)), &state) {
            // Nothing that was meant for the payment may stand in the way of an order that may be paid.
            (Some(id), Some(state)) => {
                let kept = problems.take(state.load(&id));
                resumed = kept.as_ref().map(|kept| kept.swap.request().clone());
                pins = kept.as_ref().filter(|kept| !kept.is_to_be_paid()).and_then(|kept| kept.pins.clone());
                let kept = kept.filter(OrderState::is_to_be_paid);
                is_signed = kept.as_ref().is_some_and(|kept| kept.signed(Purpose::Funding).is_some());
                kept.map(|kept| kept.swap.request().clone())
            }
            (Some(id), None) => {
                problems.add(format!("order {id} is not in the state directory: check --state"));
                None
            }
            (None, _) => None,
        },
        None => {
            problems.take(args.secret.given(state.as_ref(), session));
            args.ask.check(&mut problems, registry)
        }
    };
    // The chains of an order that may be paid are those of its own pins, also if one of them is not listed any more.
    let pinned = pins.as_ref().map(|pins| &pins.registry).or(registry);
    let nodes = pinned.and_then(|registry| problems.take(args.nodes.connect(registry, session)).map(Arc::new));
    // Without a wallet context or a connection only a deposit address can be prepared, which another wallet pays.
    let has_nodes = nodes.as_ref().is_some_and(|nodes| nodes.names().next().is_some());
    let order = resumed.as_ref().or(request.as_ref());
    let redeem_key = problems.take(args.ending.redeem_key(order.map(|order| order.destination.asset.chain()), session)).flatten();
    let configured_key = if wallet.is_some() || has_nodes {
        problems.take(configured_key(order.map(|order| order.source.asset.chain()), session)).flatten()
    } else {
        None
    };
    let (mut at_least, mut account) = (None, None);
    let has_relayer = args.relying.trust().is_some();
    if let (Some(request), Some(registry), Some(nodes)) = (&request, registry, &nodes) {
        if let Some((_, policy)) = trust.as_ref().filter(|_| !args.mode.paid) {
            problems.take(policy.check_names(registry).map_err(Failure::from));
        }
        at_least = problems.take(args.at_least(&request.destination.asset, registry)).flatten();
        let source = request.source.asset.chain();
        let family = registry.family(source).ok();
        let in_wallet = wallet.as_ref().zip(family);
        let in_wallet = in_wallet.and_then(|(text, family)| preflight::check_wallet(&mut problems, args.wallet.path(), text, family));
        if let Some(doubt) = args.wallet.path().filter(|_| in_wallet.is_some()).and_then(files::open_to_others) {
            session.warn(&doubt);
        }
        // The key that signs, in the order of precedence.
        let signer = [&key, &in_wallet, &configured_key].into_iter().find_map(Option::as_ref);
        let signs = signer.is_some() && (wallet.is_some() || nodes.has(source));
        if let Some(signer) = signer.filter(|_| signs) {
            preflight::check_payer(&mut problems, signer, &request.source, registry, wallet.is_none());
        }
        if let Some(key) = &redeem_key {
            preflight::check_sender(&mut problems, key, &request.destination, registry);
        }
        // With --resume, a dry run only shows what would be signed.
        let is_shown = *dry_run && resume.is_some();
        preflight::check_consent(&mut problems, *yes, signs && !is_signed && !is_shown);
        if resume.is_none() {
            let chains = [source, request.destination.asset.chain()];
            problems.take(args.nodes.path().and_then(|path| check_names(nodes, registry, path.as_deref())));
            // The key that redeems, as `EndingArgs::read` finds it.
            let own = signer.filter(|_| registry.family(chains[1]).ok() == family);
            let redeems = redeem_key.as_ref().or(own);
            let redeemer = redeems.zip(registry.family(chains[1]).ok());
            let redeemer =
                redeemer.and_then(|(key, family)| SettlementKey::new(key.parse(family).ok()?, request.destination.owner.clone()));
            account = redeemer.map(|redeemer| redeemer.account);
            service::run(session, async {
                preflight::check_nodes(&mut problems, nodes, registry, &chains).await;
                if problems.is_empty() {
                    let policy = trust.as_ref().map(|(_, policy)| policy.clone()).unwrap_or_default();
                    let ends = Ends::of_request(&request.source, &request.destination, registry).redeemed_by(account.as_deref());
                    preflight::check_preconditions(&mut problems, nodes, ends.with_relayer(has_relayer), &policy, session).await;
                }
                Ok(())
            })?;
        }
    }
    problems.end()?;
    match (trust, client, nodes) {
        (Some((registry, policy)), Some(client), Some(nodes)) => {
            Ok(Ready { flow: Flow::new(client, registry, policy), nodes, wallet, key, configured_key, at_least, redeemer: account })
        }
        // Not reached: what is missing is a problem.
        _ => Err(usage("the swap is incomplete")),
    }
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let Ready { flow, nodes, wallet, key, configured_key, at_least, redeemer } = check(args, session)?;
    let mode = &args.mode;
    if mode.dry_run {
        return service::run(session, async {
            match &mode.resume {
                Some(id) => preview(args, &flow, wallet, &args.state.id(id)?, session).await,
                None => ask(args, &flow, &nodes, (at_least, redeemer.as_deref()), session).await,
            }
        });
    }
    let state = args.state.open()?;
    service::run(session, async {
        let (id, quoted) = match &mode.resume {
            Some(id) => (args.state.id(id)?, None),
            None => begin(args, &flow, &state, at_least, session).await.map(|(id, quoted)| (id, Some(quoted)))?,
        };
        let kept = state.load(&id)?;
        session.advise(format!("the order exists, and every step is stored; continue with: {}", session.commands.resume(&id)));
        session.progress(&format!("order {id}"));
        if kept.is_to_be_paid() && !mode.paid {
            let request = kept.swap.request();
            let legs = [&request.source, &request.destination];
            contracts::check(&nodes, &state.store, flow.registry(), legs, session).await?;
            // A new order was checked when it was created. A copy of the state directory may have made another one since.
            if mode.resume.is_some() {
                listed::check_unlisted(flow.client(), &state, &kept, session).await?;
            }
        }
        // Without the secret nobody could redeem, so nothing is paid.
        if kept.swap.request().secret_hash.is_some() && kept.own_secret().is_none() && !args.secret.is_for_others() {
            return Err(usage(follow::SECRET_MISSING));
        }
        let own = key.as_ref().or(configured_key.as_ref());
        let (registry, _) = kept.pins_or(flow.registry(), flow.policy());
        let (refund, redeem) = args.ending.read(&kept, &state, registry, own, session)?;
        let owner = TerminalOwner {
            session,
            nodes: Arc::clone(&nodes),
            store: Arc::clone(&state.store),
            speed: args.ending.speed(),
            refund,
            redeem,
            owner: kept.swap.request().source.owner.clone().unwrap_or_default(),
            wallet,
            key,
            configured_key,
            yes: mode.yes,
            full: mode.full,
            registry: flow.registry().clone(),
            quoted,
            secret_elsewhere: args.secret.is_for_others(),
            approved: mode.approved,
            own_transactions: mode.own_transactions,
            at_least,
            policy: flow.policy().clone(),
            has_relayer: args.relying.trust().is_some(),
        };
        let trust = args.relying.trust();
        let driver: CliDriver<_> = drive::driver(flow, &nodes, &state.store, owner, args.pace.pace(), trust);
        let driver = if args.secret.is_for_others() { driver.allow_secret_elsewhere() } else { driver };
        // The approval of a self-funded order is broadcast together with its payment.
        let is_approved = mode.approved && kept.is_gasless() && !kept.was_sent(Delivery::Funding);
        if (mode.paid || is_approved) && kept.outcome().is_none_or(|outcome| outcome == Outcome::Expired) {
            driver.mark_on_chain(&id, Delivery::Funding).await?;
        }
        follow::follow(&driver, &id, trust, session).await
    })
}

impl Args {
    /// Returns the minimum to receive, in base units of `asset`; `None` without one.
    fn at_least(&self, asset: &AssetId, registry: &Registry) -> Result<Option<U256>, Failure> {
        self.choice.at_least.as_deref().map(|text| units(text, asset, Some(registry))).transpose()
    }
}

/// Checks the route and returns the best quote. Every quote must be for the requested pair and amount.
async fn quote(args: &Args, flow: &Flow<Http>, at_least: Option<U256>, session: &Session) -> Result<Quote, Failure> {
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
        Err(error) => session.progress(&format!("routes unknown: {}", chain(&error))),
    }
    let mut wish = QuoteWish::new(from.clone(), to.clone(), amount);
    (wish.slippage, wish.solver, wish.at_least) = (args.ask.slippage.map(BasisPoints::new), args.choice.solver.clone(), at_least);
    let shown = |amount, asset: &AssetId| amount::shown(amount, asset, Some(flow.registry()));
    let best = flow.best_quote(&wish).await.map_err(|error| {
        let code = error.code();
        let message = match error {
            QuoteError::Service(error) => return Failure::from(error).with_advice("nothing was created; try again"),
            QuoteError::Mismatch(other) => format!(
                "a quote is for {} to {}, not for {} to {to}",
                shown(other.source.amount, &other.source.asset),
                other.destination.asset,
                shown(amount, &from)
            ),
            QuoteError::TooLow(best) => {
                format!(
                    "the best quote pays {}, less than {}",
                    shown(best.destination.amount, &to),
                    shown(at_least.unwrap_or_default(), &to)
                )
            }
            other => other.to_string(),
        };
        Failure::Held { code, message }
    })?;
    let pays = shown(best.destination.amount, &to);
    session.progress(&format!("quote of {}: {pays}", text::quote_untrusted(&best.solver_id)));
    Ok(best)
}

/// The request that would be sent.
#[derive(Serialize)]
struct Asked<'a> {
    ok: bool,
    request: &'a CreateOrder,
    solver_id: &'a str,
    /// What must hold before an order is paid, and holds now.
    preconditions: &'a [Met],
}

/// A precondition that holds.
#[derive(Serialize)]
struct Met {
    chain: String,
    precondition: &'static str,
    meaning: &'static str,
}

/// Fetches quotes, asks what must hold before an order is paid, and shows both with the request that would be sent.
async fn ask(
    args: &Args,
    flow: &Flow<Http>,
    nodes: &Nodes<Http>,
    (at_least, redeemer): (Option<U256>, Option<&str>),
    session: &Session,
) -> Result<u8, Failure> {
    let best = quote(args, flow, at_least, session).await?;
    let order = args.ask.request(best.destination.amount, flow.registry())?;
    // What the payout is worth is known only now.
    let ends = Ends::of_request(&order.source, &order.destination, flow.registry()).redeemed_by(redeemer).paying(best.destination.amount);
    let (mut problems, ends) = (Problems::default(), ends.with_relayer(args.relying.trust().is_some()));
    let met = preflight::check_preconditions(&mut problems, nodes, ends, flow.policy(), session).await;
    problems.end()?;
    let met = met.into_iter().map(|(item, chain)| Met { chain, precondition: item.name(), meaning: item.meaning() });
    let met: Vec<_> = met.collect();
    if session.json {
        show::json(&Asked { ok: true, request: &order, solver_id: &best.solver_id, preconditions: &met })?;
    } else {
        for (label, leg) in [("source", &order.source), ("destination", &order.destination)] {
            show::field(label, &amount::shown(leg.amount, &leg.asset, Some(flow.registry())))?;
        }
        show::field("solver", &text::escape_untrusted(&best.solver_id))?;
        for Met { chain, precondition, meaning } in &met {
            show::field("holds", &format!("{chain}: {precondition}: {meaning}"))?;
        }
    }
    session.progress("dry run: no order was created and nothing was signed");
    Ok(OK)
}

/// Shows what would be signed for a stored order.
async fn preview(
    args: &Args,
    flow: &Flow<Http>,
    wallet: Option<Zeroizing<Vec<u8>>>,
    id: &OrderId,
    session: &Session,
) -> Result<u8, Failure> {
    let kept = args.state.open()?.load(id)?;
    let verified = flow.verify(&kept.swap).await.map_err(|error| Failure::from(error).with_advice("nothing was signed; try again"))?.order;
    match drive::wallet_context(&verified, wallet) {
        Some(text) => {
            let wallet = json::parse(&text).map_err(|refusal| refusal.with_prefix("/wallet"))?;
            let order = countersign_json::prepare(&verified, Cursor::root(&wallet, "/wallet"))?;
            Accepted::prepared(&order).print(session.json)?;
        }
        None => Accepted::verified(&verified).print(session.json)?,
    }
    session.progress("dry run: nothing was signed");
    Ok(OK)
}

/// Returns an order that is stored here, has not ended, and swaps the same amount between the same assets: people repeat a command that was
/// cut off, and its order may even be paid.
fn open_twin(args: &Args, flow: &Flow<Http>, state: &state::State) -> Result<Option<OrderId>, Failure> {
    let wanted = args.ask.request(U256::from(1), flow.registry())?;
    let is_twin = |id: &OrderId| {
        let Ok(Some(kept)) = state.find(id) else { return false };
        let request = kept.swap.request();
        // The keys of Bitcoin-like chains are new ones for each order.
        let leg = |order: &CreateOrder| (order.source.asset.clone(), order.source.amount, order.destination.asset.clone());
        let is_same = leg(request) == leg(&wanted);
        is_same && kept.outcome().is_none()
    };
    let mut ids = state.store.order_ids()?.into_iter().filter_map(|id| OrderId::parse(&id).ok());
    Ok(ids.find(is_twin))
}

/// Chooses a quote, creates the order and stores it.
async fn begin(
    args: &Args,
    flow: &Flow<Http>,
    state: &state::State,
    at_least: Option<U256>,
    session: &Session,
) -> Result<(OrderId, QuotedFee), Failure> {
    session.advise("no order was created, and nothing was paid");
    if let Some(id) = open_twin(args, flow, state)? {
        let resume = session.commands.resume(&id);
        session
            .progress(&format!("order {id} of the same amount has not ended, and this makes another one; to continue that one: {resume}"));
    }
    // Its owner writes it down first: the price of a quote does not wait.
    let order = args.ask.request(at_least.unwrap_or(U256::from(1)), flow.registry())?;
    args.secret.ready(state, flow.registry(), order, session)?;
    let best = quote(args, flow, at_least, session).await?;
    let mut order = args.ask.request(best.destination.amount, flow.registry())?;
    order.solver_id = Some(best.solver_id.clone()).filter(|_| args.choice.solver.is_some());
    let owned = args.secret.take(state, flow.registry(), &mut order, session)?;
    let id = owned.create(flow, state, order, at_least, session).await?;
    Ok((id, QuotedFee::of(&best)))
}
