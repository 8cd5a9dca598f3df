//! The wallet context for signing: a reference block, a lifetime, balances, allowances, resources and prices.

use countersign::json::Node;
use countersign::tron::alloy_primitives::U256;
use countersign::tron::{Address, Calls, read};
use countersign::{Code, Contract, Refusal};
use countersign_client::Transport;
use futures_util::future::try_join;
use serde_json::json;

use super::block;
use super::{NEWEST, SOLID, TronChain, account, ask, call, count, parse};
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::quorum::agree;

/// The lifetime of a transaction in milliseconds: enough for a user with a hardware wallet. Nodes accept at most one day.
const LIFETIME: u64 = 3_600_000;
/// The maximum number of chain parameters that are read.
const MAX_PARAMETERS: usize = 1_024;

/// The resources that an account can use for free, and the prices of what exceeds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Resources {
    /// The remaining energy.
    pub(super) energy: u64,
    /// The remaining bytes of bandwidth: those from staked coins or the free ones, whichever are more. A transaction takes all of its
    /// bytes from one of the two.
    pub(super) bandwidth: u64,
    /// The price of one unit of energy, in sun.
    pub(super) energy_price: u64,
    /// The price of one byte, in sun.
    pub(super) bandwidth_price: u64,
}

/// An amount that the endpoints must agree on.
enum Amount {
    /// The TRX balance of an account.
    Coins(Address),
    /// The number that a call of a contract returns.
    Answer(Address, Vec<u8>),
}

impl<'n, T: Transport> TronChain<'n, T> {
    /// Reads the context for signing the next calls: a reference block, and a lifetime of one hour after the time of the newest block.
    ///
    /// The reference is the newest irreversible block, so that no reorganization makes the transactions invalid. The first endpoint that
    /// answers decides, because no node accepts a transaction with a false reference.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers.
    pub async fn calls(&self) -> Result<Calls, NodeError> {
        let chain_id = self.chain_id;
        self.connection
            .first(async |caller| {
                self.identify(caller).await?;
                let (newest, solid) = try_join(self.newest(caller), block::newest(caller, SOLID)).await?;
                let [.., high, low] = solid.number.to_be_bytes();
                let hash = solid.id.get(8..16).and_then(|part| part.try_into().ok()).unwrap_or_default();
                let time = |millis: u64| {
                    i64::try_from(millis)
                        .map_err(|_| caller.malformed(Refusal::new(Code::NumberTooLarge, "/block_header/raw_data/timestamp")))
                };
                let (made, expires) = (time(newest.millis)?, time(newest.millis.saturating_add(LIFETIME))?);
                Ok(Calls::new([high, low], hash, expires, made).with_chain_id(chain_id))
            })
            .await
    }

    /// Reads the balance of an account in base units of a token, or in sun of TRX if `token` is `None`. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Address, token: Option<Address>) -> Result<U256, NodeError> {
        self.number(token.map_or(Amount::Coins(owner), |token| Amount::Answer(token, read::balance_call(owner.bytes())))).await
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
        self.number(Amount::Answer(token, read::allowance_call(owner.bytes(), spender.bytes()))).await
    }

    async fn number(&self, amount: Amount) -> Result<U256, NodeError> {
        let amount = &amount;
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            match amount {
                Amount::Coins(owner) => coins(caller, *owner).await,
                Amount::Answer(contract, data) => call::value(caller, *contract, data, read::number).await,
            }
        };
        let numbers = agree(self.connection.each(ask).await, self.connection.needed(), |number| *number)?;
        Ok(numbers.first().copied().unwrap_or_default())
    }
}

/// Reads the TRX balance of an account, in sun. The balance of an account that does not exist is 0.
pub(super) async fn coins<T: Transport>(caller: Caller<'_, T>, owner: Address) -> Result<U256, NodeError> {
    let read = |node: &Node<'_, '_>| count(node.object()?.get("balance")).map(U256::from);
    ask(caller, &format!("{NEWEST}/getaccount"), account(owner), read).await
}

/// Reads the resources that an account can use, and the chain's prices.
pub(super) async fn resources<T: Transport>(caller: Caller<'_, T>, owner: Address) -> Result<Resources, NodeError> {
    let read_own = |node: &Node<'_, '_>| {
        let members = node.object()?;
        let left = |limit: &'static str, used: &'static str| {
            Ok::<_, Refusal>(count(members.get(limit))?.saturating_sub(count(members.get(used))?))
        };
        let bandwidth = left("freeNetLimit", "freeNetUsed")?.max(left("NetLimit", "NetUsed")?);
        Ok((left("EnergyLimit", "EnergyUsed")?, bandwidth))
    };
    let read_prices = |node: &Node<'_, '_>| {
        let list = node.object()?.need("chainParameter")?;
        let (mut energy, mut bandwidth) = (None, None);
        for parameter in list.array()?.take(MAX_PARAMETERS) {
            let members = parameter.object()?;
            match members.need("key")?.text()? {
                "getEnergyFee" => energy = Some(count(members.get("value"))?),
                "getTransactionFee" => bandwidth = Some(count(members.get("value"))?),
                _ => {}
            }
        }
        energy.zip(bandwidth).ok_or_else(|| list.refuse(Code::MissingField).with_expected("getEnergyFee and getTransactionFee"))
    };
    let ((energy, bandwidth), (energy_price, bandwidth_price)) = try_join(
        ask(caller, "/wallet/getaccountresource", account(owner), read_own),
        ask(caller, "/wallet/getchainparameters", json!({}), read_prices),
    )
    .await?;
    Ok(Resources { energy, bandwidth, energy_price, bandwidth_price })
}
