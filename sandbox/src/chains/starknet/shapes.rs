//! Blocks, transactions, receipts, traces and classes in the JSON of the interface.

use std::sync::LazyLock;

use countersign_proofs_starknet::contracts::NOVEMBER_2025;
use serde_json::{Map, Value, json};
use starknet_crypto::Felt;

use super::felts::{halves, hex, selector};
use super::invoke::{Invoke, Outcome, PRICES, SEQUENCER, hexes};
use super::ledger::{Entry, Input, Ledger};
use super::machine::{ACCOUNT_CLASS, Event, Failure, Frame, HTLC_CLASS, TOKEN_CLASS};

/// How much of a block's transactions is shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum Detail {
    Hashes,
    Transactions,
    Receipts,
}

const FELT: &str = "core::felt252";
const ADDRESS: &str = "core::starknet::contract_address::ContractAddress";
const NUMBER: &str = "core::integer::u256";

/// A function of an interface: name, names and types of what it takes, and the type of what it returns.
type Function = (&'static str, &'static [(&'static str, &'static str)], &'static str);

/// The class of the HTLC as it was compiled, with its interface as a text.
static HTLC: LazyLock<Value> = LazyLock::new(|| {
    let mut class: Value = serde_json::from_str(NOVEMBER_2025).unwrap_or_default();
    if let Some(abi) = class.get_mut("abi") {
        *abi = Value::String(abi.to_string());
    }
    class
});

fn prices(place: usize) -> Value {
    let fri = PRICES.get(place).copied().unwrap_or_default();
    // STRK at 0.2 and ETH at 4000.
    json!({"price_in_fri": format!("{fri:#x}"), "price_in_wei": format!("{:#x}", fri.div_ceil(20_000))})
}

impl Ledger {
    pub(super) fn finality(&self, height: u64) -> &'static str {
        if height <= self.on_l1 { "ACCEPTED_ON_L1" } else { "ACCEPTED_ON_L2" }
    }

    /// Returns a block, or with `None` the one that is being built.
    pub(super) fn block(&self, height: Option<u64>, now: u64, detail: Detail) -> Option<Value> {
        let mut block = Map::new();
        let mut set = |name: &str, value: Value| block.insert(name.to_owned(), value);
        let (number, time) = match height {
            Some(number) => {
                set("status", json!(self.finality(number)));
                set("block_hash", json!(hex(self.hash(number)?)));
                let parent = self.hash(number.saturating_sub(1)).unwrap_or_default();
                set("parent_hash", json!(hex(parent)));
                // No proof of state is made from it.
                set("new_root", json!("0x0"));
                (number, self.time(number)?)
            }
            None => (self.head.saturating_add(1), now.max(self.time(self.head)?)),
        };
        set("block_number", json!(number));
        set("timestamp", json!(time));
        set("sequencer_address", json!(hex(SEQUENCER)));
        for (place, name) in ["l1_gas_price", "l2_gas_price", "l1_data_gas_price"].into_iter().enumerate() {
            set(name, prices(place));
        }
        set("l1_da_mode", json!("BLOB"));
        set("starknet_version", json!("0.14.0"));
        let entries: &[Entry] = match height {
            // What waits has been received, and is in no block.
            None => &[],
            Some(number) => self.bodies.get(&number).map_or(&[], |body| body.entries.as_slice()),
        };
        let shown = entries.iter().map(|entry| match detail {
            Detail::Hashes => json!(hex(entry.hash)),
            Detail::Transactions => self.transaction(entry, true),
            Detail::Receipts => json!({"transaction": self.transaction(entry, false), "receipt": self.receipt(entry, number, false)}),
        });
        set("transactions", shown.collect());
        Some(Value::Object(block))
    }

    /// Returns a transaction. Beside its receipt it has no hash.
    pub(super) fn transaction(&self, entry: &Entry, has_hash: bool) -> Value {
        let mut shown = match &entry.input {
            Input::Invoke(transaction) => transaction.json(),
            Input::Mint([token, account], amount) => {
                let [low, high] = halves(*amount);
                json!({
                    "type": "L1_HANDLER", "version": "0x0", "nonce": "0x0", "contract_address": hex(*token),
                    "entry_point_selector": hex(selector("handle_deposit")), "calldata": hexes(&[Felt::ZERO, *account, low, high]),
                })
            }
        };
        if let Some(members) = shown.as_object_mut().filter(|_| has_hash) {
            members.insert("transaction_hash".to_owned(), json!(hex(entry.hash)));
        }
        shown
    }

    pub(super) fn receipt(&self, entry: &Entry, height: u64, has_block: bool) -> Value {
        let [l1_gas, l2_gas, l1_data_gas] = entry.gas;
        let mut receipt = json!({
            "type": if matches!(entry.input, Input::Invoke(_)) { "INVOKE" } else { "L1_HANDLER" },
            "transaction_hash": hex(entry.hash),
            "actual_fee": {"amount": format!("{:#x}", entry.fee), "unit": "FRI"},
            "finality_status": self.finality(height),
            "execution_status": if entry.reverted.is_some() { "REVERTED" } else { "SUCCEEDED" },
            "messages_sent": [],
            "events": entry.events.iter().map(event).collect::<Value>(),
            "execution_resources": {"l1_gas": l1_gas, "l1_data_gas": l1_data_gas, "l2_gas": l2_gas},
        });
        if let Some(members) = receipt.as_object_mut() {
            if let Some(reason) = &entry.reverted {
                members.insert("revert_reason".to_owned(), json!(reason));
            }
            if matches!(entry.input, Input::Mint(..)) {
                members.insert("message_hash".to_owned(), json!(format!("{:#066x}", entry.hash)));
            }
            if has_block {
                members.insert("block_number".to_owned(), json!(height));
                members.insert("block_hash".to_owned(), json!(self.hash(height).map(hex)));
            }
        }
        receipt
    }
}

