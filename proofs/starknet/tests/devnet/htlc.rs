//! Tests orders on the chain: funding, judgement, redemption, refund, and a reorganization.

use countersign::recover::Recovery;
use countersign::starknet::read::slots;
use countersign::starknet::recover::{self, Leg};
use countersign::starknet::{ExternalSignature, Felt, StarknetGeneration};
use countersign::{
    Code, Policy, U256,
    evidence::{Hold, HtlcState},
};
use countersign_node::{NodeError, Speed};
use serde_json::{Value, json};
use starknet_core::types::contract::SierraClass;
use starknet_core::utils::get_storage_var_address;

use crate::stage::{ASSETS, CHAIN, SECRET, STRK, Stage, Swap, connect, felt, hex, htlc_of, selector, signed};
use crate::wallet::{fee, native, prepare, refused};

fn generation(name: &str) -> &'static StarknetGeneration {
    StarknetGeneration::ALL.iter().copied().find(|generation| generation.name == name).unwrap()
}

#[tokio::test]
async fn contracts_are_recognized_by_their_classes() {
    let Some(stage) = Stage::new().await else { return };
    for (asset, token, name, class) in ASSETS {
        let described = stage.chain().describe_contract(htlc_of(asset)).await.unwrap();
        let mut class: Value = serde_json::from_str(class).unwrap();
        class["sierra_program_debug_info"] = json!({"type_names": [], "libfunc_names": [], "user_func_names": []});
        let class: SierraClass = serde_json::from_value(class).unwrap();
        assert_eq!(described.class_hash, Some(class.class_hash().unwrap()), "{asset}");
        assert_eq!((described.generation, described.token), (Some(generation(name)), Some(felt(token))), "{asset}");
        // `registry pin` pins this description.
        let description = stage.nodes.describe(stage.registry.asset(asset).unwrap()).await.unwrap();
        let pinned = description.generation().map(|generation| generation.name());
        assert_eq!(pinned, Some(name).filter(|name| *name != "2025_02"), "{asset}");
    }
    // A token, an account, and an address without a contract.
    let token = stage.chain().describe_contract(felt(STRK)).await.unwrap();
    assert!(token.class_hash.is_some() && token.generation.is_none() && token.token.is_none(), "{token:?}");
    let account = stage.chain().describe_contract(stage.user.address).await.unwrap();
    assert!(account.class_hash.is_some() && account.generation.is_none() && account.token.is_none(), "{account:?}");
    let nothing = stage.chain().describe_contract(Felt::from(0x1234)).await.unwrap();
    assert_eq!((nothing.class_hash, nothing.generation, nothing.token), (None, None, None));
}

/// Signs a recovery of the user and broadcasts it. Returns its id.
async fn recover_by_user(stage: &Stage, recovery: recover::Recovery) -> Result<String, NodeError> {
    let recovery = Recovery::Starknet(recovery);
    let prepared = stage.nodes.prepare_recovery(&recovery, CHAIN, &stage.user.text, Speed::Normal, &Policy::default()).await?;
    let transaction = signed(native(prepared), &stage.user);
    stage.broadcast(&transaction).await;
    Ok(transaction.id)
}

fn is_same(shown: Option<&String>, id: &str) -> bool {
    shown.is_some_and(|shown| felt(shown) == felt(id))
}

