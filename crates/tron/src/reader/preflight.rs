//! The preflight: checks funds, allowance and fees, and runs the first call, before anything is signed.

use alloy_primitives::{Address as AbiAddress, U256};
use countersign_core::reader::{
    Agree, Ask, Fault, Identity, Judged, Known, Machine, Question, Replies, Reply, Request, Turn, check_balance, check_worth,
};
use countersign_core::{Code, Refusal, Role, TypedValue};
use countersign_evm_core::read;
use countersign_evm_core::transfer::{BYSTANDERS, Expected, check_payout, check_transfers};
use serde_json::json;

use super::call::{self, Call, Outcome};
use super::{AFTER_THE_END, Authority, OnChain, View, account, coins, coins_request, count, post, value};
use crate::address::CODEC;
use crate::{Address, Permission, UnsignedOrder};

/// The maximum number of chain parameters that are read.
const MAX_PARAMETERS: usize = 1_024;

/// The bytes of a transaction that are not signed: the signature with its tag, and the bytes that nodes reserve for the result.
const REST_OF_TRANSACTION: u64 = SIGNATURE_BYTES + 64 + 5;
/// The bytes of a signature with its tag.
const SIGNATURE_BYTES: u64 = 67;
/// What a transaction with several signatures costs if the chain's parameters do not say it, in sun.
const SEVERAL_SIGNATURES: u64 = 1_000_000;

/// The energy that a redemption is assumed to use, because running it would show the secret. It covers a token transfer to an address
/// without a balance of the token, and the work of the HTLC. A redemption that runs out of energy reveals the secret for nothing.
pub(crate) const REDEMPTION_ENERGY: u64 = PAYMENT_ENERGY + OWN_ENERGY;
/// The part for the token's transfer. One of USDT to a new holder uses about 130,000, with the penalty for a busy contract.
pub(crate) const PAYMENT_ENERGY: u64 = 160_000;
/// The part for the HTLC itself: its one write to the storage uses 20,000, and its reads, the hash and the event less than 10,000.
const OWN_ENERGY: u64 = 40_000;
/// The size of a redemption in bytes, with its signature.
const REDEMPTION_BYTES: u64 = 500;

/// The result of a preflight that found nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// The sender's TRX balance, in sun.
    pub balance: U256,
    /// The amount that the calls are expected to spend, in sun: the value that they send, their bandwidth, and the energy of the first
    /// call. A redemption is assumed to use 200,000 units of energy. Staked energy and bandwidth and free bandwidth are subtracted.
    pub cost: U256,
    /// The energy that the first call used; `None` if nothing was run.
    pub energy_used: Option<u64>,
}

/// The calls of an order, and the chain on which they are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    chain_id: u64,
    sender: Address,
    /// Who signs the calls; `None` without any.
    authority: Option<Authority>,
    steps: Vec<Step>,
    /// The first call. `None` if it contains the secret, so that no node may see it before it is signed and sent.
    first: Option<Call>,
    deposit: Option<Expected>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    role: Role,
    /// The TRX that the call sends, in sun.
    value: u64,
    /// The fee limit, in sun.
    fee_limit: u64,
    /// The size of the whole transaction in bytes.
    bytes: u64,
    /// Whether more than one key has to sign it.
    has_several_keys: bool,
}

/// The figures may differ: endpoints must only agree that the order can be funded.
impl Agree for Preflight {
    type Key = ();

    fn key(&self) {}
}

/// Checks that the sender has enough TRX, tokens and allowance, and runs the first call.
///
/// Only the first call is run, because the later ones may depend on its effects. A redemption is never run, because that would show the
/// secret to the node. If the node returns logs, the token transfers in them must be exactly the verified amount, from the sender to the
/// HTLC. A token must also let the HTLC pay out: see [`check_payout`]. The energy that the call uses must be within its fee limit. The keys
/// that sign must be those of the permission on chain.
///
/// A preflight is refused with
///
/// - [`Code::PermissionMismatch`] if the permission does not let the keys make the calls,
/// - [`Code::InsufficientFunds`] or [`Code::AllowanceTooLow`] if the sender has too little,
/// - [`Code::SimulationReverted`] if the call fails, or the token does not let the HTLC pay out,
/// - [`Code::SimulationDiffers`] if the call would do something else than what was verified,
/// - [`Code::GasLimitTooLow`] if the call needs more energy than its fee limit allows.
#[derive(Debug)]
pub struct PreflightCheck {
    plan: Plan,
    state: State,
}

/// What the last requests asked for, and what the earlier ones showed.
#[derive(Debug)]
enum State {
    /// TRX, resources and prices; the outcome of the first call, and the contract's token.
    Account,
    /// The sender's tokens and allowance.
    Tokens {
        funds: Funds,
        simulated: Option<Outcome>,
        token: AbiAddress,
    },
    Ended,
}

