//! Each signer against a test double of its own library, which holds a published key. The expected bytes are those that the chains' own SDKs
//! made for the same order (`fixtures/accept`).

mod aws;
mod gcp;
mod keys;
mod orders;
mod remote;
mod solana;
mod turnkey;
