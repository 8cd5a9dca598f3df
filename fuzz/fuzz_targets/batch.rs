//! Processes arbitrary bytes as a batch line.
#![no_main]

use countersign::Policy;
use countersign_fuzz::REGISTRY;
use countersign_json::line::Outcome;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let outcome = Outcome::from_line(line, &REGISTRY, &Policy::default());
    if let Err(refusal) = &outcome.result {
        assert_ne!(refusal.code(), countersign::Code::Internal, "{refusal}");
    }
});
