//! Texts for people: the summary shows every value that the response chose, in the usual units.

use countersign_core::Code;
use countersign_testkit::{TestResult, fixture, outcome, verified};
use countersign_tron::{Gasless, Tron};

#[test]
fn a_token_order_reads_like_this() -> TestResult {
    let case = fixture::<Tron>("tron-destination-data");
    let got = outcome::<Tron>(&case)?;
    let lines: Vec<_> = got["summary"].as_array().into_iter().flatten().filter_map(|line| line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "order: e6e04bb2d65ca2d24ccf77c7f657d224c3f3553b3c862f50e4030b431a9a7d4b",
            "pay: 1750 USDT (1750000000 base units)",
            "chain: Tron (tron:728126428)",
            "owner: TDPM7Rd3FioLZuuHBnJy7BXToBoNPpNkCh, who gets refunds",
            "contract: pinned HTLC TY6iZ3Gnk9nhxj9UMGCyfpFepDJxf6rSjE",
            "token: pinned token TSfPmyuqPyAJaXPBMe4RSvV3Lj2kyT1xzc",
            "redeemer: TYwraHBGp13R2QXAWZiPpMdzB9AB9U6prs, pinned solver 0xcf0776776c4a75880aaaba155bb09b50e66cf91f",
            "secret hash: 6ce34b75a8d7e95d94b1f1d11fb19cd1c6a0d106ac3bde9bd3484f866c5c877c",
            "timelock: 28800 blocks, about 24 h, then a refund is possible (at usual block times)",
            "get: 0.0181 BTC (1810000 base units) on Bitcoin (bitcoin:mainnet)",
            "pay-out: bc1p8ltwvngwllglh4h2gnascq46y4qcgcn5em0hfeklmmt6t5gxxk0s8nlwmn, a promise: whoever holds the redeem key is paid",
            "destination data: 20 bytes 0xbf74103cdd30e963ccb487d01ebc7237fcbb25a0",
            "approval: the HTLC may take every token of this kind, without limit",
            "gas: approval burns at most 60 TRX for energy",
            "gas: initiate burns at most 300 TRX for energy",
            "message: gasless Initiate for TY6iZ3Gnk9nhxj9UMGCyfpFepDJxf6rSjE, domain HTLC version \"3\", destination data not signed",
            "wallet: sent and paid for by TDPM7Rd3FioLZuuHBnJy7BXToBoNPpNkCh, reference block 752a 5716572946df456a, \
             created at 1772601028028 ms, expires at 1772601088028 ms, about 1 min later",
            "to sign: approval, 75c70139c5e263eef8bdc5c200ee30e1948d7b4e6ad355d354fdd52d52a51829",
            "to sign: initiate, 6d5bc454b5d4f8d1b257fe0a9002630f529bdd4622ae5e4cb17d0a27424125b8",
            "to sign: typed data, 0x6fec8b73ebdb8ae2a1a3ac6ac84fbc33d4cfa5f6a220fbf3c1731b4948a57238",
        ]
    );
    Ok(())
}

#[test]
fn coins_and_small_fee_limits_are_shown_in_trx() -> TestResult {
    let case = fixture::<Tron>("tron-native-typed-data").replaced("\"gas_limit\":\"300000000\"", "\"gas_limit\":\"1\"");
    let got = outcome::<Tron>(&case)?;
    let lines = got["summary"].to_string();
    assert!(lines.contains("pay: 4321 TRX sent with the call"), "{lines}");
    assert!(lines.contains("gas: initiate burns at most 0.000001 TRX for energy"), "{lines}");
    Ok(())
}

#[test]
fn an_order_without_gasless_way_says_so() -> TestResult {
    let got = outcome::<Tron>(&fixture::<Tron>("tron-token-typed-data-null"))?;
    assert!(got["summary"].to_string().contains("message: none: this order has no gasless funding path"));
    Ok(())
}

#[test]
fn an_approval_that_is_not_sent_is_not_warned_about() -> TestResult {
    let order = verified::<Tron>(&fixture::<Tron>("tron-token-approval-unlimited"));
    let unsigned = order.prepare(Gasless)?;
    for (warnings, is_warned) in [(order.warnings(), true), (unsigned.warnings(), false)] {
        assert_eq!(warnings.list().iter().any(|warning| warning.code() == Code::UnlimitedApproval), is_warned);
    }
    Ok(())
}
