//! Whether a transaction of another account paid an order, from honest and lying nodes.

use countersign::solana::solana_instruction::{AccountMeta, Instruction};
use countersign::{Code, Policy, Verified, json};
use countersign_json::line::Case as JsonCase;
use countersign_node::NodeError;
use countersign_testkit::chain::solana::{case, transaction};
use serde_json::{Value, json};

use super::fake::{mined_inside, name, nodes};

const FORM: &str = "solana-record-token";

fn order() -> Verified {
    let case = case(FORM);
    let value = json::parse(case.input.as_bytes()).unwrap();
    JsonCase::from_value(&value).and_then(|inner| inner.verify(case.registry, &Policy::default())).unwrap()
}

/// What a node returns for a transaction in which another program calls the HTLC, and the id of the transaction.
fn shown(change: impl FnOnce(&mut Instruction)) -> (Value, String) {
    let Verified::Solana(order) = order() else { panic!("an order on Solana") };
    let deposit = order.deposit();
    let roles = deposit.transaction.accounts.roles.iter();
    let accounts = roles.map(|role| AccountMeta { pubkey: role.address, is_signer: role.signer, is_writable: role.writable });
    let mut called =
        Instruction { program_id: deposit.htlc.program, accounts: accounts.collect(), data: deposit.terms.encode(&deposit.htlc) };
    change(&mut called);
    let mined = mined_inside(400_000_000, called);
    (transaction(&mined), name(&mined))
}

async fn paid(answers: &[&Value], id: &str) -> Result<bool, NodeError> {
    let answers: Vec<Value> = answers.iter().map(|answer| (*answer).clone()).collect();
    let count = answers.len();
    let chain = super::chain(FORM).lying(move |host, method, _| {
        let endpoint = usize::from(host.as_bytes()[0] - b'a');
        (method == "getTransaction").then(|| answers[endpoint].clone())
    });
    nodes(chain, count, FORM).find_payment(&order(), id).await
}

fn code(paid: Result<bool, NodeError>) -> Code {
    match paid {
        Err(NodeError::Refused(refusal)) => refusal.code(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_payment_of_another_account_is_what_enough_endpoints_show() {
    let ((honest, id), unknown) = (shown(|_| {}), Value::Null);
    // The same transaction, and another amount in the instruction that no signature covers.
    let (lying, same) = shown(|called| called.data[80] ^= 1);
    assert_eq!(id, same);
    for answers in [&[&honest][..], &[&honest, &honest], &[&honest, &lying, &honest], &[&unknown, &honest, &honest]] {
        assert!(paid(answers, &id).await.unwrap(), "{answers:?}");
    }
    assert_eq!(code(paid(&[&lying], &id).await), Code::TransactionMismatch);
    assert_eq!(code(paid(&[&lying, &honest, &lying], &id).await), Code::TransactionMismatch);
    assert!(!paid(&[&unknown], &id).await.unwrap() && !paid(&[&unknown, &honest, &unknown], &id).await.unwrap());
    // All disagree, so nothing is known about the payment.
    let disagree = paid(&[&honest, &lying, &unknown], &id).await.unwrap_err();
    assert!(!matches!(disagree, NodeError::Refused(_)), "{disagree:?}");
    let mut failed = honest.clone();
    failed["meta"]["err"] = json!({"InstructionError": [0, {"Custom": 1}]});
    assert_eq!(code(paid(&[&failed], &id).await), Code::TransactionMismatch);
    // An answer that does not say whether the transaction failed is the fault of the endpoint.
    failed["meta"].as_object_mut().unwrap().remove("err");
    assert!(!matches!(paid(&[&failed], &id).await, Ok(_) | Err(NodeError::Refused(_))));
    assert_eq!(code(paid(&[&honest], "0x12").await), Code::TransactionIdMalformed);
}
