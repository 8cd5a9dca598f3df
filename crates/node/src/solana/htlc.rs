//! The state of one swap, as every endpoint tells it.

use countersign::solana::address::to_account;
use countersign::solana::read::{self, CLOCK, Clock, StoredSwap, SwapLocation, SwapStep};
use countersign::{Code, HtlcState, HtlcTerms, LockedHtlc, Refusal, SecretHash, SeenAt, U256};
use countersign_client::Transport;
use serde_json::json;

use super::account::{self, Account, Accounts};
use super::history::{self, MAX_READ, Seen, Signatures};
use super::{CONFIRMED, FINALIZED, MAX_STEP_BACK, SolanaChain};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::nodes::Head;
use crate::quorum::{Sighting, agree, combine};

/// Where a swap is, and what it must be.
struct Question<'t> {
    terms: &'t HtlcTerms,
    location: SwapLocation,
}

/// What one endpoint says.
struct View {
    /// With 0 in place of what has passed of the timelock, which differs from endpoint to endpoint.
    state: HtlcState,
    /// The slot that made the state; `None` where it is not known.
    origin: Option<u64>,
    /// What the swap account holds; all endpoints on the right chain have the same.
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

/// The finalized accounts of one reading.
struct Reading {
    clock: Clock,
    newest: u64,
    swap: Option<Account>,
    vault: Option<Account>,
    /// Some endpoints keep no list of them. An open swap that says everything itself needs none.
    signatures: Result<Signatures, NodeError>,
}

impl<'n, T: Transport> SolanaChain<'n, T> {
    /// Reads the state of one swap from every endpoint, at its newest finalized slot.
    ///
    /// A swap is locked if its account is of the pinned program, in the layout of the pinned generation. The client generation
    /// stores neither timelock nor mint: they are those of the transaction that initiated the swap. Where there is no account
    /// any more, the transactions tell how the swap ended; if none does, the state is [`HtlcState::Unclear`].
    ///
    /// [`SeenAt::height`] is the finalized slot, and [`SeenAt::hash`] the SHA-256 of the swap account's address and contents at that
    /// slot. Endpoints have different newest slots, whose blockhashes differ, and to look up a block by its slot takes one more round
    /// trip; what a finalized account holds is the same for all of them.
    ///
    /// # Errors
    ///
    /// [`NodeError`]; a failed read tells nothing.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        let question = Question { terms, location: SwapLocation::new(terms)? };
        let views = self.connection.each(|caller| self.view(caller, &question)).await;
        let needed = self.connection.needed();
        let views = agree(views, needed, |view| (view.state.clone(), view.origin, view.digest))?;
        let sightings = views.into_iter().map(View::sighting).collect();
        combine(sightings, needed).ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }

    async fn view(&self, caller: Caller<'n, T>, question: &Question<'_>) -> Result<View, NodeError> {
        self.identify(caller).await?;
        let reading = read(caller, &question.location).await?;
        caller.check_height(reading.clock.slot, MAX_STEP_BACK)?;
        let (state, origin) = match reading.swap.as_ref().filter(|swap| !swap.is_unused()) {
            Some(swap) => open(caller, question, swap, &reading).await?,
            None => closed(caller, question, &reading.signatures?).await?,
        };
        let data = reading.swap.as_ref().map(|swap| swap.data.as_slice()).unwrap_or_default();
        let digest = read::digest(&question.location.swap_account, data);
        Ok(View { state, origin, digest, clock: reading.clock, newest: reading.newest.max(reading.clock.slot) })
    }
}

