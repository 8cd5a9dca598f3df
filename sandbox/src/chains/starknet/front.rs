//! The JSON-RPC front, version 0.9.

use serde_json::{Value, json};
use starknet_crypto::Felt;

use super::felts::{hex, parse};
use super::invoke::{Invoke, hexes};
use super::ledger::{At, Ledger, Refused};
use super::machine::{Event, STRK, Why};
use super::shapes::{self, Detail};
use crate::http::{Reply, Request};

/// The version of the interface.
const VERSION: &str = "0.9.0";
/// How many calls one request may have.
const MAX_BATCH: usize = 100;
/// How many events one page may have, and how many keys a filter.
const MAX_CHUNK: u64 = 1_000;
const MAX_KEYS: usize = 64;

/// An error of the interface.
#[derive(Debug)]
struct Fault {
    code: i64,
    data: Value,
}

impl From<i64> for Fault {
    fn from(code: i64) -> Self {
        Self { code, data: Value::Null }
    }
}

impl From<Refused> for Fault {
    fn from(Refused(code, text): Refused) -> Self {
        Self { code, data: if text.is_empty() { Value::Null } else { json!(text) } }
    }
}

fn invalid(what: impl Into<String>) -> Fault {
    Fault { code: -32_602, data: json!({"reason": what.into()}) }
}

const fn message(code: i64) -> &'static str {
    match code {
        20 => "Contract not found",
        21 => "Requested entrypoint does not exist in the contract",
        24 => "Block not found",
        28 => "Class hash not found",
        29 => "Transaction hash not found",
        31 => "Requested page size is too big",
        33 => "The supplied continuation token is invalid or unknown",
        34 => "Too many keys provided in a filter",
        40 => "Contract error",
        41 => "Transaction execution error",
        52 => "Invalid transaction nonce",
        53 => "The transaction's resources don't cover validation or the minimal transaction fee",
        54 => "Account balance is smaller than the transaction's maximal fee (calculated as the sum of each resource's limit x max price)",
        55 => "Account validation failed",
        59 => "A transaction with the same hash already exists in the mempool",
        61 => "The transaction version is not supported",
        63 => "An unexpected error occurred",
        64 => "Replacement transaction is underpriced",
        -32_700 => "Parse error",
        -32_600 => "Invalid request",
        -32_601 => "Method not found",
        _ => "Invalid params",
    }
}

/// The parameters of a method, by name or by place.
struct Params<'a>(&'a Value, &'static [&'static str]);

impl Params<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        let found = match self.0 {
            Value::Array(list) => list.get(self.1.iter().position(|known| *known == name)?),
            other => other.get(name),
        };
        found.filter(|value| !value.is_null())
    }

    fn felt(&self, name: &str) -> Result<Felt, Fault> {
        let felt = self.get(name).and_then(Value::as_str).and_then(parse);
        felt.ok_or_else(|| invalid(format!("{name} is not a felt in hex")))
    }

    fn list(&self, name: &str) -> Result<&[Value], Fault> {
        self.get(name).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| invalid(format!("{name} is not an array")))
    }

    fn has_flag(&self, flag: &str) -> bool {
        self.get("simulation_flags").and_then(Value::as_array).is_some_and(|flags| flags.iter().any(|one| one == flag))
    }
}

/// Answers a request.
pub(super) fn answer(ledger: &mut Ledger, now: u64, request: &Request) -> Reply {
    if request.method != "POST" {
        return Reply::text(405, "Used HTTP Method is not allowed. POST is required");
    }
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
        return Reply::json(200, &error(&Value::Null, &Fault::from(-32_700)));
    };
    match &body {
        Value::Array(calls) if calls.is_empty() || calls.len() > MAX_BATCH => Reply::json(200, &error(&Value::Null, &Fault::from(-32_600))),
        Value::Array(calls) => {
            let replies: Vec<_> = calls.iter().filter_map(|call| one(ledger, now, call)).collect();
            Reply::json(200, &Value::Array(replies))
        }
        call => one(ledger, now, call).map_or_else(|| Reply::new(204, "application/json", ""), |reply| Reply::json(200, &reply)),
    }
}

