//! The preflight: checks funds, and simulates the transaction, before anything is signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::json::{Members, Node};
use countersign::solana::{Address, AllowedInstruction, Deposit, TransactionPayload, UnsignedOrder, read};
use countersign::{Code, Refusal, Role, TypedValue, U256, text};
use countersign_client::Transport;
use serde_json::json;

use super::account::{self, Account, Accounts};
use super::prepare::used;
use super::{CONFIRMED, MAX_STEP_BACK, SolanaChain, nth};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;

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

/// What a transaction must do.
struct Plan<'o> {
    signer: Address,
    payload: &'o TransactionPayload,
    role: Role,
    deposit: Option<&'o Deposit>,
    /// Whether the signer pays fees and rent.
    pays_fees: bool,
    /// The lengths in bytes of the accounts that the transaction creates at the signer's expense.
    new_accounts: Vec<usize>,
}

/// The contents of the compared accounts, before or after the transaction.
struct Holdings {
    lamports: u64,
    swap: Option<Account>,
    tokens: Option<u64>,
    vault: Option<u64>,
}

/// Returns the accounts that are compared: the signer, the swap account, and for tokens the signer's token account and the vault.
fn compared(plan: &Plan<'_>) -> Vec<Address> {
    let tokens = plan.deposit.and_then(|deposit| {
        let accounts = &deposit.transaction.accounts;
        Some([accounts.token_account?, accounts.vault?])
    });
    let swap = plan.deposit.map(|deposit| deposit.swap_account);
    [plan.signer].into_iter().chain(swap).chain(tokens.into_iter().flatten()).collect()
}

impl Holdings {
    fn new(accounts: &[Option<Account>]) -> Self {
        let get = |index: usize| accounts.get(index).and_then(Option::as_ref);
        let amount = |index| get(index).and_then(Account::token).map(|token| token.amount);
        Self {
            lamports: get(0).map(|account| account.lamports).unwrap_or_default(),
            swap: used(get(1)).cloned(),
            tokens: amount(2),
            vault: amount(3),
        }
    }
}

impl<'n, T: Transport> SolanaChain<'n, T> {
    /// Checks that the signer has enough SOL for the amount, rent and fees, and enough of the token, and simulates the transaction. Call
    /// it before signing.
    ///
    /// The simulation must create the swap account with the verified terms, and transfer exactly the verified amount. A redemption is
    /// never simulated, because that would show the secret to the node.
    ///
    /// The first endpoint that answers decides. A preflight protects from mistakes, not from a dishonest node.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with
    ///
    /// - [`Code::NothingToSign`] if the order has no transaction,
    /// - [`Code::InsufficientFunds`] if the signer has too little,
    /// - [`Code::SimulationReverted`] if the transaction fails, or would fail because of the accounts' state,
    /// - [`Code::SimulationDiffers`] if the transaction would do something else than what was verified,
    ///
    /// and another [`NodeError`] if no endpoint answers.
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        let payloads = order.payloads();
        let deposit = order.verified().map(|order| order.deposit());
        let (payload, pays_fees) = match (&payloads.transaction, &payloads.gasless) {
            (Some(payload), _) => (payload, true),
            (None, Some(payload)) => (payload, false),
            (None, None) => return Err(Refusal::new(Code::NothingToSign, "").into()),
        };
        let new_accounts = deposit.filter(|_| pays_fees).map(|deposit| deposit.htlc.swap_account_length());
        let new_accounts = new_accounts.into_iter().collect();
        self.run(&Plan { signer: payloads.signer, payload, role: payloads.role, deposit, pays_fees, new_accounts }).await
    }

    /// Does the same as [`SolanaChain::preflight`] for a redemption or a refund.
    pub(super) async fn preflight_recovery(&self, order: &UnsignedOrder, makes_token_account: bool) -> Result<Preflight, NodeError> {
        let payloads = order.payloads();
        let payload = payloads.transaction.as_ref().ok_or_else(|| Refusal::new(Code::NothingToSign, ""))?;
        let new_accounts = makes_token_account.then_some(TOKEN_ACCOUNT).into_iter().collect();
        let plan = Plan { signer: payloads.signer, payload, role: payloads.role, deposit: None, pays_fees: true, new_accounts };
        self.run(&plan).await
    }

    async fn run(&self, plan: &Plan<'_>) -> Result<Preflight, NodeError> {
        self.connection.first(async |caller: Caller<'n, T>| self.run_on(caller, plan).await).await
    }

    async fn run_on(&self, caller: Caller<'n, T>, plan: &Plan<'_>) -> Result<Preflight, NodeError> {
        self.identify(caller).await?;
        let keys = compared(plan);
        let rent = |length: usize| Call::new("getMinimumBalanceForRentExemption", json!([length]));
        let mut calls = vec![account::get(&keys, CONFIRMED, 0)];
        calls.extend([0, TOKEN_ACCOUNT].into_iter().chain(plan.new_accounts.iter().copied()).map(rent));
        let rents = calls.len();
        let is_simulated = plan.role != Role::Redeem;
        if is_simulated {
            calls.push(simulate(plan, &keys));
        }
        let answers = |results: &[Node<'_, '_>]| {
            let accounts = Accounts::read(nth(results, 0)?, keys.len())?;
            let rents = results.iter().take(rents).skip(1).map(Node::integer).collect::<Result<Vec<_>, _>>()?;
            let outcome = is_simulated.then(|| Outcome::read(nth(results, rents.len().saturating_add(1))?, keys.len())).transpose()?;
            Ok((accounts, rents, outcome))
        };
        let (accounts, rents, outcome) = caller.rpc(&calls, answers).await?;
        let before = Holdings::new(&accounts.all);
        let cost = plan.check_money(&accounts, &before, &rents)?;
        if let Some(outcome) = &outcome {
            plan.compare(&before, outcome, cost)?;
        }
        Ok(Preflight { balance: before.lamports, cost, units: outcome.and_then(|outcome| outcome.units) })
    }
}

