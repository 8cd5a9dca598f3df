//! The state of one HTLC.

use std::ops::RangeInclusive;

use alloy_primitives::{Address, B256, Keccak256, U256, hex};
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Identity, Known, Machine, Reader, Replies, Reply, Request, Turn};
use countersign_core::{
    Code, EvmGeneration, Finding, Generation, HtlcState, HtlcTerms, LockedHtlc, ObservedAt, Refusal, SecretHash, UnixTime, number, pace,
};
use serde_json::json;

use super::block::{self, Block, Blocks};
use super::served::needs_lower_height;
use super::{MAX_ANSWER, answer, at, balance, call, chain_id, complete, hash, identity, proof, quantity, returned};
use crate::address::{from_account, to_account};
use crate::read::{self, HtlcEvent, Layout, NATIVE, Progress, StoredOrder};

/// The maximum number of logs that are read for one order, which ends only once.
const MAX_LOGS: usize = 8;

/// A chain of Arbitrum that the service is not known to use, so that a registry may give it any name.
pub(super) const ARBITRUM_NOVA: u64 = 42_170;
/// Ethereum always has a block within this time, in seconds.
const MAX_L1_PAUSE: u64 = 3_600;

const NOT_ASKED_FOR: &str = "the node returned a log that does not match the request";

/// Reads the state of one HTLC from one endpoint, at the endpoint's newest block.
pub type HtlcReader = Reader<Htlc>;

/// How the state of one HTLC is read.
///
/// The state comes from the order that the contract stores. The contract must have the expected token, and the order must have the
/// layout of the pinned generation, or any known layout if no generation is pinned. Only its event shows how an order ended: without the
/// event, the state is [`HtlcState::Unclear`]. If block headers hash as on Ethereum and the node supports `eth_getProof`, the proof must
/// contain the same order.
///
/// The reader of [`HtlcTerms`] without an HTLC, or with a token or swap id that is not one, is refused with [`Code::AddressMalformed`] or
/// a code for malformed hex.
///
/// | round | asked |
/// |---|---|
/// | 1 | the newest, the safe and the final block |
/// | 2 | order, token, balance and proof at the newest block, and the order at the safe and the final block |
/// | 3 | the block of the funding, and its event if that is needed; or the event that ended the order |
#[derive(Debug)]
pub struct Htlc {
    query: Query,
    known: Known,
    stage: Stage,
}

/// Where an order is stored, and the terms that it must have.
#[derive(Debug)]
struct Query {
    chain_id: u64,
    /// Whether contracts may count the blocks of the chain below, whose height the headers must therefore show.
    has_l1_number: bool,
    htlc: Address,
    token: Option<Address>,
    token_text: Option<String>,
    id: [u8; 32],
    secret_hash: SecretHash,
    generation: Option<&'static EvmGeneration>,
    /// A layout, and the slots of the order in it: of the pinned generation, or of the oldest that has a known slot.
    storage: Option<(Layout, [B256; read::WORDS])>,
    /// Whether the id is known to commit to the secret hash. If not, the funding event must contain the hash.
    id_commits_to_hash: bool,
}

/// What the last requests asked for.
#[derive(Debug, Clone)]
enum Stage {
    /// The newest blocks.
    Blocks,
    /// The order at these blocks.
    Order(Blocks),
    /// The block in which the order was initiated, and its event if it is needed.
    Funding(Blocks, Stored),
    /// The event that ended the order, in a range of blocks.
    End(Blocks, Stored, RangeInclusive<u64>),
    /// Nothing: the reading is complete.
    Done(Blocks),
}

/// What the contract stores at the newest block.
#[derive(Debug, Clone)]
struct Stored {
    order: StoredOrder,
    is_covered: bool,
    is_safe: bool,
    is_finalized: bool,
    /// Whether the event of the funding must be found in the block that the order names.
    needs_event: bool,
}

impl Machine for Htlc {
    type Subject = HtlcTerms;
    type Output = Finding;
    const MAX_ROUNDS: usize = 3;

    fn start(terms: &HtlcTerms, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let machine = Self { query: Query::new(terms)?, known: known.clone(), stage: Stage::Blocks };
        Ok((machine, vec![block::by_tag(block::LATEST), block::by_tag(block::SAFE), block::by_tag(block::FINALIZED)]))
    }

