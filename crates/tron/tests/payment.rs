//! Tests finding the payment of an order in another account's transaction, by its effects.

use countersign_core::chains::swap_id::{self, SwapIdInput, Version};
use countersign_core::reader::{Answer, Equal, Fault, Known, Next, Observation, Quorum, Reader};
use countersign_core::{Code, EvmGeneration, Generation};
use countersign_testkit::chain::tron::{Tron as Chain, bare, log, terms};
use countersign_testkit::{Case, TestResult, abi, fixture, fixtures, set, verified};
use countersign_tron::alloy_primitives::{B256, U256, hex};
use countersign_tron::reader::{Effect, EffectOf, OnChain};
use countersign_tron::received::{self, TransactionInfo};
use countersign_tron::{Address, Tron, VerifiedOrder, read};
use serde_json::{Value, json};

const TRANSACTION: B256 = B256::repeat_byte(0x77);
/// An order whose record has the swap id of version 3, as an outside tool computed it.
const CASE: &str = "tron-record-native-v3";

/// The `Initiated` log of an order with this swap id, as version 3 of the contract emits it.
fn initiated(order: &VerifiedOrder, id: B256) -> Value {
    let deposit = order.deposit();
    log(deposit.initiate.to, &[read::INITIATED, id, deposit.terms.secret_hash, deposit.terms.amount.into()], &[])
}

/// The log with destination data of an order, as version 3 of the contract emits it after the other.
fn with_data(order: &VerifiedOrder, id: B256, data: &[u8]) -> Value {
    let deposit = order.deposit();
    let name = "380328b26f928a9e51ec19f8e2199a2bce34db266d093d1e0104bce139ed7555".parse().unwrap();
    log(deposit.initiate.to, &[name, id, deposit.terms.secret_hash, deposit.terms.amount.into()], &abi::bytes(data))
}

/// What a node returns for the transaction of an account that several owners control: it calls that account, whose code calls the token and
/// the contract. Members as in TRON's documentation of `gettransactioninfobyid`.
fn info(order: &VerifiedOrder, id: B256) -> Value {
    let deposit = order.deposit();
    let transfer = log(Address::from([5; 20]), &[read::TRANSFER, B256::ZERO, B256::ZERO], &[0; 32]);
    let mut other = initiated(order, B256::repeat_byte(0xab));
    other["topics"][2] = json!(bare([3; 32]));
    let data = with_data(order, id, deposit.terms.destination_data.as_ref().unwrap());
    let execution = log(deposit.sender, &[B256::repeat_byte(0x44)], &TRANSACTION.0);
    json!({
        "id": bare(TRANSACTION),
        "fee": 1_000,
        "blockNumber": 60_000_000_u64,
        "blockTimeStamp": 1_772_601_009_000_u64,
        "contractResult": [""],
        "contract_address": hex::encode(deposit.sender.prefixed()),
        "receipt": {"origin_energy_usage": 9, "energy_usage_total": 190_000, "net_usage": 500, "result": "SUCCESS"},
        "log": [transfer, other, initiated(order, id), data, execution],
        "internal_transactions": [],
    })
}

fn parsed(info: &Value) -> TransactionInfo {
    received::transaction_info(info.to_string().as_bytes()).unwrap()
}

fn find(order: &VerifiedOrder, info: &Value) -> Result<B256, (String, String)> {
    order.deposit().find_payment(&parsed(info)).map_err(|refusal| {
        assert_eq!(refusal.code(), Code::TransactionMismatch, "{refusal}");
        (refusal.location().to_owned(), refusal.to_string())
    })
}

fn refused(order: &VerifiedOrder, info: &Value) -> String {
    find(order, info).unwrap_err().0
}

fn recorded_id(case: &Case) -> B256 {
    case.json()["order"]["source_swap"]["swap_id"].as_str().unwrap().parse().unwrap()
}

