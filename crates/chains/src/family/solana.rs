//! Solana: accounts and transaction ids in base58, and its clusters.

use std::time::Duration;

use super::{Family, Network, Rules};
use crate::address::{Account, AddressError};
use crate::finality::{Finality, FinalityRule};
use crate::profile::{ChainProfile, KnownChain, main, minutes, test};
use crate::{Pace, digits, network};

pub(super) const RULES: Rules = Rules {
    name: "solana",
    timelock_unit: "slots",
    is_htlc_of_one_token: false,
    has_delegates: false,
    coin_decimals: Some(9),
    networks: &[("solana", |text| network::named(text).map(Network::Solana))],
    address: |_, text| parse_solana(text).map(|bytes| Account::from_array(Family::Solana, bytes)),
    format: |account| account.array().map(|bytes| digits::base58(&bytes)),
    schemes: &["solana"],
    copied: |_, error| error,
    is_transaction_id: |text| text.len() <= 88 && five8::decode_64(text, &mut [0; 64]).is_ok(),
    transaction_id: "base58 of 64 bytes",
    chains: CHAINS,
    profile: |_| &SOLANA,
};

const CHAINS: &[KnownChain] = &[
    main("solana", "solana:mainnet", SOLANA).with_aliases(&["solana:mainnet-beta", "solana:101"]),
    // The service's `solana_testnet` is devnet, 103.
    test("solana_testnet", "solana:testnet", SOLANA).with_aliases(&["solana:devnet", "solana:102", "solana:103"]),
    test("solana_devnet", "solana:devnet", SOLANA).with_aliases(&["solana:103"]),
];

const SOLANA: ChainProfile = ChainProfile::new(
    Family::Solana,
    Pace::new(400, 250, 100),
    FinalityRule::lasting(Finality::Finalized, Duration::from_secs(30), minutes(10)),
);

/// Parses a Solana account: base58 of exactly 32 bytes.
///
/// # Errors
///
/// [`AddressError::Form`] or [`AddressError::Length`].
pub fn parse_solana(text: &str) -> Result<[u8; 32], AddressError> {
    if text.len() > 44 {
        return Err(AddressError::Length);
    }
    let mut bytes = [0; 32];
    match five8::decode_32(text, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(five8::DecodeError::InvalidChar(_)) => Err(AddressError::Form),
        Err(_) => Err(AddressError::Length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction_id::is_well_formed;

    #[test]
    fn a_signature_is_base58_of_64_bytes() {
        // From the documentation of getTransaction.
        let id = "2nBhEBYYvfaAe16UMNqRHre4YNSskvuYgx3M6E4JP1oDYvZEJHvoPzyUidNgNX5r9sTyN1J9UxtbCXy2rqYcuyuv";
        assert!(is_well_formed(Family::Solana, id));
        let of_sui = "Hay2tj3GcDYcE3AMHrej5WDsHGPVAYsegcubixLUvXUF";
        for other in [of_sui, "66e11d4099b9351f2b4981b921c2822af5665406968a4896d5b7a2083d56183a", "0xdead0"] {
            assert!(!is_well_formed(Family::Solana, other), "{other}");
        }
    }
}
