//! The unspent outputs of a script, and the coins of a wallet.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use bitcoin::{Amount, OutPoint, ScriptBuf, TxOut, Txid};
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Reply, Request, Turn};
use countersign_core::{BlockHeight, Code, Refusal, U256, sort};

use super::esplora::History;
use super::look::{self, Claim};
use super::{OnChain, esplora, parse, rpc};
use crate::recover::Funding;
use crate::transaction::{Utxo, sum};

/// The maximum number of outputs of a script that are used. The most valuable ones are chosen.
const MAX_COINS: usize = 200;

/// The maximum number of outputs that a server is asked about one by one, because it refuses to list the unspent ones. The most valuable
/// ones are chosen.
const MAX_ASKED: usize = 50;

/// Reads the confirmed outputs to a script that neither a block nor the mempool spends.
///
/// A server that refuses to list them, because there are too many, is asked for the history of the script.
#[derive(Debug)]
pub struct Unspent {
    subject: OnChain<ScriptBuf>,
    state: State,
    found: Vec<Claim>,
}

#[derive(Debug)]
enum State {
    Esplora,
    EsploraHistory { pages: usize },
    EsploraSpent,
    RpcScan,
    RpcOutputs,
}

/// The confirmed unspent outputs to a script, the most valuable first: at most 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs(pub Vec<ConfirmedOutput>);

/// An unspent output in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfirmedOutput {
    /// The outpoint and the value.
    pub funding: Funding,
    /// The height of its block.
    pub height: BlockHeight,
}

impl ConfirmedOutput {
    /// Creates an output that was mined at a height.
    #[must_use]
    pub const fn new(funding: Funding, height: BlockHeight) -> Self {
        Self { funding, height }
    }

    const fn key(&self) -> (OutPoint, Amount, BlockHeight) {
        (self.funding.outpoint, self.funding.value, self.height)
    }
}

impl Outputs {
    /// Returns the sum of the outputs.
    #[must_use]
    pub fn sum(&self) -> Amount {
        sum(self.0.iter().map(|output| output.funding.value))
    }

    /// Returns the outputs that at least `needed` of the lists show, the most valuable first.
    #[must_use]
    pub fn agreed<'o>(lists: impl IntoIterator<Item = &'o Self>, needed: usize) -> Self {
        let mut agreed = shown_by(lists.into_iter().map(|list| list.0.as_slice()), needed, ConfirmedOutput::key);
        sort::by(&mut agreed, |one, other| most_valuable_first(&one.funding, &other.funding));
        Self(agreed)
    }

    /// Returns the output that covers `amount` and was mined first.
    #[must_use]
    pub fn covering(&self, amount: Amount) -> Option<Funding> {
        let claim = |output: &ConfirmedOutput| {
            let ConfirmedOutput { funding, height } = *output;
            Claim { funding, height: Some(height), hash: None, is_unspent: true }
        };
        let claims: Vec<_> = self.0.iter().map(claim).collect();
        look::choose(&claims, U256::from(amount.to_sat())).map(|claim| claim.funding)
    }
}

fn most_valuable_first(one: &Funding, other: &Funding) -> Ordering {
    other.value.cmp(&one.value).then_with(|| one.outpoint.cmp(&other.outpoint))
}

/// Returns the entries that at least `needed` of the lists show. A list that shows an entry twice counts once.
fn shown_by<'l, E: Clone + 'l, K: Ord>(lists: impl Iterator<Item = &'l [E]>, needed: usize, key: impl Fn(&E) -> K) -> Vec<E> {
    let mut shown: BTreeMap<K, (&E, usize)> = BTreeMap::new();
    for list in lists {
        for (key, entry) in sort::map(list.iter().map(|entry| (key(entry), entry))) {
            let (_, count) = shown.entry(key).or_insert((entry, 0));
            *count = count.saturating_add(1);
        }
    }
    shown.into_values().filter(|(_, count)| *count >= needed).map(|(entry, _)| entry.clone()).collect()
}

impl Agree for Outputs {
    type Key = ();

    /// Anybody can add an output, so lists need not be equal: each output, or their sum, is a question to each endpoint alone.
    fn key(&self) {}
}

