//! Reads the state of one HTLC from every endpoint.

use countersign::json::Node;
use countersign::starknet::address::{from_account, to_account};
use countersign::starknet::read::{self, Access, FELTS, HtlcEvent, Progress, StoredOrder};
use countersign::starknet::{Felt, StarknetGeneration, felt};
use countersign::{Code, HtlcState, HtlcTerms, LockedHtlc, Refusal, SecretHash, SeenAt, U256};
use countersign_client::Transport;
use serde_json::{Value, json};

use super::block::{self, Block, LATEST, ON_L1};
use super::events::{Event, EventFilter, Events};
use super::{MAX_ANSWER, StarknetChain, answer, balance_of, call, contract, felts, first, hex, is_of_contract, nth, parse};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::nodes::Head;
use crate::quorum::{Sighting, agree, combine};

/// Where an order is stored, and the terms that it must have.
pub(super) struct OrderQuery {
    pub(super) htlc: Felt,
    token: Felt,
    token_text: Option<String>,
    pub(super) id: Felt,
    pub(super) generation: StarknetGeneration,
    pub(super) secret_hash: SecretHash,
    /// Whether the id proves which secret hash locks the order. If not, the funding event must contain the hash.
    is_hash_proven: bool,
}

/// The newest block of one endpoint, and the newest that L1 has accepted.
struct Blocks {
    latest: Block,
    on_l1: Option<Block>,
}

/// What one endpoint reports.
struct View {
    /// The state with an elapsed time of 0. The elapsed time differs between endpoints, so it is kept apart.
    state: HtlcState,
    /// The hash of the block with the transaction that led to the state; `None` if there is none.
    origin: Option<Felt>,
    /// The hash of the contract's class.
    class: Option<Felt>,
    latest: Block,
    elapsed: u64,
    depth: u64,
    is_safe: bool,
    is_finalized: bool,
}

/// A state, with the block of the transaction that led to it.
struct Origin {
    state: HtlcState,
    number: Option<u64>,
    hash: Option<Felt>,
    is_on_l1: bool,
}

/// What the contract stores at the newest block.
struct Reading {
    class: Felt,
    order: Option<StoredOrder>,
    covered: bool,
    /// Whether the order is already the same at the newest block that L1 has accepted.
    is_on_l1: bool,
}

impl OrderQuery {
    fn new(terms: &HtlcTerms) -> Result<Self, Refusal> {
        let malformed = |at| Refusal::new(Code::AddressMalformed, at);
        let htlc = terms.htlc.as_ref().and_then(from_account).ok_or_else(|| malformed("/htlc"))?;
        let token = terms
            .token
            .as_ref()
            .ok_or_else(|| malformed("/token").with_reason("on Starknet every asset is a token, so the terms must name one"))?;
        let id = terms.swap_id.strip_prefix("0x").unwrap_or(&terms.swap_id);
        Ok(Self {
            htlc,
            token: parse(token, "/token")?,
            token_text: terms.token.clone(),
            id: parse(&format!("0x{id}"), "/swap_id")?,
            generation: StarknetGeneration::expected(terms.generation),
            secret_hash: terms.secret_hash,
            is_hash_proven: terms.swap_id_recomputed,
        })
    }
}

