//! What a registry holds: chains, assets, contracts and solvers.

use std::sync::{Arc, OnceLock};

use countersign_chains::network::Coin;
use countersign_chains::{Account, Family, Network};
use ruint::aliases::U256;

use super::Generation;
use crate::report::{Amount, Timelock};
use crate::wire::{AssetRecord, ChainRecord};

/// A pinned chain.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Chain {
    /// As it was pinned.
    pub record: ChainRecord,
    /// What its id says.
    pub network: Network,
    /// Whether it is a test network.
    pub test: bool,
    /// Nominal milliseconds per timelock unit.
    pub unit_millis: u64,
}

/// A pinned asset.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Asset {
    /// As it was pinned.
    pub record: AssetRecord,
    /// Its chain.
    pub chain: Arc<Chain>,
    /// The HTLC's account.
    pub htlc: Option<Account>,
    /// The token, `None` for a native asset. A Sui coin is a type, not an account.
    pub token: Option<Contract>,
    /// Sui: the shared orders registry.
    pub htlc_registry: Option<Account>,
    /// The generation of the HTLC's contract, where the wallet has pinned one.
    pub generation: Option<Generation>,
    pub(super) min_amount: Option<U256>,
    pub(super) max_amount: Option<U256>,
    pub(super) domain: OnceLock<Domain>,
    pub(super) program_addresses: OnceLock<Option<[[u8; 32]; 2]>>,
}

/// The hash of a typed-data domain, for one version of the contract.
#[derive(Debug, Clone)]
pub(super) struct Domain {
    version: Box<str>,
    separator: [u8; 32],
}

/// A token.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Contract {
    /// As it was pinned.
    pub text: String,
    /// Its account, where the text is an address.
    pub account: Option<Account>,
}

/// A solver's account on one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Solver {
    /// The solver.
    pub solver_id: String,
    /// Chain name.
    pub chain: String,
    /// As it was pinned.
    pub address: String,
    /// The account, or x-only key.
    pub account: Account,
}

impl Asset {
    /// Whether an amount is within the limits that the asset had when it was pinned.
    #[must_use]
    pub fn takes(&self, amount: U256) -> bool {
        self.min_amount.is_none_or(|min| amount >= min) && self.max_amount.is_none_or(|max| amount <= max)
    }

    /// Returns the domain separator of the HTLC's messages for a version. It follows from the pins, so it is computed for
    /// the first order and kept; another version than that order's is computed each time.
    pub fn domain_separator(&self, version: &str, compute: impl Fn() -> [u8; 32]) -> [u8; 32] {
        let kept = self.domain.get_or_init(|| Domain { version: version.into(), separator: compute() });
        if *kept.version == *version { kept.separator } else { compute() }
    }

    /// Returns the two addresses that a Solana program derives for itself. They follow from the pins, so they are computed
    /// for the first order and kept.
    pub fn program_addresses(&self, compute: impl FnOnce() -> Option<[[u8; 32]; 2]>) -> Option<[[u8; 32]; 2]> {
        *self.program_addresses.get_or_init(compute)
    }

    /// Returns an amount of this asset.
    #[must_use]
    pub fn amount(&self, base_units: U256) -> Amount {
        Amount::new(base_units, self.record.decimals, self.symbol())
    }

    /// The asset's symbol.
    #[must_use]
    pub fn symbol(&self) -> &str {
        self.record.id.symbol()
    }
}

impl Chain {
    /// The chain's family.
    #[must_use]
    pub fn family(&self) -> Family {
        self.network.family()
    }

    /// The display name, or the name that asset ids carry.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.record.name.is_empty() { &self.record.chain } else { &self.record.name }
    }

    /// Returns a timelock of this chain.
    #[must_use]
    pub fn timelock(&self, units: u64) -> Timelock {
        Timelock::new(units, self.family(), self.nominal_millis(units))
    }

    /// Returns the seconds after an order's creation in which the service takes its payment, where the record names no deadline.
    #[must_use]
    pub const fn payment_window(&self) -> u64 {
        match self.network {
            Network::Bitcoin(Coin::Bitcoin, _) => 6 * 3_600,
            _ => 3_600,
        }
    }

    /// Returns the nominal seconds until a payment has its confirmations: one block more than are required, and at least a minute.
    #[must_use]
    pub fn confirmation_time(&self, confirmations: u64) -> u64 {
        const MIN: u64 = 60;
        let blocks = confirmations.max(1).saturating_add(1);
        u64::try_from(self.nominal_millis(blocks).div_ceil(1_000)).unwrap_or(u64::MAX).max(MIN)
    }

    /// Returns what a timelock means in nominal milliseconds.
    #[must_use]
    pub fn nominal_millis(&self, timelock: u64) -> u128 {
        u128::from(timelock).saturating_mul(u128::from(self.unit_millis))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::trust::Registry;

    #[test]
    fn a_domain_is_hashed_once_and_never_mistaken_for_another_version() {
        let text = br#"{"chains":[{"chain":"ethereum","id":"evm:1","name":"Ethereum"}],"assets":[{"id":"ethereum:eth",
            "chain":"ethereum","name":"Ether","decimals":18,"htlc":{"address":"0x00000000000000000000000000000000000000aa"}}]}"#;
        let registry = Registry::from_json(text).unwrap();
        let asset = registry.asset("ethereum:eth").unwrap();
        let computed = Cell::new(0);
        let hash = |version: &str| {
            asset.domain_separator(version, || {
                computed.set(computed.get() + 1);
                [version.len().to_le_bytes()[0]; 32]
            })
        };
        assert_eq!([hash("3"), hash("3"), hash("3.1"), hash("3"), hash("3.1")], [[1; 32], [1; 32], [3; 32], [1; 32], [3; 32]]);
        assert_eq!(computed.get(), 3, "once for the first version, each time for another");
    }
}
