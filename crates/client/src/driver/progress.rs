//! What goes into the driver, and what comes out: new orders, progress, changes, errors.

use countersign::json::At;
use countersign::{Code, CreateOrder, OrderRecord, Refusal, U256, evidence::Hold, report::OrderStage, text};
use serde::{Serialize, Serializer};

use super::decide::{Status, WaitingFor};
use super::kept::StoreError;
use super::parties::OwnerError;
use crate::error::Error;
use crate::request::OrderId;
use crate::secret::Secret;

/// An error of a step. The message says what failed and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The order was refused. Nothing was signed or sent.
    #[error("the order was refused: {0}")]
    Refused(Refusal),
    /// The owner's signer failed or refused.
    #[error("nothing was signed: {0}")]
    Owner(OwnerError),
    /// The store failed. The driver does nothing whose intent it could not write.
    #[error("the stored order cannot be read or written: {0}")]
    Store(StoreError),
    /// The order could not be created.
    #[error("the order was not created: {0}")]
    Create(Error),
}

impl From<Refusal> for DriveError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<OwnerError> for DriveError {
    fn from(error: OwnerError) -> Self {
        Self::Owner(error)
    }
}

impl From<StoreError> for DriveError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::SecretUsed(_) => {
                Self::Refused(At::REQUEST.refuse_below(Code::RecordSecretKnown, "/secret_hash").with_reason(error.to_string()))
            }
            other => Self::Store(other),
        }
    }
}

impl DriveError {
    /// Returns the message with the remedy of a stage.
    #[must_use]
    pub fn at_stage(&self, stage: OrderStage) -> String {
        match self {
            Self::Refused(refusal) => format!("the order was refused: {}", refusal.at_stage(stage)),
            Self::Owner(OwnerError::Refused(refusal)) => format!("nothing was signed: {}", refusal.at_stage(stage)),
            other => other.to_string(),
        }
    }

    /// Returns whether the same step may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Store(_) => true,
            Self::Create(error) => error.is_transient(),
            Self::Refused(_) | Self::Owner(_) => false,
        }
    }
}

/// The result of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// The status of the order.
    #[serde(flatten)]
    pub status: Status,
    /// Whether the step did something, so that the next one is worth taking at once.
    #[serde(skip)]
    pub acted: bool,
    /// What did not work this time, or what is missing; `None` if everything worked. Serialized as its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// Whether the payment is on chain, or may have been sent: from here, or by a signer that got it. A statement of the service alone does
    /// not count.
    pub is_paid: bool,
    /// Whether the service states that the order is paid, where the source chain is not connected. The payment may be from elsewhere.
    #[serde(skip)]
    pub is_stated_paid: bool,
    /// Whether the source chain shows that the source is refunded. The block may not be final yet.
    #[serde(skip)]
    pub is_refunded: bool,
    /// What the service states, for display only; `None` if its record is not available or was refused.
    #[serde(skip)]
    pub stated: Option<Box<ServiceStatement>>,
}

/// What the owner of a paid order can do if the order does not go on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WayOut {
    /// Refund, once the timelock of the payment has expired.
    Refund,
    /// Look at the destination chain and redeem, or refund.
    RedeemOrRefund,
}

impl Progress {
    /// Returns the stage, on which the words about the order depend.
    #[must_use]
    pub const fn stage(&self) -> OrderStage {
        if self.is_paid || self.is_stated_paid { OrderStage::AfterPaying } else { OrderStage::BeforePaying }
    }

    /// Returns what the owner can do; `None` while the order is not paid, or goes on by itself.
    #[must_use]
    pub fn way_out(&self) -> Option<WayOut> {
        match &self.status {
            _ if self.stage() == OrderStage::BeforePaying => None,
            Status::Refused { .. } => Some(WayOut::Refund),
            Status::Waiting { on: WaitingFor::Evidence(Hold::Unclear(_)) } => Some(WayOut::RedeemOrRefund),
            Status::Paying if self.failure().is_some() => Some(WayOut::Refund),
            _ => None,
        }
    }

    /// Returns a sentence for the owner: the status, what did not work, and what to do at this stage. Untrusted text in it is escaped.
    #[must_use]
    pub fn message(&self) -> String {
        let mut message = self.status.to_string();
        // The status says already that the record was refused.
        let is_said = matches!((&self.status, &self.trouble), (Status::Refused { .. }, Some(Trouble::RecordRefused(_))));
        if let Some(trouble) = self.trouble.as_ref().filter(|_| !is_said) {
            message = format!("{message}; {}", text::escape_untrusted(&trouble.to_string()));
        }
        match (&self.status, self.way_out()) {
            (Status::Refused { refusal }, _) => format!("{message}; {}", refusal.remedy_at(self.stage())),
            (_, Some(WayOut::RedeemOrRefund)) => format!(
                "{message}; the payment is out and nothing is lost, because the secret is kept back: look at the destination chain and redeem, or \
                 refund when the timelock has expired"
            ),
            (_, Some(WayOut::Refund)) => {
                format!("{message}; the payment may be out, and nothing is lost: if it arrived, refund it when its timelock has expired")
            }
            (_, None) => message,
        }
    }

