//! Cases whose artefacts were made by ethers (`fixtures/README.md`): each must be accepted and give the same bytes.

use countersign_evm::Evm;
use countersign_testkit::lines::{run, warning_codes};
use countersign_testkit::{TestResult, Tree, accept, fixture};
use serde_json::Value;

#[test]
fn fixtures_give_their_artefacts() -> TestResult {
    accept::fixtures_give_their_artefacts::<Evm>(103)
}

#[test]
fn shared_vectors_give_their_artefacts() -> TestResult {
    accept::shared_vectors_give_their_artefacts::<Evm>()
}

/// The last value on the right side of a limit is accepted, and nothing is said about it.
#[test]
fn what_is_just_within_a_limit_is_accepted_in_silence() {
    let transaction = "/response/result/initiate_transaction";
    for (base, at, value, warning) in [
        ("evm-native-typed-data-null", format!("{transaction}/gas_limit"), "\"0x5208\"", ""),
        ("evm-native-typed-data-null", format!("{transaction}/gas_limit"), "\"0x1c9c380\"", ""),
        ("evm-native-typed-data-null", "/wallet/nonce".to_owned(), "18446744073709551614", ""),
        ("evm-token-approval-exact", "/wallet/nonce".to_owned(), "18446744073709551613", ""),
        ("evm-token-approval-exact", "/wallet/max_priority_fee_per_gas".to_owned(), "\"30000000000\"", ""),
        ("evm-token-approval-exact", "/wallet/chain_id".to_owned(), "8453", ""),
        ("evm-token-approval-exact", "/wallet/chain_id".to_owned(), "\"0x2105\"", ""),
        ("evm-token-approval-exact", "/request/slippage".to_owned(), "10000", ""),
        ("evm-token-approval-exact", "/request/destination/amount".to_owned(), "\"18446744073709551615\"", "amount_outside_limits"),
        // 86400 s on the source side, 2 s a block on the destination's: exactly half is not close yet.
        ("evm-record-evm-v1", "/order/destination_swap/timelock".to_owned(), "21600", "destination_timelock_close"),
        ("evm-record-evm-v1", "/order/destination_swap/timelock".to_owned(), "1", "destination_timelock_close"),
    ] {
        let mut line = fixture::<Evm>(base).tree();
        line.set(&at, Tree::parse(value));
        let got = run(&line.text());
        assert_eq!(got["ok"], Value::Bool(true), "{base}: {at} of {value}: {}", got["error"]);
        assert!(warning.is_empty() || !warning_codes(&got).contains(&warning), "{base}: {at} of {value}");
    }
}
