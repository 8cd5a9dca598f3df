//! The terms of both sides of a swap, as they were verified.

use countersign_chains::{Account, ChainProfile, Family, Network, Pace, UnixTime};
use ruint::aliases::U256;

use crate::json::At;
use crate::report::{Code, Refusal, TypedValue, Warnings};
use crate::trust::{Asset, Generation, Registry};
use crate::verify::{Leg, LegParties, OrderContext, RecordParties, stated_parties};
use crate::wire::{AssetId, OrderRecord, RecordFee, RecordTime, SecretHash};

/// What one HTLC of a swap must hold, from a record that was verified against the owner's request, the response and the
/// registry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HtlcTerms {
    /// Chain name as in asset ids, such as `ethereum`.
    pub chain: String,
    /// The chain's family.
    pub family: Family,
    /// The chain's identity, which every endpoint must show.
    pub network: Network,
    /// How fast the chain counts one unit of the timelock.
    pub pace: Pace,
    /// The asset.
    pub asset: AssetId,
    /// The pinned HTLC: the contract, or on Bitcoin-like chains the internal key. `None` if none is pinned.
    pub htlc: Option<Account>,
    /// Sui: the pinned registry object, which stores the orders.
    pub htlc_registry: Option<Account>,
    /// The pinned generation of the contract.
    pub generation: Option<Generation>,
    /// The pinned token, as the registry writes it; `None` for the chain's own coin.
    pub token: Option<String>,
    /// Id of the swap in the HTLC; on Bitcoin-like chains the HTLC's address.
    pub swap_id: String,
    /// Whether the swap id was recomputed by a formula that is known to be the chain's own. If so, the id proves every term that it
    /// is a hash of.
    pub swap_id_recomputed: bool,
    /// Who funds, and gets a refund; on Bitcoin-like chains the x-only key.
    pub initiator: Account,
    /// Who redeems; on Bitcoin-like chains the x-only key.
    pub redeemer: Account,
    /// The amount, in base units.
    pub amount: U256,
    /// The timelock, in the chain's own unit: blocks, slots or milliseconds.
    pub timelock: u64,
    /// SHA-256 of the secret.
    pub secret_hash: SecretHash,
    /// When the order was created, by its record: nothing of this HTLC is older. `None` if the record does not state it.
    pub created_at: Option<UnixTime>,
}

/// The terms of both sides of a swap. They never change: a later record with other terms is refused
/// ([`VerifiedTerms::check_unchanged`]).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedTerms {
    /// The order's id, in lower case.
    pub order_id: String,
    /// The leg on which the owner pays.
    pub source: HtlcTerms,
    /// The leg on which the owner is paid.
    pub destination: HtlcTerms,
    /// The affiliate fees that the record carries.
    pub affiliate_fees: Vec<RecordFee>,
}

/// A record of an order under way, every term of which was verified.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VerifiedRecord {
    /// The record. Its terms were verified, but what it states about transactions is only the service's claim.
    pub record: OrderRecord,
    /// The terms.
    pub terms: VerifiedTerms,
    /// What the owner should know.
    pub warnings: Warnings,
}

impl HtlcTerms {
    /// Returns the terms of one side as a record states them, with what the registry pins. They are compared with no request, so what they
    /// ask for is only what the service says: use them where the request is lost, and show amount and receiver to the owner.
    ///
    /// # Errors
    ///
    /// The errors of [`Leg::pinned`], [`Code::RecordMismatch`] or [`Code::MissingField`] for a party that is not one of the chain, or
    /// [`Code::RecordVersion`].
    pub fn stated(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Self, Refusal> {
        let swap = leg.of(record);
        let asset = leg.pinned(swap, registry)?;
        Ok(Self::new(asset, record, leg, stated_parties(asset, record, leg)?))
    }

    fn new(asset: &Asset, record: &OrderRecord, leg: Leg, (initiator, redeemer, swap_id_recomputed): LegParties) -> Self {
        let swap = leg.of(record);
        Self {
            chain: asset.chain_name().to_owned(),
            family: asset.chain.family(),
            network: asset.chain.network.clone(),
            pace: asset.chain.pace,
            asset: asset.record.id.clone(),
            htlc: asset.htlc.clone(),
            htlc_registry: asset.htlc_registry.clone(),
            generation: asset.generation,
            token: asset.token.as_ref().map(|token| token.text.clone()),
            swap_id: swap.swap_id.clone(),
            swap_id_recomputed,
            initiator,
            redeemer,
            amount: swap.amount,
            timelock: swap.timelock,
            secret_hash: swap.secret_hash,
            created_at: record.created_at.as_ref().and_then(RecordTime::time),
        }
    }

    /// Returns the chain's profile.
    #[must_use]
    pub fn profile(&self) -> &'static ChainProfile {
        ChainProfile::of(&self.chain, &self.network)
    }
}

