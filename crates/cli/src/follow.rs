//! Follows a stored order until it ends, for `swap`, `order watch`, `redeem` and `refund`.

use countersign::{BroadcastTransaction, Leg, OrderRecord, chains::UnixTime, report::OrderStage, text};
use countersign_client::driver::{
    Alert, Chains as _, Delivery, DriveError, Event, Following, OrderState, OrderStore as _, Outcome, Owner, OwnerTask, Progress, Purpose,
    RefundEnd, StatedEnd, Status, Stop, TrustTheService, WayOut,
};
use countersign_client::{OrderId, StreamExt};

use crate::drive::CliDriver;
use crate::exit::{NEEDS_USER, OK};
use crate::failure::{Failure, advised, usage, without_advice};
use crate::session::Session;
use crate::show;
use crate::state::{at_once, note_stated};
use crate::stated::{self, ONLY_STATED};
use crate::status::{Alarm, StatusReport, report_status};

/// The message if an order's secret is missing.
pub(crate) const SECRET_MISSING: &str =
    "the secret of this order is not in the state directory, so nothing is paid; pass --service-secret if somebody else holds the secret";

/// An order that is being followed.
struct Follower<'f, O> {
    driver: &'f CliDriver<O>,
    id: &'f OrderId,
    /// The order as stored after the last step.
    kept: OrderState,
    session: &'f Session,
}

/// Drives an order until it ends, or until the owner has to act.
pub(crate) async fn follow<O: Owner>(
    driver: &CliDriver<O>,
    id: &OrderId,
    trust: Option<TrustTheService>,
    session: &Session,
) -> Result<u8, Failure> {
    let kept = driver.store().load(id).await.map_err(usage)?;
    session.advise(format!("every step is stored; continue with: {}", session.commands.resume(id)));
    let mut following = Following::new(&kept, driver.chains(), trust);
    let mut follower = Follower { driver, id, kept, session };
    let mut changes = std::pin::pin!(driver.drive(vec![id.clone()]));
    while let Some(change) = changes.next().await {
        // Read after the step: what was about to be sent in it may have arrived.
        if let Ok(kept) = driver.store().load(id).await {
            follower.kept = kept;
        }
        if let Ok(progress) = &change.result {
            report_status(id, progress, follower.advice(progress).as_deref(), session);
        }
        let step = following.hear(&follower.kept, &change.result);
        for alert in step.alerts {
            follower.tell(alert, &change.result);
        }
        match (step.stop, change.result) {
            (Some(Stop::Failed(error)), _) if follower.kept.may_be_paid() => return Err(Failure::from(error).after_paying()),
            (Some(Stop::Failed(error)), _) => return Err(error.into()),
            (Some(stop), Ok(progress)) => return follower.stopped(stop, &progress),
            _ => {}
        }
    }
    // Not reached: the stream ends only after the order has ended, which returns above.
    Err(Failure::Held { code: "swap_not_complete", message: format!("continue with: {}", session.commands.resume(id)) })
}

