//! Solana addresses (32 bytes, written in base58), the well-known programs, and associated token accounts.
//!
//! Specification: `docs/spec/solana.md#chains-and-addresses`.

use countersign_core::chains::address::parse_solana;
use countersign_core::{Account, Asset, Code, Family, ParseError, TokenStandard};
use ed25519_dalek::VerifyingKey;
pub use solana_address::Address;
use solana_address::MAX_SEED_LEN;

/// The system program, which creates accounts and transfers lamports.
pub const SYSTEM_PROGRAM: Address = Address::from_str_const("11111111111111111111111111111111");
/// The classic token program.
pub const TOKEN_PROGRAM: Address = Address::from_str_const("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
/// The program of Token-2022.
pub const TOKEN_2022_PROGRAM: Address = Address::from_str_const("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb");
/// The associated token program, which creates the token account of an owner and a mint.
pub const ASSOCIATED_TOKEN_PROGRAM: Address = Address::from_str_const("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");
/// The compute budget program, which sets the limit and the price of a transaction's compute units.
pub const COMPUTE_BUDGET_PROGRAM: Address = Address::from_str_const("ComputeBudget111111111111111111111111111111");
/// The memo program, which records a text on chain.
pub const MEMO_PROGRAM: Address = Address::from_str_const("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");

/// Parses an address: base58 of exactly 32 bytes.
///
/// # Errors
///
/// [`Code::AddressMalformed`] for any other text.
pub fn parse(text: &str) -> Result<Address, ParseError> {
    parse_solana(text).map(Address::from).map_err(|_| Code::AddressMalformed.into())
}

/// Returns the address of an account; `None` for an account of another family.
#[must_use]
pub fn from_account(account: &Account) -> Option<Address> {
    if account.family() == Family::Solana { account.array::<32>().map(Address::from) } else { None }
}

/// Returns the account with this address.
#[must_use]
pub fn to_account(address: Address) -> Account {
    Account::from_array(Family::Solana, address.to_bytes())
}

/// Returns the token program of an asset.
pub(crate) fn token_program(asset: &Asset) -> Address {
    match asset.token.as_ref().map(|token| token.standard) {
        Some(TokenStandard::Token2022) => TOKEN_2022_PROGRAM,
        _ => TOKEN_PROGRAM,
    }
}

/// Returns whether this is a program of the network itself or of its token standards.
pub(crate) fn is_well_known(address: &Address) -> bool {
    const OTHERS: [Address; 6] = [
        COMPUTE_BUDGET_PROGRAM,
        MEMO_PROGRAM,
        Address::from_str_const("Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo"),
        Address::from_str_const("Stake11111111111111111111111111111111111111"),
        Address::from_str_const("Vote111111111111111111111111111111111111111"),
        Address::from_str_const("BPFLoaderUpgradeab1e11111111111111111111111"),
    ];
    [SYSTEM_PROGRAM, TOKEN_PROGRAM, TOKEN_2022_PROGRAM, ASSOCIATED_TOKEN_PROGRAM].contains(address) || OTHERS.contains(address)
}

/// Returns the associated token account of `owner` for `mint`.
///
/// ```
/// use countersign::solana::address::{TOKEN_PROGRAM, associated_token_account, parse};
///
/// let (owner, mint) = (
///     parse("DTVvxdx2aMBr7mUaVXqqJBt5jHnmC5GsD6QRLRGsYSJZ")?,
///     parse("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v")?,
/// );
/// let account =
///     associated_token_account(owner, mint, TOKEN_PROGRAM).ok_or("no such address")?;
/// assert!(!account.is_on_curve());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Returns `None` if no bump gives an address off the curve. No such case is known.
#[must_use]
pub fn associated_token_account(owner: Address, mint: Address, token_program: Address) -> Option<Address> {
    derive(&[owner.as_ref(), token_program.as_ref(), mint.as_ref()], &ASSOCIATED_TOKEN_PROGRAM)
}

/// Returns the program-derived address of these seeds, each of at most 32 bytes: the first one off the curve, from the highest bump
/// on.
///
/// `Address::derive_program_address` and `Address::find_program_address` find the same address. They need a feature that brings the
/// curve's tables into every WebAssembly module.
pub(crate) fn derive<const N: usize>(seeds: &[&[u8]; N], program: &Address) -> Option<Address> {
    if seeds.iter().any(|seed| seed.len() > MAX_SEED_LEN) {
        return None;
    }
    let address = |bump| Address::derive_address(seeds, Some(bump), program);
    (1..=u8::MAX).rev().map(address).find(|address| VerifyingKey::from_bytes(address.as_array()).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_accounts_differ_by_program_and_lie_off_the_curve() {
        let (owner, mint) = (Address::from([1; 32]), Address::from([2; 32]));
        let account = associated_token_account(owner, mint, TOKEN_PROGRAM).unwrap();
        assert_ne!(account, associated_token_account(owner, mint, TOKEN_2022_PROGRAM).unwrap());
        assert!(!account.is_on_curve());
    }

    #[test]
    fn derived_addresses_are_those_of_find_program_address() {
        for byte in 0..=u8::MAX {
            let (seed, program) = ([byte; 32], Address::from([!byte; 32]));
            assert_eq!(
                derive(&[b"swap_account", &seed], &program),
                Some(Address::find_program_address(&[b"swap_account", &seed], &program).0)
            );
            assert_eq!(derive(&[], &program), Some(Address::find_program_address(&[], &program).0));
        }
    }

    #[test]
    fn refuses_other_lengths_and_alphabets() {
        for text in ["", "0", "111", "O1111111111111111111111111111111", "1111111111111111111111111111111111111111111111111"] {
            assert_eq!(parse(text), Err(Code::AddressMalformed.into()), "{text}");
        }
        assert_eq!(parse("11111111111111111111111111111111"), Ok(SYSTEM_PROGRAM));
    }

    #[test]
    fn accounts_of_other_families_are_not_solana_addresses() {
        assert_eq!(from_account(&Account::from_array(Family::Sui, [7; 32])), None);
        assert_eq!(from_account(&to_account(SYSTEM_PROGRAM)), Some(SYSTEM_PROGRAM));
    }
}
