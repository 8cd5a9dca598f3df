//! The events of an order, which a node returns in pages.

use std::ops::RangeInclusive;

use countersign::json::Node;
use countersign::starknet::read::{self, HtlcEvent};
use countersign::starknet::{Felt, felt};
use countersign::{Code, Refusal, SecretHash};
use countersign_client::Transport;
use serde_json::json;

use super::htlc::OrderQuery;
use super::{first, hex};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;

/// The maximum number of events in a page and in total. An order is funded and ends only once.
const MAX_EVENTS: usize = 8;
/// The maximum number of pages. A node that searches many blocks may return empty ones in between.
const MAX_PAGES: usize = 16;
/// The maximum length in bytes of a continuation token.
const MAX_TOKEN: usize = 1_024;

/// The events of an order that are requested.
pub(super) struct EventFilter<'q> {
    pub(super) query: &'q OrderQuery,
    /// The names of the events, which are their first keys.
    pub(super) names: &'q [Felt],
    pub(super) blocks: RangeInclusive<u64>,
}

/// An event of the order, with its block and transaction.
pub(super) struct Event {
    pub(super) event: HtlcEvent,
    pub(super) number: u64,
    pub(super) hash: Felt,
    pub(super) transaction: Felt,
}

/// The events that have been read so far.
#[derive(Default)]
pub(super) struct Events {
    pub(super) all: Vec<Event>,
    /// The continuation token of the next page.
    next: Option<String>,
}

impl Events {
    /// Returns whether there may be more events.
    pub(super) const fn is_cut(&self) -> bool {
        self.next.is_some()
    }
}

impl EventFilter<'_> {
    /// Creates the call that reads the first page, or the page with a continuation token.
    pub(super) fn call(&self, page: Option<&str>) -> Call {
        let names: Vec<_> = self.names.iter().copied().map(hex).collect();
        let mut filter = json!({
            "address": hex(self.query.htlc),
            "from_block": {"block_number": self.blocks.start()},
            "to_block": {"block_number": self.blocks.end()},
            "keys": [names, [hex(self.query.id)]],
            "chunk_size": MAX_EVENTS,
        });
        if let (Some(page), Some(members)) = (page, filter.as_object_mut()) {
            members.insert("continuation_token".to_owned(), json!(page));
        }
        Call::new("starknet_getEvents", json!({"filter": filter}))
    }

    /// Reads a page.
    pub(super) fn read(&self, node: &Node<'_, '_>) -> Result<Events, Refusal> {
        let members = node.object()?;
        let list = members.need("events")?;
        let events = list.array()?;
        if events.len() > MAX_EVENTS {
            return Err(too_many(&list, events.len()));
        }
        let next = members.get("continuation_token").map(|token| {
            let text = token.text()?;
            if text.len() > MAX_TOKEN { Err(token.refuse(Code::WrongType)) } else { Ok(text.to_owned()) }
        });
        let all = events.map(|event| read_event(&event, self.query, &self.blocks)).collect::<Result<_, _>>()?;
        Ok(Events { all, next: next.transpose()? })
    }

    /// Reads the following pages until the last one, or until there have been too many.
    pub(super) async fn follow<T: Transport>(&self, caller: Caller<'_, T>, mut events: Events) -> Result<Events, NodeError> {
        for _ in 1..MAX_PAGES {
            let Some(page) = events.next.take() else { break };
            let read = |results: &[Node<'_, '_>]| {
                let node = first(results)?;
                let page = self.read(&node)?;
                let count = events.all.len().saturating_add(page.all.len());
                if count > MAX_EVENTS { Err(too_many(&node, count)) } else { Ok(page) }
            };
            let page = caller.rpc(&[self.call(Some(&page))], read).await?;
            events.all.extend(page.all);
            events.next = page.next;
        }
        Ok(events)
    }
}

fn too_many(node: &Node<'_, '_>, count: usize) -> Refusal {
    node.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_EVENTS} events")).with_actual(count)
}

fn read_event(node: &Node<'_, '_>, query: &OrderQuery, blocks: &RangeInclusive<u64>) -> Result<Event, Refusal> {
    let members = node.object()?;
    let foreign = |key: &'static str| {
        members.at().key(key).refuse(Code::WrongType).with_reason("the node returned an event that does not match the request")
    };
    let number = members.need("block_number")?.integer()?;
    if !blocks.contains(&number) {
        return Err(foreign("block_number"));
    }
    let event = read::emitted_event(node, query.generation, query.htlc)?;
    // The hash in the event is that of its secret, but may not be that of the terms.
    let is_other = |secret: &[u8; 32]| SecretHash::of(secret) != query.secret_hash;
    let event = match event {
        Some(event) if *event.order_id() != query.id => return Err(foreign("keys")),
        Some(HtlcEvent::Redeemed { secret, .. }) if is_other(&secret) => return Err(foreign("keys")),
        Some(event) => event,
        None => return Err(foreign("keys")),
    };
    let (hash, transaction) = (felt::read(members.need("block_hash")?)?, felt::read(members.need("transaction_hash")?)?);
    Ok(Event { event, number, hash, transaction })
}
