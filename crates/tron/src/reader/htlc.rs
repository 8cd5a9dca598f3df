//! Reads the state of one HTLC.

use alloy_primitives::{Address as AbiAddress, B256, hex};
use countersign_core::reader::{Fault, Identity, Known, Machine, Reader, Replies, Reply, Request, Turn};
use countersign_core::{Code, Finding, HtlcState, HtlcTerms, LockedHtlc, ObservedAt, Refusal, SecretHash, UnixTime, number, pace};
use countersign_evm_core::read::{self, HtlcEvent, Layout, NATIVE, Progress, StoredOrder};
use serde_json::json;

use super::call::{Call, Log, Outcome, read_logs_of};
use super::{AFTER_THE_END, Block, MAX_STEP_BACK, View, chain_id, coins, coins_request, contradiction, count, hash, post, value};
use crate::Address;

/// Reads the state of one HTLC at the newest block of one endpoint.
pub type HtlcReader = Reader<Htlc>;

/// Reads the state of one HTLC.
///
/// The interface cannot read a contract at a chosen block. So the newest block is read before and after the contract, and the result is
/// the state of a block between the two. Height, time and depth are those of the first. The elapsed time lies between the two.
///
/// The contract does not store the secret hash, and it is not certain that the swap id commits to it. So the hash comes from the order's
/// funding event, in the block that the stored order names. The other terms are those that the contract stores. How an order ended comes
/// from the event in the block of its end. If the node does not have these events, an ended order is [`HtlcState::Unclear`], and a locked
/// one has no secret hash. A contract with another token, or with orders in another layout than that of version 3, is unclear too.
///
/// The origin is the id of the block with the transaction that led to the state. [`ObservedAt::is_finalized`] is set if that block is
/// irreversible and the order is the same at the newest irreversible (solidified) block.
#[derive(Debug)]
pub struct Htlc {
    query: Query,
    chain_id: u64,
    /// The greatest height that the endpoint has shown.
    shown: Known,
    state: State,
}

/// What the last requests asked for, and what the earlier ones showed.
#[derive(Debug)]
enum State {
    /// The newest block, and the newest irreversible one.
    Blocks,
    /// The order, the contract's token and balance, and the order at the irreversible block.
    Contract {
        before: Block,
        solid: Option<Block>,
    },
    /// The newest block again, the block of the last change, and its logs.
    Origin {
        before: Block,
        solid: Option<Block>,
        order: StoredOrder,
        covered: bool,
        changed_at: u64,
    },
    Ended,
}

/// Where an order is stored, and the terms that it must have.
#[derive(Debug)]
struct Query {
    htlc: Address,
    token: Option<Address>,
    token_text: Option<String>,
    id: [u8; 32],
    secret_hash: SecretHash,
}

/// What the contract stores at the newest block.
enum Stored {
    /// An order, whether its amount is covered, and whether the order is the same at the irreversible block.
    Order { order: StoredOrder, covered: bool, is_irreversible: bool },
    /// No order, or an unclear one.
    Other(HtlcState),
}

/// An event of an order, with the id of its transaction.
type Event = (HtlcEvent, [u8; 32]);

impl Machine for Htlc {
    type Subject = HtlcTerms;
    type Output = Finding;
    const MAX_ROUNDS: usize = 3;

