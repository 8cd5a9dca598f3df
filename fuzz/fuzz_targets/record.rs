//! Parses arbitrary bytes as an order record, alone and together with an honest response.
#![no_main]

use countersign::{Family, OrderRecord, Policy, Proposal, json};
use countersign_fuzz::{REGISTRY, first_case};
use countersign_json::line::Case;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|record: &[u8]| {
    let _ = OrderRecord::from_json(record);
    let line = json::parse(first_case(Family::Evm).as_bytes()).expect("fixtures are JSON");
    let case = Case::from_value(&line).expect("a fixture is a case");
    if let Ok(record) = json::parse(record) {
        let request = case.proposal().expect("a valid request").request().clone();
        let proposal = Proposal::from_parsed(request, case.response, Some(&record));
        let _ = countersign::verify(proposal.clone(), &REGISTRY, &Policy::default());
        let _ = countersign::verify_record(proposal, &REGISTRY, &Policy::default());
    }
});
