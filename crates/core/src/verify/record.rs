//! Compares the order record with the request, the payload's terms and the registry (`docs/spec/batch.md#order-record`).
//!
//! The record is the service's second statement. It must agree with the first in every field, and its swap ids must follow from
//! its own fields by the formula of each leg's chain.

mod payout;
mod under_way;

use countersign_chains::swap_id::Version;
use countersign_chains::taproot::{Htlc, Output};
use countersign_chains::{Account, Family, Pace, Span, address};

use super::{Leg, OrderContext, SwapTerms, deadline, swap_id};
use crate::json::At;
use crate::report::amount::format_duration;
use crate::report::{Code, Refusal, Warnings, text};
use crate::trust::{Asset, Chain};
use crate::wire::{OrderRecord, RecordTime, SwapRecord};

/// The two parties of a swap record, as the HTLC stores them.
pub(super) struct Parties {
    pub(super) initiator: Account,
    pub(super) redeemer: Account,
}

/// What is expected if a record has a delegate that was not requested. The service adds keys only on Bitcoin-like chains.
const NO_DELEGATE: &str = "none, as none was requested";

struct Check<'c, 'd> {
    order: &'c OrderContext<'d>,
    record: &'c OrderRecord,
    /// The HTLC of a Bitcoin-like source leg and its output, if the payload was recomputed from them.
    source_htlc: Option<(&'c Htlc, &'c Output)>,
}

/// Maximum number of requested fees that a record's fees are compared with. No order has nearly as many.
const MAX_FEES: usize = 256;
/// Maximum number of a record's fees that are shown one by one.
const SHOWN_FEES: usize = 16;

/// What a record is checked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordCheck {
    /// Something will be signed: nothing may have happened yet.
    Signing,
    /// The order is under way: it may be funded, redeemed or refunded, and its secret may be known.
    Tracking,
}

/// Initiator and redeemer of one leg, and whether its swap id was recomputed by a formula that is known to be the chain's own.
pub(crate) type LegParties = (Account, Account, bool);

/// Those of the source and of the destination.
pub(crate) type RecordParties = [LegParties; 2];

/// Checks the record, where there is one, and returns the parties of its source and of its destination. `source_htlc` is the HTLC of a
/// Bitcoin-like source leg with its output, if the family has computed it.
///
/// # Errors
///
/// A [`Refusal`] at the member that contradicts: one of the `record_` codes, [`Code::GenerationMismatch`], [`Code::PayoutInvalid`],
/// [`Code::TimelockZero`], [`Code::MissingField`]; [`Code::TimeMalformed`]; for signing those of the deadline, for tracking
/// [`Code::SecretWrong`] or [`Code::TransactionIdMalformed`].
pub(crate) fn check(
    order: &OrderContext<'_>,
    terms: Option<&SwapTerms>,
    source_htlc: Option<(&Htlc, &Output)>,
    purpose: RecordCheck,
    warnings: &mut Warnings,
) -> Result<Option<RecordParties>, Refusal> {
    let Some(record) = &order.record else { return Ok(None) };
    let check = Check { order, record, source_htlc };
    check.order_id()?;
    check.assets()?;
    match purpose {
        RecordCheck::Signing => {
            check.still_open()?;
            check.times()?;
            if let Some(now) = order.now {
                deadline::check(record, &order.record_at, &order.source.chain, now)?;
            }
        }
        RecordCheck::Tracking => {
            check.known_secrets()?;
            check.times()?;
            check.transaction_ids()?;
        }
    }
    let source = check.parties(Leg::Source)?;
    let destination = check.parties(Leg::Destination)?;
    check.source(terms, &source)?;
    check.secret_hash(terms)?;
    check.payout(&destination, warnings)?;
    check.solver(terms, &source, &destination, warnings)?;
    check.timelocks(warnings)?;
    let is_source_certain = check.swap_id(Leg::Source, &source, warnings)?;
    let is_destination_certain = check.swap_id(Leg::Destination, &destination, warnings)?;
    check.extras(warnings);
    let legs = [(source, is_source_certain), (destination, is_destination_certain)];
    Ok(Some(legs.map(|(parties, is_certain)| (parties.initiator, parties.redeemer, is_certain))))
}

