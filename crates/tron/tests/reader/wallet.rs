//! Tests what a wallet reads before it signs: the contents of requests, how calls end, and what a transaction costs
//! and transfers.

use countersign_core::reader::{Answer, Fault, Known, Machine, Next, Observation, Reader, Request, RpcError, Sent};
use countersign_core::{BlockHeight, Code, SecretHash, UnixMillis};
use countersign_evm_core::transfer::BYSTANDERS;
use countersign_testkit::chain::tron::{SECRET, SOLID, Tron, bare, log, returned, reverted};
use countersign_testkit::recover::record;
use countersign_testkit::{fixture, registry, verified};
use countersign_tron::alloy_primitives::{Address as AbiAddress, U256, keccak256};
use countersign_tron::reader::{
    Balance, BalanceOf, Broadcast, Context, Contract, OnChain, Plan, Preflight, PreflightCheck, Receiver, ReceiverCheck,
};
use countersign_tron::recover::{self, Leg};
use countersign_tron::{Address, Permission, Tron as Family, TxContext, UnsignedOrder, VerifiedOrder, read};
use serde_json::{Value, json};

use super::others::signed;
use super::permissions::active;
use super::{NATIVE as NATIVE_RECORD, drive, tron};

pub(super) const CHAIN_ID: u64 = 728_126_428;
pub(super) const WITH_APPROVAL: &str = "tron-token-typed-data-null";
pub(super) const WITHOUT_APPROVAL: &str = "tron-token-typed-data-absent";
pub(super) const NATIVE: &str = "tron-native-typed-data-null";

const OWNER: [u8; 20] = [0xa1; 20];
const TOKEN: [u8; 20] = [0x77; 20];
const STRANGER: [u8; 20] = [0x66; 20];

/// Drives a reader of this chain. `lie` gets the path and the question, and may answer instead of the chain.
pub(super) fn ask<M: Machine>(subject: &M::Subject, chain: &Tron, lie: impl Fn(&str, &Value) -> Option<Value>) -> Result<M::Output, Fault> {
    let reader = Reader::<M>::new(subject, &Known::default()).unwrap();
    let answer = |_, _, request: &Request| {
        let (path, question) = question(request);
        lie(&path, &question).map_or_else(|| chain.answer(request), |lie| Answer::http(200, lie.to_string().into_bytes()))
    };
    drive(reader, answer).map(Observation::into_output)
}

fn question(request: &Request) -> (String, Value) {
    let Request::Post { path, body, .. } = request else { panic!("{request:?}") };
    (path.to_string(), serde_json::from_slice(body).unwrap())
}

fn honest(_: &str, _: &Value) -> Option<Value> {
    None
}

fn on_chain<S>(subject: S) -> OnChain<S> {
    OnChain { chain_id: CHAIN_ID, subject }
}

/// What is asked besides the identity of the chain, which comes first.
fn asked<M: Machine>(subject: &M::Subject) -> Vec<(String, Value)> {
    let reader = Reader::<M>::new(subject, &Known::default()).unwrap();
    let Next::Ask(requests) = reader.next() else { panic!("nothing is asked") };
    requests.iter().skip(1).map(question).collect()
}

