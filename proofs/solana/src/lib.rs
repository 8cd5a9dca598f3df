//! The swap programs as built-in programs of a local SVM, both native and SPL, of the client generation and of the
//! audited one. They are written for this project with the accounts, argument order, derived addresses and account
//! layouts in the interfaces of the deployed programs. The SPL programs move tokens by calling the real token
//! program. Accounts are created by the real system program.

use litesvm::LiteSVM;
use sha2::{Digest, Sha256};
use solana_address::Address;
use solana_instruction::error::InstructionError;
use solana_instruction::{AccountMeta, Instruction};
use solana_program_runtime::declare_process_instruction;
use solana_program_runtime::invoke_context::InvokeContext;
use solana_program_runtime::solana_sbpf::program::BuiltinFunctionDefinition;

const SYSTEM_PROGRAM: Address = Address::from_str_const("11111111111111111111111111111111");
/// `sha256("account:SwapAccount")[..8]`
const SWAP: [u8; 8] = [0x35, 0x7e, 0x09, 0x0e, 0x0e, 0xc5, 0x69, 0xb6];
/// The length of a token account, in bytes.
const TOKEN_ACCOUNT: usize = 165;
/// Returns the rent of an account with this many bytes. It is later returned to whoever paid it.
#[must_use]
pub const fn rent(bytes: usize) -> u64 {
    (128 + bytes as u64) * 6_960
}

/// Returns a virtual machine with both programs of the client generation, at the pinned addresses.
#[must_use]
pub fn machine(native: Address, tokens: Address) -> LiteSVM {
    let mut svm = LiteSVM::new();
    svm.add_builtin(native, Native::register);
    svm.add_builtin(tokens, Tokens::register);
    svm
}

/// Returns a virtual machine with both programs of the audited generation.
#[must_use]
pub fn audited_machine(native: Address, tokens: Address) -> LiteSVM {
    let mut svm = LiteSVM::new();
    svm.add_builtin(native, AuditedNative::register);
    svm.add_builtin(tokens, AuditedTokens::register);
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
            let state = Swap::new(context, initiator, redeemer, hash, amount, slots, initiator, None)?;
            fund(context, &call, &seeds, swap, [initiator, initiator], &state, Form::NATIVE)
        }
        name if name == discriminator("redeem") => {
            let [_, initiator, redeemer] = call.accounts()?;
            let state = Swap::load(context, &call.program, 0, Form::NATIVE)?;
            require(state.initiator == initiator && state.redeemer == redeemer && state.opened_by(call.bytes(0)?))?;
            move_lamports(context, 0, 2, state.amount)?;
            close(context, 0, 1)
        }
        name if name == discriminator("refund") => {
            let [_, initiator] = call.accounts()?;
            let state = Swap::load(context, &call.program, 0, Form::NATIVE)?;
            require(state.initiator == initiator && state.has_expired(context)?)?;
            close(context, 0, 1)
        }
        _ => Err(InstructionError::InvalidInstructionData),
    }
});

declare_process_instruction!(AuditedNative, 1_000, |context| {
    let call = Call::read(context)?;
    match call.name.as_slice() {
        name if name == discriminator("initiate") => {
            let [swap, funder, rent_sponsor, system] = call.accounts()?;
            let state = Swap::audited(context, &call, rent_sponsor, None)?;
            require(system == SYSTEM_PROGRAM && call.signs(funder) && call.signs(rent_sponsor))?;
            let (amount, slots) = (state.amount.to_le_bytes(), state.timelock.to_le_bytes());
            let seeds: [&[u8]; 5] = [state.redeemer.as_ref(), state.initiator.as_ref(), &state.hash, &amount, &slots];
            fund(context, &call, &seeds, swap, [funder, rent_sponsor], &state, Form::AUDITED_NATIVE)
        }
        name if name == discriminator("redeem") => {
            let [_, redeemer, rent_sponsor] = call.accounts()?;
            let state = Swap::load(context, &call.program, 0, Form::AUDITED_NATIVE)?;
            require(state.redeemer == redeemer && state.sponsor == rent_sponsor && state.opened_by(call.bytes(0)?))?;
            move_lamports(context, 0, 1, state.amount)?;
            close(context, 0, 2)
        }
        name if name == discriminator("refund") => {
            let [_, refundee, rent_sponsor] = call.accounts()?;
            let state = Swap::load(context, &call.program, 0, Form::AUDITED_NATIVE)?;
            require(state.initiator == refundee && state.sponsor == rent_sponsor && state.has_expired(context)?)?;
            move_lamports(context, 0, 1, state.amount)?;
            close(context, 0, 2)
        }
        _ => Err(InstructionError::InvalidInstructionData),
    }
});

