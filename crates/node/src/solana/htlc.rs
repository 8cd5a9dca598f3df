//! Reads the state of one swap from every endpoint.

use countersign::solana::address::to_account;
use countersign::solana::read::{self, CLOCK, Clock, StoredSwap, SwapLocation};
use countersign::{Code, HtlcState, HtlcTerms, LockedHtlc, Refusal, SecretHash, SeenAt, U256};
use countersign_client::Transport;
use serde_json::json;

use super::account::{self, Account, Accounts};
use super::history::{self, History, Signatures};
use super::{CONFIRMED, FINALIZED, MAX_STEP_BACK, SolanaChain};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::nodes::Head;
use crate::quorum::{Sighting, agree, combine};

/// Where a swap is stored, and the terms that it must have.
struct OrderQuery<'t> {
    terms: &'t HtlcTerms,
    location: SwapLocation,
}

/// What one endpoint reports.
struct View {
    /// The state with an elapsed time of 0. The elapsed time differs between endpoints, so it is kept apart.
    state: HtlcState,
    /// The slot of the transaction that led to the state; `None` if it is not known.
    origin: Option<u64>,
    /// The SHA-256 hash of the swap account's address and contents, which all endpoints must agree on.
    digest: [u8; 32],
    clock: Clock,
    /// The newest confirmed slot.
    newest: u64,
}

impl View {
    fn sighting(self) -> Sighting {
        let head = Head::new(self.clock.slot, hex::encode(self.digest), self.clock.time);
        let since = |slot: u64| self.origin.map_or(0, |origin| slot.saturating_sub(origin));
        let is_finalized = self.origin.is_some();
        let (depth, elapsed) = (since(self.clock.slot.saturating_add(1)), since(self.newest));
        Sighting { state: self.state, head, depth, elapsed, is_safe: is_finalized, is_finalized }
    }
}

/// The finalized accounts of a swap, and the transactions that name it.
struct Reading {
    clock: Clock,
    newest: u64,
    swap: Option<Account>,
    vault: Option<Account>,
    /// Some endpoints do not list signatures. They are not needed for an open swap whose account contains all terms.
    signatures: Result<Signatures, NodeError>,
}

impl Reading {
    fn signatures(&mut self) -> Result<&mut Signatures, NodeError> {
        self.signatures.as_mut().map_err(|error| error.clone())
    }
}

impl<'n, T: Transport> SolanaChain<'n, T> {
    /// Reads the state of one swap from every endpoint, at the endpoint's newest finalized slot. The endpoints must agree.
    ///
    /// A swap is locked if its account belongs to the pinned program and has the layout of the pinned generation. Accounts of the client
    /// generation do not contain the timelock and, for tokens, the mint. For a native swap, only the remaining time matters, and the
    /// account contains the slot of expiry. For a token swap, both come from the transaction that initiated the swap.
    ///
    /// If the account is gone, holds less than the terms, or pays another recipient, the transactions show how the swap of the terms
    /// ended. If none of them shows it, a swap whose account is gone is [`HtlcState::Unclear`]. A redemption that may have ended another
    /// swap at the same account is not marked as final.
    ///
    /// [`SeenAt::height`] is the finalized slot. [`SeenAt::hash`] is the SHA-256 hash of the swap account's address and contents at that
    /// slot. It is used instead of a blockhash, because endpoints are at different slots and looking up a block takes another round
    /// trip, while the contents of a finalized account are the same for all of them.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the terms are invalid. Returns another [`NodeError`] if no endpoint answers or too few of them
    /// agree. The state is then unknown.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        let query = OrderQuery { terms, location: SwapLocation::new(terms)? };
        let views = self.connection.each(|caller| self.view(caller, &query)).await;
        let needed = self.connection.needed();
        let views = agree(views, needed, |view| (view.state.clone(), view.origin, view.digest))?;
        let sightings = views.into_iter().map(View::sighting).collect();
        combine(sightings, needed).ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }

    async fn view(&self, caller: Caller<'n, T>, query: &OrderQuery<'_>) -> Result<View, NodeError> {
        self.identify(caller).await?;
        let mut reading = read(caller, &query.location).await?;
        caller.check_height(reading.clock.slot, MAX_STEP_BACK)?;
        let (state, origin) = match reading.swap.clone().filter(|swap| !swap.is_unused()) {
            Some(swap) => open(caller, query, &swap, &mut reading).await?,
            None => closed(caller, &query.location, reading.signatures()?).await?,
        };
        let data = reading.swap.as_ref().map(|swap| swap.data.as_slice()).unwrap_or_default();
        let digest = read::digest(&query.location.swap_account, data);
        Ok(View { state, origin, digest, clock: reading.clock, newest: reading.newest.max(reading.clock.slot) })
    }
}

