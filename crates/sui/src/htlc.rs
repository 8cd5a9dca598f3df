//! The calls of the swap contract as programmable transactions.
//!
//! A deposit is two or three commands: `MergeCoins` of the owner's coins, if the coin is not SUI and one coin object is not enough;
//! `SplitCoins` of exactly the amount; and `MoveCall` of `AtomicSwap::initiate`. The call has nine arguments, in the order of the Move
//! function:
//!
//! | argument | input |
//! |---|---|
//! | `&mut OrdersRegistry<T>` | shared object, mutable |
//! | initiator, redeemer | pure `address`, 32 bytes |
//! | secret hash | pure `vector<u8>`: `20` and 32 bytes |
//! | amount | pure `u64`, little-endian; the same input as the split's amount, or another input of the same value |
//! | timelock | pure `u256`, little-endian, milliseconds |
//! | destination data | pure `vector<u8>` |
//! | `Coin<T>` | the result of the split |
//! | `&Clock` | shared object `0x6`, version 1, immutable |
//!
//! The coin can also come from the sender's address balance. The first command is then `0x2::coin::redeem_funds<T>`, whose argument is a
//! withdrawal of the sender. `R` is its result:
//!
//! | commands after it | withdrawal |
//! |---|---|
//! | `initiate` with `R` | the amount |
//! | `SplitCoins(R, [amount])`, `0x2::coin::send_funds<T>(R, sender)`, `initiate` | the amount |
//! | `MergeCoins(coin, [.., R])`, `SplitCoins(coin, [amount])`, optionally `send_funds<T>(coin, sender)`, `initiate` | at most the amount |
//!
//! Source: `sui/sources/main.move` of the contract's public audit, commit 229a6d6a; BCS: bcs 0.1, sui-sdk-types 0.4.
//!
//! Specification: `docs/spec/sui.md#functions`.

use countersign_core::json::At;
use countersign_core::{Asset, Refusal, U256};
use sui_sdk_types::{
    Address, Argument, Command, FundsWithdrawal, Identifier, Input, MergeCoins, MoveCall, Mutability, ObjectReference,
    ProgrammableTransaction, SharedInput, SplitCoins, StructTag, TypeTag, WithdrawFrom,
};

mod ranges;
mod read;

pub(crate) use ranges::{Range, Ranges};

/// The module of the contract.
pub const MODULE: &str = "AtomicSwap";
/// The function that locks the funds.
pub const INITIATE: &str = "initiate";
/// The module of coins in the framework, and its functions that take a coin out of an address balance and put one into it.
const COIN: &str = "coin";
const REDEEM_FUNDS: &str = "redeem_funds";
const SEND_FUNDS: &str = "send_funds";
/// The id of the clock object, which is the same on every network.
pub const CLOCK: Address = Address::from_static("0x6");
/// The version at which the clock became shared.
pub const CLOCK_VERSION: u64 = 1;
/// The most bytes of destination data.
pub const MAX_DESTINATION_DATA: usize = 1024;

/// Returns the clock as a transaction input.
#[must_use]
pub fn clock() -> SharedInput {
    SharedInput::new(CLOCK, CLOCK_VERSION, Mutability::Immutable)
}

/// Returns the type of the native coin, `0x2::sui::SUI`.
#[must_use]
pub fn sui() -> TypeTag {
    StructTag::sui().into()
}

/// Returns the coin type that the registry pins for an asset; `None` if it is not a Move type.
pub(crate) fn coin_type(asset: &Asset) -> Option<TypeTag> {
    asset.token.as_ref().map_or_else(|| Some(sui()), |token| token.text.parse().ok())
}

/// The content of an `initiate` call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Initiate {
    /// The package of the contract.
    pub package: Address,
    /// The coin type, without the enclosing `Coin<..>`.
    pub coin_type: TypeTag,
    /// The orders registry.
    pub registry: SharedInput,
    /// The account that receives a refund.
    pub initiator: Address,
    /// The account that receives the funds of a redemption.
    pub redeemer: Address,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// Amount in base units.
    pub amount: u64,
    /// Timelock in milliseconds.
    pub timelock: U256,
    /// Data for the destination.
    pub destination_data: Vec<u8>,
}

/// The role of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputRole {
    /// The orders registry.
    Registry,
    /// The account that receives a refund.
    Initiator,
    /// The account that receives the funds of a redemption.
    Redeemer,
    /// The secret hash.
    SecretHash,
    /// The amount of the split, of the call, or of both.
    Amount,
    /// The timelock.
    Timelock,
    /// The destination data.
    DestinationData,
    /// The clock.
    Clock,
    /// One of the owner's coins.
    Coin(ObjectReference),
    /// A withdrawal of this many base units from the sender's address balance.
    Withdrawal(u64),
    /// The account whose address balance gets back what is left: the owner.
    Remainder(Address),
}

