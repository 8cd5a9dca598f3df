//! The choices of others during a step of the driver, as a list that can be replayed.

use serde::{Deserialize, Serialize};

/// A question that the driver cannot answer itself. In the first alternative, everyone is honest and nothing goes
/// wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    Reading(Leg),
    Before(Leg),
    Record,
    Write,
    Fund,
    Payable,
    Settle,
    Price,
    Meet,
    Send,
    Patch,
}

/// A side of the swap.
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
    /// Returns who decides, and the alternatives, as parts of a sentence.
    const fn words(self) -> &'static str {
        match self {
            Self::Reading(_) => {
                "one endpoint of the {} chain/is honest/fails/shows no HTLC, and that the payment's nonce is used/shows the agreed HTLC, locked \
                 long ago/shows the HTLC with its timelock over/shows the HTLC redeemed, with the secret if anybody knows it/shows the HTLC \
                 refunded/is of another chain/repeats what it showed two hours ago/shows no order, at an absurd height"
            }
            Self::Before(_) => {
                "before the {} chain is read,/nothing happens/the solver takes its payment back/the newest block is replaced"
            }
            Self::Record => {
                "the service/states what is on chain/does not answer/states another payout address/states that the destination is funded/states \
                 that the source is refunded/states that both legs are redeemed/states the record of another order"
            }
            Self::Write => {
                "a line of the journal/is written/cannot be written/is not written, because the process is killed/is written, and the process is \
                 killed"
            }
            Self::Fund => "the owner's wallet/signs/does not sign now/refuses",
            Self::Payable => "by the wallet's check, the redemption/would pay/would not pay",
            Self::Settle => {
                "the owner's wallet/signs/does not sign/has no coins for the fee/signs after a long time/does not sign, after a long time"
            }
            Self::Price => {
                "one endpoint that is asked for prices/is honest/shows a base fee above the others, and no tip/shows prices above what the owner \
                 has/shows pending transactions"
            }
            Self::Meet => "another process/does nothing/takes a step/takes two steps",
            Self::Send => "one endpoint that gets a transaction/relays it/keeps it/rejects it/fails",
            Self::Patch => "the service that is asked to act/does it/says that it does it/answers with an error, and does it/fails",
        }
    }

    /// Returns the number of alternatives.
    pub fn count(self) -> usize {
        self.words().split('/').count() - 1
    }

    pub fn told(self, taken: u8) -> String {
        let leg = if let Self::Reading(leg) | Self::Before(leg) = self { leg.name() } else { "" };
        let words: Vec<_> = self.words().split('/').collect();
        format!("{} {}", words[0].replace("{}", leg), words[usize::from(taken) + 1])
    }

    /// Returns whether an alternative is bad luck, which is bounded and not up to the adversary.
    pub const fn is_nature(self) -> bool {
        matches!(self, Self::Write | Self::Fund | Self::Payable | Self::Settle | Self::Meet)
    }
}

/// The choices of one step. Every question beyond the end of the list gets the honest answer.
#[derive(Debug, Clone, Default)]
pub struct Script {
    chosen: Vec<u8>,
    /// The questions asked, each with the number of alternatives and the one chosen.
    pub asked: Vec<(Question, u8, u8)>,
    /// How much bad luck may still occur.
    luck: u8,
    /// Whether nobody lies.
    is_honest: bool,
    /// What the lying endpoint shows when a transaction is priced, beyond the end of the list.
    habit: u8,
}

impl Script {
    pub fn new(chosen: &[u8], luck: u8) -> Self {
        Self { chosen: chosen.to_vec(), asked: Vec::new(), luck, is_honest: false, habit: 0 }
    }

    /// Makes everyone honest if `is_honest`.
    pub const fn without_lies(mut self, is_honest: bool) -> Self {
        self.is_honest = is_honest;
        self
    }

    /// Makes the lying endpoint show the same prices every time.
    pub const fn with_habit(mut self, habit: u8) -> Self {
        self.habit = habit;
        self
    }

    /// Chooses one of the first `count` alternatives.
    pub fn choose_of(&mut self, question: Question, count: usize) -> u8 {
        let is_usual = if question.is_nature() { self.luck == 0 } else { self.is_honest };
        let count = if is_usual { 1 } else { u8::try_from(count).unwrap_or(u8::MAX) };
        let usual = if question == Question::Price { self.habit } else { 0 };
        let taken = self.chosen.get(self.asked.len()).copied().unwrap_or(usual);
        assert!(taken < count.max(1) || taken == usual, "{question:?} is another one than before");
        if taken > 0 && question.is_nature() {
            self.luck -= 1;
        }
        self.asked.push((question, count, taken));
        taken
    }

    pub fn choose(&mut self, question: Question) -> u8 {
        self.choose_of(question, question.count())
    }

    /// Returns how often something went wrong by bad luck.
    pub fn bad_luck(&self) -> u8 {
        self.asked.iter().filter(|(question, _, taken)| question.is_nature() && *taken > 0).count() as u8
    }

    /// Returns descriptions of the dishonest choices.
    pub fn told(&self) -> Vec<String> {
        self.asked.iter().filter(|(_, _, taken)| *taken > 0).map(|(question, _, taken)| question.told(*taken)).collect()
    }
}

/// Runs a function with every list of choices that has at most `deviations` dishonest ones. The honest list comes
/// first.
pub fn explore<R>(deviations: u8, mut run: impl FnMut(&[u8]) -> (R, Script)) -> Vec<(Vec<u8>, R)> {
    let mut results = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(prefix) = open.pop() {
        let (result, script) = run(&prefix);
        if deviations_of(&prefix) < deviations {
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

/// Returns the number of dishonest choices.
pub fn deviations_of(choices: &[u8]) -> u8 {
    choices.iter().map(|taken| u8::from(*taken > 0)).sum()
}
