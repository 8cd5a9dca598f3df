//! The vocabulary of countersign: what every family shares.
//!
//! A wallet asks the swap service for an order and receives bytes to sign. This crate parses the request, the response and the
//! order record ([`wire`]), holds what the wallet has pinned ([`Registry`]) and allows ([`Policy`]), and takes an order through
//! its states ([`Proposal`], [`VerifiedOrder`], [`UnsignedOrder`], [`SignedOrder`]). Each state can only be created by the step
//! before it. What the bytes of a payload must contain is decided by the family crates, through the interface in [`family`].
//!
//! The rules are those of `docs/spec/batch.md#rules`. There is no I/O here, no clock, no random source and no chain encoding.

mod evidence;
pub mod family;
mod funding;
pub mod json;
pub mod reader;
pub mod report;
#[doc(hidden)]
pub mod serde_text;
#[doc(hidden)]
pub mod sort;
mod state;
mod trust;
mod verify;
pub mod wire;

pub use countersign_chains as chains;
pub use countersign_chains::{
    Account, BlockHeight, ChainProfile, Family, Finality, FinalityRule, Network, Pace, Span, UnixMillis, UnixTime, pace,
};
pub use evidence::{
    Difference, EventPlace, Finding, HeadDoubt, Hold, HoldCode, HtlcEvent, HtlcState, HtlcTerms, Judgement, LockedHtlc, ObservedAt,
    PaymentSearch, PaymentTerms, Precondition, Stage, SwapIds, VerifiedRecord, VerifiedTerms, check_head_time, combine,
};
pub use funding::{ApprovalStep, ContextVersion, FundingPath, Gasless, SentBy};
pub use json::number::{self, Hex};
pub use report::{
    Amount, Blame, ByteCoverage, Code, Line, NetworkFee, OrderStage, OrderTerms, Origin, ParseError, Refusal, Severity, Summary, Timelock,
    Told, Topic, TypedValue, Warning, Warnings, text,
};
pub use ruint::aliases::U256;
pub use state::{
    GaslessSubmission, Incomplete, RecoveryTerms, RequestId, Role, Scheme, SignedOrder, SignedTransaction, SignerError, SigningRequest,
    SwapRecovery, UnsignedOrder, VerifiedOrder, verify, verify_context, verify_record,
};
#[doc(hidden)]
pub use trust::limits;
pub use trust::limits::*;
pub use trust::{
    ApprovalPolicy, Asset, Chain, Change, Contract, EvmGeneration, Generation, Notice, Policy, Registry, ServicePins, SolanaGeneration,
    Solver, Sponsor, StarknetGeneration, TokenStandard, generation,
};
pub use verify::{CallPayloads, Leg, OrderContext, Proposal, RecordedLeg, RefuseAt, SwapTerms, address_refusal, check_declared_type};
pub use wire::{AssetId, CreateOrder, OrderRecord, RequestedLeg, SecretHash};
