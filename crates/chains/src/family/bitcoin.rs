//! Bitcoin-like networks: addresses in bech32 and bech32m, the older ones in base58check, x-only keys, and the chains that are known.

use std::time::Duration;

use bech32::{Fe32, Hrp, segwit};

use super::{Family, Network, Rules};
use crate::address::{Account, AddressError, MAX_BASE58, base58check, hex_array};
use crate::finality::{Finality, FinalityRule};
use crate::network::{BitcoinNet, Coin};
use crate::profile::{ChainProfile, KnownChain, main, test};
use crate::{Pace, taproot, transaction_id};

pub(super) const RULES: Rules = Rules {
    name: "bitcoin",
    timelock_unit: "blocks",
    is_htlc_of_one_token: false,
    has_delegates: true,
    coin_decimals: Some(8),
    networks: &[
        ("bitcoin", |text| network(text).map(|net| Network::Bitcoin(Coin::Bitcoin, net))),
        ("litecoin", |text| network(text).map(|net| Network::Bitcoin(Coin::Litecoin, net))),
    ],
    address,
    format: |account| Some(hex::encode(account.bytes())),
    schemes: &["bitcoin", "litecoin"],
    copied: |_, error| error,
    is_transaction_id: |text| {
        let mut listed = text.split(',');
        listed.by_ref().take(MAX_LISTED).all(is_funding) && listed.next().is_none()
    },
    transaction_id: "64 hex digits, or <txid>:<number>",
    chains: CHAINS,
    profile: |network| if matches!(network, Network::Bitcoin(Coin::Litecoin, _)) { &LITECOIN } else { &BITCOIN },
};

const CHAINS: &[KnownChain] = &[
    main("bitcoin", "bitcoin:mainnet", BITCOIN),
    test("bitcoin_testnet", "bitcoin:testnet", BITCOIN).with_aliases(&["bitcoin:testnet3", "bitcoin:testnet4", "bitcoin:signet"]),
    test("bitcoin_testnet4", "bitcoin:testnet4", BITCOIN),
    test("bitcoin_signet", "bitcoin:signet", BITCOIN),
    test("bitcoin_regtest", "bitcoin:regtest", BITCOIN),
    main("litecoin", "litecoin:mainnet", LITECOIN),
    test("litecoin_testnet", "litecoin:testnet", LITECOIN).with_aliases(&["litecoin:testnet4"]),
    test("litecoin_regtest", "litecoin:regtest", LITECOIN),
];

/// Maximum number of transactions in one member. A deposit may be paid in parts.
const MAX_LISTED: usize = 64;

const WHOLE_COIN: u128 = 100_000_000;

/// Blocks can be hours apart, and minutes by chance: settle and margin are counts of blocks, and the pace is not measured. By consensus a
/// header's time may be two hours ahead.
const BITCOIN: ChainProfile = ChainProfile {
    coin: Some(Coin::Bitcoin),
    steps: &[(WHOLE_COIN, FinalityRule::new(Finality::Depth(3), 3, 6)), (10 * WHOLE_COIN, FinalityRule::new(Finality::Depth(6), 6, 6))],
    payment_window: Duration::from_secs(6 * 3_600),
    max_head_age: Duration::from_secs(3 * 3_600),
    header_lead: Duration::from_secs(2 * 3_600),
    ..ChainProfile::new(Family::Bitcoin, Pace::new(600_000, 600_000, 300_000), FinalityRule::new(Finality::Depth(2), 2, 6))
};

const LITECOIN: ChainProfile = ChainProfile {
    coin: Some(Coin::Litecoin),
    pace: Pace::new(150_000, 150_000, 75_000),
    finality: FinalityRule::new(Finality::Depth(6), 6, 12),
    steps: &[
        (100 * WHOLE_COIN, FinalityRule::new(Finality::Depth(12), 12, 12)),
        (1_000 * WHOLE_COIN, FinalityRule::new(Finality::Depth(24), 24, 12)),
    ],
    payment_window: Duration::from_secs(3_600),
    ..BITCOIN
};

