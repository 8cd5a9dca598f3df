//! In-memory Esplora servers for a chain that is mined here, without network and clock: honest, or with some answers replaced.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::bitcoin::Chain;
use countersign::bitcoin::bitcoin::consensus::encode::{deserialize_hex, serialize, serialize_hex};
use countersign::bitcoin::bitcoin::hashes::{Hash, sha256};
use countersign::bitcoin::bitcoin::pow::CompactTarget;
use countersign::bitcoin::bitcoin::{
    Amount, BlockHash, MerkleBlock, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxMerkleNode, TxOut, Txid, Witness, absolute, block,
    constants::genesis_block, merkle_tree, transaction,
};
use countersign::bitcoin::htlc::{Htlc, Leaf, Tree};
use countersign::chains::Network;
use countersign::{Account, CreateOrder, Family, Policy, Proposal, Registry, SecretHash, U256, VerifiedTerms, verify_record};
use countersign_client::{Request, Response, Transport, TransportError, TransportErrorKind};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
use serde_json::{Value, json};

pub(crate) const SECRET: [u8; 32] = *b"thirty-two bytes of good secret!";
pub(crate) const AMOUNT: u64 = 500_000;
pub(crate) const TIMELOCK: u16 = 20;
pub(crate) const NOW: u64 = 1_800_000_000;
const INTERNAL_KEY: &str = "2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0";

/// The x coordinates of G and 2G. Any two keys would do, because nothing here checks a signature.
const INITIATOR: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
const REDEEMER: &str = "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";

pub(crate) fn array(text: &str) -> [u8; 32] {
    hex::decode(text).unwrap().try_into().unwrap()
}

pub(crate) fn tree() -> Tree {
    let secret_hash = sha256::Hash::hash(&SECRET).to_byte_array();
    let (internal_key, initiator, redeemer) = (array(INTERNAL_KEY), array(INITIATOR), array(REDEEMER));
    Tree::new(Htlc { internal_key, initiator, redeemer, secret_hash, timelock: TIMELOCK }).unwrap()
}

pub(crate) fn chain(coin: &str) -> Chain {
    Chain::from_network(&Network::parse(&format!("{coin}:regtest")).unwrap()).unwrap()
}

/// Verified terms whose destination is the HTLC of these tests on Bitcoin.
pub(crate) fn terms() -> VerifiedTerms {
    terms_on("bitcoin")
}

pub(crate) fn terms_on(coin: &str) -> VerifiedTerms {
    let registry = countersign_testkit::registry();
    let verified = countersign_testkit::fixtures_of(Family::Evm).unwrap().into_iter().find_map(|case| {
        let case = case.json();
        let record = case["order"].is_object().then(|| case["order"].to_string())?;
        let (request, response) = (CreateOrder::from_json(case["request"].to_string().as_bytes()).ok()?, case["response"].to_string());
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
        let verified = verify_record(proposal, registry, &Policy::default()).ok()?;
        (verified.terms.destination.family == Family::Bitcoin).then_some(verified)
    });
    let mut terms = verified.unwrap().terms;
    let (tree, to) = (tree(), &mut terms.destination);
    let key = |key| Account::from_array(Family::Bitcoin, key);
    to.chain = format!("{coin}_regtest");
    to.network = Network::parse(&format!("{coin}:regtest")).unwrap();
    to.htlc = Some(key(tree.htlc.internal_key));
    (to.initiator, to.redeemer) = (key(tree.htlc.initiator), key(tree.htlc.redeemer));
    (to.amount, to.timelock, to.secret_hash) = (U256::from(AMOUNT), u64::from(TIMELOCK), SecretHash(tree.htlc.secret_hash));
    to.swap_id = tree.address(chain(coin));
    terms
}

/// A transaction that spends an unknown output, or the given one, and pays these outputs.
pub(crate) fn pay(from: OutPoint, witness: &[Vec<u8>], outputs: &[(u64, ScriptBuf)]) -> Transaction {
    let outputs = outputs.iter().map(|(value, script)| TxOut { value: Amount::from_sat(*value), script_pubkey: script.clone() });
    Transaction {
        version: transaction::Version::TWO,
        lock_time: absolute::LockTime::ZERO,
        input: vec![TxIn {
            previous_output: from,
            script_sig: ScriptBuf::new(),
            sequence: Sequence::ENABLE_RBF_NO_LOCKTIME,
            witness: Witness::from_slice(witness),
        }],
        output: outputs.collect(),
    }
}

pub(crate) fn outpoint(byte: u8) -> OutPoint {
    OutPoint { txid: Txid::from_byte_array([byte; 32]), vout: 0 }
}

pub(crate) fn funding(byte: u8, value: u64) -> Transaction {
    pay(outpoint(byte), &[vec![1; 64]], &[(7_000, ScriptBuf::new_op_return([7])), (value, tree().script_pubkey())])
}

