//! The way out from an order record alone: redeem with the secret, refund after the timelock, instant refund by both parties.
//!
//! Unlike on account chains the coins go where the transaction says, so each way out names its destination, and only the
//! holder of the key can take it. A refund is valid once the funding output has as many confirmations as the timelock has
//! blocks (BIP-68); that is for the caller to see on chain.

mod instant;

use std::fmt;

use bitcoin::absolute::LockTime;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness};
pub use countersign_core::Leg;
use countersign_core::wire::OrderRecord;
use countersign_core::{Code, Family, Refusal, Registry, SecretHash};

pub use instant::{Body, InstantRefund};

use crate::address::Chain;
use crate::htlc::{self, Leaf, Tree};
use crate::transaction::{BASE_WEIGHT, FeeRate, Kind, Payment, Secret, Utxo, check_coins, output_weight, txid, unsigned_input};

/// One side of a record on a Bitcoin-like chain, its address recomputed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Swap {
    /// The chain.
    pub chain: Chain,
    /// The HTLC.
    pub tree: Tree,
    /// Base units that the order is for.
    pub amount: u64,
    /// Base units that have arrived, by the record.
    pub filled: u64,
    /// Transactions that funded it, by the record.
    pub funding: Vec<FundingTx>,
    instant_refund_tx: String,
    leg: Leg,
}

/// A funding transaction as a record names it: `<txid>:<number>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FundingTx {
    /// The transaction.
    pub txid: Txid,
    /// What stands behind the colon: the block's number, where it is one. It is not the index of the output.
    pub number: Option<u64>,
}

/// How much of a swap has been paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Funded {
    /// Nothing.
    No,
    /// Less than the amount: the service waits for the rest, and what came is only to be had back by a refund.
    Partly {
        /// Base units that are missing.
        missing: u64,
    },
    /// All of it, or more.
    Whole,
}

/// An unspent output of the HTLC, as the caller's node shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Funding {
    /// Where it is.
    pub outpoint: OutPoint,
    /// Base units.
    pub value: u64,
}

impl Funding {
    /// An output.
    #[must_use]
    pub const fn new(outpoint: OutPoint, value: u64) -> Self {
        Self { outpoint, value }
    }

    /// Reads `<txid>:<index>:<base units>`.
    ///
    /// # Errors
    ///
    /// [`Code::FundingMismatch`] for another form.
    pub fn parse(text: &str) -> Result<Self, Code> {
        let mut parts = text.split(':');
        let (Some(id), Some(vout), Some(value), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(Code::FundingMismatch);
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(vout) || !digits(value) {
            return Err(Code::FundingMismatch);
        }
        let vout = vout.parse().map_err(|_| Code::FundingMismatch)?;
        let value = value.parse().map_err(|_| Code::FundingMismatch)?;
        Ok(Self { outpoint: OutPoint { txid: txid(id).map_err(|_| Code::FundingMismatch)?, vout }, value })
    }

    /// Every output of a transaction that pays the HTLC.
    #[must_use]
    pub fn of_transaction(transaction: &Transaction, tree: &Tree) -> Vec<Self> {
        let (txid, script) = (transaction.compute_txid(), tree.script_pubkey());
        let paying = (0_u32..).zip(&transaction.output).filter(|(_, output)| output.script_pubkey == script);
        paying.map(|(vout, output)| Self { outpoint: OutPoint { txid, vout }, value: output.value.to_sat() }).collect()
    }
}

/// Who pays the fee of a way out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fee {
    /// It is deducted from what comes out.
    Deducted(FeeRate),
    /// Other coins of the wallet pay it; what is left of them goes to the change address.
    Paid {
        /// sat/vB.
        rate: FeeRate,
        /// The coins, all of which are spent.
        utxos: Vec<Utxo>,
        /// Where the rest goes, on the same chain.
        change_address: String,
    },
}

impl Fee {
    const fn rate(&self) -> FeeRate {
        match self {
            Self::Deducted(rate) | Self::Paid { rate, .. } => *rate,
        }
    }
}

