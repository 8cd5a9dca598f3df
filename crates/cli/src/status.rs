//! Reports the status of a driven order, as text and as JSON.

use countersign::BroadcastTransaction;
use countersign_client::OrderId;
use countersign_client::driver::Progress;
use serde::Serialize;

use crate::failure::without_advice;
use crate::session::Session;
use crate::show;

/// The status of an order as JSON. It is the result of a command, and the form of each status event on stderr.
#[derive(Serialize)]
pub(crate) struct StatusReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ok: Option<bool>,
    pub(crate) order_id: &'a str,
    #[serde(flatten)]
    pub(crate) progress: &'a Progress,
    /// What the service states, for display only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<&'a countersign_client::Status>,
    /// What the owner of a paid order can do if it does not go on by itself; `None` if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<&'a str>,
    /// What the owner has to do; `None` if nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<show::ErrorReport<'a>>,
    /// The transactions that the owner has to broadcast.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) transactions: &'a [BroadcastTransaction],
}

impl<'a> StatusReport<'a> {
    pub(crate) fn new(id: &'a OrderId, progress: &'a Progress) -> Self {
        let service = progress.stated.as_ref().map(|stated| &stated.status);
        Self { event: None, ok: None, order_id: id.as_str(), progress, service, advice: None, error: None, transactions: &[] }
    }
}

/// The event that tells the owner to redeem at once.
#[derive(Serialize)]
pub(crate) struct Alarm<'a> {
    pub(crate) event: &'static str,
    pub(crate) order_id: &'a str,
    pub(crate) message: &'a str,
    /// The command that builds and signs a new redemption.
    pub(crate) command: &'a str,
    /// The redemption that is signed already; empty if it may be dead.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) transactions: &'a [BroadcastTransaction],
}

/// Reports the status on stderr. `advice` says how a paid order that does not go on by itself can be ended.
pub(crate) fn report_status(id: &OrderId, progress: &Progress, advice: Option<&str>, session: &Session) {
    let report = StatusReport { event: Some("status"), advice, ..StatusReport::new(id, progress) };
    let mut text = format!("{}: {}", show::time(show::now()), without_advice(&progress.message()));
    if let Some(stated) = &progress.stated {
        text.push_str(&format!(" (the service states: {})", stated.status.state.name()));
    }
    if let Some(advice) = advice {
        text.push_str(&format!("; {advice}"));
    }
    session.event(&report, &text);
}