declare_process_instruction!(Tokens, 1_000, |context| {
    let call = Call::read(context)?;
    if call.name != discriminator("initiate") {
        return settle(context, &call, Form::TOKENS);
    }
    let [_, _, _, initiator, _, _, sponsor, _, _] = call.accounts()?;
    let (slots, amount) = (call.number(0)?, call.number(72)?);
    let (redeemer, hash) = (call.bytes(8)?, call.bytes(40)?);
    let state = Swap::new(context, initiator, redeemer, hash, amount, slots, sponsor, None)?;
    fund_tokens(context, &call, &[initiator.as_ref(), &hash], &state, Form::TOKENS)
});

declare_process_instruction!(AuditedTokens, 1_000, |context| {
    let call = Call::read(context)?;
    if call.name != discriminator("initiate") {
        return settle(context, &call, Form::AUDITED_TOKENS);
    }
    let [_, _, _, _, _, mint, rent_sponsor, _, _] = call.accounts()?;
    let state = Swap::audited(context, &call, rent_sponsor, Some(mint))?;
    let (amount, slots) = (state.amount.to_le_bytes(), state.timelock.to_le_bytes());
    let seeds: [&[u8]; 6] = [mint.as_ref(), state.redeemer.as_ref(), state.initiator.as_ref(), &state.hash, &amount, &slots];
    fund_tokens(context, &call, &seeds, &state, Form::AUDITED_TOKENS)
});

/// Creates a native swap account. The sponsor pays the rent, and the funder the locked amount.
fn fund(
    context: &mut InvokeContext<'_, '_>,
    call: &Call,
    seeds: &[&[u8]],
    swap: Address,
    [funder, sponsor]: [Address; 2],
    state: &Swap,
    form: &Form,
) -> Result<(), InstructionError> {
    create(context, &call.program, seeds, swap, sponsor, form.length(), &call.program)?;
    // Transfer
    let data = [&[2, 0, 0, 0], state.amount.to_le_bytes().as_slice()].concat();
    let accounts = vec![AccountMeta::new(funder, true), AccountMeta::new(swap, false)];
    context.native_invoke_signed(Instruction { program_id: SYSTEM_PROGRAM, accounts, data }, &[])?;
    state.store(context, 0, form)
}

/// Creates a swap account for tokens, and the vault if there is none, and moves the tokens.
fn fund_tokens(
    context: &mut InvokeContext<'_, '_>,
    call: &Call,
    seeds: &[&[u8]],
    state: &Swap,
    form: &Form,
) -> Result<(), InstructionError> {
    let [identity, swap, vault, funder, from, mint, sponsor, token, system] = call.accounts()?;
    require(system == SYSTEM_PROGRAM && call.signs(funder) && call.signs(sponsor))?;
    require(Address::find_program_address(&[], &call.program).0 == identity)?;
    create(context, &call.program, seeds, swap, sponsor, form.length(), &call.program)?;
    if owner(context, 2)? == SYSTEM_PROGRAM {
        create(context, &call.program, &[mint.as_ref()], vault, sponsor, TOKEN_ACCOUNT, &token)?;
        // InitializeAccount3: the identity account gets authority over the vault.
        let accounts = vec![AccountMeta::new(vault, false), AccountMeta::new_readonly(mint, false)];
        let data = [&[18], identity.as_ref()].concat();
        context.native_invoke_signed(Instruction { program_id: token, accounts, data }, &[])?;
    }
    state.store(context, 1, form)?;
    transfer(context, token, from, vault, funder, state.amount, &[])
}

