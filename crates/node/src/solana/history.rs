//! The transactions of a swap account, which show how a swap was funded and how it ended.

use countersign::json::Node;
use countersign::solana::Address;
use countersign::solana::htlc::{Initiate, SolanaGeneration};
use countersign::solana::read::{self, ChainInstruction, StoredSwap, SwapLocation, SwapStep, TransactionRecord};
use countersign::{Code, HtlcState, Refusal, SecretHash};
use countersign_client::Transport;
use serde_json::json;

use super::{FINALIZED, account, base58, key, nth};
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
/// The maximum length of a transaction in bytes, which is the size of a packet.
const MAX_TRANSACTION: usize = 1_232;
/// The maximum number of instructions in one transaction, inner ones included.
const MAX_INSTRUCTIONS: usize = 512;
/// The maximum number of accounts in one transaction.
const MAX_KEYS: usize = 256;

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

/// What a transaction did to the swap; `None` if the endpoint no longer has the transaction.
type Steps = Result<Option<Vec<SwapStep>>, NodeError>;

/// Reads transactions in one request. If one of them cannot be read, the others still are.
async fn read<T: Transport>(caller: Caller<'_, T>, signatures: &[Signature], location: &SwapLocation) -> Result<Vec<Steps>, NodeError> {
    let options = json!({"encoding": "base64", "commitment": FINALIZED, "maxSupportedTransactionVersion": 0});
    let calls: Vec<_> = signatures.iter().map(|signature| Call::new("getTransaction", json!([signature.text, options]))).collect();
    let steps = |outcome: Result<Node<'_, '_>, NodeError>, signature| {
        let record = record(&outcome?, signature).map_err(|refusal| caller.malformed(refusal))?;
        Ok(record.map(|record| record.steps(location)))
    };
    caller
        .rpc_each(&calls, |outcomes| outcomes.into_iter().zip(signatures).map(|(outcome, signature)| steps(outcome, signature)).collect())
        .await
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
        for (steps, signature) in read(caller, batch, location).await?.into_iter().zip(batch) {
            let made = |step: &SwapStep| match step {
                SwapStep::Initiated { call, mint }
                    if (call.amount, call.redeemer, call.secret_hash) == (stored.amount, stored.redeemer, stored.secret_hash)
                        && signature.slot.checked_add(call.timelock) == Some(stored.expiry) =>
                {
                    Some((call.timelock, *mint))
                }
                _ => None,
            };
            match steps {
                Ok(steps) => {
                    if let Some(made) = steps.iter().flatten().rev().find_map(made) {
                        return Ok(Some(made));
                    }
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
    }
    failure.map_or(Ok(None), Err)
}

/// The course of the swap of the terms, according to the transactions that name its account.
#[derive(Default)]
pub(super) struct History {
    /// Whether the swap of the terms was initiated.
    pub(super) is_initiated: bool,
    /// Whether earlier transactions may be missing. One of them may have ended the swap.
    pub(super) is_incomplete: bool,
    /// How the swap ended, and in which slot.
    end: Option<(HtlcState, u64)>,
    /// A redemption that revealed the secret, but may have ended another swap at the same account.
    shown: Option<HtlcState>,
    /// Why a transaction could not be read.
    failure: Option<NodeError>,
}

impl History {
    /// Reads the transactions of a swap's account, beginning with the oldest. The first end after the initiation of the swap of the terms
    /// decides. Anything later at the same account concerns another swap.
    pub(super) async fn walk<T: Transport>(
        caller: Caller<'_, T>,
        location: &SwapLocation,
        signatures: &mut Signatures,
    ) -> Result<Self, NodeError> {
        signatures.extend(caller, location.swap_account, 0).await?;
        let (all, is_gap_before_last) = signatures.oldest_first();
        let mut history = Self { is_incomplete: signatures.is_cut, ..Self::default() };
        let mut batches = all.chunks(MAX_READ).peekable();
        while let Some(batch) = batches.next() {
            history.is_incomplete |= is_gap_before_last && batches.peek().is_none();
            let seen = match read(caller, batch, location).await {
                Ok(seen) => seen,
                Err(error) => {
                    history.fail(error);
                    break;
                }
            };
            for (steps, signature) in seen.into_iter().zip(batch) {
                history.follow(caller, location, signature, steps);
                if history.end.is_some() {
                    return Ok(history);
                }
            }
        }
        Ok(history)
    }

    /// Processes the next transaction.
    fn follow<T: Transport>(&mut self, caller: Caller<'_, T>, location: &SwapLocation, signature: &Signature, steps: Steps) {
        let steps = match steps {
            Ok(Some(steps)) => steps,
            Ok(None) => {
                self.is_incomplete = true;
                return;
            }
            Err(error) => return self.fail(error),
        };
        // In the audited generation, the account's address is derived from all terms, so every swap there has the terms.
        let is_bound = location.htlc.generation == SolanaGeneration::November2025;
        for step in steps {
            let decides = self.end.is_none() && !self.is_incomplete && (self.is_initiated || is_bound);
            let transaction = Some(signature.text.clone());
            let ended = match step {
                SwapStep::Initiated { call, mint } => {
                    // An open account cannot be created again, so the transaction that closed it is missing.
                    self.is_incomplete |= self.is_initiated;
                    self.is_initiated |= is_of_terms(location, &call, mint);
                    continue;
                }
                SwapStep::Refunded => HtlcState::Refunded { transaction },
                SwapStep::Redeemed { secret } if SecretHash::of(&secret).0 == location.swap.secret_hash => {
                    HtlcState::Redeemed { secret: Some(secret), transaction }
                }
                _ => {
                    let refusal = Refusal::new(Code::SecretWrong, "/result")
                        .with_reason("the swap was redeemed with a secret that does not match its hash");
                    return self.fail(caller.malformed(refusal));
                }
            };
            if decides {
                self.end = Some((ended, signature.slot));
            } else if self.end.is_none() && matches!(ended, HtlcState::Redeemed { .. }) {
                self.shown.get_or_insert(ended);
            }
        }
    }

    fn fail(&mut self, error: NodeError) {
        self.is_incomplete = true;
        self.failure.get_or_insert(error);
    }

    /// Returns how the swap ended and in which slot; `None` if the transactions do not show it. A redemption that may belong to another
    /// swap has no slot, so that it does not count as final. Its secret is public nevertheless.
    ///
    /// # Errors
    ///
    /// Returns the error of a transaction that could not be read, if no other transaction decides.
    pub(super) fn ended(&mut self) -> Result<Option<(HtlcState, Option<u64>)>, NodeError> {
        match (self.end.take(), self.shown.take(), self.failure.take()) {
            (Some((state, slot)), _, _) => Ok(Some((state, Some(slot)))),
            (None, Some(state), _) => Ok(Some((state, None))),
            (None, None, Some(failure)) => Err(failure),
            (None, None, None) => Ok(None),
        }
    }
}

/// Returns whether a call initiated a swap with the recipient, hash and token of the terms, and at least their amount. The timelock is not
/// compared. It has no effect on a swap that has ended, and an open account of the client's native program does not contain it either.
fn is_of_terms(location: &SwapLocation, call: &Initiate, mint: Option<Address>) -> bool {
    let swap = &location.swap;
    (call.redeemer, call.secret_hash, mint) == (swap.redeemer, swap.secret_hash, location.htlc.token.map(|token| token.mint))
        && call.amount >= swap.amount
}

/// Reads a transaction; `None` if the endpoint does not have it.
fn record(node: &Node<'_, '_>, signature: &Signature) -> Result<Option<TransactionRecord>, Refusal> {
    if node.is_null() {
        return Ok(None);
    }
    let members = node.object()?;
    let slot = members.need("slot")?;
    if slot.integer()? != signature.slot {
        return Err(slot.refuse(Code::TransactionMismatch).with_expected(signature.slot));
    }
    let (payload, meta) = (members.need("transaction")?, members.need("meta")?);
    let payload_parts = payload.array()?.next().ok_or_else(|| payload.refuse(Code::MissingField))?;
    let bytes = account::bytes(&payload_parts, MAX_TRANSACTION)?;
    let transaction = read::transaction(&bytes).ok_or_else(|| payload.at().refuse(Code::TransactionMalformed))?;
    if transaction.signatures.first().map(ToString::to_string).as_ref() != Some(&signature.text) {
        return Err(payload.at().refuse(Code::TransactionMismatch).with_expected(&signature.text));
    }
    let meta = meta.object()?;
    if meta.get("err").is_some() {
        return Err(members.need("meta")?.at().refuse(Code::TransactionMismatch).with_reason("the transaction failed"));
    }
    let message = &transaction.message;
    let mut keys = message.static_account_keys().to_vec();
    if let Some(loaded) = meta.get("loadedAddresses") {
        let loaded = loaded.object()?;
        for list in ["writable", "readonly"] {
            keys.extend(loaded.need(list)?.array()?.take(MAX_KEYS).map(|node| key(&node)).collect::<Result<Vec<_>, _>>()?);
        }
    }
    let mut called = inner(&meta.get("innerInstructions"), &keys)?;
    let mut instructions = Vec::new();
    for (index, outer) in message.instructions().iter().enumerate() {
        let resolved = ChainInstruction::resolve(&keys, outer.program_id_index, &outer.accounts, outer.data.clone());
        instructions.push(resolved.ok_or_else(|| payload.at().refuse(Code::TransactionMalformed))?);
        instructions.extend(called.iter_mut().filter(|(of, _)| *of == index).flat_map(|(_, all)| std::mem::take(all)));
    }
    Ok(Some(TransactionRecord::new(instructions)))
}

type Called = Vec<(usize, Vec<ChainInstruction>)>;

/// Reads the inner instructions, each group with the index of its outer instruction.
fn inner(node: &Option<Node<'_, '_>>, keys: &[Address]) -> Result<Called, Refusal> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let mut count = 0_usize;
    let mut read_one = |node: &Node<'_, '_>| {
        count = count.saturating_add(1);
        if count > MAX_INSTRUCTIONS {
            return Err(node.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_INSTRUCTIONS} instructions")));
        }
        let members = node.object()?;
        let index = |node: &Node<'_, '_>| u8::try_from(node.integer()?).map_err(|_| node.refuse(Code::NumberTooLarge));
        let accounts = members.need("accounts")?;
        let accounts = accounts.array()?.take(MAX_KEYS).map(|node| index(&node)).collect::<Result<Vec<_>, _>>()?;
        let data = members.need("data")?;
        // Data that is too long for an instruction of the HTLC is read as empty data, which is not an instruction of the HTLC either.
        let data = read::instruction_data(data.text()?).unwrap_or_default();
        ChainInstruction::resolve(keys, index(&members.need("programIdIndex")?)?, &accounts, data)
            .ok_or_else(|| node.at().refuse(Code::TransactionMalformed))
    };
    let mut called = Vec::new();
    for group in node.array()?.take(MAX_KEYS) {
        let members = group.object()?;
        let index = usize::try_from(members.need("index")?.integer()?).unwrap_or(usize::MAX);
        let list = members.need("instructions")?;
        called.push((index, list.array()?.map(|node| read_one(&node)).collect::<Result<Vec<_>, _>>()?));
    }
    Ok(called)
}
