//! Warm-up.
use insta as _; use jsonschema as _; use proptest as _; use hex as _;
#[test] fn x() {}
