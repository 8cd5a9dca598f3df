//! Sui: ids of 32 bytes, and its networks.

use std::time::Duration;

use super::solana::parse_solana;
use super::{Family, Network, Rules};
use crate::address::{Account, AddressError, hex_array};
use crate::finality::{Finality, FinalityRule};
use crate::profile::{ChainProfile, KnownChain, main, minutes, test};
use crate::{Pace, network};

pub(super) const RULES: Rules = Rules {
    name: "sui",
    timelock_unit: "ms",
    is_htlc_of_one_token: false,
    has_delegates: false,
    coin_decimals: Some(9),
    networks: &[("sui", |text| network::named(text).map(Network::Sui))],
    address: |_, text| parse_sui(text).map(|bytes| Account::from_array(Family::Sui, bytes)),
    format: |_| None,
    schemes: &["sui"],
    copied: |_, error| error,
    is_transaction_id: |text| parse_solana(text).is_ok(),
    transaction_id: "base58 of 32 bytes",
    chains: CHAINS,
    profile: |_| &SUI,
};

const CHAINS: &[KnownChain] =
    &[main("sui", "sui:mainnet", SUI), test("sui_testnet", "sui:testnet", SUI), test("sui_devnet", "sui:devnet", SUI)];

/// The only chain whose timelock runs while the chain stands, which it has done for hours. The margin is half of the timelock that the
/// service uses.
const SUI: ChainProfile =
    ChainProfile::new(Family::Sui, Pace::new(1, 1, 1), FinalityRule::lasting(Finality::Finalized, Duration::from_secs(10), minutes(60)));

/// Parses a Sui account or object id: `0x` and exactly 64 hex digits.
///
/// # Errors
///
/// [`AddressError::Form`] or [`AddressError::Length`].
pub fn parse_sui(text: &str) -> Result<[u8; 32], AddressError> {
    hex_array(text.strip_prefix("0x").ok_or(AddressError::Form)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction_id::is_well_formed;

    #[test]
    fn a_digest_is_base58_of_32_bytes() {
        // From the documentation of sui_getTransactionBlock.
        assert!(is_well_formed(Family::Sui, "Hay2tj3GcDYcE3AMHrej5WDsHGPVAYsegcubixLUvXUF"));
        let of_solana = "2nBhEBYYvfaAe16UMNqRHre4YNSskvuYgx3M6E4JP1oDYvZEJHvoPzyUidNgNX5r9sTyN1J9UxtbCXy2rqYcuyuv";
        for other in [of_solana, "66e11d4099b9351f2b4981b921c2822af5665406968a4896d5b7a2083d56183a", "0xdead0"] {
            assert!(!is_well_formed(Family::Sui, other), "{other}");
        }
    }
}