    /// Creates the progress of an order that is not paid, with which nothing is wrong.
    #[must_use]
    pub const fn new(status: Status) -> Self {
        Self { status, acted: false, trouble: None, is_paid: false, is_stated_paid: false, is_refunded: false, stated: None }
    }
}

/// Why an order does not proceed. The text is for display.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// Something did not work this time. The driver tries again.
    #[error("{0}")]
    Failed(String),
    /// The next action needs this chain, by its name in asset ids such as `base`, and [`Chains`](super::Chains) has no endpoints of it.
    #[error("not connected to {0}")]
    NotConnected(String),
    /// The service's newest record was refused. For a payment that both chains show, it decides nothing.
    #[error("the service's newest record is refused ({}); what the chains show decides", .0.finding())]
    RecordRefused(Refusal),
    /// It was sent, and the store could not be written.
    #[error("it was sent again, and the state directory cannot be written: {0}; make room, or restore write access")]
    NotWritten(String),
    /// The service accepted the gasless payment more than two minutes ago, and the chain shows no payment. The signed message does not
    /// expire, so the service can submit it at any time; the driver keeps following the order.
    #[error(
        "the service accepted the signed payment but has not submitted it to the chain; it may still do so, even after the order's deadline; a late payment can be refunded after its timelock"
    )]
    NotSubmitted,
}

impl Trouble {
    /// Returns the stable name, in snake case.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Failed(_) => "failed",
            Self::NotConnected(_) => "not_connected",
            Self::RecordRefused(_) => "record_refused",
            Self::NotWritten(_) => "not_written",
            Self::NotSubmitted => "not_submitted",
        }
    }
}

impl Serialize for Trouble {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What the service states about an order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceStatement {
    /// The record, whose terms were verified.
    pub record: OrderRecord,
    /// The status that follows from it.
    pub status: crate::status::Status,
}

/// An order to create, with what is stored along with its request.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "its caller constructs it")]
pub struct NewOrder {
    /// The request to the service.
    pub request: CreateOrder,
    /// The secret whose hash the request contains; `None` if the service or somebody else holds the secret. It must be recoverable
    /// independently of this store: derived from a phrase, or stored elsewhere too.
    pub secret: Option<Secret>,
    /// The index with which the secret and the owner's keys are derived from the rescue phrase; `None` if they are not.
    pub index: Option<u32>,
    /// The branch of the rescue phrase that the index belongs to; 0 for the first one.
    pub branch: u16,
    /// The minimum that the order must pay, in base units of the destination asset; `None` for no minimum.
    pub at_least: Option<U256>,
}

impl NewOrder {
    /// Creates a new order from a request and its secret, without an index and without a minimum.
    #[must_use]
    pub const fn new(request: CreateOrder, secret: Option<Secret>) -> Self {
        Self { request, secret, index: None, branch: 0, at_least: None }
    }
}

/// A change of one of the driven swaps.
#[derive(Debug)]
#[non_exhaustive]
pub struct Change {
    /// The order.
    pub id: OrderId,
    /// Its progress, or why the step failed this time.
    pub result: Result<Progress, DriveError>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(status: Status, is_paid: bool) -> Progress {
        Progress { is_paid, ..Progress::new(status) }
    }

    #[test]
    fn words_know_the_stage() {
        let refusal = At::RECORD.refuse_below(Code::RecordPaysElsewhere, "/destination_swap/redeemer").with_actual("0xab");
        let refused = |is_paid| progress(Status::Refused { refusal: refusal.clone() }, is_paid);
        let (before, after) = (refused(false), refused(true));
        assert!(before.message().ends_with("; do not sign; report the service") && before.way_out().is_none(), "{}", before.message());
        let message = after.message();
        assert!(!message.contains("do not sign") && message.contains("the payment is out and nothing is lost"), "{message}");
        assert_eq!(after.way_out(), Some(WayOut::Refund));
        // The JSON has the finding without a remedy, because the status does not know the stage.
        let json = serde_json::to_value(&after).unwrap();
        assert_eq!(json["refusal"]["code"], "record_pays_elsewhere");
        assert!(!json.to_string().contains("do not sign"), "{json}");
        let error = DriveError::Owner(OwnerError::Refused(refusal));
        assert!(error.at_stage(OrderStage::BeforePaying).contains("do not sign"));
        assert!(!error.at_stage(OrderStage::AfterPaying).contains("do not sign"));
    }

    #[test]
    fn what_cannot_be_judged_has_a_way_out() {
        let unclear = |is_paid| progress(Status::Waiting { on: WaitingFor::Evidence(Hold::Unclear("no height".to_owned())) }, is_paid);
        assert_eq!((unclear(true).way_out(), unclear(false).way_out()), (Some(WayOut::RedeemOrRefund), None));
        assert!(unclear(true).message().contains("look at the destination chain and redeem, or refund"), "{}", unclear(true).message());
        let mut paying = progress(Status::Paying, true);
        assert_eq!(paying.way_out(), None);
        paying.trouble = Some(Trouble::Failed("no answer".to_owned()));
        assert_eq!(paying.way_out(), Some(WayOut::Refund));
        let waiting = progress(Status::Waiting { on: WaitingFor::Evidence(Hold::NotFunded) }, true);
        assert_eq!(waiting.way_out(), None);
    }
}
