//! The families in the report: what each is compared with, and its aims.

mod bitcoin;
mod evm;
mod solana;
mod starknet;
mod sui;

use countersign::Family;

use crate::orders::peer::Sign;
use crate::orders::signature::{self, Sample};
use crate::rows::{ADDRESS, DERIVED_ACCOUNTS, ED25519, K256, PREPARED, STARK, STARK_HASHES, TWEAK};

/// A family in the report.
pub struct Compared {
    /// The family.
    pub family: Family,
    /// The SDK that wallets use in JavaScript.
    pub javascript: &'static str,
    /// How many times faster than that SDK `batch` should be.
    pub aim: f64,
    /// The SDK that wallets use in Rust, and how it signs an order.
    pub(crate) rust: Option<(&'static str, Sign)>,
    /// A single signature.
    pub(crate) signature: fn() -> Sample,
    /// The groups of criterion's results.
    pub groups: &'static [Group],
}

/// A group of criterion's results, with the aim for one of its rows.
pub struct Group {
    /// The name.
    pub name: &'static str,
    /// The row that the ratios refer to.
    pub baseline: &'static str,
    /// The row with the aim.
    pub step: &'static str,
    /// A row to subtract from it.
    pub less: Option<&'static str>,
    /// The row to compare it with.
    pub of: &'static str,
    /// The maximum, in percent of that row.
    pub aim: f64,
}

impl Group {
    /// Creates a group whose aim is for parsing, verifying and preparing.
    const fn new(name: &'static str, baseline: &'static str, aim: f64) -> Self {
        Self { name, baseline, step: PREPARED, less: None, of: baseline, aim }
    }
}

impl Compared {
    /// Returns the name of the Rust SDK.
    pub fn rust(&self) -> Option<&'static str> {
        self.rust.map(|(name, _)| name)
    }
}

/// All families, in the order of the tables.
pub static ALL: [Compared; 6] = [
    Compared {
        family: Family::Evm,
        javascript: "ethers",
        aim: 9.0,
        rust: Some(("alloy", evm::sign)),
        signature: signature::secp256k1,
        groups: &[Group::new("evm", K256, 25.0)],
    },
    Compared {
        family: Family::Tron,
        javascript: "TronWeb",
        aim: 9.0,
        // Every crate is a client of a node and cannot build transactions itself.
        rust: None,
        signature: signature::secp256k1,
        groups: &[Group::new("tron", K256, 25.0)],
    },
    Compared {
        family: Family::Starknet,
        javascript: "starknet.js",
        aim: 30.0,
        rust: Some(("starknet-rs", starknet::sign)),
        signature: signature::stark,
        groups: &[Group { of: STARK_HASHES, ..Group::new("starknet", STARK, 110.0) }],
    },
    Compared {
        family: Family::Solana,
        javascript: "@solana/web3.js",
        aim: 8.0,
        rust: Some(("solana-sdk", solana::sign)),
        signature: signature::ed25519,
        groups: &[
            Group { less: Some(DERIVED_ACCOUNTS), ..Group::new("solana native", ED25519, 25.0) },
            Group { less: Some(DERIVED_ACCOUNTS), ..Group::new("solana gasless", ED25519, 25.0) },
        ],
    },
    Compared {
        family: Family::Sui,
        javascript: "@mysten/sui",
        aim: 15.0,
        rust: Some(("sui-sdk-types", sui::sign)),
        signature: signature::ed25519,
        groups: &[Group::new("sui", ED25519, 40.0)],
    },
    Compared {
        family: Family::Bitcoin,
        javascript: "bitcoinjs-lib",
        aim: 15.0,
        rust: Some(("rust-bitcoin", bitcoin::sign)),
        signature: signature::secp256k1,
        groups: &[Group { step: ADDRESS, ..Group::new("bitcoin", TWEAK, 110.0) }],
    },
];

/// Returns a family in the report.
///
/// # Panics
///
/// Panics if the report has no such family.
pub fn of(family: Family) -> &'static Compared {
    ALL.iter().find(|one| one.family == family).unwrap_or_else(|| panic!("no benches of {}", family.name()))
}
