//! The Bitcoin-like chain: the testkit's ledger with real blocks, which are mined at their time.

use countersign_client::countersign::bitcoin::bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use countersign_client::countersign::bitcoin::bitcoin::{OutPoint, ScriptBuf, Transaction};
use countersign_client::countersign::bitcoin::htlc::{Leaf, Tree};
use countersign_client::countersign::chains::taproot::Htlc;
use countersign_client::countersign::evidence::HtlcTerms;
use countersign_client::countersign::reader::{Answer, Request};
use countersign_testkit::chain::bitcoin::{Ledger, outpoint, pay};

use countersign_testkit::chain::view::Turn;

/// Block 0 of Bitcoin's and Litecoin's networks. The ledger's own is that of a regression test.
const GENESIS: [(&str, &str); 4] = [
    ("bitcoin", "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"),
    ("bitcoin_testnet", "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943"),
    ("litecoin", "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2"),
    ("litecoin_testnet", "4966625a4b2851d9fdee139e56211a0d88575f59ed816ff5e6a63deb4e3e29a0"),
];

/// The blocks that exist when the world begins.
const BEGINNING: u64 = 60;
/// The solver's dust at the HTLC's address in addition to its payment, in base units.
const DUST: u64 = 330;

/// A ledger whose newest block is never older than the time from block to block.
#[derive(Debug, Clone)]
pub struct Blocks {
    pub ledger: Ledger,
    tree: Tree,
    genesis: &'static str,
    amount: u64,
    timelock: u64,
    /// Seconds from block to block, and from when on they are others.
    seconds: u64,
    turn: Option<(u64, u64)>,
    mined_until: u64,
}

impl Blocks {
    /// Creates the chain of an HTLC. With `has_dust`, its address holds dust whose refund is already valid.
    pub fn new(terms: &HtlcTerms, epoch: u64, turn: Option<Turn>, has_dust: bool) -> Self {
        let seconds = terms.pace.nominal / 1_000;
        let turn = turn.map(|turn| (epoch + turn.after, turn.of(seconds)));
        let key = |account: &countersign_client::countersign::chains::Account| account.array().unwrap();
        let tree = Tree::new(Htlc {
            internal_key: key(terms.htlc.as_ref().unwrap()),
            initiator: key(&terms.initiator),
            redeemer: key(&terms.redeemer),
            secret_hash: terms.secret_hash.0,
            timelock: u16::try_from(terms.timelock).unwrap(),
        });
        let mut ledger = Ledger::new();
        ledger.blocks.truncate(1);
        let genesis = GENESIS.iter().find(|(chain, _)| *chain == terms.chain).unwrap().1;
        let (amount, timelock) = (terms.amount.try_into().unwrap(), terms.timelock);
        let mut blocks =
            Self { ledger, tree: tree.unwrap(), genesis, amount, timelock, seconds, turn, mined_until: epoch - BEGINNING * seconds };
        if has_dust {
            blocks.pay(1, DUST);
        }
        blocks.mine_until(epoch);
        blocks
    }

    /// Mines the transactions in the mempool, block after block until a time.
    pub fn mine_until(&mut self, time: u64) {
        while self.next_block() <= time {
            self.mined_until = self.next_block();
            self.ledger.mine(1);
            self.date_head(self.mined_until);
        }
    }

    /// Sets the time of the newest block.
    fn date_head(&mut self, time: u64) {
        let (header, _) = self.ledger.blocks.last_mut().unwrap();
        header.time = u32::try_from(time).unwrap();
        while !header.target().is_met_by(header.block_hash()) {
            header.nonce += 1;
        }
    }

    /// Returns the same chain with a newest block that is this much later than it is, or earlier.
    pub fn with_head_off(mut self, seconds: i64) -> Self {
        let time = self.ledger.blocks.last().unwrap().0.time;
        self.date_head(u64::from(time).saturating_add_signed(seconds));
        self
    }

    /// Returns the time of the next block.
    pub fn next_block(&self) -> u64 {
        let turned = self.turn.filter(|(from, _)| *from <= self.mined_until);
        self.mined_until + turned.map_or(self.seconds, |(_, seconds)| seconds)
    }

    /// Returns the time of the newest block.
    pub const fn last_block(&self) -> u64 {
        self.mined_until
    }

    /// Returns the chain as it was at a time.
    pub fn at(&self, time: u64) -> Self {
        let mut old = self.clone();
        let is_newer = |blocks: &Self| blocks.ledger.blocks.last().is_some_and(|(header, _)| u64::from(header.time) > time);
        while old.ledger.blocks.len() > 2 && is_newer(&old) {
            old.ledger.blocks.pop();
            old.ledger.mempool.clear();
        }
        old
    }

    /// Pays the HTLC's address. `mark` makes the payment differ from others.
    pub fn pay(&mut self, mark: u8, value: u64) {
        self.ledger.mempool.push(pay(outpoint(mark), &[vec![1; 64]], &[(value, self.tree.script_pubkey())]));
    }

    /// Sends the payment of the terms, or of one unit less.
    pub fn fund(&mut self, is_short: bool) {
        self.pay(2, self.amount - u64::from(is_short));
    }

    /// Sends dust in addition to the payment.
    pub fn pay_dust(&mut self) {
        self.pay(3, DUST);
    }

