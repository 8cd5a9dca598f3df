//! The preflight: checks funds and allowance, and simulates the transaction, before anything is signed.

use countersign_core::json::Cursor;
use countersign_core::reader::json_rpc::end_of_trace;
use countersign_core::reader::{
    Agree, Fault, Identity, Judged, Known, Machine, Replies, Reply, Request, Turn, check_allowance, check_balance,
};
use countersign_core::report::text;
use countersign_core::{ApprovalStep, Code, Refusal, Role, U256};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::block::{LATEST, PENDING};
use super::{STRK, answer, balance_of, call, chain_name, check_version, felts, hex, is_reverted, spec_version};
use crate::htlc::APPROVE;
use crate::read::{self, Transfer};
use crate::{InvokeTransaction, UnsignedOrder, VerifiedOrder, felt};

/// The maximum number of calls in a simulated transaction, on all levels together.
const MAX_CALLS: usize = 256;
/// The maximum number of events of one call.
const MAX_EVENTS: usize = 64;
/// The maximum number of keys of an event, and of felts in its data.
const MAX_FELTS: usize = 1_024;

/// The result of a preflight that found nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// The sender's STRK balance, in FRI.
    pub balance: U256,
    /// The maximum that the transaction can spend of it, in FRI: its resource bounds, and the amount if the token is STRK.
    pub cost: U256,
    /// Whether the transaction was simulated. A redemption is not, because that would show the secret.
    pub is_simulated: bool,
}

impl Agree for Preflight {
    type Key = ();

    /// Honest endpoints at different heights may show different balances.
    fn key(&self) {}
}

/// A transaction that is about to be signed, or the funds that a gasless order needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intended {
    chain_id: Felt,
    sender: Felt,
    /// The maximum fee in FRI; `None` if the sender pays none.
    fee: Option<U256>,
    expected: Option<Expected>,
    /// The transaction that may be shown to a node. A redemption may not, because it contains the secret.
    simulated: Option<(Role, InvokeTransaction)>,
}

/// The transfer that was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expected {
    htlc: Felt,
    amount: U256,
    /// The token that an approval names.
    approved: Option<Felt>,
    /// Whether the transaction includes the approval.
    approves: bool,
}

impl Expected {
    fn new(order: &VerifiedOrder, approves: bool) -> Self {
        let deposit = order.deposit();
        let approved = deposit.approval.as_ref().map(|approval| approval.call.to);
        Self { htlc: deposit.initiate.to, amount: deposit.terms.amount, approved, approves }
    }
}

impl Intended {
    /// Creates what a prepared order, redemption or refund does.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the transaction is for another chain.
    pub fn new(chain_id: Felt, order: &UnsignedOrder) -> Result<Self, Refusal> {
        let payloads = order.payloads();
        let invoke = payloads.invoke.as_ref().map(|payload| (payload.role, &payload.invoke));
        if let Some((_, invoke)) = invoke
            && invoke.chain_id != chain_id
        {
            let refusal = Refusal::new(Code::WalletChainMismatch, "/chain_id").with_expected(chain_name(chain_id));
            return Err(refusal.with_actual(chain_name(invoke.chain_id)));
        }
        let approves = invoke.is_some_and(|(_, invoke)| invoke.calls.iter().any(|call| call.selector == APPROVE));
        Ok(Self {
            chain_id,
            sender: payloads.sender,
            fee: invoke.map(|(_, invoke)| invoke.transaction.resource_bounds.max_fee(invoke.transaction.tip)),
            expected: order.verified().map(|order| Expected::new(order, approves)),
            simulated: invoke.filter(|(role, _)| *role != Role::Redeem).map(|(role, invoke)| (role, invoke.transaction.clone())),
        })
    }

    /// Creates the tokens and the allowance that an order needs, before a fee is known. `step` is what the transaction will do with the
    /// order's approval.
    #[must_use]
    pub fn tokens_of(chain_id: Felt, order: &VerifiedOrder, step: ApprovalStep) -> Self {
        let approves = order.deposit().approval.is_some() && step != ApprovalStep::AlreadyApproved;
        let (sender, expected) = (order.deposit().sender, Some(Expected::new(order, approves)));
        Self { chain_id, sender, fee: None, expected, simulated: None }
    }
}

