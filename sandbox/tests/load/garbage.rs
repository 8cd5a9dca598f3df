//! Sends arbitrary bytes to all sockets. The process must survive, keep answering, and not grow.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::program::{Program, request};
use crate::wire::Connection;
use crate::{Draw, directory, executable};

/// Sends bytes. Returns the reply up to the end of the connection, or until nothing more comes.
fn sent(address: &str, bytes: &[u8], patience: Duration) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(patience)).unwrap();
    // The server may refuse the request before it has read all of it.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let mut buffer = [0; 16 << 10];
    while let Ok(read) = stream.read(&mut buffer) {
        if read == 0 || answer.len() > 64 << 10 {
            break;
        }
        answer.extend_from_slice(&buffer[..read]);
    }
    answer
}

fn status(answer: &[u8]) -> Option<u16> {
    let line = String::from_utf8_lossy(answer.get(..12)?).into_owned();
    line.strip_prefix("HTTP/1.1 ")?.parse().ok()
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Returns bodies that look like calls at first.
fn bodies(draw: &mut Draw) -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"{}".to_vec(),
        b"\"\xff\xfe\"".to_vec(),
        b"[".repeat(100_000),
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_call\",\"params\":[[[[]]]]}".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":7,\"params\":{}}".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_getLogs\",\"params\":[{\"fromBlock\":\"0x0\",\"toBlock\":\"0xffffffffffffffff\"}]}".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_getBalance\",\"params\":[\"0x\",\"0xffffffffffffffffffffffffffffffffff\"]}".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sendTransaction\",\"params\":[\"AAAA\",{\"encoding\":\"base64\"}]}".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"starknet_call\",\"params\":{\"request\":{\"calldata\":[\"0xzz\"]},\"block_id\":\"never\"}}".to_vec(),
        // A gRPC-web frame whose stated length is too large.
        vec![0, 255, 255, 255, 255, 1, 2, 3],
        format!("[{}]", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\"},".repeat(3_000)).into_bytes(),
    ];
    for _ in 0..8 {
        let length = draw.below(600);
        bodies.push((0..length).map(|_| u8::try_from(draw.below(256)).unwrap()).collect());
    }
    let good = request(1).to_string().into_bytes();
    for _ in 0..8 {
        let mut broken = good.clone();
        let at = usize::try_from(draw.below(u64::try_from(broken.len()).unwrap())).unwrap();
        broken[at] = u8::try_from(draw.below(256)).unwrap();
        bodies.push(broken);
    }
    bodies
}

