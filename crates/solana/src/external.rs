//! Compares a transaction that an external wallet has signed with the order.
//!
//! Such a wallet chooses its own blockhash for the transaction that the owner sends, and often sets the priority fee. It may also list
//! the account keys in another order. Everything else must be as verified. The sponsor signs the gasless transaction too, so nothing of
//! that may change.
//!
//! Specification: `docs/spec/solana.md#signing`.

use std::collections::BTreeMap;
use std::mem::discriminant;

use countersign_core::{Code, Refusal, Role};
use solana_message::VersionedMessage;
use solana_transaction::versioned::VersionedTransaction;

use crate::address::{self, Address, COMPUTE_BUDGET_PROGRAM};
use crate::allowed::AllowedInstruction;
use crate::deposit::{Deposit, ProposedTransaction};
use crate::fees::ComputeBudget;
use crate::message;
use crate::sign::is_signed_by;

/// Returns the role of a signed transaction in the order.
pub(crate) fn matches(deposit: &Deposit, transaction: &VersionedTransaction) -> Result<Role, Refusal> {
    let payer = transaction.message.static_account_keys().first().copied().unwrap_or_default();
    let gasless = deposit.gasless.as_ref().filter(|gasless| gasless.fee_payer == payer);
    match gasless {
        _ if payer == deposit.owner => check_own(deposit, transaction)?,
        Some(gasless) => check_gasless(deposit, gasless, transaction)?,
        None => {
            let expected = address::to_account(deposit.owner);
            return Err(differs("/message/account_keys/0").with_expected(expected).with_actual(address::to_account(payer)));
        }
    }
    Ok(Role::Initiate)
}

fn differs(location: impl Into<String>) -> Refusal {
    Refusal::new(Code::TransactionMismatch, location)
}

/// Requires that the message is the verified one, except for the blockhash, the priority fee and the order of the keys, and that the
/// owner has signed it.
fn check_own(deposit: &Deposit, transaction: &VersionedTransaction) -> Result<(), Refusal> {
    let (expected, actual) = (&deposit.transaction.decoded.transaction.message, &transaction.message);
    if discriminant(expected) != discriminant(actual) {
        return Err(differs("/message").with_reason("the message is of another version"));
    }
    if actual.address_table_lookups().is_some_and(|tables| !tables.is_empty()) {
        return Err(differs("/message/address_table_lookups"));
    }
    check_instructions(deposit, expected, actual)?;
    check_keys(expected, actual)?;
    let (expected, slots) = (usize::from(expected.header().num_required_signatures), transaction.signatures.len());
    if slots != expected {
        return Err(differs("/signatures").with_expected(expected).with_actual(slots));
    }
    // The message is at most two instructions larger than the verified one, so it can be serialized.
    check_signature(deposit, transaction, 0, &actual.serialize())
}

/// Requires that the message is exactly the verified one, that the owner has signed it, and that the sponsor's slot is unchanged or
/// has a valid signature.
fn check_gasless(deposit: &Deposit, proposed: &ProposedTransaction, transaction: &VersionedTransaction) -> Result<(), Refusal> {
    let verified = &proposed.decoded.transaction;
    if transaction.message.recent_blockhash() != verified.message.recent_blockhash() {
        return Err(differs("/message/recent_blockhash")
            .with_expected(verified.message.recent_blockhash().to_string())
            .with_actual(transaction.message.recent_blockhash().to_string()));
    }
    if transaction.message != verified.message {
        return Err(differs("/message"));
    }
    if transaction.signatures.len() != verified.signatures.len() {
        return Err(differs("/signatures").with_expected(verified.signatures.len()).with_actual(transaction.signatures.len()));
    }
    let others = transaction.signatures.iter().zip(&verified.signatures).zip(verified.message.static_account_keys());
    for (index, ((signature, proposed_signature), signer)) in others.enumerate() {
        let is_kept = || signature == proposed_signature || is_signed_by(signature, signer, &proposed.decoded.message);
        if index != proposed.owner_slot && !is_kept() {
            return Err(differs(format!("/signatures/{index}")).with_expected(format!("a signature of {signer}, or the slot unchanged")));
        }
    }
    check_signature(deposit, transaction, proposed.owner_slot, &proposed.decoded.message)
}

