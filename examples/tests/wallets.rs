//! Every example wallet runs to completion and prints what it demonstrates.
#![cfg(test)]

use std::process::Command;

/// Runs an example and returns what it printed.
fn run(program: &str) -> String {
    let output = Command::new(program).output().expect("the example starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(output.status.success(), "{program}: {err}");
    out
}

macro_rules! runs {
    ($($name:ident: $($says:literal),+;)*) => {
        $(#[test]
        fn $name() {
            let printed = run(env!(concat!("CARGO_BIN_EXE_", stringify!($name))));
            for says in [$($says),+] {
                assert!(printed.contains(says), "no {says:?} in\n{printed}");
            }
        })*
    };
}

runs! {
    evm_alloy: "broadcast approval 0x", "broadcast initiate 0x", "send to the service: 0x";
    evm_browser: "wallet_sendCalls {\"version\":\"2.0.0\"", "the wallet sent the approval", "the wallet sent the initiate", "EIP712Domain";
    solana_keypair: "send to the service: ", "broadcast initiate ";
    starknet_account: "the account sent the initiate with 2 calls", "send to the service: ";
    sui_sponsored: "of the sponsor: gas and 0 MIST", "still missing: [Sponsor]", "with 2 signatures";
    bitcoin_psbt: "it pays the deposit: initiate";
    measure_alloy: "honest orders: 1", " signed with the right bytes, 0 not", "tampered orders: ", "alloy: ";
    multichain: "(evm)", "(solana)", "(bitcoin)", "amount_mismatch at /response/result/initiate_transaction/data#68-100", "blame: service";
}
