//! The preflight: checks funds, and simulates the transaction, before anything is signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::Network;
use countersign_core::json::Cursor;
use countersign_core::reader::{Agree, Ask, Fault, Identity, Judged, Known, Question, Replies, Request, check_balance};
use countersign_core::report::text::escape_untrusted;
use countersign_core::{Code, Refusal, Role, TypedValue, U256};

use super::account::{self, Account, Accounts, Rents};
use super::{FINALIZED, MAX_STEP_BACK, identity};
use crate::UnsignedOrder;
use crate::address::Address;
use crate::deposit::Deposit;
use crate::htlc::{Htlc, Initiate};
use crate::read;
use crate::transaction::TransactionPayload;

/// The maximum number of log lines of a simulation that are read.
const MAX_LOGS: usize = 512;

/// The result of a preflight that found nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// The signer's balance, in lamports.
    pub balance: u64,
    /// The maximum that the transaction can spend of it, in lamports: the locked amount, rent and fees.
    pub cost: u64,
    /// The compute units that the simulation used; `None` if nothing was simulated.
    pub units: Option<u64>,
}

impl Agree for Preflight {
    type Key = ();

    /// Endpoints at different heights may see another balance. What counts is that each of them found nothing wrong.
    fn key(&self) {}
}

/// What a transaction must do. It does not contain a redemption, because nobody may see the secret before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreflightQuery {
    network: Network,
    signer: Address,
    role: Role,
    /// The transaction in base64; `None` for a redemption, which is not simulated.
    simulated: Option<String>,
    funding: Option<Funding>,
    /// Whether the signer pays fees and rent.
    pays_fees: bool,
    /// The maximum fee in lamports.
    max_fee: u64,
    /// The length in bytes of the account that the transaction creates at the signer's expense.
    new_account: Option<usize>,
}

/// What a deposit must lock, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Funding {
    htlc: Htlc,
    owner: Address,
    terms: Initiate,
    swap_account: Address,
    /// The owner's token account, and the vault.
    token_accounts: Option<[Address; 2]>,
}

impl Funding {
    fn new(deposit: &Deposit) -> Self {
        let accounts = &deposit.transaction.accounts;
        Self {
            htlc: deposit.htlc,
            owner: deposit.owner,
            terms: deposit.terms.clone(),
            swap_account: deposit.swap_account,
            token_accounts: accounts.token_account.zip(accounts.vault).map(<[Address; 2]>::from),
        }
    }
}

impl PreflightQuery {
    /// Creates the query for an order.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] if the order has no transaction.
    pub fn new(network: &Network, order: &UnsignedOrder) -> Result<Self, Refusal> {
        let payloads = order.payloads();
        let deposit = order.verified().map(|order| order.deposit());
        let (payload, pays_fees) = match (&payloads.transaction, &payloads.gasless) {
            (Some(payload), _) => (payload, true),
            (None, Some(payload)) => (payload, false),
            (None, None) => return Err(Refusal::new(Code::NothingToSign, "")),
        };
        let mut query = Self::of(network, payload, payloads.signer, payloads.role);
        query.funding = deposit.map(Funding::new);
        query.pays_fees = pays_fees;
        query.new_account = deposit.filter(|_| pays_fees).map(|deposit| deposit.htlc.swap_account_length());
        Ok(query)
    }

    /// Creates the query for a redemption or a refund.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] if the order has no transaction.
    pub fn for_recovery(network: &Network, order: &UnsignedOrder) -> Result<Self, Refusal> {
        let payloads = order.payloads();
        let payload = payloads.transaction.as_ref().ok_or_else(|| Refusal::new(Code::NothingToSign, ""))?;
        Ok(Self::of(network, payload, payloads.signer, payloads.role))
    }

    /// Adds the rent of the account that the transaction creates, from its number of bytes.
    #[must_use]
    pub const fn with_new_account(mut self, length: usize) -> Self {
        self.new_account = Some(length);
        self
    }

    fn of(network: &Network, payload: &TransactionPayload, signer: Address, role: Role) -> Self {
        let simulated = (role != Role::Redeem).then(|| STANDARD.encode(read::transaction_bytes(payload.transaction())));
        let (network, max_fee) = (network.clone(), payload.max_fee());
        Self { network, signer, role, simulated, funding: None, pays_fees: true, max_fee, new_account: None }
    }

    /// Returns the accounts that are compared: the signer, the swap account, and for tokens the signer's token account and the vault.
    fn compared(&self) -> Vec<Address> {
        let swap = self.funding.as_ref().map(|funding| funding.swap_account);
        let tokens = self.funding.as_ref().and_then(|funding| funding.token_accounts);
        [self.signer].into_iter().chain(swap).chain(tokens.into_iter().flatten()).collect()
    }

