//! Tests headers and storage proofs: what they prove, and that anything else neither proves nor contradicts anything.

use countersign_core::reader::Fault;
use countersign_core::{Finding, HtlcState, HtlcTerms, U256};
use countersign_evm::alloy_consensus::Header;
use countersign_evm::alloy_primitives::{Address, B64, B256, Bloom, Bytes};
use countersign_testkit::chain::evm::{Evm as EvmChain, LATEST};
use serde_json::{Value, json};

use super::{assert_fault, chain, is_orders, leg, read_lie, words};

/// A chain whose storage can be proven.
fn proving() -> EvmChain {
    chain().proving(&leg())
}

/// A header of the newest block with every field of Ethereum's, each with a value of its own.
fn full_header(chain: &EvmChain) -> Header {
    let state_root: B256 = serde_json::from_value(chain.block(LATEST)["stateRoot"].clone()).unwrap();
    Header {
        parent_hash: B256::repeat_byte(0x11),
        ommers_hash: B256::repeat_byte(0x12),
        beneficiary: Address::repeat_byte(0x13),
        state_root,
        transactions_root: B256::repeat_byte(0x14),
        receipts_root: B256::repeat_byte(0x15),
        logs_bloom: Bloom::repeat_byte(0x16),
        difficulty: U256::from(0x17),
        number: LATEST,
        gas_limit: 0x18,
        gas_used: 0x19,
        timestamp: chain.time,
        extra_data: Bytes::from_static(&[0x1a; 32]),
        mix_hash: B256::repeat_byte(0x1b),
        nonce: B64::repeat_byte(0x1c),
        base_fee_per_gas: Some(0x1d),
        withdrawals_root: Some(B256::repeat_byte(0x1e)),
        blob_gas_used: Some(0x1f),
        excess_blob_gas: Some(0x20),
        parent_beacon_block_root: Some(B256::repeat_byte(0x21)),
        requests_hash: Some(B256::repeat_byte(0x22)),
        ..Header::default()
    }
}

/// Reads the order from an endpoint that proves it with this header of the newest block, but says that it holds one unit more.
fn read_larger(header: &Header, change: impl Fn(&mut Value)) -> Result<Finding, Fault> {
    let chain = proving();
    let mut block = serde_json::to_value(header).unwrap();
    block["hash"] = json!(header.hash_slow());
    change(&mut block);
    let mut larger = chain.order.unwrap();
    larger[4] += U256::ONE;
    read_lie(&chain, &leg(), |method, params| match method {
        "eth_getBlockByNumber" if params[0] == "latest" => Some(block.clone()),
        "eth_getProof" => Some(chain.result(method, &json!([params[0], params[1], {"blockHash": chain.hash(LATEST)}]))),
        _ => is_orders(method, params).then(|| words(&larger)),
    })
}

/// Requires that nothing contradicts the larger order.
#[track_caller]
fn assert_larger(outcome: Result<Finding, Fault>, why: &str) {
    let state = outcome.unwrap().state;
    let HtlcState::Locked(locked) = &state else { panic!("{why}: {state:?}") };
    assert_eq!(locked.amount, leg().amount + U256::ONE, "{why}");
}

/// Flips the last bit of a text in hex.
fn flip(text: &str) -> String {
    let (rest, last) = text.split_at(text.len() - 1);
    format!("{rest}{:x}", u8::from_str_radix(last, 16).unwrap() ^ 1)
}

/// E5
#[test]
fn a_header_proves_its_state_root_by_every_field() {
    let full = full_header(&proving());
    assert_fault(read_larger(&full, |_| {}), "node_malformed");
    let block = serde_json::to_value(&full).unwrap();
    let members: Vec<_> = block.as_object().unwrap().keys().cloned().collect();
    assert_eq!(members.len(), 21);
    for member in members {
        assert_larger(read_larger(&full, |block| block[&member] = json!(flip(block[&member].as_str().unwrap()))), &member);
    }
    assert_larger(read_larger(&full, |block| block["hash"] = json!(B256::repeat_byte(7))), "hash");
}

