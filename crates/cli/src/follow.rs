//! Follows a stored order until it ends, for `swap`, `order watch`, `redeem` and `refund`.

use std::collections::BTreeSet;

use countersign::{BroadcastTransaction, Hold, Leg, RequestedLeg, text};
use countersign_client::driver::{
    Chains as _, Delivery, DriveError, Event, OrderState, OrderStore as _, Outcome, Owner, OwnerTask, Progress, Purpose, Status, Trouble,
    WaitingFor,
};
use countersign_client::status::State;
use countersign_client::{OrderId, StreamExt};

use crate::drive::Program;
use crate::input::{Failure, chain, usage, without_advice};
use crate::state::at_once;
use crate::stated::{ONLY_STATED, StatedEnd};
use crate::status::{Alarm, StatusReport, describe, report_status};
use crate::{NEEDS_USER, OK, command, interrupt, show};

/// The message if an order's secret is missing.
pub(crate) const SECRET_MISSING: &str =
    "the secret of this order is not in the state directory, so nothing is paid; pass --service-secret if somebody else holds the secret";

/// An order that is being followed.
struct Following<'f, O> {
    driver: &'f Program<O>,
    id: &'f OrderId,
    /// The order as stored after the last step.
    kept: OrderState,
    trusts: bool,
    json: bool,
    source_is_seen: bool,
    destination_is_seen: bool,
    /// Whether the payment is on chain, or may have been sent.
    is_paid: bool,
    is_alarmed: bool,
    /// The stated ends that the user was told about.
    told: BTreeSet<StatedEnd>,
}

/// Drives an order until it ends, or until the owner has to act.
pub(crate) async fn follow<O: Owner>(driver: &Program<O>, id: &OrderId, trusts: bool, json: bool) -> Result<u8, Failure> {
    let kept = driver.store().load(id).await.map_err(usage)?;
    interrupt::advise(format!("every step is stored; continue with: {}", command::resume(id)));
    let request = kept.swap.request();
    let is_seen = |leg: &RequestedLeg| driver.chains().has(leg.asset.chain());
    let mut following = Following {
        driver,
        id,
        source_is_seen: is_seen(&request.source),
        destination_is_seen: is_seen(&request.destination),
        is_paid: kept.may_be_paid(),
        kept,
        trusts,
        json,
        is_alarmed: false,
        told: BTreeSet::new(),
    };
    let mut changes = std::pin::pin!(driver.drive(vec![id.clone()]));
    while let Some(change) = changes.next().await {
        if let Some(end) = following.hear(change.result)? {
            return Ok(end);
        }
    }
    // Not reached: the stream ends only after the order has ended, which returns above.
    Err(Failure::Held { code: "swap_not_complete", message: format!("continue with: {}", command::resume(id)) })
}

