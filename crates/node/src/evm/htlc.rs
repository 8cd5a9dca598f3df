//! Reads the state of one HTLC from every endpoint.

use std::sync::atomic::Ordering;

use countersign::evm::address::{from_account, to_account};
use countersign::evm::alloy_primitives::{Address, B256, U256, hex};
use countersign::evm::read::{self, HtlcEvent, Layout, NATIVE, Progress, StoredOrder};
use countersign::json::Node;
use countersign::{Code, EvmGeneration, Generation, HtlcState, HtlcTerms, LockedHtlc, Refusal, SecretHash, SeenAt, number};
use countersign_client::Transport;
use serde_json::json;

use super::block::{self, Block, FINALIZED, LATEST, SAFE};
use super::cache::Marks;
use super::{EvmChain, MAX_ANSWER, at, call, first, hash, nth, proof, quantity, revert};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::nodes::Head;
use crate::quorum::{Sighting, agree, combine};

/// The maximum number of logs that are read for one order, which ends only once.
const MAX_LOGS: usize = 8;

/// Where an order is stored, and the terms that it must have.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct OrderQuery {
    htlc: Address,
    token: Option<Address>,
    token_text: Option<String>,
    id: [u8; 32],
    secret_hash: SecretHash,
    generation: Option<EvmGeneration>,
    /// Whether the id is known to commit to the secret hash. If not, the funding event must contain the hash.
    binds_hash: bool,
}

/// The newest, safe and final blocks of one endpoint.
#[derive(Clone)]
pub(super) struct Blocks {
    latest: Block,
    safe: Option<Block>,
    finalized: Option<Block>,
}

/// What one endpoint reports.
#[derive(Clone)]
pub(super) struct View {
    /// The state with an elapsed time of 0. The elapsed time differs between endpoints, so it is kept apart.
    state: HtlcState,
    /// The hash of the block with the transaction that led to the state; `None` if there is none.
    origin: Option<B256>,
    latest: Block,
    elapsed: u64,
    depth: u64,
    is_safe: bool,
    is_finalized: bool,
}

/// What the contract stores at the newest block.
enum Reading {
    Order { order: StoredOrder, covered: bool, is_safe: bool, is_finalized: bool },
    Other(HtlcState),
}

impl OrderQuery {
    fn new(terms: &HtlcTerms) -> Result<Self, Refusal> {
        let malformed = |at| Refusal::new(Code::AddressMalformed, at);
        let htlc = terms.htlc.as_ref().and_then(from_account).ok_or_else(|| malformed("/htlc"))?;
        let token = match &terms.token {
            Some(text) => Some(text.parse::<Address>().map_err(|_| malformed("/token").with_actual(text))?),
            None => None,
        };
        let id = terms.swap_id.strip_prefix("0x").unwrap_or(&terms.swap_id);
        let id = number::bare_hex_array(id).map_err(|error| Refusal::new(error, "/swap_id"))?;
        let generation = match terms.generation {
            Some(Generation::Evm(generation)) => Some(generation),
            _ => None,
        };
        let (secret_hash, binds_hash) = (terms.secret_hash, terms.swap_id_recomputed);
        Ok(Self { htlc, token, token_text: terms.token.clone(), id, secret_hash, generation, binds_hash })
    }
}

