//! Transactions and their messages, decoded to the last byte. There is no typed data on Solana: the gasless path is a second
//! transaction, which the owner and the service both sign.
//!
//! | bytes | |
//! |---|---|
//! | count, 64 each | signature slots, in the order of the first keys |
//! | `80`, if version 0 | first byte of the message, which is what is signed |
//! | 3 | required signatures, how many of these keys are read-only, how many other keys are read-only |
//! | count, 32 each | account keys: writable signers, read-only signers, other writable keys, other read-only keys |
//! | 32 | recent blockhash |
//! | count | instructions: program index, count and account indexes, count and data |
//! | count, if version 0 | lookup tables |
//!
//! Counts are compact-u16. Layout: <https://solana.com/docs/core/transactions>
//!
//! A message of version 1 comes before the signatures, has no compact-u16 and no lookup tables, and contains the limits that older
//! messages set with instructions of the compute budget program. Integers are little-endian:
//!
//! | bytes | |
//! |---|---|
//! | `81` | first byte of the message and of the transaction |
//! | 3 | required signatures, how many of these keys are read-only, how many other keys are read-only |
//! | 4 | mask: which limits follow |
//! | 32 | recent blockhash |
//! | 1, 1 | number of instructions, number of keys |
//! | 32 each | account keys, in the same order |
//! | 8, 4, 4, 4 | if bits 0 and 1 are set: the priority fee in lamports; bit 2: compute units; bit 3: bytes of loaded accounts; bit 4: bytes of heap |
//! | 4 each | instructions: program index, number of accounts, length of the data in 2 bytes |
//! | | accounts and data of each instruction |
//! | 64 each | signature slots, without a count |
//!
//! Layout: <https://github.com/solana-foundation/solana-improvement-documents/blob/main/proposals/0385-transaction-v1.md>
//!
//! Specification: `docs/spec/solana.md#payload`.

use std::ops::Range;

use countersign_core::json::At;
use countersign_core::{Code, Refusal};
use solana_message::compiled_instruction::CompiledInstruction;
use solana_message::{VersionedMessage, v1};
use solana_transaction::versioned::VersionedTransaction;

use crate::address::Address;
use crate::{encoding, lighthouse};

/// Where a message of version 1 has the mask of its limits.
const MASK: Range<usize> = 4..8;

/// A decoded transaction and the bytes of its message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Decoded {
    /// The transaction.
    pub transaction: VersionedTransaction,
    /// The bytes of the message, which are signed.
    pub message: Vec<u8>,
}

impl Decoded {
    /// Returns the bytes of the whole transaction.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        encoding::write(&self.transaction.signatures, &self.message)
    }
}

/// The byte ranges of the parts of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Offset of the first signature slot.
    pub(crate) slots: usize,
    /// The three counts of the header.
    pub(crate) header: Range<usize>,
    /// The limits that the message contains; `None` before version 1.
    pub(crate) config: Option<ConfigLayout>,
    /// Offset of the first key.
    pub(crate) keys: usize,
    pub(crate) blockhash: Range<usize>,
    pub(crate) instructions: Vec<InstructionLayout>,
    /// The count of lookup tables and the tables; empty in a legacy message.
    pub(crate) lookups: Range<usize>,
    pub(crate) end: usize,
}

/// The byte ranges of the limits in a message of version 1. The range of a limit that is not set is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigLayout {
    pub(crate) mask: Range<usize>,
    pub(crate) priority_fee: Range<usize>,
    pub(crate) compute_unit_limit: Range<usize>,
    pub(crate) loaded_accounts_data_size_limit: Range<usize>,
    pub(crate) heap_size: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstructionLayout {
    /// The whole instruction, in version 1 without accounts and data. Its first byte is the program index.
    pub(crate) whole: Range<usize>,
    pub(crate) accounts: Range<usize>,
    pub(crate) data: Range<usize>,
}

impl InstructionLayout {
    /// Returns the byte range of a field of the data.
    pub(crate) const fn field(&self, field: &Range<usize>) -> Range<usize> {
        self.data.start.saturating_add(field.start)..self.data.start.saturating_add(field.end)
    }
}

impl Layout {
    /// Returns the byte range of a key.
    pub(crate) const fn key(&self, index: usize) -> Range<usize> {
        let start = self.keys.saturating_add(index.saturating_mul(32));
        start..start.saturating_add(32)
    }

    /// Returns the byte range of a signature slot.
    pub(crate) const fn slot(&self, index: usize) -> Range<usize> {
        let start = self.slots.saturating_add(index.saturating_mul(64));
        start..start.saturating_add(64)
    }
}

/// Returns a refusal located at a range of bytes.
pub(crate) fn refuse(at: &At<'_>, code: Code, range: &Range<usize>) -> Refusal {
    at.refuse_bytes(code, range.start, range.end)
}

