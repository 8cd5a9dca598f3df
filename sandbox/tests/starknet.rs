//! countersign pays and reads against the model of Starknet, and the reference SDK computes the same hashes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test ends by panicking"
)]
#![allow(missing_docs, missing_debug_implementations, reason = "a test is no library")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::recover::Recovery;
use countersign::starknet::recover::{self, Leg as Side};
use countersign::starknet::{Felt, InvokeTransaction, Key, ResourceBound, ResourceBounds, UnsignedOrder};
use countersign::{
    BroadcastTransaction, CreateOrder, Finality, FinalityRule, Funded, Hold, HtlcState, Policy, Proposal, Registry, SecretHash, Signed,
    UnixTime, Unsigned, Verified, VerifiedRecord, verify_record,
};
use countersign_client::{Request, Response, Transport, TransportError};
use countersign_node::starknet::TransactionStatus;
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes, Speed};
use countersign_sandbox::accounts::{self, RELAYER, SOLVER, USER};
use countersign_sandbox::chains::starknet::Starknet;
use countersign_sandbox::chains::{Change, Engine, Terms};
use countersign_sandbox::clock::Clock;
use countersign_sandbox::http;
use serde_json::{Value, json};
use starknet_core::types::TypedData;
use starknet_core::types::contract::SierraClass;
use starknet_core::utils::{get_contract_address, get_selector_from_name, get_storage_var_address};
use starknet_crypto::{get_public_key, rfc6979_generate_k, sign, verify};

const CHAIN: &str = "starknet";
const SECRET: [u8; 32] = *b"the secret of the sandbox's test";
const STRK: &str = "0x4718f5a0fc34cc1af16a1cdee98ffb20c31f5cd61d6ab07201858f4287c938d";

/// The front as an HTTP stack.
struct Wire {
    engine: Mutex<Starknet>,
    clock: Arc<Clock>,
}

impl Transport for Wire {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let reply = post(&mut self.engine.lock().unwrap(), request.body.as_deref().map_or(&[][..], Vec::as_slice));
        Ok(Response::new(reply.status, reply.body))
    }

    async fn sleep(&self, _: Duration) {}

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(self.clock.seconds())
    }
}

fn post(engine: &mut Starknet, body: &[u8]) -> http::Reply {
    let (method, path) = ("POST".to_owned(), "/".to_owned());
    engine.answer(&http::Request { method, path, query: String::new(), headers: Vec::new(), body: body.to_vec() })
}

/// A chain, and a wallet that is connected to it.
struct Stage {
    nodes: Nodes<Wire>,
    registry: &'static Registry,
    user: String,
}

fn engine() -> Starknet {
    Starknet::new(CHAIN, "SN_MAIN", Arc::new(Clock::default()))
}

fn felt(text: &str) -> Felt {
    Felt::from_hex(text).unwrap()
}

fn hex(felt: Felt) -> String {
    format!("{felt:#x}")
}

impl Stage {
    fn new() -> Self {
        let clock = Arc::new(Clock::default());
        let mut engine = Starknet::new(CHAIN, "SN_MAIN", clock.clone());
        let user = engine.address_of(&accounts::key(USER));
        engine.fund(&user, "starknet:strk", 1_000_000_000_000_000_000_000).unwrap();
        engine.fund(&user, "starknet:wbtc", 500_000_000).unwrap();
        let listing = engine.listing();
        let balances: Vec<_> =
            listing.assets.iter().map(|asset| json!({"asset": asset["id"], "balance": "1", "virtual_balance": "1"})).collect();
        let solver = json!({"solver_id": "0x1", "chain": CHAIN, "address": listing.solver, "assets": balances});
        let registry = json!({"chains": [listing.chain], "assets": listing.assets, "solvers": [solver]});
        let registry: &'static Registry = Box::leak(Box::new(registry.to_string().parse().unwrap()));
        let endpoints = Endpoints::new(vec![Endpoint::parse("http://127.0.0.1:5050").unwrap()]).unwrap();
        let wire = Wire { engine: Mutex::new(engine), clock };
        Self { nodes: Nodes::new(wire, NodeConfig::new().with(CHAIN, endpoints), registry), registry, user }
    }

    fn engine<R>(&self, act: impl FnOnce(&mut Starknet) -> R) -> R {
        act(&mut self.nodes.transport().engine.lock().unwrap())
    }

    fn rpc(&self, method: &str, params: &Value) -> Value {
        let reply = self.raw(method, params);
        assert!(reply["error"].is_null(), "{method}: {reply}");
        reply["result"].clone()
    }

    fn raw(&self, method: &str, params: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        serde_json::from_slice(&self.engine(|engine| post(engine, body.as_bytes())).body).unwrap()
    }

