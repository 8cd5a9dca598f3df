//! What a transaction of an account needs: nonce and resource bounds.

use countersign_core::json::Cursor;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn, middle, outbid, rebid};
use countersign_core::{Code, Policy, Refusal, TypedValue, U256};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::block::{self, LATEST, PENDING, Prices};
use super::{Endpoint, check_version, hex, is_reverted, spec_version};
use crate::{Call, ExecutionEncoding, InvokeTransaction, ResourceBound, ResourceBounds, TxContext, felt};

/// FRI per unit of the policy's `starknet_fee`.
const POLICY_UNIT: u64 = 1_000_000_000;
/// The part of the price of L2 gas that a replacement offers as its tip at least.
const TIP_PART: u128 = 10;
/// The version of a transaction that is only estimated. No chain executes it.
const QUERY_VERSION: &str = "0x100000000000000000000000000000003";

/// The fixed resources of a redemption, which cannot be estimated without showing the secret. Its hash, its two storage updates and its
/// event need a small part of them.
const REDEMPTION: Amounts = Amounts { l1_gas: 5_000, l2_gas: 40_000_000, l1_data_gas: 5_000 };

/// An account that will send a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct Sender {
    /// The chain id.
    pub chain_id: Felt,
    /// The account.
    pub address: Felt,
    /// The calls that it will make. `None` for a redemption: its call contains the secret, so no node estimates it.
    pub calls: Option<Vec<Call>>,
}

/// What one endpoint shows: the nonce of the next transaction, prices, and the resources that the calls need.
///
/// Endpoints must agree on the nonce, and on whether the calls succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Costs {
    nonce: Felt,
    prices: Prices,
    /// The refusal has the node's reason why the calls fail.
    amounts: Result<Amounts, Refusal>,
}

/// The units of each resource that a transaction needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Amounts {
    l1_gas: u64,
    l2_gas: u64,
    l1_data_gas: u64,
}

impl Agree for Costs {
    type Key = (Felt, Option<Code>);

    fn key(&self) -> Self::Key {
        (self.nonce, self.amounts.as_ref().err().map(Refusal::code))
    }
}

/// Returns the nonce and the resource bounds to sign with, from the costs that agreeing endpoints show, whatever the policy allows: the
/// amounts, and the prices of the newest block times `tenths / 10`. Each amount and each price is the [middle] of its own. For what makes a
/// secret public, that is the higher one of two: it bounds what is paid, and a bound that a single endpoint has lowered would show
/// the secret in a transaction that is never mined. Once the secret is out, a bound that one has raised could be more than the sender has.
///
/// # Errors
///
/// [`Code::SimulationReverted`] if the calls fail, and [`Code::MissingField`] without costs.
pub fn execution(sender: &Sender, all: &[&Costs], tenths: u128, makes_public: bool) -> Result<TxContext, Refusal> {
    let amounts = all.iter().map(|costs| costs.amounts.clone()).collect::<Result<Vec<_>, _>>()?;
    let bound = |amount: fn(&Amounts) -> u64, price: fn(&Prices) -> u128| {
        let (amounts, prices) = (amounts.iter().map(amount), all.iter().map(|costs| price(&costs.prices)));
        Some(ResourceBound::new(middle(makes_public, amounts)?, middle(makes_public, prices)?.saturating_mul(tenths).div_ceil(10)))
    };
    let bounds = || {
        Some(ResourceBounds::new(
            bound(|all| all.l1_gas, |all| all.l1_gas)?,
            bound(|all| all.l2_gas, |all| all.l2_gas)?,
            bound(|all| all.l1_data_gas, |all| all.l1_data_gas)?,
        ))
    };
    let context = || Some(TxContext::new(all.first()?.nonce, bounds()?).with_chain_id(sender.chain_id));
    context().ok_or_else(|| Refusal::new(Code::MissingField, "/resource_bounds"))
}

/// Returns the context of a redemption that pays the policy's limit, because the chain asks for more: the same amounts, with all prices
/// lowered in the same proportion.
#[must_use]
pub fn at_limit(asked: TxContext, policy: &Policy) -> TxContext {
    let (total, limit) = (asked.resource_bounds.max_fee(asked.tip), limit(policy));
    if total <= limit {
        return asked;
    }
    let lower = |price: u128| {
        let price = U256::from(price).saturating_mul(limit).checked_div(total).unwrap_or_default();
        u128::try_from(price).unwrap_or(u128::MAX)
    };
    let bound = |bound: ResourceBound| ResourceBound::new(bound.max_amount, lower(bound.max_price_per_unit));
    let ResourceBounds { l1_gas, l2_gas, l1_data_gas, .. } = asked.resource_bounds;
    let tip = u64::try_from(lower(asked.tip.into())).unwrap_or(u64::MAX);
    TxContext { resource_bounds: ResourceBounds::new(bound(l1_gas), bound(l2_gas), bound(l1_data_gas)), tip, ..asked }
}

