//! What a token shows about its decimals, and about the accounts between which an HTLC pays.

use countersign_core::reader::{Ask, Fault, Identity, Judged, Known, Question, Replies, Request, check_balance};
use countersign_core::{Code, Refusal, U256};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::block::LATEST;
use super::{MAX_ANSWER, balance_of, call, check_version, felts, spec_version, unless_of_contract};
use crate::read;

/// The questions of tokens that can be paused, and of those that can freeze an account, which is their argument. They have no common
/// standard, and a token that answers none of them shows nothing.
const PAUSES: [Felt; 2] = [read::IS_PAUSED, read::PAUSED];
const FREEZES: [Felt; 2] = [read::IS_BLACKLISTED, read::IS_FROZEN];

/// A token, and what is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct TokenQuery {
    /// The chain id.
    pub chain_id: Felt,
    /// The token.
    pub token: Felt,
    /// What is asked.
    pub asked: TokenAsked,
}

/// What is asked of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenAsked {
    /// Whether it has these decimals.
    Decimals(u8),
    /// Whether it says that the HTLC cannot pay the receiver. A call has no sender here, so a transfer by the HTLC cannot be tried.
    Payment {
        /// The HTLC, which pays.
        htlc: Felt,
        /// Who is paid.
        receiver: Felt,
    },
    /// Whether an account has at least an amount.
    Balance(Felt, U256),
}

/// Asks a token. A refusal has the code [`Code::DecimalsDiffer`], [`Code::ReceiverNotPayable`] or [`Code::InsufficientFunds`].
pub type TokenCheck = Ask<TokenQuery>;

/// Returns the questions whether a payment between two accounts is blocked, and what a yes means.
fn blocks(htlc: Felt, receiver: Felt) -> impl Iterator<Item = (Felt, Option<Felt>, &'static str)> {
    let frozen = [(receiver, "the token has frozen the receiver"), (htlc, "the token has frozen the HTLC, which could not pay")];
    let of_account = move |(account, reason)| FREEZES.map(|selector| (selector, Some(account), reason));
    PAUSES.into_iter().map(|selector| (selector, None, "the token is paused")).chain(frozen.into_iter().flat_map(of_account))
}

impl Question for TokenQuery {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        let latest = json!(LATEST);
        let mut requests = vec![spec_version()];
        match self.asked {
            TokenAsked::Decimals(_) => requests.push(call(self.token, read::DECIMALS, &[], &latest)),
            TokenAsked::Balance(owner, _) => requests.push(balance_of(self.token, owner, &latest)),
            TokenAsked::Payment { htlc, receiver } => requests
                .extend(blocks(htlc, receiver).map(|(selector, account, _)| call(self.token, selector, account.as_slice(), &latest))),
        }
        requests
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        check_version(&replies.get(0)?)?;
        // What the contract returns; `None` if it does not have the function. Any other error is a fault.
        let returned = |index: usize| match unless_of_contract(&replies.get(index)?)? {
            Some(cursor) => felts(&cursor, MAX_ANSWER).map(Some).map_err(Fault::from),
            None => Ok(None),
        };
        Ok(Judged(match self.asked {
            TokenAsked::Decimals(pinned) => {
                let refusal = || Refusal::new(Code::DecimalsDiffer, "/token").with_expected(u64::from(pinned));
                match returned(1)?.as_deref() {
                    Some([shown]) if *shown == Felt::from(pinned) => Ok(()),
                    Some([shown]) => Err(refusal().with_actual(shown.to_string())),
                    _ => Err(refusal().with_reason("the token does not show its decimals")),
                }
            }
            TokenAsked::Balance(_, needed) => {
                let has = super::answer(&replies.json(1)?, read::number)?;
                check_balance("/balance", "STRK for the fee of a redemption", needed, has)
            }
            TokenAsked::Payment { htlc, receiver } => {
                let mut blocked = None;
                for (index, (_, _, reason)) in (1..).zip(blocks(htlc, receiver)) {
                    if returned(index)?.as_deref() == Some(&[Felt::ONE]) {
                        blocked = blocked.or(Some(reason));
                    }
                }
                match blocked {
                    Some(reason) => Err(Refusal::new(Code::ReceiverNotPayable, "/destination").with_reason(reason)),
                    None => Ok(()),
                }
            }
        }))
    }
}
