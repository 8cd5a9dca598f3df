//! The preflight: checks funds, and simulates the transaction, before anything is signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::Network;
use countersign_core::json::{Members, Node};
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};
use countersign_core::report::text::escape_untrusted;
use countersign_core::{Code, Refusal, Role, TypedValue, U256};

use super::account::{self, Account, Accounts};
use super::{CONFIRMED, Judgement, MAX_STEP_BACK, identity};
use crate::UnsignedOrder;
use crate::address::Address;
use crate::allowed::AllowedInstruction;
use crate::htlc::{Htlc, Initiate};
use crate::read;
use crate::transaction::TransactionPayload;
use crate::verify::Deposit;

/// The length of a token account in bytes.
const TOKEN_ACCOUNT: usize = 165;
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
    /// The lengths in bytes of the accounts that the transaction creates at the signer's expense.
    new_accounts: Vec<usize>,
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
    creates_token_account: bool,
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
            creates_token_account: deposit.transaction.allowed().any(|allowed| *allowed == AllowedInstruction::CreateTokenAccount),
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
        let new_accounts = deposit.filter(|_| pays_fees).map(|deposit| deposit.htlc.swap_account_length());
        let mut query = Self::of(network, payload, payloads.signer, payloads.role);
        query.funding = deposit.map(Funding::new);
        query.pays_fees = pays_fees;
        query.new_accounts = new_accounts.into_iter().collect();
        Ok(query)
    }

    /// Creates the query for a redemption or a refund, which may create a token account.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] if the order has no transaction.
    pub fn for_recovery(network: &Network, order: &UnsignedOrder, creates_token_account: bool) -> Result<Self, Refusal> {
        let payloads = order.payloads();
        let payload = payloads.transaction.as_ref().ok_or_else(|| Refusal::new(Code::NothingToSign, ""))?;
        let mut query = Self::of(network, payload, payloads.signer, payloads.role);
        query.new_accounts = creates_token_account.then_some(TOKEN_ACCOUNT).into_iter().collect();
        Ok(query)
    }

    fn of(network: &Network, payload: &TransactionPayload, signer: Address, role: Role) -> Self {
        let simulated = (role != Role::Redeem).then(|| STANDARD.encode(read::transaction_bytes(payload.transaction())));
        let (network, max_fee) = (network.clone(), payload.max_fee());
        Self { network, signer, role, simulated, funding: None, pays_fees: true, max_fee, new_accounts: Vec::new() }
    }

    /// Returns the accounts that are compared: the signer, the swap account, and for tokens the signer's token account and the vault.
    fn compared(&self) -> Vec<Address> {
        let swap = self.funding.as_ref().map(|funding| funding.swap_account);
        let tokens = self.funding.as_ref().and_then(|funding| funding.token_accounts);
        [self.signer].into_iter().chain(swap).chain(tokens.into_iter().flatten()).collect()
    }
}

/// The contents of the compared accounts, before or after the transaction.
struct Holdings {
    lamports: u64,
    swap: Option<Account>,
    tokens: Option<u64>,
    vault: Option<u64>,
}

