//! Token accounts, as the classic token program and Token-2022 store them.

use super::{Unclear, part};
use crate::address::{Address, TOKEN_2022_PROGRAM, TOKEN_PROGRAM};

/// Bytes that every token account has. Those of Token-2022 with extensions are longer, and name their kind in the next byte.
const LENGTH: usize = 165;
/// The kind of a token account, where it has extensions.
const KIND: u8 = 2;

/// A token account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenAccount {
    /// The token.
    pub mint: Address,
    /// Who may move what it holds.
    pub owner: Address,
    /// Base units.
    pub amount: u64,
    /// Whether nothing can be moved in or out.
    pub is_frozen: bool,
}

/// Decodes a token account: mint, owner and amount in the first 72 bytes, its state in byte 108.
///
/// # Errors
///
/// [`Unclear`] if the account belongs to no token program, or is not an initialized token account.
pub fn token_account(program: Address, data: &[u8]) -> Result<TokenAccount, Unclear> {
    let unknown = Unclear("not a token account");
    let is_whole = match program {
        TOKEN_PROGRAM => data.len() == LENGTH,
        TOKEN_2022_PROGRAM => data.len() == LENGTH || data.get(LENGTH) == Some(&KIND),
        _ => return Err(Unclear("the account belongs to no token program")),
    };
    let (mint, owner, amount) = (part::<32>(data, 0..32), part::<32>(data, 32..64), part(data, 64..72));
    match (is_whole, mint, owner, amount, data.get(108)) {
        (true, Some(mint), Some(owner), Some(amount), Some(state @ (1 | 2))) => {
            Ok(TokenAccount { mint: mint.into(), owner: owner.into(), amount: u64::from_le_bytes(amount), is_frozen: *state == 2 })
        }
        _ => Err(unknown),
    }
}
