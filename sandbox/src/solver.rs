//! The solver. It pays the destination of a paid order, redeems the source with the revealed secret, and refunds
//! itself where the user does not redeem. The service's relayer is also here, because both follow the same blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use countersign_chains::profile::known_chain;
use sha2::{Digest, Sha256};

use crate::chains::{Change, Event, Terms};
use crate::ledger::LedgerError;
use crate::lies::Conduct;
use crate::order::{Order, Seen, Side};
use crate::service::{HASHES, short};
use crate::world::World;

/// How many steps pass after a chain refused a transaction, before the next attempt.
const PATIENCE: u32 = 10;
/// How long after a payment its timelock is protected from blocks on demand for other users, in milliseconds.
const TIME_TO_REDEEM: u64 = 120_000;

/// The maximum number of the solver's pending transactions.
const MAX_WAITING: usize = 15;

/// The orders and transactions under way.
#[derive(Debug, Default)]
pub struct Solver {
    /// Orders that have been paid and have not ended.
    live: BTreeSet<u64>,
    /// Transactions that are not in a block yet or were refused, each with the steps before the next attempt.
    waits: BTreeMap<(u64, Act), u32>,
}

/// A transaction of the solver or the relayer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Lock,
    RedeemSource,
    RedeemDestination,
    RefundDestination,
    RefundSource,
    /// A payment in addition to the agreed one.
    Dust,
}

impl Solver {
    /// Reads the new blocks, and does what is due.
    ///
    /// # Errors
    ///
    /// The ledger has failed.
    pub fn step(&mut self, world: &World) -> Result<(), LedgerError> {
        // All changes are written together, because the disk takes as long for one order as for a hundred.
        let mut changed = BTreeMap::new();
        for (name, chain) in &world.chains {
            let events = chain.engine().events();
            for event in events {
                self.note(world, name, &event, &mut changed)?;
            }
        }
        world.ledger.update(&changed.into_values().collect::<Vec<_>>())?;
        self.waits.retain(|_, left| {
            *left = left.saturating_sub(1);
            *left > 0
        });
        let mut quick_limits: BTreeMap<&str, u64> = BTreeMap::new();
        let numbers: Vec<_> = self.live.iter().copied().collect();
        for number in numbers {
            let Some(order) = world.ledger.by_number(number) else { continue };
            if order.has_ended() {
                self.live.remove(&number);
                self.waits.retain(|(waiting, _), _| *waiting != number);
                let mut relayed = world.relayed.lock().unwrap_or_else(PoisonError::into_inner);
                // Clients keep requesting the hashes of an instant refund as long as they poll.
                if relayed.get(&number).is_some_and(|sent| !sent.contains_key(HASHES)) {
                    relayed.remove(&number);
                }
            } else {
                for side in [&order.source, &order.destination] {
                    if let (Some(height), Some((name, _))) = (quick_limit(world, side), world.chains.get_key_value(side.chain())) {
                        quick_limits.entry(name).and_modify(|least| *least = height.min(*least)).or_insert(height);
                    }
                }
                self.act(world, &order);
            }
        }
        for (name, chain) in &world.chains {
            chain.set_quick_limit(quick_limits.get(name.as_str()).copied().unwrap_or(u64::MAX));
        }
        Ok(())
    }

    /// Records the effect of a block on an order.
    fn note(&mut self, world: &World, chain: &str, event: &Event, changed: &mut BTreeMap<u64, Order>) -> Result<(), LedgerError> {
        let Some(order) = world.ledger.by_swap(chain, &event.swap_id) else { return Ok(()) };
        let order = changed.entry(order.number).or_insert(order);
        let is_source = order.source.chain() == chain && order.source.swap_id.eq_ignore_ascii_case(&event.swap_id);
        let deadline = order.deadline();
        let side = if is_source { &mut order.source } else { &mut order.destination };
        let seen = Seen { transaction: event.transaction.clone(), height: event.height, at: world.clock.millis() };
        let what = match &event.change {
            Change::Initiated { amount } => {
                side.filled = side.filled.saturating_add(*amount);
                match &mut side.initiated {
                    Some(first) => first.transaction = format!("{},{}", first.transaction, seen.transaction),
                    none => *none = Some(seen.clone()),
                }
                "initiated"
            }
            Change::Redeemed { secret } => {
                side.secret = Some(hex::encode(secret));
                side.redeemed = Some(seen.clone());
                "redeemed"
            }
            Change::Refunded => {
                side.refunded = Some(seen.clone());
                "refunded"
            }
        };
        world.note(format!("{}: {what} on {chain} in block {}, {}", short(&order.id), event.height, event.transaction));
        if let Change::Redeemed { secret } = event.change {
            let secret = Some(hex::encode(secret));
            order.source.secret.clone_from(&secret);
            order.destination.secret = secret;
        }
        // A late payment is not matched. The user gets it back after the timelock.
        if order.source.initiated.as_ref().is_some_and(|paid| paid.at <= deadline || order.destination.initiated.is_some()) {
            self.live.insert(order.number);
        }
        Ok(())
    }

