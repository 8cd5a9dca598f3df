//! The arguments of `initiate`, in the order of each generation.

use std::ops::Range;

use countersign_core::json::At;
use countersign_core::{Code, Refusal, SolanaGeneration};

use super::{Htlc, HtlcAccount, INITIATE};
use crate::address::Address;

/// The most bytes of destination data.
pub const MAX_DESTINATION_DATA: usize = 1024;

/// The arguments of `initiate`.
///
/// | native, client | SPL, client | audited | field | |
/// |---|---|---|---|---|
/// | 0..8 | 0..8 | 0..8 | discriminator | `sha256("global:initiate")[..8]` |
/// | 8..16 | 80..88 | 104..112 | amount, little-endian | lamports, token base units |
/// | 16..24 | 8..16 | 112..120 | timelock, little-endian | slots |
/// | 24..56 | 16..48 | 8..40 | redeemer | |
/// | | | 40..72 | refundee | |
/// | 56..88 | 48..80 | 72..104 | secret hash | |
/// | | 88.. | 120.. | destination data: `00`, or `01`, length in 4 bytes little-endian, bytes | |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Initiate {
    /// The account that receives the funds of a redemption.
    pub redeemer: Address,
    /// The account that receives a refund; `None` in the client generation, where it is the signer.
    pub refundee: Option<Address>,
    /// Timelock in slots.
    pub timelock: u64,
    /// Amount in lamports, or in base units of the token.
    pub amount: u64,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// Data for the destination. The client's native program does not take any.
    pub destination_data: Option<Vec<u8>>,
}

/// The byte range of each argument in the data.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pub(crate) amount: Range<usize>,
    pub(crate) timelock: Range<usize>,
    pub(crate) redeemer: Range<usize>,
    pub(crate) refundee: Option<Range<usize>>,
    pub(crate) secret_hash: Range<usize>,
    /// Offset of the destination data.
    pub(crate) tail: usize,
}

impl Fields {
    pub(crate) const fn new(htlc: &Htlc) -> Self {
        match (htlc.token, htlc.is_audited()) {
            (None, false) => Self { amount: 8..16, timelock: 16..24, redeemer: 24..56, refundee: None, secret_hash: 56..88, tail: 88 },
            (Some(_), false) => Self { amount: 80..88, timelock: 8..16, redeemer: 16..48, refundee: None, secret_hash: 48..80, tail: 88 },
            (_, true) => {
                Self { amount: 104..112, timelock: 112..120, redeemer: 8..40, refundee: Some(40..72), secret_hash: 72..104, tail: 120 }
            }
        }
    }
}

impl Initiate {
    /// Creates the arguments for the client generation, whose initiator signs, without destination data.
    #[must_use]
    pub const fn new(swap: &HtlcAccount) -> Self {
        let HtlcAccount { redeemer, secret_hash, amount, timelock, .. } = *swap;
        Self { redeemer, refundee: None, timelock, amount, secret_hash, destination_data: None }
    }

    /// Sets the account that receives a refund, which the audited generation takes as an argument.
    #[must_use]
    pub const fn with_refundee(mut self, refundee: Address) -> Self {
        self.refundee = Some(refundee);
        self
    }

    /// Returns the terms from which the swap account is derived, if `initiator` signs.
    pub(crate) fn swap(&self, initiator: Address) -> HtlcAccount {
        HtlcAccount::new(self.refundee.unwrap_or(initiator), self.redeemer, self.secret_hash, self.amount, self.timelock)
    }

    /// Encodes the instruction data for a program.
    #[must_use]
    pub fn encode(&self, htlc: &Htlc) -> Vec<u8> {
        let (amount, timelock) = (self.amount.to_le_bytes(), self.timelock.to_le_bytes());
        let (redeemer, hash) = (self.redeemer.as_ref(), self.secret_hash.as_slice());
        let refundee = self.refundee.as_ref().map_or(&[][..], |refundee| refundee.as_ref());
        let mut data = match (htlc.token, htlc.is_audited()) {
            (None, false) => [&INITIATE, amount.as_slice(), &timelock, redeemer, hash].concat(),
            (Some(_), false) => [&INITIATE, timelock.as_slice(), redeemer, hash, &amount].concat(),
            (_, true) => [&INITIATE, redeemer, refundee, hash, &amount, &timelock].concat(),
        };
        match &self.destination_data {
            _ if !htlc.takes_destination_data() => {}
            None => data.push(0),
            Some(bytes) => {
                data.push(1);
                // No transaction holds 4 GiB, so the length always fits.
                data.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
                data.extend(bytes);
            }
        }
        data
    }

    /// Decodes instruction data to the last byte. `start` is the offset of the data in the payload.
    ///
    /// The discriminator is the same in every generation, so another generation is recognized by length and structure.
    pub(crate) fn decode(data: &[u8], htlc: &Htlc, at: &At<'_>, start: usize) -> Result<Self, Refusal> {
        Self::decode_as(data, htlc, at, start).map_err(|refusal| {
            let others = SolanaGeneration::ALL.iter().copied().filter(|generation| *generation != htlc.generation);
            let is_of =
                |generation: &&'static SolanaGeneration| Self::decode_as(data, &htlc.with_generation(generation), at, start).is_ok();
            match others.into_iter().find(is_of) {
                Some(actual) => at
                    .refuse_bytes(Code::GenerationMismatch, start, start.saturating_add(data.len()))
                    .with_expected(htlc.generation.name)
                    .with_actual(actual.name),
                None => refusal,
            }
        })
    }

