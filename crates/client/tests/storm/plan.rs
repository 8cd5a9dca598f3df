//! What a seed decides: who is hostile and how, and everything that happens by chance.

use std::collections::BTreeMap;

use crate::kinds::{KINDS, Kind, Swap};
use countersign_testkit::chain::view::Turn;

/// SplitMix64, which gives the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub const fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Returns whether something happens that happens in so many of a hundred cases.
    pub const fn is(&mut self, per_cent: u64) -> bool {
        self.below(100) < per_cent
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// What an endpoint does that is not honest. In a storm, at most one of three does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    Hangs,
    /// It answers with a web page.
    ShowsHtml,
    /// It refuses with status 429.
    IsTooBusy,
    /// Its newest block is this many seconds ahead of the clock; negative if it is old.
    HeadIsOff(i64),
    /// It follows the chain by this many seconds too late.
    Lags(u64),
    ServesAnotherChain,
    /// It knows only the newest block.
    IsPruned,
    /// It shows what is so, and keeps the transactions that it accepts.
    Swallows,
    Lies(Lie),
    /// It lies in single components of what it answers, also after the faults: see `lies`. Its place in the list is drawn at every stage.
    /// It keeps the transactions that it gets, and shows the solver the secret in them.
    Components {
        /// Whether it shows the same for as long as a stage lasts.
        is_steady: bool,
    },
}

impl Bad {
    /// Returns whether an endpoint keeps the transactions that it gets.
    pub const fn keeps_transactions(self) -> bool {
        matches!(self, Self::Lies(_) | Self::Swallows | Self::Components { .. })
    }
}

/// What a liar shows. Each one also keeps the transactions that it gets, and shows the solver the secret in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    Funded,
    Absent,
    Redeemed,
    Refunded,
    /// Two days too late.
    TimelockIsOver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Honest,
    Hangs,
    Fails,
    /// States that both sides are funded, redeemed or refunded, whatever is on chain.
    SaysFunded,
    SaysRedeemed,
    SaysRefunded,
    /// Shows the record of the beginning.
    Replays,
    /// Acts, and its replies are lost.
    LosesReplies,
    /// Later records have other terms.
    ChangesTerms,
    /// Takes the secret and relays nothing.
    KeepsTheSecret,
    /// Takes the gasless payment and sends nothing.
    KeepsThePayment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Solver {
    /// Pays after this many seconds.
    Pays(u64),
    PaysLess,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    True,
    /// Is behind by this many seconds.
    Behind(u64),
    /// Is set by this many seconds, forwards or back, after a while.
    Jumps(u64, i64),
}

/// A reorganization, this many seconds after what happened on a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorganization {
    pub after_end: bool,
    pub seconds: u64,
    /// How many seconds of blocks are replaced.
    pub depth: u64,
    /// Whether the owner's transactions are in no mempool afterwards.
    pub forgets: bool,
}

