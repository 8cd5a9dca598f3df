//! The methods that send, simulate and find transactions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use solana_message::v1::V1_PREFIX;
use solana_transaction::versioned::VersionedTransaction;

use super::params::{Config, Params, parse_address, parse_signature};
use super::views::{self, AccountView, context, encoding};
use super::{Answer, Solana};
use crate::chains::rpc::Fault;
use crate::chains::solana::bank::{Commitment, MAX_AGE, Record, Simulated, height, id};
use crate::http::put;

/// The maximum length of a transaction in bytes, in base58 and in base64: with a message of version 1, and with an
/// older one.
const VERSION_1: [usize; 3] = [4_096, 5_595, 5_464];
const OLDER: [usize; 3] = [1_232, 1_683, 1_644];
const MAX_STATUSES: usize = 256;
const MAX_SIGNATURES: u64 = 1_000;
const TRANSACTION: &str = "solana_transaction::versioned::VersionedTransaction";

fn bytes(text: &str, encoding: &str, kind: &str) -> Result<Vec<u8>, Fault> {
    let is_base58 = encoding != "base64";
    let name = if is_base58 { "base58" } else { "base64" };
    let text_of = |[_, base58, base64]: [usize; 3]| if is_base58 { base58 } else { base64 };
    let too_large =
        |limits: [usize; 3], what: String| Fault::params(format!("{what} (max: encoded/raw {}/{})", text_of(limits), limits[0]));
    let long = |limits| too_large(limits, format!("{name} encoded {kind} too large: {} bytes", text.len()));
    if text.len() > text_of(VERSION_1) {
        return Err(long(VERSION_1));
    }
    let invalid = |why: String| Fault::params(format!("invalid {name} encoding: {why}"));
    let bytes = if is_base58 {
        bs58::decode(text).into_vec().map_err(|error| invalid(error.to_string()))?
    } else {
        STANDARD.decode(text).map_err(|error| invalid(error.to_string()))?
    };
    let limits = if bytes.first() == Some(&V1_PREFIX) { VERSION_1 } else { OLDER };
    if text.len() > text_of(limits) {
        return Err(long(limits));
    }
    if bytes.len() > limits[0] {
        return Err(too_large(limits, format!("decoded {kind} too large: {} bytes", bytes.len())));
    }
    Ok(bytes)
}

fn decode(params: &Params<'_>, config: Config<'_>) -> Result<VersionedTransaction, Fault> {
    let encoding = encoding(config, "base58", &["base58", "base64"])?;
    let bytes = bytes(params.text(0)?, encoding, TRANSACTION)?;
    let malformed = |why: String| Fault::params(format!("failed to deserialize {TRANSACTION}: {why}"));
    let transaction: VersionedTransaction = wincode::deserialize_exact(&bytes).map_err(|error| malformed(error.to_string()))?;
    transaction.sanitize().map_err(|error| Fault::params(format!("invalid transaction: {error}")))?;
    Ok(transaction)
}

fn check_signatures(transaction: &VersionedTransaction) -> Result<(), Fault> {
    let all_valid = transaction.verify_with_results().into_iter().all(|is_valid| is_valid);
    if all_valid { Ok(()) } else { Err(Fault::new(-32_003, "Transaction signature verification failure")) }
}

impl Solana {
    pub(super) fn send_transaction(&mut self, params: &Params<'_>) -> Answer {
        let config = params.config(1)?;
        let transaction = decode(params, config)?;
        let skips = config.flag("skipPreflight")?;
        let commitment = if skips { Commitment::Processed } else { config.commitment("preflightCommitment")? };
        let slot = self.bank.slot(commitment);
        config.check_slot(slot)?;
        check_signatures(&transaction)?;
        let signature = id(&transaction);
        if !skips && !self.bank.is_pending(&signature) {
            let simulated = self.bank.simulate(&transaction, slot);
            if let Some(error) = &simulated.error {
                let message = format!("Transaction simulation failed: {error}");
                return Err(Fault::new(-32_002, message).with_data(self.outcome(&simulated, Value::Null)));
            }
        }
        self.bank.submit(transaction);
        Ok(json!(signature.to_string()))
    }

