//! Parses arbitrary text as a signature, a key or the name of a request.
#![no_main]

use countersign::{RequestId, bitcoin, evm, solana, starknet, sui};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = text.parse::<RequestId>();
    let _ = text.parse::<evm::ExternalSignature>();
    let _ = text.parse::<evm::Key>();
    let _ = text.parse::<starknet::ExternalSignature>();
    let _ = text.parse::<starknet::Key>();
    let _ = text.parse::<solana::ExternalSignature>();
    let _ = text.parse::<solana::Key>();
    let _ = text.parse::<sui::ExternalSignature>();
    let _ = text.parse::<sui::Key>();
    let _ = text.parse::<bitcoin::ExternalSignature>();
    let _ = text.parse::<bitcoin::Key>();
});
