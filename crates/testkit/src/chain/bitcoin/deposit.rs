//! An order that is paid on Bitcoin's regtest network.

use std::str::FromStr;

use countersign_bitcoin::Bitcoin;
use countersign_bitcoin::bitcoin::address::NetworkUnchecked;
use countersign_bitcoin::bitcoin::{Address, Network, ScriptBuf};
use countersign_core::{CreateOrder, Registry};
use serde_json::{Value, json};

use super::NOW;

/// The chain's name in asset ids.
pub const REGTEST: &str = "bitcoin_regtest";

/// The order of a fixture, on the regtest network, with a deadline in four hours.
pub struct Deposit {
    pub request: CreateOrder,
    pub response: String,
    /// The service's answer with the record.
    pub record: String,
    pub registry: Registry,
    pub key: String,
    /// What the key controls.
    pub script: ScriptBuf,
}

/// A text of the fixtures on the regtest network: names, and every address.
fn on_regtest(text: &str) -> String {
    let mut text = text.replace("bitcoin_testnet:btc", "bitcoin_regtest:btc").replace(r#""bitcoin_testnet""#, r#""bitcoin_regtest""#);
    while let Some(start) = text.find("\"tb1") {
        let end = start + 1 + text[start + 1..].find('"').unwrap();
        let address = Address::<NetworkUnchecked>::from_str(&text[start + 1..end]).unwrap().assume_checked();
        text.replace_range(start + 1..end, &Address::from_script(&address.script_pubkey(), Network::Regtest).unwrap().to_string());
    }
    text
}

pub fn deposit() -> Deposit {
    let case = crate::fixture::<Bitcoin>("bitcoin-p2wpkh").json();
    let mut record: Value = serde_json::from_str(&on_regtest(&case["order"].to_string())).unwrap();
    record["deadline"] = json!(NOW + 4 * 3_600);
    let text = on_regtest(&crate::registry_json().to_string()).replace(r#""bitcoin:testnet""#, r#""bitcoin:regtest""#);
    let mut registry: Value = serde_json::from_str(&text).unwrap();
    for asset in registry["assets"].as_array_mut().unwrap().iter_mut().filter(|asset| asset["chain"] == REGTEST) {
        asset["chain_id"] = json!("regtest");
    }
    let wallet = &case["wallet"];
    Deposit {
        request: CreateOrder::from_json(on_regtest(&case["request"].to_string()).as_bytes()).unwrap(),
        response: on_regtest(&case["response"].to_string()),
        record: json!({"status": "Ok", "result": record}).to_string(),
        registry: Registry::from_json(registry.to_string().as_bytes()).unwrap(),
        key: wallet["secret_key"].as_str().unwrap().to_owned(),
        script: ScriptBuf::from_hex(wallet["utxos"][0]["script_pubkey"].as_str().unwrap()).unwrap(),
    }
}
