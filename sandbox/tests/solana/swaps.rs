//! Tests whole swaps. `countersign-node` plays the wallet.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::{Leg, evidence::HtlcState};
use countersign_sandbox::accounts::{self, RELAYER, SOLVER, USER};
use countersign_sandbox::chains::{Change, Engine};
use serde_json::json;
use solana_address::Address;
use solana_keypair::Keypair;
use solana_message::VersionedMessage;
use solana_message::v1::TransactionConfig;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use super::scene::{SECRET, SOL, Scene, ask};

/// The rent of a swap account for tokens and of a token account, and the fee of a signature.
const SWAP_RENT: u128 = (128 + 153) * 6_960;
const TOKEN_RENT: u128 = 2_039_280;
const FEE: u128 = 5_000;

#[tokio::test]
async fn a_swap_in_each_direction_is_verified_paid_proven_and_redeemed() {
    for (chain, cluster) in [("solana", "mainnet"), ("solana_localnet", "localnet")] {
        for (from, to, is_gasless) in [("sol", "usdc", false), ("usdc", "sol", true), ("usdc", "sol", false)] {
            let scene = Scene::new(chain, cluster, from, to);
            let case = format!("{chain}, {from} to {to}");
            let (user, sol) = (super::scene::address(USER), format!("{chain}:sol"));
            if from == "usdc" {
                scene.with(|solana| solana.fund(&user, &scene.source.asset, 2_000_000)).unwrap();
            }
            assert_eq!(scene.read(Leg::Source).await, HtlcState::Absent, "{case}");
            let before = scene.has(USER, from);
            let id = scene.pay(is_gasless).await.unwrap();
            assert_eq!(scene.with(|solana| solana.pending()), 1, "{case}");
            assert!(scene.with(|solana| solana.events()).is_empty(), "{case}");
            let events = scene.settle();
            let [event] = events.as_slice() else { panic!("{case}: {events:?}") };
            assert_eq!((&event.transaction, &event.change), (&id, &Change::Initiated { amount: 1_500_000 }), "{case}");
            assert_eq!(event.swap_id, scene.with(|solana| solana.leg(&scene.source)).unwrap().swap_id);
            assert!(matches!(scene.read(Leg::Source).await, HtlcState::Locked(_)), "{case}");
            if from == "usdc" {
                assert_eq!(scene.has(USER, "usdc"), before - 1_500_000, "{case}");
                // The owner pays no fee for a gasless order.
                assert_eq!(scene.has(USER, "sol") == 5 * SOL, is_gasless, "{case}");
            }

            assert!(scene.judge().await.is_err(), "{case}");
            scene.with(|solana| solana.lock(&scene.destination)).unwrap();
            scene.mine(1);
            assert!(scene.judge().await.is_err(), "{case}: not final yet");
            scene.settle();
            assert_eq!(scene.judge().await, Ok(()), "{case}");
            // In the newest final slot but one.
            let (HtlcState::Locked(locked), seen) = scene.observe(Leg::Destination).await else { panic!("{case}") };
            assert_eq!((locked.elapsed, seen.depth, seen.is_finalized), (1, 2, true), "{case}");

            let before = (scene.has(USER, to), scene.has(SOLVER, from));
            scene.recover(Leg::Destination).await.unwrap();
            let events = scene.settle();
            assert_eq!(events.last().unwrap().change, Change::Redeemed { secret: SECRET }, "{case}");
            let fees = if to == "sol" { FEE } else { 0 };
            assert_eq!(scene.has(USER, to), before.0 + 1_400_000 - fees, "{case}");
            let state = scene.read(Leg::Destination).await;
            assert!(matches!(&state, HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(_) }), "{case}: {state:?}");
            let again = scene.recover(Leg::Destination).await.unwrap_err();
            assert_eq!(again.code().name(), "simulation_reverted", "{case}: once");

            scene.with(|solana| solana.redeem(&scene.source, &SECRET)).unwrap();
            scene.settle();
            // The rent of the solver's own swap account is also returned.
            let rest = if from == "sol" { SWAP_RENT - FEE } else { 0 };
            assert_eq!(scene.has(SOLVER, from), before.1 + 1_500_000 + rest, "{case}");
            assert!(matches!(scene.read(Leg::Source).await, HtlcState::Redeemed { .. }), "{case}");
            // No swap is left open.
            let again = scene.with(|solana| solana.redeem(&scene.source, &SECRET)).unwrap_err();
            assert!(again.contains("no open swap"), "{case}: {again}");
            assert!(scene.with(|solana| solana.balance(&user, &sol)).is_ok());
        }
    }
}

