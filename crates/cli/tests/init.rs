//! `countersign init`: checks what it is given, and writes the configuration file that every other command reads.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::home::{Home, out, said};
use crate::support::{Fixture, Reply, Seen, Server};
#[cfg(unix)]
use crate::terminal::answer;
use serde_json::{Value, json};

/// A service that is healthy and lists what the registry of the fixtures contains.
fn service() -> Server {
    let pinned: Value = serde_json::from_str(&crate::support::registry_text()).unwrap();
    Server::start(move |seen| match seen.path() {
        "/v2/health" => Reply::ok(&json!("Online")),
        "/v2/chains" => Reply::ok(&pinned["chains"]),
        "/v2/assets" => Reply::ok(&pinned["assets"]),
        "/v2/liquidity" => Reply::ok(&pinned["solvers"]),
        _ => Reply::json(404, r#"{"status":"Error","error":"not found"}"#),
    })
}

/// A node of an EVM chain with this id.
fn node(chain_id: &'static str) -> Server {
    Server::start(move |seen: &Seen| {
        let result = |call: &Value| {
            let result = match call["method"].as_str().unwrap() {
                "eth_chainId" => json!(chain_id),
                "eth_call" if call["params"][0]["data"] == "0x313ce567" => crate::nodes::decimals(call),
                "eth_call" => json!("0x"),
                "eth_getCode" => json!("0x"),
                "eth_getBalance" => json!("0xde0b6b3a7640000"),
                "eth_getTransactionCount" => json!("0x1"),
                "eth_gasPrice" => json!("0x3b9aca00"),
                "eth_feeHistory" => json!({"baseFeePerGas": ["0x1", "0x1"], "reward": [["0x1", "0x1", "0x1"]]}),
                _ => json!({"number": "0x10", "hash": format!("0x{}", "11".repeat(32)),
                    "timestamp": format!("{:#x}", chrono::Utc::now().timestamp() - 3)}),
            };
            json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
        };
        let reply = match serde_json::from_str(&seen.text()).unwrap() {
            Value::Array(calls) => Value::Array(calls.iter().map(result).collect()),
            call => result(&call),
        };
        Reply::json(200, reply.to_string())
    })
}

struct User {
    home: Home,
    registry: String,
    key: String,
    /// The address of the key, on EVM chains.
    owner: String,
}

impl User {
    fn new(name: &str) -> Self {
        let home = Home::new(&format!("init-{name}"));
        let fixture = Fixture::load("evm-record-evm-v2");
        let registry = home.file("registry.json", &fixture.registry);
        let key = home.file("key.txt", fixture.wallet["secret_key"].as_str().unwrap());
        mode(&key, 0o600);
        let owner = fixture.request["source"]["owner"].as_str().unwrap().to_owned();
        Self { home, registry, key, owner }
    }

    fn path(&self) -> PathBuf {
        self.home.path.join(".config/countersign/config.json")
    }

    /// Runs the program without a service in the environment.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.args(arguments).env_clear().env("HOME", &self.home.path).current_dir(&self.home.path);
        command.stdin(Stdio::null()).output().unwrap()
    }
}

fn mode(path: &str, mode: u32) {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn what_is_written_is_what_other_commands_read() {
    let (user, service, base) = (User::new("writes"), service(), node("0x2105"));
    user.home.file("nodes.json", &json!({"base": [base.base]}).to_string());
    let owner = user.owner.as_str();
    // Relative paths are those of this directory.
    let arguments = [
        "init",
        "--base-url",
        &service.base,
        "--registry",
        "registry.json",
        "--nodes",
        "nodes.json",
        "--key-file",
        "key.txt",
        "--owner",
        &format!("base={owner}"),
        "--json",
    ];
    let output = user.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let shown: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!((&shown["ok"], shown["config"].as_str()), (&json!(true), user.path().to_str()));
    assert!(shown["warnings"][0].as_str().unwrap().contains("single endpoint"), "{shown}");
    let config: Value = serde_json::from_slice(&fs::read(user.path()).unwrap()).unwrap();
    assert_eq!((&config["base_url"], &config["owners"]), (&json!(service.base), &json!({"base": owner})));
    assert_eq!((&config["registry"], &config["key_file"]), (&json!(user.registry), &json!(user.key)));
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(user.path()).unwrap().permissions()) & 0o777, 0o600);
    // The next command works, from any directory, without another argument.
    let next = shown["next"].as_str().unwrap();
    assert!(next.starts_with("countersign node check"), "{next}");
    let words: Vec<_> = next.split(' ').skip(1).collect();
    let checked = user.run(&words);
    assert!(checked.status.success() && out(&checked).contains("block 16"), "{next}: {}", said(&checked));
    assert!(user.run(&["health"]).status.success());
    // It is not replaced by accident.
    let again = user.run(&arguments);
    assert!(again.status.code() == Some(2) && said(&again).contains("--replace"), "{}", said(&again));
    let replaced = user.run(&[&arguments[..], &["--replace"]].concat());
    assert!(replaced.status.success(), "{}", said(&replaced));
}

