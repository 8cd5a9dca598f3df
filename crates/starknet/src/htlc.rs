//! The functions of the swap contract, and `approve` of the token: selectors, arguments, and their strict decoding.
//!
//! A selector is the low 250 bits of the Keccak-256 hash of the function's name. The tests recompute each.
//!
//! Specification: `docs/spec/starknet.md#functions`.

use countersign_core::generation::StarknetSecret;
use countersign_core::json::{At, Cursor};
use countersign_core::{ByteCoverage, Code, Refusal, SecretHash, StarknetGeneration, Topic, U256};
use starknet_types_core::felt::Felt;

use crate::felt;
use crate::generation;

macro_rules! selectors {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $felt:literal;)*) => {
        $($(#[$doc])* pub const $constant: Felt = Felt::from_hex_unchecked($felt);)*

        /// The functions with their names. They include functions of tokens and accounts that an attacker would choose.
        const NAMED: &[(&str, Felt)] = &[$(($name, $constant),)*];
    };
}

selectors! {
    /// `initiate(redeemer, timelock, amount, secret_hash)`
    INITIATE = "initiate", "0x2aed25fcd0101fcece997d93f9d0643dfa3fbd4118cae16bf7d6cd533577c28";
    /// `initiate_on_behalf(initiator, redeemer, timelock, amount, secret_hash)`
    INITIATE_ON_BEHALF = "initiate_on_behalf", "0x956733def9e3752de1404e5ae4ad7812408463fc642c2441862123ebb25be0";
    /// `approve(spender, amount)` of the token
    APPROVE = "approve", "0x219209e083275171774dab1df80982e9df2096516f06319c5c6d71ae0a8480c";
    /// `initiate_with_destination_data(redeemer, timelock, amount, secret_hash, destination_data)`
    INITIATE_WITH_DESTINATION_DATA = "initiate_with_destination_data", "0x17b05a3e4676a9b5e9a2ebc97868bf0b2e3bae5d56e87b6aece1829f95af6a1";
    /// `initiate_on_behalf_with_destination_data(initiator, redeemer, timelock, amount, secret_hash, destination_data)`
    INITIATE_ON_BEHALF_WITH_DESTINATION_DATA = "initiate_on_behalf_with_destination_data", "0x38be2e69dffbff70d906cec52796399d1b9309076c4d7ae7dc29ca350a2a5cf";
    /// `redeem(order_id, secret)`
    REDEEM = "redeem", "0x2ef0a97332ad048ac544d8dfacdd43e128b9816d599fdd0310960904fa18609";
    /// `refund(order_id)`
    REFUND = "refund", "0x3d967966e6b0ea40f78dff297fed3b472763137dac6cf564d7263e918f425ef";
    /// `initiate_with_signature(initiator, redeemer, timelock, amount, secret_hash, signature)`
    INITIATE_WITH_SIGNATURE = "initiate_with_signature", "0x2c60217fd51b8f5bd95a93f9f94ee41df971da97676bc59ae5514ebdd67ca11";
    /// `instant_refund(order_id, signature)`
    INSTANT_REFUND = "instant_refund", "0x3a93336d54677c29514ed25b5b8de2b5331441a3f487944cab39f12f14e8060";
    /// `transfer(recipient, amount)` of a token
    TRANSFER = "transfer", "0x83afd3f4caedc6eebf44246fe54e38c95e3179a5ec9ea81740eca5b482d12e";
    /// `transfer_from(sender, recipient, amount)` of a token
    TRANSFER_FROM = "transfer_from", "0x3704ffe8fba161be0e994951751a5033b1462b918ff785c0a636be718dfdb68";
    /// `increase_allowance(spender, added_value)` of a token
    INCREASE_ALLOWANCE = "increase_allowance", "0x1d13ab0a76d7407b1d5faccd4b3d8a9efe42f3d3c21766431d4fafb30f45bd4";
    /// `upgrade(new_class_hash)` of an account
    UPGRADE = "upgrade", "0xf2f7c15cbe06c8d94597cd91fd7f3369eae842359235712def5584f8d270cd";
    /// `execute_from_outside(outside_execution, signature)` of an account (SNIP-9)
    EXECUTE_FROM_OUTSIDE = "execute_from_outside", "0x7ec457cd7ed1630225a8328f826a29a327b19486f6b2882b4176545ebdbe3d";
    /// The same of SNIP-9 version 2
    EXECUTE_FROM_OUTSIDE_V2 = "execute_from_outside_v2", "0x34cc13b274446654ca3233ed2c1620d4c5d1d32fd20b47146a3371064bdc57d";
    /// The same of SNIP-9 version 3
    EXECUTE_FROM_OUTSIDE_V3 = "execute_from_outside_v3", "0x3dbc508ba4afd040c8dc4ff8a61113a7bcaf5eae88a6ba27b3c50578b3587e3";
}

/// Returns a selector in hex, with the name of its function if it is known.
pub(crate) fn describe_selector(selector: Felt) -> String {
    match name(selector) {
        Some(name) => format!("{selector:#x} {name}"),
        None => format!("{selector:#x}"),
    }
}

/// Returns the name of the function with this selector; `None` if it is not known.
pub(crate) fn name(selector: Felt) -> Option<&'static str> {
    NAMED.iter().find(|(_, known)| *known == selector).map(|(name, _)| *name)
}

