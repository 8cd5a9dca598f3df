//! The wallet context for signing: a blockhash, fees and balances.

use countersign::json::Node;
use countersign::solana::address::{TOKEN_2022_PROGRAM, TOKEN_PROGRAM, associated_token_account};
use countersign::solana::solana_hash::Hash;
use countersign::solana::{Address, PriorityFee, SelfFunded};
use countersign::{Code, Contract, Refusal, U256};
use countersign_client::Transport;
use serde_json::json;

use super::account::{self, Account, Accounts};
use super::{CONFIRMED, FINALIZED, SolanaChain, base58, nth, parse};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::quorum::agree;

/// The maximum number of slots whose fees are read. Nodes keep this many.
const MAX_SLOTS: usize = 150;
/// The maximum number of accounts that nodes accept in a request for recent fees.
const MAX_WRITTEN: usize = 128;

/// The newest blockhash of an endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct LatestBlockhash {
    pub(super) blockhash: Hash,
    pub(super) last_valid_block_height: u64,
}

impl LatestBlockhash {
    pub(super) fn read(node: &Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let value = members.need("value")?;
        let value = value.object()?;
        let hash = value.need("blockhash")?;
        let blockhash = base58(&hash, 32)?.parse().map_err(|_| hash.refuse(Code::BlockhashMalformed))?;
        Ok(Self { blockhash, last_valid_block_height: value.need("lastValidBlockHeight")?.integer()? })
    }
}

impl<'n, T: Transport> SolanaChain<'n, T> {
    /// Reads the context for signing the next transaction: a confirmed blockhash, the block height up to which it is valid, and a priority
    /// fee.
    ///
    /// `written` are the accounts that the transaction writes to. For each recent slot, nodes report the lowest price of a compute unit
    /// that was paid to write to them. The context uses the 25th (slow), 50th (normal) or 90th (fast) percentile of these prices. If it is
    /// 0, no fee is set. The limit of the policy is checked when the context is used.
    ///
    /// The first endpoint that answers decides. With a false blockhash, the transaction is not mined.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers.
    pub async fn context(&self, written: &[Address], speed: Speed) -> Result<SelfFunded, NodeError> {
        let written: Vec<_> = written.iter().take(MAX_WRITTEN).map(ToString::to_string).collect();
        let calls = [
            Call::new("getLatestBlockhash", json!([{"commitment": CONFIRMED}])),
            Call::new("getBlockHeight", json!([{"commitment": CONFIRMED}])),
            Call::new("getRecentPrioritizationFees", json!([written])),
        ];
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let read = |results: &[Node<'_, '_>]| {
                let latest = LatestBlockhash::read(nth(results, 0)?)?;
                let height = nth(results, 1)?.integer()?;
                let context = SelfFunded::new().with_blockhash(latest.blockhash).with_block_heights(height, latest.last_valid_block_height);
                Ok(match price(nth(results, 2)?, speed)? {
                    0 => context,
                    price => context.with_priority_fee(PriorityFee::new(price)),
                })
            };
            caller.rpc(&calls, read).await
        };
        self.connection.first(ask).await
    }

    /// Reads the balance of an account in base units of a token, or in lamports of SOL if `mint` is `None`.
    ///
    /// The balance of a token is the sum of the associated token accounts of both token programs. The endpoints must agree on the balance
    /// at their newest finalized slots.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Address, mint: Option<Address>) -> Result<U256, NodeError> {
        let keys: Vec<_> = match mint {
            Some(mint) => [TOKEN_PROGRAM, TOKEN_2022_PROGRAM]
                .into_iter()
                .filter_map(|program| associated_token_account(owner, mint, program))
                .collect(),
            None => vec![owner],
        };
        let has = |account: &Account| match mint {
            Some(mint) => account.token().filter(|token| token.mint == mint && token.owner == owner).map_or(0, |token| token.amount),
            None => account.lamports,
        };
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let read = |results: &[Node<'_, '_>]| {
                let accounts = Accounts::read(nth(results, 0)?, keys.len())?;
                Ok(accounts.all.iter().flatten().map(|account| U256::from(has(account))).fold(U256::ZERO, U256::saturating_add))
            };
            caller.rpc(&[account::get(&keys, FINALIZED, 0)], read).await
        };
        let balances = agree(self.connection.each(ask).await, self.connection.needed(), |balance| *balance)?;
        Ok(balances.first().copied().unwrap_or_default())
    }

    pub(crate) async fn balance_of(&self, owner: &str, token: Option<&Contract>) -> Result<U256, NodeError> {
        let mint = token.map(|token| parse(&token.text, "/token")).transpose()?;
        self.balance(parse(owner, "/owner")?, mint).await
    }
}

/// Returns the price of a compute unit in recent slots, in micro-lamports.
fn price(node: &Node<'_, '_>, speed: Speed) -> Result<u64, Refusal> {
    let percentile = match speed {
        Speed::Slow => 25,
        Speed::Normal => 50,
        Speed::Fast => 90,
    };
    let fees = node.array()?.take(MAX_SLOTS).map(|slot| slot.object()?.need("prioritizationFee")?.integer());
    let mut fees = fees.collect::<Result<Vec<_>, _>>()?;
    fees.sort_unstable();
    let index = fees.len().saturating_mul(percentile) / 100;
    Ok(fees.get(index.min(fees.len().saturating_sub(1))).copied().unwrap_or_default())
}
