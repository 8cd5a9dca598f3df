//! EVM addresses and their checksums: EIP-55, and EIP-1191 where a chain's users write that.

use sha3::{Digest, Keccak256};

use super::{AddressError, hex_array};

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
pub(super) fn rootstock_checksummed(chain_id: u64, bytes: [u8; 20]) -> [u8; 40] {
    checksummed_after(&format!("{chain_id}0x"), bytes)
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
    use super::super::parse;
    use super::*;
    use crate::network::Network;

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
}
