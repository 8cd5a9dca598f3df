//! Verifies, explains and signs what a cross-chain swap service asks a wallet to sign.
//!
//! When a wallet creates an order, the service's response contains bytes that move the user's funds: contract calls with typed data, a
//! transaction, or a deposit address. Whoever controls the response controls the funds. countersign decodes the response, rebuilds from the
//! order's own terms what it should contain, and refuses it where the two differ. It explains the rest in words, and only then produces the
//! exact bytes to sign, for any signer: local, external or hardware.
//!
//! # Install
//!
//! ```toml
//! [dependencies]
//! countersign = { version = "0.1", default-features = false, features = ["evm", "libsecp256k1"] }
//! ```
//!
//! # Example
//!
//! The documents are in the crate's `doc` folder, so this runs as it is:
//!
#![cfg_attr(feature = "evm", doc = "```")]
#![cfg_attr(not(feature = "evm"), doc = "```ignore")]
//! use countersign::evm::{self, ApprovalStep, TxContext};
//! use countersign::{Blame, CreateOrder, Policy, Proposal, Registry};
//!
//! // Pinned by the wallet.
//! let registry: Registry = include_str!("../doc/registry.json").parse()?;
//! // Or `CreateOrder::new(source, destination)`.
//! let request: CreateOrder = include_str!("../doc/request.json").parse()?;
//! // Of `POST /v2/orders`: nothing in it is trusted.
//! let response = include_str!("../doc/response.json");
//! // Of `GET /v2/orders/{order}`: not trusted either.
//! let record = include_str!("../doc/record.json");
//! let policy = Policy::default();
//!
//! // Every byte of the response is decoded, and compared with what the request and the
//! // registry imply. The record adds the destination: without it, only the warning
//! // `no_order_record` says that nothing is known about that leg.
//! let proposal =
//!     Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
//! let order = evm::verify(proposal, &registry, &policy)?;
//! println!("{}", order.summary()); // what the user reads; `order.terms()` has the values
//! for warning in order.warnings() {
//!     println!("{}: {}", warning.severity(), warning.message());
//! }
//!
//! // The wallet adds its nonce and fees, again whenever they change.
//! let context = TxContext::eip1559(891, 30_000_000_000, 1_000_000_000)
//!     .with_approval(ApprovalStep::Exact);
//! let mut unsigned = order.prepare(context)?;
//!
//! // A local key signs here. For other signers: `requests()` out and `attach()` back, or
//! // `sign_with(&alloy_signer)`.
//! let test_key: evm::Key =
//!     "0xf9900aa163b64dbaeb472abe7d918ada7c5a7b5021ab3f2bc709a3758da94fd8".parse()?;
//! unsigned.sign(&test_key)?;
//! for transaction in unsigned.finish()?.transactions() {
//!     println!(
//!         "{}: {} with {} bytes",
//!         transaction.role,
//!         transaction.id,
//!         transaction.bytes.len()
//!     );
//! }
//!
//! // A response that pays another redeemer is refused, and there is nothing to sign.
//! let tampered = response.replace(
//!     "8a47d35b5e9bffb780744735d27117759b0bc2ea",
//!     "8a47d35b5e9bffb780744735d27117759b0bc2eb",
//! );
//! let refusal =
//!     evm::verify(Proposal::new(&request, tampered.as_bytes()), &registry, &policy)
//!         .unwrap_err();
//! assert_eq!(refusal.blame(), Blame::Service);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # States
//!
//! Each state is a type that only the step before it can make, so `verify` cannot be skipped.
//!
//! | state | meaning | next step |
//! |---|---|---|
//! | [`Proposal`] | the documents as received; nothing is trusted yet | [`verify`], or `verify` of one family |
//! | [`Verified`] | every field equals the request, the registry or the record, or is shown | [`prepare`](Verified::prepare) with a [`Context`], as often as fees change |
//! | [`Unsigned`] | payloads for any signer, and the signatures so far | `sign`, `sign_with`, `attach_text`, `finish` |
//! | [`Signed`] | all signatures are there; one that only the chain can verify is a warning | `transactions`, `gasless` |
//!
//! [`Verified`], [`Unsigned`] and [`Signed`] are enums with a variant for each family; match on them for native types. A wallet for one
//! family uses [`VerifiedOrder`], [`UnsignedOrder`] and [`SignedOrder`] through that family's module. The [`recover`] module redeems or
//! refunds from an order record alone, and ends in the same [`Unsigned`].
//!
//! # Families and features
//!
//! Each family is a module of this crate, behind a feature with its name. [`guide::versions`] lists the features, with
//! the versions of each chain's SDK whose types and signers they take. All families are on by default.
//!
//! A wallet whose SDK has another version signs by a closure over bytes (`sign_with_fn`) and compares bytes (`matches_bytes`). No feature
//! changes a verdict.
//!
//! # What is trusted
//!
//! The request (the wallet's own), the [`Registry`] (pinned by the wallet), the [`Policy`] (the wallet's limits), and evidence that was
//! read from a chain. The response and the order record are not.
//!
//! The order record is the service's second statement about an order, from `GET /v2/orders/{order}`. It contains both legs. Add it with
//! [`Proposal::with_record`]: without it the destination leg is not checked, and the warning
//! [`NoOrderRecord`](Code::NoOrderRecord) says so.
//!
//! # What is not checked
//!
//! * Whether the pinned contracts are honest. `countersign-node` shows when their code changes.
//! * What only a chain knows: balances, nonces, and whether the solver has paid. `countersign-node` reads it, and [`Funded`] proves it.
//! * Whatever a [`Warning`] names. A policy can turn each warning into a refusal.
//!
//! There is no I/O, no clock, no random source and no `unsafe` in this crate and those below it. Starknet's local
//! keys do not sign in constant time: use an external signer where side channels matter.
//!
//! # More
//!
//! The [`guide`] describes the fields of request, registry and policy, wallet contexts, external wallets, restarts, the versions of
//! SDKs, and what to do with refusals. Other crates: `countersign-client` talks to the service, `countersign-node` to the chains, and
//! `countersign-json` has the JSON contract that other languages use.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[macro_use]
mod families;

