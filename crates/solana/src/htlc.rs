//! The two HTLC programs: their instructions with arguments and accounts, and their program-derived addresses.
//!
//! Every instruction begins with an Anchor discriminator, the first 8 bytes of `sha256("global:<name>")`. The native
//! program holds lamports in the swap account itself; the SPL program holds tokens in one vault per mint.
//!
//! Each program has two generations with the same discriminators. They differ in arguments, accounts and seeds:
//!
//! | | native, client | native, audited | SPL, client | SPL, audited |
//! |---|---|---|---|---|
//! | seeds of the swap account | `swap_account`, initiator, hash | redeemer, refundee, hash, amount, timelock | initiator, hash | mint, redeemer, refundee, hash, amount, timelock |
//! | signer besides the owner | | rent sponsor | sponsor | rent sponsor |
//! | receiver of the returned rent | initiator | rent sponsor | sponsor | rent sponsor |
//! | identity account in `initiate` | | | writable | read-only |
//!
//! Specification: `docs/spec/solana.md#functions`.

mod initiate;

pub use countersign_core::SolanaGeneration;
use countersign_core::generation::SolanaForm;
use solana_instruction::{AccountMeta, Instruction};

use crate::address::{self, Address, SYSTEM_PROGRAM};
pub(crate) use initiate::Fields;
pub use initiate::{Initiate, MAX_DESTINATION_DATA};

/// `sha256("global:initiate")[..8]`
pub const INITIATE: [u8; 8] = [0x05, 0x3f, 0x7b, 0x71, 0x99, 0x4b, 0x94, 0x0e];
/// `sha256("global:redeem")[..8]`
pub const REDEEM: [u8; 8] = [0xb8, 0x0c, 0x56, 0x95, 0x46, 0xc4, 0x61, 0xe1];
/// `sha256("global:refund")[..8]`
pub const REFUND: [u8; 8] = [0x02, 0x60, 0xb7, 0xfb, 0x3f, 0xd0, 0x2e, 0x2e];

/// A pinned HTLC program and the token that it locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Htlc {
    /// Address of the program.
    pub program: Address,
    /// The token; `None` for the native program, which locks lamports.
    pub token: Option<Token>,
    /// The generation of the program.
    pub generation: &'static SolanaGeneration,
}

/// A token: its mint and its token program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Token {
    /// The mint.
    pub mint: Address,
    /// The classic token program or Token-2022.
    pub program: Address,
}

impl Token {
    /// Creates a token from its mint and its program, which is the classic token program or Token-2022.
    #[must_use]
    pub const fn new(mint: Address, program: Address) -> Self {
        Self { mint, program }
    }
}

/// An account of an instruction and its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccountRole {
    /// Name of the role, for people.
    pub name: &'static str,
    /// Address of the account.
    pub address: Address,
    /// Whether the account must sign.
    pub signer: bool,
    /// Whether the instruction writes to the account.
    pub writable: bool,
}

