//! Tests reading and writing through the server stack of tonic and sui-rpc.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::chains::UnixTime;
use countersign::sui::{Sui, VerifiedOrder, sui_sdk_types};
use countersign::{
    Family, Funded, Policy, SecretHash, Signed, Unsigned, Verified,
    chains::{Account, FinalityRule},
    evidence::{HtlcState, VerifiedTerms},
    json, verify_record,
};
use countersign_client::{Http, Timeouts};
use countersign_json::line::Case as JsonCase;
use countersign_node::sui::Receipt;
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes, Speed};
use countersign_testkit::{Case, fixtures_of, key, registry, verified};
use serde_json::Value;
use sui_rpc::field::{FieldMask, FieldMaskTree, FieldMaskUtil as _, MessageFields};
use sui_rpc::merge::Merge;
use sui_rpc::proto::sui::rpc::v2::ledger_service_server::{LedgerService, LedgerServiceServer};
use sui_rpc::proto::sui::rpc::v2::owner::OwnerKind;
use sui_rpc::proto::sui::rpc::v2::state_service_server::{StateService, StateServiceServer};
use sui_rpc::proto::sui::rpc::v2::transaction_execution_service_server::{TransactionExecutionService, TransactionExecutionServiceServer};
use sui_rpc::proto::sui::rpc::v2::{
    Balance, BalanceChange, BatchGetObjectsRequest, BatchGetObjectsResponse, Bcs, Checkpoint, CheckpointSummary, Epoch, Event,
    ExecuteTransactionRequest, ExecuteTransactionResponse, ExecutedTransaction, ExecutionStatus, GasCostSummary, GetBalanceRequest,
    GetBalanceResponse, GetCheckpointRequest, GetCheckpointResponse, GetEpochRequest, GetEpochResponse, GetObjectResult,
    GetServiceInfoRequest, GetServiceInfoResponse, GetTransactionRequest, GetTransactionResponse, ListOwnedObjectsRequest,
    ListOwnedObjectsResponse, Object, Owner, Package, SimulateTransactionRequest, SimulateTransactionResponse, TransactionEffects,
    TransactionEvents,
};
use tonic::{Request, Response, Status};

const TESTNET: &str = "69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD";
const SUI: &str = "0x0000000000000000000000000000000000000000000000000000000000000002::sui::SUI";
const HEAD: u64 = 260_000_000;
const NOW: u64 = 1_800_000_000;
/// The gas cost that a simulation reports: computation, storage and rebate.
const GAS: [u64; 3] = [1_000_000, 5_000_000, 2_000_000];
const RULE: FinalityRule = FinalityRule::new(countersign::chains::Finality::Finalized, 10_000, 600_000);

type Answer<R> = Result<Response<R>, Status>;

/// The content of the services' answers.
#[derive(Default)]
struct Ledger {
    objects: Vec<Object>,
    transactions: Vec<ExecutedTransaction>,
    coins: Vec<Object>,
    /// Who pays how much according to a simulation.
    pays: Option<(String, i128)>,
    /// The executed transactions with their signatures, in base64.
    executed: Vec<(String, Vec<String>)>,
}

#[derive(Clone, Default)]
struct Node(Arc<Mutex<Ledger>>);

/// Checks a mask against the message that it applies to, as a node does.
fn mask<M: MessageFields>(mask: Option<FieldMask>) -> Result<FieldMaskTree, Status> {
    let mask = mask.ok_or_else(|| Status::invalid_argument("no mask"))?;
    mask.validate::<M>().map_err(|path| Status::invalid_argument(format!("no such member: {path}")))?;
    Ok(FieldMaskTree::from(mask))
}

fn masked<M: Default + for<'m> Merge<&'m M>>(message: &M, mask: &FieldMaskTree) -> M {
    M::merge_from(message, mask)
}

fn time() -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: i64::try_from(NOW - 3).unwrap(), nanos: 250_000_000 }
}