/// Nodes take addresses with their prefix, and calls as data alone.
#[test]
fn requests_name_what_is_read() {
    let (owner, token, spender) = (Address::from(OWNER), Address::from(TOKEN), Address::from(STRANGER));
    let prefixed = |address: [u8; 20]| format!("41{}", bare(address));
    let call = |to, data: &[u8]| {
        let sender = prefixed([0; 20]);
        let query = json!({"owner_address": sender, "contract_address": to, "data": bare(data), "call_value": 0, "visible": false});
        ("/wallet/triggerconstantcontract".to_owned(), query)
    };
    let balance = |of| asked::<Balance>(&on_chain(of));
    let account = json!({"address": prefixed(OWNER), "visible": false});
    assert_eq!(balance(BalanceOf::Coins { owner }), [("/wallet/getaccount".to_owned(), account.clone())]);
    assert_eq!(balance(BalanceOf::Tokens { token, owner }), [call(prefixed(TOKEN), &read::balance_call(OWNER.into()))]);
    let allowance = read::allowance_call(OWNER.into(), STRANGER.into());
    assert_eq!(balance(BalanceOf::Allowance { token, owner, spender }), [call(prefixed(TOKEN), &allowance)]);
    let code = ("/wallet/getcontractinfo".to_owned(), json!({"value": prefixed(TOKEN), "visible": false}));
    let getters = [read::version_call().to_vec(), read::token_call().to_vec()].map(|data| call(prefixed(TOKEN), &data));
    assert_eq!(asked::<Contract>(&on_chain(token)), [&[code][..], &getters].concat());
    let block = ("/walletsolidity/getblockbynum".to_owned(), json!({"num": SOLID}));
    assert_eq!(asked::<Context>(&on_chain(BlockHeight::from(SOLID))), [block]);
    let requests = asked::<PreflightCheck>(&plan(NATIVE));
    let order = order(NATIVE);
    let (sender, initiate) = (order.deposit().sender, &order.deposit().initiate);
    let account = json!({"address": bare(sender.prefixed()), "visible": false});
    let resources =
        [("/wallet/getaccount", account.clone()), ("/wallet/getaccountresource", account), ("/wallet/getchainparameters", json!({}))];
    assert_eq!(requests[..3], resources.map(|(path, query)| (path.to_owned(), query)));
    // The call is that of the order.
    assert_eq!((requests.len(), &requests[3].1["data"]), (4, &json!(bare(&initiate.data))));
    assert_eq!((&requests[3].1["call_value"], &requests[3].1["owner_address"]), (&json!(initiate.value), &json!(bare(sender.prefixed()))));
}

#[test]
fn a_call_succeeds_without_a_message_and_without_a_mark_of_failure() {
    let query = on_chain(BalanceOf::Tokens { token: Address::from(TOKEN), owner: Address::from(OWNER) });
    let read = |answer: &Value| {
        let lie = |path: &str, _: &Value| path.ends_with("constantcontract").then(|| answer.clone());
        ask::<Balance>(&query, &tron(), lie).map(|amount| amount.0)
    };
    let seven = bare(U256::from(7).to_be_bytes::<32>());
    let answer = |data: &str, message: &str, transaction: Value| json!({"result": {"result": true, "message": message}, "constant_result": [data], "transaction": transaction});
    let failed = |why: &str| Err(Fault::Rpc(RpcError::new(0, why, None)));
    for fine in [json!({}), json!({"ret": []}), json!({"ret": [{}]}), json!({"ret": [{"ret": "SUCESS"}]})] {
        assert_eq!(read(&answer(&seven, "", fine.clone())), Ok(U256::from(7)), "{fine}");
    }
    let marked = json!({"ret": [{"ret": "FAILED"}]});
    assert_eq!(read(&answer("", "", marked.clone())), failed(""));
    // The contract's own reason comes first. Most messages are in hex.
    let error = bare(&keccak256("HTLC__OrderFulfilled()")[..4]);
    let outcome = read(&answer(&error, "REVERT opcode executed", marked));
    assert!(matches!(&outcome, Err(Fault::Rpc(error)) if error.message.contains("HTLC__OrderFulfilled")), "{outcome:?}");
    for message in ["REVERT opcode executed", &bare("REVERT opcode executed")] {
        assert_eq!(read(&answer("", message, json!({"ret": [{}]}))), failed("REVERT opcode executed"));
    }
    for code in ["CONTRACT_VALIDATE_ERROR", "CONTRACT_EXE_ERROR", "OTHER_ERROR"] {
        let answer = json!({"result": {"code": code, "message": bare("no")}});
        assert_eq!(read(&answer), failed(&format!("{code}: no")));
    }
    assert!(matches!(read(&json!({"result": {"code": "SUCCESS"}, "constant_result": ["07"]})), Err(Fault::Malformed(_))));
}

