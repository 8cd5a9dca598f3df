//! Starknet: felts as addresses and transaction ids, and its networks.

use super::{Family, Network, Rules};
use crate::address::{Account, AddressError, hex_array};
use crate::finality::{Finality, FinalityRule};
use crate::profile::{ChainProfile, KnownChain, main, minutes, test};
use crate::{Pace, network, transaction_id};

pub(super) const RULES: Rules = Rules {
    name: "starknet",
    timelock_unit: "blocks",
    is_htlc_of_one_token: true,
    has_delegates: true,
    coin_decimals: None,
    networks: &[("starknet", |text| network::named(text).map(Network::Starknet))],
    address: |_, text| parse_felt(text).map(|bytes| Account::from_array(Family::Starknet, bytes)),
    format: |_| None,
    schemes: &["starknet"],
    copied: |_, error| error,
    is_transaction_id: |text| parse_felt(&format!("0x{}", transaction_id::without_prefix(text))).is_ok(),
    transaction_id: "a felt in hex",
    chains: CHAINS,
    profile: |_| &STARKNET,
};

const CHAINS: &[KnownChain] = &[main("starknet", "starknet:SN_MAIN", STARKNET), test("starknet_sepolia", "starknet:SN_SEPOLIA", STARKNET)];

const STARKNET: ChainProfile =
    ChainProfile::new(Family::Starknet, Pace::new(30_000, 2_000, 1_000), FinalityRule::lasting(Finality::Safe, minutes(30), minutes(15)));

/// The Stark field prime, `2^251 + 17 * 2^192 + 1`, big-endian.
pub const STARK_PRIME: [u8; 32] = {
    let mut prime = [0; 32];
    prime[0] = 0x08;
    prime[7] = 0x11;
    prime[31] = 0x01;
    prime
};

/// Parses a Starknet felt: `0x` and 1 to 64 hex digits, below the prime. Leading zeros do not matter.
///
/// # Errors
///
/// [`AddressError::Range`] at or above the prime, because a library that reduces it silently would give another account;
/// [`AddressError::Form`] or [`AddressError::Length`].
pub fn parse_felt(text: &str) -> Result<[u8; 32], AddressError> {
    let digits = text.strip_prefix("0x").ok_or(AddressError::Form)?;
    if digits.is_empty() {
        return Err(AddressError::Form);
    }
    if digits.len() > 64 {
        return Err(AddressError::Length);
    }
    let felt = hex_array::<32>(&format!("{digits:0>64}"))?;
    if felt < STARK_PRIME { Ok(felt) } else { Err(AddressError::Range) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::parse;
    use crate::transaction_id::is_well_formed;

    #[test]
    fn a_felt_is_below_the_prime_and_never_reduced() {
        let network = Network::Starknet("SN_MAIN".into());
        let prime = "0x800000000000011000000000000000000000000000000000000000000000001";
        assert_eq!(parse(&network, prime), Err(AddressError::Range));
        assert!(parse(&network, "0x800000000000011000000000000000000000000000000000000000000000000").is_ok());
        assert_eq!(parse(&network, "0x00ab").unwrap(), parse(&network, "0xAB").unwrap());
        assert_eq!(parse(&network, "0x"), Err(AddressError::Form));
        assert_eq!(parse(&network, &format!("0x{}", "0".repeat(65))), Err(AddressError::Length));
    }

    #[test]
    fn a_transaction_id_is_a_felt() {
        for id in ["0x7b3d81b0caddadbb35a9cf717b5f23b2ceddfa7a1a5251b2dbee723247cffdd", "0x1", "0xdead0"] {
            assert!(is_well_formed(Family::Starknet, id) && is_well_formed(Family::Starknet, &id[2..]), "{id}");
        }
        // The hash of an order record, which is not below the prime.
        assert!(!is_well_formed(Family::Starknet, "66e11d4099b9351f2b4981b921c2822af5665406968a4896d5b7a2083d56183a"));
    }
}
