//! Bitcoin and Litecoin: blocks, a mempool, and the interface of an Esplora server.
//!
//! Bitcoin Core's verifier judges scripts and signatures with every consensus flag, including taproot. The mempool
//! follows Core's rules. There are three differences from the real networks. Headers have the work of a regtest
//! network, so clients that measure work refuse Bitcoin's main network. As on a pruned node, there are no headers
//! between block 0 and the chain's first own block, nor inside a long run of empty blocks. Coinbase outputs can be
//! spent immediately.
//!
//! Alternatively, Litecoin's node validates transactions and makes blocks ([`Bitcoin::beside_litecoind`]). The
//! interface for Esplora's clients is then an index next to the node, like any Esplora server.

mod esplora;
mod htlc;
mod ledger;
mod lies;
mod litecoind;
mod mempool;
mod network;
mod shapes;
mod solver;

use std::path::Path;
use std::sync::Arc;

use bitcoin::key::Secp256k1;
use bitcoin::secp256k1::{All, schnorr};
use bitcoin::{Amount, TxOut, Txid, taproot};
use serde_json::{Map, Value, json};

use self::htlc::Leaf;
use self::ledger::{Block, Entry, Ledger};
use self::litecoind::Litecoind;
use self::network::Network;
use self::solver::{Holder, SINGLE, base_units};
use super::family::Family;
use super::{Change, Engine, Event, Leg, Listing, Terms};
use crate::accounts;
use crate::clock::Clock;
use crate::http::{Reply, Request};

pub(super) const FAMILY: Family = Family {
    prefixes: &["bitcoin", "litecoin"],
    local: &[("bitcoin_regtest", "bitcoin:regtest")],
    start: |start| {
        Ok(Box::new(match &start.nodes.litecoind {
            Some(program) if start.name == LITECOIND => Bitcoin::beside_litecoind(program, start.clock)?,
            _ => Bitcoin::new(start.name, start.id, start.clock)?,
        }))
    },
    tour: &[["bitcoin_testnet:btc", "base_sepolia:usdc"], ["ethereum_sepolia:eth", "bitcoin_testnet:btc"]],
    lies: lies::LIES,
    variants: &[],
    interface: &lies::Esplora,
};

/// The account that pays what users are given.
const FAUCET: &str = "faucet";
/// The initial coins of the accounts: role, number of coins, and whole coins in each. With many coins, many payments
/// can be pending at once.
const COINS: [(&str, usize, u64); 3] = [(accounts::SOLVER, 300, 100), (accounts::RELAYER, 50, 100), (FAUCET, 20, 500_000)];
/// The same with litecoind, where coins are mined. A regtest network yields only about 15,000 of them.
const MINED: [(&str, usize, u64); 3] = [(accounts::SOLVER, 300, 10), (accounts::RELAYER, 50, 2), (FAUCET, 20, 400)];
/// The coins that a user starts with on such a network.
const MAX_ENDOWMENT: u128 = 100;
/// The chain that litecoind can serve.
pub(crate) const LITECOIND: &str = "litecoin_regtest";

/// A Bitcoin-like chain.
#[derive(Debug)]
pub struct Bitcoin {
    ledger: Ledger,
    clock: Arc<Clock>,
    secp: Secp256k1<All>,
}

impl Bitcoin {
    /// Returns a new chain: `name` as in asset ids, for example `litecoin` or `bitcoin_regtest`, and `id` as in the registry, for example
    /// `litecoin:mainnet`. The solver and the relayer have coins.
    ///
    /// # Errors
    ///
    /// `id` is not a network of Bitcoin or Litecoin.
    pub fn new(name: &str, id: &str, clock: Arc<Clock>) -> Result<Self, String> {
        let (network, secp) = (Network::new(name, id)?, Secp256k1::new());
        let ledger = Ledger::new(network, coins(&secp, COINS)?, clock.seconds());
        Ok(Self { ledger, clock, secp })
    }

    /// Starts Litecoin's node, and returns the chain `litecoin_regtest` with it in place of the sandbox's own rules.
    /// The node stops when this is dropped.
    ///
    /// All coins are mined, so accounts have fewer. At most a thousand blocks are made at once.
    ///
    /// # Errors
    ///
    /// The program does not start, or is not a Litecoin node.
    pub fn beside_litecoind(program: &Path, clock: Arc<Clock>) -> Result<Self, String> {
        let (network, secp) = (Network::new(LITECOIND, "litecoin:regtest")?, Secp256k1::new());
        let faucet = Holder::new(&secp, &accounts::key(FAUCET))?;
        let address = network.address(&faucet.script).unwrap_or_default();
        let node = Litecoind::start(program, &address, clock.seconds())?;
        let mut engine = Self { ledger: Ledger::genesis(network, Some(node)), clock, secp };
        engine.ledger.follow().map_err(|error| error.to_string())?;
        let split = engine.payment(&faucet, coins(&engine.secp, MINED)?, false)?;
        let txid = engine.ledger.accept(split).map_err(|rejection| rejection.message)?;
        engine.ledger.mine_only(txid, engine.clock.seconds())?;
        engine.ledger.begin();
        Ok(engine)
    }

