//! Names the forms in which wallets and explorers copy an address that are not the form of an order, so that the user learns which one to use.
//!
//! Nothing is accepted here: a text was refused before, and this finds the reason that helps.

use super::AddressError;
use crate::network::{Family, Network};

/// Returns why a text is not an address of a network, by the form that it has instead; `error` if it has none of them.
pub(super) fn name(network: &Network, text: &str, error: AddressError) -> AddressError {
    // What follows `?` in a URI may have anything.
    let form = text.split('?').next().unwrap_or_default();
    let mut parts = form.split(':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        // CAIP-10: namespace, reference of the chain, address.
        (Some(namespace), Some(reference), Some(_), None) if is_name(namespace) && is_name(reference) => AddressError::AccountId,
        (Some(scheme), Some(_), None, _) if schemes().any(|known| known.eq_ignore_ascii_case(scheme)) => AddressError::Uri,
        (Some(chain), Some(address), None, _) if is_name(chain) && address.starts_with("0x") => AddressError::ChainPrefix,
        (Some(_), None, ..) => (network.family().rules().copied)(form, error),
        _ => error,
    }
}

/// Returns whether a text is a short name or a reference of a chain.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Returns the schemes of the payment URIs of every family.
fn schemes() -> impl Iterator<Item = &'static str> {
    Family::ALL.into_iter().flat_map(|family| family.rules().schemes).copied()
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::network::{BitcoinNet, Coin};

    const EVM: Network = Network::Evm(8_453);
    const TRON: Network = Network::Tron(728_126_428);
    const SOLANA: &str = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:7S3P4HxJpyyigGzodYwHtCxZyUQe9JiBMHyRWXArAaKv";

    fn refused(network: &Network, text: &str) -> AddressError {
        parse(network, text).expect_err(text)
    }

    #[test]
    fn what_wallets_copy_is_named() {
        let [bitcoin, litecoin] = [Coin::Bitcoin, Coin::Litecoin].map(|coin| Network::Bitcoin(coin, BitcoinNet::Main));
        let checksummed = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        // The examples of EIP-3770 and CAIP-10, and of the URIs' specifications.
        for prefix in ["eth", "oeth", "arb1", "bnb-test"] {
            assert_eq!(refused(&EVM, &format!("{prefix}:{checksummed}")), AddressError::ChainPrefix, "{prefix}");
        }
        for (network, text) in [
            (&EVM, "eip155:1:0xab16a96D359eC26a11e2C2b3d8f8B8942d5Bfcdb"),
            (&bitcoin, "bip122:000000000019d6689c085ae165831e93:128Lkh3S7CkDTBZ8W7BbpsN3YYizJMp8p6"),
            (&litecoin, "bip122:12a765e31ffd4059bada1e25190f6e98:LTC1Q"),
            (&Network::parse("solana:mainnet").unwrap(), SOLANA),
            (
                &Network::parse("starknet:SN_MAIN").unwrap(),
                "starknet:SN_GOERLI:0x02dd1b492765c064eac4039e3841aa5f382773b598097a40073bd8b48170ab57",
            ),
            (&TRON, "tron:728126428:TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"),
        ] {
            assert_eq!(refused(network, text), AddressError::AccountId, "{text}");
        }
        let long = format!("bitcoin:175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W?label={}", "x".repeat(200));
        for (network, text) in [
            (&EVM, "ethereum:0xfb6916095ca1df60bb79Ce92ce3ea74c37c5d359?value=2.014e18"),
            (&EVM, "ETHEREUM:pay-0xfb6916095ca1df60bb79Ce92ce3ea74c37c5d359@1"),
            (&bitcoin, "bitcoin:175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W?label=a:b"),
            (&bitcoin, &long),
            (&litecoin, "litecoin:ltc1q"),
            (&Network::parse("solana:mainnet").unwrap(), "solana:mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN?amount=1"),
            (&TRON, "tron:TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"),
        ] {
            assert_eq!(refused(network, text), AddressError::Uri, "{text}");
        }
        // TronWeb's `defaultAddress.hex` of the USDT contract.
        for text in ["41a614f803b6fd780986a42c78ec9c7f77e6ded13c", "0x41A614F803B6FD780986A42C78EC9C7F77E6DED13C"] {
            assert_eq!(refused(&TRON, text), AddressError::TronHex, "{text}");
        }
    }

    #[test]
    fn each_family_has_a_scheme_and_each_scheme_is_of_a_uri() {
        assert!(Family::ALL.iter().all(|family| !family.rules().schemes.is_empty()));
        for scheme in schemes() {
            assert_eq!(refused(&EVM, &format!("{scheme}:x")), AddressError::Uri, "{scheme}");
        }
    }

    #[test]
    fn other_texts_keep_their_reason() {
        for (network, text, error) in [
            (&TRON, "a0a614f803b6fd780986a42c78ec9c7f77e6ded13c", AddressError::Length),
            (&TRON, "41a614f803b6fd780986a42c78ec9c7f77e6ded1", AddressError::Form),
            (&EVM, "0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed", AddressError::Checksum),
            (&EVM, "base:5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", AddressError::Form),
            (&EVM, ":0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", AddressError::Form),
            (&EVM, "a b:c:0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", AddressError::Form),
            (&EVM, ":::", AddressError::Form),
            (&EVM, "", AddressError::Form),
        ] {
            assert_eq!(refused(network, text), error, "{text}");
        }
    }
}
