//! What is counted, by name.

use crate::floor::{orders, take_floor, take_whole};
use crate::steps::{self, STEPS};
use crate::table::AIMS;

/// A row of the table.
pub(crate) enum Row {
    /// Parse, verify and prepare of the fullest response, as a wallet that embeds one family does.
    Steps(&'static str),
    /// Every order of a family, from its line to the line of its result.
    Order(&'static str),
    /// The floor of the same orders.
    Floor(&'static str),
}

impl Row {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        STEPS.into_iter().map(Self::Steps).chain(AIMS.into_iter().flat_map(|(family, _)| [Self::Order(family), Self::Floor(family)]))
    }

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Self::all().find(|row| row.name() == name).ok_or_else(|| format!("{name}: no such row"))
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Steps(name) => (*name).to_owned(),
            Self::Order(family) => format!("{family}, order"),
            Self::Floor(family) => format!("{family}, floor"),
        }
    }

    /// Returns how often it is taken for one count.
    pub(crate) const fn times(&self) -> u32 {
        match self {
            Self::Steps(_) => steps::TIMES,
            Self::Order(_) | Self::Floor(_) => 1,
        }
    }

    /// Returns how many orders are taken each time.
    pub(crate) fn orders(&self) -> Result<u64, String> {
        match self {
            Self::Steps(_) => Ok(1),
            Self::Order(family) | Self::Floor(family) => Ok(orders(family)?.len() as u64),
        }
    }

    pub(crate) fn run(&self, times: u32) -> Result<(), String> {
        match self {
            Self::Steps(name) => steps::run(name, times)?,
            Self::Order(family) => take_whole(&orders(family)?, times),
            Self::Floor(family) => take_floor(&orders(family)?, times),
        }
        Ok(())
    }
}
