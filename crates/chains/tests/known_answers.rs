//! Swap ids and HTLC addresses, compared with the values that the live service computed, if that collection is there.
#![cfg(test)]

use countersign_chains::swap_id::{self, StarknetFormula, SwapIdInput, Version};
use countersign_chains::taproot::Htlc;
use countersign_chains::{BitcoinNet, Coin, Network, address};
use ruint::aliases::U256;
use serde_json::Value;

fn known_answers() -> Option<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/known_answers.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: the collection of the service's own values is not there");
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}

fn bytes(value: &Value) -> [u8; 32] {
    hex::decode(value.as_str().unwrap()).unwrap().try_into().unwrap()
}

fn each<'a>(all: &'a Value, name: &str, at_least: usize) -> &'a [Value] {
    let cases = all[name].as_array().unwrap();
    assert!(cases.len() >= at_least, "{name}: {}", cases.len());
    cases
}

fn account(network: &Network, case: &Value, field: &str) -> Vec<u8> {
    address::parse(network, case[field].as_str().unwrap()).unwrap().bytes().to_vec()
}

fn amount(case: &Value) -> U256 {
    case["amount"].as_str().unwrap().parse().unwrap()
}

#[test]
fn every_bitcoin_record_gives_its_address() {
    let Some(all) = known_answers() else { return };
    let internal_key = bytes(&all["bitcoin_internal_key"]["x_only"]);
    for case in each(&all, "bitcoin_htlc", 10) {
        let htlc = Htlc {
            internal_key,
            initiator: bytes(&case["initiator_xonly"]),
            redeemer: bytes(&case["redeemer_xonly"]),
            secret_hash: bytes(&case["secret_hash"]),
            timelock: u16::try_from(case["timelock_blocks"].as_u64().unwrap()).unwrap(),
        };
        assert_eq!(htlc.address(Coin::Bitcoin, BitcoinNet::Test).unwrap(), case["address"].as_str().unwrap());
        let (output, steps) = (htlc.output().unwrap(), &case["intermediate"]);
        assert_eq!(output.redeem_leaf, bytes(&steps["redeem_leaf"]));
        assert_eq!(output.refund_leaf, bytes(&steps["refund_leaf"]));
        assert_eq!(output.instant_refund_leaf, bytes(&steps["instant_refund_leaf"]));
        assert_eq!(output.merkle_root, bytes(&steps["merkle_root"]));
        assert_eq!(hex::encode(htlc.refund_script()), steps["refund_script"].as_str().unwrap());
    }
}

#[test]
fn every_evm_record_gives_its_swap_id() {
    let Some(all) = known_answers() else { return };
    for case in each(&all, "evm_swap_id", 4) {
        let chain_id = case["chain_id"].as_u64().unwrap();
        let network = Network::Evm(chain_id);
        let version = Version::parse(case["htlc_version"].as_str().unwrap()).unwrap();
        let htlc = case.get("htlc_contract").map(|_| account(&network, case, "htlc_contract")).unwrap_or_default();
        let id = swap_id::evm(
            version,
            chain_id,
            &SwapIdInput {
                secret_hash: &bytes(&case["secret_hash"]),
                initiator: &account(&network, case, "initiator"),
                redeemer: &account(&network, case, "redeemer"),
                timelock: case["timelock"].as_u64().unwrap(),
                amount: amount(case),
            },
            &htlc,
        );
        assert_eq!(hex::encode(id), case["swap_id"].as_str().unwrap());
    }
}

#[test]
fn every_starknet_record_gives_its_swap_id() {
    let Some(all) = known_answers() else { return };
    for case in each(&all, "starknet_swap_id", 2) {
        let chain_id = case["chain_id_shortstring"].as_str().unwrap();
        let network = Network::Starknet(chain_id.to_owned());
        let swap = SwapIdInput {
            secret_hash: &bytes(&case["secret_hash"]),
            initiator: &account(&network, case, "initiator"),
            redeemer: &account(&network, case, "redeemer"),
            timelock: case["timelock"].as_u64().unwrap(),
            amount: amount(case),
        };
        let [id] = swap_id::starknet(StarknetFormula::Terms, chain_id, &swap, &[])[..] else { panic!("one id") };
        assert_eq!(hex::encode(id).trim_start_matches('0'), case["swap_id"].as_str().unwrap());
    }
}