#[tonic::async_trait]
impl LedgerService for Node {
    async fn get_service_info(&self, _: Request<GetServiceInfoRequest>) -> Answer<GetServiceInfoResponse> {
        let mut info = GetServiceInfoResponse::default();
        (info.chain_id, info.chain) = (Some(TESTNET.to_owned()), Some("testnet".to_owned()));
        Ok(Response::new(info))
    }

    async fn get_checkpoint(&self, request: Request<GetCheckpointRequest>) -> Answer<GetCheckpointResponse> {
        let request = request.into_inner();
        assert!(request.checkpoint_id.is_none(), "the newest");
        let mask = mask::<Checkpoint>(request.read_mask)?;
        let (mut checkpoint, mut summary) = (Checkpoint::default(), CheckpointSummary::default());
        summary.timestamp = Some(time());
        (checkpoint.sequence_number, checkpoint.digest) = (Some(HEAD), Some(base58(9)));
        checkpoint.summary = Some(summary);
        let mut answer = GetCheckpointResponse::default();
        answer.checkpoint = Some(masked(&checkpoint, &mask));
        Ok(Response::new(answer))
    }

    async fn batch_get_objects(&self, request: Request<BatchGetObjectsRequest>) -> Answer<BatchGetObjectsResponse> {
        let request = request.into_inner();
        let mask = mask::<Object>(request.read_mask)?;
        let ledger = self.0.lock().unwrap();
        let result = |id: &str| match ledger.objects.iter().find(|object| object.object_id.as_deref() == Some(id)) {
            Some(object) => GetObjectResult::new_object(masked(object, &mask)),
            None => {
                let mut status = sui_rpc::proto::google::rpc::Status::default();
                (status.code, status.message) = (5, format!("Object {id} not found"));
                GetObjectResult::new_error(status)
            }
        };
        let mut answer = BatchGetObjectsResponse::default();
        answer.objects = request.requests.iter().map(|one| result(one.object_id.as_deref().unwrap())).collect();
        Ok(Response::new(answer))
    }

    async fn get_transaction(&self, request: Request<GetTransactionRequest>) -> Answer<GetTransactionResponse> {
        let request = request.into_inner();
        let mask = mask::<ExecutedTransaction>(request.read_mask)?;
        let ledger = self.0.lock().unwrap();
        let found = ledger.transactions.iter().find(|transaction| transaction.digest == request.digest);
        let found = found.ok_or_else(|| Status::not_found("Transaction not found: % \u{1f600}"))?;
        let mut answer = GetTransactionResponse::default();
        answer.transaction = Some(masked(found, &mask));
        Ok(Response::new(answer))
    }

    async fn get_epoch(&self, request: Request<GetEpochRequest>) -> Answer<GetEpochResponse> {
        mask::<Epoch>(request.into_inner().read_mask)?;
        let (mut epoch, mut answer) = (Epoch::default(), GetEpochResponse::default());
        epoch.reference_gas_price = Some(547);
        answer.epoch = Some(epoch);
        Ok(Response::new(answer))
    }
}

#[tonic::async_trait]
impl StateService for Node {
    async fn list_owned_objects(&self, request: Request<ListOwnedObjectsRequest>) -> Answer<ListOwnedObjectsResponse> {
        let request = request.into_inner();
        let mask = mask::<Object>(request.read_mask)?;
        let mut answer = ListOwnedObjectsResponse::default();
        answer.objects = self.0.lock().unwrap().coins.iter().map(|coin| masked(coin, &mask)).collect();
        Ok(Response::new(answer))
    }

    async fn get_balance(&self, _: Request<GetBalanceRequest>) -> Answer<GetBalanceResponse> {
        let (mut balance, mut answer) = (Balance::default(), GetBalanceResponse::default());
        balance.balance = Some(self.0.lock().unwrap().coins.iter().filter_map(|coin| coin.balance).sum());
        answer.balance = Some(balance);
        Ok(Response::new(answer))
    }
}

