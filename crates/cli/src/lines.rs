//! Lines that are read at the terminal while whatever else runs goes on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, mem, thread};

use tokio::sync::oneshot;

/// The lines of the terminal. Nothing ends a thread that reads one but a line, so it is kept after a question that was given up.
#[derive(Default)]
pub(crate) struct Lines(Arc<Mutex<Reading>>);

#[derive(Default)]
struct Reading {
    /// A thread reads.
    is_on: bool,
    /// The question that waits for the line.
    question: Option<oneshot::Sender<io::Result<Vec<u8>>>>,
}

fn lock(reading: &Mutex<Reading>) -> MutexGuard<'_, Reading> {
    reading.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lines {
    /// Puts a question, and reads the answer on a thread of its own. What was typed after an earlier question was given up is no answer, nor
    /// is a line that may have been begun then: after such a line, the question is put again.
    pub(crate) async fn read(
        &self,
        ask: impl Fn() -> io::Result<()>,
        read: impl Fn() -> io::Result<Vec<u8>> + Clone + Send + 'static,
    ) -> io::Result<Vec<u8>> {
        loop {
            ask()?;
            let (send, line) = oneshot::channel();
            let is_left = {
                let mut reading = lock(&self.0);
                reading.question = Some(send);
                mem::replace(&mut reading.is_on, true)
            };
            if !is_left {
                let (reading, read) = (Arc::clone(&self.0), read.clone());
                // Nobody may wait for it any more.
                let thread = thread::Builder::new().spawn(move || answer(&reading, read));
                thread.inspect_err(|_| lock(&self.0).is_on = false)?;
            }
            let line = line.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
            if !is_left || line.is_empty() {
                return Ok(line);
            }
        }
    }
}

/// Reads until a question has a line. Lines that nobody waits for go nowhere.
fn answer(reading: &Mutex<Reading>, read: impl Fn() -> io::Result<Vec<u8>>) {
    loop {
        let line = read();
        let is_last = !matches!(&line, Ok(line) if !line.is_empty());
        let mut reading = lock(reading);
        let is_heard = reading.question.take().is_some_and(|question| question.send(line).is_ok());
        if is_heard || is_last {
            reading.is_on = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// A question that is given up holds up nothing, and what was typed at it or after it is no answer to the next one.
    #[test]
    fn a_question_that_is_given_up_holds_up_and_answers_nothing() {
        let (typed, keys) = mpsc::channel::<&[u8]>();
        let (reads, read) = mpsc::channel();
        let (keys, asked, lines) = (Arc::new(Mutex::new(keys)), AtomicUsize::new(0), Lines::default());
        let question = || {
            let (keys, reads) = (Arc::clone(&keys), reads.clone());
            let ask = || {
                asked.fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            lines.read(ask, move || {
                reads.send(()).unwrap();
                Ok(keys.lock().unwrap().recv().unwrap_or_default().to_vec())
            })
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let moment = Duration::from_millis(1);
            assert!(timeout(moment, question()).await.is_err(), "the timer runs");
            // Typed when nobody asks.
            for _ in 0..2 {
                read.recv().unwrap();
                typed.send(b"y\n").unwrap();
            }
            read.recv().unwrap();
            let mut next = pin!(question());
            assert!(timeout(Duration::ZERO, next.as_mut()).await.is_err());
            // This line may have been begun before the question.
            typed.send(b"y\n").unwrap();
            while asked.load(Ordering::Relaxed) < 3 {
                assert!(timeout(moment, next.as_mut()).await.is_err(), "it is no answer");
            }
            typed.send(b"n\n").unwrap();
            assert_eq!(next.await.unwrap(), b"n\n");
            // A line that is awaited is the answer, and the end of the input answers every question.
            typed.send(b"y\n").unwrap();
            assert_eq!(question().await.unwrap(), b"y\n");
            assert!(timeout(moment, question()).await.is_err());
            drop(typed);
            assert!(question().await.unwrap().is_empty());
        });
    }
}
