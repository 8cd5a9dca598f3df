//! Parses arbitrary bytes as a registry file. A parsed registry must not change when it is written and parsed again.
#![no_main]

use countersign::Registry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Ok(registry) = Registry::from_json(text) {
        assert!(registry.diff(&registry).is_empty());
    }
});
