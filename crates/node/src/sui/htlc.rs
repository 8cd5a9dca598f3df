//! Reads the state of one HTLC from every endpoint.

use countersign::sui::address::to_account;
use countersign::sui::htlc as contract;
use countersign::sui::read::{self, HtlcEvent, StoredOrder};
use countersign::sui::sui_sdk_types::{Address, Digest, TypeTag};
use countersign::{Code, HtlcState, HtlcTerms, LockedHtlc, Refusal, SecretHash, SeenAt, U256, number};
use countersign_client::Transport;

use super::grpc::NOT_FOUND;
use super::messages::{Event, ExecutedTransaction, FieldMask, GetTransactionRequest, Object};
use super::{Checkpoint, SuiChain, digest, missing, newest, objects, pinned};
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::Head;
use crate::quorum::{Sighting, agree, combine};

/// The fields that are read of an object.
const OBJECT: [&str; 7] = ["object_id", "version", "digest", "object_type", "contents", "previous_transaction", "package"];
/// The fields that are read of the transaction that last changed the order.
const TRANSACTION: [&str; 3] = ["digest", "checkpoint", "events"];
/// The maximum number of events in one transaction (Sui's `max_num_event_emit`).
const MAX_EVENTS: usize = 1024;

/// Where an order is stored, and the terms that it must have.
struct OrderQuery {
    package: Address,
    coin_type: TypeTag,
    token_text: Option<String>,
    /// The order's id in the record.
    id: [u8; 32],
    /// The objects that may hold the order: first that of the record's id, then those of the other ids that follow from the terms.
    fields: Vec<Address>,
    /// Whether the record's id follows from the terms, so that an order under it has the expected secret hash.
    is_id_proven: bool,
    secret_hash: SecretHash,
}

/// What one endpoint reports.
struct View {
    /// The state with an elapsed time of 0. The elapsed time differs between endpoints, so it is kept apart.
    state: HtlcState,
    /// The version and digest of the object that holds the order; `None` if there is none.
    origin: Option<(u64, Digest)>,
    head: Checkpoint,
    elapsed: u64,
    depth: u64,
}

impl View {
    fn sighting(self) -> Sighting {
        let head = Head::new(self.head.height, self.head.hash(), self.head.seconds());
        let Self { state, depth, elapsed, .. } = self;
        let is_final = depth > 0;
        Sighting { state, head, depth, elapsed, is_safe: is_final, is_finalized: is_final }
    }
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
        let (mut fields, mut is_id_proven) = (vec![read::field_id(registry, &id)], false);
        for candidate in read::order_ids(terms, registry) {
            if candidate == id {
                is_id_proven = true;
            } else {
                fields.push(read::field_id(registry, &candidate));
            }
        }
        let (token_text, secret_hash) = (terms.token.clone(), terms.secret_hash);
        Ok(Self { package, coin_type, token_text, id, fields, is_id_proven, secret_hash })
    }
}

impl<'n, T: Transport> SuiChain<'n, T> {
    /// Reads the state of one HTLC from every endpoint, at the endpoint's newest checkpoint. The endpoints must agree.
    ///
    /// The state comes from the order that the pinned registry stores. The order must have the type that the pinned package defines, and
    /// the expected coin. How an order ended comes from the event of the transaction that last changed it. Without the event, the state is
    /// [`HtlcState::Unclear`]. A transaction in a checkpoint is final.
    ///
    /// The order is read under the id in the record. If the registry has an order under another id that follows from the terms, the state
    /// is unclear, because a call with the record's id would fail.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the terms contain an invalid address or swap id. Returns another [`NodeError`] if no endpoint
    /// answers or too few of them agree. The state is then unknown.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        let query = OrderQuery::new(terms)?;
        let views = self.connection.each(|caller| self.view(caller, &query)).await;
        let needed = self.connection.needed();
        let views = agree(views, needed, |view| (view.state.clone(), view.origin))?;
        let sightings = views.into_iter().map(View::sighting).collect();
        combine(sightings, needed).ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }

    async fn view(&self, caller: Caller<'n, T>, query: &OrderQuery) -> Result<View, NodeError> {
        self.identify(caller).await?;
        let mut ids = query.fields.clone();
        ids.push(query.package);
        let mut found = objects(caller, &ids, &OBJECT).await?;
        let package = found.pop().flatten();
        let mut found = found.into_iter();
        let (recorded, others) = (found.next().flatten(), found.flatten().count());
        let order = match judge(query, package, recorded.as_ref(), others) {
            Ok(Some(order)) => order,
            other => {
                let state = other.map_or_else(HtlcState::Unclear, |_| HtlcState::Absent);
                let head = newest(caller).await?;
                return Ok(View { state, origin: None, head, elapsed: 0, depth: 0 });
            }
        };
        // `judge` has found an order in this object.
        let object = recorded.unwrap_or_default();
        let version = object.version.ok_or_else(|| missing(caller, "/object/version"))?;
        let origin = Some((version, digest(caller, object.digest, "/object/digest")?));
        let id = digest(caller, object.previous_transaction, "/object/previous_transaction")?;
        let transaction = transaction(caller, id, &TRANSACTION).await?.ok_or_else(|| {
            let words = "the node does not know the transaction that last changed the order, or has pruned it";
            NodeError::rpc(caller.endpoint.host(), NOT_FOUND, words, None)
        })?;
        let head = newest(caller).await?;
        let depth = depth(caller, &transaction, &head)?;
        let elapsed = head.time.checked_sub(order.initiated_at).ok_or_else(|| {
            let reason = "the order was initiated after the newest checkpoint";
            caller.malformed(Refusal::new(Code::NumberTooLarge, "/object/contents").with_reason(reason))
        })?;
        let events = transaction.events.map(|events| events.events).unwrap_or_default();
        let state = state(query, &order, &events, id);
        Ok(View { state, origin, head, elapsed, depth })
    }
}

