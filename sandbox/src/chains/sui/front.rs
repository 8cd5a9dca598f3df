//! What a full node answers over gRPC-web, and to the calls of JSON-RPC that older clients make.

use sui_sdk_types::{Address, Digest, Object, Owner, SignedTransaction, StructTag, Transaction, TypeTag, UserSignature};

use super::grpc::{self, Status};
use super::ledger::{Executed, GAS_PRICE, View, epoch};
use super::proto::{self, Message};
use super::{Sui, json_rpc, messages, resolve};
use crate::http::{Reply, Request};

/// The sizes of pages and batches.
const PAGE: u64 = 50;
const MAX_PAGE: u64 = 1_000;
const MAX_BATCH: usize = 1_000;
/// The budget with which a simulation finds out what a transaction costs, and the margin that is added to it, in units of gas.
const MAX_BUDGET: u64 = 50_000_000_000;
const SPARE_UNITS: u64 = 1_000;

type Answer = Result<Message, Status>;

impl Sui {
    pub(super) fn respond(&mut self, request: &Request) -> Reply {
        let is_json = request.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        if is_json && request.method == "POST" && request.path == "/" {
            return json_rpc::answer(self, request);
        }
        grpc::answer(request, |path, message| self.call(path, message))
    }

    fn call(&mut self, path: &str, bytes: &[u8]) -> Answer {
        let read = |schema| grpc::decode(schema, bytes);
        match path.strip_prefix("/sui.rpc.v2.").unwrap_or_default() {
            "LedgerService/GetServiceInfo" => read(&proto::EMPTY).map(|_| self.service_info()),
            "LedgerService/GetObject" => self.object(&read(&proto::GET_OBJECT)?),
            "LedgerService/BatchGetObjects" => self.objects(&read(&proto::BATCH_GET_OBJECTS)?),
            "LedgerService/GetTransaction" => self.transaction(&read(&proto::GET_TRANSACTION)?),
            "LedgerService/GetCheckpoint" => self.checkpoint(&read(&proto::GET_CHECKPOINT)?),
            "LedgerService/GetEpoch" => self.epoch(&read(&proto::GET_EPOCH)?),
            "StateService/ListOwnedObjects" => self.owned(&read(&proto::LIST)?),
            "StateService/ListDynamicFields" => self.fields(&read(&proto::LIST)?),
            "StateService/GetBalance" => self.balance_of(&read(&proto::GET_BALANCE)?),
            "MovePackageService/ListPackageVersions" => self.versions(&read(&proto::LIST_VERSIONS)?),
            "TransactionExecutionService/SimulateTransaction" => self.simulate(&read(&proto::SIMULATE)?),
            "TransactionExecutionService/ExecuteTransaction" => self.execute(&read(&proto::EXECUTE)?),
            _ => Err(Status::unimplemented()),
        }
    }

    fn service_info(&self) -> Message {
        let (height, _, millis) = self.ledger.newest();
        let message = Message::new(&proto::SERVICE_INFO).put("chain_id", self.network.genesis.as_str());
        let message = message.put("chain", self.network.id.as_str()).put("epoch", epoch(millis).0).put("checkpoint_height", height);
        let message = message.put("timestamp", messages::time(millis)).put("lowest_available_checkpoint", self.ledger.lowest());
        message.put("lowest_available_checkpoint_objects", self.ledger.lowest()).put("server", "countersign-sandbox/model")
    }

    /// The object that a request names, at its newest version: older ones are pruned at once.
    fn find(&self, request: &Message) -> Result<&Object, Status> {
        let id = address(request, "object_id")?;
        let object = self.ledger.seen.get(&id).ok_or_else(|| Status::not_found(format!("Object {id} not found")))?;
        match request.number("version") {
            Some(version) if version != object.version() => Err(Status::not_found(format!("Object {id} with version {version} not found"))),
            _ => Ok(object),
        }
    }

    fn object(&self, request: &Message) -> Answer {
        let object = messages::object(self.find(request)?).masked(request, OBJECT_MASK)?;
        Ok(Message::new(&proto::GOT_OBJECT).put("object", object))
    }

    fn objects(&self, request: &Message) -> Answer {
        let mut answer = Message::new(&proto::BATCH_GOT_OBJECTS);
        if request.messages("requests").count() > MAX_BATCH {
            return Err(Status::invalid(format!("number of batch requests exceed limit of {MAX_BATCH}")));
        }
        for one in request.messages("requests") {
            let result = Message::new(&proto::GOT_OBJECT);
            answer = answer.put(
                "objects",
                match self.find(one) {
                    Ok(object) => result.put("object", messages::object(object).masked(request, OBJECT_MASK)?),
                    Err(status) => result.put("error", error(&status)),
                },
            );
        }
        Ok(answer)
    }

