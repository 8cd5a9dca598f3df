//! Descriptions of the pinned contracts: stored in the state directory, by any number of processes at the same time.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};

use crate::home::{Home, NOWHERE, said};
use crate::support::{Fixture, Reply, Seen, Server, Service};
use crate::terminal;
use crate::whole::Whole;
use serde_json::{Value, json};

/// A node of a chain on which every address is a contract with this code.
fn answer(seen: &Seen, chain_id: &str, code: &str) -> Reply {
    let result = |call: &Value| {
        let result = match call["method"].as_str().unwrap() {
            "eth_chainId" => json!(chain_id),
            "eth_getCode" => json!(code),
            "eth_call" => json!(format!("0x{}", "00".repeat(32))),
            "eth_getBlockByNumber" => {
                let now = chrono::Utc::now().timestamp();
                json!({"number": "0x10", "hash": format!("0x{}", "11".repeat(32)), "timestamp": format!("{now:#x}")})
            }
            _ => Value::Null,
        };
        json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
    };
    let reply = match serde_json::from_str(&seen.text()).unwrap() {
        Value::Array(calls) => Value::Array(calls.iter().map(result).collect()),
        call => result(&call),
    };
    Reply::json(200, reply.to_string())
}

const BASE: &str = "0x2105";

struct Pinning {
    home: Home,
    registry: String,
    nodes: String,
    code: Arc<Mutex<String>>,
    _node: Server,
}

impl Pinning {
    fn new(name: &str) -> Self {
        let home = Home::new(&format!("contracts-{name}"));
        let code = Arc::new(Mutex::new("0x6080".to_owned()));
        let served = Arc::clone(&code);
        let node = Server::start(move |seen| answer(seen, BASE, &served.lock().unwrap()));
        let registry = home.file("registry.json", &Fixture::load("evm-record-evm-v2").registry);
        let nodes = home.file("nodes.json", &json!({"base": [node.base]}).to_string());
        Self { home, registry, nodes, code, _node: node }
    }

    fn state(&self) -> String {
        self.home.path.join("state").to_str().unwrap().to_owned()
    }

    fn pin(&self, out: &str, more: &[&str]) -> Output {
        let (out, state) = (self.home.path.join(out).to_str().unwrap().to_owned(), self.state());
        let arguments = ["registry", "pin", "--from", &self.registry, "--out", &out, "--nodes", &self.nodes, "--state", &state];
        self.home.run(NOWHERE, &[&arguments[..], more].concat())
    }

    fn described(&self) -> Value {
        serde_json::from_slice(&fs::read(Path::new(&self.state()).join("contracts.json")).unwrap()).unwrap()
    }
}

