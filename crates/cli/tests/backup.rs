//! `countersign backup` and `countersign restore`: the state directory moves in one encrypted file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod home;
#[path = "../../client/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use countersign_client::driver::KeptOrder;
use countersign_client::{Secret, StoredSwap};
use countersign_store::Store;
use countersign_store::backup::RESTORE_SKIP;
use countersign_store::rescue::Phrase;
use home::{Home, out, said};
use serde_json::Value;
use support::Fixture;

/// Nothing listens here.
const NOWHERE: &str = "http://127.0.0.1:9";
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
        let swap = StoredSwap::new(fixture.create(), fixture.response.to_string()).unwrap();
        countersign_client::driver::Store::create(&store, &KeptOrder::new(swap, Some(Secret::parse(&kept.secret.to_hex()).unwrap())))
            .unwrap();
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
    assert_eq!((&restored["orders"], &restored["next_index"]), (&1.into(), &(1 + RESTORE_SKIP).into()));
    let here = kept.json(&["orders"], 0);
    assert_eq!(kept.json(&["orders", "--state", &elsewhere], 0), here);
    assert_eq!(here["orders"][0]["order_id"], kept.id);
    let store = Store::open(&elsewhere).unwrap();
    assert_eq!(&*store.phrase().unwrap().unwrap().words(), WORDS);
    for output in [kept.run(&["restore", &file, "--password-env", "PASSWORD", "--state", &kept.path("people")]), kept.run(&["orders"])] {
        let said = said(&output);
        assert!(output.status.success() && !said.contains(WORDS) && !said.contains(&*kept.secret.to_hex()) && !said.contains(PASSWORD));
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
