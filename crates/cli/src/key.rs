//! Keys that the user gives, each with the place that it is from. A message names the place, and never contains any part of the key.
//! Keys are never arguments, because other users of the machine can see those.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::Args;
use countersign::{Code, Family, Key, Refusal, Unsigned};
use zeroize::Zeroizing;

use crate::config::Config;
use crate::failure::{Failure, usage};
use crate::files::{read, read_private};
use crate::session::Session;

/// A key of the user, as text, and where it is from.
#[derive(Clone)]
pub(crate) struct GivenKey {
    text: Zeroizing<String>,
    origin: String,
}

impl GivenKey {
    /// Takes a key that is derived from the rescue phrase.
    pub(crate) fn derived(text: Zeroizing<String>) -> Self {
        Self { text, origin: "the key of the rescue phrase".to_owned() }
    }

    /// Takes the key that a wallet context contains.
    pub(crate) fn of_wallet(text: Zeroizing<String>) -> Self {
        Self { text, origin: "secret_key of the wallet context".to_owned() }
    }

    /// Reads the key in these bytes, without surrounding white space.
    ///
    /// # Errors
    ///
    /// A usage error that names the place if the bytes are not text.
    pub(crate) fn new(bytes: &[u8], origin: String) -> Result<Self, Failure> {
        let text = std::str::from_utf8(bytes).map_err(|_| {
            let is_utf_16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
            usage(format_args!("{origin}: {}", if is_utf_16 { "it is in UTF-16: save it as UTF-8" } else { "the key is not text" }))
        })?;
        Ok(Self { text: Zeroizing::new(text.trim().to_owned()), origin })
    }

    /// Returns where the key is from, and what is wrong with its form on every chain; `None` if nothing is.
    pub(crate) fn mistake(&self) -> Option<String> {
        mistake(&self.text).map(|mistake| format!("{}: {mistake}", self.origin))
    }

    /// Returns where the key is from: a path, a variable, stdin.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Parses the key for a family.
    ///
    /// # Errors
    ///
    /// A refusal at `/wallet/secret_key` if the text is not a key of the family. It names the place and the expected form.
    pub(crate) fn parse(&self, family: Family) -> Result<Key, Refusal> {
        Key::parse(family, &self.text).map_err(|refusal| self.explain(refusal.with_prefix("/wallet/secret_key"), family))
    }

    /// Adds the place of the key, and the form that keys of the family have, to the refusal of a text that is not one. Any other refusal
    /// stays as it is.
    pub(crate) fn explain(&self, refusal: Refusal, family: Family) -> Refusal {
        if refusal.code() != Code::KeyMalformed {
            return refusal;
        }
        let is_one = family == Family::Bitcoin || self.text.split_whitespace().nth(1).is_none();
        let several = if is_one { "" } else { ", without other words or lines" };
        let reason = self.mistake().unwrap_or_else(|| format!("{}: {}", self.origin, Code::KeyMalformed.meaning()));
        let form = countersign_json::key_form(family).unwrap_or_default();
        refusal.with_reason(reason).with_expected(format!("{form}{several}"))
    }
}