    /// A transaction that is in a checkpoint.
    fn found(&self, text: Option<&str>) -> Result<&Executed, Status> {
        let digest = text.ok_or_else(|| Status::invalid("missing digest"))?;
        let digest = Digest::from_base58(digest).map_err(|error| Status::invalid(format!("invalid digest: {error}")))?;
        let found = self.ledger.executed.get(&digest).filter(|executed| executed.checkpoint.is_some());
        found.ok_or_else(|| Status::not_found(format!("Transaction {digest} not found")))
    }

    fn transaction(&self, request: &Message) -> Answer {
        let executed = messages::executed(self.found(request.text("digest"))?).masked(request, "digest")?;
        Ok(Message::new(&proto::GOT_TRANSACTION).put("transaction", executed))
    }

    fn checkpoint(&self, request: &Message) -> Answer {
        let newest = self.ledger.newest().0;
        let (number, digest) = (request.number("sequence_number"), request.text("digest"));
        let found = self.ledger.find_checkpoint(|checkpoint| match digest {
            Some(digest) => checkpoint.digest.to_base58() == digest,
            None => checkpoint.summary.sequence_number == number.unwrap_or(newest),
        });
        let asked = digest.map(str::to_owned).or(number.map(|number| number.to_string())).unwrap_or_default();
        let found = found.ok_or_else(|| Status::not_found(format!("Checkpoint {asked} not found")))?;
        let transactions = found.transactions.iter().filter_map(|digest| self.ledger.executed.get(digest));
        let checkpoint = messages::checkpoint(found, transactions).masked(request, "sequence_number,digest")?;
        Ok(Message::new(&proto::GOT_CHECKPOINT).put("checkpoint", checkpoint))
    }

    fn epoch(&self, request: &Message) -> Answer {
        let millis = self.ledger.newest().2;
        if let Some(asked) = request.number("epoch").filter(|asked| *asked != epoch(millis).0) {
            return Err(Status::not_found(format!("Epoch {asked} not found")));
        }
        let default = "epoch,first_checkpoint,last_checkpoint,start,end,reference_gas_price,protocol_config.protocol_version";
        Ok(Message::new(&proto::GOT_EPOCH).put("epoch", messages::epoch_at(millis).masked(request, default)?))
    }

    fn owned(&self, request: &Message) -> Answer {
        let owner = Owner::Address(address(request, "owner")?);
        let asked = request.text("object_type").map(|text| resolve::parse_type::<StructTag>(text, "object_type"));
        let asked = asked.transpose()?;
        let is_asked = |object: &Object| match (&asked, object.as_struct().map(|data| data.object_type())) {
            (None, _) => true,
            (Some(asked), Some(of)) if asked.type_params().is_empty() => {
                (asked.address(), asked.module(), asked.name()) == (of.address(), of.module(), of.name())
            }
            (Some(asked), of) => Some(asked) == of,
        };
        let (page, next) = page(&self.ledger.seen, owner, request, is_asked)?;
        let objects = page.into_iter().map(|object| messages::object(object).masked(request, "object_id,version,object_type"));
        let objects = objects.collect::<Result<Vec<_>, _>>()?;
        Ok(Message::new(&proto::OBJECTS_PAGE).all("objects", objects).maybe("next_page_token", next))
    }

    fn fields(&self, request: &Message) -> Answer {
        let parent = address(request, "owner")?;
        let (page, next) = page(&self.ledger.seen, Owner::Object(parent), request, |_| true)?;
        let fields = page.into_iter().filter_map(|object| messages::field(parent, object));
        let fields = fields.map(|field| field.masked(request, "parent,field_id")).collect::<Result<Vec<_>, _>>()?;
        Ok(Message::new(&proto::FIELDS_PAGE).all("dynamic_fields", fields).maybe("next_page_token", next))
    }

    fn balance_of(&self, request: &Message) -> Answer {
        let owner = address(request, "owner")?;
        let coin_type = coin_type(request)?;
        let sum = self.ledger.seen.coins(owner, &coin_type).fold(0_u64, |sum, (_, balance)| sum.saturating_add(balance));
        Ok(Message::new(&proto::GOT_BALANCE).put("balance", balance(&coin_type, sum)))
    }

