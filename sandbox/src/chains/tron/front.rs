//! The HTTP interface of a node. `/wallet` reads the newest block, `/walletsolidity` the newest irreversible one.
//!
//! As on real nodes, the parameters are the JSON body of a POST or the query of a GET, and failures are `Error` with
//! status 200. Methods that take private keys are left out.

use alloy_primitives::{Address, U256, keccak256};
use countersign_proofs_evm::{Changes, Outcome, Past, UnsignedCall};
use serde_json::{Map, Value, json};

use super::block::{self, Executed};
use super::wire::{Operation, Signed, show};
use super::{BANDWIDTH_PRICE, ENERGY_PRICE, Refusal, Tron, hash};
use crate::chains::evm::engine::Dialect;
use crate::chains::evm::ledger::Block;
use crate::http::{Reply, Request, put};

/// A failure, in the words of `java-tron`.
struct Failure(String);

impl Failure {
    fn new(kind: &str, why: &str) -> Self {
        Self(format!("class {kind} : {why}"))
    }

    fn argument(why: &str) -> Self {
        Self::new("java.lang.IllegalArgumentException", why)
    }
}

/// The parameters of a call.
struct Question(Map<String, Value>);

impl Question {
    fn read(request: &Request) -> Result<Self, Failure> {
        if request.method == "GET" {
            let pairs = request.query.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, _)| name);
            let value = |name: &str| {
                let text = request.parameter(name).unwrap_or_default();
                // In a query, numbers and truth values have no quotes.
                serde_json::from_str(&text)
                    .ok()
                    .filter(|value: &Value| !value.is_object() && !value.is_array())
                    .unwrap_or(Value::String(text))
            };
            return Ok(Self(pairs.take(16).map(|name| (name.to_owned(), value(name))).collect()));
        }
        if request.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(Map::new()));
        }
        match serde_json::from_slice(&request.body) {
            Ok(Value::Object(members)) => Ok(Self(members)),
            _ => Err(Failure::new("com.alibaba.fastjson.JSONException", "syntax error")),
        }
    }

    fn visible(&self) -> bool {
        self.0.get("visible").and_then(Value::as_bool).unwrap_or_default()
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, name: &str) -> u64 {
        let value = self.0.get(name);
        value.and_then(Value::as_u64).or_else(|| value?.as_str()?.parse().ok()).unwrap_or_default()
    }

    /// Returns an address given in hex with its prefix, or in base58 if the call is `visible`.
    fn address(&self, name: &str) -> Result<Address, Failure> {
        let text = self.text(name);
        let parsed = if self.visible() {
            Dialect::Tron.read(text).ok()
        } else {
            let bytes = hex::decode(text.strip_prefix("0x").unwrap_or(text)).ok();
            bytes.and_then(|bytes| Address::try_from(bytes.strip_prefix(&[0x41])?).ok())
        };
        parsed.ok_or_else(|| Failure::new("org.tron.core.exception.ContractValidateException", "Invalid address"))
    }

    fn hex(&self, name: &str) -> Result<Vec<u8>, Failure> {
        let text = self.text(name);
        hex::decode(text.strip_prefix("0x").unwrap_or(text)).map_err(|_| Failure::argument("exception decoding Hex string"))
    }

    /// Returns the calldata: either `data`, or a function's signature with its parameters.
    fn calldata(&self) -> Result<Vec<u8>, Failure> {
        let selector = self.text("function_selector");
        if selector.is_empty() {
            return self.hex("data");
        }
        let arguments = self.hex("parameter")?;
        let selector = keccak256(selector.as_bytes());
        Ok(selector.iter().take(4).copied().chain(arguments).collect())
    }
}

/// Answers one call.
pub(super) fn answer(tron: &mut Tron, request: &Request) -> Reply {
    if !matches!(request.method.as_str(), "GET" | "POST") {
        return Reply::text(405, "HTTP method not allowed");
    }
    let (is_solid, method) = match (request.path.strip_prefix("/walletsolidity/"), request.path.strip_prefix("/wallet/")) {
        (Some(method), _) => (true, method),
        (None, Some(method)) => (false, method),
        (None, None) => return Reply::text(404, "Not Found"),
    };
    let outcome = Question::read(request).and_then(|question| match method {
        "broadcasthex" | "broadcasttransaction" if !is_solid => broadcast(tron, method, &question).map(Some),
        _ => tron.read(method, &question, is_solid),
    });
    match outcome {
        Ok(Some(value)) => Reply::json(200, &value),
        Ok(None) => Reply::text(404, "Not Found"),
        Err(Failure(why)) => Reply::json(200, &json!({"Error": why})),
    }
}

