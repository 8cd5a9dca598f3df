//! Swap ids: how each chain's HTLC names a swap.
//!
//! An id that recomputes proves only that an order record agrees with itself. Several formulas leave fields unbound
//! (`docs/spec/swap_ids.md#which-formula-holds`), so every field is also compared with the request.

use ruint::aliases::U256;
use sha2::{Digest, Sha256};
use starknet_types_core::felt::Felt;
use starknet_types_core::hash::{Poseidon, StarkHash};

/// Which fields an EVM swap id binds: the `version` of the order record, or the source that has the formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Version {
    /// Secret hash and initiator: the contract's public source of June 2024, which no record names.
    Source2024,
    /// Chain, secret hash, initiator.
    V1,
    /// V1 and redeemer, timelock, amount.
    V2,
    /// V2 and the HTLC contract.
    V3,
}

impl Version {
    /// Parses `v1`, `v2` or `v3`; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "v1" => Some(Self::V1),
            "v2" => Some(Self::V2),
            "v3" => Some(Self::V3),
            _ => None,
        }
    }
}

/// The inputs of the account chains' formulas.
#[derive(Debug, Clone, Copy)]
pub struct SwapIdInput<'a> {
    /// SHA-256 of the secret.
    pub secret_hash: &'a [u8; 32],
    /// Canonical bytes of the initiator's account.
    pub initiator: &'a [u8],
    /// Canonical bytes of the redeemer's account.
    pub redeemer: &'a [u8],
    /// The timelock, in the chain's own unit.
    pub timelock: u64,
    /// The amount in base units.
    pub amount: U256,
}

/// Returns a 32-byte big-endian word with `bytes` at its low end.
fn word(bytes: &[u8]) -> [u8; 32] {
    let mut word = [0; 32];
    for (to, from) in word.iter_mut().rev().zip(bytes.iter().rev()) {
        *to = *from;
    }
    word
}

/// Computes the swap id of EVM chains, and most likely of Tron: SHA-256 of the ABI-encoded words.
#[must_use]
pub fn evm(version: Version, chain_id: u64, swap: &SwapIdInput<'_>, htlc: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    if version >= Version::V1 {
        hash.update(word(&chain_id.to_be_bytes()));
    }
    hash.update(swap.secret_hash);
    hash.update(word(swap.initiator));
    if version >= Version::V2 {
        hash.update(word(swap.redeemer));
        hash.update(word(&swap.timelock.to_be_bytes()));
        hash.update(swap.amount.to_be_bytes::<32>());
    }
    if version >= Version::V3 {
        hash.update(word(htlc));
    }
    hash.finalize().into()
}

/// Which felts a Starknet swap id is the hash of: it differs between the generations of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StarknetFormula {
    /// Chain, secret hash, initiator: the contract of February 2025.
    Initiator,
    /// Chain, initiator, redeemer, timelock, amount, secret hash: the contract of July 2025.
    Terms,
    /// Chain, secret hash, initiator, redeemer, timelock, amount, contract: the contract of November 2025.
    TermsAndContract,
}

/// The chain that the source of February 2025 has as a constant, whatever chain it is deployed on.
const STARKNET_CONSTANT: &str = "SN_SEPOLIA";

/// Computes the swap ids of Starknet: Poseidon over felts, the chain id as a short string first, the secret hash as eight words.
///
/// Returns every id that a contract can give to the swap. There are two where the contract's source has the chain as a constant,
/// because whoever deployed it may have changed the constant or not. There is none if the chain id is not a short string (1 to 31
/// ASCII characters).
#[must_use]
pub fn starknet(formula: StarknetFormula, chain_id: &str, swap: &SwapIdInput<'_>, htlc: &[u8]) -> Vec<[u8; 32]> {
    let mut chains = vec![chain_id];
    if formula == StarknetFormula::Initiator && chain_id != STARKNET_CONSTANT {
        chains.push(STARKNET_CONSTANT);
    }
    let is_short = |chain: &&str| (1..=31).contains(&chain.len()) && chain.is_ascii();
    chains.into_iter().take_while(is_short).map(|chain| starknet_on(formula, chain, swap, htlc)).collect()
}

fn starknet_on(formula: StarknetFormula, chain_id: &str, swap: &SwapIdInput<'_>, htlc: &[u8]) -> [u8; 32] {
    let felt = |bytes: &[u8]| Felt::from_bytes_be(&word(bytes));
    let limbs = swap.amount.to_be_bytes::<32>();
    let (high, low) = limbs.split_at(16);
    let words = swap.secret_hash.chunks(4).map(felt);
    let terms = [felt(swap.initiator), felt(swap.redeemer), Felt::from(swap.timelock), felt(low), felt(high)];
    let mut felts = vec![felt(chain_id.as_bytes())];
    match formula {
        StarknetFormula::Initiator => {
            felts.extend(words);
            felts.push(felt(swap.initiator));
        }
        StarknetFormula::Terms => {
            felts.extend(terms);
            felts.extend(words);
        }
        StarknetFormula::TermsAndContract => {
            felts.extend(words);
            felts.extend(terms);
            felts.push(felt(htlc));
        }
    }
    Poseidon::hash_array(&felts).to_bytes_be()
}

/// Computes the swap id of Solana: SHA-256 of chain number, secret hash and initiator. It binds neither amount nor redeemer.
#[must_use]
pub fn solana(chain_id: u64, secret_hash: &[u8; 32], initiator: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(word(&chain_id.to_be_bytes()));
    hash.update(secret_hash);
    hash.update(initiator);
    hash.finalize().into()
}

/// Returns the number of a Solana cluster in swap ids, and whether a live record has confirmed it; `None` if the number is unknown.
#[must_use]
pub fn solana_chain_id(cluster: &str) -> Option<(u64, bool)> {
    match cluster {
        "mainnet" | "mainnet-beta" | "101" => Some((101, false)),
        "testnet" | "devnet" | "103" => Some((103, true)),
        "localnet" | "104" => Some((104, false)),
        _ => None,
    }
}

/// Computes the swap id of Sui: SHA-256 of 200 bytes, with the id of the registry object last. The chain word is zero, as on the test
/// network; for other networks it is not known. `None` if the amount does not fit 64 bits.
#[must_use]
pub fn sui(swap: &SwapIdInput<'_>, registry: &[u8]) -> Option<[u8; 32]> {
    sui_with_chain_word(0, swap, registry)
}

/// Computes the swap id of Sui like [`sui`], with another chain word. The contract's publishers change the word by hand before they
/// deploy it.
#[must_use]
pub fn sui_with_chain_word(chain_word: u8, swap: &SwapIdInput<'_>, registry: &[u8]) -> Option<[u8; 32]> {
    let mut hash = Sha256::new();
    hash.update(word(&[chain_word]));
    hash.update(swap.secret_hash);
    hash.update(swap.initiator);
    hash.update(swap.redeemer);
    hash.update(U256::from(swap.timelock).to_le_bytes::<32>());
    hash.update(u64::try_from(swap.amount).ok()?.to_le_bytes());
    hash.update(registry);
    Some(hash.finalize().into())
}
