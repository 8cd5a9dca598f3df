//! The two HTLC programs: instructions, their arguments and accounts, and the accounts that they derive.
//!
//! Every instruction begins with an Anchor discriminator, the first 8 bytes of `sha256("global:<name>")`. The native
//! program holds lamports in the swap account itself; the SPL program holds tokens in one vault per mint.

use std::ops::Range;

use countersign_core::json::At;
use countersign_core::{Code, Refusal};
use solana_instruction::{AccountMeta, Instruction};

use crate::address::{self, Address, SYSTEM_PROGRAM};

/// `sha256("global:initiate")[..8]`
pub const INITIATE: [u8; 8] = [0x05, 0x3f, 0x7b, 0x71, 0x99, 0x4b, 0x94, 0x0e];
/// `sha256("global:redeem")[..8]`
pub const REDEEM: [u8; 8] = [0xb8, 0x0c, 0x56, 0x95, 0x46, 0xc4, 0x61, 0xe1];
/// `sha256("global:refund")[..8]`
pub const REFUND: [u8; 8] = [0x02, 0x60, 0xb7, 0xfb, 0x3f, 0xd0, 0x2e, 0x2e];

/// Most bytes of destination data.
pub const MAX_DESTINATION_DATA: usize = 1024;

/// A pinned HTLC program, and the token that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Htlc {
    /// The program.
    pub program: Address,
    /// The token; `None` for the native program, which holds lamports.
    pub token: Option<Token>,
}

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Token {
    /// The mint.
    pub mint: Address,
    /// The classic token program or Token-2022.
    pub program: Address,
}

impl Token {
    /// A token of the classic program or of Token-2022.
    #[must_use]
    pub const fn new(mint: Address, program: Address) -> Self {
        Self { mint, program }
    }
}

/// An account of an instruction and what it is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Role {
    /// What it is there for.
    pub what: &'static str,
    /// The account.
    pub address: Address,
    /// Whether it signs.
    pub signer: bool,
    /// Whether the instruction writes to it.
    pub writable: bool,
}

/// Roles that are looked up by name.
pub(crate) const SWAP_ACCOUNT: &str = "the swap account";
pub(crate) const VAULT: &str = "the token vault";
pub(crate) const TOKEN_ACCOUNT: &str = "the initiator's token account";
pub(crate) const SPONSOR: &str = "the sponsor";

pub(crate) const fn reads(what: &'static str, address: Address) -> Role {
    Role { what, address, signer: false, writable: false }
}

const fn writes(what: &'static str, address: Address) -> Role {
    Role { what, address, signer: false, writable: true }
}

impl Htlc {
    /// A pinned program.
    #[must_use]
    pub const fn new(program: Address, token: Option<Token>) -> Self {
        Self { program, token }
    }

    /// The account that holds the state of a swap, and the lamports of a native one.
    #[must_use]
    pub fn swap_account(&self, initiator: Address, secret_hash: &[u8; 32]) -> Option<Address> {
        match self.token {
            None => address::derive(&[b"swap_account", initiator.as_ref(), secret_hash], &self.program),
            Some(_) => address::derive(&[initiator.as_ref(), secret_hash], &self.program),
        }
    }

    /// The SPL program's own account, which has authority over its vaults.
    #[must_use]
    pub fn identity(&self) -> Option<Address> {
        address::derive(&[], &self.program)
    }

    /// The SPL program's vault for its mint; `None` for the native program.
    #[must_use]
    pub fn vault(&self) -> Option<Address> {
        self.token.and_then(|token| address::derive(&[token.mint.as_ref()], &self.program))
    }

    /// Identity and vault of the SPL program, which are the same for every order; `None` for the native program.
    pub(crate) fn program_addresses(&self) -> Option<[Address; 2]> {
        Some([self.identity()?, self.vault()?])
    }

    /// The accounts of `initiate`, in order. The sponsor pays the rent of an SPL swap; in the native program the initiator
    /// does.
    #[must_use]
    pub fn initiate_accounts(&self, initiator: Address, sponsor: Address, secret_hash: &[u8; 32]) -> Option<Vec<Role>> {
        self.initiate_accounts_beside(|| self.program_addresses(), initiator, sponsor, secret_hash)
    }

