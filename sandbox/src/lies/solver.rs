//! What a solver does in place of what is agreed.

use super::{Act, Liar, Lie};
use crate::chains::Terms;

/// How the solver pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// Not at all.
    NeverPays,
    /// Half of what is agreed.
    PaysLess,
    /// Under the hash of another secret.
    OtherHash,
    /// To itself.
    OtherKey,
    /// For one block, so that it can take the payment back at once.
    OneBlock,
    /// A thousandth first, then what is agreed.
    DustFirst,
    /// What is agreed, and then a thousandth.
    DustAfter,
}

impl Conduct {
    /// The terms that the solver pays in place of these.
    pub(crate) fn change(self, terms: &Terms) -> Terms {
        let mut changed = terms.clone();
        match self {
            Self::PaysLess => changed.amount /= 2,
            Self::OtherHash => changed.secret_hash = changed.secret_hash.map(|byte| byte ^ 0x55),
            Self::OneBlock => changed.timelock = 1,
            Self::OtherKey => changed.is_source = false,
            Self::NeverPays | Self::DustFirst | Self::DustAfter => {}
        }
        changed
    }
}

const ROUTE: [&str; 2] = ["base:usdc", "litecoin:ltc"];

pub(super) const LIES: &[Lie] = &[
    Lie {
        name: "solver-never-pays",
        liar: Liar::Solver,
        about: "the solver never pays the destination",
        at_stake: "nothing but time: the payment goes back after the timelock",
        route: ROUTE,
        act: Act::Solver(Conduct::NeverPays),
    },
    Lie {
        name: "solver-pays-less",
        liar: Liar::Solver,
        about: "the solver pays half of what is agreed",
        at_stake: "half of the swap",
        route: ROUTE,
        act: Act::Solver(Conduct::PaysLess),
    },
    Lie {
        name: "solver-other-hash",
        liar: Liar::Solver,
        about: "the solver pays under the hash of another secret",
        at_stake: "the whole payment: the secret does not open what was paid",
        route: ROUTE,
        act: Act::Solver(Conduct::OtherHash),
    },
    Lie {
        name: "solver-one-block",
        liar: Liar::Solver,
        about: "the solver pays with a timelock of one block",
        at_stake: "the whole payment: the solver takes it back while the secret is under way",
        route: ROUTE,
        act: Act::Solver(Conduct::OneBlock),
    },
    Lie {
        name: "solver-dust-first",
        liar: Liar::Solver,
        about: "the solver pays a thousandth before it pays what is agreed",
        at_stake: "the payment, if the first output is taken for the whole",
        route: ROUTE,
        act: Act::Solver(Conduct::DustFirst),
    },
    Lie {
        name: "solver-dust-after",
        liar: Liar::Solver,
        about: "the solver pays a thousandth after it has paid what is agreed",
        at_stake: "the payment, if the last output is taken for the whole",
        route: ROUTE,
        act: Act::Solver(Conduct::DustAfter),
    },
    Lie {
        name: "relayer-idles",
        liar: Liar::Relayer,
        about: "the relayer accepts everything and does nothing",
        at_stake: "the payment, if the wallet waits for it until the timelock is over",
        route: ["litecoin:ltc", "base:usdc"],
        act: Act::RelayerIdles,
    },
    Lie {
        name: "relayer-tells",
        liar: Liar::Relayer,
        about: "the relayer gives the secret to the solver, who redeems the source and never pays",
        at_stake: "the whole payment",
        route: ["litecoin:ltc", "base:usdc"],
        act: Act::RelayerTells,
    },
];