#[tokio::test]
async fn both_sides_are_refunded_after_their_timelocks_and_not_before() {
    for (from, to) in [("sol", "usdc"), ("usdc", "sol")] {
        let mut scene = Scene::new("solana", "mainnet", from, to);
        let user = super::scene::address(USER);
        scene.source.timelock = 43_200;
        scene.with(|solana| solana.fund(&user, "solana:usdc", 2_000_000)).unwrap();
        let before = (scene.has(USER, from), scene.has(SOLVER, to));
        scene.pay(true).await.unwrap();
        scene.with(|solana| solana.lock(&scene.destination)).unwrap();
        scene.mine(18_000);
        let early = scene.with(|solana| solana.refund(&scene.destination)).unwrap_err();
        assert!(early.contains("the chain refuses"), "{early}");
        scene.mine(2);
        scene.with(|solana| solana.refund(&scene.destination)).unwrap();
        let events = scene.settle();
        assert_eq!(events.last().unwrap().change, Change::Refunded);
        let fees = if to == "sol" { 2 * FEE } else { 0 };
        assert_eq!(scene.has(SOLVER, to), before.1 - fees);

        let HtlcState::Locked(locked) = scene.read(Leg::Source).await else { panic!("locked") };
        scene.mine(43_200 - locked.elapsed);
        let early = scene.recover(Leg::Source).await.unwrap_err();
        assert_eq!(early.code().name(), "simulation_reverted", "in the last slot of the timelock");
        scene.mine(1);
        scene.recover(Leg::Source).await.unwrap();
        scene.settle();
        assert_eq!(scene.has(USER, from), before.0 - if from == "sol" { 2 * FEE } else { 0 });
        assert!(matches!(scene.read(Leg::Source).await, HtlcState::Refunded { transaction: Some(_) }));

        // The relayer redeems for an idle user.
        scene.with(|solana| solana.lock(&scene.source)).unwrap();
        scene.mine(43_202);
        let relayer = scene.has(RELAYER, "sol");
        scene.with(|solana| solana.refund(&scene.source)).unwrap();
        scene.mine(1);
        let returned = if from == "usdc" { SWAP_RENT } else { 0 };
        assert_eq!(scene.has(RELAYER, "sol"), relayer + returned - FEE);
    }
}

/// Tests the service's setting for clients that must read messages of version 1.
#[tokio::test]
async fn orders_with_messages_of_version_1_are_paid() {
    for (from, to, is_gasless) in [("sol", "usdc", false), ("usdc", "sol", false), ("usdc", "sol", true)] {
        let mut scene = Scene::new("solana", "mainnet", from, to);
        scene.is_v1 = true;
        scene.with(|solana| solana.fund(&super::scene::address(USER), "solana:usdc", 2_000_000)).unwrap();
        let payload = scene.with(|solana| solana.v1_payloads(&scene.source)).unwrap();
        for member in ["versioned_tx", "versioned_tx_gasless"] {
            let Some(text) = payload[member].as_str() else { continue };
            assert_eq!(STANDARD.decode(text).unwrap()[0], 0x81, "the mark of version 1");
        }
        scene.pay(is_gasless).await.unwrap();
        scene.settle();
        assert!(matches!(scene.read(Leg::Source).await, HtlcState::Locked(_)), "{from} {is_gasless}");
        assert_eq!(scene.has(USER, "sol") == 5 * SOL, is_gasless, "{from}");
    }
}

