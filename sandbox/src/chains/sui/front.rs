//! The gRPC-web interface of a full node, and the JSON-RPC calls of older clients.

use std::ops::Bound::{Excluded, Unbounded};

use sui_rpc::field::{FieldMask, FieldMaskTree, FieldMaskUtil as _, MessageFields};
use sui_rpc::merge::Merge;
use sui_rpc::proto::google::rpc;
use sui_rpc::proto::sui::rpc::v2 as proto;
use sui_rpc::proto::sui::rpc::v2::get_checkpoint_request::CheckpointId;
use sui_rpc::proto::timestamp_ms_to_proto;
use sui_sdk_types::{Address, Digest, Object, Owner, SignedTransaction, StructTag, TypeTag, UserSignature};
use tonic::Status;

use super::ledger::{Executed, GAS_PRICE, Objects, coins, epoch};
use super::resolve::parse_type;
use super::{Sui, funds, grpc, json_rpc, messages, resolve};
use crate::http::{Reply, Request};

/// The maximum sizes of pages and batches.
const PAGE: u32 = 50;
const MAX_PAGE: u32 = 1_000;
const MAX_BATCH: usize = 1_000;

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
            "LedgerService/GetObject" => grpc::method(bytes, |request: &proto::GetObjectRequest| {
                self.object(request, &tree::<proto::Object>(&request.read_mask, OBJECT_MASK)?).map(proto::GetObjectResponse::new)
            }),
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
        let (height, millis) = (self.ledger.newest.sequence_number, self.ledger.newest.timestamp_ms);
        let answer = proto::GetServiceInfoResponse::default().with_chain_id(self.network.genesis.as_str());
        let answer = answer.with_chain(self.network.id.as_str()).with_epoch(epoch(millis).0).with_checkpoint_height(height);
        let answer = answer.with_timestamp(timestamp_ms_to_proto(millis)).with_lowest_available_checkpoint(height);
        answer.with_lowest_available_checkpoint_objects(height).with_server("countersign-sandbox/model")
    }

    /// Returns an object at its newest version. Older versions are pruned at once.
    fn object(&self, request: &proto::GetObjectRequest, mask: &FieldMaskTree) -> Answer<proto::Object> {
        let id = address(request.object_id_opt(), "object_id")?;
        let object = self.ledger.seen.get(&id).ok_or_else(|| Status::not_found(format!("Object {id} not found")))?;
        match request.version {
            Some(version) if version != object.version() => Err(Status::not_found(format!("Object {id} with version {version} not found"))),
            _ => Ok(masked(&messages::object(object), mask)),
        }
    }

    fn objects(&self, request: &proto::BatchGetObjectsRequest) -> Answer<proto::BatchGetObjectsResponse> {
        let mask = tree::<proto::Object>(&request.read_mask, OBJECT_MASK)?;
        if request.requests.len() > MAX_BATCH {
            return Err(Status::invalid_argument(format!("number of batch requests exceed limit of {MAX_BATCH}")));
        }
        let error = |status: Status| rpc::Status::default().with_code(status.code().into()).with_message(status.message());
        let results = request.requests.iter().map(|one| match self.object(one, &mask) {
            Ok(object) => proto::GetObjectResult::new_object(object),
            Err(status) => proto::GetObjectResult::new_error(error(status)),
        });
        Ok(proto::BatchGetObjectsResponse::new(results.collect()))
    }

    /// Returns a transaction in a checkpoint.
    pub(super) fn found(&self, digest: &str) -> Answer<&Executed> {
        let digest = Digest::from_base58(digest).map_err(|error| Status::invalid_argument(format!("invalid digest: {error}")))?;
        let found = self.ledger.executed.get(&digest).filter(|executed| executed.message.checkpoint.is_some());
        found.ok_or_else(|| Status::not_found(format!("Transaction {digest} not found")))
    }

    fn transaction(&self, request: &proto::GetTransactionRequest) -> Answer<proto::GetTransactionResponse> {
        let mask = tree::<proto::ExecutedTransaction>(&request.read_mask, "digest")?;
        Ok(proto::GetTransactionResponse::new(masked(&self.found(request.digest())?.message, &mask)))
    }

    fn checkpoint(&self, request: &proto::GetCheckpointRequest) -> Answer<proto::GetCheckpointResponse> {
        let mask = tree::<proto::Checkpoint>(&request.read_mask, "sequence_number,digest")?;
        let newest = &self.ledger.newest;
        let is_newest = match &request.checkpoint_id {
            Some(CheckpointId::SequenceNumber(number)) => *number == newest.sequence_number,
            Some(CheckpointId::Digest(digest)) => *digest == newest.digest().to_base58(),
            _ => true,
        };
        let answer = is_newest.then(|| proto::GetCheckpointResponse::new(proto::Checkpoint::merge_from(newest, &mask)));
        answer.ok_or_else(|| Status::not_found("Checkpoint not found: the model keeps the newest one"))
    }

    fn epoch(&self, request: &proto::GetEpochRequest) -> Answer<proto::GetEpochResponse> {
        let mask = tree::<proto::Epoch>(&request.read_mask, "epoch,start,reference_gas_price,protocol_config.protocol_version")?;
        let millis = self.ledger.newest.timestamp_ms;
        match request.epoch {
            Some(asked) if asked != epoch(millis).0 => Err(Status::not_found(format!("Epoch {asked} not found"))),
            _ => Ok(proto::GetEpochResponse::new(masked(&messages::epoch_at(millis), &mask))),
        }
    }

    fn owned(&self, request: &proto::ListOwnedObjectsRequest) -> Answer<proto::ListOwnedObjectsResponse> {
        let mask = tree::<proto::Object>(&request.read_mask, "object_id,version,object_type")?;
        let owner = Owner::Address(address(request.owner_opt(), "owner")?);
        let asked = request.object_type_opt().map(|text| parse_type::<StructTag>(text, "object_type")).transpose()?;
        // A type without type parameters matches every instance, as it does on a node.
        let is_asked = |object: &Object| match (&asked, object.as_struct().map(|data| data.object_type())) {
            (Some(asked), Some(of)) if asked.type_params().is_empty() => {
                (asked.address(), asked.module(), asked.name()) == (of.address(), of.module(), of.name())
            }
            (asked, of) => asked.is_none() || asked.as_ref() == of,
        };
        let (page, next) = page(&self.ledger.seen, owner, request.page_size, request.page_token.as_deref(), is_asked)?;
        let objects = page.into_iter().map(|object| masked(&messages::object(object), &mask));
        let answer = proto::ListOwnedObjectsResponse::default().with_objects(objects.collect());
        Ok(next.into_iter().fold(answer, proto::ListOwnedObjectsResponse::with_next_page_token))
    }

    fn fields(&self, request: &proto::ListDynamicFieldsRequest) -> Answer<proto::ListDynamicFieldsResponse> {
        let mask = tree::<proto::DynamicField>(&request.read_mask, "parent,field_id")?;
        let parent = address(request.parent_opt(), "parent")?;
        let (page, next) = page(&self.ledger.seen, Owner::Object(parent), request.page_size, request.page_token.as_deref(), |_| true)?;
        let fields = page.into_iter().filter_map(|object| messages::field(parent, object, &mask));
        let answer = proto::ListDynamicFieldsResponse::default().with_dynamic_fields(fields.collect());
        Ok(next.into_iter().fold(answer, proto::ListDynamicFieldsResponse::with_next_page_token))
    }

    fn balance_of(&self, request: &proto::GetBalanceRequest) -> Answer<proto::GetBalanceResponse> {
        let (owner, coin_type) = (address(request.owner_opt(), "owner")?, parse_type::<TypeTag>(request.coin_type(), "coin_type")?);
        let is_sui = coin_type == StructTag::sui().into();
        let in_coins = coins(&self.ledger.seen, owner).fold(0_u64, |sum, (_, balance)| sum.saturating_add(balance));
        let [in_coins, in_balance] = [in_coins, funds::balance(&self.ledger.seen, owner)].map(|part| if is_sui { part } else { 0 });
        let balance = proto::Balance::default().with_coin_type(coin_type.to_string()).with_balance(in_coins.saturating_add(in_balance));
        Ok(proto::GetBalanceResponse::default().with_balance(balance.with_address_balance(in_balance).with_coin_balance(in_coins)))
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
        let mask = tree::<proto::ExecutedTransaction>(&request.read_mask, "effects")?;
        let transaction = request.transaction.as_ref().filter(|transaction| transaction.bcs.is_some());
        let transaction = transaction.ok_or_else(|| Status::invalid_argument("missing transaction.bcs"))?;
        let transaction = resolve::complete(&self.ledger.live, transaction)?;
        let signatures = request.signatures.iter().map(UserSignature::try_from).collect::<Result<Vec<_>, _>>();
        let signatures = signatures.map_err(|error| Status::invalid_argument(format!("invalid signatures: {error}")))?;
        let executed = self.submit(&SignedTransaction { transaction, signatures }).map_err(Status::invalid_argument)?;
        Ok(proto::ExecuteTransactionResponse::new(masked(&executed.message, &mask)))
    }

    fn simulate(&self, request: &proto::SimulateTransactionRequest) -> Answer<proto::SimulateTransactionResponse> {
        let mask = tree::<proto::SimulateTransactionResponse>(&request.read_mask, "*")?;
        let message = request.transaction.as_ref().ok_or_else(|| Status::invalid_argument("missing transaction"))?;
        let mut transaction = resolve::complete(&self.ledger.live, message)?;
        resolve::pay(&self.ledger.live, &mut transaction);
        let executed = self.simulated(transaction).map_err(Status::invalid_argument)?;
        let mut answer = proto::SimulateTransactionResponse::default();
        answer.transaction = mask.subtree("transaction").map(|mask| masked(&executed.message, &mask));
        answer.suggested_gas_price = mask.contains("suggested_gas_price").then_some(GAS_PRICE);
        Ok(answer)
    }
}

