//! Checks funds and simulates a transaction, before anything is signed.

use std::collections::BTreeMap;
use std::fmt;

use countersign_core::reader::{
    Agree, Equal, Fault, Identity, Judged, Known, Question, Replies, Reply, Request, RpcError, Urgency, check_balance,
};
use countersign_core::{Code, Refusal, Role, U256};
use sui_sdk_types::{Address, TypeTag};

use super::aborts::is_wrong_secret;
use super::fields::{balance_change, effects, found_transaction, gas_used, method, transaction};
use super::proto::{Message, Writer};
use super::transactions::{bcs, failure};
use super::wallet::{Holdings, read_holdings, request_balance};
use super::{On, address, grpc, identity};
use crate::{UnsignedOrder, balance, htlc};

/// The fields that are read of a simulation.
const SIMULATION: [&str; 2] = ["transaction.effects", "transaction.balance_changes"];
/// The maximum number of balance changes. An order causes a handful.
const MAX_CHANGES: usize = 64;

/// The result of a preflight that found nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// The SUI balance of the account that pays for gas, in MIST.
    pub balance: u64,
    /// The maximum that the transaction can spend of it, in MIST: the gas budget, and the amount if SUI is locked.
    pub cost: u64,
    /// Where the balance is: in coin objects, or in the address balance.
    pub holdings: Holdings,
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

/// The simulation of a transaction. A redemption is only simulated with a wrong secret.
#[derive(Clone, PartialEq, Eq)]
struct Simulation {
    role: Role,
    bytes: Vec<u8>,
}

impl fmt::Debug for Simulation {
    /// Leaves out the transaction, which is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Simulation({})", self.role)
    }
}

impl Simulation {
    fn new(order: &UnsignedOrder) -> Self {
        let payload = order.payloads();
        Self { role: payload.role, bytes: payload.bytes.clone() }
    }

    fn request(&self) -> Request {
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// `None` for a redemption.
    simulation: Option<Simulation>,
    gas_owner: Address,
    budget: u64,
    deposit: Option<Payment>,
    /// What the gas owner's address balance pays, in MIST: for gas, and for an amount that is split from the gas coin.
    from_balance: u64,
    /// What the sender's address balance pays of the deposit's coin, besides.
    withdrawn: u64,
}

/// The payment that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Payment {
    /// The account that pays. It is the owner of the gas coins if the amount is split from them.
    payer: Address,
    coin_type: TypeTag,
    amount: u64,
}

impl Check {
    /// Creates the check of a prepared order. It does not contain the transaction of a redemption.
    #[must_use]
    pub fn new(order: &UnsignedOrder) -> Self {
        let payload = order.payloads();
        let gas_owner = payload.gas_payment.owner;
        let deposit = order.verified().map(|order| {
            let deposit = order.deposit();
            let payer = if deposit.layout.splits_gas() { gas_owner } else { payload.sender };
            Payment { payer, coin_type: deposit.terms.coin_type.clone(), amount: deposit.terms.amount }
        });
        let simulation = (payload.role != Role::Redeem).then(|| Simulation::new(order));
        let (budget, objects) = (payload.gas_payment.budget, &payload.gas_payment.objects);
        let reserved = objects.iter().filter_map(balance::reserved).map(|(amount, _)| amount);
        let from_balance = if objects.is_empty() { budget } else { reserved.fold(0, u64::saturating_add) };
        let withdrawn = order.verified().map_or(0, |order| order.deposit().withdrawn());
        Self { simulation, gas_owner, budget, deposit, from_balance, withdrawn }
    }

    /// Returns the deposit in SUI that the account pays that pays for gas, in MIST.
    fn sui(&self) -> u64 {
        let own = self.deposit.as_ref().filter(|payment| payment.coin_type == htlc::sui() && payment.payer == self.gas_owner);
        own.map_or(0, |payment| payment.amount)
    }

    /// Returns what the account that pays for gas must have, in MIST.
    fn cost(&self) -> u64 {
        self.budget.saturating_add(self.sui())
    }

    /// Requires enough SUI, and each part of it where the transaction takes it from. The network sets aside the whole amount of a
    /// reservation, even if the transaction costs less.
    fn check_sui(&self, held: Holdings) -> Result<(), Refusal> {
        let withdrawn = if self.sui() > 0 { self.withdrawn } else { 0 };
        let from_balance = self.from_balance.saturating_add(withdrawn);
        check_parts("/balance", "SUI", held, self.cost().saturating_sub(from_balance), from_balance)
    }

    /// Returns the payment that another balance pays: in a coin other than SUI, or in SUI of another account than the one that pays gas.
    fn token(&self) -> Option<&Payment> {
        self.deposit.as_ref().filter(|payment| payment.coin_type != htlc::sui() || payment.payer != self.gas_owner)
    }

