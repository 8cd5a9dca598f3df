//! The JSON-RPC interface, version 0.9, with the reference SDK's types.

use std::sync::LazyLock;

use countersign_proofs_starknet::contracts::NOVEMBER_2025;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use starknet_core::types::{
    BlockId, BlockTag, ContractExecutionError, EmittedEvent, Event, EventFilterWithPage, EventsChunk, FeePayment, FunctionCall,
    InvokeTransactionReceipt, PriceUnit, ReceiptBlock, SimulationFlag, StarknetError, TransactionExecutionErrorData,
    TransactionFinalityStatus, TransactionReceipt, TransactionReceiptWithBlockInfo, TransactionStatus,
};
use starknet_crypto::Felt;

use super::contracts::HTLC_CLASS;
use super::felts::parse;
use super::invoke::{Invoke, Outcome, PRICES, SEQUENCER};
use super::ledger::{At, Entry, Ledger};
use crate::chains::rpc::{self, Fault};
use crate::http::{Reply, Request, put};

/// The version of the interface.
const VERSION: &str = "0.9.0";
/// The maximum number of calls in a request, and of felts in a transaction's calldata.
const MAX_BATCH: usize = 100;
const MAX_FELTS: usize = 5_000;
/// The maximum number of events on a page.
const MAX_CHUNK: u64 = 1_000;

/// The class of the compiled HTLC, with its interface as a string.
static HTLC: LazyLock<Value> = LazyLock::new(|| {
    let mut class: Value = serde_json::from_str(NOVEMBER_2025).unwrap_or_default();
    if let Some(abi) = class.get_mut("abi") {
        *abi = Value::String(abi.to_string());
    }
    class
});

impl From<StarknetError> for Fault {
    fn from(error: StarknetError) -> Self {
        let data = match &error {
            StarknetError::TransactionExecutionError(data) => json!(data),
            StarknetError::InvalidTransactionNonce(text)
            | StarknetError::ValidationFailure(text)
            | StarknetError::UnexpectedError(text) => json!(text),
            _ => Value::Null,
        };
        Self::new(error.code().into(), error.message()).with_data(data)
    }
}

fn no_request() -> Fault {
    Fault::request("Invalid request")
}

fn no_method() -> Fault {
    Fault::no_method("Method not found")
}

fn invalid(what: impl Into<String>) -> Fault {
    Fault::params("Invalid params").with_data(json!({"reason": what.into()}))
}

/// The parameters of a method, by name or by position.
struct Params<'a>(&'a Value);

impl Params<'_> {
    /// Parses a parameter into the SDK's type.
    fn read<T: DeserializeOwned>(&self, place: usize, name: &str) -> Result<T, Fault> {
        let found = if self.0.is_array() { self.0.get(place) } else { self.0.get(name) }.unwrap_or(&Value::Null);
        if !is_strict(found) {
            return Err(invalid(format!("{name} has a felt that is not `0x` and hex digits below the prime")));
        }
        T::deserialize(found).map_err(|error| invalid(format!("{name}: {error}")))
    }

    /// Returns the state that `block_id` refers to.
    fn state(&self, ledger: &Ledger, place: usize) -> Result<At, Fault> {
        height(ledger, self.read(place, "block_id")?)
    }
}

/// Returns whether all felts are valid by strict rules. The SDK alone would accept more texts.
fn is_strict(value: &Value) -> bool {
    match value {
        Value::String(text) => Felt::from_hex(text).is_err() || parse(text).is_some(),
        Value::Array(list) => list.iter().all(is_strict),
        Value::Object(members) => members.values().all(is_strict),
        _ => true,
    }
}

fn height(ledger: &Ledger, id: BlockId) -> Result<At, Fault> {
    let height = match id {
        BlockId::Tag(BlockTag::PreConfirmed) => return Ok(At::Pending),
        BlockId::Tag(BlockTag::Latest) => Some(ledger.head),
        BlockId::Tag(BlockTag::L1Accepted) => Some(ledger.on_l1),
        BlockId::Number(number) => Some(number),
        BlockId::Hash(hash) => ledger.height_of(hash),
    };
    height.filter(|height| ledger.hash(*height).is_some()).map(At::Height).ok_or_else(|| StarknetError::BlockNotFound.into())
}