fn event(event: &Event) -> Value {
    json!({"from_address": hex(event.from), "keys": hexes(&event.keys), "data": hexes(&event.data)})
}

/// Returns an estimate in the form of `FEE_ESTIMATE`.
pub(super) fn estimate(outcome: &Outcome) -> Value {
    let [l1, l2, data] = outcome.gas;
    let [l1_price, l2_price, data_price] = PRICES;
    json!({
        "l1_gas_consumed": format!("{l1:#x}"), "l1_gas_price": format!("{l1_price:#x}"),
        "l2_gas_consumed": format!("{l2:#x}"), "l2_gas_price": format!("{l2_price:#x}"),
        "l1_data_gas_consumed": format!("{data:#x}"), "l1_data_gas_price": format!("{data_price:#x}"),
        "overall_fee": format!("{:#x}", outcome.fee), "unit": "FRI",
    })
}

/// Returns a call and those that it made, as traces have them.
fn invocation(frame: &Frame) -> Value {
    let events = frame.events.iter().map(|event| json!({"order": event.order, "keys": hexes(&event.keys), "data": hexes(&event.data)}));
    json!({
        "contract_address": hex(frame.contract), "entry_point_selector": hex(frame.selector), "calldata": hexes(&frame.calldata),
        "caller_address": hex(frame.caller), "class_hash": hex(frame.class), "entry_point_type": "EXTERNAL", "call_type": "CALL",
        "result": hexes(&frame.result), "calls": frame.calls.iter().map(invocation).collect::<Value>(),
        "events": events.collect::<Value>(), "messages": [], "execution_resources": {"l1_gas": 0, "l2_gas": 400_000}, "is_reverted": false,
    })
}

