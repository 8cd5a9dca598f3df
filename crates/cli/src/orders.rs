//! `countersign orders`: lists every order in the state directory with its stage and its next command. Does not call the service.

use std::io;

use countersign::wire::SwapRecord;
use countersign::{AssetId, Registry, U256};
use countersign_client::OrderId;
use countersign_client::driver::{Delivery, OrderState, OrderStore as _, Outcome, Purpose, SecretRoute, StatedEnd, StoreError};
use countersign_client::restore::RestoredOrder;
use countersign_store::{Error, OrderDir};
use serde::Serialize;

use crate::exit::{OK, USAGE};
use crate::failure::{Failure, chain};
use crate::input::RegistryArgs;
use crate::session::Session;
use crate::state::{State, StateArgs, at_once};
use crate::{id, show};

pub(crate) const EXAMPLES: &str = "Examples:
  countersign orders
  countersign orders --json | jq -r '.orders[] | select(.finished | not) | .order_id'

The list shows what this program did, read from the state directory. It uses neither the service nor a chain; the command below an order
does. Every command takes the first digits of the id of a stored order. An order that cannot be read is listed with its error, and the exit
code is then 2. A stage with * is only what the service stated.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

#[derive(Serialize)]
struct Listed {
    /// Whether every order could be read.
    ok: bool,
    orders: Vec<Row>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Row {
    Order(Box<Order>),
    Unreadable(Unreadable),
}

/// An order that cannot be read.
#[derive(Serialize)]
pub(crate) struct Unreadable {
    /// `None` if not even its directory can be opened.
    pub(crate) order_id: Option<String>,
    pub(crate) error: ReadError,
}

#[derive(Serialize)]
pub(crate) struct ReadError {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Unreadable {
    const fn new(order_id: Option<String>, message: String) -> Self {
        Self { order_id, error: ReadError { code: "order_unreadable", message } }
    }
}

/// What is stored of an order.
pub(crate) enum Stored {
    /// It was created here.
    Created(Box<OrderState>),
    /// It was restored from the rescue phrase.
    Restored(Box<RestoredOrder>),
}

#[derive(Serialize)]
pub(crate) struct Order {
    order_id: String,
    /// The first digits of the id, which every command takes.
    short_id: String,
    source: Leg,
    destination: Leg,
    stage: Stage,
    finished: bool,
    /// Whether the secret is stored here.
    secret_kept: bool,
    /// How the secret was released, or may have been.
    secret_left: Option<SecretRoute>,
    funding: Done,
    redemption: Done,
    refund: Done,
    /// The end that the service stated, where nothing else shows one. Only the chains prove it.
    #[serde(skip_serializing_if = "Option::is_none")]
    stated: Option<&'static str>,
    /// The transactions that this program signed, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    transactions: Vec<Signed>,
    /// The command that continues the order.
    next: Option<String>,
    /// The commands that may follow `next`, for a restored order. Which one is right depends on the chains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    then: Vec<String>,
}

/// A transaction that was signed here.
#[derive(Serialize)]
struct Signed {
    role: &'static str,
    id: String,
}

#[derive(Serialize)]
struct Leg {
    asset: String,
    /// Base units.
    amount: String,
    /// In whole units, if the registry contains the asset.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_units: Option<String>,
}

/// The progress of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Done {
    No,
    Signed,
    /// It was about to be sent, and it is not known whether it arrived.
    MaybeSent,
    Sent,
}

/// The stage of an order.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// Not signed.
    Created,
    /// Signed, not sent.
    Signed,
    /// The payment was sent, or may have been.
    Paid,
    /// The secret was released, or may have been: somebody must redeem.
    Redeeming,
    /// A refund was signed or requested.
    Refunding,
    /// The owner has received the destination funds.
    Complete,
    /// The owner has the source funds back.
    Refunded,
    /// Nothing was paid.
    Expired,
    /// The funds are lost.
    Lost,
    /// Restored from the rescue phrase, so it is not known what was done.
    Restored,
}

