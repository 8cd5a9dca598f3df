//! Texts for people: the summary shows every value that the response chose, in the usual units.

use countersign_solana::{Gasless, Solana};
use countersign_testkit::{TestResult, fixture, outcome, verified};

fn lines(id: &str) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let got = outcome::<Solana>(&fixture::<Solana>(id))?;
    Ok(got["summary"].as_array().into_iter().flatten().filter_map(|line| line.as_str()).map(str::to_owned).collect())
}

#[test]
fn a_gasless_order_reads_like_this() -> TestResult {
    assert_eq!(
        lines("solana-token-destination-data")?,
        [
            "order: e5e2e265f2738c25528045ebee946e2cb5364e6b5ece4fc1af249f9c30b22fc9",
            "pay: 1750 USDC (1750000000 base units)",
            "chain: Solana (solana:mainnet)",
            "owner: BdACGCsGeQ48zRYQz99jrJ8E1NrsFcFGdzP5fy9xxb7J, who gets refunds",
            "contract: pinned HTLC 97L95MvcbqBhdxvdY5sQZk4sCrLuRQ2iNpRWpmb4h9sT",
            "token: pinned token F93mAZP9fAj5GJVWfimQFHN2SfcB35eWKUdMrax7TGkE",
            "redeemer: okBpz77hdccLg7gVseBM2Uaiy1Dm6F7bKWvrwQJDqxN, pinned solver 0xcf0776776c4a75880aaaba155bb09b50e66cf91f",
            "secret hash: a1c54bdc93aa974797e028a97c694cc73c28374a653a44ac394462eb4dc091bf",
            "timelock: 216000 slots, about 15 h, then a refund is possible (at usual block times)",
            "get: 0.00048515 BTC (48515 base units) on Bitcoin (bitcoin:mainnet)",
            "pay-out: bc1pj6k882n63eg9r2j4f56wr9mt6gdmxqtlcdv3jd9swqr0pk89sl3snt86la, a promise: whoever holds the redeem key is paid",
            "contract: swap account Mp1s9KsvRfvvCfisJ1EoXQ1vrtpbYwHKhjGxoEFNVga, tokens in the vault 33rMZRStHK1ungF7t6LDUHbWaW82JSCWiTNPkTr29wxM",
            "destination data: 20 bytes 0xbaeec1c28681c671551b07a910ab7560ebefc675",
            "encoding: transaction in base64, legacy message, blockhash 3Fnizo8A7fFXep7h6g9tVvanDnWYqjEKxXWY5X69B6dH of the service",
            "gas: transaction: fees and rent are paid by BdACGCsGeQ48zRYQz99jrJ8E1NrsFcFGdzP5fy9xxb7J, the owner",
            "encoding: gasless transaction in base64, legacy message, blockhash d5AAJDdN9TkbzQMJ81EVsrs7NoGM6xHfF6McmQ6wQND of the service",
            "gas: gasless transaction: fees and rent are paid by the sponsor 6v7UazVgBkM5pVUwAjpxpfzsHwVKRoiRGgpRfPhhgnar, which is not pinned",
            "message: gasless transaction, co-signed with the sponsor 6v7UazVgBkM5pVUwAjpxpfzsHwVKRoiRGgpRfPhhgnar, which has not signed yet",
            "wallet: signed by BdACGCsGeQ48zRYQz99jrJ8E1NrsFcFGdzP5fy9xxb7J, blockhash 3Fnizo8A7fFXep7h6g9tVvanDnWYqjEKxXWY5X69B6dH (the service's)",
            "to sign: transaction, SHA-256 of the message 7H6wSoXe2omEVF7RgA7TL4y4owzcBiEykqKMoKWK7kk3",
            "to sign: gasless transaction, SHA-256 of the message DPeYLa4h68YGRXkdbqGPqdtEeeMtkEFJ7pEEueN3aeD2",
        ]
    );
    Ok(())
}

#[test]
fn the_wallets_own_blockhash_and_its_lifetime_are_shown() -> TestResult {
    let lines = lines("solana-native-heights")?;
    assert!(lines.iter().any(|line| line.starts_with("wallet: signed by") && line.ends_with("(the wallet's own)")), "{lines:#?}");
    assert!(
        lines.contains(&"wallet: safe to sign until block height 312000150, 130 blocks from now, about 32.5 s".to_owned()),
        "{lines:#?}"
    );
    Ok(())
}

/// Without the height up to which the blockhash is valid, its lifetime in general.
#[test]
fn a_slow_signer_is_told_how_long_a_blockhash_lasts() -> TestResult {
    let own =
        "wallet: a blockhash is valid for 150 blocks, about 37.5 s: a signer that takes longer needs a transaction that is prepared anew";
    let shown = lines("solana-native-blockhash-replaced")?;
    assert!(shown.iter().any(|line| line == own), "{shown:#?}");
    assert!(!lines("solana-native-legacy")?.iter().any(|line| line.contains("150 blocks")));
    let order = verified::<Solana>(&fixture::<Solana>("solana-token-legacy"));
    let shown = order.prepare(Gasless)?.summary().to_string();
    assert!(shown.contains("a blockhash is valid for 150 blocks, about 37.5 s: sign at once, or ask for the order anew"), "{shown}");
    Ok(())
}

#[test]
fn a_sponsors_signature_and_older_hex_are_shown() -> TestResult {
    assert!(lines("solana-token-sponsor-signed")?.iter().any(|line| line.contains("which has signed: ")));
    assert!(lines("solana-token-hex")?.iter().filter(|line| line.contains("in hex, the form of older responses")).count() == 2);
    assert!(lines("solana-token-gasless-null")?.contains(&"message: none: this order has no gasless funding path".to_owned()));
    Ok(())
}
