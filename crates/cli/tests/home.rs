//! A user's home, and the program run in it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use countersign_client::driver::{OrderState, OrderStore};
use countersign_client::{CreatedOrder, Secret};
use serde_json::{Value, json};

pub const APP_ID: &str = "the-private-application-id";
/// An address where nothing listens.
pub const NOWHERE: &str = "http://127.0.0.1:9";

/// A user's home directory, removed with the test.
pub struct Home {
    pub path: PathBuf,
}

impl Home {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("countersign-{name}-{}-{number}", std::process::id()));
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

    /// Stores an order as if it had been created here.
    pub fn keep(&self, id: &str, request: &Value, response: &Value, secret: Option<&Secret>) {
        let store = countersign_store::Store::open(self.path.join(".local/share/countersign")).unwrap();
        let case = json!({ "id": id, "request": request, "response": response }).to_string();
        let secret = secret.map(|secret| Secret::parse(&secret.to_hex()).unwrap());
        at_once(OrderStore::create(&store, &OrderState::new(CreatedOrder::from_json(case.as_bytes()).unwrap(), secret))).unwrap();
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

    /// Runs the program until its stderr contains a text, and kills it then. Returns everything it wrote, and its exit code if it ended by
    /// itself.
    pub fn run_until(&self, base: &str, arguments: &[&str], text: &str) -> (Option<i32>, String) {
        self.watched(base, arguments, text, |child| child.kill().unwrap())
    }

    /// Runs the program until its stderr contains a text, then does something to it, and waits for its end.
    pub fn watched(&self, base: &str, arguments: &[&str], text: &str, then: impl FnOnce(&mut Child)) -> (Option<i32>, String) {
        let mut child = self.command(base, arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (lines, heard) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let reader = thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|line| drop(lines.send(line))));
        let (mut all, mut then) = (String::new(), Some(then));
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            match heard.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => all.push_str(&format!("{line}\n")),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    child.kill().unwrap();
                    panic!("{arguments:?}: no {text:?} within a minute: {all}");
                }
            }
            if all.contains(text)
                && let Some(then) = then.take()
            {
                then(&mut child);
            }
        }
        reader.join().unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), format!("{}\n{all}", String::from_utf8(output.stdout).unwrap()))
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

/// Reads what a command with `--json` wrote: one document on stdout, and JSON lines on stderr. Anything else is an error.
pub fn machine(output: &Output) -> Result<(Value, Vec<Value>), String> {
    let wrong = |error: serde_json::Error| format!("{error}: {}", said(output));
    let lines = String::from_utf8(output.stderr.clone()).unwrap();
    let lines = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>().map_err(wrong)?;
    Ok((serde_json::from_str(&out(output)).map_err(wrong)?, lines))
}

/// Returns the result of an operation of the store on disk, which is ready when it is first polled.
pub fn at_once<T>(operation: impl Future<Output = T>) -> T {
    match pin!(operation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the store on disk waits"),
    }
}

/// Returns whether a text contains characters that can forge a display.
pub fn is_forged(text: &str) -> bool {
    text.chars().any(|it| {
        matches!(it, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') || (it.is_control() && it != '\n')
    })
}

/// Runs a printed command line in a shell, in another directory.
pub fn paste(home: &Home, base: &str, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_countersign")).parent().unwrap();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line]).env_clear().env("HOME", &home.path).env("PATH", program).env("COUNTERSIGN_APP_ID", APP_ID);
    if !base.is_empty() {
        shell.env("COUNTERSIGN_BASE_URL", base);
    }
    shell.current_dir("/").stdin(Stdio::null()).output().unwrap()
}

/// Returns the command that follows some words in the output.
pub fn command_after(text: &str, words: &str) -> String {
    let at = text.find(words).unwrap_or_else(|| panic!("{words:?} in {text}"));
    let rest = &text[at + words.len()..];
    rest[rest.find("countersign ").unwrap()..].lines().next().unwrap().to_owned()
}
