//! What is known about the coins of Bitcoin-like chains (`docs/spec/chains.md#coins`).

use crate::Coin;

/// What is known about the coin of a Bitcoin-like chain and of its test networks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoinProfile {
    /// The symbol, such as `BTC`.
    pub symbol: &'static str,
    /// The number of base units that will ever exist.
    pub supply: u64,
    /// The dust relay rate, as a multiple of Bitcoin's 3 sat/vB.
    pub dust_factor: u64,
    /// The lowest fee rate, in base units per virtual byte, that every node relays by default. Newer nodes of Bitcoin relay a tenth of it,
    /// but not all of them are new.
    pub min_fee_rate: u64,
    /// The most blocks that the newest block of an endpoint may go back.
    pub max_reorganization: u64,
    /// The depth that an output paid from the extension block must have before it counts. `None` if the chain has no extension blocks.
    pub extension_depth: Option<u64>,
    /// Within how many blocks a transaction is to be mined.
    pub fee_targets: FeeTargets,
}

/// Within how many blocks a transaction is to be mined, by how urgent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "one number for each speed")]
pub struct FeeTargets {
    /// A slow transaction.
    pub slow: u16,
    /// A normal transaction.
    pub normal: u16,
    /// A fast transaction.
    pub fast: u16,
}

const BITCOIN: CoinProfile = CoinProfile {
    symbol: "BTC",
    supply: 2_100_000_000_000_000,
    dust_factor: 1,
    min_fee_rate: 1,
    max_reorganization: 3,
    extension_depth: None,
    fee_targets: FeeTargets { slow: 6, normal: 3, fast: 1 },
};

/// When invalid extension blocks were found, miners abandoned 13 blocks.
const LITECOIN: CoinProfile = CoinProfile {
    symbol: "LTC",
    supply: 8_400_000_000_000_000,
    dust_factor: 10,
    min_fee_rate: 1,
    max_reorganization: 15,
    extension_depth: Some(24),
    fee_targets: FeeTargets { slow: 24, normal: 6, fast: 2 },
};

/// A fee rate, in base units per virtual byte, that redemptions have had to pay for days at a time.
pub const BUSY_FEE_RATE: u64 = 20;
/// The virtual size of a redemption that pays to a segwit address of version 0.
pub const REDEMPTION_VBYTES: u64 = 142;
/// The smallest value of a taproot output that nodes of Bitcoin relay.
const TAPROOT_DUST: u64 = 330;

impl CoinProfile {
    /// Returns the smallest value of an HTLC's output that nodes relay.
    #[must_use]
    pub const fn htlc_dust(&self) -> u64 {
        TAPROOT_DUST.saturating_mul(self.dust_factor)
    }

    /// Returns about what a redemption costs at [`BUSY_FEE_RATE`].
    #[must_use]
    pub const fn busy_redemption_fee(&self) -> u64 {
        REDEMPTION_VBYTES.saturating_mul(BUSY_FEE_RATE)
    }
}

impl Coin {
    /// Every coin.
    pub const ALL: [Self; 2] = [Self::Bitcoin, Self::Litecoin];

    /// Returns the coin's profile.
    #[must_use]
    pub const fn profile(self) -> &'static CoinProfile {
        match self {
            Self::Bitcoin => &BITCOIN,
            Self::Litecoin => &LITECOIN,
        }
    }
}
