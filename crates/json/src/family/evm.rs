//! EVM: `{"nonce", "max_fee_per_gas", "max_priority_fee_per_gas"}` or `{"nonce", "gas_price"}`, fees in wei as decimal strings;
//! optionally `chain_id` and `reset_approval` (`docs/spec/batch.md#evm-wallet`).

mod inputs;

use countersign::SigningRequest;
use countersign::evm::alloy_consensus::{Transaction, TxEnvelope, TypedTransaction};
use countersign::evm::alloy_eips::eip2718::Encodable2718;
use countersign::evm::recover::Recovery;
use countersign::evm::{
    ApprovalPlan, Evm, EvmTransaction, ExternalSignature, Fees, FundingPath, OwnerPath, Payload, TxContext, Unsigned, UnsignedOrder,
    address, received,
};
use countersign_core::json::{self, Cursor, Members};
use countersign_core::{Code, Policy, Refusal, VerifiedOrder};
use serde::ser::{Serialize, SerializeMap, Serializer};

use self::inputs::{EvmRecovery, EvmWallet};
use super::calls::{self, Call, Hex, read_approvals, read_chain_id, serialize_steps};
use super::inputs::Input;
use super::{ArtefactMembers, JsonFamily, hex, read_u64};
use crate::objects::{NativePayload, to_json};
use crate::recover;

impl JsonFamily for Evm {
    type Recovery = Recovery;

