//! What is shown of each function and message. Every text here is constant: only addresses come from the registry.

use std::collections::BTreeSet;

use countersign::evm::alloy_primitives::{Address, U256, address};
use countersign::report::Topic;

use super::Form;
use super::descriptor::{Field, Format, Formats, MustMatch, Params};

/// Stands for the chain's own coin where an address is expected.
const COIN: Address = address!("EeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE");

/// The terms that every form of `initiate` and of the message has, with their names.
const TERMS: &str = "address redeemer,uint256 timelock,uint256 amount,bytes32 secretHash";

/// How an HTLC's amounts are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pay {
    /// `None` for the chain's own coin.
    token: Option<Address>,
}

impl Pay {
    pub(super) const fn new(token: Option<Address>) -> Self {
        Self { token }
    }

    fn field(self) -> Field {
        let params = match self.token {
            Some(token) => Params::Amount { token: token.to_string(), native_currency_address: None },
            None => Params::Amount { token: COIN.to_string(), native_currency_address: Some(COIN.to_string()) },
        };
        Field { params: Some(params), ..field("amount", Topic::Send.title(), "tokenAmount") }
    }
}

fn field(path: &'static str, label: &'static str, format: &'static str) -> Field {
    Field { path, label, format, params: None, visible: None }
}

/// What an address can be: a wallet may take a name only from a list of these.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Account,
    Contract,
    Token,
}

fn address_of(kind: Kind, path: &'static str, topic: Topic) -> Field {
    let types: &[_] = match kind {
        // Of the wallet itself, or of somebody else; both can be contracts.
        Kind::Account => &["wallet", "eoa", "contract"],
        Kind::Contract => &["contract"],
        Kind::Token => &["token"],
    };
    Field { params: Some(Params::Address { types }), ..field(path, topic.title(), "addressName") }
}

fn account(path: &'static str, topic: Topic) -> Field {
    address_of(Kind::Account, path, topic)
}

/// The contract that is called, or that verifies the message.
fn called(topic: Topic) -> Field {
    address_of(if topic == Topic::Token { Kind::Token } else { Kind::Contract }, "@.to", topic)
}

/// Returns the fields of a call or message that locks funds, in the order of a summary.
fn terms(form: Form, pay: Pay) -> Vec<Field> {
    let mut fields = vec![pay.field()];
    if form.on_behalf {
        fields.extend([account("initiator", Topic::Owner), account("@.from", Topic::Delegate)]);
    } else {
        fields.push(account("@.from", Topic::Owner));
    }
    fields.extend([
        called(Topic::Contract),
        account("redeemer", Topic::Redeemer),
        field("secretHash", Topic::SecretHash.title(), "raw"),
        // The space is part of the unit, because the unit follows the number directly.
        Field { params: Some(Params::Unit { base: " blocks" }), ..field("timelock", Topic::Timelock.title(), "unit") },
    ]);
    if form.with_data {
        fields.push(field("destinationData", Topic::DestinationData.title(), "raw"));
    }
    fields
}

fn lock(fields: Vec<Field>) -> Format {
    Format { intent: "Lock funds for a swap", interpolated_intent: "Lock {amount} for {redeemer}", fields }
}

/// Returns the formats of an HTLC's functions: the given forms of `initiate`, and what ends a swap.
pub(super) fn calls(forms: &BTreeSet<Form>, pay: Pay) -> Formats {
    let initiate = forms.iter().map(|form| {
        let mut fields = terms(*form, pay);
        if pay.token.is_none() {
            // The contract requires that both are equal.
            fields.insert(1, field("@.value", "coins sent", "amount"));
        }
        let (name, initiator) = if form.on_behalf { ("initiateOnBehalf", "address initiator,") } else { ("initiate", "") };
        (format!("{name}({initiator}{TERMS}{})", data(*form)), lock(fields))
    });
    let swap_id = || field("orderID", "swap id", "raw");
    let ends = [
        (
            "redeem(bytes32 orderID,bytes secret)",
            Format {
                intent: "Redeem a swap",
                interpolated_intent: "Redeem swap {orderID}",
                fields: vec![swap_id(), called(Topic::Contract), field("secret", "secret", "raw")],
            },
        ),
        (
            "refund(bytes32 orderID)",
            Format {
                intent: "Refund a swap",
                interpolated_intent: "Refund swap {orderID}",
                fields: vec![swap_id(), called(Topic::Contract)],
            },
        ),
    ];
    initiate.chain(ends.map(|(signature, format)| (signature.to_owned(), format))).collect()
}

/// Returns the formats of an HTLC's message, by its encoded type.
pub(super) fn messages(forms: &BTreeSet<Form>, pay: Pay) -> Formats {
    forms.iter().map(|form| (format!("Initiate({TERMS}{})", data(*form)), lock(terms(*form, pay)))).collect()
}

const fn data(form: Form) -> &'static str {
    if form.with_data { ",bytes destinationData" } else { "" }
}

/// Returns the format of a token's `approve`. It applies only if the spender is one of these.
pub(super) fn approval(spenders: &BTreeSet<Address>) -> Formats {
    let allowance = Params::Allowance { token_path: "@.to", threshold: format!("{:#x}", U256::MAX), message: "Unlimited" };
    // Renderers compare text, and write addresses in one of two ways.
    let must_match = spenders.iter().flat_map(|spender| [format!("{spender:#x}"), spender.to_string()]).collect();
    let fields = vec![
        Field { params: Some(allowance), ..field("value", Topic::Approval.title(), "tokenAmount") },
        address_of(Kind::Contract, "spender", Topic::Contract),
        Field { visible: Some(MustMatch { must_match }), ..field("spender", Topic::Contract.title(), "raw") },
        called(Topic::Token),
    ];
    let format = Format { intent: "Approve a swap contract", interpolated_intent: "Let {spender} take {value}", fields };
    [("approve(address spender,uint256 value)".to_owned(), format)].into()
}
