//! What a transaction on chain did to a swap: its instructions, including those called by programs, and its events.

use solana_message::VersionedMessage;
use solana_transaction::versioned::VersionedTransaction;

use super::{SwapLocation, Unclear, part};
use crate::address::Address;
use crate::encoding;
use crate::htlc::{INITIATE, Initiate, REDEEM, REFUND};

/// `sha256("global:instant_refund")[..8]`
const INSTANT_REFUND: [u8; 8] = [0xd3, 0xca, 0x67, 0x29, 0xb7, 0x93, 0x3b, 0xfb];
/// `sha256("event:Redeemed")[..8]`
const REDEEMED: [u8; 8] = [0x0e, 0x1d, 0xb7, 0x47, 0x1f, 0xa5, 0x6b, 0x26];
/// `sha256("event:Refunded")[..8]`
const REFUNDED: [u8; 8] = [0x23, 0x67, 0x95, 0xf6, 0xc4, 0x7b, 0xdd, 0x63];
/// `sha256("event:InstantRefunded")[..8]`
const INSTANT_REFUNDED: [u8; 8] = [0xdc, 0x32, 0x12, 0xcf, 0xb7, 0xe8, 0xda, 0x19];

/// An instruction with addresses in place of indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainInstruction {
    /// The program that is called.
    pub program: Address,
    /// The accounts of the instruction, in order.
    pub accounts: Vec<Address>,
    /// The data of the instruction.
    pub data: Vec<u8>,
}

impl ChainInstruction {
    /// Replaces the indexes of an instruction with addresses; `None` if an index is beyond `keys`.
    #[must_use]
    pub fn resolve(keys: &[Address], program: u8, accounts: &[u8], data: Vec<u8>) -> Option<Self> {
        let key = |index: &u8| keys.get(usize::from(*index)).copied();
        Some(Self { program: key(&program)?, accounts: accounts.iter().map(key).collect::<Option<_>>()?, data })
    }
}

/// The instructions of a transaction that succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TransactionRecord {
    /// The instructions, each followed by the instructions that it called.
    pub instructions: Vec<ChainInstruction>,
}

/// What an instruction did to a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SwapStep {
    /// The swap was funded.
    Initiated {
        /// The arguments of the instruction.
        call: Initiate,
        /// The mint of the token; `None` for lamports.
        mint: Option<Address>,
    },
    /// The swap was redeemed.
    Redeemed {
        /// The secret in the instruction.
        secret: [u8; 32],
    },
    /// The swap was refunded, after its timelock or with the redeemer's consent.
    Refunded,
}

impl TransactionRecord {
    /// Creates a record from the instructions in the order in which they ran.
    #[must_use]
    pub const fn new(instructions: Vec<ChainInstruction>) -> Self {
        Self { instructions }
    }

    /// Returns what the transaction did to a swap, in order.
    #[must_use]
    pub fn steps(&self, location: &SwapLocation) -> Vec<SwapStep> {
        self.instructions.iter().filter_map(|instruction| step(instruction, location)).collect()
    }
}

/// Returns what an instruction did to a swap; `None` if it calls another program or is about another swap.
fn step(instruction: &ChainInstruction, location: &SwapLocation) -> Option<SwapStep> {
    let htlc = &location.htlc;
    // The SPL program names its identity account first.
    let swap_account = instruction.accounts.get(usize::from(htlc.token.is_some()));
    if instruction.program != htlc.program || swap_account != Some(&location.swap_account) {
        return None;
    }
    let (discriminator, arguments) = instruction.data.split_first_chunk::<8>()?;
    match *discriminator {
        INITIATE => {
            let call = Initiate::read(&instruction.data, htlc)?;
            let mint = htlc.token.and_then(|_| instruction.accounts.get(5).copied());
            Some(SwapStep::Initiated { call, mint })
        }
        // The program reads its arguments from the front and ignores any bytes after them.
        REDEEM => arguments.first_chunk().map(|secret| SwapStep::Redeemed { secret: *secret }),
        REFUND | INSTANT_REFUND => Some(SwapStep::Refunded),
        _ => None,
    }
}

