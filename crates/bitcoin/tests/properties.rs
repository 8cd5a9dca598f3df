//! Properties: every change of a response is refused, is shown, or has no effect on what is signed. No text makes the library
//! panic.

use bitcoin::consensus::encode::{deserialize, serialize};
use bitcoin::{Transaction, script};
use countersign_bitcoin::address::Chain;
use countersign_bitcoin::htlc::{Htlc, Leaf, Tree};
use countersign_bitcoin::recover::Funding;
use countersign_bitcoin::{Bitcoin, ExternalSignature, FeeRate, Key, KeyOrigin};
use countersign_core::Code;
use countersign_core::chains::{BitcoinNet, Coin};
use countersign_testkit::{fixture, outcome};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const CHAINS: [Chain; 6] = [
    Chain { coin: Coin::Bitcoin, net: BitcoinNet::Main },
    Chain { coin: Coin::Bitcoin, net: BitcoinNet::Test },
    Chain { coin: Coin::Bitcoin, net: BitcoinNet::Regtest },
    Chain { coin: Coin::Litecoin, net: BitcoinNet::Main },
    Chain { coin: Coin::Litecoin, net: BitcoinNet::Test },
    Chain { coin: Coin::Litecoin, net: BitcoinNet::Regtest },
];

const INTERNAL_KEY: &str = "2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0";
const GENERATOR: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

/// With the record, only the exact address is accepted: each character is replaced by every other character.
fn bytes(hex: &str) -> Vec<u8> {
    hex::decode(hex).expect("hex")
}

fn array(hex: &str) -> [u8; 32] {
    bytes(hex).try_into().expect("32 bytes")
}

#[test]
fn every_character_of_the_address_counts() {
    for id in ["bitcoin-address", "bitcoin-address-litecoin", "bitcoin-delegate-search"] {
        let case = fixture::<Bitcoin>(id);
        let line = case.json();
        let to = line["response"]["result"]["to"].as_str().expect("an address").to_owned();
        for index in 0..to.len() {
            for other in "qpzry9x8gf2tvdw0s3jn54khce6mua7l1b0 ".chars().filter(|other| *other != to.as_bytes()[index] as char) {
                let mut changed = to.clone();
                changed.replace_range(index..=index, &other.to_string());
                let mut line = line.clone();
                line["response"]["result"]["to"] = json!(changed);
                let refusal = outcome::<Bitcoin>(&case.with_input(line.to_string())).expect_err("another address");
                assert_ne!(refusal.code(), Code::Internal, "{id}: {changed}");
            }
        }
    }
}

/// If a term of the record that the address depends on changes, the address is refused.
#[test]
fn every_term_of_the_record_is_bound() {
    let case = fixture::<Bitcoin>("bitcoin-delegate");
    for (member, value) in [
        ("timelock", json!(143)),
        ("timelock", json!(145)),
        ("secret_hash", json!("5a".repeat(32))),
        ("delegate", json!(GENERATOR)),
        ("redeemer", json!(GENERATOR)),
    ] {
        let mut line: Json = case.json();
        line["order"]["source_swap"][member] = value;
        outcome::<Bitcoin>(&case.with_input(line.to_string())).expect_err(member);
    }
}

proptest! {
    #[test]
    fn an_address_goes_to_its_script_and_back(program in prop::array::uniform32(any::<u8>()), kind in 0..5_u8) {
        let script = script::ScriptBuf::from_bytes(match kind {
            0 => [&[0x51, 0x20][..], &program].concat(),
            1 => [&[0x00, 0x20][..], &program].concat(),
            2 => [&[0x00, 0x14][..], &program[..20]].concat(),
            3 => [&[0xa9, 0x14][..], &program[..20], &[0x87]].concat(),
            _ => [&[0x76, 0xa9, 0x14][..], &program[..20], &[0x88, 0xac]].concat(),
        });
        for chain in CHAINS {
            let address = chain.address(&script).expect("an address");
            prop_assert_eq!(chain.script(&address, "").expect("the same"), script.clone());
            // Segwit addresses of the other coin are refused. Old script-hash and test addresses are valid on both coins.
            for other in CHAINS.iter().filter(|other| **other != chain && kind < 3) {
                prop_assert!(other.script(&address, "").is_err());
            }
        }
    }

    #[test]
    fn control_blocks_lead_to_the_output_key(secret_hash in prop::array::uniform32(any::<u8>()), timelock in 1..=u16::MAX) {
        let (internal_key, initiator) = (array(INTERNAL_KEY), array(GENERATOR));
        let tree = Tree::new(Htlc { internal_key, initiator, redeemer: internal_key, secret_hash, timelock }).expect("a point");
        let key = bitcoin::XOnlyPublicKey::from_slice(&tree.output.key).expect("a point");
        let secp = bitcoin::key::Secp256k1::verification_only();
        for leaf in [Leaf::Redeem, Leaf::Refund, Leaf::InstantRefund] {
            // The check of the BIP-341 commitment in the bitcoin crate.
            let control = bitcoin::taproot::ControlBlock::decode(&tree.control_block(leaf)).expect("a control block");
            prop_assert!(control.verify_taproot_commitment(&secp, key, &tree.script(leaf)));
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let _ = Key::parse(&text);
        let _ = FeeRate::parse(&text);
        let _ = Funding::parse(&text);
        let _ = text.parse::<ExternalSignature>();
        let _ = text.parse::<KeyOrigin>();
        for chain in CHAINS {
            let _ = chain.script(&text, "");
        }
    }

    #[test]
    fn no_member_panics(at in 0..12_usize, text in "[ -~]{0,80}") {
        const MEMBERS: [&str; 12] = [
            "/response/result/to", "/response/result/amount", "/wallet/fee_rate", "/wallet/change_address", "/wallet/secret_key",
            "/wallet/utxos/0/txid", "/wallet/utxos/0/value", "/wallet/utxos/0/script_pubkey", "/wallet/utxos/0/previous_tx",
            "/order/source_swap/delegate", "/order/source_swap/redeemer", "/order/source_swap/swap_id",
        ];
        let case = fixture::<Bitcoin>("bitcoin-p2pkh");
        let mut line = case.json();
        *line.pointer_mut(MEMBERS[at]).expect("a member") = json!(text);
        if let Err(refusal) = outcome::<Bitcoin>(&case.with_input(line.to_string())) {
            prop_assert_ne!(refusal.code(), Code::Internal);
        }
    }

    #[test]
    fn transactions_are_read_to_the_last_byte(extra in prop::collection::vec(any::<u8>(), 1..4)) {
        let case = fixture::<Bitcoin>("bitcoin-p2wpkh");
        let raw = bytes(case.whole().expect("JSON")["expect"]["artefacts"]["deposit"]["signed"].as_str().expect("hex"));
        let transaction: Transaction = deserialize(&raw).expect("a transaction");
        prop_assert_eq!(&serialize(&transaction), &raw);
        prop_assert!(deserialize::<Transaction>(&[raw, extra].concat()).is_err());
    }
}
