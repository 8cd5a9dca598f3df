//! What comes after the signature: evidence before the secret leaves, then a redemption or a refund.
//!
//! A signed order locks the owner's funds on the source chain. The solver locks its funds on the destination chain under the same
//! secret hash. Whoever reveals the secret there lets the solver take the funds on the source chain, so the secret leaves only when the
//! destination is safe:
//!
//! ```text
//!   source:       verified ── signed ── funded ─────────────────────┬─ redeemed by the solver, with the revealed secret
//!                                                                   └─ refunded to the owner, after the source timelock
//!   destination:            not funded ── funded ── final, with ────┬─ redeemed by the owner: reveals the secret
//!                                                   time left       └─ refunded to the solver, after the destination timelock
//! ```
//!
//! 1. [`verify_record`](crate::verify_record) gives the terms of both HTLCs ([`VerifiedTerms`](crate::evidence::VerifiedTerms)). A later record
//!    with other terms is refused.
//! 2. An [`HtlcReader`](crate::reader::HtlcReader) for each endpoint says what to ask, and takes the answers. An
//!    [`HtlcQuorum`](crate::reader::HtlcQuorum) collects what they show.
//! 3. [`Funded::judge`](crate::Funded::judge) compares it with the terms by the policy's [`FinalityRule`](crate::chains::FinalityRule). `Funded` is
//!    the only proof that the secret may leave; a [`Hold`](crate::evidence::Hold) says why it must not, and whether waiting can help.
//! 4. [`recover::redeem`](crate::recover::redeem) and [`recover::refund`](crate::recover::refund) build the transaction that ends a
//!    leg, from the record alone: the service may be gone by then.
//!
//! Steps 1 to 3, for a wallet with connections of its own. The same code serves every family, because a reader's requests are the chain's
//! ordinary RPC: a method and parameters, or a path. `send` passes one request to one endpoint and returns its answer:
//!
//! ```
//! use countersign::reader::{Answer, HtlcQuorum, HtlcReader, Known, Request};
//! use countersign::{Funded, Policy, Proposal, Registry, verify_record};
//! use countersign::{chains::UnixTime, evidence::Hold};
//!
//! /// Returns the proof that the secret may leave, or why it must not.
//! fn may_release(
//!     proposal: Proposal<'_>,
//!     registry: &Registry,
//!     policy: &Policy,
//!     send: impl Fn(&str, &Request) -> Answer,
//!     now: UnixTime,
//! ) -> Result<Result<Funded, Hold>, Box<dyn std::error::Error>> {
//!     // The proposal needs `with_record`.
//!     let verified = verify_record(proposal, registry, policy)?;
//!     let terms = &verified.terms.destination;
//!     let asset = registry.asset(&terms.asset).ok_or("the asset is not pinned")?;
//!
//!     // Two of three endpoints must agree. A wallet asks them concurrently, with a time
//!     // limit for each.
//!     let endpoints = ["own node", "one provider", "another"];
//!     let mut quorum = HtlcQuorum::new(endpoints, 2)?;
//!     for endpoint in endpoints {
//!         let mut reader = HtlcReader::new(terms, &Known::default())?;
//!         while !reader.requests().is_empty() {
//!             let answers: Vec<_> =
//!                 reader.requests().iter().map(|request| send(endpoint, request)).collect();
//!             reader.answer(&answers).expect("one answer for each request");
//!         }
//!         quorum.hear(endpoint, reader.finish());
//!     }
//!
//!     // The policy's rule, or the chain's default.
//!     let rule = policy.finality_of(asset, terms.amount);
//!     let judged = Funded::judge(&verified.terms, &quorum, &rule, now);
//!     // On a `Hold`: wait and read again where `is_transient()`, else stop. Before the
//!     // secret leaves: `check_time` with a new `now`.
//!     Ok(judged)
//! }
//! # let send = |_: &str, _: &Request| Answer::result(*b"null");
//! # let _ = |proposal, registry: &Registry, policy: &Policy| may_release(proposal, registry, policy, send, UnixTime::EPOCH);
//! ```
//!
//! `countersign-transport` has this loop with time limits. `countersign-client` has a driver that takes these steps for every stored swap,
//! and survives a restart at each of them.
//!
//! Specification: `docs/spec/attacks.md#the-secret`, `docs/spec/chains.md`.