/// Answers a request.
pub(super) fn answer(ledger: &mut Ledger, now: u64, request: &Request) -> Reply {
    if request.method != "POST" {
        return Reply::text(405, "Used HTTP Method is not allowed. POST is required");
    }
    let batch = |calls: usize| (calls == 0 || calls > MAX_BATCH).then(no_request);
    let replies = rpc::answer(&request.body, "Parse error", batch, |call| one(ledger, now, call));
    replies.map_or_else(|| Reply::new(204, "application/json", ""), |replies| Reply::json(200, &replies))
}

/// Answers one call. Returns `None` for a notification.
fn one(ledger: &mut Ledger, now: u64, call: &Value) -> Option<Value> {
    let id = call.get("id");
    let Some(method) = call.get("method").and_then(Value::as_str).filter(|_| call.get("jsonrpc") == Some(&json!("2.0"))) else {
        return Some(rpc::reply(id.unwrap_or(&Value::Null), Err(no_request())));
    };
    let result = respond(ledger, now, method, call.get("params").unwrap_or(&Value::Null));
    Some(rpc::reply(id?, result))
}

fn respond(ledger: &mut Ledger, now: u64, method: &str, params: &Value) -> Result<Value, Fault> {
    let name = method.strip_prefix("starknet_").ok_or_else(no_method)?;
    let params = Params(params);
    if name == "addInvokeTransaction" {
        let transaction = params.read(0, "invoke_transaction").and_then(limited)?;
        return Ok(json!({"transaction_hash": ledger.submit(transaction)?}));
    }
    let ledger = &*ledger;
    let find = || ledger.find(params.read(0, "transaction_hash")?).ok_or_else(|| Fault::from(StarknetError::TransactionHashNotFound));
    // Returns a state, a contract that exists in it, and the contract's class.
    let contract = |block: usize, contract: usize| {
        let (at, contract) = (params.state(ledger, block)?, params.read(contract, "contract_address")?);
        Ok::<_, Fault>((at, contract, ledger.view(at).class_of(contract)?))
    };
    Ok(match name {
        "specVersion" => json!(VERSION),
        "chainId" => json!(ledger.chain_id),
        "blockNumber" => json!(ledger.head),
        "blockHashAndNumber" => json!({"block_hash": ledger.hash(ledger.head), "block_number": ledger.head}),
        "getBlockWithTxHashes" => block(ledger, now, &params, |entry, _| json!(entry.hash))?,
        "getBlockWithTxs" => block(ledger, now, &params, |entry, _| with_hash(entry))?,
        "getBlockWithReceipts" => {
            let show = |entry: &Entry, height| json!({"transaction": entry.transaction, "receipt": receipt(ledger, entry, height)});
            block(ledger, now, &params, show)?
        }
        "getNonce" => contract(0, 1).map(|(at, account, _)| json!(ledger.nonce(at, account)))?,
        "getStorageAt" => {
            let (at, contract, _) = contract(2, 0)?;
            json!(ledger.slot(at, &(contract, params.read(1, "key")?)))
        }
        "getClassHashAt" => json!(contract(0, 1)?.2),
        "getClassAt" if contract(0, 1)?.2 == HTLC_CLASS => HTLC.clone(),
        // The other classes have no code. Clients only see that they are of Cairo 1.
        "getClassAt" => json!({
            "sierra_program": [], "contract_class_version": "0.1.0",
            "entry_points_by_type": {"CONSTRUCTOR": [], "L1_HANDLER": [], "EXTERNAL": []},
            "abi": json!([{"type": "interface", "name": "model::Interface", "items": []}]).to_string(),
        }),
        "call" => json!(ledger.view(params.state(ledger, 1)?).ask(&params.read::<FunctionCall>(0, "request")?)?),
        "estimateFee" => tried(ledger, &params, true)?.iter().map(|outcome| json!(outcome.estimate())).collect(),
        "simulateTransactions" => tried(ledger, &params, false)?.iter().map(|outcome| json!(outcome.simulated())).collect(),
        "getTransactionByHash" => with_hash(find()?.0),
        "getTransactionReceipt" => match find()? {
            (entry, Some(height)) => {
                let (receipt, block_hash) = (receipt(ledger, entry, height), ledger.hash(height).unwrap_or_default());
                json!(TransactionReceiptWithBlockInfo { receipt, block: ReceiptBlock::Block { block_hash, block_number: height } })
            }
            _ => return Err(StarknetError::TransactionHashNotFound.into()),
        },
        "getTransactionStatus" => json!(match find()? {
            (_, None) => TransactionStatus::Received,
            (entry, Some(height)) if height <= ledger.on_l1 => TransactionStatus::AcceptedOnL1(entry.outcome.result()),
            (entry, _) => TransactionStatus::AcceptedOnL2(entry.outcome.result()),
        }),
        "getEvents" => json!(events(ledger, params.read(0, "filter")?)?),
        _ => return Err(no_method()),
    })
}