    fn start(terms: &HtlcTerms, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let shown = Known::default().with_height(known.height());
        let machine = Self { query: Query::new(terms)?, chain_id: chain_id(&terms.network)?, shown, state: State::Blocks };
        Ok((machine, vec![Block::newest_request(View::Newest), Block::newest_request(View::Irreversible)]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Finding>, Fault> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Blocks => {
                let before = self.newest(&replies.get(0)?)?;
                let solid = Block::read_newest(&replies.get(1)?)?;
                // An irreversible block above the newest one says nothing about what was read.
                let solid = Some(solid).filter(|solid| solid.number <= before.number);
                self.state = State::Contract { before, solid };
                Ok(Turn::Ask(self.query.contract_requests()))
            }
            State::Contract { before, solid } => {
                let (order, covered, is_irreversible) = match self.query.read_contract(replies)? {
                    Stored::Order { order, covered, is_irreversible } => (order, covered, is_irreversible),
                    Stored::Other(state) => return Ok(Turn::Done(Finding::new(state, seen(before, 0)))),
                };
                let changed_at = match order.progress {
                    Progress::Open => order.initiated_at,
                    Progress::Ended { at: Some(at) } => at,
                    _ => return Ok(Turn::Done(Finding::new(unclear("the order is in an unknown state"), seen(before, 0)))),
                };
                self.state = State::Origin { before, solid: solid.filter(|_| is_irreversible), order, covered, changed_at };
                let logs = post(View::Newest, "gettransactioninfobyblocknum", &json!({"num": changed_at}));
                Ok(Turn::Ask(vec![Block::newest_request(View::Newest), Block::request(View::Newest, changed_at), logs]))
            }
            State::Origin { before, solid, order, covered, changed_at } => {
                let after = self.newest(&replies.get(0)?)?;
                let origin = Block::read_at(changed_at, &replies.get(1)?)?;
                if changed_at > after.number {
                    return Err(contradiction("/constant_result", "the order was changed after the newest block").into());
                }
                if [Some(before), solid, Some(after)].iter().flatten().any(|block| block.contradicts(&origin)) {
                    return Err(contradiction("/blockID", "the blocks are not of one chain").into());
                }
                let events = self.query.events(&replies.get(2)?, changed_at)?;
                let state = match order.progress {
                    Progress::Open => self.query.locked(&order, before, after, covered, &events)?,
                    _ => self.query.ended(&events)?,
                };
                let depth = before.number.saturating_add(1).saturating_sub(changed_at);
                let is_final = solid.is_some_and(|solid| solid.number >= changed_at);
                let at = |block: Block| (block.number.into(), UnixTime::from_millis(block.millis));
                let pace = pace::measure(at(before), solid.into_iter().chain([origin]).map(at));
                let seen = seen(before, depth).with_pace(pace).with_finalized(is_final);
                Ok(Turn::Done(Finding::new(state, seen).with_origin(origin.id)))
            }
            State::Ended => Err(AFTER_THE_END),
        }
    }

    fn learned(&self) -> Known {
        self.shown.clone()
    }
}

impl Htlc {
    /// Reads the newest block, and requires that it has not gone back.
    fn newest(&mut self, reply: &Reply<'_>) -> Result<Block, Fault> {
        let block = Block::read_newest(reply)?;
        self.shown.check_height(block.number.into(), MAX_STEP_BACK)?;
        self.shown.learn(&Known::default().with_height(block.number.into()));
        Ok(block)
    }
}

impl Query {
    fn new(terms: &HtlcTerms) -> Result<Self, Refusal> {
        let malformed = || Refusal::new(Code::AddressMalformed, "/htlc");
        let htlc = terms.htlc.as_ref().and_then(Address::from_account).ok_or_else(malformed)?;
        let token = terms.token.as_ref().map(|text| Address::parse(text).map_err(|error| Refusal::new(error, "/token").with_actual(text)));
        let id = terms.swap_id.strip_prefix("0x").unwrap_or(&terms.swap_id);
        let id = number::bare_hex_array(id).map_err(|error| Refusal::new(error, "/swap_id"))?;
        Ok(Self { htlc, token: token.transpose()?, token_text: terms.token.clone(), id, secret_hash: terms.secret_hash })
    }

    fn contract_requests(&self) -> Vec<Request> {
        let orders = Call::view(self.htlc, read::orders_call(self.id));
        let holds = match self.token {
            Some(token) => Call::view(token, read::balance_call(self.htlc.bytes())).request(View::Newest),
            None => coins_request(self.htlc),
        };
        vec![
            orders.request(View::Newest),
            Call::view(self.htlc, read::token_call()).request(View::Newest),
            holds,
            orders.request(View::Irreversible),
        ]
    }

