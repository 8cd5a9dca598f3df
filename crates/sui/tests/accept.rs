//! Cases whose artefacts were made by Mysten's JavaScript SDK (`fixtures/README.md`): each must be accepted and give the
//! same bytes.

use countersign_sui::Sui;
use countersign_testkit::{TestResult, accept};

#[test]
fn fixtures_give_their_artefacts() -> TestResult {
    accept::fixtures_give_their_artefacts::<Sui>(65)
}

#[test]
fn shared_vectors_give_their_artefacts() -> TestResult {
    accept::shared_vectors_give_their_artefacts::<Sui>()
}