/// Shows a block, or the pending one. Pending transactions have been received, but are not in a block.
fn block(ledger: &Ledger, now: u64, params: &Params<'_>, show: impl Fn(&Entry, u64) -> Value) -> Result<Value, Fault> {
    let (number, is_made) = match params.state(ledger, 0)? {
        At::Pending => (ledger.head.saturating_add(1), false),
        At::Height(height) => (height, true),
    };
    // The prices assume STRK at 0.2 and ETH at 4000 dollars.
    let price = |fri: u64| json!({"price_in_fri": Felt::from(fri), "price_in_wei": Felt::from(fri.div_ceil(20_000))});
    let [l1_gas, l2_gas, l1_data_gas] = PRICES.map(price);
    let entries = ledger.bodies.get(&number).map_or(&[][..], |body| body.entries.as_slice());
    let mut block = json!({
        "block_number": number, "timestamp": ledger.time(number).unwrap_or(now), "sequencer_address": SEQUENCER,
        "l1_gas_price": l1_gas, "l2_gas_price": l2_gas, "l1_data_gas_price": l1_data_gas, "l1_da_mode": "BLOB",
        "starknet_version": "0.14.0", "transactions": entries.iter().map(|entry| show(entry, number)).collect::<Value>(),
    });
    if is_made {
        let [hash, parent] = [number, number.saturating_sub(1)].map(|height| json!(ledger.hash(height).unwrap_or_default()));
        // The state root supports no proofs.
        let made = [("status", json!(finality(ledger, number))), ("block_hash", hash), ("parent_hash", parent), ("new_root", json!("0x0"))];
        made.into_iter().for_each(|(name, value)| put(&mut block, name, value));
    }
    Ok(block)
}

fn with_hash(entry: &Entry) -> Value {
    let mut transaction = json!(entry.transaction);
    put(&mut transaction, "transaction_hash", json!(entry.hash));
    transaction
}

const fn finality(ledger: &Ledger, height: u64) -> TransactionFinalityStatus {
    if height <= ledger.on_l1 { TransactionFinalityStatus::AcceptedOnL1 } else { TransactionFinalityStatus::AcceptedOnL2 }
}

fn receipt(ledger: &Ledger, entry: &Entry, height: u64) -> TransactionReceipt {
    TransactionReceipt::Invoke(InvokeTransactionReceipt {
        transaction_hash: entry.hash,
        actual_fee: FeePayment { amount: entry.outcome.fee.into(), unit: PriceUnit::Fri },
        finality_status: finality(ledger, height),
        messages_sent: Vec::new(),
        events: entry.outcome.events.clone(),
        execution_resources: entry.outcome.resources(),
        execution_result: entry.outcome.result(),
    })
}

fn limited(transaction: Invoke) -> Result<Invoke, Fault> {
    let is_short = [&transaction.calldata, &transaction.signature].iter().all(|felts| felts.len() <= MAX_FELTS);
    if is_short { Ok(transaction) } else { Err(invalid(format!("the model executes no more than {MAX_FELTS} felts"))) }
}

