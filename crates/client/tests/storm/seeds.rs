//! What a seed decides: who is hostile and how, and everything that happens by chance.

use countersign_testkit::chain::view::Turn;

use crate::world::kinds::{KINDS, Kind, Swap};
use crate::world::plan::{Bad, Clock, Dice, Lie, Plan, Reorganization, Service, Solver};

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
        let service = if dice.is(40) { Vec::new() } else { vec![dice.pick(&services)] };
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
        // Sui counts time and not blocks, so a timelock would expire while the chain makes no blocks.
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
            ..Self::calm(kind, pays)
        }
    }
}
