//! The counted steps, for the most complete response of each family. The cases are those of the benches.

use std::hint::black_box;
use std::mem;

use countersign::bitcoin::Bitcoin;
use countersign::evm::Evm;
use countersign::json::{self, Cursor};
use countersign::solana::Solana;
use countersign::starknet::Starknet;
use countersign::sui::Sui;
use countersign::tron::Tron;
use countersign::{CreateOrder, Policy, Proposal, Registry};
use countersign_json::JsonFamily;
use serde_json::Value;

/// How often the steps are run for one count.
pub(crate) const TIMES: u32 = 10;

pub(crate) const STEPS: [&str; 7] = ["evm", "tron", "starknet", "solana native", "solana gasless", "sui", "bitcoin"];

pub(crate) const REGISTRY: &str = include_str!("../../../fixtures/registry.json");

macro_rules! fixtures {
    ($family:literal) => {
        include_str!(concat!("../../../fixtures/accept/", $family, ".jsonl"))
    };
}

/// Runs the steps of a row once, and then `times` times. The first run fills the caches in the registry.
pub(crate) fn run(row: &str, times: u32) -> Result<(), String> {
    match row {
        "evm" => take::<Evm>(fixtures!("evm"), "evm-token-approval-unlimited", times),
        "tron" => take::<Tron>(fixtures!("tron"), "tron-token-approval-unlimited", times),
        "starknet" => take::<Starknet>(fixtures!("starknet"), "starknet-approval-unlimited", times),
        "solana native" => take::<Solana>(fixtures!("solana"), "solana-native-legacy", times),
        "solana gasless" => take::<Solana>(fixtures!("solana"), "solana-token-legacy", times),
        "sui" => take::<Sui>(fixtures!("sui"), "sui-native", times),
        "bitcoin" => take::<Bitcoin>(fixtures!("bitcoin"), "bitcoin-coins-without-record", times),
        _ => return Err(format!("{row}: no such row")),
    }
    Ok(())
}

/// Runs the steps as in a wallet that embeds one family. The registry is loaded, and the request and the wallet's
/// nonce, fees and coins are values.
fn take<F: JsonFamily>(lines: &str, id: &str, times: u32) {
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
