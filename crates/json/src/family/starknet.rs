//! Starknet: `{"nonce", "resource_bounds"}`, and what an account may need in addition: `chain_id`, `tip`, `public_key`,
//! `cairo_version`, `paymaster_data`, `account_deployment_data` and the two data availability modes
//! (`docs/spec/batch.md#starknet-wallet`).

mod inputs;

use countersign::SigningRequest;
use countersign::starknet::recover::Recovery;
use countersign::starknet::{
    ApprovalStep, DataAvailabilityMode, ExecutionEncoding, ExternalSignature, Felt, FundingPath, InvokeTransaction, KeyedPath, Payload,
    ResourceBound, ResourceBounds, Starknet, TxContext, Unsigned, UnsignedOrder, felt, received,
};
use countersign_core::json::{Cursor, Members};
use countersign_core::{Code, Policy, Refusal, Role, VerifiedOrder};
use serde::ser::{Serialize, SerializeMap, Serializer};

use self::inputs::{StarknetRecovery, StarknetWallet};
use super::inputs::Input;
use super::{ArtefactMembers, JsonFamily, read_u64};
use crate::objects::{NativePayload, to_json};
use crate::recover;

/// Maximum length of paymaster or deployment data, in felts. A transaction with more is too large for a node.
const MAX_DATA: usize = 4096;

impl JsonFamily for Starknet {
    type Recovery = Recovery;

