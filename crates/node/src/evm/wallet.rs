//! What a wallet needs to sign: nonce and fees, balances and allowances.

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

/// How many blocks the fees are taken from.
const BLOCKS: usize = 5;
/// Shares of the gas, in percent, whose tip is read: what slow, normal and fast transactions paid.
const PERCENTILES: [u8; 3] = [10, 50, 90];
/// Wei of one gwei.
const GWEI: u128 = 1_000_000_000;

impl<'n, T: Transport> EvmChain<'n, T> {
    /// Returns the context in which the next calls of `sender` are signed: the nonce after what is pending, and fees.
    ///
    /// The fee cap is the base fee of the next block with room to rise (1.2, 1.5 or 2 times), and a tip that the 10th, 50th or
    /// 90th percentile of the last five blocks paid. On a chain without EIP-1559 it is the node's gas price (1, 1.1 or 1.3 times).
    /// The endpoints must agree on the nonce. Of their fees the median is taken.
    ///
    /// # Errors
    ///
    /// [`Code::GasPriceTooHigh`] if the fees are above the policy's, and any other [`NodeError`].
    pub async fn calls(&self, sender: Address, speed: Speed, policy: &Policy) -> Result<Calls, NodeError> {
        let (nonce, fees) = self.nonce_and_fees(sender, speed).await?;
        check(fees, policy)?;
        Ok(Calls::new(nonce, fees).with_chain_id(self.chain_id))
    }

    /// Returns the context in which calls are signed again in place of ones that are not mined: the same nonce, and both fees at
    /// least 10 % higher, as nodes require, or what the chain asks for now if that is more.
    ///
    /// The calls themselves must be the same ones: prepare the same order with this context.
    ///
    /// # Errors
    ///
    /// [`Code::GasPriceTooHigh`] if the fees are above the policy's, and any other [`NodeError`].
    pub async fn replacement(&self, sender: Address, calls: &Calls, speed: Speed, policy: &Policy) -> Result<Calls, NodeError> {
        let (_, now) = self.nonce_and_fees(sender, speed).await?;
        let fees = raised(calls.fees, now);
        check(fees, policy)?;
        let mut replacement = calls.clone();
        replacement.fees = fees;
        Ok(replacement)
    }

    /// Returns what an account has of a token, or of the chain's own coin, in base units.
    ///
    /// # Errors
    ///
    /// [`NodeError`].
    pub async fn balance(&self, owner: Address, token: Option<Address>) -> Result<U256, NodeError> {
        self.number(&[balance_of(owner, token, &json!(LATEST))], token.is_some()).await
    }

    pub(crate) async fn balance_of(&self, owner: &str, token: Option<&Contract>) -> Result<U256, NodeError> {
        let token = token.map(|token| parse(&token.text, "/token")).transpose()?;
        self.balance(parse(owner, "/owner")?, token).await
    }

    /// Returns how many base units of a token `spender` may take from `owner`.
    ///
    /// # Errors
    ///
    /// [`NodeError`].
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

/// Asks for what an account has.
pub(super) fn balance_of(owner: Address, token: Option<Address>, block: &Value) -> Call {
    match token {
        Some(token) => call(token, &read::balance_call(owner), block),
        None => Call::new("eth_getBalance", json!([owner, block])),
    }
}

/// Returns the most that one unit of gas may cost, in wei.
pub(super) const fn cap(fees: Fees) -> u128 {
    match fees {
        Fees::Eip1559 { max_fee_per_gas, .. } => max_fee_per_gas,
        Fees::Legacy { gas_price } => gas_price,
        _ => u128::MAX,
    }
}

fn check(fees: Fees, policy: &Policy) -> Result<(), Refusal> {
    let most = u128::from(policy.evm_gas_price).saturating_mul(GWEI);
    let at = match fees {
        Fees::Legacy { .. } => "/gas_price",
        _ => "/max_fee_per_gas",
    };
    if cap(fees) > most {
        let refusal = Refusal::new(Code::GasPriceTooHigh, at).with_expected(TypedValue::AtMost(U256::from(most)));
        return Err(refusal.with_actual(cap(fees)));
    }
    Ok(())
}

/// Multiplies by a number of tenths, rounded up.
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
    // A chain without transactions has no tips to read.
    let mut tips = Vec::new();
    if let Some(rewards) = members.get("reward") {
        for row in rewards.array()?.take(BLOCKS) {
            let row = row.array()?.take(PERCENTILES.len()).map(|tip| price(&tip)).collect::<Result<Vec<_>, _>>()?;
            tips.extend(row.get(column).copied());
        }
    }
    tips.sort_unstable();
    // Nodes relay nothing that pays no tip at all.
    let tip = tips.get(tips.len() / 2).copied().unwrap_or_default().max(1);
    Ok(Fees::Eip1559 { max_fee_per_gas: tenths(base, factor).saturating_add(tip), max_priority_fee_per_gas: tip })
}

/// Returns fees at least 10 % above those of the transaction that is replaced, in its own form.
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

/// Reads two numbers of one endpoint: what an account has of the coin, and a contract's token.
pub(super) fn coin_and_token(results: &[Node<'_, '_>]) -> Result<(U256, Address), Refusal> {
    Ok((first(results)?.hex_number()?, answer(&nth(results, 1)?, read::address)?))
}
