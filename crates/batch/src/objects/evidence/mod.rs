//! Evidence without a network: decodes what a chain returned about one HTLC, and compares it with the verified terms.

#![cfg_attr(
    not(all(feature = "bitcoin", feature = "evm", feature = "solana", feature = "starknet", feature = "sui", feature = "tron")),
    allow(dead_code, unused_imports, reason = "each family needs some of this")
)]

#[cfg(feature = "bitcoin")]
mod bitcoin;
#[cfg(any(feature = "evm", feature = "tron"))]
mod contract;
#[cfg(feature = "solana")]
mod solana;
#[cfg(feature = "starknet")]
mod starknet;
#[cfg(feature = "sui")]
mod sui;

use countersign::chains::Network;
use countersign::{Code, Family, FinalityRule, Funded, HtlcEvent, HtlcState, HtlcTerms, LockedHtlc, Refusal, SeenAt, U256, VerifiedRecord};
use countersign_core::json::{Members, Node};

use super::{Failure, Htlc, read_leg, shapes, with_json};

/// Maximum length of a node's answer, in bytes. This is more than any contract, account or transaction of an HTLC has.
const MAX_ANSWER: usize = 4_000_000;

/// A verified record, with what is needed to judge evidence from its chains.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Record {
    /// The record and its terms.
    pub verified: VerifiedRecord,
    /// The networks of source and destination.
    pub(super) networks: [Network; 2],
    /// The policy's rule for the destination chain.
    pub(super) rule: FinalityRule,
}

/// The proof that a destination is funded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Proof {
    /// Id of the order that the proof is for.
    pub order_id: String,
    /// What is left of the destination's timelock, in `unit`.
    pub left: u64,
    /// `blocks`, `slots` or `ms`.
    pub unit: String,
}

/// Returns what the HTLC of a leg, `source` or `destination`, must hold, and where it is.
///
/// # Errors
///
/// [`Failure`] with the code `usage` at `/leg`, or of the terms if they give no address.
pub fn htlc_terms(record: &Record, leg: &str) -> Result<shapes::HtlcTerms, Failure> {
    let (terms, _) = side(record, leg)?;
    #[allow(unused_mut, reason = "only Solana and Sui add to it")]
    let mut shape = shapes::htlc_terms(terms);
    match terms.family {
        #[cfg(feature = "solana")]
        Family::Solana => (shape.account, shape.vault) = solana::accounts(terms)?,
        #[cfg(feature = "sui")]
        Family::Sui => shape.account = Some(sui::field(terms)?),
        _ => {}
    }
    Ok(shape)
}

/// Decodes what a chain returned about the HTLC of a leg, `source` or `destination`. The members of the evidence are listed in
/// `docs/spec/batch.md#evidence`. Parties, amount and timelock are not compared with the verified terms.
///
/// # Errors
///
/// [`Failure`] at the member of `/evidence` that is missing or malformed, or with the code `usage` at `/leg`.
pub fn read_htlc(record: &Record, leg: &str, evidence: &[u8]) -> Result<Htlc, Failure> {
    let (terms, network) = side(record, leg)?;
    let state = with_json(evidence, "/evidence", |node| state(terms, network, &node.object()?))?;
    Ok(shapes::htlc(&state))
}

/// Decodes what the destination chain returned, and compares it with the verified terms: see [`Funded::judge`].
///
/// `evidence` and `seen` are JSON objects whose members are listed in `docs/spec/batch.md#evidence`; those of `seen` are the fields of
/// [`SeenAt`]. `now` is the caller's clock in Unix seconds.
///
/// # Errors
///
/// [`Failure`] with the code of a [`countersign::Hold`] while the secret must not be released; or at the member of `/evidence` or
/// `/seen` that is missing or malformed.
pub fn judge(record: &Record, evidence: &[u8], seen: &[u8], now: u64) -> Result<Proof, Failure> {
    let (terms, network) = side(record, "destination")?;
    let state = with_json(evidence, "/evidence", |node| state(terms, network, &node.object()?))?;
    let seen = with_json(seen, "/seen", |node| read_seen(&node))?;
    let funded = Funded::judge(&record.verified.terms, &state, &seen, &record.rule, now)?;
    let unit = terms.family.timelock_unit().to_owned();
    Ok(Proof { order_id: funded.order_id().to_owned(), left: funded.left(), unit })
}

fn side<'r>(record: &'r Record, leg: &str) -> Result<(&'r HtlcTerms, &'r Network), Failure> {
    let leg = read_leg(leg)?;
    let [source, destination] = &record.networks;
    let network = if leg == countersign::Leg::Source { source } else { destination };
    Ok((record.verified.terms.leg(leg), network))
}