fn check_signature(deposit: &Deposit, transaction: &VersionedTransaction, slot: usize, message: &[u8]) -> Result<(), Refusal> {
    let signature = transaction.signatures.get(slot).copied().unwrap_or_default();
    if is_signed_by(&signature, &deposit.owner, message) {
        return Ok(());
    }
    Err(differs(format!("/signatures/{slot}")).with_expected(format!("a signature of {} over the message", deposit.owner)))
}

/// An instruction with addresses in place of indexes.
struct Resolved<'m> {
    index: usize,
    program: &'m Address,
    accounts: Vec<&'m Address>,
    data: &'m [u8],
}

/// Resolves the instructions of a message, without those that set the priority fee. The error is the index of an instruction that
/// refers to a key beyond the list, or that sets the fee a second time.
fn resolve(message: &VersionedMessage) -> Result<Vec<Resolved<'_>>, usize> {
    let keys = message.static_account_keys();
    let (mut resolved, mut fees): (Vec<_>, Vec<AllowedInstruction>) = (Vec::new(), Vec::new());
    for (index, instruction) in message.instructions().iter().enumerate() {
        let key = |key: u8| keys.get(usize::from(key)).ok_or(index);
        let program = key(instruction.program_id_index)?;
        let accounts = instruction.accounts.iter().map(|account| key(*account)).collect::<Result<Vec<_>, _>>()?;
        let fee = AllowedInstruction::read_compute_budget(&instruction.data);
        match fee.filter(|_| *program == COMPUTE_BUDGET_PROGRAM && accounts.is_empty()) {
            Some(fee) if fees.iter().any(|other| other.is_like(&fee)) => return Err(index),
            Some(fee) => fees.push(fee),
            None => resolved.push(Resolved { index, program, accounts, data: &instruction.data }),
        }
    }
    Ok(resolved)
}

fn check_instructions(deposit: &Deposit, expected: &VersionedMessage, actual: &VersionedMessage) -> Result<(), Refusal> {
    let at = |index: usize, part: &str| differs(format!("/message/instructions/{index}{part}"));
    let resolved = resolve(actual).map_err(|index| at(index, ""))?;
    let budget = ComputeBudget::from_message(actual);
    deposit.fee_limits.check(budget.price, budget.limit, |member| {
        differs("/message/instructions").with_reason(match member {
            "compute_unit_limit" => "the compute unit limit is above the policy's",
            _ => "the compute unit price is above the policy's",
        })
    })?;
    let expected = resolve(expected).map_err(|_| differs("/message/instructions"))?;
    for (expected, actual) in expected.iter().zip(&resolved) {
        if expected.program != actual.program {
            let (expected, program) = (address::to_account(*expected.program), address::to_account(*actual.program));
            return Err(at(actual.index, "/program_id").with_expected(expected).with_actual(program));
        }
        if expected.data != actual.data {
            return Err(at(actual.index, "/data"));
        }
        if expected.accounts != actual.accounts {
            return Err(at(actual.index, "/accounts"));
        }
    }
    if expected.len() != resolved.len() {
        let surplus = resolved.get(expected.len()).map(|extra| message::describe_instruction(extra.program, extra.data));
        let refusal = differs("/message/instructions").with_expected(format!("{} instructions", expected.len()));
        return Err(refusal.with_actual(surplus.unwrap_or_else(|| format!("{} instructions", resolved.len()))));
    }
    Ok(())
}

/// Requires that each key has the same permissions as in the verified message. The compute budget program may be added or missing.
fn check_keys(expected: &VersionedMessage, actual: &VersionedMessage) -> Result<(), Refusal> {
    let permissions = |message: &VersionedMessage| -> BTreeMap<Address, (bool, bool)> {
        let keys = message.static_account_keys().iter().enumerate();
        keys.map(|(index, key)| (*key, message::flags(message, index))).collect()
    };
    let (mut expected, permitted) = (permissions(expected), permissions(actual));
    if permitted.contains_key(&COMPUTE_BUDGET_PROGRAM) {
        expected.insert(COMPUTE_BUDGET_PROGRAM, (false, false));
    } else {
        expected.remove(&COMPUTE_BUDGET_PROGRAM);
    }
    // A key that is listed twice is in the map once.
    if permitted.len() != actual.static_account_keys().len() || permitted != expected {
        return Err(differs("/message/account_keys").with_reason("the account keys or their permissions are not those of the order"));
    }
    Ok(())
}
