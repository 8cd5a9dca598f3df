//! The summary lines that EVM and Tron share, and which bytes of the response they describe.

use alloy_primitives::U256;
use countersign_core::json::At;
use countersign_core::report::settled_by_approval;
use countersign_core::{ByteCoverage, Code, Role, Summary, Topic};

use crate::call::{Approval, Approve, Initiate};
use crate::payloads::{Transaction, Unsigned};
use crate::typed_data::Message;

/// What a family calls the parts of its responses.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every word")]
pub struct SummaryWording {
    /// The member of the result that holds the call that locks the funds.
    pub initiate_key: &'static str,
    /// Description of a transaction's `value`.
    pub coins: &'static str,
    /// Description of a transaction's `gas_limit`.
    pub gas: &'static str,
    /// Description of the destination data in the gasless message.
    pub message_data: &'static str,
}

/// Adds a line on the destination data, if the call has that argument.
pub fn destination_data(terms: &Initiate, summary: &mut Summary) {
    if let Some(data) = &terms.destination_data {
        let shown = if data.is_empty() { "none".to_owned() } else { format!("{} bytes {data}", data.len()) };
        summary.add(Topic::DestinationData, shown);
    }
}

/// The parts of an order that are sent or signed: all of them before the wallet has chosen, then those that were prepared.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every member")]
pub struct Parts<'a, G> {
    /// The approval that is sent, with its gas or fee limit.
    pub approval: Option<(Approve, G)>,
    /// The gas or fee limit of the call that locks the funds, if it is sent.
    pub initiate: Option<G>,
    /// The gasless message, if it is signed.
    pub message: Option<&'a Message>,
}

impl<'a, G> Parts<'a, G> {
    /// Returns the parts that were prepared. `limit` returns the gas or fee limit of a transaction.
    pub fn prepared<T: Transaction>(unsigned: &'a Unsigned<T>, limit: impl Fn(&T) -> G) -> Self {
        let approval = unsigned.call(Role::Approval).and_then(|call| Some((sent_approval(&call.transaction)?, limit(&call.transaction))));
        let initiate = unsigned.call(Role::Initiate).map(|call| limit(&call.transaction));
        Self { approval, initiate, message: unsigned.message.as_ref().map(|message| &message.message) }
    }
}

fn sent_approval<T: Transaction>(transaction: &T) -> Option<Approve> {
    Approve::decode(transaction.calldata(), &At::root("")).ok()
}

/// Returns the codes of warnings about the approval that do not apply to what was prepared.
#[must_use]
pub fn settled_warnings<T: Transaction>(unsigned: &Unsigned<T>, amount: U256) -> Vec<Code> {
    let sent = unsigned.call(Role::Approval).and_then(|call| sent_approval(&call.transaction));
    settled_by_approval(sent.map(|approve| approve.amount), amount)
}

/// Returns which bytes of the response each topic describes.
#[must_use]
pub fn coverage<C>(
    approval: Option<&Approval<C>>,
    terms: &Initiate,
    message: Option<&Message>,
    words: SummaryWording,
) -> Vec<ByteCoverage> {
    let mut spans = Vec::new();
    let members = |spans: &mut Vec<ByteCoverage>, at: &str, to: Topic| {
        spans.push(ByteCoverage::member(Topic::Chain, format!("{at}/chain_id"), "chain id"));
        spans.push(ByteCoverage::member(to, format!("{at}/to"), "contract"));
        spans.push(ByteCoverage::member(Topic::Send, format!("{at}/value"), words.coins));
        spans.push(ByteCoverage::member(Topic::Gas, format!("{at}/gas_limit"), words.gas));
    };
    if approval.is_some() {
        let at = "/response/result/approval_transaction";
        members(&mut spans, at, Topic::Token);
        spans.extend(Approve::spans(&format!("{at}/data")));
    }
    let at = format!("/response/result/{}", words.initiate_key);
    members(&mut spans, &at, Topic::Contract);
    spans.extend(terms.spans(&format!("{at}/data")));
    if let Some(message) = message {
        spans.extend(ByteCoverage::typed_data());
        spans.push(ByteCoverage::of_message(Topic::Contract, "domain/verifyingContract", "contract"));
        if message.terms.destination_data.is_some() {
            spans.push(ByteCoverage::of_message(Topic::DestinationData, "message/destinationData", words.message_data));
        }
    }
    spans
}