#[tonic::async_trait]
impl TransactionExecutionService for Node {
    async fn simulate_transaction(&self, request: Request<SimulateTransactionRequest>) -> Answer<SimulateTransactionResponse> {
        let request = request.into_inner();
        let mask = mask::<SimulateTransactionResponse>(request.read_mask)?;
        decoded(request.transaction.as_ref())?;
        let (owner, paid) = self.0.lock().unwrap().pays.clone().unwrap();
        let mut executed = executed(&base58(7));
        let mut change = BalanceChange::default();
        let net = i128::from(GAS[0] + GAS[1] - GAS[2]);
        (change.address, change.coin_type, change.amount) = (Some(owner), Some(SUI.to_owned()), Some((-paid - net).to_string()));
        executed.balance_changes = vec![change];
        let mut answer = SimulateTransactionResponse::default();
        answer.transaction = mask.subtree("transaction").map(|mask| masked(&executed, &mask));
        Ok(Response::new(answer))
    }

    async fn execute_transaction(&self, request: Request<ExecuteTransactionRequest>) -> Answer<ExecuteTransactionResponse> {
        let request = request.into_inner();
        let mask = mask::<ExecutedTransaction>(request.read_mask)?;
        let transaction = decoded(request.transaction.as_ref())?;
        let signatures = request.signatures.iter().map(|signature| {
            let decoded = sui_sdk_types::UserSignature::try_from(signature);
            decoded.map(|signature| signature.to_base64()).map_err(|error| Status::invalid_argument(error.to_string()))
        });
        let signatures = signatures.collect::<Result<_, _>>()?;
        let executed = executed(&transaction.digest().to_base58());
        let mut ledger = self.0.lock().unwrap();
        ledger.executed.push((transaction.digest().to_base58(), signatures));
        ledger.transactions.push(executed.clone());
        let mut answer = ExecuteTransactionResponse::default();
        answer.transaction = Some(masked(&executed, &mask));
        Ok(Response::new(answer))
    }
}

/// Decodes a transaction as a node does.
fn decoded(transaction: Option<&sui_rpc::proto::sui::rpc::v2::Transaction>) -> Result<sui_sdk_types::Transaction, Status> {
    let transaction = transaction.ok_or_else(|| Status::invalid_argument("no transaction"))?;
    sui_sdk_types::Transaction::try_from(transaction).map_err(|error| Status::invalid_argument(error.to_string()))
}

fn base58(what: u8) -> String {
    sui_sdk_types::Digest::new([what; 32]).to_base58()
}

fn executed(digest: &str) -> ExecutedTransaction {
    let (mut executed, mut effects, mut status, mut gas) =
        (ExecutedTransaction::default(), TransactionEffects::default(), ExecutionStatus::default(), GasCostSummary::default());
    status.success = Some(true);
    (gas.computation_cost, gas.storage_cost, gas.storage_rebate) = (Some(GAS[0]), Some(GAS[1]), Some(GAS[2]));
    (effects.status, effects.gas_used) = (Some(status), Some(gas));
    (executed.digest, executed.effects, executed.checkpoint) = (Some(digest.to_owned()), Some(effects), Some(HEAD - 61));
    executed
}

fn bcs(name: &str, value: Vec<u8>) -> Option<Bcs> {
    let mut bcs = Bcs::default();
    (bcs.name, bcs.value) = (Some(name.to_owned()), Some(value.into()));
    Some(bcs)
}

