//! Any answers of endpoints to what is read of a chain beside its HTLCs.
#![no_main]

use countersign_fuzz::nodes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| nodes::ask(input));
