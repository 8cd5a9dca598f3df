//! Whether a payout will arrive: what the mint, the receiver and the account that pays the fee show.

use countersign_core::chains::Network;
use countersign_core::reader::{Agree, Ask, Fault, Identity, Judged, Known, Question, Replies, Request, check_balance};
use countersign_core::{Asset, Code, Refusal, U256};

use super::account::{self, Account, Accounts, Rents};
use super::{FINALIZED, identity};
use crate::address::token_program;
use crate::address::{self, Address, associated_token_account};
use crate::htlc::Token;
use crate::read;

/// Who is paid, in what, and what is asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutQuery {
    network: Network,
    token: Option<Token>,
    /// The decimals of the registry.
    decimals: u8,
    asked: PayoutAsked,
}

/// What is asked about a payout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayoutAsked {
    /// Whether the mint has the decimals of the registry.
    Decimals,
    /// Whether the mint lets the whole amount be paid out.
    Mint,
    /// Whether an account takes the payout.
    Receiver {
        /// The account.
        to: Address,
        /// The payout in base units; `None` if it is not known yet.
        amount: Option<u64>,
    },
    /// Whether an account can pay for a redemption.
    Payer {
        /// The account that pays the fee.
        account: Address,
        /// The account that is paid, whose token account may have to be created.
        to: Address,
        /// The highest fee of the redemption, in lamports: see [`recover::max_fee`](crate::recover::max_fee).
        fee: u64,
    },
}

/// What was found; the powers of a mint's authorities, for a question about the mint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PayoutFacts {
    /// What others may do to the tokens.
    pub powers: Vec<&'static str>,
}

impl Agree for PayoutFacts {
    type Key = Self;

    fn key(&self) -> Self {
        self.clone()
    }
}

/// Reads whether a payout will arrive. A refusal has the code [`Code::DecimalsDiffer`], [`Code::MintRestricts`],
/// [`Code::ReceiverNotPayable`] or [`Code::InsufficientFunds`].
pub type PayoutCheck = Ask<PayoutQuery>;

impl PayoutQuery {
    /// Creates the query for a pinned asset.
    ///
    /// # Errors
    ///
    /// [`Code::AddressMalformed`] if the asset's mint is not an address.
    pub fn new(network: &Network, asset: &Asset, asked: PayoutAsked) -> Result<Self, Refusal> {
        let mint = asset.token.as_ref().map(|token| address::parse(&token.text).map_err(|error| Refusal::new(error, "/token")));
        let token = mint.transpose()?.map(|mint| Token::new(mint, token_program(asset)));
        Ok(Self { network: network.clone(), token, decimals: asset.record.decimals, asked })
    }

    fn token_account(&self, owner: Address) -> Option<Address> {
        self.token.and_then(|token| associated_token_account(owner, token.mint, token.program))
    }

    fn keys(&self) -> Vec<Address> {
        match self.asked {
            PayoutAsked::Decimals | PayoutAsked::Mint => self.token.map(|token| token.mint).into_iter().collect(),
            PayoutAsked::Receiver { to, .. } => vec![self.token_account(to).unwrap_or(to)],
            PayoutAsked::Payer { account, to, .. } => {
                let mint = self.token.map(|token| token.mint);
                [account].into_iter().chain(self.token_account(to)).chain(mint).collect()
            }
        }
    }

    fn judge(&self, accounts: &Accounts, rents: Rents) -> Result<PayoutFacts, Refusal> {
        let empty = rents.empty;
        let refuse = |code: Code, at: &'static str, reason: String| Err(Refusal::new(code, at).with_reason(reason));
        let Some(token) = self.token else {
            return match self.asked {
                PayoutAsked::Decimals | PayoutAsked::Mint => Ok(PayoutFacts::default()),
                PayoutAsked::Receiver { amount, .. } => {
                    let has = accounts.get(0).map_or(0, |account| account.lamports);
                    match amount.map(|amount| has.saturating_add(amount)) {
                        Some(after) if after < empty => refuse(
                            Code::ReceiverNotPayable,
                            "/destination",
                            format!("the receiver would have {after} lamports, and an account needs at least {empty}"),
                        ),
                        _ => Ok(PayoutFacts::default()),
                    }
                }
                PayoutAsked::Payer { fee, .. } => check_payer(accounts, empty, fee),
            };
        };
        match self.asked {
            PayoutAsked::Decimals | PayoutAsked::Mint => {
                let account = accounts.get(0).filter(|account| account.owner == token.program);
                let Some(account) = account else {
                    return refuse(Code::MintRestricts, "/token", "the pinned token program has no such mint".to_owned());
                };
                let mint = match read::mint(account.owner, &account.data) {
                    Ok(mint) => mint,
                    Err(why) => return refuse(Code::MintRestricts, "/token", why.to_string()),
                };
                if self.asked == PayoutAsked::Decimals {
                    let refusal = || Refusal::new(Code::DecimalsDiffer, "/token").with_expected(u64::from(self.decimals));
                    let is_pinned = mint.decimals == self.decimals;
                    return if is_pinned { Ok(PayoutFacts::default()) } else { Err(refusal().with_actual(u64::from(mint.decimals))) };
                }
                match mint.restrictions.as_slice() {
                    [] => Ok(PayoutFacts { powers: mint.powers }),
                    restrictions => refuse(Code::MintRestricts, "/token", format!("the mint {}", restrictions.join(", and "))),
                }
            }
            PayoutAsked::Receiver { to, .. } => match accounts.used(0) {
                Some(account) => check_token_account(account, to, token).map(|()| PayoutFacts::default()),
                // The redemption creates it.
                None => Ok(PayoutFacts::default()),
            },
            PayoutAsked::Payer { fee, .. } => {
                let rent = if accounts.used(1).is_some() { 0 } else { rents.of(accounts.new_token_account(2)) };
                check_payer(accounts, empty, fee.saturating_add(rent))
            }
        }
    }
}

/// Requires that the payer has what the redemption takes, and the rent of its own account.
fn check_payer(accounts: &Accounts, empty: u64, takes: u64) -> Result<PayoutFacts, Refusal> {
    let has = accounts.get(0).map_or(0, |account| account.lamports);
    let needed = takes.saturating_add(empty);
    check_balance("/balance", "SOL for the fee and rent of a redemption", U256::from(needed), U256::from(has))?;
    Ok(PayoutFacts::default())
}

fn check_token_account(account: &Account, to: Address, token: Token) -> Result<(), Refusal> {
    let refuse = |reason: &'static str| Err(Refusal::new(Code::ReceiverNotPayable, "/destination").with_reason(reason));
    match account.token().filter(|found| found.owner == to && found.mint == token.mint) {
        None => refuse("the token account that receives the payment does not belong to the payee, or is for another token"),
        Some(found) if found.is_frozen => refuse("the token account that receives the payment is frozen"),
        Some(_) if read::requires_memo(&account.data).unwrap_or(true) => {
            refuse("the token account that receives the payment takes only transfers with a memo")
        }
        Some(_) => Ok(()),
    }
}

impl Question for PayoutQuery {
    type Output = Judged<PayoutFacts>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        [account::get(&self.keys(), FINALIZED, 0)].into_iter().chain(account::get_rents()).collect()
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<PayoutFacts>, Fault> {
        let accounts = Accounts::read(&replies.json(0)?, self.keys().len())?;
        Ok(Judged(self.judge(&accounts, Rents::read(replies, 1)?)))
    }
}
