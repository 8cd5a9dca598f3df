//! The driver raises an unconfirmed payment by itself, with the same coins. Whichever of the payments is mined is the order's.

use std::sync::Arc;
use std::time::Duration;

use countersign::bitcoin::bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use countersign::bitcoin::bitcoin::{OutPoint, Transaction};
use countersign::bitcoin::{FeeRate, TxContext, Utxo};
use countersign::{BroadcastTransaction, Policy, Proposal, Verified, chains::UnixTime};
use countersign_client::driver::{
    Delivery, Driver, Entry, Event, FundingReply, MemoryStore, OrderState, OrderStore as _, Owner, OwnerError, Purpose, Settlement,
    SignedFunding, SignedUnder, Status,
};
use countersign_client::{Api, Client, CreatedOrder, Flow, OrderId, Request, Response, Transport, TransportError};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes, Speed};
use countersign_testkit::chain::bitcoin::{Deposit, REGTEST, deposit};

use super::Shared;
use super::fake::{Ledger, NOW, Servers, outpoint, pay};
use super::recovery::{shared, signed};

const CHAIN: &str = REGTEST;
/// Of BIP-173's examples.
const CHANGE: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

/// The service, which knows the record, and the clock.
#[derive(Clone)]
struct Service(Arc<String>, tokio::time::Instant);

impl Transport for Service {
    async fn send(&self, _: &Request) -> Result<Response, TransportError> {
        Ok(Response::new(200, self.0.as_bytes().to_vec()))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(NOW + self.1.elapsed().as_secs())
    }
}

struct Signer {
    nodes: Arc<Nodes<Servers>>,
    key: String,
    policy: Policy,
    /// What a dishonest signer returns.
    change: fn(&mut BroadcastTransaction),
}

impl Owner for Signer {
    async fn fund(&self, _: &Verified) -> Result<FundingReply, OwnerError> {
        panic!("nothing is paid with other coins")
    }

    async fn raise(&self, order: &Verified, sent: &BroadcastTransaction) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        let failed = |error: countersign_node::NodeError| OwnerError::Unavailable(error.to_string());
        let submission = self.nodes.submission(CHAIN, &sent.id, &sent.payload).map_err(failed)?;
        let mut unsigned = self.nodes.prepare_raised(order, CHAIN, &submission, Speed::Fast, &self.policy).await.map_err(failed)?;
        countersign_json::sign(&mut unsigned, &self.key)?;
        let mut raised = SignedFunding::from_signed(&unsigned.finish()?).transactions;
        raised.iter_mut().for_each(self.change);
        Ok(Some(raised))
    }

    async fn settle(&self, _: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        Ok(None)
    }

    fn can_redeem(&self, _: &str) -> bool {
        false
    }
}

type Swap = Driver<Service, Arc<Nodes<Servers>>, MemoryStore, Signer>;

/// A payment at this fee rate, signed and sent an hour ago, which is in no block. The mempools have it, or have dropped it.
async fn waiting(rate: u64, is_dropped: bool, policy: Policy) -> (Swap, OrderId, Shared, Transaction) {
    waiting_for(|_| {}, rate, is_dropped, policy).await
}

async fn waiting_for(
    change: fn(&mut BroadcastTransaction),
    rate: u64,
    is_dropped: bool,
    policy: Policy,
) -> (Swap, OrderId, Shared, Transaction) {
    let Deposit { request, response, record, registry, key, script } = deposit();
    let mut ledger = Ledger::new();
    let coin = pay(outpoint(9), &[vec![1; 64]], &[(120_000, script)]);
    ledger.mempool.push(coin.clone());
    ledger.mine(3);
    let coins = vec![Utxo::new(OutPoint { txid: coin.compute_txid(), vout: 0 }, coin.output[0].clone()).unwrap()];
    let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
    let Verified::Bitcoin(order) = countersign::verify(proposal, &registry, &policy).unwrap() else { panic!("not of Bitcoin") };
    let sent = signed(order.prepare(TxContext::new(coins, CHANGE, FeeRate::from_whole(rate))).unwrap(), &key);
    if !is_dropped {
        ledger.offer(&sent).unwrap();
    }
    let ledger = shared(ledger);
    let servers = Servers::default().with("a.example", &ledger).with("b.example", &ledger).with("c.example", &ledger);
    let all = ["a", "b", "c"].map(|host| Endpoint::parse(&format!("https://{host}.example/the-key/api")).unwrap());
    let nodes = Arc::new(Nodes::new(servers, NodeConfig::new().with(CHAIN, Endpoints::new(all.into()).unwrap()), &registry));

    let kept = OrderState::new(CreatedOrder::new(request, response).unwrap(), None);
    let (id, store) = (kept.swap.id().clone(), MemoryStore::default());
    store.create(&kept).await.unwrap();
    let guard = store.lock(&id).await.unwrap();
    store.keep_pins(&guard, &SignedUnder { registry: registry.clone(), policy: policy.clone() }).await.unwrap();
    store.keep_record(&guard, record.as_bytes()).await.unwrap();
    let transaction = BroadcastTransaction {
        chain: CHAIN.to_owned(),
        role: countersign::Role::Initiate,
        id: sent.compute_txid().to_string(),
        payload: serialize_hex(&sent),
        spends: sent.input.iter().map(|input| input.previous_output.to_string()).collect(),
    };
    let signed = Event::Signed { purpose: Purpose::Funding, transactions: vec![transaction], gasless: None };
    for event in [signed, Event::sending(Delivery::Funding), Event::Sent { what: Delivery::Funding }] {
        store.append(&guard, &Entry { at: UnixTime::from_secs(NOW - 3_600), event }).await.unwrap();
    }
    drop(guard);
    let service = Service(Arc::new(record), tokio::time::Instant::now());
    let client = Client::new(Api::new("https://service.example", None).unwrap(), service);
    let signer = Signer { nodes: Arc::clone(&nodes), key, policy: policy.clone(), change };
    (Driver::new(Flow::new(client, Arc::new(registry), policy), nodes, store, signer), id, ledger, sent)
}

