//! Bitcoin and Litecoin: `{}`, or `{"utxos", "change_address", "fee_rate"}` with the fee rate in sat/vB as a decimal string
//! (`docs/spec/batch.md#bitcoin-wallet`).
//!
//! Optional members set which coins are spent (`selection`), their order (`order`, `seed`), replaceability (`rbf`), and the
//! derivations of the wallet's keys for hardware signers (`origins`).

mod inputs;

use countersign::SigningRequest;
use countersign::bitcoin::bitcoin::consensus::encode;
use countersign::bitcoin::bitcoin::hashes::Hash;
use countersign::bitcoin::bitcoin::{Amount, OutPoint, ScriptBuf, Transaction, TxOut, Txid};
use countersign::bitcoin::recover::{Exceptions, Fee, FeeCoins, Funding, Payout, Recovery};
use countersign::bitcoin::{
    Bitcoin, ChangeRule, ExternalSignature, FeeRate, KeyOrigin, Payment, Selection, TxContext, TxOrdering, Unsigned, UnsignedOrder, Utxo,
    received,
};
use countersign_core::chains::digits;
use countersign_core::json::{Cursor, Members, Value};
use countersign_core::{Code, ParseError, Policy, Refusal, RequestId, U256, VerifiedOrder, number};
use serde::ser::{Serialize, SerializeMap, Serializer};

use self::inputs::{BitcoinRecovery, BitcoinSignature, BitcoinWallet};
use super::inputs::Input;
use super::{ArtefactMembers, JsonFamily, hex};
use crate::objects::NativePayload;
use crate::recover;

/// Maximum length of a script, in bytes. Consensus rules execute no longer one.
const MAX_SCRIPT: usize = 10_000;
/// Maximum length of a transaction, in bytes. This is more than fits in a block.
const MAX_TRANSACTION: usize = 4_000_000;
/// The name under which a signed PSBT is attached. It holds the signatures of all requests.
const PSBT: &str = "psbt";

impl JsonFamily for Bitcoin {
    type Recovery = Recovery;

    const CONTEXTS: &'static [&'static [Input]] = &[inputs::CONTEXTS];
    const SIGNATURES: &'static [&'static [Input]] = &[inputs::SIGNATURES];
    const ARTEFACT_MEMBERS: ArtefactMembers = ArtefactMembers::new(&["unsigned_tx"], &[], &["tx_id"]);
    const KEY_FORM: &'static str = "WIF of a compressed key, or 64 hex digits";
    // The answer to getrawtransaction, or to walletprocesspsbt: the final transaction if it is complete.
    const WRAPPERS: &'static [&'static str] = &["hex", "psbt"];
    const RECOVERY_EXAMPLE: (&'static str, &'static str) =
        ("Bitcoin", r#"{"funding": ["<txid>:0:50000"], "to": "bc1q...", "fee_rate": "2.5"}"#);

    fn read_wallet(wallet: Cursor<'_, '_>) -> Result<TxContext, Refusal> {
        let members = wallet.object()?;
        members.check_spelling(BitcoinWallet::MEMBERS)?;
        let mut context = TxContext::address_only();
        if let Some(utxos) = members.get("utxos") {
            context.utxos = Some(read_utxos(&utxos)?);
        }
        context.selection = if choice(&members, "selection", &["all", "lowest_fee"])? == 0 { Selection::All } else { Selection::LowestFee };
        context.ordering = read_ordering(&members)?;
        // The contract fixes every byte of a payment that spends all coins (docs/spec/batch.md#bitcoin-fee-and-change).
        if context.selection == Selection::All {
            context.change_rule = ChangeRule::BatchContract;
        }
        if let Some(address) = members.get("change_address") {
            context.change_address = Some(address.text()?.into());
        }
        context.fee_rate = members.get("fee_rate").as_ref().map(read_fee_rate).transpose()?;
        context.origins = read_origins(&members)?;
        context.replaceable = members.get("rbf").map(|cursor| cursor.bool()).transpose()?.unwrap_or(true);
        Ok(context)
    }

    fn prepare_recovery(recovery: &Recovery, wallet: Cursor<'_, '_>, policy: &Policy) -> Result<UnsignedOrder, Refusal> {
        // Only the holder of the HTLC's key can take the coins, so the context has no `sender`.
        let members = recover::members(&wallet, &[], BitcoinRecovery::MEMBERS)?;
        let payout = read_payout(&members, policy)?;
        recovery.clone().with_policy(policy).prepare(payout).map_err(recover::in_wallet)
    }

    /// Reads a signature as text, or as an object `{"signature", "public_key"}` in hex.
    fn read_signature(signature: Cursor<'_, '_>) -> Result<ExternalSignature, Refusal> {
        let text = match signature.value() {
            Value::Object(_) => {
                let members = signature.object()?;
                members.only(BitcoinSignature::MEMBERS)?;
                format!("{}:{}", members.need("signature")?.text()?, members.need("public_key")?.text()?).into()
            }
            _ => std::borrow::Cow::Borrowed(signature.text()?),
        };
        text.parse().map_err(|refusal: Refusal| refusal.with_prefix(&signature.at().to_string()))
    }

    fn read_request(name: &str) -> Result<RequestId, ParseError> {
        // A PSBT is accepted under the id of any input. No transaction has this input, so a bare signature is refused.
        if name == PSBT { Ok(RequestId::Input(usize::MAX)) } else { name.parse() }
    }

    fn check_signable(unsigned: &Unsigned) -> Result<(), Refusal> {
        if unsigned.payment.is_some() {
            return Ok(());
        }
        let reason = "without unspent outputs nothing can be signed here: pay the address with any wallet";
        Err(Refusal::new(Code::NothingToSign, "/utxos").with_reason(reason))
    }

    fn check_signed(unsigned: &Unsigned) -> Result<(), Refusal> {
        unsigned.payment.as_ref().and_then(Payment::key_mismatch).map_or(Ok(()), Err)
    }

    fn read_transaction(_: &VerifiedOrder<Self>, text: &[u8]) -> Result<Transaction, Refusal> {
        received::from_bytes(&hex(text, "0x")?)
    }

    /// A wallet's node counts the blocks below zero since another transaction has spent the same coins.
    fn check_outcome(members: &Members<'_, '_>) -> Result<(), Refusal> {
        let is_conflicted = |cursor: &Cursor<'_, '_>| matches!(cursor.value(), Value::Number(digits) if digits.starts_with('-'));
        let failed = members.get("confirmations").filter(is_conflicted);
        failed.map_or(Ok(()), |confirmations| Err(confirmations.at().refuse(Code::TransactionMismatch)))
    }

    fn native_payload(request: &SigningRequest<Self::Payload>, _: &Unsigned) -> NativePayload {
        NativePayload::new("psbt", request.payload.psbt.to_string())
    }

    fn serialize_artefacts<S: Serializer>(unsigned: &Unsigned, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        if unsigned.deposit.is_some() {
            map.serialize_entry("deposit", &Artefact(unsigned))?;
        } else {
            map.serialize_entry(&unsigned.role.to_string(), &Artefact(unsigned))?;
        }
        map.end()
    }
}

