//! What would happen: money, allowance and fees are counted, and the first call is run, before anything is signed.

use countersign::tron::alloy_primitives::{Address as AbiAddress, U256};
use countersign::tron::read::{self, Transfer};
use countersign::tron::{Address, UnsignedOrder};
use countersign::{Code, Refusal, Role, TypedValue};
use countersign_client::Transport;
use futures_util::future::{try_join, try_join3};

use super::call::{self, Call, Outcome};
use super::wallet::{self, Resources};
use super::{NEWEST, TronChain};
use crate::endpoint::Caller;
use crate::error::NodeError;

/// Bytes of a transaction beside what is signed: the signature with its tag, and what nodes reserve for the result.
const REST_OF_TRANSACTION: u64 = 67 + 64 + 5;

/// Energy that a redemption is counted with, because running it would show the secret: what a token transfer to an address that has
/// none of the token takes, with room for the HTLC's own work. A redemption that runs out of energy shows the secret for nothing.
const REDEMPTION_ENERGY: u64 = 160_000;

/// What a node expects of an order's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// What the sender has of TRX, in sun.
    pub balance: U256,
    /// What the calls are expected to take of it, in sun: what they send, bandwidth, and energy as far as it is known. A redemption
    /// is counted with 160,000 units of energy. What the sender has staked, and free bandwidth, are taken into account.
    pub cost: U256,
    /// Energy that the first call used; `None` where nothing was run.
    pub energy_used: Option<u64>,
}

/// What an order must do.
struct Plan {
    sender: Address,
    steps: Vec<Step>,
    deposit: Option<Expected>,
    /// The calls are not shown to anybody before they are signed and sent: one has the secret.
    is_secret: bool,
}

struct Step {
    role: Role,
    to: Address,
    value: i64,
    data: Vec<u8>,
    /// Sun.
    fee_limit: u64,
    /// Of the whole transaction.
    bytes: u64,
}

/// The movement that was verified.
struct Expected {
    htlc: Address,
    amount: U256,
    is_native: bool,
    /// The token, where an approval names it.
    approved: Option<Address>,
    /// Whether the calls approve what they need.
    approves: bool,
}

impl Plan {
    fn new(order: &UnsignedOrder) -> Result<Self, Refusal> {
        let payloads = order.payloads();
        let mut steps = Vec::new();
        for payload in &payloads.calls {
            let (raw, trigger) = (&payload.transaction.raw, &payload.transaction.trigger);
            let to = trigger.contract_address.as_slice().try_into().ok().and_then(Address::from_prefixed);
            let to = to.ok_or_else(|| Refusal::new(Code::AddressMalformed, "/raw_data/contract/contract_address"))?;
            let signed = u64::try_from(payload.transaction.raw_data.len()).unwrap_or(u64::MAX);
            steps.push(Step {
                role: payload.role,
                to,
                value: trigger.call_value,
                data: trigger.data.clone(),
                fee_limit: raw.fee_limit.unsigned_abs(),
                bytes: signed.saturating_add(REST_OF_TRANSACTION),
            });
        }
        let has = |role| steps.iter().any(|step: &Step| step.role == role);
        let (approves, is_secret) = (has(Role::Approval), has(Role::Redeem));
        let deposit = order.verified().map(|order| {
            let deposit = order.deposit();
            let approved = deposit.approval.as_ref().map(|approval| approval.call.to);
            let (htlc, amount) = (deposit.initiate.to, deposit.terms.amount);
            Expected { htlc, amount, is_native: deposit.initiate.value != 0, approved, approves }
        });
        Ok(Self { sender: Address::from(payloads.sender), steps, deposit, is_secret })
    }

    /// Returns what the calls take of TRX, in sun. Energy is known of the first call alone, and no call burns more than its fee limit.
    fn cost(&self, resources: Resources, energy_used: Option<u64>) -> U256 {
        let energy = energy_used.unwrap_or(if self.is_secret { REDEMPTION_ENERGY } else { 0 });
        let burnt = U256::from(energy.saturating_sub(resources.energy)).saturating_mul(U256::from(resources.energy_price));
        let mut cost = burnt.min(U256::from(self.steps.first().map_or(0, |step| step.fee_limit)));
        let mut bandwidth = resources.bandwidth;
        for step in &self.steps {
            cost = cost.saturating_add(U256::from(step.value.unsigned_abs()));
            match bandwidth.checked_sub(step.bytes) {
                Some(left) => bandwidth = left,
                None => cost = cost.saturating_add(U256::from(step.bytes).saturating_mul(U256::from(resources.bandwidth_price))),
            }
        }
        cost
    }
}

