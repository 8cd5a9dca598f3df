//! `countersign backup` and `countersign restore`: the state directory moves in one encrypted file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Arc, Mutex};

use crate::home::{Home, NOWHERE, at_once, out, said};
use crate::support::{Fixture, Reply, Server};
use countersign_client::driver::{OrderState, OrderStore};
use countersign_client::{CreatedOrder, Secret};
use countersign_store::Store;
use countersign_store::rescue::{Phrase, Rescue};
use serde_json::Value;

const PASSWORD: &str = "correct horse battery staple";
const WORDS: &str = "legal winner thank year wave sausage worth useful legal winner thank yellow";

/// A home with one order in the default state directory.
struct Kept {
    home: Home,
    id: String,
    secret: Secret,
}

impl Kept {
    fn new(name: &str) -> Self {
        let home = Home::new(&format!("backup-{name}"));
        let secret = Secret::parse("8cb8a02d5592b0b1556978e1d778b7eff2c23519b8aa65970fa6ac3daa33fb40").unwrap();
        let fixture = Fixture::with_secret(&secret);
        let kept = Self { id: fixture.order_id().to_owned(), home, secret };
        let store = Store::open(kept.state()).unwrap();
        store.keep_phrase(&Phrase::parse(WORDS).unwrap()).unwrap();
        store.take_index().unwrap();
        let swap = CreatedOrder::new(fixture.create(), fixture.response.to_string()).unwrap();
        at_once(OrderStore::create(&store, &OrderState::new(swap, Some(Secret::parse(&kept.secret.to_hex()).unwrap())))).unwrap();
        kept
    }

    fn state(&self) -> PathBuf {
        if cfg!(target_os = "macos") {
            return self.home.path.join("Library/Application Support/countersign");
        }
        self.home.path.join(".local/share/countersign")
    }

    fn path(&self, name: &str) -> String {
        self.home.path.join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.home.run_with(NOWHERE, arguments, &[("PASSWORD", PASSWORD)], "")
    }

    fn json(&self, arguments: &[&str], code: i32) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        serde_json::from_str(&out(&output)).unwrap_or_else(|error| panic!("{error}: {}", said(&output)))
    }
}

#[test]
fn a_backup_restores_everything_and_shows_nothing() {
    let kept = Kept::new("whole");
    let (file, elsewhere) = (kept.path("swaps.backup"), kept.path("elsewhere"));
    let password = kept.home.file("password.txt", &format!("{PASSWORD}\n"));
    let written = kept.json(&["backup", &file, "--password-file", &password], 0);
    assert_eq!((&written["ok"], &written["orders"], written["left_out"].as_array().unwrap().len()), (&true.into(), &1.into(), 0));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let bytes = fs::read(&file).unwrap();
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(!holds(WORDS) && !holds(&kept.secret.to_hex()) && !holds(&kept.id));
    // The line break at the end of the file is not part of the password.
    let restored = kept.json(&["restore", &file, "--password-env", "PASSWORD", "--state", &elsewhere], 0);
    assert_eq!((&restored["orders"], &restored["next_index"]), (&1.into(), &0.into()));
    assert_ne!(restored["branch"], 0);
    let here = kept.json(&["orders"], 0);
    let mut there = kept.json(&["orders", "--state", &elsewhere], 0);
    // The command that goes on names the directory.
    assert!(there["orders"][0]["next"].as_str().unwrap().contains(&elsewhere), "{there}");
    there["orders"][0]["next"] = here["orders"][0]["next"].clone();
    assert_eq!(there, here);
    assert_eq!(here["orders"][0]["order_id"], kept.id);
    let store = Store::open(&elsewhere).unwrap();
    assert_eq!(&*store.phrase().unwrap().unwrap().words(), WORDS);
    for output in [kept.run(&["restore", &file, "--password-env", "PASSWORD", "--state", &kept.path("people")]), kept.run(&["orders"])] {
        let said = said(&output);
        assert!(output.status.success() && !said.contains(WORDS) && !said.contains(&*kept.secret.to_hex()) && !said.contains(PASSWORD));
    }
}

