//! `countersign order create|show|list|watch`

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use countersign::wire::{AffiliateFee, SwapRecord};
use countersign::{AssetId, CreateOrder, Family, OrderRecord, Registry, RequestedLeg, U256, text};
use countersign_client::driver::{KeptOrder, NewOrder, NoOwner, Pins, Store as _};
use countersign_client::{Error, Flow, Http, OrderFilter, OrderId, Pace, Progress, Secret, State, Status, Stream, StreamExt, track};
use serde::Serialize;

use crate::accepted::Accepted;
use crate::amount::units;
use crate::config::Config;
use crate::drive::{self, TrustFlags};
use crate::input::{self, Failure, TrustArgs, chain, usage};
use crate::nodes::{self, NodeArgs};
use crate::quote::asset;
use crate::{OK, REFUSED, service, show, state};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Creates an order, verifies the response and the record, and shows what signing it would lock. Signs nothing.
    #[command(after_help = CREATE_EXAMPLES)]
    Create(Box<CreateArgs>),
    /// Shows the status of an order, as the service states it.
    Show(OneArgs),
    /// Lists orders, page by page.
    List(ListArgs),
    /// Follows an order until it is complete, refunded or expired. For an order that was created here, this also sends what is signed already.
    Watch(OneArgs),
}

const CREATE_EXAMPLES: &str = "Examples:
  countersign order create --registry registry.json --from ethereum:usdc --from-owner 0x... --amount 5000000 \\
      --to bitcoin:btc --to-owner bc1... --receive 5000
  countersign order create --registry registry.json --request request.json";

/// The request.
#[derive(clap::Args)]
pub(crate) struct AskArgs {
    /// Source asset, `<chain>:<symbol>`.
    #[arg(long, value_name = "ASSET")]
    pub(crate) from: Option<String>,
    /// The owner's address on the source chain, which receives a refund. By default the owner of this chain in the configuration file.
    #[arg(long, value_name = "ADDRESS")]
    from_owner: Option<String>,
    /// The account that pays for the owner. On Bitcoin-like chains: the owner's x-only public key for refunds, by default derived from the
    /// rescue phrase.
    #[arg(long, value_name = "ACCOUNT")]
    from_delegate: Option<String>,
    /// Amount to pay: base units, or whole units with the symbol (`1.5 usdc`).
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) amount: Option<String>,
    /// Destination asset, `<chain>:<symbol>`.
    #[arg(long, value_name = "ASSET")]
    pub(crate) to: Option<String>,
    /// The address that is paid on the destination chain. By default the owner of this chain in the configuration file.
    #[arg(long, value_name = "ADDRESS")]
    to_owner: Option<String>,
    /// On Bitcoin-like chains: the owner's x-only public key for the redemption, by default derived from the rescue phrase.
    #[arg(long, value_name = "KEY")]
    to_delegate: Option<String>,
    /// Allowed slippage, in basis points.
    #[arg(long, value_name = "BPS")]
    pub(crate) slippage: Option<u64>,
    /// An affiliate fee, in basis points. Can be given several times.
    #[arg(long, value_name = "ASSET=ADDRESS=BPS")]
    affiliate: Vec<String>,
}

/// Where the secret, and the owner's keys on Bitcoin-like chains, come from.
#[derive(clap::Args)]
#[group(required = false, multiple = false)]
pub(crate) struct SecretArgs {
    /// Reads the secret from a file of 64 hex digits, instead of deriving one from the rescue phrase.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Lets the service choose the secret, or somebody else hold it. The holder can redeem without you.
    #[arg(long)]
    service_secret: bool,
}

/// The parts of a new order that only the owner knows.
pub(crate) struct Owned {
    secret: Option<Secret>,
    /// The index with which keys and secret are derived, if any are.
    index: Option<u32>,
}

impl SecretArgs {
    /// Returns whether somebody else holds the secret.
    pub(crate) const fn is_for_others(&self) -> bool {
        self.service_secret
    }

    /// Adds the hash of the secret to a request, and the owner's keys on Bitcoin-like chains. Their index is marked as used before anything
    /// derived from it is sent.
    pub(crate) fn take(&self, state: &state::State, registry: &Registry, order: &mut CreateOrder) -> Result<Owned, Failure> {
        let (rescue, index) = (state.rescue()?, state.take_index()?);
        let secret = match &self.secret_file {
            Some(file) => Some(state::read_secret(file)?),
            None if self.service_secret || order.secret_hash.is_some() => None,
            None => Some(Secret::parse(&hex::encode(*rescue.secret(index).map_err(usage)?))?),
        };
        if let Some(secret) = &secret {
            state.check_unused(&secret.hash())?;
            order.secret_hash = Some(secret.hash());
        }
        let is_bitcoin = |leg: &RequestedLeg| registry.family(leg.asset.chain()).is_ok_and(|family| family == Family::Bitcoin);
        if is_bitcoin(&order.source) && order.source.delegate.is_none() {
            order.source.delegate = Some(rescue.refund_key(index).map_err(usage)?.public_key());
        }
        if is_bitcoin(&order.destination) && order.destination.delegate.is_none() && !self.service_secret {
            order.destination.delegate = Some(rescue.redeem_key(index).map_err(usage)?.public_key());
        }
        Ok(Owned { secret, index: Some(index) })
    }
}

