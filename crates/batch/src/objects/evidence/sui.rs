//! Sui: the order in the registry's dynamic field.

use countersign::sui::address::{from_account, to_account};
use countersign::sui::read;
use countersign::sui::sui_sdk_types::Address;
use countersign::{Account, Code, HtlcState, HtlcTerms, Refusal, U256};
use countersign_core::json::{Members, Node};
use countersign_core::number;

use super::{OrderEvent, Stored, base64, unclear};

fn pinned(account: Option<&Account>, at: &'static str) -> Result<Address, Refusal> {
    account.and_then(from_account).ok_or_else(|| Refusal::new(Code::AddressMalformed, at))
}

/// Returns the id of the dynamic field in which the pinned registry stores the order.
pub(super) fn field(terms: &HtlcTerms) -> Result<String, Refusal> {
    let id = number::bare_hex_array(terms.swap_id.strip_prefix("0x").unwrap_or(&terms.swap_id));
    let id = id.map_err(|error| Refusal::new(error, "/swap_id"))?;
    Ok(read::field_id(pinned(terms.htlc_registry.as_ref(), "/htlc_registry")?, &id).to_string())
}

pub(super) fn state(terms: &HtlcTerms, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    members.only(&["type", "contents", "time", "event"])?;
    let (Some(object_type), Some(contents)) = (members.get("type"), members.get("contents")) else { return Ok(HtlcState::Absent) };
    let order = match read::order(object_type.text()?, &base64(&contents)?) {
        Ok(order) => order,
        Err(why) => return Ok(unclear(why)),
    };
    let (package, registry) = (pinned(terms.htlc.as_ref(), "/htlc")?, pinned(terms.htlc_registry.as_ref(), "/htlc_registry")?);
    if order.package != package {
        return Ok(unclear("the order is of another package than the pinned one"));
    }
    let pinned_coin = match &terms.token {
        Some(text) => text.parse().map_err(|_| Refusal::new(Code::AddressMalformed, "/token"))?,
        None => countersign::sui::htlc::sui(),
    };
    if order.coin_type != pinned_coin {
        return Ok(unclear("the order holds another coin than the pinned one"));
    }
    // The id is a hash of every term and of the registry, so it proves the secret hash.
    if !read::order_ids(terms, registry).any(|id| id == order.order_id && read::field_id(registry, &id) == order.field) {
        return Ok(unclear("the object holds another order"));
    }
    let event = members.get("event").map(|event| read_event(&event, &order)).transpose()?;
    let covered = order.balance >= order.amount;
    let stored = Stored {
        initiator: to_account(order.initiator),
        redeemer: to_account(order.redeemer),
        amount: U256::from(order.amount),
        timelock: order.timelock,
        initiated_at: order.initiated_at,
        has_ended: order.has_ended,
    };
    Ok(match stored.state(terms, members.need("time")?.integer()?, covered, event) {
        HtlcState::Locked(locked) => HtlcState::Locked(locked.with_secret_hash(terms.secret_hash)),
        other => other,
    })
}

/// Reads an event of the package that defined the order.
fn read_event(node: &Node<'_, '_>, order: &read::StoredOrder) -> Result<OrderEvent<[u8; 32]>, Refusal> {
    let members = node.object()?;
    members.only(&["type", "contents", "transaction"])?;
    let contents = base64(&members.need("contents")?)?;
    let event = read::event(members.need("type")?.text()?, order.package, &contents);
    let event = event.map_err(|why| node.at().refuse(Code::WrongType).with_reason(why.to_string()))?;
    OrderEvent::new(node, &order.order_id, event, members.need("transaction")?.text()?)
}
