//! Mints of the classic token program and of Token-2022, and what the extensions of a mint do to its tokens.
//!
//! Extensions begin at byte 166, each with its type and length (two bytes each, little-endian):
//! <https://github.com/solana-program/token-2022/blob/main/interface/src/extension/mod.rs>

use super::{Unclear, part};
use crate::address::{Address, TOKEN_2022_PROGRAM, TOKEN_PROGRAM};

/// The number of bytes of a mint without extensions.
const LENGTH: usize = 82;
/// The byte that tells a mint with extensions, whose data is padded to the length of a token account, and its value.
const KIND_AT: usize = 165;
const KIND: u8 = 1;
/// The first extension of a mint or of a token account.
const EXTENSIONS: usize = 166;

/// What a mint says about its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mint {
    /// The decimals of the token.
    pub decimals: u8,
    /// What takes from a transfer or stops it today; empty if nothing does.
    pub restrictions: Vec<&'static str>,
    /// What others may do to the tokens, or switch on, at any time.
    pub powers: Vec<&'static str>,
    /// The bytes of a new associated token account. On Token-2022 its owner is immutable, and it has an extension for some of the mint's.
    pub account_length: usize,
}

/// Decodes a mint. `program` is the program that owns the account.
///
/// # Errors
///
/// [`Unclear`] if the account does not belong to a token program, is not an initialized mint, or has an extension that is cut off.
pub fn mint(program: Address, data: &[u8]) -> Result<Mint, Unclear> {
    let unknown = Unclear("not the mint of a token");
    let is_whole = match program {
        TOKEN_PROGRAM => data.len() == LENGTH,
        TOKEN_2022_PROGRAM => data.len() == LENGTH || data.get(KIND_AT) == Some(&KIND),
        _ => return Err(Unclear("the account does not belong to a token program")),
    };
    let (Some(&decimals), Some(1), true) = (data.get(44), data.get(45), is_whole) else { return Err(unknown) };
    // The kind of the account, and the type and length of the extension "immutable owner", which has no value.
    let account_length = if program == TOKEN_2022_PROGRAM { EXTENSIONS + 4 } else { KIND_AT };
    let mut mint = Mint { decimals, restrictions: Vec::new(), powers: Vec::new(), account_length };
    if part::<4>(data, 46..50) != Some([0; 4]) {
        mint.powers.push("freeze the receiver's account");
    }
    for (kind, value) in extensions(data)? {
        mint.add(kind, value)?;
    }
    Ok(mint)
}

/// Returns whether a token account takes only transfers with a memo, which an HTLC does not write.
pub(crate) fn requires_memo(data: &[u8]) -> Result<bool, Unclear> {
    const MEMO_TRANSFER: u16 = 8;
    Ok(extensions(data)?.into_iter().any(|(kind, value)| kind == MEMO_TRANSFER && value.first() != Some(&0)))
}

impl Mint {
    fn add(&mut self, kind: u16, value: &[u8]) -> Result<(), Unclear> {
        let cut = Unclear("an extension of the mint has another length than it should");
        let account = |at: usize| part::<32>(value, at..at.saturating_add(32)).ok_or(cut);
        let is_set = |at: usize| Ok::<_, Unclear>(account(at)? != [0; 32]);
        // The account's own part of it: withheld fees, a mark of tokens that stay or can be paused, whether a hook runs.
        let of_account = match kind {
            1 => 4 + 8,
            9 | 26 => 4,
            14 => 4 + 1,
            _ => 0,
        };
        self.account_length = self.account_length.saturating_add(of_account);
        match kind {
            // The older and the newer fee: the newer one may count from the next epoch.
            1 => {
                let fee = |at: usize| {
                    let (max, points) =
                        (part::<8>(value, at..at.saturating_add(8)), part::<2>(value, at.saturating_add(8)..at.saturating_add(10)));
                    max.zip(points).map(|(max, points)| max != [0; 8] && points != [0; 2]).ok_or(cut)
                };
                if fee(80)? || fee(98)? {
                    self.restrictions.push("takes a fee from each transfer");
                }
                if is_set(0)? {
                    self.powers.push("set a fee on transfers");
                }
            }
            6 => match value.first() {
                Some(2) => self.restrictions.push("freezes new accounts"),
                Some(_) => {}
                None => return Err(cut),
            },
            9 => self.restrictions.push("does not allow transfers"),
            12 if is_set(0)? => self.powers.push("transfer or burn anybody's tokens"),
            14 => {
                if is_set(32)? {
                    self.restrictions.push("runs a program of its own in each transfer");
                }
                if is_set(0)? {
                    self.powers.push("run a program in transfers");
                }
            }
            26 => {
                if value.get(32).ok_or(cut)? != &0 {
                    self.restrictions.push("is paused");
                }
                if is_set(0)? {
                    self.powers.push("pause all transfers");
                }
            }
            // These change no transfer: the authority to close the mint, metadata, groups, interest and multiples that are only
            // shown, confidential transfers; 12 without an authority.
            3 | 4 | 10 | 12 | 16 | 18..=25 => {}
            // What is not known, or is no extension of a mint, may take from a transfer or stop it.
            _ => self.restrictions.push("has an extension that this version does not know"),
        }
        Ok(())
    }
}

