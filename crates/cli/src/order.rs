//! `countersign order create|show|list|watch`

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use countersign::wire::{RecordTime, SwapRecord};
use countersign::{CreateOrder, OrderRecord, Registry, text};
use countersign_client::driver::{NoOwner, OrderState, OrderStore as _, SignedUnder, StatedEnd};
use countersign_client::{Flow, Http, OrderFilter, OrderId, OrderStatus, Pace, Progress, Status, StreamExt, Transport as _, track};
use serde::Serialize;

use crate::accepted::Accepted;
use crate::amount::{self, units};
use crate::ask::{NewOrderSecret, RequestArgs, SecretArgs};
use crate::drive::{self, TrustFlags};
use crate::exit::{LOST, OK, REFUSED};
use crate::failure::{Failure, chain, usage};
use crate::input::{RegistryArgs, TrustArgs};
use crate::nodes::NodeArgs;
use crate::preflight::{self, Problems};
use crate::session::Session;
use crate::stated::{self, ONLY_STATED};
use crate::{follow, own, service, show, state};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Creates an order, verifies the response and the record, and shows what signing it would lock. Signs nothing.
    #[command(after_help = CREATE_EXAMPLES)]
    Create(Box<CreateArgs>),
    /// Shows the status of an order, as the service states it.
    Show(OrderArgs),
    /// Lists orders, page by page.
    List(ListArgs),
    /// Follows an order until it is complete, refunded, expired or lost. For an order that was created here, this also sends what is signed
    /// already.
    Watch(OrderArgs),
}

const CREATE_EXAMPLES: &str = "Examples:
  countersign order create --registry registry.json --from ethereum:usdc --from-owner 0x... --amount 5000000 \\
      --to bitcoin:btc --to-owner bc1... --receive 5000
  countersign order create --registry registry.json --request request.json";

#[derive(clap::Args)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    service: service::ServiceArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    state: state::StateArgs,
    #[command(flatten)]
    ask: RequestArgs,
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
pub(crate) struct OrderArgs {
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
    /// The order's id, or its first digits.
    id: String,
}

#[derive(clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    service: service::ServiceArgs,
    #[command(flatten)]
    registry: RegistryArgs,
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
    #[arg(long, value_delimiter = ',')]
    status: Vec<OrderStatus>,
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

pub(crate) fn run(command: &Command, session: &Session) -> Result<u8, Failure> {
    match command {
        Command::Create(args) => create(args, session),
        Command::Show(args) => one(args, session),
        Command::List(args) => list(args, session),
        Command::Watch(args) => watch(args, session),
    }
}

/// The status of an order as JSON.
#[derive(Serialize)]
struct Order<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    order_id: &'a str,
    /// How the order ended by what the service states; `None` if it is complete or has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<show::ErrorReport<'a>>,
    #[serde(flatten)]
    status: &'a Status,
    source: Leg<'a>,
    destination: Leg<'a>,
}

#[derive(Serialize)]
struct Leg<'a> {
    asset: &'a str,
    amount: String,
    whole_units: Option<String>,
    filled_amount: String,
    initiate_tx_hash: &'a str,
    redeem_tx_hash: &'a str,
    refund_tx_hash: &'a str,
}

impl<'a> Order<'a> {
    fn new(record: &'a OrderRecord, status: &'a Status, registry: &Registry) -> Self {
        fn leg<'s>(swap: &'s SwapRecord, registry: &Registry) -> Leg<'s> {
            Leg {
                asset: swap.asset.as_str(),
                amount: swap.amount.to_string(),
                whole_units: amount::whole(swap.amount, &swap.asset, Some(registry)),
                filled_amount: swap.filled_amount.to_string(),
                initiate_tx_hash: swap.initiate_tx_hash.as_deref().unwrap_or_default(),
                redeem_tx_hash: swap.redeem_tx_hash.as_deref().unwrap_or_default(),
                refund_tx_hash: swap.refund_tx_hash.as_deref().unwrap_or_default(),
            }
        }
        let (source, destination) = (leg(&record.source_swap, registry), leg(&record.destination_swap, registry));
        Self { event: None, ok: None, error: None, order_id: &record.order_id, status, source, destination }
    }
}

/// The listed orders, as the service states them.
#[derive(Serialize)]
struct Listed<'a> {
    ok: bool,
    orders: &'a [OrderRecord],
}