/// Reads the context of a recovery: the outputs of the HTLC, where they are sent, and who pays the fee.
fn read_payout(members: &Members<'_, '_>, policy: &Policy) -> Result<Payout, Refusal> {
    let funding = |cursor: Cursor<'_, '_>| {
        let text = cursor.text()?;
        text.parse::<Funding>().map_err(|error| cursor.refuse(error).with_expected("<txid>:<index>:<base units>"))
    };
    let fundings = members.need("funding")?.array()?.map(funding).collect::<Result<Vec<_>, _>>()?;
    let (to, rate) = (members.need("to")?, members.need("fee_rate")?);
    let fee_rate = read_fee_rate(&rate)?;
    fee_rate.check(policy.bitcoin.fee_rate, &rate.at().to_string())?;
    let origins = read_origins(members)?;
    let fee = match members.get("utxos") {
        Some(utxos) => {
            let change = members.need("change_address")?;
            Fee::Paid(FeeCoins::new(read_utxos(&utxos)?, change.text()?, fee_rate).with_origins(origins.clone()))
        }
        None => match members.get("change_address") {
            Some(cursor) => {
                return Err(cursor
                    .refuse(Code::UnexpectedField)
                    .with_reason("change comes only from coins of the wallet: give utxos, or leave change_address out"));
            }
            None => Fee::Deducted(fee_rate),
        },
    };
    let accepts = |member| recover::accepts(members, member);
    let accepts = Exceptions { less: accepts("accept_less")?, low_fee: accepts("accept_low_fee")?, high_fee: accepts("accept_high_fee")? };
    Ok(Payout::new(fundings, to.text()?, fee).with_origins(origins).with_exceptions(accepts))
}

fn read_fee_rate(cursor: &Cursor<'_, '_>) -> Result<FeeRate, Refusal> {
    FeeRate::parse(cursor.text()?).map_err(|error| cursor.refuse(error))
}

fn read_origins(members: &Members<'_, '_>) -> Result<Vec<KeyOrigin>, Refusal> {
    let Some(origins) = members.get("origins") else { return Ok(Vec::new()) };
    let read = |cursor: Cursor<'_, '_>| cursor.text()?.parse::<KeyOrigin>().map_err(|error| cursor.refuse(error));
    origins.array()?.map(read).collect()
}

fn read_utxos(cursor: &Cursor<'_, '_>) -> Result<Vec<Utxo>, Refusal> {
    cursor.array()?.map(|utxo| read_utxo(&utxo)).collect()
}

/// Returns the index of the choice that a member names; 0 if the member is missing.
fn choice(members: &Members<'_, '_>, key: &str, choices: &[&str]) -> Result<usize, Refusal> {
    let Some(cursor) = members.get(key) else { return Ok(0) };
    let text = cursor.text()?;
    let found = choices.iter().position(|choice| *choice == text);
    found.ok_or_else(|| cursor.refuse(Code::WrongType).with_expected(choices.join(" or ")))
}

