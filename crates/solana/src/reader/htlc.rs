//! The state of one swap, according to one endpoint.

use std::time::Duration;

use countersign_core::reader::{Fault, Identity, Known, Machine, Replies, Request, Turn};
use countersign_core::{Code, Finding, HtlcState, HtlcTerms, LockedHtlc, ObservedAt, Refusal, SecretHash, U256, pace};

use super::account::{self, Account, Accounts};
use super::history::SwapHistory;
use super::transactions::{self, FIRST, MAX_PAGES, Signature, Signatures, Transactions};
use super::{FINALIZED, MAX_STEP_BACK, identity};
use crate::address::{Address, to_account};
use crate::read::{self, CLOCK, Clock, SwapAccount, SwapLocation};

/// The maximum number of slots by which the newest finalized slot may be ahead of the bank of the accounts, which some endpoints answer from
/// an older copy: two and a half minutes, where a second is usual. With more, the bank would be too old to be evidence anyway. Without a
/// limit, one absurd slot would end every timelock.
const MAX_AHEAD: u64 = 600;

/// Reads the state of one swap at an endpoint's newest finalized slot.
///
/// The first round reads the swap account, the vault and the clock of one bank, the newest finalized slot, and the list of the
/// transactions that name the account. The account alone is enough for an open swap, except that accounts of the client generation do not
/// contain the timelock and, for tokens, the mint. For a native swap, only the remaining time matters, and the account contains the slot
/// of expiry. For a token swap, both come from the transaction that initiated the swap.
///
/// If the account is gone, holds less than the terms, or pays another recipient, the transactions show how the swap of the terms ended.
/// At most 4 pages of 1,000 signatures are listed. The oldest 16 and the newest 16 transactions are read first and then the rest, at most
/// 256 in all. If none of them shows how the swap ended, a swap whose account is gone is [`HtlcState::Unclear`]. A redemption that may
/// have ended another swap at the same account is not marked as final.
///
/// [`ObservedAt::height`] is the finalized slot. [`ObservedAt::hash`] is the SHA-256 hash of the swap account's address and contents at
/// that slot. It is used instead of a blockhash, because endpoints are at different slots and looking up a block takes another round
/// trip, while the contents of a finalized account are the same for all of them. [`Finding::origin`] is the slot of the transaction that
/// led to the state, if it is known, and this hash.
///
/// Specification: `docs/spec/solana.md#reading-an-order`, `docs/spec/chains.md#solana`.
#[derive(Debug)]
pub struct Htlc {
    identity: Identity,
    known: Known,
    terms: HtlcTerms,
    location: SwapLocation,
    round: Round,
}

/// What the last requests ask for.
#[derive(Debug)]
enum Round {
    /// The accounts, the newest slot and the newest signatures.
    Accounts,
    /// Older signatures.
    Page(Box<Reading>),
    /// Transactions.
    Transactions(Box<Reading>, Vec<Signature>),
    /// The oldest block that the node has.
    FirstBlock(Box<Reading>),
    /// Nothing: the reading has ended.
    Over,
}

/// What the answers have shown so far.
#[derive(Debug)]
struct Reading {
    clock: Clock,
    /// The newest finalized slot, by `getSlot`. Elapsed time is counted up to it, and not only up to the slot of an older copy.
    newest: u64,
    swap: Option<Account>,
    vault: Option<Account>,
    /// Some endpoints do not list signatures. They are not needed for an open swap whose account contains all terms.
    signatures: Result<Signatures, Fault>,
    transactions: Transactions,
    /// The slot of the oldest block that the node has; `None` if it was not asked for.
    first_block: Option<u64>,
}

/// Why the state cannot be told yet, or at all.
enum Pause {
    /// Older signatures are needed.
    Page(Request),
    /// Transactions are needed.
    Transactions(Vec<Signature>),
    /// The oldest block of the node is needed.
    FirstBlock,
    Fault(Fault),
}

impl<F: Into<Fault>> From<F> for Pause {
    fn from(fault: F) -> Self {
        Self::Fault(fault.into())
    }
}

/// The state with an elapsed time of 0, and the slot of the transaction that led to it; `None` if it is not known.
type State = (HtlcState, Option<u64>);

fn unclear(why: impl Into<String>) -> State {
    (HtlcState::Unclear(why.into()), None)
}