fn error(id: &Value, fault: &Fault) -> Value {
    let mut error = json!({"code": fault.code, "message": message(fault.code)});
    if let Some(members) = error.as_object_mut().filter(|_| !fault.data.is_null()) {
        members.insert("data".to_owned(), fault.data.clone());
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// Answers one call; `None` for a notification.
fn one(ledger: &mut Ledger, now: u64, call: &Value) -> Option<Value> {
    let id = call.get("id");
    let Some(method) = call.get("method").and_then(Value::as_str).filter(|_| call.get("jsonrpc") == Some(&json!("2.0"))) else {
        return Some(error(id.unwrap_or(&Value::Null), &Fault::from(-32_600)));
    };
    let params = call.get("params").unwrap_or(&Value::Null);
    let result = if matches!(params, Value::Null | Value::Array(_) | Value::Object(_)) {
        respond(ledger, now, method, params)
    } else {
        Err(Fault::from(-32_602))
    };
    let id = id?;
    Some(match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(fault) => error(id, &fault),
    })
}

/// The names of the parameters, for those who send them by place.
fn names(method: &str) -> &'static [&'static str] {
    match method {
        "getStorageAt" => &["contract_address", "key", "block_id"],
        "getTransactionByHash" | "getTransactionReceipt" | "getTransactionStatus" => &["transaction_hash"],
        "getClass" => &["block_id", "class_hash"],
        "getClassHashAt" | "getClassAt" | "getNonce" => &["block_id", "contract_address"],
        "call" => &["request", "block_id"],
        "estimateFee" => &["request", "simulation_flags", "block_id"],
        "simulateTransactions" => &["block_id", "transactions", "simulation_flags"],
        "getEvents" => &["filter"],
        "addInvokeTransaction" => &["invoke_transaction"],
        "getTransactionByBlockIdAndIndex" => &["block_id", "index"],
        _ => &["block_id"],
    }
}

fn respond(ledger: &mut Ledger, now: u64, method: &str, params: &Value) -> Result<Value, Fault> {
    let Some(name) = method.strip_prefix("starknet_") else { return Err(Fault::from(-32_601)) };
    let params = Params(params, names(name));
    let block = |detail| {
        let height = match state(ledger, &params)? {
            At::Pending => None,
            At::Height(height) => Some(height),
        };
        ledger.block(height, now, detail).ok_or_else(|| Fault::from(24))
    };
    Ok(match name {
        "specVersion" => json!(VERSION),
        "chainId" => json!(hex(ledger.world.chain_id)),
        "syncing" => json!(false),
        "blockNumber" => json!(ledger.head),
        "blockHashAndNumber" => json!({"block_hash": ledger.hash(ledger.head).map(hex), "block_number": ledger.head}),
        "getBlockWithTxHashes" => block(Detail::Hashes)?,
        "getBlockWithTxs" => block(Detail::Transactions)?,
        "getBlockWithReceipts" => block(Detail::Receipts)?,
        "getBlockTransactionCount" => {
            json!(block(Detail::Hashes)?.get("transactions").and_then(Value::as_array).map_or(0, Vec::len))
        }
        "getNonce" => {
            let (at, account) = (state(ledger, &params)?, params.felt("contract_address")?);
            class_at(ledger, at, account)?;
            json!(hex(ledger.nonce(at, account)))
        }
        "getStorageAt" => {
            let (at, contract, key) = (state(ledger, &params)?, params.felt("contract_address")?, params.felt("key")?);
            class_at(ledger, at, contract)?;
            // Addresses have 251 bits.
            if key.to_bytes_be().first().is_none_or(|first| *first >= 0x08) {
                return Err(invalid("key is not a storage address"));
            }
            json!(hex(ledger.slot(at, &(contract, key))))
        }
        "getClassHashAt" => json!(hex(class_at(ledger, state(ledger, &params)?, params.felt("contract_address")?)?)),
        "getClassAt" => {
            let hash = class_at(ledger, state(ledger, &params)?, params.felt("contract_address")?)?;
            shapes::class(hash).ok_or(Fault::from(28))?
        }
        "getClass" => {
            state(ledger, &params)?;
            shapes::class(params.felt("class_hash")?).ok_or(Fault::from(28))?
        }
        "call" => call(ledger, &params)?,
        "estimateFee" => {
            let all = tried(ledger, &params, "request", false)?;
            all.iter().map(shapes::estimate).collect()
        }
        "simulateTransactions" => {
            let is_charged = !params.has_flag("SKIP_FEE_CHARGE");
            let all = tried(ledger, &params, "transactions", is_charged)?;
            all.iter().map(shapes::simulation).collect()
        }
        "addInvokeTransaction" => {
            let transaction = shapes::read_invoke(params.get("invoke_transaction")).map_err(invalid)?;
            json!({"transaction_hash": hex(ledger.submit(transaction)?)})
        }
        "getTransactionByHash" => {
            let (entry, _) = ledger.find(params.felt("transaction_hash")?).ok_or(Fault::from(29))?;
            ledger.transaction(entry, true)
        }
        "getTransactionReceipt" => match ledger.find(params.felt("transaction_hash")?) {
            Some((entry, Some(height))) => ledger.receipt(entry, height, true),
            _ => return Err(Fault::from(29)),
        },
        "getTransactionStatus" => status(ledger, params.felt("transaction_hash")?)?,
        "getEvents" => events(ledger, params.get("filter").ok_or_else(|| invalid("no filter"))?)?,
        _ => return Err(Fault::from(-32_601)),
    })
}