/// Reads the accounts of a swap, and the signatures of the transactions that name it, in one request.
async fn read<T: Transport>(caller: Caller<'_, T>, location: &SwapLocation) -> Result<Reading, NodeError> {
    let keys: Vec<_> = [CLOCK, location.swap_account].into_iter().chain(location.vault).collect();
    let calls = [
        account::get(&keys, FINALIZED, caller.min_height(MAX_STEP_BACK)),
        Call::new("getSlot", json!([{"commitment": CONFIRMED}])),
        history::signatures(location.swap_account, None),
    ];
    caller
        .rpc_each(&calls, |outcomes| {
            let Ok([accounts, newest, signatures]) = <[_; 3]>::try_from(outcomes) else {
                return Err(caller.malformed(Refusal::new(Code::MissingField, "/result")));
            };
            let (accounts, newest) = (accounts?, newest?);
            let malformed = |refusal| caller.malformed(refusal);
            let accounts = Accounts::read(&accounts, keys.len()).map_err(malformed)?;
            Ok(Reading {
                clock: accounts.clock().map_err(malformed)?,
                newest: newest.integer().map_err(malformed)?,
                swap: accounts.get(1).cloned(),
                vault: accounts.get(2).cloned(),
                signatures: signatures.and_then(|node| Signatures::read(&node).map_err(malformed)),
            })
        })
        .await?
}

type State = (HtlcState, Option<u64>);

fn unclear(why: impl Into<String>) -> State {
    (HtlcState::Unclear(why.into()), None)
}

/// Returns the state of a swap whose account exists.
async fn open<T: Transport>(
    caller: Caller<'_, T>,
    query: &OrderQuery<'_>,
    account: &Account,
    reading: &mut Reading,
) -> Result<State, NodeError> {
    let (location, terms) = (&query.location, query.terms);
    let htlc = &location.htlc;
    if account.owner != htlc.program {
        return Ok(unclear("the swap account belongs to another program"));
    }
    let stored = match read::swap_account(&account.data) {
        Ok(stored) => stored,
        Err(why) => return Ok(unclear(why.to_string())),
    };
    if stored.generation != htlc.generation || stored.is_token != htlc.token.is_some() {
        return Ok(unclear("the swap account belongs to another generation of the program than the pinned one"));
    }
    let (timelock, mint) = match stored.timelock {
        Some(timelock) => (timelock, stored.mint),
        // The client's native program stores the slot of expiry, but not the timelock.
        None if htlc.token.is_none() => (terms.timelock, None),
        None => match history::initiation(caller, location, &stored, reading.signatures()?).await? {
            Some(initiated) => initiated,
            None => return Ok(unclear("no transaction shows how the swap was initiated")),
        },
    };
    // An account that was created again may hide how the swap of the terms ended.
    if !location.is_of_terms(&stored, mint)
        && let Some(ended) = History::walk(caller, location, reading.signatures()?).await?.ended()?
    {
        return Ok(ended);
    }
    let Some(initiated) = stored.expiry.checked_sub(timelock) else { return Ok(unclear("the swap's timelock is longer than the chain")) };
    if initiated > reading.clock.slot {
        if stored.timelock.is_none() && htlc.token.is_none() {
            return Ok(unclear("the swap's timelock is longer than that of the terms"));
        }
        let refusal = Refusal::new(Code::NumberTooLarge, "/result").with_reason("the swap was initiated after the newest slot");
        return Err(caller.malformed(refusal));
    }
    let token = mint.map(|mint| match htlc.token {
        Some(token) if token.mint == mint => terms.token.clone().unwrap_or_default(),
        _ => mint.to_string(),
    });
    let locked = LockedHtlc::new(to_account(stored.initiator), to_account(stored.redeemer), U256::from(stored.amount), timelock, 0)
        .with_token(token)
        .with_secret_hash(SecretHash(stored.secret_hash))
        .with_covered(is_covered(location, &stored, account, reading.vault.as_ref()));
    Ok((HtlcState::Locked(locked), Some(initiated)))
}

/// Returns whether the swap account or the vault holds the amount.
fn is_covered(location: &SwapLocation, stored: &StoredSwap, account: &Account, vault: Option<&Account>) -> bool {
    let Some(token) = location.htlc.token else { return account.lamports >= stored.amount };
    vault.and_then(Account::token).is_some_and(|vault| {
        vault.mint == token.mint && Some(vault.owner) == location.identity && !vault.is_frozen && vault.amount >= stored.amount
    })
}

/// Returns the state of a swap whose account does not exist.
async fn closed<T: Transport>(caller: Caller<'_, T>, location: &SwapLocation, signatures: &mut Signatures) -> Result<State, NodeError> {
    if signatures.is_unused() {
        return Ok((HtlcState::Absent, None));
    }
    let history = History::walk(caller, location, signatures).await?;
    let (is_initiated, is_incomplete) = (history.swap.is_initiated, history.swap.is_incomplete);
    Ok(match history.ended()? {
        Some(ended) => ended,
        None if is_initiated => unclear("the swap was initiated and its account is gone, and no transaction shows how it ended"),
        None if is_incomplete => unclear("transactions that name the swap account could not be read"),
        // Transactions name the account, but none of them funded the swap of the terms.
        None => (HtlcState::Absent, None),
    })
}