/// Returns the context for a transaction that replaces `before`, which has the same sender and nonce. `now` is the context of this moment.
///
/// Nodes replace a transaction only if price and tip of L2 gas are at least 10 % higher. All three prices are raised by that, but to at
/// most four times those of this moment: see [`rebid`]. Full blocks are ordered by the tip, so one of nothing is raised to a tenth of the
/// price of L2 gas.
#[must_use]
pub fn raised(before: &InvokeTransaction, now: TxContext) -> TxContext {
    let first = now.resource_bounds.l2_gas.max_price_per_unit / TIP_PART;
    let raised = least_raised(before, now);
    let tip = raised.tip.max(u64::try_from(first).unwrap_or(u64::MAX));
    TxContext { tip, ..raised }
}

/// Returns the context for a transaction that replaces `before` with the least tip that nodes require.
#[must_use]
pub fn least_raised(before: &InvokeTransaction, now: TxContext) -> TxContext {
    let bound = |before: ResourceBound, now: ResourceBound| {
        ResourceBound::new(now.max_amount, rebid(before.max_price_per_unit, now.max_price_per_unit))
    };
    let (old, new) = (before.resource_bounds, now.resource_bounds);
    // The tip is the wallet's own: it is not read from nodes.
    let tip = u64::try_from(outbid(before.tip.into())).unwrap_or(u64::MAX).max(now.tip);
    let resource_bounds =
        ResourceBounds::new(bound(old.l1_gas, new.l1_gas), bound(old.l2_gas, new.l2_gas), bound(old.l1_data_gas, new.l1_data_gas));
    TxContext { resource_bounds, tip, ..now }
}

/// Requires that the maximum fee of a transaction, tip included, is within the policy.
///
/// # Errors
///
/// [`Code::GasLimitTooHigh`] at `/resource_bounds`.
pub fn check_fee(execution: &TxContext, policy: &Policy) -> Result<(), Refusal> {
    let (fee, max) = (execution.resource_bounds.max_fee(execution.tip), limit(policy));
    if fee > max {
        let refusal = Refusal::new(Code::GasLimitTooHigh, "/resource_bounds").with_expected(TypedValue::AtMost(max));
        return Err(refusal.with_actual(fee));
    }
    Ok(())
}

/// Returns the maximum fee that the policy allows, in FRI.
fn limit(policy: &Policy) -> U256 {
    U256::from(policy.starknet.fee).saturating_mul(U256::from(POLICY_UNIT))
}

/// Reads nonce and prices, then the estimate of the calls with that nonce. The estimate needs no signature of the account.
#[derive(Debug)]
pub struct Context {
    sender: Sender,
    endpoint: Endpoint,
    /// The nonce and the prices, once they are read.
    first: Option<(Felt, Prices)>,
}

impl Machine for Context {
    type Subject = Sender;
    type Output = Costs;
    const MAX_ROUNDS: usize = 2;

    fn start(sender: &Sender, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let machine = Self { sender: sender.clone(), endpoint: Endpoint::new(sender.chain_id, known), first: None };
        let nonce = json!({"block_id": PENDING, "contract_address": hex(sender.address)});
        Ok((machine, vec![spec_version(), Request::json_rpc("starknet_getNonce", nonce), block::by_tag(LATEST)]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.sender.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Costs>, Fault> {
        if let Some((nonce, prices)) = self.first {
            let amounts = match replies.get(0)?.json_or_error()? {
                Ok(cursor) => Ok(Amounts::read(&cursor)?),
                Err(error) if is_reverted(error) => {
                    Err(Refusal::new(Code::SimulationReverted, "/estimate").with_reason(error.message.clone()))
                }
                Err(error) => return Err(Fault::Rpc(error.clone())),
            };
            return Ok(Turn::Done(Costs { nonce, prices, amounts }));
        }
        check_version(&replies.get(0)?)?;
        let (nonce, block) = (felt::read(replies.json(1)?)?, self.endpoint.newest(&replies.json(2)?)?);
        self.first = Some((nonce, block.prices));
        Ok(match &self.sender.calls {
            Some(calls) => Turn::Ask(vec![estimate(self.sender.address, nonce, calls)]),
            None => Turn::Done(Costs { nonce, prices: block.prices, amounts: Ok(REDEMPTION) }),
        })
    }

    fn learned(&self) -> Known {
        self.endpoint.learned.clone()
    }
}

fn estimate(sender: Felt, nonce: Felt, calls: &[Call]) -> Request {
    let transaction = InvokeTransaction::new(sender, ExecutionEncoding::New.encode(calls), nonce, ResourceBounds::default());
    let mut transaction = json!(transaction);
    if let Some(version) = transaction.get_mut("version") {
        *version = QUERY_VERSION.into();
    }
    let params = json!({"request": [transaction], "simulation_flags": ["SKIP_VALIDATE"], "block_id": PENDING});
    Request::json_rpc("starknet_estimateFee", params)
}

impl Amounts {
    /// Reads 1.5 times the estimate.
    fn read(list: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let only = list.array()?.next().ok_or_else(|| list.refuse(Code::MissingField))?;
        let members = only.object()?;
        let amount = |key: &'static str| {
            let cursor = members.need(key)?;
            let amount = u64::try_from(felt::read_u128(cursor)?).map_err(|_| cursor.refuse(Code::NumberTooLarge))?;
            Ok::<_, Refusal>(amount.saturating_add(amount.div_ceil(2)))
        };
        Ok(Self { l1_gas: amount("l1_gas_consumed")?, l2_gas: amount("l2_gas_consumed")?, l1_data_gas: amount("l1_data_gas_consumed")? })
    }
}
