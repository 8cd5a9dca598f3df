//! Observability: what is reported to [`tracing`](https://docs.rs/tracing), for whoever runs swaps in production.
//!
//! Nothing is reported unless the host installs a subscriber. No report contains a secret, a key, the application id, the text of an
//! error of somebody else, or more of a URL than its host and, for the service, the path behind `/v2/`.
//!
//! | span | level | fields | around |
//! |---|---|---|---|
//! | `order` | info | `order` | one step of an order ([`Driver::advance`](crate::driver::Driver::advance), [`Driver::refund`](crate::driver::Driver::refund)), and [`Flow::instant_refund`](crate::Flow::instant_refund) |
//! | `chain` | debug | `chain` | a question to the endpoints of a chain |
//! | `endpoint` | debug | `endpoint`: the host | what one endpoint is asked, inside `chain` |
//!
//! | event | target | level | fields |
//! |---|---|---|---|
//! | `created`, `not created`, `nothing was signed`, `the store failed` | `countersign_client` | info, warn | `code` of the error, where it has one |
//! | `step` | `countersign_client` | debug | `status`, `acted`, `is_paid`, `trouble`: names as in the JSON of the program |
//! | `journal` | `countersign_client` | info | `event`: a line that the driver wrote, such as `secret_leaving`. Hosts and the program write lines of their own, which are not reported |
//! | `refused` | `countersign::refused` | warn | `code` and `blame` of a [`Refusal`](countersign::Refusal) |
//! | `response`, `failed` | `countersign_client` | debug | `method`, `host`, `path`, `attempt`, `status`, `code`, `again` |
//! | `answered`, `not answered` | `countersign_node` | debug | `endpoint`, `method`, `status`, `bytes`, `code` |
//! | `read`, `not read` | `countersign_transport` | debug | `code` of the fault |
//!
//! An order that stays refused is reported at every step, so count `refused` by `code` as a rate and not as a number of orders.
//! `examples/observability` sends the spans to OpenTelemetry and makes a counter of the refusals.