impl InputRole {
    /// Returns the name of the role in summaries and refusals.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Registry => "orders registry",
            Self::Initiator => "initiator",
            Self::Redeemer => "redeemer",
            Self::SecretHash => "secret hash",
            Self::Amount => "amount",
            Self::Timelock => "timelock",
            Self::DestinationData => "destination data",
            Self::Clock => "clock",
            Self::Coin(_) => "coin",
            Self::Withdrawal(_) => "withdrawal",
            Self::Remainder(_) => "account of the rest",
        }
    }
}

/// The form of a programmable transaction, which the service may choose.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PtbLayout {
    /// The role of each input, in order.
    pub roles: Vec<InputRole>,
    /// Index of the input with the amount of the split.
    pub split_amount: u16,
    /// Index of the input with the amount of the call.
    pub call_amount: u16,
    /// The owner's coins; `None` if the gas coin is split, or if everything is withdrawn from the address balance.
    pub coins: Option<Coins>,
    /// What is withdrawn from the sender's address balance; `None` if nothing is.
    pub funds: Option<Funds>,
    /// Whether the call's coin is written as `NestedResult(_, 0)` instead of `Result(_)`. Both are the same coin.
    pub nested: bool,
}

/// The indexes of the inputs that are the owner's coins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coins {
    /// Index of the coin that is split.
    pub split: u16,
    /// Indexes of the coins that are merged into it first.
    pub merged: Vec<u16>,
}

/// The indexes of the inputs that are about the sender's address balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Funds {
    /// Index of the withdrawal.
    pub withdrawal: u16,
    /// Index of the account that gets back what is left of the coin after the split; `None` if nothing is sent.
    pub remainder: Option<u16>,
}

impl PtbLayout {
    /// Returns whether the amount is split from the coin that pays for gas.
    #[must_use]
    pub const fn splits_gas(&self) -> bool {
        self.coins.is_none() && self.funds.is_none()
    }

    /// Returns the base units that are withdrawn from the sender's address balance.
    #[must_use]
    pub fn withdrawn(&self) -> u64 {
        let role = self.funds.and_then(|funds| self.roles.get(usize::from(funds.withdrawal)));
        if let Some(InputRole::Withdrawal(amount)) = role { *amount } else { 0 }
    }

    /// Returns the input with a role, or the first one if two inputs have it.
    fn index(&self, role: &InputRole) -> Argument {
        let index = self.roles.iter().position(|other| other == role).and_then(|index| u16::try_from(index).ok());
        // A decoded layout has every role. If it did not, this invalid index would make the rebuilt transaction differ.
        Argument::Input(index.unwrap_or(u16::MAX))
    }
}

impl Initiate {
    /// Builds the transaction with this call in the given form.
    #[must_use]
    pub fn encode(&self, layout: &PtbLayout) -> ProgrammableTransaction {
        let mut commands = Vec::new();
        if let Some(funds) = &layout.funds {
            commands.push(of_coin(REDEEM_FUNDS, &self.coin_type, vec![Argument::Input(funds.withdrawal)]));
        }
        let redeemed = layout.funds.is_some().then_some(Argument::Result(0));
        let coin = match &layout.coins {
            None => redeemed.unwrap_or(Argument::Gas),
            Some(coins) => {
                let coin = Argument::Input(coins.split);
                let coins_to_merge: Vec<_> = coins.merged.iter().copied().map(Argument::Input).chain(redeemed).collect();
                if !coins_to_merge.is_empty() {
                    commands.push(Command::MergeCoins(MergeCoins { coin, coins_to_merge }));
                }
                coin
            }
        };
        let remainder = layout.funds.and_then(|funds| funds.remainder);
        let mut paid = coin;
        // Without coins and without a rest, what is withdrawn is the amount.
        if layout.coins.is_some() || layout.funds.is_none() || remainder.is_some() {
            paid = Argument::Result(u16::try_from(commands.len()).unwrap_or(u16::MAX));
            commands.push(Command::SplitCoins(SplitCoins { coin, amounts: vec![Argument::Input(layout.split_amount)] }));
        }
        if let Some(account) = remainder {
            commands.push(of_coin(SEND_FUNDS, &self.coin_type, vec![coin, Argument::Input(account)]));
        }
        commands.push(Command::MoveCall(MoveCall {
            package: self.package,
            module: const { Identifier::from_static(MODULE) },
            function: const { Identifier::from_static(INITIATE) },
            type_arguments: vec![self.coin_type.clone()],
            arguments: vec![
                layout.index(&InputRole::Registry),
                layout.index(&InputRole::Initiator),
                layout.index(&InputRole::Redeemer),
                layout.index(&InputRole::SecretHash),
                Argument::Input(layout.call_amount),
                layout.index(&InputRole::Timelock),
                layout.index(&InputRole::DestinationData),
                if layout.nested { paid.nested(0).unwrap_or(paid) } else { paid },
                layout.index(&InputRole::Clock),
            ],
        }));
        ProgrammableTransaction { inputs: layout.roles.iter().map(|role| self.input(role)).collect(), commands }
    }