#[tokio::test]
async fn a_swap_from_funding_to_redemption() {
    let Some(stage) = Stage::new().await else { return };
    for (number, (destination, ..)) in (1..).zip(ASSETS) {
        let source = if destination == "starknet_sepolia:strk" { "starknet_sepolia:eth" } else { "starknet_sepolia:strk" };
        let mut secret = SECRET;
        secret[31] = number;
        let swap = Swap { source, destination, secret, ..Swap::default() };
        let record = stage.order(&swap).record;
        let (paid, payout) = (&record.terms.source, &record.terms.destination);
        assert_eq!(payout.swap_id_recomputed, destination != "starknet_sepolia:usdt");
        assert_eq!(stage.read(paid).await.0, HtlcState::Absent);
        assert_eq!(stage.judge(&record).await, Err(Hold::NotFunded), "{destination}");

        // The user funds the source.
        let unsigned = prepare(&stage, stage.order(&swap)).await.unwrap();
        let receipt = stage.broadcast(&signed(unsigned, &stage.user)).await;
        let (state, seen) = stage.read(paid).await;
        let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
        assert_eq!((&locked.initiator, &locked.redeemer, locked.amount), (&paid.initiator, &paid.redeemer, paid.amount));
        assert_eq!((locked.timelock, locked.elapsed, locked.covered), (paid.timelock, 0, true));
        assert_eq!((json!(seen.height), json!(seen.hash)), (receipt["block_number"].clone(), receipt["block_hash"].clone()));
        assert_eq!((seen.depth, seen.is_safe, seen.is_finalized), (1, true, false));

        // The solver funds the destination, which becomes evidence.
        let receipt = stage.pay(payout).await;
        stage.mine(2).await;
        let (state, seen) = stage.read(payout).await;
        let HtlcState::Locked(locked) = state else { panic!("{destination}: {state:?}") };
        assert_eq!((locked.elapsed, seen.depth, seen.is_finalized), (2, 3, false));
        let shown = (!payout.swap_id_recomputed).then_some(payout.secret_hash);
        assert_eq!(locked.secret_hash, shown, "{destination}");
        let early = stage.judge(&record).await;
        assert!(matches!(&early, Err(Hold::NotFinal { .. })), "{destination}: {early:?}");
        stage.rpc("devnet_acceptOnL1", json!({"starting_block_id": {"block_number": receipt["block_number"]}})).await;
        let funded = stage.judge(&record).await.unwrap();
        assert_eq!((funded.left().units, funded.seen().is_finalized), (payout.timelock - 2, true), "{destination}");

        // The user redeems. Only the transaction itself contains the secret.
        let before = stage.chain().balance(stage.user.address, felt(payout.token.as_ref().unwrap())).await.unwrap();
        let redemption = recover::redeem(&record.record, Leg::Destination, &secret, stage.registry).unwrap();
        stage.nodes.transport().seen.lock().unwrap().clear();
        let id = recover_by_user(&stage, redemption).await.unwrap();
        let word = format!("{:#x}", Felt::from_bytes_be_slice(&secret[..4]));
        let seen: Vec<_> = stage.nodes.transport().seen.lock().unwrap().clone();
        let shown: Vec<_> = seen.iter().filter(|text| text.contains(&word)).collect();
        assert!(shown.len() == 1 && shown[0].contains("starknet_addInvokeTransaction"), "{shown:?}");
        let receipt = stage.rpc("starknet_getTransactionReceipt", json!({"transaction_hash": id})).await;
        // Nodes must not estimate a redemption. Its fixed bounds leave room for costlier tokens and accounts.
        let used = |resource: &str| receipt["execution_resources"][resource].as_u64().unwrap();
        assert!(used("l1_gas") * 4 <= 5_000 && used("l1_data_gas") * 4 <= 5_000 && used("l2_gas") * 4 <= 40_000_000, "{receipt}");
        let after = stage.chain().balance(stage.user.address, felt(payout.token.as_ref().unwrap())).await.unwrap();
        let fee = if felt(payout.token.as_ref().unwrap()) == felt(STRK) { fee(&receipt) } else { U256::ZERO };
        assert_eq!(after + fee, before + payout.amount);
        let (state, seen) = stage.read(payout).await;
        let HtlcState::Redeemed { secret: Some(read), transaction } = &state else { panic!("{destination}: {state:?}") };
        assert!(*read == secret && is_same(transaction.as_ref(), &id), "{state:?}");
        assert_eq!((seen.depth, seen.is_finalized), (1, false));
        assert_eq!(stage.judge(&record).await, Err(Hold::Redeemed));

        // The solver redeems the source with the same secret.
        let words: Vec<_> = secret.chunks(4).map(Felt::from_bytes_be_slice).collect();
        let arguments = [vec![felt(&format!("0x{}", paid.swap_id)), Felt::from(8)], words].concat();
        stage.execute(&stage.solver, &[(htlc_of(source), "redeem", arguments)]).await;
        assert!(matches!(stage.read(paid).await.0, HtlcState::Redeemed { secret: Some(read), .. } if read == secret));
    }
}