fn broadcast(tron: &mut Tron, method: &str, question: &Question) -> Result<Value, Failure> {
    let signed = if method == "broadcasthex" {
        Signed::read(&question.hex("transaction")?)
    } else {
        let signatures = question.0.get("signature").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let signature =
            |value: &Value| hex::decode(value.as_str().unwrap_or_default()).map_err(|_| Failure::argument("signature is not hex"));
        Signed::new(question.hex("raw_data_hex")?, signatures.iter().take(8).map(signature).collect::<Result<_, _>>()?)
    };
    let signed = match signed {
        Ok(signed) => signed,
        Err(why) => {
            let why = format!("Contract validate error : {why}");
            return Ok(json!({"code": "CONTRACT_VALIDATE_ERROR", "message": hex::encode(why)}));
        }
    };
    let (id, shown) = (hex::encode(signed.id), signed.json(false).to_string());
    Ok(match tron.take(signed) {
        Ok(()) if method == "broadcasthex" => json!({"result": true, "code": "SUCCESS", "message": "", "txid": id, "transaction": shown}),
        Ok(()) => json!({"result": true, "txid": id}),
        Err(Refusal(code, why)) => json!({"code": code, "txid": id, "message": hex::encode(why)}),
    })
}

impl Tron {
    /// Answers a method that reads. Returns `None` if there is no such method.
    fn read(&self, method: &str, question: &Question, is_solid: bool) -> Result<Option<Value>, Failure> {
        let newest = if is_solid { self.solid() } else { self.ledger.head() };
        let visible = question.visible();
        let block = |number: u64| {
            let block = self.ledger.block(number).filter(|block| block.number <= newest);
            block.map_or_else(|| json!({}), |block| block::json(&block, true, visible))
        };
        Ok(Some(match method {
            "getnowblock" => block(newest),
            "getblockbynum" => block(question.number("num")),
            "getblock" => {
                let name = question.text("id_or_num");
                let number = match name {
                    "" => question.0.get("id_or_num").and_then(Value::as_u64).or(Some(newest)),
                    _ => name.parse().ok().or_else(|| self.ledger.number_of(hash(name)?)),
                };
                let detail = question.0.get("detail").and_then(Value::as_bool).unwrap_or_default();
                let block = number.and_then(|number| self.ledger.block(number)).filter(|block| block.number <= newest);
                block.map_or_else(|| json!({}), |block| block::json(&block, detail, visible))
            }
            "gettransactionbyid" | "gettransactioninfobyid" => {
                let id = hash(question.text("value"));
                let place = id.and_then(|id| self.ledger.place(id)).filter(|(block, _)| block.number <= newest);
                let found = place.and_then(|(block, index)| Some((block, block.transactions.get(index)?)));
                match found {
                    Some((block, mined)) if method == "gettransactioninfobyid" => block::info(block, mined),
                    Some((_, mined)) => block::transaction(&mined.transaction, visible),
                    None => json!({}),
                }
            }
            "gettransactioninfobyblocknum" => {
                let block = self.ledger.block(question.number("num")).filter(|block| block.number <= newest);
                let infos = |block: &Block<Executed>| block.transactions.iter().map(|mined| block::info(block, mined)).collect::<Vec<_>>();
                json!(block.map(|block| infos(&block)).unwrap_or_default())
            }
            "getaccount" => {
                let owner = question.address("address")?;
                let info = self.at(newest, |state| state.account(owner))?.filter(|info| !info.is_empty());
                info.map_or_else(|| json!({}), |info| self.account(owner, info.balance, visible))
            }
            "getaccountresource" => {
                question.address("address")?;
                // Nobody has staked coins, and the free bandwidth is used up.
                json!({"freeNetUsed": 600, "freeNetLimit": 600, "TotalNetLimit": 43_200_000_000_u64, "TotalEnergyLimit": 180_000_000_000_u64})
            }
            "getchainparameters" => json!({"chainParameter": [
                {"key": "getMaintenanceTimeInterval", "value": 21_600_000},
                {"key": "getTransactionFee", "value": BANDWIDTH_PRICE},
                {"key": "getEnergyFee", "value": ENERGY_PRICE},
                {"key": "getMaxFeeLimit", "value": 15_000_000_000_u64},
                {"key": "getCreateAccountFee"},
            ]}),
            "getcontractinfo" => self.contract(question, newest)?,
            "triggerconstantcontract" => self.constant(question, newest)?,
            "triggersmartcontract" | "createtransaction" if !is_solid => self.build(method, question)?,
            _ => return Ok(None),
        }))
    }

