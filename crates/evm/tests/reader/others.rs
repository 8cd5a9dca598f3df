//! Sending a transaction, and fees.

use countersign_core::chains::ChainProfile;
use countersign_core::reader::{Equal, Fault, Known, Observation, Reader, Request, Sent, Submission};
use countersign_core::{Code, Network, Policy};
use countersign_evm::alloy_primitives::B256;
use countersign_evm::alloy_primitives::hex;
use countersign_evm::reader::{self, Broadcast, OnChain, SentTransaction, fees};
use countersign_evm::{Evm, Fees, TxContext};
use countersign_testkit::chain::evm::{answer_with, hash_of};
use serde_json::{Value, json};

use super::drive;

pub(crate) fn submission() -> Submission {
    let case = countersign_testkit::fixture::<Evm>("evm-chain-id-integer");
    let mut order = countersign_testkit::verified::<Evm>(&case).prepare(TxContext::eip1559(1, 30_000_000_000, 1)).unwrap();
    order.sign(&countersign_testkit::key::<Evm>(&case)).unwrap();
    let signed = order.finish().unwrap();
    let transaction = signed.transactions().pop().unwrap();
    Submission::new(&Network::Evm(1), &transaction.id, &hex::encode(&transaction.bytes))
}

#[test]
fn a_transaction_is_sent_to_no_other_chain() {
    let sent = std::cell::Cell::new(0);
    let send = |chain_id: u64, reply: Value, found: Value| {
        sent.set(0);
        drive::<Broadcast>(&submission(), &Known::default(), |_, _, request| {
            let Request::JsonRpc { method, .. } = request else { panic!("{request:?}") };
            answer_with(&match *method {
                "eth_chainId" => json!(format!("{chain_id:#x}")),
                "eth_sendRawTransaction" => {
                    sent.set(sent.get() + 1);
                    reply.clone()
                }
                "eth_getTransactionByHash" => found.clone(),
                other => panic!("{other}"),
            })
        })
        .0
        .map(Observation::into_output)
    };
    let id = submission().id;
    assert_eq!(send(10, json!(id), Value::Null).unwrap_err().code().name(), "node_wrong_chain");
    assert_eq!(sent.get(), 0);
    assert_eq!(send(1, json!(id), Value::Null), Ok(Sent::Accepted));
    let error = |code: i64| json!({"error": {"code": code, "message": "nonce too low"}});
    assert_eq!(send(1, error(-32_000), json!({"hash": id})), Ok(Sent::Accepted));
    assert_eq!(send(1, error(-32_000), Value::Null), Ok(Sent::Rejected("nonce too low".to_owned())));
    // It is unknown what the endpoint did with it.
    assert_eq!(send(1, error(-32_005), Value::Null).unwrap_err().code().name(), "node_error");
    assert_eq!(send(1, json!(hash_of(1)), Value::Null).unwrap_err().code().name(), "node_malformed");
    assert_eq!(send(1, error(-32_000), json!({"hash": hash_of(1)})), Ok(Sent::Rejected("nonce too low".to_owned())));
    let wrong = Submission::new(&Network::Evm(10), &id, &submission().payload);
    assert!(Reader::<Broadcast>::new(&wrong, &Known::default()).is_err());
}

