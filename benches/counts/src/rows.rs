//! The rows of the table, by name.

use crate::driver;
use crate::families::{self, Counted};
use crate::floor::{orders, take_floor, take_whole};
use crate::steps::{self, Step};

/// A row of the table.
pub(crate) enum Row {
    /// Parse, verify and prepare of the most complete response, as in a wallet that embeds one family.
    Steps(&'static Counted, &'static Step),
    /// A step of the driver without news.
    Driver,
    /// Every order of a family, from its input line to its result line.
    Order(&'static Counted),
    /// The floor of the same orders.
    Floor(&'static Counted),
}

impl Row {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let steps = families::ALL.iter().flat_map(|family| family.steps.iter().map(move |step| Self::Steps(family, step)));
        let orders = families::ALL.iter().flat_map(|family| [Self::Order(family), Self::Floor(family)]);
        steps.chain([Self::Driver]).chain(orders)
    }

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Self::all().find(|row| row.name() == name).ok_or_else(|| format!("{name}: no such row"))
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Steps(_, step) => step.row.to_owned(),
            Self::Driver => "driver, step".to_owned(),
            Self::Order(of) => format!("{}, order", of.family.name()),
            Self::Floor(of) => format!("{}, floor", of.family.name()),
        }
    }

    /// Returns how often the row is run for one count.
    pub(crate) const fn times(&self) -> u32 {
        match self {
            Self::Steps(..) | Self::Driver => steps::TIMES,
            Self::Order(_) | Self::Floor(_) => 1,
        }
    }

    /// Returns the number of orders in each run.
    pub(crate) fn orders(&self) -> u64 {
        match self {
            Self::Steps(..) | Self::Driver => 1,
            Self::Order(family) | Self::Floor(family) => orders(family).len() as u64,
        }
    }

    pub(crate) fn run(&self, times: u32) -> Result<(), String> {
        match self {
            Self::Steps(family, step) => (step.take)(family.lines, step.case, times),
            Self::Driver => driver::run(times)?,
            Self::Order(family) => take_whole(&orders(family), times),
            Self::Floor(family) => take_floor(&orders(family), times),
        }
        Ok(())
    }
}
