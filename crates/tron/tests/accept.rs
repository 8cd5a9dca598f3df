//! Cases whose artefacts were made by TronWeb (`fixtures/README.md`): each must be accepted and give the same bytes.

mod support;

use support::{TestResult, accept};

#[test]
fn fixtures_give_their_artefacts() -> TestResult {
    accept::fixtures_give_their_artefacts(52)
}

#[test]
fn shared_vectors_give_their_artefacts() -> TestResult {
    accept::shared_vectors_give_their_artefacts()
}