    /// As [`Htlc::initiate_accounts`], where the program's own accounts may be known already.
    pub(crate) fn initiate_accounts_beside(
        &self,
        own: impl FnOnce() -> Option<[Address; 2]>,
        initiator: Address,
        sponsor: Address,
        secret_hash: &[u8; 32],
    ) -> Option<Vec<Role>> {
        let swap_account = self.swap_account(initiator, secret_hash)?;
        let signs = |what, address, writable| Role { what, address, signer: true, writable };
        Some(match self.token {
            None => vec![
                writes(SWAP_ACCOUNT, swap_account),
                signs("the initiator", initiator, true),
                reads("the system program", SYSTEM_PROGRAM),
            ],
            Some(token) => {
                let [identity, vault] = own()?;
                vec![
                    writes("the program's identity account", identity),
                    writes(SWAP_ACCOUNT, swap_account),
                    writes(VAULT, vault),
                    signs("the initiator", initiator, false),
                    writes(TOKEN_ACCOUNT, address::associated_token_account(initiator, token.mint, token.program)?),
                    reads("the mint", token.mint),
                    signs(SPONSOR, sponsor, true),
                    reads("the token program", token.program),
                    reads("the system program", SYSTEM_PROGRAM),
                ]
            }
        })
    }

    /// The accounts of the instruction that creates the initiator's token account, whose address is known already; `None`
    /// for the native program.
    pub(crate) fn create_token_account(&self, payer: Address, initiator: Address, account: Address) -> Option<[Role; 6]> {
        let token = self.token?;
        Some([
            Role { what: "the payer", address: payer, signer: true, writable: true },
            writes(TOKEN_ACCOUNT, account),
            reads("the initiator", initiator),
            reads("the mint", token.mint),
            reads("the system program", SYSTEM_PROGRAM),
            reads("the token program", token.program),
        ])
    }

    /// Gives the swap to the redeemer. Anyone may send it. `sponsor` is who paid the rent of an SPL swap and gets it back.
    #[must_use]
    pub fn redeem(&self, swap: &Swap, sponsor: Address, secret: &[u8; 32]) -> Option<Instruction> {
        let native = [writes("the redeemer", swap.redeemer)];
        self.end([REDEEM.as_slice(), secret].concat(), swap, sponsor, swap.redeemer, &native)
    }

    /// Gives the swap back to the initiator once its timelock has passed. Anyone may send it.
    #[must_use]
    pub fn refund(&self, swap: &Swap, sponsor: Address) -> Option<Instruction> {
        self.end(REFUND.to_vec(), swap, sponsor, swap.initiator, &[])
    }

    fn end(&self, data: Vec<u8>, swap: &Swap, sponsor: Address, to: Address, native: &[Role]) -> Option<Instruction> {
        let swap_account = writes(SWAP_ACCOUNT, self.swap_account(swap.initiator, &swap.secret_hash)?);
        let roles = match self.token {
            None => [&[swap_account, writes("the initiator", swap.initiator)], native].concat(),
            Some(token) => vec![
                reads("the program's identity account", self.identity()?),
                swap_account,
                writes(VAULT, self.vault()?),
                reads("the mint", token.mint),
                writes("the token account", address::associated_token_account(to, token.mint, token.program)?),
                writes(SPONSOR, sponsor),
                reads("the token program", token.program),
            ],
        };
        let accounts =
            roles.into_iter().map(|role| AccountMeta { pubkey: role.address, is_signer: role.signer, is_writable: role.writable });
        Some(Instruction { program_id: self.program, accounts: accounts.collect(), data })
    }
}

/// The parties of a swap, and what locks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swap {
    /// Who funded it.
    pub initiator: Address,
    /// Who may redeem it.
    pub redeemer: Address,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
}

impl Swap {
    /// A swap.
    #[must_use]
    pub const fn new(initiator: Address, redeemer: Address, secret_hash: [u8; 32]) -> Self {
        Self { initiator, redeemer, secret_hash }
    }
}

/// The arguments of `initiate`.
///
/// | native | SPL | field | |
/// |---|---|---|---|
/// | 0..8 | 0..8 | discriminator | `sha256("global:initiate")[..8]` |
/// | 8..16 | 80..88 | amount, little-endian | lamports, token base units |
/// | 16..24 | 8..16 | timelock, little-endian | slots |
/// | 24..56 | 16..48 | redeemer | |
/// | 56..88 | 48..80 | secret hash | |
/// | | 88.. | destination data: `00`, or `01`, length in 4 bytes little-endian, bytes | |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Initiate {
    /// Who may redeem with the secret.
    pub redeemer: Address,
    /// Slots until a refund.
    pub timelock: u64,
    /// Lamports, or base units of the token.
    pub amount: u64,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// Bytes that go on to the destination; only the SPL program takes some.
    pub destination_data: Option<Vec<u8>>,
}

