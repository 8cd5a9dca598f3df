//! What a registry holds: chains, assets, contracts and solvers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use countersign_chains::taproot::InternalKey;
use countersign_chains::{Account, ChainProfile, Family, Network, Pace, Span};
use ruint::aliases::U256;

use super::{Generation, TokenStandard};
use crate::report::{Amount, Timelock};
use crate::wire::{AssetRecord, ChainRecord};

/// A pinned chain.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Chain {
    /// The entry as it was pinned.
    pub record: ChainRecord,
    /// The network that its id names.
    pub network: Network,
    /// Whether it is a test network.
    pub test: bool,
    /// How fast it counts one unit of a timelock: the paces of the registry, else those of its profile.
    pub pace: Pace,
    /// What is known about the chain without the registry.
    pub profile: &'static ChainProfile,
}

/// A pinned asset.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Asset {
    /// The entry as it was pinned.
    pub record: AssetRecord,
    /// Its chain.
    pub chain: Arc<Chain>,
    /// The HTLC's account: contract, program, package or internal key. `None` if none is pinned.
    pub htlc: Option<Account>,
    /// The token, `None` for a native asset. A Sui coin is a type, not an account.
    pub token: Option<Contract>,
    /// Sui: the object id of the shared orders registry.
    pub htlc_registry: Option<Account>,
    /// The generation of the HTLC's contract, where the wallet has pinned one.
    pub generation: Option<Generation>,
    pub(super) min_amount: Option<U256>,
    pub(super) max_amount: Option<U256>,
    pub(super) domain: OnceLock<Domain>,
    pub(super) program_addresses: OnceLock<Option<[[u8; 32]; 2]>>,
    pub(super) internal_key: OnceLock<Option<InternalKey>>,
    pub(super) htlc_text: AccountText,
}

/// The text of an account that stands beside it, computed once and kept: on most chains, it contains a checksum.
#[derive(Debug, Clone, Default)]
pub(super) struct AccountText(OnceLock<Arc<str>>);

impl AccountText {
    fn of(&self, account: &Account) -> &Arc<str> {
        self.0.get_or_init(|| account.to_string().into())
    }
}

/// The text follows from the account, which is compared itself.
impl PartialEq for AccountText {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for AccountText {}

/// The hash of a typed-data domain, for one version of the contract.
#[derive(Debug, Clone)]
pub(super) struct Domain {
    version: Box<str>,
    separator: [u8; 32],
}

/// A pinned token.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Contract {
    /// Its address or Sui coin type, as it was pinned.
    pub text: String,
    /// Its account; `None` if the text is a Sui coin type.
    pub account: Option<Account>,
    /// The standard that its pinned schema names.
    pub standard: TokenStandard,
}

/// A solver's account on one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Solver {
    /// The solver's id.
    pub solver_id: String,
    /// Chain name.
    pub chain: String,
    /// The address as it was pinned; on Bitcoin-like chains the x-only key in hex.
    pub address: String,
    /// The account or x-only key.
    pub account: Account,
    pub(super) account_text: AccountText,
}

impl Solver {
    /// Returns the account as text, as [`Account`] writes it.
    #[must_use]
    pub fn account_text(&self) -> &str {
        self.account_text.of(&self.account)
    }
}

impl Asset {
    /// Returns whether an amount in base units is within the limits that the asset had when it was pinned.
    #[must_use]
    pub fn is_within_limits(&self, amount: U256) -> bool {
        self.min_amount.is_none_or(|min| amount >= min) && self.max_amount.is_none_or(|max| amount <= max)
    }

    /// Returns the domain separator of the HTLC's messages for a domain version. It follows from the pins, so the first one is
    /// computed once and kept. The separator of any other version is computed each time.
    pub fn domain_separator(&self, version: &str, compute: impl Fn() -> [u8; 32]) -> [u8; 32] {
        let kept = self.domain.get_or_init(|| Domain { version: version.into(), separator: compute() });
        if *kept.version == *version { kept.separator } else { compute() }
    }

