//! Tests files with keys, secrets and passwords: which ones are read, and warnings about who else could read them.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::home::{Home, NOWHERE, machine, out, said};
use crate::program::{case, registry};

/// A user with a case and its key.
fn user(name: &str) -> (Home, String, String, String) {
    let home = Home::new(name);
    let mut value: serde_json::Value = serde_json::from_str(&case("evm-record-evm-v2")).unwrap();
    let key = value["wallet"].as_object_mut().unwrap().remove("secret_key").unwrap();
    let (case, key) = (home.file("case.json", &value.to_string()), home.file("key.txt", key.as_str().unwrap()));
    (home, registry(), case, key)
}

/// The owner may have no other way to a refund, so that a key that others can read still signs.
#[test]
fn a_key_that_others_can_read_signs_with_a_warning() {
    let (home, registry, case, key) = user("private-mode");
    let begin = ["sign", "--registry", &registry, "--case", &case, "--key-file", &key];
    for (mode, is_warned) in [(0o600, false), (0o400, false), (0o666, true), (0o644, true), (0o620, true)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let output = home.run(NOWHERE, &begin);
        let stderr = String::from_utf8(output.stderr.clone()).unwrap();
        assert!(output.status.success(), "{mode:o}: {}", said(&output));
        assert_eq!(stderr.matches("other users can read or change it: chmod 600").count(), usize::from(is_warned), "{mode:o}: {stderr}");
        let (document, lines) = machine(&home.run(NOWHERE, &[&begin[..], &["--json"]].concat())).unwrap();
        assert!(document["ok"] == true && lines.len() == usize::from(is_warned), "{mode:o}: {lines:?}");
    }
}

#[test]
fn a_pipe_or_a_device_is_no_key_file() {
    let (home, registry, case, key) = user("private-kind");
    let pipe = home.path.join("pipe").to_str().unwrap().to_owned();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let long = home.file("long.txt", &"a".repeat(20_000));
    let directory = home.path.to_str().unwrap().to_owned();
    let state = home.path.join("state").to_str().unwrap().to_owned();
    drop(countersign_store::Store::open(&state).unwrap());
    for (file, why) in [
        (&pipe, "not a regular file"),
        (&"/dev/zero".to_owned(), "not a regular file"),
        (&directory, "not a regular file"),
        (&long, "longer than any key"),
    ] {
        for flag in ["--key-file", "--receipt-key-file"] {
            let command = if flag == "--key-file" { "sign" } else { "explain" };
            let receipt = home.path.join("receipt.json").to_str().unwrap().to_owned();
            let more = if flag == "--key-file" { vec![] } else { vec!["--receipt", receipt.as_str()] };
            let output = home.run(NOWHERE, &[&[command, "--registry", &registry, "--case", &case, flag, file][..], &more].concat());
            assert!(output.status.code() == Some(2) && said(&output).contains(why), "{flag} {file}: {}", said(&output));
        }
        let output = home.run(NOWHERE, &["backup", "b", "--password-file", file, "--state", &state]);
        assert!(output.status.code() == Some(2) && said(&output).contains(why), "{file}: {}", said(&output));
    }
    // A file from the shell is read: `--key-file <(pass show key)`.
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["sign", "--registry", &registry, "--case", &case, "--key-file", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("HOME", &home.path)
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &fs::read(&key).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && out(&output).contains("signed"), "{}", said(&output));
}
