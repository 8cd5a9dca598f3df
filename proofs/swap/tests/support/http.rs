//! HTTP over loopback with the standard library: calls to the engines, and servers for the service and for lying endpoints.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long an engine may take for one call. Mining hundreds of blocks at once is the slowest.
const PATIENCE: Duration = Duration::from_secs(120);

/// A request as it came off the wire.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a JSON body and returns the body of the answer, whatever its status.
fn post(port: u16, authorization: Option<&str>, body: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let authorization = authorization.map(|value| format!("authorization: {value}\r\n")).unwrap_or_default();
    write!(
        stream,
        "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n{authorization}content-type: application/json\r\nconnection: close\r\ncontent-length: \
         {}\r\n\r\n{body}",
        body.len()
    )?;
    Ok(message(&mut stream)?.1)
}

/// Calls a method of JSON-RPC.
pub fn call(port: u16, authorization: Option<&str>, method: &str, params: &Value) -> Result<Value, String> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let answer = post(port, authorization, &body).map_err(|error| format!("{method}: {error}"))?;
    let answer: Value = serde_json::from_slice(&answer).map_err(|error| format!("{method}: {error}"))?;
    if answer["error"].is_null() { Ok(answer["result"].clone()) } else { Err(format!("{method}: {}", answer["error"])) }
}

/// Reads the head and the body of a message whose length is given, or that ends with the connection.
fn message(stream: &mut TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 65_536]);
    let mut read = |bytes: &mut Vec<u8>| -> std::io::Result<bool> {
        let count = stream.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..count]);
        Ok(count > 0)
    };
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if !read(&mut bytes)? {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut body = bytes.split_off(end + 4);
    let length = head.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, value)| value.trim().parse().ok());
    while length.is_none_or(|length: usize| body.len() < length) && read(&mut body)? {}
    Ok((head, body))
}

/// A server on loopback that answers every request by one function, and remembers what it saw. It stops when told to.
pub struct Server {
    address: SocketAddr,
    is_up: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Starts a server whose answers have a status and a JSON body.
    pub fn start(answer: impl Fn(&Seen) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (is_up, seen) = (Arc::new(AtomicBool::new(true)), Arc::new(Mutex::new(Vec::new())));
        let (up, all, answer) = (Arc::clone(&is_up), Arc::clone(&seen), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                // The listener is closed with the loop: later connections are refused.
                if !up.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (up, all, answer) = (Arc::clone(&up), Arc::clone(&all), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &up, &all, answer.as_ref()));
            }
        });
        Self { address, is_up, seen }
    }

    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Closes the listener.
    pub fn stop(&self) {
        self.is_up.store(false, Ordering::SeqCst);
        // Wakes the loop that accepts connections.
        let _ = TcpStream::connect(self.address);
    }

    /// Returns every request so far, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(mut stream: TcpStream, is_up: &AtomicBool, all: &Mutex<Vec<Seen>>, answer: &(dyn Fn(&Seen) -> (u16, String) + Send + Sync)) {
    let Ok((head, body)) = request(&mut stream) else { return };
    let mut first = head.split(' ');
    let (method, target) = (first.next().unwrap_or_default().to_owned(), first.next().unwrap_or_default().to_owned());
    let seen = Seen { method, target, body };
    if !is_up.load(Ordering::SeqCst) {
        return;
    }
    all.lock().unwrap().push(seen.clone());
    let (status, body) = answer(&seen);
    let head =
        format!("HTTP/1.1 {status} Word\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let _ = stream.shutdown(Shutdown::Both);
}

/// Reads a request. One without a length has no body.
fn request(stream: &mut TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok((head, body))
}

/// Starts an endpoint that passes every call on to an engine, and changes results on the way back.
pub fn liar(port: u16, authorization: Option<&'static str>, change: impl Fn(&str, &Value, &mut Value) + Send + Sync + 'static) -> Server {
    Server::start(move |seen| {
        let Ok(answer) = post(port, authorization, &seen.text()) else { return (502, "{}".to_owned()) };
        let request: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        let mut answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        match (&request, &mut answer) {
            // A batch: its answers are matched by id.
            (Value::Array(calls), Value::Array(answers)) => {
                for answer in answers {
                    let call = calls.iter().find(|call| call["id"] == answer["id"]).unwrap();
                    change(call["method"].as_str().unwrap(), &call["params"], &mut answer["result"]);
                }
            }
            (call, answer) => change(call["method"].as_str().unwrap_or_default(), &call["params"], &mut answer["result"]),
        }
        (200, answer.to_string())
    })
}
