//! What people and programs are told about an order: refusals, warnings and the summary, each with its values.
//!
//! The JSON forms are those of `docs/spec/batch.md#errors`, `docs/spec/batch.md#warnings` and `docs/spec/batch.md#summary`.

pub mod amount;
mod code;
mod fee;
mod overview;
mod refusal;
mod summary;
mod terms;
pub mod text;
mod value;
mod warning;

pub use amount::{Amount, Timelock};
pub use code::{Code, ParseError};
pub use fee::NetworkFee;
pub(crate) use overview::Overview;
pub use refusal::{Blame, OrderStage, Origin, Refusal, Told};
pub use summary::{ByteCoverage, Line, Summary, Topic, format_line};
pub use terms::OrderTerms;
pub use value::TypedValue;
pub use warning::{Severity, Warning, Warnings, settled_by_approval};