/// Returns the parties of a leg of a record that is compared with nothing but the pins.
pub(crate) fn stated_parties(asset: &Asset, record: &OrderRecord, leg: Leg) -> Result<LegParties, Refusal> {
    let refuse = |code, member: &str| leg.refuse(code, member);
    let account = |member: &str, text: &str| {
        let refuse = |error: address::AddressError| refuse(Code::RecordMismatch, member).with_reason(error.to_string()).with_actual(text);
        address::parse_party(&asset.chain.network, text).map_err(refuse)
    };
    let parties = parties_of(leg.of(record), asset.chain.family(), refuse, account)?;
    let version = Version::parse(&record.version).ok_or_else(|| At::RECORD.refuse_below(Code::RecordVersion, "/version"))?;
    let swap = leg.of(record);
    let recomputed = swap_id::recompute(asset, version, &parties, swap, None);
    let is_certain = recomputed.is_certain && recomputed.equals(&swap.swap_id);
    Ok((parties.initiator, parties.redeemer, is_certain))
}

/// Returns the parties of a leg. On Bitcoin-like chains the party that is written as an address is replaced by the key in `delegate`.
fn parties_of(
    swap: &SwapRecord,
    family: Family,
    refuse: impl Fn(Code, &str) -> Refusal,
    account: impl Fn(&str, &str) -> Result<Account, Refusal>,
) -> Result<Parties, Refusal> {
    let key_or_delegate = |member, text: &str| {
        let party = account(member, text)?;
        if family != Family::Bitcoin || address::is_key(text) {
            return Ok(party);
        }
        let delegate = swap.delegate.as_deref().ok_or_else(|| refuse(Code::MissingField, "delegate"))?;
        if !address::is_key(delegate) {
            return Err(refuse(Code::RecordMismatch, "delegate").with_expected("an x-only key").with_actual(delegate));
        }
        account("delegate", delegate)
    };
    Ok(Parties { initiator: key_or_delegate("initiator", &swap.initiator)?, redeemer: key_or_delegate("redeemer", &swap.redeemer)? })
}

impl Check<'_, '_> {
    fn refuse(&self, code: Code, member: &str) -> Refusal {
        self.order.record_at.refuse_below(code, &format!("/{member}"))
    }

    fn refuse_leg(&self, code: Code, leg: Leg, member: &str) -> Refusal {
        self.refuse(code, &format!("{}/{member}", leg.name()))
    }

    const fn swap(&self, leg: Leg) -> &SwapRecord {
        match leg {
            Leg::Source => &self.record.source_swap,
            Leg::Destination => &self.record.destination_swap,
        }
    }

    fn asset(&self, leg: Leg) -> &Asset {
        match leg {
            Leg::Source => self.order.source,
            Leg::Destination => self.order.destination,
        }
    }

    fn order_id(&self) -> Result<(), Refusal> {
        let (wanted, got) = (self.order.order_id, &self.record.order_id);
        if got.eq_ignore_ascii_case(wanted) {
            Ok(())
        } else {
            Err(self.refuse(Code::RecordMismatch, "order_id").with_expected(wanted).with_actual(got))
        }
    }

    fn assets(&self) -> Result<(), Refusal> {
        for leg in [Leg::Source, Leg::Destination] {
            let (swap, asset) = (self.swap(leg), self.asset(leg));
            if swap.asset != asset.record.id {
                return Err(self.refuse_leg(Code::RecordMismatch, leg, "asset").with_expected(&asset.record.id).with_actual(&swap.asset));
            }
            if swap.chain != asset.chain_name() {
                return Err(self.refuse_leg(Code::RecordMismatch, leg, "chain").with_expected(asset.chain_name()).with_actual(&swap.chain));
            }
        }
        Ok(())
    }

