//! What a full node answers over gRPC-web, and to the calls of JSON-RPC that older clients make.

use sui_rpc::field::{FieldMask, FieldMaskTree, FieldMaskUtil as _, MessageFields};
use sui_rpc::merge::Merge;
use sui_rpc::proto::google::rpc;
use sui_rpc::proto::sui::rpc::v2 as proto;
use sui_rpc::proto::sui::rpc::v2::get_checkpoint_request::CheckpointId;
use sui_rpc::proto::timestamp_ms_to_proto;
use sui_sdk_types::{Address, Digest, Object, Owner, SignedTransaction, StructTag, Transaction, TypeTag, UserSignature};
use tonic::Status;

use super::ledger::{Executed, GAS_PRICE, View, epoch};
use super::{Sui, grpc, json_rpc, messages, resolve};
use crate::http::{Reply, Request};

/// The sizes of pages and batches.
const PAGE: u32 = 50;
const MAX_PAGE: u32 = 1_000;
const MAX_BATCH: usize = 1_000;
/// The budget with which a simulation finds out what a transaction costs, and the margin that is added to it, in units of gas.
const MAX_BUDGET: u64 = 50_000_000_000;
const SPARE_UNITS: u64 = 1_000;

type Answer<M> = Result<M, Status>;

impl Sui {
    pub(super) fn respond(&mut self, request: &Request) -> Reply {
        let is_json = request.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        if is_json && request.method == "POST" && request.path == "/" {
            return json_rpc::answer(self, request);
        }
        grpc::answer(request, |path, message| self.call(path, message))
    }

    fn call(&mut self, path: &str, bytes: &[u8]) -> Answer<Vec<u8>> {
        match path.strip_prefix("/sui.rpc.v2.").unwrap_or_default() {
            "LedgerService/GetServiceInfo" => grpc::method(bytes, |_: &proto::GetServiceInfoRequest| Ok(self.service_info())),
            "LedgerService/GetObject" => grpc::method(bytes, |request| self.object(request)),
            "LedgerService/BatchGetObjects" => grpc::method(bytes, |request| self.objects(request)),
            "LedgerService/GetTransaction" => grpc::method(bytes, |request| self.transaction(request)),
            "LedgerService/GetCheckpoint" => grpc::method(bytes, |request| self.checkpoint(request)),
            "LedgerService/GetEpoch" => grpc::method(bytes, |request| self.epoch(request)),
            "StateService/ListOwnedObjects" => grpc::method(bytes, |request| self.owned(request)),
            "StateService/ListDynamicFields" => grpc::method(bytes, |request| self.fields(request)),
            "StateService/GetBalance" => grpc::method(bytes, |request| self.balance_of(request)),
            "MovePackageService/ListPackageVersions" => grpc::method(bytes, |request| self.versions(request)),
            "TransactionExecutionService/SimulateTransaction" => grpc::method(bytes, |request| self.simulate(request)),
            "TransactionExecutionService/ExecuteTransaction" => grpc::method(bytes, |request| self.execute(request)),
            _ => Err(Status::unimplemented("")),
        }
    }

    fn service_info(&self) -> proto::GetServiceInfoResponse {
        let (height, _, millis) = self.ledger.newest();
        let answer = proto::GetServiceInfoResponse::default().with_chain_id(self.network.genesis.as_str());
        let answer = answer.with_chain(self.network.id.as_str()).with_epoch(epoch(millis).0).with_checkpoint_height(height);
        let answer = answer.with_timestamp(timestamp_ms_to_proto(millis)).with_lowest_available_checkpoint(self.ledger.lowest());
        answer.with_lowest_available_checkpoint_objects(self.ledger.lowest()).with_server("countersign-sandbox/model")
    }

    /// The object that a request names, at its newest version: older ones are pruned at once.
    fn find(&self, request: &proto::GetObjectRequest) -> Result<&Object, Status> {
        let id = address(request.object_id_opt(), "object_id")?;
        let object = self.ledger.seen.get(&id).ok_or_else(|| Status::not_found(format!("Object {id} not found")))?;
        match request.version {
            Some(version) if version != object.version() => Err(Status::not_found(format!("Object {id} with version {version} not found"))),
            _ => Ok(object),
        }
    }