/// Prints the status of an order.
fn print(record: &OrderRecord, status: &Status, registry: &Registry) -> Result<(), Failure> {
    // The labels are the names of the JSON members.
    show::field("order id", &text::escape_untrusted(&record.order_id))?;
    // The other commands call the ends of an order by these names.
    let end = StatedEnd::from_status(status).map(StatedEnd::name).filter(|end| *end != status.state.name());
    let end = end.map(|end| format!(": the order is {end}")).unwrap_or_default();
    show::field("state", &format!("{}{end}, as the service states it", status.state.name()))?;
    for (label, swap) in [("source", &record.source_swap), ("destination", &record.destination_swap)] {
        show::field(label, &amount::shown(swap.amount, &swap.asset, Some(registry)))?;
        show::field("filled amount", &amount::shown(swap.filled_amount, &swap.asset, Some(registry)))?;
        for (what, hash) in [
            ("initiate tx hash", &swap.initiate_tx_hash),
            ("redeem tx hash", &swap.redeem_tx_hash),
            ("refund tx hash", &swap.refund_tx_hash),
        ] {
            if let Some(hash) = hash {
                show::field(what, &text::escape_untrusted(hash))?;
            }
        }
    }
    let times = [
        ("deadline", status.deadline),
        ("refund possible from", status.refund_possible_from),
        ("solver refund possible from", status.solver_refund_possible_from),
    ];
    for (label, time) in times {
        if let Some(time) = time.filter(|_| !status.is_final()) {
            show::field(label, &show::time(time))?;
        }
    }
    Ok(())
}

/// Checks what was given for an order, before the service hears of it.
fn check(args: &CreateArgs, session: &Session) -> Result<(Flow<Http>, CreateOrder), Failure> {
    let mut problems = Problems::default();
    let trust = problems.take(args.trust.read_to_pay());
    let client = problems.take(args.service.client(session));
    let registry = trust.as_ref().map(|(registry, _)| registry);
    let request = match &args.request {
        Some(path) => {
            let request = problems.take(own::parse(path, CreateOrder::from_json));
            if let (Some(request), Some(registry)) = (&request, registry) {
                preflight::check_request(&mut problems, request, registry);
            }
            request
        }
        None => args.ask.check(&mut problems, registry).zip(registry).and_then(|(asked, registry)| {
            let receive = args.receive.as_deref().unwrap_or_default();
            let receive = problems.take(units(receive, &asked.destination.asset, Some(registry)))?;
            problems.take(args.ask.request(receive, registry))
        }),
    };
    let state = problems.take(args.state.open_existing()).flatten();
    problems.take(args.secret.given(state.as_ref(), session));
    problems.end()?;
    match (trust, client, request) {
        (Some((registry, policy)), Some(client), Some(request)) => Ok((Flow::new(client, registry, policy), request)),
        // Not reached: what is missing is a problem.
        _ => Err(usage("the request is incomplete")),
    }
}

fn create(args: &CreateArgs, session: &Session) -> Result<u8, Failure> {
    let (flow, mut request) = check(args, session)?;
    let is_complete = args.request.is_some();
    let state = args.state.open()?;
    service::run(session, async {
        let owned = if is_complete && request.secret_hash.is_some() {
            // A complete request is sent as it is.
            NewOrderSecret::nothing()
        } else {
            args.secret.take(&state, flow.registry(), &mut request, session)?
        };
        let id = owned.create(&flow, &state, request, None, session).await?;
        let kept = state.load(&id)?;
        let again = format!("the order exists and nothing was paid; continue with: {}", session.commands.resume(&id));
        session.advise(&again);
        let verified = flow.verify(&kept.swap).await.map_err(|error| Failure::from(error).with_advice(again))?;
        // Its terms and the pins apply from now on, because another wallet may pay what is shown here.
        let record = serde_json::to_vec(&verified.record).map_err(usage)?;
        let pins = SignedUnder { registry: flow.registry().clone(), policy: flow.policy().clone() };
        let guard = state.store.lock(&id).await.map_err(usage)?;
        state.store.keep_pins(&guard, &pins).await.map_err(usage)?;
        state.store.keep_record(&guard, &record).await.map_err(usage)?;
        Accepted::verified(&verified.order).print(session.json)?;
        Ok(OK)
    })
}

/// An order with the context of its commands.
struct One {
    flow: Flow<Http>,
    id: OrderId,
    /// The stored order, if it was created here.
    kept: Option<OrderState>,
    state: state::State,
}

impl OrderArgs {
    fn open(&self, session: &Session) -> Result<One, Failure> {
        let id = self.state.id(&self.id)?;
        let state = self.state.open()?;
        let kept = state.find(&id)?;
        let (registry, policy) = kept.as_ref().map_or_else(|| self.trust.read(), |kept| self.trust.of_order(kept))?;
        Ok(One { flow: Flow::new(self.service.client(session)?, registry, policy), id, kept, state })
    }
}

fn one(args: &OrderArgs, session: &Session) -> Result<u8, Failure> {
    let one = args.open(session)?;
    let record = service::run(session, async {
        Ok(match &one.kept {
            // An order that was created here is verified again.
            Some(kept) => one.flow.follow(&kept.swap).await?.record,
            None => one.flow.client().order(&one.id).await?.value,
        })
    })?;
    let registry = one.flow.registry();
    let status = Status::from_record(&record, registry, show::now());
    let end = StatedEnd::from_status(&status).filter(|end| one.kept.is_none() && end.agrees_with_secret(&record, None));
    if let Some(end) = end {
        // Best effort, as in `follow_stated`.
        let _ = one.state.note_stated(&one.id, end);
    }
    if session.json {
        show::json(&Order::new(&record, &status, registry))?;
    } else {
        print(&record, &status, registry)?;
    }
    Ok(OK)
}

