//! The chains of the simulated world, as nodes show them: an EVM chain in memory for each leg.

use std::sync::atomic::Ordering;
use std::time::Duration;

use countersign_client::countersign::evm::alloy_consensus::{SignableTransaction as _, Transaction as _, TxEip1559, TxEnvelope};
use countersign_client::countersign::evm::alloy_eips::eip2718::{Decodable2718 as _, Encodable2718 as _};
use countersign_client::countersign::evm::alloy_primitives::{B256, Signature, U256, hex};
use countersign_client::countersign::reader::{Answer, FailureKind, Request, RpcError};
use countersign_client::countersign::{BroadcastTransaction, HtlcTerms, Leg, Role};
use countersign_client::driver::{ChainEndpoints, Chains};
use countersign_testkit::chain::evm::{Evm, INITIATED};
use countersign_testkit::chain::view::{End, Htlc, Marks, View};
use serde_json::{Value, json};

use super::world::{BLOCK, FINAL, Order, SOLVER, Third, World};

/// The endpoint that may be bad. See [`Third`].
const THIRD: &str = "third.example";

/// What a transaction of the world does, as its calldata says.
pub struct Sent {
    pub role: Role,
    pub order: String,
    pub signed_at: u64,
    pub is_replacement: bool,
}

/// Creates a transaction whose calldata says what it does.
pub fn transaction(chain: &str, sent: &Sent) -> BroadcastTransaction {
    transaction_with_nonce(chain, sent, 0)
}

/// The chains show that the sender has used the nonces up to 41.
pub fn transaction_with_nonce(chain: &str, sent: &Sent, nonce: u64) -> BroadcastTransaction {
    let Sent { role, order, signed_at, is_replacement } = sent;
    let input = json!([role, order, signed_at, is_replacement]).to_string().into_bytes();
    let chain_id = if chain == "base" { 8453 } else { 42161 };
    let transaction = TxEip1559 { chain_id, nonce, input: input.into(), ..TxEip1559::default() };
    let envelope = TxEnvelope::from(transaction.into_signed(Signature::new(U256::from(1), U256::from(1), false)));
    let (id, payload) = (envelope.tx_hash().to_string(), hex::encode(envelope.encoded_2718()));
    BroadcastTransaction { chain: chain.to_owned(), role: *role, id, payload, spends: Vec::new() }
}

/// Reads back what a transaction does.
fn decode(payload: &str) -> (Sent, B256) {
    let bytes = hex::decode(payload).unwrap();
    let envelope = TxEnvelope::decode_2718(&mut bytes.as_slice()).unwrap();
    let said: Value = serde_json::from_slice(envelope.input()).unwrap();
    let text = |index: usize| said[index].as_str().unwrap().to_owned();
    let role = serde_json::from_value(said[0].clone()).unwrap();
    let sent = Sent { role, order: text(1), signed_at: said[2].as_u64().unwrap(), is_replacement: said[3].as_bool().unwrap() };
    (sent, *envelope.tx_hash())
}

impl World {
    /// Returns the HTLC of a leg. What is sent is shown after a while, in a block of the time when it was sent.
    pub fn htlc(&self, leg: Leg, order: &Order, now: u64) -> Htlc {
        let shown = |at: Option<u64>, wait: u64| at.filter(|at| now >= at + wait);
        if leg == Leg::Source {
            let refunded = shown(order.refunded_at, BLOCK).map(|at| (End::Refunded, at));
            let ended = refunded.or_else(|| shown(order.redeemed_at, SOLVER).map(|at| (End::Redeemed(None), at + SOLVER)));
            return Htlc { funded: shown(order.funded_at, BLOCK), ended, is_short: false };
        }
        let funded = order.funded_at.filter(|_| self.is_destination_funded(order, now)).map(|at| at + SOLVER);
        let redeemed = End::Redeemed(order.redeemed_by.map(Into::into));
        let refunded = funded.filter(|_| order.destination_refunded).map(|at| (End::Refunded, at + FINAL));
        let ended = refunded.or_else(|| shown(order.redeemed_at, BLOCK).map(|at| (redeemed, at)));
        Htlc { funded, ended, is_short: self.malice.pays_less }
    }

    /// Returns the chain of a leg with an order as it is now. `looked` says that the order itself is read.
    fn chain(&self, leg: Leg, terms: &HtlcTerms, order: &mut Order, looked: bool, third: Option<Third>) -> Evm {
        let now = self.time() - if third == Some(Third::IsOld) { 7_200 } else { 0 };
        let htlc = if third == Some(Third::Denies) { Htlc::default() } else { self.htlc(leg, order, now) };
        if leg == Leg::Destination
            && let Some(at) = htlc.funded
        {
            // The next reading shows the refund.
            order.destination_refunded |= looked && self.malice.refunds_at_the_last_moment && now >= at + FINAL;
        }
        let marks = Marks { safe: FINAL, finalized: 2 * FINAL };
        let mut chain = View { terms, secret: &order.secret, tempo: &self.tempo, marks, now, htlc, is_other_chain: false }.evm();
        // The headers are those of slower chains, for which the timelocks of the fixture were made.
        (chain.time, chain.block_millis) = (now.saturating_add_signed(self.malice.head_offset), 12_000);
        // Arbitrum's headers show the height of Ethereum, far below its own.
        chain.l1_number = (leg == Leg::Destination).then(|| INITIATED / 1_000 + now.saturating_sub(self.epoch) / 12);
        chain
    }

