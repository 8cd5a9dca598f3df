//! The preflight: checks funds and allowance, and simulates the calls, before anything is signed.

use std::fmt;

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256, Bytes, U256, hex};
use countersign_core::json::Cursor;
use countersign_core::reader::{Agree, Fault, Identity, Judged, Known, Machine, Replies, Reply, Request, Turn, check_balance};
use countersign_core::{Code, Refusal, Role};
use countersign_evm_core::revert::revert_reason;
use countersign_evm_core::transfer::{BYSTANDERS, Expected, check_payout, check_transfers};
use serde_json::{Value, json};

use super::block::LATEST;
use super::l1_fee::L1Fee;
use super::{answer, balance, call, complete, hash, quantity, revert};
use crate::address::CODEC;
use crate::read::{self, NATIVE, SYSTEM, Transfer};
use crate::{EvmTransaction, UnsignedOrder};

/// The maximum number of logs of one simulated call. An order emits a handful.
const MAX_LOGS: usize = 64;
/// The maximum number of topics of a log.
const MAX_TOPICS: usize = 4;
/// The maximum length in bytes of a log's data, and of what a call returns.
const MAX_DATA: usize = 16 * 1024;

/// The result of a preflight that found nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// The sender's balance of the chain's own coin, in wei.
    pub balance: U256,
    /// The maximum that the calls can spend of it, in wei: the value that they send, their gas limits at their fee caps, and their
    /// [fee for the chain below](super::has_l1_fee).
    pub cost: U256,
    /// The gas that the simulation of all calls used. `None` if the node cannot simulate several calls, or if nothing was simulated.
    pub gas_used: Option<u64>,
}

// Endpoints need not agree on the figures.
impl Agree for Preflight {
    type Key = ();

    fn key(&self) {}
}

/// What an order must do, and on which chain.
#[derive(Clone, PartialEq, Eq)]
pub struct Plan {
    chain_id: u64,
    sender: Address,
    steps: Vec<Step>,
    cost: U256,
    deposit: Option<Expected>,
    /// Whether a call contains the secret, so that no node may see it before it is signed and sent.
    is_secret: bool,
}

impl fmt::Debug for Plan {
    /// Leaves out the calls, because that of a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({} calls of {} on {})", self.steps.len(), self.sender, self.chain_id)
    }
}

/// A call to simulate.
#[derive(Clone, PartialEq, Eq)]
struct Step {
    role: Role,
    to: Address,
    value: U256,
    data: Bytes,
    gas: u64,
}

/// How one simulated call ended.
struct Outcome {
    failure: Option<String>,
    gas_used: u64,
    transfers: Vec<(Address, Transfer)>,
}

impl Plan {
    /// Creates the plan of a prepared order, redemption or refund.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if a call is for another chain.
    pub fn new(order: &UnsignedOrder, chain_id: u64) -> Result<Self, Refusal> {
        let payloads = order.payloads();
        let mut steps = Vec::new();
        let mut cost = U256::ZERO;
        for payload in &payloads.calls {
            let EvmTransaction { transaction, .. } = &payload.transaction;
            if transaction.chain_id() != Some(chain_id) {
                return Err(Refusal::new(Code::WalletChainMismatch, "/chain_id").with_expected(chain_id));
            }
            let (gas, value) = (transaction.gas_limit(), transaction.value());
            let gas_cost = U256::from(gas).saturating_mul(U256::from(transaction.max_fee_per_gas()));
            cost = cost.saturating_add(gas_cost).saturating_add(value);
            let to = transaction.to().unwrap_or_default();
            steps.push(Step { role: payload.role, to, value, data: transaction.input().clone(), gas });
        }
        let has = |role| steps.iter().any(|step: &Step| step.role == role);
        let (approves, is_secret) = (has(Role::Approval), has(Role::Redeem));
        let deposit = order.verified().map(|order| {
            let deposit = order.deposit();
            let approved = deposit.approval.as_ref().map(|approval| approval.call.to);
            let (htlc, amount) = (deposit.initiate.to, deposit.terms.amount);
            Expected { htlc, amount, is_native: !deposit.initiate.value.is_zero(), approved, approves }
        });
        Ok(Self { chain_id, sender: payloads.sender, steps, cost, deposit, is_secret })
    }

