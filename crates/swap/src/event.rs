//! What the machine reports, as JSON.

use countersign::{Code, report::OrderStage};
use countersign_client::driver::{Alert, DriveError, Outcome, OwnerTask, Progress, RefundEnd, StatedEnd, Status, Stop, StoreError};
use countersign_client::{Error, QuoteError};
use countersign_json::objects::{Failure, Line, Value};
use countersign_node::NodeError;
use serde::Serialize;

const CALLER: &str = "caller";

/// Something that happened. Its JSON has the member `event` with the name in snake case.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The best quote for a call of [`Swaps::quote`](crate::Swaps::quote).
    Quoted {
        /// The call.
        call: u64,
        /// The solver.
        solver_id: String,
        /// What the owner pays.
        pay: Value,
        /// What the owner receives.
        receive: Value,
    },
    /// The rescue phrase was generated. Show [`Swaps::phrase`](crate::Swaps::phrase) to the owner once.
    PhraseCreated,
    /// The description of a contract was stored: it is seen for the first time, or its change was accepted. Nothing is paid yet.
    Contract {
        /// The order's id.
        order_id: String,
        /// The asset whose contract it is.
        asset: String,
        /// Whether the contract is seen for the first time.
        is_new: bool,
        /// A sentence for the owner.
        message: String,
    },
    /// Something that the owner should know before paying: who decides what a chain shows, or what others can do to a token.
    Warning {
        /// The order's id.
        order_id: String,
        /// A stable code: `single_provider`, `mint_authorities` or `finality_ignores_value`.
        code: &'static str,
        /// A sentence for the owner.
        message: String,
    },
    /// An order was created and stored. Nothing is paid yet.
    Created {
        /// The call.
        call: u64,
        /// The order's id.
        order_id: String,
    },
    /// Pay the deposit address that the summary has, from any wallet. The order counts as paid from now on.
    Deposit {
        /// The order's id.
        order_id: String,
        /// A sentence for the owner.
        message: String,
        /// What the owner agreed to, with the address and the amount.
        summary: Vec<Line>,
    },
    /// The status of an order changed.
    Status {
        /// The order's id.
        order_id: String,
        /// A sentence for the owner. Untrusted text in it is escaped.
        message: String,
        /// The status and what goes with it.
        #[serde(flatten)]
        progress: Box<Progress>,
    },
    /// The owner should hear this at once.
    Alert {
        /// The order's id.
        order_id: String,
        /// `retrying`, `maybe_paid`, `redeem_now` or `stated_only`.
        alert: &'static str,
        /// A sentence for the owner.
        message: String,
    },
    /// The order is not followed any longer. [`Swaps::follow`](crate::Swaps::follow) continues, unless it ended.
    Stopped {
        /// The call.
        call: u64,
        /// The order's id.
        order_id: String,
        /// `complete`, `refunded`, `expired` or `lost` if it ended; otherwise `stated_` with one of these where only the service says so,
        /// `not_signed`, `needs_owner`, `evidence_needed`, `unavailable`, `refused` or `failed`; after a call that refunds, `refunding` or
        /// `not_refunded`.
        reason: String,
        /// A sentence for the owner.
        message: String,
        /// Why, where there is an error.
        error: Option<Failure>,
    },
    /// The stored orders, for a call of [`Swaps::list`](crate::Swaps::list).
    Listed {
        /// The call.
        call: u64,
        /// The orders.
        orders: Vec<StoredOrder>,
    },
    /// A call failed. Nothing was paid by it.
    Failed {
        /// The call.
        call: u64,
        /// Why.
        error: Failure,
    },
}

impl Event {
    pub(crate) fn warning(order_id: &str, code: Code, message: String) -> Self {
        Self::Warning { order_id: order_id.to_owned(), code: code.name(), message }
    }

    /// The alert that a signer failed after it got a payment, so that the payment may be on its way.
    pub(crate) fn maybe_sent(order_id: &str, why: &str) -> Self {
        let why = countersign::text::escape_untrusted(why);
        let message = format!("the signer failed and may have sent the payment, so it is not asked again: {why}");
        Self::Alert { order_id: order_id.to_owned(), alert: "maybe_paid", message }
    }
}

/// A stored order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredOrder {
    /// The order's id.
    pub order_id: String,
    /// The source asset; empty if the order cannot be read.
    pub from: String,
    /// The destination asset; empty if the order cannot be read.
    pub to: String,
    /// Whether the payment may be on chain.
    pub may_be_paid: bool,
    /// How it ended: `complete`, `refunded`, `expired` or `lost`; `None` if it has not.
    pub outcome: Option<&'static str>,
    /// Why the order cannot be read; `None` if it can. It may be paid.
    pub error: Option<String>,
}

/// Returns the failure that a call of the client ended with.
pub(crate) fn of_client(error: Error) -> Failure {
    match error {
        Error::Refused(refusal) | Error::Input(refusal) | Error::Shape(refusal) => refusal.into(),
        other => Failure::new(other.code().name(), other.to_string(), "service"),
    }
}

/// Returns the failure of a quote.
pub(crate) fn of_quote(error: QuoteError) -> Failure {
    match error {
        QuoteError::Service(error) => of_client(error),
        other => Failure::new(other.code(), other.to_string(), "service"),
    }
}

