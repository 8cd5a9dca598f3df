//! Swap ids recomputed from a record's own fields, by the formula of each chain.

use countersign_chains::swap_id::{self, StarknetFormula, SwapIdInput, Version};
use countersign_chains::taproot::Htlc;
use countersign_chains::{Account, Family, Network};

use super::record::Parties;
use crate::trust::{Asset, Generation, SolanaGeneration, StarknetGeneration};
use crate::wire::SwapRecord;

/// A swap id as the formula gives it.
pub(super) struct Recomputed {
    /// The id; `None` where the fields give none.
    pub(super) id: Option<String>,
    /// Whether the formula is known to be the chain's own. Where it is not, another id is only a warning.
    pub(super) is_certain: bool,
    family: Family,
}

impl Recomputed {
    /// Returns whether this is the id that a record has, whatever spelling it uses.
    pub(super) fn equals(&self, recorded: &str) -> bool {
        let Some(id) = &self.id else { return false };
        match self.family {
            Family::Starknet => is_same_felt(id, recorded),
            // Bech32 is all lower or all upper case.
            Family::Bitcoin => {
                id == recorded || (id.eq_ignore_ascii_case(recorded) && !recorded.bytes().any(|byte| byte.is_ascii_lowercase()))
            }
            _ => id.eq_ignore_ascii_case(recorded),
        }
    }
}

/// Recomputes the id of a swap record on its asset's chain.
pub(super) fn recompute(asset: &Asset, version: Version, parties: &Parties, record: &SwapRecord) -> Recomputed {
    let swap = input(parties, record);
    let htlc = asset.htlc.as_ref().map(Account::bytes).unwrap_or_default();
    let (id, is_certain) = match &asset.chain.network {
        Network::Evm(chain) => (Some(hex::encode(swap_id::evm(version, *chain, &swap, htlc))), true),
        Network::Tron(chain) => (Some(hex::encode(swap_id::evm(version, *chain, &swap, htlc))), false),
        Network::Starknet(chain) => match StarknetGeneration::expected(asset.generation).swap_id_formula() {
            Some(formula) => (starknet(formula, chain, &swap, htlc, &record.swap_id), true),
            None => (None, false),
        },
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
    Recomputed { id, is_certain, family: asset.chain.family() }
}

/// Returns the recorded id if a Starknet contract can give the swap that one, else the one that it most likely gives.
fn starknet(formula: StarknetFormula, chain: &str, swap: &SwapIdInput<'_>, htlc: &[u8], recorded: &str) -> Option<String> {
    let mut ids = swap_id::starknet(formula, chain, swap, htlc).into_iter().map(hex::encode);
    let likely = ids.next();
    let is_likely = likely.as_deref().is_some_and(|id| is_same_felt(id, recorded));
    if is_likely { likely } else { ids.find(|id| is_same_felt(id, recorded)).or(likely) }
}

/// A Starknet id is a felt: leading zeros mean nothing.
fn is_same_felt(id: &str, recorded: &str) -> bool {
    id.trim_start_matches('0').eq_ignore_ascii_case(recorded.trim_start_matches('0'))
}

/// Returns the other generation whose formula gives the recorded id, for an asset of a chain whose formulas differ so.
pub(super) fn other_generation(asset: &Asset, parties: &Parties, record: &SwapRecord) -> Option<(StarknetGeneration, StarknetGeneration)> {
    let Network::Starknet(chain) = &asset.chain.network else { return None };
    let expected = StarknetGeneration::expected(asset.generation);
    let (swap, htlc) = (input(parties, record), asset.htlc.as_ref().map(Account::bytes).unwrap_or_default());
    let gives_it = |generation: &StarknetGeneration| {
        let ids = generation.swap_id_formula().map(|formula| swap_id::starknet(formula, chain, &swap, htlc)).unwrap_or_default();
        ids.iter().any(|id| is_same_felt(&hex::encode(id), &record.swap_id))
    };
    let others = StarknetGeneration::ALL.iter().copied().filter(|generation| *generation != expected);
    others.into_iter().find(gives_it).map(|actual| (expected, actual))
}

fn input<'r>(parties: &'r Parties, record: &'r SwapRecord) -> SwapIdInput<'r> {
    SwapIdInput {
        secret_hash: &record.secret_hash.0,
        initiator: parties.initiator.bytes(),
        redeemer: parties.redeemer.bytes(),
        timelock: record.timelock,
        amount: record.amount,
    }
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
