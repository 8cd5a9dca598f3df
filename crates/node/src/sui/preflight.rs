//! The preflight: checks funds, and simulates the transaction, before anything is signed.

use std::collections::BTreeMap;

use countersign::sui::sui_sdk_types::{Address, TypeTag};
use countersign::sui::{UnsignedOrder, htlc};
use countersign::{Code, Refusal, Role, TypedValue, U256, text};
use countersign_client::Transport;

use super::grpc::{FAILED_PRECONDITION, INVALID_ARGUMENT};
use super::messages::{BalanceChange, Bcs, ExecutedTransaction, FieldMask, SimulateTransactionRequest, Transaction};
use super::wallet::balance;
use super::{SuiChain, address, missing};
use crate::endpoint::Caller;
use crate::error::NodeError;

/// The fields that are read of a simulation.
const SIMULATION: [&str; 2] = ["transaction.effects", "transaction.balance_changes"];
/// The maximum number of balance changes. An order causes a handful.
const MAX_CHANGES: usize = 64;

/// The contract's abort codes for an order that is not in the registry, and for one that has ended. It checks these before the secret.
const NO_OPEN_ORDER: [u64; 2] = [5, 14];

/// The result of a preflight that found nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// The SUI balance of the account that pays for gas, in MIST.
    pub balance: u64,
    /// The maximum that the transaction can spend of it, in MIST: the gas budget, and the amount if SUI is locked.
    pub cost: u64,
    /// The gas cost of the simulation before rebates, in MIST. The budget must cover it. `None` if nothing was simulated.
    pub gas_used: Option<u64>,
}

/// What a transaction must do.
struct Plan {
    role: Role,
    bytes: Vec<u8>,
    gas_owner: Address,
    budget: u64,
    deposit: Option<Expected>,
}

/// The payment that was verified.
struct Expected {
    /// The account that pays. It is the owner of the gas coins if the amount is split from them.
    payer: Address,
    coin_type: TypeTag,
    amount: u64,
}

impl Plan {
    fn new(order: &UnsignedOrder) -> Self {
        let payload = order.payloads();
        let gas_owner = payload.gas_payment.owner;
        let deposit = order.verified().map(|order| {
            let deposit = order.deposit();
            let payer = if deposit.layout.coins.is_none() { gas_owner } else { payload.sender };
            Expected { payer, coin_type: deposit.terms.coin_type.clone(), amount: deposit.terms.amount }
        });
        Self { role: payload.role, bytes: payload.bytes.clone(), gas_owner, budget: payload.gas_payment.budget, deposit }
    }

    /// Returns what the coins that pay for gas must cover, in MIST.
    fn cost(&self) -> u64 {
        let split = self.deposit.as_ref().filter(|expected| expected.coin_type == htlc::sui()).map_or(0, |expected| expected.amount);
        self.budget.saturating_add(split)
    }
}

impl<'n, T: Transport> SuiChain<'n, T> {
    /// Checks that there is enough SUI and enough of the coin, and simulates the transaction. Call it before signing.
    ///
    /// The simulation must take exactly the verified amount and the gas from the accounts that pay them. No other balance may change,
    /// except that a refund may pay out. A redemption is not simulated, because that would show the secret to the node.
    ///
    /// The first endpoint that answers decides. A preflight protects from mistakes, not from a dishonest node.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with
    ///
    /// - [`Code::InsufficientFunds`] if an account has too little,
    /// - [`Code::SimulationReverted`] if the transaction fails,
    /// - [`Code::SimulationDiffers`] if the transaction would do something else than what was verified,
    ///
    /// and another [`NodeError`] if no endpoint answers.
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        let plan = Plan::new(order);
        self.connection.first(|caller| self.check(caller, &plan)).await
    }

    /// Simulates a redemption with a wrong secret, which the contract must refuse. This detects a redemption that would fail for another
    /// reason, and would reveal the real secret for nothing.
    ///
    /// # Errors
    ///
    /// Returns [`Code::SimulationReverted`] if the call fails before the contract checks the secret, or because there is no such open
    /// order. Returns [`Code::SimulationDiffers`] if the call succeeds.
    pub(super) async fn rehearse(&self, rehearsal: &UnsignedOrder) -> Result<(), NodeError> {
        let plan = Plan::new(rehearsal);
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            rehearse(caller, &plan).await
        };
        self.connection.first(ask).await
    }

    async fn check(&self, caller: Caller<'n, T>, plan: &Plan) -> Result<Preflight, NodeError> {
        self.identify(caller).await?;
        let (sui, cost) = (htlc::sui(), plan.cost());
        let has = balance(caller, plan.gas_owner, &sui).await?;
        if has < cost {
            return Err(insufficient("/balance", "SUI", cost, has).into());
        }
        if let Some(Expected { payer, coin_type, amount }) = plan.deposit.as_ref().filter(|expected| expected.coin_type != sui) {
            let has = balance(caller, *payer, coin_type).await?;
            if has < *amount {
                return Err(insufficient("/token", "of the coin", *amount, has).into());
            }
        }
        let gas_used = match plan.role {
            Role::Redeem => None,
            _ => Some(simulate(caller, plan).await?),
        };
        Ok(Preflight { balance: has, cost, gas_used })
    }
}

fn insufficient(at: &'static str, what: &str, needed: u64, has: u64) -> Refusal {
    let reason = format!("the account has too little {what}");
    Refusal::new(Code::InsufficientFunds, at).with_expected(TypedValue::AtLeast(U256::from(needed))).with_actual(has).with_reason(reason)
}