/// Executes transactions without storing the effects. All of them start from the same state.
fn tried(ledger: &Ledger, params: &Params<'_>, is_estimate: bool) -> Result<Vec<Outcome>, Fault> {
    let ([block, place, flags], name) = if is_estimate { ([2, 0, 1], "request") } else { ([0, 1, 2], "transactions") };
    let (at, flags) = (params.state(ledger, block)?, params.read::<Vec<SimulationFlag>>(flags, "simulation_flags")?);
    let is_charged = !is_estimate && !flags.contains(&SimulationFlag::SkipFeeCharge);
    let mut outcomes = Vec::new();
    for (transaction_index, transaction) in (0..).zip(params.read::<Vec<Invoke>>(place, name)?) {
        let transaction = limited(transaction)?;
        let fails = |reason: String| {
            let execution_error = ContractExecutionError::Message(reason);
            StarknetError::TransactionExecutionError(TransactionExecutionErrorData { transaction_index, execution_error })
        };
        ledger.view(at).class_of(transaction.sender_address)?;
        let validated = if flags.contains(&SimulationFlag::SkipValidate) { Ok(()) } else { ledger.validate(at, &transaction) };
        let checked = validated.and_then(|()| ledger.check_nonce(at, &transaction));
        let checked = checked.and_then(|()| if is_charged { ledger.check_bounds(at, &transaction) } else { Ok(()) });
        checked.map_err(|error| fails(error.to_string()))?;
        let outcome = ledger.execute(at, &transaction, is_charged);
        match &outcome.reverted {
            Some(reason) if is_estimate => return Err(fails(reason.clone()).into()),
            _ => outcomes.push(outcome),
        }
    }
    Ok(outcomes)
}

fn events(ledger: &Ledger, asked: EventFilterWithPage) -> Result<EventsChunk, Fault> {
    let EventFilterWithPage { event_filter: filter, result_page_request: page } = asked;
    let block = |id: Option<BlockId>, open: u64| match id.map(|id| height(ledger, id)).transpose()? {
        Some(At::Height(height)) => Ok::<_, Fault>(height),
        Some(At::Pending) => Ok(ledger.head.saturating_add(1)),
        None => Ok(open),
    };
    let (from, to) = (block(filter.from_block, 0)?, block(filter.to_block, ledger.head)?);
    if page.chunk_size == 0 || page.chunk_size > MAX_CHUNK {
        return Err(StarknetError::PageSizeTooBig.into());
    }
    let keys = filter.keys.unwrap_or_default();
    // A continuation token holds the number of matching events on earlier pages.
    let shown = page.continuation_token.map_or(Some(0), |token| token.strip_prefix("after-")?.parse().ok());
    let shown = shown.ok_or(StarknetError::InvalidContinuationToken)?;
    let key = |event: &Event, (place, wanted): (usize, &Vec<Felt>)| {
        wanted.is_empty() || event.keys.get(place).is_some_and(|key| wanted.contains(key))
    };
    let is_asked = |event: &Event| {
        filter.address.is_none_or(|address| address == event.from_address) && keys.iter().enumerate().all(|wanted| key(event, wanted))
    };
    let blocks = ledger.bodies.iter().filter(|(height, _)| (from..=to).contains(*height));
    let entries = blocks.flat_map(|(height, body)| body.entries.iter().map(move |entry| (*height, entry)));
    let all = entries.flat_map(|(height, entry)| entry.outcome.events.iter().map(move |event| (height, entry.hash, event)));
    let mut asked = all.filter(|(.., event)| is_asked(event)).skip(shown);
    let events: Vec<_> = asked
        .by_ref()
        .take(usize::try_from(page.chunk_size).unwrap_or_default())
        .map(|(height, transaction_hash, Event { from_address, keys, data })| EmittedEvent {
            from_address: *from_address,
            keys: keys.clone(),
            data: data.clone(),
            block_hash: ledger.hash(height),
            block_number: Some(height),
            transaction_hash,
        })
        .collect();
    let continuation_token = asked.next().map(|_| format!("after-{}", shown.saturating_add(events.len())));
    Ok(EventsChunk { events, continuation_token })
}
