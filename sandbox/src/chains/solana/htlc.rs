//! The swap programs that clients use: their addresses, instructions and accounts.
//!
//! Specification: `docs/spec/solana.md`.

use solana_address::Address;
use solana_instruction::{AccountMeta, Instruction};

pub(super) const SYSTEM: Address = Address::from_str_const("11111111111111111111111111111111");
pub(super) const TOKEN: Address = Address::from_str_const("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
const ASSOCIATED_TOKEN: Address = Address::from_str_const("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");

/// The program that locks SOL.
pub(super) const NATIVE: Address = Address::from_str_const("2bag6xpshpvPe7SJ9nSDLHpxqhEAoHPGpEkjNSv7gxoF");
/// The program that locks tokens.
pub(super) const TOKENS: Address = Address::from_str_const("gdnvdMCHJgnidtU7SL8RkRshHPvDJU1pdfZEpoLvqdU");
/// USDC.
pub(super) const MINT: Address = Address::from_str_const("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v");
/// The decimals of USDC.
pub(super) const DECIMALS: u8 = 6;

/// `sha256("global:initiate")[..8]`
const INITIATE: [u8; 8] = [0x05, 0x3f, 0x7b, 0x71, 0x99, 0x4b, 0x94, 0x0e];
/// `sha256("global:redeem")[..8]`
const REDEEM: [u8; 8] = [0xb8, 0x0c, 0x56, 0x95, 0x46, 0xc4, 0x61, 0xe1];
/// `sha256("global:refund")[..8]`
const REFUND: [u8; 8] = [0x02, 0x60, 0xb7, 0xfb, 0x3f, 0xd0, 0x2e, 0x2e];

/// A swap of SOL or USDC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Swap {
    pub(super) is_token: bool,
    pub(super) initiator: Address,
    pub(super) redeemer: Address,
    pub(super) hash: [u8; 32],
    pub(super) amount: u64,
    pub(super) slots: u64,
}

impl Swap {
    /// Returns the address of the account that holds the swap.
    pub(super) fn account(&self) -> Address {
        let (initiator, hash) = (self.initiator.as_ref(), self.hash.as_slice());
        if self.is_token {
            Address::find_program_address(&[initiator, hash], &TOKENS).0
        } else {
            Address::find_program_address(&[b"swap_account", initiator, hash], &NATIVE).0
        }
    }

    /// Returns the instruction that locks the amount. The sponsor pays the rent of the swap account. For SOL, that is
    /// the initiator.
    pub(super) fn initiate(&self, sponsor: Address) -> Instruction {
        let (amount, slots) = (self.amount.to_le_bytes(), self.slots.to_le_bytes());
        let redeemer: &[u8] = self.redeemer.as_ref();
        if !self.is_token {
            let data = [&INITIATE, amount.as_slice(), &slots, redeemer, &self.hash].concat();
            let system = AccountMeta::new_readonly(SYSTEM, false);
            let accounts = vec![AccountMeta::new(self.account(), false), AccountMeta::new(self.initiator, true), system];
            return Instruction { program_id: NATIVE, accounts, data };
        }
        // The last byte states that there is no destination data.
        let data = [&INITIATE, slots.as_slice(), redeemer, &self.hash, &amount, &[0]].concat();
        let accounts = vec![
            AccountMeta::new(identity(), false),
            AccountMeta::new(self.account(), false),
            AccountMeta::new(vault(), false),
            AccountMeta::new_readonly(self.initiator, true),
            AccountMeta::new(token_account_of(&self.initiator), false),
            AccountMeta::new_readonly(MINT, false),
            AccountMeta::new(sponsor, true),
            AccountMeta::new_readonly(TOKEN, false),
            AccountMeta::new_readonly(SYSTEM, false),
        ];
        Instruction { program_id: TOKENS, accounts, data }
    }

    /// Returns the instructions that pay the redeemer. `payer` pays for the redeemer's token account if it does not
    /// exist.
    pub(super) fn redeem(&self, secret: &[u8; 32], sponsor: Address, payer: Address) -> Vec<Instruction> {
        let data = [REDEEM.as_slice(), secret].concat();
        if self.is_token {
            return self.release(data, self.redeemer, sponsor, payer);
        }
        let accounts = [self.account(), self.initiator, self.redeemer].map(|key| AccountMeta::new(key, false)).to_vec();
        vec![Instruction { program_id: NATIVE, accounts, data }]
    }