/// What the sender has, and the chain's prices.
#[derive(Debug, Clone, Copy)]
struct Funds {
    /// The balance, in sun.
    balance: U256,
    resources: Resources,
}

/// The resources that an account can use for free, and the prices of what exceeds them.
#[derive(Debug, Clone, Copy)]
struct Resources {
    /// The remaining energy.
    energy: u64,
    /// The remaining bytes of bandwidth: those from staked coins or the free ones, whichever are more. A transaction takes all of its
    /// bytes from one of the two.
    bandwidth: u64,
    /// The price of one unit of energy, in sun.
    energy_price: u64,
    /// The price of one byte, in sun.
    bandwidth_price: u64,
    /// The additional price of a transaction with several signatures, in sun.
    several_signatures: u64,
}

impl Machine for PreflightCheck {
    type Subject = Plan;
    type Output = Judged<Preflight>;
    const MAX_ROUNDS: usize = 2;

    fn start(plan: &Plan, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let mut requests = funds_requests(plan.sender).to_vec();
        requests.extend(plan.first.iter().map(|call| call.request(View::Newest)));
        requests.extend(plan.tokens().map(|expected| Call::view(expected.htlc.into(), read::token_call()).request(View::Newest)));
        Ok((Self { plan: plan.clone(), state: State::Account }, requests))
    }

    fn identity(&self) -> Identity {
        super::identity(self.plan.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Judged<Preflight>>, Fault> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Account => {
                let resources = Resources::read(&replies.get(1)?, &replies.get(2)?)?;
                let funds = Funds { balance: coins(&replies.get(0)?)?, resources };
                let judged = self.plan.authority.as_ref().map(|authority| authority.judge(&replies.get(0)?)).transpose()?;
                if let Some(Err(refusal)) = judged {
                    return Ok(Turn::Done(Judged(Err(refusal))));
                }
                let simulated = self.plan.first.as_ref().map(|_| Outcome::read(&replies.get(3)?)).transpose()?;
                let Some(expected) = self.plan.tokens() else {
                    return Ok(Turn::Done(Judged(self.plan.judge(funds, simulated, None))));
                };
                let token = call::returned(&replies.get(if simulated.is_some() { 4 } else { 3 })?, read::address)?;
                if let Err(refusal) = expected.check_token(token, &CODEC) {
                    return Ok(Turn::Done(Judged(Err(refusal))));
                }
                let sender = self.plan.sender.bytes();
                let (to, htlc) = (token.into(), expected.htlc.into());
                let empty_transfer =
                    |from: Address, receiver: AbiAddress| Call { sender: from, to, value: 0, data: read::empty_transfer_call(receiver) };
                let [one, other] = BYSTANDERS;
                let calls = [
                    Call::view(to, read::balance_call(sender)),
                    Call::view(to, read::allowance_call(sender, expected.htlc)),
                    empty_transfer(htlc, sender),
                    empty_transfer(self.plan.sender, expected.htlc),
                    empty_transfer(one.into(), other),
                ];
                self.state = State::Tokens { funds, simulated, token };
                Ok(Turn::Ask(calls.map(|call| call.request(View::Newest)).into()))
            }
            State::Tokens { funds, simulated, token } => {
                let has = call::returned(&replies.get(0)?, read::number)?;
                let allowance = call::returned(&replies.get(1)?, read::number)?;
                let (by_htlc, by_others) = (failure(&replies.get(2)?)?, [failure(&replies.get(3)?)?, failure(&replies.get(4)?)?]);
                let has_tokens = self.plan.tokens().map_or(Ok(()), |expected| expected.check_funds(has, allowance));
                let has_tokens = has_tokens.and_then(|()| check_payout(by_htlc, &by_others));
                let judged = has_tokens.and_then(|()| self.plan.judge(funds, simulated, Some(token)));
                Ok(Turn::Done(Judged(judged)))
            }
            State::Ended => Err(AFTER_THE_END),
        }
    }
}

/// Returns the amount that calls spend, in sun. Only the energy of the first call is known. No call burns more than its fee limit.
fn cost_of(steps: &[Step], resources: Resources, energy_used: Option<u64>) -> U256 {
    // Nothing was run if there is no call, which the fee limit of 0 covers, or if it is a redemption.
    let energy = energy_used.unwrap_or(REDEMPTION_ENERGY);
    let burnt = U256::from(energy.saturating_sub(resources.energy)).saturating_mul(U256::from(resources.energy_price));
    let mut cost = burnt.min(U256::from(steps.first().map_or(0, |step| step.fee_limit)));
    let mut bandwidth = resources.bandwidth;
    for step in steps {
        cost = cost.saturating_add(U256::from(step.value));
        if step.has_several_keys {
            cost = cost.saturating_add(U256::from(resources.several_signatures));
        }
        match bandwidth.checked_sub(step.bytes) {
            Some(left) => bandwidth = left,
            None => cost = cost.saturating_add(U256::from(step.bytes).saturating_mul(U256::from(resources.bandwidth_price))),
        }
    }
    cost
}