impl<'n, T: Transport> EvmChain<'n, T> {
    /// Reads the state of one HTLC from every endpoint, at the endpoint's newest block. The endpoints must agree.
    ///
    /// The state comes from the order that the contract stores. The contract must have the expected token, and the order must have the
    /// layout of the pinned generation, or any known layout if no generation is pinned. Only its event shows how an order ended. Without
    /// the event, the state is [`HtlcState::Unclear`]. If block headers hash as on Ethereum and the node supports `eth_getProof`, the
    /// proof must contain the same order.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::AddressMalformed`] or a code for malformed hex if the terms are invalid. Returns another
    /// [`NodeError`] if no endpoint answers or too few of them agree. The state is then unknown.
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
        let blocks = self.blocks(caller).await?;
        let (kept, marks) = (&caller.endpoint.evm, blocks.marks());
        if let Some(view) = kept.view(query, &marks) {
            return Ok(view);
        }
        let view = self.read(caller, query, blocks).await?;
        kept.keep(query, marks, &view);
        Ok(view)
    }

    async fn read(&self, caller: Caller<'n, T>, query: &OrderQuery, blocks: Blocks) -> Result<View, NodeError> {
        match read_order(caller, query, &blocks).await? {
            Reading::Order { order, covered, is_safe, is_finalized } => {
                let (state, number, hash) = match order.progress {
                    Progress::Open => locked(caller, query, &order, covered, &blocks.latest).await?,
                    Progress::Ended { at } => ended(caller, query, &order, at, &blocks.latest).await?,
                    _ => return Ok(View::unclear(blocks.latest, "the order is in an unknown state")),
                };
                let elapsed = blocks.latest.number.saturating_sub(order.initiated_at);
                let depth = number.map_or(0, |number| blocks.latest.number.saturating_sub(number).saturating_add(1));
                Ok(View { state, origin: hash, latest: blocks.latest, elapsed, depth, is_safe, is_finalized })
            }
            Reading::Other(state) => Ok(View::new(state, blocks.latest)),
        }
    }

    /// Reads the newest block, and the blocks that the chain marks as safe and final, if it has such marks.
    async fn blocks(&self, caller: Caller<'n, T>) -> Result<Blocks, NodeError> {
        let readings = &caller.endpoint.evm.readings;
        let asked = readings.load(Ordering::SeqCst);
        let mut kept = caller.endpoint.evm.blocks.lock().await;
        // A read that began after this call is recent enough for it.
        if let Some((_, blocks)) = kept.as_ref().filter(|(number, _)| *number > asked) {
            return Ok(blocks.clone());
        }
        let number = readings.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        let blocks = self.newest(caller).await?;
        *kept = Some((number, blocks.clone()));
        Ok(blocks)
    }

    async fn newest(&self, caller: Caller<'n, T>) -> Result<Blocks, NodeError> {
        let calls = [block::by_tag(LATEST), block::by_tag(SAFE), block::by_tag(FINALIZED)];
        let [latest, safe, finalized] = caller
            .rpc_each(&calls, |outcomes| {
                let mut outcomes = outcomes.into_iter().map(|outcome| {
                    let node = outcome?;
                    Block::read(&node).map_err(|refusal| caller.malformed(refusal))
                });
                let mut next = || outcomes.next().unwrap_or(Ok(None));
                [next(), next(), next()]
            })
            .await?;
        let latest = self.latest(caller, latest?)?;
        // Not every chain has the marks. A mark above the newest block comes from another node behind the same address that is ahead.
        let marked = |block: Result<Option<Block>, NodeError>| match block {
            Ok(block) => Ok(block.filter(|block| block.number <= latest.number)),
            Err(NodeError::Rpc { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        let (safe, finalized) = (marked(safe)?, marked(finalized)?);
        Ok(Blocks { latest, safe, finalized })
    }
}

impl Blocks {
    fn marks(&self) -> Marks {
        let hash = |block: &Option<Block>| block.as_ref().map(|block| block.hash);
        [Some(self.latest.hash), hash(&self.safe), hash(&self.finalized)]
    }
}

impl View {
    fn sighting(self) -> Sighting {
        let head = Head::new(self.latest.number, self.latest.hash.to_string(), self.latest.time);
        let Self { state, depth, elapsed, is_safe, is_finalized, .. } = self;
        Sighting { state, head, depth, elapsed, is_safe, is_finalized }
    }

    const fn new(state: HtlcState, latest: Block) -> Self {
        Self { state, origin: None, latest, elapsed: 0, depth: 0, is_safe: false, is_finalized: false }
    }

    fn unclear(latest: Block, why: &str) -> Self {
        Self::new(HtlcState::Unclear(why.to_owned()), latest)
    }
}

/// Reads the order, the contract's token and the contract's balance at the newest block, and the order at the safe and final blocks.
async fn read_order<T: Transport>(caller: Caller<'_, T>, query: &OrderQuery, blocks: &Blocks) -> Result<Reading, NodeError> {
    let newest = at(blocks.latest.hash);
    let orders = read::orders_call(query.id);
    let holds = match query.token {
        Some(token) => call(token, &read::balance_call(query.htlc), &newest),
        None => Call::new("eth_getBalance", json!([query.htlc, newest])),
    };
    let slots = read::slots(query.id, query.token.is_none());
    let proof = Call::new("eth_getProof", json!([query.htlc, slots, newest]));
    let mut calls = vec![call(query.htlc, &orders, &newest), call(query.htlc, &read::token_call(), &newest), holds, proof];
    for marked in [&blocks.safe, &blocks.finalized] {
        // Without a marked block, the answer is ignored.
        let block = marked.as_ref().unwrap_or(&blocks.latest);
        calls.push(call(query.htlc, &orders, &at(block.hash)));
    }
    caller.rpc_each(&calls, |outcomes| judge(caller, query, blocks, &slots, outcomes)).await?
}

fn judge<T: Transport>(
    caller: Caller<'_, T>,
    query: &OrderQuery,
    blocks: &Blocks,
    slots: &[B256],
    outcomes: Vec<Result<Node<'_, '_>, NodeError>>,
) -> Result<Reading, NodeError> {
    let Ok([stored, token, holds, proof, safe, finalized]) = <[_; 6]>::try_from(outcomes) else {
        return Err(caller.malformed(Refusal::new(Code::MissingField, "/result")));
    };
    let unclear = |why: &str| Ok(Reading::Other(HtlcState::Unclear(why.to_owned())));
    // A revert means that the contract is of another kind. A failure of the node means nothing.
    let bytes = |outcome: Result<Node<'_, '_>, NodeError>| match outcome {
        Ok(node) => node.hex_bytes(MAX_ANSWER).map(Some).map_err(|refusal| caller.malformed(refusal)),
        Err(error) if revert(&error).is_some() => Ok(None),
        Err(error) => Err(error),
    };
    let stored = bytes(stored)?;
    let Some(order) = stored.as_deref().map(read::order) else { return unclear("the contract does not have `orders(bytes32)`") };
    let order = match order {
        Ok(order) => order,
        Err(why) => return unclear(&why.to_string()),
    };
    if let Some(order) = &order
        && let Err(why) = order.check_generation(query.generation)
    {
        return unclear(&why.to_string());
    }
    let token = bytes(token)?.and_then(|answer| read::address(&answer).ok());
    match (token, query.token.unwrap_or(NATIVE)) {
        (Some(token), expected) if token == expected => {}
        // The older contract for the chain's own coin has no `token()`.
        (None, NATIVE) if order.as_ref().is_some_and(|order| order.layout == Layout::Older) => {}
        (None, NATIVE) if order.is_none() && query.generation == Some(EvmGeneration::Old) => {}
        _ => return unclear("the contract's token is not the pinned one"),
    }
    if order.as_ref().is_none_or(|order| order.layout == Layout::V3)
        && let (Ok(proof), Some(state_root)) = (proof, blocks.latest.state_root)
        && let Some(values) = proof::read(&proof, state_root, query.htlc, slots)
        && !values.iter().flat_map(U256::to_be_bytes::<32>).eq(stored.iter().flatten().copied())
    {
        return Err(
            caller.malformed(proof.at().refuse(Code::WrongType).with_reason("the proof contains another order than the call returned"))
        );
    }
    let Some(order) = order else { return Ok(Reading::Other(HtlcState::Absent)) };
    if order.initiated_at > blocks.latest.number {
        return Err(
            caller.malformed(Refusal::new(Code::NumberTooLarge, "/result").with_reason("the order was initiated after the newest block"))
        );
    }
    let holds = match (holds, query.token) {
        (Ok(node), None) => node.hex_number(),
        (Ok(node), Some(_)) => super::answer(&node, read::number),
        (Err(error), _) => return Err(error),
    };
    let holds = holds.map_err(|refusal| caller.malformed(refusal))?;
    // The order is marked if it is already the same at the marked block. If the node does not have that state, it is not marked.
    let is_marked = |block: &Option<Block>, outcome: Result<Node<'_, '_>, NodeError>| {
        let answer = outcome.ok().and_then(|node| node.hex_bytes(MAX_ANSWER).ok());
        let there = answer.and_then(|answer| read::order(&answer).ok().flatten());
        block.as_ref().is_some_and(|block| block.number >= order.initiated_at) && there.as_ref() == Some(&order)
    };
    let (is_safe, is_finalized) = (is_marked(&blocks.safe, safe), is_marked(&blocks.finalized, finalized));
    Ok(Reading::Order { covered: holds >= order.amount, order, is_safe, is_finalized })
}

type Origin = (HtlcState, Option<u64>, Option<B256>);

/// Reads the block in which an open order was initiated.
async fn locked<T: Transport>(
    caller: Caller<'_, T>,
    query: &OrderQuery,
    order: &StoredOrder,
    covered: bool,
    latest: &Block,
) -> Result<Origin, NodeError> {
    let funding = (!query.binds_hash).then(|| logs(query, &[read::INITIATED], order.initiated_at, order.initiated_at));
    let calls: Vec<_> = [block::by_number(order.initiated_at)].into_iter().chain(funding).collect();
    let (block, secret_hash) = caller
        .rpc(&calls, |results| {
            let hash = results.get(1).map(|logs| read_funding(logs, query, order)).transpose()?.flatten();
            Ok((Block::read(&first(results)?)?, hash))
        })
        .await?;
    let contradicts = |reason| Err(caller.malformed(Refusal::new(Code::WrongType, "/result").with_reason(reason)));
    let Some(block) = block else { return contradicts("the block in which the order was initiated is missing") };
    if block.number != order.initiated_at || (block.number == latest.number) != (block.hash == latest.hash) || block.time > latest.time {
        return contradicts("the block in which the order was initiated contradicts the newest block");
    }
    let (initiator, redeemer) = (to_account(order.initiator), to_account(order.redeemer));
    let mut state = LockedHtlc::new(initiator, redeemer, order.amount, order.timelock, 0).with_token(query.token_text.clone());
    if let Some(hash) = secret_hash {
        state = state.with_secret_hash(hash);
    }
    Ok((HtlcState::Locked(state.with_covered(covered)), Some(block.number), Some(block.hash)))
}

/// Creates the call that reads the events of an order in a range of blocks.
fn logs(query: &OrderQuery, events: &[B256], from: u64, to: u64) -> Call {
    let filter = json!({
        "address": query.htlc,
        "fromBlock": format!("{from:#x}"),
        "toBlock": format!("{to:#x}"),
        "topics": [events, hex::encode_prefixed(query.id)],
    });
    Call::new("eth_getLogs", json!([filter]))
}

/// Returns the secret hash in the funding event of an order; `None` unless there is exactly one such event.
fn read_funding(list: &Node<'_, '_>, query: &OrderQuery, order: &StoredOrder) -> Result<Option<SecretHash>, Refusal> {
    let mut hashes = Vec::new();
    for log in list.array()?.take(MAX_LOGS) {
        let (event, ..) = read_event(&log, query, order.initiated_at, order.initiated_at)?;
        match event {
            Some(HtlcEvent::Initiated { order_id, secret_hash, amount }) if order_id.0 == query.id && amount == order.amount => {
                hashes.push(secret_hash);
            }
            _ => return Err(log.at().refuse(Code::WrongType).with_reason(NOT_ASKED_FOR)),
        }
    }
    Ok(if let [hash] = hashes.as_slice() { Some(*hash) } else { None })
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
    let logs = caller
        .rpc(&[logs(query, &[read::REDEEMED, read::REFUNDED], from, to)], |results| {
            let list = nth(results, 0)?;
            let all = list.array()?;
            if all.len() > MAX_LOGS {
                return Err(list.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_LOGS} logs")).with_actual(all.len()));
            }
            all.map(|log| read_log(&log, query, from, to)).collect::<Result<Vec<_>, _>>()
        })
        .await?;
    Ok(match logs.as_slice() {
        [(state, block, hash)] => (state.clone(), Some(*block), Some(*hash)),
        [] => (HtlcState::Unclear("the order has ended, and no event shows how".to_owned()), None, None),
        _ => (HtlcState::Unclear("the order has ended more than once".to_owned()), None, None),
    })
}

const NOT_ASKED_FOR: &str = "the node returned a log that does not match the request";

fn read_log(log: &Node<'_, '_>, query: &OrderQuery, from: u64, to: u64) -> Result<(HtlcState, u64, B256), Refusal> {
    let (event, number, block) = read_event(log, query, from, to)?;
    let transaction = Some(hash(&log.object()?.need("transactionHash")?)?.to_string());
    let state = event.filter(|event| event.order_id().0 == query.id).map(|event| event.end(query.secret_hash, transaction));
    let Some(state @ (HtlcState::Redeemed { .. } | HtlcState::Refunded { .. })) = state else {
        return Err(log.at().key("topics").refuse(Code::WrongType).with_reason(NOT_ASKED_FOR));
    };
    Ok((state, number, block))
}

/// Reads an event of the HTLC, with the number and hash of its block.
fn read_event(log: &Node<'_, '_>, query: &OrderQuery, from: u64, to: u64) -> Result<(Option<HtlcEvent>, u64, B256), Refusal> {
    let members = log.object()?;
    let number = members.need("blockNumber")?;
    let height = quantity(&number)?;
    if !(from..=to).contains(&height) {
        return Err(number.refuse(Code::WrongType).with_reason(NOT_ASKED_FOR));
    }
    Ok((read::log(log, query.htlc)?, height, hash(&members.need("blockHash")?)?))
}
