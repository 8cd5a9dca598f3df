//! The preflight: checks funds and allowance, and simulates the transaction, before anything is signed.

use countersign::json::Node;
use countersign::starknet::htlc::APPROVE;
use countersign::starknet::read::{self, Transfer};
use countersign::starknet::{Felt, Invoke, UnsignedOrder, VerifiedOrder, felt};
use countersign::{Code, Refusal, Role, TypedValue, U256};
use countersign_client::Transport;
use serde_json::json;

use super::block::{LATEST, PENDING};
use super::wallet::STRK;
use super::{StarknetChain, answer, balance_of, call, felts, first, hex, nth};
use crate::endpoint::{Call, Caller, end_of_trace};
use crate::error::NodeError;

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

/// The transfer that was verified.
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

impl<'n, T: Transport> StarknetChain<'n, T> {
    /// Checks that the sender has enough STRK, tokens and allowance, and simulates the transaction. Call it before signing.
    ///
    /// The simulation (`starknet_simulateTransactions`) must transfer exactly the verified amount of the token from the sender to the
    /// HTLC, and nothing else from the sender. A redemption is never simulated, because that would show the secret to the node.
    ///
    /// The first endpoint that answers decides. A preflight protects from mistakes, not from a dishonest node.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with
    ///
    /// - [`Code::WalletChainMismatch`] if the transaction is for another chain,
    /// - [`Code::InsufficientFunds`] or [`Code::AllowanceTooLow`] if the sender has too little,
    /// - [`Code::SimulationReverted`] if the transaction fails,
    /// - [`Code::SimulationDiffers`] if the transaction would do something else than what was verified,
    ///
    /// and another [`NodeError`] if no endpoint answers.
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        let payloads = order.payloads();
        let invoke = payloads.invoke.as_ref().map(|payload| (payload.role, &payload.invoke));
        if let Some((_, invoke)) = invoke
            && invoke.chain_id != self.chain_id
        {
            let refusal = Refusal::new(Code::WalletChainMismatch, "/chain_id").with_expected(super::name(self.chain_id));
            return Err(refusal.with_actual(super::name(invoke.chain_id)).into());
        }
        let approves = invoke.is_some_and(|(_, invoke)| invoke.calls.iter().any(|call| call.selector == APPROVE));
        let expected = order.verified().map(|order| Expected::new(order, approves));
        self.connection.first(|caller| self.check(caller, payloads.sender, invoke, expected.as_ref())).await
    }

    /// Checks that the sender has enough tokens and allowance. `approves` is whether the transaction will include the approval.
    pub(super) async fn check_token(&self, order: &VerifiedOrder, approves: bool) -> Result<(), NodeError> {
        let (sender, expected) = (order.deposit().sender, Expected::new(order, approves));
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            money(caller, sender, Some(&expected)).await.map(drop)
        };
        self.connection.first(ask).await
    }

    async fn check(
        &self,
        caller: Caller<'n, T>,
        sender: Felt,
        invoke: Option<(Role, &Invoke)>,
        expected: Option<&Expected>,
    ) -> Result<Preflight, NodeError> {
        self.identify(caller).await?;
        let (balance, token) = money(caller, sender, expected).await?;
        let fee = invoke.map(|(_, invoke)| invoke.transaction.resource_bounds.max_fee(invoke.transaction.tip)).unwrap_or_default();
        // A gasless order pays no fee, and its amount has already been checked as a token balance.
        let locked = expected.filter(|_| invoke.is_some() && token == Some(STRK)).map(|expected| expected.amount);
        let cost = fee.saturating_add(locked.unwrap_or_default());
        if balance < cost {
            return Err(insufficient("/balance", "STRK for the amount and the fee", cost, balance).into());
        }
        let simulated = invoke.filter(|(role, _)| *role != Role::Redeem);
        if let Some((role, invoke)) = simulated {
            compare(sender, token, expected, &simulate(caller, role, invoke).await?)?;
        }
        Ok(Preflight { balance, cost, is_simulated: simulated.is_some() })
    }
}

fn insufficient(at: &'static str, what: &str, needed: U256, has: U256) -> Refusal {
    let reason = format!("the sender has too little {what}");
    Refusal::new(Code::InsufficientFunds, at).with_expected(TypedValue::AtLeast(needed)).with_actual(has).with_reason(reason)
}

