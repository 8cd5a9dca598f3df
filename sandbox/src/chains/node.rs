//! A node of somebody else's, in the place of an engine: its process, and calls of its JSON-RPC.

use std::env;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Reply, Request};

/// How long a node may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a node may take to answer for the first time.
const START: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(20);
/// The longest answer that is read.
const LONGEST: u64 = 64 << 20;

/// A running node. It ends, and the folder of its files is removed, when this is dropped.
#[derive(Debug)]
pub(crate) struct Node {
    child: Child,
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
    directory: Option<PathBuf>,
}

/// Why a call of a node has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// What the node says: its message, and code and data beside it.
    #[error("{message}")]
    Refused { code: i64, message: String, data: Value },
    /// There is no answer, or none of JSON-RPC.
    #[error("the node does not answer: {0}")]
    Silent(String),
}

impl Node {
    /// Starts a program on a free port, with the arguments that `arguments` gives it for the port, and waits until it answers `method`.
    pub(crate) fn start(
        program: &Path,
        authorization: Option<String>,
        directory: Option<PathBuf>,
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
        let mut node = Self { child, agent: config.into(), url, authorization, directory };
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

    /// Passes a call of a wallet on, and the answer back.
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

/// Where the system looks for libraries, with those of a Debian package that is unpacked and not installed in front: for
/// `usr/lib/litecoin/litecoind`, the folder `usr/lib/x86_64-linux-gnu`. `None` if there is no such folder.
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
        if let Some(directory) = &self.directory {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}
