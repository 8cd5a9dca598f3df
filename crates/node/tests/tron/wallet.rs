//! What a wallet signs: a reference block, and a preflight that refuses what was not verified.

use countersign::recover::Recovery;
use countersign::tron::alloy_primitives::{Address as AbiAddress, U256, hex};
use countersign::tron::recover::{self, Leg};
use countersign::tron::{Address, Tron as Family, TxContext, read};
use countersign::{Code, Policy, Role, SecretHash, Unsigned, Verified};
use countersign_node::tron::Preflight;
use countersign_node::{NodeError, Speed};
use countersign_testkit::recover::record;
use countersign_testkit::{registry, verified};
use serde_json::{Value, json};

use crate::tron::fake::{Fake, LATEST, Lying, NOW, SECRET, SOLID, Tron, bare, case, id_of, log, nodes, returned, reverted, terms};

const WITH_APPROVAL: &str = "tron-token-typed-data-null";
pub(crate) const WITHOUT_APPROVAL: &str = "tron-token-typed-data-absent";
pub(crate) const NATIVE: &str = "tron-native-typed-data-null";
const GASLESS: &str = "tron-token-approval-exact";

pub(crate) fn order(id: &str) -> countersign::tron::VerifiedOrder {
    verified::<Family>(&case(countersign::Family::Tron, id))
}

/// The chain with everything that an order needs: TRX, tokens, and an allowance.
pub(crate) fn tron(id: &str) -> Tron {
    let order = order(id);
    let deposit = order.deposit();
    let is_native = deposit.initiate.value != 0;
    let token = deposit.approval.as_ref().map_or(AbiAddress::repeat_byte(0x77), |approval| approval.call.to.bytes());
    let token = if is_native { read::NATIVE } else { token };
    let coins = deposit.initiate.value.unsigned_abs() + 100_000_000;
    Tron { token, coins, holds: deposit.terms.amount, allowance: deposit.terms.amount, ..Tron::funded(&terms().destination) }
}

async fn calls(tron: Tron) -> TxContext {
    nodes(tron, 1).tron("tron").unwrap().calls().await.unwrap()
}

pub(crate) async fn preflight(id: &str, tron: impl Into<Fake>) -> Result<Preflight, NodeError> {
    let calls = calls(self::tron(id)).await;
    let unsigned = order(id).prepare(calls).unwrap();
    nodes(tron, 1).tron("tron").unwrap().preflight(&unsigned).await
}