/// Finds the state that `block_id` names.
fn state(ledger: &Ledger, params: &Params<'_>) -> Result<At, Fault> {
    block_id(ledger, params.get("block_id").ok_or_else(|| invalid("no block_id"))?)
}

fn block_id(ledger: &Ledger, id: &Value) -> Result<At, Fault> {
    let height = match id.as_str() {
        Some("pre_confirmed" | "pending") => return Ok(At::Pending),
        Some("latest") => Some(ledger.head),
        Some("l1_accepted") => Some(ledger.on_l1),
        Some(_) => return Err(invalid("unknown block tag")),
        None => match (id.get("block_number"), id.get("block_hash")) {
            (Some(number), None) => Some(number.as_u64().ok_or_else(|| invalid("block_number is not a number"))?),
            (None, Some(hash)) => {
                let hash = hash.as_str().and_then(parse).ok_or_else(|| invalid("block_hash is not a felt in hex"))?;
                ledger.height_of(hash)
            }
            _ => return Err(invalid("block_id is not a block")),
        },
    };
    height.filter(|height| ledger.has(*height)).map(At::Height).ok_or(Fault::from(24))
}

fn class_at(ledger: &Ledger, at: At, contract: Felt) -> Result<Felt, Fault> {
    let class = ledger.on(at, |machine| machine.class_of(contract));
    if class == Felt::ZERO { Err(Fault::from(20)) } else { Ok(class) }
}

fn call(ledger: &Ledger, params: &Params<'_>) -> Result<Value, Fault> {
    let at = state(ledger, params)?;
    let request = Params(params.get("request").ok_or_else(|| invalid("no request"))?, &[]);
    let calldata = request.list("calldata")?.iter().map(|felt| felt.as_str().and_then(parse)).collect::<Option<Vec<_>>>();
    let calldata = calldata.ok_or_else(|| invalid("calldata is not felts in hex"))?;
    let (to, function) = (request.felt("contract_address")?, request.felt("entry_point_selector")?);
    match ledger.call(at, to, function, &calldata) {
        Ok(frame) => Ok(hexes(&frame.result)),
        Err(failure) if failure.path.len() > 1 || matches!(failure.why, Why::Panic(_)) => {
            Err(Fault { code: 40, data: json!({"revert_error": shapes::failure(&failure)}) })
        }
        Err(failure) => Err(Fault::from(if matches!(failure.why, Why::NoContract) { 20 } else { 21 })),
    }
}

/// Executes transactions without keeping what they do. Each sees the same state.
fn tried(ledger: &Ledger, params: &Params<'_>, name: &str, is_charged: bool) -> Result<Vec<super::invoke::Outcome>, Fault> {
    let at = state(ledger, params)?;
    let mut outcomes = Vec::new();
    for (index, transaction) in params.list(name)?.iter().enumerate() {
        let transaction: Invoke = shapes::read_invoke(Some(transaction)).map_err(invalid)?;
        let fails = |error: Value| Fault { code: 41, data: json!({"transaction_index": index, "execution_error": error}) };
        let next = ledger.nonce(at, transaction.sender);
        let refused = if !params.has_flag("SKIP_VALIDATE") {
            ledger.validate(at, &transaction, transaction.hash(ledger.world.chain_id)).err()
        } else {
            class_at(ledger, at, transaction.sender).map(drop)?;
            None
        };
        if let Some(Refused(_, text)) = refused {
            return Err(fails(json!(text)));
        }
        if next != transaction.nonce {
            return Err(fails(json!(format!("Invalid transaction nonce. Account nonce: {next}; got: {}.", transaction.nonce))));
        }
        if is_charged {
            transaction.check_bounds().map_err(|text| fails(json!(text)))?;
            let has = ledger.on(at, |machine| machine.balance(STRK, transaction.sender));
            if has < transaction.max_fee() {
                return Err(fails(json!(format!("Resource bounds exceed the balance ({has})."))));
            }
        }
        let outcome = ledger.try_out(at, &transaction, is_charged);
        match &outcome.failure {
            Some(failure) if name == "request" => return Err(fails(shapes::failure(failure))),
            _ => outcomes.push(outcome),
        }
    }
    Ok(outcomes)
}

