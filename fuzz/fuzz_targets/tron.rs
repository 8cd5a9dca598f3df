//! Verifies arbitrary bytes as the response to an order of this family.
#![no_main]

use countersign::Family;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|response: &[u8]| countersign_fuzz::verify_response(Family::Tron, response));