    fn identity(&self) -> Identity {
        identity(self.query.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Finding>, Fault> {
        let query = &self.query;
        let (stage, turn) = match &self.stage {
            Stage::Blocks => {
                let blocks = Blocks::read(replies, self.query.chain_id, &self.known)?;
                (Stage::Order(blocks), Turn::Ask(query.order_requests(&blocks)))
            }
            Stage::Order(blocks) => match query.read_order(blocks, replies)? {
                Ok(stored) => query.origin(*blocks, stored),
                Err(state) => (Stage::Done(*blocks), Turn::Done(blocks.finding(state))),
            },
            Stage::Funding(blocks, stored) => (Stage::Done(*blocks), Turn::Done(query.read_funding(blocks, stored, replies)?)),
            Stage::End(blocks, stored, range) => (Stage::Done(*blocks), Turn::Done(query.read_end(blocks, stored, range, replies)?)),
            Stage::Done(_) => return Err(complete()),
        };
        self.stage = stage;
        Ok(turn)
    }

    fn learned(&self) -> Known {
        block::learned(self.blocks().map(|blocks| &blocks.latest))
    }

    /// Returns the hash of the query and of the three blocks. Everything that is read after them is read at them.
    fn stamp(&self) -> Option<Vec<u8>> {
        let (blocks, query) = (self.blocks()?, &self.query);
        let mark = |block: Option<Block>| block.map_or(B256::ZERO, |block| block.hash);
        let mut stamp = Keccak256::new();
        stamp.update(query.chain_id.to_be_bytes());
        stamp.update(query.htlc);
        stamp.update(query.token.unwrap_or(NATIVE));
        stamp.update(query.id);
        stamp.update(query.secret_hash.0);
        stamp.update([u8::from(query.id_commits_to_hash)]);
        stamp.update(query.generation.map_or("", |generation| generation.name));
        stamp.update([blocks.latest.hash, mark(blocks.safe), mark(blocks.finalized)].concat());
        Some(stamp.finalize().to_vec())
    }
}

impl Htlc {
    const fn blocks(&self) -> Option<&Blocks> {
        match &self.stage {
            Stage::Blocks => None,
            Stage::Order(blocks) | Stage::Funding(blocks, _) | Stage::End(blocks, ..) | Stage::Done(blocks) => Some(blocks),
        }
    }
}

impl Blocks {
    /// Requires that a block with this number and hash can be on the chain of the newest block.
    fn check(&self, number: u64, hash: B256) -> Result<(), Fault> {
        if number > self.latest.number || (number == self.latest.number) != (hash == self.latest.hash) {
            return Err(contradiction("a block contradicts the newest block"));
        }
        Ok(())
    }

    /// Returns the finding for a state without an origin.
    fn finding(&self, state: HtlcState) -> Finding {
        Finding::new(state, self.seen_at(0))
    }

    fn seen_at(&self, depth: u64) -> ObservedAt {
        let time = UnixTime::from_secs(self.latest.time);
        ObservedAt::new(self.latest.number.into(), self.latest.hash.to_string(), time, depth).with_pace(self.pace(None))
    }

    /// Measures the pace of the chain between the newest block and the marked ones, and one more.
    fn pace(&self, other: Option<Block>) -> Option<u64> {
        let at = |block: Block| (block.number.into(), UnixTime::from_secs(block.time));
        pace::measure(at(self.latest), [self.safe, self.finalized, other].into_iter().flatten().map(at))
    }

    /// Returns the finding for a state that the block with this number and hash led to.
    fn finding_from(&self, state: HtlcState, stored: &Stored, number: u64, origin: B256) -> Finding {
        let depth = self.latest.number.saturating_sub(number).saturating_add(1);
        Finding::new(state, self.seen_at(depth).with_safe(stored.is_safe).with_finalized(stored.is_finalized)).with_origin(origin.0)
    }
}

impl Query {
    fn new(terms: &HtlcTerms) -> Result<Self, Refusal> {
        let malformed = |at| Refusal::new(Code::AddressMalformed, at);
        let htlc = terms.htlc.as_ref().and_then(from_account).ok_or_else(|| malformed("/htlc"))?;
        let token = match &terms.token {
            Some(text) => Some(text.parse::<Address>().map_err(|_| malformed("/token").with_actual(text))?),
            None => None,
        };
        let id = terms.swap_id.strip_prefix("0x").unwrap_or(&terms.swap_id);
        let id = number::bare_hex_array(id).map_err(|error| Refusal::new(error, "/swap_id"))?;
        let generation = terms.generation.and_then(Generation::evm);
        let known = |generation: &EvmGeneration| Some((generation.layout, read::slots(id, generation.contract(token.is_none()).slot?)));
        let storage = generation.and_then(known).or_else(|| EvmGeneration::ALL.iter().find_map(|oldest| known(oldest)));
        let (secret_hash, id_commits_to_hash, token_text) = (terms.secret_hash, terms.swap_id_recomputed, terms.token.clone());
        let chain_id = chain_id(&terms.network)?;
        let has_l1_number = needs_lower_height(chain_id, terms.profile());
        Ok(Self { chain_id, has_l1_number, htlc, token, token_text, id, secret_hash, generation, storage, id_commits_to_hash })
    }

    /// Returns the requests of the second round.
    fn order_requests(&self, blocks: &Blocks) -> Vec<Request> {
        let newest = at(blocks.latest.hash);
        let orders = read::orders_call(self.id);
        // Without a marked block, the answer is ignored, and the request is equal to the first one.
        let marked = |block: Option<Block>| call(self.htlc, &orders, &at(block.unwrap_or(blocks.latest).hash));
        vec![
            call(self.htlc, &orders, &newest),
            call(self.htlc, &read::token_call(), &newest),
            balance(self.htlc, self.token, &newest),
            Request::json_rpc("eth_getProof", json!([self.htlc, self.storage.map(|(_, slots)| slots), newest])),
            marked(blocks.safe),
            marked(blocks.finalized),
        ]
    }

    /// Reads the second round: the stored order, or the state if there is nothing else to read.
    fn read_order(&self, blocks: &Blocks, replies: &Replies<'_>) -> Result<Result<Stored, HtlcState>, Fault> {
        let unclear = |why: &str| Ok(Err(HtlcState::Unclear(why.to_owned())));
        // A revert means that the contract is of another kind.
        let Some(stored) = returned(&replies.get(0)?, MAX_ANSWER)? else { return unclear("the contract does not have `orders(bytes32)`") };
        let order = match read::order(&stored) {
            Ok(order) => order,
            Err(why) => return unclear(&why.to_string()),
        };
        if let Some(order) = &order
            && let Err(why) = order.check_generation(self.generation)
        {
            return unclear(&why);
        }
        // Before "no such order" is believed: another contract does not have the order either.
        let token = returned(&replies.get(1)?, MAX_ANSWER)?.and_then(|answer| read::address(&answer).ok());
        match (token, self.token.unwrap_or(NATIVE)) {
            (Some(token), expected) if token == expected => {}
            // Some contracts for the chain's own coin have no `token()`.
            (None, NATIVE) if self.generation.or_else(|| order.as_ref()?.generation()).is_some_and(|own| !own.native.has_token) => {}
            _ => return unclear("the contract's token is not the pinned one"),
        }
        if let Some((layout, slots)) = &self.storage
            && order.as_ref().is_none_or(|order| order.layout == *layout)
        {
            self.check_proof(&replies.get(3)?, blocks, slots, &stored)?;
        }
        let Some(order) = order else { return Ok(Err(HtlcState::Absent)) };
        let newest = blocks.latest.number;
        if order.initiated_at > newest {
            return Err(contradiction("the order was initiated after the newest block"));
        }
        if matches!(order.progress, Progress::Ended { at: Some(at) } if at > newest) {
            return Err(contradiction("the order ended after the newest block"));
        }
        let holds = replies.json(2)?;
        let holds = if self.token.is_some() { answer(&holds, read::number)? } else { holds.hex_number()? };
        // The order is marked if it is already the same at the marked block. If the node does not have that state, it is not marked.
        let is_marked = |block: Option<Block>, index| {
            let answer = replies.json(index).ok().and_then(|cursor| cursor.hex_bytes(MAX_ANSWER).ok());
            let there = answer.and_then(|answer| read::order(&answer).ok().flatten());
            block.is_some_and(|block| block.number >= order.initiated_at) && there.as_ref() == Some(&order)
        };
        let (is_safe, is_finalized) = (is_marked(blocks.safe, 4), is_marked(blocks.finalized, 5));
        let is_open = matches!(order.progress, Progress::Open);
        if is_open && self.has_l1_number && blocks.latest.l1_number.is_none() {
            return unclear("the contract may count the blocks of another chain, whose height the endpoint does not show");
        }
        // A contract on Arbitrum counts that chain's blocks or Ethereum's. A number that both have passed could be either, and only the
        // event in the block with that number shows that it is Arbitrum's.
        let is_ambiguous = blocks.latest.l1_number.is_some_and(|number| order.initiated_at <= number);
        let needs_event = !self.id_commits_to_hash || is_ambiguous;
        Ok(Ok(Stored { is_covered: holds >= order.amount, order, is_safe, is_finalized, needs_event }))
    }

    /// Requires that a proof, if the node gives one that can be checked, contains the words that the call returned.
    fn check_proof(&self, reply: &Reply<'_>, blocks: &Blocks, slots: &[B256], stored: &[u8]) -> Result<(), Fault> {
        if let (Ok(proof), Some(state_root)) = (reply.json(), blocks.latest.state_root)
            && let Some(values) = proof::read(&proof, state_root, self.htlc, slots)
            && !values.iter().flat_map(U256::to_be_bytes::<32>).eq(stored.iter().copied())
        {
            let refusal = proof.at().refuse(Code::WrongType);
            return Err(refusal.with_reason("the proof contains another order than the call returned").into());
        }
        Ok(())
    }

    /// Returns the third round, which reads what led to the state.
    fn origin(&self, blocks: Blocks, stored: Stored) -> (Stage, Turn<Finding>) {
        let (initiated_at, newest) = (stored.order.initiated_at, blocks.latest.number);
        match stored.order.progress {
            Progress::Open => {
                let mut requests = vec![block::by_number(initiated_at)];
                if stored.needs_event {
                    requests.push(self.logs(&[read::INITIATED], &(initiated_at..=initiated_at)));
                }
                (Stage::Funding(blocks, stored), Turn::Ask(requests))
            }
            Progress::Ended { at } => {
                // Nodes limit the range of blocks in one request, so the exact block is named if it is known.
                let range = at.map_or(initiated_at..=newest, |at| at..=at);
                let request = self.logs(&[read::REDEEMED, read::REFUNDED], &range);
                (Stage::End(blocks, stored, range), Turn::Ask(vec![request]))
            }
            _ => (Stage::Done(blocks), Turn::Done(blocks.finding(HtlcState::Unclear("the order is in an unknown state".to_owned())))),
        }
    }

    /// Creates the request for the events of the order in a range of blocks.
    fn logs(&self, events: &[B256], range: &RangeInclusive<u64>) -> Request {
        let filter = json!({
            "address": self.htlc,
            "fromBlock": format!("{:#x}", range.start()),
            "toBlock": format!("{:#x}", range.end()),
            "topics": [events, hex::encode_prefixed(self.id)],
        });
        Request::json_rpc("eth_getLogs", json!([filter]))
    }

    /// Reads the third round of an open order: the block in which it was initiated, and the event if it is needed.
    fn read_funding(&self, blocks: &Blocks, stored: &Stored, replies: &Replies<'_>) -> Result<Finding, Fault> {
        let order = &stored.order;
        let block = Block::read(&replies.json(0)?)?;
        let block = block.ok_or_else(|| contradiction("the block in which the order was initiated is missing"))?;
        if block.number != order.initiated_at || block.time > blocks.latest.time {
            return Err(contradiction("the block in which the order was initiated contradicts the newest block"));
        }
        blocks.check(block.number, block.hash)?;
        if let Err(why) = check_counters(&block, &blocks.latest) {
            return Ok(blocks.finding(HtlcState::Unclear(why.to_owned())));
        }
        let mut locked = LockedHtlc::new(
            to_account(order.initiator),
            to_account(order.redeemer),
            order.amount,
            order.timelock,
            blocks.latest.number.saturating_sub(order.initiated_at),
        );
        if stored.needs_event {
            match self.funding_hash(&replies.json(1)?, order, &block)? {
                Some(hash) if !self.id_commits_to_hash => locked = locked.with_secret_hash(hash),
                // The id commits to the hash, so the event shows only where it is.
                Some(hash) if hash != self.secret_hash => {
                    return Err(contradiction("the event of the funding has another secret hash than the order's id"));
                }
                None if self.id_commits_to_hash => {
                    let why = "the contract may count the blocks of another chain: its event is not in the block that the order names";
                    return Ok(blocks.finding(HtlcState::Unclear(why.to_owned())));
                }
                _ => {}
            }
        }
        let locked = locked.with_token(self.token_text.clone()).with_covered(stored.is_covered);
        let mut finding = blocks.finding_from(HtlcState::Locked(locked), stored, block.number, block.hash);
        finding.seen = finding.seen.with_pace(blocks.pace(Some(block)));
        Ok(finding)
    }

    /// Returns the secret hash in the funding event of an order; `None` unless there is exactly one such event.
    fn funding_hash(&self, list: &Cursor<'_, '_>, order: &StoredOrder, block: &Block) -> Result<Option<SecretHash>, Refusal> {
        let mut hashes = Vec::new();
        for log in list.array()?.take(MAX_LOGS) {
            let (event, _, hash) = self.read_event(&log, &(block.number..=block.number))?;
            match event {
                Some(HtlcEvent::Initiated { order_id, secret_hash, amount })
                    if order_id.0 == self.id && amount == order.amount && hash == block.hash =>
                {
                    hashes.push(secret_hash);
                }
                _ => return Err(log.at().refuse(Code::WrongType).with_reason(NOT_ASKED_FOR)),
            }
        }
        Ok(if let [hash] = hashes.as_slice() { Some(*hash) } else { None })
    }

    /// Reads the third round of an order that has ended: the event that shows how.
    fn read_end(&self, blocks: &Blocks, stored: &Stored, range: &RangeInclusive<u64>, replies: &Replies<'_>) -> Result<Finding, Fault> {
        let list = replies.json(0)?;
        let all = list.array()?;
        if all.len() > MAX_LOGS {
            let refusal = list.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_LOGS} logs")).with_actual(all.len());
            return Err(refusal.into());
        }
        let ends = all.map(|log| self.end(&log, range)).collect::<Result<Vec<_>, _>>()?;
        let unclear = |why: &str| Ok(blocks.finding(HtlcState::Unclear(why.to_owned())));
        match ends.as_slice() {
            [(state, number, hash)] => {
                blocks.check(*number, *hash)?;
                Ok(blocks.finding_from(state.clone(), stored, *number, *hash))
            }
            [] => unclear("the order has ended, and no event shows how"),
            _ => unclear("the order has ended more than once"),
        }
    }

    fn end(&self, log: &Cursor<'_, '_>, range: &RangeInclusive<u64>) -> Result<(HtlcState, u64, B256), Refusal> {
        let (event, number, block) = self.read_event(log, range)?;
        let transaction = Some(hash(&log.object()?.need("transactionHash")?)?.to_string());
        let state = event.filter(|event| event.order_id().0 == self.id).map(|event| event.end(self.secret_hash, transaction));
        match state {
            Some(state @ (HtlcState::Redeemed { .. } | HtlcState::Refunded { .. })) => Ok((state, number, block)),
            _ => Err(log.at().key("topics").refuse(Code::WrongType).with_reason(NOT_ASKED_FOR)),
        }
    }

    /// Reads an event of the HTLC, with the number and hash of its block.
    fn read_event(&self, log: &Cursor<'_, '_>, range: &RangeInclusive<u64>) -> Result<(Option<HtlcEvent>, u64, B256), Refusal> {
        let members = log.object()?;
        let number = members.need("blockNumber")?;
        let height = quantity(&number)?;
        if !range.contains(&height) {
            return Err(number.refuse(Code::WrongType).with_reason(NOT_ASKED_FOR));
        }
        Ok((read::log(log, self.htlc)?, height, hash(&members.need("blockHash")?)?))
    }
}

/// Requires that the height of the chain below, where headers show one, grows with the chain itself. Otherwise it does not tell which of
/// the two a contract counts.
const fn check_counters(earlier: &Block, latest: &Block) -> Result<(), &'static str> {
    match (earlier.l1_number, latest.l1_number) {
        (None, None) => Ok(()),
        (Some(before), Some(now)) if before > now => Err("the height of the chain below has gone back"),
        (Some(before), Some(now)) if before == now && latest.time.saturating_sub(earlier.time) > MAX_L1_PAUSE => {
            Err("the height of the chain below stands still, so it is unclear which blocks the contract counts")
        }
        (Some(_), Some(_)) => Ok(()),
        _ => Err("only some headers show the height of the chain below, whose blocks the contract may count"),
    }
}

fn contradiction(reason: &'static str) -> Fault {
    Refusal::new(Code::WrongType, "/result").with_reason(reason).into()
}
