//! What would happen: money is counted and the transaction simulated before anything is signed.

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

/// What is read of a simulation.
const SIMULATION: [&str; 2] = ["transaction.effects", "transaction.balance_changes"];
/// Most balance changes that are read: an order makes a handful.
const MAX_CHANGES: usize = 64;

/// The contract's codes for an order that is not in the registry, and for one that has ended. It looks at the secret after that.
const NO_OPEN_ORDER: [u64; 2] = [5, 14];

/// What a node expects of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// What the account that pays for gas has of SUI, MIST.
    pub balance: u64,
    /// The most of it that the transaction can spend, MIST: the gas budget, and the amount where SUI is locked.
    pub cost: u64,
    /// What the simulation spent on gas before rebates, MIST: the budget must cover it. `None` where nothing was simulated.
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

/// The movement that was verified.
struct Expected {
    /// Who pays: the owner of the gas coins, where the amount is split from them.
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

    /// Returns what the coins that pay for gas must cover, MIST.
    fn cost(&self) -> u64 {
        let split = self.deposit.as_ref().filter(|expected| expected.coin_type == htlc::sui()).map_or(0, |expected| expected.amount);
        self.budget.saturating_add(split)
    }
}

impl<'n, T: Transport> SuiChain<'n, T> {
    /// Says before anything is signed whether there is enough of SUI and of the coin, and simulates the transaction.
    ///
    /// The simulation must take exactly the verified amount and the gas from the accounts that pay them, and change nobody
    /// else's balance; a refund may pay out. A redemption is not simulated, because that would show the secret to the node.
    ///
    /// The endpoints are asked one after another until one answers: a simulation protects from mistakes, not from the node.
    ///
    /// # Errors
    ///
    /// [`NodeError::Refused`] with [`Code::InsufficientFunds`], [`Code::SimulationReverted`] or [`Code::SimulationDiffers`]; any
    /// other [`NodeError`] if no endpoint answers.
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        let plan = Plan::new(order);
        self.connection.first(|caller| self.check(caller, &plan)).await
    }

    /// Simulates a redemption with a secret that the contract refuses: a redemption that failed on chain would have shown the real one.
    ///
    /// # Errors
    ///
    /// [`Code::SimulationReverted`] if it fails before the contract has looked at the secret, or because there is no such open order;
    /// [`Code::SimulationDiffers`] if it succeeds.
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
            return Err(short("/balance", "SUI", cost, has).into());
        }
        if let Some(Expected { payer, coin_type, amount }) = plan.deposit.as_ref().filter(|expected| expected.coin_type != sui) {
            let has = balance(caller, *payer, coin_type).await?;
            if has < *amount {
                return Err(short("/token", "of the coin", *amount, has).into());
            }
        }
        let gas_used = match plan.role {
            Role::Redeem => None,
            _ => Some(simulate(caller, plan).await?),
        };
        Ok(Preflight { balance: has, cost, gas_used })
    }
}

fn short(at: &'static str, what: &str, needed: u64, has: u64) -> Refusal {
    let reason = format!("the account has too little {what}");
    Refusal::new(Code::InsufficientFunds, at).with_expected(TypedValue::AtLeast(U256::from(needed))).with_actual(has).with_reason(reason)
}

/// Runs the transaction on top of the newest state.
async fn run<T: Transport>(caller: Caller<'_, T>, plan: &Plan) -> Result<ExecutedTransaction, NodeError> {
    let transaction = Some(Transaction { bcs: Bcs::new(plan.bytes.clone()) });
    let request = SimulateTransactionRequest { transaction, read_mask: FieldMask::new(&SIMULATION) };
    match caller.grpc(&request).await {
        Ok(answer) => answer.transaction.ok_or_else(|| missing(caller, "/transaction")),
        // What the chain refuses before it executes anything: coins that are spent already, or a price below the reference price.
        Err(NodeError::Rpc { code: INVALID_ARGUMENT | FAILED_PRECONDITION, message, .. }) => Err(reverted(plan, &message).into()),
        Err(error) => Err(error),
    }
}

async fn rehearse<T: Transport>(caller: Caller<'_, T>, plan: &Plan) -> Result<(), NodeError> {
    let executed = run(caller, plan).await?;
    let Some(reason) = failure(caller, &executed)? else {
        let refusal = Refusal::new(Code::SimulationDiffers, format!("/{}", plan.role));
        return Err(refusal.with_reason("the contract takes a secret that is not the right one").into());
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

/// Simulates the transaction. Returns what it spends on gas, before rebates.
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

/// Returns why a transaction failed, in the node's words; `None` if it succeeded.
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

/// Requires that the balances change by the gas and by what was verified, and by nothing else. Of a refund only the payout is left,
/// which nobody pays for.
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
            let text = format!("the balance of {owner} changes by {rest} of {coin_type} besides");
            Err(Refusal::new(Code::SimulationDiffers, "/balance_changes").with_actual(text))
        }
        None => Ok(()),
    }
}
