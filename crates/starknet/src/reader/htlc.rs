//! The state of one HTLC.

use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Identity, Known, Machine, Replies, Reply, Request, Turn};
use countersign_core::{
    Code, Finding, HtlcState, HtlcTerms, LockedHtlc, ObservedAt, Refusal, SecretHash, StarknetGeneration, U256, UnixTime, pace,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use starknet_types_core::felt::Felt;

use super::block::{self, Block, LATEST, ON_L1};
use super::events::{Event, Events, MAX_PAGES};
use super::{Endpoint, MAX_ANSWER, answer, balance_of, call, chain_id, contract, felts, hex, parse, unless_of_contract};
use crate::address::{from_account, to_account};
use crate::felt;
use crate::read::{self, Access, FELTS, HtlcEvent, Progress, StoredOrder};

/// The maximum number of rounds: one for the blocks, one for the order, and one for each page of events. While the HTLC is open, there
/// are three, unless a node returns the events of one block in several pages.
pub const MAX_ROUNDS: usize = 2 + MAX_PAGES;

const FUNDED: &[Felt] = &[read::INITIATED, read::INITIATED_WITH_DESTINATION_DATA];
const ENDED: &[Felt] = &[read::REDEEMED, read::REFUNDED];

/// Reads the state of one HTLC at an endpoint's newest block.
///
/// The state comes from the order that the contract stores, in the layout of the pinned generation. The contract must have the expected
/// token. Its class must have the interface of that generation, and must not change: its hash is a fact that later readings must find
/// again. Only its event shows how an order ended. Without the event, the state is [`HtlcState::Unclear`]. The state is also unclear if
/// no generation is pinned, because the layout of the contract that is then expected is not known.
///
/// A block that L2 has accepted is safe. A block that L1 has accepted is final. Endpoints must agree on the contract's class, and on the
/// hash of the block with the transaction that led to the state.
#[derive(Debug)]
pub struct Htlc {
    terms: HtlcTerms,
    query: OrderQuery,
    endpoint: Endpoint,
    stamp: Option<Vec<u8>>,
    state: State,
}

/// Where an order is stored, and the terms that it must have.
#[derive(Debug)]
pub(super) struct OrderQuery {
    pub(super) htlc: Felt,
    token: Felt,
    pub(super) id: Felt,
    pub(super) generation: &'static StarknetGeneration,
    pub(super) secret_hash: SecretHash,
}

/// What was asked last.
#[derive(Debug)]
enum State {
    /// The newest block, and the newest that L1 has accepted.
    Blocks,
    /// The contract and the order at the newest block, and the order at the block that L1 has accepted.
    Order(Access, Box<Blocks>),
    /// The block in which the order was funded, and its event if the id does not prove the hash.
    Funding(Box<Stored>, Option<Events>),
    /// More events of the funding.
    FundingEvents(Box<Stored>, Block, Events),
    /// The event that ended the order.
    End(Box<Stored>, Events),
    Finished,
}

#[derive(Debug)]
struct Blocks {
    latest: Block,
    on_l1: Option<Block>,
}

/// What the contract stores at the newest block.
#[derive(Debug)]
struct Stored {
    latest: Block,
    class: Felt,
    order: StoredOrder,
    covered: bool,
    /// Whether the order is already the same at the newest block that L1 has accepted.
    is_on_l1: bool,
    /// The pace that the two blocks show.
    pace: Option<u64>,
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
            id: parse(&format!("0x{id}"), "/swap_id")?,
            generation: StarknetGeneration::expected(terms.generation),
            secret_hash: terms.secret_hash,
        })
    }

    /// Returns the name of the fact that has the contract's class. The class is checked for one generation, so the name contains it.
    fn class_fact(&self) -> String {
        format!("class of {} as {}", hex(self.htlc), self.generation.name)
    }

    /// Creates the requests for the order: one call of a getter, or one request for each felt in storage.
    fn requests(&self, access: Access, block: &Value) -> Vec<Request> {
        match access {
            Access::Getter => vec![call(self.htlc, read::GET_ORDER, &[self.id], block)],
            Access::Storage => {
                let slot = |slot: Felt| json!({"contract_address": hex(self.htlc), "key": hex(slot), "block_id": block});
                read::slots(self.id).into_iter().map(|key| Request::json_rpc("starknet_getStorageAt", slot(key))).collect()
            }
        }
    }
}

impl Machine for Htlc {
    type Subject = HtlcTerms;
    type Output = Finding;
    const MAX_ROUNDS: usize = MAX_ROUNDS;