    fn read_contract(&self, replies: &Replies<'_>) -> Result<Stored, Fault> {
        let call = |index| Ok::<_, Fault>(Outcome::read(&replies.get(index)?)?.returned());
        let (stored, token, final_order) = (call(0)?, call(1)?, call(3)?);
        let holds = match self.token {
            // A token without a balance counts as 0 here. The contract itself is checked below.
            Some(_) => call(2)?.and_then(|data| read::number(&data).ok()).unwrap_or_default(),
            None => coins(&replies.get(2)?)?,
        };
        let unclear = |why: &str| Ok(Stored::Other(unclear(why)));
        let Some(stored) = stored else { return unclear("the contract does not have `orders(bytes32)`") };
        let order = match read::order(&stored) {
            Ok(order) => order,
            Err(why) => return unclear(&why.to_string()),
        };
        // Only the pinned contract's word counts, also that it has no such order.
        let token = token.and_then(|answer| read::address(&answer).ok());
        if token != Some(self.token.map_or(NATIVE, Address::bytes)) {
            return unclear("the contract's token is not the pinned one");
        }
        let Some(order) = order else { return Ok(Stored::Other(HtlcState::Absent)) };
        if order.layout != Layout::V3 {
            return unclear("the contract stores orders in the layout of an older generation, which is not supported on Tron");
        }
        // If the node does not have the irreversible state, the order is not marked as final.
        let is_irreversible = final_order.and_then(|answer| read::order(&answer).ok().flatten()).as_ref() == Some(&order);
        Ok(Stored::Order { covered: holds >= order.amount, order, is_irreversible })
    }

    /// Reads the events of the order in one block.
    fn events(&self, reply: &Reply<'_>, number: u64) -> Result<Vec<Event>, Fault> {
        let cursor = value(reply)?;
        let Ok(all) = cursor.array() else {
            // A node without the block's history returns an empty object.
            let is_empty = cursor.object()?.keys().next().is_none();
            return if is_empty { Ok(Vec::new()) } else { Err(contradiction("", "the node did not return a list of transactions").into()) };
        };
        let mut events = Vec::new();
        for info in all {
            let members = info.object()?;
            let Some(logs) = members.get("log") else { continue };
            if count(members.get("blockNumber"))? != number {
                return Err(contradiction("/blockNumber", "the node returned a transaction of another block").into());
            }
            let is_htlc = |address: AbiAddress| address == self.htlc.bytes();
            let own = |log: &Log| log.topics.get(1) == Some(&B256::from(self.id));
            for log in read_logs_of(is_htlc, &logs)?.iter().filter(|log| own(log)) {
                let event = read::event(&log.topics, &log.data).map_err(|_| contradiction("/log", "an event of the HTLC is malformed"))?;
                if let Some(event) = event {
                    events.push((event, hash(&members.need("id")?)?));
                }
            }
        }
        Ok(events)
    }

    /// Returns the state of an open order, with the secret hash of its funding event.
    fn locked(&self, order: &StoredOrder, before: Block, after: Block, covered: bool, events: &[Event]) -> Result<HtlcState, Refusal> {
        let account = |address: AbiAddress| Address::from(address).to_account();
        let [least, most] = [before, after].map(|block| block.number.saturating_sub(order.initiated_at));
        let state = LockedHtlc::new(account(order.initiator), account(order.redeemer), order.amount, order.timelock, most)
            .with_token(self.token_text.clone())
            .with_elapsed(least, most)
            .with_covered(covered);
        Ok(match events {
            // Without the block's history, nothing shows the hash.
            [] => HtlcState::Locked(state),
            [(HtlcEvent::Initiated { secret_hash, amount, .. }, _)] if *amount == order.amount => {
                HtlcState::Locked(state.with_secret_hash(*secret_hash))
            }
            [_] => return Err(contradiction("/log", "the funding event contradicts the order")),
            _ => unclear("the order is open, and the block of its funding has several events of it"),
        })
    }

    /// Returns how an order ended. If it was funded in the same block, its funding event is there too.
    fn ended(&self, events: &[Event]) -> Result<HtlcState, Refusal> {
        let mut ends = events.iter().filter(|(event, _)| !matches!(event, HtlcEvent::Initiated { .. }));
        let (end, more) = (ends.next(), ends.next().is_some());
        Ok(match end {
            _ if more => unclear("the order has ended more than once"),
            Some((event, id)) => match event.end(self.secret_hash, Some(hex::encode(id))) {
                HtlcState::Unclear(_) => return Err(contradiction("/log", "the secret belongs to another order")),
                state => state,
            },
            None => unclear("the order has ended, and no event shows how"),
        })
    }
}

fn unclear(why: &str) -> HtlcState {
    HtlcState::Unclear(why.to_owned())
}

fn seen(head: Block, depth: u64) -> ObservedAt {
    ObservedAt::new(head.number.into(), hex::encode(head.id), UnixTime::from_millis(head.millis), depth)
}
