//! Texts for people: the summary shows every value that the response chose, in the usual units.

use countersign_core::Policy;
use countersign_sui::Sui;
use countersign_testkit::{TestResult, fixture, fixtures, outcome, with_verified};

fn lines(id: &str) -> Vec<String> {
    let got = outcome::<Sui>(&fixture::<Sui>(id)).expect(id);
    got["summary"].as_array().into_iter().flatten().filter_map(|line| line.as_str().map(str::to_owned)).collect()
}

#[test]
fn an_order_reads_like_this() {
    assert_eq!(
        lines("sui-destination-data-20"),
        [
            "order: 94a844d5638736978e54d7c581f09be7c7b57512924446a23271e12a15b29920",
            "pay: 3 SUI (3000000000 base units)",
            "chain: Sui Testnet (sui:testnet)",
            "owner: 0x9db957227fedb916b43f65597a9cf226325df11a71b36a4bc6c79474012974f9, who gets refunds",
            "contract: pinned HTLC 0x3b2f4349db93e237855011d923e7ebaa1227d28c6c887a53fe75a3b0c21eb094",
            "redeemer: 0xa130000bdcd3aaabb5f413d2c7a5098a7f1d17650dce6d4a9bf4345932a65775, \
             pinned solver 0xcf0776776c4a75880aaaba155bb09b50e66cf91f",
            "secret hash: 1017633f35442ea588e892842882024229c11085c87fe3a60dd011996a44bb82",
            "timelock: 86400000 ms, about 24 h, then a refund is possible (at usual block times)",
            "get: 0.0009079 BTC (90790 base units) on Bitcoin Testnet (bitcoin:testnet)",
            "pay-out: tb1ptzq9tqrdhmnu2g85v4l0k87vh78nrwzkdu64uh3ypnl60exqp9kqsur29r, a promise: whoever holds the redeem key is paid",
            "contract: one call of AtomicSwap::initiate in package 0x3b2f4349db93e237855011d923e7ebaa1227d28c6c887a53fe75a3b0c21eb094",
            "contract: orders registry 0xa1ff327d6eca056b6ebff88237031e9f698c8fdac8b50bdc8383c3653d3ac7c3, \
             shared since version 117440512, mutable",
            "token: coin type 0x0000000000000000000000000000000000000000000000000000000000000002::sui::SUI",
            "pay: split from the coins that pay the gas",
            "destination data: 20 bytes 0x6fb2b9114c8786ccbeba11db61be8c938497b32e",
            "encoding: inputs in the order amount, orders registry, initiator, redeemer, secret hash, timelock, destination data, \
             clock; the coin as result of the split",
            "message: none: Sui has no gasless funding path",
            "wallet: sent and paid for by 0x9db957227fedb916b43f65597a9cf226325df11a71b36a4bc6c79474012974f9, 1000 MIST per unit of gas, \
             at most 0.01 SUI, does not expire",
            "wallet: gas coin 0xad2b86c71eabbcabadfeb71feb73ce50c938ff1f53c3a3f8f71b65cf39fb9b39 version 1584180785 \
             digest 626XDWCUF9TzkKe7HKMeg4nfwHXtmdvV5dxsny9uDM3p",
            "to sign: transaction CwUR3uhzBHMmPnHY6eDgYBfDFZrJEqnxrjHZaHNfGcyo",
            "to sign: signing digest efe1b78b681a132af836931a3a31e89262c0c0a33f05c6ca5111289da9038ce2",
        ]
    );
}

#[test]
fn what_the_wallet_adds_is_shown() {
    let shown = |id: &str, text: &str| assert!(lines(id).iter().any(|line| line.contains(text)), "{id}: {text}: {:#?}", lines(id));
    shown("sui-expiration", "expires after epoch 812");
    shown("sui-gas-most-coins", "wallet: and 248 more gas coins");
    shown("sui-gas-largest", "18446744073709551615 MIST per unit of gas, at most 18446744073.709551615 SUI");
    shown("sui-nested-two-amounts", "timelock, destination data, clock, amount; the coin as nested result of the split");
}

#[test]
fn spans_cover_every_byte_and_each_has_its_line() -> TestResult {
    for case in fixtures::<Sui>()? {
        with_verified::<Sui, _>(case.input.as_bytes(), case.registry, &Policy::default(), |verified, _| {
            let (coverage, summary) = (verified.coverage(), verified.summary());
            let mut end = 0;
            for span in &coverage {
                assert!(summary.lines().iter().any(|line| line.topic == span.topic), "{}: no line for {span:?}", case.id);
                if let Some((from, to)) = span.bytes {
                    assert_eq!((from, span.at.as_str()), (end, "/response/result/ptb_bytes"), "{}: {span:?}", case.id);
                    assert!(to > from, "{}: {span:?}", case.id);
                    end = to;
                }
            }
            assert_eq!(Some(end), case.json()["response"]["result"]["ptb_bytes"].as_array().map(Vec::len), "{}", case.id);
            Ok(())
        })?;
    }
    Ok(())
}
