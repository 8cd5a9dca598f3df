//! Compares a transaction that an external wallet has signed with the order.
//!
//! Such a wallet chooses its own blockhash for the transaction that the owner sends, or a nonce of the owner's, and often sets the priority
//! fee. It may also list the account keys in another order, and add assertions of [Lighthouse](crate::lighthouse). A nonce and assertions
//! are warnings. Everything else must be as verified. The sponsor signs the gasless transaction too, so nothing of that may change.
//!
//! Specification: `docs/spec/solana.md#signing`.

use std::collections::BTreeMap;
use std::mem::discriminant;

use countersign_core::{Code, Refusal, Role, Warnings};
use solana_message::VersionedMessage;
use solana_transaction::versioned::VersionedTransaction;

use crate::address::{self, Address, COMPUTE_BUDGET_PROGRAM, SYSTEM_PROGRAM};
use crate::deposit::{Deposit, ProposedTransaction};
use crate::encoding;
use crate::fees::ComputeBudget;
use crate::lighthouse;
use crate::message;
use crate::nonce::ADVANCE_NONCE;
use crate::read::RECENT_BLOCKHASHES;
use crate::sign::is_signed_by;

/// Returns the role of a signed transaction in the order.
pub(crate) fn matches(deposit: &Deposit, transaction: &VersionedTransaction, warnings: &mut Warnings) -> Result<Role, Refusal> {
    let payer = transaction.message.static_account_keys().first().copied().unwrap_or_default();
    let gasless = deposit.gasless.as_ref().filter(|gasless| gasless.fee_payer == payer);
    match gasless {
        _ if payer == deposit.owner => {
            if let Some(account) = check_own(deposit, transaction)? {
                warnings.warn_about(Code::WalletNonce, account.to_string());
            }
            warn_about_assertions(&transaction.message, warnings);
        }
        Some(gasless) => check_gasless(deposit, gasless, transaction)?,
        None => {
            let expected = address::to_account(deposit.owner);
            return Err(differs("/message/account_keys/0").with_expected(expected).with_actual(address::to_account(payer)));
        }
    }
    Ok(Role::Initiate)
}

/// Adds what the wallet asserts.
fn warn_about_assertions(message: &VersionedMessage, warnings: &mut Warnings) {
    let keys = message.static_account_keys();
    for instruction in message.instructions() {
        let key = |index: &u8| keys.get(usize::from(*index));
        if key(&instruction.program_id_index) == Some(&lighthouse::PROGRAM) {
            let accounts: Vec<_> = instruction.accounts.iter().filter_map(key).map(ToString::to_string).collect();
            let of = if accounts.is_empty() { String::new() } else { format!(" of {}", accounts.join(", ")) };
            let name = lighthouse::name(&instruction.data).unwrap_or_default();
            warnings.warn_about(Code::WalletAssertion, format!("Lighthouse {name}{of}"));
        }
    }
}

fn differs(location: impl Into<String>) -> Refusal {
    Refusal::new(Code::TransactionMismatch, location)
}

/// Requires that the message is the verified one, except for what a wallet may choose or add, and that the owner has signed it. Returns the
/// nonce account that takes the place of a blockhash.
fn check_own<'t>(deposit: &Deposit, transaction: &'t VersionedTransaction) -> Result<Option<&'t Address>, Refusal> {
    let (expected, actual) = (&deposit.transaction.decoded.transaction.message, &transaction.message);
    if discriminant(expected) != discriminant(actual) {
        return Err(differs("/message").with_reason("the message is of another version"));
    }
    if actual.address_table_lookups().is_some_and(|tables| !tables.is_empty()) {
        return Err(differs("/message/address_table_lookups"));
    }
    check_config(deposit, expected, actual)?;
    let added = check_instructions(deposit, expected, actual)?;
    let nonce = added.nonce;
    check_keys(expected, actual, added)?;
    let (expected, slots) = (usize::from(expected.header().num_required_signatures), transaction.signatures.len());
    if slots != expected {
        return Err(differs("/signatures").with_expected(expected).with_actual(slots));
    }
    // The message has at most seven instructions more than the verified one, none of them larger than a transaction, so it can be serialized.
    check_signature(deposit, transaction, 0, &actual.serialize())?;
    Ok(nonce)
}