    /// Requires that nothing has been paid, redeemed, refunded or revealed yet. Otherwise the owner would pay twice, or anyone who
    /// knows the secret.
    fn still_open(&self) -> Result<(), Refusal> {
        // A missing time proves nothing, but a time that is there shows that it has happened.
        let time = |member, time: &Option<RecordTime>| [(member, time.as_ref().map(|time| time.as_str().to_owned()))];
        for leg in [Leg::Source, Leg::Destination] {
            let swap = self.swap(leg);
            if swap.secret.is_some() {
                return Err(self.refuse_leg(Code::RecordSecretKnown, leg, "secret"));
            }
            self.refuse_if(Code::RecordRedeemed, leg, &swap.signs_of_redemption())?;
            self.refuse_if(Code::RecordRedeemed, leg, &time("redeem_timestamp", &swap.redeem_timestamp))?;
            self.refuse_if(Code::RecordRefunded, leg, &swap.signs_of_refund())?;
            self.refuse_if(Code::RecordRefunded, leg, &time("refund_timestamp", &swap.refund_timestamp))?;
        }
        let source = self.swap(Leg::Source);
        self.refuse_if(Code::RecordFunded, Leg::Source, &source.signs_of_funding())?;
        self.refuse_if(Code::RecordFunded, Leg::Source, &time("initiate_timestamp", &source.initiate_timestamp))
    }

