//! The journal of an order: what was done or about to be done, in order.

use std::collections::HashMap;

use countersign::{BroadcastTransaction, UnixTime};
use serde::{Deserialize, Serialize};

use super::kept::OrderState;

/// The number of lines from which a journal is folded before more is written to it. A step writes a few.
const MAX_LINES: usize = 64;
/// The number of signatures for a redemption or a refund that are kept: the newest one, and the one that it replaced.
const KEPT_SIGNATURES: usize = 2;
/// The number of signatures for a funding that are kept. A payment is raised now and then, and any of them may be mined.
pub(super) const KEPT_FUNDINGS: usize = 16;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a line of a file whose form is documented")]
pub struct Entry {
    /// The time of writing, by the caller's clock.
    pub at: UnixTime,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Something that was done or is about to be done. An event that moves money or a secret is written before it happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The owner signed. From then on these transactions are sent, unless a later entry replaces them. A funding is replaced only if
    /// it was rejected, or can never be included; or by one that spends the same coins for a higher fee, so that one of the two at most can
    /// be mined.
    Signed {
        /// What the transactions do.
        purpose: Purpose,
        /// The transactions, in the order in which they are broadcast.
        transactions: Vec<BroadcastTransaction>,
        /// The gasless submission that the service gets in place of a funding transaction; `None` without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gasless: Option<String>,
    },
    /// Something is about to be sent.
    Sending {
        /// What is sent.
        what: Delivery,
        /// The number of attempts that this line counts: 1, or more if older lines were merged into it.
        #[serde(default = "once", skip_serializing_if = "is_once")]
        times: u32,
    },
    /// It was sent, and accepted.
    Sent {
        /// What is sent.
        what: Delivery,
    },
    /// It was refused, or it is unknown whether it arrived.
    NotSent {
        /// What is sent.
        what: Delivery,
        /// Why, for display.
        error: String,
        /// Whether as many endpoints as must agree rejected it as invalid.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_rejected: bool,
    },
    /// It was printed, or handed to the owner, who may broadcast it or not. That is a note, and never a permission to send anything.
    Printed {
        /// What was printed.
        what: Delivery,
    },
    /// The owner reports that a transaction is on chain already.
    OnChain {
        /// What is sent.
        what: Delivery,
    },
    /// A signer that can send the payment by itself is about to get it. Until a later line says what the signer did, the payment may be on
    /// its way.
    PaymentLeaving,
    /// The signer that got the payment has neither signed nor sent it.
    PaymentStayed,
    /// The secret is about to be released. From then on the redemption is urgent.
    SecretLeaving {
        /// How it is released.
        path: SecretRoute,
    },
    /// The swap ended.
    Ended {
        /// How it ended.
        outcome: Outcome,
    },
}

/// The purpose of signed transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// Locks the owner's funds on the source chain.
    Funding,
    /// Redeems on the destination chain with the secret.
    Redemption,
    /// Refunds the owner on the source chain.
    Refund,
}

/// Something that is sent to a chain or to the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delivery {
    /// The gasless funding, sent to the service.
    Gasless,
    /// The funding transactions that the owner broadcasts; with a gasless funding, only its approvals.
    Funding,
    /// The redemption that the owner broadcasts.
    Redemption,
    /// The secret, sent to the service's relayer.
    Secret,
    /// The refund that the owner broadcasts.
    Refund,
    /// The request to the service's relayer to refund.
    RefundRequest,
}

/// How the secret is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SecretRoute {
    /// In a redemption that a signer outside of this process is asked to sign. The signer sees the secret, and could broadcast it.
    Signer,
    /// In a redemption that the owner broadcasts. Apart from the signer, nobody learns the secret before the transaction is broadcast.
    Own,
    /// By sending it to the service's relayer, which redeems for the owner.
    Relayer,
}

/// How a swap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The owner has received the destination funds.
    Complete,
    /// The owner has the source funds back.
    Refunded,
    /// Nothing was paid, and nothing will be.
    Expired,
    /// The source was redeemed and the destination refunded: the funds are gone.
    Lost,
}

