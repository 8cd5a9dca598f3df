//! What the program says when the user stops it.

use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
#[cfg(unix)]
use std::task::Poll;
use std::thread;

use crate::exit::INTERRUPTED;
use crate::failure::Failure;

/// What may have happened so far, and the command that continues. Empty until the first step that needs it.
#[derive(Default)]
pub(crate) struct Advice(OnceLock<Arc<End>>);

/// How the program ends if it is stopped.
struct End {
    text: Mutex<String>,
    json: bool,
    /// The settings of the terminal before a hidden prompt; `None` while there is none.
    terminal: Mutex<Option<String>>,
    is_reached: AtomicBool,
}

impl Advice {
    /// Sets what is said on Ctrl-C from now on, as JSON or as text.
    pub(crate) fn set(&self, text: String, json: bool) {
        let end = self.end(&text, json);
        *lock(&end.text) = text;
    }

    /// Returns the message that Ctrl-C prints.
    pub(crate) fn get(&self) -> Option<String> {
        Some(lock(&self.0.get()?.text).clone())
    }

    /// Asks without echo. Whatever ends the program at the prompt restores the terminal first. Commands with such prompts write nothing before
    /// the last answer.
    pub(crate) fn at_hidden_prompt<T>(&self, json: bool, ask: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let end = self.end("nothing was written", json);
        *lock(&end.terminal) = terminal::settings();
        let answer = ask();
        // Ctrl-C is a character while nothing is echoed.
        if answer.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            end.reach();
        }
        *lock(&end.terminal) = None;
        answer
    }

    fn end(&self, text: &str, json: bool) -> &Arc<End> {
        self.0.get_or_init(|| {
            let (text, terminal) = (Mutex::new(text.to_owned()), Mutex::default());
            let end = Arc::new(End { text, json, terminal, is_reached: AtomicBool::new(false) });
            start(Arc::clone(&end));
            end
        })
    }
}

impl End {
    /// Ends the program with a sentence, which only the first caller says. The terminal is as it was before a hidden prompt.
    fn reach(&self) -> ! {
        if self.is_reached.swap(true, Ordering::SeqCst) {
            loop {
                thread::park();
            }
        }
        if let Some(settings) = lock(&self.terminal).take() {
            terminal::restore(&settings);
        }
        let text = lock(&self.text).clone();
        let text = if text.is_empty() { "interrupted".to_owned() } else { format!("interrupted; {text}") };
        Failure::Interrupted(text).report(self.json);
        process::exit(i32::from(INTERRUPTED));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for Ctrl-C in a thread of its own, because the command may be waiting for the user at a prompt. Ending at any moment is safe:
/// every step is stored before it is taken.
fn start(end: Arc<End>) {
    let wait = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        if runtime.is_ok_and(|runtime| runtime.block_on(signal()).is_ok()) {
            end.reach();
        }
    };
    // Without the thread, Ctrl-C ends the program as usual, without a word.
    let _ = thread::Builder::new().name("interrupt".to_owned()).spawn(wait);
}

/// Completes on Ctrl-C, or when the program is asked to end.
#[cfg(unix)]
async fn signal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let (mut typed, mut asked) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    std::future::poll_fn(|context| {
        let is_ended = typed.poll_recv(context).is_ready() || asked.poll_recv(context).is_ready();
        if is_ended { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

#[cfg(not(unix))]
async fn signal() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// The terminal's settings, as `stty` writes and reads them. Best effort: a terminal that is gone needs none.
#[cfg(unix)]
mod terminal {
    use std::fs::File;
    use std::process::{Command, Stdio};

    fn stty(setting: &str) -> Option<String> {
        let terminal = File::open("/dev/tty").ok()?;
        let output = Command::new("stty").arg(setting).stdin(terminal).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub(super) fn settings() -> Option<String> {
        stty("-g")
    }

    pub(super) fn restore(settings: &str) {
        let _ = stty(settings);
    }
}

#[cfg(not(unix))]
mod terminal {
    pub(super) const fn settings() -> Option<String> {
        None
    }

    pub(super) const fn restore(_: &str) {}
}
