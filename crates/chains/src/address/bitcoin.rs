//! Addresses of Bitcoin-like networks: segwit in bech32 and bech32m, and the older ones in base58check.

use bech32::{Fe32, Hrp, segwit};

use super::{AddressError, MAX_BASE58, base58check};
use crate::network::{BitcoinNet, Coin};

/// Returns the human-readable part of a Bitcoin-like network's segwit addresses.
#[must_use]
pub const fn hrp(coin: Coin, net: BitcoinNet) -> Hrp {
    Hrp::parse_unchecked(match (coin, net) {
        (Coin::Bitcoin, BitcoinNet::Main) => "bc",
        (Coin::Bitcoin, BitcoinNet::Test) => "tb",
        (Coin::Bitcoin, BitcoinNet::Regtest) => "bcrt",
        (Coin::Litecoin, BitcoinNet::Main) => "ltc",
        (Coin::Litecoin, BitcoinNet::Test) => "tltc",
        (Coin::Litecoin, BitcoinNet::Regtest) => "rltc",
    })
}

/// Returns the base58 version bytes: (pay to public key hash, pay to script hash, the older script-hash byte). Litecoin shares the
/// older one with Bitcoin, and its software no longer writes it.
const fn base58_versions(coin: Coin, net: BitcoinNet) -> (u8, u8, u8) {
    match (coin, net) {
        (Coin::Bitcoin, BitcoinNet::Main) => (0x00, 0x05, 0x05),
        (Coin::Bitcoin, _) => (0x6f, 0xc4, 0xc4),
        (Coin::Litecoin, BitcoinNet::Main) => (0x30, 0x32, 0x05),
        (Coin::Litecoin, _) => (0x6f, 0x3a, 0xc4),
    }
}

/// Parses an address of a Bitcoin-like network, and returns its script pubkey.
///
/// # Errors
///
/// [`AddressError::OtherNetwork`] for the address of another chain or network; [`AddressError::Checksum`] for a wrong checksum, or
/// for bech32 in place of bech32m and the other way round; [`AddressError::Form`] or [`AddressError::Length`].
pub fn parse_bitcoin(coin: Coin, net: BitcoinNet, text: &str) -> Result<Vec<u8>, AddressError> {
    let starts_with = |prefix: &str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    if ["bitcoin:", "litecoin:"].into_iter().any(starts_with) {
        return Err(AddressError::Uri);
    }
    if ["ltcmweb1", "tmweb1", "rmweb1"].into_iter().any(starts_with) {
        return Err(AddressError::ExtensionBlock);
    }
    // A base58 address may begin like a bech32 one, as `LTC1` does. Unlike that, it is short and mixes letter cases.
    let mixed = text.bytes().any(|b| b.is_ascii_lowercase()) && text.bytes().any(|b| b.is_ascii_uppercase());
    if let Some((prefix, _)) = text.rsplit_once('1')
        && (!mixed || text.len() > MAX_BASE58)
        && [Coin::Bitcoin, Coin::Litecoin].into_iter().any(|coin| {
            [BitcoinNet::Main, BitcoinNet::Test, BitcoinNet::Regtest]
                .into_iter()
                .any(|net| hrp(coin, net).as_str().eq_ignore_ascii_case(prefix))
        })
    {
        let (found, version, program) = segwit::decode(text).map_err(|_| AddressError::Checksum)?;
        if found != hrp(coin, net) {
            return Err(AddressError::OtherNetwork);
        }
        return witness_script(version, &program).ok_or(AddressError::Length);
    }
    let payload = base58check(text)?;
    let [version, hash @ ..] = payload.as_slice() else { return Err(AddressError::Length) };
    if hash.len() != 20 {
        return Err(AddressError::Length);
    }
    let (key_hash, script_hash, old_script_hash) = base58_versions(coin, net);
    let (head, tail): (&[u8], &[u8]) = match *version {
        v if v == key_hash => (&[0x76, 0xa9, 0x14], &[0x88, 0xac]),
        v if v == script_hash || v == old_script_hash => (&[0xa9, 0x14], &[0x87]),
        _ => return Err(AddressError::OtherNetwork),
    };
    Ok([head, hash, tail].concat())
}

/// Returns the script `OP_n <program>`.
fn witness_script(version: Fe32, program: &[u8]) -> Option<Vec<u8>> {
    let opcode = match version.to_u8() {
        0 => 0,
        n => n.checked_add(0x50)?,
    };
    let len = u8::try_from(program.len()).ok()?;
    Some([&[opcode, len], program].concat())
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::network::Network;

    #[test]
    fn bitcoin_and_litecoin_addresses_stay_apart() {
        // Addresses of BIP-173 and BIP-350.
        let main = Network::Bitcoin(Coin::Bitcoin, BitcoinNet::Main);
        let litecoin = Network::Bitcoin(Coin::Litecoin, BitcoinNet::Main);
        let segwit = parse(&main, "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4").unwrap();
        assert_eq!(hex::encode(segwit.bytes()), "0014751e76e8199196d454941c45d1b3a323f1433bd6");
        let taproot = parse(&main, "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0").unwrap();
        assert_eq!(hex::encode(taproot.bytes()), "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798");
        for wrong in [
            "tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd",
            "BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL",
            "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4",
            "tb1q0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq24jc47",
        ] {
            assert!(parse(&main, wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse(&litecoin, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"), Err(AddressError::OtherNetwork));
        assert_eq!(parse(&main, "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"), Err(AddressError::OtherNetwork));
    }

    #[test]
    fn what_is_no_address_of_the_chain_is_named() {
        let [bitcoin, litecoin] = [Coin::Bitcoin, Coin::Litecoin].map(|coin| Network::Bitcoin(coin, BitcoinNet::Main));
        let mweb = format!("ltcmweb1{}", "q".repeat(110));
        for network in [&bitcoin, &litecoin] {
            for uri in ["bitcoin:bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "LITECOIN:LTC1Q?amount=1", "bitcoin:"] {
                assert_eq!(parse(network, uri), Err(AddressError::Uri), "{uri}");
            }
            for address in [mweb.clone(), mweb.to_uppercase(), "tmweb1q".to_owned()] {
                assert_eq!(parse(network, &address), Err(AddressError::ExtensionBlock), "{address}");
            }
        }
        assert!(AddressError::ExtensionBlock.to_string().contains("ltc1, L or M"));
    }

    #[test]
    fn a_base58_address_may_look_like_the_start_of_a_bech32_one() {
        // Litecoin's version byte before 20 bytes that were found at random; base58check by Python's hashlib.
        let litecoin = Network::Bitcoin(Coin::Litecoin, BitcoinNet::Main);
        let account = parse(&litecoin, "LTC12CJAoW29yC5ncHFeBaFJP2gtS9RzqD").unwrap();
        assert_eq!(hex::encode(account.bytes()), "76a91457627a1490000107252c22002b0029021b02010088ac");
    }
}
