//! Tests a swap on anvil: funding, reading, judging, redemption and refund, also with a node that lies about it.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a panic in a test is a failed test, and one that checks nothing says so")]

use std::time::{Duration, SystemTime};

use alloy_sol_types::SolValue;
use countersign::chains::UnixTime;
use countersign::chains::swap_id::{SwapIdInput, Version, evm as swap_id};
use countersign::evm::alloy_primitives::{Address, U256, hex, keccak256};
use countersign::evm::htlc::{Approve, Initiate};
use countersign::evm::recover::{self, Leg};
use countersign::evm::{Evm, Key, UnsignedOrder, VerifiedOrder, address};
use countersign::recover::Recovery;
use countersign::{
    BroadcastTransaction, Code, Funded, Policy, SecretHash, Unsigned, VerifiedRecord,
    evidence::{Hold, HtlcState, HtlcTerms},
    json, verify_record,
};
use countersign_client::url::Url;
use countersign_client::{Http, Method, Request, Response, Timeouts, Transport, TransportError};
use countersign_json::line::Case as JsonCase;
use countersign_node::evm::EvmChain;
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes, Speed};
use countersign_proofs_node::Anvil;
use countersign_testkit::{Case, fixture, key, registry, verified};
use serde_json::{Value, json};

const SECRET: [u8; 32] = *b"the secret of these proofs, 2026";
const RICH: &str = "0x56bc75e2d63100000";

/// The chain, and a connection that can lie.
struct Stage {
    anvil: Anvil,
    http: Http,
    nodes: Nodes<Liar>,
}

/// A change to the node's answers.
type Lie = fn(&mut Value);

struct Liar(Http, Lie);

impl Transport for Liar {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let mut response = self.0.send(request).await?;
        let mut body = serde_json::from_slice(&response.body).unwrap();
        (self.1)(&mut body);
        response.body = body.to_string().into_bytes();
        Ok(response)
    }

    async fn sleep(&self, duration: Duration) {
        self.0.sleep(duration).await;
    }

    fn now(&self) -> UnixTime {
        self.0.now()
    }
}

impl Stage {
    async fn new() -> Option<Self> {
        let engine = match Anvil::installed() {
            Ok(engine) => engine,
            Err(reason) => {
                eprintln!("skipped: {reason}");
                return None;
            }
        };
        let anvil = Anvil::start(&engine, 1).unwrap();
        let http = Http::new(Timeouts::default()).unwrap();
        let stage = Self { nodes: connect(&anvil, |_| ()), anvil, http };
        for _ in 0..200 {
            if stage.try_rpc("eth_chainId", &json!([])).await.is_some() {
                return Some(stage);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("anvil does not answer");
    }

    async fn try_rpc(&self, method: &str, params: &Value) -> Option<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = Request::new(Method::Post, Url::parse(&self.anvil.url()).unwrap());
        let request = request.with_header("content-type", "application/json").with_body(body.into_bytes());
        let response = self.http.send(&request).await.ok()?;
        let reply: Value = serde_json::from_slice(&response.body).unwrap();
        assert!(reply["error"].is_null(), "{method}: {reply}");
        Some(reply["result"].clone())
    }

    async fn rpc(&self, method: &str, params: Value) -> Value {
        self.try_rpc(method, &params).await.expect("anvil answers")
    }

    fn chain(&self) -> EvmChain<'_, Liar> {
        self.nodes.evm("ethereum").unwrap()
    }

    async fn rich(&self, account: Address) {
        self.rpc("anvil_setBalance", json!([account, RICH])).await;
    }

