//! The wallet context, `TxContext`: what only the wallet knows and `prepare` needs. The page of each family has a table of its fields:
//! [`evm`](crate::evm#wallet-context), [`tron`](crate::tron#wallet-context), [`starknet`](crate::starknet#wallet-context),
//! [`solana`](crate::solana#wallet-context), [`sui`](crate::sui#wallet-context), [`bitcoin`](crate::bitcoin#wallet-context).
//!
//! `prepare` borrows the verified order, so call it again with other values whenever nonce or fees change. If an order offers a gasless
//! path, [`FundingPath`](crate::FundingPath) chooses: `Gasless` needs nothing from the wallet, a context by itself is the self-funded
//! path, and `FundingPath::Both` prepares both, of which only one may be submitted. `countersign-node` makes each of these contexts from
//! the user's own endpoints.
//!
//! A wallet that does not match on the family keeps the context of any family as a [`Context`](crate::Context), and prepares with
//! [`Verified::prepare`](crate::Verified::prepare).
//!
//! Anyone may send a redemption, a refund or a claim, so the order does not say who does. Their `prepare` takes the same context together
//! with the account that sends and pays: `recovery.prepare(context.sent_by(account))`. On Bitcoin and Litecoin it takes a
//! [`Payout`](crate::bitcoin::recover::Payout) instead, because the coins need a destination.
//!
//! A required field is read from a node for the account that sends, from the clock, or from a simulation, as the table says.
//!
//! ```
//! # #[cfg(feature = "evm")] {
//! use countersign::evm::{ApprovalStep, TxContext};
//!
//! // Nonce 7, at most 30 gwei per gas, 1 gwei of it for the proposer, and an approval of
//! // exactly the amount.
//! let context = TxContext::eip1559(7, 30_000_000_000, 1_000_000_000)
//!     .with_approval(ApprovalStep::Exact);
//! assert_eq!(context.nonce, 7);
//! # }
//! ```
//!
//! # As JSON
//!
//! Each context is `Serialize` and `Deserialize` and contains no secret: see [surviving a restart](super::restart). Its members have the names
//! of the fields. Numbers are JSON numbers, bytes are arrays of numbers, variants are their names, and addresses, felts, hashes, fee
//! rates and key origins are text; the bounds of [`ResourceBounds`](crate::starknet::ResourceBounds) and the scripts of coins are hex, and
//! Sui's coins have the form of Mysten's SDK. Later versions of this library read it too:
//!
//! - `version` is 1, and stands first. Without it a context counts as version 1, and one of a newer version is refused with this reason.
//! - A member that has a default may be missing, and then has it. So a context of a version that did not know the member is read.
//! - Any other member is refused by its name, as a misspelt one would be ignored.
//!
//! The program and the bindings read another form, which is described in `docs/spec/batch.md#wallet-contexts`.