    fn start(terms: &HtlcTerms, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let query = OrderQuery::new(terms)?;
        let chain_id = chain_id(&terms.network).ok_or_else(|| Refusal::new(Code::UnsupportedFamily, "/network"))?;
        let machine = Self { terms: terms.clone(), query, endpoint: Endpoint::new(chain_id, known), stamp: None, state: State::Blocks };
        Ok((machine, vec![super::spec_version(), block::by_tag(LATEST), block::by_tag(ON_L1)]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.endpoint.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Finding>, Fault> {
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Blocks => self.blocks(replies),
            State::Order(access, blocks) => self.order(access, *blocks, replies),
            State::Funding(stored, events) => self.funding(stored, events, replies),
            State::FundingEvents(stored, block, events) => self.funding_events(stored, block, events, &replies.json(0)?),
            State::End(stored, events) => self.end(stored, events, &replies.json(0)?),
            State::Finished => Err(Fault::TooMuch("the reading is complete")),
        }
    }

    fn learned(&self) -> Known {
        self.endpoint.learned.clone()
    }

    fn stamp(&self) -> Option<Vec<u8>> {
        self.stamp.clone()
    }
}

impl Htlc {
    fn blocks(&mut self, replies: &Replies<'_>) -> Result<Turn<Finding>, Fault> {
        super::check_version(&replies.get(0)?)?;
        let latest = self.endpoint.newest(&replies.json(1)?)?;
        // A mark above the newest block comes from another node behind the same address that is ahead. Without a mark, nothing is final.
        let on_l1 = match replies.get(2)?.json_or_error()? {
            Ok(cursor) => Some(Block::read(&cursor)?)
                .filter(|block| block.is_on_l1 && block.number <= latest.number && latest.agrees_with(block.number, block.hash)),
            Err(_) => None,
        };
        let access = match read::access(self.query.generation) {
            Ok(access) => access,
            Err(why) => return Ok(unclear(&latest, None, why.to_string())),
        };
        let class = self.endpoint.known.fact(&self.query.class_fact());
        self.stamp = Some(stamp(&self.terms, class, &latest, on_l1.as_ref()));
        let newest = block::at(latest.hash);
        let mut requests = vec![
            contract::class_hash_at(self.query.htlc, &newest),
            call(self.query.htlc, read::TOKEN, &[], &newest),
            balance_of(self.query.token, self.query.htlc, &newest),
        ];
        requests.extend(self.query.requests(access, &newest));
        if let Some(block) = &on_l1 {
            requests.extend(self.query.requests(access, &block::at(block.hash)));
        }
        if class.is_none() {
            requests.push(contract::class_at(self.query.htlc, &newest));
        }
        self.state = State::Order(access, Box::new(Blocks { latest, on_l1 }));
        Ok(Turn::Ask(requests))
    }

    fn order(&mut self, access: Access, blocks: Blocks, replies: &Replies<'_>) -> Result<Turn<Finding>, Fault> {
        let Blocks { latest, on_l1 } = blocks;
        let (class, token, holds) = (replies.get(0)?, replies.get(1)?, replies.json(2));
        let rest = replies.all().get(3..).unwrap_or_default();
        let felts_of_order = match access {
            Access::Getter => 1,
            Access::Storage => FELTS,
        };
        let (now, rest) = rest.split_at_checked(felts_of_order).unwrap_or_default();
        let (before, rest) = rest.split_at_checked(if on_l1.is_some() { felts_of_order } else { 0 }).unwrap_or_default();
        let Some(stored) = order_felts(access, now)? else {
            return Ok(unclear(&latest, None, "the contract does not have the function that reads orders"));
        };
        let Some(class) = contract::class_hash(&class)? else {
            return Ok(unclear(&latest, None, "there is no contract at the address of the HTLC"));
        };
        match (self.endpoint.known.fact(&self.query.class_fact()), rest) {
            (Some(known), _) if *known != class.to_bytes_be() => {
                return Ok(unclear(&latest, Some(class), "the contract's class has changed since it was first read"));
            }
            (Some(_), _) => {}
            (None, [reply]) if contract::generation(reply)? == Some(self.query.generation) => {}
            (None, _) => {
                return Ok(unclear(&latest, Some(class), "the contract's class does not have the interface of the pinned generation"));
            }
        }
        self.endpoint.learned = self.endpoint.learned.clone().with_fact(self.query.class_fact(), class.to_bytes_be());
        // Before the order, because another contract's "no such order" says nothing.
        if contract::token(&token)? != Some(self.query.token) {
            return Ok(unclear(&latest, Some(class), "the contract's token is not the pinned one"));
        }
        let holds: U256 = answer(&holds?, read::number)?;
        let order = match read::order(self.query.generation, &stored) {
            Ok(Some(order)) => order,
            Ok(None) => return Ok(found(HtlcState::Absent, &latest, Some(class), None, false, None)),
            Err(why) => return Ok(unclear(&latest, Some(class), why.to_string())),
        };
        let end = if let Progress::Ended { at } = order.progress { at } else { None };
        if order.initiated_at > latest.number || end.is_some_and(|at| at > latest.number) {
            let refusal = Refusal::new(Code::NumberTooLarge, "/result");
            return Err(refusal.with_reason("the order was initiated or ended after the newest block").into());
        }
        // If the node does not have the older state, the order is not marked as final.
        let before = order_felts(access, before).ok().flatten();
        let before = before.and_then(|felts| read::order(self.query.generation, &felts).ok().flatten());
        let (covered, is_on_l1) = (holds >= order.amount, before.as_ref() == Some(&order));
        let pace = measure(&latest, on_l1.as_ref());
        let stored = Box::new(Stored { latest, class, order, covered, is_on_l1, pace });
        Ok(Turn::Ask(match stored.order.progress {
            Progress::Open => self.ask_funding(stored),
            Progress::Ended { at } => self.ask_end(stored, at),
        }))
    }

    fn ask_funding(&mut self, stored: Box<Stored>) -> Vec<Request> {
        let number = stored.order.initiated_at;
        let events = (!self.terms.swap_id_recomputed).then(|| Events::new(FUNDED, number..=number));
        let mut requests = vec![block::by_number(number)];
        requests.extend(events.as_ref().and_then(|events| events.request(&self.query)));
        self.state = State::Funding(stored, events);
        requests
    }

    fn ask_end(&mut self, stored: Box<Stored>, end: Option<u64>) -> Vec<Request> {
        // Nodes limit the range of blocks in one request, so the exact block is named if it is known.
        let (from, to) = end.map_or((stored.order.initiated_at, stored.latest.number), |block| (block, block));
        let events = Events::new(ENDED, from..=to);
        let requests = events.request(&self.query).into_iter().collect();
        self.state = State::End(stored, events);
        requests
    }

    fn funding(&mut self, stored: Box<Stored>, events: Option<Events>, replies: &Replies<'_>) -> Result<Turn<Finding>, Fault> {
        let (cursor, latest) = (replies.json(0)?, &stored.latest);
        let block = Block::read(&cursor)?;
        let foreign = |key: &'static str, why| cursor.at().key(key).refuse(Code::WrongType).with_reason(why);
        if block.number != stored.order.initiated_at || !latest.agrees_with(block.number, block.hash) {
            return Err(foreign("block_number", "the node returned another block than the requested one").into());
        }
        if block.time > latest.time {
            return Err(foreign("timestamp", "an older block has a later time than the newest block").into());
        }
        match events {
            Some(events) => self.funding_events(stored, block, events, &replies.json(1)?),
            None => Ok(self.locked(&stored, &block, None)),
        }
    }

    fn funding_events(
        &mut self,
        stored: Box<Stored>,
        block: Block,
        mut events: Events,
        page: &Cursor<'_, '_>,
    ) -> Result<Turn<Finding>, Fault> {
        events.read(page, &self.query, &stored.latest)?;
        if let Some(request) = events.request(&self.query) {
            self.state = State::FundingEvents(stored, block, events);
            return Ok(Turn::Ask(vec![request]));
        }
        Ok(match events.all.as_slice() {
            [Event { event: HtlcEvent::Initiated { secret_hash, amount, .. }, hash, .. }]
                if *amount == stored.order.amount && *hash == block.hash && !events.is_cut() =>
            {
                self.locked(&stored, &block, Some(*secret_hash))
            }
            _ => unclear(&stored.latest, Some(stored.class), "no event shows which secret hash locks the order"),
        })
    }

    /// Returns the state of an open order. If its id does not prove its secret hash, the event of the funding has shown it.
    fn locked(&self, stored: &Stored, block: &Block, secret_hash: Option<SecretHash>) -> Turn<Finding> {
        let Stored { latest, class, order, covered, is_on_l1, pace } = stored;
        let pace = [*pace, measure(latest, Some(block))].into_iter().flatten().min();
        let (initiator, redeemer) = (to_account(order.initiator), to_account(order.redeemer));
        let elapsed = latest.number.saturating_sub(order.initiated_at);
        let mut locked = LockedHtlc::new(initiator, redeemer, order.amount, order.timelock, elapsed)
            .with_token(self.terms.token.clone())
            .with_covered(*covered);
        locked.secret_hash = secret_hash;
        let change = Some((block.number, block.hash));
        found(HtlcState::Locked(locked), latest, Some(*class), change, *is_on_l1 && block.is_on_l1, pace)
    }

    fn end(&mut self, stored: Box<Stored>, mut events: Events, page: &Cursor<'_, '_>) -> Result<Turn<Finding>, Fault> {
        events.read(page, &self.query, &stored.latest)?;
        if let Some(request) = events.request(&self.query) {
            self.state = State::End(stored, events);
            return Ok(Turn::Ask(vec![request]));
        }
        let Stored { latest, class, is_on_l1, pace, .. } = *stored;
        let (event, number, hash, transaction) = match (events.all.as_slice(), events.is_cut()) {
            // A secret proves itself. A refund on an unfinished list may be contradicted on the next page.
            ([Event { event: HtlcEvent::Refunded { .. }, .. }] | [], true) => {
                return Ok(unclear(&latest, Some(class), "the order has ended, and the node returned too many pages of events"));
            }
            ([Event { event, number, hash, transaction }], _) => (event, number, hash, transaction),
            ([], false) => return Ok(unclear(&latest, Some(class), "the order has ended, and no event shows how")),
            _ => return Ok(unclear(&latest, Some(class), "the order has ended more than once")),
        };
        let state = event.end(self.query.secret_hash, Some(hex(*transaction)));
        // Whether the end is final follows from the order at the newest block that L1 has accepted.
        Ok(found(state, &latest, Some(class), Some((*number, *hash)), is_on_l1, pace))
    }
}

/// Reads the felts of an order; `None` if the contract does not support the calls.
fn order_felts(access: Access, replies: &[Reply<'_>]) -> Result<Option<Vec<Felt>>, Fault> {
    match (access, replies) {
        (Access::Getter, [reply]) => Ok(unless_of_contract(reply)?.map(|cursor| felts(&cursor, MAX_ANSWER)).transpose()?),
        (Access::Storage, replies) => replies.iter().map(|reply| Ok(unless_of_contract(reply)?.map(felt::read).transpose()?)).collect(),
        _ => Err(Refusal::new(Code::MissingField, "/result").into()),
    }
}

/// Measures the pace of the chain between the newest block and an earlier one.
fn measure(latest: &Block, earlier: Option<&Block>) -> Option<u64> {
    let at = |block: &Block| (block.number.into(), UnixTime::from_secs(block.time));
    pace::measure(at(latest), earlier.map(at))
}

/// Returns the finding at the newest block. `change` is the number and the hash of the block that led to the state.
fn found(
    state: HtlcState,
    latest: &Block,
    class: Option<Felt>,
    change: Option<(u64, Felt)>,
    is_finalized: bool,
    pace: Option<u64>,
) -> Turn<Finding> {
    let depth = change.map_or(0, |(number, _)| latest.number.saturating_sub(number).saturating_add(1));
    let seen = ObservedAt::new(latest.number.into(), hex(latest.hash), UnixTime::from_secs(latest.time), depth)
        .with_pace(pace)
        .with_safe(depth > 0)
        .with_finalized(is_finalized);
    let origin = class.into_iter().chain(change.map(|(_, hash)| hash)).flat_map(|felt| felt.to_bytes_be());
    Turn::Done(Finding::new(state, seen).with_origin(origin.collect::<Vec<_>>()))
}

fn unclear(latest: &Block, class: Option<Felt>, why: impl Into<String>) -> Turn<Finding> {
    found(HtlcState::Unclear(why.into()), latest, class, None, false, None)
}

/// Names everything that is still to be read: the terms, the class that the contract must have, and the two blocks.
fn stamp(terms: &HtlcTerms, class: Option<&[u8]>, latest: &Block, on_l1: Option<&Block>) -> Vec<u8> {
    let block = |block: &Block| block.hash.to_bytes_be();
    let mut stamp = Sha256::new();
    // The text has every field of the terms, so no two terms have the same.
    for part in [format!("{terms:?}").as_bytes(), class.unwrap_or_default(), &block(latest), on_l1.map(block).as_slice().as_flattened()] {
        stamp.update(part.len().to_be_bytes());
        stamp.update(part);
    }
    stamp.finalize().to_vec()
}