impl Stage {
    const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Signed => "signed",
            Self::Paid => "paid",
            Self::Redeeming => "redeeming",
            Self::Refunding => "refunding",
            Self::Complete => "complete",
            Self::Refunded => "refunded",
            Self::Expired => "expired",
            Self::Lost => "lost",
            Self::Restored => "restored",
        }
    }

    const fn stated(end: StatedEnd) -> Self {
        match end {
            StatedEnd::Complete => Self::Complete,
            StatedEnd::Refunded => Self::Refunded,
            StatedEnd::Expired => Self::Expired,
            _ => Self::Lost,
        }
    }

    fn new(kept: &OrderState, funding: Done, refund: Done, stated: Option<StatedEnd>) -> Self {
        match kept.outcome() {
            Some(Outcome::Complete) => Self::Complete,
            Some(Outcome::Refunded) => Self::Refunded,
            Some(Outcome::Expired) => Self::Expired,
            Some(Outcome::Lost) => Self::Lost,
            None if stated.is_some_and(|end| end != StatedEnd::Lost) => stated.map_or(Self::Created, Self::stated),
            // A released secret is more urgent than anything else.
            _ if kept.secret_left().is_some() => Self::Redeeming,
            _ if refund != Done::No => Self::Refunding,
            _ => match funding {
                Done::No => Self::Created,
                Done::Signed => Self::Signed,
                Done::MaybeSent | Done::Sent => Self::Paid,
            },
        }
    }
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let registry = args.registry.read()?;
    let Some(state) = args.state.open_existing()? else {
        if session.json {
            show::json(&Listed { ok: true, orders: Vec::new() })?;
        } else {
            show::field("orders", &format!("none: {} does not exist", args.state.path()?.display()))?;
        }
        return Ok(OK);
    };
    let kept = state.store.as_ref().orders()?;
    let digits = id::digits(kept.iter().flatten().map(OrderDir::id));
    let mut orders: Vec<_> = kept.iter().filter_map(|order| row(&state, order, registry.as_ref(), digits, session)).collect();
    // Unfinished orders come first, and those that are over only by the service's word after them.
    orders.sort_by_key(|row| match row {
        Row::Order(order) => (order.finished, order.stated.is_some()),
        Row::Unreadable(_) => (false, false),
    });
    let ok = orders.iter().all(|row| matches!(row, Row::Order(_)));
    if session.json {
        show::json(&Listed { ok, orders })?;
    } else {
        print(&orders, digits)?;
    }
    Ok(if ok { OK } else { USAGE })
}

fn print(orders: &[Row], digits: usize) -> Result<(), Failure> {
    if orders.is_empty() {
        return Ok(show::field("orders", "none")?);
    }
    let leg = |leg: &Leg| match &leg.whole_units {
        Some(whole) => format!("{} {}", brief(whole), leg.asset),
        None => format!("{} base units of {}", leg.amount, leg.asset),
    };
    let row = |row: &Row| match row {
        Row::Order(order) => {
            let stage = format!("{}{}", order.stage.name(), if order.stated.is_some() { "*" } else { "" });
            let cells = vec![order.short_id.clone(), leg(&order.source), leg(&order.destination), stage];
            (cells, order.next.iter().chain(&order.then).map(|command| command.replace(&order.order_id, &order.short_id)).collect())
        }
        Row::Unreadable(Unreadable { order_id, .. }) => {
            let id = order_id.as_deref().map_or("?", |id| id::short(id, digits));
            (vec![id.to_owned(), "?".to_owned(), "?".to_owned(), "cannot be read".to_owned()], Vec::new())
        }
    };
    show::table_with_lines(&["order", "source", "destination", "stage"], &orders.iter().map(row).collect::<Vec<_>>())?;
    if orders.iter().any(|row| matches!(row, Row::Order(order) if order.stated.is_some())) {
        show::field("stated", "a stage with * is only the service's word: look at your address")?;
    }
    for row in orders {
        if let Row::Unreadable(Unreadable { order_id, error }) = row {
            show::field("cannot be read", &format!("{}: {}", order_id.as_deref().unwrap_or("?"), error.message))?;
        }
    }
    Ok(())
}

