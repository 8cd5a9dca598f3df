//! The lies by name, with the party that tells each. There is one file for each kind of liar. What only concerns one
//! family's chains is in that family's folder.

pub(crate) mod answers;
pub(crate) mod components;
pub(crate) mod endpoints;
mod network;
mod progress;
mod receiver;
mod records;
mod relayer;
mod service;
pub(crate) mod solver;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::chains::{self, FAMILIES};
use crate::http::{Reply, Request};
use crate::order::Order;

pub use components::{Component, Pace};
pub use endpoints::EndpointLie;
pub use network::Fault;
pub use service::ServiceLie;
pub use solver::Conduct;

/// The party that lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liar {
    /// The service, in its answer to a new order.
    Answer,
    /// The service, in the record of an order.
    Record,
    /// The service, in how it serves its calls.
    Service,
    /// The solver.
    Solver,
    /// The issuer of a token.
    Issuer,
    /// The account that the user wants to receive the payment.
    Receiver,
    /// The service's relayer.
    Relayer,
    /// One of the three endpoints of each chain.
    Endpoint,
    /// The network between the wallet and everybody.
    Network,
}

impl fmt::Display for Liar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer | Self::Record | Self::Service => "service",
            Self::Solver => "solver",
            Self::Issuer => "issuer",
            Self::Receiver => "receiver",
            Self::Relayer => "relayer",
            Self::Endpoint => "endpoint",
            Self::Network => "network",
        })
    }
}

/// What a lie does.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// Changes the answer to `POST /v2/orders`. Answers of other families are left alone.
    Answer(fn(&mut Value)),
    /// Changes the record of an order.
    Record(fn(&mut Value, &Order)),
    /// Changes the record of an order once its source is paid.
    Progress(fn(&mut Value, &Order)),
    /// Makes the solver depart from what is agreed.
    Solver(Conduct),
    /// Makes the receiver a contract that cannot take coins with the gas that swap contracts give.
    ContractReceives,
    /// The relayer confirms the request and does nothing.
    RelayerIdles,
    /// The relayer claims to have redeemed, names a transaction that is on no chain, and does nothing.
    RelayerInvents,
    /// The relayer gives the secret to the solver, who redeems the source and never pays.
    RelayerTells,
    /// Changes how the service serves its calls.
    Service(ServiceLie),
    /// Changes what one endpoint of each chain does.
    Endpoint(EndpointLie),
    /// Disturbs calls on the network.
    Network(Fault),
}

/// The source and destination assets of a swap.
pub type Route = [&'static str; 2];

/// A lie that can be switched on.
#[derive(Debug, Clone, Copy)]
pub struct Lie {
    /// The name on the command line.
    pub name: &'static str,
    /// The party that tells it.
    pub liar: Liar,
    /// What is done, as a phrase.
    pub about: &'static str,
    /// What a client that believes it would lose.
    pub at_stake: &'static str,
    /// A swap that shows the lie.
    pub route: Route,
    /// What is done.
    pub act: Act,
    /// What the solver does meanwhile, if that is part of the same lie.
    pub conduct: Option<Conduct>,
}

impl Lie {
    /// Returns the same lie with a conduct for the solver.
    #[must_use]
    const fn while_solver(mut self, conduct: Conduct) -> Self {
        self.conduct = Some(conduct);
        self
    }

    /// Returns whether the lie is about block times or about one component of a transaction. Such a lie must not cost
    /// the user anything, and must hardly raise fees.
    #[must_use]
    pub const fn is_component(&self) -> bool {
        matches!(self.act, Act::Endpoint(EndpointLie::Component(_) | EndpointLie::Pace(_)))
    }

    /// Returns whether the swap can only end after the source's timelock, provided that the user believes nothing
    /// false.
    #[must_use]
    pub const fn needs_timelock(&self) -> bool {
        match self.liar {
            Liar::Answer | Liar::Record | Liar::Solver | Liar::Issuer | Liar::Receiver | Liar::Relayer => true,
            Liar::Service | Liar::Endpoint | Liar::Network => self.conduct.is_some(),
        }
    }
}

/// A lie that all families share, on a route of one of them. Its name is the lie's with the family's behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variant {
    lie: &'static str,
    route: Route,
    /// What is done, if other words than the lie's fit it.
    about: Option<&'static str>,
}