    fn act(&mut self, world: &World, order: &Order) {
        let conduct = world.lies.conduct();
        let (source, destination) = (&order.source, &order.destination);
        let (now, pace) = (world.clock.millis(), world.settings().pace);
        let is_due = |seen: &Option<Seen>| seen.as_ref().is_none_or(|seen| now >= seen.at.saturating_add(pace));
        let is_paid = source.filled >= source.amount && is_due(&source.initiated);
        if is_paid && !source.has_ended() && destination.initiated.is_none() && conduct != Some(Conduct::NeverPays) {
            self.pay(world, order, conduct);
        }
        if destination.initiated.is_some() && !destination.has_ended() {
            if let Some(secret) = &order.kept_secret {
                if is_due(&destination.initiated) {
                    self.redeem(world, order, Act::RedeemDestination, destination.terms(false), secret);
                }
            } else if is_over(world, destination) {
                self.refund(world, order, Act::RefundDestination, destination.terms(false));
            }
        }
        if !source.has_ended() && source.initiated.is_some() {
            if let Some(secret) = destination.secret.clone().or_else(|| world.lies.stolen(&order.id)) {
                if conduct == Some(Conduct::NeverRedeems) || !is_due(&destination.redeemed) {
                    return;
                }
                self.redeem(world, order, Act::RedeemSource, source.terms(true), &secret);
            } else if is_over(world, source) && source.shown_delegate.is_none() && !world.lies.relayer_idles() {
                self.refund(world, order, Act::RefundSource, source.terms(true));
            }
        }
    }

    fn pay(&mut self, world: &World, order: &Order, conduct: Option<Conduct>) {
        let terms = order.destination.terms(false);
        let dust = dust(&terms);
        let repeated = match conduct {
            Some(Conduct::DustFirst | Conduct::DustMatured) => 1,
            Some(Conduct::DustCrowd) => 30,
            _ => 0,
        };
        if repeated > 0 {
            self.send(world, order, Act::Dust, "pays dust on", &dust, |engine| {
                let mut sent = Err("nothing was sent".to_owned());
                for _ in 0..repeated {
                    // Nodes refuse long chains of unconfirmed transactions.
                    if engine.pending() >= MAX_WAITING {
                        engine.mine(1);
                    }
                    sent = engine.lock(&dust);
                }
                engine.mine(1);
                if conduct == Some(Conduct::DustMatured) {
                    engine.mine(dust.timelock.saturating_add(1));
                }
                sent
            });
        }
        let changed = conduct.map_or_else(|| terms.clone(), |conduct| conduct.change(&terms));
        self.send(world, order, Act::Lock, "pays on", &terms, |engine| {
            let sent = engine.lock(&changed);
            if conduct == Some(Conduct::RefundsAtOnce) {
                engine.mine(changed.timelock.saturating_add(2));
            }
            sent
        });
        if matches!(conduct, Some(Conduct::Frozen | Conduct::Paused)) {
            let account = (conduct == Some(Conduct::Frozen)).then_some(terms.owner.as_str());
            let Ok(chain) = world.chain_of(&terms.asset) else { return };
            // The solver's payment has to be in a block first.
            world.settle(chain);
            let stopped =
                chain.engine().stop(&terms.asset, account).map_or_else(|reason| format!("cannot: {reason}"), |()| "done".to_owned());
            world.note(format!("{}: the issuer stops {}: {stopped}", short(&order.id), account.unwrap_or(&terms.asset)));
        }
        if conduct == Some(Conduct::DustAfter) {
            self.send(world, order, Act::Dust, "pays dust on", &dust, |engine| engine.lock(&dust));
        }
    }

    fn redeem(&mut self, world: &World, order: &Order, act: Act, terms: Terms, secret: &str) {
        let mut bytes = [0; 32];
        if hex::decode_to_slice(secret, &mut bytes).is_ok() {
            self.send(world, order, act, "redeems on", &terms, |engine| engine.redeem(&terms, &bytes));
        }
    }

    fn refund(&mut self, world: &World, order: &Order, act: Act, terms: Terms) {
        self.send(world, order, act, "refunds on", &terms, |engine| engine.refund(&terms));
    }

