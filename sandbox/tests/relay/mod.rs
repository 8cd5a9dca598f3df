//! The service behind a socket that records what clients send, and can be stopped.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Forwards connections to the service until it is stopped.
pub(crate) struct Relay {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_stopped: AtomicBool,
    sent: Mutex<Vec<u8>>,
    open: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Starts listening on behalf of a service.
    pub(crate) fn open(service: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state, service) = (listener.local_addr().unwrap(), Arc::new(State::default()), service.to_owned());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.is_stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(server) = TcpStream::connect(&service) else { continue };
                shared.open.lock().unwrap().extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                let (from_client, to_client) = (client.try_clone().unwrap(), client);
                let (from_server, to_server) = (server.try_clone().unwrap(), server);
                let keeper = Arc::clone(&shared);
                thread::spawn(move || pass(from_client, to_server, |bytes| keeper.sent.lock().unwrap().extend(bytes)));
                thread::spawn(move || pass(from_server, to_client, |_| ()));
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns everything that clients have sent.
    pub(crate) fn sent(&self) -> String {
        String::from_utf8_lossy(&self.state.sent.lock().unwrap()).into_owned()
    }

    /// Closes all connections, and refuses new ones.
    pub(crate) fn stop(&self) {
        self.state.is_stopped.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it notices the stop.
        let _ = TcpStream::connect(self.address);
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop();
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, keep: impl Fn(&[u8])) {
    let mut buffer = [0; 16_384];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        keep(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
