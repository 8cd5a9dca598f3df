//! The transactions that name a swap account: the list of their signatures, and what each of them did.

use std::collections::BTreeMap;

use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Replies, Reply, Request};
use countersign_core::{BlockHeight, Code, Refusal, UnixTime, sort};

use super::{FINALIZED, MAX_STEP_BACK};
use crate::address::Address;
use crate::read::{self, ChainTransaction};

/// The maximum number of signatures in a page. Nodes return at most this many.
const MAX_SIGNATURES: usize = 1_000;
/// The maximum number of pages of signatures.
pub(super) const MAX_PAGES: usize = 4;
/// The number of the oldest transactions, and of the newest ones, that are read first.
pub(super) const FIRST: usize = 16;
/// The maximum number of transactions of one account that are read.
const MAX_TRANSACTIONS: usize = 256;

/// A transaction that names the swap account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) text: String,
    slot: u64,
    is_success: bool,
    /// The time of its block, where the node knows it.
    time: Option<UnixTime>,
}

impl Signature {
    fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let name = members.need("signature")?;
        let text = name.text()?;
        if text.parse::<solana_signature::Signature>().is_err() {
            return Err(name.refuse(Code::TransactionIdMalformed).with_expected("base58 of 64 bytes"));
        }
        let time = members.get("blockTime").and_then(|time| time.integer().ok()).map(UnixTime::from_secs);
        Ok(Self { text: text.to_owned(), slot: members.need("slot")?.integer()?, is_success: read::error(&members)?.is_none(), time })
    }
}

/// The transactions that name an account, newest first.
#[derive(Debug)]
pub(super) struct Signatures {
    all: Vec<Signature>,
    /// Whether there may be older transactions.
    pub(super) is_cut: bool,
    pages: usize,
}

