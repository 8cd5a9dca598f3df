//! What a wallet needs for signing: nonce and fees.

use alloy_primitives::Address;
use countersign_core::reader::{Agree, Ask, Fault, Identity, Known, Question, Replies, Request};
use countersign_core::{BlockHeight, Code, Refusal};
use serde_json::json;

use super::block::{self, LATEST};
use super::fees::{self, Prices};
use super::{OnChain, price, quantity};

/// The nonces of an account, and the fees of the chain.
///
/// Endpoints must agree on the nonce after the mined transactions. Pending ones are known to some endpoints only: see [`pending_nonce`].
/// What is paid follows from the prices of all endpoints, each price for itself: see [`fees::levels`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NonceAndFees {
    /// The nonce of the next transaction, after those that are pending.
    pub nonce: u64,
    /// The nonce after the mined transactions. If it is lower than `nonce`, the next transaction waits for those between.
    pub mined_nonce: u64,
    /// The prices.
    pub prices: Prices,
    /// The height of the newest block.
    pub height: BlockHeight,
}

impl Agree for NonceAndFees {
    type Key = u64;

    fn key(&self) -> u64 {
        self.mined_nonce
    }
}

/// Returns the nonce after the pending transactions, if at least `needed` endpoints show the same one.
///
/// With a lower one, a transaction would replace another one of the account; with a higher one, it would wait for one that nobody signed.
#[must_use]
pub fn pending_nonce(shown: &[NonceAndFees], needed: usize) -> Option<u64> {
    let count = |nonce: u64| shown.iter().filter(|one| one.nonce == nonce).count();
    shown.iter().map(|one| one.nonce).find(|nonce| count(*nonce) >= needed)
}

/// Reads the nonces of an account, the fees of the last blocks, and the prices that the node asks for.
pub type Context = Ask<OnChain<Address>>;

impl Question for OnChain<Address> {
    type Output = NonceAndFees;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        let nonce = |tag| Request::json_rpc("eth_getTransactionCount", json!([self.subject, tag]));
        vec![
            nonce("pending"),
            nonce(LATEST),
            block::by_tag(LATEST),
            Request::json_rpc("eth_feeHistory", json!([format!("{:#x}", fees::BLOCKS), LATEST, fees::PERCENTILES])),
            Request::json_rpc("eth_gasPrice", "[]"),
            Request::json_rpc("eth_maxPriorityFeePerGas", "[]"),
        ]
    }

    fn read(&self, replies: &Replies<'_>, known: &Known) -> Result<NonceAndFees, Fault> {
        let block = block::latest(replies, 2, self.chain_id, known)?;
        // A chain without a base fee has no history of fees.
        let mut prices = match block.base_fee {
            Some(_) => Prices::from_history(&replies.json(3)?)?,
            None => Prices::default(),
        };
        // Nodes of chains with a base fee need not have both of these methods.
        let asked = |index| match replies.get(index)?.json_or_error()? {
            Ok(cursor) => Ok::<_, Fault>(Some(price(&cursor)?)),
            Err(error) if error.is_unknown_method() => Ok(None),
            Err(error) => Err(Fault::Rpc(error.clone())),
        };
        let (gas_price, asked_tip) = (asked(4)?, asked(5)?);
        // Where nothing is paid to the chain, only nodes say what a transaction costs. One that says nothing does not ask for nothing.
        let is_priced = match prices.base_fee {
            None => gas_price.is_some(),
            Some(0) => gas_price.or(asked_tip).is_some(),
            Some(_) => true,
        };
        if !is_priced {
            return Err(replies.get(4)?.fault());
        }
        prices.gas_price = gas_price.unwrap_or_default();
        prices.asked_tip = asked_tip.unwrap_or_else(|| prices.gas_price.saturating_sub(block.base_fee.unwrap_or_default()));
        let (nonce, mined_nonce) = (quantity(&replies.json(0)?)?, quantity(&replies.json(1)?)?);
        if mined_nonce > nonce {
            return Err(Refusal::new(Code::WrongType, "/result").with_reason("the pending nonce is below the mined one").into());
        }
        Ok(NonceAndFees { nonce, mined_nonce, prices, height: block.number.into() })
    }

    fn height(output: &NonceAndFees) -> BlockHeight {
        output.height
    }
}