mod broadcast;
mod context;
mod funded;
pub mod guide;
mod key;
pub mod reader;
pub mod recover;
mod states;

/// What a chain shows: the state of a swap, and how it compares with the terms that were verified.
///
/// [`Funded`] and the [`reader`] make these values.
pub mod evidence {
    #[doc(inline)]
    pub use countersign_core::{
        HeadDoubt, Hold, HoldCode, HtlcEvent, HtlcState, HtlcTerms, LockedHtlc, ObservedAt, Precondition, SentBy, Stage, VerifiedTerms,
        check_head_time,
    };
}

/// The values in refusals, warnings and the summary of an order.
pub mod report {
    #[doc(hidden)]
    pub use countersign_core::report::amount;
    #[doc(inline)]
    pub use countersign_core::{
        Amount, ByteCoverage, Hex, Line, NetworkFee, OrderStage, OrderTerms, Origin, ParseError, Timelock, Told, Topic, TypedValue,
    };
}

/// What a wallet pins in its [`Registry`], and the limits of its [`Policy`].
pub mod trust {
    #[doc(inline)]
    pub use countersign_core::limits::*;
    #[doc(inline)]
    pub use countersign_core::{
        Asset, Chain, Change, Contract, EvmGeneration, Generation, Notice, ServicePins, SolanaGeneration, Solver, Sponsor,
        StarknetGeneration, TokenStandard, generation,
    };
}

pub use broadcast::BroadcastTransaction;
pub use context::Context;
pub use countersign_core::{
    ApprovalPolicy, ApprovalStep, AssetId, Blame, Code, CreateOrder, Family, FundingPath, Gasless, GaslessSubmission,
    Incomplete as IncompleteOrder, Leg, OrderRecord, Policy, Proposal, Refusal, Registry, RequestId, Role, Scheme, SecretHash, Severity,
    SignedOrder, SignedTransaction, SignerError, SigningRequest, Summary, U256, UnsignedOrder, VerifiedOrder, VerifiedRecord, Warning,
    Warnings, chains, wire,
};
pub use families::*;
pub use funded::Funded;
pub use key::Key;
pub use states::{FAMILIES, Incomplete, Payload, Signed, Transaction, Unsigned, Verified, verify, verify_record};

/// For the authors of families and of adapters; not covered by semantic versioning.
#[doc(hidden)]
pub use countersign_core::{family, json, number, text, verify as verify_family};
