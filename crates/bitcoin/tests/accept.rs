//! Cases whose artefacts were made by bitcoinjs-lib (`fixtures/README.md`): each must be accepted and give the
//! same bytes.

use countersign_bitcoin::Bitcoin;
use countersign_testkit::{TestResult, accept};

#[test]
fn fixtures_give_their_artefacts() -> TestResult {
    accept::fixtures_give_their_artefacts::<Bitcoin>(71)
}

#[test]
fn shared_vectors_give_their_artefacts() -> TestResult {
    accept::shared_vectors_give_their_artefacts::<Bitcoin>()
}
