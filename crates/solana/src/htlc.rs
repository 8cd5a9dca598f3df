//! The two HTLC programs: their instructions with arguments and accounts, and the program-derived addresses.
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

/// A pinned HTLC program and the token that it locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Htlc {
    /// The program.
    pub program: Address,
    /// The token; `None` for the native program, which locks lamports.
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
    /// Creates a token of the classic program or of Token-2022.
    #[must_use]
    pub const fn new(mint: Address, program: Address) -> Self {
        Self { mint, program }
    }
}

/// An account of an instruction and its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccountRole {
    /// What the account is.
    pub name: &'static str,
    /// The account.
    pub address: Address,
    /// Whether it signs.
    pub signer: bool,
    /// Whether the instruction writes to it.
    pub writable: bool,
}

/// The name of the account that pays the rent of an SPL swap.
pub(crate) const SPONSOR: &str = "the sponsor";
/// Where the accounts of the SPL program's `redeem` and `refund` name the sponsor.
pub(crate) const SPONSOR_INDEX: usize = 5;

pub(crate) const fn read_only(name: &'static str, address: Address) -> AccountRole {
    AccountRole { name, address, signer: false, writable: false }
}

const fn writable(name: &'static str, address: Address) -> AccountRole {
    AccountRole { name, address, signer: false, writable: true }
}

/// The accounts of `initiate`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InitiateAccounts {
    /// Holds the swap's state, and the lamports of a native swap.
    pub swap_account: Address,
    /// Holds the tokens; `None` for the native program.
    pub vault: Option<Address>,
    /// The initiator's token account; `None` for the native program.
    pub token_account: Option<Address>,
    /// Every account, in the instruction's order.
    pub roles: Vec<AccountRole>,
}

impl InitiateAccounts {
    /// Returns the same accounts with another sponsor.
    pub(crate) fn with_sponsor(&self, sponsor: Address) -> Self {
        let replace = |role: &AccountRole| if role.name == SPONSOR { AccountRole { address: sponsor, ..*role } } else { *role };
        Self { roles: self.roles.iter().map(replace).collect(), ..*self }
    }
}

impl Htlc {
    /// Creates a pinned program.
    #[must_use]
    pub const fn new(program: Address, token: Option<Token>) -> Self {
        Self { program, token }
    }

    /// Returns the account that holds the state of a swap, and the lamports of a native one. `None` if the seeds give no
    /// address, as in every function here that derives one.
    #[must_use]
    pub fn swap_account(&self, initiator: Address, secret_hash: &[u8; 32]) -> Option<Address> {
        match self.token {
            None => address::derive(&[b"swap_account", initiator.as_ref(), secret_hash], &self.program),
            Some(_) => address::derive(&[initiator.as_ref(), secret_hash], &self.program),
        }
    }

    /// Returns the SPL program's identity account, which has authority over its vaults.
    #[must_use]
    pub fn identity(&self) -> Option<Address> {
        address::derive(&[], &self.program)
    }

    /// Returns the SPL program's vault for its mint; `None` for the native program.
    #[must_use]
    pub fn vault(&self) -> Option<Address> {
        self.token.and_then(|token| address::derive(&[token.mint.as_ref()], &self.program))
    }

    /// Returns identity and vault of the SPL program, which are the same for every order; `None` for the native program.
    pub(crate) fn program_addresses(&self) -> Option<[Address; 2]> {
        Some([self.identity()?, self.vault()?])
    }

    /// Returns the accounts of `initiate`. The sponsor pays the rent of an SPL swap; in the native program the initiator
    /// does.
    #[must_use]
    pub fn initiate_accounts(&self, initiator: Address, sponsor: Address, secret_hash: &[u8; 32]) -> Option<InitiateAccounts> {
        self.initiate_accounts_with(|| self.program_addresses(), initiator, sponsor, secret_hash)
    }

