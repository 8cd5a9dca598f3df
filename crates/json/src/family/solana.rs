//! Solana: `{"recent_blockhash", "nonce_account", "nonce", "last_valid_block_height", "block_height"}`, each of them optional: base58 of
//! 32 bytes, and JSON integers (`docs/spec/batch.md#solana-wallet`).

mod inputs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::SigningRequest;
use countersign::solana::recover::Recovery;
use countersign::solana::solana_hash::Hash;
use countersign::solana::solana_message::v1::TransactionConfig;
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::solana::{
    DurableNonce, FundingPath, Solana, TransactionPayload, TxContext, Unsigned, UnsignedOrder, address, received, transaction,
};
use countersign_core::chains::address::parse_solana;
use countersign_core::json::{Cursor, Members};
use countersign_core::{Code, Policy, Refusal, Role, VerifiedOrder};
use serde::ser::{Serialize, SerializeMap, Serializer};

use self::inputs::{SolanaConfig, SolanaRecovery, SolanaWallet};
use super::inputs::Input;
use super::{ArtefactMembers, JsonFamily, plain};
use crate::objects::NativePayload;
use crate::recover;

impl JsonFamily for Solana {
    type Recovery = Recovery;

    const CONTEXTS: &'static [&'static [Input]] = &[inputs::CONTEXTS];
    /// The first signature is the id.
    const ARTEFACT_MEMBERS: ArtefactMembers =
        ArtefactMembers { signature: &[], is_base64: true, ..ArtefactMembers::new(&["message"], &[], &["signature"]) };
    const KEY_FORM: &'static str = "base58 of 32 or 64 bytes";
    const WRAPPERS: &'static [&'static str] = &["transaction"];
    const RECOVERY_EXAMPLE: (&'static str, &'static str) =
        ("Solana", r#"{"recent_blockhash": "...", "sender": "...", "rent_sponsor": "..."}"#);

    fn read_wallet(wallet: Cursor<'_, '_>) -> Result<FundingPath<TxContext>, Refusal> {
        let members = wallet.object()?;
        members.check_spelling(SolanaWallet::MEMBERS)?;
        read_self_funded(&members).map(FundingPath::Both)
    }

    fn prepare_recovery(recovery: &Recovery, wallet: Cursor<'_, '_>, policy: &Policy) -> Result<UnsignedOrder, Refusal> {
        let read = |cursor: Cursor<'_, '_>| address::parse(cursor.text()?).map_err(|error| cursor.refuse(error));
        let members = recover::members(&wallet, SolanaWallet::MEMBERS, SolanaRecovery::MEMBERS)?;
        let path = read_self_funded(&members)?;
        let sender = members.get("sender").map_or(Ok(recovery.to()), read)?;
        let mut recovery = recovery.clone().with_policy(policy);
        if let Some(cursor) = members.get("rent_sponsor") {
            recovery = recovery.with_sponsor(read(cursor)?);
        }
        if let Some(config) = members.get("config") {
            recovery = recovery.with_config(read_config(&config)?);
        }
        let path = path.sent_by(sender).with_low_fee(recover::accepts(&members, "accept_low_fee")?);
        recovery.prepare(path).map_err(recover::in_wallet)
    }

    fn read_transaction(_: &VerifiedOrder<Self>, text: &[u8]) -> Result<VersionedTransaction, Refusal> {
        let bytes = STANDARD.decode(plain(text)?);
        received::from_bytes(&bytes.map_err(|_| Refusal::new(Code::WrongType, "").with_expected("base64"))?)
    }

    fn find_payment(order: &VerifiedOrder<Self>, text: &[u8]) -> Result<String, Refusal> {
        order.deposit().find_payment(&received::effect(text)?).map(|signature| signature.to_string())
    }

    fn is_effect(has_any: impl Fn(&[&'static str]) -> bool) -> bool {
        has_any(&["transaction"]) && has_any(&["meta"])
    }

    fn check_outcome(members: &Members<'_, '_>) -> Result<(), Refusal> {
        let Some(meta) = members.get("meta") else { return Ok(()) };
        let meta = meta.object()?;
        // Nodes write both. Libraries keep one of them.
        let status = meta.get("status");
        let status = status.as_ref().and_then(|status| status.object().ok());
        let error = meta.get("err").or_else(|| status.as_ref()?.get("Err"));
        error.map_or(Ok(()), |error| Err(error.at().refuse(Code::TransactionMismatch)))
    }

    fn native_payload(request: &SigningRequest<Self::Payload>, _: &Unsigned) -> NativePayload {
        let bytes = transaction::to_bytes(&request.payload.signatures, &request.message);
        NativePayload::new("solana_transaction", STANDARD.encode(bytes))
    }

    fn serialize_artefacts<S: Serializer>(unsigned: &Unsigned, serializer: S) -> Result<S::Ok, S::Error> {
        let own = unsigned.transaction.as_ref().map(Own);
        let mut map = serializer.serialize_map(None)?;
        if unsigned.role == Role::Initiate {
            map.serialize_entry("transaction", &own)?;
            map.serialize_entry("gasless", &unsigned.gasless.as_ref().map(Gasless))?;
        } else {
            map.serialize_entry(&unsigned.role.to_string(), &own)?;
        }
        map.end()
    }
}

/// Reads the blockhash, and the block heights that show whether it has expired.
fn read_self_funded(members: &Members<'_, '_>) -> Result<TxContext, Refusal> {
    let blockhash = |cursor: Cursor<'_, '_>| {
        parse_solana(cursor.text()?).map(Hash::new_from_array).map_err(|_| cursor.refuse(Code::BlockhashMalformed))
    };
    let height = |key| members.get(key).map(|cursor| cursor.integer()).transpose();
    let mut path = TxContext::new();
    path.recent_blockhash = members.get("recent_blockhash").map(blockhash).transpose()?;
    // One without the other is a mistake.
    if members.get("nonce_account").is_some() || members.get("nonce").is_some() {
        let account = members.need("nonce_account")?;
        let address = parse_solana(account.text()?).map_err(|_| account.refuse(Code::AddressMalformed))?;
        path = path.with_nonce(DurableNonce::new(address.into(), blockhash(members.need("nonce")?)?));
    }
    path.last_valid_block_height = height("last_valid_block_height")?;
    path.block_height = height("block_height")?;
    Ok(path)
}

/// Reads the limits of a message of version 1.
fn read_config(cursor: &Cursor<'_, '_>) -> Result<TransactionConfig, Refusal> {
    let members = cursor.object()?;
    members.only(SolanaConfig::MEMBERS)?;
    let limit = |cursor: Cursor<'_, '_>| u32::try_from(cursor.integer()?).map_err(|_| cursor.refuse(Code::NumberTooLarge));
    let mut config = TransactionConfig::empty()
        .with_compute_unit_limit(limit(members.need("compute_unit_limit")?)?)
        .with_loaded_accounts_data_size_limit(limit(members.need("loaded_accounts_data_size_limit")?)?);
    config.priority_fee = members.get("priority_fee").map(|fee| fee.integer()).transpose()?;
    config.heap_size = members.get("heap_size").map(limit).transpose()?;
    Ok(config)
}

/// The transaction that the owner sends.
struct Own<'a>(&'a TransactionPayload);

impl Serialize for Own<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_message(&mut map, self.0)?;
        if let (Some(signed), Some(id)) = (self.0.signed_bytes(), self.0.id()) {
            map.serialize_entry("signed", &STANDARD.encode(signed))?;
            map.serialize_entry("signature", &id.to_string())?;
        }
        map.end()
    }
}

/// The transaction that the service sends.
struct Gasless<'a>(&'a TransactionPayload);

impl Serialize for Gasless<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_message(&mut map, self.0)?;
        if let Some(signed) = self.0.signed_bytes() {
            map.serialize_entry("submission", &STANDARD.encode(signed))?;
        }
        map.end()
    }
}

fn serialize_message<M: SerializeMap>(map: &mut M, payload: &TransactionPayload) -> Result<(), M::Error> {
    map.serialize_entry("message", &STANDARD.encode(payload.message()))?;
    let signers: Vec<_> = payload.signers().iter().map(ToString::to_string).collect();
    map.serialize_entry("signers", &signers)
}