fn status(ledger: &Ledger, hash: Felt) -> Result<Value, Fault> {
    let (entry, height) = ledger.find(hash).ok_or(Fault::from(29))?;
    let Some(height) = height else { return Ok(json!({"finality_status": "RECEIVED"})) };
    Ok(match &entry.reverted {
        None => json!({"finality_status": ledger.finality(height), "execution_status": "SUCCEEDED"}),
        Some(reason) => json!({"finality_status": ledger.finality(height), "execution_status": "REVERTED", "failure_reason": reason}),
    })
}

/// What events are asked for.
struct Filter {
    address: Option<Felt>,
    keys: Vec<Vec<Felt>>,
}

impl Filter {
    fn holds(&self, event: &Event) -> bool {
        let key = |(place, wanted): (usize, &Vec<Felt>)| wanted.is_empty() || event.keys.get(place).is_some_and(|key| wanted.contains(key));
        self.address.is_none_or(|address| address == event.from) && self.keys.iter().enumerate().all(key)
    }
}

fn events(ledger: &Ledger, filter: &Value) -> Result<Value, Fault> {
    let params = Params(filter, &[]);
    let block = |name: &str, open: u64| match params.get(name).map(|id| block_id(ledger, id)).transpose()? {
        Some(At::Height(height)) => Ok::<_, Fault>(height),
        Some(At::Pending) => Ok(ledger.head.saturating_add(1)),
        None => Ok(open),
    };
    let (from, to) = (block("from_block", 0)?, block("to_block", ledger.head)?);
    let chunk = params.get("chunk_size").and_then(Value::as_u64).filter(|size| *size > 0).ok_or_else(|| invalid("no chunk_size"))?;
    if chunk > MAX_CHUNK {
        return Err(Fault::from(31));
    }
    let keys = params.get("keys").map_or(Some(Vec::new()), |keys| {
        let list = |list: &Value| list.as_array()?.iter().map(|key| parse(key.as_str()?)).collect::<Option<Vec<_>>>();
        keys.as_array()?.iter().map(list).collect()
    });
    let keys: Vec<Vec<Felt>> = keys.ok_or_else(|| invalid("keys are not arrays of felts"))?;
    if keys.iter().map(Vec::len).sum::<usize>() > MAX_KEYS || keys.len() > MAX_KEYS {
        return Err(Fault::from(34));
    }
    let address = params.get("address").map(|_| params.felt("address")).transpose()?;
    let filter = Filter { address, keys };
    let start = match params.get("continuation_token") {
        None => (from, 0),
        Some(token) => {
            let place = token.as_str().and_then(|text| text.split_once('-'));
            let place = place.and_then(|(height, index)| Some((height.parse::<u64>().ok()?, index.parse::<usize>().ok()?)));
            place.filter(|(height, _)| *height >= from).ok_or(Fault::from(33))?
        }
    };
    let (mut found, mut next) = (Vec::new(), None);
    let range = if start.0 <= to { start.0..=to } else { to..=to };
    'blocks: for (height, body) in ledger.bodies.range(range).filter(|(height, _)| **height >= start.0) {
        let all = body.entries.iter().flat_map(|entry| entry.events.iter().map(move |event| (entry.hash, event)));
        for (index, (hash, event)) in all.enumerate() {
            if (*height, index) < start || !filter.holds(event) {
                continue;
            }
            if u64::try_from(found.len()).is_ok_and(|count| count >= chunk) {
                next = Some(format!("{height}-{index}"));
                break 'blocks;
            }
            found.push(json!({
                "from_address": hex(event.from), "keys": hexes(&event.keys), "data": hexes(&event.data), "block_number": height,
                "block_hash": ledger.hash(*height).map(hex), "transaction_hash": hex(hash),
            }));
        }
    }
    Ok(match next {
        Some(token) => json!({"events": found, "continuation_token": token}),
        None => json!({"events": found}),
    })
}
