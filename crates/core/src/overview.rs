//! The lines that every family's summary begins with: what the owner pays and gets, where, and until when.

use std::sync::Arc;

use countersign_chains::{Family, address};

use crate::amount;
use crate::order::{Order, Terms};
use crate::registry::{Asset, Chain, Solver};
use crate::summary::{Summary, Topic};
use crate::text;
use crate::wire::{CreateOrder, OrderRecord};

/// What the common lines are made of. The lines themselves are only written when somebody reads them.
#[derive(Debug)]
pub(crate) struct Overview {
    order_id: String,
    request: CreateOrder,
    record: Option<Box<OrderRecord>>,
    source: Arc<Asset>,
    destination: Arc<Asset>,
    terms: Option<Terms>,
    solver: Option<Arc<Solver>>,
}

impl Overview {
    pub(crate) fn new(order: Order<'_>, terms: Option<Terms>) -> Self {
        Self {
            order_id: order.order_id.to_owned(),
            solver: terms.as_ref().and_then(|terms| order.solver(&terms.redeemer)).cloned(),
            source: Arc::clone(order.source),
            destination: Arc::clone(order.destination),
            request: order.request,
            record: order.record,
            terms,
        }
    }

    pub(crate) fn order_id(&self) -> &str {
        &self.order_id
    }

    pub(crate) fn into_order_id(self) -> String {
        self.order_id
    }

    pub(crate) fn describe(&self, summary: &mut Summary) {
        let (source, destination) = (&self.request.source, &self.request.destination);
        summary.say(Topic::Order, &self.order_id);
        summary.say(Topic::Pay, amount::shown(source.amount, self.source.record.decimals, self.source.symbol()));
        summary.say(Topic::Chain, chain(&self.source.chain));
        if let Some(owner) = &source.owner {
            // On Bitcoin-like chains whoever holds the refund key decides where a refund goes.
            let role = if self.source.chain.family() == Family::Bitcoin { "named for refunds" } else { "who gets refunds" };
            summary.say(Topic::Owner, format!("{}, {role}", text::shown(owner)));
        }
        if let Some(delegate) = &source.delegate {
            summary.say(Topic::Delegate, text::shown(delegate));
        }
        if let Some(htlc) = &self.source.record.htlc {
            summary.say(Topic::Contract, format!("pinned HTLC {}", text::shown(&htlc.address)));
        }
        if let Some(token) = &self.source.token {
            summary.say(Topic::Token, format!("pinned token {}", text::shown(&token.text)));
        }
        if let Some(terms) = &self.terms {
            let solver = match &self.solver {
                Some(solver) => format!("pinned solver {}", text::shown(&solver.solver_id)),
                None => "not a pinned solver".to_owned(),
            };
            summary.say(Topic::Redeemer, format!("{}, {solver}", address::shown(&terms.redeemer)));
            summary.say(Topic::SecretHash, terms.secret_hash.to_string());
            let timelock = timelock(&self.source.chain, terms.timelock);
            summary.say(Topic::Timelock, format!("{timelock}, then a refund is possible (nominal block times)"));
        }
        let gets = amount::shown(destination.amount, self.destination.record.decimals, self.destination.symbol());
        summary.say(Topic::Get, format!("{gets} on {}", chain(&self.destination.chain)));
        summary.say(Topic::Payout, text::shown(destination.owner.as_deref().unwrap_or("no address given")));
        for fee in &self.request.affiliate_fees {
            summary.say(Topic::Fees, format!("{} basis points in {} to {}", fee.fee, fee.asset, text::shown(&fee.address)));
        }
        if let Some(record) = &self.record {
            self.describe_record(record, summary);
        }
    }

    fn describe_record(&self, record: &OrderRecord, summary: &mut Summary) {
        let (from, to) = (&record.source_swap, &record.destination_swap);
        summary.say(Topic::Record, format!("order {} created {}", text::shown(&record.version), text::shown(&record.created_at)));
        summary.say(Topic::Record, format!("source swap id {}", text::shown(&from.swap_id)));
        summary.say(Topic::Record, format!("destination swap id {}", text::shown(&to.swap_id)));
        let pays = amount::shown(to.amount, self.destination.record.decimals, self.destination.symbol());
        summary.say(Topic::Record, format!("pays out {pays}, refundable by the solver {}", text::shown(&to.initiator)));
        let key = to.delegate.as_ref().map(|key| format!(", redeemable with key {}", text::shown(key))).unwrap_or_default();
        summary.say(Topic::Record, format!("destination timelock {}{key}", timelock(&self.destination.chain, to.timelock)));
        if let Some(deadline) = &record.deadline {
            summary.say(Topic::Record, format!("deadline {}", text::shown(deadline)));
        }
    }
}

fn timelock(chain: &Chain, timelock: u64) -> String {
    format!("{timelock} {}, {}", chain.family().timelock_unit(), amount::duration(chain.nominal_millis(timelock)))
}

fn chain(chain: &Chain) -> String {
    format!("{} ({})", text::shown(chain.title()), chain.record.id)
}
