//! Lies about who receives the payment.

use super::{Act, Liar, Lie};

const fn lie(name: &'static str, route: [&'static str; 2]) -> Lie {
    Lie {
        name,
        liar: Liar::Receiver,
        about: "the user wants to be paid at a contract that takes no coins with 2,300 gas",
        at_stake: "the whole payment: the redemption shows the secret, and fails",
        route,
        act: Act::ContractReceives,
        conduct: None,
    }
}

pub(super) const LIES: &[Lie] =
    &[lie("receiver-contract", ["litecoin:ltc", "base:eth"]), lie("receiver-contract-tron", ["base:eth", "tron:trx"])];