    const CONTEXTS: &'static [&'static [Input]] = &[inputs::CONTEXTS];
    const SIGNATURES: &'static [&'static [Input]] = &[inputs::SIGNATURES];
    const ARTEFACT_MEMBERS: ArtefactMembers = ArtefactMembers::new(&[], &["tx_hash", "message_hash"], &["tx_hash"]);
    const KEY_FORM: &'static str = "1 to 64 hex digits";
    const RECOVERY_EXAMPLE: (&'static str, &'static str) = ("Starknet", r#"{"nonce": "7", "resource_bounds": {...}, "sender": "0x..."}"#);

    fn read_wallet(wallet: Cursor<'_, '_>) -> Result<KeyedPath, Refusal> {
        let members = wallet.object()?;
        members.check_spelling(StarknetWallet::MEMBERS)?;
        Ok(FundingPath::Both(read_execution(&members)?).into())
    }

    fn prepare_recovery(recovery: &Recovery, wallet: Cursor<'_, '_>, _: &Policy) -> Result<UnsignedOrder, Refusal> {
        let members = recover::members(&wallet, StarknetWallet::MEMBERS, StarknetRecovery::MEMBERS)?;
        let execution = read_execution(&members)?;
        let sender = members.get("sender").map_or(Ok(recovery.to()), felt::read)?;
        let execution = execution.sent_by(sender).with_low_fee(recover::accepts(&members, "accept_low_fee")?);
        recovery.prepare(execution).map_err(recover::in_wallet)
    }

    fn read_signature(signature: Cursor<'_, '_>) -> Result<ExternalSignature, Refusal> {
        ExternalSignature::read(signature)
    }

    fn read_transaction(order: &VerifiedOrder<Self>, text: &[u8]) -> Result<InvokeTransaction, Refusal> {
        order.deposit().read_sent(text)
    }

    fn find_payment(order: &VerifiedOrder<Self>, text: &[u8]) -> Result<String, Refusal> {
        order.deposit().find_payment(&received::receipt(text)?).map(|hash| felt::to_hex(&hash))
    }

    fn is_effect(has_any: impl Fn(&[&'static str]) -> bool) -> bool {
        has_any(&["execution_status", "events"]) && !has_any(&["calldata"])
    }

    /// A node's transaction has no status. Explorers and applications put the members of its receipt beside its own.
    fn check_outcome(members: &Members<'_, '_>) -> Result<(), Refusal> {
        let executed = members.get("execution_status").filter(|status| status.text() != Ok("SUCCEEDED"));
        // Older nodes have one status for both, and nodes accept no transaction that they reject.
        let is_failure = |text: &str| ["REJECTED", "REVERTED"].iter().any(|word| text.eq_ignore_ascii_case(word));
        let others = ["finality_status", "status"].into_iter().filter_map(|name| members.get(name));
        let failed = executed.into_iter().chain(others.filter(|status| status.text().is_ok_and(is_failure))).next();
        failed.map_or(Ok(()), |status| Err(status.at().refuse(Code::TransactionMismatch)))
    }

    /// Returns the calls of `account.execute`.
    fn wallet_calls(order: &VerifiedOrder<Self>) -> Result<Vec<String>, Refusal> {
        Ok(order.deposit().execute_calls(ApprovalStep::default()).iter().map(to_json).collect())
    }

    fn native_payload(request: &SigningRequest<Self::Payload>, _: &Unsigned) -> NativePayload {
        match &request.payload {
            Payload::Invoke(invoke) => NativePayload::new("starknet_invoke", to_json(&invoke.transaction)),
            Payload::TypedData(typed_data) => NativePayload::new("typed_data", typed_data.to_string()),
            _ => NativePayload::default(),
        }
    }

    fn serialize_artefacts<S: Serializer>(unsigned: &Unsigned, serializer: S) -> Result<S::Ok, S::Error> {
        let invoke = unsigned.invoke.as_ref().map(|payload| Artefact {
            calldata: Some(&payload.invoke.transaction.calldata),
            hash: ("tx_hash", &payload.invoke.hashes.tx_hash),
            signature: payload.signature.as_deref(),
        });
        let message = unsigned.message.as_ref().map(|payload| Artefact {
            calldata: None,
            hash: ("message_hash", &payload.hashes.message_hash),
            signature: payload.signature.as_deref(),
        });
        let mut map = serializer.serialize_map(None)?;
        match &unsigned.invoke {
            Some(payload) if payload.role != Role::Initiate => map.serialize_entry(&payload.role.to_string(), &invoke)?,
            _ => {
                map.serialize_entry("invoke", &invoke)?;
                map.serialize_entry("typed_data", &message)?;
            }
        }
        map.end()
    }
}

/// Reads nonce, resource bounds and what the account needs in addition.
fn read_execution(members: &Members<'_, '_>) -> Result<TxContext, Refusal> {
    let bounds = members.need("resource_bounds")?;
    let resources = bounds.object()?;
    resources.check_spelling(inputs::ResourceBounds::MEMBERS)?;
    let bounds =
        ResourceBounds::new(read_bound(&resources, "l1_gas")?, read_bound(&resources, "l2_gas")?, read_bound(&resources, "l1_data_gas")?);
    let mut execution = TxContext::new(felt::read_any(members.need("nonce")?)?, bounds);
    execution.chain_id = members.get("chain_id").map(|cursor| felt::read_short_string(cursor)).transpose()?;
    execution.tip = members.get("tip").map(|cursor| read_u64(cursor)).transpose()?.unwrap_or_default();
    execution.nonce_data_availability_mode = read_mode(members, "nonce_data_availability_mode")?;
    execution.fee_data_availability_mode = read_mode(members, "fee_data_availability_mode")?;
    execution.paymaster_data = read_felts(members, "paymaster_data")?;
    execution.account_deployment_data = read_felts(members, "account_deployment_data")?;
    execution.encoding = members.get("cairo_version").map(|cursor| read_encoding(cursor)).transpose()?.unwrap_or_default();
    execution.public_key = members.get("public_key").map(|cursor| felt::read(cursor)).transpose()?;
    Ok(execution)
}

fn read_bound(members: &Members<'_, '_>, key: &str) -> Result<ResourceBound, Refusal> {
    let cursor = members.need(key)?;
    let members = cursor.object()?;
    members.check_spelling(inputs::ResourceBound::MEMBERS)?;
    let price = members.need("max_price_per_unit")?;
    let max_amount = read_u64(members.need("max_amount")?)?;
    let max_price_per_unit = u128::try_from(price.any_number()?).map_err(|_| price.refuse(Code::NumberTooLarge))?;
    Ok(ResourceBound::new(max_amount, max_price_per_unit))
}

fn read_mode(members: &Members<'_, '_>, key: &str) -> Result<DataAvailabilityMode, Refusal> {
    let Some(cursor) = members.get(key) else { return Ok(DataAvailabilityMode::default()) };
    DataAvailabilityMode::from_name(cursor.text()?).ok_or_else(|| cursor.refuse(Code::WrongType).with_expected("L1 or L2"))
}

/// Reads the Cairo version of the account, 0 or 1.
fn read_encoding(cursor: Cursor<'_, '_>) -> Result<ExecutionEncoding, Refusal> {
    match u8::try_from(cursor.any_number()?) {
        Ok(0) => Ok(ExecutionEncoding::Legacy),
        Ok(1) => Ok(ExecutionEncoding::New),
        _ => Err(cursor.refuse(Code::WrongType).with_expected("0 or 1")),
    }
}

fn read_felts(members: &Members<'_, '_>, key: &str) -> Result<Vec<Felt>, Refusal> {
    let Some(cursor) = members.get(key) else { return Ok(Vec::new()) };
    let felts = cursor.array()?;
    if felts.len() > MAX_DATA {
        return Err(cursor.at().refuse(Code::NumberTooLarge).with_reason("more felts than a transaction can have"));
    }
    felts.map(|felt| felt::read_any(felt)).collect()
}

/// A transaction or message with its hash, and its signature if it is signed.
struct Artefact<'a> {
    calldata: Option<&'a [Felt]>,
    hash: (&'static str, &'a Felt),
    signature: Option<&'a [Felt]>,
}

impl Serialize for Artefact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(calldata) = self.calldata {
            map.serialize_entry("calldata", &HexFelts(calldata))?;
        }
        map.serialize_entry(self.hash.0, &HexFelt(self.hash.1))?;
        if let Some(signature) = self.signature {
            map.serialize_entry("signature", &HexFelts(signature))?;
        }
        map.end()
    }
}

/// A felt as `0x` and hex digits without leading zeros.
struct HexFelt<'a>(&'a Felt);

impl Serialize for HexFelt<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&felt::to_hex(self.0))
    }
}

struct HexFelts<'a>(&'a [Felt]);

impl Serialize for HexFelts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(HexFelt))
    }
}
