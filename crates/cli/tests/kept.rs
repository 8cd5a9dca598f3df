//! Tests stored orders, and what their recovery needs.

use std::process::Output;

use countersign::evm::alloy_primitives::{hex, keccak256};
use countersign::{Code, Policy, Proposal, Registry, verify_record};
use countersign_client::Secret;
use serde_json::{Value, json};

use crate::home::{Home, NOWHERE, out, said};
use crate::support::Fixture;

/// Base58 of 32 bytes.
pub const BLOCKHASH: &str = "SysvarC1ock11111111111111111111111111111111";

/// An order that was created here, with its record, and perhaps its secret.
pub struct Kept {
    pub home: Home,
    pub fixture: Fixture,
    registry: String,
}

impl Kept {
    pub fn new(name: &str, fixture: Fixture, secret: Option<&Secret>) -> Self {
        let home = Home::new(&format!("recover-{name}"));
        let id = fixture.order_id();
        home.keep(id, &fixture.request, &fixture.response, secret);
        let kept = Self { registry: home.file("registry.json", &fixture.registry), home, fixture };
        kept.keep(&kept.fixture.order);
        kept
    }

    /// Keeps another record.
    pub fn keep(&self, order: &Value) {
        std::fs::write(self.home.kept(self.fixture.order_id(), "record.json"), order.to_string()).unwrap();
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.home.run(NOWHERE, &[arguments, &["--registry", &self.registry]].concat())
    }

    /// Runs the program with JSON output. Returns the exit code and the output.
    pub fn json(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let output = self.run(&[arguments, &["--json"]].concat());
        (output.status.code(), serde_json::from_str(&out(&output)).unwrap_or_else(|_| panic!("{}", said(&output))))
    }

    pub fn ok(&self, arguments: &[&str]) -> Value {
        let (code, shown) = self.json(arguments);
        assert_eq!((code, &shown["ok"]), (Some(0), &json!(true)), "{}: {shown}", self.fixture.id);
        shown
    }

    /// Code and location of a refusal.
    pub fn refused(&self, arguments: &[&str]) -> (String, String) {
        let (code, shown) = self.json(arguments);
        assert_eq!((code, &shown["ok"]), (Some(1), &json!(false)), "{}: {shown}", self.fixture.id);
        let text = |member: &str| shown["error"][member].as_str().unwrap_or_default().to_owned();
        (text("code"), text("at"))
    }

    pub fn file(&self, name: &str, content: &str) -> String {
        self.home.file(name, content)
    }
}

/// Corrects the swap ids of a changed record. Tests of the families show that they are computed as the chains do.
pub fn mended(mut fixture: Fixture) -> Fixture {
    let registry = Registry::from_json(fixture.registry.as_bytes()).unwrap();
    loop {
        let (request, response, order) = (fixture.create(), fixture.response.to_string(), fixture.order.to_string());
        let proposal = Proposal::new(&request, response.as_bytes()).with_record(order.as_bytes());
        let Err(refusal) = verify_record(proposal, &registry, &Policy::default()) else { return fixture };
        assert_eq!(refusal.code(), Code::RecordSwapId, "{}: {refusal}", fixture.id);
        let at = refusal.location().strip_prefix("/order").unwrap().to_owned();
        *fixture.order.pointer_mut(&at).unwrap() = json!(refusal.expected().unwrap().to_string());
    }
}

pub fn secret() -> Secret {
    Secret::parse(&derived("secret of the recoveries")).unwrap()
}

/// Derives a key as the generator of the fixtures does (fixtures/README.md).
pub fn derived(label: &str) -> String {
    hex::encode(keccak256(format!("countersign fixture: {label}")))
}

/// Returns a wallet context of a family with its sender, and the key.
pub fn wallet(family: &str, sender: Option<&str>) -> (Value, String) {
    let fixture = Fixture::all(family).into_iter().find(|fixture| fixture.wallet["secret_key"].is_string()).unwrap();
    let mut wallet = fixture.wallet;
    let key = wallet.as_object_mut().unwrap().remove("secret_key").unwrap().as_str().unwrap().to_owned();
    wallet.as_object_mut().unwrap().remove("chain_id");
    if family == "solana" {
        wallet["recent_blockhash"] = json!(BLOCKHASH);
    }
    wallet["sender"] = sender.map_or_else(|| fixture.request["source"]["owner"].clone(), |sender| json!(sender));
    (wallet, key)
}
