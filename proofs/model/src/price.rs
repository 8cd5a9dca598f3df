//! The price of an owner's transaction, computed by the real reader and the real rules from the answers of three
//! endpoints.

use countersign_client::countersign::evm::Fees;
use countersign_client::countersign::evm::alloy_primitives::Address;
use countersign_client::countersign::evm::reader::{Context, OnChain, fees, pending_nonce};
use countersign_client::countersign::reader::{Drive as _, Known, Reader, Request};
use countersign_testkit::chain::evm::{answer_with, hash_of};
use serde_json::{Value, json};

/// The number of different answers that the lying endpoint may give.
pub const LIES: u8 = 4;
/// The lowest priority fee with which a transaction is mined.
const FLOOR: u128 = GWEI;
const GWEI: u128 = 1_000_000_000;
/// The owner's balance, and the gas limit of a redemption or refund.
const COINS: u128 = 10_000_000 * GWEI;
const GAS: u128 = 300_000;
/// The correct nonce for the owner's next transaction.
const NONCE: u64 = 7;

/// The fees that a transaction offers.
#[derive(Debug, Clone, Copy)]
pub struct Price {
    pub nonce: u64,
    pub cap: u128,
    pub tip: u128,
}

impl Price {
    /// Returns whether the owner can afford the transaction.
    pub const fn is_affordable(self) -> bool {
        self.cap * GAS <= COINS
    }

    /// Returns whether a chain ever includes the transaction after the account's others, or `None` if one of those
    /// has used its nonce.
    pub const fn is_mined(nonce: u64, others: u64, tip: u128) -> Option<bool> {
        if nonce < NONCE + others { None } else { Some(nonce == NONCE + others && tip >= FLOOR) }
    }
}

/// Returns an endpoint's answer, with a base fee and a priority fee in wei.
fn answer(request: &Request, base: u128, tip: u128, nonce: u64) -> Value {
    let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
    let hex = |number: u128| json!(format!("{number:#x}"));
    match *method {
        "eth_chainId" => json!("0xa4b1"),
        "eth_getTransactionCount" if params.to_string().contains("pending") => hex(nonce.into()),
        "eth_getTransactionCount" => hex(NONCE.into()),
        "eth_getBlockByNumber" => json!({
            "number": "0x10", "hash": hash_of(16), "parentHash": hash_of(15), "timestamp": "0x6b000000", "baseFeePerGas": hex(base),
        }),
        "eth_feeHistory" => json!({"baseFeePerGas": [hex(base), hex(base)], "reward": [[hex(tip), hex(tip), hex(tip)]]}),
        "eth_gasPrice" => hex(base + tip),
        "eth_maxPriorityFeePerGas" => hex(tip),
        other => panic!("{other}"),
    }
}

/// Prices a transaction. One endpoint of the list lies, and `pending` transactions of another order are mined first.
pub fn price(lie: u8, liar: usize, pending: u64) -> Price {
    let shown: Vec<_> = (0..3)
        .map(|place| {
            let honest = if place == 1 { (10 * GWEI, GWEI, NONCE + pending) } else { (11 * GWEI, GWEI, NONCE + pending) };
            let (base, tip, nonce) = match lie {
                1 if place == liar => (12 * GWEI, 0, NONCE),
                2 if place == liar => (600 * GWEI, 999 * GWEI, NONCE),
                3 if place == liar => (11 * GWEI, GWEI, NONCE + 5),
                _ => honest,
            };
            let subject = OnChain { chain_id: 42_161, subject: Address::repeat_byte(1) };
            let mut reader = Reader::<Context>::new(&subject, &Known::default()).unwrap();
            while !reader.requests().is_empty() {
                let answers: Vec<_> = reader.requests().iter().map(|request| answer_with(&answer(request, base, tip, nonce))).collect();
                reader.answer(&answers).unwrap();
            }
            *reader.finish().unwrap().output()
        })
        .collect();
    let prices: Vec<_> = shown.iter().map(|one| one.prices).collect();
    let nonce = pending_nonce(&shown, 2).unwrap();
    match fees::levels(&prices).unwrap().normal {
        Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas } => Price { nonce, cap: max_fee_per_gas, tip: max_priority_fee_per_gas },
        other => panic!("{other:?}"),
    }
}