/// Requires that the limits in a message of version 1 are within the policy. A wallet may change them, except for the heap.
fn check_config(deposit: &Deposit, expected: &VersionedMessage, actual: &VersionedMessage) -> Result<(), Refusal> {
    let (VersionedMessage::V1(expected), VersionedMessage::V1(message)) = (expected, actual) else { return Ok(()) };
    if let Some(reason) = encoding::exceeded(actual) {
        return Err(differs("/message").with_reason(reason));
    }
    if message.config.heap_size != expected.config.heap_size {
        return Err(differs("/message/config/heap_size"));
    }
    deposit.fee_limits.check_config(&message.config, |_, member| differs(format!("/message/config/{member}")))
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

/// The instructions of a message.
#[derive(Default)]
struct Instructions<'m> {
    /// Those that must be as verified.
    own: Vec<Resolved<'m>>,
    /// The keys that the wallet's assertions name: their program, and what they read.
    added: Vec<&'m Address>,
    /// The nonce account in place of a blockhash.
    nonce: Option<&'m Address>,
}

/// Returns the first byte of an instruction of the compute budget program that a wallet may add: `02` and `03` set the priority fee, `04`
/// the most bytes of accounts.
fn compute_budget(data: &[u8]) -> Option<u8> {
    match data {
        // With a limit of 0, the transaction fails.
        [2 | 4, 0, 0, 0, 0] => None,
        [tag @ (2 | 4), _, _, _, _] | [tag @ 3, _, _, _, _, _, _, _, _] => Some(*tag),
        _ => None,
    }
}

/// Returns whether an instruction advances a nonce of the owner's, as [`DurableNonce`](crate::DurableNonce) does. It changes nothing but the
/// value that the nonce account stores.
fn is_own_nonce(program: &Address, accounts: &[&Address], data: &[u8], owner: &Address) -> bool {
    let is_own = matches!(accounts, [_, sysvar, authority] if **sysvar == RECENT_BLOCKHASHES && *authority == owner);
    *program == SYSTEM_PROGRAM && data == ADVANCE_NONCE && is_own
}

/// Resolves the instructions of a message, without those that a wallet may add. The error is the index of an instruction that refers to
/// a key beyond the list, or that is one too many of its kind.
fn resolve<'m>(message: &'m VersionedMessage, htlc: &Address, owner: &Address) -> Result<Instructions<'m>, usize> {
    let keys = message.static_account_keys();
    let (mut all, mut budget, mut assertions) = (Instructions::default(), Vec::new(), 0_usize);
    for (index, instruction) in message.instructions().iter().enumerate() {
        let key = |key: u8| keys.get(usize::from(key)).ok_or(index);
        let program = key(instruction.program_id_index)?;
        let accounts = instruction.accounts.iter().map(|account| key(*account)).collect::<Result<Vec<_>, _>>()?;
        let data = instruction.data.as_slice();
        // In version 1 the message contains the limits, and the program does nothing.
        let has_budget = *program == COMPUTE_BUDGET_PROGRAM && accounts.is_empty() && !matches!(message, VersionedMessage::V1(_));
        match compute_budget(data).filter(|_| has_budget) {
            Some(tag) if budget.contains(&tag) => return Err(index),
            Some(tag) => budget.push(tag),
            // The network looks for it in the first instruction.
            None if index == 0 && is_own_nonce(program, &accounts, data, owner) => all.nonce = accounts.first().copied(),
            // What a wallet asserts comes after what it asserts about.
            None if *program == lighthouse::PROGRAM
                && lighthouse::is_assertion(data, accounts.len())
                && data.len() <= encoding::MAX_BYTES_V1
                && all.own.iter().any(|own| own.program == htlc) =>
            {
                assertions = assertions.saturating_add(1);
                if assertions > lighthouse::MAX {
                    return Err(index);
                }
                all.added.push(program);
                all.added.extend(accounts);
            }
            None => all.own.push(Resolved { index, program, accounts, data }),
        }
    }
    Ok(all)
}

