//! The encrypted container around the archive. The [parent module](super) documents its layout.

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use zeroize::Zeroizing;

use super::BackupError;
use super::archive::take;
use crate::error::Error;

/// The largest backup, in bytes.
pub const MAX_BACKUP: usize = 256 << 20;
/// The minimum length of a new backup's password, in bytes. A longer one is better, because anybody who has the file can try any number
/// of passwords.
pub const MIN_PASSWORD: usize = 8;

const MAGIC: [u8; 8] = *b"CSBACKUP";
const FORMAT: u16 = 1;
const HEADER: usize = 62;
const TAG: usize = 16;
/// The largest archive that fits into a backup, in bytes.
pub(super) const MAX_ARCHIVE: usize = MAX_BACKUP - HEADER - TAG;
const MAX_COST: Cost = Cost { memory: 1 << 20, passes: 16, lanes: 16 };

/// The parameters of Argon2id, which determine the cost of trying one password.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Memory in KiB.
    pub memory: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Number of lanes.
    pub lanes: u32,
}

impl Default for Cost {
    /// Returns the second recommended option of RFC 9106, section 4.
    fn default() -> Self {
        Self { memory: 64 << 10, passes: 3, lanes: 4 }
    }
}

impl Cost {
    /// Returns the parameters for Argon2 if they are within bounds. Larger ones would exhaust the memory or time of whoever opens the file.
    fn params(self) -> Result<Params, BackupError> {
        let bounded = self.memory <= MAX_COST.memory && self.passes <= MAX_COST.passes && self.lanes <= MAX_COST.lanes;
        let params = Params::new(self.memory, self.passes, self.lanes, Some(32)).ok().filter(|_| bounded);
        params.ok_or(BackupError::Cost { memory: self.memory, passes: self.passes, lanes: self.lanes })
    }
}

struct Header {
    cost: Cost,
    salt: [u8; 16],
    nonce: [u8; 24],
}

impl Header {
    fn to_bytes(&self) -> Vec<u8> {
        let Cost { memory, passes, lanes } = self.cost;
        let numbers = [memory.to_be_bytes(), passes.to_be_bytes(), lanes.to_be_bytes()].concat();
        [MAGIC.as_slice(), &FORMAT.to_be_bytes(), &numbers, &self.salt, &self.nonce].concat()
    }

    fn parse(bytes: &[u8]) -> Result<Self, BackupError> {
        let mut rest = bytes;
        if part(&mut rest)? != MAGIC {
            return Err(BackupError::NotABackup);
        }
        match u16::from_be_bytes(part(&mut rest)?) {
            FORMAT => {}
            0 => return Err(BackupError::NotABackup),
            actual => return Err(BackupError::NewerVersion { actual: actual.into(), max: FORMAT.into() }),
        }
        let mut number = || part(&mut rest).map(u32::from_be_bytes);
        let cost = Cost { memory: number()?, passes: number()?, lanes: number()? };
        Ok(Self { cost, salt: part(&mut rest)?, nonce: part(&mut rest)? })
    }

    fn cipher(&self, password: &str) -> Result<XChaCha20Poly1305, BackupError> {
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, self.cost.params()?);
        let mut key = Zeroizing::new([0; 32]);
        // The lengths of password, salt and key are within Argon2's bounds, so the only possible failure is a lack of memory.
        argon2.hash_password_into(password.as_bytes(), &self.salt, key.as_mut_slice()).map_err(|_| BackupError::OutOfMemory)?;
        Ok(XChaCha20Poly1305::new((&*key).into()))
    }
}

fn part<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], BackupError> {
    take(bytes).ok_or(BackupError::NotABackup)
}

/// Checks the password and the cost of a new backup before anything is read.
pub(super) fn check_new(password: &str, cost: Cost) -> Result<(), BackupError> {
    if password.len() < MIN_PASSWORD {
        return Err(BackupError::PasswordTooShort);
    }
    cost.params().map(|_| ())
}

/// Encrypts an archive.
pub(super) fn seal(archive: &[u8], password: &str, cost: Cost) -> Result<Vec<u8>, BackupError> {
    let mut header = Header { cost, salt: [0; 16], nonce: [0; 24] };
    getrandom::fill(&mut header.salt).and_then(|()| getrandom::fill(&mut header.nonce)).map_err(Error::Random)?;
    let mut bytes = header.to_bytes();
    let payload = Payload { msg: archive, aad: &bytes };
    let sealed = header.cipher(password)?.encrypt(&header.nonce.into(), payload).map_err(|_| BackupError::TooLarge)?;
    bytes.extend_from_slice(&sealed);
    Ok(bytes)
}

/// Decrypts an archive.
pub(super) fn open(bytes: &[u8], password: &str) -> Result<Zeroizing<Vec<u8>>, BackupError> {
    let header = Header::parse(bytes)?;
    let (aad, msg) = bytes.split_at_checked(HEADER).filter(|(_, sealed)| sealed.len() >= TAG).ok_or(BackupError::NotABackup)?;
    if bytes.len() > MAX_BACKUP {
        return Err(BackupError::TooLarge);
    }
    let archive = header.cipher(password)?.decrypt(&header.nonce.into(), Payload { msg, aad });
    archive.map(Zeroizing::new).map_err(|_| BackupError::WrongPasswordOrDamaged)
}
