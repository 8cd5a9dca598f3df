//! The lines that every family's summary begins with: what the owner pays and receives, where, and until when.

use std::sync::Arc;

use countersign_chains::{Family, UnixTime};

use super::{OrderTerms, Refusal, Summary, Timelock, Topic, text};
use crate::json::At;
use crate::line_text;
use crate::trust::{Asset, Chain, Solver};
use crate::verify::{Leg, OrderContext, SwapTerms, check_deadline};
use crate::wire::{CreateOrder, OrderRecord, RecordTime, least_after_slippage};

/// What the common lines are made of. The lines themselves are only written when somebody reads them.
#[derive(Debug)]
pub(crate) struct Overview {
    order_id: String,
    request: CreateOrder,
    record: Option<Box<OrderRecord>>,
    record_at: At<'static>,
    source: Arc<Asset>,
    destination: Arc<Asset>,
    terms: Option<SwapTerms>,
    solver: Option<Arc<Solver>>,
}

impl Overview {
    pub(crate) fn new(order: OrderContext<'_>, terms: Option<SwapTerms>) -> Self {
        Self {
            order_id: order.order_id.to_owned(),
            solver: terms.as_ref().and_then(|terms| order.solver(&terms.redeemer)).cloned(),
            source: Arc::clone(order.source),
            destination: Arc::clone(order.destination),
            request: order.request.into_owned(),
            record: order.record,
            record_at: order.record_at,
            terms,
        }
    }

    pub(crate) fn order_id(&self) -> &str {
        &self.order_id
    }

    pub(crate) fn chain(&self) -> &str {
        self.source.chain_name()
    }

    pub(crate) fn asset(&self, leg: Leg) -> &Asset {
        match leg {
            Leg::Source => &self.source,
            Leg::Destination => &self.destination,
        }
    }

    /// Requires that there is still time to pay. Without a record no deadline is known.
    pub(crate) fn check_deadline(&self, now: UnixTime) -> Result<(), Refusal> {
        self.record.as_ref().map_or(Ok(()), |record| check_deadline(record, &self.record_at, &self.source.chain, now))
    }

