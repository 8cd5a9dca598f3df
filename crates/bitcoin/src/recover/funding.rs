//! The outputs that fund an HTLC: as a record names them, and as the caller's node shows them.

use std::fmt;
use std::str::FromStr;

use bitcoin::{OutPoint, Transaction, Txid};
use countersign_core::{Code, ParseError, Refusal};

use super::RecordedHtlc;
use crate::htlc::Tree;
use crate::transaction::parse_txid;

/// A funding transaction as a record names it: `<txid>:<number>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FundingTx {
    /// The transaction.
    pub txid: Txid,
    /// What follows the colon: the block's number, where it is one. It is not the index of the output.
    pub number: Option<u64>,
}

impl FundingTx {
    /// Parses `<txid>:<number>`, several separated by commas; the number may be missing.
    pub(super) fn parse_list(text: &str) -> Option<Vec<Self>> {
        if text.is_empty() {
            return Some(Vec::new());
        }
        let parse = |one: &str| {
            let (id, number) = match one.trim().split_once(':') {
                Some((id, number)) => (id, Some(number.parse().ok()?)),
                None => (one.trim(), None),
            };
            Some(Self { txid: parse_txid(id).ok()?, number })
        };
        text.split(',').map(parse).collect()
    }
}

/// How much of a swap has been paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FundingStatus {
    /// Nothing.
    Unfunded,
    /// Less than the amount: the service waits for the rest, and only a refund gives back what has arrived.
    Partial {
        /// Base units that are missing.
        missing: u64,
    },
    /// All of it, or more.
    Full,
}

impl fmt::Display for FundingStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfunded => f.write_str("not funded"),
            Self::Partial { missing } => write!(f, "partly funded, {missing} base units are missing"),
            Self::Full => f.write_str("funded"),
        }
    }
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
    /// Takes an output.
    #[must_use]
    pub const fn new(outpoint: OutPoint, value: u64) -> Self {
        Self { outpoint, value }
    }

    /// Parses `<txid>:<index>:<base units>`.
    ///
    /// # Errors
    ///
    /// [`Code::FundingMismatch`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let malformed = || ParseError::from(Code::FundingMismatch);
        let mut parts = text.split(':');
        let (Some(id), Some(vout), Some(value), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(malformed());
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(vout) || !digits(value) {
            return Err(malformed());
        }
        let vout = vout.parse().map_err(|_| malformed())?;
        let value = value.parse().map_err(|_| malformed())?;
        Ok(Self { outpoint: OutPoint { txid: parse_txid(id).map_err(|_| malformed())?, vout }, value })
    }

    /// Returns every output of a transaction that pays the HTLC.
    #[must_use]
    pub fn from_transaction(transaction: &Transaction, tree: &Tree) -> Vec<Self> {
        let (txid, script) = (transaction.compute_txid(), tree.script_pubkey());
        let paying = (0_u32..).zip(&transaction.output).filter(|(_, output)| output.script_pubkey == script);
        paying.map(|(vout, output)| Self { outpoint: OutPoint { txid, vout }, value: output.value.to_sat() }).collect()
    }
}

impl FromStr for Funding {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl RecordedHtlc {
    /// Requires outputs of the record's funding transactions, each once. Returns how much they hold.
    pub(super) fn check_fundings(&self, fundings: &[Funding]) -> Result<u64, Refusal> {
        let mismatch = |why: &'static str| self.refuse(Code::FundingMismatch, "initiate_tx_hash").with_reason(why);
        if fundings.is_empty() {
            return Err(mismatch("no funding output is given"));
        }
        let mut total = 0_u64;
        for (index, funding) in fundings.iter().enumerate() {
            let outpoint = || funding.outpoint.to_string();
            if fundings.iter().take(index).any(|other| other.outpoint == funding.outpoint) {
                return Err(mismatch("a funding output is given twice").with_actual(outpoint()));
            }
            if !self.funding.is_empty() && !self.funding.iter().any(|known| known.txid == funding.outpoint.txid) {
                return Err(mismatch("the output is not of a transaction that the record names").with_actual(outpoint()));
            }
            total = total
                .checked_add(funding.value)
                .filter(|total| *total <= self.chain.supply())
                .ok_or_else(|| mismatch("more than the chain will ever have"))?;
        }
        Ok(total)
    }
}
