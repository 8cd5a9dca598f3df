//! Executes a transaction: splits, merges and transfers coins, and calls the swap contract.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use sui_sdk_types::bcs::FromBcs as _;
use sui_sdk_types::{
    Address, Argument, ChangedObject, Command, Digest, Event, ExecutionError, ExecutionStatus, GasCostSummary, IdOperation, Input,
    MoveCall, Object, ObjectData, ObjectIn, ObjectOut, Owner, ProgrammableTransaction, SignedTransaction, StructTag, TransactionEffects,
    TransactionEffectsV2, TransactionEvents,
};

use super::check::{UNITS, unknown};
use super::ledger::{Executed, Objects, balance, coin, epoch, object};
use super::{funds, htlc, messages};
use crate::chains::engine::Change;

/// The chain's state that a transaction can depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) package: Address,
    pub(super) registry: Address,
    /// Unix milliseconds.
    pub(super) millis: u64,
    /// The digest of the genesis checkpoint.
    pub(super) genesis: Digest,
}

/// Why a transaction is not executed, or has no effect other than its cost.
pub(super) enum Stop {
    /// The model does not support this.
    Unknown(String),
    /// The transaction fails on the chain.
    Failed(Box<ExecutionError>),
}

impl From<ExecutionError> for Stop {
    fn from(error: ExecutionError) -> Self {
        Self::Failed(Box::new(error))
    }
}

fn stop<T>(what: &str) -> Result<T, Stop> {
    Err(Stop::Unknown(what.to_owned()))
}

/// A coin of SUI that a transaction is using.
pub(super) struct Coin {
    pub(super) id: Address,
    pub(super) balance: u64,
}

/// A transaction that is being executed.
pub(super) struct Work<'a> {
    pub(super) live: &'a Objects,
    pub(super) context: Context,
    pub(super) signed: &'a SignedTransaction,
    pub(super) program: &'a ProgrammableTransaction,
    /// The version of all changed objects, which is above that of all inputs.
    pub(super) version: u64,
    pub(super) created: u64,
    /// The coin that pays for gas, without the budget. Its id is zero if an address balance pays.
    pub(super) gas: Coin,
    /// The address balances that the transaction uses.
    pub(super) funds: BTreeMap<Address, u64>,
    /// Withdrawals that no command has redeemed yet.
    pub(super) withdrawals: Vec<(Argument, u64)>,
    /// The other coins that commands can use.
    pub(super) coins: Vec<(Argument, Coin)>,
    /// The new contents of objects. `None` means deleted.
    pub(super) after: BTreeMap<Address, Option<Arc<Object>>>,
    pub(super) events: Vec<Event>,
    pub(super) swaps: Vec<([u8; 32], Change)>,
}

/// Checks and executes a transaction. Refuses it if a validator would, or if the model does not support it.
pub(super) fn execute(live: &Objects, signed: &SignedTransaction, context: Context) -> Result<Executed, String> {
    let mut work = Work::begin(live, signed, context)?;
    let (error, command) = match work.run() {
        Err((Stop::Unknown(what), _)) => return unknown(&what),
        Err((Stop::Failed(error), command)) => (*error, command),
        Ok(()) => {
            let executed = work.settle(ExecutionStatus::Success);
            if executed.effects.gas_summary().gas_used() <= signed.transaction.gas_payment.budget {
                return Ok(executed);
            }
            (ExecutionError::InsufficientGas, None)
        }
    };
    Ok(Work::begin(live, signed, context)?.settle(ExecutionStatus::Failure { error, command }))
}

