//! Signed transactions as wallets and nodes return them, and the status of calls that a wallet bundled.

use alloy_consensus::transaction::{RlpEcdsaDecodableTx, RlpEcdsaEncodableTx};
use alloy_consensus::{SignableTransaction as _, Signed, TxEip1559, TxEip2930, TxEnvelope, TxLegacy};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, Bytes, Log, Signature, TxKind, U256, normalize_v};
use countersign_core::json::{self, Cursor, MAX_BYTES, Members};
use countersign_core::{Code, Refusal, TypedValue};

use crate::transaction::DELEGATES;

/// Maximum number of entries of an access list, and of storage keys of an entry.
const MAX_ACCESS: usize = 1_000;
/// Maximum number of receipts of bundled calls.
const MAX_RECEIPTS: usize = 64;
/// Maximum number of logs of a receipt.
const MAX_LOGS: usize = 64;
/// Maximum length in bytes of a log's data.
const MAX_LOG_DATA: usize = 16 * 1024;

/// Decodes a signed transaction from its bytes (EIP-2718), as `eth_getRawTransactionByHash` returns them in hex: of type 0, 1 or 2,
/// because orders need no other.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] if the bytes are not exactly one such transaction.
pub fn from_bytes(bytes: &[u8]) -> Result<TxEnvelope, Refusal> {
    // By type: the decoder of the envelope has the other types too, which are a large part of a WebAssembly module.
    let decoded = match bytes.first() {
        Some(0x01) => decode::<TxEip2930>(bytes).map(TxEnvelope::Eip2930),
        Some(0x02) => decode::<TxEip1559>(bytes).map(TxEnvelope::Eip1559),
        Some(0xc0..) => decode::<TxLegacy>(bytes).map(TxEnvelope::Legacy),
        _ => None,
    };
    decoded.ok_or_else(|| Refusal::new(Code::TransactionMismatch, "").with_reason("the bytes are not one signed transaction"))
}

fn decode<T: RlpEcdsaDecodableTx + RlpEcdsaEncodableTx>(bytes: &[u8]) -> Option<Signed<T>> {
    let mut rest = bytes;
    let signed = T::eip2718_decode(&mut rest).ok()?;
    let mut again = Vec::with_capacity(bytes.len());
    signed.eip2718_encode(&mut again);
    (rest.is_empty() && again == bytes).then_some(signed)
}

/// Parses a signed transaction in the JSON form of `eth_getTransactionByHash`: of type 0, 1 or 2, because orders need no other.
///
/// The fields that a node adds (`from`, block, index) are ignored; the sender follows from the signature. If `hash` is present, it must be
/// the hash of the transaction.
///
/// ```
/// # use countersign::Refusal;
/// # fn check(order: &countersign::evm::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
/// use countersign::evm::received;
///
/// let role = order.matches(&received::from_json(from_node)?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Code::TransactionMismatch`] for any other type, or if `hash` differs; the codes of malformed JSON; [`Code::MissingField`];
/// [`Code::WrongType`]; a `hex_` code; or [`Code::NumberTooLarge`].
pub fn from_json(text: &[u8]) -> Result<TxEnvelope, Refusal> {
    let value = json::parse(text)?;
    let root = Cursor::root(&value, "");
    let members = root.object()?;
    check_origin(&members)?;
    let envelope = read(&members)?;
    if let Some(hash) = members.get("hash")
        && hash.hex_array()? != envelope.tx_hash().0
    {
        return Err(hash.refuse(Code::TransactionMismatch).with_expected(TypedValue::Hash(envelope.tx_hash().0)));
    }
    Ok(envelope)
}