fn read_ordering(members: &Members<'_, '_>) -> Result<TxOrdering, Refusal> {
    let seed = members.get("seed");
    let ordering = match (choice(members, "order", &["given", "bip69", "shuffled"])?, &seed) {
        (2, Some(seed)) => {
            return number::bare_hex_array(seed.text()?).map(TxOrdering::Shuffled).map_err(|error| seed.at().refuse(error));
        }
        (2, None) => return Err(members.at().key("seed").refuse(Code::MissingField)),
        (1, _) => TxOrdering::Bip69,
        _ => TxOrdering::Given,
    };
    match seed {
        Some(seed) => Err(seed.at().refuse(Code::UnexpectedField).with_reason("a seed is used only with the order shuffled")),
        None => Ok(ordering),
    }
}

fn read_utxo(cursor: &Cursor<'_, '_>) -> Result<Utxo, Refusal> {
    let members = cursor.object()?;
    members.check_spelling(inputs::Utxo::MEMBERS)?;
    let (txid, vout, value) = (members.need("txid")?, members.need("vout")?, members.need("value")?);
    let vout = u32::try_from(vout.integer()?).map_err(|_| vout.refuse(Code::NumberTooLarge))?;
    let wide = value.decimal().or_else(|refusal| value.integer().map(U256::from).map_err(|_| refusal))?;
    let value = u64::try_from(wide).map_err(|_| value.refuse(Code::NumberTooLarge))?;
    let script_pubkey = read_script(&members.need("script_pubkey")?)?;
    let redeem_script = members.get("redeem_script").map(|cursor| read_script(&cursor)).transpose()?;
    let previous = members.get("previous_tx").map(|cursor| read_transaction(&cursor)).transpose()?;
    let outpoint = OutPoint { txid: read_txid(&txid)?, vout };
    let output = TxOut { value: Amount::from_sat(value), script_pubkey };
    Utxo::from_parts(outpoint, output, redeem_script, previous).map_err(|refusal| refusal.with_prefix(&cursor.at().to_string()))
}

/// Reads a transaction id as it is displayed: the bytes of the hash in reverse order.
pub(crate) fn read_txid(cursor: &Cursor<'_, '_>) -> Result<Txid, Refusal> {
    let mut bytes = number::bare_hex_array::<32>(cursor.text()?).map_err(|error| cursor.refuse(error))?;
    bytes.reverse();
    Ok(Txid::from_byte_array(bytes))
}

pub(crate) fn read_bytes(cursor: &Cursor<'_, '_>, max: usize) -> Result<Vec<u8>, Refusal> {
    let text = cursor.text()?;
    if text.len() / 2 > max {
        return Err(cursor.at().refuse(Code::HexLength).with_expected(format!("at most {max} bytes")));
    }
    digits::bytes(text).map_err(|_| cursor.refuse(if text.len() % 2 == 0 { Code::HexDigit } else { Code::HexOddLength }))
}

fn read_script(cursor: &Cursor<'_, '_>) -> Result<ScriptBuf, Refusal> {
    read_bytes(cursor, MAX_SCRIPT).map(ScriptBuf::from_bytes)
}

pub(crate) fn read_transaction(cursor: &Cursor<'_, '_>) -> Result<Transaction, Refusal> {
    encode::deserialize(&read_bytes(cursor, MAX_TRANSACTION)?)
        .map_err(|_| cursor.at().refuse(Code::UtxoMismatch).with_reason("the bytes are not a transaction"))
}

/// The artefact of a deposit, with its payment and the signatures so far.
struct Artefact<'a>(&'a Unsigned);

impl Serialize for Artefact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let Unsigned { deposit, payment, .. } = self.0;
        if let Some(deposit) = deposit {
            map.serialize_entry("address", &deposit.address)?;
            map.serialize_entry("script_pubkey", &hex::encode(deposit.script_pubkey.as_bytes()))?;
            map.serialize_entry("amount", &deposit.amount.to_sat().to_string())?;
            map.serialize_entry("uri", &deposit.uri())?;
        }
        map.serialize_entry("psbt", &payment.as_ref().map(|payment| payment.psbt.to_string()))?;
        map.serialize_entry("unsigned_tx", &payment.as_ref().map(|payment| hex::encode(payment.unsigned_bytes())))?;
        let tx_id = match payment {
            Some(payment) if payment.has_signatures() => {
                map.serialize_entry("signed_psbt", &payment.signed_psbt().to_string())?;
                let signed = payment.signed_transaction();
                if let Some(signed) = &signed {
                    map.serialize_entry("signed", &encode::serialize_hex(signed))?;
                }
                signed.map(|signed| signed.compute_txid())
            }
            Some(payment) if payment.id_is_final() => Some(payment.transaction().compute_txid()),
            _ => None,
        };
        map.serialize_entry("tx_id", &tx_id.map(|tx_id| tx_id.to_string()))?;
        map.end()
    }
}
