//! What one endpoint shows of an HTLC, and the state that follows from it. Both protocols share this judgement.

use std::sync::Arc;

use bitcoin::{BlockHash, OutPoint, Transaction, Txid};
use countersign_core::chains::Coin;
use countersign_core::reader::{Fault, Head};
use countersign_core::{BlockHeight, Code, Finding, HtlcState, HtlcTerms, LockedHtlc, ObservedAt, Refusal, U256, sort};

use crate::address::Chain;
use crate::chain::{self, HtlcSpend};
use crate::htlc::Tree;
use crate::recover::Funding;

/// The maximum number of inputs of a funding transaction whose origin is checked.
const MAX_PARENTS: usize = 32;

/// Where a transaction was mined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) height: BlockHeight,
    pub(super) hash: BlockHash,
}

/// An output to a script as an endpoint lists it. Nothing of it is proven yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) funding: Funding,
    /// `None` if the output is in no block.
    pub(super) height: Option<BlockHeight>,
    /// `None` if the endpoint lists the height alone.
    pub(super) hash: Option<BlockHash>,
    pub(super) is_unspent: bool,
}

impl Claim {
    pub(super) fn block(&self) -> Option<Block> {
        self.height.zip(self.hash).map(|(height, hash)| Block { height, hash })
    }

    pub(super) fn covers(&self, amount: U256) -> bool {
        U256::from(self.funding.value.to_sat()) >= amount
    }
}

/// An output to the HTLC's script that covers the amount, read from the bytes of its transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) funding: Funding,
    pub(super) block: Option<Block>,
    pub(super) spend: Option<HtlcEnd>,
    /// Whether it was paid with coins that came straight from Litecoin's extension block.
    pub(super) is_from_mweb: bool,
}

/// The transaction that spends an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HtlcEnd {
    /// The transaction and its kind; `None` if the node does not identify the transaction.
    pub(super) by: Option<(Arc<Transaction>, HtlcSpend)>,
    pub(super) block: Option<Block>,
}

/// What one endpoint shows.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it lives for a moment")]
pub(super) enum Look {
    /// An output that covers the amount.
    Output(Output),
    /// No output was ever paid to the script. Only an endpoint that also lists spent outputs can show this.
    Nothing,
    /// It cannot be judged, and why.
    Unclear(&'static str),
}

/// Chooses the output that decides about a swap, the same on every endpoint: it covers the amount, and of those that do, outputs in a
/// block come first, then unspent ones, then the one that was mined first. Anybody can pay less than the amount to the address, and
/// that says nothing about the swap.
pub(super) fn choose<'c>(claims: impl IntoIterator<Item = &'c Claim>, amount: U256) -> Option<Claim> {
    let covering = claims.into_iter().filter(|claim| claim.covers(amount));
    covering.min_by_key(|claim| (claim.height.is_none(), !claim.is_unspent, claim.height, claim.funding.outpoint)).copied()
}

/// Returns the finding for what an endpoint shows.
pub(super) fn judge(look: Look, head: &Head, terms: &HtlcTerms, coin: Coin) -> Result<Finding, Fault> {
    let at_head = |state, depth| Finding::new(state, ObservedAt::new(head.height, head.hash.clone(), head.time, depth));
    let output = match look {
        Look::Nothing => return Ok(at_head(HtlcState::Absent, 0)),
        Look::Unclear(why) => return Ok(at_head(HtlcState::Unclear(why.to_owned()), 0)),
        Look::Output(output) => output,
    };
    let depth = depth(output.block, head)?;
    let needed = coin.profile().extension_depth.unwrap_or_default();
    let (state, block) = match output.spend {
        Some(HtlcEnd { by: Some((transaction, how)), block }) => (ended(&transaction, how), block),
        Some(HtlcEnd { by: None, block }) => {
            (HtlcState::Unclear("an unmined transaction spends the HTLC, and the node does not identify it".to_owned()), block)
        }
        None if output.is_from_mweb && depth < needed => {
            let why = format!("the HTLC was paid with coins from the extension block, and is not yet {needed} blocks deep");
            (HtlcState::Unclear(why), output.block)
        }
        None => {
            // For an output mined in block f with timelock T, a refund is valid in block f + T (BIP-68). Nodes relay it once block
            // f + T - 1 exists, which is when the output is T blocks deep. So the elapsed time is the depth.
            let (initiator, redeemer) = (terms.initiator.clone(), terms.redeemer.clone());
            let locked = LockedHtlc::new(initiator, redeemer, U256::from(output.funding.value.to_sat()), terms.timelock, depth);
            (HtlcState::Locked(locked.with_secret_hash(terms.secret_hash)), output.block)
        }
    };
    let depth = self::depth(block, head)?;
    let finding = match block {
        Some(block) => Finding::new(state, ObservedAt::new(block.height, block.hash.to_string(), head.time, depth)),
        None => at_head(state, depth),
    };
    let mut origin = bitcoin::consensus::serialize(&output.funding.outpoint);
    if let Some(Block { height, hash }) = block {
        origin.extend(bitcoin::consensus::serialize(&hash));
        origin.extend(height.get().to_le_bytes());
    }
    Ok(finding.with_origin(origin))
}

