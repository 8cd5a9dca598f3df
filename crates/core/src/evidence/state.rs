//! The state of one HTLC on its chain.

use countersign_chains::{Account, BlockHeight, Family, Finality, FinalityRule, UnixTime};
use ruint::aliases::U256;

use super::HtlcTerms;
use crate::reader::Agree;
use crate::wire::SecretHash;

/// The state of one HTLC, decoded from the chain's own answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HtlcState {
    /// The chain stores no swap with this id at the block. This does not prove that it never stored one.
    Absent,
    /// Funded, and neither redeemed nor refunded.
    Locked(LockedHtlc),
    /// Redeemed with the secret, which is therefore public.
    Redeemed {
        /// The secret, where the chain's answer shows it.
        secret: Option<[u8; 32]>,
        /// The redeeming transaction, where it is known.
        transaction: Option<String>,
    },
    /// Paid back to the initiator.
    Refunded {
        /// The refunding transaction, where it is known.
        transaction: Option<String>,
    },
    /// The answer cannot be judged, and why: for example, the contract is of an unknown version, or the swap has ended and the answer
    /// does not tell how.
    Unclear(String),
}

/// A funded HTLC, as the chain stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockedHtlc {
    /// Who gets a refund; on Bitcoin-like chains the x-only key.
    pub initiator: Account,
    /// Who redeems; on Bitcoin-like chains the x-only key.
    pub redeemer: Account,
    /// The locked amount, in base units.
    pub amount: U256,
    /// The token, as the registry writes it; `None` for the chain's own coin.
    pub token: Option<String>,
    /// The secret hash. `None` where the chain stores it only inside the swap id.
    pub secret_hash: Option<SecretHash>,
    /// The timelock, in the chain's own unit: blocks, slots or milliseconds.
    pub timelock: u64,
    /// How much of the timelock has passed at the newest block, in the same unit. Of several endpoints, the one that has seen the most
    /// counts. Use this for what must happen before the timelock ends.
    pub elapsed: u64,
    /// The same for the endpoint that has seen the least. Use this for what must wait until the timelock has ended.
    pub least_elapsed: u64,
    /// Whether the balance of the HTLC covers the amount.
    pub covered: bool,
}

impl LockedHtlc {
    /// Creates the state of a funded HTLC that covers its amount.
    #[must_use]
    pub const fn new(initiator: Account, redeemer: Account, amount: U256, timelock: u64, elapsed: u64) -> Self {
        Self { initiator, redeemer, amount, token: None, secret_hash: None, timelock, elapsed, least_elapsed: elapsed, covered: true }
    }

    /// Sets the token.
    #[must_use]
    pub fn with_token(mut self, token: Option<String>) -> Self {
        self.token = token;
        self
    }

    /// Sets the secret hash that the chain stores.
    #[must_use]
    pub const fn with_secret_hash(mut self, hash: SecretHash) -> Self {
        self.secret_hash = Some(hash);
        self
    }

    /// Sets whether the balance of the HTLC covers the amount.
    #[must_use]
    pub const fn with_covered(mut self, covered: bool) -> Self {
        self.covered = covered;
        self
    }

    /// Sets how much of the timelock has passed, by the endpoint that has seen the least and by the one that has seen the most.
    #[must_use]
    pub const fn with_elapsed(mut self, least: u64, most: u64) -> Self {
        (self.least_elapsed, self.elapsed) = (least, most);
        self
    }

    /// Returns whether the timelock has ended by every endpoint that agrees. The earliest refund is one unit after the timelock.
    #[must_use]
    pub const fn has_run_out(&self) -> bool {
        self.least_elapsed > self.timelock
    }

    /// Returns how much of the timelock is left, in the chain's own unit, by the endpoint that has seen the most of it pass.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.timelock.saturating_sub(self.elapsed)
    }
}

