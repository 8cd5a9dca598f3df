//! An EVM chain with one order, in memory. No time passes.

mod view;

use alloy_trie::proof::ProofRetainer;
use alloy_trie::{HashBuilder, KECCAK_EMPTY, Nibbles, TrieAccount};
use countersign_core::reader::{Answer, Request, RpcError};
use countersign_core::{HtlcTerms, Policy, SecretHash, VerifiedTerms, json, verify_record};
use countersign_evm::alloy_consensus::Header;
use countersign_evm::alloy_primitives::{Address, B256, Bloom, Bytes, U256, hex, keccak256};
use countersign_evm::{Evm as Family, address, read};
use countersign_json::line::Case as JsonCase;
use serde_json::{Value, json};

use crate::{abi, fixture, registry};

pub(crate) use self::view::moment;

/// The caller's clock.
pub const NOW: u64 = 1_800_000_000;
pub const SECRET: [u8; 32] = [0x7e; 32];
/// The block in which the order was initiated.
pub const INITIATED: u64 = 21_000_000;
/// The newest block.
pub const LATEST: u64 = INITIATED + 99;

/// A chain with one order.
#[derive(Debug, Clone)]
pub struct Evm {
    pub chain_id: u64,
    pub latest: u64,
    /// Unix seconds of the newest block.
    pub time: u64,
    /// Milliseconds from one block to the next. Their times are whole seconds.
    pub block_millis: u64,
    pub safe: Option<u64>,
    pub finalized: Option<u64>,
    /// The six words of the order.
    pub order: Option<[U256; 6]>,
    pub initiated: u64,
    pub htlc: Address,
    pub token: Address,
    pub holds: U256,
    pub logs: Vec<Value>,
    /// The height of the chain below at the newest block, where headers show one.
    pub l1_number: Option<u64>,
    /// The slots of the order, on a chain whose headers and storage can be proven.
    pub slots: Option<[B256; 6]>,
}

/// The hash of a block of a chain whose headers cannot be proven.
pub fn hash_of(number: u64) -> B256 {
    keccak256(number.to_be_bytes())
}

fn word(address: Address) -> U256 {
    address.into_word().into()
}

impl Evm {
    /// Creates a chain with an order that is funded according to its terms.
    pub fn funded(terms: &HtlcTerms) -> Self {
        let account = |account| word(address::from_account(account).expect("an address"));
        let order = [
            account(&terms.initiator),
            account(&terms.redeemer),
            U256::from(INITIATED),
            U256::from(terms.timelock),
            terms.amount,
            U256::ZERO,
        ];
        Self {
            chain_id: 1,
            latest: LATEST,
            time: NOW - 5,
            block_millis: 12_000,
            safe: Some(LATEST - 32),
            finalized: Some(LATEST - 64),
            order: Some(order),
            initiated: INITIATED,
            htlc: address::from_account(terms.htlc.as_ref().expect("an HTLC")).expect("an address"),
            token: terms.token.as_ref().map_or(read::NATIVE, |token| token.parse().expect("an address")),
            holds: terms.amount,
            logs: Vec::new(),
            l1_number: None,
            slots: None,
        }
    }

    /// Makes headers hash as on Ethereum, and answers `eth_getProof`.
    pub fn proving(mut self, terms: &HtlcTerms) -> Self {
        self.slots = Some(read::slots(id(terms).0, if terms.token.is_none() { 2 } else { 4 }));
        self
    }

    /// Ends the order, with an event.
    pub fn redeemed(mut self, terms: &HtlcTerms, secret: [u8; 32]) -> Self {
        let hash = SecretHash::of(&secret).0.into();
        let block = self.ends_at(self.latest - 70);
        self.logs = vec![log(self.htlc, &[read::REDEEMED, id(terms), hash], &redeemed_data(&secret), block)];
        self
    }

    /// Ends the order, with an event.
    pub fn refunded(mut self, terms: &HtlcTerms) -> Self {
        let block = self.ends_at(self.latest - 10);
        self.logs = vec![log(self.htlc, &[read::REFUNDED, id(terms)], &[], block)];
        self
    }

    fn ends_at(&mut self, block: u64) -> u64 {
        self.order.as_mut().expect("an order")[5] = U256::from(block);
        block
    }

    /// Returns the order in the layout of older contracts.
    pub fn older(&self, has_ended: bool) -> [U256; 6] {
        let [initiator, redeemer, initiated, timelock, amount, _] = self.order.expect("an order");
        [U256::from(u8::from(has_ended)), initiator, redeemer, initiated, timelock, amount]
    }

    pub fn hash(&self, number: u64) -> B256 {
        self.header(number).map_or_else(|| hash_of(number), |header| header.hash_slow())
    }

