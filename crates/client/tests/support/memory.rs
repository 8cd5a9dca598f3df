//! A transport without a network: responses come from a function, and time passes only in `sleep`.

use countersign_client::countersign::chains::UnixTime;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use countersign_client::{Api, Client, Request, Response, Transport, TransportError, TransportErrorKind};
use serde_json::Value;

pub struct Memory<F> {
    pub answer: F,
    pub now: AtomicU64,
    pub waits: Mutex<Vec<Duration>>,
}

impl<F: Fn(&Request) -> Result<Response, TransportErrorKind> + Send + Sync> Memory<F> {
    pub fn client(now: u64, answer: F) -> Client<Self> {
        Client::new(Api::new("https://service.example", None).unwrap(), Self::new(now, answer))
    }

    pub fn new(now: u64, answer: F) -> Self {
        Self { answer, now: AtomicU64::new(now), waits: Mutex::new(Vec::new()) }
    }
}

impl<F: Fn(&Request) -> Result<Response, TransportErrorKind> + Send + Sync> Transport for Memory<F> {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        (self.answer)(request).map_err(|kind| TransportError::new(kind, "scripted"))
    }

    async fn sleep(&self, duration: Duration) {
        self.waits.lock().unwrap().push(duration);
        self.now.fetch_add(duration.as_secs(), Ordering::SeqCst);
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(self.now.load(Ordering::SeqCst))
    }
}

pub fn ok(result: &Value) -> Result<Response, TransportErrorKind> {
    whole(200, &format!(r#"{{"status":"Ok","result":{result}}}"#))
}

pub fn whole(status: u16, body: &str) -> Result<Response, TransportErrorKind> {
    Ok(Response::new(status, body))
}