/// Returns the failure of a node.
pub(crate) fn of_node(error: NodeError) -> Failure {
    match error {
        NodeError::Refused(refusal) => refusal.into(),
        other => Failure::new(other.code().name(), other.to_string(), "chain"),
    }
}

/// Returns the failure of the store.
pub(crate) fn of_store(error: &StoreError) -> Failure {
    Failure::new("store_failed", error.to_string(), CALLER)
}

/// Returns the failure of a step, with the remedy of a stage.
pub(crate) fn of_drive(error: DriveError, stage: OrderStage) -> Failure {
    match error {
        DriveError::Refused(refusal) => Failure::at_stage(&refusal, stage),
        DriveError::Create(error) => of_client(error),
        DriveError::Owner(error) => match error {
            countersign_client::driver::OwnerError::Refused(refusal) => Failure::at_stage(&refusal, stage),
            countersign_client::driver::OwnerError::Failed { code, message } => Failure::new(code.name(), message, CALLER),
            other => Failure::new("owner_unavailable", other.to_string(), "chain"),
        },
        DriveError::Store(error) => of_store(&error),
        other => Failure::new("failed", other.to_string(), CALLER),
    }
}

/// Returns the name of an alert and its sentence.
pub(crate) fn of_alert(alert: Alert, error: Option<&DriveError>) -> (&'static str, String) {
    match alert {
        Alert::Retrying => {
            ("retrying", error.map_or_else(String::new, |error| format!("{}; trying again", error.at_stage(OrderStage::AfterPaying))))
        }
        Alert::MaybePaid => ("maybe_paid", "it is not known whether the payment arrived, so it may have been paid".to_owned()),
        Alert::RedeemNow => ("redeem_now", "others may know the secret, and the destination is not redeemed yet".to_owned()),
        Alert::StatedOnly(end) => ("stated_only", stated(end)),
        _ => ("other", String::new()),
    }
}

fn stated(end: StatedEnd) -> String {
    format!("the service states that the order is {}, which no connected chain shows", end.name())
}

/// Returns why an order is not followed any longer: the reason, a sentence, and the error if there is one.
pub(crate) fn of_stop(stop: Stop, stage: OrderStage) -> (String, String, Option<Failure>) {
    let plain = |reason: &str, message: &str| (reason.to_owned(), message.to_owned(), None);
    match stop {
        Stop::Ended(outcome) => plain(outcome.name(), outcome.name()),
        Stop::Stated(end) => (format!("stated_{}", end.name()), stated(end), None),
        Stop::NotSigned => plain("not_signed", "nothing is signed or paid"),
        Stop::Owner(task) => plain("needs_owner", task_message(task)),
        Stop::EvidenceNeeded => plain(
            "evidence_needed",
            "the service states that the solver has paid, but only the destination chain can prove it: connect that chain",
        ),
        Stop::Unavailable(why) => {
            let message = countersign::text::escape_untrusted(&why);
            ("unavailable".to_owned(), format!("{message}; nothing that moves your funds was sent"), None)
        }
        Stop::Refused(refusal) => ("refused".to_owned(), refusal.message(), Some(refusal.into())),
        Stop::Failed(error) => ("failed".to_owned(), error.at_stage(stage), Some(of_drive(error, stage))),
        _ => plain("other", "the order is not followed any longer"),
    }
}

/// Returns the same for a call of [`Swaps::refund`](crate::Swaps::refund).
pub(crate) fn of_refund(end: RefundEnd) -> (String, String, Option<Failure>) {
    let plain = |reason: &str, message: String| (reason.to_owned(), message, None);
    match end {
        RefundEnd::Refunding => plain("refunding", Status::Refunding.to_string()),
        RefundEnd::NotYet(why) => plain("not_refunded", format!("nothing was refunded: {why}")),
        RefundEnd::NotAccepted => plain("unavailable", "the service did not accept the request a moment ago; try again".to_owned()),
        RefundEnd::Unavailable(why) => plain("unavailable", format!("{}; try again", countersign::text::escape_untrusted(&why))),
        RefundEnd::NeedsOwner => plain("needs_owner", task_message(OwnerTask::Refund).to_owned()),
        RefundEnd::Refused(refusal) => {
            let failure = Failure::at_stage(&refusal, OrderStage::AfterPaying);
            ("refused".to_owned(), failure.message.clone(), Some(failure))
        }
        RefundEnd::Ended(outcome) => plain(outcome.name(), format!("the order ended: {}", outcome.name())),
        RefundEnd::StatedLost => plain("stated_lost", stated(StatedEnd::Lost)),
        RefundEnd::Lost => plain(Outcome::Lost.name(), Status::Lost.to_string()),
        _ => plain("other", "nothing was refunded".to_owned()),
    }
}

const fn task_message(task: OwnerTask) -> &'static str {
    match task {
        OwnerTask::Secret => "the secret of this order is not stored here, so nothing is paid",
        OwnerTask::BroadcastFunding => "the source chain is not connected: broadcast the signed payment yourself",
        OwnerTask::Redeem => "only your own key can redeem: connect the destination chain and a signer for it",
        OwnerTask::BroadcastRedemption => "broadcast the signed redemption at once: the secret may be public",
        OwnerTask::Refund => "only your own key can refund: connect the source chain and a signer for it",
        _ => "you have to do something first",
    }
}

#[cfg(test)]
mod tests;
