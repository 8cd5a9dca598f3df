//! The preflight: checks funds and allowance, and simulates the calls, before anything is signed.

use countersign::evm::alloy_consensus::Transaction as _;
use countersign::evm::alloy_primitives::{Address, B256, Bytes, U256, hex};
use countersign::evm::read::{self, NATIVE, Transfer};
use countersign::evm::{EvmTransaction, UnsignedOrder};
use countersign::json::Node;
use countersign::{Code, Refusal, Role, TypedValue};
use countersign_client::Transport;
use serde_json::{Value, json};

use super::block::LATEST;
use super::wallet::{balance_of, coin_and_token};
use super::{EvmChain, answer, call, first, hash, nth, quantity, revert};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;

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
    /// The maximum that the calls can spend of it, in wei: the value that they send, and their gas limits at their fee caps. On a rollup,
    /// the fee for the underlying chain is not included.
    pub cost: U256,
    /// The gas that the simulation of all calls used. `None` if the node cannot simulate several calls, or if nothing was simulated.
    pub gas_used: Option<u64>,
}

/// What an order must do.
struct Plan {
    sender: Address,
    steps: Vec<Step>,
    cost: U256,
    deposit: Option<Expected>,
    /// Whether a call contains the secret, so that no node may see it before it is signed and sent.
    is_secret: bool,
}

/// A call to simulate.
struct Step {
    role: Role,
    to: Address,
    value: U256,
    data: Bytes,
    gas: u64,
}

/// The transfer that was verified.
struct Expected {
    htlc: Address,
    amount: U256,
    is_native: bool,
    /// The token that an approval names.
    approved: Option<Address>,
    /// Whether the calls include the approval.
    approves: bool,
}

/// How one simulated call ended.
struct Outcome {
    failure: Option<String>,
    gas_used: u64,
    transfers: Vec<(Address, Transfer)>,
}

impl Plan {
    fn new(order: &UnsignedOrder, chain_id: u64) -> Result<Self, Refusal> {
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
        Ok(Self { sender: payloads.sender, steps, cost, deposit, is_secret })
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
}

impl<'n, T: Transport> EvmChain<'n, T> {
    /// Checks that the sender has enough of the coin, the token and the allowance, and simulates the calls. Call it before signing.
    ///
    /// The simulation (`eth_simulateV1`) must transfer exactly the verified amount of the token or coin from the sender to the HTLC, and
    /// nothing else from the sender. On a node without that method, only the first call is run (`eth_call`). A redemption is never
    /// simulated, because that would show the secret to the node.
    ///
    /// The first endpoint that answers decides. A preflight protects from mistakes, not from a dishonest node.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with
    ///
    /// - [`Code::WalletChainMismatch`] if a call is for another chain,
    /// - [`Code::InsufficientFunds`] or [`Code::AllowanceTooLow`] if the sender has too little,
    /// - [`Code::SimulationReverted`] if a call fails,
    /// - [`Code::SimulationDiffers`] if the calls would do something else than what was verified,
    ///
    /// and another [`NodeError`] if no endpoint answers.
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        let plan = Plan::new(order, self.chain_id)?;
        self.connection.first(|caller| self.check(caller, &plan)).await
    }

    async fn check(&self, caller: Caller<'n, T>, plan: &Plan) -> Result<Preflight, NodeError> {
        self.identify(caller).await?;
        let (balance, token) = money(caller, plan).await?;
        if balance < plan.cost {
            return Err(insufficient("/balance", "of the chain's own coin", plan.cost, balance).into());
        }
        let mut gas_used = None;
        if !plan.is_secret && !plan.steps.is_empty() {
            let outcomes = match simulate(caller, plan).await {
                Err(NodeError::Rpc { .. }) => None,
                outcomes => Some(outcomes?),
            };
            match outcomes {
                Some(outcomes) => gas_used = Some(compare(plan, token, &outcomes)?),
                None => run_first(caller, plan).await?,
            }
        }
        Ok(Preflight { balance, cost: plan.cost, gas_used })
    }
}

fn insufficient(at: &'static str, what: &str, needed: U256, has: U256) -> Refusal {
    let reason = format!("the sender has too little {what}");
    Refusal::new(Code::InsufficientFunds, at).with_expected(TypedValue::AtLeast(needed)).with_actual(has).with_reason(reason)
}

