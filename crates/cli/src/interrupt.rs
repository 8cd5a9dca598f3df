//! What the program says when the user stops it.

use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use crate::exit::INTERRUPTED;
use crate::failure::Failure;

/// What may have happened so far, and the command that continues. Empty until the first step that needs it.
#[derive(Default)]
pub(crate) struct Advice(OnceLock<Arc<Mutex<String>>>);

impl Advice {
    /// Sets what is said on Ctrl-C from now on, as JSON or as text.
    pub(crate) fn set(&self, text: String, json: bool) {
        let advice = self.0.get_or_init(|| start(text.clone(), json));
        *advice.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

/// Waits for Ctrl-C in a thread of its own, because the command may be waiting for the user at a prompt. Ending at any moment is safe:
/// every step is stored before it is taken.
fn start(text: String, json: bool) -> Arc<Mutex<String>> {
    let advice = Arc::new(Mutex::new(text));
    let said = Arc::clone(&advice);
    let wait = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let is_interrupted = runtime.is_ok_and(|runtime| runtime.block_on(tokio::signal::ctrl_c()).is_ok());
        if is_interrupted {
            let said = said.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Failure::Interrupted(format!("interrupted; {said}")).report(json);
            process::exit(i32::from(INTERRUPTED));
        }
    };
    // Without the thread, Ctrl-C ends the program as usual, without a word.
    let _ = thread::Builder::new().name("interrupt".to_owned()).spawn(wait);
    advice
}
