//! Both chains are read before a payment is signed. Nothing is paid while the endpoints of one cannot be used.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_store::testing::MemoryDisk;

use crate::world::Worlds;
use crate::world::kinds::{KINDS, Kind};
use crate::world::plan::{Bad, Clock, Plan, Solver};
use crate::{DAY, driver, live, open};

/// Follows an order for an hour, in which all endpoints of a leg are like this. Returns whether anything was signed or paid.
fn is_paid((kind, pays): (Kind, Kind), leg: usize, bad: Option<Bad>) -> bool {
    let mut all = [Vec::new(), Vec::new()];
    all[leg] = bad.map(|bad| [0, 1, 2].map(|place| (place, bad)).into()).unwrap_or_default();
    let plan = Plan {
        kind,
        pays,
        faults: 2 * DAY,
        bad: all,
        service: Vec::new(),
        solver: Solver::Never,
        clock: Clock::True,
        reorganizations: [None; 2],
        halts: [None; 2],
        turns: [None; 2],
        grains: [1; 2],
        fees: None,
        deaths: 0,
        has_rival: false,
        ..Plan::new(0)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let worlds = Worlds::of_plans(1, vec![plan]);
        let driver = driver(&worlds, open(&MemoryDisk::new()).unwrap());
        let _ = tokio::time::timeout(Duration::from_secs(3_600), live(&worlds, &driver, || false)).await;
        let first = worlds.first();
        let state = first.now();
        !state.signed.is_empty() || !state.fundings.is_empty()
    })
}

#[test]
fn nothing_is_paid_while_the_endpoints_of_a_chain_cannot_be_used() {
    // Each kind of source, and each kind of destination that some source has.
    let sources = KINDS.map(|kind| ((kind, kind.destinations()[0]), 0));
    let mut destinations = BTreeMap::new();
    for kind in KINDS {
        for pays in kind.destinations() {
            destinations.entry(*pays).or_insert(((kind, *pays), 1));
        }
    }
    assert!(destinations.contains_key(&Kind::Litecoin));
    for (pair, leg) in sources.into_iter().chain(destinations.into_values()) {
        assert!(is_paid(pair, leg, None), "{pair:?}");
        let off = [-14_400, 10_800].map(Bad::HeadIsOff);
        for bad in [Bad::ServesAnotherChain, Bad::ShowsHtml, Bad::IsTooBusy, Bad::Hangs].into_iter().chain(off) {
            assert!(!is_paid(pair, leg, Some(bad)), "{pair:?} {leg} {bad:?}");
        }
    }
}