    pub(crate) fn terms(&self) -> OrderTerms<'_> {
        let terms = self.terms.as_ref();
        let requested = self.request.destination.amount;
        let at_least = match &self.record {
            Some(record) => record.destination_swap.amount,
            None => least_after_slippage(requested, self.request.slippage.unwrap_or_default()),
        };
        OrderTerms {
            order_id: &self.order_id,
            family: self.source.chain.family(),
            pay: self.source.amount(self.request.source.amount),
            source: &self.request.source.asset,
            source_chain_title: self.source.chain.title(),
            receive: self.destination.amount(requested),
            receive_at_least: self.destination.amount(at_least),
            destination: &self.request.destination.asset,
            destination_chain_title: self.destination.chain.title(),
            payout: self.request.destination.owner.as_deref(),
            initiator: terms.map(|terms| &terms.initiator),
            redeemer: terms.map(|terms| &terms.redeemer),
            solver_id: self.solver.as_ref().map(|solver| solver.solver_id.as_str()),
            timelock: terms.map(|terms| self.source.chain.timelock(terms.timelock)),
            secret_hash: terms.map(|terms| terms.secret_hash).or(self.request.secret_hash),
            record: self.record.as_deref(),
        }
    }

    pub(crate) fn describe(&self, summary: &mut Summary) {
        let (source, destination) = (&self.request.source, &self.request.destination);
        summary.add_value(Topic::Order, self.order_id.as_str());
        summary.add_value(Topic::Send, self.source.amount(source.amount));
        summary.add(Topic::Chain, chain(&self.source.chain));
        if let Some(owner) = &source.owner {
            // On Bitcoin-like chains whoever holds the refund key decides where a refund goes.
            let role = if self.source.chain.family() == Family::Bitcoin { "named for refunds" } else { "who gets refunds" };
            summary.add_values(Topic::Owner, line_text!("{}, {role}", text::quote_untrusted(owner)), [owner.into()]);
        }
        if let Some(delegate) = &source.delegate {
            summary.add_value(Topic::Delegate, delegate);
        }
        if let (Some(htlc), Some(account)) = (&self.source.record.htlc, &self.source.htlc) {
            summary.add_values(Topic::Contract, line_text!("pinned HTLC {}", text::quote_untrusted(&htlc.address)), [account.into()]);
        }
        if let Some(token) = &self.source.token {
            let value = token.account.as_ref().map_or_else(|| (&token.text).into(), Into::into);
            summary.add_values(Topic::Token, line_text!("pinned token {}", text::quote_untrusted(&token.text)), [value]);
        }
        if let Some(terms) = &self.terms {
            let text = match &self.solver {
                Some(solver) => line_text!("{}, pinned solver {}", solver.account_text(), text::quote_untrusted(&solver.solver_id)),
                None => line_text!("{}, not a pinned solver", terms.redeemer),
            };
            summary.add_values(Topic::Redeemer, text, [(&terms.redeemer).into()]);
            summary.add_value(Topic::SecretHash, terms.secret_hash);
            let timelock = self.source.chain.timelock(terms.timelock);
            // On Bitcoin-like chains only the holder of the refund key can refund.
            let is_owners = self.source.chain.family() != Family::Bitcoin || source.delegate.is_some();
            let refund = if is_owners { "a refund is possible" } else { "only the service can refund" };
            let text = line_text!("{timelock}, then {refund} (at usual block times)");
            summary.add_values(Topic::Timelock, text, [timelock.into()]);
        }
        let receive = self.destination.amount(destination.amount);
        let text = line_text!("{receive} on {}", chain(&self.destination.chain));
        summary.add_values(Topic::Receive, text, [receive.into()]);
        let payout = destination.owner.as_deref().unwrap_or("no address given");
        if self.destination.chain.family() == Family::Bitcoin && destination.delegate.is_none() {
            let text = line_text!("{}, a promise: whoever holds the redeem key is paid", text::quote_untrusted(payout));
            summary.add_values(Topic::Payout, text, [payout.into()]);
        } else {
            summary.add_value(Topic::Payout, payout);
        }
        for fee in &self.request.affiliate_fees {
            let address = text::quote_untrusted(&fee.address);
            let text = line_text!("{} basis points in {} to {address}", fee.fee, fee.asset);
            summary.add_values(Topic::Fees, text, [fee.fee.into(), (&fee.asset).into(), (&fee.address).into()]);
        }
        if let Some(record) = &self.record {
            self.describe_record(record, summary);
        }
    }

    fn describe_record(&self, record: &OrderRecord, summary: &mut Summary) {
        let quote = text::quote_untrusted;
        let (from, to) = (&record.source_swap, &record.destination_swap);
        // A time is shown as a time: the record's own text could read as a line of the summary.
        let created = record.created_at.as_ref().filter(|time| !time.is_empty()).map(RecordTime::shown);
        let version = quote(&record.version);
        match created {
            Some(created) => summary.add_values(
                Topic::Record,
                line_text!("order {version} created {created}"),
                [(&record.version).into(), created.into()],
            ),
            None => summary.add_values(Topic::Record, line_text!("order {version} without a time of creation"), [(&record.version).into()]),
        }
        summary.add_values(Topic::Record, line_text!("source swap id {}", quote(&from.swap_id)), [(&from.swap_id).into()]);
        summary.add_values(Topic::Record, line_text!("destination swap id {}", quote(&to.swap_id)), [(&to.swap_id).into()]);
        let pays = self.destination.amount(to.amount);
        let text = line_text!("pays out {pays}, refundable by the solver {}", quote(&to.initiator));
        summary.add_values(Topic::Record, text, [pays.into(), (&to.initiator).into()]);
        let key = to.delegate.as_ref().map(|key| format!(", redeemable with key {}", quote(key))).unwrap_or_default();
        let timelock: Timelock = self.destination.chain.timelock(to.timelock);
        summary.add_values(Topic::Record, line_text!("destination timelock {timelock}{key}"), [timelock.into()]);
        if let Some(deadline) = record.deadline.as_ref().filter(|time| !time.is_empty()).map(RecordTime::shown) {
            summary.add_values(Topic::Record, line_text!("deadline {deadline}"), [deadline.into()]);
        }
    }
}

fn chain(chain: &Chain) -> String {
    format!("{} ({})", text::escape_untrusted(chain.title()), chain.record.id)
}
