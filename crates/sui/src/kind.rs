//! The bytes of the one kind of transaction that users send.
//!
//! [`TransactionKind`] gives the same bytes and the same errors. Its decoder also has all kinds of system transactions, which are a large
//! part of a WebAssembly module.

use serde::{Deserialize, Serialize};
use sui_sdk_types::{Address, GasPayment, ProgrammableTransaction, Transaction, TransactionExpiration, TransactionKind};

/// The first kind. BCS writes the index of a variant, and an error can contain the name of the type.
#[derive(Serialize, Deserialize)]
#[serde(rename = "TransactionKind")]
pub(crate) enum Kind<T> {
    /// A user's transaction: inputs and commands.
    ProgrammableTransaction(T),
}

/// Decodes a kind whose first byte is 0, and returns the transaction that it contains.
pub(crate) fn decode(bytes: &[u8]) -> bcs::Result<ProgrammableTransaction> {
    bcs::from_bytes(bytes).map(|Kind::ProgrammableTransaction(transaction)| transaction)
}

/// A transaction of version 1 with the first kind.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Transaction")]
enum TransactionData<T> {
    V1 { kind: Kind<T>, sender: Address, gas_payment: GasPayment, expiration: TransactionExpiration },
}

/// Decodes a transaction of version 1 with the first kind. BCS is canonical: no other bytes encode the same transaction.
pub(crate) fn decode_transaction(bytes: &[u8]) -> bcs::Result<Transaction> {
    bcs::from_bytes(bytes).map(transaction)
}

/// Decodes a transaction of version 1 with the first kind, followed by the bytes of its signatures.
pub(crate) fn decode_signed(bytes: &[u8]) -> bcs::Result<(Transaction, Vec<Vec<u8>>)> {
    bcs::from_bytes(bytes).map(|(data, signatures)| (transaction(data), signatures))
}

fn transaction(TransactionData::V1 { kind, sender, gas_payment, expiration }: TransactionData<ProgrammableTransaction>) -> Transaction {
    let Kind::ProgrammableTransaction(transaction) = kind;
    Transaction { kind: TransactionKind::ProgrammableTransaction(transaction), sender, gas_payment, expiration }
}

/// Encodes a transaction of version 1; `None` for any other kind than the first.
pub(crate) fn encode_transaction(transaction: &Transaction) -> Option<Vec<u8>> {
    let Transaction { kind: TransactionKind::ProgrammableTransaction(kind), sender, gas_payment, expiration } = transaction else {
        return None;
    };
    let (kind, gas_payment, expiration) = (Kind::ProgrammableTransaction(kind), gas_payment.clone(), expiration.clone());
    bcs::to_bytes(&TransactionData::V1 { kind, sender: *sender, gas_payment, expiration }).ok()
}

