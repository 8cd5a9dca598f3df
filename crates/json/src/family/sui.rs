//! Sui: `{"gas_price", "gas_budget", "gas_payment"}`, and optionally `sponsor`, `expiration_epoch` and `valid_during`. Price
//! and budget are decimal strings in MIST (`docs/spec/batch.md#sui-wallet`).

mod inputs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::SigningRequest;
use countersign::sui::balance::ValidDuring;
use countersign::sui::recover::{FunctionNames, Recovery};
use countersign::sui::sui_sdk_types::{Digest, ObjectReference, SignedTransaction};
use countersign::sui::{Execution, MAX_GAS_COINS, Sui, TxContext, Unsigned, UnsignedOrder, address};
use countersign_core::chains::address::parse_solana;
use countersign_core::json::{Cursor, Members};
use countersign_core::{Code, Policy, Refusal, Role, VerifiedOrder};
use serde::ser::{Serialize, SerializeMap, Serializer};

use self::inputs::{GasCoin, SuiRecovery, SuiWallet};
use super::inputs::Input;
use super::{ArtefactMembers, JsonFamily, read_u64};
use crate::objects::NativePayload;
use crate::recover;

impl JsonFamily for Sui {
    type Recovery = Recovery;

    const CONTEXTS: &'static [&'static [Input]] = &[inputs::CONTEXTS];
    const ARTEFACT_MEMBERS: ArtefactMembers =
        ArtefactMembers { is_base64: true, ..ArtefactMembers::new(&["transaction_data"], &["signing_digest"], &["tx_digest"]) };
    const KEY_FORM: &'static str = "suiprivkey1.. or 64 hex digits";
    const WRAPPERS: &'static [&'static str] = &["rawTransaction"];
    const RECOVERY_EXAMPLE: (&'static str, &'static str) =
        ("Sui", r#"{"gas_price": "1000", "gas_budget": "5000000", "gas_payment": [...], "sender": "0x..."}"#);

    fn read_wallet(wallet: Cursor<'_, '_>) -> Result<TxContext, Refusal> {
        let members = wallet.object()?;
        members.check_spelling(SuiWallet::MEMBERS)?;
        let mist = |cursor: Cursor<'_, '_>| u64::try_from(cursor.decimal()?).map_err(|_| cursor.refuse(Code::NumberTooLarge));
        let payment = members.need("gas_payment")?;
        let coins = payment.array()?;
        // The length is checked before the coins are read, because the list may be as long as the line.
        if coins.len() > MAX_GAS_COINS {
            let refusal = payment.at().refuse(Code::GasCoinCount).with_expected(format!("at most {MAX_GAS_COINS} coins"));
            return Err(refusal.with_actual(coins.len()));
        }
        let (price, budget) = (mist(members.need("gas_price")?)?, mist(members.need("gas_budget")?)?);
        let mut gas = TxContext::new(price, budget, coins.map(|coin| read_reference(&coin)).collect::<Result<_, _>>()?);
        gas.sponsor = members.get("sponsor").map(address::read).transpose()?;
        gas.valid_during = members.get("valid_during").map(read_validity).transpose()?;
        gas.expiration_epoch = members.get("expiration_epoch").map(|cursor| read_u64(cursor)).transpose()?;
        Ok(gas)
    }

    fn prepare_recovery(recovery: &Recovery, wallet: Cursor<'_, '_>, _: &Policy) -> Result<UnsignedOrder, Refusal> {
        let members = recover::members(&wallet, SuiWallet::MEMBERS, SuiRecovery::MEMBERS)?;
        let names = match members.get("function_names") {
            None => FunctionNames::default(),
            Some(cursor) => match cursor.text()? {
                "current" => FunctionNames::Current,
                "older" => FunctionNames::Older,
                _ => return Err(cursor.refuse(Code::WrongType).with_expected("current or older")),
            },
        };
        let gas = Self::read_wallet(wallet)?;
        let sender = members.get("sender").map_or(Ok(recovery.to()), address::read)?;
        let gas = gas.sent_by(sender).with_low_fee(recover::accepts(&members, "accept_low_fee")?);
        recovery.clone().with_names(names).prepare(gas).map_err(recover::in_wallet)
    }

    /// Requires that the key of a case is the sender's. A key that signs only for the sponsor is refused like any other.
    fn check_signed(unsigned: &Unsigned) -> Result<(), Refusal> {
        if unsigned.signature.is_some() {
            return Ok(());
        }
        let refusal = Refusal::new(Code::KeyMismatch, "").with_expected(format!("the key of {}", unsigned.sender));
        Err(match unsigned.sponsor() {
            Some(sponsor) => refusal.with_actual(format!("the key of {sponsor}")),
            None => refusal,
        })
    }

    fn read_transaction(_: &VerifiedOrder<Self>, text: &[u8]) -> Result<SignedTransaction, Refusal> {
        Execution::from_json(text)
    }

    /// SDKs write the status in the effects, or beside them. Of effects in BCS, which wallets return, only the status is read.
    fn check_outcome(members: &Members<'_, '_>) -> Result<(), Refusal> {
        if let Some(effects) = members.get("effects") {
            if effects.text().is_ok_and(is_failure_in_bcs) {
                return Err(effects.at().refuse(Code::TransactionMismatch));
            }
            effects.object().map_or(Ok(()), |effects| check_status(&effects))?;
        }
        check_status(members)
    }

    fn native_payload(_: &SigningRequest<Self::Payload>, unsigned: &Unsigned) -> NativePayload {
        NativePayload::new("sui_transaction", unsigned.base64())
    }

    fn serialize_artefacts<S: Serializer>(unsigned: &Unsigned, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match unsigned.role {
            Role::Initiate => map.serialize_entry("transaction", &Transaction(unsigned))?,
            role => map.serialize_entry(&role.to_string(), &Transaction(unsigned))?,
        }
        map.end()
    }
}