/// Reads a signed transaction in the JSON form of nodes. Only another type is a [`Code::TransactionMismatch`]. A stated `hash` is ignored.
pub(crate) fn read(members: &Members<'_, '_>) -> Result<TxEnvelope, Refusal> {
    let kind = members.get("type").map_or(Ok(0), |cursor| small(&cursor))?;
    if kind > 2 {
        let refusal = at(members, "type").refuse(Code::TransactionMismatch);
        let refusal = if kind == 4 { refusal.with_reason(DELEGATES) } else { refusal };
        return Err(refusal.with_expected("0x0, 0x1 or 0x2").with_actual(format!("{kind:#x}")));
    }
    let (signature, v) = signature(members)?;
    let number = |key| small(&members.need(key)?);
    let fee = |key| u128::try_from(members.need(key)?.hex_number()?).map_err(|_| at(members, key).refuse(Code::NumberTooLarge));
    let to = match members.get("to") {
        Some(to) => TxKind::Call(to.hex_array()?.into()),
        None => TxKind::Create,
    };
    let (nonce, gas_limit, value) = (number("nonce")?, number("gas")?, members.need("value")?.hex_number()?);
    let input = Bytes::from(members.need("input")?.hex_bytes(MAX_BYTES)?);
    Ok(match kind {
        0 => {
            // EIP-155: v is 35 or 36 more than twice the chain id. Without a chain id it is 27 or 28.
            let chain_id = v.checked_sub(35).map(|v| v >> 1);
            let transaction = TxLegacy { chain_id, nonce, gas_price: fee("gasPrice")?, gas_limit, to, value, input };
            transaction.into_signed(signature).into()
        }
        1 => {
            let (chain_id, gas_price, access_list) = (number("chainId")?, fee("gasPrice")?, access_list(members)?);
            TxEip2930 { chain_id, nonce, gas_price, gas_limit, to, value, input, access_list }.into_signed(signature).into()
        }
        _ => {
            let (max_fee_per_gas, max_priority_fee_per_gas) = (fee("maxFeePerGas")?, fee("maxPriorityFeePerGas")?);
            let (chain_id, access_list) = (number("chainId")?, access_list(members)?);
            let transaction =
                TxEip1559 { chain_id, nonce, gas_limit, max_fee_per_gas, max_priority_fee_per_gas, to, value, access_list, input };
            transaction.into_signed(signature).into()
        }
    })
}

/// Refuses by name what is not a node's object: the answer of a contract account's wallet, which has no signature, and the transaction of an
/// SDK, whose numbers are written in other ways.
fn check_origin(members: &Members<'_, '_>) -> Result<(), Refusal> {
    let has = |key| members.get(key).is_some_and(|value| !value.is_null());
    let of_sdk = |key: &'static str| {
        let reason = "this is the object of an SDK such as ethers or viem: pass what eth_getTransactionByHash returns";
        Err(at(members, key).refuse(Code::TransactionMismatch).with_reason(reason))
    };
    if has("signature") || has("gasLimit") {
        return of_sdk(if has("signature") { "signature" } else { "gasLimit" });
    }
    if has("from") && !["r", "s", "v", "yParity"].into_iter().any(has) {
        let reason = "the transaction has no signature, so it is not one of the chain: the account is a contract wallet such as a Safe. Send the \
                      order's calls with `send_calls`, or pass the receipt of the transaction that the wallet sent (`find_payment`); or read the \
                      source leg from the chain";
        return Err(at(members, "r").refuse(Code::TransactionMismatch).with_reason(reason));
    }
    // Nodes write every number as hex text.
    let is_hex = |value: Cursor<'_, '_>| value.text().is_ok_and(|text| text.starts_with("0x"));
    let other = ["type", "chainId", "nonce", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "value", "v", "yParity"];
    match other.into_iter().find(|key| members.get(key).is_some_and(|value| !value.is_null() && !is_hex(value))) {
        Some(key) => of_sdk(key),
        None => Ok(()),
    }
}

fn at<'p>(members: &Members<'p, '_>, key: &'p str) -> json::At<'p> {
    members.at().key(key)
}

fn small(cursor: &Cursor<'_, '_>) -> Result<u64, Refusal> {
    u64::try_from(cursor.hex_number()?).map_err(|_| cursor.refuse(Code::NumberTooLarge))
}

