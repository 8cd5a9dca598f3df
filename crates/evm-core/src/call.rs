//! Calldata of the swap contract and of a token's `approve` (`docs/spec/evm.md#functions`).
//!
//! This is `initiate` with selector `97ffc7ae`. The three other forms have the initiator in front, destination data at the end, or
//! both. The generation of a contract decides which of them it has.
//!
//! | bytes | field | unit |
//! |---|---|---|
//! | 0..4 | selector | |
//! | 4..36 | redeemer, left-padded address | |
//! | 36..68 | timelock, big-endian | blocks |
//! | 68..100 | amount, big-endian | base units |
//! | 100..132 | secret hash, SHA-256 of the 32-byte secret | |
//!
//! ABI: <https://docs.soliditylang.org/en/v0.8.28/abi-spec.html>

mod words;

use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::{SolCall, sol};
use countersign_core::{ByteCoverage, Code, Refusal, Topic, json::At};

use words::AbiWords;

sol! {
    /// The functions of the swap contract and the token that we call.
    #[allow(missing_docs, reason = "the ABI itself is the documentation")]
    interface Abi {
        function approve(address spender, uint256 amount);
        function redeem(bytes32 orderId, bytes secret);
        function refund(bytes32 orderId);
    }
    #[allow(missing_docs, reason = "the ABI itself is the documentation")]
    interface Plain {
        function initiate(address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash);
        function initiateOnBehalf(address initiator, address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash);
    }
    #[allow(missing_docs, reason = "the ABI itself is the documentation")]
    interface WithData {
        function initiate(address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash, bytes destinationData);
        function initiateOnBehalf(address initiator, address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash, bytes destinationData);
    }
}

/// Maximum length of the destination data of a call, in bytes.
pub const MAX_DESTINATION_DATA: usize = 1024;
/// Maximum length of calldata that is decoded, in bytes. No form is longer, even with the longest destination data.
pub const MAX_CALLDATA: usize = 4 + 8 * WORD + MAX_DESTINATION_DATA;

const WORD: usize = 32;

/// The terms of an `initiate` call.
///
/// ```
/// use countersign::json::At;
/// use countersign_evm_core::alloy_primitives::{Address, B256, U256};
/// use countersign_evm_core::call::{Caller, Initiate, InitiateAbi};
///
/// # fn main() -> Result<(), countersign::Refusal> {
/// let call = Initiate {
///     initiator: None,
///     redeemer: Address::repeat_byte(2),
///     timelock: U256::from(7_200),
///     amount: U256::from(50_000),
///     secret_hash: B256::repeat_byte(3),
///     destination_data: None,
/// };
/// let data = call.encode();
/// assert_eq!((&data[..4], data.len()), (&[0x97, 0xff, 0xc7, 0xae][..], 132));
/// assert_eq!(
///     Initiate::decode(&data, Caller::Owner, InitiateAbi::All, &At::root(""))?,
///     call
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "these are the arguments of the call")]
pub struct Initiate {
    /// The owner, if another account sends the call for them (`initiateOnBehalf`); else `None`.
    pub initiator: Option<Address>,
    /// Who may redeem.
    pub redeemer: Address,
    /// The timelock in blocks.
    pub timelock: U256,
    /// The amount in base units.
    pub amount: U256,
    /// SHA-256 of the 32-byte secret.
    pub secret_hash: B256,
    /// Bytes that are passed on to the destination; `None` for the forms without this argument.
    pub destination_data: Option<Bytes>,
}