    /// Refunds the dust that is old enough. Whatever spends it beside something else leaves the mempool.
    pub fn take_dust(&mut self) {
        let dust: Vec<_> = self.outputs().filter(|(_, value, _)| *value == DUST).collect();
        for (outpoint, _, at) in dust {
            if self.depth_of(at) >= self.timelock
                && let (refund, _) = self.spend_output(outpoint, Leaf::Refund, &[], 3)
                && !self.ledger.blocks.iter().any(|(_, all)| all.iter().any(|one| spends(one, outpoint)))
            {
                self.ledger.send(&serialize_hex(&refund));
            }
        }
    }

    /// Takes the newest blocks back. Their transactions return to the mempool.
    pub fn reorganize(&mut self, depth: usize) {
        let keep = self.ledger.blocks.len() - depth;
        let back: Vec<_> = self.ledger.blocks.drain(keep..).flat_map(|(_, all)| all.into_iter().skip(1)).collect();
        self.ledger.mempool.splice(0..0, back);
        self.mined_until = self.ledger.blocks.last().unwrap().0.time.into();
    }

    /// Lets the mempools forget the redemptions.
    pub fn forget_redemptions(&mut self) {
        self.ledger.mempool.retain(|one| !Self::is_redemption(one));
    }

    pub fn answer(&self, request: &Request, is_other_chain: bool) -> Answer {
        match request {
            Request::Get { path, .. } if &**path == "/block-height/0" && !is_other_chain => Answer::http(200, self.genesis.as_bytes()),
            _ => self.ledger.answer(request),
        }
    }

    /// Returns the outputs of the HTLC's address, and when they were mined.
    fn outputs(&self) -> impl Iterator<Item = (OutPoint, u64, Option<u64>)> {
        let script = self.tree.script_pubkey();
        let mined = self.ledger.blocks.iter().flat_map(|(header, all)| all.iter().map(|one| (Some(u64::from(header.time)), one)));
        let waiting = self.ledger.mempool.iter().map(|one| (None, one));
        mined.chain(waiting).filter_map(move |(at, transaction)| {
            let place = transaction.output.iter().position(|output| output.script_pubkey == script)?;
            let outpoint = OutPoint { txid: transaction.compute_txid(), vout: u32::try_from(place).unwrap() };
            Some((outpoint, transaction.output[place].value.to_sat(), at))
        })
    }

    fn funding(&self) -> Option<(OutPoint, u64, Option<u64>)> {
        self.outputs().find(|(_, value, _)| *value != DUST)
    }

    /// Returns whether the payment was sent.
    pub fn is_paid(&self) -> bool {
        self.funding().is_some()
    }

    /// Returns when the funding was mined.
    pub fn funded(&self) -> Option<u64> {
        self.funding()?.2
    }

    /// Returns the transaction that spends the funding, and when it was mined.
    pub fn spent(&self) -> Option<(&Transaction, Option<u64>)> {
        let (outpoint, ..) = self.funding()?;
        let mined = self.ledger.blocks.iter().flat_map(|(header, all)| all.iter().map(|one| (one, Some(u64::from(header.time)))));
        let waiting = self.ledger.mempool.iter().map(|one| (one, None));
        mined.chain(waiting).find(|(one, _)| spends(one, outpoint))
    }

    /// Returns whether the payment is of less than the terms.
    pub fn is_short(&self) -> bool {
        self.funding().is_some_and(|(_, value, _)| value < self.amount)
    }

    /// Returns how many blocks deep the funding is.
    pub fn depth(&self) -> u64 {
        self.depth_of(self.funded())
    }

    /// Returns how many blocks there are from a time on.
    pub fn depth_of(&self, at: Option<u64>) -> u64 {
        self.ledger.blocks.iter().filter(|(header, _)| at.is_some_and(|at| u64::from(header.time) >= at)).count() as u64
    }

    /// Returns a transaction that spends the funding by a leaf. `mark` makes it differ from others.
    pub fn spend(&self, leaf: Leaf, secret: &[u8], mark: u64) -> Option<(Transaction, String)> {
        let (outpoint, ..) = self.funding()?;
        Some(self.spend_output(outpoint, leaf, secret, mark))
    }

    fn spend_output(&self, outpoint: OutPoint, leaf: Leaf, secret: &[u8], mark: u64) -> (Transaction, String) {
        let mut items = vec![vec![1; 64]];
        if leaf == Leaf::Redeem {
            items.push(secret.to_vec());
        }
        items.extend([self.tree.script(leaf).into_bytes(), self.tree.control_block(leaf)]);
        let transaction = pay(outpoint, &items, &[(100, ScriptBuf::new_op_return(mark.to_be_bytes()))]);
        let hex = serialize_hex(&transaction);
        (transaction, hex)
    }

    pub fn is_redemption(transaction: &Transaction) -> bool {
        transaction.input[0].witness.len() == 4
    }

    /// Accepts a transaction, unless an input is already spent.
    pub fn send(&mut self, hex: &str) -> bool {
        let transaction: Transaction = deserialize_hex(hex).unwrap();
        let mut all = self.ledger.blocks.iter().flat_map(|(_, all)| all).chain(&self.ledger.mempool);
        let is_spent = all.any(|one| transaction.input.iter().any(|input| spends(one, input.previous_output)));
        let is_known = self.ledger.mempool.iter().any(|one| one.compute_txid() == transaction.compute_txid());
        if !is_spent {
            self.ledger.send(hex);
        }
        !is_spent || is_known
    }
}

fn spends(transaction: &Transaction, outpoint: OutPoint) -> bool {
    transaction.input.iter().any(|input| input.previous_output == outpoint)
}
