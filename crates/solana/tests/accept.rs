//! Cases whose artefacts were made by @solana/web3.js and, for messages of version 1, @solana/kit (`fixtures/README.md`): each must be accepted and give the same bytes.

use countersign_solana::Solana;
use countersign_testkit::{TestResult, accept};

#[test]
fn fixtures_give_their_artefacts() -> TestResult {
    accept::fixtures_give_their_artefacts::<Solana>(51)
}

#[test]
fn fixtures_of_the_audited_generation_give_their_artefacts() -> TestResult {
    accept::fixtures_of_a_generation_give_their_artefacts::<Solana>("audited_2025_11", 10)
}

#[test]
fn shared_vectors_give_their_artefacts() -> TestResult {
    accept::shared_vectors_give_their_artefacts::<Solana>()
}
