//! Tests whole swaps with `countersign-swap`, the state machine behind the bindings. The host is minimal: `ureq` for
//! HTTP, and a map for documents.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use countersign::{Family, Key};
use countersign_sandbox::sandbox::{Config, Sandbox};
use countersign_sandbox::{accounts, trial};
use countersign_swap::{Ask, Event, HttpRequest, JsonSetup, Output, Purpose, Reply, Swaps, TransportErrorKind, UnixMillis, Zeroizing};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Longer than anything that the tests wait for.
const DEADLINE: Duration = Duration::from_secs(120);

fn now() -> UnixMillis {
    SystemTime::now().into()
}

/// A sandbox with its user's files.
struct Stage {
    sandbox: Sandbox,
    home: PathBuf,
    _runtime: Runtime,
}

impl Stage {
    fn open(name: &str, route: [&str; 2], lie: Option<&str>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let home = std::env::temp_dir().join(format!("countersign-machine-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        let chains = route.map(|asset| asset.split_once(':').unwrap().0.to_owned()).to_vec();
        let config = Config { directory: Some(home.clone()), chains, ..Config::default() };
        let sandbox = runtime.block_on(Sandbox::start(config)).unwrap();
        assert!(lie.is_none_or(|lie| sandbox.world.lies.set(lie, true)));
        Self { sandbox, home, _runtime: runtime }
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.home.join(name)).unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// The documents, which outlive the machine.
type Documents = BTreeMap<String, Vec<u8>>;

/// The machine's host.
struct Host<'s> {
    stage: &'s Stage,
    swaps: Swaps,
    documents: Documents,
    config: Value,
    /// Whether the signers only sign and never send.
    sign_only: bool,
    events: Vec<Event>,
    consents: usize,
    agent: ureq::Agent,
    /// The number of writes so far. The write number `fail_write` fails.
    writes: usize,
    fail_write: Option<usize>,
    /// Everything that was sent to the service.
    sent: String,
}

impl<'s> Host<'s> {
    fn open(stage: &'s Stage, documents: Documents) -> Self {
        Self::open_with(stage, documents, true)
    }

    fn open_with(stage: &'s Stage, documents: Documents, sign_only: bool) -> Self {
        let config: Value = serde_json::from_slice(&stage.read("config.json")).unwrap();
        let options = json!({
            "service": config["base_url"], "app_id": config["app_id"], "accounts": config["owners"], "poll_ms": 100, "relayer": true,
            "sign_only": sign_only,
        });
        let (options, registry, nodes) = (options.to_string(), stage.read("registry.json"), stage.read("nodes.json"));
        let mut setup = JsonSetup::new(options.as_bytes(), &registry, now());
        (setup.nodes, setup.place) = (&nodes, "a test");
        setup.documents = documents.iter().map(|(name, bytes)| (name.clone(), Zeroizing::new(bytes.clone()))).collect();
        let swaps = Swaps::open(setup.parse().unwrap()).unwrap();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(20))).build().into();
        let (events, sent) = (Vec::new(), String::new());
        Self { stage, swaps, documents, config, sign_only, events, consents: 0, agent, writes: 0, fail_write: None, sent }
    }