impl Swap {
    /// Reads one side, recomputes its address, and requires that the record names the same.
    ///
    /// # Errors
    ///
    /// What [`Leg::pinned`] refuses, [`Code::UnsupportedFamily`], [`Code::RecordSwapId`], [`Code::FundingMismatch`] for funding
    /// transactions that cannot be read, or what a record's HTLC refuses.
    pub fn of(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Self, Refusal> {
        let swap = leg.of(record);
        let refuse = |code, member: &str| leg.refuse(code, member);
        let asset = leg.pinned(swap, registry)?;
        let chain = Chain::of(&asset.chain.network)
            .ok_or_else(|| refuse(Code::UnsupportedFamily, "asset").with_expected(Family::Bitcoin).with_actual(asset.chain.family()))?;
        let htlc = htlc::of_record(asset, chain, swap, &refuse)?;
        let tree = Tree::new(htlc).ok_or_else(|| refuse(Code::UnknownAsset, "asset"))?;
        let address = tree.address(chain).unwrap_or_default();
        if !swap.swap_id.eq_ignore_ascii_case(&address) {
            return Err(refuse(Code::RecordSwapId, "swap_id").with_expected(address).with_actual(&swap.swap_id));
        }
        let narrow = |member: &str, wide: countersign_core::U256| {
            let narrow = u64::try_from(wide).ok().filter(|amount| *amount <= chain.supply());
            narrow.ok_or_else(|| refuse(Code::AmountAboveSupply, member).with_actual(wide))
        };
        let funding = funding_txs(&swap.initiate_tx_hash).ok_or_else(|| {
            refuse(Code::FundingMismatch, "initiate_tx_hash").with_expected("<txid>:<number>, more behind commas").with_actual(&swap.initiate_tx_hash)
        })?;
        Ok(Self {
            chain,
            tree,
            amount: narrow("amount", swap.amount)?,
            filled: narrow("filled_amount", swap.filled_amount)?,
            funding,
            instant_refund_tx: swap.instant_refund_tx.clone(),
            leg,
        })
    }

    /// How much has been paid, by the record.
    #[must_use]
    pub const fn funded(&self) -> Funded {
        match self.amount.checked_sub(self.filled) {
            _ if self.filled == 0 => Funded::No,
            Some(missing @ 1..) => Funded::Partly { missing },
            _ => Funded::Whole,
        }
    }

    fn refuse(&self, code: Code, member: &str) -> Refusal {
        self.leg.refuse(code, member)
    }

    /// The outputs are of the record's funding transactions, each once.
    fn check_fundings(&self, fundings: &[Funding]) -> Result<u64, Refusal> {
        let mismatch = |why: &'static str| self.refuse(Code::FundingMismatch, "initiate_tx_hash").with_reason(why);
        if fundings.is_empty() {
            return Err(mismatch("no funding output is given"));
        }
        let mut total = 0_u64;
        for (index, funding) in fundings.iter().enumerate() {
            if fundings.iter().take(index).any(|other| other.outpoint == funding.outpoint) {
                return Err(mismatch("a funding output is given twice").with_actual(funding.outpoint));
            }
            if !self.funding.is_empty() && !self.funding.iter().any(|known| known.txid == funding.outpoint.txid) {
                return Err(mismatch("the output is of another transaction than the record's").with_actual(funding.outpoint));
            }
            total = total
                .checked_add(funding.value)
                .filter(|total| *total <= self.chain.supply())
                .ok_or_else(|| mismatch("more than the chain will ever have"))?;
        }
        Ok(total)
    }

    /// The transaction that takes the coins back after the timelock.
    ///
    /// Its inputs' sequence is the timelock, so nodes refuse it before the funding output has as many confirmations.
    ///
    /// # Errors
    ///
    /// [`Code::FundingMismatch`], what the destination's address refuses, and [`Code::InsufficientFunds`] where the fee leaves
    /// less than nodes relay.
    pub fn refund(&self, fundings: &[Funding], to: &str, fee: &Fee) -> Result<Payment, Refusal> {
        let sequence = Sequence::from_height(self.tree.htlc.timelock);
        self.spend(Leaf::Refund, self.tree.htlc.initiator, None, sequence, fundings, to, fee)
    }

    /// The transaction that takes the coins with the secret.
    ///
    /// # Errors
    ///
    /// [`Code::SecretWrong`], without the secret, and as [`Swap::refund`].
    pub fn redeem(&self, secret: &[u8; 32], fundings: &[Funding], to: &str, fee: &Fee) -> Result<Payment, Refusal> {
        let wanted = SecretHash(self.tree.htlc.secret_hash);
        if SecretHash::of(secret) != wanted {
            return Err(self.refuse(Code::SecretWrong, "secret_hash").with_expected(wanted));
        }
        let sequence = Sequence::ENABLE_RBF_NO_LOCKTIME;
        self.spend(Leaf::Redeem, self.tree.htlc.redeemer, Some(Secret(*secret)), sequence, fundings, to, fee)
    }

    #[expect(clippy::too_many_arguments, reason = "what the two public functions above differ in, in one place")]
    fn spend(
        &self,
        leaf: Leaf,
        signer: [u8; 32],
        secret: Option<Secret>,
        sequence: Sequence,
        fundings: &[Funding],
        to: &str,
        fee: &Fee,
    ) -> Result<Payment, Refusal> {
        let total = self.check_fundings(fundings)?;
        let script = self.destination(to)?;
        let tree = Box::new(self.tree);
        let mut inputs: Vec<_> = fundings
            .iter()
            .map(|funding| (self.prevout(funding), Kind::Htlc { tree: tree.clone(), leaf, signer, secret: secret.clone() }))
            .collect();
        let mut spent: Vec<_> = fundings.iter().map(|funding| input(funding, sequence)).collect();
        let mut outputs = vec![TxOut { value: Amount::from_sat(total), script_pubkey: script.clone() }];
        add_fee_coins(fee, &mut inputs, &mut spent);
        let cost = Cost::of(self.chain, &inputs, &outputs, fee)?;
        let mut change = None;
        match (fee, cost.change) {
            (Fee::Deducted(_), _) => {
                let left = total.checked_sub(cost.fee).filter(|left| *left >= self.chain.dust(&script));
                let left = left.ok_or_else(|| {
                    let needed = cost.fee.saturating_add(self.chain.dust(&script));
                    Refusal::new(Code::InsufficientFunds, "/fee_rate").with_expected(format!("at least {needed}")).with_actual(total)
                })?;
                outputs = vec![TxOut { value: Amount::from_sat(left), script_pubkey: script }];
            }
            (_, Some(output)) => {
                outputs.push(output);
                change = Some(1);
            }
            (_, None) => {}
        }
        Payment::new(transaction(spent, outputs), inputs, (cost.fee, cost.vsize, fee.rate()), change)
    }

    fn prevout(&self, funding: &Funding) -> TxOut {
        TxOut { value: Amount::from_sat(funding.value), script_pubkey: self.tree.script_pubkey() }
    }

    /// The script of the destination, which is not the HTLC itself.
    fn destination(&self, to: &str) -> Result<ScriptBuf, Refusal> {
        let script = self.chain.script(to, "/to")?;
        if script == self.tree.script_pubkey() {
            return Err(Refusal::new(Code::ChangeToDeposit, "/to"));
        }
        Ok(script)
    }
}

/// `<txid>:<number>`, several behind commas; the number may be missing.
fn funding_txs(text: &str) -> Option<Vec<FundingTx>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',')
        .map(|one| {
            let (id, number) = match one.trim().split_once(':') {
                Some((id, number)) => (id, Some(number.parse().ok()?)),
                None => (one.trim(), None),
            };
            Some(FundingTx { txid: txid(id).ok()?, number })
        })
        .collect()
}