impl Outcome {
    /// Returns the stable name, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Refunded => "refunded",
            Self::Expired => "expired",
            Self::Lost => "lost",
        }
    }
}

const fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_once(times: &u32) -> bool {
    *times == 1
}

impl Event {
    /// Creates the intent to send something.
    #[must_use]
    pub const fn sending(what: Delivery) -> Self {
        Self::Sending { what, times: 1 }
    }
}

/// Returns whether two payments spend a coin in common: of the two at most one can be mined.
fn share_a_coin(one: &[BroadcastTransaction], other: &[BroadcastTransaction]) -> bool {
    one.iter().flat_map(|one| &one.spends).any(|coin| other.iter().any(|other| other.spends.contains(coin)))
}

impl OrderState {
    /// Returns the most recently signed transactions for a purpose, with the gasless funding if there is one; `None` if nothing was
    /// signed. A funding is signed again if it was rejected or is dead, and on Bitcoin-like chains to raise its fee; a redemption or a refund
    /// also to raise its fee.
    #[must_use]
    pub fn signed(&self, wanted: Purpose) -> Option<(&[BroadcastTransaction], Option<&str>)> {
        self.journal.iter().rev().find_map(|entry| match &entry.event {
            Event::Signed { purpose, transactions, gasless } if *purpose == wanted => Some((transactions.as_slice(), gasless.as_deref())),
            _ => None,
        })
    }

    /// Returns when the transactions for a purpose were last signed; `None` if never.
    #[must_use]
    pub fn signed_at(&self, wanted: Purpose) -> Option<UnixTime> {
        let is_signed = |entry: &&Entry| matches!(&entry.event, Event::Signed { purpose, .. } if *purpose == wanted);
        self.journal.iter().rev().find(is_signed).map(|entry| entry.at)
    }

    /// Returns whether the transaction with this id was signed for a purpose, even if another one replaced it later.
    #[must_use]
    pub fn has_signed(&self, wanted: Purpose, id: &str) -> bool {
        self.has(|event| match event {
            Event::Signed { purpose, transactions, .. } => {
                *purpose == wanted && transactions.iter().any(|transaction| transaction.id.eq_ignore_ascii_case(id))
            }
            _ => false,
        })
    }

    /// Returns whether the order is paid by a gasless message to the service. The owner then broadcasts only approvals.
    #[must_use]
    pub fn is_gasless(&self) -> bool {
        self.signed(Purpose::Funding).is_some_and(|(_, gasless)| gasless.is_some())
    }

    /// Returns whether the payment may have been sent, from here or by a signer that can send by itself. An approval for a gasless payment
    /// does not count.
    #[must_use]
    pub fn may_be_paid(&self) -> bool {
        let is_sent = self.may_be_sent(Delivery::Gasless) || (!self.is_gasless() && self.may_be_sent(Delivery::Funding));
        is_sent || self.is_payment_at_signer()
    }

    /// Returns whether a signer that can send the payment by itself has got it, and what it did is not known.
    fn is_payment_at_signer(&self) -> bool {
        let last = self.journal.iter().rev().find(|entry| match &entry.event {
            Event::PaymentLeaving | Event::PaymentStayed => true,
            Event::Signed { purpose, .. } => *purpose == Purpose::Funding,
            _ => false,
        });
        last.is_some_and(|entry| entry.event == Event::PaymentLeaving)
    }

    /// Returns whether the newest signed payment was rejected whenever it was sent, by as many endpoints as must agree. A payment that was
    /// raised counts together with the older ones that spend the same coins, because any of them may be mined.
    #[must_use]
    pub fn payment_was_rejected(&self) -> bool {
        let newest = self.signed(Purpose::Funding).map(|(transactions, _)| transactions).unwrap_or_default();
        let is_same = |other: &[BroadcastTransaction]| {
            other.is_empty() || share_a_coin(newest, other) || other.iter().any(|other| newest.iter().any(|one| one.id == other.id))
        };
        let is_payment = |event: &Event| match event {
            Event::Signed { purpose: Purpose::Funding, transactions, .. } => is_same(transactions),
            _ => false,
        };
        let after = self.journal.iter().position(|entry| is_payment(&entry.event)).and_then(|signed| self.journal.get(signed..));
        let mut is_rejected = false;
        for entry in after.unwrap_or_default() {
            match &entry.event {
                Event::NotSent { what: Delivery::Funding, is_rejected: true, .. } => is_rejected = true,
                Event::NotSent { what: Delivery::Funding, .. }
                | Event::Sent { what: Delivery::Funding }
                | Event::OnChain { .. }
                | Event::PaymentLeaving => return false,
                _ => {}
            }
        }
        is_rejected && !self.is_gasless()
    }

