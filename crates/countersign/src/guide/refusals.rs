//! Refusals and warnings: what they contain, and who has to act.
//!
//! Every function that can refuse returns a [`Refusal`](crate::Refusal):
//!
//! | part | what it is |
//! |---|---|
//! | [`code`](crate::Refusal::code) | the stable [`Code`](crate::Code): branch on it, and show it in support requests |
//! | [`location`](crate::Refusal::location) | where: a JSON pointer into the document, with a byte range behind `#` inside a payload |
//! | [`expected`](crate::Refusal::expected), [`actual`](crate::Refusal::actual) | the two values that differ, where they can be shown |
//! | [`message`](crate::Refusal::message) | what is wrong, and what to do; untrusted text in it is escaped |
//! | [`origin`](crate::Refusal::origin) | who wrote the document in which the fault stands. It stays when an application puts a prefix in front of the location |
//! | [`blame`](crate::Refusal::blame) | who has to act: see below. Where the code does not decide it, the origin does |
//!
//! | blame | what happened | what a wallet does |
//! |---|---|---|
//! | [`Service`](crate::Blame::Service) | the service sent something that must not be signed: a response, a record, a quote, a list, the hashes of an instant refund | stop, sign nothing, report the service with the order id and the code |
//! | [`Caller`](crate::Blame::Caller) | request, registry, policy, wallet context, key or signature are wrong | correct the input; nothing was signed |
//! | [`Unsupported`](crate::Blame::Unsupported) | this build has no code for the family, or the asset is not pinned | enable the feature, pin the asset, or offer another route |
//! | [`Bug`](crate::Blame::Bug) | countersign made a mistake | report it to us; nothing was signed |
//!
//! The text of a refusal (its `Display`) has the code, the location, the message, and the expected and actual values. `message` is only
//! the reason and the remedy.
//!
//! ```
//! use countersign::{Blame, Refusal};
//!
//! /// Returns what the wallet shows.
//! fn explain(refusal: &Refusal) -> String {
//!     match refusal.blame() {
//!         Blame::Service => {
//!             format!("This order cannot be trusted and was not signed ({refusal}).")
//!         }
//!         Blame::Caller => format!("Check your input: {}.", refusal.message()),
//!         _ => refusal.to_string(),
//!     }
//! }
//!
//! let refusal = "{".parse::<countersign::Registry>().unwrap_err();
//! assert!(explain(&refusal).starts_with("Check your input"));
//! ```
//!
//! A warning does not stop an order. It has a code, a text and a [`Severity`](crate::Severity): show every one of them, and ask the
//! owner before signing where it is [`Danger`](crate::Severity::Danger). `docs/spec/batch.md#warnings` lists the codes of each severity.
//! [`Policy::refused_warnings`](crate::Policy) turns warnings into refusals.
//!
//! What an external signer or wallet returns is proven the same way: see [`external`](crate::guide::external).
//!
//! A wrong signature or key changes nothing: the unsigned order is as it was. [`Unsigned::finish`](crate::Unsigned::finish) gives the
//! order back while signatures are missing.
//!
//! All codes with their texts: `docs/codes.md`. Specification: `docs/spec/batch.md#errors`.
