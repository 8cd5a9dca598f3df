//! A user's home, and the program run in it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "a test ends by panicking, and uses the parts it needs"
)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use countersign_client::driver::{self, KeptOrder};
use countersign_client::{Secret, StoredSwap};
use serde_json::{Value, json};

pub const APP_ID: &str = "the-private-application-id";

/// A user's home directory, removed with the test.
pub struct Home {
    pub path: PathBuf,
}

impl Home {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("countersign-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self { path }
    }

    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Returns the path of a document of a kept order.
    pub fn kept(&self, id: &str, document: &str) -> PathBuf {
        self.path.join(".local/share/countersign/orders").join(id.to_lowercase()).join(document)
    }

    /// Keeps an order, as if it had been created here.
    pub fn keep(&self, id: &str, request: &Value, response: &Value, secret: Option<&Secret>) {
        let store = countersign_store::Store::open(self.path.join(".local/share/countersign")).unwrap();
        let case = json!({ "id": id, "request": request, "response": response }).to_string();
        driver::Store::create(
            &store,
            &KeptOrder::new(StoredSwap::from_json(case.as_bytes()).unwrap(), secret.map(|secret| Secret::parse(&secret.to_hex()).unwrap())),
        )
        .unwrap();
    }

    /// Runs the program for a service, with nothing of the real environment.
    pub fn run(&self, base: &str, arguments: &[&str]) -> Output {
        self.command(base, arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs the program as [`run`](Self::run) does, with more variables, and with a text on stdin.
    pub fn run_with(&self, base: &str, arguments: &[&str], variables: &[(&str, &str)], stdin: &str) -> Output {
        let input = self.file(".stdin", stdin);
        self.command(base, arguments).envs(variables.iter().copied()).stdin(fs::File::open(input).unwrap()).output().unwrap()
    }

    fn command(&self, base: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.args(arguments).env_clear().env("HOME", &self.path);
        command.env("COUNTERSIGN_BASE_URL", base).env("COUNTERSIGN_APP_ID", APP_ID);
        command
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn said(output: &Output) -> String {
    format!("{}\n{}", out(output), String::from_utf8_lossy(&output.stderr))
}