/// Reads the signature, and `v` as it is written. Nodes write the parity as `v` or as `yParity`, or as both.
fn signature(members: &Members<'_, '_>) -> Result<(Signature, u64), Refusal> {
    let cursor = match members.get("v") {
        Some(v) => v,
        None => members.need("yParity")?,
    };
    let v = small(&cursor)?;
    let parity = normalize_v(v).ok_or_else(|| cursor.refuse(Code::SignatureMalformed))?;
    let word = |key| members.need(key)?.hex_number();
    let (r, s): (U256, U256) = (word("r")?, word("s")?);
    Ok((Signature::new(r, s, parity), v))
}

fn access_list(members: &Members<'_, '_>) -> Result<AccessList, Refusal> {
    let Some(list) = members.get("accessList") else { return Ok(AccessList::default()) };
    let items = list.array()?;
    at_most(MAX_ACCESS, &list, items.len())?;
    let item = |item: Cursor<'_, '_>| {
        let members = item.object()?;
        let keys = members.need("storageKeys")?;
        let all = keys.array()?;
        at_most(MAX_ACCESS, &keys, all.len())?;
        let storage_keys = all.map(|key| key.hex_array().map(B256::from)).collect::<Result<_, Refusal>>()?;
        Ok(AccessListItem { address: members.need("address")?.hex_array()?.into(), storage_keys })
    };
    items.map(item).collect::<Result<_, Refusal>>().map(AccessList)
}

fn at_most(max: usize, cursor: &Cursor<'_, '_>, count: usize) -> Result<(), Refusal> {
    if count <= max {
        return Ok(());
    }
    Err(cursor.at().refuse(Code::WrongType).with_expected(format!("at most {max} entries")).with_actual(count))
}

/// What `wallet_getCallsStatus` (EIP-5792) returns, as far as it says what calls did. [`Deposit::find_payment`] reads it.
///
/// Specification: <https://eips.ethereum.org/EIPS/eip-5792>
///
/// [`Deposit::find_payment`]: crate::Deposit::find_payment
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallsStatus {
    /// EIP-155 chain id; `None` where the wallet does not name it, as before version 2.0.0 of the method.
    pub chain_id: Option<u64>,
    /// The status: 100 pending, 200 confirmed, 400 not on chain, 500 reverted, 600 partly reverted.
    pub status: u64,
    /// The receipts; empty while the calls are pending.
    pub receipts: Vec<CallReceipt>,
}

/// The receipt of a transaction with one or more of the calls. It may be the transaction of another account, such as a bundler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallReceipt {
    /// The hash of the transaction.
    pub transaction_hash: B256,
    /// Whether the transaction took effect: status `0x1`.
    pub is_success: bool,
    /// The logs of the calls.
    pub logs: Vec<Log>,
}

/// Parses what `wallet_getCallsStatus` returns: an object with `chainId`, `status` and, once there are any, `receipts`. Other members are
/// ignored. There may be at most 64 receipts, each with at most 64 logs, whose data may have at most 16 KiB.
///
/// The status is a number, in digits or as hex text, or a word of version 1.0 of the method or of viem: `PENDING` is 100, `CONFIRMED` and
/// `success` are 200, `failure`, `failed` and `reverted` are 500.
///
/// # Errors
///
/// The codes of malformed JSON; [`Code::MissingField`]; [`Code::WrongType`], also for too many entries, or for a log whose block was
/// replaced; a `hex_` code; or [`Code::NumberTooLarge`].
pub fn calls_status(text: &[u8]) -> Result<CallsStatus, Refusal> {
    let value = json::parse(text)?;
    let root = Cursor::root(&value, "");
    let members = root.object()?;
    let chain_id = members.get("chainId").filter(|id| !id.is_null()).map(|id| written(&id)).transpose()?;
    let status = members.need("status")?;
    let status = word(&status).map_or_else(|| written(&status), Ok)?;
    let receipts = match members.get("receipts") {
        Some(receipts) if !receipts.is_null() => {
            let all = receipts.array()?;
            at_most(MAX_RECEIPTS, &receipts, all.len())?;
            all.map(|receipt| call_receipt(&receipt)).collect::<Result<_, Refusal>>()?
        }
        _ => Vec::new(),
    };
    Ok(CallsStatus { chain_id, status, receipts })
}

