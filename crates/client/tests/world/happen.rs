//! Applies the events on the chains in order, up to the time of each reading.

use countersign_client::countersign::bitcoin::htlc::Leaf;
use countersign_client::countersign::evm::alloy_primitives::B256;
use countersign_client::countersign::{Leg, Role};

use super::bitcoin::Blocks;
use super::plan::{Miners, Solver};
use super::{BLOCK, Signed, State, World, place_of};
use countersign_testkit::chain::view::{End, Htlc};

/// A redemption that a reorganization took back, and that no mempool has any more.
pub const FORGOTTEN: &str = "redemption forgotten";

impl World {
    /// Takes a transaction into the mempool of an honest endpoint. Returns whether the chain accepts it.
    pub fn take(&self, state: &mut State, place: usize) -> bool {
        let now = self.time();
        let signed = state.signed[place].clone();
        match signed.kept.role {
            Role::Initiate => drop(state.fundings.insert(signed.kept.id.clone())),
            Role::Redeem => self.learn_secret(state, "in a redemption"),
            _ => {}
        }
        let leg = if signed.kept.role == Role::Redeem { Leg::Destination } else { Leg::Source };
        if let Some(blocks) = &mut state.blocks[place_of(leg)] {
            let is_early = signed.kept.role == Role::Refund && blocks.depth() < self.terms(Leg::Source).timelock;
            return !is_early && (blocks.send(&signed.kept.payload) || signed.kept.role == Role::Initiate);
        }
        let is_cheap = self.plan.miners == Miners::WantMore && signed.kept.role != Role::Initiate && !signed.is_replacement;
        if !is_cheap && state.pending.iter().all(|(other, _)| *other != place) {
            let waits_until =
                self.plan.fees.filter(|_| self.are_fees_high() && !signed.pays_much).map_or(0, |(_, until)| self.epoch + until);
            state.pending.push((place, self.after_halt(leg, now.max(waits_until) + BLOCK)));
        }
        true
    }

    /// Works out everything that has happened until `now`, in its order.
    pub fn catch_up(&self, state: &mut State, now: u64) {
        // An order that has ended is not looked at while another one of the storm goes on, which may take weeks of blocks.
        for _ in 0..100_000 {
            self.read_blocks(state);
            let next = self.events(state).into_iter().filter(|(at, _)| *at <= now).min_by_key(|(at, event)| (*at, *event as u8));
            let Some((at, event)) = next else {
                state.was_final |= self.is_final(state, now);
                return;
            };
            state.was_final |= self.is_final(state, at);
            self.happen(state, at, event);
        }
        panic!("the world does not come to rest");
    }

    /// Returns whether the solver's payment may count as final.
    fn is_final(&self, state: &State, now: u64) -> bool {
        let is_settled = match &state.blocks[1] {
            Some(blocks) => blocks.depth() >= self.plan.pays.settles_at(),
            None => state.destination.funded.is_some_and(|at| {
                let tempo = self.tempo(Leg::Destination);
                tempo.newest(now - self.plan.pays.settles_after()) >= tempo.includes(at)
            }),
        };
        is_settled && !state.destination.is_short
    }

    fn read_blocks(&self, state: &mut State) {
        let read = |blocks: &Blocks| {
            let ended = blocks
                .spent()
                .and_then(|(one, at)| Some((if Blocks::is_redemption(one) { End::Redeemed(None) } else { End::Refunded }, at?)));
            Htlc { funded: blocks.funded(), ended, is_short: blocks.is_short() }
        };
        if let Some(blocks) = &state.blocks[0] {
            state.source = read(blocks);
        }
        if let Some(blocks) = &state.blocks[1] {
            state.destination = read(blocks);
            // Nothing else spends the payment once the redemption does.
            state.is_paid_to_owner = !blocks.is_short() && blocks.spent().is_some_and(|(one, _)| Blocks::is_redemption(one));
        }
    }

