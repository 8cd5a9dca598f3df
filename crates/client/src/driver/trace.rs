//! What the driver reports to `tracing`: the ids of orders, the names of states and events, and codes. It contains no text of others, no
//! payload and no secret, so that a host can store it.
//!
//! The README lists the spans and events.

use countersign::Refusal;
use countersign_transport::on_heap;
use tracing::{Instrument as _, Span, debug, info, info_span, warn};

use super::decide::Status;
use super::journal::Event;
use super::progress::{DriveError, Progress, Trouble};
use crate::error::Error;
use crate::request::OrderId;

/// The target of the event for each refusal, so that a subscriber can count them by code.
const REFUSED: &str = "countersign::refused";

fn span(order: &OrderId) -> Span {
    info_span!("order", order = order.as_str())
}

/// Reports the outcome of creating an order.
pub(super) fn created(result: Result<OrderId, DriveError>) -> Result<OrderId, DriveError> {
    match &result {
        Ok(id) => span(id).in_scope(|| info!("created")),
        Err(error) => failed(error),
    }
    result
}

/// Runs a step in the span of its order, and reports its outcome.
pub(super) async fn step<F: Future<Output = Result<Progress, DriveError>>>(
    id: &OrderId,
    step: impl FnOnce() -> F,
) -> Result<Progress, DriveError> {
    let step = on_heap(step);
    let reported = async {
        let result = step.await;
        match &result {
            Ok(progress) => took(progress),
            Err(error) => failed(error),
        }
        result
    };
    reported.instrument(span(id)).await
}

/// Runs a call to the service in the span of its order, and reports what refuses it.
pub(crate) async fn call<T, F: Future<Output = Result<T, Error>>>(id: &OrderId, call: impl FnOnce() -> F) -> Result<T, Error> {
    let call = on_heap(call);
    let reported = async {
        let result = call.await;
        if let Err(Error::Refused(refusal)) = &result {
            refused(refusal);
        }
        result
    };
    reported.instrument(span(id)).await
}

/// Reports a line of the journal that was written.
pub(super) fn written(event: &Event) {
    info!(event = event.name(), "journal");
}

fn took(Progress { status, acted, trouble, is_paid, .. }: &Progress) {
    debug!(status = status.name(), acted, is_paid, trouble = trouble.as_ref().map(Trouble::name), "step");
    if let Status::Refused { refusal } = status {
        refused(refusal);
    }
    if let Some(Trouble::RecordRefused(refusal)) = trouble {
        refused(refusal);
    }
}

fn failed(error: &DriveError) {
    match error {
        DriveError::Refused(refusal) => refused(refusal),
        DriveError::Create(error) => warn!(code = error.code().name(), "not created"),
        DriveError::Owner(_) => warn!("nothing was signed"),
        DriveError::Store(_) => warn!("the store failed"),
    }
}

/// Reports a refusal. Its location and values are left out, because they can contain text of the service.
fn refused(refusal: &Refusal) {
    warn!(target: REFUSED, code = refusal.code().name(), blame = %refusal.blame(), "refused");
}
