//! EVM chains: addresses and their checksums (EIP-55, and EIP-1191 where a chain's users write that), and the chains that are known.

use std::time::Duration;

use sha3::{Digest, Keccak256};

use super::{Family, Network, Rules};
use crate::address::{Account, AddressError, hex_array};
use crate::finality::{Finality, FinalityRule};
use crate::profile::{ChainProfile, KnownChain, main, minutes, test};
use crate::{Pace, network, transaction_id};

pub(super) const RULES: Rules = Rules {
    name: "evm",
    timelock_unit: "blocks",
    is_htlc_of_one_token: true,
    has_delegates: true,
    coin_decimals: Some(18),
    networks: &[("evm", |text| network::number(text).map(Network::Evm))],
    address,
    format: |account| account.array().map(checksum_evm),
    schemes: &["ethereum"],
    copied: |text, error| {
        if error == AddressError::Checksum && is_rootstocks(text) { AddressError::RootstockChecksum } else { error }
    },
    is_transaction_id: |text| transaction_id::is_hash(transaction_id::without_prefix(text)),
    transaction_id: "64 hex digits",
    chains: CHAINS,
    profile: |_| &OTHER,
};

const CHAINS: &[KnownChain] = &[
    main("ethereum", "evm:1", ETHEREUM),
    test("ethereum_sepolia", "evm:11155111", ETHEREUM),
    main("base", "evm:8453", BASE),
    test("base_sepolia", "evm:84532", BASE),
    main("arbitrum", "evm:42161", ARBITRUM),
    test("arbitrum_sepolia", "evm:421614", ARBITRUM),
    main("bnbchain", "evm:56", BNB_CHAIN),
    test("bnbchain_testnet", "evm:97", BNB_CHAIN),
    main("unichain", "evm:130", UNICHAIN),
    test("unichain_sepolia", "evm:1301", UNICHAIN),
    main("botanix", "evm:3637", PAID_IN_BITCOIN),
    test("botanix_testnet", "evm:3636", PAID_IN_BITCOIN),
    main("corn", "evm:21000000", PAID_IN_BITCOIN),
    test("corn_testnet", "evm:21000001", PAID_IN_BITCOIN),
];

/// The gas that EIP-7825 allows one transaction.
const OSAKA_GAS: Option<u64> = Some(1 << 24);

const ETHER: u128 = 1_000_000_000_000_000_000;

/// Any EVM chain. Chains have blocks of 0.1 s and less, so a chain that is not listed may have them, too.
const EVM: ChainProfile = ChainProfile {
    has_listed_pace: true,
    ..ChainProfile::new(Family::Evm, Pace::new(2_000, 2_000, 100), FinalityRule::lasting(Finality::Safe, minutes(10), minutes(10)))
};

/// An EVM chain that is not listed.
const OTHER: ChainProfile = ChainProfile { has_l1_fee: true, ..EVM };

/// A chain whose coin is ether. A block that is safe can in theory still be replaced, a final one cannot.
const ETHER_CHAIN: ChainProfile =
    ChainProfile { steps: &[(10 * ETHER, FinalityRule::lasting(Finality::Finalized, minutes(30), minutes(10)))], ..EVM };

/// A slot takes 12 s. Two epochs of 32 slots make a block safe, and usually final.
const ETHEREUM: ChainProfile = ChainProfile {
    pace: Pace::new(12_000, 12_000, 12_000),
    has_listed_pace: false,
    finality: FinalityRule::lasting(Finality::Safe, Duration::from_secs(64 * 12), minutes(10)),
    price_ceiling: Some(1_000),
    max_tx_gas: OSAKA_GAS,
    ..ETHER_CHAIN
};

/// A chain of the OP stack.
const OP_STACK: ChainProfile = ChainProfile { price_ceiling: Some(20), has_l1_fee: true, ..ETHER_CHAIN };

const BASE: ChainProfile = ChainProfile { pace: Pace::new(2_000, 200, 100), has_listed_pace: false, max_tx_gas: OSAKA_GAS, ..OP_STACK };