/// The ids of the records, computed by the outside tools, are those by which payments are found.
#[test]
fn a_payment_of_another_account_is_found_by_the_swap_id() -> TestResult {
    let (mut found, mut unproven) = (0, 0);
    for case in fixtures::<Tron>()? {
        let Some(version) = case.json()["order"]["version"].as_str().map(str::to_owned) else { continue };
        let (order, id) = (verified::<Tron>(&case), recorded_id(&case));
        let info = info(&order, id);
        // The formula of version 1 commits neither to the redeemer nor to the timelock, and nobody knows that of another id.
        let why = if case.id == "tron-record-other-id" { Some("the swap id of the order record does not follow") } else { None };
        if let Some(words) = why.or((version == "v1").then_some("do not commit to redeemer and timelock")) {
            let (location, message) = find(&order, &info).unwrap_err();
            assert!(location.is_empty() && message.contains(words), "{}: {message}", case.id);
            unproven += 1;
        } else {
            assert_eq!(find(&order, &info), Ok(TRANSACTION), "{}", case.id);
            found += 1;
        }
    }
    assert!(found >= 5 && unproven == 2, "{found}, {unproven}");
    Ok(())
}

/// Without a record, the id follows from the terms, by each formula that the pinned generation allows and that commits to all terms.
#[test]
fn without_a_record_the_swap_id_follows_from_the_terms() -> TestResult {
    let mut seen = 0;
    for case in fixtures::<Tron>()? {
        let line = case.json();
        if line["order"].is_object() {
            continue;
        }
        let order = verified::<Tron>(&case);
        let deposit = order.deposit();
        let owner = Address::parse_any(line["request"]["source"]["owner"].as_str().unwrap())?.bytes();
        let swap = SwapIdInput {
            secret_hash: &deposit.terms.secret_hash.0,
            initiator: owner.as_slice(),
            redeemer: deposit.terms.redeemer.as_slice(),
            timelock: deposit.terms.timelock.try_into()?,
            amount: deposit.terms.amount,
        };
        let pinned = case.registry.asset(line["request"]["source"]["asset"].as_str().unwrap()).and_then(|asset| asset.generation);
        let pinned = pinned.and_then(Generation::evm).map(|pinned: &EvmGeneration| pinned.contract(deposit.initiate.value > 0).swap_ids);
        for version in [Version::V1, Version::V2, Version::V3] {
            let id = swap_id::evm(version, deposit.chain_id, &swap, deposit.initiate.to.bytes().as_slice());
            let is_proof = version != Version::V1 && pinned.is_none_or(|pinned| pinned.contains(&version));
            let result = find(&order, &info(&order, id.into()));
            assert_eq!(result.is_ok(), is_proof, "{}, {version:?}: {result:?}", case.id);
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
    Ok(())
}

#[test]
fn a_transaction_that_does_not_pay_the_order_is_refused() {
    let case = fixture::<Tron>(CASE);
    let (order, id) = (verified::<Tron>(&case), recorded_id(&case));
    let honest = info(&order, id);
    assert_eq!(find(&order, &honest), Ok(TRANSACTION));
    let more = bare(B256::from(order.deposit().terms.amount + U256::ONE));
    let topics = honest["log"][2]["topics"].clone();
    for (member, value, location) in [
        ("/receipt/result", json!("REVERT"), "/receipt/result"),
        ("/receipt/result", json!("OUT_OF_ENERGY"), "/receipt/result"),
        ("/receipt/result", Value::Null, "/receipt/result"),
        ("/result", json!("FAILED"), "/receipt/result"),
        ("/log", Value::Null, "/log"),
        ("/log", json!([]), "/log"),
        // The event of another contract, of another order, or another event.
        ("/log/2/address", json!(bare([9; 20])), "/log"),
        ("/log/2/topics/2", json!(bare([9; 32])), "/log"),
        ("/log/2/topics/0", json!(bare([9; 32])), "/log"),
        // Another redeemer, timelock, initiator, contract or chain leads to another id.
        ("/log/2/topics/1", json!(bare([9; 32])), "/log/2/topics/1"),
        ("/log/2/topics/3", json!(more), "/log/2"),
        ("/log/2/topics", json!([topics[0], topics[1], topics[2]]), "/log/2"),
        ("/log/2/data", json!("00"), "/log/2"),
    ] {
        let mut changed = honest.clone();
        set(&mut changed, member, value.clone());
        assert_eq!(refused(&order, &changed), location, "{member} = {value}");
    }
}

/// Destination data is not in the swap id. The contract emits it in an event of its own. The gasless message has none.
#[test]
fn a_payment_with_other_destination_data_is_refused() -> TestResult {
    let mut seen = 0;
    for case in fixtures::<Tron>()? {
        let order = verified::<Tron>(&case);
        let deposit = order.deposit();
        let own: &[u8] = deposit.terms.destination_data.as_ref().unwrap();
        let sender = deposit.sender.bytes();
        let swap = SwapIdInput {
            secret_hash: &deposit.terms.secret_hash.0,
            initiator: sender.as_slice(),
            redeemer: deposit.terms.redeemer.as_slice(),
            timelock: deposit.terms.timelock.try_into()?,
            amount: deposit.terms.amount,
        };
        let id = B256::from(swap_id::evm(Version::V3, deposit.chain_id, &swap, deposit.initiate.to.bytes().as_slice()));
        let honest = info(&order, id);
        // The record of another version, or of another id.
        if find(&order, &honest) != Ok(TRANSACTION) {
            continue;
        }
        let longer = [own, &[1]].concat();
        for other in [longer.as_slice(), &[]].into_iter().filter(|other| *other != own) {
            let mut changed = honest.clone();
            changed["log"][3] = with_data(&order, id, other);
            let (location, message) = find(&order, &changed).unwrap_err();
            assert!(location == "/log/3/data" && message.contains("destination data"), "{}: {message}", case.id);
        }
        let mut without = honest.clone();
        without["log"].as_array_mut().unwrap().remove(3);
        let is_same = own.is_empty() && deposit.typed_data.is_some();
        assert_eq!(
            find(&order, &without).map_err(|(at, _)| at),
            if is_same { Ok(TRANSACTION) } else { Err("/log/2".to_owned()) },
            "{}",
            case.id
        );
        // The event of another contract.
        let mut elsewhere = honest;
        elsewhere["log"][3]["address"] = json!(bare([9; 20]));
        assert_eq!(find(&order, &elsewhere).is_ok(), is_same, "{}", case.id);
        seen += if own.is_empty() { 0 } else { 1 };
    }
    assert!(seen >= 5, "{seen}");
    Ok(())
}

/// Initiator, redeemer, timelock, chain, contract.
type Parts = ([u8; 20], [u8; 20], u64, u64, [u8; 20]);

/// Each term that the event does not have is in the id: the id of an order with another value is refused.
#[test]
fn the_event_of_other_terms_is_refused() {
    let case = fixture::<Tron>(CASE);
    let order = verified::<Tron>(&case);
    let deposit = order.deposit();
    let id = |change: fn(&mut Parts)| {
        let terms = &deposit.terms;
        let timelock = terms.timelock.try_into().unwrap();
        let [sender, htlc] = [deposit.sender, deposit.initiate.to].map(|address| *address.bytes().0);
        let mut parts: Parts = (sender, *terms.redeemer.0, timelock, deposit.chain_id, htlc);
        change(&mut parts);
        let (initiator, redeemer, timelock, chain_id, htlc) = parts;
        let (secret_hash, amount) = (&terms.secret_hash.0, terms.amount);
        let swap = SwapIdInput { secret_hash, initiator: &initiator, redeemer: &redeemer, timelock, amount };
        B256::from(swap_id::evm(Version::V3, chain_id, &swap, &htlc))
    };
    assert_eq!(find(&order, &info(&order, id(|_| {}))), Ok(TRANSACTION));
    let at = |id| refused(&order, &info(&order, id));
    assert_eq!(at(id(|parts| parts.0[0] ^= 1)), "/log/2/topics/1", "another initiator");
    assert_eq!(at(id(|parts| parts.1[0] ^= 1)), "/log/2/topics/1", "another redeemer");
    assert_eq!(at(id(|parts| parts.2 += 1)), "/log/2/topics/1", "another timelock");
    assert_eq!(at(id(|parts| parts.3 += 1)), "/log/2/topics/1", "another chain");
    assert_eq!(at(id(|parts| parts.4[0] ^= 1)), "/log/2/topics/1", "another contract");
}

#[test]
fn a_second_payment_in_a_transaction_is_refused() {
    let case = fixture::<Tron>(CASE);
    let (order, id) = (verified::<Tron>(&case), recorded_id(&case));
    let with = |second: &Value| {
        let mut changed = info(&order, id);
        changed["log"].as_array_mut().unwrap().push(second.clone());
        find(&order, &changed).unwrap_err()
    };
    // The same secret hash under other terms: anyone who knows the secret can take both.
    assert_eq!(with(&initiated(&order, B256::repeat_byte(0xab))).0, "/log/5/topics/1");
    let (location, message) = with(&initiated(&order, id));
    assert!(location == "/log/5" && message.contains("paid twice"), "{message}");
}

#[test]
fn what_a_node_says_is_parsed_strictly() {
    let case = fixture::<Tron>(CASE);
    let order = verified::<Tron>(&case);
    let honest = info(&order, recorded_id(&case));
    let parsed = parsed(&honest);
    assert_eq!((parsed.transaction_id, parsed.is_success, parsed.logs.len()), (TRANSACTION, true, 5));
    assert_eq!(parsed.logs[2].address, order.deposit().initiate.to);
    let word = bare([0; 32]);
    for (member, value, code) in [
        ("/id", json!("12"), Code::HexLength),
        ("/id", Value::Null, Code::MissingField),
        // Nodes omit numbers that are 0.
        ("/blockNumber", Value::Null, Code::WrongType),
        ("/blockNumber", json!(0), Code::WrongType),
        ("/blockNumber", json!("60000000"), Code::WrongType),
        ("/receipt", Value::Null, Code::MissingField),
        ("/receipt/result", json!(1), Code::WrongType),
        ("/result", json!(true), Code::WrongType),
        ("/log", json!({}), Code::WrongType),
        ("/log", json!(vec![honest["log"][0].clone(); 257]), Code::WrongType),
        ("/log/0/address", json!("12"), Code::AddressMalformed),
        ("/log/0/topics", json!([word, word, word, word, word]), Code::WrongType),
        ("/log/0/topics/0", json!("12"), Code::HexLength),
        ("/log/0/data", json!("00".repeat(256 * 1024 + 1)), Code::HexLength),
    ] {
        let mut changed = honest.clone();
        set(&mut changed, member, value);
        let refusal = received::transaction_info(changed.to_string().as_bytes()).unwrap_err();
        assert_eq!(refusal.code(), code, "{member}: {refusal}");
        assert!(refusal.location().starts_with(member), "{member}: {refusal}");
    }
    // A node that does not know the transaction, and every answer that was cut.
    assert_eq!(received::transaction_info(b"{}").unwrap_err().location(), "/id");
    let text = honest.to_string();
    for end in 0..text.len() {
        assert!(received::transaction_info(&text.as_bytes()[..end]).is_err(), "{end}");
    }
}

/// The answer of one endpoint about a transaction.
fn shown(order: &VerifiedOrder, answer: &Value) -> Result<Observation<Effect>, Fault> {
    let subject = OnChain { chain_id: order.deposit().chain_id, subject: EffectOf(TRANSACTION) };
    let mut reader = Reader::<Effect>::new(&subject, &Known::default()).unwrap();
    let Next::Ask([identity, asked]) = reader.next() else { panic!("the chain, and the transaction") };
    assert!(format!("{asked:?}").contains("gettransactioninfobyid"));
    let answers = [Chain::funded(&terms(CASE)).answer(identity), Answer::http(200, answer.to_string().into_bytes())];
    reader.answer(&answers).unwrap();
    reader.finish()
}

#[test]
fn what_a_transaction_did_counts_if_enough_endpoints_agree() {
    let case = fixture::<Tron>(CASE);
    let (order, id) = (verified::<Tron>(&case), recorded_id(&case));
    let honest = info(&order, id);
    let mut lying = honest.clone();
    lying["log"][2]["topics"][1] = json!(bare([9; 32]));
    let judged = |answers: [&Value; 3]| {
        let endpoints = ["a", "b", "c"];
        let mut quorum = Quorum::new(endpoints, 2).unwrap();
        for (endpoint, answer) in endpoints.into_iter().zip(answers) {
            quorum.hear(endpoint, shown(&order, answer));
        }
        let agreed = quorum.agreed::<()>().ok()?;
        let Equal(found) = agreed[0].output();
        Some(found.as_ref().map(|found| order.deposit().find_payment(found).is_ok()))
    };
    assert_eq!(judged([&honest, &lying, &honest]), Some(Some(true)));
    assert_eq!(judged([&lying, &honest, &lying]), Some(Some(false)));
    assert_eq!(judged([&honest, &json!({}), &json!({})]), Some(None));
    assert_eq!(judged([&honest, &lying, &json!({})]), None);
    // The information of another transaction, or of one in no block, is the fault of the endpoint.
    for (member, value) in [("/id", json!(bare([1; 32]))), ("/blockNumber", json!(0)), ("/receipt", Value::Null)] {
        let mut changed = honest.clone();
        set(&mut changed, member, value);
        assert!(matches!(shown(&order, &changed), Err(Fault::Malformed(_))), "{member}");
    }
}
