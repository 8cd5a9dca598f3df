//! The transactions of a swap account, which show how a swap was funded and how it ended.

use countersign::json::Node;
use countersign::solana::Address;
use countersign::solana::read::{ChainTransaction, StoredSwap, SwapHistory, SwapLocation};
use countersign::{Code, HtlcState, Refusal};
use countersign_client::Transport;
use serde_json::json;

use super::{FINALIZED, base58, nth};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;

/// The maximum number of signatures in a page. Nodes return at most this many.
const MAX_SIGNATURES: usize = 1_000;
/// The maximum number of pages of signatures.
const MAX_PAGES: usize = 4;
/// The maximum number of transactions in one request. Providers limit the number of calls in a batch.
const MAX_READ: usize = 16;
/// The maximum number of requests for the transactions of one account.
const MAX_READS: usize = 16;
/// The maximum number of transactions of one account that are read.
const MAX_READ_IN_ALL: usize = MAX_READ * MAX_READS;

/// A transaction that names the swap account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) text: String,
    pub(super) slot: u64,
    pub(super) is_success: bool,
}

/// The transactions that name an account, newest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Signatures {
    all: Vec<Signature>,
    /// Whether there may be older transactions.
    is_cut: bool,
}

/// Creates the call that lists the finalized transactions that name an account: the newest ones, or those before a transaction.
pub(super) fn signatures(of: Address, before: Option<&str>) -> Call {
    let options = match before {
        None => json!({"limit": MAX_SIGNATURES, "commitment": FINALIZED}),
        Some(before) => json!({"limit": MAX_SIGNATURES, "commitment": FINALIZED, "before": before}),
    };
    Call::new("getSignaturesForAddress", json!([of.to_string(), options]))
}

impl Signatures {
    pub(super) fn read(node: &Node<'_, '_>) -> Result<Self, Refusal> {
        let all = node.array()?;
        let count = all.len();
        if count > MAX_SIGNATURES {
            return Err(node.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_SIGNATURES} signatures")).with_actual(count));
        }
        let all = all.map(|node| {
            let members = node.object()?;
            let text = base58(&members.need("signature")?, 64)?;
            Ok(Signature { text, slot: members.need("slot")?.integer()?, is_success: members.get("err").is_none() })
        });
        let all = all.collect::<Result<Vec<_>, Refusal>>()?;
        if !all.is_sorted_by(|newer, older| newer.slot >= older.slot) {
            return Err(node.at().refuse(Code::WrongType).with_expected("the newest first"));
        }
        Ok(Self { all, is_cut: count == MAX_SIGNATURES })
    }

