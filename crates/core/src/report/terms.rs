//! The terms of a verified order as values.

use countersign_chains::{Account, Family};

use super::{Amount, Timelock};
use crate::wire::{AssetId, OrderRecord, SecretHash};

/// What the owner agrees to by signing, as values, for wallets with their own layout or language.
///
/// Everything here was compared with the request, the registry or the record. [`OrderTerms::payout`] is the address that the
/// wallet itself asked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OrderTerms<'o> {
    /// The order's id.
    pub order_id: &'o str,
    /// The family that signs.
    pub family: Family,
    /// What the owner pays.
    pub pay: Amount,
    /// The asset that the owner pays.
    pub source: &'o AssetId,
    /// Display name of the source chain. Its name in asset ids is `source.chain()`.
    pub source_chain_title: &'o str,
    /// What the owner receives, as requested. The record's amount may be lower by the allowed slippage.
    pub receive: Amount,
    /// The least that the owner receives: the record's amount, or without a record the requested one less the allowed slippage.
    pub receive_at_least: Amount,
    /// The asset that the owner receives.
    pub destination: &'o AssetId,
    /// Display name of the destination chain. Its name in asset ids is `destination.chain()`.
    pub destination_chain_title: &'o str,
    /// Where the owner is paid. On a Bitcoin-like chain whoever holds the redeem key is paid. If the request names no such key
    /// ([`crate::RequestedLeg::delegate`]), the address is only a promise.
    pub payout: Option<&'o str>,
    /// Who receives a refund; on Bitcoin-like chains the x-only key. `None` where the payload does not state it.
    pub initiator: Option<&'o Account>,
    /// Who may redeem with the secret. `None` where the payload does not state it.
    pub redeemer: Option<&'o Account>,
    /// The id of the pinned solver that the redeemer belongs to; `None` if it is not pinned.
    pub solver_id: Option<&'o str>,
    /// How long until a refund is possible. `None` where the payload does not state it.
    pub timelock: Option<Timelock>,
    /// The secret hash of both sides: the payload's, else the requested one.
    pub secret_hash: Option<SecretHash>,
    /// The order record, where one was given.
    pub record: Option<&'o OrderRecord>,
}
