//! Solana: the swap account, and the transactions that name it.

use countersign::solana::Address;
use countersign::solana::address::{SYSTEM_PROGRAM, to_account};
use countersign::solana::read::{self, ChainTransaction, StoredSwap, SwapHistory, SwapLocation};
use countersign::{Code, HtlcState, HtlcTerms, LockedHtlc, Refusal, SecretHash, U256};
use countersign_core::json::{Members, Node};

use super::{AHEAD, base64, holds, unclear};

/// The transactions that name a swap account, the oldest first.
type Transactions = Vec<ChainTransaction>;

/// Returns the swap account, and the vault of its token.
pub(super) fn accounts(terms: &HtlcTerms) -> Result<(Option<String>, Option<String>), Refusal> {
    let location = SwapLocation::new(terms)?;
    Ok((Some(location.swap_account.to_string()), location.vault.map(|vault| vault.to_string())))
}

pub(super) fn state(terms: &HtlcTerms, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    members.only(&["owner", "data", "holds", "slot", "transactions"])?;
    let location = SwapLocation::new(terms)?;
    let transactions = members.get("transactions").map(|list| read_transactions(&list)).transpose()?;
    let (Some(owner), Some(data)) = (members.get("owner"), members.get("data")) else {
        return closed(&location, members, transactions.as_ref());
    };
    let data = base64(&data)?;
    // Anybody can send lamports to the address of a closed account.
    if data.is_empty() && owner.text()? == SYSTEM_PROGRAM.to_string() {
        return closed(&location, members, transactions.as_ref());
    }
    if owner.text()? != location.htlc.program.to_string() {
        return Ok(unclear("the swap account belongs to another program"));
    }
    let stored = match read::swap_account(&data) {
        Ok(stored) => stored,
        Err(why) => return Ok(unclear(why)),
    };
    if stored.generation != location.htlc.generation || stored.is_token != location.htlc.token.is_some() {
        return Ok(unclear("the swap account is of another generation of the program than the pinned one"));
    }
    let Some((timelock, mint)) = initiation(terms, &location, &stored, transactions.as_ref()) else {
        return Ok(unclear("contracts of this generation do not store the timelock: only the transaction that initiated the swap has it"));
    };
    // An account that was made again can hide how the swap of the terms ended.
    if !location.is_of_terms(&stored, mint)
        && let Some(transactions) = &transactions
        && let Some((ended, _)) = follow(&location, members, transactions)?.ended()
    {
        return Ok(ended);
    }
    let Some(initiated_at) = stored.expiry.checked_sub(timelock) else {
        return Ok(unclear("the swap's timelock is longer than the chain"));
    };
    let Some(elapsed) = members.need("slot")?.integer()?.checked_sub(initiated_at) else { return Ok(unclear(AHEAD)) };
    let (initiator, redeemer) = (to_account(stored.initiator), to_account(stored.redeemer));
    let token = mint.map(|mint| match location.htlc.token {
        Some(token) if token.mint == mint => terms.token.clone().unwrap_or_default(),
        _ => mint.to_string(),
    });
    let locked = LockedHtlc::new(initiator, redeemer, U256::from(stored.amount), timelock, elapsed)
        .with_token(token)
        .with_secret_hash(SecretHash(stored.secret_hash))
        .with_covered(holds(members)? >= U256::from(stored.amount));
    Ok(HtlcState::Locked(locked))
}

/// Returns the timelock and mint of an open swap. In the client generation, the account of lamports has the slot of expiry and no timelock,
/// so that of the terms counts; the account of a token has neither, and the transaction that initiated the swap shows both.
fn initiation(
    terms: &HtlcTerms,
    location: &SwapLocation,
    stored: &StoredSwap,
    transactions: Option<&Transactions>,
) -> Option<(u64, Option<Address>)> {
    match stored.timelock {
        Some(timelock) => Some((timelock, stored.mint)),
        None if location.htlc.token.is_none() => Some((terms.timelock, None)),
        None => transactions?.iter().rev().find_map(|transaction| transaction.initiation(location, stored)),
    }
}

/// Returns the state of a swap whose account does not exist.
fn closed(location: &SwapLocation, members: &Members<'_, '_>, transactions: Option<&Transactions>) -> Result<HtlcState, Refusal> {
    let Some(transactions) = transactions else {
        return Ok(unclear(
            "the swap account does not exist: the swap was never funded, or it has ended, and only the account's transactions show which",
        ));
    };
    let history = follow(location, members, transactions)?;
    let is_initiated = history.is_initiated;
    Ok(match history.ended() {
        Some((ended, _)) => ended,
        None if is_initiated => unclear("the swap was initiated and its account is gone, and no transaction shows how it ended"),
        // Transactions name the account, but none of them funded the swap of the terms.
        None => HtlcState::Absent,
    })
}

fn follow(location: &SwapLocation, members: &Members<'_, '_>, transactions: &Transactions) -> Result<SwapHistory, Refusal> {
    let mut history = SwapHistory::new(false);
    for transaction in transactions {
        history.follow(location, transaction).map_err(|refusal| refusal.under(&members.at().key("transactions").to_string()))?;
        if history.has_ended() {
            break;
        }
    }
    Ok(history)
}

fn read_transactions(list: &Node<'_, '_>) -> Result<Transactions, Refusal> {
    let all: Transactions = list.array()?.map(|node| ChainTransaction::read(&node)).collect::<Result<_, _>>()?;
    if !all.is_sorted_by_key(|transaction| transaction.slot) {
        return Err(list.at().refuse(Code::WrongType).with_expected("the oldest first"));
    }
    Ok(all)
}