/// Where a state was read, and how certain it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedAt {
    /// Height of the block at which the state was read.
    pub height: BlockHeight,
    /// Hash of that block, in hex.
    pub hash: String,
    /// Time of the chain's newest block.
    pub head_time: UnixTime,
    /// Number of blocks from the one that created the state to the newest, both included; 0 while it is in no block.
    pub depth: u64,
    /// The milliseconds for one unit of a timelock that the endpoint's own blocks show; `None` if nothing was measured.
    pub pace: Option<u64>,
    /// Whether the chain marks the block that created the state as safe.
    pub is_safe: bool,
    /// Whether the chain marks that block as final.
    pub is_finalized: bool,
    /// Number of endpoints that gave this answer.
    pub agreed: u32,
    /// Number of endpoints that must give the same answer.
    pub needed: u32,
}

impl ObservedAt {
    /// Creates the place of a state that a single endpoint reported, without the chain's marks.
    #[must_use]
    pub fn new(height: BlockHeight, hash: impl Into<String>, head_time: UnixTime, depth: u64) -> Self {
        Self { height, hash: hash.into(), head_time, depth, pace: None, is_safe: false, is_finalized: false, agreed: 1, needed: 1 }
    }

    /// Sets the milliseconds for one unit of a timelock that the endpoint's own blocks show ([`pace::measure`](countersign_chains::pace::measure)).
    #[must_use]
    pub const fn with_pace(mut self, pace: Option<u64>) -> Self {
        self.pace = pace;
        self
    }

    /// Sets whether the chain marks the block as safe.
    #[must_use]
    pub const fn with_safe(mut self, is_safe: bool) -> Self {
        self.is_safe = is_safe;
        self
    }

    /// Sets whether the chain marks the block as final. A final block is also safe.
    #[must_use]
    pub const fn with_finalized(mut self, is_finalized: bool) -> Self {
        (self.is_safe, self.is_finalized) = (self.is_safe || is_finalized, is_finalized);
        self
    }

    /// Sets how many endpoints gave this answer, and how many must.
    #[must_use]
    pub const fn with_agreement(mut self, agreed: u32, needed: u32) -> Self {
        (self.agreed, self.needed) = (agreed, needed);
        self
    }

    /// Returns whether the state is final by a rule, on the chain of these terms. On Starknet a block that is only accepted on L2 can
    /// still be replaced, so a safe state must also have more than [`settle`](FinalityRule::settle) of depth, at the pace that counts.
    #[must_use]
    pub fn is_final(&self, terms: &HtlcTerms, rule: &FinalityRule) -> bool {
        let settle = || rule.settle.units(terms.pace.counted(self.pace));
        let has_settled = terms.family != Family::Starknet || self.is_finalized || self.depth > settle();
        self.depth > 0
            && match rule.finality {
                Finality::Depth(blocks) => self.depth >= blocks,
                Finality::Safe => self.is_safe && has_settled,
                // Also any kind of finality that this version does not know.
                _ => self.is_finalized,
            }
    }
}

/// What one endpoint shows of an HTLC: the state, where it comes from, and how certain it is. The output of every family's HTLC reader.
///
/// By itself it is worth nothing, because anybody can write one. What decides is an
/// [`Observation`](crate::reader::Observation), which only a reader makes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The state at the endpoint's newest block.
    pub state: HtlcState,
    /// What names the change that led to the state: the hash of its block, the digest of an object, an outpoint. Endpoints at different
    /// heights must agree on it. Empty if there is none.
    pub origin: Vec<u8>,
    /// Where the state was read.
    pub seen: ObservedAt,
}

impl Finding {
    /// Creates a finding without an origin.
    #[must_use]
    pub const fn new(state: HtlcState, seen: ObservedAt) -> Self {
        Self { state, origin: Vec::new(), seen }
    }

    /// Sets what names the change that led to the state.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<Vec<u8>>) -> Self {
        self.origin = origin.into();
        self
    }
}

impl Agree for Finding {
    type Key = (HtlcState, Vec<u8>);

    /// Returns the state and its origin, without what differs between honest endpoints at different heights: the elapsed time, whether
    /// the balance covers the amount, and the words of a reason. A question judges those in each finding alone.
    fn key(&self) -> Self::Key {
        let state = match &self.state {
            HtlcState::Locked(locked) => HtlcState::Locked(locked.clone().with_elapsed(0, 0).with_covered(true)),
            HtlcState::Unclear(_) => HtlcState::Unclear(String::new()),
            other => other.clone(),
        };
        (state, self.origin.clone())
    }
}
