//! Sending transactions to Sui nodes, their receipts, and balances.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::sui::sui_sdk_types::Digest;
use countersign::sui::{Sui, UnsignedOrder, htlc};
use countersign::{BroadcastTransaction, Code, Family, Signed};
use countersign_client::{Response, TransportErrorKind};
use countersign_node::sui::Receipt;
use countersign_node::{NodeError, Nodes};
use countersign_testkit::{key, registry};

use crate::sui::fake::{Executed, HEAD, Ledger, Network, SUI, case, digest_of};
use crate::sui::wallet::{order, prepared, refused, rich};
use countersign_testkit::chain::sui::proto::{Message, members};

/// The case's order, signed and stored.
async fn kept() -> (BroadcastTransaction, UnsignedOrder) {
    let case = case(Family::Sui, "sui-native");
    let mut unsigned = prepared(rich()).await.unwrap();
    let again = prepared(rich()).await.unwrap();
    unsigned.sign(&key::<Sui>(&case)).unwrap();
    let signed = Signed::from(unsigned.finish().unwrap());
    let [kept] = signed.broadcasts().try_into().unwrap();
    (kept, again)
}

async fn sent(network: Network, kept: &BroadcastTransaction) -> Result<Nodes<Network>, NodeError> {
    let nodes = network.connect();
    nodes.sui("sui_testnet").unwrap().broadcast(&kept.id, &kept.payload).await?;
    Ok(nodes)
}

