//! The transactions of a swap account: how a swap was funded, and how it ended.

use countersign::json::Node;
use countersign::solana::Address;
use countersign::solana::read::{self, ChainInstruction, SwapLocation, SwapStep, TransactionRecord};
use countersign::{Code, Refusal};
use countersign_client::Transport;
use serde_json::json;

use super::{FINALIZED, account, base58, key, nth};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;

/// Most signatures that are listed: the most that nodes give.
const MAX_SIGNATURES: usize = 1_000;
/// Most transactions that are read.
pub(super) const MAX_READ: usize = 16;
/// The size of a packet, which a transaction fits into.
const MAX_TRANSACTION: usize = 1_232;
/// Most instructions of one transaction, those that programs call included.
const MAX_INSTRUCTIONS: usize = 512;
/// Most accounts of one transaction.
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
    /// Those that succeeded.
    pub(super) successful: Vec<Signature>,
    /// Whether there may be older ones.
    pub(super) is_cut: bool,
}

/// Asks for the finalized transactions that name an account.
pub(super) fn signatures(of: Address) -> Call {
    Call::new("getSignaturesForAddress", json!([of.to_string(), {"limit": MAX_SIGNATURES, "commitment": FINALIZED}]))
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
        Ok(Self { successful: all.into_iter().filter(|signature| signature.is_success).collect(), is_cut: count == MAX_SIGNATURES })
    }

    /// Returns the transactions that can have initiated a swap in this slot; if there is none, the newest ones.
    pub(super) fn of_slot(&self, slot: Option<u64>) -> Vec<Signature> {
        let there: Vec<_> = self.successful.iter().filter(|signature| Some(signature.slot) == slot).take(MAX_READ).cloned().collect();
        if there.is_empty() { self.newest() } else { there }
    }

    /// Returns the oldest transactions beyond the newest ones.
    pub(super) fn oldest(&self) -> Vec<Signature> {
        let older = self.successful.get(MAX_READ..).unwrap_or_default();
        older.iter().rev().take(MAX_READ).cloned().collect()
    }

    /// Returns the newest transactions.
    pub(super) fn newest(&self) -> Vec<Signature> {
        self.successful.iter().take(MAX_READ).cloned().collect()
    }
}

/// What a transaction did to the swap, and where it is.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) signature: Signature,
    /// `None` if the endpoint does not have the transaction any more.
    pub(super) steps: Option<Vec<SwapStep>>,
}

/// Reads transactions, in one request.
pub(super) async fn read<T: Transport>(
    caller: Caller<'_, T>,
    signatures: Vec<Signature>,
    location: &SwapLocation,
) -> Result<Vec<Seen>, NodeError> {
    if signatures.is_empty() {
        return Ok(Vec::new());
    }
    let options = json!({"encoding": "base64", "commitment": FINALIZED, "maxSupportedTransactionVersion": 0});
    let calls: Vec<_> = signatures.iter().map(|signature| Call::new("getTransaction", json!([signature.text, options]))).collect();
    caller
        .rpc(&calls, |results| {
            let seen = signatures.into_iter().enumerate().map(|(index, signature)| {
                let steps = record(nth(results, index)?, &signature)?.map(|record| record.steps(location));
                Ok(Seen { signature, steps })
            });
            seen.collect()
        })
        .await
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
        return Err(members.need("meta")?.at().refuse(Code::TransactionMismatch).with_reason("the transaction has failed"));
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

/// Reads the instructions that programs called, by the index of the outer one.
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
        // What is too long to be an instruction of the HTLC is read as one without data, which is none of the HTLC either.
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
