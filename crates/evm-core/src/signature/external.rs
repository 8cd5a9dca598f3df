//! Reading signatures as signers, wallets and key services write them.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, Bytes, Signature, U256};
use countersign_core::chains::digits;
use countersign_core::json::{self, Cursor, Members, Value};
use countersign_core::{Code, ParseError, Refusal, number};

use super::contract;
use crate::ecdsa;

/// Maximum length of a contract wallet's signature, in bytes. Several nested signatures and their wrapping fit.
const MAX_CONTRACT_SIGNATURE: usize = 64 * 1024;
/// Maximum length of a key's signature: DER, or r, s and a v of 64 bits.
const MAX_KEY_SIGNATURE: usize = 72;
/// The prefix of a contract wallet's signature in text form.
const CONTRACT: &str = "contract:";
/// What a key service puts in front of the 65 bytes of a public key: the ids of ECDSA and secp256k1 (RFC 5480).
const PUBLIC_KEY_INFO: [u8; 23] = *b"\x30\x56\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x0a\x03\x42\x00";

/// A signature made by an external signer, as the signer wrote it.
///
/// Nothing in it is believed: attaching it proves that it is the signer's, and keeps the one canonical form of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExternalSignature {
    /// r, s and the recovery bit. s may be high, and the bit unknown or wrong.
    Ecdsa(Signature),
    /// r and s, and what else a signer states.
    Stated(Stated),
    /// A contract wallet's signature (ERC-1271): only the chain can check it.
    Contract(Bytes),
}

/// r and s of a signer that also states the chain in v (EIP-155), or names its public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    signature: Signature,
    /// What v can mean. Digits without a prefix can be a decimal and a hex number.
    v: Vec<u64>,
    account: Option<Address>,
}

impl Stated {
    pub(super) const fn signature(&self) -> &Signature {
        &self.signature
    }

    pub(super) fn v(&self) -> &[u64] {
        &self.v
    }

    pub(super) const fn account(&self) -> Option<Address> {
        self.account
    }
}

impl From<Signature> for ExternalSignature {
    fn from(signature: Signature) -> Self {
        Self::Ecdsa(signature)
    }
}

