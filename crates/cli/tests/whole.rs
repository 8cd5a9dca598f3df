//! A whole swap whose secret the wallet holds, and the service for it.

use std::process::Output;

use countersign_client::Secret;
use serde_json::{Value, json};

use crate::home::{Home, said};
use crate::support::{Fixture, Service};

/// Arguments that ask for a fixture's order; the service answers with that order, whatever was asked.
pub fn ask(fixture: &Fixture) -> Vec<String> {
    let (source, destination) = (&fixture.request["source"], &fixture.request["destination"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut arguments = vec!["--from".into(), text(&source["asset"]), "--amount".into(), text(&source["amount"])];
    for (flag, value) in [("--from-owner", &source["owner"]), ("--from-delegate", &source["delegate"])] {
        if value.is_string() {
            arguments.extend([flag.into(), text(value)]);
        }
    }
    arguments.extend(["--to".into(), text(&destination["asset"]), "--to-owner".into(), text(&destination["owner"])]);
    arguments
}

/// The arguments of a swap, and the service.
pub struct Whole {
    pub home: Home,
    pub secret: Secret,
    pub service: Service,
    pub begin: Vec<String>,
    pub resume: Vec<String>,
}

impl Whole {
    pub fn new(name: &str) -> Self {
        let home = Home::new(name);
        let secret = Secret::generate().unwrap();
        let mut fixture = Fixture::with_secret(&secret);
        // Now: a timelock that began in March would leave no time.
        let now = chrono::Utc::now().to_rfc3339();
        fixture.order["created_at"] = json!(now);
        fixture.order["deadline"] = json!(chrono::Utc::now().timestamp() + 3_600);
        let registry = home.file("registry.json", &fixture.registry);
        let mut wallet = fixture.wallet.clone();
        let key = wallet.as_object_mut().unwrap().remove("secret_key").unwrap();
        let (wallet, key) = (home.file("wallet.json", &wallet.to_string()), home.file("key.txt", key.as_str().unwrap()));
        let file = home.file("given.secret", &secret.to_hex());
        let rest = ["--registry", &registry, "--wallet", &wallet, "--key-file", &key, "--yes", "--poll", "20", "--trust-the-service"]
            .map(str::to_owned);
        let mut begin = vec!["swap".to_owned()];
        begin.extend(ask(&fixture));
        let offered = fixture.request["destination"]["amount"].as_str().unwrap().to_owned();
        begin.extend(["--secret-file".to_owned(), file, "--at-least".to_owned(), offered]);
        begin.extend(rest.clone());
        let mut resume = vec!["swap".to_owned(), "--resume".to_owned(), fixture.order_id().to_owned()];
        resume.extend(rest);
        Self { home, secret, service: Service::new(fixture), begin, resume }
    }

    /// Creates the order and signs nothing.
    pub fn create(&self, base: &str) {
        let mut arguments = vec!["order".to_owned(), "create".to_owned()];
        let least = |argument: &String| argument == "--at-least";
        let keep = self.begin.iter().position(least).unwrap();
        arguments.extend(self.begin[1..keep].iter().cloned());
        let receive = self.service.fixture.request["destination"]["amount"].as_str().unwrap().to_owned();
        let registry = self.home.path.join("registry.json").to_str().unwrap().to_owned();
        arguments.extend(["--receive".to_owned(), receive, "--registry".to_owned(), registry]);
        let output = self.run(base, &arguments);
        assert!(output.status.success(), "{}", said(&output));
    }

    pub fn run(&self, base: &str, arguments: &[String]) -> Output {
        self.home.run(base, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }
}