impl Owned {
    /// Returns the value for a complete request, for which nothing is derived.
    const fn nothing() -> Self {
        Self { secret: None, index: None }
    }

    /// Creates the order and stores it.
    pub(crate) async fn create(
        self,
        flow: &Flow<Http>,
        state: &state::State,
        request: CreateOrder,
        at_least: Option<U256>,
    ) -> Result<OrderId, Failure> {
        let driver = drive::driver(flow.clone(), &nodes::none(flow.registry())?, &state.store, NoOwner, Pace::default(), None);
        driver.create(NewOrder { request, secret: self.secret, index: self.index, at_least }).await.map_err(|error| {
            Failure::from(error).with_advice("the order may exist, but nothing was paid: create a new one; an unpaid order costs nothing")
        })
    }
}

impl AskArgs {
    /// Returns the destination asset.
    pub(crate) fn destination(&self) -> Result<AssetId, Failure> {
        asset(need(&self.to, "--to")?)
    }

    /// Returns the request, with the amount to receive in base units.
    pub(crate) fn request(&self, receive: U256, registry: &Registry) -> Result<CreateOrder, Failure> {
        let (from, to) = (asset(need(&self.from, "--from")?)?, self.destination()?);
        let config = Config::read()?;
        let owner = |given: &Option<String>, asset| given.as_deref().or_else(|| config.owner(asset)).map(str::to_owned);
        let (from_owner, to_owner) = (owner(&self.from_owner, &from), owner(&self.to_owner, &to));
        let amount = units(need(&self.amount, "--amount")?, &from, Some(registry))?;
        let mut source = RequestedLeg::new(from, String::new(), amount);
        source.owner = from_owner;
        source.delegate.clone_from(&self.from_delegate);
        let mut destination = RequestedLeg::new(to, need(&to_owner, "--to-owner")?, receive);
        destination.delegate.clone_from(&self.to_delegate);
        let mut order = CreateOrder::new(source, destination);
        order.slippage = self.slippage;
        for text in &self.affiliate {
            let parts: Vec<_> = text.split('=').collect();
            let [id, address, fee] = parts.as_slice() else { return Err(usage("an affiliate fee must have the form ASSET=ADDRESS=BPS")) };
            let fee = fee.parse().map_err(|_| usage(format_args!("{fee}: not a number of basis points")))?;
            order.affiliate_fees.push(AffiliateFee::new(asset(id)?, (*address).to_owned(), fee)?);
        }
        Ok(order)
    }
}

/// Returns the value of a required argument.
pub(crate) fn need<'a>(value: &'a Option<String>, name: &str) -> Result<&'a str, Failure> {
    value.as_deref().ok_or_else(|| usage(format_args!("{name} is missing")))
}

#[derive(clap::Args)]
pub(crate) struct CreateArgs {
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
    /// Amount to receive, as quoted: base units, or whole units with the symbol (`0.00005 btc`).
    #[arg(long, value_name = "AMOUNT", required_unless_present = "request")]
    receive: Option<String>,
    /// A complete request as JSON, in place of the arguments; `-` is stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "receive"])]
    request: Option<PathBuf>,
}

/// How often the record of an order is fetched.
#[derive(clap::Args)]
pub(crate) struct PaceArgs {
    /// Milliseconds between two requests. By default the wait adapts to the progress of the order.
    #[arg(long, value_name = "MS")]
    poll: Option<u64>,
}

impl PaceArgs {
    pub(crate) fn pace(&self) -> Pace {
        let wait = self.poll.map(std::time::Duration::from_millis);
        wait.map_or_else(Pace::default, |wait| Pace { quickest: wait, slowest: wait })
    }
}

/// One order, by its id.
#[derive(clap::Args)]
pub(crate) struct OneArgs {
    #[command(flatten)]
    service: service::ServiceArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    state: state::StateArgs,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    relying: TrustFlags,
    #[command(flatten)]
    nodes: NodeArgs,
    /// The order's id.
    id: String,
}

