//! Gives arbitrary endpoint answers to the reader of this family's HTLCs.
#![no_main]

use std::sync::LazyLock;

use countersign::reader::{Answer, Request};
use countersign::{
    Family,
    evidence::{HtlcTerms, VerifiedTerms},
};
use countersign_fuzz::chains::order;
use countersign_fuzz::reader::{Chain, Orders, Story, read};
use countersign_testkit::chain;
use libfuzzer_sys::fuzz_target;

static ORDERS: LazyLock<Orders<Bitcoin>> = LazyLock::new(Orders::new);

fuzz_target!(|input: &[u8]| read(&ORDERS, input));

/// A Bitcoin or Litecoin chain, with an Esplora server and a node's RPC.
struct Bitcoin(chain::bitcoin::Ledger);

impl Chain for Bitcoin {
    const FAMILY: Family = Family::Bitcoin;
    const SECRET: [u8; 32] = chain::bitcoin::SECRET;
    const NOW: u64 = chain::bitcoin::NOW;
    const HAS_RPC: bool = true;

    fn orders() -> Vec<VerifiedTerms> {
        ["bitcoin", "litecoin"].into_iter().map(|coin| order(chain::bitcoin::terms(coin))).collect()
    }

    fn new(terms: &HtlcTerms, story: Story) -> Option<Self> {
        use chain::bitcoin::{AMOUNT, Ledger, SECRET, funding, outpoint, pay, spend};
        use countersign::bitcoin::bitcoin::{OutPoint, ScriptBuf};
        use countersign::bitcoin::htlc::Leaf;
        let mut ledger = Ledger::new();
        ledger.is_litecoin = terms.chain.starts_with("litecoin");
        // On Litecoin, the parents of the funding transaction are read too.
        let parent = pay(outpoint(8), &[vec![1; 64]], &[(2 * AMOUNT, ScriptBuf::new_op_return([8]))]);
        let mut transaction = funding(1, if story == Story::Less { AMOUNT - 1 } else { AMOUNT });
        transaction.input[0].previous_output = OutPoint { txid: parent.compute_txid(), vout: 0 };
        ledger.mempool.push(parent);
        if story != Story::Unfunded {
            ledger.mempool.push(transaction.clone());
        }
        ledger.mine(3);
        match story {
            Story::Redeemed => ledger.mempool.push(spend(&transaction, Leaf::Redeem, &SECRET)),
            Story::Refunded => ledger.mempool.push(spend(&transaction, Leaf::Refund, &SECRET)),
            _ => {}
        }
        ledger.mine(2);
        Some(Self(ledger))
    }

    /// The funding transaction is read and hashed, so a single answer cannot change what it pays.
    fn proves(_: &HtlcTerms) -> bool {
        true
    }

    fn answer(&self, request: &Request) -> Answer {
        self.0.answer(request)
    }
}
