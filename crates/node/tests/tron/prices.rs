//! One endpoint of three lies about energy, bandwidth, prices or blocks: in any place and for any transaction, the fee limit and the
//! reference block are those that the honest ones lead to.

use countersign::recover::Recovery;
use countersign::tron::TronTransaction;
use countersign::tron::recover::{self, Leg};
use countersign::tron::{Address, Tron as Family};
use countersign::{Policy, SecretHash, Unsigned};
use countersign_node::{NodeError, Nodes, Speed};
use countersign_testkit::recover::record;
use countersign_testkit::registry;
use serde_json::{Value, json};

use crate::tron::fake::{Fake, Lying, SECRET, SOLID, nodes};
use crate::tron::replace::{redemption, transaction, tron};

const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];

type Lie = Box<dyn Fn(&str, &Value) -> Option<Value> + Send + Sync>;

fn lies() -> Vec<(String, Lie)> {
    let mut all: Vec<(String, Lie)> = Vec::new();
    for number in [0, 1, 1_000_000_000, i64::MAX] {
        for key in ["getEnergyFee", "getTransactionFee"] {
            let other = if key == "getEnergyFee" { ("getTransactionFee", 1_000) } else { ("getEnergyFee", 100) };
            let answer = json!({"chainParameter": [{"key": key, "value": number}, {"key": other.0, "value": other.1}]});
            all.push((format!("{key}: {number}"), Box::new(move |path, _| (path == "/wallet/getchainparameters").then(|| answer.clone()))));
        }
        all.push((
            format!("balance {number}"),
            Box::new(move |path, _| (path == "/wallet/getaccount").then(|| json!({"balance": number}))),
        ));
    }
    // Another block under the number that is asked for, and an irreversible block that is old.
    all.push((
        "another block".to_owned(),
        Box::new(|path, _| {
            let mut block = tron(SOLID).block(SOLID);
            block["blockID"] = json!(format!("{:016x}{}", SOLID, "ab".repeat(24)));
            (path == "/walletsolidity/getblockbynum").then_some(block)
        }),
    ));
    all.push((
        "an old block".to_owned(),
        Box::new(|path, _| (path == "/walletsolidity/getnowblock").then(|| tron(SOLID).block(SOLID - 5_000))),
    ));
    for method in
        ["/wallet/getchainparameters", "/wallet/getaccountresource", "/walletsolidity/getblockbynum", "/walletsolidity/getnowblock"]
    {
        for answer in [Value::Null, json!({"Error": "busy"}), json!([])] {
            all.push((format!("{method}: {answer}"), Box::new(move |asked, _| (asked == method).then(|| answer.clone()))));
        }
    }
    all
}

fn connected(liar: Option<usize>, lie: Lie) -> Nodes<Fake> {
    let told = move |host: &str, path: &str, question: &Value| {
        (liar.map(|place| HOSTS[place]) == Some(host)).then(|| lie(path, question)).flatten()
    };
    nodes(tron(SOLID).lying(told), 3)
}

fn refund() -> Recovery {
    let hash = SecretHash::of(&SECRET).to_string();
    let record = record::<Family>("tron-record-native-v3", |order| order["source_swap"]["secret_hash"] = hash.into()).unwrap();
    Recovery::Tron(recover::refund(&record, Leg::Source, registry()).unwrap())
}

async fn prepared(nodes: &Nodes<Fake>, stage: &str) -> Result<TronTransaction, NodeError> {
    let (sender, policy) = (Address::from([0xa1; 20]).to_string(), Policy::default());
    let unsigned: Unsigned = match stage {
        "redemption" => nodes.prepare_recovery(&redemption(), "tron", &sender, Speed::Normal, &policy).await?,
        "urgent" => nodes.prepare_urgent(&redemption(), "tron", &sender, Speed::Fast, &policy).await?,
        "refund" => nodes.prepare_recovery(&refund(), "tron", &sender, Speed::Normal, &policy).await?,
        _ => {
            let sent = nodes.submission("tron", "", "")?;
            nodes.prepare_replacement(&redemption(), "tron", &sender, &sent, Speed::Fast, &policy).await?
        }
    };
    Ok(transaction(unsigned))
}

#[tokio::test(start_paused = true)]
async fn the_fee_limit_and_the_reference_are_a_quorums_own_at_every_stage() {
    for stage in ["redemption", "urgent", "refund", "replacement"] {
        let honest = prepared(&connected(None, Box::new(|_, _| None)), stage).await.unwrap();
        for place in 0..3 {
            for (what, lie) in lies() {
                let lied = prepared(&connected(Some(place), lie), stage).await;
                let lied = lied.unwrap_or_else(|error| panic!("{stage}, {what}, endpoint {place}: {error}"));
                assert_eq!(
                    (lied.raw.fee_limit, &lied.raw_data),
                    (honest.raw.fee_limit, &honest.raw_data),
                    "{stage}, {what}, endpoint {place}"
                );
            }
        }
    }
    // What a payment refers to.
    let calls = |nodes: Nodes<Fake>| async move { nodes.tron("tron").unwrap().calls().await.unwrap() };
    let honest = calls(connected(None, Box::new(|_, _| None))).await;
    for place in 0..3 {
        for (what, lie) in lies() {
            assert_eq!(calls(connected(Some(place), lie)).await, honest, "payment, {what}, endpoint {place}");
        }
    }
}
