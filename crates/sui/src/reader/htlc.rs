//! Reads the state of one HTLC.

use countersign_core::reader::{Fault, Identity, Known, Machine, Reader, Replies, Request, RpcError, Turn};
use countersign_core::{BlockHeight, Code, Finding, HtlcState, HtlcTerms, LockedHtlc, ObservedAt, Refusal, SecretHash, U256, number};
use sui_sdk_types::{Address, Digest, TypeTag};

use super::fields::{event, events, object, package, transaction, type_origin};
use super::proto::Message;
use super::{Checkpoint, digest, grpc, identity, objects, pinned};
use crate::address::to_account;
use crate::htlc as contract;
use crate::read::{self, HtlcEvent, StoredOrder};

/// The fields that are read of an object.
const OBJECT: [&str; 7] = ["object_id", "version", "digest", "object_type", "contents", "previous_transaction", "package"];
/// The fields that are read of the transaction that last changed the order.
const TRANSACTION: [&str; 3] = ["digest", "checkpoint", "events"];
/// The maximum number of events in one transaction (Sui's `max_num_event_emit`).
const MAX_EVENTS: usize = 1024;
/// The maximum number of types that a package defines. The contract has fewer than ten.
const MAX_TYPES: usize = 1024;

/// Reads an HTLC from one endpoint.
pub type HtlcReader = Reader<Htlc>;

/// Reads the state of one HTLC at the endpoint's newest checkpoint.
///
/// The state comes from the order that the pinned registry stores. The order must have the type that the pinned package defines, and the
/// expected coin. How an order ended comes from the event of the transaction that last changed it. Without the event, the state is
/// [`HtlcState::Unclear`]. A transaction in a checkpoint is final.
///
/// The order is read under the id in the record. If the registry has an order under another id that follows from the terms, the state is
/// unclear, because a call with the record's id would fail.
///
/// It takes three rounds, and two if there is no such order. Endpoints agree on the version and the digest of the object.
///
/// Specification: `docs/spec/sui.md#reading-an-order`.
#[derive(Debug)]
pub struct Htlc {
    query: OrderQuery,
    identity: Identity,
    known: Known,
    state: State,
}

/// What the machine waits for.
#[derive(Debug)]
enum State {
    /// The objects that may hold the order, and the package.
    Objects,
    /// The transaction that last changed the order.
    Transaction(Change),
    /// The newest checkpoint, which completes `Found`.
    Newest(Found),
    /// Nothing: the newest checkpoint had this height.
    Ended(BlockHeight),
}

/// An order, and the transaction that last changed it.
#[derive(Debug)]
struct Change {
    order: StoredOrder,
    /// The version and the digest of the object that holds the order.
    origin: Vec<u8>,
    transaction: Digest,
}

/// What is known before the newest checkpoint is.
#[derive(Debug)]
struct Found {
    /// The state with an elapsed time of 0.
    state: HtlcState,
    origin: Vec<u8>,
    /// When the order was initiated, in Unix milliseconds; `None` if there is no order.
    initiated_at: Option<u64>,
    /// The checkpoint of the transaction that last changed the order.
    checkpoint: Option<BlockHeight>,
}

/// Where an order is stored, and the terms that it must have.
#[derive(Debug)]
struct OrderQuery {
    package: Address,
    coin_type: TypeTag,
    token_text: Option<String>,
    /// The order's id in the record.
    id: [u8; 32],
    /// The object that holds an order with the record's id.
    field: Address,
    /// The objects that are requested: `field`, those of the other ids that follow from the terms, and the package.
    objects: Vec<Address>,
    /// Whether the record's id follows from the terms, so that an order under it has the expected secret hash.
    id_commits_to_hash: bool,
    secret_hash: SecretHash,
}

/// Returns the object that stores the order of these terms: a dynamic field of the pinned registry, by the record's id.
///
/// # Errors
///
/// [`Code::AddressMalformed`] or a code for malformed hex if the terms do not name one.
pub fn field_of(terms: &HtlcTerms) -> Result<Address, Refusal> {
    Ok(OrderQuery::new(terms)?.field)
}

impl OrderQuery {
    fn new(terms: &HtlcTerms) -> Result<Self, Refusal> {
        let (package, registry) = (pinned(terms.htlc.as_ref(), "/htlc")?, pinned(terms.htlc_registry.as_ref(), "/htlc_registry")?);
        let coin_type = match &terms.token {
            Some(text) => text.parse().map_err(|_| Refusal::new(Code::AddressMalformed, "/token").with_actual(text))?,
            None => contract::sui(),
        };
        let id = number::bare_hex_array(terms.swap_id.strip_prefix("0x").unwrap_or(&terms.swap_id));
        let id = id.map_err(|error| Refusal::new(error, "/swap_id"))?;
        let field = read::field_id(registry, &id);
        let (mut objects, mut id_commits_to_hash) = (vec![field], false);
        for candidate in read::order_ids(terms, registry) {
            if candidate == id {
                id_commits_to_hash = true;
            } else {
                objects.push(read::field_id(registry, &candidate));
            }
        }
        objects.push(package);
        let (token_text, secret_hash) = (terms.token.clone(), terms.secret_hash);
        Ok(Self { package, coin_type, token_text, id, field, objects, id_commits_to_hash, secret_hash })
    }
}

