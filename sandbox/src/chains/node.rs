//! A real node in place of an engine: its process, its files, and calls of its JSON-RPC.

use std::env;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Reply, Request};

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a node may take to start.
const START: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(20);
/// Longer answers are refused.
const LONGEST: u64 = 64 << 20;

/// A running node. Dropping it stops the process and removes its files.
#[derive(Debug)]
pub(crate) struct Node {
    child: Child,
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
    // Fields are dropped in this order, after the process has ended.
    _files: Files,
}

/// A temporary folder for the files of one node. Dropping it removes the folder.
#[derive(Debug)]
pub(crate) struct Files(PathBuf);

impl Files {
    /// Returns a new folder, which nobody but its owner can read.
    pub(crate) fn new(program: &str) -> std::io::Result<Self> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let name = format!("countersign-{program}-{}-{}", std::process::id(), CREATED.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        Home::open(&directory)?;
        Ok(Self(directory))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Why a call of a node returned no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The node's own error.
    #[error("{message}")]
    Refused { code: i64, message: String, data: Value },
    /// There is no answer, or it is not JSON-RPC.
    #[error("the node does not answer: {0}")]
    Silent(String),
}

impl Node {
    /// Starts a program on a free port and waits until it answers `method`. `arguments` takes the port.
    pub(crate) fn start(
        program: &Path,
        authorization: Option<String>,
        files: Files,
        method: &str,
        arguments: impl FnOnce(u16) -> Vec<String>,
    ) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", program.display());
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| failed(&error))?.port();
        let mut command = Command::new(program);
        if let Some(libraries) = libraries(program) {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let child = command
            .args(arguments(port))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(&error))?;
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false).build();
        let url = format!("http://127.0.0.1:{port}");
        let mut node = Self { child, agent: config.into(), url, authorization, _files: files };
        let start = Instant::now();
        loop {
            match node.call(method, &json!([])) {
                Ok(_) => return Ok(node),
                Err(error) if start.elapsed() > START => return Err(failed(&error)),
                Err(_) => {}
            }
            if let Ok(Some(status)) = node.child.try_wait() {
                return Err(failed(&format!("the node has ended: {status}")));
            }
            std::thread::sleep(STEP);
        }
    }

    /// Calls a method.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Result<Value, CallError> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let (_, _, body) = self.post("/", "application/json", body.as_bytes()).map_err(CallError::Silent)?;
        let mut answer: Value = serde_json::from_slice(&body).map_err(|error| CallError::Silent(error.to_string()))?;
        match answer.get("error").filter(|error| !error.is_null()) {
            Some(error) => {
                let message = error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
                let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
                Err(CallError::Refused { code, message, data: error.get("data").cloned().unwrap_or_default() })
            }
            None => Ok(answer.get_mut("result").map(Value::take).unwrap_or_default()),
        }
    }

    /// Passes a wallet's request on to the node, and returns the answer unchanged.
    pub(crate) fn pass(&self, request: &Request) -> Reply {
        if request.method != "POST" {
            return Reply::text(405, "POST only");
        }
        let content_type = request.header("content-type").unwrap_or("application/json");
        match self.post(&request.path, content_type, &request.body) {
            Ok((status, content_type, body)) => Reply::new(status, &content_type, body),
            Err(reason) => Reply::text(502, format!("the node does not answer: {reason}")),
        }
    }

    /// Status, content type and body of an answer.
    fn post(&self, path: &str, content_type: &str, body: &[u8]) -> Result<(u16, String, Vec<u8>), String> {
        let mut request = self.agent.post(format!("{}{path}", self.url)).header("content-type", content_type);
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let mut answer = request.send(body).map_err(|error| error.to_string())?;
        let content_type = answer.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or("text/plain").to_owned();
        let body = answer.body_mut().with_config().limit(LONGEST).read_to_vec().map_err(|error| error.to_string())?;
        Ok((answer.status().as_u16(), content_type, body))
    }
}

/// Returns the library search path for a program from an unpacked Debian package: `usr/lib/x86_64-linux-gnu` for
/// `usr/lib/litecoin/litecoind`, followed by the current path. `None` if there is no such folder.
fn libraries(program: &Path) -> Option<OsString> {
    let folder = program.parent()?.parent()?.join(format!("{}-linux-gnu", env::consts::ARCH));
    let others = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = folder.is_dir().then(|| std::iter::once(folder).chain(env::split_paths(&others)))?;
    env::join_paths(folders).ok()
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