    /// Returns the next possible event and its time.
    fn events(&self, state: &State) -> Vec<(u64, Event)> {
        let mut events = Vec::new();
        let mut add = |at: Option<u64>, event: Event| events.extend(at.map(|at| (at, event)));
        let State { source, destination, .. } = state;
        let [source_blocks, destination_blocks] = &state.blocks;
        add(state.pending.iter().map(|(_, at)| *at).min(), Event::Mined);
        add(source_blocks.as_ref().map(Blocks::next_block), Event::SourceBlock);
        add(destination_blocks.as_ref().map(Blocks::next_block), Event::DestinationBlock);
        let is_source_locked = source.funded.is_some() && source.ended.is_none();
        let is_paid = destination.funded.is_some() || destination_blocks.as_ref().is_some_and(Blocks::is_paid);
        if is_source_locked && !is_paid && !self.is_reorganizing(state) {
            let delay = match self.plan.solver {
                Solver::Pays(delay) => Some(delay),
                Solver::PaysLess => Some(60),
                Solver::TakesBack => Some(30),
                Solver::Never => None,
            };
            add(source.funded.zip(delay).map(|(at, delay)| self.after_halt(Leg::Destination, at + delay + BLOCK)), Event::SolverPays);
        }
        if let Some(blocks) = destination_blocks {
            let may_refund = blocks.depth() >= self.terms(Leg::Destination).timelock && blocks.spent().is_none();
            add(may_refund.then(|| blocks.last_block()), Event::SolverRefunds);
            add(state.secret_known.filter(|_| self.plan.has_dust && !state.is_dust_taken).map(|at| at + 5), Event::SolverTakesDust);
        } else if destination.ended.is_none() {
            let ends = |at| self.after_halt(Leg::Destination, self.ends(Leg::Destination, at));
            add(destination.funded.map(ends), Event::SolverRefunds);
        }
        let is_spent = source_blocks.as_ref().is_some_and(|blocks| blocks.spent().is_some());
        if is_source_locked && !is_spent {
            let may = source.funded.zip(state.secret_known).map(|(funded, known)| known.max(funded) + self.plan.solver_redeems);
            add(may.map(|at| self.after_halt(Leg::Source, at)), Event::SolverRedeems);
        }
        for (leg, htlc, event) in [(Leg::Source, source, Event::SourceTurns), (Leg::Destination, destination, Event::DestinationTurns)] {
            let place = place_of(leg);
            if let Some(plan) = self.plan.reorganizations[place].filter(|_| !state.reorganized[place]) {
                let from = if plan.after_end { htlc.ended.map(|(_, at)| at) } else { htlc.funded };
                add(from.map(|at| self.after_halt(leg, at + plan.seconds)), event);
            }
        }
        events
    }

    /// Returns whether the solver's payment was taken back by a reorganization, and comes again by itself.
    const fn is_reorganizing(&self, state: &State) -> bool {
        state.reorganized[1] && state.was_final
    }

    fn happen(&self, state: &mut State, at: u64, event: Event) {
        let is_block = matches!(event, Event::SourceBlock | Event::DestinationBlock);
        state.changed = if is_block { state.changed } else { at };
        let [source_blocks, destination_blocks] = &mut state.blocks;
        match event {
            Event::SourceBlock => source_blocks.as_mut().unwrap().mine_until(at),
            Event::DestinationBlock => destination_blocks.as_mut().unwrap().mine_until(at),
            Event::Mined => {
                let place = state.pending.iter().position(|(_, mined)| *mined == at).unwrap();
                let (signed, _) = state.pending.remove(place);
                let signed = state.signed[signed].clone();
                self.mine(state, &signed, at);
            }
            Event::SolverPays => {
                let is_short = self.plan.solver == Solver::PaysLess;
                match destination_blocks {
                    Some(blocks) => {
                        if self.plan.has_dust {
                            blocks.pay_dust();
                            *state.counts.entry("dust").or_default() += 1;
                        }
                        blocks.fund(is_short);
                    }
                    None => state.destination = Htlc { funded: Some(at), ended: None, is_short },
                }
            }
            Event::SolverTakesDust => {
                destination_blocks.as_mut().unwrap().take_dust();
                state.is_dust_taken = true;
            }
            Event::SolverRefunds => match destination_blocks {
                Some(blocks) => {
                    let (_, hex) = blocks.spend(Leaf::Refund, &[], 4).unwrap();
                    blocks.send(&hex);
                }
                None => state.destination.ended = Some((End::Refunded, at)),
            },
            Event::SolverRedeems => match source_blocks {
                Some(blocks) => {
                    let (_, hex) = blocks.spend(Leaf::Redeem, &self.swap.secret, 1).unwrap();
                    blocks.send(&hex);
                }
                None => state.source.ended = Some((End::Redeemed(None), at)),
            },
            Event::SourceTurns => self.turn(state, 0, at),
            Event::DestinationTurns => self.turn(state, 1, at),
        }
    }

