//! A chain with accounts, tokens and HTLCs, the connection to it, and matching orders.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use countersign::chains::UnixTime;
use countersign::starknet::{Felt, InvokeTransaction, Key, ResourceBound, ResourceBounds, UnsignedOrder, VerifiedOrder};
use countersign::{
    BroadcastTransaction, Funded, Policy, Registry, SecretHash, U256, VerifiedRecord,
    evidence::{Hold, HtlcState, HtlcTerms, ObservedAt},
    json as strict, verify_record,
};
use countersign_client::url::Url;
use countersign_client::{Http, Method, Request, Response, Timeouts, Transport, TransportError};
use countersign_json::line::Case as JsonCase;
use countersign_node::starknet::{StarknetChain, TransactionStatus};
use countersign_node::{Endpoint, Endpoints, NodeConfig, Nodes};
use countersign_proofs_starknet::{Devnet, contracts};
use countersign_testkit::{Case, asset_index, registry_json, registry_with};
use serde_json::{Value, json};
use starknet_core::utils::{get_selector_from_name, get_storage_var_address};
use starknet_crypto::{poseidon_hash_many, rfc6979_generate_k, sign};

/// The chain's name in the registry.
pub const CHAIN: &str = "starknet_sepolia";
/// The tokens that the engine provides.
pub const STRK: &str = "0x4718f5a0fc34cc1af16a1cdee98ffb20c31f5cd61d6ab07201858f4287c938d";
pub const ETH: &str = "0x49d36570d4e46f48e99674bd3fcc84644ddd6b96f7c741b1562b82f9e004dc7";
pub const SECRET: [u8; 32] = *b"the secret of these proofs, 2026";
pub const OTHER_SECRET: [u8; 32] = *b"another secret of these proofs..";
/// The seed of the accounts. Anyone can compute their keys from it.
const SEED: u32 = 2026;

/// The timelocks of source and destination. By default, 450 blocks of the second one have to be left.
const TIMELOCKS: [u64; 2] = [2880, 480];

/// The registry's assets, each with the token and contract that it has here.
pub const ASSETS: [(&str, &str, &str, &str); 4] = [
    ("starknet_sepolia:strk", STRK, "2025_11", contracts::NOVEMBER_2025),
    ("starknet_sepolia:eth", ETH, "2025_11", contracts::NOVEMBER_2025),
    ("starknet_sepolia:usdc", ETH, "2025_02", contracts::FEBRUARY_2025),
    ("starknet_sepolia:usdt", STRK, "client_3_1_3", contracts::CLIENT_3_1_3),
];

/// Changes a call or a reply. Replies come with the name of the method.
pub type Change = fn(&str, &mut Value);

/// The HTTP stack. It records what is sent, and can change it.
pub struct Wire {
    http: Http,
    calls: Change,
    replies: Change,
    pub seen: Mutex<Vec<String>>,
}

impl Wire {
    fn new(calls: Change, replies: Change) -> Self {
        Self { http: Http::new(Timeouts::default()).unwrap(), calls, replies, seen: Mutex::default() }
    }
}

fn each(body: &mut Value, mut then: impl FnMut(&mut Value)) {
    match body {
        Value::Array(all) => all.iter_mut().for_each(then),
        one => then(one),
    }
}

impl Transport for Wire {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let mut request = request.clone();
        let mut body: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
        let mut methods = Vec::new();
        each(&mut body, |call| {
            let method = call["method"].as_str().unwrap().to_owned();
            (self.calls)(&method, call);
            methods.push((call["id"].clone(), method));
        });
        let text = body.to_string();
        self.seen.lock().unwrap().push(text.clone());
        request = request.with_body(text.into_bytes());
        let mut response = self.http.send(&request).await?;
        // An error of the server itself is not JSON.
        let Ok(mut body) = serde_json::from_slice::<Value>(&response.body) else { return Ok(response) };
        each(&mut body, |reply| {
            let method = methods.iter().find(|(id, _)| *id == reply["id"]).map_or("", |(_, method)| method);
            (self.replies)(method, reply);
        });
        response.body = body.to_string().into_bytes();
        Ok(response)
    }

    async fn sleep(&self, duration: Duration) {
        self.http.sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        self.http.now()
    }
}

