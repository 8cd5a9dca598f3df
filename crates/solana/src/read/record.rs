//! Transactions in the JSON form of `getTransaction`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::json::Cursor;
use countersign_core::{Code, Refusal};

use super::transaction::{ChainInstruction, TransactionRecord, instruction_data};
use crate::address::{self, Address};
use crate::encoding;

/// Maximum length of the text of a transaction: base64 of the longest one, which has a message of version 1.
const MAX_TEXT: usize = encoding::MAX_BYTES_V1.div_ceil(3) * 4;
/// Maximum number of instructions in one transaction, inner ones included.
const MAX_INSTRUCTIONS: usize = 512;
/// Maximum number of accounts in one transaction.
const MAX_KEYS: usize = 256;

/// A transaction that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainTransaction {
    /// Its id: the first signature, in base58.
    pub signature: String,
    /// The slot of its block.
    pub slot: u64,
    /// What it did.
    pub record: TransactionRecord,
}

impl ChainTransaction {
    /// Decodes the answer to `getTransaction` with the encoding `base64`.
    ///
    /// # Errors
    ///
    /// [`Refusal`] at the member that is missing or malformed, or that says that the transaction failed.
    pub fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let slot = members.need("slot")?.integer()?;
        let (payload, meta) = (members.need("transaction")?, members.need("meta")?);
        let part = payload.array()?.next().ok_or_else(|| payload.refuse(Code::MissingField))?;
        let transaction = bytes(&part)?;
        let malformed = || payload.at().refuse(Code::TransactionMalformed);
        let transaction = encoding::read_whole(&transaction).ok_or_else(malformed)?;
        let signature = transaction.signatures.first().ok_or_else(malformed)?.to_string();
        if let Some(error) = meta.object()?.get("err") {
            return Err(error.at().refuse(Code::TransactionMismatch).with_reason("the transaction failed"));
        }
        let meta = meta.object()?;
        let message = &transaction.message;
        let mut keys = message.static_account_keys().to_vec();
        if let Some(loaded) = meta.get("loadedAddresses") {
            let loaded = loaded.object()?;
            for list in ["writable", "readonly"] {
                let list = loaded.need(list)?;
                let key = |cursor: Cursor<'_, '_>| address::parse(cursor.text()?).map_err(|error| cursor.refuse(error));
                keys.extend(list.array()?.take(MAX_KEYS).map(key).collect::<Result<Vec<_>, _>>()?);
            }
        }
        let mut called = inner(meta.get("innerInstructions").as_ref(), &keys)?;
        let mut instructions = Vec::new();
        for (index, outer) in message.instructions().iter().enumerate() {
            let resolved = ChainInstruction::resolve(&keys, outer.program_id_index, &outer.accounts, outer.data.clone());
            instructions.push(resolved.ok_or_else(malformed)?);
            instructions.extend(called.iter_mut().filter(|(of, _)| *of == index).flat_map(|(_, all)| std::mem::take(all)));
        }
        Ok(Self { signature, slot, record: TransactionRecord::new(instructions) })
    }
}

/// Decodes the bytes of a transaction from base64.
fn bytes(cursor: &Cursor<'_, '_>) -> Result<Vec<u8>, Refusal> {
    let text = cursor.text()?;
    if text.len() > MAX_TEXT {
        return Err(cursor.at().refuse(Code::WrongType).with_expected(format!("at most {} bytes", encoding::MAX_BYTES_V1)));
    }
    STANDARD.decode(text).map_err(|_| cursor.refuse(Code::WrongType).with_expected("base64"))
}

type Called = Vec<(usize, Vec<ChainInstruction>)>;

/// Reads the inner instructions, each group with the index of its outer instruction.
fn inner(cursor: Option<&Cursor<'_, '_>>, keys: &[Address]) -> Result<Called, Refusal> {
    let Some(cursor) = cursor else { return Ok(Vec::new()) };
    let mut count = 0_usize;
    let mut read_one = |cursor: &Cursor<'_, '_>| {
        count = count.saturating_add(1);
        if count > MAX_INSTRUCTIONS {
            return Err(cursor.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_INSTRUCTIONS} instructions")));
        }
        let members = cursor.object()?;
        let index = |cursor: &Cursor<'_, '_>| u8::try_from(cursor.integer()?).map_err(|_| cursor.refuse(Code::NumberTooLarge));
        let accounts = members.need("accounts")?;
        let accounts = accounts.array()?.take(MAX_KEYS).map(|cursor| index(&cursor)).collect::<Result<Vec<_>, _>>()?;
        let data = members.need("data")?;
        // Data that is too long for an instruction of the HTLC is read as empty data, which is not an instruction of the HTLC either.
        let data = instruction_data(data.text()?).unwrap_or_default();
        ChainInstruction::resolve(keys, index(&members.need("programIdIndex")?)?, &accounts, data)
            .ok_or_else(|| cursor.at().refuse(Code::TransactionMalformed))
    };
    let mut called = Vec::new();
    for group in cursor.array()?.take(MAX_KEYS) {
        let members = group.object()?;
        let index = usize::try_from(members.need("index")?.integer()?).unwrap_or(usize::MAX);
        let list = members.need("instructions")?;
        called.push((index, list.array()?.map(|cursor| read_one(&cursor)).collect::<Result<Vec<_>, _>>()?));
    }
    Ok(called)
}
