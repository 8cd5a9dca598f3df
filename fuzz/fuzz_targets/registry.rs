//! Any bytes as a registry file. What is read is written as it is read.
#![no_main]

use countersign::Registry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Ok(registry) = Registry::from_json(text) {
        assert!(registry.diff(&registry).is_empty());
    }
});