    fn object(&self, request: &proto::GetObjectRequest) -> Answer<proto::GetObjectResponse> {
        let mask = tree::<proto::Object>(request.read_mask.as_ref(), OBJECT_MASK)?;
        Ok(proto::GetObjectResponse::new(masked(&messages::object(self.find(request)?), &mask)))
    }

    fn objects(&self, request: &proto::BatchGetObjectsRequest) -> Answer<proto::BatchGetObjectsResponse> {
        let mask = tree::<proto::Object>(request.read_mask.as_ref(), OBJECT_MASK)?;
        if request.requests.len() > MAX_BATCH {
            return Err(Status::invalid_argument(format!("number of batch requests exceed limit of {MAX_BATCH}")));
        }
        let results = request.requests.iter().map(|one| match self.find(one) {
            Ok(object) => proto::GetObjectResult::new_object(masked(&messages::object(object), &mask)),
            Err(status) => {
                let error = rpc::Status::default().with_code(status.code().into()).with_message(status.message());
                proto::GetObjectResult::new_error(error)
            }
        });
        Ok(proto::BatchGetObjectsResponse::new(results.collect()))
    }

    /// A transaction that is in a checkpoint.
    fn found(&self, text: Option<&str>) -> Result<&Executed, Status> {
        let digest = text.ok_or_else(|| Status::invalid_argument("missing digest"))?;
        let digest = Digest::from_base58(digest).map_err(|error| Status::invalid_argument(format!("invalid digest: {error}")))?;
        let found = self.ledger.executed.get(&digest).filter(|executed| executed.checkpoint.is_some());
        found.ok_or_else(|| Status::not_found(format!("Transaction {digest} not found")))
    }

    fn transaction(&self, request: &proto::GetTransactionRequest) -> Answer<proto::GetTransactionResponse> {
        let mask = tree::<proto::ExecutedTransaction>(request.read_mask.as_ref(), "digest")?;
        let found = self.found(request.digest_opt())?;
        Ok(proto::GetTransactionResponse::new(masked(&messages::executed(found), &mask)))
    }

    fn checkpoint(&self, request: &proto::GetCheckpointRequest) -> Answer<proto::GetCheckpointResponse> {
        let mask = tree::<proto::Checkpoint>(request.read_mask.as_ref(), "sequence_number,digest")?;
        let newest = CheckpointId::SequenceNumber(self.ledger.newest().0);
        let asked = request.checkpoint_id.as_ref().unwrap_or(&newest);
        let found = self.ledger.find_checkpoint(|checkpoint| match asked {
            CheckpointId::Digest(digest) => checkpoint.digest.to_base58() == *digest,
            CheckpointId::SequenceNumber(number) => checkpoint.summary.sequence_number == *number,
            _ => false,
        });
        let found = found.ok_or_else(|| Status::not_found(format!("Checkpoint {asked:?} not found")))?;
        let transactions = found.transactions.iter().filter_map(|digest| self.ledger.executed.get(digest));
        Ok(proto::GetCheckpointResponse::new(masked(&messages::checkpoint(found, transactions), &mask)))
    }

    fn epoch(&self, request: &proto::GetEpochRequest) -> Answer<proto::GetEpochResponse> {
        let default = "epoch,first_checkpoint,last_checkpoint,start,end,reference_gas_price,protocol_config.protocol_version";
        let mask = tree::<proto::Epoch>(request.read_mask.as_ref(), default)?;
        let millis = self.ledger.newest().2;
        match request.epoch {
            Some(asked) if asked != epoch(millis).0 => Err(Status::not_found(format!("Epoch {asked} not found"))),
            _ => Ok(proto::GetEpochResponse::new(masked(&messages::epoch_at(millis), &mask))),
        }
    }