    fn at<R>(&self, number: u64, look: impl FnOnce(Past<'_>) -> R) -> Result<R, Failure> {
        // The state before the deployment is unknown. The state right after it is used instead.
        let changes =
            self.ledger.since(number.max(self.contracts.network.start)).ok_or_else(|| Failure::argument("the state is no longer known"))?;
        Ok(look(self.ledger.world.before(&changes)))
    }

    fn account(&self, owner: Address, balance: U256, visible: bool) -> Value {
        let created = self.ledger.block(self.contracts.network.start).map_or(0, |block| block.millis);
        json!({"address": show(owner, visible), "balance": balance.saturating_to::<u64>(), "create_time": created})
    }

    fn contract(&self, question: &Question, newest: u64) -> Result<Value, Failure> {
        let address = question.address("value")?;
        let code = self.at(newest, |state| state.code(address))?;
        if code.is_empty() {
            return Ok(json!({}));
        }
        let visible = question.visible();
        let contract = json!({
            "contract_address": show(address, visible),
            "origin_address": show(self.contracts.solver.address(), visible),
            "bytecode": hex::encode(&code),
            "consume_user_resource_percent": 100,
            "name": "",
            "abi": {},
        });
        Ok(json!({"smart_contract": contract, "runtimecode": hex::encode(&code)}))
    }

    /// Runs a call on top of a block.
    fn constant(&self, question: &Question, newest: u64) -> Result<Value, Failure> {
        let (from, to) = (question.address("owner_address")?, question.address("contract_address")?);
        let data = question.calldata()?;
        let value = U256::from(question.number("call_value"));
        let refused = |why: &str| {
            let message = hex::encode(format!("Contract validate error : {why}"));
            Ok(json!({"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": message}}))
        };
        let millis = self.ledger.block(newest).map_or(0, |block| block.millis);
        let call = UnsignedCall { from, to: Some(to), data: data.clone().into(), value, gas: None };
        let run = |state: Past<'_>| {
            let is_contract = !state.code(to).is_empty();
            is_contract.then(|| state.simulate(newest, millis / 1_000).run(&call, false))
        };
        let receipt = match self.at(newest, run)? {
            None => return refused("Smart contract is not exist."),
            Some(Err(_)) => return refused("Validate InternalTransfer error, balance is not sufficient."),
            Some(Ok(receipt)) => receipt,
        };
        let raw = self.draft(from, to, question.number("call_value"), Operation::Trigger(data), 0);
        let mut transaction = Signed::new(raw.bytes(), Vec::new()).map(|signed| signed.json(question.visible())).unwrap_or_default();
        put(&mut transaction, "ret", json!([{}]));
        let (result, output) = match &receipt.outcome {
            Outcome::Success { output } => (json!({"result": true}), output.clone()),
            Outcome::Reverted { output } => {
                put(&mut transaction, "ret", json!([{"ret": "FAILED"}]));
                (json!({"result": true, "message": hex::encode("REVERT opcode executed")}), output.clone())
            }
            Outcome::Halted { reason } => {
                let why = format!("Not enough energy or an invalid instruction: {reason:?}");
                return Ok(json!({"result": {"code": "CONTRACT_EXE_ERROR", "message": hex::encode(why)}}));
            }
        };
        let mut answer = json!({
            "result": result,
            "energy_used": receipt.gas_used,
            "constant_result": [hex::encode(output)],
            "transaction": transaction,
        });
        if !receipt.logs.is_empty() {
            put(&mut answer, "logs", receipt.logs.iter().map(block::log).collect());
        }
        Ok(answer)
    }

    /// Builds a transaction for clients that do not build their own.
    fn build(&self, method: &str, question: &Question) -> Result<Value, Failure> {
        let owner = question.address("owner_address")?;
        let is_call = method == "triggersmartcontract";
        let (to, value, operation) = if is_call {
            (question.address("contract_address")?, question.number("call_value"), Operation::Trigger(question.calldata()?))
        } else {
            (question.address("to_address")?, question.number("amount"), Operation::Transfer)
        };
        let nothing = Changes::default();
        if is_call && self.ledger.world.before(&nothing).code(to).is_empty() {
            let message = hex::encode("Contract validate error : No contract or not a valid smart contract");
            return Ok(json!({"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": message}}));
        }
        let raw = self.draft(owner, to, value, operation, question.number("fee_limit"));
        let mut built = Signed::new(raw.bytes(), Vec::new()).map_err(|why| Failure::argument(&why))?.json(question.visible());
        if let Some(members) = built.as_object_mut() {
            members.remove("signature");
        }
        Ok(if is_call { json!({"result": {"result": true}, "transaction": built}) } else { built })
    }
}