impl<O: Owner> Following<'_, O> {
    /// Reports the result of one step. Returns an exit code if the order has ended, and a failure if the user has to act or nothing is at
    /// stake.
    fn hear(&mut self, result: Result<Progress, DriveError>) -> Result<Option<u8>, Failure> {
        let was_paid = self.is_paid;
        // Read after the step: what was about to be sent in it may have arrived, whatever was observed before it.
        if let Ok(kept) = at_once(self.driver.store().load(self.id)) {
            self.is_paid |= kept.may_be_paid();
            self.kept = kept;
        }
        let progress = match result {
            Ok(progress) => progress,
            // A paid order is followed until it ends, whatever fails. A fee above the policy's limit may be below it in an hour.
            Err(error) if self.is_paid && (error.is_transient() || matches!(error, DriveError::Owner(_))) => {
                show::progress(&format!("{}; retrying", without_advice(&chain(&error))));
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        self.is_paid |= progress.is_paid;
        report_status(self.id, &progress);
        if self.is_paid && !was_paid && failed(&progress).is_some() {
            show::progress("it is not known whether the payment arrived, so it may have been paid: following the order");
        }
        if matches!(progress.status, Status::RedeemNow) && !self.is_alarmed {
            self.is_alarmed = true;
            self.alarm();
        }
        if let Some(code) = self.stated_end(&progress)? {
            return Ok(Some(code));
        }
        // What was observed before an act says nothing about what is left to do.
        if progress.acted { Ok(None) } else { self.end_or_wait(&progress) }
    }

    fn end_or_wait(&self, progress: &Progress) -> Result<Option<u8>, Failure> {
        let again = || command::resume(self.id);
        match &progress.status {
            Status::Ended { outcome } => return ended(self.id, progress, *outcome, self.json).map(Some),
            Status::Expired if !self.is_paid => return ended(self.id, progress, Outcome::Expired, self.json).map(Some),
            Status::Unsigned if failed(progress).is_none() && !self.is_paid => {
                let message = format!(
                    "to pay, pass --wallet and a key; or pay what was shown with another wallet and pass --paid; then continue with: {}",
                    again()
                );
                return Err(Failure::NeedsUser { code: "not_signed", message });
            }
            Status::Refused { refusal } if !self.is_paid => return Err(Failure::Refused(refusal.clone())),
            Status::NeedsOwner { what } => return self.needs_owner(progress, *what).map(Some),
            Status::Waiting { on: WaitingFor::Evidence(Hold::Unclear(_)) }
                if !self.trusts && !self.destination_is_seen && says_funded(progress) =>
            {
                let message = format!(
                    "the service states that the solver has paid, but only the destination chain can prove it. Connect that chain with --node, or send \
                     the secret to the service with --trust-the-service; or check the chain yourself, then run: {}",
                    self.by_self(Leg::Destination)
                );
                return Err(Failure::NeedsUser { code: "evidence_needed", message });
            }
            _ => {}
        }
        // Nothing can have been paid yet, so the program ends instead of waiting for a service that is down.
        if !self.is_paid
            && let Some(trouble) = failed(progress)
        {
            let trouble = without_advice(&text::escape_untrusted(trouble));
            let message = format!("{trouble}; this program has sent nothing that moves your funds; continue with: {}", again());
            return Err(Failure::Network { code: "service_unavailable", message });
        }
        Ok(None)
    }

    /// Ends the order by what the service states, where that may count. It is not stored, so the order stays open and can be continued.
    ///
    /// A stated end counts only for a leg whose chain is not connected: the word of a connected chain decides. It never counts while a
    /// connected destination may still be locked, nor against what is known about the secret.
    fn stated_end(&mut self, progress: &Progress) -> Result<Option<u8>, Failure> {
        let Some(stated) = progress.stated.as_ref().filter(|_| self.is_paid) else { return Ok(None) };
        let end = match &progress.status {
            Status::Ended { .. } => return Ok(None),
            Status::Lost => StatedEnd::Lost,
            _ => match StatedEnd::from_status(&stated.status) {
                // A payment that was sent from here does not expire.
                None | Some(StatedEnd::Expired) => return Ok(None),
                Some(end) => end,
            },
        };
        let (is_read, counts) = match end {
            StatedEnd::Complete => (self.destination_is_seen, self.trusts),
            StatedEnd::Refunded | StatedEnd::Expired => (self.source_is_seen, self.trusts && !self.destination_is_seen),
            // The driver has compared both legs, each with its chain where that is connected.
            StatedEnd::Lost => (self.source_is_seen && self.destination_is_seen, matches!(progress.status, Status::Lost)),
        };
        if is_read {
            return Ok(None);
        }
        if !counts || !end.agrees_with_secret(&stated.record, self.kept.secret_has_left()) {
            if self.told.insert(end) {
                show::progress(&end.doubt());
            }
            return Ok(None);
        }
        let again = command::resume(self.id);
        match end {
            StatedEnd::Complete => {
                show_complete(self.id, progress, self.json)?;
                show::progress(ONLY_STATED);
                Ok(Some(OK))
            }
            StatedEnd::Refunded | StatedEnd::Expired => {
                let message = format!("{}. If it is not true, continue with: {again}", end.statement());
                Err(Failure::Held { code: "swap_not_complete", message })
            }
            StatedEnd::Lost => {
                let message = format!(
                    "the source is redeemed and the destination refunded, as far as this program can see: check both chains. If it is not true, \
                     continue with: {again}; or try to refund with: {}",
                    self.by_self(Leg::Source)
                );
                Err(Failure::Lost(message))
            }
        }
    }

    fn by_self(&self, leg: Leg) -> String {
        by_self(self.driver, &self.kept, leg)
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
        show::event(&alarm, &message);
        for transaction in transactions.iter().filter(|_| !self.json) {
            show::progress(&transaction.payload);
        }
    }

    /// Prints what the owner has to do.
    fn needs_owner(&self, progress: &Progress, what: OwnerTask) -> Result<u8, Failure> {
        let (id, kept) = (self.id, &self.kept);
        let (purpose, code, message) = match what {
            OwnerTask::BroadcastFunding => {
                let (what, flag) = if kept.is_gasless() { ("the approval", "--approved") } else { ("these transactions", "--paid") };
                (Some(Purpose::Funding), "broadcast_needed", format!("broadcast {what}, then run: {} {flag}", command::resume(id)))
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
        if self.json {
            let error = Some(show::HeldError { code, message: &message, problems: &[] });
            show::json(&StatusReport { ok: Some(false), error, transactions, ..StatusReport::new(id, progress) })?;
            return Ok(NEEDS_USER);
        }
        for transaction in transactions {
            show::field(transaction.role.name(), &transaction.id)?;
            show::raw(&transaction.payload)?;
        }
        show::progress(&message);
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

fn by_self<O: Owner>(driver: &Program<O>, kept: &OrderState, leg: Leg) -> String {
    let registry = kept.pins.as_ref().map_or_else(|| driver.flow().registry(), |pins| &pins.registry);
    command::by_self(leg, kept, registry)
}

fn says_funded(progress: &Progress) -> bool {
    progress.stated.as_ref().is_some_and(|stated| stated.status.state == State::AwaitingRedeem)
}

/// Prints a complete order, with the id of the redemption as the service states it.
fn show_complete(id: &OrderId, progress: &Progress, json: bool) -> Result<(), Failure> {
    if json {
        show::json(&StatusReport { ok: Some(true), ..StatusReport::new(id, progress) })?;
    } else {
        let transaction = progress.stated.as_ref().map(|stated| stated.record.destination_swap.redeem_tx_hash.as_str());
        show::field("complete", &text::escape_untrusted(transaction.unwrap_or_default()))?;
    }
    Ok(())
}

fn ended(id: &OrderId, progress: &Progress, outcome: Outcome, json: bool) -> Result<u8, Failure> {
    match outcome {
        Outcome::Complete => show_complete(id, progress, json).map(|()| OK),
        Outcome::Lost => Err(Failure::Lost(describe(&Status::Lost))),
        other => Err(order_ended("swap_not_complete", other)),
    }
}

fn order_ended(code: &'static str, outcome: Outcome) -> Failure {
    Failure::Held { code, message: format!("the order ended: {}", describe(&Status::Ended { outcome })) }
}

/// Refunds a stored order once its timelock has expired: with the owner's own transaction where the source chain is connected, otherwise
/// through the service's relayer.
pub(crate) async fn refund<O: Owner>(driver: &Program<O>, id: &OrderId) -> Result<(), Failure> {
    let progress = driver.refund(id).await?;
    report_status(id, &progress);
    let kept = || at_once(driver.store().load(id)).map_err(usage);
    let by_self = by_self(driver, &kept()?, Leg::Source);
    let not_yet = |reason: &str| {
        let from = progress.stated.as_ref().and_then(|stated| stated.status.refund_possible_from);
        let from = from.map(|time| format!("; possible from about {}", show::time(time))).unwrap_or_default();
        Err(Failure::Held { code: "not_refundable", message: format!("nothing was refunded: {reason}{from}") })
    };
    let was_sent = || {
        let kept = kept()?;
        Ok::<_, Failure>(kept.was_sent(Delivery::RefundRequest) || kept.was_sent(Delivery::Refund))
    };
    // A refund that was sent is under way, whatever is stated about the order.
    if progress.acted && was_sent()? {
        return Ok(());
    }
    // The source chain alone shows that it is too early, even if the service fails.
    let source_is_seen = driver.chains().has(kept()?.swap.request().source.asset.chain());
    let is_too_early = source_is_seen && matches!(progress.status, Status::Waiting { .. } | Status::AwaitingRefund { .. });
    if let Some(trouble) = failed(&progress).filter(|_| !is_too_early) {
        let message = format!("{}; try again, or refund your payment with: {by_self}", without_advice(&text::escape_untrusted(trouble)));
        return Err(Failure::Network { code: "service_unavailable", message });
    }
    match &progress.status {
        Status::Refunding if was_sent()? => Ok(()),
        Status::Refunding => {
            let message = format!("the service did not accept the request a moment ago; try again, or run: {by_self}");
            Err(Failure::Network { code: "service_unavailable", message })
        }
        Status::NeedsOwner { what: OwnerTask::Refund } => {
            Err(Failure::NeedsUser { code: "refund_needed", message: format!("only your own key can refund: {by_self}") })
        }
        Status::Refused { refusal } => Err(Failure::Refused(refusal.clone())),
        Status::Ended { outcome } => Err(order_ended("order_ended", *outcome)),
        // A loss that only the service states must not keep anybody from a refund.
        Status::Lost if !source_is_seen => {
            let message = format!("the service states that the order is lost, and this program cannot check that: try {by_self}");
            Err(Failure::NeedsUser { code: "refund_needed", message })
        }
        Status::Lost => Err(Failure::Lost(describe(&progress.status))),
        Status::Unsigned | Status::Expired => not_yet("nothing was paid for this order"),
        Status::Paying => not_yet("the payment for this order has not arrived yet"),
        Status::Waiting { .. } | Status::AwaitingRefund { .. } => not_yet("the timelock of your payment has not expired"),
        other => not_yet(&describe(other)),
    }
}

/// Returns what did not work in a step and is tried again. A chain that is not connected is no such failure: the status says what to do.
fn failed(progress: &Progress) -> Option<&str> {
    match &progress.trouble {
        Some(Trouble::Failed(why)) => Some(why),
        _ => None,
    }
}

/// Redeems a stored order: with the owner's own transaction where the destination chain is connected, otherwise by sending the secret to
/// the relayer on the service's word that the destination is funded.
pub(crate) async fn release<O: Owner>(driver: &Program<O>, id: &OrderId) -> Result<(), Failure> {
    loop {
        let progress = driver.advance(id).await?;
        report_status(id, &progress);
        let kept = driver.store().load(id).await.map_err(usage)?;
        if kept.was_sent(Delivery::Secret) || kept.was_sent(Delivery::Redemption) {
            return Ok(());
        }
        let not_redeemable =
            |reason: &str| Failure::Held { code: "not_redeemable", message: format!("the secret was not released: {reason}") };
        let not_paid = |message: &str| Failure::Held { code: "not_paid", message: message.to_owned() };
        match &progress.status {
            Status::Waiting { on } => {
                return Err(Failure::Held { code: on.code(), message: format!("the secret was not released: {on}") });
            }
            Status::Refused { refusal } => return Err(Failure::Refused(refusal.clone())),
            Status::AwaitingRefund { reason } => return Err(not_redeemable(&reason.to_string())),
            Status::Refunding => return Err(not_redeemable("the order is being refunded")),
            Status::NeedsOwner { .. } => {
                let message = format!("only your own key can redeem: run {}", by_self(driver, &kept, Leg::Destination));
                return Err(Failure::NeedsUser { code: "redeem_needed", message });
            }
            Status::Ended { outcome } => return Err(order_ended("order_ended", *outcome)),
            // Without the service's record it is not known what was paid from elsewhere.
            _ if failed(&progress).is_some() => {}
            Status::Unsigned | Status::Expired => return Err(not_paid("nothing was paid for this order")),
            Status::Paying => return Err(not_paid("the payment for this order has not arrived yet")),
            _ => {}
        }
        // After a failed attempt the driver waits a few seconds before the next one.
        if !progress.acted {
            let may_have_left = kept.secret_left().is_some();
            let secret = if may_have_left { "the service may have the secret already" } else { "the secret was not released" };
            let trouble = failed(&progress).unwrap_or("nothing was sent in this run");
            let message = format!("{}; {secret}; try again", without_advice(&text::escape_untrusted(trouble)));
            return Err(Failure::Network { code: "service_unavailable", message });
        }
    }
}