fn network(text: &str) -> Option<BitcoinNet> {
    match text {
        "mainnet" => Some(BitcoinNet::Main),
        "testnet" | "testnet3" | "testnet4" | "signet" => Some(BitcoinNet::Test),
        "regtest" => Some(BitcoinNet::Regtest),
        _ => None,
    }
}

fn address(network: &Network, text: &str) -> Result<Account, AddressError> {
    let Network::Bitcoin(coin, net) = network else { return Err(AddressError::OtherNetwork) };
    Account::new(Family::Bitcoin, &parse_bitcoin(*coin, *net, text)?).ok_or(AddressError::Length)
}

/// Returns whether a text is `<txid>` or `<txid>:<number>`.
fn is_funding(text: &str) -> bool {
    let (txid, number) = text.trim().split_once(':').unwrap_or((text.trim(), "0"));
    transaction_id::is_hash(txid) && (1..=20).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

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

/// Returns whether a text has the form of an x-only key: 64 hex digits. The length alone is not enough, because a taproot address
/// of Litecoin's test network has 64 characters too.
#[must_use]
pub fn is_key(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Parses an x-only public key: 64 hex digits, the x coordinate of a point of secp256k1.
///
/// # Errors
///
/// [`AddressError::NotOnCurve`] if no point has this x coordinate; [`AddressError::Form`] or [`AddressError::Length`].
pub fn parse_xonly(text: &str) -> Result<[u8; 32], AddressError> {
    parse_xonly_unless_known(text, &|_| false)
}

/// Parses the same as [`parse_xonly`], without the curve arithmetic for a key that the caller has parsed before.
///
/// # Errors
///
/// As [`parse_xonly`].
pub fn parse_xonly_unless_known(text: &str, is_known: &dyn Fn(&str) -> bool) -> Result<[u8; 32], AddressError> {
    let key = hex_array::<32>(text)?;
    if !is_known(text) {
        taproot::lift_x(key).ok_or(AddressError::NotOnCurve)?;
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{parse, parse_party};
    use crate::transaction_id::is_well_formed;

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

    #[test]
    fn an_xonly_key_is_a_point() {
        let network = Network::Bitcoin(Coin::Bitcoin, BitcoinNet::Test);
        let generator = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        assert!(parse_party(&network, generator).is_ok());
        // An address that has 64 characters too: the generator as a witness program, encoded by bech32's own tool.
        let litecoin = Network::Bitcoin(Coin::Litecoin, BitcoinNet::Test);
        let address = segwit::encode(hrp(Coin::Litecoin, BitcoinNet::Test), segwit::VERSION_1, &parse_xonly(generator).unwrap()).unwrap();
        assert_eq!(address.len(), 64);
        assert_eq!(parse_party(&litecoin, &address).unwrap().bytes().len(), 34);
        // BIP-340's test vector 5: a public key that is not on the curve.
        let outside = "eefdea4cdb677750a420fee807eacf21eb9898ae79b9768766e4faa04a2d4a34";
        assert_eq!(parse_party(&network, outside), Err(AddressError::NotOnCurve));
    }

    #[test]
    fn several_transactions_may_have_paid() {
        let hash = "66e11d4099b9351f2b4981b921c2822af5665406968a4896d5b7a2083d56183a";
        for id in [hash.to_owned(), format!("{hash}:90249"), format!("{hash}:1,{hash}"), vec![hash; 64].join(",")] {
            assert!(is_well_formed(Family::Bitcoin, &id), "{id}");
        }
        for other in [&hash[1..], &format!("0x{hash}"), &vec![hash; 65].join(","), "0xdead0"] {
            assert!(!is_well_formed(Family::Bitcoin, other), "{other}");
        }
    }
}