#[test]
fn every_value_is_checked_and_nothing_is_written_if_one_is_wrong() {
    let user = User::new("checks");
    let (other, sick) = (node("0x1"), Server::start(|_| Reply::json(503, "busy")));
    user.home.file("nodes.json", &json!({"base": [other.base]}).to_string());
    user.home.file("broken.json", "{");
    mode(&user.key, 0o644);
    let output = user.run(&[
        "init",
        "--base-url",
        &sick.base,
        "--registry",
        "registry.json",
        "--nodes",
        "nodes.json",
        "--key-file",
        "key.txt",
        "--owner",
        "base=0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD",
        "--owner",
        "nowhere=0x00",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let shown: Value = serde_json::from_str(&out(&output)).unwrap();
    let problems = shown["error"]["problems"].to_string();
    for text in ["503", "another chain: 1 instead of 8453", "chmod 600", "checksum", "nowhere: not a chain"] {
        assert!(problems.contains(text), "{text}: {problems}");
    }
    for arguments in [
        &["--registry", "broken.json"][..],
        &["--registry", "missing.json"],
        &[],
        &["--registry", "registry.json", "--nodes", "broken.json"],
        &["--registry", "registry.json", "--key-file", "missing.txt"],
        &["--registry", "registry.json", "--owner", "0x00"],
    ] {
        let healthy = service();
        let output = user.run(&[&["init", "--base-url", &healthy.base], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(!said(&output).contains("signed") && !said(&output).contains("report the service"), "{}", said(&output));
    }
    let nowhere = user.run(&["init", "--registry", "registry.json"]);
    assert!(nowhere.status.code() == Some(2) && said(&nowhere).contains("--base-url"), "{}", said(&nowhere));
    // Only the service fails: it may be better in a minute.
    let down = user.run(&["init", "--base-url", &sick.base, "--registry", "registry.json"]);
    assert_eq!(down.status.code(), Some(3), "{}", said(&down));
    assert!(!user.path().exists());
}

#[test]
fn a_registry_can_be_pinned_on_first_use() {
    let (user, service) = (User::new("pins"), service());
    let arguments = ["init", "--base-url", &service.base, "--registry", "pins/new.json"];
    fs::create_dir(user.home.path.join("pins")).unwrap();
    let refused = user.run(&arguments);
    assert!(refused.status.code() == Some(2) && said(&refused).contains("--pin"), "{}", said(&refused));
    assert!(!user.home.path.join("pins/new.json").exists() && !user.path().exists());
    let output = user.run(&[&arguments[..], &["--pin"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(out(&output).contains("trusted on first use") && out(&output).contains("countersign demo"), "{}", said(&output));
    let shown = user.run(&["registry", "show", user.home.path.join("pins/new.json").to_str().unwrap()]);
    assert!(shown.status.success() && out(&shown).contains("ethereum:usdc"), "{}", said(&shown));
}

/// A configuration file is text, so a path in it is, too. Nothing is written before that is known.
#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_not_text_is_an_error_before_anything_is_written() {
    use std::os::unix::ffi::OsStrExt as _;

    let (user, service) = (User::new("path"), service());
    let directory = user.home.path.join(std::ffi::OsStr::from_bytes(b"not\xfftext"));
    fs::create_dir(&directory).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["init", "--base-url", &service.base, "--registry", "r.json", "--pin"]);
    let output = command.env_clear().env("HOME", &user.home.path).current_dir(&directory).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("not UTF-8 text") && !said(&output).contains("panicked"), "{}", said(&output));
    assert!(fs::read_dir(&directory).unwrap().next().is_none() && !user.path().exists());
}

const URL: &str = "URL of the service:";
const REGISTRY: &str = "(a new name to make one):";
const NODES: &str = "payment, yourself):";
const OWNERS: &str = "name them with each swap):";
const KEY: &str = "key that pays (empty for none):";

/// A wrong answer is reported at once, and the question is repeated. Earlier right answers are kept.
#[cfg(unix)]
#[test]
fn a_wrong_answer_is_asked_for_again() {
    let (user, service, sick) = (User::new("guided"), service(), Server::start(|_| Reply::json(503, "busy")));
    user.home.file("broken.json", "{");
    let loose = user.home.file("loose.txt", &fs::read_to_string(&user.key).unwrap());
    mode(&loose, 0o666);
    for (name, text) in [("letters.txt", "letters"), ("other.txt", &"11".repeat(32)), ("empty.txt", "")] {
        mode(&user.home.file(name, text), 0o600);
    }
    assert!(Command::new("mkfifo").arg(user.home.path.join("pipe")).status().unwrap().success());
    let (url, owner) =
        (format!("{}\n", service.base), format!("base={} litecoin=ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9\n", user.owner));
    let sick = format!("{}\n", sick.base);
    let steps = [
        (URL, "\n"),
        ("the URL is needed", ""),
        (URL, "nonsense\n"),
        ("- the answer: ", ""),
        (URL, &sick),
        ("503", ""),
        (URL, &url),
        (REGISTRY, "\n"),
        ("a registry is needed", ""),
        (REGISTRY, "missing.json\n"),
        ("what the service lists now? [y/N]", "\n"),
        (REGISTRY, "broken.json\n"),
        ("broken.json, line ", ""),
        (REGISTRY, "registry.json\n"),
        (NODES, "broken.json\n"),
        ("broken.json, line ", ""),
        (NODES, "\n"),
        (OWNERS, "0xabc\n"),
        ("0xabc: an owner must have the form", ""),
        (OWNERS, "base=0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD\n"),
        ("checksum", ""),
        (OWNERS, &owner),
        (KEY, "missing.txt\n"),
        ("missing.txt: ", ""),
        (KEY, "pipe\n"),
        ("not a regular file", ""),
        (KEY, "/dev/zero\n"),
        ("not a regular file", ""),
        (KEY, "empty.txt\n"),
        ("the key is empty", ""),
        (KEY, "letters.txt\n"),
        ("not a secret key for base or litecoin", ""),
        (KEY, "other.txt\n"),
        ("not the key of your address on base or litecoin, but of 0x", ""),
        (KEY, "loose.txt\n"),
        ("chmod 600", ""),
        (KEY, "~/key.txt\n"),
    ];
    let Some(screen) = answer(&user.home, "", &["init"], &steps) else { return };
    assert_eq!(screen.code, 0, "{}", screen.said);
    for flag in ["--base-url", "--pin", "--registry", "--owner", "/wallet/secret_key"] {
        assert!(!screen.said.contains(flag), "{flag} is not what was asked for: {}", screen.said);
    }
    let config: Value = serde_json::from_slice(&fs::read(user.path()).unwrap()).unwrap();
    assert_eq!(
        (&config["base_url"], &config["key_file"], &config["registry"]),
        (&json!(service.base), &json!(user.key), &json!(user.registry))
    );
    assert_eq!(config["owners"]["base"], json!(user.owner));
    // What comes next is about the two chains that were named.
    let next = screen.said[screen.said.rfind("next  countersign quote base:eth ").unwrap()..].lines().next().unwrap();
    assert!(next.contains(" litecoin:ltc ") && next.contains("'1 eth'"), "{next}");
}

/// Ctrl-D is not an empty answer.
#[cfg(unix)]
#[test]
fn the_end_of_the_input_stops_at_every_question() {
    let (user, service) = (User::new("stops"), service());
    let (url, owner) = (format!("{}\n", service.base), format!("base={}\n", user.owner));
    let pin = "what the service lists now? [y/N]";
    let answers = [(URL, url.as_str()), (REGISTRY, "new.json\n"), (pin, "y\n"), (NODES, "\n"), (OWNERS, &owner), (KEY, "\n")];
    for (typed, said) in [("\x04", "stopped; nothing was written"), ("\x03", "interrupted; nothing was written")] {
        for last in 0..answers.len() {
            let mut steps = answers[..=last].to_vec();
            steps[last].1 = typed;
            let Some(screen) = answer(&user.home, "", &["init"], &steps) else { return };
            assert!(screen.code == 130 && screen.said.contains(said), "{}: {}", answers[last].0, screen.said);
            assert!(!user.path().exists() && !user.home.path.join("new.json").exists(), "{}", answers[last].0);
        }
    }
}

/// Both ways of giving a value have the same checks.
#[test]
fn an_argument_has_the_checks_of_an_answer() {
    let (user, service) = (User::new("arguments"), service());
    let other = user.home.file("other.txt", &"11".repeat(32));
    mode(&other, 0o600);
    let owner = format!("base={}", user.owner);
    let begin = ["init", "--base-url", &service.base, "--registry", "registry.json", "--owner", &owner];
    let refused = user.run(&[&begin[..], &["--key-file", "other.txt"]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("other.txt: not the key of your address on base, but of 0x"), "{}", said(&refused));
    let refused = user.run(&[&begin[..], &["--key-file", "/dev/zero"]].concat());
    assert!(refused.status.code() == Some(2) && said(&refused).contains("not a regular file"), "{}", said(&refused));
    let missing = user.run(&["init", "--base-url", &service.base, "--registry", "nowhere/r.json", "--pin"]);
    assert!(missing.status.code() == Some(2) && said(&missing).contains("no such directory"), "{}", said(&missing));
    assert!(!user.path().exists());
    let output = user.run(&[&begin[..], &["--key-file", "key.txt"]].concat());
    assert!(output.status.success() && out(&output).contains("countersign demo"), "{}", said(&output));
}
