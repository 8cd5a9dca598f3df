//! Accounts as `getMultipleAccounts` and `simulateTransaction` return them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::json::{Cursor, Members};
use countersign_core::reader::{Fault, Replies, Request};
use countersign_core::{Code, Refusal};

use super::{MAX_STEP_BACK, key};
use crate::address::{Address, SYSTEM_PROGRAM};
use crate::read::{self, CLOCK, Clock, TokenAccount};

/// The maximum length in bytes of an account's data. Swap accounts, token accounts and the clock have a few hundred, programs have more.
const MAX_DATA: usize = 3 * 1024 * 1024;

/// The number of bytes of a token account without extensions.
pub(super) const TOKEN_ACCOUNT: usize = 165;

/// An account with lamports or data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) lamports: u64,
    pub(super) owner: Address,
    pub(super) data: Vec<u8>,
}

/// The accounts of one answer, all from the same bank.
#[derive(Debug, Clone)]
pub(super) struct Accounts {
    /// The slot of the bank.
    pub(super) slot: u64,
    /// The accounts in the order of the request; `None` for one that does not exist.
    pub(super) all: Vec<Option<Account>>,
}

/// Creates the requests for the rents of an account without data and of a token account without extensions. Rent grows with each byte by the
/// same amount, so these two tell that of every other account.
pub(super) fn get_rents() -> [Request; 2] {
    [0, TOKEN_ACCOUNT].map(|length| Request::json_rpc("getMinimumBalanceForRentExemption", format!("[{length}]")))
}

/// The rents that an endpoint states, in lamports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rents {
    /// The rent of an account without data.
    pub(super) empty: u64,
    token_account: u64,
}

impl Rents {
    /// Reads the replies to [`get_rents`], the first of which is at this place.
    pub(super) fn read(replies: &Replies<'_>, at: usize) -> Result<Self, Fault> {
        Ok(Self { empty: replies.json(at)?.integer()?, token_account: replies.json(at.saturating_add(1))?.integer()? })
    }

    /// Returns the rent of an account with this many bytes.
    pub(super) fn of(&self, length: usize) -> u64 {
        let number = |length: usize| u128::try_from(length).unwrap_or(u128::MAX);
        let grown = u128::from(self.token_account.saturating_sub(self.empty));
        let more = grown.saturating_mul(number(length)).div_ceil(number(TOKEN_ACCOUNT));
        self.empty.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    }
}