/// Returns a simulation in the form of `starknet_simulateTransactions`.
pub(super) fn simulation(outcome: &Outcome) -> Value {
    let [l1_gas, l2_gas, l1_data_gas] = outcome.gas;
    let executed = match &outcome.reverted {
        Some(reason) => json!({"revert_reason": reason}),
        None => invocation(&outcome.frame),
    };
    json!({
        "transaction_trace": {
            "type": "INVOKE", "execute_invocation": executed,
            "execution_resources": {"l1_gas": l1_gas, "l1_data_gas": l1_data_gas, "l2_gas": l2_gas},
        },
        "fee_estimation": estimate(outcome),
    })
}

/// Returns the trace of a failure as `CONTRACT_EXECUTION_ERROR`: an object for each call, the reason in the innermost.
pub(super) fn failure(failure: &Failure) -> Value {
    failure.path.iter().fold(json!(failure.reason()), |inner, [contract, class, selector]| {
        json!({"contract_address": hex(*contract), "class_hash": hex(*class), "selector": hex(*selector), "error": inner})
    })
}

/// Returns a class. Only that of the HTLC has code; the others are models, of which there is the interface.
pub(super) fn class(hash: Felt) -> Option<Value> {
    let functions: &[Function] = match hash {
        hash if hash == HTLC_CLASS => return Some(HTLC.clone()),
        hash if hash == ACCOUNT_CLASS => {
            &[("is_valid_signature", &[("hash", FELT), ("signature", "core::array::Array::<core::felt252>")], FELT)]
        }
        hash if hash == TOKEN_CLASS => &[
            ("name", &[], FELT),
            ("symbol", &[], FELT),
            ("decimals", &[], "core::integer::u8"),
            ("total_supply", &[], NUMBER),
            ("balance_of", &[("account", ADDRESS)], NUMBER),
            ("balanceOf", &[("account", ADDRESS)], NUMBER),
            ("allowance", &[("owner", ADDRESS), ("spender", ADDRESS)], NUMBER),
            ("is_paused", &[], "core::bool"),
            ("is_frozen", &[("account", ADDRESS)], "core::bool"),
            ("approve", &[("spender", ADDRESS), ("amount", NUMBER)], "core::bool"),
            ("transfer", &[("recipient", ADDRESS), ("amount", NUMBER)], "core::bool"),
            ("transfer_from", &[("sender", ADDRESS), ("recipient", ADDRESS), ("amount", NUMBER)], "core::bool"),
        ],
        _ => return None,
    };
    let number = json!({"type": "struct", "name": NUMBER, "members": [
        {"name": "low", "type": "core::integer::u128"}, {"name": "high", "type": "core::integer::u128"},
    ]});
    let truth =
        json!({"type": "enum", "name": "core::bool", "variants": [{"name": "False", "type": "()"}, {"name": "True", "type": "()"}]});
    let items = functions.iter().map(|(name, inputs, output)| {
        let inputs: Value = inputs.iter().map(|(name, kind)| json!({"name": name, "type": kind})).collect();
        let is_view = !["approve", "transfer", "transfer_from"].contains(name);
        json!({
            "type": "function", "name": name, "inputs": inputs, "outputs": [{"type": output}],
            "state_mutability": if is_view { "view" } else { "external" },
        })
    });
    let interface = json!({"type": "interface", "name": "model::Interface", "items": items.collect::<Value>()});
    let implemented = json!({"type": "impl", "name": "Model", "interface_name": "model::Interface"});
    let entry = |(place, (name, ..)): (usize, &Function)| json!({"selector": hex(selector(name)), "function_idx": place});
    Some(json!({
        "sierra_program": [], "contract_class_version": "0.1.0",
        "entry_points_by_type": {
            "CONSTRUCTOR": [], "L1_HANDLER": [], "EXTERNAL": functions.iter().enumerate().map(entry).collect::<Value>(),
        },
        "abi": json!([implemented, number, truth, interface]).to_string(),
    }))
}

/// Reads a transaction; the error is for `Invalid params`.
pub(super) fn read_invoke(value: Option<&Value>) -> Result<Invoke, String> {
    Invoke::read(value.unwrap_or(&Value::Null)).map_err(|member| format!("invalid transaction: {member}"))
}