/// Returns the number of blocks from a transaction's block to the newest one, both included; 0 for a transaction in no block.
pub(super) fn depth(block: Option<Block>, head: &Head) -> Result<u64, Refusal> {
    let Some(block) = block else { return Ok(0) };
    let above = head.height.blocks_since(block.height).ok_or_else(|| {
        Refusal::new(Code::FundingMismatch, "/block").with_reason("the block is above the newest one").with_actual(block.height.get())
    })?;
    Ok(above.saturating_add(1))
}

fn ended(transaction: &Transaction, how: HtlcSpend) -> HtlcState {
    let transaction = Some(transaction.compute_txid().to_string());
    match how {
        HtlcSpend::Redeem(secret) => HtlcState::Redeemed { secret, transaction },
        HtlcSpend::Refund | HtlcSpend::InstantRefund => HtlcState::Refunded { transaction },
    }
}

/// Returns the output of a transaction that an endpoint lists, with the amount from the transaction's bytes.
pub(super) fn proven(transaction: &Transaction, tree: &Tree, claim: Funding) -> Result<Funding, Refusal> {
    let refuse = |why: &'static str| Refusal::new(Code::FundingMismatch, "/vout").with_reason(why).with_actual(claim.outpoint.to_string());
    let fundings = Funding::from_transaction(transaction, tree);
    let funding = fundings.into_iter().find(|funding| funding.outpoint == claim.outpoint);
    let funding = funding.ok_or_else(|| refuse("the output does not pay the HTLC"))?;
    // The output was chosen by the amounts in the list, so the list must be right.
    if funding.value != claim.value {
        return Err(refuse("the amount of the output differs from the list of outputs"));
    }
    Ok(funding)
}

/// The transactions that show whether a payment comes from Litecoin's extension block.
#[derive(Debug)]
pub(super) enum Parents {
    /// The payment is deep enough, or not on Litecoin.
    Irrelevant,
    /// There are more than are checked.
    TooMany,
    /// These must be checked.
    Check(Vec<Txid>),
}

impl Parents {
    pub(super) fn new(transaction: &Transaction, chain: Chain, block: Option<Block>, head: &Head) -> Self {
        let Some(needed) = chain.coin.profile().extension_depth else { return Self::Irrelevant };
        let is_deep = block.is_some_and(|block| head.height.saturating_add(1) >= block.height.saturating_add(needed));
        if is_deep || transaction.is_coinbase() {
            return Self::Irrelevant;
        }
        if transaction.input.len() > MAX_PARENTS {
            return Self::TooMany;
        }
        let mut txids: Vec<Txid> = transaction.input.iter().map(|input| input.previous_output.txid).collect();
        sort::ascending(&mut txids);
        txids.dedup();
        Self::Check(txids)
    }

    /// Returns the transactions to ask for.
    pub(super) fn txids(&self) -> &[Txid] {
        if let Self::Check(txids) = self { txids } else { &[] }
    }

    /// Returns whether the payment comes from the extension block. `raws` are the bytes of [`Parents::txids`]; a transaction that the
    /// endpoint does not know counts as one of the extension block.
    pub(super) fn is_from_mweb(&self, raws: impl Iterator<Item = Result<Option<Vec<u8>>, Fault>>) -> Result<bool, Fault> {
        if matches!(self, Self::TooMany) {
            return Ok(true);
        }
        let mut any = false;
        for (txid, raw) in self.txids().iter().zip(raws) {
            any |= raw?.map_or(Ok(true), |raw| is_peg_out(&raw, *txid))?;
        }
        Ok(any)
    }
}

/// Returns whether a transaction moves coins between Litecoin's extension block and the chain.
fn is_peg_out(raw: &[u8], txid: Txid) -> Result<bool, Refusal> {
    if chain::is_mweb(raw) {
        return Ok(true);
    }
    Ok(chain::holds_mweb(&chain::parse_transaction(raw, txid)?))
}

/// An output that an earlier reading has found in a block. Later readings ask for it by its outpoint, so that it is found again after it
/// was spent, and whatever else is paid to the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) outpoint: OutPoint,
    pub(super) height: BlockHeight,
}

impl Kept {
    /// Returns the name of the hint that holds the output of the HTLC with an address.
    pub(super) fn name(address: &str) -> String {
        format!("outpoint {}", address.to_lowercase())
    }

    pub(super) fn parse(hint: &[u8]) -> Option<Self> {
        let (outpoint, height) = hint.split_at_checked(36)?;
        let outpoint = bitcoin::consensus::deserialize(outpoint).ok()?;
        Some(Self { outpoint, height: u64::from_le_bytes(height.try_into().ok()?).into() })
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        [bitcoin::consensus::serialize(&self.outpoint), self.height.get().to_le_bytes().to_vec()].concat()
    }
}
