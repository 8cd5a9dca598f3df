//! The account methods of the JSON-RPC interface.

use serde_json::{Value, json};
use solana_account::ReadableAccount;
use solana_address::Address;

use super::params::{Params, parse_address};
use super::views::{AccountView, context};
use super::{Answer, Solana};
use crate::chains::rpc::Fault;

/// The maximum number of accounts in one call.
const MAX_ACCOUNTS: usize = 100;
/// The maximum length of an account's data.
const MAX_DATA: u64 = 10 * 1_024 * 1_024;

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
            return Err(Fault::params(format!("Invalid param: data_len {length} is larger than the maximum {MAX_DATA}")));
        }
        Ok(json!(self.bank.svm().minimum_balance_for_rent_exemption(usize::try_from(length).unwrap_or_default())))
    }
}
