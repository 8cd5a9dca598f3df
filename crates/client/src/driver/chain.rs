//! What the driver asks chains, through connections that interpret nothing.

use super::observation::PaymentFate;
use countersign::reader::{
    FateObservation, FateReader, HtlcObservation, HtlcQuorum, HtlcReader, Known, NotSent, SendObservation, SendReader, Verdict, check_sent,
};
use countersign::{
    BroadcastTransaction, Funded, Policy, Registry,
    chains::{FinalityRule, Network, UnixTime},
    evidence::{Hold, HtlcState, HtlcTerms, VerifiedTerms, check_head_time},
};
use countersign_transport::{Chains, GatherError, MaybeSend, MaybeSync, Memory, Transport, gather};

/// Why a chain was not read, or a transaction not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The caller is not connected to this chain.
    #[error("not connected to {0}")]
    NotConnected(String),
    /// The chain's endpoints did not answer, or did not agree.
    #[error("{0}")]
    Unavailable(String),
    /// The chain rejected the transaction.
    #[error("the chain rejected the transaction: {message}")]
    Rejected {
        /// An endpoint, and its reason.
        message: String,
        /// Whether as many endpoints reject it as must agree. Otherwise one of the others may have relayed it.
        by_quorum: bool,
    },
}

impl From<GatherError> for ChainError {
    fn from(error: GatherError) -> Self {
        match error {
            GatherError::NotConnected(chain) => Self::NotConnected(chain),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

/// The connections to chains, a timer, and what is remembered about endpoints.
pub(super) struct ChainAccess<'d, C, T> {
    pub(super) chains: &'d C,
    pub(super) timer: &'d T,
    pub(super) memory: &'d Memory,
}

impl<C: Chains, T: Transport> ChainAccess<'_, C, T> {
    /// Reads the destination until enough endpoints prove that it is funded, or cannot.
    pub(super) async fn destination(&self, terms: &VerifiedTerms, rule: Option<&FinalityRule>) -> Result<HtlcQuorum, ChainError> {
        let question = |one: &HtlcObservation| match rule {
            Some(rule) => one.judge(terms, rule, self.timer.now()),
            None => Err(Hold::Unclear(String::new())),
        };
        self.read(&terms.destination, question).await
    }

    /// Reads the source until enough endpoints show an end in a final block, or that the timelock is over.
    pub(super) async fn source(&self, terms: &HtlcTerms, rule: Option<&FinalityRule>) -> Result<HtlcQuorum, ChainError> {
        let is_over = |one: &HtlcObservation| match &one.finding().state {
            HtlcState::Locked(locked) if locked.has_run_out() => Ok(()),
            HtlcState::Redeemed { .. } | HtlcState::Refunded { .. } if rule.is_some_and(|rule| one.is_final(rule)) => Ok(()),
            _ => Err(()),
        };
        self.read(terms, is_over).await
    }

    /// Reads a leg of an order that is not paid, until enough endpoints show a newest block that fits the clock.
    pub(super) async fn unpaid(&self, terms: &HtlcTerms) -> Result<HtlcQuorum, ChainError> {
        self.read(terms, |one| check_head_time(terms.profile(), one.finding().seen.head_time, self.timer.now())).await
    }

    async fn read<V: Ord, E>(
        &self,
        terms: &HtlcTerms,
        question: impl Fn(&HtlcObservation) -> Result<V, E> + MaybeSend + MaybeSync,
    ) -> Result<HtlcQuorum, ChainError> {
        let start = |known: &Known| HtlcReader::new(terms, known);
        Ok(gather(self.chains, self.timer, self.memory, &terms.chain, start, question).await?.into())
    }

    /// Sends a signed transaction to every endpoint. It counts as accepted once as many endpoints accept it as must agree, because a
    /// single one may keep it to itself.
    pub(super) async fn send(&self, transaction: &BroadcastTransaction, registry: &Registry) -> Result<(), ChainError> {
        let chain = registry.chains().find(|chain| chain.name() == transaction.chain);
        let network = &chain.ok_or_else(|| ChainError::NotConnected(transaction.chain.clone()))?.network;
        let start = |known: &Known| SendReader::new(network, &transaction.id, &transaction.payload, known);
        let quorum = gather(self.chains, self.timer, self.memory, &transaction.chain, start, SendObservation::accepts).await?;
        check_sent(&quorum).map_err(|error| {
            let by_quorum = error.is_by_quorum();
            match error {
                NotSent::Rejected { endpoint, message, .. } => {
                    ChainError::Rejected { message: format!("{endpoint}: {message}"), by_quorum }
                }
                NotSent::Unknown(doubt) => ChainError::Unavailable(doubt.to_string()),
            }
        })
    }
}

impl<C: Chains, T: Transport> ChainAccess<'_, C, T> {
    /// Reads what becomes of a transaction that was sent. It is dead only if as many endpoints as must agree say so, each alone.
    pub(super) async fn fate(&self, transaction: &BroadcastTransaction, network: &Network) -> PaymentFate {
        let start = |known: &Known| FateReader::new(network, &transaction.id, &transaction.payload, known);
        let Ok(quorum) = gather(self.chains, self.timer, self.memory, &transaction.chain, start, FateObservation::is_dead).await else {
            return PaymentFate::Open;
        };
        match quorum.ask(FateObservation::is_dead) {
            Verdict::Stands((), one) => PaymentFate::of(one.fate()),
            Verdict::Open(_) | Verdict::Falls(_) => PaymentFate::Open,
        }
    }
}

/// Returns the policy's finality rule for the chain of a leg; `None` if its asset is not pinned.
pub(super) fn rule_of(terms: &HtlcTerms, registry: &Registry, policy: &Policy) -> Option<FinalityRule> {
    registry.asset(terms.asset.as_str()).map(|asset| policy.finality_of(asset, terms.amount))
}

/// Compares what the destination chain shows with the verified terms.
pub(super) fn judge(terms: &VerifiedTerms, quorum: &HtlcQuorum, rule: Option<&FinalityRule>, now: UnixTime) -> Result<Funded, Hold> {
    let rule = rule.ok_or_else(|| Hold::Unclear("the asset is not pinned".to_owned()))?;
    Funded::judge(terms, quorum, rule, now)
}