/// Redeems or refunds a swap of tokens.
fn settle(context: &mut InvokeContext<'_, '_>, call: &Call, form: &Form) -> Result<(), InstructionError> {
    let state = Swap::load(context, &call.program, 1, form)?;
    match call.name.as_slice() {
        name if name == discriminator("redeem") => {
            require(state.opened_by(call.bytes(0)?))?;
            release(context, call, &state, state.redeemer)
        }
        name if name == discriminator("refund") => {
            require(state.has_expired(context)?)?;
            release(context, call, &state, state.initiator)
        }
        _ => Err(InstructionError::InvalidInstructionData),
    }
}

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
    timelock: u64,
    amount: u64,
    sponsor: Address,
    mint: Option<Address>,
}

/// A field of a swap account.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Amount,
    Expiry,
    Timelock,
    Initiator,
    Redeemer,
    Hash,
    Sponsor,
    Mint,
    /// A byte that is not used here.
    Bump,
}

/// The fields of a swap account, in order.
struct Form(&'static [Field]);

impl Form {
    const NATIVE: &Self = &Self(&[Field::Amount, Field::Expiry, Field::Initiator, Field::Redeemer, Field::Hash]);
    const TOKENS: &Self =
        &Self(&[Field::Expiry, Field::Initiator, Field::Redeemer, Field::Hash, Field::Amount, Field::Bump, Field::Sponsor]);
    const AUDITED_NATIVE: &Self = &Self(&[
        Field::Expiry,
        Field::Bump,
        Field::Redeemer,
        Field::Initiator,
        Field::Hash,
        Field::Amount,
        Field::Sponsor,
        Field::Timelock,
    ]);
    const AUDITED_TOKENS: &Self = &Self(&[
        Field::Bump,
        Field::Expiry,
        Field::Bump,
        Field::Sponsor,
        Field::Mint,
        Field::Redeemer,
        Field::Initiator,
        Field::Hash,
        Field::Amount,
        Field::Timelock,
    ]);

    fn length(&self) -> usize {
        SWAP.len() + self.0.iter().map(|field| field.length()).sum::<usize>()
    }

    /// Returns the offset of a field.
    fn place(&self, field: Field) -> Option<usize> {
        let before = self.0.iter().take_while(|other| **other != field).map(|other| other.length()).sum::<usize>();
        self.0.contains(&field).then_some(SWAP.len() + before)
    }
}

impl Field {
    const fn length(self) -> usize {
        match self {
            Self::Amount | Self::Expiry | Self::Timelock => 8,
            Self::Bump => 1,
            _ => 32,
        }
    }
}

impl Swap {
    #[allow(clippy::too_many_arguments, reason = "the fields of a swap")]
    fn new(
        context: &InvokeContext<'_, '_>,
        initiator: Address,
        redeemer: [u8; 32],
        hash: [u8; 32],
        amount: u64,
        timelock: u64,
        sponsor: Address,
        mint: Option<Address>,
    ) -> Result<Self, InstructionError> {
        let expiry = expiry(context, timelock)?;
        Ok(Self { initiator, redeemer: redeemer.into(), hash, expiry, timelock, amount, sponsor, mint })
    }

    /// Parses the arguments of the audited generation.
    fn audited(context: &InvokeContext<'_, '_>, call: &Call, sponsor: Address, mint: Option<Address>) -> Result<Self, InstructionError> {
        let (redeemer, refundee, hash) = (call.bytes(0)?, call.bytes(32)?, call.bytes(64)?);
        Self::new(context, refundee.into(), redeemer, hash, call.number(96)?, call.number(104)?, sponsor, mint)
    }

    fn opened_by(&self, secret: [u8; 32]) -> bool {
        <[u8; 32]>::from(Sha256::digest(secret)) == self.hash
    }

    fn has_expired(&self, context: &InvokeContext<'_, '_>) -> Result<bool, InstructionError> {
        Ok(context.environment_config.sysvar_cache().get_clock()?.slot > self.expiry)
    }

    fn store(&self, context: &InvokeContext<'_, '_>, index: u16, form: &Form) -> Result<(), InstructionError> {
        let field = |field: &Field| match field {
            Field::Amount => self.amount.to_le_bytes().to_vec(),
            Field::Expiry => self.expiry.to_le_bytes().to_vec(),
            Field::Timelock => self.timelock.to_le_bytes().to_vec(),
            Field::Initiator => self.initiator.to_bytes().to_vec(),
            Field::Redeemer => self.redeemer.to_bytes().to_vec(),
            Field::Hash => self.hash.to_vec(),
            Field::Sponsor => self.sponsor.to_bytes().to_vec(),
            Field::Mint => self.mint.unwrap_or_default().to_bytes().to_vec(),
            Field::Bump => vec![255],
        };
        let state: Vec<u8> = SWAP.into_iter().chain(form.0.iter().flat_map(field)).collect();
        let current = context.transaction_context.get_current_instruction_context()?;
        current.try_borrow_instruction_account(index)?.set_data_from_slice(&state)
    }

    fn load(context: &InvokeContext<'_, '_>, program: &Address, index: u16, form: &Form) -> Result<Self, InstructionError> {
        let current = context.transaction_context.get_current_instruction_context()?;
        let account = current.try_borrow_instruction_account(index)?;
        require(account.get_owner() == program)?;
        let data = account.get_data();
        require(data.len() == form.length() && data.starts_with(&SWAP))?;
        let key = |field| form.place(field).map(|place| part::<32>(data, place)).transpose();
        let number = |field| form.place(field).map(|place| part(data, place).map(u64::from_le_bytes)).transpose();
        let initiator = Address::from(key(Field::Initiator)?.unwrap_or_default());
        Ok(Self {
            initiator,
            redeemer: key(Field::Redeemer)?.unwrap_or_default().into(),
            hash: key(Field::Hash)?.unwrap_or_default(),
            expiry: number(Field::Expiry)?.unwrap_or_default(),
            timelock: number(Field::Timelock)?.unwrap_or_default(),
            amount: number(Field::Amount)?.unwrap_or_default(),
            sponsor: key(Field::Sponsor)?.map_or(initiator, Address::from),
            mint: key(Field::Mint)?.map(Address::from),
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

/// Returns the first 8 bytes of `sha256("global:<name>")`, which is Anchor's discriminator.
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

/// Creates a derived account through the system program.
#[allow(clippy::too_many_arguments, reason = "the system program's own list")]
fn create(
    context: &mut InvokeContext<'_, '_>,
    program: &Address,
    seeds: &[&[u8]],
    account: Address,
    payer: Address,
    space: usize,
    owner: &Address,
) -> Result<(), InstructionError> {
    let (derived, bump) = Address::find_program_address(seeds, program);
    require(derived == account)?;
    let lamports = rent(space);
    let space = u64::try_from(space).map_err(|_| InstructionError::ArithmeticOverflow)?;
    let data = [&[0; 4], lamports.to_le_bytes().as_slice(), &space.to_le_bytes(), owner.as_ref()].concat();
    let accounts = vec![AccountMeta::new(payer, true), AccountMeta::new(account, true)];
    let bump = [bump];
    let seeds = [seeds, &[&bump]].concat();
    context.native_invoke_signed(Instruction { program_id: SYSTEM_PROGRAM, accounts, data }, &[&seeds])
}

/// Transfers tokens through the token program.
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

/// Pays the tokens to a token account of `to`, and the rent to the sponsor.
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

/// Moves all lamports of an account to another. Without lamports, the account no longer exists.
fn close(context: &InvokeContext<'_, '_>, account: u16, to: u16) -> Result<(), InstructionError> {
    let rest = {
        let current = context.transaction_context.get_current_instruction_context()?;
        let mut account = current.try_borrow_instruction_account(account)?;
        account.set_data_length(0)?;
        account.get_lamports()
    };
    move_lamports(context, account, to, rest)
}