/// A contract on Arbitrum may count Ethereum's blocks, or Arbitrum's own of 250 milliseconds, as the audited ones do.
const ARBITRUM: ChainProfile = ChainProfile {
    pace: Pace::new(12_000, 250, 100),
    has_listed_pace: false,
    price_ceiling: Some(100),
    has_l1_number: true,
    max_tx_gas: Some(32_000_000),
    ..ETHER_CHAIN
};

const UNICHAIN: ChainProfile = ChainProfile { pace: Pace::new(2_000, 1_000, 250), ..OP_STACK };

/// Botanix and Corn, whose gas is paid in bitcoin.
const PAID_IN_BITCOIN: ChainProfile = ChainProfile { price_ceiling: Some(5), ..EVM };

const BNB_CHAIN: ChainProfile = ChainProfile {
    pace: Pace::new(3_000, 450, 225),
    has_listed_pace: false,
    finality: FinalityRule::lasting(Finality::Finalized, minutes(2), minutes(30)),
    price_ceiling: Some(50),
    max_tx_gas: OSAKA_GAS,
    ..EVM
};

fn address(network: &Network, text: &str) -> Result<Account, AddressError> {
    let Network::Evm(chain_id) = network else { return Err(AddressError::OtherNetwork) };
    parse_evm_on(*chain_id, text).map(|bytes| Account::from_array(Family::Evm, bytes))
}

/// Parses an EVM address: `0x` and 40 digits, all lower, all upper, or with the right EIP-55 checksum.
///
/// # Errors
///
/// [`AddressError::Form`], [`AddressError::Length`] or [`AddressError::Checksum`].
pub fn parse_evm(text: &str) -> Result<[u8; 20], AddressError> {
    let digits = text.strip_prefix("0x").ok_or(AddressError::Form)?;
    let bytes = hex_array::<20>(digits)?;
    let lower = digits.bytes().any(|b| b.is_ascii_lowercase());
    let upper = digits.bytes().any(|b| b.is_ascii_uppercase());
    if lower && upper && digits.as_bytes() != checksummed(bytes) {
        return Err(AddressError::Checksum);
    }
    Ok(bytes)
}

/// Parses the same as [`parse_evm`] on the chain with this id: on Rootstock and its test network, the letters may also be the checksum of
/// EIP-1191, which contains the chain id.
///
/// # Errors
///
/// As [`parse_evm`].
pub fn parse_evm_on(chain_id: u64, text: &str) -> Result<[u8; 20], AddressError> {
    match parse_evm(text) {
        Err(AddressError::Checksum) if matches!(chain_id, 30 | 31) => {
            let digits = text.strip_prefix("0x").ok_or(AddressError::Form)?;
            let bytes = hex_array::<20>(digits)?;
            if digits.as_bytes() == rootstock_checksummed(chain_id, bytes) { Ok(bytes) } else { Err(AddressError::Checksum) }
        }
        parsed => parsed,
    }
}

/// Formats an EVM address with its EIP-55 checksum.
#[must_use]
pub fn checksum_evm(bytes: [u8; 20]) -> String {
    ['0', 'x'].into_iter().chain(checksummed(bytes).map(char::from)).collect()
}

/// Returns the 40 digits, letters in upper case where the same digit of their hash is 8 or more (EIP-55).
fn checksummed(bytes: [u8; 20]) -> [u8; 40] {
    checksummed_after("", bytes)
}

/// Returns the 40 digits as [`checksummed`], by the hash of the chain id, `0x` and the digits (EIP-1191).
fn rootstock_checksummed(chain_id: u64, bytes: [u8; 20]) -> [u8; 40] {
    checksummed_after(&format!("{chain_id}0x"), bytes)
}

/// Returns whether the letters of an address are the checksum of one of Rootstock's networks.
fn is_rootstocks(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex_array::<20>(digits).is_ok_and(|bytes| [30, 31].iter().any(|id| rootstock_checksummed(*id, bytes) == digits.as_bytes()))
}