    /// Refuses at the first of these members that has a value.
    fn refuse_if(&self, code: Code, leg: Leg, signs: &[(&'static str, Option<String>)]) -> Result<(), Refusal> {
        match signs.iter().find_map(|(member, sign)| Some((member, sign.as_ref()?))) {
            Some((member, sign)) => Err(self.refuse_leg(code, leg, member).with_actual(sign)),
            None => Ok(()),
        }
    }

    fn account(&self, leg: Leg, member: &str, text: &str) -> Result<Account, Refusal> {
        self.order
            .parse_party(self.asset(leg), text)
            .map_err(|error| self.refuse_leg(Code::RecordMismatch, leg, member).with_reason(error.to_string()).with_actual(text))
    }

    fn parties(&self, leg: Leg) -> Result<Parties, Refusal> {
        let refuse = |code, member: &str| self.refuse_leg(code, leg, member);
        parties_of(self.swap(leg), self.asset(leg).chain.family(), refuse, |member, text| self.account(leg, member, text))
    }

    fn source(&self, terms: Option<&SwapTerms>, parties: &Parties) -> Result<(), Refusal> {
        let (leg, order) = (Leg::Source, self.order);
        let swap = self.swap(leg);
        let mismatch = |member, wanted: &Account, got: &str| {
            Err(self.refuse_leg(Code::RecordMismatch, leg, member).with_expected(wanted).with_actual(got))
        };
        if swap.amount != order.request.source.amount {
            return Err(self
                .refuse_leg(Code::RecordMismatch, leg, "amount")
                .with_expected(order.request.source.amount)
                .with_actual(swap.amount));
        }
        let written = match order.family() {
            // A key is read only once.
            Family::Bitcoin if address::is_key(&swap.initiator) => parties.initiator.clone(),
            _ => self.account(leg, "initiator", &swap.initiator)?,
        };
        match (&order.owner, &order.delegate) {
            // On Bitcoin-like chains the initiator is written as the owner's address, or as the delegate's key.
            (_, Some(delegate)) if order.family() == Family::Bitcoin => {
                if parties.initiator != *delegate {
                    return mismatch("delegate", delegate, swap.delegate.as_deref().unwrap_or(&swap.initiator));
                }
                if let Some(owner) = &order.owner
                    && written != *owner
                    && written != *delegate
                {
                    return mismatch("initiator", owner, &swap.initiator);
                }
            }
            (Some(owner), _) if written != *owner => return mismatch("initiator", owner, &swap.initiator),
            _ => {}
        }
        if order.family() != Family::Bitcoin
            && let Some(got) = swap.delegate.as_deref().filter(|delegate| !delegate.is_empty())
            && order.delegate != Some(self.account(leg, "delegate", got)?)
        {
            let expected = order.request.source.delegate.as_deref().unwrap_or(NO_DELEGATE);
            return Err(self.refuse_leg(Code::RecordMismatch, leg, "delegate").with_expected(expected).with_actual(got));
        }
        if let Some(terms) = terms {
            if parties.redeemer != terms.redeemer {
                return mismatch("redeemer", &terms.redeemer, &swap.redeemer);
            }
            if swap.timelock != terms.timelock {
                return Err(self
                    .refuse_leg(Code::RecordMismatch, leg, "timelock")
                    .with_expected(terms.timelock)
                    .with_actual(swap.timelock));
            }
        }
        Ok(())
    }

    /// Requires that both legs have one secret hash: the payload's, else the requested one.
    fn secret_hash(&self, terms: Option<&SwapTerms>) -> Result<(), Refusal> {
        let wanted = terms.map(|terms| terms.secret_hash).or(self.order.request.secret_hash).unwrap_or(self.record.source_swap.secret_hash);
        for leg in [Leg::Source, Leg::Destination] {
            let got = self.swap(leg).secret_hash;
            if got != wanted {
                return Err(self.refuse_leg(Code::RecordMismatch, leg, "secret_hash").with_expected(wanted).with_actual(got));
            }
        }
        Ok(())
    }

    /// Requires that the redeemer of the source and the initiator of the destination are one pinned solver.
    fn solver(&self, terms: Option<&SwapTerms>, source: &Parties, destination: &Parties, warnings: &mut Warnings) -> Result<(), Refusal> {
        let order = self.order;
        let redeemer = terms.map_or(&source.redeemer, |terms| &terms.redeemer);
        // One account may be pinned under several ids.
        let with = |chain: &Chain, account: &Account| {
            let solvers = order.registry.solvers_of(chain.name()).iter().filter(|solver| solver.account == *account);
            solvers.map(|solver| solver.solver_id.as_str()).collect::<Vec<_>>()
        };
        let (paid, pays) = (with(&order.source.chain, redeemer), with(&order.destination.chain, &destination.initiator));
        let both: Vec<_> = paid.iter().copied().filter(|id| pays.contains(id)).collect();
        if both.is_empty() {
            if order.registry.pins_solvers() {
                let refusal = self.refuse_leg(Code::RecordSolver, Leg::Destination, "initiator");
                let refusal = refusal.with_actual(&self.record.destination_swap.initiator);
                return Err(if paid.is_empty() { refusal } else { refusal.with_expected(paid.join(" or ")) });
            }
            warnings.warn(Code::UnpinnedSolver);
        }
        let named = |named: &Option<String>, refusal: &dyn Fn() -> Refusal| match named {
            Some(named) if !both.is_empty() && !both.iter().any(|id| named.eq_ignore_ascii_case(id)) => {
                Err(refusal().with_expected(both.join(" or ")).with_actual(named))
            }
            _ => Ok(()),
        };
        named(&self.record.solver_id, &|| self.refuse(Code::RecordSolver, "solver_id"))?;
        named(&order.request.solver_id, &|| At::REQUEST.refuse_below(Code::RecordSolver, "/solver_id"))?;
        Ok(())
    }

    /// Requires that the destination's timelock ends before the source's. Otherwise the solver could refund one and redeem the other.
    ///
    /// The paces of the batch contract decide. Chains have become faster since, and not all alike, so an order that today's paces would
    /// refuse is a warning of the highest severity. An order that only today's paces would accept stays refused.
    fn timelocks(&self, warnings: &mut Warnings) -> Result<(), Refusal> {
        let lengths = |pace: fn(&Pace) -> u64| {
            let millis = |leg| Span::Units(self.swap(leg).timelock).millis(pace(&self.asset(leg).chain.pace));
            (millis(Leg::Source), millis(Leg::Destination))
        };
        let (source, destination) = lengths(|pace| pace.contract);
        if destination == 0 {
            return Err(self.refuse_leg(Code::TimelockZero, Leg::Destination, "timelock"));
        }
        if destination >= source {
            return Err(self
                .refuse_leg(Code::RecordOutlastsSource, Leg::Destination, "timelock")
                .with_expected(format!("less than {}", format_duration(source)))
                .with_actual(format_duration(destination)));
        }
        let (source_today, destination_today) = lengths(|pace| pace.nominal);
        if destination_today >= source_today {
            let [source, destination] = [source_today, destination_today].map(format_duration);
            warnings.warn_about(
                Code::TimelocksDependOnPace,
                format!("the destination's ends after {destination}, the source's after {source}"),
            );
        } else if destination.saturating_mul(2) > source || destination_today.saturating_mul(2) > source_today {
            warnings.warn(Code::DestinationTimelockClose);
        }
        let (asset, swap) = (self.asset(Leg::Destination), self.swap(Leg::Destination));
        let (chain, timelock) = (&asset.chain, swap.timelock);
        // Nothing is measured yet, so the fastest pace counts.
        let least = self.order.policy.finality_of(asset, swap.amount).min_timelock(chain.pace.counted(None));
        if timelock < least {
            let detail = format!("{timelock} of at least {least} {}", chain.family().timelock_unit());
            warnings.warn_about(Code::DestinationTimelockShort, detail);
        }
        Ok(())
    }

    /// Requires that the swap id follows from the fields of its leg. Returns whether the formula is known to be the chain's own.
    fn swap_id(&self, leg: Leg, parties: &Parties, warnings: &mut Warnings) -> Result<bool, Refusal> {
        let swap = self.swap(leg);
        let version = Version::parse(&self.record.version)
            .ok_or_else(|| self.refuse(Code::RecordVersion, "version").with_expected("v1, v2 or v3").with_actual(&self.record.version))?;
        swap_id::check_version(self.asset(leg), version, &self.order.record_at)?;
        let recomputed = swap_id::recompute(self.asset(leg), version, parties, swap, self.source_htlc.filter(|_| leg == Leg::Source));
        if recomputed.equals(&swap.swap_id) {
            return Ok(recomputed.is_certain);
        }
        if recomputed.is_certain {
            if let Some((expected, actual)) = swap_id::other_generation(self.asset(leg), parties, swap) {
                let refusal = self.refuse_leg(Code::GenerationMismatch, leg, "swap_id").with_expected(expected.name());
                let reason = "the swap id is that of a contract of another generation than the pinned one";
                return Err(refusal.with_reason(reason).with_actual(actual.name()));
            }
            let refusal = self.refuse_leg(Code::RecordSwapId, leg, "swap_id").with_actual(&swap.swap_id);
            return Err(match recomputed.id {
                Some(id) => refusal.with_expected(id),
                None => refusal,
            });
        }
        warnings.warn_about(Code::SwapIdUnchecked, format!("{} on {}", text::quote_untrusted(&swap.swap_id), swap.chain));
        Ok(false)
    }

    fn extras(&self, warnings: &mut Warnings) {
        // Each requested fee accounts for one of the record's. An entry of unknown shape matches none.
        let mut requested: Vec<_> = self.order.request.affiliate_fees.iter().take(MAX_FEES).collect();
        let mut others = 0_usize;
        for fee in &self.record.affiliate_fees {
            // Letter case means nothing in hex. In base58 it makes another account.
            let same = |text: &Option<String>, wanted: &str| {
                let is_hex = wanted.starts_with("0x");
                text.as_deref().is_some_and(|text| text == wanted || (is_hex && text.eq_ignore_ascii_case(wanted)))
            };
            let asked_for = requested.iter().position(|wanted| {
                same(&fee.asset, wanted.asset.as_str()) && same(&fee.address, &wanted.address) && same(&fee.fee, &wanted.fee.to_string())
            });
            if let Some(index) = asked_for {
                requested.swap_remove(index);
                continue;
            }
            others = others.saturating_add(1);
            if others > SHOWN_FEES {
                continue;
            }
            let member = |text: &Option<String>| text.as_deref().map_or_else(|| "?".to_owned(), text::quote_untrusted);
            // The text is cut if it is too long, so the recipient comes first.
            let detail = format!("to {}: {} basis points of {}", member(&fee.address), member(&fee.fee), member(&fee.asset));
            warnings.warn_about(Code::AffiliateFeesNotRequested, detail);
        }
        if let Some(more @ 1..) = others.checked_sub(SHOWN_FEES) {
            warnings.warn_about(Code::AffiliateFeesNotRequested, format!("and {more} more fees"));
        }
        if let (Some(wanted), Some(got)) = (&self.order.request.nonce, &self.record.nonce)
            && wanted != got
        {
            warnings.warn_about(Code::NonceDiffers, got.as_str());
        }
    }
}