    pub fn block(&self, number: u64) -> Value {
        let mut block = json!({
            "number": format!("{number:#x}"),
            "hash": self.hash(number),
            "parentHash": hash_of(number - 1),
            "timestamp": format!("{:#x}", self.time_of(number)),
            "baseFeePerGas": "0x3b9aca00",
            "logsBloom": Bloom::ZERO,
        });
        if let Some(header) = self.header(number) {
            let quantity = |number: u64| json!(format!("{number:#x}"));
            let members = [
                ("sha3Uncles", json!(header.ommers_hash)),
                ("miner", json!(header.beneficiary)),
                ("stateRoot", json!(header.state_root)),
                ("transactionsRoot", json!(header.transactions_root)),
                ("receiptsRoot", json!(header.receipts_root)),
                ("difficulty", json!("0x0")),
                ("gasLimit", quantity(header.gas_limit)),
                ("gasUsed", quantity(header.gas_used)),
                ("extraData", json!(header.extra_data)),
                ("mixHash", json!(header.mix_hash)),
                ("nonce", json!(header.nonce)),
            ];
            for (key, value) in members {
                block[key] = value;
            }
        }
        if let Some(newest) = self.l1_number {
            let l1_number = newest.saturating_sub(self.latest.saturating_sub(number));
            block["l1BlockNumber"] = json!(format!("{l1_number:#x}"));
        }
        block
    }

    const fn time_of(&self, number: u64) -> u64 {
        (self.time * 1_000 + number * self.block_millis - self.latest * self.block_millis) / 1_000
    }

    /// Returns the header of a block, on a chain whose headers can be proven.
    fn header(&self, number: u64) -> Option<Header> {
        self.slots?;
        let (account, _) = self.account(number);
        let (state_root, _) = trie(&[(keccak256(self.htlc), alloy_rlp::encode(account))]);
        Some(Header {
            parent_hash: hash_of(number - 1),
            number,
            timestamp: self.time_of(number),
            state_root,
            gas_limit: 30_000_000,
            base_fee_per_gas: Some(1_000_000_000),
            ..Header::default()
        })
    }

    /// Returns the HTLC's account, and the leaves of its storage, at a block.
    fn account(&self, number: u64) -> (TrieAccount, Vec<(B256, Vec<u8>)>) {
        let words = self.order.filter(|_| number >= self.initiated).unwrap_or_default();
        let leaves: Vec<_> = self.slots.into_iter().flatten().zip(words).filter(|(_, value)| !value.is_zero()).collect();
        let leaves: Vec<_> = leaves.into_iter().map(|(slot, value)| (keccak256(slot), alloy_rlp::encode(value))).collect();
        #[allow(clippy::needless_update, reason = "a feature that another crate may turn on adds a member")]
        let account = TrieAccount { nonce: 1, balance: U256::from(5), storage_root: trie(&leaves).0, code_hash: KECCAK_EMPTY };
        (account, leaves)
    }

    fn proof(&self, number: u64, slots: &[B256]) -> Value {
        let (account, leaves) = self.account(number);
        let (_, account_proof) = trie(&[(keccak256(self.htlc), alloy_rlp::encode(account))]);
        let storage: Vec<_> = slots
            .iter()
            .map(|slot| {
                let place = self.slots.and_then(|own| own.iter().position(|one| one == slot));
                let words = self.order.filter(|_| number >= self.initiated).unwrap_or_default();
                let value = place.map(|place| words[place]).unwrap_or_default();
                json!({"key": slot, "value": format!("{value:#x}"), "proof": trie_proof(&leaves, keccak256(slot))})
            })
            .collect();
        json!({
            "address": self.htlc,
            "nonce": "0x1",
            "balance": "0x5",
            "storageHash": account.storage_root,
            "codeHash": account.code_hash,
            "accountProof": account_proof,
            "storageProof": storage,
        })
    }

    /// Returns the block that a parameter names.
    fn number_at(&self, block: &Value) -> Option<u64> {
        let hash = block["blockHash"].as_str()?;
        let marks = [Some(self.latest), self.safe, self.finalized, Some(self.initiated)];
        marks.into_iter().flatten().find(|number| self.hash(*number).to_string() == hash)
    }

    fn words_at(&self, block: &Value) -> Vec<u8> {
        let is_before = self.number_at(block).is_some_and(|number| number < self.initiated);
        let words = self.order.filter(|_| !is_before).unwrap_or_default();
        words.iter().flat_map(U256::to_be_bytes::<32>).collect()
    }

    /// Answers a request.
    pub fn answer(&self, request: &Request) -> Answer {
        let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
        answer_with(&self.result(method, &serde_json::from_str(params).expect("JSON")))
    }

