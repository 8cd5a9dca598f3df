//! Tokens that take a fee, or freeze an account: a payment that could not be redeemed or refunded is not signed.

use countersign::chains::UnixMillis;
use countersign::recover::Recovery;
use countersign::tron::alloy_primitives::Address as AbiAddress;
use countersign::tron::{Address, FundingPath, Permission, TxContext, read, recover};
use countersign::{
    Code, OrderRecord, Policy, U256,
    evidence::{Precondition, Stage},
};
use countersign_node::{Ends, NodeError, Speed};
use serde_json::json;

use crate::tron::fake::{Lying, log, reverted};
use crate::tron::wallet::{WITHOUT_APPROVAL, order, preflight, tron};

async fn refused(fake: impl Into<crate::tron::fake::Fake>) -> (Code, String) {
    match preflight(WITHOUT_APPROVAL, fake).await.unwrap_err() {
        NodeError::Refused(refusal) => (refusal.code(), refusal.to_string()),
        other => panic!("{other:?}"),
    }
}

/// An answer to transfers of the token by these accounts: they revert.
fn frozen(accounts: &'static [&'static str]) -> crate::tron::fake::Fake {
    let (sender, htlc) = (order(WITHOUT_APPROVAL).deposit().sender, order(WITHOUT_APPROVAL).deposit().initiate.to);
    tron(WITHOUT_APPROVAL).lying(move |_, path, question| {
        let is_transfer = path.ends_with("constantcontract") && question["data"].as_str().unwrap().starts_with("a9059cbb");
        let by = |account: Address| question["owner_address"] == format!("41{}", hex(account.bytes()));
        let is_frozen = accounts.contains(&"htlc") && by(htlc) || accounts.contains(&"sender") && by(sender) || accounts.contains(&"all");
        (is_transfer && is_frozen).then(|| reverted(&[]))
    })
}

fn hex(address: AbiAddress) -> String {
    address.to_string().trim_start_matches("0x").to_lowercase()
}