fn list(args: &ListArgs, session: &Session) -> Result<u8, Failure> {
    let (client, registry) = (args.service.client(session)?, args.registry.read()?);
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
    service::run(session, async {
        let mut pages = std::pin::pin!(client.orders(filter).take(args.pages));
        while let Some(page) = pages.next().await {
            rows.extend(page?.value.data);
        }
        Ok(())
    })?;
    if session.json {
        show::json(&Listed { ok: true, orders: &rows })?;
        return Ok(OK);
    }
    let row = |record: OrderRecord| {
        let (source, destination) = (record.source_swap, record.destination_swap);
        let paid = if destination.redeem_tx_hash.is_some() { "complete" } else { "" };
        let created = record.created_at.as_ref().map_or("", RecordTime::as_str);
        let leg = |swap: &SwapRecord| amount::shown(swap.amount, &swap.asset, registry.as_ref());
        vec![record.order_id, created.to_owned(), leg(&source), leg(&destination), paid.to_owned()]
    };
    show::table(&["order id", "created at", "source", "destination", ""], &rows.into_iter().map(row).collect::<Vec<_>>())?;
    Ok(OK)
}

fn watch(args: &OrderArgs, session: &Session) -> Result<u8, Failure> {
    let One { flow, id, kept, state } = args.open(session)?;
    let pace = args.pace.pace();
    let nodes = Arc::new(args.nodes.connect(flow.registry(), session)?);
    service::run(session, async {
        if kept.is_some() {
            let driver = drive::driver(flow, &nodes, &state.store, NoOwner, pace, args.relying.trust());
            return follow::follow(&driver, &id, args.relying.trust(), session).await;
        }
        // The request is not known, so the record cannot be verified.
        session.advise(format!("continue with: {}", session.commands.watch(&id)));
        follow_stated(&flow, &id, pace, &state, session).await
    })
}

/// Reports each change of an order that was not created here, until the service states its end, and the secret agrees: complete (0),
/// refunded or expired (1), or lost (5).
async fn follow_stated(flow: &Flow<Http>, id: &OrderId, pace: Pace, state: &state::State, session: &Session) -> Result<u8, Failure> {
    let registry = flow.registry();
    let (mut told, mut last) = (BTreeSet::new(), None);
    loop {
        let mut changes = std::pin::pin!(track(flow.client(), registry, id.clone(), pace, |_| Ok(())));
        while let Some(item) = changes.next().await {
            let Progress { record, status, went_back, .. } = match item {
                Ok(progress) => progress,
                Err(error) if error.is_transient() => {
                    session.progress(&format!("{}; retrying", chain(&error)));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if went_back {
                session.progress("the service now shows less than before: the response is outdated, or a block was replaced");
            }
            let end = StatedEnd::from_status(&status);
            if let Some(end) = end.filter(|end| end.agrees_with_secret(&record, None)) {
                // Best effort: only an order that was restored here has a place for it.
                let _ = state.note_stated(id, end);
                return report_end(end, &record, &status, registry, session);
            }
            let is_new = last.as_ref() != Some(&(record.clone(), status.clone()));
            if is_new && session.json {
                session.event(&Order { event: Some("status"), ..Order::new(&record, &status, registry) }, "");
            } else if is_new {
                print(&record, &status, registry)?;
            }
            if let Some(end) = end.filter(|end| told.insert(*end)) {
                session.progress(&stated::doubt(end));
            }
            last = Some((record, status));
        }
        // The stream ends where the service states an end. This one does not count, so the order is followed.
        flow.client().transport().sleep(pace.slowest).await;
    }
}

/// Reports the end of an order by what the service states.
fn report_end(end: StatedEnd, record: &OrderRecord, status: &Status, registry: &Registry, session: &Session) -> Result<u8, Failure> {
    let (code, name) = match end {
        StatedEnd::Complete => (OK, ""),
        StatedEnd::Lost => (LOST, "lost"),
        _ => (REFUSED, "swap_not_complete"),
    };
    let message = stated::statement(end);
    if session.json {
        let error = (code != OK).then(|| show::ErrorReport { code: name, message: &message, problems: &[] });
        show::json(&Order { ok: Some(code == OK), error, ..Order::new(record, status, registry) })?;
    } else {
        print(record, status, registry)?;
    }
    if code != OK && !session.json {
        show::field(name, &message)?
    } else {
        session.progress(ONLY_STATED)
    }
    Ok(code)
}