#[derive(clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    service: service::ServiceArgs,
    /// Owner on the source chain.
    #[arg(long)]
    from_owner: Option<String>,
    /// Owner on the destination chain.
    #[arg(long)]
    to_owner: Option<String>,
    /// Any address of the order.
    #[arg(long)]
    address: Option<String>,
    /// Id of any transaction of the order.
    #[arg(long)]
    tx_hash: Option<String>,
    /// Name of the source chain.
    #[arg(long)]
    from_chain: Option<String>,
    /// Name of the destination chain.
    #[arg(long)]
    to_chain: Option<String>,
    /// `not-initiated`, `in-progress`, `completed`, `expired` or `refunded`, or several of them separated by commas.
    #[arg(long)]
    status: Option<String>,
    /// Number of the first page.
    #[arg(long)]
    page: Option<u64>,
    /// Orders per page.
    #[arg(long)]
    per_page: Option<u64>,
    /// Maximum number of pages to fetch.
    #[arg(long, default_value_t = 1)]
    pages: usize,
}

pub(crate) fn run(command: &Command, json: bool) -> Result<u8, Failure> {
    match command {
        Command::Create(args) => create(args, json),
        Command::Show(args) => one(args, json),
        Command::List(args) => list(args, json),
        Command::Watch(args) => watch(args, json),
    }
}

/// The status of an order as JSON.
#[derive(Serialize)]
struct Order<'a> {
    order_id: &'a str,
    #[serde(flatten)]
    status: &'a Status,
    source: Leg<'a>,
    destination: Leg<'a>,
}

#[derive(Serialize)]
struct Leg<'a> {
    asset: &'a str,
    amount: String,
    filled_amount: String,
    initiate_tx_hash: &'a str,
    redeem_tx_hash: &'a str,
    refund_tx_hash: &'a str,
}

impl<'a> Order<'a> {
    fn new(record: &'a OrderRecord, status: &'a Status) -> Self {
        fn leg(swap: &SwapRecord) -> Leg<'_> {
            Leg {
                asset: swap.asset.as_str(),
                amount: swap.amount.to_string(),
                filled_amount: swap.filled_amount.to_string(),
                initiate_tx_hash: &swap.initiate_tx_hash,
                redeem_tx_hash: &swap.redeem_tx_hash,
                refund_tx_hash: &swap.refund_tx_hash,
            }
        }
        Self { order_id: &record.order_id, status, source: leg(&record.source_swap), destination: leg(&record.destination_swap) }
    }
}

/// Prints the status of an order; as JSON on one line, because it may be one of many.
fn print(record: &OrderRecord, status: &Status, json: bool) -> Result<(), Failure> {
    if json {
        return Ok(show::json_line(&Order::new(record, status))?);
    }
    show::field("order", &text::escape_untrusted(&record.order_id))?;
    // This is only what the service states. `orders` shows what the program did itself.
    show::field("service says", status.state.name())?;
    for (label, swap) in [("source", &record.source_swap), ("destination", &record.destination_swap)] {
        show::field(label, &format!("{} of {} base units of {}", swap.filled_amount, swap.amount, swap.asset))?;
        for (what, hash) in
            [("paid in", &swap.initiate_tx_hash), ("redeemed in", &swap.redeem_tx_hash), ("refunded in", &swap.refund_tx_hash)]
        {
            if !hash.is_empty() {
                show::field(what, &text::escape_untrusted(hash))?;
            }
        }
    }
    let times = [
        ("pay until", status.deadline),
        ("refund from", status.refund_possible_from),
        ("solver refund", status.solver_refund_possible_from),
    ];
    for (label, time) in times {
        if let Some(time) = time.filter(|_| !status.is_final()) {
            show::field(label, &show::time(time))?;
        }
    }
    Ok(())
}

fn create(args: &CreateArgs, json: bool) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let state = args.state.open()?;
    let (mut request, is_complete) = match &args.request {
        Some(path) => (CreateOrder::from_json(&input::read(path)?).map_err(|refusal| refusal.under("/request"))?, true),
        None => {
            let receive = units(args.receive.as_deref().unwrap_or_default(), &args.ask.destination()?, Some(&registry))?;
            (args.ask.request(receive, &registry)?, false)
        }
    };
    let flow = Flow::new(args.service.client()?, registry, policy);
    service::run(async {
        let owned = if is_complete && request.secret_hash.is_some() {
            // A complete request is sent as it is.
            Owned::nothing()
        } else {
            args.secret.take(&state, flow.registry(), &mut request)?
        };
        let id = owned.create(&flow, &state, request, None).await?;
        let kept = state.load(&id)?;
        let again = format!("the order exists and nothing was paid; continue with: countersign swap --resume {id}");
        let verified = flow.verify(&kept.swap).await.map_err(|error| Failure::from(error).with_advice(again))?;
        // Its terms and the pins apply from now on, because another wallet may pay what is shown here.
        let record = serde_json::to_vec(&verified.record).map_err(usage)?;
        let pins = Pins { registry: flow.registry().clone(), policy: flow.policy().clone() };
        let guard = state.store.lock(&id).map_err(usage)?;
        state.store.keep_pins(&guard, &pins).map_err(usage)?;
        state.store.keep_record(&guard, &record).map_err(usage)?;
        Accepted::verified(&verified.order).print(json)?;
        Ok(OK)
    })
}

