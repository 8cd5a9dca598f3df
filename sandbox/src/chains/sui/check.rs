//! The checks of a validator before it executes a transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use sui_crypto::SuiVerifier as _;
use sui_crypto::simple::SimpleVerifier;
use sui_sdk_types::bcs::ToBcs as _;
use sui_sdk_types::{
    Address, Argument, Command, Input, ObjectReference, Owner, ProgrammableTransaction, SignedTransaction, SimpleSignature, StructTag,
    TransactionExpiration, TransactionKind, UserSignature, WithdrawFrom,
};

use super::execute::{Coin, Context, Work};
use super::funds;
use super::ledger::{GAS_PRICE, Objects, balance, epoch};

/// The protocol's limits.
pub(super) const MAX_GAS_COINS: usize = 256;
const MAX_BYTES: usize = 131_072;
const MAX_BUDGET: u64 = 50_000_000_000;
/// The gas units of every transaction.
pub(super) const UNITS: u64 = 1_000;

/// Refuses something that only a real node can execute.
pub(super) fn unknown<T>(what: &str) -> Result<T, String> {
    Err(format!("the model does not execute {what}"))
}

/// Checks that the sender has signed, and the sponsor if there is one.
pub(super) fn signatures(signed: &SignedTransaction) -> Result<(), String> {
    let transaction = &signed.transaction;
    let mut missing = BTreeSet::from([transaction.sender, transaction.gas_payment.owner]);
    if signed.signatures.len() != missing.len() {
        return Err(format!("Expect {} signer signatures but got {}", missing.len(), signed.signatures.len()));
    }
    for signature in &signed.signatures {
        let signer = match signature {
            UserSignature::Simple(SimpleSignature::Ed25519 { public_key, .. }) => public_key.derive_address(),
            UserSignature::Simple(SimpleSignature::Secp256k1 { public_key, .. }) => public_key.derive_address(),
            _ => return unknown("transactions with signatures other than Ed25519 and secp256k1"),
        };
        let verified = SimpleVerifier.verify_transaction(transaction, signature);
        verified.map_err(|error| format!("Invalid user signature: Signature is not valid: {error}"))?;
        if !missing.remove(&signer) {
            return Err(format!("Invalid user signature: Required Signature from {} is absent", transaction.sender));
        }
    }
    Ok(())
}