impl<'n, T: Transport> StarknetChain<'n, T> {
    /// Reads the state of one HTLC from every endpoint, at the endpoint's newest block. The endpoints must agree.
    ///
    /// The state comes from the order that the contract stores, in the layout of the pinned generation. The contract must have the
    /// expected token. Its class must have the interface of that generation, and must not change. Only its event shows how an order
    /// ended. Without the event, the state is [`HtlcState::Unclear`]. The state is also unclear if no generation is pinned, because the
    /// layout of the contract that is then expected is not known.
    ///
    /// A block that L2 has accepted is safe. A block that L1 has accepted is final.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the terms contain an invalid address or swap id. Returns another [`NodeError`] if no endpoint
    /// answers or too few of them agree. The state is then unknown.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        let query = OrderQuery::new(terms)?;
        let views = self.connection.each(|caller| self.view(caller, &query)).await;
        let needed = self.connection.needed();
        let views = agree(views, needed, |view| (view.state.clone(), view.origin, view.class))?;
        let sightings = views.into_iter().map(View::sighting).collect();
        combine(sightings, needed).ok_or_else(|| self.not_connected())
    }

    async fn view(&self, caller: Caller<'n, T>, query: &OrderQuery) -> Result<View, NodeError> {
        self.identify(caller).await?;
        let (blocks, is_known_class) = self.blocks(caller, query).await?;
        let access = match read::access(query.generation) {
            Ok(access) if is_known_class => access,
            Ok(_) => return Ok(View::unclear(blocks.latest, "the contract's class does not have the interface of the pinned generation")),
            Err(why) => return Ok(View::unclear(blocks.latest, &why.to_string())),
        };
        let reading = match read_order(caller, query, access, &blocks).await? {
            Ok(reading) => reading,
            Err(why) => return Ok(View::unclear(blocks.latest, &why)),
        };
        let class = Some(reading.class);
        if !caller.is_same_code(query.htlc.to_bytes_be(), query.generation.name(), reading.class.to_bytes_be()) {
            return Ok(View { class, ..View::unclear(blocks.latest, "the contract's class has changed since it was first read") });
        }
        let Some(order) = reading.order else { return Ok(View { class, ..View::new(HtlcState::Absent, blocks.latest) }) };
        let origin = match order.progress {
            Progress::Open => locked(caller, query, &order, reading.covered, &blocks.latest).await?,
            Progress::Ended { at } => ended(caller, query, &order, at, &blocks.latest).await?,
            _ => Origin::unclear("the order is in an unknown state"),
        };
        let elapsed = blocks.latest.number.saturating_sub(order.initiated_at);
        let depth = origin.number.map_or(0, |number| blocks.latest.number.saturating_sub(number).saturating_add(1));
        let is_finalized = reading.is_on_l1 && origin.is_on_l1;
        let is_safe = depth > 0;
        Ok(View { state: origin.state, origin: origin.hash, class, latest: blocks.latest, elapsed, depth, is_safe, is_finalized })
    }

    /// Reads the newest block, and the newest that L1 has accepted. The first time, it also reads the contract's class, and returns
    /// whether the class has the interface of the expected generation.
    async fn blocks(&self, caller: Caller<'n, T>, query: &OrderQuery) -> Result<(Blocks, bool), NodeError> {
        let mut calls = vec![block::by_tag(LATEST), block::by_tag(ON_L1)];
        let is_first = !caller.has_code(query.htlc.to_bytes_be(), query.generation.name()) && read::access(query.generation).is_ok();
        if is_first {
            calls.push(contract::class_at(query.htlc, &json!(LATEST)));
        }
        let (latest, on_l1, generation) = caller
            .rpc_each(&calls, |outcomes| {
                let mut outcomes = outcomes.into_iter();
                let mut next = || outcomes.next().unwrap_or_else(|| Err(caller.malformed(Refusal::new(Code::MissingField, "/result"))));
                let read = |outcome: Result<Node<'_, '_>, NodeError>| Block::read(&outcome?).map_err(|refusal| caller.malformed(refusal));
                let (latest, on_l1) = (read(next()), read(next()));
                let generation = is_first.then(|| contract::generation(caller, next())).transpose();
                (latest, on_l1, generation)
            })
            .await?;
        let latest = Self::latest(caller, latest?)?;
        // A mark above the newest block comes from another node behind the same address that is ahead. Without a mark, nothing is final.
        let on_l1 = match on_l1 {
            Ok(block) => Some(block).filter(|block| block.is_on_l1 && block.number <= latest.number),
            Err(NodeError::Rpc { .. }) => None,
            Err(error) => return Err(error),
        };
        let is_known = generation?.is_none_or(|generation| generation == Some(query.generation));
        Ok((Blocks { latest, on_l1 }, is_known))
    }
}

impl View {
    fn sighting(self) -> Sighting {
        let head = Head::new(self.latest.number, hex(self.latest.hash), self.latest.time);
        let Self { state, depth, elapsed, is_safe, is_finalized, .. } = self;
        Sighting { state, head, depth, elapsed, is_safe, is_finalized }
    }

    const fn new(state: HtlcState, latest: Block) -> Self {
        Self { state, origin: None, class: None, latest, elapsed: 0, depth: 0, is_safe: false, is_finalized: false }
    }

    fn unclear(latest: Block, why: &str) -> Self {
        Self::new(HtlcState::Unclear(why.to_owned()), latest)
    }
}

