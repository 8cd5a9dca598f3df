//! Parses arbitrary bytes as JSON, and extracts the id from a damaged line.
#![no_main]

use countersign::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let _ = json::parse(text);
    let _ = json::salvage_id(text);
});