    /// Answers the requests of one round. Those that name no order are about blocks, which are the same for all orders.
    fn answers(&self, chain: &str, requests: &[Request], third: Option<Third>) -> Vec<Answer> {
        let leg = if chain == "base" { Leg::Source } else { Leg::Destination };
        let text = format!("{:?}", requests.iter().map(params).collect::<Vec<_>>());
        let mut orders = self.orders.lock().unwrap();
        let named = orders.values_mut().find(|order| text.contains(order.terms(leg).swap_id.trim_start_matches("0x")));
        let looked = named.is_some() && requests.iter().any(|request| matches!(request, Request::JsonRpc { method: "eth_call", .. }));
        let chain = match named {
            Some(order) => {
                let terms = order.terms(leg).clone();
                self.chain(leg, &terms, order, looked, third)
            }
            None => {
                let order = orders.values_mut().next().unwrap();
                let terms = order.terms(leg).clone();
                self.chain(leg, &terms, order, false, third)
            }
        };
        requests.iter().map(|request| chain.answer(request)).collect()
    }

    /// Takes a transaction, or refuses it.
    fn take(&self, payload: &str) -> Answer {
        let (sent, id) = decode(payload);
        let now = self.time();
        if self.malice.transactions_expire && sent.role == Role::Redeem {
            if self.attempts.fetch_add(1, Ordering::SeqCst) < 4 {
                return Answer::Failed(FailureKind::Status(503).into());
            }
            if now > sent.signed_at + 60 {
                return Answer::Error(RpcError::new(-32_000, "blockhash not found", None));
            }
        }
        if self.malice.rejects_redemptions && sent.role == Role::Redeem {
            return Answer::Error(RpcError::new(-32_000, "insufficient funds for gas * price + value", None));
        }
        if !self.malice.fees_rise || sent.is_replacement {
            let mut orders = self.orders.lock().unwrap();
            let order = orders.get_mut(&sent.order).unwrap();
            match sent.role {
                Role::Redeem if order.destination_refunded => {}
                Role::Redeem if order.redeemed_at.is_none() => (order.redeemed_at, order.redeemed_by) = (Some(now), Some(id)),
                Role::Redeem => {}
                Role::Refund => drop(order.refunded_at.get_or_insert(now)),
                // It is never mined.
                Role::Initiate => {}
                other => panic!("{other}"),
            }
        }
        accepted(id)
    }
}

fn accepted(id: B256) -> Answer {
    Answer::result(json!(id).to_string().into_bytes())
}

fn params(request: &Request) -> String {
    match request {
        Request::JsonRpc { params, .. } => params.to_string(),
        other => panic!("{other:?}"),
    }
}

impl Chains for World {
    fn endpoints(&self, _: &str) -> Option<ChainEndpoints> {
        let endpoints = match self.malice.third {
            None => ChainEndpoints::new(["node.example"], 1),
            Some(_) => ChainEndpoints::new([THIRD, "first.example", "second.example"], 2),
        };
        self.connected.then_some(endpoints)
    }

    async fn ask(&self, chain: &str, endpoint: &str, requests: &[Request]) -> Vec<Answer> {
        self.operation().await;
        let third = self.malice.third.filter(|_| endpoint == THIRD);
        if third == Some(Third::Hangs) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(10 + self.roll(90))).await;
        if self.roll(1_000) < self.faults {
            return vec![Answer::Failed(FailureKind::Status(503).into()); requests.len()];
        }
        if self.malice.nodes_are_slow {
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        if self.malice.source_hangs && self.is_paid() && chain == "base" {
            std::future::pending::<()>().await;
        }
        let mut answers = self.answers(chain, requests, third);
        let is_nonce = |request: &Request| matches!(request, Request::JsonRpc { method: "eth_getTransactionCount", .. });
        if self.malice.raises_in_the_wallet && chain == "base" && requests.iter().any(is_nonce) {
            // The chain has gone on since it was read.
            tokio::time::sleep(Duration::from_secs(BLOCK)).await;
            let at = self.time() - 2 * FINAL;
            for order in self.orders.lock().unwrap().values_mut() {
                order.funded_at.get_or_insert(at);
            }
        }
        for (request, answer) in requests.iter().zip(&mut answers) {
            match request {
                Request::JsonRpc { method: "eth_sendRawTransaction", params } => {
                    let payload = params.trim_matches(['[', ']', '"']).trim_start_matches("0x");
                    *answer = if third == Some(Third::Denies) { accepted(decode(payload).1) } else { self.take(payload) };
                    self.operation().await;
                }
                Request::JsonRpc { method: "eth_getTransactionByHash", .. } => *answer = Answer::result(*b"null"),
                _ => {}
            }
        }
        answers
    }
}