/// Creates the request for the finalized transactions that name an account: the newest ones, or those before a transaction.
pub(super) fn list(of: Address, before: Option<&Signature>) -> Request {
    let before = before.map(|before| format!(r#","before":"{}""#, before.text)).unwrap_or_default();
    let options = format!(r#"{{"limit":{MAX_SIGNATURES},"commitment":"{FINALIZED}"{before}}}"#);
    Request::json_rpc("getSignaturesForAddress", format!(r#"["{of}",{options}]"#))
}

/// Creates the request for a transaction.
pub(super) fn get(signature: &Signature) -> Request {
    by_id(&signature.text)
}

/// Creates the request for the transaction with an id. A node refuses the whole request if the message has a higher version than the
/// stated one, so this is the highest one that can be decoded.
pub(super) fn by_id(id: &str) -> Request {
    let options = format!(r#"{{"encoding":"base64","commitment":"{FINALIZED}","maxSupportedTransactionVersion":1}}"#);
    Request::json_rpc("getTransaction", format!(r#"["{id}",{options}]"#))
}

impl Signatures {
    /// Reads the first page. `newest` is the newest slot of the endpoint.
    pub(super) fn read(cursor: &Cursor<'_, '_>, newest: u64) -> Result<Self, Refusal> {
        let mut signatures = Self { all: Vec::new(), is_cut: true, pages: 0 };
        // The node that lists the signatures may be slightly ahead of the one that reports the slot.
        signatures.add(cursor, newest.saturating_add(MAX_STEP_BACK))?;
        Ok(signatures)
    }

    /// Adds a page, which must begin at or before the oldest transaction so far.
    pub(super) fn add_page(&mut self, cursor: &Cursor<'_, '_>) -> Result<(), Refusal> {
        let oldest = self.all.last().map_or(u64::MAX, |oldest| oldest.slot);
        self.add(cursor, oldest)
    }

    fn add(&mut self, cursor: &Cursor<'_, '_>, max_slot: u64) -> Result<(), Refusal> {
        let wrong = |expected: &str| cursor.at().refuse(Code::WrongType).with_expected(expected.to_owned());
        let page = cursor.array()?;
        let count = page.len();
        if count > MAX_SIGNATURES {
            return Err(wrong("at most 1000 signatures").with_actual(count));
        }
        let added = page.map(|entry| Signature::read(&entry)).collect::<Result<Vec<_>, _>>()?;
        if added.first().is_some_and(|newest| newest.slot > max_slot) {
            return Err(wrong(if self.pages == 0 { "no transactions from the future" } else { "older transactions" }));
        }
        if !added.is_sorted_by(|newer, older| newer.slot >= older.slot) {
            return Err(wrong("the newest first"));
        }
        self.all.extend(added);
        let distinct = sort::set(self.all.iter().map(|signature| &signature.text));
        if distinct.len() != self.all.len() {
            return Err(wrong("each transaction once"));
        }
        self.is_cut = count == MAX_SIGNATURES;
        self.pages = self.pages.saturating_add(1);
        Ok(())
    }

    /// Returns the transaction before which older ones must be listed, so that all those in or after `slot` are known; `None` if they are
    /// known, or if there have been too many pages.
    pub(super) fn before(&self, slot: u64) -> Option<&Signature> {
        self.all.last().filter(|oldest| self.is_cut && self.pages < MAX_PAGES && oldest.slot >= slot)
    }

    /// Returns the slots and times of the transactions, where the node knows the times.
    pub(super) fn times(&self) -> impl Iterator<Item = (BlockHeight, UnixTime)> {
        self.all.iter().filter_map(|signature| Some((signature.slot.into(), signature.time?)))
    }

    /// Returns whether it is certain that no successful transaction names the account.
    pub(super) fn is_unused(&self) -> bool {
        !self.is_cut && !self.all.iter().any(|signature| signature.is_success)
    }

    /// Returns the successful transactions, newest first.
    fn successful(&self) -> impl DoubleEndedIterator<Item = &Signature> {
        self.all.iter().filter(|signature| signature.is_success)
    }

    /// Returns the transactions that may have initiated a swap in this slot, or the newest ones if there are none in this slot.
    pub(super) fn of_slot(&self, slot: Option<u64>) -> Vec<&Signature> {
        let there: Vec<_> = self.successful().filter(|signature| Some(signature.slot) == slot).take(MAX_TRANSACTIONS).collect();
        if there.is_empty() { self.successful().take(FIRST).collect() } else { there }
    }

    /// Returns the transactions to read, oldest first, and whether there is a gap before the last [`FIRST`] of them. The newest ones are
    /// always included, because they may reveal the secret.
    pub(super) fn oldest_first(&self) -> (Vec<&Signature>, bool) {
        let mut all: Vec<_> = self.successful().rev().collect();
        let is_too_long = all.len() > MAX_TRANSACTIONS;
        if is_too_long {
            let newest = all.split_off(all.len().saturating_sub(FIRST));
            all.truncate(MAX_TRANSACTIONS.saturating_sub(FIRST));
            all.extend(newest);
        }
        (all, is_too_long)
    }
}

/// A transaction; `None` if the endpoint no longer has it.
type Found = Result<Option<ChainTransaction>, Fault>;

/// The transactions that have been read, by their signatures.
#[derive(Debug, Default)]
pub(super) struct Transactions(BTreeMap<String, Found>);

impl Transactions {
    /// Adds the replies to requests for these transactions. If one of them cannot be read, the others still are.
    pub(super) fn add(&mut self, asked: Vec<Signature>, replies: &Replies<'_>) {
        for (signature, reply) in asked.into_iter().zip(replies.all()) {
            let found = transaction(reply, &signature);
            self.0.insert(signature.text, found);
        }
    }

    /// Returns a transaction that was read; `None` if it was not asked for.
    pub(super) fn get(&self, signature: &Signature) -> Option<&Found> {
        self.0.get(&signature.text)
    }

    /// Returns those of these transactions that have not been asked for.
    pub(super) fn missing<'s>(&self, wanted: impl IntoIterator<Item = &'s Signature>) -> Vec<Signature> {
        wanted.into_iter().filter(|signature| self.get(signature).is_none()).cloned().collect()
    }
}

/// Reads a transaction, which must be the requested one.
fn transaction(reply: &Reply<'_>, signature: &Signature) -> Found {
    let cursor = reply.json()?;
    if cursor.is_null() {
        return Ok(None);
    }
    let transaction = ChainTransaction::read(&cursor)?;
    let refuse = |member: &'static str| cursor.at().key(member).refuse(Code::TransactionMismatch);
    if transaction.slot != signature.slot {
        return Err(refuse("slot").with_expected(signature.slot).into());
    }
    if transaction.signature != signature.text {
        return Err(refuse("transaction").with_expected(&signature.text).into());
    }
    Ok(Some(transaction))
}
