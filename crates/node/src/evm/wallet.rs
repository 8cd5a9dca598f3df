//! The wallet context for signing: nonce, fees, balances and allowances.

use countersign::evm::alloy_primitives::{Address, U256};
use countersign::evm::{Calls, Fees, read};
use countersign::json::Node;
use countersign::{Code, Contract, Policy, Refusal, TypedValue};
use countersign_client::Transport;
use serde_json::{Value, json};

use super::block::{self, Block, LATEST};
use super::prepare::parse;
use super::{EvmChain, answer, call, first, nth, price, quantity};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::quorum::agree;

/// The number of recent blocks whose fees are read.
const BLOCKS: usize = 5;
/// The percentiles of the tips in a block, by gas used, for slow, normal and fast transactions.
const PERCENTILES: [u8; 3] = [10, 50, 90];
/// Wei per gwei.
const GWEI: u128 = 1_000_000_000;

impl<'n, T: Transport> EvmChain<'n, T> {
    /// Reads the context for signing the next calls of `sender`: the nonce after its pending transactions, and the fees.
    ///
    /// | speed | fee cap | tip: median over the last five blocks of the | gas price without EIP-1559 |
    /// |---|---|---|---|
    /// | slow | 1.2 × base fee + tip | 10th percentile | 1 × the node's |
    /// | normal | 1.5 × base fee + tip | 50th percentile | 1.1 × the node's |
    /// | fast | 2 × base fee + tip | 90th percentile | 1.3 × the node's |
    ///
    /// The base fee is that of the next block. The tip is at least 1 wei. The endpoints must agree on the nonce. Of their fees, the median
    /// is used.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::GasPriceTooHigh`] if the fees exceed the policy, and another [`NodeError`] if no
    /// endpoint answers or too few of them agree on the nonce.
    pub async fn calls(&self, sender: Address, speed: Speed, policy: &Policy) -> Result<Calls, NodeError> {
        let (nonce, fees) = self.nonce_and_fees(sender, speed).await?;
        check(fees, policy)?;
        Ok(Calls::new(nonce, fees).with_chain_id(self.chain_id))
    }

    /// Reads the context for signing calls that replace unmined ones. It has the same nonce. The fee cap and the tip are at least 10 %
    /// higher, as nodes require, and at least the current fees of the chain.
    ///
    /// The calls themselves must not change: prepare the same order with this context.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`EvmChain::calls`].
    pub async fn replacement(&self, sender: Address, calls: &Calls, speed: Speed, policy: &Policy) -> Result<Calls, NodeError> {
        let (_, now) = self.nonce_and_fees(sender, speed).await?;
        let fees = raised(calls.fees, now);
        check(fees, policy)?;
        let mut replacement = calls.clone();
        replacement.fees = fees;
        Ok(replacement)
    }

    /// Reads the balance of an account in base units of a token, or in wei of the chain's own coin if `token` is `None`. The endpoints
    /// must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Address, token: Option<Address>) -> Result<U256, NodeError> {
        self.number(&[balance_of(owner, token, &json!(LATEST))], token.is_some()).await
    }

    pub(crate) async fn balance_of(&self, owner: &str, token: Option<&Contract>) -> Result<U256, NodeError> {
        let token = token.map(|token| parse(&token.text, "/token")).transpose()?;
        self.balance(parse(owner, "/owner")?, token).await
    }

    /// Reads the number of base units of a token that `spender` may take from `owner`. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn allowance(&self, token: Address, owner: Address, spender: Address) -> Result<U256, NodeError> {
        self.number(&[call(token, &read::allowance_call(owner, spender), &json!(LATEST))], true).await
    }

    async fn number(&self, calls: &[Call], is_answer: bool) -> Result<U256, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let read = |node: &Node<'_, '_>| if is_answer { answer(node, read::number) } else { node.hex_number() };
            caller.rpc(calls, |results| read(&first(results)?)).await
        };
        let numbers = agree(self.connection.each(ask).await, self.connection.needed(), |number| *number)?;
        Ok(numbers.first().copied().unwrap_or_default())
    }

    async fn nonce_and_fees(&self, sender: Address, speed: Speed) -> Result<(u64, Fees), NodeError> {
        let calls = [
            Call::new("eth_getTransactionCount", json!([sender, "pending"])),
            block::by_tag(LATEST),
            Call::new("eth_feeHistory", json!([format!("{BLOCKS:#x}"), LATEST, PERCENTILES])),
            Call::new("eth_gasPrice", json!([])),
        ];
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let (nonce, block, fees) = caller
                .rpc_each(&calls, |outcomes| {
                    let Ok([nonce, block, history, gas_price]) = <[_; 4]>::try_from(outcomes) else {
                        return Err(caller.malformed(Refusal::new(Code::MissingField, "/result")));
                    };
                    let malformed = |refusal| caller.malformed(refusal);
                    let block = Block::read(&block?).map_err(malformed)?;
                    let fees = match block.as_ref().and_then(|block| block.base_fee) {
                        Some(_) => eip1559(&history?, speed).map_err(malformed)?,
                        None => legacy(price(&gas_price?).map_err(malformed)?, speed),
                    };
                    Ok((quantity(&nonce?).map_err(malformed)?, block, fees))
                })
                .await??;
            self.latest(caller, block)?;
            Ok((nonce, fees))
        };
        let agreed = agree(self.connection.each(ask).await, self.connection.needed(), |(nonce, _)| *nonce)?;
        let nonce = agreed.first().map(|(nonce, _)| *nonce).unwrap_or_default();
        let mut fees: Vec<_> = agreed.into_iter().map(|(_, fees)| fees).collect();
        fees.sort_by_key(|fees| cap(*fees));
        let median = fees.get(fees.len() / 2).copied();
        let fees = median.ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))?;
        Ok((nonce, fees))
    }
}

