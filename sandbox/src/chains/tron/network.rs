//! The parameters of each Tron chain.

use crate::chains::evm;

/// The parameters of a Tron chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever describes a chain of their own fills in every member")]
pub struct Network {
    /// The name in asset ids, for example `tron`.
    pub chain: String,
    /// The last four bytes of the first block's id.
    pub id: u32,
    /// The display name.
    pub name: String,
    /// Nominal milliseconds between blocks.
    pub interval: u64,
    /// The number of the block in which everything is deployed.
    pub start: u64,
    /// How many blocks the newest irreversible block is behind the newest one.
    pub solid: u64,
    /// The timelocks of a user's payment and of the solver's, in blocks.
    pub timelocks: (u64, u64),
}

impl Network {
    /// Returns a Tron chain by its name and id.
    #[must_use]
    pub fn new(chain: &str, id: u32) -> Self {
        let name = if chain == "tron" { "Tron".to_owned() } else { format!("Tron ({chain})") };
        Self { chain: chain.to_owned(), id, name, interval: 3_000, start: 88_000_000, solid: 19, timelocks: (28_800, 2_400) }
    }
}

/// The parameters that the virtual machine needs.
impl From<Network> for evm::Network {
    fn from(Network { chain, id, name, interval, start, solid, timelocks }: Network) -> Self {
        let (coin, tokens) = ("trx", vec![("usdt", 6)]);
        let known = Self::new("tron", id.into());
        Self { chain, name, interval, start, safe: solid, finalized: solid, timelocks, coin, tokens, ..known }
    }
}