/// The first secret hash that a state directory asks for. The service creates no order.
fn hash_asked(kept: &Kept, registry: &str, state: &str) -> String {
    let asked = Arc::new(Mutex::new(None));
    let server = Server::start({
        let asked = Arc::clone(&asked);
        move |seen| {
            if seen.method == "POST" {
                let request: Value = serde_json::from_str(&seen.text()).unwrap();
                *asked.lock().unwrap() = request["secret_hash"].as_str().map(str::to_owned);
            }
            Reply::json(400, r#"{"status":"Error","error":"no liquidity"}"#)
        }
    });
    let owner = "0x75196C3fEa443e4f086cF9f30D51CF375704f166";
    let arguments = ["order", "create", "--registry", registry, "--state", state, "--from", "base:eth", "--from-owner", owner];
    let more = ["--amount", "1 eth", "--to", "arbitrum:eth", "--to-owner", owner, "--receive", "0.9 eth"];
    let output = kept.home.run(&server.base, &[&arguments[..], &more].concat());
    let hash = asked.lock().unwrap().take();
    hash.unwrap_or_else(|| panic!("{}", said(&output)))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() { copy(&path, &to.join(name)) } else { fs::copy(&path, to.join(name)).map(|_| ()).unwrap() }
    }
}

/// Restored, copied and original state directories never ask for orders with the same hash.
#[test]
fn no_copy_of_a_state_directory_uses_a_secret_of_another() {
    let kept = Kept::new("copies");
    let registry = kept.home.file("registry.json", &crate::support::registry_text());
    let file = kept.path("swaps.backup");
    kept.json(&["backup", &file, "--password-env", "PASSWORD"], 0);
    let mut states = vec![kept.state().to_str().unwrap().to_owned()];
    for name in ["first", "second"] {
        let state = kept.path(name);
        kept.json(&["restore", &file, "--password-env", "PASSWORD", "--state", &state], 0);
        states.push(state);
    }
    for (from, to) in [(0, "copy of the original"), (1, "copy of a restored one")] {
        let state = kept.path(to);
        copy(Path::new(&states[from]), Path::new(&state));
        states.push(state);
    }
    let hashes: Vec<_> = states.iter().map(|state| hash_asked(&kept, &registry, state)).collect();
    let distinct: BTreeSet<_> = hashes.iter().collect();
    // Branches are random: two of these five are the same once in 6,000 runs, three never.
    assert!(distinct.len() >= 4, "{hashes:?}");
    assert_eq!(hashes.iter().filter(|hash| **hash == hashes[0]).count(), 1, "{hashes:?}");
}

/// The files that a killed process leaves while it creates an order.
#[test]
fn an_interrupted_creation_is_neither_listed_nor_counted() {
    let kept = Kept::new("interrupted");
    let left = kept.state().join("orders").join(format!(".new-{}", "ab".repeat(32)));
    fs::create_dir(&left).unwrap();
    fs::write(left.join("secret"), &**kept.secret.to_hex()).unwrap();
    assert_eq!(kept.json(&["orders"], 0)["orders"].as_array().unwrap().len(), 1);
    let file = kept.path("swaps.backup");
    let written = kept.json(&["backup", &file, "--password-env", "PASSWORD"], 0);
    assert_eq!((&written["orders"], written["left_out"].as_array().unwrap().len()), (&1.into(), 0));
    assert_eq!(kept.json(&["restore", &file, "--password-env", "PASSWORD", "--state", &kept.path("other")], 0)["orders"], 1);
}

