//! Verifies, explains and signs what a cross-chain swap service asks a wallet to sign.
//!
//! A create-order response carries bytes that move the user's funds. countersign decodes them, rebuilds from the order's own
//! terms what they should say, and refuses them where the two differ. It explains the rest and produces the exact artefact for
//! any signer.
//!
//! | state | meaning | next step |
//! |---|---|---|
//! | [`Proposal`] | the documents as received; nothing is trusted yet | [`verify`] |
//! | [`Verified`] | every field equals the request, the registry or the record, or is shown | `prepare`, as often as fees change |
//! | [`Unsigned`] | payloads for any signer, and the signatures so far | `sign`, `sign_with`, `attach`, `finish` |
//! | [`Signed`] | all signatures are there; one that only the chain can verify is a warning | `transactions`, `gasless` |
//!
//! What is trusted: the request (the wallet's own), the [`Registry`] (pinned by the wallet) and the [`Policy`] (the wallet's
//! limits). The response and the order record are not.
//!
//! No I/O, no clock, no random source, no `unsafe`. Each family is a feature and a module; no feature changes a verdict.

mod broadcast;
pub mod recover;
mod states;

#[cfg(feature = "bitcoin")]
pub use countersign_bitcoin as bitcoin;
#[cfg(feature = "evm")]
pub use countersign_evm as evm;
#[cfg(feature = "solana")]
pub use countersign_solana as solana;
#[cfg(feature = "starknet")]
pub use countersign_starknet as starknet;
#[cfg(feature = "sui")]
pub use countersign_sui as sui;
#[cfg(feature = "tron")]
pub use countersign_tron as tron;

pub use broadcast::Broadcast;
pub use countersign_core::{
    Account, Amount, ApprovalPolicy, ApprovalStep, Asset, AssetId, Blame, ByteCoverage, Chain, Change, Code, Contract, CreateOrder,
    EvmGeneration, Family, Finality, FinalityRule, Funded, FundingPath, Gasless, GaslessSubmission, Generation, Hex, Hold, HtlcState,
    HtlcTerms, Leg, Line, LockedHtlc, Network, Notice, OrderRecord, OrderTerms, ParseError, Policy, Proposal, Refusal, Registry, RequestId,
    RequestedLeg, Role, Scheme, SecretHash, SeenAt, ServicePins, Severity, SignedOrder, SignedTransaction, SignerError, SigningRequest,
    SolanaGeneration, Solver, Sponsor, StarknetGeneration, Summary, Timelock, Topic, TypedValue, U256, UnsignedOrder, VerifiedOrder,
    VerifiedRecord, VerifiedTerms, Warning, Warnings, chains, family, json, number, text, wire,
};
pub use states::{FAMILIES, Incomplete, Payload, Signed, Transaction, Unsigned, Verified, verify, verify_record};

pub use countersign_core::verify as verify_as;
