//! Bitcoin: the cost of verification compared with the single curve operation that it needs, and coin selection among
//! 10,000 coins.

use std::hint::black_box;

use countersign::bitcoin::bitcoin::hashes::Hash;
use countersign::bitcoin::bitcoin::{Amount, OutPoint, ScriptBuf, TxOut, Txid};
use countersign::bitcoin::htlc::{Htlc, Tree};
use countersign::bitcoin::{Bitcoin, FeeRate, Selection, TxContext, Utxo, VerifiedOrder};
use countersign::chains::taproot::tweak;
use countersign::{CreateOrder, Policy, Proposal, Registry};
use countersign_benches::{REGISTRY, case, criterion, member, rows, steps};
use secp256k1::{Scalar, Secp256k1, XOnlyPublicKey};

const CASES: &str = include_str!("../../fixtures/accept/bitcoin.jsonl");

const GROUP: &str = "bitcoin";
const NATIVE_TWEAK: &str = "libsecp256k1 tweak";
const RECORD: &str = "verify with the record";
const SEARCH: &str = "address searched, 37 blocks, second solver";
const COINS: &str = "10,000 coins, lowest fee";
const NO_MATCH: &str = "10,000 coins, a thousand needed";

fn main() {
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("fixture");
    let mut criterion = criterion();
    let mut group = criterion.benchmark_group(GROUP);
    steps::<Bitcoin>(&mut group, &case(CASES, "bitcoin-coins-without-record"), &registry);

    let with_record = verified(&case(CASES, "bitcoin-address"), &registry);
    let tree = with_record.deposit().tree.expect("recomputed");
    let (htlc, key): (Htlc, [u8; 32]) = (tree.htlc, tree.output.key);
    group.bench_function(rows::ADDRESS, |b| b.iter(|| Tree::new(black_box(htlc)).expect("a point").output.key == black_box(key)));
    group.bench_function(rows::TWEAK, |b| b.iter(|| tweak(black_box(htlc.internal_key), black_box(tree.output.merkle_root))));
    let secp = Secp256k1::new();
    let scalar = Scalar::from_be_bytes(tree.output.merkle_root).expect("below the order");
    group.bench_function(NATIVE_TWEAK, |b| {
        b.iter(|| XOnlyPublicKey::from_slice(black_box(&htlc.internal_key)).expect("a point").add_tweak(&secp, black_box(&scalar)))
    });
    for (name, id) in [(RECORD, "bitcoin-address"), (SEARCH, "bitcoin-delegate-search-second-solver")] {
        let line = case(CASES, id);
        group.bench_function(name, |b| b.iter(|| verified(black_box(&line), &registry)));
    }

    group.sample_size(20);
    // The values have no pattern, so branch and bound meets neither its best nor its worst case.
    let many = |small: u64| (0..10_000_u64).map(move |index| small + index.wrapping_mul(2_654_435_761) % (small * 10));
    for (name, small) in [(COINS, 1_000), (NO_MATCH, 5)] {
        let utxos: Vec<_> = (0..).zip(many(small)).map(|(index, value)| coin(index, value + 90)).collect();
        let wallet = TxContext::new(utxos, CHANGE, FeeRate::from_whole(1)).with_selection(Selection::LowestFee);
        group.bench_function(name, |b| {
            b.iter_batched(
                || wallet.clone(),
                |wallet| drop(with_record.prepare(black_box(wallet)).expect("prepare")),
                criterion::BatchSize::SmallInput,
            )
        });
    }
    group.finish();
    criterion.final_summary();
}

const CHANGE: &str = "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx";

fn coin(index: u32, value: u64) -> Utxo {
    let script_pubkey = ScriptBuf::from_bytes([&[0x00, 0x14][..], &[9; 20]].concat());
    let output = TxOut { value: Amount::from_sat(value), script_pubkey };
    Utxo::new(OutPoint { txid: Txid::from_byte_array([7; 32]), vout: index }, output).expect("p2wpkh")
}

fn verified(line: &str, registry: &Registry) -> VerifiedOrder {
    let policy = Policy::default();
    let [request, response] = ["request", "response"].map(|name| member(line, name));
    let record = line.contains("\"order\":").then(|| member(line, "order"));
    let request = CreateOrder::from_json(request.as_bytes()).expect("a request");
    let mut proposal = Proposal::new(&request, response.as_bytes());
    if let Some(record) = &record {
        proposal = proposal.with_record(record.as_bytes());
    }
    countersign::bitcoin::verify(proposal, registry, &policy).expect("verify")
}
