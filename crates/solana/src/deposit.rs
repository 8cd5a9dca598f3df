//! What a Solana order locks: its transactions, as the service proposed them.

use std::sync::Arc;

use solana_message::compiled_instruction::CompiledInstruction;

use crate::address::Address;
use crate::allowed::AllowedInstruction;
use crate::fees::FeeLimits;
use crate::htlc::{Htlc, Initiate, InitiateAccounts};
use crate::message::{Decoded, Layout};
use crate::wire::Encoding;

/// The deposit of an order: its verified transactions, and the terms that they lock.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct Deposit {
    /// The pinned program and token.
    pub htlc: Htlc,
    /// The account that locks the funds and receives a refund.
    pub owner: Address,
    /// The decoded arguments of the instruction that locks the funds.
    pub terms: Initiate,
    /// The swap account, which holds the state of the swap, and the lamports of a native swap.
    pub swap_account: Address,
    /// The transaction that the owner sends.
    pub transaction: ProposedTransaction,
    /// The transaction that the service sends; `None` if the order has no gasless path.
    pub gasless: Option<ProposedTransaction>,
    /// Whether the registry pins the sponsors of the chain, which pay for gasless transactions.
    pub sponsor_pinned: bool,
    /// The policy's limits for a priority fee that the wallet sets.
    pub(crate) fee_limits: FeeLimits,
}

/// A transaction as the service proposed it.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct ProposedTransaction {
    /// The decoded transaction.
    pub decoded: Arc<Decoded>,
    /// The text form of the transaction in the response.
    pub encoding: Encoding,
    /// The account that pays fees and rent: the owner, or the sponsor of a gasless transaction.
    pub fee_payer: Address,
    /// Whether the owner's slot contained a valid signature of this message. If so, the message must not be changed.
    pub owner_signed: bool,
    /// What each instruction does, in order.
    pub instructions: Vec<ProposedInstruction>,
    /// The accounts of the HTLC's instruction.
    pub accounts: InitiateAccounts,
    /// Index of the owner's signature slot.
    pub(crate) owner_slot: usize,
    /// The byte ranges of its parts.
    pub(crate) layout: Layout,
}

/// The kind of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProposedInstruction {
    /// Locks the funds.
    Initiate,
    /// Another instruction, which the policy allows.
    Allowed(AllowedInstruction),
}

impl ProposedInstruction {
    /// Returns the allowed instruction; `None` for the HTLC's own.
    pub(crate) const fn allowed(&self) -> Option<&AllowedInstruction> {
        match self {
            Self::Initiate => None,
            Self::Allowed(allowed) => Some(allowed),
        }
    }
}

impl ProposedTransaction {
    /// Returns the bytes of the transaction as the service sent it, for `signTransaction` of an external wallet.
    /// [`VerifiedOrder::matches`](crate::VerifiedOrder) compares the transaction that the wallet returns with the order.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.decoded.bytes()
    }

    /// Returns the instructions other than the HTLC's own, in order.
    pub fn allowed(&self) -> impl Iterator<Item = &AllowedInstruction> {
        self.instructions.iter().filter_map(ProposedInstruction::allowed)
    }

    /// Returns the HTLC's instruction.
    pub(crate) fn initiate(&self) -> Option<&CompiledInstruction> {
        let instructions = self.instructions.iter().zip(self.decoded.transaction.message.instructions());
        instructions.into_iter().find_map(|(kind, instruction)| (*kind == ProposedInstruction::Initiate).then_some(instruction))
    }
}