/// Returns the name of the function if this is the selector of one with which another account executes the calls of an account (SNIP-9).
pub(crate) fn outside_execution(selector: Felt) -> Option<&'static str> {
    let all = [EXECUTE_FROM_OUTSIDE, EXECUTE_FROM_OUTSIDE_V2, EXECUTE_FROM_OUTSIDE_V3];
    all.contains(&selector).then(|| name(selector)).flatten()
}

/// The arguments of `initiate` and `initiate_on_behalf`.
///
/// | felts | argument | unit |
/// |---|---|---|
/// | 1, on behalf only | initiator | address |
/// | 1 | redeemer | address |
/// | 1 | timelock | blocks |
/// | 2 | amount, low and high 128 bits | base units of the token |
/// | 8 or 2 | secret hash, 32 or 128 bits each, the most significant first | |
///
/// Contracts of the generation `client_3_1_3` take two words of the secret hash, all others eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Initiate {
    /// The generation of the contract that is called.
    pub generation: &'static StarknetGeneration,
    /// The account that receives a refund; `None` if that is the sender.
    pub initiator: Option<Felt>,
    /// The account that receives the funds of a redemption.
    pub redeemer: Felt,
    /// Timelock in blocks.
    pub timelock: u128,
    /// Amount in base units.
    pub amount: U256,
    /// SHA-256 of the secret.
    pub secret_hash: SecretHash,
}

/// The most felts of destination data: 1 KiB at 31 bytes per felt.
pub const MAX_DESTINATION_DATA: usize = 1024_usize.div_ceil(31);

/// The number of felts of the arguments of `initiate` before the secret hash.
const BEFORE_HASH: usize = 4;

impl Initiate {
    /// Decodes the arguments. Encoding them again gives the same felts.
    ///
    /// # Errors
    ///
    /// [`Code::CalldataLength`], [`Code::NumberTooLarge`] for a felt wider than its argument, or the errors of [`felt::read`].
    pub(crate) fn decode(calldata: &Arguments<'_, '_>, generation: &'static StarknetGeneration, on_behalf: bool) -> Result<Self, Refusal> {
        let wrong_length = || calldata.wrong_length(argument_count(generation, on_behalf));
        let (initiator, arguments) = match calldata.nodes.as_slice() {
            [initiator, arguments @ ..] if on_behalf => (Some(felt::read(*initiator)?), arguments),
            arguments => (None, arguments),
        };
        let [redeemer, timelock, low, high, words @ ..] = arguments else { return Err(wrong_length()) };
        let count = generation.hash_words;
        if words.len() != count {
            return Err(wrong_length());
        }
        let redeemer = felt::read(*redeemer)?;
        let timelock = felt::read_u128(*timelock)?;
        let amount = felt::join(felt::read_u128(*low)?, felt::read_u128(*high)?);
        let mut secret_hash = [0; 32];
        for (bytes, word) in secret_hash.chunks_exact_mut(generation.word_size()).zip(words) {
            let value = felt::read_u128(*word)?.to_be_bytes();
            let (zeros, value) = value.split_at(value.len().saturating_sub(bytes.len()));
            if zeros.iter().any(|byte| *byte != 0) {
                return Err(word.refuse(Code::NumberTooLarge).with_expected("32 bits"));
            }
            bytes.copy_from_slice(value);
        }
        Ok(Self { generation, initiator, redeemer, timelock, amount, secret_hash: SecretHash(secret_hash) })
    }

    /// Returns the selector of the function without destination data.
    #[must_use]
    pub const fn selector(&self) -> Felt {
        if self.initiator.is_some() { INITIATE_ON_BEHALF } else { INITIATE }
    }

    /// Returns the selector and the arguments. With destination data they are those of the function that takes it, as an array of
    /// felts after the other arguments.
    pub(crate) fn call_with(&self, destination_data: Option<&[Felt]>) -> (Felt, Vec<Felt>) {
        let Some(data) = destination_data else { return (self.selector(), self.encode()) };
        let on_behalf = self.initiator.is_some();
        let selector = if on_behalf { INITIATE_ON_BEHALF_WITH_DESTINATION_DATA } else { INITIATE_WITH_DESTINATION_DATA };
        let mut felts = self.encode();
        felts.push(Felt::from(data.len()));
        felts.extend(data);
        (selector, felts)
    }