/// The fields that a fork added are absent before it.
#[test]
fn a_header_of_every_fork_proves_its_state_root() {
    let prague = full_header(&proving());
    let cancun = Header { requests_hash: None, ..prague.clone() };
    let shanghai = Header { blob_gas_used: None, excess_blob_gas: None, parent_beacon_block_root: None, ..cancun.clone() };
    let london = Header { withdrawals_root: None, ..shanghai.clone() };
    let berlin = Header { base_fee_per_gas: None, ..london.clone() };
    for header in [prague.clone(), cancun, shanghai, london, berlin] {
        assert_fault(read_larger(&header, |_| {}), "node_malformed");
    }
    // The fields of a later fork are not read, so what has one is not proven by the others.
    for (member, value) in [("blockAccessListHash", json!(B256::ZERO)), ("slotNumber", json!("0x1"))] {
        assert_larger(read_larger(&prague, |block| block[member] = value.clone()), member);
    }
}

/// Chains that store validator sets in `extraData` are read up to a limit.
#[test]
fn the_extra_data_of_a_header_has_at_most_16_kib() {
    let with = |length: usize| read_larger(&Header { extra_data: vec![0x1a; length].into(), ..full_header(&proving()) }, |_| {});
    assert_fault(with(16 * 1024), "node_malformed");
    assert_larger(with(16 * 1024 + 1), "too long");
}

/// Reads the stored order with another answer to `eth_getProof`.
fn read_proof(chain: &EvmChain, terms: &HtlcTerms, change: impl Fn(&mut Value)) -> Result<Finding, Fault> {
    read_lie(chain, terms, |method, params| {
        (method == "eth_getProof").then(|| {
            let mut proof = chain.result(method, params);
            change(&mut proof);
            proof
        })
    })
}

/// E5
#[test]
fn only_what_is_proven_contradicts_the_call() {
    type Change = (&'static str, fn(&mut Value));
    let changes: [Change; 9] = [
        ("a value that no proof belongs to", |proof| proof["storageProof"][4]["value"] = json!("0x1")),
        ("zero, with the proof of another value", |proof| proof["storageProof"][4]["value"] = json!("0x0")),
        ("a value, with the proof that there is none", |proof| proof["storageProof"][5]["value"] = json!("0x1")),
        ("the proof of another slot", |proof| proof["storageProof"][4]["proof"] = proof["storageProof"][3]["proof"].clone()),
        ("a slot too few", |proof| drop(proof["storageProof"].as_array_mut().unwrap().pop())),
        ("a slot too many", |proof| {
            let slots = proof["storageProof"].as_array_mut().unwrap();
            slots.push(slots[5].clone());
        }),
        ("no proof of the account", |proof| proof["accountProof"] = json!([])),
        ("another account", |proof| proof["balance"] = json!("0x6")),
        ("another storage", |proof| proof["storageHash"] = json!(B256::ZERO)),
    ];
    let (chain, terms) = (proving(), leg());
    let honest = read_proof(&chain, &terms, |_| {}).unwrap();
    assert!(matches!(honest.state, HtlcState::Locked(_)));
    for (why, change) in changes {
        // The answer to the call is the honest one, and what is not proven does not make it a lie.
        assert_eq!(read_proof(&chain, &terms, change).unwrap(), honest, "{why}");
        let mut larger = chain.order.unwrap();
        larger[4] += U256::ONE;
        let outcome = read_lie(&chain, &terms, |method, params| match method {
            "eth_getProof" => {
                let mut proof = chain.result(method, params);
                change(&mut proof);
                Some(proof)
            }
            _ => is_orders(method, params).then(|| words(&larger)),
        });
        assert_larger(outcome, why);
    }
}