/// Anyone may redeem with such a message. A reader that does not support it would miss the secret.
#[tokio::test]
async fn a_redemption_with_a_message_of_version_1_shows_the_secret() {
    for (from, to) in [("sol", "usdc"), ("usdc", "sol")] {
        let scene = Scene::new("solana", "mainnet", from, to);
        scene.with(|solana| solana.lock(&scene.destination)).unwrap();
        scene.settle();
        let before = scene.has(USER, to);
        let limits = TransactionConfig::empty().with_compute_unit_limit(100_000).with_loaded_accounts_data_size_limit(1_000_000);
        let id = scene.recover_with(Leg::Destination, Some(limits)).await.unwrap();
        scene.settle();
        assert_eq!(scene.has(USER, to), before + 1_400_000 - if to == "sol" { FEE } else { 0 }, "{to}");
        let shown = scene.with(|solana| ask(solana, "getTransaction", json!([id, {"maxSupportedTransactionVersion": 1}])));
        assert_eq!(shown["version"], 1, "{to}");
        let expected = HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(id) };
        assert_eq!(scene.read(Leg::Destination).await, expected, "{to}");
    }
}

#[tokio::test]
async fn what_the_owner_cannot_pay_or_has_paid_is_not_signed() {
    for (from, to) in [("sol", "usdc"), ("usdc", "sol")] {
        let scene = Scene::with_lamports("solana", "mainnet", from, to, 900_000);
        let user = super::scene::address(USER);
        scene.with(|solana| solana.fund(&user, "solana:usdc", 2_000_000)).unwrap();
        assert_eq!(scene.pay(false).await.unwrap_err().code().name(), "insufficient_funds", "{from}");
        scene.with(|solana| solana.fund(&user, "solana:sol", SOL)).unwrap();
        scene.pay(false).await.unwrap();
        scene.settle();
        assert_eq!(scene.pay(false).await.unwrap_err().code().name(), "simulation_reverted", "{from}");
    }
}

#[tokio::test]
async fn only_the_transaction_of_the_order_is_initiated_without_gas() {
    let scene = Scene::new("solana", "mainnet", "usdc", "sol");
    let user = super::scene::address(USER);
    scene.with(|solana| solana.fund(&user, "solana:usdc", 2_000_000)).unwrap();
    let payload = scene.with(|solana| solana.payloads(&scene.source)).unwrap();
    let unsigned = payload["versioned_tx_gasless"].as_str().unwrap();
    let refused = |signature: &str| scene.with(|solana| solana.initiate(&scene.source, signature)).unwrap_err();
    assert_eq!(refused(unsigned), "the owner has not signed the transaction");
    assert_eq!(refused(payload["versioned_tx"].as_str().unwrap()), "the transaction is not that of the order");
    assert_eq!(refused("AAAA"), "the bytes are not a transaction");
    assert_eq!(refused("?"), "the signature is not a transaction in base64");
    let native = Scene::new("solana", "mainnet", "sol", "usdc");
    assert!(native.with(|solana| solana.payloads(&native.source)).unwrap()["versioned_tx_gasless"].is_null());
    // The amount differs from the order's.
    let mut other = scene.source.clone();
    other.amount -= 1;
    let other = scene.with(|solana| solana.payloads(&other)).unwrap();
    assert_eq!(refused(other["versioned_tx_gasless"].as_str().unwrap()), "the transaction is not that of the order");
    // The blockhash has expired by the time the signature arrives.
    let order = scene.verified(true);
    scene.mine(150);
    let prepared = scene.nodes.prepare(&order, "solana", "", countersign_node::Speed::Normal, &countersign::Policy::default()).await;
    assert_eq!(prepared.unwrap_err().code().name(), "simulation_reverted");
}

#[tokio::test]
async fn the_vault_is_paid_for_once_and_new_accounts_by_who_redeems() {
    let scene = Scene::new("solana", "mainnet", "sol", "usdc");
    let solver = scene.has(SOLVER, "sol");
    scene.with(|solana| solana.lock(&scene.destination)).unwrap();
    scene.mine(1);
    assert_eq!(scene.has(SOLVER, "sol"), solver - SWAP_RENT - TOKEN_RENT - FEE);
    let relayer = scene.has(RELAYER, "sol");
    // The relayer redeems for a user without a token account.
    scene.with(|solana| solana.redeem(&scene.destination, &SECRET)).unwrap();
    scene.mine(1);
    assert_eq!(scene.has(RELAYER, "sol"), relayer - TOKEN_RENT - FEE);
    assert_eq!((scene.has(SOLVER, "sol"), scene.has(USER, "usdc")), (solver - TOKEN_RENT - FEE, 1_400_000));
    let options = json!({"encoding": "jsonParsed", "commitment": "processed"});
    let account = scene.with(|solana| ask(solana, "getAccountInfo", json!([super::scene::token_account(USER), options])));
    assert_eq!(account["value"]["data"]["parsed"]["info"]["tokenAmount"]["uiAmountString"], "1.4");
}

