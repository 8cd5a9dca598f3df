//! The part of a full node's JSON-RPC by which older clients send a payment: what gas costs, the coins of an account, execution, and what
//! was executed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sui_sdk_types::bcs::FromBcs as _;
use sui_sdk_types::{Address, Digest, ExecutionStatus, SignedTransaction, StructTag, Transaction, TypeTag, UserSignature};

use super::ledger::{Executed, GAS_PRICE};
use super::{Sui, messages};
use crate::http::{Reply, Request};

/// The most coins on a page.
const PAGE: usize = 50;
const INVALID: i64 = -32_602;
/// A node's code for a transaction that it refuses.
const REFUSED: i64 = -32_002;

/// Code and message of an error.
type Failure = (i64, String);

fn invalid(what: impl Into<String>) -> Failure {
    (INVALID, what.into())
}

/// Answers a call.
pub(super) fn answer(sui: &mut Sui, request: &Request) -> Reply {
    let Ok(call) = serde_json::from_slice::<Value>(&request.body) else {
        return Reply::json(200, &error(&Value::Null, (-32_700, "Parse error".to_owned())));
    };
    let id = call.get("id").unwrap_or(&Value::Null);
    let Some(method) = call.get("method").and_then(Value::as_str) else {
        return Reply::json(200, &error(id, (-32_600, "Invalid request".to_owned())));
    };
    let nothing = Vec::new();
    let params = call.get("params").and_then(Value::as_array).unwrap_or(&nothing);
    let result = match method {
        "suix_getReferenceGasPrice" => Ok(json!(GAS_PRICE.to_string())),
        "suix_getCoins" => coins(sui, params),
        "sui_executeTransactionBlock" => execute(sui, params),
        "sui_dryRunTransactionBlock" => dry_run(sui, params),
        "sui_getTransactionBlock" => found(sui, params),
        _ => Err((-32_601, "Method not found".to_owned())),
    };
    Reply::json(
        200,
        &match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(failure) => error(id, failure),
        },
    )
}

fn error(id: &Value, (code, message): Failure) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn text<'p>(params: &'p [Value], place: usize, name: &str) -> Result<&'p str, Failure> {
    params.get(place).and_then(Value::as_str).ok_or_else(|| invalid(format!("Invalid params: missing {name}")))
}

fn bytes(text: &str) -> Result<Vec<u8>, Failure> {
    STANDARD.decode(text).map_err(|error| invalid(format!("Invalid value was given to the function: {error}")))
}

fn transaction(params: &[Value]) -> Result<Transaction, Failure> {
    let bytes = bytes(text(params, 0, "tx_bytes")?)?;
    Transaction::from_bcs(&bytes).map_err(|error| invalid(format!("Invalid value was given to the function: {error}")))
}

/// The coins of an account, of one type; by default SUI.
fn coins(sui: &Sui, params: &[Value]) -> Result<Value, Failure> {
    let owner: Address = text(params, 0, "owner")?.parse().map_err(|error| invalid(format!("Invalid params: {error}")))?;
    let of = match params.get(1).and_then(Value::as_str) {
        Some(text) => text.parse().map_err(|_| invalid("Invalid struct type"))?,
        None => TypeTag::Struct(Box::new(StructTag::sui())),
    };
    let after: Option<Address> =
        params.get(2).and_then(Value::as_str).map(str::parse).transpose().map_err(|_| invalid("Invalid cursor"))?;
    let limit = params.get(3).and_then(Value::as_u64).and_then(|limit| limit.try_into().ok()).unwrap_or(PAGE).clamp(1, PAGE);
    let mut all = sui.ledger.seen.coins(owner, &of).filter(|(coin, _)| after.is_none_or(|after| coin.object_id() > after));
    let page: Vec<_> = all.by_ref().take(limit).collect();
    let next = all.next().and(page.last()).map(|(last, _)| last.object_id().to_string());
    let data = page.iter().map(|(coin, balance)| {
        json!({
            "coinType": of.to_string(),
            "coinObjectId": coin.object_id().to_string(),
            "version": coin.version().to_string(),
            "digest": coin.digest().to_base58(),
            "balance": balance.to_string(),
            "previousTransaction": coin.previous_transaction().to_base58(),
        })
    });
    Ok(json!({ "data": data.collect::<Vec<_>>(), "nextCursor": next, "hasNextPage": next.is_some() }))
}

fn execute(sui: &mut Sui, params: &[Value]) -> Result<Value, Failure> {
    let transaction = transaction(params)?;
    let given = params.get(1).and_then(Value::as_array).ok_or_else(|| invalid("Invalid params: missing signatures"))?;
    let signatures = given.iter().map(|signature| {
        let bytes = signature.as_str().map(bytes).transpose()?.unwrap_or_default();
        UserSignature::from_bytes(&bytes).map_err(|error| invalid(format!("Invalid value was given to the function: {error}")))
    });
    let signatures = signatures.collect::<Result<Vec<_>, _>>()?;
    let digest = sui.submit(SignedTransaction { transaction, signatures }).map_err(|why| (REFUSED, why))?;
    let executed = sui.ledger.executed.get(&digest).ok_or_else(|| (REFUSED, "pruned".to_owned()))?;
    Ok(block(executed, params.get(2)))
}

fn dry_run(sui: &Sui, params: &[Value]) -> Result<Value, Failure> {
    let executed = sui.simulated(transaction(params)?).map_err(|why| (REFUSED, why))?;
    Ok(json!({ "effects": effects(&executed) }))
}

/// A transaction in a checkpoint.
fn found(sui: &Sui, params: &[Value]) -> Result<Value, Failure> {
    let text = text(params, 0, "digest")?;
    let digest = Digest::from_base58(text).map_err(|error| invalid(format!("Invalid params: {error}")))?;
    let executed = sui.ledger.executed.get(&digest).filter(|executed| executed.checkpoint.is_some());
    let executed = executed.ok_or_else(|| invalid(format!("Could not find the referenced transaction [TransactionDigest({text})].")))?;
    Ok(block(executed, params.get(1)))
}

/// A transaction with what the options ask for.
fn block(executed: &Executed, options: Option<&Value>) -> Value {
    let mut block = Map::from_iter([("digest".to_owned(), json!(executed.digest.to_base58()))]);
    if let Some((checkpoint, millis)) = executed.checkpoint {
        block.insert("checkpoint".to_owned(), json!(checkpoint.to_string()));
        block.insert("timestampMs".to_owned(), json!(millis.to_string()));
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
