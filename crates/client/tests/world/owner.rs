//! The owner, who signs: at once or after hours, now and then not at all.

use std::sync::atomic::Ordering;
use std::time::Duration;

use countersign_client::countersign::bitcoin::htlc::Leaf;
use countersign_client::countersign::chains::Network;
use countersign_client::countersign::evm::alloy_consensus::{SignableTransaction as _, TxEip1559, TxEnvelope};
use countersign_client::countersign::evm::alloy_eips::eip2718::Encodable2718 as _;
use countersign_client::countersign::evm::alloy_primitives::{Signature, U256, hex};
use countersign_client::countersign::starknet::{InvokeTransaction, felt};
use countersign_client::countersign::sui::Execution;
use countersign_client::countersign::sui::sui_sdk_types::bcs::ToBcs as _;
use countersign_client::countersign::{
    BroadcastTransaction, Code, Leg, OrderRecord, Refusal, Registry, Role, Verified, evidence::HtlcTerms,
};
use countersign_client::driver::{FundingReply, Owner, OwnerError, Purpose, Settlement, SignedFunding};

use super::kinds::{Kind, Swap, base64_of::encode as to_base64};
use super::{Signed, World, Worlds, place_of};
use countersign_testkit::chain::view::chain_id;

const FAULTS: [&str; 3] = ["owner: unavailable", "owner: not now", "owner: slow"];

/// Returns bytes that every request contains which sends a transaction.
fn needle(kind: Kind, kept: &BroadcastTransaction) -> Vec<u8> {
    match kind {
        Kind::Evm | Kind::Bnb | Kind::Tron | Kind::Bitcoin | Kind::Litecoin => kept.payload.trim_start_matches("0x").as_bytes().to_vec(),
        Kind::Solana | Kind::Spl => to_base64(&hex::decode(&kept.payload).unwrap()).into_bytes(),
        Kind::Starknet => {
            let value: serde_json::Value = serde_json::from_str(&kept.payload).unwrap();
            value["signature"].to_string().into_bytes()
        }
        Kind::Sui => Execution::from_json(kept.payload.as_bytes()).unwrap().transaction.to_bcs().unwrap(),
    }
}

/// Returns a transaction of an EVM chain, which says nothing but a number.
pub fn evm_transaction(terms: &HtlcTerms, role: Role, nonce: u64, number: u64) -> BroadcastTransaction {
    let input = number.to_be_bytes().to_vec();
    let transaction = TxEip1559 { chain_id: chain_id(&terms.network), nonce, input: input.into(), ..TxEip1559::default() };
    let envelope = TxEnvelope::from(transaction.into_signed(Signature::new(U256::from(1), U256::from(1), false)));
    let (id, payload) = (envelope.tx_hash().to_string(), hex::encode(envelope.encoded_2718()));
    BroadcastTransaction { chain: terms.chain.clone(), role, id, payload, spends: Vec::new() }
}

impl World {
    fn remember(&self, kind: Kind, kept: &BroadcastTransaction, is_replacement: bool) {
        let now = self.time();
        let pays_much = self.are_fees_high();
        let signed = Signed { kept: kept.clone(), needle: needle(kind, kept), at: now, is_replacement, pays_much };
        let mut state = self.state.lock().unwrap();
        state.changed = now;
        state.signed.push(signed);
    }

    /// Returns a transaction of the destination's chain, which differs from every other one: a real one on a Bitcoin-like chain, elsewhere
    /// one that the simulated chain recognizes.
    fn redemption(&self) -> Option<BroadcastTransaction> {
        let terms = self.terms(Leg::Destination);
        if self.plan.pays.has_blocks() {
            return self.spend(Leg::Destination, Leaf::Redeem, &self.swap.secret);
        }
        if !matches!(self.plan.pays, Kind::Evm | Kind::Bnb) {
            let signed = Swap::of(if self.plan.pays == Kind::Spl { Kind::Solana } else { self.plan.pays }, Kind::Evm);
            let mut kept = signed.sign(self.roll(1_000, 1_000_000), self.time()).broadcasts().pop()?;
            kept.role = Role::Redeem;
            // What was signed is of another network of the family.
            kept.chain.clone_from(&terms.chain);
            if let Network::Starknet(network) = &terms.network {
                // What was signed is of the test network, and the id of a transaction depends on the network.
                let chain_id = felt::from_short_string(network).unwrap();
                let transaction = InvokeTransaction::from_json(kept.payload.as_bytes()).unwrap();
                kept.id = format!("{:#x}", transaction.hashes(chain_id).tx_hash);
            }
            return Some(kept);
        }
        Some(evm_transaction(terms, Role::Redeem, 0, self.roll(0, u64::MAX - 1)))
    }

    /// Returns a real transaction that spends the payment of a leg.
    fn spend(&self, leg: Leg, leaf: Leaf, secret: &[u8]) -> Option<BroadcastTransaction> {
        let mark = self.roll(1_000, 1_000_000);
        let (transaction, payload) = self.now().blocks[place_of(leg)].as_ref()?.spend(leaf, secret, mark)?;
        let role = if leaf == Leaf::Redeem { Role::Redeem } else { Role::Refund };
        let id = transaction.compute_txid().to_string();
        Some(BroadcastTransaction { chain: self.terms(leg).chain.clone(), role, id, payload, spends: Vec::new() })
    }

