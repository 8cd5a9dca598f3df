//! Recovery from an order record: redeem with the secret, refund after the timelock, or instant refund by both parties.
//!
//! Unlike on account chains, a recovery needs the funding outputs and a destination for the coins, and only the holder of the key can
//! sign it. A refund is valid once each funding output has as many confirmations as the timelock has blocks (BIP-68). The caller must
//! check that on chain.
//!
//! Specification: `docs/spec/bitcoin.md#redeem-and-refund`.

mod funding;
mod instant;
mod payout;
mod presigned;

use std::fmt;
use std::sync::Arc;

use bitcoin::{Amount, ScriptBuf, Sequence, TxOut, XOnlyPublicKey};
pub use countersign_core::Leg;
use countersign_core::family::Recovered;
use countersign_core::reader::check_low_fee;
use countersign_core::{
    Account, Code, Family, OrderRecord, Policy, RecoveryTerms, Refusal, Registry, Role, SecretHash, Summary, Topic, TypedValue, U256,
    Warnings,
};

pub use funding::{Funding, FundingSource, FundingStatus, FundingTx};
pub use instant::{Body, InstantRefund};
pub use payout::{Exceptions, Fee, FeeCoins, Payout};

use crate::address::{Chain, Destination};
use crate::htlc::{self, Leaf, Tree};
use crate::summary::format_coins;
use crate::transaction::{FeeRate, Input, Kind, LeafSpend, Payment, Secret, Unsigned, sum};
use crate::{Bitcoin, UnsignedOrder};

/// The HTLC of one leg of a record, with its recomputed address.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordedHtlc {
    /// The order id of the record.
    pub order_id: String,
    /// The chain of the leg.
    pub chain: Chain,
    /// The HTLC and its output key.
    pub tree: Tree,
    /// The amount of the leg.
    pub amount: Amount,
    /// The amount that has been paid, according to the record.
    pub filled: Amount,
    /// The funding transactions, according to the record. Empty if the record's entry cannot be read.
    pub funding: Vec<FundingTx>,
    /// The record's entry about the funding transactions, if it cannot be read.
    malformed_funding: Option<String>,
    initiator: XOnlyPublicKey,
    redeemer: XOnlyPublicKey,
    instant_refund_tx: Option<String>,
    /// The chain's name in asset ids.
    chain_name: String,
    leg: Leg,
    /// The highest fee rate that the policy allows, in sat/vB.
    max_fee_rate: u64,
}

/// A recovery of one leg, to which [`Recovery::prepare`] adds funding outputs, a destination and a fee.
#[derive(Clone)]
pub struct Recovery {
    /// The HTLC to recover from.
    pub htlc: RecordedHtlc,
    secret: Option<Secret>,
}

impl fmt::Debug for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recovery").field("role", &self.role()).field("htlc", &self.htlc).finish_non_exhaustive()
    }
}

/// Returns the recovery that redeems a leg with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret does not hash to the record's secret hash, or the errors of [`RecordedHtlc::new`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let htlc = RecordedHtlc::new(record, leg, registry)?;
    htlc.check_secret(secret)?;
    Ok(Recovery { htlc, secret: Some(Secret::new(secret)) })
}

/// Returns the recovery that refunds a leg after its timelock.
///
/// # Errors
///
/// The errors of [`RecordedHtlc::new`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    Ok(Recovery { htlc: RecordedHtlc::new(record, leg, registry)?, secret: None })
}

impl Recovery {
    /// Returns whether the recovery redeems or refunds.
    #[must_use]
    pub const fn role(&self) -> Role {
        if self.secret.is_some() { Role::Redeem } else { Role::Refund }
    }

    /// Returns the x-only key that must sign, which is independent of the destination.
    #[must_use]
    pub fn signer(&self) -> Account {
        let key = if self.secret.is_some() { self.htlc.redeemer } else { self.htlc.initiator };
        Account::from_array(Family::Bitcoin, key.serialize())
    }

    /// Returns the terms of the recovery: order, chain, role, recipient and amount.
    #[must_use]
    pub fn terms(&self) -> RecoveryTerms {
        let htlc = &self.htlc;
        RecoveryTerms::new(htlc.order_id.clone(), htlc.chain_name.clone(), self.role(), self.signer(), U256::from(htlc.amount.to_sat()))
    }

    /// Applies the fee rate ceiling of `policy` instead of the default policy's.
    #[must_use]
    pub fn with_policy(mut self, policy: &Policy) -> Self {
        self.htlc = self.htlc.with_policy(policy);
        self
    }

