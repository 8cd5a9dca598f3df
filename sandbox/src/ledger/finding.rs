//! What orders are found by, without reading them: a list of a hundred thousand reads only the page that it shows.

use redb::{ReadableDatabase, ReadableTable};

use super::{BRIEFS, Ledger, LedgerError, WORDS, parsed};
use crate::order::{Order, Seen, Side, Status};

/// Whose address a word must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Anybody's, or a transaction.
    Any,
    /// The user's on the source chain.
    From,
    /// The user's on the destination chain.
    To,
}

impl Role {
    const fn bits(self) -> u64 {
        match self {
            Self::Any => 0,
            Self::From => 1,
            Self::To => 2,
        }
    }
}

/// Room for the roles beside an order's number.
const ROLES: u32 = 2;

/// What a filter sees of an order.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a> {
    pub(super) paid: bool,
    pub(super) refunded: bool,
    pub(super) completed: bool,
    pub(super) deadline: u64,
    /// The source chain.
    pub from: &'a str,
    /// The destination chain.
    pub to: &'a str,
}

impl<'a> Brief<'a> {
    /// Of an order.
    #[must_use]
    pub fn of(order: &'a Order) -> Self {
        Self {
            paid: order.source.initiated.is_some(),
            refunded: order.source.refunded.is_some(),
            completed: order.destination.redeemed.is_some(),
            deadline: order.deadline(),
            from: order.source.chain(),
            to: order.destination.chain(),
        }
    }

    /// The order's status at a time, in milliseconds.
    #[must_use]
    pub const fn status(&self, now: u64) -> Status {
        match (self.completed, self.refunded, self.paid) {
            (true, ..) => Status::Completed,
            (false, true, _) => Status::Refunded,
            (false, false, true) => Status::InProgress,
            (false, false, false) if now > self.deadline => Status::Expired,
            (false, false, false) => Status::NotInitiated,
        }
    }

    pub(super) const fn stored(&self) -> (bool, bool, bool, u64, &'a str, &'a str) {
        (self.paid, self.refunded, self.completed, self.deadline, self.from, self.to)
    }

    const fn read((paid, refunded, completed, deadline, from, to): (bool, bool, bool, u64, &'a str, &'a str)) -> Self {
        Self { paid, refunded, completed, deadline, from, to }
    }
}

/// A page of a list.
#[derive(Debug)]
pub struct Page {
    /// The orders that it shows.
    pub orders: Vec<Order>,
    /// How many the whole list has.
    pub total: usize,
}

impl Ledger {
    /// The numbers of orders that have an address or a transaction, the newest first.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn with_word(&self, word: &str, role: Role) -> Result<Vec<u64>, LedgerError> {
        let read = self.database.begin_read().map_err(LedgerError::new)?;
        let words = read.open_multimap_table(WORDS).map_err(LedgerError::new)?;
        let mut numbers = Vec::new();
        for value in words.get(word.to_lowercase().as_str()).map_err(LedgerError::new)?.rev() {
            let value = value.map_err(LedgerError::new)?.value();
            if value & role.bits() == role.bits() {
                numbers.push(value >> ROLES);
            }
        }
        Ok(numbers)
    }

    /// The orders that have all of the words and that a filter takes, the newest first: those from `first` on, `most` at most.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn find(&self, words: &[(&str, Role)], takes: impl Fn(&Brief<'_>) -> bool, first: usize, most: usize) -> Result<Page, LedgerError> {
        let last = first.saturating_add(most);
        let (mut total, mut shown) = (0_usize, Vec::new());
        let mut see = |number: u64, brief: Brief<'_>| {
            if takes(&brief) {
                if (first..last).contains(&total) {
                    shown.push(number);
                }
                total = total.saturating_add(1);
            }
        };
        let read = self.database.begin_read().map_err(LedgerError::new)?;
        let briefs = read.open_table(BRIEFS).map_err(LedgerError::new)?;
        if let Some(((word, role), others)) = words.split_first() {
            let mut numbers = self.with_word(word, *role)?;
            for (word, role) in others {
                let also: std::collections::BTreeSet<u64> = self.with_word(word, *role)?.into_iter().collect();
                numbers.retain(|number| also.contains(number));
            }
            for number in numbers {
                if let Some(brief) = briefs.get(number).map_err(LedgerError::new)? {
                    see(number, Brief::read(brief.value()));
                }
            }
        } else {
            for row in briefs.iter().map_err(LedgerError::new)?.rev() {
                let (number, brief) = row.map_err(LedgerError::new)?;
                see(number.value(), Brief::read(brief.value()));
            }
        }
        let orders: Result<Vec<_>, _> = shown.into_iter().filter_map(|number| parsed(&read, number).transpose()).collect();
        Ok(Page { orders: orders?, total })
    }

    /// The newest orders of all, and how many there are.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn newest(&self, first: usize, most: usize) -> Result<Page, LedgerError> {
        let read = self.database.begin_read().map_err(LedgerError::new)?;
        let count = self.count()?;
        let first = count.saturating_sub(u64::try_from(first).unwrap_or(u64::MAX));
        let after = first.saturating_sub(u64::try_from(most).unwrap_or(u64::MAX));
        let numbers = (after.saturating_add(1)..=first).rev();
        let orders: Result<Vec<_>, _> = numbers.filter_map(|number| parsed(&read, number).transpose()).collect();
        Ok(Page { orders: orders?, total: usize::try_from(count).unwrap_or(usize::MAX) })
    }
}

/// What lists find an order by: each word with the order's number and the word's roles.
pub(super) fn words_of(order: &Order) -> Vec<(String, u64)> {
    let mut words: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    let mut add = |word: &str, role: Role| {
        if !word.is_empty() {
            *words.entry(word.to_lowercase()).or_default() |= role.bits();
        }
    };
    let delegates = |side: &Side| [side.delegate.clone(), side.shown_delegate.clone()].into_iter().flatten().collect::<Vec<_>>();
    let (source, destination) = (&order.source, &order.destination);
    add(&source.owner, Role::From);
    add(&source.initiator, Role::From);
    add(&source.redeemer, Role::Any);
    add(&destination.owner, Role::To);
    add(&destination.initiator, Role::Any);
    add(&destination.redeemer, Role::To);
    delegates(source).iter().for_each(|word| add(word, Role::From));
    delegates(destination).iter().for_each(|word| add(word, Role::To));
    for side in [source, destination] {
        for Seen { transaction, .. } in [&side.initiated, &side.redeemed, &side.refunded].into_iter().flatten() {
            for transaction in transaction.split(',') {
                add(transaction.split_once(':').map_or(transaction, |(id, _)| id), Role::Any);
            }
        }
    }
    let number = order.number << ROLES;
    words.into_iter().map(|(word, roles)| (word, number | roles)).collect()
}
