//! The outputs that fund an HTLC, as recorded by the service and as returned by the caller's node.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use bitcoin::{Amount, OutPoint, Transaction, Txid};
use countersign_core::{BlockHeight, Code, ParseError, Refusal, Warnings};

use super::RecordedHtlc;
use crate::htlc::Tree;
use crate::summary::format_coins;
use crate::transaction::{parse_txid, sum};

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
    /// From the caller. [`Recovery::divide`](super::Recovery::divide) chooses those that are spent.
    #[default]
    Caller,
    /// From the chain, by as many endpoints as must agree. They are chosen already, and all of them are spent.
    Chain,
}

impl RecordedHtlc {
    /// Requires that each output is listed once, and that they are not worth more than the chain's supply.
    pub(super) fn check_fundings(&self, fundings: &[Funding]) -> Result<(), Refusal> {
        let mismatch = |why: &'static str| Refusal::new(Code::FundingMismatch, "/funding").with_reason(why);
        if fundings.is_empty() {
            return Err(mismatch("no funding output is given"));
        }
        let mut seen = BTreeSet::new();
        for funding in fundings {
            if !seen.insert(funding.outpoint) {
                return Err(mismatch("a funding output is given twice").with_actual(funding.outpoint.to_string()));
            }
        }
        if sum(fundings.iter().map(|funding| funding.value)) > self.chain.supply() {
            return Err(mismatch("the funding outputs are worth more than the chain's supply"));
        }
        Ok(())
    }

    /// Returns the warnings about outputs whose transaction the record does not name. Its funding transactions are only a statement of
    /// the service, so they neither prove an output nor stop its recovery.
    pub(super) fn funding_warnings(&self, fundings: &[Funding]) -> Warnings {
        let mut warnings = Warnings::default();
        if self.malformed_funding.is_some() {
            warnings.warn_about(Code::FundingTxDiffers, "the record's entry cannot be read");
        }
        for funding in fundings.iter().filter(|_| !self.funding.is_empty()) {
            if !self.names(funding) {
                warnings.warn_about(Code::FundingTxDiffers, funding.outpoint.to_string());
            }
        }
        warnings
    }

    /// Returns whether the record names the transaction of an output.
    pub(super) fn names(&self, funding: &Funding) -> bool {
        self.funding.iter().any(|known| known.txid == funding.outpoint.txid)
    }

    /// Requires that the record's funding transactions can be read.
    ///
    /// # Errors
    ///
    /// [`Code::FundingMismatch`] at `initiate_tx_hash` of the leg.
    pub(super) fn check_funding_txs(&self) -> Result<(), Refusal> {
        let Some(text) = &self.malformed_funding else { return Ok(()) };
        let refusal = self.refuse(Code::FundingMismatch, "initiate_tx_hash").with_expected("<txid>:<number>, several separated by commas");
        Err(refusal.with_actual(text.as_str()))
    }

    /// Requires that a redemption spends exactly one output that covers the amount, unless the user accepts less. `fundings` are the
    /// outputs that it spends.
    ///
    /// The secret becomes public with the redemption. Several outputs are not safe either: one of them may be refundable earlier, and
    /// its refund at a higher fee would evict the whole redemption.
    pub(super) fn check_covered(&self, fundings: &[Funding], is_accepted: bool, warnings: &mut Warnings) -> Result<(), Refusal> {
        if matches!(fundings, [only] if only.value >= self.amount) {
            return Ok(());
        }
        let held = format_coins(sum(fundings.iter().map(|funding| funding.value)), self.chain);
        let (count, amount) = (fundings.len(), format_coins(self.amount, self.chain));
        if is_accepted {
            warnings.warn_about(Code::SecretForLess, format!("{held} in {count} outputs, of an order of {amount}"));
            return Ok(());
        }
        let reason = format!(
            "no single output covers the amount, and the redemption makes the secret public: {held} in {count} outputs, of an order of \
             {amount} (a refund returns what was paid; `accept_less` redeems it nevertheless)"
        );
        Err(Refusal::new(Code::FundingMismatch, "/funding").with_reason(reason))
    }
}

/// Adds the warning about outputs that a recovery leaves, if there are any.
pub(super) fn warn_of_left(left: &[Funding], warnings: &mut Warnings) {
    if !left.is_empty() {
        let named: Vec<_> = left.iter().map(|funding| format!("{} with {} base units", funding.outpoint, funding.value.to_sat())).collect();
        warnings.warn_about(Code::OutputsLeft, named.join(", "));
    }
}
