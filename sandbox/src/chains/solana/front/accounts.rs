//! Accounts and tokens.

use serde_json::{Value, json};
use solana_account::{AccountSharedData, ReadableAccount};
use solana_address::Address;

use super::params::{Config, Failure, Params, parse_address};
use super::views::{AccountView, context};
use super::{Answer, Solana};
use crate::chains::solana::bank::ui_amount;
use crate::chains::solana::htlc::{TOKEN, TokenAccount, token_account};

/// The number of accounts that may be asked for at once.
const MAX_ACCOUNTS: usize = 100;
/// The longest data that an account can have.
const MAX_DATA: u64 = 10 * 1_024 * 1_024;
/// The newer token program, of which there are no accounts here.
const TOKEN_2022: Address = Address::from_str_const("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb");

impl Solana {
    pub(super) fn account_info(&self, params: &Params<'_>) -> Answer {
        let (key, config) = (params.address(0)?, params.config(1)?);
        let (slot, view) = (config.slot(&self.bank)?, AccountView::read(config, "binary")?);
        let account = self.bank.account(&key, slot);
        Ok(context(slot, account.map_or(Ok(Value::Null), |account| view.show(&self.bank, &account))?))
    }

    pub(super) fn multiple_accounts(&self, params: &Params<'_>) -> Answer {
        let (keys, config) = (params.texts(0, MAX_ACCOUNTS)?, params.config(1)?);
        let keys = keys.into_iter().map(parse_address).collect::<Result<Vec<_>, _>>()?;
        let (slot, view) = (config.slot(&self.bank)?, AccountView::read(config, "base64")?);
        let account = |key: &Address| self.bank.account(key, slot).map_or(Ok(Value::Null), |account| view.show(&self.bank, &account));
        Ok(context(slot, keys.iter().map(account).collect::<Result<_, _>>()?))
    }

    pub(super) fn lamports(&self, params: &Params<'_>) -> Answer {
        let (key, slot) = (params.address(0)?, params.config(1)?.slot(&self.bank)?);
        Ok(context(slot, json!(self.bank.account(&key, slot).map_or(0, |account| account.lamports()))))
    }

    pub(super) fn rent(&self, params: &Params<'_>) -> Answer {
        let length = params.number(0)?;
        if length > MAX_DATA {
            return Err(Failure::params(format!("Invalid param: data_len {length} is larger than the maximum {MAX_DATA}")));
        }
        Ok(json!(self.bank.svm().minimum_balance_for_rent_exemption(usize::try_from(length).unwrap_or_default())))
    }

    pub(super) fn token_account_balance(&self, params: &Params<'_>) -> Answer {
        let (key, slot) = (params.address(0)?, params.config(1)?.slot(&self.bank)?);
        let account = self.bank.account(&key, slot).ok_or_else(|| Failure::params("Invalid param: could not find account"))?;
        let tokens = self.tokens(&account).ok_or_else(|| Failure::params("Invalid param: not a Token account"))?;
        let decimals = self.bank.decimals(&tokens.mint).unwrap_or_default();
        Ok(context(slot, ui_amount(tokens.amount, decimals)))
    }

    pub(super) fn token_supply(&self, params: &Params<'_>) -> Answer {
        let (key, slot) = (params.address(0)?, params.config(1)?.slot(&self.bank)?);
        let account = self.bank.account(&key, slot).ok_or_else(|| Failure::params("Invalid param: could not find account"))?;
        let (supply, decimals) = (account.data().get(36..).and_then(|rest| rest.first_chunk()), self.bank.decimals(&key));
        match (supply, decimals) {
            (Some(supply), Some(decimals)) if account.data().len() == 82 => {
                Ok(context(slot, ui_amount(u64::from_le_bytes(*supply), decimals)))
            }
            _ => Err(Failure::params("Invalid param: not a Token mint")),
        }
    }

    pub(super) fn token_accounts_by_owner(&self, params: &Params<'_>) -> Answer {
        let (owner, filter, config) = (params.address(0)?, params.config(1)?, params.config(2)?);
        let mint = self.filter(filter)?;
        let (slot, view) = (config.slot(&self.bank)?, AccountView::read(config, "binary")?);
        let mut found = Vec::new();
        if mint != Some(TOKEN_2022) {
            let is_of_owner = |tokens: &TokenAccount| tokens.owner == owner && mint.is_none_or(|mint| tokens.mint == mint);
            let all = self.bank.svm().accounts_db().inner.iter();
            // The bytes of the owner first: there may be many accounts.
            let keys = all.filter(|(_, account)| account.data().get(32..64) == Some(owner.as_ref())).map(|(key, _)| *key);
            let mut keys: Vec<_> = keys.collect();
            keys.sort_unstable();
            for key in keys {
                let Some(account) = self.bank.account(&key, slot) else { continue };
                if self.tokens(&account).as_ref().is_some_and(is_of_owner) {
                    found.push(json!({"pubkey": key.to_string(), "account": view.show(&self.bank, &account)?}));
                }
            }
        }
        Ok(context(slot, Value::Array(found)))
    }

    /// The mint that is asked for: none for all of the token program, its own address for all of Token-2022.
    fn filter(&self, filter: Config<'_>) -> Result<Option<Address>, Failure> {
        if let Some(mint) = filter.text("mint")? {
            let mint = parse_address(mint)?;
            let known = self.bank.decimals(&mint).map(|_| mint);
            return known.map(Some).ok_or_else(|| Failure::params("Invalid param: could not find mint"));
        }
        match filter.text("programId")?.map(parse_address).transpose()? {
            Some(TOKEN) => Ok(None),
            Some(TOKEN_2022) => Ok(Some(TOKEN_2022)),
            Some(_) => Err(Failure::params("Invalid param: unrecognized Token program id")),
            None => Err(Failure::params("Invalid params: unknown variant, expected `mint` or `programId`.")),
        }
    }

    fn tokens(&self, account: &AccountSharedData) -> Option<TokenAccount> {
        Some(account).filter(|account| *account.owner() == TOKEN).and_then(|account| token_account(account.data()))
    }
}