/// Decodes a transaction. Encoding the result with Solana's own library must give the same bytes.
pub(crate) fn decode(mut bytes: Vec<u8>, at: &At<'_>) -> Result<(Decoded, Layout), Refusal> {
    let malformed = |start, end| at.refuse_bytes(Code::TransactionMalformed, start, end);
    let count = *bytes.first().ok_or_else(|| malformed(0, 0))?;
    let version = |place: usize| {
        at.refuse_bytes(Code::MessageVersion, place, place.saturating_add(1)).with_expected("a legacy message, or one of version 0 or 1")
    };
    let is_first = count == encoding::VERSION_1;
    let start = if is_first { 0 } else { usize::from(count).saturating_mul(64).saturating_add(1) };
    if is_first {
        // A count of signatures with this value would be followed by zeros.
        if bytes.get(1) == Some(&0) {
            return Err(version(0).with_actual("a message of version 1 without signers"));
        }
        // Solana's library would leave out what it does not know.
        let mask = bytes.get(MASK).and_then(|mask| mask.try_into().ok()).map(|mask| v1::TransactionConfigMask(u32::from_le_bytes(mask)));
        if mask.is_some_and(|mask| mask.has_unknown_bits() || mask.has_invalid_priority_fee_bits()) {
            return Err(malformed(MASK.start, MASK.end).with_reason("the mask has unknown bits, or one of the two of the priority fee"));
        }
    } else if count & 0x80 != 0 {
        return Err(version(0).with_actual(format!("first byte {count:#04x}")));
    } else {
        let prefix = *bytes.get(start).ok_or_else(|| malformed(0, bytes.len()))?;
        if prefix & 0x80 != 0 && prefix != 0x80 {
            return Err(version(start).with_actual(format!("version {} after the signatures", prefix & 0x7f)));
        }
    }
    let transaction = encoding::read(&bytes).ok_or_else(|| malformed(0, bytes.len()))?;
    let message = transaction.message.serialize();
    let again = encoding::write(&transaction.signatures, &message);
    if again != bytes {
        let same = again.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
        return Err(if same == again.len() {
            at.refuse_bytes(Code::TransactionTrailing, same, bytes.len())
        } else {
            at.refuse_bytes(Code::TransactionMalformed, same, same.saturating_add(1)).with_reason("Solana's own encoding differs here")
        });
    }
    let layout = layout(&transaction, start, bytes.len());
    if let Some(reason) = encoding::exceeded(&transaction.message) {
        return Err(refuse(at, Code::TransactionMalformed, &layout.header).with_reason(reason));
    }
    if is_first {
        return Ok((Decoded { transaction, message }, layout));
    }
    bytes.drain(..start);
    Ok((Decoded { transaction, message: bytes }, layout))
}

/// Takes the next bytes from a position.
fn take(position: &mut usize, len: usize) -> Range<usize> {
    let from = *position;
    *position = from.saturating_add(len);
    from..*position
}

/// Computes the byte ranges of the parts. The encoding is canonical, so the width of each count follows from its value.
fn layout(transaction: &VersionedTransaction, start: usize, end: usize) -> Layout {
    let message = &transaction.message;
    let mut position = match message {
        VersionedMessage::Legacy(_) => start,
        VersionedMessage::V0(_) => start.saturating_add(1),
        VersionedMessage::V1(message) => return layout_v1(message, end),
    };
    let mut take = |len: usize| take(&mut position, len);
    let header = take(3);
    let count = message.static_account_keys().len();
    take(width(count));
    let keys = take(count.saturating_mul(32)).start;
    let blockhash = take(32);
    take(width(message.instructions().len()));
    let mut instructions = Vec::with_capacity(message.instructions().len());
    for instruction in message.instructions() {
        let program = take(1);
        take(width(instruction.accounts.len()));
        let accounts = take(instruction.accounts.len());
        take(width(instruction.data.len()));
        let data = take(instruction.data.len());
        instructions.push(InstructionLayout { whole: program.start..data.end, accounts, data });
    }
    let lookups = position..end;
    Layout { slots: 1, header, config: None, keys, blockhash, instructions, lookups, end }
}

fn layout_v1(message: &v1::Message, end: usize) -> Layout {
    let mut position = 1;
    let mut take = |len: usize| take(&mut position, len);
    let (header, mask, blockhash) = (take(3), take(4), take(32));
    take(2);
    let keys = take(message.account_keys.len().saturating_mul(32)).start;
    let limits = &message.config;
    let mut value = |is_set: bool, len: usize| take(if is_set { len } else { 0 });
    let config = ConfigLayout {
        mask,
        priority_fee: value(limits.priority_fee.is_some(), 8),
        compute_unit_limit: value(limits.compute_unit_limit.is_some(), 4),
        loaded_accounts_data_size_limit: value(limits.loaded_accounts_data_size_limit.is_some(), 4),
        heap_size: value(limits.heap_size.is_some(), 4),
    };
    let headers: Vec<_> = message.instructions.iter().map(|_| take(4)).collect();
    let payload = |(instruction, whole): (&CompiledInstruction, _)| {
        let (accounts, data) = (take(instruction.accounts.len()), take(instruction.data.len()));
        InstructionLayout { whole, accounts, data }
    };
    let instructions = message.instructions.iter().zip(headers).map(payload).collect();
    let lookups = position..position;
    Layout { slots: position, header, config: Some(config), keys, blockhash, instructions, lookups, end }
}