impl Initiate {
    /// Returns the calldata, selector first.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { redeemer, timelock, amount, .. } = *self;
        let secret_hash = self.secret_hash;
        match (self.initiator, self.destination_data.clone()) {
            (None, None) => Plain::initiateCall { redeemer, timelock, amount, secretHash: secret_hash }.abi_encode(),
            (Some(initiator), None) => {
                Plain::initiateOnBehalfCall { initiator, redeemer, timelock, amount, secretHash: secret_hash }.abi_encode()
            }
            (None, Some(destination_data)) => {
                WithData::initiateCall { redeemer, timelock, amount, secretHash: secret_hash, destinationData: destination_data }
                    .abi_encode()
            }
            (Some(initiator), Some(destination_data)) => WithData::initiateOnBehalfCall {
                initiator,
                redeemer,
                timelock,
                amount,
                secretHash: secret_hash,
                destinationData: destination_data,
            }
            .abi_encode(),
        }
    }

    /// Decodes calldata in one of the forms that the order allows, and requires that encoding it again gives the same bytes.
    /// [`Caller::Delegate`] selects the forms with an initiator.
    ///
    /// # Errors
    ///
    /// [`Code::UnexpectedSelector`] for any other function, [`Code::CalldataLength`], [`Code::CalldataPadding`],
    /// [`Code::CalldataOffset`] or [`Code::DestinationDataTooLong`], at the bytes that are wrong.
    pub fn decode(data: &[u8], caller: Caller, abi: InitiateAbi, at: &At<'_>) -> Result<Self, Refusal> {
        let (words, on_behalf) = (AbiWords { data, at }, caller == Caller::Delegate);
        let with_data = match (data.first_chunk::<4>(), on_behalf, abi) {
            (Some(&Plain::initiateCall::SELECTOR), false, InitiateAbi::All)
            | (Some(&Plain::initiateOnBehalfCall::SELECTOR), true, InitiateAbi::All) => false,
            (Some(&WithData::initiateCall::SELECTOR), false, _) | (Some(&WithData::initiateOnBehalfCall::SELECTOR), true, _) => true,
            (selector, ..) => {
                let actual = selector.map_or_else(|| "no selector".to_owned(), |selector| describe_selector(*selector));
                return Err(at
                    .refuse_bytes(Code::UnexpectedSelector, 0, 4)
                    .with_expected(expected_selectors(on_behalf, abi))
                    .with_actual(actual));
            }
        };
        let first = usize::from(on_behalf);
        let index = |argument: usize| first.saturating_add(argument);
        if !with_data {
            words.exactly(index(4))?;
        }
        let call = Self {
            initiator: if on_behalf { Some(words.address(0)?) } else { None },
            redeemer: words.address(index(0))?,
            timelock: words.number(index(1))?,
            amount: words.number(index(2))?,
            secret_hash: words.word(index(3))?.into(),
            destination_data: if with_data { Some(words.bytes(index(4))?) } else { None },
        };
        words.same(&call.encode())?;
        Ok(call)
    }

    /// Returns which bytes of the calldata each topic describes. Together they cover all of it.
    #[must_use]
    pub fn spans(&self, at: &str) -> Vec<ByteCoverage> {
        let mut fields = vec![(Topic::Contract, 4, "selector of the initiate function")];
        if self.initiator.is_some() {
            fields.push((Topic::Owner, WORD, "initiator"));
        }
        fields.push((Topic::Redeemer, WORD, "redeemer"));
        fields.push((Topic::Timelock, WORD, "timelock"));
        fields.push((Topic::Send, WORD, "amount"));
        fields.push((Topic::SecretHash, WORD, "secret hash"));
        if let Some(data) = &self.destination_data {
            fields.push((Topic::DestinationData, 2 * WORD, "offset and length of the destination data"));
            fields.push((Topic::DestinationData, padded(data.len()), "destination data"));
        }
        spans(fields, at)
    }
}

/// Who calls `initiate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the contract has a function for each")]
pub enum Caller {
    /// The owner, who pays for itself.
    Owner,
    /// A delegate, who pays on behalf of the owner.
    Delegate,
}

/// The forms of `initiate` that a family accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "EVM has both, Tron one")]
pub enum InitiateAbi {
    /// With and without destination data.
    All,
    /// Only with destination data.
    WithData,
}

/// A token approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "these are the arguments of the call")]
pub struct Approve {
    /// The account that may take tokens.
    pub spender: Address,
    /// How many tokens it may take, in base units. The largest number means without limit.
    pub amount: U256,
}

/// An approval as it was proposed, and as it will be signed.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every member")]
pub struct Approval<C> {
    /// The call that will be signed.
    pub call: C,
    /// What the response proposed.
    pub proposed: Approve,
    /// What will be signed: the proposal, or an approval of exactly the amount if the policy rewrites it.
    pub signed: Approve,
    /// Whether the policy accepts no other approval than one of exactly the amount.
    pub is_exact: bool,
}