#[test]
fn a_contract_is_described_by_its_code_and_its_getters() {
    let describe = |chain: &Tron, code: Value| {
        let lie = |path: &str, _: &Value| path.ends_with("getcontractinfo").then(|| code.clone());
        ask::<Contract>(&on_chain(Address::from(OWNER)), chain, lie).unwrap().0
    };
    let described = describe(&Tron { token: TOKEN.into(), ..tron() }, json!({"runtimecode": "6001"}));
    assert_eq!((described.code_hash, described.token), (Some(keccak256([0x60, 1])), Some(Address::from(TOKEN))));
    assert_eq!(described.version, None);
    for nothing in [json!({}), json!({"runtimecode": ""})] {
        assert_eq!(describe(&tron(), nothing).code_hash, None);
    }
}

#[test]
fn a_transaction_is_accepted_only_if_the_node_says_so() {
    let signed = signed();
    let send = |answer: Value| {
        let lie = |path: &str, _: &Value| match path {
            "/wallet/broadcasthex" => Some(answer.clone()),
            "/wallet/gettransactionbyid" => Some(json!({})),
            _ => None,
        };
        ask::<Broadcast>(&signed, &tron(), lie)
    };
    for accepted in [json!({"result": true}), json!({"result": true, "code": "SUCCESS"}), json!({"code": "DUP_TRANSACTION_ERROR"})] {
        assert_eq!(send(accepted.clone()), Ok(Sent::Accepted), "{accepted}");
    }
    for unknown in [json!({}), json!({"result": false}), json!({"code": "SUCCESS"}), json!({"result": "true"}), json!({"code": "NEW"})] {
        assert!(matches!(send(unknown.clone()), Err(Fault::Rpc(_))), "{unknown}");
    }
    for code in [
        "SIGERROR",
        "CONTRACT_VALIDATE_ERROR",
        "CONTRACT_EXE_ERROR",
        "BANDWITH_ERROR",
        "TAPOS_ERROR",
        "TOO_BIG_TRANSACTION_ERROR",
        "TRANSACTION_EXPIRATION_ERROR",
    ] {
        let rejected = send(json!({"code": code, "message": bare("why"), "result": true}));
        assert_eq!(rejected, Ok(Sent::rejected(&format!("{code}: why"))));
    }
}

// ---- preflight

pub(super) fn order(id: &str) -> VerifiedOrder {
    verified::<Family>(&fixture::<Family>(id))
}

fn prepared(id: &str) -> UnsignedOrder {
    order(id)
        .prepare(TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_800_003_600_000), UnixMillis::from_millis(1_800_000_000_000)))
        .unwrap()
}

fn plan(id: &str) -> Plan {
    Plan::new(CHAIN_ID, &prepared(id)).unwrap()
}

/// The chain with exactly what an order needs, besides TRX. The first call uses 60,000 units of energy, at 100 sun each.
pub(super) fn chain(id: &str) -> Tron {
    let order = order(id);
    let deposit = order.deposit();
    let token = deposit.approval.as_ref().map_or(TOKEN.into(), |approval| approval.call.to.bytes());
    let token = if deposit.initiate.value == 0 { token } else { read::NATIVE };
    Tron { token, coins: 1_000_000_000_000, holds: deposit.terms.amount, allowance: deposit.terms.amount, ..tron() }
}

pub(super) type Judgement = Result<Preflight, (Code, String)>;

pub(super) fn judge(plan: &Plan, chain: &Tron, lie: impl Fn(&str, &Value) -> Option<Value>) -> Judgement {
    ask::<PreflightCheck>(plan, chain, lie).unwrap().0.map_err(|refusal| (refusal.code(), refusal.location().to_owned()))
}

/// The account's resources.
fn resources(resources: Value) -> impl Fn(&str, &Value) -> Option<Value> {
    move |path, _| (path == "/wallet/getaccountresource").then(|| resources.clone())
}

