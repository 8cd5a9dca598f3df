//! Tron: `{"ref_block_bytes", "ref_block_hash", "expiration", "timestamp"}`, hex without `0x` and Unix milliseconds; optionally
//! `chain_id`, `reset_approval`, `permission_id` and `permission` (`docs/spec/batch.md#tron-wallet`).

mod inputs;

use countersign::SigningRequest;
use countersign::tron::recover::Recovery;
use countersign::tron::{
    Address, ExternalSignature, FundingPath, Payload, Permission, SignedTronTransaction, Tron, TronTransaction, TxContext, Unsigned,
    UnsignedOrder, address, received,
};
use countersign_core::json::{Cursor, Members, Value};
use countersign_core::{Code, Policy, Refusal, UnixMillis, VerifiedOrder, number};
use serde::ser::{Serialize, SerializeMap, Serializer};

use self::inputs::{TronKey, TronPermission, TronRecovery, TronWallet};
use super::calls::{self, Call, read_approvals, read_chain_id, serialize_steps};
use super::inputs::Input;
use super::{ArtefactMembers, JsonFamily, hex, read_u64};
use crate::objects::NativePayload;
use crate::recover;

/// The code of a broadcast of what the node has already.
const TAKEN_BEFORE: &str = "DUP_TRANSACTION_ERROR";

/// The codes with which nodes answer a broadcast that they did not take (`response_code` of the protocol). Any other word says nothing.
const NOT_TAKEN: [&str; 12] = [
    "SIGERROR",
    "CONTRACT_VALIDATE_ERROR",
    "CONTRACT_EXE_ERROR",
    "BANDWITH_ERROR",
    "TAPOS_ERROR",
    "TOO_BIG_TRANSACTION_ERROR",
    "TRANSACTION_EXPIRATION_ERROR",
    "SERVER_BUSY",
    "NO_CONNECTION",
    "NOT_ENOUGH_EFFECTIVE_CONNECTION",
    "BLOCK_UNSOLIDIFIED",
    "OTHER_ERROR",
];

impl JsonFamily for Tron {
    type Recovery = Recovery;

