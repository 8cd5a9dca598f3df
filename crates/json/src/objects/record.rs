//! A verified record, and the readers of its two HTLCs.

use countersign::reader::{HtlcReader, Known};
use countersign::{
    Code, Funded, Leg, Policy, Registry, VerifiedRecord,
    chains::{FinalityRule, UnixTime},
};

use super::reader::{Quorum, Reader};
use super::{Documents, Failure, Htlc, HtlcTerms, Proof, read_leg, shapes};

/// A verified record, with what is needed to judge what its chains show.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Record {
    /// The record and its terms.
    pub verified: VerifiedRecord,
    /// The policy's rules for source and destination.
    rules: [FinalityRule; 2],
}

/// Verifies the record of an order that is under way: see [`countersign::verify_record`].
///
/// # Errors
///
/// [`Failure`] as for [`verify`](super::verify), and with the code `missing_field` without a record.
pub fn verify_record(documents: &Documents<'_>, registry: &Registry, policy: &Policy) -> Result<Record, Failure> {
    let verified = documents.open(|proposal| countersign::verify_record(proposal, registry, policy))?;
    let rule_of = |leg| {
        let terms = verified.terms.leg(leg);
        let asset = registry.asset(terms.asset.as_str());
        asset.map(|asset| policy.finality_of(asset, terms.amount)).ok_or_else(|| countersign::json::At::RECORD.refuse(Code::UnknownAsset))
    };
    let rules = [rule_of(Leg::Source)?, rule_of(Leg::Destination)?];
    Ok(Record { verified, rules })
}

/// Returns what the HTLC of a leg, `source` or `destination`, must hold, and where it is.
///
/// # Errors
///
/// [`Failure`] with the code `usage` at `/leg`, or of the terms if they give no address.
pub fn htlc_terms(record: &Record, leg: &str) -> Result<HtlcTerms, Failure> {
    let terms = record.verified.terms.leg(read_leg(leg)?);
    let (account, vault) = match terms.family {
        #[cfg(feature = "solana")]
        countersign::Family::Solana => {
            let location = countersign::solana::read::SwapLocation::new(terms)?;
            (Some(location.swap_account.to_string()), location.vault.map(|vault| vault.to_string()))
        }
        #[cfg(feature = "sui")]
        countersign::Family::Sui => (Some(countersign::sui::reader::field_of(terms)?.to_string()), None),
        _ => (None, None),
    };
    Ok(HtlcTerms { account, vault, ..shapes::htlc_terms(terms) })
}

impl Record {
    /// Creates the reader of the HTLC of a leg, `source` or `destination`, for one endpoint. `endpoint` is its name in the quorum.
    /// `known` is what [`Reader::known`] returned for this endpoint before; empty the first time. `protocol` says what the endpoint of a
    /// Bitcoin-like chain is: `esplora`, an Esplora server, which is the default, or `rpc`, a node's own RPC.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the code `usage` at `/leg` or `/protocol`, at a member of `/known` that is malformed, or of the terms if they name no HTLC.
    pub fn reader(&self, leg: &str, endpoint: &str, known: &[u8], protocol: Option<&str>) -> Result<Reader, Failure> {
        let terms = self.verified.terms.leg(read_leg(leg)?);
        let known =
            if known.is_empty() { Known::default() } else { Known::from_json(known).map_err(|refusal| refusal.with_prefix("/known"))? };
        let known = match protocol {
            None | Some("esplora") => known.with_rpc(false),
            Some("rpc") => known.with_rpc(true),
            Some(_) => return Err(Failure::usage("/protocol", "esplora or rpc")),
        };
        Ok(Reader::new(endpoint, HtlcReader::new(terms, &known)?, known))
    }

    /// Compares what the endpoints show of the destination with the verified terms: see [`Funded::judge`]. `now` is the caller's clock in
    /// Unix seconds.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the code of a [`countersign::evidence::Hold`] while the secret must not be released.
    pub fn judge(&self, quorum: &Quorum, now: u64) -> Result<Proof, Failure> {
        let [_, rule] = &self.rules;
        let funded = Funded::judge(&self.verified.terms, &quorum.0, rule, UnixTime::from_secs(now))?;
        let (left, fresh_until) = (funded.left(), funded.fresh_until().as_secs());
        Ok(Proof { order_id: funded.order_id().to_owned(), left: left.units, unit: left.unit().to_owned(), fresh_until })
    }

    /// Returns the state of the HTLC of a leg, on which enough endpoints agree.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the code `usage` at `/leg`, or with the blame `chain` if too few endpoints agree.
    pub fn state(&self, leg: &str, quorum: &Quorum) -> Result<Htlc, Failure> {
        let [source, destination] = &self.rules;
        let side = read_leg(leg)?;
        if !quorum.0.is_of(self.verified.terms.leg(side)) {
            return Err(Failure::usage("/quorum", format!("readers of the leg {leg}")));
        }
        let rule = if side == Leg::Source { source } else { destination };
        let (state, seen) = quorum.0.state().map_err(|doubt| Failure::from(countersign::evidence::Hold::from(doubt)))?;
        Ok(shapes::htlc(&state, &seen, quorum.0.is_final(rule)))
    }
}
