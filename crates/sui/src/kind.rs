//! The bytes of the one kind of transaction that users send.
//!
//! [`TransactionKind`](sui_sdk_types::TransactionKind) gives the same bytes and the same errors. Its decoder also has all kinds of
//! system transactions, which are a large part of a WebAssembly module.

use serde::{Deserialize, Serialize};
use sui_sdk_types::ProgrammableTransaction;

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
    #![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a panic in a test is a failed test")]

    use proptest::prelude::*;
    use sui_sdk_types::{Address, Argument, Command, Input, MoveCall, TransactionKind, TransferObjects, TypeTag};

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
