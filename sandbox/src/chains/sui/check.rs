//! What a validator checks before it executes a transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use sui_crypto::SuiVerifier as _;
use sui_crypto::simple::SimpleVerifier;
use sui_sdk_types::bcs::ToBcs as _;
use sui_sdk_types::{
    Address, Command, Input, Object, ObjectReference, Owner, ProgrammableTransaction, SignedTransaction, SimpleSignature, StructTag,
    Transaction, TransactionExpiration, TransactionKind, UserSignature,
};

use super::ledger::{GAS_PRICE, View, coin};

/// The limits of the protocol.
const MAX_GAS_COINS: usize = 256;
const MAX_COMMANDS: usize = 1_024;
const MAX_INPUTS: usize = 2_048;
const MAX_BYTES: usize = 131_072;
const MAX_BUDGET: u64 = 50_000_000_000;
/// The least units of gas.
pub(super) const MIN_UNITS: u64 = 1_000;

/// The signatures must be the sender's, and the sponsor's if there is one.
pub(super) fn signatures(signed: &SignedTransaction) -> Result<(), String> {
    let transaction = &signed.transaction;
    let mut missing = BTreeSet::from([transaction.sender, transaction.gas_payment.owner]);
    if signed.signatures.len() != missing.len() {
        return Err(format!("Expect {} signer signatures but got {}", missing.len(), signed.signatures.len()));
    }
    for signature in &signed.signatures {
        let UserSignature::Simple(simple) = signature else {
            return Err("Invalid user signature: only simple signatures are known to this model".to_owned());
        };
        let signer = match simple {
            SimpleSignature::Ed25519 { public_key, .. } => public_key.derive_address(),
            SimpleSignature::Secp256k1 { public_key, .. } => public_key.derive_address(),
            _ => return Err("Invalid user signature: this model knows Ed25519 and secp256k1".to_owned()),
        };
        let verified = SimpleVerifier.verify_transaction(transaction, signature);
        verified.map_err(|error| format!("Invalid user signature: Signature is not valid: {error}"))?;
        if !missing.remove(&signer) {
            return Err(format!("Invalid user signature: Required Signature from {} is absent", transaction.sender));
        }
    }
    Ok(())
}

/// What a transaction works with.
#[derive(Debug)]
pub(super) struct Loaded<'t> {
    pub(super) program: &'t ProgrammableTransaction,
    /// The coins that pay; empty for a simulation without them.
    pub(super) gas: Vec<Arc<Object>>,
    /// In the order of the inputs; `None` for a pure one.
    pub(super) inputs: Vec<Option<Arc<Object>>>,
}

