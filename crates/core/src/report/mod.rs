//! What people and programs are told about an order: refusals, warnings and the summary, each with its values.

pub mod amount;
mod code;
mod overview;
mod refusal;
mod summary;
mod terms;
pub mod text;
mod value;
mod warning;

pub use amount::{Amount, Timelock};
pub use code::{Code, ParseError};
pub(crate) use overview::Overview;
pub use refusal::{Blame, Refusal};
pub use summary::{ByteCoverage, Line, Summary, Topic};
pub use terms::OrderTerms;
pub use value::TypedValue;
pub use warning::{Severity, Warning, Warnings, settled_by_approval};