/// More than one signature has a fee of its own, for each transaction, and 67 bytes for each further one.
#[test]
fn several_signatures_are_counted() {
    let wallet = TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_800_003_600_000), UnixMillis::from_millis(1_800_000_000_000));
    let keys = |count: u8| (1..=count).map(|byte| (Address::from(AbiAddress::new([byte; 20])), 1)).collect::<Vec<_>>();
    let price = |count: u8, fee: Option<u64>| {
        let permission = Permission::new(2).with_keys(count.into(), keys(count));
        let unsigned = order(WITH_APPROVAL).prepare(wallet.clone().with_permission(permission)).unwrap();
        let chain = Tron { permissions: active(count.into(), &keys(count)), ..chain(WITH_APPROVAL) };
        let lie = move |path: &str, _: &Value| match (path, fee) {
            ("/wallet/getaccountresource", _) => Some(json!({})),
            ("/wallet/getchainparameters", Some(fee)) => Some(json!({"chainParameter": [{"key": "getEnergyFee", "value": 100},
                {"key": "getTransactionFee", "value": 1_000}, {"key": "getMultiSignFee", "value": fee}]})),
            _ => None,
        };
        judge(&Plan::new(CHAIN_ID, &unsigned).unwrap(), &chain, lie).unwrap().cost.to::<u64>()
    };
    let calls = u64::try_from(prepared(WITH_APPROVAL).payloads().calls.len()).unwrap();
    assert_eq!(price(3, None) - price(1, None), calls * (1_000_000 + 2 * 67 * 1_000));
    assert_eq!(price(3, Some(7)) - price(1, Some(7)), calls * (7 + 2 * 67 * 1_000));
}

/// A transaction takes all of its bytes from one source of bandwidth, or pays 1,000 sun for each.
#[test]
fn energy_and_bandwidth_are_counted_to_the_unit() {
    for id in [NATIVE, WITHOUT_APPROVAL, WITH_APPROVAL] {
        let value = u64::try_from(order(id).deposit().initiate.value).unwrap();
        // Beside the signed bytes there are the signature with its tag, and what nodes reserve for the result.
        let bytes: Vec<_> =
            prepared(id).payloads().calls.iter().map(|call| u64::try_from(call.transaction.raw_data.len()).unwrap() + 136).collect();
        let all: u64 = bytes.iter().sum();
        let cost = |own: Value| judge(&plan(id), &chain(id), resources(own)).unwrap().cost - U256::from(value);
        let burnt = U256::from(6_000_000);
        assert_eq!(cost(json!({"freeNetLimit": all})), burnt, "{id}");
        assert_eq!(cost(json!({"NetLimit": all})), burnt, "{id}");
        assert_eq!(cost(json!({"NetLimit": all + 5, "NetUsed": 5, "freeNetLimit": 1})), burnt, "{id}");
        // One byte short: the last transaction pays for all of its bytes.
        let short = burnt + U256::from(bytes.last().unwrap() * 1_000);
        assert_eq!(cost(json!({"freeNetLimit": all, "freeNetUsed": 1, "NetLimit": 1})), short, "{id}");
        assert_eq!(cost(json!({})), burnt + U256::from(all * 1_000), "{id}");
        let staked = |limit: u64, used: u64| cost(json!({"freeNetLimit": all, "EnergyLimit": limit, "EnergyUsed": used}));
        assert_eq!([staked(60_000, 0), staked(59_999, 0), staked(60_000, 1)].map(|cost| cost.to::<u64>()), [0, 100, 100], "{id}");
        // What is spent must be there.
        let cost = 6_000_000 + all * 1_000 + value;
        assert!(judge(&plan(id), &Tron { coins: cost, ..chain(id) }, resources(json!({}))).is_ok(), "{id}");
        let short = judge(&plan(id), &Tron { coins: cost - 1, ..chain(id) }, resources(json!({})));
        assert_eq!(short, Err((Code::InsufficientFunds, "/balance".to_owned())), "{id}");
    }
}

