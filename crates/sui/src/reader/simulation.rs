//! Checks funds and simulates a transaction, before anything is signed.

use std::collections::BTreeMap;
use std::fmt;

use countersign_core::reader::{Agree, Fault, Known, Replies, Reply, Request, RpcError};
use countersign_core::{Code, Refusal, Role, TypedValue, U256};
use sui_sdk_types::{Address, TypeTag};

use super::ask::{Equal, Question};
use super::fields::{
    abort, balance_change, effects, execution, execution_error, found_transaction, gas_used, location, method, transaction,
};
use super::proto::{Message, Writer};
use super::transactions::{bcs, failure};
use super::wallet::{read_balance, request_balance};
use super::{address, grpc};
use crate::{UnsignedOrder, htlc};

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

impl Agree for Preflight {
    type Key = Option<u64>;

    /// Returns the gas cost, which depends on the transaction alone. The balance may grow between two readings.
    fn key(&self) -> Option<u64> {
        self.gas_used
    }
}

/// Whether a transaction may be signed, or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct Judgement<T>(pub Result<T, Refusal>);

impl<T: Agree> Agree for Judgement<T> {
    type Key = Result<T::Key, Code>;

    /// Returns the key of what was found, or the code of the refusal. Its words are the node's own.
    fn key(&self) -> Self::Key {
        self.0.as_ref().map(Agree::key).map_err(Refusal::code)
    }
}

/// What a transaction must do.
#[derive(Clone, PartialEq, Eq)]
pub struct Plan {
    role: Role,
    /// The transaction. A redemption is left out, because it contains the secret.
    bytes: Vec<u8>,
    gas_owner: Address,
    budget: u64,
    deposit: Option<Payment>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({}, gas of {})", self.role, self.gas_owner)
    }
}

/// The payment that was verified.
#[derive(Clone, PartialEq, Eq)]
struct Payment {
    /// The account that pays. It is the owner of the gas coins if the amount is split from them.
    payer: Address,
    coin_type: TypeTag,
    amount: u64,
}

impl Plan {
    /// Returns what a prepared order must do. The plan of a redemption does not contain the transaction.
    #[must_use]
    pub fn new(order: &UnsignedOrder) -> Self {
        let payload = order.payloads();
        let gas_owner = payload.gas_payment.owner;
        let deposit = order.verified().map(|order| {
            let deposit = order.deposit();
            let payer = if deposit.layout.coins.is_none() { gas_owner } else { payload.sender };
            Payment { payer, coin_type: deposit.terms.coin_type.clone(), amount: deposit.terms.amount }
        });
        let bytes = if payload.role == Role::Redeem { Vec::new() } else { payload.bytes.clone() };
        Self { role: payload.role, bytes, gas_owner, budget: payload.gas_payment.budget, deposit }
    }

    /// Returns the plan of a redemption with a wrong secret: see [`rehearsal`](crate::recover::Recovery::rehearsal).
    #[must_use]
    pub fn rehearsal(order: &UnsignedOrder) -> Self {
        Self { bytes: order.payloads().bytes.clone(), ..Self::new(order) }
    }

    /// Returns what the coins that pay for gas must cover, in MIST.
    fn cost(&self) -> u64 {
        let split = self.deposit.as_ref().filter(|payment| payment.coin_type == htlc::sui()).map_or(0, |payment| payment.amount);
        self.budget.saturating_add(split)
    }

    /// Returns the payment in a coin other than SUI.
    fn token(&self) -> Option<&Payment> {
        self.deposit.as_ref().filter(|payment| payment.coin_type != htlc::sui())
    }

    fn simulate(&self) -> Request {
        grpc::request(method::SIMULATE_TRANSACTION, &Writer::default().bytes(1, bcs(&self.bytes)).mask(2, &SIMULATION))
    }

    fn reverted(&self, reason: impl Into<String>) -> Refusal {
        Refusal::new(Code::SimulationReverted, format!("/{}", self.role)).with_reason(reason.into())
    }

    /// Reads the simulation. The inner refusal says why the chain does not execute the transaction at all.
    fn executed<'a>(&self, reply: &Reply<'a>) -> Result<Result<Message<'a>, Refusal>, Fault> {
        match grpc::read(reply) {
            Ok(message) => message.need(found_transaction::TRANSACTION).map(Ok),
            // Examples are spent coins and a price below the reference price.
            Err(Fault::Rpc(RpcError { code: grpc::INVALID_ARGUMENT | grpc::FAILED_PRECONDITION, message, .. })) => {
                Ok(Err(self.reverted(message)))
            }
            Err(fault) => Err(fault),
        }
    }
}

/// Asks whether there is enough SUI and enough of the coin, and simulates the transaction.
///
/// The simulation must take exactly the verified amount and the gas from the accounts that pay them. No other balance may change, except
/// that a refund may pay out. A redemption is not simulated, because that would show the secret to the node.
#[derive(Debug, Clone, Copy)]
pub enum Check {}

impl Question for Check {
    type Subject = Plan;
    type Output = Judgement<Preflight>;

    fn requests(plan: &Plan) -> Vec<Request> {
        let mut requests = vec![request_balance(plan.gas_owner, &htlc::sui())];
        requests.extend(plan.token().map(|payment| request_balance(payment.payer, &payment.coin_type)));
        if plan.role != Role::Redeem {
            requests.push(plan.simulate());
        }
        requests
    }

