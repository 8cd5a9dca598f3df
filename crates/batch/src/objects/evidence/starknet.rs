//! Starknet: the order in the contract, as felts.

use countersign::starknet::address::{from_account, to_account};
use countersign::starknet::read::{self, Progress};
use countersign::starknet::{Felt, felt};
use countersign::{Code, HtlcState, HtlcTerms, Refusal, StarknetGeneration};
use countersign_core::json::{Members, Node};

use super::{OTHER_TOKEN, OrderEvent, Stored, holds, unclear};

pub(super) fn state(terms: &HtlcTerms, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    members.only(&["order", "token", "holds", "head", "event"])?;
    let generation = StarknetGeneration::expected(terms.generation);
    let felts = members.need("order")?.array()?.take(read::FELTS.saturating_add(1)).map(felt::read).collect::<Result<Vec<_>, _>>()?;
    let order = match read::order(generation, &felts) {
        Ok(Some(order)) => order,
        Ok(None) => return Ok(HtlcState::Absent),
        Err(why) => return Ok(unclear(why)),
    };
    let pinned = terms.token.as_deref().and_then(|text| Felt::from_hex(text).ok());
    if pinned != Some(felt::read(members.need("token")?)?) {
        return Ok(unclear(OTHER_TOKEN));
    }
    let event = members.get("event").map(|event| read_event(&event, terms, generation)).transpose()?;
    let covered = holds(members)? >= order.amount;
    let stored = Stored {
        initiator: to_account(order.initiator),
        redeemer: to_account(order.redeemer),
        amount: order.amount,
        timelock: order.timelock,
        initiated_at: order.initiated_at,
        has_ended: order.progress != Progress::Open,
    };
    Ok(stored.state(terms, members.need("head")?.integer()?, covered, event))
}

/// Reads an event of the contract.
fn read_event(node: &Node<'_, '_>, terms: &HtlcTerms, generation: StarknetGeneration) -> Result<OrderEvent<Felt>, Refusal> {
    let htlc = terms.htlc.as_ref().and_then(from_account).ok_or_else(|| Refusal::new(Code::AddressMalformed, "/htlc"))?;
    let id = terms.swap_id.strip_prefix("0x").unwrap_or(&terms.swap_id);
    let id = felt::parse(&format!("0x{id}")).map_err(|error| Refusal::new(error, "/swap_id"))?;
    let transaction = felt::read(node.object()?.need("transaction_hash")?)?;
    OrderEvent::new(node, &id, read::emitted_event(node, generation, htlc)?, &format!("{transaction:#x}"))
}