#[tokio::test(start_paused = true)]
async fn a_token_that_has_frozen_the_htlc_is_not_paid() {
    let (code, text) = refused(frozen(&["htlc"])).await;
    assert_eq!(code, Code::SimulationReverted);
    assert!(text.contains("/token") && text.contains("does not let the HTLC pay out"), "{text}");
    assert_eq!(refused(frozen(&["htlc", "sender"])).await.0, Code::SimulationReverted);
    // A token that refuses every transfer of nothing shows nothing.
    preflight(WITHOUT_APPROVAL, frozen(&["all"])).await.unwrap();
    preflight(WITHOUT_APPROVAL, frozen(&[])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_token_that_takes_a_fee_is_not_paid() {
    let order = order(WITHOUT_APPROVAL);
    let deposit = order.deposit();
    let (sender, htlc, amount) = (deposit.sender, deposit.initiate.to, deposit.terms.amount);
    let (token, collector) = (Address::from([0x77; 20]), Address::from([0x66; 20]));
    let transfer = |from: Address, to: Address, amount: countersign::U256| {
        log(token, &[read::TRANSFER, from.bytes().into_word(), to.bytes().into_word()], &amount.to_be_bytes::<32>())
    };
    let fee = countersign::U256::from(3);
    for logs in [
        vec![transfer(sender, htlc, amount - fee), transfer(sender, collector, fee)],
        vec![transfer(sender, htlc, amount), transfer(htlc, collector, fee)],
        vec![transfer(sender, htlc, amount), transfer(sender, collector, fee)],
    ] {
        let simulated = json!({"result": {"result": true}, "energy_used": 1, "constant_result": [""], "logs": logs});
        let (code, text) = refused(crate::tron::fake::Tron { simulated, ..tron(WITHOUT_APPROVAL) }).await;
        assert_eq!(code, Code::SimulationDiffers, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_has_frozen_the_receiver_is_not_paid_for() {
    let receiver = Address::from([0x5a; 20]);
    for is_frozen in [true, false] {
        let fake = tron(WITHOUT_APPROVAL).lying(move |_, path, question| {
            let by_receiver = question["owner_address"] == format!("41{}", hex(receiver.bytes()));
            path.ends_with("constantcontract").then(|| {
                if is_frozen && by_receiver { reverted(&[]) } else { json!({"result": {"result": true}, "constant_result": [""]}) }
            })
        });
        let checked = crate::tron::fake::nodes(fake, 1)
            .check_receiver(countersign_testkit::registry().asset("tron:usdt").unwrap(), &receiver.to_string())
            .await;
        match checked {
            Err(NodeError::Refused(refusal)) if is_frozen => assert_eq!(refusal.location(), "/destination"),
            other => assert!(!is_frozen && other.is_ok(), "{other:?}"),
        }
    }
}

/// The record of an order whose destination is on Tron.
fn record(asset: &str, receiver: Address) -> OrderRecord {
    let case = crate::tron::fake::case(countersign::Family::Evm, "evm-record-tron");
    let value = countersign::json::parse(case.input.as_bytes()).unwrap();
    let proposal = countersign_json::line::Case::from_value(&value).unwrap().proposal().unwrap();
    let mut record = countersign::verify_record(proposal, countersign_testkit::registry(), &Policy::default()).unwrap().record;
    record.destination_swap.asset = asset.parse().unwrap();
    record.destination_swap.redeemer = receiver.to_string();
    record
}

async fn unmet(fake: crate::tron::fake::Fake, asset: &str, stage: Stage) -> Vec<(Precondition, &'static str)> {
    unmet_of(fake, &record(asset, Address::from([0x5a; 20])), stage, &Policy::default()).await
}

async fn unmet_of(fake: crate::tron::fake::Fake, record: &OrderRecord, stage: Stage, policy: &Policy) -> Vec<(Precondition, &'static str)> {
    unmet_under(fake, record, stage, policy, None).await
}

async fn unmet_under(
    fake: crate::tron::fake::Fake,
    record: &OrderRecord,
    stage: Stage,
    policy: &Policy,
    permission: Option<&Permission>,
) -> Vec<(Precondition, &'static str)> {
    let account = Address::from([0x77; 20]).to_string();
    let ends = Ends::of_record(record, countersign_testkit::registry()).redeemed_by(Some(&account)).under_permission(permission);
    let found = crate::tron::fake::nodes(fake, 3).preconditions(&ends, stage, Speed::Normal, policy).await;
    found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect()
}

/// A node without faults, except for what `lie` says of calls, on these hosts.
fn calls(
    hosts: &'static [&'static str],
    lie: impl Fn(&str) -> Option<serde_json::Value> + Send + Sync + 'static,
) -> crate::tron::fake::Fake {
    calls_and(hosts, lie, |_, _| None)
}

/// The same, with other answers of hosts at a path.
fn calls_and(
    hosts: &'static [&'static str],
    lie: impl Fn(&str) -> Option<serde_json::Value> + Send + Sync + 'static,
    other: impl Fn(&str, &str) -> Option<serde_json::Value> + Send + Sync + 'static,
) -> crate::tron::fake::Fake {
    tron(WITHOUT_APPROVAL).lying(move |host, path, question| {
        if let Some(other) = other(host, path) {
            return Some(other);
        }
        let data = question["data"].as_str().unwrap_or_default();
        let lied = if hosts.contains(&host) && path.ends_with("constantcontract") { lie(data) } else { None };
        lied.or_else(|| match (path.ends_with("constantcontract"), data.get(..8)) {
            (true, Some("313ce567")) => Some(crate::tron::fake::returned(&countersign::U256::from(6).to_be_bytes::<32>())),
            (true, Some("5c975abb")) => Some(reverted(&[])),
            (true, _) => Some(json!({"result": {"result": true}, "energy_used": 541, "constant_result": [""]})),
            _ => None,
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_paused_holds_the_secret_back() {
    const TWO: [&str; 2] = ["a.example", "c.example"];
    let paused = |data: &str| data.starts_with("a9059cbb").then(|| reverted(&[]));
    for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
        assert_eq!(unmet(calls(&[], |_| None), "tron:usdt", stage).await, []);
    }
    assert_eq!(unmet(calls(&TWO, paused), "tron:usdt", Stage::BeforeSecret).await, [(Precondition::Receiver, "receiver_not_payable")]);
    assert_eq!(unmet(calls(&["b.example"], paused), "tron:usdt", Stage::BeforeSecret).await, []);
    let says =
        |data: &str| data.starts_with("5c975abb").then(|| crate::tron::fake::returned(&countersign::U256::from(1).to_be_bytes::<32>()));
    assert_eq!(unmet(calls(&TWO, says), "tron:usdt", Stage::BeforePaying).await, [(Precondition::Receiver, "receiver_not_payable")]);
    // A busy node proves nothing.
    let busy = |_: &str| Some(json!({"result": {"code": "SERVER_BUSY", "message": "62757379"}}));
    for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
        let found = unmet(calls(&TWO, busy), "tron:usdt", stage).await;
        assert!(found.contains(&(Precondition::Receiver, "node_disagree")), "{stage:?}: {found:?}");
    }
}

/// The token has frozen the HTLC of the destination, and refuses every transfer by or to it, also that to itself.
#[tokio::test(start_paused = true)]
async fn a_destination_whose_htlc_is_frozen_is_not_paid_for() {
    let asset = countersign_testkit::registry().asset("tron:usdt").unwrap();
    let htlc = hex(Address::from_account(asset.htlc.as_ref().unwrap()).unwrap().bytes());
    let lying = || {
        let htlc = htlc.clone();
        tron(WITHOUT_APPROVAL).lying(move |_, path, question| {
            let data = question["data"].as_str().unwrap_or_default();
            let is_party = question["owner_address"] == format!("41{htlc}") || data.contains(&htlc);
            match (path.ends_with("constantcontract"), data.get(..8)) {
                (true, Some("a9059cbb")) if is_party => Some(reverted(&[])),
                (true, Some("313ce567")) => Some(crate::tron::fake::returned(&U256::from(6).to_be_bytes::<32>())),
                (true, _) => Some(json!({"result": {"result": true}, "energy_used": 541, "constant_result": [""]})),
                _ => None,
            }
        })
    };
    for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
        assert_eq!(unmet(lying(), "tron:usdt", stage).await, [(Precondition::Receiver, "receiver_not_payable")], "{stage:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_contract_that_needs_more_than_2300_energy_is_no_receiver_of_trx() {
    let uses = |energy: u64| {
        move |data: &str| data.is_empty().then(|| json!({"result": {"result": true}, "energy_used": energy, "constant_result": [""]}))
    };
    const ALL: [&str; 3] = ["a.example", "b.example", "c.example"];
    for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
        assert_eq!(unmet(calls(&ALL, uses(2_300)), "tron:trx", stage).await, []);
        assert_eq!(unmet(calls(&ALL, uses(2_301)), "tron:trx", stage).await, [(Precondition::Receiver, "receiver_not_payable")]);
        let reverts = |data: &str| data.is_empty().then(|| reverted(&[]));
        assert_eq!(unmet(calls(&ALL, reverts), "tron:trx", stage).await, [(Precondition::Receiver, "receiver_not_payable")]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_account_that_redeems_can_pay_for_the_energy() {
    let poor = crate::tron::fake::Tron { coins: 19_000_000, ..tron(WITHOUT_APPROVAL) };
    let honest = |fake: crate::tron::fake::Tron| {
        fake.lying(|_, path, question| {
            let data = question["data"].as_str().unwrap_or_default();
            path.ends_with("constantcontract").then(|| match data.get(..8) {
                Some("313ce567") => crate::tron::fake::returned(&countersign::U256::from(6).to_be_bytes::<32>()),
                _ => crate::tron::fake::returned(&[]),
            })
        })
    };
    // 200,000 units of energy at 100 sun.
    assert_eq!(unmet(honest(poor), "tron:usdt", Stage::BeforePaying).await, [(Precondition::Redeemer, "insufficient_funds")]);
    let enough = crate::tron::fake::Tron { coins: 20_000_000, ..tron(WITHOUT_APPROVAL) };
    assert_eq!(unmet(honest(enough), "tron:usdt", Stage::BeforePaying).await, []);
    let staked = crate::tron::fake::Tron { coins: 0, energy_limit: 200_000, ..tron(WITHOUT_APPROVAL) };
    assert_eq!(unmet(honest(staked), "tron:usdt", Stage::BeforePaying).await, []);
}

/// A redemption has a fee limit of 100 TRX, which also limits staked energy. Above 500 sun for one unit, 200,000 units do not fit into it.
#[tokio::test(start_paused = true)]
async fn a_redemption_that_would_run_out_of_energy_is_known_before_paying() {
    let at = |price: u64| {
        crate::tron::fake::Tron { energy_limit: 200_000, ..tron(WITHOUT_APPROVAL) }.lying(move |_, path, question| {
            let data = question["data"].as_str().unwrap_or_default();
            match path.ends_with("getchainparameters") {
                true => {
                    Some(json!({"chainParameter": [{"key": "getEnergyFee", "value": price}, {"key": "getTransactionFee", "value": 1}]}))
                }
                _ if !path.ends_with("constantcontract") => None,
                _ if data.starts_with("313ce567") => Some(crate::tron::fake::returned(&U256::from(6).to_be_bytes::<32>())),
                _ => Some(crate::tron::fake::returned(&[])),
            }
        })
    };
    assert_eq!(unmet(at(500), "tron:usdt", Stage::BeforePaying).await, []);
    assert_eq!(unmet(at(501), "tron:usdt", Stage::BeforePaying).await, [(Precondition::Redeemer, "gas_limit_too_low")]);
    let record = record("tron:usdt", Address::from([0x5a; 20]));
    for (limit, expected) in [(99_999_999, vec![(Precondition::Redeemer, "gas_limit_too_high")]), (100_000_000, vec![])] {
        let policy = Policy::from_json(format!(r#"{{"tron_fee_limit": {limit}}}"#).as_bytes()).unwrap();
        assert_eq!(unmet_of(at(100), &record, Stage::BeforePaying, &policy).await, expected);
    }
}

/// 200,000 units of energy at 100 sun.
#[tokio::test(start_paused = true)]
async fn a_payout_in_coins_is_worth_more_than_its_redemption() {
    let mut record = record("tron:trx", Address::from([0x5a; 20]));
    for (payout, expected) in [(20_000_000, vec![(Precondition::Payout, "fee_above_payout")]), (20_000_001, vec![])] {
        record.destination_swap.amount = U256::from(payout);
        let found = unmet_of(calls(&[], |_| None), &record, Stage::BeforePaying, &Policy::default()).await;
        assert_eq!(found, expected, "{payout}");
    }
}

/// What `/wallet/getaccount` shows of an account whose permission 2 has these keys of weight 1, on these hosts.
fn account(
    hosts: &'static [&'static str],
    threshold: u64,
    keys: &[[u8; 20]],
) -> impl Fn(&str, &str) -> Option<serde_json::Value> + Send + Sync + use<> {
    let keys: Vec<_> = keys.iter().map(|key| json!({"address": format!("41{}", hex((*key).into())), "weight": 1})).collect();
    // What the active permission of a new account allows.
    let operations = format!("7fff1fc0033e{}", "00".repeat(26));
    let answer = json!({"balance": 1_000_000_000_u64,
        "active_permission": [{"type": "Active", "id": 2, "threshold": threshold, "operations": operations, "keys": keys}]});
    move |host, path| (path == "/wallet/getaccount" && hosts.contains(&host)).then(|| answer.clone())
}

const ALL: [&str; 3] = ["a.example", "b.example", "c.example"];

#[tokio::test(start_paused = true)]
async fn the_keys_of_the_account_that_redeems_are_asked_for() {
    let (a, b) = ([0xa; 20], [0xb; 20]);
    let permission = Permission::new(2).with_keys(2, [(Address::from(a), 1), (Address::from(b), 1)]);
    let record = record("tron:usdt", Address::from([0x5a; 20]));
    let policy = Policy::default();
    let ask = async |permission: Option<&Permission>, honest: &[[u8; 20]], liars: &'static [&'static str]| {
        let (all, lie) = (account(&ALL, 2, honest), account(liars, 9, &[]));
        let fake = calls_and(&[], |_| None, move |host, path| lie(host, path).or_else(|| all(host, path)));
        unmet_under(fake, &record, Stage::BeforePaying, &policy, permission).await
    };
    let refused = [(Precondition::Redeemer, "permission_mismatch")];
    assert_eq!(ask(None, &[a, b], &[]).await, []);
    assert_eq!(ask(Some(&permission), &[a, b], &[]).await, []);
    assert_eq!(ask(Some(&permission), &[a], &[]).await, refused);
    for liar in [&ALL[..1], &ALL[1..2], &ALL[2..]] {
        assert_eq!(ask(Some(&permission), &[a, b], liar).await, [], "one liar refuses nothing");
        assert_eq!(ask(Some(&permission), &[a], liar).await, refused, "and allows nothing");
    }
}

/// What is prepared from the chain, and what is asked before an order is paid, is under the permission of the owner's account.
#[tokio::test(start_paused = true)]
async fn the_permission_of_the_owners_account_holds_for_payment_refund_and_redemption() {
    let (a, b) = ([0xa; 20], [0xb; 20]);
    let permission = Permission::new(2).with_keys(2, [(Address::from(a), 1), (Address::from(b), 1)]);
    let under = |fake, count| crate::tron::fake::nodes(fake, count).with_permission("tron", permission.clone());
    let says = |unsigned: countersign::Unsigned| unsigned.summary().to_string().contains("permission 2");
    let owner = order(WITHOUT_APPROVAL).deposit().sender.to_string();
    let paid = countersign::Verified::Tron(order(WITHOUT_APPROVAL));
    let held = account(&ALL, 2, &[a, b]);
    let fake = tron(WITHOUT_APPROVAL).lying(move |host, path, _| held(host, path));
    let policy = Policy::default();
    let nodes = under(fake, 3);
    let refund = recover::refund(
        &countersign_testkit::recover::record::<countersign::tron::Tron>("tron-record-native-v3", |_| {}).unwrap(),
        recover::Leg::Source,
        countersign_testkit::registry(),
    )
    .unwrap();
    let refund = Recovery::Tron(refund);
    assert!(says(nodes.prepare_recovery(&refund, "tron", &owner, Speed::Normal, &policy).await.unwrap()));
    assert!(says(nodes.prepare_own(&paid, "tron", &owner, Speed::Normal, &policy).await.unwrap()));

    let record = record("tron:usdt", Address::from([0x5a; 20]));
    for (keys, expected) in [(vec![a, b], vec![]), (vec![a], vec![(Precondition::Redeemer, "permission_mismatch")])] {
        let held = account(&ALL, 2, &keys);
        let fake = calls_and(&[], |_| None, held);
        let account = Address::from([0x77; 20]).to_string();
        let ends = Ends::of_record(&record, countersign_testkit::registry()).redeemed_by(Some(&account));
        let found = under(fake, 3).preconditions(&ends, Stage::BeforePaying, Speed::Normal, &policy).await;
        let unmet: Vec<_> = found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect();
        assert_eq!(unmet, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_payment_is_sent_only_if_its_keys_can_sign_for_the_account() {
    let keys = [1_u8, 2].map(|byte| countersign::tron::Key::from_bytes(&[byte; 32]).unwrap());
    let [a, b] = [&keys[0], &keys[1]].map(|key| key.address());
    let signed = |permission: Option<Permission>, keys: &[&countersign::tron::Key]| {
        let mut calls =
            TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_800_003_600_000), UnixMillis::from_millis(1_800_000_000_000));
        calls.permission = permission;
        let mut unsigned = order(WITHOUT_APPROVAL).prepare(FundingPath::SelfFunded(calls)).unwrap();
        keys.iter().for_each(|key| unsigned.sign(key).unwrap());
        countersign::Signed::from(unsigned.finish().unwrap())
    };
    let two = Permission::new(2).with_keys(2, [(a.into(), 1), (b.into(), 1)]);
    let by_two = signed(Some(two), &[&keys[0], &keys[1]]);
    let check = async |signed: &countersign::Signed, threshold: u64, held: &[[u8; 20]]| {
        let held = account(&ALL, threshold, held);
        let fake = tron(WITHOUT_APPROVAL).lying(move |host, path, _| held(host, path));
        crate::tron::fake::nodes(fake, 3).check_signed(signed).await
    };
    assert!(check(&by_two, 2, &[**a, **b]).await.is_ok());
    for (threshold, held) in [(3, vec![**a, **b, [9; 20]]), (1, vec![**a]), (2, vec![])] {
        match check(&by_two, threshold, &held).await {
            Err(NodeError::Refused(refusal)) => assert_eq!(refusal.code(), Code::PermissionMismatch),
            other => panic!("{other:?}"),
        }
    }
    // The owner's own key under the owner permission asks nothing of the chain.
    let own = countersign_testkit::key::<countersign::tron::Tron>(&crate::tron::fake::case(countersign::Family::Tron, WITHOUT_APPROVAL));
    let nodes = crate::tron::fake::nodes(tron(WITHOUT_APPROVAL), 3);
    nodes.check_signed(&signed(None, &[&own])).await.unwrap();
    assert!(nodes.transport().seen.lock().unwrap().is_empty());
}