impl ExternalSignature {
    /// The members of an object with r and s. `v` may have any of the other names that libraries use, which are spelled in two ways. The
    /// last one only names the object.
    pub const PARTS: &'static [&'static str] =
        &["r", "s", "v", "y_parity", "recovery", "recovery_param", "network_v", "yParity", "recoveryParam", "networkV", "_type"];
    /// The members of an object with a whole signature and the public key that made it.
    pub const WITH_KEY: &'static [&'static str] = &["signature", "public_key"];
    /// The members of an object with a contract wallet's signature.
    pub const OF_CONTRACT: &'static [&'static str] = &["contract", "deployed"];

    /// Creates a contract wallet's signature from its bytes. It may be empty: some wallets store on chain what they have signed.
    ///
    /// # Errors
    ///
    /// [`Code::HexLength`] if it is longer than 64 KiB.
    pub fn contract(bytes: impl Into<Bytes>) -> Result<Self, Refusal> {
        let bytes = bytes.into();
        if bytes.len() > MAX_CONTRACT_SIGNATURE {
            return Err(Refusal::new(Code::HexLength, "").with_expected(format!("at most {MAX_CONTRACT_SIGNATURE} bytes")));
        }
        Ok(Self::Contract(bytes))
    }

    /// Creates the signature of a contract wallet that is deployed. The wrapper of ERC-6492 is taken off, if there is one.
    ///
    /// # Errors
    ///
    /// As [`ExternalSignature::contract`]; [`Code::SignatureMalformed`] if the wrapper is malformed.
    pub fn deployed_contract(bytes: impl Into<Bytes>) -> Result<Self, Refusal> {
        match Self::contract(bytes)? {
            Self::Contract(bytes) => contract::without_wrapper(&bytes).map(Self::Contract),
            other => Ok(other),
        }
    }

    /// Parses the signature of a key in hex, in either letter case; `0x` and white space around it are optional.
    ///
    /// | bytes | form |
    /// |---|---|
    /// | 64 | r‖s, or the compact form of EIP-2098 |
    /// | 65 | r‖s‖v with v 0, 1, 27 or 28, or the last byte of EIP-155's v |
    /// | 66 to 72 | r‖s‖v with EIP-155's v, big-endian |
    /// | 8 to 72 | DER: a sequence of the integers r and s |
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`] or [`Code::HexDigit`].
    pub fn from_hex(text: &str) -> Result<Self, Refusal> {
        let malformed = || Refusal::new(Code::SignatureMalformed, "").with_expected("65 bytes r, s, v; 64 bytes r, s or compact; or DER");
        let hex = without_prefix(text);
        let refuse = || malformed().with_actual(format!("{} hex digits", hex.len()));
        if hex.len() > 2 * MAX_KEY_SIGNATURE {
            let reason = "too long for a key's signature: pass that of a contract wallet as {\"contract\": \"0x..\"}, and a signed transaction whole";
            return Err(refuse().with_reason(reason));
        }
        if hex.is_empty() || !hex.len().is_multiple_of(2) {
            return Err(refuse());
        }
        let bytes = digits::bytes(hex).map_err(|_| Refusal::new(Code::HexDigit, "").with_actual(text))?;
        if bytes.len() != 64
            && bytes.len() != 65
            && let Some((r, s)) = read_der(&bytes)
        {
            return Ok(Self::Stated(Stated { signature: Signature::new(r, s, false), v: Vec::new(), account: None }));
        }
        match bytes.split_at_checked(64) {
            Some((_, [])) => Ok(Self::Ecdsa(Signature::from_erc2098(&bytes))),
            Some((pair, v)) => {
                let v = v.iter().fold(0, |v: u64, byte| (v << 8) | u64::from(*byte));
                Ok(Self::new(Signature::from_bytes_and_parity(pair, false), vec![v]))
            }
            None => Err(refuse()),
        }
    }

    /// Reads a signature from JSON: text as [`ExternalSignature::from_hex`] takes it, or an object.
    ///
    /// | object | from |
    /// |---|---|
    /// | `{r, s, v}`, `{r, s, yParity}`, `{r, s, recovery}` | libraries and hardware wallets: numbers in JSON, hex or decimal text |
    /// | `{signature, public_key}` | key services: the public key in SEC 1 or as a `SubjectPublicKeyInfo`, in hex |
    /// | `{contract}` | contract wallets |
    /// | `{contract, deployed: true}` | the same, in the wrapper of ERC-6492 although the account is deployed |
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the member that is missing, unknown or malformed.
    pub fn read(signature: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let at = |refusal: Refusal| refusal.with_prefix(&signature.at().to_string());
        if !matches!(signature.value(), Value::Object(_)) {
            let text = signature.text()?;
            // An argument of a command line is text, whatever it contains.
            return if is_object(text) { text.parse() } else { Self::from_hex(text) }.map_err(at);
        }
        let members = signature.object()?;
        let only = |names| members.only(names).map_err(|refusal| refusal.with_reason("unknown member of a signature"));
        if members.get("contract").is_some() {
            only(Self::OF_CONTRACT)?;
            let text = members.need("contract")?;
            let bytes = number::hex_bytes(text.text()?, MAX_CONTRACT_SIGNATURE).map_err(|error| text.refuse(error))?;
            let is_deployed = members.get("deployed").map(|deployed| deployed.bool()).transpose()?.unwrap_or_default();
            return if is_deployed { Self::deployed_contract(bytes) } else { Self::contract(bytes) }.map_err(at);
        }
        if members.get("signature").is_some() {
            only(Self::WITH_KEY)?;
            return read_with_key(&members);
        }
        only(Self::PARTS)?;
        read_parts(&members)
    }

    fn new(signature: Signature, v: Vec<u64>) -> Self {
        match v.first() {
            Some(0 | 27) => Self::Ecdsa(signature.with_parity(false)),
            Some(1 | 28) => Self::Ecdsa(signature.with_parity(true)),
            // Without v the parity is not known, and is found where the signer is.
            _ => Self::Stated(Stated { signature, v, account: None }),
        }
    }
}

/// Reads r and s, and v under any of its names, which must agree.
fn read_parts(members: &Members<'_, '_>) -> Result<ExternalSignature, Refusal> {
    let (r, s) = (read_scalar(&members.need("r")?)?, read_scalar(&members.need("s")?)?);
    let mut v = Vec::new();
    let names = ExternalSignature::PARTS.iter().filter(|name| !matches!(**name, "r" | "s" | "_type"));
    for cursor in names.filter_map(|name| members.get(name)) {
        let read = read_v(&cursor)?;
        v = if v.is_empty() { read } else { both(&v, &read) };
        if v.is_empty() {
            let refusal = cursor.refuse(Code::SignatureMalformed).with_expected("the same under every name of v");
            return Err(refusal.with_reason("the signature states two values of v that contradict each other"));
        }
    }
    Ok(ExternalSignature::new(Signature::new(r, s, false), v))
}

/// Returns what v can mean by two of its names: the same number, or the same parity, which one of them may state together with the chain.
fn both(first: &[u64], second: &[u64]) -> Vec<u64> {
    let is_parity = |v: u64| matches!(v, 0 | 1 | 27 | 28);
    // 27 is odd, and so is the first v of every chain.
    let is_odd = |v: u64| v == 1 || v > 1 && v.is_multiple_of(2);
    let pairs = first.iter().flat_map(|first| second.iter().map(|second| (*first, *second)));
    let agreed = pairs.filter_map(|(first, second)| match (is_parity(first), is_parity(second)) {
        (false, false) => Some(first).filter(|v| *v == second),
        (_, true) => Some(first).filter(|v| is_odd(*v) == is_odd(second)),
        (true, false) => Some(second).filter(|v| is_odd(first) == is_odd(*v)),
    });
    agreed.collect()
}

/// Reads a signature and the public key that made it.
fn read_with_key(members: &Members<'_, '_>) -> Result<ExternalSignature, Refusal> {
    let cursor = members.need("signature")?;
    let read = ExternalSignature::from_hex(cursor.text()?).map_err(|refusal| refusal.with_prefix(&cursor.at().to_string()))?;
    let (signature, v) = match read {
        ExternalSignature::Ecdsa(signature) => (signature, Vec::new()),
        ExternalSignature::Stated(stated) => (stated.signature, stated.v),
        contract @ ExternalSignature::Contract(_) => return Ok(contract),
    };
    let Some(key) = members.get("public_key") else { return Ok(ExternalSignature::new_with(signature, v, None)) };
    let bytes = digits::bytes(without_prefix(key.text()?)).map_err(|_| key.refuse(Code::HexDigit))?;
    let account = match bytes.strip_prefix(&PUBLIC_KEY_INFO).unwrap_or(&bytes) {
        point if point.len() == 64 => ecdsa::account(&[&[4], point].concat()),
        // SEC 1 has further forms, which the libraries read differently.
        point @ ([2 | 3, ..] | [4, ..]) => ecdsa::account(point),
        _ => None,
    };
    let account = account.ok_or_else(|| key.refuse(Code::SignatureMalformed).with_expected("a public key of secp256k1"))?;
    Ok(ExternalSignature::new_with(signature, v, Some(account)))
}

impl ExternalSignature {
    fn new_with(signature: Signature, v: Vec<u64>, account: Option<Address>) -> Self {
        if v.is_empty() && account.is_none() { Self::Ecdsa(signature) } else { Self::Stated(Stated { signature, v, account }) }
    }
}

fn is_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{')
}

/// Removes white space around hex digits, and their prefix.
fn without_prefix(text: &str) -> &str {
    let text = text.trim_ascii();
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text)
}

/// Reads r or s. Text without `0x` is hex, unless it has more digits than 32 bytes.
fn read_scalar(cursor: &Cursor<'_, '_>) -> Result<U256, Refusal> {
    let Value::String(text) = cursor.value() else { return cursor.any_number() };
    let digits = without_prefix(text);
    let significant = digits.trim_start_matches('0');
    let read = match significant.len() {
        0 if !digits.is_empty() => return Ok(U256::ZERO),
        65.. if digits.len() == text.trim_ascii().len() => number::decimal(significant),
        _ => hex_number(significant),
    };
    read.map_err(|error| cursor.refuse(error))
}

/// Reads what v can mean, the likeliest first. Digits without `0x` can be decimal, as libraries write numbers, and hex, as hardware wallets
/// do.
fn read_v(cursor: &Cursor<'_, '_>) -> Result<Vec<u64>, Refusal> {
    let small = |number: Result<U256, ParseError>| number.ok().and_then(|number| u64::try_from(number).ok());
    let Value::String(text) = cursor.value() else {
        return u64::try_from(cursor.any_number()?).map(|v| vec![v]).map_err(|_| cursor.refuse(Code::NumberTooLarge));
    };
    let digits = without_prefix(text);
    let decimal = small(number::decimal(digits)).filter(|_| digits.len() == text.trim_ascii().len());
    let readings: Vec<_> = decimal.into_iter().chain(small(hex_number(digits))).collect();
    if readings.is_empty() {
        return Err(cursor.refuse(Code::SignatureMalformed).with_expected("v: a number, or its hex or decimal digits"));
    }
    Ok(readings)
}

fn hex_number(digits: &str) -> Result<U256, ParseError> {
    number::hex(&format!("0x{digits}"))
}

/// Reads DER: a sequence of two integers, with nothing behind it.
fn read_der(bytes: &[u8]) -> Option<(U256, U256)> {
    let [0x30, len, rest @ ..] = bytes else { return None };
    if usize::from(*len) != rest.len() {
        return None;
    }
    let (r, rest) = read_der_integer(rest)?;
    let (s, rest) = read_der_integer(rest)?;
    rest.is_empty().then_some((r, s))
}

/// Reads an integer that is not negative, in at most 32 bytes behind the zero that keeps it so. Returns what follows it.
fn read_der_integer(bytes: &[u8]) -> Option<(U256, &[u8])> {
    let [0x02, len, rest @ ..] = bytes else { return None };
    let (digits, rest) = rest.split_at_checked(usize::from(*len))?;
    let digits = match digits {
        [0, digits @ ..] if digits.first().is_some_and(|first| *first >= 0x80) => digits,
        [0x80..=0xff, ..] | [] | [0, _, ..] => return None,
        digits => digits,
    };
    U256::try_from_be_slice(digits).map(|number| (number, rest))
}

impl fmt::Display for ExternalSignature {
    /// Writes r, s and v in hex, or `contract:` and the bytes of a contract wallet's signature in hex.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ecdsa(signature) => write!(f, "0x{}", hex::encode(signature.as_bytes())),
            Self::Stated(Stated { signature, v, .. }) => {
                write!(f, "0x{:064x}{:064x}", signature.r(), signature.s())?;
                let v = v.first().copied().unwrap_or_else(|| 27_u64.saturating_add(signature.v().into()));
                let digits = hex::encode(v.to_be_bytes());
                let significant = digits.trim_start_matches("00");
                f.write_str(if significant.is_empty() { "00" } else { significant })
            }
            Self::Contract(bytes) => write!(f, "{CONTRACT}{bytes}"),
        }
    }
}

impl FromStr for ExternalSignature {
    type Err = Refusal;

    /// Parses hex as [`ExternalSignature::from_hex`] does, the JSON text of an object as [`ExternalSignature::read`] does, or `contract:` and
    /// the signature of a contract wallet in hex.
    ///
    /// # Errors
    ///
    /// As these, and [`ExternalSignature::contract`].
    fn from_str(text: &str) -> Result<Self, Refusal> {
        if is_object(text) {
            let value = json::parse(text.as_bytes())?;
            return Self::read(Cursor::root(&value, ""));
        }
        let Some(hex) = text.strip_prefix(CONTRACT) else { return Self::from_hex(text) };
        let bytes = digits::bytes(hex.strip_prefix("0x").unwrap_or(hex));
        Self::contract(bytes.map_err(|_| Refusal::new(Code::HexDigit, ""))?)
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;

    use super::super::Key;
    use super::*;

    fn code(text: &str) -> Code {
        text.parse::<ExternalSignature>().unwrap_err().code()
    }

    fn signature() -> Signature {
        Key::from_bytes(&[7; 32]).unwrap().sign(&B256::repeat_byte(9)).unwrap()
    }

    #[test]
    fn both_usual_forms_are_one_signature() {
        let signature = signature();
        let (whole, compact) = (hex::encode(signature.as_bytes()), hex::encode(signature.as_erc2098()));
        for text in [whole.clone(), format!("0x{whole}"), compact.clone(), format!("0x{compact}"), format!(" {compact}\n")] {
            assert_eq!(text.parse(), Ok(ExternalSignature::Ecdsa(signature)));
        }
        assert_eq!(ExternalSignature::Ecdsa(signature).to_string(), format!("0x{whole}"));
        for v in ["2d", "422e", "0154", "ffffffffffffffff"] {
            let text = format!("0x{}{v}", &whole[..128]);
            assert_eq!(text.parse::<ExternalSignature>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn another_form_or_length_is_refused() {
        let whole = hex::encode(signature().as_bytes());
        for text in ["", "0x", &whole[..126], &whole[..129], &format!("{whole}{}", "00".repeat(8)), &"00".repeat(192)] {
            assert_eq!(code(text), Code::SignatureMalformed, "{text}");
        }
        for text in [format!("{}zz", &whole[..128]), format!("0x0x{}", &whole[..128])] {
            assert_eq!(code(&text), Code::HexDigit, "{text}");
        }
        assert!("00".repeat(192).parse::<ExternalSignature>().unwrap_err().reason().contains("{\"contract\""));
        // DER: a negative integer, a superfluous zero, no digits, another tag, a length that is wrong, bytes behind it.
        for der in [
            "3006020181020101",
            "300702020001020101",
            "30050200020101",
            "3006030101020101",
            "3007020101020101",
            "300602010102010100",
            "31060201010201ff",
        ] {
            assert_eq!(code(der), Code::SignatureMalformed, "{der}");
        }
        let pair = Signature::new(U256::ONE, U256::from(2), false);
        assert_eq!("3006020101020102".parse(), Ok(ExternalSignature::Stated(Stated { signature: pair, v: Vec::new(), account: None })));
    }

    #[test]
    fn an_object_is_refused_at_its_member() {
        for (text, code, at) in [
            ("{}", Code::MissingField, "/r"),
            (r#"{"r": "1"}"#, Code::MissingField, "/s"),
            (r#"{"r": "1", "s": "1", "w": 27}"#, Code::UnexpectedField, "/w"),
            (r#"{"r": "x", "s": "1"}"#, Code::HexDigit, "/r"),
            (r#"{"r": "", "s": "1"}"#, Code::HexEmpty, "/r"),
            (r#"{"r": true, "s": "1"}"#, Code::WrongType, "/r"),
            (r#"{"r": "1", "s": 1.5}"#, Code::IntegerNotExact, "/s"),
            (r#"{"r": "1", "s": "1", "v": "odd"}"#, Code::SignatureMalformed, "/v"),
            (r#"{"r": "1", "s": "1", "v": 18446744073709551616}"#, Code::NumberTooLarge, "/v"),
            (r#"{"r": "1", "s": "1", "yParity": []}"#, Code::WrongType, "/yParity"),
            (r#"{"contract": "ab"}"#, Code::HexPrefix, "/contract"),
            (r#"{"contract": "0xab", "r": "1"}"#, Code::UnexpectedField, "/r"),
            (r#"{"contract": "0xab", "deployed": "yes"}"#, Code::WrongType, "/deployed"),
            (r#"{"signature": "ab", "public_key": "02"}"#, Code::SignatureMalformed, "/signature"),
            (r#"{"signature": "ab", "v": 27}"#, Code::UnexpectedField, "/v"),
            ("{", Code::JsonSyntax, ""),
        ] {
            let refusal = text.parse::<ExternalSignature>().unwrap_err();
            assert_eq!((refusal.code(), refusal.location().split('#').next()), (code, Some(at)), "{text}: {refusal}");
        }
    }

    #[test]
    fn the_signature_of_a_contract_has_a_text_of_its_own() {
        let contract = ExternalSignature::contract(vec![0xab; 65]).unwrap();
        let text = format!("contract:0x{}", "ab".repeat(65));
        assert_eq!((contract.to_string(), text.parse()), (text, Ok(contract)));
        // Safe returns no bytes for a message that it signed on chain.
        for text in ["contract:", "contract:0x", r#"{"contract": "0x"}"#] {
            assert_eq!(text.parse(), Ok(ExternalSignature::Contract(Bytes::new())), "{text}");
        }
        assert_eq!(code("contract:xy"), Code::HexDigit);
        assert_eq!(ExternalSignature::from_hex(&format!("contract:0x{}", "ab".repeat(65))).unwrap_err().code(), Code::SignatureMalformed);
    }
}