#[test]
fn tokens_and_allowance_are_needed_unless_the_calls_include_the_approval() {
    let amount = order(WITHOUT_APPROVAL).deposit().terms.amount;
    let short = amount - U256::ONE;
    let funds = |id: &str, holds: U256, allowance: U256| judge(&plan(id), &Tron { holds, allowance, ..chain(id) }, honest).map(drop);
    let refused = |code, at: &str| Err((code, at.to_owned()));
    assert_eq!(funds(WITHOUT_APPROVAL, amount, amount), Ok(()));
    assert_eq!(funds(WITHOUT_APPROVAL, short, amount), refused(Code::InsufficientFunds, "/token"));
    assert_eq!(funds(WITHOUT_APPROVAL, amount, short), refused(Code::AllowanceTooLow, "/allowance"));
    let amount = order(WITH_APPROVAL).deposit().terms.amount;
    assert_eq!(funds(WITH_APPROVAL, amount, U256::ZERO), Ok(()));
    assert_eq!(funds(WITH_APPROVAL, amount - U256::ONE, U256::ZERO), refused(Code::InsufficientFunds, "/token"));
    // The chain's own coin needs neither.
    assert_eq!(funds(NATIVE, U256::ZERO, U256::ZERO), Ok(()));
    let other = Tron { token: STRANGER.into(), ..chain(WITH_APPROVAL) };
    assert_eq!(judge(&plan(WITH_APPROVAL), &other, honest).map(drop), refused(Code::SimulationDiffers, "/token"));
}

/// Transfers of nothing by these accounts revert.
fn frozen(accounts: &[[u8; 20]]) -> impl Fn(&str, &Value) -> Option<Value> {
    move |path, question| {
        let is_transfer = question["data"].as_str().is_some_and(|data| data.starts_with("a9059cbb"));
        let is_frozen = accounts.iter().any(|account| question["owner_address"] == format!("41{}", bare(account)));
        (path.ends_with("constantcontract") && is_transfer).then(|| if is_frozen { reverted(&[]) } else { returned(&[]) })
    }
}

#[test]
fn a_token_must_let_the_htlc_pay_out() {
    let deposit_of = order(WITHOUT_APPROVAL);
    let (sender, htlc) = (deposit_of.deposit().sender.bytes().into(), deposit_of.deposit().initiate.to.bytes().into());
    let found = |accounts: &[[u8; 20]]| judge(&plan(WITHOUT_APPROVAL), &chain(WITHOUT_APPROVAL), frozen(accounts)).map(drop);
    assert_eq!(found(&[]), Ok(()));
    let refused = Err((Code::SimulationReverted, "/token".to_owned()));
    assert_eq!(found(&[htlc]), refused);
    assert_eq!(found(&[sender, htlc]), refused, "the sender is frozen, too");
    // A token that refuses every transfer of nothing shows nothing.
    assert_eq!(found(&[sender, htlc, BYSTANDERS[0].into()]), Ok(()));
}

#[test]
fn a_token_must_let_the_receiver_be_paid() {
    let [token, htlc, receiver] = [TOKEN, OWNER, STRANGER].map(Address::from);
    let subject = on_chain(Receiver { token: Some(token), htlc, receiver, amount: None });
    let pairs: Vec<_> = asked::<ReceiverCheck>(&subject)
        .iter()
        .map(|(path, query)| (path.clone(), query["owner_address"].clone(), query["contract_address"].clone(), query["data"].clone()))
        .collect();
    let transfer = |from: [u8; 20], to: [u8; 20]| {
        let [from, token] = [from, TOKEN].map(|address| json!(format!("41{}", bare(address))));
        ("/wallet/triggerconstantcontract".to_owned(), from, token, json!(bare(read::empty_transfer_call(to.into()))))
    };
    let [one, other] = BYSTANDERS.map(<[u8; 20]>::from);
    let expected = [transfer(one, other), transfer(OWNER, OWNER), transfer(OWNER, STRANGER), transfer(STRANGER, OWNER)];
    assert_eq!(pairs[..4], expected);
    // `paused()`.
    assert!(pairs.len() == 5 && pairs[4].3 == json!("5c975abb"), "{pairs:?}");
    let found =
        |accounts: &[[u8; 20]]| ask::<ReceiverCheck>(&subject, &tron(), frozen(accounts)).unwrap().0.map_err(|refusal| refusal.code());
    assert_eq!(found(&[]), Ok(()));
    assert_eq!(found(&[STRANGER]), Err(Code::ReceiverNotPayable));
    assert_eq!(found(&[OWNER]), Err(Code::ReceiverNotPayable), "the HTLC is frozen");
    assert_eq!(found(&[OWNER, one]), Ok(()), "the token refuses empty transfers");
}

