//! Keeps a journal short, whatever is tried again and however often.

use std::collections::HashMap;

use super::{Delivery, Entry, Event, KEPT_FUNDINGS, Purpose, SecretRoute};

/// The number of lines from which a journal is folded before more is written to it. A step writes a few.
pub(super) const MAX_LINES: usize = 64;
/// The number of signatures for a redemption or a refund that are kept: the newest one, and the one that it replaced.
pub(super) const KEPT_SIGNATURES: usize = 2;

/// Returns a shorter journal that answers every question as the given one does; `None` while it is short enough.
///
/// Repeated attempts become one line, which counts them. Of replies, reports and ends, the newest of each kind stay. Of signatures, the
/// newest two for a redemption and for a refund stay, and the newest 16 for a funding. So the length is bounded, whatever is tried again and
/// however often.
#[must_use]
pub(in super::super) fn folded(journal: &[Entry]) -> Option<Vec<Entry>> {
    let signatures =
        |wanted: Purpose| journal.iter().filter(|entry| matches!(entry.event, Event::Signed { purpose, .. } if purpose == wanted)).count();
    let is_long =
        journal.len() > MAX_LINES || [Purpose::Redemption, Purpose::Refund].into_iter().any(|one| signatures(one) > KEPT_SIGNATURES);
    is_long.then(|| fold(journal))
}

/// Returns the shortest journal that answers every question as the given one does.
///
/// **Not covered by semantic versioning.** `proofs/model` keeps journals short with it.
#[doc(hidden)]
#[must_use]
pub fn fold(journal: &[Entry]) -> Vec<Entry> {
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
    kept
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