/// Parses a receipt (`eth_getTransactionReceipt`), as the only one of calls that are on chain. The transaction may be that of another account,
/// such as a relay, a bundler or an owner of a Safe: [`Deposit::find_payment`](crate::Deposit::find_payment) looks at what it did.
///
/// # Errors
///
/// As [`calls_status`].
pub fn receipt(text: &[u8]) -> Result<CallsStatus, Refusal> {
    let value = json::parse(text)?;
    of_receipt(&Cursor::root(&value, ""))
}

/// Reads a receipt as the only one of calls that are on chain.
pub(crate) fn of_receipt(receipt: &Cursor<'_, '_>) -> Result<CallsStatus, Refusal> {
    let receipt = call_receipt(receipt)?;
    let status = if receipt.is_success { CONFIRMED } else { REVERTED };
    Ok(CallsStatus { chain_id: None, status, receipts: vec![receipt] })
}

/// The status of calls that are on chain, none of which reverted.
pub(crate) const CONFIRMED: u64 = 200;
/// The status of calls all of which reverted.
const REVERTED: u64 = 500;

/// Returns the number of a status that is a word, in any case.
fn word(status: &Cursor<'_, '_>) -> Option<u64> {
    const WORDS: [(&str, u64); 6] = [
        ("pending", 100),
        ("confirmed", CONFIRMED),
        ("success", CONFIRMED),
        ("failure", REVERTED),
        ("failed", REVERTED),
        ("reverted", REVERTED),
    ];
    let text = status.text().ok()?;
    WORDS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)).map(|(_, number)| *number)
}

/// Returns whether a status says that a transaction failed: by a word for it, as [`calls_status`] takes them or as explorers and wallets write
/// them, by zero in any form, or by `false`. What is none of them does not say so.
#[must_use]
pub fn is_failure(status: &Cursor<'_, '_>) -> bool {
    // `calls_status` does not know these words, so that it refuses what it cannot read.
    const OTHERS: [&str; 4] = ["dropped", "error", "fail", "rejected"];
    match word(status) {
        None if status.text().is_ok_and(|text| OTHERS.iter().any(|word| text.eq_ignore_ascii_case(word))) => true,
        Some(number) => number == REVERTED,
        None => written(status) == Ok(0) || status.bool() == Ok(false),
    }
}

/// Reads a number that is written as a JSON integer, as hex text or as decimal text.
fn written(cursor: &Cursor<'_, '_>) -> Result<u64, Refusal> {
    match cursor.text() {
        Ok(text) if text.starts_with("0x") => small(cursor),
        Ok(_) => u64::try_from(cursor.decimal()?).map_err(|_| cursor.refuse(Code::NumberTooLarge)),
        Err(_) => cursor.integer(),
    }
}

fn call_receipt(receipt: &Cursor<'_, '_>) -> Result<CallReceipt, Refusal> {
    let members = receipt.object()?;
    let transaction_hash = members.need("transactionHash")?.hex_array()?.into();
    let status = members.need("status")?;
    let is_success = match word(&status) {
        Some(number) => number == CONFIRMED,
        None => written(&status)? == 1,
    };
    let logs = members.need("logs")?;
    let all = logs.array()?;
    at_most(MAX_LOGS, &logs, all.len())?;
    let logs = all.map(|entry| log(&entry)).collect::<Result<_, Refusal>>()?;
    Ok(CallReceipt { transaction_hash, is_success, logs })
}

fn log(log: &Cursor<'_, '_>) -> Result<Log, Refusal> {
    let members = log.object()?;
    if let Some(removed) = members.get("removed")
        && removed.bool()?
    {
        return Err(removed.refuse(Code::WrongType).with_reason("the log's block was replaced"));
    }
    let address = Address::from(members.need("address")?.hex_array::<20>()?);
    let topics = members.need("topics")?;
    let words = topics.array()?.map(|topic| topic.hex_array().map(B256::from)).collect::<Result<Vec<_>, _>>()?;
    let (count, data) = (words.len(), members.need("data")?.hex_bytes(MAX_LOG_DATA)?);
    let refuse = || topics.at().refuse(Code::WrongType).with_expected("at most 4 topics").with_actual(count);
    Log::new(address, words, data.into()).ok_or_else(refuse)
}
