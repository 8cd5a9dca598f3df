//! What the program says when the user stops it.

use std::process;
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use crate::INTERRUPTED;
use crate::input::Failure;

/// What may have happened so far, and the command that continues.
static ADVICE: Mutex<String> = Mutex::new(String::new());
static STARTED: Once = Once::new();

/// Sets what is said on Ctrl-C from now on.
pub(crate) fn advise(text: impl Into<String>) {
    *ADVICE.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    STARTED.call_once(start);
}

/// Waits for Ctrl-C in a thread of its own, because the command may be waiting for the user at a prompt. Ending at any moment is safe:
/// every step is stored before it is taken.
fn start() {
    let wait = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let is_interrupted = runtime.is_ok_and(|runtime| runtime.block_on(tokio::signal::ctrl_c()).is_ok());
        if is_interrupted {
            let advice = ADVICE.lock().unwrap_or_else(PoisonError::into_inner).clone();
            crate::report(&Failure::Interrupted(format!("interrupted; {advice}")));
            process::exit(i32::from(INTERRUPTED));
        }
    };
    // Without the thread, Ctrl-C ends the program as usual, without a word.
    let _ = thread::Builder::new().name("interrupt".to_owned()).spawn(wait);
}