/// Returns the extensions of a mint or a token account with their types.
fn extensions(data: &[u8]) -> Result<Vec<(u16, &[u8])>, Unclear> {
    let cut = Unclear("an extension is cut off");
    let (mut found, mut at) = (Vec::new(), EXTENSIONS);
    while let Some(kind) = part::<2>(data, at..at.saturating_add(2)).map(u16::from_le_bytes) {
        // The rest is unused.
        if kind == 0 {
            break;
        }
        let start = at.saturating_add(4);
        let length = part::<2>(data, at.saturating_add(2)..start).map(u16::from_le_bytes).ok_or(cut)?;
        let end = start.saturating_add(usize::from(length));
        found.push((kind, data.get(start..end).ok_or(cut)?));
        at = end;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mint of six decimals with these extensions.
    fn with(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut data = vec![0; EXTENSIONS];
        (data[44], data[45], data[KIND_AT]) = (6, 1, KIND);
        for (kind, value) in extensions {
            data.extend(kind.to_le_bytes());
            data.extend(u16::try_from(value.len()).unwrap().to_le_bytes());
            data.extend(value);
        }
        data
    }

    fn fee(authority: u8, older: [u8; 2], newer: [u8; 2]) -> Vec<u8> {
        let mut value = vec![authority; 32];
        value.extend([0; 40]);
        for points in [older, newer] {
            value.extend([0; 8]);
            value.extend([0xff; 8]);
            value.extend(points);
        }
        value
    }

    #[test]
    fn an_active_extension_restricts_and_an_authority_may() {
        let of = |extensions: &[(u16, Vec<u8>)]| {
            let mint = mint(TOKEN_2022_PROGRAM, &with(extensions)).unwrap();
            (mint.restrictions.len(), mint.powers.len())
        };
        assert_eq!(of(&[]), (0, 0));
        assert_eq!(of(&[(1, fee(0, [0, 0], [0, 0]))]), (0, 0));
        assert_eq!(of(&[(1, fee(7, [0, 0], [0, 0]))]), (0, 1), "PYUSD has authorities, and a fee of 0");
        assert_eq!(of(&[(1, fee(0, [1, 0], [0, 0]))]), (1, 0));
        assert_eq!(of(&[(1, fee(0, [0, 0], [0, 1]))]), (1, 0), "from the next epoch");
        assert_eq!(of(&[(6, vec![2])]), (1, 0));
        assert_eq!(of(&[(6, vec![1])]), (0, 0));
        assert_eq!(of(&[(9, vec![])]), (1, 0));
        assert_eq!(of(&[(12, vec![7; 32])]), (0, 1));
        assert_eq!(of(&[(14, [vec![7; 32], vec![0; 32]].concat())]), (0, 1));
        assert_eq!(of(&[(14, vec![7; 64])]), (1, 1));
        assert_eq!(of(&[(26, [vec![7; 32], vec![0]].concat())]), (0, 1));
        assert_eq!(of(&[(26, [vec![0; 32], vec![1]].concat())]), (1, 0));
        assert_eq!(of(&[(18, vec![7; 64]), (12, vec![7; 32])]), (0, 1));
        for harmless in [3, 4, 10, 16, 18, 19, 20, 21, 22, 23, 24, 25] {
            assert_eq!(of(&[(harmless, vec![7; 64])]), (0, 0), "{harmless}");
        }
        for unknown in [2, 5, 7, 8, 11, 13, 15, 17, 27, 28, 29, 1_000, u16::MAX] {
            assert_eq!(of(&[(unknown, vec![7; 64])]), (1, 0), "{unknown}");
        }
    }

    /// `ExtensionType::get_required_init_account_extensions` of the token program, and the immutable owner of an associated account.
    #[test]
    fn a_new_account_has_the_extensions_that_the_mint_requires() {
        let of = |extensions: &[(u16, Vec<u8>)]| mint(TOKEN_2022_PROGRAM, &with(extensions)).unwrap().account_length;
        let mut plain = vec![0; LENGTH];
        (plain[44], plain[45]) = (6, 1);
        assert_eq!(mint(TOKEN_PROGRAM, &plain).unwrap().account_length, 165);
        assert_eq!(mint(TOKEN_2022_PROGRAM, &plain).unwrap().account_length, 170);
        assert_eq!(of(&[(3, vec![7; 32])]), 170);
        assert_eq!(of(&[(1, fee(7, [0, 0], [0, 0]))]), 182);
        // PYUSD has both.
        assert_eq!(of(&[(1, fee(7, [0, 0], [0, 0])), (14, vec![0; 64])]), 187);
        assert_eq!(of(&[(9, vec![]), (26, vec![0; 33])]), 178);
    }

    #[test]
    fn a_mint_that_is_cut_off_is_not_read() {
        let whole = with(&[(1, fee(7, [0, 0], [0, 0])), (26, vec![0; 33])]);
        for length in EXTENSIONS + 1..whole.len() {
            let _ = mint(TOKEN_2022_PROGRAM, &whole[..length]);
        }
        assert!(mint(TOKEN_2022_PROGRAM, &whole[..EXTENSIONS + 50]).is_err());
        assert!(mint(TOKEN_2022_PROGRAM, &with(&[(1, vec![0; 10])])).is_err());
        assert!(mint(TOKEN_PROGRAM, &whole).is_err());
        assert!(mint(Address::default(), &whole[..LENGTH]).is_err());
        assert!(mint(TOKEN_PROGRAM, &[0; LENGTH]).is_err(), "not initialized");
    }
}