    fn mine(&self, state: &mut State, signed: &Signed, at: u64) {
        match signed.kept.role {
            Role::Initiate => drop(state.source.funded.get_or_insert(at)),
            Role::Redeem => {
                let Htlc { funded, ended, is_short } = state.destination;
                // After a reorganization, the payment may be in a later block than this one.
                if funded.is_some_and(|funded| funded <= at) && ended.is_none() {
                    state.destination.ended = Some((End::Redeemed(signed.kept.id.parse::<B256>().ok().map(Into::into)), at));
                    state.is_paid_to_owner = !is_short;
                }
            }
            Role::Refund => {
                let is_over = self.source_ends(state).is_some_and(|ends| at >= ends);
                if is_over && state.source.ended.is_none() {
                    state.source.ended = Some((End::Refunded, at));
                }
            }
            _ => {}
        }
    }

    /// Replaces the newest blocks of a leg. What was in them is mined again, unless the owner's transaction is in no mempool any more.
    fn turn(&self, state: &mut State, place: usize, at: u64) {
        state.reorganized[place] = true;
        let plan = self.plan.reorganizations[place].unwrap();
        *state.counts.entry("reorganization").or_default() += 1;
        let kind = [self.plan.kind, self.plan.pays][place];
        if let Some(blocks) = &mut state.blocks[place] {
            // A redemption that is final by the rule is mined again automatically.
            let is_final = blocks.spent().and_then(|(_, at)| at).is_some_and(|at| blocks.depth_of(Some(at)) >= kind.settles_at());
            blocks.reorganize(1 + usize::from(plan.depth > 60) + usize::from(plan.depth > 200));
            if place == 1 && plan.forgets && !is_final {
                blocks.forget_redemptions();
                *state.counts.entry(FORGOTTEN).or_default() += 1;
            }
            return;
        }
        let leg = if place == 0 { &mut state.source } else { &mut state.destination };
        let is_new = |time: u64| time + plan.depth > at;
        if let Some((end, time)) = leg.ended.filter(|(_, time)| is_new(*time)) {
            // Whatever is final by the rule is mined again automatically, because the owner may no longer follow it.
            let is_owners = !matches!((place, end), (0, End::Redeemed(_)) | (1, End::Refunded));
            let is_forgotten = plan.forgets && is_owners && time + kind.settles_after() > at;
            leg.ended = (!is_forgotten).then_some((end, at + 3 * BLOCK));
            if is_forgotten && place == 1 {
                state.is_paid_to_owner = false;
                *state.counts.entry(FORGOTTEN).or_default() += 1;
            }
        }
        if leg.funded.is_some_and(is_new) {
            leg.funded = Some(at + BLOCK);
        }
    }

    /// The service's relayer sends the redemption, or the refund.
    pub fn relay(&self, state: &mut State, leg: Leg) -> bool {
        let now = self.time();
        let mined = self.after_halt(leg, now + BLOCK);
        if leg == Leg::Destination {
            if let Some(blocks) = &mut state.blocks[1] {
                let redemption = blocks.spend(Leaf::Redeem, &self.swap.secret, 5);
                return redemption.is_some_and(|(_, hex)| blocks.send(&hex));
            }
            let Htlc { funded, ended, is_short } = state.destination;
            if let (Some(funded), None) = (funded, ended) {
                state.destination.ended = Some((End::Redeemed(None), mined.max(funded)));
                state.is_paid_to_owner = !is_short;
            }
            return funded.is_some();
        }
        let is_over = self.source_ends(state).is_some_and(|ends| now >= ends);
        if let Some(blocks) = &mut state.blocks[0] {
            let refund = blocks.spend(Leaf::Refund, &[], 2);
            return is_over && refund.is_some_and(|(_, hex)| blocks.send(&hex));
        }
        if is_over && state.source.ended.is_none() {
            state.source.ended = Some((End::Refunded, mined));
        }
        is_over
    }

    /// Takes the gasless payment.
    pub fn initiate(&self, state: &mut State, message: &str) {
        state.fundings.insert(message.to_owned());
        let mined = self.after_halt(Leg::Source, self.time() + BLOCK);
        state.source.funded.get_or_insert(mined);
    }

    /// Returns whether the owner's payment may still arrive.
    pub fn is_payment_pending(&self, state: &State) -> bool {
        let waits = state.pending.iter().any(|(place, _)| state.signed[*place].kept.role == Role::Initiate);
        waits || state.source.funded.is_some() || state.blocks[0].as_ref().is_some_and(|blocks| !blocks.ledger.mempool.is_empty())
    }
}

/// The possible events, in the order in which they happen within a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Mined,
    SourceBlock,
    DestinationBlock,
    SolverPays,
    SolverTakesDust,
    SolverRedeems,
    SolverRefunds,
    SourceTurns,
    DestinationTurns,
}
