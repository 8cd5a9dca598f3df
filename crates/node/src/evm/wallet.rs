//! The wallet context for signing: nonce, fees, balances and allowances.

use std::time::Duration;

use countersign::chains::ChainProfile;
use countersign::evm::alloy_primitives::{Address, U256};
use countersign::evm::reader::{
    Amount, AmountOf, Context, FeeLevels, L1Gas, L1GasEstimation, NonceAndFees, Prices, RedemptionOf, fees, needs_lower_height,
    pending_nonce,
};
use countersign::evm::recover::{Recovery, gas_limit};
use countersign::evm::{Fees, TxContext};
use countersign::{Policy, Role, trust::Contract};
use countersign_core::reader::{high_median, median};
use countersign_transport::Transport;

use super::EvmChain;
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::prepare::{Bid, Stakes};

/// How often the nonces are read again before the lowest unmined one is taken to be stuck, and how far apart: a block of Ethereum.
const MAX_FEE_READS: usize = 3;
const FEE_READ_PAUSE: Duration = Duration::from_secs(4);
/// The gas for the data of a redemption or a refund on an Arbitrum chain where too few endpoints state it: some 4,000 units at 2.5 gwei, where
/// gas costs 0.01 gwei.
const USUAL_DATA_GAS: u64 = 1_000_000;

/// What the endpoints that agree show.
struct Shown {
    all: Vec<NonceAndFees>,
    mined_nonce: u64,
}

impl Shown {
    /// Returns whether as many endpoints as must agree have a transaction of the account that is not mined yet. What fewer of them show
    /// must not make a redemption wait, or pay for taking the place of another transaction.
    fn has_gap(&self, needed: usize) -> bool {
        self.all.iter().filter(|one| one.nonce > one.mined_nonce).count() >= needed
    }

    /// Returns the nonce after the pending transactions; `None` if the endpoints show different ones.
    fn next_nonce(&self, needed: usize) -> Option<u64> {
        if self.has_gap(needed) { pending_nonce(&self.all, needed) } else { Some(self.mined_nonce) }
    }

    /// Returns the fees for a speed: each of their components is the median of the endpoints.
    fn fees(&self, speed: Speed) -> Option<Fees> {
        self.fees_by(fees::levels, speed)
    }

    fn fees_by(&self, levels: fn(&[Prices]) -> Option<FeeLevels>, speed: Speed) -> Option<Fees> {
        let prices: Vec<_> = self.all.iter().map(|one| one.prices).collect();
        let levels = levels(&prices)?;
        Some(match speed {
            Speed::Slow => levels.slow,
            Speed::Normal => levels.normal,
            Speed::Fast => levels.fast,
        })
    }
}

