//! Tron: `{"ref_block_bytes", "ref_block_hash", "expiration", "timestamp"}`, hex without `0x` and Unix milliseconds; optionally
//! `chain_id` and `reset_approval` (`docs/spec/batch.md#tron-wallet`).

use countersign::tron::{ExternalSignature, FundingPath, SignedTronTransaction, Tron, TronTransaction, TxContext, Unsigned};
use countersign_core::json::{Cursor, Members};
use countersign_core::{Code, Refusal, number};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::calls::{Call, read_approvals, read_chain_id, serialize_steps};
use super::inputs::TronWallet;
use super::{JsonFamily, hex};

impl JsonFamily for Tron {
    fn read_wallet(wallet: Cursor<'_, '_>) -> Result<FundingPath<TxContext>, Refusal> {
        let members = wallet.object()?;
        members.check_spelling(TronWallet::MEMBERS)?;
        let mut calls = read_calls(&members)?;
        calls.approvals = read_approvals(&members)?;
        Ok(FundingPath::Both(calls))
    }

    fn read_signature(signature: Cursor<'_, '_>) -> Result<ExternalSignature, Refusal> {
        ExternalSignature::read(signature)
    }

    fn read_transaction(text: &[u8]) -> Result<SignedTronTransaction, Refusal> {
        match text.trim_ascii_start() {
            [b'{', ..] => SignedTronTransaction::from_json(text),
            _ => SignedTronTransaction::from_bytes(&hex(text, "0x")?),
        }
    }

    fn serialize_artefacts<S: Serializer>(unsigned: &Unsigned, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_steps(unsigned, serializer)
    }
}

/// Reads the reference block and the lifetime, and the chain id that the wallet is set to.
pub(crate) fn read_calls(members: &Members<'_, '_>) -> Result<TxContext, Refusal> {
    fn bytes<const N: usize>(cursor: Cursor<'_, '_>) -> Result<[u8; N], Refusal> {
        number::bare_hex_array(cursor.text()?).map_err(|error| cursor.refuse(error))
    }
    let millis = |cursor: Cursor<'_, '_>| i64::try_from(cursor.integer()?).map_err(|_| cursor.refuse(Code::NumberTooLarge));
    let (block_bytes, block_hash) = (bytes(members.need("ref_block_bytes")?)?, bytes(members.need("ref_block_hash")?)?);
    let (expiration, timestamp) = (millis(members.need("expiration")?)?, millis(members.need("timestamp")?)?);
    let mut calls = TxContext::new(block_bytes, block_hash, expiration, timestamp);
    calls.chain_id = read_chain_id(members)?;
    Ok(calls)
}

impl Serialize for Call<'_, TronTransaction> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (transaction, signature) = (&self.0.transaction, &self.0.signature);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("raw_data", &hex::encode(&transaction.raw_data))?;
        map.serialize_entry("tx_id", &hex::encode(transaction.tx_id))?;
        if let Some(signature) = signature {
            map.serialize_entry("signature", &hex::encode(signature.as_bytes()))?;
        }
        map.end()
    }
}