/// An account that the engine has from the start.
#[derive(Clone)]
pub struct Account {
    pub address: Felt,
    /// The address in the format of orders.
    pub text: String,
    key: String,
}

impl Account {
    pub fn key(&self) -> Key {
        self.key.parse().unwrap()
    }

    /// Signs with the reference implementation.
    pub fn sign(&self, hash: &Felt) -> Vec<Felt> {
        let key = felt(&self.key);
        let signature = sign(&key, hash, &rfc6979_generate_k(hash, &key, None)).unwrap();
        vec![signature.r, signature.s]
    }
}

/// A chain with its contracts.
pub struct Stage {
    pub devnet: Devnet,
    http: Http,
    pub registry: &'static Registry,
    pub nodes: Nodes<Wire>,
    pub user: Account,
    pub solver: Account,
    pub stranger: Account,
}

pub fn felt(text: &str) -> Felt {
    Felt::from_hex(text).unwrap()
}

pub fn hex(felt: Felt) -> String {
    format!("{felt:#x}")
}

pub fn selector(name: &str) -> Felt {
    get_selector_from_name(name).unwrap()
}

fn halves(amount: U256) -> [Felt; 2] {
    let mask = U256::from(u128::MAX);
    [amount & mask, amount >> 128].map(|half| Felt::from(u128::try_from(half).unwrap()))
}

/// Returns the number of bytes in a word of a secret hash.
fn word_size(generation: &str) -> usize {
    if generation == "client_3_1_3" { 16 } else { 4 }
}

/// Returns the words of a hash or secret.
fn words(bytes: &[u8], size: usize) -> Vec<Felt> {
    bytes.chunks(size).map(Felt::from_bytes_be_slice).collect()
}

/// Returns a compiled class in the format that nodes accept, with its interface as a string.
fn broadcast_form(class: &str) -> Value {
    let mut class: Value = serde_json::from_str(class).unwrap();
    class["abi"] = json!(class["abi"].to_string());
    class
}

/// Returns the address of the HTLC that the registry pins for an asset.
pub fn htlc_of(asset: &str) -> Felt {
    let registry = registry_json();
    felt(registry["assets"][asset_index(asset)]["htlc"]["address"].as_str().unwrap())
}

fn of(asset: &str) -> (&'static str, &'static str) {
    let (_, token, generation, _) = ASSETS.into_iter().find(|(id, ..)| *id == asset).unwrap();
    (token, generation)
}

/// Returns the fixtures' registry with this chain's tokens, solver and contract generations.
fn registry(solver: &Account) -> &'static Registry {
    let mut changes = Vec::new();
    for (asset, token, generation, _) in ASSETS {
        let at = format!("/assets/{}", asset_index(asset));
        changes.push((format!("{at}/token/address"), json!(token)));
        changes.push((format!("{at}/htlc/generation"), json!(generation)));
    }
    let all = registry_json();
    let chains = all["chains"].as_array().unwrap();
    let index = chains.iter().position(|chain| chain["chain"] == CHAIN).unwrap();
    changes.push((format!("/chains/{index}/destination_timelock"), json!(TIMELOCKS[1].to_string())));
    for (index, _) in all["solvers"].as_array().unwrap().iter().enumerate().filter(|(_, solver)| solver["chain"] == CHAIN) {
        changes.push((format!("/solvers/{index}/address"), json!(solver.text)));
    }
    let changes: Vec<_> = changes.iter().map(|(at, value)| (at.as_str(), value.clone())).collect();
    Box::leak(Box::new(registry_with(&changes)))
}

impl Stage {
    /// Starts a devnet with all contracts. It creates a block for each transaction.
    ///
    /// Returns `None` if starknet-devnet is not installed, after printing that the test is skipped.
    pub async fn new() -> Option<Self> {
        Self::open("transaction").await
    }

    /// Starts a devnet that creates blocks only when [`Stage::mine`] is called.
    pub async fn on_demand() -> Option<Self> {
        Self::open("demand").await
    }