/// The ids of one order in contracts of three generations. They were computed with starknet.js; that of November 2025 is also what
/// the contract's own tests expect.
#[test]
fn each_generation_of_the_starknet_contract_has_its_own_id() {
    let network = Network::Starknet("SN_SEPOLIA".to_owned());
    let account = |text: &str| address::parse(&network, text).unwrap().bytes().to_vec();
    let secret_hash: [u8; 32] =
        hex::decode("630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd").unwrap().try_into().unwrap();
    let (initiator, redeemer, htlc) = (
        account("0x00609190b1348bcc06da44d58c79709495c11a5a6f0b9e154e1209f2a17dd933"),
        account("0x078f8ae98fe78b5df9d3755b5910864c028d5249b4af685eb45687b1b76a4205"),
        account("0x06579d255314109429a4477d89629bc2b94f529ae01979c2f8014f9246482603"),
    );
    let swap =
        SwapIdInput { secret_hash: &secret_hash, initiator: &initiator, redeemer: &redeemer, timelock: 2880, amount: U256::from(50_000) };
    for (formula, expected) in [
        (StarknetFormula::Initiator, "1b2f4e33b3b7cec5765451c607c2a8d3cce76ce7282039d5c90fa52078015e5"),
        (StarknetFormula::Terms, "7ff785323e5cb9ee7569575db24731ccf1636561ac82082e4ad7b27c666695"),
        (StarknetFormula::TermsAndContract, "623679b75a7e464b2f857e6d9938cc43cb7e7ee7f6c0e8a742b0981bd07b052"),
    ] {
        let [id] = swap_id::starknet(formula, "SN_SEPOLIA", &swap, &htlc)[..] else { panic!("{formula:?}: one id") };
        assert_eq!(hex::encode(id).trim_start_matches('0'), expected, "{formula:?}");
        // On another chain the oldest contract can have either name.
        let elsewhere = swap_id::starknet(formula, "SN_MAIN", &swap, &htlc);
        assert_eq!(elsewhere.contains(&id), formula == StarknetFormula::Initiator, "{formula:?}");
        assert_eq!(elsewhere.len(), if formula == StarknetFormula::Initiator { 2 } else { 1 }, "{formula:?}");
        for chain_id in ["", "a short string has at most 31 bytes", "é"] {
            assert!(swap_id::starknet(formula, chain_id, &swap, &htlc).is_empty(), "{chain_id:?}");
        }
    }
}

#[test]
fn every_solana_record_gives_its_swap_id() {
    let Some(all) = known_answers() else { return };
    let network = Network::Solana("testnet".into());
    for case in each(&all, "solana_swap_id", 2) {
        let (chain_id, certain) = swap_id::solana_chain_id("testnet").unwrap();
        assert!(certain);
        assert_eq!(Some(chain_id), case["chain_id"].as_u64());
        let id = swap_id::solana(chain_id, &bytes(&case["secret_hash"]), &account(&network, case, "initiator"));
        assert_eq!(hex::encode(id), case["swap_id"].as_str().unwrap());
    }
}

#[test]
fn every_sui_record_gives_its_swap_id() {
    let Some(all) = known_answers() else { return };
    let network = Network::Sui("testnet".into());
    for case in each(&all, "sui_swap_id", 2) {
        let id = swap_id::sui(
            &SwapIdInput {
                secret_hash: &bytes(&case["secret_hash"]),
                initiator: &account(&network, case, "initiator"),
                redeemer: &account(&network, case, "redeemer"),
                timelock: case["timelock_ms"].as_u64().unwrap(),
                amount: amount(case),
            },
            &account(&network, case, "registry_object"),
        );
        assert_eq!(hex::encode(id.unwrap()), case["swap_id"].as_str().unwrap());
    }
}

/// One swap by each formula of EVM contracts. The values were computed by ethers 6.17.0.
#[test]
fn one_evm_swap_has_an_id_by_each_formula() {
    let [initiator, redeemer, htlc] = [
        "4cd3fb4a504cc978f316a81dc5165d2c5b30592d",
        "661ba32eb5f86cab358ddbb7f264b10c5825e2dd",
        "d1e0ba2b165726b3a6051b765d4564d030fdcf50",
    ]
    .map(|digits| hex::decode(digits).unwrap());
    let secret_hash = bytes(&"630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd".into());
    let swap =
        SwapIdInput { secret_hash: &secret_hash, initiator: &initiator, redeemer: &redeemer, timelock: 7_200, amount: U256::from(50_000) };
    let by_version = |version| hex::encode(swap_id::evm(version, 11_155_111, &swap, &htlc));
    assert_eq!(by_version(Version::V1), "1b0b11da7256ef8b3c2a9dc85c1345eb10c71a223623fd1739a99b1f91b85d7e");
    assert_eq!(by_version(Version::V2), "96e95421a866093b68228d2f1b5dae9eb383ff2d6a5653f2074c38eed9f7e2bf");
    assert_eq!(by_version(Version::V3), "fadfb5a04c28b5da2a59a2a1496a13697e2ee29032d80ceee30ea75f3f642274");
    assert_eq!(by_version(Version::Source2024), "a7ecf125c13d33361869ab79f036c33e6543923ae6862284ece1f52be492dee6");
}
