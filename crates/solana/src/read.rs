//! Decodes what a chain returns about one HTLC. No I/O.
//!
//! A swap account is recognized by its length, and by the discriminator `sha256("account:SwapAccount")[..8]`, which is the same in
//! every form:
//!
//! | | native, client | native, audited | SPL, client | SPL, audited |
//! |---|---|---|---|---|
//! | length | 120 | 161 | 153 | 194 |
//! | amount | 8..16 | 113..121 | 112..120 | 178..186 |
//! | slot after which it can be refunded | 16..24 | 8..16 | 8..16 | 9..17 |
//! | initiator, or refundee | 24..56 | 49..81 | 16..48 | 114..146 |
//! | redeemer | 56..88 | 17..49 | 48..80 | 82..114 |
//! | secret hash | 88..120 | 81..113 | 80..112 | 146..178 |
//! | sponsor | | 121..153 | 121..153 | 18..50 |
//! | timelock | | 153..161 | | 186..194 |
//! | mint | | | | 50..82 |
//!
//! Numbers are little-endian. The client generation does not store the timelock, and its SPL form does not store the mint. The
//! transaction that initiated the swap contains both. Anything else is [`Unclear`], because an account of another form must not be
//! read with the wrong table.
//!
//! The account is closed when the swap ends, and can be created again afterwards. So a missing account does not prove that a swap
//! was never funded. [`SwapHistory`] tells how a swap ended.
//!
//! Specification: `docs/spec/solana.md#reading-an-order`.

mod effect;
mod mint;
mod program;
mod record;
mod token;
mod transaction;

use std::fmt;
use std::ops::Range;

use countersign_core::generation::SolanaForm;
use countersign_core::{Code, HtlcTerms, Refusal, UnixTime};
use sha2::{Digest, Sha256};
use solana_hash::Hash;

use crate::address::{self, Address, TOKEN_PROGRAM};
use crate::htlc::{Htlc, HtlcAccount, SolanaGeneration, Token};
pub use crate::reader::SwapHistory;
pub(crate) use effect::error;
pub use effect::{ExecutedInstruction, InstructionPlace, TransactionEffect};
pub(crate) use mint::requires_memo;
pub use mint::{Mint, mint};
pub use program::{ProgramData, program, program_data};
pub use record::ChainTransaction;
pub use token::{TokenAccount, token_account};
pub use transaction::{ChainInstruction, SwapEvent, SwapStep, TransactionRecord, event, instruction_data, transaction, transaction_bytes};

/// `sha256("account:SwapAccount")[..8]`
pub const SWAP_ACCOUNT: [u8; 8] = [0x35, 0x7e, 0x09, 0x0e, 0x0e, 0xc5, 0x69, 0xb6];
/// The clock account, which holds the current slot and time.
pub const CLOCK: Address = Address::from_str_const("SysvarC1ock11111111111111111111111111111111");

/// The account that holds the recent blockhashes, the newest first.
pub const RECENT_BLOCKHASHES: Address = Address::from_str_const("SysvarRecentB1ockHashes11111111111111111111");
/// The length of its count, and of one entry: a blockhash, and a fee that is no longer used.
pub(crate) const RECENT_BLOCKHASHES_COUNT: usize = 8;
/// The length of one entry.
pub(crate) const RECENT_BLOCKHASH: usize = 40;

/// Why an answer of the chain cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unclear(pub(crate) &'static str);

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Unclear {}

/// The addresses of a swap, and the terms that it must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SwapLocation {
    /// The HTLC program. Terms do not contain the token program of a mint, so this has the classic one. The addresses below do not
    /// depend on it.
    pub htlc: Htlc,
    /// The terms from which the swap account is derived.
    pub swap: HtlcAccount,
    /// The swap account, which holds the state of the swap.
    pub swap_account: Address,
    /// The vault, which holds the tokens of all swaps of the mint; `None` for SOL.
    pub vault: Option<Address>,
    /// The identity account, which has authority over the vault; `None` for SOL.
    pub identity: Option<Address>,
}

