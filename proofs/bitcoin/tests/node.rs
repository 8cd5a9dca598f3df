//! Tests the node crate on a real Litecoin node: through the node's own RPC, through an Esplora server, and through
//! both together.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use std::time::SystemTime;

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{Amount, OutPoint, Transaction};
use countersign::reader::HtlcQuorum;
use countersign::recover::Recovery;
use countersign::{Funded, Unsigned};
use countersign_bitcoin::recover::{Fee, Funding, Payout};
use countersign_bitcoin::{FeeRate, TxContext};
use countersign_client::{Http, Timeouts};
use countersign_core::chains::Network;
use countersign_core::{
    Account, CreateOrder, Family, Finality, FinalityRule, HtlcState, ObservedAt, Policy, Proposal, Registry, SecretHash, U256,
    VerifiedTerms,
};
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes, Speed};
use serde_json::json;
use support::esplora::Esplora;
use support::litecoind::{Done, Node};
use support::{INITIATOR, REDEEMER, SECRET, Scene, WALLET, signed};

const CHAIN: &str = "litecoin_regtest";
const AMOUNT: u64 = 500_000;

/// Litecoin's default rule.
const RULE: FinalityRule = FinalityRule::new(Finality::Depth(6), 6, 12);

/// Connects to endpoints that must all agree.
fn connect(urls: &[&str], chain: &str, id: &str) -> Done<Nodes<Http>> {
    let endpoints = urls.iter().map(|url| Endpoint::parse(url)).collect::<Result<Vec<_>, _>>()?;
    let quorum = u32::try_from(urls.len())?;
    let registry = json!({"chains": [{"chain": chain, "id": id}], "assets": []});
    let registry = Registry::from_json(registry.to_string().as_bytes())?;
    let config = NodeConfig::new().with(chain, Endpoints::new(endpoints)?.with_quorum(quorum)?);
    Ok(Nodes::new(Http::new(Timeouts::default())?, config, &registry))
}

/// Returns verified terms whose destination is the HTLC of a scene.
fn terms(scene: &Scene) -> VerifiedTerms {
    let registry = countersign_testkit::registry();
    let verified = countersign_testkit::fixtures_of(Family::Bitcoin).expect("fixtures").into_iter().find_map(|case| {
        let case = case.json();
        let record = case["order"].is_object().then(|| case["order"].to_string())?;
        let (request, response) = (CreateOrder::from_json(case["request"].to_string().as_bytes()).ok()?, case["response"].to_string());
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
        let verify = |order: countersign_core::OrderContext<'_>| countersign_core::verify_record::<countersign_bitcoin::Bitcoin>(order);
        proposal.open(registry, &Policy::default(), verify).ok()
    });
    let mut terms = verified.expect("a fixture with a record").terms;
    let htlc = &scene.tree.htlc;
    let key = |key| Account::from_array(Family::Bitcoin, key);
    let to = &mut terms.source;
    to.chain = CHAIN.to_owned();
    to.network = Network::parse("litecoin:regtest").expect("a network");
    (to.htlc, to.token) = (Some(key(htlc.internal_key)), None);
    (to.initiator, to.redeemer) = (key(htlc.initiator), key(htlc.redeemer));
    (to.amount, to.timelock, to.secret_hash) = (U256::from(scene.amount), u64::from(htlc.timelock), SecretHash(htlc.secret_hash));
    (to.swap_id, to.swap_id_recomputed) = (scene.tree.address(scene.chain), true);
    terms.destination = terms.source.clone();
    terms
}

/// One HTLC on the node's chain, and the connections to it.
struct Swap<'n> {
    scene: Scene,
    terms: VerifiedTerms,
    nodes: &'n Nodes<Http>,
}

impl<'n> Swap<'n> {
    /// Each HTLC has a different timelock.
    fn new(nodes: &'n Nodes<Http>, timelock: u16) -> Self {
        let scene = Scene::new("litecoin:regtest", timelock, AMOUNT);
        Self { terms: terms(&scene), scene, nodes }
    }