    const CONTEXTS: &'static [&'static [Input]] = &[inputs::CONTEXTS];
    const SIGNATURES: &'static [&'static [Input]] = &[inputs::SIGNATURES, calls::SIGNATURES];
    const ARTEFACT_MEMBERS: ArtefactMembers = ArtefactMembers::new(&["signing_payload"], &["signing_hash", "digest"], &["tx_hash"]);
    const KEY_FORM: &'static str = calls::KEY_FORM;
    // eth_signTransaction returns the bytes beside the decoded transaction; web3.js calls them rawTransaction.
    const WRAPPERS: &'static [&'static str] = &["raw", "rawTransaction"];
    const RECOVERY_EXAMPLE: (&'static str, &'static str) =
        ("EVM", r#"{"nonce": 7, "max_fee_per_gas": "30000000000", "max_priority_fee_per_gas": "1000000000", "sender": "0x..."}"#);

    fn read_wallet(wallet: Cursor<'_, '_>) -> Result<OwnerPath, Refusal> {
        let members = wallet.object()?;
        members.check_spelling(EvmWallet::MEMBERS)?;
        let mut calls = read_calls(&members)?;
        calls.approvals = read_approvals(&members)?;
        Ok(FundingPath::Both(calls).into())
    }

    fn prepare_recovery(recovery: &Recovery, wallet: Cursor<'_, '_>, policy: &Policy) -> Result<UnsignedOrder, Refusal> {
        let members = recover::members(&wallet, EvmWallet::MEMBERS, EvmRecovery::MEMBERS)?;
        let mut calls = read_calls(&members)?;
        calls.gas_limit = members.get("gas_limit").map(|cursor| read_u64(cursor)).transpose()?;
        let sender = members.get("sender").map_or(Ok(recovery.to()), |cursor| address::read(recovery.chain_id(), cursor))?;
        let calls = calls.sent_by(sender).with_low_fee(recover::accepts(&members, "accept_low_fee")?);
        recovery.clone().with_policy(policy).prepare(calls).map_err(recover::in_wallet)
    }

    fn read_signature(signature: Cursor<'_, '_>) -> Result<ExternalSignature, Refusal> {
        ExternalSignature::read(signature)
    }

    fn read_transaction(_: &VerifiedOrder<Self>, text: &[u8]) -> Result<TxEnvelope, Refusal> {
        match text.trim_ascii_start() {
            [b'{', ..] => received::from_json(text),
            _ => received::from_bytes(&hex(text, "")?),
        }
    }

    /// Takes the status of bundled calls, or a receipt.
    fn find_payment(order: &VerifiedOrder<Self>, text: &[u8]) -> Result<String, Refusal> {
        let value = json::parse(text)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        let is_receipt = members.get("receipts").is_none() && members.get("logs").is_some();
        let status = if is_receipt { received::receipt(text)? } else { received::calls_status(text)? };
        order.deposit().find_payment(&status).map(|hash| hash.to_string())
    }

    fn is_effect(has_any: impl Fn(&[&'static str]) -> bool) -> bool {
        // A transaction has no status, and a receipt no nonce.
        has_any(&["receipts", "logs", "status"]) && !has_any(&["nonce"])
    }

    /// A node's transaction has no status. Explorers and applications put the members of its receipt beside its own.
    fn check_outcome(members: &Members<'_, '_>) -> Result<(), Refusal> {
        let failed = members.get("status").filter(received::is_failure);
        failed.map_or(Ok(()), |status| Err(status.at().refuse(Code::TransactionMismatch)))
    }

    /// Returns the parameters of `eth_sendTransaction`, one for each call.
    fn wallet_calls(order: &VerifiedOrder<Self>) -> Result<Vec<String>, Refusal> {
        Ok(order.deposit().send_transactions(ApprovalPlan::default()).iter().map(to_json).collect())
    }

    fn native_payload(request: &SigningRequest<Self::Payload>, unsigned: &Unsigned) -> NativePayload {
        match &request.payload {
            Payload::Transaction(transaction) => native_transaction(transaction, &request.signer),
            _ => {
                let message = unsigned.message.as_ref().map(|message| message.message.to_json().to_string());
                NativePayload::new("typed_data", message.unwrap_or_default())
            }
        }
    }

    fn serialize_artefacts<S: Serializer>(unsigned: &Unsigned, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_steps(unsigned, serializer)
    }
}

/// Reads nonce and fees, and the chain id that the wallet is set to.
fn read_calls(members: &Members<'_, '_>) -> Result<TxContext, Refusal> {
    let wei = |cursor: Cursor<'_, '_>| u128::try_from(cursor.decimal()?).map_err(|_| cursor.refuse(Code::NumberTooLarge));
    let fees = match members.get("gas_price") {
        Some(price) if members.get("max_fee_per_gas").is_none() => Fees::Legacy { gas_price: wei(price)? },
        _ => Fees::Eip1559 {
            max_fee_per_gas: wei(members.need("max_fee_per_gas")?)?,
            max_priority_fee_per_gas: wei(members.need("max_priority_fee_per_gas")?)?,
        },
    };
    let mut calls = TxContext::new(0, fees);
    calls.nonce = members.need("nonce")?.integer()?;
    calls.chain_id = read_chain_id(members)?;
    Ok(calls)
}

/// Returns a transaction with the members of `eth_signTransaction` (EIP-1474).
fn native_transaction(transaction: &TypedTransaction, signer: &str) -> NativePayload {
    let quantity = |number: u128| serde_json::Value::from(format!("{number:#x}"));
    let mut object = serde_json::json!({
        "from": signer,
        "to": transaction.to().map(|to| to.to_string()),
        "value": format!("{:#x}", transaction.value()),
        "gas": quantity(transaction.gas_limit().into()),
        "nonce": quantity(transaction.nonce().into()),
        "data": transaction.input().to_string(),
        "chainId": transaction.chain_id().map(|id| quantity(id.into())),
        "type": if transaction.gas_price().is_some() { "0x0" } else { "0x2" },
    });
    let fees = match (transaction.gas_price(), transaction.max_priority_fee_per_gas()) {
        (Some(price), _) => vec![("gasPrice", price)],
        (None, tip) => vec![("maxFeePerGas", transaction.max_fee_per_gas()), ("maxPriorityFeePerGas", tip.unwrap_or_default())],
    };
    if let Some(members) = object.as_object_mut() {
        members.extend(fees.into_iter().map(|(name, fee)| (name.to_owned(), quantity(fee))));
    }
    NativePayload::new("evm_transaction", object.to_string())
}

impl Serialize for Call<'_, EvmTransaction> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let transaction = &self.0.transaction;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("signing_payload", &Hex(&transaction.signing_bytes))?;
        map.serialize_entry("signing_hash", &Hex(transaction.signing_hash.as_slice()))?;
        if let Some(signature) = &self.0.signature {
            let signed = transaction.with_signature(signature);
            map.serialize_entry("signed", &Hex(&signed.encoded_2718()))?;
            map.serialize_entry("tx_hash", &Hex(signed.tx_hash().as_slice()))?;
        }
        map.end()
    }
}