/// Returns the order as @mysten/sui made it.
fn made() -> Value {
    serde_json::from_str(include_str!("../../../fixtures/chain/sui.json")).unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

fn owned(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

impl Node {
    /// Returns the node with the order, and with an event of the transaction that last changed it.
    fn with_order(event: &str) -> Self {
        let order = &made()["order"];
        let kind = order["object_type"].as_str().unwrap();
        let mut object = Object::default();
        (object.object_id, object.version, object.digest) = (owned(&order["fields"][0]), Some(411), Some(base58(1)));
        object.object_type = Some(kind.to_owned());
        object.contents = bcs(kind, bytes(&order[if event == "Initiated" { "open" } else { "ended" }]));
        object.previous_transaction = Some(base58(2));
        let (mut package, mut code) = (Object::default(), Package::default());
        (code.storage_id, code.original_id, code.version) = (owned(&order["package"]), owned(&order["package"]), Some(1));
        (package.object_id, package.object_type, package.package) = (owned(&order["package"]), Some("package".to_owned()), Some(code));
        let (mut shared, mut owner) = (Object::default(), Owner::default());
        (owner.kind, owner.version) = (Some(OwnerKind::Shared.into()), Some(117_440_512));
        (shared.object_id, shared.owner) = (owned(&order["registry"]), Some(owner));
        let (mut transaction, mut events, mut told) = (executed(&base58(2)), TransactionEvents::default(), Event::default());
        let name = format!("{}::AtomicSwap::{event}", order["package"].as_str().unwrap());
        (told.contents, told.event_type) = (bcs(&name, bytes(&order["events"][event])), Some(name));
        events.events = vec![told];
        transaction.events = Some(events);
        Self(Arc::new(Mutex::new(Ledger { objects: vec![object, package, shared], transactions: vec![transaction], ..Ledger::default() })))
    }

    /// Serves HTTP/1.1 on a free port of this machine, and connects to it.
    async fn connect(&self) -> Nodes<Http> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tonic::transport::Server::builder()
            .accept_http1(true)
            .layer(tonic_web::GrpcWebLayer::new())
            .add_service(LedgerServiceServer::new(self.clone()))
            .add_service(StateServiceServer::new(self.clone()))
            .add_service(TransactionExecutionServiceServer::new(self.clone()));
        tokio::spawn(server.serve_with_incoming(tokio_stream::wrappers::TcpListenerStream::new(listener)));
        let endpoint = Endpoint::parse(&url).unwrap();
        let http = Http::new(Timeouts { connect: Duration::from_secs(5), call: Duration::from_secs(10) }).unwrap();
        Nodes::new(http, NodeConfig::new().with("sui_testnet", Endpoints::new(vec![endpoint]).unwrap()), registry())
    }
}

fn case(family: Family, id: &str) -> Case {
    fixtures_of(family).unwrap().into_iter().find(|case| case.id == id).expect(id)
}

/// Returns verified terms whose destination is the order.
fn terms() -> VerifiedTerms {
    let case = case(Family::Evm, "evm-record-sui-testnet");
    let value = json::parse(case.input.as_bytes()).unwrap();
    let proposal = JsonCase::from_value(&value).unwrap().proposal().unwrap();
    let mut terms = verify_record(proposal, registry(), &Policy::default()).unwrap().terms;
    let (order, destination) = (&made()["order"], &mut terms.destination);
    let word = |value: &Value| -> [u8; 32] { bytes(value).try_into().unwrap() };
    destination.initiator = Account::from_array(Family::Sui, word(&order["initiator"]));
    destination.redeemer = Account::from_array(Family::Sui, word(&order["redeemer"]));
    destination.amount = order["amount"].as_str().unwrap().parse().unwrap();
    destination.timelock = order["timelock"].as_str().unwrap().parse().unwrap();
    destination.secret_hash = SecretHash(word(&order["secret_hash"]));
    destination.swap_id = order["ids"][0].as_str().unwrap().trim_start_matches("0x").to_owned();
    terms
}

#[tokio::test]
async fn an_order_is_evidence() {
    let (nodes, terms) = (Node::with_order("Initiated").connect().await, terms());
    let quorum = nodes.sui("sui_testnet").unwrap().htlc(&terms.destination).await.unwrap();
    let (state, seen) = quorum.state().unwrap();
    assert!(matches!(&state, HtlcState::Locked(locked) if locked.elapsed == 62_682), "{state:?}");
    assert_eq!((seen.height.get(), seen.depth, seen.is_finalized), (HEAD, 62, true));
    assert!(Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).is_ok());
    let head = nodes.head("sui_testnet", 0).await.unwrap();
    assert_eq!((head.height.get(), head.time), (HEAD, UnixTime::from_secs(NOW - 3)));
}

