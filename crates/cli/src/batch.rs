//! `countersign batch`: reads one case per line and writes one result per line, in the same order and in bounded memory
//! (`docs/spec/batch.md`).

use std::io::{self, BufRead, Read, Write};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use countersign::json::MAX_BYTES;
use countersign::{Code, Policy, Refusal, Registry, json};
use countersign_json::line::Outcome;
use memchr::memchr;
use zeroize::Zeroize;

use crate::exit::{OK, REFUSED};
use crate::failure::Failure;
use crate::input::TrustArgs;
use crate::show;

pub(crate) const EXAMPLES: &str = "Examples:
  countersign batch --registry registry.json < cases.jsonl > results.jsonl
  countersign batch --registry registry.json --threads 4 --policy policy.json < cases.jsonl | jq -c 'select(.ok | not)'

Input and output are one JSON object per line, in the same order. Exit codes: 0 every line was accepted, 1 some lines were refused, 2 usage
error or I/O error.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    trust: TrustArgs,
    /// Number of threads that verify lines. It does not change the output.
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZeroUsize,
}

pub(crate) fn command(args: &Args) -> Result<u8, Failure> {
    let (registry, policy) = args.trust.read()?;
    let threads = args.threads.min(MAX_THREADS);
    let all_ok = run(Input::new(io::stdin().lock()), &mut io::stdout(), &registry, &policy, threads)?;
    Ok(if all_ok { OK } else { REFUSED })
}

/// More threads would only waste memory.
const MAX_THREADS: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// A chunk is passed to a worker once it contains this many lines or bytes, or once no further complete line is buffered. Interactive
/// callers therefore get each result immediately, and bulk input has little overhead.
const CHUNK_LINES: usize = 64;
const CHUNK_BYTES: usize = 256 * 1024;
/// The maximum number of bytes that are read at once.
const READ_BYTES: usize = 128 * 1024;
/// The maximum number of chunks that wait, per worker.
const WAITING: usize = 4;

/// Bytes that are wiped when they are dropped, because they can contain a secret key.
///
/// `Zeroizing<Vec<u8>>` would wipe each byte by itself, and the memory behind the last byte too. Nothing is ever removed from these
/// bytes, so nothing was written behind them.
#[derive(Default)]
struct Secret(Vec<u8>);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.as_mut_slice().zeroize();
    }
}

/// One input line.
enum Line {
    Whole(Secret),
    /// The head of a line that is longer than the limit.
    TooLong(Secret),
}

/// A buffered reader that wipes its buffer, unlike that of the standard library. Reads of this size bypass the buffer of standard
/// input.
struct Input<R> {
    source: R,
    buffer: Secret,
    unread: Range<usize>,
}

impl<R: Read> Input<R> {
    fn new(source: R) -> Self {
        Self { source, buffer: Secret(vec![0; READ_BYTES]), unread: 0..0 }
    }

    fn unread(&self) -> &[u8] {
        self.buffer.0.get(self.unread.clone()).unwrap_or_default()
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: Read> BufRead for Input<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.unread.is_empty() {
            self.unread = 0..self.source.read(&mut self.buffer.0)?;
        }
        Ok(self.unread())
    }

    fn consume(&mut self, used: usize) {
        self.unread.start = self.unread.start.saturating_add(used).min(self.unread.end);
    }
}

struct Job {
    lines: Vec<Line>,
    done: SyncSender<Done>,
}

struct Done {
    output: Vec<u8>,
    all_ok: bool,
}

/// Runs the batch and returns whether every line was ok.
fn run(
    mut input: Input<impl Read>,
    output: &mut (dyn Write + Send),
    registry: &Registry,
    policy: &Policy,
    threads: NonZeroUsize,
) -> io::Result<bool> {
    let waiting = threads.get().saturating_mul(WAITING);
    let (jobs, queue) = sync_channel::<Job>(waiting);
    let (order, results) = sync_channel::<Receiver<Done>>(waiting);
    let queue = Arc::new(Mutex::new(queue));
    thread::scope(|scope| {
        for _ in 0..threads.get() {
            let queue = Arc::clone(&queue);
            scope.spawn(move || work(&queue, registry, policy));
        }
        drop(queue);
        let writer = scope.spawn(move || write(&results, output));
        let read = read(&mut input, &jobs, &order);
        drop((jobs, order));
        let written = writer.join().map_err(|_| io::Error::other("the writer stopped"))?;
        read.and(written)
    })
}