    fn owned(&self, request: &proto::ListOwnedObjectsRequest) -> Answer<proto::ListOwnedObjectsResponse> {
        let mask = tree::<proto::Object>(request.read_mask.as_ref(), "object_id,version,object_type")?;
        let owner = Owner::Address(address(request.owner_opt(), "owner")?);
        let asked = request.object_type_opt().map(|text| resolve::parse_type::<StructTag>(text, "object_type"));
        let asked = asked.transpose()?;
        let is_asked = |object: &Object| match (&asked, object.as_struct().map(|data| data.object_type())) {
            (None, _) => true,
            (Some(asked), Some(of)) if asked.type_params().is_empty() => {
                (asked.address(), asked.module(), asked.name()) == (of.address(), of.module(), of.name())
            }
            (Some(asked), of) => Some(asked) == of,
        };
        let (page, next) = page(&self.ledger.seen, owner, request.page_size, request.page_token.as_deref(), is_asked)?;
        let objects = page.into_iter().map(|object| masked(&messages::object(object), &mask));
        let mut answer = proto::ListOwnedObjectsResponse::default().with_objects(objects.collect());
        answer.next_page_token = next.map(Into::into);
        Ok(answer)
    }

    fn fields(&self, request: &proto::ListDynamicFieldsRequest) -> Answer<proto::ListDynamicFieldsResponse> {
        let mask = tree::<proto::DynamicField>(request.read_mask.as_ref(), "parent,field_id")?;
        let parent = address(request.parent_opt(), "parent")?;
        let (page, next) = page(&self.ledger.seen, Owner::Object(parent), request.page_size, request.page_token.as_deref(), |_| true)?;
        let fields = page.into_iter().filter_map(|object| messages::field(parent, object, &mask));
        let mut answer = proto::ListDynamicFieldsResponse::default().with_dynamic_fields(fields.collect());
        answer.next_page_token = next.map(Into::into);
        Ok(answer)
    }

    fn balance_of(&self, request: &proto::GetBalanceRequest) -> Answer<proto::GetBalanceResponse> {
        let owner = address(request.owner_opt(), "owner")?;
        let text = request.coin_type_opt().ok_or_else(|| Status::invalid_argument("missing coin_type"))?;
        let coin_type: TypeTag = resolve::parse_type(text, "coin_type")?;
        let sum = self.ledger.seen.coins(owner, &coin_type).fold(0_u64, |sum, (_, balance)| sum.saturating_add(balance));
        let balance = proto::Balance::default().with_coin_type(coin_type.to_string()).with_balance(sum);
        Ok(proto::GetBalanceResponse::default().with_balance(balance.with_address_balance(0).with_coin_balance(sum)))
    }

    fn versions(&self, request: &proto::ListPackageVersionsRequest) -> Answer<proto::ListPackageVersionsResponse> {
        let id = address(request.package_id_opt(), "package_id")?;
        if id != self.package {
            return Err(Status::not_found(format!("Package {id} not found")));
        }
        let version = proto::PackageVersion::default().with_package_id(id.to_string()).with_version(1);
        Ok(proto::ListPackageVersionsResponse::default().with_versions(vec![version]))
    }

    fn execute(&mut self, request: &proto::ExecuteTransactionRequest) -> Answer<proto::ExecuteTransactionResponse> {
        let mask = tree::<proto::ExecutedTransaction>(request.read_mask.as_ref(), "effects")?;
        let transaction = request.transaction.as_ref().and_then(|transaction| transaction.bcs.as_ref());
        let transaction = resolve::complete(transaction.ok_or_else(|| Status::invalid_argument("missing transaction.bcs"))?)?;
        let signatures = request.signatures.iter().map(UserSignature::try_from).collect::<Result<Vec<_>, _>>();
        let signatures = signatures.map_err(|error| Status::invalid_argument(format!("invalid signatures: {error}")))?;
        let digest = self.submit(SignedTransaction { transaction, signatures }).map_err(Status::invalid_argument)?;
        let executed = self.ledger.executed.get(&digest).ok_or_else(|| Status::not_found("pruned"))?;
        Ok(proto::ExecuteTransactionResponse::new(masked(&messages::executed(executed), &mask)))
    }

