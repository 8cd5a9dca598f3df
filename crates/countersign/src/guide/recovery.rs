//! Refunds and redemptions, from an order record alone.
//!
//! A [`Recovery`](crate::recover::Recovery) needs no service: the record names the HTLC, and the pinned registry its contract. It is prepared
//! with what the wallet adds, and signed as an order is. On account chains anybody may send it, because the contract pays the party that it
//! has stored; so the context names its sender. On Bitcoin-like chains the key of the HTLC signs, and the wallet says which output it spends
//! and where the coins go.
//!
//! | HTLC | call | recipient | when |
//! |---|---|---|---|
//! | [`Leg::Source`](crate::Leg::Source) | [`refund`](crate::recover::refund) | the owner | after the timelock, if nobody has redeemed |
//! | [`Leg::Destination`](crate::Leg::Destination) | [`redeem`](crate::recover::redeem), with the secret | the owner's payout | once the chain shows the solver's payment as final: see [`swaps`](super::swaps) |
//!
//! A redemption makes the secret public. Whoever sees it can redeem the source.
//!
#![cfg_attr(all(feature = "evm", feature = "bitcoin"), doc = "```")]
#![cfg_attr(not(all(feature = "evm", feature = "bitcoin")), doc = "```ignore")]
//! use countersign::recover::{self, Leg, Recovery};
//! use countersign::{OrderRecord, Refusal, Registry, Unsigned, bitcoin, evm};
//!
//! /// What the wallet reads from its own nodes when it needs it, and its addresses.
//! struct Wallet {
//!     sender: evm::alloy_primitives::Address,
//!     context: evm::TxContext,           // nonce and fees
//!     payout: bitcoin::recover::Payout,  // output, address, fee rate
//! }
//!
//! /// Takes the payment back. Any signer can sign what is returned; `None` for a family that
//! /// this wallet does not have.
//! fn refund(
//!     record: &OrderRecord,
//!     registry: &Registry,
//!     wallet: Wallet,
//! ) -> Result<Option<Unsigned>, Refusal> {
//!     let unsigned = match recover::refund(record, Leg::Source, registry)? {
//!         // The other account chains are alike: each has its own address and context.
//!         Recovery::Evm(refund) => {
//!             refund.prepare(wallet.context.sent_by(wallet.sender))?.into()
//!         }
//!         Recovery::Bitcoin(refund) => refund.prepare(wallet.payout)?.into(),
//!         _ => return Ok(None),
//!     };
//!     Ok(Some(unsigned))
//! }
//! ```
//!
//! Before the timelock, the solver can agree to give the payment back at once: an instant refund. On Bitcoin-like chains both parties sign
//! its transaction (`bitcoin::recover::InstantRefund`), on Starknet its call needs a signature of the redeemer
//! (`starknet::recover::instant_refund`). `countersign-client` asks the service for it, and signs only what it has computed itself.
