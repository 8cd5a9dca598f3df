//! PSBTs of version 2 (BIP-370), which newer signers write. They are converted to version 0, which states the same in one transaction.

use std::collections::BTreeMap;

use bitcoin::absolute::LockTime;
use bitcoin::consensus::encode::{self, Decodable, VarInt};
use bitcoin::psbt::Psbt;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness};

/// How the bytes of a PSBT begin.
pub(crate) const MAGIC: &[u8] = b"psbt\xff";
/// The key of a PSBT's version.
const VERSION: u8 = 0xfb;
/// Lock times below are heights, others are times (BIP-65).
const FIRST_TIME: u32 = 500_000_000;

/// Reads a PSBT of version 0 or 2.
///
/// # Errors
///
/// The reason why it cannot be read.
pub(super) fn read(bytes: &[u8]) -> Result<Psbt, String> {
    let mut rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as a PSBT does")?;
    let mut global = Map::read(&mut rest)?;
    let is_version_2 = match global.take(VERSION) {
        None => false,
        Some(version) => match number(&version)? {
            0 => false,
            2 => true,
            other => return Err(format!("it has version {other}: ask the signer for version 0")),
        },
    };
    let converted;
    let bytes = if is_version_2 {
        converted = to_version_0(global, rest).map_err(|why| format!("{why} (version 2: ask the signer for version 0)"))?;
        &converted
    } else {
        bytes
    };
    Psbt::deserialize(bytes).map_err(|error| error.to_string())
}

/// One map of a PSBT. A key is its type and, for some types, more bytes.
struct Map(BTreeMap<Vec<u8>, Vec<u8>>);

impl Map {
    fn read(rest: &mut &[u8]) -> Result<Self, String> {
        let mut pairs = BTreeMap::new();
        loop {
            let key: Vec<u8> = decode(rest)?;
            if key.is_empty() {
                return Ok(Self(pairs));
            }
            if pairs.insert(key, decode(rest)?).is_some() {
                return Err("a key is there twice".to_owned());
            }
        }
    }

    /// Removes the value of a type without further key bytes.
    fn take(&mut self, kind: u8) -> Option<Vec<u8>> {
        self.0.remove([kind].as_slice())
    }

    fn need(&mut self, kind: u8, what: &str) -> Result<Vec<u8>, String> {
        self.take(kind).ok_or_else(|| format!("{what} is missing"))
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        for (key, value) in &self.0 {
            bytes.extend(encode::serialize(key));
            bytes.extend(encode::serialize(value));
        }
        bytes.push(0);
    }
}

fn decode<T: Decodable>(rest: &mut &[u8]) -> Result<T, String> {
    T::consensus_decode(rest).map_err(|error| error.to_string())
}

fn whole<T: Decodable>(bytes: &[u8]) -> Result<T, String> {
    encode::deserialize(bytes).map_err(|error| error.to_string())
}

fn number(bytes: &[u8]) -> Result<u32, String> {
    whole(bytes)
}

/// Moves the parts of the transaction out of the maps, and puts it in front of what is left of them.
fn to_version_0(mut global: Map, mut rest: &[u8]) -> Result<Vec<u8>, String> {
    let mut count = |kind, what| global.need(kind, what).and_then(|bytes| Ok(whole::<VarInt>(&bytes)?.0));
    let (inputs, outputs) = (count(0x04, "the number of inputs")?, count(0x05, "the number of outputs")?);
    let version = Version(whole(&global.need(0x02, "the version of the transaction")?)?);
    let fallback = global.take(0x03).map_or(Ok(0), |bytes| number(&bytes))?;
    // What others may still change says nothing about what is signed.
    global.take(0x06);
    let (mut maps, mut locks) = (Vec::new(), Vec::new());
    let mut transaction = Transaction { version, lock_time: LockTime::ZERO, input: Vec::new(), output: Vec::new() };
    // Every map takes at least one byte, so the counts need no bound of their own.
    for _ in 0..inputs {
        let mut map = Map::read(&mut rest)?;
        let txid = whole(&map.need(0x0e, "the transaction id of an input")?)?;
        let vout = number(&map.need(0x0f, "the index of an input's output")?)?;
        let sequence = map.take(0x10).map_or(Ok(u32::MAX), |bytes| number(&bytes))?;
        let mut lock = |kind| map.take(kind).map(|bytes| number(&bytes)).transpose();
        locks.push(Lock { height: lock(0x12)?, time: lock(0x11)? });
        let previous_output = OutPoint { txid, vout };
        let input = TxIn { previous_output, script_sig: ScriptBuf::new(), sequence: Sequence(sequence), witness: Witness::new() };
        transaction.input.push(input);
        maps.push(map);
    }
    for _ in 0..outputs {
        let mut map = Map::read(&mut rest)?;
        let value = Amount::from_sat(whole(&map.need(0x03, "the amount of an output")?)?);
        let script_pubkey = ScriptBuf::from_bytes(map.need(0x04, "the script of an output")?);
        transaction.output.push(TxOut { value, script_pubkey });
        maps.push(map);
    }
    if !rest.is_empty() {
        return Err("more bytes follow".to_owned());
    }
    transaction.lock_time = LockTime::from_consensus(lock_time(&locks, fallback)?);
    if global.0.insert(vec![0], encode::serialize(&transaction)).is_some() {
        return Err("it has an unsigned transaction too".to_owned());
    }
    let mut bytes = MAGIC.to_vec();
    global.write(&mut bytes);
    maps.iter().for_each(|map| map.write(&mut bytes));
    Ok(bytes)
}

/// The lock times that an input requires.
struct Lock {
    height: Option<u32>,
    time: Option<u32>,
}

/// Returns the lock time that the inputs require: the latest height, or the latest time if not every input that requires anything gives a
/// height. Without such an input it is the fallback.
fn lock_time(locks: &[Lock], fallback: u32) -> Result<u32, String> {
    let required: Vec<_> = locks.iter().filter(|lock| lock.height.is_some() || lock.time.is_some()).collect();
    if required.is_empty() {
        return Ok(fallback);
    }
    let heights: Option<Vec<_>> = required.iter().map(|lock| lock.height).collect();
    let times: Option<Vec<_>> = required.iter().map(|lock| lock.time).collect();
    let latest = |all: Option<Vec<u32>>| all.and_then(|all| all.into_iter().max());
    let height = latest(heights).filter(|height| (1..FIRST_TIME).contains(height));
    let time = latest(times).filter(|time| *time >= FIRST_TIME);
    height.or(time).ok_or_else(|| "no lock time fits all inputs".to_owned())
}