impl Variant {
    /// Returns a lie on another route.
    pub(crate) const fn new(lie: &'static str, route: Route) -> Self {
        Self { lie, route, about: None }
    }

    /// Returns the same variant in other words.
    pub(crate) const fn about(self, about: &'static str) -> Self {
        Self { about: Some(about), ..self }
    }
}

static ALL: LazyLock<Vec<Lie>> = LazyLock::new(|| {
    let shared = records::LIES.iter().chain(progress::LIES).chain(service::LIES).chain(solver::LIES).chain(receiver::LIES);
    let mut lies = Vec::new();
    for lie in shared.chain(relayer::LIES).chain(endpoints::LIES).chain(network::LIES) {
        lies.push((0, *lie));
        for family in &FAMILIES {
            let varied = |variant: &Variant| {
                let name = format!("{}-{}", lie.name, family.name()).leak();
                (0, Lie { name, route: variant.route, about: variant.about.unwrap_or(lie.about), ..*lie })
            };
            lies.extend(family.variants.iter().filter(|variant| variant.lie == lie.name).map(varied));
        }
    }
    let own = FAMILIES.iter().flat_map(|family| family.lies).flat_map(|(round, lies)| lies.iter().map(move |lie| (*round, *lie)));
    lies.extend(own);
    let kind = |lie: &Lie| match lie.act {
        Act::Endpoint(EndpointLie::Component(_)) => 1,
        Act::Endpoint(EndpointLie::Pace(_)) => 2,
        _ => 0,
    };
    lies.sort_by_key(|(round, lie)| (lie.liar, kind(lie), *round));
    lies.into_iter().map(|(_, lie)| lie).collect()
});

/// Returns every lie, by liar.
pub fn all() -> impl Iterator<Item = &'static Lie> {
    ALL.iter()
}

/// Returns the lie with a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Lie> {
    all().find(|lie| lie.name == name)
}

/// The lies that are switched on.
#[derive(Debug, Default)]
pub struct Lies {
    active: Mutex<BTreeMap<&'static str, &'static Lie>>,
    /// Secrets that the relayer has passed to the solver, by order.
    stolen: Mutex<BTreeMap<String, String>>,
    /// The first replies of endpoints, which a stale endpoint repeats.
    remembered: Mutex<BTreeMap<String, Reply>>,
    calls: AtomicU64,
    /// How many replies of endpoints were false.
    told: AtomicU64,
    seed: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lies {
    /// Returns a set without lies. Random choices follow from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Switches a lie on or off. Returns `false` if there is no such lie.
    pub fn set(&self, name: &str, is_on: bool) -> bool {
        let Some(lie) = find(name) else { return false };
        let mut active = locked(&self.active);
        if is_on {
            active.insert(lie.name, lie);
        } else {
            active.remove(lie.name);
            locked(&self.remembered).clear();
        }
        true
    }

    /// Switches all lies off.
    pub fn clear(&self) {
        locked(&self.active).clear();
        locked(&self.remembered).clear();
        locked(&self.stolen).clear();
    }

    /// Returns the names of the lies that are switched on.
    #[must_use]
    pub fn active(&self) -> BTreeSet<&'static str> {
        locked(&self.active).keys().copied().collect()
    }

    fn acts(&self) -> Vec<Act> {
        locked(&self.active).values().map(|lie| lie.act).collect()
    }

    /// Changes the answer to a new order as the lies demand.
    pub(crate) fn answer(&self, answer: &mut Value) {
        for act in self.acts() {
            if let Act::Answer(change) = act {
                change(answer);
            }
        }
    }

    /// Changes a record as the lies demand.
    pub(crate) fn record(&self, record: &mut Value, order: &Order) {
        for act in self.acts() {
            match act {
                Act::Record(change) => change(record, order),
                Act::Progress(change) if order.source.initiated.is_some() => change(record, order),
                _ => {}
            }
        }
    }

    /// Returns how the solver departs from what is agreed, if it does.
    pub(crate) fn conduct(&self) -> Option<Conduct> {
        let active = locked(&self.active);
        active.values().find_map(|lie| if let Act::Solver(conduct) = lie.act { Some(conduct) } else { lie.conduct })
    }