    fn chain(&self) -> countersign_node::bitcoin::BitcoinChain<'n, Http> {
        self.nodes.bitcoin(CHAIN).expect("connected")
    }

    async fn read(&self) -> Result<HtlcQuorum, NodeError> {
        self.chain().htlc(&self.terms.destination).await
    }

    async fn judge(&self) -> Done<Result<Funded, &'static str>> {
        let quorum = self.read().await?;
        let now = SystemTime::now().into();
        Ok(Funded::judge(&self.terms, &quorum, &RULE, now).map_err(|hold| hold.code().name()))
    }

    /// Pays the HTLC with the node crate alone: coins, fee rate, preflight and broadcast.
    async fn fund(&self, rate: Option<u64>) -> Done<Transaction> {
        let (chain, policy) = (self.chain(), Policy::default());
        let mut wallet = chain.wallet(&self.scene.owner(), Speed::Normal, &policy).await?;
        if let Some(rate) = rate {
            wallet.fee_rate = Some(FeeRate::from_whole(rate));
        }
        self.send(wallet).await
    }

    async fn send(&self, wallet: TxContext) -> Done<Transaction> {
        let transaction = signed(self.scene.unsigned(wallet), WALLET)?;
        self.chain().preflight(&transaction, &Policy::default()).await?;
        self.broadcast(&transaction).await?;
        self.broadcast(&transaction).await?;
        Ok(transaction)
    }

    async fn broadcast(&self, transaction: &Transaction) -> Result<(), NodeError> {
        self.chain().broadcast(&transaction.compute_txid().to_string(), &serialize_hex(transaction)).await
    }

    async fn locked(&self, depth: u64) -> Done<ObservedAt> {
        let (state, seen) = self.read().await?.state().expect("an agreed state");
        let HtlcState::Locked(locked) = &state else { return Err(format!("{state:?}").into()) };
        assert_eq!((locked.elapsed, seen.depth, locked.amount), (depth, depth, U256::from(AMOUNT)));
        Ok(seen)
    }

    async fn payout(&self) -> Done<Payout> {
        let fundings = self.chain().fundings(&self.scene.tree).await?;
        Ok(Payout::new(fundings, self.scene.owner(), Fee::Deducted(FeeRate::from_whole(2))))
    }
}

fn started() -> Done<Option<Node>> {
    match Node::start()? {
        Ok(node) => Ok(Some(node)),
        Err(reason) => {
            skip(&reason);
            Ok(None)
        }
    }
}

#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

#[tokio::test]
async fn htlcs_are_read_judged_redeemed_and_refunded() -> Done<()> {
    let Some(node) = started()? else { return Ok(()) };
    let esplora = Esplora::start(node.cli())?;
    let rpc = node.url();
    node.mine(110)?;
    // A node of another chain is recognized by its block 0.
    for url in [rpc.as_str(), &esplora] {
        let nodes = connect(&[url], "litecoin", "litecoin:mainnet")?;
        let error = nodes.head("litecoin", 0).await.expect_err("another chain");
        assert!(matches!(error, NodeError::WrongChain { .. }), "{error}");
    }
    for (index, urls) in [vec![rpc.as_str()], vec![esplora.as_str()], vec![rpc.as_str(), &esplora]].into_iter().enumerate() {
        let nodes = connect(&urls, CHAIN, "litecoin:regtest")?;
        let by_index = urls.contains(&esplora.as_str());
        let by_rpc = urls.contains(&rpc.as_str());
        let swap = Swap::new(&nodes, 30 + u16::try_from(index)?);
        for _ in 0..3 {
            node.pay(&swap.scene.owner(), "0.02")?;
        }
        match swap.read().await.map(|quorum| quorum.state().unwrap().0) {
            Ok(HtlcState::Absent) => assert!(by_index),
            Ok(HtlcState::Unclear(_)) => assert!(!by_index),
            Err(NodeError::Disagree { .. }) => assert!(by_index && by_rpc),
            other => panic!("{other:?}"),
        }
        // The funding is final at six blocks, and never before.
        let estimate = swap.chain().fee_rate(Speed::Fast, &Policy::default()).await?;
        assert!(estimate.is_floor, "a regtest node has no estimate");
        swap.fund(None).await?;
        if !by_rpc {
            swap.locked(0).await?;
        }
        for depth in 1..=7 {
            node.mine(1)?;
            swap.locked(depth).await?;
            assert_eq!(swap.judge().await?.is_ok(), depth >= 6, "{depth}");
        }
        // The redemption is first in the mempool, then in a block.
        let redeem = signed(swap.scene.htlc().redeem(&SECRET, &swap.payout().await?)?, REDEEMER)?;
        assert!(swap.chain().preflight(&redeem, &Policy::default()).await? > Amount::ZERO);
        swap.broadcast(&redeem).await?;
        for depth in 0..3 {
            let (state, seen) = swap.read().await?.state().unwrap();
            let transaction = Some(redeem.compute_txid().to_string());
            assert_eq!((state, seen.depth), (HtlcState::Redeemed { secret: Some(SECRET), transaction }, depth));
            let status = swap.chain().status(&redeem.compute_txid().to_string()).await?.ok_or("status")?;
            assert_eq!(status.confirmations, depth);
            node.mine(1)?;
        }
        // The refund is not possible a block too early, but as soon as `elapsed` says so.
        let swap = Swap::new(&nodes, 20 + u16::try_from(index)?);
        swap.fund(Some(3)).await?;
        let timelock = swap.scene.tree.htlc.timelock;
        node.mine(timelock - 1)?;
        let refund = signed(swap.scene.htlc().refund(&swap.payout().await?)?, INITIATOR)?;
        swap.locked(u64::from(timelock) - 1).await?;
        let error = swap.broadcast(&refund).await.expect_err("a block too early");
        assert!(matches!(&error, NodeError::Rejected { message, .. } if message.contains("non-BIP68-final")), "{error}");
        if by_rpc {
            // An Esplora server does not simulate transactions, so it does not agree.
            let code = if by_index { "node_disagree" } else { "transaction_rejected" };
            assert_eq!(swap.chain().preflight(&refund, &Policy::default()).await.expect_err("too early").code().name(), code);
        }
        node.mine(1)?;
        assert_eq!(swap.judge().await?.expect_err("no time"), "destination_no_time");
        swap.locked(u64::from(timelock)).await?;
        swap.broadcast(&refund).await?;
        // The transaction is pending, so one with a higher fee replaces it.
        let (recovery, owner, policy) = (Recovery::Bitcoin(swap.scene.refund()), swap.scene.owner(), Policy::default());
        let sent = nodes.submission(CHAIN, &refund.compute_txid().to_string(), &serialize_hex(&refund))?;
        let replacement = nodes.prepare_replacement(&recovery, CHAIN, &owner, &sent, Speed::Fast, &policy).await?;
        let Unsigned::Bitcoin(replacement) = replacement else { panic!("a Bitcoin transaction is replaced by its inputs") };
        let replaced = refund.compute_txid();
        let refund = signed(replacement, INITIATOR)?;
        swap.broadcast(&refund).await?;
        assert_ne!(refund.compute_txid(), replaced);
        node.mine(1)?;
        let (state, seen) = swap.read().await?.state().unwrap();
        assert_eq!((state, seen.depth), (HtlcState::Refunded { transaction: Some(refund.compute_txid().to_string()) }, 1));
    }
    Ok(())
}

