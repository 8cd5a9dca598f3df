//! Transactions as bytes. Solana's own types get their encoding from one release line of `wincode` each, 0.5 up to
//! solana-transaction 4.1 and 0.6 from 4.2 on; a crate that called it would shut its users out of the other line. So the
//! types are filled here, and [`write`] takes a message's bytes from its own `serialize`: whoever compares them with what
//! was read has Solana's word on it.

use solana_address::Address;
use solana_hash::Hash;
use solana_message::compiled_instruction::CompiledInstruction;
use solana_message::v0::{self, MessageAddressTableLookup};
use solana_message::{Message, MessageHeader, VersionedMessage};
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

/// Begins a message of version 0.
const VERSION_0: u8 = 0x80;

/// Reads a transaction with a legacy message or one of version 0, and nothing else. What follows it is not looked at:
/// [`write`] shows how long it was.
pub(crate) fn read(bytes: &[u8]) -> Option<VersionedTransaction> {
    let mut reader = Reader(bytes);
    let signatures = reader.list(|reader| reader.array().map(Signature::from))?;
    let versioned = match *reader.0.first()? {
        VERSION_0 => reader.byte().is_some(),
        // A first byte with its top bit set names a version, and no other is known here.
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

/// The bytes of a transaction as nodes take them; `None` for message version 1, whose signatures stand elsewhere, and for
/// more signatures than a count of one byte holds, more than a packet has room for.
pub(crate) fn write(transaction: &VersionedTransaction) -> Option<Vec<u8>> {
    if matches!(transaction.message, VersionedMessage::V1(_)) {
        return None;
    }
    let count = u8::try_from(transaction.signatures.len()).ok().filter(|count| count & 0x80 == 0)?;
    let mut bytes = vec![count];
    for signature in &transaction.signatures {
        bytes.extend_from_slice(signature.as_ref());
    }
    bytes.extend_from_slice(&transaction.message.serialize());
    Some(bytes)
}

/// What is left to be read.
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

    /// A compact-u16 in its shortest form: seven bits a byte, the lowest first, at most three bytes.
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

    /// A count and as many of something. Each takes a byte at least, so a count beyond the input ends before it costs memory.
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
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic in a test is a failed test")]
mod tests {
    use std::sync::LazyLock;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    /// The fixtures' transactions, which Solana's JavaScript library compiled. Those in base58 are there in base64 as well.
    static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let lines = include_str!("../../../fixtures/accept/solana.jsonl").lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .flat_map(|line: serde_json::Value| {
                ["versioned_tx", "versioned_tx_gasless"].map(|member| line["response"]["result"][member].as_str().map(str::to_owned))
            })
            .flatten()
            .filter_map(|text| STANDARD.decode(text).ok())
            .filter(|bytes| wincode::deserialize_exact::<VersionedTransaction>(bytes).is_ok())
            .collect()
    });

    fn agrees_with_solana(bytes: &[u8]) {
        let read = read(bytes);
        let own = wincode::deserialize::<VersionedTransaction>(bytes).ok();
        // Message version 1 is read by nobody here; how much was read of the bytes is in what they are written as.
        let own = own.filter(|own| !matches!(own.message, VersionedMessage::V1(_)));
        assert_eq!(read, own);
        if let Some(read) = read {
            assert_eq!(write(&read), wincode::serialize(&read).ok());
        }
    }

    #[test]
    fn reads_and_writes_what_solana_does() {
        for bytes in SAMPLES.iter() {
            assert_eq!(write(&read(bytes).unwrap()).unwrap(), *bytes);
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
            let mut bytes = sample.get(&SAMPLES).clone();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes.extend(tail);
            agrees_with_solana(&bytes);
        }

        #[test]
        fn counts_are_read_as_solana_reads_them(count: [u8; 3], keys in prop::collection::vec(any::<u8>(), 0..200)) {
            // No signatures, a header, then the count of keys.
            agrees_with_solana(&[&[0, 1, 0, 0], count.as_slice(), &keys].concat());
        }
    }
}