fn success(kept: &BroadcastTransaction) -> Executed {
    Executed::new(kept.id.clone())
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_is_what_was_signed() {
    let (kept, unsigned) = kept().await;
    assert_eq!(kept.id, unsigned.payloads().digest().to_base58());
    let nodes = sent(Network::new(&[Ledger { sent: Ok(success(&kept)), ..rich() }]), &kept).await.unwrap();
    assert_eq!(nodes.transport().methods("a.example"), ["GetServiceInfo", "ExecuteTransaction"]);
    let seen = nodes.transport().seen.lock().unwrap();
    let sent = members(&seen[1].2[5..]);
    let value = |message: &[u8]| {
        let bcs = members(message).into_iter().find(|(field, _)| *field == 1).unwrap().1;
        members(&bcs).into_iter().find(|(field, _)| *field == 2).unwrap().1
    };
    let by = |field: u64| sent.iter().filter(|(tag, _)| *tag == field).map(|(_, message)| value(message)).collect::<Vec<_>>();
    assert_eq!(by(1), [unsigned.payloads().bytes.clone()]);
    let [signature] = by(2).try_into().unwrap();
    assert_eq!((signature.len(), signature[0]), (1 + 64 + 32, 0), "Ed25519: flag, signature, public key");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_is_accepted_if_enough_endpoints_have_it() {
    let (kept, _) = kept().await;
    let (has, busy) = (Ledger { sent: Ok(success(&kept)), ..rich() }, Ledger { sent: Err((14, "busy")), ..rich() });
    let refuses = Ledger { sent: Err((3, "coins are gone")), ..rich() };
    for other in [&busy, &refuses] {
        assert!(sent(Network::new(&[other.clone(), has.clone(), has.clone()]), &kept).await.is_ok());
    }
    // A single one may keep the transaction to itself.
    let rejected = sent(Network::new(&[busy.clone(), refuses.clone(), has.clone()]), &kept).await.err().unwrap();
    assert_eq!(rejected.code().name(), "transaction_rejected", "too few have it, and one rejects it");
    let unknown = sent(Network::new(&[busy.clone(), busy.clone(), has]), &kept).await.err().unwrap();
    assert_eq!((unknown.code().name(), unknown.is_transient()), ("node_disagree", true));
    // The transaction was executed before: the node reports an error about its coins, but knows the transaction.
    let mut again = refuses.clone();
    again.transactions.push(success(&kept));
    assert!(sent(Network::new(&[again.clone()]), &kept).await.is_ok());
    let mut lost = busy.clone();
    lost.transactions.push(success(&kept));
    assert!(sent(Network::new(&[lost]), &kept).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_from_a_failure() {
    let (kept, _) = kept().await;
    let node = |sent: (u32, &'static str)| Ledger { sent: Err(sent), ..rich() };
    let outcome = async |ledgers: &[Ledger]| sent(Network::new(ledgers), &kept).await.err().unwrap();
    for code in [3, 9] {
        let error = outcome(&[node((code, "coins%20are gone")), node((code, "gone"))]).await;
        assert!(matches!(&error, NodeError::Rejected { message, .. } if message == "coins are gone"), "{error}");
        // One that claims to have it changes nothing.
        let liar = Ledger { sent: Ok(success(&kept)), ..rich() };
        let refuses = || node((code, "gone"));
        assert_eq!(outcome(&[liar, refuses(), refuses()]).await.code().name(), "transaction_rejected");
    }
    for code in [1, 2, 4, 8, 10, 13, 14] {
        let error = outcome(&[node((code, "busy")), node((code, "busy"))]).await;
        assert_eq!((error.code().name(), error.is_transient()), ("node_disagree", true), "{code}");
    }
    // If even the lookup fails, the outcome is unknown.
    let silent = Network::new(&[node((3, "gone"))])
        .answering(|_, method, _| (method == "GetTransaction").then_some(Err(TransportErrorKind::Timeout)));
    assert_eq!(sent(silent, &kept).await.err().unwrap().code().name(), "transport_timeout");
    let lost =
        Network::new(&[rich()]).answering(|_, method, _| (method == "ExecuteTransaction").then_some(Err(TransportErrorKind::Interrupted)));
    let error = sent(lost, &kept).await.err().unwrap();
    assert!(matches!(error, NodeError::Transport { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_was_executed_and_failed_is_rejected() {
    let (kept, _) = kept().await;
    let failed = Executed { success: false, reason: Some("MoveAbort 7"), ..success(&kept) };
    let node = Ledger { sent: Ok(failed.clone()), ..rich() };
    let error = sent(Network::new(&[node]), &kept).await.err().unwrap();
    assert!(matches!(&error, NodeError::Rejected { message, .. } if message == "it was executed and failed: MoveAbort 7"), "{error}");
    let mut before = Ledger { sent: Err((3, "coins are gone")), ..rich() };
    before.transactions.push(failed);
    assert_eq!(sent(Network::new(&[before]), &kept).await.err().unwrap().code().name(), "transaction_rejected");
    // The success of another transaction does not count.
    let other = Ledger { sent: Ok(Executed::new(digest_of(7))), ..rich() };
    assert_eq!(sent(Network::new(&[other]), &kept).await.err().unwrap().code().name(), "node_malformed");
}

#[tokio::test(start_paused = true)]
async fn only_the_kept_transaction_is_sent() {
    let (kept, _) = kept().await;
    let payload: serde_json::Value = serde_json::from_str(&kept.payload).unwrap();
    let text = payload["tx_bytes"].as_str().unwrap();
    let with = |id: &str, payload: String| BroadcastTransaction { id: id.to_owned(), payload, ..kept.clone() };
    let changed = |bytes: String| with(&kept.id, serde_json::json!({"tx_bytes": bytes, "signatures": payload["signatures"]}).to_string());
    for (transaction, code) in [
        (with(&digest_of(7), kept.payload.clone()), Code::TransactionMismatch),
        (changed(text.replacen('A', "B", 1)), Code::TransactionMismatch),
        (changed(STANDARD.encode([&STANDARD.decode(text).unwrap()[..], &[0]].concat())), Code::TransactionMismatch),
        (changed(String::new()), Code::TransactionMismatch),
        (changed("?".to_owned()), Code::TransactionEncoding),
        (with(&kept.id, "{}".to_owned()), Code::MissingField),
        (with(&kept.id, "0x00".to_owned()), Code::JsonSyntax),
    ] {
        let nodes = Network::new(&[rich()]).connect();
        let error = nodes.sui("sui_testnet").unwrap().broadcast(&transaction.id, &transaction.payload).await.unwrap_err();
        assert_eq!(refused(&error).0, code, "{error}");
        assert!(nodes.transport().seen.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_receipt_has_a_checkpoint_that_the_endpoints_agree_on() {
    let id = Digest::new([7; 32]);
    let with = |executed: Option<Executed>| {
        let mut ledger = rich();
        ledger.transactions.extend(executed);
        ledger
    };
    let receipt = async |ledgers: &[Ledger]| Network::new(ledgers).connect().sui("sui_testnet").unwrap().receipt(id).await;
    let executed = Executed { checkpoint: Some(HEAD), ..Executed::new(digest_of(7)) };
    let failed = Executed { success: false, ..executed.clone() };
    let early = Executed { checkpoint: None, ..executed.clone() };
    assert_eq!(receipt(&[with(None)]).await.unwrap(), None);
    assert_eq!(receipt(&[with(Some(early.clone()))]).await.unwrap(), None);
    for (executed, success) in [(executed.clone(), true), (failed, false)] {
        let Receipt { checkpoint, success: actual, .. } = receipt(&[with(Some(executed))]).await.unwrap().unwrap();
        assert_eq!((checkpoint.get(), actual), (HEAD, success));
    }
    assert_eq!(receipt(&[with(Some(executed)), with(Some(early))]).await.unwrap_err().code().name(), "node_disagree");
}

#[tokio::test(start_paused = true)]
async fn a_balance_is_what_the_endpoints_agree_on() {
    let owner = order().deposit().sender;
    let asset = registry().asset("sui_testnet:sui").unwrap();
    let nodes = Network::new(&[rich(), rich()]).connect();
    assert_eq!(nodes.balance(asset, &owner.to_string()).await.unwrap(), countersign::U256::from(3_500_000_004_u64));
    let sui = nodes.sui("sui_testnet").unwrap();
    assert_eq!(sui.balance(owner, &"0x7::usdc::USDC".parse().unwrap()).await.unwrap(), 0);
    assert_eq!(sui.balance(owner, &htlc::sui()).await.unwrap(), 3_500_000_004);
    let nodes = Network::new(&[rich(), Ledger { balances: [(SUI.to_owned(), 1)].into(), ..rich() }]).connect();
    assert_eq!(nodes.balance(asset, &owner.to_string()).await.unwrap_err().code().name(), "node_disagree");
    assert_eq!(refused(&nodes.balance(asset, "0xno").await.unwrap_err()), (Code::AddressMalformed, "/owner"));
    let empty = Network::new(&[rich()]).answering(|_, method, _| {
        (method == "GetBalance").then(|| Ok(Response::new(200, countersign_testkit::chain::sui::proto::answer(&Message::default()))))
    });
    assert_eq!(empty.connect().balance(asset, &owner.to_string()).await.unwrap_err().code().name(), "node_malformed");
}
