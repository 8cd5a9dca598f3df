//! The two swap programs as built-in programs of a local SVM, written for this project with the accounts, argument order
//! and derived addresses of the deployed programs. The SPL program moves tokens by calling the real token program; accounts
//! come from the real system program.
//!
//! A swap account holds initiator, redeemer, secret hash, expiry slot, amount and, for tokens, the sponsor: 32, 32, 32, 8,
//! 8 and 32 bytes. The deployed programs' own state layout is not known here and nothing depends on it.

use litesvm::LiteSVM;
use sha2::{Digest, Sha256};
use solana_address::Address;
use solana_instruction::error::InstructionError;
use solana_instruction::{AccountMeta, Instruction};
use solana_program_runtime::declare_process_instruction;
use solana_program_runtime::invoke_context::InvokeContext;
use solana_program_runtime::solana_sbpf::program::BuiltinFunctionDefinition;

const SYSTEM_PROGRAM: Address = Address::from_str_const("11111111111111111111111111111111");
/// Bytes of a swap account.
const SWAP: usize = 144;
/// Bytes of a token account.
const TOKEN_ACCOUNT: usize = 165;
/// More than any account's rent in this proof; whoever paid it gets it back.
const RENT: u64 = 3_000_000;

/// A virtual machine with both programs at the addresses that the wallet has pinned.
#[must_use]
pub fn machine(native: Address, tokens: Address) -> LiteSVM {
    let mut svm = LiteSVM::new();
    svm.add_builtin(native, Native::register);
    svm.add_builtin(tokens, Tokens::register);
    svm
}

declare_process_instruction!(Native, 1_000, |context| {
    let call = Call::read(context)?;
    match call.name.as_slice() {
        name if name == discriminator("initiate") => {
            let [swap, initiator, system] = call.accounts()?;
            let (amount, slots) = (call.number(0)?, call.number(8)?);
            let (redeemer, hash) = (call.bytes(16)?, call.bytes(48)?);
            require(system == SYSTEM_PROGRAM && call.signs(initiator) && call.data.len() == 80)?;
            let seeds: [&[u8]; 3] = [b"swap_account", initiator.as_ref(), &hash];
            let lamports = amount.checked_add(RENT).ok_or(InstructionError::ArithmeticOverflow)?;
            create(context, &call.program, &seeds, swap, initiator, lamports, SWAP, &call.program)?;
            let state = Swap { initiator, redeemer: redeemer.into(), hash, expiry: expiry(context, slots)?, amount, sponsor: initiator };
            state.store(context, 0)
        }
        name if name == discriminator("redeem") => {
            let [_, initiator, redeemer] = call.accounts()?;
            let state = Swap::load(context, &call.program, 0)?;
            require(state.initiator == initiator && state.redeemer == redeemer && state.opened_by(call.bytes(0)?))?;
            move_lamports(context, 0, 2, state.amount)?;
            close(context, 0, 1)
        }
        name if name == discriminator("refund") => {
            let [_, initiator] = call.accounts()?;
            let state = Swap::load(context, &call.program, 0)?;
            require(state.initiator == initiator && context.environment_config.sysvar_cache().get_clock()?.slot > state.expiry)?;
            close(context, 0, 1)
        }
        _ => Err(InstructionError::InvalidInstructionData),
    }
});

