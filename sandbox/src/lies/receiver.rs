//! Lies about who receives the payment.

use super::{Act, Liar, Lie};

pub(super) const LIES: &[Lie] = &[Lie {
    name: "receiver-contract",
    liar: Liar::Receiver,
    about: "the user wants to be paid at a contract that takes no coins with 2,300 gas",
    at_stake: "the whole payment: the redemption shows the secret, and fails",
    route: ["litecoin:ltc", "base:eth"],
    act: Act::ContractReceives,
    conduct: None,
}];
