//! A signing path of a wallet's own, as the corpus drives it: an order on a line in, signed transactions on a line out.
//!
//! Replace `answer` with what your wallet does. This one signs what the response says with alloy, and verifies nothing, which is what
//! `docs/measure.md` measures and counts. It covers the transactions of EVM chains, and declares the rest as not supported.

use std::error::Error;
use std::io::{BufRead, Write};

use alloy_network::TxSignerSync;
use alloy_signer_local::PrivateKeySigner;
use countersign::evm::alloy_consensus::TxEip1559;
use countersign::evm::alloy_consensus::transaction::RlpEcdsaEncodableTx;
use countersign::evm::alloy_primitives::hex;
use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let result = match answer(&line?) {
            Ok(Some(artefacts)) => json!({"ok": true, "artefacts": artefacts}),
            Ok(None) => {
                json!({"ok": false, "error": {"code": "not_supported", "message": "not an order that this wallet signs", "at": ""}})
            }
            Err(error) => json!({"ok": false, "error": {"code": "refused", "message": error.to_string(), "at": ""}}),
        };
        // Each result must be out before the next line is read.
        writeln!(output, "{result}")?;
        output.flush()?;
    }
    Ok(())
}

/// Returns what the wallet signs for an order; `None` for an order that it does not support.
fn answer(line: &str) -> Result<Option<Value>, Box<dyn Error>> {
    let case: Value = serde_json::from_str(line)?;
    let (Some(wallet), Some(result)) = (case.get("wallet"), case.pointer("/response/result")) else { return Ok(None) };
    let (Some(key), Some(max_fee)) = (wallet["secret_key"].as_str(), wallet["max_fee_per_gas"].as_str()) else { return Ok(None) };
    let Some(initiate) = result["initiate_transaction"].as_object() else { return Ok(None) };
    let signer: PrivateKeySigner = key.parse()?;
    let max_fee = max_fee.parse()?;
    let priority_fee = wallet["max_priority_fee_per_gas"].as_str().unwrap_or("0").parse()?;
    let nonce = wallet["nonce"].as_u64().ok_or("no nonce")?;

    let mut signed = Map::new();
    let calls = [("approval", result["approval_transaction"].as_object()), ("initiate", Some(initiate))];
    for (place, (name, call)) in (nonce..).zip(calls.into_iter().filter_map(|(name, call)| Some((name, call?)))) {
        let transaction = transaction(call, place, max_fee, priority_fee)?;
        signed.insert(name.to_owned(), json!({"signed": sign(transaction, &signer)?}));
    }
    Ok(Some(signed.into()))
}

/// Returns the transaction that a member of the response describes, as it is.
fn transaction(
    call: &Map<String, Value>,
    nonce: u64,
    max_fee_per_gas: u128,
    max_priority_fee_per_gas: u128,
) -> Result<TxEip1559, Box<dyn Error>> {
    let text = |name: &str| call.get(name).and_then(Value::as_str).ok_or_else(|| format!("no {name}"));
    Ok(TxEip1559 {
        chain_id: call.get("chain_id").and_then(Value::as_u64).ok_or("no chain_id")?,
        nonce,
        gas_limit: text("gas_limit")?.parse::<countersign::U256>()?.try_into()?,
        max_fee_per_gas,
        max_priority_fee_per_gas,
        to: text("to")?.parse::<countersign::evm::alloy_primitives::Address>()?.into(),
        value: text("value")?.parse()?,
        access_list: Default::default(),
        input: hex::decode(text("data")?)?.into(),
    })
}

/// Signs a transaction. Returns its EIP-2718 bytes in hex.
fn sign(mut transaction: TxEip1559, signer: &PrivateKeySigner) -> Result<String, Box<dyn Error>> {
    let signature = signer.sign_transaction_sync(&mut transaction)?;
    let mut bytes = Vec::new();
    transaction.eip2718_encode(&signature, &mut bytes);
    Ok(hex::encode_prefixed(bytes))
}