impl Unspent {
    fn new(subject: &OnChain<ScriptBuf>, known: &Known) -> (Self, Vec<Request>) {
        let (state, request) = if known.is_rpc() {
            (State::RpcScan, rpc::scan(&subject.subject))
        } else {
            (State::Esplora, esplora::unspent(&subject.subject))
        };
        (Self { subject: subject.clone(), state, found: Vec::new() }, vec![request])
    }

    const fn is_rpc(&self) -> bool {
        matches!(self.state, State::RpcScan | State::RpcOutputs)
    }

    /// Reads the replies of a round; `Done` leaves the outputs in `found`.
    fn read(&mut self, replies: &Replies<'_>) -> Result<Turn<()>, Fault> {
        match self.state {
            State::Esplora => match esplora::read_unspent(&replies.get(0)?)? {
                Some(found) => {
                    self.found = found;
                    self.sort(MAX_COINS)?;
                }
                None => return Ok(self.ask_page(0, None)),
            },
            State::EsploraHistory { pages } => {
                let History { claims, last, mined } = esplora::read_history(replies.json(0)?, &self.subject.subject)?;
                self.found.extend(claims);
                // A block on one page may also begin the next one.
                sort::by(&mut self.found, |one, other| one.funding.outpoint.cmp(&other.funding.outpoint));
                self.found.dedup_by_key(|claim| claim.funding.outpoint);
                self.sort(MAX_ASKED)?;
                let next = last.filter(|_| mined >= esplora::FULL_PAGE && pages < esplora::MAX_PAGES);
                if next.is_some() {
                    return Ok(self.ask_page(pages.saturating_add(1), next));
                }
                if !self.found.is_empty() {
                    self.state = State::EsploraSpent;
                    return Ok(Turn::Ask(self.found.iter().map(|claim| esplora::outspend(claim.funding.outpoint)).collect()));
                }
            }
            State::EsploraSpent => {
                let mut unspent = Vec::new();
                for (claim, reply) in self.found.iter().zip(replies.all()) {
                    if esplora::read_outspend(reply.json()?)?.is_none() {
                        unspent.push(Claim { is_unspent: true, ..*claim });
                    }
                }
                self.found = unspent;
            }
            State::RpcScan => {
                (_, self.found) = rpc::read_scan(replies.json(0)?)?;
                self.sort(MAX_COINS)?;
                if !self.found.is_empty() {
                    let ask =
                        |claim: &Claim| [rpc::output(claim.funding.outpoint, true), rpc::block_hash(claim.height.unwrap_or_default())];
                    self.state = State::RpcOutputs;
                    return Ok(Turn::Ask(self.found.iter().flat_map(ask).collect()));
                }
            }
            State::RpcOutputs => {
                let mut unspent = Vec::new();
                for (claim, pair) in self.found.iter().zip(replies.all().chunks(2)) {
                    let [output, hash] = pair else { break };
                    // The mempool spends the others.
                    if let Some(value) = rpc::read_value(output.json()?)? {
                        rpc::check_value(value, claim.funding)?;
                        unspent.push(Claim { hash: Some(parse::block_hash(&hash.json()?)?), ..*claim });
                    }
                }
                self.found = unspent;
            }
        }
        Ok(Turn::Done(()))
    }

    /// Asks for a page of the history.
    fn ask_page(&mut self, pages: usize, after: Option<Txid>) -> Turn<()> {
        self.state = State::EsploraHistory { pages };
        Turn::Ask(vec![esplora::history(&self.subject.subject, after)])
    }

    /// Keeps the most valuable confirmed outputs.
    fn sort(&mut self, max: usize) -> Result<(), Refusal> {
        self.found.retain(|claim| claim.height.is_some());
        sort::by(&mut self.found, |one, other| most_valuable_first(&one.funding, &other.funding));
        self.found.truncate(max);
        let total = sum(self.found.iter().map(|claim| claim.funding.value));
        if total > self.subject.chain.chain.supply() {
            return Err(Refusal::new(Code::AmountAboveSupply, "").with_actual(total.to_sat()));
        }
        Ok(())
    }
}