impl<O: Owner> Follower<'_, O> {
    fn tell(&self, alert: Alert, result: &Result<Progress, DriveError>) {
        match (alert, result) {
            (Alert::Retrying, Err(error)) => {
                self.session.progress(&format!("{}; retrying", without_advice(&error.at_stage(OrderStage::AfterPaying))));
            }
            (Alert::MaybePaid, _) => {
                self.session.progress("it is not known whether the payment arrived, so it may have been paid: following the order");
            }
            (Alert::RedeemNow, _) => self.alarm(),
            (Alert::StatedOnly(end), _) => self.session.progress(&stated::doubt(end)),
            _ => {}
        }
    }

    /// Reports why the order is not followed any longer, and returns the exit code.
    fn stopped(&self, stop: Stop, progress: &Progress) -> Result<u8, Failure> {
        let again = || self.session.commands.resume(self.id);
        match stop {
            Stop::Ended(outcome) => self.ended(progress, outcome),
            Stop::Stated(end) => self.stated_end(progress, end),
            Stop::NotSigned => {
                let message = format!(
                    "to pay, pass --wallet and a key; or pay what was shown with another wallet and pass --paid; then continue with: {}",
                    again()
                );
                Err(Failure::NeedsUser { code: "not_signed", message })
            }
            Stop::Owner(task) => self.needs_owner(progress, task),
            Stop::EvidenceNeeded => {
                let message = format!(
                    "the service states that the solver has paid, but only the destination chain can prove it. Connect that chain with --node, or send \
                     the secret to the service with --trust-the-service; or check the chain yourself, then run: {}",
                    self.by_self(Leg::Destination)
                );
                Err(Failure::NeedsUser { code: "evidence_needed", message })
            }
            Stop::Unavailable(why) => {
                let why = without_advice(&text::escape_untrusted(&why));
                let message = format!("{why}; this program has sent nothing that moves your funds; continue with: {}", again());
                Err(Failure::Network { code: "service_unavailable", message })
            }
            Stop::Refused(refusal) => Err(Failure::Refused(refusal)),
            Stop::Failed(error) => Err(error.into()),
            _ => Err(Failure::Held { code: "swap_not_complete", message: format!("continue with: {}", again()) }),
        }
    }

    /// Ends the order by what the service states. The journal has no end then, so the order stays open and can be continued; a note says
    /// what the service stated.
    fn stated_end(&self, progress: &Progress, end: StatedEnd) -> Result<u8, Failure> {
        // Best effort: the list of orders is a convenience.
        let _ = note_stated(self.driver.store(), self.id, end);
        let again = self.session.commands.resume(self.id);
        match end {
            StatedEnd::Complete => {
                self.show_complete(progress)?;
                self.session.progress(ONLY_STATED);
                Ok(OK)
            }
            StatedEnd::Lost => {
                let message = format!(
                    "the source is redeemed and the destination refunded, as far as this program can see: check both chains. If it is not true, \
                     continue with: {again}; or try to refund with: {}",
                    self.by_self(Leg::Source)
                );
                Err(Failure::Lost(message))
            }
            other => {
                let message = format!("{}. If it is not true, continue with: {again}", stated::statement(other));
                Err(Failure::Held { code: "swap_not_complete", message })
            }
        }
    }

    fn ended(&self, progress: &Progress, outcome: Outcome) -> Result<u8, Failure> {
        match outcome {
            Outcome::Complete => self.show_complete(progress).map(|()| OK),
            Outcome::Lost => Err(Failure::Lost(Status::Lost.to_string())),
            other => Err(order_ended("swap_not_complete", other)),
        }
    }

    /// Prints a complete order: what was redeemed to whom, in which transaction. It is the order's own redemption, or what the service states.
    fn show_complete(&self, progress: &Progress) -> Result<(), Failure> {
        if self.session.json {
            show::json(&StatusReport { ok: Some(true), ..StatusReport::new(self.id, progress) })?;
        } else {
            show::field("complete", &self.redeemed(progress))?;
        }
        Ok(())
    }

    fn redeemed(&self, progress: &Progress) -> String {
        let destination = &self.kept.swap.request().destination;
        let registry = self.kept.pins_or(self.driver.flow().registry(), self.driver.flow().policy()).0;
        let record = self.kept.record.as_ref().and_then(|record| OrderRecord::from_json(record).ok());
        let units = record.map_or(destination.amount, |record| record.destination_swap.amount);
        let amount = match registry.asset(destination.asset.as_str()) {
            Some(asset) => asset.amount(units).to_string(),
            None => format!("{units} base units of {}", destination.asset),
        };
        let own = self.kept.signed(Purpose::Redemption).and_then(|(transactions, _)| transactions.last()).map(|last| last.id.as_str());
        let stated = || progress.stated.as_ref().and_then(|stated| stated.record.destination_swap.redeem_tx_hash.as_deref());
        let whom = destination.owner.as_deref().map(|owner| format!(" to {}", text::quote_untrusted(owner))).unwrap_or_default();
        let id = own.or_else(stated).map(|id| format!(", in {}", text::quote_untrusted(id))).unwrap_or_default();
        format!("{amount} redeemed{whom}{id}")
    }

    fn by_self(&self, leg: Leg) -> String {
        by_self(self.driver, &self.kept, leg, self.session)
    }

    fn advice(&self, progress: &Progress) -> Option<String> {
        advice(self.driver, &self.kept, progress, self.session)
    }

    /// Says how to redeem at once: with the signed transaction if it was signed a moment ago, and with a new one. A transaction that should
    /// have been mined by now may have left the mempools. The program continues to follow the order.
    fn alarm(&self) {
        let command = self.by_self(Leg::Destination);
        let is_overdue = self.driver.is_overdue(&self.kept, Purpose::Redemption);
        let transactions = if is_overdue { &[] } else { newest(&self.kept, Purpose::Redemption, Delivery::Redemption) };
        let message = if transactions.is_empty() {
            format!("redeem the order yourself now, in another terminal: {command}")
        } else {
            format!(
                "broadcast this transaction at once, through any node of the destination chain; or redeem with a new one, in another terminal: \
                 {command}"
            )
        };
        let alarm = Alarm { event: "alarm", order_id: self.id.as_str(), message: &message, command: &command, transactions };
        self.session.event(&alarm, &message);
        for transaction in transactions.iter().filter(|_| !self.session.json) {
            self.session.progress(&transaction.payload);
        }
    }

    /// Prints what the owner has to do.
    fn needs_owner(&self, progress: &Progress, what: OwnerTask) -> Result<u8, Failure> {
        let (id, kept) = (self.id, &self.kept);
        let (purpose, code, message) = match what {
            OwnerTask::BroadcastFunding => {
                let (what, flag) = if kept.is_gasless() { ("the approval", "--approved") } else { ("these transactions", "--paid") };
                // Whoever pays later only locks the funds.
                let deadline = progress.stated.as_ref().and_then(|stated| stated.status.deadline);
                let before = deadline.map(|time| format!(" before {}", show::time(time))).unwrap_or_default();
                let message = format!("broadcast {what}{before}, then run: {} {flag}", self.session.commands.resume(id));
                (Some(Purpose::Funding), "broadcast_needed", message)
            }
            OwnerTask::BroadcastRedemption if newest(kept, Purpose::Redemption, Delivery::Redemption).is_empty() => {
                let command = self.by_self(Leg::Destination);
                let message = format!(
                    "the chain rejected the redemption that was signed, and the secret may be public: build a new one at once, and broadcast it: \
                     {command}"
                );
                (None, "redeem_needed", message)
            }
            OwnerTask::BroadcastRedemption => {
                let message = "broadcast the redemption at once: the secret may be public".to_owned();
                (Some(Purpose::Redemption), "broadcast_needed", message)
            }
            OwnerTask::Secret => return Err(usage(SECRET_MISSING)),
            OwnerTask::Refund => {
                (Some(Purpose::Refund), "refund_needed", format!("refund your payment with: {}", self.by_self(Leg::Source)))
            }
            _ => {
                let message = format!(
                    "only your own key can redeem, and the secret must not go to the service. Check the destination chain, then run: {}",
                    self.by_self(Leg::Destination)
                );
                (None, "redeem_needed", message)
            }
        };
        let transactions = purpose.and_then(|purpose| kept.signed(purpose)).map(|(transactions, _)| transactions).unwrap_or_default();
        if self.session.json {
            let error = Some(show::ErrorReport { code, message: &message, problems: &[] });
            show::json(&StatusReport { ok: Some(false), error, transactions, ..StatusReport::new(id, progress) })?;
            return Ok(NEEDS_USER);
        }
        for transaction in transactions {
            show::field(transaction.role.name(), &transaction.id)?;
            show::raw(&transaction.payload)?;
        }
        self.session.progress(&message);
        Ok(NEEDS_USER)
    }
}

