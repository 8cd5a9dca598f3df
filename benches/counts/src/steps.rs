//! The counted steps of an order.

use std::hint::black_box;
use std::mem;

use countersign::json::{self, Cursor};
use countersign::{CreateOrder, Policy, Proposal, Registry};
use countersign_json::JsonFamily;
use serde_json::Value;

/// How often the steps are run for one count.
pub(crate) const TIMES: u32 = 10;

pub(crate) const REGISTRY: &str = include_str!("../../../fixtures/registry.json");

/// A row of the steps of one response.
pub(crate) struct Step {
    pub(crate) row: &'static str,
    pub(crate) case: &'static str,
    /// Runs the steps of a case, given the family's fixtures.
    pub(crate) take: fn(&str, &str, u32),
}

/// Runs the steps once, and then `times` times, as in a wallet that embeds one family. The registry is loaded, and the
/// request and the wallet's nonce, fees and coins are values. The first run fills the caches in the registry.
pub(crate) fn take<F: JsonFamily>(lines: &str, id: &str, times: u32) {
    let (registry, policy) = (Registry::from_json(REGISTRY.as_bytes()).expect("fixture"), Policy::default());
    let mut cases = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a fixture is JSON"));
    let case = cases.find(|case| case["id"] == id).expect(id);
    let [request, response, wallet] = ["request", "response", "wallet"].map(|member| case[member].to_string());
    let request = CreateOrder::from_json(request.as_bytes()).expect("a request");
    let wallet = json::parse(wallet.as_bytes()).expect("JSON");
    // Every run creates the same number of inputs, so that their cost cancels out in the difference of two runs.
    // Unused inputs are not dropped, because each step drops its own input.
    let wallets: Vec<_> =
        (0..=TIMES.max(times)).map(|_| F::read_wallet(Cursor::root(&wallet, "/wallet")).expect("a wallet context")).collect();
    let mut wallets = wallets.into_iter();
    for wallet in wallets.by_ref().take(times as usize + 1) {
        let proposal = Proposal::new(&request, black_box(response.as_bytes()));
        let order = countersign::verify_family::<F>(proposal, &registry, &policy).expect("verify");
        drop(black_box(order.prepare(wallet).expect("prepare")));
    }
    mem::forget(wallets);
}