    fn simulate(&self, request: &proto::SimulateTransactionRequest) -> Answer<proto::SimulateTransactionResponse> {
        let mask = tree::<proto::SimulateTransactionResponse>(request.read_mask.as_ref(), "*")?;
        let message = request.transaction.as_ref().ok_or_else(|| Status::invalid_argument("missing transaction"))?;
        let mut transaction = resolve::resolve(&self.ledger.live, message)?;
        if request.do_gas_selection() {
            self.choose_gas(&mut transaction)?;
        } else if transaction.gas_payment.budget == 0 {
            transaction.gas_payment.budget = MAX_BUDGET;
        }
        let executed = self.simulated(transaction).map_err(Status::invalid_argument)?;
        let mut answer = proto::SimulateTransactionResponse::default();
        answer.transaction = mask.subtree("transaction").map(|mask| masked(&messages::executed(&executed), &mask));
        answer.suggested_gas_price = mask.contains("suggested_gas_price").then_some(GAS_PRICE);
        Ok(answer)
    }

    /// Chooses what a wallet has left open: the budget, by what a simulation costs, and the coins that pay.
    fn choose_gas(&self, transaction: &mut Transaction) -> Result<(), Status> {
        let payment = &transaction.gas_payment;
        if payment.budget == 0 {
            let mut trial = transaction.clone();
            (trial.gas_payment.budget, trial.gas_payment.objects) = (MAX_BUDGET, vec![]);
            let executed = self.simulated(trial).map_err(Status::invalid_argument)?;
            let (gas, spare) = (executed.effects.gas_summary(), payment.price.saturating_mul(SPARE_UNITS));
            let computation = gas.computation_cost.saturating_add(spare);
            let net = computation.saturating_add(gas.storage_cost).saturating_sub(gas.storage_rebate);
            // The rebate comes at the end: until then the whole storage has to be paid.
            transaction.gas_payment.budget = net.max(computation.saturating_add(gas.storage_cost));
        }
        if transaction.gas_payment.objects.is_empty() {
            transaction.gas_payment.objects = resolve::gas_coins(&self.ledger.live, transaction.gas_payment.owner, transaction);
        }
        if transaction.gas_payment.objects.is_empty() {
            let owner = transaction.gas_payment.owner;
            return Err(Status::invalid_argument(format!("unable to select sufficient gas coins from account {owner}")));
        }
        Ok(())
    }
}

const OBJECT_MASK: &str = "object_id,version,digest";

/// The fields that a request's mask names, or those that a node takes if there is none.
fn tree<M: MessageFields>(mask: Option<&FieldMask>, default: &str) -> Result<FieldMaskTree, Status> {
    let mask = mask.cloned().unwrap_or_else(|| FieldMask::from_str(default));
    mask.validate::<M>().map_err(|path| Status::invalid_argument(format!("invalid read_mask path: {path}")))?;
    Ok(mask.into())
}

fn masked<M: Default + for<'m> Merge<&'m M>>(message: &M, mask: &FieldMaskTree) -> M {
    M::merge_from(message, mask)
}

fn address(text: Option<&str>, field: &str) -> Result<Address, Status> {
    let text = text.ok_or_else(|| Status::invalid_argument(format!("missing {field}")))?;
    text.parse().map_err(|error| Status::invalid_argument(format!("invalid {field}: {error}")))
}

type Page<'v> = (Vec<&'v Object>, Option<Vec<u8>>);

/// A page of what an owner has. The token of the next one is the last id.
fn page<'v>(
    view: &'v View,
    owner: Owner,
    size: Option<u32>,
    token: Option<&[u8]>,
    is_asked: impl Fn(&Object) -> bool,
) -> Result<Page<'v>, Status> {
    let size = size.filter(|size| *size > 0).unwrap_or(PAGE).min(MAX_PAGE);
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let token = token.filter(|token| !token.is_empty());
    let after = token.map(|token| Address::from_bytes(token).map_err(|_| Status::invalid_argument("invalid page_token"))).transpose()?;
    let mut all = view.owned(owner, after).map(AsRef::as_ref).filter(|object| is_asked(object));
    let page: Vec<&Object> = all.by_ref().take(size).collect();
    let next = all.next().and(page.last()).map(|last| last.object_id().into());
    Ok((page, next))
}