impl Work<'_> {
    pub(super) fn write(&mut self, made: (StructTag, Vec<u8>), owner: Owner) {
        if let Some(object) = object(made, self.version, owner, self.signed.transaction.digest()) {
            self.after.insert(object.object_id(), Some(object));
        }
    }

    /// Gives a coin to an account.
    pub(super) fn give(&mut self, Coin { id, balance }: Coin, to: Address) {
        self.write(coin(id, balance), Owner::Address(to));
    }

    fn balance_of(&mut self, owner: Address) -> &mut u64 {
        self.funds.entry(owner).or_insert_with(|| funds::balance(self.live, owner))
    }

    /// Withdraws from an address balance.
    pub(super) fn withdraw(&mut self, owner: Address, amount: u64) -> Result<(), String> {
        let balance = self.balance_of(owner);
        *balance = balance.checked_sub(amount).ok_or_else(|| {
            format!("Invalid withdraw reservation: Available amount in account for object id {owner} is less than requested: {balance} < {amount}")
        })?;
        Ok(())
    }

    /// Adds to an address balance.
    fn deposit(&mut self, owner: Address, amount: u64) {
        let balance = self.balance_of(owner);
        *balance = balance.saturating_add(amount);
    }

    /// Returns an amount to the coin or balance that pays for gas.
    fn pay_back(&mut self, amount: u64) {
        let (id, owner) = (self.gas.id, self.signed.transaction.gas_payment.owner);
        if id == Address::ZERO { self.deposit(owner, amount) } else { self.give(Coin { id, balance: amount }, owner) }
    }

    /// Returns the id of a new object.
    pub(super) fn new_id(&mut self) -> Address {
        let id = Address::derive_id(self.signed.transaction.digest(), self.created);
        self.created = self.created.saturating_add(1);
        id
    }

    fn input(&self, argument: &Argument) -> Option<&Input> {
        if let Argument::Input(index) = argument { self.program.inputs.get(usize::from(*index)) } else { None }
    }

    /// Decodes a pure argument from BCS.
    pub(super) fn pure<T: DeserializeOwned>(&self, argument: &Argument) -> Result<T, Stop> {
        let bytes = if let Some(Input::Pure(bytes)) = self.input(argument) { bytes.as_slice() } else { &[] };
        T::from_bcs(bytes).or_else(|error| stop(&format!("calls with {argument:?}: {error}")))
    }

    /// Checks that an argument is a particular shared object.
    pub(super) fn shared(&self, argument: &Argument, id: Address, is_changed: bool) -> Result<(), Stop> {
        match self.input(argument) {
            Some(Input::Shared(shared)) if shared.object_id() == id && shared.mutability().is_mutable() == is_changed => Ok(()),
            _ => stop("calls with other objects than the registry and the clock"),
        }
    }

    /// Returns the position of a coin that a command uses.
    fn find(&self, argument: &Argument) -> Result<usize, Stop> {
        let named = match *argument {
            // Only the whole result of a command counts, which must be one coin.
            Argument::Result(index) => match self.program.commands.get(usize::from(index)) {
                Some(Command::SplitCoins(split)) if split.amounts.len() == 1 => Argument::NestedResult(index, 0),
                Some(Command::MoveCall(call)) if is_coin_call(call, "redeem_funds") => Argument::NestedResult(index, 0),
                _ => return stop("commands with other results than one coin"),
            },
            other => other,
        };
        let place = self.coins.iter().position(|(name, _)| *name == named);
        place.map_or_else(|| stop(&format!("commands with {named:?} in place of a coin")), Ok)
    }

    /// Takes a coin, so that later commands cannot use it. The gas coin remains.
    pub(super) fn take(&mut self, argument: &Argument) -> Result<Coin, Stop> {
        self.find(argument).map(|place| self.coins.swap_remove(place).1)
    }

    fn coin(&mut self, argument: &Argument) -> Result<&mut Coin, Stop> {
        if *argument == Argument::Gas {
            return Ok(&mut self.gas);
        }
        let place = self.find(argument)?;
        self.coins.get_mut(place).map_or_else(|| stop("commands without coins"), |(_, coin)| Ok(coin))
    }

    fn run(&mut self) -> Result<(), (Stop, Option<u64>)> {
        for (index, command) in (0..).zip(&self.program.commands) {
            self.command(index, command).map_err(|stop| (stop, Some(index.into())))?;
        }
        let unused = self.coins.iter().find_map(|(name, _)| match *name {
            Argument::NestedResult(result, subresult) => Some(ExecutionError::UnusedValueWithoutDrop { result, subresult }),
            _ => None,
        });
        unused.map_or(Ok(()), |error| Err((error.into(), None)))
    }

    fn command(&mut self, index: u16, command: &Command) -> Result<(), Stop> {
        match command {
            Command::SplitCoins(split) => {
                for (nested, amount) in (0..).zip(&split.amounts) {
                    let amount = self.pure(amount)?;
                    let coin = self.coin(&split.coin)?;
                    coin.balance = coin.balance.checked_sub(amount).ok_or(ExecutionError::InsufficientCoinBalance)?;
                    let coin = Coin { id: self.new_id(), balance: amount };
                    self.coins.push((Argument::NestedResult(index, nested), coin));
                }
            }
            Command::MergeCoins(merge) => {
                for source in &merge.coins_to_merge {
                    let source = self.take(source)?.balance;
                    let coin = self.coin(&merge.coin)?;
                    coin.balance = coin.balance.checked_add(source).ok_or(ExecutionError::CoinBalanceOverflow)?;
                }
            }
            Command::TransferObjects(transfer) => {
                let to = self.pure(&transfer.address)?;
                for object in &transfer.objects {
                    let coin = self.take(object)?;
                    self.give(coin, to);
                }
            }
            Command::MoveCall(call) if is_coin_call(call, "redeem_funds") => {
                let [argument] = call.arguments.as_slice() else { return stop("redemptions of more than one withdrawal") };
                let place = self.withdrawals.iter().position(|(name, _)| name == argument);
                let place = place.map_or_else(|| stop("redemptions of what is not a withdrawal"), Ok)?;
                let coin = Coin { id: self.new_id(), balance: self.withdrawals.swap_remove(place).1 };
                self.coins.push((Argument::NestedResult(index, 0), coin));
            }
            Command::MoveCall(call) if is_coin_call(call, "send_funds") => {
                let [coin, to] = call.arguments.as_slice() else {
                    return stop("send_funds with other arguments than a coin and an account");
                };
                let (to, coin) = (self.pure(to)?, self.take(coin)?);
                self.deposit(to, coin.balance);
            }
            Command::MoveCall(call) => htlc::call(self, call)?,
            _ => return stop("other commands than SplitCoins, MergeCoins, TransferObjects and MoveCall"),
        }
        Ok(())
    }

    /// Completes the transaction: returns unmoved coins and pays for gas. A failed transaction pays at most its
    /// budget.
    pub(super) fn settle(mut self, status: ExecutionStatus) -> Executed {
        let (transaction, live) = (&self.signed.transaction, self.live);
        let (digest, payment, gas) = (transaction.digest(), &transaction.gas_payment, self.gas.id);
        for (_, coin) in std::mem::take(&mut self.coins) {
            self.give(coin, transaction.sender);
        }
        for (_, amount) in std::mem::take(&mut self.withdrawals) {
            self.deposit(transaction.sender, amount);
        }
        if gas != Address::ZERO {
            self.give(Coin { id: gas, balance: 0 }, payment.owner);
        }
        let before: Objects = self.after.keys().filter_map(|id| Some((*id, Arc::clone(live.get(id)?)))).collect();
        for object in before.values().filter(|object| matches!(object.owner(), Owner::Shared(_))) {
            let old = object.as_struct().map(|data| (data.object_type().clone(), data.contents().to_vec()));
            old.into_iter().for_each(|old| self.write(old, *object.owner()));
        }
        let rebates = |sum: u64, object: &Arc<Object>| sum.saturating_add(object.storage_rebate());
        let (stored, storage) = (before.values().fold(0, rebates), self.after.values().flatten().fold(0, rebates));
        let mut cost = GasCostSummary::new(payment.price.saturating_mul(UNITS), storage, stored.saturating_sub(stored / 100), stored / 100);
        if status != ExecutionStatus::Success && cost.gas_used() > payment.budget {
            cost = GasCostSummary::new(payment.budget, 0, 0, 0);
        }
        let back = payment.budget.saturating_add(cost.storage_rebate).saturating_sub(cost.gas_used());
        self.pay_back(self.gas.balance.saturating_add(back));
        for (owner, balance) in std::mem::take(&mut self.funds) {
            if balance != funds::balance(live, owner) {
                self.after.insert(funds::holder(owner), funds::object(owner, balance, self.version, digest));
            }
        }
        let before: Objects = self.after.keys().filter_map(|id| Some((*id, Arc::clone(live.get(id)?)))).collect();

        let (mut balances, mut types) = (BTreeMap::new(), BTreeMap::new());
        let ended = before.values().map(|object| (object, -1));
        for (object, sign) in ended.chain(self.after.values().flatten().map(|object| (object, 1))) {
            let of_coin = match (balance(object), object.owner()) {
                (Some(balance), Owner::Address(owner)) => Some((*owner, balance)),
                _ => None,
            };
            if let Some((owner, balance)) = of_coin.or_else(|| funds::held(object)) {
                let sum: &mut i128 = balances.entry(owner).or_default();
                *sum = sum.saturating_add(i128::from(balance).saturating_mul(sign));
            }
            types.extend(object.as_struct().map(|data| (object.object_id(), data.object_type().to_string())));
        }
        let events = TransactionEvents(self.events);
        let effects = TransactionEffects::V2(Box::new(TransactionEffectsV2 {
            status,
            epoch: epoch(self.context.millis).0,
            gas_used: cost,
            transaction_digest: digest,
            gas_object_index: self.after.keys().position(|id| *id == gas).and_then(|index| index.try_into().ok()),
            events_digest: (!events.0.is_empty()).then(|| events.digest()),
            dependencies: before.values().map(|object| object.previous_transaction()).collect(),
            lamport_version: self.version,
            changed_objects: self.after.iter().map(|(id, object)| changed(*id, before.get(id), object.as_ref())).collect(),
            unchanged_consensus_objects: vec![],
            auxiliary_data_digest: None,
        }));
        let message = messages::executed(self.signed, &effects, events, &balances, &types);
        Executed { digest, effects, message, after: self.after, swaps: self.swaps }
    }
}

/// Returns whether a call is a function of `0x2::coin` for SUI.
fn is_coin_call(call: &MoveCall, function: &str) -> bool {
    call.package == Address::TWO
        && call.module.as_str() == "coin"
        && call.function.as_str() == function
        && call.type_arguments == [StructTag::sui().into()]
}

/// Returns how a transaction created, changed or deleted an object.
fn changed(object_id: Address, before: Option<&Arc<Object>>, after: Option<&Arc<Object>>) -> ChangedObject {
    let exists = |old: &Arc<Object>| ObjectIn::Exist { version: old.version(), digest: old.digest(), owner: *old.owner() };
    let output_state = after.map_or(ObjectOut::NotExist, |object| match object.data() {
        ObjectData::Struct(_) => ObjectOut::ObjectWrite { digest: object.digest(), owner: *object.owner() },
        ObjectData::Package(package) => ObjectOut::PackageWrite { version: package.version, digest: object.digest() },
    });
    let id_operation = match (before, after) {
        (None, _) => IdOperation::Created,
        (_, None) => IdOperation::Deleted,
        _ => IdOperation::None,
    };
    ChangedObject { object_id, input_state: before.map_or(ObjectIn::NotExist, exists), output_state, id_operation }
}