    /// Returns whether the newest signed payment may have been sent, or an older one that spends the same coins: either may be mined. After
    /// a payment was signed again with other coins, it was not yet.
    #[must_use]
    pub fn newest_payment_may_be_sent(&self) -> bool {
        let mut newest: Option<&[BroadcastTransaction]> = None;
        let mut is_sent = false;
        for entry in self.journal.iter().rev() {
            match (&entry.event, newest) {
                (Event::Sending { what: Delivery::Funding, .. } | Event::Sent { what: Delivery::Funding }, None) => return true,
                (Event::Sending { what: Delivery::Funding, .. } | Event::Sent { what: Delivery::Funding }, Some(_)) => is_sent = true,
                (Event::Signed { purpose: Purpose::Funding, transactions, .. }, None) => newest = Some(transactions),
                (Event::Signed { purpose: Purpose::Funding, transactions, .. }, Some(newest)) if is_sent => {
                    return share_a_coin(newest, transactions);
                }
                _ => {}
            }
        }
        false
    }

    /// Returns every payment that was signed and may be on its way, the newest first, by its last transaction; `None` if one of them is a
    /// message, which never expires, or if a signer that can send by itself may have sent one that is not known here.
    #[must_use]
    pub fn payments(&self) -> Option<Vec<&BroadcastTransaction>> {
        if self.is_payment_at_signer() {
            return None;
        }
        let mut payments: Vec<&BroadcastTransaction> = Vec::new();
        for entry in self.journal.iter().rev() {
            if let Event::Signed { purpose: Purpose::Funding, transactions, gasless } = &entry.event {
                let last = transactions.last().filter(|_| gasless.is_none())?;
                if payments.iter().all(|payment| payment.id != last.id) {
                    payments.push(last);
                }
            }
        }
        Some(payments)
    }

    /// Returns how many payments were signed, one after the other, of those that the journal keeps.
    #[must_use]
    pub fn fundings(&self) -> usize {
        self.journal.iter().filter(|entry| matches!(entry.event, Event::Signed { purpose: Purpose::Funding, .. })).count()
    }

    /// Returns whether something was sent and accepted, or is on chain.
    #[must_use]
    pub fn was_sent(&self, wanted: Delivery) -> bool {
        self.has(|event| matches!(event, Event::Sent { what } | Event::OnChain { what } if *what == wanted))
    }

    /// Returns whether something may have been sent: its intent was written, whatever the outcome.
    #[must_use]
    pub fn may_be_sent(&self, wanted: Delivery) -> bool {
        self.was_sent(wanted) || self.has(|event| matches!(event, Event::Sending { what, .. } if *what == wanted))
    }

    /// Returns how the secret was last released, or may have been; `None` if it was not.
    #[must_use]
    pub fn secret_left(&self) -> Option<SecretRoute> {
        self.journal.iter().rev().find_map(|entry| match entry.event {
            Event::SecretLeaving { path } => Some(path),
            _ => None,
        })
    }

    /// Returns whether the secret may have left this process.
    #[must_use]
    pub fn secret_has_left(&self) -> bool {
        self.has_left_by(SecretRoute::Signer) || self.redemption_was_printed() || self.secret_was_sent()
    }

    /// Returns whether the owner was given a redemption to broadcast. Whether that happened is not known.
    #[must_use]
    pub fn redemption_was_printed(&self) -> bool {
        self.has(|event| matches!(event, Event::Printed { what: Delivery::Redemption }))
    }