impl Machine for Unspent {
    type Subject = OnChain<ScriptBuf>;
    type Output = Outputs;
    /// Two, and one for each page of the history of a script with too many outputs.
    const MAX_ROUNDS: usize = esplora::MAX_PAGES.saturating_add(3);

    fn start(subject: &Self::Subject, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        Ok(Self::new(subject, known))
    }

    fn identity(&self) -> Identity {
        self.subject.chain.identity(self.is_rpc())
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Outputs>, Fault> {
        Ok(match self.read(replies)? {
            Turn::Ask(requests) => Turn::Ask(requests),
            Turn::Done(()) => {
                let output = |claim: &Claim| Some(ConfirmedOutput { funding: claim.funding, height: claim.height? });
                Turn::Done(Outputs(self.found.iter().filter_map(output).collect()))
            }
        })
    }
}

/// Reads the coins of a wallet: what [`Unspent`] reads, with the transactions that created the outputs, which prove the amounts.
///
/// Taproot coins come without it, because a taproot signature commits to the amount and is invalid if the amount is wrong.
#[derive(Debug)]
pub struct Coins {
    unspent: Unspent,
    /// Whether the transactions have been asked for.
    has_asked: bool,
}

/// The coins that an endpoint lists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a list")]
pub struct ListedCoins(pub Vec<Utxo>);

impl ListedCoins {
    /// Returns the coins that at least `needed` of the lists show, the most valuable first.
    #[must_use]
    pub fn agreed<'l>(lists: impl IntoIterator<Item = &'l Self>, needed: usize) -> Self {
        let key = |coin: &Utxo| (Reverse(coin.output().value), coin.outpoint());
        Self(shown_by(lists.into_iter().map(|list| list.0.as_slice()), needed, key))
    }
}

impl Agree for ListedCoins {
    type Key = ();

    /// Each coin is a question to each endpoint alone.
    fn key(&self) {}
}

impl Machine for Coins {
    type Subject = OnChain<ScriptBuf>;
    type Output = ListedCoins;
    const MAX_ROUNDS: usize = Unspent::MAX_ROUNDS.saturating_add(1);

    fn start(subject: &Self::Subject, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let (unspent, requests) = Unspent::new(subject, known);
        Ok((Self { unspent, has_asked: false }, requests))
    }

    fn identity(&self) -> Identity {
        Machine::identity(&self.unspent)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<ListedCoins>, Fault> {
        if self.has_asked {
            return self.coins(replies.all()).map(ListedCoins).map(Turn::Done);
        }
        if let Turn::Ask(requests) = self.unspent.read(replies)? {
            return Ok(Turn::Ask(requests));
        }
        let Unspent { found, subject, .. } = &self.unspent;
        if found.is_empty() || subject.subject.is_p2tr() {
            return self.coins(&[]).map(ListedCoins).map(Turn::Done);
        }
        self.has_asked = true;
        let is_rpc = self.unspent.is_rpc();
        let raw = |claim: &Claim| {
            let txid = claim.funding.outpoint.txid;
            if is_rpc { rpc::transaction(txid, claim.hash) } else { esplora::raw(txid) }
        };
        Ok(Turn::Ask(found.iter().map(raw).collect()))
    }
}

impl Coins {
    fn coins(&self, raws: &[Reply<'_>]) -> Result<Vec<Utxo>, Fault> {
        let Unspent { found, subject, .. } = &self.unspent;
        let is_rpc = self.unspent.is_rpc();
        let coin = |(index, claim): (usize, &Claim)| {
            let Funding { outpoint, value, .. } = claim.funding;
            let OutPoint { txid, .. } = outpoint;
            let read = if is_rpc { rpc::read_transaction } else { esplora::read_transaction };
            let previous = raws.get(index).map(|reply| read(reply, txid));
            let output = TxOut { value, script_pubkey: subject.subject.clone() };
            Utxo::from_parts(outpoint, output, None, previous.transpose()?).map_err(|refusal| match refusal.code() {
                Code::UtxoMismatch => Fault::Malformed(refusal),
                _ => Fault::Refused(refusal),
            })
        };
        found.iter().enumerate().map(coin).collect()
    }
}