fn read_seen(node: &Node<'_, '_>) -> Result<SeenAt, Refusal> {
    let members = node.object()?;
    let fields = ["height", "hash", "head_time", "depth", "is_safe", "is_finalized", "agreed", "needed"];
    members.only(&fields)?;
    let number = |key| members.need(key)?.integer();
    let flag = |key| members.get(key).map_or(Ok(false), |node| node.bool());
    let count = |key| {
        let count = members.get(key).map_or(Ok(1), |node| node.integer())?;
        Ok::<_, Refusal>(u32::try_from(count).unwrap_or(u32::MAX))
    };
    let mut seen = SeenAt::new(number("height")?, members.need("hash")?.text()?, number("head_time")?, number("depth")?);
    seen.is_safe = flag("is_safe")?;
    seen.is_finalized = flag("is_finalized")?;
    Ok(seen.with_agreement(count("agreed")?, count("needed")?))
}

#[allow(unused_variables, reason = "a build may lack the families that need them")]
fn state(terms: &HtlcTerms, network: &Network, members: &Members<'_, '_>) -> Result<HtlcState, Refusal> {
    match terms.family {
        #[cfg(feature = "evm")]
        Family::Evm => contract::evm(terms, members),
        #[cfg(feature = "tron")]
        Family::Tron => contract::tron(terms, members),
        #[cfg(feature = "starknet")]
        Family::Starknet => starknet::state(terms, members),
        #[cfg(feature = "solana")]
        Family::Solana => solana::state(terms, members),
        #[cfg(feature = "sui")]
        Family::Sui => sui::state(terms, members),
        #[cfg(feature = "bitcoin")]
        Family::Bitcoin => bitcoin::state(terms, network, members),
        other => Err(Refusal::new(Code::UnsupportedFamily, "").with_actual(other)),
    }
}

fn unclear(why: impl ToString) -> HtlcState {
    HtlcState::Unclear(why.to_string())
}

const ENDED: &str = "the order has ended, and the evidence has no event that shows how";
const OTHER_TOKEN: &str = "the contract's token is not the pinned one";
const AHEAD: &str = "the order was initiated after the newest block";

/// An event about the order, and its transaction.
struct OrderEvent<Id> {
    event: HtlcEvent<Id>,
    transaction: String,
}

impl<Id: PartialEq> OrderEvent<Id> {
    /// Requires that an event is about the order with this id.
    fn new(node: &Node<'_, '_>, id: &Id, event: Option<HtlcEvent<Id>>, transaction: &str) -> Result<Self, Refusal> {
        let event = event.filter(|event| *event.order_id() == *id);
        let event = event.ok_or_else(|| node.at().refuse(Code::WrongType).with_reason("the event is not about this order"))?;
        Ok(Self { event, transaction: transaction.to_owned() })
    }
}

/// What an account chain's contract stores about an order.
struct Stored {
    initiator: countersign::Account,
    redeemer: countersign::Account,
    amount: U256,
    timelock: u64,
    initiated_at: u64,
    has_ended: bool,
}

impl Stored {
    /// Returns the state of the order at `head`, in the unit of its timelock.
    fn state<Id>(self, terms: &HtlcTerms, head: u64, covered: bool, event: Option<OrderEvent<Id>>) -> HtlcState {
        if self.has_ended {
            return event
                .map_or_else(|| unclear(ENDED), |OrderEvent { event, transaction }| event.end(terms.secret_hash, Some(transaction)));
        }
        let Some(elapsed) = head.checked_sub(self.initiated_at) else { return unclear(AHEAD) };
        let locked = LockedHtlc::new(self.initiator, self.redeemer, self.amount, self.timelock, elapsed);
        let locked = locked.with_token(terms.token.clone()).with_covered(covered);
        HtlcState::Locked(match event.map(|event| event.event) {
            Some(HtlcEvent::Initiated { secret_hash, amount, .. }) if amount == self.amount => locked.with_secret_hash(secret_hash),
            Some(_) => return unclear("the event contradicts the stored order"),
            None => locked,
        })
    }
}

fn holds(members: &Members<'_, '_>) -> Result<U256, Refusal> {
    members.need("holds")?.decimal()
}

/// Reads base64 bytes.
#[cfg(any(feature = "solana", feature = "sui"))]
fn base64(node: &Node<'_, '_>) -> Result<Vec<u8>, Refusal> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(node.text()?);
    bytes.map_err(|_| node.refuse(Code::WrongType).with_expected("base64"))
}
