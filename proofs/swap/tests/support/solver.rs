//! The solver: it watches both chains, pays the destination once the source is paid, and takes the source with the secret that
//! the redemption shows.

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::hashes::{Hash as _, sha256};
use countersign_bitcoin::recover::{Fee, Funding, FundingSource, Leg, Payout, RecordedHtlc};
use countersign_bitcoin::{FeeRate, Key, UnsignedOrder};
use serde_json::{Value, json};

use super::anvil::{self, Anvil};
use super::litecoin::{Litecoin, Output};
use super::service::{self, Book, Conduct, LITECOIN, Order, SOLVER_KEY};

/// What is paid to the address of the destination before the payment. The first is large enough for the fee of its refund.
const DUST: [u64; 4] = [60_000, 5_000, 5_000, 5_000];

/// What the solver works with.
pub struct Solver<'s> {
    pub anvil: &'s Anvil,
    pub litecoin: &'s Litecoin,
    pub book: &'s Book,
}

fn text<'v>(swap: &'v Value, member: &str) -> &'v str {
    swap[member].as_str().unwrap()
}

fn units(swap: &Value) -> u128 {
    text(swap, "amount").parse().unwrap()
}

impl Solver<'_> {
    /// Does what is next.
    pub fn step(&self) {
        let Some(order) = self.book.order() else { return };
        let from_litecoin = order.is_from(LITECOIN);
        if !order.source_is_paid {
            let paid = if from_litecoin { self.litecoin_source(&order) } else { self.evm_source(&order) };
            if let Some((transaction, block)) = paid {
                self.book.change(|order| {
                    order.source_is_paid = true;
                    order.state_payment("source_swap", &transaction, block);
                });
            }
        } else if !order.destination_is_paid {
            if self.book.conduct.pays() {
                let (transaction, block) = if from_litecoin { self.pay_evm(&order, self.anvil) } else { self.pay_litecoin(&order) };
                self.book.change(|order| {
                    order.destination_is_paid = true;
                    order.state_payment("destination_swap", &transaction, block);
                });
            }
        } else if order.secret.is_none() {
            let shown = if from_litecoin { self.evm_secret(&order) } else { self.litecoin_secret(&order) };
            if let Some((secret, transaction)) = shown {
                self.book.change(|order| {
                    order.secret = Some(secret);
                    order.set("destination_swap", &[("redeem_tx_hash", json!(transaction)), ("redeem_block_number", json!("1"))]);
                });
            }
        } else if let Some(secret) = order.secret.filter(|_| !order.source_is_redeemed) {
            let transaction = if from_litecoin { self.redeem_litecoin(&order, &secret) } else { self.redeem_evm(&order, &secret) };
            self.book.change(|order| {
                order.source_is_redeemed = true;
                order.set("source_swap", &[("redeem_tx_hash", json!(transaction)), ("redeem_block_number", json!("1"))]);
            });
        }
    }

    fn evm_source(&self, order: &Order) -> Option<(String, u64)> {
        let id = text(&order.record["source_swap"], "swap_id");
        let on_record = self.anvil.on_record(&order.htlc, id);
        (on_record.initiated_at > 0).then(|| {
            let logs = self.anvil.logs(&order.htlc, id);
            (text(&logs[0], "transactionHash").trim_start_matches("0x").to_owned(), on_record.initiated_at)
        })
    }

    fn litecoin_source(&self, order: &Order) -> Option<(String, u64)> {
        let output = self.funding(&order.record["source_swap"])?;
        Some((format!("{}:{}", output.txid, output.height), output.height))
    }

    /// The output that pays a side on Litecoin in full.
    fn funding(&self, swap: &Value) -> Option<Output> {
        self.litecoin.outputs(text(swap, "swap_id")).into_iter().find(|output| u128::from(output.value) >= units(swap))
    }

    /// Pays the destination on an EVM chain, as agreed or not.
    pub fn pay_evm(&self, order: &Order, chain: &Anvil) -> (String, u64) {
        let swap = &order.record["destination_swap"];
        let (timelock, amount, hash) = self.terms(swap);
        let data = chain.initiate_call(text(swap, "redeemer"), timelock, amount, &hash);
        let value = if swap["asset"] == service::ETH { amount } else { 0 };
        let receipt = chain.transact(anvil::SOLVER, &order.htlc, value, &data);
        (text(&receipt, "transactionHash").trim_start_matches("0x").to_owned(), anvil::number(&receipt["blockNumber"]))
    }

    fn pay_litecoin(&self, order: &Order) -> (String, u64) {
        let swap = &order.record["destination_swap"];
        let (timelock, amount, hash) = self.terms(swap);
        let address = service::litecoin_address(swap, timelock, &hash);
        if self.book.conduct == Conduct::PaysDustFirst {
            for value in DUST {
                self.litecoin.pay(&address, value);
            }
            self.litecoin.mine(timelock);
        }
        let transaction = self.litecoin.pay(&address, amount.try_into().unwrap());
        let height = super::poll("the solver's payment", || {
            self.litecoin.outputs(&address).iter().find(|output| output.txid == transaction).map(|output| output.height)
        });
        (format!("{transaction}:{height}"), height)
    }

    /// Refunds the largest small output of the destination at a fee rate, and returns the transaction's id.
    pub fn refund_dust(&self, order: &Order, rate: u64) -> String {
        let outputs = self.litecoin.outputs(text(&order.record["destination_swap"], "swap_id"));
        let dust = outputs.into_iter().find(|output| output.value == DUST[0]).unwrap();
        let funding: Funding = format!("{}:{}:{}", dust.txid, dust.vout, dust.value).parse().unwrap();
        let payout = Payout::new([funding], self.litecoin.new_address().as_str(), Fee::Deducted(FeeRate::from_whole(rate)));
        let htlc = RecordedHtlc::new(&order.typed(), Leg::Destination, &self.book.pinned()).unwrap();
        self.send(htlc.refund(&payout.with_source(FundingSource::Chain)).unwrap())
    }

    fn send(&self, mut unsigned: UnsignedOrder) -> String {
        unsigned.sign(&SOLVER_KEY.parse::<Key>().unwrap()).unwrap();
        let transaction = unsigned.finish().unwrap().transactions().remove(0).native;
        self.litecoin.call("sendrawtransaction", json!([serialize_hex(&transaction)])).unwrap().as_str().unwrap().to_owned()
    }

    /// The terms that the solver pays by: timelock, amount, secret hash.
    fn terms(&self, swap: &Value) -> (u64, u128, String) {
        let (mut timelock, mut amount, mut hash) = (swap["timelock"].as_u64().unwrap(), units(swap), text(swap, "secret_hash").to_owned());
        match self.book.conduct {
            Conduct::PaysLess => amount -= 1,
            Conduct::PaysUnderOtherHash => hash = hex::encode(sha256::Hash::hash(b"a secret that nobody shows").to_byte_array()),
            Conduct::PaysForOneBlock => timelock = 1,
            _ => {}
        }
        (timelock, amount, hash)
    }

    fn evm_secret(&self, order: &Order) -> Option<([u8; 32], String)> {
        let (secret, transaction) = self.anvil.secret(&order.htlc, text(&order.record["destination_swap"], "swap_id"))?;
        Some((secret, transaction.trim_start_matches("0x").to_owned()))
    }

    fn litecoin_secret(&self, order: &Order) -> Option<([u8; 32], String)> {
        let swap = &order.record["destination_swap"];
        let (txid, _) = text(swap, "initiate_tx_hash").split_once(':').unwrap();
        // The redemption's witness: signature, secret, script, control block.
        let spend = self.litecoin.spender(txid, text(swap, "swap_id"))?;
        Some((spend.witness[1].clone().try_into().unwrap(), spend.txid))
    }

    fn redeem_evm(&self, order: &Order, secret: &[u8; 32]) -> String {
        let receipt = self.anvil.redeem(&order.htlc, text(&order.record["source_swap"], "swap_id"), secret);
        text(&receipt, "transactionHash").trim_start_matches("0x").to_owned()
    }

    fn redeem_litecoin(&self, order: &Order, secret: &[u8; 32]) -> String {
        let output = self.funding(&order.record["source_swap"]).unwrap();
        let funding: Funding = format!("{}:{}:{}", output.txid, output.vout, output.value).parse().unwrap();
        let payout = Payout::new([funding], self.litecoin.new_address().as_str(), Fee::Deducted(FeeRate::from_whole(5)));
        let htlc = RecordedHtlc::new(&order.typed(), Leg::Source, &self.book.pinned()).unwrap();
        self.send(htlc.redeem(secret, &payout).unwrap())
    }
}
