//! The cost of evidence without the network: decoding what a chain says about one HTLC, and judging it
//! (`cargo bench --bench evidence`). There is no aim for any family. A driver that follows 1,000 orders does this several
//! dozen times per second.

use std::hint::black_box;
use std::time::Duration;

use countersign::bitcoin::bitcoin::consensus::encode::serialize;
use countersign::bitcoin::bitcoin::{Amount, OutPoint, Sequence, Transaction, TxIn, TxOut, absolute, transaction};
use countersign::bitcoin::chain;
use countersign::bitcoin::htlc::{Htlc, Tree};
use countersign::bitcoin::recover::Funding;
use countersign::chains::UnixTime;
use countersign::evm::alloy_primitives::{Address, B256, hex};
use countersign::evm::read as evm;
use countersign::solana::read as solana;
use countersign::starknet::{Felt, read as starknet};
use countersign::sui::read as sui;
use countersign::{
    Funded, Policy, Registry, SecretHash, U256,
    chains::{Finality, FinalityRule},
    evidence::VerifiedTerms,
    json,
    trust::StarknetGeneration,
    verify_record,
};
use countersign_benches::{REGISTRY, case, criterion};
use countersign_client::{Request, Response, Transport, TransportError};
use countersign_json::line::Case;
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
use criterion::Criterion;
use futures_util::FutureExt;
use serde_json::{Value, json as json_value};

const CASES: &str = include_str!("../../fixtures/accept/evm.jsonl");
const SUI: &str = include_str!("../../fixtures/chain/sui.json");
const RULE: FinalityRule = FinalityRule::new(Finality::Safe, 64, 50);
const NOW: u64 = 1_800_000_000;
const INITIATED: u64 = 21_000_000;
const LATEST: u64 = INITIATED + 99;

/// Returns the verified terms of an order with both sides on one EVM chain.
fn terms(registry: &Registry) -> VerifiedTerms {
    let line = case(CASES, "evm-record-same-chain");
    let value = json::parse(line.as_bytes()).expect("JSON");
    let proposal = Case::from_value(&value).and_then(|case| case.proposal()).expect("a case");
    verify_record(proposal, registry, &Policy::default()).expect("a record").terms
}

/// Returns the six words of an open order in the storage layout of version 3.
fn words(terms: &VerifiedTerms) -> Vec<u8> {
    let leg = &terms.destination;
    let party = |bytes: &[u8]| U256::from_be_slice(bytes);
    let words = [
        party(leg.initiator.bytes()),
        party(leg.redeemer.bytes()),
        U256::from(INITIATED),
        U256::from(leg.timelock),
        leg.amount,
        U256::ZERO,
    ];
    words.iter().flat_map(U256::to_be_bytes::<32>).collect()
}

/// A node in memory with a single order.
struct Node {
    words: String,
    token: String,
    holds: String,
}

impl Node {
    fn result(&self, call: &Value) -> Value {
        let block = |number: u64| json_value!({"number": format!("{number:#x}"), "hash": format!("{number:#066x}"), "timestamp": format!("{NOW:#x}")});
        match call["method"].as_str().expect("a method") {
            "eth_chainId" => json_value!("0x1"),
            "eth_getBlockByNumber" => match call["params"][0].as_str().expect("a tag") {
                "latest" => block(LATEST),
                "safe" => block(LATEST - 32),
                "finalized" => block(LATEST - 64),
                number => block(u64::from_str_radix(&number[2..], 16).expect("a number")),
            },
            "eth_call" => {
                let data = hex::decode(call["params"][0]["data"].as_str().expect("calldata")).expect("hex");
                match &data[..4] {
                    selector if *selector == evm::orders_call([0; 32])[..4] => json_value!(self.words),
                    selector if *selector == evm::token_call()[..] => json_value!(self.token),
                    _ => json_value!(self.holds),
                }
            }
            _ => Value::Null,
        }
    }
}

impl Transport for Node {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let calls: Value = serde_json::from_slice(request.body.as_ref().expect("a body")).expect("JSON");
        let reply = |call: &Value| json_value!({"jsonrpc": "2.0", "id": call["id"], "result": self.result(call)});
        let replies = match &calls {
            Value::Array(calls) => Value::Array(calls.iter().map(reply).collect()),
            call => reply(call),
        };
        Ok(Response::new(200, replies.to_string()))
    }

    async fn sleep(&self, _: Duration) {}

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(NOW)
    }
}