#[tokio::test]
async fn an_order_has_ended() {
    let terms = terms();
    let read = async |event: &str| {
        let nodes = Node::with_order(event).connect().await;
        nodes.sui("sui_testnet").unwrap().htlc(&terms.destination).await.unwrap().state().unwrap().0
    };
    let secret: [u8; 32] = bytes(&made()["order"]["secret"]).try_into().unwrap();
    assert_eq!(read("Redeemed").await, HtlcState::Redeemed { secret: Some(secret), transaction: Some(base58(2)) });
    assert_eq!(read("Refunded").await, HtlcState::Refunded { transaction: Some(base58(2)) });
}

#[tokio::test]
async fn errors_of_the_stack_are_unknown() {
    let (node, terms) = (Node::with_order("Initiated"), terms());
    let nodes = node.connect().await;
    let sui = nodes.sui("sui_testnet").unwrap();
    // The status of the call, in the form that the stack uses if there is no message.
    node.0.lock().unwrap().transactions.clear();
    let error = sui.htlc(&terms.destination).await.unwrap_err();
    assert!(error.to_string().contains("has pruned it"), "{error}");
    assert_eq!(sui.receipt(sui_sdk_types::Digest::new([7; 32])).await.unwrap(), None);
    // The status of one object among several.
    node.0.lock().unwrap().objects.remove(0);
    assert_eq!(sui.htlc(&terms.destination).await.unwrap().state().unwrap().0, HtlcState::Absent);
    // A service that the stack does not have.
    let package = made()["order"]["package"].as_str().unwrap().parse().unwrap();
    let error = sui.describe_package(package).await.unwrap_err();
    assert!(matches!(error, NodeError::Malformed { .. } | NodeError::Rpc { code: 12, .. } | NodeError::Status { .. }), "{error:?}");
}

fn order() -> VerifiedOrder {
    verified::<Sui>(&case(Family::Sui, "sui-native"))
}

#[tokio::test]
async fn an_order_is_prepared_signed_and_sent() {
    let node = Node::with_order("Initiated");
    let coin = |what: u8, balance: u64| {
        let mut coin = Object::default();
        let id = sui_sdk_types::Address::new([what; 32]).to_string();
        (coin.object_id, coin.version, coin.digest, coin.balance) = (Some(id), Some(9), Some(base58(what)), Some(balance));
        coin.object_type = Some(format!("0x2::coin::Coin<{SUI}>"));
        coin
    };
    let order = order();
    let owner = order.deposit().sender.to_string();
    {
        let mut ledger = node.0.lock().unwrap();
        ledger.coins = vec![coin(0x21, 2_500_000_000), coin(0x22, 1_000_000_000)];
        ledger.pays = Some((owner.clone(), i128::from(order.deposit().terms.amount)));
    }
    let nodes = node.connect().await;
    let prepared = nodes.prepare(&Verified::Sui(order), "sui_testnet", &owner, Speed::Normal, &Policy::default()).await.unwrap();
    let Unsigned::Sui(mut unsigned) = prepared else { panic!("an order of Sui") };
    assert_eq!((unsigned.payloads().gas_payment.price, unsigned.payloads().gas_payment.budget), (602, 7_802_000));
    unsigned.sign(&key::<Sui>(&case(Family::Sui, "sui-native"))).unwrap();
    let signed = unsigned.finish().unwrap();
    let signatures: Vec<_> = signed.payloads().signatures().iter().map(|signature| signature.to_base64()).collect();
    let [kept] = Signed::from(signed).broadcasts().try_into().unwrap();
    let sui = nodes.sui("sui_testnet").unwrap();
    sui.broadcast(&kept.id, &kept.payload).await.unwrap();
    assert_eq!(node.0.lock().unwrap().executed, [(kept.id.clone(), signatures)]);
    let id = sui_sdk_types::Digest::from_base58(&kept.id).unwrap();
    let Receipt { checkpoint, success, .. } = sui.receipt(id).await.unwrap().unwrap();
    assert_eq!((checkpoint.get(), success), (HEAD - 61, true));
}
