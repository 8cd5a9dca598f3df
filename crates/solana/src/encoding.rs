//! Transactions as bytes. The encoding of Solana's own types comes from `wincode` 0.5 up to solana-transaction 4.1, and from
//! `wincode` 0.6 in later versions. A crate that called one of them would exclude users of the other. Therefore this module reads
//! legacy and version 0 messages itself. Messages of version 1 come from Solana's own [`v1::deserialize`], which is the same in all these
//! versions. The bytes of a message come from Solana's own `serialize`, and comparing them with the input proves the reader.

use solana_address::Address;
use solana_hash::Hash;
use solana_message::compiled_instruction::CompiledInstruction;
use solana_message::v0::{self, MessageAddressTableLookup};
use solana_message::{Message, MessageHeader, VersionedMessage, v1};
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

/// The first byte of a message of version 0.
const VERSION_0: u8 = 0x80;
/// The first byte of a message of version 1, and of its transaction.
pub(crate) const VERSION_1: u8 = v1::V1_PREFIX;
/// The most bytes of a transaction with a legacy or version 0 message. It must fit into a packet: the IPv6 minimum MTU less the headers.
const MAX_BYTES: usize = 1_232;
/// The most bytes of a transaction with a message of version 1.
pub(crate) const MAX_BYTES_V1: usize = 4_096;
/// The most signatures, addresses and instructions of a message of version 1. Later versions of the SDK no longer check them.
const MAX_SIGNERS_V1: u8 = 12;
const MAX_KEYS_V1: usize = 64;
const MAX_INSTRUCTIONS_V1: usize = 64;

/// Returns the most bytes of a transaction with this first byte.
pub(crate) fn max_bytes(first: Option<&u8>) -> usize {
    if first == Some(&VERSION_1) { MAX_BYTES_V1 } else { MAX_BYTES }
}

/// Returns the limit of version 1 that a message exceeds; `None` if it is within all of them, or of another version.
pub(crate) fn exceeded(message: &VersionedMessage) -> Option<&'static str> {
    let VersionedMessage::V1(message) = message else { return None };
    if message.header.num_required_signatures > MAX_SIGNERS_V1 {
        return Some("a message of version 1 has at most 12 signers");
    }
    if message.account_keys.len() > MAX_KEYS_V1 {
        return Some("a message of version 1 has at most 64 keys");
    }
    (message.instructions.len() > MAX_INSTRUCTIONS_V1).then_some("a message of version 1 has at most 64 instructions")
}

/// Reads a transaction with a message of version 1: `81`, the message, then 64 bytes for each required signature, without a count.
fn read_v1(message: &[u8]) -> Option<VersionedTransaction> {
    let read = v1::deserialize(message).ok()?;
    let mut reader = Reader(message.get(read.size()..)?);
    let slots = 0..read.header.num_required_signatures;
    let signatures = slots.map(|_| reader.array().map(Signature::from)).collect::<Option<_>>()?;
    Some(VersionedTransaction { signatures, message: VersionedMessage::V1(read) })
}

/// Reads a transaction. Returns `None` if the bytes do not begin with one, or if its message is of a version other than 0 and 1. Bytes after
/// the transaction are ignored: writing the transaction again shows how long it was.
pub(crate) fn read(bytes: &[u8]) -> Option<VersionedTransaction> {
    if let [VERSION_1, message @ ..] = bytes {
        return read_v1(message);
    }
    let mut reader = Reader(bytes);
    let signatures = reader.list(|reader| reader.array().map(Signature::from))?;
    let versioned = match *reader.0.first()? {
        VERSION_0 => reader.byte().is_some(),
        // A first byte with its top bit set is a version. Version 1 does not begin with signatures, and no other version is known.
        0x81.. => return None,
        _ => false,
    };
    let [num_required_signatures, num_readonly_signed_accounts, num_readonly_unsigned_accounts] = reader.array()?;
    let header = MessageHeader { num_required_signatures, num_readonly_signed_accounts, num_readonly_unsigned_accounts };
    let account_keys = reader.list(|reader| reader.array().map(Address::from))?;
    let recent_blockhash = Hash::from(reader.array::<32>()?);
    let instructions = reader.list(|reader| {
        let [program_id_index] = reader.array()?;
        Some(CompiledInstruction { program_id_index, accounts: reader.bytes()?, data: reader.bytes()? })
    })?;
    let message = if versioned {
        let address_table_lookups = reader.list(|reader| {
            let account_key = Address::from(reader.array::<32>()?);
            Some(MessageAddressTableLookup { account_key, writable_indexes: reader.bytes()?, readonly_indexes: reader.bytes()? })
        })?;
        VersionedMessage::V0(v0::Message { header, account_keys, recent_blockhash, instructions, address_table_lookups })
    } else {
        VersionedMessage::Legacy(Message { header, account_keys, recent_blockhash, instructions })
    };
    Some(VersionedTransaction { signatures, message })
}

