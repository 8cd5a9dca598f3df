//! The state of one HTLC, as every endpoint tells it.

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

/// What is read of an object.
const OBJECT: [&str; 7] = ["object_id", "version", "digest", "object_type", "contents", "previous_transaction", "package"];
/// What is read of the transaction that last changed the order.
const TRANSACTION: [&str; 3] = ["digest", "checkpoint", "events"];
/// Most events that are read of one transaction (Sui's `max_num_event_emit`).
const MAX_EVENTS: usize = 1024;

/// Where an order is, and what it must be.
struct Question {
    package: Address,
    coin_type: TypeTag,
    token_text: Option<String>,
    /// The id that the record has.
    id: [u8; 32],
    /// The objects that may hold the order: the one of the record's id, and those of the ids that follow from the terms.
    fields: Vec<Address>,
    /// Whether the record's id follows from the terms, so that an order under it has the expected secret hash.
    is_id_proven: bool,
    secret_hash: SecretHash,
}

/// What one endpoint says.
struct View {
    /// With 0 in place of what has passed of the timelock, which differs from endpoint to endpoint.
    state: HtlcState,
    /// Version and digest of the object that holds the order; `None` where there is none.
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

impl Question {
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
    /// Reads the state of one HTLC from every endpoint, at its newest checkpoint.
    ///
    /// Locked and ended orders are those that the pinned registry itself stores, of the type that the pinned package defined, with
    /// the coin that is expected. How an order ended is told by the event of the transaction that last changed it; without it the
    /// state is [`HtlcState::Unclear`]. What is in a checkpoint is final.
    ///
    /// The order's id is the record's. Where the terms give another id, and the registry has an order under that one, the state is
    /// unclear: a call with the record's id would fail.
    ///
    /// # Errors
    ///
    /// [`NodeError`]; a failed read tells nothing.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        let question = Question::new(terms)?;
        let views = self.connection.each(|caller| self.view(caller, &question)).await;
        let needed = self.connection.needed();
        let views = agree(views, needed, |view| (view.state.clone(), view.origin))?;
        let sightings = views.into_iter().map(View::sighting).collect();
        combine(sightings, needed).ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }

    async fn view(&self, caller: Caller<'n, T>, question: &Question) -> Result<View, NodeError> {
        self.identify(caller).await?;
        let mut ids = question.fields.clone();
        ids.push(question.package);
        let mut found = objects(caller, &ids, &OBJECT).await?;
        let package = found.pop().flatten();
        let mut found = found.into_iter();
        let (recorded, others) = (found.next().flatten(), found.flatten().count());
        let order = match judge(question, package, recorded.as_ref(), others) {
            Ok(Some(order)) => order,
            other => {
                let state = other.map_or_else(HtlcState::Unclear, |_| HtlcState::Absent);
                let head = newest(caller).await?;
                return Ok(View { state, origin: None, head, elapsed: 0, depth: 0 });
            }
        };
        // `judge` has found an order in it.
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
        let state = state(question, &order, &events, id);
        Ok(View { state, origin, head, elapsed, depth })
    }
}

/// Returns how deep the checkpoint of a transaction is: 1 in the newest one, 0 where it is in none yet.
fn depth<T: Transport>(caller: Caller<'_, T>, transaction: &ExecutedTransaction, head: &Checkpoint) -> Result<u64, NodeError> {
    let Some(checkpoint) = transaction.checkpoint else { return Ok(0) };
    let below = head.height.checked_sub(checkpoint).ok_or_else(|| {
        let reason = "the transaction is in a checkpoint after the newest one";
        caller.malformed(Refusal::new(Code::NumberTooLarge, "/transaction/checkpoint").with_reason(reason))
    })?;
    Ok(below.saturating_add(1))
}

/// Asks for a transaction; `None` if the node does not know it.
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

/// Requires that a transaction is the one that was asked for.
pub(super) fn check_digest<T: Transport>(caller: Caller<'_, T>, transaction: &ExecutedTransaction, id: Digest) -> Result<(), NodeError> {
    let actual = digest(caller, transaction.digest.clone(), "/transaction/digest")?;
    if actual == id {
        return Ok(());
    }
    let refusal = Refusal::new(Code::TransactionMismatch, "/transaction/digest");
    Err(caller.malformed(refusal.with_expected(id.to_base58()).with_actual(actual.to_base58())))
}