#[tokio::test]
async fn replaced_and_reorganised_fundings_start_again() -> Done<()> {
    let Some(node) = started()? else { return Ok(()) };
    let esplora = Esplora::start(node.cli())?;
    node.mine(110)?;
    let (both, only) = (connect(&[&node.url(), &esplora], CHAIN, "litecoin:regtest")?, connect(&[&esplora], CHAIN, "litecoin:regtest")?);
    let mut swap = Swap::new(&only, 40);
    let owner = swap.scene.owner();
    let (previous, outpoint) = node.pay(&owner, "0.02")?;
    let output = previous.output[usize::try_from(outpoint.vout)?].clone();
    let wallet = |rate| {
        Ok::<_, Box<dyn std::error::Error>>(TxContext::new(vec![support::coin(outpoint, output.clone(), &previous)], owner.as_str(), rate))
    };

    // The pending transaction is replaced at the lowest accepted rate, and at no lower one.
    let first = swap.send(wallet(FeeRate::from_whole(2))?).await?;
    let fee = |transaction: &Transaction| output.value - transaction.output.iter().map(|output| output.value).sum::<Amount>();
    let policy = Policy::default();
    let cheap = signed(swap.scene.unsigned(wallet(FeeRate::parse("2.5")?)?), WALLET)?;
    assert!(matches!(swap.broadcast(&cheap).await, Err(NodeError::Rejected { .. })));
    let vsize = first.weight().to_vbytes_ceil();
    let rate = countersign_node::bitcoin::BitcoinChain::<Http>::replacement_rate(fee(&first), vsize, &policy)?;
    let second = signed(swap.scene.unsigned(wallet(rate)?), WALLET)?;
    swap.broadcast(&second).await?;
    assert_eq!(swap.chain().status(&first.compute_txid().to_string()).await?, None);
    swap.locked(0).await?;
    node.mine(7)?;
    let before = swap.locked(7).await?;
    assert!(swap.judge().await?.is_ok());

    // The block of the funding is orphaned. The funding is unconfirmed again, and then in another block.
    swap.nodes = &both;
    assert_eq!(swap.locked(7).await?.hash, before.hash);
    node.call("invalidateblock", &[&before.hash])?;
    assert!(swap.judge().await.is_err(), "one sees it in the mempool, the other does not see it");
    swap.nodes = &only;
    assert_eq!(swap.judge().await?.expect_err("unconfirmed"), "destination_not_final");
    node.mine(2)?;
    swap.nodes = &both;
    let after = swap.locked(2).await?;
    assert_ne!(after.hash, before.hash);
    assert_eq!(swap.judge().await?.expect_err("it starts again"), "destination_not_final");

    // The block is orphaned again, and this time the coin is spent elsewhere.
    node.call("invalidateblock", &[&after.hash])?;
    let elsewhere = Swap::new(&only, 41);
    let rival = signed(elsewhere.scene.unsigned(wallet(FeeRate::from_whole(50))?), WALLET)?;
    elsewhere.broadcast(&rival).await?;
    node.mine(3)?;
    swap.nodes = &only;
    assert_eq!(swap.read().await?.state().unwrap().0, HtlcState::Absent);
    assert_eq!(swap.chain().status(&second.compute_txid().to_string()).await?, None);
    let error = swap.broadcast(&second).await.expect_err("its coin is spent");
    assert!(matches!(&error, NodeError::Rejected { message, .. } if message.contains("missingorspent")), "{error}");
    elsewhere.locked(3).await?;
    let listed = elsewhere.chain().fundings(&elsewhere.scene.tree).await?;
    assert_eq!(listed, [Funding::new(OutPoint { txid: rival.compute_txid(), vout: 0 }, Amount::from_sat(AMOUNT))]);
    Ok(())
}