    fn terms(&self, is_source: bool, hash: [u8; 32]) -> Terms {
        let (asset, amount, timelock) = if is_source { ("wbtc", 1_250_000, 2_880) } else { ("strk", 6_000_000_000_000_000_000, 1_440) };
        let asset = format!("{CHAIN}:{asset}");
        Terms { asset, amount, owner: self.user.clone(), delegate: None, is_source, timelock, secret_hash: hash }
    }

    /// The documents of an order, as a service makes them from what the engine says.
    fn documents(&self, secret: &[u8; 32]) -> (CreateOrder, String, String) {
        let hash = SecretHash::of(secret).0;
        let [source, destination] = [true, false].map(|is_source| self.terms(is_source, hash));
        let leg = |terms: &Terms| json!({"asset": terms.asset, "owner": terms.owner, "amount": terms.amount.to_string()});
        let request = json!({"source": leg(&source), "destination": leg(&destination), "secret_hash": hash_text(&hash)});
        let id = "ce6025dca9cf3ff1ecb29d2da7d7f6ce08d5abcd59e6c165cc059b4dd0e0f983";
        let mut result = self.engine(|engine| engine.payloads(&source)).unwrap();
        result.insert("order_id".to_owned(), json!(id));
        let created = "2026-03-04T05:06:07.123456Z";
        let record = |terms: &Terms| {
            let leg = self.engine(|engine| engine.leg(terms)).unwrap();
            json!({
                "created_at": created, "swap_id": leg.swap_id, "chain": CHAIN, "asset": terms.asset, "initiator": leg.initiator,
                "redeemer": leg.redeemer, "timelock": terms.timelock, "filled_amount": "0", "asset_price": 1.0,
                "amount": terms.amount.to_string(), "secret_hash": &hash_text(&hash)[2..], "secret": "", "initiate_tx_hash": "",
                "redeem_tx_hash": "", "refund_tx_hash": "", "initiate_block_number": "0", "redeem_block_number": "0",
                "refund_block_number": "0", "required_confirmations": 1, "current_confirmations": 0, "initiate_timestamp": null,
                "redeem_timestamp": null, "refund_timestamp": null,
            })
        };
        let order = json!({
            "created_at": created, "source_swap": record(&source), "destination_swap": record(&destination), "nonce": "1",
            "order_id": id, "affiliate_fees": [], "version": "v3", "solver_id": "0x1", "integrator": "test",
        });
        let response = json!({"status": "Ok", "result": result});
        (request.to_string().parse().unwrap(), response.to_string(), order.to_string())
    }

    fn record(&self, secret: &[u8; 32]) -> VerifiedRecord {
        let (request, response, record) = self.documents(secret);
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
        verify_record(proposal, self.registry, &Policy::default()).unwrap()
    }

    async fn prepare(&self, secret: &[u8; 32]) -> Result<UnsignedOrder, NodeError> {
        let (request, response, record) = self.documents(secret);
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
        let order = countersign::starknet::verify(proposal, self.registry, &Policy::default()).unwrap();
        self.nodes.prepare(&Verified::Starknet(order), CHAIN, "", Speed::Normal, &Policy::default()).await.map(native)
    }

    async fn recover(&self, recovery: recover::Recovery) -> Result<BroadcastTransaction, NodeError> {
        let (recovery, user) = (Recovery::Starknet(recovery), self.user.clone());
        let prepared = self.nodes.prepare_recovery(&recovery, CHAIN, &user, Speed::Normal, &Policy::default()).await?;
        let sent = signed(native(prepared));
        self.send(&sent).await.map(|()| sent)
    }

    async fn send(&self, sent: &BroadcastTransaction) -> Result<(), NodeError> {
        self.nodes.starknet(CHAIN).unwrap().broadcast(&sent.id, &sent.payload).await.map(drop)
    }

    async fn status(&self, id: &str) -> Option<TransactionStatus> {
        self.nodes.starknet(CHAIN).unwrap().status(felt(id)).await.unwrap()
    }

    async fn state(&self, terms: &countersign::HtlcTerms) -> HtlcState {
        self.nodes.starknet(CHAIN).unwrap().htlc(terms).await.unwrap().state().unwrap().0
    }

    /// Judges by the strictest rule.
    async fn judge(&self, record: &VerifiedRecord) -> Result<Funded, Hold> {
        let quorum = self.nodes.starknet(CHAIN).unwrap().htlc(&record.terms.destination).await.unwrap();
        let rule = FinalityRule::new(Finality::Finalized, 900, 450);
        Funded::judge(&record.terms, &quorum, &rule, self.nodes.transport().now())
    }
}

fn hash_text(hash: &[u8; 32]) -> String {
    format!("0x{}", SecretHash(*hash))
}

fn native(unsigned: Unsigned) -> UnsignedOrder {
    match unsigned {
        Unsigned::Starknet(order) => order,
        other => panic!("{other:?}"),
    }
}