impl SwapLocation {
    /// Derives the addresses of a swap with these terms.
    ///
    /// # Errors
    ///
    /// [`Code::AddressMalformed`] if the program, the token or a party is not a Solana address, [`Code::NumberTooLarge`] for an amount
    /// of more than 64 bits, [`Code::UnknownGeneration`], or [`Code::Internal`] if the terms give no address.
    pub fn new(terms: &HtlcTerms) -> Result<Self, Refusal> {
        let malformed = |at: &'static str| Refusal::new(Code::AddressMalformed, at);
        let program = terms.htlc.as_ref().and_then(address::from_account).ok_or_else(|| malformed("/htlc"))?;
        let token = match &terms.token {
            Some(text) => Some(Token::new(address::parse(text).map_err(|_| malformed("/token").with_actual(text))?, TOKEN_PROGRAM)),
            None => None,
        };
        let generation =
            SolanaGeneration::expected(terms.generation).ok_or_else(|| Refusal::new(Code::UnknownGeneration, "/generation"))?;
        let htlc = Htlc::new(program, token).with_generation(generation);
        let initiator = address::from_account(&terms.initiator).ok_or_else(|| malformed("/initiator"))?;
        let redeemer = address::from_account(&terms.redeemer).ok_or_else(|| malformed("/redeemer"))?;
        let amount = u64::try_from(terms.amount).map_err(|_| Refusal::new(Code::NumberTooLarge, "/amount"))?;
        let swap = HtlcAccount::new(initiator, redeemer, terms.secret_hash.0, amount, terms.timelock);
        let underivable = || Refusal::new(Code::Internal, "/secret_hash").with_reason("no program-derived address for the terms");
        Self::from_parts(htlc, swap).ok_or_else(underivable)
    }

    /// Derives the addresses of a swap of this program; `None` if the seeds give no address.
    #[must_use]
    pub fn from_parts(htlc: Htlc, swap: HtlcAccount) -> Option<Self> {
        let swap_account = htlc.swap_account(&swap)?;
        let (identity, vault) = match htlc.token {
            Some(_) => {
                let [identity, vault] = htlc.program_addresses()?;
                (Some(identity), Some(vault))
            }
            None => (None, None),
        };
        Some(Self { htlc, swap, swap_account, vault, identity })
    }

    /// Returns whether a swap account has the parties, hash and token of the terms, and at least their amount. The mint is passed
    /// separately, because accounts of the client generation do not store it.
    #[must_use]
    pub fn is_of_terms(&self, stored: &SwapAccount, mint: Option<Address>) -> bool {
        let swap = &self.swap;
        (stored.initiator, stored.redeemer, stored.secret_hash, mint)
            == (swap.initiator, swap.redeemer, swap.secret_hash, self.htlc.token.map(|token| token.mint))
            && stored.amount >= swap.amount
    }
}

/// A swap as stored in its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SwapAccount {
    /// The form of the program.
    pub form: SolanaForm,
    /// Whether the swap locks tokens rather than lamports.
    pub is_token: bool,
    /// The account that receives a refund.
    pub initiator: Address,
    /// The account that receives the funds of a redemption.
    pub redeemer: Address,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// Amount in lamports, or in base units of the token.
    pub amount: u64,
    /// The last slot in which the swap cannot be refunded.
    pub expiry: u64,
    /// Slots from the funding to the expiry; `None` in the client generation, which does not store them.
    pub timelock: Option<u64>,
    /// The mint of the token; `None` for lamports, and in the client generation, which does not store it.
    pub mint: Option<Address>,
    /// The account that gets the rent back; `None` if it is the initiator.
    pub sponsor: Option<Address>,
}

/// The byte range of each field in a swap account.
struct Layout {
    form: SolanaForm,
    is_token: bool,
    amount: Range<usize>,
    expiry: Range<usize>,
    initiator: Range<usize>,
    redeemer: Range<usize>,
    secret_hash: Range<usize>,
    sponsor: Option<Range<usize>>,
    timelock: Option<Range<usize>>,
    mint: Option<Range<usize>>,
}