/// Creates the request for accounts of a bank that is not older than `min_slot`.
pub(super) fn get(keys: &[Address], commitment: &str, min_slot: u64) -> Request {
    let min_slot = if min_slot == 0 { String::new() } else { format!(r#","minContextSlot":{min_slot}"#) };
    let options = format!(r#"{{"encoding":"base64","commitment":"{commitment}"{min_slot}}}"#);
    Request::json_rpc("getMultipleAccounts", format!("[{},{options}]", addresses(keys)))
}

/// Creates the request for the first `length` bytes of an account.
pub(super) fn get_part(key: &Address, commitment: &str, length: usize) -> Request {
    let options = format!(r#"{{"encoding":"base64","commitment":"{commitment}","dataSlice":{{"offset":0,"length":{length}}}}}"#);
    Request::json_rpc("getMultipleAccounts", format!("[{},{options}]", addresses(&[*key])))
}

/// Writes a list of addresses as JSON.
pub(super) fn addresses(keys: &[Address]) -> String {
    let keys: Vec<_> = keys.iter().map(|key| format!("\"{key}\"")).collect();
    format!("[{}]", keys.join(","))
}

impl Account {
    /// Reads an account; `None` if it does not exist.
    pub(super) fn read(cursor: &Cursor<'_, '_>) -> Result<Option<Self>, Refusal> {
        if cursor.is_null() {
            return Ok(None);
        }
        let members = cursor.object()?;
        let data = members.need("data")?;
        let mut parts = data.array()?;
        let (Some(text), Some(encoding), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(data.at().refuse(Code::WrongType).with_expected("data in base64"));
        };
        if encoding.text()? != "base64" {
            return Err(encoding.refuse(Code::WrongType).with_expected("base64"));
        }
        let data = bytes(&text, MAX_DATA)?;
        Ok(Some(Self { lamports: members.need("lamports")?.integer()?, owner: key(&members.need("owner")?)?, data }))
    }

    /// Returns whether no program uses the account. It was closed, or has only received lamports.
    pub(super) fn is_unused(&self) -> bool {
        self.owner == SYSTEM_PROGRAM && self.data.is_empty()
    }

    /// Returns the bytes of a new associated token account of this mint; `None` if it is not a mint.
    pub(super) fn new_token_account(&self) -> Option<usize> {
        read::mint(self.owner, &self.data).ok().map(|mint| mint.account_length)
    }

    /// Decodes a token account; `None` if it is not one.
    pub(super) fn token(&self) -> Option<TokenAccount> {
        read::token_account(self.owner, &self.data).ok()
    }
}

impl Accounts {
    /// Reads the answer to a request for `count` accounts.
    pub(super) fn read(cursor: &Cursor<'_, '_>, count: usize) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let slot = slot(&members)?;
        Ok(Self { slot, all: list(&members.need("value")?, count)? })
    }

    /// Returns the account at this place of the request; `None` if it does not exist.
    pub(super) fn get(&self, index: usize) -> Option<&Account> {
        self.all.get(index).and_then(Option::as_ref)
    }

    /// Returns the account at this place of the request if a program uses it.
    pub(super) fn used(&self, index: usize) -> Option<&Account> {
        self.get(index).filter(|account| !account.is_unused())
    }

    /// Returns the bytes of a new associated token account of the mint at this place of the request.
    pub(super) fn new_token_account(&self, mint: usize) -> usize {
        self.get(mint).and_then(Account::new_token_account).unwrap_or(TOKEN_ACCOUNT)
    }

    /// Returns the slot and time of the bank, from the clock, which must be the first account of the request.
    pub(super) fn clock(&self) -> Result<Clock, Refusal> {
        let malformed = |reason: String| Refusal::new(Code::WrongType, "/result/value/0").with_reason(reason);
        let account = self.get(0).ok_or_else(|| malformed(format!("there is no clock at {CLOCK}")))?;
        let clock = read::clock(&account.data).map_err(|why| malformed(why.to_string()))?;
        // The accounts of one answer come from the same bank, whose slot the clock contains. Some endpoints answer from a copy of the
        // accounts that is slightly older than the slot that they report, so the clock's slot counts.
        if clock.slot.abs_diff(self.slot) > MAX_STEP_BACK {
            let refusal = malformed("the slot of the clock differs from that of the answer".to_owned());
            return Err(refusal.with_expected(self.slot).with_actual(clock.slot));
        }
        Ok(clock)
    }
}

/// Reads the slot of the bank that an answer comes from.
pub(super) fn slot(answer: &Members<'_, '_>) -> Result<u64, Refusal> {
    answer.need("context")?.object()?.need("slot")?.integer()
}

/// Reads a list of `count` accounts; `None` for one that does not exist.
pub(super) fn list(cursor: &Cursor<'_, '_>, count: usize) -> Result<Vec<Option<Account>>, Refusal> {
    let all = cursor.array()?;
    if all.len() != count {
        return Err(cursor.at().refuse(Code::WrongType).with_expected(format!("{count} accounts")).with_actual(all.len()));
    }
    all.map(|account| Account::read(&account)).collect()
}

/// Reads base64 of at most `max` bytes.
fn bytes(cursor: &Cursor<'_, '_>, max: usize) -> Result<Vec<u8>, Refusal> {
    let text = cursor.text()?;
    // Base64 has four characters for three bytes, rounded up.
    if text.len() / 4 > max.div_ceil(3) {
        return Err(cursor.at().refuse(Code::WrongType).with_expected(format!("at most {max} bytes")));
    }
    STANDARD.decode(text).map_err(|_| cursor.refuse(Code::WrongType).with_expected("base64"))
}