impl VerifiedTerms {
    /// Returns the terms of one side.
    #[must_use]
    pub const fn leg(&self, leg: Leg) -> &HtlcTerms {
        match leg {
            Leg::Source => &self.source,
            Leg::Destination => &self.destination,
        }
    }

    /// Requires that a later record has the same terms.
    ///
    /// # Errors
    ///
    /// [`Code::RecordChanged`] at the first member that differs.
    pub fn check_unchanged(&self, later: &Self) -> Result<(), Refusal> {
        if !self.order_id.eq_ignore_ascii_case(&later.order_id) {
            return Err(changed("order_id", self.order_id.as_str(), later.order_id.as_str()));
        }
        for leg in [Leg::Source, Leg::Destination] {
            // Without `..`, so that a new member is compared here, or left out for a reason: the family is that of the network, the pace says
            // what to expect of the chain and not what the HTLC holds, and neither does whether an id was recomputed, or when the service says
            // that the order was created.
            let HtlcTerms {
                chain,
                family: _,
                network,
                pace: _,
                asset,
                htlc,
                htlc_registry,
                generation,
                token,
                swap_id,
                swap_id_recomputed: _,
                initiator,
                redeemer,
                amount,
                timelock,
                secret_hash,
                created_at: _,
            } = self.leg(leg);
            let is = later.leg(leg);
            let at = |member: &str| format!("{}/{member}", leg.name());
            let texts = [
                ("chain", chain.as_str(), is.chain.as_str()),
                ("asset", asset.as_str(), is.asset.as_str()),
                ("token", token.as_deref().unwrap_or_default(), is.token.as_deref().unwrap_or_default()),
            ];
            if let Some((member, was, is)) = texts.into_iter().find(|(_, was, is)| was != is) {
                return Err(changed(&at(member), was, is));
            }
            for (member, was, is) in [("initiator", initiator, &is.initiator), ("redeemer", redeemer, &is.redeemer)] {
                if was != is {
                    return Err(changed(&at(member), was, is));
                }
            }
            if (network, htlc, htlc_registry, generation) != (&is.network, &is.htlc, &is.htlc_registry, &is.generation) {
                return Err(At::RECORD
                    .refuse_below(Code::RecordChanged, &format!("/{}", at("chain")))
                    .with_reason("the registry now pins another HTLC"));
            }
            if *amount != is.amount {
                return Err(changed(&at("amount"), *amount, is.amount));
            }
            if *timelock != is.timelock {
                return Err(changed(&at("timelock"), *timelock, is.timelock));
            }
            if *secret_hash != is.secret_hash {
                return Err(changed(&at("secret_hash"), *secret_hash, is.secret_hash));
            }
            if !swap_id.eq_ignore_ascii_case(&is.swap_id) {
                return Err(changed(&at("swap_id"), swap_id.as_str(), is.swap_id.as_str()));
            }
        }
        if self.affiliate_fees != later.affiliate_fees {
            let count = |terms: &Self| format!("{} affiliate fees", terms.affiliate_fees.len());
            return Err(changed("affiliate_fees", count(self), count(later)).with_reason("the affiliate fees differ"));
        }
        Ok(())
    }
}

fn changed(member: &str, was: impl Into<TypedValue>, is: impl Into<TypedValue>) -> Refusal {
    At::RECORD.refuse_below(Code::RecordChanged, &format!("/{member}")).with_expected(was).with_actual(is)
}

/// Returns the terms of a record that was checked, with the parties of its source and of its destination.
pub(crate) fn collect(order: &OrderContext<'_>, record: &OrderRecord, [source, destination]: RecordParties) -> VerifiedTerms {
    VerifiedTerms {
        order_id: order.order_id.to_ascii_lowercase(),
        source: HtlcTerms::new(order.source, record, Leg::Source, source),
        destination: HtlcTerms::new(order.destination, record, Leg::Destination, destination),
        affiliate_fees: record.affiliate_fees.clone(),
    }
}