    fn send(&mut self, request: &HttpRequest) -> Reply {
        if request.url.starts_with(self.stage.sandbox.service()) {
            self.sent.push_str(&request.url);
            self.sent.push_str(&String::from_utf8_lossy(request.body.as_deref().map_or(&[], Vec::as_slice)));
        }
        let mut builder = ureq::http::Request::builder().method(request.method).uri(request.url.as_str());
        for (name, value) in &request.headers {
            builder = builder.header(*name, value.as_str());
        }
        let built = builder.body(request.body.as_deref().cloned().unwrap_or_default()).unwrap();
        match self.agent.run(built) {
            Ok(mut response) => {
                let headers =
                    response.headers().iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()));
                let (status, headers) = (response.status().as_u16(), headers.collect());
                match response.body_mut().read_to_vec() {
                    Ok(body) => Reply::Response { status, headers, body },
                    Err(error) => Reply::NoResponse { kind: TransportErrorKind::Interrupted, detail: error.to_string() },
                }
            }
            Err(error) => Reply::NoResponse { kind: TransportErrorKind::Connect, detail: error.to_string() },
        }
    }

    /// Returns the stored journal of the order, which is empty before its first line.
    fn journal(&self, order_id: &str) -> String {
        let is_journal = |name: &&String| name.contains("/journal") && name.contains(order_id);
        let lines = self.documents.keys().filter(is_journal).map(|name| String::from_utf8(self.documents[name].clone()).unwrap());
        lines.collect()
    }

    fn key(&self, chain: &str) -> Key {
        let file = self.config["key_files"].get(chain).unwrap_or(&self.config["key_file"]).as_str().unwrap();
        let text = String::from_utf8(self.stage.read(file)).unwrap();
        let registry = countersign::Registry::from_json(&self.stage.read("registry.json")).unwrap();
        let family: Family = registry.family(chain).unwrap();
        Key::parse(family, text.trim()).unwrap()
    }

    /// Handles one request of the machine. Returns whether there was one.
    fn turn(&mut self) -> bool {
        let Output { needs, events, .. } = self.swaps.poll(now());
        self.events.extend(events);
        let is_busy = !needs.is_empty();
        for need in needs {
            let reply = match need.ask {
                Ask::Http(request) => self.send(&request),
                Ask::Store(writes) => {
                    self.writes += 1;
                    if self.fail_write == Some(self.writes) {
                        Reply::Stored(Err("the disk is full".to_owned()))
                    } else {
                        for write in writes {
                            match write.bytes {
                                Some(bytes) => drop(self.documents.insert(write.name, bytes.to_vec())),
                                None => drop(self.documents.remove(&write.name)),
                            }
                        }
                        Reply::Stored(Ok(()))
                    }
                }
                Ask::Consent(consent) => {
                    assert!(!consent.summary.is_empty());
                    self.consents += 1;
                    Reply::Consent(true)
                }
                Ask::Sign(signing) => {
                    // The journal must be written before anyone else has the payment, or the secret in a redemption.
                    let journal = self.journal(&signing.order_id);
                    let line = match signing.purpose {
                        Purpose::Funding if !self.sign_only => Some(r#""event":"payment_leaving""#),
                        Purpose::Redemption => Some(r#""event":"secret_leaving","path":"signer""#),
                        _ => None,
                    };
                    assert!(line.is_none_or(|line| journal.contains(line)), "{:?}: {journal}", signing.purpose);
                    let mut unsigned = self.swaps.take_unsigned(need.id).unwrap();
                    unsigned.sign(&self.key(&signing.chain)).unwrap();
                    Reply::Signed(Box::new(unsigned))
                }
                other => panic!("{other:?}"),
            };
            self.swaps.reply(need.id, reply).unwrap();
        }
        is_busy
    }

    /// Continues until an event matches.
    fn until<T>(&mut self, what: &str, find: impl Fn(&Event) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = self.events.iter().find_map(&find) {
                return found;
            }
            assert!(start.elapsed() < DEADLINE, "waited in vain: {what}; {:#?}", self.events);
            if !self.turn() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn create(&mut self, route: [&str; 2]) {
        let amount = trial::amount(&self.stage.sandbox.world, route[0]).to_string();
        let chain = route[1].split_once(':').unwrap().0;
        let wish = json!({ "from": route[0], "to": route[1], "amount": amount, "receive_at": self.config["owners"][chain] });
        self.swaps.create_json(wish.to_string().as_bytes()).unwrap();
    }

    /// Continues until the order is no longer followed. Returns why.
    fn end(&mut self) -> (String, String) {
        self.until("the end", |event| match event {
            Event::Stopped { reason, message, .. } => Some((reason.clone(), message.clone())),
            Event::Failed { error, .. } => Some(("failed".to_owned(), error.to_string())),
            _ => None,
        })
    }
}

fn change(stage: &Stage, asset: &str, before: u128) -> i128 {
    i128::try_from(trial::holds(&stage.sandbox.world, accounts::USER, asset)).unwrap() - i128::try_from(before).unwrap()
}

const ROUTES: [[&str; 2]; 6] = [
    ["base:usdc", "litecoin:ltc"],
    ["litecoin:ltc", "base:usdc"],
    ["solana:sol", "tron:usdt"],
    ["tron:usdt", "solana:sol"],
    ["starknet:strk", "sui:sui"],
    ["sui:sui", "starknet:strk"],
];

#[test]
fn a_swap_of_each_family_completes() {
    for (index, route) in ROUTES.into_iter().enumerate() {
        let stage = Stage::open(&format!("completes-{index}"), route, None);
        let before = trial::holds(&stage.sandbox.world, accounts::USER, route[1]);
        let mut host = Host::open_with(&stage, Documents::new(), index % 2 == 0);
        host.create(route);
        let (reason, message) = host.end();
        assert_eq!(reason, "complete", "{route:?}: {message}\n{:#?}", host.events);
        assert_eq!(host.consents, 1);
        assert!(change(&stage, route[1], before) > 0, "{route:?}");
        assert!(host.swaps.phrase().unwrap().is_some());
    }
}

#[test]
fn a_swap_is_resumed_by_a_new_machine_after_any_write() {
    let route = ROUTES[0];
    for kept in 3..30 {
        let stage = Stage::open(&format!("resumes-{kept}"), route, None);
        let mut host = Host::open(&stage, Documents::new());
        host.create(route);
        // The machine is dropped right after this write.
        while host.writes < kept && !host.events.iter().any(|event| matches!(event, Event::Stopped { .. })) {
            host.turn();
        }
        let is_over = host.events.iter().any(|event| matches!(event, Event::Stopped { .. }));
        let documents = std::mem::take(&mut host.documents);
        let order = documents.keys().find_map(|name| name.strip_prefix("orders/")?.strip_suffix("/order.json").map(str::to_owned));
        let Some(order) = order else { continue };
        let mut again = Host::open(&stage, documents);
        again.swaps.follow(&order).unwrap();
        let (reason, message) = again.end();
        assert_eq!(reason, "complete", "after write {kept}: {message}\n{:#?}", again.events);
        if is_over {
            return;
        }
    }
    panic!("a swap has fewer writes");
}

#[test]
fn nothing_happens_that_the_host_could_not_store() {
    let route = ROUTES[0];
    let stage = Stage::open("stores", route, None);
    for fail_write in 1..6 {
        let before = trial::holds(&stage.sandbox.world, accounts::USER, route[0]);
        let mut host = Host::open(&stage, Documents::new());
        host.fail_write = Some(fail_write);
        host.create(route);
        let (_, message) = host.end();
        assert!(message.contains("the disk is full"), "write {fail_write}: {message}");
        assert_eq!(change(&stage, route[0], before), 0, "write {fail_write}");
    }
}

#[test]
fn a_declined_order_is_not_paid() {
    let route = ROUTES[0];
    let stage = Stage::open("declines", route, None);
    let before = trial::holds(&stage.sandbox.world, accounts::USER, route[0]);
    let mut host = Host::open(&stage, Documents::new());
    host.create(route);
    let start = Instant::now();
    while !host.events.iter().any(|event| matches!(event, Event::Stopped { .. })) {
        assert!(start.elapsed() < DEADLINE);
        let Output { needs, events, .. } = host.swaps.poll(now());
        host.events.extend(events);
        for need in needs {
            let reply = match need.ask {
                Ask::Http(request) => host.send(&request),
                Ask::Store(_) => Reply::Stored(Ok(())),
                Ask::Consent(_) => Reply::Consent(false),
                other => panic!("{other:?}"),
            };
            host.swaps.reply(need.id, reply).unwrap();
        }
    }
    let (reason, message) = host.end();
    assert_eq!((reason.as_str(), message.contains("the owner declined")), ("failed", true), "{message}");
    assert_eq!(change(&stage, route[0], before), 0);
}

#[test]
fn a_reply_of_another_kind_is_refused_and_one_too_many_is_ignored() {
    let stage = Stage::open("replies", ROUTES[0], None);
    let mut host = Host::open(&stage, Documents::new());
    assert!(host.swaps.create_json(br#"{"from":"base:usdc"}"#).is_err_and(|failure| &*failure.at == "/to"));
    host.create(ROUTES[0]);
    let need = host.swaps.poll(now()).needs.remove(0);
    assert!(matches!(need.ask, Ask::Http(_)));
    assert!(host.swaps.reply(need.id, Reply::Consent(true)).is_err_and(|failure| failure.is_usage()));
    assert!(host.swaps.take_unsigned(need.id).is_none());
    let none = || Reply::NoResponse { kind: TransportErrorKind::Connect, detail: "refused".to_owned() };
    assert_eq!(host.swaps.reply(need.id, none()), Ok(true));
    assert_eq!(host.swaps.reply(need.id, none()), Ok(false));
    assert_eq!(host.swaps.reply(u64::MAX, none()), Ok(false));
}

#[test]
fn the_secret_stays_here_if_the_solver_pays_nothing_final() {
    for lie in ["solver-pays-less", "solver-one-block", "solver-other-hash"] {
        let stage = Stage::open(lie, ROUTES[0], Some(lie));
        let mut host = Host::open(&stage, Documents::new());
        host.create(ROUTES[0]);
        host.until("waiting", |event| matches!(event, Event::Status { message, .. } if message.starts_with("paid;")).then_some(()));
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(3) {
            host.turn();
        }
        let secret = host.documents.iter().find(|(name, _)| name.ends_with("/secret")).map(|(_, bytes)| bytes.clone()).unwrap();
        assert!(!host.sent.contains(&String::from_utf8(secret).unwrap()), "{lie}");
    }
}