/// Checks that the sender has enough STRK, tokens and allowance, and simulates the transaction.
///
/// The simulation (`starknet_simulateTransactions`) must transfer exactly the verified amount of the token from the sender to the HTLC,
/// and nothing else from the sender. A redemption is never simulated, because that would show the secret to the node.
///
/// A refusal has one of these codes: [`Code::InsufficientFunds`] or [`Code::AllowanceTooLow`] if the sender has too little,
/// [`Code::SimulationReverted`] if the transaction fails, and [`Code::SimulationDiffers`] if it would do something else than what was
/// verified.
#[derive(Debug)]
pub struct PreflightCheck {
    intended: Intended,
    /// The balance of STRK, and the address of the token, once they are read.
    first: Option<(U256, Option<Felt>)>,
}

impl Machine for PreflightCheck {
    type Subject = Intended;
    type Output = Judged<Preflight>;
    const MAX_ROUNDS: usize = 2;

    fn start(intended: &Intended, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let latest = json!(LATEST);
        let mut requests = vec![spec_version(), balance_of(STRK, intended.sender, &latest)];
        requests.extend(intended.expected.map(|expected| call(expected.htlc, read::TOKEN, &[], &latest)));
        Ok((Self { intended: intended.clone(), first: None }, requests))
    }

    fn identity(&self) -> Identity {
        super::identity(self.intended.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Judged<Preflight>>, Fault> {
        let Some((balance, token)) = self.first else { return self.first_round(replies) };
        let Intended { sender, expected, simulated, .. } = &self.intended;
        let funds = match expected {
            Some(expected) => expected.check(answer(&replies.json(0)?, read::number)?, answer(&replies.json(1)?, read::number)?),
            None => Ok(()),
        };
        let judgement = funds.and_then(|()| self.check_fee(balance, token));
        let simulation = match (simulated, replies.all().last()) {
            (Some((role, _)), Some(reply)) if judgement.is_ok() => {
                read_simulation(*role, reply)?.and_then(|moved| compare(*sender, token, *expected, &moved))
            }
            _ => Ok(()),
        };
        Ok(Turn::Done(Judged(judgement.and_then(|preflight| simulation.map(|()| preflight)))))
    }
}

impl PreflightCheck {
    fn first_round(&mut self, replies: &Replies<'_>) -> Result<Turn<Judged<Preflight>>, Fault> {
        check_version(&replies.get(0)?)?;
        let balance = answer(&replies.json(1)?, read::number)?;
        let Intended { sender, expected, simulated, .. } = &self.intended;
        let token = expected.map(|_| answer(&replies.json(2)?, read::address).map_err(Fault::from)).transpose()?;
        let mut requests = Vec::new();
        if let (Some(expected), Some(token)) = (expected, token) {
            if let Some(approved) = expected.approved.filter(|approved| *approved != token) {
                let refusal = Refusal::new(Code::SimulationDiffers, "/token").with_reason("the contract holds another token");
                return Ok(Turn::Done(Judged(Err(refusal.with_expected(hex(approved)).with_actual(hex(token))))));
            }
            let latest = json!(LATEST);
            requests.push(balance_of(token, *sender, &latest));
            requests.push(call(token, read::ALLOWANCE, &[*sender, expected.htlc], &latest));
        }
        requests.extend(simulated.as_ref().map(|(_, transaction)| simulate(transaction)));
        if requests.is_empty() {
            return Ok(Turn::Done(Judged(self.check_fee(balance, token))));
        }
        self.first = Some((balance, token));
        Ok(Turn::Ask(requests))
    }

    /// Requires that the sender has the STRK that the transaction can spend.
    fn check_fee(&self, balance: U256, token: Option<Felt>) -> Result<Preflight, Refusal> {
        let Intended { fee, expected, simulated, .. } = &self.intended;
        // A gasless order pays no fee, and its amount has already been checked as a token balance.
        let locked = expected.filter(|_| fee.is_some() && token == Some(STRK)).map(|expected| expected.amount);
        let cost = fee.unwrap_or_default().saturating_add(locked.unwrap_or_default());
        check_balance("/balance", "STRK for the amount and the fee", cost, balance)?;
        Ok(Preflight { balance, cost, is_simulated: simulated.is_some() })
    }
}

impl Expected {
    /// Requires that the sender has enough of the token, and that the HTLC may take it.
    fn check(&self, has: U256, allowance: U256) -> Result<(), Refusal> {
        check_balance("/token", "of the token", self.amount, has)?;
        if self.approves { Ok(()) } else { check_allowance(self.amount, allowance) }
    }
}

/// Creates the simulation of the transaction on top of the block that is being built, without signature and fee.
fn simulate(transaction: &InvokeTransaction) -> Request {
    let params = json!({"block_id": PENDING, "transactions": [transaction], "simulation_flags": ["SKIP_VALIDATE", "SKIP_FEE_CHARGE"]});
    Request::json_rpc("starknet_simulateTransactions", params)
}

/// Reads the token transfers of a simulation. The outer error is an answer that cannot be used. The inner one is a transaction that fails.
fn read_simulation(role: Role, reply: &Reply<'_>) -> Result<Result<Vec<(Felt, Transfer)>, Refusal>, Fault> {
    let reverted = |reason: &str| {
        let reason = text::escape_untrusted(end_of_trace(reason));
        Refusal::new(Code::SimulationReverted, format!("/{role}")).with_reason(reason)
    };
    let list = match reply.json_or_error()? {
        Ok(list) => list,
        Err(error) if is_reverted(error) => return Ok(Err(reverted(&error.message))),
        Err(error) => return Err(Fault::Rpc(error.clone())),
    };
    let only = list.array()?.next().ok_or_else(|| list.refuse(Code::MissingField))?;
    let only = only.object()?;
    let trace = only.need("transaction_trace")?;
    let trace = trace.object()?;
    let run = trace.need("execute_invocation")?;
    if let Some(reason) = run.object()?.get("revert_reason") {
        return Ok(Err(reverted(reason.text()?)));
    }
    Ok(Ok(transfers(run)?))
}

/// Collects the token transfers of a call and of all calls below it.
fn transfers(run: Cursor<'_, '_>) -> Result<Vec<(Felt, Transfer)>, Refusal> {
    let (mut found, mut budget) = (Vec::new(), MAX_CALLS);
    collect(run, &mut found, &mut budget)?;
    Ok(found)
}

/// Adds the token transfers of a call to `found`. The depth of the recursion is limited by the maximum depth of JSON.
fn collect(run: Cursor<'_, '_>, found: &mut Vec<(Felt, Transfer)>, budget: &mut usize) -> Result<(), Refusal> {
    let too_many = |cursor: &Cursor<'_, '_>| cursor.at().refuse(Code::WrongType).with_reason("more calls or events than an order makes");
    *budget = budget.checked_sub(1).ok_or_else(|| too_many(&run))?;
    let members = run.object()?;
    // A call that reverted has no effects, even if its caller went on.
    if members.get("is_reverted").map(|cursor| cursor.bool()).transpose()? == Some(true) {
        return Ok(());
    }
    let contract = felt::read(members.need("contract_address")?)?;
    let events = members.need("events")?;
    if events.array()?.len() > MAX_EVENTS {
        return Err(too_many(&events));
    }
    for event in events.array()? {
        let event = event.object()?;
        let (keys, data) = (felts(&event.need("keys")?, MAX_FELTS)?, felts(&event.need("data")?, MAX_FELTS)?);
        found.extend(read::transfer(&keys, &data).map(|transfer| (contract, transfer)));
    }
    let calls = members.need("calls")?;
    for call in calls.array()? {
        collect(call, found, budget)?;
    }
    Ok(())
}

/// Requires that the transaction transfers what was verified, and nothing else from the sender.
fn compare(sender: Felt, token: Option<Felt>, expected: Option<Expected>, moved: &[(Felt, Transfer)]) -> Result<(), Refusal> {
    let mut is_paid = false;
    for (asset, transfer) in moved {
        let Transfer { from, to, amount, .. } = *transfer;
        let is_expected =
            expected.is_some_and(|expected| (Some(*asset), from, to, amount) == (token, sender, expected.htlc, expected.amount));
        let from_htlc = expected.is_some_and(|expected| from == expected.htlc);
        if is_expected && !is_paid {
            is_paid = true;
        } else if (from == sender || from_htlc) && !amount.is_zero() {
            let actual = format!("{amount} of {} from {} to {}", hex(*asset), hex(from), hex(to));
            return Err(Refusal::new(Code::SimulationDiffers, "/transfers").with_actual(actual));
        }
    }
    match expected {
        Some(Expected { htlc, amount, .. }) if !is_paid => {
            let expected = format!("{amount} of {} to {}", token.map(hex).unwrap_or_default(), hex(htlc));
            Err(Refusal::new(Code::SimulationDiffers, "/transfers").with_expected(expected))
        }
        _ => Ok(()),
    }
}
