//! Lines that are read at the terminal while whatever else runs goes on.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

/// The line of a thread that reads.
type Line = oneshot::Receiver<io::Result<Vec<u8>>>;

/// The line that is still read for a question that was given up, if there is one. Nothing ends such a thread but a line.
#[derive(Default)]
pub(crate) struct Lines(Mutex<Option<Line>>);

/// A question that is open. If it is given up, its line is left.
struct Open<'l>(Option<Line>, &'l Lines);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        *self.1.0.lock().unwrap_or_else(PoisonError::into_inner) = self.0.take();
    }
}

impl Lines {
    /// Reads on a thread of its own. What was typed at a question that was given up is no answer to the next one.
    pub(crate) async fn read(&self, read: impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static) -> io::Result<Vec<u8>> {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let still_read = left.and_then(|mut line| matches!(line.try_recv(), Err(oneshot::error::TryRecvError::Empty)).then_some(line));
        let line = match still_read {
            Some(line) => line,
            None => {
                let (send, line) = oneshot::channel();
                // Nobody may wait for it any more.
                thread::Builder::new().spawn(move || drop(send.send(read())))?;
                line
            }
        };
        let mut open = Open(Some(line), self);
        let Some(line) = &mut open.0 else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let read = line.await;
        open.0 = None;
        read.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// A question that is given up holds up nothing, and what was typed at it is no answer to the next one.
    #[test]
    fn a_question_that_is_given_up_holds_up_and_answers_nothing() {
        let (lines, (typed, line)) = (Lines::default(), mpsc::channel::<Vec<u8>>());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let read = move || line.recv().map_err(|_| io::ErrorKind::BrokenPipe.into());
            assert!(timeout(Duration::from_millis(1), lines.read(read)).await.is_err(), "the timer runs");
            // The thread still reads, now for the next question.
            let mut next = pin!(lines.read(|| panic!("two threads read")));
            assert!(timeout(Duration::ZERO, next.as_mut()).await.is_err());
            typed.send(b"n\n".to_vec()).unwrap();
            assert_eq!(next.await.unwrap(), b"n\n");
            // Typed before the next question was put.
            let (send, line) = oneshot::channel();
            send.send(Ok(b"y\n".to_vec())).unwrap();
            *lines.0.lock().unwrap() = Some(line);
            assert_eq!(lines.read(|| Ok(b"n\n".to_vec())).await.unwrap(), b"n\n");
        });
    }
}
