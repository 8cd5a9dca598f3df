//! Reports the status of a driven order, as text and as JSON.

use countersign::{BroadcastTransaction, text};
use countersign_client::OrderId;
use countersign_client::driver::{Progress, Status};
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
        Self { event: None, ok: None, order_id: id.as_str(), progress, service, error: None, transactions: &[] }
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

/// Reports the status on stderr.
pub(crate) fn report_status(id: &OrderId, progress: &Progress, session: &Session) {
    let report = StatusReport { event: Some("status"), ..StatusReport::new(id, progress) };
    let mut text = format!("{}: {}", show::time(show::now()), describe(&progress.status));
    if let Some(stated) = &progress.stated {
        text.push_str(&format!(" (the service states: {})", stated.status.state.name()));
    }
    if let Some(trouble) = &progress.trouble {
        text.push_str(&format!("; {}", without_advice(&text::escape_untrusted(&trouble.to_string()))));
    }
    session.event(&report, &text);
}

pub(crate) fn describe(status: &Status) -> String {
    match status {
        Status::Unsigned => "nothing is signed yet".to_owned(),
        Status::Expired => "expired: nothing was signed here in time".to_owned(),
        Status::Paying => "paying".to_owned(),
        Status::NeedsOwner { .. } => "waiting for you".to_owned(),
        Status::Waiting { on } => format!("paid; {}", text::escape_untrusted(&on.to_string())),
        Status::Redeeming => "redeeming".to_owned(),
        Status::RedeemNow => "REDEEM NOW: others may know the secret, and the destination is not redeemed yet".to_owned(),
        Status::AwaitingRefund { reason } => format!("waiting for the refund: {}", text::escape_untrusted(&reason.to_string())),
        Status::Refunding => "refunding".to_owned(),
        Status::Refused { refusal } => format!("the record was refused: {refusal}"),
        Status::Lost => "LOST: the source is redeemed, and the destination refunded".to_owned(),
        Status::Ended { outcome } => format!("{outcome:?}").to_lowercase(),
        _ => "unknown".to_owned(),
    }
}
