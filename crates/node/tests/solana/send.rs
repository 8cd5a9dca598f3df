//! Sending transactions, and describing accounts and programs.

use std::collections::BTreeMap;

use countersign::solana::address::{TOKEN_PROGRAM, associated_token_account};
use countersign::solana::{Address, Key};
use countersign::{BroadcastTransaction, U256, Unsigned};
use countersign_client::TransportErrorKind;
use countersign_node::NodeError;
use countersign_node::solana::TransactionStatus;
use serde_json::{Value, json};

use crate::solana::fake::{
    Account, Answering, Chain, FINALIZED, FORMS, Front, RENT, account, blockhash, case, nodes, swap_of, system_account, terms,
    token_account,
};
use crate::solana::wallet::{prepare, scene};

/// A signed transaction, as it is stored.
async fn kept(form: &str) -> BroadcastTransaction {
    let (unsigned, _) = prepare(scene(form).chain, form).await.unwrap();
    let Unsigned::Solana(mut unsigned) = unsigned else { panic!("an order of Solana") };
    let key: Key = case(form).secret_key().unwrap().parse().unwrap();
    unsigned.sign(&key).unwrap();
    let signed = unsigned.finish().unwrap();
    let [transaction] = countersign::Signed::from(signed).broadcasts().try_into().unwrap();
    transaction
}

async fn send(chain: impl Into<Front>, count: usize, transaction: &BroadcastTransaction) -> Result<(), NodeError> {
    nodes(chain, count, FORMS[2]).solana("solana_testnet").unwrap().broadcast(&transaction.id, &transaction.payload).await
}

fn empty() -> Chain {
    Chain::empty(&terms(FORMS[2]).destination)
}

fn landed(err: Value) -> Value {
    json!({"context": {"slot": 1}, "value": [{"slot": 7, "confirmations": null, "err": err, "confirmationStatus": "finalized"}]})
}

#[tokio::test(start_paused = true)]
async fn a_transaction_is_sent_once_however_often() {
    let transaction = kept(FORMS[2]).await;
    let honest = nodes(empty(), 2, FORMS[2]);
    for _ in 0..2 {
        honest.solana("solana_testnet").unwrap().broadcast(&transaction.id, &transaction.payload).await.unwrap();
    }
    let seen = honest.transport().seen.lock().unwrap();
    let sent: Vec<_> = seen.iter().filter(|(_, method, _)| method == "sendTransaction").collect();
    assert_eq!(sent.len(), 4);
    assert!(sent.iter().all(|(_, _, params)| params[1] == json!({"encoding": "base64", "skipPreflight": true, "maxRetries": 0})));
    assert!(sent.iter().all(|(_, _, params)| params[0] == sent[0].2[0]));
}

#[tokio::test(start_paused = true)]
async fn rejected_and_unknown_are_told_apart() {
    let transaction = kept(FORMS[2]).await;
    let error = |code: i64| json!({"error": {"code": code, "message": "Transaction signature verification failure"}});
    let refuses = |code: i64| empty().lying(move |_, method, _| (method == "sendTransaction").then(|| error(code)));
    assert_eq!(send(refuses(-32_003), 2, &transaction).await.unwrap_err().code().name(), "transaction_rejected");
    assert_eq!(send(refuses(-32_005), 2, &transaction).await.unwrap_err().code().name(), "node_disagree");
    // An error about a transaction that is on chain already is not a rejection.
    let known = empty().lying(move |_, method, _| match method {
        "sendTransaction" => Some(error(-32_002)),
        "getSignatureStatuses" => Some(landed(Value::Null)),
        _ => None,
    });
    assert!(send(known, 1, &transaction).await.is_ok());
    // Too few can accept the transaction, and one rejects it.
    let half = refuses(-32_003).answering(|host| (host == "b.example").then_some(Err(TransportErrorKind::Timeout)));
    assert_eq!(send(half, 2, &transaction).await.unwrap_err().code().name(), "transaction_rejected");
    let one = empty().lying(move |host, method, _| (host == "a.example" && method == "sendTransaction").then(|| error(-32_003)));
    assert!(send(one, 3, &transaction).await.is_ok());
    let other_id = empty().lying(|_, method, _| (method == "sendTransaction").then(|| json!("1".repeat(64))));
    assert_eq!(send(other_id, 1, &transaction).await.unwrap_err().code().name(), "node_malformed");
}

