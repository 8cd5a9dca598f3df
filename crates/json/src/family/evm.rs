//! EVM: `{"nonce", "max_fee_per_gas", "max_priority_fee_per_gas"}` or `{"nonce", "gas_price"}`, fees in wei as decimal strings;
//! optionally `chain_id` and `reset_approval` (`docs/spec/batch.md#evm-wallet`).

use countersign::evm::alloy_consensus::TxEnvelope;
use countersign::evm::alloy_eips::eip2718::Encodable2718;
use countersign::evm::{Evm, EvmTransaction, ExternalSignature, Fees, FundingPath, OwnerPath, TxContext, Unsigned, received};
use countersign_core::json::{self, Cursor, Members};
use countersign_core::{Code, Refusal, VerifiedOrder};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::calls::{Call, Hex, read_approvals, read_chain_id, serialize_steps};
use super::inputs::EvmWallet;
use super::{JsonFamily, hex};

impl JsonFamily for Evm {
    fn read_wallet(wallet: Cursor<'_, '_>) -> Result<OwnerPath, Refusal> {
        let members = wallet.object()?;
        members.check_spelling(EvmWallet::MEMBERS)?;
        let mut calls = read_calls(&members)?;
        calls.approvals = read_approvals(&members)?;
        Ok(FundingPath::Both(calls).into())
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

    fn serialize_artefacts<S: Serializer>(unsigned: &Unsigned, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_steps(unsigned, serializer)
    }
}

/// Reads nonce and fees, and the chain id that the wallet is set to.
pub(crate) fn read_calls(members: &Members<'_, '_>) -> Result<TxContext, Refusal> {
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
