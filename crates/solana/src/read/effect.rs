//! What a node says that a transaction on chain did: the instructions that ran, with those that programs called.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::json::{Cursor, Members, Value};
use countersign_core::{Code, Refusal};
use solana_message::VersionedMessage;
use solana_message::compiled_instruction::CompiledInstruction;
use solana_signature::Signature;

use super::transaction::{ChainInstruction, MAX_DATA_TEXT, instruction_data};
use crate::address::{self, Address};
use crate::encoding;

/// Maximum length of the text of a transaction: base64 of the longest one, which has a message of version 1.
const MAX_TEXT: usize = encoding::MAX_BYTES_V1.div_ceil(3) * 4;
/// Maximum number of instructions in one transaction, inner ones included.
const MAX_INSTRUCTIONS: usize = 512;
/// How much is decoded from base58 in one transaction: the sum of the squares of the numbers of characters, because the time grows with the
/// square. It is enough for four instructions of the longest text, or for a thousand of 256 characters.
const MAX_DECODED: usize = 4 * MAX_DATA_TEXT * MAX_DATA_TEXT;
/// Maximum number of accounts in one transaction.
const MAX_KEYS: usize = 256;

/// What `getTransaction` returns, as far as it says what a transaction did. [`Deposit::find_payment`] reads it.
///
/// [`Deposit::find_payment`]: crate::Deposit::find_payment
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionEffect {
    /// The id of the transaction: its first signature.
    pub signature: Signature,
    /// Whether it succeeded. The network takes back everything that a failed transaction did.
    pub is_success: bool,
    /// The instructions, each followed by those that it called; empty if the transaction failed.
    pub instructions: Vec<ExecutedInstruction>,
}

/// An instruction that ran, and its place in the transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutedInstruction {
    /// Its place.
    pub place: InstructionPlace,
    /// What was called.
    pub instruction: ChainInstruction,
}

/// The place of an instruction. Its text is the location in the answer with the encoding `json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an instruction is in the message or called by one of the message")]
pub enum InstructionPlace {
    /// Of the message, by its index.
    Message(usize),
    /// Called by a program: the index of the group of inner instructions, and that in the group.
    Called(usize, usize),
}

impl fmt::Display for InstructionPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(index) => write!(f, "/transaction/message/instructions/{index}"),
            Self::Called(group, index) => write!(f, "/meta/innerInstructions/{group}/instructions/{index}"),
        }
    }
}

impl TransactionEffect {
    /// Decodes the answer to `getTransaction` with the encoding `base64`, `base58` or `json`.
    pub(crate) fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let (payload, meta) = (members.need("transaction")?, members.need("meta")?);
        let sent = if matches!(payload.value(), Value::Array(_)) { Sent::from_bytes(&payload)? } else { Sent::from_json(&payload)? };
        let Sent { signature, keys, loaded, instructions: own } = sent;
        let meta = meta.object()?;
        if error(&meta)?.is_some() {
            return Ok(Self { signature, is_success: false, instructions: Vec::new() });
        }
        let keys = with_loaded(keys, loaded, &meta)?;
        let resolve = |instruction: CompiledInstruction, place| {
            let CompiledInstruction { program_id_index, accounts, data } = instruction;
            let instruction = ChainInstruction::resolve(&keys, program_id_index, &accounts, data);
            let malformed = || Refusal::new(Code::TransactionMalformed, format!("{}{place}", cursor.at()));
            let instruction = instruction.ok_or_else(|| malformed().with_reason("an index is beyond the keys"))?;
            Ok::<_, Refusal>(ExecutedInstruction { place, instruction })
        };
        let mut called = called(&meta, own.len())?;
        let mut instructions = Vec::new();
        for (index, instruction) in own.into_iter().enumerate() {
            instructions.push(resolve(instruction, InstructionPlace::Message(index))?);
            for (group, (_, list)) in called.iter_mut().enumerate().filter(|(_, (of, _))| *of == index) {
                for (index, instruction) in std::mem::take(list).into_iter().enumerate() {
                    instructions.push(resolve(instruction, InstructionPlace::Called(group, index))?);
                }
            }
        }
        Ok(Self { signature, is_success: true, instructions })
    }
}

