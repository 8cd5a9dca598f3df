//! One endpoint of three lies about the blockhash, the block height or the price: in any place and for any transaction, the context is what
//! the honest ones lead to.

use countersign::solana::PriorityFee;
use countersign::solana::read::RECENT_BLOCKHASHES;
use countersign::solana::solana_hash::Hash;
use countersign::{BroadcastTransaction, Policy, Unsigned};
use countersign_node::{NodeError, Nodes, Speed};
use serde_json::{Value, json};

use crate::solana::fake::{Chain, FORMS, Front, INITIATED, NOW, blockhash, listed, nodes, older_blockhash, swap_of, terms};
use crate::solana::wallet::{recovery, settled, stranger};

const FORM: &str = FORMS[2];
const NAME: &str = "solana_testnet";
const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];

type Lie = Box<dyn Fn(&str, &Value) -> Option<Value> + Send + Sync>;

fn lies() -> Vec<(String, Lie)> {
    let mut all: Vec<(String, Lie)> = Vec::new();
    let lists: [(&str, Vec<Hash>); 6] = [
        ("a blockhash that is about to expire", vec![older_blockhash(149)]),
        ("one of which 99 blocks are left", vec![older_blockhash(51)]),
        ("the oldest ones first", (0..150).rev().map(older_blockhash).collect()),
        ("an unknown one", vec![Hash::new_from_array([1; 32])]),
        ("an old one again and again", vec![older_blockhash(120); 150]),
        ("none", Vec::new()),
    ];
    for (what, hashes) in lists {
        let answer = listed(&hashes);
        all.push((
            what.to_owned(),
            Box::new(move |method, params| {
                (method == "getMultipleAccounts" && params[0][0] == RECENT_BLOCKHASHES.to_string()).then(|| answer.clone())
            }),
        ));
    }
    for number in [0, 1, 300_000_300, u64::MAX] {
        all.push((format!("height {number}"), Box::new(move |method, _| (method == "getBlockHeight").then(|| json!(number)))));
        let fees = json!(vec![json!({"slot": 1, "prioritizationFee": number}); 150]);
        all.push((format!("price {number}"), Box::new(move |method, _| (method == "getRecentPrioritizationFees").then(|| fees.clone()))));
    }
    for method in ["getBlockHeight", "getRecentPrioritizationFees", "isBlockhashValid"] {
        for answer in [Value::Null, json!([]), json!({"error": {"code": -32_005, "message": "behind"}})] {
            all.push((format!("{method}: {answer}"), Box::new(move |asked, _| (asked == method).then(|| answer.clone()))));
        }
    }
    all
}

fn connected(liar: Option<usize>, lie: Lie) -> Nodes<Front> {
    among(3, liar, lie)
}

fn among(endpoints: usize, liar: Option<usize>, lie: Lie) -> Nodes<Front> {
    let (_, swap) = swap_of(&terms(FORM).destination);
    let chain = settled(FORM, 1_000_000_000).at(INITIATED + swap.timelock + 1, NOW);
    let chain = Chain { fees: vec![5_000; 150], ..chain };
    let told = move |host: &str, method: &str, params: &Value| {
        (liar.map(|place| HOSTS[place]) == Some(host)).then(|| lie(method, params)).flatten()
    };
    nodes(chain.lying(told), endpoints, FORM)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Payment,
    Redemption,
    Urgent,
    Refund,
    Replacement,
}

/// The blockhash, the last block height at which it is valid, and the price of a compute unit.
async fn context(nodes: &Nodes<Front>, stage: Stage, sent: &BroadcastTransaction) -> Result<(Hash, Option<u64>, u64), NodeError> {
    let (sender, policy) = (stranger().address().to_string(), Policy::default());
    let [redemption, refund] = [true, false].map(|redeems| recovery(FORM, redeems));
    let unsigned = match stage {
        Stage::Payment => {
            let context = nodes.solana(NAME).unwrap().context(&[], Speed::Normal).await?;
            let price = context.priority_fee.map_or(0, |fee| fee.compute_unit_price);
            return Ok((context.recent_blockhash.unwrap(), context.last_valid_block_height, price));
        }
        Stage::Redemption => nodes.prepare_recovery(&redemption, NAME, &sender, Speed::Normal, &policy).await?,
        Stage::Urgent => nodes.prepare_urgent(&redemption, NAME, &sender, Speed::Fast, &policy).await?,
        Stage::Refund => nodes.prepare_recovery(&refund, NAME, &sender, Speed::Normal, &policy).await?,
        Stage::Replacement => {
            let sent = nodes.submission(NAME, &sent.id, &sent.payload)?;
            nodes.prepare_replacement(&redemption, NAME, &sender, &sent, Speed::Fast, &policy).await?
        }
    };
    let Unsigned::Solana(unsigned) = unsigned else { panic!("a recovery on Solana") };
    let message = &unsigned.payloads().transaction.as_ref().unwrap().transaction().message;
    let price = PriorityFee::from_message(message).map_or(0, |fee| fee.compute_unit_price);
    Ok((*message.recent_blockhash(), None, price))
}

