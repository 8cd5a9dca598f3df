//! Texts for people: the summary shows every value that the response chose, in the usual units.

use countersign_core::{Code, Severity, Topic};
use countersign_starknet::{Gasless, Starknet};
use countersign_testkit::{TestResult, fixture, outcome, verified};

#[test]
fn an_order_reads_like_this() -> TestResult {
    let got = outcome::<Starknet>(&fixture::<Starknet>("starknet-approval-unlimited"))?;
    let lines: Vec<_> = got["summary"].as_array().into_iter().flatten().filter_map(|line| line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "order: c7170193156473b0f47cd901de995a05a9a49045a5f9b8abf7e894ffd918b41c",
            "pay: 0.0125 WBTC (1250000 base units)",
            "chain: Starknet (starknet:SN_MAIN)",
            "owner: 0x00a2b96062002906d8bdcf5e9dd5e2526772e57f2993edcfe72282cb0394034b, who gets refunds",
            "contract: pinned HTLC 0x03586c5ca31d97f7225389542d6f8058c510b12581dc7e9d4622d9fee446122b",
            "token: pinned token 0x00c11ec69c9ac79b4806d88a755222a66c2f349c97a0a1a34017c90fa27b3c7e",
            "redeemer: 0x0275127da2bcbab353c915c3e6f5b9ce7bcffd0c123571fc59d48a53f933dcae, pinned solver 0xcf0776776c4a75880aaaba155bb09b50e66cf91f",
            "secret hash: 0d491d6402d2d0afa9fb899a3cf57de2dbfa00bc33d613546d25e5774f31071d",
            "timelock: 2880 blocks, about 1.6 h, then a refund is possible (at usual block times)",
            "get: 0.0124625 BTC (1246250 base units) on Bitcoin (bitcoin:mainnet)",
            "pay-out: bc1pjuve6wt766fqjpvjue9009mx8ym7fk9l9y6vd0hpz0nyrlvvs5rswf8cqw, a promise: whoever holds the redeem key is paid",
            "approval: the HTLC may take every token of this kind, without limit",
            "message: gasless Initiate, domain name \"HTLC\" (0x48544c43), version \"1\" (0x31), chain \"SN_MAIN\" (0x534e5f4d41494e), revision 1",
            "wallet: sent and paid for by 0x00a2b96062002906d8bdcf5e9dd5e2526772e57f2993edcfe72282cb0394034b, nonce 0x1, at most 558081233052.096878641783262894 STRK",
            "gas: at most 870988937300 L1 gas at 13575296155311159 FRI",
            "gas: at most 184548485179 L2 gas at 692589198261139208 FRI",
            "gas: at most 384065359603 L1 data gas at 1089504696081811854 FRI",
            "to sign: transaction, 0x626d550d86dcaa3e8824f86bb13f7dcad5d65bab2f0506624e1cca752c58c70",
            "to sign: typed data, 0x290a03d5a97bc877edfe27162be292c656708fef971d21e0fce63b9f51ea296",
        ]
    );
    Ok(())
}

#[test]
fn what_the_wallet_adds_is_shown() -> TestResult {
    let lines = outcome::<Starknet>(&fixture::<Starknet>("starknet-paymaster-and-deployment"))?["summary"].to_string();
    for line in [
        "wallet: paymaster data 0x1, 0x2, 0x3",
        "wallet: account deployment data 0xabc, 0x5, 0x0",
        "wallet: nonce data on L2, fee data on L2",
    ] {
        assert!(lines.contains(line), "{lines}");
    }
    let lines = outcome::<Starknet>(&fixture::<Starknet>("starknet-tip"))?["summary"].to_string();
    assert!(lines.contains("gas: tip 18446744073709551615 FRI per L2 gas"), "{lines}");
    let lines = outcome::<Starknet>(&fixture::<Starknet>("starknet-cairo-0"))?["summary"].to_string();
    assert!(lines.contains("wallet: calls encoded for an account of Cairo 0"), "{lines}");
    Ok(())
}

#[test]
fn an_order_without_gasless_path_says_so() -> TestResult {
    let lines = outcome::<Starknet>(&fixture::<Starknet>("starknet-typed-data-null"))?["summary"].to_string();
    assert!(lines.contains("message: none: this order has no gasless funding path"), "{lines}");
    Ok(())
}

#[test]
fn a_gasless_order_shows_no_fees_and_an_unlimited_approval_is_danger() -> TestResult {
    let order = verified::<Starknet>(&fixture::<Starknet>("starknet-approval-unlimited"));
    let approval = order.summary().about(Topic::Approval).map(|line| line.severity).collect::<Vec<_>>();
    assert_eq!(approval, [Severity::Danger]);
    let summary = order.prepare(Gasless)?.summary();
    assert_eq!((summary.about(Topic::Wallet).count(), summary.about(Topic::Gas).count(), summary.about(Topic::Digest).count()), (0, 0, 1));
    Ok(())
}

#[test]
fn an_approval_that_is_not_sent_is_not_warned_about() -> TestResult {
    let order = verified::<Starknet>(&fixture::<Starknet>("starknet-approval-unlimited"));
    let unsigned = order.prepare(Gasless)?;
    for (warnings, is_warned) in [(order.warnings(), true), (unsigned.warnings(), false)] {
        assert_eq!(warnings.list().iter().any(|warning| warning.code() == Code::UnlimitedApproval), is_warned);
    }
    Ok(())
}
