//! The lies by name, and who tells them. Each file has those of one liar.

mod answers;
mod components;
mod endpoints;
mod network;
mod progress;
mod receiver;
mod records;
mod relayer;
mod service;
mod solver;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::http::{Reply, Request};
use crate::order::Order;

pub use components::{Component, Pace};
pub use endpoints::EndpointLie;
pub use network::Fault;
pub use service::ServiceLie;
pub use solver::Conduct;

/// Who lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liar {
    /// The service, in the answer to a new order.
    Answer,
    /// The service, in the record of an order.
    Record,
    /// The service, in what it serves at all.
    Service,
    /// The solver.
    Solver,
    /// The issuer of a token.
    Issuer,
    /// The account that the user wants to be paid at.
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
    /// Changes the answer to `POST /v2/orders`; answers of other families are left alone.
    Answer(fn(&mut Value)),
    /// Changes the record.
    Record(fn(&mut Value, &Order)),
    /// What the solver does in place of what is agreed.
    Solver(Conduct),
    /// The user wants to be paid at a contract that does not take coins with the gas that swap contracts give.
    ContractReceives,
    /// The relayer says yes and does nothing.
    RelayerIdles,
    /// The relayer says that it has redeemed, names a transaction that is on no chain, and does nothing.
    RelayerInvents,
    /// The relayer gives the secret to the solver, who redeems the source with it and never pays.
    RelayerTells,
    /// How the service serves its calls.
    Service(ServiceLie),
    /// What one endpoint of each chain does.
    Endpoint(EndpointLie),
    /// What happens to calls.
    Network(Fault),
}

/// A lie that can be switched on.
#[derive(Debug, Clone, Copy)]
pub struct Lie {
    /// Its name on the command line.
    pub name: &'static str,
    /// Who tells it.
    pub liar: Liar,
    /// What is done, in a sentence.
    pub about: &'static str,
    /// What a client that believes it would lose.
    pub at_stake: &'static str,
    /// The asset to swap from and to where it shows.
    pub route: [&'static str; 2],
    /// What is done.
    pub act: Act,
    /// What the solver does meanwhile, where it is part of the same lie.
    pub conduct: Option<Conduct>,
}

impl Lie {
    /// Returns the same lie, while the solver does this.
    #[must_use]
    const fn while_solver(mut self, conduct: Conduct) -> Self {
        self.conduct = Some(conduct);
        self
    }

    /// Returns whether it is about what a transaction depends on or about time: it must cost nothing, and hardly more than the truth.
    #[must_use]
    pub const fn is_component(&self) -> bool {
        matches!(self.act, Act::Endpoint(EndpointLie::Component(_) | EndpointLie::Pace(_)))
    }

    /// Returns whether the swap can only end once the source's timelock is over, as long as the user believes nothing wrong.
    #[must_use]
    pub const fn needs_timelock(&self) -> bool {
        match self.liar {
            Liar::Answer | Liar::Record | Liar::Solver | Liar::Issuer | Liar::Receiver | Liar::Relayer => true,
            Liar::Service | Liar::Endpoint | Liar::Network => self.conduct.is_some(),
        }
    }
}

/// Returns every lie, by liar.
pub fn all() -> impl Iterator<Item = &'static Lie> {
    let service = answers::LIES.iter().chain(records::LIES).chain(progress::LIES).chain(service::LIES);
    let parties = service.chain(solver::LIES).chain(solver::STOPS).chain(receiver::LIES).chain(relayer::LIES);
    parties.chain(endpoints::LIES).chain(components::LIES).chain(network::LIES)
}

/// Returns the lie of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Lie> {
    all().find(|lie| lie.name == name)
}

/// The lies that are told now.
#[derive(Debug, Default)]
pub struct Lies {
    active: Mutex<BTreeMap<&'static str, &'static Lie>>,
    /// Secrets that the relayer has told the solver, by order.
    stolen: Mutex<BTreeMap<String, String>>,
    /// Endpoints repeat their first answers when they are stale.
    remembered: Mutex<BTreeMap<String, Reply>>,
    calls: AtomicU64,
    /// How many answers of an endpoint were not the truth.
    told: AtomicU64,
    seed: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lies {
    /// No lies yet; what is random follows from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Switches a lie on or off. `false` if there is no such lie.
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

    /// Switches all off.
    pub fn clear(&self) {
        locked(&self.active).clear();
        locked(&self.remembered).clear();
        locked(&self.stolen).clear();
    }

    /// Returns the names of those that are told.
    #[must_use]
    pub fn active(&self) -> BTreeSet<&'static str> {
        locked(&self.active).keys().copied().collect()
    }

