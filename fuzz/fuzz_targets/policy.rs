//! Parses arbitrary bytes as a policy file.
#![no_main]

use countersign::Policy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let _ = Policy::from_json(text);
});