    /// Returns the two addresses that a Solana program derives for itself. They follow from the pins, so they are computed once and
    /// kept.
    pub fn program_addresses(&self, compute: impl FnOnce() -> Option<[[u8; 32]; 2]>) -> Option<[[u8; 32]; 2]> {
        *self.program_addresses.get_or_init(compute)
    }

    /// Returns the internal key of a Bitcoin-like HTLC with its point, which is computed once and kept. `None` if no internal key is
    /// pinned.
    #[must_use]
    pub fn internal_key(&self) -> Option<&InternalKey> {
        let lift = || InternalKey::lift(self.htlc.as_ref().filter(|htlc| htlc.family() == Family::Bitcoin)?.array()?);
        self.internal_key.get_or_init(lift).as_ref()
    }

    /// Returns the account of the HTLC as text, as [`Account`] writes it; `None` if none is pinned.
    #[must_use]
    pub fn htlc_text(&self) -> Option<&Arc<str>> {
        self.htlc.as_ref().map(|htlc| self.htlc_text.of(htlc))
    }

    /// Returns an amount of this asset.
    #[must_use]
    pub fn amount(&self, base_units: U256) -> Amount {
        Amount::new(base_units, self.record.decimals, self.symbol())
    }

    /// Returns the name of the asset's chain in asset ids, such as `ethereum`.
    #[must_use]
    pub fn chain_name(&self) -> &str {
        self.chain.name()
    }

    /// Returns the asset's symbol, in lower case.
    #[must_use]
    pub fn symbol(&self) -> &str {
        self.record.id.symbol()
    }
}

impl Chain {
    /// Returns the chain's family.
    #[must_use]
    pub fn family(&self) -> Family {
        self.network.family()
    }

    /// Returns the name in asset ids, such as `ethereum`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.record.chain
    }

    /// Returns the display name, or the name in asset ids if there is none.
    #[must_use]
    pub fn title(&self) -> &str {
        self.record.name.as_ref().unwrap_or(&self.record.chain)
    }

    /// Returns a timelock of this chain. `units` is in the chain's own unit.
    #[must_use]
    pub fn timelock(&self, units: u64) -> Timelock {
        Timelock::new(units, self.family(), self.nominal_millis(units))
    }

    /// Returns the time until a payment has its confirmations, in whole seconds: that of one more block than are required at the slower one
    /// of the known paces, and at least one minute.
    #[must_use]
    pub fn confirmation_time(&self, confirmations: u64) -> Duration {
        const MIN: u64 = 60;
        let blocks = confirmations.max(1).saturating_add(1);
        let seconds = Span::Units(blocks).millis(self.pace.slowest()).div_ceil(1_000);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX).max(MIN))
    }

    /// Returns how long a timelock takes at today's nominal pace, in milliseconds. For texts: it is only an approximation.
    #[must_use]
    pub fn nominal_millis(&self, timelock: u64) -> u128 {
        Span::Units(timelock).millis(self.pace.nominal)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::trust::Registry;

    #[test]
    fn the_kept_texts_are_those_of_the_accounts() {
        let text = br#"{"chains":[{"chain":"ethereum","id":"evm:1","name":"Ethereum"}],"assets":[{"id":"ethereum:eth",
            "chain":"ethereum","name":"Ether","decimals":18,"htlc":{"address":"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"}}],
            "solvers":[{"solver_id":"s","chain":"ethereum","address":"0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359","assets":[]}]}"#;
        let registry = Registry::from_json(text).unwrap();
        let asset = registry.asset("ethereum:eth").unwrap();
        assert_eq!(asset.htlc_text().map(AsRef::as_ref), Some("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"));
        let [solver] = registry.solvers_of("ethereum") else { panic!("one solver") };
        let unasked = solver.as_ref().clone();
        assert_eq!(solver.account_text(), "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359");
        assert_eq!(solver.account_text(), solver.account.to_string());
        assert_eq!(**solver, unasked, "whether the text was asked for is no difference");
    }

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