impl Deref for GivenKey {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// Returns a mistake in the form of a key that is one on every chain, or `None`. The messages are constant, so that none contains a part of
/// the key.
fn mistake(text: &str) -> Option<&'static str> {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '`' | '\u{2018}'..='\u{201f}');
    let name = text.strip_prefix("export ").unwrap_or(text).split_once('=').filter(|(_, rest)| !rest.is_empty() && !rest.starts_with('='));
    let is_name = |name: &str| name.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !name.trim().is_empty();
    let words = text.split_whitespace().count();
    let is_words = text.split_whitespace().all(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic()));
    Some(if text.is_empty() {
        "the key is empty"
    } else if text.starts_with('\u{feff}') {
        "it begins with a byte order mark (BOM): save it as UTF-8 without one"
    } else if text.starts_with("-----BEGIN") {
        "this is a PEM file: write the private key alone, as wallets export it"
    } else if text.starts_with('{') {
        "this is a JSON document, such as a keystore: write the private key alone"
    } else if text.starts_with("0X") {
        "the key begins with 0X: write 0x, or the digits alone"
    } else if name.is_some_and(|(name, _)| is_name(name)) {
        "there is a name with = in front of the key: write the key alone"
    } else if text.starts_with(is_quote) || text.ends_with(is_quote) {
        "the key is in quotes: write it without them"
    } else if is_words && matches!(words, 12 | 15 | 18 | 21 | 24) {
        "these are the words of a wallet, not a key: export the private key of the account"
    } else {
        return None;
    })
}

/// Where a key comes from.
#[derive(Args)]
#[group(required = false, multiple = false)]
pub(crate) struct KeyArgs {
    /// Reads the key from a file.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Reads the key from an environment variable.
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
    /// Reads the key from stdin.
    #[arg(long)]
    key_stdin: bool,
}

impl KeyArgs {
    /// Returns whether a key was given.
    pub(crate) const fn is_named(&self) -> bool {
        self.key_file.is_some() || self.key_env.is_some() || self.key_stdin
    }

    /// Reads the key; `None` if none was given.
    pub(crate) fn read(&self, session: &Session) -> Result<Option<GivenKey>, Failure> {
        if let Some(path) = &self.key_file {
            return key_from(path, session).map(Some);
        }
        let (bytes, origin) = if let Some(name) = &self.key_env {
            let value =
                std::env::var(name).map_err(|_| usage(format_args!("the environment variable {name} is not set, or is not text")))?;
            (Zeroizing::new(value.into_bytes()), format!("the environment variable {name}"))
        } else if self.key_stdin {
            (read(Path::new("-"))?, "stdin".to_owned())
        } else {
            return Ok(None);
        };
        GivenKey::new(&bytes, origin).map(Some)
    }
}

/// Reads the key of the configuration file for a chain; `None` if it has none. Only commands that always sign use it. Commands that print requests to
/// an external signer do not.
pub(crate) fn configured_key(chain: Option<&str>, session: &Session) -> Result<Option<GivenKey>, Failure> {
    Config::read()?.key_file(chain).map(|path| key_from(path, session)).transpose()
}

/// Signs what a key can sign of an order.
///
/// # Errors
///
/// The refusals of [`countersign_json::sign`], with the place of a key that is not one.
pub(crate) fn sign(order: &mut Unsigned, key: &GivenKey) -> Result<(), Refusal> {
    let family = order.family();
    countersign_json::sign(order, key).map_err(|refusal| key.explain(refusal, family))
}

/// Reads a key from a file. Warns if other users can read or change it.
pub(crate) fn key_from(path: &Path, session: &Session) -> Result<GivenKey, Failure> {
    GivenKey::new(&read_private(path, session)?, path.display().to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    fn given(text: &str) -> Result<GivenKey, Failure> {
        GivenKey::new(text.as_bytes(), "key.txt".to_owned())
    }

    #[test]
    fn what_is_no_key_on_any_chain_has_its_name() {
        let key = "4c".repeat(32);
        let phrase = format!("{}about", "abandon ".repeat(11));
        for (text, words) in [
            (String::new(), "empty"),
            (" \n".to_owned(), "empty"),
            (format!("\u{feff}{key}"), "byte order mark"),
            (format!("0X{key}"), "0X"),
            (format!("\"{key}\""), "quotes"),
            (format!("'{key}'\n"), "quotes"),
            (format!("KEY={key}"), "name"),
            (format!("export KEY=\"{key}\""), "name"),
            (format!("KEY = {key}"), "name"),
            (phrase.clone(), "words of a wallet"),
            (phrase.to_uppercase(), "words of a wallet"),
            (format!("{{\"crypto\": \"{key}\"}}"), "keystore"),
            (format!("-----BEGIN EC PRIVATE KEY-----\n{key}"), "PEM"),
        ] {
            let message = given(&text).ok().unwrap().mistake().unwrap_or_else(|| panic!("{text}"));
            assert!(message.starts_with("key.txt: ") && message.contains(words), "{text}: {message}");
            assert!(!message.contains(&key) && !message.contains("abandon"), "{message}");
        }
        let utf_16 = GivenKey::new(b"\xff\xfe4\0c\0", "key.txt".to_owned()).err().unwrap().message();
        assert!(utf_16.contains("UTF-16"), "{utf_16}");
        // The padding of base64 is no name.
        for text in [key.clone(), format!("0x{key}"), format!("{key}\r\n"), "AAECAw==".to_owned(), "AAECAwQ=".to_owned()] {
            let given = given(&text).ok().unwrap();
            assert_eq!((&*given, given.mistake()), (text.trim(), None));
        }
    }

    #[test]
    fn what_is_no_key_of_the_chain_has_its_place_and_the_expected_form() {
        let key = "4c".repeat(32);
        for family in Family::ALL.iter().copied() {
            let form = countersign_json::key_form(family).unwrap();
            let text = format!("{key}zz");
            let told = given(&text).ok().unwrap().parse(family).unwrap_err().finding().to_string();
            assert!(told.contains("key.txt: ") && told.contains(form) && !told.contains(&key), "{told}");
            // Only a Bitcoin-like chain has coins of several keys.
            let two = given(&format!("{key}\n{key}")).ok().unwrap().parse(family);
            match two {
                Ok(_) => assert!(family == Family::Bitcoin, "{family}"),
                Err(refusal) => assert!(refusal.to_string().contains("without other words or lines"), "{refusal}"),
            }
        }
    }
}
