//! The ways in which a solver departs from what is agreed.

use super::{Act, Liar, Lie, Route};
use crate::chains::Terms;

/// How the solver pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// It never pays.
    NeverPays,
    /// It pays half of what is agreed.
    PaysLess,
    /// It pays under the hash of another secret.
    OtherHash,
    /// It pays to itself.
    OtherKey,
    /// It pays with a timelock of one block, so that it can refund itself at once.
    OneBlock,
    /// It pays a thousandth first, then what is agreed.
    DustFirst,
    /// It pays what is agreed, then a thousandth more.
    DustAfter,
    /// It pays a thousandth thirty times, then what is agreed.
    DustCrowd,
    /// It pays a thousandth, and what is agreed once the first payment can be refunded. It refunds the first while
    /// the secret is in the mempool.
    DustMatured,
    /// It pays what is agreed, but so late that it can refund itself at once.
    RefundsAtOnce,
    /// It pays what is agreed. It takes the secret from the mempool, redeems the source with it, and gets ahead of
    /// the user's redemption.
    FrontRuns,
    /// It pays what is agreed and never redeems the source.
    NeverRedeems,
    /// It pays what is agreed. The token's issuer then freezes the user.
    Frozen,
    /// It pays what is agreed. The token's issuer then pauses the token.
    Paused,
}

impl Conduct {
    /// Returns the terms on which the solver pays, given those that are agreed.
    pub(crate) fn change(self, terms: &Terms) -> Terms {
        let mut changed = terms.clone();
        match self {
            Self::PaysLess => changed.amount /= 2,
            Self::OtherHash => changed.secret_hash = changed.secret_hash.map(|byte| byte ^ 0x55),
            Self::OneBlock => changed.timelock = 1,
            // On Bitcoin-like chains the delegate redeems, elsewhere the owner.
            Self::OtherKey if changed.delegate.is_some() => changed.delegate = Some(STRANGERS_KEY.to_owned()),
            Self::OtherKey => changed.owner = STRANGER.to_owned(),
            _ => {}
        }
        changed
    }
}

const STRANGER: &str = "0x00000000000000000000000000000000000000ef";
/// A point on the curve whose secret key is public.
const STRANGERS_KEY: &str = "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";

const ROUTE: Route = ["base:usdc", "litecoin:ltc"];
const TO_EVM: Route = ["litecoin:ltc", "base:usdc"];

const fn lie(name: &'static str, about: &'static str, at_stake: &'static str, route: Route, conduct: Conduct) -> Lie {
    Lie { name, liar: Liar::Solver, about, at_stake, route, act: Act::Solver(conduct), conduct: None }
}

/// Returns a lie in which the token is stopped between the payment and the redemption.
pub(crate) const fn stop(name: &'static str, about: &'static str, route: Route, conduct: Conduct) -> Lie {
    Lie { liar: Liar::Issuer, ..lie(name, about, "the whole payment: the redemption shows the secret, and fails", route, conduct) }
}

const TIME: &str = "nothing but time: the payment goes back after the timelock";
const HALF: &str = "half of the swap";
const USELESS: &str = "the whole payment: the secret does not open what was paid";
const TAKES_BACK: &str = "the whole payment: the solver takes its side back while the secret is under way";
const DUST: &str = "the payment, if the wrong output is taken for the whole";

#[rustfmt::skip]
pub(super) const LIES: &[Lie] = &[
    lie("solver-never-pays", "the solver never pays the destination", TIME, ROUTE, Conduct::NeverPays),
    lie("solver-pays-less", "the solver pays half of what is agreed", HALF, ROUTE, Conduct::PaysLess),
    lie("solver-other-hash", "the solver pays under the hash of another secret", USELESS, ROUTE, Conduct::OtherHash),
    lie("solver-other-key", "the solver pays for a stranger's key", USELESS, ROUTE, Conduct::OtherKey),
    lie("solver-one-block", "the solver pays with a timelock of one block", TAKES_BACK, ROUTE, Conduct::OneBlock),
    lie("solver-refunds-at-once", "the solver takes its payment back as soon as its timelock is over", TAKES_BACK, ROUTE, Conduct::RefundsAtOnce),
    lie("solver-dust-first", "the solver pays a thousandth before it pays what is agreed", DUST, ROUTE, Conduct::DustFirst),
    lie("solver-dust-after", "the solver pays a thousandth after it has paid what is agreed", DUST, ROUTE, Conduct::DustAfter),
    lie("solver-dust-crowd", "the solver pays a thousandth thirty times before it pays what is agreed", DUST, ROUTE, Conduct::DustCrowd),
    lie("solver-dust-matured", "the solver pays a thousandth long before, and takes it back when the redemption is in the mempool", "the whole payment, if the redemption spends that output too and is thrown out with the secret in it", ROUTE, Conduct::DustMatured),
    lie("solver-front-runs", "the solver takes the secret out of the mempool, and uses it before the user's redemption is in a block", "nothing, if the contract pays whoever is the redeemer, and nobody else", TO_EVM, Conduct::FrontRuns),
    lie("solver-never-redeems", "the solver pays, and never redeems the source", "nothing: the user has both", ROUTE, Conduct::NeverRedeems),
    stop("token-freezes", "the issuer freezes the user's account once the solver has paid", TO_EVM, Conduct::Frozen),
];