    /// Reads older transactions until all those in or after a slot are listed, or there have been too many pages.
    pub(super) async fn extend<T: Transport>(&mut self, caller: Caller<'_, T>, of: Address, slot: u64) -> Result<(), NodeError> {
        for _ in 1..MAX_PAGES {
            let Some(oldest) = self.all.last().filter(|oldest| self.is_cut && oldest.slot >= slot).cloned() else { return Ok(()) };
            let read = |results: &[Node<'_, '_>]| {
                let node = nth(results, 0)?;
                let page = Self::read(node)?;
                if page.all.first().is_some_and(|newest| newest.slot > oldest.slot) {
                    return Err(node.at().refuse(Code::WrongType).with_expected("older transactions"));
                }
                Ok(page)
            };
            let page = caller.rpc(&[signatures(of, Some(&oldest.text))], read).await?;
            self.all.extend(page.all);
            self.is_cut = page.is_cut;
        }
        Ok(())
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
    fn of_slot(&self, slot: Option<u64>) -> Vec<Signature> {
        let there: Vec<_> = self.successful().filter(|signature| Some(signature.slot) == slot).take(MAX_READ_IN_ALL).cloned().collect();
        if there.is_empty() { self.successful().take(MAX_READ).cloned().collect() } else { there }
    }

    /// Returns the transactions to read, oldest first, and whether there is a gap before the last [`MAX_READ`] of them. The newest ones are
    /// always included, because they may reveal the secret.
    fn oldest_first(&self) -> (Vec<Signature>, bool) {
        let mut all: Vec<_> = self.successful().rev().cloned().collect();
        let is_too_long = all.len() > MAX_READ_IN_ALL;
        if is_too_long {
            let newest = all.split_off(all.len().saturating_sub(MAX_READ));
            all.truncate(MAX_READ_IN_ALL.saturating_sub(MAX_READ));
            all.extend(newest);
        }
        (all, is_too_long)
    }
}

/// A transaction; `None` if the endpoint no longer has it.
type Found = Result<Option<ChainTransaction>, NodeError>;

/// Reads transactions in one request. If one of them cannot be read, the others still are.
async fn read<T: Transport>(caller: Caller<'_, T>, signatures: &[Signature]) -> Result<Vec<Found>, NodeError> {
    let options = json!({"encoding": "base64", "commitment": FINALIZED, "maxSupportedTransactionVersion": 0});
    let calls: Vec<_> = signatures.iter().map(|signature| Call::new("getTransaction", json!([signature.text, options]))).collect();
    let found = |outcome: Result<Node<'_, '_>, NodeError>, signature| {
        transaction(&outcome?, signature).map_err(|refusal| caller.malformed(refusal))
    };
    caller
        .rpc_each(&calls, |outcomes| outcomes.into_iter().zip(signatures).map(|(outcome, signature)| found(outcome, signature)).collect())
        .await
}

/// Reads a transaction, which must be the requested one.
fn transaction(node: &Node<'_, '_>, signature: &Signature) -> Result<Option<ChainTransaction>, Refusal> {
    if node.is_null() {
        return Ok(None);
    }
    let transaction = ChainTransaction::read(node)?;
    let refuse = |member: &'static str| node.at().key(member).refuse(Code::TransactionMismatch);
    if transaction.slot != signature.slot {
        return Err(refuse("slot").with_expected(signature.slot));
    }
    if transaction.signature != signature.text {
        return Err(refuse("transaction").with_expected(&signature.text));
    }
    Ok(Some(transaction))
}

/// Reads the timelock and mint from the transaction that initiated a swap. Its arguments must match the contents of the swap account.
pub(super) async fn initiation<T: Transport>(
    caller: Caller<'_, T>,
    location: &SwapLocation,
    stored: &StoredSwap,
    signatures: &mut Signatures,
) -> Result<Option<(u64, Option<Address>)>, NodeError> {
    // With the timelock of the terms, the slot follows from the expiry. With another one, a recent transaction must show it.
    let slot = stored.expiry.checked_sub(location.swap.timelock);
    signatures.extend(caller, location.swap_account, slot.unwrap_or(u64::MAX)).await?;
    let mut failure = None;
    for batch in signatures.of_slot(slot).chunks(MAX_READ) {
        for found in read(caller, batch).await? {
            match found {
                Ok(found) => {
                    if let Some(initiation) = found.and_then(|transaction| transaction.initiation(location, stored)) {
                        return Ok(Some(initiation));
                    }
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
    }
    failure.map_or(Ok(None), Err)
}

/// The course of the swap of the terms, according to the transactions of one endpoint.
#[derive(Default)]
pub(super) struct History {
    pub(super) swap: SwapHistory,
    /// Why a transaction could not be read.
    failure: Option<NodeError>,
}

impl History {
    /// Reads the transactions of a swap's account, beginning with the oldest, until one of them has ended the swap of the terms.
    pub(super) async fn walk<T: Transport>(
        caller: Caller<'_, T>,
        location: &SwapLocation,
        signatures: &mut Signatures,
    ) -> Result<Self, NodeError> {
        signatures.extend(caller, location.swap_account, 0).await?;
        let (all, is_gap_before_last) = signatures.oldest_first();
        let mut history = Self { swap: SwapHistory::new(signatures.is_cut), failure: None };
        let mut batches = all.chunks(MAX_READ).peekable();
        while let Some(batch) = batches.next() {
            history.swap.is_incomplete |= is_gap_before_last && batches.peek().is_none();
            let found = match read(caller, batch).await {
                Ok(found) => found,
                Err(error) => {
                    history.fail(error);
                    break;
                }
            };
            for transaction in found {
                match transaction {
                    Ok(Some(transaction)) => {
                        let followed = history.swap.follow(location, &transaction);
                        if let Err(refusal) = followed {
                            history.fail(caller.malformed(refusal.under("/result")));
                        }
                    }
                    Ok(None) => history.swap.is_incomplete = true,
                    Err(error) => history.fail(error),
                }
                if history.swap.has_ended() {
                    return Ok(history);
                }
            }
        }
        Ok(history)
    }

    fn fail(&mut self, error: NodeError) {
        self.swap.is_incomplete = true;
        self.failure.get_or_insert(error);
    }

    /// Returns how the swap ended: see [`SwapHistory::ended`].
    ///
    /// # Errors
    ///
    /// Returns the error of a transaction that could not be read, if no other transaction decides.
    pub(super) fn ended(self) -> Result<Option<(HtlcState, Option<u64>)>, NodeError> {
        match (self.swap.ended(), self.failure) {
            (None, Some(failure)) => Err(failure),
            (ended, _) => Ok(ended),
        }
    }
}