/// Returns the newest signed transactions for a purpose, unless the chain rejected the last attempt to broadcast them: then they are dead.
fn newest(kept: &OrderState, wanted: Purpose, what: Delivery) -> &[BroadcastTransaction] {
    let is_dead = kept.journal.iter().rev().find_map(|entry| match &entry.event {
        Event::Signed { purpose, .. } if *purpose == wanted => Some(false),
        Event::Sent { what: sent } | Event::OnChain { what: sent } if *sent == what => Some(false),
        Event::NotSent { what: sent, is_rejected, .. } if *sent == what => Some(*is_rejected),
        _ => None,
    });
    match kept.signed(wanted) {
        Some((transactions, _)) if is_dead == Some(false) => transactions,
        _ => &[],
    }
}

fn by_self<O: Owner>(driver: &CliDriver<O>, kept: &OrderState, leg: Leg, session: &Session) -> String {
    let registry = kept.pins_or(driver.flow().registry(), driver.flow().policy()).0;
    session.commands.by_self(leg, kept, registry)
}

/// Says how a paid order that does not go on by itself is ended, with its commands; `None` if it goes on.
fn advice<O: Owner>(driver: &CliDriver<O>, kept: &OrderState, progress: &Progress, session: &Session) -> Option<String> {
    let way_out = progress.way_out()?;
    let from = kept.refund_possible_from().map(|time| format!("from about {}, ", show::time(time))).unwrap_or_default();
    let refund = format!("{from}take the payment back with: {}", session.commands.with_places(&["refund", kept.swap.id().as_str()]));
    Some(match way_out {
        WayOut::RedeemOrRefund => format!("redeem with: {}; or {refund}", by_self(driver, kept, Leg::Destination, session)),
        _ => refund,
    })
}

fn order_ended(code: &'static str, outcome: Outcome) -> Failure {
    Failure::Held { code, message: format!("the order ended: {}", outcome.name()) }
}

/// Returns the failure of a refund that is not possible yet, with the time from which it is, if that is known.
pub(crate) fn not_refundable(reason: &str, possible_from: Option<UnixTime>) -> Failure {
    let from = possible_from.map(|time| format!("; possible from about {}", show::time(time))).unwrap_or_default();
    Failure::Held { code: "not_refundable", message: format!("nothing was refunded: {reason}{from}") }
}