/// Refuses a transaction whose status says that it failed. JSON-RPC writes `{"status": "success"}`, and GraphQL only the word. gRPC and current
/// SDKs write `{"success": true}`. Any other word says nothing.
fn check_status(members: &Members<'_, '_>) -> Result<(), Refusal> {
    let Some(status) = members.get("status") else { return Ok(()) };
    if status.text().is_ok_and(|word| word.eq_ignore_ascii_case("failure")) {
        return Err(status.at().refuse(Code::TransactionMismatch));
    }
    let Ok(status) = status.object() else { return Ok(()) };
    let in_words = status.get("status").filter(|outcome| outcome.text() != Ok("success"));
    let failed = in_words.or_else(|| status.get("success").filter(|success| success.bool() != Ok(true)));
    failed.map_or(Ok(()), |failed| Err(failed.at().refuse(Code::TransactionMismatch)))
}

/// Returns whether these are effects in base64 of BCS, of either version, whose first member says that the transaction failed.
fn is_failure_in_bcs(effects: &str) -> bool {
    STANDARD.decode(effects).is_ok_and(|bytes| matches!(*bytes, [0 | 1, 1, ..]))
}

/// Reads the epochs and the network in which a payment from the address balance is valid.
fn read_validity(cursor: Cursor<'_, '_>) -> Result<ValidDuring, Refusal> {
    let members = cursor.object()?;
    members.check_spelling(inputs::ValidDuring::MEMBERS)?;
    let nonce = members.need("nonce")?;
    let number = u32::try_from(read_u64(nonce)?).map_err(|_| nonce.refuse(Code::NumberTooLarge))?;
    let (first, last) = (read_u64(members.need("min_epoch")?)?, read_u64(members.need("max_epoch")?)?);
    Ok(ValidDuring::from_epoch(first, read_digest(&members.need("chain")?)?, number).until(last))
}

/// Reads the id, version and digest of a coin.
fn read_reference(cursor: &Cursor<'_, '_>) -> Result<ObjectReference, Refusal> {
    let members = cursor.object()?;
    members.check_spelling(GasCoin::MEMBERS)?;
    let version = members.need("version")?;
    let digest = members.need("digest")?;
    Ok(ObjectReference::new(address::read(members.need("object_id")?)?, read_u64(version)?, read_digest(&digest)?))
}

/// Reads base58 of exactly 32 bytes, the form of a Solana address. The SDK's own parser also accepts shorter texts.
fn read_digest(cursor: &Cursor<'_, '_>) -> Result<Digest, Refusal> {
    let bytes = parse_solana(cursor.text()?);
    bytes.map(Digest::new).map_err(|_| cursor.refuse(Code::ObjectDigestMalformed).with_expected("base58 of 32 bytes"))
}

struct Transaction<'a>(&'a Unsigned);

impl Serialize for Transaction<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unsigned = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("transaction_data", &unsigned.base64())?;
        map.serialize_entry("signing_digest", &hex::encode(unsigned.signing_digest))?;
        map.serialize_entry("tx_digest", &address::format_digest(&unsigned.digest()))?;
        if let Some(signature) = &unsigned.signature {
            map.serialize_entry("signature", &signature.to_base64())?;
        }
        if let Some(signature) = &unsigned.sponsor_signature {
            map.serialize_entry("sponsor_signature", &signature.to_base64())?;
        }
        map.end()
    }
}
