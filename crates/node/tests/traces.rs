//! What an endpoint's answers look like in `tracing`: hosts, and nothing else of a URL.
use crate::support;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use support::{Chain, terms};
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Level};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_is_reported_by_its_host() {
    // While `tracing` knows one subscriber alone, a thread without it turns off what it meets first, for all threads.
    let _another = Dispatch::new(NoSubscriber::default());
    let log = Log::default();
    let writer = log.clone();
    let format = tracing_subscriber::fmt().with_max_level(Level::TRACE).with_ansi(false).without_time();
    let _listening = tracing::subscriber::set_default(format.with_writer(move || writer.clone()).finish());
    let terms = terms().destination;
    let nodes = support::nodes(Chain::funded(&terms), 3);
    nodes.htlc(&terms).await.unwrap();
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    // Two of three endpoints are enough, whichever answer first.
    let has_both = |host: &&str| {
        let span = format!("chain{{chain=\"ethereum\"}}:endpoint{{endpoint=\"{host}\"}}");
        let answered = format!("{span}: countersign_node::endpoint: answered endpoint=\"{host}\" method=\"POST\" status=200");
        text.contains(&answered) && text.contains(&format!("{span}: countersign_transport::gather: read"))
    };
    let seen: Vec<_> = ["a.example", "b.example", "c.example"].into_iter().filter(has_both).collect();
    assert!(seen.len() >= 2, "{seen:?}:\n{text}");
    assert!(!text.contains("the-key"), "{text}");
}