    /// Prepares the transaction that recovers the coins.
    ///
    /// # Errors
    ///
    /// The errors of [`RecordedHtlc::redeem`] and [`RecordedHtlc::refund`].
    pub fn prepare(&self, payout: Payout) -> Result<UnsignedOrder, Refusal> {
        match &self.secret {
            Some(secret) => self.htlc.redeem(&secret.0, &payout),
            None => self.htlc.refund(&payout),
        }
    }

    /// Returns the virtual size of the transaction that spends all outputs of a payout, if the fee is deducted from it.
    ///
    /// # Errors
    ///
    /// The errors of [`Destination::script`], or [`Code::ChangeToDeposit`], for the destination.
    pub fn vsize(&self, payout: &Payout) -> Result<u64, Refusal> {
        let script = self.htlc.destination(&payout.to)?;
        let inputs = self.htlc.inputs(self.leaf()?, Sequence::MAX, &payout.fundings, payout);
        Ok(payout::vsize(self.htlc.chain, &inputs, &script))
    }

    /// Divides outputs of the HTLC into those that one transaction spends, and the others.
    ///
    /// One output that covers the amount is spent alone: the first one that is given. Others may be refundable at another time, and whoever
    /// paid them could evict the whole transaction. If none covers the amount, every output is spent that is worth more than the fee of
    /// its input. The first list is empty if there is none.
    #[must_use]
    pub fn divide(&self, outputs: impl IntoIterator<Item = Funding>, fee_rate: FeeRate) -> (Vec<Funding>, Vec<Funding>) {
        self.leaf().map_or_else(|_| Default::default(), |leaf| self.htlc.divide(&leaf, outputs, fee_rate))
    }

    fn leaf(&self) -> Result<LeafSpend, Refusal> {
        self.htlc.leaf(self.secret.as_ref().map(|secret| &*secret.0))
    }
}