impl Machine for Htlc {
    type Subject = HtlcTerms;
    type Output = Finding;
    const MAX_ROUNDS: usize = 3;

    fn start(terms: &HtlcTerms, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let query = OrderQuery::new(terms)?;
        let first = objects::request(&query.objects, &OBJECT);
        Ok((Self { query, identity: identity(&terms.network)?, known: known.clone(), state: State::Objects }, vec![first]))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Finding>, Fault> {
        let reply = replies.get(0)?;
        match std::mem::replace(&mut self.state, State::Ended(BlockHeight::default())) {
            State::Objects => {
                let objects = objects::read(&reply, &self.query.objects)?;
                self.objects(&objects)
            }
            State::Transaction(change) => {
                let executed = objects::read_transaction(&reply, change.transaction)?.ok_or_else(|| {
                    let words = "the node does not know the transaction that last changed the order, or has pruned it";
                    Fault::Rpc(RpcError::new(grpc::NOT_FOUND, words, None))
                })?;
                self.transaction(change, executed)
            }
            State::Newest(found) => {
                let newest = Checkpoint::read(&reply, &self.known)?;
                self.state = State::Ended(newest.height);
                found.at(&newest).map(Turn::Done)
            }
            State::Ended(_) => Err(Fault::TooMuch("the reading has ended")),
        }
    }

    fn learned(&self) -> Known {
        let height = if let State::Ended(height) = self.state { height } else { BlockHeight::default() };
        Known::default().with_height(height)
    }
}

impl Htlc {
    fn objects(&mut self, objects: &[Option<Message<'_>>]) -> Result<Turn<Finding>, Fault> {
        let order = match judge(&self.query, objects)? {
            Ok(Some(order)) => order,
            other => {
                let state = other.map_or_else(HtlcState::Unclear, |_| HtlcState::Absent);
                return Ok(self.newest(Found { state, origin: Vec::new(), initiated_at: None, checkpoint: None }));
            }
        };
        // `judge` has found an order in this object.
        let holder = objects.first().copied().flatten().ok_or_else(|| object::CONTENTS.missing())?;
        let version: u64 = holder.need(object::VERSION)?;
        let origin = [&version.to_be_bytes()[..], digest(holder.need(object::DIGEST)?, object::DIGEST)?.as_bytes()].concat();
        let transaction = digest(holder.need(object::PREVIOUS_TRANSACTION)?, object::PREVIOUS_TRANSACTION)?;
        self.state = State::Transaction(Change { order, origin, transaction });
        Ok(Turn::Ask(vec![objects::request_transaction(transaction, &TRANSACTION)]))
    }

    fn transaction(&mut self, change: Change, executed: Message<'_>) -> Result<Turn<Finding>, Fault> {
        let Change { order, origin, transaction } = change;
        let checkpoint = executed.get::<u64>(transaction::CHECKPOINT)?.map(BlockHeight::from);
        let all = executed.get::<Message<'_>>(transaction::EVENTS)?;
        let all = all.map(|all| all.all(events::EVENTS, MAX_EVENTS)).transpose()?.unwrap_or_default();
        let state = match own_events(&self.query, &order, &all)? {
            Ok(own) => state(&self.query, &order, &own, transaction),
            Err(why) => HtlcState::Unclear(why),
        };
        Ok(self.newest(Found { state, origin, initiated_at: Some(order.initiated_at), checkpoint }))
    }

    /// Asks for the newest checkpoint. It is the last request, so that it is not older than anything that was read.
    fn newest(&mut self, found: Found) -> Turn<Finding> {
        self.state = State::Newest(found);
        Turn::Ask(vec![Checkpoint::newest()])
    }
}

impl Found {
    /// Completes the finding with the time and the height of the newest checkpoint.
    fn at(self, newest: &Checkpoint) -> Result<Finding, Fault> {
        let ahead = |at: &str, reason: &'static str| Fault::Malformed(Refusal::new(Code::NumberTooLarge, at).with_reason(reason));
        // The depth is 1 in the newest checkpoint, and 0 while the transaction is not in a checkpoint.
        let depth = match self.checkpoint {
            Some(checkpoint) => {
                let below = newest.height.blocks_since(checkpoint);
                let reason = "the transaction is in a checkpoint after the newest one";
                below.ok_or_else(|| ahead(transaction::CHECKPOINT.1, reason))?.saturating_add(1)
            }
            None => 0,
        };
        let elapsed = newest.time.checked_sub(self.initiated_at.unwrap_or_default());
        let elapsed = elapsed.ok_or_else(|| ahead(object::CONTENTS.1, "the order was initiated after the newest checkpoint"))?;
        let state = match self.state {
            HtlcState::Locked(locked) => HtlcState::Locked(locked.with_elapsed(elapsed, elapsed)),
            other => other,
        };
        let (head, is_final) = (newest.head(), depth > 0);
        let seen = ObservedAt::new(head.height, head.hash, head.time, depth).with_finalized(is_final);
        Ok(Finding::new(state, seen).with_origin(self.origin))
    }
}

/// Decodes the order under the record's id; `None` if there is none. The inner error says why the state is unclear.
fn judge(query: &OrderQuery, objects: &[Option<Message<'_>>]) -> Result<Result<Option<StoredOrder>, String>, Fault> {
    let unclear = |why: &str| Ok(Err(why.to_owned()));
    let (Some((recorded, others)), Some(last)) = (objects.split_first(), objects.last().copied().flatten()) else {
        return unclear("the pinned package does not exist");
    };
    let Some(package) = last.get::<Message<'_>>(object::PACKAGE)? else { return unclear("the pinned package does not exist") };
    // The last object is the package.
    let holder = match (recorded, others.iter().flatten().count()) {
        (Some(object), 1) => object,
        (None, 1) => return Ok(Ok(None)),
        (None, _) => return unclear("the order has another id than the record"),
        (Some(_), _) => return unclear("there are two orders with these terms"),
    };
    let object_type = holder.get(object::OBJECT_TYPE)?.unwrap_or_default();
    let order = match read::order(object_type, objects::contents(*holder, object::CONTENTS)?) {
        Ok(order) => order,
        Err(why) => return Ok(Err(why.to_string())),
    };
    if order.package != query.package && !is_origin(package, order.package)? {
        return unclear("the order belongs to another package than the pinned one");
    }
    if order.coin_type != query.coin_type {
        return unclear("the order holds another coin than the pinned one");
    }
    if order.order_id != query.id || order.field != query.field {
        return unclear("the object holds another order");
    }
    Ok(Ok(Some(order)))
}

/// Returns whether the type of orders that a package uses was defined by another package, of which it is an upgrade. A type keeps the id
/// of the package version that defined it.
fn is_origin(package: Message<'_>, defined_by: Address) -> Result<bool, Fault> {
    for origin in package.all(package::TYPE_ORIGINS, MAX_TYPES)? {
        let (module, name) = (origin.get::<&str>(type_origin::MODULE_NAME)?, origin.get::<&str>(type_origin::DATATYPE_NAME)?);
        let id: Option<&str> = origin.get(type_origin::PACKAGE_ID)?;
        if (module, name) == (Some(contract::MODULE), Some(read::ORDER)) && id.and_then(|id| id.parse().ok()) == Some(defined_by) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the events about the order. The inner error says why the state is unclear.
fn own_events(query: &OrderQuery, order: &StoredOrder, all: &[Message<'_>]) -> Result<Result<Vec<HtlcEvent>, String>, Fault> {
    let mut own = Vec::new();
    for one in all {
        let event_type = one.get(event::EVENT_TYPE)?.unwrap_or_default();
        match read::event(event_type, order.package, objects::contents(*one, event::CONTENTS)?) {
            Ok(Some(event)) if *event.order_id() == query.id => own.push(event),
            Ok(_) => {}
            Err(why) => return Ok(Err(why.to_string())),
        }
    }
    Ok(Ok(own))
}

/// Returns the state of an order, with the events about it of the transaction that last changed it.
fn state(query: &OrderQuery, order: &StoredOrder, own: &[HtlcEvent], transaction: Digest) -> HtlcState {
    let unclear = |why: &str| HtlcState::Unclear(why.to_owned());
    match (order.has_ended, own) {
        (true, [event]) => event.end(query.secret_hash, Some(transaction.to_base58())),
        (true, []) => unclear("the order has ended, and no event shows how"),
        (true, _) => unclear("the order has ended more than once"),
        (false, events) => match locked(query, order, events) {
            Ok(locked) => HtlcState::Locked(locked),
            Err(why) => unclear(why),
        },
    }
}

/// Returns the state of an open order. Nothing changes an order between its funding and its end, so its event is the funding event.
fn locked(query: &OrderQuery, order: &StoredOrder, events: &[HtlcEvent]) -> Result<LockedHtlc, &'static str> {
    let announced = match events {
        [] => None,
        [HtlcEvent::Initiated { secret_hash, amount, .. }] if *amount == U256::from(order.amount) => Some(*secret_hash),
        _ => return Err("the events contradict the order"),
    };
    let proven = query.id_commits_to_hash.then_some(query.secret_hash);
    if announced.is_some_and(|hash| proven.is_some_and(|proven| proven != hash)) {
        return Err("the events contradict the order");
    }
    let (initiator, redeemer) = (to_account(order.initiator), to_account(order.redeemer));
    let locked = LockedHtlc::new(initiator, redeemer, U256::from(order.amount), order.timelock, 0)
        .with_token(query.token_text.clone())
        .with_covered(order.balance >= order.amount);
    Ok(match proven.or(announced) {
        Some(hash) => locked.with_secret_hash(hash),
        None => locked,
    })
}