/// An order with the context of its commands.
struct One {
    flow: Flow<Http>,
    id: OrderId,
    /// The stored order, if it was created here.
    kept: Option<KeptOrder>,
    state: state::State,
}

impl OneArgs {
    fn open(&self) -> Result<One, Failure> {
        let (registry, policy) = self.trust.read()?;
        let id = OrderId::parse(&self.id)?;
        let state = self.state.open()?;
        let kept = state.find(&id)?;
        Ok(One { flow: Flow::new(self.service.client()?, registry, policy), id, kept, state })
    }
}

fn one(args: &OneArgs, json: bool) -> Result<u8, Failure> {
    let one = args.open()?;
    let record = service::run(async {
        Ok(match &one.kept {
            // An order that was created here is verified again.
            Some(kept) => one.flow.follow(&kept.swap).await?.record,
            None => one.flow.client().order(&one.id).await?.value,
        })
    })?;
    print(&record, &Status::from_record(&record, one.flow.registry(), show::now()), json)?;
    Ok(OK)
}

fn list(args: &ListArgs, json: bool) -> Result<u8, Failure> {
    let client = args.service.client()?;
    let filter = OrderFilter {
        from_owner: args.from_owner.clone(),
        to_owner: args.to_owner.clone(),
        address: args.address.clone(),
        tx_hash: args.tx_hash.clone(),
        from_chain: args.from_chain.clone(),
        to_chain: args.to_chain.clone(),
        status: args.status.clone(),
        page: args.page,
        per_page: args.per_page,
    };
    let mut rows = Vec::new();
    service::run(async {
        let mut pages = std::pin::pin!(client.orders(filter).take(args.pages));
        while let Some(page) = pages.next().await {
            let page = page?;
            if json {
                // One page per line, unchanged.
                show::answer(&page.body)?;
            }
            rows.extend(page.value.data);
        }
        Ok(())
    })?;
    if json {
        return Ok(OK);
    }
    let row = |record: OrderRecord| {
        let (source, destination) = (record.source_swap, record.destination_swap);
        let paid = if destination.redeem_tx_hash.is_empty() { "" } else { "complete" };
        let leg = |swap: &SwapRecord| format!("{} {}", swap.amount, swap.asset);
        vec![record.order_id, record.created_at, leg(&source), leg(&destination), paid.to_owned()]
    };
    show::table(&["order", "created", "pay", "receive", ""], &rows.into_iter().map(row).collect::<Vec<_>>())?;
    Ok(OK)
}

fn watch(args: &OneArgs, json: bool) -> Result<u8, Failure> {
    let One { flow, id, kept, state } = args.open()?;
    let pace = args.pace.pace();
    let nodes = Arc::new(args.nodes.connect(flow.registry())?);
    service::run(async {
        if kept.is_some() {
            let driver = drive::driver(flow, &nodes, &state.store, NoOwner, pace, args.relying.trust());
            return drive::follow(&driver, &id, args.relying.trust().is_some(), json).await;
        }
        // The request is not known, so the record cannot be verified.
        follow(Box::pin(track(flow.client(), flow.registry(), id, pace, |_| Ok(()))), json).await
    })
}

/// Prints each change, until the order is complete (0), or refunded or expired (1).
async fn follow(mut changes: Pin<Box<dyn Stream<Item = Result<Progress, Error>> + '_>>, json: bool) -> Result<u8, Failure> {
    while let Some(item) = changes.next().await {
        let progress = match item {
            Ok(progress) => progress,
            Err(error) if error.is_transient() => {
                show::progress(&format!("{}; retrying", chain(&error)));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if progress.went_back {
            show::progress("the service now shows less than before: the response is outdated, or a block was replaced");
        }
        print(&progress.record, &progress.status, json)?;
        if progress.status.complete {
            return Ok(OK);
        }
        if progress.status.is_final() || progress.status.state == State::Expired {
            return Ok(REFUSED);
        }
    }
    Ok(REFUSED)
}