/// Returns the depth of a transaction's checkpoint: 1 in the newest one, 0 while the transaction is not in a checkpoint.
fn depth<T: Transport>(caller: Caller<'_, T>, transaction: &ExecutedTransaction, head: &Checkpoint) -> Result<u64, NodeError> {
    let Some(checkpoint) = transaction.checkpoint else { return Ok(0) };
    let below = head.height.checked_sub(checkpoint).ok_or_else(|| {
        let reason = "the transaction is in a checkpoint after the newest one";
        caller.malformed(Refusal::new(Code::NumberTooLarge, "/transaction/checkpoint").with_reason(reason))
    })?;
    Ok(below.saturating_add(1))
}

/// Reads a transaction; `None` if the node does not know it.
pub(super) async fn transaction<T: Transport>(
    caller: Caller<'_, T>,
    id: Digest,
    members: &[&str],
) -> Result<Option<ExecutedTransaction>, NodeError> {
    let request = GetTransactionRequest { digest: Some(id.to_base58()), read_mask: FieldMask::new(members) };
    let transaction = match caller.grpc(&request).await {
        Ok(answer) => answer.transaction.ok_or_else(|| missing(caller, "/transaction"))?,
        Err(NodeError::Rpc { code: NOT_FOUND, .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    check_digest(caller, &transaction, id)?;
    Ok(Some(transaction))
}

/// Requires that a transaction is the requested one.
pub(super) fn check_digest<T: Transport>(caller: Caller<'_, T>, transaction: &ExecutedTransaction, id: Digest) -> Result<(), NodeError> {
    let actual = digest(caller, transaction.digest.clone(), "/transaction/digest")?;
    if actual == id {
        return Ok(());
    }
    let refusal = Refusal::new(Code::TransactionMismatch, "/transaction/digest");
    Err(caller.malformed(refusal.with_expected(id.to_base58()).with_actual(actual.to_base58())))
}

/// Decodes the order under the record's id; `None` if there is none. The error says why the state is unclear.
fn judge(query: &OrderQuery, package: Option<Object>, recorded: Option<&Object>, others: usize) -> Result<Option<StoredOrder>, String> {
    let unclear = |why: &str| Err(why.to_owned());
    let Some(package) = package.and_then(|object| object.package) else { return unclear("the pinned package does not exist") };
    let object = match (recorded, others) {
        (Some(object), 0) => object,
        (None, 0) => return Ok(None),
        (None, _) => return unclear("the order has another id than the record"),
        (Some(_), _) => return unclear("there are two orders with these terms"),
    };
    let contents = object.contents.as_ref().and_then(|contents| contents.value.as_deref()).unwrap_or_default();
    let object_type = object.object_type.as_deref().unwrap_or_default();
    let order = read::order(object_type, contents).map_err(|why| why.to_string())?;
    // A type keeps the id of the package version that defined it, even after an upgrade.
    let defines = |package: &str| package.parse::<Address>() == Ok(order.package);
    let is_origin = order.package == query.package
        || package.type_origins.iter().any(|origin| {
            (origin.module_name.as_deref(), origin.datatype_name.as_deref()) == (Some(contract::MODULE), Some(read::ORDER))
                && origin.package_id.as_deref().is_some_and(defines)
        });
    if !is_origin {
        return unclear("the order belongs to another package than the pinned one");
    }
    if order.coin_type != query.coin_type {
        return unclear("the order holds another coin than the pinned one");
    }
    if order.order_id != query.id || query.fields.first() != Some(&order.field) {
        return unclear("the object holds another order");
    }
    Ok(Some(order))
}

/// Returns the state of an order, with the events of the transaction that last changed it.
fn state(query: &OrderQuery, order: &StoredOrder, events: &[Event], transaction: Digest) -> HtlcState {
    let unclear = |why: &str| HtlcState::Unclear(why.to_owned());
    let mut own_events = Vec::new();
    for event in events.iter().take(MAX_EVENTS) {
        let contents = event.contents.as_ref().and_then(|contents| contents.value.as_deref()).unwrap_or_default();
        match read::event(event.event_type.as_deref().unwrap_or_default(), order.package, contents) {
            Ok(Some(event)) if *event.order_id() == query.id => own_events.push(event),
            Ok(_) => {}
            Err(why) => return unclear(&why.to_string()),
        }
    }
    let transaction = Some(transaction.to_base58());
    match (order.has_ended, own_events.as_slice()) {
        (true, [event]) => event.end(query.secret_hash, transaction),
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
    let proven = query.is_id_proven.then_some(query.secret_hash);
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
