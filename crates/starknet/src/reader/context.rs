//! What a transaction of an account needs: nonce and resource bounds.

use countersign_core::json::Cursor;
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn, outbid};
use countersign_core::{Code, Policy, Refusal, TypedValue, U256};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::block::{self, LATEST, PENDING, Prices};
use super::{Endpoint, check_version, hex, is_reverted, spec_version};
use crate::{Call, ExecutionEncoding, InvokeTransaction, ResourceBound, ResourceBounds, TxContext, felt};

/// FRI per unit of the policy's `starknet_fee`.
const POLICY_UNIT: u64 = 1_000_000_000;
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

impl Costs {
    /// Returns the resource bounds: the amounts, and the prices of the newest block times `tenths / 10`.
    ///
    /// # Errors
    ///
    /// [`Code::SimulationReverted`] if the calls fail, and [`Code::GasLimitTooHigh`] if the maximum fee exceeds the policy.
    pub fn bounds(&self, tenths: u128, policy: &Policy) -> Result<ResourceBounds, Refusal> {
        let bounds = self.asked(tenths)?;
        check(&bounds, policy).map(|()| bounds)
    }

    /// Returns the resource bounds, whatever the policy allows.
    fn asked(&self, tenths: u128) -> Result<ResourceBounds, Refusal> {
        let (amounts, prices) = (self.amounts.as_ref().map_err(Clone::clone)?, self.prices);
        let bound = |amount: u64, price: u128| ResourceBound::new(amount, price.saturating_mul(tenths).div_ceil(10));
        Ok(ResourceBounds::new(
            bound(amounts.l1_gas, prices.l1_gas),
            bound(amounts.l2_gas, prices.l2_gas),
            bound(amounts.l1_data_gas, prices.l1_data_gas),
        ))
    }
}

/// Returns the nonce and the resource bounds to sign with, from the costs that agreeing endpoints show. Costs that exceed the policy do not
/// count. The bounds are the median of the others. A redemption must not wait, so its bounds are the highest of them.
///
/// # Errors
///
/// The errors of [`Costs::bounds`] if no endpoint passes, and [`Code::GasLimitTooHigh`] if the medians together exceed the policy.
pub fn execution(sender: &Sender, all: &[&Costs], tenths: u128, policy: &Policy) -> Result<TxContext, Refusal> {
    let mut bounds = Vec::new();
    let mut refused = Refusal::new(Code::GasLimitTooHigh, "/resource_bounds");
    for costs in all {
        match costs.bounds(tenths, policy) {
            Ok(one) => bounds.push(one),
            Err(refusal) => refused = refusal,
        }
    }
    let nonce = all.first().map(|costs| costs.nonce);
    let is_redemption = sender.calls.is_none();
    let middle = if is_redemption { bounds.len().saturating_sub(1) } else { bounds.len() / 2 };
    let (Some(nonce), Some(mut picked)) = (nonce, pick(&bounds, middle)) else { return Err(refused) };
    if let Err(refusal) = check(&picked, policy) {
        // Each endpoint's bounds are within the policy, so the highest of them are not too low for a redemption.
        let highest = bounds.into_iter().max_by_key(|bounds| bounds.max_fee(0)).filter(|_| is_redemption);
        picked = highest.ok_or(refusal)?;
    }
    Ok(TxContext::new(nonce, picked).with_chain_id(sender.chain_id))
}

/// Returns the context of a redemption that pays the policy's limit, because endpoints show costs above it: the medians, with all prices
/// lowered in the same proportion.
///
/// # Errors
///
/// The errors of [`Costs::bounds`] that do not depend on the policy.
pub fn execution_at_limit(sender: &Sender, all: &[&Costs], tenths: u128, policy: &Policy) -> Result<TxContext, Refusal> {
    let bounds = all.iter().map(|costs| costs.asked(tenths)).collect::<Result<Vec<_>, _>>()?;
    let nonce = all.first().map(|costs| costs.nonce);
    let picked = nonce.zip(pick(&bounds, bounds.len() / 2));
    let (nonce, asked) = picked.ok_or_else(|| Refusal::new(Code::GasLimitTooHigh, "/resource_bounds"))?;
    let (total, limit) = (asked.max_fee(0), limit(policy));
    let lower = |bound: ResourceBound| {
        let price = U256::from(bound.max_price_per_unit).saturating_mul(limit).checked_div(total).unwrap_or_default();
        ResourceBound::new(bound.max_amount, u128::try_from(price).unwrap_or(u128::MAX).min(bound.max_price_per_unit))
    };
    let bounds = ResourceBounds::new(lower(asked.l1_gas), lower(asked.l2_gas), lower(asked.l1_data_gas));
    Ok(TxContext::new(nonce, bounds).with_chain_id(sender.chain_id))
}

/// Returns the bounds with the amounts and the prices at a place, each counted from the lowest.
fn pick(all: &[ResourceBounds], place: usize) -> Option<ResourceBounds> {
    let one = |bound: fn(&ResourceBounds) -> ResourceBound| {
        let (mut amounts, mut prices): (Vec<_>, Vec<_>) =
            all.iter().map(bound).map(|bound| (bound.max_amount, bound.max_price_per_unit)).unzip();
        amounts.sort_unstable();
        prices.sort_unstable();
        Some(ResourceBound::new(*amounts.get(place)?, *prices.get(place)?))
    };
    Some(ResourceBounds::new(one(|all| all.l1_gas)?, one(|all| all.l2_gas)?, one(|all| all.l1_data_gas)?))
}

/// Returns the context for a transaction that replaces `before`, which has the same sender and nonce.
///
/// Nodes replace a transaction only if price and tip of L2 gas are at least 10 % higher. All three prices are raised by that, and no bound
/// is below that of `now`.
#[must_use]
pub fn raised(before: &InvokeTransaction, now: TxContext) -> TxContext {
    let bound = |before: ResourceBound, now: ResourceBound| {
        let price = outbid(before.max_price_per_unit).max(now.max_price_per_unit);
        ResourceBound::new(before.max_amount.max(now.max_amount), price)
    };
    let (old, new) = (before.resource_bounds, now.resource_bounds);
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
    check_max(execution.resource_bounds.max_fee(execution.tip), policy)
}

fn check(bounds: &ResourceBounds, policy: &Policy) -> Result<(), Refusal> {
    check_max(bounds.max_fee(0), policy)
}

/// Returns the maximum fee that the policy allows, in FRI.
fn limit(policy: &Policy) -> U256 {
    U256::from(policy.starknet.fee).saturating_mul(U256::from(POLICY_UNIT))
}

fn check_max(fee: U256, policy: &Policy) -> Result<(), Refusal> {
    let max = limit(policy);
    if fee > max {
        let refusal = Refusal::new(Code::GasLimitTooHigh, "/resource_bounds").with_expected(TypedValue::AtMost(max));
        return Err(refusal.with_actual(fee));
    }
    Ok(())
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