/// Cuts an amount for the list after eight decimals. The JSON output has all of them.
fn brief(whole: &str) -> String {
    match whole.split_once('.') {
        Some((units, decimals)) if decimals.len() > 8 => format!("{units}.{}…", decimals.get(..8).unwrap_or(decimals)),
        _ => whole.to_owned(),
    }
}

/// Reads an order's directory; `None` for a directory without documents, whose creation was interrupted at once.
///
/// # Errors
///
/// The order, and why it cannot be read.
pub(crate) fn read(state: &State, order: &Result<OrderDir, Error>) -> Result<Option<Stored>, Unreadable> {
    let order = order.as_ref().map_err(|error| Unreadable::new(None, format!("{}; {}", chain(error), error.advice())))?;
    let failed = |message: String| Err(Unreadable::new(Some(order.id().to_owned()), message));
    let id = match OrderId::parse(order.id()) {
        Ok(id) => id,
        Err(error) => return failed(chain(&error)),
    };
    match at_once(state.store.load(&id)) {
        Ok(kept) => return Ok(Some(Stored::Created(Box::new(kept)))),
        Err(StoreError::Unknown(_)) => {}
        Err(error) => return failed(state.unreadable(&id, &error)),
    }
    match (RestoredOrder::read(order), order.documents()) {
        (Ok(Some(restored)), _) => Ok(Some(Stored::Restored(Box::new(restored)))),
        (Err(error), _) => failed(Failure::from(error).message()),
        (Ok(None), Ok(documents)) if documents.is_empty() => Ok(None),
        (Ok(None), Ok(_)) => failed(
            "its creation or restoration was interrupted, and nothing was paid from here; restore it again, or remove its directory"
                .to_owned(),
        ),
        (Ok(None), Err(error)) => failed(chain(&error)),
    }
}

/// Returns the row of an order's directory; `None` for a directory without documents.
fn row(state: &State, order: &Result<OrderDir, Error>, registry: Option<&Registry>, digits: usize, session: &Session) -> Option<Row> {
    let (stored, order) = match (read(state, order), order) {
        (Ok(stored), Ok(order)) => (stored?, order),
        (Err(unreadable), _) => return Some(Row::Unreadable(unreadable)),
        (Ok(_), Err(_)) => return None,
    };
    let (stated, short) = (noted(state, order), id::short(order.id(), digits).to_owned());
    Some(Row::Order(Box::new(match stored {
        Stored::Created(kept) => created_here(&kept, stated, short, registry, session),
        Stored::Restored(restored) => rebuilt(&restored, stated, short, registry, session),
    })))
}

/// Returns the end that was noted for an order. A note that cannot be read is none: no command depends on it.
fn noted(state: &State, order: &OrderDir) -> Option<StatedEnd> {
    state.stated(order).ok().flatten()
}

/// Returns the row of one order that was created here.
pub(crate) fn of(state: &State, kept: &OrderState, session: &Session) -> Result<Order, Failure> {
    let digits = id::digits(state.store.order_ids()?.iter().map(String::as_str));
    let order = state.store.open_order(kept.swap.id().as_str())?;
    Ok(created_here(kept, noted(state, &order), id::short(order.id(), digits).to_owned(), None, session))
}

impl Order {
    /// Returns how the order ended, or how far it is, each with its label: the stage, then the transactions that were signed here.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let stated = if self.stated.is_some() { ", as the service states it: look at your address" } else { "" };
        let stage = ("stage", format!("{}{stated}", self.stage.name()));
        [stage].into_iter().chain(self.transactions.iter().map(|Signed { role, id }| (*role, id.clone()))).collect()
    }

    /// Prints how the order ended, or what to do next.
    pub(crate) fn print(&self) -> io::Result<()> {
        self.facts().iter().try_for_each(|(label, text)| show::field(label, text))?;
        self.next.iter().try_for_each(|next| show::field("next", next))
    }
}