    /// Returns the result of a method; an object with `error` is an error.
    pub fn result(&self, method: &str, params: &Value) -> Value {
        let error = |code: i64, message: &str| json!({"error": {"code": code, "message": message}});
        match method {
            "eth_chainId" => json!(format!("{:#x}", self.chain_id)),
            "eth_getBlockByNumber" => {
                let number = match params[0].as_str().expect("a block") {
                    "latest" => Some(self.latest),
                    "safe" => self.safe,
                    "finalized" => self.finalized,
                    number => Some(u64::from_str_radix(number.trim_start_matches("0x"), 16).expect("a number")),
                };
                number.map_or(Value::Null, |number| self.block(number))
            }
            "eth_call" => {
                let data = hex::decode(params[0]["data"].as_str().expect("calldata")).expect("hex");
                let answer = match &data[..4] {
                    selector if *selector == read::orders_call([0; 32])[..4] => self.words_at(&params[1]),
                    selector if *selector == read::token_call()[..] => self.token.into_word().to_vec(),
                    selector if *selector == read::balance_call(Address::ZERO)[..4] => self.holds.to_be_bytes_vec(),
                    selector if *selector == read::allowance_call(Address::ZERO, Address::ZERO)[..4] => self.holds.to_be_bytes_vec(),
                    // No contract states a fee for the chain below.
                    selector if *selector == read::l1_fee_call(0)[..4] => Vec::new(),
                    _ => return error(3, "execution reverted"),
                };
                json!(hex::encode_prefixed(answer))
            }
            "eth_getProof" if self.slots.is_some() => match self.number_at(&params[2]) {
                Some(number) => {
                    let slots: Vec<B256> = serde_json::from_value(params[1].clone()).expect("slots");
                    self.proof(number, &slots)
                }
                None => error(-32_000, "header not found"),
            },
            "eth_getBalance" => json!(format!("{:#x}", self.holds)),
            // No account has code, unless a test says so.
            "eth_getCode" => json!("0x"),
            "eth_getLogs" => json!(self.logs),
            "eth_gasPrice" => json!("0x77359400"),
            "eth_maxPriorityFeePerGas" => json!("0x1"),
            "eth_getTransactionCount" => json!("0x2a"),
            "eth_getTransactionReceipt" => Value::Null,
            "eth_feeHistory" => json!({
                "baseFeePerGas": ["0x3b9aca00", "0x3b9aca00", "0x3b9aca00", "0x3b9aca00", "0x3b9aca00", "0x4a817c800"],
                "reward": [["0x1", "0x3b9aca00", "0x77359400"], ["0x2", "0x3b9aca01", "0x77359401"], ["0x3", "0x3b9aca02", "0x77359402"]],
            }),
            _ => error(-32_601, "the method does not exist"),
        }
    }
}

/// Returns the answer with a result; an object with `error` is an error.
pub fn answer_with(result: &Value) -> Answer {
    match result.get("error") {
        Some(error) => {
            let data = error["data"].as_str().map(|data| hex::decode(data).expect("hex"));
            Answer::Error(RpcError::new(error["code"].as_i64().unwrap_or_default(), error["message"].as_str().unwrap_or_default(), data))
        }
        None => Answer::result(result.to_string().into_bytes()),
    }
}

/// Returns the root of a trie, and its nodes on the way to the first leaf.
fn trie(leaves: &[(B256, Vec<u8>)]) -> (B256, Vec<Bytes>) {
    let first = leaves.first().map(|(key, _)| *key).unwrap_or_default();
    (build(leaves, first).root(), trie_proof(leaves, first))
}

fn trie_proof(leaves: &[(B256, Vec<u8>)], key: B256) -> Vec<Bytes> {
    let mut builder = build(leaves, key);
    builder.root();
    builder.take_proof_nodes().into_nodes_sorted().into_iter().map(|(_, node)| node).collect()
}

fn build(leaves: &[(B256, Vec<u8>)], key: B256) -> HashBuilder {
    let mut leaves = leaves.to_vec();
    leaves.sort();
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(vec![Nibbles::unpack(key)]));
    for (key, value) in &leaves {
        builder.add_leaf(Nibbles::unpack(key), value);
    }
    builder
}

pub fn id(terms: &HtlcTerms) -> B256 {
    terms.swap_id.parse().expect("a swap id")
}

pub fn redeemed_data(secret: &[u8]) -> Vec<u8> {
    abi::bytes(secret)
}

pub fn log(address: Address, topics: &[B256], data: &[u8], block: u64) -> Value {
    json!({
        "address": address,
        "topics": topics,
        "data": hex::encode_prefixed(data),
        "blockNumber": format!("{block:#x}"),
        "blockHash": hash_of(block),
        "transactionHash": hash_of(block + 1_000_000_000),
        "transactionIndex": "0x0",
        "logIndex": "0x0",
        "removed": false,
    })
}

/// The terms of an order with both legs on the same EVM chain, with the secret of these chains.
pub fn terms() -> VerifiedTerms {
    let case = fixture::<Family>("evm-record-same-chain");
    let value = json::parse(case.input.as_bytes()).expect("JSON");
    let proposal = JsonCase::from_value(&value).and_then(|case| case.proposal()).expect("a proposal");
    let mut terms = proposal.open(registry(), &Policy::default(), verify_record::<Family>).expect("a record").terms;
    terms.source.secret_hash = SecretHash::of(&SECRET);
    terms.destination.secret_hash = SecretHash::of(&SECRET);
    terms
}