    fn send(
        &mut self,
        world: &World,
        order: &Order,
        act: Act,
        does: &str,
        terms: &Terms,
        send: impl FnOnce(&mut Box<dyn crate::chains::Engine>) -> Result<String, String>,
    ) {
        let key = (order.number, act);
        let Ok(chain) = world.chain_of(&terms.asset) else { return };
        if self.waits.contains_key(&key) {
            return;
        }
        let name = terms.asset.split_once(':').map_or("", |(name, _)| name);
        let sent = send(&mut chain.engine());
        let wait = match &sent {
            // Blocks repetition until long after the transaction should be in a block, so that a slow chain does not
            // lead to a second payment.
            Ok(transaction) => {
                world.note(format!("{}: the solver {does} {name}, {transaction}", short(&order.id)));
                u32::MAX
            }
            Err(reason) => {
                world.note(format!("{}: {name} refuses what the solver {does}: {reason}", short(&order.id)));
                PATIENCE
            }
        };
        self.waits.insert(key, wait);
    }
}

/// Returns the terms with a thousandth of the amount, but at least enough for a fee.
fn dust(terms: &Terms) -> Terms {
    Terms { amount: (terms.amount / 1_000).max(1_000), ..terms.clone() }
}

/// An order, with its secret in hex.
pub(crate) type Overheard = (Order, String);

/// Returns the secret in a submitted transaction that redeems a destination, if there is one. Anyone who watches a
/// mempool can see it. Only transactions in hex are searched.
pub(crate) fn overhear(world: &World, chain: &str, body: &[u8]) -> Option<Overheard> {
    let orders = (1..=world.ledger.count()).filter_map(|number| world.ledger.by_number(number));
    let orders: Vec<_> = orders.filter(|order| order.destination.chain() == chain).collect();
    body.windows(64).find_map(|window| {
        let secret: [u8; 32] = hex::decode_to_array(window).ok()?;
        let hash = hex::encode(Sha256::digest(secret));
        let order = orders.iter().find(|order| order.destination.secret_hash == hash)?;
        Some((order.clone(), hex::encode(secret)))
    })
}

/// Redeems the destination with the secret before the wallet's transaction enters the mempool. This pays the user,
/// and lets the solver redeem the source.
pub(crate) fn front_run(world: &World, (order, secret): &Overheard) {
    let mut bytes = [0; 32];
    let Ok(chain) = world.chain_of(&order.destination.asset) else { return };
    if hex::decode_to_slice(secret, &mut bytes).is_err() || world.lies.stolen(&order.id).is_some() {
        return;
    }
    world.lies.overheard(&order.id, secret);
    let sent = chain.engine().redeem(&order.destination.terms(false), &bytes);
    world.note(format!("{}: the solver takes the secret out of the mempool and is first: {}", short(&order.id), said(sent)));
}

/// Refunds the dust to the solver while the wallet's redemption is pending.
pub(crate) fn take_dust_back(world: &World, (order, _): &Overheard) {
    let Ok(chain) = world.chain_of(&order.destination.asset) else { return };
    let sent = chain.engine().refund(&dust(&order.destination.terms(false)));
    world.note(format!("{}: the solver takes its dust back beside the redemption: {}", short(&order.id), said(sent)));
}

fn said(sent: Result<String, String>) -> String {
    sent.unwrap_or_else(|reason| format!("refused, {reason}"))
}

/// Returns the height up to which blocks may be made on demand without using up the timelock of a recent payment.
/// Without a limit, twenty users' blocks on demand would outlast a timelock of two hours within seconds. Returns
/// `None` if the payment has ended or is old, or if its timelock is over.
fn quick_limit(world: &World, side: &Side) -> Option<u64> {
    let paid = side.initiated.as_ref().filter(|_| !side.has_ended() && !is_over(world, side))?;
    let is_fresh = world.clock.millis().saturating_sub(paid.at) < TIME_TO_REDEEM;
    is_fresh.then(|| paid.height.saturating_add(side.timelock.div_ceil(8).saturating_mul(5)))
}

/// Returns whether the timelock of a side has expired. It counts blocks or, on Sui, milliseconds.
fn is_over(world: &World, side: &Side) -> bool {
    let (Some(paid), Ok(chain)) = (&side.initiated, world.chain_of(&side.asset)) else { return false };
    let name = side.asset.split(':').next().unwrap_or_default();
    if known_chain(name).is_some_and(|known| known.profile.family.timelock_unit() == "ms") {
        return world.clock.millis() > paid.at.saturating_add(side.timelock);
    }
    chain.engine().height() > paid.height.saturating_add(side.timelock)
}
