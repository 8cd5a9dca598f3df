//! One run of the program: how it reports, and what it says when the user stops it.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::{ArgMatches, Command};
use countersign::{Summary, Warnings};
use serde::Serialize;

use crate::command::Commands;
use crate::interrupt::Advice;
use crate::lines::Lines;
use crate::show;

/// What every command knows of this run of the program. `main` creates it.
pub(crate) struct Session {
    /// Whether the command prints JSON. Its progress is then JSON too.
    pub(crate) json: bool,
    /// The proxy that the user gave as an argument, for every connection.
    pub(crate) proxy: Option<String>,
    /// Command lines for the user to run next.
    pub(crate) commands: Commands,
    advice: Advice,
    pub(crate) lines: Lines,
    /// What [`warn`](Self::warn) has said.
    warned: Mutex<BTreeSet<String>>,
    /// The number of messages so far.
    messages: AtomicUsize,
}

/// A message, as an event.
#[derive(Serialize)]
struct Message<'a> {
    event: &'static str,
    message: &'a str,
}

/// A summary and its warnings, as an event.
#[derive(Serialize)]
struct Summarized<'a> {
    event: &'static str,
    summary: &'a Summary,
    warnings: &'a Warnings,
}

impl Session {
    pub(crate) fn new(json: bool, proxy: Option<String>, root: Command, matches: &ArgMatches) -> Self {
        let commands = Commands::new(root, matches);
        Self {
            json,
            proxy,
            commands,
            advice: Advice::default(),
            lines: Lines::default(),
            warned: Mutex::default(),
            messages: AtomicUsize::new(0),
        }
    }

    /// Sets what is said on Ctrl-C from now on: what may have happened so far, and the command that continues.
    pub(crate) fn advise(&self, text: impl Into<String>) {
        self.advice.set(text.into(), self.json);
    }

    /// Returns what may have happened so far, and the command that continues; `None` before the first step that needs it.
    pub(crate) fn advice(&self) -> Option<String> {
        self.advice.get().filter(|text| !text.is_empty())
    }

    /// Asks at the terminal without echo.
    pub(crate) fn at_hidden_prompt<T>(&self, ask: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.advice.at_hidden_prompt(self.json, ask)
    }

    /// Reports the progress of a command on stderr.
    pub(crate) fn progress(&self, text: &str) {
        self.event(&Message { event: "progress", message: text }, text);
    }

    /// Reports a warning on stderr, once in a run.
    pub(crate) fn warn(&self, text: &str) {
        if self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned()) {
            self.progress(&format!("warning: {text}"));
        }
    }

    /// Returns the number of messages so far.
    pub(crate) fn messages(&self) -> usize {
        self.messages.load(Ordering::Relaxed)
    }

    /// Reports an event on stderr, as a JSON line or as text.
    pub(crate) fn event(&self, event: &impl Serialize, text: &str) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        if !self.json {
            show::line_on_stderr(text);
        } else if let Ok(line) = serde_json::to_string(event) {
            // Best effort: a closed pipe is not an error here.
            let _ = writeln!(io::stderr(), "{}", show::safe_json(line));
        }
    }

    /// Reports a summary and its warnings on stderr, separate from the data on stdout.
    pub(crate) fn summary_on_stderr(&self, summary: &Summary, warnings: &Warnings) -> io::Result<()> {
        if self.json {
            self.event(&Summarized { event: "summary", summary, warnings }, "");
            return Ok(());
        }
        show::summary_on_stderr(summary, warnings)
    }

    /// Asks a question on stderr. The answer is read by the caller.
    pub(crate) fn question(&self, text: &str) -> io::Result<()> {
        if self.json {
            self.event(&Message { event: "question", message: text }, text);
            return Ok(());
        }
        write!(io::stderr(), "{} ", show::safe(text))
    }
}
