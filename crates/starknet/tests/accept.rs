//! Cases whose artefacts were made by starknet.js (`fixtures/README.md`): each must be accepted and give the same bytes.

use countersign_starknet::Starknet;
use countersign_testkit::{TestResult, accept};

#[test]
fn fixtures_give_their_artefacts() -> TestResult {
    accept::fixtures_give_their_artefacts::<Starknet>(80)
}

#[test]
fn shared_vectors_give_their_artefacts() -> TestResult {
    accept::shared_vectors_give_their_artefacts::<Starknet>()
}
