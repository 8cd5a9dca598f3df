//! The preflight: checks funds, allowance and fees, and runs the first call, before anything is signed.

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

/// The bytes of a transaction that are not signed: the signature with its tag, and the bytes that nodes reserve for the result.
const REST_OF_TRANSACTION: u64 = 67 + 64 + 5;

/// The energy that a redemption is assumed to use, because running it would show the secret. It covers a token transfer to an address
/// without a balance of the token, and the work of the HTLC. A redemption that runs out of energy reveals the secret for nothing.
const REDEMPTION_ENERGY: u64 = 160_000;

/// The result of a preflight that found nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// The sender's TRX balance, in sun.
    pub balance: U256,
    /// The amount that the calls are expected to spend, in sun: the value that they send, their bandwidth, and the energy of the first
    /// call. A redemption is assumed to use 160,000 units of energy. Staked energy and bandwidth and free bandwidth are subtracted.
    pub cost: U256,
    /// The energy that the first call used; `None` if nothing was run.
    pub energy_used: Option<u64>,
}

/// What an order must do.
struct Plan {
    sender: Address,
    steps: Vec<Step>,
    deposit: Option<Expected>,
    /// Whether a call contains the secret, so that no node may see it before it is signed and sent.
    is_secret: bool,
}

struct Step {
    role: Role,
    to: Address,
    value: i64,
    data: Vec<u8>,
    /// The fee limit, in sun.
    fee_limit: u64,
    /// The size of the whole transaction in bytes.
    bytes: u64,
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

    /// Returns the amount that the calls spend, in sun. Only the energy of the first call is known. No call burns more than its fee
    /// limit.
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
    /// Checks that the sender has enough TRX, tokens and allowance, and runs the first call. Call it before signing.
    ///
    /// Only the first call is run, because the later ones may depend on its effects. A redemption is never run, because that would show
    /// the secret to the node. If the node returns logs, the token transfers in them must be exactly the verified amount, from the sender
    /// to the HTLC. The energy that the call uses must be within its fee limit.
    ///
    /// The first endpoint that answers decides. A preflight protects from mistakes, not from a dishonest node.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with
    ///
    /// - [`Code::InsufficientFunds`] or [`Code::AllowanceTooLow`] if the sender has too little,
    /// - [`Code::SimulationReverted`] if the call fails,
    /// - [`Code::SimulationDiffers`] if the call would do something else than what was verified,
    /// - [`Code::GasLimitTooLow`] if the call needs more energy than its fee limit allows,
    ///
    /// and another [`NodeError`] if no endpoint answers.
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
            return Err(insufficient("/balance", "TRX", cost, balance).into());
        }
        Ok(Preflight { balance, cost, energy_used })
    }
}

fn insufficient(at: &'static str, what: &str, needed: U256, has: U256) -> Refusal {
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
        return Err(insufficient("/token", "of the token", expected.amount, has).into());
    }
    if !expected.approves && allowance < expected.amount {
        let refusal = Refusal::new(Code::AllowanceTooLow, "/allowance").with_expected(TypedValue::AtLeast(expected.amount));
        return Err(refusal.with_actual(allowance).into());
    }
    Ok(Some(token))
}

/// Requires that a call succeeds within its fee limit, and transfers nothing but what was verified. Returns the energy that it uses.
fn judge(plan: &Plan, step: &Step, token: Option<Address>, outcome: Outcome, resources: Resources) -> Result<u64, Refusal> {
    let (energy, transfers) = match outcome {
        Outcome::Returned { energy, transfers, .. } => (energy, transfers),
        Outcome::Reverted(why) | Outcome::Failed(why) => {
            return Err(Refusal::new(Code::SimulationReverted, format!("/{}", step.role)).with_reason(why));
        }
    };
    // The limit also applies to staked energy.
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