    /// As [`Htlc::initiate_accounts`], where the program's own addresses may be known already.
    pub(crate) fn initiate_accounts_with(
        &self,
        program_addresses: impl FnOnce() -> Option<[Address; 2]>,
        initiator: Address,
        sponsor: Address,
        secret_hash: &[u8; 32],
    ) -> Option<InitiateAccounts> {
        let swap_account = self.swap_account(initiator, secret_hash)?;
        let signs = |name, address, writable| AccountRole { name, address, signer: true, writable };
        let swap = writable("the swap account", swap_account);
        let system_program = read_only("the system program", SYSTEM_PROGRAM);
        let Some(token) = self.token else {
            let roles = vec![swap, signs("the initiator", initiator, true), system_program];
            return Some(InitiateAccounts { swap_account, vault: None, token_account: None, roles });
        };
        let [identity, vault] = program_addresses()?;
        let token_account = address::associated_token_account(initiator, token.mint, token.program)?;
        let roles = vec![
            writable("the program's identity account", identity),
            swap,
            writable("the token vault", vault),
            signs("the initiator", initiator, false),
            writable("the initiator's token account", token_account),
            read_only("the mint", token.mint),
            signs(SPONSOR, sponsor, true),
            read_only("the token program", token.program),
            system_program,
        ];
        Some(InitiateAccounts { swap_account, vault: Some(vault), token_account: Some(token_account), roles })
    }

    /// Returns the accounts of the instruction that creates the initiator's token account; `None` for the native program.
    pub(crate) fn create_token_account(&self, payer: Address, initiator: Address, accounts: &InitiateAccounts) -> Option<[AccountRole; 6]> {
        let token = self.token?;
        Some([
            AccountRole { name: "the payer", address: payer, signer: true, writable: true },
            writable("the initiator's token account", accounts.token_account?),
            read_only("the initiator", initiator),
            read_only("the mint", token.mint),
            read_only("the system program", SYSTEM_PROGRAM),
            read_only("the token program", token.program),
        ])
    }

    /// Returns the instruction that pays the swap to the redeemer. Anyone may send it. `sponsor` paid the rent of an SPL swap
    /// and gets it back.
    #[must_use]
    pub fn redeem(&self, swap: &HtlcAccount, sponsor: Address, secret: &[u8; 32]) -> Option<Instruction> {
        let native = [writable("the redeemer", swap.redeemer)];
        self.settle([REDEEM.as_slice(), secret].concat(), swap, sponsor, swap.redeemer, &native)
    }

    /// Returns the instruction that pays the swap back to the initiator once its timelock has passed. Anyone may send it.
    #[must_use]
    pub fn refund(&self, swap: &HtlcAccount, sponsor: Address) -> Option<Instruction> {
        self.settle(REFUND.to_vec(), swap, sponsor, swap.initiator, &[])
    }

    fn settle(&self, data: Vec<u8>, swap: &HtlcAccount, sponsor: Address, to: Address, native: &[AccountRole]) -> Option<Instruction> {
        let swap_account = writable("the swap account", self.swap_account(swap.initiator, &swap.secret_hash)?);
        let roles = match self.token {
            None => [&[swap_account, writable("the initiator", swap.initiator)], native].concat(),
            Some(token) => vec![
                read_only("the program's identity account", self.identity()?),
                swap_account,
                writable("the token vault", self.vault()?),
                read_only("the mint", token.mint),
                writable("the token account", address::associated_token_account(to, token.mint, token.program)?),
                writable(SPONSOR, sponsor),
                read_only("the token program", token.program),
            ],
        };
        let accounts =
            roles.into_iter().map(|role| AccountMeta { pubkey: role.address, is_signer: role.signer, is_writable: role.writable });
        Some(Instruction { program_id: self.program, accounts: accounts.collect(), data })
    }
}

/// What the HTLC stores of a swap: its parties and the hash that locks it. They decide the swap account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HtlcAccount {
    /// Who funded it.
    pub initiator: Address,
    /// Who may redeem it.
    pub redeemer: Address,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
}

impl HtlcAccount {
    /// Creates what the HTLC stores of a swap.
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

/// Where each argument is in the data.
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
    pub(crate) const fn new(htlc: &Htlc) -> Self {
        match htlc.token {
            None => Self { amount: 8..16, timelock: 16..24, redeemer: 24..56, secret_hash: 56..88, tail: 88 },
            Some(_) => Self { amount: 80..88, timelock: 8..16, redeemer: 16..48, secret_hash: 48..80, tail: 88 },
        }
    }
}

impl Initiate {
    /// Creates the arguments of a call without destination data.
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
            // No transaction holds 4 GiB, so the length always fits.
            Some(bytes) => (1, Some(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes()), bytes.as_slice()),
        };
        let len = len.as_ref().map_or(&[][..], |len| len);
        [INITIATE.as_slice(), &timelock, self.redeemer.as_ref(), &self.secret_hash, &amount, &[some], len, bytes].concat()
    }

    /// Decodes the data of a program to the last byte. `start` is where the data begins in the payload.
    pub(crate) fn decode(data: &[u8], htlc: &Htlc, at: &At<'_>, start: usize) -> Result<Self, Refusal> {
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
