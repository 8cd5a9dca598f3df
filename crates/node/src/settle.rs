//! Builds and signs the transaction that redeems or refunds a leg, with a local key.

use countersign::recover::Recovery;
use countersign::{Key, Policy, Refusal, Signed, Unsigned};
use countersign_transport::Transport;

use crate::error::NodeError;
use crate::nodes::{Nodes, Speed};

/// The key and the account of the owner's redemption or refund on one chain.
#[derive(Debug)]
#[non_exhaustive]
pub struct SettlementKey {
    /// The key that signs.
    pub key: Key,
    /// The account that sends the transaction; on a Bitcoin-like chain the address that receives the coins.
    pub account: String,
}

impl SettlementKey {
    /// Creates a settlement key. `owner` is the owner's address on the chain, which is the account where none follows from the key
    /// ([`Key::account`]). Returns `None` if there is neither.
    #[must_use]
    pub fn new(key: Key, owner: Option<String>) -> Option<Self> {
        let account = key.account().map(|account| account.to_string()).or(owner)?;
        Some(Self { key, account })
    }
}

/// Which transaction for the end of a leg is built: the first, or one that must be mined soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the three ways to prepare a recovery")]
pub enum Attempt<'a> {
    /// The first transaction: see [`Nodes::prepare_recovery`].
    First(Speed),
    /// A redemption whose secret others may know: see [`Nodes::prepare_urgent`].
    Urgent,
    /// A transaction in place of one that was sent and is not mined: see [`Nodes::prepare_replacement`]. A redemption only if others may
    /// know its secret.
    Replacement {
        /// The id of the transaction that was sent.
        id: &'a str,
        /// Its payload, in the form of [`BroadcastTransaction::payload`](countersign::BroadcastTransaction::payload).
        payload: &'a str,
    },
}

impl<T: Transport> Nodes<T> {
    /// Builds and signs the transaction that redeems or refunds a leg, with the nonce, fees and coins that its chain reports. An owner of
    /// `countersign-client` calls it in `settle`. Nothing is sent.
    ///
    /// ```no_run
    /// use countersign::recover::{self, Leg};
    /// use countersign::{BroadcastTransaction, OrderRecord, Policy, Registry};
    /// use countersign_node::{Attempt, NodeError, Nodes, SettlementKey, Speed};
    ///
    /// # async fn refund<T: countersign_transport::Transport>(
    /// #     nodes: &Nodes<T>, record: &OrderRecord, key: &SettlementKey, registry: &Registry, policy: &Policy,
    /// # ) -> Result<Vec<BroadcastTransaction>, NodeError> {
    /// let refund = recover::refund(record, Leg::Source, registry)?;
    /// let signed = nodes
    ///     .settle(
    ///         &refund,
    ///         &record.source_swap.chain,
    ///         Attempt::First(Speed::Normal),
    ///         key,
    ///         policy,
    ///     )
    ///     .await?;
    /// # Ok(signed.broadcasts()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of the method that [`Attempt`] names, and [`NodeError::Refused`] if the key cannot sign everything: with
    /// [`Code::KeyMismatch`](countersign::Code::KeyMismatch) or [`Code::SignatureMissing`](countersign::Code::SignatureMissing).
    pub async fn settle(
        &self,
        recovery: &Recovery,
        chain: &str,
        attempt: Attempt<'_>,
        with: &SettlementKey,
        policy: &Policy,
    ) -> Result<Signed, NodeError> {
        let SettlementKey { key, account } = with;
        let mut unsigned = self.prepare_settlement(recovery, chain, attempt, account, policy).await?;
        unsigned.sign(key)?;
        Ok(unsigned.finish().map_err(Refusal::from)?)
    }

    /// Builds the transaction that redeems or refunds a leg, for a signer outside: like [`Nodes::settle`], but unsigned. `account` is the
    /// account that sends it; on a Bitcoin-like chain the address that receives the coins.
    ///
    /// # Errors
    ///
    /// Returns the errors of the method that [`Attempt`] names.
    pub async fn prepare_settlement(
        &self,
        recovery: &Recovery,
        chain: &str,
        attempt: Attempt<'_>,
        account: &str,
        policy: &Policy,
    ) -> Result<Unsigned, NodeError> {
        match attempt {
            Attempt::First(speed) => self.prepare_recovery(recovery, chain, account, speed, policy).await,
            Attempt::Urgent => self.prepare_urgent(recovery, chain, account, Speed::Fast, policy).await,
            // A transaction with too low a fee is replaced by one that should be mined at once.
            Attempt::Replacement { id, payload } => {
                let sent = self.submission(chain, id, payload)?;
                self.prepare_replacement(recovery, chain, account, &sent, Speed::Fast, policy).await
            }
        }
    }
}