    const CONTEXTS: &'static [&'static [Input]] = &[inputs::CONTEXTS];
    const SIGNATURES: &'static [&'static [Input]] = &[calls::SIGNATURES];
    const ARTEFACT_MEMBERS: ArtefactMembers = ArtefactMembers::new(&["raw_data"], &["tx_id", "digest"], &["tx_id"]);
    const KEY_FORM: &'static str = calls::KEY_FORM;
    // TronWeb returns the transaction that it sent beside the result.
    const WRAPPERS: &'static [&'static str] = &["transaction"];
    const RECOVERY_EXAMPLE: (&'static str, &'static str) =
        ("Tron", r#"{"ref_block_bytes": "7f87", "ref_block_hash": "...", "expiration": ..., "timestamp": ..., "sender": "T..."}"#);

    fn read_wallet(wallet: Cursor<'_, '_>) -> Result<FundingPath<TxContext>, Refusal> {
        let members = wallet.object()?;
        members.check_spelling(TronWallet::MEMBERS)?;
        let mut calls = read_calls(&members)?;
        calls.approvals = read_approvals(&members)?;
        Ok(FundingPath::Both(calls))
    }

    fn prepare_recovery(recovery: &Recovery, wallet: Cursor<'_, '_>, policy: &Policy) -> Result<UnsignedOrder, Refusal> {
        let members = recover::members(&wallet, TronWallet::MEMBERS, TronRecovery::MEMBERS)?;
        let mut calls = read_calls(&members)?;
        calls.fee_limit = members.get("fee_limit").map(|cursor| read_u64(cursor)).transpose()?;
        let sender = members.get("sender").map_or(Ok(recovery.to()), address::read)?;
        let calls = calls.sent_by(sender).with_low_fee(recover::accepts(&members, "accept_low_fee")?);
        recovery.clone().with_policy(policy).prepare(calls).map_err(recover::in_wallet)
    }

    fn read_signature(signature: Cursor<'_, '_>) -> Result<ExternalSignature, Refusal> {
        ExternalSignature::read(signature)
    }

    fn read_signatures(given: Cursor<'_, '_>) -> Result<Vec<ExternalSignature>, Refusal> {
        match given.value() {
            Value::Array(_) => given.array()?.map(Self::read_signature).collect(),
            _ => Ok(vec![Self::read_signature(given)?]),
        }
    }

    fn read_transaction(_: &VerifiedOrder<Self>, text: &[u8]) -> Result<SignedTronTransaction, Refusal> {
        match text.trim_ascii_start() {
            [b'{', ..] => SignedTronTransaction::from_json(text),
            _ => SignedTronTransaction::from_bytes(&hex(text, "0x")?),
        }
    }

    fn find_payment(order: &VerifiedOrder<Self>, text: &[u8]) -> Result<String, Refusal> {
        order.deposit().find_payment(&received::transaction_info(text)?).map(hex::encode)
    }

    fn is_effect(has_any: impl Fn(&[&'static str]) -> bool) -> bool {
        has_any(&["receipt", "log"]) && !has_any(&["raw_data", "raw_data_hex"])
    }

    /// Nodes state in `ret` what the transaction did. Beside it, TronWeb returns the answer to the broadcast: a code, or only `false`.
    fn check_outcome(members: &Members<'_, '_>) -> Result<(), Refusal> {
        let failed = |outcome: &Cursor<'_, '_>| Err(outcome.at().refuse(Code::TransactionMismatch));
        let code = members.get("code");
        let is_word_of = |words: &[&str]| code.as_ref().is_some_and(|code| code.text().is_ok_and(|word| words.contains(&word)));
        if let Some(code) = code.as_ref().filter(|_| is_word_of(&NOT_TAKEN)) {
            return failed(code);
        }
        if let Some(result) = members.get("result").filter(|result| result.bool() == Ok(false) && !is_word_of(&[TAKEN_BEFORE])) {
            return failed(&result);
        }
        let Some(results) = members.get("ret") else { return Ok(()) };
        for result in results.array()? {
            let result = result.object()?;
            let of_contract = result.get("contractRet").filter(|outcome| outcome.text() != Ok("SUCCESS"));
            if let Some(outcome) = of_contract.or_else(|| result.get("ret").filter(|outcome| outcome.text() == Ok("FAILED"))) {
                return failed(&outcome);
            }
        }
        Ok(())
    }

    fn native_payload(request: &SigningRequest<Self::Payload>, _: &Unsigned) -> NativePayload {
        let is_message = matches!(request.payload, Payload::TypedData(_));
        NativePayload::new(if is_message { "typed_data" } else { "tron_transaction" }, request.payload.to_json().to_string())
    }

    fn serialize_artefacts<S: Serializer>(unsigned: &Unsigned, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_steps(unsigned, serializer)
    }
}

/// Reads the reference block and the lifetime, and the chain id that the wallet is set to.
fn read_calls(members: &Members<'_, '_>) -> Result<TxContext, Refusal> {
    fn bytes<const N: usize>(cursor: Cursor<'_, '_>) -> Result<[u8; N], Refusal> {
        number::bare_hex_array(cursor.text()?).map_err(|error| cursor.refuse(error))
    }
    // The protocol's times are signed.
    let millis = |cursor: Cursor<'_, '_>| {
        let millis = cursor.integer()?;
        if i64::try_from(millis).is_err() {
            return Err(cursor.refuse(Code::NumberTooLarge));
        }
        Ok::<_, Refusal>(UnixMillis::from_millis(millis))
    };
    let (block_bytes, block_hash) = (bytes(members.need("ref_block_bytes")?)?, bytes(members.need("ref_block_hash")?)?);
    let (expiration, timestamp) = (millis(members.need("expiration")?)?, millis(members.need("timestamp")?)?);
    let mut calls = TxContext::new(block_bytes, block_hash, expiration, timestamp);
    calls.chain_id = read_chain_id(members)?;
    calls.permission = read_permission(members)?;
    Ok(calls)
}

/// Reads the permission under which calls are signed from the wallet context of Tron; `None` if it names none.
///
/// # Errors
///
/// A [`Refusal`] at the member that is missing or malformed.
pub fn permission_in(wallet: Cursor<'_, '_>) -> Result<Option<Permission>, Refusal> {
    read_permission(&wallet.object()?)
}

/// Reads a permission of an account on Tron: its id, if its only key is the account's own, or its description as a node gives it.
///
/// # Errors
///
/// A [`Refusal`] at the member that is missing or malformed.
pub fn permission(text: &Cursor<'_, '_>) -> Result<Permission, Refusal> {
    if text.object().is_ok() { read_keys(text, None) } else { read_id(text).map(Permission::new) }
}

/// Reads the permission under which the calls are signed. Its keys may be left out where they are the sender's own.
fn read_permission(members: &Members<'_, '_>) -> Result<Option<Permission>, Refusal> {
    let chosen = members.get("permission_id").map(|cursor| read_id(&cursor)).transpose()?;
    let Some(permission) = members.get("permission") else { return Ok(chosen.map(Permission::new)) };
    read_keys(&permission, chosen).map(Some)
}

fn read_id(cursor: &Cursor<'_, '_>) -> Result<u8, Refusal> {
    let id = u8::try_from(cursor.integer()?).map_err(|_| cursor.refuse(Code::NumberTooLarge))?;
    Permission::check_id(id, &cursor.at().to_string()).map(|()| id)
}

/// Reads the description of a permission, whose id may stand beside it (`chosen`).
fn read_keys(permission: &Cursor<'_, '_>, chosen: Option<u8>) -> Result<Permission, Refusal> {
    let members = permission.object()?;
    members.check_spelling(TronPermission::MEMBERS)?;
    let own = members.get("id").map(|cursor| Ok::<_, Refusal>((read_id(&cursor)?, cursor))).transpose()?;
    if let (Some(chosen), Some((own, cursor))) = (chosen, &own)
        && chosen != *own
    {
        let refusal = cursor.refuse(Code::WrongType).with_expected(u64::from(chosen));
        return Err(refusal.with_reason("`permission_id` names another permission"));
    }
    let list = members.need("keys")?;
    let keys = list.array()?.map(|key| read_key(&key)).collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() {
        return Err(list.refuse(Code::WrongType).with_expected("at least one key"));
    }
    if let Some(operations) = members.get("operations") {
        let bytes = number::bare_hex_array(operations.text()?).map_err(|error| operations.refuse(error))?;
        if !Permission::allows_calls(&bytes) {
            let reason = "the permission does not allow contracts to be called (TriggerSmartContract)";
            return Err(operations.refuse(Code::WrongType).with_reason(reason));
        }
    }
    let id = chosen.or(own.map(|(own, _)| own)).unwrap_or_default();
    Ok(Permission::new(id).with_keys(members.need("threshold")?.integer()?, keys))
}

fn read_key(key: &Cursor<'_, '_>) -> Result<(Address, u64), Refusal> {
    let members = key.object()?;
    members.check_spelling(TronKey::MEMBERS)?;
    Ok((address::read_any(members.need("address")?)?, members.need("weight")?.integer()?))
}

impl Serialize for Call<'_, TronTransaction> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let transaction = &self.0.transaction;
        let signatures: Vec<_> = self.0.signatures().map(|signature| hex::encode(signature.as_bytes())).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("raw_data", &hex::encode(&transaction.raw_data))?;
        map.serialize_entry("tx_id", &hex::encode(transaction.tx_id))?;
        match signatures.as_slice() {
            [] => {}
            [signature] => map.serialize_entry("signature", signature)?,
            several => map.serialize_entry("signatures", several)?,
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::json::parse;

    use super::*;

    #[test]
    fn an_id_that_signs_no_calls_is_refused_where_it_is_written() {
        let keys = r#""threshold":1,"keys":[{"address":"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t","weight":1}]"#;
        for (wallet, at) in [
            (r#"{"permission_id":1}"#.to_owned(), "/wallet/permission_id"),
            (format!(r#"{{"permission_id":1,"permission":{{{keys}}}}}"#), "/wallet/permission_id"),
            (format!(r#"{{"permission":{{"id":1,{keys}}}}}"#), "/wallet/permission/id"),
            (format!(r#"{{"permission":{{"id":10,{keys}}}}}"#), "/wallet/permission/id"),
        ] {
            let value = parse(wallet.as_bytes()).unwrap();
            let refusal = permission_in(Cursor::root(&value, "/wallet")).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::WrongType, at), "{wallet}");
        }
        // What has no bit 31, calls of contracts, is refused for a redemption as for a payment.
        let wallet = format!(r#"{{"permission":{{"id":2,{keys},"operations":"{}"}}}}"#, "00".repeat(32));
        let value = parse(wallet.as_bytes()).unwrap();
        let refusal = permission_in(Cursor::root(&value, "/wallet")).unwrap_err();
        assert_eq!(refusal.location(), "/wallet/permission/operations");
    }
}
