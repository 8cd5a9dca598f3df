//! Drives one order. The input decides about its chains, service, replies, writes, restarts and clock. No
//! interleaving may break a rule of the driver's decisions or lose money that could be kept. The simulated world is
//! that of the client's tests.
#![no_main]
#![allow(dead_code, reason = "the tests use more of what they share")]

#[path = "../../crates/client/tests/enumerate/interleave.rs"]
mod interleave;
#[path = "../../crates/client/tests/enumerate/rules.rs"]
mod rules;
#[path = "../../crates/client/tests/enumerate/subject.rs"]
mod subject;
#[path = "../../crates/client/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    interleave::play(input);
});
