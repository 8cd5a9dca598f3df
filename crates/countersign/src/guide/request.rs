//! The request: what the wallet asks for. The response and the order record are compared with it.
//!
//! [`CreateOrder`](crate::CreateOrder) is the body of `POST /v2/orders`. Keep the request that was sent: verification needs it again
//! whenever a record arrives.
//!
//! | member | type | required | meaning |
//! |---|---|---|---|
//! | `source` | leg | yes | what the owner pays |
//! | `destination` | leg | yes | what the owner receives |
//! | `secret_hash` | 64 hex digits | no | SHA-256 of 32 random bytes that the wallet keeps. Without it the service chooses and holds the secret |
//! | `solver_id` | text | no | the solver whose quote is taken |
//! | `slippage` | [`BasisPoints`](crate::wire::BasisPoints) | no | how much less than `destination.amount` the order may pay |
//! | `nonce` | decimal number, text | no | nonce of the order |
//! | `affiliate_fees` | array | no | fees for the application that embeds the wallet: `asset`, `address`, `fee` in basis points |
//!
//! A leg ([`RequestedLeg`](crate::wire::RequestedLeg)):
//!
//! | member | type | required | meaning |
//! |---|---|---|---|
//! | `asset` | text | yes | a pinned asset: `ethereum:usdc` |
//! | `amount` | base units, text | yes | not zero |
//! | `owner` | address | yes, except for a Bitcoin or Litecoin source | the owner's address on the asset's chain |
//! | `delegate` | account, or x-only key | no | account chains: the account that sends and pays for the owner. Bitcoin and Litecoin: the owner's own key in the HTLC |
//!
//! On Bitcoin and Litecoin always set `delegate`, for either leg. The HTLC pays a key, not an address. Without a key of yours the service
//! chooses it: as a source you cannot refund alone (warning `refund_key_not_yours`), and as a destination whoever holds the key is
//! paid (warning `redeem_key_not_yours`).
//!
//! ```
//! use countersign::{CreateOrder, SecretHash, U256, wire::RequestedLeg};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // 32 bytes from the wallet's random source, stored before the request is sent.
//! let secret = [7; 32];
//! let request = CreateOrder::new(
//!     RequestedLeg::new(
//!         "base:cbbtc".parse()?,
//!         "0x6BEe096D56DCfa2a38e9F21FcaecbaB8D21D5aa5",
//!         U256::from(1_250_000),
//!     ),
//!     RequestedLeg::new(
//!         "bitcoin:btc".parse()?,
//!         "bc1pxcm4xsaf5jf3quqgjpne3vlqzk77vljthwa4wgy4x42j52vkzjhstr65h5",
//!         U256::from(2_590_000),
//!     )
//!     .with_delegate("bc95e0cecad545925dd165066c2342a44658156a8e086af178138abb71df2ef9"),
//! )
//! .with_secret_hash(SecretHash::of(&secret));
//! let body = serde_json::to_string(&request)?;
//! # let _ = body;
//! # Ok(())
//! # }
//! ```
//!
//! Specification: `docs/spec/service.md#creating-an-order`.
