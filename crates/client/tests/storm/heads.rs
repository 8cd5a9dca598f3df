//! Both chains are read before a payment is signed. Nothing is paid while the endpoints of one cannot be used.

use std::time::Duration;

use countersign_store::testing::MemoryDisk;

use crate::kinds::{KINDS, Kind};
use crate::plan::{Bad, Clock, Plan, Service, Solver};
use crate::world::World;
use crate::{DAY, driver, live, open};

/// Follows an order for an hour, in which all endpoints of a leg are like this. Returns whether anything was signed or paid.
fn is_paid(kind: Kind, leg: usize, bad: Option<Bad>) -> bool {
    let mut all = [Vec::new(), Vec::new()];
    all[leg] = bad.map(|bad| [0, 1, 2].map(|place| (place, bad)).into()).unwrap_or_default();
    let plan = Plan {
        kind,
        faults: 2 * DAY,
        bad: all,
        service: Service::Honest,
        solver: Solver::Never,
        clock: Clock::True,
        reorganizations: [None; 2],
        fees: None,
        deaths: 0,
        has_rival: false,
        ..Plan::new(0)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new(1, plan);
        let driver = driver(&world, open(&MemoryDisk::new()).unwrap());
        let _ = tokio::time::timeout(Duration::from_secs(3_600), live(&world, &driver, || false)).await;
        let state = world.now();
        !state.signed.is_empty() || !state.fundings.is_empty()
    })
}

#[test]
fn nothing_is_paid_while_the_endpoints_of_a_chain_cannot_be_used() {
    // Every destination is on an EVM chain, so that the sources show what holds for each family.
    for (kind, leg) in KINDS.map(|kind| (kind, 0)).into_iter().chain([(Kind::Evm, 1)]) {
        assert!(is_paid(kind, leg, None), "{kind:?}");
        let off = [-14_400, 10_800].map(Bad::HeadIsOff);
        for bad in [Bad::ServesAnotherChain, Bad::ShowsHtml, Bad::IsTooBusy, Bad::Hangs].into_iter().chain(off) {
            assert!(!is_paid(kind, leg, Some(bad)), "{kind:?} {leg} {bad:?}");
        }
    }
}
