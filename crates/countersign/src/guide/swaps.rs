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
//! `countersign-client` has a driver that takes these steps for every stored swap, and survives a restart at each of them.
//!
//! Specification: `docs/spec/attacks.md#the-secret`, `docs/spec/chains.md`.