impl Machine for Htlc {
    type Subject = HtlcTerms;
    type Output = Finding;
    // The accounts, older signatures, the transaction that initiated the swap, twice transactions that show how it ended, and the oldest
    // block.
    const MAX_ROUNDS: usize = 4 + MAX_PAGES;

    fn start(terms: &HtlcTerms, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let (identity, location) = (identity(&terms.network)?, SwapLocation::new(terms)?);
        let requests = vec![
            account::get(&keys(&location), FINALIZED, known.height().saturating_sub(MAX_STEP_BACK).get()),
            Request::json_rpc("getSlot", format!(r#"[{{"commitment":"{FINALIZED}"}}]"#)),
            transactions::list(location.swap_account, None),
        ];
        Ok((Self { identity, known: known.clone(), terms: terms.clone(), location, round: Round::Accounts }, requests))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Finding>, Fault> {
        let reading = match std::mem::replace(&mut self.round, Round::Over) {
            Round::Accounts => {
                let reading = Reading::new(&self.location, replies)?;
                self.known.check_height(reading.clock.slot.into(), MAX_STEP_BACK)?;
                self.known = Known::default().with_height(reading.clock.slot.into());
                Box::new(reading)
            }
            Round::Page(mut reading) => {
                reading.signatures.as_mut().map_err(|fault| fault.clone())?.add_page(&replies.json(0)?)?;
                reading
            }
            Round::Transactions(mut reading, asked) => {
                reading.transactions.add(asked, replies);
                reading
            }
            Round::FirstBlock(mut reading) => {
                reading.first_block = Some(replies.json(0)?.integer()?);
                reading
            }
            Round::Over => return Err(Fault::TooMuch("the reading has ended")),
        };
        let state = match reading.swap.as_ref().filter(|swap| !swap.is_unused()) {
            Some(swap) => self.open(swap, &reading),
            None => self.closed(&reading),
        };
        match state {
            Ok(state) => Ok(Turn::Done(reading.finding(&self.location, state))),
            Err(Pause::Page(request)) => {
                self.round = Round::Page(reading);
                Ok(Turn::Ask(vec![request]))
            }
            Err(Pause::Transactions(missing)) => {
                let requests = missing.iter().map(transactions::get).collect();
                self.round = Round::Transactions(reading, missing);
                Ok(Turn::Ask(requests))
            }
            Err(Pause::FirstBlock) => {
                self.round = Round::FirstBlock(reading);
                Ok(Turn::Ask(vec![Request::json_rpc("getFirstAvailableBlock", "[]")]))
            }
            Err(Pause::Fault(fault)) => Err(fault),
        }
    }

    fn learned(&self) -> Known {
        self.known.clone()
    }
}

/// Returns the accounts of the first round.
fn keys(location: &SwapLocation) -> Vec<Address> {
    [CLOCK, location.swap_account].into_iter().chain(location.vault).collect()
}

impl Reading {
    /// Reads the first round.
    fn new(location: &SwapLocation, replies: &Replies<'_>) -> Result<Self, Fault> {
        let accounts = Accounts::read(&replies.json(0)?, keys(location).len())?;
        let clock = accounts.clock()?;
        let slot = replies.json(1)?;
        let newest = slot.integer()?;
        if newest > clock.slot.saturating_add(MAX_AHEAD) {
            let refusal = slot.refuse(Code::NumberTooLarge).with_reason("the newest slot is too far ahead of the finalized bank");
            return Err(refusal.with_expected(format!("at most {MAX_AHEAD} after {}", clock.slot)).into());
        }
        let newest = newest.max(clock.slot);
        let signatures = replies.json(2).and_then(|cursor| Ok(Signatures::read(&cursor, newest)?));
        let (swap, vault) = (accounts.get(1).cloned(), accounts.get(2).cloned());
        Ok(Self { clock, newest, swap, vault, signatures, transactions: Transactions::default(), first_block: None })
    }

    /// Returns the signatures, with all those in or after `slot` unless there are too many.
    fn signatures(&self, location: &SwapLocation, slot: u64) -> Result<&Signatures, Pause> {
        let signatures = self.signatures.as_ref().map_err(|fault| fault.clone())?;
        match signatures.before(slot) {
            Some(oldest) => Err(Pause::Page(transactions::list(location.swap_account, Some(oldest)))),
            None => Ok(signatures),
        }
    }

    /// Requires that these transactions have been read.
    fn need<'s>(&self, wanted: impl IntoIterator<Item = &'s Signature>) -> Result<(), Pause> {
        let missing = self.transactions.missing(wanted);
        if missing.is_empty() { Ok(()) } else { Err(Pause::Transactions(missing)) }
    }

    fn finding(&self, location: &SwapLocation, (state, origin): State) -> Finding {
        let digest = read::digest(&location.swap_account, self.swap.as_ref().map(|swap| swap.data.as_slice()).unwrap_or_default());
        let since = |slot: u64| origin.map_or(0, |origin| slot.saturating_sub(origin));
        let state = match state {
            HtlcState::Locked(locked) => HtlcState::Locked(locked.with_elapsed(since(self.newest), since(self.newest))),
            other => other,
        };
        let depth = since(self.clock.slot.saturating_add(1));
        let times = self.signatures.iter().flat_map(Signatures::times);
        let pace = pace::measure((self.clock.slot.into(), self.clock.time), times);
        let seen = ObservedAt::new(self.clock.slot.into(), hex::encode(digest), self.clock.time, depth).with_pace(pace);
        let seen = seen.with_finalized(origin.is_some());
        let origin = origin.map(u64::to_be_bytes).unwrap_or_default();
        Finding::new(state, seen).with_origin([origin.as_slice(), &digest].concat())
    }
}

impl Htlc {
    /// Returns the state of a swap whose account exists.
    fn open(&self, account: &Account, reading: &Reading) -> Result<State, Pause> {
        let (location, terms) = (&self.location, &self.terms);
        let htlc = &location.htlc;
        if account.owner != htlc.program {
            return Ok(unclear("the swap account belongs to another program"));
        }
        let stored = match read::swap_account(&account.data) {
            Ok(stored) => stored,
            Err(why) => return Ok(unclear(why.to_string())),
        };
        if stored.form != htlc.generation.form || stored.is_token != htlc.token.is_some() {
            return Ok(unclear("the swap account belongs to another generation of the program than the pinned one"));
        }
        let (timelock, mint) = match stored.timelock {
            Some(timelock) => (timelock, stored.mint),
            // The client's native program stores the slot of expiry, but not the timelock.
            None if htlc.token.is_none() => (terms.timelock, None),
            None => match self.initiation(&stored, reading)? {
                Some(initiated) => initiated,
                None => return Ok(unclear("no transaction shows how the swap was initiated")),
            },
        };
        // An account that was created again may hide how the swap of the terms ended.
        if !location.is_of_terms(&stored, mint)
            && let Some(ended) = self.history(reading)?.ended()?
        {
            return Ok(ended);
        }
        let Some(initiated) = stored.expiry.checked_sub(timelock) else {
            return Ok(unclear("the swap's timelock is longer than the chain"));
        };
        if initiated > reading.clock.slot {
            if stored.timelock.is_none() && htlc.token.is_none() {
                return Ok(unclear("the swap's timelock is longer than that of the terms"));
            }
            return Err(Refusal::new(Code::NumberTooLarge, "/result").with_reason("the swap was initiated after the newest slot").into());
        }
        let token = mint.map(|mint| match htlc.token {
            Some(token) if token.mint == mint => terms.token.clone().unwrap_or_default(),
            _ => mint.to_string(),
        });
        let (initiator, redeemer) = (to_account(stored.initiator), to_account(stored.redeemer));
        let locked = LockedHtlc::new(initiator, redeemer, U256::from(stored.amount), timelock, 0)
            .with_token(token)
            .with_secret_hash(SecretHash(stored.secret_hash))
            .with_covered(is_covered(location, &stored, account, reading.vault.as_ref()));
        Ok((HtlcState::Locked(locked), Some(initiated)))
    }

    /// Returns the state of a swap whose account does not exist.
    fn closed(&self, reading: &Reading) -> Result<State, Pause> {
        if reading.signatures(&self.location, u64::MAX)?.is_unused() {
            return self.absent(reading);
        }
        let history = self.history(reading)?;
        let (is_initiated, is_incomplete) = (history.swap.is_initiated, history.swap.is_incomplete);
        Ok(match history.ended()? {
            Some(ended) => ended,
            None if is_initiated => unclear("the swap was initiated and its account is gone, and no transaction shows how it ended"),
            None if is_incomplete => unclear("transactions that name the swap account could not be read"),
            // Transactions name the account, but none of them funded the swap of the terms.
            None => return self.absent(reading),
        })
    }

    /// Returns that the swap was not funded, if the node has every block since the order was created. One that has dropped some lists nothing
    /// for a swap that has ended.
    fn absent(&self, reading: &Reading) -> Result<State, Pause> {
        let first = reading.first_block.ok_or(Pause::FirstBlock)?;
        // Without a time of creation, the node must have every block.
        let age = self.terms.created_at.map_or(Duration::MAX, |created| reading.clock.time.saturating_duration_since(created));
        let slots = age.as_millis().checked_div(self.terms.pace.counted(None).into()).and_then(|slots| u64::try_from(slots).ok());
        let since = reading.clock.slot.saturating_sub(slots.unwrap_or(u64::MAX)).saturating_sub(MAX_STEP_BACK);
        if first > since {
            return Ok(unclear("there is no swap account, and the node has dropped blocks that may show how the swap ended"));
        }
        Ok((HtlcState::Absent, None))
    }

    /// Returns the timelock and mint of the transaction that initiated a swap. Its arguments must match the contents of the swap account.
    fn initiation(&self, stored: &SwapAccount, reading: &Reading) -> Result<Option<(u64, Option<Address>)>, Pause> {
        // With the timelock of the terms, the slot follows from the expiry. With another one, a recent transaction must show it.
        let slot = stored.expiry.checked_sub(self.location.swap.timelock);
        let wanted = reading.signatures(&self.location, slot.unwrap_or(u64::MAX))?.of_slot(slot);
        reading.need(wanted.iter().copied())?;
        let mut failure = None;
        for found in wanted.into_iter().filter_map(|signature| reading.transactions.get(signature)) {
            match found {
                Ok(found) => {
                    if let Some(initiation) = found.as_ref().and_then(|transaction| transaction.initiation(&self.location, stored)) {
                        return Ok(Some(initiation));
                    }
                }
                Err(fault) => failure = failure.or(Some(fault)),
            }
        }
        failure.map_or(Ok(None), |fault| Err(fault.clone().into()))
    }

    /// Follows the transactions of the swap's account, beginning with the oldest, until one of them has ended the swap of the terms.
    fn history(&self, reading: &Reading) -> Result<History, Pause> {
        let signatures = reading.signatures(&self.location, 0)?;
        let (all, is_gap_before_newest) = signatures.oldest_first();
        let newest = all.len().saturating_sub(FIRST);
        // Most swaps have ended within the oldest ones, and the newest ones may reveal the secret.
        let first = all.iter().enumerate().filter(|(index, _)| *index < FIRST || *index >= newest);
        reading.need(first.map(|(_, signature)| *signature))?;
        let mut history = History { swap: SwapHistory::default(), failure: None };
        history.swap.is_incomplete = signatures.is_cut;
        for (index, signature) in all.iter().enumerate() {
            history.swap.is_incomplete |= is_gap_before_newest && index == newest;
            match reading.transactions.get(signature) {
                None => return Err(Pause::Transactions(reading.transactions.missing(all.iter().copied()))),
                Some(Ok(Some(transaction))) => {
                    if let Err(refusal) = history.swap.follow(&self.location, transaction) {
                        history.fail(refusal.with_prefix("/result").into());
                    }
                }
                Some(Ok(None)) => history.swap.is_incomplete = true,
                Some(Err(fault)) => history.fail(fault.clone()),
            }
            if history.swap.has_ended() {
                break;
            }
        }
        Ok(history)
    }
}

/// Returns whether the swap account or the vault holds the amount.
fn is_covered(location: &SwapLocation, stored: &SwapAccount, account: &Account, vault: Option<&Account>) -> bool {
    let Some(token) = location.htlc.token else { return account.lamports >= stored.amount };
    vault.and_then(Account::token).is_some_and(|vault| {
        vault.mint == token.mint && Some(vault.owner) == location.identity && !vault.is_frozen && vault.amount >= stored.amount
    })
}

/// The course of the swap of the terms, according to the transactions of one endpoint.
struct History {
    swap: SwapHistory,
    /// Why a transaction could not be read.
    failure: Option<Fault>,
}

impl History {
    fn fail(&mut self, fault: Fault) {
        self.swap.is_incomplete = true;
        self.failure.get_or_insert(fault);
    }

    /// Returns how the swap ended: see [`SwapHistory::ended`].
    ///
    /// # Errors
    ///
    /// The fault of a transaction that could not be read, if no other transaction decides.
    fn ended(self) -> Result<Option<State>, Fault> {
        match (self.swap.ended(), self.failure) {
            (None, Some(failure)) => Err(failure),
            (ended, _) => Ok(ended),
        }
    }
}
