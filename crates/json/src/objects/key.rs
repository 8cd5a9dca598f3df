//! Keys that are parsed once, and keys and secrets as bytes: most languages cannot wipe a string, so wallets pass bytes.

use std::fmt;

use countersign::{Family, Unsigned};
use zeroize::Zeroizing;

use super::Failure;
use crate::dispatch;
use crate::wipe::with_wiped_stack;

/// A local key of one family, parsed once: see [`countersign::Key`]. It is wiped when it is dropped, and never printed.
///
/// ```
/// use countersign::Family;
/// use countersign_json::objects::Key;
///
/// let key = Key::parse(b"0xf9900aa163b64dbaeb472abe7d918ada7c5a7b5021ab3f2bc709a3758da94fd8", Family::Evm)?;
/// assert_eq!(key.account().as_deref(), Some("0x777877C6AEe64Fd401473fCC1b1d299A9Fcc77dA"));
/// assert_eq!(format!("{key:?}"), "Key(evm, 0x777877C6AEe64Fd401473fCC1b1d299A9Fcc77dA)");
/// # Ok::<(), countersign_json::objects::Failure>(())
/// ```
pub struct Key {
    family: Family,
    /// The account that the key controls.
    account: Option<String>,
    /// Moving the box leaves no copy of the key behind.
    key: Box<countersign::Key>,
}

impl Key {
    /// Parses a key of a family: its text in UTF-8, or its bytes, as [`key_text`] reads them.
    ///
    /// # Errors
    ///
    /// [`Failure`] at `/key` with the code `key_malformed`, `usage` if the bytes are text that is not UTF-8, or `unsupported_family`. It
    /// never contains any part of the key.
    pub fn parse(key: &[u8], family: Family) -> Result<Self, Failure> {
        let text = key_text(key, family)?;
        let key = with_wiped_stack(|| countersign::Key::parse(family, &text).map(Box::new));
        let key = key.map_err(|refusal| refusal.with_prefix("/key"))?;
        // The public key is computed from the private one.
        let account = with_wiped_stack(|| key.account().map(|account| account.to_string()));
        Ok(Self { family, account, key })
    }

    /// Parses a key of the family with this name.
    ///
    /// # Errors
    ///
    /// As for [`Key::parse`], and with the code `usage` at `/family` for any other word.
    pub fn parse_named(key: &[u8], family: &str) -> Result<Self, Failure> {
        let known = Family::ALL.iter().find(|known| known.name() == family);
        let names = || Family::ALL.iter().map(|family| family.name()).collect::<Vec<_>>().join(", ");
        Self::parse(key, *known.ok_or_else(|| Failure::usage("/family", names()))?)
    }

    /// Returns the family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns the account that the key controls. `None` on Starknet, where the account does not follow from the key, and on Bitcoin-like
    /// chains, where one key has several addresses.
    #[must_use]
    pub fn account(&self) -> Option<String> {
        self.account.clone()
    }
}

impl fmt::Debug for Key {
    /// Writes the family and the account.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}", self.family)?;
        if let Some(account) = &self.account {
            write!(f, ", {account}")?;
        }
        f.write_str(")")
    }
}

/// Signs everything that a parsed key can sign, as [`sign`](super::sign) does with its text.
///
/// # Errors
///
/// [`Failure`] with the code `key_mismatch`, also if the key is of another family, `nothing_to_sign` or `warning_refused`.
pub fn sign_with(order: &mut Unsigned, key: &Key) -> Result<(), Failure> {
    Ok(dispatch::sign_with(order, &key.key)?)
}

/// Returns the text form of a key, as [`sign`](super::sign) takes it. 32 bytes are the key itself, on Solana 64 bytes too; any other bytes are
/// the text already.
///
/// # Errors
///
/// [`Failure`] with the code `usage` at `/key` if the bytes are text that is not UTF-8.
pub fn key_text(key: &[u8], family: Family) -> Result<Zeroizing<String>, Failure> {
    match (key.len(), family) {
        #[cfg(feature = "solana")]
        (32 | 64, Family::Solana) => Ok(base58(key)),
        (32, _) => Ok(hex(key)),
        _ => decode(key, "/key"),
    }
}

/// Returns the text form of a swap's secret, as [`redeem`](super::redeem) takes it. 32 bytes are the secret itself; any other bytes are the
/// text already.
///
/// # Errors
///
/// [`Failure`] with the code `usage` at `/secret` if the bytes are text that is not UTF-8.
pub fn secret_text(secret: &[u8]) -> Result<Zeroizing<String>, Failure> {
    if secret.len() == 32 { Ok(hex(secret)) } else { decode(secret, "/secret") }
}

fn decode(bytes: &[u8], at: &str) -> Result<Zeroizing<String>, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| Failure::usage(at, "UTF-8"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

fn hex(bytes: &[u8]) -> Zeroizing<String> {
    // With room for all of it, no copy is left behind by growing.
    let mut text = Zeroizing::new(String::with_capacity(bytes.len().saturating_mul(2)));
    for digit in bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]) {
        text.push(char::from_digit(digit.into(), 16).unwrap_or_default());
    }
    text
}

#[cfg(feature = "solana")]
fn base58(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(128));
    // The text of 64 bytes has at most 88 characters.
    let _ = bs58::encode(bytes).onto(&mut *text);
    text
}
