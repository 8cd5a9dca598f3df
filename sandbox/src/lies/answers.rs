//! What the service answers to a new order.

use serde_json::{Value, json};

use super::{Act, Liar, Lie};

/// Another redeemer in the call: the second word of `initiate`.
fn evm_redeemer(answer: &mut Value) {
    let Some(data) = answer.pointer_mut("/initiate_transaction/data") else { return };
    if let Some(text) = data.as_str().filter(|text| text.len() > 74) {
        let stranger = format!("{:0>64}", "ef00000000000000000000000000000000000bad");
        *data = json!([text.get(..10).unwrap_or_default(), &stranger, text.get(74..).unwrap_or_default()].concat());
    }
}

pub(super) const LIES: &[Lie] = &[Lie {
    name: "evm-redeemer",
    liar: Liar::Answer,
    about: "the call names a stranger as the redeemer",
    at_stake: "the whole payment",
    route: ["base:usdc", "litecoin:ltc"],
    act: Act::Answer(evm_redeemer),
}];