    fn check_asset(&self, asset: &str) -> Result<(), String> {
        if asset == self.ledger.network.asset() { Ok(()) } else { Err(format!("{asset} is not an asset of this chain")) }
    }

    /// Returns the effects of a block on swaps. The caller knows which addresses belong to swaps.
    fn read(&self, block: &Block) -> Vec<Event> {
        let height = block.height;
        let entries = block.txids.iter().skip(1).filter_map(|txid| Some((txid, self.ledger.entries.get(txid)?)));
        let changes = entries.flat_map(|(txid, entry)| self.changes(entry).into_iter().map(move |change| (txid, change)));
        let event = |(txid, (swap_id, change)): (&Txid, (String, Change))| {
            let is_funding = matches!(change, Change::Initiated { .. });
            let transaction = if is_funding { format!("{txid}:{height}") } else { txid.to_string() };
            Event { swap_id, transaction, height: height.into(), change }
        };
        changes.map(event).collect()
    }

    fn changes(&self, entry: &Entry) -> Vec<(String, Change)> {
        let address = |output: &TxOut| self.ledger.network.address(&output.script_pubkey).filter(|_| output.script_pubkey.is_p2tr());
        let spends = entry.transaction.input.iter().zip(&entry.prevouts);
        let ends = spends.filter_map(|(input, prevout)| Some((address(prevout)?, htlc::change(&input.witness)?)));
        let payments = entry.transaction.output.iter().filter_map(|output| {
            let amount = output.value.to_sat().into();
            Some((address(output)?, Change::Initiated { amount }))
        });
        ends.chain(payments).collect()
    }
}

/// Returns outputs to accounts. A share is a role, a number of outputs, and the whole coins in each.
fn coins(secp: &Secp256k1<All>, shares: [(&str, usize, u64); 3]) -> Result<Vec<TxOut>, String> {
    let mut outputs = Vec::new();
    for (role, count, coins) in shares {
        let value = Amount::from_sat(coins.saturating_mul(Amount::ONE_BTC.to_sat()));
        let output = TxOut { value, script_pubkey: Holder::new(secp, &accounts::key(role))?.script };
        outputs.extend(std::iter::repeat_n(output, count));
    }
    Ok(outputs)
}

impl Engine for Bitcoin {
    fn listing(&self) -> Listing {
        let solver = self.holder(accounts::SOLVER).map(|solver| solver.x_only.to_string()).unwrap_or_default();
        self.ledger.network.listing(solver)
    }

    fn address_of(&self, key: &[u8; 32]) -> String {
        let script = Holder::new(&self.secp, key).ok().map(|holder| holder.script);
        script.and_then(|script| self.ledger.network.address(&script)).unwrap_or_default()
    }

    /// Makes a block that contains only the payment.
    fn fund(&mut self, account: &str, asset: &str, amount: u128) -> Result<(), String> {
        self.check_asset(asset)?;
        let script_pubkey = self.ledger.network.script(account).map_err(|error| error.to_string())?;
        let output = TxOut { value: base_units(amount)?, script_pubkey };
        let payment = self.payment(&self.holder(FAUCET)?, vec![output], false)?;
        let txid = self.ledger.accept(payment).map_err(|rejection| rejection.message)?;
        self.ledger.mine_only(txid, self.clock.seconds())
    }

    fn max_endowment(&self) -> u128 {
        if self.ledger.node.is_some() { MAX_ENDOWMENT } else { u128::MAX }
    }

    fn balance(&self, account: &str, asset: &str) -> Result<u128, String> {
        self.check_asset(asset)?;
        let script = self.ledger.network.script(account).map_err(|error| error.to_string())?;
        Ok(self.ledger.balance(&script).into())
    }

    fn leg(&self, terms: &Terms) -> Result<Leg, String> {
        let htlc = self.htlc(terms)?;
        if !(terms.is_source && terms.owner.is_empty()) {
            self.ledger.network.script(&terms.owner).map_err(|error| format!("invalid address: {error}"))?;
        }
        let dust = htlc.script_pubkey().minimal_non_dust_custom(self.ledger.network.dust_rate());
        if base_units(terms.amount)? < dust {
            return Err("the amount is dust".to_owned());
        }
        let swap_id = self.ledger.network.address(&htlc.script_pubkey()).unwrap_or_default();
        let (user, solver) = (self.user_key(terms)?.to_string(), self.holder(accounts::SOLVER)?.x_only.to_string());
        let owner = if terms.owner.is_empty() { user.clone() } else { terms.owner.clone() };
        let (initiator, redeemer) = if terms.is_source { (owner, solver) } else { (solver, owner) };
        Ok(Leg { swap_id, initiator, redeemer, delegate: Some(user) })
    }

