//! Every command, for people and for programs: JSON alone with `--json`, nothing that forges a display, one exit code, the same labels.

use std::collections::BTreeSet;
use std::process::Output;

use crate::home::{Home, command_after, is_forged, machine, out, paste, said};
use crate::support::{Fixture, Reply, Server, Service, Step};
use crate::whole::Whole;
use countersign_client::Secret;
use serde_json::{Value, json};

/// Text that forges a display: it overrides the direction of what follows, rings, and starts a line.
const FORGED: &str = "a\u{202e}b\u{7}c\u{85}";

/// Each command with its arguments, the service that it talks to, and its exit code. `{name}` is the path of a file.
///
/// The service "lists" answers honestly, with forged texts wherever it may choose them; "fails" refuses everything with a forged text.
const RUNS: [(&str, &str, &str, i32); 109] = [
    ("init", "lists", "--registry {registry} --key-file {key} --owner base={owner} --replace", 0),
    ("init", "lists", "--registry {forged}", 2),
    ("init", "fails", "--registry {registry}", 2),
    ("explain", "lists", "--registry {registry} --case {case} --order {order} --bytes", 0),
    ("explain", "lists", "--registry {registry} --case {forged}", 1),
    ("explain", "lists", "--registry {registry} --request {request} --response {forged}", 1),
    ("explain", "lists", "--registry {registry} --case {case} --receipt {new-file}", 0),
    ("explain", "lists", "--registry {registry} --case {case} --receipt {registry}", 2),
    ("explain", "lists", "--registry {registry} --case {forged} --receipt {new-file}", 1),
    ("check-receipt", "lists", "--registry {registry} {receipt}", 0),
    ("check-receipt", "lists", "--registry {forged-registry} {receipt}", 1),
    ("check-receipt", "lists", "--registry {registry} {forged-receipt}", 1),
    ("check-receipt", "lists", "--registry {registry} {forged}", 2),
    ("prepare", "lists", "--registry {registry} --case {case} --hashes", 0),
    ("prepare", "lists", "--registry {registry} --case {case}", 0),
    ("prepare", "lists", "--registry {registry} --case {case} --wallet {forged}", 1),
    ("sign", "lists", "--registry {registry} --case {case}", 0),
    ("sign", "lists", "--registry {registry} --case {case} --key-file {forged}", 1),
    ("attach", "lists", "--registry {registry} --case {case} --signatures {forged}", 1),
    ("attach", "lists", "--registry {registry} --case {case} --signature {forged-text}=0x00", 1),
    ("match", "lists", "--registry {registry} --case {case} {signed}", 0),
    ("match", "lists", "--registry {registry} --case {case} {forged}", 1),
    ("match", "lists", "--registry {registry} --case {case} {new-file}", 2),
    ("match", "lists", "--registry {registry} --case {case} --id {forged-text} --node base={fails}", 1),
    ("recover", "lists", "--registry {registry} --order {order} --wallet {wallet} --key-file {key}", 0),
    ("recover", "lists", "--registry {registry} --order {forged} --wallet {wallet}", 2),
    ("batch", "lists", "--registry {registry}", 1),
    ("registry show", "lists", "{registry}", 0),
    ("registry show", "lists", "{forged-registry}", 0),
    ("registry show", "lists", "{forged}", 2),
    ("registry pin", "lists", "--from-service --out {new-registry}", 0),
    ("registry pin", "lists", "--from {forged-registry} --out {new-registry}", 0),
    ("registry pin", "fails", "--from-service --out {new-registry}", 3),
    ("registry diff", "lists", "{registry} {forged-registry}", 1),
    ("registry diff", "lists", "{registry} {registry}", 0),
    ("clear-signing", "lists", "--registry {registry} --out {new-directory}", 0),
    ("clear-signing", "lists", "--registry {registry} --out {key}", 2),
    ("clear-signing", "lists", "--registry {forged} --out {new-directory}", 2),
    ("quote", "lists", "base:eth arbitrum:eth 5 --registry {registry}", 0),
    ("quote", "fails", "base:eth arbitrum:eth 5", 3),
    ("quote", "fails", "{forged-text} arbitrum:eth 5", 2),
    ("order create", "lists", "--registry {registry} --request {request} --service-secret --state {new-state}", 0),
    ("order create", "fails", "--registry {registry} --request {request} --service-secret --state {new-state}", 3),
    ("order create", "lists", "--registry {registry} --request {forged} --service-secret", 2),
    ("order show", "lists", "{id} --registry {registry}", 0),
    ("order show", "fails", "{id} --registry {registry}", 3),
    ("order list", "lists", "--registry {registry}", 0),
    ("order list", "fails", "--registry {registry}", 3),
    ("order watch", "ended", "{id} --registry {registry} --poll 20 --state {new-state}", 0),
    ("order watch", "fails", "{id} --registry {registry} --poll 20 --state {new-state}", 3),
    ("orders", "lists", "--registry {registry}", 0),
    ("orders", "lists", "--registry {registry} --state {broken-state}", 2),
    ("backup", "lists", "{new-file} --password-file {key}", 0),
    ("backup", "lists", "{registry} --password-file {key}", 2),
    ("restore", "lists", "{registry} --password-file {key} --state {new-state}", 2),
    ("restore", "fails", "--phrase --phrase-file {words} --from-owner {owner} --state {new-state}", 3),
    ("restore", "lists", "--phrase --phrase-file {forged} --from-owner {owner} --state {new-state}", 2),
    ("bump", "lists", "{id} --registry {registry} --fee-rate 9", 2),
    ("bump", "fails", "{forged-text} --registry {registry}", 2),
    ("phrase", "lists", "--state {phrase-state}", 0),
    ("phrase", "lists", "--state {new-state}", 2),
    ("swap", "lists", "--registry {registry} --resume {id} --dry-run", 0),
    ("swap", "lists", "--registry {registry} --from base:eth --to arbitrum:eth --amount 1 --at-least 1 --from-owner {forged-text}", 2),
    ("swap", "fails", "--registry {registry} --resume {id} --yes", 3),
    ("refund", "lists", "{id} --registry {registry}", 1),
    ("refund", "fails", "{id} --registry {registry}", 3),
    ("refund", "fails", "{id} --registry {registry} --self --wallet {wallet} --key-file {key}", 0),
    ("refund", "fails", "{id} --registry {registry} --self --order {forged}", 2),
    ("refund", "lists", "--all --yes --registry {registry}", 0),
    ("refund", "lists", "--all --registry {registry}", 2),
    ("explain", "lists", "{id} --registry {registry}", 0),
    ("explain", "lists", "{forged-text} --registry {registry}", 2),
    ("redeem", "lists", "{id} --registry {registry}", 1),
    ("redeem", "lists", "{id} --registry {registry} --trust-the-service", 1),
    ("redeem", "fails", "{id} --registry {registry} --trust-the-service", 3),
    ("redeem", "fails", "{id} --registry {registry} --self --secret-file {forged}", 1),
    ("instant-refund", "fails", "{id} --registry {registry} --key-file {key}", 3),
    ("instant-refund", "lists", "{id} --registry {registry} --key-file {key} --funding {forged-text}", 2),
    ("node check", "lists", "--registry {registry} --node base={fails}", 3),
    ("node check", "lists", "--registry {registry} --nodes {forged}", 2),
    ("balance", "lists", "base:eth {owner} --registry {registry} --node base={fails}", 3),
    ("balance", "lists", "base:eth {forged-text} --registry {registry} --node base={fails}", 1),
    ("earnings", "lists", "--registry {registry}", 0),
    ("earnings", "fails", "", 3),
    ("claim", "lists", "--registry {registry}", 1),
    ("claim", "fails", "--registry {registry}", 3),
    ("chains", "lists", "", 0),
    ("chains", "fails", "", 3),
    ("assets", "lists", "", 0),
    ("assets", "fails", "", 3),
    ("liquidity", "lists", "", 0),
    ("liquidity", "fails", "", 3),
    ("fee", "lists", "", 0),
    ("fee", "fails", "", 3),
    ("volume", "lists", "", 0),
    ("volume", "fails", "", 3),
    ("schemas", "lists", "", 0),
    ("schemas", "lists", "evm:htlc", 0),
    ("schemas", "fails", "", 3),
    ("policy check", "lists", "base:eth arbitrum:eth", 0),
    ("policy check", "fails", "base:eth arbitrum:eth", 3),
    ("health", "lists", "", 0),
    ("health", "fails", "", 3),
    ("demo", "lists", "", 0),
    ("demo", "lists", "--full {forged-text}", 2),
    ("completions", "lists", "bash", 0),
    ("completions", "lists", "{forged-text}", 2),
    ("swap", "lists", "--{forged-text}", 2),
    ("order", "lists", "{forged-text}", 2),
];