/// Eight processes use a new state directory at once. All of them derive from the phrase that was stored.
#[test]
fn several_first_uses_at_once_share_one_phrase() {
    let kept = Kept::new("first-uses");
    let registry = kept.home.file("registry.json", &crate::support::registry_text());
    for round in 0..3 {
        let state = kept.path(&format!("new-{round}"));
        let hashes: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| hash_asked(&kept, &registry, &state))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let rescue = Rescue::new(&Store::open(&state).unwrap().phrase().unwrap().unwrap()).unwrap();
        let branch = rescue.branch(0).unwrap();
        let derived: BTreeSet<_> = (0..8).map(|index| hex::encode(branch.secret_hash(index).unwrap())).collect();
        assert_eq!(hashes.iter().map(|hash| hash.trim_start_matches("0x").to_owned()).collect::<BTreeSet<_>>(), derived);
    }
}

#[test]
fn no_file_and_no_state_is_overwritten() {
    let kept = Kept::new("kept");
    let file = kept.home.file("swaps.backup", "precious");
    let with_password = ["--password-env", "PASSWORD"];
    let refused = kept.json(&[&["backup", &*file], &with_password[..]].concat(), 2);
    assert!(refused["error"]["message"].as_str().unwrap().contains("never overwritten"), "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    // A link that leads nowhere is not followed.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(kept.path("target"), kept.path("link")).unwrap();
        kept.json(&[&["backup", &*kept.path("link")], &with_password[..]].concat(), 2);
        assert!(!fs::exists(kept.path("target")).unwrap());
    }
    let good = kept.path("good.backup");
    kept.json(&[&["backup", &*good], &with_password[..]].concat(), 0);
    // Neither a state directory in use nor another directory with files is overwritten.
    let before = kept.json(&["orders"], 0);
    for state in [kept.state().to_str().unwrap().to_owned(), kept.home.path.to_str().unwrap().to_owned()] {
        let refused = kept.json(&[&["restore", &*good, "--state", &*state], &with_password[..]].concat(), 2);
        assert!(refused["error"]["message"].as_str().unwrap().contains("not empty"), "{refused}");
    }
    assert_eq!(kept.json(&["orders"], 0), before);
}

#[test]
fn a_wrong_password_or_file_restores_nothing() {
    let kept = Kept::new("wrong");
    let (file, elsewhere) = (kept.path("swaps.backup"), kept.path("elsewhere"));
    kept.json(&["backup", &file, "--password-env", "PASSWORD"], 0);
    let wrong = kept.home.file("wrong.txt", "correct horse battery stable");
    let refused = kept.json(&["restore", &file, "--password-file", &wrong, "--state", &elsewhere], 2);
    assert!(refused["error"]["message"].as_str().unwrap().contains("password is wrong"), "{refused}");
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(kept.path("damaged"), &bytes).unwrap();
    fs::write(kept.path("cut"), &bytes[..40]).unwrap();
    for name in ["damaged", "cut", "missing", "wrong.txt"] {
        kept.json(&["restore", &kept.path(name), "--password-env", "PASSWORD", "--state", &elsewhere], 2);
    }
    assert!(!fs::exists(&elsewhere).unwrap(), "nothing is written before everything is checked");
}

#[test]
fn a_password_is_needed_and_is_no_argument() {
    let kept = Kept::new("password");
    let (file, short) = (kept.path("swaps.backup"), kept.home.file("short.txt", "1234567\n"));
    // Stdin is not a terminal, so the program cannot ask.
    let refused = kept.json(&["backup", &file], 2);
    assert!(refused["error"]["message"].as_str().unwrap().contains("--password-file"), "{refused}");
    let refused = kept.json(&["backup", &file, "--password-file", &short], 2);
    assert!(refused["error"]["message"].as_str().unwrap().contains("at least 8"), "{refused}");
    assert_eq!(kept.run(&["backup", &file, "--password", PASSWORD]).status.code(), Some(2));
    kept.json(&["backup", &file, "--password-env", "NOT_SET"], 2);
    assert!(!fs::exists(&file).unwrap());
    let nothing = kept.path("nothing");
    let refused = kept.json(&["backup", &file, "--state", &nothing, "--password-env", "PASSWORD"], 2);
    assert!(refused["error"]["message"].as_str().unwrap().contains("nothing does not exist"), "{refused}");
    assert!(!fs::exists(&file).unwrap() && !fs::exists(&nothing).unwrap());
}