    fn payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String> {
        let to = self.leg(terms)?.swap_id;
        Ok(Map::from_iter([("to".to_owned(), json!(to)), ("amount".to_owned(), json!(terms.amount.to_string()))]))
    }

    fn initiate(&mut self, _: &Terms, _: &str) -> Result<String, String> {
        Err("a payment to the address funds the order".to_owned())
    }

    /// Pays the HTLC. The solver's side is paid from the solver's coins, a user's side from the relayer's.
    fn lock(&mut self, terms: &Terms) -> Result<String, String> {
        let script_pubkey = self.htlc(terms)?.script_pubkey();
        let payer = self.holder(if terms.is_source { accounts::RELAYER } else { accounts::SOLVER })?;
        let payment = self.payment(&payer, vec![TxOut { value: base_units(terms.amount)?, script_pubkey }], true)?;
        self.submit(payment)
    }

    fn redeem(&mut self, terms: &Terms, secret: &[u8; 32]) -> Result<String, String> {
        let (htlc, by, to) = self.spender(terms, terms.is_source)?;
        let coins = self.deposits(&htlc, terms.amount)?;
        if coins.iter().map(|(_, output)| u128::from(output.value.to_sat())).fold(0, u128::saturating_add) < terms.amount {
            return Err("too little is locked at the address".to_owned());
        }
        let transaction = self.by_leaf(&htlc, Leaf::Redeem, &coins, &by, Some(secret), to)?;
        self.submit(transaction)
    }

    fn refund(&mut self, terms: &Terms) -> Result<String, String> {
        let (htlc, by, to) = self.spender(terms, !terms.is_source)?;
        let coins = self.deposits(&htlc, terms.amount)?;
        let transaction = self.by_leaf(&htlc, Leaf::Refund, &coins, &by, None, to)?;
        self.submit(transaction)
    }

    fn instant_refund_hashes(&self, terms: &Terms) -> Result<Vec<String>, String> {
        Ok(self.instant(terms)?.3.iter().map(|digest| hex::encode(digest.as_ref())).collect())
    }

    /// Completes an instant refund. The solver adds its signatures and pays the fee with its own coin.
    fn instant_refund(&mut self, terms: &Terms, signatures: &[String]) -> Result<String, String> {
        let (htlc, mut transaction, prevouts, digests) = self.instant(terms)?;
        let (user, solver) = (self.user_key(terms)?, self.holder(accounts::SOLVER)?);
        if signatures.len() != digests.len() {
            return Err(format!("{} signatures are needed", digests.len()));
        }
        for ((input, digest), text) in transaction.input.iter_mut().zip(&digests).zip(signatures) {
            let bytes = hex::decode(text).unwrap_or_default();
            let signature = bytes.strip_suffix(&[0x83]).and_then(|bytes| schnorr::Signature::from_slice(bytes).ok());
            let is_valid = |signature: &schnorr::Signature| self.secp.verify_schnorr(signature, digest, &user).is_ok();
            let theirs = signature.filter(is_valid).ok_or("a signature is not the owner's, with hash type 83")?;
            let ours = self.secp.sign_schnorr_no_aux_rand(digest, &solver.pair);
            let [ours, theirs] = [ours, theirs].map(|signature| taproot::Signature { signature, sighash_type: SINGLE }.to_vec());
            // The script checks the initiator's signature first, so it is the last item before the script.
            input.witness = htlc.witness(Leaf::InstantRefund, &[&ours, &theirs]);
        }
        let transaction = self.with_coins(&solver, transaction, &prevouts, true)?;
        self.submit(transaction)
    }

    fn mine(&mut self, blocks: u64) {
        self.ledger.mine(blocks, self.clock.seconds());
    }

    fn reorganize(&mut self, depth: u64) -> Result<(), String> {
        self.ledger.take_back(depth)
    }

    fn height(&self) -> u64 {
        self.ledger.height().into()
    }

    fn pending(&self) -> usize {
        self.ledger.waiting.len()
    }

    fn depth(&self) -> u64 {
        self.ledger.network.confirmations().saturating_sub(1)
    }

    fn interval(&self) -> u64 {
        self.ledger.network.interval().saturating_mul(1_000)
    }

    fn events(&mut self) -> Vec<Event> {
        let unread = self.ledger.blocks.range(self.ledger.unread..);
        let events = unread.flat_map(|(_, block)| self.read(block)).collect();
        self.ledger.unread = self.ledger.next();
        events
    }

    fn answer(&mut self, request: &Request) -> Reply {
        esplora::answer(&mut self.ledger, request)
    }
}
