//! Tests the sandbox's EVM chains on anvil. Skipped if anvil is not installed.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

mod nodes;
mod rpc;
mod wallet;

use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use countersign_sandbox::chains::Engine;
use countersign_sandbox::chains::evm::{Anvil, Network};
use countersign_sandbox::clock::Clock;
use rpc::{GWEI, Node};
use serde_json::json;
use wallet::raw;

fn anvil(network: Network, clock: Arc<Clock>) -> Box<dyn Engine> {
    Box::new(Anvil::new(&nodes::anvil().unwrap(), network, clock).unwrap())
}

/// Runs a test if anvil is installed.
fn with_anvil(test: impl FnOnce(rpc::Make)) {
    if nodes::anvil().is_some() {
        test(anvil);
    }
}

#[test]
fn a_token_is_swapped_without_gas() {
    with_anvil(rpc::a_token_is_swapped_without_gas);
}

#[test]
fn coins_are_swapped_by_transactions() {
    with_anvil(rpc::coins_are_swapped_by_transactions);
}

#[test]
fn a_token_that_resets_its_allowance_is_swapped() {
    with_anvil(rpc::a_token_that_resets_its_allowance_is_swapped);
}

#[test]
fn a_contract_is_allowed_without_the_owners_key() {
    with_anvil(rpc::a_contract_is_allowed_without_the_owners_key);
}

#[test]
fn the_owner_takes_it_back_after_the_timelock() {
    with_anvil(rpc::the_owner_takes_it_back_after_the_timelock);
}

#[test]
fn blocks_follow_each_other() {
    with_anvil(rpc::blocks_follow_each_other);
}

#[test]
fn a_reorganization_takes_back_what_blocks_held() {
    with_anvil(|anvil| {
        rpc::a_reorganization_takes_back_what_blocks_held(anvil);
    });
}

#[test]
fn events_of_blocks_that_were_taken_back_are_not_told() {
    with_anvil(rpc::events_of_blocks_that_were_taken_back_are_not_told);
}

#[test]
fn contracts_and_state_are_those_of_the_own_engine() {
    with_anvil(|anvil| {
        let own: rpc::Make = |network, clock| Box::new(countersign_sandbox::chains::evm::Evm::new(network, clock).unwrap());
        let mut chains = [own, anvil].map(|make| Node::new(make, "base", 8453));
        assert_eq!(chains[0].evm.listing().assets, chains[1].evm.listing().assets);
        let [own, other] = &mut chains;
        let listing = own.evm.listing();
        for asset in listing.assets {
            let id = asset["id"].as_str().unwrap();
            assert_eq!(own.evm.balance(&listing.solver, id), other.evm.balance(&listing.solver, id));
            let code = json!([asset["htlc"]["address"], "latest"]);
            assert_eq!(own.ask("eth_getCode", code.clone()), other.ask("eth_getCode", code));
        }
        assert_eq!(own.evm.height(), other.evm.height());
        // Only the wallet signs.
        assert_eq!(other.ask("eth_accounts", json!([])).unwrap(), json!([]));
    });
}

/// Checks the node's own error messages.
#[test]
fn transactions_that_cannot_be_are_refused() {
    with_anvil(|anvil| {
        let mut node = Node::new(anvil, "ethereum", 1);
        let id = node.send(&node.payment(0, 3 * GWEI, 1)).unwrap();
        assert!(node.ask("eth_sendRawTransaction", json!([node.payment(1, 3 * GWEI, u64::MAX)])).is_err());
        assert!(node.ask("eth_sendRawTransaction", json!(["0x02f8"])).is_err());
        // A transaction after a nonce gap is pending.
        node.send(&node.payment(2, 3 * GWEI, 1)).unwrap();
        assert_eq!(node.evm.pending(), 2);
        node.evm.mine(1);
        assert_eq!(node.evm.pending(), 1);
        assert_eq!(node.ask("eth_getTransactionReceipt", json!([id])).unwrap()["status"], "0x1");
        let reason = node.evm.fund("0x5", "ethereum:eth", 1).unwrap_err();
        assert!(reason.starts_with("0x5: "), "{reason}");
    });
}

#[test]
fn a_program_that_is_no_node_is_named() {
    for (program, why) in [("/nowhere/anvil", "/nowhere/anvil: "), ("false", "false: the node has ended: ")] {
        let reason = Anvil::new(Path::new(program), Network::new("base", 8453), Arc::default()).unwrap_err();
        assert!(reason.starts_with(why), "{reason}");
    }
}

#[cfg(unix)]
#[test]
fn a_node_that_has_ended_gives_errors() {
    use std::os::unix::fs::PermissionsExt as _;
    with_anvil(|_| {
        let folder = env::temp_dir().join(format!("countersign-anvil-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (script, id) = (folder.join("anvil"), folder.join("id"));
        let text = format!("#!/bin/sh\necho $$ > '{}'\nexec '{}' \"$@\"\n", id.display(), nodes::anvil().unwrap().display());
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let mut chain = Anvil::new(&script, Network::new("base", 8453), Arc::default()).unwrap();
        let head = chain.height();
        let ended = std::process::Command::new("kill").args(["-9", fs::read_to_string(&id).unwrap().trim()]).status().unwrap();
        assert!(ended.success());
        fs::remove_dir_all(&folder).unwrap();
        let solver = chain.listing().solver;
        for reason in [chain.fund(&solver, "base:usdc", 1).unwrap_err(), chain.balance(&solver, "base:eth").unwrap_err()] {
            assert!(reason.starts_with("the node does not answer: "), "{reason}");
        }
        chain.mine(3);
        assert!(chain.reorganize(1).is_err());
        assert_eq!((chain.height(), chain.pending(), chain.events()), (head, 0, Vec::new()));
        assert_eq!(raw(&mut chain, "POST", "/", b"{}").status, 502);
    });
}