/// Returns the number of bytes of a compact-u16.
const fn width(count: usize) -> usize {
    match count {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => 3,
    }
}

/// Returns whether a key signs, and whether it is writable.
pub(crate) fn flags(message: &VersionedMessage, index: usize) -> (bool, bool) {
    let header = message.header();
    let [signers, read_signers, read_others] =
        [header.num_required_signatures, header.num_readonly_signed_accounts, header.num_readonly_unsigned_accounts].map(usize::from);
    let signer = index < signers;
    let written =
        if signer { signers.saturating_sub(read_signers) } else { message.static_account_keys().len().saturating_sub(read_others) };
    (signer, index < written)
}

/// Describes what an instruction does, for the refusal of one that does not belong in the transaction.
pub(crate) fn describe_instruction(program: &Address, data: &[u8]) -> String {
    let text = program.to_string();
    let tag = data.get(..4).and_then(|tag| tag.try_into().ok()).map(u32::from_le_bytes);
    let first = data.first().copied();
    let (program, what) = match text.as_str() {
        "11111111111111111111111111111111" => (
            "System",
            match tag {
                Some(0) => "CreateAccount",
                Some(1) => "Assign",
                Some(2) => "Transfer",
                Some(3) => "CreateAccountWithSeed",
                Some(4) => "AdvanceNonceAccount",
                Some(5) => "WithdrawNonceAccount",
                Some(6) => "InitializeNonceAccount",
                Some(7) => "AuthorizeNonceAccount",
                Some(8) => "Allocate",
                Some(9) => "AllocateWithSeed",
                Some(10) => "AssignWithSeed",
                Some(11) => "TransferWithSeed",
                Some(12) => "UpgradeNonceAccount",
                _ => "an unknown instruction",
            },
        ),
        "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA" | "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb" => (
            "Token",
            match first {
                Some(3) => "Transfer",
                Some(4) => "Approve",
                Some(5) => "Revoke",
                Some(6) => "SetAuthority",
                Some(7) => "MintTo",
                Some(8) => "Burn",
                Some(9) => "CloseAccount",
                Some(10) => "FreezeAccount",
                Some(11) => "ThawAccount",
                Some(12) => "TransferChecked",
                Some(13) => "ApproveChecked",
                Some(15) => "BurnChecked",
                Some(17) => "SyncNative",
                _ => "another instruction",
            },
        ),
        "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL" => (
            "AssociatedToken",
            match first {
                None | Some(0) => "Create",
                Some(1) => "CreateIdempotent",
                Some(2) => "RecoverNested",
                _ => "an unknown instruction",
            },
        ),
        "ComputeBudget111111111111111111111111111111" => (
            "ComputeBudget",
            match first {
                Some(1) => "RequestHeapFrame",
                Some(2) => "SetComputeUnitLimit",
                Some(3) => "SetComputeUnitPrice",
                Some(4) => "SetLoadedAccountsDataSizeLimit",
                _ => "an unknown instruction",
            },
        ),
        "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr" | "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo" => ("Memo", "a memo"),
        "L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95" => ("Lighthouse", lighthouse::name(data).unwrap_or("an unknown instruction")),
        "Stake11111111111111111111111111111111111111" => ("Stake", "an instruction"),
        "Vote111111111111111111111111111111111111111" => ("Vote", "an instruction"),
        "BPFLoaderUpgradeab1e11111111111111111111111" => ("BPF loader", "an instruction"),
        other => (other, "an instruction"),
    };
    format!("{what} of the program {program}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_compact_u16() {
        assert_eq!([0, 0x7f, 0x80, 0x3fff, 0x4000, 0xffff].map(width), [1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn newer_messages_are_refused_by_their_own_code() {
        let code = |bytes: &[u8]| decode(bytes.to_vec(), &At::root("")).unwrap_err().code();
        assert_eq!(code(&[0x80, 1, 0, 0]), Code::MessageVersion);
        assert_eq!(code(&[0x82, 1, 0, 0]), Code::MessageVersion);
        assert_eq!(code(&[0x81, 0, 0, 0]), Code::MessageVersion);
        assert_eq!(code(&[0x81, 1, 0, 0]), Code::TransactionMalformed);
        let mut newer = [0; 80];
        newer[0] = 1;
        newer[65] = 0x81;
        assert_eq!(code(&newer), Code::MessageVersion);
        assert_eq!(code(&[]), Code::TransactionMalformed);
        assert_eq!(code(&[1, 2, 3]), Code::TransactionMalformed);
    }
}
