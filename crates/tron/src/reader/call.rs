//! Read-only calls of contracts, and the logs of transactions.

use alloy_primitives::{Address as AbiAddress, B256, hex};
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Reply, Request};
use countersign_core::{Code, Refusal};
use countersign_evm_core::read::{self, Transfer, Unclear};
use countersign_evm_core::revert::revert_reason;
use serde_json::json;

use super::{View, bytes, count, failed, hash, post, value, words, written};
use crate::Address;

/// The maximum length in bytes of what a call returns. Every call that is made here returns a few words.
const MAX_ANSWER: usize = 4 * 1024;
/// The maximum number of logs that are read of one block or call.
const MAX_LOGS: usize = 256;
/// The maximum number of topics of a log.
const MAX_TOPICS: usize = 4;
/// The maximum length in bytes of a log's data.
const MAX_LOG_DATA: usize = 256 * 1024;

/// What nodes say when they, and not the contract, end a call: they do not run calls at all, or had no time left. Their codes and marks are
/// those of a contract that reverts. A contract's own words are in what it returns, and never here.
const OF_THE_NODE: [&str; 3] = ["does not support constant", "CPU timeout", "Already Time Out"];

/// A call of a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) sender: Address,
    pub(super) to: Address,
    /// The TRX that the call sends, in sun.
    pub(super) value: i64,
    pub(super) data: Vec<u8>,
}

impl Call {
    /// Creates a read-only call. Its sender does not matter.
    pub(super) fn view(to: Address, data: Vec<u8>) -> Self {
        Self { sender: Address::from([0; 20]), to, value: 0, data }
    }

    /// Returns the request that runs the call on top of the newest block, or of the newest irreversible one. It sends no transaction.
    pub(super) fn request(&self, view: View) -> Request {
        let query = json!({
            "owner_address": written(self.sender),
            "contract_address": written(self.to),
            "data": hex::encode(&self.data),
            "call_value": self.value,
            "visible": false,
        });
        post(view, "triggerconstantcontract", &query)
    }
}

/// How a call ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Returned {
        data: Vec<u8>,
        /// The energy used, including the penalty for a busy contract.
        energy: u64,
        /// The token transfers in the call's logs. Older nodes do not return logs.
        transfers: Vec<(AbiAddress, Transfer)>,
    },
    /// The contract reverted, or there is no contract at the address.
    Reverted(String),
}

impl Outcome {
    /// Reads how a call ended. A node that could not run the call is at fault.
    pub(super) fn read(reply: &Reply<'_>) -> Result<Self, Fault> {
        let cursor = value(reply)?;
        let members = cursor.object()?;
        let result = members.need("result")?;
        let result = result.object()?;
        let message = result.get("message").map(|message| words(&message)).unwrap_or_default();
        if OF_THE_NODE.iter().any(|words| message.contains(words)) {
            return Err(failed(&message));
        }
        match result.get("code").map(|code| code.text()).transpose()? {
            None | Some("SUCCESS") => {}
            Some(code @ ("CONTRACT_VALIDATE_ERROR" | "CONTRACT_EXE_ERROR")) => return Ok(Self::Reverted(format!("{code}: {message}"))),
            Some(code) => return Err(failed(&format!("{code}: {message}"))),
        }
        let data = match members.get("constant_result") {
            Some(results) => results.array()?.next().map(|data| bytes(&data, MAX_ANSWER)).transpose()?.unwrap_or_default(),
            None => Vec::new(),
        };
        if !message.is_empty() || has_failed(members.get("transaction"))? {
            return Ok(Self::Reverted(revert_reason(&data).unwrap_or(message)));
        }
        let logs = members.get("logs").map(|logs| read_logs_of(|_| true, &logs)).transpose()?.unwrap_or_default();
        let transfers = logs.iter().filter_map(|log| Some((log.address, read::transfer(&log.topics, &log.data)?))).collect();
        Ok(Self::Returned { data, energy: count(members.get("energy_used"))?, transfers })
    }

    /// Returns the data that the contract returned; `None` if the call did not succeed.
    pub(super) fn returned(self) -> Option<Vec<u8>> {
        match self {
            Self::Returned { data, .. } => Some(data),
            Self::Reverted(_) => None,
        }
    }
}

/// Reads what a call returned as one number or address. A contract that returns anything else cannot be used.
pub(super) fn returned<R>(reply: &Reply<'_>, read: impl FnOnce(&[u8]) -> Result<R, Unclear>) -> Result<R, Fault> {
    match Outcome::read(reply)? {
        Outcome::Returned { data, .. } => {
            read(&data).map_err(|unclear| Refusal::new(Code::WrongType, "/constant_result").with_reason(unclear.to_string()).into())
        }
        Outcome::Reverted(why) => Err(failed(&why)),
    }
}

/// Returns whether the transaction in an answer is marked as failed.
fn has_failed(transaction: Option<Cursor<'_, '_>>) -> Result<bool, Refusal> {
    let Some(transaction) = transaction else { return Ok(false) };
    let Some(results) = transaction.object()?.get("ret") else { return Ok(false) };
    let Some(result) = results.array()?.next() else { return Ok(false) };
    Ok(match result.object()?.get("ret") {
        Some(ret) => ret.text()? == "FAILED",
        None => false,
    })
}

/// A log of a contract.
pub(super) struct Log {
    pub(super) address: AbiAddress,
    pub(super) topics: Vec<B256>,
    pub(super) data: Vec<u8>,
}

/// Reads the logs of the contracts that `contract` accepts. Other logs are skipped without parsing, because anybody can put anything into
/// a block.
pub(super) fn read_logs_of(contract: impl Fn(AbiAddress) -> bool, logs: &Cursor<'_, '_>) -> Result<Vec<Log>, Refusal> {
    let mut own = Vec::new();
    for log in logs.array()? {
        let members = log.object()?;
        let address = read_contract(&members.need("address")?)?;
        if !contract(address) {
            continue;
        }
        if own.len() >= MAX_LOGS {
            return Err(logs.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_LOGS} logs of the contract")));
        }
        let topics = match members.get("topics") {
            Some(topics) => {
                let list = topics.array()?;
                if list.len() > MAX_TOPICS {
                    return Err(topics.at().refuse(Code::WrongType).with_expected(format!("at most {MAX_TOPICS} topics")));
                }
                list.map(|topic| hash(&topic).map(B256::from)).collect::<Result<_, _>>()?
            }
            None => Vec::new(),
        };
        let data = members.get("data").map(|data| bytes(&data, MAX_LOG_DATA)).transpose()?.unwrap_or_default();
        own.push(Log { address, topics, data });
    }
    Ok(own)
}

/// Reads the address of a contract in a log: its 20 bytes, or 21 bytes with the prefix `41`.
fn read_contract(cursor: &Cursor<'_, '_>) -> Result<AbiAddress, Refusal> {
    let all = bytes(cursor, 21)?;
    let address = match all.as_slice() {
        [0x41, rest @ ..] if all.len() == 21 => AbiAddress::try_from(rest),
        all => AbiAddress::try_from(all),
    };
    address.map_err(|_| cursor.refuse(Code::AddressMalformed))
}