/// Requires that the instructions are the verified ones, and those that a wallet may add. Returns the instructions with the keys that these
/// name.
fn check_instructions<'m>(
    deposit: &Deposit,
    expected: &VersionedMessage,
    actual: &'m VersionedMessage,
) -> Result<Instructions<'m>, Refusal> {
    let at = |index: usize, part: &str| differs(format!("/message/instructions/{index}{part}"));
    let describe = |instruction: &Resolved<'_>| message::describe_instruction(instruction.program, instruction.data);
    let (htlc, owner) = (&deposit.htlc.program, &deposit.owner);
    let too_many =
        |index| at(index, "").with_reason("an index is beyond the keys, or the message has one instruction too many of this kind");
    let resolved = resolve(actual, htlc, owner).map_err(too_many)?;
    let budget = ComputeBudget::from_message(actual);
    if budget.total.is_none() {
        deposit.fee_limits.check(budget.price, budget.limit, |member| {
            differs("/message/instructions").with_reason(match member {
                "compute_unit_limit" => "the compute unit limit is above the policy's",
                _ => "the compute unit price is above the policy's",
            })
        })?;
    }
    let expected = resolve(expected, htlc, owner).map_err(|_| differs("/message/instructions"))?.own;
    for (expected, actual) in expected.iter().zip(&resolved.own) {
        if expected.program != actual.program {
            let expected = address::to_account(*expected.program);
            return Err(at(actual.index, "/program_id").with_expected(expected).with_actual(describe(actual)));
        }
        if expected.data != actual.data {
            return Err(at(actual.index, "/data"));
        }
        if expected.accounts != actual.accounts {
            return Err(at(actual.index, "/accounts"));
        }
    }
    if expected.len() != resolved.own.len() {
        let surplus = resolved.own.get(expected.len()).map(describe);
        let refusal = differs("/message/instructions").with_expected(format!("{} instructions", expected.len()));
        return Err(refusal.with_actual(surplus.unwrap_or_else(|| format!("{} instructions", resolved.own.len()))));
    }
    Ok(resolved)
}

/// Requires that each key has the same permissions as in the verified message. The compute budget program may be added or missing. A nonce
/// account may be added, which is written to and is no account of the order. What the wallet's assertions name may be added, without any
/// permission.
fn check_keys(expected: &VersionedMessage, actual: &VersionedMessage, added: Instructions<'_>) -> Result<(), Refusal> {
    let permissions = |message: &VersionedMessage| -> BTreeMap<Address, (bool, bool)> {
        let keys = message.static_account_keys().iter().enumerate();
        keys.map(|(index, key)| (*key, message::flags(message, index))).collect()
    };
    let (mut expected, permitted) = (permissions(expected), permissions(actual));
    if permitted.contains_key(&COMPUTE_BUDGET_PROGRAM) && !matches!(actual, VersionedMessage::V1(_)) {
        expected.insert(COMPUTE_BUDGET_PROGRAM, (false, false));
    } else {
        expected.remove(&COMPUTE_BUDGET_PROGRAM);
    }
    let mut is_of_order = false;
    if let Some(nonce) = added.nonce {
        for read in [SYSTEM_PROGRAM, RECENT_BLOCKHASHES] {
            expected.entry(read).or_insert((false, false));
        }
        is_of_order = expected.insert(*nonce, (false, true)).is_some();
    }
    // After the nonce account, of which a wallet may assert something, too.
    for key in added.added {
        expected.entry(*key).or_insert((false, false));
    }
    // A key that is listed twice is in the map once.
    if is_of_order || permitted.len() != actual.static_account_keys().len() || permitted != expected {
        return Err(differs("/message/account_keys").with_reason("the account keys or their permissions are not those of the order"));
    }
    Ok(())
}