#[tokio::test]
async fn a_refund_waits_for_the_timelock() {
    let Some(stage) = Stage::new().await else { return };
    for destination in ["starknet_sepolia:eth", "starknet_sepolia:usdc", "starknet_sepolia:usdt"] {
        let order = stage.order(&Swap { destination, ..Swap::default() });
        let (record, payout) = (&order.record, &order.record.terms.destination);
        stage.pay(payout).await;
        let refund = || recover::refund(&record.record, Leg::Destination, stage.registry).unwrap();
        // One block too early: the contract compares with the block of the transaction.
        stage.mine(payout.timelock - 1).await;
        let early = recover_by_user(&stage, refund()).await.unwrap_err();
        assert!(early.to_string().contains("HTLC: order not expired"), "{early}");
        assert_eq!(refused(early).0, Code::SimulationReverted);
        let HtlcState::Locked(locked) = stage.read(payout).await.0 else { panic!("not locked") };
        assert!(!locked.has_run_out(), "{locked:?}");
        stage.mine(1).await;
        let HtlcState::Locked(locked) = stage.read(payout).await.0 else { panic!("not locked") };
        assert_eq!(locked.left(), 0);
        stage.rpc("devnet_acceptOnL1", json!({"starting_block_id": "latest"})).await;
        assert!(matches!(stage.judge(record).await, Err(Hold::NoTime { left: 0, .. })));
        let id = recover_by_user(&stage, refund()).await.unwrap();
        let (state, seen) = stage.read(payout).await;
        assert!(matches!(&state, HtlcState::Refunded { transaction } if is_same(transaction.as_ref(), &id)), "{destination}: {state:?}");
        assert_eq!(seen.depth, 1);
        assert_eq!(stage.judge(record).await, Err(Hold::Refunded));
    }
}

#[tokio::test]
async fn the_redeemer_allows_a_refund_with_a_signature() {
    let Some(stage) = Stage::new().await else { return };
    for destination in ["starknet_sepolia:eth", "starknet_sepolia:usdc"] {
        let order = stage.order(&Swap { destination, ..Swap::default() });
        let (record, payout) = (&order.record, &order.record.terms.destination);
        stage.pay(payout).await;
        let instant = || recover::instant_refund(&record.record, Leg::Destination, stage.registry).unwrap();
        let hash = instant().hashes().message_hash;
        let sign = |account: &crate::stage::Account| ExternalSignature::from_felts(account.sign(&hash)).unwrap();
        let recovery = Recovery::Starknet(instant().with_signature(&sign(&stage.stranger)));
        let refuse =
            stage.nodes.prepare_recovery(&recovery, CHAIN, &stage.stranger.text, Speed::Normal, &Policy::default()).await.unwrap_err();
        assert!(refuse.to_string().contains("HTLC: invalid redeemer signature"), "{refuse}");
        let recovery = Recovery::Starknet(instant().with_signature(&sign(&stage.user)));
        let prepared =
            stage.nodes.prepare_recovery(&recovery, CHAIN, &stage.stranger.text, Speed::Normal, &Policy::default()).await.unwrap();
        stage.broadcast(&signed(native(prepared), &stage.stranger)).await;
        assert!(matches!(stage.read(payout).await.0, HtlcState::Refunded { .. }), "{destination}");
    }
}