impl<T: Transport> EvmChain<'_, T> {
    /// Reads the context for signing the next calls of `sender`: the nonce after its pending transactions, and the
    /// [fees](fees::FeeLevels). The endpoints must agree on the nonce. Base fee and tip are the medians of the endpoints.
    ///
    /// [`TxContext::unmined`] is the number of the sender's transactions that are not mined yet. The calls wait for them.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::GasPriceTooHigh`](countersign::Code::GasPriceTooHigh) if the fees exceed the policy,
    /// and another [`NodeError`] if no endpoint answers or too few of them agree on the nonce.
    pub async fn calls(&self, sender: Address, speed: Speed, policy: &Policy) -> Result<TxContext, NodeError> {
        let calls = self.next_calls(sender, speed).await?;
        fees::check(calls.fees, self.limit(policy))?;
        Ok(calls)
    }

    /// Returns the maximum price of one unit of gas, in wei.
    pub(super) fn limit(&self, policy: &Policy) -> u128 {
        fees::limit(policy, ChainProfile::of(self.connection.name, self.connection.network))
    }

    /// Returns the gas limits to try for a redemption or a refund, in this order, until its sender has the coins for one.
    ///
    /// A redemption that makes the secret public has only the one that is surely enough, because with too low a limit it reveals the secret
    /// in a transaction that fails. Once the secret is out, and for a refund, neither silent endpoints nor the policy's limit nor what a
    /// single endpoint of two states prevents the transaction: after the limit by the [data's gas](Self::data_gas), that by the lower median
    /// is tried, and the one of a chain that does not charge data as gas.
    pub(super) async fn recovery_gas(&self, recovery: &Recovery, bid: Bid<'_>) -> Result<Vec<u64>, NodeError> {
        let (htlc, policy) = (recovery.contract(), bid.policy);
        if bid.stakes(recovery.terms().role).makes_public() {
            return Ok(vec![gas_limit(policy, self.data_gas(htlc).await?)?]);
        }
        let stated = self.stated_data_gas(htlc).await.unwrap_or_else(|_| vec![USUAL_DATA_GAS]);
        let amounts = [high_median(stated.iter().copied()), median(stated), Some(0)];
        let mut limits: Vec<_> = amounts.into_iter().flatten().map(|gas| gas_limit(policy, gas).unwrap_or(policy.evm.gas_limit)).collect();
        limits.dedup();
        Ok(limits)
    }

    /// Returns the gas for the data of a redemption of an HTLC: the higher median of what the endpoints state. It is 0 on chains that do not
    /// charge data as gas. A refund has less data.
    pub(super) async fn data_gas(&self, htlc: Address) -> Result<u64, NodeError> {
        Ok(high_median(self.stated_data_gas(htlc).await?).unwrap_or_default())
    }

    async fn stated_data_gas(&self, htlc: Address) -> Result<Vec<u64>, NodeError> {
        if !needs_lower_height(self.chain_id, ChainProfile::of(self.connection.name, self.connection.network)) {
            return Ok(Vec::new());
        }
        let shown = self.connection.all_agreed::<L1GasEstimation>(&self.on_chain(RedemptionOf(htlc)), Stakes::Time).await?;
        Ok(shown.into_iter().map(|L1Gas(gas)| gas).collect())
    }

    /// Reads the context for a redemption, which must never queue behind a stuck transaction of the sender.
    ///
    /// If transactions are pending that are not mined within a few seconds, the redemption takes the lowest unmined nonce, with
    /// [fees](fees::displacing) that replace whatever has it. A second context has the same nonce and ordinary fees, for a sender who
    /// cannot pay the higher ones. `is_overdue` is whether a redemption was sent long ago, so that nothing has to be waited for. One that
    /// makes the secret public has the fees of [`fees::revealing_levels`].
    pub(super) async fn redemption_calls(&self, sender: Address, bid: Bid<'_>, is_overdue: bool) -> Result<Vec<TxContext>, NodeError> {
        let stakes = bid.stakes(Role::Redeem);
        let levels = if stakes.makes_public() { fees::revealing_levels } else { fees::levels };
        let mut shown = self.shown(sender, stakes).await?;
        let stuck_at = shown.mined_nonce;
        let mut looks = if is_overdue { 0 } else { MAX_FEE_READS };
        // Transactions that were sent a moment ago, such as those of another order, are given the time to be mined.
        while looks > 0 && shown.has_gap(self.needed()) && shown.mined_nonce == stuck_at {
            self.connection.transport.sleep(FEE_READ_PAUSE).await;
            shown = self.shown(sender, stakes).await?;
            looks = looks.saturating_sub(1);
        }
        let ordinary = shown.fees_by(levels, bid.speed);
        match shown.next_nonce(self.needed()) {
            Some(nonce) if !shown.has_gap(self.needed()) || shown.mined_nonce != stuck_at => Ok(vec![self.with_nonce(nonce, ordinary)?]),
            _ => {
                let fees = shown.fees_by(levels, Speed::Fast).map(|fees| fees::displacing(fees, self.limit(bid.policy)));
                let calls = self.with_nonce(shown.mined_nonce, fees)?;
                Ok(vec![calls, self.with_nonce(shown.mined_nonce, ordinary)?])
            }
        }
    }

    /// Reads the nonce after the mined transactions.
    pub(super) async fn mined_nonce(&self, sender: Address) -> Result<u64, NodeError> {
        Ok(self.shown(sender, Stakes::Time).await?.mined_nonce)
    }

    /// Reads the context for signing calls that replace unmined ones. It has the same nonce. The fee cap and the tip are at least 10 %
    /// higher, as nodes require, and at least the current fees of the chain.
    ///
    /// The calls themselves must not change: prepare the same order with this context.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`EvmChain::calls`].
    pub async fn replacement(&self, sender: Address, calls: &TxContext, speed: Speed, policy: &Policy) -> Result<TxContext, NodeError> {
        let now = self.current_fees(sender, speed, Stakes::Time).await?;
        let mut replacement = calls.clone();
        replacement.fees = fees::raised(calls.fees, now);
        fees::check(replacement.fees, self.limit(policy))?;
        replacement.unmined = 0;
        Ok(replacement)
    }

    /// Reads the balance of an account in base units of a token, or in wei of the chain's own coin if `token` is `None`. The endpoints
    /// must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Address, token: Option<Address>) -> Result<U256, NodeError> {
        self.amount(AmountOf::Balance { owner, token }).await
    }

    pub(crate) async fn balance_of(&self, owner: &str, token: Option<&Contract>) -> Result<U256, NodeError> {
        let token = token.map(|token| self.parse(&token.text, "/token")).transpose()?;
        self.balance(self.parse(owner, "/owner")?, token).await
    }

    /// Reads the number of base units of a token that `spender` may take from `owner`. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn allowance(&self, token: Address, owner: Address, spender: Address) -> Result<U256, NodeError> {
        self.amount(AmountOf::Allowance { token, owner, spender }).await
    }

    async fn amount(&self, of: AmountOf) -> Result<U256, NodeError> {
        Ok(self.connection.agreed::<Amount>(&self.on_chain(of)).await?.0)
    }

    /// Returns the fees of this moment.
    pub(super) async fn current_fees(&self, sender: Address, speed: Speed, stakes: Stakes) -> Result<Fees, NodeError> {
        self.shown(sender, stakes).await?.fees(speed).ok_or_else(|| self.not_connected())
    }

    /// Reads the context for calls that wait for the pending transactions of the sender. The limit is not checked.
    pub(super) async fn next_calls(&self, sender: Address, speed: Speed) -> Result<TxContext, NodeError> {
        let shown = self.shown(sender, Stakes::Time).await?;
        let Some(nonce) = pending_nonce(&shown.all, self.needed()) else {
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let detail = "; they show different pending transactions of the sender".to_owned();
            return Err(NodeError::Disagree { agreed: 1, needed: count(self.needed()), detail });
        };
        let calls = self.with_nonce(nonce, shown.fees(speed))?;
        Ok(calls.with_unmined(nonce.saturating_sub(shown.mined_nonce)))
    }

    fn with_nonce(&self, nonce: u64, fees: Option<Fees>) -> Result<TxContext, NodeError> {
        Ok(TxContext::new(nonce, fees.ok_or_else(|| self.not_connected())?).with_chain_id(self.chain_id))
    }

    async fn shown(&self, sender: Address, stakes: Stakes) -> Result<Shown, NodeError> {
        let all = self.connection.all_agreed::<Context>(&self.on_chain(sender), stakes).await?;
        let mined_nonce = all.first().map(|one| one.mined_nonce).ok_or_else(|| self.not_connected())?;
        Ok(Shown { all, mined_nonce })
    }

    fn needed(&self) -> usize {
        usize::try_from(self.connection.needed()).unwrap_or(usize::MAX)
    }

    pub(super) fn not_connected(&self) -> NodeError {
        NodeError::NotConnected(self.connection.name.to_owned())
    }
}