    /// Returns the instructions that pay the initiator back.
    pub(super) fn refund(&self, sponsor: Address, payer: Address) -> Vec<Instruction> {
        let data = REFUND.to_vec();
        if self.is_token {
            return self.release(data, self.initiator, sponsor, payer);
        }
        let accounts = [self.account(), self.initiator].map(|key| AccountMeta::new(key, false)).to_vec();
        vec![Instruction { program_id: NATIVE, accounts, data }]
    }

    fn release(&self, data: Vec<u8>, to: Address, sponsor: Address, payer: Address) -> Vec<Instruction> {
        let account = token_account_of(&to);
        let create = vec![
            AccountMeta::new(payer, true),
            AccountMeta::new(account, false),
            AccountMeta::new_readonly(to, false),
            AccountMeta::new_readonly(MINT, false),
            AccountMeta::new_readonly(SYSTEM, false),
            AccountMeta::new_readonly(TOKEN, false),
        ];
        let release = vec![
            AccountMeta::new_readonly(identity(), false),
            AccountMeta::new(self.account(), false),
            AccountMeta::new(vault(), false),
            AccountMeta::new(account, false),
            AccountMeta::new(sponsor, false),
            AccountMeta::new_readonly(TOKEN, false),
        ];
        // `CreateIdempotent` has no effect if the account already exists.
        let create = Instruction { program_id: ASSOCIATED_TOKEN, accounts: create, data: vec![1] };
        vec![create, Instruction { program_id: TOKENS, accounts: release, data }]
    }
}

fn identity() -> Address {
    Address::find_program_address(&[], &TOKENS).0
}

fn vault() -> Address {
    Address::find_program_address(&[MINT.as_ref()], &TOKENS).0
}

/// Returns an owner's token account for USDC.
pub(super) fn token_account_of(owner: &Address) -> Address {
    Address::find_program_address(&[owner.as_ref(), TOKEN.as_ref(), MINT.as_ref()], &ASSOCIATED_TOKEN).0
}

/// Returns who gets the rent of an open token swap back.
pub(super) fn sponsor(swap_account: &[u8]) -> Option<Address> {
    part(swap_account, 121).map(Address::from)
}

/// The contents of a token account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenAccount {
    pub(super) mint: Address,
    pub(super) owner: Address,
    pub(super) amount: u64,
    pub(super) is_frozen: bool,
}

/// Parses a token account.
pub(super) fn token_account(data: &[u8]) -> Option<TokenAccount> {
    let state = *data.get(108).filter(|_| data.len() == 165)?;
    let (mint, owner) = (part::<32>(data, 0)?.into(), part::<32>(data, 32)?.into());
    let amount = u64::from_le_bytes(part(data, 64)?);
    (state > 0).then_some(TokenAccount { mint, owner, amount, is_frozen: state == 2 })
}

/// The effect of an instruction on a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Initiated(Swap),
    Redeemed([u8; 32]),
    Refunded,
}

/// Returns the effect of an executed instruction, and the swap account. Swaps of other tokens are ignored.
pub(super) fn step(program: &Address, accounts: &[Address], data: &[u8]) -> Option<(Address, Step)> {
    let is_token = *program == TOKENS;
    if !is_token && *program != NATIVE {
        return None;
    }
    let account = *accounts.get(usize::from(is_token))?;
    let (name, arguments) = data.split_first_chunk::<8>()?;
    let bytes = |start| part::<32>(arguments, start);
    let number = |start| part(arguments, start).map(u64::from_le_bytes);
    let step = match *name {
        INITIATE if is_token => {
            let (initiator, mint) = (*accounts.get(3)?, accounts.get(5)?);
            let swap = Swap { is_token, initiator, redeemer: bytes(8)?.into(), hash: bytes(40)?, amount: number(72)?, slots: number(0)? };
            (*mint == MINT).then_some(Step::Initiated(swap))?
        }
        INITIATE => {
            let (initiator, redeemer) = (*accounts.get(1)?, bytes(16)?.into());
            Step::Initiated(Swap { is_token, initiator, redeemer, hash: bytes(48)?, amount: number(0)?, slots: number(8)? })
        }
        REDEEM => Step::Redeemed(bytes(0)?),
        REFUND => Step::Refunded,
        _ => return None,
    };
    Some((account, step))
}

fn part<const N: usize>(data: &[u8], start: usize) -> Option<[u8; N]> {
    data.get(start..)?.first_chunk().copied()
}
