//! Assigns a role to every command, argument and input. A refusal locates the bytes of the part.

use std::fmt;

use countersign_core::json::At;
use countersign_core::{Code, Refusal, U256};
use sui_sdk_types::{
    Address, Argument, Command, Identifier, Input, MergeCoins, MoveCall, ProgrammableTransaction, SharedInput, SplitCoins, TypeTag,
    WithdrawFrom,
};

use super::ranges::{Range, Ranges};
use super::{CLOCK, COIN, Coins, Funds, INITIATE, Initiate, InputRole, MAX_DESTINATION_DATA, MODULE, PtbLayout, REDEEM_FUNDS, SEND_FUNDS};
use crate::balance;

/// Returns the name of a command in Sui's documentation.
const fn command_name(command: &Command) -> &'static str {
    match command {
        Command::MoveCall(_) => "MoveCall",
        Command::TransferObjects(_) => "TransferObjects",
        Command::SplitCoins(_) => "SplitCoins",
        Command::MergeCoins(_) => "MergeCoins",
        Command::Publish(_) => "Publish",
        Command::MakeMoveVector(_) => "MakeMoveVec",
        Command::Upgrade(_) => "Upgrade",
        _ => "an unknown command",
    }
}

/// Writes an argument as Sui's documentation does.
struct Written<'a>(&'a Argument);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Argument::Gas => f.write_str("GasCoin"),
            Argument::Input(index) => write!(f, "Input({index})"),
            Argument::Result(index) => write!(f, "Result({index})"),
            Argument::NestedResult(index, part) => write!(f, "NestedResult({index}, {part})"),
        }
    }
}

/// Decodes a transaction: see [`Initiate::decode`].
pub(super) fn read(transaction: &ProgrammableTransaction, native: bool, at: &At<'_>) -> Result<(Initiate, PtbLayout), Refusal> {
    Reader { transaction, ranges: Ranges(transaction), at, roles: vec![None; transaction.inputs.len()] }.read(native)
}

/// The commands of a deposit, in their order. Only the call is always there.
struct Commands<'r> {
    redeem: Option<&'r MoveCall>,
    merge: Option<&'r MergeCoins>,
    split: Option<&'r SplitCoins>,
    send: Option<&'r MoveCall>,
    call: &'r MoveCall,
}

impl Commands<'_> {
    fn merge_index(&self) -> usize {
        usize::from(self.redeem.is_some())
    }

    fn split_index(&self) -> usize {
        self.merge_index().saturating_add(usize::from(self.merge.is_some()))
    }
}

/// Returns a command that calls a function of the module `0x2::coin`.
fn of_coin<'r>(command: Option<&'r Command>, function: &str) -> Option<&'r MoveCall> {
    match command {
        Some(Command::MoveCall(call))
            if call.package == Address::TWO && call.module.as_str() == COIN && call.function.as_str() == function =>
        {
            Some(call)
        }
        _ => None,
    }
}

struct Reader<'r, 'p> {
    transaction: &'r ProgrammableTransaction,
    ranges: Ranges<'r>,
    at: &'r At<'p>,
    roles: Vec<Option<InputRole>>,
}