/// Decodes the order under the record's id; `None` if there is none. The error says why it cannot be judged.
fn judge(question: &Question, package: Option<Object>, recorded: Option<&Object>, others: usize) -> Result<Option<StoredOrder>, String> {
    let unclear = |why: &str| Err(why.to_owned());
    let Some(package) = package.and_then(|object| object.package) else { return unclear("the pinned package does not exist") };
    let object = match (recorded, others) {
        (Some(object), 0) => object,
        (None, 0) => return Ok(None),
        (None, _) => return unclear("the order has another id than the record says"),
        (Some(_), _) => return unclear("there are two orders with these terms"),
    };
    let contents = object.contents.as_ref().and_then(|contents| contents.value.as_deref()).unwrap_or_default();
    let object_type = object.object_type.as_deref().unwrap_or_default();
    let order = read::order(object_type, contents).map_err(|why| why.to_string())?;
    // Types keep the id of the package that defined them, also after it was upgraded.
    let defines = |package: &str| package.parse::<Address>() == Ok(order.package);
    let is_origin = order.package == question.package
        || package.type_origins.iter().any(|origin| {
            (origin.module_name.as_deref(), origin.datatype_name.as_deref()) == (Some(contract::MODULE), Some(read::ORDER))
                && origin.package_id.as_deref().is_some_and(defines)
        });
    if !is_origin {
        return unclear("the order is of another package than the pinned one");
    }
    if order.coin_type != question.coin_type {
        return unclear("the order holds another coin than the pinned one");
    }
    if order.order_id != question.id || question.fields.first() != Some(&order.field) {
        return unclear("the object holds another order");
    }
    Ok(Some(order))
}

/// Returns the state of an order, with what the transaction that last changed it says.
fn state(question: &Question, order: &StoredOrder, events: &[Event], transaction: Digest) -> HtlcState {
    let unclear = |why: &str| HtlcState::Unclear(why.to_owned());
    let mut told = Vec::new();
    for event in events.iter().take(MAX_EVENTS) {
        let contents = event.contents.as_ref().and_then(|contents| contents.value.as_deref()).unwrap_or_default();
        match read::event(event.event_type.as_deref().unwrap_or_default(), order.package, contents) {
            Ok(Some(event)) if event.order_id() == question.id => told.push(event),
            Ok(_) => {}
            Err(why) => return unclear(&why.to_string()),
        }
    }
    let transaction = Some(transaction.to_base58());
    match (order.has_ended, told.as_slice()) {
        (true, [HtlcEvent::Redeemed { secret, .. }]) if SecretHash::of(secret) == question.secret_hash => {
            HtlcState::Redeemed { secret: Some(*secret), transaction }
        }
        (true, [HtlcEvent::Redeemed { .. }]) => unclear("the order was redeemed with another secret"),
        (true, [HtlcEvent::Refunded { .. }]) => HtlcState::Refunded { transaction },
        (true, []) => unclear("the order has ended, and no event says how"),
        (true, _) => unclear("the order has ended more than once"),
        (false, told) => match locked(question, order, told) {
            Ok(locked) => HtlcState::Locked(locked),
            Err(why) => unclear(why),
        },
    }
}

/// Returns an open order. Nothing changes one between its funding and its end, so that its event is that of the funding.
fn locked(question: &Question, order: &StoredOrder, told: &[HtlcEvent]) -> Result<LockedHtlc, &'static str> {
    let announced = match told {
        [] => None,
        [HtlcEvent::Initiated { secret_hash, amount, .. }] if *amount == order.amount => Some(*secret_hash),
        _ => return Err("the events contradict the order"),
    };
    let proven = question.is_id_proven.then_some(question.secret_hash);
    if announced.is_some_and(|hash| proven.is_some_and(|proven| proven != hash)) {
        return Err("the events contradict the order");
    }
    let (initiator, redeemer) = (to_account(order.initiator), to_account(order.redeemer));
    let locked = LockedHtlc::new(initiator, redeemer, U256::from(order.amount), order.timelock, 0)
        .with_token(question.token_text.clone())
        .with_covered(order.balance >= order.amount);
    Ok(match proven.or(announced) {
        Some(hash) => locked.with_secret_hash(hash),
        None => locked,
    })
}