#[test]
fn what_is_not_in_the_backup_is_named() {
    let kept = Kept::new("left-out");
    let order = kept.state().join("orders").join(&kept.id);
    fs::create_dir(order.join("record.json")).unwrap();
    fs::write(order.join("Notes.txt"), "mine").unwrap();
    let file = kept.path("swaps.backup");
    let written = kept.json(&["backup", &file, "--password-env", "PASSWORD"], 2);
    assert_eq!(written["ok"], false);
    let left_out = written["left_out"].as_array().unwrap();
    let of = |name: &str| left_out.iter().find(|entry| entry["path"].as_str().unwrap().ends_with(name)).unwrap()["reason"].clone();
    assert!(of("record.json").as_str().unwrap().contains("expected"), "{written}");
    assert!(of("Notes.txt").as_str().unwrap().contains("not a file of this program"), "{written}");
    let elsewhere = kept.path("elsewhere");
    kept.json(&["restore", &file, "--password-env", "PASSWORD", "--state", &elsewhere], 0);
    assert_eq!(kept.json(&["orders", "--state", &elsewhere], 0)["orders"][0]["secret_kept"], true);
}

/// Runs a program at a terminal of its own, ends it at its first hidden prompt, and prints whether the terminal still echoes, edits lines
/// and sends signals. The shell in between keeps the terminal, as that of a user does.
#[cfg(target_os = "linux")]
const AT_A_TERMINAL: &str = r#"
import fcntl, os, pty, select, signal, subprocess, sys, termios, time
how, arguments = sys.argv[1], sys.argv[2:]
master, slave = pty.openpty()
leader = os.fork()
if leader == 0:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(slave, number)
    program = subprocess.Popen(arguments)
    if how != "typed":
        signal.sigtimedwait([signal.SIGUSR1], 30)
        program.send_signal(int(how))
    code = program.wait()
    flags = termios.tcgetattr(0)[3]
    kept = all(flags & flag for flag in (termios.ECHO, termios.ICANON, termios.ISIG))
    print("code", code, "kept", kept, flush=True)
    time.sleep(0.2)
    os._exit(0)
said, end, is_ended = b"", time.time() + 60, False
while b"kept True" not in said and b"kept False" not in said and time.time() < end:
    if select.select([master], [], [], 1)[0]:
        said += os.read(master, 4096)
    if b"password: " in said and not is_ended:
        is_ended = True
        time.sleep(0.5)
        os.write(master, b"\x03") if how == "typed" else os.kill(leader, signal.SIGUSR1)
print(said.decode())
"#;

/// A prompt for a password turns off echo, line editing and Ctrl-C. They are back, however the program ends.
#[cfg(target_os = "linux")]
#[test]
fn a_hidden_prompt_that_is_interrupted_leaves_the_terminal_as_it_was() {
    let kept = Kept::new("terminal");
    let state = kept.state().to_str().unwrap().to_owned();
    let file = kept.home.path.join("swaps.backup").to_str().unwrap().to_owned();
    for (how, name) in [("typed", "Ctrl-C"), ("2", "SIGINT"), ("15", "SIGTERM")] {
        let program = env!("CARGO_BIN_EXE_countersign");
        let mut python = std::process::Command::new("python3");
        python.args(["-c", AT_A_TERMINAL, how, program, "backup", &file, "--state", &state]).env("HOME", &kept.home.path);
        let Ok(output) = python.output() else { return countersign_testkit::skipped("python3 is not installed").unwrap() };
        let told = said(&output);
        assert!(told.contains("kept True"), "{name}: {told}");
        assert!(told.contains("code 130") && told.contains("nothing was written"), "{name}: {told}");
        assert!(!Path::new(&file).exists());
    }
}