    /// Returns whether the secret may be known to others than the owner's signer.
    #[must_use]
    pub fn secret_was_sent(&self) -> bool {
        // A signed redemption that was neither sent nor handed out is known only here, and to its signer.
        self.relayer_has_secret() || (self.has_left_by(SecretRoute::Own) && self.may_be_sent(Delivery::Redemption))
    }

    /// Returns whether the service's relayer has the secret, or may have it.
    #[must_use]
    pub fn relayer_has_secret(&self) -> bool {
        self.has_left_by(SecretRoute::Relayer)
    }

    fn has_left_by(&self, wanted: SecretRoute) -> bool {
        self.has(|event| matches!(event, Event::SecretLeaving { path } if *path == wanted))
    }

    /// Returns how the swap ended; `None` if it has not.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.journal.iter().rev().find_map(|entry| match entry.event {
            Event::Ended { outcome } => Some(outcome),
            _ => None,
        })
    }

    /// Returns the number of attempts to send something, and the time of the last one ([`UnixTime::EPOCH`] without an attempt).
    #[must_use]
    pub fn attempts(&self, wanted: Delivery) -> (u32, UnixTime) {
        self.journal.iter().fold((0, UnixTime::EPOCH), |(count, last), entry| match entry.event {
            Event::Sending { what, times } if what == wanted => (u32::saturating_add(count, times), entry.at),
            _ => (count, last),
        })
    }

    fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        self.journal.iter().any(|entry| is(&entry.event))
    }
}

/// Returns a shorter journal that answers every question as the given one does; `None` while it is short enough.
///
/// Repeated attempts become one line, which counts them. Of replies, reports and ends, the newest of each kind stay. Of signatures, the
/// newest two for a redemption and for a refund stay, and the newest 16 for a funding. So the length is bounded, whatever is tried again and
/// however often.
#[must_use]
pub(super) fn folded(journal: &[Entry]) -> Option<Vec<Entry>> {
    let signatures =
        |wanted: Purpose| journal.iter().filter(|entry| matches!(entry.event, Event::Signed { purpose, .. } if purpose == wanted)).count();
    let is_long =
        journal.len() > MAX_LINES || [Purpose::Redemption, Purpose::Refund].into_iter().any(|one| signatures(one) > KEPT_SIGNATURES);
    if !is_long {
        return None;
    }
    let mut attempts: HashMap<Delivery, u32> = HashMap::new();
    for entry in journal {
        if let Event::Sending { what, times } = entry.event {
            let count = attempts.entry(what).or_default();
            *count = count.saturating_add(times);
        }
    }
    // From the newest to the oldest: what a newer line says already is left out.
    let mut seen: HashMap<Kind, usize> = HashMap::new();
    let mut kept = Vec::new();
    for entry in journal.iter().rev() {
        let kind = Kind::of(&entry.event);
        let most = match kind {
            Kind::Signed(Purpose::Funding) => KEPT_FUNDINGS,
            Kind::Signed(_) => KEPT_SIGNATURES,
            _ => 1,
        };
        let count = seen.entry(kind).or_default();
        *count = count.saturating_add(1);
        if *count > most {
            continue;
        }
        let mut entry = entry.clone();
        if let Event::Sending { what, times } = &mut entry.event {
            *times = attempts.get(what).copied().unwrap_or(*times);
        }
        kept.push(entry);
    }
    kept.reverse();
    Some(kept)
}

/// Lines of the same kind say the same, except when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Signed(Purpose),
    Sending(Delivery),
    Sent(Delivery),
    NotSent(Delivery, bool),
    Printed(Delivery),
    OnChain(Delivery),
    PaymentLeaving,
    PaymentStayed,
    SecretLeaving(SecretRoute),
    Ended,
}

