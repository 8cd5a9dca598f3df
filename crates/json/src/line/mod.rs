//! One line of `countersign batch`: a [`Case`] goes in, an [`Outcome`] comes out.

mod case;
mod outcome;

pub use case::Case;
pub use outcome::{Outcome, Request};
