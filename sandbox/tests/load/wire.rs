//! A minimal HTTP/1.1 client over one persistent connection, so that measurements show the server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// A connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Opens a connection to `http://host:port`.
    pub fn open(url: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(url.trim_start_matches("http://").trim_end_matches('/'))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a request. Returns the status and the body of the answer.
    pub fn call(&mut self, method: &str, path: &str, body: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: sandbox\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all(&[head.as_bytes(), body].concat())?;
        self.answer()
    }

    /// Reads an answer.
    pub fn answer(&mut self) -> io::Result<(u16, Vec<u8>)> {
        let broken = || io::Error::new(io::ErrorKind::UnexpectedEof, "no answer");
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
        let mut length = 0;
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(broken());
            }
            let header = line.trim_end().to_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(|_| broken())?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, body))
    }

    /// Calls the service. `Err` holds the reason of a refusal.
    pub fn service(&mut self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let (_, answer) = self.call(method, path, &body).map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer.to_string()),
        }
    }
}