#[tokio::test]
async fn another_order_than_the_one_on_chain_is_no_evidence() {
    let Some(stage) = Stage::new().await else { return };
    let record = stage.order(&Swap::default()).record;
    stage.pay(&record.terms.destination).await;
    stage.rpc("devnet_acceptOnL1", json!({"starting_block_id": "latest"})).await;
    assert!(stage.judge(&record).await.is_ok());
    let judge = async |change: fn(&mut countersign::evidence::HtlcTerms)| {
        let mut other = record.clone();
        change(&mut other.terms.destination);
        stage.judge(&other).await
    };
    let differing: [fn(&mut countersign::evidence::HtlcTerms); 4] = [
        |terms| terms.redeemer = terms.initiator.clone(),
        |terms| terms.initiator = terms.redeemer.clone(),
        |terms| terms.amount += U256::ONE,
        |terms| terms.timelock += 1,
    ];
    for change in differing {
        assert!(matches!(judge(change).await, Err(Hold::Differs(_))));
    }
    assert_eq!(judge(|terms| terms.swap_id = "11".repeat(31)).await, Err(Hold::NotFunded));
    // A token other than the contract's, and contracts with another interface or none.
    let unclear: [fn(&mut countersign::evidence::HtlcTerms); 4] = [
        |terms| terms.token = Some(STRK.to_owned()),
        |terms| terms.htlc = Some(countersign::starknet::address::to_account(htlc_of("starknet_sepolia:usdc"))),
        |terms| terms.htlc = Some(countersign::starknet::address::to_account(felt(STRK))),
        |terms| terms.htlc = Some(countersign::starknet::address::to_account(Felt::from(0x1234))),
    ];
    for change in unclear {
        let held = judge(change).await;
        assert!(matches!(held, Err(Hold::Unclear(_))), "{held:?}");
    }
}

#[tokio::test]
async fn an_order_in_storage_has_the_computed_addresses() {
    let Some(stage) = Stage::new().await else { return };
    let record = stage.order(&Swap { destination: "starknet_sepolia:usdc", ..Swap::default() }).record;
    let payout = &record.terms.destination;
    let receipt = stage.pay(payout).await;
    let id = felt(&format!("0x{}", payout.swap_id));
    let addresses = slots(id);
    // The SDK computes the address of a mapping's value.
    assert_eq!(addresses[0], get_storage_var_address("orders", &[id]).unwrap());
    let mut stored = Vec::new();
    for address in addresses {
        let request = json!({"contract_address": hex(htlc_of("starknet_sepolia:usdc")), "key": hex(address), "block_id": "latest"});
        stored.push(felt(stage.rpc("starknet_getStorageAt", request).await.as_str().unwrap()));
    }
    let block = Felt::from(receipt["block_number"].as_u64().unwrap());
    let amount = Felt::from(u64::try_from(payout.amount).unwrap());
    let expected = [Felt::ZERO, stage.solver.address, stage.user.address, block, Felt::from(payout.timelock), amount, Felt::ZERO];
    assert_eq!(stored, expected);
}

#[tokio::test]
async fn events_are_read_page_by_page() {
    let Some(stage) = Stage::new().await else { return };
    // In this generation, the end of an order is searched for in all blocks since its funding.
    let record = stage.order(&Swap { destination: "starknet_sepolia:usdc", ..Swap::default() }).record;
    let payout = &record.terms.destination;
    stage.pay(payout).await;
    stage.mine(3).await;
    let redemption = recover::redeem(&record.record, Leg::Destination, &SECRET, stage.registry).unwrap();
    recover_by_user(&stage, redemption).await.unwrap();
    let redeemed = |state: &HtlcState| matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. });
    assert!(redeemed(&stage.read(payout).await.0));
    let one_by_one = stage.through(
        |method, call| {
            if method == "starknet_getEvents" {
                call["params"]["filter"]["chunk_size"] = json!(1);
            }
        },
        |_, _| (),
    );
    assert!(redeemed(&one_by_one.starknet(CHAIN).unwrap().htlc(payout).await.unwrap().state().unwrap().0));
    let widened: fn(&str, &mut Value) = |method, call| {
        if method == "starknet_getEvents" {
            call["params"]["filter"]["chunk_size"] = json!(1);
            call["params"]["filter"]["keys"][0] = json!([]);
        }
    };
    // The event of the funding was not asked for.
    let all = stage.through(widened, |_, _| ());
    let error = all.starknet(CHAIN).unwrap().htlc(payout).await.unwrap_err();
    assert!(error.to_string().contains("does not match the request"), "{error}");
    // Without the event, the first of two pages is empty, and the second needs the node's token.
    let two = stage.through(widened, |method, reply| {
        if method == "starknet_getEvents" {
            let funded = json!(hex(selector("Initiated")));
            reply["result"]["events"].as_array_mut().unwrap().retain(|event| event["keys"][0] != funded);
        }
    });
    assert!(redeemed(&two.starknet(CHAIN).unwrap().htlc(payout).await.unwrap().state().unwrap().0));
    let seen = two.transport().seen.lock().unwrap().clone();
    let sent = seen.iter().flat_map(|text| match serde_json::from_str(text).unwrap() {
        Value::Array(calls) => calls,
        call => vec![call],
    });
    let pages: Vec<Value> = sent.filter(|call| call["method"] == "starknet_getEvents").collect();
    assert!(pages.len() == 2 && pages[0]["params"]["filter"]["continuation_token"].is_null(), "{pages:?}");
    assert!(pages[1]["params"]["filter"]["continuation_token"].is_string());
}

