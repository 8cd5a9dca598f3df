//! Gives every command, argument and input its role, or refuses it at its own bytes.

use std::fmt;

use countersign_core::json::At;
use countersign_core::{Code, Refusal, U256};
use sui_sdk_types::{
    Address, Argument, Command, Identifier, Input, MergeCoins, MoveCall, ProgrammableTransaction, SharedInput, SplitCoins, TypeTag,
};

use super::layout::{Layout, Range};
use super::{CLOCK, Coins, INITIATE, Initiate, MAX_DESTINATION_DATA, MODULE, Role, PtbLayout};

/// What a command is called in Sui's documentation.
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

struct Shown<'a>(&'a Argument);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Argument::Gas => f.write_str("GasCoin"),
            Argument::Input(index) => write!(f, "Input({index})"),
            Argument::Result(index) => write!(f, "Result({index})"),
            Argument::NestedResult(index, part) => write!(f, "NestedResult({index}, {part})"),
        }
    }
}

/// Reads a transaction: see [`Initiate::decode`].
pub(super) fn read(transaction: &ProgrammableTransaction, native: bool, at: &At<'_>) -> Result<(Initiate, PtbLayout), Refusal> {
    Reader { transaction, layout: Layout(transaction), at, roles: vec![None; transaction.inputs.len()] }.read(native)
}