    /// Returns whether the relayer confirms requests and does nothing.
    pub(crate) fn relayer_idles(&self) -> bool {
        self.acts().iter().any(|act| matches!(act, Act::RelayerIdles))
    }

    /// Returns the transaction id that the relayer invents for a redemption that it does not send.
    pub(crate) fn invented_redemption(&self) -> Option<&'static str> {
        self.acts().iter().any(|act| matches!(act, Act::RelayerInvents)).then_some(relayer::INVENTED)
    }

    /// Returns the lie that applies to a call of the service. `is_paid` tells whether an order has been paid.
    pub(crate) fn service(&self, request: &Request, is_paid: bool) -> Option<ServiceLie> {
        self.acts().into_iter().find_map(|act| match act {
            Act::Service(lie) if lie.applies(request, is_paid) => Some(lie),
            _ => None,
        })
    }

    /// Records a secret that was seen before its transaction was in a block.
    pub(crate) fn overheard(&self, order: &str, secret: &str) {
        locked(&self.stolen).insert(order.to_owned(), secret.to_owned());
    }

    /// Records a secret that the relayer was given.
    pub(crate) fn learnt(&self, order: &str, secret: [u8; 32]) {
        if self.acts().iter().any(|act| matches!(act, Act::RelayerTells)) {
            locked(&self.stolen).insert(order.to_owned(), hex::encode(secret));
        }
    }

    /// Returns a secret that the relayer has passed to the solver.
    pub(crate) fn stolen(&self, order: &str) -> Option<String> {
        locked(&self.stolen).get(order).cloned()
    }

    fn endpoint_lie(&self) -> Option<EndpointLie> {
        self.acts().into_iter().find_map(|act| if let Act::Endpoint(lie) = act { Some(lie) } else { None })
    }

    /// Returns how long the lying endpoint delays a call.
    pub(crate) fn endpoint_delay(&self) -> Option<Duration> {
        self.endpoint_lie().and_then(EndpointLie::delay)
    }

    /// Returns which of a chain's endpoints lies, if one does.
    pub(crate) fn lying_endpoint(&self) -> Option<usize> {
        self.endpoint_lie().map(EndpointLie::place)
    }

    /// Returns the reply of the lying endpoint at a time, in place of the honest `answer`.
    pub(crate) fn endpoint(&self, chain: &str, now_millis: u64, request: &Request, answer: impl Fn(&Request) -> Reply) -> Reply {
        let (Some(lie), Some(family)) = (self.endpoint_lie(), chains::family_of(chain)) else { return answer(request) };
        let truth = Cell::new(None);
        let heard = |request: &Request| {
            let reply = answer(request);
            truth.set(truth.take().or_else(|| Some(reply.clone())));
            reply
        };
        let reply = lie.tell(family.interface, chain, request, now_millis, &mut locked(&self.remembered), heard);
        if truth.take().as_ref() != Some(&reply) {
            self.told.fetch_add(1, Ordering::Relaxed);
        }
        reply
    }

    /// Returns how many replies of endpoints were false.
    #[must_use]
    pub fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    /// Returns what the network does to the next call: a delay in milliseconds, and a fault. If several faults are
    /// switched on, the seed chooses one.
    pub(crate) fn fault(&self) -> (u64, Option<Fault>) {
        let faults: Vec<Fault> =
            self.acts().into_iter().filter_map(|act| if let Act::Network(fault) = act { Some(fault) } else { None }).collect();
        let late = faults.iter().map(|fault| if let Fault::Slow(millis) = fault { *millis } else { 0 }).max().unwrap_or(0);
        let others: Vec<Fault> = faults.into_iter().filter(|fault| !matches!(fault, Fault::Slow(_))).collect();
        if others.is_empty() {
            return (late, None);
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let draw = Sha256::digest(format!("{} {call}", self.seed));
        let [chance, which] = [0, 1].map(|index: usize| usize::from(*draw.get(index).unwrap_or(&0)));
        let happens = chance.saturating_mul(100) < Fault::PERCENT.saturating_mul(256);
        let fault = which.checked_rem(others.len()).and_then(|index| others.get(index)).copied();
        (late, fault.filter(|_| happens))
    }
}
