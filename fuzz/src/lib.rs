//! The parts that the targets share: pinned assets and an order of each family, from the project's fixtures.

mod bytes;
pub mod chains;
mod lie;
pub mod nodes;
pub mod reader;

use std::sync::LazyLock;

use countersign::{CreateOrder, Family, Policy, Proposal, Registry, for_each_family, json};
use countersign_json::line::Case;

/// The registry of the fixtures.
pub static REGISTRY: LazyLock<Registry> =
    LazyLock::new(|| Registry::from_json(include_bytes!("../../fixtures/registry.json")).expect("the fixtures' registry is valid"));

/// Includes the file of each family in a folder of the fixtures.
macro_rules! files {
    ([$folder:literal] $($feature:literal $family:ident $module:ident,)*) => {
        &[$((Family::$family, include_str!(concat!("../../fixtures/", $folder, "/", stringify!($module), ".jsonl")))),*]
    };
}

const CASES: &[(Family, &str)] = for_each_family! { files! ["accept"] };
/// The recorded conversations with nodes.
const CONVERSATIONS: &[(Family, &str)] = for_each_family! { files! ["readers"] };

/// Returns the fixtures of a family, one on each line.
pub fn cases(family: Family) -> &'static str {
    CASES.iter().find(|(of, _)| *of == family).expect("every family has fixtures").1
}

/// Returns the first fixture of a family.
pub fn first_case(family: Family) -> &'static str {
    cases(family).lines().next().expect("every family has fixtures")
}

/// Returns the request of a family's first fixture.
pub fn request(family: Family) -> CreateOrder {
    let value = json::parse(first_case(family).as_bytes()).expect("fixtures are JSON");
    let case = Case::from_value(&value).expect("a fixture is a case");
    case.proposal().expect("a fixture has a valid request").request().clone()
}

/// Verifies arbitrary bytes as the response to a family's first fixture. An accepted response must also be
/// presentable and explainable.
pub fn verify_response(family: Family, response: &[u8]) {
    static POLICY: LazyLock<Policy> = LazyLock::new(Policy::default);
    let request = request(family);
    if let Ok(order) = countersign::verify(Proposal::new(&request, response), &REGISTRY, &POLICY) {
        assert!(!order.summary().lines().is_empty() && !order.coverage().is_empty());
        assert_eq!(order.family(), family);
    }
}
