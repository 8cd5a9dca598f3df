//! EVM and Tron: the order in the contract that they share.

use countersign::{Account, Code, HtlcState, HtlcTerms, Refusal};
use countersign_abi::alloy_primitives::{Address, B256, hex};
use countersign_abi::read::{self, Layout, NATIVE, Progress, StoredOrder};
use countersign_core::json::{Members, Node};
use countersign_core::number;

use super::{MAX_ANSWER, OTHER_TOKEN, OrderEvent, Stored, holds, unclear};

/// What a chain's contract must be, and how the chain writes its accounts.
struct Contract {
    htlc: Address,
    token: Address,
    to_account: fn(Address) -> Account,
    /// What the chain writes before the hex digits of a transaction id.
    id_prefix: &'static str,
}

impl Contract {
    /// Decodes the order. `check` requires the expected generation of its layout.
    fn state(
        &self,
        terms: &HtlcTerms,
        members: &Members<'_, '_>,
        check: impl FnOnce(&StoredOrder) -> Result<(), String>,
    ) -> Result<HtlcState, Refusal> {
        members.only(&["orders", "token", "holds", "head", "event"])?;
        let order = match read::order(&members.need("orders")?.hex_bytes(MAX_ANSWER)?) {
            Ok(Some(order)) => order,
            Ok(None) => return Ok(HtlcState::Absent),
            Err(why) => return Ok(unclear(why)),
        };
        if let Err(why) = check(&order) {
            return Ok(unclear(why));
        }
        let token = members.get("token").map(|node| node.hex_bytes(MAX_ANSWER)).transpose()?;
        let token = token.and_then(|answer| read::address(&answer).ok());
        // The older contract for the chain's own coin has no `token()`.
        let has_none = token.is_none() && self.token == NATIVE && order.layout == Layout::Older;
        if token != Some(self.token) && !has_none {
            return Ok(unclear(OTHER_TOKEN));
        }
        let event = members.get("event").map(|event| self.read_event(&event, terms)).transpose()?;
        let covered = holds(members)? >= order.amount;
        let stored = Stored {
            initiator: (self.to_account)(order.initiator),
            redeemer: (self.to_account)(order.redeemer),
            amount: order.amount,
            timelock: order.timelock,
            initiated_at: order.initiated_at,
            has_ended: order.progress != Progress::Open,
        };
        Ok(stored.state(terms, members.need("head")?.integer()?, covered, event))
    }

    /// Reads a log of the contract.
    fn read_event(&self, node: &Node<'_, '_>, terms: &HtlcTerms) -> Result<OrderEvent<B256>, Refusal> {
        let id = number::bare_hex_array(terms.swap_id.strip_prefix("0x").unwrap_or(&terms.swap_id));
        let id = B256::new(id.map_err(|error| Refusal::new(error, "/swap_id"))?);
        let transaction = node.object()?.need("transactionHash")?.hex_array::<32>()?;
        OrderEvent::new(node, &id, read::log(node, self.htlc)?, &format!("{}{}", self.id_prefix, hex::encode(transaction)))
    }
}

#[cfg(feature = "evm")]
pub(super) fn evm(terms: &HtlcTerms, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    use countersign::evm::address::{from_account, to_account};

    let malformed = |at| Refusal::new(Code::AddressMalformed, at);
    let token = match &terms.token {
        Some(text) => text.parse().map_err(|_| malformed("/token"))?,
        None => NATIVE,
    };
    let htlc = terms.htlc.as_ref().and_then(from_account).ok_or_else(|| malformed("/htlc"))?;
    let generation = match terms.generation {
        Some(countersign::Generation::Evm(generation)) => Some(generation),
        _ => None,
    };
    let check = |order: &StoredOrder| order.check_generation(generation).map_err(|why| why.to_string());
    Contract { htlc, token, to_account, id_prefix: "0x" }.state(terms, members, check)
}

#[cfg(feature = "tron")]
pub(super) fn tron(terms: &HtlcTerms, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    use countersign::tron;

    let token = match &terms.token {
        Some(text) => text.parse::<tron::Address>().map_err(|error| Refusal::new(error, "/token"))?.bytes(),
        None => NATIVE,
    };
    let htlc = terms.htlc.as_ref().and_then(tron::Address::from_account);
    let htlc = htlc.ok_or_else(|| Refusal::new(Code::AddressMalformed, "/htlc"))?.bytes();
    let to_account = |address| tron::Address::from(address).to_account();
    Contract { htlc, token, to_account, id_prefix: "" }.state(terms, members, |order| match order.layout {
        Layout::V3 => Ok(()),
        _ => Err("the contract stores orders as an older generation does, which is not known on Tron".to_owned()),
    })
}
