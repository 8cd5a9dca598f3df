//! The Bitcoin-like chain: the testkit's ledger with real blocks, which are mined at their time.

use countersign_client::countersign::HtlcTerms;
use countersign_client::countersign::bitcoin::bitcoin::consensus::encode::serialize_hex;
use countersign_client::countersign::bitcoin::bitcoin::hashes::Hash as _;
use countersign_client::countersign::bitcoin::bitcoin::{OutPoint, ScriptBuf, Transaction};
use countersign_client::countersign::bitcoin::htlc::{Leaf, Tree};
use countersign_client::countersign::chains::taproot::Htlc;
use countersign_client::countersign::reader::{Answer, Request};
use countersign_testkit::chain::bitcoin::{Ledger, pay};

/// Seconds from block to block.
pub const BLOCK: u64 = 600;
/// Block 0 of Bitcoin's test network. The ledger's own is that of a regression test.
const GENESIS: &str = "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943";

/// A ledger whose newest block is never older than [`BLOCK`].
#[derive(Debug, Clone)]
pub struct Blocks {
    pub ledger: Ledger,
    tree: Tree,
    mined_until: u64,
}

impl Blocks {
    pub fn new(terms: &HtlcTerms, epoch: u64) -> Self {
        let key = |account: &countersign_client::countersign::Account| account.array().unwrap();
        let tree = Tree::new(Htlc {
            internal_key: key(terms.htlc.as_ref().unwrap()),
            initiator: key(&terms.initiator),
            redeemer: key(&terms.redeemer),
            secret_hash: terms.secret_hash.0,
            timelock: u16::try_from(terms.timelock).unwrap(),
        });
        let mut ledger = Ledger::new();
        ledger.blocks.truncate(1);
        let mut blocks = Self { ledger, tree: tree.unwrap(), mined_until: epoch - 3 * BLOCK };
        blocks.mine_until(epoch);
        blocks
    }

    /// Mines what is in the mempool, in a block for each ten minutes until a time.
    pub fn mine_until(&mut self, time: u64) {
        while self.mined_until + BLOCK <= time {
            self.mined_until += BLOCK;
            assert!(self.ledger.blocks.len() < 255, "the testkit's ledger is full");
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
    pub const fn next_block(&self) -> u64 {
        self.mined_until + BLOCK
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

    /// Takes the newest blocks back. Their transactions return to the mempool.
    pub fn reorganize(&mut self, depth: usize) {
        let keep = (self.ledger.blocks.len() - depth).max(3);
        let back: Vec<_> = self.ledger.blocks.drain(keep..).flat_map(|(_, all)| all.into_iter().skip(1)).collect();
        self.ledger.mempool.splice(0..0, back);
        self.mined_until -= BLOCK * depth as u64;
    }

    pub fn answer(&self, request: &Request, is_other_chain: bool) -> Answer {
        match request {
            Request::Get { path, .. } if &**path == "/block-height/0" && !is_other_chain => Answer::http(200, GENESIS.as_bytes()),
            _ => self.ledger.answer(request),
        }
    }

    fn funding(&self) -> Option<(OutPoint, Option<u64>)> {
        let script = self.tree.script_pubkey();
        let mined = self.ledger.blocks.iter().flat_map(|(header, all)| all.iter().map(|one| (Some(u64::from(header.time)), one)));
        let waiting = self.ledger.mempool.iter().map(|one| (None, one));
        mined.chain(waiting).find_map(|(at, transaction)| {
            let place = transaction.output.iter().position(|output| output.script_pubkey == script)?;
            Some((OutPoint { txid: transaction.compute_txid(), vout: u32::try_from(place).unwrap() }, at))
        })
    }

    /// Returns when the funding was mined.
    pub fn funded(&self) -> Option<u64> {
        self.funding()?.1
    }

    /// Returns the transaction that spends the funding, and when it was mined.
    pub fn spent(&self) -> Option<(&Transaction, Option<u64>)> {
        let (outpoint, _) = self.funding()?;
        let mined = self.ledger.blocks.iter().flat_map(|(header, all)| all.iter().map(|one| (one, Some(u64::from(header.time)))));
        let waiting = self.ledger.mempool.iter().map(|one| (one, None));
        mined.chain(waiting).find(|(one, _)| one.input.iter().any(|input| input.previous_output == outpoint))
    }

    /// Returns how many blocks deep the funding is.
    pub fn depth(&self) -> u64 {
        let at = self.funded();
        self.ledger.blocks.iter().filter(|(header, _)| at.is_some_and(|at| u64::from(header.time) >= at)).count() as u64
    }

    /// Returns a transaction that spends the funding by a leaf. `mark` makes it differ from others.
    pub fn spend(&self, leaf: Leaf, secret: &[u8], mark: u64) -> Option<(Transaction, String)> {
        let (outpoint, _) = self.funding()?;
        let mut items = vec![vec![1; 64]];
        if leaf == Leaf::Redeem {
            items.push(secret.to_vec());
        }
        items.extend([self.tree.script(leaf).into_bytes(), self.tree.control_block(leaf)]);
        let transaction = pay(outpoint, &items, &[(1_000 + mark, ScriptBuf::new_op_return(mark.to_be_bytes()))]);
        let hex = serialize_hex(&transaction);
        Some((transaction, hex))
    }

    pub fn is_redemption(transaction: &Transaction) -> bool {
        transaction.input[0].witness.len() == 4
    }

    /// Takes a transaction, unless it spends what is spent.
    pub fn send(&mut self, hex: &str) -> bool {
        let bytes: Transaction = countersign_client::countersign::bitcoin::bitcoin::consensus::encode::deserialize_hex(hex).unwrap();
        let id = bytes.compute_txid();
        debug_assert_ne!(id.to_byte_array(), [0; 32]);
        let mut all = self.ledger.blocks.iter().flat_map(|(_, all)| all).chain(&self.ledger.mempool);
        let is_spent =
            all.any(|one| one.input.iter().any(|input| bytes.input.iter().any(|own| own.previous_output == input.previous_output)));
        if !is_spent {
            self.ledger.send(hex);
        }
        !is_spent
    }
}