impl<'n, T: Transport> TronChain<'n, T> {
    /// Says before anything is signed whether the sender has enough of TRX, token and allowance, and runs the first call: those after
    /// it may need its effects. A redemption is not run at all, because that would show the secret to the node.
    ///
    /// Where the node shows the movements of tokens, they must be exactly the verified amount of the token, from the sender to the
    /// HTLC. The energy that the call uses must be within its fee limit.
    ///
    /// The endpoints are asked one after another until one answers: this protects from mistakes, not from the node.
    ///
    /// # Errors
    ///
    /// [`NodeError::Refused`] with [`Code::InsufficientFunds`], [`Code::AllowanceTooLow`], [`Code::SimulationReverted`],
    /// [`Code::SimulationDiffers`] or [`Code::GasLimitTooLow`]; any other [`NodeError`] if no endpoint answers.
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        let plan = Plan::new(order)?;
        self.connection.first(|caller| self.check(caller, &plan)).await
    }

    async fn check(&self, caller: Caller<'n, T>, plan: &Plan) -> Result<Preflight, NodeError> {
        self.identify(caller).await?;
        let (balance, resources, token) =
            try_join3(wallet::coins(caller, plan.sender), wallet::resources(caller, plan.sender), tokens(caller, plan)).await?;
        let mut energy_used = None;
        if !plan.is_secret
            && let Some(step) = plan.steps.first()
        {
            let call = Call { sender: plan.sender, to: step.to, value: step.value, data: &step.data };
            energy_used = Some(judge(plan, step, token, call::run(caller, NEWEST, &call).await?, resources)?);
        }
        let cost = plan.cost(resources, energy_used);
        if balance < cost {
            return Err(short("/balance", "TRX", cost, balance).into());
        }
        Ok(Preflight { balance, cost, energy_used })
    }
}

fn short(at: &'static str, what: &str, needed: U256, has: U256) -> Refusal {
    let reason = format!("the sender has too little {what}");
    Refusal::new(Code::InsufficientFunds, at).with_expected(TypedValue::AtLeast(needed)).with_actual(has).with_reason(reason)
}

/// Requires that the sender has enough of the token, and that the HTLC may take it. Returns the token; `None` for TRX.
async fn tokens<T: Transport>(caller: Caller<'_, T>, plan: &Plan) -> Result<Option<Address>, NodeError> {
    let Some(expected) = plan.deposit.as_ref().filter(|expected| !expected.is_native) else { return Ok(None) };
    let token = Address::from(call::value(caller, expected.htlc, &read::token_call(), read::address).await?);
    if let Some(approved) = expected.approved
        && approved != token
    {
        let refusal = Refusal::new(Code::SimulationDiffers, "/token").with_reason("the contract holds another token");
        return Err(refusal.with_expected(approved).with_actual(token).into());
    }
    let (sender, htlc) = (plan.sender.bytes(), expected.htlc.bytes());
    let (balance, allowance) = (read::balance_call(sender), read::allowance_call(sender, htlc));
    let (has, allowance) =
        try_join(call::value(caller, token, &balance, read::number), call::value(caller, token, &allowance, read::number)).await?;
    if has < expected.amount {
        return Err(short("/token", "of the token", expected.amount, has).into());
    }
    if !expected.approves && allowance < expected.amount {
        let refusal = Refusal::new(Code::AllowanceTooLow, "/allowance").with_expected(TypedValue::AtLeast(expected.amount));
        return Err(refusal.with_actual(allowance).into());
    }
    Ok(Some(token))
}

/// Requires that a call succeeds within its fee limit and moves nothing but what was verified. Returns the energy that it uses.
fn judge(plan: &Plan, step: &Step, token: Option<Address>, outcome: Outcome, resources: Resources) -> Result<u64, Refusal> {
    let (energy, transfers) = match outcome {
        Outcome::Returned { energy, transfers, .. } => (energy, transfers),
        Outcome::Reverted(why) | Outcome::Failed(why) => {
            return Err(Refusal::new(Code::SimulationReverted, format!("/{}", step.role)).with_reason(why));
        }
    };
    // The limit holds for staked energy too.
    let fee = U256::from(energy).saturating_mul(U256::from(resources.energy_price));
    if fee > U256::from(step.fee_limit) {
        let refusal = Refusal::new(Code::GasLimitTooLow, "/fee_limit").with_expected(TypedValue::AtLeast(fee));
        return Err(refusal.with_actual(step.fee_limit).with_reason("the call would run out of energy"));
    }
    let expected = plan.deposit.as_ref().filter(|_| step.role == Role::Initiate);
    let is_verified = |asset: AbiAddress, transfer: &Transfer| {
        expected.is_some_and(|expected| {
            token.is_some_and(|token| asset == token.bytes())
                && (transfer.from, transfer.to, transfer.amount) == (plan.sender.bytes(), expected.htlc.bytes(), expected.amount)
        })
    };
    let mut is_paid = false;
    for (asset, transfer) in &transfers {
        let concerns = transfer.from == plan.sender.bytes() || expected.is_some_and(|expected| transfer.from == expected.htlc.bytes());
        if is_verified(*asset, transfer) && !is_paid {
            is_paid = true;
        } else if concerns && !transfer.amount.is_zero() {
            let [asset, from, to] = [*asset, transfer.from, transfer.to].map(Address::from);
            let moved = format!("{} of {asset} from {from} to {to}", transfer.amount);
            return Err(Refusal::new(Code::SimulationDiffers, "/transfers").with_actual(moved));
        }
    }
    Ok(energy)
}