/// Returns why a transaction failed; `None` if it succeeded.
///
/// # Errors
///
/// [`Code::MissingField`] without the member `err`, because an answer that was cut says nothing.
pub(crate) fn error<'p, 'v>(members: &Members<'p, 'v>) -> Result<Option<Cursor<'p, 'v>>, Refusal> {
    if members.keys().any(|key| key == "err") { Ok(members.get("err")) } else { Err(members.at().key("err").refuse(Code::MissingField)) }
}

/// What was sent, as far as the effect needs it.
struct Sent {
    signature: Signature,
    /// The keys of the message.
    keys: Vec<Address>,
    /// How many writable and how many other keys are loaded from lookup tables.
    loaded: [usize; 2],
    instructions: Vec<CompiledInstruction>,
}

impl Sent {
    /// Reads the text of the bytes, and their encoding.
    fn from_bytes(payload: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let mut parts = payload.array()?;
        let text = parts.next().ok_or_else(|| payload.refuse(Code::MissingField))?;
        let is_base58 = parts.next().is_some_and(|encoding| encoding.text() == Ok("base58"));
        let bytes = bytes(&text, is_base58)?;
        let malformed = || payload.at().refuse(Code::TransactionMalformed);
        let transaction = encoding::read_whole(&bytes).ok_or_else(malformed)?;
        let signature = *transaction.signatures.first().ok_or_else(malformed)?;
        let (mut loaded, message) = ([0_usize; 2], &transaction.message);
        for table in message.address_table_lookups().unwrap_or_default() {
            let counts = [table.writable_indexes.len(), table.readonly_indexes.len()];
            loaded.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        let instructions = match &transaction.message {
            VersionedMessage::Legacy(message) => message.instructions.clone(),
            VersionedMessage::V0(message) => message.instructions.clone(),
            VersionedMessage::V1(message) => message.instructions.clone(),
        };
        Ok(Self { signature, keys: message.static_account_keys().to_vec(), loaded, instructions })
    }

    /// Reads the parts of the transaction, which are the same in every version.
    fn from_json(payload: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = payload.object()?;
        let signatures = members.need("signatures")?;
        let first = signatures.array()?.next().ok_or_else(|| signatures.refuse(Code::MissingField))?;
        let malformed = |_| first.refuse(Code::TransactionIdMalformed).with_expected("base58 of 64 bytes");
        let signature = first.text()?.parse().map_err(malformed)?;
        let message = members.need("message")?;
        let message = message.object()?;
        let parsed = |refusal: Refusal| refusal.with_reason("ask the node with \"encoding\": \"json\" or \"base64\", not \"jsonParsed\"");
        let keys = addresses(&message.need("accountKeys")?).map_err(parsed)?;
        let mut loaded = [0_usize; 2];
        if let Some(tables) = message.get("addressTableLookups") {
            for table in tables.array()?.take(MAX_KEYS) {
                let table = table.object()?;
                for (sum, list) in loaded.iter_mut().zip(["writableIndexes", "readonlyIndexes"]) {
                    *sum = sum.saturating_add(table.need(list)?.array()?.len());
                }
            }
        }
        let list = message.need("instructions")?;
        let instructions = Instructions::default().read(&list).map_err(parsed)?;
        Ok(Self { signature, keys, loaded, instructions })
    }
}

/// Decodes the bytes of a transaction.
fn bytes(cursor: &Cursor<'_, '_>, is_base58: bool) -> Result<Vec<u8>, Refusal> {
    let text = cursor.text()?;
    if text.len() > MAX_TEXT {
        return Err(cursor.at().refuse(Code::WrongType).with_expected(format!("at most {} bytes", encoding::MAX_BYTES_V1)));
    }
    let refuse = |expected: &'static str| cursor.refuse(Code::WrongType).with_expected(expected);
    if is_base58 { instruction_data(text).ok_or_else(|| refuse("base58")) } else { STANDARD.decode(text).map_err(|_| refuse("base64")) }
}

/// Reads a list of addresses.
fn addresses(list: &Cursor<'_, '_>) -> Result<Vec<Address>, Refusal> {
    let entries = list.array()?;
    if entries.len() > MAX_KEYS {
        return Err(list.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_KEYS} accounts")));
    }
    entries.map(|cursor| address::parse(cursor.text()?).map_err(|error| cursor.refuse(error))).collect()
}

/// Adds the keys that were loaded from lookup tables, which must be as many as the message names.
fn with_loaded(mut keys: Vec<Address>, named: [usize; 2], meta: &Members<'_, '_>) -> Result<Vec<Address>, Refusal> {
    let Some(cursor) = meta.get("loadedAddresses") else {
        let is_complete = named == [0; 2];
        return if is_complete { Ok(keys) } else { Err(meta.at().key("loadedAddresses").refuse(Code::MissingField)) };
    };
    let loaded = cursor.object()?;
    for (list, named) in ["writable", "readonly"].into_iter().zip(named) {
        let list = loaded.need(list)?;
        let loaded = addresses(&list)?;
        if loaded.len() != named {
            let refusal = list.at().refuse(Code::TransactionMalformed).with_reason("the lookup tables load another number of keys");
            return Err(refusal.with_expected(named.to_string()).with_actual(loaded.len()));
        }
        keys.extend(loaded);
    }
    Ok(keys)
}

/// Reads instructions up to their maximum number, and up to what is decoded of them.
#[derive(Default)]
struct Instructions {
    count: usize,
    /// What was decoded: see [`MAX_DECODED`].
    decoded: usize,
}

impl Instructions {
    fn read(&mut self, list: &Cursor<'_, '_>) -> Result<Vec<CompiledInstruction>, Refusal> {
        let instructions = list.array()?;
        self.count = self.count.saturating_add(instructions.len());
        if self.count > MAX_INSTRUCTIONS {
            return Err(list.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_INSTRUCTIONS} instructions")));
        }
        instructions.map(|cursor| self.instruction(&cursor)).collect()
    }

