//! The same chain, read by the caller: what `countersign_batch::objects` decodes from bytes is the state that the node crate reads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_batch::objects::{self, Documents, Record};

use super::*;
use crate::fake::{Mined, case, transaction};

/// The record of a form, with the terms of these tests.
fn record(form: &str) -> Record {
    let case = case(form);
    let line: Value = serde_json::from_str(&case.input).unwrap();
    let [request, response, order] = ["request", "response", "order"].map(|member| line[member].to_string());
    let documents = Documents::new(request.as_bytes(), response.as_bytes()).with_record(Some(order.as_bytes()));
    let policy = countersign::Policy::default();
    let mut record = objects::verify_record(&documents, case.registry, &policy).unwrap();
    record.verified.terms = terms(form);
    record
}

/// What a caller reads of a chain.
fn evidence(chain: &Chain, record: &Record) -> Value {
    let places = objects::htlc_terms(record, "destination").unwrap();
    let account = |address: &Option<String>| address.as_ref().and_then(|address| chain.accounts.get(&address.parse().unwrap()));
    let swap = account(&places.account);
    let vault = account(&places.vault).map(|vault| u64::from_le_bytes(vault.data[64..72].try_into().unwrap()));
    json!({
        "owner": swap.map(|swap| swap.owner.to_string()),
        "data": swap.map(|swap| STANDARD.encode(&swap.data)),
        "holds": vault.or(swap.map(|swap| swap.lamports)).unwrap_or_default().to_string(),
        "slot": NEWEST,
        "transactions": chain.mined.iter().map(transaction).collect::<Vec<_>>(),
    })
}

fn without_transactions(mut evidence: Value) -> Value {
    evidence.as_object_mut().unwrap().remove("transactions");
    evidence
}

fn read(record: &Record, evidence: &Value) -> objects::Htlc {
    objects::read_htlc(record, "destination", evidence.to_string().as_bytes()).unwrap()
}

#[tokio::test]
async fn evidence_from_bytes_gives_the_state_that_is_read_from_nodes() {
    for form in FORMS {
        let (terms, record) = (terms(form).destination, record(form));
        let (htlc, swap) = swap_of(&terms);
        let [redeem, refund] =
            [htlc.redeem(&swap, Address::from(SPONSOR), &SECRET).unwrap(), htlc.refund(&swap, Address::from(SPONSOR)).unwrap()];
        let mut inside = Chain::ended(&terms, &redeem);
        *inside.mined.last_mut().unwrap() = mined_inside(INITIATED + 41, redeem.clone());
        // Lamports sent to the closed account do not hide the end.
        let mut revived = Chain::ended(&terms, &redeem);
        revived.accounts.insert(htlc.swap_account(&swap).unwrap(), system_account(1));
        let mut without_end = Chain::ended(&terms, &refund);
        without_end.mined.pop();
        let poor = |mut chain: Chain| {
            if let Some(vault) = htlc.vault() {
                chain.account_mut(vault).data[64..72].fill(0);
            }
            chain
        };
        for chain in [
            Chain::funded(&terms),
            poor(Chain::funded(&terms)),
            with_swap(form, |swap| swap.amount -= 1),
            Chain::ended(&terms, &redeem),
            Chain::ended(&terms, &refund),
            inside,
            revived,
            without_end,
            Chain::empty(&terms),
        ] {
            let from_bytes = read(&record, &evidence(&chain, &record));
            let from_nodes = objects::htlc(&state(chain, form).await);
            assert_eq!(from_bytes, from_nodes, "{form}");
        }
    }
}

#[test]
fn transactions_are_only_needed_where_the_account_says_too_little() {
    for form in FORMS {
        let (terms, record) = (terms(form).destination, record(form));
        let (htlc, swap) = swap_of(&terms);
        let open = read(&record, &without_transactions(evidence(&Chain::funded(&terms), &record)));
        let is_client_token = !is_audited(&htlc) && htlc.token.is_some();
        assert_eq!(open.state, if is_client_token { "unclear" } else { "locked" }, "{form}");
        let refund = htlc.refund(&swap, Address::from(SPONSOR)).unwrap();
        let ended = read(&record, &without_transactions(evidence(&Chain::ended(&terms, &refund), &record)));
        assert!(ended.reason.unwrap().contains("does not exist"), "{form}");
    }
}

#[test]
fn transactions_that_are_malformed_or_failed_are_refused_where_they_are() {
    let (terms, record) = (terms(FORMS[0]).destination, record(FORMS[0]));
    let (htlc, swap) = swap_of(&terms);
    let refund = htlc.refund(&swap, Address::from(SPONSOR)).unwrap();
    let honest = evidence(&Chain::ended(&terms, &refund), &record);
    let mut reversed: Vec<Mined> = Chain::ended(&terms, &refund).mined;
    reversed.reverse();
    let reversed: Vec<_> = reversed.iter().map(transaction).collect();
    for (pointer, value, code, at) in [
        ("/transactions/1/meta/err", json!({"InstructionError": []}), "transaction_mismatch", "/transactions/1/meta/err"),
        ("/transactions/1/transaction/0", json!("AAAA"), "transaction_malformed", "/transactions/1/transaction"),
        ("/transactions/1/transaction/0", json!("-"), "wrong_type", "/transactions/1/transaction/0"),
        ("/transactions/1/slot", json!("1"), "wrong_type", "/transactions/1/slot"),
        ("/transactions/1", Value::Null, "wrong_type", "/transactions/1"),
        ("/transactions", Value::Array(reversed), "wrong_type", "/transactions"),
    ] {
        let mut changed = honest.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        let failure = objects::read_htlc(&record, "destination", changed.to_string().as_bytes()).unwrap_err();
        assert_eq!((failure.code, &*failure.at), (code, format!("/evidence{at}").as_str()), "{failure}");
    }
    let wrong = htlc.redeem(&swap, Address::from(SPONSOR), &[1; 32]).unwrap();
    let wrong = evidence(&Chain::ended(&terms, &wrong), &record);
    let failure = objects::read_htlc(&record, "destination", wrong.to_string().as_bytes()).unwrap_err();
    assert_eq!(failure.code, "secret_wrong");
}