/// A redemption is assumed to use 200,000 units of energy. 40,000 of them are for the HTLC itself.
#[test]
fn a_transfer_that_a_redemption_cannot_pay_for_is_no_payment() {
    let [token, htlc, receiver] = [TOKEN, OWNER, STRANGER].map(Address::from);
    for amount in [None, Some(U256::from(7))] {
        let subject = on_chain(Receiver { token: Some(token), htlc, receiver, amount });
        let paid = bare(read::transfer_call(STRANGER.into(), amount.unwrap_or_default()));
        let found = |energy: u64| {
            let lie = |path: &str, question: &Value| {
                let energy = if question["data"] == paid { energy } else { 1_000 };
                let answer = json!({"result": {"result": true}, "energy_used": energy, "constant_result": [""]});
                path.ends_with("constantcontract").then_some(answer)
            };
            ask::<ReceiverCheck>(&subject, &tron(), lie).unwrap().0
        };
        assert_eq!(found(160_000), Ok(()), "{amount:?}");
        let refusal = found(160_001).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::ReceiverNotPayable, "/destination"));
        assert!(refusal.to_string().contains("160001 units of energy"), "{refusal}");
    }
}

/// A transfer that returns is no sign of a token that refuses transfers of nothing, whatever it uses. Those that no redemption makes may use
/// more than it has.
#[test]
fn a_token_whose_every_transfer_is_dear_is_refused_before_paying() {
    let [token, htlc, receiver] = [TOKEN, OWNER, STRANGER].map(Address::from);
    let bystander = <[u8; 20]>::from(BYSTANDERS[0]);
    for amount in [None, Some(U256::from(7))] {
        let subject = on_chain(Receiver { token: Some(token), htlc, receiver, amount });
        let dear_for = |payers: &[[u8; 20]]| {
            let lie = |path: &str, question: &Value| {
                let is_dear = payers.iter().any(|payer| question["owner_address"] == format!("41{}", bare(payer)));
                let energy = if is_dear { 160_001 } else { 1_000 };
                let answer = json!({"result": {"result": true}, "energy_used": energy, "constant_result": [""]});
                path.ends_with("constantcontract").then_some(answer)
            };
            ask::<ReceiverCheck>(&subject, &tron(), lie).unwrap().0.map_err(|refusal| refusal.code())
        };
        assert_eq!(dear_for(&[bystander, OWNER, STRANGER]), Err(Code::ReceiverNotPayable), "{amount:?}");
        assert_eq!(dear_for(&[bystander, STRANGER]), Ok(()), "{amount:?}");
    }
}

/// What java-tron says if it does not run calls, or had no time left: with the code of a call that no contract can take, or with the mark of
/// one that reverted.
#[test]
fn a_node_that_did_not_run_a_call_has_answered_nothing() {
    let [token, htlc, receiver] = [TOKEN, OWNER, STRANGER].map(Address::from);
    let subject = on_chain(Receiver { token: Some(token), htlc, receiver, amount: None });
    let failed = |message: &str| json!({"result": {"result": true, "message": bare(message)}, "transaction": {"ret": [{"ret": "FAILED"}]}});
    for (answer, is_of_node) in [
        (json!({"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": bare("this node does not support constant")}}), true),
        (failed("CPU timeout for 'SSTORE' operation executing"), true),
        (failed("Already Time Out"), true),
        (json!({"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": bare("Smart contract is not exist.")}}), false),
        (failed("REVERT opcode executed"), false),
    ] {
        let found = ask::<ReceiverCheck>(&subject, &tron(), |path, _| path.ends_with("constantcontract").then(|| answer.clone()));
        assert_eq!(found.is_err(), is_of_node, "{answer}");
    }
}