#[tokio::test]
async fn many_swaps_fit_one_block_and_do_not_disturb_a_preflight() {
    let scene = Scene::new("solana", "mainnet", "usdc", "sol");
    let user = super::scene::address(USER);
    scene.with(|solana| solana.fund(&user, "solana:usdc", 2_000_000)).unwrap();
    for round in 0..4_u8 {
        for number in 0..25_u8 {
            let mut terms = scene.destination.clone();
            (terms.asset, terms.secret_hash) = ("solana:usdc".to_owned(), [round * 25 + number; 32]);
            scene.with(|solana| solana.lock(&terms)).unwrap();
        }
        if round < 3 {
            assert_eq!(scene.mine(1).len(), 25);
        }
    }
    // The vault has changed in each of the newest blocks, and changes again in the next one.
    scene.pay(false).await.unwrap();
    assert_eq!(scene.with(|solana| solana.pending()), 26);
    let events = scene.settle();
    assert_eq!(events.len(), 26);
    assert!(events.iter().all(|event| matches!(event.change, Change::Initiated { .. })));
    assert!(matches!(scene.read(Leg::Source).await, HtlcState::Locked(_)));
}

#[test]
fn terms_that_no_transaction_can_have_are_refused() {
    let scene = Scene::new("solana", "mainnet", "sol", "usdc");
    let order = scene.with(|solana| solana.leg(&scene.source)).unwrap();
    assert_eq!((order.initiator, order.redeemer), (super::scene::address(USER), super::scene::address(SOLVER)));
    let mut terms = scene.source.clone();
    terms.owner = "6WKgWgTKd2W6Sy4et2Fb6RSoBpCBbgDFEHNjtXY3oxDK".to_owned();
    assert!(scene.with(|solana| solana.lock(&terms)).unwrap_err().contains("no key"));
    terms.owner = "0x1234".to_owned();
    assert!(scene.with(|solana| solana.payloads(&terms)).unwrap_err().contains("not a valid Solana address"));
    terms = scene.source.clone();
    terms.amount = u128::MAX;
    assert!(scene.with(|solana| solana.leg(&terms)).unwrap_err().contains("64 bits"));
}

#[test]
fn swaps_without_the_solver_are_no_events() {
    let solver = Keypair::new_from_array(accounts::key(SOLVER)).pubkey();
    for (redeemer, events) in [(solver, 1), (Address::from([9; 32]), 0)] {
        let scene = Scene::new("solana", "mainnet", "sol", "usdc");
        let payload = scene.with(|solana| solana.payloads(&scene.source)).unwrap();
        let bytes = STANDARD.decode(payload["versioned_tx"].as_str().unwrap()).unwrap();
        let mut transaction: VersionedTransaction = wincode::deserialize_exact(&bytes).unwrap();
        let VersionedMessage::Legacy(message) = &mut transaction.message else { panic!("a legacy message") };
        message.instructions[0].data[24..56].copy_from_slice(redeemer.as_ref());
        let signed = VersionedTransaction::try_new(transaction.message, &[Keypair::new_from_array(accounts::key(USER))]).unwrap();
        let signed = STANDARD.encode(wincode::serialize(&signed).unwrap());
        let id = scene.with(|solana| ask(solana, "sendTransaction", json!([signed, {"encoding": "base64"}])));
        assert_eq!(scene.settle().len(), events, "{redeemer}");
        assert!(scene.with(|solana| ask(solana, "getTransaction", json!([id])))["meta"]["err"].is_null());
        // The refund is not reported as an event either.
        scene.mine(216_000);
        scene.with(|solana| solana.refund(&scene.source)).unwrap();
        assert_eq!(scene.settle().len(), events, "{redeemer}");
    }
}