fn names(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn ten_processes_describe_contracts_at_the_same_time() {
    let pinning = Pinning::new("parallel");
    for round in 0..3 {
        // Another code in each round, so that every round writes.
        *pinning.code.lock().unwrap() = format!("0x60{round}0");
        let outputs: Vec<Output> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..10).map(|_| scope.spawn(|| pinning.pin("pinned.json", &["--accept"]))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for output in outputs {
            assert_eq!(output.status.code(), Some(0), "{}", said(&output));
            assert!(!said(&output).contains("could not be stored"), "{}", said(&output));
        }
        assert!(!pinning.described().as_object().unwrap().is_empty());
    }
    // Nothing is next to the registry but what was there, and nothing temporary is left.
    assert_eq!(names(&pinning.home.path), ["nodes.json", "pinned.json", "registry.json", "state"]);
    assert_eq!(names(Path::new(&pinning.state())), [".host-lock", "contracts.json", "index", "lock", "orders", "version"]);
}

#[test]
fn a_changed_contract_is_noticed_whatever_the_registry_file_is_called() {
    let pinning = Pinning::new("changed");
    assert_eq!(pinning.pin("one.json", &[]).status.code(), Some(0));
    let path = Path::new(&pinning.state()).join("contracts.json");
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    // Nothing new: nothing is written.
    assert_eq!(pinning.pin("one.json", &[]).status.code(), Some(0));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
    let before = pinning.described();
    *pinning.code.lock().unwrap() = "0x6081".to_owned();
    for out in ["one.json", "two.json"] {
        let output = pinning.pin(out, &[]);
        assert!(output.status.code() == Some(2) && said(&output).contains("CHANGED"), "{}", said(&output));
    }
    assert_eq!(pinning.described(), before);
    assert_eq!(pinning.pin("one.json", &["--accept"]).status.code(), Some(0));
    assert_ne!(pinning.described(), before);
}

/// A deposit that any wallet can pay is shown without a question, so a changed contract ends it, whoever reads the output.
#[test]
fn a_deposit_is_not_shown_once_a_contract_has_changed() {
    let home = Home::new("contracts-deposit");
    let mut fixture = Fixture::load("bitcoin-delegate");
    fixture.order["created_at"] = json!(chrono::Utc::now().to_rfc3339());
    fixture.order["deadline"] = json!(chrono::Utc::now().timestamp() + 3_600);
    home.keep(fixture.order_id(), &fixture.request, &fixture.response, None);
    let service = Service::new(fixture.clone()).start();
    let code = Arc::new(Mutex::new("0x6080".to_owned()));
    let served = Arc::clone(&code);
    let node = Server::start(move |seen| answer(seen, "0x14a34", &served.lock().unwrap()));
    let (registry, node) = (home.file("registry.json", &fixture.registry), format!("base_sepolia={}", node.base));
    let resume = ["swap", "--resume", fixture.order_id(), "--registry", &registry, "--node", &node, "--service-secret"];
    let first = said(&home.run(&service.base, &resume));
    assert!(first.contains("seen for the first time") && !first.contains("CHANGED"), "{first}");
    *code.lock().unwrap() = "0x6081".to_owned();
    for yes in [&[][..], &["--yes"]] {
        let output = home.run(&service.base, &[&resume[..], yes].concat());
        let told = said(&output);
        assert!(output.status.code() == Some(1) && told.contains("contract_changed") && told.contains("CHANGED"), "{told}");
    }
}

/// With another code than the stored one, its secret would never leave: so it is not paid, whoever reads the output.
#[test]
fn an_order_whose_contract_has_changed_is_not_paid() {
    let whole = Whole::new("contract-changed");
    let server = whole.service.start();
    whole.create(&server.base);
    let code = Arc::new(Mutex::new("0x6080".to_owned()));
    let served = Arc::clone(&code);
    let node = Server::start(move |seen| answer(seen, "0x2105", &served.lock().unwrap()));
    let path = |name: &str| whole.home.path.join(name).to_str().unwrap().to_owned();
    let nodes = whole.home.file("nodes.json", &json!({"base": [node.base]}).to_string());
    let pin = ["registry", "pin", "--from", &path("registry.json"), "--out", &path("pinned.json"), "--nodes", &nodes];
    let pinned = whole.home.run(NOWHERE, &pin);
    assert_eq!(pinned.status.code(), Some(0), "{}", said(&pinned));
    *code.lock().unwrap() = "0x6081".to_owned();
    let resume: Vec<_> = whole.resume.iter().map(String::as_str).chain(["--nodes", &nodes]).collect();
    let output = whole.home.run(&server.base, &resume);
    let is_refused = |said: &str| said.contains("CHANGED") && said.contains("a pinned contract has changed");
    assert!(!output.status.success() && is_refused(&said(&output)), "{}", said(&output));
    let read: Vec<_> = resume.into_iter().filter(|argument| *argument != "--yes").collect();
    if let Some(screen) = terminal::answer(&whole.home, &server.base, &read, &[]) {
        assert!(screen.code != 0 && is_refused(&screen.said), "{}", screen.said);
    }
    assert!(server.seen().iter().all(|seen| seen.method != "PATCH"));
}

/// The lock of the store cannot be taken, as in a read-only directory.
#[test]
fn descriptions_that_cannot_be_stored_are_a_notice() {
    let pinning = Pinning::new("read-only");
    drop(countersign_store::Store::open(pinning.state()).unwrap());
    let lock = Path::new(&pinning.state()).join("lock");
    if lock.exists() {
        fs::remove_file(&lock).unwrap();
    }
    fs::create_dir(&lock).unwrap();
    let output = pinning.pin("pinned.json", &[]);
    assert!(output.status.code() == Some(0) && said(&output).contains("could not be stored"), "{}", said(&output));
    assert!(pinning.home.path.join("pinned.json").exists());
    // A state directory that cannot be opened at all.
    fs::remove_dir_all(pinning.state()).unwrap();
    fs::write(pinning.state(), "a file").unwrap();
    let output = pinning.pin("other.json", &[]);
    assert!(output.status.code() == Some(0) && said(&output).contains("could not be stored"), "{}", said(&output));
}

/// Descriptions that cannot be read could hide a change, so nothing is pinned over them.
#[test]
fn damaged_descriptions_are_an_error() {
    let pinning = Pinning::new("damaged");
    drop(countersign_store::Store::open(pinning.state()).unwrap());
    let path = Path::new(&pinning.state()).join("contracts.json");
    fs::write(&path, "{\"base").unwrap();
    let output = pinning.pin("pinned.json", &["--accept"]);
    assert!(output.status.code() == Some(2) && said(&output).contains("contracts.json"), "{}", said(&output));
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"base");
}