/// Everything that a seed decides at the beginning.
#[derive(Debug, Clone)]
pub struct Plan {
    pub kind: Kind,
    pub pays: Kind,
    pub gasless: bool,
    /// Seconds after which everything is well, except that a solver that does not pay still does not.
    pub faults: u64,
    /// On each leg, the endpoints that are not honest.
    pub bad: [Vec<(usize, Bad)>; 2],
    pub service: Service,
    pub solver: Solver,
    /// Seconds until the solver redeems the source with a secret that it knows.
    pub solver_redeems: u64,
    pub clock: Clock,
    pub reorganizations: [Option<Reorganization>; 2],
    /// From which second until which each chain has no blocks.
    pub halts: [Option<(u64, u64)>; 2],
    /// From when on each chain is ten times as fast or as slow as its row.
    pub turns: [Option<Turn>; 2],
    /// The times in each chain's headers are multiples of so many seconds.
    pub grains: [u64; 2],
    /// Whether the solver pays dust to the address of a Bitcoin-like destination: long before its payment, and together with it. It takes
    /// the dust back while the owner redeems.
    pub has_dust: bool,
    /// When fees are a hundred times as high.
    pub fees: Option<(u64, u64)>,
    /// Seconds until the owner has signed a redemption for the first time.
    pub signing: u64,
    pub owner_redeems: bool,
    pub relayer_allowed: bool,
    /// Of a hundred lives of the process, how many end early.
    pub deaths: u64,
    /// Whether two processes follow the order at the same time.
    pub has_rival: bool,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        Self::of(KINDS[(seed % 7) as usize], seed)
    }

    /// Returns what a seed decides for the orders of one storm, which have no chain in common. They have one process, clock and machine.
    pub fn all(seed: u64) -> Vec<Self> {
        let mut plans = vec![Self::new(seed)];
        let mut dice = Dice(seed ^ 0x0077_1e55);
        let more = if dice.is(25) { dice.between(1, 2) } else { 0 };
        for _ in 0..more {
            let (kind, seed) = (dice.pick(&KINDS), dice.next());
            let first = plans[0].clone();
            let Self { faults, clock, relayer_allowed, deaths, has_rival, .. } = first;
            let plan = Self { faults, clock, relayer_allowed, deaths, has_rival, ..Self::of(kind, seed) };
            let chains = |plan: &Self| {
                let terms = &Swap::of(plan.kind, plan.pays).terms;
                [terms.source.chain.clone(), terms.destination.chain.clone()]
            };
            let is_apart = |other: &Self| other.kind != kind && chains(other).iter().all(|chain| !chains(&plan).contains(chain));
            if plans.iter().all(is_apart) {
                plans.push(plan);
            }
        }
        plans
    }

    /// Returns a storm without any fault.
    pub const fn calm(kind: Kind, pays: Kind) -> Self {
        Self {
            kind,
            pays,
            gasless: false,
            faults: 0,
            bad: [Vec::new(), Vec::new()],
            service: Service::Honest,
            solver: Solver::Pays(60),
            solver_redeems: 600,
            clock: Clock::True,
            reorganizations: [None, None],
            halts: [None, None],
            turns: [None, None],
            grains: [1, 1],
            has_dust: false,
            fees: None,
            signing: 0,
            owner_redeems: true,
            relayer_allowed: false,
            deaths: 0,
            has_rival: false,
        }
    }

    fn of(kind: Kind, seed: u64) -> Self {
        let mut dice = Dice(seed ^ 0x5702_3a11);
        let dice = &mut dice;
        let pays = if dice.is(30) { Kind::Evm } else { dice.pick(kind.destinations()) };
        let lies = [Lie::Funded, Lie::Absent, Lie::Redeemed, Lie::Refunded, Lie::TimelockIsOver].map(Bad::Lies);
        let mut bad = || {
            let lag = dice.between(30, 7_200);
            let others = [Bad::Hangs, Bad::Lags(lag), Bad::ServesAnotherChain, Bad::IsPruned, Bad::Swallows];
            let kind = if dice.is(50) { dice.pick(&lies) } else { dice.pick(&others) };
            let place = dice.below(3) as usize;
            dice.is(70).then_some((place, kind)).into_iter().collect()
        };
        let mut bad = [bad(), bad()];
        let services = [
            Service::Hangs,
            Service::Fails,
            Service::SaysFunded,
            Service::SaysRedeemed,
            Service::SaysRefunded,
            Service::Replays,
            Service::LosesReplies,
            Service::ChangesTerms,
            Service::KeepsTheSecret,
            Service::KeepsThePayment,
        ];
        let service = if dice.is(40) { Service::Honest } else { dice.pick(&services) };
        let solver = match dice.below(10) {
            0..=5 => Solver::Pays(dice.between(20, 300)),
            6..=7 => Solver::Pays(dice.between(300, 6 * 3_600)),
            8 => Solver::PaysLess,
            _ => Solver::Never,
        };
        let clock = match dice.below(4) {
            // With a clock that is more than a minute behind, nothing is paid.
            0 if dice.is(75) => Clock::Behind(dice.between(1, 50)),
            0 => Clock::Behind(dice.between(51, 1_800)),
            1 => Clock::Jumps(dice.between(0, 7_200), dice.between(0, 3_600) as i64 - 1_800),
            _ => Clock::True,
        };
        let mut reorganization = || {
            // Up to the finality rule, and beyond it.
            let depth = if dice.is(70) { dice.between(4, 60) } else { dice.between(61, 400) };
            let plan = Reorganization { after_end: dice.is(60), seconds: dice.between(4, 90), depth, forgets: dice.is(50) };
            dice.is(30).then_some(plan)
        };
        let reorganizations = [reorganization(), reorganization()];
        let rise = dice.between(0, 3_600);
        // Sui counts time and not blocks, so that a timelock would run out while it stands still.
        let mut halt = |kind: Kind| {
            let (from, seconds) = (dice.between(0, 1_800), dice.between(300, 4 * 3_600));
            (dice.is(15) && kind != Kind::Sui && !kind.has_blocks()).then_some((from, from + seconds))
        };
        let halts = [halt(kind), halt(pays)];
        // On three of four orders, an endpoint of each chain lies in components. Its place is drawn later.
        if dice.is(75) {
            bad = [(); 2].map(|()| vec![(0, Bad::Components { is_steady: dice.is(70) })]);
        }
        // Sui counts milliseconds, which take as long as ever.
        let mut turn = |kind: Kind| {
            let (after, is_faster) = (if dice.is(40) { 0 } else { dice.between(1, 5_400) }, dice.is(50));
            (dice.is(35) && kind != Kind::Sui).then_some(Turn { after, is_faster })
        };
        let turns = [turn(kind), turn(pays)];
        let mut grain = || if dice.is(30) { dice.between(2, 60) } else { 1 };
        let grains = [grain(), grain()];
        Self {
            turns,
            grains,
            kind,
            pays,
            halts,
            has_dust: dice.is(50),
            gasless: dice.is(50),
            faults: dice.between(1_200, 6 * 3_600),
            bad,
            service,
            solver,
            solver_redeems: if dice.is(70) { dice.between(5, 120) } else { dice.between(120, 6 * 3_600) },
            clock,
            reorganizations,
            fees: dice.is(40).then_some((rise, rise + dice.between(60, 4 * 3_600))),
            signing: if dice.is(70) { dice.between(0, 20) } else { dice.between(20, 3 * 3_600) },
            owner_redeems: dice.is(85),
            relayer_allowed: dice.is(60),
            deaths: if dice.is(60) { dice.between(30, 95) } else { 0 },
            has_rival: dice.is(15),
        }
    }
}

/// How often each fault happened.
pub type Counts = BTreeMap<&'static str, u64>;
