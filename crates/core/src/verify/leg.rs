//! One leg of an order record by itself, from which a recovery is made.

use countersign_chains::swap_id::{SwapIdInput, Version};
use countersign_chains::{Account, Family, address};

use super::record::Parties;
use super::swap_id;
use crate::json::At;
use crate::json::number::bare_hex_array;
use crate::report::Code;
use crate::report::Refusal;
use crate::trust::{Asset, Registry};
use crate::wire::SecretHash;
use crate::wire::{OrderRecord, SwapRecord};

/// One of the two legs of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leg {
    /// The leg on which the owner pays, and which the owner can refund.
    Source,
    /// The leg on which the owner is paid, and which the owner redeems.
    Destination,
}

impl Leg {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Source => "source_swap",
            Self::Destination => "destination_swap",
        }
    }

    /// Returns this leg's part of a record.
    #[must_use]
    pub const fn of(self, record: &OrderRecord) -> &SwapRecord {
        match self {
            Self::Source => &record.source_swap,
            Self::Destination => &record.destination_swap,
        }
    }

    /// Creates a refusal at a member of this leg.
    #[must_use]
    pub fn refuse(self, code: Code, member: &str) -> Refusal {
        At::RECORD.refuse_below(code, &format!("/{}/{member}", self.name()))
    }

    /// Returns the pinned asset of this leg.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownAsset`] if the asset is not pinned, [`Code::RecordMismatch`] if the record names another chain than the asset's.
    pub fn pinned<'r>(self, swap: &SwapRecord, registry: &'r Registry) -> Result<&'r Asset, Refusal> {
        let asset = registry.asset(swap.asset.as_str()).ok_or_else(|| self.refuse(Code::UnknownAsset, "asset").with_actual(&swap.asset))?;
        if swap.chain == asset.chain_name() {
            return Ok(asset);
        }
        Err(self.refuse(Code::RecordMismatch, "chain").with_expected(asset.chain_name()).with_actual(&swap.chain))
    }
}

/// One leg of a record on an account chain, with its pinned asset and its parsed parties.
#[derive(Debug)]
#[non_exhaustive]
pub struct RecordedLeg<'r> {
    /// The swap record.
    pub swap: &'r SwapRecord,
    /// The pinned asset.
    pub asset: &'r Asset,
    /// The version of the record: which fields an EVM swap id binds.
    pub version: Version,
    /// Who funded, and gets a refund.
    pub initiator: Account,
    /// Who redeems.
    pub redeemer: Account,
    leg: Leg,
}

impl<'r> RecordedLeg<'r> {
    /// Reads one leg, which must be on a chain of `family`.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownAsset`] if the asset is not pinned; [`Code::UnsupportedFamily`] for another family; [`Code::RecordVersion`] for
    /// an unknown version; [`Code::GenerationMismatch`] for the version of another EVM generation than the pinned one;
    /// [`Code::RecordMismatch`] if the record names another chain than the asset's, or a party that is not an account of that chain.
    pub fn new(record: &'r OrderRecord, leg: Leg, registry: &'r Registry, family: Family) -> Result<Self, Refusal> {
        let swap = leg.of(record);
        let refuse = |code, member: &str| leg.refuse(code, member);
        let asset = leg.pinned(swap, registry)?;
        if asset.chain.family() != family {
            return Err(refuse(Code::UnsupportedFamily, "asset").with_expected(family).with_actual(asset.chain.family()));
        }
        let version = Version::parse(&record.version).ok_or_else(|| {
            At::RECORD.refuse_below(Code::RecordVersion, "/version").with_expected("v1, v2 or v3").with_actual(&record.version)
        })?;
        swap_id::check_version(asset, version, &At::RECORD)?;
        let party = |member, text: &str| {
            address::parse(&asset.chain.network, text)
                .map_err(|error| refuse(Code::RecordMismatch, member).with_reason(error.to_string()).with_actual(text))
        };
        let (initiator, redeemer) = (party("initiator", &swap.initiator)?, party("redeemer", &swap.redeemer)?);
        Ok(Self { swap, asset, version, initiator, redeemer, leg })
    }

    /// Creates a refusal at a member of this leg.
    #[must_use]
    pub fn refuse(&self, code: Code, member: &str) -> Refusal {
        self.leg.refuse(code, member)
    }

    /// Returns the inputs of the swap-id formulas.
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

    /// Returns the 32 bytes of the swap id, and whether it was recomputed by a formula that is known to be the contract's own. If no
    /// such formula is known, the id is the record's.
    ///
    /// # Errors
    ///
    /// [`Code::RecordSwapId`] if the formula gives another id than the record's, or if the record's is not 64 hex digits;
    /// [`Code::GenerationMismatch`] if the record's id is that of another generation than the pinned one.
    pub fn hash_swap_id(&self) -> Result<([u8; 32], bool), Refusal> {
        let parties = Parties { initiator: self.initiator.clone(), redeemer: self.redeemer.clone() };
        let recomputed = swap_id::recompute(self.asset, self.version, &parties, self.swap, None);
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

    /// Returns the pinned HTLC.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownAsset`] if none is pinned.
    pub fn htlc(&self) -> Result<&Account, Refusal> {
        self.asset.htlc.as_ref().ok_or_else(|| self.refuse(Code::UnknownAsset, "asset").with_reason("no HTLC is pinned for the asset"))
    }

    /// Requires that a secret matches this leg's secret hash.
    ///
    /// # Errors
    ///
    /// [`Code::SecretWrong`]. The refusal does not contain the secret.
    pub fn check_secret(&self, secret: &[u8; 32]) -> Result<(), Refusal> {
        if SecretHash::of(secret) == self.swap.secret_hash {
            return Ok(());
        }
        Err(self.refuse(Code::SecretWrong, "secret_hash").with_expected(self.swap.secret_hash))
    }
}