/// Creates the call that reads the balance of an account.
pub(super) fn balance_of(owner: Address, token: Option<Address>, block: &Value) -> Call {
    match token {
        Some(token) => call(token, &read::balance_call(owner), block),
        None => Call::new("eth_getBalance", json!([owner, block])),
    }
}

/// Returns the maximum price of one unit of gas, in wei.
pub(super) const fn cap(fees: Fees) -> u128 {
    match fees {
        Fees::Eip1559 { max_fee_per_gas, .. } => max_fee_per_gas,
        Fees::Legacy { gas_price } => gas_price,
        _ => u128::MAX,
    }
}

fn check(fees: Fees, policy: &Policy) -> Result<(), Refusal> {
    let max = u128::from(policy.evm_gas_price).saturating_mul(GWEI);
    let at = match fees {
        Fees::Legacy { .. } => "/gas_price",
        _ => "/max_fee_per_gas",
    };
    if cap(fees) > max {
        let refusal = Refusal::new(Code::GasPriceTooHigh, at).with_expected(TypedValue::AtMost(U256::from(max)));
        return Err(refusal.with_actual(cap(fees)));
    }
    Ok(())
}

/// Multiplies a price by a number of tenths, rounded up.
fn tenths(price: u128, tenths: u128) -> u128 {
    price.saturating_mul(tenths).div_ceil(10)
}

fn legacy(gas_price: u128, speed: Speed) -> Fees {
    let factor = match speed {
        Speed::Slow => 10,
        Speed::Normal => 11,
        Speed::Fast => 13,
    };
    Fees::Legacy { gas_price: tenths(gas_price, factor) }
}

fn eip1559(history: &Node<'_, '_>, speed: Speed) -> Result<Fees, Refusal> {
    let (column, factor) = match speed {
        Speed::Slow => (0, 12),
        Speed::Normal => (1, 15),
        Speed::Fast => (2, 20),
    };
    let members = history.object()?;
    let base = members.need("baseFeePerGas")?;
    let base = base.array()?.take(BLOCKS.saturating_add(1)).last();
    let base = base.map(|fee| price(&fee)).transpose()?.ok_or_else(|| history.at().key("baseFeePerGas").refuse(Code::MissingField))?;
    // On an idle chain there are no tips to read.
    let mut tips = Vec::new();
    if let Some(rewards) = members.get("reward") {
        for row in rewards.array()?.take(BLOCKS) {
            let row = row.array()?.take(PERCENTILES.len()).map(|tip| price(&tip)).collect::<Result<Vec<_>, _>>()?;
            tips.extend(row.get(column).copied());
        }
    }
    tips.sort_unstable();
    // Nodes do not relay a transaction without a tip.
    let tip = tips.get(tips.len() / 2).copied().unwrap_or_default().max(1);
    Ok(Fees::Eip1559 { max_fee_per_gas: tenths(base, factor).saturating_add(tip), max_priority_fee_per_gas: tip })
}

/// Returns fees at least 10 % above those of the transaction to replace, of the same fee type.
fn raised(before: Fees, now: Fees) -> Fees {
    let tip = match now {
        Fees::Eip1559 { max_priority_fee_per_gas, .. } => max_priority_fee_per_gas,
        _ => 0,
    };
    let raise = |price: u128| tenths(price, 11);
    match before {
        Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas } => {
            let max_priority_fee_per_gas = raise(max_priority_fee_per_gas).max(tip);
            let max_fee_per_gas = raise(max_fee_per_gas).max(cap(now)).max(max_priority_fee_per_gas);
            Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas }
        }
        Fees::Legacy { gas_price } => Fees::Legacy { gas_price: raise(gas_price).max(cap(now)) },
        other => other,
    }
}

/// Reads two results: the balance of the coin, and the token of a contract.
pub(super) fn coin_and_token(results: &[Node<'_, '_>]) -> Result<(U256, Address), Refusal> {
    Ok((first(results)?.hex_number()?, answer(&nth(results, 1)?, read::address)?))
}
