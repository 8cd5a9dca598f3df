//! The wallet context for signing: nonce, resource bounds, balances and allowances.

use countersign::json::Node;
use countersign::starknet::read;
use countersign::starknet::{
    Call as ContractCall, Execution, ExecutionEncoding, Felt, InvokeTransaction, ResourceBound, ResourceBounds, felt,
};
use countersign::{Code, Contract, Policy, Refusal, TypedValue, U256};
use countersign_client::Transport;
use serde_json::json;

use super::block::{self, Block, LATEST, PENDING, Prices};
use super::{StarknetChain, answer, balance_of, call, first, hex, nth, parse};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::quorum::agree;

/// The token in which fees are paid. STRK has this address on the main network and on the test network.
pub(super) const STRK: Felt = Felt::from_hex_unchecked("0x4718f5a0fc34cc1af16a1cdee98ffb20c31f5cd61d6ab07201858f4287c938d");
/// FRI per unit of the policy's `starknet_fee`.
const POLICY_UNIT: u64 = 1_000_000_000;

/// The version of a transaction that is only estimated. No chain executes it.
const QUERY_VERSION: &str = "0x100000000000000000000000000000003";

/// The units of each resource that a transaction needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Amounts {
    l1_gas: u64,
    l2_gas: u64,
    l1_data_gas: u64,
}

/// The fixed resources of a redemption, which cannot be estimated without showing the secret. Its hash, its two storage updates and its
/// event need a small part of them.
const REDEMPTION: Amounts = Amounts { l1_gas: 5_000, l2_gas: 40_000_000, l1_data_gas: 5_000 };

/// What the resource bounds are for.
pub(super) enum Purpose<'c> {
    /// Calls that may be shown to a node before they are sent.
    Calls(&'c [ContractCall]),
    /// A redemption. Its call contains the secret, so no node estimates it.
    Redemption,
}