    pub(super) fn simulate_transaction(&mut self, params: &Params<'_>) -> Answer {
        let config = params.config(1)?;
        let mut transaction = decode(params, config)?;
        let (verifies, replaces) = (config.flag("sigVerify")?, config.flag("replaceRecentBlockhash")?);
        if verifies && replaces {
            return Err(Fault::params("sigVerify may not be used with replaceRecentBlockhash"));
        }
        let slot = config.slot(&self.bank)?;
        let mut replacement = Value::Null;
        if let Some(block) = self.bank.block(slot).filter(|_| replaces) {
            transaction.message.set_recent_blockhash(block.hash);
            let last = height(slot).saturating_add(MAX_AGE);
            replacement = json!({"blockhash": block.hash.to_string(), "lastValidBlockHeight": last});
        }
        if verifies {
            check_signatures(&transaction)?;
        }
        let asked = match config.object("accounts")? {
            None => None,
            Some(accounts) => {
                let listed = accounts.get("addresses").cloned().unwrap_or_else(|| json!([]));
                let count = transaction.message.static_account_keys().len();
                if listed.as_array().is_some_and(|listed| listed.len() > count) {
                    return Err(Fault::params(format!("Too many accounts provided; max {count}")));
                }
                let keys = Params(&[listed]).texts(0, count)?.into_iter().map(parse_address).collect::<Result<Vec<_>, _>>();
                let view = AccountView::read(accounts, "base64")?;
                Some((keys?, view))
            }
        };
        let simulated = self.bank.simulate(&transaction, slot);
        let accounts = match asked {
            Some((keys, view)) if simulated.error.is_none() => {
                let after = |key| simulated.accounts.get(key).cloned().or_else(|| self.bank.account(key, slot));
                let exists = |account: &solana_account::AccountSharedData| solana_account::ReadableAccount::lamports(account) > 0;
                let shown = keys.iter().map(|key| {
                    let account = after(key).filter(exists);
                    account.map_or(Ok(Value::Null), |account| view.show(&self.bank, &account))
                });
                shown.collect::<Result<Value, _>>()?
            }
            _ => Value::Null,
        };
        let mut outcome = self.outcome(&simulated, replacement);
        put(&mut outcome, "accounts", accounts);
        if config.flag("innerInstructions")? {
            put(&mut outcome, "innerInstructions", views::inner(&simulated.meta, &transaction.message, false));
        }
        Ok(context(simulated.slot, outcome))
    }

    fn outcome(&self, simulated: &Simulated, replacement: Value) -> Value {
        let meta = &simulated.meta;
        json!({
            "accounts": null, "err": views::error(simulated.error.as_ref()), "fee": meta.fee, "innerInstructions": null,
            "logs": meta.logs, "replacementBlockhash": replacement, "returnData": views::returned(meta),
            "unitsConsumed": meta.compute_units_consumed,
        })
    }

    pub(super) fn signature_statuses(&self, params: &Params<'_>) -> Answer {
        let all = params.texts(0, MAX_STATUSES)?.into_iter().map(parse_signature).collect::<Result<Vec<_>, _>>()?;
        params.config(1)?.flag("searchTransactionHistory")?;
        let tip = self.bank.tip();
        let one = |record: &Record| {
            let (mark, error) = (self.bank.commitment(record.slot), record.error.as_ref());
            let confirmations = (mark < Commitment::Finalized).then(|| tip.saturating_sub(record.slot));
            json!({
                "confirmationStatus": mark.name(), "confirmations": confirmations, "err": views::error(error), "slot": record.slot,
                "status": views::status(error),
            })
        };
        Ok(context(tip, all.iter().map(|signature| self.bank.record(signature).map(one)).collect()))
    }

    pub(super) fn signatures_for_address(&self, params: &Params<'_>) -> Answer {
        let (key, config) = (params.address(0)?, params.config(1)?);
        let newest = self.bank.slot(config.history()?);
        config.check_slot(newest)?;
        let limit = config.number("limit")?.unwrap_or(MAX_SIGNATURES);
        if limit == 0 || limit > MAX_SIGNATURES {
            return Err(Fault::params(format!("Invalid limit; max {MAX_SIGNATURES}")));
        }
        let mark = |name| config.text(name)?.map(parse_signature).transpose();
        let (before, until) = (mark("before")?, mark("until")?);
        let mut records = self.bank.records().rev().filter(|record| record.slot <= newest);
        if let Some(before) = before {
            // All following transactions are older. If the named transaction does not exist, none follows.
            records.find(|record| record.signature() == before);
        }
        let records = records.take_while(|record| until != Some(record.signature()));
        let names = records.filter(|record| record.transaction.message.static_account_keys().contains(&key));
        let one = |record: &Record| {
            json!({
                "blockTime": record.time, "confirmationStatus": self.bank.commitment(record.slot).name(),
                "err": views::error(record.error.as_ref()), "memo": null, "signature": record.signature().to_string(),
                "slot": record.slot,
            })
        };
        Ok(names.take(usize::try_from(limit).unwrap_or_default()).map(one).collect())
    }

    pub(super) fn transaction(&self, params: &Params<'_>) -> Answer {
        let signature = params.signature(0)?;
        // Older clients pass the encoding directly as this parameter.
        let legacy = params.get(1).and_then(Value::as_str);
        let config = if legacy.is_some() { Config::default() } else { params.config(1)? };
        let encoding = legacy.map_or_else(|| encoding(config, "json", &["json", "jsonParsed", "base58", "base64"]), Ok)?;
        let newest = self.bank.slot(config.history()?);
        let Some(record) = self.bank.record(&signature).filter(|record| record.slot <= newest) else { return Ok(Value::Null) };
        let (max, version) = (config.number("maxSupportedTransactionVersion")?, views::version(&record.transaction));
        if let Some(number) = version.as_u64().filter(|number| max.is_none_or(|max| max < *number)) {
            return Err(Fault::new(
                -32_015,
                format!(
                    "Transaction version ({number}) is not supported by the requesting client. Please try the request again with the following configuration parameter: \"maxSupportedTransactionVersion\": {number}"
                ),
            ));
        }
        let transaction = views::transaction(&record.transaction, encoding);
        let mut shown =
            json!({"blockTime": record.time, "meta": views::meta(record, encoding), "slot": record.slot, "transaction": transaction});
        if max.is_some() {
            put(&mut shown, "version", version);
        }
        Ok(shown)
    }
}