    /// Decodes the data of an `initiate` instruction of a program; `None` if it is anything else.
    #[must_use]
    pub fn read(data: &[u8], htlc: &Htlc) -> Option<Self> {
        Self::decode_as(data, htlc, &At::root(""), 0).ok()
    }

    fn decode_as(data: &[u8], htlc: &Htlc, at: &At<'_>, start: usize) -> Result<Self, Refusal> {
        let place = |code, range: Range<usize>| at.refuse_bytes(code, start.saturating_add(range.start), start.saturating_add(range.end));
        if data.get(..8) != Some(&INITIATE) {
            return Err(place(Code::UnexpectedSelector, 0..data.len().min(8)).with_expected("initiate"));
        }
        let fields = Fields::new(htlc);
        let short = || place(Code::InstructionData, 0..data.len());
        let number = |range: Range<usize>| {
            data.get(range).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()).map(u64::from_le_bytes).ok_or_else(short)
        };
        let bytes = |range: Range<usize>| data.get(range).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()).ok_or_else(short);
        let mut call = Self {
            redeemer: bytes(fields.redeemer)?.into(),
            refundee: None,
            timelock: number(fields.timelock)?,
            amount: number(fields.amount)?,
            secret_hash: bytes(fields.secret_hash)?,
            destination_data: None,
        };
        call.refundee = fields.refundee.map(|range| bytes(range).map(Address::from)).transpose()?;
        let tail = data.get(fields.tail..).ok_or_else(short)?;
        call.destination_data = match (htlc.takes_destination_data(), tail) {
            (false, []) | (true, [0]) => None,
            (true, [1, a, b, c, d, bytes @ ..]) => {
                if usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])) != Ok(bytes.len()) {
                    return Err(place(Code::InstructionData, fields.tail..data.len())
                        .with_reason("the length field of the destination data is not the number of its bytes"));
                }
                if bytes.len() > MAX_DESTINATION_DATA {
                    return Err(place(Code::DestinationDataTooLong, fields.tail..data.len()));
                }
                Some(bytes.to_vec())
            }
            _ => return Err(place(Code::InstructionData, fields.tail..data.len().max(fields.tail))),
        };
        Ok(call)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Token;
    use super::*;
    use crate::address::TOKEN_PROGRAM;

    const PARTY: [u8; 32] = [2; 32];

    fn programs() -> impl Iterator<Item = Htlc> {
        let token = Token::new(Address::from([3; 32]), TOKEN_PROGRAM);
        let programs = [None, Some(token)].map(|token| Htlc::new(Address::from([1; 32]), token));
        programs.into_iter().flat_map(|htlc| SolanaGeneration::ALL.iter().map(move |generation| htlc.with_generation(generation)))
    }

    fn call(htlc: &Htlc, destination_data: Option<Vec<u8>>) -> Initiate {
        let swap = HtlcAccount::new(Address::from([4; 32]), Address::from(PARTY), [9; 32], 6, 5);
        let call = Initiate { destination_data, ..Initiate::new(&swap) };
        if htlc.is_audited() { call.with_refundee(Address::from([4; 32])) } else { call }
    }

    fn decode(data: &[u8], htlc: &Htlc) -> Result<Initiate, Refusal> {
        Initiate::decode(data, htlc, &At::root(""), 0)
    }

    #[test]
    fn arguments_come_out_as_they_went_in() {
        for htlc in programs() {
            for destination_data in [None, Some(vec![]), Some(vec![7; 1024])] {
                if !htlc.takes_destination_data() && destination_data.is_some() {
                    continue;
                }
                let call = call(&htlc, destination_data);
                let data = call.encode(&htlc);
                assert_eq!(decode(&data, &htlc).unwrap(), call);
                for cut in 0..data.len() {
                    assert!(decode(&data[..cut], &htlc).is_err(), "{cut}");
                }
                let longer = [data.as_slice(), &[0]].concat();
                assert_eq!(decode(&longer, &htlc).unwrap_err().code(), Code::InstructionData);
            }
        }
    }

    #[test]
    fn another_generation_is_named() {
        for htlc in programs() {
            for other in SolanaGeneration::ALL.iter().filter(|other| **other != htlc.generation) {
                let other = htlc.with_generation(other);
                for data in [None, Some(vec![7; 20])] {
                    let data = data.filter(|_| other.takes_destination_data());
                    let refusal = decode(&call(&other, data).encode(&other), &htlc).unwrap_err();
                    assert_eq!(refusal.code(), Code::GenerationMismatch);
                    let names = (refusal.expected().map(ToString::to_string), refusal.actual().map(ToString::to_string));
                    assert_eq!(names, (Some(htlc.generation.name.to_owned()), Some(other.generation.name.to_owned())));
                }
            }
        }
    }
}