/// Returns the commands that the program has, by its own help.
pub fn commands(home: &Home, prefix: &[&str]) -> BTreeSet<String> {
    let help = out(&home.run("", &[prefix, &["--help"]].concat()));
    let Some((_, rest)) = help.split_once("\nCommands:\n") else { return [prefix.join(" ")].into() };
    let names = rest.lines().take_while(|line| line.starts_with("  ")).filter_map(|line| line.strip_prefix("  "));
    // A line of another column continues.
    let names = names.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next());
    names.filter(|name| *name != "help").flat_map(|name| commands(home, &[prefix, &[name]].concat())).collect()
}

#[test]
fn every_command_is_in_the_table() {
    let home = Home::new("every-command");
    let ran: BTreeSet<_> = RUNS.iter().map(|(command, ..)| (*command).to_owned()).filter(|command| command != "order").collect();
    assert_eq!(commands(&home, &[]), ran);
}

/// A user with files of all kinds, an order, and three services.
struct World {
    home: Home,
    id: String,
    owner: String,
    lists: Server,
    fails: Server,
    ended: Server,
    runs: std::cell::Cell<usize>,
}

impl World {
    fn new(name: &str) -> Self {
        let home = Home::new(name);
        let secret = Secret::generate().unwrap();
        let mut fixture = Fixture::with_secret(&secret);
        let now = chrono::Utc::now();
        (fixture.order["created_at"], fixture.order["deadline"]) = (json!(now.to_rfc3339()), json!(now.timestamp() + 3_600));
        fixture.order["integrator"] = json!(FORGED);
        let (id, owner) = (fixture.order_id().to_owned(), fixture.request["source"]["owner"].as_str().unwrap().to_owned());
        let mut registry: Value = serde_json::from_str(&fixture.registry).unwrap();
        registry["solvers"][0]["id"] = json!(FORGED);
        registry["solvers"][0]["solver_id"] = json!(FORGED);
        let case = json!({"id": FORGED, "request": fixture.request, "response": fixture.response, "wallet": fixture.wallet});
        let mut wallet = fixture.wallet.clone();
        let key = wallet.as_object_mut().unwrap().remove("secret_key").unwrap();
        for (name, text) in [
            ("registry", fixture.registry.clone()),
            ("forged-registry", registry.to_string()),
            ("forged", json!({FORGED: FORGED}).to_string()),
            ("case", case.to_string()),
            ("request", fixture.request.to_string()),
            ("order", fixture.order.to_string()),
            ("wallet", wallet.to_string()),
            ("key", key.as_str().unwrap().to_owned()),
            ("words", format!("{}about", "abandon ".repeat(11))),
            ("phrase-state/unused", String::new()),
            (&format!("broken-state/orders/{id}/request.json"), json!({FORGED: FORGED}).to_string()),
        ] {
            let path = home.file(name, &text);
            #[cfg(unix)]
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        std::fs::remove_file(home.path.join("phrase-state/unused")).unwrap();
        let [registry_file, case_file, receipt] =
            ["registry", "case", "receipt"].map(|name| home.path.join(name).to_str().unwrap().to_owned());
        home.run("", &["explain", "--registry", &registry_file, "--case", &case_file, "--receipt", &receipt]);
        let signed = home.run("", &["sign", "--registry", &registry_file, "--case", &case_file, "--json"]);
        let signed: Value = serde_json::from_str(&out(&signed)).unwrap();
        home.file("signed", signed["artefacts"]["initiate"]["signed"].as_str().unwrap());
        let mut forged: Value = serde_json::from_slice(&std::fs::read(receipt).unwrap()).unwrap();
        (forged["program"], forged["verdict"]["summary"][0]) = (json!(FORGED), json!(FORGED));
        home.file("forged-receipt", &forged.to_string());
        countersign_store::Store::open(home.path.join("phrase-state")).unwrap().first_phrase().unwrap();
        home.keep(&id, &fixture.request, &fixture.response, Some(&secret));
        std::fs::write(home.kept(&id, "record.json"), fixture.order.to_string()).unwrap();
        let lists = lists(&fixture, &registry);
        let fails = Server::start(|_| Reply::json(400, json!({"status": "Error", "error": FORGED}).to_string()));
        let mut complete = fixture.at(Step::Redeemed);
        complete["destination_swap"]["secret"] = json!(*secret.to_hex());
        let ended = Server::start(move |_| Reply::ok(&complete));
        Self { home, id, owner, lists, fails, ended, runs: std::cell::Cell::new(0) }
    }

    /// Replaces the names in an argument.
    fn argument(&self, text: &str) -> String {
        let Some((before, name)) = text.split_once('{') else { return text.to_owned() };
        let (name, after) = name.split_once('}').unwrap();
        let value = match name {
            "id" => self.id.clone(),
            "owner" => self.owner.clone(),
            "fails" => self.fails.base.clone(),
            "forged-text" => FORGED.to_owned(),
            // A new path for each run.
            new if new.starts_with("new-") => self.home.path.join(format!("{new}-{}", self.runs.get())).to_str().unwrap().to_owned(),
            file => self.home.path.join(file).to_str().unwrap().to_owned(),
        };
        format!("{before}{value}{after}")
    }

    fn run(&self, command: &str, service: &str, arguments: &str, json: bool) -> Output {
        self.runs.set(self.runs.get() + 1);
        let base = match service {
            "lists" => &self.lists.base,
            "ended" => &self.ended.base,
            _ => &self.fails.base,
        };
        let words = command.split(' ').chain(arguments.split_whitespace()).map(|word| self.argument(word));
        let words: Vec<_> = words.chain(json.then(|| "--json".to_owned())).collect();
        let case = std::fs::read_to_string(self.home.path.join("case")).unwrap();
        let stdin = format!("{case}\n{}\n", json!({"id": FORGED, FORGED: FORGED}));
        self.home.run_with(base, &words.iter().map(String::as_str).collect::<Vec<_>>(), &[], &stdin)
    }
}

/// A service that answers honestly, with forged texts wherever it may choose them.
fn lists(fixture: &Fixture, registry: &Value) -> Server {
    let service = Service { moves: false, ..Service::new(fixture.clone()) };
    let earned = json!([{"total_earnings": "7", "total_earnings_usd": FORGED, "affiliate": FORGED, "asset": "ethereum:usdc", "token_address": FORGED, "claim_amount": "5",
        "claim_signature": FORGED, "claim_contract": FORGED}]);
    let liquidity = json!([{"solver_id": FORGED, "address": FORGED, "liquidity": [
        {"asset": "bitcoin:btc", "balance": FORGED, "virtual_balance": FORGED, "readable_balance": FORGED, "fiat_value": FORGED}]}]);
    let results = json!({
        "/v2/chains": registry["chains"], "/v2/assets": registry["assets"], "/v2/liquidity": liquidity, "/v2/fee": earned, "/v2/volume": FORGED,
        "/v2/schemas": [{"name": FORGED, "schema": []}], "/v2/schemas/evm:htlc": {"name": FORGED, "schema": [{FORGED: FORGED}]},
        "/v2/apps/earnings": earned, "/v2/health": FORGED, "/v2/policy": {"default": "open", "isolation_groups": [], "blacklist_pairs": [], "whitelist_overrides": [], FORGED: FORGED},
    });
    Server::start(move |seen| match &results[seen.path()] {
        Value::Null => service.answer(seen),
        result => Reply::ok(result),
    })
}

/// Returns the labels of a text: they end in the same column, each before its value.
fn labels(text: &str) -> BTreeSet<String> {
    let label = |line: &str| {
        let (label, _) = line.trim_start().split_once("  ")?;
        let column = line.len() - line.trim_start().len() + label.len();
        (column == 16).then(|| label.to_owned())
    };
    text.lines().filter_map(label).collect()
}

/// Labels whose members the batch contract fixes: of refusals, of summaries and of what is to be signed.
const FIXED: [&str; 21] = [
    "refused",
    "where",
    "why",
    "expected",
    "got",
    "order",
    "pay",
    "owner",
    "chain",
    "contract",
    "redeemer",
    "secret hash",
    "timelock",
    "get",
    "pay-out",
    "record",
    "gas",
    "message",
    "wallet",
    "to sign",
    "warning",
];

/// Returns whether a document has a member or a value with the name of a label.
fn has(document: &Value, label: &str) -> bool {
    match document {
        Value::Object(members) => members.iter().any(|(name, value)| name.replace('_', " ") == label || has(value, label)),
        Value::Array(rows) => rows.iter().any(|row| has(row, label)),
        // A code or the name of a chain is the label of its line.
        Value::String(text) => text == label,
        _ => false,
    }
}

#[test]
fn every_command_is_the_same_for_people_and_for_programs() {
    let world = World::new("commands");
    let mut wrong = Vec::new();
    for (command, service, arguments, code) in RUNS {
        let [people, programs] = [false, true].map(|json| world.run(command, service, arguments, json));
        let what = format!("{command} {arguments} ({service})");
        for output in [&people, &programs] {
            if output.status.code() != Some(code) {
                wrong.push(format!("{what}: {:?} instead of {code}: {}", output.status.code(), said(output)));
            }
            if is_forged(&said(output)) {
                wrong.push(format!("{what}: forged: {:?}", said(output)));
            }
        }
        // `batch` writes a document for each line.
        if command == "batch" {
            assert!(out(&programs).lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{what}");
            continue;
        }
        match machine(&programs) {
            Err(error) => wrong.push(format!("{what}: {error}")),
            // The documents of the service, of lists and of the batch contract have their own members.
            Ok((document, _)) if document.is_array() || (code == 0 && document["ok"].is_null()) => {}
            Ok((document, _)) if document["ok"] != (code == 0) => wrong.push(format!("{what}: {document}")),
            Ok((document, _)) => {
                let missing: Vec<_> =
                    labels(&out(&people)).into_iter().filter(|label| !FIXED.contains(&label.as_str()) && !has(&document, label)).collect();
                if !missing.is_empty() {
                    wrong.push(format!("{what}: {missing:?}: {document}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The service is gone: the line that it prints refunds without it.
#[cfg(unix)]
#[test]
fn the_command_that_refunds_without_the_service_can_be_pasted() {
    let whole = Whole::new("pasted refund");
    let server = whole.service.start();
    whole.create(&server.base);
    let paid = whole.run(&server.base, &[&whole.resume[..], &["--dry-run".to_owned()]].concat());
    assert!(paid.status.success(), "{}", said(&paid));
    let gone = Server::start(|_| Reply::json(503, "<html>busy</html>"));
    let file = |name: &str| whole.home.path.join(name).to_str().unwrap().to_owned();
    let (registry, key, state) = (file("registry.json"), file("key.txt"), file(".local/share/countersign"));
    let id = whole.service.fixture.order_id();
    let output = whole.home.run(
        &gone.base,
        &["refund", id, "--registry", &registry, "--key-file", &key, "--state", &state, "--node", "base=http://127.0.0.1:9"],
    );
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let line = command_after(&said(&output), "refund your payment with:");
    let pasted = paste(&whole.home, &gone.base, &line);
    assert_eq!(pasted.status.code(), Some(3), "it asks the node: {line}: {}", said(&pasted));
    let calls = gone.seen().len();
    let offline = line.replace(" --node base=http://127.0.0.1:9", "");
    let signed = paste(&whole.home, &gone.base, &format!("{offline} --wallet '{}'", file("wallet.json")));
    assert!(signed.status.success() && out(&signed).contains("0x02"), "{line}: {}", said(&signed));
    assert_eq!(gone.seen().len(), calls, "the service is not asked");
}

/// A payment waits until the policy's meaning is clear. A refund waits for nothing.
#[test]
fn a_limit_for_a_misspelt_name_stops_what_is_to_be_paid_and_nothing_else() {
    let whole = Whole::new("misspelt limit");
    let server = whole.service.start();
    whole.create(&server.base);
    let policy = whole.home.file("misspelt.json", r#"{"max_timelock_seconds": {"aribtrum": 7200}}"#);
    let with_policy = ["--policy".to_owned(), policy.clone()];
    let stopped = whole.run(&server.base, &[&whole.resume[..], &["--dry-run".to_owned()], &with_policy].concat());
    assert!(!stopped.status.success() && said(&stopped).contains("aribtrum"), "{}", said(&stopped));
    let paid = whole.run(&server.base, &[&whole.resume[..], &["--dry-run".to_owned()]].concat());
    assert!(paid.status.success(), "{}", said(&paid));
    // From now on the order counts as paid, by another wallet.
    let (code, told) = whole.home.run_until(
        &server.base,
        &[&whole.resume[..], &["--paid".to_owned()]].concat().iter().map(String::as_str).collect::<Vec<_>>(),
        "paying",
    );
    assert!(code.is_none(), "{told}");
    let (code, told) = whole.home.run_until(
        &server.base,
        &[&whole.resume[..], &with_policy].concat().iter().map(String::as_str).collect::<Vec<_>>(),
        "paying",
    );
    assert!(code.is_none(), "{told}");
    let file = |name: &str| whole.home.path.join(name).to_str().unwrap().to_owned();
    let id = whole.service.fixture.order_id();
    let (registry, key, state, wallet) = (file("registry.json"), file("key.txt"), file(".local/share/countersign"), file("wallet.json"));
    let refund =
        ["refund", "--self", id, "--registry", &registry, "--policy", &policy, "--key-file", &key, "--state", &state, "--wallet", &wallet];
    let refunded = whole.home.run(&server.base, &refund);
    assert!(refunded.status.success(), "{}", said(&refunded));
}

/// Ctrl-C while an order of another machine is watched.
#[cfg(unix)]
#[test]
fn the_command_that_watches_can_be_pasted() {
    let whole = Whole::new("pasted watch");
    let stated = whole.service.fixture.at(Step::Redeemed);
    let server = Server::start(move |_| Reply::ok(&stated));
    let registry = whole.home.path.join("registry.json").to_str().unwrap().to_owned();
    let arguments = ["order", "watch", whole.service.fixture.order_id(), "--registry", &registry, "--poll", "20"];
    let (code, told) = whole.home.watched(&server.base, &arguments, "look at your address", |child| {
        let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
    });
    assert_eq!(code, Some(130), "{told}");
    let mut complete = whole.service.fixture.at(Step::Redeemed);
    complete["destination_swap"]["secret"] = json!(*whole.secret.to_hex());
    let ended = Server::start(move |_| Reply::ok(&complete));
    let line = command_after(&told, "continue with:").replace(&server.base, &ended.base);
    let pasted = paste(&whole.home, &ended.base, &line);
    assert!(pasted.status.success() && out(&pasted).contains("redeemed"), "{line}: {}", said(&pasted));
}