    /// Sends a call as an account whose key nobody has.
    async fn send(&self, from: Address, to: Option<Address>, data: &[u8]) -> Value {
        self.rich(from).await;
        self.rpc("anvil_impersonateAccount", json!([from])).await;
        let mut call = json!({"from": from, "data": hex::encode_prefixed(data), "gas": "0x500000"});
        if let Some(to) = to {
            call["to"] = json!(to);
        }
        let id = self.rpc("eth_sendTransaction", json!([call])).await;
        // The engine mines a moment after it accepts a transaction.
        let mut receipt = Value::Null;
        for _ in 0..250 {
            receipt = self.rpc("eth_getTransactionReceipt", json!([id])).await;
            if !receipt.is_null() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        receipt
    }

    /// Broadcasts a transaction and waits until it is mined.
    async fn broadcast(&self, transaction: &BroadcastTransaction) {
        let chain = self.chain();
        chain.broadcast(&transaction.id, &transaction.payload).await.unwrap();
        for _ in 0..250 {
            if let Some(receipt) = chain.receipt(transaction.id.parse().unwrap()).await.unwrap() {
                return assert!(receipt.success, "{receipt:?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{transaction:?} is not mined");
    }

    /// Deploys a contract of `proofs/evm` at an address.
    async fn place(&self, artefact: &str, arguments: &[u8], at: Address) {
        let artefact: Value = serde_json::from_str(artefact).unwrap();
        let code = hex::decode(artefact["bytecode"].as_str().unwrap()).unwrap();
        let receipt = self.send(Address::repeat_byte(0xde), None, &[&code, arguments].concat()).await;
        let code = self.rpc("eth_getCode", json!([receipt["contractAddress"], "latest"])).await;
        self.rpc("anvil_setCode", json!([at, code])).await;
    }

    /// Deploys the HTLC of one side at its pinned address, and its token.
    async fn deploy(&self, terms: &HtlcTerms) {
        let (htlc, token) = places(terms);
        let Some(token) = token else {
            return self.place(include_str!("../../evm/contracts/out/NativeHtlc.json"), &[], htlc).await;
        };
        let named = ("TEST".to_owned(), "TEST".to_owned(), U256::from(8)).abi_encode_params();
        self.place(include_str!("../../evm/contracts/out/Token.json"), &named, token).await;
        let arguments = (token, "3".to_owned()).abi_encode_params();
        self.place(include_str!("../../evm/contracts/out/Htlc.json"), &arguments, htlc).await;
    }

    async fn mint(&self, token: Address, to: Address, amount: U256) {
        let call = [keccak256("mint(address,uint256)")[..4].to_vec(), (to, amount).abi_encode_params()].concat();
        self.send(Address::repeat_byte(0xde), Some(token), &call).await;
    }

    async fn approve(&self, token: Address, owner: Address, spender: Address, amount: U256) {
        self.send(owner, Some(token), &Approve { spender, amount }.encode()).await;
    }

    async fn mine(&self, blocks: u64) {
        self.rpc("anvil_mine", json!([format!("{blocks:#x}")])).await;
    }

    async fn state(&self, terms: &HtlcTerms) -> HtlcState {
        self.chain().htlc(terms).await.unwrap().state().unwrap().0
    }

    async fn judge(&self, record: &VerifiedRecord) -> Result<Funded, Hold> {
        let quorum = self.chain().htlc(&record.terms.destination).await.unwrap();
        let now = SystemTime::now().into();
        let rule = registry().chains().find(|chain| chain.name() == "ethereum").unwrap().profile.finality;
        Funded::judge(&record.terms, &quorum, &rule, now)
    }
}

fn connect(anvil: &Anvil, lie: Lie) -> Nodes<Liar> {
    let endpoints = Endpoints::new(vec![Endpoint::parse(&anvil.url()).unwrap()]).unwrap();
    Nodes::new(Liar(Http::new(Timeouts::default()).unwrap(), lie), NodeConfig::new().with("ethereum", endpoints), registry())
}

fn places(terms: &HtlcTerms) -> (Address, Option<Address>) {
    let token = terms.token.as_ref().map(|token| token.parse().unwrap());
    (address::from_account(terms.htlc.as_ref().unwrap()).unwrap(), token)
}

fn read(case: &Case) -> VerifiedRecord {
    let value = json::parse(case.input.as_bytes()).unwrap();
    let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
    verify_record(proposal, registry(), &Policy::default()).unwrap()
}

/// Returns an order of the fixtures with this test's secret and the ids that follow from it.
fn order(id: &str) -> (Case, VerifiedRecord) {
    let case = fixture::<Evm>(id);
    let before = read(&case).terms;
    let hash = SecretHash::of(&SECRET);
    let mut changed = case.replaced(&hex::encode(before.source.secret_hash.0), &hex::encode(hash.0));
    for terms in [&before.source, &before.destination].into_iter().filter(|terms| terms.chain == "ethereum") {
        let input = SwapIdInput {
            secret_hash: &hash.0,
            initiator: terms.initiator.bytes(),
            redeemer: terms.redeemer.bytes(),
            timelock: terms.timelock,
            amount: terms.amount,
        };
        let id = swap_id(Version::V3, 1, &input, terms.htlc.as_ref().unwrap().bytes());
        changed = changed.replaced(&terms.swap_id, &hex::encode(id));
    }
    let record = read(&changed);
    (changed, record)
}

fn signed(mut order: UnsignedOrder, key: &Key) -> BroadcastTransaction {
    order.sign(key).unwrap();
    let signed = order.finish().unwrap();
    let [transaction] = signed.transactions().try_into().unwrap();
    BroadcastTransaction {
        chain: "ethereum".to_owned(),
        role: transaction.role,
        id: transaction.id,
        payload: hex::encode_prefixed(&transaction.bytes),
        spends: Vec::new(),
    }
}

fn refused(error: &NodeError) -> (Code, &str) {
    match error {
        NodeError::Refused(refusal) => (refusal.code(), refusal.location()),
        other => panic!("{other}"),
    }
}

/// Signs only the call of an order, with the chain's fees.
async fn prepare(stage: &Stage, order: &VerifiedOrder, owner: Address) -> UnsignedOrder {
    let calls = stage.chain().calls(owner, Speed::Normal, &Policy::default()).await.unwrap();
    order.prepare(calls).unwrap()
}

#[tokio::test]
async fn a_swap_from_funding_to_redemption_and_refund() {
    let Some(stage) = Stage::new().await else { return };
    let (case, record) = order("evm-record-same-chain");
    let (source, destination) = (&record.terms.source, &record.terms.destination);
    stage.deploy(source).await;
    stage.deploy(destination).await;
    let (chain, policy) = (stage.chain(), Policy::default());
    let key = key::<Evm>(&case);
    let owner = key.address();
    let (htlc, token) = places(source);
    let token = token.unwrap();

    // Nothing is deployed yet.
    let described = chain.describe_contract(htlc).await.unwrap();
    let domain = described.domain.unwrap();
    assert!(described.code_hash.is_some());
    assert_eq!((domain.name.as_str(), domain.verifying_contract), ("HTLC", htlc));
    assert_eq!(described.token, Some(token));
    assert_eq!(chain.describe_contract(owner).await.unwrap().code_hash, None);
    assert_eq!(stage.state(source).await, HtlcState::Absent);
    assert_eq!(stage.judge(&record).await, Err(Hold::NotFunded));

    // The preflight reports each missing item in turn.
    let verified = verified::<Evm>(&case);
    let unsigned = prepare(&stage, &verified, owner).await;
    assert_eq!(refused(&chain.preflight(&unsigned).await.unwrap_err()), (Code::InsufficientFunds, "/token"));
    stage.mint(token, owner, source.amount).await;
    assert_eq!(refused(&chain.preflight(&unsigned).await.unwrap_err()), (Code::AllowanceTooLow, "/allowance"));
    stage.approve(token, owner, htlc, source.amount).await;
    assert_eq!(chain.allowance(token, owner, htlc).await.unwrap(), source.amount);
    stage.rpc("anvil_setBalance", json!([owner, "0x1"])).await;
    assert_eq!(refused(&chain.preflight(&unsigned).await.unwrap_err()), (Code::InsufficientFunds, "/balance"));
    stage.rich(owner).await;

    // The user funds the source.
    let unsigned = prepare(&stage, &verified, owner).await;
    let preflight = chain.preflight(&unsigned).await.unwrap();
    assert!(preflight.gas_used.is_some_and(|gas| gas > 50_000), "{preflight:?}");
    let funding = signed(unsigned, &key);
    stage.broadcast(&funding).await;
    chain.broadcast(&funding.id, &funding.payload).await.unwrap();
    let (state, seen) = chain.htlc(source).await.unwrap().state().unwrap();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!((&locked.initiator, &locked.redeemer, locked.amount), (&source.initiator, &source.redeemer, source.amount));
    assert_eq!((locked.timelock, locked.elapsed, locked.covered), (source.timelock, 0, true));
    assert_eq!((seen.depth, seen.is_safe), (1, false));
    // Opening the same order a second time would fail.
    stage.mint(token, owner, source.amount).await;
    stage.approve(token, owner, htlc, source.amount).await;
    let again = prepare(&stage, &verified, owner).await;
    assert_eq!(refused(&chain.preflight(&again).await.unwrap_err()), (Code::SimulationReverted, "/initiate"));

    // The solver pays.
    let (payout, payout_token) = places(destination);
    let payout_token = payout_token.unwrap();
    let solver = address::from_account(&destination.initiator).unwrap();
    let redeemer = address::from_account(&destination.redeemer).unwrap();
    stage.mint(payout_token, solver, destination.amount).await;
    stage.approve(payout_token, solver, payout, destination.amount).await;
    let initiate = Initiate {
        initiator: None,
        redeemer,
        timelock: U256::from(destination.timelock),
        amount: destination.amount,
        secret_hash: destination.secret_hash.0.into(),
        destination_data: None,
    };
    stage.send(solver, Some(payout), &initiate.encode()).await;
    assert!(matches!(stage.judge(&record).await, Err(Hold::NotFinal { .. })));
    stage.mine(40).await;
    let funded = stage.judge(&record).await.unwrap();
    assert_eq!(funded.left().units, destination.timelock - 40);
    assert!(funded.seen().is_safe && !funded.seen().is_finalized);

    // Terms that differ from those on the chain.
    let changed = |change: fn(&mut HtlcTerms)| {
        let mut other = record.clone();
        change(&mut other.terms.destination);
        other
    };
    let differing: [fn(&mut HtlcTerms); 4] = [
        |terms| terms.redeemer = terms.initiator.clone(),
        |terms| terms.initiator = terms.redeemer.clone(),
        |terms| terms.amount += U256::ONE,
        |terms| terms.timelock += 1,
    ];
    for change in differing {
        assert!(matches!(stage.judge(&changed(change)).await, Err(Hold::Differs(_))));
    }
    assert_eq!(stage.judge(&changed(|terms| terms.swap_id = "11".repeat(32))).await, Err(Hold::NotFunded));
    let other_token = stage.judge(&changed(|terms| terms.token = Some(Address::repeat_byte(7).to_string()))).await;
    assert!(matches!(other_token, Err(Hold::Unclear(_))), "{other_token:?}");
    let no_contract = stage.judge(&changed(|terms| terms.htlc = Some(address::to_account(Address::repeat_byte(7))))).await;
    assert!(matches!(no_contract, Err(Hold::Unclear(_))), "{no_contract:?}");

    // The redemption reveals the secret.
    let snapshot = stage.rpc("evm_snapshot", json!([])).await;
    let redemption = recover::redeem(&record.record, Leg::Destination, &SECRET, registry()).unwrap();
    let calls = chain.calls(owner, Speed::Fast, &policy).await.unwrap();
    let unsigned = redemption.prepare(calls.clone().sent_by(owner)).unwrap();
    assert_eq!(chain.preflight(&unsigned).await.unwrap().gas_used, None);
    let redemption = signed(unsigned, &key);
    stage.broadcast(&redemption).await;
    let (state, seen) = chain.htlc(destination).await.unwrap().state().unwrap();
    assert_eq!(state, HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(redemption.id.clone()) });
    assert_eq!((seen.depth, seen.is_safe), (1, false));
    assert_eq!(chain.balance(redeemer, Some(payout_token)).await.unwrap(), destination.amount);
    assert_eq!(stage.judge(&record).await, Err(Hold::Redeemed));

    // Blocks without the redemption replace its block. The solver refunds its payment: not before its time, and with
    // higher fees while the refund is not mined.
    stage.rpc("evm_revert", json!([snapshot])).await;
    assert!(stage.judge(&record).await.is_ok());
    let refund = recover::refund(&record.record, Leg::Destination, registry()).unwrap();
    let calls = chain.calls(owner, Speed::Slow, &policy).await.unwrap();
    let early = chain.preflight(&refund.prepare(calls.clone().sent_by(owner)).unwrap()).await.unwrap_err();
    assert_eq!(refused(&early), (Code::SimulationReverted, "/refund"));
    stage.mine(destination.timelock - 39).await;
    assert!(matches!(stage.judge(&record).await, Err(Hold::NoTime { left: 0, .. })));
    let calls = chain.calls(owner, Speed::Slow, &policy).await.unwrap();
    let unsigned = refund.prepare(calls.clone().sent_by(owner)).unwrap();
    assert!(chain.preflight(&unsigned).await.unwrap().gas_used.is_some());
    stage.rpc("evm_setAutomine", json!([false])).await;
    let slow = signed(unsigned, &key);
    chain.broadcast(&slow.id, &slow.payload).await.unwrap();
    assert_eq!(chain.receipt(slow.id.parse().unwrap()).await.unwrap(), None);
    let (recovery, account) = (Recovery::Evm(refund), owner.to_string());
    let sent = stage.nodes.submission("ethereum", &slow.id, &slow.payload).unwrap();
    let replacement = stage.nodes.prepare_replacement(&recovery, "ethereum", &account, &sent, Speed::Slow, &policy).await.unwrap();
    let Unsigned::Evm(replacement) = replacement else { panic!("an EVM transaction is replaced by its nonce") };
    let faster = signed(replacement, &key);
    assert_ne!(faster.id, slow.id);
    chain.broadcast(&faster.id, &faster.payload).await.unwrap();
    stage.mine(1).await;
    let transaction = Some(faster.id.clone());
    assert_eq!(stage.state(destination).await, HtlcState::Refunded { transaction });
    assert_eq!(stage.judge(&record).await, Err(Hold::Refunded));
    assert_eq!(chain.receipt(slow.id.parse().unwrap()).await.unwrap(), None);
    assert!(matches!(chain.broadcast(&slow.id, &slow.payload).await, Err(NodeError::Rejected { .. })));
}

/// Increments the amount in every answer of `orders`.
fn more(body: &mut Value) {
    for reply in body.as_array_mut().into_iter().flatten() {
        let Some(text) = reply["result"].as_str().filter(|text| text.len() == 2 + 6 * 64) else { continue };
        let mut words = hex::decode(text).unwrap();
        words[5 * 32 - 1] ^= 1;
        reply["result"] = json!(hex::encode_prefixed(words));
    }
}

#[tokio::test]
async fn an_answer_that_differs_from_its_proof_is_not_believed() {
    let Some(stage) = Stage::new().await else { return };
    for id in ["evm-record-same-chain", "evm-record-native"] {
        let case = fixture::<Evm>(id);
        let record = read(&case);
        let source = &record.terms.source;
        stage.deploy(source).await;
        let key = key::<Evm>(&case);
        let owner = key.address();
        if let (htlc, Some(token)) = places(source) {
            stage.mint(token, owner, source.amount).await;
            stage.approve(token, owner, htlc, source.amount).await;
        }
        stage.rich(owner).await;
        let unsigned = prepare(&stage, &verified::<Evm>(&case), owner).await;
        assert!(stage.chain().preflight(&unsigned).await.unwrap().gas_used.is_some());
        stage.broadcast(&signed(unsigned, &key)).await;
        assert!(matches!(stage.state(source).await, HtlcState::Locked(_)));

        let lying = connect(&stage.anvil, more);
        let error = lying.evm("ethereum").unwrap().htlc(source).await.unwrap_err();
        assert!(error.to_string().contains("the proof contains another order"), "{error}");
        // Without a proof, only the quorum and the comparison with the terms protect against this lie.
        let unproven = connect(&stage.anvil, |body| {
            more(body);
            for reply in body.as_array_mut().into_iter().flatten().filter(|reply| reply["result"]["storageProof"].is_array()) {
                reply["result"]["accountProof"] = json!([]);
            }
        });
        let (state, _) = unproven.evm("ethereum").unwrap().htlc(source).await.unwrap().state().unwrap();
        assert!(matches!(&state, HtlcState::Locked(locked) if locked.amount != source.amount), "{state:?}");
    }
}