/// Returns where decoding of malformed bytes stops, which a BCS error does not contain: the least number of bytes for which the decoder
/// does not ask for more.
///
/// The decoder over a reader would tell, but it is a second decoder, and it allocates whatever length the bytes claim.
pub(crate) fn stop(bytes: &[u8]) -> usize {
    let (mut start, mut end) = (0, bytes.len());
    while start < end {
        let middle = start.midpoint(end);
        match bytes.get(..middle).map(decode) {
            Some(Err(bcs::Error::Eof)) => start = middle.saturating_add(1),
            _ => end = middle,
        }
    }
    start
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, reason = "a panic in a test is a failed test")]

    use proptest::prelude::*;
    use sui_sdk_types::{Argument, Command, Digest, Input, MoveCall, ObjectReference, TransferObjects, TypeTag};

    use super::*;

    fn sample() -> ProgrammableTransaction {
        let call = MoveCall {
            package: Address::new([7; 32]),
            module: "m".parse().expect("a name"),
            function: "f".parse().expect("a name"),
            type_arguments: vec![TypeTag::Vector(Box::new(TypeTag::U8)), "0x2::sui::SUI".parse().expect("a type")],
            arguments: vec![Argument::Gas, Argument::Input(0)],
        };
        let transfer = TransferObjects { objects: vec![Argument::Result(0)], address: Argument::Input(1) };
        let inputs = vec![Input::Pure(vec![1; 40]), Input::Pure(vec![2; 32])];
        ProgrammableTransaction { inputs, commands: vec![Command::MoveCall(call), Command::TransferObjects(transfer)] }
    }

    /// Returns where Mysten's own type stops, by the decoder over a reader.
    fn stop_of_reader(bytes: &[u8]) -> usize {
        let mut rest = bytes;
        let result = bcs::from_reader::<TransactionKind>(&mut rest);
        // The decoder has read one byte of the remaining input to detect it.
        bytes.len() - rest.len() - usize::from(matches!(result, Err(bcs::Error::RemainingInput)))
    }

    #[test]
    fn the_bytes_are_those_of_the_general_type() {
        let bytes = bcs::to_bytes(&TransactionKind::ProgrammableTransaction(sample())).expect("bytes");
        assert_eq!(bcs::to_bytes(&Kind::ProgrammableTransaction(&sample())).expect("bytes"), bytes);
        assert_eq!(decode(&bytes), Ok(sample()));
    }

    #[test]
    fn transactions_have_the_bytes_of_the_general_type() {
        let coin = ObjectReference::new(Address::new([9; 32]), 4, Digest::new([8; 32]));
        let gas_payment = GasPayment { objects: vec![coin], owner: Address::new([3; 32]), price: 750, budget: 5_000_000 };
        let during = TransactionExpiration::ValidDuring {
            min_epoch: Some(1),
            max_epoch: Some(1),
            min_timestamp: None,
            max_timestamp: None,
            chain: Digest::new([1; 32]),
            nonce: 7,
        };
        for expiration in [TransactionExpiration::None, TransactionExpiration::Epoch(900), during] {
            let kind = TransactionKind::ProgrammableTransaction(sample());
            let transaction = Transaction { kind, sender: Address::new([2; 32]), gas_payment: gas_payment.clone(), expiration };
            let bytes = bcs::to_bytes(&transaction).expect("bytes");
            assert_eq!(encode_transaction(&transaction), Some(bytes.clone()));
            assert_eq!(decode_transaction(&bytes), Ok(transaction));
            assert!(decode_transaction(&[bytes.as_slice(), &[0]].concat()).is_err());
            assert!(decode_transaction(&bytes[..bytes.len() - 1]).is_err());
        }
        let other = TransactionKind::ProgrammableSystemTransaction(sample());
        let other = Transaction { kind: other, sender: Address::ZERO, gas_payment, expiration: TransactionExpiration::None };
        assert_eq!(encode_transaction(&other), None);
        assert!(decode_transaction(&bcs::to_bytes(&other).expect("bytes")).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_048, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn errors_and_where_they_stop_are_those_of_the_general_type(
            at in any::<prop::sample::Index>(),
            byte in prop_oneof![any::<u8>(), 0..16_u8],
            cut in prop::option::of(any::<prop::sample::Index>()),
            more in prop::collection::vec(any::<u8>(), 0..3),
        ) {
            let mut bytes = bcs::to_bytes(&Kind::ProgrammableTransaction(&sample())).expect("bytes");
            let at = 1 + at.index(bytes.len() - 1);
            bytes[at] = byte;
            if let Some(cut) = cut {
                bytes.truncate(1 + cut.index(bytes.len() - 1));
            }
            bytes.extend(more);
            match bcs::from_bytes(&bytes) {
                Ok(TransactionKind::ProgrammableTransaction(transaction)) => prop_assert_eq!(decode(&bytes), Ok(transaction)),
                Ok(_) => prop_assert!(false, "the first byte is 0"),
                Err(error) => {
                    prop_assert_eq!(decode(&bytes), Err(error));
                    prop_assert_eq!(stop(&bytes), stop_of_reader(&bytes));
                }
            }
        }
    }
}