    /// Returns the accounts that are read: those that are compared, and the mint, which tells the length of the vault.
    fn keys(&self) -> Vec<Address> {
        let mint = self.funding.as_ref().and_then(|funding| funding.htlc.token).map(|token| token.mint);
        self.compared().into_iter().chain(mint).collect()
    }
}

/// The contents of the compared accounts, before or after the transaction.
struct Holdings<'a> {
    lamports: u64,
    swap: Option<&'a Account>,
    tokens: Option<u64>,
    vault: Option<u64>,
}

impl<'a> Holdings<'a> {
    fn new(accounts: &'a Accounts) -> Self {
        let amount = |index| accounts.get(index).and_then(Account::token).map(|token| token.amount);
        Self {
            lamports: accounts.get(0).map_or(0, |account| account.lamports),
            swap: accounts.used(1),
            tokens: amount(2),
            vault: amount(3),
        }
    }
}

/// Checks that the signer has enough SOL for the amount, rent and fees, and enough of the token, and simulates the transaction.
///
/// The simulation must create the swap account with the verified terms, and transfer exactly the verified amount. A redemption is never
/// simulated, because that would show the secret to the node.
///
/// The judgement refuses with
///
/// - [`Code::InsufficientFunds`] if the signer has too little,
/// - [`Code::SimulationReverted`] if the transaction fails, or would fail because of the accounts' state,
/// - [`Code::SimulationDiffers`] if the transaction would do something else than what was verified.
pub type PreflightCheck = Ask<PreflightQuery>;

