//! Signers of teams: the key lies in a service, and no program of the team ever has it. Each file is complete and can be copied.
//!
//! Every function takes an order that is prepared, and returns it signed. Whatever the service answers is proven to be the owner's signature
//! over exactly what was verified, before the order has it: a wrong answer is a refusal with a code, and the order stays unsigned.

pub mod aws;
pub mod gcp;
pub mod remote;
pub mod solana;
pub mod turnkey;
