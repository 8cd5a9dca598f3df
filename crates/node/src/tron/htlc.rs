//! Reads the state of one HTLC from every endpoint.

use countersign::chains::Account;
use countersign::json::Node;
use countersign::tron::Address;
use countersign::tron::alloy_primitives::{Address as AbiAddress, B256, U256, hex};
use countersign::tron::read::{self, HtlcEvent, Layout, NATIVE, Progress, StoredOrder};
use countersign::{HtlcState, HtlcTerms, LockedHtlc, Refusal, SecretHash, SeenAt, number};
use countersign_client::Transport;
use futures_util::future::{try_join, try_join3, try_join4};
use serde_json::json;

use super::block::{self, Block};
use super::call::{self, Call, Log, Outcome, read_logs_of};
use super::{NEWEST, SOLID, TronChain, ask, contradiction, count, hash, wallet};
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::Head;
use crate::quorum::{Sighting, agree, combine};

/// Where an order is stored, and the terms that it must have.
struct OrderQuery {
    htlc: Address,
    token: Option<Address>,
    token_text: Option<String>,
    id: [u8; 32],
    secret_hash: SecretHash,
}

/// What one endpoint reports.
struct View {
    /// The state with an elapsed time of 0. The elapsed time differs between endpoints, so it is kept apart.
    state: HtlcState,
    /// The id of the block with the transaction that led to the state; `None` if there is none.
    origin: Option<[u8; 32]>,
    /// The newest block before the contract was read.
    seen: Block,
    elapsed: u64,
    depth: u64,
    is_solid: bool,
}

/// What the contract stores at the newest block.
enum Reading {
    /// An order, and the irreversible block if the order is already the same there.
    Order { order: StoredOrder, covered: bool, solid: Option<Block> },
    /// No order, or an unclear one.
    Other(HtlcState),
}

/// An event of an order, with the id of its transaction.
type Event = (HtlcEvent, [u8; 32]);

impl OrderQuery {
    fn new(terms: &HtlcTerms) -> Result<Self, Refusal> {
        let malformed = || Refusal::new(countersign::Code::AddressMalformed, "/htlc");
        let htlc = terms.htlc.as_ref().and_then(Address::from_account).ok_or_else(malformed)?;
        let token = terms.token.as_ref().map(|text| super::parse(text, "/token")).transpose()?;
        let id = terms.swap_id.strip_prefix("0x").unwrap_or(&terms.swap_id);
        let id = number::bare_hex_array(id).map_err(|error| Refusal::new(error, "/swap_id"))?;
        Ok(Self { htlc, token, token_text: terms.token.clone(), id, secret_hash: terms.secret_hash })
    }
}

impl<'n, T: Transport> TronChain<'n, T> {
    /// Reads the state of one HTLC from every endpoint, at the endpoint's newest block. The endpoints must agree.
    ///
    /// The contract does not store the secret hash, and it is not certain that the swap id commits to it. So the hash comes from the
    /// order's funding event, in the block that the stored order names. The other terms are those that the contract stores. How an order
    /// ended comes from the event in the block of its end. If the node does not have these events, an ended order is
    /// [`HtlcState::Unclear`], and a locked one has no secret hash. An order in another layout than that of version 3 is unclear too.
    ///
    /// [`SeenAt::is_finalized`] is set if the order is the same at the newest irreversible (solidified) block.
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
        let (before, solid) = try_join(self.newest(caller), block::newest(caller, SOLID)).await?;
        let (order, covered, solid) = match read_order(caller, query, solid).await? {
            Reading::Order { order, covered, solid } => (order, covered, solid),
            Reading::Other(state) => return Ok(View::new(state, before)),
        };
        let made = match order.progress {
            Progress::Open => order.initiated_at,
            Progress::Ended { at } => at.unwrap_or_default(),
            _ => return Ok(View::unclear(before, "the order is in an unknown state")),
        };
        let (after, origin, events) = try_join3(self.newest(caller), block::by_number(caller, made), events(caller, query, made)).await?;
        if made > after.number || origin.millis > after.millis {
            return Err(caller.malformed(contradiction("/constant_result", "the order was changed after the newest block")));
        }
        let state = match order.progress {
            Progress::Open => locked(query, &order, covered, &events).map_err(|refusal| caller.malformed(refusal))?,
            _ => ended(query, &events).map_err(|refusal| caller.malformed(refusal))?,
        };
        // Of the two newest blocks, the one that gives the smaller depth and the longer elapsed time counts.
        let depth = before.number.saturating_add(1).saturating_sub(made);
        let elapsed = after.number.saturating_sub(order.initiated_at);
        let is_solid = solid.is_some_and(|solid| solid.number >= made);
        Ok(View { state, origin: Some(origin.id), seen: before, elapsed, depth, is_solid })
    }
}

impl View {
    fn sighting(self) -> Sighting {
        let head = Head::new(self.seen.number, hex::encode(self.seen.id), self.seen.millis / 1_000);
        let Self { state, depth, elapsed, is_solid, .. } = self;
        Sighting { state, head, depth, elapsed, is_safe: is_solid, is_finalized: is_solid }
    }

    const fn new(state: HtlcState, seen: Block) -> Self {
        Self { state, origin: None, seen, elapsed: 0, depth: 0, is_solid: false }
    }

    fn unclear(seen: Block, why: &str) -> Self {
        Self::new(HtlcState::Unclear(why.to_owned()), seen)
    }
}

