//! The way out from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these transactions and pays only their fee; the funds go to the redeemer or the initiator that the
//! program stored. Whether a refund is due is for the caller to see on chain: the slot is above the swap's expiry slot.
//!
//! The SPL program gives the rent back to the sponsor of the swap, which no record names: it is the owner where the owner
//! sent the ordinary transaction, else the gasless transaction's fee payer.

pub use countersign_core::Leg;
use countersign_core::chains::{Network, swap_id as formula};
use countersign_core::number::bare_hex_array;
use countersign_core::wire::OrderRecord;
use countersign_core::{Code, Family, Refusal, Registry, Side, U256};
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_message::{Message, VersionedMessage};
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

use crate::address::{self, Address};
use crate::htlc::{Htlc, Swap, Token};
use crate::verify::token_program;

/// A recovery instruction, ready to be given a fee payer and a blockhash.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recovery {
    /// The instruction; nobody but the fee payer signs.
    pub instruction: Instruction,
    /// Holds the swap's state.
    pub swap_account: Address,
    /// The record's id of the swap.
    pub swap_id: [u8; 32],
    /// Whether the record's other fields give that id. On a network whose number is not certain a mismatch is no
    /// refusal: simulate first, because a redeem that fails has shown the secret to everybody all the same.
    pub swap_id_recomputed: bool,
    /// Who gets the funds.
    pub to: Address,
    /// Base units.
    pub amount: U256,
}

impl Recovery {
    /// A transaction that `fee_payer` signs; its message is legacy, which every wallet can sign.
    #[must_use]
    pub fn prepare(&self, fee_payer: Address, recent_blockhash: Hash) -> VersionedTransaction {
        let message = Message::new_with_blockhash(std::slice::from_ref(&self.instruction), Some(&fee_payer), &recent_blockhash);
        let slots = usize::from(message.header.num_required_signatures);
        VersionedTransaction { signatures: vec![Signature::default(); slots], message: VersionedMessage::Legacy(message) }
    }
}

/// The swap id of a Solana side of a record, and whether its fields give it.
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the id is not 64 hex digits, or another than the formula's on a network whose number a live
/// record has confirmed; and what [`Side::of`] refuses.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<([u8; 32], bool), Refusal> {
    recompute(&Side::of(record, leg, registry, Family::Solana)?)
}

/// The transaction that redeems a side with the secret. `sponsor` is who paid the rent of an SPL swap, the initiator if
/// none is given.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`fn@swap_id`].
pub fn redeem(
    record: &OrderRecord,
    leg: Leg,
    secret: &[u8; 32],
    sponsor: Option<Address>,
    registry: &Registry,
) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry, Family::Solana)?;
    side.check_secret(secret)?;
    recovery(&side, |htlc, swap| (htlc.redeem(swap, sponsor.unwrap_or(swap.initiator), secret), swap.redeemer))
}

/// The transaction that refunds a side after its timelock. `sponsor` as for [`redeem`].
///
/// # Errors
///
/// As [`fn@swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, sponsor: Option<Address>, registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry, Family::Solana)?;
    recovery(&side, |htlc, swap| (htlc.refund(swap, sponsor.unwrap_or(swap.initiator)), swap.initiator))
}

fn recompute(side: &Side<'_>) -> Result<([u8; 32], bool), Refusal> {
    let Network::Solana(cluster) = &side.asset.chain.network else { return Err(side.refuse(Code::Internal, "chain")) };
    let id = bare_hex_array(&side.swap.swap_id)
        .map_err(|code| side.refuse(Code::RecordSwapId, "swap_id").with_reason(code.meaning()).with_actual(&side.swap.swap_id))?;
    let Some((chain, certain)) = formula::solana_chain_id(cluster) else { return Ok((id, false)) };
    let recomputed = formula::solana(chain, &side.swap.secret_hash.0, side.initiator.bytes());
    if certain && id != recomputed {
        return Err(side.refuse(Code::RecordSwapId, "swap_id").with_expected(countersign_core::SecretHash(recomputed)).with_actual(&side.swap.swap_id));
    }
    Ok((id, id == recomputed))
}

fn recovery(side: &Side<'_>, build: impl FnOnce(&Htlc, &Swap) -> (Option<Instruction>, Address)) -> Result<Recovery, Refusal> {
    let internal = || side.refuse(Code::Internal, "chain");
    let address = |account| address::of(account).ok_or_else(internal);
    let token = match &side.asset.token {
        Some(token) => Some(Token {
            mint: address(token.account.as_ref().ok_or_else(internal)?)?,
            program: token_program(side.asset.record.token.as_ref().and_then(|token| token.schema.as_deref())),
        }),
        None => None,
    };
    let htlc = Htlc::new(address(side.htlc()?)?, token);
    let swap = Swap::new(address(&side.initiator)?, address(&side.redeemer)?, side.swap.secret_hash.0);
    let (swap_id, swap_id_recomputed) = recompute(side)?;
    let (instruction, to) = build(&htlc, &swap);
    let swap_account = htlc.swap_account(swap.initiator, &swap.secret_hash).ok_or_else(internal)?;
    Ok(Recovery { instruction: instruction.ok_or_else(internal)?, swap_account, swap_id, swap_id_recomputed, to, amount: side.swap.amount })
}