    /// Returns the calls as JSON-RPC transaction objects.
    fn calls(&self) -> Vec<Value> {
        let call = |step: &Step| {
            json!({
                "from": self.sender,
                "to": step.to,
                "value": format!("{:#x}", step.value),
                "data": hex::encode_prefixed(&step.data),
                "gas": format!("{:#x}", step.gas),
            })
        };
        self.steps.iter().map(call).collect()
    }

    /// Returns the deposit if it is in a token.
    fn token_deposit(&self) -> Option<&Expected> {
        self.deposit.as_ref().filter(|expected| !expected.is_native)
    }

    const fn is_simulated(&self) -> bool {
        !self.is_secret && !self.steps.is_empty()
    }

    /// Returns the requests of the second round.
    fn requests(&self, token: Address) -> Vec<Request> {
        let latest = json!(LATEST);
        let mut requests = Vec::new();
        if let Some(expected) = self.token_deposit() {
            requests.push(balance(self.sender, Some(token), &latest));
            requests.push(call(token, &read::allowance_call(self.sender, expected.htlc), &latest));
            requests.push(empty_transfer(token, expected.htlc, self.sender));
            requests.push(empty_transfer(token, self.sender, expected.htlc));
            let [one, other] = BYSTANDERS;
            requests.push(empty_transfer(token, one, other));
        }
        if self.is_simulated() {
            let blocks = json!({"blockStateCalls": [{"calls": self.calls()}], "traceTransfers": true, "validation": false});
            requests.push(Request::json_rpc("eth_simulateV1", json!([blocks, LATEST])));
        }
        requests
    }

    /// Returns the question for what the calls pay for the chain below.
    fn l1_fee(&self) -> Option<L1Fee> {
        L1Fee::of(self.chain_id, self.steps.iter().map(|step| step.data.len()))
    }
}

/// Checks that the sender has enough of the coin, the token and the allowance, and simulates the calls.
///
/// The simulation (`eth_simulateV1`) must transfer exactly the verified amount of the token or coin from the sender to the HTLC, and
/// nothing else from the sender. On a node without that method, only the first call is run (`eth_call`); any other error of a node that
/// should simulate a payment is a fault. A redemption is never simulated, because that would show the secret to the node. A token must
/// also let the HTLC pay out: see [`check_payout`].
///
/// A preflight is refused with
///
/// - [`Code::InsufficientFunds`] or [`Code::AllowanceTooLow`] if the sender has too little,
/// - [`Code::SimulationReverted`] if a call fails, or the token does not let the HTLC pay out,
/// - [`Code::SimulationDiffers`] if the calls would do something else than what was verified.
#[derive(Debug)]
pub struct PreflightCheck {
    plan: Plan,
    stage: Stage,
}

/// What the last requests asked for, and what is known from before.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// The coin, the token of the HTLC, and the fee for the chain below.
    Coin,
    /// The sender's tokens and allowance, if the order pays a token, and the simulation of all calls, if the node may see them.
    Simulation(Funds),
    /// The first call alone.
    FirstCall(Preflight),
    Done,
}

#[derive(Debug, Clone, Copy)]
struct Funds {
    /// The sender's balance of the coin, in wei.
    coin: U256,
    /// What the calls can spend of it.
    cost: U256,
    /// The token that the HTLC holds, or [`NATIVE`].
    token: Address,
}

impl Funds {
    /// Requires that the sender has enough of the coin.
    fn check_coin(self) -> Result<Preflight, Refusal> {
        let Self { coin: balance, cost, .. } = self;
        check_balance("/balance", "of the chain's own coin", cost, balance)?;
        Ok(Preflight { balance, cost, gas_used: None })
    }
}

impl Machine for PreflightCheck {
    type Subject = Plan;
    type Output = Judged<Preflight>;
    const MAX_ROUNDS: usize = 3;

    fn start(plan: &Plan, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let latest = json!(LATEST);
        let token = plan.token_deposit().map(|expected| call(expected.htlc, &read::token_call(), &latest));
        let fee = plan.l1_fee().map(L1Fee::request);
        let requests = std::iter::once(balance(plan.sender, None, &latest)).chain(token).chain(fee).collect();
        Ok((Self { plan: plan.clone(), stage: Stage::Coin }, requests))
    }

