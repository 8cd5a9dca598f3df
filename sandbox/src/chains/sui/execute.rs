//! Executes programmable transactions, as far as payments and swaps need them.

use std::collections::{BTreeMap, BTreeSet};

use sui_sdk_types::{
    Address, Argument, Command, CommandArgumentError, Digest, Event, ExecutionError, ExecutionStatus, Input, MoveCall, Owner,
    SignedTransaction, StructTag, Transaction, TypeTag,
};

use super::check::Loaded;
use super::htlc;
use super::ledger::{Executed, View, coin};
use crate::chains::Change;

/// The balance of the coin that pays in a simulation without coins.
const SIMULATED_GAS: u64 = 1_000_000_000_000_000_000;

/// Where a transaction is executed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) package: Address,
    pub(super) epoch: u64,
    pub(super) millis: u64,
}

/// A value that commands use.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    Pure(Vec<u8>),
    Coin(Coin),
    /// Another object of the sender.
    Owned(Address),
    Shared(Address, bool),
    Moved,
}

/// A coin that is neither stored nor owned.
#[derive(Debug, Clone)]
pub(super) struct Coin {
    pub(super) id: Address,
    pub(super) of: TypeTag,
    pub(super) balance: u64,
}

/// An object after the transaction.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) kind: StructTag,
    pub(super) is_public: bool,
    pub(super) contents: Vec<u8>,
    pub(super) owner: Owner,
}

impl Coin {
    pub(super) fn draft(&self, owner: Owner) -> Draft {
        let contents = [self.id.as_ref(), &self.balance.to_le_bytes()[..]].concat();
        Draft { kind: StructTag::coin(self.of.clone()), is_public: true, contents, owner }
    }
}

/// A transaction while it is executed.
pub(super) struct Machine<'a> {
    pub(super) view: &'a View,
    pub(super) context: Context,
    pub(super) sender: Address,
    pub(super) digest: Digest,
    /// The version of everything that it changes.
    pub(super) version: u64,
    created: u64,
    pub(super) gas: Slot,
    pub(super) inputs: Vec<Slot>,
    results: Vec<Vec<Slot>>,
    pub(super) drafts: BTreeMap<Address, Draft>,
    /// Objects that others hold now.
    pub(super) wrapped: BTreeSet<Address>,
    pub(super) deleted: BTreeSet<Address>,
    pub(super) events: Vec<Event>,
    pub(super) swaps: Vec<([u8; 32], Change)>,
}

/// Executes a transaction that was checked.
pub(super) fn execute(view: &View, loaded: &Loaded<'_>, signed: SignedTransaction, context: Context) -> Executed {
    let mut machine = Machine::new(view, loaded, &signed.transaction, context);
    let mut failure = None;
    for (index, command) in loaded.program.commands.iter().enumerate() {
        match machine.command(command) {
            Ok(results) => machine.results.push(results),
            Err(error) => {
                failure = Some((error, u64::try_from(index).ok()));
                break;
            }
        }
    }
    let leftover = || machine.results.iter().enumerate().find_map(|(result, slots)| Some((result, slots.iter().position(is_value)?)));
    if failure.is_none()
        && let Some((result, subresult)) = leftover()
    {
        failure = Some((ExecutionError::UnusedValueWithoutDrop { result: short(result), subresult: short(subresult) }, None));
    }
    if failure.is_none() {
        match machine.finish(loaded, &signed, &ExecutionStatus::Success) {
            Some(executed) => return executed,
            None => failure = Some((ExecutionError::InsufficientGas, None)),
        }
    }
    let (error, command) = failure.unwrap_or((ExecutionError::InvariantViolation, None));
    let status = ExecutionStatus::Failure { error, command };
    let reverted = || Machine::new(view, loaded, &signed.transaction, context);
    // If not even the storage of the inputs can be paid, everything that was offered is taken.
    reverted().finish(loaded, &signed, &status).unwrap_or_else(|| reverted().settle(loaded, &signed, &status, true))
}

const fn is_value(slot: &Slot) -> bool {
    matches!(slot, Slot::Coin(_) | Slot::Owned(_))
}

/// The coin that pays in a simulation without coins.
pub(super) fn simulated_gas(digest: Digest) -> Address {
    Address::derive_id(digest, u64::MAX)
}

