//! Tron: addresses in base58check, and its networks.

use super::{Family, Network, Rules};
use crate::address::{Account, AddressError, base58check, hex_array};
use crate::finality::{Finality, FinalityRule};
use crate::profile::{ChainProfile, KnownChain, main, minutes, test};
use crate::{Pace, network, transaction_id};

pub(super) const RULES: Rules = Rules {
    name: "tron",
    timelock_unit: "blocks",
    is_htlc_of_one_token: true,
    has_delegates: false,
    coin_decimals: Some(6),
    networks: &[("tron", |text| network::number(text).map(Network::Tron))],
    address: |_, text| parse_tron_base58(text).map(|bytes| Account::from_array(Family::Tron, bytes)),
    format: |account| account.array().map(tron_base58),
    schemes: &["tron"],
    copied: |text, error| if is_in_hex(text) { AddressError::TronHex } else { error },
    is_transaction_id: |text| transaction_id::is_hash(transaction_id::without_prefix(text)),
    transaction_id: "64 hex digits",
    chains: CHAINS,
    profile: |_| &TRON,
};

const CHAINS: &[KnownChain] =
    &[main("tron", "tron:728126428", TRON), test("tron_shasta", "tron:2494104990", TRON), test("tron_nile", "tron:3448148188", TRON)];

const TRON: ChainProfile =
    ChainProfile::new(Family::Tron, Pace::new(3_000, 3_000, 3_000), FinalityRule::lasting(Finality::Finalized, minutes(1), minutes(15)));

/// The version byte in front of every Tron address.
pub const TRON_PREFIX: u8 = 0x41;

/// Parses a Tron address in base58check: `T` and 33 characters.
///
/// # Errors
///
/// [`AddressError::OtherNetwork`] if the version byte is not `41`; [`AddressError::Form`], [`AddressError::Length`] or
/// [`AddressError::Checksum`].
pub fn parse_tron_base58(text: &str) -> Result<[u8; 20], AddressError> {
    let payload = base58check(text)?;
    let payload: [u8; 21] = payload.try_into().map_err(|_| AddressError::Length)?;
    let [TRON_PREFIX, address @ ..] = payload else { return Err(AddressError::OtherNetwork) };
    Ok(address)
}

/// Formats a Tron address in base58check.
#[must_use]
pub fn tron_base58(bytes: [u8; 20]) -> String {
    let mut payload = [TRON_PREFIX; 21];
    for (to, from) in payload.iter_mut().skip(1).zip(bytes) {
        *to = from;
    }
    bs58::encode(payload).with_check().into_string()
}

/// Returns whether a text is a Tron address in hex: the prefix byte and 20 bytes.
fn is_in_hex(text: &str) -> bool {
    hex_array::<21>(text.strip_prefix("0x").unwrap_or(text)).is_ok_and(|[prefix, ..]| prefix == TRON_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::parse;
    use crate::transaction_id::is_well_formed;

    #[test]
    fn a_tron_address_has_version_byte_41_and_a_checksum() {
        // The USDT contract and its hex form, as Tron's documentation prints them.
        let network = Network::Tron(728_126_428);
        let account = parse(&network, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t").unwrap();
        assert_eq!(hex::encode(account.bytes()), "a614f803b6fd780986a42c78ec9c7f77e6ded13c");
        assert_eq!(tron_base58(account.array().unwrap()), "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t");
        assert_eq!(parse(&network, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u"), Err(AddressError::Checksum));
        assert_eq!(parse(&network, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"), Err(AddressError::OtherNetwork));
    }

    #[test]
    fn a_transaction_id_is_a_hash() {
        let hash = "66e11d4099b9351f2b4981b921c2822af5665406968a4896d5b7a2083d56183a";
        assert!(is_well_formed(Family::Tron, hash) && is_well_formed(Family::Tron, &format!("0x{hash}")));
        assert!(!is_well_formed(Family::Tron, &hash[1..]) && !is_well_formed(Family::Tron, "0xdead0"));
    }
}