impl<'r> Reader<'r, '_> {
    fn refuse(&self, code: Code, (start, end): Range) -> Refusal {
        self.at.refuse_bytes(code, start, end)
    }

    fn read(mut self, native: bool) -> Result<(Initiate, PtbLayout), Refusal> {
        let commands = self.commands(native)?;
        let call = commands.call;
        self.function(call)?;
        let coin_type = self.type_argument(call)?;
        let [registry, initiator, redeemer, secret_hash, amount, timelock, data, coin, clock] = call.arguments.as_slice() else {
            let [.., arguments] = self.ranges.call();
            return Err(self.refuse(Code::UnexpectedArgument, arguments).with_expected("9 arguments").with_actual(call.arguments.len()));
        };

        let split_index = commands.split_index();
        let withdrawal = commands.redeem.map(|redeem| self.withdrawal(redeem, &coin_type)).transpose()?;
        let coins = match commands.split {
            Some(split) if native && withdrawal.is_none() => self.gas_coin(split).map(|()| None)?,
            Some(split) if withdrawal.is_some() && commands.merge.is_none() => self.redeemed(&split.coin, split_index).map(|()| None)?,
            Some(split) => Some(self.coins(&commands, split)?),
            None => None,
        };
        let remainder = commands.send.zip(commands.split).map(|(send, split)| self.remainder(send, split, split_index, &coin_type));
        let funds = match (withdrawal, remainder.transpose()?) {
            (Some((withdrawal, _)), remainder) => Some(Funds { withdrawal, remainder }),
            (None, _) => None,
        };
        let split_amount = match commands.split {
            Some(split) => {
                let [split_amount] = split.amounts.as_slice() else {
                    let range = self.ranges.command(split_index);
                    return Err(self.refuse(Code::UnexpectedArgument, range).with_expected("one amount").with_actual(split.amounts.len()));
                };
                Some(self.amount(split_amount, |ranges| ranges.command(split_index))?)
            }
            None => None,
        };

        let registry = self.shared(registry, 0, InputRole::Registry)?;
        let initiator = Address::new(self.pure(initiator, 1, InputRole::Initiator)?);
        let redeemer = Address::new(self.pure(redeemer, 2, InputRole::Redeemer)?);
        let secret_hash = match self.pure::<33>(secret_hash, 3, InputRole::SecretHash)? {
            [32, hash @ ..] => hash,
            _ => return Err(self.unlike(&InputRole::SecretHash, "a vector of 32 bytes")),
        };
        let (call_amount, amount) = self.amount(amount, |ranges| ranges.argument(4))?;
        let timelock = U256::from_le_bytes::<32>(self.pure(timelock, 5, InputRole::Timelock)?);
        let destination_data = self.destination_data(data)?;
        let nested = self.result(coin, if split_amount.is_some() { split_index } else { 0 })?;
        if self.shared(clock, 8, InputRole::Clock)? != super::clock() {
            return Err(self.unlike(&InputRole::Clock, "0x6, shared since version 1, read-only"));
        }
        let (split_amount, split_value) = split_amount.unwrap_or((call_amount, amount));
        if split_value != amount {
            return Err(self.differs(split_amount, format!("{amount}, as in the call"), split_value));
        }
        if let Some((index, withdrawn)) = withdrawal {
            // Besides coins, which may hold the rest. No transaction may withdraw nothing.
            if coins.is_none() && withdrawn != amount {
                return Err(self.differs(index, format!("{amount}, as in the call"), withdrawn));
            }
            if withdrawn == 0 || withdrawn > amount {
                return Err(self.differs(index, format!("1 to {amount}, the amount of the call"), withdrawn));
            }
        }

        let initiate =
            Initiate { package: call.package, coin_type, registry, initiator, redeemer, secret_hash, amount, timelock, destination_data };
        self.coins_are_no_other_object(&initiate.registry)?;
        let roles = self.every_input_used()?;
        Ok((initiate, PtbLayout { roles, split_amount, call_amount, coins, funds, nested }))
    }

    fn differs(&self, index: u16, expected: String, actual: u64) -> Refusal {
        self.refuse(Code::AmountMismatch, self.ranges.input(usize::from(index))).with_expected(expected).with_actual(actual)
    }

    /// Requires exactly the commands that the coin needs.
    fn commands(&self, native: bool) -> Result<Commands<'r>, Refusal> {
        let all = self.transaction.commands.as_slice();
        let redeem = of_coin(all.first(), REDEEM_FUNDS);
        let rest = if redeem.is_some() { all.get(1..).unwrap_or_default() } else { all };
        let (merge, rest) = match rest {
            [Command::MergeCoins(merge), rest @ ..] if !native || redeem.is_some() => (Some(merge), rest),
            rest => (None, rest),
        };
        let found = match rest {
            // What is withdrawn is the amount, and nothing is split.
            [Command::MoveCall(call)] if merge.is_none() && redeem.is_some() => Some((None, None, call)),
            [Command::SplitCoins(split), Command::MoveCall(call)] if merge.is_some() || redeem.is_none() => Some((Some(split), None, call)),
            [Command::SplitCoins(split), send, Command::MoveCall(call)] if redeem.is_some() => {
                of_coin(Some(send), SEND_FUNDS).map(|send| (Some(split), Some(send), call))
            }
            _ => None,
        };
        if let Some((split, send, call)) = found {
            return Ok(Commands { redeem, merge, split, send, call });
        }
        let mut plan =
            vec!["MoveCall of 0x2::coin::redeem_funds", "MergeCoins", "SplitCoins", "MoveCall of 0x2::coin::send_funds", "MoveCall"];
        if redeem.is_none() || (merge.is_some() && rest.len() < 3) {
            plan.remove(3);
        }
        if merge.is_none() {
            plan.remove(1);
        }
        if redeem.is_none() {
            plan.remove(0);
        }
        let is_as_planned = |command: &Command, planned: &str| match planned.split_once(" of 0x2::coin::") {
            Some((_, function)) => of_coin(Some(command), function).is_some(),
            None => command_name(command) == planned,
        };
        let index = all.iter().zip(&plan).take_while(|(command, planned)| is_as_planned(command, planned)).count();
        let range = if index < all.len() { self.ranges.command(index) } else { self.ranges.commands_head() };
        Err(self
            .refuse(Code::UnexpectedCommand, range)
            .with_expected(plan.get(index).copied().unwrap_or("no further command"))
            .with_actual(all.get(index).map_or("no further command", command_name)))
    }

    /// Requires a call of `0x2::coin` for the coin, with these many arguments.
    fn coin_call<'c, const N: usize>(&self, call: &'c MoveCall, index: usize, coin_type: &TypeTag) -> Result<&'c [Argument; N], Refusal> {
        let range = self.ranges.command(index);
        if !matches!(call.type_arguments.as_slice(), [one] if one == coin_type) {
            let actual: Vec<_> = call.type_arguments.iter().map(ToString::to_string).collect();
            return Err(self.refuse(Code::CoinTypeMismatch, range).with_expected(coin_type.to_string()).with_actual(actual.join(", ")));
        }
        call.arguments.as_slice().try_into().map_err(|_| {
            self.refuse(Code::UnexpectedArgument, range).with_expected(format!("{N} arguments")).with_actual(call.arguments.len())
        })
    }

    /// Returns the index and the amount of the withdrawal that is redeemed, which must be of the coin and from the sender.
    fn withdrawal(&mut self, redeem: &MoveCall, coin_type: &TypeTag) -> Result<(u16, u64), Refusal> {
        let [argument] = self.coin_call(redeem, 0, coin_type)?;
        let unlike = |reader: &Self, index: u16, code| reader.refuse(code, reader.ranges.input(usize::from(index)));
        let (index, input) = self.take(argument, InputRole::Withdrawal(0), |ranges| ranges.command(0))?;
        let Input::FundsWithdrawal(withdrawal) = input else {
            return Err(unlike(self, index, Code::UnexpectedInput).with_expected("a withdrawal from the address balance"));
        };
        if withdrawal.coin_type() != coin_type {
            let refusal = unlike(self, index, Code::CoinTypeMismatch).with_expected(coin_type.to_string());
            return Err(refusal.with_actual(withdrawal.coin_type().to_string()));
        }
        let actual = match withdrawal.source() {
            WithdrawFrom::Sender => {
                let amount = withdrawal.amount().unwrap_or_default();
                if let Some(role) = self.roles.get_mut(usize::from(index)) {
                    *role = Some(InputRole::Withdrawal(amount));
                }
                return Ok((index, amount));
            }
            WithdrawFrom::Sponsor => "the sponsor's address balance".to_owned(),
            WithdrawFrom::SenderAllowance { funder, .. } => format!("the address balance of {funder}"),
            _ => "another source".to_owned(),
        };
        Err(unlike(self, index, Code::UnexpectedInput).with_expected("the sender's address balance").with_actual(actual))
    }

    /// Requires that a command works on the coin that was withdrawn.
    fn redeemed(&self, argument: &Argument, command: usize) -> Result<(), Refusal> {
        self.same(argument, &Argument::Result(0), command)
    }

    fn same(&self, argument: &Argument, expected: &Argument, command: usize) -> Result<(), Refusal> {
        if argument == expected {
            return Ok(());
        }
        let refusal = self.refuse(Code::UnexpectedArgument, self.ranges.command(command));
        Err(refusal.with_expected(Written(expected).to_string()).with_actual(Written(argument).to_string()))
    }

    /// Returns the index of the account that gets back what is left after the split.
    fn remainder(&mut self, send: &MoveCall, split: &SplitCoins, split_index: usize, coin_type: &TypeTag) -> Result<u16, Refusal> {
        let index = split_index.saturating_add(1);
        let [coin, account] = self.coin_call(send, index, coin_type)?;
        self.same(coin, &split.coin, index)?;
        let (input_index, input) = self.take(account, InputRole::Remainder(Address::ZERO), |ranges| ranges.command(index))?;
        let bytes = if let Input::Pure(bytes) = input { bytes.as_slice().try_into().ok() } else { None };
        let Some(bytes) = bytes else { return Err(self.unlike(&InputRole::Remainder(Address::ZERO), "an address of 32 bytes")) };
        if let Some(role) = self.roles.get_mut(usize::from(input_index)) {
            *role = Some(InputRole::Remainder(Address::new(bytes)));
        }
        Ok(input_index)
    }

    fn function(&self, call: &MoveCall) -> Result<(), Refusal> {
        let other = |got: &Identifier, wanted, range| {
            Err(self.refuse(Code::UnexpectedSelector, range).with_expected(wanted).with_actual(got.to_string()))
        };
        if call.module.as_str() != MODULE {
            let [_, module, ..] = self.ranges.call();
            return other(&call.module, MODULE, module);
        }
        if call.function.as_str() != INITIATE {
            let [_, _, function, ..] = self.ranges.call();
            return other(&call.function, INITIATE, function);
        }
        Ok(())
    }

    fn type_argument(&self, call: &MoveCall) -> Result<TypeTag, Refusal> {
        match call.type_arguments.as_slice() {
            [coin] => Ok(coin.clone()),
            other => {
                let [_, _, _, types, _] = self.ranges.call();
                Err(self.refuse(Code::CoinTypeMismatch, types).with_expected("one type argument").with_actual(other.len()))
            }
        }
    }

    fn gas_coin(&self, split: &SplitCoins) -> Result<(), Refusal> {
        match &split.coin {
            Argument::Gas => Ok(()),
            other => Err(self
                .refuse(Code::UnexpectedArgument, self.ranges.command(0))
                .with_expected(Written(&Argument::Gas).to_string())
                .with_actual(Written(other).to_string())),
        }
    }

    fn coins(&mut self, commands: &Commands<'_>, split: &SplitCoins) -> Result<Coins, Refusal> {
        let index = commands.merge_index();
        let coin = self.coin(&split.coin, commands.split_index())?;
        let mut merged = Vec::new();
        if let Some(merge) = commands.merge {
            self.same(&merge.coin, &split.coin, index)?;
            let Some((last, rest)) = merge.coins_to_merge.split_last() else {
                let range = self.ranges.command(index);
                return Err(self.refuse(Code::UnexpectedArgument, range).with_expected("at least one coin to merge").with_actual(0_u64));
            };
            let mut others = merge.coins_to_merge.as_slice();
            if commands.redeem.is_some() {
                self.redeemed(last, index)?;
                others = rest;
            }
            for other in others {
                merged.push(self.coin(other, index)?);
            }
        }
        Ok(Coins { split: coin, merged })
    }

    fn coin(&mut self, argument: &Argument, command: usize) -> Result<u16, Refusal> {
        let input = match argument {
            Argument::Input(index) => self.transaction.inputs.get(usize::from(*index)),
            _ => None,
        };
        match (argument, input) {
            (Argument::Input(index), Some(Input::ImmutableOrOwned(coin))) => {
                if balance::reserved(coin).is_some() {
                    let refusal = self.refuse(Code::UnexpectedInput, self.ranges.input(usize::from(*index)));
                    return Err(refusal.with_reason("a reservation of an address balance takes the place of a coin"));
                }
                if self.roles.iter().flatten().any(|role| matches!(role, InputRole::Coin(other) if other.object_id() == coin.object_id())) {
                    let range = self.ranges.input(usize::from(*index));
                    return Err(self
                        .refuse(Code::UnexpectedInput, range)
                        .with_reason("a coin is listed twice")
                        .with_actual(coin.object_id().to_string()));
                }
                self.take(argument, InputRole::Coin(coin.clone()), |ranges| ranges.command(command)).map(|(index, _)| index)
            }
            (Argument::Input(index), Some(_)) => {
                Err(self.refuse(Code::UnexpectedInput, self.ranges.input(usize::from(*index))).with_expected("a coin of the owner"))
            }
            _ => {
                let range = self.ranges.command(command);
                Err(self
                    .refuse(Code::UnexpectedArgument, range)
                    .with_expected("a coin of the owner")
                    .with_actual(Written(argument).to_string()))
            }
        }
    }

    /// Assigns a role to an input, and returns the input with its index. Two inputs may be amounts; no other role may occur twice.
    fn take(&mut self, argument: &Argument, role: InputRole, range: impl Fn(Ranges<'r>) -> Range) -> Result<(u16, &'r Input), Refusal> {
        let refuse = |code, range: Range| self.at.refuse_bytes(code, range.0, range.1);
        let unexpected = || {
            refuse(Code::UnexpectedArgument, range(self.ranges))
                .with_expected(format!("an input: the {}", role.name()))
                .with_actual(Written(argument).to_string())
        };
        let Argument::Input(index) = argument else { return Err(unexpected()) };
        let position = usize::from(*index);
        let Some((input, slot)) = self.transaction.inputs.get(position).zip(self.roles.get_mut(position)) else {
            return Err(unexpected());
        };
        match slot {
            Some(InputRole::Amount) if role == InputRole::Amount => {}
            Some(other) => {
                let range = self.ranges.input(position);
                let reason = format!("one input is both the {} and the {}", other.name(), role.name());
                return Err(refuse(Code::UnexpectedInput, range).with_reason(reason));
            }
            None => *slot = Some(role),
        }
        Ok((*index, input))
    }

    /// Returns the refusal of the input with a role, which does not have the form of that role.
    fn unlike(&self, role: &InputRole, expected: &'static str) -> Refusal {
        self.refuse(Code::UnexpectedInput, self.range_of(role)).with_expected(format!("{}: {expected}", role.name()))
    }

    fn range_of(&self, role: &InputRole) -> Range {
        self.ranges.input(self.roles.iter().position(|other| other.as_ref() == Some(role)).unwrap_or_default())
    }

    fn input(&mut self, argument: &Argument, position: usize, role: InputRole) -> Result<&'r Input, Refusal> {
        self.take(argument, role, |ranges| ranges.argument(position)).map(|(_, input)| input)
    }

    fn shared(&mut self, argument: &Argument, position: usize, role: InputRole) -> Result<SharedInput, Refusal> {
        match self.input(argument, position, role.clone())? {
            Input::Shared(shared) => Ok(shared.clone()),
            _ => Err(self.unlike(&role, "a shared object")),
        }
    }

    fn pure<const N: usize>(&mut self, argument: &Argument, position: usize, role: InputRole) -> Result<[u8; N], Refusal> {
        let input = self.input(argument, position, role.clone())?;
        let bytes = match input {
            Input::Pure(bytes) => bytes.as_slice().try_into().ok(),
            _ => None,
        };
        bytes.ok_or_else(|| {
            self.unlike(
                &role,
                match role {
                    InputRole::Timelock => "a u256 of 32 bytes",
                    InputRole::SecretHash => "a vector of 32 bytes",
                    _ => "an address of 32 bytes",
                },
            )
        })
    }

    /// Returns the index and the value of an amount. Two inputs may be amounts, so the input cannot be found by its role.
    fn amount(&mut self, argument: &Argument, range: impl Fn(Ranges<'r>) -> Range) -> Result<(u16, u64), Refusal> {
        let (index, input) = self.take(argument, InputRole::Amount, range)?;
        if let Input::Pure(bytes) = input
            && let Ok(bytes) = bytes.as_slice().try_into()
        {
            return Ok((index, u64::from_le_bytes(bytes)));
        }
        let range = self.ranges.input(usize::from(index));
        Err(self.refuse(Code::UnexpectedInput, range).with_expected("amount: a u64 of 8 bytes"))
    }

    fn destination_data(&mut self, argument: &Argument) -> Result<Vec<u8>, Refusal> {
        let role = InputRole::DestinationData;
        let Input::Pure(bytes) = self.input(argument, 6, role.clone())? else {
            return Err(self.unlike(&role, "a vector of bytes"));
        };
        let data: &[u8] = bcs::from_bytes(bytes).map_err(|_| self.unlike(&role, "a vector of bytes"))?;
        if data.len() > MAX_DESTINATION_DATA {
            let range = self.range_of(&role);
            let refusal = self.refuse(Code::DestinationDataTooLong, range);
            return Err(refusal.with_expected(format!("at most {MAX_DESTINATION_DATA} bytes")).with_actual(data.len()));
        }
        Ok(data.to_vec())
    }

    /// Requires that the coin is the result of the split, or of the withdrawal. Returns whether it is written as a nested result.
    fn result(&self, argument: &Argument, split: usize) -> Result<bool, Refusal> {
        match argument {
            Argument::Result(index) if usize::from(*index) == split => Ok(false),
            Argument::NestedResult(index, 0) if usize::from(*index) == split => Ok(true),
            other => Err(self
                .refuse(Code::UnexpectedArgument, self.ranges.argument(7))
                .with_expected(format!("Result({split}), the coin of the amount"))
                .with_actual(Written(other).to_string())),
        }
    }

    fn coins_are_no_other_object(&self, registry: &SharedInput) -> Result<(), Refusal> {
        let objects = [(registry.object_id(), InputRole::Registry), (CLOCK, InputRole::Clock)];
        for (index, role) in self.roles.iter().enumerate() {
            let Some(InputRole::Coin(coin)) = role else { continue };
            if let Some((object, other)) = objects.iter().find(|(object, _)| object == coin.object_id()) {
                let refusal = self.refuse(Code::UnexpectedInput, self.ranges.input(index));
                return Err(refusal
                    .with_reason(format!("one object is both a coin and the {}", other.name()))
                    .with_actual(object.to_string()));
            }
        }
        Ok(())
    }

    fn every_input_used(self) -> Result<Vec<InputRole>, Refusal> {
        if let Some(unused) = self.roles.iter().position(Option::is_none) {
            return Err(self.refuse(Code::UnexpectedInput, self.ranges.input(unused)).with_reason("no command uses the input"));
        }
        Ok(self.roles.into_iter().flatten().collect())
    }
}