#[test]
fn the_first_call_must_succeed_and_move_the_deposit_alone() {
    let initiate = order(WITHOUT_APPROVAL);
    let (sender, htlc) = (initiate.deposit().sender.bytes(), initiate.deposit().initiate.to.bytes());
    let amount = initiate.deposit().terms.amount;
    let moving = |id: &str, asset: [u8; 20], from: AbiAddress, to: AbiAddress, amount: U256| {
        let event = log(Address::from(asset), &[read::TRANSFER, from.into_word(), to.into_word()], &amount.to_be_bytes::<32>());
        let simulated = json!({"result": {"result": true}, "energy_used": 1, "constant_result": [""], "logs": [event]});
        judge(&plan(id), &Tron { simulated, ..chain(id) }, frozen(&[])).map(drop)
    };
    let differs = Err((Code::SimulationDiffers, "/transfers".to_owned()));
    assert_eq!(moving(WITHOUT_APPROVAL, TOKEN, sender, htlc, amount), Ok(()));
    assert_eq!(moving(WITHOUT_APPROVAL, TOKEN, sender, htlc, amount - U256::ONE), differs);
    assert_eq!(moving(WITHOUT_APPROVAL, STRANGER, sender, htlc, amount), differs);
    assert_eq!(moving(WITHOUT_APPROVAL, TOKEN, sender, STRANGER.into(), amount), differs);
    assert_eq!(moving(WITHOUT_APPROVAL, TOKEN, htlc, STRANGER.into(), U256::ONE), differs);
    assert_eq!(moving(WITHOUT_APPROVAL, TOKEN, STRANGER.into(), sender, amount), Ok(()));
    // An approval transfers nothing, not even the deposit.
    let approval = order(WITH_APPROVAL);
    let token = chain(WITH_APPROVAL).token.into();
    let (sender, htlc) = (approval.deposit().sender.bytes(), approval.deposit().initiate.to.bytes());
    assert_eq!(moving(WITH_APPROVAL, token, sender, htlc, approval.deposit().terms.amount), differs);

    for (id, at) in [(NATIVE, "/initiate"), (WITHOUT_APPROVAL, "/initiate"), (WITH_APPROVAL, "/approval")] {
        let found = judge(&plan(id), &Tron { simulated: reverted(&[]), ..chain(id) }, frozen(&[])).map(drop);
        assert_eq!(found, Err((Code::SimulationReverted, at.to_owned())), "{id}");
    }
}

/// A redemption is not shown to a node, and must not run out of energy: it is assumed to use 200,000 units.
#[test]
fn a_redemption_is_not_run_and_has_enough_energy() {
    let hash = SecretHash::of(&SECRET).to_string();
    let record = record::<Family>(NATIVE_RECORD, |order| order["source_swap"]["secret_hash"] = hash.into()).unwrap();
    let context = TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_800_003_600_000), UnixMillis::from_millis(1_800_000_000_000));
    let plan = |redeems: bool, fee_limit: u64| {
        let recovery = if redeems {
            recover::redeem(&record, Leg::Source, &SECRET, registry())
        } else {
            recover::refund(&record, Leg::Source, registry())
        };
        let context = context.clone().with_fee_limit(fee_limit);
        Plan::new(CHAIN_ID, &recovery.unwrap().prepare(context.sent_by(Address::from(OWNER)).with_low_fee(true)).unwrap()).unwrap()
    };
    let found = |plan: &Plan| judge(plan, &chain(NATIVE), resources(json!({"freeNetLimit": 10_000})));
    let enough = found(&plan(true, 20_000_000)).unwrap();
    assert_eq!((enough.energy_used, enough.cost), (None, U256::from(20_000_000)));
    assert_eq!(found(&plan(true, 19_999_999)), Err((Code::GasLimitTooLow, "/fee_limit".to_owned())));
    let requests = asked::<PreflightCheck>(&plan(true, 20_000_000));
    assert_eq!(requests.len(), 3);
    assert!(!requests.iter().any(|(_, question)| question.to_string().contains(&bare(SECRET))), "{requests:?}");
    // A refund is run, so that its energy is known.
    let refund = found(&plan(false, 6_000_000)).unwrap();
    assert_eq!((refund.energy_used, refund.cost), (Some(60_000), U256::from(6_000_000)));
    assert_eq!(asked::<PreflightCheck>(&plan(false, 6_000_000)).len(), 4);
}
