//! Assigns a role to every command, argument and input. A refusal locates the bytes of the part.

use std::fmt;

use countersign_core::json::At;
use countersign_core::{Code, Refusal, U256};
use sui_sdk_types::{
    Address, Argument, Command, Identifier, Input, MergeCoins, MoveCall, ProgrammableTransaction, SharedInput, SplitCoins, TypeTag,
};

use super::ranges::{Range, Ranges};
use super::{CLOCK, Coins, INITIATE, Initiate, InputRole, MAX_DESTINATION_DATA, MODULE, PtbLayout};

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
        let (merge, split, call) = self.commands(native)?;
        self.function(call)?;
        let coin_type = self.type_argument(call)?;
        let [registry, initiator, redeemer, secret_hash, amount, timelock, data, coin, clock] = call.arguments.as_slice() else {
            let [.., arguments] = self.ranges.call();
            return Err(self.refuse(Code::UnexpectedArgument, arguments).with_expected("9 arguments").with_actual(call.arguments.len()));
        };

        let coins = match native {
            true => self.gas_coin(split).map(|()| None)?,
            false => Some(self.coins(merge, split)?),
        };
        let split_index = usize::from(merge.is_some());
        let [split_amount] = split.amounts.as_slice() else {
            let range = self.ranges.command(split_index);
            return Err(self.refuse(Code::UnexpectedArgument, range).with_expected("one amount").with_actual(split.amounts.len()));
        };
        let (split_amount, split_value) = self.amount(split_amount, |ranges| ranges.command(split_index))?;

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
        let nested = self.split_result(coin, split_index)?;
        if self.shared(clock, 8, InputRole::Clock)? != super::clock() {
            return Err(self.unlike(&InputRole::Clock, "0x6, shared since version 1, read-only"));
        }
        if split_value != amount {
            let range = self.ranges.input(usize::from(split_amount));
            return Err(self
                .refuse(Code::AmountMismatch, range)
                .with_expected(format!("{amount}, as in the call"))
                .with_actual(split_value));
        }

        let initiate =
            Initiate { package: call.package, coin_type, registry, initiator, redeemer, secret_hash, amount, timelock, destination_data };
        self.coins_are_no_other_object(&initiate.registry)?;
        let roles = self.every_input_used()?;
        Ok((initiate, PtbLayout { roles, split_amount, call_amount, coins, nested }))
    }

    /// Requires exactly the commands that the coin needs.
    fn commands(&self, native: bool) -> Result<(Option<&'r MergeCoins>, &'r SplitCoins, &'r MoveCall), Refusal> {
        let commands = self.transaction.commands.as_slice();
        match commands {
            [Command::SplitCoins(split), Command::MoveCall(call)] => return Ok((None, split, call)),
            [Command::MergeCoins(merge), Command::SplitCoins(split), Command::MoveCall(call)] if !native => {
                return Ok((Some(merge), split, call));
            }
            _ => {}
        }
        let merges = !native && matches!(commands, [Command::MergeCoins(_), ..]);
        let plan: &[_] = if merges { &["MergeCoins", "SplitCoins", "MoveCall"] } else { &["SplitCoins", "MoveCall"] };
        let names = commands.iter().map(command_name);
        let index = names.clone().zip(plan).take_while(|(name, wanted)| name == *wanted).count();
        let range = if index < commands.len() { self.ranges.command(index) } else { self.ranges.commands_head() };
        Err(self
            .refuse(Code::UnexpectedCommand, range)
            .with_expected(plan.get(index).copied().unwrap_or("no further command"))
            .with_actual(names.clone().nth(index).unwrap_or("no further command")))
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

    fn coins(&mut self, merge: Option<&MergeCoins>, split: &SplitCoins) -> Result<Coins, Refusal> {
        let index = usize::from(merge.is_some());
        let coin = self.coin(&split.coin, index)?;
        let mut merged = Vec::new();
        if let Some(merge) = merge {
            if merge.coin != split.coin {
                let range = self.ranges.command(0);
                return Err(self
                    .refuse(Code::UnexpectedArgument, range)
                    .with_expected(Written(&split.coin).to_string())
                    .with_actual(Written(&merge.coin).to_string()));
            }
            if merge.coins_to_merge.is_empty() {
                let range = self.ranges.command(0);
                return Err(self.refuse(Code::UnexpectedArgument, range).with_expected("at least one coin to merge").with_actual(0_u64));
            }
            for other in &merge.coins_to_merge {
                merged.push(self.coin(other, 0)?);
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

    /// Requires that the coin is the result of the split. Returns whether it is written as a nested result.
    fn split_result(&self, argument: &Argument, split: usize) -> Result<bool, Refusal> {
        match argument {
            Argument::Result(index) if usize::from(*index) == split => Ok(false),
            Argument::NestedResult(index, 0) if usize::from(*index) == split => Ok(true),
            other => Err(self
                .refuse(Code::UnexpectedArgument, self.ranges.argument(7))
                .with_expected(format!("Result({split}), the coin of the split"))
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