impl RecordedHtlc {
    /// Reads one leg, recomputes its address, and requires that it is the recorded swap id.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownAsset`], [`Code::UnsupportedFamily`], [`Code::RecordMismatch`], [`Code::MissingField`],
    /// [`Code::TimelockTooLong`], [`Code::RecordSwapId`] for another address, or [`Code::AmountAboveSupply`]. The location is the field of
    /// the record.
    pub fn new(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Self, Refusal> {
        let swap = leg.of(record);
        let refuse = |code, member: &str| leg.refuse(code, member);
        let asset = leg.pinned(swap, registry)?;
        let chain = Chain::from_network(&asset.chain.network)
            .ok_or_else(|| refuse(Code::UnsupportedFamily, "asset").with_expected(Family::Bitcoin).with_actual(asset.chain.family()))?;
        let htlc = htlc::from_record(asset, chain, swap, &|_| false, &refuse)?;
        let tree = Tree::of_asset(htlc, asset).ok_or_else(|| refuse(Code::UnknownAsset, "asset"))?;
        let address = tree.address(chain);
        if !swap.swap_id.eq_ignore_ascii_case(&address) {
            return Err(refuse(Code::RecordSwapId, "swap_id").with_expected(address).with_actual(&swap.swap_id));
        }
        let amount =
            |member: &str, wide: U256| chain.checked_amount(wide).ok_or_else(|| refuse(Code::AmountAboveSupply, member).with_actual(wide));
        let key = |member: &str, key: &[u8; 32]| XOnlyPublicKey::from_slice(key).map_err(|_| refuse(Code::RecordMismatch, member));
        let funding = swap.initiate_tx_hash.as_deref().map_or(Some(Vec::new()), FundingTx::parse_list);
        Ok(Self {
            order_id: record.order_id.clone(),
            chain,
            tree,
            amount: amount("amount", swap.amount)?,
            filled: amount("filled_amount", swap.filled_amount)?,
            malformed_funding: swap.initiate_tx_hash.clone().filter(|_| funding.is_none()),
            funding: funding.unwrap_or_default(),
            initiator: key("initiator", &htlc.initiator)?,
            redeemer: key("redeemer", &htlc.redeemer)?,
            instant_refund_tx: swap.instant_refund_tx.clone(),
            chain_name: asset.chain.record.chain.clone(),
            leg,
            max_fee_rate: Policy::default().bitcoin.fee_rate,
        })
    }

    /// Applies the fee rate ceiling of `policy` instead of the default policy's.
    #[must_use]
    pub const fn with_policy(mut self, policy: &Policy) -> Self {
        self.max_fee_rate = policy.bitcoin.fee_rate;
        self
    }

    /// Returns what has been paid according to the record, or the whole amount if its filled amount is zero.
    #[must_use]
    pub fn paid(&self) -> Amount {
        if self.filled == Amount::ZERO { self.amount } else { self.filled }
    }

    /// Returns how much has been paid, according to the record.
    #[must_use]
    pub fn funding_status(&self) -> FundingStatus {
        match self.amount.checked_sub(self.filled) {
            _ if self.filled == Amount::ZERO => FundingStatus::Unfunded,
            Some(missing) if missing > Amount::ZERO => FundingStatus::Partial { missing },
            _ => FundingStatus::Full,
        }
    }

    /// Prepares the transaction that takes the coins back after the timelock.
    ///
    /// The sequence of its inputs is the timelock, so nodes refuse it until each funding output has that many confirmations.
    ///
    /// # Errors
    ///
    /// [`Code::FundingMismatch`] for no output, one that is given twice, or more than the chain's supply; the errors of
    /// [`Destination::script`], or [`Code::ChangeToDeposit`], for an address; [`Code::UtxoTwice`], [`Code::AmountAboveSupply`] or
    /// [`Code::InsufficientFunds`] for the coins that pay the fee; [`Code::FeeAbovePayout`] if the fee leaves less than nodes relay, or is
    /// higher than what is paid out; [`Code::FeeRateTooHigh`] if the rate is above the policy's; [`Code::TransactionAboveStandard`].
    pub fn refund(&self, payout: &Payout) -> Result<UnsignedOrder, Refusal> {
        let timelock = self.tree.htlc.timelock;
        let mut summary = Summary::default();
        let text = format!("nodes accept it once each funding output has {timelock} confirmations");
        summary.add_values(Topic::Timelock, text, [timelock.into()]);
        self.spend(Role::Refund, self.leaf(None)?, Sequence::from_height(timelock), payout, summary)
    }

    /// Prepares the transaction that takes the coins with the secret.
    ///
    /// # Errors
    ///
    /// [`Code::SecretWrong`] if the secret does not hash to the HTLC's secret hash; [`Code::FundingMismatch`] if no single output covers
    /// the amount; [`Code::FeeTooLow`]; or the errors of [`RecordedHtlc::refund`]. See [`Exceptions`].
    pub fn redeem(&self, secret: &[u8; 32], payout: &Payout) -> Result<UnsignedOrder, Refusal> {
        self.check_secret(secret)?;
        self.spend(Role::Redeem, self.leaf(Some(secret))?, Sequence::ENABLE_RBF_NO_LOCKTIME, payout, Summary::default())
    }

    fn check_secret(&self, secret: &[u8; 32]) -> Result<(), Refusal> {
        let expected = SecretHash(self.tree.htlc.secret_hash);
        if SecretHash::of(secret) == expected {
            return Ok(());
        }
        Err(self.refuse(Code::SecretWrong, "secret_hash").with_expected(expected))
    }

    /// Returns the leaf that a redemption with this secret, or without one a refund, spends.
    fn leaf(&self, secret: Option<&[u8; 32]>) -> Result<LeafSpend, Refusal> {
        let leaf = match secret {
            Some(secret) => LeafSpend::new(&self.tree, Leaf::Redeem, self.redeemer, Some(Secret::new(secret))),
            None => LeafSpend::new(&self.tree, Leaf::Refund, self.initiator, None),
        };
        leaf.ok_or_else(|| self.refuse(Code::UnknownAsset, "asset"))
    }

    fn inputs(&self, leaf: LeafSpend, sequence: Sequence, fundings: &[Funding], payout: &Payout) -> Vec<Input> {
        let leaf = Arc::new(leaf);
        let origin = payout.origins.iter().find(|origin| origin.x_only() == leaf.signer);
        let inputs = fundings.iter().map(|funding| {
            let kind = Kind::Htlc(Arc::clone(&leaf));
            Input::new(funding.outpoint, sequence, self.prevout(funding), kind).with_origin(origin.cloned())
        });
        inputs.collect()
    }

    fn spend(&self, role: Role, leaf: LeafSpend, sequence: Sequence, payout: &Payout, summary: Summary) -> Result<UnsignedOrder, Refusal> {
        self.check_fundings(&payout.fundings)?;
        let outputs = payout.fundings.iter().copied();
        let (spent, left) = match payout.source {
            FundingSource::Chain => (outputs.collect(), Vec::new()),
            FundingSource::Caller => match self.divide(&leaf, outputs, payout.fee.rate()) {
                (none, all) if none.is_empty() => (all, none),
                divided => divided,
            },
        };
        let mut warnings = self.funding_warnings(&spent);
        if role == Role::Redeem {
            self.check_covered(&spent, payout.accepts.less, &mut warnings)?;
        }
        funding::warn_of_left(&left, &mut warnings);
        let script = self.destination(&payout.to)?;
        let total = sum(spent.iter().map(|funding| funding.value));
        let payment = payout.fee.pay(self.chain, self.inputs(leaf, sequence, &spent, payout), total, script)?;
        self.recovery(role, payment, summary, warnings, payout.accepts, payout.source)
    }

    fn divide(&self, leaf: &LeafSpend, outputs: impl IntoIterator<Item = Funding>, fee_rate: FeeRate) -> (Vec<Funding>, Vec<Funding>) {
        let mut outputs: Vec<_> = outputs.into_iter().collect();
        if let Some(index) = outputs.iter().position(|funding| funding.value >= self.amount) {
            return (vec![outputs.remove(index)], outputs);
        }
        // Every input has the same weight, so it costs the same.
        let weight = Kind::Htlc(Arc::new(leaf.clone())).weight();
        let cost = fee_rate.fee(weight.div_ceil(4)).unwrap_or(Amount::MAX);
        outputs.into_iter().partition(|funding| funding.value > cost)
    }

    /// Checks the fee of a recovery, and adds the summary line on the payout. The payout is all outputs except the change; they have the
    /// same script.
    fn recovery(
        &self,
        role: Role,
        payment: Payment,
        mut summary: Summary,
        mut warnings: Warnings,
        accepts: Exceptions,
        source: FundingSource,
    ) -> Result<UnsignedOrder, Refusal> {
        let outputs = payment.transaction().output.iter().enumerate();
        let paid: Vec<_> = outputs.filter(|(index, _)| payment.change != Some(*index)).map(|(_, output)| output).collect();
        let value = sum(paid.iter().map(|output| output.value));
        let what = if role == Role::Redeem { "redemption" } else { "refund" };
        let (cost, pays) = (format_coins(payment.fee, self.chain), format_coins(value, self.chain));
        payment.fee_rate.check_ceiling(self.max_fee_rate, "/fee_rate").map_err(|refusal| {
            let reason =
                format!("the fee rate is above the policy's: the {what} would cost {cost} and pay out {pays}, so wait for lower fees");
            refusal.with_reason(reason)
        })?;
        let why = format!("the {what} would cost {cost} and pay out {pays}");
        if payment.fee > value && !accepts.high_fee {
            let reason = format!("the fee is higher than the amount that is paid out: {why} (`accept_high_fee` allows it)");
            let refusal = Refusal::new(Code::FeeAbovePayout, "/fee_rate").with_reason(reason);
            return Err(refusal.with_expected(TypedValue::AtMost(U256::from(value.to_sat()))).with_actual(payment.fee.to_sat()));
        }
        if payment.fee > value {
            warnings.warn_about(Code::FeeAbovePayout, why);
        }
        let floor = self.chain.min_fee_rate();
        // A rate that was read from nodes is one that they relay. With a redemption that is not enough: other nodes see its secret too.
        if payment.fee_rate.is_below(floor) && (role == Role::Redeem || source == FundingSource::Caller) {
            let why = format!("{} sat/vB, and not every node relays less than {floor}", payment.fee_rate);
            check_low_fee(role, accepts.low_fee, "/fee_rate", &why, &mut warnings)?;
        }
        if let Some(first) = paid.first() {
            let (swap, to) = (self.tree.address(self.chain), self.chain.format_script(&first.script_pubkey));
            let text = format!("{role} of swap {swap} pays {} to {to}", format_coins(value, self.chain));
            summary.add_values(Topic::Payout, text, [swap.into(), self.chain.amount(value).into(), to.into()]);
        }
        let unsigned = Unsigned { role, deposit: None, payment: Some(payment) };
        let (order_id, chain) = (Some(self.order_id.clone()), self.chain_name.clone());
        Ok(UnsignedOrder::from_recovery(Recovered { order_id, chain, summary, unsigned, warnings }, Bitcoin(())))
    }

    fn refuse(&self, code: Code, member: &str) -> Refusal {
        self.leg.refuse(code, member)
    }

    fn prevout(&self, funding: &Funding) -> TxOut {
        TxOut { value: funding.value, script_pubkey: self.tree.script_pubkey() }
    }

    /// Returns the script of a destination, which must not be the HTLC itself.
    fn destination(&self, to: &Destination) -> Result<ScriptBuf, Refusal> {
        let script = to.script(self.chain, "/to")?;
        if script == self.tree.script_pubkey() {
            return Err(Refusal::new(Code::ChangeToDeposit, "/to"));
        }
        Ok(script)
    }
}