    fn read(plan: &Plan, replies: &Replies<'_>, _: &Known) -> Result<Judgement<Preflight>, Fault> {
        let (balance, cost) = (read_balance(&replies.get(0)?)?, plan.cost());
        if balance < cost {
            return Ok(Judgement(Err(insufficient("/balance", "SUI", cost, balance))));
        }
        let token = plan.token();
        if let Some(Payment { amount, .. }) = token {
            let has = read_balance(&replies.get(1)?)?;
            if has < *amount {
                return Ok(Judgement(Err(insufficient("/token", "of the coin", *amount, has))));
            }
        }
        let gas_used = match plan.role {
            Role::Redeem => None,
            _ => match simulated(plan, &replies.get(if token.is_some() { 2 } else { 1 })?)? {
                Ok(gas_used) => Some(gas_used),
                Err(refusal) => return Ok(Judgement(Err(refusal))),
            },
        };
        Ok(Judgement(Ok(Preflight { balance, cost, gas_used })))
    }
}

/// Simulates a redemption with a wrong secret, which the contract must refuse. This detects a redemption that would fail for another
/// reason, and would reveal the real secret for nothing.
#[derive(Debug, Clone, Copy)]
pub enum Rehearsal {}

impl Question for Rehearsal {
    type Subject = Plan;
    type Output = Judgement<Equal<()>>;

    fn requests(plan: &Plan) -> Vec<Request> {
        vec![plan.simulate()]
    }

    fn read(plan: &Plan, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        let executed = match plan.executed(&replies.get(0)?)? {
            Ok(executed) => executed,
            Err(refusal) => return Ok(Judgement(Err(refusal))),
        };
        let Some(reason) = failure(executed)? else {
            let refusal = Refusal::new(Code::SimulationDiffers, format!("/{}", plan.role));
            return Ok(Judgement(Err(refusal.with_reason("the contract accepts a wrong secret"))));
        };
        let is_expected = is_about_the_secret(executed)?;
        Ok(Judgement(if is_expected { Ok(Equal(())) } else { Err(plan.reverted(reason)) }))
    }
}

/// Returns whether the contract aborted for a reason that it finds only after the order.
fn is_about_the_secret(executed: Message<'_>) -> Result<bool, Fault> {
    let status: Message<'_> = executed.need::<Message<'_>>(transaction::EFFECTS)?.need(effects::STATUS)?;
    let Some(error) = status.get::<Message<'_>>(execution::ERROR)? else { return Ok(false) };
    let Some(abort) = error.get::<Message<'_>>(execution_error::ABORT)? else { return Ok(false) };
    let code: Option<u64> = abort.get(abort::CODE)?;
    let module = abort.get::<Message<'_>>(abort::LOCATION)?.map(|location| location.get(location::MODULE)).transpose()?.flatten();
    Ok(module == Some(htlc::MODULE) && code.is_some_and(|code| !NO_OPEN_ORDER.contains(&code)))
}

fn insufficient(at: &'static str, what: &str, needed: u64, has: u64) -> Refusal {
    let reason = format!("the account has too little {what}");
    Refusal::new(Code::InsufficientFunds, at).with_expected(TypedValue::AtLeast(U256::from(needed))).with_actual(has).with_reason(reason)
}

/// Requires that a simulation does what was verified. Returns its gas cost before rebates, in MIST.
fn simulated(plan: &Plan, reply: &Reply<'_>) -> Result<Result<u64, Refusal>, Fault> {
    let executed = match plan.executed(reply)? {
        Ok(executed) => executed,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if let Some(reason) = failure(executed)? {
        return Ok(Err(plan.reverted(reason)));
    }
    let gas: Message<'_> = executed.need::<Message<'_>>(transaction::EFFECTS)?.need(effects::GAS_USED)?;
    let part = |field| Ok::<u64, Fault>(gas.get(field)?.unwrap_or_default());
    let spent = part(gas_used::COMPUTATION_COST)?.saturating_add(part(gas_used::STORAGE_COST)?);
    let net = i128::from(spent).saturating_sub(i128::from(part(gas_used::STORAGE_REBATE)?));
    Ok(compare(plan, net, changes(executed)?).map(|()| spent))
}

type Changes = BTreeMap<(Address, TypeTag), i128>;

fn changes(executed: Message<'_>) -> Result<Changes, Fault> {
    let mut changes = Changes::new();
    for change in executed.all(transaction::BALANCE_CHANGES, MAX_CHANGES)? {
        let owner = address(change.need(balance_change::ADDRESS)?, balance_change::ADDRESS)?;
        let coin_type = change.need::<&str>(balance_change::COIN_TYPE)?.parse();
        let coin_type = coin_type.map_err(|_| balance_change::COIN_TYPE.wrong("a Move type"))?;
        let amount: Result<i128, _> = change.need::<&str>(balance_change::AMOUNT)?.parse();
        let amount = amount.map_err(|_| balance_change::AMOUNT.wrong("a decimal number"))?;
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
    if let Some(Payment { payer, coin_type, amount }) = &plan.deposit {
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