struct Reader<'r, 'p> {
    transaction: &'r ProgrammableTransaction,
    layout: Layout<'r>,
    at: &'r At<'p>,
    roles: Vec<Option<Role>>,
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
            let [.., arguments] = self.layout.call();
            return Err(self.refuse(Code::UnexpectedArgument, arguments).with_expected("9 arguments").with_actual(call.arguments.len()));
        };

        let coins = match native {
            true => self.gas_coin(split).map(|()| None)?,
            false => Some(self.coins(merge, split)?),
        };
        let split_index = usize::from(merge.is_some());
        let [split_amount] = split.amounts.as_slice() else {
            let range = self.layout.command(split_index);
            return Err(self.refuse(Code::UnexpectedArgument, range).with_expected("one amount").with_actual(split.amounts.len()));
        };
        let (split_amount, split_value) = self.amount(split_amount, |layout| layout.command(split_index))?;

        let registry = self.shared(registry, 0, Role::Registry)?;
        let initiator = Address::new(self.pure(initiator, 1, Role::Initiator)?);
        let redeemer = Address::new(self.pure(redeemer, 2, Role::Redeemer)?);
        let secret_hash = match self.pure::<33>(secret_hash, 3, Role::SecretHash)? {
            [32, hash @ ..] => hash,
            _ => return Err(self.unlike(&Role::SecretHash, "a vector of 32 bytes")),
        };
        let (call_amount, amount) = self.amount(amount, |layout| layout.argument(4))?;
        let timelock = U256::from_le_bytes::<32>(self.pure(timelock, 5, Role::Timelock)?);
        let destination_data = self.destination_data(data)?;
        let nested = self.split_result(coin, split_index)?;
        if self.shared(clock, 8, Role::Clock)? != super::clock() {
            return Err(self.unlike(&Role::Clock, "0x6, shared since version 1, not changed by the call"));
        }
        if split_value != amount {
            let range = self.layout.input(usize::from(split_amount));
            return Err(self.refuse(Code::AmountMismatch, range).with_expected(format!("{amount}, as in the call")).with_actual(split_value));
        }

        let initiate =
            Initiate { package: call.package, coin_type, registry, initiator, redeemer, secret_hash, amount, timelock, destination_data };
        self.coins_are_no_other_object(&initiate.registry)?;
        let roles = self.every_input_used()?;
        Ok((initiate, PtbLayout { roles, split_amount, call_amount, coins, nested }))
    }

    /// The commands that the coin needs, and no others.
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
        let range = if index < commands.len() { self.layout.command(index) } else { self.layout.commands_head() };
        Err(self
            .refuse(Code::UnexpectedCommand, range)
            .with_expected(plan.get(index).copied().unwrap_or("no further command"))
            .with_actual(names.clone().nth(index).unwrap_or("no further command")))
    }

    fn function(&self, call: &MoveCall) -> Result<(), Refusal> {
        let other = |got: &Identifier, wanted, range| Err(self.refuse(Code::UnexpectedSelector, range).with_expected(wanted).with_actual(got));
        if call.module.as_str() != MODULE {
            let [_, module, ..] = self.layout.call();
            return other(&call.module, MODULE, module);
        }
        if call.function.as_str() != INITIATE {
            let [_, _, function, ..] = self.layout.call();
            return other(&call.function, INITIATE, function);
        }
        Ok(())
    }

    fn type_argument(&self, call: &MoveCall) -> Result<TypeTag, Refusal> {
        match call.type_arguments.as_slice() {
            [coin] => Ok(coin.clone()),
            other => {
                let [_, _, _, types, _] = self.layout.call();
                Err(self.refuse(Code::CoinTypeMismatch, types).with_expected("one type argument").with_actual(other.len()))
            }
        }
    }

    fn gas_coin(&self, split: &SplitCoins) -> Result<(), Refusal> {
        match &split.coin {
            Argument::Gas => Ok(()),
            other => Err(self.refuse(Code::UnexpectedArgument, self.layout.command(0)).with_expected(Shown(&Argument::Gas)).with_actual(Shown(other))),
        }
    }

    fn coins(&mut self, merge: Option<&MergeCoins>, split: &SplitCoins) -> Result<Coins, Refusal> {
        let index = usize::from(merge.is_some());
        let coin = self.coin(&split.coin, index)?;
        let mut merged = Vec::new();
        if let Some(merge) = merge {
            if merge.coin != split.coin {
                let range = self.layout.command(0);
                return Err(self.refuse(Code::UnexpectedArgument, range).with_expected(Shown(&split.coin)).with_actual(Shown(&merge.coin)));
            }
            if merge.coins_to_merge.is_empty() {
                let range = self.layout.command(0);
                return Err(self.refuse(Code::UnexpectedArgument, range).with_expected("at least one coin to merge").with_actual(0));
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
                if self.roles.iter().flatten().any(|role| matches!(role, Role::Coin(other) if other.object_id() == coin.object_id())) {
                    let range = self.layout.input(usize::from(*index));
                    return Err(self.refuse(Code::UnexpectedInput, range).with_reason("a coin stands twice").with_actual(coin.object_id()));
                }
                self.take(argument, Role::Coin(coin.clone()), |layout| layout.command(command))
            }
            (Argument::Input(index), Some(_)) => {
                Err(self.refuse(Code::UnexpectedInput, self.layout.input(usize::from(*index))).with_expected("a coin of the owner"))
            }
            _ => {
                let range = self.layout.command(command);
                Err(self.refuse(Code::UnexpectedArgument, range).with_expected("a coin of the owner").with_actual(Shown(argument)))
            }
        }
    }

    /// Gives an input its role. Only the amount may have it twice.
    fn take(&mut self, argument: &Argument, role: Role, range: impl Fn(Layout<'r>) -> Range) -> Result<u16, Refusal> {
        let refuse = |code, range: Range| self.at.refuse_bytes(code, range.0, range.1);
        let unexpected =
            || refuse(Code::UnexpectedArgument, range(self.layout)).with_expected(format!("an input: the {}", role.name())).with_actual(Shown(argument));
        let Argument::Input(index) = argument else { return Err(unexpected()) };
        let position = usize::from(*index);
        match self.roles.get_mut(position) {
            None => Err(unexpected()),
            Some(Some(Role::Amount)) if role == Role::Amount => Ok(*index),
            Some(Some(other)) => {
                let range = self.layout.input(position);
                Err(refuse(Code::UnexpectedInput, range).with_reason(format!("one input is both {} and {}", other.name(), role.name())))
            }
            Some(slot) => {
                *slot = Some(role);
                Ok(*index)
            }
        }
    }

    /// A refusal of the input that has just been given a role.
    fn unlike(&self, role: &Role, expected: &'static str) -> Refusal {
        self.refuse(Code::UnexpectedInput, self.range_of(role)).with_expected(format!("{}: {expected}", role.name()))
    }

    fn range_of(&self, role: &Role) -> Range {
        self.layout.input(self.roles.iter().position(|other| other.as_ref() == Some(role)).unwrap_or_default())
    }

    fn input(&mut self, argument: &Argument, position: usize, role: Role) -> Result<&'r Input, Refusal> {
        let index = self.take(argument, role, |layout| layout.argument(position))?;
        self.transaction.inputs.get(usize::from(index)).ok_or_else(|| self.at.refuse(Code::Internal))
    }

    fn shared(&mut self, argument: &Argument, position: usize, role: Role) -> Result<SharedInput, Refusal> {
        match self.input(argument, position, role.clone())? {
            Input::Shared(shared) => Ok(shared.clone()),
            _ => Err(self.unlike(&role, "a shared object")),
        }
    }

    fn pure<const N: usize>(&mut self, argument: &Argument, position: usize, role: Role) -> Result<[u8; N], Refusal> {
        let input = self.input(argument, position, role.clone())?;
        let bytes = match input {
            Input::Pure(bytes) => bytes.as_slice().try_into().ok(),
            _ => None,
        };
        bytes.ok_or_else(|| {
            self.unlike(
                &role,
                match role {
                    Role::Timelock => "a u256 of 32 bytes",
                    Role::SecretHash => "a vector of 32 bytes",
                    _ => "an address of 32 bytes",
                },
            )
        })
    }

    /// The amount's input and value. It may stand twice, so it is found by its index.
    fn amount(&mut self, argument: &Argument, range: impl Fn(Layout<'r>) -> Range) -> Result<(u16, u64), Refusal> {
        let index = self.take(argument, Role::Amount, range)?;
        let position = usize::from(index);
        if let Some(Input::Pure(bytes)) = self.transaction.inputs.get(position)
            && let Ok(bytes) = bytes.as_slice().try_into()
        {
            return Ok((index, u64::from_le_bytes(bytes)));
        }
        Err(self.refuse(Code::UnexpectedInput, self.layout.input(position)).with_expected("amount: a u64 of 8 bytes"))
    }

    fn destination_data(&mut self, argument: &Argument) -> Result<Vec<u8>, Refusal> {
        let role = Role::DestinationData;
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

    /// Whether the coin is written as a nested result; another coin than the split's is refused.
    fn split_result(&self, argument: &Argument, split: usize) -> Result<bool, Refusal> {
        match argument {
            Argument::Result(index) if usize::from(*index) == split => Ok(false),
            Argument::NestedResult(index, 0) if usize::from(*index) == split => Ok(true),
            other => Err(self
                .refuse(Code::UnexpectedArgument, self.layout.argument(7))
                .with_expected(format!("Result({split}), the coin that was split off"))
                .with_actual(Shown(other))),
        }
    }

    fn coins_are_no_other_object(&self, registry: &SharedInput) -> Result<(), Refusal> {
        let objects = [(registry.object_id(), Role::Registry), (CLOCK, Role::Clock)];
        for (index, role) in self.roles.iter().enumerate() {
            let Some(Role::Coin(coin)) = role else { continue };
            if let Some((object, other)) = objects.iter().find(|(object, _)| object == coin.object_id()) {
                let refusal = self.refuse(Code::UnexpectedInput, self.layout.input(index));
                return Err(refusal.with_reason(format!("one object is both coin and {}", other.name())).with_actual(object));
            }
        }
        Ok(())
    }

    fn every_input_used(self) -> Result<Vec<Role>, Refusal> {
        if let Some(unused) = self.roles.iter().position(Option::is_none) {
            return Err(self.refuse(Code::UnexpectedInput, self.layout.input(unused)).with_reason("an input is used by no command"));
        }
        Ok(self.roles.into_iter().flatten().collect())
    }
}