#[tokio::test(start_paused = true)]
async fn only_the_transaction_that_was_kept_is_sent() {
    let transaction = kept(FORMS[2]).await;
    let mut others = vec![transaction.clone(), transaction.clone(), transaction.clone(), transaction];
    others[0].id = "1".repeat(64);
    others[1].payload.push_str("00");
    others[2].payload.truncate(100);
    others[3].payload = "zz".to_owned();
    for other in others {
        let nodes = nodes(empty(), 1, FORMS[2]);
        let error = nodes.solana("solana_testnet").unwrap().broadcast(&other.id, &other.payload).await.unwrap_err();
        assert_eq!(error.code().name(), "transaction_mismatch");
        assert!(nodes.transport().seen.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_lands_waits_or_expires() {
    let id = kept(FORMS[2]).await.id.parse().unwrap();
    let status = async |chain: Chain, last: u64| nodes(chain, 2, FORMS[2]).solana("solana_testnet").unwrap().status(id, last).await;
    assert_eq!(status(empty(), 300_000_000).await.unwrap(), TransactionStatus::Pending);
    assert_eq!(status(empty(), 299_999_999).await.unwrap(), TransactionStatus::Expired);
    for (err, success) in [(Value::Null, true), (json!({"InstructionError": [0, "Custom"]}), false)] {
        let chain = empty().lying(move |_, method, _| (method == "getSignatureStatuses").then(|| landed(err.clone())));
        assert_eq!(status(chain, 0).await.unwrap(), TransactionStatus::Landed { slot: 7, success, is_finalized: true });
    }
    let one = empty().lying(|host, method, _| (host == "a.example" && method == "getSignatureStatuses").then(|| landed(Value::Null)));
    assert_eq!(status(one, 0).await.unwrap_err().code().name(), "node_disagree");
}

#[tokio::test(start_paused = true)]
async fn balances_are_agreed_on() {
    let form = FORMS[3];
    let destination = terms(form).destination;
    let owner = account(&destination.initiator);
    let case = case(form);
    let asset = |id: &str| case.registry.asset(id).unwrap().clone();
    let mint: Address = destination.token.as_deref().unwrap().parse().unwrap();
    let mut chain = Chain::empty(&destination);
    chain.accounts.insert(owner, system_account(123));
    chain.accounts.insert(associated_token_account(owner, mint, TOKEN_PROGRAM).unwrap(), token_account(mint, owner, 45));
    let honest = nodes(chain, 2, form);
    assert_eq!(honest.balance(&asset("solana_testnet:sol"), &owner.to_string()).await.unwrap(), U256::from(123));
    assert_eq!(honest.balance(&asset("solana_testnet:usdc"), &owner.to_string()).await.unwrap(), U256::from(45));
    let error = honest.balance(&asset("solana_testnet:sol"), "not an address").await.unwrap_err();
    assert_eq!(error.code().name(), "address_malformed");
    let empty = nodes(Chain::empty(&destination), 1, form);
    assert_eq!(empty.balance(&asset("solana_testnet:usdc"), &owner.to_string()).await.unwrap(), U256::ZERO);
    let head = empty.head("solana_testnet", 0).await.unwrap();
    assert_eq!((head.height.get(), head.hash), (FINALIZED, blockhash().to_string()));
}

#[tokio::test(start_paused = true)]
async fn a_program_is_described_for_pinning() {
    let form = FORMS[3];
    let destination = terms(form).destination;
    let (htlc, swap) = swap_of(&destination);
    let loader: Address = "BPFLoaderUpgradeab1e11111111111111111111111".parse().unwrap();
    let (code, authority) = (Address::from([0x55; 32]), Address::from([0x66; 32]));
    let described = async |data: Vec<u8>| {
        let mut chain = Chain::funded(&destination);
        chain.accounts.insert(htlc.program, Account { lamports: RENT, owner: loader, data: [&[2, 0, 0, 0], code.as_ref()].concat() });
        chain.accounts.insert(code, Account { lamports: RENT, owner: loader, data });
        let swap_account = htlc.swap_account(&swap);
        nodes(chain, 2, form).solana("solana_testnet").unwrap().describe_program(htlc.program, swap_account).await
    };
    let slot = 77_u64.to_le_bytes();
    let one = described([&[3, 0, 0, 0], slot.as_slice(), &[1], authority.as_ref(), b"code", &[0; 12]].concat()).await.unwrap();
    assert_eq!((one.deploy_slot, one.upgrade_authority, one.generation), (Some(77), Some(authority), Some(htlc.generation)));
    let shorter = described([&[3, 0, 0, 0], slot.as_slice(), &[0], authority.as_ref(), b"code"].concat()).await.unwrap();
    assert_eq!((one.code_hash, shorter.upgrade_authority), (shorter.code_hash, None));
    let other = described([&[3, 0, 0, 0], slot.as_slice(), &[0], authority.as_ref(), b"c0de"].concat()).await.unwrap();
    assert_ne!(one.code_hash, other.code_hash);
    assert_eq!(described(vec![3, 0, 0, 0]).await.unwrap_err().code().name(), "node_disagree");

    // The description that is stored next to the registry.
    let mut chain = Chain::funded(&destination);
    chain.accounts.insert(htlc.program, Account { lamports: RENT, owner: loader, data: [&[2, 0, 0, 0], code.as_ref()].concat() });
    let data = [&[3, 0, 0, 0], slot.as_slice(), &[1], authority.as_ref(), b"code"].concat();
    chain.accounts.insert(code, Account { lamports: RENT, owner: loader, data });
    let description = nodes(chain, 2, form).describe(case(form).registry.asset("solana_testnet:usdc").unwrap()).await.unwrap();
    let facts: BTreeMap<_, _> = description.facts().collect();
    assert_eq!((facts["deploy_slot"], facts["upgrade_authority"]), ("77", authority.to_string().as_str()));
    assert_eq!(facts["code_hash"], hex::encode(one.code_hash.unwrap()));

    let none = nodes(Chain::empty(&destination), 1, form);
    let none = none.solana("solana_testnet").unwrap().describe_program(htlc.program, None).await.unwrap();
    assert_eq!((none.code_hash, none.generation), (None, None));
}
