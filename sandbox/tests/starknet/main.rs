//! Tests that countersign pays and reads on the model of Starknet, and that the reference SDK computes the same
//! hashes.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "a test is no library")]

mod front;
mod stage;

use std::sync::Arc;

use countersign::starknet::recover::{self, Leg as Side};
use countersign::starknet::{ExternalSignature, Felt};
use countersign::{
    Registry, SecretHash,
    evidence::{Hold, HtlcState},
};
use countersign_node::starknet::TransactionStatus;
use countersign_sandbox::accounts::{self, RELAYER, SOLVER};
use countersign_sandbox::chains::starknet::Starknet;
use countersign_sandbox::chains::{Change, Engine, Terms};
use countersign_sandbox::clock::Clock;
use serde_json::{Value, json};
use starknet_core::types::TypedData;
use starknet_core::types::contract::SierraClass;
use starknet_core::utils::{get_contract_address, get_selector_from_name, get_storage_var_address};
use starknet_crypto::{get_public_key, rfc6979_generate_k, sign};

use stage::{CHAIN, SECRET, STRK, Stage, felt, hex, key, post, signed};

#[tokio::test]
async fn a_swap_from_payment_to_redemption() {
    let stage = Stage::new();
    let record = stage.record(&SECRET);
    let (paid, payout) = (&record.terms.source, &record.terms.destination);
    assert!(paid.swap_id_recomputed && payout.swap_id_recomputed, "the ids follow from the terms");
    let warnings: Vec<_> = record.warnings.list().iter().map(|warning| warning.code().name()).collect();
    assert!(warnings.is_empty(), "{warnings:?}: the approval is for exactly the amount");
    assert_eq!(stage.state(paid).await, HtlcState::Absent);
    assert_eq!(stage.judge(&record).await, Err(Hold::NotFunded));

    // The user approves and pays in one transaction, which is pending.
    let order = stage.prepare(&SECRET).await.unwrap();
    assert_eq!(order.payloads().invoke.as_ref().unwrap().invoke.calls.len(), 2);
    let sent = signed(order);
    stage.send(&sent).await.unwrap();
    stage.send(&sent).await.unwrap();
    assert_eq!(stage.status(&sent.id).await, Some(TransactionStatus::Pending));
    assert_eq!((stage.engine(|engine| engine.pending()), stage.state(paid).await), (1, HtlcState::Absent));
    stage.engine(|engine| engine.mine(1));
    assert_eq!(stage.status(&sent.id).await, Some(TransactionStatus::AcceptedOnL2 { success: true }));
    let HtlcState::Locked(locked) = stage.state(paid).await else { panic!("not locked") };
    assert_eq!((locked.amount, locked.timelock, locked.covered), (paid.amount, 2_880, true));
    let height = stage.engine(|engine| engine.height());
    let events = stage.engine(|engine| engine.events());
    assert_eq!((events.len(), &events[0].swap_id, &events[0].change), (1, &paid.swap_id, &Change::Initiated { amount: 1_250_000 }));
    assert_eq!((&events[0].transaction, events[0].height), (&sent.id, height));

    // The solver pays. The payment is final by the strictest rule exactly after the number of blocks that the engine
    // states.
    let hash = SecretHash::of(&SECRET).0;
    let terms = stage.terms(false, hash);
    let lock = stage.engine(|engine| engine.lock(&terms)).unwrap();
    assert!(stage.engine(|engine| engine.lock(&terms)).unwrap_err().contains("HTLC: duplicate order"));
    stage.engine(|engine| engine.mine(1));
    let depth = stage.engine(|engine| engine.depth());
    stage.engine(|engine| engine.mine(depth - 1));
    assert!(matches!(stage.judge(&record).await, Err(Hold::NotFinal { .. })));
    stage.engine(|engine| engine.mine(1));
    let funded = stage.judge(&record).await.unwrap();
    assert_eq!((funded.left().units, funded.seen().is_finalized), (1_440 - depth, true));
    assert_eq!(stage.status(&lock).await, Some(TransactionStatus::AcceptedOnL1 { success: true }));

    // The user redeems, which reveals the secret to the solver.
    let before = stage.engine(|engine| engine.balance(&stage.user, "starknet:strk"));
    let sent = stage.recover(recover::redeem(&record.record, Side::Destination, &SECRET, stage.registry).unwrap()).await.unwrap();
    stage.engine(|engine| engine.mine(1));
    assert!(matches!(stage.state(payout).await, HtlcState::Redeemed { secret: Some(secret), .. } if secret == SECRET));
    let receipt = stage.rpc("starknet_getTransactionReceipt", &json!({"transaction_hash": sent.id}));
    let fee = u128::from_str_radix(receipt["actual_fee"]["amount"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    assert_eq!(stage.engine(|engine| engine.balance(&stage.user, "starknet:strk")).unwrap() + fee, before.unwrap() + terms.amount);
    let events = stage.engine(|engine| engine.events());
    assert_eq!((events.len(), &events[1].change), (2, &Change::Redeemed { secret: SECRET }));

    // The solver redeems the source.
    let source = stage.terms(true, hash);
    assert!(stage.engine(|engine| engine.redeem(&source, &[0; 32])).unwrap_err().contains("HTLC: incorrect secret"));
    let id = stage.engine(|engine| engine.redeem(&source, &SECRET)).unwrap();
    stage.engine(|engine| engine.mine(1));
    assert_eq!(stage.status(&id).await, Some(TransactionStatus::AcceptedOnL2 { success: true }));
    assert!(matches!(stage.state(paid).await, HtlcState::Redeemed { .. }));
    assert_eq!(stage.engine(|engine| engine.balance(&stage.user, "starknet:wbtc")), Ok(500_000_000 - 1_250_000));
}

#[tokio::test]
async fn what_the_user_signs_is_sent_by_the_relayer() {
    let stage = Stage::new();
    let paid = stage.record(&SECRET).terms.source;
    let terms = stage.terms(true, SecretHash::of(&SECRET).0);
    front::approve(&stage, "starknet:wbtc", terms.amount);
    let payloads = stage.engine(|engine| engine.payloads(&terms)).unwrap();
    assert!(payloads["approval_transaction"].is_null() && payloads["typed_data"].is_object());
    let mut order = stage.prepare(&SECRET).await.unwrap();
    assert!(order.payloads().invoke.is_none());
    let hash = order.payloads().message.as_ref().unwrap().hashes.message_hash;
    // The hash by the reference SDK's encoder of typed data.
    let typed: TypedData = serde_json::from_value(payloads["typed_data"].clone()).unwrap();
    assert_eq!(typed.message_hash(felt(&stage.user)).unwrap(), hash);
    order.sign(&key()).unwrap();
    let signature = order.finish().unwrap().gasless().unwrap().signature;
    assert!(stage.engine(|engine| engine.initiate(&terms, "1,2")).unwrap_err().contains("HTLC: invalid initiator signature"));
    assert!(stage.engine(|engine| engine.initiate(&terms, "what")).is_err());
    let before = stage.engine(|engine| engine.balance(&stage.user, "starknet:strk"));
    let id = stage.engine(|engine| engine.initiate(&terms, &signature)).unwrap();
    stage.engine(|engine| engine.mine(1));
    assert_eq!(stage.status(&id).await, Some(TransactionStatus::AcceptedOnL2 { success: true }));
    assert!(matches!(stage.state(&paid).await, HtlcState::Locked(_)));
    assert_eq!(stage.engine(|engine| engine.balance(&stage.user, "starknet:strk")), before, "the relayer pays");
    // Accounts can also check signatures themselves.
    let felts: Vec<_> = signature.split(',').map(|felt| hex(Felt::from_dec_str(felt).unwrap())).collect();
    let valid = |first: String| {
        let selector = hex(get_selector_from_name("is_valid_signature").unwrap());
        let calldata = json!([first, "0x2", felts[0], felts[1]]);
        let request = json!({"contract_address": stage.user, "entry_point_selector": selector, "calldata": calldata});
        stage.rpc("starknet_call", &json!({"request": request, "block_id": "latest"}))
    };
    assert_eq!((valid(hex(hash)), valid("0x5".to_owned())), (json!(["0x56414c4944"]), json!(["0x0"])));
}

#[tokio::test]
async fn a_refund_waits_for_the_timelock() {
    let stage = Stage::new();
    let hash = SecretHash::of(&SECRET).0;
    let record = stage.record(&SECRET);
    stage.engine(|engine| engine.lock(&stage.terms(true, hash))).unwrap();
    stage.engine(|engine| engine.lock(&stage.terms(false, hash))).unwrap();
    stage.engine(|engine| engine.mine(1));
    let refund = || recover::refund(&record.record, Side::Source, stage.registry).unwrap();
    // The refund is in the block after these.
    stage.engine(|engine| engine.mine(2_879));
    assert!(stage.recover(refund()).await.unwrap_err().to_string().contains("HTLC: order not expired"));
    assert!(stage.engine(|engine| engine.refund(&stage.terms(true, hash))).unwrap_err().contains("HTLC: order not expired"));
    let id = stage.engine(|engine| engine.refund(&stage.terms(false, hash))).unwrap();
    stage.engine(|engine| engine.mine(1));
    assert_eq!(stage.status(&id).await, Some(TransactionStatus::AcceptedOnL2 { success: true }));
    assert!(matches!(stage.state(&record.terms.destination).await, HtlcState::Refunded { .. }));
    stage.recover(refund()).await.unwrap();
    stage.engine(|engine| engine.mine(1));
    assert!(matches!(stage.state(&record.terms.source).await, HtlcState::Refunded { .. }));
    assert_eq!(stage.engine(|engine| engine.balance(&stage.user, "starknet:wbtc")), Ok(500_000_000));
    let changes: Vec<_> = stage.engine(|engine| engine.events()).into_iter().map(|event| event.change).collect();
    assert_eq!(changes.len(), 4);
    assert_eq!(&changes[2..], [Change::Refunded, Change::Refunded]);
}

#[tokio::test]
async fn the_redeemer_allows_a_refund_with_a_signature() {
    let stage = Stage::new();
    let record = stage.record(&SECRET);
    stage.engine(|engine| engine.lock(&stage.terms(true, SecretHash::of(&SECRET).0))).unwrap();
    stage.engine(|engine| engine.mine(1));
    let signed_by = |role: &str| {
        let refund = recover::instant_refund(&record.record, Side::Source, stage.registry).unwrap();
        let (key, hash) = (Felt::from_bytes_be(&accounts::key(role)), refund.hashes().message_hash);
        let signature = sign(&key, &hash, &rfc6979_generate_k(&hash, &key, None)).unwrap();
        refund.with_signature(&ExternalSignature::from_felts(vec![signature.r, signature.s]).unwrap())
    };
    let refused = stage.recover(signed_by(RELAYER)).await.unwrap_err();
    assert!(refused.to_string().contains("HTLC: invalid redeemer signature"), "{refused}");
    stage.recover(signed_by(SOLVER)).await.unwrap();
    stage.engine(|engine| engine.mine(1));
    assert!(matches!(stage.state(&record.terms.source).await, HtlcState::Refunded { .. }));
}

#[tokio::test]
async fn numbers_are_those_of_the_reference_sdk() {
    let stage = Stage::new();
    // Checks the account of a key.
    let public = get_public_key(&Felt::from_bytes_be(&accounts::key(SOLVER)));
    let class = stage.rpc("starknet_getClassHashAt", &json!({"block_id": "latest", "contract_address": stage.user}));
    let solver = stage.engine(|engine| engine.address_of(&accounts::key(SOLVER)));
    assert_eq!(get_contract_address(public, felt(class.as_str().unwrap()), &[public], Felt::ZERO), felt(&solver));
    // Checks the class of the HTLC, and the generation that its interface indicates.
    let asset = stage.registry.asset("starknet:wbtc").unwrap();
    let htlc = hex(Felt::from_bytes_be_slice(asset.htlc.as_ref().unwrap().bytes()));
    let described = stage.nodes.starknet(CHAIN).unwrap().describe_contract(felt(&htlc)).await.unwrap();
    let mut shown = stage.rpc("starknet_getClassAt", &json!({"block_id": "latest", "contract_address": htlc}));
    shown["abi"] = serde_json::from_str(shown["abi"].as_str().unwrap()).unwrap();
    shown["sierra_program_debug_info"] = json!({"type_names": [], "libfunc_names": [], "user_func_names": []});
    let shown: SierraClass = serde_json::from_value(shown).unwrap();
    assert_eq!(described.class_hash.map(hex), Some(hex(shown.class_hash().unwrap())));
    assert_eq!(described.generation.map(|generation| generation.name), Some("2025_11"));
    assert_eq!(described.token, asset.token.as_ref().map(|token| felt(&token.text)));
    // Reads storage at two blocks.
    let terms = stage.terms(false, SecretHash::of(&SECRET).0);
    let id = felt(&format!("0x{}", stage.engine(|engine| engine.leg(&terms)).unwrap().swap_id));
    let asset = stage.registry.asset("starknet:strk").unwrap();
    let htlc = hex(Felt::from_bytes_be_slice(asset.htlc.as_ref().unwrap().bytes()));
    stage.engine(|engine| engine.lock(&terms)).unwrap();
    let before = stage.engine(|engine| engine.height());
    stage.engine(|engine| engine.mine(3));
    let base = get_storage_var_address("orders", &[id]).unwrap();
    let slot = |key: Felt, block: u64| {
        let params = json!({"contract_address": htlc, "key": hex(key), "block_id": {"block_number": block}});
        stage.rpc("starknet_getStorageAt", &params)
    };
    assert_eq!((slot(base + Felt::ONE, before), slot(base + Felt::ONE, before + 1)), (json!("0x0"), json!(hex(felt(&solver)))));
    assert_eq!(slot(base + Felt::THREE, before + 2), json!(format!("{:#x}", before + 1)));
    assert_eq!(slot(get_storage_var_address("token", &[]).unwrap(), before), json!(STRK));
    let held = get_storage_var_address("ERC20_balances", &[felt(&htlc)]).unwrap();
    let params = json!({"contract_address": STRK, "key": hex(held), "block_id": "latest"});
    assert_eq!(stage.rpc("starknet_getStorageAt", &params), json!(format!("{:#x}", terms.amount)));
    // There are no other generations and no other contracts.
    let nothing = stage.nodes.starknet(CHAIN).unwrap().describe_contract(Felt::from(0x1234)).await.unwrap();
    assert_eq!((nothing.class_hash, nothing.token), (None, None));
}

#[test]
fn many_blocks_are_quick_and_each_is_found() {
    let stage = Stage::new();
    let clock = stage.nodes.transport().clock.clone();
    let first = stage.engine(|engine| engine.height());
    clock.advance(800_000_000);
    stage.engine(|engine| engine.mine(200_000));
    assert_eq!(stage.engine(|engine| engine.height()), first + 200_000);
    let block = |id: Value| stage.rpc("starknet_getBlockWithTxHashes", &json!({"block_id": id}));
    let mut time = 0;
    for number in [first - 30, first, first + 1, first + 100_000, first + 199_994, first + 199_995, first + 200_000] {
        let shown = block(json!({"block_number": number}));
        assert_eq!(shown["status"], if number <= first + 199_995 { "ACCEPTED_ON_L1" } else { "ACCEPTED_ON_L2" });
        assert_eq!(block(json!({"block_hash": shown["block_hash"]})), shown);
        assert_eq!(block(json!({"block_number": number - 1}))["block_hash"], shown["parent_hash"]);
        assert!(shown["timestamp"].as_u64().unwrap() >= time);
        time = shown["timestamp"].as_u64().unwrap();
    }
    assert!(clock.seconds() - time <= 1);
    assert_eq!(block(json!("l1_accepted"))["block_number"], first + 199_995);
    for missing in [json!({"block_number": first + 200_001}), json!({"block_hash": "0x5"}), json!({"block_number": 7})] {
        assert_eq!(stage.raw("starknet_getBlockWithTxHashes", &json!({"block_id": missing}))["error"]["code"], 24);
    }
}

#[tokio::test]
async fn a_reorganization_takes_a_payment_away() {
    let stage = Stage::new();
    let terms = stage.terms(false, SecretHash::of(&SECRET).0);
    let payout = stage.record(&SECRET).terms.destination;
    let id = stage.engine(|engine| engine.lock(&terms)).unwrap();
    stage.engine(|engine| engine.mine(2));
    assert!(matches!(stage.state(&payout).await, HtlcState::Locked(_)));
    let hash = stage.rpc("starknet_blockHashAndNumber", &json!([]))["block_hash"].clone();
    let height = stage.engine(|engine| engine.height());
    stage.engine(|engine| engine.reorganize(2)).unwrap();
    stage.engine(|engine| engine.mine(2));
    assert_eq!((stage.engine(|engine| engine.height()), stage.state(&payout).await), (height, HtlcState::Absent));
    assert_eq!((stage.status(&id).await, stage.engine(|engine| engine.events()).len()), (None, 0));
    assert_ne!(stage.rpc("starknet_blockHashAndNumber", &json!([]))["block_hash"], hash);
    assert!(stage.engine(|engine| engine.reorganize(6)).unwrap_err().contains("L1"));
    // The solver's nonce can be used again.
    stage.engine(|engine| engine.lock(&terms)).unwrap();
    stage.engine(|engine| engine.mine(1));
    assert!(matches!(stage.state(&payout).await, HtlcState::Locked(_)));
}

/// Tests that another network has another name, chain id and swap ids.
#[test]
fn a_local_network_has_other_names() {
    let mut local = Starknet::new("starknet_devnet", "SN_DEVNET", Arc::new(Clock::default()));
    let listing = local.listing();
    assert_eq!((&listing.chain["id"], &listing.assets[0]["id"]), (&json!("starknet:SN_DEVNET"), &json!("starknet_devnet:strk")));
    let registry = json!({"chains": [listing.chain], "assets": listing.assets, "solvers": []}).to_string().parse::<Registry>();
    assert!(registry.is_ok(), "{registry:?}");
    let stage = Stage::new();
    let terms = stage.terms(true, [1; 32]);
    let other = Terms { asset: "starknet_devnet:wbtc".to_owned(), ..terms.clone() };
    assert_ne!(local.leg(&other).unwrap().swap_id, stage.engine(|engine| engine.leg(&terms)).unwrap().swap_id);
    let reply = post(&mut local, br#"{"jsonrpc":"2.0","id":1,"method":"starknet_chainId"}"#);
    assert_eq!(reply.body, br#"{"jsonrpc":"2.0","id":1,"result":"0x534e5f4445564e4554"}"#);
}

#[test]
fn terms_that_cannot_be_are_refused() {
    let stage = Stage::new();
    let good = stage.terms(true, [1; 32]);
    let solver = stage.engine(|engine| engine.address_of(&accounts::key(SOLVER)));
    let bad: [fn(&mut Terms, &str); 5] = [
        |terms, _| terms.asset = "starknet:btc".to_owned(),
        |terms, _| terms.owner = "0x".to_owned(),
        |terms, solver| terms.owner = solver.to_owned(),
        |terms, _| terms.amount = 0,
        |terms, _| terms.timelock = 0,
    ];
    assert!(stage.engine(|engine| engine.leg(&good)).is_ok());
    for change in bad {
        let mut terms = good.clone();
        change(&mut terms, &solver);
        assert!(stage.engine(|engine| engine.leg(&terms)).is_err() && stage.engine(|engine| engine.payloads(&terms)).is_err());
    }
    // Someone else pays. The call names the owner, and the owner signs nothing.
    let delegate = Some(stage.engine(|engine| engine.address_of(&accounts::key(RELAYER))));
    let payloads = stage.engine(|engine| engine.payloads(&Terms { delegate, ..good })).unwrap();
    assert!(payloads["typed_data"].is_null() && payloads["approval_transaction"].is_object());
    assert_eq!(payloads["initiate_transaction"]["calldata"][0], json!(hex(felt(&stage.user))));
}