async fn refused(id: &str, tron: impl Into<Fake>) -> (Code, String) {
    match preflight(id, tron).await.unwrap_err() {
        NodeError::Refused(refusal) => (refusal.code(), refusal.location().to_owned()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_reference_is_the_newest_irreversible_block() {
    let calls = calls(tron(NATIVE)).await;
    let id = id_of(SOLID);
    assert_eq!(calls.ref_block_bytes, SOLID.to_be_bytes()[6..]);
    assert_eq!(calls.ref_block_hash, id[8..16]);
    // One hour after the time of that block, which is 19 blocks old.
    let made = (NOW - 3 - 57) * 1_000;
    assert_eq!((calls.timestamp.as_millis(), calls.expiration.as_millis()), (made, made + 3_600_000));
    assert_eq!(calls.chain_id, Some(728_126_428));
    let later = Tron { latest: LATEST + 1, ..tron(NATIVE) };
    assert_ne!(nodes(later, 1).head("tron", 0).await.unwrap().height.get(), LATEST);
    let calls_of = async |fake: Fake, count| nodes(fake, count).tron("tron").unwrap().calls().await;
    // Two of three endpoints are enough.
    let one = tron(NATIVE).answering(|host, _| (host == "a.example").then(|| Ok((503, Vec::new()))));
    assert_eq!(calls_of(one, 3).await.unwrap(), calls);
    let endless = tron(NATIVE).lying(|_, path, _| {
        (path == "/walletsolidity/getblockbynum").then(|| {
            let mut block = tron(NATIVE).block(SOLID);
            block["block_header"]["raw_data"]["timestamp"] = json!(u64::MAX);
            block
        })
    });
    assert_eq!(calls_of(endless, 1).await.unwrap_err().code().name(), "node_malformed");
}

/// With a reference that the chain does not have, or one that is too old, a redemption would show the secret and never be mined.
#[tokio::test(start_paused = true)]
async fn one_liar_of_three_does_not_choose_the_reference() {
    let calls_of = async |fake: Fake, count| nodes(fake, count).tron("tron").unwrap().calls().await;
    let honest = calls(tron(NATIVE)).await;
    for shown in [1, SOLID - 1_000, LATEST, LATEST + 1, u64::MAX >> 24] {
        // The liar also has a block of its own at every height.
        let lying = tron(NATIVE).lying(move |host, path, question| {
            let number = if path == "/walletsolidity/getnowblock" { shown } else { question["num"].as_u64().unwrap_or_default() };
            let is_lie = host == "a.example" && number != 0 && path.starts_with("/walletsolidity");
            is_lie.then(|| {
                let mut id = id_of(number);
                id[9] ^= 1;
                let raw = json!({"number": number, "timestamp": (NOW - 60) * 1_000});
                json!({"blockID": bare(id), "block_header": {"raw_data": raw}})
            })
        });
        assert_eq!(calls_of(lying, 3).await.unwrap(), honest, "{shown}");
    }
    // Endpoints that are a little apart agree on a block that both have.
    let behind = || {
        tron(NATIVE).lying(|host, path, question| {
            let is_far = question["num"].as_u64().is_some_and(|number| number > SOLID - 3 && number != 0);
            match path {
                "/walletsolidity/getnowblock" if host == "b.example" => Some(tron(NATIVE).block(SOLID - 3)),
                "/walletsolidity/getblockbynum" if host == "b.example" && is_far => Some(json!({})),
                _ => None,
            }
        })
    };
    assert_eq!(calls_of(behind(), 2).await.unwrap().ref_block_hash, id_of(SOLID - 3)[8..16]);
    let disagreeing = tron(NATIVE).lying(|host, path, question| {
        (host == "b.example" && path == "/walletsolidity/getblockbynum").then(|| {
            let number = question["num"].as_u64().unwrap();
            let mut block = tron(NATIVE).block(number);
            block["block_header"]["raw_data"]["timestamp"] = json!(1);
            block
        })
    });
    assert_eq!(calls_of(disagreeing, 2).await.unwrap_err().code().name(), "node_disagree");
}

#[tokio::test(start_paused = true)]
async fn balances_and_allowances_are_agreed_upon() {
    let (sender, token) = (Address::from([0xa1; 20]), Address::from([0x77; 20]));
    let of = |fake: Fake, count| nodes(fake, count);
    let nodes = of(tron(WITHOUT_APPROVAL).into(), 2);
    let chain = nodes.tron("tron").unwrap();
    assert_eq!(chain.balance(sender, None).await.unwrap(), U256::from(100_000_000));
    assert_eq!(chain.balance(sender, Some(token)).await.unwrap(), order(WITHOUT_APPROVAL).deposit().terms.amount);
    assert_eq!(chain.allowance(token, sender, sender).await.unwrap(), order(WITHOUT_APPROVAL).deposit().terms.amount);
    let asset = registry().asset("tron:trx").unwrap();
    assert_eq!(nodes.balance(asset, &sender.to_string()).await.unwrap(), U256::from(100_000_000));
    let error = nodes.balance(asset, "0x00").await.unwrap_err();
    assert!(matches!(&error, NodeError::Refused(refusal) if refusal.code() == Code::AddressMalformed), "{error}");
    // The balance of an account that does not exist is 0.
    let empty = of(tron(NATIVE).lying(|_, path, _| (path == "/wallet/getaccount").then(|| json!({}))), 1);
    assert_eq!(empty.tron("tron").unwrap().balance(sender, None).await.unwrap(), U256::ZERO);
    let one = tron(NATIVE).lying(|host, path, _| (host == "a.example" && path == "/wallet/getaccount").then(|| json!({"balance": 7})));
    assert_eq!(of(one, 2).tron("tron").unwrap().balance(sender, None).await.unwrap_err().code().name(), "node_disagree");
    for lie in [json!({"balance": -1}), json!({"balance": "7"}), json!({"balance": 1.5}), json!([])] {
        let lying = tron(NATIVE).lying(move |_, path, _| (path == "/wallet/getaccount").then(|| lie.clone()));
        assert_eq!(of(lying, 1).tron("tron").unwrap().balance(sender, None).await.unwrap_err().code().name(), "node_malformed");
    }
    for lie in [returned(&[]), returned(&[1; 64]), json!({"result": {"result": true}, "constant_result": ["0x00"]}), json!({})] {
        let lying = tron(NATIVE).lying(move |_, path, _| path.ends_with("constantcontract").then(|| lie.clone()));
        assert_eq!(of(lying, 1).tron("tron").unwrap().balance(sender, Some(token)).await.unwrap_err().code().name(), "node_malformed");
    }
    let lying = tron(NATIVE).lying(|_, path, _| path.ends_with("constantcontract").then(|| reverted(&[])));
    assert_eq!(of(lying, 1).tron("tron").unwrap().balance(sender, Some(token)).await.unwrap_err().code().name(), "node_error");
}

// ---- preflight

#[tokio::test(start_paused = true)]
async fn what_was_verified_passes() {
    for id in [WITH_APPROVAL, WITHOUT_APPROVAL, NATIVE] {
        let value = U256::from(order(id).deposit().initiate.value);
        let found = preflight(id, tron(id)).await.unwrap();
        assert_eq!(found.energy_used, Some(60_000), "{id}");
        // 6 TRX for energy; bandwidth is free for the first few hundred bytes.
        let least = value + U256::from(6_000_000);
        assert!(found.cost >= least && found.cost < least + U256::from(2_000_000) && found.cost < found.balance, "{id}: {found:?}");
        let staked = preflight(id, Tron { energy_limit: 50_000, ..tron(id) }).await.unwrap();
        assert_eq!(found.cost - staked.cost, U256::from(5_000_000));
    }
    // The calls include the approval, so the allowance may still be zero.
    preflight(WITH_APPROVAL, Tron { allowance: U256::ZERO, ..tron(WITH_APPROVAL) }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_said_before_anything_is_signed() {
    let insufficient = |at: &str| (Code::InsufficientFunds, at.to_owned());
    for id in [WITH_APPROVAL, WITHOUT_APPROVAL] {
        let short = order(id).deposit().terms.amount - U256::ONE;
        assert_eq!(refused(id, Tron { holds: short, ..tron(id) }).await, insufficient("/token"));
        assert_eq!(refused(id, Tron { coins: 5_999_999, ..tron(id) }).await, insufficient("/balance"));
    }
    let short = order(WITHOUT_APPROVAL).deposit().terms.amount - U256::ONE;
    let allowance = Tron { allowance: short, ..tron(WITHOUT_APPROVAL) };
    assert_eq!(refused(WITHOUT_APPROVAL, allowance).await, (Code::AllowanceTooLow, "/allowance".to_owned()));
    let coins = order(NATIVE).deposit().initiate.value.unsigned_abs();
    assert_eq!(refused(NATIVE, Tron { coins, ..tron(NATIVE) }).await, insufficient("/balance"));
    // 300 TRX are the fee limit of the fixtures: 3,000,000 units of energy.
    let simulated = json!({"result": {"result": true}, "energy_used": 3_000_001, "constant_result": []});
    let hungry = Tron { simulated, energy_limit: u64::MAX, ..tron(NATIVE) };
    assert_eq!(refused(NATIVE, hungry).await, (Code::GasLimitTooLow, "/fee_limit".to_owned()));
    let other = Tron { token: AbiAddress::repeat_byte(9), ..tron(WITH_APPROVAL) };
    assert_eq!(refused(WITH_APPROVAL, other).await, (Code::SimulationDiffers, "/token".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_would_fail_is_refused_with_its_reason() {
    let text = hex::decode("08c379a0000000000000000000000000000000000000000000000000000000000000002000000000000000000000000000000000000000000000000000000000000000067061757365640000000000000000000000000000000000000000000000000000").unwrap();
    let simulated = reverted(&text);
    let error = preflight(NATIVE, Tron { simulated, ..tron(NATIVE) }).await.unwrap_err();
    assert!(error.to_string().contains("paused"), "{error}");
    for simulated in [
        reverted(&hex::decode("356b842c").unwrap()),
        json!({"result": {"result": true, "message": bare("Not enough energy for 'SSTORE' operation executing")}, "constant_result": [""]}),
        json!({"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": bare("no OwnerAccount")}}),
    ] {
        for id in [WITHOUT_APPROVAL, NATIVE] {
            let refused = refused(id, Tron { simulated: simulated.clone(), ..tron(id) }).await;
            assert_eq!(refused, (Code::SimulationReverted, "/initiate".to_owned()), "{simulated}");
        }
        let refused = refused(WITH_APPROVAL, Tron { simulated, ..tron(WITH_APPROVAL) }).await;
        assert_eq!(refused, (Code::SimulationReverted, "/approval".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_moves_something_else_is_refused() {
    let order = order(WITHOUT_APPROVAL);
    let deposit = order.deposit();
    let (sender, htlc, amount) = (deposit.sender, deposit.initiate.to, deposit.terms.amount);
    let (token, thief) = (Address::from([0x77; 20]), Address::from([0x66; 20]));
    let transfer = |asset: Address, from: Address, to: Address, amount: U256| {
        log(asset, &[read::TRANSFER, from.bytes().into_word(), to.bytes().into_word()], &amount.to_be_bytes::<32>())
    };
    let moving = |logs: Vec<Value>| {
        let simulated = json!({"result": {"result": true}, "energy_used": 1, "constant_result": [""], "logs": logs});
        Tron { simulated, ..tron(WITHOUT_APPROVAL) }
    };
    let honest = || transfer(token, sender, htlc, amount);
    preflight(WITHOUT_APPROVAL, moving(vec![honest(), transfer(thief, thief, htlc, amount)])).await.unwrap();
    for logs in [
        vec![transfer(token, sender, htlc, amount - U256::ONE)],
        vec![transfer(token, sender, thief, amount)],
        vec![transfer(thief, sender, htlc, amount)],
        vec![honest(), honest()],
        vec![honest(), transfer(token, htlc, thief, U256::ONE)],
    ] {
        let refused = refused(WITHOUT_APPROVAL, moving(logs.clone())).await;
        assert_eq!(refused, (Code::SimulationDiffers, "/transfers".to_owned()), "{logs:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn prices_that_are_missing_or_malformed_are_unknown() {
    for parameters in [
        json!({}),
        json!({"chainParameter": []}),
        json!({"chainParameter": [{"key": "getEnergyFee", "value": 100}]}),
        json!({"chainParameter": [{"key": "getEnergyFee", "value": "100"}, {"key": "getTransactionFee", "value": 1}]}),
        json!({"chainParameter": [{"value": 100}]}),
    ] {
        let lying = tron(NATIVE).lying(move |_, path, _| (path == "/wallet/getchainparameters").then(|| parameters.clone()));
        assert_eq!(preflight(NATIVE, lying).await.unwrap_err().code().name(), "node_malformed");
    }
    // However high they are, nothing overflows.
    let greedy = tron(NATIVE).lying(|_, path, _| {
        let all = json!([{"key": "getEnergyFee", "value": u64::MAX}, {"key": "getTransactionFee", "value": u64::MAX}]);
        (path == "/wallet/getchainparameters").then(|| json!({"chainParameter": all}))
    });
    assert_eq!(refused(NATIVE, greedy).await.0, Code::GasLimitTooLow);
}

#[tokio::test(start_paused = true)]
async fn a_redemption_is_never_shown_before_it_is_sent() {
    let hash = SecretHash::of(&SECRET).to_string();
    let record = record::<Family>("tron-record-native-v3", |order| order["source_swap"]["secret_hash"] = hash.into()).unwrap();
    let redemption = recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap();
    let sender = Address::from([0xa1; 20]);
    let order = redemption.prepare(calls(tron(NATIVE)).await.sent_by(sender)).unwrap();
    let nodes = nodes(tron(NATIVE), 1);
    let found = nodes.tron("tron").unwrap().preflight(&order).await.unwrap();
    assert_eq!(found.energy_used, None);
    let seen = nodes.transport().seen.lock().unwrap();
    assert!(seen.iter().all(|(_, _, question)| !question.to_string().contains(&bare(SECRET))), "{seen:?}");
}

/// A redemption that runs out of energy would reveal the secret for nothing.
#[tokio::test(start_paused = true)]
async fn a_sender_that_cannot_pay_the_fee_signs_no_redemption_and_no_refund() {
    let hash = SecretHash::of(&SECRET).to_string();
    let record = record::<Family>("tron-record-native-v3", |order| order["source_swap"]["secret_hash"] = hash.into()).unwrap();
    let redemption = Recovery::Tron(recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap());
    let refund = Recovery::Tron(recover::refund(&record, Leg::Source, registry()).unwrap());
    let sender = Address::from([0xa1; 20]).to_string();
    let prepare = async |recovery: &Recovery, tron: Tron| {
        let nodes = nodes(tron, 1);
        let prepared = nodes.prepare_recovery(recovery, "tron", &sender, Speed::Normal, &Policy::default()).await;
        let seen = nodes.transport().seen.lock().unwrap();
        assert!(seen.iter().all(|(_, _, question)| !question.to_string().contains(&bare(SECRET))), "{seen:?}");
        prepared.map(|unsigned| roles(&unsigned)).map_err(|error| error.code().name().to_owned())
    };
    let short = "insufficient_funds".to_owned();
    for (recovery, energy, role) in [(&redemption, 200_000, Role::Redeem), (&refund, 60_000, Role::Refund)] {
        // One unit of energy costs 100 sun.
        let fee = energy * 100;
        let with = |coins: u64, staked: u64| Tron { coins, energy_limit: staked, ..tron(NATIVE) };
        assert_eq!(prepare(recovery, with(fee, 0)).await, Ok(vec![role]));
        assert_eq!(prepare(recovery, with(fee - 1, 0)).await, Err(short.clone()));
        assert_eq!(prepare(recovery, with(0, energy)).await, Ok(vec![role]), "staked energy");
    }
}

// ---- preparing

fn roles(unsigned: &Unsigned) -> Vec<Role> {
    let Unsigned::Tron(order) = unsigned else { panic!("not of Tron") };
    order.payloads().calls.iter().map(|call| call.role).collect()
}

#[tokio::test(start_paused = true)]
async fn an_order_is_prepared_with_the_approval_that_it_needs() {
    let prepare = async |id: &str, allowance: U256| {
        let nodes = nodes(Tron { allowance, ..tron(id) }, 1);
        nodes.prepare(&Verified::Tron(order(id)), "tron", "", Speed::Normal, &Policy::default()).await.unwrap()
    };
    let amount = order(WITH_APPROVAL).deposit().terms.amount;
    assert_eq!(roles(&prepare(WITH_APPROVAL, U256::ZERO).await), [Role::Approval, Role::Initiate]);
    assert_eq!(roles(&prepare(WITH_APPROVAL, U256::ONE).await), [Role::ApprovalReset, Role::Approval, Role::Initiate]);
    assert_eq!(roles(&prepare(WITH_APPROVAL, amount).await), [Role::Initiate]);
    assert_eq!(roles(&prepare(NATIVE, U256::ZERO).await), [Role::Initiate]);
    // Gasless, because the order offers it.
    let amount = order(GASLESS).deposit().terms.amount;
    let gasless = prepare(GASLESS, amount).await;
    assert_eq!(roles(&gasless), []);
    assert_eq!(roles(&prepare(GASLESS, U256::ZERO).await), [Role::Approval, Role::Initiate]);
    // By its own transactions, if the owner prefers them.
    let nodes = nodes(Tron { allowance: amount, ..tron(GASLESS) }, 1);
    let order = Verified::Tron(order(GASLESS));
    let own = nodes.prepare_own(&order, "tron", "", Speed::Normal, &Policy::default()).await.unwrap();
    assert_eq!(roles(&own), [Role::Initiate]);
}

#[tokio::test(start_paused = true)]
async fn a_refund_is_prepared_for_whoever_sends_it() {
    let record = record::<Family>("tron-record-native-v3", |_| {}).unwrap();
    let refund = recover::refund(&record, Leg::Source, registry()).unwrap();
    let sender = Address::from([0xa1; 20]);
    let nodes = nodes(tron(NATIVE), 1);
    let recovery = Recovery::Tron(refund.clone());
    let prepare = async |account: &str, policy: &Policy| nodes.prepare_recovery(&recovery, "tron", account, Speed::Fast, policy).await;
    let unsigned = prepare(&sender.to_string(), &Policy::default()).await.unwrap();
    assert_eq!(roles(&unsigned), [Role::Refund]);
    let Unsigned::Tron(unsigned) = unsigned else { panic!("not of Tron") };
    let transaction = &unsigned.payloads().calls[0].transaction;
    assert_eq!((transaction.raw.fee_limit, transaction.trigger.owner_address.clone()), (recover::FEE_LIMIT, sender.prefixed().to_vec()));
    assert_eq!(transaction.raw.ref_block_bytes, SOLID.to_be_bytes()[6..]);
    // The policy limits the fee.
    let low = Policy::from_json(br#"{"tron_fee_limit":99999999}"#).unwrap();
    let error = prepare(&sender.to_string(), &low).await.unwrap_err();
    assert!(matches!(&error, NodeError::Refused(refusal) if refusal.code() == Code::GasLimitTooHigh), "{error}");
    assert!(prepare("0xa1", &Policy::default()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_contract_is_described_by_what_it_is() {
    let describe = async |fake: Fake| nodes(fake, 1).tron("tron").unwrap().describe_contract(Address::from([0xa1; 20])).await.unwrap();
    let described = describe(tron(WITHOUT_APPROVAL).into()).await;
    assert_eq!(described.code_hash, Some(countersign::tron::alloy_primitives::keccak256([0x60, 1])));
    assert_eq!((described.version, described.token), (None, Some(Address::from([0x77; 20]))));
    // The description is stored as text next to the registry.
    let nodes = nodes(tron(WITHOUT_APPROVAL), 1);
    let kept = nodes.describe(registry().asset("tron:usdt").unwrap()).await.unwrap();
    let names: Vec<_> = kept.facts().map(|(name, _)| name).collect();
    assert_eq!((names, kept.generation()), (vec!["code_hash", "token"], None));
    let gone = describe(tron(NATIVE).lying(|_, path, _| (path == "/wallet/getcontractinfo").then(|| json!({})))).await;
    assert_eq!(gone.code_hash, None);
}
