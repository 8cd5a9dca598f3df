//! When a payment on the destination chain is final, and how much of its timelock must be left to redeem it
//! (`docs/spec/batch.md#finality`, `docs/spec/chains.md#finality`).

use std::fmt;

use countersign_chains::Family;
use countersign_chains::Network;
use countersign_chains::network::Coin;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::Chain;
use crate::evidence::ObservedAt;
use crate::json::Cursor;
use crate::report::{Code, Refusal};

/// What makes a block final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finality {
    /// At least this many blocks, the payment's own block included.
    Depth(u64),
    /// The chain's own mark `safe`: on EVM chains the tag, on others the weaker of the chain's marks.
    Safe,
    /// The chain's own mark for blocks that are never replaced: `finalized`, solidified, accepted on L1, in a checkpoint.
    Finalized,
}

/// When the solver's payment counts as made, and how much of its timelock must be left when the owner's secret is released.
///
/// `settle` and `margin` are in the unit of the chain's timelocks: blocks, slots, or milliseconds on Sui. Block times are not
/// used, because they change. What the chain itself has counted decides.
///
/// | chain | final | settle | margin |
/// |---|---|---|---|
/// | Bitcoin | 2 blocks deep | 2 | 6 |
/// | Litecoin | 6 blocks deep | 6 | 12 |
/// | Ethereum | `safe` | 64 | 50 |
/// | BNB | `finalized` | 32 | 1,200 |
/// | other EVM chains | `safe` | 300 | 300 |
/// | Tron | solidified | 20 | 300 |
/// | Starknet | accepted on L2 | 900 | 450 |
/// | Solana | `finalized` | 64 | 1,500 |
/// | Sui | in a checkpoint | 10,000 | 600,000 |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FinalityRule {
    /// What makes the block of the payment final.
    pub finality: Finality,
    /// How much of the timelock usually passes until the payment is final. With [`Finality::Safe`] on Starknet, this many blocks
    /// must also have passed since the payment.
    pub settle: u64,
    /// How much of the timelock the redemption needs to be mined. More than this must be left.
    pub margin: u64,
}

impl FinalityRule {
    /// Creates a rule.
    #[must_use]
    pub const fn new(finality: Finality, settle: u64, margin: u64) -> Self {
        Self { finality, settle, margin }
    }

    /// Returns the default rule of a chain.
    #[must_use]
    pub fn of(chain: &Chain) -> Self {
        let base = chain.record.chain.split_once('_').map_or(chain.record.chain.as_str(), |(base, _)| base);
        match (chain.family(), &chain.network) {
            (_, Network::Bitcoin(Coin::Litecoin, _)) => Self::new(Finality::Depth(6), 6, 12),
            (Family::Bitcoin, _) => Self::new(Finality::Depth(2), 2, 6),
            (Family::Tron, _) => Self::new(Finality::Finalized, 20, 300),
            (Family::Starknet, _) => Self::new(Finality::Safe, 900, 450),
            (Family::Solana, _) => Self::new(Finality::Finalized, 64, 1_500),
            (Family::Sui, _) => Self::new(Finality::Finalized, 10_000, 600_000),
            (_, _) => match base {
                "ethereum" => Self::new(Finality::Safe, 64, 50),
                "bnbchain" => Self::new(Finality::Finalized, 32, 1_200),
                _ => Self::new(Finality::Safe, 300, 300),
            },
        }
    }

    /// Returns the shortest timelock that leaves time to redeem once the payment is final.
    #[must_use]
    pub const fn min_timelock(&self) -> u64 {
        self.settle.saturating_add(self.margin)
    }

    /// Returns whether a state on a chain of this family is final by this rule. On Starknet a block that is only accepted on L2 can
    /// still be replaced, so a safe state must also have more than [`settle`](Self::settle) blocks of depth.
    #[must_use]
    pub fn is_reached(&self, family: Family, seen: &ObservedAt) -> bool {
        let has_settled = family != Family::Starknet || seen.is_finalized || seen.depth > self.settle;
        seen.depth > 0
            && match self.finality {
                Finality::Depth(blocks) => seen.depth >= blocks,
                Finality::Safe => seen.is_safe && has_settled,
                Finality::Finalized => seen.is_finalized,
            }
    }

    /// Reads `{"finality": "safe" | "finalized" | <blocks>, "settle": .., "margin": ..}`.
    pub(super) fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let fields = ["finality", "settle", "margin"];
        members.check_spelling(&fields)?;
        members.only(&fields)?;
        let finality = members.need("finality")?;
        let finality = match finality.text() {
            Ok("safe") => Finality::Safe,
            Ok("finalized") => Finality::Finalized,
            Ok(_) => return Err(finality.refuse(Code::WrongType).with_expected("safe, finalized or a number of blocks")),
            Err(_) => Finality::Depth(finality.integer()?.max(1)),
        };
        Ok(Self { finality, settle: members.need("settle")?.integer()?, margin: members.need("margin")?.integer()? })
    }
}

impl fmt::Display for Finality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth(1) => f.write_str("1 block deep"),
            Self::Depth(blocks) => write!(f, "{blocks} blocks deep"),
            Self::Safe => f.write_str("safe"),
            Self::Finalized => f.write_str("finalized"),
        }
    }
}

impl Serialize for Finality {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Depth(blocks) => serializer.serialize_u64(*blocks),
            Self::Safe => serializer.serialize_str("safe"),
            Self::Finalized => serializer.serialize_str("finalized"),
        }
    }
}

impl Serialize for FinalityRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("FinalityRule", 3)?;
        map.serialize_field("finality", &self.finality)?;
        map.serialize_field("settle", &self.settle)?;
        map.serialize_field("margin", &self.margin)?;
        map.end()
    }
}
