//! Any bytes as JSON, and the salvage of a line's id.
#![no_main]

use countersign::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let _ = json::parse(text);
    let _ = json::salvage_id(text);
});