impl Question for PreflightQuery {
    type Output = Judged<Preflight>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        let mut requests = vec![account::get(&self.keys(), FINALIZED, 0)];
        requests.extend(account::get_rents());
        if let Some(transaction) = &self.simulated {
            let accounts = format!(r#"{{"encoding":"base64","addresses":{}}}"#, account::addresses(&self.compared()));
            let options = format!(r#"{{"encoding":"base64","commitment":"{FINALIZED}","sigVerify":false,"accounts":{accounts}}}"#);
            requests.push(Request::json_rpc("simulateTransaction", format!(r#"["{transaction}",{options}]"#)));
        }
        requests
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<Preflight>, Fault> {
        let accounts = Accounts::read(&replies.json(0)?, self.keys().len())?;
        let rents = Rents::read(replies, 1)?;
        let outcome = match &self.simulated {
            Some(_) => Some(Outcome::read(&replies.json(3)?, self.compared().len())?),
            None => None,
        };
        Ok(Judged(self.judge(&accounts, &rents, outcome.as_ref())))
    }
}

impl PreflightQuery {
    fn judge(&self, accounts: &Accounts, rents: &Rents, outcome: Option<&Outcome>) -> Result<Preflight, Refusal> {
        let before = Holdings::new(accounts);
        let cost = self.check_funds(accounts, &before, rents)?;
        if let Some(outcome) = outcome {
            self.compare(&before, outcome, cost)?;
        }
        Ok(Preflight { balance: before.lamports, cost, units: outcome.and_then(|outcome| outcome.units) })
    }

    /// Requires that the signer has enough for the transaction. Returns the maximum cost in lamports.
    fn check_funds(&self, accounts: &Accounts, before: &Holdings<'_>, rents: &Rents) -> Result<u64, Refusal> {
        let fee = if self.pays_fees { self.max_fee } else { 0 };
        let mut cost = fee.saturating_add(self.new_account.map_or(0, |length| rents.of(length)));
        if let Some(funding) = &self.funding {
            if before.swap.is_some() {
                return Err(self.reverted("the swap account exists already, so this order or another one with the same terms is funded"));
            }
            let amount = funding.terms.amount;
            if funding.htlc.token.is_some() {
                let Some(token) = accounts.used(2).and_then(Account::token) else {
                    let refusal = Refusal::new(Code::InsufficientFunds, "/token").with_expected(TypedValue::AtLeast(U256::from(amount)));
                    return Err(refusal.with_actual(0_u64).with_reason("the owner has no token account for this token"));
                };
                if token.is_frozen {
                    return Err(self.reverted("the owner's token account is frozen"));
                }
                check_balance("/token", "of the token", U256::from(amount), U256::from(token.amount))?;
                // The first swap of a token also creates the vault.
                if self.pays_fees && accounts.used(3).is_none() {
                    cost = cost.saturating_add(rents.of(accounts.new_token_account(4)));
                }
            } else {
                cost = cost.saturating_add(amount);
            }
        }
        let (needed, has) = (U256::from(cost), U256::from(before.lamports));
        check_balance("/balance", "SOL for what is locked, rent and fees", needed, has)?;
        // The remaining balance must be 0, or at least the rent of an account without data.
        if cost > 0 && has != needed {
            let needed = needed.saturating_add(U256::from(rents.empty));
            check_balance("/balance", "SOL to keep the rent of its own account", needed, has)?;
        }
        Ok(cost)
    }

    /// Requires that the simulation does what was verified, and costs the signer no more than `cost`.
    fn compare(&self, before: &Holdings<'_>, outcome: &Outcome, cost: u64) -> Result<(), Refusal> {
        let accounts = outcome.accounts.as_ref().map_err(|reason| self.reverted(reason))?;
        let after = Holdings::new(accounts);
        let differs = |at: &'static str, expected: u64, actual: u64| {
            Err(Refusal::new(Code::SimulationDiffers, at).with_expected(expected).with_actual(actual))
        };
        let spent = before.lamports.saturating_sub(after.lamports);
        if spent > cost {
            return differs("/balance", cost, spent);
        }
        let Some(funding) = &self.funding else { return Ok(()) };
        let (htlc, terms) = (&funding.htlc, &funding.terms);
        let amount = terms.amount;
        let made = after.swap.filter(|swap| swap.owner == htlc.program);
        let stored = made.and_then(|swap| read::swap_account(&swap.data).ok());
        let is_verified = stored.is_some_and(|stored| {
            let parties = (stored.initiator, stored.redeemer) == (funding.owner, terms.redeemer);
            let form = stored.form == htlc.generation.form && stored.is_token == htlc.token.is_some();
            let expiry = accounts.slot.saturating_add(terms.timelock);
            let time = stored.expiry.abs_diff(expiry) <= MAX_STEP_BACK && stored.timelock.is_none_or(|timelock| timelock == terms.timelock);
            parties && form && time && stored.secret_hash == terms.secret_hash && stored.amount == amount
        });
        if !is_verified {
            let refusal = Refusal::new(Code::SimulationDiffers, "/swap_account");
            return Err(refusal.with_reason("the swap account would not hold the verified terms"));
        }
        if htlc.token.is_none() {
            let holds = made.map_or(0, |swap| swap.lamports);
            return if holds < amount { differs("/swap_account", amount, holds) } else { Ok(()) };
        }
        let moved = |from: Option<u64>, to: Option<u64>| from.unwrap_or_default().saturating_sub(to.unwrap_or_default());
        let (paid, held) = (moved(before.tokens, after.tokens), moved(after.vault, before.vault));
        if paid != amount {
            return differs("/token", amount, paid);
        }
        if held != amount { differs("/vault", amount, held) } else { Ok(()) }
    }

    fn reverted(&self, reason: impl Into<String>) -> Refusal {
        Refusal::new(Code::SimulationReverted, format!("/{}", self.role)).with_reason(reason.into())
    }
}

/// How a simulation ended.
struct Outcome {
    units: Option<u64>,
    /// The compared accounts after the transaction, or why it failed.
    accounts: Result<Accounts, String>,
}

impl Outcome {
    fn read(cursor: &Cursor<'_, '_>, count: usize) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let slot = account::slot(&members)?;
        let value = members.need("value")?;
        let value = value.object()?;
        let units = value.get("unitsConsumed").map(|units| units.integer()).transpose()?;
        let accounts = match read::error(&value)? {
            Some(error) => Err(failure(&error, value.get("logs"))?),
            None => Ok(Accounts { slot, all: account::list(&value.need("accounts")?, count)? }),
        };
        Ok(Self { units, accounts })
    }
}

/// Returns why a simulation failed: the name of the error, or the log line that describes it.
fn failure(error: &Cursor<'_, '_>, logs: Option<Cursor<'_, '_>>) -> Result<String, Refusal> {
    if let Ok(name) = error.text() {
        return Ok(match name {
            "BlockhashNotFound" => "the blockhash is unknown or no longer valid".to_owned(),
            name => escape_untrusted(name),
        });
    }
    let Some(logs) = logs else { return Ok("no reason given".to_owned()) };
    let lines = logs.array()?.take(MAX_LOGS).map(|line| line.text()).collect::<Result<Vec<_>, _>>()?;
    let describes = |line: &&str| ["Error", "failed", "insufficient"].iter().any(|word| line.contains(word));
    Ok(lines.into_iter().find(describes).map_or_else(|| "no reason given".to_owned(), escape_untrusted))
}
