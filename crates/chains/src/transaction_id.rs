//! The forms of transaction ids in order records (`docs/spec/service.md#order-record`).

use crate::address::{parse_felt, parse_solana};
use crate::network::Family;

/// Maximum number of transactions in one member. A deposit may be paid in parts.
const MAX_LISTED: usize = 64;

/// Returns whether a text has the form of a transaction id on a family's chains. The transaction need not exist.
///
/// | family | form |
/// |---|---|
/// | EVM, Tron | 64 hex digits, with or without `0x` |
/// | Starknet | a felt in hex, with or without `0x` |
/// | Solana | base58 of 64 bytes |
/// | Sui | base58 of 32 bytes |
/// | Bitcoin | 64 hex digits, also as `<txid>:<number>`; up to 64 of them, separated by commas |
#[must_use]
pub fn is_well_formed(family: Family, text: &str) -> bool {
    let bare = text.strip_prefix("0x").unwrap_or(text);
    match family {
        Family::Evm | Family::Tron => is_hash(bare),
        Family::Starknet => parse_felt(&format!("0x{bare}")).is_ok(),
        Family::Solana => text.len() <= 88 && five8::decode_64(text, &mut [0; 64]).is_ok(),
        Family::Sui => parse_solana(text).is_ok(),
        Family::Bitcoin => {
            let mut listed = text.split(',');
            listed.by_ref().take(MAX_LISTED).all(is_funding) && listed.next().is_none()
        }
    }
}

/// Returns the form of a family's transaction ids in words.
#[must_use]
pub const fn form(family: Family) -> &'static str {
    match family {
        Family::Evm | Family::Tron => "64 hex digits",
        Family::Starknet => "a felt in hex",
        Family::Solana => "base58 of 64 bytes",
        Family::Sui => "base58 of 32 bytes",
        Family::Bitcoin => "64 hex digits, or <txid>:<number>",
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether a text is `<txid>` or `<txid>:<number>`.
fn is_funding(text: &str) -> bool {
    let (txid, number) = text.trim().split_once(':').unwrap_or((text.trim(), "0"));
    is_hash(txid) && (1..=20).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hex id is of a live order record; the base58 ones are of the chains' own documentation.
    #[test]
    fn each_family_has_its_own_form() {
        let hash = "66e11d4099b9351f2b4981b921c2822af5665406968a4896d5b7a2083d56183a";
        // From the documentation of getTransaction.
        let solana = "2nBhEBYYvfaAe16UMNqRHre4YNSskvuYgx3M6E4JP1oDYvZEJHvoPzyUidNgNX5r9sTyN1J9UxtbCXy2rqYcuyuv";
        // From the documentation of sui_getTransactionBlock.
        let sui = "Hay2tj3GcDYcE3AMHrej5WDsHGPVAYsegcubixLUvXUF";
        let starknet = "0x7b3d81b0caddadbb35a9cf717b5f23b2ceddfa7a1a5251b2dbee723247cffdd";
        for (family, good) in [
            (Family::Evm, vec![hash.to_owned(), format!("0x{hash}"), hash.to_uppercase()]),
            (Family::Tron, vec![hash.to_owned()]),
            (Family::Starknet, vec![starknet.to_owned(), "0x1".to_owned()]),
            (Family::Solana, vec![solana.to_owned()]),
            (Family::Sui, vec![sui.to_owned()]),
            (Family::Bitcoin, vec![hash.to_owned(), format!("{hash}:90249"), format!("{hash}:1,{hash}")]),
        ] {
            for id in &good {
                assert!(is_well_formed(family, id), "{family} {id}");
            }
            for bad in ["", "x", "0x", "0xdead0", &hash[1..], &format!("{hash}0"), &format!("{hash}:"), &format!("{hash}:x"), "é"] {
                let felt = family == Family::Starknet && (bad == "0xdead0" || bad == &hash[1..]);
                assert_eq!(is_well_formed(family, bad), felt, "{family} {bad}");
            }
        }
        assert!(!is_well_formed(Family::Solana, sui) && !is_well_formed(Family::Sui, solana) && !is_well_formed(Family::Sui, hash));
        assert!(!is_well_formed(Family::Bitcoin, &vec![hash; 65].join(",")) && !is_well_formed(Family::Bitcoin, &format!("0x{hash}")));
    }
}