#[test]
fn any_bytes_on_any_front_are_answered() {
    let directory = directory("garbage");
    let mut sandbox = Program::start(executable(), &directory, "base,tron,bitcoin_regtest,litecoin,solana,starknet,sui", &[]).unwrap();
    let at = |url: &str| url.trim_start_matches("http://").to_owned();
    let mut fronts =
        vec![(at(sandbox.service()), vec!["/v2/orders", "/v2/orders/00", "/", "/sandbox/fund", "/sandbox/mine?chain=base&blocks=-1"])];
    let chains: Vec<_> = sandbox.about["chains"].as_array().unwrap().iter().map(|chain| at(chain["url"].as_str().unwrap())).collect();
    let paths =
        vec!["/", "/a", "/b/tx", "/c", "/a/wallet/triggerconstantcontract", "/sui.rpc.v2.LedgerService/GetObject", "/block/%ff%00/../.."];
    fronts.extend(chains.iter().map(|address| (address.clone(), paths.clone())));
    let solana = sandbox.about["chains"].as_array().unwrap().iter().find(|chain| chain["chain"] == "solana").unwrap();
    let (host, port) =
        at(solana["url"].as_str().unwrap()).rsplit_once(':').map(|(host, port)| (host.to_owned(), port.parse::<u16>().unwrap())).unwrap();
    let subscriptions = format!("{host}:{}", port + 1);
    fronts.push((subscriptions.clone(), vec!["/"]));
    let before = sandbox.memory();

    let mut draw = Draw(77);
    let quiet = Duration::from_millis(150);
    let large = vec![b' '; 5 << 20];
    for (address, paths) in &fronts {
        for path in paths {
            for body in bodies(&mut draw) {
                let answer = sent(address, &post(path, &body), Duration::from_secs(20));
                let status = status(&answer)
                    .unwrap_or_else(|| panic!("{address}{path}: no answer to {:?}", String::from_utf8_lossy(&body[..body.len().min(80)])));
                assert!((200..600).contains(&status) && status != 500, "{address}{path} {status}: {}", String::from_utf8_lossy(&answer));
            }
            for method in ["GET", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "WHATEVER"] {
                let target = if method == "CONNECT" { "h:1" } else { path };
                let answer = sent(
                    address,
                    format!("{method} {target} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n").as_bytes(),
                    Duration::from_secs(20),
                );
                assert!(status(&answer).is_some(), "{method} {address}{path}");
            }
        }
        // The WebSocket server reads no request body.
        if *address != subscriptions {
            let path = paths[0];
            // A body that is too long, sent whole, in chunks, or only announced.
            let answer = sent(address, &post(path, &large), Duration::from_secs(20));
            assert!(matches!(status(&answer), Some(413) | None), "{address}: {:?}", status(&answer));
            let mut chunked =
                format!("POST {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n500000\r\n")
                    .into_bytes();
            chunked.extend_from_slice(&large);
            chunked.extend_from_slice(b"\r\n0\r\n\r\n");
            assert!(matches!(status(&sent(address, &chunked, Duration::from_secs(20))), Some(413) | None));
            let expects =
                format!("POST {path} HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 2\r\nconnection: close\r\n\r\n");
            assert_eq!(status(&sent(address, expects.as_bytes(), quiet)), Some(100));
        }
        // Bytes that are not HTTP, endless headers, and incomplete requests.
        for _ in 0..10 {
            let noise: Vec<u8> = (0..draw.below(2_000)).map(|_| u8::try_from(draw.below(256)).unwrap()).collect();
            sent(address, &noise, quiet);
        }
        sent(address, &[b"GET / HTTP/1.1\r\n".as_slice(), &b"x: y\r\n".repeat(200_000)].concat(), quiet);
        sent(address, b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1000000000\r\n\r\nhalf", quiet);
        sent(address, b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n", quiet);
        sent(address, b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n", quiet);
    }
    frames(&subscriptions, &mut draw);
    // Many connections that send nothing, and many that send an incomplete request.
    let open: Vec<_> = (0..600)
        .filter_map(|number: usize| {
            let mut stream = TcpStream::connect(&fronts[number % 3].0).ok()?;
            if number.is_multiple_of(2) {
                stream.write_all(b"POST /v2/orders HTTP/1.1\r\nhost: h\r\ncontent-length: 4000000\r\n\r\n{").ok()?;
            }
            Some(stream)
        })
        .collect();
    assert!(open.len() > 500);
    for (number, (address, _)) in fronts.iter().enumerate() {
        assert!(
            status(&sent(address, b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", Duration::from_secs(20))).is_some(),
            "front {number}"
        );
    }
    drop(open);

    let mut connection = Connection::open(sandbox.service()).unwrap();
    connection.service("POST", "/v2/orders", &swap()).unwrap();
    if let (Some(before), Some(after)) = (before, sandbox.memory()) {
        println!("resident: {} MiB before, {} MiB after", before >> 10, after >> 10);
        assert!(after < before + (300 << 10), "{before} KiB before, {after} KiB after");
    }
    sandbox.kill();
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Returns a request for an order between two of the chains in this test.
fn swap() -> serde_json::Value {
    let mut swap = request(5);
    swap["destination"]["asset"] = "tron:trx".into();
    swap["destination"]["amount"] = "1000000".into();
    swap["destination"]["owner"] = "TDRC5zshYy2dNxmpNZKETr4ChpXhvVDp7P".into();
    swap
}

/// Sends malformed frames on a WebSocket that was opened properly.
fn frames(address: &str, draw: &mut Draw) {
    let hello = "GET / HTTP/1.1\r\nhost: h\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                 sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let frame = |opcode: u8, payload: &[u8]| {
        let mut frame = vec![0x80 | opcode, 0x80 | 126];
        frame.extend_from_slice(&u16::try_from(payload.len()).unwrap().to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(payload);
        frame
    };
    let call = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"slotSubscribe\"}";
    let mut all = vec![
        frame(1, b"{"),
        frame(1, b"[[[[["),
        frame(1, &b"[".repeat(60_000)),
        frame(1, b"\xff\xfe"),
        frame(2, call),
        frame(9, b"ping"),
        frame(15, b"?"),
        // A length of 2^63 bytes.
        vec![0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
        frame(1, call).repeat(300),
    ];
    for _ in 0..20 {
        all.push((0..draw.below(300)).map(|_| u8::try_from(draw.below(256)).unwrap()).collect());
    }
    for bytes in all {
        let answer = sent(address, &[hello.as_bytes(), &bytes].concat(), Duration::from_millis(150));
        assert_eq!(status(&answer), Some(101));
    }
}

#[test]
fn it_listens_on_the_loopback_only_unless_told_otherwise() {
    let directory = directory("loopback");
    let sandbox = Program::start(executable(), &directory, "base,arbitrum", &[]).unwrap();
    let port = sandbox.service().rsplit(':').next().unwrap().to_owned();
    assert!(sandbox.service().starts_with("http://127.0.0.1:"));
    // On Linux, all of 127.0.0.0/8 is this machine. The second address differs from the one that the server is bound
    // to.
    if cfg!(target_os = "linux") {
        assert!(TcpStream::connect(format!("127.0.0.2:{port}")).is_err());
        drop(sandbox);
        let open = Program::start(executable(), &directory, "base,arbitrum", &["--listen-on-all-addresses"]).unwrap();
        let port = open.service().rsplit(':').next().unwrap().to_owned();
        assert!(TcpStream::connect(format!("127.0.0.2:{port}")).is_ok());
    }
    let help = std::process::Command::new(executable()).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let about = help.split("--listen-on-all-addresses").nth(1).unwrap();
    assert!(about.contains("Anybody in your network can then turn the sandbox"), "{about}");
    std::fs::remove_dir_all(&directory).unwrap();
}
