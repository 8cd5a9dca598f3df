//! Cases whose artefacts were made by TronWeb (`fixtures/README.md`): each must be accepted and give the same bytes.

use countersign_testkit::{TestResult, accept};
use countersign_tron::Tron;

#[test]
fn fixtures_give_their_artefacts() -> TestResult {
    accept::fixtures_give_their_artefacts::<Tron>(56)
}

#[test]
fn shared_vectors_give_their_artefacts() -> TestResult {
    accept::shared_vectors_give_their_artefacts::<Tron>()
}