impl Kind {
    const fn of(event: &Event) -> Self {
        match event {
            Event::Signed { purpose, .. } => Self::Signed(*purpose),
            Event::Sending { what, .. } => Self::Sending(*what),
            Event::Sent { what } => Self::Sent(*what),
            Event::NotSent { what, is_rejected, .. } => Self::NotSent(*what, *is_rejected),
            Event::Printed { what } => Self::Printed(*what),
            Event::OnChain { what } => Self::OnChain(*what),
            Event::PaymentLeaving => Self::PaymentLeaving,
            Event::PaymentStayed => Self::PaymentStayed,
            Event::SecretLeaving { path } => Self::SecretLeaving(*path),
            Event::Ended { .. } => Self::Ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use countersign::{CreateOrder, RequestedLeg, Role, U256};

    use super::*;
    use crate::stored::CreatedOrder;

    const WHATS: [Delivery; 6] =
        [Delivery::Gasless, Delivery::Funding, Delivery::Redemption, Delivery::Secret, Delivery::Refund, Delivery::RefundRequest];
    const PURPOSES: [Purpose; 3] = [Purpose::Funding, Purpose::Redemption, Purpose::Refund];

    fn kept(journal: Vec<Entry>) -> OrderState {
        let leg = |asset: &str| RequestedLeg::new(asset.parse().unwrap(), "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", U256::from(5));
        let request = CreateOrder::new(leg("ethereum:usdc"), leg("base:usdc"));
        let response = format!(r#"{{"status":"Ok","result":{{"order_id":"{}"}}}}"#, "ab".repeat(32));
        OrderState { journal, ..OrderState::new(CreatedOrder::new(request, response).unwrap(), None) }
    }

    fn signed(purpose: Purpose, at: u64) -> Event {
        let transaction = BroadcastTransaction {
            chain: "base".to_owned(),
            role: Role::Initiate,
            id: at.to_string(),
            payload: String::new(),
            spends: Vec::new(),
        };
        Event::Signed { purpose, transactions: vec![transaction], gasless: (purpose == Purpose::Funding).then(|| "0x".to_owned()) }
    }

    /// Everything that is asked of a journal.
    fn answers(kept: &OrderState) -> String {
        let whats = WHATS.map(|what| (kept.was_sent(what), kept.may_be_sent(what), kept.attempts(what)));
        let signed = PURPOSES.map(|purpose| (format!("{:?}", kept.signed(purpose)), kept.signed_at(purpose)));
        let secret = (kept.secret_left(), kept.secret_has_left(), kept.secret_was_sent(), kept.relayer_has_secret());
        format!("{whats:?} {signed:?} {secret:?} {:?} {} {}", kept.outcome(), kept.is_gasless(), kept.may_be_paid())
    }

    /// Lines in a pseudorandom order, folded again and again while more are written.
    #[test]
    fn a_folded_journal_answers_as_the_long_one_does() {
        let (mut long, mut short) = (Vec::new(), Vec::new());
        let mut dice = 7_u64;
        for at in 0..5_000 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let roll = usize::try_from(dice >> 33).unwrap();
            let what = *WHATS.get(roll / 8 % 6).unwrap();
            let event = match roll % 8 {
                0..=2 => Event::sending(what),
                3 => Event::NotSent { what, error: "busy".to_owned(), is_rejected: false },
                4 => Event::Sent { what },
                5 if roll % 3 == 0 => Event::OnChain { what },
                5 if roll % 3 == 1 => {
                    if roll % 2 == 0 {
                        Event::PaymentLeaving
                    } else {
                        Event::PaymentStayed
                    }
                }
                6 => Event::SecretLeaving { path: *[SecretRoute::Own, SecretRoute::Relayer, SecretRoute::Signer].get(roll % 3).unwrap() },
                7 if at > 4_990 => Event::Ended { outcome: Outcome::Refunded },
                _ => signed(*PURPOSES.get(roll / 8 % 3).unwrap(), at),
            };
            let entry = Entry { at: UnixTime::from_secs(at), event };
            long.push(entry.clone());
            short.push(entry);
            if let Some(folded) = folded(&short) {
                short = folded;
            }
            assert!(short.len() <= MAX_LINES, "{}", short.len());
            if at % 97 == 0 || at > 4_980 {
                assert_eq!(answers(&kept(short.clone())), answers(&kept(long.clone())), "{at}");
            }
        }
        let signatures = short.iter().filter(|entry| matches!(entry.event, Event::Signed { purpose: Purpose::Redemption, .. })).count();
        assert!(signatures <= KEPT_SIGNATURES + 1, "{signatures}");
    }

    /// Both spend the same coin, so either of them may be mined, and the order is paid once.
    #[test]
    fn a_raised_payment_does_not_hide_the_one_that_it_replaces() {
        let paying = |id: &str, coin: &str| {
            let Event::Signed { purpose, mut transactions, .. } = signed(Purpose::Funding, 1) else { panic!("signed") };
            for transaction in &mut transactions {
                (transaction.id, transaction.spends) = (id.to_owned(), vec![coin.to_owned()]);
            }
            Event::Signed { purpose, transactions, gasless: None }
        };
        let (what, error) = (Delivery::Funding, String::new());
        let sent = [Event::sending(what), Event::Sent { what }];
        let rejected = [Event::sending(what), Event::NotSent { what, error, is_rejected: true }];
        let journal = |events: Vec<Event>| kept(events.into_iter().map(|event| Entry { at: UnixTime::from_secs(9), event }).collect());
        let first = |then: &[Event], raised: Event| [&[paying("a", "coin:0")][..], then, &[raised], &rejected].concat();
        // The first one was accepted. It may still be mined, although its replacement was rejected.
        let raised = journal(first(&sent, paying("b", "coin:0")));
        assert!(raised.has_signed(Purpose::Funding, "a") && raised.has_signed(Purpose::Funding, "b"));
        assert!(!raised.payment_was_rejected());
        assert!(journal(first(&rejected, paying("b", "coin:0"))).payment_was_rejected());
        // A payment with other coins counts alone.
        assert!(journal(first(&sent, paying("b", "other:0"))).payment_was_rejected());
        // However often the fee is raised, and whatever is folded, the payments of the last time are known.
        let mut entries = raised.journal;
        for round in 0..200_u64 {
            let event = if round % 20 == 0 { paying(&round.to_string(), "coin:0") } else { Event::sending(what) };
            entries.push(Entry { at: UnixTime::from_secs(9), event });
            if let Some(folded) = folded(&entries) {
                entries = folded;
            }
        }
        let raised = kept(entries);
        for id in ["a", "b", "0", "100", "180"] {
            assert!(raised.has_signed(Purpose::Funding, id), "{id}");
        }
    }

    #[test]
    fn a_payment_is_with_its_signer_until_a_line_says_what_became_of_it() {
        let is_paid = |events: &[Event]| {
            kept(events.iter().map(|event| Entry { at: UnixTime::from_secs(9), event: event.clone() }).collect()).may_be_paid()
        };
        let (leaving, stayed) = (Event::PaymentLeaving, Event::PaymentStayed);
        let sent = Event::sending(Delivery::Funding);
        assert!(is_paid(std::slice::from_ref(&leaving)));
        assert!(!is_paid(&[leaving.clone(), stayed.clone()]));
        assert!(is_paid(&[leaving.clone(), stayed.clone(), leaving.clone()]), "asked again");
        assert!(!is_paid(&[leaving.clone(), signed(Purpose::Funding, 1)]), "signed, and not sent yet");
        assert!(is_paid(&[leaving, sent, stayed]), "what was sent stays sent");
    }

    #[test]
    fn a_secret_that_the_relayer_has_stays_out_whatever_is_written_later() {
        let entry = |path| Entry { at: UnixTime::from_secs(9), event: Event::SecretLeaving { path } };
        let kept = kept(vec![entry(SecretRoute::Relayer), entry(SecretRoute::Own)]);
        assert!(kept.secret_has_left() && kept.secret_was_sent() && kept.relayer_has_secret());
    }

    #[test]
    fn a_line_of_several_attempts_is_read_back() {
        let entry = Entry { at: UnixTime::from_secs(9), event: Event::Sending { what: Delivery::Refund, times: 3 } };
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
        let once = serde_json::to_string(&Entry { at: UnixTime::from_secs(9), event: Event::sending(Delivery::Refund) }).unwrap();
        assert_eq!(once, r#"{"at":9,"event":"sending","what":"refund"}"#, "as before");
    }
}