fn created_here(kept: &OrderState, stated: Option<StatedEnd>, short_id: String, registry: Option<&Registry>, session: &Session) -> Order {
    // The decimals that were pinned for the order are as good as any.
    let registry = registry.or_else(|| kept.pins.as_ref().map(|pins| &pins.registry));
    let done = |purpose, sendables: &[Delivery]| {
        if sendables.iter().any(|what| kept.was_sent(*what)) {
            Done::Sent
        } else if sendables.iter().any(|what| kept.may_be_sent(*what)) {
            Done::MaybeSent
        } else if kept.signed(purpose).is_some() {
            Done::Signed
        } else {
            Done::No
        }
    };
    let request = kept.swap.request();
    let funding = done(Purpose::Funding, &[Delivery::Funding, Delivery::Gasless]);
    let redemption = done(Purpose::Redemption, &[Delivery::Redemption, Delivery::Secret]);
    let refund = done(Purpose::Refund, &[Delivery::Refund, Delivery::RefundRequest]);
    let (id, stage) = (kept.swap.id(), Stage::new(kept, funding, refund, stated));
    let finished = matches!(stage, Stage::Complete | Stage::Refunded | Stage::Expired | Stage::Lost);
    let next = match stage {
        Stage::Complete | Stage::Refunded | Stage::Expired => None,
        Stage::Lost => Some(session.commands.with_places(&["order", "show", id.as_str()])),
        _ => Some(session.commands.resume(id)),
    };
    let signed = [Purpose::Redemption, Purpose::Refund, Purpose::Funding].into_iter().filter_map(|purpose| kept.signed(purpose));
    let transactions = signed.flat_map(|(transactions, _)| transactions.iter().rev());
    Order {
        order_id: id.to_string(),
        short_id,
        transactions: transactions.map(|one| Signed { role: one.role.name(), id: one.id.clone() }).collect(),
        source: leg(&request.source.asset, request.source.amount, registry),
        destination: leg(&request.destination.asset, request.destination.amount, registry),
        stage,
        finished,
        secret_kept: kept.own_secret().is_some(),
        secret_left: kept.secret_left(),
        funding,
        redemption,
        refund,
        // A loss that is only stated changes nothing: it is the stage that the journal has.
        stated: stated.filter(|end| kept.outcome().is_none() && *end != StatedEnd::Lost).map(StatedEnd::name),
        next,
        then: Vec::new(),
    }
}

fn rebuilt(restored: &RestoredOrder, noted: Option<StatedEnd>, short_id: String, registry: Option<&Registry>, session: &Session) -> Order {
    let record = &restored.record;
    let recorded = match (record.destination_swap.is_redeemed(), record.source_swap.is_refunded()) {
        (true, _) => Some(StatedEnd::Complete),
        (false, true) => Some(StatedEnd::Refunded),
        (false, false) => None,
    };
    // Whether it was paid from elsewhere is not known here, so that nothing was paid is no end of it.
    let noted = noted.filter(|end| *end != StatedEnd::Expired);
    let stated = noted.or(recorded.filter(|end| end.agrees_with_secret(record, None)));
    let side = |swap: &SwapRecord| leg(&swap.asset, swap.amount, registry);
    // The record is only the service's word from the time of the restoration, so an order that was unpaid then may be paid now.
    let mut then = vec![session.commands.with_places(&["refund", "--self", &record.order_id])];
    if restored.secret.is_some() {
        then.insert(0, session.commands.with_places(&["redeem", "--self", &record.order_id]));
    }
    let next = session.commands.with_places(&["order", "show", &record.order_id]);
    Order {
        order_id: record.order_id.clone(),
        short_id,
        transactions: Vec::new(),
        source: side(&record.source_swap),
        destination: side(&record.destination_swap),
        stage: stated.map_or(Stage::Restored, Stage::stated),
        // An end by the service's word alone hides no command.
        finished: false,
        secret_kept: restored.secret.is_some(),
        secret_left: None,
        funding: Done::No,
        redemption: Done::No,
        refund: Done::No,
        stated: stated.map(StatedEnd::name),
        next: Some(next),
        then,
    }
}

fn leg(asset: &AssetId, amount: U256, registry: Option<&Registry>) -> Leg {
    let pinned = registry.and_then(|registry| registry.asset(asset.as_str()));
    Leg { asset: asset.to_string(), amount: amount.to_string(), whole_units: pinned.map(|pinned| pinned.amount(amount).whole_units()) }
}
