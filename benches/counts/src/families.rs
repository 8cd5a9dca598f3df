//! The families that are counted. What is in the floor of an order:
//!
//! | family | what is in the floor |
//! |---|---|
//! | all | the hash of each address with a checksum; the hash or taproot output behind each id in the record |
//! | EVM, Tron | the key's account; hash, signature and id of each transaction; struct hash, digest and signature of the message |
//! | Starknet | the Poseidon hashes of calldata, fees, transaction and message; nonce and signature of each |
//! | Solana | the key's account; the order's own accounts; the signatures of others; a signature of each message |
//! | Sui | the key's account; signing digest, transaction digest, signature |
//! | Bitcoin | the key's account; sighash and signature of each coin; the transaction's id |

mod bitcoin;
mod evm;
mod solana;
mod starknet;
mod sui;

use countersign::Family;
use serde_json::Value;

use crate::floor::{Work, sha256};
use crate::steps::{self, Step};

/// A family that is counted.
pub(crate) struct Counted {
    pub(crate) family: Family,
    /// Its fixtures, one on each line.
    pub(crate) lines: &'static str,
    /// The rows of its steps, for the most complete responses. The cases are those of the benches.
    pub(crate) steps: &'static [Step],
    /// Returns the floor of an order, without what all families share.
    pub(crate) floor: fn(&Value) -> Vec<Work>,
    /// Returns what makes an id of a swap on the family's chains, for a secret hash. Each formula hashes a fixed number of
    /// bytes or felts. Their values do not matter.
    pub(crate) swap_id: fn([u8; 32]) -> Work,
    /// The aim for a whole order, as a multiple of its floor.
    pub(crate) aim: f64,
}

macro_rules! fixtures {
    ($family:literal) => {
        include_str!(concat!("../../../fixtures/accept/", $family, ".jsonl"))
    };
}

/// All families, in the order of the floor's table.
pub(crate) static ALL: [Counted; 6] = [
    Counted {
        family: Family::Evm,
        lines: fixtures!("evm"),
        steps: &[Step { row: "evm", case: "evm-token-approval-unlimited", take: steps::take::<countersign::evm::Evm> }],
        floor: evm::evm,
        swap_id: |_| sha256(vec![1; 224]),
        aim: 1.15,
    },
    Counted {
        family: Family::Tron,
        lines: fixtures!("tron"),
        steps: &[Step { row: "tron", case: "tron-token-approval-unlimited", take: steps::take::<countersign::tron::Tron> }],
        floor: evm::tron,
        swap_id: |_| sha256(vec![1; 224]),
        aim: 1.15,
    },
    Counted {
        family: Family::Starknet,
        lines: fixtures!("starknet"),
        steps: &[Step { row: "starknet", case: "starknet-approval-unlimited", take: steps::take::<countersign::starknet::Starknet> }],
        floor: starknet::floor,
        swap_id: |_| starknet::poseidon(vec![countersign::starknet::Felt::ONE; 15]),
        aim: 1.12,
    },
    Counted {
        family: Family::Solana,
        lines: fixtures!("solana"),
        steps: &[
            Step { row: "solana native", case: "solana-native-legacy", take: steps::take::<countersign::solana::Solana> },
            Step { row: "solana gasless", case: "solana-token-legacy", take: steps::take::<countersign::solana::Solana> },
        ],
        floor: solana::floor,
        swap_id: |_| sha256(vec![1; 96]),
        aim: 1.25,
    },
    Counted {
        family: Family::Sui,
        lines: fixtures!("sui"),
        steps: &[Step { row: "sui", case: "sui-native", take: steps::take::<countersign::sui::Sui> }],
        floor: sui::floor,
        swap_id: |_| sha256(vec![1; 200]),
        aim: 1.3,
    },
    Counted {
        family: Family::Bitcoin,
        lines: fixtures!("bitcoin"),
        steps: &[Step { row: "bitcoin", case: "bitcoin-coins-without-record", take: steps::take::<countersign::bitcoin::Bitcoin> }],
        floor: bitcoin::floor,
        swap_id: bitcoin::taproot,
        aim: 1.35,
    },
];

/// Returns a family that is counted.
///
/// # Panics
///
/// Panics if it is not.
pub(crate) fn of(family: Family) -> &'static Counted {
    ALL.iter().find(|one| one.family == family).unwrap_or_else(|| panic!("no counts of {}", family.name()))
}