impl Origin {
    fn unclear(why: &str) -> Self {
        Self { state: HtlcState::Unclear(why.to_owned()), number: None, hash: None, is_on_l1: false }
    }
}

/// Creates the calls that read an order: one call of a getter, or one call for each felt in storage.
fn order_calls(query: &OrderQuery, access: Access, block: &Value) -> Vec<Call> {
    match access {
        Access::Getter => vec![call(query.htlc, read::GET_ORDER, &[query.id], block)],
        Access::Storage => {
            let slot = |slot: Felt| json!({"contract_address": hex(query.htlc), "key": hex(slot), "block_id": block});
            read::slots(query.id).into_iter().map(|key| Call::new("starknet_getStorageAt", slot(key))).collect()
        }
    }
}

type Outcome<'r, 'v> = Result<Node<'r, 'v>, NodeError>;

/// Reads the felts of an order; `None` if the contract does not support the calls.
fn order_felts<'r, 'v: 'r, T: Transport>(
    caller: Caller<'_, T>,
    access: Access,
    outcomes: &mut impl Iterator<Item = Outcome<'r, 'v>>,
) -> Result<Option<Vec<Felt>>, NodeError> {
    let malformed = |refusal| caller.malformed(refusal);
    let mut next = || outcomes.next().unwrap_or_else(|| Err(malformed(Refusal::new(Code::MissingField, "/result"))));
    let felts = match access {
        Access::Getter => next().and_then(|node| felts(&node, MAX_ANSWER).map_err(malformed)),
        // Takes all outcomes, even after a failure, so that the following ones are not mistaken for them.
        Access::Storage => {
            let felts: Vec<_> = (0..FELTS).map(|_| next().and_then(|node| felt::read(node).map_err(malformed))).collect();
            felts.into_iter().collect()
        }
    };
    match felts {
        Ok(felts) => Ok(Some(felts)),
        Err(error) if is_of_contract(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the order and the contract's token, class and balance at the newest block, and the order at the newest block that L1 has
/// accepted. The inner error says why the state is unclear.
async fn read_order<T: Transport>(
    caller: Caller<'_, T>,
    query: &OrderQuery,
    access: Access,
    blocks: &Blocks,
) -> Result<Result<Reading, String>, NodeError> {
    let newest = block::at(blocks.latest.hash);
    let mut calls = vec![
        contract::class_hash_at(query.htlc, &newest),
        call(query.htlc, read::TOKEN, &[], &newest),
        balance_of(query.token, query.htlc, &newest),
    ];
    calls.extend(order_calls(query, access, &newest));
    if let Some(block) = &blocks.on_l1 {
        calls.extend(order_calls(query, access, &block::at(block.hash)));
    }
    caller.rpc_each(&calls, |outcomes| judge(caller, query, access, blocks, outcomes)).await?
}

fn judge<T: Transport>(
    caller: Caller<'_, T>,
    query: &OrderQuery,
    access: Access,
    blocks: &Blocks,
    outcomes: Vec<Outcome<'_, '_>>,
) -> Result<Result<Reading, String>, NodeError> {
    let malformed = |refusal| caller.malformed(refusal);
    let mut outcomes = outcomes.into_iter();
    let (Some(class), Some(token), Some(holds)) = (outcomes.next(), outcomes.next(), outcomes.next()) else {
        return Err(malformed(Refusal::new(Code::MissingField, "/result")));
    };
    let Some(stored) = order_felts(caller, access, &mut outcomes)? else {
        return Ok(Err("the contract does not have the function that reads orders".to_owned()));
    };
    let order = match read::order(query.generation, &stored) {
        Ok(order) => order,
        Err(why) => return Ok(Err(why.to_string())),
    };
    let class = match class {
        Ok(node) => felt::read(node).map_err(malformed)?,
        Err(error) if is_of_contract(&error) => return Ok(Err("there is no contract at the address of the HTLC".to_owned())),
        Err(error) => return Err(error),
    };
    let token = match token {
        Ok(node) => read::address(&felts(&node, MAX_ANSWER).map_err(malformed)?).ok(),
        Err(error) if is_of_contract(&error) => None,
        Err(error) => return Err(error),
    };
    if token != Some(query.token) {
        return Ok(Err("the contract's token is not the pinned one".to_owned()));
    }
    if order.as_ref().is_some_and(|order| order.initiated_at > blocks.latest.number) {
        return Err(malformed(Refusal::new(Code::NumberTooLarge, "/result").with_reason("the order was initiated after the newest block")));
    }
    let holds: U256 = answer(&holds?, read::number).map_err(malformed)?;
    let covered = order.as_ref().is_some_and(|order| holds >= order.amount);
    // If the node does not have the older state, the order is not marked as final.
    let before = if blocks.on_l1.is_some() { order_felts(caller, access, &mut outcomes).ok().flatten() } else { None };
    let before = before.and_then(|felts| read::order(query.generation, &felts).ok().flatten());
    let is_on_l1 = order.is_some() && before == order;
    Ok(Ok(Reading { class, order, covered, is_on_l1 }))
}

/// Reads the block in which an order was funded. If the order's id does not prove its secret hash, also reads the funding event.
async fn locked<T: Transport>(
    caller: Caller<'_, T>,
    query: &OrderQuery,
    order: &StoredOrder,
    covered: bool,
    latest: &Block,
) -> Result<Origin, NodeError> {
    let number = order.initiated_at;
    let filter = EventFilter { query, names: &[read::INITIATED, read::INITIATED_WITH_DESTINATION_DATA], blocks: number..=number };
    let mut calls = vec![block::by_number(number)];
    if !query.is_hash_proven {
        calls.push(filter.call(None));
    }
    let (block, events) = caller
        .rpc(&calls, |results| {
            let node = first(results)?;
            let block = Block::read(&node)?;
            let foreign = |key: &'static str| {
                node.at().key(key).refuse(Code::WrongType).with_reason("the node returned another block than the requested one")
            };
            if block.number != number || (number == latest.number) != (block.hash == latest.hash) {
                return Err(foreign("block_number"));
            }
            if block.time > latest.time {
                return Err(foreign("timestamp").with_reason("an older block has a later time than the newest block"));
            }
            let events = if query.is_hash_proven { Events::default() } else { filter.read(&nth(results, 1)?)? };
            Ok((block, events))
        })
        .await?;
    let mut locked = LockedHtlc::new(to_account(order.initiator), to_account(order.redeemer), order.amount, order.timelock, 0)
        .with_token(query.token_text.clone())
        .with_covered(covered);
    if !query.is_hash_proven {
        let events = filter.follow(caller, events).await?;
        match events.all.as_slice() {
            [Event { event: HtlcEvent::Initiated { secret_hash, amount, .. }, hash, .. }]
                if *amount == order.amount && *hash == block.hash =>
            {
                locked = locked.with_secret_hash(*secret_hash);
            }
            _ => return Ok(Origin::unclear("no event shows which secret hash locks the order")),
        }
    }
    Ok(Origin { state: HtlcState::Locked(locked), number: Some(number), hash: Some(block.hash), is_on_l1: block.is_on_l1 })
}

/// Reads the event that shows how an order ended.
async fn ended<T: Transport>(
    caller: Caller<'_, T>,
    query: &OrderQuery,
    order: &StoredOrder,
    end: Option<u64>,
    latest: &Block,
) -> Result<Origin, NodeError> {
    // Nodes limit the range of blocks in one request, so the exact block is named if it is known.
    let (from, to) = end.map_or((order.initiated_at, latest.number), |block| (block, block));
    let filter = EventFilter { query, names: &[read::REDEEMED, read::REFUNDED], blocks: from..=to };
    let events = caller.rpc(&[filter.call(None)], |results| filter.read(&first(results)?)).await?;
    let events = filter.follow(caller, events).await?;
    let [Event { event, number, hash, transaction }] = events.all.as_slice() else {
        let why = match (events.all.is_empty(), events.is_cut()) {
            (true, false) => "the order has ended, and no event shows how",
            (true, true) => "the order has ended, and the node returned too many pages without its event",
            (false, _) => "the order has ended more than once",
        };
        return Ok(Origin::unclear(why));
    };
    let state = event.end(query.secret_hash, Some(hex(*transaction)));
    // Whether the end is final follows from the order at the newest block that L1 has accepted.
    Ok(Origin { state, number: Some(*number), hash: Some(*hash), is_on_l1: true })
}