    fn versions(&self, request: &Message) -> Answer {
        let id = address(request, "package_id")?;
        if id != self.package {
            return Err(Status::not_found(format!("Package {id} not found")));
        }
        let version = Message::new(&proto::VERSION).put("package_id", id.to_string()).put("version", 1_u64);
        Ok(Message::new(&proto::VERSIONS_PAGE).put("versions", version))
    }

    fn execute(&mut self, request: &Message) -> Answer {
        let transaction = request.message("transaction").ok_or_else(|| Status::invalid("missing transaction"))?;
        let transaction = resolve::complete(transaction)?;
        let signatures = request.messages("signatures").map(|signature| {
            let bytes = signature.message("bcs").and_then(|bcs| bcs.bytes("value"));
            let signature = bytes.and_then(|bytes| UserSignature::from_bytes(bytes).ok());
            signature.ok_or_else(|| Status::invalid("invalid signatures"))
        });
        let signatures = signatures.collect::<Result<Vec<_>, _>>()?;
        let digest = self.submit(SignedTransaction { transaction, signatures }).map_err(Status::invalid)?;
        let executed = self.ledger.executed.get(&digest).map(messages::executed);
        let executed = executed.ok_or_else(|| Status::not_found("pruned"))?.masked(request, "effects")?;
        Ok(Message::new(&proto::GOT_TRANSACTION).put("transaction", executed))
    }

    fn simulate(&self, request: &Message) -> Answer {
        let message = request.message("transaction").ok_or_else(|| Status::invalid("missing transaction"))?;
        let mut transaction = resolve::resolve(&self.ledger.live, message)?;
        if request.number("do_gas_selection").is_some_and(|chosen| chosen != 0) {
            self.choose_gas(&mut transaction)?;
        } else if transaction.gas_payment.budget == 0 {
            transaction.gas_payment.budget = MAX_BUDGET;
        }
        let executed = self.simulated(transaction).map_err(Status::invalid)?;
        let answer = Message::new(&proto::SIMULATED).put("transaction", messages::executed(&executed));
        answer.put("suggested_gas_price", GAS_PRICE).masked(request, "*")
    }

    /// Chooses what a wallet has left open: the budget, by what a simulation costs, and the coins that pay.
    fn choose_gas(&self, transaction: &mut Transaction) -> Result<(), Status> {
        let payment = &transaction.gas_payment;
        if payment.budget == 0 {
            let mut trial = transaction.clone();
            (trial.gas_payment.budget, trial.gas_payment.objects) = (MAX_BUDGET, vec![]);
            let executed = self.simulated(trial).map_err(Status::invalid)?;
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
            return Err(Status::invalid(format!("unable to select sufficient gas coins from account {owner}")));
        }
        Ok(())
    }
}

const OBJECT_MASK: &str = "object_id,version,digest";

fn error(status: &Status) -> Message {
    Message::new(&proto::STATUS).put("code", status.code).put("message", status.message.as_str())
}

fn address(message: &Message, field: &str) -> Result<Address, Status> {
    let text = message.text(field).ok_or_else(|| Status::invalid(format!("missing {field}")))?;
    text.parse().map_err(|error| Status::invalid(format!("invalid {field}: {error}")))
}

fn coin_type(message: &Message) -> Result<TypeTag, Status> {
    let text = message.text("coin_type").ok_or_else(|| Status::invalid("missing coin_type"))?;
    resolve::parse_type(text, "coin_type")
}

fn balance(of: &TypeTag, sum: u64) -> Message {
    let message = Message::new(&proto::BALANCE).put("coin_type", of.to_string()).put("balance", sum);
    message.put("address_balance", 0_u64).put("coin_balance", sum)
}

type Page<'v> = (Vec<&'v Object>, Option<Vec<u8>>);

/// A page of what an owner has. The token of the next one is the last id.
fn page<'v>(view: &'v View, owner: Owner, request: &Message, is_asked: impl Fn(&Object) -> bool) -> Result<Page<'v>, Status> {
    let size = request.number("page_size").filter(|size| *size > 0).unwrap_or(PAGE).min(MAX_PAGE);
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let token = request.bytes("page_token").filter(|token| !token.is_empty());
    let after = token.map(|token| Address::from_bytes(token).map_err(|_| Status::invalid("invalid page_token"))).transpose()?;
    let mut all = view.owned(owner, after).map(AsRef::as_ref).filter(|object| is_asked(object));
    let page: Vec<&Object> = all.by_ref().take(size).collect();
    let next = all.next().and(page.last()).map(|last| last.object_id().into());
    Ok((page, next))
}