    /// Returns the arguments as felts.
    #[must_use]
    pub fn encode(&self) -> Vec<Felt> {
        let mut felts = Vec::with_capacity(argument_count(self.generation, true));
        felts.extend(self.initiator);
        felts.extend([self.redeemer, Felt::from(self.timelock)]);
        felts.extend(felt::halves(self.amount));
        felts.extend(self.hash_words());
        felts
    }

    /// Returns the words of the secret hash, in the form of the contract's generation.
    pub(crate) fn hash_words(&self) -> impl Iterator<Item = Felt> {
        self.secret_hash.0.chunks(self.generation.word_size()).map(Felt::from_bytes_be_slice)
    }

    /// Returns which summary line each argument of the call at `at` is covered by.
    pub(crate) fn coverage(&self, at: &str, destination_data: Option<&[Felt]>) -> Vec<ByteCoverage> {
        let mut arguments = Vec::new();
        if self.initiator.is_some() {
            arguments.push((Topic::Owner, "initiator"));
        }
        arguments.extend([
            (Topic::Redeemer, "redeemer"),
            (Topic::Timelock, "timelock"),
            (Topic::Send, "low half of the amount"),
            (Topic::Send, "high half of the amount"),
        ]);
        arguments.extend(vec![(Topic::SecretHash, "word of the secret hash"); self.generation.hash_words]);
        if let Some(data) = destination_data {
            arguments.push((Topic::DestinationData, "length of the destination data"));
            arguments.extend(vec![(Topic::DestinationData, "destination data"); data.len()]);
        }
        coverage(at, (Topic::Contract, "contract"), (Topic::Contract, "selector of the initiate function"), arguments)
    }
}

/// Returns the number of felts of the arguments of `initiate` or `initiate_on_behalf`.
pub(crate) const fn argument_count(generation: &StarknetGeneration, on_behalf: bool) -> usize {
    let count = BEFORE_HASH.saturating_add(generation.hash_words);
    if on_behalf { count.saturating_add(1) } else { count }
}

/// Returns 32 bytes as eight numbers of 32 bits, the most significant first.
pub(crate) fn words(bytes: &[u8; 32]) -> impl Iterator<Item = Felt> {
    bytes.chunks_exact(4).map(Felt::from_bytes_be_slice)
}

/// A token approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Approve {
    /// The account that may take the tokens.
    pub spender: Felt,
    /// Amount in base units.
    pub amount: U256,
}

impl Approve {
    /// The number of felts of the arguments: spender, and the low and high half of the amount.
    pub(crate) const ARGUMENTS: usize = 3;

    pub(crate) fn decode(calldata: &Arguments<'_, '_>) -> Result<Self, Refusal> {
        let [spender, low, high] = calldata.nodes.as_slice() else { return Err(calldata.wrong_length(Self::ARGUMENTS)) };
        Ok(Self { spender: felt::read(*spender)?, amount: felt::join(felt::read_u128(*low)?, felt::read_u128(*high)?) })
    }

    /// Returns the arguments as felts.
    #[must_use]
    pub fn encode(&self) -> Vec<Felt> {
        let [low, high] = felt::halves(self.amount);
        vec![self.spender, low, high]
    }

    pub(crate) fn coverage(at: &str) -> Vec<ByteCoverage> {
        let arguments = vec![
            (Topic::Contract, "spender"),
            (Topic::Approval, "low half of the approved amount"),
            (Topic::Approval, "high half of the approved amount"),
        ];
        coverage(at, (Topic::Token, "token"), (Topic::Approval, "selector of the approve function"), arguments)
    }
}