/// Returns a transaction that funds an HTLC, and the HTLC's script tree.
fn payment() -> (Vec<u8>, Transaction, Tree) {
    let key = |digit: u8| {
        let secret = countersign::bitcoin::bitcoin::secp256k1::SecretKey::from_slice(&[digit; 32]).expect("a key");
        secret.x_only_public_key(&countersign::bitcoin::bitcoin::secp256k1::Secp256k1::new()).0.serialize()
    };
    let htlc = Htlc { internal_key: key(1), initiator: key(2), redeemer: key(3), secret_hash: [7; 32], timelock: 144 };
    let tree = Tree::new(htlc).expect("an HTLC");
    let input = TxIn { previous_output: OutPoint::null(), sequence: Sequence::MAX, ..TxIn::default() };
    let output = |value, script_pubkey| TxOut { value: Amount::from_sat(value), script_pubkey };
    let paying = Transaction {
        version: transaction::Version::TWO,
        lock_time: absolute::LockTime::ZERO,
        input: vec![input; 3],
        output: vec![output(100_000, tree.script_pubkey()), output(5_000, tree.script_pubkey().to_p2sh())],
    };
    (serialize(&paying), paying, tree)
}

fn evidence(c: &mut Criterion) {
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("a registry");
    let terms = terms(&registry);
    let mut group = c.benchmark_group("evidence");

    let words = words(&terms);
    let leg = &terms.destination;
    let word = |address: &str| address.parse::<Address>().expect("an address").into_word().to_string();
    let node = Node {
        words: hex::encode_prefixed(&words),
        token: word(leg.token.as_deref().expect("a token")),
        holds: hex::encode_prefixed(leg.amount.to_be_bytes::<32>()),
    };
    let endpoint = Endpoint::parse("https://node.example").expect("an endpoint");
    let config = NodeConfig::new().with("ethereum", Endpoints::new(vec![endpoint]).expect("endpoints"));
    let nodes = Nodes::new(node, config, &registry);
    let look = || nodes.htlc(leg).now_or_never().expect("at once").expect("read");
    let quorum = look();
    group.bench_function("judged", |b| {
        b.iter(|| Funded::judge(black_box(&terms), &quorum, &RULE, UnixTime::from_secs(NOW)).expect("funded"))
    });

    group.bench_function("EVM order decoded", |b| b.iter(|| evm::order(black_box(&words)).expect("an order")));
    let secret = [0x7e; 32];
    let topics = [evm::REDEEMED, B256::ZERO, SecretHash::of(&secret).0.into()];
    let mut data: Vec<u8> = [U256::from(32), U256::from(32)].iter().flat_map(U256::to_be_bytes::<32>).collect();
    data.extend(secret);
    group.bench_function("EVM redemption decoded", |b| b.iter(|| evm::event(black_box(&topics), &data).expect("an event")));

    let felts: Vec<Felt> = [0_u64, 2, 3, INITIATED, 2_880, 1_000, 0].map(Felt::from).into();
    let generation = StarknetGeneration::NOVEMBER_2025;
    group.bench_function("Starknet order decoded", |b| b.iter(|| starknet::order(generation, black_box(&felts)).expect("an order")));

    let mut account = vec![0; 120];
    account[..8].copy_from_slice(&[0x35, 0x7e, 0x09, 0x0e, 0x0e, 0xc5, 0x69, 0xb6]);
    account[8..16].copy_from_slice(&1_000_u64.to_le_bytes());
    account[16..24].copy_from_slice(&400_000_000_u64.to_le_bytes());
    account[24..].fill(9);
    group.bench_function("Solana account decoded", |b| b.iter(|| solana::swap_account(black_box(&account)).expect("an account")));

    let made: Value = serde_json::from_str(SUI).expect("JSON");
    let object_type = made["order"]["object_type"].as_str().expect("a type");
    let contents = hex::decode(made["order"]["open"].as_str().expect("contents")).expect("hex");
    group.bench_function("Sui object decoded", |b| b.iter(|| sui::order(black_box(object_type), &contents).expect("an order")));

    let (raw, paying, tree) = payment();
    let txid = paying.compute_txid();
    group.bench_function("Bitcoin payment parsed and found", |b| {
        b.iter(|| {
            let transaction = chain::parse_transaction(black_box(&raw), txid).expect("a transaction");
            Funding::from_transaction(&transaction, &tree)
        });
    });
    group.bench_function("EVM order looked at, nothing new", |b| b.iter(look));
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    evidence(&mut criterion);
    criterion.final_summary();
}