/// Requires that the sender has enough of the token, and that the HTLC may take it. Returns the balance of STRK, and the address of the
/// token.
async fn money<T: Transport>(caller: Caller<'_, T>, sender: Felt, expected: Option<&Expected>) -> Result<(U256, Option<Felt>), NodeError> {
    let latest = json!(LATEST);
    let strk = balance_of(STRK, sender, &latest);
    let Some(expected) = expected else {
        let balance = caller.rpc(&[strk], |results| answer(&first(results)?, read::number)).await?;
        return Ok((balance, None));
    };
    let calls = [strk, call(expected.htlc, read::TOKEN, &[], &latest)];
    let (balance, token) =
        caller.rpc(&calls, |results| Ok((answer(&first(results)?, read::number)?, answer(&nth(results, 1)?, read::address)?))).await?;
    if let Some(approved) = expected.approved
        && approved != token
    {
        let refusal = Refusal::new(Code::SimulationDiffers, "/token").with_reason("the contract holds another token");
        return Err(refusal.with_expected(hex(approved)).with_actual(hex(token)).into());
    }
    let calls = [balance_of(token, sender, &latest), call(token, read::ALLOWANCE, &[sender, expected.htlc], &latest)];
    let (has, allowance) =
        caller.rpc(&calls, |results| Ok((answer(&first(results)?, read::number)?, answer(&nth(results, 1)?, read::number)?))).await?;
    if has < expected.amount {
        return Err(insufficient("/token", "of the token", expected.amount, has).into());
    }
    if !expected.approves && allowance < expected.amount {
        let refusal = Refusal::new(Code::AllowanceTooLow, "/allowance").with_expected(TypedValue::AtLeast(expected.amount));
        return Err(refusal.with_actual(allowance).into());
    }
    Ok((balance, Some(token)))
}

/// Simulates the transaction on top of the block that is being built, without signature and fee. Returns the token transfers.
async fn simulate<T: Transport>(caller: Caller<'_, T>, role: Role, invoke: &Invoke) -> Result<Vec<(Felt, Transfer)>, NodeError> {
    let params =
        json!({"block_id": PENDING, "transactions": [invoke.transaction], "simulation_flags": ["SKIP_VALIDATE", "SKIP_FEE_CHARGE"]});
    let reverted = |reason: &str| {
        let reason = countersign::text::escape_untrusted(end_of_trace(reason));
        Refusal::new(Code::SimulationReverted, format!("/{role}")).with_reason(reason)
    };
    let read = |results: &[Node<'_, '_>]| {
        let list = first(results)?;
        let only = list.array()?.next().ok_or_else(|| list.refuse(Code::MissingField))?;
        let only = only.object()?;
        let trace = only.need("transaction_trace")?;
        let trace = trace.object()?;
        let run = trace.need("execute_invocation")?;
        // The outer error is for a malformed answer, the inner one for a transaction that fails.
        if let Some(reason) = run.object()?.get("revert_reason") {
            return Ok(Err(reverted(reason.text()?)));
        }
        transfers(run).map(Ok)
    };
    match caller.rpc(&[Call::new("starknet_simulateTransactions", params)], read).await {
        Ok(outcome) => Ok(outcome?),
        Err(NodeError::Rpc { code: 40 | 41, message, .. }) => Err(reverted(&message).into()),
        Err(error) => Err(error),
    }
}

/// Collects the token transfers of a call and of all calls below it.
fn transfers(run: Node<'_, '_>) -> Result<Vec<(Felt, Transfer)>, Refusal> {
    let (mut found, mut budget) = (Vec::new(), MAX_CALLS);
    collect(run, &mut found, &mut budget)?;
    Ok(found)
}

/// Adds the token transfers of a call to `found`. The depth of the recursion is limited by the maximum depth of JSON.
fn collect(run: Node<'_, '_>, found: &mut Vec<(Felt, Transfer)>, budget: &mut usize) -> Result<(), Refusal> {
    let too_many = |node: &Node<'_, '_>| node.at().refuse(Code::WrongType).with_reason("more calls or events than an order makes");
    *budget = budget.checked_sub(1).ok_or_else(|| too_many(&run))?;
    let members = run.object()?;
    // A call that reverted has no effects, even if its caller went on.
    if members.get("is_reverted").map(|node| node.bool()).transpose()? == Some(true) {
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
fn compare(sender: Felt, token: Option<Felt>, expected: Option<&Expected>, moved: &[(Felt, Transfer)]) -> Result<(), Refusal> {
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
            let expected = format!("{amount} of {} to {}", token.map(hex).unwrap_or_default(), hex(*htlc));
            Err(Refusal::new(Code::SimulationDiffers, "/transfers").with_expected(expected))
        }
        _ => Ok(()),
    }
}