/// Reads the order, the contract's token and the contract's balance at the newest block, and the order at the irreversible one.
async fn read_order<T: Transport>(caller: Caller<'_, T>, query: &OrderQuery, solid: Block) -> Result<Reading, NodeError> {
    let (orders, token) = (read::orders_call(query.id), read::token_call());
    let (stored, token, holds, final_order) = try_join4(
        call::run(caller, NEWEST, &Call::view(query.htlc, &orders)),
        call::run(caller, NEWEST, &Call::view(query.htlc, &token)),
        holds(caller, query),
        call::run(caller, SOLID, &Call::view(query.htlc, &orders)),
    )
    .await?;
    Ok(judge(query, solid, stored, token, holds, final_order))
}

async fn holds<T: Transport>(caller: Caller<'_, T>, query: &OrderQuery) -> Result<U256, NodeError> {
    match query.token {
        // A token without a balance counts as 0 here. The contract itself is checked first.
        Some(token) => match call::run(caller, NEWEST, &Call::view(token, &read::balance_call(query.htlc.bytes()))).await? {
            Outcome::Returned { data, .. } => Ok(read::number(&data).unwrap_or_default()),
            _ => Ok(U256::ZERO),
        },
        None => wallet::coins(caller, query.htlc).await,
    }
}

fn judge(query: &OrderQuery, solid: Block, stored: Outcome, token: Outcome, holds: U256, final_order: Outcome) -> Reading {
    let unclear = |why: &str| Reading::Other(HtlcState::Unclear(why.to_owned()));
    let Some(stored) = stored.returned() else { return unclear("the contract does not have `orders(bytes32)`") };
    let order = match read::order(&stored) {
        Ok(order) => order,
        Err(why) => return unclear(&why.to_string()),
    };
    let token = token.returned().and_then(|answer| read::address(&answer).ok());
    if token != Some(query.token.map_or(NATIVE, Address::bytes)) {
        return unclear("the contract's token is not the pinned one");
    }
    let Some(order) = order else { return Reading::Other(HtlcState::Absent) };
    if order.layout != Layout::V3 {
        return unclear("the contract stores orders in the layout of an older generation, which is not supported on Tron");
    }
    // If the node does not have the irreversible state, the order is not marked as final.
    let is_final = final_order.returned().and_then(|answer| read::order(&answer).ok().flatten()).as_ref() == Some(&order);
    Reading::Order { covered: holds >= order.amount, order, solid: Some(solid).filter(|_| is_final) }
}

/// Reads the events of an order in one block.
async fn events<T: Transport>(caller: Caller<'_, T>, query: &OrderQuery, number: u64) -> Result<Vec<Event>, NodeError> {
    let read = |node: &Node<'_, '_>| {
        // A node without the block's history returns an empty object.
        let Ok(all) = node.array() else { return node.object().map(|_| Vec::new()) };
        let mut events = Vec::new();
        for info in all {
            let members = info.object()?;
            let Some(logs) = members.get("log") else { continue };
            if count(members.get("blockNumber"))? != number {
                return Err(contradiction("/blockNumber", "the node returned a transaction of another block"));
            }
            let is_htlc = |address: AbiAddress| address == query.htlc.bytes();
            let own = |log: &Log| log.topics.get(1) == Some(&B256::from(query.id));
            for log in read_logs_of(is_htlc, &logs)?.iter().filter(|log| own(log)) {
                let event = read::event(&log.topics, &log.data).map_err(|_| contradiction("/log", "an event of the HTLC is malformed"))?;
                if let Some(event) = event {
                    events.push((event, hash(&members.need("id")?)?));
                }
            }
        }
        Ok(events)
    };
    ask(caller, &format!("{NEWEST}/gettransactioninfobyblocknum"), json!({"num": number}), read).await
}

fn account(address: AbiAddress) -> Account {
    Address::from(address).to_account()
}

/// Returns the state of an open order, with the secret hash of its funding event.
fn locked(query: &OrderQuery, order: &StoredOrder, covered: bool, events: &[Event]) -> Result<HtlcState, Refusal> {
    let (initiator, redeemer) = (account(order.initiator), account(order.redeemer));
    let mut state = LockedHtlc::new(initiator, redeemer, order.amount, order.timelock, 0).with_token(query.token_text.clone());
    if let [(event, _)] = events {
        match event {
            HtlcEvent::Initiated { secret_hash, amount, .. } if *amount == order.amount => state = state.with_secret_hash(*secret_hash),
            _ => return Err(contradiction("/log", "the funding event contradicts the order")),
        }
    }
    Ok(HtlcState::Locked(state.with_covered(covered)))
}

/// Returns how an order ended. If it was funded in the same block, its funding event is there too.
fn ended(query: &OrderQuery, events: &[Event]) -> Result<HtlcState, Refusal> {
    let mut ends = events.iter().filter(|(event, _)| !matches!(event, HtlcEvent::Initiated { .. }));
    let (end, more) = (ends.next(), ends.next().is_some());
    Ok(match end {
        _ if more => HtlcState::Unclear("the order has ended more than once".to_owned()),
        Some((event, id)) => match event.end(query.secret_hash, Some(hex::encode(id))) {
            HtlcState::Unclear(_) => return Err(contradiction("/log", "the secret belongs to another order")),
            state => state,
        },
        None => HtlcState::Unclear("the order has ended, and no event shows how".to_owned()),
    })
}