declare_process_instruction!(Tokens, 1_000, |context| {
    let call = Call::read(context)?;
    match call.name.as_slice() {
        name if name == discriminator("initiate") => {
            let [identity, swap, vault, initiator, from, mint, sponsor, token, system] = call.accounts()?;
            let (slots, amount) = (call.number(0)?, call.number(72)?);
            let (redeemer, hash) = (call.bytes(8)?, call.bytes(40)?);
            require(system == SYSTEM_PROGRAM && call.signs(initiator) && call.signs(sponsor))?;
            require(Address::find_program_address(&[], &call.program).0 == identity)?;
            create(context, &call.program, &[initiator.as_ref(), &hash], swap, sponsor, RENT, SWAP, &call.program)?;
            if owner(context, 2)? == SYSTEM_PROGRAM {
                create(context, &call.program, &[mint.as_ref()], vault, sponsor, RENT, TOKEN_ACCOUNT, &token)?;
                // InitializeAccount3: the identity account has authority over the vault.
                let accounts = vec![AccountMeta::new(vault, false), AccountMeta::new_readonly(mint, false)];
                let data = [&[18], identity.as_ref()].concat();
                context.native_invoke_signed(Instruction { program_id: token, accounts, data }, &[])?;
            }
            let state = Swap { initiator, redeemer: redeemer.into(), hash, expiry: expiry(context, slots)?, amount, sponsor };
            state.store(context, 1)?;
            transfer(context, token, from, vault, initiator, amount, &[])
        }
        name if name == discriminator("redeem") => {
            let state = Swap::load(context, &call.program, 1)?;
            require(state.opened_by(call.bytes(0)?))?;
            release(context, &call, &state, state.redeemer)
        }
        name if name == discriminator("refund") => {
            let state = Swap::load(context, &call.program, 1)?;
            require(context.environment_config.sysvar_cache().get_clock()?.slot > state.expiry)?;
            release(context, &call, &state, state.initiator)
        }
        _ => Err(InstructionError::InvalidInstructionData),
    }
});

/// An instruction as the program sees it.
struct Call {
    program: Address,
    keys: Vec<Address>,
    signers: Vec<Address>,
    name: Vec<u8>,
    data: Vec<u8>,
}

impl Call {
    fn read(context: &InvokeContext<'_, '_>) -> Result<Self, InstructionError> {
        let current = context.transaction_context.get_current_instruction_context()?;
        let count = current.get_number_of_instruction_accounts();
        let keys = (0..count).map(|index| current.get_key_of_instruction_account(index).copied()).collect::<Result<_, _>>()?;
        let (name, data) = current.get_instruction_data().split_at_checked(8).ok_or(InstructionError::InvalidInstructionData)?;
        Ok(Self {
            program: *current.get_program_key()?,
            keys,
            signers: current.get_signers()?.into_iter().collect(),
            name: name.to_vec(),
            data: data.to_vec(),
        })
    }

    fn accounts<const N: usize>(&self) -> Result<[Address; N], InstructionError> {
        self.keys.as_slice().try_into().map_err(|_| InstructionError::MissingAccount)
    }

    fn signs(&self, key: Address) -> bool {
        self.signers.contains(&key)
    }

    fn bytes(&self, start: usize) -> Result<[u8; 32], InstructionError> {
        part(&self.data, start)
    }

    fn number(&self, start: usize) -> Result<u64, InstructionError> {
        part(&self.data, start).map(u64::from_le_bytes)
    }
}

struct Swap {
    initiator: Address,
    redeemer: Address,
    hash: [u8; 32],
    expiry: u64,
    amount: u64,
    sponsor: Address,
}

impl Swap {
    fn opened_by(&self, secret: [u8; 32]) -> bool {
        <[u8; 32]>::from(Sha256::digest(secret)) == self.hash
    }

    fn store(&self, context: &InvokeContext<'_, '_>, index: u16) -> Result<(), InstructionError> {
        let state = [
            self.initiator.as_ref(),
            self.redeemer.as_ref(),
            &self.hash,
            &self.expiry.to_le_bytes(),
            &self.amount.to_le_bytes(),
            self.sponsor.as_ref(),
        ]
        .concat();
        let current = context.transaction_context.get_current_instruction_context()?;
        current.try_borrow_instruction_account(index)?.set_data_from_slice(&state)
    }

    fn load(context: &InvokeContext<'_, '_>, program: &Address, index: u16) -> Result<Self, InstructionError> {
        let current = context.transaction_context.get_current_instruction_context()?;
        let account = current.try_borrow_instruction_account(index)?;
        require(account.get_owner() == program)?;
        let data = account.get_data();
        Ok(Self {
            initiator: part::<32>(data, 0)?.into(),
            redeemer: part::<32>(data, 32)?.into(),
            hash: part(data, 64)?,
            expiry: u64::from_le_bytes(part(data, 96)?),
            amount: u64::from_le_bytes(part(data, 104)?),
            sponsor: part::<32>(data, 112)?.into(),
        })
    }
}