fn coverage(
    at: &str,
    to: (Topic, &'static str),
    selector: (Topic, &'static str),
    arguments: Vec<(Topic, &'static str)>,
) -> Vec<ByteCoverage> {
    let members =
        [(to, "to"), (selector, "selector")].map(|((topic, what), member)| ByteCoverage::member(topic, format!("{at}/{member}"), what));
    let arguments =
        arguments.into_iter().enumerate().map(|(index, (topic, what))| ByteCoverage::member(topic, format!("{at}/calldata/{index}"), what));
    members.into_iter().chain(arguments).collect()
}

/// Calldata that has not been decoded yet.
pub(crate) struct Arguments<'n, 'v> {
    pub(crate) at: &'n At<'n>,
    pub(crate) nodes: Vec<Cursor<'n, 'v>>,
}

impl<'n, 'v> Arguments<'n, 'v> {
    /// Reads the felts of a call.
    ///
    /// # Errors
    ///
    /// [`Code::CalldataLength`] if there are more or fewer than `count`.
    pub(crate) fn read(cursor: &'n Cursor<'n, 'v>, count: usize) -> Result<Self, Refusal> {
        let nodes: Vec<_> = cursor.array()?.collect();
        let arguments = Self { at: cursor.at(), nodes };
        if arguments.nodes.len() == count { Ok(arguments) } else { Err(arguments.wrong_length(count)) }
    }

    /// Reads the felts of `initiate` or `initiate_on_behalf` of a contract.
    ///
    /// # Errors
    ///
    /// [`Code::GenerationMismatch`] if a contract of another generation takes this number of felts, or the errors of
    /// [`Arguments::read`].
    pub(crate) fn of_initiate(cursor: &'n Cursor<'n, 'v>, generation: &StarknetGeneration, on_behalf: bool) -> Result<Self, Refusal> {
        let (actual, expected) = (cursor.array()?.len(), argument_count(generation, on_behalf));
        if actual != expected {
            let takes = |other| argument_count(other, on_behalf) == actual;
            if let Some(refusal) = generation::mismatch(generation, takes, |code| cursor.at().refuse(code)) {
                return Err(refusal);
            }
        }
        Self::read(cursor, expected)
    }

    /// Reads the felts of a function with destination data. Returns the data apart from the other arguments.
    ///
    /// # Errors
    ///
    /// [`Code::DestinationDataTooLong`], or the errors of [`Arguments::of_initiate`].
    pub(crate) fn with_data(
        cursor: &'n Cursor<'n, 'v>,
        generation: &'static StarknetGeneration,
        on_behalf: bool,
    ) -> Result<(Self, Vec<Felt>), Refusal> {
        let mut arguments = Self { at: cursor.at(), nodes: cursor.array()?.collect() };
        let count = argument_count(generation, on_behalf);
        let has_form = |other: &'static StarknetGeneration| {
            let mut rest = arguments.nodes.iter().skip(argument_count(other, on_behalf));
            let length = rest.next().and_then(|length| felt::read_u128(*length).ok()).and_then(|length| usize::try_from(length).ok());
            other.takes_destination_data && length == Some(rest.len())
        };
        if !has_form(generation)
            && let Some(refusal) = generation::mismatch(generation, has_form, |code| cursor.at().refuse(code))
        {
            return Err(refusal);
        }
        let mut rest = arguments.nodes.split_off(count.min(arguments.nodes.len())).into_iter();
        let length = rest.next().ok_or_else(|| arguments.wrong_length(count.saturating_add(1)))?;
        if rest.len() > MAX_DESTINATION_DATA {
            let refusal = length.at().refuse(Code::DestinationDataTooLong).with_expected(format!("at most {MAX_DESTINATION_DATA} felts"));
            return Err(refusal.with_actual(format!("{} felts", rest.len())));
        }
        if felt::read(length)? != Felt::from(rest.len()) {
            return Err(length.refuse(Code::CalldataLength).with_expected(format!("{:#x}, the number of felts that follow", rest.len())));
        }
        let data = rest.map(|felt| felt::read(felt)).collect::<Result<_, _>>()?;
        Ok((arguments, data))
    }

    fn wrong_length(&self, count: usize) -> Refusal {
        self.at.refuse(Code::CalldataLength).with_expected(format!("{count} felts")).with_actual(format!("{} felts", self.nodes.len()))
    }

    /// Returns a refusal located at one argument.
    pub(crate) fn refuse(&self, index: usize, code: Code) -> Refusal {
        self.nodes.get(index).map_or_else(|| self.at.refuse(code), |cursor| cursor.at().refuse(code))
    }
}

/// Returns the calldata of `redeem`: the swap id, then the secret as eight words of 32 bits. If the contract takes an array, the number
/// of words precedes them. Returns `None` if the form of the function is not known for this generation.
#[must_use]
pub fn redeem(generation: &StarknetGeneration, swap_id: Felt, secret: &[u8; 32]) -> Option<Vec<Felt>> {
    let length = match generation.secret? {
        StarknetSecret::Array => Some(Felt::from(8)),
        StarknetSecret::Words => None,
    };
    Some([swap_id].into_iter().chain(length).chain(words(secret)).collect())
}

/// Returns the calldata of `refund`: the swap id.
#[must_use]
pub fn refund(swap_id: Felt) -> Vec<Felt> {
    vec![swap_id]
}

/// Returns the calldata of `instant_refund`: the swap id, and the redeemer's signature as an array.
#[must_use]
pub fn instant_refund(swap_id: Felt, signature: &[Felt]) -> Vec<Felt> {
    [swap_id, Felt::from(signature.len())].into_iter().chain(signature.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use starknet_core::utils::get_selector_from_name;

    use super::*;

    #[test]
    fn selectors_are_the_hashes_of_the_names() {
        for (name, selector) in NAMED {
            assert_eq!(get_selector_from_name(name).unwrap(), *selector, "{name}");
        }
    }
}