impl Holdings {
    fn new(accounts: &[Option<Account>]) -> Self {
        let get = |index: usize| accounts.get(index).and_then(Option::as_ref);
        let amount = |index| get(index).and_then(Account::token).map(|token| token.amount);
        Self {
            lamports: get(0).map(|account| account.lamports).unwrap_or_default(),
            swap: get(1).filter(|account| !account.is_unused()).cloned(),
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
#[derive(Debug)]
pub struct PreflightCheck {
    identity: Identity,
    query: PreflightQuery,
}

impl Machine for PreflightCheck {
    type Subject = PreflightQuery;
    type Output = Judgement<Preflight>;
    const MAX_ROUNDS: usize = 1;

    fn start(query: &PreflightQuery, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let keys = query.compared();
        let rent = |length: usize| Request::json_rpc("getMinimumBalanceForRentExemption", format!("[{length}]"));
        let mut requests = vec![account::get(&keys, CONFIRMED, 0)];
        requests.extend([0, TOKEN_ACCOUNT].into_iter().chain(query.new_accounts.iter().copied()).map(rent));
        if let Some(transaction) = &query.simulated {
            let accounts = format!(r#"{{"encoding":"base64","addresses":{}}}"#, account::addresses(&keys));
            let options = format!(r#"{{"encoding":"base64","commitment":"{CONFIRMED}","sigVerify":false,"accounts":{accounts}}}"#);
            requests.push(Request::json_rpc("simulateTransaction", format!(r#"["{transaction}",{options}]"#)));
        }
        Ok((Self { identity: identity(&query.network)?, query: query.clone() }, requests))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Judgement<Preflight>>, Fault> {
        let query = &self.query;
        let count = query.compared().len();
        let accounts = Accounts::read(&replies.json(0)?, count)?;
        let last_rent = query.new_accounts.len().saturating_add(2);
        let rents = (1..=last_rent).map(|index| Ok(replies.json(index)?.integer()?)).collect::<Result<Vec<_>, Fault>>()?;
        let outcome = match &query.simulated {
            Some(_) => Some(Outcome::read(&replies.json(last_rent.saturating_add(1))?, count)?),
            None => None,
        };
        Ok(Turn::Done(Judgement(query.judge(&accounts, &rents, outcome.as_ref()))))
    }
}

fn insufficient(at: &'static str, reason: impl Into<String>, needed: u64, has: u64) -> Refusal {
    let refusal = Refusal::new(Code::InsufficientFunds, at).with_reason(reason.into());
    refusal.with_expected(TypedValue::AtLeast(U256::from(needed))).with_actual(has)
}

impl PreflightQuery {
    fn judge(&self, accounts: &Accounts, rents: &[u64], outcome: Option<&Outcome>) -> Result<Preflight, Refusal> {
        let before = Holdings::new(&accounts.all);
        let cost = self.check_money(accounts, &before, rents)?;
        if let Some(outcome) = outcome {
            self.compare(&before, outcome, cost)?;
        }
        Ok(Preflight { balance: before.lamports, cost, units: outcome.and_then(|outcome| outcome.units) })
    }

    /// Requires that the signer has enough for the transaction. Returns the maximum cost in lamports. `rents` begins with the rent of an
    /// account without data and that of a token account.
    fn check_money(&self, accounts: &Accounts, before: &Holdings, rents: &[u64]) -> Result<u64, Refusal> {
        let [empty, token_account, new @ ..] = rents else { return Err(Refusal::new(Code::MissingField, "/result")) };
        let mut cost = if self.pays_fees { self.max_fee } else { 0 };
        cost = new.iter().copied().fold(cost, u64::saturating_add);
        if let Some(funding) = &self.funding {
            if before.swap.is_some() {
                return Err(self.reverted("the swap account exists already, so this order or another one with the same terms is funded"));
            }
            let amount = funding.terms.amount;
            if funding.htlc.token.is_some() {
                match accounts.used(2).and_then(Account::token) {
                    Some(token) if token.is_frozen => return Err(self.reverted("the owner's token account is frozen")),
                    Some(token) if token.amount < amount => {
                        return Err(insufficient("/token", "the owner has too little of the token", amount, token.amount));
                    }
                    Some(_) => {}
                    None => return Err(insufficient("/token", "the owner has no token account for this token", amount, 0)),
                }
                // The first swap of a token also creates the vault.
                if self.pays_fees && accounts.used(3).is_none() {
                    cost = cost.saturating_add(*token_account);
                }
                if self.pays_fees && funding.creates_token_account && accounts.used(2).is_none() {
                    cost = cost.saturating_add(*token_account);
                }
            } else {
                cost = cost.saturating_add(amount);
            }
        }
        let left = before.lamports.checked_sub(cost).ok_or_else(|| {
            insufficient("/balance", "the signer has too little SOL for what is locked, rent and fees", cost, before.lamports)
        })?;
        // The remaining balance must be 0, or at least the rent of an account without data.
        if cost > 0 && left != 0 && left < *empty {
            let needed = cost.saturating_add(*empty);
            return Err(insufficient(
                "/balance",
                "the signer would be left with less SOL than the rent of its own account",
                needed,
                before.lamports,
            ));
        }
        Ok(cost)
    }

    /// Requires that the simulation does what was verified, and costs the signer no more than `cost`.
    fn compare(&self, before: &Holdings, outcome: &Outcome, cost: u64) -> Result<(), Refusal> {
        if let Some(reason) = &outcome.failure {
            return Err(self.reverted(reason.clone()));
        }
        let after = Holdings::new(&outcome.accounts);
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
        let made = after.swap.as_ref().filter(|swap| swap.owner == htlc.program);
        let stored = made.and_then(|swap| read::swap_account(&swap.data).ok());
        let is_verified = stored.is_some_and(|stored| {
            let parties = (stored.initiator, stored.redeemer) == (funding.owner, terms.redeemer);
            let form = stored.generation == htlc.generation && stored.is_token == htlc.token.is_some();
            let expiry = outcome.slot.saturating_add(terms.timelock);
            let time = stored.expiry.abs_diff(expiry) <= MAX_STEP_BACK && stored.timelock.is_none_or(|timelock| timelock == terms.timelock);
            parties && form && time && stored.secret_hash == terms.secret_hash && stored.amount == amount
        });
        if !is_verified {
            let refusal = Refusal::new(Code::SimulationDiffers, "/swap_account");
            return Err(refusal.with_reason("the swap account would not hold the verified terms"));
        }
        if htlc.token.is_none() {
            let holds = made.map(|swap| swap.lamports).unwrap_or_default();
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
    slot: u64,
    failure: Option<String>,
    units: Option<u64>,
    accounts: Vec<Option<Account>>,
}

impl Outcome {
    fn read(node: &Node<'_, '_>, count: usize) -> Result<Self, Refusal> {
        let members = node.object()?;
        let slot = members.need("context")?.object()?.need("slot")?.integer()?;
        let value = members.need("value")?;
        let value = value.object()?;
        let units = value.get("unitsConsumed").map(|units| units.integer()).transpose()?;
        if value.get("err").is_some() {
            return Ok(Self { slot, failure: Some(failure(&value)?), units, accounts: Vec::new() });
        }
        let list = value.need("accounts")?;
        let all = list.array()?;
        if all.len() != count {
            return Err(list.at().refuse(Code::WrongType).with_expected(format!("{count} accounts")).with_actual(all.len()));
        }
        let accounts = all.map(|account| Account::read(&account)).collect::<Result<_, _>>()?;
        Ok(Self { slot, failure: None, units, accounts })
    }
}

/// Returns why a simulation failed: the name of the error, or the log line that describes it.
fn failure(value: &Members<'_, '_>) -> Result<String, Refusal> {
    let error = value.need("err")?;
    if let Ok(name) = error.text() {
        return Ok(match name {
            "BlockhashNotFound" => "the blockhash is unknown or no longer valid".to_owned(),
            name => escape_untrusted(name),
        });
    }
    let logs = value.get("logs");
    let mut reason = None;
    if let Some(logs) = &logs {
        for line in logs.array()?.take(MAX_LOGS) {
            let line = line.text()?;
            if line.contains("Error") || line.contains("failed") || line.contains("insufficient") {
                reason = reason.or_else(|| Some(escape_untrusted(line)));
            }
        }
    }
    Ok(reason.unwrap_or_else(|| "no reason given".to_owned()))
}