/// The highest price is the policy's, or else that of the chain's row.
#[test]
fn a_price_limit_is_the_policys_or_the_chains() {
    let gwei = |gwei: u128| gwei * 1_000_000_000;
    let limit = |policy: &str, chain: &str, id| {
        fees::limit(&Policy::from_json(policy.as_bytes()).unwrap(), ChainProfile::of(chain, &Network::Evm(id)))
    };
    for (chain, id, expected) in
        [("ethereum", 1, 1_000), ("base", 8_453, 20), ("base_sepolia", 84_532, 20), ("bnbchain", 56, 50), ("monad", 143, 1_000)]
    {
        assert_eq!(limit("{}", chain, id), gwei(expected), "{chain}");
        assert_eq!(limit(r#"{"evm_gas_price": 7}"#, chain, id), gwei(7), "{chain}");
        assert_eq!(limit(r#"{"evm_gas_price": 5000}"#, chain, id), gwei(5_000), "{chain}");
    }
    let fees = |gwei: u128| Fees::Legacy { gas_price: gwei * 1_000_000_000 };
    assert!(fees::check(fees(100), gwei(100)).is_ok() && fees::check(fees(101), gwei(100)).is_err());
}

/// Nodes replace a transaction only if both of its fees are ten percent higher. What is stuck offers the chain's own tips.
#[test]
fn fees_that_displace_an_unknown_transaction_exceed_the_chains_own() {
    let gwei = |gwei: u128| gwei * 1_000_000_000;
    let limit = gwei(100);
    let eip1559 = |cap, tip| Fees::Eip1559 { max_fee_per_gas: cap, max_priority_fee_per_gas: tip };
    // A cap of twice the base fee: the price that is paid is below it.
    assert_eq!(fees::displacing(eip1559(gwei(40), gwei(1)), limit), eip1559(gwei(80), gwei(20)));
    assert_eq!(fees::displacing(eip1559(gwei(40), gwei(30)), limit), eip1559(gwei(80), gwei(60)));
    // The policy bounds the cap, and the cap the tip.
    assert_eq!(fees::displacing(eip1559(gwei(70), gwei(60)), limit), eip1559(gwei(100), gwei(100)));
    assert_eq!(fees::displacing(Fees::Legacy { gas_price: gwei(70) }, limit), Fees::Legacy { gas_price: gwei(100) });
    assert_eq!(fees::displacing(Fees::Legacy { gas_price: 7 }, limit), Fees::Legacy { gas_price: 14 });
    // What is above the policy already is not raised; the check refuses it.
    let above = fees::displacing(eip1559(u128::MAX, u128::MAX), limit);
    assert_eq!(above, eip1559(u128::MAX, u128::MAX));
    assert!(fees::check(above, limit).is_err());
}

/// The transaction and its hash are alloy's. Under another id it is a lie, whatever the endpoint states as its hash.
#[test]
fn a_transaction_is_believed_by_its_own_hash_only() {
    let honest = crate::received::signed_by_alloy();
    let id: B256 = honest["hash"].as_str().unwrap().parse().unwrap();
    let asked = |id: B256, shown: &Value| {
        let subject = OnChain { chain_id: 1, subject: SentTransaction(id) };
        drive::<reader::Sent>(&subject, &Known::default(), |_, _, request| {
            let Request::JsonRpc { method, .. } = request else { panic!("{request:?}") };
            answer_with(&if *method == "eth_chainId" { json!("0x1") } else { shown.clone() })
        })
        .0
        .map(|found| found.into_output().0.map(|Equal(found)| found.map(|found| *found.tx_hash())).map_err(|refusal| refusal.code()))
    };
    let with = |changes: &[(&str, Option<Value>)]| {
        let mut shown = honest.clone();
        for (member, value) in changes {
            let members = shown.as_object_mut().unwrap();
            match value {
                Some(value) => members.insert((*member).to_owned(), value.clone()),
                None => members.remove(*member),
            };
        }
        shown
    };
    assert_eq!(asked(id, &honest), Ok(Ok(Some(id))));
    assert_eq!(asked(id, &Value::Null), Ok(Ok(None)));
    let other = B256::repeat_byte(7);
    let stated = Some(json!(other));
    for (id, shown) in [
        (id, with(&[("value", Some(json!("0x7")))])),
        (id, with(&[("value", Some(json!("0x7"))), ("hash", None)])),
        (other, with(&[("hash", stated.clone())])),
        (other, with(&[("hash", None)])),
        // What no node returns of a transaction that was sent is no verdict either.
        (
            id,
            with(&[
                ("r", None),
                ("s", None),
                ("v", None),
                ("yParity", None),
                ("from", Some(json!("0x0101010101010101010101010101010101010101"))),
            ]),
        ),
        (id, with(&[("gasLimit", Some(json!("0x1"))), ("gas", None)])),
    ] {
        assert!(matches!(asked(id, &shown), Err(Fault::Malformed(_))), "{shown}");
    }
    // Its own hash counts, whatever is stated.
    assert_eq!(asked(id, &with(&[("hash", stated)])), Ok(Ok(Some(id))));
    assert_eq!(asked(id, &with(&[("type", Some(json!("0x4")))])), Ok(Err(Code::TransactionMismatch)));
}
