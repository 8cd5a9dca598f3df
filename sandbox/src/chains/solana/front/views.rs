//! Accounts, transactions and errors in the nodes' JSON format.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use litesvm::types::TransactionMetadata;
use serde_json::{Map, Value, json};
use solana_account::{AccountSharedData, ReadableAccount};
use solana_address::Address;
use solana_instruction::error::InstructionError;
use solana_message::VersionedMessage;
use solana_message::compiled_instruction::CompiledInstruction;
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;

use super::params::Config;
use crate::chains::rpc::Fault;
use crate::chains::solana::bank::{Bank, Record, ui_amount};
use crate::chains::solana::htlc::{TOKEN, token_account};
use crate::http::put;

/// The maximum length of data in base58, which is slow to encode.
const MAX_BASE58: usize = 128;

/// Returns a value together with the slot at which it was read.
pub(super) fn context(slot: u64, value: Value) -> Value {
    json!({"context": {"apiVersion": "3.0.12", "slot": slot}, "value": value})
}

/// The encoding of accounts.
#[derive(Debug)]
pub(super) struct AccountView<'a> {
    encoding: &'a str,
    slice: Option<(usize, usize)>,
}

impl<'a> AccountView<'a> {
    pub(super) fn read(config: Config<'a>, default: &'static str) -> Result<Self, Fault> {
        let encoding = encoding(config, default, &["binary", "base58", "base64", "base64+zstd", "jsonParsed"])?;
        let slice = match config.object("dataSlice")? {
            None => None,
            Some(slice) => {
                let part = |name| Ok::<_, Fault>(usize::try_from(slice.number(name)?.unwrap_or_default()).unwrap_or(usize::MAX));
                Some((part("offset")?, part("length")?))
            }
        };
        Ok(Self { encoding, slice })
    }

    pub(super) fn show(&self, bank: &Bank, account: &AccountSharedData) -> Result<Value, Fault> {
        let space = account.data().len();
        let data = match self.slice {
            Some((offset, length)) => account.data().get(offset..).map_or(&[][..], |rest| rest.get(..length).unwrap_or(rest)),
            None => account.data(),
        };
        let data = match self.encoding {
            "binary" | "base58" if data.len() > MAX_BASE58 => {
                let message = "Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.";
                return Err(Fault::request(message));
            }
            "binary" => json!(bs58::encode(data).into_string()),
            "base58" => json!([bs58::encode(data).into_string(), "base58"]),
            "base64+zstd" => json!([STANDARD.encode(zstd(data)), "base64+zstd"]),
            "jsonParsed" => parsed(bank, account).unwrap_or_else(|| json!([STANDARD.encode(data), "base64"])),
            _ => json!([STANDARD.encode(data), "base64"]),
        };
        Ok(json!({
            "data": data, "executable": account.executable(), "lamports": account.lamports(), "owner": account.owner().to_string(),
            "rentEpoch": u64::MAX, "space": space,
        }))
    }
}

/// Returns the encoding that a call asks for.
pub(super) fn encoding<'a>(config: Config<'a>, default: &'static str, known: &[&str]) -> Result<&'a str, Fault> {
    let encoding = config.text("encoding")?.unwrap_or(default);
    let unknown = || {
        let text: String = encoding.chars().take(64).collect();
        Fault::params(format!("Invalid params: unknown variant `{text}`, expected one of `{}`.", known.join("`, `")))
    };
    known.contains(&encoding).then_some(encoding).ok_or_else(unknown)
}

/// Returns a Zstandard frame with uncompressed blocks (RFC 8878).
fn zstd(data: &[u8]) -> Vec<u8> {
    // The frame starts with the magic number, a descriptor (single segment, four bytes of length), and the length.
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0], length.to_le_bytes().as_slice()].concat();
    let blocks: Vec<_> = if data.is_empty() { vec![data] } else { data.chunks(65_536).collect() };
    for (index, block) in blocks.iter().enumerate() {
        let is_last = u32::from(index.saturating_add(1) == blocks.len());
        let header = u32::try_from(block.len()).unwrap_or_default().saturating_mul(8).saturating_add(is_last);
        frame.extend(header.to_le_bytes().into_iter().take(3));
        frame.extend_from_slice(block);
    }
    frame
}

/// Returns the parsed form of a token account.
fn parsed(bank: &Bank, account: &AccountSharedData) -> Option<Value> {
    let tokens = Some(account).filter(|account| *account.owner() == TOKEN).and_then(|account| token_account(account.data()))?;
    let amount = ui_amount(tokens.amount, bank.decimals(&tokens.mint)?);
    let state = if tokens.is_frozen { "frozen" } else { "initialized" };
    let info = json!({
        "isNative": false, "mint": tokens.mint.to_string(), "owner": tokens.owner.to_string(), "state": state, "tokenAmount": amount,
    });
    Some(json!({"program": "spl-token", "parsed": {"info": info, "type": "account"}, "space": account.data().len()}))
}

/// Returns an error in the nodes' format: the name of the variant, with its contents if it has any.
pub(super) fn error(error: Option<&TransactionError>) -> Value {
    match error {
        None => Value::Null,
        Some(TransactionError::InstructionError(index, InstructionError::Custom(code))) => {
            json!({"InstructionError": [index, {"Custom": code}]})
        }
        Some(TransactionError::InstructionError(index, error)) => json!({"InstructionError": [index, format!("{error:?}")]}),
        Some(TransactionError::DuplicateInstruction(index)) => json!({"DuplicateInstruction": index}),
        Some(TransactionError::InsufficientFundsForRent { account_index }) => {
            json!({"InsufficientFundsForRent": {"account_index": account_index}})
        }
        Some(TransactionError::ProgramExecutionTemporarilyRestricted { account_index }) => {
            json!({"ProgramExecutionTemporarilyRestricted": {"account_index": account_index}})
        }
        Some(other) => json!(format!("{other:?}")),
    }
}