impl Layout {
    const fn new(length: usize) -> Option<Self> {
        use SolanaForm::{Audited, Client};
        Some(match length {
            120 => Self {
                form: Client,
                is_token: false,
                amount: 8..16,
                expiry: 16..24,
                initiator: 24..56,
                redeemer: 56..88,
                secret_hash: 88..120,
                sponsor: None,
                timelock: None,
                mint: None,
            },
            161 => Self {
                form: Audited,
                is_token: false,
                amount: 113..121,
                expiry: 8..16,
                initiator: 49..81,
                redeemer: 17..49,
                secret_hash: 81..113,
                sponsor: Some(121..153),
                timelock: Some(153..161),
                mint: None,
            },
            153 => Self {
                form: Client,
                is_token: true,
                amount: 112..120,
                expiry: 8..16,
                initiator: 16..48,
                redeemer: 48..80,
                secret_hash: 80..112,
                sponsor: Some(121..153),
                timelock: None,
                mint: None,
            },
            194 => Self {
                form: Audited,
                is_token: true,
                amount: 178..186,
                expiry: 9..17,
                initiator: 114..146,
                redeemer: 82..114,
                secret_hash: 146..178,
                sponsor: Some(18..50),
                timelock: Some(186..194),
                mint: Some(50..82),
            },
            _ => return None,
        })
    }
}

/// Decodes the data of a swap account.
///
/// # Errors
///
/// [`Unclear`] if the data does not have a known form, or contradicts itself.
pub fn swap_account(data: &[u8]) -> Result<SwapAccount, Unclear> {
    let unknown = Unclear("the swap account has an unknown layout");
    let layout = Layout::new(data.len()).filter(|_| data.starts_with(&SWAP_ACCOUNT)).ok_or(unknown)?;
    let number = |range| part(data, range).map(u64::from_le_bytes).ok_or(unknown);
    let key = |range| part::<32>(data, range).map(Address::from).ok_or(unknown);
    let stored = SwapAccount {
        form: layout.form,
        is_token: layout.is_token,
        initiator: key(layout.initiator)?,
        redeemer: key(layout.redeemer)?,
        secret_hash: part(data, layout.secret_hash).ok_or(unknown)?,
        amount: number(layout.amount)?,
        expiry: number(layout.expiry)?,
        timelock: layout.timelock.map(number).transpose()?,
        mint: layout.mint.map(key).transpose()?,
        sponsor: layout.sponsor.map(key).transpose()?,
    };
    if stored.timelock.is_some_and(|timelock| timelock > stored.expiry) {
        return Err(Unclear("the timelock of the swap account is greater than its expiry slot"));
    }
    Ok(stored)
}

/// Returns the SHA-256 of an account's address and data, which identifies the content of the account.
#[must_use]
pub fn digest(account: &Address, data: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(account).chain_update(data).finalize().into()
}

/// Returns a field of a fixed length.
fn part<const N: usize>(data: &[u8], range: Range<usize>) -> Option<[u8; N]> {
    data.get(range).and_then(|bytes| bytes.try_into().ok())
}

/// The slot and the time of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clock {
    /// The current slot.
    pub slot: u64,
    /// The time, as estimated by the validators.
    pub time: UnixTime,
}

/// Decodes the data of the account [`CLOCK`]: slot, start of the epoch, epoch, epoch of the leader schedule, and time, 8 bytes each.
///
/// # Errors
///
/// [`Unclear`] if the data is not that of the clock.
pub fn clock(data: &[u8]) -> Result<Clock, Unclear> {
    let unknown = Unclear("the clock has an unknown layout");
    let (slot, time) = (part(data, 0..8).map(u64::from_le_bytes), part(data, 32..40).map(i64::from_le_bytes));
    match (data.len(), slot, time.and_then(|time| u64::try_from(time).ok())) {
        (40, Some(slot), Some(time)) => Ok(Clock { slot, time: UnixTime::from_secs(time) }),
        _ => Err(unknown),
    }
}

/// Decodes the beginning of the data of the account [`RECENT_BLOCKHASHES`]: at most `max` blockhashes, the newest first. Each is that of
/// one block.
///
/// # Errors
///
/// [`Unclear`] if the data does not hold a blockhash.
pub fn recent_blockhashes(data: &[u8], max: usize) -> Result<Vec<Hash>, Unclear> {
    let unknown = Unclear("the recent blockhashes have an unknown layout");
    let entries = data.get(RECENT_BLOCKHASHES_COUNT..).ok_or(unknown)?.chunks_exact(RECENT_BLOCKHASH);
    let hashes: Vec<_> = entries.take(max).filter_map(|entry| part(entry, 0..32)).map(Hash::new_from_array).collect();
    if hashes.is_empty() { Err(unknown) } else { Ok(hashes) }
}