    fn instruction(&mut self, cursor: &Cursor<'_, '_>) -> Result<CompiledInstruction, Refusal> {
        let members = cursor.object()?;
        let index = |cursor: &Cursor<'_, '_>| u8::try_from(cursor.integer()?).map_err(|_| cursor.refuse(Code::NumberTooLarge));
        let accounts = members.need("accounts")?;
        let accounts = accounts.array()?.take(MAX_KEYS).map(|cursor| index(&cursor)).collect::<Result<Vec<_>, _>>()?;
        let data = members.need("data")?;
        let text = data.text()?;
        if text.len() <= MAX_DATA_TEXT {
            self.decoded = self.decoded.saturating_add(text.len().saturating_mul(text.len()));
        }
        if self.decoded > MAX_DECODED {
            return Err(data.at().refuse(Code::WrongType).with_expected("fewer instructions with long data"));
        }
        // Data that is too long for an instruction of the HTLC is read as empty data, which is not an instruction of the HTLC either.
        let data = instruction_data(text).unwrap_or_default();
        Ok(CompiledInstruction { program_id_index: index(&members.need("programIdIndex")?)?, accounts, data })
    }
}

/// Groups of instructions, each with the index of the instruction that called them.
type Called = Vec<(usize, Vec<CompiledInstruction>)>;

/// Reads the inner instructions of a transaction with this number of instructions.
fn called(meta: &Members<'_, '_>, count: usize) -> Result<Called, Refusal> {
    let Some(cursor) = meta.get("innerInstructions") else { return Ok(Vec::new()) };
    let mut instructions = Instructions::default();
    let group = |cursor: Cursor<'_, '_>| {
        let members = cursor.object()?;
        let index = members.need("index")?;
        let of = usize::try_from(index.integer()?).unwrap_or(usize::MAX);
        if of >= count {
            return Err(index.refuse(Code::TransactionMalformed).with_reason("the message has no instruction with this index"));
        }
        Ok((of, instructions.read(&members.need("instructions")?)?))
    };
    cursor.array()?.take(MAX_KEYS).map(group).collect()
}
