//! Swap ids recomputed from a record's own fields, by the formula of each chain.
//!
//! On EVM chains the record's version names the formula. A pinned generation restricts it:
//!
//! | pinned | formula | why |
//! |---|---|---|
//! | nothing | that of the version | as the service's own records show it |
//! | `v3` | that of version 3 | the contract itself makes the id, so a record of another version contradicts the pin |
//! | `old`, token | that of version 1 or 2; also that of the contract's public source of 2024 | records of both versions recompute; the source is of the same generation, and says so itself |
//! | `old`, native | not known | no source is public, and no record shows an id of this contract |

use countersign_chains::swap_id::{self, SwapIdInput, Version};
use countersign_chains::taproot::Htlc;
use countersign_chains::{Account, Family, Network};

use super::record::Parties;
use crate::report::{Code, Refusal};
use crate::trust::{Asset, EvmGeneration, Generation, SolanaGeneration};
use crate::wire::SwapRecord;

/// A swap id as the formula gives it.
pub(super) struct Recomputed {
    /// The id; `None` where the fields give none.
    pub(super) id: Option<String>,
    /// The id by a second formula of the same generation, which only the contract's source shows.
    by_source: Option<String>,
    /// Whether the formula is known to be the chain's own. Where it is not, another id is only a warning.
    pub(super) is_certain: bool,
    family: Family,
}

impl Recomputed {
    /// Returns whether this is the id that a record has, whatever spelling it uses.
    pub(super) fn equals(&self, recorded: &str) -> bool {
        [&self.id, &self.by_source].into_iter().flatten().any(|id| match self.family {
            // A Starknet id is a felt: leading zeros mean nothing.
            Family::Starknet => id.trim_start_matches('0').eq_ignore_ascii_case(recorded.trim_start_matches('0')),
            // Bech32 is all lower or all upper case.
            Family::Bitcoin => {
                id == recorded || (id.eq_ignore_ascii_case(recorded) && !recorded.bytes().any(|byte| byte.is_ascii_lowercase()))
            }
            _ => id.eq_ignore_ascii_case(recorded),
        })
    }
}

/// Returns the pinned generation of an EVM contract.
const fn evm_generation(asset: &Asset) -> Option<EvmGeneration> {
    match asset.generation {
        Some(Generation::Evm(generation)) => Some(generation),
        _ => None,
    }
}

/// Requires that the version of a record is one of the pinned generation of an EVM contract.
///
/// # Errors
///
/// [`Code::GenerationMismatch`] at `location`.
pub(super) fn check_version(asset: &Asset, version: Version, location: &str) -> Result<(), Refusal> {
    let Some(pinned) = evm_generation(asset) else { return Ok(()) };
    let actual = if version >= Version::V3 { EvmGeneration::V3 } else { EvmGeneration::Old };
    if actual == pinned {
        return Ok(());
    }
    let refusal = Refusal::new(Code::GenerationMismatch, location).with_expected(pinned.name()).with_actual(actual.name());
    Err(refusal.with_reason("the version of the order names the formula of another generation"))
}

/// Recomputes the id of a swap record on its asset's chain.
pub(super) fn recompute(asset: &Asset, version: Version, parties: &Parties, record: &SwapRecord) -> Recomputed {
    let swap = SwapIdInput {
        secret_hash: &record.secret_hash.0,
        initiator: parties.initiator.bytes(),
        redeemer: parties.redeemer.bytes(),
        timelock: record.timelock,
        amount: record.amount,
    };
    let htlc = asset.htlc.as_ref().map(Account::bytes).unwrap_or_default();
    let is_old = evm_generation(asset) == Some(EvmGeneration::Old);
    let by_source = (is_old && asset.token.is_some()).then(|| hex::encode(swap_id::evm_2024(swap.secret_hash, swap.initiator)));
    let (id, is_certain) = match &asset.chain.network {
        Network::Evm(_) if is_old && asset.token.is_none() => (None, false),
        Network::Evm(chain) => (Some(hex::encode(swap_id::evm(version, *chain, &swap, htlc))), true),
        Network::Tron(chain) => (Some(hex::encode(swap_id::evm(version, *chain, &swap, htlc))), false),
        Network::Starknet(chain) => (swap_id::starknet(chain, &swap).map(hex::encode), true),
        // The formula is that of the client generation. The audited one's is not known.
        Network::Solana(_) if asset.generation == Some(Generation::Solana(SolanaGeneration::November2025)) => (None, false),
        Network::Solana(cluster) => match swap_id::solana_chain_id(cluster) {
            Some((chain, certain)) => (Some(hex::encode(swap_id::solana(chain, swap.secret_hash, swap.initiator))), certain),
            None => (None, false),
        },
        Network::Sui(_) => {
            let registry = asset.htlc_registry.as_ref().map(Account::bytes);
            (registry.and_then(|registry| swap_id::sui(&swap, registry)).map(hex::encode), asset.chain.test)
        }
        Network::Bitcoin(coin, net) => (taproot(asset, parties, record).and_then(|htlc| htlc.address(*coin, *net)), true),
        _ => (None, false),
    };
    Recomputed { id, by_source, is_certain, family: asset.chain.family() }
}

/// Returns the HTLC of a Bitcoin-like swap record; `None` where its fields cannot make one.
fn taproot(asset: &Asset, parties: &Parties, record: &SwapRecord) -> Option<Htlc> {
    Some(Htlc {
        internal_key: asset.htlc.as_ref()?.array()?,
        initiator: parties.initiator.array()?,
        redeemer: parties.redeemer.array()?,
        secret_hash: record.secret_hash.0,
        timelock: u16::try_from(record.timelock).ok()?,
    })
}