    async fn open(blocks_on: &str) -> Option<Self> {
        let engine = match Devnet::installed() {
            Ok(engine) => engine,
            Err(reason) => {
                eprintln!("skipped: {reason}");
                return None;
            }
        };
        let devnet = Devnet::start(&engine, SEED, blocks_on).unwrap();
        let http = Http::new(Timeouts::default()).unwrap();
        let mut accounts = Value::Null;
        for _ in 0..600 {
            if let Some(reply) = post(&http, &devnet, "devnet_getPredeployedAccounts", &json!({})).await {
                accounts = reply["result"].clone();
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let account = |index: usize| {
            let account = &accounts[index];
            let address = felt(account["address"].as_str().expect("the engine does not answer"));
            Account { address, text: format!("{address:#066x}"), key: account["private_key"].as_str().unwrap().to_owned() }
        };
        let (user, solver, stranger) = (account(0), account(1), account(2));
        let registry = registry(&solver);
        let nodes = connect(&[devnet.url()], CHAIN, registry, |_, _| (), |_, _| ());
        let stage = Self { devnet, http, registry, nodes, user, solver, stranger };
        stage.place().await;
        Some(stage)
    }

    /// Declares the contracts, and deploys them at the pinned addresses.
    async fn place(&self) {
        for (asset, token, _, class) in ASSETS {
            let class = broadcast_form(class);
            let applied = self.rpc("devnet_applyStateDiff", json!({"state_diff": {}, "classes": [{"contract_class": class}]})).await;
            let (htlc, slot) = (hex(htlc_of(asset)), hex(get_storage_var_address("token", &[]).unwrap()));
            let diff = json!({
                "deployed_contracts": [{"address": htlc, "class_hash": applied["classes"][0]["class_hash"]}],
                "storage_diffs": [{"address": htlc, "storage_entries": [{"key": slot, "value": token}]}],
            });
            self.rpc("devnet_applyStateDiff", json!({"state_diff": diff})).await;
        }
        self.mine(1).await;
    }

    /// Calls a method of the node, bypassing the code under test.
    pub async fn rpc(&self, method: &str, params: Value) -> Value {
        let reply = post(&self.http, &self.devnet, method, &params).await.expect("a response of the engine");
        assert!(reply["error"].is_null(), "{method}: {reply}");
        reply["result"].clone()
    }

    /// Returns the connection to the chain.
    pub fn chain(&self) -> StarknetChain<'_, Wire> {
        self.nodes.starknet(CHAIN).unwrap()
    }

    /// Connects to the same node again, with changed calls or replies.
    pub fn through(&self, calls: Change, replies: Change) -> Nodes<Wire> {
        connect(&[self.devnet.url()], CHAIN, self.registry, calls, replies)
    }

    pub async fn mine(&self, blocks: u64) {
        for _ in 0..blocks {
            self.rpc("devnet_createBlock", json!({})).await;
        }
    }

    /// Returns the newest block.
    pub async fn latest(&self) -> Value {
        self.rpc("starknet_getBlockWithTxHashes", json!({"block_id": "latest"})).await
    }

    pub async fn nonce(&self, account: &Account) -> Felt {
        let nonce = self.rpc("starknet_getNonce", json!({"block_id": "latest", "contract_address": hex(account.address)})).await;
        felt(nonce.as_str().unwrap())
    }

    /// Executes calls of an account, bypassing the code under test. The encoding and the signature are made here.
    pub async fn execute(&self, account: &Account, calls: &[(Felt, &str, Vec<Felt>)]) -> Value {
        let mut calldata = vec![Felt::from(calls.len())];
        for (to, function, arguments) in calls {
            calldata.extend([*to, selector(function), Felt::from(arguments.len())]);
            calldata.extend(arguments);
        }
        let bound = |amount| ResourceBound::new(amount, 1_000_000_000_000);
        let bounds = ResourceBounds::new(bound(100_000), bound(200_000_000), bound(100_000));
        let transaction = InvokeTransaction::new(account.address, calldata, self.nonce(account).await, bounds);
        let hash = transaction.hashes(felt("0x534e5f5345504f4c4941")).tx_hash;
        let transaction = transaction.with_signature(account.sign(&hash));
        let sent = self.rpc("starknet_addInvokeTransaction", json!({"invoke_transaction": transaction})).await;
        let receipt = self.rpc("starknet_getTransactionReceipt", json!({"transaction_hash": sent["transaction_hash"]})).await;
        assert_eq!(receipt["execution_status"], "SUCCEEDED", "{receipt}");
        receipt
    }

    pub async fn approve(&self, account: &Account, token: &str, spender: Felt, amount: U256) {
        let arguments = [vec![spender], halves(amount).to_vec()].concat();
        self.execute(account, &[(felt(token), "approve", arguments)]).await;
    }

    /// Pays the destination of an order as the solver.
    pub async fn pay(&self, terms: &HtlcTerms) -> Value {
        let asset = asset_of(terms);
        let (token, generation) = of(asset);
        let (htlc, amount) = (htlc_of(asset), halves(terms.amount).to_vec());
        let hash = words(&terms.secret_hash.0, word_size(generation));
        let initiate = [vec![self.user.address, Felt::from(terms.timelock)], amount.clone(), hash].concat();
        let calls = [(felt(token), "approve", [vec![htlc], amount].concat()), (htlc, "initiate", initiate)];
        self.execute(&self.solver, &calls).await
    }

    pub async fn read(&self, terms: &HtlcTerms) -> (HtlcState, ObservedAt) {
        self.chain().htlc(terms).await.unwrap().state().unwrap()
    }

    pub async fn judge(&self, record: &VerifiedRecord) -> Result<Funded, Hold> {
        let quorum = self.chain().htlc(&record.terms.destination).await.unwrap();
        let now = SystemTime::now().into();
        let rule = self.registry.chains().find(|chain| chain.name() == CHAIN).unwrap().profile.finality;
        Funded::judge(&record.terms, &quorum, &rule, now)
    }

    /// Broadcasts a transaction, which must succeed.
    pub async fn broadcast(&self, transaction: &BroadcastTransaction) -> Value {
        let chain = self.chain();
        chain.broadcast(&transaction.id, &transaction.payload).await.unwrap();
        let status = chain.status(felt(&transaction.id)).await.unwrap();
        assert_eq!(status, Some(TransactionStatus::AcceptedOnL2 { success: true }));
        self.rpc("starknet_getTransactionReceipt", json!({"transaction_hash": transaction.id})).await
    }

    /// Returns an order of the user.
    pub fn order(&self, swap: &Swap) -> Order {
        let template = countersign_testkit::fixture::<countersign::starknet::Starknet>("starknet-to-2025-11");
        let mut case = template.json();
        let (source, destination) = (swap.source, swap.destination);
        let ((token, generation), htlc) = (of(source), htlc_of(source));
        let hash = SecretHash::of(&swap.secret);
        let hash_words = words(&hash.0, word_size(generation));
        let amount = halves(swap.amount).to_vec();

        case["request"] = json!({
            "source": {"asset": source, "owner": self.user.text, "amount": swap.amount.to_string()},
            "destination": {"asset": destination, "owner": self.user.text, "amount": swap.amount.to_string()},
            "secret_hash": format!("0x{hash}"),
        });
        let result = &mut case["response"]["result"];
        let initiate = [vec![self.solver.address, Felt::from(TIMELOCKS[0])], amount.clone(), hash_words.clone()].concat();
        let call = |to: Felt, function: &str, calldata: Vec<Felt>| {
            let calldata: Vec<_> = calldata.into_iter().map(hex).collect();
            json!({"to": hex(to), "selector": hex(selector(function)), "calldata": calldata})
        };
        result["initiate_transaction"] = call(htlc, "initiate", initiate);
        if swap.approval {
            result["approval_transaction"] = call(felt(token), "approve", [vec![htlc], amount].concat());
        }
        let typed = &mut result["typed_data"];
        typed["domain"]["chainId"] = json!("SN_SEPOLIA");
        typed["domain"]["version"] = json!(if generation == "client_3_1_3" { "0x32" } else { "0x31" });
        typed["message"] = json!({
            "redeemer": self.solver.text,
            "amount": {"low": halves(swap.amount)[0].to_string(), "high": halves(swap.amount)[1].to_string()},
            "timelock": TIMELOCKS[0].to_string(),
            "secretHash": hash_words.into_iter().map(hex).collect::<Vec<_>>(),
        });
        if generation != "2025_02" {
            typed["types"]["Initiate"].as_array_mut().unwrap().push(json!({"name": "verifyingContract", "type": "ContractAddress"}));
            typed["message"]["verifyingContract"] = json!(hex(htlc));
        }

        for (leg, asset, initiator, redeemer, timelock) in [
            ("source_swap", source, &self.user, &self.solver, TIMELOCKS[0]),
            ("destination_swap", destination, &self.solver, &self.user, TIMELOCKS[1]),
        ] {
            let swap_json = &mut case["order"][leg];
            swap_json["chain"] = json!(CHAIN);
            swap_json["asset"] = json!(asset);
            swap_json["initiator"] = json!(initiator.text);
            swap_json["redeemer"] = json!(redeemer.text);
            swap_json["timelock"] = json!(timelock);
            swap_json["amount"] = json!(swap.amount.to_string());
            swap_json["secret_hash"] = json!(hash.to_string());
            let id = id(asset, &hash, initiator, redeemer, timelock, swap.amount);
            swap_json["swap_id"] = json!(format!("{id:x}"));
        }
        case["wallet"]["chain_id"] = json!("SN_SEPOLIA");
        let case = Case { registry: self.registry, ..template.with_input(case.to_string()) };
        let value = strict::parse(case.input.as_bytes()).unwrap();
        let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
        let record = verify_record(proposal, self.registry, &Policy::default()).unwrap();
        let verified = countersign_testkit::verified::<countersign::starknet::Starknet>(&case);
        Order { record, verified }
    }
}

/// The parameters of a swap.
pub struct Swap {
    pub source: &'static str,
    pub destination: &'static str,
    pub amount: U256,
    /// Whether the response contains an approval.
    pub approval: bool,
    pub secret: [u8; 32],
}

impl Default for Swap {
    fn default() -> Self {
        Self {
            source: "starknet_sepolia:strk",
            destination: "starknet_sepolia:eth",
            amount: U256::from(1_250_000_000_u64),
            approval: true,
            secret: SECRET,
        }
    }
}

/// A verified order.
pub struct Order {
    pub record: VerifiedRecord,
    pub verified: VerifiedOrder,
}

/// Returns the swap id, hashed with the reference implementation. For the client's generation, it is the id that the
/// contract here uses.
fn id(asset: &str, hash: &SecretHash, initiator: &Account, redeemer: &Account, timelock: u64, amount: U256) -> Felt {
    let mut felts = vec![felt("0x534e5f5345504f4c4941")];
    felts.extend(words(&hash.0, word_size(of(asset).1)));
    felts.push(initiator.address);
    if of(asset).1 != "2025_02" {
        felts.extend([redeemer.address, Felt::from(timelock)]);
        felts.extend(halves(amount));
        felts.push(htlc_of(asset));
    }
    poseidon_hash_many(&felts)
}

/// Returns the asset of an HTLC's terms.
fn asset_of(terms: &HtlcTerms) -> &'static str {
    let htlc = Felt::from_bytes_be_slice(terms.htlc.as_ref().unwrap().bytes());
    ASSETS.into_iter().map(|(asset, ..)| asset).find(|asset| htlc_of(asset) == htlc).unwrap()
}

async fn post(http: &Http, devnet: &Devnet, method: &str, params: &Value) -> Option<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let request = Request::new(Method::Post, Url::parse(&devnet.url()).unwrap());
    let request = request.with_header("content-type", "application/json").with_body(body.into_bytes());
    let response = http.send(&request).await.ok()?;
    Some(serde_json::from_slice(&response.body).unwrap())
}

/// Connects to nodes as the endpoints of a chain.
pub fn connect(urls: &[String], chain: &str, registry: &Registry, calls: Change, replies: Change) -> Nodes<Wire> {
    let endpoints = Endpoints::new(urls.iter().map(|url| Endpoint::parse(url).unwrap()).collect()).unwrap();
    Nodes::new(Wire::new(calls, replies), NodeConfig::new().with(chain, endpoints), registry)
}

/// Signs an order with the account's key.
pub fn signed(mut order: UnsignedOrder, account: &Account) -> BroadcastTransaction {
    order.sign(&account.key()).unwrap();
    let signed = order.finish().unwrap();
    countersign::Signed::Starknet(signed).broadcasts().pop().unwrap()
}
