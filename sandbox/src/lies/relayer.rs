//! The lies of the service's relayer about what users give it.

use super::{Act, Conduct, Liar, Lie, Route};

/// A transaction id that is on no chain.
pub(super) const INVENTED: &str = "abababababababababababababababababababababababababababababababab";

const ROUTE: Route = ["litecoin:ltc", "base:usdc"];

const fn lie(name: &'static str, about: &'static str, at_stake: &'static str, act: Act) -> Lie {
    Lie { name, liar: Liar::Relayer, about, at_stake, route: ROUTE, act, conduct: None }
}

#[rustfmt::skip]
pub(super) const LIES: &[Lie] = &[
    lie("relayer-idles", "the relayer accepts everything and does nothing", "the payment, if the wallet waits for it until the timelock is over", Act::RelayerIdles),
    Lie {
        route: ["base:usdc", "litecoin:ltc"],
        ..lie("relayer-idles-at-payment", "the relayer accepts the signed payment and does not submit it", "a second payment, if the wallet pays again and the relayer submits the first one later", Act::RelayerIdles)
    },
    lie("relayer-invents", "the relayer says that it has redeemed, and has not", "the payment, if the wallet believes it and stops", Act::RelayerInvents),
    lie("relayer-tells", "the relayer gives the secret to the solver, who redeems the source and never pays", "the whole payment", Act::RelayerTells).while_solver(Conduct::NeverPays),
];
