//! The events of an order, which a node returns in pages.

use std::ops::RangeInclusive;

use countersign_core::json::Cursor;
use countersign_core::reader::Request;
use countersign_core::{Code, Refusal, SecretHash};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::block::Block;
use super::hex;
use super::htlc::OrderQuery;
use crate::felt;
use crate::read::{self, HtlcEvent};

/// The maximum number of events in a page and in total. An order is funded and ends only once.
const MAX_EVENTS: usize = 8;
/// The maximum number of pages. A node that searches many blocks may return empty ones in between.
pub(super) const MAX_PAGES: usize = 16;
/// The maximum length in bytes of a continuation token.
const MAX_TOKEN: usize = 1_024;

/// An event of the order, with its block and transaction.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) event: HtlcEvent,
    pub(super) number: u64,
    pub(super) hash: Felt,
    pub(super) transaction: Felt,
}

/// The events of an order that are requested, and those that have been read so far.
#[derive(Debug)]
pub(super) struct Events {
    /// The names of the events, which are their first keys.
    names: &'static [Felt],
    blocks: RangeInclusive<u64>,
    pub(super) all: Vec<Event>,
    /// The continuation token of the next page.
    next: Option<String>,
    pages: usize,
}

impl Events {
    pub(super) const fn new(names: &'static [Felt], blocks: RangeInclusive<u64>) -> Self {
        Self { names, blocks, all: Vec::new(), next: None, pages: 0 }
    }

    /// Creates the request for the first page, or for the next one; `None` if there is none, or if there have been too many.
    pub(super) fn request(&self, query: &OrderQuery) -> Option<Request> {
        if self.pages >= MAX_PAGES || (self.pages > 0 && self.next.is_none()) {
            return None;
        }
        let names: Vec<_> = self.names.iter().copied().map(hex).collect();
        let mut filter = json!({
            "address": hex(query.htlc),
            "from_block": {"block_number": self.blocks.start()},
            "to_block": {"block_number": self.blocks.end()},
            "keys": [names, [hex(query.id)]],
            "chunk_size": MAX_EVENTS,
        });
        if let (Some(page), Some(members)) = (&self.next, filter.as_object_mut()) {
            members.insert("continuation_token".to_owned(), json!(page));
        }
        Some(Request::json_rpc("starknet_getEvents", json!({"filter": filter})))
    }

    /// Returns whether there may be more events.
    pub(super) const fn is_cut(&self) -> bool {
        self.next.is_some()
    }

    /// Reads a page.
    pub(super) fn read(&mut self, cursor: &Cursor<'_, '_>, query: &OrderQuery, latest: &Block) -> Result<(), Refusal> {
        let members = cursor.object()?;
        let list = members.need("events")?;
        let events = list.array()?;
        let count = self.all.len().saturating_add(events.len());
        if count > MAX_EVENTS {
            let refusal = list.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_EVENTS} events"));
            return Err(refusal.with_actual(count));
        }
        let next = members.get("continuation_token").map(|token| {
            let text = token.text()?;
            if text.len() > MAX_TOKEN { Err(token.refuse(Code::WrongType)) } else { Ok(text.to_owned()) }
        });
        self.next = next.transpose()?;
        for event in events {
            self.all.push(self.read_event(&event, query, latest)?);
        }
        self.pages = self.pages.saturating_add(1);
        Ok(())
    }

    fn read_event(&self, cursor: &Cursor<'_, '_>, query: &OrderQuery, latest: &Block) -> Result<Event, Refusal> {
        let members = cursor.object()?;
        let foreign = |key: &'static str| {
            members.at().key(key).refuse(Code::WrongType).with_reason("the node returned an event that does not match the request")
        };
        let number = members.need("block_number")?.integer()?;
        let hash = felt::read(members.need("block_hash")?)?;
        if !self.blocks.contains(&number) || !latest.agrees_with(number, hash) {
            return Err(foreign("block_number"));
        }
        if !self.names.contains(&felt::read(members.need("keys")?.array()?.next().ok_or_else(|| foreign("keys"))?)?) {
            return Err(foreign("keys"));
        }
        // The hash in the event is that of its secret, but may not be that of the terms.
        let is_other = |secret: &[u8; 32]| SecretHash::of(secret) != query.secret_hash;
        let event = match read::emitted_event(cursor, query.generation, query.htlc)? {
            Some(event) if *event.order_id() != query.id => return Err(foreign("keys")),
            Some(HtlcEvent::Redeemed { secret, .. }) if is_other(&secret) => return Err(foreign("keys")),
            Some(event) => event,
            None => return Err(foreign("keys")),
        };
        Ok(Event { event, number, hash, transaction: felt::read(members.need("transaction_hash")?)? })
    }
}