/// Returns the outcome of a transaction in the older format.
pub(super) fn status(failed: Option<&TransactionError>) -> Value {
    failed.map_or_else(|| json!({"Ok": null}), |failed| json!({"Err": error(Some(failed))}))
}

/// Returns the version of a transaction: `legacy`, or a number.
pub(super) fn version(transaction: &VersionedTransaction) -> Value {
    match transaction.message {
        VersionedMessage::Legacy(_) => json!("legacy"),
        VersionedMessage::V0(_) => json!(0),
        VersionedMessage::V1(_) => json!(1),
    }
}

/// Returns a transaction in an encoding.
pub(super) fn transaction(transaction: &VersionedTransaction, encoding: &str) -> Value {
    let bytes = || wincode::serialize(transaction).unwrap_or_default();
    match encoding {
        "base58" => return json!([bs58::encode(bytes()).into_string(), "base58"]),
        "base64" => return json!([STANDARD.encode(bytes()), "base64"]),
        _ => {}
    }
    let (message, is_parsed) = (&transaction.message, encoding == "jsonParsed");
    let header = message.header();
    let one = |(index, key): (usize, &Address)| {
        if is_parsed {
            let writable = message.is_maybe_writable_with_reserved_addresses(index, None::<&HashSet<Address>>);
            json!({"pubkey": key.to_string(), "signer": message.is_signer(index), "source": "transaction", "writable": writable})
        } else {
            json!(key.to_string())
        }
    };
    let keys: Vec<_> = message.static_account_keys().iter().enumerate().map(one).collect();
    let instructions = message.instructions().iter().map(|called| instruction(called, message, is_parsed, 1));
    let mut shown = Map::from_iter([
        ("accountKeys".to_owned(), json!(keys)),
        ("instructions".to_owned(), instructions.collect()),
        ("recentBlockhash".to_owned(), json!(message.recent_blockhash().to_string())),
    ]);
    if !is_parsed {
        let header = json!({
            "numReadonlySignedAccounts": header.num_readonly_signed_accounts,
            "numReadonlyUnsignedAccounts": header.num_readonly_unsigned_accounts,
            "numRequiredSignatures": header.num_required_signatures,
        });
        shown.insert("header".to_owned(), header);
    }
    if message.address_table_lookups().is_some() {
        shown.insert("addressTableLookups".to_owned(), json!([]));
    }
    if let VersionedMessage::V1(message) = message {
        let config = &message.config;
        let config = json!({
            "computeUnitLimit": config.compute_unit_limit, "heapSize": config.heap_size,
            "loadedAccountsDataSizeLimit": config.loaded_accounts_data_size_limit, "priorityFee": config.priority_fee,
        });
        shown.insert("transactionConfig".to_owned(), config);
    }
    let signatures: Vec<_> = transaction.signatures.iter().map(ToString::to_string).collect();
    json!({"message": shown, "signatures": signatures})
}

fn instruction(called: &CompiledInstruction, message: &VersionedMessage, is_parsed: bool, height: u8) -> Value {
    let data = bs58::encode(&called.data).into_string();
    if !is_parsed {
        let (program, accounts) = (called.program_id_index, &called.accounts);
        return json!({"accounts": accounts, "data": data, "programIdIndex": program, "stackHeight": height});
    }
    let key = |index: &u8| message.static_account_keys().get(usize::from(*index)).map(ToString::to_string);
    let accounts: Vec<_> = called.accounts.iter().map(key).collect();
    json!({"accounts": accounts, "data": data, "programId": key(&called.program_id_index), "stackHeight": height})
}

/// Returns the inner instructions of a transaction.
pub(super) fn inner(meta: &TransactionMetadata, message: &VersionedMessage, is_parsed: bool) -> Value {
    let called = meta.inner_instructions.iter().enumerate().filter(|(_, called)| !called.is_empty());
    let shown = called.map(|(index, called)| {
        let called = called.iter().map(|inner| instruction(&inner.instruction, message, is_parsed, inner.stack_height));
        json!({"index": index, "instructions": called.collect::<Vec<_>>()})
    });
    shown.collect()
}

/// Returns the return data of a program.
pub(super) fn returned(meta: &TransactionMetadata) -> Value {
    let data = &meta.return_data;
    if data.data.is_empty() {
        return Value::Null;
    }
    json!({"programId": data.program_id.to_string(), "data": [STANDARD.encode(&data.data), "base64"]})
}

/// Returns the metadata of a transaction in a block.
pub(super) fn meta(record: &Record, encoding: &str) -> Value {
    let (failed, ran) = (record.error.as_ref(), &record.meta);
    let inner = inner(ran, &record.transaction.message, encoding == "jsonParsed");
    let [before, after] = &record.lamports;
    let [tokens_before, tokens_after] = &record.tokens;
    let mut meta = json!({
        "computeUnitsConsumed": ran.compute_units_consumed, "err": error(failed), "fee": ran.fee, "innerInstructions": inner,
        "loadedAddresses": {"readonly": [], "writable": []}, "logMessages": ran.logs, "postBalances": after,
        "postTokenBalances": tokens_after, "preBalances": before, "preTokenBalances": tokens_before, "rewards": [],
        "status": status(failed),
    });
    if let returned @ Value::Object(_) = returned(ran) {
        put(&mut meta, "returnData", returned);
    }
    meta
}
