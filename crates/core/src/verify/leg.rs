//! One side of an order record by itself: what recovery starts from.

use countersign_chains::swap_id::{SwapIdInput, Version};
use countersign_chains::{Account, Family, address};

use super::record::Parties;
use super::swap_id;
use crate::json::number::bare_hex_array;
use crate::report::Code;
use crate::report::Refusal;
use crate::trust::{Asset, Registry};
use crate::wire::SecretHash;
use crate::wire::{OrderRecord, SwapRecord};

/// Which side of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leg {
    /// Where the owner pays: the side that the owner refunds.
    Source,
    /// Where the owner is paid: the side that the owner redeems.
    Destination,
}

impl Leg {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Source => "source_swap",
            Self::Destination => "destination_swap",
        }
    }

    /// The record of this side.
    #[must_use]
    pub const fn of(self, record: &OrderRecord) -> &SwapRecord {
        match self {
            Self::Source => &record.source_swap,
            Self::Destination => &record.destination_swap,
        }
    }

    /// A refusal at a member of this side.
    #[must_use]
    pub fn refuse(self, code: Code, member: &str) -> Refusal {
        Refusal::new(code, format!("/order/{}/{member}", self.name()))
    }

    /// The pinned asset of this side, which is on the chain that the record names beside it.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownAsset`], or [`Code::RecordMismatch`] for another chain.
    pub fn pinned<'r>(self, swap: &SwapRecord, registry: &'r Registry) -> Result<&'r Asset, Refusal> {
        let asset = registry.asset(swap.asset.as_str()).ok_or_else(|| self.refuse(Code::UnknownAsset, "asset").with_actual(&swap.asset))?;
        if swap.chain == asset.chain.record.chain {
            return Ok(asset);
        }
        Err(self.refuse(Code::RecordMismatch, "chain").with_expected(&asset.chain.record.chain).with_actual(&swap.chain))
    }
}

/// One side of a record on an account chain, its asset pinned and its parties read.
#[derive(Debug)]
#[non_exhaustive]
pub struct RecordedLeg<'r> {
    /// The swap record.
    pub swap: &'r SwapRecord,
    /// The pinned asset.
    pub asset: &'r Asset,
    /// Which fields an EVM swap id binds.
    pub version: Version,
    /// Who funded, and gets a refund.
    pub initiator: Account,
    /// Who redeems.
    pub redeemer: Account,
    leg: Leg,
}

impl<'r> RecordedLeg<'r> {
    /// Reads one side, which must be on a chain of `family`.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownAsset`], [`Code::UnsupportedFamily`], [`Code::RecordVersion`], [`Code::GenerationMismatch`] for the version of
    /// another EVM generation than the pinned one, or [`Code::RecordMismatch`] for another chain than the asset's or a party that
    /// is not an account of it.
    pub fn new(record: &'r OrderRecord, leg: Leg, registry: &'r Registry, family: Family) -> Result<Self, Refusal> {
        let swap = leg.of(record);
        let refuse = |code, member: &str| leg.refuse(code, member);
        let asset = leg.pinned(swap, registry)?;
        if asset.chain.family() != family {
            return Err(refuse(Code::UnsupportedFamily, "asset").with_expected(family).with_actual(asset.chain.family()));
        }
        let version = Version::parse(&record.version).ok_or_else(|| {
            Refusal::new(Code::RecordVersion, "/order/version").with_expected("v1, v2 or v3").with_actual(&record.version)
        })?;
        swap_id::check_version(asset, version, "/order/version")?;
        let party = |member, text: &str| {
            address::parse(&asset.chain.network, text)
                .map_err(|error| refuse(Code::RecordMismatch, member).with_reason(error.to_string()).with_actual(text))
        };
        let (initiator, redeemer) = (party("initiator", &swap.initiator)?, party("redeemer", &swap.redeemer)?);
        Ok(Self { swap, asset, version, initiator, redeemer, leg })
    }

    /// A refusal at a member of this side.
    #[must_use]
    pub fn refuse(&self, code: Code, member: &str) -> Refusal {
        self.leg.refuse(code, member)
    }

    /// What the swap-id formulas draw from.
    #[must_use]
    pub fn terms(&self) -> SwapIdInput<'_> {
        SwapIdInput {
            secret_hash: &self.swap.secret_hash.0,
            initiator: self.initiator.bytes(),
            redeemer: self.redeemer.bytes(),
            timelock: self.swap.timelock,
            amount: self.swap.amount,
        }
    }

    /// Returns the swap id of 32 bytes, and whether it was recomputed by a formula that is known to be the contract's own. Where
    /// none is known it is the record's.
    ///
    /// # Errors
    ///
    /// [`Code::RecordSwapId`] if the record's id is not the one that the formula gives, or not 64 hex digits, and
    /// [`Code::GenerationMismatch`] if it is the one of another generation than the pinned one.
    pub fn hash_swap_id(&self) -> Result<([u8; 32], bool), Refusal> {
        let parties = Parties { initiator: self.initiator.clone(), redeemer: self.redeemer.clone() };
        let recomputed = swap_id::recompute(self.asset, self.version, &parties, self.swap);
        let recorded = &self.swap.swap_id;
        let refuse = || self.refuse(Code::RecordSwapId, "swap_id").with_actual(recorded);
        let is_equal = recomputed.equals(recorded);
        if recomputed.is_certain && !is_equal {
            if let Some((expected, actual)) = swap_id::other_generation(self.asset, &parties, self.swap) {
                let refusal = self.refuse(Code::GenerationMismatch, "swap_id").with_expected(expected.name());
                return Err(refusal.with_actual(actual.name()));
            }
            return Err(match recomputed.id {
                Some(id) => refuse().with_expected(id),
                None => refuse(),
            });
        }
        let id = bare_hex_array(recorded).map_err(|error| refuse().with_reason(error.to_string()))?;
        Ok((id, recomputed.is_certain && is_equal))
    }

    /// The pinned HTLC.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownAsset`] if none is pinned.
    pub fn htlc(&self) -> Result<&Account, Refusal> {
        self.asset.htlc.as_ref().ok_or_else(|| self.refuse(Code::UnknownAsset, "asset").with_reason("no HTLC is pinned for the asset"))
    }

    /// The secret is that of this side's hash.
    ///
    /// # Errors
    ///
    /// [`Code::SecretWrong`], without the secret.
    pub fn check_secret(&self, secret: &[u8; 32]) -> Result<(), Refusal> {
        if SecretHash::of(secret) == self.swap.secret_hash {
            return Ok(());
        }
        Err(self.refuse(Code::SecretWrong, "secret_hash").with_expected(self.swap.secret_hash))
    }
}
