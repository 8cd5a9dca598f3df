//! The readers alone, against a chain in memory that is honest or not.
mod bounds;
mod check;
mod fate;
mod htlc;
mod lies;
mod receiver;
mod send;
mod wallet;

use countersign_core::reader::{Answer, Fault, Known, Machine, Next, Observation, Reader, Request};
use countersign_core::{Finding, HtlcState, HtlcTerms};
use countersign_sui::reader::Htlc;
use countersign_testkit::chain::sui::{Ledger, terms};

/// The methods that a reader called in each round.
type Asked = Vec<Vec<String>>;

fn method(request: &Request) -> String {
    let Request::Post { path, .. } = request else { panic!("{request:?}") };
    path.rsplit('/').next().unwrap().to_owned()
}

/// Drives a reader, with the answers to a request of a round.
fn drive<M: Machine>(
    subject: &M::Subject,
    known: &Known,
    mut answer: impl FnMut(usize, &Request) -> Answer,
) -> (Result<Observation<M>, Fault>, Asked) {
    let mut reader = Reader::<M>::new(subject, known).unwrap();
    let mut asked = Asked::new();
    while let Next::Ask(requests) = reader.next() {
        let round = asked.len();
        asked.push(requests.iter().map(method).collect());
        let answers: Vec<_> = requests.iter().map(|request| answer(round, request)).collect();
        reader.answer(&answers).unwrap();
    }
    assert!(asked.len() <= M::MAX_ROUNDS);
    (reader.finish(), asked)
}

/// Reads an HTLC from a chain.
fn read(ledger: &Ledger, terms: &HtlcTerms) -> Result<Finding, Fault> {
    drive::<Htlc>(terms, &Known::default(), |_, request| ledger.answer(request)).0.map(Observation::into_output)
}

/// Reads the order of the testkit from a chain with a change.
fn changed(change: impl FnOnce(&mut Ledger)) -> Result<Finding, Fault> {
    let mut ledger = Ledger::funded();
    change(&mut ledger);
    read(&ledger, &terms())
}

fn unclear(found: Result<Finding, Fault>) -> String {
    match found.unwrap() {
        Finding { state: HtlcState::Unclear(why), origin: _, .. } => why,
        other => panic!("{other:?}"),
    }
}