/// Requires that the fee limit of a call covers its energy. The limit also applies to staked energy.
fn check_fee_limit(fee_limit: u64, energy: u64, resources: Resources) -> Result<(), Refusal> {
    let fee = U256::from(energy).saturating_mul(U256::from(resources.energy_price));
    if fee > U256::from(fee_limit) {
        let refusal = Refusal::new(Code::GasLimitTooLow, "/fee_limit").with_expected(TypedValue::AtLeast(fee));
        return Err(refusal.with_actual(fee_limit).with_reason("the call would run out of energy"));
    }
    Ok(())
}

/// Returns why a transfer reverts; `None` if it does not. What it returns does not matter: some tokens return `false` although they have
/// transferred.
pub(super) fn failure(reply: &Reply<'_>) -> Result<Option<String>, Fault> {
    Ok(match Outcome::read(reply)? {
        Outcome::Returned { .. } => None,
        Outcome::Reverted(why) => Some(why),
    })
}

/// A redemption that an account will pay for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct Payer {
    /// The account.
    pub account: Address,
    /// The fee limit of the redemption, in sun: see [`recover::fee_limit`](crate::recover::fee_limit).
    pub fee_limit: u64,
    /// What the redemption pays, in sun, to ask whether it is worth its cost; `None` to ask whether the account can pay.
    pub payout: Option<U256>,
    /// The permission of the account under which the redemption is signed. `None` is the owner permission with the owner's own key.
    pub permission: Option<Permission>,
}

/// Checks that an account can pay for a redemption: for the energy and the bandwidth that it does not get for free, and the fee of several
/// signatures, within the fee limit; and that the keys of its permission can sign it. Or that the payout is worth the cost.
pub type PayerCheck = Ask<OnChain<Payer>>;

impl Question for OnChain<Payer> {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        funds_requests(self.subject.account).into()
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        let Payer { account, fee_limit, payout, ref permission } = self.subject;
        let authority = Authority::new(account, permission.as_ref());
        let (balance, resources) = (coins(&replies.get(0)?)?, Resources::read(&replies.get(1)?, &replies.get(2)?)?);
        // As in the preflight of the redemption itself.
        let further = further(authority.keys());
        let bytes = REDEMPTION_BYTES.saturating_add(further.saturating_mul(SIGNATURE_BYTES));
        let step = Step { role: Role::Redeem, value: 0, fee_limit, bytes, has_several_keys: further > 0 };
        let cost = cost_of(&[step], resources, None);
        Ok(Judged(match payout {
            Some(payout) => check_worth(payout, cost),
            None => authority
                .judge(&replies.get(0)?)?
                .and_then(|()| check_fee_limit(fee_limit, REDEMPTION_ENERGY, resources))
                .and_then(|()| check_balance("/balance", "TRX for the fee of a redemption", cost, balance)),
        }))
    }
}

/// Returns the number of signatures after the first one.
fn further(keys: usize) -> u64 {
    u64::try_from(keys.saturating_sub(1)).unwrap_or(u64::MAX)
}

/// Returns the requests for what an account has, and for the chain's prices.
fn funds_requests(account_address: Address) -> [Request; 3] {
    [
        coins_request(account_address),
        post(View::Newest, "getaccountresource", &account(account_address)),
        post(View::Newest, "getchainparameters", &json!({})),
    ]
}

impl Resources {
    fn read(own: &Reply<'_>, prices: &Reply<'_>) -> Result<Self, Fault> {
        let cursor = value(own)?;
        let members = cursor.object()?;
        let left = |limit: &'static str, used: &'static str| {
            Ok::<_, Refusal>(count(members.get(limit))?.saturating_sub(count(members.get(used))?))
        };
        let bandwidth = left("freeNetLimit", "freeNetUsed")?.max(left("NetLimit", "NetUsed")?);
        let energy = left("EnergyLimit", "EnergyUsed")?;
        let cursor = value(prices)?;
        let list = cursor.object()?.need("chainParameter")?;
        let (mut energy_price, mut bandwidth_price, mut several_signatures) = (None, None, SEVERAL_SIGNATURES);
        for parameter in list.array()?.take(MAX_PARAMETERS) {
            let members = parameter.object()?;
            match members.need("key")?.text()? {
                "getEnergyFee" => energy_price = Some(count(members.get("value"))?),
                "getTransactionFee" => bandwidth_price = Some(count(members.get("value"))?),
                "getMultiSignFee" => several_signatures = count(members.get("value"))?,
                _ => {}
            }
        }
        match (energy_price, bandwidth_price) {
            (Some(energy_price), Some(bandwidth_price)) => {
                Ok(Self { energy, bandwidth, energy_price, bandwidth_price, several_signatures })
            }
            _ => Err(list.refuse(Code::MissingField).with_expected("getEnergyFee and getTransactionFee").into()),
        }
    }
}

