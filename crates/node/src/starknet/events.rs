//! The events of an order, which a node lists on pages.

use std::ops::RangeInclusive;

use countersign::json::Node;
use countersign::starknet::read::{self, HtlcEvent};
use countersign::starknet::{Felt, felt};
use countersign::{Code, Refusal, SecretHash};
use countersign_client::Transport;
use serde_json::json;

use super::htlc::Question;
use super::{felts, first, hex};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;

/// Most events of one page, and of all: an order begins and ends once.
const MAX_EVENTS: usize = 8;
/// Most pages. A node that looks through many blocks gives empty ones in between.
const MAX_PAGES: usize = 16;
/// Most characters of what a node names the next page by.
const MAX_TOKEN: usize = 1_024;
/// Most keys of an event.
const MAX_KEYS: usize = 4;
/// Most felts of an event's data.
const MAX_EVENT_DATA: usize = 128;

/// Which events of an order are asked for.
pub(super) struct EventFilter<'q> {
    pub(super) question: &'q Question,
    /// The first keys.
    pub(super) names: &'q [Felt],
    pub(super) blocks: RangeInclusive<u64>,
}

/// An event of the order, and where it is.
pub(super) struct Event {
    pub(super) event: HtlcEvent,
    pub(super) number: u64,
    pub(super) hash: Felt,
    pub(super) transaction: Felt,
}

/// The events that were listed so far.
#[derive(Default)]
pub(super) struct Events {
    pub(super) all: Vec<Event>,
    /// Names the next page.
    next: Option<String>,
}

impl Events {
    /// Whether there may be more of them.
    pub(super) const fn is_cut(&self) -> bool {
        self.next.is_some()
    }
}

impl EventFilter<'_> {
    /// Asks for the first page, or for the one that the page before it names.
    pub(super) fn call(&self, page: Option<&str>) -> Call {
        let names: Vec<_> = self.names.iter().copied().map(hex).collect();
        let mut filter = json!({
            "address": hex(self.question.htlc),
            "from_block": {"block_number": self.blocks.start()},
            "to_block": {"block_number": self.blocks.end()},
            "keys": [names, [hex(self.question.id)]],
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
        let all = events.map(|event| read_event(&event, self.question, &self.blocks)).collect::<Result<_, _>>()?;
        Ok(Events { all, next: next.transpose()? })
    }

    /// Asks for the pages that follow, until there is none or there have been too many.
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

fn read_event(node: &Node<'_, '_>, question: &Question, blocks: &RangeInclusive<u64>) -> Result<Event, Refusal> {
    let members = node.object()?;
    let foreign = |key: &'static str| members.at().key(key).refuse(Code::WrongType).with_reason("this event was not asked for");
    if felt::read(members.need("from_address")?)? != question.htlc {
        return Err(foreign("from_address"));
    }
    let number = members.need("block_number")?.integer()?;
    if !blocks.contains(&number) {
        return Err(foreign("block_number"));
    }
    let (keys, data) = (felts(&members.need("keys")?, MAX_KEYS)?, felts(&members.need("data")?, MAX_EVENT_DATA)?);
    let event = read::event(question.generation, &keys, &data).map_err(|unclear| foreign("keys").with_reason(unclear.to_string()))?;
    let is_of_order = match event {
        Some(HtlcEvent::Redeemed { order_id, secret }) => order_id == question.id && SecretHash::of(&secret) == question.secret_hash,
        Some(HtlcEvent::Initiated { order_id, .. } | HtlcEvent::Refunded { order_id }) => order_id == question.id,
        _ => false,
    };
    let Some(event) = event.filter(|_| is_of_order) else { return Err(foreign("keys")) };
    let (hash, transaction) = (felt::read(members.need("block_hash")?)?, felt::read(members.need("transaction_hash")?)?);
    Ok(Event { event, number, hash, transaction })
}
