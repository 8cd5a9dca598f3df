//! What others decide while the driver takes a step: a list of choices that can be replayed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A question whose answer the driver does not control. The first alternative is the honest one, or nothing goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// What the lying endpoint shows of a leg, during one reading.
    Reading(Leg),
    /// What happens on a chain right before it is read.
    Before(Leg),
    /// What the service answers to the question about its record.
    Record,
    /// Whether a line of the journal is written.
    Write,
    /// What the owner replies to the request to sign a payment.
    Fund,
    /// Whether the redemption would pay, before the secret leaves.
    Payable,
    /// Whether the owner signs a redemption or a refund.
    Settle,
    /// What the lying endpoint does with a transaction.
    Send,
    /// What the service does with a signed payment, a secret, or a request to refund.
    Patch,
}

/// A leg of the swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leg {
    Source,
    Destination,
}

impl Leg {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Destination => "destination",
        }
    }
}

pub const BOTH: [Leg; 2] = [Leg::Source, Leg::Destination];

impl Question {
    /// The alternatives, in words that continue a sentence.
    pub const fn alternatives(self) -> &'static [&'static str] {
        match self {
            Self::Reading(_) => &[
                "is honest",
                "fails",
                "shows no HTLC, and that the payment's nonce is used",
                "shows the agreed HTLC, locked long ago",
                "shows the HTLC with its timelock over",
                "shows the HTLC redeemed, with the secret if anybody knows it",
                "shows the HTLC refunded",
                "is of another chain",
                "repeats what it showed two hours ago",
                "shows no order, at an absurd height",
            ],
            Self::Before(_) => &["nothing happens", "the solver takes its payment back", "the newest block is replaced"],
            Self::Record => &[
                "states what is on chain",
                "does not answer",
                "states another payout address",
                "states that the destination is funded",
                "states that the source is refunded",
                "states that both legs are redeemed",
            ],
            Self::Write => &["is written", "cannot be written", "is not written, because the process is killed", "is written, and the process is killed"],
            Self::Fund => &["signs", "does not sign now", "refuses"],
            Self::Payable => &["would pay", "would not pay"],
            Self::Settle => &["signs", "does not sign", "has no coins for the fee"],
            Self::Send => &["relays it", "keeps it", "rejects it", "fails"],
            Self::Patch => &["does it", "says that it does it", "answers with an error, and does it", "fails"],
        }
    }

    /// Whether an alternative is bad luck, of which there is a bounded amount, and not the adversary's.
    pub const fn is_nature(self) -> bool {
        matches!(self, Self::Write | Self::Fund | Self::Payable | Self::Settle)
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reading(Leg::Source) => "one endpoint of the source chain",
            Self::Reading(Leg::Destination) => "one endpoint of the destination chain",
            Self::Before(Leg::Source) => "before the source chain is read,",
            Self::Before(Leg::Destination) => "before the destination chain is read,",
            Self::Record => "the service",
            Self::Write => "a line of the journal",
            Self::Fund | Self::Settle => "the owner's wallet",
            Self::Payable => "by the wallet's check, the redemption",
            Self::Send => "one endpoint that gets a transaction",
            Self::Patch => "the service that is asked to act",
        })
    }
}

/// The choices of one step. Beyond the end of the list everything is honest.
#[derive(Debug, Clone, Default)]
pub struct Script {
    chosen: Vec<u8>,
    /// What was asked, how many alternatives there were, and which was taken.
    pub asked: Vec<(Question, u8, u8)>,
    /// How much bad luck is left.
    luck: u8,
}

impl Script {
    pub fn new(chosen: &[u8], luck: u8) -> Self {
        Self { chosen: chosen.to_vec(), asked: Vec::new(), luck }
    }

    /// Chooses among the first `count` alternatives.
    pub fn choose_of(&mut self, question: Question, count: usize) -> u8 {
        let count = if question.is_nature() && self.luck == 0 { 1 } else { u8::try_from(count).unwrap_or(u8::MAX) };
        let taken = self.chosen.get(self.asked.len()).copied().unwrap_or_default();
        assert!(taken < count.max(1), "{question:?} is another one than before");
        if taken > 0 && question.is_nature() {
            self.luck -= 1;
        }
        self.asked.push((question, count, taken));
        taken
    }

    pub fn choose(&mut self, question: Question) -> u8 {
        self.choose_of(question, question.alternatives().len())
    }

    /// How often something went wrong that is not the adversary's.
    pub fn bad_luck(&self) -> u8 {
        self.asked.iter().filter(|(question, _, taken)| question.is_nature() && *taken > 0).count() as u8
    }

    /// The choices that were not honest, in words.
    pub fn told(&self) -> Vec<String> {
        let told = |(question, _, taken): &(Question, u8, u8)| {
            (*taken > 0).then(|| format!("{question} {}", question.alternatives()[usize::from(*taken)]))
        };
        self.asked.iter().filter_map(told).collect()
    }
}

/// Runs a step with every list of choices of which at most `deviations` are not honest.
pub fn explore<R>(deviations: usize, mut run: impl FnMut(&[u8]) -> (R, Script)) -> Vec<(Vec<u8>, R)> {
    let mut results = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(prefix) = open.pop() {
        let (result, script) = run(&prefix);
        if prefix.iter().filter(|taken| **taken > 0).count() < deviations {
            for (place, (_, count, _)) in script.asked.iter().enumerate().skip(prefix.len()) {
                for taken in 1..*count {
                    let mut next = prefix.clone();
                    next.resize(place, 0);
                    next.push(taken);
                    open.push(next);
                }
            }
        }
        results.push((prefix, result));
    }
    results
}