/// Checks a transaction against the state, and loads its objects. The package is the only one besides the framework.
pub(super) fn load<'t>(
    view: &View,
    transaction: &'t Transaction,
    (epoch, millis): (u64, u64),
    package: Address,
    is_simulation: bool,
) -> Result<Loaded<'t>, String> {
    let TransactionKind::ProgrammableTransaction(program) = &transaction.kind else {
        return Err("Unsupported: only programmable transactions may be sent".to_owned());
    };
    if program.commands.is_empty() || program.commands.len() > MAX_COMMANDS || program.inputs.len() > MAX_INPUTS {
        return Err(format!("Size limit exceeded: 1 to {MAX_COMMANDS} commands and at most {MAX_INPUTS} inputs"));
    }
    if transaction.to_bcs().map_or(usize::MAX, |bytes| bytes.len()) > MAX_BYTES {
        return Err(format!("Size limit exceeded: serialized transaction size exceeded maximum of {MAX_BYTES}"));
    }
    if is_expired(&transaction.expiration, epoch, millis) {
        return Err("Transaction Expired".to_owned());
    }
    for command in &program.commands {
        match command {
            Command::MoveCall(call) if call.package != package && call.package != Address::TWO => {
                return Err(format!("Error checking transaction input objects: Dependent package not found on-chain: {}", call.package));
            }
            Command::MoveCall(_) | Command::TransferObjects(_) | Command::SplitCoins(_) | Command::MergeCoins(_) => {}
            _ => return Err("Unsupported: this model knows calls, transfers, splits and merges".to_owned()),
        }
    }
    let mut used = BTreeSet::new();
    let mut once = |id: Address| {
        let twice = format!("Error checking transaction input objects: Mutable object {id} cannot appear more than one in one transaction");
        used.insert(id).then_some(()).ok_or(twice)
    };
    let payment = &transaction.gas_payment;
    if payment.price < GAS_PRICE {
        return Err(format!("Gas price {} under reference gas price (RGP) {GAS_PRICE}", payment.price));
    }
    let least = payment.price.saturating_mul(MIN_UNITS);
    if payment.budget > MAX_BUDGET {
        return Err(format!("Gas budget: {} is higher than max: {MAX_BUDGET}", payment.budget));
    }
    if payment.budget < least {
        return Err(format!("Gas budget: {} is lower than min: {least}", payment.budget));
    }
    if payment.objects.len() > MAX_GAS_COINS || payment.objects.is_empty() && !is_simulation {
        return Err("Missing gas payment: 1 to 256 coins".to_owned());
    }
    let mut gas = Vec::new();
    for reference in &payment.objects {
        once(*reference.object_id())?;
        let object = owned(view, reference, payment.owner)?;
        if object.as_struct().is_none_or(|data| *data.object_type() != StructTag::gas_coin()) {
            return Err(format!("Invalid gas object: {} is not a SUI coin", reference.object_id()));
        }
        gas.push(object);
    }
    let total = gas.iter().filter_map(|object| coin(object)).fold(0_u64, |sum, (_, balance)| sum.saturating_add(balance));
    if !gas.is_empty() && total < payment.budget {
        let needed = payment.budget;
        return Err(format!("Balance of gas object {total} is lower than the needed amount: {needed}"));
    }
    let mut inputs = Vec::new();
    for input in &program.inputs {
        inputs.push(match input {
            Input::Pure(_) => None,
            Input::ImmutableOrOwned(reference) => {
                once(*reference.object_id())?;
                Some(owned(view, reference, transaction.sender)?)
            }
            Input::Shared(shared) => {
                once(shared.object_id())?;
                let object = view.get(&shared.object_id()).ok_or_else(|| missing(&shared.object_id()))?;
                if *object.owner() != Owner::Shared(shared.version()) {
                    return Err(format!("Error checking transaction input objects: SharedObjectStartingVersionMismatch {object:?}"));
                }
                Some(Arc::clone(object))
            }
            _ => return Err("Unsupported: this model knows pure, owned and shared inputs".to_owned()),
        });
    }
    Ok(Loaded { program, gas, inputs })
}

const fn is_expired(expiration: &TransactionExpiration, epoch: u64, millis: u64) -> bool {
    match expiration {
        TransactionExpiration::Epoch(last) => *last < epoch,
        TransactionExpiration::ValidDuring { min_epoch, max_epoch, min_timestamp, max_timestamp, .. } => {
            is_outside(*min_epoch, *max_epoch, epoch) || is_outside(*min_timestamp, *max_timestamp, millis)
        }
        _ => false,
    }
}

const fn is_outside(min: Option<u64>, max: Option<u64>, value: u64) -> bool {
    matches!(min, Some(min) if value < min) || matches!(max, Some(max) if value > max)
}

fn missing(id: &Address) -> String {
    format!("Error checking transaction input objects: Could not find the referenced object {id} at version None")
}

fn owned(view: &View, reference: &ObjectReference, owner: Address) -> Result<Arc<Object>, String> {
    let id = reference.object_id();
    let object = view.get(id).ok_or_else(|| missing(id))?;
    if object.version() != reference.version() || object.digest() != *reference.digest() {
        let (asked, current) = (reference.version(), object.version());
        return Err(format!(
            "Transaction needs to be rebuilt because object {id} version {asked:#x} is unavailable for consumption, current version: \
             {current:#x}"
        ));
    }
    match object.owner() {
        Owner::Immutable => Ok(Arc::clone(object)),
        Owner::Address(actual) if *actual == owner => Ok(Arc::clone(object)),
        actual => Err(format!(
            "Transaction was not signed by the correct sender: Object {id} is owned by {actual:?}, but given owner/signer address is {owner}"
        )),
    }
}