/// Requires that the sender has enough of the token, and that the HTLC may take it. Returns the balance of the coin, and the address of
/// the token.
async fn money<T: Transport>(caller: Caller<'_, T>, plan: &Plan) -> Result<(U256, Address), NodeError> {
    let latest = json!(LATEST);
    let coin = balance_of(plan.sender, None, &latest);
    let Some(expected) = plan.deposit.as_ref().filter(|expected| !expected.is_native) else {
        let balance = caller.rpc(&[coin], |results| first(results)?.hex_number()).await?;
        return Ok((balance, NATIVE));
    };
    let calls = [coin, call(expected.htlc, &read::token_call(), &latest)];
    let (balance, token) = caller.rpc(&calls, coin_and_token).await?;
    if let Some(approved) = expected.approved
        && approved != token
    {
        let refusal = Refusal::new(Code::SimulationDiffers, "/token").with_reason("the contract holds another token");
        return Err(refusal.with_expected(approved.to_string()).with_actual(token.to_string()).into());
    }
    let allowance = call(token, &read::allowance_call(plan.sender, expected.htlc), &latest);
    let calls = [balance_of(plan.sender, Some(token), &latest), allowance];
    let (has, allowance) =
        caller.rpc(&calls, |results| Ok((answer(&first(results)?, read::number)?, answer(&nth(results, 1)?, read::number)?))).await?;
    if has < expected.amount {
        return Err(insufficient("/token", "of the token", expected.amount, has).into());
    }
    if !expected.approves && allowance < expected.amount {
        let refusal = Refusal::new(Code::AllowanceTooLow, "/allowance").with_expected(TypedValue::AtLeast(expected.amount));
        return Err(refusal.with_actual(allowance).into());
    }
    Ok((balance, token))
}

/// Simulates all calls in sequence, on top of the newest block.
async fn simulate<T: Transport>(caller: Caller<'_, T>, plan: &Plan) -> Result<Vec<Outcome>, NodeError> {
    let blocks = json!({"blockStateCalls": [{"calls": plan.calls()}], "traceTransfers": true, "validation": false});
    let simulate = Call::new("eth_simulateV1", json!([blocks, LATEST]));
    let read = |results: &[Node<'_, '_>]| {
        let blocks = first(results)?;
        let block = blocks.array()?.next().ok_or_else(|| blocks.refuse(Code::MissingField))?;
        let block = block.object()?;
        let calls = block.need("calls")?;
        let all = calls.array()?;
        if all.len() != plan.steps.len() {
            return Err(calls.at().refuse(Code::WrongType).with_expected(format!("{} calls", plan.steps.len())).with_actual(all.len()));
        }
        all.map(|call| read_outcome(&call)).collect()
    };
    caller.rpc(&[simulate], read).await
}

fn read_outcome(call: &Node<'_, '_>) -> Result<Outcome, Refusal> {
    let members = call.object()?;
    let gas_used = quantity(&members.need("gasUsed")?)?;
    if quantity(&members.need("status")?)? != 1 {
        let data = members.get("returnData").map(|data| data.hex_bytes(MAX_DATA)).transpose()?;
        let failure = data.as_deref().and_then(read::revert_reason).unwrap_or_else(|| "no reason given".to_owned());
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
    Ok(Outcome { failure: None, gas_used, transfers })
}

/// Requires that every call succeeds, and that the calls transfer what was verified. Returns the gas that they use.
fn compare(plan: &Plan, token: Address, outcomes: &[Outcome]) -> Result<u64, Refusal> {
    let mut gas_used = 0_u64;
    for (step, outcome) in plan.steps.iter().zip(outcomes) {
        if let Some(reason) = &outcome.failure {
            return Err(reverted(step.role, reason));
        }
        gas_used = gas_used.saturating_add(outcome.gas_used);
    }
    // Only the call that locks the funds transfers any. The approvals of a gasless order do not.
    let locks = plan.steps.iter().any(|step| step.role == Role::Initiate);
    let expected = plan.deposit.as_ref().filter(|_| locks);
    let mut is_paid = false;
    for (asset, transfer) in outcomes.iter().flat_map(|outcome| &outcome.transfers) {
        let is_expected = expected.is_some_and(|expected| {
            (*asset, transfer.from, transfer.to, transfer.amount) == (token, plan.sender, expected.htlc, expected.amount)
        });
        let from_htlc = expected.is_some_and(|expected| transfer.from == expected.htlc);
        if is_expected && !is_paid {
            is_paid = true;
        } else if (transfer.from == plan.sender || from_htlc) && !transfer.amount.is_zero() {
            let Transfer { from, to, amount, .. } = transfer;
            return Err(Refusal::new(Code::SimulationDiffers, "/transfers").with_actual(format!("{amount} of {asset} from {from} to {to}")));
        }
    }
    match expected {
        Some(Expected { htlc, amount, .. }) if !is_paid => {
            Err(Refusal::new(Code::SimulationDiffers, "/transfers").with_expected(format!("{amount} of {token} to {htlc}")))
        }
        _ => Ok(gas_used),
    }
}

fn reverted(role: Role, reason: &str) -> Refusal {
    Refusal::new(Code::SimulationReverted, format!("/{role}")).with_reason(reason.to_owned())
}

/// Runs only the first call, because the later ones may depend on its effects.
async fn run_first<T: Transport>(caller: Caller<'_, T>, plan: &Plan) -> Result<(), NodeError> {
    let (Some(step), Some(call)) = (plan.steps.first(), plan.calls().into_iter().next()) else { return Ok(()) };
    match caller.rpc(&[Call::new("eth_call", json!([call, LATEST]))], |results| first(results)?.hex_bytes(MAX_DATA)).await {
        Ok(_) => Ok(()),
        Err(error) => Err(revert(&error).map_or(error, |reason| reverted(step.role, &reason).into())),
    }
}