const OBJECT_MASK: &str = "object_id,version,digest";

/// Returns the fields in a request's mask, or the node's default fields if it has none.
fn tree<M: MessageFields>(mask: &Option<FieldMask>, default: &str) -> Answer<FieldMaskTree> {
    let mask = mask.clone().unwrap_or_else(|| FieldMask::from_str(default));
    mask.validate::<M>().map_err(|path| Status::invalid_argument(format!("invalid read_mask path: {path}")))?;
    Ok(mask.into())
}

fn masked<M: Default + for<'m> Merge<&'m M>>(message: &M, mask: &FieldMaskTree) -> M {
    M::merge_from(message, mask)
}

fn address(text: Option<&str>, field: &str) -> Answer<Address> {
    let text = text.ok_or_else(|| Status::invalid_argument(format!("missing {field}")))?;
    text.parse().map_err(|error| Status::invalid_argument(format!("invalid {field}: {error}")))
}

/// Returns a page of an owner's objects. The page token is the last id.
pub(super) fn page<'o>(
    objects: &'o Objects,
    owner: Owner,
    size: Option<u32>,
    token: Option<&[u8]>,
    is_asked: impl Fn(&Object) -> bool,
) -> Answer<(Vec<&'o Object>, Option<Vec<u8>>)> {
    let size = usize::try_from(size.filter(|size| *size > 0).unwrap_or(PAGE).min(MAX_PAGE)).unwrap_or(usize::MAX);
    let token = token.filter(|token| !token.is_empty()).map(Address::from_bytes).transpose();
    let after = token.map_err(|_| Status::invalid_argument("invalid page_token"))?.map_or(Unbounded, Excluded);
    let all = objects.range((after, Unbounded)).map(|(_, object)| object.as_ref());
    let mut all = all.filter(|object| *object.owner() == owner && is_asked(object));
    let page: Vec<&Object> = all.by_ref().take(size).collect();
    let next = all.next().and(page.last()).map(|last| last.object_id().into());
    Ok((page, next))
}