    fn identity(&self) -> Identity {
        super::identity(self.plan.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Judged<Preflight>>, Fault> {
        let plan = &self.plan;
        let judged = match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Coin => {
                let coin = replies.json(0)?.hex_number()?;
                let (token, place) = match plan.token_deposit() {
                    Some(_) => (answer(&replies.json(1)?, read::address)?, 2),
                    None => (NATIVE, 1),
                };
                let fee = plan.l1_fee().map_or(Ok(U256::ZERO), |fee| fee.read(replies, place))?;
                let funds = Funds { coin, cost: plan.cost.saturating_add(fee), token };
                let requests = plan.requests(token);
                match plan.token_deposit().map_or(Ok(()), |expected| expected.check_token(token, &CODEC)) {
                    Ok(()) if !requests.is_empty() => {
                        self.stage = Stage::Simulation(funds);
                        return Ok(Turn::Ask(requests));
                    }
                    outcome => outcome.and_then(|()| funds.check_coin()),
                }
            }
            Stage::Simulation(funds) => {
                let (tokens, place) = match plan.token_deposit() {
                    Some(expected) => {
                        let (has, allowance) = (answer(&replies.json(0)?, read::number)?, answer(&replies.json(1)?, read::number)?);
                        let (by_htlc, by_others) = (failure(&replies.get(2)?)?, [failure(&replies.get(3)?)?, failure(&replies.get(4)?)?]);
                        (expected.check_funds(has, allowance).and_then(|()| check_payout(by_htlc, &by_others)), 5)
                    }
                    None => (Ok(()), 0),
                };
                match tokens.and_then(|()| funds.check_coin()) {
                    Ok(preflight) if plan.is_simulated() => match replies.get(place)?.json_or_error()? {
                        Ok(blocks) => compare(plan, funds.token, &read_outcomes(&blocks, plan.steps.len())?)
                            .map(|gas_used| Preflight { gas_used: Some(gas_used), ..preflight }),
                        // The node cannot simulate several calls. The later ones may depend on the effects of the first. A refund is a
                        // single call, which `eth_call` runs as well, so that no other error stands before it.
                        Err(error) if error.is_unknown_method() || plan.deposit.is_none() => {
                            self.stage = Stage::FirstCall(preflight);
                            let first = plan.calls().into_iter().next();
                            return Ok(Turn::Ask(vec![Request::json_rpc("eth_call", json!([first, LATEST]))]));
                        }
                        Err(error) => return Err(Fault::Rpc(error.clone())),
                    },
                    outcome => outcome,
                }
            }
            Stage::FirstCall(preflight) => match replies.get(0)?.json_or_error()? {
                Ok(cursor) => cursor.hex_bytes(MAX_DATA).map(|_| Ok(preflight))?,
                Err(error) => match (revert(error), plan.steps.first()) {
                    (Some(reason), Some(step)) => Err(reverted(step.role, &reason)),
                    _ => return Err(Fault::Rpc(error.clone())),
                },
            },
            Stage::Done => return Err(complete()),
        };
        Ok(Turn::Done(Judged(judged)))
    }
}

/// Creates a call in which an account transfers none of a token to another one.
pub(super) fn empty_transfer(token: Address, from: Address, to: Address) -> Request {
    let data = hex::encode_prefixed(read::empty_transfer_call(to));
    Request::json_rpc("eth_call", json!([{"from": from, "to": token, "data": data}, LATEST]))
}

/// Returns why a transfer reverts; `None` if it does not. What it returns does not matter: some tokens return nothing, and others `false`
/// although they have transferred. Any other error, such as a rate limit, is a fault: it says nothing about the token.
pub(super) fn failure(reply: &Reply<'_>) -> Result<Option<String>, Fault> {
    match reply.json_or_error()? {
        Ok(_) => Ok(None),
        Err(error) => revert(error).map(Some).ok_or_else(|| reply.fault()),
    }
}

/// Reads the simulation of a number of calls.
fn read_outcomes(blocks: &Cursor<'_, '_>, count: usize) -> Result<Vec<Outcome>, Refusal> {
    let block = blocks.array()?.next().ok_or_else(|| blocks.refuse(Code::MissingField))?;
    let block = block.object()?;
    let calls = block.need("calls")?;
    let all = calls.array()?;
    if all.len() != count {
        return Err(calls.at().refuse(Code::WrongType).with_expected(format!("{count} calls")).with_actual(all.len()));
    }
    all.map(|call| read_outcome(&call)).collect()
}

fn read_outcome(call: &Cursor<'_, '_>) -> Result<Outcome, Refusal> {
    let members = call.object()?;
    let gas_used = quantity(&members.need("gasUsed")?)?;
    if quantity(&members.need("status")?)? != 1 {
        let data = members.get("returnData").map(|data| data.hex_bytes(MAX_DATA)).transpose()?;
        let failure = data.as_deref().and_then(revert_reason).unwrap_or_else(|| "no reason given".to_owned());
        return Ok(Outcome { failure: Some(failure), gas_used, transfers: Vec::new() });
    }
    let logs = members.need("logs")?;
    let all = logs.array()?;
    if all.len() > MAX_LOGS {
        return Err(logs.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_LOGS} logs")).with_actual(all.len()));
    }
    let mut transfers = Vec::new();
    for log in all {
        let log = log.object()?;
        let topics: Vec<B256> = log.need("topics")?.array()?.take(MAX_TOPICS).map(|topic| hash(&topic)).collect::<Result<_, _>>()?;
        let data = log.need("data")?.hex_bytes(MAX_DATA)?;
        if let Some(transfer) = read::transfer(&topics, &data) {
            transfers.push((Address::from(log.need("address")?.hex_array::<20>()?), transfer));
        }
    }
    Ok(Outcome { failure: None, gas_used, transfers: native_once(transfers) })
}

/// Turns the protocol's logs of native transfers (EIP-7708) into those of a simulation, each transfer once.
///
/// A chain with these logs has them in addition to those that `traceTransfers` adds, or in their place: nodes differ. A transfer that both show is
/// one transfer, and one that either shows more often was made more often.
fn native_once(transfers: Vec<(Address, Transfer)>) -> Vec<(Address, Transfer)> {
    let (by_protocol, mut transfers): (Vec<_>, Vec<_>) = transfers.into_iter().partition(|(emitter, _)| *emitter == SYSTEM);
    let mut added: Vec<_> = transfers.iter().filter(|(emitter, _)| *emitter == NATIVE).map(|(_, transfer)| *transfer).collect();
    for (_, transfer) in by_protocol {
        match added.iter().position(|other| *other == transfer) {
            Some(index) => drop(added.swap_remove(index)),
            None => transfers.push((NATIVE, transfer)),
        }
    }
    transfers
}

/// Requires that every call succeeds, and that the calls transfer what was verified. Returns the gas that they use.
fn compare(plan: &Plan, token: Address, outcomes: &[Outcome]) -> Result<u64, Refusal> {
    let mut gas_used = 0_u64;
    for (step, outcome) in plan.steps.iter().zip(outcomes) {
        match &outcome.failure {
            // A chain may charge more than the service's limit covers, for example for storage (EIP-8037).
            Some(reason) if outcome.gas_used >= step.gas => {
                return Err(reverted(step.role, &format!("{reason}; it used its whole gas limit of {}", step.gas)));
            }
            Some(reason) => return Err(reverted(step.role, reason)),
            None => {}
        }
        gas_used = gas_used.saturating_add(outcome.gas_used);
    }
    // Only the call that locks the funds transfers any. The approvals of a gasless order do not.
    let locks = plan.steps.iter().any(|step| step.role == Role::Initiate);
    let expected = plan.deposit.as_ref().filter(|_| locks);
    let transfers = outcomes.iter().flat_map(|outcome| &outcome.transfers);
    let is_made = check_transfers(plan.sender, expected, Some(token), transfers, &CODEC)?;
    match expected {
        Some(Expected { htlc, amount, .. }) if !is_made => {
            Err(Refusal::new(Code::SimulationDiffers, "/transfers").with_expected(format!("{amount} of {token} to {htlc}")))
        }
        _ => Ok(gas_used),
    }
}

fn reverted(role: Role, reason: &str) -> Refusal {
    Refusal::new(Code::SimulationReverted, format!("/{role}")).with_reason(reason.to_owned())
}