/// Returns the bytes of a transaction: the count of signatures, the signatures, then the message. In version 1 the message comes first,
/// and the signatures have no count.
pub(crate) fn write(signatures: &[Signature], message: &[u8]) -> Vec<u8> {
    let len = signatures.len().saturating_mul(64).saturating_add(message.len()).saturating_add(3);
    let mut bytes = Vec::with_capacity(len);
    let is_first = message.first() == Some(&VERSION_1);
    if is_first {
        bytes.extend_from_slice(message);
    } else {
        write_count(&mut bytes, signatures.len());
    }
    for signature in signatures {
        bytes.extend_from_slice(signature.as_ref());
    }
    if !is_first {
        bytes.extend_from_slice(message);
    }
    bytes
}

/// Reads exactly one transaction; `None` for anything else. The limits of its version are not checked, because a chain may raise them.
pub(crate) fn read_whole(bytes: &[u8]) -> Option<VersionedTransaction> {
    let transaction = read(bytes)?;
    (write(&transaction.signatures, &transaction.message.serialize()) == bytes).then_some(transaction)
}

/// Writes a compact-u16.
fn write_count(bytes: &mut Vec<u8>, count: usize) {
    let [low, ..] = count.to_le_bytes();
    match count >> 7 {
        0 => bytes.push(low),
        rest => {
            bytes.push(low | 0x80);
            write_count(bytes, rest);
        }
    }
}

/// A reader of the remaining bytes.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Reads a compact-u16, which must have its shortest form: seven bits per byte, the lowest first, at most three bytes.
    fn count(&mut self) -> Option<usize> {
        let mut count = 0;
        for shift in [0, 7, 14] {
            let byte = self.byte()?;
            count |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                let shortest = byte != 0 || shift == 0;
                return (shortest && count <= usize::from(u16::MAX)).then_some(count);
            }
        }
        None
    }

    /// Reads a count, then that many items. Each item has at least one byte, so a count beyond the input fails before it costs
    /// memory.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.count()?).map(|_| read(self)).collect()
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let count = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    /// The transactions of the fixtures, which Solana's JavaScript library compiled. Those in hex also exist in base64.
    fn samples() -> Vec<Vec<u8>> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/accept/solana.jsonl");
        let fixtures = std::fs::read_to_string(path).unwrap();
        let lines = fixtures.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .flat_map(|line: serde_json::Value| {
                ["versioned_tx", "versioned_tx_gasless"].map(|member| line["response"]["result"][member].as_str().map(str::to_owned))
            })
            .flatten()
            .filter_map(|text| STANDARD.decode(text).ok())
            .filter(|bytes| wincode::deserialize_exact::<VersionedTransaction>(bytes).is_ok())
            .collect()
    }

    /// The same with messages of version 1, as Solana's Rust library writes them.
    fn samples_v1() -> Vec<Vec<u8>> {
        let configs = [
            v1::TransactionConfig::empty(),
            v1::TransactionConfig::empty().with_compute_unit_limit(200_000).with_loaded_accounts_data_size_limit(65_536),
            v1::TransactionConfig::empty().with_priority_fee(5_000).with_compute_unit_limit(1).with_heap_size(65_536),
        ];
        let version_1 = |(bytes, config): (Vec<u8>, &v1::TransactionConfig)| {
            let VersionedTransaction { signatures, message } = read(&bytes).unwrap();
            let (header, keys) = (*message.header(), message.static_account_keys().to_vec());
            let message = v1::Message::new(header, *config, *message.recent_blockhash(), keys, message.instructions().to_vec());
            wincode::serialize(&VersionedTransaction { signatures, message: VersionedMessage::V1(message) }).unwrap()
        };
        samples().into_iter().zip(configs.iter().cycle()).map(version_1).collect()
    }

    fn agrees_with_solana(bytes: &[u8]) {
        let read = read(bytes);
        let own = wincode::deserialize::<VersionedTransaction>(bytes).ok();
        assert_eq!(read, own);
        if let Some(read) = read {
            assert_eq!(write(&read.signatures, &read.message.serialize()), wincode::serialize(&read).unwrap());
        }
    }

    #[test]
    fn reads_and_writes_what_solana_does() {
        for bytes in samples().into_iter().chain(samples_v1()) {
            let transaction = read(&bytes).unwrap();
            assert_eq!(write(&transaction.signatures, &transaction.message.serialize()), bytes);
            for len in 0..=bytes.len() {
                agrees_with_solana(&bytes[..len]);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
        #[test]
        fn changed_bytes_are_read_as_solana_reads_them(
            sample in any::<prop::sample::Index>(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            tail in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let samples = [samples(), samples_v1()].concat();
            let mut bytes = sample.get(&samples).clone();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes.extend(tail);
            agrees_with_solana(&bytes);
        }

        #[test]
        fn counts_are_read_as_they_are_written(count: u16) {
            let mut bytes = Vec::new();
            write_count(&mut bytes, usize::from(count));
            let mut reader = Reader(&bytes);
            prop_assert_eq!((reader.count(), reader.0.len()), (Some(usize::from(count)), 0));
        }

        #[test]
        fn counts_are_read_as_solana_reads_them(count: [u8; 3], keys in prop::collection::vec(any::<u8>(), 0..200)) {
            // No signatures, a header, then the count of keys.
            agrees_with_solana(&[&[0, 1, 0, 0], count.as_slice(), &keys].concat());
        }
    }
}
