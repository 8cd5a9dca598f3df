//! The lines that a person reads before signing, as far as EVM and Tron have the same, and the bytes they stand for.

use alloy_primitives::U256;
use countersign_core::{ByteCoverage, Severity, Summary, Topic};

use crate::call::{Approve, Initiate};
use crate::typed_data::Message;

/// What a family calls the members of its answers.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every word")]
pub struct Words {
    /// The member of the result that holds the call that locks the funds.
    pub initiate_key: &'static str,
    /// A transaction's `value`.
    pub coins: &'static str,
    /// A transaction's `gas_limit`.
    pub gas: &'static str,
    /// The destination data in the gasless message.
    pub message_data: &'static str,
}

/// The destination data, where the call carries any.
pub fn destination_data(terms: &Initiate, summary: &mut Summary) {
    if let Some(data) = &terms.destination_data {
        let shown = if data.is_empty() { "none".to_owned() } else { format!("{} bytes {data}", data.len()) };
        summary.add(Topic::DestinationData, shown);
    }
}

/// What the HTLC may take, and what the response proposed where that was something else.
pub fn approval(proposed: &Approve, signed: &Approve, summary: &mut Summary) {
    let amount = |approve: &Approve| match approve.amount {
        U256::MAX => "every token of this kind, without limit".to_owned(),
        amount => format!("{amount} base units"),
    };
    let text = if signed == proposed {
        format!("the HTLC may take {}", amount(proposed))
    } else {
        format!("the HTLC may take {}, rewritten from {}", amount(signed), amount(proposed))
    };
    let severity = if signed.amount == U256::MAX { Severity::Danger } else { Severity::Info };
    summary.add_line(Topic::Approval, text, [signed.amount.into()], severity);
}

/// Which bytes of the response each line stands for.
#[must_use]
pub fn coverage(approves: bool, terms: &Initiate, message: Option<&Message>, words: Words) -> Vec<ByteCoverage> {
    let mut spans = Vec::new();
    let members = |spans: &mut Vec<ByteCoverage>, at: &str, to: Topic| {
        spans.push(ByteCoverage::member(Topic::Chain, format!("{at}/chain_id"), "chain id"));
        spans.push(ByteCoverage::member(to, format!("{at}/to"), "contract"));
        spans.push(ByteCoverage::member(Topic::Send, format!("{at}/value"), words.coins));
        spans.push(ByteCoverage::member(Topic::Gas, format!("{at}/gas_limit"), words.gas));
    };
    if approves {
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
