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
//! 1. [`verify_record`](crate::verify_record) gives the terms of both HTLCs ([`VerifiedTerms`](crate::VerifiedTerms)). A later record
//!    with other terms is refused.
//! 2. A chain reader returns the state of the destination's HTLC ([`HtlcState`](crate::HtlcState)) and where it was seen
//!    ([`SeenAt`](crate::SeenAt)): `countersign-node`, or the wallet's own connection and the `read` module of the family.
//! 3. [`Funded::judge`](crate::Funded::judge) compares the two by the policy's [`FinalityRule`](crate::FinalityRule). `Funded` is the
//!    only proof that the secret may leave; a [`Hold`](crate::Hold) says why it must not, and whether waiting can help.
//! 4. [`recover::redeem`](crate::recover::redeem) and [`recover::refund`](crate::recover::refund) build the transaction that ends a
//!    leg, from the record alone: the service may be gone by then.
//!
//! Steps 1 to 3, for a wallet with its own connection to a Bitcoin destination. On account chains the
//! family's module decodes the contract's answer (`evm::read`, and `evm::address::to_account` for its parties). On Bitcoin and Litecoin the
//! address commits to both keys, the secret hash and the timelock, so an output that pays it can differ in the amount only:
//!
//! ```
//! use countersign::{Code, Funded, Hold, HtlcState, LockedHtlc, Policy, Proposal, Refusal, Registry, SeenAt, U256, verify_record};
//!
//! /// Returns the proof that the secret may leave, or why it must not.
//! fn may_release(proposal: Proposal<'_>, registry: &Registry, policy: &Policy, now: u64) -> Result<Result<Funded, Hold>, Refusal> {
//!     let verified = verify_record(proposal, registry, policy)?; // the proposal needs `with_record`
//!     let terms = &verified.terms.destination;
//!     let asset = registry.asset(&terms.asset.to_string()).ok_or_else(|| Refusal::new(Code::UnknownAsset, ""))?;
//!
//!     // What the wallet has read: an unspent output that pays the address `terms.swap_id`, and its depth in blocks.
//!     let (amount, depth) = (U256::from(2_590_000), 3);
//!     let (initiator, redeemer) = (terms.initiator.clone(), terms.redeemer.clone());
//!     let state = HtlcState::Locked(LockedHtlc::new(initiator, redeemer, amount, terms.timelock, depth));
//!     let seen = SeenAt::new(905_000, "00000000000000000001d5...", now - 60, depth).with_agreement(2, 2);
//!
//!     let rule = policy.finality_of(&asset.chain); // the policy's rule, or the chain's default
//!     let judged = Funded::judge(&verified.terms, &state, &seen, &rule, now);
//!     // On a `Hold`: wait and read again where `may_end()`, else stop. Before the secret leaves: `check_time` with a new `now`.
//!     Ok(judged)
//! }
//! # let _ = may_release;
//! ```
//!
//! `countersign-client` has a driver that takes these steps for every stored swap, and survives a restart at each of them.
//!
//! Specification: `docs/spec/attacks.md#the-secret`, `docs/spec/chains.md`.
