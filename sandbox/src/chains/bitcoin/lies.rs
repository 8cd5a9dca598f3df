//! The lies about Bitcoin and Litecoin.

use bitcoin::consensus::encode::deserialize_hex;
use serde_json::json;

use crate::http::{Reply, Request};
use crate::lies::answers::{PAYMENT, edit, lie, put};
use crate::lies::components::{Change, NOTHING, Pace, TOO_LITTLE, TOO_MUCH, lie as component, of, paced};
use crate::lies::endpoints::{AHEAD, Interface};
use crate::lies::{Lie, Route};

const BITCOIN: Route = ["bitcoin_testnet:btc", "base_sepolia:usdc"];
const COINS: Route = ["bitcoin_testnet:btc", "litecoin_testnet:ltc"];

pub(super) const LIES: &[(u8, &[Lie])] = &[(3, ANSWERS), (0, COMPONENTS)];

#[rustfmt::skip]
const ANSWERS: &[Lie] = &[
    lie("bitcoin-address", "the deposit address is a stranger's", PAYMENT, BITCOIN, |answer| put(answer, "/to", "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47zagq")),
    lie("bitcoin-network", "the deposit address is one of the main network", "a payment that nobody can find", BITCOIN, |answer| put(answer, "/to", "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0")),
    lie("bitcoin-kind", "the deposit address is an ordinary one", PAYMENT, BITCOIN, |answer| put(answer, "/to", "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx")),
    lie("bitcoin-uri", "the deposit address has parameters behind it", PAYMENT, BITCOIN, |answer| edit(answer, "/to", |to| Some(format!("{to}?amount=1")))),
    lie("bitcoin-amount", "the deposit is twice the amount", "the difference", BITCOIN, |answer| {
        edit(answer, "/amount", |text| Some(text.parse::<u64>().ok()?.saturating_mul(2).to_string()));
    }),
];

#[rustfmt::skip]
const COMPONENTS: &[Lie] = &[
    component("endpoint-bitcoin-rate-high", "one endpoint of three estimates fee rates three hundred times as high", TOO_MUCH, COINS, &[of("/fee-estimates", "/*", Change::Times(300))]),
    component("endpoint-bitcoin-rate-low", "one endpoint of three estimates fee rates of a thousandth", TOO_LITTLE, COINS, &[of("/fee-estimates", "/*", Change::Part(1_000))]),
    component("endpoint-bitcoin-coins", "one endpoint of three shows coins of half their worth", NOTHING, COINS, &[of("/utxo", "/*/value", Change::Part(2))]),
    paced("endpoint-pace-at-once-bitcoin", "one endpoint of three shows all blocks at the same time", COINS, Pace::AtOnce),
    paced("endpoint-pace-slower-bitcoin", "one endpoint of three shows blocks ten times as slow", COINS, Pace::Slower),
];

/// The interface of an Esplora server.
pub(super) struct Esplora;

impl Interface for Esplora {
    fn submits(&self, request: &Request) -> bool {
        request.method == "POST" && request.path == "/tx"
    }

    fn accepted(&self, request: &Request) -> Option<Reply> {
        let transaction: bitcoin::Transaction = deserialize_hex(std::str::from_utf8(&request.body).ok()?.trim()).ok()?;
        Some(Reply::text(200, transaction.compute_txid().to_string()))
    }

    /// The genesis block is that of Bitcoin's main network.
    fn on_other_chain(&self, request: &Request, reply: Reply) -> Reply {
        match request.path.as_str() {
            "/block-height/0" => Reply::text(200, "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"),
            _ => reply,
        }
    }

    fn ahead(&self, request: &Request, reply: Reply) -> Reply {
        if request.path != "/blocks/tip/height" {
            return reply;
        }
        let height: u64 = String::from_utf8_lossy(&reply.body).trim().parse().unwrap_or(0);
        Reply::text(200, height.saturating_add(AHEAD).to_string())
    }

    /// Addresses have no outputs and no history.
    fn without_locks(&self, request: &Request, reply: Reply) -> Reply {
        if request.path.ends_with("/utxo") || request.path.contains("/txs") { Reply::json(200, &json!([])) } else { reply }
    }

    fn invented(&self, request: &Request) -> Option<Reply> {
        let status = json!({ "confirmed": true, "block_height": 1, "block_hash": "bb".repeat(32), "block_time": 1_700_000_000 });
        let payment = json!([{ "txid": "aa".repeat(32), "vout": 0, "value": 100_000_000_000_u64, "status": status }]);
        request.path.ends_with("/utxo").then(|| Reply::json(200, &payment))
    }
}
