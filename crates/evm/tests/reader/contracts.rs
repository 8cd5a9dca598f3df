//! What a contract says of itself, and of which generation it is.

use countersign_core::reader::Fault;
use countersign_core::{EvmGeneration, U256};
use countersign_evm::alloy_primitives::{Address, hex, keccak256};
use countersign_evm::read::{self, Layout};
use countersign_evm::reader::{Contract, ContractDescription};
use countersign_testkit::abi;
use countersign_testkit::chain::evm::{LATEST, hash_of};
use serde_json::{Value, json};

use super::chain;
use super::questions::{OWNER, SPENDER, TOKEN, ask, error};

fn text(text: &str) -> Vec<u8> {
    abi::bytes(text.as_bytes())
}

fn domain(name: &str, version: &str) -> Vec<u8> {
    abi::domain(name, version, OWNER.into())
}

/// What a contract returns from its getters; `None` where it reverts.
struct Getters {
    code: Value,
    version: Option<Vec<u8>>,
    token: Option<Address>,
    domain: Option<Vec<u8>>,
}

fn describe(getters: &Getters) -> Result<ContractDescription, Fault> {
    let (outcome, asked) = ask::<_, Contract>(TOKEN, |method, params| {
        let answer =
            |answer: Option<Vec<u8>>| answer.map_or_else(|| error(3, "execution reverted"), |bytes| json!(hex::encode_prefixed(bytes)));
        match method {
            "eth_getCode" => getters.code.clone(),
            "eth_call" => match hex::decode(params[0]["data"].as_str().unwrap()).unwrap() {
                data if data == read::version_call() => answer(getters.version.clone()),
                data if data == read::token_call() => answer(getters.token.map(|token| token.into_word().to_vec())),
                data if data == read::domain_call() => answer(getters.domain.clone()),
                other => panic!("{other:?}"),
            },
            _ => chain().result(method, params),
        }
    });
    // Everything is asked of the contract, at one block.
    let newest = json!({"blockHash": hash_of(LATEST), "requireCanonical": true});
    assert!(asked[1..].iter().all(|(_, params)| params[1] == newest), "{asked:?}");
    assert!(asked[1..].iter().all(|(_, params)| params[0] == json!(TOKEN) || params[0]["to"] == json!(TOKEN)), "{asked:?}");
    outcome.map(|observation| {
        assert_eq!(observation.known().height().get(), LATEST);
        observation.into_output().0
    })
}

#[test]
fn a_contract_has_code_and_says_its_token_and_its_domain() {
    let v3 = || Getters { code: json!("0x6001"), version: Some(text("3")), token: Some(SPENDER), domain: Some(domain("HTLC", "3")) };
    let described = describe(&v3()).unwrap();
    assert_eq!((described.code_hash, described.version.as_deref()), (Some(keccak256([0x60, 1])), Some("3")));
    let said = described.domain.as_ref().unwrap();
    assert_eq!((said.name.as_str(), said.version.as_str(), said.chain_id, said.verifying_contract), ("HTLC", "3", U256::ONE, OWNER));
    assert_eq!((described.token, described.generation(None)), (Some(SPENDER), Some(EvmGeneration::V3)));
    // What a contract does not have is none of it.
    let empty = describe(&Getters { code: json!("0x"), version: None, token: None, domain: None }).unwrap();
    assert_eq!((empty.code_hash, empty.version.as_ref(), empty.token, empty.domain.as_ref()), (None, None, None, None));
    // A node that fails says nothing about the contract.
    let failed = describe(&Getters { code: error(-32_000, "missing trie node"), ..v3() });
    assert_eq!(failed.unwrap_err().code().name(), "node_error");
}

#[test]
fn the_length_of_what_a_contract_returns_is_limited() {
    let none = |code: Value| Getters { code, version: None, token: None, domain: None };
    let code = |length: usize| describe(&none(json!(hex::encode_prefixed(vec![0x60; length]))));
    assert_eq!(code(512 * 1024).unwrap().code_hash, Some(keccak256(vec![0x60; 512 * 1024])));
    assert_eq!(code(512 * 1024 + 1).unwrap_err().code().name(), "node_malformed");
    // Offset and length come before the text, which is padded to whole words: 4 KiB in all, and a word more.
    let version = |length: usize| describe(&Getters { version: Some(text(&"3".repeat(length))), ..none(json!("0x6001")) });
    assert_eq!(version(4 * 1024 - 64).unwrap().version, Some("3".repeat(4 * 1024 - 64)));
    assert_eq!(version(4 * 1024 - 63).unwrap_err().code().name(), "node_malformed");
}

/// The domain, the version and the token must all be those of one generation, and so must the layout of an order, if it is known.
#[test]
fn a_generation_is_what_nothing_contradicts() {
    type Row = (Option<&'static str>, &'static str, &'static str, bool, [Option<&'static EvmGeneration>; 3]);
    let (v3, old) = (Some(EvmGeneration::V3), Some(EvmGeneration::OLD));
    // Version, name and version of the domain, whether it has a token; the generation without a layout, with that of v3, with the older.
    let rows: [Row; 10] = [
        (Some("3"), "HTLC", "3", true, [v3, v3, None]),
        (Some("3"), "HTLC", "3", false, [None, None, None]),
        (Some("3"), "HTLC", "2", true, [None, None, None]),
        (Some("4"), "HTLC", "3", true, [None, None, None]),
        (Some("3"), "Other", "3", true, [None, None, None]),
        (None, "HTLC", "2", true, [old, None, old]),
        // The older contract for the chain's own coin has no token. Only an order shows that it is one.
        (None, "HTLC", "2", false, [None, None, old]),
        (None, "HTLC", "3", true, [None, None, None]),
        (None, "HTLC", "3", false, [None, None, None]),
        (None, "Other", "2", true, [None, None, None]),
    ];
    for (version, name, domain_version, has_token, expected) in rows {
        let getters = |code: &str| Getters {
            code: json!(code),
            version: version.map(text),
            token: has_token.then_some(SPENDER),
            domain: Some(domain(name, domain_version)),
        };
        let layouts = [None, Some(Layout::V3), Some(Layout::Older)];
        let described = describe(&getters("0x6001")).unwrap();
        assert_eq!(layouts.map(|layout| described.generation(layout)), expected, "{version:?} {name} {domain_version} {has_token}");
        let gone = describe(&getters("0x")).unwrap();
        assert_eq!(layouts.map(|layout| gone.generation(layout)), [None; 3]);
    }
}