/// Refunds a stored order once its timelock has expired: with the owner's own transaction where the source chain is connected, otherwise
/// through the service's relayer.
pub(crate) async fn refund<O: Owner>(driver: &CliDriver<O>, id: &OrderId, session: &Session) -> Result<(), Failure> {
    let progress = driver.refund(id).await?;
    report_status(id, &progress, None, session);
    let kept = at_once(driver.store().load(id)).map_err(usage)?;
    let by_self = by_self(driver, &kept, Leg::Source, session);
    let unavailable = |message: String| Err(Failure::Network { code: "service_unavailable", message });
    let refund_needed = |message: String| Err(Failure::NeedsUser { code: "refund_needed", message });
    match RefundEnd::new(&progress, &kept, driver.chains().has(kept.swap.request().source.asset.chain())) {
        RefundEnd::Refunding => Ok(()),
        RefundEnd::NotYet(reason) => {
            Err(not_refundable(&reason, progress.stated.as_ref().and_then(|stated| stated.status.refund_possible_from)))
        }
        RefundEnd::NotAccepted => unavailable(format!("the service did not accept the request a moment ago; try again, or run: {by_self}")),
        RefundEnd::Unavailable(why) => {
            unavailable(format!("{}; try again, or refund your payment with: {by_self}", without_advice(&text::escape_untrusted(&why))))
        }
        RefundEnd::NeedsOwner => refund_needed(format!("only your own key can refund: {by_self}")),
        RefundEnd::Refused(refusal) => Err(Failure::Refused(refusal)),
        RefundEnd::Ended(outcome) => Err(order_ended("order_ended", outcome)),
        RefundEnd::StatedLost => {
            refund_needed(format!("the service states that the order is lost, and this program cannot check that: try {by_self}"))
        }
        RefundEnd::Lost => Err(Failure::Lost(progress.status.to_string())),
        // An end of a later version.
        _ => Err(not_refundable(&progress.status.to_string(), None)),
    }
}

/// Requires that an order may be paid. Without the service's record it is not known what was paid from elsewhere.
pub(crate) fn check_paid(progress: &Progress) -> Result<(), Failure> {
    let not_paid = |message: &str| Err(Failure::Held { code: "not_paid", message: message.to_owned() });
    match &progress.status {
        _ if progress.failure().is_some() => Ok(()),
        Status::Unsigned | Status::Expired | Status::Ended { outcome: Outcome::Expired } => not_paid("nothing was paid for this order"),
        Status::Paying => not_paid("the payment for this order has not arrived yet"),
        _ => Ok(()),
    }
}

/// Redeems a stored order: with the owner's own transaction where the destination chain is connected, otherwise by sending the secret to
/// the relayer on the service's word that the destination is funded.
pub(crate) async fn release<O: Owner>(driver: &CliDriver<O>, id: &OrderId, session: &Session) -> Result<(), Failure> {
    loop {
        let progress = driver.advance(id).await?;
        let kept = driver.store().load(id).await.map_err(usage)?;
        let advice = advice(driver, &kept, &progress, session);
        report_status(id, &progress, advice.as_deref(), session);
        let with_advice = |message: String| advice.as_ref().map_or(message.clone(), |advice| format!("{message}; {advice}"));
        if kept.was_sent(Delivery::Secret) || kept.was_sent(Delivery::Redemption) {
            return Ok(());
        }
        let not_redeemable =
            |reason: &str| Failure::Held { code: "not_redeemable", message: format!("the secret was not released: {reason}") };
        match &progress.status {
            Status::Waiting { on } => {
                return Err(Failure::Held { code: on.code(), message: with_advice(format!("the secret was not released: {on}")) });
            }
            Status::Refused { refusal } => return Err(Failure::Refused(refusal.clone())),
            Status::AwaitingRefund { reason } => return Err(not_redeemable(&reason.to_string())),
            Status::Refunding => return Err(not_redeemable("the order is being refunded")),
            Status::NeedsOwner { .. } => {
                let message = format!("only your own key can redeem: run {}", by_self(driver, &kept, Leg::Destination, session));
                return Err(Failure::NeedsUser { code: "redeem_needed", message });
            }
            Status::Ended { outcome } if *outcome != Outcome::Expired || progress.failure().is_none() => {
                return Err(order_ended("order_ended", *outcome));
            }
            _ => check_paid(&progress)?,
        }
        // After a failed attempt the driver waits a few seconds before the next one.
        if !progress.acted {
            let may_have_left = kept.secret_left().is_some();
            let secret = if may_have_left { "the service may have the secret already" } else { "the secret was not released" };
            let trouble = progress.failure().unwrap_or("nothing was sent in this run");
            let message = advised(&without_advice(&text::escape_untrusted(trouble)), &format!("{secret}; try again"));
            return Err(Failure::Network { code: "service_unavailable", message });
        }
    }
}
