//! Token accounts of the classic token program and of Token-2022.

use super::{Unclear, part};
use crate::address::{Address, TOKEN_2022_PROGRAM, TOKEN_PROGRAM};

/// The number of bytes of a token account without extensions. Accounts of Token-2022 with extensions are longer, and their next byte
/// is the kind of the account.
const LENGTH: usize = 165;
/// The kind of a token account with extensions.
const KIND: u8 = 2;

/// A token account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenAccount {
    /// The mint of the token.
    pub mint: Address,
    /// The account that may transfer the tokens.
    pub owner: Address,
    /// Balance in base units.
    pub amount: u64,
    /// Whether the account is frozen, so that tokens can be transferred neither in nor out.
    pub is_frozen: bool,
}

/// Decodes a token account: mint, owner and amount in the first 72 bytes, the state in byte 108. `program` is the program that owns the
/// account.
///
/// # Errors
///
/// [`Unclear`] if the account does not belong to a token program, or is not an initialized token account.
pub fn token_account(program: Address, data: &[u8]) -> Result<TokenAccount, Unclear> {
    let unknown = Unclear("not a token account");
    let is_whole = match program {
        TOKEN_PROGRAM => data.len() == LENGTH,
        TOKEN_2022_PROGRAM => data.len() == LENGTH || data.get(LENGTH) == Some(&KIND),
        _ => return Err(Unclear("the account does not belong to a token program")),
    };
    let (mint, owner, amount) = (part::<32>(data, 0..32), part::<32>(data, 32..64), part(data, 64..72));
    match (is_whole, mint, owner, amount, data.get(108)) {
        (true, Some(mint), Some(owner), Some(amount), Some(state @ (1 | 2))) => {
            Ok(TokenAccount { mint: mint.into(), owner: owner.into(), amount: u64::from_le_bytes(amount), is_frozen: *state == 2 })
        }
        _ => Err(unknown),
    }
}