impl Plan {
    /// Creates the plan of a prepared order, redemption or refund on the chain with this id.
    ///
    /// # Errors
    ///
    /// [`Code::AddressMalformed`] if a call is not to a Tron address.
    pub fn new(chain_id: u64, order: &UnsignedOrder) -> Result<Self, Refusal> {
        let payloads = order.payloads();
        let sender = Address::from(payloads.sender);
        let (mut steps, mut calls) = (Vec::new(), Vec::new());
        let authority = Authority::of_prepared(order);
        let further = further(authority.as_ref().map_or(1, Authority::keys));
        for payload in &payloads.calls {
            let (raw, trigger) = (&payload.transaction.raw, &payload.transaction.trigger);
            let to = trigger.contract_address.as_slice().try_into().ok().and_then(Address::from_prefixed);
            let to = to.ok_or_else(|| Refusal::new(Code::AddressMalformed, "/raw_data/contract/contract_address"))?;
            let signed = u64::try_from(payload.transaction.raw_data.len()).unwrap_or(u64::MAX);
            calls.push(Call { sender, to, value: trigger.call_value, data: trigger.data.clone() });
            steps.push(Step {
                role: payload.role,
                value: trigger.call_value.unsigned_abs(),
                fee_limit: raw.fee_limit.unsigned_abs(),
                bytes: signed.saturating_add(REST_OF_TRANSACTION).saturating_add(further.saturating_mul(SIGNATURE_BYTES)),
                has_several_keys: further > 0,
            });
        }
        let has = |role| steps.iter().any(|step: &Step| step.role == role);
        let (approves, is_secret) = (has(Role::Approval), has(Role::Redeem));
        let deposit = order.verified().map(|order| {
            let deposit = order.deposit();
            let approved = deposit.approval.as_ref().map(|approval| approval.call.to.bytes());
            let (htlc, amount) = (deposit.initiate.to.bytes(), deposit.terms.amount);
            Expected { htlc, amount, is_native: deposit.initiate.value != 0, approved, approves }
        });
        let first = if is_secret { None } else { calls.into_iter().next() };
        Ok(Self { chain_id, sender, authority, steps, first, deposit })
    }

    /// Returns the deposit if it is in a token.
    fn tokens(&self) -> Option<&Expected> {
        self.deposit.as_ref().filter(|expected| !expected.is_native)
    }

    /// Requires that the first call does what was verified, and that the sender can pay for all of them.
    fn judge(&self, funds: Funds, simulated: Option<Outcome>, token: Option<AbiAddress>) -> Result<Preflight, Refusal> {
        let Funds { balance, resources } = funds;
        let step = self.steps.first();
        // A redemption is not run, and must not run out of energy: it shows the secret for nothing.
        if let Some(step) = step.filter(|step| step.role == Role::Redeem) {
            check_fee_limit(step.fee_limit, REDEMPTION_ENERGY, resources)?;
        }
        let energy_used = step.zip(simulated).map(|(step, outcome)| self.judge_call(step, token, outcome, resources)).transpose()?;
        let cost = cost_of(&self.steps, resources, energy_used);
        check_balance("/balance", "TRX", cost, balance)?;
        Ok(Preflight { balance, cost, energy_used })
    }

    /// Requires that a call succeeds within its fee limit, and transfers nothing but what was verified. Returns the energy that it uses.
    fn judge_call(&self, step: &Step, token: Option<AbiAddress>, outcome: Outcome, resources: Resources) -> Result<u64, Refusal> {
        let (energy, transfers) = match outcome {
            Outcome::Returned { energy, transfers, .. } => (energy, transfers),
            Outcome::Reverted(why) => {
                return Err(Refusal::new(Code::SimulationReverted, format!("/{}", step.role)).with_reason(why));
            }
        };
        check_fee_limit(step.fee_limit, energy, resources)?;
        let expected = self.deposit.as_ref().filter(|_| step.role == Role::Initiate);
        check_transfers(self.sender.bytes(), expected, token, &transfers, &CODEC)?;
        Ok(energy)
    }
}