fn input(funding: &Funding, sequence: Sequence) -> TxIn {
    TxIn { previous_output: funding.outpoint, script_sig: ScriptBuf::new(), sequence, witness: Witness::new() }
}

const fn transaction(input: Vec<TxIn>, output: Vec<TxOut>) -> Transaction {
    Transaction { version: Version::TWO, lock_time: LockTime::ZERO, input, output }
}

/// The wallet's coins that pay the fee, behind the HTLC's inputs.
fn add_fee_coins(fee: &Fee, inputs: &mut Vec<(TxOut, Kind)>, spent: &mut Vec<TxIn>) {
    if let Fee::Paid { utxos, .. } = fee {
        inputs.extend(utxos.iter().map(|utxo| (utxo.output.clone(), Kind::Wallet(utxo.kind.clone()))));
        spent.extend(utxos.iter().map(|utxo| unsigned_input(utxo, Sequence::ENABLE_RBF_NO_LOCKTIME)));
    }
}

/// What a way out costs, and what comes back of the coins that pay it.
struct Cost {
    fee: u64,
    vsize: u64,
    change: Option<TxOut>,
}

impl Cost {
    fn of(chain: Chain, inputs: &[(TxOut, Kind)], outputs: &[TxOut], fee: &Fee) -> Result<Self, Refusal> {
        let weights = inputs.iter().map(|(_, kind)| kind.weight());
        let outputs = outputs.iter().map(|output| output_weight(&output.script_pubkey));
        let alone = weights.chain(outputs).fold(BASE_WEIGHT, u64::saturating_add);
        let too_large = || Refusal::new(Code::NumberTooLarge, "/fee_rate").with_actual(fee.rate());
        let of = |weight: u64| fee.rate().fee(weight.div_ceil(4)).ok_or_else(too_large);
        let Fee::Paid { utxos, change_address, .. } = fee else {
            return Ok(Self { fee: of(alone)?, vsize: alone.div_ceil(4), change: None });
        };
        let total = check_coins(utxos, chain)?;
        let change = chain.script(change_address, "/change_address")?;
        let with_change = alone.saturating_add(output_weight(&change));
        if let Some(value) = total.checked_sub(of(with_change)?).filter(|value| *value >= chain.dust(&change)) {
            let change = TxOut { value: Amount::from_sat(value), script_pubkey: change };
            return Ok(Self { fee: of(with_change)?, vsize: with_change.div_ceil(4), change: Some(change) });
        }
        if total < of(alone)? {
            return Err(Refusal::new(Code::InsufficientFunds, "/utxos").with_expected(format!("at least {}", of(alone)?)).with_actual(total));
        }
        Ok(Self { fee: total, vsize: alone.div_ceil(4), change: None })
    }
}

impl fmt::Display for Funded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No => f.write_str("not funded"),
            Self::Partly { missing } => write!(f, "partly funded, {missing} base units are missing"),
            Self::Whole => f.write_str("funded"),
        }
    }
}