/// The longest text of an instruction's data that is decoded.
pub(super) const MAX_DATA_TEXT: usize = 4_096;

/// Decodes the data of an instruction from base58, the form in which nodes return it. `None` for invalid text, or for more than 4,096
/// characters, because the time grows with the square of the length.
#[must_use]
pub fn instruction_data(text: &str) -> Option<Vec<u8>> {
    if text.len() > MAX_DATA_TEXT { None } else { bs58::decode(text).into_vec().ok() }
}

/// Decodes the bytes of a transaction with a legacy message, or one of version 0 or 1; `None` for anything else, also for a message of
/// version 1 above the network's limits: 4,096 bytes, 12 signers, 64 keys, 64 instructions.
#[must_use]
pub fn transaction(bytes: &[u8]) -> Option<VersionedTransaction> {
    let is_small = |transaction: &VersionedTransaction| {
        !matches!(transaction.message, VersionedMessage::V1(_)) || bytes.len() <= encoding::MAX_BYTES_V1
    };
    encoding::read_whole(bytes).filter(|transaction| is_small(transaction) && encoding::exceeded(&transaction.message).is_none())
}

/// Returns the bytes of a transaction, which nodes accept.
#[must_use]
pub fn transaction_bytes(transaction: &VersionedTransaction) -> Vec<u8> {
    encoding::write(&transaction.signatures, &transaction.message.serialize())
}

/// An event of the HTLC that ends a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SwapEvent {
    /// A swap was redeemed.
    Redeemed {
        /// The account that would have received a refund.
        initiator: Address,
        /// The secret.
        secret: [u8; 32],
    },
    /// A swap was refunded, after its timelock or with the redeemer's consent.
    Refunded {
        /// The account that received the refund.
        initiator: Address,
        /// SHA-256 of the secret.
        secret_hash: [u8; 32],
    },
}

/// Decodes an event, which a program writes to its log as `Program data: ` and base64; `None` for an event that does not end a swap.
///
/// | | client | native, audited | SPL, audited |
/// |---|---|---|---|
/// | length | 72 | 120 | 152 |
/// | initiator, or refundee | 8..40 | 40..72 | 72..104 |
/// | secret or secret hash | 40..72 | 72..104 | 104..136 |
///
/// Any program can write such a line. It counts only between the log lines that report that the HTLC was invoked and that it returned.
///
/// # Errors
///
/// [`Unclear`] if the event has another length.
pub fn event(data: &[u8]) -> Result<Option<SwapEvent>, Unclear> {
    let Some(discriminator @ (REDEEMED | REFUNDED | INSTANT_REFUNDED)) = data.first_chunk::<8>().copied() else { return Ok(None) };
    let unknown = Unclear("an event of the HTLC has an unknown layout");
    let (party, hash) = match data.len() {
        72 => (8..40, 40..72),
        120 => (40..72, 72..104),
        152 => (72..104, 104..136),
        _ => return Err(unknown),
    };
    let (Some(party), Some(hash)) = (part::<32>(data, party), part(data, hash)) else { return Err(unknown) };
    let initiator = Address::from(party);
    Ok(Some(match discriminator {
        REDEEMED => SwapEvent::Redeemed { initiator, secret: hash },
        _ => SwapEvent::Refunded { initiator, secret_hash: hash },
    }))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn discriminators_are_hashes_of_names() {
        for (name, discriminator) in [
            ("global:instant_refund", INSTANT_REFUND),
            ("event:Redeemed", REDEEMED),
            ("event:Refunded", REFUNDED),
            ("event:InstantRefunded", INSTANT_REFUNDED),
            ("account:SwapAccount", super::super::SWAP_ACCOUNT),
        ] {
            assert_eq!(Sha256::digest(name).get(..8), Some(discriminator.as_slice()), "{name}");
        }
    }
}