fn work(queue: &Mutex<Receiver<Job>>, registry: &Registry, policy: &Policy) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { lines, done }) = job else { return };
        let mut output = Vec::new();
        let mut all_ok = true;
        for line in &lines {
            let outcome = match line {
                Line::Whole(Secret(line)) => Outcome::from_line(line, registry, policy),
                Line::TooLong(Secret(head)) => too_long(head),
            };
            all_ok &= outcome.is_ok();
            if serde_json::to_writer(&mut output, &outcome).is_ok() {
                output.push(b'\n');
            }
        }
        // JSON text is always UTF-8.
        let output = String::from_utf8(output).map(show::safe_json).unwrap_or_default().into_bytes();
        // Best effort: the writer is gone only after an I/O error, which ends the run.
        let _ = done.send(Done { output, all_ok });
    }
}

fn too_long(head: &[u8]) -> Outcome {
    let refusal = Refusal::new(Code::JsonTooLarge, "").with_expected(format!("at most {MAX_BYTES} bytes in one line"));
    Outcome::refused(json::salvage_id(head), refusal)
}

/// Reads lines into chunks. The writer gets each chunk's result channel before a worker gets the chunk, which preserves the order.
fn read(input: &mut Input<impl Read>, jobs: &SyncSender<Job>, order: &SyncSender<Receiver<Done>>) -> io::Result<()> {
    let mut lines = Vec::new();
    let mut bytes = 0_usize;
    loop {
        let line = read_line(input)?;
        let ends = line.is_none();
        if let Some(line) = line {
            bytes = bytes.saturating_add(match &line {
                Line::Whole(Secret(line)) | Line::TooLong(Secret(line)) => line.len(),
            });
            lines.push(line);
        }
        // A blank line has no result, so it must not hold back the results of the lines before it.
        let waits = memchr(b'\n', input.unread().trim_ascii_start()).is_none();
        if ends || waits || lines.len() >= CHUNK_LINES || bytes >= CHUNK_BYTES {
            let (done, result) = sync_channel(1);
            // A channel closes early only after an I/O error of the writer, which reports it.
            if order.send(result).is_err() || jobs.send(Job { lines: std::mem::take(&mut lines), done }).is_err() || ends {
                return Ok(());
            }
            bytes = 0;
        }
    }
}

/// Returns the next line that is not blank; `None` at the end of the input. Only the head of a line that is too long stays in memory.
fn read_line(input: &mut dyn BufRead) -> io::Result<Option<Line>> {
    loop {
        let mut line = Secret::default();
        let mut too_long = false;
        loop {
            let buffer = input.fill_buf()?;
            if buffer.is_empty() {
                if line.0.is_empty() {
                    return Ok(None);
                }
                break;
            }
            let end = memchr(b'\n', buffer);
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            if line.0.len().saturating_add(part.len()) > MAX_BYTES {
                too_long = true;
            } else if !too_long {
                reserve(&mut line, part.len());
                line.0.extend_from_slice(part);
            }
            let used = part.len().saturating_add(usize::from(end.is_some()));
            input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if too_long {
            return Ok(Some(Line::TooLong(line)));
        }
        if !line.0.trim_ascii().is_empty() {
            return Ok(Some(Line::Whole(line)));
        }
    }
}

/// Reserves capacity without leaving an unwiped copy of the content behind.
fn reserve(line: &mut Secret, more: usize) {
    let Secret(bytes) = line;
    if bytes.capacity().saturating_sub(bytes.len()) >= more {
        return;
    }
    let wanted = bytes.len().saturating_add(more).max(bytes.capacity().saturating_mul(2));
    let mut larger = Secret(Vec::with_capacity(wanted));
    larger.0.extend_from_slice(bytes);
    *line = larger;
}

fn write(results: &Receiver<Receiver<Done>>, output: &mut (dyn Write + Send)) -> io::Result<bool> {
    let mut all_ok = true;
    for result in results {
        let done = result.recv().map_err(|_| io::Error::other("a worker stopped"))?;
        all_ok &= done.all_ok;
        output.write_all(&done.output)?;
        // Flushed, so that the reader of a pipe gets each chunk as soon as it is done.
        output.flush()?;
    }
    Ok(all_ok)
}