impl Approve {
    /// Returns the calldata, selector first.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Abi::approveCall { spender: self.spender, amount: self.amount }.abi_encode()
    }

    /// Decodes calldata of `approve`, and requires that encoding it again gives the same bytes.
    ///
    /// # Errors
    ///
    /// [`Code::UnexpectedSelector`] for any other function, [`Code::CalldataLength`] or [`Code::CalldataPadding`], at the bytes that
    /// are wrong.
    pub fn decode(data: &[u8], at: &At<'_>) -> Result<Self, Refusal> {
        if data.first_chunk::<4>() != Some(&Abi::approveCall::SELECTOR) {
            let actual = data.first_chunk::<4>().map_or_else(|| "no selector".to_owned(), |selector| describe_selector(*selector));
            return Err(at
                .refuse_bytes(Code::UnexpectedSelector, 0, 4)
                .with_expected("095ea7b3 approve(address,uint256)")
                .with_actual(actual));
        }
        let words = AbiWords { data, at };
        words.exactly(2)?;
        let call = Self { spender: words.address(0)?, amount: words.number(1)? };
        words.same(&call.encode())?;
        Ok(call)
    }

    /// Returns which bytes of the calldata each topic describes. Together they cover all of it.
    #[must_use]
    pub fn spans(at: &str) -> Vec<ByteCoverage> {
        let fields = [
            (Topic::Approval, 4, "selector of the approve function"),
            (Topic::Contract, WORD, "spender"),
            (Topic::Approval, WORD, "approved amount"),
        ];
        spans(fields, at)
    }
}

/// Returns the calldata of `redeem(bytes32,bytes)`. It contains the secret.
#[must_use]
pub fn redeem(swap_id: [u8; 32], secret: &[u8; 32]) -> Vec<u8> {
    Abi::redeemCall { orderId: swap_id.into(), secret: Bytes::copy_from_slice(secret) }.abi_encode()
}

/// Returns the calldata of `refund(bytes32)`.
#[must_use]
pub fn refund(swap_id: [u8; 32]) -> Vec<u8> {
    Abi::refundCall { orderId: swap_id.into() }.abi_encode()
}

fn spans(fields: impl IntoIterator<Item = (Topic, usize, &'static str)>, at: &str) -> Vec<ByteCoverage> {
    let mut start = 0_usize;
    fields
        .into_iter()
        .map(|(topic, len, what)| {
            let end = start.saturating_add(len);
            let span = ByteCoverage::bytes(topic, at, start, end, what);
            start = end;
            span
        })
        .collect()
}

const fn padded(len: usize) -> usize {
    len.div_ceil(WORD).saturating_mul(WORD)
}

fn expected_selectors(on_behalf: bool, abi: InitiateAbi) -> &'static str {
    match (on_behalf, abi) {
        (false, InitiateAbi::All) => "97ffc7ae initiate or 4ede0ab7 initiate with destination data",
        (false, InitiateAbi::WithData) => "4ede0ab7 initiate with destination data",
        (true, InitiateAbi::All) => "13d4a787 initiateOnBehalf or a66a8641 initiateOnBehalf with destination data",
        (true, InitiateAbi::WithData) => "a66a8641 initiateOnBehalf with destination data",
    }
}