fn key() -> Key {
    hex(Felt::from_bytes_be(&accounts::key(USER))).trim_start_matches("0x").parse().unwrap()
}

fn signed(mut order: UnsignedOrder) -> BroadcastTransaction {
    order.sign(&key()).unwrap();
    Signed::Starknet(order.finish().unwrap()).broadcasts().pop().unwrap()
}

#[tokio::test]
async fn a_swap_from_payment_to_redemption() {
    let stage = Stage::new();
    let record = stage.record(&SECRET);
    let (paid, payout) = (&record.terms.source, &record.terms.destination);
    assert!(paid.swap_id_recomputed && payout.swap_id_recomputed, "the ids follow from the terms");
    // The service lets users approve everything, and says so in every answer that was captured.
    let warnings: Vec<_> = record.warnings.list().iter().map(|warning| warning.code().name()).collect();
    assert_eq!(warnings, ["unlimited_approval"]);
    assert_eq!(stage.state(paid).await, HtlcState::Absent);
    assert_eq!(stage.judge(&record).await, Err(Hold::NotFunded));

    // The user approves and pays in one transaction, which waits for a block.
    let order = stage.prepare(&SECRET).await.unwrap();
    assert_eq!(order.payloads().invoke.as_ref().unwrap().invoke.calls.len(), 2);
    let sent = signed(order);
    stage.send(&sent).await.unwrap();
    stage.send(&sent).await.unwrap();
    assert_eq!(stage.status(&sent.id).await, Some(TransactionStatus::Pending));
    assert_eq!((stage.engine(|engine| engine.pending()), stage.state(paid).await), (1, HtlcState::Absent));
    stage.engine(|engine| engine.mine(1));
    assert_eq!(stage.status(&sent.id).await, Some(TransactionStatus::AcceptedOnL2 { success: true }));
    let HtlcState::Locked(locked) = stage.state(paid).await else { panic!("not locked") };
    assert_eq!((locked.amount, locked.timelock, locked.covered), (paid.amount, 2_880, true));
    let height = stage.engine(|engine| engine.height());
    let events = stage.engine(|engine| engine.events());
    assert_eq!((events.len(), &events[0].swap_id, &events[0].change), (1, &paid.swap_id, &Change::Initiated { amount: 1_250_000 }));
    assert_eq!((&events[0].transaction, events[0].height), (&sent.id, height));

    // The solver pays. It is final by the strictest rule after as many blocks as the engine says, and not before.
    let hash = SecretHash::of(&SECRET).0;
    let terms = stage.terms(false, hash);
    let lock = stage.engine(|engine| engine.lock(&terms)).unwrap();
    assert!(stage.engine(|engine| engine.lock(&terms)).unwrap_err().contains("HTLC: duplicate order"));
    stage.engine(|engine| engine.mine(1));
    let depth = stage.engine(|engine| engine.depth());
    stage.engine(|engine| engine.mine(depth - 1));
    assert!(matches!(stage.judge(&record).await, Err(Hold::NotFinal { .. })));
    stage.engine(|engine| engine.mine(1));
    let funded = stage.judge(&record).await.unwrap();
    assert_eq!((funded.left(), funded.seen().is_finalized), (1_440 - depth, true));
    assert_eq!(stage.status(&lock).await, Some(TransactionStatus::AcceptedOnL1 { success: true }));

    // The user redeems, and the solver learns the secret.
    let before = stage.engine(|engine| engine.balance(&stage.user, "starknet:strk"));
    let sent = stage.recover(recover::redeem(&record.record, Side::Destination, &SECRET, stage.registry).unwrap()).await.unwrap();
    stage.engine(|engine| engine.mine(1));
    assert!(matches!(stage.state(payout).await, HtlcState::Redeemed { secret: Some(secret), .. } if secret == SECRET));
    let receipt = stage.rpc("starknet_getTransactionReceipt", &json!({"transaction_hash": sent.id}));
    let fee = u128::from_str_radix(receipt["actual_fee"]["amount"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    assert_eq!(stage.engine(|engine| engine.balance(&stage.user, "starknet:strk")).unwrap() + fee, before.unwrap() + terms.amount);
    let events = stage.engine(|engine| engine.events());
    assert_eq!((events.len(), &events[1].change), (2, &Change::Redeemed { secret: SECRET }));

    // The solver takes the source.
    let source = stage.terms(true, hash);
    assert!(stage.engine(|engine| engine.redeem(&source, &[0; 32])).unwrap_err().contains("HTLC: incorrect secret"));
    let id = stage.engine(|engine| engine.redeem(&source, &SECRET)).unwrap();
    stage.engine(|engine| engine.mine(1));
    assert_eq!(stage.status(&id).await, Some(TransactionStatus::AcceptedOnL2 { success: true }));
    assert!(matches!(stage.state(paid).await, HtlcState::Redeemed { .. }));
    assert_eq!(stage.engine(|engine| engine.balance(&stage.user, "starknet:wbtc")), Ok(500_000_000 - 1_250_000));
}

#[tokio::test]
async fn what_the_user_signs_is_sent_by_the_relayer() {
    let stage = Stage::new();
    let paid = stage.record(&SECRET).terms.source;
    let terms = stage.terms(true, SecretHash::of(&SECRET).0);
    // A first payment leaves an allowance behind.
    stage.send(&signed(stage.prepare(b"the secret of the payment before").await.unwrap())).await.unwrap();
    stage.engine(|engine| engine.mine(1));
    let payloads = stage.engine(|engine| engine.payloads(&terms)).unwrap();
    assert!(payloads["approval_transaction"].is_null() && payloads["typed_data"].is_object());
    let mut order = stage.prepare(&SECRET).await.unwrap();
    assert!(order.payloads().invoke.is_none());
    let hash = order.payloads().message.as_ref().unwrap().hashes.message_hash;
    // The reference SDK's encoder of typed data.
    let typed: TypedData = serde_json::from_value(payloads["typed_data"].clone()).unwrap();
    assert_eq!(typed.message_hash(felt(&stage.user)).unwrap(), hash);
    order.sign(&key()).unwrap();
    let signature = order.finish().unwrap().gasless().unwrap().signature;
    assert!(stage.engine(|engine| engine.initiate(&terms, "1,2")).unwrap_err().contains("HTLC: invalid initiator signature"));
    assert!(stage.engine(|engine| engine.initiate(&terms, "what")).is_err());
    let before = stage.engine(|engine| engine.balance(&stage.user, "starknet:strk"));
    let id = stage.engine(|engine| engine.initiate(&terms, &signature)).unwrap();
    stage.engine(|engine| engine.mine(1));
    assert_eq!(stage.status(&id).await, Some(TransactionStatus::AcceptedOnL2 { success: true }));
    assert!(matches!(stage.state(&paid).await, HtlcState::Locked(_)));
    assert_eq!(stage.engine(|engine| engine.balance(&stage.user, "starknet:strk")), before, "the relayer pays");
    // Accounts check signatures themselves too.
    let felts: Vec<_> = signature.split(',').map(|felt| hex(Felt::from_dec_str(felt).unwrap())).collect();
    let valid = |first: String| {
        let selector = hex(get_selector_from_name("is_valid_signature").unwrap());
        let calldata = json!([first, "0x2", felts[0], felts[1]]);
        let request = json!({"contract_address": stage.user, "entry_point_selector": selector, "calldata": calldata});
        stage.rpc("starknet_call", &json!({"request": request, "block_id": "latest"}))
    };
    assert_eq!((valid(hex(hash)), valid("0x5".to_owned())), (json!(["0x56414c4944"]), json!(["0x0"])));
}

#[tokio::test]
async fn a_refund_waits_for_the_timelock() {
    let stage = Stage::new();
    let hash = SecretHash::of(&SECRET).0;
    let record = stage.record(&SECRET);
    stage.engine(|engine| engine.lock(&stage.terms(true, hash))).unwrap();
    stage.engine(|engine| engine.lock(&stage.terms(false, hash))).unwrap();
    stage.engine(|engine| engine.mine(1));
    let refund = || recover::refund(&record.record, Side::Source, stage.registry).unwrap();
    // The refund is in the block after these.
    stage.engine(|engine| engine.mine(2_879));
    assert!(stage.recover(refund()).await.unwrap_err().to_string().contains("HTLC: order not expired"));
    assert!(stage.engine(|engine| engine.refund(&stage.terms(true, hash))).unwrap_err().contains("HTLC: order not expired"));
    let id = stage.engine(|engine| engine.refund(&stage.terms(false, hash))).unwrap();
    stage.engine(|engine| engine.mine(1));
    assert_eq!(stage.status(&id).await, Some(TransactionStatus::AcceptedOnL2 { success: true }));
    assert!(matches!(stage.state(&record.terms.destination).await, HtlcState::Refunded { .. }));
    stage.recover(refund()).await.unwrap();
    stage.engine(|engine| engine.mine(1));
    assert!(matches!(stage.state(&record.terms.source).await, HtlcState::Refunded { .. }));
    assert_eq!(stage.engine(|engine| engine.balance(&stage.user, "starknet:wbtc")), Ok(500_000_000));
    let changes: Vec<_> = stage.engine(|engine| engine.events()).into_iter().map(|event| event.change).collect();
    assert_eq!(changes.len(), 4);
    assert_eq!(&changes[2..], [Change::Refunded, Change::Refunded]);
}

#[tokio::test]
async fn numbers_are_those_of_the_reference_sdk() {
    let stage = Stage::new();
    // The account of a key.
    let public = get_public_key(&Felt::from_bytes_be(&accounts::key(SOLVER)));
    let class = stage.rpc("starknet_getClassHashAt", &json!({"block_id": "latest", "contract_address": stage.user}));
    let solver = stage.engine(|engine| engine.address_of(&accounts::key(SOLVER)));
    assert_eq!(get_contract_address(public, felt(class.as_str().unwrap()), &[public], Felt::ZERO), felt(&solver));
    // The class of the HTLC, and the generation that its interface shows.
    let asset = stage.registry.asset("starknet:wbtc").unwrap();
    let htlc = hex(Felt::from_bytes_be_slice(asset.htlc.as_ref().unwrap().bytes()));
    let described = stage.nodes.starknet(CHAIN).unwrap().describe_contract(felt(&htlc)).await.unwrap();
    let mut shown = stage.rpc("starknet_getClassAt", &json!({"block_id": "latest", "contract_address": htlc}));
    shown["abi"] = serde_json::from_str(shown["abi"].as_str().unwrap()).unwrap();
    shown["sierra_program_debug_info"] = json!({"type_names": [], "libfunc_names": [], "user_func_names": []});
    let shown: SierraClass = serde_json::from_value(shown).unwrap();
    assert_eq!(described.class_hash.map(hex), Some(hex(shown.class_hash().unwrap())));
    assert_eq!(described.generation.map(|generation| generation.name()), Some("2025_11"));
    assert_eq!(described.token, asset.token.as_ref().map(|token| felt(&token.text)));
    // Storage, at two blocks.
    let terms = stage.terms(false, SecretHash::of(&SECRET).0);
    let id = felt(&format!("0x{}", stage.engine(|engine| engine.leg(&terms)).unwrap().swap_id));
    let asset = stage.registry.asset("starknet:strk").unwrap();
    let htlc = hex(Felt::from_bytes_be_slice(asset.htlc.as_ref().unwrap().bytes()));
    stage.engine(|engine| engine.lock(&terms)).unwrap();
    let before = stage.engine(|engine| engine.height());
    stage.engine(|engine| engine.mine(3));
    let base = get_storage_var_address("orders", &[id]).unwrap();
    let slot = |key: Felt, block: u64| {
        let params = json!({"contract_address": htlc, "key": hex(key), "block_id": {"block_number": block}});
        stage.rpc("starknet_getStorageAt", &params)
    };
    assert_eq!((slot(base + Felt::ONE, before), slot(base + Felt::ONE, before + 1)), (json!("0x0"), json!(hex(felt(&solver)))));
    assert_eq!(slot(base + Felt::THREE, before + 2), json!(format!("{:#x}", before + 1)));
    assert_eq!(slot(get_storage_var_address("token", &[]).unwrap(), before), json!(STRK));
    let held = get_storage_var_address("ERC20_balances", &[felt(&htlc)]).unwrap();
    let params = json!({"contract_address": STRK, "key": hex(held), "block_id": "latest"});
    assert_eq!(stage.rpc("starknet_getStorageAt", &params), json!(format!("{:#x}", terms.amount)));
    // Other generations are not here, and neither are other contracts.
    let nothing = stage.nodes.starknet(CHAIN).unwrap().describe_contract(Felt::from(0x1234)).await.unwrap();
    assert_eq!((nothing.class_hash, nothing.token), (None, None));
}

#[test]
fn many_blocks_are_quick_and_each_is_found() {
    let stage = Stage::new();
    let clock = stage.nodes.transport().clock.clone();
    let first = stage.engine(|engine| engine.height());
    clock.advance(800_000_000);
    stage.engine(|engine| engine.mine(200_000));
    assert_eq!(stage.engine(|engine| engine.height()), first + 200_000);
    let block = |id: Value| stage.rpc("starknet_getBlockWithTxHashes", &json!({"block_id": id}));
    let mut time = 0;
    for number in [first - 30, first, first + 1, first + 100_000, first + 199_994, first + 199_995, first + 200_000] {
        let shown = block(json!({"block_number": number}));
        assert_eq!(shown["status"], if number <= first + 199_995 { "ACCEPTED_ON_L1" } else { "ACCEPTED_ON_L2" });
        assert_eq!(block(json!({"block_hash": shown["block_hash"]})), shown);
        assert_eq!(block(json!({"block_number": number - 1}))["block_hash"], shown["parent_hash"]);
        assert!(shown["timestamp"].as_u64().unwrap() >= time);
        time = shown["timestamp"].as_u64().unwrap();
    }
    assert!(clock.seconds() - time <= 1);
    assert_eq!(block(json!("l1_accepted"))["block_number"], first + 199_995);
    for missing in [json!({"block_number": first + 200_001}), json!({"block_hash": "0x5"}), json!({"block_number": 7})] {
        assert_eq!(stage.raw("starknet_getBlockWithTxHashes", &json!({"block_id": missing}))["error"]["code"], 24);
    }
}

#[tokio::test]
async fn a_reorganization_takes_a_payment_away() {
    let stage = Stage::new();
    let terms = stage.terms(false, SecretHash::of(&SECRET).0);
    let payout = stage.record(&SECRET).terms.destination;
    let id = stage.engine(|engine| engine.lock(&terms)).unwrap();
    stage.engine(|engine| engine.mine(2));
    assert!(matches!(stage.state(&payout).await, HtlcState::Locked(_)));
    let hash = stage.rpc("starknet_blockHashAndNumber", &json!([]))["block_hash"].clone();
    let height = stage.engine(|engine| engine.height());
    stage.engine(|engine| engine.reorganize(2)).unwrap();
    stage.engine(|engine| engine.mine(2));
    assert_eq!((stage.engine(|engine| engine.height()), stage.state(&payout).await), (height, HtlcState::Absent));
    assert_eq!((stage.status(&id).await, stage.engine(|engine| engine.events()).len()), (None, 0));
    assert_ne!(stage.rpc("starknet_blockHashAndNumber", &json!([]))["block_hash"], hash);
    assert!(stage.engine(|engine| engine.reorganize(6)).unwrap_err().contains("L1"));
    // The solver's nonce is free again.
    stage.engine(|engine| engine.lock(&terms)).unwrap();
    stage.engine(|engine| engine.mine(1));
    assert!(matches!(stage.state(&payout).await, HtlcState::Locked(_)));
}

/// A transaction of the user that makes one call.
fn invoke(stage: &Stage, nonce: u64, amounts: [u64; 3], price: u128, call: &[Felt]) -> Value {
    let prices = [45_000_000_000_000, 3_000_000_000, 60_000].map(|least: u128| least * price / 10);
    let bound = |place: usize| ResourceBound::new(amounts[place], prices[place]);
    let bounds = ResourceBounds::new(bound(0), bound(1), bound(2));
    let mut transaction = InvokeTransaction::new(felt(&stage.user), call.to_vec(), Felt::from(nonce), bounds);
    transaction.tip = u64::try_from(price).unwrap();
    let key = Felt::from_bytes_be(&accounts::key(USER));
    let hash = transaction.hashes(Felt::from_bytes_be_slice(b"SN_MAIN")).tx_hash;
    let signature = sign(&key, &hash, &rfc6979_generate_k(&hash, &key, None)).unwrap();
    json!(transaction.with_signature(vec![signature.r, signature.s]))
}

const AMOUNTS: [u64; 3] = [0, 40_000_000, 5_000];

fn transfer(to: &str, amount: u64) -> Vec<Felt> {
    let selector = get_selector_from_name("transfer").unwrap();
    vec![Felt::ONE, felt(STRK), selector, Felt::THREE, felt(to), Felt::from(amount), Felt::ZERO]
}

#[tokio::test]
async fn transactions_are_refused_as_nodes_refuse_them() {
    let stage = Stage::new();
    let relayer = stage.engine(|engine| engine.address_of(&accounts::key(RELAYER)));
    let pay = transfer(&relayer, 5);
    let send = |transaction: &Value| stage.raw("starknet_addInvokeTransaction", &json!({"invoke_transaction": transaction}));
    let code = |transaction: Value| send(&transaction)["error"]["code"].clone();
    assert_eq!(code(invoke(&stage, 1, AMOUNTS, 20, &pay)), 52);
    assert_eq!(code(invoke(&stage, 0, AMOUNTS, 9, &pay)), 53);
    assert_eq!(code(invoke(&stage, 0, [0, 1, 1], 20, &pay)), 53);
    assert_eq!(code(invoke(&stage, 0, [u64::MAX; 3], 20, &pay)), 54);
    let honest = invoke(&stage, 0, AMOUNTS, 20, &pay);
    let changed = |member: &str, value: Value| {
        let mut other = honest.clone();
        other[member] = value;
        other
    };
    assert_eq!(code(changed("signature", json!(["0x1", "0x2"]))), 55);
    assert_eq!(code(changed("signature", json!([]))), 55);
    assert_eq!(code(changed("sender_address", json!("0x1234"))), 55);
    assert_eq!(code(changed("version", json!("0x100000000000000000000000000000003"))), 61);
    assert_eq!(code(changed("calldata", json!(vec!["0x0"; 5_001]))), -32602);
    for (member, value) in [("version", json!("0x1")), ("nonce", json!(0)), ("calldata", json!(["1"])), ("tip", Value::Null)] {
        assert_eq!(code(changed(member, value)), -32602, "{member}");
    }
    let id = send(&honest)["result"]["transaction_hash"].clone();
    assert_eq!(code(honest.clone()), 59);
    // A replacement must offer a tenth more.
    assert_eq!(code(invoke(&stage, 0, AMOUNTS, 21, &pay)), 64);
    let other = send(&invoke(&stage, 0, AMOUNTS, 22, &transfer(&relayer, 7)))["result"]["transaction_hash"].clone();
    // What reverts is in a block too, and costs a fee.
    let bad = send(&invoke(&stage, 1, AMOUNTS, 20, &transfer("0x0", 1)))["result"]["transaction_hash"].clone();
    let malformed = send(&invoke(&stage, 2, AMOUNTS, 20, &[Felt::TWO]))["result"]["transaction_hash"].clone();
    let gas = send(&invoke(&stage, 3, [0, 600_000, 5_000], 20, &pay))["result"]["transaction_hash"].clone();
    let nonce = |block: &str| stage.rpc("starknet_getNonce", &json!({"block_id": block, "contract_address": stage.user}));
    assert_eq!((nonce("latest"), nonce("pre_confirmed")), (json!("0x0"), json!("0x4")));
    let had = stage.engine(|engine| engine.balance(&relayer, "starknet:strk")).unwrap();
    stage.engine(|engine| engine.mine(1));
    assert_eq!((nonce("latest"), stage.engine(|engine| engine.balance(&relayer, "starknet:strk"))), (json!("0x4"), Ok(had + 7)));
    assert_eq!(stage.status(id.as_str().unwrap()).await, None);
    assert_eq!(stage.status(other.as_str().unwrap()).await, Some(TransactionStatus::AcceptedOnL2 { success: true }));
    for (hash, why) in [(bad, "ERC20: transfer to 0"), (malformed, "deserialize"), (gas, "Insufficient max l2_gas")] {
        let receipt = stage.rpc("starknet_getTransactionReceipt", &json!({"transaction_hash": hash}));
        assert!(receipt["revert_reason"].as_str().unwrap().contains(why), "{receipt}");
        assert_eq!((&receipt["execution_status"], receipt["events"].as_array().unwrap().len()), (&json!("REVERTED"), 1));
        assert_ne!(receipt["actual_fee"]["amount"], "0x0");
    }
    // Everything is still there by hash, in the block, and by its events.
    let block = stage.rpc("starknet_getBlockWithReceipts", &json!({"block_id": "latest"}));
    assert_eq!(block["transactions"].as_array().unwrap().len(), 4);
    assert_eq!(stage.rpc("starknet_getTransactionByHash", &json!({"transaction_hash": other}))["type"], "INVOKE");
    let mut filter = json!({"from_block": {"block_number": 0}, "address": STRK, "chunk_size": 2});
    assert_eq!(stage.raw("starknet_getEvents", &json!({"filter": filter}))["error"]["code"], 24);
    filter["from_block"] = json!({"block_number": block["block_number"]});
    let mut count = 0;
    loop {
        let page = stage.rpc("starknet_getEvents", &json!({"filter": filter}));
        count += page["events"].as_array().unwrap().len();
        filter["continuation_token"] = page["continuation_token"].clone();
        if filter["continuation_token"].is_null() {
            break;
        }
    }
    assert_eq!(count, 5, "one transfer and four fees");
}

/// Signatures for which the library would divide by zero. Their maker knows the key, as everybody does here.
#[test]
fn signatures_that_break_the_library_are_refused() {
    let stage = Stage::new();
    // R = k G with s = hash / k: the recovered key would be the point at infinity. With k = 1, s is the hash.
    let (hash, r) = (Felt::from(77), get_public_key(&Felt::ONE));
    assert!(verify(&r, &hash, &r, &Felt::ONE).is_ok());
    let selector = hex(get_selector_from_name("is_valid_signature").unwrap());
    for (r, s) in [(r, hash), (Felt::ONE, Felt::ONE), (Felt::MAX, Felt::MAX), (Felt::ZERO, Felt::ZERO)] {
        for hash in [hash, Felt::ZERO, Felt::MAX] {
            let calldata = json!([hex(hash), "0x2", hex(r), hex(s)]);
            let request = json!({"contract_address": stage.user, "entry_point_selector": selector, "calldata": calldata});
            assert_eq!(stage.rpc("starknet_call", &json!({"request": request, "block_id": "latest"})), json!(["0x0"]));
        }
    }
}

#[test]
fn any_bytes_are_answered_with_an_error() {
    let mut engine = engine();
    let mut code = |body: &str| {
        let reply = post(&mut engine, body.as_bytes());
        let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        (reply.status, body["error"]["code"].as_i64().unwrap_or_default())
    };
    for (body, expected) in [
        ("", -32_700),
        ("{", -32_700),
        ("\u{0}\u{1}", -32_700),
        ("[]", -32_600),
        ("7", -32_600),
        ("null", -32_600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#, -32_601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"starknet_what"}"#, -32_601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"starknet_call","params":7}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"starknet_call","params":{}}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"starknet_getNonce","params":["latest","0x1"]}"#, 20),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"starknet_getNonce","params":["latest","0xfffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"]}"#,
            -32_602,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"starknet_getTransactionReceipt","params":["0x1"]}"#, 29),
    ] {
        assert_eq!(code(body), (200, expected), "{body}");
    }
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"starknet_chainId","params":[]}"#), (200, 0));
    assert_eq!(code(r#"{"jsonrpc":"2.0","method":"starknet_chainId"}"#).0, 204);
    let many = format!("[{}]", vec!["1"; 200].join(","));
    assert_eq!(code(&many), (200, -32_600));
    let (method, path) = ("GET".to_owned(), "/".to_owned());
    let get = http::Request { method, path, query: String::new(), headers: Vec::new(), body: Vec::new() };
    assert_eq!(engine.answer(&get).status, 405);
    // Every method, with parameters of every shape.
    let methods = ["getStorageAt", "getClass", "getClassAt", "call", "estimateFee", "simulateTransactions", "getEvents", "getNonce"];
    let shapes = [json!(null), json!(""), json!("latest"), json!(-1), json!([]), json!({}), json!({"block_number": -1}), json!([[[]]])];
    for method in methods.iter().chain(&["addInvokeTransaction", "getBlockWithTxs", "getTransactionStatus"]) {
        for one in &shapes {
            for other in &shapes {
                let filter = json!({"address": one, "keys": other, "chunk_size": one, "from_block": other, "continuation_token": one});
                for params in [json!([one, other, other]), json!({"block_id": one, "request": other, "filter": filter})] {
                    let call = json!({"jsonrpc": "2.0", "id": 1, "method": format!("starknet_{method}"), "params": params});
                    let reply = post(&mut engine, call.to_string().as_bytes());
                    assert_eq!(reply.status, 200);
                }
            }
        }
    }
}

/// Another network is another value: its name, its chain id, and other swap ids.
#[test]
fn a_local_network_has_other_names() {
    let mut local = Starknet::new("starknet_devnet", "SN_DEVNET", Arc::new(Clock::default()));
    let listing = local.listing();
    assert_eq!((&listing.chain["id"], &listing.assets[0]["id"]), (&json!("starknet:SN_DEVNET"), &json!("starknet_devnet:strk")));
    let registry = json!({"chains": [listing.chain], "assets": listing.assets, "solvers": []}).to_string().parse::<Registry>();
    assert!(registry.is_ok(), "{registry:?}");
    let stage = Stage::new();
    let terms = stage.terms(true, [1; 32]);
    let other = Terms { asset: "starknet_devnet:wbtc".to_owned(), ..terms.clone() };
    assert_ne!(local.leg(&other).unwrap().swap_id, stage.engine(|engine| engine.leg(&terms)).unwrap().swap_id);
    let reply = post(&mut local, br#"{"jsonrpc":"2.0","id":1,"method":"starknet_chainId"}"#);
    assert_eq!(reply.body, br#"{"jsonrpc":"2.0","id":1,"result":"0x534e5f4445564e4554"}"#);
}

#[test]
fn terms_that_cannot_be_are_refused() {
    let stage = Stage::new();
    let good = stage.terms(true, [1; 32]);
    let solver = stage.engine(|engine| engine.address_of(&accounts::key(SOLVER)));
    let bad: [fn(&mut Terms, &str); 5] = [
        |terms, _| terms.asset = "starknet:btc".to_owned(),
        |terms, _| terms.owner = "0x".to_owned(),
        |terms, solver| terms.owner = solver.to_owned(),
        |terms, _| terms.amount = 0,
        |terms, _| terms.timelock = 0,
    ];
    assert!(stage.engine(|engine| engine.leg(&good)).is_ok());
    for change in bad {
        let mut terms = good.clone();
        change(&mut terms, &solver);
        assert!(stage.engine(|engine| engine.leg(&terms)).is_err() && stage.engine(|engine| engine.payloads(&terms)).is_err());
    }
    // Somebody else pays: the call names the owner, and there is nothing to sign.
    let delegate = Some(stage.engine(|engine| engine.address_of(&accounts::key(RELAYER))));
    let payloads = stage.engine(|engine| engine.payloads(&Terms { delegate, ..good })).unwrap();
    assert!(payloads["typed_data"].is_null() && payloads["approval_transaction"].is_object());
    assert_eq!(payloads["initiate_transaction"]["calldata"][0], json!(hex(felt(&stage.user))));
}