    /// Returns a signed redemption that nobody has sent.
    pub fn unsent_redemption(&self) -> BroadcastTransaction {
        let kept = self.redemption().unwrap();
        self.remember(self.plan.pays, &kept, false);
        kept
    }

    /// Returns the refund: a real transaction on a Bitcoin-like chain, elsewhere an id that the simulated chain recognizes.
    fn refund(&self) -> Option<BroadcastTransaction> {
        if self.plan.kind.has_blocks() {
            return self.spend(Leg::Source, Leaf::Refund, &[]);
        }
        let signed = self.swap.sign(self.roll(1_000, 1_000_000), self.time());
        let mut kept = signed.broadcasts().pop().unwrap();
        kept.role = Role::Refund;
        Some(kept)
    }
}

impl World {
    async fn sign_funding(&self, worlds: &Worlds) -> Result<FundingReply, OwnerError> {
        self.operation().await;
        match self.fault(&FAULTS) {
            Some("owner: unavailable") => return Err(OwnerError::Unavailable("no signer".to_owned())),
            Some("owner: not now") => return Ok(FundingReply::NotNow),
            Some(_) => self.wait(1_000, 600_000).await,
            None => {}
        }
        if self.offer(worlds, Leg::Source, false).await.is_none() {
            return Err(OwnerError::Unavailable("no price".to_owned()));
        }
        let nonce = self.roll(1_000, 1_000_000);
        let signed = self.swap.sign(nonce, self.time());
        let mut funding = SignedFunding::from_signed(&signed);
        // A second signature differs from the first: if both were sent, the order would be paid twice.
        funding.gasless = funding.gasless.map(|signature| format!("{signature}{nonce:08x}"));
        if !self.plan.gasless || funding.gasless.is_none() {
            funding = SignedFunding { transactions: signed.broadcasts(), gasless: None };
        }
        for kept in &funding.transactions {
            self.remember(self.plan.kind, kept, false);
        }
        Ok(FundingReply::Signed(funding))
    }

    async fn sign_settlement(&self, worlds: &Worlds, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        self.operation().await;
        let is_redemption = task.purpose == Purpose::Redemption;
        let is_first = is_redemption && !std::mem::replace(&mut self.state.lock().unwrap().has_signed_redemption, true);
        if is_first && self.has_faults() {
            // A person with a hardware wallet. Replacements are signed by the same session.
            tokio::time::sleep(Duration::from_secs(self.plan.signing)).await;
        }
        match self.fault(&FAULTS) {
            Some("owner: unavailable") => return Err(OwnerError::Unavailable("no signer".to_owned())),
            Some("owner: not now") => return Ok(None),
            Some(_) => self.wait(500, 5_000).await,
            None => {}
        }
        assert_eq!(is_redemption, task.secret.is_some(), "a redemption without a secret, or a refund with one");
        assert!(!(is_redemption && self.plan.freezes_the_receiver), "a redemption that would not pay is not signed");
        assert!(!is_redemption || task.is_urgent || task.replaces.is_empty(), "what nobody may know is not replaced");
        if self.plan.cannot_pay.contains(&task.purpose) {
            return Err(Refusal::new(Code::InsufficientFunds, "/value").into());
        }
        if self.offer(worlds, task.leg, !task.replaces.is_empty()).await.is_none() {
            return Err(OwnerError::Unavailable("no price".to_owned()));
        }
        let kept = if is_redemption { self.redemption() } else { self.refund() };
        let Some(kept) = kept else { return Ok(None) };
        self.remember(self.kind(task.leg), &kept, !task.replaces.is_empty());
        Ok(Some(vec![kept]))
    }

    /// Asks about the asset of these pins, as a wallet with `countersign-node` does. Only the token of the order has frozen the receiver: any
    /// other one says that it can be paid.
    async fn check_release(&self, registry: &Registry) -> Result<(), OwnerError> {
        self.operation().await;
        // Another process may have sent it a moment ago, which this one does not know.
        let is_out = self.state.lock().unwrap().secret_known.is_some();
        assert!(!is_out || self.plan.has_rival, "nothing is asked once the secret is out");
        let terms = self.terms(Leg::Destination);
        let asset = registry.asset(&terms.asset).ok_or_else(|| Refusal::new(Code::UnknownAsset, "/destination/asset"))?;
        let is_own = asset.token.as_ref().map(|token| &token.text) == terms.token.as_ref() && asset.htlc == terms.htlc;
        if self.plan.freezes_the_receiver && is_own { Err(Refusal::new(Code::ReceiverNotPayable, "/destination").into()) } else { Ok(()) }
    }

    fn may_redeem(&self) -> bool {
        // An owner who cannot redeem comes back after half an hour of the alarm.
        let is_back = self.state.lock().unwrap().secret_known.is_some_and(|at| at + 1_800 <= self.time());
        self.plan.owner_redeems || is_back || !self.has_faults()
    }
}

impl Owner for Worlds {
    async fn fund(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        self.of(order.order_id()).sign_funding(self).await
    }

    async fn check_release(&self, record: &OrderRecord, registry: &Registry) -> Result<(), OwnerError> {
        self.of(&record.order_id).check_release(registry).await
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        self.of(&task.record.order_id).sign_settlement(self, task).await
    }

    fn can_redeem(&self, chain: &str) -> bool {
        self.connected && self.may_redeem.load(Ordering::SeqCst) && self.on(chain).may_redeem()
    }

    fn signs_here(&self, chain: &str) -> bool {
        self.on(chain).plan.signs_here
    }
}
