//! What a wallet needs for signing: nonce and fees.

use alloy_primitives::Address;
use countersign_core::reader::{Agree, Ask, Fault, Identity, Known, Question, Replies, Request};
use countersign_core::{BlockHeight, Code, Refusal};
use serde_json::json;

use super::block::{self, LATEST};
use super::fees::{self, FeeLevels};
use super::{OnChain, price, quantity};

/// The nonces of an account, and the fees of the chain.
///
/// Endpoints must agree on the nonce after the mined transactions. Pending ones are known to some endpoints only: see [`pending_nonce`].
/// Of the fees the [median](fees::median) is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NonceAndFees {
    /// The nonce of the next transaction, after those that are pending.
    pub nonce: u64,
    /// The nonce after the mined transactions. If it is lower than `nonce`, the next transaction waits for those between.
    pub mined_nonce: u64,
    /// The fees.
    pub fees: FeeLevels,
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

/// Reads the nonces of an account, and the fees of the last blocks.
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
        ]
    }

    fn read(&self, replies: &Replies<'_>, known: &Known) -> Result<NonceAndFees, Fault> {
        let block = block::latest(replies, 2, known)?;
        // A chain without a base fee has no history of fees.
        let fees = match block.base_fee {
            Some(_) => FeeLevels::from_history(&replies.json(3)?)?,
            None => FeeLevels::from_gas_price(price(&replies.json(4)?)?),
        };
        let (nonce, mined_nonce) = (quantity(&replies.json(0)?)?, quantity(&replies.json(1)?)?);
        if mined_nonce > nonce {
            return Err(Refusal::new(Code::WrongType, "/result").with_reason("the pending nonce is below the mined one").into());
        }
        Ok(NonceAndFees { nonce, mined_nonce, fees, height: block.number.into() })
    }

    fn height(output: &NonceAndFees) -> BlockHeight {
        output.height
    }
}
