//! The JSON-RPC methods with which older clients send a payment: the gas price, an account's coins, execution, and
//! executed transactions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sui_rpc::proto::proto_to_timestamp_ms;
use sui_sdk_types::bcs::FromBcs as _;
use sui_sdk_types::{Address, ExecutionStatus, Object, Owner, SignedTransaction, StructTag, Transaction, UserSignature};
use tonic::Status;

use super::ledger::{Executed, GAS_PRICE, balance};
use super::resolve::parse_type;
use super::{Sui, front, messages};
use crate::chains::rpc::{self, Fault};
use crate::http::{Reply, Request};

/// The maximum number of coins on a page.
const PAGE: u32 = 50;
/// A node's error code for a refused transaction.
const REFUSED: i64 = -32_002;

fn invalid(what: impl ToString) -> Fault {
    Fault::params(format!("Invalid params: {}", what.to_string()))
}

fn refused(why: String) -> Fault {
    Fault::new(REFUSED, why)
}

fn words(status: Status) -> Fault {
    invalid(status.message())
}

/// Answers a call.
pub(super) fn answer(sui: &mut Sui, request: &Request) -> Reply {
    let call: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let params = call.get("params").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let result = match call.get("method").and_then(Value::as_str) {
        Some("suix_getReferenceGasPrice") => Ok(json!(GAS_PRICE.to_string())),
        Some("suix_getCoins") => coins(sui, params),
        Some("sui_executeTransactionBlock") => execute(sui, params),
        Some("sui_dryRunTransactionBlock") => dry_run(sui, params),
        Some("sui_getTransactionBlock") => found(sui, params),
        Some(_) => Err(Fault::no_method("Method not found")),
        None => Err(Fault::request("Invalid request")),
    };
    Reply::json(200, &rpc::reply(call.get("id").unwrap_or(&Value::Null), result))
}

fn text<'p>(params: &'p [Value], place: usize, name: &str) -> Result<&'p str, Fault> {
    params.get(place).and_then(Value::as_str).ok_or_else(|| invalid(format!("missing {name}")))
}

fn transaction(params: &[Value]) -> Result<Transaction, Fault> {
    let bytes = STANDARD.decode(text(params, 0, "tx_bytes")?).map_err(invalid)?;
    Transaction::from_bcs(&bytes).map_err(invalid)
}

/// Returns an account's coins of SUI.
fn coins(sui: &Sui, params: &[Value]) -> Result<Value, Fault> {
    let owner: Address = text(params, 0, "owner")?.parse().map_err(invalid)?;
    let of: StructTag = text(params, 1, "").map_or_else(|_| Ok(StructTag::sui()), |of| parse_type(of, "coin_type").map_err(words))?;
    let after = text(params, 2, "").ok().map(str::parse).transpose().map_err(|_: sui_sdk_types::AddressParseError| invalid("cursor"))?;
    let limit = params.get(3).and_then(Value::as_u64).and_then(|limit| limit.try_into().ok()).unwrap_or(PAGE).min(PAGE);
    let is_coin = |object: &Object| balance(object).is_some() && of == StructTag::sui();
    let after = after.as_ref().map(Address::as_bytes);
    let page = front::page(&sui.ledger.seen, Owner::Address(owner), Some(limit), after, is_coin);
    let (page, next) = page.map_err(words)?;
    let data = page.iter().map(|coin| {
        json!({
            "coinType": of.to_string(),
            "coinObjectId": coin.object_id().to_string(),
            "version": coin.version().to_string(),
            "digest": coin.digest().to_base58(),
            "balance": balance(coin).unwrap_or_default().to_string(),
            "previousTransaction": coin.previous_transaction().to_base58(),
        })
    });
    let cursor = next.as_ref().and(page.last()).map(|last| last.object_id().to_string());
    Ok(json!({ "data": data.collect::<Vec<_>>(), "nextCursor": cursor, "hasNextPage": next.is_some() }))
}

fn execute(sui: &mut Sui, params: &[Value]) -> Result<Value, Fault> {
    let transaction = transaction(params)?;
    let given = params.get(1).and_then(Value::as_array).ok_or_else(|| invalid("missing signatures"))?;
    let signatures = given.iter().map(|signature| UserSignature::from_base64(signature.as_str().unwrap_or_default()).map_err(invalid));
    let signatures = signatures.collect::<Result<Vec<_>, _>>()?;
    let executed = sui.submit(&SignedTransaction { transaction, signatures }).map_err(refused)?;
    Ok(block(executed, params.get(2)))
}

fn dry_run(sui: &Sui, params: &[Value]) -> Result<Value, Fault> {
    let executed = sui.simulated(transaction(params)?).map_err(refused)?;
    Ok(json!({ "effects": effects(&executed) }))
}

/// Returns a transaction in a checkpoint.
fn found(sui: &Sui, params: &[Value]) -> Result<Value, Fault> {
    let digest = text(params, 0, "digest")?;
    let missing = |_| Fault::params(format!("Could not find the referenced transaction [TransactionDigest({digest})]."));
    Ok(block(sui.found(digest).map_err(missing)?, params.get(1)))
}

/// Returns a transaction with the parts that the options select.
fn block(executed: &Executed, options: Option<&Value>) -> Value {
    let mut block = Map::from_iter([("digest".to_owned(), json!(executed.digest.to_base58()))]);
    if let (Some(checkpoint), Some(time)) =
        (executed.message.checkpoint, executed.message.timestamp.and_then(|time| proto_to_timestamp_ms(time).ok()))
    {
        block.insert("checkpoint".to_owned(), json!(checkpoint.to_string()));
        block.insert("timestampMs".to_owned(), json!(time.to_string()));
    }
    if options.and_then(|options| options.get("showEffects")) == Some(&Value::Bool(true)) {
        block.insert("effects".to_owned(), effects(executed));
    }
    Value::Object(block)
}

fn effects(executed: &Executed) -> Value {
    let gas = executed.effects.gas_summary();
    let status = match executed.effects.status() {
        ExecutionStatus::Failure { error, command } => json!({ "status": "failure", "error": messages::reason(error, *command) }),
        _ => json!({ "status": "success" }),
    };
    json!({
        "messageVersion": "v1",
        "status": status,
        "executedEpoch": executed.effects.epoch().to_string(),
        "gasUsed": {
            "computationCost": gas.computation_cost.to_string(),
            "storageCost": gas.storage_cost.to_string(),
            "storageRebate": gas.storage_rebate.to_string(),
            "nonRefundableStorageFee": gas.non_refundable_storage_fee.to_string(),
        },
        "transactionDigest": executed.digest.to_base58(),
    })
}