/// Simulates the transaction on top of the newest state.
async fn run<T: Transport>(caller: Caller<'_, T>, plan: &Plan) -> Result<ExecutedTransaction, NodeError> {
    let transaction = Some(Transaction { bcs: Bcs::new(plan.bytes.clone()) });
    let request = SimulateTransactionRequest { transaction, read_mask: FieldMask::new(&SIMULATION) };
    match caller.grpc(&request).await {
        Ok(answer) => answer.transaction.ok_or_else(|| missing(caller, "/transaction")),
        // The chain refuses the transaction before it executes anything. Examples are spent coins and a price below the reference price.
        Err(NodeError::Rpc { code: INVALID_ARGUMENT | FAILED_PRECONDITION, message, .. }) => Err(reverted(plan, &message).into()),
        Err(error) => Err(error),
    }
}

async fn rehearse<T: Transport>(caller: Caller<'_, T>, plan: &Plan) -> Result<(), NodeError> {
    let executed = run(caller, plan).await?;
    let Some(reason) = failure(caller, &executed)? else {
        let refusal = Refusal::new(Code::SimulationDiffers, format!("/{}", plan.role));
        return Err(refusal.with_reason("the contract accepts a wrong secret").into());
    };
    let error = executed.effects.and_then(|effects| effects.status).and_then(|status| status.error);
    let abort = error.and_then(|error| error.abort).unwrap_or_default();
    let module = abort.location.and_then(|location| location.module);
    let is_about_the_secret = abort.abort_code.is_some_and(|code| !NO_OPEN_ORDER.contains(&code));
    if module.as_deref() != Some(htlc::MODULE) || !is_about_the_secret {
        return Err(reverted(plan, &reason).into());
    }
    Ok(())
}

/// Simulates the transaction, and requires that it does what was verified. Returns its gas cost before rebates, in MIST.
async fn simulate<T: Transport>(caller: Caller<'_, T>, plan: &Plan) -> Result<u64, NodeError> {
    let executed = run(caller, plan).await?;
    if let Some(reason) = failure(caller, &executed)? {
        return Err(reverted(plan, &reason).into());
    }
    let gas = executed.effects.and_then(|effects| effects.gas_used).ok_or_else(|| missing(caller, "/transaction/effects/gas_used"))?;
    let spent = gas.computation_cost.unwrap_or_default().saturating_add(gas.storage_cost.unwrap_or_default());
    let net = i128::from(spent).saturating_sub(i128::from(gas.storage_rebate.unwrap_or_default()));
    let changes = changes(caller, &executed.balance_changes)?;
    compare(plan, net, changes)?;
    Ok(spent)
}

fn reverted(plan: &Plan, reason: &str) -> Refusal {
    Refusal::new(Code::SimulationReverted, format!("/{}", plan.role)).with_reason(reason.to_owned())
}

/// Returns the node's reason why a transaction failed; `None` if it succeeded.
pub(super) fn failure<T: Transport>(caller: Caller<'_, T>, executed: &ExecutedTransaction) -> Result<Option<String>, NodeError> {
    let status = executed.effects.as_ref().and_then(|effects| effects.status.as_ref());
    let status = status.ok_or_else(|| missing(caller, "/transaction/effects/status"))?;
    let success = status.success.ok_or_else(|| missing(caller, "/transaction/effects/status/success"))?;
    let words = || status.error.as_ref().and_then(|error| error.description.as_deref()).unwrap_or("no reason given");
    Ok((!success).then(|| text::escape_untrusted(words())))
}

type Changes = BTreeMap<(Address, TypeTag), i128>;

fn changes<T: Transport>(caller: Caller<'_, T>, all: &[BalanceChange]) -> Result<Changes, NodeError> {
    const AT: &str = "/transaction/balance_changes";
    if all.len() > MAX_CHANGES {
        let refusal = Refusal::new(Code::WrongType, AT).with_expected(format!("at most {MAX_CHANGES} changes"));
        return Err(caller.malformed(refusal.with_actual(all.len())));
    }
    let mut changes = Changes::new();
    for change in all {
        let owner = address(caller, change.address.as_deref(), AT)?;
        let coin_type = change.coin_type.as_deref().and_then(|text| text.parse().ok()).ok_or_else(|| missing(caller, AT))?;
        let amount: i128 = change.amount.as_deref().and_then(|text| text.parse().ok()).ok_or_else(|| missing(caller, AT))?;
        let sum = changes.entry((owner, coin_type)).or_default();
        *sum = sum.saturating_add(amount);
    }
    Ok(changes)
}

/// Requires that the balances change only by the gas and by what was verified. For a refund, the payout remains, which increases a balance.
fn compare(plan: &Plan, gas: i128, mut changes: Changes) -> Result<(), Refusal> {
    let mut expect = |owner: Address, coin_type: TypeTag, paid: i128| {
        let sum = changes.entry((owner, coin_type)).or_default();
        *sum = sum.saturating_add(paid);
    };
    expect(plan.gas_owner, htlc::sui(), gas);
    if let Some(Expected { payer, coin_type, amount }) = &plan.deposit {
        expect(*payer, coin_type.clone(), i128::from(*amount));
    }
    let is_other = |rest: i128| rest < 0 || rest > 0 && plan.deposit.is_some();
    match changes.into_iter().find(|(_, rest)| is_other(*rest)) {
        Some(((owner, coin_type), rest)) => {
            let text = format!("an additional change of the balance of {owner} by {rest} of {coin_type}");
            Err(Refusal::new(Code::SimulationDiffers, "/balance_changes").with_actual(text))
        }
        None => Ok(()),
    }
}