fn insufficient(at: &'static str, reason: impl Into<String>, needed: u64, has: u64) -> Refusal {
    let refusal = Refusal::new(Code::InsufficientFunds, at).with_reason(reason.into());
    refusal.with_expected(TypedValue::AtLeast(U256::from(needed))).with_actual(has)
}

impl Plan<'_> {
    /// Requires that the signer has enough for the transaction. Returns the maximum cost in lamports. `rents` begins with the rent of an
    /// account without data and that of a token account.
    fn check_money(&self, accounts: &Accounts, before: &Holdings, rents: &[u64]) -> Result<u64, Refusal> {
        let [empty, token_account, new @ ..] = rents else { return Err(Refusal::new(Code::MissingField, "/result")) };
        let mut cost = if self.pays_fees { self.payload.max_fee() } else { 0 };
        cost = new.iter().copied().fold(cost, u64::saturating_add);
        if let Some(deposit) = self.deposit {
            if before.swap.is_some() {
                return Err(self.reverted("the swap account exists already, so this order or another one with the same terms is funded"));
            }
            let amount = deposit.terms.amount;
            if deposit.htlc.token.is_some() {
                let creates = deposit.transaction.allowed().any(|allowed| *allowed == AllowedInstruction::CreateTokenAccount);
                match used(accounts.get(2)).and_then(Account::token) {
                    Some(token) if token.is_frozen => return Err(self.reverted("the owner's token account is frozen")),
                    Some(token) if token.amount < amount => {
                        return Err(insufficient("/token", "the owner has too little of the token", amount, token.amount));
                    }
                    Some(_) => {}
                    None => return Err(insufficient("/token", "the owner has no token account for this token", amount, 0)),
                }
                // The first swap of a token also creates the vault.
                if self.pays_fees && used(accounts.get(3)).is_none() {
                    cost = cost.saturating_add(*token_account);
                }
                if self.pays_fees && creates && used(accounts.get(2)).is_none() {
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
        let Some(deposit) = self.deposit else { return Ok(()) };
        let (htlc, terms) = (&deposit.htlc, &deposit.terms);
        let amount = terms.amount;
        let made = after.swap.as_ref().filter(|swap| swap.owner == htlc.program);
        let stored = made.and_then(|swap| read::swap_account(&swap.data).ok());
        let is_verified = stored.is_some_and(|stored| {
            let parties = (stored.initiator, stored.redeemer) == (deposit.owner, terms.redeemer);
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

fn simulate(plan: &Plan<'_>, keys: &[Address]) -> Call {
    let transaction = plan.payload.transaction();
    let bytes = read::transaction_bytes(transaction);
    let addresses: Vec<_> = keys.iter().map(ToString::to_string).collect();
    let options = json!({
        "encoding": "base64",
        "commitment": CONFIRMED,
        "sigVerify": false,
        "accounts": {"encoding": "base64", "addresses": addresses},
    });
    Call::new("simulateTransaction", json!([STANDARD.encode(bytes), options]))
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
            name => text::escape_untrusted(name),
        });
    }
    let logs = value.get("logs");
    let mut reason = None;
    if let Some(logs) = &logs {
        for line in logs.array()?.take(MAX_LOGS) {
            let line = line.text()?;
            if line.contains("Error") || line.contains("failed") || line.contains("insufficient") {
                reason = reason.or_else(|| Some(text::escape_untrusted(line)));
            }
        }
    }
    Ok(reason.unwrap_or_else(|| "no reason given".to_owned()))
}