    fn acts(&self) -> Vec<Act> {
        locked(&self.active).values().map(|lie| lie.act).collect()
    }

    /// Changes the answer to a new order.
    pub(crate) fn answer(&self, answer: &mut Value) {
        for act in self.acts() {
            if let Act::Answer(change) = act {
                change(answer);
            }
        }
    }

    /// Changes a record.
    pub(crate) fn record(&self, record: &mut Value, order: &Order) {
        for act in self.acts() {
            if let Act::Record(change) = act {
                change(record, order);
            }
        }
    }

    /// Returns what the solver does in place of what is agreed.
    pub(crate) fn conduct(&self) -> Option<Conduct> {
        let active = locked(&self.active);
        active.values().find_map(|lie| if let Act::Solver(conduct) = lie.act { Some(conduct) } else { lie.conduct })
    }

    /// Returns whether the relayer says yes and does nothing.
    pub(crate) fn relayer_idles(&self) -> bool {
        self.acts().iter().any(|act| matches!(act, Act::RelayerIdles))
    }

    /// Returns what the relayer answers to a redemption that it does not send.
    pub(crate) fn invented_redemption(&self) -> Option<&'static str> {
        self.acts().iter().any(|act| matches!(act, Act::RelayerInvents)).then_some(relayer::INVENTED)
    }

    /// Returns what happens to a call of the service; `is_paid` says whether an order has been paid.
    pub(crate) fn service(&self, request: &Request, is_paid: bool) -> Option<ServiceLie> {
        self.acts().into_iter().find_map(|act| match act {
            Act::Service(lie) if lie.applies(request, is_paid) => Some(lie),
            _ => None,
        })
    }

    /// A secret that was seen before its transaction was in a block.
    pub(crate) fn overheard(&self, order: &str, secret: &str) {
        locked(&self.stolen).insert(order.to_owned(), secret.to_owned());
    }

    /// The relayer has been told a secret.
    pub(crate) fn learnt(&self, order: &str, secret: [u8; 32]) {
        if self.acts().iter().any(|act| matches!(act, Act::RelayerTells)) {
            locked(&self.stolen).insert(order.to_owned(), hex::encode(secret));
        }
    }

    /// Returns a secret that the relayer has told the solver.
    pub(crate) fn stolen(&self, order: &str) -> Option<String> {
        locked(&self.stolen).get(order).cloned()
    }

    fn endpoint_lie(&self) -> Option<EndpointLie> {
        self.acts().into_iter().find_map(|act| if let Act::Endpoint(lie) = act { Some(lie) } else { None })
    }

    /// Returns how long the endpoint that lies lets a call wait.
    pub(crate) fn endpoint_delay(&self) -> Option<Duration> {
        self.endpoint_lie().and_then(EndpointLie::delay)
    }

    /// Returns which of a chain's endpoints lies, if one does.
    pub(crate) fn lying_endpoint(&self) -> Option<usize> {
        self.endpoint_lie().map(EndpointLie::place)
    }

    /// Returns what the endpoint that lies says at a time in place of `answer`.
    pub(crate) fn endpoint(&self, chain: &str, now_millis: u64, request: &Request, answer: impl Fn(&Request) -> Reply) -> Reply {
        let Some(lie) = self.endpoint_lie() else { return answer(request) };
        let truth = Cell::new(None);
        let heard = |request: &Request| {
            let reply = answer(request);
            truth.set(truth.take().or_else(|| Some(reply.clone())));
            reply
        };
        let reply = lie.tell(chain, request, now_millis, &mut locked(&self.remembered), heard);
        if truth.take().as_ref() != Some(&reply) {
            self.told.fetch_add(1, Ordering::Relaxed);
        }
        reply
    }

    /// Returns how many answers of an endpoint were not the truth.
    #[must_use]
    pub fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    /// Returns what the network does to the next call: how many milliseconds it is late, and what else happens to it. Of several faults that are
    /// told at once, the seed takes one.
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
