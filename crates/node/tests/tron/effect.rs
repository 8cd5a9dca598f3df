//! Whether a transaction of another account paid an order, from honest and lying nodes.

use countersign::{Code, Family, Policy, Verified, json};
use countersign_json::line::Case as JsonCase;
use countersign_node::NodeError;
use countersign_testkit::{abi, registry};
use serde_json::{Value, json};

use super::fake::{Lying as _, Tron, bare, case, log, nodes, terms};
use countersign::tron::read;

const CASE: &str = "tron-record-native-v3";
const ID: [u8; 32] = [0x77; 32];

fn order() -> Verified {
    let case = case(Family::Tron, CASE);
    let value = json::parse(case.input.as_bytes()).unwrap();
    JsonCase::from_value(&value).and_then(|case| case.verify(registry(), &Policy::default())).unwrap()
}

/// What a node returns for the transaction of a contract with several owners that pays this amount.
fn info(more: u64) -> Value {
    let Verified::Tron(order) = order() else { panic!("an order on Tron") };
    let deposit = order.deposit();
    let swap_id = case(Family::Tron, CASE).json()["order"]["source_swap"]["swap_id"].as_str().unwrap().parse().unwrap();
    let amount = deposit.terms.amount + countersign::U256::from(more);
    let event = |name, data: &[u8]| log(deposit.initiate.to, &[name, swap_id, deposit.terms.secret_hash, amount.into()], data);
    // The destination data is empty.
    let events = [event(read::INITIATED, &[]), event(read::DESTINATION_DATA, &abi::bytes(&[]))];
    json!({"id": bare(ID), "blockNumber": 7, "receipt": {"result": "SUCCESS"}, "log": events})
}

async fn paid(answers: &[&Value], id: &str) -> Result<bool, NodeError> {
    let answers: Vec<Value> = answers.iter().map(|answer| (*answer).clone()).collect();
    let count = answers.len();
    let chain = Tron::funded(&terms().destination).lying(move |host, path, _| {
        let endpoint = usize::from(host.as_bytes()[0] - b'a');
        (path == "/wallet/gettransactioninfobyid").then(|| answers[endpoint].clone())
    });
    nodes(chain, count).find_payment(&order(), id).await
}

fn code(paid: Result<bool, NodeError>) -> Code {
    match paid {
        Err(NodeError::Refused(refusal)) => refusal.code(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_payment_of_another_account_is_what_enough_endpoints_show() {
    let id = bare(ID);
    let (honest, lying, unknown) = (info(0), info(1), json!({}));
    for answers in [&[&honest][..], &[&honest, &honest], &[&honest, &lying, &honest], &[&unknown, &honest, &honest]] {
        assert!(paid(answers, &id).await.unwrap(), "{answers:?}");
    }
    assert_eq!(code(paid(&[&lying], &id).await), Code::TransactionMismatch);
    assert_eq!(code(paid(&[&lying, &honest, &lying], &id).await), Code::TransactionMismatch);
    assert!(!paid(&[&unknown], &id).await.unwrap() && !paid(&[&unknown, &honest, &unknown], &id).await.unwrap());
    // All disagree, so nothing is known about the payment.
    let disagree = paid(&[&honest, &lying, &unknown], &id).await.unwrap_err();
    assert!(!matches!(disagree, NodeError::Refused(_)), "{disagree:?}");
    // The answer for another transaction is the fault of the endpoint.
    let other = bare([0x78; 32]);
    assert!(!matches!(paid(&[&honest], &other).await, Ok(_) | Err(NodeError::Refused(_))));
    assert_eq!(code(paid(&[&honest], "0x12").await), Code::TransactionIdMalformed);
}
