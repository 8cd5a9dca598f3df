//! Recomputes swap ids from a record's own fields, by the formula of each chain (`docs/spec/swap_ids.md#which-formula-holds`).
//!
//! On EVM chains the record's version names the formula, as the service's own records follow it. A pinned generation restricts it to
//! the formulas of its contract, because the contract itself computes the id.

use countersign_chains::swap_id::{self, StarknetFormula, SwapIdInput, Version};
use countersign_chains::taproot::{Htlc, Output};
use countersign_chains::{Account, Family, Network};

use super::record::Parties;
use crate::json::At;
use crate::report::{Code, Refusal};
use crate::trust::{Asset, EvmGeneration, Generation, SolanaGeneration, StarknetGeneration};
use crate::wire::SwapRecord;

/// A recomputed swap id.
pub(super) struct Recomputed {
    /// The id; `None` if no id follows from the fields.
    pub(super) id: Option<String>,
    /// Whether the formula is known to be the chain's own. If not, a record with another id is only a warning.
    pub(super) is_certain: bool,
    family: Family,
}

impl Recomputed {
    /// Returns whether this is the id in a record, in any of the spellings that its chain allows.
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

/// Requires that the version of a record belongs to the pinned generation of an EVM contract.
///
/// # Errors
///
/// [`Code::GenerationMismatch`] at the version of the record at `record_at`.
pub(super) fn check_version(asset: &Asset, version: Version, record_at: &At<'_>) -> Result<(), Refusal> {
    let has_version = |generation: &EvmGeneration| generation.token.swap_ids.contains(&version);
    let Some(pinned) = asset.generation.and_then(Generation::evm).filter(|pinned| !has_version(pinned)) else { return Ok(()) };
    let actual = EvmGeneration::ALL.iter().find(|generation| has_version(generation)).map_or("none", |actual| actual.name);
    let refusal = record_at.refuse_below(Code::GenerationMismatch, "/version").with_expected(pinned.name).with_actual(actual);
    Err(refusal.with_reason("the version of the order names the formula of another generation"))
}

/// Recomputes the id of a swap record on its asset's chain. `computed` is an HTLC whose output is already computed: it is not computed
/// again if it is the HTLC of the record.
pub(super) fn recompute(
    asset: &Asset,
    version: Version,
    parties: &Parties,
    record: &SwapRecord,
    computed: Option<(&Htlc, &Output)>,
) -> Recomputed {
    let swap = input(parties, record);
    let htlc = asset.htlc.as_ref().map(Account::bytes).unwrap_or_default();
    let (id, is_certain) = match &asset.chain.network {
        Network::Evm(chain) => evm(asset, version, *chain, &swap, &record.swap_id),
        Network::Tron(chain) => (Some(hex::encode(swap_id::evm(version, *chain, &swap, htlc))), false),
        Network::Starknet(chain) => match StarknetGeneration::expected(asset.generation).swap_id {
            Some(formula) => (starknet(formula, chain, &swap, htlc, &record.swap_id), true),
            None => (None, false),
        },
        Network::Solana(_) if SolanaGeneration::expected(asset.generation).is_some_and(|expected| !expected.is_swap_id_known) => {
            (None, false)
        }
        Network::Solana(cluster) => match swap_id::solana_chain_id(cluster) {
            Some((chain, certain)) => (Some(hex::encode(swap_id::solana(chain, swap.secret_hash, swap.initiator))), certain),
            None => (None, false),
        },
        Network::Sui(_) => {
            let registry = asset.htlc_registry.as_ref().map(Account::bytes);
            (registry.and_then(|registry| swap_id::sui(&swap, registry)).map(hex::encode), asset.chain.test)
        }
        Network::Bitcoin(coin, net) => {
            let output = taproot(asset, parties, record).and_then(|htlc| match computed {
                Some((of, output)) if *of == htlc => Some(*output),
                _ => htlc.output_under(asset.internal_key()?),
            });
            (output.and_then(|output| output.address(*coin, *net)), true)
        }
        _ => (None, false),
    };
    Recomputed { id, is_certain, family: asset.chain.family() }
}

/// Returns the recorded id if a contract of the pinned generation can give it to the swap, else the id by the record's version, and
/// whether the formula is known.
fn evm(asset: &Asset, version: Version, chain: u64, swap: &SwapIdInput<'_>, recorded: &str) -> (Option<String>, bool) {
    let pinned = asset.generation.and_then(Generation::evm).map(|generation| generation.contract(asset.token.is_none()).swap_ids);
    if pinned.is_some_and(<[Version]>::is_empty) {
        return (None, false);
    }
    let id = |version| hex::encode(swap_id::evm(version, chain, swap, asset.htlc.as_ref().map(Account::bytes).unwrap_or_default()));
    let by_source = pinned.is_some_and(|formulas| formulas.contains(&Version::Source2024)).then(|| id(Version::Source2024));
    (Some(by_source.filter(|id| id.eq_ignore_ascii_case(recorded)).unwrap_or_else(|| id(version))), true)
}

/// Returns the recorded id if a Starknet contract can give it to the swap, else the id that it most likely gives.
fn starknet(formula: StarknetFormula, chain: &str, swap: &SwapIdInput<'_>, htlc: &[u8], recorded: &str) -> Option<String> {
    let mut ids = swap_id::starknet(formula, chain, swap, htlc).into_iter().map(hex::encode);
    let likely = ids.next();
    let is_likely = likely.as_deref().is_some_and(|id| is_same_felt(id, recorded));
    if is_likely { likely } else { ids.find(|id| is_same_felt(id, recorded)).or(likely) }
}

/// Returns whether two Starknet ids are the same felt, whatever their leading zeros.
fn is_same_felt(id: &str, recorded: &str) -> bool {
    id.trim_start_matches('0').eq_ignore_ascii_case(recorded.trim_start_matches('0'))
}

/// Returns the expected generation, and the other one whose formula gives the recorded id; `None` if no other one does, or if the
/// chain's generations do not differ in their formula.
pub(super) fn other_generation(asset: &Asset, parties: &Parties, record: &SwapRecord) -> Option<(Generation, Generation)> {
    let (swap, htlc) = (input(parties, record), asset.htlc.as_ref().map(Account::bytes).unwrap_or_default());
    match &asset.chain.network {
        Network::Evm(chain) => {
            let pinned = asset.generation.and_then(Generation::evm)?;
            let is_recorded = |id: [u8; 32]| hex::encode(id).eq_ignore_ascii_case(&record.swap_id);
            let gives_it = |generation: &&&EvmGeneration| {
                generation.token.swap_ids.iter().any(|version| is_recorded(swap_id::evm(*version, *chain, &swap, htlc)))
            };
            let actual = EvmGeneration::ALL.iter().filter(|generation| generation.name != pinned.name).find(gives_it)?;
            Some((Generation::Evm(pinned), Generation::Evm(actual)))
        }
        Network::Starknet(chain) => {
            let expected = StarknetGeneration::expected(asset.generation);
            let gives_it = |generation: &&StarknetGeneration| {
                let ids = generation.swap_id.map(|formula| swap_id::starknet(formula, chain, &swap, htlc)).unwrap_or_default();
                ids.iter().any(|id| is_same_felt(&hex::encode(id), &record.swap_id))
            };
            let mut others = StarknetGeneration::ALL.iter().copied().filter(|generation| generation.name != expected.name);
            others.find(gives_it).map(|actual| (Generation::Starknet(expected), Generation::Starknet(actual)))
        }
        _ => None,
    }
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

/// Returns the HTLC of a Bitcoin-like swap record; `None` if no HTLC can have its fields.
fn taproot(asset: &Asset, parties: &Parties, record: &SwapRecord) -> Option<Htlc> {
    Some(Htlc {
        internal_key: asset.htlc.as_ref()?.array()?,
        initiator: parties.initiator.array()?,
        redeemer: parties.redeemer.array()?,
        secret_hash: record.secret_hash.0,
        timelock: u16::try_from(record.timelock).ok()?,
    })
}
