//! The outputs that fund an HTLC, as recorded by the service and as returned by the caller's node.

use std::fmt;
use std::str::FromStr;

use bitcoin::{Amount, OutPoint, Transaction, Txid};
use countersign_core::{BlockHeight, Code, ParseError, Refusal, Warnings};

use super::RecordedHtlc;
use crate::htlc::Tree;
use crate::transaction::parse_txid;

/// A funding transaction in an order record, written as `<txid>:<number>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FundingTx {
    /// The transaction id.
    pub txid: Txid,
    /// The number after the colon, which is a block height and not the index of the output; `None` if there is none.
    pub number: Option<BlockHeight>,
}

impl FundingTx {
    /// Parses a list of `<txid>:<number>`, separated by commas. The number is optional.
    pub(super) fn parse_list(text: &str) -> Option<Vec<Self>> {
        let parse = |one: &str| {
            let (id, number) = match one.trim().split_once(':') {
                Some((id, number)) => (id, Some(number.parse::<u64>().ok()?.into())),
                None => (one.trim(), None),
            };
            Some(Self { txid: parse_txid(id).ok()?, number })
        };
        text.split(',').map(parse).collect()
    }
}

/// How much of a swap's amount has been paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FundingStatus {
    /// Nothing has been paid.
    Unfunded,
    /// Less than the amount has been paid. The service waits for the rest, and only a refund returns what has been paid.
    Partial {
        /// The missing amount.
        missing: Amount,
    },
    /// The amount, or more, has been paid.
    Full,
}

impl fmt::Display for FundingStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfunded => f.write_str("not funded"),
            Self::Partial { missing } => write!(f, "partly funded, {} base units missing", missing.to_sat()),
            Self::Full => f.write_str("funded"),
        }
    }
}

/// An unspent output of the HTLC, as returned by the caller's node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Funding {
    /// The transaction id and the index of the output.
    pub outpoint: OutPoint,
    /// The value.
    pub value: Amount,
}

impl Funding {
    /// Creates a funding output.
    #[must_use]
    pub const fn new(outpoint: OutPoint, value: Amount) -> Self {
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
        let value = Amount::from_sat(value.parse().map_err(|_| malformed())?);
        Ok(Self { outpoint: OutPoint { txid: parse_txid(id).map_err(|_| malformed())?, vout }, value })
    }

    /// Returns every output of a transaction that pays the HTLC.
    #[must_use]
    pub fn from_transaction(transaction: &Transaction, tree: &Tree) -> Vec<Self> {
        let (txid, script) = (transaction.compute_txid(), tree.script_pubkey());
        let paying = (0_u32..).zip(&transaction.output).filter(|(_, output)| output.script_pubkey == script);
        paying.map(|(vout, output)| Self { outpoint: OutPoint { txid, vout }, value: output.value }).collect()
    }
}

impl FromStr for Funding {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// Where the outputs come from that a recovery spends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FundingSource {
    /// From the caller. They must belong to the funding transactions of the record, if it has any.
    #[default]
    Caller,
    /// From the chain, by as many endpoints as must agree. The record's funding transactions are only a statement of the service, so a
    /// difference is the warning [`Code::FundingTxDiffers`].
    Chain,
}

impl RecordedHtlc {
    /// Requires that the record's funding transactions can be parsed. Not needed for outputs that come from the chain.
    ///
    /// # Errors
    ///
    /// [`Code::FundingMismatch`] at `initiate_tx_hash` of the leg.
    pub fn check_funding_txs(&self) -> Result<(), Refusal> {
        let Some(text) = &self.malformed_funding else { return Ok(()) };
        let refusal = self.refuse(Code::FundingMismatch, "initiate_tx_hash").with_expected("<txid>:<number>, several separated by commas");
        Err(refusal.with_actual(text.as_str()))
    }

    /// Requires that outputs of the caller belong to the record's funding transactions, if it has any, and that each output is listed once.
    /// Returns their value, and the warnings.
    pub(super) fn check_fundings(&self, fundings: &[Funding], source: FundingSource) -> Result<(Amount, Warnings), Refusal> {
        let mismatch = |why: &'static str| self.refuse(Code::FundingMismatch, "initiate_tx_hash").with_reason(why);
        let is_from_chain = source == FundingSource::Chain;
        let mut warnings = Warnings::default();
        if is_from_chain && self.malformed_funding.is_some() {
            warnings.warn_about(Code::FundingTxDiffers, "the record's entry cannot be read");
        } else {
            self.check_funding_txs()?;
        }
        if fundings.is_empty() {
            return Err(mismatch("no funding output is given"));
        }
        let mut total = Amount::ZERO;
        for (index, funding) in fundings.iter().enumerate() {
            let outpoint = || funding.outpoint.to_string();
            if fundings.iter().take(index).any(|other| other.outpoint == funding.outpoint) {
                return Err(mismatch("a funding output is given twice").with_actual(outpoint()));
            }
            if !self.funding.is_empty() && !self.funding.iter().any(|known| known.txid == funding.outpoint.txid) {
                if !is_from_chain {
                    return Err(mismatch("the output does not belong to a funding transaction of the record").with_actual(outpoint()));
                }
                warnings.warn_about(Code::FundingTxDiffers, outpoint());
            }
            total = total
                .checked_add(funding.value)
                .filter(|total| *total <= self.chain.supply())
                .ok_or_else(|| mismatch("the funding outputs are worth more than the chain's supply"))?;
        }
        Ok((total, warnings))
    }
}