async fn sent(price: u64) -> BroadcastTransaction {
    let chain = Chain { fees: vec![price; 150], ..settled(FORM, 1_000_000_000) };
    let (unsigned, _) = crate::solana::wallet::recover_on(chain, FORM, &recovery(FORM, true)).await.unwrap();
    let Unsigned::Solana(mut unsigned) = unsigned else { panic!("a recovery on Solana") };
    unsigned.sign(&stranger()).unwrap();
    countersign::Signed::from(unsigned.finish().unwrap()).broadcasts().remove(0)
}

#[tokio::test(start_paused = true)]
async fn the_blockhash_and_the_price_are_a_quorums_own_at_every_stage() {
    let kept = sent(5_000).await;
    for stage in [Stage::Payment, Stage::Redemption, Stage::Urgent, Stage::Refund, Stage::Replacement] {
        let honest = context(&connected(None, Box::new(|_, _| None)), stage, &kept).await.unwrap();
        let price = if stage == Stage::Replacement { 5_500 } else { 5_000 };
        assert_eq!((honest.0, honest.2), (blockhash(), price), "{stage:?}");
        for place in 0..3 {
            for (what, lie) in lies() {
                let lied = context(&connected(Some(place), lie), stage, &kept).await;
                assert_eq!(lied.ok(), Some(honest), "{stage:?}, {what}, endpoint {place}");
            }
        }
    }
}

/// Where one of three endpoints is silent, another one does not lower the price of what makes a secret public.
#[tokio::test(start_paused = true)]
async fn of_two_endpoints_none_lowers_the_price_of_a_redemption() {
    let kept = sent(5_000).await;
    for liar in 0..2 {
        let free = json!(vec![json!({"slot": 1, "prioritizationFee": 0}); 150]);
        let lie: Lie = Box::new(move |method, _| (method == "getRecentPrioritizationFees").then(|| free.clone()));
        let (_, _, price) = context(&among(2, Some(liar), lie), Stage::Redemption, &kept).await.unwrap();
        assert_eq!(price, 5_000, "endpoint {liar}");
    }
}

/// What was sent at an absurd price is signed again at what is paid now.
#[tokio::test(start_paused = true)]
async fn a_raised_price_ends_at_four_times_the_median() {
    for (before, after) in [(5_000, 5_500), (19_000, 20_000), (5_000_000, 20_000)] {
        let kept = sent(before).await;
        let (_, _, price) = context(&connected(None, Box::new(|_, _| None)), Stage::Replacement, &kept).await.unwrap();
        assert_eq!(price, after, "{before}");
    }
}

/// A liar that says that a blockhash is over stops nothing, and one that says that it is valid sends nothing that most know to be over.
#[tokio::test(start_paused = true)]
async fn a_quorum_says_whether_a_transaction_has_expired() {
    let kept = sent(1_000).await;
    let valid = |value: bool| json!({"context": {"slot": 1}, "value": value});
    for (liars, is_sent) in [(vec!["a.example"], true), (vec!["c.example"], true), (vec!["b.example", "c.example"], false)] {
        let chain = settled(FORM, 1_000_000_000).lying(move |host, method, _| match method {
            "isBlockhashValid" => Some(valid(!liars.contains(&host))),
            _ => None,
        });
        let nodes = nodes(chain, 3, FORM);
        match nodes.broadcast(NAME, &kept.id, &kept.payload).await {
            Ok(()) => assert!(is_sent),
            // It is signed again at once.
            Err(NodeError::Rejected { message, .. }) => assert!(!is_sent && message.contains("blockhash"), "{message}"),
            Err(error) => panic!("{error}"),
        }
    }
}