fn checksummed_after(prefix: &str, bytes: [u8; 20]) -> [u8; 40] {
    let mut digits = [0; 40];
    // 40 digits always fit.
    let _ = hex::encode_to_slice(bytes, &mut digits);
    let hash = Keccak256::new_with_prefix(prefix).chain_update(digits).finalize();
    for (pair, byte) in digits.chunks_exact_mut(2).zip(hash) {
        let [high, low] = pair else { break };
        if byte & 0x80 != 0 {
            high.make_ascii_uppercase();
        }
        if byte & 0x08 != 0 {
            low.make_ascii_uppercase();
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::parse;
    use crate::transaction_id::is_well_formed;

    const EVM: Network = Network::Evm(1);

    #[test]
    fn takes_one_case_or_the_right_checksum() {
        // The four kinds of example in EIP-55.
        let checksummed = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        let account = parse(&EVM, checksummed).unwrap();
        assert_eq!(parse(&EVM, &checksummed.to_ascii_lowercase()).unwrap(), account);
        assert_eq!(parse(&EVM, "0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED").unwrap(), account);
        assert_eq!(checksum_evm(account.array().unwrap()), checksummed);
        assert_eq!(parse(&EVM, "0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed"), Err(AddressError::Checksum));
        for all_upper in ["0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D"] {
            assert_eq!(checksum_evm(parse_evm(all_upper).unwrap()), all_upper);
        }
    }

    /// The accounts of the examples in EIP-1191, as `checksumAddress` of viem 2.57.1 writes them.
    #[test]
    fn rootstock_has_a_checksum_of_its_own() {
        let [main, test, other] = [30, 31, 1].map(Network::Evm);
        for (on_main, on_test) in [
            ("0x5aaEB6053f3e94c9b9a09f33669435E7ef1bEAeD", "0x5aAeb6053F3e94c9b9A09F33669435E7EF1BEaEd"),
            ("0xFb6916095cA1Df60bb79ce92cE3EA74c37c5d359", "0xFb6916095CA1dF60bb79CE92ce3Ea74C37c5D359"),
            ("0xDBF03B407c01E7CD3cBea99509D93F8Dddc8C6FB", "0xdbF03B407C01E7cd3cbEa99509D93f8dDDc8C6fB"),
            ("0xD1220A0Cf47c7B9BE7a2e6ba89F429762E7B9adB", "0xd1220a0CF47c7B9Be7A2E6Ba89f429762E7b9adB"),
        ] {
            let account = parse(&main, &on_main.to_ascii_lowercase());
            assert_eq!((parse(&main, on_main), parse(&test, on_test)), (account.clone(), account.clone()));
            assert_eq!(
                (parse(&main, on_test), parse(&test, on_main)),
                (Err(AddressError::RootstockChecksum), Err(AddressError::RootstockChecksum))
            );
            assert_eq!(parse(&other, on_main), Err(AddressError::RootstockChecksum), "{on_main}");
            // Wallets that know no other write EIP-55.
            assert_eq!(parse(&main, &account.unwrap().to_string()), parse(&main, on_main));
        }
    }

    #[test]
    fn refuses_other_forms_of_evm_addresses() {
        for (text, error) in [
            ("", AddressError::Form),
            ("5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", AddressError::Form),
            ("0X5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", AddressError::Form),
            ("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beae", AddressError::Length),
            ("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaedaa", AddressError::Length),
            ("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaeg", AddressError::Form),
            (" 0x5aaeb6053f3e94c9b9a09f33669435e7ef1beae", AddressError::Form),
        ] {
            assert_eq!(parse(&EVM, text), Err(error), "{text}");
        }
    }
    #[test]
    fn a_transaction_id_is_a_hash() {
        // The id is of a live order record.
        let hash = "66e11d4099b9351f2b4981b921c2822af5665406968a4896d5b7a2083d56183a";
        for id in [hash.to_owned(), format!("0x{hash}"), hash.to_uppercase()] {
            assert!(is_well_formed(Family::Evm, &id), "{id}");
        }
        assert!(!is_well_formed(Family::Evm, &hash[1..]) && !is_well_formed(Family::Evm, "0xdead0"));
    }
}
