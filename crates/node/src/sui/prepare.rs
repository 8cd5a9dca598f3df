//! Prepares orders, redemptions and refunds with the gas price and the coins that the chain reports.

use countersign::sui::reader::{self, Rehearsal};
use countersign::sui::recover::Recovery;
use countersign::sui::sui_sdk_types::{Address, GasPayment};
use countersign::sui::{TxContext, UnsignedOrder, VerifiedOrder};
use countersign::{Code, Policy, Refusal, Role, U256, report::TypedValue};
use countersign_core::reader::{Ask, Expense, Submission};
use countersign_transport::Transport;

use super::wallet::{GasCoins, Payer};
use super::{SuiChain, own_address};
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::prepare::Bid;

/// The minimum budget, in units of gas. No transaction costs less.
const MIN_UNITS: u64 = 2_000;
/// The margin of a budget above what the simulation spent, in units of gas. It comes on top of a fifth.
const SPARE_UNITS: u64 = 1_000;
/// The fixed budget of a redemption, which cannot be simulated without showing the secret: units of gas, and MIST for storage. Both are
/// several times what a redemption spends.
const REDEEM_UNITS: u64 = 5_000;
const REDEEM_STORAGE: u64 = 25_000_000;

impl<T: Transport> SuiChain<'_, T> {
    pub(crate) async fn prepare(
        &self,
        order: &VerifiedOrder,
        _owner: &str,
        speed: Speed,
        policy: &Policy,
        _own: bool,
    ) -> Result<UnsignedOrder, NodeError> {
        let deposit = order.deposit();
        let registry = &deposit.terms.registry;
        let version = self.initial_shared_version(registry.object_id()).await?;
        if registry.version() != version {
            let refusal = Refusal::new(Code::UnknownRegistry, "/registry").with_reason("the object was shared at another version");
            return Err(refusal.with_expected(version).with_actual(registry.version()).into());
        }
        let attempt = async |coins| self.simulated(&coins, Payer::Deposit(deposit), policy, |gas| order.prepare(gas)).await;
        self.with_gas_coins(deposit.sender, speed, 0, attempt).await
    }

    pub(crate) async fn prepare_recovery(&self, recovery: &Recovery, account: &str, bid: Bid<'_>) -> Result<UnsignedOrder, NodeError> {
        self.recover_with(recovery, account, None, bid).await
    }

    /// Prepares a redemption or a refund that takes the place of one that was sent. It pays a price that is 10 % higher, but at most four
    /// times the reference price.
    ///
    /// An HTLC ends once, so two redemptions of it do each other no harm: the later one aborts, and costs its sender the gas. It uses other
    /// coins if the sender has any: validators may lock a coin that two transactions want to spend until the end of the epoch. With the
    /// same coins, one of the two is executed at most, and the first one has not been executed for a long time.
    pub(crate) async fn prepare_replacement(
        &self,
        recovery: &Recovery,
        account: &str,
        sent: &Submission,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder, NodeError> {
        let sent = reader::decode(sent)?.transaction.gas_payment;
        self.recover_with(recovery, account, Some(&sent), bid).await
    }

    async fn recover_with(
        &self,
        recovery: &Recovery,
        account: &str,
        replaces: Option<&GasPayment>,
        bid: Bid<'_>,
    ) -> Result<UnsignedOrder, NodeError> {
        let sender = own_address(account, "/sender")?;
        let outcome = match replaces {
            None => {
                let attempt = async |coins: GasCoins| self.recovered(recovery, sender, &coins, bid).await;
                self.with_gas_coins(sender, bid.speed, 0, attempt).await
            }
            Some(sent) => self.replaced(recovery, sender, sent, bid).await,
        };
        outcome.map_err(|error| match error {
            NodeError::Refused(refusal) => {
                let expense = |cost| recovery.expense(u64::try_from(cost).unwrap_or(u64::MAX));
                Expense::explain_cost(refusal, "sui_gas_budget", expense).into()
            }
            other => other,
        })
    }

    /// Prepares a replacement with other coins, or else with the same ones, and at the current price if they cannot pay more.
    async fn replaced(&self, recovery: &Recovery, sender: Address, sent: &GasPayment, bid: Bid<'_>) -> Result<UnsignedOrder, NodeError> {
        // Every replacement has another price, until it ends at the highest one.
        let first = usize::try_from(sent.price).unwrap_or_default();
        let others =
            async |coins: GasCoins| self.recovered(recovery, sender, &coins.outbidding(sent.price).without(&sent.objects), bid).await;
        let same = async |coins: GasCoins| self.recovered(recovery, sender, &coins.outbidding(sent.price), bid).await;
        let cheaper = async |coins: GasCoins| self.recovered(recovery, sender, &coins, bid).await;
        let mut outcome = self.with_gas_coins(sender, bid.speed, first, others).await;
        if is_too_poor(&outcome) {
            outcome = self.with_gas_coins(sender, bid.speed, first, same).await;
        }
        if is_too_poor(&outcome) {
            outcome = self.with_gas_coins(sender, bid.speed, first, cheaper).await;
        }
        outcome
    }

    async fn recovered(&self, recovery: &Recovery, sender: Address, coins: &GasCoins, bid: Bid<'_>) -> Result<UnsignedOrder, NodeError> {
        if recovery.terms().role != Role::Redeem {
            return self.simulated(coins, Payer::Recovery(recovery), bid.policy, |gas| recovery.prepare(gas.sent_by(sender))).await;
        }
        let limit = bid.policy.sui.gas_budget.saturating_sub(REDEEM_STORAGE) / REDEEM_UNITS;
        let price = bid.urgency.offer(coins.price.into(), coins.min_price.into(), limit.into());
        let offered = coins.at_price(u64::try_from(price).unwrap_or(u64::MAX));
        let budget = redemption_budget(offered.price, bid.policy)?;
        let purse = self.purse(&offered, Payer::Recovery(recovery), budget, budget).await?;
        let gas = self.gas(&offered, Payer::Recovery(recovery), budget, &purse).await?;
        let rehearsal = Rehearsal::new(&recovery.clone().rehearsal().prepare(gas.clone().sent_by(sender))?, bid.urgency);
        let rehearsed = self.connection.agreed::<Ask<_>>(&self.on(rehearsal)).await.and_then(|judged| Ok(judged.0?));
        bid.urgency.unless_unknown(rehearsed, NodeError::is_refused)?;
        let unsigned = recovery.prepare(gas.sent_by(sender))?;
        if offered.price < coins.price {
            return Ok(unsigned.with_warning(Code::GasLimitTooHigh, recovery.expense(budget).at_limit("sui_gas_budget")));
        }
        Ok(unsigned)
    }

    /// Simulates a transaction with as much gas as the policy and the coins allow. Then prepares it again with a budget of what that spent
    /// plus a fifth and [`SPARE_UNITS`].
    async fn simulated(
        &self,
        coins: &GasCoins,
        payer: Payer<'_>,
        policy: &Policy,
        prepare: impl Fn(TxContext) -> Result<UnsignedOrder, Refusal>,
    ) -> Result<UnsignedOrder, NodeError> {
        let min = coins.price.saturating_mul(MIN_UNITS);
        check(min, policy)?;
        let purse = self.purse(coins, payer, policy.sui.gas_budget, min).await?;
        let max = policy.sui.gas_budget.min(coins.total(&purse).saturating_sub(payer.split())).max(min);
        let trial = prepare(self.gas(coins, payer, max, &purse).await?)?;
        let spent = self.preflight(&trial).await?.gas_used.unwrap_or_default();
        let spare = (spent / 5).saturating_add(coins.price.saturating_mul(SPARE_UNITS));
        let budget = spent.saturating_add(spare).max(min);
        check(budget, policy)?;
        let unsigned = prepare(self.gas(coins, payer, budget, &purse).await?)?;
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }
}

/// Returns the budget of a redemption at a price of gas, in MIST. Whoever asks beforehand whether an account can pay asks for the same.
///
/// # Errors
///
/// [`Code::GasLimitTooHigh`] if the policy allows less.
pub(super) fn redemption_budget(price: u64, policy: &Policy) -> Result<u64, Refusal> {
    let budget = price.saturating_mul(REDEEM_UNITS).saturating_add(REDEEM_STORAGE);
    check(budget, policy)?;
    Ok(budget)
}

fn is_too_poor<T>(outcome: &Result<T, NodeError>) -> bool {
    matches!(outcome, Err(NodeError::Refused(refusal)) if refusal.code() == Code::InsufficientFunds)
}

/// Requires that a budget is within the policy.
fn check(budget: u64, policy: &Policy) -> Result<(), Refusal> {
    if budget <= policy.sui.gas_budget {
        return Ok(());
    }
    let refusal = Refusal::new(Code::GasLimitTooHigh, "/gas_budget").with_actual(budget);
    Err(refusal.with_expected(TypedValue::AtMost(U256::from(policy.sui.gas_budget))))
}