/// Spends output 1 of a funding by a leaf.
pub(crate) fn spend(funding: &Transaction, leaf: Leaf, secret: &[u8]) -> Transaction {
    let tree = tree();
    let mut items = vec![vec![1; 64]];
    match leaf {
        Leaf::Redeem => items.push(secret.to_vec()),
        Leaf::InstantRefund => items.push(vec![2; 64]),
        _ => {}
    }
    items.extend([tree.script(leaf).into_bytes(), tree.control_block(leaf)]);
    // A transaction's id does not cover the witness. With the same output, a refund would have the id of the redemption.
    let to = ScriptBuf::new_op_return([u8::try_from(items.len()).unwrap()]);
    pay(OutPoint { txid: funding.compute_txid(), vout: 1 }, &items, &[(1_000, to)])
}

/// Blocks with real headers and real proof of work at a low difficulty.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    pub(crate) blocks: Vec<(block::Header, Vec<Transaction>)>,
    pub(crate) mempool: Vec<Transaction>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let genesis = genesis_block(countersign::bitcoin::bitcoin::Network::Regtest);
        let mut ledger = Self { blocks: vec![(genesis.header, genesis.txdata)], mempool: Vec::new() };
        ledger.mine(5);
        ledger
    }

    /// Mines the mempool, then empty blocks. The last block is less than a minute old.
    pub(crate) fn mine(&mut self, count: usize) {
        for _ in 0..count {
            let height = self.blocks.len();
            let mut all = vec![pay(OutPoint::null(), &[vec![u8::try_from(height).unwrap(); 8]], &[(50, ScriptBuf::new_op_return([9]))])];
            all[0].input[0].script_sig = ScriptBuf::from_bytes(vec![u8::try_from(height).unwrap(); 4]);
            all.append(&mut self.mempool);
            let root = merkle_tree::calculate_root(all.iter().map(|tx| tx.compute_txid().to_raw_hash())).unwrap();
            let mut header = block::Header {
                version: block::Version::TWO,
                prev_blockhash: self.blocks[height - 1].0.block_hash(),
                merkle_root: TxMerkleNode::from_raw_hash(root),
                time: u32::try_from(NOW).unwrap() - 60,
                bits: CompactTarget::from_consensus(0x207f_ffff),
                nonce: 0,
            };
            while !header.target().is_met_by(header.block_hash()) {
                header.nonce += 1;
            }
            self.blocks.push((header, all));
        }
    }

    pub(crate) fn hash(&self, height: usize) -> BlockHash {
        self.blocks[height].0.block_hash()
    }

    fn all(&self) -> impl Iterator<Item = (Option<usize>, &Transaction)> {
        let mined = self.blocks.iter().enumerate().flat_map(|(height, (_, all))| all.iter().map(move |tx| (Some(height), tx)));
        mined.chain(self.mempool.iter().map(|tx| (None, tx)))
    }

    fn find(&self, id: &str) -> Option<(Option<usize>, &Transaction)> {
        self.all().find(|(_, tx)| tx.compute_txid().to_string() == id)
    }

    fn status(&self, height: Option<usize>) -> Value {
        match height {
            Some(height) => {
                json!({"confirmed": true, "block_height": height, "block_hash": self.hash(height).to_string(), "block_time": NOW})
            }
            None => json!({"confirmed": false}),
        }
    }

    fn outspend(&self, from: OutPoint) -> Value {
        let spender = self.all().find(|(_, tx)| tx.input.iter().any(|input| input.previous_output == from));
        match spender {
            Some((height, tx)) => json!({"spent": true, "txid": tx.compute_txid().to_string(), "vin": 0, "status": self.status(height)}),
            None => json!({"spent": false}),
        }
    }

    /// Returns what an Esplora server responds.
    pub(crate) fn answer(&mut self, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let ok = |value: Value| (200, value.to_string().into_bytes());
        let text = |text: String| (200, text.into_bytes());
        match parts.as_slice() {
            ["block-height", height] => match self.blocks.get(height.parse::<usize>().unwrap()) {
                Some((header, _)) => text(header.block_hash().to_string()),
                None => (404, b"Block not found".to_vec()),
            },
            ["blocks"] => {
                let (header, all) = self.blocks.last().unwrap();
                ok(json!([{
                    "id": header.block_hash().to_string(), "height": self.blocks.len() - 1, "version": header.version.to_consensus(),
                    "timestamp": header.time, "tx_count": all.len(), "size": 1, "weight": 4, "merkle_root": header.merkle_root.to_string(),
                    "previousblockhash": header.prev_blockhash.to_string(), "mediantime": header.time, "nonce": header.nonce,
                    "bits": header.bits.to_consensus(), "difficulty": 4.656_542_373_906_925e-10,
                }]))
            }
            ["scripthash", _, "txs", "chain", _] => ok(json!([])),
            ["scripthash", hash, what] => {
                // Not by the library's own function: a server hashes the script itself.
                let pays = |output: &TxOut| sha256::Hash::hash(output.script_pubkey.as_bytes()).to_string() == *hash;
                let mut list = Vec::new();
                for (height, tx) in self.all().filter(|(_, tx)| tx.output.iter().any(pays)) {
                    let txid = tx.compute_txid();
                    if *what == "txs" {
                        let outputs = tx.output.iter().map(
                            |output| json!({"scriptpubkey": hex::encode(output.script_pubkey.as_bytes()), "value": output.value.to_sat()}),
                        );
                        list.push(json!({"txid": txid.to_string(), "vout": outputs.collect::<Vec<_>>(), "status": self.status(height)}));
                        continue;
                    }
                    for (vout, output) in (0..).zip(&tx.output).filter(|(_, output)| pays(output)) {
                        if self.outspend(OutPoint { txid, vout })["spent"] == false {
                            list.push(json!({"txid": txid.to_string(), "vout": vout, "status": self.status(height), "value": output.value.to_sat()}));
                        }
                    }
                }
                ok(json!(list))
            }
            ["tx"] => {
                let tx: Transaction = deserialize_hex(std::str::from_utf8(body).unwrap()).unwrap();
                if self.all().any(|(_, other)| other.input.iter().any(|input| input.previous_output == tx.input[0].previous_output)) {
                    return (400, br#"sendrawtransaction RPC error: {"code":-25,"message":"bad-txns-inputs-missingorspent"}"#.to_vec());
                }
                let id = tx.compute_txid().to_string();
                self.mempool.push(tx);
                text(id)
            }
            ["fee-estimates"] => ok(json!({"1": 12.345, "2": 9.5, "3": 7.25, "6": 3.1, "144": 0.5, "1008": 0.25})),
            ["tx", id, rest @ ..] => {
                let Some((height, tx)) = self.find(id) else { return (404, b"Transaction not found".to_vec()) };
                match rest {
                    [] => ok(json!({"txid": id, "status": self.status(height)})),
                    ["raw"] => (200, serialize(tx)),
                    ["outspend", vout] => ok(self.outspend(OutPoint { txid: tx.compute_txid(), vout: vout.parse().unwrap() })),
                    ["merkleblock-proof"] => match height {
                        Some(height) => {
                            let (header, all) = &self.blocks[height];
                            let txids: Vec<Txid> = all.iter().map(Transaction::compute_txid).collect();
                            let proof = MerkleBlock::from_header_txids_with_predicate(header, &txids, |txid| txid.to_string() == *id);
                            text(serialize_hex(&proof))
                        }
                        None => (404, Vec::new()),
                    },
                    other => panic!("{other:?}"),
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Replaces a server's answer. It gets the path and the honest answer, and may return a failure of the transport.
pub(crate) type Lie = Arc<dyn Fn(&str, (u16, Vec<u8>)) -> Result<(u16, Vec<u8>), TransportErrorKind> + Send + Sync>;

/// Servers by their host.
#[derive(Clone, Default)]
pub(crate) struct Servers {
    ledgers: BTreeMap<String, Arc<Mutex<Ledger>>>,
    lies: BTreeMap<String, Lie>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Servers {
    pub(crate) fn with(mut self, host: &str, ledger: &Arc<Mutex<Ledger>>) -> Self {
        self.ledgers.insert(host.to_owned(), Arc::clone(ledger));
        self
    }

    pub(crate) fn lying(
        mut self,
        host: &str,
        lie: impl Fn(&str, (u16, Vec<u8>)) -> Result<(u16, Vec<u8>), TransportErrorKind> + Send + Sync + 'static,
    ) -> Self {
        self.lies.insert(host.to_owned(), Arc::new(lie));
        self
    }

    /// Connects to every server, with an API key in each URL.
    pub(crate) fn connect(&self, quorum: u32) -> Nodes<Self> {
        self.connect_to("bitcoin", quorum)
    }

    pub(crate) fn connect_to(&self, coin: &str, quorum: u32) -> Nodes<Self> {
        let all = self.ledgers.keys().map(|host| Endpoint::parse(&format!("https://{host}/key/api")).unwrap()).collect();
        let registry = json!({"chains": [{"chain": format!("{coin}_regtest"), "id": format!("{coin}:regtest")}], "assets": []});
        let registry = Registry::from_json(registry.to_string().as_bytes()).unwrap();
        let endpoints = Endpoints::new(all).unwrap().with_quorum(quorum).unwrap();
        Nodes::new(self.clone(), NodeConfig::new().with(format!("{coin}_regtest"), endpoints), &registry)
    }
}

impl Transport for Servers {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let host = request.url.host_str().unwrap();
        let path = request.url.path().strip_prefix("/key/api").unwrap();
        self.asked.lock().unwrap().push(format!("{} {path}", request.method));
        let body = request.body.as_ref().map(|body| body.to_vec()).unwrap_or_default();
        let honest = self.ledgers[host].lock().unwrap().answer(path, &body);
        let answer = match self.lies.get(host) {
            Some(lie) => lie(path, honest).map_err(|kind| TransportError::new(kind, "as the test says"))?,
            None => honest,
        };
        Ok(Response::new(answer.0, answer.1))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> u64 {
        NOW
    }
}
