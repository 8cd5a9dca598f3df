//! The rows of the table, by name.

use crate::driver;
use crate::floor::{orders, take_floor, take_whole};
use crate::steps::{self, STEPS};
use crate::table::AIMS;

/// A row of the table.
pub(crate) enum Row {
    /// Parse, verify and prepare of the most complete response, as in a wallet that embeds one family.
    Steps(&'static str),
    /// A step of the driver without news.
    Driver,
    /// Every order of a family, from its input line to its result line.
    Order(&'static str),
    /// The floor of the same orders.
    Floor(&'static str),
}

impl Row {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        STEPS
            .into_iter()
            .map(Self::Steps)
            .chain([Self::Driver])
            .chain(AIMS.into_iter().flat_map(|(family, _)| [Self::Order(family), Self::Floor(family)]))
    }

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Self::all().find(|row| row.name() == name).ok_or_else(|| format!("{name}: no such row"))
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Steps(name) => (*name).to_owned(),
            Self::Driver => "driver, step".to_owned(),
            Self::Order(family) => format!("{family}, order"),
            Self::Floor(family) => format!("{family}, floor"),
        }
    }

    /// Returns how often the row is run for one count.
    pub(crate) const fn times(&self) -> u32 {
        match self {
            Self::Steps(_) | Self::Driver => steps::TIMES,
            Self::Order(_) | Self::Floor(_) => 1,
        }
    }

    /// Returns the number of orders in each run.
    pub(crate) fn orders(&self) -> Result<u64, String> {
        match self {
            Self::Steps(_) | Self::Driver => Ok(1),
            Self::Order(family) | Self::Floor(family) => Ok(orders(family)?.len() as u64),
        }
    }

    pub(crate) fn run(&self, times: u32) -> Result<(), String> {
        match self {
            Self::Steps(name) => steps::run(name, times)?,
            Self::Driver => driver::run(times)?,
            Self::Order(family) => take_whole(&orders(family)?, times),
            Self::Floor(family) => take_floor(&orders(family)?, times),
        }
        Ok(())
    }
}