impl<'a> Work<'a> {
    /// Checks a transaction, and takes its input objects.
    pub(super) fn begin(live: &'a Objects, signed: &'a SignedTransaction, context: Context) -> Result<Self, String> {
        let (transaction, payment) = (&signed.transaction, &signed.transaction.gas_payment);
        let TransactionKind::ProgrammableTransaction(program) = &transaction.kind else {
            return unknown("transactions of the system");
        };
        let now = epoch(context.millis).0;
        let invalid = |what: &str| Err(format!("Invalid transaction expiration: {what}"));
        let mut is_protected = false;
        match transaction.expiration {
            TransactionExpiration::None => {}
            TransactionExpiration::Epoch(last) if last >= now => {}
            TransactionExpiration::ValidDuring { min_epoch, max_epoch, min_timestamp: None, max_timestamp: None, chain, .. } => {
                if chain != context.genesis {
                    return invalid("the chain identifier is that of another network");
                }
                if min_epoch.is_some_and(|first| now < first) {
                    return invalid("the transaction is not valid yet");
                }
                if max_epoch.is_some_and(|last| now > last) {
                    return Err("Transaction Expired".to_owned());
                }
                is_protected = min_epoch.zip(max_epoch).is_some_and(|(first, last)| last.saturating_sub(first) <= 1);
            }
            TransactionExpiration::Epoch(_) => return Err("Transaction Expired".to_owned()),
            _ => return unknown("transactions that expire by time"),
        }
        let is_owned = |input: &Input| matches!(input, Input::ImmutableOrOwned(_));
        let has_coins = payment.objects.iter().any(|reference| funds::reserved(reference).is_none());
        if !is_protected && !has_coins && !program.inputs.iter().any(is_owned) {
            return invalid(
                "Transactions must either have address-owned inputs, or a ValidDuring expiration with at most two epochs of validity",
            );
        }
        if payment.objects.is_empty() && uses_gas_coin(program) {
            return Err("Invalid usage of the gas coin: there is none if an address balance pays".to_owned());
        }
        let (size, least) = (transaction.to_bcs().map_or(usize::MAX, |bytes| bytes.len()), payment.price.saturating_mul(UNITS));
        let refusals = [
            (size > MAX_BYTES, format!("Size limit exceeded: serialized transaction size exceeded maximum of {MAX_BYTES}")),
            (payment.price < GAS_PRICE, format!("Gas price {} under reference gas price (RGP) {GAS_PRICE}", payment.price)),
            (payment.budget > MAX_BUDGET, format!("Gas budget: {} is higher than max: {MAX_BUDGET}", payment.budget)),
            (payment.budget < least, format!("Gas budget: {} is lower than min: {least}", payment.budget)),
            (payment.objects.len() > MAX_GAS_COINS, format!("Gas payment of more than {MAX_GAS_COINS} coins")),
        ];
        if let Some((_, words)) = refusals.into_iter().find(|(is_refused, _)| *is_refused) {
            return Err(words);
        }
        let (version, created, coins, after, events, swaps) = Default::default();
        let (funds, withdrawals) = Default::default();
        let first = payment.objects.first().filter(|first| funds::reserved(first).is_none());
        let gas = Coin { id: first.map_or(Address::ZERO, |first| *first.object_id()), balance: 0 };
        let mut work = Self { live, context, signed, program, version, created, gas, funds, withdrawals, coins, after, events, swaps };
        // The other gas coins are merged into the first one.
        for reference in &payment.objects {
            let balance = match funds::reserved(reference) {
                Some((amount, valid)) => {
                    // A reservation is valid in its epoch and the next one.
                    if !(valid..=valid.saturating_add(1)).contains(&now) {
                        return Err("Transaction Expired".to_owned());
                    }
                    if !funds::is_of(reference, transaction.sender, context.genesis) || payment.owner != transaction.sender {
                        return Err(format!(
                            "Invalid withdraw reservation: coin reservation object id {} not found",
                            reference.object_id()
                        ));
                    }
                    work.withdraw(transaction.sender, amount)?;
                    amount
                }
                None => work.coin_of(reference, payment.owner)?.balance,
            };
            work.gas.balance = work.gas.balance.saturating_add(balance);
        }
        if payment.objects.is_empty() {
            work.withdraw(payment.owner, payment.budget)?;
            work.gas.balance = payment.budget;
        }
        let (total, needed) = (work.gas.balance, payment.budget);
        let rest = total.checked_sub(needed);
        work.gas.balance = rest.ok_or_else(|| format!("Balance of gas object {total} is lower than the needed amount: {needed}"))?;
        for (index, input) in (0..).zip(&program.inputs) {
            match input {
                Input::Pure(_) => {}
                Input::ImmutableOrOwned(reference) => {
                    let coin = work.coin_of(reference, transaction.sender)?;
                    work.coins.push((Argument::Input(index), coin));
                }
                Input::Shared(shared) => {
                    let id = shared.object_id();
                    let object = live.get(&id).ok_or_else(|| missing(id))?;
                    if *object.owner() != Owner::Shared(shared.version()) {
                        return Err(format!("Error checking transaction input objects: SharedObjectStartingVersionMismatch of {id}"));
                    }
                    work.version = work.version.max(object.version());
                    if shared.mutability().is_mutable() {
                        work.once(id)?;
                        work.after.insert(id, Some(Arc::clone(object)));
                    }
                }
                Input::FundsWithdrawal(withdrawal)
                    if withdrawal.source() == WithdrawFrom::Sender && *withdrawal.coin_type() == StructTag::sui().into() =>
                {
                    let amount = withdrawal.amount().filter(|amount| *amount > 0);
                    let amount = amount.ok_or_else(|| "Invalid withdraw reservation: the amount is zero".to_owned())?;
                    work.withdraw(transaction.sender, amount)?;
                    work.withdrawals.push((Argument::Input(index), amount));
                }
                _ => {
                    return unknown("transactions with other inputs than pure, owned and shared ones, and withdrawals of the sender's SUI");
                }
            }
        }
        work.version = work.version.saturating_add(1);
        Ok(work)
    }

    /// Takes an object. It is deleted unless it is written again.
    fn once(&mut self, id: Address) -> Result<(), String> {
        let twice = "Error checking transaction input objects: Mutable object";
        self.after.insert(id, None).map_or(Ok(()), |_| Err(format!("{twice} {id} cannot appear more than one in one transaction")))
    }

    /// Takes a coin that belongs to an account.
    fn coin_of(&mut self, reference: &ObjectReference, owner: Address) -> Result<Coin, String> {
        let (id, asked) = (*reference.object_id(), reference.version());
        let object = self.live.get(&id).ok_or_else(|| missing(id))?;
        let (current, actual) = (object.version(), object.owner());
        if current != asked || object.digest() != *reference.digest() {
            return Err(format!(
                "Transaction needs to be rebuilt because object {id} version {asked:#x} is unavailable for consumption, current version: \
                 {current:#x}"
            ));
        }
        if *actual != Owner::Address(owner) {
            return Err(format!(
                "Transaction was not signed by the correct sender: Object {id} is owned by {actual:?}, but given owner/signer address is \
                 {owner}"
            ));
        }
        self.version = self.version.max(current);
        self.once(id)?;
        let balance = balance(object).map_or_else(|| unknown("transactions with owned objects that are not coins of SUI"), Ok)?;
        Ok(Coin { id, balance })
    }
}

/// Returns whether a command uses the gas coin.
pub(super) fn uses_gas_coin(program: &ProgrammableTransaction) -> bool {
    program.commands.iter().any(|command| match command {
        Command::SplitCoins(split) => split.coin == Argument::Gas,
        Command::MergeCoins(merge) => merge.coin == Argument::Gas || merge.coins_to_merge.contains(&Argument::Gas),
        Command::TransferObjects(transfer) => transfer.objects.contains(&Argument::Gas),
        Command::MoveCall(call) => call.arguments.contains(&Argument::Gas),
        _ => false,
    })
}

fn missing(id: Address) -> String {
    format!("Error checking transaction input objects: Could not find the referenced object {id} at version None")
}
