//! Gives arbitrary endpoint answers to the reader of this family's HTLCs.
#![no_main]

use countersign_fuzz::chains;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| chains::tron(input));