impl<'n, T: Transport> StarknetChain<'n, T> {
    /// Reads the context for signing `calls` of `sender`: the nonce after its pending transactions, and resource bounds.
    ///
    /// The amounts are 1.5 times the node's estimate for these calls. The prices are those of the newest block, times 1.2 (slow), 1.5
    /// (normal) or 2 (fast). The endpoints must agree on the nonce. Of their prices, the median is used. The estimate comes from the first
    /// endpoint that answers.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::GasLimitTooHigh`] if the maximum fee exceeds the policy, or with
    /// [`Code::SimulationReverted`] if the calls fail. Returns another [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn execution(&self, sender: Felt, calls: &[ContractCall], speed: Speed, policy: &Policy) -> Result<Execution, NodeError> {
        self.context(sender, &Purpose::Calls(calls), speed, policy).await
    }

    pub(super) async fn context(&self, sender: Felt, purpose: &Purpose<'_>, speed: Speed, policy: &Policy) -> Result<Execution, NodeError> {
        let (nonce, prices) = self.nonce_and_prices(sender).await?;
        let amounts = match purpose {
            Purpose::Calls(calls) => self.connection.first(|caller| self.estimate(caller, sender, nonce, calls)).await?,
            Purpose::Redemption => REDEMPTION,
        };
        let factor = match speed {
            Speed::Slow => 12,
            Speed::Normal => 15,
            Speed::Fast => 20,
        };
        let bound = |amount: u64, price: u128| ResourceBound::new(amount, price.saturating_mul(factor).div_ceil(10));
        let bounds = ResourceBounds::new(
            bound(amounts.l1_gas, prices.l1_gas),
            bound(amounts.l2_gas, prices.l2_gas),
            bound(amounts.l1_data_gas, prices.l1_data_gas),
        );
        check(&bounds, policy)?;
        Ok(Execution::new(nonce, bounds).with_chain_id(self.chain_id))
    }

    async fn nonce_and_prices(&self, sender: Felt) -> Result<(Felt, Prices), NodeError> {
        let nonce = json!({"block_id": PENDING, "contract_address": hex(sender)});
        let calls = [Call::new("starknet_getNonce", nonce), block::by_tag(LATEST)];
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let read = |results: &[Node<'_, '_>]| Ok((felt::read(first(results)?)?, Block::read(&nth(results, 1)?)?));
            let (nonce, block) = caller.rpc(&calls, read).await?;
            Ok((nonce, Self::latest(caller, block)?.prices))
        };
        let agreed = agree(self.connection.each(ask).await, self.connection.needed(), |(nonce, _)| *nonce)?;
        let nonce = agreed.first().map(|(nonce, _)| *nonce).ok_or_else(|| self.not_connected())?;
        let median = |price: fn(&Prices) -> u128| {
            let mut all: Vec<_> = agreed.iter().map(|(_, prices)| price(prices)).collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        let prices =
            Prices { l1_gas: median(|all| all.l1_gas), l2_gas: median(|all| all.l2_gas), l1_data_gas: median(|all| all.l1_data_gas) };
        Ok((nonce, prices))
    }

    /// Returns 1.5 times the estimate of one endpoint. The estimate needs no signature of the account.
    async fn estimate(&self, caller: Caller<'n, T>, sender: Felt, nonce: Felt, calls: &[ContractCall]) -> Result<Amounts, NodeError> {
        self.identify(caller).await?;
        let transaction = InvokeTransaction::new(sender, ExecutionEncoding::New.encode(calls), nonce, ResourceBounds::default());
        let mut transaction = json!(transaction);
        if let Some(version) = transaction.get_mut("version") {
            *version = QUERY_VERSION.into();
        }
        let params = json!({"request": [transaction], "simulation_flags": ["SKIP_VALIDATE"], "block_id": PENDING});
        let read = |results: &[Node<'_, '_>]| {
            let list = first(results)?;
            let only = list.array()?.next().ok_or_else(|| list.refuse(Code::MissingField))?;
            let members = only.object()?;
            let amount = |key: &'static str| {
                let node = members.need(key)?;
                let amount = u64::try_from(felt::read_u128(node)?).map_err(|_| node.refuse(Code::NumberTooLarge))?;
                Ok::<_, Refusal>(amount.saturating_add(amount.div_ceil(2)))
            };
            Ok(Amounts {
                l1_gas: amount("l1_gas_consumed")?,
                l2_gas: amount("l2_gas_consumed")?,
                l1_data_gas: amount("l1_data_gas_consumed")?,
            })
        };
        match caller.rpc(&[Call::new("starknet_estimateFee", params)], read).await {
            Err(NodeError::Rpc { code: 40 | 41, message, .. }) => {
                Err(Refusal::new(Code::SimulationReverted, "/estimate").with_reason(message).into())
            }
            amounts => amounts,
        }
    }

    /// Reads the balance of an account in base units of a token. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Felt, token: Felt) -> Result<U256, NodeError> {
        self.number(&[balance_of(token, owner, &json!(LATEST))]).await
    }

    pub(crate) async fn balance_of(&self, owner: &str, token: Option<&Contract>) -> Result<U256, NodeError> {
        let token = token.map_or(Ok(STRK), |token| parse(&token.text, "/token"))?;
        self.balance(parse(owner, "/owner")?, token).await
    }

    /// Reads the number of base units of a token that `spender` may take from `owner`. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn allowance(&self, token: Felt, owner: Felt, spender: Felt) -> Result<U256, NodeError> {
        self.number(&[call(token, read::ALLOWANCE, &[owner, spender], &json!(LATEST))]).await
    }

    async fn number(&self, calls: &[Call]) -> Result<U256, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            caller.rpc(calls, |results| answer(&first(results)?, read::number)).await
        };
        let numbers = agree(self.connection.each(ask).await, self.connection.needed(), |number| *number)?;
        numbers.first().copied().ok_or_else(|| self.not_connected())
    }
}

/// Requires that the maximum fee of a transaction is within the policy.
fn check(bounds: &ResourceBounds, policy: &Policy) -> Result<(), Refusal> {
    let max = U256::from(policy.starknet_fee).saturating_mul(U256::from(POLICY_UNIT));
    let fee = bounds.max_fee(0);
    if fee > max {
        let refusal = Refusal::new(Code::GasLimitTooHigh, "/resource_bounds").with_expected(TypedValue::AtMost(max));
        return Err(refusal.with_actual(fee));
    }
    Ok(())
}
