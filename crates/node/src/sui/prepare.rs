//! Preparing an order, a redemption or a refund with what the chain says.

use countersign::sui::recover::Recovery;
use countersign::sui::{Gas, UnsignedOrder, VerifiedOrder};
use countersign::{Code, Policy, Refusal, Role, TypedValue, U256};
use countersign_client::Transport;

use super::wallet::Purse;
use super::{SuiChain, own_address};
use crate::error::NodeError;
use crate::nodes::Speed;

/// Units of gas that a budget can pay for at the least: no transaction costs less.
const MIN_UNITS: u64 = 2_000;
/// Units of gas that a budget has on top of what the simulation spent.
const SPARE_UNITS: u64 = 1_000;
/// The budget of a redemption, which cannot be simulated without showing the secret: units of gas, and MIST for storage. Both are
/// several times what one spends.
const REDEEM_UNITS: u64 = 5_000;
const REDEEM_STORAGE: u64 = 25_000_000;

impl<T: Transport> SuiChain<'_, T> {
    pub(crate) async fn prepare(&self, order: &VerifiedOrder, speed: Speed, policy: &Policy) -> Result<UnsignedOrder, NodeError> {
        let deposit = order.deposit();
        let registry = &deposit.terms.registry;
        let version = self.initial_shared_version(registry.object_id()).await?;
        if registry.version() != version {
            let refusal = Refusal::new(Code::UnknownRegistry, "/registry").with_reason("the object is shared since another version");
            return Err(refusal.with_expected(version).with_actual(registry.version()).into());
        }
        let split = if deposit.layout.coins.is_none() { deposit.terms.amount } else { 0 };
        let purse = self.purse(deposit.sender, speed).await?;
        self.simulated(&purse, split, policy, |gas| order.prepare(gas)).await
    }

    pub(crate) async fn prepare_recovery(
        &self,
        recovery: &Recovery,
        account: &str,
        speed: Speed,
        policy: &Policy,
    ) -> Result<UnsignedOrder, NodeError> {
        let sender = own_address(account, "/sender")?;
        let purse = self.purse(sender, speed).await?;
        if recovery.role == Role::Redeem {
            let budget = purse.price.saturating_mul(REDEEM_UNITS).saturating_add(REDEEM_STORAGE);
            check(budget, policy)?;
            let gas = purse.gas(0, budget)?;
            self.rehearse(&recovery.clone().rehearsal().prepare(sender, &gas)?).await?;
            return Ok(recovery.prepare(sender, &gas)?);
        }
        self.simulated(&purse, 0, policy, |gas| recovery.prepare(sender, &gas)).await
    }

    /// Simulates a transaction with as much gas as the policy and the coins allow, and prepares it again with a budget of what that
    /// spent, a fifth more, and some units to spare.
    async fn simulated(
        &self,
        purse: &Purse,
        split: u64,
        policy: &Policy,
        prepare: impl Fn(Gas) -> Result<UnsignedOrder, Refusal>,
    ) -> Result<UnsignedOrder, NodeError> {
        let least = purse.price.saturating_mul(MIN_UNITS);
        check(least, policy)?;
        let most = policy.sui_gas_budget.min(purse.total().saturating_sub(split)).max(least);
        let trial = prepare(purse.gas(split, most)?)?;
        let spent = self.preflight(&trial).await?.gas_used.unwrap_or_default();
        let spare = (spent / 5).saturating_add(purse.price.saturating_mul(SPARE_UNITS));
        let budget = spent.saturating_add(spare).max(least);
        check(budget, policy)?;
        let unsigned = prepare(purse.gas(split, budget)?)?;
        self.preflight(&unsigned).await?;
        Ok(unsigned)
    }
}

/// Requires a budget within the policy's.
fn check(budget: u64, policy: &Policy) -> Result<(), Refusal> {
    if budget <= policy.sui_gas_budget {
        return Ok(());
    }
    let refusal = Refusal::new(Code::GasLimitTooHigh, "/gas_budget").with_actual(budget);
    Err(refusal.with_expected(TypedValue::AtMost(U256::from(policy.sui_gas_budget))))
}