    /// Requires that the simulation does what was verified. Returns its gas cost before rebates, in MIST.
    fn simulated(&self, simulation: &Simulation, reply: &Reply<'_>) -> Result<Result<u64, Refusal>, Fault> {
        let executed = match simulation.executed(reply)? {
            Ok(executed) => executed,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if let Some(reason) = failure(executed)? {
            return Ok(Err(simulation.reverted(reason)));
        }
        let gas: Message<'_> = executed.need::<Message<'_>>(transaction::EFFECTS)?.need(effects::GAS_USED)?;
        let part = |field| Ok::<u64, Fault>(gas.get(field)?.unwrap_or_default());
        let spent = part(gas_used::COMPUTATION_COST)?.saturating_add(part(gas_used::STORAGE_COST)?);
        let net = i128::from(spent).saturating_sub(i128::from(part(gas_used::STORAGE_REBATE)?));
        Ok(self.compare(net, changes(executed)?).map(|()| spent))
    }

    /// Requires that the balances change only by the gas and by what was verified. For a refund, the payout remains, which increases a
    /// balance.
    fn compare(&self, gas: i128, mut changes: Changes) -> Result<(), Refusal> {
        let mut expect = |owner: Address, coin_type: TypeTag, paid: i128| {
            let sum = changes.entry((owner, coin_type)).or_default();
            *sum = sum.saturating_add(paid);
        };
        expect(self.gas_owner, htlc::sui(), gas);
        if let Some(Payment { payer, coin_type, amount }) = &self.deposit {
            expect(*payer, coin_type.clone(), i128::from(*amount));
        }
        let is_other = |rest: i128| rest < 0 || rest > 0 && self.deposit.is_some();
        match changes.into_iter().find(|(_, rest)| is_other(*rest)) {
            Some(((owner, coin_type), rest)) => {
                let text = format!("an additional change of the balance of {owner} by {rest} of {coin_type}");
                Err(Refusal::new(Code::SimulationDiffers, "/balance_changes").with_actual(text))
            }
            None => Ok(()),
        }
    }
}

impl Question for On<Check> {
    type Output = Judged<Preflight>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        let check = &self.subject;
        let gas = request_balance(check.gas_owner, &htlc::sui());
        let token = check.token().map(|payment| request_balance(payment.payer, &payment.coin_type));
        [gas].into_iter().chain(token).chain(check.simulation.as_ref().map(Simulation::request)).collect()
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<Preflight>, Fault> {
        let check = &self.subject;
        let (holdings, cost, token) = (read_holdings(&replies.get(0)?)?, check.cost(), check.token());
        let balance = holdings.total();
        if let Err(refusal) = check.check_sui(holdings) {
            return Ok(Judged(Err(refusal)));
        }
        if let Some(Payment { amount, .. }) = token {
            let has = read_holdings(&replies.get(1)?)?;
            let from_coins = amount.saturating_sub(check.withdrawn);
            if let Err(refusal) = check_parts("/token", "of the coin", has, from_coins, check.withdrawn) {
                return Ok(Judged(Err(refusal)));
            }
        }
        let Some(simulation) = &check.simulation else { return Ok(Judged(Ok(Preflight { balance, cost, holdings, gas_used: None }))) };
        let simulated = check.simulated(simulation, &replies.get(if token.is_some() { 2 } else { 1 })?)?;
        Ok(Judged(simulated.map(|gas_used| Preflight { balance, cost, holdings, gas_used: Some(gas_used) })))
    }
}

/// Simulates a redemption with a wrong secret, which the contract must refuse. This detects a redemption that would fail for a reason that
/// the contract finds before the secret, and would reveal the real one for nothing. What happens after that, it does not show: see
/// [`Receiver`](super::Receiver).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rehearsal {
    simulation: Simulation,
    urgency: Urgency,
}

impl Rehearsal {
    /// Creates the rehearsal of a redemption. The order must have a wrong secret: see
    /// [`rehearsal`](crate::recover::Recovery::rehearsal).
    #[must_use]
    pub fn new(order: &UnsignedOrder, urgency: Urgency) -> Self {
        Self { simulation: Simulation::new(order), urgency }
    }
}

impl Question for On<Rehearsal> {
    type Output = Judged<Equal<()>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![self.subject.simulation.request()]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        let simulation = &self.subject.simulation;
        let executed = match simulation.executed(&replies.get(0)?)? {
            Ok(executed) => executed,
            Err(refusal) => return Ok(Judged(Err(refusal))),
        };
        let Some(reason) = failure(executed)? else {
            let refusal = Refusal::new(Code::SimulationDiffers, format!("/{}", simulation.role));
            return Ok(Judged(Err(refusal.with_reason("the contract accepts a wrong secret"))));
        };
        let is_expected = is_wrong_secret(executed, self.subject.urgency)?;
        Ok(Judged(if is_expected { Ok(Equal(())) } else { Err(simulation.reverted(reason)) }))
    }
}

/// Requires enough of a coin, and each part of it where the transaction takes it from. A refusal shows both parts.
fn check_parts(at: &'static str, what: &str, held: Holdings, from_coins: u64, from_balance: u64) -> Result<(), Refusal> {
    let needed = U256::from(from_coins).saturating_add(U256::from(from_balance));
    check_balance(at, what, needed, U256::from(held.total()))?;
    if held.coins >= from_coins && held.address_balance >= from_balance {
        return Ok(());
    }
    let reason = format!("the account that pays has enough {what}, but not where it is taken from");
    let refusal = Refusal::new(Code::InsufficientFunds, at).with_reason(reason);
    let expected = format!("{from_coins} in coin objects and {from_balance} in the address balance");
    Err(refusal.with_expected(expected).with_actual(held.to_string()))
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