/// The name of the account that pays the rent of a swap and gets it back, in programs that have such an account.
pub(crate) const SPONSOR: &str = "the sponsor";

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
    /// The swap account, which holds the state of the swap, and the lamports of a native swap.
    pub swap_account: Address,
    /// The vault, which holds the tokens; `None` for the native program.
    pub vault: Option<Address>,
    /// The initiator's token account; `None` for the native program.
    pub token_account: Option<Address>,
    /// Every account, in the order of the instruction.
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
    /// Creates a program of the client generation, which is expected if none is pinned.
    #[must_use]
    pub const fn new(program: Address, token: Option<Token>) -> Self {
        Self { program, token, generation: SolanaGeneration::EXPECTED }
    }

    /// Sets the generation.
    #[must_use]
    pub const fn with_generation(mut self, generation: &'static SolanaGeneration) -> Self {
        self.generation = generation;
        self
    }

    /// Returns whether the program has the form of the audited source.
    pub(crate) const fn is_audited(&self) -> bool {
        matches!(self.generation.form, SolanaForm::Audited)
    }

    /// Returns whether an account other than the initiator can pay the rent of a swap.
    pub(crate) const fn has_sponsor(&self) -> bool {
        self.token.is_some() || self.is_audited()
    }

    /// Returns whether `initiate` takes destination data.
    pub(crate) const fn takes_destination_data(&self) -> bool {
        self.token.is_some() || self.is_audited()
    }

    /// Returns the size of a swap account in bytes.
    #[must_use]
    pub const fn swap_account_length(&self) -> usize {
        match (self.token, self.is_audited()) {
            (None, false) => 120,
            (None, true) => 161,
            (Some(_), false) => 153,
            (Some(_), true) => 194,
        }
    }

    /// Returns the address of the account that holds the state of a swap, and the lamports of a native one.
    ///
    /// Like every function here that derives an address, returns `None` if the seeds give none. No such case is known.
    #[must_use]
    pub fn swap_account(&self, swap: &HtlcAccount) -> Option<Address> {
        let (initiator, redeemer, hash) = (swap.initiator.as_ref(), swap.redeemer.as_ref(), swap.secret_hash.as_slice());
        let (amount, timelock) = (swap.amount.to_le_bytes(), swap.timelock.to_le_bytes());
        match (self.token, self.is_audited()) {
            (None, false) => address::derive(&[b"swap_account", initiator, hash], &self.program),
            (Some(_), false) => address::derive(&[initiator, hash], &self.program),
            (None, true) => address::derive(&[redeemer, initiator, hash, &amount, &timelock], &self.program),
            (Some(token), true) => address::derive(&[token.mint.as_ref(), redeemer, initiator, hash, &amount, &timelock], &self.program),
        }
    }

    /// Returns the address of the SPL program's identity account, which has authority over its vaults.
    #[must_use]
    pub fn identity(&self) -> Option<Address> {
        address::derive(&[], &self.program)
    }

    /// Returns the address of the SPL program's vault for the mint; `None` for the native program.
    #[must_use]
    pub fn vault(&self) -> Option<Address> {
        self.token.and_then(|token| address::derive(&[token.mint.as_ref()], &self.program))
    }

    /// Returns the identity account and the vault of the SPL program, which are the same for every order; `None` for the native
    /// program.
    pub(crate) fn program_addresses(&self) -> Option<[Address; 2]> {
        Some([self.identity()?, self.vault()?])
    }

    /// Returns the accounts of `initiate`. The sponsor pays the rent, except in the client's native program, where the initiator does.
    #[must_use]
    pub fn initiate_accounts(&self, swap: &HtlcAccount, sponsor: Address) -> Option<InitiateAccounts> {
        self.initiate_accounts_with(|| self.program_addresses(), swap, sponsor)
    }

    /// Returns the same as [`Htlc::initiate_accounts`], with the addresses that depend on the program alone supplied by the caller.
    pub(crate) fn initiate_accounts_with(
        &self,
        program_addresses: impl FnOnce() -> Option<[Address; 2]>,
        swap: &HtlcAccount,
        sponsor: Address,
    ) -> Option<InitiateAccounts> {
        let swap_account = self.swap_account(swap)?;
        let signs = |name, address, writable| AccountRole { name, address, signer: true, writable };
        let (state, initiator) = (writable("the swap account", swap_account), swap.initiator);
        let system_program = read_only("the system program", SYSTEM_PROGRAM);
        let Some(token) = self.token else {
            let mut roles = vec![state, signs("the initiator", initiator, true)];
            roles.extend(self.is_audited().then(|| signs(SPONSOR, sponsor, true)));
            roles.push(system_program);
            return Some(InitiateAccounts { swap_account, vault: None, token_account: None, roles });
        };
        let [identity, vault] = program_addresses()?;
        let token_account = address::associated_token_account(initiator, token.mint, token.program)?;
        let roles = vec![
            AccountRole { name: "the program's identity account", address: identity, signer: false, writable: !self.is_audited() },
            state,
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

    /// Returns the instruction that pays the funds to the redeemer. Anyone may send it. `sponsor` paid the rent of the swap and
    /// gets it back, except in the client's native program, which returns it to the initiator.
    #[must_use]
    pub fn redeem(&self, swap: &HtlcAccount, sponsor: Address, secret: &[u8; 32]) -> Option<Instruction> {
        let paid = writable("the redeemer", swap.redeemer);
        let native = if self.is_audited() { vec![paid] } else { vec![writable("the initiator", swap.initiator), paid] };
        self.settle([REDEEM.as_slice(), secret].concat(), swap, sponsor, swap.redeemer, native)
    }

    /// Returns the instruction that pays the funds back to the initiator after the timelock. Anyone may send it. `sponsor` is as for
    /// [`Htlc::redeem`].
    #[must_use]
    pub fn refund(&self, swap: &HtlcAccount, sponsor: Address) -> Option<Instruction> {
        let native = vec![writable("the initiator", swap.initiator)];
        self.settle(REFUND.to_vec(), swap, sponsor, swap.initiator, native)
    }

    /// Returns the instruction that ends a swap. `native` has the accounts that the native program names after the swap account.
    fn settle(&self, data: Vec<u8>, swap: &HtlcAccount, sponsor: Address, to: Address, native: Vec<AccountRole>) -> Option<Instruction> {
        let state = writable("the swap account", self.swap_account(swap)?);
        let sponsor = self.has_sponsor().then(|| writable(SPONSOR, sponsor));
        let mut roles = Vec::new();
        match self.token {
            None => {
                roles.push(state);
                roles.extend(native);
                roles.extend(sponsor);
            }
            Some(token) => {
                roles.extend([read_only("the program's identity account", self.identity()?), state]);
                roles.push(writable("the token vault", self.vault()?));
                roles.push(writable("the token account", address::associated_token_account(to, token.mint, token.program)?));
                roles.extend(sponsor);
                roles.push(read_only("the token program", token.program));
            }
        }
        let accounts =
            roles.into_iter().map(|role| AccountMeta { pubkey: role.address, is_signer: role.signer, is_writable: role.writable });
        Some(Instruction { program_id: self.program, accounts: accounts.collect(), data })
    }

    /// Returns the index of the sponsor among the accounts of `redeem` and `refund`; `None` if the program has no sponsor.
    pub(crate) const fn sponsor_index(&self) -> Option<usize> {
        match (self.token, self.is_audited()) {
            (Some(_), _) => Some(4),
            (None, true) => Some(2),
            (None, false) => None,
        }
    }
}

/// The terms of a swap that the HTLC stores. The address of the swap account is derived from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HtlcAccount {
    /// The account that receives a refund. The audited generation calls it the refundee; another account may have funded the swap.
    pub initiator: Address,
    /// The account that receives the funds of a redemption.
    pub redeemer: Address,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// Amount in lamports, or in base units of the token.
    pub amount: u64,
    /// Timelock in slots.
    pub timelock: u64,
}

impl HtlcAccount {
    /// Creates the terms of a swap: amount in lamports or base units, timelock in slots.
    #[must_use]
    pub const fn new(initiator: Address, redeemer: Address, secret_hash: [u8; 32], amount: u64, timelock: u64) -> Self {
        Self { initiator, redeemer, secret_hash, amount, timelock }
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
}