fn short(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

type Outcome<T> = Result<T, CommandArgumentError>;

impl<'a> Machine<'a> {
    fn new(view: &'a View, loaded: &Loaded<'_>, transaction: &Transaction, context: Context) -> Self {
        let digest = transaction.digest();
        // The other coins that pay are merged into the first one.
        let balance = loaded.gas.iter().filter_map(|object| coin(object)).fold(0_u64, |sum, (_, balance)| sum.saturating_add(balance));
        let (id, balance) = match loaded.gas.first() {
            Some(first) => (first.object_id(), balance),
            None => (simulated_gas(digest), SIMULATED_GAS),
        };
        let balance = balance.saturating_sub(transaction.gas_payment.budget);
        let inputs = loaded.program.inputs.iter().zip(&loaded.inputs).map(|(input, object)| match (input, object) {
            (Input::Pure(bytes), _) => Slot::Pure(bytes.clone()),
            (Input::Shared(shared), _) => Slot::Shared(shared.object_id(), shared.mutability().is_mutable()),
            (_, Some(object)) => match coin(object) {
                Some((of, balance)) => Slot::Coin(Coin { id: object.object_id(), of: of.clone(), balance }),
                None => Slot::Owned(object.object_id()),
            },
            _ => Slot::Moved,
        });
        let read = loaded.gas.iter().chain(loaded.inputs.iter().flatten());
        Self {
            view,
            context,
            sender: transaction.sender,
            digest,
            version: read.map(|object| object.version()).max().unwrap_or_default().saturating_add(1),
            created: 0,
            gas: Slot::Coin(Coin { id, of: StructTag::sui().into(), balance }),
            inputs: inputs.collect(),
            results: Vec::new(),
            drafts: BTreeMap::new(),
            wrapped: BTreeSet::new(),
            deleted: loaded.gas.iter().skip(1).map(|object| object.object_id()).collect(),
            events: Vec::new(),
            swaps: Vec::new(),
        }
    }

    /// The id of another new object.
    pub(super) fn new_id(&mut self) -> Address {
        let id = Address::derive_id(self.digest, self.created);
        self.created = self.created.saturating_add(1);
        id
    }

    fn slot(&mut self, argument: &Argument) -> Outcome<&mut Slot> {
        let (index, slot) = match *argument {
            Argument::Gas => (0, Some(&mut self.gas)),
            Argument::Input(index) => (index, self.inputs.get_mut(usize::from(index))),
            Argument::Result(index) => match self.results.get_mut(usize::from(index)).map(Vec::as_mut_slice) {
                Some([only]) => (index, Some(only)),
                Some(_) => return Err(CommandArgumentError::InvalidResultArity { result: index }),
                None => (index, None),
            },
            Argument::NestedResult(index, nested) => {
                (index, self.results.get_mut(usize::from(index)).and_then(|results| results.get_mut(usize::from(nested))))
            }
        };
        slot.ok_or(CommandArgumentError::IndexOutOfBounds { index })
    }

    pub(super) fn pure(&mut self, argument: &Argument) -> Outcome<Vec<u8>> {
        match self.slot(argument)? {
            Slot::Pure(bytes) => Ok(bytes.clone()),
            Slot::Moved => Err(CommandArgumentError::InvalidValueUsage),
            _ => Err(CommandArgumentError::TypeMismatch),
        }
    }

    pub(super) fn fixed<const N: usize>(&mut self, argument: &Argument) -> Outcome<[u8; N]> {
        self.pure(argument)?.try_into().map_err(|_| CommandArgumentError::InvalidBcsBytes)
    }

    pub(super) fn shared(&mut self, argument: &Argument, is_changed: bool) -> Outcome<Address> {
        match *self.slot(argument)? {
            Slot::Shared(_, false) if is_changed => Err(CommandArgumentError::InvalidObjectByMutRef),
            Slot::Shared(id, _) => Ok(id),
            _ => Err(CommandArgumentError::TypeMismatch),
        }
    }

    fn coin_mut(&mut self, argument: &Argument) -> Outcome<&mut Coin> {
        match self.slot(argument)? {
            Slot::Coin(coin) => Ok(coin),
            Slot::Moved => Err(CommandArgumentError::InvalidValueUsage),
            _ => Err(CommandArgumentError::TypeMismatch),
        }
    }

    /// Takes a coin by value. The coin that pays for gas can only be transferred.
    pub(super) fn take_coin(&mut self, argument: &Argument) -> Outcome<Coin> {
        if *argument == Argument::Gas {
            return Err(CommandArgumentError::InvalidGasCoinUsage);
        }
        let coin = self.coin_mut(argument)?.clone();
        *self.slot(argument)? = Slot::Moved;
        Ok(coin)
    }

    /// Gives a coin to an account.
    pub(super) fn give(&mut self, coin: &Coin, to: Address) {
        self.drafts.insert(coin.id, coin.draft(Owner::Address(to)));
    }

    fn command(&mut self, command: &Command) -> Result<Vec<Slot>, ExecutionError> {
        match command {
            Command::SplitCoins(split) => {
                let mut slots = Vec::new();
                for (index, amount) in (1..).zip(&split.amounts) {
                    let amount = u64::from_le_bytes(self.fixed(amount).map_err(at(index))?);
                    let coin = self.coin_mut(&split.coin).map_err(at(0))?;
                    coin.balance = coin.balance.checked_sub(amount).ok_or(ExecutionError::InsufficientCoinBalance)?;
                    let of = coin.of.clone();
                    slots.push(Slot::Coin(Coin { id: self.new_id(), of, balance: amount }));
                }
                Ok(slots)
            }
            Command::MergeCoins(merge) => {
                for (index, source) in (1..).zip(&merge.coins_to_merge) {
                    let source = self.take_coin(source).map_err(at(index))?;
                    let coin = self.coin_mut(&merge.coin).map_err(at(0))?;
                    if coin.of != source.of {
                        return Err(at(index)(CommandArgumentError::TypeMismatch));
                    }
                    coin.balance = coin.balance.checked_add(source.balance).ok_or(ExecutionError::CoinBalanceOverflow)?;
                    self.deleted.insert(source.id);
                }
                Ok(vec![])
            }
            Command::TransferObjects(transfer) => {
                let last = short(transfer.objects.len());
                let to = Address::new(self.fixed(&transfer.address).map_err(at(last))?);
                for (index, object) in (0..).zip(&transfer.objects) {
                    self.transfer(object, to).map_err(at(index))?;
                }
                Ok(vec![])
            }
            Command::MoveCall(call) if call.package == Address::TWO => self.framework(call),
            Command::MoveCall(call) => htlc::call(self, call).map(|()| vec![]),
            _ => Err(ExecutionError::FeatureNotYetSupported),
        }
    }

    fn transfer(&mut self, object: &Argument, to: Address) -> Outcome<()> {
        match std::mem::replace(self.slot(object)?, Slot::Moved) {
            Slot::Coin(coin) => self.give(&coin, to),
            Slot::Owned(id) => {
                if let Some(draft) = self.unchanged(&id, Owner::Address(to)) {
                    if !draft.is_public {
                        return Err(CommandArgumentError::InvalidTransferObject);
                    }
                    self.drafts.insert(id, draft);
                }
            }
            Slot::Moved => return Err(CommandArgumentError::InvalidValueUsage),
            Slot::Pure(_) | Slot::Shared(..) => return Err(CommandArgumentError::InvalidObjectByValue),
        }
        Ok(())
    }

    /// The only function of the framework that is known: `0x2::transfer::public_transfer`.
    fn framework(&mut self, call: &MoveCall) -> Result<Vec<Slot>, ExecutionError> {
        match (call.module.as_str(), call.function.as_str(), call.arguments.as_slice()) {
            ("transfer", "public_transfer", [object, to]) if *object != Argument::Gas => {
                let to = Address::new(self.fixed(to).map_err(at(1))?);
                self.transfer(object, to).map_err(at(0)).map(|()| vec![])
            }
            _ => Err(ExecutionError::FunctionNotFound),
        }
    }

    /// An object as it was, with another owner.
    pub(super) fn unchanged(&self, id: &Address, owner: Owner) -> Option<Draft> {
        let data = self.view.get(id)?.as_struct()?;
        let (kind, contents) = (data.object_type().clone(), data.contents().to_vec());
        Some(Draft { kind, is_public: data.has_public_transfer(), contents, owner })
    }
}

/// An error about an argument of a command.
pub(super) fn at(argument: u16) -> impl Fn(CommandArgumentError) -> ExecutionError {
    move |kind| ExecutionError::CommandArgumentError { argument, kind }
}