    fn input(&self, role: &InputRole) -> Input {
        match role {
            InputRole::Registry => Input::Shared(self.registry.clone()),
            InputRole::Initiator => Input::Pure(self.initiator.as_bytes().to_vec()),
            InputRole::Redeemer => Input::Pure(self.redeemer.as_bytes().to_vec()),
            InputRole::SecretHash => Input::Pure(byte_vector(&self.secret_hash)),
            InputRole::Amount => Input::Pure(self.amount.to_le_bytes().to_vec()),
            InputRole::Timelock => Input::Pure(self.timelock.to_le_bytes::<32>().to_vec()),
            InputRole::DestinationData => Input::Pure(byte_vector(&self.destination_data)),
            InputRole::Clock => Input::Shared(clock()),
            InputRole::Coin(coin) => Input::ImmutableOrOwned(coin.clone()),
            InputRole::Withdrawal(amount) => {
                Input::FundsWithdrawal(FundsWithdrawal::new(*amount, self.coin_type.clone(), WithdrawFrom::Sender))
            }
            InputRole::Remainder(account) => Input::Pure(account.as_bytes().to_vec()),
        }
    }

    /// Decodes a transaction that makes this call and nothing else. `coin_type` tells whether the coin is SUI. Without a withdrawal from
    /// the address balance, SUI must be split from the gas coin.
    ///
    /// # Errors
    ///
    /// The location is the byte range of the part. [`Code::UnexpectedCommand`], [`Code::UnexpectedSelector`],
    /// [`Code::UnexpectedArgument`], [`Code::UnexpectedInput`], [`Code::CoinTypeMismatch`] for another number of type arguments than
    /// one, [`Code::DestinationDataTooLong`], or [`Code::AmountMismatch`] if the amounts of the split and the call differ.
    ///
    /// [`Code::UnexpectedCommand`]: countersign_core::Code::UnexpectedCommand
    /// [`Code::UnexpectedSelector`]: countersign_core::Code::UnexpectedSelector
    /// [`Code::UnexpectedArgument`]: countersign_core::Code::UnexpectedArgument
    /// [`Code::UnexpectedInput`]: countersign_core::Code::UnexpectedInput
    /// [`Code::CoinTypeMismatch`]: countersign_core::Code::CoinTypeMismatch
    /// [`Code::DestinationDataTooLong`]: countersign_core::Code::DestinationDataTooLong
    /// [`Code::AmountMismatch`]: countersign_core::Code::AmountMismatch
    pub fn decode(transaction: &ProgrammableTransaction, coin_type: &TypeTag, at: &At<'_>) -> Result<(Self, PtbLayout), Refusal> {
        read::read(transaction, *coin_type == sui(), at)
    }
}

/// Returns the call of a function of the module `0x2::coin`.
pub(crate) fn of_coin(function: &'static str, coin_type: &TypeTag, arguments: Vec<Argument>) -> Command {
    let (package, module, function) = (Address::TWO, Identifier::from_static(COIN), Identifier::from_static(function));
    Command::MoveCall(MoveCall { package, module, function, type_arguments: vec![coin_type.clone()], arguments })
}

/// Returns a Move `vector<u8>` in BCS: the length, then the bytes.
pub(crate) fn byte_vector(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(bytes.len().saturating_add(2));
    push_length(&mut encoded, bytes.len());
    encoded.extend_from_slice(bytes);
    encoded
}

/// Appends the length of a sequence in BCS: ULEB128.
pub(crate) fn push_length(encoded: &mut Vec<u8>, length: usize) {
    let mut rest = length;
    loop {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            encoded.push(low & 0x7f);
            break;
        }
        encoded.push(low | 0x80);
    }
}
