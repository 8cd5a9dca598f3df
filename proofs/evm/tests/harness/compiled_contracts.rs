//! Tests that the compiled contracts have the interface that known orders use.

use super::*;
use alloy_sol_types::SolError;

/// Selectors computed by ethers 6 from the interface's signatures, not by this crate's types.
const TOKEN_HTLC: [(&str, &str); 10] = [
    ("initiate(address,uint256,uint256,bytes32)", "97ffc7ae"),
    ("initiate(address,uint256,uint256,bytes32,bytes)", "4ede0ab7"),
    ("initiateOnBehalf(address,address,uint256,uint256,bytes32)", "13d4a787"),
    ("initiateOnBehalf(address,address,uint256,uint256,bytes32,bytes)", "a66a8641"),
    ("initiateWithSignature(address,address,uint256,uint256,bytes32,bytes)", "d4705e9e"),
    ("redeem(bytes32,bytes)", "f7ff7207"),
    ("refund(bytes32)", "7249fbb6"),
    ("orders(bytes32)", "9c3f1e90"),
    ("token()", "fc0c546a"),
    ("approve(address,uint256)", "095ea7b3"),
];

/// Returns every function of a compiled ABI with its selector.
fn functions(contract: &Contract<'_>) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let artefact = contract.artefact()?;
    let entries = artefact.abi.as_array().ok_or("the ABI is a list")?;
    let mut functions = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry["type"] == "function") {
        let name = entry["name"].as_str().ok_or("a function has a name")?;
        let inputs = entry["inputs"].as_array().ok_or("a function has inputs")?;
        let types: Option<Vec<&str>> = inputs.iter().map(|input| input["type"].as_str()).collect();
        let signature = format!("{name}({})", types.ok_or("an input has a type")?.join(","));
        let selector = hex::encode(&keccak256(&signature)[..4]);
        functions.insert(signature, selector);
    }
    Ok(functions)
}

#[test]
fn answer_to_the_selectors_of_the_interface() -> TestResult {
    let token = Contract::Token { symbol: "T", decimals: 0 };
    let stubborn = Contract::StubbornToken { symbol: "T", decimals: 0 };
    let htlc = Contract::Htlc { token: Address::ZERO, version: "3" };
    for (signature, selector) in TOKEN_HTLC {
        let holders: &[Contract<'_>] = if signature.starts_with("approve") {
            &[token, stubborn]
        } else if signature.starts_with("initiateWithSignature") {
            &[htlc]
        } else {
            &[htlc, Contract::NativeHtlc]
        };
        for contract in holders {
            let found = functions(contract)?.remove(signature);
            assert_eq!(found.as_deref(), Some(selector), "{signature} of {contract:?}");
            // The dispatcher compares the selector with a pushed constant. Leading zeros would be dropped, but no
            // selector has any.
            let pushed = hex::decode(format!("63{selector}"))?;
            let code = contract.artefact()?.deployed_bytecode;
            assert!(code.windows(5).any(|window| window == pushed), "{signature} in the code of {contract:?}");
        }
    }
    Ok(())
}

/// The selectors in `docs/spec/evm.md#errors`, of the token HTLC and of the native HTLC.
#[test]
fn revert_with_the_errors_of_the_interface() {
    let expected = [
        (Htlc::HTLC__DuplicateOrder::SELECTOR, hex!("90c06174")),
        (Htlc::HTLC__IncorrectSecret::SELECTOR, hex!("3dbd7ab4")),
        (Htlc::HTLC__OrderFulfilled::SELECTOR, hex!("356b842c")),
        (Htlc::HTLC__OrderNotExpired::SELECTOR, hex!("839f009c")),
        (Htlc::HTLC__OrderNotInitiated::SELECTOR, hex!("ca1eac12")),
        (Htlc::HTLC__InvalidInitiatorSignature::SELECTOR, hex!("3b3fd9ae")),
        (Htlc::HTLC__ZeroAddressInitiator::SELECTOR, hex!("5411490b")),
        (Htlc::HTLC__ZeroAddressRedeemer::SELECTOR, hex!("32a4beb3")),
        (Htlc::HTLC__ZeroAmount::SELECTOR, hex!("4d15835c")),
        (Htlc::HTLC__ZeroTimelock::SELECTOR, hex!("cb5d8501")),
        (NativeHtlc::NativeHTLC__OrderNotExpired::SELECTOR, hex!("221bb10a")),
        (NativeHtlc::NativeHTLC__IncorrectFundsRecieved::SELECTOR, hex!("a6fe390b")),
    ];
    for (actual, expected) in expected {
        assert_eq!(hex::encode(actual), hex::encode(expected));
    }
}

#[test]
fn the_rust_types_are_those_of_the_compiled_contracts() -> TestResult {
    let compiled = functions(&Contract::Htlc { token: Address::ZERO, version: "3" })?;
    let names = Htlc::HtlcCalls::SIGNATURES.iter().map(ToString::to_string);
    let declared: BTreeMap<String, String> = names.zip(Htlc::HtlcCalls::selectors().map(hex::encode)).collect();
    assert_eq!(declared, compiled);
    Ok(())
}

#[test]
fn all_come_from_one_compiler() -> TestResult {
    let contracts = [
        Contract::Token { symbol: "", decimals: 0 },
        Contract::StubbornToken { symbol: "", decimals: 0 },
        Contract::RegulatedToken { symbol: "", decimals: 0 },
        Contract::Vault,
        Contract::Htlc { token: Address::ZERO, version: "" },
        Contract::NativeHtlc,
    ];
    for contract in contracts {
        let artefact = contract.artefact()?;
        assert!(artefact.compiler.starts_with("solc 0.8.37+"), "{}", artefact.compiler);
        assert!(artefact.bytecode.len() > artefact.deployed_bytecode.len());
    }
    Ok(())
}