/// Names the function of a selector. Those of the swap contract are known, and those that an attacker would choose.
fn describe_selector(selector: [u8; 4]) -> String {
    const KNOWN: [([u8; 4], &str); 16] = [
        ([0x97, 0xff, 0xc7, 0xae], "initiate without destination data"),
        ([0x4e, 0xde, 0x0a, 0xb7], "initiate with destination data"),
        ([0x13, 0xd4, 0xa7, 0x87], "initiateOnBehalf"),
        ([0xa6, 0x6a, 0x86, 0x41], "initiateOnBehalf with destination data"),
        ([0x79, 0x29, 0xd5, 0x9d], "initiateWithSignature"),
        ([0xd4, 0x70, 0x5e, 0x9e], "initiateWithSignature"),
        ([0xf7, 0xff, 0x72, 0x07], "redeem"),
        ([0x72, 0x49, 0xfb, 0xb6], "refund"),
        ([0xed, 0xaf, 0x5f, 0xac], "instantRefund"),
        ([0x09, 0x5e, 0xa7, 0xb3], "approve"),
        ([0xa9, 0x05, 0x9c, 0xbb], "transfer"),
        ([0x23, 0xb8, 0x72, 0xdd], "transferFrom"),
        ([0x39, 0x50, 0x93, 0x51], "increaseAllowance"),
        ([0xa2, 0x2c, 0xb4, 0x65], "setApprovalForAll"),
        ([0xd5, 0x05, 0xac, 0xcf], "permit"),
        ([0xce, 0x26, 0x31, 0xb8], "claim"),
    ];
    let name = KNOWN.iter().find(|(known, _)| *known == selector).map_or("an unknown function", |(_, name)| name);
    format!("{} {name}", hex::encode(selector))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(on_behalf: bool) -> Caller {
        if on_behalf { Caller::Delegate } else { Caller::Owner }
    }

    fn initiate(on_behalf: bool, data: Option<usize>) -> Initiate {
        Initiate {
            initiator: on_behalf.then(|| Address::repeat_byte(1)),
            redeemer: Address::repeat_byte(2),
            timelock: U256::from(7200),
            amount: U256::MAX,
            secret_hash: B256::repeat_byte(3),
            destination_data: data.map(|len| vec![4; len].into()),
        }
    }

    #[test]
    fn what_is_encoded_is_decoded_to_the_same() {
        for on_behalf in [false, true] {
            for data in [None, Some(0), Some(1), Some(31), Some(32), Some(33), Some(MAX_DESTINATION_DATA)] {
                let call = initiate(on_behalf, data);
                let bytes = call.encode();
                assert!(bytes.len() <= MAX_CALLDATA);
                assert_eq!(Initiate::decode(&bytes, caller(on_behalf), InitiateAbi::All, &At::root("")), Ok(call.clone()));
                let with_data =
                    Initiate::decode(&bytes, caller(on_behalf), InitiateAbi::WithData, &At::root("")).map_err(|refusal| refusal.code());
                assert_eq!(with_data, if data.is_some() { Ok(call.clone()) } else { Err(Code::UnexpectedSelector) });
                // The delegate's form is not the owner's.
                let other = Initiate::decode(&bytes, caller(!on_behalf), InitiateAbi::All, &At::root("")).unwrap_err();
                assert_eq!((other.code(), other.location()), (Code::UnexpectedSelector, "#0-4"));
                let spans = call.spans("");
                let ends = spans.iter().map(|span| span.bytes.unwrap());
                assert_eq!(ends.clone().next_back().unwrap().1, bytes.len());
                assert!(ends.clone().zip(ends.skip(1)).all(|(one, next)| one.1 == next.0), "no gap");
            }
        }
        for amount in [U256::ZERO, U256::from(1), U256::MAX] {
            let approve = Approve { spender: Address::repeat_byte(5), amount };
            assert_eq!(Approve::decode(&approve.encode(), &At::root("")), Ok(approve));
        }
    }

    #[test]
    fn cut_or_longer_calldata_is_refused() {
        for on_behalf in [false, true] {
            for data in [None, Some(0), Some(33)] {
                let bytes = initiate(on_behalf, data).encode();
                for end in 0..bytes.len() {
                    assert!(Initiate::decode(&bytes[..end], caller(on_behalf), InitiateAbi::All, &At::root("")).is_err(), "{end}");
                }
                let longer = [&bytes[..], &[0]].concat();
                let refusal = Initiate::decode(&longer, caller(on_behalf), InitiateAbi::All, &At::root("")).unwrap_err();
                assert_eq!(refusal.code(), Code::CalldataLength);
            }
        }
        let too_long = initiate(false, Some(MAX_DESTINATION_DATA + 1)).encode();
        let refusal = Initiate::decode(&too_long, Caller::Owner, InitiateAbi::All, &At::root("")).unwrap_err();
        assert_eq!(refusal.code(), Code::DestinationDataTooLong);
    }

    /// Other decoders would read the same arguments from other offsets, lengths and padding.
    #[test]
    fn only_the_canonical_encoding_is_read() {
        let bytes = initiate(false, Some(33)).encode();
        for (index, code) in [
            (4, Code::CalldataPadding),
            (15, Code::CalldataPadding),
            (4 + 4 * WORD, Code::CalldataOffset),
            (3 + 5 * WORD, Code::CalldataOffset),
            (4 + 5 * WORD, Code::DestinationDataTooLong),
            (bytes.len() - 1, Code::CalldataPadding),
        ] {
            let mut other = bytes.clone();
            other[index] ^= 1;
            let refusal = Initiate::decode(&other, Caller::Owner, InitiateAbi::All, &At::root("")).unwrap_err();
            assert_eq!(refusal.code(), code, "byte {index}");
        }
    }
}
