//! The owner: who signs. A local key, a hardware wallet, a person with a dialog.
//!
//! The driver asks for signatures only, never for a decision about chains. A reply of "not now" is not an error: the driver reports
//! [`NeedsOwner`](crate::driver::Status::NeedsOwner) or [`Unsigned`](crate::driver::Status::Unsigned), and asks again in the next step.
//!
//! | method | asked when | reply |
//! |---|---|---|
//! | `fund` | the order was verified, both chains were read, and the deadline has not passed | [`Signed`](crate::driver::FundingReply::Signed), [`Outside`](crate::driver::FundingReply::Outside) if a signer that can send by itself has to be asked, [`NotNow`](crate::driver::FundingReply::NotNow) |
//! | `hand_out` | after `Outside`, once the journal says that the payment may be on its way | [`Signed`](crate::driver::FundingReply::Signed), [`Elsewhere`](crate::driver::FundingReply::Elsewhere) if it was sent, or may have been |
//! | `raise` | a payment on a Bitcoin-like chain should be in a block by now, and is not | the payment again, with the same coins and deposit, for a higher fee: a wallet with `countersign-node` calls `Nodes::prepare_raised`. The default signs nothing |
//! | `check_release` | right before the secret is shown to anybody for the first time: to `settle`, or to the service's relayer | an error if the redemption would not pay, which keeps the secret. It gets the pins that the order was signed with, and asks about their assets. The default asks nothing: a wallet with `countersign-node` calls `Nodes::preconditions` here with `Ends::of_record` and the contracts that it has stored (`Ends::described`), and in `fund` with `Ends::of_order` |
//! | `settle` | the destination is funded (a redemption), or the source's timelock is over (a refund); again with `replaces` if what was sent is not mined, but never before the secret is out | transactions; `None` for not now |
//! | `can_redeem` | before paying | whether there is a key and a coin for fees on that chain |
//! | `signs_here` | before a redemption is signed | whether the key is in this process. Otherwise the journal says first that the secret may be out |
//!
//! ```
//! use countersign_client::countersign::recover::{self, Recovery};
//! use countersign_client::countersign::{
//!     BroadcastTransaction, Key, Refusal, Signed, Unsigned, Verified,
//! };
//! use countersign_client::driver::{
//!     FundingReply, Owner, OwnerError, Settlement, SignedFunding,
//! };
//!
//! /// The part that a wallet already has: it reads nonce and fees from the user's own
//! /// endpoints.
//! trait Prepare: Send + Sync {
//!     /// Matches on the family, and calls `prepare` with its wallet context.
//!     fn order(&self, order: &Verified) -> Result<Unsigned, Refusal>;
//!     /// Prepares a recovery. It must pay more than the transactions in `replaces`, with
//!     /// the same nonce or the same inputs.
//!     fn recovery(
//!         &self,
//!         recovery: &Recovery,
//!         replaces: &[BroadcastTransaction],
//!     ) -> Result<Unsigned, Refusal>;
//! }
//!
//! /// A signer with keys on some chains.
//! struct Signer<W> {
//!     wallet: W,
//!     key: Key,
//! }
//!
//! impl<W: Prepare> Signer<W> {
//!     /// Shows the summary and the warnings, and signs if the person agrees.
//!     async fn confirmed(&self, unsigned: Unsigned) -> Result<Option<Signed>, OwnerError> {
//! # let mut unsigned = unsigned;
//!         println!("{}", unsigned.summary());
//!         unsigned.sign(&self.key)?;
//!         Ok(Some(unsigned.finish()?))
//!     }
//! }
//!
//! impl<W: Prepare> Owner for Signer<W> {
//!     async fn fund(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
//!         // The signed order knows its chain, and whether the service submits it (gasless).
//!         let signed = self.confirmed(self.wallet.order(order)?).await?;
//!         Ok(signed.map_or(FundingReply::NotNow, |signed| {
//!             FundingReply::Signed(SignedFunding::from_signed(&signed))
//!         }))
//!     }
//!
//!     async fn settle(
//!         &self,
//!         task: &Settlement<'_>,
//!     ) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
//!         let recovery = match task.secret {
//!             Some(secret) => {
//!                 recover::redeem(task.record, task.leg, secret.expose(), task.registry)?
//!             }
//!             None => recover::refund(task.record, task.leg, task.registry)?,
//!         };
//!         let signed = self.confirmed(self.wallet.recovery(&recovery, task.replaces)?).await?;
//!         Ok(signed.map(|signed| signed.broadcasts()))
//!     }
//!
//!     fn can_redeem(&self, chain: &str) -> bool {
//!         chain == "base" || chain == "bitcoin"
//!     }
//! }
//! ```
//!
//! An error of the owner does not end a swap. [`Unavailable`](crate::driver::OwnerError::Unavailable) is for what may work later, such as a
//! node that returns no fee; the driver tries again. A [`Refusal`](countersign::Refusal) is shown. While `fund` runs, the order is locked;
//! other orders go on.