/// Reads the accounts of a swap, and which transactions name it, in one request.
async fn read<T: Transport>(caller: Caller<'_, T>, location: &SwapLocation) -> Result<Reading, NodeError> {
    let keys: Vec<_> = [CLOCK, location.swap_account].into_iter().chain(location.vault).collect();
    let calls = [
        account::get(&keys, FINALIZED, caller.least_height(MAX_STEP_BACK)),
        Call::new("getSlot", json!([{"commitment": CONFIRMED}])),
        history::signatures(location.swap_account),
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

/// Judges the account of a swap that has not ended.
async fn open<T: Transport>(
    caller: Caller<'_, T>,
    question: &Question<'_>,
    account: &Account,
    reading: &Reading,
) -> Result<State, NodeError> {
    let (location, terms) = (&question.location, question.terms);
    let htlc = &location.htlc;
    if account.owner != htlc.program {
        return Ok(unclear("the swap account belongs to another program"));
    }
    let stored = match read::swap_account(&account.data) {
        Ok(stored) => stored,
        Err(why) => return Ok(unclear(why.to_string())),
    };
    if stored.generation != htlc.generation || stored.is_token != htlc.token.is_some() {
        return Ok(unclear("the swap account is of another generation of the program than the pinned one"));
    }
    let (timelock, mint) = match stored.timelock {
        Some(timelock) => (timelock, stored.mint),
        // The client generation stores neither.
        None => match initiated(caller, location, &stored, &reading.signatures.clone()?).await? {
            Some(initiated) => initiated,
            None => return Ok(unclear("no transaction shows how the swap was initiated")),
        },
    };
    let initiated = stored.expiry.saturating_sub(timelock);
    if initiated > reading.clock.slot {
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

/// Returns whether the tokens or lamports are there.
fn is_covered(location: &SwapLocation, stored: &StoredSwap, account: &Account, vault: Option<&Account>) -> bool {
    let Some(token) = location.htlc.token else { return account.lamports >= stored.amount };
    vault.and_then(Account::token).is_some_and(|vault| {
        vault.mint == token.mint && Some(vault.owner) == location.identity && !vault.is_frozen && vault.amount >= stored.amount
    })
}

type Initiated = (u64, Option<countersign::solana::Address>);

/// Returns timelock and mint from the transaction that initiated the swap: its arguments give the account's contents.
async fn initiated<T: Transport>(
    caller: Caller<'_, T>,
    location: &SwapLocation,
    stored: &StoredSwap,
    signatures: &Signatures,
) -> Result<Option<Initiated>, NodeError> {
    // If the timelock is the one of the terms, the slot is known. If not, one of the newest transactions says so.
    let candidates = signatures.of_slot(stored.expiry.checked_sub(location.swap.timelock));
    let seen = history::read(caller, candidates, location).await?;
    let found = seen.into_iter().find_map(|Seen { signature, steps }| {
        let made = |step: SwapStep| match step {
            SwapStep::Initiated { call, mint }
                if (call.amount, call.redeemer, call.secret_hash) == (stored.amount, stored.redeemer, stored.secret_hash)
                    && signature.slot.checked_add(call.timelock) == Some(stored.expiry) =>
            {
                Some((call.timelock, mint))
            }
            _ => None,
        };
        steps.unwrap_or_default().into_iter().rev().find_map(made)
    });
    Ok(found)
}

/// Finds out how a swap without an account ended.
async fn closed<T: Transport>(caller: Caller<'_, T>, question: &Question<'_>, signatures: &Signatures) -> Result<State, NodeError> {
    if signatures.successful.is_empty() && !signatures.is_cut {
        return Ok((HtlcState::Absent, None));
    }
    let seen = history::read(caller, signatures.newest(), &question.location).await?;
    for Seen { signature, steps } in seen {
        let Some(steps) = steps else { return Ok(unclear("an endpoint no longer has a transaction of the swap")) };
        let transaction = Some(signature.text);
        let state = match steps.into_iter().next_back() {
            None => continue,
            Some(SwapStep::Redeemed { secret }) if SecretHash::of(&secret) == question.terms.secret_hash => {
                HtlcState::Redeemed { secret: Some(secret), transaction }
            }
            Some(SwapStep::Refunded) => HtlcState::Refunded { transaction },
            Some(SwapStep::Redeemed { .. }) => {
                let refusal =
                    Refusal::new(Code::SecretWrong, "/result").with_reason("a secret that is not that of the swap has redeemed it");
                return Err(caller.malformed(refusal));
            }
            Some(_) => return Ok(unclear("the swap was initiated, and its account is gone")),
        };
        return Ok((state, Some(signature.slot)));
    }
    if signatures.is_cut || signatures.successful.len() > MAX_READ {
        // Anybody can name the account, and bury how the swap ended. A redemption among the oldest transactions made the secret public,
        // whatever followed. A refund there may be that of an earlier swap at the same account.
        let seen = history::read(caller, signatures.oldest(), &question.location).await?;
        let redeemed =
            |step: &SwapStep| matches!(step, SwapStep::Redeemed { secret } if SecretHash::of(secret) == question.terms.secret_hash);
        for Seen { signature, steps } in seen {
            if let Some(SwapStep::Redeemed { secret }) = steps.unwrap_or_default().into_iter().find(redeemed) {
                let state = HtlcState::Redeemed { secret: Some(secret), transaction: Some(signature.text) };
                return Ok((state, Some(signature.slot)));
            }
        }
        return Ok(unclear("many transactions name the swap account, and none of those that were read says how the swap ended"));
    }
    // Somebody named the account, but no transaction ever funded a swap there.
    Ok((HtlcState::Absent, None))
}