fn part<const N: usize>(data: &[u8], start: usize) -> Result<[u8; N], InstructionError> {
    let bytes = data.get(start..).and_then(|rest| rest.first_chunk()).copied();
    bytes.ok_or(InstructionError::InvalidInstructionData)
}

fn require(holds: bool) -> Result<(), InstructionError> {
    if holds { Ok(()) } else { Err(InstructionError::InvalidArgument) }
}

/// The first 8 bytes of `sha256("global:<name>")`, as Anchor has it.
fn discriminator(name: &str) -> Vec<u8> {
    Sha256::digest(format!("global:{name}")).iter().take(8).copied().collect()
}

fn expiry(context: &InvokeContext<'_, '_>, slots: u64) -> Result<u64, InstructionError> {
    let now = context.environment_config.sysvar_cache().get_clock()?.slot;
    now.checked_add(slots).ok_or(InstructionError::ArithmeticOverflow)
}

fn owner(context: &InvokeContext<'_, '_>, index: u16) -> Result<Address, InstructionError> {
    let current = context.transaction_context.get_current_instruction_context()?;
    Ok(*current.try_borrow_instruction_account(index)?.get_owner())
}

/// Has the system program create a derived account.
#[allow(clippy::too_many_arguments, reason = "the system program's own list")]
fn create(
    context: &mut InvokeContext<'_, '_>,
    program: &Address,
    seeds: &[&[u8]],
    account: Address,
    payer: Address,
    lamports: u64,
    space: usize,
    owner: &Address,
) -> Result<(), InstructionError> {
    let (derived, bump) = Address::find_program_address(seeds, program);
    require(derived == account)?;
    let space = u64::try_from(space).map_err(|_| InstructionError::ArithmeticOverflow)?;
    let data = [&[0; 4], lamports.to_le_bytes().as_slice(), &space.to_le_bytes(), owner.as_ref()].concat();
    let accounts = vec![AccountMeta::new(payer, true), AccountMeta::new(account, true)];
    let bump = [bump];
    let seeds = [seeds, &[&bump]].concat();
    context.native_invoke_signed(Instruction { program_id: SYSTEM_PROGRAM, accounts, data }, &[&seeds])
}

/// Has the token program transfer.
fn transfer(
    context: &mut InvokeContext<'_, '_>,
    token: Address,
    from: Address,
    to: Address,
    authority: Address,
    amount: u64,
    seeds: &[&[&[u8]]],
) -> Result<(), InstructionError> {
    let accounts = vec![AccountMeta::new(from, false), AccountMeta::new(to, false), AccountMeta::new_readonly(authority, true)];
    let data = [&[3], amount.to_le_bytes().as_slice()].concat();
    context.native_invoke_signed(Instruction { program_id: token, accounts, data }, seeds)
}

/// Gives the tokens to a token account of `to`, and the rent to the sponsor.
fn release(context: &mut InvokeContext<'_, '_>, call: &Call, state: &Swap, to: Address) -> Result<(), InstructionError> {
    let [identity, _, vault, account, sponsor, token] = call.accounts()?;
    let (derived, bump) = Address::find_program_address(&[], &call.program);
    require(derived == identity && state.sponsor == sponsor)?;
    {
        let current = context.transaction_context.get_current_instruction_context()?;
        let data = current.try_borrow_instruction_account(3)?;
        require(part::<32>(data.get_data(), 32)? == to.to_bytes())?;
    }
    transfer(context, token, vault, account, identity, state.amount, &[&[&[bump]]])?;
    close(context, 1, 4)
}

fn move_lamports(context: &InvokeContext<'_, '_>, from: u16, to: u16, amount: u64) -> Result<(), InstructionError> {
    let current = context.transaction_context.get_current_instruction_context()?;
    current.try_borrow_instruction_account(from)?.checked_sub_lamports(amount)?;
    current.try_borrow_instruction_account(to)?.checked_add_lamports(amount)
}

/// Empties an account into another: without lamports it is gone.
fn close(context: &InvokeContext<'_, '_>, account: u16, to: u16) -> Result<(), InstructionError> {
    let rest = {
        let current = context.transaction_context.get_current_instruction_context()?;
        let mut account = current.try_borrow_instruction_account(account)?;
        account.set_data_length(0)?;
        account.get_lamports()
    };
    move_lamports(context, account, to, rest)
}
