//! Keys and secrets as bytes: most languages cannot wipe a string, so wallets pass bytes.

use countersign::Family;
use zeroize::Zeroizing;

use super::Failure;

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