/// Where each argument stands in the data.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pub(crate) amount: Range<usize>,
    pub(crate) timelock: Range<usize>,
    pub(crate) redeemer: Range<usize>,
    pub(crate) secret_hash: Range<usize>,
    /// Where destination data begins.
    pub(crate) tail: usize,
}

impl Fields {
    pub(crate) const fn of(htlc: &Htlc) -> Self {
        match htlc.token {
            None => Self { amount: 8..16, timelock: 16..24, redeemer: 24..56, secret_hash: 56..88, tail: 88 },
            Some(_) => Self { amount: 80..88, timelock: 8..16, redeemer: 16..48, secret_hash: 48..80, tail: 88 },
        }
    }
}

impl Initiate {
    /// The arguments, none of them destination data.
    #[must_use]
    pub const fn new(redeemer: Address, timelock: u64, amount: u64, secret_hash: [u8; 32]) -> Self {
        Self { redeemer, timelock, amount, secret_hash, destination_data: None }
    }

    /// Encodes the data for a program.
    #[must_use]
    pub fn encode(&self, htlc: &Htlc) -> Vec<u8> {
        let (amount, timelock) = (self.amount.to_le_bytes(), self.timelock.to_le_bytes());
        let Some(_) = htlc.token else {
            return [INITIATE.as_slice(), &amount, &timelock, self.redeemer.as_ref(), &self.secret_hash].concat();
        };
        let (some, len, bytes) = match &self.destination_data {
            None => (0, None, &[][..]),
            // More than 4 GiB fits into no transaction.
            Some(bytes) => (1, Some(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes()), bytes.as_slice()),
        };
        let len = len.as_ref().map_or(&[][..], |len| len);
        [INITIATE.as_slice(), &timelock, self.redeemer.as_ref(), &self.secret_hash, &amount, &[some], len, bytes].concat()
    }

    /// Decodes the data of a program to the last byte. It stands at `start` in the payload.
    pub(crate) fn decode(data: &[u8], htlc: &Htlc, at: &At<'_>, start: usize) -> Result<Self, Refusal> {
        let place = |code, range: Range<usize>| at.refuse_bytes(code, start.saturating_add(range.start), start.saturating_add(range.end));
        if data.get(..8) != Some(&INITIATE) {
            return Err(place(Code::UnexpectedSelector, 0..data.len().min(8)).with_expected("initiate"));
        }
        let fields = Fields::of(htlc);
        let short = || place(Code::InstructionData, 0..data.len());
        let number = |range: Range<usize>| {
            data.get(range).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()).map(u64::from_le_bytes).ok_or_else(short)
        };
        let bytes = |range: Range<usize>| data.get(range).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()).ok_or_else(short);
        let mut call =
            Self::new(bytes(fields.redeemer)?.into(), number(fields.timelock)?, number(fields.amount)?, bytes(fields.secret_hash)?);
        let tail = data.get(fields.tail..).ok_or_else(short)?;
        call.destination_data = match (htlc.token, tail) {
            (None, []) | (Some(_), [0]) => None,
            (Some(_), [1, a, b, c, d, bytes @ ..]) => {
                if usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])) != Ok(bytes.len()) {
                    return Err(place(Code::InstructionData, fields.tail..data.len())
                        .with_reason("the length of the destination data is not that of its bytes"));
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
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn discriminators_are_hashes_of_names() {
        for (name, discriminator) in [("initiate", INITIATE), ("redeem", REDEEM), ("refund", REFUND)] {
            assert_eq!(Sha256::digest(format!("global:{name}")).get(..8), Some(discriminator.as_slice()), "{name}");
        }
    }

    #[test]
    fn arguments_come_out_as_they_went_in() {
        let token = Token { mint: Address::from([3; 32]), program: address::TOKEN_PROGRAM };
        for htlc in [Htlc::new(Address::from([1; 32]), None), Htlc::new(Address::from([1; 32]), Some(token))] {
            for destination_data in [None, Some(vec![]), Some(vec![7; 1024])] {
                if htlc.token.is_none() && destination_data.is_some() {
                    continue;
                }
                let call = Initiate { destination_data, ..Initiate::new(Address::from([2; 32]), 5, 6, [9; 32]) };
                let data = call.encode(&htlc);
                assert_eq!(Initiate::decode(&data, &htlc, &At::root(""), 0).unwrap(), call);
                for cut in 0..data.len() {
                    assert!(Initiate::decode(&data[..cut], &htlc, &At::root(""), 0).is_err(), "{cut}");
                }
                let longer = [data.as_slice(), &[0]].concat();
                assert_eq!(Initiate::decode(&longer, &htlc, &At::root(""), 0).unwrap_err().code(), Code::InstructionData);
            }
        }
    }
}