#[tokio::test]
async fn a_funding_can_be_reorganized_away() {
    let Some(stage) = Stage::new().await else { return };
    let swap = Swap::default();
    let record = stage.order(&swap).record;
    let funding = signed(prepare(&stage, stage.order(&swap)).await.unwrap(), &stage.user);
    let receipt = stage.broadcast(&funding).await;
    stage.mine(4).await;
    let (state, before) = stage.read(&record.terms.source).await;
    assert!(matches!(state, HtlcState::Locked(_)) && before.depth == 5, "{state:?}");

    stage.rpc("devnet_abortBlocks", json!({"starting_block_id": {"block_hash": receipt["block_hash"]}})).await;
    let (state, after) = stage.read(&record.terms.source).await;
    assert_eq!((state, after.height.saturating_add(5)), (HtlcState::Absent, before.height));
    assert_eq!(stage.chain().status(felt(&funding.id)).await.unwrap(), None);
    // The same transaction is sent again, and gets into another block.
    stage.mine(1).await;
    let again = stage.broadcast(&funding).await;
    assert_ne!(again["block_hash"], receipt["block_hash"]);
    let (state, seen) = stage.read(&record.terms.source).await;
    assert!(matches!(state, HtlcState::Locked(_)) && json!(seen.hash) == again["block_hash"], "{state:?}");

    // A node that falls back further is not believed.
    stage.mine(20).await;
    stage.read(&record.terms.source).await;
    stage.rpc("devnet_abortBlocks", json!({"starting_block_id": {"block_number": again["block_number"]}})).await;
    let error = stage.chain().htlc(&record.terms.source).await.unwrap_err();
    assert_eq!(error.code().name(), "node_went_back");
}

#[tokio::test]
async fn endpoints_must_agree() {
    let (Some(stage), Some(other)) = (Stage::new().await, Stage::new().await) else { return };
    let record = stage.order(&Swap::default()).record;
    let payout = &record.terms.destination;
    stage.pay(payout).await;
    let url = stage.devnet.url();
    let both = [url.clone(), format!("{url}/rpc")];
    let read = async |urls: &[String]| {
        let nodes = connect(urls, CHAIN, stage.registry, |_, _| (), |_, _| ());
        nodes.starknet(CHAIN).unwrap().htlc(payout).await.map(|quorum| quorum.state().unwrap())
    };
    let (state, seen) = read(&both).await.unwrap();
    assert!(matches!(state, HtlcState::Locked(_)));
    assert_eq!((seen.agreed, seen.needed), (2, 2));
    // A node of another chain with the same name, on which nobody has paid: alone, against one node, and against two.
    let alone = read(&[other.devnet.url()]).await.unwrap().0;
    assert_eq!(alone, HtlcState::Absent);
    let error = read(&[url.clone(), other.devnet.url()]).await.unwrap_err();
    assert!(matches!(error, NodeError::Disagree { agreed: 1, needed: 2, .. }), "{error}");
    let (state, seen) = read(&[other.devnet.url(), both[0].clone(), both[1].clone()]).await.unwrap();
    assert!(matches!(state, HtlcState::Locked(_)));
    assert_eq!((seen.agreed, seen.needed), (2, 2));
    // The same payment in another block is another payment.
    other.mine(1).await;
    other.pay(payout).await;
    let error = read(&[url, other.devnet.url()]).await.unwrap_err();
    assert!(matches!(error, NodeError::Disagree { .. }), "{error}");
}