/// The payments that were signed, by their ids, the oldest first.
async fn payments(swap: &Swap, id: &OrderId) -> Vec<Transaction> {
    let kept = swap.store().load(id).await.unwrap();
    kept.payments().unwrap().iter().rev().map(|payment| deserialize_hex(&payment.payload).unwrap()).collect()
}

/// The endpoints show 12.345 sat/vB for the next block.
#[tokio::test(start_paused = true)]
async fn the_driver_raises_a_payment_that_waits() {
    for is_dropped in [false, true] {
        for is_first_mined in [false, true] {
            let (swap, id, ledger, sent) = waiting(1, is_dropped, Policy::default()).await;
            let progress = swap.advance(&id).await.unwrap();
            assert_eq!(progress.status, Status::Paying);
            let all = payments(&swap, &id).await;
            let [first, raised] = all.as_slice() else { panic!("{all:?}") };
            assert_eq!((first, raised.input.len()), (&sent, 1));
            assert_eq!(raised.input[0].previous_output, sent.input[0].previous_output);
            assert_eq!(raised.output[0], sent.output[0], "the same deposit");
            let paid = 120_000 - raised.output.iter().map(|output| output.value.to_sat()).sum::<u64>();
            let vsize = raised.weight().to_vbytes_ceil();
            assert!((12 * vsize..14 * vsize).contains(&paid), "{paid} for {vsize} vB");
            assert_eq!(ledger.lock().unwrap().mempool, std::slice::from_ref(raised));
            // It is not overdue, so it is left alone.
            swap.advance(&id).await.unwrap();
            assert_eq!(payments(&swap, &id).await.len(), 2);
            // Either of them may be mined, and the order is paid then.
            {
                let mut ledger = ledger.lock().unwrap();
                ledger.mempool = vec![if is_first_mined { sent.clone() } else { raised.clone() }];
                ledger.mine(3);
            }
            let progress = swap.advance(&id).await.unwrap();
            assert!(progress.is_paid && matches!(progress.status, Status::Waiting { .. }), "{:?}", progress.status);
            assert_eq!(payments(&swap, &id).await.len(), 2);
        }
    }
}

/// What pays more than four times the rate of this moment does not wait because of its fee, and the policy is kept. What was sent is sent
/// again.
#[tokio::test(start_paused = true)]
async fn a_payment_is_not_raised_above_the_policy_or_four_times_the_median() {
    let low = Policy::from_json(br#"{"bitcoin_fee_rate":5}"#).unwrap();
    for (rate, policy) in [(50, Policy::default()), (1, low)] {
        let (swap, id, ledger, sent) = waiting(rate, true, policy).await;
        swap.advance(&id).await.unwrap();
        assert_eq!(payments(&swap, &id).await, std::slice::from_ref(&sent), "{rate}");
        assert_eq!(ledger.lock().unwrap().mempool, std::slice::from_ref(&sent));
    }
}

/// With other coins both payments could be mined, and the order be paid twice. What was sent is sent again instead.
#[tokio::test(start_paused = true)]
async fn a_raised_payment_that_does_not_spend_exactly_the_same_coins_is_not_sent() {
    const OTHER: &str = "0101010101010101010101010101010101010101010101010101010101010101:0";
    let changes: [fn(&mut BroadcastTransaction); 4] = [
        |raised| raised.spends.clear(),
        |raised| raised.spends = vec![OTHER.to_owned()],
        |raised| raised.spends.push(OTHER.to_owned()),
        |raised| raised.spends.extend(raised.spends.clone()),
    ];
    for change in changes {
        let (swap, id, ledger, sent) = waiting_for(change, 1, true, Policy::default()).await;
        swap.advance(&id).await.unwrap();
        assert_eq!(payments(&swap, &id).await, std::slice::from_ref(&sent));
        assert_eq!(ledger.lock().unwrap().mempool, std::slice::from_ref(&sent));
    }
}
